//! Lines of JSON, an object on each: NDJSON, JSON Lines.
//!
//! A member's value is taken as its text: a string's contents, a number as it is written, an array or object
//! as JSON; `null` and a member that is not there are NULL. serde_json says where each value ends and whether
//! it is one.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::memchr_iter;
use serde::de::IgnoredAny;

use crate::cells::{Cell, Cells, Stop};

/// How members are found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct JsonDialect {
    /// The names of the members that are wanted, in the order of the fields.
    pub names: Vec<String>,
    /// Members of other names are refused instead of left out.
    pub is_strict: bool,
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    String,
    Nested,
}

/// Reads the records of `chunk`.
pub(crate) fn split(chunk: &[u8], first_line: u64, dialect: &JsonDialect, cells: &mut Cells) {
    let fields: HashMap<&str, usize> =
        dialect.names.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
    let mut start = 0;
    let ends = memchr_iter(b'\n', chunk).chain([chunk.len()]);
    for (line, end) in (first_line..).zip(ends) {
        let text = &chunk[start..end];
        if !text.trim_ascii().is_empty() {
            let record = cells.push_nulls(dialect.names.len());
            let mut stranger = None;
            let result = members(text, |name, value, kind| {
                let Some(field) = fields.get(name) else {
                    if dialect.is_strict && stranger.is_none() {
                        stranger = Some(name.to_owned());
                    }
                    return Ok(());
                };
                let value = start + value.start..start + value.end;
                let cell = cell(chunk, value, kind, cells)?;
                cells.set(record + field, cell);
                Ok(())
            });
            if let Err(reason) = result {
                return cells.fail(line, Stop::Json(reason));
            }
            if let Some(name) = stranger {
                return cells.fail(line, Stop::Stranger(name));
            }
            if !cells.end_record(line, end + 1) {
                return;
            }
        }
        start = end + 1;
    }
}

fn cell(chunk: &[u8], value: std::ops::Range<usize>, kind: Kind, cells: &mut Cells) -> Result<Cell, String> {
    let text = &chunk[value.clone()];
    match kind {
        Kind::Null => Ok(Cell::NULL),
        Kind::String if memchr::memchr(b'\\', text).is_none() => Ok(Cell::of(value.start + 1, value.end - 1)),
        Kind::String => {
            let aside = cells.aside.len();
            let text: Cow<'_, str> = serde_json::from_slice(text).map_err(|error| error.to_string())?;
            cells.aside.extend_from_slice(text.as_bytes());
            Ok(cells.aside_from(aside))
        }
        _ => Ok(Cell::of(value.start, value.end)),
    }
}

/// Gives each member of the object in `text`: its name, where its value is, and what it is.
pub(crate) fn members(
    text: &[u8],
    mut each: impl FnMut(&str, std::ops::Range<usize>, Kind) -> Result<(), String>,
) -> Result<(), String> {
    let mut at = expect(text, 0, b'{', "an object begins with {")?;
    if next(text, at).is_some_and(|(_, byte)| byte == b'}') {
        return nothing_after(text, expect(text, at, b'}', "")?);
    }
    loop {
        let mut names = serde_json::Deserializer::from_slice(&text[at..]).into_iter::<Cow<'_, str>>();
        let name = match names.next() {
            Some(Ok(name)) => name,
            Some(Err(error)) => return Err(reason(&error)),
            None => return Err("the object does not end".to_owned()),
        };
        at += names.byte_offset();
        at = expect(text, at, b':', "a colon follows a member's name")?;
        let (start, first) = next(text, at).ok_or("the object does not end")?;
        let mut values = serde_json::Deserializer::from_slice(&text[start..]).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(reason(&error)),
            None => return Err("the object does not end".to_owned()),
        }
        at = start + values.byte_offset();
        let kind = match first {
            b'n' => Kind::Null,
            b't' | b'f' => Kind::Bool,
            b'"' => Kind::String,
            b'{' | b'[' => Kind::Nested,
            _ => Kind::Number,
        };
        each(&name, start..at, kind)?;
        match next(text, at) {
            Some((comma, b',')) => at = comma + 1,
            Some((end, b'}')) => return nothing_after(text, end + 1),
            _ => return Err("a comma or } follows a member".to_owned()),
        }
    }
}

/// Adds a string as JSON.
pub fn write_json_string(text: &str, to: &mut Vec<u8>) {
    serde_json::to_writer(to, text).expect("a string is JSON, and memory takes it");
}

/// serde_json's complaint without its place, which is one within a part of the line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// The next byte that is no blank, and its place.
fn next(text: &[u8], at: usize) -> Option<(usize, u8)> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let skipped = text[at..].iter().position(|byte| !is_blank(byte))?;
    Some((at + skipped, text[at + skipped]))
}

fn expect(text: &[u8], at: usize, wanted: u8, rule: &str) -> Result<usize, String> {
    match next(text, at) {
        Some((at, byte)) if byte == wanted => Ok(at + 1),
        _ => Err(rule.to_owned()),
    }
}

fn nothing_after(text: &[u8], at: usize) -> Result<(), String> {
    match next(text, at) {
        None => Ok(()),
        Some(_) => Err("something follows the object".to_owned()),
    }
}
