//! Conditions other than comparisons.

use albireo_base::SqlError;
use albireo_sql::ast::{self, BinaryOperator};

use super::{Binder, Result};
use crate::expr::unify::{settle, to_bool};
use crate::expr::{Expr, ExprKind};

impl Binder<'_> {
    pub(super) fn predicate(&mut self, expr: &ast::Expr) -> Result<Expr> {
        use ast::Expr as E;
        match expr {
            E::IsNull(inner) => Ok(Expr::condition(ExprKind::IsNull(Box::new(self.settled(inner)?)))),
            E::IsNotNull(inner) => Ok(Expr::condition(ExprKind::IsNotNull(Box::new(self.settled(inner)?)))),
            E::IsTrue(inner) => self.is(inner, Some(true), false),
            E::IsNotTrue(inner) => self.is(inner, Some(true), true),
            E::IsFalse(inner) => self.is(inner, Some(false), false),
            E::IsNotFalse(inner) => self.is(inner, Some(false), true),
            E::IsUnknown(inner) => self.is(inner, None, false),
            E::IsNotUnknown(inner) => self.is(inner, None, true),
            other => Err(SqlError::unsupported(format!("the expression {other}"))),
        }
    }

    /// Binds an expression; a literal in quotes is a text.
    pub(super) fn settled(&mut self, expr: &ast::Expr) -> Result<Expr> {
        Ok(settle(self.expr(expr)?))
    }

    fn is(&mut self, inner: &ast::Expr, wanted: Option<bool>, negated: bool) -> Result<Expr> {
        let word = match wanted {
            Some(true) => "IS TRUE",
            Some(false) => "IS FALSE",
            None => "IS UNKNOWN",
        };
        let condition = to_bool(self.expr(inner)?, word)?;
        Ok(negate(Expr::condition(ExprKind::Is(Box::new(condition), wanted)), negated))
    }

    pub(super) fn pattern_operator(
        &mut self,
        _left: &ast::Expr,
        op: &BinaryOperator,
        _right: &ast::Expr,
    ) -> Result<Expr> {
        Err(SqlError::unsupported(format!("operator {op}")))
    }
}

/// NOT of a condition, if asked for.
pub(super) fn negate(condition: Expr, negated: bool) -> Expr {
    match negated {
        true => Expr::condition(ExprKind::Not(Box::new(condition))),
        false => condition,
    }
}
