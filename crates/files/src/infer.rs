//! Finds out what is in a file: delimiter, header, names and types.
//!
//! Responsible for: the decisions, from a sample of whole records. Not responsible for: reading the rows
//! afterwards; a value beyond the sample that is not of the type found is an error there.
//!
//! - N-1 A number with a leading zero, or a whole number that its type would round, is text.
//! - N-2 The delimiter is the one of `,`, tab, `;` and `|` that gives most records the same number of fields.
//! - N-3 The first record is a header if its fields are distinct names, and some column's type is not theirs or
//!   all columns are text.

use std::collections::{HashMap, HashSet};

use albireo_base::{SqlError, SqlType, Value};

use crate::cells::{Cells, Shape};
use crate::column::Text;
use crate::decode::stop_fault;
use crate::json::{Kind, members};
use crate::{Chunker, CsvDialect, Fault, Field, Force, TextFormat, csv, fast};

/// What is known of a CSV file beforehand.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CsvHints {
    /// What separates values.
    pub delimiter: Option<u8>,
    /// Whether the first record has names.
    pub header: Option<bool>,
    /// Quote, escape and NULL; the delimiter there does not count.
    pub dialect: CsvDialect,
    /// How many records to look at; all if `None`.
    pub sample_rows: Option<usize>,
    /// Every column is text.
    pub all_text: bool,
}

/// What a file's records are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inferred {
    /// How to read them.
    pub format: TextFormat,
    /// What they hold.
    pub fields: Vec<Field>,
    /// The first record, if it has the names.
    pub header: Option<Vec<Option<String>>>,
}

/// Delimiters that are tried.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// Records that decide on the delimiter.
const DELIMITER_RECORDS: usize = 1000;

// Types that a value may be of.
const BOOL: u16 = 1;
const BIGINT: u16 = 1 << 1;
const LONG_INTEGER: u16 = 1 << 2;
const DOUBLE: u16 = 1 << 3;
const DATE: u16 = 1 << 4;
const TIMESTAMP: u16 = 1 << 5;
const TIMESTAMPTZ: u16 = 1 << 6;
const TIME: u16 = 1 << 7;
const ALL: u16 = (1 << 8) - 1;
const MOMENTS: u16 = DATE | TIMESTAMP | TIMESTAMPTZ | TIME;

/// In the order of preference.
const TYPES: [(u16, SqlType); 8] = [
    (BOOL, SqlType::Bool),
    (BIGINT, SqlType::BigInt),
    (LONG_INTEGER, SqlType::Decimal { precision: 38, scale: 0 }),
    (DOUBLE, SqlType::Double),
    (DATE, SqlType::Date),
    (TIMESTAMP, SqlType::Timestamp),
    (TIMESTAMPTZ, SqlType::TimestampTz),
    (TIME, SqlType::Time),
];

/// Digits that a double keeps in any case.
const DOUBLE_DIGITS: usize = 15;

/// What has been seen of a column.
#[derive(Clone, Copy)]
struct Seen {
    possible: u16,
    any: bool,
}

impl Seen {
    const NOTHING: Self = Self { possible: ALL, any: false };

    fn add(&mut self, possible: u16) {
        self.possible &= possible;
        self.any = true;
    }

    fn ty(self) -> SqlType {
        let found = TYPES.iter().find(|(bit, _)| self.any && self.possible & bit != 0);
        found.map_or(SqlType::Text, |(_, ty)| *ty)
    }
}

/// The types that the text is a value of.
fn possible(bytes: &[u8]) -> u16 {
    let bytes = bytes.trim_ascii();
    match bytes.first() {
        Some(b'0'..=b'9' | b'-' | b'.') => numbers(bytes) | moments(bytes),
        Some(b't' | b'T' | b'f' | b'F')
            if bytes.eq_ignore_ascii_case(b"true") || bytes.eq_ignore_ascii_case(b"false") =>
        {
            BOOL
        }
        Some(b'n' | b'N' | b'i' | b'I') => not_finite(bytes),
        _ => 0,
    }
}

fn not_finite(bytes: &[u8]) -> u16 {
    let is = |word: &str| bytes.eq_ignore_ascii_case(word.as_bytes());
    if is("nan") || is("inf") || is("infinity") { DOUBLE } else { 0 }
}

fn numbers(bytes: &[u8]) -> u16 {
    let bare = bytes.strip_prefix(b"-").unwrap_or(bytes);
    if matches!(bare, [b'0', b'0'..=b'9', ..]) {
        return 0;
    }
    let is_integer = !bare.is_empty() && bare.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    if is_integer {
        let double = if bare.len() <= DOUBLE_DIGITS { DOUBLE } else { 0 };
        let long = if bare.len() <= 38 { LONG_INTEGER } else { 0 };
        let bigint = if text.parse::<i64>().is_ok() { BIGINT } else { 0 };
        return double | long | bigint;
    }
    if bare == b"inf" || bare.eq_ignore_ascii_case(b"infinity") {
        return DOUBLE;
    }
    let is_double = bytes.iter().all(fast::is_plain) && Value::parse(text, SqlType::Double).is_ok();
    if is_double { DOUBLE } else { 0 }
}

fn moments(bytes: &[u8]) -> u16 {
    if fast::date(bytes).is_some() {
        return DATE | TIMESTAMP;
    }
    if fast::timestamp(bytes).is_some() {
        return TIMESTAMP;
    }
    if fast::time(bytes).is_some() {
        return TIME;
    }
    let has_zone = bytes.len() > 16 && bytes.get(..10).is_some_and(|day| fast::date(day).is_some());
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    match has_zone && Value::parse(text, SqlType::TimestampTz).is_ok() {
        true if bytes[10..].iter().any(|byte| matches!(byte, b'Z' | b'z' | b'+' | b'-')) => TIMESTAMPTZ,
        true => TIMESTAMP,
        false => 0,
    }
}

/// What has been seen of a CSV file's columns.
struct Columns {
    /// The first record.
    first: Vec<Option<String>>,
    /// The columns without the first record.
    seen: Vec<Seen>,
    records: usize,
}

/// Looks at a CSV file; `None` if it has no record.
///
/// # Errors
/// Of reading; a record that is malformed in any case.
pub fn infer_csv(text: &mut Chunker<'_>, hints: &CsvHints) -> Result<Option<Inferred>, Fault> {
    let Some(chunk) = text.next_chunk()? else { return Ok(None) };
    let bytes = &chunk.bytes[chunk.start..];
    let delimiter = hints.delimiter.unwrap_or_else(|| delimiter_of(bytes, &hints.dialect));
    let begins_empty = matches!(bytes.first(), Some(b'\n' | b'\r'));
    let mut dialect = CsvDialect { delimiter, skips_empty_lines: true, ..hints.dialect.clone() };
    let mut columns = Columns { first: Vec::new(), seen: Vec::new(), records: 0 };
    let limit = hints.sample_rows.map_or(usize::MAX, |rows| rows.saturating_add(1));
    let mut next = Some(chunk);
    while let Some(chunk) = next {
        let bytes = &chunk.bytes[chunk.start..];
        let mut cells =
            Cells::new(Shape::Any, chunk.first_line, bytes.len() / 8).with_limit(limit - columns.records);
        csv::split(bytes, chunk.first_line, &dialect, &mut cells);
        columns.add(&cells, bytes)?;
        // What is malformed behind the first record is reported when it is read.
        if let Some(fault) = stop_fault(&cells, bytes, &|_| None).filter(|_| columns.records == 0) {
            return Err(fault);
        }
        let is_done = cells.stop.is_some() || columns.records >= limit;
        next = if is_done { None } else { text.next_chunk()? };
    }
    if columns.records == 0 {
        return Ok(None);
    }
    // In a file of one column an empty line is NULL.
    dialect.skips_empty_lines = begins_empty || columns.seen.len() > 1;
    let has_header = hints.header.unwrap_or_else(|| columns.has_header());
    if !has_header {
        columns.look_at_first();
    }
    let names = names_of(has_header.then_some(&columns.first), columns.seen.len());
    let ty = |seen: &Seen| if hints.all_text { SqlType::Text } else { seen.ty() };
    let fields: Vec<Field> = names
        .into_iter()
        .zip(&columns.seen)
        .map(|(name, seen)| Field { name, ty: ty(seen), nullable: true })
        .collect();
    // Programs that put everything in quotes write NULL so too; it is no number in any case.
    dialect.force =
        fields.iter().map(|field| Force { not_null: false, null: field.ty != SqlType::Text }).collect();
    let header = has_header.then_some(columns.first);
    Ok(Some(Inferred { format: TextFormat::Csv(dialect), fields, header }))
}

impl Columns {
    fn add(&mut self, cells: &Cells, bytes: &[u8]) -> Result<(), Fault> {
        let view = cells.view(bytes);
        for row in 0..cells.rows() {
            self.records += 1;
            if self.records == 1 {
                let name = |text: Text<'_>| {
                    let text = text.read()?;
                    Value::parse(text, SqlType::Text).map(|_| text.to_owned())
                };
                let names = view.record(row).map(|field| field.map(name).transpose());
                let names: Result<_, SqlError> = names.collect();
                self.first = names.map_err(|error| Fault::at(cells.line(row), error))?;
                self.seen = vec![Seen::NOTHING; self.first.len()];
                continue;
            }
            for (seen, field) in self.seen.iter_mut().zip(view.record(row)) {
                match field {
                    Some(field) if !field.bytes.is_empty() && (seen.possible != 0 || !seen.any) => {
                        seen.add(possible(field.bytes));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn look_at_first(&mut self) {
        for (seen, field) in self.seen.iter_mut().zip(&self.first) {
            if let Some(field) = field.as_deref().filter(|field| !field.is_empty()) {
                seen.add(possible(field.as_bytes()));
            }
        }
    }

    fn has_header(&self) -> bool {
        let names: Vec<&str> =
            self.first.iter().map(|name| name.as_deref().unwrap_or_default().trim()).collect();
        // The column of row numbers that R and pandas write has no name.
        let are_names = names.iter().skip(1).all(|name| !name.is_empty())
            && (names.len() > 1 || !names[0].is_empty())
            && names.iter().collect::<HashSet<_>>().len() == names.len();
        if !are_names {
            return false;
        }
        let is_value = |(name, seen): (&&str, &Seen)| seen.possible & possible(name.as_bytes()) != 0;
        let typed = || names.iter().zip(&self.seen).filter(|(_, seen)| seen.ty() != SqlType::Text);
        match typed().next() {
            Some(_) => typed().any(|column| !is_value((column.0, column.1))),
            None => names.iter().all(|name| possible(name.as_bytes()) == 0),
        }
    }
}

/// The names of the columns, each once.
fn names_of(header: Option<&Vec<Option<String>>>, columns: usize) -> Vec<String> {
    let mut taken: HashMap<String, usize> = HashMap::new();
    let name = |i: usize| {
        let written = header.and_then(|names| names.get(i)?.as_deref()).map(str::trim).unwrap_or_default();
        let mut name = if written.is_empty() { format!("column{i}") } else { written.to_owned() };
        while let Some(count) = taken.get_mut(&name) {
            *count += 1;
            name = format!("{name}_{count}");
        }
        taken.insert(name.clone(), 0);
        name
    };
    (0..columns).map(name).collect()
}

fn delimiter_of(bytes: &[u8], dialect: &CsvDialect) -> u8 {
    let score = |delimiter: &u8| {
        let dialect = CsvDialect { delimiter: *delimiter, ..dialect.clone() };
        let mut cells = Cells::new(Shape::Any, 1, bytes.len() / 8).with_limit(DELIMITER_RECORDS);
        csv::split(bytes, 1, &dialect, &mut cells);
        let view = cells.view(bytes);
        let mut counts: HashMap<usize, usize> = HashMap::new();
        (0..cells.rows()).for_each(|row| *counts.entry(view.record(row).count()).or_default() += 1);
        let usual = counts.into_iter().max_by_key(|(fields, records)| (*records, *fields));
        let (fields, records) = usual.unwrap_or((1, 0));
        (fields > 1, records, fields)
    };
    // Of equals the first is taken.
    DELIMITERS.iter().rev().copied().max_by_key(score).unwrap_or(b',')
}

/// Looks at lines of JSON; `None` if there is none. The names are those of all members in the sample.
///
/// # Errors
/// Of reading.
pub fn infer_json(text: &mut Chunker<'_>, sample_rows: Option<usize>) -> Result<Option<Inferred>, Fault> {
    let mut names: Vec<String> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut seen: Vec<Seen> = Vec::new();
    let (mut records, limit) = (0, sample_rows.unwrap_or(usize::MAX));
    while let Some(chunk) = text.next_chunk()? {
        for line in chunk.bytes[chunk.start..].split(|byte| *byte == b'\n') {
            if line.trim_ascii().is_empty() || records >= limit {
                continue;
            }
            records += 1;
            // What is malformed is reported when it is read.
            let _ = members(line, |name, value, kind| {
                let place = *places.entry(name.to_owned()).or_insert_with(|| {
                    names.push(name.to_owned());
                    seen.push(Seen::NOTHING);
                    names.len() - 1
                });
                let text = &line[value];
                match kind {
                    Kind::Null => {}
                    Kind::Bool => seen[place].add(BOOL),
                    Kind::Number => seen[place].add(numbers(text)),
                    Kind::String => seen[place].add(moments(&text[1..text.len() - 1]) & MOMENTS),
                    Kind::Nested => seen[place].add(0),
                }
                Ok(())
            });
        }
        if records >= limit {
            break;
        }
    }
    if records == 0 {
        return Ok(None);
    }
    let fields = names.iter().zip(&seen);
    let fields =
        fields.map(|(name, seen)| Field { name: name.clone(), ty: seen.ty(), nullable: true }).collect();
    let format = TextFormat::Json(crate::JsonDialect { names, is_strict: true });
    Ok(Some(Inferred { format, fields, header: None }))
}

#[cfg(test)]
mod tests;
