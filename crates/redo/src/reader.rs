//! Reads a log back, frame by frame, and tells a torn tail from corruption.
//!
//! A segment is read whole, so that looking for what follows a fault is looking at memory.
//!
//! What does not check is a *torn tail* if nothing follows that was written after it: no sound header of a
//! later frame at any sector behind, and no later segment with a header. Then a crash interrupted writing
//! it, and it is left out with a notice ([`End::torn`]). Otherwise it is *corrupt*: it had been durable. A copy of
//! the log's own bytes inside of a payload cannot pass for what follows, as only sequences count that are higher
//! than any written before. Damage to the last frame looks like a torn tail here: whoever reads must hold the end
//! against the control files ([`Controls::judge`](crate::Controls::judge)).

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_env::Disk;

use crate::error::{Corruption, Evidence, Fault, ReadError};
use crate::format::{
    FRAME_HEADER_BYTES, FrameHeader, Kind, RawRecord, SECTOR_BYTES, SEGMENT_HEADER_BYTES, SegmentHead,
    SegmentHeader, frame_bytes, is_foreign, is_zero, record_crc,
};
use crate::segment::{self, SegmentFile};

/// A record read back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// Its number over all records, from 1; a record has the same for ever.
    pub ordinal: u64,
    /// Its lane; 0 for a crossing one.
    pub lane: u16,
    /// Whether it is ordered against all lanes.
    pub crossing: bool,
    /// What it is.
    pub kind: Kind,
    /// When, in microseconds since 1970.
    pub time_us: i64,
    /// What was encoded.
    pub payload: &'a [u8],
}

/// A frame that has been checked wholly. Cheap to clone; keeps its segment's bytes in memory.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Its sequence.
    pub sequence: u64,
    /// Ordinal of its first record.
    pub first_ordinal: u64,
    /// How many records it has.
    pub record_count: u32,
    /// What times of records are distances to, in microseconds since 1970.
    pub base_time_us: i64,
    /// How many lanes the log had.
    pub lanes: u16,
    /// The segment's number.
    pub segment: u64,
    /// Where it lies in the segment.
    pub offset: u64,
    /// Its bytes there.
    pub bytes: u64,
    data: Arc<Vec<u8>>,
    body: Range<usize>,
}

impl Frame {
    /// Its records in an order in which they can be done again.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.records_in(self.body.clone(), self.first_ordinal).map(|(record, _)| record)
    }

    /// Its records as runs, in the same order, up to the first that is not to be kept. The lanes' runs between
    /// two crossing ones can be done again side by side.
    pub fn runs(&self, mut keep: impl FnMut(&Record<'_>) -> bool) -> Vec<RecordRun> {
        let mut runs: Vec<RecordRun> = Vec::new();
        let (mut from, mut stopped) = (self.body.start, false);
        for (record, to) in self.records_in(self.body.clone(), self.first_ordinal) {
            if !keep(&record) {
                stopped = true;
                break;
            }
            match runs.last_mut() {
                Some(run) if !run.crossing && !record.crossing && run.lane == record.lane => run.to = to,
                _ => {
                    let Record { ordinal: first_ordinal, lane, crossing, .. } = record;
                    runs.push(RecordRun { first_ordinal, lane, crossing, from, to });
                }
            }
            from = to;
        }
        assert!(stopped || from == self.body.end, "a checked frame is records up to its end");
        runs
    }

    /// The records of one of its runs.
    ///
    /// # Panics
    /// The run is of another frame, perhaps.
    pub fn records_of(&self, run: &RecordRun) -> impl Iterator<Item = Record<'_>> {
        let is_within = self.body.start <= run.from && run.from <= run.to && run.to <= self.body.end;
        assert!(is_within, "the run is of this frame");
        self.records_in(run.from..run.to, run.first_ordinal).map(|(record, _)| record)
    }

    /// The records in a part of its segment, each with the place behind it.
    fn records_in(
        &self,
        part: Range<usize>,
        first_ordinal: u64,
    ) -> impl Iterator<Item = (Record<'_>, usize)> {
        let end = part.end;
        let mut rest = &self.data[part];
        let mut ordinal = first_ordinal;
        std::iter::from_fn(move || {
            let (raw, after) = RawRecord::split(rest)?;
            rest = after;
            let record = Record {
                ordinal,
                lane: raw.lane as u16,
                crossing: raw.crossing,
                kind: raw.kind,
                time_us: self.base_time_us.wrapping_add(raw.delta_us),
                payload: raw.payload,
            };
            ordinal += 1;
            Some((record, end - rest.len()))
        })
    }
}

/// Records of a frame that follow one another: of one lane, or a single crossing one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordRun {
    /// Ordinal of its first record.
    pub first_ordinal: u64,
    /// The lane; 0 for a crossing one.
    pub lane: u16,
    /// Whether it is ordered against all lanes.
    pub crossing: bool,
    /// Where it lies in the segment.
    from: usize,
    to: usize,
}

impl RecordRun {
    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        (self.to - self.from) as u64
    }
}

/// Where a log ends, and what a [`Log`](crate::Log) that goes on needs to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// The log's id; `None` if no segment has a header.
    pub log_id: Option<u64>,
    /// Sequence of the frame behind the last one.
    pub next_sequence: u64,
    /// Ordinal of the record behind the last one.
    pub next_ordinal: u64,
    /// Number of the segment behind the last one with a header.
    pub next_segment: u64,
    /// The last segment with a header, and where its last frame ends.
    pub tail: Option<(PathBuf, u64)>,
    /// What was left out.
    pub torn: Option<Torn>,
    /// The only segment, if it has no header: a crash came while it was made, or it has lost what it held.
    pub headless: Option<PathBuf>,
}

/// The rest of a write that a crash interrupted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Torn {
    /// The segment.
    pub path: PathBuf,
    /// Where it begins.
    pub offset: u64,
    /// Bytes to the last that is not zero.
    pub bytes: u64,
    /// What does not check.
    pub fault: Fault,
}

impl std::fmt::Display for Torn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, offset, bytes, fault } = self;
        write!(
            f,
            "left out {bytes} bytes of an unfinished write at the end of the log, in {} from byte {offset} ({fault})",
            path.display()
        )
    }
}

/// Reads the frames of a directory in order.
#[derive(Debug)]
pub struct LogReader {
    disk: Arc<dyn Disk>,
    segments: Vec<SegmentFile>,
    /// The first frame that is wanted; those before are only stepped over.
    from: u64,
    log_id: Option<u64>,
    /// The segment that is read, its bytes, and where in them.
    index: usize,
    data: Arc<Vec<u8>>,
    offset: usize,
    next_sequence: u64,
    next_ordinal: u64,
    bytes_before: u64,
    end: Option<End>,
}

/// A frame's fault, at a byte of its segment and at a record if it got so far.
struct FrameFault {
    offset: usize,
    ordinal: Option<u64>,
    fault: Fault,
}

impl LogReader {
    /// Opens a log to be read from frame `from` on; 0 is the oldest there is. With `log_id`, frames of
    /// another log are a fault; without, the oldest segment says it.
    ///
    /// # Errors
    /// The operating system's; another format; corruption at the beginning, among it that the frame
    /// `from` or one after it is in no segment.
    pub fn open(
        disk: Arc<dyn Disk>,
        directory: &Path,
        from: u64,
        log_id: Option<u64>,
    ) -> Result<Self, ReadError> {
        let segments = segment::list(&*disk, directory)?;
        let mut reader = Self {
            disk,
            segments,
            from,
            log_id,
            index: 0,
            data: Arc::default(),
            offset: 0,
            next_sequence: from.max(1),
            next_ordinal: 1,
            bytes_before: 0,
            end: None,
        };
        let starts = |found: &SegmentFile| found.header().is_some_and(|header| header.first_sequence <= from);
        let wanted = reader.segments.iter().rposition(starts);
        let oldest = reader.segments.iter().position(|found| found.header().is_some());
        match wanted.or(oldest) {
            Some(first) => reader.begin(first)?,
            None => reader.begin_without_header()?,
        }
        Ok(reader)
    }

    /// Begins in a segment that has a header.
    fn begin(&mut self, first: usize) -> Result<(), ReadError> {
        let found = &self.segments[first];
        let header = *found.header().expect("chosen for its header");
        self.bytes_before = self.segments[..first].iter().map(|found| found.bytes).sum();
        let missing = self.from > 0 && header.first_sequence > self.from;
        // Without `from`, what comes before the oldest header is only fine if it is not there.
        if missing || (self.from == 0 && first > 0) {
            let fault = match missing {
                true => Fault::MissingFrames { oldest: header.first_sequence },
                false => Fault::SegmentHeader,
            };
            let at = if missing { first } else { 0 };
            return Err(self.check_format(0).err().unwrap_or_else(|| self.misplaced(at, fault)));
        }
        (self.next_sequence, self.next_ordinal) = (header.first_sequence, header.first_ordinal);
        self.log_id.get_or_insert(header.log_id);
        self.enter(first)
    }

    /// Begins where no segment has a header: there is at most one, whose making a crash interrupted.
    fn begin_without_header(&mut self) -> Result<(), ReadError> {
        match self.segments.len() {
            0 => {
                self.end = Some(self.end_here(None));
                Ok(())
            }
            _ => {
                self.check_format(0)?;
                let first = segment::read(&*self.disk, &self.segments[0].path)?;
                match is_foreign(&first) {
                    true => Err(self.misplaced(0, Fault::NoSegment)),
                    false => self.end_before(0),
                }
            }
        }
    }

    /// The next frame; `None` at the end, which [`LogReader::end`] then describes.
    ///
    /// # Errors
    /// The operating system's; another format; corruption. Every later call gives the same.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, ReadError> {
        while self.end.is_none() {
            let wanted = self.next_sequence >= self.from;
            debug_assert_eq!(self.offset % SECTOR_BYTES, 0, "a frame begins with a sector");
            match check_frame(&self.data, self.offset, self.expected(), wanted) {
                Ok((header, bytes)) => {
                    let frame = self.frame(&header, bytes);
                    assert_eq!(header.sequence, self.next_sequence, "frames are consecutive");
                    assert_eq!(header.first_ordinal, self.next_ordinal, "records are consecutive");
                    self.offset += bytes;
                    self.next_sequence += 1;
                    self.next_ordinal += u64::from(header.records);
                    if wanted {
                        return Ok(Some(frame));
                    }
                }
                Err(_) if is_zero(&self.data[self.offset..]) => self.advance()?,
                Err(fault) => self.judge(fault)?,
            }
        }
        Ok(None)
    }

    /// Sequence of the frame that is due: before any was read, that of the oldest.
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Ordinal of the record that is due.
    pub fn next_ordinal(&self) -> u64 {
        self.next_ordinal
    }

    /// Where the log ends, once [`LogReader::next_frame`] has given `None`.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The end to go on from, for whoever decides to lose what is behind a fault that reading stopped at:
    /// [`repair`](crate::repair) then removes all of it.
    pub fn give_up(&self) -> End {
        self.end_here(None)
    }

    /// Bytes of all segments, and those that have been read or stepped over.
    pub fn progress_bytes(&self) -> (u64, u64) {
        let total: u64 = self.segments.iter().map(|found| found.bytes).sum();
        let done = if self.end.is_some() { total } else { self.bytes_before + self.offset as u64 };
        (done.min(total), total)
    }

    fn expected(&self) -> FrameHeader {
        FrameHeader {
            log_id: self.log_id.unwrap_or(0),
            sequence: self.next_sequence,
            first_ordinal: self.next_ordinal,
            base_time_us: 0,
            body_bytes: 0,
            records: 0,
            lanes: 0,
        }
    }

    fn frame(&self, header: &FrameHeader, bytes: usize) -> Frame {
        let body = self.offset + FRAME_HEADER_BYTES;
        let end = body + header.body_bytes as usize;
        debug_assert!(end <= self.offset + bytes, "a frame's records are in it");
        debug_assert!(self.offset + bytes <= self.data.len(), "a frame is in its segment");
        Frame {
            sequence: header.sequence,
            first_ordinal: header.first_ordinal,
            record_count: header.records,
            base_time_us: header.base_time_us,
            lanes: header.lanes,
            segment: self.segments[self.index].number,
            offset: self.offset as u64,
            bytes: bytes as u64,
            data: Arc::clone(&self.data),
            body: body..end,
        }
    }

    /// Goes on behind a segment's last frame.
    fn advance(&mut self) -> Result<(), ReadError> {
        let next = self.index + 1;
        let Some(found) = self.segments.get(next) else {
            self.end = Some(self.end_here(None));
            return Ok(());
        };
        self.check_format(next)?;
        let due = self.segments[self.index].number + 1;
        if found.number != due {
            return Err(self.misplaced(next, Fault::MissingSegment { number: due }));
        }
        match found.header() {
            Some(_) => self.enter(next),
            None => self.end_before(next),
        }
    }

    /// Begins to read a segment with a header, which must be the one that is due.
    fn enter(&mut self, index: usize) -> Result<(), ReadError> {
        let found = &self.segments[index];
        let header = *found.header().expect("asked before");
        let expected = self.log_id.unwrap_or(header.log_id);
        if header.log_id != expected {
            let fault = Fault::OtherLog { expected, found: header.log_id };
            return Err(self.misplaced(index, fault));
        }
        let says = (header.number, header.first_sequence, header.first_ordinal);
        if says != (found.number, self.next_sequence, self.next_ordinal) {
            let SegmentHeader { number, first_sequence, first_ordinal, .. } = header;
            let fault = Fault::OtherSegment { number, first_sequence, first_ordinal };
            return Err(self.misplaced(index, fault));
        }
        let data = segment::read(&*self.disk, &found.path)?;
        if data.len() < SEGMENT_HEADER_BYTES {
            return Err(self.misplaced(index, Fault::SegmentHeader));
        }
        assert!(index >= self.index, "segments are read in order");
        if index != self.index {
            self.bytes_before += self.segments[self.index].bytes;
        }
        (self.index, self.offset, self.data) = (index, SEGMENT_HEADER_BYTES, Arc::new(data));
        Ok(())
    }

    /// Ends before a segment without a header, if it is the last and has no frame.
    fn end_before(&mut self, index: usize) -> Result<(), ReadError> {
        let found = self.segments[index].clone();
        let data = segment::read(&*self.disk, &found.path)?;
        let evidence =
            match self.segments.get(index + 1) {
                Some(next) => Some(Evidence::LaterSegment { segment: next.number }),
                None => first_frame(&data, 0, self.log_id, 0).map(|(offset, sequence)| {
                    Evidence::LaterFrame { sequence, segment: found.number, offset }
                }),
            };
        if let Some(evidence) = evidence {
            let at = FrameFault { offset: 0, ordinal: None, fault: Fault::SegmentHeader };
            return Err(self.corrupt(index, at, evidence));
        }
        let torn = torn(&found, &data, 0, Fault::SegmentHeader);
        let mut end = self.end_here(torn);
        if self.data.is_empty() {
            (end.tail, end.next_segment) = (None, found.number);
            end.headless = Some(found.path);
        }
        self.end = Some(end);
        Ok(())
    }

    /// What does not check and is not zeros: the torn tail, or corruption.
    fn judge(&mut self, at: FrameFault) -> Result<(), ReadError> {
        let behind = self.offset + SECTOR_BYTES;
        let number = self.segments[self.index].number;
        let mut later = first_frame(&self.data, behind, self.log_id, self.next_sequence + 1)
            .map(|(offset, sequence)| Evidence::LaterFrame { sequence, segment: number, offset });
        // A sound header of a later frame where this one should be has lost what came before it.
        if later.is_none()
            && let Fault::OtherFrame { sequence, .. } = at.fault
            && sequence > self.next_sequence
        {
            later = Some(Evidence::LaterFrame { sequence, segment: number, offset: self.offset as u64 });
        }
        if later.is_none() && self.is_due_in_next() {
            return self.advance();
        }
        for next in self.index + 1..self.segments.len() {
            if later.is_some() {
                break;
            }
            self.check_format(next)?;
            later = self.later_in(next)?;
        }
        match later {
            Some(evidence) => Err(self.corrupt(self.index, at, evidence)),
            None => {
                let torn = torn(&self.segments[self.index], &self.data, self.offset, at.fault);
                self.end = Some(self.end_here(torn));
                Ok(())
            }
        }
    }

    /// Whether the next segment says that it begins with the frame that is due: then nothing is missing here, whatever
    /// lies behind the last frame.
    fn is_due_in_next(&self) -> bool {
        let next = self.segments.get(self.index + 1);
        next.and_then(SegmentFile::header).is_some_and(|header| {
            self.log_id == Some(header.log_id)
                && header.number == self.segments[self.index].number + 1
                && (header.first_sequence, header.first_ordinal) == (self.next_sequence, self.next_ordinal)
        })
    }

    /// Evidence in a segment behind the one that is read.
    fn later_in(&self, index: usize) -> Result<Option<Evidence>, ReadError> {
        let found = &self.segments[index];
        if let Some(header) = found.header() {
            let same = self.log_id.is_none_or(|id| id == header.log_id);
            return Ok(same.then_some(Evidence::LaterSegment { segment: found.number }));
        }
        let data = segment::read(&*self.disk, &found.path)?;
        Ok(first_frame(&data, 0, self.log_id, self.next_sequence + 1)
            .map(|(offset, sequence)| Evidence::LaterFrame { sequence, segment: found.number, offset }))
    }

    fn end_here(&self, torn: Option<Torn>) -> End {
        let here = self.segments.get(self.index).filter(|found| found.header().is_some());
        End {
            log_id: self.log_id,
            next_sequence: self.next_sequence,
            next_ordinal: self.next_ordinal,
            next_segment: here.map_or(1, |found| found.number + 1),
            tail: here.map(|found| (found.path.clone(), self.offset as u64)),
            torn,
            headless: None,
        }
    }

    fn check_format(&self, index: usize) -> Result<(), ReadError> {
        let found = &self.segments[index];
        match found.head {
            SegmentHead::Format(format) => Err(ReadError::Format { path: found.path.clone(), found: format }),
            SegmentHead::Valid(_) | SegmentHead::Blank | SegmentHead::Broken => Ok(()),
        }
    }

    fn misplaced(&self, index: usize, fault: Fault) -> ReadError {
        self.corrupt(index, FrameFault { offset: 0, ordinal: None, fault }, Evidence::Misplaced)
    }

    fn corrupt(&self, index: usize, at: FrameFault, evidence: Evidence) -> ReadError {
        let found = &self.segments[index];
        ReadError::Corrupt(Box::new(Corruption {
            path: found.path.clone(),
            segment: found.number,
            offset: at.offset as u64,
            sequence: self.next_sequence,
            ordinal: at.ordinal,
            fault: at.fault,
            evidence,
        }))
    }
}

/// Checks the frame at `offset`, which must be the `expected` one; returns its header and its bytes. The
/// records of one that is not `wanted` are not looked at if the next frame follows.
fn check_frame(
    data: &[u8],
    offset: usize,
    expected: FrameHeader,
    wanted: bool,
) -> Result<(FrameHeader, usize), FrameFault> {
    let fault = |fault| FrameFault { offset, ordinal: None, fault };
    let header = FrameHeader::decode(&data[offset..]).ok_or_else(|| fault(Fault::FrameHeader))?;
    if header.log_id != expected.log_id {
        return Err(fault(Fault::OtherLog { expected: expected.log_id, found: header.log_id }));
    }
    if (header.sequence, header.first_ordinal) != (expected.sequence, expected.first_ordinal) {
        let FrameHeader { sequence, first_ordinal, .. } = header;
        return Err(fault(Fault::OtherFrame { sequence, first_ordinal }));
    }
    let has = (data.len() - offset) as u64;
    let needs = frame_bytes(header.body_bytes).unwrap_or(u64::MAX);
    if needs > has {
        return Err(fault(Fault::Short { needs, has }));
    }
    let end = offset + needs as usize;
    let followed = || {
        first_frame(
            &data[..data.len().min(end + SECTOR_BYTES)],
            end,
            Some(header.log_id),
            header.sequence + 1,
        )
    };
    if wanted || followed().is_none() {
        check_records(&data[offset..end], &header)
            .map_err(|at| FrameFault { offset: offset + at.offset, ..at })?;
    }
    Ok((header, needs as usize))
}

/// Checks the records of a frame, and that nothing else is behind its header.
fn check_records(frame: &[u8], header: &FrameHeader) -> Result<(), FrameFault> {
    let seed = FrameHeader::seed(header.log_id, header.sequence);
    let (body, padding) = frame[FRAME_HEADER_BYTES..].split_at(header.body_bytes as usize);
    let mut rest = body;
    for ordinal in (header.first_ordinal..).take(header.records as usize) {
        let offset = FRAME_HEADER_BYTES + body.len() - rest.len();
        let fault = |fault| FrameFault { offset, ordinal: Some(ordinal), fault };
        let (record, after) = RawRecord::split(rest).ok_or_else(|| fault(Fault::Record))?;
        let expected = record_crc(seed, ordinal, record.rest);
        if expected != record.crc {
            return Err(fault(Fault::Crc { expected, found: record.crc }));
        }
        if record.lane >= u64::from(header.lanes) {
            return Err(fault(Fault::Record));
        }
        rest = after;
    }
    match rest.is_empty() && is_zero(padding) {
        true => Ok(()),
        false => {
            let offset = FRAME_HEADER_BYTES + body.len() - rest.len();
            Err(FrameFault { offset, ordinal: None, fault: Fault::Padding })
        }
    }
}

/// The first sound frame header of the log from byte `from` on whose sequence is at least `least`: its
/// place and its sequence.
fn first_frame(data: &[u8], from: usize, log_id: Option<u64>, least: u64) -> Option<(u64, u64)> {
    (from..data.len()).step_by(SECTOR_BYTES).find_map(|at| {
        let header = FrameHeader::decode(&data[at..])?;
        let follows = log_id.is_none_or(|id| id == header.log_id) && header.sequence >= least;
        follows.then_some((at as u64, header.sequence))
    })
}

/// Whether a segment without a header holds frames all the same.
pub(crate) fn holds_frames(disk: &dyn Disk, path: &Path, log_id: u64) -> Result<bool, crate::Failure> {
    Ok(first_frame(&segment::read(disk, path)?, 0, Some(log_id), 0).is_some())
}

/// What is not zero from `offset` on.
fn torn(found: &SegmentFile, data: &[u8], offset: usize, fault: Fault) -> Option<Torn> {
    let last = data[offset..].iter().rposition(|&byte| byte != 0)?;
    Some(Torn { path: found.path.clone(), offset: offset as u64, bytes: last as u64 + 1, fault })
}
