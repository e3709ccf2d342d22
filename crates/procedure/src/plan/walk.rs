//! The expressions of queries and changes.

use super::tree::{
    Access, Body, Change, Distinct, Grouping, OrderBy, OrderKey, Query, Relation, RelationSource, Select,
    Step, Target,
};
use crate::expr::{Expr, RowsOf};

/// What is called for each expression.
type Visit<'v> = &'v mut dyn FnMut(&Expr);

impl Query {
    /// Calls `visit` for every expression of the query and of those it is made of, but not for the parts
    /// of these, nor for queries inside of them. One that gives both an index and a partition comes twice.
    pub fn each_expr(&self, visit: Visit<'_>) {
        for cte in &self.ctes {
            cte.query.each_expr(visit);
        }
        match &self.body {
            Body::Select(select) => select_exprs(select, visit),
            Body::Values(rows) => rows.iter().flatten().for_each(&mut *visit),
            Body::Nested(inner) => inner.each_expr(visit),
            Body::Set(set) => {
                set.left.each_expr(visit);
                set.right.each_expr(visit);
            }
        }
        order(&self.order, visit);
        self.limit.iter().chain(&self.offset).for_each(visit);
    }
}

impl Query {
    /// Calls `visit` for every routine in FROM, but not for those in queries inside of expressions.
    pub fn each_routine(&self, visit: &mut dyn FnMut(&RowsOf)) {
        for cte in &self.ctes {
            cte.query.each_routine(visit);
        }
        match &self.body {
            Body::Select(select) => routines(&select.relations, visit),
            Body::Values(_) => {}
            Body::Nested(inner) => inner.each_routine(visit),
            Body::Set(set) => {
                set.left.each_routine(visit);
                set.right.each_routine(visit);
            }
        }
    }
}

fn routines(relations: &[Relation], visit: &mut dyn FnMut(&RowsOf)) {
    for relation in relations {
        match &relation.source {
            RelationSource::Query(query) => query.each_routine(visit),
            RelationSource::Routine(call, _) => visit(call),
            _ => {}
        }
    }
}

impl Change {
    /// As [`Query::each_routine`].
    pub fn each_routine(&self, visit: &mut dyn FnMut(&RowsOf)) {
        match self {
            Self::Insert(insert) => insert.source.each_routine(visit),
            Self::Update(update) => routines(&update.target.relations, visit),
            Self::Delete(target) => routines(&target.relations, visit),
        }
    }

    /// As [`Query::each_expr`]; those of RETURNING, which are evaluated last, come last.
    pub fn each_expr(&self, visit: Visit<'_>) {
        self.each_cause(visit);
        self.returning().iter().for_each(visit);
    }

    /// RETURNING.
    pub fn returning(&self) -> &[Expr] {
        match self {
            Self::Insert(insert) => &insert.returning,
            Self::Update(update) => &update.target.returning,
            Self::Delete(target) => &target.returning,
        }
    }

    /// As [`Change::each_expr`] without RETURNING.
    pub fn each_cause(&self, visit: Visit<'_>) {
        match self {
            Self::Insert(insert) => {
                insert.source.each_expr(visit);
                insert.defaults.iter().for_each(|(_, default)| visit(default));
                if let Some(update) = insert.conflict.as_ref().and_then(|conflict| conflict.update.as_ref()) {
                    update.set.iter().for_each(|(_, value)| visit(value));
                    update.filter.iter().for_each(visit);
                }
            }
            Self::Update(update) => {
                target(&update.target, visit);
                update.set.iter().for_each(|(_, value)| visit(value));
            }
            Self::Delete(rows) => target(rows, visit),
        }
    }
}

fn target(target: &Target, visit: Visit<'_>) {
    relations(&target.relations, visit);
    target.constants.iter().for_each(&mut *visit);
    steps(&target.steps, visit);
}

fn select_exprs(select: &Select, visit: Visit<'_>) {
    relations(&select.relations, visit);
    select.constants.iter().for_each(&mut *visit);
    steps(&select.steps, visit);
    if let Some(grouping) = &select.grouping {
        grouped(grouping, visit);
    }
    select.outputs.iter().for_each(&mut *visit);
    if let Distinct::On(keys) = &select.distinct {
        keys.iter().for_each(visit);
    }
}

fn grouped(grouping: &Grouping, visit: Visit<'_>) {
    grouping.keys.iter().for_each(&mut *visit);
    for aggregate in &grouping.aggregates {
        aggregate.args.iter().chain(&aggregate.filter).for_each(&mut *visit);
        order(&aggregate.order, visit);
    }
    grouping.having.iter().for_each(visit);
}

fn order(keys: &[OrderKey], visit: Visit<'_>) {
    for key in keys {
        if let OrderBy::Expr(expr) = &key.by {
            visit(expr);
        }
    }
}

fn relations(relations: &[Relation], visit: Visit<'_>) {
    for relation in relations {
        match &relation.source {
            RelationSource::Query(query) => query.each_expr(visit),
            RelationSource::Series(args) => args.iter().for_each(&mut *visit),
            RelationSource::Unnest(array) => visit(array),
            RelationSource::Routine(call, _) => call.args.iter().for_each(&mut *visit),
            RelationSource::Table(_) | RelationSource::Cte(_) | RelationSource::Given => {}
        }
    }
}

fn steps(all: &[Step], visit: Visit<'_>) {
    for step in all {
        let filters = match step {
            Step::Inner { access: found, filters } => {
                access(found, visit);
                filters
            }
            Step::Left { steps: inner, filters, .. } => {
                steps(inner, visit);
                filters
            }
        };
        filters.iter().for_each(&mut *visit);
    }
}

fn access(access: &Access, visit: Visit<'_>) {
    if let Some(index) = &access.index {
        index.equal.iter().for_each(|bound| visit(&bound.value));
        let range = index.range.iter().flat_map(|range| range.low.iter().chain(&range.high));
        range.for_each(|(bound, _)| visit(bound));
    }
    access.site.iter().for_each(|bound| visit(&bound.value));
    if let Some(hash) = &access.hash {
        hash.keys.iter().for_each(|(_, key)| visit(key));
        hash.filters.iter().for_each(visit);
    }
}
