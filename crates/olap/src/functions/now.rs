//! `now()`: the time when the query began, in microseconds as PostgreSQL has it. DataFusion's is in nanoseconds,
//! which end in 2262.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

const ZONE: &str = "UTC";

/// The time of the query, as a TIMESTAMP WITH TIME ZONE.
pub(crate) fn expression() -> Expr {
    let signature = Signature::nullary(Volatility::Stable);
    Arc::new(ScalarUDF::new_from_impl(Now { signature })).call(Vec::new())
}

#[derive(PartialEq, Eq, Hash, Debug)]
struct Now {
    signature: Signature,
}

impl ScalarUDFImpl for Now {
    fn name(&self) -> &str {
        "now"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())))
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), self.return_type(&[])?, false)))
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("now() is replaced by its value before a query runs")
    }

    fn simplify(&self, arguments: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let Some(now) = context.query_execution_start_time() else {
            return Ok(ExprSimplifyResult::Original(arguments));
        };
        let value = ScalarValue::TimestampMicrosecond(Some(now.timestamp_micros()), Some(ZONE.into()));
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(value, None)))
    }
}
