//! Hashes of bytes: MD5 (RFC 1321) and the SHA-2 family (FIPS 180-4).
//!
//! The constants are computed as the standards define them: sines, and fractions of square and cube roots of
//! primes.

use std::sync::LazyLock;

use num_bigint::BigUint;

/// MD5.
pub(super) fn md5(bytes: &[u8]) -> [u8; 16] {
    const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    static SINES: LazyLock<[u32; 64]> =
        LazyLock::new(|| std::array::from_fn(|i| ((i as f64 + 1.0).sin().abs() * 4_294_967_296.0) as u32));
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded(bytes, 64, false).chunks_exact(64) {
        let word = |n: usize| u32::from_le_bytes(std::array::from_fn(|i| block[n * 4 + i]));
        let [mut a, mut b, mut c, mut d] = state;
        for i in 0..64 {
            let (mix, n) = match i / 16 {
                0 => ((b & c) | (!b & d), i),
                1 => ((d & b) | (!d & c), (5 * i + 1) % 16),
                2 => (b ^ c ^ d, (3 * i + 5) % 16),
                _ => (c ^ (b | !d), 7 * i % 16),
            };
            let sum = a.wrapping_add(mix).wrapping_add(SINES[i]).wrapping_add(word(n));
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(SHIFTS[i / 16][i % 4]));
        }
        for (part, new) in state.iter_mut().zip([a, b, c, d]) {
            *part = part.wrapping_add(new);
        }
    }
    let mut out = [0; 16];
    for (place, part) in out.chunks_exact_mut(4).zip(state) {
        place.copy_from_slice(&part.to_le_bytes());
    }
    out
}

/// The bytes, a one, zeros, and their length in bits, in whole blocks.
fn padded(bytes: &[u8], block: usize, big_endian: bool) -> Vec<u8> {
    let length = block / 8;
    let mut all = bytes.to_vec();
    all.push(0x80);
    let whole = (all.len() + length).next_multiple_of(block);
    all.resize(whole - length, 0);
    let bits = (bytes.len() as u64).wrapping_mul(8);
    if big_endian {
        all.resize(all.len() + length - 8, 0);
        all.extend(bits.to_be_bytes());
    } else {
        all.extend(bits.to_le_bytes());
    }
    all
}

/// The constants of SHA-2.
struct Constants {
    /// Fractions of the cube roots of the first 80 primes.
    rounds: [u64; 80],
    /// Fractions of the square roots of the first 16 primes.
    starts: [u64; 16],
}

static CONSTANTS: LazyLock<Constants> = LazyLock::new(|| {
    let is_prime = |n: &u64| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    let primes: Vec<u64> = (2..).filter(is_prime).take(80).collect();
    let fraction = |root: BigUint| root.iter_u64_digits().next().unwrap_or(0);
    Constants {
        rounds: std::array::from_fn(|i| fraction((BigUint::from(primes[i]) << 192_u32).cbrt())),
        starts: std::array::from_fn(|i| fraction((BigUint::from(primes[i]) << 128_u32).sqrt())),
    }
});

/// SHA-256, and with `short` SHA-224.
pub(super) fn sha256(bytes: &[u8], short: bool) -> Vec<u8> {
    let constants = &*CONSTANTS;
    let mut state: [u32; 8] = std::array::from_fn(|i| match short {
        true => constants.starts[8 + i] as u32,
        false => (constants.starts[i] >> 32) as u32,
    });
    for block in padded(bytes, 64, true).chunks_exact(64) {
        let mut words = [0_u32; 64];
        for i in 0..64 {
            words[i] = match i {
                0..16 => u32::from_be_bytes(std::array::from_fn(|b| block[i * 4 + b])),
                _ => {
                    let (a, b) = (words[i - 15], words[i - 2]);
                    let first = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
                    let second = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
                    words[i - 16].wrapping_add(first).wrapping_add(words[i - 7]).wrapping_add(second)
                }
            };
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (word, round) in words.iter().zip(&constants.rounds) {
            let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = (e & f) ^ (!e & g);
            let round = (round >> 32) as u32;
            let first = h.wrapping_add(sum).wrapping_add(choice).wrapping_add(round).wrapping_add(*word);
            let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let second = sum.wrapping_add((a & b) ^ (a & c) ^ (b & c));
            (h, g, f, e) = (g, f, e, d.wrapping_add(first));
            (d, c, b, a) = (c, b, a, first.wrapping_add(second));
        }
        for (part, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *part = part.wrapping_add(new);
        }
    }
    let all = state.into_iter().flat_map(u32::to_be_bytes);
    all.take(if short { 28 } else { 32 }).collect()
}

/// SHA-512, and with `short` SHA-384.
pub(super) fn sha512(bytes: &[u8], short: bool) -> Vec<u8> {
    let constants = &*CONSTANTS;
    let mut state: [u64; 8] = std::array::from_fn(|i| constants.starts[i + if short { 8 } else { 0 }]);
    for block in padded(bytes, 128, true).chunks_exact(128) {
        let mut words = [0_u64; 80];
        for i in 0..80 {
            words[i] = match i {
                0..16 => u64::from_be_bytes(std::array::from_fn(|b| block[i * 8 + b])),
                _ => {
                    let (a, b) = (words[i - 15], words[i - 2]);
                    let first = a.rotate_right(1) ^ a.rotate_right(8) ^ (a >> 7);
                    let second = b.rotate_right(19) ^ b.rotate_right(61) ^ (b >> 6);
                    words[i - 16].wrapping_add(first).wrapping_add(words[i - 7]).wrapping_add(second)
                }
            };
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (word, round) in words.iter().zip(&constants.rounds) {
            let sum = e.rotate_right(14) ^ e.rotate_right(18) ^ e.rotate_right(41);
            let choice = (e & f) ^ (!e & g);
            let first = h.wrapping_add(sum).wrapping_add(choice).wrapping_add(*round).wrapping_add(*word);
            let sum = a.rotate_right(28) ^ a.rotate_right(34) ^ a.rotate_right(39);
            let second = sum.wrapping_add((a & b) ^ (a & c) ^ (b & c));
            (h, g, f, e) = (g, f, e, d.wrapping_add(first));
            (d, c, b, a) = (c, b, a, first.wrapping_add(second));
        }
        for (part, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *part = part.wrapping_add(new);
        }
    }
    let all = state.into_iter().flat_map(u64::to_be_bytes);
    all.take(if short { 48 } else { 64 }).collect()
}
