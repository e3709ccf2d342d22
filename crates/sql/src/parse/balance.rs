//! Makes long chains of AND, OR and UNION flat.
//!
//! The parser builds `a OR b OR c OR d` as `((a OR b) OR c) OR d`, as deep as it is long. AND and
//! OR do not care for the grouping, nor does a chain of one set operation; so long ones become
//! balanced trees, which print and mean the same.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Query, SetExpr, SetOperator, SetQuantifier, Value, Values, VisitorMut,
};

use crate::walk::WalkMut;

/// Chains up to this length stay as they are.
const SHORT: usize = 16;

/// Balances all chains of a statement or expression.
pub(super) fn balance(tree: &mut dyn WalkMut) {
    let _ = tree.walk_mut(&mut Balancer);
}

struct Balancer;

impl VisitorMut for Balancer {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } = expr {
            let op = op.clone();
            if is_long(expr, &op) {
                let terms = unchain(expr, &op);
                *expr = join(terms, &mut |left, right| Expr::BinaryOp {
                    left: Box::new(left),
                    op: op.clone(),
                    right: Box::new(right),
                });
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let body = query.body.as_mut();
        if let SetExpr::SetOperation {
            op: op @ (SetOperator::Union | SetOperator::Intersect),
            set_quantifier,
            ..
        } = body
        {
            let (op, quantifier) = (*op, *set_quantifier);
            let queries = unchain_sets(body, op, quantifier);
            *body = join(queries, &mut |left, right| SetExpr::SetOperation {
                left: Box::new(left),
                op,
                set_quantifier: quantifier,
                right: Box::new(right),
            });
        }
        ControlFlow::Continue(())
    }
}

fn is_long(mut expr: &Expr, wanted: &BinaryOperator) -> bool {
    for _ in 0..SHORT {
        match expr {
            Expr::BinaryOp { left, op, .. } if op == wanted => expr = left,
            _ => return false,
        }
    }
    true
}

/// The operands of a chain, first to last.
fn unchain(expr: &mut Expr, wanted: &BinaryOperator) -> Vec<Expr> {
    let mut terms = Vec::new();
    let mut rest = std::mem::replace(expr, Expr::Value(Value::Null.with_empty_span()));
    loop {
        match rest {
            Expr::BinaryOp { left, op, right } if op == *wanted => {
                terms.push(*right);
                rest = *left;
            }
            first => {
                terms.push(first);
                terms.reverse();
                return terms;
            }
        }
    }
}

fn unchain_sets(body: &mut SetExpr, wanted: SetOperator, quantifier: SetQuantifier) -> Vec<SetExpr> {
    let mut queries = Vec::new();
    let empty = Values { explicit_row: false, value_keyword: false, rows: Vec::new() };
    let mut rest = std::mem::replace(body, SetExpr::Values(empty));
    loop {
        match rest {
            SetExpr::SetOperation { left, op, set_quantifier, right }
                if op == wanted && set_quantifier == quantifier =>
            {
                queries.push(*right);
                rest = *left;
            }
            first => {
                queries.push(first);
                queries.reverse();
                return queries;
            }
        }
    }
}

/// One tree of all parts, in their order; left-deep if they are few.
fn join<T>(mut parts: Vec<T>, pair: &mut impl FnMut(T, T) -> T) -> T {
    let right = if parts.len() > SHORT { Some(parts.split_off(parts.len() / 2)) } else { None };
    match right {
        Some(right) => {
            let left = join(parts, pair);
            let right = join(right, pair);
            pair(left, right)
        }
        None => {
            let mut parts = parts.into_iter();
            let first = parts.next().expect("a chain has two parts or more");
            parts.fold(first, pair)
        }
    }
}
