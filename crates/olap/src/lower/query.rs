//! Queries: WITH, VALUES, ORDER BY and LIMIT around a SELECT or set operation.

use std::collections::BTreeSet;

use albireo_base::Value;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{ColumnRef, Expr, ExprKind};
use albireo_semantics::query::inline::{inlined, keyed};
use albireo_semantics::query::tree::{Body, Cte, OrderBy, OrderKey, Query};
use albireo_semantics::types::Type;
use arrow::datatypes::DataType;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Cast, Expr as Planned, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, SortExpr, WindowFrame,
    WindowFrameBound, WindowFrameUnits, cast, lit,
};

use super::free::{free_columns, free_columns_of_cte, has_query};
use super::keys::key;
use super::select::Stage;
use super::{Domain, Level, Lowering, NODE_BYTES, Rows, filter, take, typed_column};
use crate::errors::{external, internal};

impl Lowering<'_> {
    /// A query, for each row of `domain` if there is one.
    #[recursive::recursive]
    pub(super) fn query(&self, query: &Query, domain: Option<&Domain>) -> Result<Rows> {
        take(NODE_BYTES)?;
        let depends = |cte: &&Cte| cte.repeated.is_none() && !free_columns(&cte.query).is_empty();
        let dependent: BTreeSet<u32> = query.ctes.iter().filter(depends).map(|cte| cte.id).collect();
        if !dependent.is_empty() {
            return self.query(&inlined(query, &dependent), domain);
        }
        if query.ctes.iter().any(|cte| !free_columns_of_cte(cte).is_empty()) {
            let mut keyed_query = query.clone();
            for at in 0..query.ctes.len() {
                let columns = free_columns_of_cte(&keyed_query.ctes[at]);
                keyed(&mut keyed_query, query.ctes[at].id, &columns);
            }
            return self.independent(&keyed_query, domain);
        }
        self.independent(query, domain)
    }

    /// A query none of whose queries of WITH reads columns around it unseen.
    fn independent(&self, query: &Query, domain: Option<&Domain>) -> Result<Rows> {
        for cte in &query.ctes {
            let rows = self.cte(cte, domain)?;
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
                return Err(external(internal("an expression orders what is no SELECT")));
            };
            order.push(sorted(output_key(&rows, query, *at), key));
        }
        self.ordered_and_limited(rows, order, query, domain)
    }

    fn values(&self, values: &[Vec<Expr>], domain: Option<&Domain>) -> Result<Rows> {
        let types = value_types(values);
        if domain.is_some() || values.iter().flatten().any(has_query) {
            return self.values_one_by_one(values, &types, domain);
        }
        let level = Level::default();
        let mut rows = Vec::with_capacity(values.len());
        for row in values {
            rows.push(self.value_row(&level, row, &types)?);
        }
        let plan = LogicalPlanBuilder::values(rows)?.build()?;
        let outputs: Vec<Column> = types.iter().map(|_| self.column("column")).collect();
        let named: Vec<Planned> = plan
            .schema()
            .columns()
            .into_iter()
            .zip(&outputs)
            .map(|(column, output)| Planned::Column(column).alias(&output.name))
            .collect();
        let plan = LogicalPlanBuilder::from(plan).project(named)?.build()?;
        Ok(Rows { plan, outputs, ..Rows::default() })
    }

    /// A row of VALUES in the types of all.
    fn value_row(&self, level: &Level, row: &[Expr], types: &[Type]) -> Result<Vec<Planned>> {
        let mut exprs = Vec::with_capacity(types.len());
        for (value, to) in row.iter().zip(types) {
            let typed = self.typed(level, value)?;
            let (expr, found) = self.in_type(typed, &value.ty, to)?;
            let ty = crate::values::arrow_of(to).unwrap_or(found);
            exprs.push(Planned::Cast(Cast::new(Box::new(expr), ty)));
        }
        Ok(exprs)
    }

    /// VALUES that read columns of a query around, or have queries in them.
    fn values_one_by_one(
        &self,
        values: &[Vec<Expr>],
        types: &[Type],
        domain: Option<&Domain>,
    ) -> Result<Rows> {
        let mut all: Option<Rows> = None;
        for row in values {
            let mut stage = self.beginning(domain)?;
            stage.level = around(&stage.plan, &stage.keys, domain)?;
            self.attach_queries(&mut stage, row)?;
            let outputs: Vec<Column> = types.iter().map(|_| self.column("column")).collect();
            let values = self.value_row(&stage.level, row, types)?;
            let values = values.into_iter().zip(&outputs).map(|(value, name)| value.alias(&name.name));
            let exprs: Vec<Planned> = stage.keys.iter().cloned().map(Planned::Column).chain(values).collect();
            let plan = LogicalPlanBuilder::from(stage.plan).project(exprs)?.build()?;
            let one = Rows { plan, outputs, keys: stage.keys, order: Vec::new() };
            all = Some(match all {
                None => one,
                Some(all) => self.united(all, one)?,
            });
        }
        all.ok_or_else(|| external(internal("VALUES have a row")))
    }

    /// Sorts rows and takes those that LIMIT and OFFSET say; of each key of its own, if they have keys. With
    /// keys and without LIMIT and OFFSET the order is only noted.
    pub(super) fn ordered_and_limited(
        &self,
        rows: Rows,
        order: Vec<SortExpr>,
        query: &Query,
        domain: Option<&Domain>,
    ) -> Result<Rows> {
        let keyed = domain.is_some() || !rows.keys.is_empty();
        let sorts = !order.is_empty();
        let order = if sorts { order } else { rows.order };
        let rows = Rows { order, ..rows };
        let limits = query.limit.iter().chain(&query.offset);
        if limits.clone().next().is_none() && (keyed || !sorts) {
            return Ok(rows);
        }
        if keyed || !limits.clone().all(is_fixed) {
            return self.limited_by_number(rows, query, domain);
        }
        let mut builder = LogicalPlanBuilder::from(rows.plan);
        if sorts {
            builder = builder.sort(rows.order.clone())?;
        }
        if limits.clone().next().is_some() {
            let level = Level::default();
            let count = |expr: &Option<Expr>, word| self.count(&level, expr.as_ref(), word);
            builder =
                builder.limit_by_expr(count(&query.offset, "OFFSET")?, count(&query.limit, "LIMIT")?)?;
        }
        Ok(Rows { plan: builder.build()?, ..rows })
    }

    /// The number that LIMIT or OFFSET says, checked.
    fn count(&self, level: &Level, expr: Option<&Expr>, word: &'static str) -> Result<Option<Planned>> {
        let Some(expr) = expr else { return Ok(None) };
        match &expr.kind {
            ExprKind::Constant(datum) if datum.is_null() => Ok(None),
            ExprKind::Constant(Datum::Value(Value::BigInt(n))) if *n < 0 => {
                Err(external(super::checks::negative(word)))
            }
            ExprKind::Constant(_) | ExprKind::Variable(_) => self.expr(level, expr).map(Some),
            _ => self.expr(level, expr).map(|count| Some(super::checks::counted(count, word))),
        }
    }

    /// The first rows of each key, by their numbers.
    fn limited_by_number(&self, rows: Rows, query: &Query, domain: Option<&Domain>) -> Result<Rows> {
        let number = self.column("row");
        let keys: Vec<Planned> = rows.keys.iter().cloned().map(Planned::Column).collect();
        // Without an order the frame that would be taken by itself has no type.
        let (begin, end) = (WindowFrameBound::Preceding(ScalarValue::Null), WindowFrameBound::CurrentRow);
        let frame = WindowFrame::new_bounds(WindowFrameUnits::Rows, begin, end);
        let numbered = row_number().partition_by(keys).order_by(rows.order.clone());
        let row = numbered.window_frame(frame).build()?;
        let plan = LogicalPlanBuilder::from(rows.plan).window([row.alias(&number.name)])?.build()?;
        let level = around(&plan, &rows.keys, domain)?;
        let mut stage = Stage { plan, level, keys: rows.keys };
        self.attach_queries(&mut stage, query.limit.iter().chain(&query.offset))?;
        let number = cast(Planned::Column(number), DataType::Int64);
        let behind = match self.count(&stage.level, query.offset.as_ref(), "OFFSET")? {
            Some(offset) => {
                let skipped = datafusion::functions::core::coalesce().call(vec![offset, lit(0_i64)]);
                number - skipped
            }
            None => number,
        };
        let mut condition = behind.clone().gt(lit(0_i64));
        if let Some(limit) = self.count(&stage.level, query.limit.as_ref(), "LIMIT")? {
            condition = condition.and(limit.clone().is_null().or(behind.lt_eq(limit)));
        }
        let plan = filter(stage.plan, Some(condition))?;
        Ok(Rows { plan, outputs: rows.outputs, keys: stage.keys, order: rows.order })
    }
}

/// Whether LIMIT or OFFSET is known before the query runs.
fn is_fixed(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Constant(_) | ExprKind::Variable(_))
}

/// The columns around a query as the query around sees them: so does what stands in it outside of any SELECT.
fn around(plan: &LogicalPlan, keys: &[Column], domain: Option<&Domain>) -> Result<Level> {
    let mut level = Level::default();
    let columns = domain.map_or(&[][..], |domain| &domain.columns);
    for ((reference, _), key) in columns.iter().zip(keys) {
        let typed = typed_column(plan, key)?;
        let reference = ColumnRef { depth: reference.depth - 1, ..*reference };
        if reference.depth > 0 {
            level.outer.insert(reference, typed);
            continue;
        }
        let (relation, column) = (usize::from(reference.relation), usize::from(reference.column));
        let nothing = || (lit(ScalarValue::Null), DataType::Null);
        if level.relations.len() <= relation {
            level.relations.resize_with(relation + 1, Vec::new);
        }
        let columns = &mut level.relations[relation];
        if columns.len() <= column {
            columns.resize_with(column + 1, nothing);
        }
        columns[column] = typed;
    }
    Ok(level)
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
