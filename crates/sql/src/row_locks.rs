//! Which row locks a statement takes, in any of its queries.

use std::ops::ControlFlow;

use sqlparser::ast::{LockType, Query, Statement, Visitor};

use crate::walk::Walk;

/// The FOR UPDATE and FOR SHARE clauses of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RowLocks {
    /// Whether there are any.
    pub any: bool,
    /// Whether one is FOR UPDATE.
    pub updates: bool,
    /// Whether one is NOWAIT or SKIP LOCKED: what others have locked then decides about the result.
    pub asks: bool,
}

impl RowLocks {
    /// Those of a statement.
    pub fn of(statement: &Statement) -> Self {
        let mut found = Finder(Self::default());
        let _ = statement.walk(&mut found);
        found.0
    }
}

struct Finder(RowLocks);

impl Visitor for Finder {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for clause in &query.locks {
            self.0.any = true;
            self.0.updates |= clause.lock_type == LockType::Update;
            self.0.asks |= clause.nonblock.is_some();
        }
        ControlFlow::Continue(())
    }
}
