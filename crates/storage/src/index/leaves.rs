//! The leaves of a tree as a list: linked in the order of their entries, whatever these are.
//!
//! Both trees keep: each leaf but the first is the one behind the one before it, and the other way round; the ends are
//! those of the list. Links are checked where they are changed.

use super::pages::{NONE, Node, Pages};

/// The leaves before and behind one.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Links {
    pub(super) prev: u32,
    pub(super) next: u32,
}

impl Links {
    pub(super) const NONE: Self = Self { prev: NONE, next: NONE };
}

/// A leaf that is linked.
pub(super) trait Linked: Node {
    fn links(&self) -> Links;
    fn links_mut(&mut self) -> &mut Links;
}

/// The first leaf and the last; `NONE` in an empty tree.
pub(super) struct LeafList {
    pub(super) first: u32,
    pub(super) last: u32,
}

impl LeafList {
    pub(super) const EMPTY: Self = Self { first: NONE, last: NONE };

    /// Makes a leaf the only one.
    pub(super) fn begin(&mut self, id: u32) {
        (self.first, self.last) = (id, id);
    }

    /// Links a new leaf behind another one.
    #[inline]
    pub(super) fn link<L: Linked>(&mut self, leaves: &mut Pages<L>, id: u32, new: u32) {
        let next = std::mem::replace(&mut leaves.get_mut(id).links_mut().next, new);
        *leaves.get_mut(new).links_mut() = Links { prev: id, next };
        match next {
            NONE => self.last = new,
            next => {
                let prev = std::mem::replace(&mut leaves.get_mut(next).links_mut().prev, new);
                debug_assert_eq!(prev, id, "leaves are linked both ways");
            }
        }
    }

    /// Takes a leaf out, and frees it.
    pub(super) fn unlink<L: Linked>(&mut self, leaves: &mut Pages<L>, id: u32) {
        let Links { prev, next } = leaves.get(id).links();
        let to_next = match prev {
            NONE => &mut self.first,
            prev => &mut leaves.get_mut(prev).links_mut().next,
        };
        let was = std::mem::replace(to_next, next);
        debug_assert_eq!(was, id, "a leaf is behind the one before it, or the first");
        let to_prev = match next {
            NONE => &mut self.last,
            next => &mut leaves.get_mut(next).links_mut().prev,
        };
        let was = std::mem::replace(to_prev, prev);
        debug_assert_eq!(was, id, "a leaf is before the one behind it, or the last");
        leaves.free(id);
    }
}

/// Where to cut a full leaf of `full` entries when one comes in at `at`: where a run goes on, so that it fills leaves.
/// `run` is where the entry behind the one that came last would be.
pub(super) fn cut(links: Links, run: u16, full: usize, at: usize) -> usize {
    let run = usize::from(run);
    let ascending = run == at || (at == full && links.next == NONE);
    // Descending runs keep what is below them on the left; only while that is little.
    let descending = (run == at + 1 && at <= full / 2) || (at == 0 && links.prev == NONE);
    if ascending || descending { at } else { full / 2 }
}
