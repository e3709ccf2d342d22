//! Values that a client gives for parameters.

use albireo_base::{SqlError, SqlState, SqlType, Value};

use super::Conversion;
use super::convert::{apply, plain, read};
use super::function::moment::check_range;
use crate::datum::Datum;
use crate::types::{Scalar, Type};

/// A value as a parameter of type `ty` holds it: numbers among each other and texts as an assignment
/// converts them, so that `'{1,2}'` is an array where one is wanted.
///
/// # Errors
/// What the conversion says; 42804 if there is none; 22008 for a moment beyond its type.
pub fn given(value: &Value, ty: &Type) -> Result<Datum, SqlError> {
    // What needs no look at its range or length.
    if let (Value::SmallInt(_), Type::Scalar(Scalar::SmallInt))
    | (Value::Integer(_), Type::Scalar(Scalar::Integer))
    | (Value::BigInt(_), Type::Scalar(Scalar::BigInt)) = (value, ty)
    {
        return Ok(value.clone().into());
    }
    let mismatch = || {
        let from = value.sql_type().map_or(Scalar::Unknown, Scalar::of);
        let message = format!("the parameter is of type {ty}, but its value of type {from}");
        SqlError::new(SqlState::DATATYPE_MISMATCH, message)
    };
    check_range(value)?;
    match (value, ty) {
        (Value::Null, _) => Ok(Datum::NULL),
        (Value::Text(_), Type::Scalar(Scalar::Text | Scalar::Unknown)) => Ok(value.clone().into()),
        (Value::Text(text), Type::Scalar(_) | Type::Array(_)) => read(text, ty),
        (Value::Decimal(_), Type::Scalar(Scalar::Numeric { .. })) => Ok(value.clone().into()),
        (
            Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) | Value::Real(_) | Value::Double(_),
            Type::Scalar(to @ Scalar::Numeric { .. }),
        ) => apply(value.clone().into(), Conversion::Scalar(*to)),
        (_, Type::Scalar(Scalar::Unknown)) => Ok(value.clone().coerce(SqlType::Text)?.into()),
        (_, Type::Scalar(scalar)) => {
            let to = plain(*scalar).ok_or_else(mismatch)?;
            value.clone().coerce(to).map(Datum::from).map_err(|error| match error.state() {
                SqlState::CANNOT_COERCE => mismatch(),
                _ => error,
            })
        }
        _ => Err(mismatch()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::text_of;

    fn shown(value: impl Into<Value>, ty: &Type) -> String {
        match given(&value.into(), ty) {
            Ok(datum) => text_of(&datum).unwrap_or_else(|| "NULL".to_owned()),
            Err(error) => error.state().to_string(),
        }
    }

    #[test]
    fn value_becomes_what_the_parameter_holds_or_an_error() {
        let scalar = Type::Scalar;
        let numeric = scalar(Scalar::Numeric { scale: None });
        assert_eq!(shown(7_i64, &scalar(Scalar::SmallInt)), "7");
        assert_eq!(shown(70_000, &scalar(Scalar::SmallInt)), "22003");
        assert_eq!(shown(2.5, &numeric), "2.5");
        assert_eq!(shown(3_i16, &numeric), "3");
        assert_eq!(shown("1.50", &numeric), "1.50");
        assert_eq!(shown("x", &numeric), "22P02");
        assert_eq!(shown("ab  ", &scalar(Scalar::Bpchar)), "ab");
        assert_eq!(shown(5, &scalar(Scalar::Text)), "5");
        assert_eq!(shown(true, &scalar(Scalar::Integer)), "42804");
        assert_eq!(shown("2 days", &scalar(Scalar::Interval)), "2 days");
        assert_eq!(shown(2, &scalar(Scalar::Interval)), "42804");
        assert_eq!(shown("{1,NULL}", &Type::Array(Scalar::Integer)), "{1,NULL}");
        assert_eq!(shown(1, &Type::Array(Scalar::Integer)), "42804");
        assert_eq!(shown(Value::Time(86_400_000_000), &scalar(Scalar::Time)), "24:00:00");
        assert_eq!(shown(Value::Time(86_400_000_001), &scalar(Scalar::Time)), "22008");
        assert_eq!(shown(Value::Time(-1), &scalar(Scalar::Time)), "22008");
        assert_eq!(shown(Value::Date(i32::MAX), &scalar(Scalar::Date)), "22008");
        assert_eq!(shown(Value::Timestamp(i64::MIN), &scalar(Scalar::TimestampTz)), "22008");
        assert_eq!(shown(Value::Null, &Type::Array(Scalar::Integer)), "NULL");
    }
}
