//! Aggregations over a scan that it can do by itself where chunks are encoded.
//!
//! Responsible for: which these are, and the states of their accumulators after what a chunk comes to. Not responsible
//! for: adding up ([`crate::scan::sums`]), nor for the rows of other chunks, which the aggregation is given ([`super::dense`]).

use std::any::Any;
use std::sync::Arc;

use albireo_encoding::Sum;
use albireo_semantics::query::tree::AggregateKind;
use arrow::array::{ArrayRef, Decimal128Array, Int64Array};
use arrow::datatypes::{DataType, Schema};
use datafusion::common::Result;
use datafusion::functions_aggregate::count::Count;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::AggregateUDF;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::CooperativeExec;

use crate::functions::{row_by_row, sums};
use crate::pack::Pack;
use crate::scan::exec::ScanExec;
use crate::scan::extremes::{End, Extreme};
use crate::scan::sums::{ChunkSums, Wanted};
use crate::scan::zones::has_zones;

/// What the scan is to do, and how what it finds answers each function.
#[derive(Clone, Debug)]
pub(super) struct InScan {
    pub(super) wanted: Wanted,
    answers: Vec<Answer>,
}

/// What a function is. Sums are those of the n-th column of [`Wanted::sums`].
#[derive(Clone, Debug)]
enum Answer {
    Rows,
    Count(usize),
    /// The state is of this type.
    Sum(usize, DataType),
    /// The n-th of [`Wanted::extremes`].
    Extreme(usize),
}

/// The scan that is a plan, apart from its yielding now and then.
pub(super) fn scan_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&ScanExec> {
    let plan = plan.downcast_ref::<CooperativeExec>().map_or(plan, |yielding| yielding.input());
    plan.downcast_ref::<ScanExec>()
}

/// What the scan below an aggregation can do of it: it groups by columns, and all functions are counts and exact sums of
/// columns without a filter, or, without groups, their least and greatest values. `None`: nothing.
pub(super) fn of(aggregate: &AggregateExec) -> Option<InScan> {
    let scan = scan_of(aggregate.input()).filter(|scan| scan.fetch().is_none())?;
    let schema = scan.schema();
    let group = |(expr, _): &(Arc<dyn PhysicalExpr>, String)| {
        column(expr).filter(|index| Pack::takes(schema.field(*index).data_type()))
    };
    let groups: Vec<usize> = aggregate.group_expr().expr().iter().map(group).collect::<Option<_>>()?;
    let mut wanted = Wanted { groups, sums: Vec::new(), extremes: Vec::new() };
    let functions = aggregate.aggr_expr().iter().zip(aggregate.filter_expr());
    let unfiltered = |(function, filter): (&Arc<AggregateFunctionExpr>, &Option<Arc<dyn PhysicalExpr>>)| {
        if filter.is_some() { None } else { answer(function, &schema, &mut wanted) }
    };
    let answers = functions.map(unfiltered).collect::<Option<_>>()?;
    // This looks at each chunk, so it comes last.
    scan.is_encoded().then_some(InScan { wanted, answers })
}

/// How a function is answered; what of the scan is wanted for it is added.
fn answer(function: &AggregateFunctionExpr, schema: &Schema, wanted: &mut Wanted) -> Option<Answer> {
    if function.is_distinct() || !function.order_bys().is_empty() {
        return None;
    }
    let [argument] = &function.expressions()[..] else { return None };
    let counts = (function.fun().inner().as_ref() as &dyn Any).is::<Count>();
    if let Some(literal) = argument.downcast_ref::<Literal>() {
        return (counts && !literal.value().is_null()).then_some(Answer::Rows);
    }
    let index = column(argument)?;
    let field = schema.field(index);
    if counts && !field.is_nullable() {
        return Some(Answer::Rows);
    }
    let state = || Some(function.state_fields().ok()?.first()?.data_type().clone());
    if let Some(end) = end_of(function.fun(), field.data_type()) {
        let extreme = Extreme::new(end, field.data_type())?;
        let fits = wanted.groups.is_empty() && state()? == *field.data_type();
        return fits.then(|| Answer::Extreme(place(&mut wanted.extremes, (index, extreme))));
    }
    if !has_zones(field.data_type()) || !(counts || sums::is_sum(function.fun())) {
        return None;
    }
    let at = place(&mut wanted.sums, index);
    if counts { Some(Answer::Count(at)) } else { Some(Answer::Sum(at, state()?)) }
}

/// Which end of the values of a column of a type a function gives, in SQL's order. DataFusion's own functions have another
/// order of floats, so those are taken row by row.
fn end_of(function: &AggregateUDF, ty: &DataType) -> Option<End> {
    let inner: &dyn Any = function.inner().as_ref();
    match (ty, row_by_row::kind_of(function)) {
        (DataType::Float32 | DataType::Float64, Some(AggregateKind::Min)) => Some(End::Least),
        (DataType::Float32 | DataType::Float64, Some(AggregateKind::Max)) => Some(End::Greatest),
        (DataType::Float32 | DataType::Float64, _) => None,
        _ if inner.is::<Min>() => Some(End::Least),
        _ if inner.is::<Max>() => Some(End::Greatest),
        _ => None,
    }
}

/// The place of an item in a list, at whose end it comes if it is not there.
fn place<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    let known = list.iter().position(|known| *known == item);
    known.unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

fn column(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

impl InScan {
    /// The partial state of each function, by group.
    pub(super) fn states(&self, chunk: &ChunkSums) -> Result<Vec<ArrayRef>> {
        let counts = |counts: &mut dyn Iterator<Item = u32>| -> ArrayRef {
            Arc::new(counts.map(i64::from).collect::<Int64Array>())
        };
        let state = |answer: &Answer| -> Result<ArrayRef> {
            Ok(match answer {
                Answer::Rows => counts(&mut chunk.rows.iter().copied()),
                Answer::Count(at) => counts(&mut chunk.sums[*at].iter().map(|sum| sum.count)),
                Answer::Sum(at, ty) => {
                    let value = |sum: &Sum| (sum.count > 0).then_some(sum.sum);
                    let sums: Decimal128Array = chunk.sums[*at].iter().map(value).collect();
                    Arc::new(sums.with_data_type(ty.clone()))
                }
                Answer::Extreme(at) => chunk.extremes[*at].to_array()?,
            })
        };
        self.answers.iter().map(state).collect()
    }
}
