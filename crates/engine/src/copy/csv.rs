//! PostgreSQL's dialect of CSV, read and written.
//!
//! A field that stands in quotes is never NULL, a quote may begin and end anywhere in a field, and
//! a quote that does not end is an error. The `csv` crate tells none of this apart, hence this
//! reader; where the dialects agree, the tests compare the two.

use std::io::{self, BufRead, BufReader, Read, Write};

use albireo_base::progress::{Phase, Unit};
use albireo_base::{ColumnId, SqlError, SqlState, Value};
use albireo_env::ReadFile;
use albireo_sql::copy::CsvOptions;

use super::batch::Staged;
use super::{BATCH_ROWS, Limits, ROWS_PER_CHECK, Rows, Target, files};

/// The longest record, in bytes: a quote left open must not read the whole file into memory.
const MAX_RECORD_BYTES: u64 = 1 << 28;

/// Bytes read from a file at once.
const BUFFER_BYTES: usize = 1 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Records of a file.
struct CsvReader<R> {
    source: BufReader<R>,
    delimiter: u8,
    quote: u8,
    escape: u8,
    /// Bytes that end a run of plain ones outside quotes.
    special: [bool; 256],
    /// The physical line being read.
    raw: Vec<u8>,
    /// Its number, from 1.
    line: u64,
}

/// One record: its fields without quotes.
#[derive(Default)]
struct Record {
    text: Vec<u8>,
    fields: Vec<Field>,
    /// The line it begins on.
    line: u64,
}

#[derive(Clone, Copy)]
struct Field {
    /// Where in the record's text it ends.
    end: usize,
    /// Some part of it stood in quotes.
    quoted: bool,
}

/// Why a record cannot be read.
#[derive(Debug)]
enum CsvError {
    Io(io::Error),
    UnterminatedQuote,
    CarriageReturn,
    TooLong,
}

impl From<io::Error> for CsvError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<R: Read> CsvReader<R> {
    fn new(source: R, options: &CsvOptions) -> Self {
        let mut special = [false; 256];
        for byte in [options.delimiter, options.quote, b'\n', b'\r'] {
            special[usize::from(byte)] = true;
        }
        Self {
            source: BufReader::with_capacity(BUFFER_BYTES, source),
            delimiter: options.delimiter,
            quote: options.quote,
            escape: options.escape,
            special,
            raw: Vec::new(),
            line: 0,
        }
    }

    /// Reads the next physical line with its end; false at the end of the file.
    fn next_line(&mut self) -> Result<bool, CsvError> {
        self.raw.clear();
        let read = (&mut self.source).take(MAX_RECORD_BYTES).read_until(b'\n', &mut self.raw)?;
        if read as u64 == MAX_RECORD_BYTES {
            return Err(CsvError::TooLong);
        }
        if self.line == 0 && self.raw.starts_with(BYTE_ORDER_MARK) {
            self.raw.drain(..BYTE_ORDER_MARK.len());
        }
        self.line += 1;
        Ok(read > 0)
    }

    /// Reads the next record; false at the end of the file.
    fn read(&mut self, record: &mut Record) -> Result<bool, CsvError> {
        record.text.clear();
        record.fields.clear();
        record.line = self.line + 1;
        if !self.next_line()? {
            return Ok(false);
        }
        let mut state = Unquoted { in_quotes: false, quoted: false };
        while !self.scan(record, &mut state)? {
            if !self.next_line()? {
                return Err(CsvError::UnterminatedQuote);
            }
            if record.text.len() as u64 > MAX_RECORD_BYTES {
                return Err(CsvError::TooLong);
            }
        }
        Ok(true)
    }

    /// Takes the physical line into the record; false when the record goes on in the next one.
    fn scan(&self, record: &mut Record, state: &mut Unquoted) -> Result<bool, CsvError> {
        let mut rest = self.raw.as_slice();
        loop {
            if state.in_quotes {
                rest = self.scan_quoted(rest, record, state);
                if state.in_quotes {
                    return Ok(false);
                }
            }
            let run = rest.iter().position(|byte| self.special[usize::from(*byte)]).unwrap_or(rest.len());
            record.text.extend_from_slice(&rest[..run]);
            rest = &rest[run..];
            match rest {
                [] | [b'\n'] | [b'\r', b'\n'] | [b'\r'] => {
                    record.end_field(state);
                    return Ok(true);
                }
                [byte, ..] if *byte == self.quote => (state.in_quotes, state.quoted) = (true, true),
                [byte, ..] if *byte == self.delimiter => record.end_field(state),
                // A line ends where its only line feed is.
                _ => return Err(CsvError::CarriageReturn),
            }
            rest = &rest[1..];
        }
    }

    /// Takes what stands in quotes; returns what follows them.
    fn scan_quoted<'a>(&self, mut rest: &'a [u8], record: &mut Record, state: &mut Unquoted) -> &'a [u8] {
        loop {
            let ends = |byte: &u8| *byte == self.quote || *byte == self.escape;
            let run = rest.iter().position(ends).unwrap_or(rest.len());
            record.text.extend_from_slice(&rest[..run]);
            rest = &rest[run..];
            match rest {
                [] => return rest,
                [first, second, after @ ..]
                    if *first == self.escape && (*second == self.escape || *second == self.quote) =>
                {
                    record.text.push(*second);
                    rest = after;
                }
                [first, after @ ..] if *first == self.quote => {
                    state.in_quotes = false;
                    return after;
                }
                [first, after @ ..] => {
                    record.text.push(*first);
                    rest = after;
                }
            }
        }
    }
}

/// Where in a field the reader is.
struct Unquoted {
    in_quotes: bool,
    quoted: bool,
}

impl Record {
    fn end_field(&mut self, state: &mut Unquoted) {
        self.fields.push(Field { end: self.text.len(), quoted: state.quoted });
        state.quoted = false;
    }

    /// The bytes of field `index`.
    fn field(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.fields[before].end);
        &self.text[start..self.fields[index].end]
    }
}

/// Reads and checks a whole file.
pub(super) fn stage(
    file: Box<dyn ReadFile>,
    options: &CsvOptions,
    target: &Target<'_>,
    limits: &Limits<'_>,
) -> Result<Staged, SqlError> {
    let mut staged = Staged::default();
    let mut rows = Rows::new(target);
    let length_bytes = file.len().ok().filter(|length| *length > 0);
    limits.progress.begin(Phase::ReadingFile, Unit::Bytes, length_bytes);
    let mut reader = CsvReader::new(files::Counted { file, progress: limits.progress }, options);
    let mut record = Record::default();
    let mut skip = options.header;
    let mut count = 0_u64;
    loop {
        let more = reader.read(&mut record).map_err(|error| malformed(error, target, record.line))?;
        if !more {
            staged.push(rows.finish()?);
            return Ok(staged);
        }
        if std::mem::take(&mut skip) {
            continue;
        }
        if count.is_multiple_of(ROWS_PER_CHECK) {
            limits.check(staged.bytes())?;
        }
        count += 1;
        stage_record(&mut rows, &record, options, target)?;
        if rows.places.len() == BATCH_ROWS {
            staged.push(std::mem::replace(&mut rows, Rows::new(target)).finish()?);
        }
    }
}

fn stage_record(
    rows: &mut Rows<'_>,
    record: &Record,
    options: &CsvOptions,
    target: &Target<'_>,
) -> Result<(), SqlError> {
    let bad = |text: String, column: Option<ColumnId>| {
        Err(target.at(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, text), record.line, column))
    };
    if let Some(missing) = target.columns.get(record.fields.len()) {
        let name = &target.table.column_def(*missing).name;
        return bad(format!("missing data for column \"{name}\""), Some(*missing));
    }
    if record.fields.len() > target.columns.len() {
        return bad("extra data after last expected column".to_owned(), None);
    }
    rows.begin(record.line);
    for (index, column) in target.columns.iter().enumerate() {
        let bytes = record.field(index);
        let value = if !record.fields[index].quoted && bytes == options.null.as_bytes() {
            Ok(Value::Null)
        } else {
            match std::str::from_utf8(bytes) {
                Ok(text) => Value::parse(text, target.table.column_def(*column).ty),
                Err(_) => {
                    let text = "invalid byte sequence for encoding \"UTF8\"";
                    Err(SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, text))
                }
            }
        };
        let value = value.map_err(|error| target.at(error, record.line, Some(*column)))?;
        rows.push(index, value)?;
    }
    Ok(())
}

fn malformed(error: CsvError, target: &Target<'_>, line: u64) -> SqlError {
    let bad = |text: &str| SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, text);
    let error = match error {
        CsvError::Io(error) => return files::read_error(target.path, &error),
        CsvError::UnterminatedQuote => bad("unterminated CSV quoted field"),
        CsvError::CarriageReturn => bad("unquoted carriage return found in data")
            .with_hint("Use quoted CSV field to represent carriage return."),
        CsvError::TooLong => bad("a record is longer than 256 MiB")
            .with_hint("A quote may have been left open; see the options QUOTE and ESCAPE."),
    };
    target.at(error, line, None)
}

/// Writes records.
pub(super) struct CsvWriter<'a, W> {
    sink: W,
    options: &'a CsvOptions,
    at_start: bool,
}

impl<'a, W: Write> CsvWriter<'a, W> {
    pub(super) fn new(sink: W, options: &'a CsvOptions) -> Self {
        Self { sink, options, at_start: true }
    }

    /// Adds a field; `None` is NULL.
    pub(super) fn field(&mut self, text: Option<&str>) -> io::Result<()> {
        if !std::mem::take(&mut self.at_start) {
            self.sink.write_all(&[self.options.delimiter])?;
        }
        let Some(text) = text else { return self.sink.write_all(self.options.null.as_bytes()) };
        let CsvOptions { delimiter, quote, escape, .. } = *self.options;
        let special = |byte: u8| byte == delimiter || byte == quote || byte == b'\n' || byte == b'\r';
        if text != self.options.null && !text.bytes().any(special) {
            return self.sink.write_all(text.as_bytes());
        }
        self.sink.write_all(&[quote])?;
        for part in text.as_bytes().split_inclusive(|byte| *byte == quote || *byte == escape) {
            // The part's last byte may be the one to escape; the escape goes before it.
            match part.split_last() {
                Some((last, before)) if *last == quote || *last == escape => {
                    self.sink.write_all(before)?;
                    self.sink.write_all(&[escape, *last])?;
                }
                _ => self.sink.write_all(part)?,
            }
        }
        self.sink.write_all(&[quote])
    }

    /// Ends a record.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.at_start = true;
        self.sink.write_all(b"\n")
    }
}

#[cfg(test)]
mod tests;
