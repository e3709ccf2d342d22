//! `sum` of REAL, which is REAL in PostgreSQL: added up in double precision, rounded once.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::utils::format_state_name;

use crate::errors::{external, float_overflow};

#[derive(Default, Debug)]
struct RealSum {
    sum: f64,
    count: i64,
}

/// The accumulator.
pub(super) fn accumulator() -> Box<dyn Accumulator> {
    Box::new(RealSum::default())
}

/// Its partial state.
pub(super) fn state_fields(name: &str) -> Vec<FieldRef> {
    vec![
        Arc::new(Field::new(format_state_name(name, "sum"), DataType::Float64, false)),
        Arc::new(Field::new(format_state_name(name, "count"), DataType::Int64, false)),
    ]
}

impl RealSum {
    fn change(&mut self, array: &ArrayRef, sign: f64) {
        for value in array.as_primitive::<Float32Type>().iter().flatten() {
            self.sum += sign * f64::from(value);
            self.count += sign as i64;
        }
    }
}

impl Accumulator for RealSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(&values[0], 1.0);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(&values[0], -1.0);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.sum as f32;
        if sum.is_infinite() && self.sum.is_finite() {
            return Err(external(float_overflow()));
        }
        Ok(ScalarValue::Float32((self.count > 0).then_some(sum)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Float64(Some(self.sum)), ScalarValue::Int64(Some(self.count))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (sums, counts) = (states[0].as_primitive::<Float64Type>(), states[1].as_primitive::<Int64Type>());
        for row in 0..sums.len() {
            self.sum += sums.value(row);
            self.count += counts.value(row);
        }
        Ok(())
    }
}
