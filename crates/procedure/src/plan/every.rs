//! The expressions of a plan.

use super::tree::{
    Access, Body, Change, Distinct, OrderBy, OrderKey, Query, Relation, RelationSource, Select, Step, Target,
};
use super::{ChangePlan, SelectPlan};
use crate::expr::{Expr, ExprKind};

type Visit<'v> = &'v mut dyn FnMut(&Expr);

impl SelectPlan {
    /// Calls `visit` for every expression, with all within it and within its queries.
    pub fn each_expr(&self, visit: Visit<'_>) {
        query(&self.query, visit);
    }
}

impl ChangePlan {
    /// Calls `visit` for every expression, with all within it and within its queries.
    pub fn each_expr(&self, visit: Visit<'_>) {
        match &*self.change {
            Change::Insert(insert) => {
                query(&insert.source, visit);
                insert.defaults.iter().for_each(|(_, value)| expr(value, visit));
                if let Some(update) = insert.conflict.as_ref().and_then(|conflict| conflict.update.as_ref()) {
                    update.set.iter().for_each(|(_, value)| expr(value, visit));
                    update.filter.iter().for_each(|filter| expr(filter, visit));
                }
                exprs(&insert.returning, visit);
            }
            Change::Update(update) => {
                target(&update.target, visit);
                update.set.iter().for_each(|(_, value)| expr(value, visit));
                exprs(&update.target.returning, visit);
            }
            Change::Delete(deleted) => {
                target(deleted, visit);
                exprs(&deleted.returning, visit);
            }
        }
    }
}

fn target(target: &Target, visit: Visit<'_>) {
    relations(&target.relations, visit);
    exprs(&target.constants, visit);
    steps(&target.steps, visit);
}

fn query(tree: &Query, visit: Visit<'_>) {
    tree.ctes.iter().for_each(|cte| query(&cte.query, visit));
    match &tree.body {
        Body::Select(tree) => select(tree, visit),
        Body::Values(rows) => rows.iter().for_each(|row| exprs(row, visit)),
        Body::Nested(inner) => query(inner, visit),
        Body::Set(set) => {
            query(&set.left, visit);
            query(&set.right, visit);
        }
    }
    order(&tree.order, visit);
    tree.limit.iter().chain(&tree.offset).for_each(|count| expr(count, visit));
}

fn select(tree: &Select, visit: Visit<'_>) {
    relations(&tree.relations, visit);
    exprs(&tree.constants, visit);
    steps(&tree.steps, visit);
    if let Some(grouping) = &tree.grouping {
        exprs(&grouping.keys, visit);
        for aggregate in &grouping.aggregates {
            exprs(&aggregate.args, visit);
            aggregate.filter.iter().for_each(|filter| expr(filter, visit));
            order(&aggregate.order, visit);
        }
        grouping.having.iter().for_each(|having| expr(having, visit));
    }
    exprs(&tree.outputs, visit);
    if let Distinct::On(keys) = &tree.distinct {
        exprs(keys, visit);
    }
}

fn order(keys: &[OrderKey], visit: Visit<'_>) {
    for key in keys {
        if let OrderBy::Expr(by) = &key.by {
            expr(by, visit);
        }
    }
}

fn relations(relations: &[Relation], visit: Visit<'_>) {
    for relation in relations {
        match &relation.source {
            RelationSource::Table(_) | RelationSource::Cte(_) | RelationSource::Given => {}
            RelationSource::Query(inner) => query(inner, visit),
            RelationSource::Series(args) => exprs(args, visit),
            RelationSource::Unnest(array) => expr(array, visit),
            RelationSource::Routine(call, _) => exprs(&call.args, visit),
        }
    }
}

fn steps(steps_of: &[Step], visit: Visit<'_>) {
    for step in steps_of {
        match step {
            Step::Inner { access: by, filters } => {
                access(by, visit);
                exprs(filters, visit);
            }
            Step::Left { steps: inner, filters, .. } => {
                steps(inner, visit);
                exprs(filters, visit);
            }
        }
    }
}

fn access(access: &Access, visit: Visit<'_>) {
    if let Some(index) = &access.index {
        index.equal.iter().for_each(|bound| expr(&bound.value, visit));
        if let Some(range) = &index.range {
            range.low.iter().chain(&range.high).for_each(|(end, _)| expr(end, visit));
        }
    }
    access.site.iter().for_each(|bound| expr(&bound.value, visit));
    if let Some(hash) = &access.hash {
        hash.keys.iter().for_each(|(_, key)| expr(key, visit));
        exprs(&hash.filters, visit);
    }
}

fn exprs(list: &[Expr], visit: Visit<'_>) {
    list.iter().for_each(|item| expr(item, visit));
}

fn expr(tree: &Expr, visit: Visit<'_>) {
    tree.walk(&mut |part| {
        visit(part);
        if let ExprKind::Subquery(subquery) = &part.kind {
            query(&subquery.plan.query, visit);
        }
    });
}
