//! Expressions of PostgreSQL that the engine has under another form.
//!
//! Responsible for: saying `~x`, `a ^@ b`, `SIMILAR TO`, LIKE with an ESCAPE, `AT TIME ZONE`, COLLATE
//! and INTERVAL literals in words the engine knows, with the same meaning; refusing (0A000) what
//! has none. Not responsible for: subqueries (`subquery`) and types.

use albireo_base::value::Interval;
use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, UnaryOperator, Value,
};

use crate::names;

/// Functions that are computed over a window and nothing else.
const WINDOW_ONLY: [&str; 10] = [
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
];

/// `name(args)`.
pub(super) fn call<const N: usize>(name: &str, args: [Expr; N]) -> Expr {
    let args = args.map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.into(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// A text as a literal.
fn text_literal(text: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(text).with_empty_span())
}

/// The text of a quoted literal.
fn literal_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            _ => None,
        },
        Expr::Nested(inner) => literal_text(inner),
        _ => None,
    }
}

/// What stands for a moment where an expression was taken from.
fn nothing() -> Expr {
    Expr::Value(Value::Null.with_empty_span())
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, nothing())
}

/// Rewrites one expression whose parts have been rewritten.
pub(super) fn expression(expr: &mut Expr) -> Result<(), SqlError> {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: inner } => {
            let ones = Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number("1")) };
            let flipped = Expr::BinaryOp {
                left: Box::new(nested(take(inner))),
                op: BinaryOperator::PGBitwiseXor,
                right: Box::new(nested(ones)),
            };
            *expr = nested(flipped);
        }
        // The engine would put the sign before the first number alone.
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } if matches!(**inner, Expr::Interval(_)) => {
            **inner = nested(take(inner));
        }
        Expr::BinaryOp { left, op: BinaryOperator::PGStartsWith, right } => {
            *expr = call("starts_with", [take(left), take(right)]);
        }
        Expr::AtTimeZone { timestamp, time_zone } => {
            *expr = call("timezone", [take(time_zone), take(timestamp)]);
        }
        Expr::Collate { expr: inner, collation } => {
            let name =
                collation.0.last().and_then(|part| part.as_ident()).map(names::fold).unwrap_or_default();
            // Texts are compared byte by byte.
            if !["C", "POSIX", "ucs_basic", "default"].contains(&name.as_str()) {
                return Err(SqlError::unsupported(format!("collation \"{name}\""))
                    .with_hint("Texts are compared by their bytes, which is collation \"C\"."));
            }
            *expr = take(inner);
        }
        Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
            let escape = escape_char.take().map(|escape| escape.value);
            like(pattern, escape)?;
        }
        Expr::SimilarTo { negated, expr: inner, pattern, escape_char } => {
            let escape = escape_of(escape_char.take().map(|escape| escape.value))?;
            let Some(text) = literal_text(pattern) else {
                return Err(SqlError::unsupported("SIMILAR TO a pattern that is computed"));
            };
            let op = if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
            let pattern = text_literal(similar_pattern(text, escape)?);
            let left = Box::new(nested(take(inner)));
            *expr = nested(Expr::BinaryOp { left, op, right: Box::new(pattern) });
        }
        Expr::Cast { expr: inner, data_type, .. } if is_float(data_type) => exact_float(inner),
        Expr::Interval(interval) => interval_literal(interval)?,
        Expr::Value(value) => plain_number(&mut value.value),
        Expr::Function(function) if function.over.is_none() && function.within_group.is_empty() => {
            let name = function.name.0.last().and_then(|part| part.as_ident()).map(names::fold);
            let no_arguments =
                matches!(&function.args, FunctionArguments::List(list) if list.args.is_empty());
            if name.as_deref() == Some("count") && no_arguments {
                let message = "count(*) must be used to call a parameterless aggregate function";
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            if let Some(name) = name.filter(|name| WINDOW_ONLY.contains(&name.as_str())) {
                let message = format!("window function {name} requires an OVER clause");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
        }
        Expr::Substring { substring_from: None, substring_for: None, .. } => {
            let message = "function substr of one argument does not exist";
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
        }
        _ => {}
    }
    Ok(())
}

/// An interval in words that leave nothing to be understood: months, days and seconds.
fn interval_literal(interval: &mut sqlparser::ast::Interval) -> Result<(), SqlError> {
    if interval.last_field.is_some() {
        return Err(SqlError::unsupported("an interval of several fields")
            .with_hint("Write each with its unit: INTERVAL '1 year 2 months'."));
    }
    let Some(text) = literal_text(&interval.value) else { return Ok(()) };
    let unit = interval.leading_field.take().map(|field| field.to_string());
    let span = Interval::parse(text, unit.as_deref())?;
    let (seconds, micros) = (span.micros / 1_000_000, (span.micros % 1_000_000).abs());
    let sign = if span.micros < 0 && seconds == 0 { "-" } else { "" };
    let text = format!("{} months {} days {sign}{seconds}.{micros:06} seconds", span.months, span.days);
    *interval.value = text_literal(text);
    interval.leading_precision = None;
    Ok(())
}

fn nested(expr: Expr) -> Expr {
    match expr {
        Expr::Nested(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) => expr,
        other => Expr::Nested(Box::new(other)),
    }
}

fn number(digits: &str) -> Expr {
    Expr::Value(Value::Number(digits.to_owned(), false).with_empty_span())
}

/// Writes a number's exponent out.
fn plain_number(value: &mut Value) {
    if let Value::Number(digits, _) = value
        && let Some(plain) = without_exponent(digits)
    {
        *digits = plain;
    }
}

/// The digits of a decimal of the engine.
const MAX_DIGITS: i32 = 38;

/// `1.5e3` as `1500.`: the engine would make a decimal of negative scale of it, which its functions
/// compute wrong results from. `None` of a number without exponent, or with more digits than a decimal
/// of the engine has.
fn without_exponent(digits: &str) -> Option<String> {
    let digits = digits.replace('_', "");
    let (mantissa, exponent) = digits.split_once(['e', 'E'])?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let point = i32::try_from(whole.len()).ok()? + exponent;
    if exponent.abs() > MAX_DIGITS || mantissa.len() > MAX_DIGITS as usize {
        return None;
    }
    let mut all = format!("{whole}{fraction}");
    let before = usize::try_from(point.max(0)).ok()?;
    all.insert_str(0, &"0".repeat(usize::try_from(-point.min(0)).ok()?));
    all.extend(std::iter::repeat_n('0', before.saturating_sub(all.len())));
    if all.len() > MAX_DIGITS as usize {
        return None;
    }
    let (whole, fraction) = all.split_at(before);
    let whole = if whole.is_empty() { "0" } else { whole };
    // With a point always: without one it would be an integer.
    Some(format!("{whole}.{fraction}"))
}

fn is_float(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Real
            | DataType::Float4
            | DataType::Float8
            | DataType::DoublePrecision
            | DataType::Double(_)
            | DataType::Float(_)
    )
}

/// A number that is cast to floating point is read as such: decimals end at 38 digits.
fn exact_float(expr: &mut Expr) {
    let Expr::Value(value) = expr else { return };
    if let Value::Number(digits, _) = &value.value {
        *expr = text_literal(digits.clone());
    }
}

fn invalid_escape() -> SqlError {
    SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "LIKE pattern must not end with escape character")
}

/// The escape character of a pattern: backslash unless the statement says otherwise; `None` for
/// `ESCAPE ''`.
fn escape_of(escape: Option<Value>) -> Result<Option<char>, SqlError> {
    let text = match escape {
        None => return Ok(Some('\\')),
        Some(Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text)) => text,
        Some(_) => return Err(SqlError::unsupported("an ESCAPE that is computed")),
    };
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (first, None) => Ok(first),
        _ => Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .with_hint("Escape string must be empty or one character.")),
    }
}

/// Puts backslashes where another escape character was.
fn like(pattern: &mut Expr, escape: Option<Value>) -> Result<(), SqlError> {
    let is_plain = escape.is_none();
    let escape = escape_of(escape)?;
    let Some(text) = literal_text(pattern) else {
        return match is_plain || escape == Some('\\') {
            true => Ok(()),
            false => Err(SqlError::unsupported("ESCAPE beside a pattern that is computed")),
        };
    };
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            let literal = chars.next().ok_or_else(invalid_escape)?;
            if matches!(literal, '%' | '_' | '\\') {
                out.push('\\');
            }
            out.push(literal);
        } else if c == '\\' {
            out.push_str("\\\\");
        } else {
            out.push(c);
        }
    }
    *pattern = text_literal(out);
    Ok(())
}

/// A pattern of SIMILAR TO as a regular expression.
fn similar_pattern(pattern: &str, escape: Option<char>) -> Result<String, SqlError> {
    let mut out = String::from("^(?:");
    let mut chars = pattern.chars();
    let mut in_brackets = false;
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            let literal = chars.next().ok_or_else(invalid_escape)?;
            if !literal.is_alphanumeric() {
                out.push('\\');
            }
            out.push(literal);
            continue;
        }
        match c {
            '[' => in_brackets = true,
            ']' => in_brackets = false,
            _ => {}
        }
        match c {
            '%' if !in_brackets => out.push_str("(?s:.*)"),
            '_' if !in_brackets => out.push_str("(?s:.)"),
            '.' | '^' | '$' | '\\' if !in_brackets => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out.push_str(")$");
    Ok(out)
}
