//! A record as a line: for people, or as JSON.

use albireo::{Argument, LogContent, LogEntry, LogWrite, RowChange, Value};
use std::fmt::Write;
use std::sync::Arc;

/// A time in microseconds since 1970, as ISO 8601 has it, with microseconds.
pub fn time(time_us: i64) -> String {
    let text = Value::Timestamp(time_us).to_string();
    let Some((date, time)) = text.split_once(' ') else { return text };
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    format!("{date}T{seconds}.{fraction:0<6}Z")
}

/// The line for people.
pub fn text(entry: &LogEntry) -> String {
    let partition = match entry.partition {
        Some(partition) => format!("partition {partition}"),
        None => "crossing".to_owned(),
    };
    let (ordinal, time, kind) = (entry.ordinal, time(entry.time_us), entry.content.kind());
    let mut line = format!("{ordinal}  {time}  {partition:<11}  {kind:<10}  ");
    match &entry.content {
        LogContent::Definition { text, .. } => line.push_str(&one_line(text)),
        LogContent::Writes(rows) => rows_text(rows, &mut line),
        LogContent::Untold { archive, table } => {
            let _ = write!(line, "rows of table {table}, which archive {archive} has no longer as it was");
        }
        LogContent::Command { routine, version, arguments, .. } => {
            let _ = write!(line, "{routine} version {version}:");
            for (name, argument) in arguments {
                let _ = write!(line, " {name}={}", escaped(&literal(argument)));
            }
        }
    }
    line
}

/// The rows: what is said of several one after another is said once.
fn rows_text(rows: &[LogWrite], line: &mut String) {
    for (index, row) in rows.iter().enumerate() {
        let separator = if index == 0 { "" } else { "; " };
        let _ = write!(line, "{separator}{} {}", row.change.word(), row.table);
        pairs_text(&row.key, line);
        let colon = matches!(row.change, RowChange::Update | RowChange::Insert);
        if colon {
            line.push(':');
        }
        pairs_text(&row.values, line);
    }
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

/// The line for programs.
pub fn json(entry: &LogEntry) -> String {
    let partition = entry.partition.map_or("null".to_owned(), |partition| partition.to_string());
    let mut line = format!(
        "{{\"record\": {}, \"time\": {}, \"partition\": {partition}, \"crossing\": {}, \"frame\": {}, \
         \"segment\": {}, \"offset\": {}, \"kind\": {}, ",
        entry.ordinal,
        quoted(&time(entry.time_us)),
        entry.partition.is_none(),
        entry.frame,
        entry.segment,
        entry.offset,
        quoted(entry.content.kind()),
    );
    match &entry.content {
        LogContent::Definition { text, tables, routines } => {
            let (tables, routines) = (names_json(tables), names_json(routines));
            let _ =
                write!(line, "\"text\": {}, \"tables\": {tables}, \"routines\": {routines}}}", quoted(text));
        }
        LogContent::Writes(rows) => {
            let rows: Vec<String> = rows.iter().map(row_json).collect();
            let _ = write!(line, "\"rows\": [{}]}}", rows.join(", "));
        }
        LogContent::Untold { archive, table } => {
            let _ = write!(line, "\"untold\": {{\"archive\": {archive}, \"table\": {}}}}}", quoted(table));
        }
        LogContent::Command { routine, id, version, moved, arguments } => {
            let pair = |(name, argument): &(Arc<str>, Argument)| {
                format!("{}: {}", quoted(name), argument_json(argument))
            };
            let arguments = arguments.iter().map(pair).collect::<Vec<_>>().join(", ");
            let _ = write!(
                line,
                "\"routine\": {}, \"id\": {id}, \"version\": {version}, \"rows_moved\": {moved}, \
                 \"arguments\": {{{arguments}}}}}",
                quoted(routine)
            );
        }
    }
    line
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
