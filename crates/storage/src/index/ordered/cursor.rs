//! Walking through the leaves.

use super::super::pages::NONE;
use super::OrderedIndex;

/// A place between two entries of a tree that it borrows.
#[derive(Clone)]
pub struct Cursor<'a> {
    tree: &'a OrderedIndex,
    /// `NONE` only in an empty tree.
    leaf: u32,
    /// `0..=len` of the leaf.
    at: usize,
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(super) fn at(tree: &'a OrderedIndex, (leaf, at): (u32, usize)) -> Self {
        let mut cursor = Self { tree, leaf, at };
        cursor.settle();
        cursor
    }

    /// From the end of a leaf to the beginning of the next, if there is one, so that equal places
    /// have equal fields.
    #[inline]
    fn settle(&mut self) {
        if self.leaf != NONE {
            let leaf = self.tree.leaves.get(self.leaf);
            debug_assert!(leaf.len() > 0 && self.at <= leaf.len(), "a cursor stands in its leaf (O-3)");
            if self.at == leaf.len() && leaf.next != NONE {
                (self.leaf, self.at) = (leaf.next, 0);
            }
        }
    }

    /// The entry after the cursor.
    #[inline]
    pub fn peek(&self) -> Option<(u128, u64)> {
        if self.leaf == NONE {
            return None;
        }
        let leaf = self.tree.leaves.get(self.leaf);
        (self.at < leaf.len()).then(|| leaf.entry(self.at))
    }

    /// Steps over the entry after the cursor and returns it.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "a cursor moves both ways, an iterator does not")]
    pub fn next(&mut self) -> Option<(u128, u64)> {
        let entry = self.peek()?;
        self.at += 1;
        self.settle();
        Some(entry)
    }

    /// Steps back over the entry before the cursor and returns it.
    #[inline]
    pub fn prev(&mut self) -> Option<(u128, u64)> {
        if self.leaf == NONE {
            return None;
        }
        if self.at == 0 {
            let prev = self.tree.leaves.get(self.leaf).prev;
            if prev == NONE {
                return None;
            }
            (self.leaf, self.at) = (prev, self.tree.leaves.get(prev).len());
        }
        debug_assert!(self.at > 0, "no leaf is empty (O-3)");
        self.at -= 1;
        Some(self.tree.leaves.get(self.leaf).entry(self.at))
    }

    #[inline]
    fn is_at(&self, other: &Self) -> bool {
        self.leaf == other.leaf && self.at == other.at
    }
}

/// Entries between two places of a tree, from either end.
#[derive(Clone)]
pub struct Range<'a> {
    front: Cursor<'a>,
    back: Cursor<'a>,
}

impl<'a> Range<'a> {
    #[inline]
    pub(super) fn empty(tree: &'a OrderedIndex) -> Self {
        let place = Cursor { tree, leaf: NONE, at: 0 };
        Self { front: place.clone(), back: place }
    }

    /// `front` is not after `back`.
    #[inline]
    pub(super) fn between(tree: &'a OrderedIndex, front: (u32, usize), back: (u32, usize)) -> Self {
        Self::between_cursors(Cursor::at(tree, front), Cursor::at(tree, back))
    }

    /// `front` is not after `back`.
    #[inline]
    pub(super) fn between_cursors(front: Cursor<'a>, back: Cursor<'a>) -> Self {
        Self { front, back }
    }
}

impl Iterator for Range<'_> {
    type Item = (u128, u64);

    #[inline]
    fn next(&mut self) -> Option<(u128, u64)> {
        if self.front.is_at(&self.back) { None } else { self.front.next() }
    }
}

impl DoubleEndedIterator for Range<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<(u128, u64)> {
        if self.front.is_at(&self.back) { None } else { self.back.prev() }
    }
}

impl std::iter::FusedIterator for Range<'_> {}
