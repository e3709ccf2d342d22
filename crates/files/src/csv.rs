//! PostgreSQL's dialect of CSV.
//!
//! A field that stands in quotes is never NULL, a quote may begin and end anywhere in a field, and a quote that
//! does not end is an error. The `csv` crate tells none of this apart, hence this reader; where the dialects
//! agree, the tests compare the two.

use memchr::{memchr_iter, memchr2, memchr3};

use crate::cells::{Cell, Cells, Stop};
use crate::specials::Specials;

/// How CSV is written; all as in PostgreSQL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CsvDialect {
    /// What separates values.
    pub delimiter: u8,
    /// What stands around values that hold a delimiter, quote or line end.
    pub quote: u8,
    /// What stands before a quote within quotes.
    pub escape: u8,
    /// What NULL looks like; quoted, it is a string.
    pub null: String,
    /// Exceptions to that by field; fields beyond its end have none.
    pub force: Vec<Force>,
    /// Empty lines are no records.
    pub skips_empty_lines: bool,
}

/// FORCE_NULL and FORCE_NOT_NULL for one field.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Force {
    /// What looks like NULL is a string.
    pub not_null: bool,
    /// What looks like NULL is NULL in quotes too.
    pub null: bool,
}

impl Default for CsvDialect {
    fn default() -> Self {
        Self {
            delimiter: b',',
            quote: b'"',
            escape: b'"',
            null: String::new(),
            force: Vec::new(),
            skips_empty_lines: false,
        }
    }
}

/// A field with quotes: its cell, the place of what ends it, and the lines that end within it.
struct Quoted {
    cell: Cell,
    end: usize,
    lines: u64,
}

/// Reads the records of `chunk`, which begins at a record's beginning and ends at a record's end.
pub(crate) fn split(chunk: &[u8], first_line: u64, dialect: &CsvDialect, cells: &mut Cells) {
    let mut specials = Specials::new(chunk, [dialect.delimiter, b'\n', b'\r', dialect.quote]);
    let null = dialect.null.as_bytes();
    let (mut line, mut record_line) = (first_line, first_line);
    let mut start = 0;
    let mut quoted_cell = None;
    loop {
        let mut at = specials.next();
        let ends_record = match chunk.get(at) {
            Some(byte) if *byte == dialect.delimiter => false,
            Some(b'\n') => true,
            Some(b'\r') if at + 1 == chunk.len() => true,
            Some(b'\r') if chunk[at + 1] == b'\n' => {
                // The line feed comes next and is part of the same end.
                specials.next();
                true
            }
            Some(b'\r') => return cells.fail(record_line, Stop::CarriageReturn),
            // The place of a quote within a field that has been read already is not given again.
            Some(_) => match quoted(chunk, start, at, dialect, cells) {
                Some(quoted) => {
                    line += quoted.lines;
                    quoted_cell = Some(quoted.cell);
                    specials.seek(quoted.end);
                    // A delimiter ends the field; the end of the chunk is not given by the search.
                    if quoted.end < chunk.len() {
                        continue;
                    }
                    at = quoted.end;
                    true
                }
                None => return cells.fail(record_line, Stop::UnterminatedQuote),
            },
            None if start == chunk.len() && cells.open() == 0 && quoted_cell.is_none() => return,
            None => true,
        };
        let cell = match quoted_cell.take() {
            Some(cell) => cell,
            None if chunk[start..at] == *null => {
                let is_string = !dialect.force.is_empty()
                    && dialect.force.get(cells.open()).is_some_and(|force| force.not_null);
                if is_string { Cell::of(start, at) } else { Cell::NULL }
            }
            None => Cell::of(start, at),
        };
        let is_left_out = ends_record && dialect.skips_empty_lines && start == at && cells.open() == 0;
        if !is_left_out && !cells.push(cell) {
            return cells.fail(record_line, Stop::Extra);
        }
        if !ends_record {
            start = at + 1;
            continue;
        }
        start = next_start(chunk, at);
        if !is_left_out && !cells.end_record(record_line, start) || start >= chunk.len() {
            return;
        }
        line += 1;
        record_line = line;
    }
}

/// Where the record after the line end at `at` begins.
#[inline]
pub(crate) fn next_start(chunk: &[u8], at: usize) -> usize {
    at + 1 + usize::from(chunk.get(at) == Some(&b'\r'))
}

/// Reads the field that begins at `start` and has its first quote at `first`; `None` if a quote does not end.
fn quoted(
    chunk: &[u8],
    start: usize,
    first: usize,
    dialect: &CsvDialect,
    cells: &mut Cells,
) -> Option<Quoted> {
    let (cell, end) = match plain_quoted(chunk, start, first, dialect) {
        Some(found) => found,
        None => unescaped(chunk, start, dialect, cells)?,
    };
    let lines = memchr_iter(b'\n', &chunk[start..end]).count() as u64;
    let mut quoted = Quoted { cell, end, lines };
    if dialect.force.get(cells.open()).is_some_and(|force| force.null)
        && cells.bytes_of(cell, chunk) == dialect.null.as_bytes()
    {
        quoted.cell = Cell::NULL;
    }
    Some(quoted)
}

/// The usual case: quotes around the whole field and none within.
#[inline]
fn plain_quoted(chunk: &[u8], start: usize, first: usize, dialect: &CsvDialect) -> Option<(Cell, usize)> {
    if first != start {
        return None;
    }
    let inner = start + 1;
    let close = inner + memchr2(dialect.quote, dialect.escape, &chunk[inner..])?;
    let end = close + 1;
    let is_end =
        chunk.get(end).is_none_or(|byte| *byte == dialect.delimiter || matches!(byte, b'\n' | b'\r'));
    (chunk[close] == dialect.quote && is_end).then(|| (Cell::of(inner, close), end))
}

/// Any other case: the field without its quotes and escapes is put aside.
fn unescaped(chunk: &[u8], start: usize, dialect: &CsvDialect, cells: &mut Cells) -> Option<(Cell, usize)> {
    let CsvDialect { delimiter, quote, escape, .. } = *dialect;
    let aside = cells.aside.len();
    let (mut at, mut in_quotes) = (start, false);
    loop {
        let rest = &chunk[at..];
        let run = match in_quotes {
            true => memchr2(quote, escape, rest)?,
            false => {
                let end = memchr3(delimiter, b'\n', quote, rest).unwrap_or(rest.len());
                memchr::memchr(b'\r', &rest[..end]).unwrap_or(end)
            }
        };
        cells.aside.extend_from_slice(&rest[..run]);
        at += run;
        let rest = &rest[run..];
        match rest {
            [first, second, ..]
                if in_quotes && *first == escape && (*second == escape || *second == quote) =>
            {
                cells.aside.push(*second);
                at += 2;
            }
            [first, ..] if *first == quote => {
                in_quotes = !in_quotes;
                at += 1;
            }
            [first, ..] if in_quotes => {
                cells.aside.push(*first);
                at += 1;
            }
            _ => return Some((cells.aside_from(aside), at)),
        }
    }
}

/// Finds the ends of records in bytes that come piece by piece.
#[derive(Debug)]
pub(crate) struct CsvBoundaries {
    quote: u8,
    escape: u8,
    in_quotes: bool,
}

impl CsvBoundaries {
    pub(crate) fn new(dialect: &CsvDialect) -> Self {
        Self { quote: dialect.quote, escape: dialect.escape, in_quotes: false }
    }

    /// Looks at `bytes`; gives how many were looked at and, among them, where the last record ends.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> (usize, Option<usize>) {
        let mut last = None;
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            if self.in_quotes {
                let Some(run) = memchr2(self.quote, self.escape, rest) else { return (bytes.len(), last) };
                at += run;
                if bytes[at] == self.escape && self.escape != self.quote {
                    match bytes.get(at + 1) {
                        // What follows decides, and is not here yet.
                        None => return (at, last),
                        Some(next) if *next == self.escape || *next == self.quote => at += 1,
                        Some(_) => {}
                    }
                } else {
                    // Two quotes end and begin at once, which comes to the same.
                    self.in_quotes = false;
                }
                at += 1;
            } else {
                let run = memchr::memchr(self.quote, rest);
                let outside = &rest[..run.unwrap_or(rest.len())];
                last = memchr::memrchr(b'\n', outside).map(|end| at + end + 1).or(last);
                let Some(run) = run else { return (bytes.len(), last) };
                self.in_quotes = true;
                at += run + 1;
            }
        }
    }
}
