//! Random numbers, the same for a seed everywhere.

use albireo_testing::Random;

/// A source of random numbers.
pub struct Rng(Random);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.index(n)
    }

    /// A number of this range, its ends included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0.between(low, high)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        self.0.pick(items)
    }

    /// A place in the list, each as often as its weight says.
    pub fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut at = self.below(weights.iter().sum());
        for (n, weight) in weights.iter().enumerate() {
            if at < *weight {
                return n;
            }
            at -= weight;
        }
        0
    }
}
