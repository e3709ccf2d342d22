//! Cuts a text into chunks of whole records.
//!
//! Responsible for: where chunks end, the lines they begin on. Not responsible for: what is in the records.
//!
//! I-1 A chunk is one record too long, or as long as a few reads.

use std::io::Read;

use albireo_base::SqlState;
use memchr::{memchr_iter, memrchr, memrchr_iter};

use crate::csv::CsvBoundaries;
use crate::{Fault, TextFormat, text};

/// The usual length of a chunk.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// The longest record, in bytes: a quote left open must not read the whole file into memory.
pub(crate) const MAX_RECORD_BYTES: usize = 1 << 28;

/// Records that stand one after another.
#[derive(Debug)]
pub struct Chunk {
    pub(crate) bytes: Vec<u8>,
    /// Where the first record begins.
    pub(crate) start: usize,
    /// The line that it begins on, from 1.
    pub(crate) first_line: u64,
}

/// How the ends of records are known.
enum Boundaries {
    Csv(CsvBoundaries),
    /// A line feed without a backslash before it.
    Text,
    /// Any line feed.
    Lines,
}

/// The chunks of a text, one after another.
pub struct Chunker<'a> {
    source: Box<dyn Read + Send + 'a>,
    boundaries: Boundaries,
    /// What was read and belongs to the next chunk.
    carry: Vec<u8>,
    /// How much of it has been looked at.
    scanned: usize,
    line: u64,
    is_end: bool,
    /// Given back, to be given again.
    ahead: Option<Chunk>,
    /// Buffers to use again: memory that is new costs more than reading into it.
    spare: Vec<Vec<u8>>,
    chunk_bytes: usize,
}

impl<'a> Chunker<'a> {
    /// Chunks of `source`, which is UTF-8 as [`crate::open`] gives it.
    pub fn new(source: Box<dyn Read + Send + 'a>, format: &TextFormat) -> Self {
        let boundaries = match format {
            TextFormat::Csv(dialect) => Boundaries::Csv(CsvBoundaries::new(dialect)),
            TextFormat::Text(_) => Boundaries::Text,
            TextFormat::Json(_) => Boundaries::Lines,
        };
        Self {
            source,
            boundaries,
            carry: Vec::new(),
            scanned: 0,
            line: 1,
            is_end: false,
            ahead: None,
            spare: Vec::new(),
            chunk_bytes: CHUNK_BYTES,
        }
    }

    /// Makes chunks of another length, for tests.
    #[cfg(test)]
    pub(crate) fn with_chunk_bytes(mut self, bytes: usize) -> Self {
        self.chunk_bytes = bytes;
        self
    }

    /// The next chunk; `None` at the end.
    ///
    /// # Errors
    /// Of reading; 22P04 for a record that is too long.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, Fault> {
        if let Some(chunk) = self.ahead.take() {
            return Ok(Some(chunk));
        }
        let mut end = None;
        while end.is_none() && !self.is_end {
            let wanted = self.carry.len() + self.chunk_bytes.max(self.carry.len());
            self.read_to(wanted.min(MAX_RECORD_BYTES + self.chunk_bytes))?;
            end = self.scan();
            if end.is_none() && self.carry.len() > MAX_RECORD_BYTES {
                let error = Fault::bad_file("a record is longer than 256 MiB");
                let hint = "A quote may have been left open; see the options QUOTE and ESCAPE.";
                return Err(Fault::at(self.line, error.with_hint(hint)));
            }
        }
        let end = end.unwrap_or(self.carry.len());
        if end == 0 {
            return Ok(None);
        }
        let mut rest = self.spare.pop().unwrap_or_default();
        rest.clear();
        rest.extend_from_slice(&self.carry[end..]);
        self.scanned = self.scanned.saturating_sub(end);
        let mut bytes = std::mem::replace(&mut self.carry, rest);
        bytes.truncate(end);
        let first_line = self.line;
        self.line += memchr_iter(b'\n', &bytes).count() as u64;
        Ok(Some(Chunk { bytes, start: 0, first_line }))
    }

    /// Has `chunk` be the next one.
    pub(crate) fn give_back(&mut self, chunk: Chunk) {
        self.ahead = Some(chunk);
    }

    /// Takes a chunk that is not used any more, whose memory serves again.
    pub fn recycle(&mut self, chunk: Chunk) {
        if self.spare.len() < 4 && chunk.bytes.capacity() < 8 * CHUNK_BYTES {
            self.spare.push(chunk.bytes);
        }
    }

    /// Reads until `wanted` bytes are there, or the end.
    fn read_to(&mut self, wanted: usize) -> Result<(), Fault> {
        let missing = wanted.saturating_sub(self.carry.len()) as u64;
        let read = (&mut self.source).take(missing).read_to_end(&mut self.carry);
        let read = read.map_err(|error| {
            let fault = Fault::from(error);
            let is_text = matches!(&fault.cause, crate::Cause::Sql(e) if e.state() != SqlState::IO_ERROR);
            Fault { place: is_text.then_some(self.line), ..fault }
        })?;
        self.is_end = (read as u64) < missing;
        Ok(())
    }

    /// Where the last record ends, if one does in what has not been looked at.
    fn scan(&mut self) -> Option<usize> {
        let from = self.scanned;
        let bytes = &self.carry[from..];
        let (scanned, last) = match &mut self.boundaries {
            Boundaries::Csv(boundaries) => boundaries.scan(bytes),
            Boundaries::Lines => (bytes.len(), memrchr(b'\n', bytes).map(|at| at + 1)),
            Boundaries::Text => {
                let mut ends = memrchr_iter(b'\n', bytes);
                let last = ends.find(|at| text::ends_record(&self.carry, from + at));
                (bytes.len(), last.map(|at| at + 1))
            }
        };
        self.scanned = from + scanned;
        last.map(|last| from + last)
    }
}
