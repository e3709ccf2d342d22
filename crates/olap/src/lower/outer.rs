//! Outer joins inside of a query whose sides read columns around it.
//!
//! Responsible for: such a side for each row of the domain, so that rows of both sides that are for the same row
//! of the query around meet. Not responsible for: any other outer join (`from`).

use std::collections::HashMap;

use albireo_semantics::query::tree::{Condition, Item, Pool, RelationSource, Select};
use datafusion::common::{Column, JoinType, Result};
use datafusion::functions::core::coalesce;
use datafusion::logical_expr::{Expr as Planned, LogicalPlan, LogicalPlanBuilder};

use super::from::{dependent, generator, reads_outside};
use super::select::Stage;
use super::subquery::{free_columns, has_query};
use super::{Lowering, all_of, unsupported};

impl Lowering<'_> {
    /// Whether a side of an outer join, or a condition of it, reads columns of queries around.
    pub(super) fn reads_around(&self, pool: &Pool, select: &Select) -> bool {
        let conditions = pool.conditions.iter().any(|condition| reads_outside(&condition.expr));
        conditions || self.items_read_around(pool, select)
    }

    /// Whether the items of a side do.
    pub(super) fn items_read_around(&self, pool: &Pool, select: &Select) -> bool {
        pool.items.iter().any(|item| self.item_reads_around(item, select))
    }

    fn item_reads_around(&self, item: &Item, select: &Select) -> bool {
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
            RelationSource::Cte(id) => self.keyed.borrow().contains_key(id),
            _ => generator(relation).is_some_and(|(_, args)| args.iter().any(reads_outside)),
        }
    }

    /// The items of a side for each row of the domain, which `plan` has the keys of, and the side's own keys.
    pub(super) fn keyed_side(
        &self,
        stage: &mut Stage,
        plan: &LogicalPlan,
        pool: &Pool,
        select: &Select,
        conditions: &[Condition],
    ) -> Result<(LogicalPlan, Vec<Column>)> {
        let keys: Vec<Column> = stage.keys.iter().map(|_| self.column("of")).collect();
        let pairs = stage.keys.iter().zip(&keys);
        let exprs = pairs.clone().map(|(old, new)| Planned::Column(old.clone()).alias(&new.name));
        let exprs: Vec<Planned> = exprs.collect();
        let domain = LogicalPlanBuilder::from(plan.clone()).project(exprs)?.distinct()?.build()?;
        let mut inner = Stage { plan: domain, level: stage.level.clone(), keys: keys.clone() };
        inner.level.replace(&pairs.collect::<HashMap<_, _>>())?;
        inner.plan = self.pool(&mut inner, pool, select)?;
        self.conditions(&mut inner, conditions)?;
        for (number, columns) in inner.level.relations.into_iter().enumerate() {
            if pool.relations() & (1 << number) != 0 {
                stage.level.relations[number] = columns;
            }
        }
        Ok((inner.plan, inner.keys))
    }

    /// A left join with such a side.
    pub(super) fn left_join_around(
        &self,
        stage: &mut Stage,
        left: LogicalPlan,
        pool: &Pool,
        select: &Select,
    ) -> Result<LogicalPlan> {
        let (right, keys) = self.keyed_side(stage, &left, pool, select, &[])?;
        self.left_dependent(stage, (left, right), equal(&stage.keys, &keys), pool)
    }

    /// A full join of such sides, beside the rows of `plan`.
    pub(super) fn full_join_around(
        &self,
        stage: &mut Stage,
        plan: LogicalPlan,
        sides: [&Pool; 2],
        on: &[Condition],
        select: &Select,
    ) -> Result<LogicalPlan> {
        if on.iter().any(|condition| has_query(&condition.expr)) {
            return Err(unsupported("a query in the condition of a full join that reads columns around it"));
        }
        let [left, right] = sides;
        let (left, left_keys) = self.keyed_side(stage, &plan, left, select, &left.conditions)?;
        let (right, right_keys) = self.keyed_side(stage, &plan, right, select, &right.conditions)?;
        let mut level = stage.level.clone();
        level.replace(&stage.keys.iter().zip(&left_keys).collect::<HashMap<_, _>>())?;
        let on = on.iter().map(|condition| self.expr(&level, &condition.expr));
        let on = all_of(on.collect::<Result<_>>()?);
        let joined = dependent(left, right, equal(&left_keys, &right_keys), on, JoinType::Full)?;
        let mut exprs: Vec<Planned> = joined.schema().columns().into_iter().map(Planned::Column).collect();
        let mut keys = Vec::with_capacity(left_keys.len());
        for (left, right) in left_keys.into_iter().zip(right_keys) {
            let key = self.column("of");
            let either = coalesce().call(vec![Planned::Column(left), Planned::Column(right)]);
            exprs.push(either.alias(&key.name));
            keys.push(key);
        }
        let joined = LogicalPlanBuilder::from(joined).project(exprs)?.build()?;
        dependent(plan, joined, equal(&stage.keys, &keys), None, JoinType::Inner)
    }
}

fn equal(left: &[Column], right: &[Column]) -> Vec<(Planned, Planned)> {
    let pairs = left.iter().cloned().zip(right.iter().cloned());
    pairs.map(|(left, right)| (Planned::Column(left), Planned::Column(right))).collect()
}
