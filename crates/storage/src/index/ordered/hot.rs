//! The leaves of recent inserts, and which prefixes can only be in them.
//!
//! Transactions insert ascending runs, many at once in one index: order numbers in each district,
//! for instance. The leading bytes of a key tell the runs apart, so the leaf where a run goes on is
//! remembered by a hash of the first four bytes. A slot that two runs share costs them their
//! descents, nothing else.

use super::super::pages::NONE;

/// Slots: the runs that are remembered, but for collisions.
const SLOTS: usize = 128;

/// A leaf and exclusive bounds of the prefixes that can only be in it (O-4).
#[derive(Clone, Copy, Debug)]
pub(super) struct Hot {
    pub(super) low: u128,
    pub(super) high: u128,
    pub(super) leaf: u32,
}

/// The remembered leaves.
pub(super) struct HotLeaves {
    /// Low and high bound; an empty slot covers nothing.
    bounds: [(u128, u128); SLOTS],
    leaves: [u32; SLOTS],
}

const EMPTY: (u128, u128) = (u128::MAX, 0);

#[inline(always)]
fn slot(prefix: u128) -> usize {
    const { assert!(SLOTS.is_power_of_two()) };
    let run = (prefix >> 96) as u32;
    (run.wrapping_mul(0x9E37_79B1) >> (u32::BITS - SLOTS.trailing_zeros())) as usize
}

impl HotLeaves {
    pub(super) const COLD: Self = Self { bounds: [EMPTY; SLOTS], leaves: [NONE; SLOTS] };

    /// The leaf in which an entry with this prefix can only be, and not first in it.
    #[inline(always)]
    pub(super) fn covering(&self, prefix: u128) -> Option<u32> {
        let slot = slot(prefix);
        let (low, high) = self.bounds[slot];
        (low < prefix && prefix < high).then(|| self.leaves[slot])
    }

    /// Remembers where the run of `prefix` goes on.
    #[inline]
    pub(super) fn remember(&mut self, prefix: u128, Hot { low, high, leaf }: Hot) {
        debug_assert!(low <= prefix && prefix <= high, "the leaf has the entry that was just put there");
        debug_assert_ne!(leaf, NONE, "a leaf is remembered");
        let slot = slot(prefix);
        (self.bounds[slot], self.leaves[slot]) = ((low, high), leaf);
    }

    /// Forgets a leaf that was split, merged or freed.
    pub(super) fn forget(&mut self, leaf: u32) {
        if !self.leaves.contains(&leaf) {
            return;
        }
        for (known, bounds) in self.leaves.iter_mut().zip(&mut self.bounds) {
            if *known == leaf {
                (*known, *bounds) = (NONE, EMPTY);
            }
        }
    }

    /// The first entry of a leaf is a later one now.
    #[inline]
    pub(super) fn raise(&mut self, leaf: u32, low: u128) {
        // The usual answer, found eight slots at a time.
        if !self.leaves.contains(&leaf) {
            return;
        }
        for (known, bounds) in self.leaves.iter().zip(&mut self.bounds) {
            if *known == leaf {
                bounds.0 = low;
            }
        }
    }

    /// What is remembered, for checks.
    pub(super) fn iter(&self) -> impl Iterator<Item = Hot> + '_ {
        let hot = |(&leaf, &(low, high))| Hot { low, high, leaf };
        self.leaves.iter().zip(&self.bounds).map(hot).filter(|hot: &Hot| hot.leaf != NONE)
    }
}
