//! The text form of values.
//!
//! Responsible for: what PostgreSQL's output functions write. Not responsible for: casts to TEXT, which
//! differ for BOOLEAN (`convert`).

use albireo_base::Value;

use crate::datum::{Array, Datum};

/// The text of a value, as the client would see it; `None` for NULL.
pub fn text_of(datum: &Datum) -> Option<String> {
    match datum {
        Datum::Value(Value::Null) => None,
        Datum::Value(value) => Some(value.to_string()),
        Datum::Interval(interval) => Some(interval.to_string()),
        Datum::Array(array) => Some(array_text(array)),
        Datum::Row(fields) => Some(row_text(fields)),
    }
}

fn array_text(array: &Array) -> String {
    let mut text = String::new();
    if array.items.is_empty() {
        return "{}".to_owned();
    }
    if array.lower != 1 {
        let upper = i64::from(array.lower) + array.items.len() as i64 - 1;
        text.push_str(&format!("[{}:{upper}]=", array.lower));
    }
    text.push('{');
    for (n, item) in array.items.iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        match text_of(item) {
            None => text.push_str("NULL"),
            Some(item) => push_item(&mut text, &item),
        }
    }
    text.push('}');
    text
}

fn push_item(text: &mut String, item: &str) {
    let special = |c: char| matches!(c, '{' | '}' | ',' | '"' | '\\') || is_space(c);
    if !item.is_empty() && !item.eq_ignore_ascii_case("null") && !item.contains(special) {
        text.push_str(item);
        return;
    }
    text.push('"');
    for c in item.chars() {
        if matches!(c, '"' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
}

/// What C calls a space.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn row_text(fields: &[Datum]) -> String {
    let mut text = String::from("(");
    for (n, field) in fields.iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        if let Some(field) = text_of(field) {
            push_field(&mut text, &field);
        }
    }
    text.push(')');
    text
}

fn push_field(text: &mut String, field: &str) {
    let special = |c: char| matches!(c, '(' | ')' | ',' | '"' | '\\') || is_space(c);
    if !field.is_empty() && !field.contains(special) {
        text.push_str(field);
        return;
    }
    text.push('"');
    for c in field.chars() {
        // Both are written twice.
        if matches!(c, '"' | '\\') {
            text.push(c);
        }
        text.push(c);
    }
    text.push('"');
}
