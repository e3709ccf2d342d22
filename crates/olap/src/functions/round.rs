//! Rounding before a cast to an integer.
//!
//! PostgreSQL rounds when it casts to an integer: NUMERIC half away from zero, floating point
//! half to even. Arrow cuts the digits off. The analyzer puts this function under such casts.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::decimal::{self, Shape};
use crate::errors::{external, internal};

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RoundToInteger {
    signature: Signature,
}

/// The one instance.
pub(crate) fn function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(RoundToInteger { signature }))
    });
    Arc::clone(&FUNCTION)
}

/// Whether a cast from this type to an integer must round.
pub(crate) fn applies_to(ty: &DataType) -> bool {
    match ty {
        DataType::Decimal128(_, scale) => *scale > 0,
        other => matches!(other, DataType::Float32 | DataType::Float64),
    }
}

impl ScalarUDFImpl for RoundToInteger {
    fn name(&self) -> &str {
        "round_to_integer"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arg_types.to_vec())
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [ty] => Ok(match Shape::of(ty) {
                // One digit more: 9.9 rounds to 10.
                Some(shape) => {
                    let precision = (shape.precision - shape.scale + 1).clamp(1, 38);
                    Shape { precision, scale: 0 }.data_type()
                }
                None => ty.clone(),
            }),
            _ => plan_err!("round_to_integer takes one argument"),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let result_type = args.return_field.data_type();
        match &args.args[..] {
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(round(array, result_type)?)),
            [ColumnarValue::Scalar(scalar)] => {
                let rounded = round(&scalar.to_array_of_size(1)?, result_type)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&rounded, 0)?))
            }
            _ => Err(external(internal("round_to_integer takes one argument"))),
        }
    }
}

fn round(array: &ArrayRef, result_type: &DataType) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Decimal128(_, scale) => {
            let divisor = decimal::power_of_ten(i32::from(*scale));
            let rounded: PrimitiveArray<Decimal128Type> =
                array.as_primitive::<Decimal128Type>().unary(|v| decimal::divide_rounded(v, divisor));
            Arc::new(rounded.with_data_type(result_type.clone()))
        }
        DataType::Float32 => {
            let a = array.as_primitive::<Float32Type>();
            Arc::new(a.unary::<_, Float32Type>(f32::round_ties_even))
        }
        DataType::Float64 => {
            let a = array.as_primitive::<Float64Type>();
            Arc::new(a.unary::<_, Float64Type>(f64::round_ties_even))
        }
        other => return Err(external(internal(format!("rounding {other}")))),
    })
}
