//! INSERT, bound.
//!
//! Responsible for: target columns, sources, defaults, assignment casts, ON CONFLICT. Not responsible for: what all
//! changes share (`change`).

use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlState};
use albireo_sql::ast::{
    ConflictTarget, Expr as Ast, Insert as AstInsert, ObjectName, OnConflict, OnConflictAction, OnInsert,
    Parens, Query as AstQuery, SelectItem, SetExpr, Spanned, TableAlias, TableObject,
};
use albireo_sql::source::Span;
use albireo_sql::{TableDef, names};

use super::change::{Values, assignments, mismatch, plan_of, reads, returning, single, value_for};
use super::from::From;
use super::scope::{Env, Named, Phase, Scope};
use super::tree::{Body, Change, Conflict, ConflictUpdate, Insert, Query};
use super::{ChangePlan, bind, sets};
use crate::expr::{self, CastKind, Expr, Names};
use crate::table::default_of;
use crate::types::{Scalar, Type};

/// Binds an INSERT.
pub(super) fn bind(env: Env<'_>, insert: &AstInsert, outer: &mut dyn Names) -> Result<ChangePlan, SqlError> {
    refuse_clauses(insert)?;
    let TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::unsupported("INSERT into other than a table"));
    };
    let mut pass = Scope::passing(env, outer);
    let source = pass.source();
    let table = Arc::clone(env.catalog.resolve_table(&names::qualified(name, source)?, source)?);
    let mut columns = Listed::of(&pass, &table, &insert.columns)?;
    let rows = match &insert.source {
        None => {
            columns.ids.clear();
            sets::as_query(Body::Values(vec![Vec::new()]))
        }
        Some(source) => match bare_values(source) {
            Some(rows) => insert_values(&mut pass, &table, &mut columns, rows)?,
            None => insert_query(env, &mut pass, &table, &mut columns, source)?,
        },
    };
    let columns = columns.ids;
    let defaults = defaults(&table, &columns)?;
    let alias = insert.table_alias.as_ref().map(|alias| TableAlias {
        explicit: true,
        name: alias.alias.clone(),
        columns: Vec::new(),
        at: None,
    });
    let mut scope = Scope::level(env, &mut pass);
    let mut from = From::default();
    from.add_table(&mut scope, &table, alias.as_ref())?;
    let conflict = match &insert.on {
        None => None,
        Some(OnInsert::OnConflict(on)) => Some(bind_conflict(&mut scope, &table, on, &rows)?),
        Some(_) => return Err(SqlError::unsupported("ON DUPLICATE KEY").with_hint("Use ON CONFLICT.")),
    };
    let (returned, returning) = returning(&mut scope, &table, insert.returning.as_deref())?;
    Ok(plan_of(
        returned,
        Change::Insert(Insert { table, source: rows, columns, defaults, conflict, returning }),
    ))
}

/// Refuses other databases' clauses.
fn refuse_clauses(insert: &AstInsert) -> Result<(), SqlError> {
    let other = insert.or.is_some()
        || insert.ignore
        || insert.overwrite
        || insert.replace_into
        || insert.partitioned.is_some()
        || insert.output.is_some()
        || !insert.assignments.is_empty()
        || !insert.after_columns.is_empty()
        || insert.multi_table_insert_type.is_some();
    if other { Err(SqlError::unsupported("this form of INSERT")) } else { Ok(()) }
}

/// The rows of `VALUES (...), (...)` with nothing around it.
fn bare_values(query: &AstQuery) -> Option<&[Parens<Vec<Ast>>]> {
    let bare = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none();
    match query.body.as_ref() {
        SetExpr::Values(values) if bare => Some(&values.rows),
        _ => None,
    }
}

/// The defaults of the columns that are not given, where there are any.
pub(super) fn defaults(table: &TableDef, given: &[ColumnId]) -> Result<Values, SqlError> {
    let others = table.column_ids().filter(|column| !given.contains(column));
    let others = others.filter(|column| table.column_def(*column).default.is_some());
    others.map(|column| Ok((column, default_of(table, column)?))).collect()
}

/// The columns that values are given for.
pub(super) struct Listed<'a> {
    pub(super) ids: Vec<ColumnId>,
    /// As they are written.
    written: &'a [ObjectName],
}

impl<'a> Listed<'a> {
    /// Those written, or all.
    pub(super) fn of(
        scope: &Scope<'_>,
        table: &TableDef,
        written: &'a [ObjectName],
    ) -> Result<Self, SqlError> {
        if written.is_empty() {
            return Ok(Self { ids: table.column_ids().collect(), written });
        }
        let mut ids = Vec::with_capacity(written.len());
        for name in written {
            let ident = single(name)?;
            let column = table.resolve_column(ident, scope.source())?;
            if ids.contains(&column) {
                let message = format!("column \"{}\" specified more than once", names::fold(ident));
                return Err(scope.error(SqlState::DUPLICATE_COLUMN, message, ident));
            }
            ids.push(column);
        }
        Ok(Self { ids, written })
    }

    /// Checks that there is a column for each value. Without a list of columns, fewer values than the
    /// table has columns fill the first ones, as in PostgreSQL. `place` says where a value stands.
    ///
    /// # Errors
    /// 42601 if columns and values do not match in number.
    pub(super) fn take(
        &mut self,
        scope: &Scope<'_>,
        values: usize,
        place: impl Fn(usize) -> Option<Span>,
    ) -> Result<(), SqlError> {
        let (message, span) = if values > self.ids.len() {
            ("INSERT has more expressions than target columns", place(self.ids.len()))
        } else if values < self.ids.len() && !self.written.is_empty() {
            ("INSERT has more target columns than expressions", Some(self.written[values].span()))
        } else {
            self.ids.truncate(values);
            return Ok(());
        };
        let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
        Err(match span {
            Some(span) => scope.source().locate(error, span),
            None => error,
        })
    }
}

fn insert_values(
    pass: &mut Scope<'_>,
    table: &TableDef,
    columns: &mut Listed<'_>,
    rows: &[Parens<Vec<Ast>>],
) -> Result<Query, SqlError> {
    let mut bound: Vec<Vec<Expr>> = Vec::with_capacity(rows.len());
    pass.phase = Phase::Refused("VALUES");
    for row in rows {
        let row = &row.content;
        let mut exprs = Vec::with_capacity(row.len());
        if row.iter().any(|value| matches!(value, Ast::QualifiedWildcard(..))) {
            let (values, _) = bind::value_row(row, pass)?;
            columns.take(pass, values.len(), |_| None)?;
            for (value, column) in values.into_iter().zip(&columns.ids) {
                exprs.push(expr::cast(value, table.column_def(*column).ty, CastKind::Assignment)?);
            }
        } else {
            if bound.first().is_some_and(|first| first.len() != row.len()) {
                let message = "VALUES lists must all be the same length";
                let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
                let place = row.first().map_or_else(Span::empty, Spanned::span);
                return Err(pass.source().locate(error, place));
            }
            values_for(pass, table, columns, row, &mut exprs)?;
        }
        bound.push(exprs);
    }
    Ok(sets::as_query(Body::Values(bound)))
}

/// Binds a row of values for columns.
pub(super) fn values_for(
    scope: &mut Scope<'_>,
    table: &TableDef,
    columns: &mut Listed<'_>,
    row: &[Ast],
    into: &mut Vec<Expr>,
) -> Result<(), SqlError> {
    columns.take(scope, row.len(), |at| row.get(at).map(Spanned::span))?;
    for (value, column) in row.iter().zip(&columns.ids) {
        into.push(value_for(scope, table, *column, value)?);
    }
    Ok(())
}

fn insert_query(
    env: Env<'_>,
    pass: &mut Scope<'_>,
    table: &TableDef,
    columns: &mut Listed<'_>,
    source: &AstQuery,
) -> Result<Query, SqlError> {
    let (mut query, given, unknown) = bind::bind_in(env, source, pass)?;
    let place = |at| place_of(source, at);
    columns.take(pass, given.len(), place)?;
    let plain = sets::is_plain(&query);
    if !plain {
        sets::wrap(&mut query);
    }
    for (at, column) in columns.ids.iter().enumerate() {
        let def = table.column_def(*column);
        let literal = plain && unknown.get(at) == Some(&true);
        assign_output(&mut query, at, def.ty, literal).map_err(|error| {
            let error = match place(at) {
                Some(span) => pass.source().locate(error, span),
                None => error,
            };
            match error.state() {
                SqlState::DATATYPE_MISMATCH => mismatch(&error, &def.name, Scalar::of(def.ty), &given[at].1),
                _ => error,
            }
        })?;
    }
    Ok(query)
}

/// Where a column of a query stands, if no star is before it.
fn place_of(query: &AstQuery, at: usize) -> Option<Span> {
    match query.body.as_ref() {
        SetExpr::Select(select) => {
            let star = |item: &SelectItem| {
                matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
            };
            match select.projection.iter().take(at).any(star) {
                true => None,
                false => select.projection.get(at).map(Spanned::span),
            }
        }
        SetExpr::Query(inner) => place_of(inner, at),
        SetExpr::Values(values) => values.rows.first()?.content.get(at).map(Spanned::span),
        _ => None,
    }
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

/// Whether a query gives one row at most, whatever is in the tables.
fn is_one_row(query: &Query) -> bool {
    match &query.body {
        Body::Values(rows) => rows.len() == 1,
        Body::Select(select) => select.relations.is_empty(),
        Body::Nested(_) | Body::Set(_) => false,
    }
}

/// Binds ON CONFLICT of rows that are inserted.
fn bind_conflict(
    scope: &mut Scope<'_>,
    table: &TableDef,
    on: &OnConflict,
    rows: &Query,
) -> Result<Conflict, SqlError> {
    let before = scope.mark();
    let conflict = conflict(scope, table, on)?;
    // RETURNING does not see EXCLUDED.
    scope.entries.truncate(before.entries);
    scope.visible.truncate(before.visible);
    let reads = |update: &ConflictUpdate| {
        update.set.iter().map(|(_, value)| value).chain(&update.filter).any(|value| reads(value, table))
    };
    if conflict.update.as_ref().is_some_and(reads) && !is_one_row(rows) {
        // It would see the rows before it.
        let error = SqlError::unsupported("a query over the changed table in ON CONFLICT");
        return Err(error.with_hint("Insert one row at a time, in a loop."));
    }
    Ok(conflict)
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
    let named = Named {
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
