//! Queries of WITH that read columns around them, put in where they are used.
//!
//! Such a query has other rows for each row around; where it is used, it is a query in FROM that counts depths
//! from there. A recursive one stays where it is; where it is used, the columns say which of its rows are meant.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::levels;
use super::tree::{Body, OrderBy, Query, RelationSource, Select};
use crate::expr::{Expr, ExprKind};

/// The query without those of its queries of WITH, by their numbers; they are not recursive.
pub fn inlined(query: &Query, numbers: &BTreeSet<u32>) -> Query {
    let mut whole = query.clone();
    let mut left = std::mem::take(&mut whole.ctes).into_iter();
    let mut kept = Vec::new();
    while let Some(cte) = left.next() {
        if !numbers.contains(&cte.id) {
            kept.push(cte);
            continue;
        }
        let what = Inline { id: cte.id, with: With::Query(&cte.query) };
        let mut rest: Vec<_> = left.collect();
        for later in &mut rest {
            what.in_query(&mut later.query, 0);
            if let Some(repeated) = &mut later.repeated {
                what.in_query(&mut repeated.query, 0);
            }
        }
        what.in_query(&mut whole, 0);
        left = rest.into_iter();
    }
    whole.ctes = kept;
    whole
}

/// The query with these columns around it wherever it uses its recursive query of WITH of this number.
pub fn keyed(query: &mut Query, id: u32, columns: &[Expr]) {
    Inline { id, with: With::Columns(columns) }.in_query(query, 0);
}

struct Inline<'q> {
    id: u32,
    with: With<'q>,
}

/// What is put in.
enum With<'q> {
    Query(&'q Query),
    Columns(&'q [Expr]),
}

impl Inline<'_> {
    /// `depth`: that of columns around the query of WITH where this query stands.
    fn in_query(&self, tree: &mut Query, depth: u16) {
        for cte in &mut tree.ctes {
            self.in_query(&mut cte.query, depth);
            if let Some(repeated) = &mut cte.repeated {
                self.in_query(&mut repeated.query, depth);
            }
        }
        match &mut tree.body {
            Body::Select(select) => {
                self.in_select(select, depth + 1);
                for key in &mut tree.order {
                    if let OrderBy::Expr(expr) = &mut key.by {
                        self.in_expr(expr, depth + 1);
                    }
                }
            }
            Body::Values(rows) => rows.iter_mut().flatten().for_each(|value| self.in_expr(value, depth)),
            Body::Nested(inner) => self.in_query(inner, depth),
            Body::Set(set) => {
                self.in_query(&mut set.left, depth);
                self.in_query(&mut set.right, depth);
            }
        }
        tree.limit.iter_mut().chain(&mut tree.offset).for_each(|limit| self.in_expr(limit, depth));
    }

    fn in_select(&self, tree: &mut Select, depth: u16) {
        for relation in &mut tree.relations {
            match &mut relation.source {
                RelationSource::Cte(id, around) if *id == self.id => match self.with {
                    With::Query(query) => {
                        let mut query = query.clone();
                        levels::raise(&mut query, depth - 1);
                        relation.source = RelationSource::Query(Box::new(query));
                    }
                    With::Columns(columns) => {
                        *around = columns.to_vec();
                        levels::raise_columns(around, depth - 1);
                    }
                },
                RelationSource::Query(query) => self.in_query(query, depth - 1),
                RelationSource::Lateral(query) => self.in_query(query, depth),
                RelationSource::Series(args) => args.iter_mut().for_each(|arg| self.in_expr(arg, depth)),
                RelationSource::Unnest(array) => self.in_expr(array, depth),
                RelationSource::Routine(call, _) => {
                    call.args.iter_mut().for_each(|arg| self.in_expr(arg, depth));
                }
                RelationSource::Table(_)
                | RelationSource::File(_)
                | RelationSource::Cte(..)
                | RelationSource::Given => {}
            }
        }
        let relations = std::mem::take(&mut tree.relations);
        tree.each_expr_mut(&mut |expr| self.in_expr(expr, depth));
        tree.relations = relations;
    }

    fn in_expr(&self, tree: &mut Expr, depth: u16) {
        tree.each_part_mut(&mut |part| self.in_expr(part, depth));
        if let ExprKind::Subquery(subquery) = &mut tree.kind {
            let plan = &mut Arc::make_mut(subquery).plan;
            self.in_query(Arc::make_mut(&mut plan.query), depth);
        }
    }
}
