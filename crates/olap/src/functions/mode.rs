//! `mode() WITHIN GROUP (ORDER BY x)`: the most frequent value, and of several the first in order.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

/// The aggregate; DataFusion gives it the expression it is ordered by as its argument.
#[derive(PartialEq, Eq, Hash, Debug)]
struct Mode {
    signature: Signature,
}

/// The one instance.
pub(crate) fn function() -> Arc<AggregateUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(Mode { signature }))
}

impl AggregateUDFImpl for Mode {
    fn name(&self) -> &str {
        "mode"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [ty] => Ok(ty.clone()),
            _ => plan_err!("No function matches: mode is over one value"),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let descending = args.order_bys.first().is_some_and(|order| order.options.descending);
        let ty = args.return_field.data_type().clone();
        Ok(Box::new(Counts { ty, descending, counts: HashMap::new(), bytes: 0 }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let value = Field::new_list_field(args.input_fields[0].data_type().clone(), true);
        let count = Field::new_list_field(DataType::Int64, true);
        Ok(vec![
            Arc::new(Field::new_list(format_state_name(args.name, "values"), value, true)),
            Arc::new(Field::new_list(format_state_name(args.name, "counts"), count, true)),
        ])
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn supports_null_handling_clause(&self) -> bool {
        false
    }
}

/// How often each value was met.
#[derive(Debug)]
struct Counts {
    ty: DataType,
    descending: bool,
    counts: HashMap<ScalarValue, i64>,
    bytes: usize,
}

impl Counts {
    fn add(&mut self, value: ScalarValue, count: i64) {
        if !value.is_null() {
            if !self.counts.contains_key(&value) {
                self.bytes += value.size() + size_of::<(ScalarValue, i64)>();
            }
            *self.counts.entry(value).or_default() += count;
        }
    }

    /// Whether `a` stands before `b` in the order.
    fn is_before(&self, a: &ScalarValue, b: &ScalarValue) -> bool {
        let order = a.partial_cmp(b);
        order == Some(if self.descending { std::cmp::Ordering::Greater } else { std::cmp::Ordering::Less })
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for row in 0..values[0].len() {
            self.add(ScalarValue::try_from_array(&values[0], row)?, 1);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut best: Option<(&ScalarValue, i64)> = None;
        for (value, count) in &self.counts {
            let better = best
                .is_none_or(|(known, most)| *count > most || *count == most && self.is_before(value, known));
            if better {
                best = Some((value, *count));
            }
        }
        best.map_or_else(|| ScalarValue::try_new_null(&self.ty), |(value, _)| Ok(value.clone()))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (values, counts): (Vec<ScalarValue>, Vec<ScalarValue>) =
            self.counts.drain().map(|(value, count)| (value, ScalarValue::Int64(Some(count)))).unzip();
        Ok(vec![
            ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.ty)),
            ScalarValue::List(ScalarValue::new_list_nullable(&counts, &DataType::Int64)),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (values, counts) = (states[0].as_list::<i32>(), states[1].as_list::<i32>());
        for row in 0..values.len() {
            let (values, counts) = (values.value(row), counts.value(row));
            let counts = counts.as_primitive::<Int64Type>();
            for i in 0..values.len() {
                self.add(ScalarValue::try_from_array(&values, i)?, counts.value(i));
            }
        }
        Ok(())
    }
}
