//! The invariants of the tree, walked through; for tests and `albireo verify`.

use std::cmp::Ordering;

use super::super::pages::NONE;
use super::OrderedIndex;

impl OrderedIndex {
    /// Panics if an invariant of the module does not hold. `order` compares two entries with equal
    /// prefixes by their TIDs.
    pub fn check(&self, mut order: impl FnMut(u64, u64) -> Ordering) {
        let leaves = self.levels.check(|id| self.leaves.get(id).entry(0));
        assert_eq!(self.leaves.used(), leaves.len(), "leaves in use are leaves of the tree");
        assert_eq!(self.leaf_list.first, leaves.first().copied().unwrap_or(NONE));
        assert_eq!(self.leaf_list.last, leaves.last().copied().unwrap_or(NONE));
        let mut before: Option<(u128, u64)> = None;
        let mut len = 0;
        for (i, &id) in leaves.iter().enumerate() {
            let leaf = self.leaves.get(id);
            assert!(leaf.len() > 0, "O-3");
            assert!(leaf.keys.is_filled_from(leaf.len()), "O-3");
            assert_eq!(leaf.links.prev, if i == 0 { NONE } else { leaves[i - 1] }, "O-1");
            assert_eq!(leaf.links.next, leaves.get(i + 1).copied().unwrap_or(NONE), "O-1");
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
            if leaf.links.next != NONE {
                assert!(hot.high <= self.leaves.get(leaf.links.next).keys.get(0), "O-4");
            }
        }
    }
}
