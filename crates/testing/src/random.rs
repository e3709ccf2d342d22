//! The random numbers of tests that draw for themselves: [`fastrand`], from a seed.

/// A sequence of numbers that follows from its seed alone: `fastrand::Rng` with the words tests use.
#[derive(Clone, Debug)]
pub struct Random(fastrand::Rng);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// A number less than `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.u64(..limit)
    }

    /// A position in a list of `length`, which is not 0.
    pub fn index(&mut self, length: usize) -> usize {
        self.0.usize(..length)
    }

    /// A number of this range, its ends included.
    pub fn between(&mut self, first: i64, last: i64) -> i64 {
        self.0.i64(first..=last)
    }

    /// True in so many of 100 cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several, each as likely as another.
    ///
    /// # Panics
    /// There are none.
    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        self.0.choice(items).expect("there is one to pick").clone()
    }

    /// Brings `items` into any order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_draws_the_same_and_all_of_a_range() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..100).map(|_| random.between(-3, 3)).collect::<Vec<_>>()
        };
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
        assert_eq!(draw(5).iter().min(), Some(&-3));
        assert_eq!(draw(5).iter().max(), Some(&3));
        let mut random = Random::new(1);
        assert!((0..100).all(|_| random.index(3) < 3 && random.below(2) < 2 && !random.percent(0)));
        let mut items = [1, 2, 3, 4, 5, 6, 7, 8];
        random.shuffle(&mut items);
        assert_ne!(items, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(items.contains(&random.pick(&[1, 8])));
    }
}
