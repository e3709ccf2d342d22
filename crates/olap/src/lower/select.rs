//! One SELECT.
//!
//! Responsible for: the order of its steps: FROM and WHERE, groups, windows, the select list, DISTINCT,
//! ORDER BY, LIMIT. A query inside of another carries its keys (which row of the query around it is for)
//! through all of them.

use std::collections::HashMap;
use std::sync::Arc;

use albireo_semantics::expr::{ColumnRef, Expr, ExprKind};
use albireo_semantics::query::tree::{Distinct, OrderBy, OrderKey, Query, Select};
use albireo_semantics::types::Type;
use datafusion::common::{Column, Result};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr_rewriter::replace_col;
use datafusion::logical_expr::{
    Expr as Planned, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, SortExpr, lit,
};

use super::keys::{has_key, key};
use super::query::sorted;
use super::{Domain, Level, Lowering, Rows, Typed, type_of};

/// A SELECT between two of its steps.
#[derive(Default)]
pub(super) struct Stage {
    pub(super) plan: LogicalPlan,
    pub(super) level: Level,
    /// For which row of the query around a row is.
    pub(super) keys: Vec<Column>,
}

impl Lowering<'_> {
    /// A SELECT with the ORDER BY and LIMIT of its query, for each row of `domain` if there is one.
    pub(super) fn select(&self, select: &Select, query: &Query, domain: Option<&Domain>) -> Result<Rows> {
        let stage = self.filtered(select, domain)?;
        self.after_where(stage, select, query, domain)
    }

    /// FROM and WHERE.
    fn filtered(&self, select: &Select, domain: Option<&Domain>) -> Result<Stage> {
        let mut stage = self.beginning(domain)?;
        stage.level.relations = vec![Vec::new(); select.relations.len()];
        self.from(&mut stage, select)?;
        Ok(stage)
    }

    /// The rows before FROM: those of the domain, or one.
    pub(super) fn beginning(&self, domain: Option<&Domain>) -> Result<Stage> {
        let Some(domain) = domain else {
            let plan = LogicalPlanBuilder::empty(true).build()?;
            return Ok(Stage { plan, level: Level::default(), keys: Vec::new() });
        };
        let mut exprs = Vec::with_capacity(domain.columns.len());
        let mut keys = Vec::with_capacity(domain.columns.len());
        let mut outer = HashMap::with_capacity(domain.columns.len());
        for (reference, column) in &domain.columns {
            let ty = type_of(&domain.plan, column)?;
            let key = self.column("of");
            exprs.push(Planned::Column(column.clone()).alias(&key.name));
            outer.insert(*reference, (Planned::Column(key.clone()), ty));
            keys.push(key);
        }
        let plan = LogicalPlanBuilder::from(domain.plan.clone()).project(exprs)?.build()?;
        Ok(Stage { plan, level: Level { outer, ..Level::default() }, keys })
    }

    /// All steps after WHERE.
    pub(super) fn after_where(
        &self,
        mut stage: Stage,
        select: &Select,
        query: &Query,
        domain: Option<&Domain>,
    ) -> Result<Rows> {
        if select.asks_for_locks() {
            let what = "NOWAIT or SKIP LOCKED in a query that runs on a snapshot";
            return Err(super::unsupported(what));
        }
        if let Some(grouping) = &select.grouping {
            stage = self.group(stage, select, grouping, &query.order, domain)?;
        } else {
            stage.level.relations.push(Vec::new());
        }
        self.windows(&mut stage, select)?;
        let order_exprs = query.order.iter().filter_map(|key| match &key.by {
            OrderBy::Expr(expr) => Some(expr),
            OrderBy::Output(_) => None,
        });
        let distinct_on: &[Expr] = match &select.distinct {
            Distinct::On(keys) => keys,
            _ => &[],
        };
        let all = select.outputs.iter().chain(order_exprs).chain(distinct_on);
        self.attach_queries(&mut stage, all)?;
        let (rows, mut order) = self.select_list(stage, select, &query.order)?;
        let rows = match &select.distinct {
            Distinct::No => rows,
            Distinct::All => {
                let before = rows.outputs.clone();
                let rows = self.distinct(rows, &types_of(select))?;
                let new: HashMap<&Column, &Column> = before.iter().zip(&rows.outputs).collect();
                for key in &mut order.keys {
                    key.expr = replace_col(key.expr.clone(), &new)?;
                }
                rows
            }
            Distinct::On(_) => return self.distinct_on(rows, order, query, domain),
        };
        let visible = rows.outputs.clone();
        let mut rows = self.ordered_and_limited(rows, order.keys, query, domain)?;
        rows.outputs = visible;
        Ok(rows)
    }

    /// The select list, and the keys of ORDER BY and DISTINCT ON beside it.
    fn select_list(&self, stage: Stage, select: &Select, order: &[OrderKey]) -> Result<(Rows, Order)> {
        let Stage { plan, level, keys } = stage;
        let mut exprs: Vec<Planned> = keys.iter().cloned().map(Planned::Column).collect();
        let mut outputs = Vec::with_capacity(select.outputs.len());
        for output in &select.outputs {
            let typed = self.typed(&level, output)?;
            outputs.push(self.put(&mut exprs, typed, "out"));
        }
        let mut sort = Vec::with_capacity(order.len());
        for one in order {
            let expr = match &one.by {
                OrderBy::Output(at) => key(Planned::Column(outputs[*at].clone()), &select.outputs[*at].ty),
                OrderBy::Expr(expr) => {
                    let typed = self.typed(&level, expr)?;
                    key(Planned::Column(self.put(&mut exprs, typed, "by")), &expr.ty)
                }
            };
            sort.push(sorted(expr, one));
        }
        let mut distinct = Vec::new();
        if let Distinct::On(keys) = &select.distinct {
            for expr in keys {
                let typed = self.typed(&level, expr)?;
                distinct.push(key(Planned::Column(self.put(&mut exprs, typed, "on")), &expr.ty));
            }
        }
        let plan = LogicalPlanBuilder::from(plan).project(exprs)?.build()?;
        let rows = Rows { plan, outputs, keys, order: Vec::new() };
        Ok((rows, Order { keys: sort, distinct }))
    }

    /// Adds an expression under a new name.
    fn put(&self, exprs: &mut Vec<Planned>, (expr, _): Typed, name: &str) -> Column {
        let column = self.column(name);
        exprs.push(expr.alias(&column.name));
        column
    }

    /// Each row once.
    pub(super) fn distinct(&self, rows: Rows, types: &[Type]) -> Result<Rows> {
        let Rows { plan, outputs, keys, .. } = rows;
        let mut groups: Vec<Planned> = keys.iter().cloned().map(Planned::Column).collect();
        let mut firsts = Vec::new();
        let mut new = Vec::with_capacity(outputs.len());
        let mut results: Vec<Planned> = groups.clone();
        for (output, ty) in outputs.iter().zip(types) {
            let column = Planned::Column(output.clone());
            let name = self.column("out");
            if has_key(ty) {
                let group = self.column("key");
                groups.push(key(column.clone(), ty).alias(&group.name));
                let first = self.column("first");
                firsts.push(first_value_udaf().call(vec![column]).alias(&first.name));
                results.push(Planned::Column(first).alias(&name.name));
            } else {
                groups.push(column.clone());
                results.push(column.alias(&name.name));
            }
            new.push(name);
        }
        let plan = LogicalPlanBuilder::from(plan).aggregate(groups, firsts)?.project(results)?.build()?;
        Ok(Rows { plan, outputs: new, keys, order: Vec::new() })
    }

    /// The first row of those that agree in the keys of DISTINCT ON.
    fn distinct_on(&self, rows: Rows, order: Order, query: &Query, domain: Option<&Domain>) -> Result<Rows> {
        let Rows { plan, outputs, keys, .. } = rows;
        let number = self.column("row");
        let partition: Vec<Planned> =
            keys.iter().cloned().map(Planned::Column).chain(order.distinct).collect();
        let row = row_number().partition_by(partition);
        // An order without keys is an error.
        let row = if order.keys.is_empty() { row } else { row.order_by(order.keys.clone()) }.build()?;
        let plan = LogicalPlanBuilder::from(plan)
            .window([row.alias(&number.name)])?
            .filter(Planned::Column(number).eq(lit(1_u64)))?
            .build()?;
        let rows = Rows { plan, outputs, keys, order: Vec::new() };
        self.ordered_and_limited(rows, order.keys, query, domain)
    }
}

/// The keys of ORDER BY and DISTINCT ON.
struct Order {
    keys: Vec<SortExpr>,
    distinct: Vec<Planned>,
}

pub(super) fn types_of(select: &Select) -> Vec<Type> {
    select.outputs.iter().map(|output| output.ty.clone()).collect()
}

/// The columns of a level's own relations in an expression, queries in it aside.
pub(super) fn own_columns(expr: &Expr, into: &mut Vec<ColumnRef>) {
    expr.walk(&mut |part| {
        if let ExprKind::Column(column @ ColumnRef { depth: 0, .. }) = &part.kind
            && !into.contains(column)
        {
            into.push(*column);
        }
    });
}

/// The address by which a query in an expression is known.
pub(super) fn address(subquery: &Arc<albireo_semantics::expr::Subquery>) -> usize {
    Arc::as_ptr(subquery) as usize
}
