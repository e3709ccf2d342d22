//! The functions of an aggregation and their accumulators, for operators of ours that find the groups.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::compute;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
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
pub(super) enum Accumulators {
    /// Of all rows, which are one group.
    Whole(Vec<Box<dyn Accumulator>>),
    /// Of each group.
    Grouped(Vec<Box<dyn GroupsAccumulator>>),
}

impl Accumulators {
    /// For rows in groups.
    pub(super) fn new(functions: &[Function]) -> Result<Self> {
        let accumulators = functions.iter().map(|function| function.function.create_groups_accumulator());
        Ok(Self::Grouped(accumulators.collect::<Result<_>>()?))
    }

    /// For all rows as one group.
    pub(super) fn whole(functions: &[Function]) -> Result<Self> {
        let accumulators = functions.iter().map(|function| function.function.create_accumulator());
        Ok(Self::Whole(accumulators.collect::<Result<_>>()?))
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Whole(all) => all.is_empty(),
            Self::Grouped(all) => all.is_empty(),
        }
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
        for (at, Function { function, filter, .. }) in functions.iter().enumerate() {
            let values: Vec<ArrayRef> = function.expressions().iter().map(value).collect::<Result<_>>()?;
            let filter: Option<ArrayRef> = filter.as_ref().map(value).transpose()?;
            let filter: Option<&BooleanArray> = filter.as_ref().map(|f| as_boolean_array(f)).transpose()?;
            match self {
                Self::Whole(all) => all[at].update_batch(&passed(values, filter)?)?,
                Self::Grouped(all) => all[at].update_batch(&values, group_of_row, filter, groups)?,
            }
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
        for (at, state) in states.into_iter().enumerate() {
            match self {
                Self::Whole(all) => all[at].merge_batch(&[state])?,
                Self::Grouped(all) => all[at].merge_batch(&[state], groups, count)?,
            }
        }
        Ok(())
    }

    /// Adds states as [`Accumulators::states`] gives them, each row's to its group, of which there are so many.
    pub(super) fn merge_states(
        &mut self,
        functions: &[Function],
        mut states: &[ArrayRef],
        group_of_row: &[usize],
        groups: usize,
    ) -> Result<()> {
        for (at, Function { state_columns, .. }) in functions.iter().enumerate() {
            let Some((state, rest)) = states.split_at_checked(*state_columns) else {
                return Err(external(internal("a state of an aggregate is missing")));
            };
            match self {
                Self::Whole(all) => all[at].merge_batch(state)?,
                Self::Grouped(all) => all[at].merge_batch(state, group_of_row, groups)?,
            }
            states = rest;
        }
        Ok(())
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Whole(all) => all.iter().map(|accumulator| accumulator.size()).sum(),
            Self::Grouped(all) => all.iter().map(|accumulator| accumulator.size()).sum(),
        }
    }

    /// The state of each function, by group; nothing is left.
    pub(super) fn states(&mut self) -> Result<Vec<ArrayRef>> {
        let states: Vec<Vec<ArrayRef>> = match self {
            Self::Whole(all) => all.iter_mut().map(|one| arrays(one.state()?)).collect::<Result<_>>()?,
            Self::Grouped(all) => all.iter_mut().map(|one| one.state(EmitTo::All)).collect::<Result<_>>()?,
        };
        Ok(states.into_iter().flatten().collect())
    }

    /// The result of each function, by group; nothing is left, unless all rows are one group.
    pub(super) fn results(&mut self) -> Result<Vec<ArrayRef>> {
        match self {
            Self::Whole(_) => arrays(self.values()?),
            Self::Grouped(all) => all.iter_mut().map(|one| one.evaluate(EmitTo::All)).collect(),
        }
    }

    /// The result of each function for all rows so far, which are one group; none for rows in groups.
    pub(super) fn values(&mut self) -> Result<Vec<ScalarValue>> {
        match self {
            Self::Whole(all) => all.iter_mut().map(|one| one.evaluate()).collect(),
            Self::Grouped(_) => Ok(Vec::new()),
        }
    }
}

/// The values for which a filter is true.
fn passed(values: Vec<ArrayRef>, filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
    let Some(filter) = filter else { return Ok(values) };
    let passed = |values: &ArrayRef| -> Result<ArrayRef> { Ok(compute::filter(values, filter)?) };
    values.iter().map(passed).collect()
}

/// An array of each value.
fn arrays(values: Vec<ScalarValue>) -> Result<Vec<ArrayRef>> {
    values.iter().map(ScalarValue::to_array).collect()
}
