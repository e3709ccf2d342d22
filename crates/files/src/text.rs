//! PostgreSQL's text format: fields between tabs, `\N` for NULL, escapes with a backslash, `\.` at the end.

use memchr::memchr;

use crate::cells::{Cell, Cells, Stop};
use crate::csv;
use crate::specials::Specials;

/// How the text format is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextDialect {
    /// What separates values.
    pub delimiter: u8,
    /// What NULL looks like, before escapes are read.
    pub null: String,
}

impl Default for TextDialect {
    fn default() -> Self {
        Self { delimiter: b'\t', null: "\\N".to_owned() }
    }
}

/// Reads the records of `chunk`, which begins at a record's beginning and ends at a record's end.
pub(crate) fn split(chunk: &[u8], first_line: u64, dialect: &TextDialect, cells: &mut Cells) {
    let mut specials = Specials::new(chunk, [dialect.delimiter, b'\n', b'\r', b'\\']);
    let null = dialect.null.as_bytes();
    let (mut line, mut record_line) = (first_line, first_line);
    let (mut start, mut is_escaped) = (0, false);
    loop {
        let at = specials.next();
        let ends_record = match chunk.get(at) {
            Some(byte) if *byte == dialect.delimiter => false,
            Some(b'\n') => true,
            Some(b'\r') if at + 1 == chunk.len() => true,
            Some(b'\r') if chunk[at + 1] == b'\n' => {
                specials.next();
                true
            }
            Some(b'\r') => return cells.fail(record_line, Stop::CarriageReturn),
            Some(_) if is_misplaced_end(chunk, at, start == at && cells.open() == 0) => {
                return cells.fail(record_line, Stop::EndMark);
            }
            Some(_) => {
                // What follows a backslash separates nothing.
                is_escaped = true;
                line += u64::from(chunk.get(at + 1) == Some(&b'\n'));
                specials.seek(at + 2);
                continue;
            }
            None if start >= chunk.len() && cells.open() == 0 => return,
            None => true,
        };
        let (text, was_escaped) = (&chunk[start..at], std::mem::take(&mut is_escaped));
        if was_escaped && text == b"\\." && cells.open() == 0 && ends_record {
            cells.ended = true;
            return;
        }
        let cell = if text == null {
            Cell::NULL
        } else if was_escaped {
            let aside = cells.aside.len();
            unescape(text, &mut cells.aside);
            cells.aside_from(aside)
        } else {
            Cell::of(start, at)
        };
        if !cells.push(cell) {
            return cells.fail(record_line, Stop::Extra);
        }
        if !ends_record {
            start = at + 1;
            continue;
        }
        start = csv::next_start(chunk, at);
        if !cells.end_record(record_line, start) {
            return;
        }
        if start >= chunk.len() {
            return;
        }
        line += 1;
        record_line = line;
    }
}

/// Whether `\.` at `at` is not alone on its line, as the end of the data is.
fn is_misplaced_end(chunk: &[u8], at: usize, begins_line: bool) -> bool {
    let Some(rest) = chunk[at..].strip_prefix(b"\\.") else { return false };
    !(begins_line && matches!(rest, [] | [b'\n', ..] | [b'\r', b'\n', ..] | [b'\r']))
}

/// Adds `text` to `to` with its escapes read.
fn unescape(text: &[u8], to: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(run) = memchr(b'\\', rest) {
        to.extend_from_slice(&rest[..run]);
        let after = &rest[run + 1..];
        let (byte, used) = match after {
            [] => (b'\\', 0),
            [b'b', ..] => (8, 1),
            [b'f', ..] => (12, 1),
            [b'n', ..] => (b'\n', 1),
            [b'r', ..] => (b'\r', 1),
            [b't', ..] => (b'\t', 1),
            [b'v', ..] => (11, 1),
            [b'0'..=b'7', ..] => number(after, 8, 3),
            [b'x', digits @ ..] if digits.first().is_some_and(u8::is_ascii_hexdigit) => {
                let (byte, used) = number(digits, 16, 2);
                (byte, used + 1)
            }
            [other, ..] => (*other, 1),
        };
        to.push(byte);
        rest = &after[used..];
    }
    to.extend_from_slice(rest);
}

/// A byte written in at most `most` digits, and how many there are.
fn number(digits: &[u8], radix: u32, most: usize) -> (u8, usize) {
    let values = digits.iter().take(most).map_while(|byte| char::from(*byte).to_digit(radix));
    let (number, used) = values.fold((0, 0), |(number, used), digit| (number * radix + digit, used + 1));
    // The lowest eight bits, as PostgreSQL takes `\777`.
    (number as u8, used)
}

/// Whether the line feed at `at` ends a record: an even number of backslashes stands before it.
pub(crate) fn ends_record(bytes: &[u8], at: usize) -> bool {
    bytes[..at].iter().rev().take_while(|byte| **byte == b'\\').count().is_multiple_of(2)
}

/// Adds a value to a line as the format wants it.
pub fn write_text(text: &str, delimiter: u8, to: &mut Vec<u8>) {
    for byte in text.bytes() {
        let escaped = match byte {
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            b'\\' => b'\\',
            other if other == delimiter => other,
            other => {
                to.push(other);
                continue;
            }
        };
        to.extend_from_slice(&[b'\\', escaped]);
    }
}
