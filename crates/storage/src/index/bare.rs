//! Index of TIDs alone: a B+tree with 8 bytes an entry, ordered by what the rows say.
//!
//! Responsible for: what the ordered index does, in a third of its memory. Not responsible for: what a key means. Leaves
//! hold TIDs and nothing of keys: whatever a search wants to know of an entry it asks of the row ([`StoredKeys`]).
//! Separators, one for each leaf, have the first 16 bytes of a key beside the TID, a quarter of a byte for each entry:
//! so the way to a leaf looks at no row whose key differs there from the probe's, and a search at seven rows or so.
//!
//! Paper: Funke, Kemper and Neumann, *Compacting Transactional Data*, VLDB 2012, §3.5 and Figure 7. Theirs is a red-black
//! tree of 24 bytes an entry; they say that a B-tree would take little more than 8, as this one does. They compare codes
//! of a dictionary, we the rows themselves, wherever those lie.
//!
//! The rows of entries are read at any time, so they must be there to be read:
//! - B-1 As long as an entry stands here, its row can be read, and has the key under which the entry was put in. It need
//!   not live. `table` keeps this, as follows, and indexes of long keys have always relied on it:
//!     - An update takes the row's entry out before it writes the first column of the key, and puts it in after the
//!       last; undo goes the same way back. What is written in between is the key of no entry.
//!     - A row that dies leaves before its transaction ends, and only then its slot and its texts are given up. A ghost
//!       stays, and keeps its slot; string heaps are not rewritten while there is one. A rewritten heap has the same
//!       texts.
//!     - A row that moves is at both places while its entry follows; a chunk that is frozen has the same values.
//!     - New blocks that take the place of old ones come with new indexes of their columns.
//!     - An index that is made aside asks for keys where it has read them: in a snapshot, or in what it has noted since.
//!
//! Invariants (`check`):
//! - B-2 Entries are strictly ascending within and across leaves, by key and, if the index is not unique, by TID; leaves
//!   are linked in that order.
//! - B-3 A separator is exactly the first entry of the subtree to its right (V-1 of `levels`), so deletion mends it: no
//!   comparison meets the TID of an entry that is gone.
//! - B-4 No leaf is empty.
//! - B-5 `insert`, `append` and `retarget` change nothing unless all nodes they may need are there.

use std::cmp::Ordering;

use super::StoredKeys;
use super::cursor::{Chain, Cursor, Range};
use super::leaves::LeafList;
use super::levels::{Levels, Path, entries_between};
use super::pages::{NONE, Pages};
use crate::key::KeyRef;
use crate::pool::{BlockPool, OutOfMemory};

mod change;
mod node;
#[cfg(test)]
mod tests;

use node::Leaf;

/// The index. See the module.
pub struct BareIndex {
    levels: Levels,
    leaf_list: LeafList,
    len: usize,
    unique: bool,
    leaves: Pages<Leaf>,
}

/// A place in the order of entries.
#[derive(Clone, Copy)]
struct Probe<'k> {
    what: What<'k>,
    then: Then,
}

/// Of keys with which a probe compares.
#[derive(Clone, Copy)]
enum What<'k> {
    Key(KeyRef<'k>),
    /// The first 16 bytes alone.
    Prefix(u128),
}

/// Where the place is among entries that compare equal.
#[derive(Clone, Copy)]
enum Then {
    /// At the only one.
    Equal,
    /// Before all.
    Before,
    /// Behind all.
    Behind,
    /// At the one with this TID.
    Tid(u64),
}

impl Probe<'_> {
    /// The first 16 bytes.
    #[inline]
    fn prefix(&self) -> u128 {
        match self.what {
            What::Key(key) => key.prefix,
            What::Prefix(prefix) => prefix,
        }
    }

    /// The order of the place relative to an entry.
    #[inline]
    fn order(&self, tid: u64, stored: &mut impl StoredKeys) -> Ordering {
        let keys = match self.what {
            What::Key(key) => stored.compare(key, tid),
            What::Prefix(prefix) => prefix.cmp(&stored.prefix(tid)),
        };
        keys.then_with(|| self.among_equals(tid))
    }

    /// The order of the place relative to an entry with the same first 16 bytes.
    #[inline]
    fn tie(&self, tid: u64, stored: &mut impl StoredKeys) -> Ordering {
        let keys = match self.what {
            What::Key(key) => stored.tie(key, tid),
            What::Prefix(_) => Ordering::Equal,
        };
        keys.then_with(|| self.among_equals(tid))
    }

    #[inline]
    fn among_equals(&self, tid: u64) -> Ordering {
        match self.then {
            Then::Equal => Ordering::Equal,
            Then::Before => Ordering::Less,
            Then::Behind => Ordering::Greater,
            Then::Tid(own) => own.cmp(&tid),
        }
    }
}

impl Chain for BareIndex {
    type Entry = u64;

    #[inline]
    fn leaf_len(&self, leaf: u32) -> usize {
        self.leaves.get(leaf).len()
    }

    #[inline]
    fn neighbours(&self, leaf: u32) -> (u32, u32) {
        let leaf = self.leaves.get(leaf);
        (leaf.links.prev, leaf.links.next)
    }

    #[inline]
    fn entry(&self, leaf: u32, at: usize) -> u64 {
        self.leaves.get(leaf).tids()[at]
    }
}

impl BareIndex {
    /// An empty index; takes no memory before the first insert.
    pub fn new(unique: bool, pool: &BlockPool) -> Self {
        let (levels, leaves) = (Levels::new(pool), Pages::new(pool.clone()));
        Self { levels, leaf_list: LeafList::EMPTY, len: 0, unique, leaves }
    }

    /// Entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes taken from the pool and the heap.
    pub fn memory_bytes(&self) -> usize {
        self.leaves.memory_bytes() + self.levels.memory_bytes()
    }

    /// Removes everything and gives the memory back.
    pub fn clear(&mut self) {
        self.leaves.clear();
        self.levels.clear();
        (self.leaf_list, self.len) = (LeafList::EMPTY, 0);
    }

    /// The TID of a key; of several, the least.
    pub fn find(&self, key: KeyRef<'_>, stored: &mut impl StoredKeys) -> Option<u64> {
        if self.unique {
            let probe = Probe { what: What::Key(key), then: Then::Equal };
            let leaf = self.leaf_of(&probe, stored)?;
            let leaf = self.leaves.get(leaf);
            return leaf.search(&probe, stored).ok().map(|at| leaf.tids()[at]);
        }
        let tid = Cursor::at(self, self.place(What::Key(key), Then::Before, stored)).peek()?;
        stored.compare(key, tid).is_eq().then_some(tid)
    }

    /// The TIDs of a key, ascending.
    pub fn tids(&self, key: KeyRef<'_>, stored: &mut impl StoredKeys) -> Range<'_, Self> {
        self.between(What::Key(key), What::Key(key), stored)
    }

    /// The TIDs of the entries whose keys' first 16 bytes are in `low..=high`, in order.
    pub fn range(&self, low: u128, high: u128, stored: &mut impl StoredKeys) -> Range<'_, Self> {
        match low <= high {
            true => self.between(What::Prefix(low), What::Prefix(high), stored),
            false => Range::empty(self),
        }
    }

    /// About how many entries have keys whose first 16 bytes are in `low..=high`; see
    /// [`OrderedIndex::estimate`](super::OrderedIndex::estimate).
    pub fn estimate(&self, low: u128, high: u128, stored: &mut impl StoredKeys) -> usize {
        if self.is_empty() || low > high {
            return 0;
        }
        if (low, high) == (0, u128::MAX) {
            return self.len;
        }
        let (mut ways, mut places) = ([Levels::no_path(); 2], [0; 2]);
        for (n, (prefix, then)) in [(low, Then::Before), (high, Then::Behind)].into_iter().enumerate() {
            let probe = Probe { what: What::Prefix(prefix), then };
            let id = self.descend(&probe, stored, &mut ways[n]);
            let (Ok(at) | Err(at)) = self.leaves.get(id).search(&probe, stored);
            places[n] = at;
        }
        let (seen, nodes) = self.levels.spread_leaves(&ways[0], &ways[1]);
        let sizes: Vec<usize> = seen.iter().map(|id| self.leaves.get(*id).len()).collect();
        (entries_between(&sizes, nodes, places[0], places[1]) as usize).min(self.len)
    }

    /// The TID of the least entry whose key's first 16 bytes are in `low..=high`.
    pub fn first_in(&self, low: u128, high: u128, stored: &mut impl StoredKeys) -> Option<u64> {
        let tid = Cursor::at(self, self.place(What::Prefix(low), Then::Before, stored)).peek()?;
        (stored.prefix(tid) <= high).then_some(tid)
    }

    /// The TID of the greatest entry whose key's first 16 bytes are in `low..=high`.
    pub fn last_in(&self, low: u128, high: u128, stored: &mut impl StoredKeys) -> Option<u64> {
        let tid = Cursor::at(self, self.place(What::Prefix(high), Then::Behind, stored)).prev()?;
        (stored.prefix(tid) >= low).then_some(tid)
    }

    /// The TID of the greatest entry.
    #[inline]
    pub fn last(&self) -> Option<u64> {
        (self.leaf_list.last != NONE)
            .then(|| self.leaves.get(self.leaf_list.last))
            .and_then(|leaf| leaf.tids().last().copied())
    }

    /// All TIDs in order.
    pub fn iter(&self) -> Range<'_, Self> {
        let end = if self.leaf_list.last == NONE { 0 } else { self.leaves.get(self.leaf_list.last).len() };
        Range::between(self, (self.leaf_list.first, 0), (self.leaf_list.last, end))
    }

    /// The entries from before the first that is not below `low` to behind the last that is not above `high`.
    fn between(&self, low: What<'_>, high: What<'_>, stored: &mut impl StoredKeys) -> Range<'_, Self> {
        let front = self.place(low, Then::Before, stored);
        let high = Probe { what: high, then: Then::Behind };
        let back = match self.place_nearby(front, &high, stored) {
            Some(back) => back,
            None => self.place(high.what, high.then, stored),
        };
        Range::between(self, front, back)
    }

    /// A place between two entries: leaf and position.
    fn place(&self, what: What<'_>, then: Then, stored: &mut impl StoredKeys) -> (u32, usize) {
        // No row need be looked at for the ends.
        match (what, then) {
            (What::Prefix(0), Then::Before) => return (self.leaf_list.first, 0),
            (What::Prefix(u128::MAX), Then::Behind) if self.leaf_list.last != NONE => {
                return (self.leaf_list.last, self.leaves.get(self.leaf_list.last).len());
            }
            _ => {}
        }
        let probe = Probe { what, then };
        let Some(leaf) = self.leaf_of(&probe, stored) else { return (NONE, 0) };
        let (Ok(at) | Err(at)) = self.leaves.get(leaf).search(&probe, stored);
        (leaf, at)
    }

    /// The place of a probe that is not before another place, if it is in the leaf of that or at the front of the next.
    /// Looked for in steps that double: mostly there are few entries between the two.
    fn place_nearby(
        &self,
        (id, from): (u32, usize),
        probe: &Probe<'_>,
        stored: &mut impl StoredKeys,
    ) -> Option<(u32, usize)> {
        if id == NONE {
            return Some((NONE, 0));
        }
        let leaf = self.leaves.get(id);
        let (mut low, mut step) = (from, 1);
        while low < leaf.len() {
            let at = (low + step - 1).min(leaf.len() - 1);
            if probe.order(leaf.tids()[at], stored).is_lt() {
                return Some((id, leaf.search_within(low, at, probe, stored)));
            }
            (low, step) = (at + 1, 2 * step);
        }
        // All entries that are left here are before it.
        match leaf.links.next {
            NONE => Some((id, leaf.len())),
            next if probe.order(self.leaves.get(next).tids()[0], stored).is_lt() => Some((next, 0)),
            _ => None,
        }
    }

    /// The leaf where the probe belongs; `None` in an empty tree.
    #[inline]
    fn leaf_of(&self, probe: &Probe<'_>, stored: &mut impl StoredKeys) -> Option<u32> {
        self.levels.leaf_of(probe.prefix(), &mut |tid| probe.tie(tid, stored))
    }

    /// The leaf where the probe belongs, and the way there. The tree is not empty.
    #[inline]
    fn descend(&self, probe: &Probe<'_>, stored: &mut impl StoredKeys, path: &mut Path) -> u32 {
        self.levels.descend(probe.prefix(), &mut |tid| probe.tie(tid, stored), path).0
    }

    /// Where an entry is, or would be.
    fn entry_probe<'k>(&self, key: KeyRef<'k>, tid: u64) -> Probe<'k> {
        let then = if self.unique { Then::Equal } else { Then::Tid(tid) };
        Probe { what: What::Key(key), then }
    }

    /// Panics if an invariant of the module does not hold. `order` compares the keys of two rows, `prefix` gives the first
    /// 16 bytes of one.
    pub fn check(&self, mut order: impl FnMut(u64, u64) -> Ordering, prefix: impl Fn(u64) -> u128) {
        let first_of = |id: u32| {
            let first = self.leaves.get(id).tids()[0];
            (prefix(first), first)
        };
        let leaves = self.levels.check(first_of);
        assert_eq!(self.leaves.used(), leaves.len(), "leaves in use are leaves of the tree");
        assert_eq!(self.leaf_list.first, leaves.first().copied().unwrap_or(NONE));
        assert_eq!(self.leaf_list.last, leaves.last().copied().unwrap_or(NONE));
        let (mut before, mut len) = (None, 0);
        for (i, &id) in leaves.iter().enumerate() {
            let leaf = self.leaves.get(id);
            assert!(leaf.len() > 0, "B-4");
            assert_eq!(leaf.links.prev, if i == 0 { NONE } else { leaves[i - 1] }, "B-2");
            assert_eq!(leaf.links.next, leaves.get(i + 1).copied().unwrap_or(NONE), "B-2");
            for &tid in leaf.tids() {
                if let Some(before) = before.replace(tid) {
                    let keys = prefix(before).cmp(&prefix(tid)).then_with(|| order(before, tid));
                    let entries = if self.unique { keys } else { keys.then(before.cmp(&tid)) };
                    assert_eq!(entries, Ordering::Less, "B-2");
                }
            }
            len += leaf.len();
        }
        assert_eq!(self.len, len);
    }
}
