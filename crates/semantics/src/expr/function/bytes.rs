//! Functions of BYTEA: parts, bits, hashes, and texts that stand for bytes.

use albireo_base::{SqlError, SqlState, Value, budget};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::{Builtin, Result, entry, hash, int_at, integer, invalid, str_at, text, value};
use crate::datum::Datum;
use crate::expr::convert::unexpected;
use crate::types::Scalar;

const TEXT: Scalar = Scalar::Text;
const INT: Scalar = Scalar::Integer;
const BIG: Scalar = Scalar::BigInt;
const BYTEA: Scalar = Scalar::Bytea;

pub(super) static FUNCTIONS: &[Builtin] = &[
    entry("md5", &[TEXT], TEXT, |a| text(hex(&hash::md5(str_at(a, 0)?.as_bytes())))),
    entry("md5", &[BYTEA], TEXT, |a| text(hex(&hash::md5(at(a, 0)?)))),
    entry("sha224", &[BYTEA], BYTEA, |a| made(hash::sha256(at(a, 0)?, true))),
    entry("sha256", &[BYTEA], BYTEA, |a| made(hash::sha256(at(a, 0)?, false))),
    entry("sha384", &[BYTEA], BYTEA, |a| made(hash::sha512(at(a, 0)?, true))),
    entry("sha512", &[BYTEA], BYTEA, |a| made(hash::sha512(at(a, 0)?, false))),
    entry("encode", &[BYTEA, TEXT], TEXT, encode),
    entry("decode", &[TEXT, TEXT], BYTEA, decode),
    entry("convert_to", &[TEXT, TEXT], BYTEA, |a| {
        utf8(str_at(a, 1)?, "destination")?;
        made(str_at(a, 0)?.as_bytes().to_vec())
    }),
    entry("convert_from", &[BYTEA, TEXT], TEXT, convert_from),
    entry("bit_length", &[BYTEA], INT, |a| integer(at(a, 0)?.len().saturating_mul(8))),
    entry("bit_count", &[BYTEA], BIG, |a| {
        let ones: u64 = at(a, 0)?.iter().map(|byte| u64::from(byte.count_ones())).sum();
        Ok(Value::BigInt(ones as i64).into())
    }),
    entry("get_byte", &[BYTEA, INT], INT, |a| {
        let (bytes, n) = (at(a, 0)?, i64::from(int_at(a, 1)?));
        Ok(Value::Integer(i32::from(bytes[index(n, bytes.len())?])).into())
    }),
    entry("set_byte", &[BYTEA, INT, INT], BYTEA, |a| {
        let (mut bytes, n) = (at(a, 0)?.to_vec(), i64::from(int_at(a, 1)?));
        let n = index(n, bytes.len())?;
        bytes[n] = int_at(a, 2)? as u8;
        made(bytes)
    }),
    entry("get_bit", &[BYTEA, BIG], INT, |a| {
        let (bytes, n) = (at(a, 0)?, big_at(a, 1)?);
        let n = index(n, bytes.len() * 8)?;
        Ok(Value::Integer(i32::from(bytes[n / 8] >> (n % 8) & 1)).into())
    }),
    entry("set_bit", &[BYTEA, BIG, INT], BYTEA, set_bit),
    entry("substr", &[BYTEA, INT], BYTEA, |a| part(a, false)),
    entry("substr", &[BYTEA, INT, INT], BYTEA, |a| part(a, true)),
    entry("substring", &[BYTEA, INT], BYTEA, |a| part(a, false)),
    entry("substring", &[BYTEA, INT, INT], BYTEA, |a| part(a, true)),
    entry("position", &[BYTEA, BYTEA], INT, |a| {
        let (whole, wanted) = (at(a, 0)?, at(a, 1)?);
        match wanted.is_empty() {
            true => integer(1),
            false => integer(whole.windows(wanted.len()).position(|w| w == wanted).map_or(0, |n| n + 1)),
        }
    }),
    entry("overlay", &[BYTEA, BYTEA, INT], BYTEA, |a| overlay(a, at(a, 1)?.len() as i64)),
    entry("overlay", &[BYTEA, BYTEA, INT, INT], BYTEA, |a| overlay(a, i64::from(int_at(a, 3)?))),
    entry("btrim", &[BYTEA, BYTEA], BYTEA, |a| trim(a, true, true)),
    entry("ltrim", &[BYTEA, BYTEA], BYTEA, |a| trim(a, true, false)),
    entry("rtrim", &[BYTEA, BYTEA], BYTEA, |a| trim(a, false, true)),
];

/// `bytea || bytea`
pub(in crate::expr) static CONCAT: Builtin = entry("byteacat", &[BYTEA, BYTEA], BYTEA, |a| {
    let (left, right) = (at(a, 0)?, at(a, 1)?);
    budget::value(left.len().saturating_add(right.len()))?;
    made([left, right].concat())
});

fn at(args: &[Datum], n: usize) -> Result<&[u8]> {
    match value(args, n)? {
        Value::Bytea(bytes) => Ok(bytes),
        _ => Err(unexpected()),
    }
}

fn big_at(args: &[Datum], n: usize) -> Result<i64> {
    match value(args, n)? {
        Value::BigInt(n) => Ok(*n),
        _ => Err(unexpected()),
    }
}

fn made(bytes: Vec<u8>) -> Result<Datum> {
    Ok(Value::Bytea(bytes).into())
}

fn index(n: i64, length: usize) -> Result<usize> {
    let found = usize::try_from(n).ok().filter(|n| *n < length);
    found.ok_or_else(|| {
        let last = length as i64 - 1;
        SqlError::new(SqlState(*b"2202E"), format!("index {n} out of valid range, 0..{last}"))
    })
}

fn set_bit(args: &[Datum]) -> Result<Datum> {
    let (mut bytes, n, bit) = (at(args, 0)?.to_vec(), big_at(args, 1)?, int_at(args, 2)?);
    let n = index(n, bytes.len() * 8)?;
    match bit {
        0 => bytes[n / 8] &= !(1 << (n % 8)),
        1 => bytes[n / 8] |= 1 << (n % 8),
        _ => return Err(invalid("new bit must be 0 or 1")),
    }
    made(bytes)
}

fn part(args: &[Datum], limited: bool) -> Result<Datum> {
    let (bytes, start) = (at(args, 0)?, i64::from(int_at(args, 1)?) - 1);
    let length = bytes.len() as i64;
    let end = match limited {
        false => length,
        true => {
            let count = i64::from(int_at(args, 2)?);
            if count < 0 {
                let message = "negative substring length not allowed";
                return Err(SqlError::new(SqlState::SUBSTRING_ERROR, message));
            }
            start + count
        }
    };
    let range = start.clamp(0, length) as usize..end.clamp(0, length) as usize;
    made(bytes.get(range).unwrap_or_default().to_vec())
}

fn overlay(args: &[Datum], count: i64) -> Result<Datum> {
    let (whole, new, start) = (at(args, 0)?, at(args, 1)?, i64::from(int_at(args, 2)?));
    if start <= 0 {
        return Err(SqlError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let length = whole.len() as i64;
    let before = &whole[..(start - 1).min(length) as usize];
    let after = &whole[(start - 1 + count).clamp(0, length) as usize..];
    made([before, new, after].concat())
}

fn trim(args: &[Datum], left: bool, right: bool) -> Result<Datum> {
    let (mut bytes, unwanted) = (at(args, 0)?, at(args, 1)?);
    while let [first, rest @ ..] = bytes
        && left
        && unwanted.contains(first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && right
        && unwanted.contains(last)
    {
        bytes = rest;
    }
    made(bytes.to_vec())
}

fn utf8(name: &str, which: &str) -> Result<()> {
    match name.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "utf8" | "unicode" => Ok(()),
        _ => Err(SqlError::unsupported(format!("the {which} encoding \"{name}\""))
            .with_hint("Texts are in UTF-8.")),
    }
}

fn convert_from(args: &[Datum]) -> Result<Datum> {
    utf8(str_at(args, 1)?, "source")?;
    let bytes = at(args, 0)?;
    let wrong = |at: usize| {
        let shown: Vec<String> = bytes[at..].iter().take(4).map(|byte| format!("0x{byte:02x}")).collect();
        let message = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
        SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
    };
    if let Some(zero) = bytes.iter().position(|byte| *byte == 0) {
        return Err(wrong(zero));
    }
    match std::str::from_utf8(bytes) {
        Ok(found) => text(found),
        Err(error) => Err(wrong(error.valid_up_to())),
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

fn unknown(name: &str) -> SqlError {
    invalid(format!("unrecognized encoding: \"{name}\""))
}

fn encode(args: &[Datum]) -> Result<Datum> {
    let (bytes, form) = (at(args, 0)?, str_at(args, 1)?);
    text(match form.to_ascii_lowercase().as_str() {
        "hex" => hex(bytes),
        "base64" => base64(bytes),
        "escape" => escape(bytes),
        _ => return Err(unknown(form)),
    })
}

fn decode(args: &[Datum]) -> Result<Datum> {
    let (from, form) = (str_at(args, 0)?, str_at(args, 1)?);
    made(match form.to_ascii_lowercase().as_str() {
        "hex" => from_hex(from)?,
        "base64" => from_base64(from)?,
        "escape" => from_escape(from)?,
        _ => return Err(unknown(form)),
    })
}

/// Base64 in lines of 76 characters, which 57 bytes fill; a newline is behind each whole one.
fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() / 3 * 4 + bytes.len() / 57 + 4);
    for line in bytes.chunks(57) {
        BASE64.encode_string(line, &mut out);
        if line.len() == 57 {
            out.push('\n');
        }
    }
    out
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn from_base64(from: &str) -> Result<Vec<u8>> {
    let symbols: String = from.chars().filter(|c| !is_blank(*c)).collect();
    let padding = symbols.find('=');
    for (at, symbol) in symbols.char_indices() {
        match symbol {
            '=' if padding == Some(at) && at % 4 < 2 => {
                return Err(invalid("unexpected \"=\" while decoding base64 sequence"));
            }
            'A'..='Z' | 'a'..='z' | '0'..='9' | '+' | '/' | '=' => {}
            other => {
                let message = format!("invalid symbol \"{other}\" found while decoding base64 sequence");
                return Err(invalid(message));
            }
        }
    }
    let decoded = |symbols: &str| {
        BASE64.decode(symbols).map_err(|_| {
            invalid("invalid base64 end sequence")
                .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted.")
        })
    };
    let Some(at) = padding.filter(|_| symbols.len().is_multiple_of(4)) else { return decoded(&symbols) };
    // PostgreSQL goes on behind padding, and takes as few bytes of each group as of the one that had it.
    let (whole, padded) = symbols.split_at(at / 4 * 4);
    let mut bytes = decoded(whole)?;
    let padded = decoded(&padded.replace('=', "A"))?;
    bytes.extend(padded.chunks(3).flat_map(|group| &group[..at % 4 - 1]));
    Ok(bytes)
}

fn from_hex(from: &str) -> Result<Vec<u8>> {
    let digit = |c: char| {
        let found = c.to_digit(16).map(|digit| digit as u8);
        found.ok_or_else(|| invalid(format!("invalid hexadecimal digit: \"{c}\"")))
    };
    let mut bytes = Vec::with_capacity(from.len() / 2);
    let mut chars = from.chars();
    while let Some(first) = chars.next() {
        if is_blank(first) {
            continue;
        }
        let high = digit(first)?;
        let Some(second) = chars.next() else {
            return Err(invalid("invalid hexadecimal data: odd number of digits"));
        };
        bytes.push(high << 4 | digit(second)?);
    }
    Ok(bytes)
}

fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            0 | 0x80.. => out.push_str(&format!("\\{byte:03o}")),
            b'\\' => out.push_str("\\\\"),
            byte => out.push(char::from(*byte)),
        }
    }
    out
}

fn from_escape(from: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(from.len());
    let mut rest = from.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => {
                out.push(b'\\');
                after
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                after
            }
            (b'\\', _) => {
                let message = "invalid input syntax for type bytea";
                return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
            }
            (byte, after) => {
                out.push(*byte);
                after
            }
        };
    }
    Ok(out)
}
