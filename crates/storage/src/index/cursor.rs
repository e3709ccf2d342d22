//! Walking through the leaves of a tree, whatever they hold.

use super::pages::NONE;

/// Leaves that are linked in the order of their entries. None is empty.
pub trait Chain {
    /// What a leaf holds.
    type Entry;

    /// How many entries a leaf has.
    fn leaf_len(&self, leaf: u32) -> usize;

    /// The leaves before and behind a leaf; all ones if there is none.
    fn neighbours(&self, leaf: u32) -> (u32, u32);

    /// An entry of a leaf.
    fn entry(&self, leaf: u32, at: usize) -> Self::Entry;
}

/// A place between two entries of a tree that it borrows.
pub struct Cursor<'a, T> {
    tree: &'a T,
    /// `NONE` only in an empty tree.
    leaf: u32,
    /// `0..=len` of the leaf.
    at: usize,
}

impl<T> Clone for Cursor<'_, T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, T: Chain> Cursor<'a, T> {
    #[inline]
    pub(super) fn at(tree: &'a T, (leaf, at): (u32, usize)) -> Self {
        let mut cursor = Self { tree, leaf, at };
        cursor.settle();
        cursor
    }

    /// From the end of a leaf to the beginning of the next, if there is one, so that equal places
    /// have equal fields.
    #[inline]
    fn settle(&mut self) {
        if self.leaf != NONE {
            let len = self.tree.leaf_len(self.leaf);
            debug_assert!(len > 0 && self.at <= len, "a cursor stands in its leaf (O-3)");
            if self.at == len {
                let (_, next) = self.tree.neighbours(self.leaf);
                if next != NONE {
                    (self.leaf, self.at) = (next, 0);
                }
            }
        }
    }

    /// The entry after the cursor.
    #[inline]
    pub fn peek(&self) -> Option<T::Entry> {
        if self.leaf == NONE {
            return None;
        }
        (self.at < self.tree.leaf_len(self.leaf)).then(|| self.tree.entry(self.leaf, self.at))
    }

    /// Steps over the entry after the cursor and returns it.
    #[inline]
    pub fn next(&mut self) -> Option<T::Entry> {
        let entry = self.peek()?;
        self.at += 1;
        self.settle();
        Some(entry)
    }

    /// Steps back over the entry before the cursor and returns it.
    #[inline]
    pub fn prev(&mut self) -> Option<T::Entry> {
        if self.leaf == NONE {
            return None;
        }
        if self.at == 0 {
            let (prev, _) = self.tree.neighbours(self.leaf);
            if prev == NONE {
                return None;
            }
            (self.leaf, self.at) = (prev, self.tree.leaf_len(prev));
        }
        debug_assert!(self.at > 0, "no leaf is empty (O-3)");
        self.at -= 1;
        Some(self.tree.entry(self.leaf, self.at))
    }

    #[inline]
    fn is_at(&self, other: &Self) -> bool {
        self.leaf == other.leaf && self.at == other.at
    }
}

/// Entries between two places of a tree, from either end.
pub struct Range<'a, T> {
    front: Cursor<'a, T>,
    back: Cursor<'a, T>,
}

impl<T> Clone for Range<'_, T> {
    fn clone(&self) -> Self {
        Self { front: self.front.clone(), back: self.back.clone() }
    }
}

impl<'a, T: Chain> Range<'a, T> {
    #[inline]
    pub(super) fn empty(tree: &'a T) -> Self {
        let place = Cursor { tree, leaf: NONE, at: 0 };
        Self { front: place.clone(), back: place }
    }

    /// `front` is not after `back`.
    #[inline]
    pub(super) fn between(tree: &'a T, front: (u32, usize), back: (u32, usize)) -> Self {
        Self::between_cursors(Cursor::at(tree, front), Cursor::at(tree, back))
    }

    /// `front` is not after `back`.
    #[inline]
    pub(super) fn between_cursors(front: Cursor<'a, T>, back: Cursor<'a, T>) -> Self {
        Self { front, back }
    }
}

impl<T: Chain> Iterator for Range<'_, T> {
    type Item = T::Entry;

    #[inline]
    fn next(&mut self) -> Option<T::Entry> {
        if self.front.is_at(&self.back) { None } else { self.front.next() }
    }
}

impl<T: Chain> DoubleEndedIterator for Range<'_, T> {
    #[inline]
    fn next_back(&mut self) -> Option<T::Entry> {
        if self.front.is_at(&self.back) { None } else { self.back.prev() }
    }
}

impl<T: Chain> std::iter::FusedIterator for Range<'_, T> {}
