//! A record as lines, one for each row that it wrote: for people, or as JSON.

use crate::args::LogFormat;
use albireo::{Argument, LogContent, LogEntry, LogRows, LogWrite, RowChange, Value};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

/// A time in microseconds since 1970, as ISO 8601 has it, with microseconds.
pub fn time(time_us: i64) -> String {
    let text = Value::Timestamp(time_us).to_string();
    let Some((date, time)) = text.split_once(' ') else { return text };
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    format!("{date}T{seconds}.{fraction:0<6}Z")
}

/// How records are printed.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// For whom.
    pub format: LogFormat,
    /// The table whose rows are wanted alone, as the log writes its name.
    pub table: Option<&'a str>,
    /// The most rows of a record to print; the others are counted.
    pub rows: u64,
}

/// A line of a record of rows.
enum Change<'a> {
    Row(&'a LogWrite),
    /// Rows that are not printed: the table, and how many were inserted, updated and deleted.
    Rest(&'a str, [u64; 3]),
}

impl Lines<'_> {
    /// Prints a record: a line for each row that it wrote, or a line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn print(&self, entry: &LogEntry<'_>, out: &mut dyn Write) -> io::Result<()> {
        let (head, change): (String, fn(&Change<'_>) -> String) = match self.format {
            LogFormat::Text => (text_head(entry), change_text),
            LogFormat::Json => (json_head(entry), change_json),
        };
        let mut line = |rest: &str| writeln!(out, "{head}{rest}");
        match (&entry.content, self.format) {
            (LogContent::Writes(rows) | LogContent::Part { rows, .. }, _) if rows.count() > 0 => {
                self.changes(rows, &mut |at| line(&change(&at)))
            }
            (content, LogFormat::Text) => line(&content_text(content)),
            (content, LogFormat::Json) => line(&content_json(content)),
        }
    }

    /// The first rows that are wanted, and how many there are besides, by table.
    fn changes(
        &self,
        rows: &LogRows<'_>,
        line: &mut dyn FnMut(Change<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let is_wanted = |name: &str| self.table.is_none_or(|table| is_named(name, table));
        let mut rest: Vec<(Arc<str>, [u64; 3])> = Vec::new();
        for table in rows.tables().filter(|table| is_wanted(&table.table)) {
            let counts = CHANGES.map(|change| table.rows_of(change));
            match rest.iter_mut().find(|(name, _)| *name == table.table) {
                Some((_, sum)) => (0..3).for_each(|at| sum[at] += counts[at]),
                None => rest.push((Arc::clone(&table.table), counts)),
            }
        }
        let total: u64 = rest.iter().flat_map(|(_, counts)| counts).sum();
        let printed = total.min(self.rows);
        for row in rows.iter().filter(|row| is_wanted(&row.table)).take(printed as usize) {
            if let Some((_, counts)) = rest.iter_mut().find(|(name, _)| *name == row.table) {
                let at = CHANGES.iter().position(|change| *change == row.change).unwrap_or_default();
                counts[at] -= 1;
            }
            line(Change::Row(&row))?;
        }
        let mut rest = rest.iter().filter(|(_, counts)| *counts != [0; 3]);
        rest.try_for_each(|(table, counts)| line(Change::Rest(table, *counts)))
    }
}

const CHANGES: [RowChange; 3] = [RowChange::Insert, RowChange::Update, RowChange::Delete];

/// Whether a name as the log has it is the one that somebody wrote.
pub fn is_named(name: &str, wanted: &str) -> bool {
    name == wanted.strip_prefix("public.").unwrap_or(wanted)
}

/// What each line for people begins with.
fn text_head(entry: &LogEntry<'_>) -> String {
    let partition = match entry.partition {
        Some(partition) => format!("partition {partition}"),
        None => "crossing".to_owned(),
    };
    let (ordinal, time, kind) = (entry.ordinal, time(entry.time_us), entry.content.kind());
    format!("{ordinal}  {time}  {partition:<11}  {kind:<10}  ")
}

fn content_text(content: &LogContent<'_>) -> String {
    match content {
        LogContent::Definition { text, .. } => one_line(text),
        LogContent::Writes(rows) => format!("{} rows", grouped(rows.count())),
        LogContent::Part { transaction, rows } => {
            format!("{} rows of transaction {transaction}", grouped(rows.count()))
        }
        LogContent::Joined { transaction, parts } => {
            format!("the end of transaction {transaction}, which has {parts} parts")
        }
        LogContent::Untold { archive, table } => {
            format!("rows of table {table}, which archive {archive} has no longer as it was")
        }
        LogContent::Command { routine, version, arguments, .. } => {
            let mut line = format!("{routine} version {version}:");
            for (name, argument) in arguments {
                let _ = write!(line, " {name}={}", escaped(&literal(argument)));
            }
            line
        }
        LogContent::Statement { text, rows, parameters, .. } => {
            let mut line = format!("{} rows: {}", grouped(*rows), one_line(text));
            for (number, value) in (1..).zip(parameters) {
                let _ = write!(line, " ${number}={}", escaped(&literal(&Argument::Value(value.clone()))));
            }
            line
        }
    }
}

fn change_text(change: &Change<'_>) -> String {
    match change {
        Change::Row(row) => {
            let mut line = format!("{} {}", row.change.word(), row.table);
            pairs_text(&row.key, &mut line);
            if matches!(row.change, RowChange::Update | RowChange::Insert) {
                line.push(':');
            }
            pairs_text(&row.values, &mut line);
            line
        }
        Change::Rest(table, counts) => {
            let counted = counts.iter().zip(["inserted", "updated", "deleted"]).filter(|(n, _)| **n > 0);
            let counted: Vec<String> =
                counted.map(|(count, word)| format!("{} {word}", grouped(*count))).collect();
            let total: u64 = counts.iter().sum();
            let rows = if total == 1 { "row" } else { "rows" };
            format!("... and {} more {rows} in {table} ({})", grouped(total), counted.join(", "))
        }
    }
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn pairs_text(pairs: &[(Arc<str>, Value)], line: &mut String) {
    for (name, value) in pairs {
        let _ = write!(line, " {name}={}", escaped(&value.to_literal()));
    }
}

/// A statement on one line: what blanks and line ends stand for between words they stand for here too.
/// Quoted text keeps its line ends, as `\n`.
fn one_line(text: &str) -> String {
    escaped(text.trim())
}

/// Text without line ends and other control characters.
fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            control if control.is_control() => {
                let _ = write!(line, "\\u{{{:x}}}", control as u32);
            }
            other => line.push(other),
        }
    }
    line
}

/// What each object for programs begins with.
fn json_head(entry: &LogEntry<'_>) -> String {
    let partition = entry.partition.map_or("null".to_owned(), |partition| partition.to_string());
    format!(
        "{{\"record\": {}, \"time\": {}, \"partition\": {partition}, \"crossing\": {}, \"frame\": {}, \
         \"segment\": {}, \"offset\": {}, \"kind\": {}, ",
        entry.ordinal,
        quoted(&time(entry.time_us)),
        entry.partition.is_none(),
        entry.frame,
        entry.segment,
        entry.offset,
        quoted(entry.content.kind()),
    )
}

fn content_json(content: &LogContent<'_>) -> String {
    match content {
        LogContent::Definition { text, tables, routines } => {
            let (tables, routines) = (names_json(tables), names_json(routines));
            format!("\"text\": {}, \"tables\": {tables}, \"routines\": {routines}}}", quoted(text))
        }
        LogContent::Writes(rows) => format!("\"rows\": {}}}", rows.count()),
        LogContent::Part { transaction, rows } => {
            format!("\"transaction\": {transaction}, \"rows\": {}}}", rows.count())
        }
        LogContent::Joined { transaction, parts } => {
            format!("\"transaction\": {transaction}, \"parts\": {parts}}}")
        }
        LogContent::Untold { archive, table } => {
            format!("\"untold\": {{\"archive\": {archive}, \"table\": {}}}}}", quoted(table))
        }
        LogContent::Command { routine, id, version, moved, arguments } => {
            let pair = |(name, argument): &(Arc<str>, Argument)| {
                format!("{}: {}", quoted(name), argument_json(argument))
            };
            let arguments = arguments.iter().map(pair).collect::<Vec<_>>().join(", ");
            format!(
                "\"routine\": {}, \"id\": {id}, \"version\": {version}, \"rows_moved\": {moved}, \
                 \"arguments\": {{{arguments}}}}}",
                quoted(routine)
            )
        }
        LogContent::Statement { table, text, rows, parameters } => {
            let parameter = |value: &Value| argument_json(&Argument::Value(value.clone()));
            let parameters = parameters.iter().map(parameter).collect::<Vec<_>>().join(", ");
            format!(
                "\"table\": {}, \"text\": {}, \"rows\": {rows}, \"parameters\": [{parameters}]}}",
                quoted(table),
                quoted(text)
            )
        }
    }
}

fn change_json(change: &Change<'_>) -> String {
    match change {
        Change::Row(row) => format!("\"row\": {}}}", row_json(row)),
        Change::Rest(table, [inserted, updated, deleted]) => format!(
            "\"more_rows\": {{\"table\": {}, \"inserted\": {inserted}, \"updated\": {updated}, \"deleted\": \
             {deleted}}}}}",
            quoted(table)
        ),
    }
}

/// An argument as SQL writes it.
fn literal(argument: &Argument) -> String {
    match argument {
        Argument::Value(value) => value.to_literal(),
        Argument::Array(items) => {
            format!("ARRAY[{}]", items.iter().map(Value::to_literal).collect::<Vec<_>>().join(", "))
        }
    }
}

fn argument_json(argument: &Argument) -> String {
    match argument {
        Argument::Value(value) => value_json(value),
        Argument::Array(items) => {
            format!("[{}]", items.iter().map(value_json).collect::<Vec<_>>().join(", "))
        }
    }
}

fn row_json(row: &LogWrite) -> String {
    let partition = row.partition.map_or("null".to_owned(), |partition| partition.to_string());
    let mut text = format!(
        "{{\"operation\": {}, \"table\": {}, \"partition\": {partition}",
        quoted(row.change.word()),
        quoted(&row.table)
    );
    for (key, pairs) in [("key", &row.key), ("values", &row.values)] {
        if !pairs.is_empty() {
            let _ = write!(text, ", \"{key}\": {}", pairs_json(pairs));
        }
    }
    text.push('}');
    text
}

fn names_json(names: &[Arc<str>]) -> String {
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    format!("[{}]", names.join(", "))
}

fn pairs_json(pairs: &[(Arc<str>, Value)]) -> String {
    let pair = |(name, value): &(Arc<str>, Value)| format!("{}: {}", quoted(name), value_json(value));
    let pairs: Vec<String> = pairs.iter().map(pair).collect();
    format!("{{{}}}", pairs.join(", "))
}

/// Numbers keep all their digits; what JSON has no word for is a string.
fn value_json(value: &Value) -> String {
    let text = value.to_string();
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) | Value::Decimal(_) => text,
        Value::Real(number) if number.is_finite() => text,
        Value::Double(number) if number.is_finite() => text,
        _ => quoted(&text),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_six_digits_behind_the_point() {
        assert_eq!(time(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(time(1_500_000), "1970-01-01T00:00:01.500000Z");
        assert_eq!(time(-1), "1969-12-31T23:59:59.999999Z");
        for extreme in [i64::MIN, i64::MAX] {
            assert!(!time(extreme).is_empty());
        }
    }

    #[test]
    fn numbers_have_their_digits_in_groups_of_three() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (4_799_990, "4,799,990")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn text_with_line_ends_stays_on_its_line() {
        assert_eq!(escaped("a\n\tb\\c\u{1}"), "a\\n\\tb\\\\c\\u{1}");
    }

    #[test]
    fn values_are_json_whatever_they_are() {
        for value in [
            Value::Null,
            Value::Bool(true),
            Value::Double(f64::NAN),
            Value::Double(1e300),
            Value::Real(-0.5),
            Value::Decimal(albireo::Decimal { unscaled: -5, scale: 2 }),
            Value::Text("\"\n".to_owned()),
            Value::Bytea(vec![0, 255]),
        ] {
            let text = value_json(&value);
            assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
        }
    }
}
