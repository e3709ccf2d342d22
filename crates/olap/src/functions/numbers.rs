//! Functions of numbers with PostgreSQL's result types and errors.
//!
//! | function | result |
//! |---|---|
//! | `ceil`, `ceiling`, `floor`, `trunc`, `round` of one NUMERIC | no digits after the point |
//! | the same of floating point | halves of `round` go to the even neighbour |
//! | `ln`, `log` of zero or less | 2201E |
//! | `sqrt` of a negative number, `power` without a real result | 2201F |
//! | `gcd`, `lcm`, `div`, `factorial`, `sign`, `width_bucket` | PostgreSQL's types; 22003 beyond them |

use std::fmt;
use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::arithmetic::integer_shape;
use super::decimal::{self, Shape};
use super::rowwise;
use crate::errors::{division_by_zero, external, internal, out_of_range};

/// A function of one number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    Ceiling,
    Floor,
    Truncate,
    Round,
    NaturalLogarithm,
    Logarithm,
    SquareRoot,
    Exponential,
}

/// The function of one number that replaces DataFusion's of this name.
pub(crate) fn replacement(name: &str) -> Option<Arc<ScalarUDF>> {
    let kind = match name {
        "ceil" | "ceiling" => Kind::Ceiling,
        "floor" => Kind::Floor,
        "trunc" => Kind::Truncate,
        "round" => Kind::Round,
        "ln" => Kind::NaturalLogarithm,
        "log" | "log10" => Kind::Logarithm,
        "sqrt" => Kind::SquareRoot,
        "exp" => Kind::Exponential,
        _ => return None,
    };
    Some(function(kind))
}

/// The function of a kind.
pub(crate) fn function(kind: Kind) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Unary { kind, signature }))
}

#[derive(PartialEq, Eq, Hash)]
struct Unary {
    kind: Kind,
    signature: Signature,
}

impl fmt::Debug for Unary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Unary {
    fn rounds(&self) -> bool {
        matches!(self.kind, Kind::Ceiling | Kind::Floor | Kind::Truncate | Kind::Round)
    }

    fn float(&self, x: f64) -> Result<f64, SqlError> {
        Ok(match self.kind {
            Kind::Ceiling => x.ceil(),
            Kind::Floor => x.floor(),
            Kind::Truncate => x.trunc(),
            Kind::Round => x.round_ties_even(),
            Kind::NaturalLogarithm => positive(x)?.ln(),
            Kind::Logarithm => positive(x)?.log10(),
            Kind::SquareRoot if x < 0.0 => {
                return Err(power_error("cannot take square root of a negative number"));
            }
            Kind::SquareRoot => x.sqrt(),
            Kind::Exponential => {
                let y = x.exp();
                if y.is_infinite() && x.is_finite() {
                    return Err(float_overflow());
                }
                y
            }
        })
    }

    /// The whole number for a decimal of which `unit` is one.
    fn whole(&self, value: i128, unit: i128) -> i128 {
        match self.kind {
            Kind::Ceiling => -(-value).div_euclid(unit),
            Kind::Floor => value.div_euclid(unit),
            Kind::Truncate => value / unit,
            _ => decimal::divide_rounded(value, unit),
        }
    }

    fn array(&self, array: &ArrayRef, result: &DataType) -> Result<ArrayRef> {
        Ok(match array.data_type() {
            DataType::Decimal128(_, scale) => {
                let unit = decimal::power_of_ten(i32::from(*scale));
                let whole: PrimitiveArray<Decimal128Type> =
                    array.as_primitive::<Decimal128Type>().unary(|v| self.whole(v, unit));
                Arc::new(whole.with_data_type(result.clone()))
            }
            DataType::Float32 => {
                let values = array.as_primitive::<Float32Type>();
                let values: PrimitiveArray<Float32Type> =
                    values.try_unary(|v| self.float(f64::from(v)).map(|v| v as f32)).map_err(external)?;
                Arc::new(values)
            }
            DataType::Float64 => {
                let values: PrimitiveArray<Float64Type> =
                    array.as_primitive::<Float64Type>().try_unary(|v| self.float(v)).map_err(external)?;
                Arc::new(values)
            }
            other => return Err(external(internal(format!("{} of {other}", self.name())))),
        })
    }
}

fn positive(x: f64) -> Result<f64, SqlError> {
    let why = match x {
        0.0 => "cannot take logarithm of zero",
        x if x < 0.0 => "cannot take logarithm of a negative number",
        _ => return Ok(x),
    };
    Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM, why))
}

fn power_error(why: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_ARGUMENT_FOR_POWER, why)
}

/// A floating-point result beyond its type.
pub(crate) fn float_overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

/// A floating-point result too near to zero.
pub(crate) fn float_underflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

impl ScalarUDFImpl for Unary {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Ceiling => "ceiling",
            Kind::Floor => "floor",
            Kind::Truncate => "trunc",
            Kind::Round => "round",
            Kind::NaturalLogarithm => "ln",
            Kind::Logarithm => "log",
            Kind::SquareRoot => "sqrt",
            Kind::Exponential => "exp",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [ty @ DataType::Decimal128(..)] if self.rounds() => Ok(vec![ty.clone()]),
            [DataType::Float32] if self.rounds() => Ok(vec![DataType::Float32]),
            [ty] if ty.is_numeric() || *ty == DataType::Null => Ok(vec![DataType::Float64]),
            [ty] => plan_err!("No function matches {}({})", self.name(), rowwise::type_name(ty)),
            _ => plan_err!("No function matches {} with {} arguments", self.name(), arg_types.len()),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(match arg_types {
            [ty @ DataType::Decimal128(..)] if self.rounds() => match Shape::of(ty) {
                // One digit more: 9.9 rounds to 10.
                Some(shape) => {
                    let more = i32::from(shape.scale > 0);
                    let precision = (shape.precision - shape.scale + more).clamp(1, 38);
                    Shape { precision, scale: 0 }.data_type()
                }
                None => ty.clone(),
            },
            [DataType::Float32] if self.rounds() => DataType::Float32,
            _ => DataType::Float64,
        })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let result = args.return_field.data_type();
        match args.args.as_slice() {
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(self.array(array, result)?)),
            [ColumnarValue::Scalar(scalar)] => {
                let array = self.array(&scalar.to_array_of_size(1)?, result)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
            _ => Err(external(internal("a function of one number takes one argument"))),
        }
    }
}

/// The functions of this module that are computed row by row.
pub(crate) fn row_functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        function(Kind::Ceiling),
        rowwise::function("sign", sign_type, sign),
        rowwise::function("gcd", integers_type, gcd),
        rowwise::function("lcm", integers_type, lcm),
        rowwise::function("div", div_type, div),
        rowwise::function("factorial", factorial_type, factorial),
        rowwise::function("width_bucket", bucket_type, width_bucket),
        rowwise::function("power", power_type, power),
        rowwise::function("pow", power_type, power),
    ]
}

fn sign_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match args {
        [ty @ DataType::Decimal128(..)] => Some((vec![ty.clone()], DataType::Decimal128(1, 0))),
        [ty] if ty.is_numeric() => Some((vec![DataType::Float64], DataType::Float64)),
        _ => None,
    }
}

fn sign(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    Ok(match &args[0] {
        ScalarValue::Decimal128(Some(v), ..) => ScalarValue::Decimal128(Some(v.signum()), 1, 0),
        ScalarValue::Float64(Some(v)) if *v == 0.0 || v.is_nan() => ScalarValue::Float64(Some(*v)),
        ScalarValue::Float64(Some(v)) => ScalarValue::Float64(Some(v.signum())),
        other => return Err(internal(format!("sign of {other}"))),
    })
}

fn integers_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    let [a, b] = args else { return None };
    let ty = match (a, b) {
        (DataType::Int16 | DataType::Int32, DataType::Int16 | DataType::Int32) => DataType::Int32,
        (
            DataType::Int16 | DataType::Int32 | DataType::Int64,
            DataType::Int16 | DataType::Int32 | DataType::Int64,
        ) => DataType::Int64,
        _ => return None,
    };
    Some((vec![ty.clone(), ty.clone()], ty))
}

/// Both arguments of a function of integers.
fn two_integers(args: &[ScalarValue]) -> Result<(i128, i128), SqlError> {
    match args {
        [ScalarValue::Int32(Some(a)), ScalarValue::Int32(Some(b))] => Ok((i128::from(*a), i128::from(*b))),
        [ScalarValue::Int64(Some(a)), ScalarValue::Int64(Some(b))] => Ok((i128::from(*a), i128::from(*b))),
        _ => Err(internal("two integers were expected")),
    }
}

fn integer_result(value: i128, ty: &DataType) -> Result<ScalarValue, SqlError> {
    match ty {
        DataType::Int32 => {
            let value = i32::try_from(value).map_err(|_| out_of_range("integer"))?;
            Ok(ScalarValue::Int32(Some(value)))
        }
        _ => {
            let value = i64::try_from(value).map_err(|_| out_of_range("bigint"))?;
            Ok(ScalarValue::Int64(Some(value)))
        }
    }
}

fn greatest_divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn gcd(args: &[ScalarValue], ty: &DataType) -> Result<ScalarValue, SqlError> {
    let (a, b) = two_integers(args)?;
    integer_result(greatest_divisor(a, b), ty)
}

fn lcm(args: &[ScalarValue], ty: &DataType) -> Result<ScalarValue, SqlError> {
    let (a, b) = two_integers(args)?;
    let divisor = greatest_divisor(a, b);
    // At most 126 bits.
    integer_result(if divisor == 0 { 0 } else { (a / divisor * b).abs() }, ty)
}

/// The decimal an exact number converts to.
fn as_decimal(ty: &DataType) -> Option<Shape> {
    Shape::of(ty).or_else(|| integer_shape(ty))
}

fn div_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    let [a, b] = args else { return None };
    let (a, b) = (as_decimal(a)?, as_decimal(b)?);
    let result = Shape { precision: (a.precision - a.scale + b.scale).clamp(1, 38), scale: 0 };
    Some((vec![a.data_type(), b.data_type()], result.data_type()))
}

fn div(args: &[ScalarValue], ty: &DataType) -> Result<ScalarValue, SqlError> {
    let [ScalarValue::Decimal128(Some(a), _, s), ScalarValue::Decimal128(Some(b), _, t)] = args else {
        return Err(internal("two decimals were expected"));
    };
    if *b == 0 {
        return Err(division_by_zero());
    }
    let raise = |v: i128, by: i8| v.checked_mul(decimal::power_of_ten(i32::from(by)));
    let common = (*s).max(*t);
    let (Some(a), Some(b)) = (raise(*a, common - s), raise(*b, common - t)) else {
        return Err(out_of_range("numeric"));
    };
    decimal_result(a / b, ty)
}

fn decimal_result(value: i128, ty: &DataType) -> Result<ScalarValue, SqlError> {
    match ty {
        DataType::Decimal128(p, s) if decimal::fits(value) => {
            Ok(ScalarValue::Decimal128(Some(value), *p, *s))
        }
        _ => Err(out_of_range("numeric")),
    }
}

fn factorial_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match args {
        [DataType::Int16 | DataType::Int32 | DataType::Int64] => {
            Some((vec![DataType::Int64], DataType::Decimal128(38, 0)))
        }
        _ => None,
    }
}

fn factorial(args: &[ScalarValue], ty: &DataType) -> Result<ScalarValue, SqlError> {
    let ScalarValue::Int64(Some(n)) = args[0] else { return Err(internal("an integer was expected")) };
    if n < 0 {
        let message = "factorial of a negative number is undefined";
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    // 34! has 39 digits.
    if n > 33 {
        return Err(out_of_range("numeric"));
    }
    decimal_result((1..=i128::from(n)).product(), ty)
}

fn bucket_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    let [numbers @ .., DataType::Int16 | DataType::Int32 | DataType::Int64] = args else { return None };
    if numbers.len() != 3 || !numbers.iter().all(DataType::is_numeric) {
        return None;
    }
    let shapes: Option<Vec<Shape>> = numbers.iter().map(as_decimal).collect();
    let common = match shapes {
        Some(shapes) => {
            let scale = shapes.iter().map(|s| s.scale).max()?;
            DataType::Decimal128(38, i8::try_from(scale).ok()?)
        }
        None => DataType::Float64,
    };
    let types = vec![common.clone(), common.clone(), common, DataType::Int32];
    Some((types, DataType::Int32))
}

fn width_bucket(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    let refuse = |message: &str| SqlError::new(SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET, message);
    let ScalarValue::Int32(Some(count)) = args[3] else { return Err(internal("a count was expected")) };
    if count <= 0 {
        return Err(refuse("count must be greater than zero"));
    }
    let bucket = match &args[..3] {
        [
            ScalarValue::Decimal128(Some(x), ..),
            ScalarValue::Decimal128(Some(low), ..),
            ScalarValue::Decimal128(Some(high), ..),
        ] => {
            if low == high {
                return Err(refuse("lower bound cannot equal upper bound"));
            }
            // Mirrored when the bounds descend.
            let (x, low, high) = if low < high { (*x, *low, *high) } else { (-x, -low, -high) };
            if x < low {
                0
            } else if x >= high {
                i128::from(count) + 1
            } else {
                let product = (x - low).checked_mul(i128::from(count));
                product.ok_or_else(|| out_of_range("numeric"))? / (high - low) + 1
            }
        }
        [
            ScalarValue::Float64(Some(x)),
            ScalarValue::Float64(Some(low)),
            ScalarValue::Float64(Some(high)),
        ] => {
            if !low.is_finite() || !high.is_finite() || x.is_nan() {
                return Err(refuse("operand, lower bound, and upper bound cannot be NaN or infinite"));
            }
            if low == high {
                return Err(refuse("lower bound cannot equal upper bound"));
            }
            let (x, low, high) = if low < high { (*x, *low, *high) } else { (-x, -low, -high) };
            if x < low {
                0
            } else if x >= high {
                i128::from(count) + 1
            } else {
                let bucket = ((x - low) / (high - low) * f64::from(count)) as i128 + 1;
                bucket.min(i128::from(count))
            }
        }
        _ => return Err(internal("numbers of one type were expected")),
    };
    integer_result(bucket, &DataType::Int32)
}

fn power_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match args {
        [a, b] if a.is_numeric() && b.is_numeric() => {
            Some((vec![DataType::Float64, DataType::Float64], DataType::Float64))
        }
        _ => None,
    }
}

fn power(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    let [ScalarValue::Float64(Some(x)), ScalarValue::Float64(Some(y))] = args else {
        return Err(internal("two numbers were expected"));
    };
    if *x == 0.0 && *y < 0.0 {
        return Err(power_error("zero raised to a negative power is undefined"));
    }
    if *x < 0.0 && y.fract() != 0.0 && y.is_finite() {
        let message = "a negative number raised to a non-integer power yields a complex result";
        return Err(power_error(message));
    }
    let result = x.powf(*y);
    if result.is_infinite() && x.is_finite() && y.is_finite() {
        return Err(float_overflow());
    }
    Ok(ScalarValue::Float64(Some(result)))
}
