//! Queries inside expressions.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState};

use super::{Result, as_bool, evaluate as value_of, truth};
use crate::datum::{Array, Datum};
use crate::expr::convert::{apply, unexpected};
use crate::expr::operator::Comparison;
use crate::expr::order::compare;
use crate::expr::{Conversion, Expr, Frame, Subquery, SubqueryKind};
use crate::types::Scalar;

/// What an expression asks of a query.
#[inline(never)]
pub(super) fn evaluate(subquery: &Subquery, frame: &mut dyn Frame) -> Result<Datum> {
    match &subquery.kind {
        SubqueryKind::Scalar => {
            let rows = frame.query(&subquery.plan, 2)?;
            if rows.len() > 1 {
                let message = "more than one row returned by a subquery used as an expression";
                return Err(SqlError::new(SqlState::CARDINALITY_VIOLATION, message).into());
            }
            match rows.into_iter().next() {
                None => Ok(Datum::NULL),
                Some(row) => first(row),
            }
        }
        SubqueryKind::Exists => Ok(truth(!frame.query(&subquery.plan, 1)?.is_empty())),
        SubqueryKind::Array => {
            let rows = frame.query(&subquery.plan, usize::MAX)?;
            let items: Result<Vec<Datum>> = rows.into_iter().map(first).collect();
            Ok(Datum::Array(Arc::new(Array { lower: 1, items: items? })))
        }
        SubqueryKind::Any { op, all, operands, conversions } => {
            let values: Result<Vec<Datum>> =
                operands.iter().map(|operand: &Expr| value_of(operand, frame)).collect();
            let values = values?;
            let rows = frame.query(&subquery.plan, usize::MAX)?;
            any(*op, *all, &values, conversions, rows)
        }
    }
}

fn first(row: Vec<Datum>) -> Result<Datum> {
    Ok(row.into_iter().next().ok_or_else(unexpected)?)
}

fn any(
    op: Comparison,
    all: bool,
    values: &[Datum],
    conversions: &[Option<Scalar>],
    rows: Vec<Vec<Datum>>,
) -> Result<Datum> {
    let mut unknown = false;
    for row in rows {
        match as_bool(&row_compared(op, values, conversions, row)?) {
            Some(b) if b != all => return Ok(truth(b)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { Datum::NULL } else { truth(all) })
}

/// A row by the first column that differs; NULL if it depends on one.
fn row_compared(
    op: Comparison,
    values: &[Datum],
    conversions: &[Option<Scalar>],
    row: Vec<Datum>,
) -> Result<Datum> {
    let equality = matches!(op, Comparison::Eq | Comparison::Ne);
    let mut unknown = false;
    for ((value, conversion), column) in values.iter().zip(conversions).zip(row) {
        let column = match conversion {
            Some(to) => apply(column, Conversion::Scalar(*to))?,
            None => column,
        };
        if value.is_null() || column.is_null() {
            if !equality {
                return Ok(Datum::NULL);
            }
            unknown = true;
            continue;
        }
        let order = compare(value, &column);
        if order.is_ne() {
            return Ok(truth(op.holds(order)));
        }
    }
    Ok(if unknown { Datum::NULL } else { truth(op.holds(std::cmp::Ordering::Equal)) })
}

#[cfg(test)]
mod tests {
    use albireo_base::Value;

    use super::*;

    #[test]
    fn comparison_with_rows_knows_null() {
        let rows = |values: &[Option<i32>]| -> Vec<Vec<Datum>> {
            values.iter().map(|n| vec![Datum::from(Value::from(*n))]).collect()
        };
        let asked = |op, all, value: Option<i32>, of: &[Option<i32>]| {
            as_bool(&any(op, all, &[Value::from(value).into()], &[None], rows(of)).unwrap())
        };
        let (is, differs) = (Comparison::Eq, Comparison::Ne);
        assert_eq!(asked(is, false, Some(1), &[Some(2), Some(1)]), Some(true));
        assert_eq!(asked(is, false, Some(1), &[Some(2), None]), None);
        assert_eq!(asked(is, false, Some(1), &[Some(2)]), Some(false));
        assert_eq!(asked(is, false, None, &[]), Some(false));
        assert_eq!(asked(differs, true, Some(1), &[Some(2), None]), None);
        assert_eq!(asked(differs, true, Some(1), &[Some(1), None]), Some(false));
        assert_eq!(asked(differs, true, None, &[]), Some(true));
    }

    #[test]
    fn column_of_another_type_is_converted() {
        let row = vec![vec![Datum::from(Value::Integer(1))]];
        let value = [Datum::from(Value::BigInt(1))];
        let found = any(Comparison::Eq, false, &value, &[Some(Scalar::BigInt)], row).unwrap();
        assert_eq!(as_bool(&found), Some(true));
    }
}
