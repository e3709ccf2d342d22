//! `stddev` and `variance` with their kin: exact and NUMERIC for integers and decimals, as in
//! PostgreSQL; DataFusion's for floating point.
//!
//! The number of values, their sum (128 bits) and the sum of their squares (256 bits) are kept, so
//! the order of the rows does not matter. What does not fit is SQLSTATE 22003. Results have
//! [`SCALE`] digits after the point.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Field, FieldRef, Int16Type, Int32Type, Int64Type, i256,
};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::functions_aggregate::{stddev, variance};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility,
};

use super::decimal::{self, Shape};
use crate::errors::{external, internal, out_of_range};

/// Digits after the point of a result.
const SCALE: i32 = 16;

/// Which of the four.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Kind {
    /// Over the whole population rather than a sample of it.
    population: bool,
    /// The square root.
    deviation: bool,
}

/// One of the four.
#[derive(PartialEq, Eq, Hash, Debug)]
struct Variance {
    kind: Kind,
    aliases: Vec<String>,
    floating: Arc<AggregateUDF>,
    signature: Signature,
}

/// All of them.
pub(crate) fn functions() -> Vec<Arc<AggregateUDF>> {
    let make = |population, deviation, floating: Arc<AggregateUDF>, aliases: &[&str]| {
        let aliases = aliases.iter().map(|&alias| alias.to_owned()).collect();
        let signature = Signature::user_defined(Volatility::Immutable);
        let kind = Kind { population, deviation };
        Arc::new(AggregateUDF::new_from_impl(Variance { kind, aliases, floating, signature }))
    };
    vec![
        make(false, true, stddev::stddev_udaf(), &["stddev_samp"]),
        make(true, true, stddev::stddev_pop_udaf(), &[]),
        make(false, false, variance::var_samp_udaf(), &["variance", "var_samp"]),
        make(true, false, variance::var_pop_udaf(), &[]),
    ]
}

fn is_exact(ty: &DataType) -> bool {
    matches!(ty, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Decimal128(..))
}

fn scale_of(ty: &DataType) -> i32 {
    Shape::of(ty).map_or(0, |shape| shape.scale)
}

impl AggregateUDFImpl for Variance {
    fn name(&self) -> &str {
        self.floating.name()
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [ty] if is_exact(ty) => Ok(vec![ty.clone()]),
            [ty] if ty.is_integer() => Ok(vec![DataType::Int64]),
            [DataType::Null | DataType::Float32 | DataType::Float64] => Ok(vec![DataType::Float64]),
            _ => plan_err!("No function matches: {} takes one number", self.name()),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(match arg_types {
            [ty] if is_exact(ty) => DataType::Decimal128(decimal::MAX_PRECISION, SCALE as i8),
            _ => DataType::Float64,
        })
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let ty = args.expr_fields[0].data_type();
        if !is_exact(ty) {
            return self.floating.inner().accumulator(args);
        }
        if args.is_distinct {
            return Err(external(albireo_base::SqlError::unsupported(format!("{}(DISTINCT)", self.name()))));
        }
        Ok(Box::new(Moments { kind: self.kind, scale: scale_of(ty), count: 0, sum: 0, squares: i256::ZERO }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let ty = args.input_fields[0].data_type();
        if !is_exact(ty) {
            return self.floating.inner().state_fields(args);
        }
        let (sum, squares) = state_types(scale_of(ty));
        let name = |suffix: &str| format_state_name(args.name, suffix);
        Ok(vec![
            Arc::new(Field::new(name("count"), DataType::Int64, false)),
            Arc::new(Field::new(name("sum"), sum, false)),
            Arc::new(Field::new(name("squares"), squares, false)),
        ])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !is_exact(args.expr_fields[0].data_type()) && self.floating.inner().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.floating.inner().create_groups_accumulator(args)
    }
}

fn state_types(scale: i32) -> (DataType, DataType) {
    let sum = DataType::Decimal128(decimal::MAX_PRECISION, scale as i8);
    (sum, DataType::Decimal256(76, 2 * scale as i8))
}

/// What is kept of a group, at the argument's scale.
#[derive(Debug)]
struct Moments {
    kind: Kind,
    scale: i32,
    count: i64,
    sum: i128,
    squares: i256,
}

impl Moments {
    /// Adds values, or takes them away.
    fn change(&mut self, array: &ArrayRef, away: bool) -> Result<()> {
        let mut add = |value: i128| -> Option<()> {
            let wide = i256::from_i128(value);
            let square = wide.checked_mul(wide)?;
            if away {
                self.count -= 1;
                self.sum = self.sum.checked_sub(value)?;
                self.squares = self.squares.checked_sub(square)?;
            } else {
                self.count += 1;
                self.sum = self.sum.checked_add(value)?;
                self.squares = self.squares.checked_add(square)?;
            }
            Some(())
        };
        let done = match array.data_type() {
            DataType::Int16 => {
                array.as_primitive::<Int16Type>().iter().flatten().try_for_each(|v| add(v.into()))
            }
            DataType::Int32 => {
                array.as_primitive::<Int32Type>().iter().flatten().try_for_each(|v| add(v.into()))
            }
            DataType::Int64 => {
                array.as_primitive::<Int64Type>().iter().flatten().try_for_each(|v| add(v.into()))
            }
            DataType::Decimal128(..) => {
                array.as_primitive::<Decimal128Type>().iter().flatten().try_for_each(add)
            }
            other => return Err(external(internal(format!("a variance of {other}")))),
        };
        done.ok_or_else(|| external(out_of_range("numeric")))
    }

    /// The result as an unscaled number; `None` when it does not fit.
    fn result(&self) -> Option<i128> {
        let ten = |n: i32| i256::from_i128(decimal::power_of_ten(n));
        let count = i256::from_i128(i128::from(self.count));
        let sum = i256::from_i128(self.sum);
        let numerator = count.checked_mul(self.squares)?.checked_sub(sum.checked_mul(sum)?)?;
        let others = if self.kind.population { count } else { count.checked_sub(i256::ONE)? };
        let divisor = count.checked_mul(others)?;
        // The squares have twice the argument's scale.
        let digits = if self.kind.deviation { [2 * SCALE, SCALE, 0] } else { [SCALE, SCALE / 2, 0] };
        digits.into_iter().find_map(|digits| {
            let more = digits - 2 * self.scale;
            let quotient = match more >= 0 {
                true => divide(numerator.checked_mul(ten(more))?, divisor)?,
                false => divide(numerator, divisor.checked_mul(power(-more)?)?)?,
            };
            let (root, have) = match self.kind.deviation {
                true => (root(quotient), digits / 2),
                false => (quotient, digits),
            };
            let result = root.to_i128()?.checked_mul(decimal::power_of_ten(SCALE - have))?;
            decimal::fits(result).then_some(result)
        })
    }
}

fn power(n: i32) -> Option<i256> {
    let high = i256::from_i128(decimal::power_of_ten(n.min(38)));
    high.checked_mul(i256::from_i128(decimal::power_of_ten((n - 38).max(0))))
}

/// `a / b` rounded half up; neither is negative.
fn divide(a: i256, b: i256) -> Option<i256> {
    let (quotient, remainder) = (a.checked_div(b)?, a.checked_rem(b)?);
    if remainder >= b.checked_sub(remainder)? { quotient.checked_add(i256::ONE) } else { Some(quotient) }
}

/// The square root rounded to the nearest, by Newton's method from above.
fn root(square: i256) -> i256 {
    if square <= i256::ZERO {
        return i256::ZERO;
    }
    let two = i256::from_i128(2);
    let bits = 256 - square.leading_zeros();
    let mut guess = i256::ONE << (bits.div_ceil(2) as u8);
    loop {
        let next = (guess.wrapping_add(square / guess)) / two;
        if next >= guess {
            break;
        }
        guess = next;
    }
    // Nearer to the next number when the rest exceeds it.
    let rest = square.wrapping_sub(guess.wrapping_mul(guess));
    if rest > guess { guess.wrapping_add(i256::ONE) } else { guess }
}

impl Accumulator for Moments {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(&values[0], false)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(&values[0], true)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let least = if self.kind.population { 1 } else { 2 };
        let value = match self.count >= least {
            true => Some(self.result().ok_or_else(|| external(out_of_range("numeric")))?),
            false => None,
        };
        Ok(ScalarValue::Decimal128(value, decimal::MAX_PRECISION, SCALE as i8))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let scale = self.scale as i8;
        Ok(vec![
            ScalarValue::Int64(Some(self.count)),
            ScalarValue::Decimal128(Some(self.sum), decimal::MAX_PRECISION, scale),
            ScalarValue::Decimal256(Some(self.squares), 76, 2 * scale),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let counts = states[0].as_primitive::<Int64Type>();
        let sums = states[1].as_primitive::<Decimal128Type>();
        let squares = states[2].as_primitive::<Decimal256Type>();
        for i in 0..counts.len() {
            self.count += counts.value(i);
            let sum = self.sum.checked_add(sums.value(i));
            let square = self.squares.checked_add(squares.value(i));
            let (Some(sum), Some(square)) = (sum, square) else {
                return Err(external(out_of_range("numeric")));
            };
            (self.sum, self.squares) = (sum, square);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_of_squares_and_their_neighbours_is_the_nearest_number() {
        for n in [0_i128, 1, 2, 3, 10, 99, 1 << 40, (1 << 62) + 5] {
            let square = i256::from_i128(n).wrapping_mul(i256::from_i128(n));
            assert_eq!(root(square), i256::from_i128(n), "{n}");
        }
        assert_eq!(root(i256::from_i128(7)), i256::from_i128(3));
        assert_eq!(root(i256::from_i128(6)), i256::from_i128(2));
    }
}
