//! Joins, bound: ON, USING and NATURAL, outer joins, aliases of joins.
//!
//! Responsible for: the conditions of a join, which columns bare names mean behind it. Not responsible for:
//! what is joined (`from`).

use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{Ident, JoinConstraint, ObjectNamePart, TableAlias};
use albireo_sql::names;
use albireo_sql::source::Span;

use super::from::check_taken;
use super::scope::{Mark, Meaning, Scope, Visible};
use super::tree::{Condition, Item, Pool};
use crate::expr::{self, Comparison, Expr, ExprKind, Names};

/// The kinds of joins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Inner,
    Left,
    Right,
    Full,
}

type Result<T> = std::result::Result<T, SqlError>;

/// Two sides, joined.
pub(super) fn joined(kind: Kind, mut left: Pool, right: Pool, on: Vec<Condition>) -> Result<Pool> {
    match kind {
        Kind::Inner => {
            left.merge(right);
            left.conditions.extend(on);
            Ok(left)
        }
        Kind::Left => outer_join(left, right, on),
        Kind::Right => outer_join(right, left, on),
        Kind::Full => {
            let inside = left.relations() | right.relations();
            let requires = (left.requires() | right.requires()) & !inside;
            let items = vec![Item::Full { left, right, on, requires }];
            Ok(Pool { items, conditions: Vec::new() })
        }
    }
}

fn outer_join(mut left: Pool, mut right: Pool, on: Vec<Condition>) -> Result<Pool> {
    right.conditions.extend(on);
    let inside = right.relations();
    if left.requires() & inside != 0 {
        return Err(SqlError::unsupported("a function over columns of the other side of an outer join"));
    }
    let requires = (left.relations() | right.requires()) & !inside;
    left.items.push(Item::Left { pool: right, requires });
    Ok(left)
}

/// The conditions of a join. `place` is where its left and right side begin.
pub(super) fn condition(
    scope: &mut Scope<'_>,
    constraint: &JoinConstraint,
    place: (Mark, Mark),
    kind: Kind,
) -> Result<Vec<Condition>> {
    let columns: Vec<(String, Span)> = match constraint {
        JoinConstraint::None => return Ok(Vec::new()),
        JoinConstraint::On(on) => {
            let mut conditions = Vec::new();
            super::bind::conditions(scope, on, "JOIN/ON", &mut conditions)?;
            return Ok(conditions);
        }
        JoinConstraint::Using(columns) => columns
            .iter()
            .map(|name| {
                let ident = match name.0.first() {
                    Some(ObjectNamePart::Identifier(ident)) => ident.clone(),
                    _ => Ident::new(""),
                };
                names::qualified(name, scope.source()).map(|name| (name.name, ident.span))
            })
            .collect::<Result<_>>()?,
        JoinConstraint::Natural => {
            let (left, right) = scope.visible[place.0.visible..].split_at(place.1.visible - place.0.visible);
            let both = left.iter().filter(|l| right.iter().any(|r| r.name == l.name));
            both.map(|visible| (visible.name.clone(), Span::empty())).collect()
        }
    };
    using(scope, &columns, (place.0.visible, place.1.visible), kind)
}

/// The conditions of USING. Of each two columns one is left, and those come first.
fn using(
    scope: &mut Scope<'_>,
    columns: &[(String, Span)],
    (first, mut middle): (usize, usize),
    kind: Kind,
) -> Result<Vec<Condition>> {
    let mut conditions = Vec::with_capacity(columns.len());
    for (at, (name, span)) in columns.iter().enumerate() {
        if columns[..at].iter().any(|(other, _)| other == name) {
            let message = format!("column name \"{name}\" appears more than once in USING clause");
            let error = SqlError::new(SqlState::DUPLICATE_COLUMN, message);
            return Err(scope.source().locate(error, *span));
        }
        let left = position(scope, name, first + at..middle, "left", *span)?;
        let right = position(scope, name, middle..scope.visible.len(), "right", *span)?;
        let (left_is, right_is) = (scope.visible[left].clone(), scope.visible[right].clone());
        scope.take_uses();
        let a = scope.meaning(&left_is.meaning, *span)?;
        let b = scope.meaning(&right_is.meaning, *span)?;
        let uses = scope.take_uses();
        let locate = |error: SqlError| scope.source().locate(error, *span);
        let expr = expr::comparison(Comparison::Eq, a.clone(), b.clone()).map_err(locate)?;
        let expr = expr::to_bool(expr, "JOIN/USING")?;
        let merged = merged(kind, (left_is, a), (right_is, b)).map_err(locate)?;
        conditions.push(Condition { expr, uses });
        scope.visible.remove(right);
        scope.visible.remove(left);
        scope.visible.insert(first + at, merged);
        // What was merged before stands on the left side now.
        middle = middle.max(first + at + 1);
    }
    Ok(conditions)
}

/// The column that two of one name become, in the type they have in common.
fn merged(kind: Kind, left: (Visible, Expr), right: (Visible, Expr)) -> Result<Visible> {
    let types = (left.1.ty.clone(), right.1.ty.clone());
    let mut pair = [left.1, right.1];
    let ty = expr::common_type(&mut pair, "JOIN/USING")?;
    let [a, b] = pair;
    let converted = |expr: &Expr| matches!(expr.kind, ExprKind::Convert(..));
    let (kept, expr) = match kind {
        Kind::Left => (left.0, a),
        Kind::Right => (right.0, b),
        Kind::Inner if converted(&a) && !converted(&b) => (right.0, b),
        Kind::Inner => (left.0, a),
        Kind::Full => {
            let expr = Expr { kind: ExprKind::Coalesce(vec![a, b]), ty };
            return Ok(Visible { meaning: Meaning::Merged(Arc::new(expr)), ..left.0 });
        }
    };
    let as_it_is = [types.0, types.1].contains(&expr.ty) && !converted(&expr);
    if as_it_is {
        return Ok(kept);
    }
    Ok(Visible { meaning: Meaning::Merged(Arc::new(expr)), ..kept })
}

fn position(
    scope: &Scope<'_>,
    name: &str,
    mut range: std::ops::Range<usize>,
    side: &str,
    span: Span,
) -> Result<usize> {
    let found = range.find(|at| scope.visible[*at].name == name);
    let again = range.any(|at| scope.visible[at].name == name);
    let (state, message) = match (found, again) {
        (Some(at), false) => return Ok(at),
        (None, _) => (
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" specified in USING clause does not exist in {side} table"),
        ),
        (Some(_), true) => (
            SqlState::AMBIGUOUS_COLUMN,
            format!("common column name \"{name}\" appears more than once in {side} table"),
        ),
    };
    Err(scope.source().locate(SqlError::new(state, message), span))
}

/// Gives a join an alias, which hides the names of its sides.
pub(super) fn rename(scope: &mut Scope<'_>, since: Mark, alias: &TableAlias) -> Result<()> {
    let name = names::fold(&alias.name);
    let visible = scope.visible[since.visible..].iter();
    let mut columns: Vec<(String, Meaning)> =
        visible.map(|visible| (visible.name.clone(), visible.meaning.clone())).collect();
    if alias.columns.len() > columns.len() {
        let message = format!(
            "join expression \"{name}\" has {} columns available but {} columns specified",
            columns.len(),
            alias.columns.len()
        );
        return Err(scope.error(SqlState::INVALID_COLUMN_REFERENCE, message, &alias.name));
    }
    for (column, alias) in columns.iter_mut().zip(&alias.columns) {
        column.0 = names::fold(&alias.name);
    }
    scope.rename(since, name.clone(), Vec::new());
    scope.entries.truncate(since.entries);
    check_taken(scope, &name, None, Some(alias))?;
    scope.rename(since, name, columns);
    Ok(())
}
