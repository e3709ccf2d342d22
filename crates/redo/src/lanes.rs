//! Records in memory, before they are a frame: a lane for each partition, one buffer for crossing records.
//!
//! Responsible for: appending, cutting all lanes at one moment, bringing the records of a batch into an
//! order. Not responsible for: when batches are closed, and what becomes of them (`writer`).
//!
//! I-1 A batch is exactly what had been appended at one moment: all lanes are locked while their buffers
//! are taken. I-2 Batches have consecutive sequences, an empty one takes none, and they wait in the order
//! of their sequences. I-3 A crossing record is behind everything appended before it and before
//! everything appended after it: appending it locks all lanes and leaves a cut in each. Locks are taken in
//! the order lane 0, lane 1, ..., crossing, queue.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::format::{FRAME_HEADER_BYTES, FrameHeader, frame_bytes, put_head, put_varint, record_crc};
use crate::{Header, LogError, Ticket};

/// No record in the open batch yet.
const UNSET: i64 = i64::MIN;

/// Bytes that an idle buffer may keep; more is given back.
const KEPT_BYTES: usize = 4 << 20;

/// In memory a record begins with its length in so many bytes; on disk with CRC and varint.
const LENGTH_BYTES: usize = 4;

/// All lanes of a log.
pub(crate) struct Lanes {
    cells: Vec<Cell>,
    crossing: Mutex<Buffer>,
    crossing_bytes: AtomicU64,
    /// Ordinal of the open batch's first record; changed with all lanes locked.
    next_ordinal: AtomicU64,
    /// Time of the open batch's first record; changed from [`UNSET`] under the lock of any lane, and back
    /// under those of all.
    base_time_us: AtomicI64,
    queue: Mutex<Queue>,
    /// Bytes of batches that are closed and not written.
    backlog_bytes: AtomicU64,
}

/// One lane, with its cache lines for itself.
#[repr(align(128))]
struct Cell {
    lane: Mutex<Lane>,
    /// Bytes in the open batch: written under the lock, read without.
    open_bytes: AtomicU64,
    /// The batch of the lane's last record: written under the lock, read without.
    last: AtomicU64,
}

struct Lane {
    buffer: Buffer,
    /// The open batch; the same in all lanes while all are locked.
    sequence: u64,
    /// The open batch's base time, once this lane has asked for it.
    base_time_us: Option<i64>,
}

/// Records one behind the other.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// Where the last whole record ends; behind it may be what a panic left.
    end: usize,
    records: u32,
    /// Where the records end that come before the first crossing record, the second, ...
    cuts: Vec<usize>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Batch>,
    spare: Vec<Vec<Buffer>>,
}

/// A moment at which a batch was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sealed {
    /// Sequence of the newest closed batch: everything before the moment is in frames up to it.
    pub sequence: u64,
    /// Ordinal of the first record that is in none of them.
    pub next_ordinal: u64,
}

/// A closed batch: a frame to be.
pub(crate) struct Batch {
    pub(crate) sequence: u64,
    pub(crate) base_time_us: i64,
    pub(crate) records: u32,
    /// Bytes of the records as they are in memory.
    pub(crate) bytes: u64,
    /// The buffers of all lanes, and behind them that of crossing records.
    buffers: Vec<Buffer>,
}

impl Lanes {
    pub(crate) fn new(lanes: usize, next_sequence: u64, next_ordinal: u64) -> Self {
        assert!((1..=usize::from(u16::MAX)).contains(&lanes), "{lanes} lanes");
        let cell = |_| Cell {
            lane: Mutex::new(Lane { buffer: Buffer::default(), sequence: next_sequence, base_time_us: None }),
            open_bytes: AtomicU64::new(0),
            last: AtomicU64::new(0),
        };
        Self {
            cells: (0..lanes).map(cell).collect(),
            crossing: Mutex::default(),
            crossing_bytes: AtomicU64::new(0),
            next_ordinal: AtomicU64::new(next_ordinal),
            base_time_us: AtomicI64::new(UNSET),
            queue: Mutex::default(),
            backlog_bytes: AtomicU64::new(0),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Appends a record of one lane; `check` is asked under the lane's lock.
    #[inline]
    pub(crate) fn append(
        &self,
        lane: usize,
        header: Header,
        check: impl FnOnce() -> Result<(), LogError>,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Ticket, LogError> {
        let cell = &self.cells[lane];
        let mut open = cell.lane.lock();
        check()?;
        let base = self.base_time_us(&mut open, header.time_us);
        open.buffer.push(header, base, Some(lane as u16), encode)?;
        cell.open_bytes.store(open.buffer.end as u64, Ordering::Relaxed);
        debug_assert!(cell.last.load(Ordering::Relaxed) <= open.sequence, "a lane's batches never go back");
        cell.last.store(open.sequence, Ordering::Release);
        Ok(Ticket(open.sequence))
    }

    /// Appends a crossing record, ordered against all others.
    pub(crate) fn append_crossing(
        &self,
        header: Header,
        check: impl FnOnce() -> Result<(), LogError>,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Ticket, LogError> {
        let mut open = self.lock_all();
        check()?;
        let sequence = open[0].sequence;
        assert!(open.iter().all(|lane| lane.sequence == sequence), "lanes are cut together (I-1)");
        let base = self.base_time_us(&mut open[0], header.time_us);
        let mut crossing = self.crossing.lock();
        crossing.push(header, base, None, encode)?;
        self.crossing_bytes.store(crossing.end as u64, Ordering::Relaxed);
        for (cell, lane) in self.cells.iter().zip(&mut open) {
            let end = lane.buffer.end;
            lane.buffer.cuts.push(end);
            let cuts = lane.buffer.cuts.len();
            assert_eq!(cuts, crossing.records as usize, "each crossing record cuts each lane (I-3)");
            debug_assert!(cell.last.load(Ordering::Relaxed) <= sequence, "a lane's batches never go back");
            cell.last.store(sequence, Ordering::Release);
        }
        Ok(Ticket(sequence))
    }

    fn lock_all(&self) -> Vec<MutexGuard<'_, Lane>> {
        self.cells.iter().map(|cell| cell.lane.lock()).collect()
    }

    /// The open batch's base time, which is `time_us` if nobody has set it.
    #[inline]
    fn base_time_us(&self, lane: &mut Lane, time_us: i64) -> i64 {
        *lane.base_time_us.get_or_insert_with(|| {
            let mine = time_us.max(UNSET + 1);
            // Locks order this against closing; the exchange, against other lanes.
            match self.base_time_us.compare_exchange(UNSET, mine, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => mine,
                Err(theirs) => theirs,
            }
        })
    }

    /// Closes the open batch unless it is empty; returns what is closed.
    pub(crate) fn close(&self) -> Sealed {
        let mut fresh = self.queue.lock().spare.pop().unwrap_or_default();
        fresh.resize_with(self.cells.len() + 1, Buffer::default);
        debug_assert!(fresh.iter().all(Buffer::is_empty), "a spare buffer was cleared");
        let mut open = self.lock_all();
        let mut crossing = self.crossing.lock();
        let sequence = open[0].sequence;
        let records: u32 = open.iter().map(|lane| lane.buffer.records).sum::<u32>() + crossing.records;
        if records == 0 {
            self.queue.lock().spare.push(fresh);
            let next_ordinal = self.next_ordinal.load(Ordering::Relaxed);
            return Sealed { sequence: sequence - 1, next_ordinal };
        }
        for (lane, fresh) in open.iter_mut().zip(&mut fresh) {
            assert_eq!(lane.sequence, sequence, "lanes are cut together");
            debug_assert_eq!(lane.buffer.cuts.len(), crossing.records as usize, "crossing records cut lanes");
            std::mem::swap(&mut lane.buffer, fresh);
            lane.sequence += 1;
            lane.base_time_us = None;
        }
        std::mem::swap(&mut *crossing, &mut fresh[self.cells.len()]);
        let bytes = fresh.iter().map(|buffer| buffer.end as u64).sum();
        let base_time_us = self.base_time_us.swap(UNSET, Ordering::Relaxed);
        assert_ne!(base_time_us, UNSET, "a batch with records has the time of the first");
        self.backlog_bytes.fetch_add(bytes, Ordering::Relaxed);
        for cell in &self.cells {
            cell.open_bytes.store(0, Ordering::Relaxed);
        }
        self.crossing_bytes.store(0, Ordering::Relaxed);
        let batch = Batch { sequence, base_time_us, records, bytes, buffers: fresh };
        {
            let waiting = &mut self.queue.lock().waiting;
            let newest = waiting.back().map_or(sequence - 1, |batch| batch.sequence);
            assert_eq!(newest + 1, sequence, "batches wait in the order of consecutive sequences (I-2)");
            waiting.push_back(batch);
        }
        let next_ordinal =
            self.next_ordinal.fetch_add(u64::from(records), Ordering::Relaxed) + u64::from(records);
        Sealed { sequence, next_ordinal }
    }

    /// Takes the oldest closed batch out.
    pub(crate) fn take(&self) -> Option<Batch> {
        self.queue.lock().waiting.pop_front()
    }

    /// Counts a closed batch as written.
    pub(crate) fn written(&self, batch: &Batch) {
        let before = self.backlog_bytes.fetch_sub(batch.bytes, Ordering::Relaxed);
        assert!(before >= batch.bytes, "no more is written than was closed");
    }

    /// Takes the buffers of a written batch back, to be filled again.
    pub(crate) fn recycle(&self, mut batch: Batch) {
        assert_eq!(batch.buffers.len(), self.cells.len() + 1, "a batch has a buffer for each lane, and one");
        for buffer in &mut batch.buffers {
            buffer.clear();
        }
        let mut queue = self.queue.lock();
        if queue.spare.len() < 2 {
            queue.spare.push(batch.buffers);
        }
    }

    /// Whether anything waits to be written. Whoever appends after this has looked at its lane sees what
    /// the caller did before: the lane's lock orders the two.
    pub(crate) fn has_work(&self) -> bool {
        let open = self.cells.iter().any(|cell| cell.lane.lock().buffer.records > 0);
        // Sealing moves records from lanes to the queue with all lanes locked, so that what was missed
        // above is seen here. The crossing buffer is filled with all lanes locked as well.
        open || self.crossing.lock().records > 0 || !self.queue.lock().waiting.is_empty()
    }

    /// Bytes of records that wait to be written, about.
    pub(crate) fn pending_bytes(&self) -> u64 {
        let open: u64 = self.cells.iter().map(|cell| cell.open_bytes.load(Ordering::Relaxed)).sum();
        open + self.crossing_bytes.load(Ordering::Relaxed) + self.backlog_bytes.load(Ordering::Relaxed)
    }

    /// Whether a closed batch waits.
    pub(crate) fn has_closed(&self) -> bool {
        self.backlog_bytes.load(Ordering::Relaxed) > 0
    }

    /// The batch of the last record that is in the lane or crosses it.
    pub(crate) fn last(&self, lane: usize) -> u64 {
        self.cells[lane].last.load(Ordering::Acquire)
    }
}

impl Buffer {
    #[inline]
    fn push(
        &mut self,
        header: Header,
        base_time_us: i64,
        lane: Option<u16>,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), LogError> {
        debug_assert!(self.bytes.len() >= self.end, "whole records are in the buffer");
        self.bytes.truncate(self.end);
        let start = self.end;
        self.bytes.extend_from_slice(&[0; LENGTH_BYTES]);
        let delta = header.time_us.wrapping_sub(base_time_us);
        put_head(&mut self.bytes, header.kind, lane.is_none(), lane.unwrap_or(0), delta);
        let payload = self.bytes.len();
        encode(&mut self.bytes);
        assert!(self.bytes.len() >= payload, "a record's encoder only appends");
        let length = self.bytes.len() - start - LENGTH_BYTES;
        let prefix = u32::try_from(length).map_err(|_| LogError::TooLong { bytes: length })?;
        self.bytes[start..start + LENGTH_BYTES].copy_from_slice(&prefix.to_le_bytes());
        self.end = self.bytes.len();
        self.records += 1;
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.end == 0 && self.records == 0 && self.cuts.is_empty()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.cuts.clear();
        (self.end, self.records) = (0, 0);
    }

    /// The records between two places.
    fn records(&self, from: usize, to: usize) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[from..to];
        std::iter::from_fn(move || {
            let Some((length, behind)) = rest.split_first_chunk::<LENGTH_BYTES>() else {
                debug_assert!(rest.is_empty(), "cuts are between records");
                return None;
            };
            let (record, after) = behind.split_at(u32::from_le_bytes(*length) as usize);
            rest = after;
            Some(record)
        })
    }
}

impl Batch {
    /// The records in a valid serial order, without their lengths: between two crossing records those of
    /// lane 0, of lane 1, ...
    fn records(&self) -> impl Iterator<Item = &[u8]> {
        let (crossing, lanes) = self.buffers.split_last().expect("a batch has a crossing buffer");
        let mut crossings = crossing.records(0, crossing.end);
        let cuts = crossing.records as usize;
        debug_assert!(
            lanes.iter().all(|lane| lane.cuts.len() == cuts),
            "crossing records cut all lanes (I-3)"
        );
        debug_assert!(lanes.iter().all(|lane| lane.cuts.is_sorted()), "cuts are in the order of records");
        let spans = lanes[0].cuts.len() + 1;
        (0..spans).flat_map(move |span| {
            let next = crossings.next();
            let own = lanes.iter().flat_map(move |lane| {
                let from = if span == 0 { 0 } else { lane.cuts[span - 1] };
                let to = lane.cuts.get(span).copied().unwrap_or(lane.end);
                lane.records(from, to)
            });
            own.chain(next)
        })
    }

    /// Makes the batch a frame in `out`, whatever was there.
    pub(crate) fn assemble(&self, log_id: u64, first_ordinal: u64, out: &mut Vec<u8>) {
        assert!(self.records > 0, "an empty batch takes no sequence (I-2)");
        out.clear();
        out.resize(FRAME_HEADER_BYTES, 0);
        let seed = FrameHeader::seed(log_id, self.sequence);
        let mut ordinal = first_ordinal;
        for record in self.records() {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            put_varint(out, record.len() as u64);
            out.extend_from_slice(record);
            let crc = record_crc(seed, ordinal, &out[start + 4..]);
            out[start..start + 4].copy_from_slice(&crc.to_le_bytes());
            ordinal += 1;
        }
        assert_eq!(ordinal - first_ordinal, u64::from(self.records), "every record is in the frame");
        let header = FrameHeader {
            log_id,
            sequence: self.sequence,
            first_ordinal,
            base_time_us: self.base_time_us,
            body_bytes: (out.len() - FRAME_HEADER_BYTES) as u64,
            records: self.records,
            lanes: (self.buffers.len() - 1) as u16,
        };
        header.encode(&mut out[..FRAME_HEADER_BYTES]);
        let bytes = frame_bytes(header.body_bytes).expect("a frame in memory fits 64 bits");
        out.resize(bytes as usize, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Kind, RawRecord};

    fn header(time_us: i64) -> Header {
        Header { kind: Kind::WRITE, time_us }
    }

    fn append(lanes: &Lanes, lane: usize, text: &str) -> u64 {
        let put = |out: &mut Vec<u8>| out.extend_from_slice(text.as_bytes());
        lanes.append(lane, header(5), || Ok(()), put).unwrap().0
    }

    fn cross(lanes: &Lanes, text: &str) -> u64 {
        let put = |out: &mut Vec<u8>| out.extend_from_slice(text.as_bytes());
        lanes.append_crossing(header(5), || Ok(()), put).unwrap().0
    }

    fn texts(batch: &Batch) -> Vec<String> {
        let mut out = Vec::new();
        batch.assemble(1, 1, &mut out);
        let header = FrameHeader::decode(&out).unwrap();
        let mut rest = &out[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + header.body_bytes as usize];
        let mut texts = Vec::new();
        while let Some((record, after)) = RawRecord::split(rest) {
            texts.push(String::from_utf8(record.payload.to_vec()).unwrap());
            rest = after;
        }
        assert!(rest.is_empty());
        texts
    }

    #[test]
    fn crossing_records_stand_between_what_came_before_and_after_in_every_lane() {
        let lanes = Lanes::new(2, 1, 1);
        append(&lanes, 1, "b1");
        append(&lanes, 0, "a1");
        cross(&lanes, "x");
        append(&lanes, 1, "b2");
        cross(&lanes, "y");
        cross(&lanes, "z");
        append(&lanes, 0, "a2");
        assert_eq!(lanes.close().sequence, 1);
        assert_eq!(texts(&lanes.take().unwrap()), ["a1", "b1", "x", "b2", "y", "z", "a2"]);
    }

    #[test]
    fn empty_batch_takes_no_sequence_and_recycled_buffers_are_empty() {
        let lanes = Lanes::new(2, 10, 1);
        assert_eq!(lanes.close().sequence, 9);
        assert!(lanes.take().is_none());
        assert_eq!(append(&lanes, 0, "first"), 10);
        assert_eq!(lanes.close().sequence, 10);
        assert_eq!(lanes.close().sequence, 10);
        assert!(lanes.pending_bytes() > 0);
        let batch = lanes.take().unwrap();
        lanes.written(&batch);
        lanes.recycle(batch);
        assert_eq!(lanes.pending_bytes(), 0);
        assert_eq!(cross(&lanes, "second"), 11);
        assert_eq!(lanes.close().sequence, 11);
        assert_eq!(texts(&lanes.take().unwrap()), ["second"]);
        assert_eq!((lanes.last(0), lanes.last(1)), (11, 11));
    }

    #[test]
    fn encoder_that_panics_leaves_nothing() {
        let lanes = Lanes::new(1, 1, 1);
        append(&lanes, 0, "before");
        let panicking = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            lanes.append(
                0,
                header(5),
                || Ok(()),
                |out| {
                    out.extend_from_slice(b"half");
                    panic!("an encoder with a bug");
                },
            )
        }));
        assert!(panicking.is_err());
        append(&lanes, 0, "after");
        lanes.close();
        assert_eq!(texts(&lanes.take().unwrap()), ["before", "after"]);
    }
}
