//! The columns around it that a query or an expression reads: what makes it depend on rows.

use std::collections::{BTreeMap, BTreeSet};

use albireo_semantics::expr::{ColumnRef, Expr, ExprKind};
use albireo_semantics::query::tree::{Body, Cte, OrderBy, Query, RelationSource, Select};
use albireo_semantics::types::Type;

/// Columns and their types.
type Columns = BTreeMap<ColumnRef, Type>;

/// Whether an expression holds a query.
pub(super) fn has_query(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part.kind, ExprKind::Subquery(_)));
    found
}

/// The columns around that an expression names, those of queries in it included.
pub(super) fn columns_around(expr: &Expr) -> BTreeSet<ColumnRef> {
    let mut found = Columns::new();
    expr_columns(expr, 0, &mut found);
    found.into_keys().collect()
}

/// The columns of all kinds that an expression names, those of queries in it included, as a query inside of it
/// would.
pub(super) fn columns_inside(expr: &Expr) -> BTreeSet<ColumnRef> {
    let mut found = Columns::new();
    expr_columns(expr, -1, &mut found);
    found.into_keys().collect()
}

/// The columns of queries around that a query reads, as its outermost SELECT sees them.
pub(super) fn free_columns(query: &Query) -> BTreeSet<ColumnRef> {
    let mut found = Columns::new();
    query_columns(query, 0, &mut found);
    found.into_keys().collect()
}

/// As [`free_columns`], of a query of WITH with its repeated part.
pub(super) fn free_columns_of_cte(cte: &Cte) -> Vec<Expr> {
    let mut found = Columns::new();
    cte_columns(cte, 0, &mut found);
    found.into_iter().map(|(column, ty)| Expr { kind: ExprKind::Column(column), ty }).collect()
}

fn cte_columns(cte: &Cte, level: i32, into: &mut Columns) {
    query_columns(&cte.query, level, into);
    if let Some(repeated) = &cte.repeated {
        query_columns(&repeated.query, level, into);
    }
}

/// `level`: how many SELECTs of the query are around.
fn query_columns(query: &Query, level: i32, into: &mut Columns) {
    for cte in &query.ctes {
        cte_columns(cte, level, into);
    }
    match &query.body {
        Body::Select(select) => select_columns(select, level, into),
        // What stands outside of any SELECT counts from the query around.
        Body::Values(rows) => rows.iter().flatten().for_each(|expr| expr_columns(expr, level - 1, into)),
        Body::Nested(inner) => query_columns(inner, level, into),
        Body::Set(set) => {
            query_columns(&set.left, level, into);
            query_columns(&set.right, level, into);
        }
    }
    for key in &query.order {
        if let OrderBy::Expr(expr) = &key.by {
            expr_columns(expr, level, into);
        }
    }
    query.limit.iter().chain(&query.offset).for_each(|expr| expr_columns(expr, level - 1, into));
}

fn select_columns(select: &Select, level: i32, into: &mut Columns) {
    for relation in &select.relations {
        match &relation.source {
            RelationSource::Query(query) => query_columns(query, level, into),
            RelationSource::Lateral(query) => query_columns(query, level + 1, into),
            _ => {}
        }
    }
    select.each_own_expr(&mut |expr| expr_columns(expr, level, into));
}

fn expr_columns(expr: &Expr, level: i32, into: &mut Columns) {
    expr.walk(&mut |part| match &part.kind {
        ExprKind::Column(column) if i32::from(column.depth) > level => {
            let depth = (i32::from(column.depth) - level) as u16;
            into.insert(ColumnRef { depth, ..*column }, part.ty.clone());
        }
        ExprKind::Subquery(subquery) => query_columns(&subquery.plan.query, level + 1, into),
        _ => {}
    });
}
