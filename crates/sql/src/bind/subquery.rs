//! Subqueries in expressions that the engine does not have, or not where they stand, said by ones
//! it has.
//!
//! The engine plans EXISTS and IN as joins, which it can in WHERE and HAVING only; comparisons with
//! ANY and ALL of a subquery it gets wrong. Here they become scalar subqueries:
//!
//! | written | becomes |
//! |---|---|
//! | `EXISTS (q)` outside WHERE | `(SELECT count(*) FROM q) > 0` |
//! | `x IN (q)` outside WHERE, or for a constant `x` | a CASE over counts of `q`'s values equal to `x`, and of its NULLs |
//! | `x < ANY (q)`, `x < ALL (q)`, ... | a CASE over `q`'s least or greatest value, and its NULLs |
//! | `(a, b) IN (q)` in WHERE | `EXISTS (SELECT 1 FROM q WHERE a = ... AND b = ...)` |
//! | `x NOT IN (q)` in WHERE, `q` correlated or `x` a row | `NOT EXISTS (SELECT 1 FROM q WHERE (x = ...) IS NOT FALSE)` |
//! | `x NOT IN (q) OR ...`, `NOT (x IN (q) AND ...)` in WHERE | the CASE over counts |
//!
//! Invariant: NULLs come out as PostgreSQL has them.

use std::ops::ControlFlow;

use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Query, Select, SelectItem, SetExpr, Statement, TableFactor,
    UnaryOperator, VisitorMut,
};

use super::Binder;
use super::Tree;
use crate::names;
use crate::walk::{Walk as _, WalkMut as _};

impl Binder<'_> {
    /// Rewrites one expression whose parts are bound. `in_filter`: it is part of a WHERE or HAVING.
    pub(super) fn subquery_expression(&mut self, expr: &mut Expr, in_filter: bool) -> Result<(), SqlError> {
        match expr {
            Expr::Exists { subquery, negated } if !in_filter => {
                let count = counting(subquery).unwrap_or_else(|| {
                    let name = self.name_rewritten();
                    format!("(SELECT count(*) FROM ({subquery}) AS {name})")
                });
                let op = if *negated { "=" } else { ">" };
                *expr = parsed(&format!("({count} {op} 0)"))?;
            }
            Expr::InSubquery { expr: left, subquery, negated } => {
                if matches!(left.as_ref(), Expr::Tuple(_)) {
                    // In a filter `condition` does it.
                    if !in_filter {
                        return Err(SqlError::unsupported("IN of several columns outside WHERE"));
                    }
                } else if !in_filter || !has_columns(left) {
                    *expr = self.value_in(left, subquery, *negated)?;
                }
            }
            Expr::AnyOp { left, compare_op, right, .. } => {
                let Expr::Subquery(query) = right.as_ref() else {
                    return Err(SqlError::unsupported("ANY of an array"));
                };
                *expr = match compare_op {
                    BinaryOperator::Eq => self.in_subquery(left, query, false, in_filter)?,
                    _ => self.quantified(left, compare_op, query, false)?,
                };
            }
            Expr::AllOp { left, compare_op, right } => {
                let Expr::Subquery(query) = right.as_ref() else {
                    return Err(SqlError::unsupported("ALL of an array"));
                };
                *expr = match compare_op {
                    BinaryOperator::NotEq => self.in_subquery(left, query, true, in_filter)?,
                    _ => self.quantified(left, compare_op, query, true)?,
                };
            }
            _ => {}
        }
        Ok(())
    }

    fn in_subquery(
        &mut self,
        left: &Expr,
        query: &Query,
        negated: bool,
        in_filter: bool,
    ) -> Result<Expr, SqlError> {
        let mut expr =
            Expr::InSubquery { expr: Box::new(left.clone()), subquery: Box::new(query.clone()), negated };
        self.subquery_expression(&mut expr, in_filter)?;
        Ok(expr)
    }

    fn value_in(&mut self, left: &Expr, query: &Query, negated: bool) -> Result<Expr, SqlError> {
        let from = format!("({query}) AS {} (__v)", self.name_rewritten());
        let (yes, no) = if negated { ("false", "true") } else { ("true", "false") };
        parsed(&format!(
            "CASE WHEN (SELECT count(*) FROM {from} WHERE __v = ({left})) > 0 THEN {yes} \
             WHEN (SELECT count(*) FROM {from} WHERE __v IS NULL) > 0 THEN NULL \
             WHEN ({left}) IS NULL AND (SELECT count(*) FROM {from}) > 0 THEN NULL \
             ELSE {no} END"
        ))
    }

    fn quantified(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        query: &Query,
        all: bool,
    ) -> Result<Expr, SqlError> {
        let extreme = match (op, all) {
            (BinaryOperator::Gt | BinaryOperator::GtEq, false)
            | (BinaryOperator::Lt | BinaryOperator::LtEq, true) => "min",
            (BinaryOperator::Lt | BinaryOperator::LtEq, false)
            | (BinaryOperator::Gt | BinaryOperator::GtEq, true) => "max",
            _ => {
                let quantifier = if all { "ALL" } else { "ANY" };
                return Err(SqlError::unsupported(format!("{op} {quantifier} of a subquery")));
            }
        };
        let from = format!("({query}) AS {} (__v)", self.name_rewritten());
        let holds = format!("({left}) {op} (SELECT {extreme}(__v) FROM {from})");
        let empty = format!("(SELECT count(*) FROM {from}) = 0");
        let unknown = format!("({left}) IS NULL OR (SELECT count(*) FROM {from} WHERE __v IS NULL) > 0");
        // The extreme stands for all values; NULLs are left out of it.
        let text = match all {
            false => format!(
                "CASE WHEN {holds} THEN true WHEN {empty} THEN false WHEN {unknown} THEN NULL ELSE false END"
            ),
            true => format!(
                "CASE WHEN {empty} THEN true WHEN NOT ({holds}) THEN false WHEN {unknown} THEN NULL ELSE true END"
            ),
        };
        parsed(&text)
    }

    /// Whether a row is in a query's rows; `null_is_true`: or is not known not to be.
    fn row_in(&mut self, left: &[Expr], query: &Query, null_is_true: bool) -> Result<Expr, SqlError> {
        let columns: Vec<String> = (0..left.len()).map(|i| format!("__v{i}")).collect();
        let equal: Vec<String> = left.iter().zip(&columns).map(|(x, v)| format!("({x}) = {v}")).collect();
        parsed(&format!(
            "EXISTS (SELECT 1 FROM ({query}) AS {} ({}) WHERE ({}) {})",
            self.name_rewritten(),
            columns.join(", "),
            equal.join(" AND "),
            if null_is_true { "IS NOT FALSE" } else { "" }
        ))
    }

    /// Rewrites EXISTS and IN within the conditions of a WHERE, of which only the rows where it is true
    /// remain. The engine's joins take NULL for false. That is right where false and NULL come to the
    /// same, as in `x IN (q) OR a`; elsewhere, as in `NOT (x IN (q) AND a)`, NULL has to be computed,
    /// or be taken for true.
    pub(super) fn condition(
        &mut self,
        condition: &mut Expr,
        tree: &Tree,
        place: Place,
    ) -> Result<(), SqlError> {
        match condition {
            Expr::Nested(inner) => self.condition(inner, tree, place),
            Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => match not_in(inner) {
                Some(opposite) => {
                    *condition = opposite;
                    self.condition(condition, tree, place)
                }
                None => self.condition(inner, tree, place.below_not()),
            },
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.condition(left, tree, place)?;
                self.condition(right, tree, place)
            }
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => {
                self.condition(left, tree, place.below_or())?;
                self.condition(right, tree, place.below_or())
            }
            Expr::Exists { .. } => Ok(()),
            Expr::InSubquery { .. } => self.in_condition(condition, tree, place),
            other => {
                let mut values = Values { binder: self, depth: 0, failed: None };
                let _ = other.walk_mut(&mut values);
                values.failed.map_or(Ok(()), Err)
            }
        }
    }

    /// Rewrites an IN or NOT IN at a place of a WHERE.
    fn in_condition(&mut self, condition: &mut Expr, tree: &Tree, place: Place) -> Result<(), SqlError> {
        let Expr::InSubquery { expr: left, subquery, negated } = condition else { return Ok(()) };
        let negated = *negated;
        let null_is_true = negated != (place == Place::Negative);
        let exists = match left.as_ref() {
            Expr::Tuple(left) => {
                let left: Vec<Expr> = left.iter().map(|x| super::order::canonical(x, tree)).collect();
                self.row_in(&left, subquery, null_is_true)?
            }
            // The engine's own join.
            _ if !null_is_true => return Ok(()),
            left if self.correlated.contains(subquery) => {
                may_be_in(&super::order::canonical(left, tree), subquery)?
            }
            _ if place == Place::Conjunct => return Ok(()),
            left => {
                *condition = self.value_in(left, subquery, negated)?;
                return Ok(());
            }
        };
        *condition = if negated { negation(exists) } else { exists };
        Ok(())
    }

    fn name_rewritten(&mut self) -> String {
        self.unnamed += 1;
        format!("\"__s{}\"", self.unnamed)
    }
}

/// How a part of a WHERE counts for the whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// It has to be true.
    Conjunct,
    /// The whole is the truer the truer it is; NULL counts as false.
    Positive,
    /// The whole is the truer the falser it is; NULL counts as true.
    Negative,
}

impl Place {
    fn below_not(self) -> Self {
        match self {
            Self::Conjunct | Self::Positive => Self::Negative,
            Self::Negative => Self::Positive,
        }
    }

    fn below_or(self) -> Self {
        match self {
            Self::Conjunct | Self::Positive => Self::Positive,
            Self::Negative => Self::Negative,
        }
    }
}

/// `NOT (x IN (q))` as `x NOT IN (q)`, and the other way round; `None` of anything but an IN.
fn not_in(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Nested(inner) => not_in(inner),
        Expr::InSubquery { expr, subquery, negated } => {
            Some(Expr::InSubquery { expr: expr.clone(), subquery: subquery.clone(), negated: !negated })
        }
        _ => None,
    }
}

fn negation(expr: Expr) -> Expr {
    match expr {
        Expr::Nested(inner) => negation(*inner),
        Expr::Exists { subquery, negated } => Expr::Exists { subquery, negated: !negated },
        other => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(other))) },
    }
}

/// Rewrites the EXISTS and IN of one query level whose values matter.
struct Values<'b, 'a> {
    binder: &'b mut Binder<'a>,
    /// How many queries deep.
    depth: usize,
    /// Why the walk has ended early.
    failed: Option<SqlError>,
}

impl VisitorMut for Values<'_, '_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Err(error) = self.binder.subquery_expression(expr, false)
        {
            self.failed = Some(error);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// The expression a text says; the text is ours, out of parts that were parsed before.
fn parsed(text: &str) -> Result<Expr, SqlError> {
    let statement = crate::parse::parse_one(&format!("SELECT {text}"))?;
    if let Statement::Query(query) = statement
        && let SetExpr::Select(mut select) = *query.body
        && let Some(SelectItem::UnnamedExpr(expr)) = select.projection.pop()
    {
        return Ok(Expr::Nested(Box::new(expr)));
    }
    Err(SqlError::new(SqlState::INTERNAL_ERROR, "internal error: a rewritten subquery is no expression"))
}

/// The SELECT a query is, if it is one that gives a row for each row of its FROM and WHERE.
fn plain_select(query: &Query) -> Option<&Select> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let grouped = match &select.group_by {
        GroupByExpr::Expressions(exprs, modifiers) => !exprs.is_empty() || !modifiers.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let plain = query.with.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && select.distinct.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && !grouped
        && !select.projection.iter().any(calls_functions);
    plain.then_some(select)
}

/// Whether a column calls functions: they may be aggregates.
fn calls_functions(item: &SelectItem) -> bool {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { return false };
    expr.any_expression(&mut |part| match part {
        Expr::Function(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
}

/// Whether a value is in a correlated query, or is not known not to be. The value becomes part of the
/// query, since the engine finds no outer columns in a query of FROM.
fn may_be_in(left: &Expr, subquery: &Query) -> Result<Expr, SqlError> {
    let Some((select, value)) = plain_select(subquery).and_then(|s| Some((s, only_value(s)?))) else {
        return Err(SqlError::unsupported("NOT IN of this subquery with columns from outside it"));
    };
    if shares_relation(left, select) {
        return Err(SqlError::unsupported(
            "NOT IN of a subquery with columns from outside it over the same table",
        )
        .with_hint("Give the table another name in the subquery: FROM t AS other."));
    }
    let mut select = select.clone();
    let meets = parsed(&format!("(({left}) = ({value})) IS NOT FALSE"))?;
    select.selection = Some(match select.selection.take() {
        Some(old) => parsed(&format!("({old}) AND ({meets})"))?,
        None => meets,
    });
    let query = super::plain_query(SetExpr::Select(Box::new(select)));
    Ok(Expr::Exists { subquery: Box::new(query), negated: false })
}

/// Whether an expression names a relation by a name that one of a SELECT has.
fn shares_relation(expr: &Expr, select: &Select) -> bool {
    let name_of = |factor: &TableFactor| match factor {
        TableFactor::Table { alias: Some(alias), .. } => Some(names::fold(&alias.name)),
        TableFactor::Table { name, .. } => name.0.last().and_then(|part| part.as_ident()).map(names::fold),
        TableFactor::Derived { alias: Some(alias), .. } => Some(names::fold(&alias.name)),
        _ => None,
    };
    let tables = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    let inner: Vec<String> = tables.filter_map(name_of).collect();
    expr.any_expression(&mut |part| match part {
        Expr::CompoundIdentifier(parts)
            if parts.iter().rev().skip(1).any(|part| inner.contains(&names::fold(part))) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })
}

fn only_value(select: &Select) -> Option<&Expr> {
    match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] => Some(expr),
        _ => None,
    }
}

/// The subquery that counts a query's rows, correlated as the query is.
fn counting(query: &Query) -> Option<String> {
    let mut select = plain_select(query)?.clone();
    let count = super::rewrite::call("count", []);
    let Expr::Function(mut count) = count else { return None };
    if let sqlparser::ast::FunctionArguments::List(list) = &mut count.args {
        list.args.push(sqlparser::ast::FunctionArg::Unnamed(sqlparser::ast::FunctionArgExpr::Wildcard));
    }
    select.projection = vec![SelectItem::UnnamedExpr(Expr::Function(count))];
    Some(format!("({select})"))
}

/// Whether an expression reads columns, or may.
fn has_columns(expr: &Expr) -> bool {
    expr.any_expression(&mut |part| match part {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
}
