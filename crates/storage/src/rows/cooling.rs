//! Cooling chunks: those that are old but for a few rows, which move out before they are written.
//!
//! ```text
//!         full for long, and written still            not written for long
//!     HOT ───────────────────────────────► COOLING ───────────────────────► FROZEN
//!      ▲       too many rows have moved       │
//!      └──────────────────────────────────────┘
//! ```
//!
//! - C-1 A cooling chunk is whole and has blocks, in which its rows are read. Like a frozen one it is none of those from
//!   `hot_first` on: whoever asks whether a row is hot asks nothing more.
//! - C-2 A row of it that is to be written moves first, as one of a frozen chunk does (I-2 of `cold`), until
//!   [`MOST_MOVED_ROWS`] have moved out. From then on the others are written in place, until the chunk is hot again.
//! - C-3 Its slots are not free: rows that die or move leave holes. Once it is hot again, the holes are free.
//! - C-4 The garbage of its heaps is counted as in a hot chunk.
//! - C-5 Nobody relies on its blocks being unchanged. Statements over many rows and rewritten heaps write it like a hot
//!   one, and [`Rows::freeze`] compares blocks whether a chunk cools or not.
//!
//! Paper: Funke, Kemper and Neumann, *Compacting Transactional Data*, VLDB 2012, §3.3 and §5.2. There reading moves a row
//! too, and deleting does not; here neither does.

use std::sync::Arc;

use albireo_base::Tid;
use albireo_base::ids::CHUNK_ROWS;

use super::Rows;
use super::cold::WhyHot;

/// Rows that move out of a cooling chunk at most.
pub const MOST_MOVED_ROWS: u32 = (CHUNK_ROWS / 8) as u32;

impl Rows {
    /// Whether a row lies in a frozen or cooling chunk, wherever it has been moved since: no new row comes to its slot.
    #[inline]
    pub(crate) fn is_cold(&self, tid: Tid) -> bool {
        let frozen = &self.dir.frozen;
        !self.is_hot(tid) && (frozen.get(tid.chunk()).is_some() || frozen.moved(tid.chunk()).is_some())
    }

    /// Whether the row in a slot has to move before it is written.
    pub(crate) fn moves_before_written(&self, slot: Tid) -> bool {
        let frozen = &self.dir.frozen;
        let leaves = || frozen.moved(slot.chunk()).is_some_and(|moved| moved < MOST_MOVED_ROWS);
        !self.is_hot(slot) && (frozen.get(slot.chunk()).is_some() || leaves())
    }

    /// Has a chunk cool. The caller is between two transactions.
    ///
    /// # Errors
    /// It could not be frozen, and stays as it is.
    pub(crate) fn cool(&mut self, chunk: usize) -> Result<(), WhyHot> {
        self.may_freeze(chunk)?;
        if self.dir.frozen.moved(chunk).is_none() {
            Arc::make_mut(&mut self.dir_mut().frozen).cool(chunk);
            self.free.forget(chunk);
            self.readdress();
            self.moves += 1;
        }
        Ok(())
    }

    /// Has a cooling chunk be hot again; `false` if that cannot be now, or it does not cool. The caller is between two
    /// transactions.
    pub(crate) fn end_cooling(&mut self, chunk: usize) -> bool {
        // Ghosts are dead, and their slots are not free yet.
        if self.dir.frozen.moved(chunk).is_none() || self.has_moved() || self.has_ghosts() {
            return false;
        }
        Arc::make_mut(&mut self.dir_mut().frozen).end_cooling(chunk);
        self.readdress();
        self.moves += 1;
        for tid in (0..CHUNK_ROWS).map(|slot| Tid::new(chunk, slot)) {
            if !self.is_live(tid) {
                self.free_slot(tid);
            }
        }
        true
    }
}
