//! Values into lines: CSV, PostgreSQL's text format, objects of JSON.

use std::io::{self, Write};

use albireo_base::Value;
use albireo_files::{write_json_string, write_text};
use albireo_sql::copy::{CsvOptions, TextOptions};

/// Writes records of CSV.
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
        // Alone on a line `\.` ends the data for PostgreSQL and psql.
        if text != self.options.null && text != "\\." && !text.bytes().any(special) {
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

/// Adds a record of the text format.
pub(super) fn text_record<'a>(
    values: impl Iterator<Item = Option<&'a str>>,
    options: &TextOptions,
    to: &mut Vec<u8>,
) {
    for (index, value) in values.enumerate() {
        if index > 0 {
            to.push(options.delimiter);
        }
        match value {
            None => to.extend_from_slice(options.null.as_bytes()),
            Some(text) => write_text(text, options.delimiter, to),
        }
    }
    to.push(b'\n');
}

/// Adds an object on a line of its own; `names` are JSON already.
pub(super) fn json_record<'a>(names: &[Vec<u8>], values: impl Iterator<Item = &'a Value>, to: &mut Vec<u8>) {
    to.push(b'{');
    for (index, (name, value)) in names.iter().zip(values).enumerate() {
        if index > 0 {
            to.push(b',');
        }
        to.extend_from_slice(name);
        to.push(b':');
        json_value(value, to);
    }
    to.extend_from_slice(b"}\n");
}

fn json_value(value: &Value, to: &mut Vec<u8>) {
    let is_number = match value {
        Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) | Value::Decimal(_) => true,
        // JSON has no infinity.
        Value::Real(number) => number.is_finite(),
        Value::Double(number) => number.is_finite(),
        _ => false,
    };
    match (value, value.to_text()) {
        (_, None) => to.extend_from_slice(b"null"),
        (Value::Bool(value), _) => to.extend_from_slice(if *value { b"true" } else { b"false" }),
        (_, Some(text)) if is_number => to.extend_from_slice(text.as_bytes()),
        (_, Some(text)) => write_json_string(&text, to),
    }
}

#[cfg(test)]
mod tests;
