//! The expressions of bound queries and changes, to be changed.

use super::tree::{
    Body, Change, Cte, Distinct, FrameBound, Item, OrderBy, OrderKey, Pool, Query, Relation, RelationSource,
    Select, Target, Update, WindowCall,
};
use crate::expr::Expr;

/// What is called for each expression.
type Edit<'v> = &'v mut dyn FnMut(&mut Expr);

impl Query {
    /// Calls `edit` for every expression of a bound query and of those it is made of, but not for the parts
    /// of these, nor for queries inside of them.
    pub fn each_expr_mut(&mut self, edit: Edit<'_>) {
        self.ctes.iter_mut().for_each(|one| cte(one, edit));
        match &mut self.body {
            Body::Select(select) => select.each_expr_mut(edit),
            Body::Values(rows) => rows.iter_mut().flatten().for_each(&mut *edit),
            Body::Nested(inner) => inner.each_expr_mut(edit),
            Body::Set(set) => {
                set.left.each_expr_mut(edit);
                set.right.each_expr_mut(edit);
            }
        }
        order(&mut self.order, edit);
        self.limit.iter_mut().chain(&mut self.offset).for_each(edit);
    }
}

fn cte(cte: &mut Cte, edit: Edit<'_>) {
    cte.query.each_expr_mut(edit);
    if let Some(repeated) = &mut cte.repeated {
        repeated.query.each_expr_mut(edit);
    }
}

impl Select {
    pub(super) fn each_expr_mut(&mut self, edit: Edit<'_>) {
        relations(&mut self.relations, edit);
        pool(&mut self.from, edit);
        if let Some(grouping) = &mut self.grouping {
            grouping.keys.iter_mut().for_each(&mut *edit);
            for aggregate in &mut grouping.aggregates {
                aggregate.args.iter_mut().chain(&mut aggregate.filter).for_each(&mut *edit);
                order(&mut aggregate.order, edit);
            }
            grouping.having.iter_mut().for_each(&mut *edit);
        }
        self.windows.iter_mut().for_each(|call| window(call, edit));
        self.outputs.iter_mut().for_each(&mut *edit);
        if let Distinct::On(keys) = &mut self.distinct {
            keys.iter_mut().for_each(edit);
        }
    }
}

impl Change {
    /// As [`Query::each_expr_mut`].
    pub fn each_expr_mut(&mut self, edit: Edit<'_>) {
        match self {
            Self::Insert(insert) => {
                insert.source.each_expr_mut(edit);
                insert.defaults.iter_mut().for_each(|(_, default)| edit(default));
            }
            Self::Update(update) => {
                target(&mut update.target, edit);
                if update.target.late.is_none() {
                    update.set.iter_mut().for_each(|(_, value)| edit(value));
                }
            }
            Self::Delete(rows) => target(rows, edit),
            Self::Merge(merge) => target(&mut merge.target, edit),
        }
        self.each_late_expr_mut(edit);
    }

    /// As [`Query::each_expr_mut`] for what depends on each row as it is found or made: ON CONFLICT, WHEN of
    /// MERGE, RETURNING, [what calls routines](Target::late).
    pub fn each_late_expr_mut(&mut self, edit: Edit<'_>) {
        self.each_judging_expr_mut(edit);
        match self {
            Self::Insert(insert) => {
                if let Some(update) = insert.conflict.as_mut().and_then(|conflict| conflict.update.as_mut()) {
                    update.set.iter_mut().for_each(|(_, value)| edit(value));
                    update.filter.iter_mut().for_each(&mut *edit);
                }
                insert.returning.iter_mut().for_each(edit);
            }
            Self::Update(Update { target, .. }) | Self::Delete(target) => {
                target.returning.iter_mut().for_each(edit);
            }
            Self::Merge(merge) => {
                for clause in &mut merge.clauses {
                    clause.condition.iter_mut().for_each(&mut *edit);
                    clause.action.values_mut().iter_mut().for_each(|(_, value)| edit(value));
                }
            }
        }
    }

    /// As [`Query::each_expr_mut`] for [what calls routines](Target::late).
    pub(super) fn each_judging_expr_mut(&mut self, edit: Edit<'_>) {
        let (target, set) = match self {
            Self::Update(Update { target, set }) => (target, set.as_mut_slice()),
            Self::Delete(target) => (target, [].as_mut_slice()),
            Self::Insert(_) | Self::Merge(_) => return,
        };
        if let Some(conditions) = &mut target.late {
            conditions.iter_mut().chain(set.iter_mut().map(|(_, value)| value)).for_each(edit);
        }
    }
}

fn target(target: &mut Target, edit: Edit<'_>) {
    target.ctes.iter_mut().for_each(|one| cte(one, edit));
    relations(&mut target.relations, edit);
    pool(&mut target.from, edit);
}

fn relations(relations: &mut [Relation], edit: Edit<'_>) {
    for relation in relations {
        match &mut relation.source {
            RelationSource::Query(query) | RelationSource::Lateral(query) => query.each_expr_mut(edit),
            RelationSource::Series(args) | RelationSource::Cte(_, args) => {
                args.iter_mut().for_each(&mut *edit)
            }
            RelationSource::Unnest(array) => edit(array),
            RelationSource::Routine(call, _) => call.args.iter_mut().for_each(&mut *edit),
            RelationSource::Table(_) | RelationSource::File(_) | RelationSource::Given => {}
        }
    }
}

fn pool(from: &mut Pool, edit: Edit<'_>) {
    from.items.iter_mut().for_each(|item| match item {
        Item::One { .. } => {}
        Item::Left { pool: inner, .. } => pool(inner, edit),
        Item::Full { left, right, on, .. } => {
            pool(left, edit);
            pool(right, edit);
            on.iter_mut().for_each(|condition| edit(&mut condition.expr));
        }
    });
    from.conditions.iter_mut().for_each(|condition| edit(&mut condition.expr));
}

fn order(keys: &mut [OrderKey], edit: Edit<'_>) {
    for key in keys {
        if let OrderBy::Expr(expr) = &mut key.by {
            edit(expr);
        }
    }
}

fn window(call: &mut WindowCall, edit: Edit<'_>) {
    call.args.iter_mut().chain(&mut call.filter).chain(&mut call.partition).for_each(&mut *edit);
    order(&mut call.order, edit);
    for bound in [&mut call.frame.start, &mut call.frame.end] {
        if let FrameBound::Before(by) | FrameBound::After(by) = bound {
            edit(by);
        }
    }
}
