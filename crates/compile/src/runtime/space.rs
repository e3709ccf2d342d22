//! The memory of a call, used again by the next: most calls so allocate nothing.

use albireo_base::Tid;
use albireo_partition::Site;
use albireo_plpgsql::body::Routine;
use albireo_semantics::datum::Datum;
use albireo_storage::{Cell, Thawed};

use super::arrays::{Head, Native};
use super::prefetch::{Answer, ROUNDS};
use super::rows::{Distinct, RowAt};
use super::statements::{Cursor, Protected};
use super::{Arena, values};
use crate::frame::Frame;
use crate::parts::Parts;

/// Bytes of a text that lies in the room that its cell has in [`Space::shorts`].
pub(crate) const SHORT_TEXT: usize = 64;

/// Bytes of memory in one piece that are kept for the next use; what is larger is given back.
pub(super) const KEPT: usize = 64 << 10;

/// Gives back the memory of a list that is too large to be kept.
pub(super) fn shrink<T>(list: &mut Vec<T>) {
    if list.capacity() * size_of::<T>() > KEPT {
        *list = Vec::new();
    }
}

/// What a call works on. A new one and one that was [tidied](Space::tidy) are the same to a call.
#[derive(Default)]
pub(crate) struct Space {
    /// The frame.
    pub(crate) cells: Vec<Cell>,
    /// By cell, [`SHORT_TEXT`] bytes.
    pub(crate) shorts: Vec<u8>,
    /// The heads of the arrays.
    pub(crate) heads: Vec<Head>,
    /// The arrays.
    pub(crate) arrays: Vec<Native>,
    /// By cell: the text of a variable that is not short.
    pub(crate) texts: Vec<Vec<u8>>,
    /// Whether one of these may be large.
    pub(crate) long: bool,
    /// Texts of the statement at hand.
    pub(crate) arena: Arena,
    /// A text that is put together.
    pub(crate) joined: String,
    /// Boxed values of the statement at hand.
    pub(crate) boxes: Vec<Datum>,
    /// Rows that loops go over, the innermost last.
    pub(crate) cursors: Vec<Cursor>,
    /// Blocks with handlers under way, the innermost last.
    pub(crate) protected: Vec<Protected>,
    /// By search: the rows that it found.
    pub(crate) searches: Vec<Vec<(Site, Tid)>>,
    /// By search: the same rows where they lie, if nothing changes them.
    pub(crate) rows: Vec<Vec<RowAt>>,
    /// By ask, [`ROUNDS`] answers.
    pub(crate) answers: Vec<Answer>,
    /// By ask: the rows that its searches found. They stay where they are until it is asked again.
    pub(crate) kept: Vec<Vec<RowAt>>,
    /// By search, and by ask: rows that its last one found frozen.
    pub(crate) thawed: Vec<Thawed>,
    pub(crate) asked: Vec<Thawed>,
    /// By aggregate that counts each value once: the values that it has met.
    pub(crate) distinct: Vec<Distinct>,
    /// The interpreter's variables, while no call is under way.
    pub(crate) variables: Vec<Datum>,
    /// Whether the interpreter's variables may hold something.
    pub(crate) lent: bool,
}

impl Space {
    /// For calls of a routine whose code refers to these parts.
    pub(crate) fn new(routine: &Routine, frame: &Frame, parts: &Parts) -> Box<Self> {
        let searches = parts.searches();
        Box::new(Self {
            cells: vec![values::NULL; frame.cells],
            shorts: vec![0; frame.cells * SHORT_TEXT],
            heads: vec![Head::default(); frame.arrays],
            arrays: (0..frame.arrays).map(|_| Native::default()).collect(),
            texts: vec![Vec::new(); frame.cells],
            searches: vec![Vec::new(); searches],
            rows: vec![Vec::new(); searches],
            answers: vec![Answer::NONE; parts.asks() * ROUNDS],
            kept: vec![Vec::new(); parts.asks()],
            thawed: (0..searches).map(|_| Thawed::default()).collect(),
            asked: (0..parts.asks()).map(|_| Thawed::default()).collect(),
            distinct: (0..parts.distinct).map(|_| Distinct::default()).collect(),
            variables: routine.variables.iter().map(|variable| variable.place.initial()).collect(),
            ..Self::default()
        })
    }

    /// Forgets a call.
    pub(crate) fn tidy(&mut self, routine: &Routine, frame: &Frame) {
        assert_eq!(self.cells.len(), frame.cells, "a call's memory is used again by its routine");
        debug_assert_eq!(
            self.shorts.len(),
            self.cells.len() * SHORT_TEXT,
            "each cell has room for a short text"
        );
        debug_assert_eq!(self.heads.len(), self.arrays.len(), "each array has a head");
        self.cells.fill(values::NULL);
        self.arrays.iter_mut().for_each(Native::clear);
        for (head, array) in self.heads.iter_mut().zip(&mut self.arrays) {
            *head = array.fresh_head();
        }
        if std::mem::take(&mut self.long) {
            self.texts.iter_mut().for_each(shrink);
        }
        self.arena.clear();
        self.thawed.iter_mut().chain(&mut self.asked).for_each(|thawed| *thawed = Thawed::default());
        if self.joined.capacity() > KEPT {
            self.joined = String::new();
        }
        self.boxes.clear();
        shrink(&mut self.boxes);
        self.cursors.clear();
        self.protected.clear();
        self.searches.iter_mut().for_each(shrink);
        self.rows.iter_mut().for_each(shrink);
        self.distinct.iter_mut().for_each(Distinct::clear);
        if std::mem::take(&mut self.lent) || frame.boxes {
            for (variable, value) in routine.variables.iter().zip(&mut self.variables) {
                *value = variable.place.initial();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_long_texts_and_large_lists_is_given_back() {
        let mut arena = Arena::default();
        for length in [10, 2 * KEPT] {
            arena.keep(&vec![b'x'; length]);
            arena.clear();
            assert!(arena.capacity() <= KEPT, "{length}: {}", arena.capacity());
        }
        let (mut small, mut large) = (Vec::<u64>::with_capacity(8), Vec::<u64>::with_capacity(KEPT));
        shrink(&mut small);
        shrink(&mut large);
        assert_eq!((small.capacity(), large.capacity()), (8, 0));
    }
}
