//! Window functions computed row by row by the bound form's own.
//!
//! Responsible for: every window function and every frame that has no vectorised form. What is computed is
//! `albireo_semantics::query::windowed`.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use albireo_base::Value;
use albireo_semantics::datum::Datum;
use albireo_semantics::query::tree::{FrameBound, WindowCall};
use albireo_semantics::query::windowed::{Row, results};
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};

use crate::errors::external;
use crate::values::{array_of, datum_at};

/// The function of a call. Its arguments are the call's, then the keys of its order, then how far the bounds of
/// its frame are where they say, then its FILTER; it gives `gives`.
pub(super) fn function(call: &WindowCall, gives: DataType) -> WindowUDF {
    let text = format!("{call:?}");
    let signature = Signature::user_defined(Volatility::Immutable);
    WindowUDF::new_from_impl(RowByRow { call: Arc::new(call.clone()), gives, text, signature })
}

/// How far a bound is, if it says.
pub(super) fn offset(bound: &FrameBound) -> Option<&albireo_semantics::expr::Expr> {
    match bound {
        FrameBound::Before(expr) | FrameBound::After(expr) => Some(expr),
        FrameBound::First | FrameBound::Current | FrameBound::Last => None,
    }
}

struct RowByRow {
    call: Arc<WindowCall>,
    gives: DataType,
    /// What it is, written out: equal texts, equal calls.
    text: String,
    signature: Signature,
}

impl PartialEq for RowByRow {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.gives == other.gives
    }
}

impl Eq for RowByRow {}

impl Hash for RowByRow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for RowByRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("windowed_row_by_row")
    }
}

impl WindowUDFImpl for RowByRow {
    fn name(&self) -> &str {
        "windowed_row_by_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), self.gives.clone(), true)))
    }

    fn partition_evaluator(&self, _: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Evaluator { call: Arc::clone(&self.call), gives: self.gives.clone() }))
    }
}

#[derive(Debug)]
struct Evaluator {
    call: Arc<WindowCall>,
    gives: DataType,
}

impl PartitionEvaluator for Evaluator {
    fn evaluate_all(&mut self, values: &[ArrayRef], count: usize) -> Result<ArrayRef> {
        let call = &self.call;
        let mut rows = Vec::with_capacity(count);
        for at in 0..count {
            let mut values = values.iter().map(|array| datum_at(array.as_ref(), at).map_err(external));
            let mut take = |count: usize| values.by_ref().take(count).collect::<Result<Vec<Datum>>>();
            let (args, keys) = (take(call.args.len())?, take(call.order.len())?);
            let mut offsets = [Datum::NULL, Datum::NULL];
            for (place, bound) in offsets.iter_mut().zip([&call.frame.start, &call.frame.end]) {
                if offset(bound).is_some() {
                    *place = take(1)?.pop().unwrap_or_default();
                }
            }
            let passes = match &call.filter {
                Some(_) => take(1)?.pop() == Some(Value::Bool(true).into()),
                None => true,
            };
            rows.push(Row { args, keys, passes, offsets });
        }
        let results = results(call, &rows).map_err(external)?;
        array_of(&results, &self.gives).map_err(external)
    }
}
