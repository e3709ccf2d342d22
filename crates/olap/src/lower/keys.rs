//! Values as they are compared, sorted and grouped.
//!
//! Equal values must be equal to Arrow too, and in PostgreSQL's order: 0.0 and -0.0, all NaNs, 1.0 and 1.00,
//! a month and thirty days.

use std::sync::{Arc, LazyLock};

use albireo_base::value::MICROS_PER_DAY;
use albireo_semantics::types::{Scalar, Type};
use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array,
};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr as Planned, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::errors::{external, from_arrow, internal};
use crate::values::numeric::{KEY_BYTES, OPEN};

/// An expression as it is compared; itself if that is what Arrow compares.
pub(super) fn key(expr: Planned, ty: &Type) -> Planned {
    match ty {
        _ if has_key(ty) => {
            if let Planned::Literal(value, _) = &expr
                && let Some(plain) = plain_literal(value)
            {
                return Planned::Literal(plain, None);
            }
            FUNCTION.call(vec![expr])
        }
        _ => expr,
    }
}

/// Whether values of a type are compared as something else.
pub(super) fn has_key(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Scalar(Scalar::Interval | Scalar::Real | Scalar::Double | Scalar::Numeric { scale: None })
    )
}

/// A float whose key is itself.
fn plain_literal(value: &ScalarValue) -> Option<ScalarValue> {
    match value {
        ScalarValue::Float64(Some(v)) if !v.is_nan() => Some(ScalarValue::Float64(Some(v + 0.0))),
        ScalarValue::Float32(Some(v)) if !v.is_nan() => Some(ScalarValue::Float32(Some(v + 0.0))),
        _ => None,
    }
}

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Key { signature }))
});

/// The function behind [`key`].
#[derive(PartialEq, Eq, Hash, Debug)]
struct Key {
    signature: Signature,
}

impl ScalarUDFImpl for Key {
    fn name(&self) -> &str {
        "sort_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match types {
            [ty] if *ty == OPEN => DataType::FixedSizeBinary(KEY_BYTES as i32),
            [DataType::Interval(_)] => DURATION,
            [ty] => ty.clone(),
            _ => DataType::Null,
        })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [arg] = args.args.as_slice() else { return Err(external(internal("a key has one argument"))) };
        match arg {
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(keys(array)?)),
            ColumnarValue::Scalar(value) => {
                let array = keys(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
        }
    }
}

/// The type of an interval's key.
const DURATION: DataType = DataType::Decimal128(38, 0);

/// The microseconds of an interval: of 30 days a month and 24 hours a day.
fn duration(interval: IntervalMonthDayNano) -> i128 {
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    days * i128::from(MICROS_PER_DAY) + i128::from(interval.nanoseconds / 1000)
}

fn keys(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float64 => {
            let plain = |v: f64| if v.is_nan() { f64::NAN } else { v + 0.0 };
            let keys: Float64Array = array.as_primitive::<Float64Type>().unary(plain);
            Arc::new(keys)
        }
        DataType::Float32 => {
            let plain = |v: f32| if v.is_nan() { f32::NAN } else { v + 0.0 };
            let keys: Float32Array = array.as_primitive::<Float32Type>().unary(plain);
            Arc::new(keys)
        }
        ty if *ty == OPEN => {
            let values = array.as_fixed_size_binary();
            let key = |value: Option<&[u8]>| value.map(|bytes| bytes[..KEY_BYTES].to_vec());
            let keys = values.iter().map(key);
            let keys = FixedSizeBinaryArray::try_from_sparse_iter_with_size(keys, KEY_BYTES as i32);
            Arc::new(keys.map_err(|e| external(from_arrow(&e)))?)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let keys: Decimal128Array = array.as_primitive::<IntervalMonthDayNanoType>().unary(duration);
            Arc::new(keys.with_data_type(DURATION))
        }
        // One scale for all is a key as it is.
        _ => Arc::clone(array),
    })
}
