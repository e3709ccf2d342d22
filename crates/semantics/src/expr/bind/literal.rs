//! Literals.

use albireo_base::{Interval, SqlError, SqlState, Value};
use albireo_sql::ast;

use super::{Binder, Result};
use crate::datum::Datum;
use crate::expr::convert::exact;
use crate::expr::number::{checked, numeric_overflow};
use crate::expr::{CastKind, Expr, ExprKind, cast_to, declared};
use crate::types::Scalar;

impl Binder<'_> {
    pub(super) fn value(&mut self, value: &ast::ValueWithSpan) -> Result<Expr> {
        use ast::Value as V;
        match &value.value {
            V::Null => Ok(Expr::null()),
            V::Boolean(b) => Ok(constant(Value::Bool(*b), Scalar::Bool)),
            V::Number(digits, _) => number(digits),
            V::Placeholder(name) => self.placeholder(name),
            other => match text(other) {
                Some(text) => Ok(constant(Value::Text(text.to_owned()), Scalar::Unknown)),
                None => Err(SqlError::unsupported(format!("the literal {other}"))),
            },
        }
    }

    fn placeholder(&mut self, name: &str) -> Result<Expr> {
        let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
        match number {
            Some(number) if number > 0 => self.names.parameter(number),
            _ => {
                let message = format!("there is no parameter {name}");
                Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, message))
            }
        }
    }

    /// `DATE '2024-01-05'`
    pub(super) fn typed_string(&mut self, typed: &ast::TypedString) -> Result<Expr> {
        let literal = self.value(&typed.value)?;
        if let Some((plain, digits)) = super::precision(&typed.data_type) {
            let (ty, _) = declared(&plain)?;
            let moment = cast_to(literal, &ty, None, CastKind::Explicit)?;
            return crate::expr::function::with_precision(moment, digits);
        }
        let (ty, modifier) = declared(&typed.data_type)?;
        cast_to(literal, &ty, modifier, CastKind::Explicit)
    }

    /// `INTERVAL '1 day'`, `INTERVAL '3' MONTH`
    pub(super) fn interval(&mut self, interval: &ast::Interval) -> Result<Expr> {
        let ast::Expr::Value(value) = interval.value.as_ref() else {
            return Err(SqlError::unsupported("an interval of an expression")
                .with_hint("Multiply an interval, as in n * interval '1 day'."));
        };
        let Some(text) = text(&value.value) else { return Err(SqlError::unsupported("this interval")) };
        if interval.last_field.is_some() || interval.leading_precision.is_some() {
            return Err(SqlError::unsupported("an interval with several fields or a precision"));
        }
        let unit = interval.leading_field.as_ref().map(ToString::to_string);
        let parsed = Interval::parse(text, unit.as_deref())?;
        Ok(Expr::scalar(ExprKind::Constant(Datum::Interval(parsed)), Scalar::Interval))
    }
}

/// A constant.
pub(in crate::expr) fn constant(value: Value, ty: Scalar) -> Expr {
    Expr::scalar(ExprKind::Constant(value.into()), ty)
}

/// The text of a literal in quotes.
pub(super) fn text(value: &ast::Value) -> Option<&str> {
    use ast::Value as V;
    Some(match value {
        V::SingleQuotedString(text)
        | V::EscapedStringLiteral(text)
        | V::UnicodeStringLiteral(text)
        | V::NationalStringLiteral(text) => text,
        V::DollarQuotedString(text) => &text.value,
        _ => return None,
    })
}

/// A number with its signs, which count for its type: -2147483648 is an INTEGER, -(-2147483648) a BIGINT.
pub(super) fn negative(operand: &ast::Expr) -> Result<Option<Expr>> {
    let (mut inner, mut negated) = (operand, true);
    loop {
        match inner {
            ast::Expr::Nested(next) => inner = next,
            ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => {
                inner = expr;
                negated = !negated;
            }
            ast::Expr::Value(value) => {
                let ast::Value::Number(digits, _) = &value.value else { return Ok(None) };
                return number(&format!("{}{digits}", if negated { "-" } else { "" })).map(Some);
            }
            _ => return Ok(None),
        }
    }
}

/// A number as it is written, with its sign.
pub(super) fn written_number(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::Nested(inner) => written_number(inner),
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => {
            written_number(expr).filter(|digits| !digits.starts_with('-')).map(|digits| format!("-{digits}"))
        }
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => Some(digits.replace('_', "")),
            _ => None,
        },
        _ => None,
    }
}

/// The smallest of INTEGER, BIGINT and NUMERIC that holds the number; one with an exponent that none of them
/// holds is a DOUBLE PRECISION.
fn number(digits: &str) -> Result<Expr> {
    let digits = digits.replace('_', "");
    if let Ok(n) = digits.parse::<i32>() {
        return Ok(constant(Value::Integer(n), Scalar::Integer));
    }
    if let Ok(n) = digits.parse::<i64>() {
        return Ok(constant(Value::BigInt(n), Scalar::BigInt));
    }
    let number = match exact(&digits).map_err(|_| numeric_overflow()).and_then(|n| checked(Some(n))) {
        Ok(number) => number,
        Err(error) => {
            let double = digits.contains(['e', 'E']).then(|| digits.parse::<f64>().ok()).flatten();
            let double = double.filter(|number| number.is_finite() && *number != 0.0).ok_or(error)?;
            return Ok(constant(Value::Double(double), Scalar::Double));
        }
    };
    let ty = Scalar::Numeric { scale: Some(number.scale) };
    Ok(constant(Value::Decimal(number), ty))
}
