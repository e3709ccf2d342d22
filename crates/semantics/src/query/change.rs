//! UPDATE and DELETE, bound, and what all changes share.
//!
//! Responsible for: WITH before a change, the rows concerned, assignments, RETURNING. Not responsible for: INSERT
//! (`insert`), MERGE (`merge`), the query that finds the rows on a snapshot (`rows`), access paths and making the
//! changes (`procedure`).

use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlState};
use albireo_sql::ast::{
    Assignment, AssignmentTarget, Delete as AstDelete, Expr as Ast, FromTable, Ident, ObjectName,
    Query as AstQuery, SelectItem, SetExpr, Spanned, Statement, TableFactor, TableWithJoins,
    Update as AstUpdate, UpdateTableFromKind,
};
use albireo_sql::source::Span;
use albireo_sql::{TableDef, names};

use super::bind::{Columns, conditions};
use super::from::From;
use super::scope::{CteLink, Env, Phase, Scope};
use super::tree::{Body, Change, Pool, Query, Target, Update};
use super::{ChangePlan, insert, merge, output, sets, with};
use crate::expr::{self, CastKind, Expr, ExprKind, Names, Subquery, SubqueryKind};
use crate::table::default_of;
use crate::types::{Scalar, Type};

/// Binds a change.
pub(super) fn bind(
    env: Env<'_>,
    statement: &Statement,
    outer: &mut dyn Names,
) -> Result<ChangePlan, SqlError> {
    let mut plan = match statement {
        Statement::Query(query) => bind_with(env, query, outer),
        Statement::Insert(insert) => insert::bind(env, insert, outer),
        Statement::Update(update) => bind_update(env, update, outer),
        Statement::Delete(delete) => bind_delete(env, delete, outer),
        Statement::Merge(merge) => merge::bind(env, merge, outer),
        _ => Err(SqlError::unsupported("this statement in a procedure")),
    }?;
    plan.line = super::line_of(statement);
    Ok(plan)
}

/// Binds a change after WITH.
fn bind_with(env: Env<'_>, query: &AstQuery, outer: &mut dyn Names) -> Result<ChangePlan, SqlError> {
    let (SetExpr::Insert(change)
    | SetExpr::Update(change)
    | SetExpr::Delete(change)
    | SetExpr::Merge(change)) = query.body.as_ref()
    else {
        return Err(SqlError::unsupported("this statement in a procedure"));
    };
    let mut pass = Scope::passing(env, outer);
    let ctes = match &query.with {
        Some(with) => with::bind(env, with, &mut pass)?,
        None => with::Ctes::default(),
    };
    let link = CteLink { ctes: &ctes.defs, parent: env.ctes };
    let mut plan = bind(Env { ctes: Some(&link), ..env }, change, &mut pass)?;
    Arc::make_mut(&mut plan.change).ctes_mut().splice(0..0, ctes.used());
    Ok(plan)
}

fn bind_update(env: Env<'_>, update: &AstUpdate, outer: &mut dyn Names) -> Result<ChangePlan, SqlError> {
    if update.or.is_some() || update.output.is_some() || !update.order_by.is_empty() || update.limit.is_some()
    {
        return Err(SqlError::unsupported("this form of UPDATE"));
    }
    let mut pass = Scope::passing(env, outer);
    let mut scope = Scope::level(env, &mut pass);
    let mut from = From::default();
    let (table, mut pool) = target(&mut scope, &mut from, &update.table, "UPDATE")?;
    match &update.from {
        Some(UpdateTableFromKind::AfterSet(items) | UpdateTableFromKind::BeforeSet(items)) => {
            pool.merge(others(&mut scope, &mut from, items)?);
        }
        None => {}
    }
    if let Some(filter) = &update.selection {
        conditions(&mut scope, filter, "WHERE", &mut pool.conditions)?;
    }
    let returning = returning(&mut scope, &table, update.returning.as_deref())?;
    let set = assignments(&mut scope, &table, &update.assignments)?;
    let (columns, target) = target_of(table, from, pool, returning);
    Ok(plan_of(columns, Change::Update(Update { target, set })))
}

fn bind_delete(env: Env<'_>, delete: &AstDelete, outer: &mut dyn Names) -> Result<ChangePlan, SqlError> {
    if !delete.tables.is_empty()
        || delete.output.is_some()
        || !delete.order_by.is_empty()
        || delete.limit.is_some()
    {
        return Err(SqlError::unsupported("this form of DELETE"));
    }
    let (FromTable::WithFromKeyword(items) | FromTable::WithoutKeyword(items)) = &delete.from;
    let [item] = items.as_slice() else {
        return Err(SqlError::unsupported("DELETE from several tables"));
    };
    let mut pass = Scope::passing(env, outer);
    let mut scope = Scope::level(env, &mut pass);
    let mut from = From::default();
    let (table, mut pool) = target(&mut scope, &mut from, item, "DELETE")?;
    if let Some(using) = &delete.using {
        pool.merge(others(&mut scope, &mut from, using)?);
    }
    if let Some(filter) = &delete.selection {
        conditions(&mut scope, filter, "WHERE", &mut pool.conditions)?;
    }
    let returning = returning(&mut scope, &table, delete.returning.as_deref())?;
    let (columns, target) = target_of(table, from, pool, returning);
    Ok(plan_of(columns, Change::Delete(target)))
}

pub(super) fn plan_of(returning: Columns, change: Change) -> ChangePlan {
    ChangePlan { returning, change: Arc::new(change), accesses: Vec::new(), line: None }
}

pub(super) fn target_of(
    table: Arc<TableDef>,
    from: From,
    pool: Pool,
    (columns, returning): (Columns, Vec<Expr>),
) -> (Columns, Target) {
    let (ctes, constants, steps) = (Vec::new(), Vec::new(), Vec::new());
    let relations = from.relations;
    (columns, Target { ctes, table, relations, from: pool, constants, steps, late: None, returning })
}

/// The table a statement changes, as relation 0.
pub(super) fn target(
    scope: &mut Scope<'_>,
    from: &mut From,
    item: &TableWithJoins,
    what: &str,
) -> Result<(Arc<TableDef>, Pool), SqlError> {
    let TableFactor::Table { name, alias, args: None, .. } = &item.relation else {
        return Err(SqlError::unsupported(format!("{what} of other than a table")));
    };
    if !item.joins.is_empty() {
        return Err(SqlError::unsupported(format!("{what} with a join")));
    }
    let source = scope.source();
    let table = Arc::clone(scope.env.catalog.resolve_table(&names::qualified(name, source)?, source)?);
    let relation = from.add_table(scope, &table, alias.as_ref())?;
    Ok((table, Pool::one(relation, 0)))
}

/// The relations beside the one that is changed, which they do not see.
pub(super) fn others(
    scope: &mut Scope<'_>,
    from: &mut From,
    items: &[TableWithJoins],
) -> Result<Pool, SqlError> {
    scope.entries[0].lateral = false;
    scope.changed = Some(0);
    let pool = from.items(scope, items);
    scope.entries[0].lateral = true;
    pool
}

/// Binds RETURNING. PostgreSQL's queries in it see the table as it was before; ours would not.
pub(super) fn returning(
    scope: &mut Scope<'_>,
    table: &TableDef,
    items: Option<&[SelectItem]>,
) -> Result<(Columns, Vec<Expr>), SqlError> {
    scope.phase = Phase::Refused("RETURNING");
    let outputs = output::select_list(scope, items.unwrap_or_default(), true)?;
    let (columns, outputs) = output::split(outputs);
    if outputs.iter().any(|output| reads(output, table)) {
        let error = SqlError::unsupported("a query over the changed table in RETURNING");
        return Err(error.with_hint("Query it in a separate statement, before the change or after it."));
    }
    Ok((columns, outputs))
}

/// Whether a query in an expression reads a table.
pub(super) fn reads(expr: &Expr, table: &TableDef) -> bool {
    let mut reads = false;
    expr.walk(&mut |part| {
        if let ExprKind::Subquery(subquery) = &part.kind {
            let query = &subquery.plan.query;
            query.each_table(&mut |other| reads |= other.id == table.id);
            query.each_expr(&mut |inner| reads |= self::reads(inner, table));
        }
    });
    reads
}

fn is_default(expr: &Ast) -> bool {
    matches!(expr, Ast::Identifier(ident) if ident.quote_style.is_none() && names::fold(ident) == "default")
}

/// Binds a value for a column.
pub(super) fn value_for(
    scope: &mut Scope<'_>,
    table: &TableDef,
    column: ColumnId,
    value: &Ast,
) -> Result<Expr, SqlError> {
    if is_default(value) {
        return default_of(table, column);
    }
    let def = table.column_def(column);
    expr::bind_to(value, scope, def.ty, CastKind::Assignment).map_err(|error| {
        match (error.state() == SqlState::DATATYPE_MISMATCH).then(|| expr::bind(value, scope)) {
            Some(Ok(bound)) => mismatch(&error, &def.name, Scalar::of(def.ty), &bound.ty),
            _ => error,
        }
    })
}

/// 42804 as PostgreSQL says it of a column.
pub(super) fn mismatch(error: &SqlError, column: &str, ty: Scalar, from: &Type) -> SqlError {
    let message = format!("column \"{column}\" is of type {ty} but expression is of type {from}");
    let renamed = SqlError::new(SqlState::DATATYPE_MISMATCH, message)
        .with_hint("You will need to rewrite or cast the expression.");
    match error.position() {
        Some(position) => renamed.with_position(position),
        None => renamed,
    }
}

/// The columns that SET gives new values, and these.
pub(super) type Values = Vec<(ColumnId, Expr)>;

pub(super) fn assignments(
    scope: &mut Scope<'_>,
    table: &TableDef,
    assignments: &[Assignment],
) -> Result<Values, SqlError> {
    scope.phase = Phase::Refused("UPDATE");
    let mut set = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        match &assignment.target {
            AssignmentTarget::ColumnName(name) => {
                let column = column_for(scope, table, name, &set)?;
                set.push((column, value_for(scope, table, column, &assignment.value)?));
            }
            AssignmentTarget::Tuple(names) => {
                assign_several(scope, table, names, &assignment.value, &mut set)?
            }
        }
    }
    Ok(set)
}

/// A column that SET names, which must not be in `set` yet.
fn column_for(
    scope: &Scope<'_>,
    table: &TableDef,
    name: &ObjectName,
    set: &Values,
) -> Result<ColumnId, SqlError> {
    let ident = single(name)?;
    let column = table.resolve_column(ident, scope.source())?;
    if set.iter().any(|(other, _)| *other == column) {
        let message = format!("multiple assignments to same column \"{}\"", names::fold(ident));
        return Err(scope.error(SqlState::SYNTAX_ERROR, message, ident));
    }
    Ok(column)
}

/// The name of a column that a statement changes.
pub(super) fn single(name: &ObjectName) -> Result<&Ident, SqlError> {
    match name.0.as_slice() {
        [part] => part.as_ident().ok_or_else(|| SqlError::unsupported("this column name")),
        _ => Err(SqlError::unsupported(format!("the qualified column name {name} here"))),
    }
}

/// `SET (a, b) = ...`: from a row or a query.
fn assign_several(
    scope: &mut Scope<'_>,
    table: &TableDef,
    names: &[ObjectName],
    value: &Ast,
    set: &mut Values,
) -> Result<(), SqlError> {
    let syntax = |scope: &Scope<'_>, state, message: &str| {
        scope.source().locate(SqlError::new(state, message), value.span())
    };
    let miscounted = "number of columns does not match number of values";
    let values: Vec<&Ast> = match value {
        Ast::Subquery(query) => {
            let plan = scope.query(query)?;
            if plan.columns.len() != names.len() {
                return Err(syntax(scope, SqlState::SYNTAX_ERROR, miscounted));
            }
            for (at, name) in names.iter().enumerate() {
                let column = column_for(scope, table, name, set)?;
                set.push((column, column_of_query(&plan, at, table, column, value.span(), scope)?));
            }
            return Ok(());
        }
        Ast::Tuple(values) => values.iter().collect(),
        Ast::Function(row) if row.name.to_string().eq_ignore_ascii_case("row") => {
            expr::actuals(row)?.into_iter().map(|(_, value)| value).collect()
        }
        _ => {
            let message = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
            return Err(syntax(scope, SqlState::FEATURE_NOT_SUPPORTED, message));
        }
    };
    if values.len() != names.len() {
        return Err(syntax(scope, SqlState::SYNTAX_ERROR, miscounted));
    }
    for (name, value) in names.iter().zip(values) {
        let column = column_for(scope, table, name, set)?;
        set.push((column, value_for(scope, table, column, value)?));
    }
    Ok(())
}

/// The value that a column gets from one of the columns of a query.
fn column_of_query(
    plan: &super::SelectPlan,
    at: usize,
    table: &TableDef,
    column: ColumnId,
    span: Span,
    scope: &Scope<'_>,
) -> Result<Expr, SqlError> {
    let mut plan = plan.clone();
    let mut one: Query = Arc::unwrap_or_clone(plan.query);
    if !sets::is_plain(&one) || !matches!(one.body, Body::Select(_)) {
        sets::wrap(&mut one);
    }
    if let Body::Select(select) = &mut one.body {
        select.outputs = vec![select.outputs.swap_remove(at)];
    }
    plan.query = Arc::new(one);
    plan.columns = vec![plan.columns.swap_remove(at)];
    let from = plan.columns[0].1.clone();
    let subquery = Subquery { kind: SubqueryKind::Scalar, plan };
    let value = Expr { kind: ExprKind::Subquery(Arc::new(subquery)), ty: from.clone() };
    let def = table.column_def(column);
    expr::cast(value, def.ty, CastKind::Assignment).map_err(|error| {
        let error = scope.source().locate(error, span);
        match error.state() {
            SqlState::DATATYPE_MISMATCH => mismatch(&error, &def.name, Scalar::of(def.ty), &from),
            _ => error,
        }
    })
}
