//! Queries: WITH, VALUES, ORDER BY and LIMIT around a SELECT or set operation.

use std::collections::HashMap;

use albireo_base::{SqlError, SqlState, Value};
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{Expr, ExprKind};
use albireo_semantics::query::tree::{Body, OrderBy, OrderKey, Query};
use albireo_semantics::types::Type;
use datafusion::common::{Column, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr as Planned, ExprFunctionExt, LogicalPlanBuilder, SortExpr, lit};

use super::keys::key;
use super::{Domain, Level, Lowering, NODE_BYTES, Rows, take, unsupported};
use crate::errors::external;

impl Lowering<'_> {
    /// A query, for each row of `domain` if there is one.
    #[recursive::recursive]
    pub(super) fn query(&self, query: &Query, domain: Option<&Domain>) -> Result<Rows> {
        take(NODE_BYTES)?;
        for cte in &query.ctes {
            let rows = self.cte(cte)?;
            self.ctes.borrow_mut().insert(cte.id, rows);
        }
        let rows = match &query.body {
            Body::Select(select) => return self.select(select, query, domain),
            Body::Values(values) => self.values(values, domain)?,
            Body::Nested(inner) => self.query(inner, domain)?,
            Body::Set(set) => self.set(set, domain)?,
        };
        let mut order = Vec::with_capacity(query.order.len());
        for key in &query.order {
            let OrderBy::Output(at) = &key.by else {
                return Err(unsupported("an expression in ORDER BY of a set operation"));
            };
            order.push(sorted(output_key(&rows, query, *at), key));
        }
        self.ordered_and_limited(rows, order, query, domain.is_some())
    }

    fn values(&self, values: &[Vec<Expr>], domain: Option<&Domain>) -> Result<Rows> {
        if domain.is_some() {
            return Err(unsupported("VALUES with columns of a query around it"));
        }
        let level = Level { outer: HashMap::new(), ..Level::default() };
        let types = value_types(values);
        let width = types.len();
        let mut rows = Vec::with_capacity(values.len());
        for row in values {
            let mut exprs = Vec::with_capacity(width);
            for (value, to) in row.iter().zip(&types) {
                let typed = self.typed(&level, value)?;
                let (expr, found) = self.in_type(typed, &value.ty, to)?;
                let ty = super::arrow_of(to).unwrap_or(found);
                exprs.push(Planned::Cast(datafusion::logical_expr::Cast::new(Box::new(expr), ty)));
            }
            rows.push(exprs);
        }
        let plan = LogicalPlanBuilder::values(rows)?.build()?;
        let outputs: Vec<Column> = (0..width).map(|_| self.column("column")).collect();
        let named: Vec<Planned> = plan
            .schema()
            .columns()
            .into_iter()
            .zip(&outputs)
            .map(|(column, output)| Planned::Column(column).alias(&output.name))
            .collect();
        let plan = LogicalPlanBuilder::from(plan).project(named)?.build()?;
        Ok(Rows { plan, outputs, keys: Vec::new() })
    }

    /// Sorts rows and takes those that LIMIT and OFFSET say; of each key of its own, if `keyed`.
    pub(super) fn ordered_and_limited(
        &self,
        rows: Rows,
        order: Vec<SortExpr>,
        query: &Query,
        keyed: bool,
    ) -> Result<Rows> {
        let limits = query.limit.is_some() || query.offset.is_some();
        let Rows { plan, outputs, keys } = rows;
        if keyed {
            if !limits {
                return Ok(Rows { plan, outputs, keys });
            }
            let plan = self.limited_by_key(plan, &keys, order, query)?;
            return Ok(Rows { plan, outputs, keys });
        }
        let mut builder = LogicalPlanBuilder::from(plan);
        if !order.is_empty() {
            builder = builder.sort(order)?;
        }
        if limits {
            let level = Level::default();
            let count = |expr: &Option<Expr>, word| self.count(&level, expr.as_ref(), word);
            builder =
                builder.limit_by_expr(count(&query.offset, "OFFSET")?, count(&query.limit, "LIMIT")?)?;
        }
        Ok(Rows { plan: builder.build()?, outputs, keys })
    }

    fn count(&self, level: &Level, expr: Option<&Expr>, word: &str) -> Result<Option<Planned>> {
        let Some(expr) = expr else { return Ok(None) };
        match &expr.kind {
            ExprKind::Constant(datum) if datum.is_null() => Ok(None),
            ExprKind::Constant(Datum::Value(Value::BigInt(n))) if *n < 0 => {
                let state = if word == "LIMIT" { *b"2201W" } else { *b"2201X" };
                let message = format!("{word} must not be negative");
                Err(external(SqlError::new(SqlState(state), message)))
            }
            _ => self.expr(level, expr).map(Some),
        }
    }

    /// The first rows of each key.
    fn limited_by_key(
        &self,
        plan: datafusion::logical_expr::LogicalPlan,
        keys: &[Column],
        order: Vec<SortExpr>,
        query: &Query,
    ) -> Result<datafusion::logical_expr::LogicalPlan> {
        let number = self.column("row");
        let keys: Vec<Planned> = keys.iter().cloned().map(Planned::Column).collect();
        let row = row_number().partition_by(keys).order_by(order).build()?.alias(&number.name);
        let of = |expr: &Option<Expr>| match expr.as_ref().map(|expr| &expr.kind) {
            None => Ok(None),
            Some(ExprKind::Constant(datum)) if datum.is_null() => Ok(None),
            Some(ExprKind::Constant(Datum::Value(Value::BigInt(n)))) if *n >= 0 => Ok(Some(*n as u64)),
            Some(_) => Err(unsupported("a LIMIT that is computed")),
        };
        let skipped = of(&query.offset)?.unwrap_or(0);
        let number = Planned::Column(number);
        let mut condition = number.clone().gt(lit(skipped));
        if let Some(limit) = of(&query.limit)? {
            condition = condition.and(number.lt_eq(lit(skipped.saturating_add(limit))));
        }
        LogicalPlanBuilder::from(plan).window([row])?.filter(condition)?.build()
    }
}

/// A key of an order.
pub(super) fn sorted(expr: Planned, key: &OrderKey) -> SortExpr {
    expr.sort(!key.descending, key.nulls_first)
}

/// An output as it is compared.
fn output_key(rows: &Rows, query: &Query, at: usize) -> Planned {
    let column = Planned::Column(rows.outputs[at].clone());
    match output_types(query).get(at) {
        Some(ty) => key(column, ty),
        None => column,
    }
}

/// The types of the columns of VALUES.
fn value_types(rows: &[Vec<Expr>]) -> Vec<Type> {
    let of = |row: &Vec<Expr>| row.iter().map(|value| value.ty.clone()).collect::<Vec<_>>();
    let all = rows.iter().map(of).reduce(|all, row| super::sets::common(&all, &row));
    all.unwrap_or_default()
}

/// The types of a query's columns.
pub(super) fn output_types(query: &Query) -> Vec<Type> {
    match &query.body {
        Body::Select(select) => select.outputs.iter().map(|output| output.ty.clone()).collect(),
        Body::Values(rows) => value_types(rows),
        Body::Nested(inner) => output_types(inner),
        Body::Set(set) => super::sets::common(&output_types(&set.left), &output_types(&set.right)),
    }
}
