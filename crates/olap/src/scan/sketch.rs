//! A HyperLogLog sketch: how many distinct values a column has, within two per cent.
//!
//! Paper: Flajolet et al., AofA 2007; the small-range correction is linear counting.

/// `log2` of the number of registers.
const INDEX_BITS: u32 = 12;
const REGISTERS: usize = 1 << INDEX_BITS;

/// The sketch.
#[derive(Clone, Debug)]
pub(super) struct DistinctSketch {
    registers: Vec<u8>,
}

impl DistinctSketch {
    pub(super) fn new() -> Self {
        Self { registers: vec![0; REGISTERS] }
    }

    /// Adds a value by its hash, all 64 bits of which must be well mixed.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64) {
        let register = (hash >> (64 - INDEX_BITS)) as usize;
        let rank = ((hash << INDEX_BITS) | (1 << (INDEX_BITS - 1))).leading_zeros() as u8 + 1;
        let slot = &mut self.registers[register];
        *slot = (*slot).max(rank);
    }

    /// The estimate.
    pub(super) fn count(&self) -> f64 {
        let m = REGISTERS as f64;
        let sum: f64 = self.registers.iter().map(|r| 2f64.powi(-i32::from(*r))).sum();
        let estimate = 0.7213 / (1.0 + 1.079 / m) * m * m / sum;
        let empty = self.registers.iter().filter(|r| **r == 0).count();
        if estimate <= 2.5 * m && empty > 0 { m * (m / empty as f64).ln() } else { estimate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(i: u64) -> u64 {
        let mut z = i.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    #[test]
    fn count_of_known_sets_is_within_five_per_cent() {
        for n in [1u64, 10, 1_000, 20_000, 1_000_000] {
            let mut sketch = DistinctSketch::new();
            for i in 0..n {
                sketch.insert(mix(i));
                sketch.insert(mix(i));
            }
            let error = (sketch.count() - n as f64).abs() / n as f64;
            assert!(error < 0.05, "{n}: {}", sketch.count());
        }
    }
}
