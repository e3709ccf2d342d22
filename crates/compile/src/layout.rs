//! What the compiler must know of tables as they lie in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use albireo_base::{ColumnId, TableId};
use albireo_storage::{CellShape, ColumnAddress, IndexRef, Table};

/// Where tables lie; the same in all partitions.
pub trait Layouts {
    /// The layout of one; `None` if it is not known, so that statements about it are left to the
    /// interpreter.
    fn layout(&self, table: TableId) -> Option<Arc<TableLayout>>;
}

/// A table as it lies in memory.
pub struct TableLayout {
    /// Its id, which tells whether a table is this one.
    pub(super) id: u64,
    pub(super) columns: Vec<ColumnAddress>,
    pub(super) indexes: BTreeMap<String, IndexRef>,
    /// All columns, in order.
    pub(super) whole: CellShape,
}

impl TableLayout {
    /// The layout of a table, and of its parts in other partitions.
    pub fn of(table: &Table) -> Self {
        let ids = || (0..table.spec().columns.len()).map(|n| ColumnId(n as u16));
        let indexes = table.spec().indexes.iter();
        Self {
            id: table.layout_id(),
            columns: ids().map(|id| table.column_address(id)).collect(),
            indexes: indexes
                .filter_map(|index| Some((index.name.clone(), table.index(&index.name).ok()?)))
                .collect(),
            whole: table.cell_shape(&ids().collect::<Vec<_>>()),
        }
    }
}

/// Nothing is known of any table.
pub struct NoLayouts;

impl Layouts for NoLayouts {
    fn layout(&self, _: TableId) -> Option<Arc<TableLayout>> {
        None
    }
}
