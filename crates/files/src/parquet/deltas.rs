//! Texts of a page in which their lengths are stored as deltas, before they are decoded.
//!
//! Responsible for: as many lengths as the page has values, and texts that fit in memory. Such pages are rare;
//! their beginning is decompressed for this, and all of it only where that is not enough.
//!
//! The decoder allocates as many lengths as their own header says, before it looks for them.

use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::schema::types::ColumnDescriptor;

use super::MOST_BYTES;

/// More texts no page may have: their lengths are decoded at once.
const MOST_VALUES: u64 = 1 << 26;

/// Whether the texts of `page` are as many as it says and not too long. None where the decoder will find an end too
/// early.
pub(super) fn is_page_sound(page: &Page, column: &ColumnDescriptor) -> Option<bool> {
    match page {
        Page::DataPage { buf, encoding, num_values, def_level_encoding, rep_level_encoding, .. } => {
            let levels =
                [(column.max_rep_level(), rep_level_encoding), (column.max_def_level(), def_level_encoding)];
            let mut bytes = &buf[..];
            for (level, encoding) in levels {
                bytes = bytes.get(level_bytes(level, *encoding, *num_values, bytes)?..)?;
            }
            are_sound(bytes, *encoding, *num_values)
        }
        Page::DataPageV2 { buf, encoding, num_values, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
            are_sound(buf.get(levels..)?, *encoding, *num_values)
        }
        Page::DictionaryPage { .. } => None,
    }
}

/// How many of the first bytes of so many values have their lengths, most often.
pub(super) fn expected_bytes(encoding: Encoding, values: u32) -> usize {
    match encoding {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => 64,
        _ => 4096 + 3 * values as usize,
    }
}

/// Whether `bytes` begin with lengths of at most so many texts that are not too long. None if they end too early.
pub(super) fn are_sound(bytes: &[u8], encoding: Encoding, values: u32) -> Option<bool> {
    let most = u64::from(values).min(MOST_VALUES);
    match encoding {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => Some(Lengths::new(bytes)?.left <= most),
        Encoding::DELTA_BYTE_ARRAY => is_bounded(bytes, most),
        _ => Some(true),
    }
}

/// Bytes of a page's levels; None if the decoder will find them too short.
fn level_bytes(max_level: i16, encoding: Encoding, values: u32, bytes: &[u8]) -> Option<usize> {
    if max_level <= 0 {
        return Some(0);
    }
    if encoding == Encoding::RLE {
        let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
        return Some(4 + length as usize);
    }
    let width = u64::from(16 - max_level.unsigned_abs().leading_zeros());
    usize::try_from((u64::from(values) * width).div_ceil(8)).ok()
}

/// Whether texts that share beginnings are few and short enough. None where the decoder will find an end too early.
fn is_bounded(bytes: &[u8], most: u64) -> Option<bool> {
    let mut prefixes = Lengths::new(bytes)?;
    if prefixes.left > most {
        return Some(false);
    }
    let mut shared = Vec::new();
    while let Some(length) = prefixes.next()? {
        shared.push(length);
    }
    let mut suffixes = Lengths::new(bytes.get(prefixes.end()..)?)?;
    if suffixes.left > most {
        return Some(false);
    }
    let (mut length, mut total) = (0_u64, 0_u64);
    for shared in shared {
        let Some(suffix) = suffixes.next()? else { break };
        // The decoder takes a negative length for a huge one.
        length = length.min(i64::from(shared) as u64).saturating_add(i64::from(suffix) as u64);
        total = total.saturating_add(length);
    }
    Some(total <= MOST_BYTES)
}

/// Lengths as DELTA_BINARY_PACKED has them.
struct Lengths<'a> {
    bytes: &'a [u8],
    at: usize,
    left: u64,
    is_first: bool,
    last: i32,
    min_delta: i32,
    /// The widths of the current block's parts, in bits, and which part is next.
    widths: &'a [u8],
    next_part: usize,
    parts: usize,
    part_values: usize,
    /// Of the current part: values left, their width, and the next one's first bit.
    part_left: usize,
    width: usize,
    bit: usize,
    /// Where the current block ends.
    block_end: usize,
}

impl<'a> Lengths<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let mut at = 0;
        let block = usize::try_from(unsigned(bytes, &mut at)?).ok()?;
        let parts = usize::try_from(unsigned(bytes, &mut at)?).ok()?;
        let left = unsigned(bytes, &mut at)?;
        let first = signed(bytes, &mut at)?;
        let part_values = block.checked_div(parts)?;
        Some(Self {
            bytes,
            at,
            left,
            is_first: true,
            last: first as i32,
            min_delta: 0,
            widths: &[],
            next_part: 0,
            parts,
            part_values,
            part_left: 0,
            width: 0,
            bit: 0,
            block_end: 0,
        })
    }

    #[inline]
    /// The next length, `Some(None)` after the last, None if there is no more of it.
    fn next(&mut self) -> Option<Option<i32>> {
        if self.left == 0 {
            return Some(None);
        }
        if !std::mem::take(&mut self.is_first) {
            if self.part_left == 0 {
                self.next_part()?;
            }
            let delta = bits(self.bytes, self.bit, self.width)?;
            self.bit += self.width;
            self.part_left -= 1;
            self.last = self.last.wrapping_add(self.min_delta).wrapping_add(delta as i32);
        }
        self.left -= 1;
        Some(Some(self.last))
    }

    fn next_part(&mut self) -> Option<()> {
        if self.next_part == self.widths.len() {
            self.at = self.at.max(self.block_end);
            self.min_delta = signed(self.bytes, &mut self.at)? as i32;
            self.widths = self.bytes.get(self.at..)?.get(..self.parts)?;
            self.at += self.parts;
            self.bit = self.at.checked_mul(8)?;
            self.next_part = 0;
            self.block_end = self.at;
            let mut left = self.left;
            for width in self.widths {
                if left > 0 {
                    let bytes = (*width as usize).checked_mul(self.part_values)? / 8;
                    self.block_end = self.block_end.checked_add(bytes)?;
                }
                left = left.saturating_sub(self.part_values as u64);
            }
        }
        self.width = *self.widths.get(self.next_part)? as usize;
        self.next_part += 1;
        self.part_left = self.part_values;
        (self.width <= 32 && self.part_left > 0).then_some(())
    }

    /// Where the bytes after all lengths begin.
    fn end(&self) -> usize {
        self.at.max(self.block_end)
    }
}

/// `width` bits from the given one, the lowest first.
fn bits(bytes: &[u8], first: usize, width: usize) -> Option<u32> {
    if width == 0 {
        return Some(0);
    }
    let word = match bytes.get(first / 8..first / 8 + 8) {
        Some(word) => u64::from_le_bytes(word.try_into().ok()?),
        None => {
            let bytes = bytes.get(first / 8..(first + width).div_ceil(8))?;
            bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
        }
    };
    Some((word >> (first % 8) & ((1 << width) - 1)) as u32)
}

fn unsigned(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f).wrapping_shl(shift);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn signed(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let value = unsigned(bytes, at)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths that grow by `step`, as one block without a bit for each of them.
    fn growing(count: u64, first: i64, step: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |mut value: u64| {
            while value > 0x7f {
                bytes.push(value as u8 | 0x80);
                value >>= 7;
            }
            bytes.push(value as u8);
        };
        put(1 << 20);
        put(1);
        put(count);
        put((first << 1) as u64);
        put((step << 1) as u64);
        bytes.push(0);
        bytes
    }

    #[test]
    fn lengths_are_as_they_were_written() {
        let bytes = growing(4, 5, 3);
        let mut lengths = Lengths::new(&bytes).unwrap();
        let read: Vec<_> = std::iter::from_fn(|| lengths.next().unwrap()).collect();
        assert_eq!((read, lengths.end()), (vec![5, 8, 11, 14], bytes.len()));
        // Eight values of three bits: 0 to 7.
        assert_eq!(
            (0..8).map(|n| bits(&[0x88, 0xc6, 0xfa], n * 3, 3).unwrap()).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5, 6, 7]
        );
    }

    #[test]
    fn texts_that_share_too_much_or_are_too_many_are_refused() {
        let texts = |count| [growing(count, 0, 1_000_000), growing(count, 1_000_000, -1_000_000)].concat();
        assert_eq!(is_bounded(&texts(2), 1_000_000), Some(true));
        let shared =
            |count| [growing(count, 0, 1 << 20), growing(1, 1 << 20, 0), growing(count, 0, 0)].concat();
        assert_eq!(is_bounded(&shared(3), 2), Some(false));
        let mut suffixes = growing(5000, 1 << 20, -(1 << 20));
        suffixes.extend(growing(1, 0, 0));
        assert_eq!(is_bounded(&[growing(5000, 0, 1 << 20), suffixes].concat(), 5000), Some(false));
        assert!(Lengths::new(&growing(1 << 40, 0, 0)).unwrap().left > MOST_VALUES);
    }
}
