//! The invariants of the tree, walked through; for tests and `albireo verify`.

use std::cmp::Ordering;

use super::super::pages::NONE;
use super::search::CAP;
use super::{MAX_HEIGHT, OrderedIndex};

impl OrderedIndex {
    /// Panics if an invariant of the module does not hold. `order` compares two entries with equal
    /// prefixes by their TIDs.
    pub fn check(&self, mut order: impl FnMut(u64, u64) -> Ordering) {
        assert!(self.height as usize <= MAX_HEIGHT);
        let mut leaves = Vec::new();
        let mut inners = 0;
        if self.root != NONE {
            self.check_node(self.root, self.height, &mut leaves, &mut inners);
        }
        assert_eq!(self.leaves.used(), leaves.len(), "leaves in use are leaves of the tree");
        assert_eq!(self.inners.used(), inners, "inner nodes in use are nodes of the tree");
        assert_eq!(self.first, leaves.first().copied().unwrap_or(NONE));
        assert_eq!(self.last, leaves.last().copied().unwrap_or(NONE));
        let mut before: Option<(u128, u64)> = None;
        let mut len = 0;
        for (i, &id) in leaves.iter().enumerate() {
            let leaf = self.leaves.get(id);
            assert!(leaf.len() > 0, "O-3");
            assert!(leaf.keys.is_filled_from(leaf.len()), "O-3");
            assert_eq!(leaf.prev, if i == 0 { NONE } else { leaves[i - 1] }, "O-1");
            assert_eq!(leaf.next, leaves.get(i + 1).copied().unwrap_or(NONE), "O-1");
            for at in 0..leaf.len() {
                let entry = leaf.entry(at);
                if let Some(before) = before {
                    let ascending = before.0.cmp(&entry.0).then_with(|| order(before.1, entry.1));
                    assert_eq!(ascending, Ordering::Less, "O-1");
                }
                before = Some(entry);
            }
            len += leaf.len();
        }
        assert_eq!(self.len, len);
        self.check_hot(&leaves);
    }

    fn check_hot(&self, leaves: &[u32]) {
        for hot in self.hot.iter() {
            assert!(leaves.contains(&hot.leaf), "O-4");
            let leaf = self.leaves.get(hot.leaf);
            assert!(hot.low >= leaf.keys.get(0), "O-4");
            if leaf.next != NONE {
                assert!(hot.high <= self.leaves.get(leaf.next).keys.get(0), "O-4");
            }
        }
    }

    /// Collects the leaves under a node, in order, and returns the node's first entry.
    fn check_node(&self, id: u32, height: u32, leaves: &mut Vec<u32>, inners: &mut usize) -> (u128, u64) {
        if height == 0 {
            leaves.push(id);
            return self.leaves.get(id).entry(0);
        }
        *inners += 1;
        let inner = self.inners.get(id);
        let len = inner.len();
        assert!(len <= CAP && inner.keys.is_filled_from(len), "O-3");
        let first = self.check_node(inner.children[0], height - 1, leaves, inners);
        for at in 0..len {
            let under = self.check_node(inner.children[at + 1], height - 1, leaves, inners);
            assert_eq!((inner.keys.get(at), inner.tids[at]), under, "O-2");
        }
        first
    }
}
