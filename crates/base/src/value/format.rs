//! PostgreSQL's text output form.

use std::fmt::{self, Write};

use super::{Value, datetime};

/// PostgreSQL's text form; NULL, which has none, reads `NULL`. CHAR is shown without its blanks.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Bool(b) => f.write_str(if *b { "t" } else { "f" }),
            Self::SmallInt(n) => write!(f, "{n}"),
            Self::Integer(n) => write!(f, "{n}"),
            Self::BigInt(n) => write!(f, "{n}"),
            Self::Real(n) => write_float(f, f64::from(*n), &format!("{n:e}"), 6),
            Self::Double(n) => write_float(f, *n, &format!("{n:e}"), 15),
            Self::Decimal(d) => write!(f, "{d}"),
            Self::Text(s) => f.write_str(s),
            Self::Bytea(bytes) => write_bytea(f, bytes),
            Self::Date(days) => datetime::format_date(f, *days),
            Self::Time(micros) => datetime::format_time(f, *micros),
            Self::Timestamp(micros) => datetime::format_timestamp(f, *micros, ""),
            Self::TimestampTz(micros) => datetime::format_timestamp(f, *micros, "+00"),
            Self::Uuid(bytes) => write_uuid(f, bytes),
        }
    }
}

impl Value {
    /// PostgreSQL's text form, `None` for NULL.
    pub fn to_text(&self) -> Option<String> {
        if self.is_null() { None } else { Some(self.to_string()) }
    }

    /// The value as a literal in SQL text: numbers bare, all else quoted, NULL as `NULL`.
    pub fn to_literal(&self) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Bool(b) => if *b { "TRUE" } else { "FALSE" }.to_owned(),
            Self::SmallInt(_) | Self::Integer(_) | Self::BigInt(_) | Self::Decimal(_) => self.to_string(),
            other => format!("'{}'", other.to_string().replace('\'', "''")),
        }
    }
}

/// The shortest digits that read back the same, with an exponent below 10^-4 and from
/// `10^fixed_below` on: the rule of PostgreSQL 12 and later. `scientific` is Rust's form of the
/// number, such as `-1.25e-7`.
fn write_float(f: &mut fmt::Formatter<'_>, number: f64, scientific: &str, fixed_below: i32) -> fmt::Result {
    if number.is_nan() {
        return f.write_str("NaN");
    }
    if number.is_infinite() {
        return f.write_str(if number > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let (sign, scientific) = match scientific.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", scientific),
    };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    f.write_str(sign)?;
    if !(-4..fixed_below).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return write!(f, "{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    if exponent < 0 {
        return write!(f, "0.{:0>1$}", digits, digits.len() + exponent.unsigned_abs() as usize - 1);
    }
    let whole = exponent.unsigned_abs() as usize + 1;
    match digits.split_at_checked(whole) {
        Some((whole, "")) => f.write_str(whole),
        Some((whole, fraction)) => write!(f, "{whole}.{fraction}"),
        None => write!(f, "{digits:0<whole$}"),
    }
}

fn write_bytea(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("\\x")?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn write_uuid(f: &mut fmt::Formatter<'_>, bytes: &[u8; 16]) -> fmt::Result {
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            f.write_char('-')?;
        }
        write!(f, "{byte:02x}")?;
    }
    Ok(())
}
