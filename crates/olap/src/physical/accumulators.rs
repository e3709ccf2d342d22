//! The functions of an aggregation and their accumulators, for operators of ours that find the groups.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use datafusion::common::Result;
use datafusion::common::cast::as_boolean_array;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::aggregates::AggregateExec;

use crate::errors::{external, internal};

/// A function and the rows that it is of.
#[derive(Clone, Debug)]
pub(super) struct Function {
    function: Arc<AggregateFunctionExpr>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    /// Columns that its partial state has.
    state_columns: usize,
}

impl Function {
    /// Those of an aggregation.
    pub(super) fn of(aggregate: &AggregateExec) -> Result<Vec<Self>> {
        let functions = aggregate.aggr_expr().iter().zip(aggregate.filter_expr());
        let function = |(function, filter): (&Arc<AggregateFunctionExpr>, &Option<_>)| {
            let state_columns = function.state_fields()?.len();
            Ok(Self { function: Arc::clone(function), filter: filter.clone(), state_columns })
        };
        functions.map(function).collect()
    }

    /// Whether accumulators by group compute all functions of an aggregation, whatever the order of rows.
    pub(super) fn are_plain(aggregate: &AggregateExec) -> bool {
        aggregate.aggr_expr().iter().all(|function| {
            function.order_bys().is_empty()
                && !function.is_distinct()
                && function.groups_accumulator_supported()
        })
    }

    /// Its name in the plan.
    pub(super) fn name(&self) -> &str {
        self.function.name()
    }
}

/// An accumulator for each function.
pub(super) struct Accumulators(Vec<Box<dyn GroupsAccumulator>>);

impl Accumulators {
    pub(super) fn new(functions: &[Function]) -> Result<Self> {
        let accumulators = functions.iter().map(|function| function.function.create_groups_accumulator());
        Ok(Self(accumulators.collect::<Result<_>>()?))
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds rows, each to its group, of which there are so many.
    pub(super) fn update(
        &mut self,
        functions: &[Function],
        batch: &RecordBatch,
        group_of_row: &[usize],
        groups: usize,
    ) -> Result<()> {
        let value = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(batch)?.into_array(batch.num_rows());
        for (accumulator, Function { function, filter, .. }) in self.0.iter_mut().zip(functions) {
            let values: Vec<ArrayRef> = function.expressions().iter().map(value).collect::<Result<_>>()?;
            let filter: Option<ArrayRef> = filter.as_ref().map(value).transpose()?;
            let filter: Option<&BooleanArray> = filter.as_ref().map(|f| as_boolean_array(f)).transpose()?;
            accumulator.update_batch(&values, group_of_row, filter, groups)?;
        }
        Ok(())
    }

    /// Adds a state of each function, one column of it, for each of some groups.
    pub(super) fn merge(
        &mut self,
        states: impl IntoIterator<Item = ArrayRef>,
        groups: &[usize],
        count: usize,
    ) -> Result<()> {
        let mut all = self.0.iter_mut().zip(states);
        all.try_for_each(|(accumulator, state)| accumulator.merge_batch(&[state], groups, count))
    }

    /// Adds states as [`Accumulators::states`] gives them, each row's to its group, of which there are so many.
    pub(super) fn merge_states(
        &mut self,
        functions: &[Function],
        mut states: &[ArrayRef],
        group_of_row: &[usize],
        groups: usize,
    ) -> Result<()> {
        for (accumulator, Function { state_columns, .. }) in self.0.iter_mut().zip(functions) {
            let Some((state, rest)) = states.split_at_checked(*state_columns) else {
                return Err(external(internal("a state of an aggregate is missing")));
            };
            accumulator.merge_batch(state, group_of_row, groups)?;
            states = rest;
        }
        Ok(())
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|accumulator| accumulator.size()).sum()
    }

    /// The state of each function, by group; nothing is left.
    pub(super) fn states(&mut self) -> Result<Vec<ArrayRef>> {
        let states = self.0.iter_mut().map(|accumulator| accumulator.state(EmitTo::All));
        Ok(states.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// The result of each function, by group; nothing is left.
    pub(super) fn results(&mut self) -> Result<Vec<ArrayRef>> {
        self.0.iter_mut().map(|accumulator| accumulator.evaluate(EmitTo::All)).collect()
    }
}
