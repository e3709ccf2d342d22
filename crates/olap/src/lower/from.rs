//! FROM and WHERE.

use std::sync::Arc;

use albireo_base::SqlType;
use albireo_semantics::expr::{ColumnRef, Expr, ExprKind};
use albireo_semantics::query::tree::{
    Condition, Item, Pool, Query, Relation as Bound, RelationSource, Select,
};
use albireo_sql::TableDef;
use datafusion::catalog::TableFunctionArgs;
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr as Planned, Join, JoinConstraint, LogicalPlan, LogicalPlanBuilder, lit};

use super::select::Stage;
use super::subquery::{free_columns, has_query};
use super::{Domain, Level, Lowering, Rows, Typed, all_of, arrow_of, filter, typed_column, unsupported};
use crate::errors::{external, internal};
use crate::relation::Relation;
use crate::scan::provider::SnapshotTable;

impl Lowering<'_> {
    /// Reads FROM and keeps what WHERE lets pass.
    pub(super) fn from(&self, stage: &mut Stage, select: &Select) -> Result<()> {
        let plan = self.pool(stage, &select.from, select)?;
        stage.plan = plan;
        self.conditions(stage, &select.from.conditions)
    }

    /// The items of a pool joined, without its conditions; the first with what is there already.
    fn pool(&self, stage: &mut Stage, pool: &Pool, select: &Select) -> Result<LogicalPlan> {
        let mut plan = stage.plan.clone();
        let mut first = stage.keys.is_empty() && is_one_row(&plan);
        let mut waiting: Vec<&Item> = pool.items.iter().collect();
        let mut placed = 0_u64;
        let own = pool.relations();
        while !waiting.is_empty() {
            let ready = waiting.iter().position(|item| {
                let (Item::One { requires, .. } | Item::Left { requires, .. } | Item::Full { requires, .. }) =
                    item;
                requires & own & !placed == 0
            });
            let item = waiting.remove(ready.unwrap_or(0));
            match item {
                Item::One { relation, .. } => {
                    plan = self.before(plan, &select.relations[usize::from(*relation)])?;
                    let (right, on) = self.relation(stage, &plan, *relation, &select.relations)?;
                    plan = match (first, on.is_empty()) {
                        (true, true) => right,
                        (false, true) => LogicalPlanBuilder::from(plan).cross_join(right)?.build()?,
                        (_, false) => dependent(plan, right, on, None, JoinType::Inner)?,
                    };
                    placed |= 1 << relation;
                }
                Item::Left { pool, .. } => {
                    plan = self.left_join(stage, plan, pool, select)?;
                    placed |= pool.relations();
                }
                Item::Full { left, right, on, .. } => {
                    let joined = self.full_join(stage, left, right, on, select)?;
                    plan = if first {
                        joined
                    } else {
                        LogicalPlanBuilder::from(plan).cross_join(joined)?.build()?
                    };
                    placed |= left.relations() | right.relations();
                }
            }
            first = false;
        }
        Ok(plan)
    }

    /// The items of a pool joined by themselves, without its conditions.
    fn side(&self, stage: &mut Stage, pool: &Pool, select: &Select) -> Result<LogicalPlan> {
        let empty = LogicalPlanBuilder::empty(true).build()?;
        let mut inner = Stage { plan: empty, level: stage.level.clone(), keys: Vec::new() };
        let plan = self.pool(&mut inner, pool, select)?;
        stage.level = inner.level;
        Ok(plan)
    }

    fn left_join(
        &self,
        stage: &mut Stage,
        mut left: LogicalPlan,
        pool: &Pool,
        select: &Select,
    ) -> Result<LogicalPlan> {
        let own = pool.relations();
        if let [Item::One { relation, .. }] = pool.items.as_slice() {
            left = self.before(left, &select.relations[usize::from(*relation)])?;
            let (right, keys) = self.relation(stage, &left, *relation, &select.relations)?;
            if !keys.is_empty() {
                let on = pool.conditions.iter().map(|condition| self.condition(&stage.level, condition));
                let on = all_of(on.collect::<Result<_>>()?);
                return dependent(left, right, keys, on, JoinType::Left);
            }
        }
        let right = self.side(stage, pool, select)?;
        let mut inside = Vec::new();
        let mut on = Vec::new();
        for condition in &pool.conditions {
            let expr = self.condition(&stage.level, condition)?;
            // What concerns the right side alone decides which of its rows can be partners.
            let of_right = condition.relations() & !own == 0 && condition.relations() != 0;
            if of_right && !reads_outside(&condition.expr) { inside.push(expr) } else { on.push(expr) }
        }
        let right = filter(right, all_of(inside))?;
        if on.is_empty() {
            on.push(lit(true));
        }
        LogicalPlanBuilder::from(left).join_on(right, JoinType::Left, on)?.build()
    }

    fn full_join(
        &self,
        stage: &mut Stage,
        left: &Pool,
        right: &Pool,
        on: &[Condition],
        select: &Select,
    ) -> Result<LogicalPlan> {
        let mut sides = Vec::with_capacity(2);
        for pool in [left, right] {
            let plan = self.side(stage, pool, select)?;
            let conditions = pool.conditions.iter().map(|condition| self.condition(&stage.level, condition));
            sides.push(filter(plan, all_of(conditions.collect::<Result<_>>()?))?);
        }
        let on: Vec<Planned> =
            on.iter().map(|condition| self.condition(&stage.level, condition)).collect::<Result<_>>()?;
        let (Some(right), Some(left)) = (sides.pop(), sides.pop()) else {
            return Err(external(internal("a join has two sides")));
        };
        LogicalPlanBuilder::from(left).join_on(right, JoinType::Full, on)?.build()
    }

    /// A condition of ON.
    fn condition(&self, level: &Level, condition: &Condition) -> Result<Planned> {
        if has_query(&condition.expr) {
            return Err(unsupported("a query in a condition of an outer join"));
        }
        self.expr(level, &condition.expr)
    }

    /// A relation; its columns become known. Where it depends on the rows of `left`: what must be equal.
    fn relation(
        &self,
        stage: &mut Stage,
        left: &LogicalPlan,
        number: u16,
        relations: &[Bound],
    ) -> Result<(LogicalPlan, Equal)> {
        let relation = &relations[usize::from(number)];
        let mut on = Vec::new();
        let (plan, columns) = match &relation.source {
            RelationSource::Table(table) => self.table(table)?,
            RelationSource::Query(query) => {
                typed_columns(self.dependent_query(stage, left, query, 0, &mut on)?)?
            }
            RelationSource::Lateral(query) => {
                typed_columns(self.dependent_query(stage, left, query, 1, &mut on)?)?
            }
            RelationSource::Cte(id) => self.cte_rows(*id)?,
            RelationSource::Series(args) => self.series(args, relation)?,
            RelationSource::Unnest(_) | RelationSource::Routine(..) | RelationSource::Given => {
                return Err(unsupported("this function in FROM of a query over a snapshot"));
            }
        };
        stage.level.relations[usize::from(number)] = columns;
        Ok((plan, on))
    }

    /// A query in FROM, for each row of `left` that it reads columns of. `levels`: how many SELECTs are
    /// between its columns around and those that this level calls so.
    fn dependent_query(
        &self,
        stage: &Stage,
        left: &LogicalPlan,
        query: &Query,
        levels: u16,
        on: &mut Equal,
    ) -> Result<Rows> {
        let free = free_columns(query);
        if free.is_empty() {
            return self.query(query, None);
        }
        let mut exprs = Vec::with_capacity(free.len());
        let mut columns = Vec::with_capacity(free.len());
        let mut lefts = Vec::with_capacity(free.len());
        for reference in free {
            let around = ColumnRef { depth: reference.depth - levels, ..reference };
            let (value, _) = self.column_of(&stage.level, around)?;
            let column = self.column("domain");
            exprs.push(value.clone().alias(&column.name));
            columns.push((reference, column));
            lefts.push(value);
        }
        let plan = LogicalPlanBuilder::from(left.clone()).project(exprs)?.distinct()?.build()?;
        let rows = self.query(query, Some(&Domain { plan, columns }))?;
        on.extend(lefts.into_iter().zip(rows.keys.iter().cloned().map(Planned::Column)));
        Ok(rows)
    }

    fn table(&self, table: &TableDef) -> Result<(LogicalPlan, Vec<Typed>)> {
        let Some(relation) = self.relations.relation(Some(&table.schema), &table.name) else {
            return Err(external(internal(format!("no relation {}", table.name))));
        };
        let mut used = self.used.borrow_mut();
        if used.iter().all(|known| known.id != relation.id) {
            used.push(Arc::clone(&relation));
        }
        drop(used);
        let mut named = Relation::clone(&relation);
        for column in &mut named.columns {
            column.name = self.name(&column.name);
            if let SqlType::Char(length) = column.ty {
                self.chars.borrow_mut().insert(column.name.clone(), length);
            }
        }
        let named = Arc::new(named);
        let schema = named.arrow_schema();
        let source = provider_as_source(Arc::new(SnapshotTable::new(named, self.shared.caches.clone())));
        let plan = LogicalPlanBuilder::scan(self.name(&table.name), source, None)?.build()?;
        let columns = plan.schema().columns().into_iter().zip(schema.fields());
        let columns = columns.map(|(column, field)| (Planned::Column(column), field.data_type().clone()));
        Ok((plan, columns.collect()))
    }

    /// `generate_series` of constants.
    fn series(&self, args: &[Expr], relation: &Bound) -> Result<(LogicalPlan, Vec<Typed>)> {
        let mut literals = Vec::with_capacity(args.len());
        for arg in args {
            let ExprKind::Constant(albireo_semantics::datum::Datum::Value(value)) = &arg.kind else {
                return Err(unsupported("generate_series of values that are computed"));
            };
            let value = value.clone().coerce(SqlType::BigInt).map_err(external)?;
            let ty = albireo_semantics::types::Type::Scalar(albireo_semantics::types::Scalar::BigInt);
            literals.push(self.constant(&value.into(), &ty)?.0);
        }
        let state = self.shared.state();
        let Some(function) = state.table_functions().get("generate_series") else {
            return Err(external(internal("no function generate_series")));
        };
        let provider = function.create_table_provider_with_args(TableFunctionArgs::new(&literals, state))?;
        let plan =
            LogicalPlanBuilder::scan(self.name("series"), provider_as_source(provider), None)?.build()?;
        let ty = relation.columns.first().and_then(|(_, ty)| arrow_of(ty));
        let (Some(ty), Some(column)) = (ty, plan.schema().columns().into_iter().next()) else {
            return Err(external(internal("a series has a column")));
        };
        let output = self.column("series");
        let value = datafusion::logical_expr::cast(Planned::Column(column), ty).alias(&output.name);
        let plan = LogicalPlanBuilder::from(plan).project([value])?.build()?;
        typed_columns(Rows { plan, outputs: vec![output], keys: Vec::new() })
    }
}

/// What must be equal of the rows of two sides.
type Equal = Vec<(Planned, Planned)>;

/// Rows with those that depend on them.
fn dependent(
    left: LogicalPlan,
    right: LogicalPlan,
    on: Equal,
    filter: Option<Planned>,
    kind: JoinType,
) -> Result<LogicalPlan> {
    let (left, right) = (Arc::new(left), Arc::new(right));
    let nulls = NullEquality::NullEqualsNull;
    let join = Join::try_new(left, right, on, filter, kind, JoinConstraint::On, nulls, false)?;
    Ok(LogicalPlan::Join(join))
}

/// A query's rows as a relation.
pub(super) fn typed_columns(rows: Rows) -> Result<(LogicalPlan, Vec<Typed>)> {
    let mut columns = Vec::with_capacity(rows.outputs.len());
    for column in rows.outputs {
        columns.push(typed_column(&rows.plan, &column)?);
    }
    Ok((rows.plan, columns))
}

fn is_one_row(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::EmptyRelation(empty) if empty.produce_one_row)
}

/// Whether a condition names columns of a query around.
fn reads_outside(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        found |= matches!(&part.kind, ExprKind::Column(column) if column.depth > 0);
    });
    found
}
