//! Functions of texts. Lengths and positions count characters.

use albireo_base::text::{initcap, lower, upper};
use albireo_base::{SqlError, SqlState, Value, budget};

use super::{Builtin, Result, entry, int_at, integer, invalid, str_at, text, value};
use crate::datum::Datum;
use crate::expr::convert::unexpected;
use crate::types::Scalar;

const TEXT: Scalar = Scalar::Text;
const INT: Scalar = Scalar::Integer;
const BYTEA: Scalar = Scalar::Bytea;
const PADDED: Builtin = entry("rpad", &[TEXT, INT], TEXT, |a| pad(a, " ", false));
/// `rpad(text, length)`
pub(in crate::expr) static PAD: Builtin = PADDED;

pub(super) static FUNCTIONS: &[Builtin] = &[
    entry("length", &[TEXT], INT, |a| integer(str_at(a, 0)?.chars().count())),
    entry("length", &[BYTEA], INT, |a| integer(bytes_at(a, 0)?.len())),
    entry("char_length", &[TEXT], INT, |a| integer(str_at(a, 0)?.chars().count())),
    entry("character_length", &[TEXT], INT, |a| integer(str_at(a, 0)?.chars().count())),
    entry("octet_length", &[TEXT], INT, |a| integer(str_at(a, 0)?.len())),
    entry("octet_length", &[BYTEA], INT, |a| integer(bytes_at(a, 0)?.len())),
    entry("bit_length", &[TEXT], INT, |a| integer(str_at(a, 0)?.len().saturating_mul(8))),
    entry("upper", &[TEXT], TEXT, |a| text(upper(str_at(a, 0)?))),
    entry("lower", &[TEXT], TEXT, |a| text(lower(str_at(a, 0)?))),
    entry("initcap", &[TEXT], TEXT, |a| text(initcap(str_at(a, 0)?))),
    entry("substr", &[TEXT, INT], TEXT, |a| substring(a, false)),
    entry("substr", &[TEXT, INT, INT], TEXT, |a| substring(a, true)),
    entry("substring", &[TEXT, INT], TEXT, |a| substring(a, false)),
    entry("substring", &[TEXT, INT, INT], TEXT, |a| substring(a, true)),
    entry("left", &[TEXT, INT], TEXT, |a| text(head(str_at(a, 0)?, count_from(a)?))),
    entry("right", &[TEXT, INT], TEXT, right),
    entry("lpad", &[TEXT, INT], TEXT, |a| pad(a, " ", true)),
    entry("lpad", &[TEXT, INT, TEXT], TEXT, |a| pad(a, str_at(a, 2)?, true)),
    PADDED,
    entry("rpad", &[TEXT, INT, TEXT], TEXT, |a| pad(a, str_at(a, 2)?, false)),
    entry("btrim", &[TEXT], TEXT, |a| trim(a, " ", true, true)),
    entry("btrim", &[TEXT, TEXT], TEXT, |a| trim(a, str_at(a, 1)?, true, true)),
    entry("ltrim", &[TEXT], TEXT, |a| trim(a, " ", true, false)),
    entry("ltrim", &[TEXT, TEXT], TEXT, |a| trim(a, str_at(a, 1)?, true, false)),
    entry("rtrim", &[TEXT], TEXT, |a| trim(a, " ", false, true)),
    entry("rtrim", &[TEXT, TEXT], TEXT, |a| trim(a, str_at(a, 1)?, false, true)),
    entry("replace", &[TEXT, TEXT, TEXT], TEXT, replace),
    entry("position", &[TEXT, TEXT], INT, position),
    entry("strpos", &[TEXT, TEXT], INT, position),
    entry("split_part", &[TEXT, TEXT, INT], TEXT, split_part),
    entry("repeat", &[TEXT, INT], TEXT, repeat),
    entry("reverse", &[TEXT], TEXT, |a| text(str_at(a, 0)?.chars().rev().collect::<String>())),
    entry("ascii", &[TEXT], INT, |a| integer(str_at(a, 0)?.chars().next().map_or(0, |c| c as usize))),
    entry("starts_with", &[TEXT, TEXT], Scalar::Bool, |a| {
        Ok(Value::Bool(str_at(a, 0)?.starts_with(str_at(a, 1)?)).into())
    }),
    entry("translate", &[TEXT, TEXT, TEXT], TEXT, translate),
    entry("quote_ident", &[TEXT], TEXT, |a| text(quote_ident(str_at(a, 0)?))),
    entry("overlay", &[TEXT, TEXT, INT], TEXT, |a| overlay(a, None)),
    entry("overlay", &[TEXT, TEXT, INT, INT], TEXT, |a| overlay(a, Some(int_at(a, 3)?))),
];

fn bytes_at(args: &[Datum], n: usize) -> Result<&[u8]> {
    match value(args, n)? {
        Value::Bytea(bytes) => Ok(bytes),
        _ => Err(unexpected()),
    }
}

/// The byte behind the first `count` characters.
pub fn byte_of(text: &str, count: usize) -> usize {
    text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)
}

fn head(text: &str, count: usize) -> &str {
    text.get(..byte_of(text, count)).unwrap_or_default()
}

fn tail(text: &str, count: usize) -> &str {
    text.get(byte_of(text, count)..).unwrap_or_default()
}

fn substring(args: &[Datum], limited: bool) -> Result<Datum> {
    let (from, start) = (str_at(args, 0)?, i64::from(int_at(args, 1)?));
    let skipped = usize::try_from(start - 1).unwrap_or(0);
    if !limited {
        return text(tail(from, skipped));
    }
    let count = i64::from(int_at(args, 2)?);
    if count < 0 {
        return Err(SqlError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let end = usize::try_from(start + count - 1).unwrap_or(0);
    text(head(tail(from, skipped), end.saturating_sub(skipped)))
}

/// The second argument as a number of characters from the left; negative: all but so many.
fn count_from(args: &[Datum]) -> Result<usize> {
    let count = i64::from(int_at(args, 1)?);
    Ok(match usize::try_from(count) {
        Ok(count) => count,
        Err(_) => str_at(args, 0)?.chars().count().saturating_sub(count.unsigned_abs() as usize),
    })
}

fn right(args: &[Datum]) -> Result<Datum> {
    let (from, count) = (str_at(args, 0)?, i64::from(int_at(args, 1)?));
    let skipped = match usize::try_from(count) {
        Ok(count) => from.chars().count().saturating_sub(count),
        // PostgreSQL negates the smallest number to itself, and takes all.
        Err(_) if count == i64::from(i32::MIN) => 0,
        Err(_) => count.unsigned_abs() as usize,
    };
    text(tail(from, skipped))
}

/// Checks that two texts are not too long to be one.
///
/// # Errors
/// As [`budget::value`].
pub fn check_joined(a: &str, b: &str) -> Result<()> {
    budget::value(a.len().saturating_add(b.len()))
}

fn pad(args: &[Datum], filling: &str, left: bool) -> Result<Datum> {
    text(albireo_base::text::pad(str_at(args, 0)?, int_at(args, 1)?, filling, left)?)
}

fn trim(args: &[Datum], characters: &str, left: bool, right: bool) -> Result<Datum> {
    let mut from = str_at(args, 0)?;
    let unwanted = |c: char| characters.contains(c);
    if left {
        from = from.trim_start_matches(unwanted);
    }
    if right {
        from = from.trim_end_matches(unwanted);
    }
    text(from)
}

fn replace(args: &[Datum]) -> Result<Datum> {
    let (from, what, by) = (str_at(args, 0)?, str_at(args, 1)?, str_at(args, 2)?);
    if what.is_empty() {
        return text(from);
    }
    let found = from.matches(what).count();
    budget::value(found.saturating_mul(by.len()).saturating_add(from.len() - found * what.len()))?;
    text(from.replace(what, by))
}

fn position(args: &[Datum]) -> Result<Datum> {
    let (whole, part) = (str_at(args, 0)?, str_at(args, 1)?);
    match whole.find(part) {
        Some(at) => integer(whole.get(..at).unwrap_or_default().chars().count() + 1),
        None => integer(0),
    }
}

fn split_part(args: &[Datum]) -> Result<Datum> {
    let (from, separator, n) = (str_at(args, 0)?, str_at(args, 1)?, int_at(args, 2)?);
    if n == 0 {
        return Err(invalid("field position must not be zero"));
    }
    let at = n.unsigned_abs() as usize - 1;
    if separator.is_empty() {
        return text(if at == 0 { from } else { "" });
    }
    let mut parts = from.split(separator);
    if n > 0 {
        return text(parts.nth(at).unwrap_or_default());
    }
    // Separators are found from the left all the same.
    let parts: Vec<&str> = parts.collect();
    let part = parts.len().checked_sub(at + 1).and_then(|at| parts.get(at).copied());
    text(part.unwrap_or_default())
}

fn repeat(args: &[Datum]) -> Result<Datum> {
    let (from, times) = (str_at(args, 0)?, usize::try_from(int_at(args, 1)?).unwrap_or(0));
    budget::value(from.len().saturating_mul(times))?;
    text(from.repeat(times))
}

fn translate(args: &[Datum]) -> Result<Datum> {
    let (from, what) = (str_at(args, 0)?, str_at(args, 1)?);
    let by: Vec<char> = str_at(args, 2)?.chars().collect();
    let change = |c: char| match what.chars().position(|other| other == c) {
        Some(at) => by.get(at).copied(),
        None => Some(c),
    };
    text(from.chars().filter_map(change).collect::<String>())
}

fn overlay(args: &[Datum], count: Option<i32>) -> Result<Datum> {
    let (whole, part, start) = (str_at(args, 0)?, str_at(args, 1)?, int_at(args, 2)?);
    if start <= 0 {
        return Err(SqlError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let before = start as usize - 1;
    let count = match count {
        Some(count) => i64::from(count),
        None => part.chars().count() as i64,
    };
    let after = usize::try_from(before as i64 + count).unwrap_or(0);
    let (head, tail) = (head(whole, before), tail(whole, after));
    budget::value(head.len().saturating_add(part.len()).saturating_add(tail.len()))?;
    text(format!("{head}{part}{tail}"))
}

/// The text as a literal.
pub(super) fn quote_literal(from: &str) -> String {
    let prefix = if from.contains('\\') { "E" } else { "" };
    format!("{prefix}'{}'", from.replace('\\', "\\\\").replace('\'', "''"))
}

/// Words of SQL that are no names without quotes, or not everywhere.
const KEYWORDS: &str = "all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean \
    both case cast char character check coalesce collate collation column concurrently constraint \
    create cross current_catalog current_date current_role current_schema current_time \
    current_timestamp current_user dec decimal default deferrable desc distinct do else end except \
    exists extract false fetch float for foreign freeze from full grant greatest group grouping having \
    ilike in initially inner inout int integer intersect interval into is isnull join lateral leading \
    least left like limit localtime localtimestamp national natural nchar none normalize not notnull \
    null nullif numeric offset on only or order out outer overlaps overlay placing position precision \
    primary real references returning right row select session_user setof similar smallint some \
    substring symmetric table tablesample then time timestamp to trailing treat trim true union unique \
    user using values varchar variadic verbose when where window with xmlattributes xmlconcat \
    xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

/// The text as a name: in double quotes where they are needed.
pub(super) fn quote_ident(from: &str) -> String {
    match KEYWORDS.split(' ').any(|word| word == from) {
        true => format!("\"{from}\""),
        false => albireo_sql::names::display(from),
    }
}
