//! GROUP BY, aggregates and HAVING.
//!
//! Without keys all rows are one group, even if there are none: for each row of a query around, too.

use std::sync::Arc;

use albireo_semantics::expr::{Arithmetic, Binary, ColumnRef, Conversion, Expr, ExprKind};
use albireo_semantics::query::tree::{
    Aggregate, AggregateKind, Distinct, FrameBound, Grouping, OrderBy, OrderKey, Regression, Select,
};
use albireo_semantics::types::{Scalar, Type};
use arrow::datatypes::DataType;
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::functions_aggregate::bool_and_or::{bool_and_udaf, bool_or_udaf};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{
    AggregateUDF, Case, Cast, Expr as Planned, Join, JoinConstraint, LogicalPlan, LogicalPlanBuilder,
    SortExpr, lit, when,
};

use super::keys::{has_key, key};
use super::query::sorted;
use super::scaled::Scaled;
use super::select::{Stage, own_columns};
use super::{Domain, Level, Lowering, Typed, filter, typed_column, unsupported};
use crate::errors::{external, internal};
use crate::functions::{float, row_by_row, sums};
use crate::values::arrow_of;
use crate::values::numeric::OPEN;

/// The columns of groups while they are planned.
#[derive(Default)]
struct Parts {
    groups: Vec<Planned>,
    aggregates: Vec<Planned>,
    /// What each key is afterwards.
    keys: Vec<Column>,
    /// Columns of relations that a group determines, and what they are afterwards.
    kept: Vec<(ColumnRef, Column)>,
    /// Of several groupings: which one a row is of.
    set: Option<Column>,
}

impl Lowering<'_> {
    /// Groups rows.
    pub(super) fn group(
        &self,
        mut stage: Stage,
        select: &Select,
        grouping: &Grouping,
        order: &[OrderKey],
        domain: Option<&Domain>,
    ) -> Result<Stage> {
        self.attach_queries(&mut stage, inputs(grouping))?;
        let mut parts = Parts::default();
        parts.groups.extend(stage.keys.iter().cloned().map(Planned::Column));
        match &grouping.sets {
            None => self.keys(&stage, grouping, &mut parts)?,
            Some(sets) => self.sets_of_keys(&mut stage, grouping, sets, &mut parts)?,
        }
        if grouping.sets.is_none() {
            self.determined(&stage, select, grouping, order, &mut parts)?;
        }
        let results = self.aggregates(&stage.level, grouping, &mut parts)?;
        let Parts { groups, aggregates, keys, kept, set } = parts;
        let plan = match groups.is_empty() && aggregates.is_empty() {
            // HAVING without anything else: one row.
            true => LogicalPlanBuilder::from(stage.plan)
                .aggregate(
                    Vec::<Planned>::new(),
                    [count_udaf().call(vec![lit(1_i64)]).alias(self.name("rows"))],
                )?
                .build()?,
            false => LogicalPlanBuilder::from(stage.plan).aggregate(groups, aggregates)?.build()?,
        };
        stage.plan = plan;
        let empty = grouping.keys.is_empty() && grouping.sets.is_none();
        let results = match (domain, &grouping.sets, &set) {
            (_, Some(sets), Some(set)) if sets.iter().any(Vec::is_empty) => {
                self.also_empty_sets(&mut stage, domain, sets, set, results)?
            }
            (Some(domain), None, _) if empty => self.also_without_rows(&mut stage, domain, results)?,
            _ => results,
        };
        self.name_groups(&mut stage, select, grouping, keys, kept, results)?;
        if let Some(having) = &grouping.having {
            self.attach_queries(&mut stage, [having])?;
            let condition = self.expr(&stage.level, having)?;
            stage.plan = filter(stage.plan, Some(condition))?;
        }
        Ok(stage)
    }

    fn keys(&self, stage: &Stage, grouping: &Grouping, parts: &mut Parts) -> Result<()> {
        for expr in &grouping.keys {
            let (value, _) = self.typed(&stage.level, expr)?;
            self.group_by(value, &expr.ty, parts);
        }
        Ok(())
    }

    /// Groups by a value.
    fn group_by(&self, value: Planned, ty: &Type, parts: &mut Parts) {
        let column = self.column("key");
        if has_key(ty) {
            parts.groups.push(key(value.clone(), ty).alias(self.name("group")));
            parts.aggregates.push(first_value_udaf().call(vec![value]).alias(&column.name));
        } else {
            parts.groups.push(value.alias(&column.name));
        }
        parts.keys.push(column);
    }

    /// The keys of several groupings: each row once for each of them, with its number and without the keys that
    /// it does not have.
    fn sets_of_keys(
        &self,
        stage: &mut Stage,
        grouping: &Grouping,
        sets: &[Vec<usize>],
        parts: &mut Parts,
    ) -> Result<()> {
        let keys = self.exprs(&stage.level, &grouping.keys)?;
        let (numbers, set) = self.set_numbers(0..sets.len())?;
        stage.plan = LogicalPlanBuilder::from(stage.plan.clone()).cross_join(numbers)?.build()?;
        let number = Planned::Column(set.clone());
        for (at, (value, expr)) in keys.into_iter().zip(&grouping.keys).enumerate() {
            let ty = datafusion::logical_expr::ExprSchemable::get_type(&value, stage.plan.schema())?;
            let having = (0..sets.len()).filter(|set| sets[*set].contains(&at));
            let having: Vec<Planned> = having.map(|set| lit(set as i32)).collect();
            let value = match having.len() == sets.len() {
                true => value,
                false => {
                    let null = lit(datafusion::common::ScalarValue::try_new_null(&ty)?);
                    when(number.clone().in_list(having, false), value).otherwise(null)?
                }
            };
            self.group_by(value, &expr.ty, parts);
        }
        parts.groups.push(number);
        parts.set = Some(set);
        Ok(())
    }

    /// The numbers of groupings, a row each.
    fn set_numbers(&self, numbers: impl Iterator<Item = usize>) -> Result<(LogicalPlan, Column)> {
        let rows = numbers.map(|number| vec![lit(number as i32)]).collect();
        let plan = LogicalPlanBuilder::values(rows)?.build()?;
        let set = self.column("set");
        let columns = plan.schema().columns().into_iter();
        let exprs: Vec<Planned> = columns.map(|column| Planned::Column(column).alias(&set.name)).collect();
        Ok((LogicalPlanBuilder::from(plan).project(exprs)?.build()?, set))
    }

    /// A row for each grouping without keys, also where there was nothing to group.
    fn also_empty_sets(
        &self,
        stage: &mut Stage,
        domain: Option<&Domain>,
        sets: &[Vec<usize>],
        set: &Column,
        results: Vec<Outcome>,
    ) -> Result<Vec<Outcome>> {
        let all = self.beginning(domain)?;
        let empty = (0..sets.len()).filter(|at| sets[*at].is_empty());
        let (numbers, number) = self.set_numbers(empty)?;
        let plan = LogicalPlanBuilder::from(all.plan).cross_join(numbers)?.build()?;
        let own = all.keys.iter().chain([&number]);
        let theirs = stage.keys.iter().chain([set]);
        let pairs: Vec<(Column, Column)> = own.cloned().zip(theirs.cloned()).collect();
        let on = pairs.iter().map(|(a, b)| (Planned::Column(a.clone()), Planned::Column(b.clone())));
        let joined = null_safe(plan, stage.plan.clone(), on.collect(), JoinType::Full)?;
        let missing = Planned::Column(set.clone()).is_null();
        let mut exprs = Vec::new();
        for column in stage.plan.schema().columns() {
            let value = Planned::Column(column.clone());
            exprs.push(match pairs.iter().find(|(_, theirs)| *theirs == column) {
                Some((own, _)) => {
                    let own = Planned::Column(own.clone());
                    when(missing.clone(), own).otherwise(value)?.alias(&column.name)
                }
                None => value,
            });
        }
        stage.plan = LogicalPlanBuilder::from(joined).project(exprs)?.build()?;
        self.counted(stage, results)
    }

    /// GROUPING: a bit for each argument that a row's grouping does not have.
    fn grouping_of(
        &self,
        grouping: &Grouping,
        aggregate: &Aggregate,
        set: Option<&Column>,
    ) -> Result<Planned> {
        let (Some(sets), Some(set)) = (&grouping.sets, set) else { return Ok(lit(0_i32)) };
        let key = |arg: &Expr| match arg.kind {
            ExprKind::Column(column) => Ok(usize::from(column.column)),
            _ => Err(external(internal("an argument of GROUPING is a key"))),
        };
        let keys = aggregate.args.iter().map(key).collect::<Result<Vec<usize>>>()?;
        let bits = |set: &Vec<usize>| {
            keys.iter().fold(0_i32, |bits, key| (bits << 1) | i32::from(!set.contains(key)))
        };
        let branches =
            sets.iter().enumerate().map(|(at, set)| (Box::new(lit(at as i32)), Box::new(lit(bits(set)))));
        let expr = Some(Box::new(Planned::Column(set.clone())));
        Ok(Planned::Case(Case { expr, when_then_expr: branches.collect(), else_expr: None }))
    }

    /// Columns beside the keys, which a group determines because it has a primary key.
    fn determined(
        &self,
        stage: &Stage,
        select: &Select,
        grouping: &Grouping,
        order: &[OrderKey],
        parts: &mut Parts,
    ) -> Result<()> {
        let mut columns = Vec::new();
        for expr in after(select, grouping, order) {
            own_columns(expr, &mut columns);
            each_query(expr, &mut |free| columns.extend(free.into_iter().map(inward)));
        }
        let groups = select.relations.len();
        for column in columns {
            let is_key = |key: &Expr| matches!(key.kind, ExprKind::Column(of) if of == column);
            if column.depth > 0
                || usize::from(column.relation) >= groups
                || grouping.keys.iter().any(is_key)
                || parts.kept.iter().any(|(known, _)| *known == column)
            {
                continue;
            }
            let (value, _) = self.column_of(&stage.level, column)?;
            let new = self.column("kept");
            parts.groups.push(value.alias(&new.name));
            parts.kept.push((column, new));
        }
        Ok(())
    }

    /// Plans the aggregates; what gives the result of each.
    fn aggregates(&self, level: &Level, grouping: &Grouping, parts: &mut Parts) -> Result<Vec<Outcome>> {
        let mut results = Vec::with_capacity(grouping.aggregates.len());
        for aggregate in &grouping.aggregates {
            if aggregate.kind == AggregateKind::Grouping {
                results.push(Outcome::Expr(self.grouping_of(grouping, aggregate, parts.set.as_ref())?));
                continue;
            }
            if let Some(Scaled { number, scale }) = self.scaled_argument(level, aggregate)? {
                results.push(self.scaled_sum(level, aggregate, number, scale, parts)?);
                continue;
            }
            let args: Vec<Typed> =
                aggregate.args.iter().map(|arg| self.typed(level, arg)).collect::<Result<_>>()?;
            let vectorised = is_vectorised(aggregate, &args);
            results.push(match aggregate.kind {
                AggregateKind::Avg if vectorised && is_exact(aggregate) => {
                    let sum = self.part(level, aggregate, AggregateKind::Sum, args.clone(), parts)?;
                    let count = self.part(level, aggregate, AggregateKind::Count, args, parts)?;
                    Outcome::Quotient { sum, scale: None, count }
                }
                kind => {
                    let column = self.column("total");
                    let planned = match vectorised {
                        true => self.vectorised(level, aggregate, args)?,
                        false => self.accumulated(level, aggregate, args)?,
                    };
                    parts.aggregates.push(planned.alias(&column.name));
                    let counts =
                        kind == AggregateKind::Count || kind == AggregateKind::Regression(Regression::Count);
                    Outcome::Column(column, counts)
                }
            });
        }
        Ok(results)
    }

    /// A sum, or what gives an average, of numbers with their scales.
    fn scaled_sum(
        &self,
        level: &Level,
        aggregate: &Aggregate,
        number: Typed,
        scale: Planned,
        parts: &mut Parts,
    ) -> Result<Outcome> {
        use AggregateKind::{Avg, Count, Max, Sum};
        let scale = self.part(level, aggregate, Max, vec![(scale, DataType::Int16)], parts)?;
        let sum = self.part(level, aggregate, Sum, vec![number.clone()], parts)?;
        Ok(match aggregate.kind {
            Avg => {
                let count = self.part(level, aggregate, Count, vec![number], parts)?;
                Outcome::Quotient { sum, scale: Some(scale), count }
            }
            _ => Outcome::Scaled { sum, scale },
        })
    }

    /// Another aggregate of the same rows.
    fn part(
        &self,
        level: &Level,
        aggregate: &Aggregate,
        kind: AggregateKind,
        args: Vec<Typed>,
        parts: &mut Parts,
    ) -> Result<Column> {
        let part = Aggregate { kind, ty: Type::Void, ..aggregate.clone() };
        let column = self.column("part");
        parts.aggregates.push(self.vectorised(level, &part, args)?.alias(&column.name));
        Ok(column)
    }

    /// One aggregate as DataFusion's, or ours, of its name. None of these cares for the order of its rows.
    fn vectorised(&self, level: &Level, aggregate: &Aggregate, args: Vec<Typed>) -> Result<Planned> {
        let once = matches!(aggregate.kind, AggregateKind::Count | AggregateKind::Sum);
        let distinct = aggregate.distinct && once;
        let values = args.into_iter().zip(&aggregate.args);
        let mut args: Vec<Planned> =
            values.map(|((value, _), arg)| if distinct { key(value, &arg.ty) } else { value }).collect();
        if args.is_empty() {
            args.push(lit(1_i64));
        }
        let filter = self.filter_of(level, aggregate)?;
        let params =
            AggregateFunctionParams { args, distinct, filter, order_by: Vec::new(), null_treatment: None };
        let func = aggregate_function(aggregate.kind)?;
        Ok(Planned::AggregateFunction(AggregateFunction { func, params }))
    }

    /// One aggregate as the interpreter computes it.
    fn accumulated(&self, level: &Level, aggregate: &Aggregate, args: Vec<Typed>) -> Result<Planned> {
        let Some(gives) = arrow_of(&aggregate.ty) else { return Err(unsupported("an aggregate of nothing")) };
        let mut args: Vec<Planned> = args.into_iter().map(|(value, _)| value).collect();
        for key in &aggregate.order {
            if let OrderBy::Expr(expr) = &key.by {
                args.push(self.expr(level, expr)?);
            }
        }
        let filter = self.filter_of(level, aggregate)?;
        Ok(row_by_row::call(aggregate, gives, args, filter))
    }

    fn filter_of(&self, level: &Level, aggregate: &Aggregate) -> Result<Option<Box<Planned>>> {
        let filter = aggregate.filter.as_ref().map(|condition| self.expr(level, condition).map(Box::new));
        filter.transpose()
    }

    /// ORDER BY inside a call.
    pub(super) fn order_of(&self, level: &Level, order: &[OrderKey]) -> Result<Vec<SortExpr>> {
        let mut keys = Vec::with_capacity(order.len());
        for one in order {
            let OrderBy::Expr(expr) = &one.by else { return Err(external(internal("an output in a call"))) };
            keys.push(sorted(self.key_of(level, expr)?, one));
        }
        Ok(keys)
    }

    /// A row for each row of the domain, also where there was nothing to group.
    fn also_without_rows(
        &self,
        stage: &mut Stage,
        domain: &Domain,
        results: Vec<Outcome>,
    ) -> Result<Vec<Outcome>> {
        let mut all = self.beginning(Some(domain))?;
        let equal = all.keys.iter().cloned().zip(stage.keys.iter().cloned());
        let on = equal.map(|(a, b)| (Planned::Column(a), Planned::Column(b))).collect();
        let grouped = std::mem::take(&mut stage.plan);
        stage.plan = null_safe(all.plan, grouped, on, JoinType::Left)?;
        stage.keys = std::mem::take(&mut all.keys);
        stage.level.outer = all.level.outer;
        self.counted(stage, results)
    }

    /// Makes what counts 0 where there was nothing to count.
    fn counted(&self, stage: &mut Stage, results: Vec<Outcome>) -> Result<Vec<Outcome>> {
        let mut exprs: Vec<Planned> =
            stage.plan.schema().columns().into_iter().map(Planned::Column).collect();
        let mut new = Vec::with_capacity(results.len());
        for result in results {
            new.push(match result {
                Outcome::Column(column, true) => {
                    let counted = self.column("count");
                    let value = Planned::Column(column);
                    let zero = datafusion::functions::core::coalesce().call(vec![value, lit(0_i64)]);
                    exprs.push(zero.alias(&counted.name));
                    Outcome::Column(counted, true)
                }
                other => other,
            });
        }
        stage.plan = LogicalPlanBuilder::from(stage.plan.clone()).project(exprs)?.build()?;
        Ok(new)
    }

    /// Makes the results of groups known to what comes after.
    fn name_groups(
        &self,
        stage: &mut Stage,
        select: &Select,
        grouping: &Grouping,
        keys: Vec<Column>,
        kept: Vec<(ColumnRef, Column)>,
        results: Vec<Outcome>,
    ) -> Result<()> {
        let plan = stage.plan.clone();
        let typed = |column: &Column| typed_column(&plan, column);
        let mut columns = Vec::with_capacity(keys.len() + results.len());
        for (expr, column) in grouping.keys.iter().zip(&keys) {
            let value = typed(column)?;
            if let ExprKind::Column(ColumnRef { depth: 0, relation, column }) = expr.kind {
                stage.level.relations[usize::from(relation)][usize::from(column)] = value.clone();
            }
            columns.push(value);
        }
        for (reference, column) in kept {
            stage.level.relations[usize::from(reference.relation)][usize::from(reference.column)] =
                typed(&column)?;
        }
        for (aggregate, result) in grouping.aggregates.iter().zip(results) {
            columns.push(match result {
                Outcome::Column(column, _) => self.settled(typed(&column)?, &aggregate.ty)?,
                Outcome::Expr(expr) => (expr, DataType::Int32),
                Outcome::Scaled { sum, scale } => self.at_its_scale(&plan, &sum, &scale)?,
                Outcome::Quotient { sum, scale, count } => {
                    let sum = match scale {
                        Some(scale) => self.at_its_scale(&plan, &sum, &scale)?,
                        None => typed(&sum)?,
                    };
                    self.quotient(sum, typed(&count)?, aggregate)?
                }
            });
        }
        stage.level.relations.truncate(select.relations.len());
        stage.level.relations.push(columns);
        Ok(())
    }

    /// An aggregate's result in the type that it has.
    pub(super) fn settled(&self, (expr, found): Typed, ty: &Type) -> Result<Typed> {
        let Some(arrow) = arrow_of(ty) else { return Err(unsupported("a row as a value")) };
        match (&found, &arrow) {
            (a, b) if a == b => Ok((expr, found)),
            (DataType::Decimal128(_, a), DataType::Decimal128(_, b)) if a == b => Ok((expr, found)),
            (DataType::List(_), DataType::List(_)) => Ok((expr, found)),
            (DataType::Decimal128(..), _) if arrow == OPEN => {
                self.in_type((expr, found), &Type::Scalar(Scalar::Numeric { scale: Some(0) }), ty)
            }
            _ => Ok((Planned::Cast(Cast::new(Box::new(expr), arrow.clone())), arrow)),
        }
    }

    /// An average: a sum by how many.
    pub(super) fn quotient(&self, sum: Typed, count: Typed, aggregate: &Aggregate) -> Result<Typed> {
        let column = |at: u16, ty: Scalar| Expr {
            kind: ExprKind::Column(ColumnRef { depth: 0, relation: 0, column: at }),
            ty: Type::Scalar(ty),
        };
        let number = |expr: Expr| Expr {
            kind: ExprKind::Convert(Box::new(expr), Conversion::Scalar(Scalar::Numeric { scale: None })),
            ty: Type::Scalar(Scalar::Numeric { scale: Some(0) }),
        };
        let sum_expr = match &sum.1 {
            DataType::Decimal128(_, scale) => column(0, Scalar::Numeric { scale: Some(*scale as u8) }),
            ty if *ty == OPEN => column(0, Scalar::Numeric { scale: None }),
            _ => number(column(0, Scalar::BigInt)),
        };
        let pair = Box::new((sum_expr, number(column(1, Scalar::BigInt))));
        let whole = Expr {
            kind: ExprKind::Binary(Binary::Numeric(Arithmetic::Divide), pair),
            ty: aggregate.ty.clone(),
        };
        let level = Level { relations: vec![vec![sum, count]], ..Level::default() };
        self.row_by_row(&level, &whole)
    }
}

/// What gives an aggregate's result.
enum Outcome {
    /// A column; whether it counts.
    Column(Column, bool),
    /// A sum, and how many digits it has after the point.
    Scaled { sum: Column, scale: Column },
    /// A sum by a count.
    Quotient { sum: Column, scale: Option<Column>, count: Column },
    /// An expression over the groups.
    Expr(Planned),
}

/// Whether an aggregate of such arguments is computed by whole columns, and gives the same so.
pub(super) fn is_vectorised(aggregate: &Aggregate, args: &[Typed]) -> bool {
    use AggregateKind as K;
    let first = args.first().map(|(_, ty)| ty);
    let exact = |ty: &DataType| {
        matches!(ty, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Decimal128(..))
    };
    let float = |ty: &DataType| matches!(ty, DataType::Float32 | DataType::Float64);
    match (aggregate.kind, first) {
        (K::Count | K::BoolAnd | K::BoolOr, _) => true,
        (K::Sum | K::Avg, Some(ty)) => exact(ty) || float(ty) && !aggregate.distinct,
        (K::Min | K::Max, Some(ty)) => {
            let ordered = matches!(
                ty,
                DataType::Utf8View | DataType::Date32 | DataType::Time64(_) | DataType::Timestamp(..)
            );
            exact(ty) || ordered
        }
        _ => false,
    }
}

/// A join in which NULL is equal to NULL.
fn null_safe(
    left: LogicalPlan,
    right: LogicalPlan,
    on: Vec<(Planned, Planned)>,
    kind: JoinType,
) -> Result<LogicalPlan> {
    let (left, right) = (Arc::new(left), Arc::new(right));
    let nulls = NullEquality::NullEqualsNull;
    let join = Join::try_new(left, right, on, None, kind, JoinConstraint::On, nulls, false)?;
    Ok(LogicalPlan::Join(join))
}

/// Whether an average is NUMERIC.
pub(super) fn is_exact(aggregate: &Aggregate) -> bool {
    matches!(aggregate.ty, Type::Scalar(Scalar::Numeric { .. }))
}

/// The expressions that are evaluated for each row of a group.
fn inputs(grouping: &Grouping) -> impl Iterator<Item = &Expr> {
    grouping.keys.iter().chain(grouping.aggregates.iter().flat_map(|aggregate| {
        let order = aggregate.order.iter().filter_map(|key| match &key.by {
            OrderBy::Expr(expr) => Some(expr),
            OrderBy::Output(_) => None,
        });
        aggregate.args.iter().chain(&aggregate.filter).chain(order)
    }))
}

/// The expressions that are evaluated for each group.
fn after<'s>(select: &'s Select, grouping: &'s Grouping, order: &'s [OrderKey]) -> Vec<&'s Expr> {
    let by = |key: &'s OrderKey| match &key.by {
        OrderBy::Expr(expr) => Some(expr),
        OrderBy::Output(_) => None,
    };
    let mut all: Vec<&Expr> = select.outputs.iter().chain(&grouping.having).collect();
    all.extend(order.iter().filter_map(by));
    if let Distinct::On(keys) = &select.distinct {
        all.extend(keys);
    }
    for call in &select.windows {
        all.extend(call.args.iter().chain(&call.filter).chain(&call.partition));
        all.extend(call.order.iter().filter_map(by));
        for bound in [&call.frame.start, &call.frame.end] {
            if let FrameBound::Before(expr) | FrameBound::After(expr) = bound {
                all.push(expr);
            }
        }
    }
    all
}

/// The columns that queries in an expression read of those around them.
fn each_query(expr: &Expr, visit: &mut dyn FnMut(std::collections::BTreeSet<ColumnRef>)) {
    expr.walk(&mut |part| {
        if let ExprKind::Subquery(subquery) = &part.kind {
            visit(super::free::free_columns(&subquery.plan.query));
        }
    });
}

/// A column as the query around sees it.
fn inward(column: ColumnRef) -> ColumnRef {
    ColumnRef { depth: column.depth - 1, ..column }
}

/// The function of an aggregate, DataFusion's or ours.
pub(super) fn aggregate_function(kind: AggregateKind) -> Result<Arc<AggregateUDF>> {
    Ok(match kind {
        AggregateKind::Count => count_udaf(),
        AggregateKind::Sum => sums::function(),
        AggregateKind::Avg => float::average(),
        AggregateKind::Min => min_udaf(),
        AggregateKind::Max => max_udaf(),
        AggregateKind::BoolAnd => bool_and_udaf(),
        AggregateKind::BoolOr => bool_or_udaf(),
        _ => return Err(unsupported("this aggregate")),
    })
}
