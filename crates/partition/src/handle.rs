//! What names a table in every partition.

use albireo_base::TableId;

/// A handle to a table in every partition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableHandle {
    pub(crate) id: TableId,
    pub(crate) shared: bool,
}

impl TableHandle {
    /// The handle of the table `id`, which is `shared` or partitioned as it was created.
    #[inline]
    pub fn new(id: TableId, shared: bool) -> Self {
        Self { id, shared }
    }

    /// The table's id.
    #[inline]
    pub fn id(self) -> TableId {
        self.id
    }

    /// Whether all partitions read one copy of the table.
    #[inline]
    pub fn is_shared(self) -> bool {
        self.shared
    }
}
