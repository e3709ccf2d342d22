//! The bytes of a log: segment headers, frames, records. Pure functions; no byte makes one panic.
//!
//! All numbers are little endian. A segment is a header of [`SEGMENT_HEADER_BYTES`], then frames, each at
//! a multiple of [`SECTOR_BYTES`] and padded with zeros to one, then zeros.
//!
//! ```text
//! segment header   0 magic 8 | 8 CRC 4 | 12 format 4 | 16 log id 8 | 24 number 8 | 32 first sequence 8
//!                  40 first ordinal 8 | 48 created (us) 8 | 56 lanes 4 | 60 zeros
//! frame header     0 magic 4 | 4 CRC 4 | 8 log id 8 | 16 sequence 8 | 24 first ordinal 8
//!                  32 base time (us) 8 | 40 body bytes 8 | 48 records 4 | 52 lanes 2 | 54 zeros 10
//! record           CRC 4 | length 1-5 | kind 1 | lane 1-3 | time 1-10 | payload
//! ```
//!
//! A record's length counts what is behind the length; its time is the zigzag distance to the frame's
//! base; the top bit of its kind says that it is crossing. I-1 Its CRC covers log id, sequence of the
//! frame, its own ordinal, and all of it behind the CRC, so that records neither change nor change
//! places. I-2 Magic, CRC and format stay where they are in every later format of segments.

use crc32c::{crc32c, crc32c_append};

/// The format of segments that this program writes and reads. Logs of format 1 have no control files, without which
/// nobody can tell that their end is missing.
pub const FORMAT: u32 = 2;

/// Bytes of a segment before its first frame.
pub const SEGMENT_HEADER_BYTES: usize = 4096;

/// What frames are aligned to: the least that a disk writes at once, so that writing one never touches
/// what another has made durable.
pub const SECTOR_BYTES: usize = 512;

/// Bytes of a frame before its first record.
pub const FRAME_HEADER_BYTES: usize = 64;

const SEGMENT_MAGIC: [u8; 8] = *b"ALBIRLOG";
const FRAME_MAGIC: [u8; 4] = *b"ALFR";

/// What no sequence, ordinal or number reaches, so that counting on never runs over.
pub(crate) const COUNT_LIMIT: u64 = 1 << 62;

/// The bit of a kind that says that a record is crossing.
const CROSSING: u8 = 0x80;

/// What a record is, for whom reads it: 0 to 127. The log gives it no meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Kind(pub u8);

impl Kind {
    /// Rows written by a transaction.
    pub const WRITE: Self = Self(1);
    /// A call of a procedure with its arguments, to be done again by the rules of this release. One by whose
    /// rules a call would leave other rows takes another number, and refuses this one.
    pub const COMMAND: Self = Self(2);
    /// A definition: tables, indexes, routines.
    pub const DEFINITION: Self = Self(3);
    /// A statement that changed many rows of one table, with its parameters, to be done again as a call is.
    pub const STATEMENT: Self = Self(4);
    /// A part of what a transaction writes that ends with [`Kind::JOINED`]; without that, nothing.
    pub const PART: Self = Self(5);
    /// The end of a transaction that left what it wrote in parts.
    pub const JOINED: Self = Self(6);
}

/// The head of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    pub(crate) log_id: u64,
    pub(crate) number: u64,
    pub(crate) first_sequence: u64,
    pub(crate) first_ordinal: u64,
    pub(crate) created_us: i64,
    pub(crate) lanes: u32,
}

/// Whether the first bytes of a file cannot be those of a segment, however far writing its header had come.
pub(crate) fn is_foreign(bytes: &[u8]) -> bool {
    let begins = SEGMENT_MAGIC.iter().zip(bytes).take_while(|(ours, found)| ours == found).count();
    bytes.iter().take(SEGMENT_MAGIC.len()).skip(begins).any(|&byte| byte != 0)
}

/// What the first bytes of a segment are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SegmentHead {
    /// A header of our format.
    Valid(SegmentHeader),
    /// A sound header of another format.
    Format(u32),
    /// All zeros, or nothing at all.
    Blank,
    /// Anything else.
    Broken,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; SEGMENT_HEADER_BYTES];
        bytes[..8].copy_from_slice(&SEGMENT_MAGIC);
        bytes[12..16].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.log_id.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.number.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.first_ordinal.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.created_us.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.lanes.to_le_bytes());
        let crc = segment_crc(&bytes);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        let read = Self::decode(&bytes);
        assert!(!matches!(read, SegmentHead::Valid(read) if read != *self), "a header reads back as written");
        bytes
    }

    /// What `bytes`, the beginning of a file, are.
    pub(crate) fn decode(bytes: &[u8]) -> SegmentHead {
        let bytes = &bytes[..bytes.len().min(SEGMENT_HEADER_BYTES)];
        if is_zero(bytes) {
            return SegmentHead::Blank;
        }
        let sound = bytes.len() == SEGMENT_HEADER_BYTES
            && bytes[..8] == SEGMENT_MAGIC
            && u32_at(bytes, 8) == segment_crc(bytes);
        if !sound {
            return SegmentHead::Broken;
        }
        match u32_at(bytes, 12) {
            FORMAT => {
                let header = Self {
                    log_id: u64_at(bytes, 16),
                    number: u64_at(bytes, 24),
                    first_sequence: u64_at(bytes, 32),
                    first_ordinal: u64_at(bytes, 40),
                    created_us: u64_at(bytes, 48) as i64,
                    lanes: u32_at(bytes, 56),
                };
                match header.first_sequence.max(header.first_ordinal) < COUNT_LIMIT {
                    true => SegmentHead::Valid(header),
                    false => SegmentHead::Broken,
                }
            }
            other => SegmentHead::Format(other),
        }
    }
}

fn segment_crc(bytes: &[u8]) -> u32 {
    crc32c_append(crc32c(&bytes[..8]), &bytes[12..])
}

/// The head of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameHeader {
    pub(crate) log_id: u64,
    pub(crate) sequence: u64,
    pub(crate) first_ordinal: u64,
    pub(crate) base_time_us: i64,
    pub(crate) body_bytes: u64,
    pub(crate) records: u32,
    pub(crate) lanes: u16,
}

impl FrameHeader {
    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        assert_eq!(bytes.len(), FRAME_HEADER_BYTES, "a frame's header has its room");
        bytes.fill(0);
        bytes[..4].copy_from_slice(&FRAME_MAGIC);
        bytes[8..16].copy_from_slice(&self.log_id.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_ordinal.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.base_time_us.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.records.to_le_bytes());
        bytes[52..54].copy_from_slice(&self.lanes.to_le_bytes());
        let crc = crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        debug_assert!(Self::decode(bytes).is_none_or(|read| read == *self), "a header reads back as written");
    }

    /// The header at the beginning of `bytes`, if there is a sound one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..FRAME_HEADER_BYTES)?;
        if bytes[..4] != FRAME_MAGIC || u32_at(bytes, 4) != crc32c(&bytes[8..]) {
            return None;
        }
        let header = Self {
            log_id: u64_at(bytes, 8),
            sequence: u64_at(bytes, 16),
            first_ordinal: u64_at(bytes, 24),
            base_time_us: u64_at(bytes, 32) as i64,
            body_bytes: u64_at(bytes, 40),
            records: u32_at(bytes, 48),
            lanes: u16::from_le_bytes([bytes[52], bytes[53]]),
        };
        (header.sequence.max(header.first_ordinal) < COUNT_LIMIT).then_some(header)
    }

    /// What CRCs of records begin with.
    pub(crate) fn seed(log_id: u64, sequence: u64) -> u32 {
        crc32c_append(crc32c(&log_id.to_le_bytes()), &sequence.to_le_bytes())
    }
}

/// Bytes of a frame on disk whose body has `body_bytes`; `None` if that does not fit 64 bits.
pub(crate) fn frame_bytes(body_bytes: u64) -> Option<u64> {
    body_bytes.checked_add(FRAME_HEADER_BYTES as u64)?.checked_next_multiple_of(SECTOR_BYTES as u64)
}

/// The CRC of a record: `rest` is all of it behind the CRC.
#[inline]
pub(crate) fn record_crc(seed: u32, ordinal: u64, rest: &[u8]) -> u32 {
    crc32c_append(crc32c_append(seed, &ordinal.to_le_bytes()), rest)
}

/// Writes what stands between a record's length and its payload.
#[inline]
pub(crate) fn put_head(out: &mut Vec<u8>, kind: Kind, crossing: bool, lane: u16, delta_us: i64) {
    assert!(kind.0 < CROSSING, "kinds of records are below {CROSSING}");
    out.push(if crossing { kind.0 | CROSSING } else { kind.0 });
    put_varint(out, u64::from(lane));
    put_varint(out, ((delta_us << 1) ^ (delta_us >> 63)) as u64);
}

/// A record where it lies in the body of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawRecord<'a> {
    pub(crate) crc: u32,
    /// All behind the CRC.
    pub(crate) rest: &'a [u8],
    pub(crate) kind: Kind,
    pub(crate) crossing: bool,
    pub(crate) lane: u64,
    pub(crate) delta_us: i64,
    pub(crate) payload: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// The record at the beginning of `body`, whose CRC is not looked at, and what follows; `None` if its
    /// fields do not fit.
    pub(crate) fn split(body: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (crc, behind) = body.split_at_checked(4)?;
        let (length, contents) = take_varint(behind)?;
        let length = usize::try_from(length).ok()?;
        let (contents, after) = contents.split_at_checked(length)?;
        let rest = &behind[..behind.len() - after.len()];
        let (&tag, contents) = contents.split_first()?;
        let (lane, contents) = take_varint(contents)?;
        let (delta, payload) = take_varint(contents)?;
        let delta_us = (delta >> 1) as i64 ^ -((delta & 1) as i64);
        debug_assert!(after.len() < body.len(), "splitting records off gets on");
        let record = Self {
            crc: u32_at(crc, 0),
            rest,
            kind: Kind(tag & !CROSSING),
            crossing: tag & CROSSING != 0,
            lane,
            delta_us,
            payload,
        };
        Some((record, after))
    }
}

/// Seven bits a byte, the least first; the top bit says that more follow.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number at the beginning of `bytes`, and what follows.
#[inline]
pub(crate) fn take_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if index == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte < 0x80 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    // Folding whole pieces is what the compiler makes wide instructions of.
    bytes.chunks(4096).all(|piece| piece.iter().fold(0, |all, byte| all | byte) == 0)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use albireo_testing::random_tests;
    use proptest::prelude::*;

    #[test]
    fn segment_header_of_another_format_is_told_from_a_broken_one() {
        let header = SegmentHeader {
            log_id: 7,
            number: 3,
            first_sequence: 40,
            first_ordinal: 90,
            created_us: -5,
            lanes: 4,
        };
        let mut bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes), SegmentHead::Valid(header));
        bytes[12] = 9;
        assert_eq!(SegmentHeader::decode(&bytes), SegmentHead::Broken);
        let crc = segment_crc(&bytes);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), SegmentHead::Format(9));
        assert_eq!(SegmentHeader::decode(&bytes[..100]), SegmentHead::Broken);
        assert_eq!(SegmentHeader::decode(&[]), SegmentHead::Blank);
        assert_eq!(SegmentHeader::decode(&[0; 5000]), SegmentHead::Blank);
    }

    #[test]
    fn usual_record_has_at_most_12_bytes_beside_its_payload() {
        let mut head = Vec::new();
        put_head(&mut head, Kind::COMMAND, false, 15, 50_000);
        let mut length = Vec::new();
        put_varint(&mut length, head.len() as u64 + 250);
        assert!(4 + length.len() + head.len() <= 12);
    }

    random_tests! {
        #![cases(256)]

        #[test]
        fn numbers_come_back(value in any::<u64>(), tail in any::<Vec<u8>>()) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            bytes.extend_from_slice(&tail);
            prop_assert_eq!(take_varint(&bytes), Some((value, &tail[..])));
        }

        #[test]
        fn heads_come_back(
            kind in 0u8..128, crossing in any::<bool>(), lane in any::<u16>(), delta in any::<i64>(),
            payload in any::<Vec<u8>>(),
        ) {
            let mut contents = Vec::new();
            put_head(&mut contents, Kind(kind), crossing, lane, delta);
            contents.extend_from_slice(&payload);
            let mut body = vec![1, 2, 3, 4];
            put_varint(&mut body, contents.len() as u64);
            body.extend_from_slice(&contents);
            body.push(99);
            let (record, after) = RawRecord::split(&body).unwrap();
            prop_assert_eq!((record.kind, record.crossing), (Kind(kind), crossing));
            prop_assert_eq!((record.lane, record.delta_us), (u64::from(lane), delta));
            prop_assert_eq!(record.payload, &payload[..]);
            prop_assert_eq!(after, &[99]);
        }

        #[test]
        fn any_bytes_are_refused_or_read_without_a_panic(bytes in any::<Vec<u8>>()) {
            let mut rest = &bytes[..];
            while let Some((_, after)) = RawRecord::split(rest) {
                prop_assert!(after.len() < rest.len());
                rest = after;
            }
            FrameHeader::decode(&bytes);
            SegmentHeader::decode(&bytes);
        }
    }
}
