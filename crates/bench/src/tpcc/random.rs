//! Random numbers and strings of clauses 2.1.6 and 4.3.2, the same for the same seed everywhere.
//!
//! Not responsible for: choosing a seed (`albireo_env::Seeds`). Not for cryptography.
//!
//! Invariant: the sequence a seed gives never changes; populations and published figures depend on
//! it (`random_sequence_of_a_seed_is_fixed`).

use super::text::Text;

/// Characters of random strings, in ASCII order. CH-benCHmark's nation keys are their codes.
pub const ALPHANUMERIC: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Syllables of C_LAST (clause 4.3.2.3).
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// A generator: xoshiro256++ (Blackman and Vigna, 2019), seeded by splitmix64.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

/// One step of splitmix64.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Random {
    /// The generator of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self { state: std::array::from_fn(|_| splitmix(&mut state)) }
    }

    /// The generator of `seed` for one purpose, say one row: different paths give unrelated
    /// sequences, so rows can be made in any order and by any thread.
    pub fn stream(seed: u64, path: &[u64]) -> Self {
        let mut mixed = seed;
        for &step in path {
            let mut state = splitmix(&mut mixed) ^ step;
            mixed = splitmix(&mut state);
        }
        Self::new(mixed)
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0..bound`, `bound > 0`. Multiplication instead of a remainder; the bias is
    /// under `bound / 2^64`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// `random(low .. high)` of clause 4.3.2.5: uniform, both ends included, `low <= high`.
    #[inline]
    pub fn uniform(&mut self, low: i32, high: i32) -> i32 {
        debug_assert!(low <= high);
        low + self.below((high - low + 1) as u64) as i32
    }

    /// `true` in `percent` of 100 cases.
    #[inline]
    pub fn percent(&mut self, percent: i32) -> bool {
        self.uniform(1, 100) <= percent
    }

    /// `NURand(A, x, y)` of clause 2.1.6 with the run-time constant `c`.
    #[inline]
    pub fn nurand(&mut self, a: i32, c: i32, low: i32, high: i32) -> i32 {
        ((self.uniform(0, a) | self.uniform(low, high)) + c) % (high - low + 1) + low
    }

    /// An a-string of clause 4.3.2.2: `min..=max` characters of [`ALPHANUMERIC`].
    pub fn alphanumeric<const N: usize>(&mut self, min: usize, max: usize) -> Text<N> {
        self.string(min, max, ALPHANUMERIC)
    }

    /// An n-string of clause 4.3.2.2: `min..=max` digits.
    pub fn digits<const N: usize>(&mut self, min: usize, max: usize) -> Text<N> {
        self.string(min, max, b"0123456789")
    }

    /// I_DATA and S_DATA: an a-string that holds "ORIGINAL" somewhere when `original`.
    pub fn data<const N: usize>(&mut self, min: usize, max: usize, original: bool) -> Text<N> {
        const ORIGINAL: &[u8] = b"ORIGINAL";
        let text: Text<N> = self.alphanumeric(min, max);
        if !original {
            return text;
        }
        let mut bytes = [0; N];
        let bytes = &mut bytes[..text.as_bytes().len()];
        bytes.copy_from_slice(text.as_bytes());
        let at = self.below((bytes.len() - ORIGINAL.len() + 1) as u64) as usize;
        bytes[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
        Text::from_ascii(bytes)
    }

    /// A zip code of clause 4.3.2.7: four random digits and "11111".
    pub fn zip(&mut self) -> Text<9> {
        let mut zip = self.digits(4, 4);
        zip.push("11111");
        zip
    }

    /// Brings `items` into random order, every order being as likely as any other.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// Eight characters are taken from one random word by repeated multiplication, which is uniform
    /// to one part in 10^4 for all eight together and far better for each.
    fn string<const N: usize>(&mut self, min: usize, max: usize, alphabet: &[u8]) -> Text<N> {
        let length = min + self.below((max - min + 1) as u64) as usize;
        let mut bytes = [0; N];
        for part in bytes[..length].chunks_mut(8) {
            let mut word = self.next_u64();
            for byte in part {
                let product = u128::from(word) * alphabet.len() as u128;
                *byte = alphabet[(product >> 64) as usize];
                word = product as u64;
            }
        }
        Text::from_ascii(&bytes[..length])
    }
}

/// C_LAST of `number` in `0..=999` (clause 4.3.2.3): one syllable for each digit.
pub fn last_name(number: i32) -> Text<16> {
    assert!((0..1_000).contains(&number), "last names are numbered 0 to 999");
    let mut name = Text::EMPTY;
    for digit in [number / 100, number / 10 % 10, number % 10] {
        name.push(SYLLABLES[digit as usize]);
    }
    name
}

/// The constants C of NURand, one for each of its three uses (clause 2.1.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Constants {
    /// For C_LAST, with A = 255.
    pub last_name: i32,
    /// For C_ID, with A = 1023.
    pub customer: i32,
    /// For OL_I_ID, with A = 8191.
    pub item: i32,
}

impl Constants {
    /// A of NURand for C_LAST.
    const A_LAST_NAME: i32 = 255;
    /// A of NURand for C_ID.
    const A_CUSTOMER: i32 = 1_023;
    /// A of NURand for OL_I_ID.
    const A_ITEM: i32 = 8_191;

    /// C-Load: the constants that populate the database.
    pub fn load(seed: u64) -> Self {
        Self::draw(&mut Random::stream(seed, &[u64::from_be_bytes(*b"C-Load  ")]))
    }

    /// C-Run: the constants of the transactions' inputs over a database populated from the same
    /// seed. Clause 2.1.6.1 keeps the two for C_LAST 65 to 119 apart, but neither 96 nor 112.
    pub fn run(seed: u64) -> Self {
        let load = Self::load(seed).last_name;
        let mut random = Random::stream(seed, &[u64::from_be_bytes(*b"C-Run   ")]);
        loop {
            let run = Self::draw(&mut random);
            let apart = (run.last_name - load).abs();
            if (65..=119).contains(&apart) && apart != 96 && apart != 112 {
                return run;
            }
        }
    }

    fn draw(random: &mut Random) -> Self {
        Self {
            last_name: random.uniform(0, Self::A_LAST_NAME),
            customer: random.uniform(0, Self::A_CUSTOMER),
            item: random.uniform(0, Self::A_ITEM),
        }
    }

    /// The number of a last name, in `0..names`.
    pub fn last_name_number(&self, random: &mut Random, names: i32) -> i32 {
        random.nurand(Self::A_LAST_NAME, self.last_name, 0, names - 1)
    }

    /// A customer's id, in `1..=customers`.
    pub fn customer_id(&self, random: &mut Random, customers: i32) -> i32 {
        random.nurand(Self::A_CUSTOMER, self.customer, 1, customers)
    }

    /// An item's id, in `1..=items`.
    pub fn item_id(&self, random: &mut Random, items: i32) -> i32 {
        random.nurand(Self::A_ITEM, self.item, 1, items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pearson's statistic of `counts` against a uniform distribution.
    fn chi_square(counts: &[u32]) -> f64 {
        let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum()
    }

    #[test]
    fn random_sequence_of_a_seed_is_fixed() {
        let mut random = Random::new(42);
        let words: [u64; 3] = std::array::from_fn(|_| random.next_u64());
        assert_eq!(
            words,
            [15_021_278_609_987_233_951, 5_881_210_131_331_364_753, 18_149_643_915_985_481_100]
        );
        let mut stream = Random::stream(42, &[1, 2, 3]);
        assert_ne!(stream.next_u64(), Random::stream(42, &[1, 3, 2]).next_u64());
        assert_ne!(stream.next_u64(), Random::stream(43, &[1, 2, 3]).next_u64());
    }

    #[test]
    fn uniform_over_a_range_is_uniform_and_reaches_both_ends() {
        let mut random = Random::new(1);
        let mut counts = [0u32; 11];
        for _ in 0..110_000 {
            counts[(random.uniform(5, 15) - 5) as usize] += 1;
        }
        assert!(chi_square(&counts) < 35.0, "{counts:?}"); // p = 0.0001 at 10 degrees.
    }

    #[test]
    fn alphanumeric_uses_every_character_equally_at_every_position() {
        let mut random = Random::new(2);
        let mut counts = vec![[0u32; 62]; 24];
        for _ in 0..20_000 {
            let text: Text<24> = random.alphanumeric(24, 24);
            for (position, byte) in text.as_bytes().iter().enumerate() {
                counts[position][ALPHANUMERIC.binary_search(byte).unwrap()] += 1;
            }
        }
        for (position, counts) in counts.iter().enumerate() {
            assert!(chi_square(counts) < 120.0, "position {position}"); // p < 0.00001 at 61.
        }
    }

    #[test]
    fn nurand_stays_in_range_and_prefers_some_values() {
        let constants = Constants::run(3);
        let mut random = Random::new(3);
        let mut counts = vec![0u32; 3_000];
        for _ in 0..300_000 {
            counts[constants.customer_id(&mut random, 3_000) as usize - 1] += 1;
        }
        let hottest = counts.iter().max().unwrap();
        assert!(*hottest > 400, "100 would be uniform, the hottest has {hottest}");
        assert!(counts.iter().filter(|&&count| count == 0).count() < 300);
    }

    #[test]
    fn run_constant_of_any_seed_keeps_its_distance_from_load() {
        for seed in 0..2_000 {
            let (load, run) = (Constants::load(seed), Constants::run(seed));
            let apart = (load.last_name - run.last_name).abs();
            assert!((65..=119).contains(&apart) && apart != 96 && apart != 112, "seed {seed}");
            assert!((0..=255).contains(&run.last_name) && (0..=8_191).contains(&run.item));
        }
    }

    #[test]
    fn last_name_of_371_is_the_example_of_the_specification() {
        assert_eq!(last_name(371).as_str(), "PRICALLYOUGHT");
        assert_eq!(last_name(0).as_str(), "BARBARBAR");
        assert_eq!(last_name(999).as_str(), "EINGEINGEING");
    }

    #[test]
    fn data_marked_original_holds_the_word_at_every_position() {
        let mut random = Random::new(4);
        let mut first = [false; 43];
        for _ in 0..5_000 {
            let text: Text<50> = random.data(26, 50, true);
            assert!((26..=50).contains(&text.as_bytes().len()));
            first[text.as_str().find("ORIGINAL").unwrap()] = true;
        }
        assert!(first.iter().all(|&seen| seen));
        let plain: Text<50> = random.data(26, 50, false);
        assert!(!plain.as_str().contains("ORIGINAL"));
    }

    #[test]
    fn shuffle_keeps_the_elements_and_moves_each_everywhere() {
        let mut random = Random::new(5);
        let mut counts = [0u32; 25];
        for _ in 0..25_000 {
            let mut items = [0, 1, 2, 3, 4];
            random.shuffle(&mut items);
            for (position, item) in items.into_iter().enumerate() {
                counts[position * 5 + item] += 1;
            }
        }
        assert!(chi_square(&counts) < 60.0, "{counts:?}");
    }

    #[test]
    fn zip_is_four_digits_and_ones() {
        let zip = Random::new(6).zip();
        assert_eq!(&zip.as_str()[4..], "11111");
        assert!(zip.as_bytes()[..4].iter().all(u8::is_ascii_digit));
    }
}
