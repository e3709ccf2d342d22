//! Conversions: which there are, where the binder puts them, and what they do.
//!
//! Responsible for: casts with and without modifiers, literals read as the type their place has, arrays
//! from text. Not responsible for: which cast needs to be written (`resolve`).

use std::sync::Arc;

use albireo_base::value::MICROS_PER_DAY;
use albireo_base::{Decimal, DecimalError, Interval, SqlError, SqlState, SqlType, Value};
use albireo_sql::ast;

use super::number::{checked, numeric_overflow};
use super::resolve::{Level, NUMERIC, is_text, level};
use super::text::{is_space, text_of};
use super::{CastKind, Conversion, Expr, ExprKind};
use crate::datum::{Array, Datum};
use crate::types::{RowType, Scalar, Type};

/// The type a type name means, and with which modifier: NUMERIC without one, INTERVAL and arrays
/// included.
///
/// # Errors
/// 42704 for a name that is no type, 0A000 for a type we do not have.
pub fn declared(ty: &ast::DataType) -> Result<(Type, Option<SqlType>), SqlError> {
    use ast::{ArrayElemTypeDef, DataType, ExactNumberInfo};
    match ty {
        DataType::Numeric(ExactNumberInfo::None)
        | DataType::Decimal(ExactNumberInfo::None)
        | DataType::Dec(ExactNumberInfo::None) => Ok((Type::Scalar(NUMERIC), None)),
        DataType::Interval { fields: None, precision: None } => Ok((Type::Scalar(Scalar::Interval), None)),
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _) | ArrayElemTypeDef::AngleBracket(element),
        ) => match declared(element)? {
            (Type::Scalar(element), modifier) => Ok((Type::Array(element), modifier)),
            // PostgreSQL does not tell arrays of several dimensions apart.
            (ty, modifier) => Ok((ty, modifier)),
        },
        other => {
            let ty = albireo_sql::types::sql_type(other)?;
            Ok((Type::Scalar(Scalar::of(ty)), modifier_of(ty)))
        }
    }
}

/// The type, if it has a length or precision.
fn modifier_of(ty: SqlType) -> Option<SqlType> {
    matches!(ty, SqlType::Decimal { .. } | SqlType::Char(_) | SqlType::Varchar(_)).then_some(ty)
}

/// Casts a bound expression; no cast is added where it would do nothing.
///
/// # Errors
/// 42846 (explicit) or 42804 (assignment) if there is no such cast.
pub fn cast(expr: Expr, to: SqlType, kind: CastKind) -> Result<Expr, SqlError> {
    cast_to(expr, &Type::Scalar(Scalar::of(to)), modifier_of(to), kind)
}

/// Casts a bound expression to a type that may have no [`SqlType`], and to its modifier, if it has one.
///
/// # Errors
/// As [`cast`].
pub fn cast_to(expr: Expr, to: &Type, modifier: Option<SqlType>, kind: CastKind) -> Result<Expr, SqlError> {
    let general = match to {
        Type::Scalar(Scalar::Numeric { .. }) => Type::Scalar(NUMERIC),
        Type::Array(Scalar::Numeric { .. }) => Type::Array(NUMERIC),
        other => other.clone(),
    };
    let from = expr.ty.clone();
    let cast = convert_type(expr, &general, kind).ok_or_else(|| no_cast(&from, to, kind))?;
    Ok(match modifier {
        Some(modifier) => modified(cast, modifier, kind),
        None => cast,
    })
}

fn no_cast(from: &Type, to: &Type, kind: CastKind) -> SqlError {
    match kind {
        CastKind::Explicit => {
            SqlError::new(SqlState::CANNOT_COERCE, format!("cannot cast type {from} to {to}"))
        }
        CastKind::Assignment | CastKind::Variable => {
            let message = format!("expression is of type {from}, but its place is of type {to}");
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .with_hint("You will need to rewrite or cast the expression.")
        }
    }
}

/// Adds the cast to a length or precision.
fn modified(expr: Expr, modifier: SqlType, kind: CastKind) -> Expr {
    if let ExprKind::Constant(datum) = &expr.kind
        && let Ok(fitting) = modify(datum.clone(), modifier, kind)
    {
        return Expr { kind: ExprKind::Constant(fitting), ty: with_modifier(&expr.ty, modifier) };
    }
    let ty = with_modifier(&expr.ty, modifier);
    Expr { kind: ExprKind::Cast(Box::new(expr), modifier, kind), ty }
}

fn with_modifier(ty: &Type, modifier: SqlType) -> Type {
    match ty {
        Type::Array(_) => Type::Array(Scalar::of(modifier)),
        _ => Type::Scalar(Scalar::of(modifier)),
    }
}

/// The expression as another type, modifiers aside; `None` if there is no such cast.
fn convert_type(expr: Expr, to: &Type, kind: CastKind) -> Option<Expr> {
    match (&expr.ty, to) {
        (Type::Scalar(from), Type::Scalar(to)) => convert_scalar(*from, expr, *to, kind),
        (Type::Array(from), Type::Array(to)) if from.same(*to) => Some(expr),
        (Type::Array(from), Type::Array(to)) => {
            let allowed = level(*from, *to)? <= limit(kind) || kind == CastKind::Variable;
            allowed.then(|| fold(expr, Conversion::Items(*to), Type::Array(*to)))
        }
        (Type::Scalar(Scalar::Unknown), Type::Array(to)) => Some(literal(expr, &Type::Array(*to))),
        (Type::Scalar(from), Type::Array(to)) => {
            let allowed = is_text(*from) && matches!(kind, CastKind::Explicit | CastKind::Variable);
            allowed.then(|| fold(expr, Conversion::ReadArray(*to), Type::Array(*to)))
        }
        (Type::Array(_) | Type::Row(_), Type::Scalar(to)) if is_text(*to) => {
            Some(fold(expr, Conversion::Text, Type::Scalar(*to)))
        }
        (Type::Row(_), Type::Row(to)) => convert_row(expr, to, kind),
        (Type::Scalar(Scalar::Unknown), Type::Row(_)) if is_null(&expr) => {
            Some(Expr { ty: to.clone(), ..expr })
        }
        (Type::Void, Type::Void) => Some(expr),
        _ => None,
    }
}

/// A row that is written as such, field by field; another must have these types.
fn convert_row(expr: Expr, to: &Arc<RowType>, kind: CastKind) -> Option<Expr> {
    let Type::Row(from) = &expr.ty else { return None };
    if from.fields.len() != to.fields.len() {
        return None;
    }
    let same = from.fields.iter().zip(&to.fields).all(|((_, from), (_, to))| from.same(*to));
    match expr.kind {
        ExprKind::Row(items) => {
            let fields = items.into_iter().zip(&to.fields);
            let items = fields.map(|(item, (_, to))| convert_type(item, &Type::Scalar(*to), kind));
            Some(Expr { kind: ExprKind::Row(items.collect::<Option<_>>()?), ty: Type::Row(to.clone()) })
        }
        _ if same => Some(Expr { ty: Type::Row(to.clone()), ..expr }),
        _ => None,
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Constant(datum) if datum.is_null())
}

fn limit(kind: CastKind) -> Level {
    match kind {
        CastKind::Explicit => Level::Explicit,
        CastKind::Assignment | CastKind::Variable => Level::Assignment,
    }
}

fn convert_scalar(from: Scalar, expr: Expr, to: Scalar, kind: CastKind) -> Option<Expr> {
    if from.same(to) {
        return Some(expr);
    }
    if from == Scalar::Unknown {
        return Some(literal(expr, &Type::Scalar(to)));
    }
    match level(from, to) {
        Some(level) if level <= limit(kind) => Some(convert(expr, to)),
        _ if kind == CastKind::Variable => {
            // Through the text, as the output and input functions have it.
            let text = fold(expr, Conversion::Text, Type::Scalar(Scalar::Text));
            Some(convert(text, to))
        }
        _ => None,
    }
}

/// A literal in quotes, or NULL, as a value of the type its place has. What cannot be read is an error
/// when it is evaluated.
fn literal(expr: Expr, ty: &Type) -> Expr {
    let ExprKind::Constant(datum) = &expr.kind else { return Expr { ty: ty.clone(), ..expr } };
    let Datum::Value(Value::Text(text)) = datum else { return Expr { ty: ty.clone(), ..expr } };
    match (read(text, ty), ty) {
        (Ok(datum), _) => {
            let ty = match (&datum, ty) {
                (Datum::Value(Value::Decimal(number)), Type::Scalar(_)) => {
                    Type::Scalar(Scalar::Numeric { scale: Some(number.scale) })
                }
                _ => ty.clone(),
            };
            Expr { kind: ExprKind::Constant(datum), ty }
        }
        (Err(_), Type::Array(element)) => {
            let text = Expr { ty: Type::Scalar(Scalar::Text), ..expr };
            let kind = ExprKind::Convert(Box::new(text), Conversion::ReadArray(*element));
            Expr { kind, ty: ty.clone() }
        }
        (Err(_), Type::Scalar(to)) => {
            let text = Expr { ty: Type::Scalar(Scalar::Text), ..expr };
            Expr { kind: ExprKind::Convert(Box::new(text), Conversion::Scalar(*to)), ty: ty.clone() }
        }
        (Err(_), _) => expr,
    }
}

/// Adds a conversion to a scalar type.
fn convert(expr: Expr, to: Scalar) -> Expr {
    let whole = matches!(expr.ty, Type::Scalar(Scalar::SmallInt | Scalar::Integer | Scalar::BigInt));
    let ty = match to {
        Scalar::Numeric { .. } if whole => Scalar::Numeric { scale: Some(0) },
        Scalar::Numeric { .. } => NUMERIC,
        other => other,
    };
    let both_text = is_text(to) && matches!(expr.ty, Type::Scalar(from) if is_text(from));
    if both_text {
        return Expr { ty: Type::Scalar(to), ..expr };
    }
    fold(expr, Conversion::Scalar(to), Type::Scalar(ty))
}

/// Adds a conversion, or makes it now if it is of a constant and can be made.
fn fold(expr: Expr, conversion: Conversion, ty: Type) -> Expr {
    if let ExprKind::Constant(datum) = &expr.kind
        && let Ok(datum) = apply(datum.clone(), conversion)
    {
        return Expr { kind: ExprKind::Constant(datum), ty };
    }
    Expr { kind: ExprKind::Convert(Box::new(expr), conversion), ty }
}

/// Converts as the place asks, without a cast being written.
pub(crate) fn implicit_to(expr: Expr, to: Scalar) -> Result<Expr, SqlError> {
    implicit_to_type(expr, &Type::Scalar(to))
}

/// As [`implicit_to`], for any type.
pub(crate) fn implicit_to_type(expr: Expr, to: &Type) -> Result<Expr, SqlError> {
    let allowed = match (&expr.ty, to) {
        (Type::Scalar(from), Type::Scalar(to)) | (Type::Array(from), Type::Array(to)) => {
            level(*from, *to) == Some(Level::Implicit)
        }
        (Type::Scalar(Scalar::Unknown), _) => true,
        (a, b) => {
            a == b || matches!((a, b), (Type::Row(a), Type::Row(b)) if a.fields.len() == b.fields.len())
        }
    };
    let from = expr.ty.clone();
    match allowed {
        true => convert_type(expr, to, CastKind::Explicit),
        false => None,
    }
    .ok_or_else(|| no_cast(&from, to, CastKind::Explicit))
}

/// Anything as its text, as `||` and `format` have it.
pub(super) fn shown(expr: Expr) -> Result<Expr, SqlError> {
    cast_to(expr, &Type::Scalar(Scalar::Text), None, CastKind::Explicit)
}

/// A value as another type.
pub(super) fn apply(datum: Datum, conversion: Conversion) -> Result<Datum, SqlError> {
    if datum.is_null() {
        return Ok(datum);
    }
    match conversion {
        Conversion::Scalar(to) => scalar(datum, to),
        Conversion::Text => Ok(text_of(&datum).map_or(Datum::NULL, |text| Value::Text(text).into())),
        Conversion::Items(to) => each(datum, |item| scalar(item, to)),
        Conversion::ReadArray(to) => match datum {
            Datum::Value(Value::Text(text)) => read(&text, &Type::Array(to)),
            _ => Err(unexpected()),
        },
    }
}

/// Our own bug: an operator met a value that its type excludes.
pub fn unexpected() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "a value is not of the type of its expression")
}

fn each(datum: Datum, make: impl Fn(Datum) -> Result<Datum, SqlError>) -> Result<Datum, SqlError> {
    let Datum::Array(array) = datum else { return Err(unexpected()) };
    let items: Result<Vec<Datum>, SqlError> = array
        .items
        .iter()
        .map(|item| if item.is_null() { Ok(Datum::NULL) } else { make(item.clone()) })
        .collect();
    Ok(Datum::Array(Arc::new(Array { lower: array.lower, items: items? })))
}

fn scalar(datum: Datum, to: Scalar) -> Result<Datum, SqlError> {
    let value = match datum {
        Datum::Value(value) => value,
        Datum::Interval(interval) => {
            return match to {
                Scalar::Text | Scalar::Bpchar => Ok(Value::Text(interval.to_string()).into()),
                Scalar::Time => Ok(Value::Time(interval.micros.rem_euclid(MICROS_PER_DAY)).into()),
                Scalar::Interval => Ok(datum),
                _ => Err(unexpected()),
            };
        }
        Datum::Array(_) | Datum::Row(_) => return Err(unexpected()),
    };
    match (value, to) {
        (Value::Null, _) => Ok(Datum::NULL),
        (text @ Value::Text(_), Scalar::Text) => Ok(text.into()),
        (Value::Text(text), to) => read(&text, &Type::Scalar(to)),
        (Value::Integer(n), Scalar::Numeric { .. }) => Ok(whole(i64::from(n))),
        (Value::SmallInt(n), Scalar::Numeric { .. }) => Ok(whole(i64::from(n))),
        (Value::BigInt(n), Scalar::Numeric { .. }) => Ok(whole(n)),
        (Value::Real(n), Scalar::Numeric { .. }) => from_float(f64::from(n), &format!("{n:.5e}")),
        (Value::Double(n), Scalar::Numeric { .. }) => from_float(n, &format!("{n:.14e}")),
        (value @ Value::Decimal(_), Scalar::Numeric { .. }) => Ok(value.into()),
        (Value::Bool(b), Scalar::Text | Scalar::Bpchar) => {
            Ok(Value::Text(if b { "true" } else { "false" }.to_owned()).into())
        }
        (Value::Bool(b), Scalar::Integer) => Ok(Value::Integer(i32::from(b)).into()),
        (Value::Integer(n), Scalar::Bool) => Ok(Value::Bool(n != 0).into()),
        (Value::Time(micros), Scalar::Interval) => {
            Ok(Datum::Interval(Interval { months: 0, days: 0, micros }))
        }
        (value, to) => Ok(value.coerce(plain(to).ok_or_else(unexpected)?)?.into()),
    }
}

/// A value that a program gives, for a place without length or precision: converted as an assignment
/// does; a text is read.
///
/// # Errors
/// 42804 if there is no such cast, 22P02 and what else [`read`] says, 22003.
pub fn assign(value: Value, to: Scalar) -> Result<Datum, SqlError> {
    let Some(from) = value.sql_type().map(Scalar::of) else { return Ok(Datum::NULL) };
    if from.same(to) {
        return Ok(value.into());
    }
    if let (Value::Text(text), true) = (&value, to != Scalar::Text) {
        return read(text, &Type::Scalar(to));
    }
    match level(from, to) {
        Some(level) if level <= Level::Assignment => scalar(value.into(), to),
        _ => Err(no_cast(&Type::Scalar(from), &Type::Scalar(to), CastKind::Assignment)),
    }
}

fn whole(n: i64) -> Datum {
    Value::Decimal(Decimal::new(i128::from(n), 0)).into()
}

/// The number as PostgreSQL's `%.15g` would write it.
fn from_float(number: f64, text: &str) -> Result<Datum, SqlError> {
    if number.is_nan() || number.is_infinite() {
        let what = if number.is_nan() { "NaN" } else { "infinity" };
        return Err(SqlError::unsupported(format!("{what} as a numeric value")));
    }
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    number_of(&format!("{mantissa}e{exponent}")).map(Datum::from)
}

/// Reads a number of at most 38 digits after the point; more would be rounded away.
pub(super) fn exact(text: &str) -> Result<Decimal, DecimalError> {
    let number = Decimal::parse(text)?;
    let (mantissa, exponent) = text.trim().split_once(['e', 'E']).unwrap_or((text.trim(), "0"));
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i64);
    let places = fraction.saturating_sub(exponent.parse().unwrap_or(0));
    match places > i64::from(Decimal::MAX_SCALE) {
        true => Err(DecimalError::Overflow),
        false => Ok(number),
    }
}

/// Reads a NUMERIC, keeping the digits that are written.
fn number_of(text: &str) -> Result<Value, SqlError> {
    match exact(text) {
        Ok(number) => Ok(Value::Decimal(checked(Some(number))?)),
        Err(DecimalError::Overflow) => Err(numeric_overflow()),
        // It says what is wrong in PostgreSQL's words.
        Err(DecimalError::Syntax) => Value::parse(text, SqlType::Decimal { precision: 38, scale: 0 }),
    }
}

/// The type of values in storage, without a modifier.
pub(super) fn plain(ty: Scalar) -> Option<SqlType> {
    Some(match ty {
        Scalar::Bool => SqlType::Bool,
        Scalar::SmallInt => SqlType::SmallInt,
        Scalar::Integer => SqlType::Integer,
        Scalar::BigInt => SqlType::BigInt,
        Scalar::Real => SqlType::Real,
        Scalar::Double => SqlType::Double,
        Scalar::Text | Scalar::Bpchar => SqlType::Text,
        Scalar::Bytea => SqlType::Bytea,
        Scalar::Date => SqlType::Date,
        Scalar::Time => SqlType::Time,
        Scalar::Timestamp => SqlType::Timestamp,
        Scalar::TimestampTz => SqlType::TimestampTz,
        Scalar::Uuid => SqlType::Uuid,
        Scalar::Unknown | Scalar::Numeric { .. } | Scalar::Interval => return None,
    })
}

/// Reads the text of a value of any type but rows.
///
/// # Errors
/// 22P02 and what else PostgreSQL's input functions say.
pub fn read(text: &str, ty: &Type) -> Result<Datum, SqlError> {
    match ty {
        Type::Scalar(Scalar::Interval) => Ok(Datum::Interval(Interval::parse(text, None)?)),
        Type::Scalar(Scalar::Numeric { .. }) => Ok(number_of(text)?.into()),
        Type::Scalar(Scalar::Bpchar) => Ok(Value::Text(text.trim_end_matches(' ').to_owned()).into()),
        Type::Scalar(scalar) => {
            let ty = plain(*scalar).unwrap_or(SqlType::Text);
            Ok(Value::parse(text, ty)?.into())
        }
        Type::Array(element) => read_array(text, *element),
        Type::Row(_) | Type::Void => Err(SqlError::unsupported("a row from its text")),
    }
}

/// A value with the length or precision of a column, of an array each element.
pub(super) fn modify(datum: Datum, to: SqlType, kind: CastKind) -> Result<Datum, SqlError> {
    match datum {
        Datum::Value(Value::Null) => Ok(datum),
        Datum::Value(Value::Text(text)) if kind == CastKind::Explicit => {
            Ok(Value::Text(cut(text, to)).into())
        }
        Datum::Value(value) => Ok(value.coerce(to)?.into()),
        Datum::Array(_) => each(datum, |item| modify(item, to, kind)),
        other => Ok(other),
    }
}

/// The text as long as the type allows.
fn cut(mut text: String, ty: SqlType) -> String {
    let (SqlType::Char(n) | SqlType::Varchar(n)) = ty else { return text };
    if text.len() > n as usize
        && let Some((end, _)) = text.char_indices().nth(n as usize)
    {
        text.truncate(end);
    }
    if matches!(ty, SqlType::Char(_)) {
        text.truncate(text.trim_end_matches(' ').len());
    }
    text
}

fn malformed(text: &str, detail: &str) -> SqlError {
    let message = format!("malformed array literal: \"{text}\"");
    let error = SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message);
    if detail.is_empty() { error } else { error.with_detail(detail) }
}

/// Reads `{1,2,NULL}`, with bounds before it or not.
fn read_array(text: &str, element: Scalar) -> Result<Datum, SqlError> {
    let body = text.trim_matches(is_space);
    let (lower, body) = match body.strip_prefix('[') {
        Some(rest) => bounds(rest).ok_or_else(|| malformed(text, ""))?,
        None => (1, body),
    };
    let mut items = Vec::new();
    let detail = "Array value must start with \"{\" or dimension information.";
    let mut rest = body.strip_prefix('{').ok_or_else(|| malformed(text, detail))?;
    rest = rest.trim_start_matches(is_space);
    if let Some(after) = rest.strip_prefix('}') {
        rest = after;
    } else {
        loop {
            let (item, after) = read_item(text, rest)?;
            items.push(match item {
                Some(item) => read(&item, &Type::Scalar(element))?,
                None => Datum::NULL,
            });
            match after.as_bytes().first() {
                Some(b',') => rest = &after[1..],
                Some(b'}') => {
                    rest = &after[1..];
                    break;
                }
                _ => return Err(malformed(text, "Unexpected end of input.")),
            }
        }
    }
    if !rest.is_empty() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    Ok(Datum::Array(Arc::new(Array { lower, items })))
}

/// `0:2]=` and what follows.
fn bounds(text: &str) -> Option<(i32, &str)> {
    let (bounds, rest) = text.split_once(']')?;
    let (lower, upper) = bounds.split_once(':').unwrap_or(("1", bounds));
    let (lower, upper): (i32, i32) = (lower.trim().parse().ok()?, upper.trim().parse().ok()?);
    let rest = rest.trim_start_matches(is_space).strip_prefix('=')?;
    (lower <= upper).then_some((lower, rest.trim_start_matches(is_space)))
}

/// One element, `None` for NULL, and what follows it.
fn read_item<'a>(text: &str, rest: &'a str) -> Result<(Option<String>, &'a str), SqlError> {
    let rest = rest.trim_start_matches(is_space);
    let mut item = String::new();
    let mut quoted = false;
    let mut inside = false;
    // Blanks at the end are not the element's unless they are quoted.
    let mut kept = 0;
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                let Some((_, c)) = chars.next() else { break };
                item.push(c);
                kept = item.len();
                quoted = true;
            }
            '"' => {
                inside = !inside;
                quoted = true;
                kept = item.len();
            }
            '{' if !inside => return Err(SqlError::unsupported("an array of several dimensions")),
            ',' | '}' if !inside => {
                item.truncate(kept);
                if item.is_empty() && !quoted {
                    return Err(malformed(text, &format!("Unexpected \"{c}\" character.")));
                }
                let null = !quoted && item.eq_ignore_ascii_case("null");
                return Ok(((!null).then_some(item), &rest[at..]));
            }
            c => {
                item.push(c);
                if inside || !is_space(c) {
                    kept = item.len();
                }
            }
        }
    }
    Err(malformed(text, "Unexpected end of input."))
}
