//! SQL functions and operators that DataFusion does not compute as PostgreSQL does.
//!
//! **Invariant:** no function here returns a wrong number: what does not fit its result type is
//! an error.

pub(crate) mod arithmetic;
pub(crate) mod decimal;
mod distinct;
pub(crate) mod float;
pub(crate) mod now;
pub(crate) mod sums;
pub(crate) mod temporal;

use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;

/// What any function is of no rows: without rows nothing fails, not even a constant.
pub(crate) fn of_no_rows(ty: &DataType) -> Result<ColumnarValue> {
    Ok(ColumnarValue::Scalar(ScalarValue::try_new_null(ty)?))
}
