//! SELECT, bound.
//!
//! Responsible for: the clauses of one SELECT in the order they must be bound, the select list, names
//! of results. Not responsible for: FROM (`from`), access paths (`access`), aggregates (`group`).

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{
    Distinct as AstDistinct, Expr as Ast, GroupByExpr, Ident, OrderByExpr, Select as AstSelect, SelectItem,
    SelectItemQualifiedWildcardKind,
};
use albireo_sql::bind::column_label as label;
use albireo_sql::names;

use super::bind::{Bound, Columns, conditions, fields, order_options, ordinal};
use super::from::From;
use super::group::{Phase, has_aggregate};
use super::scope::{Env, Scope};
use super::tree::{Body, Distinct, Grouping, OrderBy, OrderKey, Select};
use crate::expr::{self, ColumnRef, Expr, ExprKind, Names, is_unknown};

/// A column of the result while it is bound.
pub(super) struct Output {
    name: String,
    pub(super) expr: Expr,
    /// As written; nothing for what a star stands for.
    text: Option<String>,
    unknown: bool,
}

/// Binds a SELECT with the ORDER BY of its query; `limited` if that has a LIMIT.
pub(super) fn bind(
    env: Env<'_>,
    select: &AstSelect,
    order_by: &[OrderByExpr],
    limited: bool,
    pass: &mut Scope<'_>,
) -> Result<Bound, SqlError> {
    refuse_clauses(select)?;
    let mut scope = Scope::level(env, &mut *pass);
    let mut from = From::default();
    let mut pool = from.items(&mut scope, &select.from)?;
    if let Some(filter) = &select.selection {
        conditions(&mut scope, filter, "WHERE", &mut pool.conditions)?;
    }
    let grouped = group_by(&mut scope, select, order_by)?;
    scope.phase = if grouped { Phase::Grouped } else { Phase::Refused("this clause") };
    let outputs = select_list(&mut scope, &select.projection, !select.from.is_empty())?;
    let having = match &select.having {
        Some(having) => Some(expr::to_bool(bind_grouped(&mut scope, having)?, "HAVING")?),
        None => None,
    };
    let order = order_keys(&mut scope, order_by, &outputs)?;
    let distinct = distinct(&mut scope, select.distinct.as_ref(), &order, &outputs)?;
    let aggregates = std::mem::take(&mut scope.group.aggregates);
    let keys: Vec<Expr> = std::mem::take(&mut scope.group.keys).into_iter().map(|(_, key)| key).collect();
    let grouping =
        grouped.then(|| Grouping { written: is_written(select), sets: None, keys, aggregates, having });
    let columns = outputs.iter().map(|output| (output.name.clone(), output.expr.ty.clone())).collect();
    let unknown = outputs.iter().map(|output| output.unknown).collect();
    let outputs = outputs.into_iter().map(|output| output.expr).collect();
    let relations = from.relations;
    let select = Select {
        relations,
        from: pool,
        constants: Vec::new(),
        steps: Vec::new(),
        grouping,
        windows: Vec::new(),
        outputs,
        distinct,
        limited,
        ordered: false,
        ends: false,
    };
    Ok(Bound { body: Body::Select(Box::new(select)), columns, order, unknown })
}

fn is_written(select: &AstSelect) -> bool {
    matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if !keys.is_empty())
}

/// Binds GROUP BY; whether the query is one of groups.
fn group_by(scope: &mut Scope<'_>, select: &AstSelect, order_by: &[OrderByExpr]) -> Result<bool, SqlError> {
    let GroupByExpr::Expressions(keys, modifiers) = &select.group_by else {
        return Err(SqlError::unsupported("GROUP BY ALL"));
    };
    if !modifiers.is_empty() {
        return Err(SqlError::unsupported("this form of GROUP BY in a procedure"));
    }
    scope.phase = Phase::Refused("GROUP BY");
    for key in keys {
        let ast = group_key(scope, key, &select.projection)?;
        if matches!(ast, Ast::Rollup(_) | Ast::Cube(_) | Ast::GroupingSets(_)) {
            return Err(SqlError::unsupported("grouping sets in a procedure"));
        }
        let bound = expr::bind(ast, scope)?;
        scope.add_key(ast, bound);
    }
    Ok(!keys.is_empty()
        || select.having.is_some()
        || has_aggregate(&select.projection)
        || order_by.iter().any(|key| has_aggregate(&key.expr)))
}

/// What a key of GROUP BY means: a number or the name of a result that is no column is that result.
fn group_key<'a>(scope: &Scope<'_>, key: &'a Ast, projection: &'a [SelectItem]) -> Result<&'a Ast, SqlError> {
    if let Some(position) = ordinal(key, projection.len(), "GROUP BY")? {
        return Ok(match &projection[position] {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr,
            _ => key,
        });
    }
    if let Ast::Identifier(ident) = key {
        let name = names::fold(ident);
        if !scope.visible.iter().any(|visible| visible.name == name) {
            let named = projection.iter().find_map(|item| match item {
                SelectItem::ExprWithAlias { expr, alias } if names::fold(alias) == name => Some(expr),
                _ => None,
            });
            return Ok(named.unwrap_or(key));
        }
    }
    Ok(key)
}

fn bind_grouped(scope: &mut Scope<'_>, ast: &Ast) -> Result<Expr, SqlError> {
    match scope.with_keys(ast) {
        Some(replaced) => expr::bind(&replaced, scope),
        None => expr::bind(ast, scope),
    }
}

/// Binds a select list or RETURNING.
pub(super) fn select_list(
    scope: &mut Scope<'_>,
    items: &[SelectItem],
    has_from: bool,
) -> Result<Vec<Output>, SqlError> {
    let mut outputs = Vec::with_capacity(items.len());
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
            SelectItem::Wildcard(_) if !has_from => {
                let message = "SELECT * with no tables specified is not valid";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            SelectItem::Wildcard(_) => {
                for visible in scope.visible.clone() {
                    let expr = star_column(scope, visible.relation, visible.column)?;
                    outputs.push(Output { name: visible.name, expr, text: None, unknown: false });
                }
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                relation_star(scope, name, &mut outputs)?;
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(ast), _) => {
                let row = expr::bind(ast, scope)?;
                for (expr, name) in fields(row)? {
                    outputs.push(Output { name, expr, text: None, unknown: false });
                }
            }
            SelectItem::ExprWithAliases { .. } => {
                return Err(SqlError::unsupported("several aliases of one column"));
            }
        }
    }
    Ok(outputs)
}

fn output(scope: &mut Scope<'_>, ast: &Ast, name: String) -> Result<Output, SqlError> {
    let expr = bind_grouped(scope, ast)?;
    let unknown = is_unknown(ast) || expr::is_open(&expr);
    Ok(Output { name, expr, text: Some(ast.to_string()), unknown })
}

fn star_column(scope: &mut Scope<'_>, relation: u16, column: u16) -> Result<Expr, SqlError> {
    let named = &scope.relations[usize::from(relation)];
    let parts = [names::quoted(&named.name), names::quoted(&named.columns[usize::from(column)].0)];
    match scope.phase {
        // Whether it may stand there is asked as for a name.
        Phase::Grouped => scope.name(&parts),
        _ => Ok(scope.column(relation, column)),
    }
}

fn relation_star(
    scope: &mut Scope<'_>,
    name: &albireo_sql::ast::ObjectName,
    outputs: &mut Vec<Output>,
) -> Result<(), SqlError> {
    let parts: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
    let found = match parts.as_slice() {
        [table] => scope.relation(None, &names::fold(table)),
        [schema, table] => scope.relation(Some(&names::fold(schema)), &names::fold(table)),
        _ => None,
    };
    if let Some(relation) = found {
        let columns = scope.relations[usize::from(relation)].columns.clone();
        for (at, (name, _)) in columns.into_iter().enumerate() {
            let expr = star_column(scope, relation, at as u16)?;
            outputs.push(Output { name, expr, text: None, unknown: false });
        }
        return Ok(());
    }
    let missing = || {
        let message = format!("missing FROM-clause entry for table \"{name}\"");
        SqlError::new(SqlState::UNDEFINED_TABLE, message)
    };
    let row = scope.name(&parts).map_err(|_| match parts.first() {
        Some(first) => scope.source().locate(missing(), first.span),
        None => missing(),
    })?;
    for (expr, name) in fields(row)? {
        outputs.push(Output { name, expr, text: None, unknown: false });
    }
    Ok(())
}

/// Names, types and expressions of a select list.
pub(super) fn split(outputs: Vec<Output>) -> (Columns, Vec<Expr>) {
    outputs.into_iter().map(|output| ((output.name, output.expr.ty.clone()), output.expr)).unzip()
}

/// The expressions of a select list, and which are literals without a type.
fn order_keys(
    scope: &mut Scope<'_>,
    order_by: &[OrderByExpr],
    outputs: &[Output],
) -> Result<Vec<OrderKey>, SqlError> {
    let mut keys = Vec::with_capacity(order_by.len());
    for key in order_by {
        let (descending, nulls_first) = order_options(&key.options);
        let by = order_key(scope, &key.expr, outputs)?;
        keys.push(OrderKey { by, descending, nulls_first });
    }
    Ok(keys)
}

fn order_key(scope: &mut Scope<'_>, ast: &Ast, outputs: &[Output]) -> Result<OrderBy, SqlError> {
    if let Some(position) = ordinal(ast, outputs.len(), "ORDER BY")? {
        return Ok(OrderBy::Output(position));
    }
    if let Ast::Identifier(ident) = ast {
        let name = names::fold(ident);
        let mut named = outputs.iter().enumerate().filter(|(_, output)| output.name == name);
        if let Some((at, first)) = named.next() {
            if named.any(|(_, other)| !same_column(&other.expr, &first.expr) && other.text != first.text) {
                let message = format!("ORDER BY \"{name}\" is ambiguous");
                return Err(scope.error(SqlState::AMBIGUOUS_COLUMN, message, ident));
            }
            return Ok(OrderBy::Output(at));
        }
    }
    let text = Some(ast.to_string());
    if let Some(at) = outputs.iter().position(|output| output.text == text) {
        return Ok(OrderBy::Output(at));
    }
    let bound = bind_grouped(scope, ast)?;
    if let Some(at) = outputs.iter().position(|output| same_column(&output.expr, &bound)) {
        return Ok(OrderBy::Output(at));
    }
    Ok(OrderBy::Expr(bound))
}

fn column_of(expr: &Expr) -> Option<ColumnRef> {
    match expr.kind {
        ExprKind::Column(column) => Some(column),
        _ => None,
    }
}

fn same_column(a: &Expr, b: &Expr) -> bool {
    column_of(a).is_some() && column_of(a) == column_of(b)
}

fn distinct(
    scope: &mut Scope<'_>,
    distinct: Option<&AstDistinct>,
    order: &[OrderKey],
    outputs: &[Output],
) -> Result<Distinct, SqlError> {
    match distinct {
        None | Some(AstDistinct::All) => Ok(Distinct::No),
        Some(AstDistinct::Distinct) => {
            if order.iter().any(|key| matches!(key.by, OrderBy::Expr(_))) {
                let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
            }
            Ok(Distinct::All)
        }
        Some(AstDistinct::On(exprs)) => {
            let mut keys = Vec::with_capacity(exprs.len());
            for ast in exprs {
                keys.push(match order_key(scope, ast, outputs)? {
                    OrderBy::Output(at) => outputs[at].expr.clone(),
                    OrderBy::Expr(expr) => expr,
                });
            }
            Ok(Distinct::On(keys))
        }
    }
}

fn refuse_clauses(select: &AstSelect) -> Result<(), SqlError> {
    if select.into.is_some() {
        return Err(SqlError::unsupported("SELECT INTO in a query inside of a statement"));
    }
    let refused = [
        (select.top.is_some(), "TOP"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (select.prewhere.is_some(), "PREWHERE"),
        (select.qualify.is_some(), "QUALIFY"),
        (!select.named_window.is_empty(), "WINDOW in a procedure"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (!select.cluster_by.is_empty() || !select.distribute_by.is_empty(), "CLUSTER BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (select.value_table_mode.is_some(), "SELECT AS VALUE"),
    ];
    match refused.into_iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(SqlError::unsupported(what)),
        None => Ok(()),
    }
}
