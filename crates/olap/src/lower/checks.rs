//! Functions that only look.

use std::sync::{Arc, LazyLock};

use albireo_base::{SqlError, SqlState};
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr as Planned, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, binary_expr, lit,
};

use crate::errors::{external, internal};

/// The value of a query in an expression, of which there were `rows`.
pub(super) fn single(value: Planned, rows: Planned) -> Planned {
    FUNCTION.call(vec![value, rows])
}

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Single { signature }))
});

/// Whether a condition is `wanted`, and not NULL. DataFusion's own `IS TRUE` is never NULL in its logical plan
/// and may be NULL by the schema of its physical one, which aggregates then refuse.
pub(super) fn is(condition: Planned, wanted: bool) -> Planned {
    binary_expr(condition, Operator::IsNotDistinctFrom, lit(wanted))
}

/// What LIMIT or OFFSET (`word`) says, an error if it is negative.
pub(super) fn counted(count: Planned, word: &'static str) -> Planned {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Counted { word, signature })).call(vec![count])
}

/// The error for a LIMIT or OFFSET below zero.
pub(super) fn negative(word: &str) -> SqlError {
    let state = if word == "LIMIT" { *b"2201W" } else { *b"2201X" };
    SqlError::new(SqlState(state), format!("{word} must not be negative"))
}

#[derive(PartialEq, Eq, Hash, Debug)]
struct Counted {
    word: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Counted {
    fn name(&self) -> &str {
        "counted"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [count] = args.args.as_slice() else {
            return Err(external(internal("counted takes one argument")));
        };
        let counts = count.to_array(args.number_rows)?;
        if counts.as_primitive::<Int64Type>().iter().flatten().any(|count| count < 0) {
            return Err(external(negative(self.word)));
        }
        Ok(count.clone())
    }
}

#[derive(PartialEq, Eq, Hash, Debug)]
struct Single {
    signature: Signature,
}

impl ScalarUDFImpl for Single {
    fn name(&self) -> &str {
        "single"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, rows] = args.args.as_slice() else {
            return Err(external(internal("single takes two arguments")));
        };
        let rows = rows.to_array(args.number_rows)?;
        if rows.as_primitive::<Int64Type>().iter().flatten().any(|count| count > 1) {
            let message = "more than one row returned by a subquery used as an expression";
            return Err(external(SqlError::new(SqlState::CARDINALITY_VIOLATION, message)));
        }
        Ok(value.clone())
    }
}
