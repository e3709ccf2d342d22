//! Tables and columns as an archive names them.

use albireo_base::{SqlType, TableId};

/// A table as people and tools know it.
#[derive(Clone, PartialEq, Debug)]
pub struct TableMeta {
    /// Its id.
    pub id: TableId,
    /// Its schema's name.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<ColumnMeta>,
}

/// A column as people and tools know it.
#[derive(Clone, PartialEq, Debug)]
pub struct ColumnMeta {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: SqlType,
    /// Whether it may be NULL.
    pub nullable: bool,
}
