//! Aggregates computed row by row by the bound form's own.
//!
//! Responsible for: every aggregate that has no vectorised form, DISTINCT and ORDER BY inside of aggregates; the
//! reference for what has one. What is computed is `albireo_semantics::query::accumulate`.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use albireo_base::SqlError;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{ColumnRef, Expr, ExprKind};
use albireo_semantics::query::accumulate::Accumulator as State;
use albireo_semantics::query::tree::{Aggregate, AggregateKind, OrderBy, OrderKey};
use albireo_semantics::types::Type;
use arrow::array::{Array, ArrayRef, AsArray, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr as Planned, Signature, Volatility,
};

use crate::errors::external;
use crate::values::{array_of, arrow_of, datum_at};

/// An aggregate over its arguments, then the keys of its order; it gives `gives`.
pub(crate) fn call(
    aggregate: &Aggregate,
    gives: DataType,
    args: Vec<Planned>,
    filter: Option<Box<Planned>>,
) -> Planned {
    let params =
        AggregateFunctionParams { args, distinct: false, filter, order_by: Vec::new(), null_treatment: None };
    let func = Arc::new(function(aggregate, gives));
    Planned::AggregateFunction(AggregateFunction { func, params })
}

/// What a function of these computes, of each row as it comes. `None`: it is none of them, or DISTINCT or ORDER BY inside.
pub(crate) fn kind_of(function: &AggregateUDF) -> Option<AggregateKind> {
    let inner: &dyn Any = function.inner().as_ref();
    let aggregate = &inner.downcast_ref::<RowByRow>()?.aggregate;
    (!aggregate.distinct && aggregate.order.is_empty()).then_some(aggregate.kind)
}

fn function(aggregate: &Aggregate, gives: DataType) -> AggregateUDF {
    let column = |at: usize, ty: &Type| {
        let column = ColumnRef { depth: 0, relation: 0, column: at as u16 };
        Expr { kind: ExprKind::Column(column), ty: ty.clone() }
    };
    let args: Vec<Expr> = aggregate.args.iter().enumerate().map(|(at, arg)| column(at, &arg.ty)).collect();
    let order = aggregate.order.iter().map(|key| {
        let by = match &key.by {
            OrderBy::Expr(expr) => OrderBy::Expr(column(0, &expr.ty)),
            by => by.clone(),
        };
        OrderKey { by, ..*key }
    });
    let order = order.collect();
    let aggregate = Aggregate { args, order, filter: None, ..aggregate.clone() };
    let text = format!("{aggregate:?}");
    let signature = Signature::user_defined(Volatility::Immutable);
    AggregateUDF::new_from_impl(RowByRow { aggregate: Arc::new(aggregate), gives, text, signature })
}

struct RowByRow {
    aggregate: Arc<Aggregate>,
    gives: DataType,
    /// What it is, written out: equal texts, equal aggregates.
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
        f.write_str("aggregated_row_by_row")
    }
}

/// The Arrow types of the parts that are passed on.
fn part_types(state: &State<Arc<Aggregate>>) -> Option<Vec<DataType>> {
    state.part_types()?.iter().map(arrow_of).collect()
}

impl AggregateUDFImpl for RowByRow {
    fn name(&self) -> &str {
        "aggregated_row_by_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.gives.clone())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let state = State::new(Arc::clone(&self.aggregate));
        let args_of = self.aggregate.args.len();
        if let Some(types) = part_types(&state) {
            return Ok(Box::new(Eager { state, types, gives: self.gives.clone() }));
        }
        let types = args.expr_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Box::new(Kept { state, args: args_of, types, gives: self.gives.clone(), rows: Vec::new() }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let state = State::new(Arc::clone(&self.aggregate));
        let name = |at: usize| format_state_name(args.name, &at.to_string());
        let field = |(at, ty): (usize, DataType)| Arc::new(Field::new(name(at), ty, true));
        if let Some(types) = part_types(&state) {
            return Ok(types.into_iter().enumerate().map(field).collect());
        }
        let list = |field: &FieldRef| DataType::List(item(field.data_type()));
        Ok(args.input_fields.iter().map(list).enumerate().map(field).collect())
    }
}

fn item(ty: &DataType) -> FieldRef {
    Arc::new(Field::new("item", ty.clone(), true))
}

/// A result as a scalar.
fn scalar(result: std::result::Result<Datum, SqlError>, gives: &DataType) -> Result<ScalarValue> {
    let array = result.and_then(|datum| array_of(&[datum], gives)).map_err(external)?;
    ScalarValue::try_from_array(&array, 0)
}

/// The values of one row.
fn row_of(arrays: &[ArrayRef], row: usize) -> Result<Vec<Datum>> {
    arrays.iter().map(|array| datum_at(array.as_ref(), row).map_err(external)).collect()
}

/// An aggregate of which a little is known at any time.
#[derive(Debug)]
struct Eager {
    state: State<Arc<Aggregate>>,
    types: Vec<DataType>,
    gives: DataType,
}

impl Accumulator for Eager {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = values.first().map_or(0, |array| array.len());
        for row in 0..rows {
            self.state.add(row_of(values, row)?, Vec::new()).map_err(external)?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        scalar(self.state.clone().result(), &self.gives)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let parts = self.state.parts().into_iter().zip(&self.types);
        parts.map(|(part, ty)| scalar(Ok(part), ty)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let rows = states.first().map_or(0, |array| array.len());
        for row in 0..rows {
            self.state.merge(row_of(states, row)?).map_err(external)?;
        }
        Ok(())
    }
}

/// An aggregate of which all rows are kept until the end.
#[derive(Debug)]
struct Kept {
    state: State<Arc<Aggregate>>,
    /// How many arguments there are before the keys of the order.
    args: usize,
    types: Vec<DataType>,
    gives: DataType,
    rows: Vec<Vec<ArrayRef>>,
}

impl Accumulator for Kept {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if values.first().is_some_and(|array| !array.is_empty()) {
            self.rows.push(values.to_vec());
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut state = self.state.clone();
        for arrays in &self.rows {
            for row in 0..arrays[0].len() {
                let mut args = row_of(arrays, row)?;
                let keys = args.split_off(self.args);
                state.add(args, keys).map_err(external)?;
            }
        }
        scalar(state.result(), &self.gives)
    }

    fn size(&self) -> usize {
        let bytes = |array: &ArrayRef| {
            let data = array.to_data();
            data.get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
        };
        size_of_val(self) + self.rows.iter().flatten().map(bytes).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut lists = Vec::with_capacity(self.types.len());
        for (at, ty) in self.types.iter().enumerate() {
            let parts: Vec<&dyn Array> = self.rows.iter().map(|arrays| arrays[at].as_ref()).collect();
            let values = match parts.is_empty() {
                true => arrow::array::new_empty_array(ty),
                false => concat(&parts)?,
            };
            let offsets = OffsetBuffer::from_lengths([values.len()]);
            let list = ListArray::try_new(item(ty), offsets, values, None)?;
            lists.push(ScalarValue::List(Arc::new(list)));
        }
        Ok(lists)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let rows = states.first().map_or(0, |array| array.len());
        for row in 0..rows {
            let lists = states.iter().map(|list| list.as_list::<i32>().value(row)).collect::<Vec<_>>();
            self.update_batch(&lists)?;
        }
        Ok(())
    }
}
