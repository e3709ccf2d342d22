//! All expressions of a plan, those inside of others and of queries in them too.

use super::tree::Query;
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
        self.change.each_expr(&mut |tree| expr(tree, visit));
    }
}

fn query(tree: &Query, visit: Visit<'_>) {
    tree.each_expr(&mut |tree| expr(tree, visit));
}

fn expr(tree: &Expr, visit: Visit<'_>) {
    tree.walk(&mut |part| {
        visit(part);
        if let ExprKind::Subquery(subquery) = &part.kind {
            query(&subquery.plan.query, visit);
        }
    });
}
