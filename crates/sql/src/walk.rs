//! Walks over syntax trees, compiled once.
//!
//! sqlparser's `visit` is generic over the visitor, and a tree has five hundred types that each visitor would get
//! compiled for itself: 190,000 lines of LLVM's code a visitor, two thirds of this crate and of its build time. Here
//! all visitors share one walk, at the price of a virtual call for each node that they can look at.
//!
//! Responsible for: handing every part of a tree to a visitor. Not responsible for: what visitors do.
//!
//! **Invariant:** nothing else in the workspace calls `Visit::visit` or `VisitMut::visit`, directly or through
//! sqlparser's `visit_expressions` and the like; `clippy.toml` lists them.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor,
    VisitorMut,
};

/// A tree, or a part of one, that can be looked at.
pub trait Walk {
    /// Hands every part to `visitor`, from the outside to the inside, until it breaks.
    fn walk(&self, visitor: &mut dyn Visitor<Break = ()>) -> ControlFlow<()>;

    /// Calls `look` with every expression, outer ones first, until it breaks; returns whether it did.
    fn any_expression(&self, look: &mut dyn FnMut(&Expr) -> ControlFlow<()>) -> bool {
        self.walk(&mut Expressions(look)).is_break()
    }
}

/// A tree, or a part of one, that can be changed.
pub trait WalkMut {
    /// Hands every part to `visitor`, from the outside to the inside, until it breaks.
    fn walk_mut(&mut self, visitor: &mut dyn VisitorMut<Break = ()>) -> ControlFlow<()>;
}

macro_rules! walk {
    ($($ty:ty),+) => {
        $(impl Walk for $ty {
            #[expect(clippy::disallowed_methods, reason = "the one walk")]
            fn walk(&self, visitor: &mut dyn Visitor<Break = ()>) -> ControlFlow<()> {
                Visit::visit(self, &mut Shared(visitor))
            }
        })+
    };
}

macro_rules! walk_mut {
    ($($ty:ty),+) => {
        $(impl WalkMut for $ty {
            #[expect(clippy::disallowed_methods, reason = "the one walk")]
            fn walk_mut(&mut self, visitor: &mut dyn VisitorMut<Break = ()>) -> ControlFlow<()> {
                VisitMut::visit(self, &mut SharedMut(visitor))
            }
        })+
    };
}

walk!(Expr, Query, Statement);
walk_mut!(Expr, Statement);

/// The one visitor that `visit` is compiled for.
struct Shared<'a>(&'a mut dyn Visitor<Break = ()>);

/// The one that `visit` of trees to be changed is compiled for.
struct SharedMut<'a>(&'a mut dyn VisitorMut<Break = ()>);

macro_rules! forward {
    ($($name:ident: $ty:ty),+ $(,)?) => {
        $(fn $name(&mut self, part: $ty) -> ControlFlow<()> {
            self.0.$name(part)
        })+
    };
}

impl Visitor for Shared<'_> {
    type Break = ();

    forward! {
        pre_visit_query: &Query, post_visit_query: &Query,
        pre_visit_select: &Select, post_visit_select: &Select,
        pre_visit_relation: &ObjectName, post_visit_relation: &ObjectName,
        pre_visit_table_factor: &TableFactor, post_visit_table_factor: &TableFactor,
        pre_visit_expr: &Expr, post_visit_expr: &Expr,
        pre_visit_statement: &Statement, post_visit_statement: &Statement,
        pre_visit_value: &ValueWithSpan, post_visit_value: &ValueWithSpan,
    }
}

impl VisitorMut for SharedMut<'_> {
    type Break = ();

    forward! {
        pre_visit_query: &mut Query, post_visit_query: &mut Query,
        pre_visit_select: &mut Select, post_visit_select: &mut Select,
        pre_visit_relation: &mut ObjectName, post_visit_relation: &mut ObjectName,
        pre_visit_table_factor: &mut TableFactor, post_visit_table_factor: &mut TableFactor,
        pre_visit_expr: &mut Expr, post_visit_expr: &mut Expr,
        pre_visit_statement: &mut Statement, post_visit_statement: &mut Statement,
        pre_visit_value: &mut ValueWithSpan, post_visit_value: &mut ValueWithSpan,
    }
}

struct Expressions<'a>(&'a mut dyn FnMut(&Expr) -> ControlFlow<()>);

impl Visitor for Expressions<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        (self.0)(expr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_one;

    #[test]
    fn expressions_come_outer_ones_first_and_the_walk_ends_where_it_is_told_to() {
        let statement = parse_one("SELECT a + b FROM t WHERE c IN (SELECT d FROM u) ORDER BY e").unwrap();
        let mut seen = Vec::new();
        let all = statement.any_expression(&mut |expr| {
            seen.push(expr.to_string());
            ControlFlow::Continue(())
        });
        assert!(!all);
        assert_eq!(seen, ["a + b", "a", "b", "c IN (SELECT d FROM u)", "c", "d", "e"]);
        let mut count = 0;
        let found = statement.any_expression(&mut |expr| {
            count += 1;
            if matches!(expr, Expr::Identifier(name) if name.value == "b") {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        assert!(found);
        assert_eq!(count, 3);
    }
}
