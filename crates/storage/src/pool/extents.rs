//! Free ranges of addresses.

use std::collections::BTreeMap;

/// Ranges of addresses that neither overlap nor touch: those that do become one.
#[derive(Default)]
pub(super) struct Extents {
    /// By address: the bytes of each.
    ranges: BTreeMap<usize, usize>,
    bytes: usize,
}

impl Extents {
    /// Bytes of all.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a range of which nothing is here; returns the start and the length of what it became part of.
    pub(super) fn insert(&mut self, start: usize, bytes: usize) -> (usize, usize) {
        let (mut first, mut end) = (start, start + bytes);
        if let Some((&before, &free)) = self.ranges.range(..start).next_back() {
            assert!(before + free <= start, "a range is free once");
            if before + free == start {
                first = before;
            }
        }
        if let Some((&behind, &free)) = self.ranges.range(start..).next() {
            assert!(behind >= end, "a range is free once");
            if behind == end {
                self.ranges.remove(&behind);
                end += free;
            }
        }
        self.ranges.insert(first, end - first);
        self.bytes += bytes;
        (first, end - first)
    }

    /// Takes the first so many bytes in a row.
    pub(super) fn take(&mut self, bytes: usize) -> Option<usize> {
        let (&start, _) = self.ranges.iter().find(|(_, free)| **free >= bytes)?;
        self.remove(start, bytes);
        Some(start)
    }

    /// Takes some that are here.
    pub(super) fn remove(&mut self, start: usize, bytes: usize) {
        let (&first, &free) = self.ranges.range(..=start).next_back().expect("the range is free");
        assert!(start + bytes <= first + free, "the range is free");
        self.ranges.remove(&first);
        if first < start {
            self.ranges.insert(first, start - first);
        }
        let (end, last) = (start + bytes, first + free);
        if end < last {
            self.ranges.insert(end, last - end);
        }
        self.bytes -= bytes;
    }

    /// Takes all, with their lengths.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (usize, usize)> + use<> {
        self.bytes = 0;
        std::mem::take(&mut self.ranges).into_iter()
    }

    /// Where they end.
    pub(super) fn ends(&self) -> impl Iterator<Item = usize> {
        self.ranges.iter().map(|(start, bytes)| start + bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use albireo_testing::Random;

    use super::*;

    #[test]
    fn ranges_are_as_a_set_of_their_addresses() {
        let mut random = Random::new(7);
        let (mut extents, mut set) = (Extents::default(), BTreeSet::new());
        for _ in 0..2_000 {
            let (start, bytes) = (1 + random.index(200), 1 + random.index(12));
            let here = (start..start + bytes).filter(|address| set.contains(address)).count();
            if here == 0 {
                let (first, length) = extents.insert(start, bytes);
                set.extend(start..start + bytes);
                assert!((first..first + length).all(|address| set.contains(&address)));
                assert!(!set.contains(&(first - 1)) && !set.contains(&(first + length)));
            } else if here == bytes {
                extents.remove(start, bytes);
                set.retain(|address| !(start..start + bytes).contains(address));
            } else if let Some(start) = extents.take(bytes) {
                assert!((start..start + bytes).all(|address| set.remove(&address)));
            } else {
                let fits = |start: &usize| (*start..start + bytes).all(|address| set.contains(&address));
                assert!(!set.iter().any(fits), "none is as long as that");
            }
            assert_eq!(extents.bytes(), set.len());
            let ends: Vec<_> = set.iter().filter(|address| !set.contains(&(*address + 1))).collect();
            assert!(extents.ends().eq(ends.into_iter().map(|last| last + 1)));
        }
        let all: usize = extents.take_all().map(|(_, bytes)| bytes).sum();
        assert_eq!((all, extents.bytes(), extents.ends().count()), (set.len(), 0, 0));
    }
}
