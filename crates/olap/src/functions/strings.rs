//! Functions of texts and bytes as PostgreSQL has them.

use std::sync::Arc;

use albireo_base::text::{initcap, lower, upper};
use albireo_base::{SqlError, SqlState};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ScalarUDF;

use super::casts::display;
use super::rowwise::{self, is_text, text, text_value};
use crate::errors::internal;

/// The functions of this module.
pub(crate) fn row_functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        rowwise::function("upper", one_text, |args, _| Ok(text_value(upper(text(&args[0]))))),
        rowwise::function("lower", one_text, |args, _| Ok(text_value(lower(text(&args[0]))))),
        rowwise::function("initcap", one_text, |args, _| Ok(text_value(initcap(text(&args[0]))))),
        rowwise::function("lpad", pad_type, |args, _| pad(args, true)),
        rowwise::function("rpad", pad_type, |args, _| pad(args, false)),
        rowwise::function("quote_literal", any_value, |args, _| {
            Ok(text_value(quote_literal(&display(&args[0]))))
        }),
        rowwise::function("quote_ident", one_text, |args, _| Ok(text_value(quote_ident(text(&args[0]))))),
        rowwise::function("encode", encode_type, encode),
        rowwise::function("decode", decode_type, decode),
        rowwise::function("octet_length", bytes_type, octet_length),
        rowwise::with_nulls("format", format_type, format),
    ]
}

/// Functions whose arguments must be texts, and which: PostgreSQL turns no number into a text of
/// itself when it calls a function.
pub(crate) fn text_arguments(function: &str) -> &'static [usize] {
    match function {
        "length" | "char_length" | "character_length" | "bit_length" | "ascii" | "initcap" | "reverse"
        | "upper" | "lower" | "substr" | "substring" | "left" | "right" | "repeat" => &[0],
        "lpad" | "rpad" => &[0, 2],
        "btrim" | "ltrim" | "rtrim" | "trim" | "strpos" | "starts_with" | "split_part" | "position" => {
            &[0, 1]
        }
        "replace" | "translate" => &[0, 1, 2],
        _ => &[],
    }
}

fn one_text(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match args {
        [ty] if is_text(ty) || *ty == DataType::Null => Some((vec![DataType::Utf8View], DataType::Utf8View)),
        _ => None,
    }
}

fn pad_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    let texts = |ty: &DataType| is_text(ty) || *ty == DataType::Null;
    use DataType::{Int16, Int32, Int64, Null};
    let [text, Int16 | Int32 | Int64 | Null, filling @ ..] = args else { return None };
    let fits = texts(text) && filling.len() < 2 && filling.iter().all(texts);
    let takes = [DataType::Utf8View, Int64, DataType::Utf8View];
    fits.then(|| (takes[..args.len()].to_vec(), DataType::Utf8View))
}

fn pad(args: &[ScalarValue], left: bool) -> Result<ScalarValue, SqlError> {
    let ScalarValue::Int64(Some(width)) = args[1] else { return Err(internal("lpad of no integer")) };
    let width = i32::try_from(width).unwrap_or(if width < 0 { 0 } else { i32::MAX });
    let filling = args.get(2).map_or(" ", text);
    albireo_base::text::pad(text(&args[0]), width, filling, left).map(text_value)
}

fn any_value(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    (args.len() == 1).then(|| (args.to_vec(), DataType::Utf8View))
}

fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match quoted.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

fn quote_ident(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let keyword = sqlparser::keywords::ALL_KEYWORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    if plain && !keyword { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

fn is_bytes(ty: &DataType) -> bool {
    matches!(ty, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

fn encode_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match args {
        // A bare literal is read as BYTEA by the analyzer.
        [bytes, form] if (is_bytes(bytes) || *bytes == DataType::Utf8) && is_text(form) => {
            Some((vec![DataType::BinaryView, DataType::Utf8View], DataType::Utf8View))
        }
        _ => None,
    }
}

fn decode_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match args {
        [a, b] if is_text(a) && is_text(b) => Some((vec![DataType::Utf8View; 2], DataType::BinaryView)),
        _ => None,
    }
}

fn unknown_encoding(name: &str) -> SqlError {
    match name.to_ascii_lowercase().as_str() {
        "escape" => SqlError::unsupported("the encoding \"escape\""),
        _ => SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("unrecognized encoding: \"{name}\"")),
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    let ScalarValue::BinaryView(Some(bytes)) = &args[0] else { return Err(internal("bytes were expected")) };
    let form = text(&args[1]);
    Ok(text_value(match form.to_ascii_lowercase().as_str() {
        "hex" => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "base64" => base64(bytes),
        _ => return Err(unknown_encoding(form)),
    }))
}

/// Base64 in lines of 76 characters, as MIME and PostgreSQL have it.
fn base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut column = 0;
    for group in bytes.chunks(3) {
        if column == 76 {
            out.push('\n');
            column = 0;
        }
        let word =
            group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for i in 0..4 {
            let digit = BASE64[(word >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= group.len() { char::from(digit) } else { '=' });
        }
        column += 4;
    }
    out
}

fn decode(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    let (input, form) = (text(&args[0]), text(&args[1]));
    let bytes = match form.to_ascii_lowercase().as_str() {
        "hex" => match super::casts::parse(&format!("\\x{input}"), &DataType::BinaryView)? {
            ScalarValue::BinaryView(Some(bytes)) => bytes,
            other => return Err(internal(format!("decoded to {other}"))),
        },
        "base64" => from_base64(input)?,
        _ => return Err(unknown_encoding(form)),
    };
    Ok(ScalarValue::BinaryView(Some(bytes)))
}

fn from_base64(text: &str) -> Result<Vec<u8>, SqlError> {
    let refuse = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut bits, mut digits, mut padding) = (0_u32, 0, 0, 0);
    for c in text.bytes().filter(|c| !c.is_ascii_whitespace()) {
        digits += 1;
        if c == b'=' {
            padding += 1;
            continue;
        }
        let value = BASE64.iter().position(|known| *known == c).filter(|_| padding == 0);
        let Some(value) = value else {
            let message =
                format!("invalid symbol \"{}\" found while decoding base64 sequence", char::from(c));
            return Err(refuse(message));
        };
        word = word << 6 | value as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits & 255) as u8);
        }
    }
    if digits % 4 != 0 || padding > 2 {
        return Err(refuse("invalid base64 end sequence".to_owned()));
    }
    Ok(bytes)
}

fn bytes_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match args {
        [ty] if is_bytes(ty) => Some((vec![DataType::BinaryView], DataType::Int32)),
        [ty] if is_text(ty) || *ty == DataType::Null => Some((vec![DataType::Utf8View], DataType::Int32)),
        _ => None,
    }
}

fn octet_length(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    let length = match &args[0] {
        ScalarValue::BinaryView(Some(bytes)) => bytes.len(),
        other => text(other).len(),
    };
    let length = i32::try_from(length).map_err(|_| crate::errors::out_of_range("integer"))?;
    Ok(ScalarValue::Int32(Some(length)))
}

fn format_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    let [template, rest @ ..] = args else { return None };
    if !is_text(template) {
        return None;
    }
    let types = std::iter::once(DataType::Utf8View).chain(rest.iter().cloned()).collect();
    Some((types, DataType::Utf8View))
}

fn format(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    let refuse = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    if args[0].is_null() {
        return Ok(ScalarValue::Null);
    }
    let mut out = String::new();
    let mut values = args[1..].iter();
    let mut chars = text(&args[0]).chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let kind = match chars.next() {
            Some('%') => {
                out.push('%');
                continue;
            }
            Some(kind @ ('s' | 'I' | 'L')) => kind,
            Some(c) if c.is_ascii_digit() || c == '-' => {
                return Err(SqlError::unsupported("a position or width in format()"));
            }
            Some(other) => {
                return Err(refuse(format!("unrecognized format() type specifier \"{other}\"")));
            }
            None => return Err(refuse("unterminated format() type specifier".to_owned())),
        };
        let Some(value) = values.next() else {
            return Err(refuse("too few arguments for format()".to_owned()));
        };
        let value = match value {
            value if value.is_null() => match kind {
                's' => String::new(),
                'L' => {
                    out.push_str("NULL");
                    continue;
                }
                _ => {
                    let message = "null values cannot be formatted as an SQL identifier";
                    return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
                }
            },
            // Here a boolean is its letter.
            ScalarValue::Boolean(Some(b)) => if *b { "t" } else { "f" }.to_owned(),
            other => display(other),
        };
        out.push_str(&match kind {
            's' => value,
            'I' => quote_ident(&value),
            _ => quote_literal(&value),
        });
    }
    Ok(text_value(out))
}
