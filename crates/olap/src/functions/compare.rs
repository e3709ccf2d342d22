//! Comparisons of NUMERIC values of several scales, without making keys of them.
//!
//! Responsible for: `<`, `<=`, `>`, `>=` where one side is [open](crate::values::numeric). Equality stays one of keys, by
//! which rows are joined.

use std::any::Any;
use std::cmp::Ordering;

use albireo_base::Decimal;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, Decimal128Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr as Planned, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::errors::{external, internal};
use crate::values::numeric::{self, OPEN};

/// Whether an operator is one that [`compare`] computes.
pub(crate) fn orders(op: Operator) -> bool {
    matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

/// `left op right` of two NUMERIC values, each of one scale or open.
pub(crate) fn compare(op: Operator, left: Planned, right: Planned) -> Planned {
    let signature = Signature::user_defined(Volatility::Immutable);
    ScalarUDF::new_from_impl(Compare { op, signature }).call(vec![left, right])
}

/// The operator of a function that [`compare`] has made.
pub(crate) fn operator_of(function: &ScalarUDF) -> Option<Operator> {
    let inner: &dyn Any = function.inner().as_ref();
    inner.downcast_ref::<Compare>().map(|compare| compare.op)
}

/// The greatest number of a scale that is not above a constant, and whether it equals it; `None` if that is NULL, or no
/// NUMERIC.
pub(crate) fn floor_of(constant: &ScalarValue, scale: u8) -> Option<(i128, bool)> {
    if constant.is_null() {
        return None;
    }
    Some(at_scale(number_at(&constant.to_array().ok()?, 0).ok()?, scale))
}

/// The function behind [`compare`].
#[derive(PartialEq, Eq, Hash, Debug)]
struct Compare {
    op: Operator,
    signature: Signature,
}

impl ScalarUDFImpl for Compare {
    fn name(&self) -> &str {
        match self.op {
            Operator::Lt => "numeric_lt",
            Operator::LtEq => "numeric_le",
            Operator::Gt => "numeric_gt",
            _ => "numeric_ge",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return Err(external(internal("a comparison has two sides")));
        };
        let wanted = |ordering: Ordering| match self.op {
            Operator::Lt => ordering.is_lt(),
            Operator::LtEq => ordering.is_le(),
            Operator::Gt => ordering.is_gt(),
            _ => ordering.is_ge(),
        };
        let result = match (left, right) {
            (ColumnarValue::Array(column), ColumnarValue::Scalar(value)) => {
                against(column, &value.to_array()?, wanted)?
            }
            (ColumnarValue::Scalar(value), ColumnarValue::Array(column)) => {
                against(column, &value.to_array()?, |ordering| wanted(ordering.reverse()))?
            }
            (ColumnarValue::Array(left), ColumnarValue::Array(right)) => both(left, right, wanted)?,
            (ColumnarValue::Scalar(left), ColumnarValue::Scalar(right)) => {
                let result = both(&left.to_array()?, &right.to_array()?, wanted)?;
                let value = ScalarValue::try_from_array(&result, 0)?;
                return Ok(ColumnarValue::Scalar(value));
            }
        };
        Ok(ColumnarValue::Array(std::sync::Arc::new(result)))
    }
}

/// A column with one value.
fn against(column: &ArrayRef, value: &ArrayRef, wanted: impl Fn(Ordering) -> bool) -> Result<BooleanArray> {
    if value.is_null(0) {
        return Ok(BooleanArray::new_null(column.len()));
    }
    let value = number_at(value, 0)?;
    let Some(numbers) = column.as_primitive_opt::<Decimal128Type>() else {
        return both_by(column, column.nulls().cloned(), |at| Ok(wanted(number_at(column, at)?.cmp(&value))));
    };
    let scale = u8::try_from(numbers.scale()).unwrap_or(0);
    let (floor, exact) = at_scale(value, scale);
    // What lies below NULL may be anything; it is not looked at.
    let order = |number: i128| match number.cmp(&floor) {
        Ordering::Equal if !exact => Ordering::Less,
        ordering => ordering,
    };
    let bits = BooleanBuffer::collect_bool(numbers.len(), |at| wanted(order(numbers.value(at))));
    Ok(BooleanArray::new(bits, numbers.nulls().cloned()))
}

/// The greatest number of a scale that is not above `value`, and whether it equals it. A number beyond all
/// that a NUMERIC can have stays beyond them.
fn at_scale(value: Decimal, scale: u8) -> (i128, bool) {
    if value.scale <= scale {
        let factor = 10_i128.checked_pow(u32::from(scale - value.scale));
        return match factor.and_then(|factor| value.unscaled.checked_mul(factor)) {
            Some(unscaled) => (unscaled, true),
            None => (if value.unscaled < 0 { i128::MIN } else { i128::MAX }, true),
        };
    }
    // A NUMERIC has at most 38 digits after the point, and this fits.
    let divisor = 10_i128.pow(u32::from(value.scale - scale));
    (value.unscaled.div_euclid(divisor), value.unscaled.rem_euclid(divisor) == 0)
}

fn both(left: &ArrayRef, right: &ArrayRef, wanted: impl Fn(Ordering) -> bool) -> Result<BooleanArray> {
    let nulls = NullBuffer::union(left.nulls(), right.nulls());
    both_by(left, nulls, |at| Ok(wanted(number_at(left, at)?.cmp(&number_at(right, at)?))))
}

fn both_by(
    array: &ArrayRef,
    nulls: Option<NullBuffer>,
    holds: impl Fn(usize) -> Result<bool>,
) -> Result<BooleanArray> {
    let mut bits = BooleanBufferBuilder::new(array.len());
    for at in 0..array.len() {
        bits.append(nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at)) && holds(at)?);
    }
    Ok(BooleanArray::new(bits.finish(), nulls))
}

/// A value that is not NULL.
fn number_at(array: &ArrayRef, at: usize) -> Result<Decimal> {
    match array.data_type() {
        DataType::Decimal128(_, scale) => {
            let unscaled = array.as_primitive::<Decimal128Type>().value(at);
            Ok(Decimal::new(unscaled, u8::try_from(*scale).unwrap_or(0)))
        }
        ty if *ty == OPEN => Ok(numeric::decode(array.as_fixed_size_binary().value(at))),
        other => Err(external(internal(format!("a comparison of {other} as a number")))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Decimal128Array, FixedSizeBinaryArray};

    use super::*;

    const TEXTS: [&str; 12] = [
        "-99999999999999999999999999999999999999",
        "-2.501",
        "-2.50",
        "-2.5",
        "-0.001",
        "0",
        "0.00",
        "0.001",
        "2.499999999999999999999999999999999999",
        "2.5",
        "2.51",
        "99999999999999999999999999999999999999",
    ];

    fn open(numbers: &[Decimal]) -> ArrayRef {
        let bytes = numbers.iter().map(|number| numeric::encode(*number));
        Arc::new(FixedSizeBinaryArray::try_from_iter(bytes).unwrap())
    }

    #[test]
    fn numbers_of_any_scale_compare_as_numbers_do() {
        let numbers: Vec<Decimal> = TEXTS.iter().map(|text| Decimal::parse(text).unwrap()).collect();
        let opened = open(&numbers);
        for value in &numbers {
            let one = open(&[*value]);
            for wanted in [Ordering::Less, Ordering::Equal, Ordering::Greater] {
                let found = against(&opened, &one, |ordering| ordering == wanted).unwrap();
                let expected: Vec<bool> = numbers.iter().map(|number| number.cmp(value) == wanted).collect();
                assert_eq!(found, BooleanArray::from(expected), "{wanted:?} {value}");
            }
        }
    }

    #[test]
    fn column_of_one_scale_compares_with_values_between_its_own() {
        let unscaled: Vec<Option<i128>> = vec![Some(-251), Some(-250), Some(0), None, Some(249), Some(250)];
        let column = Decimal128Array::from(unscaled.clone()).with_precision_and_scale(38, 2).unwrap();
        let column: ArrayRef = Arc::new(column);
        for text in TEXTS {
            let value = Decimal::parse(text).unwrap();
            let found = against(&column, &open(&[value]), Ordering::is_lt).unwrap();
            let expected =
                unscaled.iter().map(|number| Some(Decimal::new((*number)?, 2).cmp(&value).is_lt()));
            assert_eq!(found, expected.collect::<BooleanArray>(), "{text}");
        }
    }
}
