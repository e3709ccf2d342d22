//! Select lists and what refers to their columns: ORDER BY and DISTINCT.
//!
//! Responsible for: stars, names of results, keys that are results. Not responsible for: the other clauses
//! of SELECT (`select`).

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{
    Distinct as AstDistinct, Expr as Ast, Ident, ObjectName, OrderByExpr, SelectItem,
    SelectItemQualifiedWildcardKind, Spanned,
};
use albireo_sql::source::Span;
use albireo_sql::{column_label as label, names};

use super::bind::{Columns, fields, order_options, ordinal};
use super::scope::{Mention, Scope};
use super::tree::{OrderBy, OrderKey};
use crate::expr::{self, Expr, Names};
use crate::types::{Scalar, Type};

/// A column of the result while it is bound.
pub(super) struct Output {
    pub(super) name: String,
    pub(super) expr: Expr,
    /// Whether it is a literal whose type nothing has said yet.
    pub(super) unknown: bool,
    /// The columns referred to in it.
    pub(super) said: Vec<Mention>,
    /// Where it stands.
    pub(super) span: Option<Span>,
}

/// A key of ORDER BY or DISTINCT ON while it is bound.
pub(super) struct Key {
    pub(super) by: OrderBy,
    /// The columns referred to in it.
    pub(super) said: Vec<Mention>,
    /// Where it stands.
    span: Span,
}

/// Binds a select list or RETURNING.
pub(super) fn select_list(
    scope: &mut Scope<'_>,
    items: &[SelectItem],
    has_from: bool,
) -> Result<Vec<Output>, SqlError> {
    let mut outputs = Vec::with_capacity(items.len());
    scope.take_mentions();
    for item in items {
        match item {
            SelectItem::UnnamedExpr(ast) => {
                if let Ast::QualifiedWildcard(name, _) = ast {
                    relation_star(scope, name, &mut outputs)?;
                    continue;
                }
                outputs.push(output(scope, ast, label(ast))?);
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                outputs.push(output(scope, expr, names::fold(alias))?);
            }
            SelectItem::Wildcard(star) => {
                let span = star.wildcard_token.0.span;
                if !has_from {
                    let message = "SELECT * with no tables specified is not valid";
                    let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
                    return Err(scope.source().locate(error, span));
                }
                for visible in scope.visible.clone() {
                    let expr = scope.meaning(&visible.meaning, span)?;
                    outputs.push(plain(scope, visible.name, expr, span));
                }
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                relation_star(scope, name, &mut outputs)?;
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(ast), _) => {
                let row = expr::bind(ast, scope)?;
                for (expr, name) in fields(row)? {
                    outputs.push(plain(scope, name, expr, ast.span()));
                }
            }
            SelectItem::ExprWithAliases { .. } => {
                return Err(SqlError::unsupported("several aliases of one column"));
            }
        }
    }
    Ok(outputs)
}

/// A column that is no literal.
fn plain(scope: &mut Scope<'_>, name: String, expr: Expr, span: Span) -> Output {
    Output { name, expr, unknown: false, said: scope.take_mentions(), span: Some(span) }
}

fn output(scope: &mut Scope<'_>, ast: &Ast, name: String) -> Result<Output, SqlError> {
    let open = expr::bind_open(ast, scope)?;
    let unknown = open.ty == Type::Scalar(Scalar::Unknown);
    let said = scope.take_mentions();
    Ok(Output { name, expr: expr::settle_rows(open), unknown, said, span: Some(ast.span()) })
}

fn relation_star(
    scope: &mut Scope<'_>,
    name: &ObjectName,
    outputs: &mut Vec<Output>,
) -> Result<(), SqlError> {
    let parts: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
    let span = parts.first().map_or_else(Span::empty, |first| first.span);
    let found = match parts.as_slice() {
        [table] => scope.entry(None, &names::fold(table)),
        [schema, table] => scope.entry(Some(&names::fold(schema)), &names::fold(table)),
        _ => None,
    };
    if let Some(entry) = found {
        for (name, meaning) in scope.entries[entry].columns.clone() {
            let expr = scope.meaning(&meaning, span)?;
            outputs.push(plain(scope, name, expr, span));
        }
        return Ok(());
    }
    let row = scope.name(&parts).map_err(|_| {
        let message = format!("missing FROM-clause entry for table \"{name}\"");
        scope.source().locate(SqlError::new(SqlState::UNDEFINED_TABLE, message), span)
    })?;
    for (expr, name) in fields(row)? {
        outputs.push(plain(scope, name, expr, span));
    }
    Ok(())
}

/// Names, types and expressions of a select list.
pub(super) fn split(outputs: Vec<Output>) -> (Columns, Vec<Expr>) {
    outputs.into_iter().map(|output| ((output.name, output.expr.ty.clone()), output.expr)).unzip()
}

/// The result of this name; 42702 if several different ones have it.
pub(super) fn named_output(
    scope: &Scope<'_>,
    outputs: &[Output],
    ident: &Ident,
    clause: &str,
) -> Result<Option<usize>, SqlError> {
    let name = names::fold(ident);
    let mut named = outputs.iter().enumerate().filter(|(_, output)| output.name == name);
    let Some((at, first)) = named.next() else { return Ok(None) };
    if named.any(|(_, other)| other.expr != first.expr) {
        let message = format!("{clause} \"{name}\" is ambiguous");
        return Err(scope.error(SqlState::AMBIGUOUS_COLUMN, message, ident));
    }
    Ok(Some(at))
}

/// Binds ORDER BY; what comes a second time orders nothing.
pub(super) fn order_keys(
    scope: &mut Scope<'_>,
    order_by: &[OrderByExpr],
    outputs: &[Output],
) -> Result<Vec<(Key, OrderKey)>, SqlError> {
    let mut keys: Vec<(Key, OrderKey)> = Vec::with_capacity(order_by.len());
    for key in order_by {
        let (descending, nulls_first) = order_options(&key.options);
        let bound = sort_key(scope, &key.expr, outputs, "ORDER BY")?;
        let by = bound.by.clone();
        if keys.iter().all(|(_, known)| known.by != by) {
            keys.push((bound, OrderKey { by, descending, nulls_first }));
        }
    }
    Ok(keys)
}

/// What a key means: the number or name of a result, an expression that is one, or another expression.
fn sort_key(scope: &mut Scope<'_>, ast: &Ast, outputs: &[Output], clause: &str) -> Result<Key, SqlError> {
    let span = ast.span();
    let result = |at| Key { by: OrderBy::Output(at), said: Vec::new(), span };
    if let Some(position) = ordinal(ast, outputs.len(), clause, scope)? {
        return Ok(result(position));
    }
    if let Ast::Identifier(ident) = ast
        && let Some(at) = named_output(scope, outputs, ident, clause)?
    {
        return Ok(result(at));
    }
    scope.take_mentions();
    let bound = expr::bind(ast, scope)?;
    let said = scope.take_mentions();
    Ok(match outputs.iter().position(|output| output.expr == bound) {
        Some(at) => result(at),
        None => Key { by: OrderBy::Expr(bound), said, span },
    })
}

/// Binds DISTINCT; the keys of DISTINCT ON.
pub(super) fn distinct(
    scope: &mut Scope<'_>,
    distinct: Option<&AstDistinct>,
    order: &[(Key, OrderKey)],
    outputs: &[Output],
) -> Result<Option<Vec<Key>>, SqlError> {
    let error = |scope: &Scope<'_>, message: &str, span: Span| {
        let error = SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message);
        scope.source().locate(error, span)
    };
    match distinct {
        None | Some(AstDistinct::All) => Ok(None),
        Some(AstDistinct::Distinct) => {
            match order.iter().find(|(key, _)| matches!(key.by, OrderBy::Expr(_))) {
                Some((key, _)) => {
                    let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                    Err(error(scope, message, key.span))
                }
                None => Ok(Some(Vec::new())),
            }
        }
        Some(AstDistinct::On(exprs)) => {
            let keys = exprs.iter().map(|ast| sort_key(scope, ast, outputs, "DISTINCT ON"));
            let keys: Vec<Key> = keys.collect::<Result<_, _>>()?;
            match unmatched(&keys, order) {
                Some(span) => {
                    let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
                    Err(error(scope, message, span))
                }
                None => Ok(Some(keys)),
            }
        }
    }
}

/// Where a key stands that prevents rows that agree in the keys from coming together.
fn unmatched(keys: &[Key], order: &[(Key, OrderKey)]) -> Option<Span> {
    let is_key = |by: &OrderBy| keys.iter().any(|key| key.by == *by);
    let other = order.iter().position(|(key, _)| !is_key(&key.by))?;
    let late = order[other..].iter().find_map(|(late, _)| keys.iter().find(|key| key.by == late.by));
    let late = late.map(|key| key.span);
    let ordered = |key: &&Key| order[..other].iter().any(|(first, _)| first.by == key.by);
    late.or_else(|| keys.iter().find(|key| !ordered(key)).map(|key| key.span))
}
