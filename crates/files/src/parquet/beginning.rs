//! The beginning of compressed bytes, without decompressing the rest.
//!
//! Responsible for: as many bytes as are asked for, or all that there are. Not responsible for: whether the rest is
//! sound.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use parquet::basic::Compression;

/// The first bytes of what `bytes` become, at least `wanted` or all; None where that cannot be had without the rest.
pub(super) fn beginning_of(compression: Compression, bytes: &[u8], wanted: usize) -> Option<Vec<u8>> {
    let read = |from: &mut dyn Read| {
        let mut beginning = Vec::with_capacity(wanted);
        from.take(wanted as u64).read_to_end(&mut beginning).ok()?;
        Some(beginning)
    };
    match compression {
        Compression::UNCOMPRESSED => Some(bytes[..wanted.min(bytes.len())].to_vec()),
        Compression::SNAPPY => snappy(bytes, wanted),
        Compression::GZIP(_) => read(&mut MultiGzDecoder::new(bytes)),
        Compression::ZSTD(_) => read(&mut zstd::stream::read::Decoder::with_buffer(bytes).ok()?),
        _ => None,
    }
}

/// Snappy's raw format: the length of the whole, then literals and copies of what came before.
fn snappy(bytes: &[u8], wanted: usize) -> Option<Vec<u8>> {
    let length_bytes = bytes.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let mut bytes = &bytes[length_bytes..];
    let mut beginning: Vec<u8> = Vec::with_capacity(wanted + 64);
    while beginning.len() < wanted
        && let Some((tag, rest)) = bytes.split_first()
    {
        let tag = *tag as usize;
        let number = |count: usize| {
            let bytes = rest.get(..count)?;
            Some(bytes.iter().rev().fold(0_usize, |number, byte| number << 8 | *byte as usize))
        };
        // Bytes behind the tag that belong to it, and the bytes that it stands for.
        let (skipped, length, offset) = match tag & 3 {
            0 if tag >> 2 < 60 => (0, (tag >> 2) + 1, None),
            0 => ((tag >> 2) - 59, number((tag >> 2) - 59)? + 1, None),
            1 => (1, (tag >> 2 & 7) + 4, Some((tag >> 5) << 8 | number(1)?)),
            2 => (2, (tag >> 2) + 1, Some(number(2)?)),
            _ => (4, (tag >> 2) + 1, Some(number(4)?)),
        };
        bytes = &rest[skipped..];
        if let Some(offset) = offset {
            let start = beginning.len().checked_sub(offset).filter(|_| offset > 0)?;
            if offset >= length {
                beginning.extend_from_within(start..start + length);
            } else {
                // It copies what it writes.
                (start..start + length).for_each(|at| beginning.push(beginning[at]));
            }
        } else {
            let taken = length.min(wanted - beginning.len());
            beginning.extend_from_slice(bytes.get(..taken)?);
            bytes = bytes.get(length..)?;
        }
    }
    Some(beginning)
}
