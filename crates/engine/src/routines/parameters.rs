//! Values for `$1`, `$2`, ... in statements that call routines: each becomes a literal of its type.

use albireo_base::{SqlError, SqlState, SqlType, Value};
use albireo_sql::ast::{CastKind, DataType, Expr, Value as Literal};
use albireo_sql::walk::WalkMut;

/// Puts values in the place of parameters. A text is a literal whose type the place says, so that `'{1,2}'`
/// is an array where one is wanted.
///
/// # Errors
/// 42P02 if there are not as many values as the highest parameter says.
pub(crate) fn fill(tree: &mut dyn WalkMut, values: &[Value]) -> Result<(), SqlError> {
    let mut highest = 0;
    tree.each_expression_mut(&mut |expr| {
        if let Some(number) = number_of(expr) {
            highest = highest.max(number);
            if let Some(value) = number.checked_sub(1).and_then(|index| values.get(index)) {
                *expr = literal(value);
            }
        }
    });
    if highest == values.len() {
        return Ok(());
    }
    let text = format!("the statement has {highest} parameters, but {} were given", values.len());
    Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, text))
}

fn number_of(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    match &value.value {
        Literal::Placeholder(name) => name.strip_prefix('$')?.parse().ok(),
        _ => None,
    }
}

fn literal(value: &Value) -> Expr {
    let text = Literal::SingleQuotedString(value.to_string()).with_empty_span();
    match value {
        Value::Null => Expr::Value(Literal::Null.with_empty_span()),
        Value::Text(_) => Expr::Value(text),
        other => Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(Expr::Value(text)),
            data_type: other.sql_type().map_or(DataType::Text, data_type),
            array: false,
            format: None,
        },
    }
}

/// The type without its modifier.
fn data_type(ty: SqlType) -> DataType {
    use albireo_sql::ast::{ExactNumberInfo, TimezoneInfo};
    match ty {
        SqlType::Bool => DataType::Boolean,
        SqlType::SmallInt => DataType::SmallInt(None),
        SqlType::Integer => DataType::Integer(None),
        SqlType::BigInt => DataType::BigInt(None),
        SqlType::Real => DataType::Real,
        SqlType::Double => DataType::DoublePrecision,
        SqlType::Decimal { .. } => DataType::Numeric(ExactNumberInfo::None),
        SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => DataType::Text,
        SqlType::Bytea => DataType::Bytea,
        SqlType::Date => DataType::Date,
        SqlType::Time => DataType::Time(None, TimezoneInfo::None),
        SqlType::Timestamp => DataType::Timestamp(None, TimezoneInfo::None),
        SqlType::TimestampTz => DataType::Timestamp(None, TimezoneInfo::WithTimeZone),
        SqlType::Uuid => DataType::Uuid,
    }
}
