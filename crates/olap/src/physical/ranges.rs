//! Between which values the columns of a physical plan lie.

use std::sync::Arc;

use datafusion::common::{JoinSide, JoinType};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;

use super::dense::DenseAggregate;
use crate::functions::arithmetic::{self, Operation};
use crate::scan::exec::ScanExec;
use crate::scan::predicate::raw_constant;

/// Operators that hand on their input's rows and columns as they are.
const HANDING_ON: [&str; 8] = [
    "CoalescePartitionsExec",
    "CooperativeExec",
    "GlobalLimitExec",
    "LocalLimitExec",
    "OutputRequirementExec",
    "RepartitionExec",
    "SortExec",
    "SortPreservingMergeExec",
];

/// The least and greatest value that an expression over a plan's rows can have, nulls apart: exact
/// bounds of the column of the table it comes from. `None`: not known, or there are no values.
pub(super) fn of(expr: &Arc<dyn PhysicalExpr>, plan: &Arc<dyn ExecutionPlan>) -> Option<(i64, i64)> {
    if let Some(known) = expr.downcast_ref::<Column>() {
        return column(plan, known.index());
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return raw_constant(literal.value()).map(|value| (value, value));
    }
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let [left, right] = call.args() else { return None };
    let operator =
        |operation| arithmetic::is_arithmetic(call.fun()) && *call.fun() == *arithmetic::function(operation);
    if operator(Operation::Multiply) {
        product(of(left, plan)?, of(right, plan)?)
    } else if operator(Operation::Remainder) {
        remainder(of(left, plan), of(right, plan)?)
    } else {
        None
    }
}

fn product((a, b): (i64, i64), (c, d): (i64, i64)) -> Option<(i64, i64)> {
    let corners = [a.checked_mul(c)?, a.checked_mul(d)?, b.checked_mul(c)?, b.checked_mul(d)?];
    Some((corners.into_iter().min()?, corners.into_iter().max()?))
}

/// The remainder has the sign of the dividend and is nearer to 0 than the divisor.
fn remainder(dividend: Option<(i64, i64)>, (low, high): (i64, i64)) -> Option<(i64, i64)> {
    let most = low.unsigned_abs().max(high.unsigned_abs()).checked_sub(1)?;
    let most = i64::try_from(most).ok()?;
    let (low, high) = dividend.unwrap_or((-1, 1));
    Some((if low < 0 { -most } else { 0 }, if high > 0 { most } else { 0 }))
}

fn column(plan: &Arc<dyn ExecutionPlan>, index: usize) -> Option<(i64, i64)> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return scan.column_range(index);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return of(&projection.expr().get(index)?.expr, projection.input());
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let index = filter.projection().as_ref().map_or(Some(index), |p| p.get(index).copied())?;
        return column(filter.input(), index);
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let index = join.projection.as_ref().map_or(Some(index), |p| p.get(index).copied())?;
        return match side(join, index)? {
            (JoinSide::Left, index) => column(join.left(), index),
            (JoinSide::Right, index) => column(join.right(), index),
            (JoinSide::None, _) => None,
        };
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr();
        if !groups.is_single() {
            return None;
        }
        return of(&groups.expr().get(index)?.0, aggregate.input());
    }
    if let Some(aggregate) = plan.downcast_ref::<DenseAggregate>() {
        return aggregate.range(index);
    }
    match plan.children().as_slice() {
        [input] if HANDING_ON.contains(&plan.name()) => column(input, index),
        _ => None,
    }
}

/// The side a join's column comes from, and its place there.
fn side(join: &HashJoinExec, index: usize) -> Option<(JoinSide, usize)> {
    let left = join.left().schema().fields().len();
    let right = join.right().schema().fields().len();
    Some(match join.join_type() {
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark if index < left => {
            (JoinSide::Left, index)
        }
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark if index < right => {
            (JoinSide::Right, index)
        }
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full if index < left => {
            (JoinSide::Left, index)
        }
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            (JoinSide::Right, index - left)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainder_lies_between_the_divisor_and_zero_on_the_dividends_side() {
        assert_eq!(remainder(Some((0, 500_000)), (10_000, 10_000)), Some((0, 9_999)));
        assert_eq!(remainder(Some((-5, 7)), (-3, 4)), Some((-3, 3)));
        assert_eq!(remainder(Some((-5, -1)), (7, 7)), Some((-6, 0)));
        assert_eq!(remainder(None, (10, 10)), Some((-9, 9)));
        assert_eq!(remainder(None, (0, 0)), None);
    }

    #[test]
    fn product_takes_the_outermost_corners() {
        assert_eq!(product((-2, 3), (-5, 4)), Some((-15, 12)));
        assert_eq!(product((0, i64::MAX), (0, 2)), None);
    }
}
