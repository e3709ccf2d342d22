//! One type for several expressions: literals of unknown type, CASE, COALESCE, UNION, IN lists.
//!
//! PostgreSQL's rules (§10 of its manual): a quoted literal and NULL have no type of their own and
//! take that of their neighbours; numbers meet in the wider type; types of different kinds do not
//! meet (42804).

use albireo_base::{SqlError, SqlState};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable};

use crate::errors::external;
use crate::functions::arithmetic::{integer_shape, is_numeric};
use crate::functions::casts;
use crate::functions::decimal::Shape;
use crate::functions::rowwise::{is_text, type_name};
use crate::relation::CHAR_LENGTH;
use crate::types::scalar;

/// The text of a quoted literal nothing has been said about.
pub(super) fn unknown(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => Some(text),
        Expr::Alias(alias) => unknown(&alias.expr),
        _ => None,
    }
}

/// A literal of unknown type as one of type `ty`; any other expression, and any type that texts
/// are not read as, stays as it is.
///
/// # Errors
/// The text is no value of the type.
pub(super) fn known(expr: Expr, ty: &DataType) -> Result<Expr> {
    let Some(text) = unknown(&expr) else { return Ok(expr) };
    if !casts::is_readable(ty) {
        return Ok(expr);
    }
    let value = match ty {
        // All digits count, whatever the scale of the neighbour.
        DataType::Decimal128(..) => match albireo_base::Decimal::parse(text) {
            Ok(number) => scalar(&albireo_base::Value::Decimal(number), None),
            Err(_) => casts::parse(text, ty),
        },
        _ => casts::parse(text, ty),
    };
    Ok(Expr::Literal(value.map_err(external)?, None))
}

/// The type in which values of both types meet; `None` if there is none.
pub(super) fn common(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::{Date32, Float32, Float64, Int64, Null, Timestamp, Utf8View};
    Some(match (a, b) {
        (a, b) if a == b => a.clone(),
        (Null, other) | (other, Null) => other.clone(),
        (a, b) if is_text(a) && is_text(b) => Utf8View,
        (a, b) if is_numeric(a) && is_numeric(b) => match (a, b) {
            (Float64, _) | (_, Float64) => Float64,
            (Float32, _) | (_, Float32) => Float32,
            _ => match (Shape::of(a), Shape::of(b)) {
                (None, None) => match integer_shape(a)?.precision.max(integer_shape(b)?.precision) {
                    20 => DataType::Decimal128(20, 0),
                    19 => Int64,
                    10 => DataType::Int32,
                    _ => DataType::Int16,
                },
                (x, y) => {
                    let (x, y) = (x.or_else(|| integer_shape(a))?, y.or_else(|| integer_shape(b))?);
                    let scale = x.scale.max(y.scale);
                    let integral = (x.precision - x.scale).max(y.precision - y.scale);
                    Shape { precision: (integral + scale).min(38), scale }.data_type()
                }
            },
        },
        (Date32, Timestamp(_, zone)) | (Timestamp(_, zone), Date32) => {
            Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        (Timestamp(_, x), Timestamp(_, y)) => {
            Timestamp(TimeUnit::Microsecond, x.clone().or_else(|| y.clone()))
        }
        (DataType::Interval(_) | DataType::Duration(_), DataType::Interval(_) | DataType::Duration(_)) => {
            casts::INTERVAL
        }
        _ => return None,
    })
}

/// The types of expressions; a bare literal has none yet.
pub(super) fn types(exprs: &[Expr], schema: &DFSchema) -> Result<Vec<DataType>> {
    let ty = |expr: &Expr| match unknown(expr) {
        Some(_) => Ok(DataType::Null),
        None => expr.get_type(schema),
    };
    exprs.iter().map(ty).collect()
}

/// The common type of all; `None` if all are unknown. `what` says in messages whose types they are.
///
/// # Errors
/// 42804: the types do not meet.
pub(crate) fn common_of(types: &[DataType], what: &str) -> Result<Option<DataType>> {
    let mut found = DataType::Null;
    for ty in types {
        let Some(next) = common(&found, ty) else {
            let (a, b) = (type_name(&found), type_name(ty));
            let message = format!("{what} types {a} and {b} cannot be matched");
            return Err(external(SqlError::new(SqlState::DATATYPE_MISMATCH, message)));
        };
        found = next;
    }
    Ok((found != DataType::Null).then_some(found))
}

/// All expressions in their common type.
///
/// # Errors
/// As [`common_of`]; a literal is no value of the type.
pub(super) fn unify(exprs: Vec<Expr>, schema: &DFSchema, what: &str) -> Result<Vec<Expr>> {
    let types = types(&exprs, schema)?;
    let Some(target) = common_of(&types, what)? else { return Ok(exprs) };
    exprs.into_iter().zip(types).map(|(expr, ty)| converted(expr, &ty, &target)).collect()
}

/// An expression of type `ty` in type `target`.
pub(super) fn converted(expr: Expr, ty: &DataType, target: &DataType) -> Result<Expr> {
    if unknown(&expr).is_some() {
        let expr = known(expr, target)?;
        return Ok(match expr {
            // The literal's own digits may be fewer or more than the common type's.
            Expr::Literal(ScalarValue::Decimal128(..), _) => cast(expr, target),
            other => other,
        });
    }
    let same = ty == target || *ty == DataType::Null || is_text(ty) && is_text(target);
    Ok(if same { expr } else { cast(expr, target) })
}

/// A cast that is known to exist.
pub(super) fn cast(expr: Expr, target: &DataType) -> Expr {
    Expr::Cast(datafusion::logical_expr::Cast::new(Box::new(expr), target.clone()))
}

/// The length of the CHAR column an expression is.
pub(super) fn char_length(expr: &Expr, schema: &DFSchema) -> Option<usize> {
    let Expr::Column(column) = expr else { return None };
    let field = schema.field_from_column(column).ok()?;
    field.metadata().get(CHAR_LENGTH)?.parse().ok()
}

/// A bare literal as a CHAR, whose trailing blanks mean nothing.
pub(super) fn as_char(expr: Expr) -> Expr {
    match unknown(&expr) {
        Some(text) if text.ends_with(' ') => {
            Expr::Literal(ScalarValue::Utf8(Some(text.trim_end_matches(' ').to_owned())), None)
        }
        _ => expr,
    }
}
