//! Window functions.

use albireo_base::Value;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{Expr, ExprKind};
use albireo_semantics::query::tree::{
    Aggregate, AggregateKind, FrameBound, FrameUnit, OrderBy, Select, WindowCall, WindowFrame as Bound,
    WindowFunction,
};
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::logical_expr::expr::{WindowFunction as Planner, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr as Planned, LogicalPlanBuilder, SortExpr, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition, lit,
};

use super::keys::has_key;
use super::select::Stage;
use super::{Level, Lowering, typed_column, unsupported};
use crate::errors::{external, internal};

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
            call.args.iter().chain(&call.filter).chain(&call.partition).chain(order)
        });
        self.attach_queries(stage, inputs)?;
        let mut exprs = Vec::new();
        let mut results = Vec::with_capacity(select.windows.len());
        for call in &select.windows {
            results.push(self.window(stage, call, &mut exprs)?);
        }
        // One step for each order.
        let mut groups: Vec<(Order, Vec<Planned>)> = Vec::new();
        for (order, expr) in exprs {
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
                [sum, count] => {
                    let average = average_of(call);
                    self.quotient(typed(sum)?, typed(count)?, &average)?
                }
                _ => return Err(external(internal("a window function has a result"))),
            });
        }
        stage.level.relations.push(columns);
        Ok(())
    }

    /// Plans one call; the columns of its result, or of its sum and count.
    fn window(
        &self,
        stage: &Stage,
        call: &WindowCall,
        exprs: &mut Vec<(Order, Planned)>,
    ) -> Result<Vec<Column>> {
        if call.function == WindowFunction::Aggregate(AggregateKind::Avg)
            && super::group::is_exact(&average_of(call))
        {
            let mut columns = Vec::with_capacity(2);
            for kind in [AggregateKind::Sum, AggregateKind::Count] {
                let part = WindowCall { function: WindowFunction::Aggregate(kind), ..call.clone() };
                columns.extend(self.window(stage, &part, exprs)?);
            }
            return Ok(columns);
        }
        let level = &stage.level;
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            let (value, ty) = self.typed(level, arg)?;
            if ty == super::OPEN {
                return Err(unsupported("a window function over numbers of several scales"));
            }
            args.push(value);
        }
        if args.is_empty() && call.function == WindowFunction::Aggregate(AggregateKind::Count) {
            args.push(lit(1_i64));
        }
        let mut partition_by: Vec<Planned> = stage.keys.iter().cloned().map(Planned::Column).collect();
        for expr in &call.partition {
            partition_by.push(self.key_of(level, expr)?);
        }
        let params = WindowFunctionParams {
            args,
            partition_by,
            order_by: self.order_of(level, &call.order)?,
            window_frame: self.frame(level, call)?,
            filter: match &call.filter {
                Some(condition) => Some(Box::new(self.expr(level, condition)?)),
                None => None,
            },
            null_treatment: None,
            distinct: false,
        };
        let fun = self.window_function(call.function)?;
        let order = (params.partition_by.clone(), params.order_by.clone());
        let column = self.column("window");
        let function = Planned::WindowFunction(Box::new(Planner { fun, params }));
        exprs.push((order, function.alias(&column.name)));
        Ok(vec![column])
    }

    fn window_function(&self, function: WindowFunction) -> Result<WindowFunctionDefinition> {
        let name = match function {
            WindowFunction::RowNumber => "row_number",
            WindowFunction::Rank => "rank",
            WindowFunction::DenseRank => "dense_rank",
            WindowFunction::PercentRank => "percent_rank",
            WindowFunction::CumeDist => "cume_dist",
            WindowFunction::Ntile => "ntile",
            WindowFunction::Lag => "lag",
            WindowFunction::Lead => "lead",
            WindowFunction::FirstValue => "first_value",
            WindowFunction::LastValue => "last_value",
            WindowFunction::NthValue => "nth_value",
            WindowFunction::Aggregate(kind) => {
                return self.aggregate_function(kind).map(WindowFunctionDefinition::AggregateUDF);
            }
        };
        let found = self.shared.state().window_functions().get(name).cloned();
        found
            .map(WindowFunctionDefinition::WindowUDF)
            .ok_or_else(|| unsupported(format!("the window function {name}")))
    }

    fn frame(&self, level: &Level, call: &WindowCall) -> Result<WindowFrame> {
        let Bound { unit, start, end } = &call.frame;
        let units = match unit {
            FrameUnit::Rows => WindowFrameUnits::Rows,
            FrameUnit::Range => WindowFrameUnits::Range,
            FrameUnit::Groups => WindowFrameUnits::Groups,
        };
        let by = call.order.first().and_then(|key| match &key.by {
            OrderBy::Expr(expr) => Some(&expr.ty),
            OrderBy::Output(_) => None,
        });
        let offsets = [start, end]
            .into_iter()
            .any(|bound| matches!(bound, FrameBound::Before(_) | FrameBound::After(_)));
        if *unit == FrameUnit::Range && offsets && by.is_some_and(has_key) {
            return Err(unsupported("a frame of distances of this type"));
        }
        let start = self.bound(level, start, *unit, true)?;
        let end = self.bound(level, end, *unit, false)?;
        Ok(WindowFrame::new_bounds(units, start, end))
    }

    fn bound(
        &self,
        level: &Level,
        bound: &FrameBound,
        unit: FrameUnit,
        start: bool,
    ) -> Result<WindowFrameBound> {
        let offset = |expr: &Expr| self.offset(level, expr, unit, start);
        Ok(match bound {
            FrameBound::First => WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
            FrameBound::Before(expr) => WindowFrameBound::Preceding(offset(expr)?),
            FrameBound::Current => WindowFrameBound::CurrentRow,
            FrameBound::After(expr) => WindowFrameBound::Following(offset(expr)?),
            FrameBound::Last => WindowFrameBound::Following(ScalarValue::UInt64(None)),
        })
    }

    /// How far a bound is.
    fn offset(&self, level: &Level, expr: &Expr, unit: FrameUnit, start: bool) -> Result<ScalarValue> {
        let ExprKind::Constant(Datum::Value(value)) = &expr.kind else {
            return Err(unsupported("a frame whose bounds are computed"));
        };
        let invalid = |what: &str| {
            let side = if start { "starting" } else { "ending" };
            let message = format!("frame {side} offset must not be {what}");
            let state = if what == "null" { *b"22004" } else { *b"22013" };
            external(albireo_base::SqlError::new(albireo_base::SqlState(state), message))
        };
        if value.is_null() {
            return Err(invalid("null"));
        }
        if unit != FrameUnit::Range {
            return match value {
                Value::BigInt(n) => match u64::try_from(*n) {
                    Ok(n) => Ok(ScalarValue::UInt64(Some(n))),
                    Err(_) => Err(invalid("negative")),
                },
                _ => Err(external(internal("the offset of a frame is a BIGINT"))),
            };
        }
        match self.expr(level, expr)? {
            Planned::Literal(value, _) => Ok(value),
            _ => Err(unsupported("a frame whose bounds are computed")),
        }
    }
}

/// What decides the order of a window's rows.
type Order = (Vec<Planned>, Vec<SortExpr>);

/// A call of `avg` as an aggregate.
fn average_of(call: &WindowCall) -> Aggregate {
    Aggregate {
        kind: AggregateKind::Avg,
        args: call.args.clone(),
        distinct: false,
        filter: None,
        order: Vec::new(),
        ty: call.ty.clone(),
    }
}
