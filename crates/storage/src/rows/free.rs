//! Free slots and the epochs in which their rows died, oldest first.
//!
//! They lie in pieces of bounded size, so that no push copies those that are there: a table may have millions.

use std::collections::VecDeque;

use albireo_base::Tid;

/// Slots of a piece.
const PIECE: usize = 4096;

/// The epoch of a row's death, and its slot.
pub(super) type Free = (u64, Tid);

/// Free slots of one table in one partition.
#[derive(Default)]
pub(super) struct FreeSlots {
    /// None is empty.
    pieces: VecDeque<VecDeque<Free>>,
}

impl FreeSlots {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&Free> {
        self.pieces.front()?.front()
    }

    pub(super) fn back(&self) -> Option<&Free> {
        self.pieces.back()?.back()
    }

    pub(super) fn pop_front(&mut self) -> Option<Free> {
        let piece = self.pieces.front_mut()?;
        let free = piece.pop_front();
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        free
    }

    pub(super) fn push_front(&mut self, free: Free) {
        match self.pieces.front_mut() {
            Some(piece) if piece.len() < PIECE => piece.push_front(free),
            _ => self.pieces.push_front(VecDeque::from([free])),
        }
    }

    pub(super) fn push_back(&mut self, free: Free) {
        match self.pieces.back_mut() {
            Some(piece) if piece.len() < PIECE => piece.push_back(free),
            _ => self.pieces.push_back(VecDeque::from([free])),
        }
    }

    /// Takes those out that are not to stay.
    pub(super) fn retain(&mut self, stays: impl Fn(&Free) -> bool) {
        for piece in &mut self.pieces {
            piece.retain(&stays);
        }
        self.pieces.retain(|piece| !piece.is_empty());
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Free> {
        self.pieces.iter().flatten()
    }

    /// How many rows died in `epoch` or before.
    pub(super) fn count_until(&self, epoch: u64) -> u64 {
        let whole = |piece: &&VecDeque<Free>| piece.back().is_some_and(|(death, _)| *death <= epoch);
        let pieces = self.pieces.iter().take_while(whole).count();
        let rest =
            self.pieces.get(pieces).map_or(0, |piece| piece.partition_point(|(death, _)| *death <= epoch));
        let whole: usize = self.pieces.iter().take(pieces).map(VecDeque::len).sum();
        (whole + rest) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_slots_come_and_go_as_in_one_queue() {
        let (mut slots, mut model) = (FreeSlots::default(), VecDeque::new());
        let mut random = 7_u64;
        for step in 0..60_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match random >> 61 {
                0 => {
                    slots.push_front((0, Tid(step)));
                    model.push_front((0, Tid(step)));
                }
                1 | 2 if step > 20_000 => assert_eq!(slots.pop_front(), model.pop_front()),
                _ => {
                    slots.push_back((step / 100, Tid(step)));
                    model.push_back((step / 100, Tid(step)));
                }
            }
            assert_eq!((slots.front(), slots.back()), (model.front(), model.back()));
            assert_eq!(slots.is_empty(), model.is_empty());
        }
        assert!(slots.iter().eq(&model));
        for epoch in [0, 1, 150, 300, 599, 1000] {
            let until = model.iter().filter(|(death, _)| *death <= epoch).count();
            assert_eq!(slots.count_until(epoch), until as u64);
        }
        while let Some(free) = model.pop_front() {
            assert_eq!(slots.pop_front(), Some(free));
        }
        assert!(slots.is_empty() && slots.pop_front().is_none());
    }
}
