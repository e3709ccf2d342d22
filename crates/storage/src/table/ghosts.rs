//! Rows of which many die at once.
//!
//! They die in a moment ([`Table::kill_all`]): a bit for each. They stand in the indexes until they are tidied away, a
//! few at a time ([`Table::tidy_away`]); until then whoever finds one knows that it does not live.

use albireo_base::Tid;

use super::{Table, TableError};
use crate::pool::Need;
use crate::rows::RowSet;

impl Table {
    /// Gets ready for [`Table::kill_all`], which then cannot fail.
    ///
    /// # Errors
    /// There is no memory.
    pub fn prepare_to_kill(&mut self, set: &RowSet) -> Result<(), TableError> {
        Ok(self.rows.prepare(set, Need::Freeing)?)
    }

    /// Kills rows, all of which live, and for which it is ready. They are to be tidied away.
    pub fn kill_all(&mut self, set: &RowSet) {
        self.rows.kill_all(set);
    }

    /// Takes rows out of the indexes that were killed together, and lets their slots be used again.
    ///
    /// # Panics
    /// One lives.
    pub fn tidy_away(&mut self, tids: impl Iterator<Item = Tid>) {
        for tid in tids {
            for index in &mut self.indexes {
                index.remove_ghost(&self.rows, tid);
            }
            self.count_texts_in_blocks(tid, 1);
            self.rows.lay_to_rest(tid);
        }
    }

    /// Rewrites a string heap that is mostly garbage, also while heaps are kept as they are; whether there was one. The
    /// caller is between two transactions, and has [kept the heaps](Table::keep_heaps) alone.
    pub fn tidy_one_heap(&mut self) -> bool {
        self.rows.tidy_one()
    }
}
