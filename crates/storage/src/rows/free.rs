//! Free slots and the epochs in which their rows died, oldest first.
//!
//! They lie in pieces of bounded size, so that no push copies those that are there: a table may have millions.
//!
//! A chunk that cools or freezes has no free slots any more. To look for them among all would take long, so the chunk gets
//! another *generation*, and what lies there of an older one is stale: whoever takes slots passes it over, and
//! [`FreeSlots::sweep`] takes it out, some pieces at a time.
//!
//! - I-1 A slot is free if an entry of its chunk's generation lies here.
//! - I-2 No call looks at more than [`SWEPT`] pieces, but once in 262,144 times that the same chunk is forgotten.

use std::collections::VecDeque;

use albireo_base::Tid;
use albireo_base::ids::CHUNK_SHIFT;
use rustc_hash::FxHashMap;

/// Slots of a piece.
const PIECE: usize = 4096;

/// Pieces that are swept at a time: 0.2 ms.
const SWEPT: usize = 16;

/// Stale entries that are passed over for a slot.
const PASSED: usize = 256;

/// The epoch of a row's death, and its slot.
pub(super) type Free = (u64, Tid);

/// Bits of a TID: the number of a chunk has 32.
const TID_BITS: u32 = 32 + CHUNK_SHIFT;
const GENERATIONS: u64 = 1 << (u64::BITS - TID_BITS);

/// The epoch of a row's death, and its slot with the generation of the chunk above it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry(u64, u64);

impl Entry {
    fn free(self) -> Free {
        (self.0, Tid(self.1 & ((1 << TID_BITS) - 1)))
    }
}

/// Of the chunks that have been forgotten, how often; of others 0.
#[derive(Default)]
struct Generations(FxHashMap<usize, u64>);

impl Generations {
    #[inline]
    fn of(&self, tid: Tid) -> u64 {
        if self.0.is_empty() { 0 } else { self.0.get(&tid.chunk()).copied().unwrap_or(0) }
    }

    #[inline]
    fn entry(&self, (death, tid): Free) -> Entry {
        debug_assert!(tid.0 >> TID_BITS == 0, "the number of a chunk has 32 bits");
        Entry(death, tid.0 | self.of(tid) << TID_BITS)
    }

    #[inline]
    fn has(&self, entry: Entry) -> bool {
        entry.1 >> TID_BITS == self.of(entry.free().1)
    }
}

/// Free slots of one table in one partition.
#[derive(Default)]
pub(super) struct FreeSlots {
    /// None is empty.
    pieces: VecDeque<VecDeque<Entry>>,
    generations: Generations,
    /// The piece that is swept next.
    next: usize,
}

impl FreeSlots {
    /// Whether nothing lies here, be it stale.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The first free slot, if it is found among the first entries.
    #[inline]
    pub(super) fn first(&mut self) -> Option<Free> {
        for _ in 0..PASSED {
            let entry = *self.pieces.front()?.front()?;
            if self.generations.has(entry) {
                return Some(entry.free());
            }
            self.pop_front();
        }
        None
    }

    /// The first free slot, when [`FreeSlots::first`] has just given it.
    #[inline]
    pub(super) fn front(&self) -> Option<Free> {
        let entry = *self.pieces.front()?.front()?;
        self.generations.has(entry).then(|| entry.free())
    }

    /// The newest death.
    pub(super) fn newest(&self) -> u64 {
        self.pieces.back().and_then(VecDeque::back).map_or(0, |entry| entry.0)
    }

    /// Takes the first entry out.
    pub(super) fn pop_front(&mut self) -> Option<Free> {
        let piece = self.pieces.front_mut()?;
        let free = piece.pop_front();
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        free.map(Entry::free)
    }

    pub(super) fn push_front(&mut self, free: Free) {
        let entry = self.generations.entry(free);
        match self.pieces.front_mut() {
            Some(piece) if piece.len() < PIECE => piece.push_front(entry),
            _ => self.pieces.push_front(VecDeque::from([entry])),
        }
    }

    pub(super) fn push_back(&mut self, free: Free) {
        let entry = self.generations.entry(free);
        match self.pieces.back_mut() {
            Some(piece) if piece.len() < PIECE => piece.push_back(entry),
            _ => self.pieces.push_back(VecDeque::from([entry])),
        }
    }

    /// The slots of a chunk are free no more.
    pub(super) fn forget(&mut self, chunk: usize) {
        if self.is_empty() {
            return;
        }
        let generation = self.generations.0.entry(chunk).or_default();
        *generation += 1;
        if *generation == GENERATIONS {
            // What lies here of generation 0 is not of the one that begins.
            *generation = 0;
            self.pieces.iter_mut().for_each(|piece| piece.retain(|entry| entry.free().1.chunk() != chunk));
            self.pieces.retain(|piece| !piece.is_empty());
        }
    }

    /// Takes stale entries out of some pieces, of others than the last time.
    pub(super) fn sweep(&mut self) {
        let Self { pieces, generations, next } = self;
        if generations.0.is_empty() {
            return;
        }
        for _ in 0..SWEPT.min(pieces.len()) {
            if *next >= pieces.len() {
                *next = 0;
            }
            let piece = &mut pieces[*next];
            piece.retain(|entry| generations.has(*entry));
            if piece.is_empty() {
                pieces.remove(*next);
            } else {
                if piece.len() < piece.capacity() / 4 {
                    piece.shrink_to_fit();
                }
                *next += 1;
            }
        }
    }

    /// The slots from the first on, up to the first stale entry.
    pub(super) fn iter(&self) -> impl Iterator<Item = Free> {
        let fresh = self.pieces.iter().flatten().take_while(|entry| self.generations.has(**entry));
        fresh.map(|entry| entry.free())
    }

    /// How many rows died in `epoch` or before. Stale entries count.
    pub(super) fn count_until(&self, epoch: u64) -> u64 {
        let whole = |piece: &&VecDeque<Entry>| piece.back().is_some_and(|entry| entry.0 <= epoch);
        let pieces = self.pieces.iter().take_while(whole).count();
        let rest = self.pieces.get(pieces).map_or(0, |piece| piece.partition_point(|entry| entry.0 <= epoch));
        let whole: usize = self.pieces.iter().take(pieces).map(VecDeque::len).sum();
        (whole + rest) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKS: u64 = 40;

    /// Numbers that look random.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }
    }

    #[test]
    fn free_slots_come_and_go_as_in_one_queue() {
        let (mut slots, mut model) = (FreeSlots::default(), VecDeque::new());
        let mut numbers = Numbers(7);
        for step in 0..60_000_u64 {
            let free = Tid::new((step % CHUNKS) as usize, (step / CHUNKS) as usize);
            match numbers.below(8) {
                0 => {
                    slots.push_front((0, free));
                    model.push_front((0, free));
                }
                1 | 2 if step > 20_000 => assert_eq!(slots.pop_front(), model.pop_front()),
                _ => {
                    slots.push_back((step / 100, free));
                    model.push_back((step / 100, free));
                }
            }
            assert_eq!(slots.front(), model.front().copied());
            assert_eq!(slots.newest(), model.back().map_or(0, |(death, _)| *death));
            assert_eq!(slots.is_empty(), model.is_empty());
        }
        assert!(slots.iter().eq(model.iter().copied()));
        for epoch in [0, 1, 150, 300, 599, 1000] {
            let until = model.iter().filter(|(death, _)| *death <= epoch).count();
            assert_eq!(slots.count_until(epoch), until as u64);
        }
        while let Some(free) = model.pop_front() {
            assert_eq!(slots.pop_front(), Some(free));
        }
        assert!(slots.is_empty() && slots.pop_front().is_none());
    }

    #[test]
    fn slots_of_forgotten_chunks_are_passed_over_until_they_are_free_anew() {
        let (mut slots, mut model) = (FreeSlots::default(), VecDeque::new());
        let (mut numbers, mut taken, mut missed) = (Numbers(11), 0, 0);
        for step in 0..400_000_u64 {
            let free = (step / 100, Tid::new((step * 7 % CHUNKS) as usize, (step / CHUNKS % 9000) as usize));
            match numbers.below(1000) {
                // As one that cools does, or freezes: its slots come back later.
                0 => {
                    let chunk = numbers.below(CHUNKS) as usize;
                    slots.forget(chunk);
                    model.retain(|(_, tid): &Free| tid.chunk() != chunk);
                }
                1..4 => slots.sweep(),
                4..300 => match slots.first() {
                    None => missed += u64::from(!model.is_empty()),
                    Some(first) => {
                        taken += 1;
                        assert_eq!((Some(first), slots.front()), (model.front().copied(), Some(first)));
                        assert_eq!((slots.pop_front(), model.pop_front()), (Some(first), Some(first)));
                    }
                },
                _ => {
                    slots.push_back(free);
                    model.push_back(free);
                }
            }
            assert!(slots.count_until(u64::MAX) >= model.len() as u64);
        }
        assert!(taken > 50_000 && missed < taken / 100, "{taken} taken, {missed} missed");
        // Each piece is swept in time.
        (0..slots.pieces.len()).for_each(|_| slots.sweep());
        assert!(slots.iter().eq(model.iter().copied()), "no stale entry is left");
        assert_eq!(slots.count_until(u64::MAX), model.len() as u64);
    }

    #[test]
    fn generation_that_comes_again_has_no_slots_of_the_one_before() {
        let mut slots = FreeSlots::default();
        slots.push_back((1, Tid::new(3, 5)));
        slots.push_back((1, Tid::new(4, 5)));
        for _ in 0..GENERATIONS {
            slots.forget(3);
        }
        assert_eq!((slots.first(), slots.count_until(1)), (Some((1, Tid::new(4, 5))), 1));
        slots.push_back((2, Tid::new(3, 6)));
        assert_eq!(slots.iter().collect::<Vec<_>>(), [(1, Tid::new(4, 5)), (2, Tid::new(3, 6))]);
    }
}
