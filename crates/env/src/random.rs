//! Seeds for pseudo-random generators; the generators themselves belong to their users, but for the
//! one that the simulated disk draws from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Hands out seeds: from the operating system, or from one number. Clones share the sequence.
#[derive(Clone, Debug)]
pub struct Seeds(Option<Arc<AtomicU64>>);

impl Seeds {
    /// Seeds nobody can foresee.
    pub fn real() -> Self {
        Self(None)
    }

    /// A sequence that follows from `seed` alone.
    pub fn simulated(seed: u64) -> Self {
        Self(Some(Arc::new(AtomicU64::new(seed))))
    }

    /// The next seed.
    pub fn next_seed(&self) -> u64 {
        match &self.0 {
            Some(state) => mix(state.fetch_add(WEYL, Ordering::Relaxed).wrapping_add(WEYL)),
            None => from_operating_system(),
        }
    }
}

/// The step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
const WEYL: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What the simulated world draws from: SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Generator(u64);

impl Generator {
    /// A sequence that follows from `seed` alone.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(WEYL);
        mix(self.0)
    }

    /// A number from 0 to `last`, either included.
    pub(crate) fn up_to(&mut self, last: u64) -> u64 {
        // The high half of the product; uneven by at most `last` in 2^64.
        ((u128::from(self.draw()) * (u128::from(last) + 1)) >> 64) as u64
    }

    /// True every second time.
    pub(crate) fn coin(&mut self) -> bool {
        self.up_to(1) == 1
    }
}

fn from_operating_system() -> u64 {
    let mut bytes = [0u8; 8];
    loop {
        match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
            Ok(8) => return u64::from_le_bytes(bytes),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // The kernel promises that small requests never fail otherwise.
            Err(errno) => panic!("getrandom failed: {errno}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_seeds_from_the_same_seed_are_the_same_sequence() {
        let (a, b) = (Seeds::simulated(42), Seeds::simulated(42));
        let sequence: Vec<u64> = (0..4).map(|_| a.next_seed()).collect();
        assert_eq!(sequence, (0..4).map(|_| b.next_seed()).collect::<Vec<_>>());
        assert!(sequence.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn generator_draws_every_number_of_a_range_and_none_beyond() {
        let mut generator = Generator::new(7);
        let mut counts = [0; 3];
        (0..3_000).for_each(|_| counts[generator.up_to(2) as usize] += 1);
        assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
        assert_eq!(generator.up_to(0), 0);
    }

    #[test]
    fn real_seeds_drawn_twice_differ() {
        assert_ne!(Seeds::real().next_seed(), Seeds::real().next_seed());
    }
}
