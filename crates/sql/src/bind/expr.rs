//! Names, parameters and subqueries in an expression.

use std::ops::ControlFlow;

use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{
    AccessExpr, Expr, FunctionArguments, Query, SetExpr, Value, Values, VisitorMut, WindowType,
};
use sqlparser::tokenizer::Span;

use super::scope::Found;
use super::{Binder, Mode, Scope, rewrite};
use crate::names;
use crate::walk::WalkMut;

/// How many parameters a statement may have; the wire protocol's limit.
const MAX_PARAMETERS: usize = 65_535;

/// Words that PostgreSQL takes for functions although they look like columns.
const BARE_FUNCTIONS: [&str; 4] = ["current_schema", "current_role", "current_catalog", "current_user"];

pub(super) fn bind(binder: &mut Binder<'_>, expr: &mut Expr, scope: &Scope<'_>) -> Result<(), SqlError> {
    walk(binder, expr, scope)
}

/// Binds all expressions in a part of a syntax tree that holds no FROM clause of its own, except in
/// subqueries.
pub(super) fn walk(
    binder: &mut Binder<'_>,
    part: &mut dyn WalkMut,
    scope: &Scope<'_>,
) -> Result<(), SqlError> {
    let mut walker = Walker { binder, scope, held: Vec::new(), unchecked: 0, failed: None };
    let _ = part.walk_mut(&mut walker);
    walker.failed.map_or(Ok(()), Err)
}

struct Walker<'w, 'a> {
    binder: &'w mut Binder<'a>,
    scope: &'w Scope<'w>,
    /// Subqueries bound already and taken out of the tree, so that they are not walked again in
    /// the wrong scope; put back after their expression's visit.
    #[expect(clippy::vec_box, reason = "the boxes of the tree, taken out and put back")]
    held: Vec<Box<Query>>,
    /// How many expressions around this one have identifiers that are no columns.
    unchecked: usize,
    /// Why the walk has ended early.
    failed: Option<SqlError>,
}

impl VisitorMut for Walker<'_, '_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if holds_other_names(expr) {
            self.unchecked += 1;
        }
        let entered = self.enter(expr);
        self.go_on(entered)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if holds_other_names(expr) {
            self.unchecked -= 1;
        }
        if let Some(place) = subquery_of(expr) {
            // Taken out in `enter` for every such expression.
            *place = self.held.pop().expect("the subquery was held");
        }
        let in_filter = self.binder.in_filter;
        let done = rewrite::expression(expr).and_then(|()| self.binder.subquery_expression(expr, in_filter));
        self.go_on(done)
    }
}

impl Walker<'_, '_> {
    /// Ends the walk at an error.
    fn go_on(&mut self, done: Result<(), SqlError>) -> ControlFlow<()> {
        match done {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn enter(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        let is_scalar = matches!(expr, Expr::Subquery(_));
        let single = match expr {
            Expr::InSubquery { expr, .. } => !matches!(expr.as_ref(), Expr::Tuple(_)),
            _ => is_scalar,
        };
        if let Some(place) = subquery_of(expr) {
            let mut query = std::mem::replace(place, empty_query());
            let outer = self.binder.met_outer.replace(false);
            let columns = self.binder.query(&mut query, Some(self.scope), Mode::Expression)?;
            let correlated = self.binder.met_outer.replace(true);
            self.binder.met_outer.set(outer || correlated);
            if correlated {
                self.binder.correlated.push((*query).clone());
            }
            if single && columns.complete && columns.known.len() > 1 {
                let message = match is_scalar {
                    true => "subquery must return only one column",
                    false => "subquery has too many columns",
                };
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            self.held.push(query);
            return Ok(());
        }
        match expr {
            Expr::Function(function) => {
                if let Some(WindowType::WindowSpec(spec)) = &mut function.over {
                    self.binder.complete_window(spec)?;
                }
            }
            Expr::Identifier(ident) if self.unchecked == 0 => {
                if ident.quote_style.is_none() && BARE_FUNCTIONS.contains(&names::fold(ident).as_str()) {
                    return Ok(());
                }
                if let Found::Instead(other) = self.binder.find_bare(ident, self.scope)? {
                    *expr = other;
                }
            }
            Expr::CompoundIdentifier(parts) if self.unchecked == 0 => {
                if let Found::Instead(other) = self.binder.find_qualified(parts, self.scope)? {
                    *expr = other;
                }
            }
            Expr::Value(value) => {
                if let Value::Placeholder(name) = &value.value {
                    self.binder.parameter(name, value.span)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Binder<'_> {
    /// Counts `$n`.
    fn parameter(&mut self, name: &str, span: Span) -> Result<(), SqlError> {
        let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
        match number {
            Some(number @ 1..=MAX_PARAMETERS) => {
                self.parameters = self.parameters.max(number);
                Ok(())
            }
            _ => {
                let message = format!("there is no parameter {name}");
                let error = self.error(SqlState::UNDEFINED_PARAMETER, message, span);
                Err(error.with_hint("Parameters are written $1, $2, and so on."))
            }
        }
    }
}

/// The query inside an expression.
fn subquery_of(expr: &mut Expr) -> Option<&mut Box<Query>> {
    match expr {
        Expr::Subquery(query)
        | Expr::Exists { subquery: query, .. }
        | Expr::InSubquery { subquery: query, .. } => Some(query),
        Expr::Function(function) => match &mut function.args {
            FunctionArguments::Subquery(query) => Some(query),
            _ => None,
        },
        _ => None,
    }
}

/// Whether identifiers within are names of fields or of lambda parameters.
fn holds_other_names(expr: &Expr) -> bool {
    match expr {
        Expr::CompoundFieldAccess { access_chain, .. } => {
            access_chain.iter().any(|access| matches!(access, AccessExpr::Dot(_)))
        }
        Expr::Lambda(_) | Expr::JsonAccess { .. } => true,
        _ => false,
    }
}

/// A query with nothing in it to visit.
fn empty_query() -> Box<Query> {
    let values = Values { explicit_row: false, value_keyword: false, rows: Vec::new() };
    Box::new(plain_query(SetExpr::Values(values)))
}

/// A query that is its body alone.
pub(crate) fn plain_query(body: SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}
