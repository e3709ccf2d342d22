//! References of one column of one chunk to texts that it shares.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use albireo_encoding::TextList;

use super::{BATCH, ColumnTexts, cost};
use crate::pool::{BlockPool, Claim};

/// The texts of a chunk's dictionary. Dropped, it lets go of them, and texts are freed that no other list has.
pub(super) struct List {
    pub(super) texts: Vec<Arc<[u8]>>,
    of: Arc<ColumnTexts>,
    /// Of the list, the texts apart.
    pub(super) claim: Claim,
}

impl List {
    /// A list with room for so many.
    pub(super) fn new(of: &Arc<ColumnTexts>, count: usize, pool: &BlockPool) -> Self {
        Self { texts: Vec::with_capacity(count), of: Arc::clone(of), claim: Claim::empty(pool) }
    }
}

impl TextList for List {
    fn count(&self) -> usize {
        self.texts.len()
    }

    #[inline]
    fn text(&self, place: usize) -> &[u8] {
        &self.texts[place]
    }

    fn memory_bytes(&self) -> u64 {
        self.claim.bytes() + self.of.part_of(self.texts.len() as u64)
    }
}

impl Drop for List {
    fn drop(&mut self) {
        while !self.texts.is_empty() {
            let mut state = self.of.state.lock();
            let (mut bytes, rest) = (0, self.texts.len().saturating_sub(BATCH));
            let references = (self.texts.len() - rest) as u64;
            for text in self.texts.drain(rest..) {
                // This reference, and that of the set. Whoever else has one took it, and drops it, under the lock.
                if Arc::strong_count(&text) == 2 {
                    bytes += cost(&text);
                    let was_there = state.texts.remove(&*text);
                    debug_assert!(was_there, "what is shared is in the set");
                }
            }
            if let Some(claim) = &mut state.claim {
                claim.give(bytes);
            }
            self.of.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.of.references.fetch_sub(references, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").field("texts", &self.texts.len()).finish_non_exhaustive()
    }
}
