//! FOR UPDATE and FOR SHARE, as nodes of the tree.

/// FOR UPDATE or FOR SHARE of the rows of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowLock {
    /// The table's number in [`Select::relations`](super::tree::Select::relations).
    pub relation: u16,
    /// Which.
    pub mode: LockMode,
    /// What happens if another transaction has locked a row.
    pub wait: LockWait,
}

/// Kinds of row locks, the weaker the less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LockMode {
    /// FOR SHARE.
    Share,
    /// FOR UPDATE.
    Update,
}

impl LockMode {
    /// As PostgreSQL writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Share => "FOR SHARE",
            Self::Update => "FOR UPDATE",
        }
    }
}

/// What a row lock does about a row that another transaction has locked; of several, the greatest counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LockWait {
    /// It waits.
    Waits,
    /// SKIP LOCKED: the row is left out.
    Skips,
    /// NOWAIT: it is an error.
    Fails,
}
