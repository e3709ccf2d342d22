//! Queries, bound: VALUES, ORDER BY, LIMIT.
//!
//! Responsible for: everything around SELECT, and cutting conditions at AND. Not responsible for: SELECT
//! itself (`select`), WITH (`with`), set operations (`sets`).

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, SqlType, budget};
use albireo_sql::ast::{
    BinaryOperator, Expr as Ast, LimitClause, LockClause, OrderBy as AstOrderBy, OrderByExpr, OrderByKind,
    OrderByOptions, Query as AstQuery, SetExpr, Spanned, UnaryOperator, Value as Literal, Values,
};
use albireo_sql::names;
use albireo_sql::source::{Source, Span};

use super::SelectPlan;
use super::scope::{CteLink, Env, Named, Phase, Scope};
use super::sets;
use super::tree::{Body, Condition, OrderBy, OrderKey, Query};
use crate::expr::{self, CastKind, Expr, ExprKind, Names, is_unknown};
use crate::types::{Scalar, Type};

/// The memory of a query's or relation's node, and of a column of it.
pub(super) const NODE_BYTES: usize = 1024;
pub(super) const COLUMN_BYTES: usize = 128;

/// Names and types of a query's columns.
pub(super) type Columns = Vec<(String, Type)>;

/// A query's body, bound.
pub(super) struct Bound {
    pub(super) body: Body,
    pub(super) columns: Columns,
    pub(super) order: Vec<OrderKey>,
    /// Which columns are literals whose type nothing has said yet.
    pub(super) unknown: Vec<bool>,
    /// Where the columns stand.
    pub(super) spans: Vec<Span>,
    /// The columns that LIMIT sees and may not use.
    pub(super) visible: Vec<String>,
}

/// What stands behind a query.
#[derive(Clone, Copy, Default)]
pub(super) struct Tail<'q> {
    pub(super) order: &'q [OrderByExpr],
    /// The expression; nothing for one row.
    pub(super) limit: Option<Option<&'q Ast>>,
    pub(super) offset: Option<&'q Ast>,
    pub(super) locks: &'q [LockClause],
}

impl<'q> Tail<'q> {
    /// What stands behind this query.
    pub(super) fn of(query: &'q AstQuery) -> Result<Self, SqlError> {
        refuse_clauses(query)?;
        let order = match &query.order_by {
            None => &[][..],
            Some(AstOrderBy { kind: OrderByKind::Expressions(keys), .. }) => keys,
            Some(_) => return Err(SqlError::unsupported("ORDER BY ALL")),
        };
        let (mut limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (limit.as_ref().map(Some), offset.as_ref().map(|offset| &offset.value))
            }
            Some(LimitClause::LimitOffset { .. }) => return Err(SqlError::unsupported("LIMIT BY")),
            Some(LimitClause::OffsetCommaLimit { .. }) => {
                let message = "LIMIT #,# syntax is not supported";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message)
                    .with_hint("Use separate LIMIT and OFFSET clauses."));
            }
        };
        if let Some(fetch) = &query.fetch {
            if limit.is_some() {
                return Err(multiple("LIMIT"));
            }
            limit = Some(fetch.quantity.as_ref());
        }
        Ok(Self { order, limit, offset, locks: &query.locks })
    }

    /// The clauses, and where they stand.
    pub(super) fn places(self) -> [(&'static str, Span); 3] {
        let span = |expr: Option<&Ast>| expr.map_or_else(Span::empty, Spanned::span);
        [
            ("ORDER BY", span(self.order.first().map(|key| &key.expr))),
            ("LIMIT", span(self.limit.flatten())),
            ("OFFSET", span(self.offset)),
        ]
    }

    /// With what stands behind a parenthesis around the query.
    fn within(self, outer: Self, source: Source<'_>) -> Result<Self, SqlError> {
        let twice = [
            !self.order.is_empty() && !outer.order.is_empty(),
            self.limit.is_some() && outer.limit.is_some(),
            self.offset.is_some() && outer.offset.is_some(),
        ];
        if !self.locks.is_empty() && !outer.locks.is_empty() {
            return Err(SqlError::unsupported(
                "FOR UPDATE or FOR SHARE both inside and outside of parentheses",
            ));
        }
        let places = outer.places().into_iter().zip(twice);
        if let Some(((what, span), _)) = places.into_iter().find(|(_, twice)| *twice) {
            return Err(source.locate(multiple(what), span));
        }
        Ok(Self {
            order: if self.order.is_empty() { outer.order } else { self.order },
            limit: self.limit.or(outer.limit),
            offset: self.offset.or(outer.offset),
            locks: if self.locks.is_empty() { outer.locks } else { self.locks },
        })
    }
}

fn multiple(what: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, format!("multiple {what} clauses not allowed"))
}

/// Binds a query by itself.
pub(super) fn bind_query(
    env: Env<'_>,
    query: &AstQuery,
    outer: &mut dyn Names,
) -> Result<SelectPlan, SqlError> {
    let mut pass = Scope::passing(env, outer);
    let line = super::line_of(query);
    let (query, columns, _) = bind_in(env, query, &mut pass)?;
    let correlated = pass.correlated;
    Ok(SelectPlan { columns, query: Arc::new(query), accesses: Vec::new(), correlated, line })
}

/// Binds a query in FROM, or the source of INSERT, outside of the level of `scope`.
pub(super) fn bind_nested(
    env: Env<'_>,
    query: &AstQuery,
    scope: &mut Scope<'_>,
) -> Result<(Query, Columns), SqlError> {
    let mut pass = Scope::passing(env, &mut *scope.outer);
    let bound = bind_in(env, query, &mut pass);
    let correlated = pass.correlated;
    scope.correlated |= correlated;
    let (query, columns, _) = bound.map_err(|error| unseen(scope, error))?;
    Ok((query, columns))
}

/// The error of a query in FROM, if it is about a relation beside it.
fn unseen(scope: &Scope<'_>, error: SqlError) -> SqlError {
    let name = error.message().strip_prefix("missing FROM-clause entry for table \"");
    let Some(name) = name.and_then(|name| name.strip_suffix('"')) else { return error };
    if scope.entry(None, name).is_none() {
        return error;
    }
    let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
    let hint = format!(
        "There is an entry for table \"{name}\", but it cannot be referenced from this part of the query."
    );
    let unseen = SqlError::new(error.state(), message).with_hint(hint);
    match error.position() {
        Some(position) => unseen.with_position(position),
        None => unseen,
    }
}

/// Binds a query in FROM inside of the level of `scope`.
pub(super) fn bind_lateral(
    env: Env<'_>,
    query: &AstQuery,
    scope: &mut Scope<'_>,
) -> Result<(Query, Columns), SqlError> {
    let mut pass = Scope::passing(env, scope);
    let (query, columns, _) = bind_in(env, query, &mut pass)?;
    Ok((query, columns))
}

/// Binds a query whose names around are those of `pass`.
pub(super) fn bind_in(
    env: Env<'_>,
    query: &AstQuery,
    pass: &mut Scope<'_>,
) -> Result<(Query, Columns, Vec<bool>), SqlError> {
    bind_with_tail(env, query, Tail::default(), pass)
}

/// Binds a query with what stands behind the parentheses around it.
fn bind_with_tail(
    env: Env<'_>,
    query: &AstQuery,
    outer: Tail<'_>,
    pass: &mut Scope<'_>,
) -> Result<(Query, Columns, Vec<bool>), SqlError> {
    let tail = Tail::of(query)?.within(outer, pass.source())?;
    let Some(with) = &query.with else { return bind_plain(env, query, tail, pass) };
    let ctes = super::with::bind(env, with, pass)?;
    let link = CteLink { ctes: &ctes.defs, parent: env.ctes };
    let inner_env = Env { ctes: Some(&link), ..env };
    let mut inner = Scope::passing(inner_env, &mut *pass);
    let (mut bound, columns, unknown) = bind_plain(inner_env, query, tail, &mut inner)?;
    bound.ctes.splice(0..0, ctes.used());
    Ok((bound, columns, unknown))
}

fn bind_plain(
    env: Env<'_>,
    query: &AstQuery,
    tail: Tail<'_>,
    pass: &mut Scope<'_>,
) -> Result<(Query, Columns, Vec<bool>), SqlError> {
    if let SetExpr::Query(inner) = query.body.as_ref() {
        return bind_with_tail(env, inner, tail, pass);
    }
    let bound = body(env, &query.body, tail, pass)?;
    let (limit, offset) = limits(tail, &bound.visible, pass)?;
    let Bound { body, columns, order, unknown, .. } = bound;
    Ok((Query { ctes: Vec::new(), body, order, limit, offset }, columns, unknown))
}

/// Binds a branch of a set operation.
pub(super) fn branch(env: Env<'_>, tree: &SetExpr, pass: &mut Scope<'_>) -> Result<Bound, SqlError> {
    if let SetExpr::Query(query) = tree {
        super::lock::none(&query.locks, None)?;
    }
    body(env, tree, Tail::default(), pass)
}

fn body(env: Env<'_>, tree: &SetExpr, tail: Tail<'_>, pass: &mut Scope<'_>) -> Result<Bound, SqlError> {
    budget::take(NODE_BYTES)?;
    let bound = match tree {
        SetExpr::Select(select) => return super::select::bind(env, select, tail, pass),
        SetExpr::Table(table) => {
            let select = super::select::whole_table(table);
            return super::select::bind(env, &select, tail, pass);
        }
        SetExpr::Query(query) => {
            let (query, columns, unknown) = bind_in(env, query, pass)?;
            let plain = query.ctes.is_empty()
                && query.order.is_empty()
                && query.limit.is_none()
                && query.offset.is_none();
            let body = if plain { query.body } else { Body::Nested(Box::new(query)) };
            let spans = vec![tree.span(); columns.len()];
            Bound { body, columns, order: Vec::new(), unknown, spans, visible: Vec::new() }
        }
        SetExpr::Values(rows) => values(rows, pass)?,
        SetExpr::SetOperation { .. } => sets::bind(env, tree, pass)?,
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
            return Err(SqlError::unsupported("a change inside of WITH")
                .with_hint("Make the change in a separate statement."));
        }
    };
    super::lock::none(tail.locks, Some(&bound.body))?;
    ordered(env, bound, tail.order, pass)
}

/// Adds ORDER BY to what is no SELECT: its columns are all that keys can name.
fn ordered(
    env: Env<'_>,
    mut bound: Bound,
    order_by: &[OrderByExpr],
    pass: &mut Scope<'_>,
) -> Result<Bound, SqlError> {
    if order_by.is_empty() {
        return Ok(bound);
    }
    let name = "*VALUES*".to_owned();
    let columns = bound.columns.clone();
    let mut scope = Scope::level(env, pass);
    scope.add(Named { name, schema: None, hidden: None, columns, key: Vec::new(), lengths: Vec::new() })?;
    scope.phase = Phase::Refused("ORDER BY");
    let mut outside = false;
    for key in order_by {
        let (descending, nulls_first) = order_options(&key.options);
        let by = set_key(&mut scope, &key.expr, &bound.columns)?;
        if let OrderBy::Expr(_) = by {
            outside = true;
            if let Body::Set(_) = bound.body {
                let message = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause";
                let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                    .with_detail("Only result column names can be used, not expressions or functions.")
                    .with_hint(
                        "Add the expression/function to every SELECT, or move the UNION into a FROM clause.",
                    );
                return Err(scope.source().locate(error, key.expr.span()));
            }
        }
        bound.order.push(OrderKey { by, descending, nulls_first });
    }
    if outside {
        let inner = sets::as_query(bound.body);
        bound.body = Body::Select(Box::new(sets::around(inner)));
    }
    Ok(bound)
}

/// Whether the order is descending, and whether NULLs come first.
pub(super) fn order_options(options: &OrderByOptions) -> (bool, bool) {
    let descending = options.asc == Some(false);
    (descending, options.nulls_first.unwrap_or(descending))
}

fn set_key(scope: &mut Scope<'_>, key: &Ast, columns: &Columns) -> Result<OrderBy, SqlError> {
    if let Some(position) = ordinal(key, columns.len(), "ORDER BY", scope)? {
        return Ok(OrderBy::Output(position));
    }
    if let Ast::Identifier(ident) = key {
        let name = names::fold(ident);
        let mut found = columns.iter().enumerate().filter(|(_, (other, _))| *other == name);
        match (found.next(), found.next()) {
            (Some((at, _)), None) => return Ok(OrderBy::Output(at)),
            (Some(_), Some(_)) => {
                let message = format!("ORDER BY \"{name}\" is ambiguous");
                return Err(scope.error(SqlState::AMBIGUOUS_COLUMN, message, ident));
            }
            (None, _) => {}
        }
    }
    let bound = expr::bind(key, scope)?;
    Ok(match bound.kind {
        ExprKind::Column(column) if column.depth == 0 => OrderBy::Output(usize::from(column.column)),
        _ => OrderBy::Expr(bound),
    })
}

/// The column that a number in ORDER BY or GROUP BY means.
pub(super) fn ordinal(
    key: &Ast,
    columns: usize,
    clause: &str,
    scope: &Scope<'_>,
) -> Result<Option<usize>, SqlError> {
    let mut inner = key;
    let mut negative = false;
    loop {
        inner = match inner {
            Ast::Nested(next) => next,
            Ast::UnaryOp { op: UnaryOperator::Minus, expr } if !negative => {
                negative = true;
                expr
            }
            _ => break,
        };
    }
    let Ast::Value(value) = inner else { return Ok(None) };
    let error = |state, message| scope.source().locate(SqlError::new(state, message), key.span());
    let number = match &value.value {
        Literal::Number(digits, _) => digits.parse::<i32>().ok(),
        Literal::Placeholder(_) => return Ok(None),
        _ if negative => return Ok(None),
        _ => None,
    };
    let number = number.map(|n| if negative { -n } else { n });
    let found = number.and_then(|n| usize::try_from(n).ok()).filter(|n| (1..=columns).contains(n));
    match (found, number) {
        (Some(n), _) => Ok(Some(n - 1)),
        (None, Some(n)) => {
            let message = format!("{clause} position {n} is not in select list");
            Err(error(SqlState::INVALID_COLUMN_REFERENCE, message))
        }
        (None, None) => Err(error(SqlState::SYNTAX_ERROR, format!("non-integer constant in {clause}"))),
    }
}

fn values(values: &Values, pass: &mut Scope<'_>) -> Result<Bound, SqlError> {
    let mut rows: Vec<Vec<Expr>> = Vec::with_capacity(values.rows.len());
    let mut unknown: Vec<bool> = Vec::new();
    pass.phase = Phase::Refused("VALUES");
    for row in &values.rows {
        let (bound, literal) = value_row(&row.content, pass)?;
        match rows.first() {
            Some(first) if first.len() != bound.len() => {
                let message = "VALUES lists must all be the same length";
                let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
                let first = row.content.first().map_or_else(Span::empty, Spanned::span);
                return Err(pass.source().locate(error, first));
            }
            Some(_) => unknown.iter_mut().zip(literal).for_each(|(all, this)| *all &= this),
            None => unknown = literal,
        }
        rows.push(bound);
    }
    let mut columns = Vec::with_capacity(unknown.len());
    for at in 0..unknown.len() {
        let mut column: Vec<Expr> =
            rows.iter_mut().map(|row| std::mem::replace(&mut row[at], Expr::null())).collect();
        let mut ty = expr::common_type(&mut column, "VALUES")?;
        if let Type::Row(_) = ty {
            column = column.into_iter().map(expr::settle_rows).collect();
            ty = column[0].ty.clone();
        }
        for (expr, row) in column.iter().zip(&values.rows) {
            let span = row.content.get(at).map_or_else(Span::empty, Spanned::span);
            expr::check_literal(expr).map_err(|error| pass.source().locate(error, span))?;
        }
        rows.iter_mut().zip(column).for_each(|(row, expr)| row[at] = expr);
        columns.push((format!("column{}", at + 1), ty));
    }
    let spans = values.rows.iter().take(1).flat_map(|row| row.content.iter().map(Spanned::span));
    let mut spans: Vec<Span> = spans.collect();
    spans.resize(unknown.len(), Span::empty());
    let body = Body::Values(rows);
    Ok(Bound { body, columns, order: Vec::new(), unknown, spans, visible: Vec::new() })
}

/// The values of one row, and which are literals without a type.
pub(super) fn value_row(row: &[Ast], pass: &mut Scope<'_>) -> Result<(Vec<Expr>, Vec<bool>), SqlError> {
    let mut bound = Vec::with_capacity(row.len());
    let mut unknown = Vec::with_capacity(row.len());
    for ast in row {
        if let Ast::QualifiedWildcard(name, _) = ast {
            let parts: Vec<_> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
            let whole = pass.name(&parts)?;
            for (field, _) in fields(whole)? {
                bound.push(field);
                unknown.push(false);
            }
            continue;
        }
        let expr = expr::bind(ast, pass)?;
        let literal = is_unknown(ast) || expr::is_open(&expr);
        bound.push(if literal { expr::unsettled(expr) } else { expr });
        unknown.push(literal);
    }
    Ok((bound, unknown))
}

/// The fields of a row, with their names.
pub(super) fn fields(row: Expr) -> Result<Vec<(Expr, String)>, SqlError> {
    let Type::Row(ty) = &row.ty else {
        let message = format!("column notation .* applied to type {}, which is not a composite type", row.ty);
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
    };
    let ty = Arc::clone(ty);
    let field = |(at, (name, scalar)): (usize, &(String, Scalar))| {
        let kind = ExprKind::Field(Box::new(row.clone()), at);
        (Expr { kind, ty: Type::Scalar(*scalar) }, name.clone())
    };
    Ok(ty.fields.iter().enumerate().map(field).collect())
}

fn limits(
    tail: Tail<'_>,
    visible: &[String],
    pass: &mut Scope<'_>,
) -> Result<(Option<Expr>, Option<Expr>), SqlError> {
    let one = Ast::Value(Literal::Number("1".to_owned(), false).with_empty_span());
    let mut bind = |clause: &'static str, expr: &Ast| {
        pass.phase = Phase::Refused(clause);
        let bound = expr::bind_open(expr, pass).map_err(|error| match expr {
            Ast::Identifier(ident)
                if error.state() == SqlState::UNDEFINED_COLUMN && visible.contains(&names::fold(ident)) =>
            {
                let message = format!("argument of {clause} must not contain variables");
                pass.error(SqlState::INVALID_COLUMN_REFERENCE, message, ident)
            }
            _ => error,
        })?;
        let from = bound.ty.clone();
        let limit = expr::cast(bound, SqlType::BigInt, CastKind::Assignment).map_err(|_| {
            let message = format!("argument of {clause} must be type bigint, not type {from}");
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
        });
        let limit = limit.and_then(|limit| expr::check_literal(&limit).map(|()| limit));
        limit.map_err(|error| pass.source().locate(error, expr.span()))
    };
    let limit = tail.limit.map(|limit| bind("LIMIT", limit.unwrap_or(&one))).transpose()?;
    let offset = tail.offset.map(|offset| bind("OFFSET", offset)).transpose()?;
    Ok((limit, offset))
}

fn refuse_clauses(query: &AstQuery) -> Result<(), SqlError> {
    if query.fetch.as_ref().is_some_and(|fetch| fetch.with_ties || fetch.percent) {
        return Err(SqlError::unsupported("FETCH FIRST ... WITH TIES"));
    }
    let other = query.for_clause.is_some()
        || query.settings.is_some()
        || query.format_clause.is_some()
        || !query.pipe_operators.is_empty();
    if other { Err(SqlError::unsupported("this clause of SELECT")) } else { Ok(()) }
}

/// Binds a condition, cut at AND. What may fail comes behind all that cannot, on every path.
pub(super) fn conditions(
    scope: &mut Scope<'_>,
    tree: &Ast,
    clause: &'static str,
    into: &mut Vec<Condition>,
) -> Result<(), SqlError> {
    let mut parts = vec![tree];
    let mut made;
    while let Some(part) = parts.pop() {
        match part {
            Ast::Nested(inner) => parts.push(inner),
            Ast::BinaryOp { left, op: BinaryOperator::And, right } => parts.extend([&**right, &**left]),
            Ast::Between { expr, negated: false, low, high }
                if matches!(**expr, Ast::Identifier(_) | Ast::CompoundIdentifier(_)) =>
            {
                for (op, bound) in [(BinaryOperator::GtEq, low), (BinaryOperator::LtEq, high)] {
                    made = Ast::BinaryOp { left: expr.clone(), op, right: bound.clone() };
                    condition(scope, &made, clause, into)?;
                }
            }
            other => condition(scope, other, clause, into)?,
        }
    }
    into.sort_by_key(|condition| condition.expr.may_fail());
    Ok(())
}

fn condition(
    scope: &mut Scope<'_>,
    tree: &Ast,
    clause: &'static str,
    into: &mut Vec<Condition>,
) -> Result<(), SqlError> {
    scope.phase = Phase::Refused(match clause {
        "JOIN/ON" | "JOIN/USING" => "JOIN conditions",
        other => other,
    });
    scope.take_uses();
    let mut expr = expr::bind(tree, scope)?;
    if is_unknown(tree) || expr::is_open(&expr) {
        expr = expr::unsettled(expr);
    }
    let expr = scope.condition_of(expr, clause, tree)?;
    let uses = scope.take_uses();
    into.push(Condition { expr, uses });
    Ok(())
}
