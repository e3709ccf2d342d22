//! `sum(DISTINCT x)` over integers and decimals.

use std::collections::HashSet;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::Decimal128Type;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;

use super::sums::{Cell, Plan, wide_values};
use crate::errors::{external, out_of_range};

/// The set of values seen.
#[derive(Debug)]
pub(crate) struct DistinctSum {
    plan: Plan,
    values: HashSet<i128>,
}

impl DistinctSum {
    pub(crate) fn new(plan: Plan) -> Self {
        Self { plan, values: HashSet::new() }
    }
}

impl Accumulator for DistinctSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.extend(wide_values(&self.plan, values[0].as_ref())?);
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.values.iter().try_fold(0i128, |sum, v| sum.checked_add(*v));
        let sum = sum.ok_or_else(|| external(out_of_range("numeric")))?;
        self.plan.result_scalar(Cell { sum, count: self.values.len() as i64 })
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * (size_of::<i128>() + 1)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let ty = self.plan.sum_type();
        let items: Vec<ScalarValue> = self.values.iter().map(|v| decimal_scalar(*v, &ty)).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&items, &ty))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            self.values.extend(list.as_primitive::<Decimal128Type>().iter().flatten());
        }
        Ok(())
    }
}

fn decimal_scalar(value: i128, ty: &arrow::datatypes::DataType) -> ScalarValue {
    match ty {
        arrow::datatypes::DataType::Decimal128(p, s) => ScalarValue::Decimal128(Some(value), *p, *s),
        _ => ScalarValue::Null,
    }
}
