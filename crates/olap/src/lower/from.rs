//! FROM and WHERE.

use std::collections::HashMap;
use std::sync::Arc;

use albireo_semantics::expr::{ColumnRef, Expr, ExprKind};
use albireo_semantics::query::File;
use albireo_semantics::query::tree::{
    Condition, Item, Pool, Query, Relation as Bound, RelationSource, Select,
};
use albireo_semantics::types::{Scalar, Type};
use albireo_sql::TableDef;
use datafusion::common::{Column, JoinType, NullEquality, Result, ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{
    Expr as Planned, Join, JoinConstraint, LogicalPlan, LogicalPlanBuilder, cast, lit,
};

use super::free::{free_columns, has_query};
use super::outer::columns_beside;
use super::select::Stage;
use super::{Domain, Level, Lowering, Rows, Typed, all_of, filter, typed_column, unsupported};
use crate::errors::{external, internal};
use crate::files;
use crate::nodes::expand::{Expand, Source};
use crate::relation::Relation;
use crate::scan::provider::SnapshotTable;
use crate::values::arrow_of;

impl Lowering<'_> {
    /// Reads FROM and keeps what WHERE lets pass.
    pub(super) fn from(&self, stage: &mut Stage, select: &Select) -> Result<()> {
        let plan = self.pool(stage, &select.from, select)?;
        stage.plan = plan;
        self.conditions(stage, &select.from.conditions)
    }

    /// The items of a pool joined, without its conditions; the first with what is there already.
    pub(super) fn pool(&self, stage: &mut Stage, pool: &Pool, select: &Select) -> Result<LogicalPlan> {
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
                Item::One { relation, .. } if depends(&select.relations[usize::from(*relation)]) => {
                    stage.plan = plan;
                    self.expand(stage, *relation, &select.relations)?;
                    plan = stage.plan.clone();
                    placed |= 1 << relation;
                }
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
                Item::Full { left, right, on, .. }
                    if !columns_beside(left, select).is_empty()
                        || !columns_beside(right, select).is_empty()
                        || !stage.keys.is_empty() && self.item_reads_around(item, select) =>
                {
                    plan = self.full_join_around(stage, plan, [left, right], on, select)?;
                    placed |= left.relations() | right.relations();
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
        left: LogicalPlan,
        pool: &Pool,
        select: &Select,
    ) -> Result<LogicalPlan> {
        if let [Item::One { relation, .. }] = pool.items.as_slice() {
            let joined = &select.relations[usize::from(*relation)];
            stage.plan = left;
            if let Some((_, args)) = generator(joined) {
                self.attach_queries(stage, args)?;
            }
            let left = self.before(stage.plan.clone(), joined)?;
            let (right, keys) = self.relation(stage, &left, *relation, &select.relations)?;
            if !keys.is_empty() {
                return self.left_dependent(stage, (left, right), keys, pool);
            }
            return self.left_joined(stage, left, right, pool);
        }
        let around = !stage.keys.is_empty() && self.items_read_around(pool, select);
        if around || !columns_beside(pool, select).is_empty() {
            return self.left_join_around(stage, left, pool, select);
        }
        let right = self.side(stage, pool, select)?;
        self.left_joined(stage, left, right, pool)
    }

    /// A left join with rows that depend on those of the left side by these keys.
    pub(super) fn left_dependent(
        &self,
        stage: &mut Stage,
        (left, right): (LogicalPlan, LogicalPlan),
        keys: Equal,
        pool: &Pool,
    ) -> Result<LogicalPlan> {
        if pool.conditions.iter().any(|condition| has_query(&condition.expr)) {
            let conditions: Vec<&Condition> = pool.conditions.iter().collect();
            return self.joined_in_parts(stage, (left, right), keys, &conditions, false);
        }
        let on = pool.conditions.iter().map(|condition| self.expr(&stage.level, &condition.expr));
        dependent(left, right, keys, all_of(on.collect::<Result<_>>()?), JoinType::Left)
    }

    /// A left join of two plans by the conditions of its right side.
    fn left_joined(
        &self,
        stage: &mut Stage,
        left: LogicalPlan,
        right: LogicalPlan,
        pool: &Pool,
    ) -> Result<LogicalPlan> {
        let own = pool.relations();
        let conditions: Vec<&Condition> = pool.conditions.iter().collect();
        let (mut left, mut right) = (left, right);
        if !self.attach_to_sides(stage, &mut left, &mut right, own, &conditions)? {
            return self.joined_in_parts(stage, (left, right), Vec::new(), &conditions, false);
        }
        let mut inside = Vec::new();
        let mut on = Vec::new();
        for condition in conditions {
            let expr = self.expr(&stage.level, &condition.expr)?;
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

    /// Computes the queries in conditions beside the rows of the side that they are about; whether each is about
    /// one. `own`: the relations of the right side.
    fn attach_to_sides(
        &self,
        stage: &mut Stage,
        left: &mut LogicalPlan,
        right: &mut LogicalPlan,
        own: u64,
        conditions: &[&Condition],
    ) -> Result<bool> {
        let asking = conditions.iter().filter(|condition| has_query(&condition.expr));
        let of_left = |condition: &&&Condition| condition.relations() & own == 0;
        let of_right =
            |condition: &&&Condition| condition.relations() & !own == 0 && !reads_outside(&condition.expr);
        if !asking.clone().all(|condition| of_left(&condition) || of_right(&condition)) {
            return Ok(false);
        }
        for condition in asking {
            let side = if of_left(&condition) { &mut *left } else { &mut *right };
            let mut inner = Stage { plan: side.clone(), level: stage.level.clone(), keys: Vec::new() };
            self.attach_queries(&mut inner, [&condition.expr])?;
            *side = inner.plan;
            stage.level.queries = inner.level.queries;
        }
        Ok(true)
    }

    /// An outer join whose condition asks queries about both sides: the pairs of which it is true, and the rows
    /// that are in none. `keys`: what must be equal besides.
    pub(super) fn joined_in_parts(
        &self,
        stage: &mut Stage,
        (left, right): (LogicalPlan, LogicalPlan),
        keys: Equal,
        conditions: &[&Condition],
        full: bool,
    ) -> Result<LogicalPlan> {
        let (left, right) = (self.readable_twice(left)?, self.readable_twice(right)?);
        let sides = [left.schema().columns(), right.schema().columns()];
        let columns: Vec<Column> = sides.iter().flatten().cloned().collect();
        let pairs = match keys.is_empty() {
            true => LogicalPlanBuilder::from(left.clone()).cross_join(right.clone())?.build()?,
            false => dependent(left.clone(), right.clone(), keys, None, JoinType::Inner)?,
        };
        let mut both = Stage { plan: pairs, level: stage.level.clone(), keys: stage.keys.clone() };
        for condition in conditions {
            self.attach_queries(&mut both, [&condition.expr])?;
            let condition = self.expr(&both.level, &condition.expr)?;
            both.plan = filter(both.plan, Some(condition))?;
        }
        let new: Vec<Column> = columns.iter().map(|_| self.column("joined")).collect();
        let renamed = |old: &Column, new: &Column| Planned::Column(old.clone()).alias(&new.name);
        let exprs = columns.iter().zip(&new).map(|(old, new)| renamed(old, new));
        let pairs = LogicalPlanBuilder::from(both.plan).project(exprs.collect::<Vec<_>>())?.build()?;
        let mut all = LogicalPlanBuilder::from(pairs.clone());
        let (of_left, of_right) = new.split_at(sides[0].len());
        let lonely = [(left, &sides[0], of_left), (right, &sides[1], of_right)];
        for (side, own, named) in lonely.into_iter().take(if full { 2 } else { 1 }) {
            let equal = own.iter().zip(named);
            let on = equal.map(|(a, b)| (Planned::Column(a.clone()), Planned::Column(b.clone()))).collect();
            let alone = dependent(side, pairs.clone(), on, None, JoinType::LeftAnti)?;
            let mut exprs = Vec::with_capacity(columns.len());
            for (old, new) in columns.iter().zip(&new) {
                exprs.push(match own.contains(old) {
                    true => renamed(old, new),
                    false => {
                        let ty = super::type_of(&pairs, new)?;
                        lit(ScalarValue::try_new_null(&ty)?).alias(&new.name)
                    }
                });
            }
            all = all.union(LogicalPlanBuilder::from(alone).project(exprs)?.build()?)?;
        }
        let places: HashMap<&Column, &Column> = columns.iter().zip(&new).collect();
        stage.level.replace(&places)?;
        for key in &mut stage.keys {
            if let Some(new) = places.get(key) {
                *key = Column::clone(new);
            }
        }
        all.build()
    }

    fn full_join(
        &self,
        stage: &mut Stage,
        left: &Pool,
        right: &Pool,
        on: &[Condition],
        select: &Select,
    ) -> Result<LogicalPlan> {
        let own = right.relations();
        let mut sides = Vec::with_capacity(2);
        for pool in [left, right] {
            let mut inner = Stage { plan: self.side(stage, pool, select)?, ..Stage::default() };
            inner.level = stage.level.clone();
            self.conditions(&mut inner, &pool.conditions)?;
            stage.level.queries = inner.level.queries;
            sides.push(inner.plan);
        }
        let (Some(mut right), Some(mut left)) = (sides.pop(), sides.pop()) else {
            return Err(external(internal("a join has two sides")));
        };
        let on: Vec<&Condition> = on.iter().collect();
        if !self.attach_to_sides(stage, &mut left, &mut right, own, &on)? {
            return self.joined_in_parts(stage, (left, right), Vec::new(), &on, true);
        }
        let on = on.into_iter().map(|condition| self.expr(&stage.level, &condition.expr));
        let on: Vec<Planned> = on.collect::<Result<_>>()?;
        LogicalPlanBuilder::from(left).join_on(right, JoinType::Full, on)?.build()
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
            RelationSource::Cte(id, around) if around.is_empty() => self.cte_rows(*id)?,
            RelationSource::Cte(id, around) => self.keyed_rows(&stage.level, *id, around, &mut on)?,
            RelationSource::File(file) => self.file(file)?,
            RelationSource::Series(_) | RelationSource::Unnest(_) => {
                self.generated(stage, left, number, relations, &mut on)?
            }
            RelationSource::Routine(..) | RelationSource::Given => {
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
        }
        let named = Arc::new(named);
        let schema = named.arrow_schema();
        let source = provider_as_source(Arc::new(SnapshotTable::new(named, self.shared.caches.clone())));
        let plan = LogicalPlanBuilder::scan(self.name(&table.name), source, None)?.build()?;
        let columns = plan.schema().columns().into_iter().zip(schema.fields());
        let columns = columns.map(|(column, field)| (Planned::Column(column), field.data_type().clone()));
        Ok((plan, columns.collect()))
    }

    /// The rows of a file. Its reader finds columns by their own names, so they are renamed above it.
    fn file(&self, file: &File) -> Result<(LogicalPlan, Vec<Typed>)> {
        self.reads_files.set(true);
        let source = files::source_of(file)?;
        let name = TableReference::bare(self.name(&file.path));
        let plan = LogicalPlanBuilder::scan(name, source, None)?.build()?;
        let mut exprs = Vec::with_capacity(file.columns.len());
        let mut outputs = Vec::with_capacity(file.columns.len());
        for (column, field) in plan.schema().columns().into_iter().zip(plan.schema().fields()) {
            let new = self.column(&column.name);
            let value = match files::column_type(field.data_type()) {
                Some((_, ty)) if ty != *field.data_type() => cast(Planned::Column(column), ty),
                _ => Planned::Column(column),
            };
            exprs.push(value.alias(&new.name));
            outputs.push(new);
        }
        let plan = LogicalPlanBuilder::from(plan).project(exprs)?.build()?;
        typed_columns(Rows { plan, outputs, ..Rows::default() })
    }

    /// The rows of a function in FROM, for each row of `left` if it reads columns of it.
    fn generated(
        &self,
        stage: &Stage,
        left: &LogicalPlan,
        number: u16,
        relations: &[Bound],
        on: &mut Equal,
    ) -> Result<(LogicalPlan, Vec<Typed>)> {
        let relation = &relations[usize::from(number)];
        let Some((source, args)) = generator(relation) else {
            return Err(external(internal("a relation makes its rows")));
        };
        if !depends(relation) {
            let level = Level { relations: vec![Vec::new(); relations.len()], ..Level::default() };
            let plan = LogicalPlanBuilder::empty(true).build()?;
            let mut inner = Stage { plan, level, keys: Vec::new() };
            self.expand(&mut inner, number, relations)?;
            return Ok((inner.plan, inner.level.relations.swap_remove(usize::from(number))));
        }
        let exprs = self.arguments(&stage.level, source, args)?;
        let names: Vec<Column> = exprs.iter().map(|_| self.column("argument")).collect();
        let named = exprs.iter().zip(&names).map(|(expr, name)| expr.clone().alias(&name.name));
        let plan = LogicalPlanBuilder::from(left.clone()).project(named.collect::<Vec<_>>())?.distinct()?;
        let columns: Vec<Planned> = names.into_iter().map(Planned::Column).collect();
        on.extend(exprs.into_iter().zip(columns.iter().cloned()));
        let (plan, column) = self.expansion(plan.build()?, source, columns, relation)?;
        Ok((plan, vec![column]))
    }

    /// Makes each row at hand one for each row of a function in FROM.
    fn expand(&self, stage: &mut Stage, number: u16, relations: &[Bound]) -> Result<()> {
        let relation = &relations[usize::from(number)];
        let Some((source, args)) = generator(relation) else {
            return Err(external(internal("a relation makes its rows")));
        };
        self.attach_queries(stage, args)?;
        let args = self.arguments(&stage.level, source, args)?;
        let (plan, column) = self.expansion(stage.plan.clone(), source, args, relation)?;
        stage.plan = plan;
        stage.level.relations[usize::from(number)] = vec![column];
        Ok(())
    }

    fn expansion(
        &self,
        input: LogicalPlan,
        source: Source,
        args: Vec<Planned>,
        relation: &Bound,
    ) -> Result<(LogicalPlan, Typed)> {
        let Some(arrow) = relation.columns.first().and_then(|(_, ty)| arrow_of(ty)) else {
            return Err(external(internal("a function in FROM has a column")));
        };
        let column = self.column("value");
        let plan = Expand::plan(input, source, args, column.name.clone(), arrow.clone())?;
        Ok((plan, (Planned::Column(column), arrow)))
    }

    /// The arguments of a function in FROM; numbers of a series have any scale.
    fn arguments(&self, level: &Level, source: Source, args: &[Expr]) -> Result<Vec<Planned>> {
        let mut exprs = Vec::with_capacity(args.len());
        for arg in args {
            let typed = self.typed(level, arg)?;
            let open = Type::Scalar(Scalar::Numeric { scale: None });
            exprs.push(match (source, &arg.ty) {
                (Source::Series, Type::Scalar(Scalar::Numeric { .. })) => {
                    self.in_type(typed, &arg.ty, &open)?.0
                }
                _ => typed.0,
            });
        }
        Ok(exprs)
    }
}

/// What makes the rows of a function in FROM, and its arguments.
pub(super) fn generator(relation: &Bound) -> Option<(Source, &[Expr])> {
    match &relation.source {
        RelationSource::Series(args) => Some((Source::Series, args)),
        RelationSource::Unnest(array) => Some((Source::Elements, std::slice::from_ref(array))),
        _ => None,
    }
}

/// Whether it is a function in FROM with other rows for other rows at hand.
fn depends(relation: &Bound) -> bool {
    let mut found = false;
    for arg in generator(relation).map_or(&[][..], |(_, args)| args) {
        arg.walk(&mut |part| {
            found |= match &part.kind {
                ExprKind::Column(_) => true,
                ExprKind::Subquery(subquery) => !free_columns(&subquery.plan.query).is_empty(),
                _ => false,
            };
        });
    }
    found
}

/// What must be equal of the rows of two sides.
pub(super) type Equal = Vec<(Planned, Planned)>;

/// Rows with those that depend on them.
pub(super) fn dependent(
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
pub(super) fn reads_outside(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        found |= match &part.kind {
            ExprKind::Column(column) => column.depth > 0,
            ExprKind::Subquery(subquery) => {
                free_columns(&subquery.plan.query).iter().any(|column| column.depth > 1)
            }
            _ => false,
        };
    });
    found
}
