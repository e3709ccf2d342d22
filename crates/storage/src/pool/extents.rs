//! Free ranges of addresses.

use std::collections::{BTreeMap, BTreeSet};

/// Ranges of addresses that neither overlap nor touch: those that do become one.
#[derive(Default)]
pub(super) struct Extents {
    /// By address: the bytes of each.
    ranges: BTreeMap<usize, usize>,
    /// The same, by length and address.
    by_length: BTreeSet<(usize, usize)>,
    bytes: usize,
}

impl Extents {
    /// Bytes of all.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a range of which nothing is here.
    pub(super) fn insert(&mut self, start: usize, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let (mut first, mut end) = (start, start + bytes);
        if let Some((&before, &free)) = self.ranges.range(..start).next_back() {
            assert!(before + free <= start, "a range is free once");
            if before + free == start {
                self.delete(before, free);
                first = before;
            }
        }
        if let Some((&behind, &free)) = self.ranges.range(start..).next() {
            assert!(behind >= end, "a range is free once");
            if behind == end {
                self.delete(behind, free);
                end += free;
            }
        }
        self.add(first, end - first);
    }

    /// Takes so many bytes in a row, from the start of the shortest range that has them.
    pub(super) fn take(&mut self, bytes: usize) -> Option<usize> {
        let (_, start) = *self.by_length.range((bytes, 0)..).next()?;
        self.cut(start, bytes);
        Some(start)
    }

    /// Takes the longest range: its start and length.
    pub(super) fn take_longest(&mut self) -> Option<(usize, usize)> {
        let (bytes, start) = *self.by_length.last()?;
        self.delete(start, bytes);
        Some((start, bytes))
    }

    /// Takes what is here of a range; how many bytes that was.
    pub(super) fn cut(&mut self, start: usize, bytes: usize) -> usize {
        let (end, before) = (start + bytes, self.bytes);
        let overlapping = |extents: &Self| {
            let (&first, &free) = extents.ranges.range(..end).next_back()?;
            (first + free > start).then_some((first, free))
        };
        while let Some((first, free)) = overlapping(self) {
            self.delete(first, free);
            let last = first + free;
            if first < start {
                self.add(first, start - first);
            }
            if end < last {
                self.add(end, last - end);
            }
            if first <= start {
                break;
            }
        }
        before - self.bytes
    }

    /// Whether all of a range is here.
    pub(super) fn has(&self, start: usize, bytes: usize) -> bool {
        let found = self.ranges.range(..=start).next_back();
        found.is_some_and(|(first, free)| first + free >= start + bytes)
    }

    /// The range that ends at an address: its start and length.
    pub(super) fn ending_at(&self, end: usize) -> Option<(usize, usize)> {
        let (&first, &free) = self.ranges.range(..end).next_back()?;
        (first + free == end).then_some((first, free))
    }

    fn add(&mut self, start: usize, bytes: usize) {
        self.ranges.insert(start, bytes);
        self.by_length.insert((bytes, start));
        self.bytes += bytes;
    }

    fn delete(&mut self, start: usize, bytes: usize) {
        let found = self.ranges.remove(&start);
        debug_assert_eq!(found, Some(bytes), "a range is known by both");
        self.by_length.remove(&(bytes, start));
        self.bytes -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use albireo_testing::Random;

    use super::*;

    /// Panics unless both have the same addresses, in ranges that do not touch.
    fn check(extents: &Extents, set: &BTreeSet<usize>) {
        let all = extents.ranges.iter().flat_map(|(start, bytes)| *start..start + bytes);
        assert!(all.eq(set.iter().copied()));
        assert!(extents.ranges.iter().all(|(start, bytes)| !set.contains(&(start + bytes))));
        let by_length: BTreeSet<_> = extents.ranges.iter().map(|(start, bytes)| (*bytes, *start)).collect();
        assert_eq!((&extents.by_length, extents.bytes()), (&by_length, set.len()));
    }

    #[test]
    fn ranges_are_as_a_set_of_their_addresses() {
        let mut random = Random::new(7);
        let (mut extents, mut set) = (Extents::default(), BTreeSet::new());
        for _ in 0..3_000 {
            let (start, bytes) = (1 + random.index(200), 1 + random.index(12));
            let range = start..start + bytes;
            let here = range.clone().filter(|address| set.contains(address)).count();
            assert_eq!(extents.has(start, bytes), here == bytes);
            assert_eq!(
                extents.ending_at(start).is_some(),
                set.contains(&(start - 1)) && !set.contains(&start)
            );
            if here == 0 {
                extents.insert(start, bytes);
                set.extend(range);
            } else if random.percent(40) {
                assert_eq!(extents.cut(start, bytes), here);
                set.retain(|address| !range.contains(address));
            } else if random.percent(10) {
                let (start, bytes) = extents.take_longest().expect("some are here");
                assert!((start..start + bytes).all(|address| set.remove(&address)));
                assert!(extents.ranges.values().all(|other| *other <= bytes));
            } else if let Some(start) = extents.take(bytes) {
                assert!((start..start + bytes).all(|address| set.remove(&address)));
            } else {
                assert!(extents.ranges.values().all(|free| *free < bytes), "none is as long as that");
            }
            check(&extents, &set);
        }
    }
}
