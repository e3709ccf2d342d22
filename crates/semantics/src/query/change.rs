//! INSERT, UPDATE and DELETE, bound.
//!
//! Responsible for: target columns, defaults, assignment casts, ON CONFLICT, RETURNING. Not responsible
//! for: access paths (`access`), making the changes (`run::change`).

use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlState};
use albireo_sql::ast::{
    Assignment, AssignmentTarget, ConflictTarget, Delete as AstDelete, Expr as Ast, FromTable,
    Insert as AstInsert, ObjectName, OnConflict, OnConflictAction, OnInsert, Query as AstQuery, SelectItem,
    Statement, TableAlias, TableFactor, TableObject, TableWithJoins, Update as AstUpdate,
    UpdateTableFromKind,
};
use albireo_sql::dml::{bare_values, match_widths, refuse_insert, single};
use albireo_sql::{TableDef, ast, names};

use super::bind::{self, Columns, conditions};
use super::from::From;
use super::scope::{Env, Phase, Scope};
use super::tree::{Body, Change, Conflict, ConflictUpdate, Insert, Item, Pool, Query, Target, Update};
use super::{ChangePlan, output, sets};
use crate::expr::{self, CastKind, Expr, Names};
use crate::table::default_of;
use crate::types::{Scalar, Type};

/// Binds a change.
pub(super) fn bind(
    env: Env<'_>,
    statement: &Statement,
    outer: &mut dyn Names,
) -> Result<ChangePlan, SqlError> {
    let mut plan = match statement {
        Statement::Insert(insert) => bind_insert(env, insert, outer),
        Statement::Update(update) => bind_update(env, update, outer),
        Statement::Delete(delete) => bind_delete(env, delete, outer),
        _ => Err(SqlError::unsupported("this statement in a procedure")),
    }?;
    plan.line = super::line_of(statement);
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
            pool.merge(from.items(&mut scope, items)?);
        }
        None => {}
    }
    if let Some(filter) = &update.selection {
        conditions(&mut scope, filter, "WHERE", &mut pool.conditions)?;
    }
    let set = assignments(&mut scope, &table, &update.assignments)?;
    let returning = returning(&mut scope, &table, update.returning.as_deref())?;
    let (columns, target) = target_of(table, from, pool, returning);
    let change = Change::Update(Update { target, set });
    Ok(ChangePlan { returning: columns, change: Arc::new(change), accesses: Vec::new(), line: None })
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
        pool.merge(from.items(&mut scope, using)?);
    }
    if let Some(filter) = &delete.selection {
        conditions(&mut scope, filter, "WHERE", &mut pool.conditions)?;
    }
    let returning = returning(&mut scope, &table, delete.returning.as_deref())?;
    let (columns, target) = target_of(table, from, pool, returning);
    let change = Arc::new(Change::Delete(target));
    Ok(ChangePlan { returning: columns, change, accesses: Vec::new(), line: None })
}

fn target_of(
    table: Arc<TableDef>,
    from: From,
    pool: Pool,
    (columns, returning): (Columns, Vec<Expr>),
) -> (Columns, Target) {
    let (constants, steps) = (Vec::new(), Vec::new());
    (columns, Target { table, relations: from.relations, from: pool, constants, steps, returning })
}

/// The table a statement changes, as relation 0.
fn target(
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
    let pool = Pool { items: vec![Item::One { relation, requires: 0 }], conditions: Vec::new() };
    Ok((table, pool))
}

/// Binds RETURNING. PostgreSQL's queries in it see the table as it was before; ours would not.
fn returning(
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
fn reads(expr: &Expr, table: &TableDef) -> bool {
    let mut reads = false;
    expr.walk(&mut |part| {
        if let expr::ExprKind::Subquery(subquery) = &part.kind {
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
fn value_for(
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
fn mismatch(error: &SqlError, column: &str, ty: Scalar, from: &Type) -> SqlError {
    let message = format!("column \"{column}\" is of type {ty} but expression is of type {from}");
    let renamed = SqlError::new(SqlState::DATATYPE_MISMATCH, message)
        .with_hint("You will need to rewrite or cast the expression.");
    match error.position() {
        Some(position) => renamed.with_position(position),
        None => renamed,
    }
}

fn assignments(
    scope: &mut Scope<'_>,
    table: &TableDef,
    assignments: &[Assignment],
) -> Result<Vec<(ColumnId, Expr)>, SqlError> {
    scope.phase = Phase::Refused("UPDATE");
    let mut set = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        match (&assignment.target, &assignment.value) {
            (AssignmentTarget::ColumnName(name), value) => assign(scope, table, name, value, &mut set)?,
            (AssignmentTarget::Tuple(targets), Ast::Tuple(values)) if targets.len() == values.len() => {
                for (name, value) in targets.iter().zip(values) {
                    assign(scope, table, name, value, &mut set)?;
                }
            }
            (AssignmentTarget::Tuple(targets), value) if targets.len() == 1 => {
                assign(scope, table, &targets[0], value, &mut set)?;
            }
            (AssignmentTarget::Tuple(_), Ast::Tuple(_)) => {
                let message = "number of columns does not match number of values";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            (AssignmentTarget::Tuple(_), _) => {
                return Err(SqlError::unsupported("setting several columns from one expression")
                    .with_hint("Select into variables first."));
            }
        }
    }
    Ok(set)
}

fn assign(
    scope: &mut Scope<'_>,
    table: &TableDef,
    name: &ObjectName,
    value: &Ast,
    set: &mut Vec<(ColumnId, Expr)>,
) -> Result<(), SqlError> {
    let ident = single(name)?;
    let column = table.resolve_column(ident, scope.source())?;
    if set.iter().any(|(other, _)| *other == column) {
        let message = format!("multiple assignments to same column \"{}\"", names::fold(ident));
        return Err(scope.error(SqlState::SYNTAX_ERROR, message, ident));
    }
    set.push((column, value_for(scope, table, column, value)?));
    Ok(())
}

fn bind_insert(env: Env<'_>, insert: &AstInsert, outer: &mut dyn Names) -> Result<ChangePlan, SqlError> {
    refuse_insert(insert)?;
    let TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::unsupported("INSERT into other than a table"));
    };
    let mut pass = Scope::passing(env, outer);
    let source = pass.source();
    let table = Arc::clone(env.catalog.resolve_table(&names::qualified(name, source)?, source)?);
    let listed = !insert.columns.is_empty();
    let mut columns = target_columns(&mut pass, &table, &insert.columns)?;
    let rows = match &insert.source {
        None => {
            columns.clear();
            values_query(vec![Vec::new()])
        }
        Some(source) => match bare_values(source) {
            Some(rows) => insert_values(&mut pass, &table, &mut columns, listed, rows)?,
            None => insert_query(env, &mut pass, &table, &mut columns, listed, source)?,
        },
    };
    let mut defaults = Vec::new();
    for column in table.column_ids().filter(|column| !columns.contains(column)) {
        if table.column_def(column).default.is_some() {
            defaults.push((column, default_of(&table, column)?));
        }
    }
    let alias = insert.table_alias.as_ref().map(|alias| TableAlias {
        explicit: true,
        name: alias.alias.clone(),
        columns: Vec::new(),
        at: None,
    });
    let mut scope = Scope::level(env, &mut pass);
    let mut from = From::default();
    from.add_table(&mut scope, &table, alias.as_ref())?;
    let (returned, returning) = returning(&mut scope, &table, insert.returning.as_deref())?;
    let conflict = match &insert.on {
        None => None,
        Some(OnInsert::OnConflict(on)) => {
            let conflict = conflict(&mut scope, &table, on)?;
            if conflict.update.as_ref().is_some_and(|update| update_reads(update, &table))
                && !is_one_row(&rows)
            {
                // It would see the rows before it.
                let error = SqlError::unsupported("a query over the changed table in ON CONFLICT");
                return Err(error.with_hint("Insert one row at a time, in a loop."));
            }
            Some(conflict)
        }
        Some(_) => return Err(SqlError::unsupported("ON DUPLICATE KEY").with_hint("Use ON CONFLICT.")),
    };
    let change = Change::Insert(Insert { table, source: rows, columns, defaults, conflict, returning });
    Ok(ChangePlan { returning: returned, change: Arc::new(change), accesses: Vec::new(), line: None })
}

/// Whether a query gives one row at most, whatever is in the tables.
fn is_one_row(query: &Query) -> bool {
    match &query.body {
        Body::Values(rows) => rows.len() == 1,
        Body::Select(select) => select.relations.is_empty(),
        Body::Nested(_) | Body::Set(_) => false,
    }
}

fn update_reads(update: &ConflictUpdate, table: &TableDef) -> bool {
    update.set.iter().map(|(_, value)| value).chain(&update.filter).any(|value| reads(value, table))
}

fn target_columns(
    scope: &mut Scope<'_>,
    table: &TableDef,
    written: &[ObjectName],
) -> Result<Vec<ColumnId>, SqlError> {
    if written.is_empty() {
        return Ok(table.column_ids().collect());
    }
    let mut columns = Vec::with_capacity(written.len());
    for name in written {
        let ident = single(name)?;
        let column = table.resolve_column(ident, scope.source())?;
        if columns.contains(&column) {
            let message = format!("column \"{}\" specified more than once", names::fold(ident));
            return Err(scope.error(SqlState::DUPLICATE_COLUMN, message, ident));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn values_query(rows: Vec<Vec<Expr>>) -> Query {
    Query { ctes: Vec::new(), body: Body::Values(rows), order: Vec::new(), limit: None, offset: None }
}

fn insert_values(
    pass: &mut Scope<'_>,
    table: &TableDef,
    columns: &mut Vec<ColumnId>,
    listed: bool,
    rows: &[ast::Parens<Vec<Ast>>],
) -> Result<Query, SqlError> {
    let mut bound: Vec<Vec<Expr>> = Vec::with_capacity(rows.len());
    pass.phase = Phase::Refused("VALUES");
    for row in rows {
        let row = &row.content;
        let mut exprs = Vec::with_capacity(row.len());
        if row.iter().any(|value| matches!(value, Ast::QualifiedWildcard(..))) {
            let (values, _) = bind::value_row(row, pass)?;
            match_widths(columns, values.len(), listed)?;
            for (value, column) in values.into_iter().zip(columns.iter()) {
                exprs.push(expr::cast(value, table.column_def(*column).ty, CastKind::Assignment)?);
            }
        } else {
            if bound.first().is_some_and(|first| first.len() != row.len()) {
                let message = "VALUES lists must all be the same length";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            match_widths(columns, row.len(), listed)?;
            for (value, column) in row.iter().zip(columns.iter()) {
                exprs.push(value_for(pass, table, *column, value)?);
            }
        }
        bound.push(exprs);
    }
    Ok(values_query(bound))
}

fn insert_query(
    env: Env<'_>,
    pass: &mut Scope<'_>,
    table: &TableDef,
    columns: &mut Vec<ColumnId>,
    listed: bool,
    source: &AstQuery,
) -> Result<Query, SqlError> {
    let (mut query, given, unknown) = bind::bind_in(env, source, pass)?;
    match_widths(columns, given.len(), listed)?;
    let plain = sets::is_plain(&query);
    if !plain {
        sets::wrap(&mut query);
    }
    for (at, column) in columns.iter().enumerate() {
        let def = table.column_def(*column);
        let literal = plain && unknown.get(at) == Some(&true);
        assign_output(&mut query, at, def.ty, literal).map_err(|error| match error.state() {
            SqlState::DATATYPE_MISMATCH => mismatch(&error, &def.name, Scalar::of(def.ty), &given[at].1),
            _ => error,
        })?;
    }
    Ok(query)
}

/// Casts a column of a query as an assignment does.
fn assign_output(
    query: &mut Query,
    at: usize,
    ty: albireo_base::SqlType,
    literal: bool,
) -> Result<(), SqlError> {
    let convert = |expr: &mut Expr| {
        let mut taken = std::mem::replace(expr, Expr::null());
        if literal {
            taken = expr::unsettled(taken);
        }
        *expr = expr::cast(taken, ty, CastKind::Assignment)?;
        Ok::<(), SqlError>(())
    };
    match &mut query.body {
        Body::Select(select) => convert(&mut select.outputs[at]),
        Body::Values(rows) => rows.iter_mut().try_for_each(|row| convert(&mut row[at])),
        Body::Nested(_) | Body::Set(_) => Ok(()),
    }
}

fn conflict(scope: &mut Scope<'_>, table: &TableDef, on: &OnConflict) -> Result<Conflict, SqlError> {
    let mut indexes = Vec::new();
    for index in table.indexes.iter().filter(|index| index.unique) {
        let serves = match &on.conflict_target {
            None => true,
            Some(ConflictTarget::OnConstraint(name)) => {
                single(name).is_ok_and(|n| names::fold(n) == index.name)
            }
            Some(ConflictTarget::Columns(columns)) => {
                let mut set = Vec::new();
                for column in columns {
                    set.push(table.resolve_column(column, scope.source())?);
                }
                set.iter().all(|column| index.columns.contains(column))
                    && index.columns.iter().all(|column| set.contains(column))
            }
        };
        if serves {
            indexes.push((index.name.clone(), index.columns.clone()));
        }
    }
    match &on.conflict_target {
        Some(ConflictTarget::OnConstraint(name)) if indexes.is_empty() => {
            let message = format!("constraint \"{name}\" for table \"{}\" does not exist", table.name);
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        }
        Some(ConflictTarget::Columns(_)) if indexes.is_empty() => {
            let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        _ => {}
    }
    let OnConflictAction::DoUpdate(update) = &on.action else {
        return Ok(Conflict { indexes, update: None });
    };
    if on.conflict_target.is_none() {
        let message = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message)
            .with_hint("For example, ON CONFLICT (column_name)."));
    }
    add_excluded(scope, table)?;
    let set = assignments(scope, table, &update.assignments)?;
    scope.phase = Phase::Refused("WHERE");
    let filter = match &update.selection {
        Some(filter) => Some(expr::to_bool(expr::bind(filter, scope)?, "WHERE")?),
        None => None,
    };
    Ok(Conflict { indexes, update: Some(ConflictUpdate { set, filter }) })
}

/// Makes EXCLUDED known, by qualified names only.
fn add_excluded(scope: &mut Scope<'_>, table: &TableDef) -> Result<(), SqlError> {
    let columns = table.columns.iter().map(|c| (c.name.clone(), Type::Scalar(Scalar::of(c.ty))));
    let named = super::scope::Named {
        name: "excluded".to_owned(),
        schema: None,
        hidden: None,
        columns: columns.collect(),
        key: Vec::new(),
        lengths: super::scope::lengths(table),
    };
    // A bare name would be ambiguous in PostgreSQL too.
    scope.add(named).map(|_| ())
}
