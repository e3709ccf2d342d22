//! Rows of frozen chunks for code that reads values without a call: each becomes a chunk of one row.

use albireo_base::Tid;

use super::RowAddress;
use crate::column::put_fixed;
use crate::directory::Entry;
use crate::layout::{OneRow, Physical, VALIDITY_ENTRY};
use crate::registry::ColumnSet;
use crate::rows::{OVERFLOW, Rows, VIEW_INLINE_BYTES, View};
use crate::table::Table;

/// Rows that were thawed; they stay where they are until they are cleared.
///
/// Each is a piece of memory with the entries of a chunk, of which those that slot 0 needs lead to what lies behind them.
/// Texts do not lie there, but for empty ones: they are asked for, and lie in the frozen chunk, or where who asks keeps
/// those that are packed or compressed, so that they stay where they are when the rows are cleared.
#[derive(Default)]
pub struct Thawed {
    rows: Vec<Box<[u128]>>,
    /// Memory for the next one: mostly there is one at a time.
    spare: Option<Box<[u128]>>,
    bytes: usize,
    most_bytes: usize,
}

impl Thawed {
    /// By how many bytes the rows are more than they were at most when this was asked before.
    pub fn growth(&mut self) -> usize {
        let growth = self.bytes.saturating_sub(self.most_bytes);
        self.most_bytes += growth;
        growth
    }

    /// Forgets the rows.
    #[inline]
    pub fn emptied(&mut self) -> &mut Self {
        if self.bytes > 0 {
            self.spare = self.rows.pop();
            self.rows.clear();
            self.bytes = 0;
        }
        self
    }

    /// A row of so many words, all 0.
    fn take(&mut self, words: usize) -> Box<[u128]> {
        match self.spare.take() {
            Some(mut row) if row.len() == words => {
                row.fill(0);
                row
            }
            _ => vec![0; words].into_boxed_slice(),
        }
    }
}

const _: () = assert!(size_of::<Entry>() == size_of::<u128>(), "an entry is a word of `OneRow`");

impl Table {
    /// Where a row lies; if it is frozen, where some of its columns have been thawed: no others are to be read there.
    ///
    /// # Panics
    /// There never was such a row.
    #[inline]
    pub fn readable_row(&self, tid: Tid, columns: ColumnSet, thawed: &mut Thawed) -> RowAddress {
        match self.row_address(tid) {
            Some(address) => address,
            None => self.thaw(tid, columns, thawed),
        }
    }

    #[cold]
    #[inline(never)]
    fn thaw(&self, tid: Tid, columns: ColumnSet, thawed: &mut Thawed) -> RowAddress {
        let one = self.rows.layout.one_row();
        let mut row = thawed.take(one.words);
        let entries = row.as_mut_ptr().cast::<u8>();
        // SAFETY: `row` has so many words, and nobody else knows it.
        unsafe { fill(&self.rows, tid, columns, one, entries) };
        thawed.bytes += size_of_val(&*row);
        thawed.rows.push(row);
        RowAddress { entries, slot: 0 }
    }
}

/// Writes the entries of a chunk of one row, and some columns of the row. Each lies in memory of its own, which is what
/// they cost.
///
/// # Safety
/// `one.words` words of zeroes may be written at `to`.
unsafe fn fill(rows: &Rows, tid: Tid, columns: ColumnSet, one: &OneRow, to: *mut u8) {
    let chunk = rows.frozen_chunk(tid).expect("the row is frozen");
    chunk.note_read(rows.pool().time());
    // SAFETY: places are below the number of words, the caller's; what lies there is as wide as its entry's row.
    let place_of = |entry: usize| unsafe { to.add(one.places[entry] as usize * size_of::<u128>()) };
    for (number, place) in one.places.iter().enumerate() {
        let block = match *place {
            u32::MAX => Entry::FROZEN.block,
            _ => std::ptr::NonNull::new(place_of(number)).expect("memory is not at 0"),
        };
        // SAFETY: the entries come first.
        unsafe { to.cast::<Entry>().add(number).write(Entry { block, tag: 0 }) };
    }
    // SAFETY: a bitmap has a word; its first bit is that of slot 0.
    let set_bit = |entry: usize| unsafe { *place_of(entry) |= 1 };
    if rows.is_live(tid) {
        set_bit(VALIDITY_ENTRY);
    }
    for at in rows.layout.columns() {
        if !columns.has(at.column) {
            if cfg!(debug_assertions) && !at.physical.is_string() {
                // SAFETY: as below. Who reads what is not thawed is to be found out.
                let place = unsafe { place_of(at.entry as usize).add(at.offset as usize) };
                // SAFETY: the value is as wide.
                unsafe { place.write_bytes(0xA5, usize::from(at.width)) };
            }
            continue;
        }
        if chunk.is_null(at.column, tid.slot()) {
            continue;
        }
        if at.nullable() {
            set_bit(at.null_entry as usize);
        }
        // SAFETY: the value lies in its row's part of the group (I-1 of the layout).
        let place = unsafe { place_of(at.entry as usize).add(at.offset as usize) };
        let view;
        let bytes: &[u8] = match at.physical {
            // An empty text is all zeroes, in its slot and as a view.
            _ if at.physical.is_string() && chunk.is_empty_text(at.column, tid.slot()) => &[],
            // Who reads the others asks the table for them.
            Physical::Inline(_) => &[OVERFLOW],
            Physical::View => {
                view = View::long(&[0; VIEW_INLINE_BYTES + 1], u32::MAX, u32::MAX);
                &view.0
            }
            _ => {
                // SAFETY: the value is as wide.
                unsafe { put_fixed(place, at.width, chunk.fixed(at.column, tid.slot())) };
                continue;
            }
        };
        // SAFETY: at most as many bytes as the value is wide.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
    }
}
