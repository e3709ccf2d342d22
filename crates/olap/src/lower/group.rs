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
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{
    AggregateUDF, Cast, Expr as Planned, GroupingSet, Join, JoinConstraint, LogicalPlan, LogicalPlanBuilder,
    SortExpr, lit,
};

use super::keys::{has_key, key};
use super::query::sorted;
use super::select::{Stage, own_columns};
use super::{Domain, Level, Lowering, Typed, arrow_of, filter, typed_column, unsupported};
use crate::errors::{external, internal};

/// The columns of groups while they are planned.
#[derive(Default)]
struct Parts {
    groups: Vec<Planned>,
    aggregates: Vec<Planned>,
    /// What each key is afterwards.
    keys: Vec<Column>,
    /// Columns of relations that a group determines, and what they are afterwards.
    kept: Vec<(ColumnRef, Column)>,
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
        let Parts { groups, aggregates, keys, kept } = parts;
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
        let results = match domain {
            Some(domain) if empty => self.also_without_rows(&mut stage, domain, results)?,
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
            let column = self.column("key");
            if has_key(&expr.ty) {
                parts.groups.push(key(value.clone(), &expr.ty).alias(self.name("group")));
                parts.aggregates.push(first_value_udaf().call(vec![value]).alias(&column.name));
            } else {
                parts.groups.push(value.alias(&column.name));
            }
            parts.keys.push(column);
        }
        Ok(())
    }

    /// The keys of several groupings: columns of their own, so that they can be left out.
    fn sets_of_keys(
        &self,
        stage: &mut Stage,
        grouping: &Grouping,
        sets: &[Vec<usize>],
        parts: &mut Parts,
    ) -> Result<()> {
        if !stage.keys.is_empty() {
            return Err(unsupported("grouping sets for each row of a query around"));
        }
        let mut exprs: Vec<Planned> =
            stage.plan.schema().columns().into_iter().map(Planned::Column).collect();
        for expr in &grouping.keys {
            if has_key(&expr.ty) {
                return Err(unsupported("grouping sets over this type"));
            }
            let column = self.column("key");
            exprs.push(self.expr(&stage.level, expr)?.alias(&column.name));
            parts.keys.push(column);
        }
        stage.plan = LogicalPlanBuilder::from(stage.plan.clone()).project(exprs)?.build()?;
        let column = |at: &usize| Planned::Column(parts.keys[*at].clone());
        let sets = sets.iter().map(|set| set.iter().map(column).collect()).collect();
        parts.groups.push(Planned::GroupingSet(GroupingSet::GroupingSets(sets)));
        Ok(())
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
            results.push(match aggregate.kind {
                AggregateKind::Avg if is_exact(aggregate) => {
                    let mut part = |kind, ty| {
                        let part = Aggregate { kind, ty, ..aggregate.clone() };
                        let column = self.column("part");
                        parts.aggregates.push(self.aggregate(level, grouping, &part)?.alias(&column.name));
                        Ok::<_, datafusion::common::DataFusionError>(column)
                    };
                    let sum = part(AggregateKind::Sum, Type::Void)?;
                    Outcome::Quotient(sum, part(AggregateKind::Count, Type::Scalar(Scalar::BigInt))?)
                }
                _ => {
                    let column = self.column("total");
                    let planned = self.aggregate(level, grouping, aggregate)?;
                    parts.aggregates.push(planned.alias(&column.name));
                    Outcome::Column(column, aggregate.kind == AggregateKind::Count)
                }
            });
        }
        Ok(results)
    }

    /// One aggregate as DataFusion's, or ours, of its name.
    fn aggregate(&self, level: &Level, grouping: &Grouping, aggregate: &Aggregate) -> Result<Planned> {
        let mut args = Vec::with_capacity(aggregate.args.len());
        for arg in &aggregate.args {
            let (mut value, ty) = self.typed(level, arg)?;
            if ty == super::OPEN && aggregate.kind != AggregateKind::Count {
                return Err(unsupported("an aggregate over numbers of several scales"));
            }
            if aggregate.distinct {
                value = key(value, &arg.ty);
            }
            args.push(value);
        }
        if aggregate.kind == AggregateKind::Grouping {
            return self.grouping_of(grouping, aggregate);
        }
        if args.is_empty() {
            args.push(lit(1_i64));
        }
        let filter = match &aggregate.filter {
            Some(condition) => Some(Box::new(self.expr(level, condition)?)),
            None => None,
        };
        let order_by = self.order_of(level, &aggregate.order)?;
        let params = AggregateFunctionParams {
            args,
            distinct: aggregate.distinct,
            filter,
            order_by,
            null_treatment: None,
        };
        let func = self.aggregate_function(aggregate.kind)?;
        Ok(Planned::AggregateFunction(AggregateFunction { func, params }))
    }

    fn grouping_of(&self, _: &Grouping, _: &Aggregate) -> Result<Planned> {
        Err(unsupported("GROUPING"))
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

    pub(super) fn aggregate_function(&self, kind: AggregateKind) -> Result<Arc<AggregateUDF>> {
        let Some(name) = name_of(kind) else { return Err(unsupported("this aggregate")) };
        let found = self.shared.state().aggregate_functions().get(name).cloned();
        found.ok_or_else(|| unsupported(format!("the aggregate {name}")))
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
        let grouped = std::mem::replace(&mut stage.plan, LogicalPlanBuilder::empty(false).build()?);
        let join = Join::try_new(
            Arc::new(all.plan),
            Arc::new(grouped),
            on,
            None,
            JoinType::Left,
            JoinConstraint::On,
            NullEquality::NullEqualsNull,
            false,
        )?;
        all.plan = LogicalPlan::Join(join);
        stage.plan = all.plan;
        stage.keys = all.keys;
        stage.level.outer = all.level.outer;
        // What counts has counted nothing.
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
                Outcome::Quotient(sum, count) => self.quotient(typed(&sum)?, typed(&count)?, aggregate)?,
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
            (DataType::Decimal128(..), _) if arrow == super::OPEN => {
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
    /// A sum by a count.
    Quotient(Column, Column),
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
            visit(super::subquery::free_columns(&subquery.plan.query));
        }
    });
}

/// A column as the query around sees it.
fn inward(column: ColumnRef) -> ColumnRef {
    ColumnRef { depth: column.depth - 1, ..column }
}

/// DataFusion's name of an aggregate, or that of ours.
fn name_of(kind: AggregateKind) -> Option<&'static str> {
    Some(match kind {
        AggregateKind::Count => "count",
        AggregateKind::Sum => "sum",
        AggregateKind::Avg => "avg",
        AggregateKind::Min => "min",
        AggregateKind::Max => "max",
        AggregateKind::BoolAnd => "bool_and",
        AggregateKind::BoolOr => "bool_or",
        AggregateKind::StringAgg => "string_agg",
        AggregateKind::ArrayAgg => "array_agg",
        AggregateKind::StddevPop => "stddev_pop",
        AggregateKind::StddevSamp => "stddev",
        AggregateKind::VarPop => "var_pop",
        AggregateKind::VarSamp => "var",
        AggregateKind::CovarPop => "covar_pop",
        AggregateKind::CovarSamp => "covar_samp",
        AggregateKind::Corr => "corr",
        AggregateKind::Regression(kind) => regression(kind),
        AggregateKind::BitAnd => "bit_and",
        AggregateKind::BitOr => "bit_or",
        AggregateKind::BitXor => "bit_xor",
        AggregateKind::Mode => "mode",
        AggregateKind::Grouping | AggregateKind::PercentileCont | AggregateKind::PercentileDisc => {
            return None;
        }
    })
}

fn regression(kind: Regression) -> &'static str {
    match kind {
        Regression::AvgX => "regr_avgx",
        Regression::AvgY => "regr_avgy",
        Regression::Count => "regr_count",
        Regression::Intercept => "regr_intercept",
        Regression::R2 => "regr_r2",
        Regression::Slope => "regr_slope",
        Regression::Sxx => "regr_sxx",
        Regression::Sxy => "regr_sxy",
        Regression::Syy => "regr_syy",
    }
}
