//! All chance of a run, from its seed.

use albireo_env::Seeds;

/// A sequence of choices that follows from a seed alone.
#[derive(Debug)]
pub struct Random(Seeds);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(Seeds::simulated(seed))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_seed()
    }

    /// A number less than `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        // The high half of the product; uneven by at most `limit` in 2^64.
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// A number of a range, both ends included.
    pub fn between(&mut self, first: i64, last: i64) -> i64 {
        first + self.below((last - first + 1) as u64) as i64
    }

    /// True in so many of 100 cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several, each as likely as another.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A text of up to `most` letters: mostly short, now and then not.
    pub fn text(&mut self, most: u64) -> String {
        let length = if self.percent(10) { self.below(most + 1) } else { self.below(most.min(12) + 1) };
        self.letters(length)
    }

    /// A text of so many letters.
    pub fn letters(&mut self, count: u64) -> String {
        (0..count).map(|_| char::from(b'a' + self.below(26) as u8)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_follow_from_the_seed_and_stay_in_their_range() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..100).map(|_| random.between(-3, 3)).collect::<Vec<_>>()
        };
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
        assert_eq!(draw(5).iter().min(), Some(&-3));
        assert_eq!(draw(5).iter().max(), Some(&3));
    }
}
