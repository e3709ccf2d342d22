//! Texts of a dictionary that are not the column's own: somebody lends them, to other columns too.
//!
//! Responsible for: what a column knows of texts that are lent. Not responsible for: who has which text, what it costs, and
//! when it is freed ([`TextList`]); columns whose texts are lent (`lending`).

use std::fmt;
use std::sync::Arc;

/// Texts by place, lent as long as the list is held. They never change.
pub trait TextList: fmt::Debug + Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// The text at `place`, which is below [`TextList::count`].
    fn text(&self, place: usize) -> &[u8];

    /// Bytes of memory that whoever has the list pays for.
    fn memory_bytes(&self) -> u64;
}

/// The entries of a dictionary, lent.
#[derive(Clone, Debug)]
pub(crate) struct Lent {
    pub(crate) list: Arc<dyn TextList>,
    /// How they are written: all of this length, or from offset to offset.
    pub(crate) length: Option<u32>,
    /// Of all of them.
    pub(crate) bytes: u32,
}
