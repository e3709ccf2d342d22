//! What a plan does to tables.

use std::sync::Arc;

use albireo_base::ColumnId;
use albireo_sql::TableDef;

use crate::expr::{ColumnRef, Expr};

/// What a plan does to a table, for EXPLAIN and to say in which partition it can run.
#[derive(Clone, PartialEq, Debug)]
pub struct AccessInfo {
    /// The table.
    pub table: Arc<TableDef>,
    /// The index; `None` for all rows, or an insertion.
    pub index: Option<String>,
    /// The columns bound by equality in this index.
    pub equal: Vec<ColumnId>,
    /// The column after these, if it is bound by a range.
    pub range: Option<ColumnId>,
    /// Columns that are compared by equality although no index has them.
    pub unserved: Vec<ColumnId>,
    /// What gives the partitioning column, if one expression does.
    pub partition: Option<Expr>,
    /// The names of the columns in `partition`, as far as they are known.
    pub columns: Vec<(ColumnRef, String)>,
    /// What is done.
    pub kind: AccessKind,
    /// How many queries it is nested in: columns in `partition` are of a row of that query.
    pub depth: u16,
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// It reads rows.
    Read,
    /// It finds rows and changes or deletes them.
    Change,
    /// It adds rows.
    Insert,
    /// It gives rows another partitioning column, which may move them.
    Move,
}

impl AccessKind {
    /// Whether rows are changed.
    pub fn writes(self) -> bool {
        self != Self::Read
    }
}
