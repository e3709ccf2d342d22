//! `+ - * / %` on numbers with PostgreSQL's result types and errors.
//!
//! DataFusion wraps integer overflow silently, divides floats by zero to infinity and cuts
//! quotients at `s + 4` digits; so numeric operators are planned as these functions instead of
//! its `BinaryExpr`. Integer overflow and results beyond 38 digits are 22003, division by zero is
//! 22012, whatever the type.
//!
//! The kernels compute every slot without branching on errors or nulls, gather one "something
//! went wrong" flag, and look for the culprit among the non-null slots only if it is set.

use std::fmt;
use std::sync::{Arc, LazyLock};

use albireo_base::SqlError;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowNativeType, DataType, Decimal128Type, Field, FieldRef, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type,
};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::decimal::{self, Shape};
use crate::errors::{division_by_zero, external, float_overflow, float_underflow, internal, out_of_range};

/// An arithmetic operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operation {
    const ALL: [Self; 5] = [Self::Add, Self::Subtract, Self::Multiply, Self::Divide, Self::Remainder];

    fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Add => "numeric_add",
            Self::Subtract => "numeric_subtract",
            Self::Multiply => "numeric_multiply",
            Self::Divide => "numeric_divide",
            Self::Remainder => "mod",
        }
    }

    pub(crate) fn shape(self, a: Shape, b: Shape) -> Shape {
        match self {
            Self::Add | Self::Subtract => decimal::sum_shape(a, b),
            Self::Multiply => decimal::product_shape(a, b),
            Self::Divide => decimal::quotient_shape(a, b),
            Self::Remainder => decimal::remainder_shape(a, b),
        }
    }
}

/// The function behind one operator.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Arithmetic {
    operation: Operation,
    signature: Signature,
}

impl fmt::Debug for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.operation.name())
    }
}

/// The function of an operator.
pub(crate) fn function(operation: Operation) -> Arc<ScalarUDF> {
    static FUNCTIONS: LazyLock<Vec<Arc<ScalarUDF>>> = LazyLock::new(|| {
        let signature = || Signature::user_defined(Volatility::Immutable);
        Operation::ALL
            .iter()
            .map(|&operation| Arithmetic { operation, signature: signature() })
            .map(|function| Arc::new(ScalarUDF::new_from_impl(function)))
            .collect()
    });
    Arc::clone(&FUNCTIONS[operation as usize])
}

/// `left operation right` as an expression.
pub(crate) fn expression(operation: Operation, left: Expr, right: Expr) -> Expr {
    function(operation).call(vec![left, right])
}

/// Whether this is one of these functions.
pub(crate) fn is_arithmetic(function: &ScalarUDF) -> bool {
    let inner: &dyn std::any::Any = function.inner().as_ref();
    inner.is::<Arithmetic>()
}

/// The decimal that holds every value of an integer type.
pub(crate) fn integer_shape(ty: &DataType) -> Option<Shape> {
    let precision = match ty {
        DataType::Int8 | DataType::UInt8 => 3,
        DataType::Int16 | DataType::UInt16 => 5,
        DataType::Int32 | DataType::UInt32 => 10,
        DataType::Int64 => 19,
        DataType::UInt64 => 20,
        _ => return None,
    };
    Some(Shape { precision, scale: 0 })
}

/// The types both operands are converted to.
fn coerce(left: &DataType, right: &DataType) -> Option<(DataType, DataType)> {
    use DataType::{Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    let (left, right) = (widen(left), widen(right));
    Some(match (&left, &right) {
        (a, b) if !is_operand(a) && !is_operand(b) => return None,
        (a, b) if !is_operand(a) => (b.clone(), b.clone()),
        (a, b) if !is_operand(b) => (a.clone(), a.clone()),
        (Float32, Float32) => (Float32, Float32),
        (Float32 | Float64, _) | (_, Float32 | Float64) => (Float64, Float64),
        (Decimal128(..), Decimal128(..)) => (left.clone(), right.clone()),
        (Decimal128(..), other) => (left.clone(), integer_shape(other)?.data_type()),
        (other, Decimal128(..)) => (integer_shape(other)?.data_type(), right.clone()),
        (Int64, _) | (_, Int64) => (Int64, Int64),
        (Int32, _) | (_, Int32) => (Int32, Int32),
        (Int8 | Int16 | UInt8 | UInt16 | UInt32 | UInt64, _) => (Int16, Int16),
        _ => return None,
    })
}

fn is_operand(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal128(..)
    )
}

/// The SQL type nearest to a type SQL does not have.
fn widen(ty: &DataType) -> DataType {
    match ty {
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => DataType::Decimal128(*p, *s),
        other => other.clone(),
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        self.operation.name()
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [a, b] => Ok(format!("({a} {} {b})", self.operation.symbol())),
            _ => Ok(self.name().to_owned()),
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [a, b] => {
                let symbol = self.operation.symbol();
                Ok(format!("({} {symbol} {})", a.schema_name(), b.schema_name()))
            }
            _ => Ok(self.name().to_owned()),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let coerced = match arg_types {
            [DataType::Null, DataType::Null] => Some((DataType::Int32, DataType::Int32)),
            [left, right] => coerce(left, right),
            _ => None,
        };
        match coerced {
            Some((left, right)) => Ok(vec![left, right]),
            None => {
                let types: Vec<String> = arg_types.iter().map(ToString::to_string).collect();
                let symbol = self.operation.symbol();
                plan_err!("Cannot coerce arithmetic expression {}", types.join(&format!(" {symbol} ")))
            }
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [a, b] => Ok(match (Shape::of(a), Shape::of(b)) {
                (Some(x), Some(y)) => self.operation.shape(x, y).data_type(),
                _ => a.clone(),
            }),
            _ => plan_err!("{} takes two arguments", self.name()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        // NULL comes of NULL alone.
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return Err(external(internal("arithmetic takes two arguments")));
        };
        let result_type = args.return_field.data_type();
        if is_null_scalar(left) || is_null_scalar(right) {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_new_null(result_type)?));
        }
        let scalar = matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let (l, r) = (operand(left)?, operand(right)?);
        let array = evaluate(self.operation, &l, &r, result_type).map_err(external)?;
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}

fn is_null_scalar(value: &ColumnarValue) -> bool {
    matches!(value, ColumnarValue::Scalar(s) if s.is_null())
}

/// One operand: an array, or one value for all rows.
struct Operand {
    array: ArrayRef,
    constant: bool,
}

fn operand(value: &ColumnarValue) -> Result<Operand> {
    Ok(match value {
        ColumnarValue::Array(a) => Operand { array: Arc::clone(a), constant: false },
        ColumnarValue::Scalar(s) => Operand { array: s.to_array_of_size(1)?, constant: true },
    })
}

fn evaluate(
    operation: Operation,
    left: &Operand,
    right: &Operand,
    result: &DataType,
) -> Result<ArrayRef, SqlError> {
    match left.array.data_type() {
        DataType::Int16 => integers::<Int16Type>(operation, left, right, "smallint"),
        DataType::Int32 => integers::<Int32Type>(operation, left, right, "integer"),
        DataType::Int64 => integers::<Int64Type>(operation, left, right, "bigint"),
        DataType::Float32 => floats::<Float32Type>(operation, left, right),
        DataType::Float64 => floats::<Float64Type>(operation, left, right),
        DataType::Decimal128(..) => decimals(operation, left, right, result),
        other => Err(internal(format!("arithmetic on {other}"))),
    }
}

/// Applies `f` to every pair of slots. `f` returns a value and whether the pair is an error, and
/// must accept any operand, since null slots hold arbitrary values.
fn zip<T: ArrowPrimitiveType>(
    left: &Operand,
    right: &Operand,
    f: impl Fn(T::Native, T::Native) -> (T::Native, bool),
    why: impl Fn(T::Native, T::Native) -> SqlError,
) -> Result<(Vec<T::Native>, Option<NullBuffer>), SqlError> {
    let (a, b) = (left.array.as_primitive::<T>(), right.array.as_primitive::<T>());
    let (x, y) = (a.values(), b.values());
    let mut bad = false;
    let mut note = |(value, error): (T::Native, bool)| {
        bad |= error;
        value
    };
    let values: Vec<T::Native> = match (left.constant, right.constant) {
        (false, true) => {
            let y = y[0];
            x.iter().map(|&x| note(f(x, y))).collect()
        }
        (true, false) => {
            let x = x[0];
            y.iter().map(|&y| note(f(x, y))).collect()
        }
        _ => x.iter().zip(y.iter()).map(|(&x, &y)| note(f(x, y))).collect(),
    };
    let nulls = match (left.constant, right.constant) {
        (false, true) => a.nulls().cloned(),
        (true, false) => b.nulls().cloned(),
        _ => NullBuffer::union(a.nulls(), b.nulls()),
    };
    if bad {
        let at = |v: &[T::Native], constant: bool, i: usize| if constant { v[0] } else { v[i] };
        for i in (0..values.len()).filter(|&i| nulls.as_ref().is_none_or(|n| n.is_valid(i))) {
            let (x, y) = (at(x, left.constant, i), at(y, right.constant, i));
            if f(x, y).1 {
                return Err(why(x, y));
            }
        }
    }
    Ok((values, nulls))
}

/// Machine integers with the operations the kernels need.
trait Integer: ArrowNativeType {
    const ZERO: Self;
    fn add(self, other: Self) -> (Self, bool);
    fn subtract(self, other: Self) -> (Self, bool);
    fn multiply(self, other: Self) -> (Self, bool);
    fn divide(self, other: Self) -> (Self, bool);
    fn remainder(self, other: Self) -> (Self, bool);
}

macro_rules! integer {
    ($($ty:ty),*) => {$(
        impl Integer for $ty {
            const ZERO: Self = 0;
            #[inline]
            fn add(self, other: Self) -> (Self, bool) {
                self.overflowing_add(other)
            }
            #[inline]
            fn subtract(self, other: Self) -> (Self, bool) {
                self.overflowing_sub(other)
            }
            #[inline]
            fn multiply(self, other: Self) -> (Self, bool) {
                self.overflowing_mul(other)
            }
            #[inline]
            fn divide(self, other: Self) -> (Self, bool) {
                self.checked_div(other).map_or((0, true), |v| (v, false))
            }
            #[inline]
            fn remainder(self, other: Self) -> (Self, bool) {
                if other == 0 { (0, true) } else { (self.wrapping_rem(other), false) }
            }
        }
    )*};
}

integer!(i16, i32, i64);

fn integers<T: ArrowPrimitiveType>(
    operation: Operation,
    left: &Operand,
    right: &Operand,
    type_name: &str,
) -> Result<ArrayRef, SqlError>
where
    T::Native: Integer,
{
    let overflow = |_, _| out_of_range(type_name);
    let division = |_, divisor: T::Native| {
        if divisor == T::Native::ZERO { division_by_zero() } else { out_of_range(type_name) }
    };
    let (values, nulls) = match operation {
        Operation::Add => zip::<T>(left, right, Integer::add, overflow)?,
        Operation::Subtract => zip::<T>(left, right, Integer::subtract, overflow)?,
        Operation::Multiply => zip::<T>(left, right, Integer::multiply, overflow)?,
        Operation::Divide => zip::<T>(left, right, Integer::divide, division)?,
        Operation::Remainder => zip::<T>(left, right, Integer::remainder, division)?,
    };
    Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls)))
}

fn floats<T: ArrowPrimitiveType>(
    operation: Operation,
    left: &Operand,
    right: &Operand,
) -> Result<ArrayRef, SqlError>
where
    T::Native: arrow::array::ArrowNativeTypeOp,
{
    use arrow::array::ArrowNativeTypeOp as Op;
    let zero = T::default_value();
    // Infinity out of finite numbers is an overflow, zero out of others an underflow.
    let why = |a: T::Native, b: T::Native| match operation {
        Operation::Divide | Operation::Remainder if b == zero => division_by_zero(),
        Operation::Multiply if Op::mul_wrapping(a, b) == zero => float_underflow(),
        Operation::Divide if Op::div_wrapping(a, b) == zero => float_underflow(),
        _ => float_overflow(),
    };
    // Only NaN has no order with itself.
    let is_nan = |x: T::Native| x.partial_cmp(&x).is_none();
    // x - x is zero for finite numbers only.
    let finite = |x: T::Native| Op::sub_wrapping(x, x) == zero;
    let escapes = |a, b, r| !finite(r) && finite(a) && finite(b);
    let (values, nulls) = match operation {
        Operation::Add => {
            let f = |a, b| {
                let r = Op::add_wrapping(a, b);
                (r, escapes(a, b, r))
            };
            zip::<T>(left, right, f, why)?
        }
        Operation::Subtract => {
            let f = |a, b| {
                let r = Op::sub_wrapping(a, b);
                (r, escapes(a, b, r))
            };
            zip::<T>(left, right, f, why)?
        }
        Operation::Multiply => {
            let f = |a, b| {
                let r = Op::mul_wrapping(a, b);
                (r, escapes(a, b, r) || r == zero && a != zero && b != zero)
            };
            zip::<T>(left, right, f, why)?
        }
        Operation::Divide => {
            let f = |a, b| {
                let r = Op::div_wrapping(a, b);
                let vanishes = r == zero && a != zero && finite(b);
                (r, b == zero && !is_nan(a) || escapes(a, b, r) || vanishes)
            };
            zip::<T>(left, right, f, why)?
        }
        Operation::Remainder => zip::<T>(left, right, |a, b| (Op::mod_wrapping(a, b), b == zero), why)?,
    };
    Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls)))
}

fn decimals(
    operation: Operation,
    left: &Operand,
    right: &Operand,
    result: &DataType,
) -> Result<ArrayRef, SqlError> {
    let shapes = (Shape::of(left.array.data_type()), Shape::of(right.array.data_type()));
    let ((Some(a), Some(b)), Some(shape)) = (shapes, Shape::of(result)) else {
        return Err(internal("decimal arithmetic on other types"));
    };
    let (values, nulls) = match operation {
        Operation::Add => add_decimals(left, right, (a, b, shape), 1)?,
        Operation::Subtract => add_decimals(left, right, (a, b, shape), -1)?,
        Operation::Multiply => multiply_decimals(left, right, (a, b, shape))?,
        Operation::Divide => divide_decimals(left, right, (a, b, shape))?,
        Operation::Remainder => remainder_decimals(left, right, (a, b, shape))?,
    };
    let array = PrimitiveArray::<Decimal128Type>::new(values.into(), nulls);
    Ok(Arc::new(array.with_data_type(result.clone())))
}

type Decimals = Result<(Vec<i128>, Option<NullBuffer>), SqlError>;
type Shapes = (Shape, Shape, Shape);

fn numeric_overflow(_: i128, _: i128) -> SqlError {
    out_of_range("numeric")
}

fn add_decimals(left: &Operand, right: &Operand, (a, b, r): Shapes, sign: i128) -> Decimals {
    let (x, y) = (decimal::power_of_ten(r.scale - a.scale), decimal::power_of_ten(r.scale - b.scale) * sign);
    let integral = (a.precision - a.scale).max(b.precision - b.scale);
    if integral + 1 + r.scale <= i32::from(decimal::MAX_PRECISION) {
        // No value of these types can overflow.
        if x == 1 && y == 1 {
            return zip::<Decimal128Type>(left, right, |a, b| (a.wrapping_add(b), false), numeric_overflow);
        }
        if x == 1 && y == -1 {
            return zip::<Decimal128Type>(left, right, |a, b| (a.wrapping_sub(b), false), numeric_overflow);
        }
        let f = |a: i128, b: i128| (a.wrapping_mul(x).wrapping_add(b.wrapping_mul(y)), false);
        return zip::<Decimal128Type>(left, right, f, numeric_overflow);
    }
    let f = |a: i128, b: i128| {
        let sum = a.checked_mul(x).zip(b.checked_mul(y)).and_then(|(a, b)| a.checked_add(b));
        checked(sum)
    };
    zip::<Decimal128Type>(left, right, f, numeric_overflow)
}

fn checked(value: Option<i128>) -> (i128, bool) {
    match value {
        Some(v) if decimal::fits(v) => (v, false),
        _ => (0, true),
    }
}

fn multiply_decimals(left: &Operand, right: &Operand, (a, b, r): Shapes) -> Decimals {
    let cut = a.scale + b.scale - r.scale;
    if cut > 0 {
        let divisor = decimal::power_of_ten(cut);
        let f = |a: i128, b: i128| checked(decimal::multiply_divide(a, b, divisor));
        return zip::<Decimal128Type>(left, right, f, numeric_overflow);
    }
    if a.precision <= 18 && b.precision <= 18 {
        let f = |a: i128, b: i128| (i128::from(a as i64) * i128::from(b as i64), false);
        return zip::<Decimal128Type>(left, right, f, numeric_overflow);
    }
    if a.precision + b.precision <= i32::from(decimal::MAX_PRECISION) {
        let f = |a: i128, b: i128| (a.wrapping_mul(b), false);
        return zip::<Decimal128Type>(left, right, f, numeric_overflow);
    }
    zip::<Decimal128Type>(left, right, |a, b| checked(a.checked_mul(b)), numeric_overflow)
}

fn divide_decimals(left: &Operand, right: &Operand, (a, b, r): Shapes) -> Decimals {
    let factor = decimal::power_of_ten((r.scale - a.scale + b.scale).min(38));
    let rest = decimal::power_of_ten((r.scale - a.scale + b.scale - 38).max(0));
    let f = |a: i128, b: i128| {
        if b == 0 {
            return (0, true);
        }
        if rest == 1 {
            return checked(decimal::multiply_divide(a, factor, b));
        }
        checked(a.checked_mul(rest).and_then(|a| decimal::multiply_divide(a, factor, b)))
    };
    zip::<Decimal128Type>(
        left,
        right,
        f,
        |_, b| {
            if b == 0 { division_by_zero() } else { out_of_range("numeric") }
        },
    )
}

fn remainder_decimals(left: &Operand, right: &Operand, (a, b, r): Shapes) -> Decimals {
    let (x, y) = (decimal::power_of_ten(r.scale - a.scale), decimal::power_of_ten(r.scale - b.scale));
    let f = |a: i128, b: i128| {
        if b == 0 {
            return (0, true);
        }
        checked(a.checked_mul(x).zip(b.checked_mul(y)).map(|(a, b)| a.wrapping_rem(b)))
    };
    zip::<Decimal128Type>(
        left,
        right,
        f,
        |_, b| {
            if b == 0 { division_by_zero() } else { out_of_range("numeric") }
        },
    )
}
