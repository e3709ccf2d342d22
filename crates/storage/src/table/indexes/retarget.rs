//! Indexes follow a row that moves: the same values, and so the same keys, at another TID.
//!
//! While they do, the row is at both places. Afterwards the old place is found by no index, and may be given up.
//!
//! - I-1 All indexes follow, or none.

use albireo_base::{IndexId, Tid};

use super::{Failure, Table, TableError, TableIndex, build_key, in_rows};
use crate::index::StoredKeys;
use crate::key::KeyBuilder;
use crate::rows::Rows;

impl TableIndex {
    /// Follows a row from `old` to `new`, where its values are too.
    ///
    /// # Errors
    /// There is no memory, and the index is as it was; never if the structure is unique, which it is if the index is
    /// and no column of the key takes NULL.
    ///
    /// # Panics
    /// The row does not stand in it.
    pub(in crate::table) fn retarget(&mut self, rows: &Rows, old: Tid, new: Tid) -> Result<(), Failure> {
        debug_assert!(
            rows.is_live(old) && rows.is_live(new),
            "only live rows stand in indexes (I-1 of `table`)"
        );
        // A ghost or a row that is about to come may have the same key. It stands beside the row or, in a structure
        // that is unique, not at all: whoever came second has taken its place (`insert_over`).
        let moved = match self.index.is_short() {
            true => {
                let key = self.short_key(rows, new);
                debug_assert_eq!(key, self.short_key(rows, old), "the row keeps its key");
                self.index.retarget_short(key, old.0, new.0)
            }
            false => {
                let (mut key, mut stored) = (KeyBuilder::new(), in_rows(&self.columns, rows));
                build_key(&self.columns, rows, new, &mut key);
                debug_assert!(stored.compare(key.key(), old.0).is_eq(), "the row keeps its key");
                self.index.retarget(key.key(), old.0, new.0, &mut stored)
            }
        };
        Ok(moved?)
    }
}

impl Table {
    /// Has all indexes follow a row from `old` to `new`, where its values are too and which stands in none. Both live.
    ///
    /// # Errors
    /// There is no memory; all indexes are as they were.
    pub(in crate::table) fn retarget_all(&mut self, old: Tid, new: Tid) -> Result<(), TableError> {
        let Self { rows, indexes, .. } = self;
        for position in 0..indexes.len() {
            let Err(failure) = indexes[position].retarget(rows, old, new) else { continue };
            rows.pool().with_emergency(|| {
                for followed in &mut indexes[..position] {
                    let back = followed.retarget(rows, new, old);
                    assert!(back.is_ok(), "an index had the entry where it goes back to");
                }
            });
            return Err(self.index_error(IndexId(position as u16), failure));
        }
        // What was found at the old place is found there no more.
        self.rows.note_move();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
