//! Values of literals, without the expression engine: what most INSERT statements consist of.

use albireo_base::{Decimal, SqlError, SqlState, SqlType, Value};
use sqlparser::ast::{Expr, UnaryOperator, Value as Literal};

use crate::types;

/// The value of `expr` as an assignment to a column of type `ty` would store it, if `expr` is a
/// literal: a number with or without sign, a string, a truth value, NULL, or one of these with a
/// type (`DATE '2024-01-05'`, `'1'::int`). `None` if it is anything else.
///
/// # Errors
/// Those of [`Value::parse`] and [`Value::coerce`].
pub fn literal_value(expr: &Expr, ty: SqlType) -> Result<Option<Value>, SqlError> {
    match expr {
        Expr::Nested(inner) => literal_value(inner, ty),
        Expr::Value(value) => literal(&value.value, false, ty),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) if matches!(value.value, Literal::Number(..)) => {
                literal(&value.value, true, ty)
            }
            _ => Ok(None),
        },
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => match expr.as_ref() {
            Expr::Value(value) if matches!(value.value, Literal::Number(..)) => {
                literal(&value.value, false, ty)
            }
            _ => Ok(None),
        },
        Expr::TypedString(typed) => match types::sql_type(&typed.data_type) {
            Ok(written) if !written.is_string() => convert(literal(&typed.value.value, false, written)?, ty),
            _ => Ok(None),
        },
        // A cast to CHAR(n) or VARCHAR(n) cuts where an assignment refuses, so it is not for here.
        Expr::Cast { expr, data_type, array: false, format: None, .. } => match types::sql_type(data_type) {
            Ok(written) if !matches!(written, SqlType::Char(_) | SqlType::Varchar(_)) => {
                match literal_value(expr, written) {
                    Ok(value) => convert(value, ty),
                    // A cast may do more than an assignment.
                    Err(error) if error.state() == SqlState::CANNOT_COERCE => Ok(None),
                    Err(error) => Err(error),
                }
            }
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

fn convert(value: Option<Value>, ty: SqlType) -> Result<Option<Value>, SqlError> {
    value.map(|value| value.coerce(ty)).transpose()
}

fn literal(literal: &Literal, negative: bool, ty: SqlType) -> Result<Option<Value>, SqlError> {
    match literal {
        Literal::Null => Ok(Some(Value::Null)),
        Literal::Boolean(b) => Value::Bool(*b).coerce(ty).map(Some),
        Literal::SingleQuotedString(text)
        | Literal::EscapedStringLiteral(text)
        | Literal::UnicodeStringLiteral(text)
        | Literal::NationalStringLiteral(text) => Value::parse(text, ty).map(Some),
        Literal::DollarQuotedString(text) => Value::parse(&text.value, ty).map(Some),
        Literal::Number(digits, _) => {
            let sign = if negative { "-" } else { "" };
            number(&format!("{sign}{}", digits.replace('_', "")), ty).map(Some)
        }
        _ => Ok(None),
    }
}

/// A number is read as the column's type where that is a number, so that no digit is lost on a
/// detour; for another type it is an integer or a decimal first.
fn number(text: &str, ty: SqlType) -> Result<Value, SqlError> {
    match ty {
        SqlType::Real | SqlType::Double | SqlType::Decimal { .. } => Value::parse(text, ty),
        _ => {
            let value = match (text.parse::<i32>(), text.parse::<i64>()) {
                (Ok(n), _) => Value::Integer(n),
                (_, Ok(n)) => Value::BigInt(n),
                _ => Value::Decimal(Decimal::parse(text).map_err(|_| {
                    let message = format!("value \"{text}\" is out of range for type {ty}");
                    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
                })?),
            };
            value.coerce(ty)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_expr;

    fn read(text: &str, ty: SqlType) -> Result<Option<String>, String> {
        let value = literal_value(&parse_expr(text).unwrap(), ty);
        value.map(|v| v.map(|v| v.to_string())).map_err(|error| error.state().to_string())
    }

    #[test]
    fn literal_is_read_as_the_column_stores_it() {
        let numeric = SqlType::Decimal { precision: 6, scale: 2 };
        let cases = [
            ("42", SqlType::Integer, "42"),
            ("-(42)", numeric, ""),
            ("-42", SqlType::BigInt, "-42"),
            ("1.005", numeric, "1.01"),
            ("2.5", SqlType::Integer, "3"),
            ("1e3", SqlType::Double, "1000"),
            ("'7'", SqlType::SmallInt, "7"),
            ("E'a\\nb'", SqlType::Text, "a\nb"),
            ("$$it's$$", SqlType::Text, "it's"),
            ("12", SqlType::Varchar(2), "12"),
            ("true", SqlType::Bool, "t"),
            ("null", SqlType::Date, "NULL"),
            ("date '2024-01-05'", SqlType::Timestamp, "2024-01-05 00:00:00"),
            ("'2024-01-05'::date", SqlType::Date, "2024-01-05"),
            ("('1.5')::numeric(3,1)", numeric, "1.50"),
            ("1 + 1", SqlType::Integer, ""),
            ("f(1)", SqlType::Integer, ""),
            ("$1", SqlType::Integer, ""),
            ("1::boolean", SqlType::Bool, ""),
            ("'abc'::varchar(2)", SqlType::Text, ""),
        ];
        for (text, ty, expected) in cases {
            let expected = if expected.is_empty() { None } else { Some(expected.to_owned()) };
            assert_eq!(read(text, ty), Ok(expected), "{text}");
        }
    }

    #[test]
    fn literal_that_does_not_fit_is_an_error() {
        assert_eq!(read("3000000000", SqlType::Integer), Err("22003".to_owned()));
        assert_eq!(read("'x'", SqlType::Integer), Err("22P02".to_owned()));
        assert_eq!(read("'abc'", SqlType::Varchar(2)), Err("22001".to_owned()));
        assert_eq!(read("true", SqlType::Integer), Err("42846".to_owned()));
        assert_eq!(read(&"9".repeat(60), SqlType::BigInt), Err("22003".to_owned()));
    }
}
