//! Queries, bound: WITH, set operations, VALUES, ORDER BY, LIMIT.
//!
//! Responsible for: everything around SELECT, and cutting conditions at AND. Not responsible for: SELECT
//! itself (`select`).

use std::cell::Cell;
use std::sync::Arc;

use albireo_base::{SqlError, SqlState, SqlType};
use albireo_sql::ast::{
    BinaryOperator, Expr as Ast, LimitClause, OrderBy as AstOrderBy, OrderByExpr, OrderByKind,
    OrderByOptions, Query as AstQuery, SetExpr, SetOperator, SetQuantifier, Value as Literal, Values, With,
};
use albireo_sql::names;

use super::SelectPlan;
use super::group::Phase;
use super::scope::{CteDef, CteLink, Env, Scope};
use super::tree::{Body, Condition, Cte, OrderBy, OrderKey, Query, SetKind, SetOperation};
use crate::expr::{self, CastKind, Expr, ExprKind, Names, is_unknown};
use crate::types::{Scalar, Type};

/// Names and types of a query's columns.
pub(super) type Columns = Vec<(String, Type)>;

/// A query's body, bound.
pub(super) struct Bound {
    pub(super) body: Body,
    pub(super) columns: Columns,
    pub(super) order: Vec<OrderKey>,
    /// Which columns are literals whose type nothing has said yet.
    pub(super) unknown: Vec<bool>,
}

/// Binds a query by itself.
pub(super) fn bind_query(
    env: Env<'_>,
    query: &AstQuery,
    outer: &mut dyn Names,
) -> Result<SelectPlan, SqlError> {
    let mut pass = Scope::passing(env, outer);
    let line = super::line_of(query);
    let bound = bind_in(env, query, &mut pass)?;
    let (query, columns) = finish(bound);
    let correlated = pass.correlated;
    Ok(SelectPlan { columns, query: Arc::new(query), accesses: Vec::new(), correlated, line })
}

fn finish((query, columns, _): (Query, Columns, Vec<bool>)) -> (Query, Columns) {
    (query, columns)
}

/// Binds a query in FROM, or the source of INSERT, outside of the level of `scope`.
pub(super) fn bind_nested(
    env: Env<'_>,
    query: &AstQuery,
    scope: &mut Scope<'_>,
) -> Result<(Query, Columns), SqlError> {
    let mut pass = Scope::passing(env, &mut *scope.outer);
    let bound = finish(bind_in(env, query, &mut pass)?);
    let correlated = pass.correlated;
    scope.correlated |= correlated;
    Ok(bound)
}

/// Binds a query whose names around are those of `pass`.
pub(super) fn bind_in(
    env: Env<'_>,
    query: &AstQuery,
    pass: &mut Scope<'_>,
) -> Result<(Query, Columns, Vec<bool>), SqlError> {
    refuse_clauses(query)?;
    let Some(with) = &query.with else { return bind_plain(env, query, pass) };
    let mut defs = Vec::new();
    let mut queries = Vec::new();
    bind_with(env, with, pass, &mut defs, &mut queries)?;
    let link = CteLink { ctes: &defs, parent: env.ctes };
    let inner_env = Env { ctes: Some(&link), ..env };
    let mut inner = Scope::passing(inner_env, &mut *pass);
    let (mut bound, columns, unknown) = bind_plain(inner_env, query, &mut inner)?;
    bound.ctes = queries.into_iter().zip(&defs).filter(|(_, def)| def.used.get()).map(|(q, _)| q).collect();
    Ok((bound, columns, unknown))
}

fn bind_with(
    env: Env<'_>,
    with: &With,
    pass: &mut Scope<'_>,
    defs: &mut Vec<CteDef>,
    queries: &mut Vec<Cte>,
) -> Result<(), SqlError> {
    if with.recursive {
        return Err(SqlError::unsupported("WITH RECURSIVE in a procedure").with_hint("Use a loop."));
    }
    for cte in &with.cte_tables {
        let name = names::fold(&cte.alias.name);
        if defs.iter().any(|other| other.name == name) {
            let message = format!("WITH query name \"{name}\" specified more than once");
            return Err(pass.error(SqlState::DUPLICATE_ALIAS, message, &cte.alias.name));
        }
        let (query, mut columns) = {
            let link = CteLink { ctes: defs, parent: env.ctes };
            let inner_env = Env { ctes: Some(&link), ..env };
            let mut inner = Scope::passing(inner_env, &mut *pass);
            finish(bind_in(inner_env, &cte.query, &mut inner)?)
        };
        if cte.alias.columns.len() > columns.len() {
            let message = format!(
                "WITH query \"{name}\" has {} columns available but {} columns specified",
                columns.len(),
                cte.alias.columns.len()
            );
            return Err(pass.error(SqlState::INVALID_COLUMN_REFERENCE, message, &cte.alias.name));
        }
        for (column, alias) in columns.iter_mut().zip(&cte.alias.columns) {
            column.0 = names::fold(&alias.name);
        }
        let id = env.next_cte.get();
        env.next_cte.set(id + 1);
        queries.push(Cte { id, query, repeated: None });
        defs.push(CteDef { name, id, columns, used: Cell::new(false) });
    }
    Ok(())
}

fn bind_plain(
    env: Env<'_>,
    query: &AstQuery,
    pass: &mut Scope<'_>,
) -> Result<(Query, Columns, Vec<bool>), SqlError> {
    let limited = query.limit_clause.is_some() || query.fetch.is_some();
    let order_by = order_exprs(query.order_by.as_ref())?;
    let bound = body(env, &query.body, order_by, limited, pass)?;
    let (limit, offset) = limits(query, pass)?;
    let Bound { body, columns, order, unknown } = bound;
    Ok((Query { ctes: Vec::new(), body, order, limit, offset }, columns, unknown))
}

fn order_exprs(order_by: Option<&AstOrderBy>) -> Result<&[OrderByExpr], SqlError> {
    match order_by {
        None => Ok(&[]),
        Some(AstOrderBy { kind: OrderByKind::Expressions(keys), .. }) => Ok(keys),
        Some(_) => Err(SqlError::unsupported("ORDER BY ALL")),
    }
}

fn body(
    env: Env<'_>,
    tree: &SetExpr,
    order_by: &[OrderByExpr],
    limited: bool,
    pass: &mut Scope<'_>,
) -> Result<Bound, SqlError> {
    let mut bound = match tree {
        SetExpr::Select(select) => return super::select::bind(env, select, order_by, limited, pass),
        SetExpr::Query(query) => {
            let (query, columns, unknown) = bind_in(env, query, pass)?;
            Bound { body: Body::Nested(Box::new(query)), columns, order: Vec::new(), unknown }
        }
        SetExpr::Values(rows) => values(rows, pass)?,
        SetExpr::SetOperation { left, op, set_quantifier, right } => {
            let left = body(env, left, &[], false, pass)?;
            let right = body(env, right, &[], false, pass)?;
            set_operation(*op, *set_quantifier, left, right)?
        }
        SetExpr::Table(table) => {
            let name = table.table_name.clone().unwrap_or_default();
            return Err(SqlError::unsupported("TABLE").with_hint(format!("Write SELECT * FROM {name}.")));
        }
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
            return Err(SqlError::unsupported("a change with or inside of WITH")
                .with_hint("Make the change in a separate statement."));
        }
    };
    for key in order_by {
        let (descending, nulls_first) = order_options(&key.options);
        let by = OrderBy::Output(output_position(&key.expr, &bound.columns, pass)?);
        bound.order.push(OrderKey { by, descending, nulls_first });
    }
    Ok(bound)
}

/// Whether the order is descending, and whether NULLs come first.
pub(super) fn order_options(options: &OrderByOptions) -> (bool, bool) {
    let descending = options.asc == Some(false);
    (descending, options.nulls_first.unwrap_or(descending))
}

fn output_position(key: &Ast, columns: &Columns, pass: &Scope<'_>) -> Result<usize, SqlError> {
    if let Some(position) = ordinal(key, columns.len(), "ORDER BY")? {
        return Ok(position);
    }
    if let Ast::Identifier(ident) = key {
        let name = names::fold(ident);
        let mut found = columns.iter().enumerate().filter(|(_, (other, _))| *other == name);
        match (found.next(), found.next()) {
            (Some((at, _)), None) => return Ok(at),
            (Some(_), Some(_)) => {
                let message = format!("ORDER BY \"{name}\" is ambiguous");
                return Err(pass.error(SqlState::AMBIGUOUS_COLUMN, message, ident));
            }
            _ => {
                let message = format!("column \"{name}\" does not exist");
                return Err(pass.error(SqlState::UNDEFINED_COLUMN, message, ident));
            }
        }
    }
    let message = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause";
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .with_detail("Only result column names can be used, not expressions or functions."))
}

/// The column that a number in ORDER BY or GROUP BY means.
pub(super) fn ordinal(key: &Ast, columns: usize, clause: &str) -> Result<Option<usize>, SqlError> {
    let Ast::Value(value) = key else { return Ok(None) };
    let Literal::Number(digits, _) = &value.value else { return Ok(None) };
    match digits.parse::<usize>() {
        Ok(n) if (1..=columns).contains(&n) => Ok(Some(n - 1)),
        Ok(n) => {
            let message = format!("{clause} position {n} is not in select list");
            Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message))
        }
        Err(_) => Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("non-integer constant in {clause}"))),
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
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
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
        let ty = expr::common_type(&mut column, "VALUES")?;
        rows.iter_mut().zip(column).for_each(|(row, expr)| row[at] = expr);
        columns.push((format!("column{}", at + 1), ty));
    }
    Ok(Bound { body: Body::Values(rows), columns, order: Vec::new(), unknown })
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

fn set_operation(
    op: SetOperator,
    quantifier: SetQuantifier,
    left: Bound,
    right: Bound,
) -> Result<Bound, SqlError> {
    let (kind, word) = match op {
        SetOperator::Union => (SetKind::Union, "UNION"),
        SetOperator::Intersect => (SetKind::Intersect, "INTERSECT"),
        SetOperator::Except | SetOperator::Minus => (SetKind::Except, "EXCEPT"),
    };
    let all = match quantifier {
        SetQuantifier::All => true,
        SetQuantifier::None | SetQuantifier::Distinct => false,
        _ => return Err(SqlError::unsupported(format!("{word} BY NAME"))),
    };
    if left.columns.len() != right.columns.len() {
        let message = format!("each {word} query must have the same number of columns");
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    let as_query = |body| Query { ctes: Vec::new(), body, order: Vec::new(), limit: None, offset: None };
    let (mut first, mut second) = (as_query(left.body), as_query(right.body));
    let mut columns = Vec::with_capacity(left.columns.len());
    let mut unknown = Vec::with_capacity(left.columns.len());
    for (at, ((name, a), (_, b))) in left.columns.into_iter().zip(right.columns).enumerate() {
        let known = |unknown: &[bool], ty: Type| match unknown.get(at) {
            Some(true) => Type::Scalar(Scalar::Unknown),
            _ => ty,
        };
        let (a, b) = (known(&left.unknown, a), known(&right.unknown, b));
        let of_type = |ty: &Type| Expr { ty: ty.clone(), ..Expr::null() };
        let ty = expr::common_type(&mut [of_type(&a), of_type(&b)], word)?;
        if a != ty {
            retype(&mut first, at, &ty)?;
        }
        if b != ty {
            retype(&mut second, at, &ty)?;
        }
        // Two literals make a column of texts.
        unknown.push(false);
        columns.push((name, ty));
    }
    let set = SetOperation { kind, all, left: first, right: second };
    Ok(Bound { body: Body::Set(Box::new(set)), columns, order: Vec::new(), unknown })
}

/// Gives a column of a query another type.
pub(super) fn retype(query: &mut Query, column: usize, ty: &Type) -> Result<(), SqlError> {
    let convert = |expr: &mut Expr| {
        let mut taken = std::mem::replace(expr, Expr::null());
        let literal = matches!(taken.kind, ExprKind::Constant(_)) && taken.ty == Type::Scalar(Scalar::Text);
        if literal || expr::is_open(&taken) {
            taken = expr::unsettled(taken);
        }
        *expr = expr::cast_to(taken, ty, None, CastKind::Assignment)?;
        Ok::<(), SqlError>(())
    };
    match &mut query.body {
        Body::Select(select) => convert(&mut select.outputs[column]),
        Body::Values(rows) => rows.iter_mut().try_for_each(|row| convert(&mut row[column])),
        Body::Nested(inner) => retype(inner, column, ty),
        Body::Set(set) => {
            retype(&mut set.left, column, ty)?;
            retype(&mut set.right, column, ty)
        }
    }
}

fn limits(query: &AstQuery, pass: &mut Scope<'_>) -> Result<(Option<Expr>, Option<Expr>), SqlError> {
    let (mut limit, offset) = match &query.limit_clause {
        None => (None, None),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
        }
        Some(LimitClause::LimitOffset { .. }) => return Err(SqlError::unsupported("LIMIT BY")),
        Some(LimitClause::OffsetCommaLimit { .. }) => {
            let message = "LIMIT #,# syntax is not supported";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message)
                .with_hint("Use separate LIMIT and OFFSET clauses."));
        }
    };
    let one = Ast::Value(Literal::Number("1".to_owned(), false).with_empty_span());
    if let Some(fetch) = &query.fetch {
        limit = Some(fetch.quantity.as_ref().unwrap_or(&one));
    }
    let mut bind = |clause: &'static str, expr: Option<&Ast>| match expr {
        Some(expr) => {
            pass.phase = Phase::Refused(clause);
            expr::bind_to(expr, pass, SqlType::BigInt, CastKind::Assignment).map(Some)
        }
        None => Ok(None),
    };
    Ok((bind("LIMIT", limit)?, bind("OFFSET", offset)?))
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

/// Binds a condition, cut at AND.
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
    let expr = expr::to_bool(expr, clause)?;
    let uses = scope.take_uses();
    into.push(Condition { expr, uses });
    Ok(())
}
