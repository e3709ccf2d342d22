//! Window functions.

use std::sync::Arc;

use albireo_base::Value;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{Expr, ExprKind};
use albireo_semantics::query::tree::{
    Aggregate, AggregateKind, FrameBound, FrameUnit, OrderBy, Select, WindowCall, WindowFrame as Bound,
    WindowFunction,
};
use arrow::datatypes::DataType;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::functions_window::cume_dist::cume_dist_udwf;
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::functions_window::nth_value::{first_value_udwf, last_value_udwf};
use datafusion::functions_window::rank::{dense_rank_udwf, percent_rank_udwf, rank_udwf};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{WindowFunction as Planner, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr as Planned, LogicalPlanBuilder, SortExpr, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition, lit,
};

use super::group::{aggregate_function, is_vectorised};
use super::select::Stage;
use super::{Lowering, Typed, typed_column, unsupported, windowed};
use crate::errors::{external, internal};
use crate::values::arrow_of;

impl Lowering<'_> {
    /// Computes the window functions of a SELECT.
    pub(super) fn windows(&self, stage: &mut Stage, select: &Select) -> Result<()> {
        if select.windows.is_empty() {
            stage.level.relations.push(Vec::new());
            return Ok(());
        }
        let inputs = select.windows.iter().flat_map(|call| {
            let order = call.order.iter().filter_map(|key| match &key.by {
                OrderBy::Expr(expr) => Some(expr),
                OrderBy::Output(_) => None,
            });
            let offsets = [&call.frame.start, &call.frame.end].into_iter().filter_map(windowed::offset);
            call.args.iter().chain(&call.filter).chain(&call.partition).chain(order).chain(offsets)
        });
        self.attach_queries(stage, inputs)?;
        let mut exprs = Vec::new();
        let mut results = Vec::with_capacity(select.windows.len());
        for call in &select.windows {
            results.push(self.window(stage, call, &mut exprs)?);
        }
        // One step for each order.
        let mut groups: Vec<(Order, Vec<Planned>)> = Vec::new();
        for Call { order, function, column } in exprs {
            let expr = function.alias(column.name);
            match groups.iter_mut().find(|(known, _)| *known == order) {
                Some((_, group)) => group.push(expr),
                None => groups.push((order, vec![expr])),
            }
        }
        for (_, group) in groups {
            stage.plan = LogicalPlanBuilder::from(stage.plan.clone()).window(group)?.build()?;
        }
        let plan = stage.plan.clone();
        let typed = |column: &Column| typed_column(&plan, column);
        let mut columns = Vec::with_capacity(results.len());
        for (call, result) in select.windows.iter().zip(results) {
            columns.push(match result.as_slice() {
                [one] => self.settled(typed(one)?, &call.ty)?,
                [sum, count] => self.quotient(typed(sum)?, typed(count)?, &aggregate_of(call))?,
                _ => return Err(external(internal("a window function has a result"))),
            });
        }
        stage.level.relations.push(columns);
        Ok(())
    }

    /// Plans one call; the columns of its result, or of its sum and count.
    fn window(&self, stage: &Stage, call: &WindowCall, exprs: &mut Vec<Call>) -> Result<Vec<Column>> {
        let level = &stage.level;
        let args: Vec<Typed> = call.args.iter().map(|arg| self.typed(level, arg)).collect::<Result<_>>()?;
        let frame = frame(call, &args);
        if let (Some(_), WindowFunction::Aggregate(AggregateKind::Avg), true) =
            (&frame, call.function, super::group::is_exact(&aggregate_of(call)))
        {
            let mut columns = Vec::with_capacity(2);
            for kind in [AggregateKind::Sum, AggregateKind::Count] {
                let part = WindowCall { function: WindowFunction::Aggregate(kind), ..call.clone() };
                columns.extend(self.window(stage, &part, exprs)?);
            }
            return Ok(columns);
        }
        let mut partition_by: Vec<Planned> = stage.keys.iter().cloned().map(Planned::Column).collect();
        for expr in &call.partition {
            partition_by.push(self.key_of(level, expr)?);
        }
        let filter = call.filter.as_ref().map(|condition| self.expr(level, condition)).transpose()?;
        let mut args: Vec<Planned> = args.into_iter().map(|(value, _)| value).collect();
        let (fun, frame, filter) = match frame {
            Some(frame) => {
                if args.is_empty() && call.function == WindowFunction::Aggregate(AggregateKind::Count) {
                    args.push(lit(1_i64));
                }
                (window_function(call.function)?, frame, filter.map(Box::new))
            }
            None => {
                for key in &call.order {
                    if let OrderBy::Expr(expr) = &key.by {
                        args.push(self.expr(level, expr)?);
                    }
                }
                let offsets = [&call.frame.start, &call.frame.end].into_iter().filter_map(windowed::offset);
                args.extend(self.exprs(level, offsets)?);
                args.extend(filter);
                let Some(gives) = arrow_of(&call.ty) else { return Err(unsupported("a window of nothing")) };
                let function = Arc::new(windowed::function(call, gives));
                (WindowFunctionDefinition::WindowUDF(function), whole_partition(), None)
            }
        };
        let order_by = self.order_of(level, &call.order)?;
        let params = WindowFunctionParams {
            args,
            partition_by,
            order_by,
            window_frame: frame,
            filter,
            null_treatment: None,
            distinct: false,
        };
        let order = (params.partition_by.clone(), params.order_by.clone());
        let function = Planned::WindowFunction(Box::new(Planner { fun, params }));
        // DataFusion takes what two calls have in common for an expression of its own, and that is none.
        let same = exprs.iter().find(|call| call.function == function).map(|call| call.column.clone());
        let column = match same {
            Some(column) => column,
            None => {
                let column = self.column("window");
                exprs.push(Call { order, function, column: column.clone() });
                column
            }
        };
        Ok(vec![column])
    }
}

/// The function of a call, DataFusion's or ours.
fn window_function(function: WindowFunction) -> Result<WindowFunctionDefinition> {
    Ok(WindowFunctionDefinition::WindowUDF(match function {
        WindowFunction::RowNumber => row_number_udwf(),
        WindowFunction::Rank => rank_udwf(),
        WindowFunction::DenseRank => dense_rank_udwf(),
        WindowFunction::PercentRank => percent_rank_udwf(),
        WindowFunction::CumeDist => cume_dist_udwf(),
        WindowFunction::Lag => lag_udwf(),
        WindowFunction::Lead => lead_udwf(),
        WindowFunction::FirstValue => first_value_udwf(),
        WindowFunction::LastValue => last_value_udwf(),
        WindowFunction::Ntile | WindowFunction::NthValue => {
            return Err(unsupported("this window function"));
        }
        WindowFunction::Aggregate(kind) => {
            return aggregate_function(kind).map(WindowFunctionDefinition::AggregateUDF);
        }
    }))
}

/// The frame of a call whose function DataFusion computes over it as the interpreter does; none if it does not.
fn frame(call: &WindowCall, args: &[Typed]) -> Option<WindowFrame> {
    use WindowFunction as W;
    let Bound { unit, start, end } = &call.frame;
    let (units, counts) = match unit {
        FrameUnit::Rows => (WindowFrameUnits::Rows, true),
        // Its bounds are whole groups of peers here; DataFusion knows RANGE for orders by some types only.
        FrameUnit::Range => (WindowFrameUnits::Groups, false),
        FrameUnit::Groups => (WindowFrameUnits::Groups, true),
    };
    let bound = |bound: &FrameBound| {
        let offset = |expr: &Expr| match &expr.kind {
            ExprKind::Constant(Datum::Value(Value::BigInt(n))) if counts => {
                u64::try_from(*n).ok().map(|n| ScalarValue::UInt64(Some(n)))
            }
            _ => None,
        };
        Some(match bound {
            FrameBound::First => WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
            FrameBound::Before(expr) => WindowFrameBound::Preceding(offset(expr)?),
            FrameBound::Current => WindowFrameBound::CurrentRow,
            FrameBound::After(expr) => WindowFrameBound::Following(offset(expr)?),
            FrameBound::Last => WindowFrameBound::Following(ScalarValue::UInt64(None)),
        })
    };
    let mut frame = WindowFrame::new_bounds(units, bound(start)?, bound(end)?);
    if call.order.is_empty() && *unit == FrameUnit::Range {
        // Without an order all rows are peers.
        frame = whole_partition();
    }
    if matches!(call.function, W::RowNumber | W::Rank | W::DenseRank | W::PercentRank | W::CumeDist) {
        // They look at no frame; this one is cheap.
        let first = WindowFrameBound::Preceding(ScalarValue::UInt64(None));
        frame = WindowFrame::new_bounds(WindowFrameUnits::Rows, first, WindowFrameBound::CurrentRow);
    }
    let known = |arg: &Expr| matches!(&arg.kind, ExprKind::Constant(datum) if !datum.is_null());
    let fits = match call.function {
        W::RowNumber | W::Rank | W::DenseRank | W::PercentRank | W::CumeDist => true,
        W::FirstValue | W::LastValue => true,
        W::Lag | W::Lead => call.args.iter().skip(1).all(known),
        W::Ntile | W::NthValue => false,
        W::Aggregate(kind) => {
            // What can be taken away again when rows leave the frame.
            let exact = !matches!(args.first(), Some((_, DataType::Float32 | DataType::Float64)));
            let leaves = matches!(kind, AggregateKind::Count | AggregateKind::Sum | AggregateKind::Avg);
            let grows = *start == FrameBound::First;
            is_vectorised(&aggregate_of(call), args) && (grows || exact && leaves)
        }
    };
    fits.then_some(frame)
}

/// The frame of all rows, whatever their order.
fn whole_partition() -> WindowFrame {
    let unbounded = ScalarValue::UInt64(None);
    let (start, end) = (unbounded.clone(), unbounded);
    let (start, end) = (WindowFrameBound::Preceding(start), WindowFrameBound::Following(end));
    WindowFrame::new_bounds(WindowFrameUnits::Rows, start, end)
}

/// What decides the order of a window's rows.
type Order = (Vec<Planned>, Vec<SortExpr>);

/// A planned call.
struct Call {
    order: Order,
    function: Planned,
    /// What its result is called.
    column: Column,
}

/// The aggregate of a call.
fn aggregate_of(call: &WindowCall) -> Aggregate {
    let kind = match call.function {
        WindowFunction::Aggregate(kind) => kind,
        _ => AggregateKind::Avg,
    };
    Aggregate {
        kind,
        args: call.args.clone(),
        distinct: false,
        filter: None,
        order: Vec::new(),
        ty: call.ty.clone(),
    }
}
