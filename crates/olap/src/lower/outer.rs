//! Outer joins whose sides read columns of the query around them, or of relations beside them.
//!
//! Responsible for: such a side for each row of the domain and for each value of the columns beside, so that rows of
//! both sides that are for the same row meet. Not responsible for: any other outer join (`from`).

use std::collections::{BTreeSet, HashMap};

use albireo_semantics::expr::ColumnRef;
use albireo_semantics::query::tree::{Condition, Item, Pool, RelationSource, Select};
use datafusion::common::{Column, JoinType, Result};
use datafusion::functions::core::coalesce;
use datafusion::logical_expr::{Expr as Planned, LogicalPlan, LogicalPlanBuilder};

use super::free::{columns_inside, free_columns, has_query};
use super::from::{Equal, dependent, generator, reads_outside};
use super::select::Stage;
use super::{Level, Lowering, Typed, all_of, typed_column};

impl Lowering<'_> {
    /// Whether a side of an outer join, or a condition of it, reads columns of queries around.
    fn reads_around(&self, pool: &Pool, select: &Select) -> bool {
        let conditions = pool.conditions.iter().any(|condition| reads_outside(&condition.expr));
        conditions || self.items_read_around(pool, select)
    }

    /// Whether the items of a side do.
    pub(super) fn items_read_around(&self, pool: &Pool, select: &Select) -> bool {
        pool.items.iter().any(|item| self.item_reads_around(item, select))
    }

    /// Whether an item does.
    pub(super) fn item_reads_around(&self, item: &Item, select: &Select) -> bool {
        let number = match item {
            Item::One { relation, .. } => usize::from(*relation),
            Item::Left { pool, .. } => return self.reads_around(pool, select),
            Item::Full { left, right, on, .. } => {
                return self.reads_around(left, select)
                    || self.reads_around(right, select)
                    || on.iter().any(|condition| reads_outside(&condition.expr));
            }
        };
        let relation = &select.relations[number];
        match &relation.source {
            RelationSource::Query(query) => !free_columns(query).is_empty(),
            RelationSource::Lateral(query) => free_columns(query).iter().any(|column| column.depth > 1),
            RelationSource::Cte(_, around) => !around.is_empty(),
            _ => generator(relation).is_some_and(|(_, args)| args.iter().any(reads_outside)),
        }
    }

    /// The items of a side for each row of the domain, and for each of the rows of `plan` beside it of which it reads
    /// these columns; what must be equal of `plan` and of the side.
    fn keyed_side(
        &self,
        stage: &mut Stage,
        plan: &LogicalPlan,
        (pool, conditions): (&Pool, &[Condition]),
        beside: &BTreeSet<ColumnRef>,
        select: &Select,
    ) -> Result<(LogicalPlan, Vec<Column>)> {
        let values = self.values_of(stage, beside)?;
        let keys: Vec<Column> = values.iter().map(|_| self.column("of")).collect();
        let exprs = values.iter().zip(&keys).map(|((value, _), key)| value.clone().alias(&key.name));
        let domain = LogicalPlanBuilder::from(plan.clone()).project(exprs.collect::<Vec<_>>())?;
        let mut level = stage.level.clone();
        level.replace(&stage.keys.iter().zip(&keys).collect::<HashMap<_, _>>())?;
        for (column, ((_, ty), key)) in beside.iter().zip(values.iter().zip(&keys).skip(stage.keys.len())) {
            let columns = &mut level.relations[usize::from(column.relation)];
            columns[usize::from(column.column)] = (Planned::Column(key.clone()), ty.clone());
        }
        let mut inner = Stage { plan: domain.distinct()?.build()?, level, keys };
        inner.plan = self.pool(&mut inner, pool, select)?;
        self.conditions(&mut inner, conditions)?;
        let Stage { plan, mut level, keys } = inner;
        take_columns(&mut stage.level, &mut level, pool);
        Ok((plan, keys))
    }

    /// What tells rows of the domain, and rows with other values of these columns, apart.
    fn values_of(&self, stage: &Stage, beside: &BTreeSet<ColumnRef>) -> Result<Vec<Typed>> {
        let keys = stage.keys.iter().map(|key| typed_column(&stage.plan, key));
        keys.chain(beside.iter().map(|column| self.column_of(&stage.level, *column))).collect()
    }

    /// A left join with such a side.
    pub(super) fn left_join_around(
        &self,
        stage: &mut Stage,
        left: LogicalPlan,
        pool: &Pool,
        select: &Select,
    ) -> Result<LogicalPlan> {
        stage.plan = self.readable_twice(left)?;
        let left = stage.plan.clone();
        let beside = columns_beside(pool, select);
        let (right, keys) = self.keyed_side(stage, &left, (pool, &[]), &beside, select)?;
        let values = self.values_of(stage, &beside)?;
        self.left_dependent(stage, (left, right), equal(values, keys), pool)
    }

    /// A full join of such sides, beside the rows of `plan`.
    pub(super) fn full_join_around(
        &self,
        stage: &mut Stage,
        plan: LogicalPlan,
        [left_pool, right_pool]: [&Pool; 2],
        on: &[Condition],
        select: &Select,
    ) -> Result<LogicalPlan> {
        stage.plan = self.readable_twice(plan)?;
        let plan = stage.plan.clone();
        let mut beside = columns_beside(left_pool, select);
        beside.append(&mut columns_beside(right_pool, select));
        let side = |stage: &mut Stage, pool: &Pool| {
            self.keyed_side(stage, &plan, (pool, &pool.conditions), &beside, select)
        };
        let (left, left_keys) = side(stage, left_pool)?;
        let (right, right_keys) = side(stage, right_pool)?;
        let count = left_keys.len();
        let mut level = stage.level.clone();
        level.replace(&stage.keys.iter().zip(&left_keys).collect::<HashMap<_, _>>())?;
        let columns = |keys: &[Column]| keys.iter().cloned().map(Planned::Column).collect::<Vec<_>>();
        let keys: Equal = columns(&left_keys).into_iter().zip(columns(&right_keys)).collect();
        let mut inner = Stage { plan: LogicalPlan::default(), level, keys: [left_keys, right_keys].concat() };
        let joined = if on.iter().any(|condition| has_query(&condition.expr)) {
            let on: Vec<&Condition> = on.iter().collect();
            self.joined_in_parts(&mut inner, (left, right), keys, &on, true)?
        } else {
            let on = on.iter().map(|condition| self.expr(&inner.level, &condition.expr));
            dependent(left, right, keys, all_of(on.collect::<Result<_>>()?), JoinType::Full)?
        };
        take_columns(&mut stage.level, &mut inner.level, left_pool);
        take_columns(&mut stage.level, &mut inner.level, right_pool);
        let (joined, keys) = self.either_key(joined, inner.keys.split_at(count))?;
        let values = self.values_of(stage, &beside)?;
        dependent(plan, joined, equal(values, keys), None, JoinType::Inner)
    }

    /// The rows of a full join with the keys of whichever side they have.
    fn either_key(
        &self,
        joined: LogicalPlan,
        (left, right): (&[Column], &[Column]),
    ) -> Result<(LogicalPlan, Vec<Column>)> {
        let mut exprs: Vec<Planned> = joined.schema().columns().into_iter().map(Planned::Column).collect();
        let mut keys = Vec::with_capacity(left.len());
        for (left, right) in left.iter().zip(right) {
            let key = self.column("of");
            let either = [left, right].map(|key| Planned::Column(key.clone()));
            exprs.push(coalesce().call(either.to_vec()).alias(&key.name));
            keys.push(key);
        }
        Ok((LogicalPlanBuilder::from(joined).project(exprs)?.build()?, keys))
    }
}

fn equal(values: Vec<Typed>, keys: Vec<Column>) -> Equal {
    let pairs = values.into_iter().zip(keys);
    pairs.map(|((value, _), key)| (value, Planned::Column(key))).collect()
}

/// Takes the columns of a pool's relations.
fn take_columns(into: &mut Level, from: &mut Level, pool: &Pool) {
    for (number, (into, from)) in into.relations.iter_mut().zip(&mut from.relations).enumerate() {
        if pool.relations() & (1 << number) != 0 {
            *into = std::mem::take(from);
        }
    }
}

/// The columns of relations beside a pool that its items read: those of LATERAL.
pub(super) fn columns_beside(pool: &Pool, select: &Select) -> BTreeSet<ColumnRef> {
    let mut found = BTreeSet::new();
    columns_read(pool, select, &mut found);
    found.retain(|column| pool.relations() & (1 << column.relation) == 0);
    found
}

fn columns_read(pool: &Pool, select: &Select, found: &mut BTreeSet<ColumnRef>) {
    for item in &pool.items {
        let number = match item {
            Item::One { relation, .. } => usize::from(*relation),
            Item::Left { pool, .. } => {
                columns_read(pool, select, found);
                continue;
            }
            Item::Full { left, right, .. } => {
                columns_read(left, select, found);
                columns_read(right, select, found);
                continue;
            }
        };
        let relation = &select.relations[number];
        let inside: BTreeSet<ColumnRef> = match &relation.source {
            RelationSource::Lateral(query) => free_columns(query),
            _ => {
                generator(relation).into_iter().flat_map(|(_, args)| args).flat_map(columns_inside).collect()
            }
        };
        let own = inside.into_iter().filter(|column| column.depth == 1);
        found.extend(own.map(|column| ColumnRef { depth: 0, ..column }));
    }
}
