//! The levels of a B+tree above its leaves, whatever those hold.
//!
//! Responsible for: separators, the way from the root to a leaf, growing and shrinking. Not responsible for: leaves,
//! which are numbers here; what a key means: separators with equal prefixes are ordered by the caller's `tie(tid)`, the
//! order of the probe relative to the entry.
//!
//! Invariants:
//! - V-1 A separator is exactly the first entry of the subtree to its right, its prefix and its TID; so every TID here is
//!   of an entry that is there. Whoever changes the first entry of a leaf says so ([`Levels::set_first`]).
//! - V-2 Nothing changes before all nodes that a change may need are there ([`Levels::reserve_for_split`]).

use std::cmp::Ordering;

use super::pages::{NONE, Node, Pages};
use super::search::{CAP, Keys, among_equals};
use crate::pool::{BlockPool, OutOfMemory};

/// A root with 65 children each of them thin: 65^16 is more than memory holds.
const MAX_HEIGHT: usize = 16;
/// How many nodes of a level an estimate looks at.
const COUNTED_NODES: usize = 48;
/// A node with so few entries looks for a neighbour to merge with.
const MERGE_AT: usize = CAP / 4;
/// Two nodes merge when they have at most so many entries together: room is left for inserts.
const MERGED_MAX: usize = CAP * 3 / 4;
/// `Inner::run` when the last change was no insert.
const NO_RUN: u16 = u16::MAX;

/// The way from the root to a leaf: the inner nodes and the position of the child taken.
pub(super) type Path = [(u32, u32); MAX_HEIGHT];

/// Children and, between each two, the first entry under the right one. 1856 bytes.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Inner {
    keys: Keys,
    tids: [u64; CAP],
    children: [u32; CAP + 1],
    /// Separators; one less than children.
    len: u16,
    /// The position of the last inserted child.
    run: u16,
}

impl Node for Inner {
    const EMPTY: Self =
        Self { keys: Keys::FILLED, tids: [0; CAP], children: [NONE; CAP + 1], len: 0, run: NO_RUN };
}

impl Inner {
    #[inline]
    fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.len() == CAP
    }

    /// The position of the child where the probe belongs: the number of separators not above it.
    #[inline]
    fn search(&self, prefix: u128, tie: &mut impl FnMut(u64) -> Ordering) -> usize {
        let at = self.keys.up_to(self.len(), prefix);
        if at == 0 || self.keys.get(at - 1) != prefix {
            return at;
        }
        match among_equals(&self.tids, self.keys.below(prefix), at, tie) {
            Ok(equal) => equal + 1,
            Err(at) => at,
        }
    }

    /// Puts a separator at `at` and the child to its right; there is room.
    fn insert(&mut self, at: usize, separator: (u128, u64), child: u32) {
        let len = self.len();
        assert!(at <= len && len < CAP, "there is room for one more");
        debug_assert!(at == 0 || self.keys.get(at - 1) <= separator.0, "entries ascend (O-1)");
        debug_assert!(at == len || separator.0 <= self.keys.get(at), "entries ascend (O-1)");
        self.keys.insert(at, len, separator.0);
        self.tids.copy_within(at..len, at + 1);
        self.children.copy_within(at + 1..len + 1, at + 2);
        self.tids[at] = separator.1;
        self.children[at + 1] = child;
        self.len += 1;
        self.run = at as u16 + 1;
    }

    /// Removes the child at `at` and the separator to its left, or to its right for the first.
    /// Not the only child. Returns the separator.
    fn remove(&mut self, at: usize) -> (u128, u64) {
        let len = self.len();
        assert!(len > 0 && at <= len, "a node keeps a child");
        let separator = at.saturating_sub(1);
        let removed = (self.keys.get(separator), self.tids[separator]);
        self.keys.remove(separator, len);
        self.tids.copy_within(separator + 1..len, separator);
        self.children.copy_within(at + 1..len + 1, at);
        self.children[len] = NONE;
        self.len -= 1;
        self.run = NO_RUN;
        removed
    }

    /// Keeps `keep` separators, moves what is right of the next one to the empty node `right`, and
    /// returns that one.
    fn split_off(&mut self, keep: usize, right: &mut Inner) -> (u128, u64) {
        let len = self.len();
        assert!(keep < len, "the entry between the two is there");
        debug_assert_eq!(right.len(), 0, "what is split off goes to an empty node");
        let middle = (self.keys.get(keep), self.tids[keep]);
        let moved = len - keep - 1;
        right.keys.copy_from(0, &self.keys, keep + 1, moved);
        right.tids[..moved].copy_from_slice(&self.tids[keep + 1..len]);
        right.children[..=moved].copy_from_slice(&self.children[keep + 1..=len]);
        right.len = moved as u16;
        self.keys.fill_from(keep);
        self.children[keep + 1..].fill(NONE);
        self.len = keep as u16;
        self.run = NO_RUN;
        middle
    }

    /// Splits this full node and puts `child` right of the child at `at`. Returns the separator
    /// between this node and `right`.
    fn split_insert(
        &mut self,
        at: usize,
        separator: (u128, u64),
        child: u32,
        right: &mut Inner,
    ) -> (u128, u64) {
        let ascending = self.run as usize == at;
        if ascending && at == CAP {
            right.children[0] = child;
            right.run = 0;
            return separator;
        }
        let keep = if ascending { at } else { CAP / 2 };
        let middle = self.split_off(keep, right);
        if at <= keep {
            self.insert(at, separator, child);
        } else {
            right.insert(at - keep - 1, separator, child);
        }
        middle
    }

    /// Takes over all of the node to the right, from which `separator` parts it.
    fn absorb(&mut self, separator: (u128, u64), right: &Inner) {
        let (len, more) = (self.len(), right.len());
        assert!(len + 1 + more <= CAP, "two nodes that are merged fit one");
        self.keys.set(len, separator.0);
        self.tids[len] = separator.1;
        self.keys.copy_from(len + 1, &right.keys, 0, more);
        self.tids[len + 1..=len + more].copy_from_slice(&right.tids[..more]);
        self.children[len + 1..=len + 1 + more].copy_from_slice(&right.children[..=more]);
        self.len += right.len + 1;
        self.run = NO_RUN;
    }
}

/// The levels. See the module.
pub(super) struct Levels {
    /// A leaf, if there are no inner nodes; `NONE` of an empty tree.
    root: u32,
    /// Inner nodes between the root and a leaf, the root included.
    height: u32,
    inners: Pages<Inner>,
}

impl Levels {
    /// Of an empty tree.
    pub(super) fn new(pool: &BlockPool) -> Self {
        Self { root: NONE, height: 0, inners: Pages::new(pool.clone()) }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.inners.memory_bytes()
    }

    pub(super) fn clear(&mut self) {
        self.inners.clear();
        (self.root, self.height) = (NONE, 0);
    }

    /// Whether there is no leaf.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.root == NONE
    }

    #[cfg(test)]
    pub(super) fn height(&self) -> u32 {
        self.height
    }

    #[cfg(test)]
    pub(super) fn inner_nodes(&self) -> usize {
        self.inners.used()
    }

    /// Begins with a leaf; there was none.
    pub(super) fn begin(&mut self, leaf: u32) {
        debug_assert!(self.is_empty() && self.height == 0, "a tree begins once");
        self.root = leaf;
    }

    /// The way to a leaf before it is gone.
    #[inline]
    pub(super) fn no_path() -> Path {
        [(NONE, 0); MAX_HEIGHT]
    }

    /// The leaf where the probe belongs; `None` in an empty tree.
    #[inline]
    pub(super) fn leaf_of(&self, prefix: u128, tie: &mut impl FnMut(u64) -> Ordering) -> Option<u32> {
        if self.root == NONE {
            return None;
        }
        let mut id = self.root;
        for _ in 0..self.height {
            let inner = self.inners.get(id);
            id = inner.children[inner.search(prefix, tie)];
        }
        Some(id)
    }

    /// The leaf where the probe belongs, the way there, and an exclusive upper bound of prefixes
    /// that can only be there. The tree is not empty.
    #[inline]
    pub(super) fn descend(
        &self,
        prefix: u128,
        tie: &mut impl FnMut(u64) -> Ordering,
        path: &mut Path,
    ) -> (u32, u128) {
        debug_assert_ne!(self.root, NONE, "only a tree with nodes is descended");
        let mut id = self.root;
        let mut high = u128::MAX;
        for step in &mut path[..self.height as usize] {
            let inner = self.inners.get(id);
            let at = inner.search(prefix, tie);
            *step = (id, at as u32);
            if at < inner.len() {
                high = inner.keys.get(at);
            }
            id = inner.children[at];
        }
        (id, high)
    }

    /// The way to the last leaf, which it gives. The tree is not empty.
    pub(super) fn descend_to_last(&self, path: &mut Path) -> u32 {
        debug_assert_ne!(self.root, NONE, "only a tree with nodes is descended");
        let mut id = self.root;
        for step in &mut path[..self.height as usize] {
            let inner = self.inners.get(id);
            *step = (id, inner.len() as u32);
            id = inner.children[inner.len()];
        }
        id
    }

    /// The inner nodes that a split of the leaf at the end of `path` may need (V-2).
    pub(super) fn reserve_for_split(&mut self, path: &Path) -> Result<(), OutOfMemory> {
        let height = self.height as usize;
        let full = path[..height].iter().rev().take_while(|step| self.inners.get(step.0).is_full()).count();
        let new_root = (full == height) as usize;
        assert!(height + new_root <= MAX_HEIGHT, "the tree is too high");
        self.inners.reserve(full + new_root)
    }

    /// Enters a new child, right of the one that `path` leads to, in the nodes above.
    pub(super) fn insert_child(&mut self, path: &Path, mut separator: (u128, u64), mut child: u32) {
        for &(id, at) in path[..self.height as usize].iter().rev() {
            let at = at as usize;
            let inner = self.inners.get_mut(id);
            debug_assert!(at <= inner.len(), "the path leads to a child");
            if !inner.is_full() {
                inner.insert(at, separator, child);
                return;
            }
            let right_id = self.inners.take();
            let (inner, right) = self.inners.get_two_mut(id, right_id);
            separator = inner.split_insert(at, separator, child, right);
            child = right_id;
        }
        assert!((self.height as usize) < MAX_HEIGHT, "the tree is too high");
        let root = self.inners.take();
        let inner = self.inners.get_mut(root);
        inner.children[0] = self.root;
        inner.insert(0, separator, child);
        self.root = root;
        self.height += 1;
    }

    /// The leaf that `path` leads to has another first entry (V-1).
    pub(super) fn set_first(&mut self, path: &Path, first: (u128, u64)) {
        self.set_separator(&path[..self.height as usize], first);
    }

    /// Sets the separator left of the subtree that `steps` lead to.
    fn set_separator(&mut self, steps: &[(u32, u32)], first: (u128, u64)) {
        if let Some(&(id, at)) = steps.iter().rev().find(|step| step.1 > 0) {
            let inner = self.inners.get_mut(id);
            inner.keys.set(at as usize - 1, first.0);
            inner.tids[at as usize - 1] = first.1;
        }
    }

    /// Removes the leaf that `path` leads to, and the nodes above that have no other.
    pub(super) fn remove_child(&mut self, path: &Path) {
        let mut level = self.height as usize;
        loop {
            if level == 0 {
                self.root = NONE;
                self.height = 0;
                return;
            }
            level -= 1;
            let (id, at) = path[level];
            let inner = self.inners.get_mut(id);
            if inner.len() > 0 {
                let first = inner.remove(at as usize);
                if at == 0 {
                    self.set_separator(&path[..level], first);
                }
                break;
            }
            self.inners.free(id);
        }
        self.merge_inners(path, level);
        self.lower_root();
    }

    /// The two leaves, one that `path` leads to and a neighbour of the same parent, that may be merged: together they
    /// have at most `most` entries. Also the position of the left one.
    pub(super) fn mergeable_leaves(
        &self,
        path: &Path,
        id: u32,
        len: impl Fn(u32) -> usize,
        most: usize,
    ) -> Option<(usize, u32, u32)> {
        let (parent, at) = path[(self.height as usize).checked_sub(1)?];
        let (inner, at) = (self.inners.get(parent), at as usize);
        debug_assert_eq!(inner.children[at], id, "the path leads to the leaf");
        let left = mergeable(inner.len(), at, |at| len(inner.children[at]), most)?;
        Some((left, inner.children[left], inner.children[left + 1]))
    }

    /// The leaf right of that at position `left` has gone into it; `path` led to one of them.
    pub(super) fn remove_merged(&mut self, path: &Path, left: usize) {
        let level = self.height as usize - 1;
        self.inners.get_mut(path[level].0).remove(left + 1);
        self.merge_inners(path, level);
        self.lower_root();
    }

    /// Merges the node of `path` at `level`, and those above it, with neighbours while they are thin.
    fn merge_inners(&mut self, path: &Path, level: usize) {
        for level in (1..=level).rev() {
            if self.inners.get(path[level].0).len() > MERGE_AT {
                return;
            }
            let (parent, at) = (path[level - 1].0, path[level - 1].1 as usize);
            let above = self.inners.get(parent);
            debug_assert_eq!(above.children[at], path[level].0, "the path leads to the node");
            let len = |at: usize| self.inners.get(above.children[at]).len();
            let Some(left_at) = mergeable(above.len(), at, len, MERGED_MAX - 1) else { return };
            let (left_id, right_id) = (above.children[left_at], above.children[left_at + 1]);
            let separator = self.inners.get_mut(parent).remove(left_at + 1);
            let (left, right) = self.inners.get_two_mut(left_id, right_id);
            left.absorb(separator, right);
            self.inners.free(right_id);
        }
    }

    /// Drops roots that have one child.
    fn lower_root(&mut self) {
        while self.height > 0 && self.inners.get(self.root).len() == 0 {
            let child = self.inners.get(self.root).children[0];
            debug_assert_ne!(child, NONE, "a node has a child");
            self.inners.free(self.root);
            self.root = child;
            self.height -= 1;
        }
    }

    /// Leaves between those of two paths, these included, spread evenly, and about how many there are. Each level is
    /// counted by at most [`COUNTED_NODES`] of its nodes.
    pub(super) fn spread_leaves(&self, from: &Path, to: &Path) -> (Vec<u32>, f64) {
        let (mut seen, mut nodes) = (vec![self.root], 1.0);
        for (from, to) in from.iter().zip(to).take(self.height as usize) {
            let inner = |id: &u32| self.inners.get(*id);
            let sizes: Vec<usize> = seen.iter().map(|id| inner(id).len() + 1).collect();
            let (from, to) = (from.1 as usize, to.1 as usize + 1);
            nodes = entries_between(&sizes, nodes, from, to);
            let after = sizes.last().map_or(0, |size| size - to);
            let below = seen.iter().flat_map(|id| &inner(id).children[..=inner(id).len()]).copied();
            let below: Vec<u32> = below.collect();
            seen = spread(&below[from..below.len() - after]);
        }
        (seen, nodes)
    }

    /// Panics if an invariant does not hold. Gives the leaves in order; `first` gives the first entry of one.
    pub(super) fn check(&self, first: impl Fn(u32) -> (u128, u64)) -> Vec<u32> {
        assert!(self.height as usize <= MAX_HEIGHT);
        let (mut leaves, mut inners) = (Vec::new(), 0);
        if self.root != NONE {
            self.check_node(self.root, self.height, &first, &mut leaves, &mut inners);
        }
        assert_eq!(self.inners.used(), inners, "inner nodes in use are nodes of the tree");
        leaves
    }

    /// Collects the leaves under a node, in order, and returns the node's first entry.
    fn check_node(
        &self,
        id: u32,
        height: u32,
        first_of: &impl Fn(u32) -> (u128, u64),
        leaves: &mut Vec<u32>,
        inners: &mut usize,
    ) -> (u128, u64) {
        if height == 0 {
            leaves.push(id);
            return first_of(id);
        }
        *inners += 1;
        let inner = self.inners.get(id);
        let len = inner.len();
        assert!(len <= CAP && inner.keys.is_filled_from(len), "past its length a node is filled with ones");
        let first = self.check_node(inner.children[0], height - 1, first_of, leaves, inners);
        for at in 0..len {
            let under = self.check_node(inner.children[at + 1], height - 1, first_of, leaves, inners);
            assert_eq!((inner.keys.get(at), inner.tids[at]), under, "V-1");
        }
        first
    }
}

/// The left one of two neighbours that may merge: the child at `at`, of children `0..=last`, and
/// the one after or before it. Together they have at most `most` entries.
fn mergeable(last: usize, at: usize, len: impl Fn(usize) -> usize, most: usize) -> Option<usize> {
    let fits = |left: usize| len(left) + len(left + 1) <= most;
    if at < last && fits(at) {
        return Some(at);
    }
    (at > 0 && fits(at - 1)).then(|| at - 1)
}

/// About how many entries there are from place `from` in the first of a number of nodes to before place `to` in the
/// last, of which these have the sizes of some: the first, the last and others between.
pub(super) fn entries_between(sizes: &[usize], nodes: f64, from: usize, to: usize) -> f64 {
    let [first, middle @ .., _] = sizes else { return to.saturating_sub(from) as f64 };
    let average = middle.iter().sum::<usize>() as f64 / middle.len().max(1) as f64;
    (first - from + to) as f64 + (nodes - 2.0) * average
}

/// [`COUNTED_NODES`] of these nodes, or all if they are no more: the first, the last and others evenly between.
fn spread(nodes: &[u32]) -> Vec<u32> {
    let last = nodes.len().saturating_sub(1);
    let step = (last as f64 / (COUNTED_NODES - 1) as f64).max(1.0);
    let count = COUNTED_NODES.min(nodes.len());
    (0..count).map(|n| nodes[((n as f64 * step).round() as usize).min(last)]).collect()
}
