//! ORDER BY: by place, by output name, or by expression.

use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{Distinct, Expr, Ident, OrderBy, OrderByKind, Spanned, Value};

use super::select::Output;
use super::{Binder, Columns, Mode, Scope, Tree};
use crate::names;
use crate::walk::WalkMut as _;

impl Binder<'_> {
    /// ORDER BY behind a SELECT.
    pub(super) fn order_by(
        &mut self,
        order_by: &mut OrderBy,
        outputs: &[Output],
        complete: bool,
        scope: &Scope<'_>,
        mode: Mode,
        distinct: Option<&Distinct>,
    ) -> Result<(), SqlError> {
        let OrderByKind::Expressions(exprs) = &mut order_by.kind else {
            return Err(SqlError::unsupported("ORDER BY ALL"));
        };
        for item in exprs {
            let expr = &mut item.expr;
            if let Some(position) = ordinal(expr) {
                self.check_position("ORDER BY", position, outputs.len(), complete, expr)?;
                continue;
            }
            let by_name = match expr {
                Expr::Identifier(ident) => self.output_named("ORDER BY", ident, outputs, scope)?,
                _ => None,
            };
            let output = match by_name {
                Some(output) => Some(output),
                None => {
                    self.expr(expr, scope)?;
                    let wanted = canonical(expr, scope.tree);
                    outputs.iter().find(|output| canonical(&output.expr, scope.tree) == wanted)
                }
            };
            match (output, distinct) {
                _ if mode == Mode::Expression => {}
                // Must look like the expressions of DISTINCT ON, which are not aliases.
                (Some(output), Some(Distinct::On(_))) => *expr = output.expr.clone(),
                (Some(output), _) => *expr = Expr::Identifier(names::quoted(&output.internal)),
                (None, Some(Distinct::Distinct)) if complete => {
                    let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                    return Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, expr.span()));
                }
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// ORDER BY behind UNION and the like, which sees output columns only.
    pub(super) fn order_by_output(
        &mut self,
        order_by: &mut OrderBy,
        columns: &Columns,
        outer: Option<&Scope<'_>>,
        mode: Mode,
    ) -> Result<(), SqlError> {
        let OrderByKind::Expressions(exprs) = &mut order_by.kind else {
            return Err(SqlError::unsupported("ORDER BY ALL"));
        };
        for item in exprs {
            let expr = &mut item.expr;
            if let Some(position) = ordinal(expr) {
                self.check_position("ORDER BY", position, columns.known.len(), columns.complete, expr)?;
                continue;
            }
            let Expr::Identifier(ident) = expr else {
                if !columns.complete {
                    continue;
                }
                let message = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause";
                return Err(self
                    .error(SqlState::FEATURE_NOT_SUPPORTED, message, expr.span())
                    .with_detail("Only result column names can be used, not expressions or functions.")
                    .with_hint("Put the UNION into a FROM clause, and order what is selected from it."));
            };
            let name = names::fold(ident);
            let mut matches = columns.known.iter().enumerate().filter(|(_, column)| column.name == name);
            match (matches.next(), matches.next()) {
                (Some(_), Some(_)) => return Err(self.ambiguous("ORDER BY", &name, ident)),
                (Some((_, column)), None) if mode != Mode::Expression => {
                    *expr = Expr::Identifier(names::quoted(&column.internal));
                }
                (Some(_), None) => {}
                (None, _) if !columns.complete => {}
                (None, _) => {
                    let tree = Tree::default();
                    self.expr(expr, &Scope { tree: &tree, parent: outer })?;
                }
            }
        }
        Ok(())
    }

    /// The output column of this name; 42702 if two different ones have it.
    pub(super) fn output_named<'o>(
        &self,
        clause: &str,
        ident: &Ident,
        outputs: &'o [Output],
        scope: &Scope<'_>,
    ) -> Result<Option<&'o Output>, SqlError> {
        let name = names::fold(ident);
        let mut matches = outputs.iter().filter(|output| output.name == name);
        let Some(first) = matches.next() else { return Ok(None) };
        let meant = canonical(&first.expr, scope.tree);
        if matches.any(|other| canonical(&other.expr, scope.tree) != meant) {
            return Err(self.ambiguous(clause, &name, ident));
        }
        Ok(Some(first))
    }

    fn ambiguous(&self, clause: &str, name: &str, ident: &Ident) -> SqlError {
        let message = format!("{clause} \"{name}\" is ambiguous");
        self.error(SqlState::AMBIGUOUS_COLUMN, message, ident.span)
    }

    /// 42P10 for a place that is not in the select list.
    pub(super) fn check_position(
        &self,
        clause: &str,
        position: i64,
        columns: usize,
        complete: bool,
        expr: &Expr,
    ) -> Result<(), SqlError> {
        let fits = usize::try_from(position).is_ok_and(|p| p >= 1 && (p <= columns || !complete));
        if fits {
            return Ok(());
        }
        let message = format!("{clause} position {position} is not in select list");
        Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, expr.span()))
    }
}

/// The place in the select list that a bare whole number means.
pub(super) fn ordinal(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// The expression with its columns written in one way, so that equal ones compare equal.
pub(super) fn canonical(expr: &Expr, tree: &Tree) -> Expr {
    let mut expr = expr.clone();
    expr.each_expression_mut(&mut |part| match part {
        Expr::Identifier(ident) => {
            let name = names::fold(ident);
            if let Some(found) = tree.named(&name).next() {
                *part = found.expr.clone();
            }
        }
        Expr::CompoundIdentifier(parts) => {
            for part in parts {
                *part = names::quoted(&names::fold(part));
            }
        }
        _ => {}
    });
    expr
}
