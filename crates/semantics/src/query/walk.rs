//! The expressions of queries and changes.

use std::collections::BTreeSet;

use albireo_sql::TableDef;

use super::tree::{
    Access, Body, Change, Cte, Distinct, FrameBound, Grouping, Item, Merge, OrderBy, OrderKey, Pool, Query,
    Relation, RelationSource, Select, Step, Target, Update, WindowCall,
};
use crate::expr::{Expr, ExprKind, RowsOf};

/// What is called for each expression.
type Visit<'v> = &'v mut dyn FnMut(&Expr);

impl Query {
    /// Calls `visit` for every expression of the query and of those it is made of, but not for the parts
    /// of these, nor for queries inside of them. One that gives both an index and a partition comes twice.
    pub fn each_expr(&self, visit: Visit<'_>) {
        self.ctes.iter().for_each(|cte| cte.each_expr(visit));
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

impl Cte {
    fn each_expr(&self, visit: Visit<'_>) {
        self.query.each_expr(visit);
        if let Some(repeated) = &self.repeated {
            repeated.query.each_expr(visit);
        }
    }

    fn each_relation(&self, visit: &mut dyn FnMut(&Relation)) {
        self.query.each_relation(visit);
        if let Some(repeated) = &self.repeated {
            repeated.query.each_relation(visit);
        }
    }
}

impl Query {
    /// Calls `visit` for every table that it reads, but not for those of queries inside of expressions.
    pub fn each_table(&self, visit: &mut dyn FnMut(&TableDef)) {
        self.each_relation(&mut |relation| {
            if let RelationSource::Table(table) = &relation.source {
                visit(table);
            }
        });
    }

    /// Calls `visit` for every routine in FROM, but not for those in queries inside of expressions.
    pub fn each_routine(&self, visit: &mut dyn FnMut(&RowsOf)) {
        self.each_relation(&mut |relation| routine(relation, visit));
    }

    /// The queries of a WITH around it that it reads, or that queries in its expressions do.
    pub fn ctes_around(&self) -> BTreeSet<u32> {
        fn look(query: &Query, read: &mut BTreeSet<u32>, defined: &mut BTreeSet<u32>) {
            query.each_cte(&mut |cte| {
                defined.insert(cte.id);
            });
            query.each_relation(&mut |relation| {
                if let RelationSource::Cte(id, _) = &relation.source {
                    read.insert(*id);
                }
            });
            query.each_expr(&mut |expr| {
                expr.walk(&mut |part| {
                    if let ExprKind::Subquery(subquery) = &part.kind {
                        look(&subquery.plan.query, read, defined);
                    }
                });
            });
        }
        let (mut read, mut defined) = (BTreeSet::new(), BTreeSet::new());
        look(self, &mut read, &mut defined);
        &read - &defined
    }

    /// Calls `visit` for every query of a WITH in it, but not for those of queries inside of expressions.
    pub fn each_cte(&self, visit: &mut dyn FnMut(&Cte)) {
        for cte in &self.ctes {
            visit(cte);
            cte.query.each_cte(visit);
            if let Some(repeated) = &cte.repeated {
                repeated.query.each_cte(visit);
            }
        }
        match &self.body {
            Body::Select(select) => {
                for relation in &select.relations {
                    if let RelationSource::Query(query) | RelationSource::Lateral(query) = &relation.source {
                        query.each_cte(visit);
                    }
                }
            }
            Body::Values(_) => {}
            Body::Nested(inner) => inner.each_cte(visit),
            Body::Set(set) => {
                set.left.each_cte(visit);
                set.right.each_cte(visit);
            }
        }
    }

    /// Calls `visit` for every relation in FROM, but not for those of queries inside of expressions.
    pub fn each_relation(&self, visit: &mut dyn FnMut(&Relation)) {
        self.ctes.iter().for_each(|cte| cte.each_relation(visit));
        match &self.body {
            Body::Select(select) => each_relation(&select.relations, visit),
            Body::Values(_) => {}
            Body::Nested(inner) => inner.each_relation(visit),
            Body::Set(set) => {
                set.left.each_relation(visit);
                set.right.each_relation(visit);
            }
        }
    }
}

fn each_relation(relations: &[Relation], visit: &mut dyn FnMut(&Relation)) {
    for relation in relations {
        visit(relation);
        if let RelationSource::Query(query) | RelationSource::Lateral(query) = &relation.source {
            query.each_relation(visit);
        }
    }
}

fn routine(relation: &Relation, visit: &mut dyn FnMut(&RowsOf)) {
    if let RelationSource::Routine(call, _) = &relation.source {
        visit(call);
    }
}

impl Change {
    /// As [`Query::each_routine`].
    pub fn each_routine(&self, visit: &mut dyn FnMut(&RowsOf)) {
        match self {
            Self::Insert(insert) => insert.source.each_routine(visit),
            Self::Update(Update { target, .. })
            | Self::Delete(target)
            | Self::Merge(Merge { target, .. }) => {
                let mut look = |relation: &Relation| routine(relation, visit);
                target.ctes.iter().for_each(|cte| cte.each_relation(&mut look));
                each_relation(&target.relations, &mut look);
            }
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
            Self::Update(Update { target, .. })
            | Self::Delete(target)
            | Self::Merge(Merge { target, .. }) => &target.returning,
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
            Self::Merge(merge) => {
                target(&merge.target, visit);
                for clause in &merge.clauses {
                    clause.condition.iter().for_each(&mut *visit);
                    clause.action.values().iter().for_each(|(_, value)| visit(value));
                }
            }
        }
    }
}

fn target(target: &Target, visit: Visit<'_>) {
    target.ctes.iter().for_each(|cte| cte.each_expr(visit));
    relations(&target.relations, visit);
    target.each_plain_expr(visit);
}

impl Target {
    /// Calls `visit` for every expression but those of queries that are relations, and RETURNING.
    pub fn each_own_expr(&self, visit: Visit<'_>) {
        arguments(&self.relations, visit);
        self.each_plain_expr(visit);
    }

    fn each_plain_expr(&self, visit: Visit<'_>) {
        pool(&self.from, visit);
        self.constants.iter().for_each(&mut *visit);
        steps(&self.steps, visit);
        self.late.iter().flatten().for_each(visit);
    }
}

fn select_exprs(select: &Select, visit: Visit<'_>) {
    relations(&select.relations, visit);
    select.each_plain_expr(visit);
}

impl Select {
    /// Calls `visit` for every expression but those of queries that are relations.
    pub fn each_own_expr(&self, visit: Visit<'_>) {
        arguments(&self.relations, visit);
        self.each_plain_expr(visit);
    }

    fn each_plain_expr(&self, visit: Visit<'_>) {
        pool(&self.from, visit);
        self.constants.iter().for_each(&mut *visit);
        steps(&self.steps, visit);
        if let Some(grouping) = &self.grouping {
            grouped(grouping, visit);
        }
        self.windows.iter().for_each(|call| window(call, visit));
        self.outputs.iter().for_each(&mut *visit);
        if let Distinct::On(keys) = &self.distinct {
            keys.iter().for_each(visit);
        }
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
            RelationSource::Query(query) | RelationSource::Lateral(query) => query.each_expr(visit),
            _ => arguments(std::slice::from_ref(relation), visit),
        }
    }
}

/// The arguments of functions in FROM.
fn arguments(relations: &[Relation], visit: Visit<'_>) {
    for relation in relations {
        match &relation.source {
            RelationSource::Series(args) | RelationSource::Cte(_, args) => args.iter().for_each(&mut *visit),
            RelationSource::Unnest(array) => visit(array),
            RelationSource::Routine(call, _) => call.args.iter().for_each(&mut *visit),
            RelationSource::Table(_)
            | RelationSource::File(_)
            | RelationSource::Query(_)
            | RelationSource::Lateral(_)
            | RelationSource::Given => {}
        }
    }
}

fn pool(from: &Pool, visit: Visit<'_>) {
    from.items.iter().for_each(|item| match item {
        Item::One { .. } => {}
        Item::Left { pool: inner, .. } => pool(inner, visit),
        Item::Full { left, right, on, .. } => {
            pool(left, visit);
            pool(right, visit);
            on.iter().for_each(|condition| visit(&condition.expr));
        }
    });
    from.conditions.iter().for_each(|condition| visit(&condition.expr));
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
        index.range.iter().filter_map(|range| range.begins.as_ref()).for_each(&mut *visit);
    }
    access.site.iter().for_each(|bound| visit(&bound.value));
    if let Some(hash) = &access.hash {
        hash.keys.iter().for_each(|(_, key)| visit(key));
        hash.filters.iter().for_each(visit);
    }
}

fn window(call: &WindowCall, visit: Visit<'_>) {
    call.args.iter().chain(&call.filter).chain(&call.partition).for_each(&mut *visit);
    order(&call.order, visit);
    for bound in [&call.frame.start, &call.frame.end] {
        if let FrameBound::Before(by) | FrameBound::After(by) = bound {
            visit(by);
        }
    }
}
