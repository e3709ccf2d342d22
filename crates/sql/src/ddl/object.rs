//! Schemas, and dropping of everything.

use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{Ident, ObjectName, SchemaName, Statement, Truncate, TruncateIdentityOption};

use super::DdlPlan;
use crate::catalog::{Catalog, DEFAULT_SCHEMA, DdlChange, IndexRole, Relation};
use crate::names;
use crate::source::Source;

/// The clauses all DROP statements have.
pub(super) struct DropRequest<'a> {
    pub(super) names: &'a [ObjectName],
    pub(super) if_exists: bool,
    pub(super) cascade: bool,
}

pub(super) fn plan_create_schema(
    catalog: &Catalog,
    statement: &Statement,
    source: Source<'_>,
) -> Result<DdlPlan, SqlError> {
    const TAG: &str = "CREATE SCHEMA";
    let Statement::CreateSchema { schema_name, if_not_exists, with, options, default_collate_spec, clone } =
        statement
    else {
        return Err(SqlError::unsupported("this statement"));
    };
    let SchemaName::Simple(name) = schema_name else {
        return Err(SqlError::unsupported("CREATE SCHEMA ... AUTHORIZATION"));
    };
    if with.is_some() || options.is_some() || default_collate_spec.is_some() || clone.is_some() {
        return Err(SqlError::unsupported("CREATE SCHEMA with options"));
    }
    let ident = single(name)?;
    let name = names::checked(ident, source)?;
    if is_system(&name) {
        let error = SqlError::new(SqlState::RESERVED_NAME, format!("unacceptable schema name \"{name}\""))
            .with_detail("The prefix \"pg_\" is reserved for system schemas.");
        return Err(source.locate(error, ident.span));
    }
    if catalog.has_schema(&name) {
        let message = format!("schema \"{name}\" already exists");
        return match if_not_exists {
            true => Ok(DdlPlan::nothing(TAG, format!("{message}, skipping"))),
            false => Err(source.locate(SqlError::new(SqlState::DUPLICATE_SCHEMA, message), ident.span)),
        };
    }
    Ok(DdlPlan::one(TAG, DdlChange::CreateSchema(name)))
}

/// Whether the schema is PostgreSQL's own.
pub(crate) fn is_system(schema: &str) -> bool {
    schema.starts_with("pg_") || schema == "information_schema"
}

fn single(name: &ObjectName) -> Result<&Ident, SqlError> {
    match name.0.as_slice() {
        [part] => part.as_ident().ok_or_else(|| SqlError::unsupported("this name")),
        _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("improper qualified name: {name}"))),
    }
}

pub(super) fn plan_drop_schemas(
    catalog: &Catalog,
    request: DropRequest<'_>,
    source: Source<'_>,
) -> Result<DdlPlan, SqlError> {
    let mut plan = DdlPlan { changes: Vec::new(), notices: Vec::new(), tag: "DROP SCHEMA" };
    for name in request.names {
        let ident = single(name)?;
        let name = names::checked(ident, source)?;
        if !catalog.has_schema(&name) {
            let message = format!("schema \"{name}\" does not exist");
            if request.if_exists {
                plan.notices.push(format!("{message}, skipping"));
                continue;
            }
            let error = SqlError::new(SqlState::INVALID_SCHEMA_NAME, message);
            let error = match names::closest(&name, catalog.schemas()) {
                Some(near) => error.with_hint(format!("Perhaps you meant the schema \"{near}\".")),
                None => error,
            };
            return Err(source.locate(error, ident.span));
        }
        if name == DEFAULT_SCHEMA {
            let error = SqlError::unsupported("dropping the schema \"public\"");
            return Err(source.locate(error, ident.span));
        }
        let tables: Vec<_> = catalog.tables().filter(|table| table.schema == name).collect();
        if let (Some(first), false) = (tables.first(), request.cascade) {
            let message = format!("cannot drop schema {name} because other objects depend on it");
            return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
                .with_detail(format!("table {name}.{} depends on schema {name}", first.name))
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        push_new(&mut plan, tables.iter().map(|table| DdlChange::DropTable(table.id)));
        push_new(&mut plan, [DdlChange::DropSchema(name)]);
    }
    Ok(plan)
}

/// Adds changes, each once, however often a name was written.
fn push_new(plan: &mut DdlPlan, changes: impl IntoIterator<Item = DdlChange>) {
    for change in changes {
        if !plan.changes.contains(&change) {
            plan.changes.push(change);
        }
    }
}

pub(super) fn plan_drop_tables(
    catalog: &Catalog,
    request: DropRequest<'_>,
    source: Source<'_>,
) -> Result<DdlPlan, SqlError> {
    let mut plan = DdlPlan { changes: Vec::new(), notices: Vec::new(), tag: "DROP TABLE" };
    for name in request.names {
        let name = names::qualified(name, source)?;
        match catalog.relation(name.schema.as_deref(), &name.name) {
            Some(Relation::Table(id)) => push_new(&mut plan, [DdlChange::DropTable(id)]),
            Some(Relation::Index(..)) => {
                let message = format!("\"{}\" is not a table", name.name);
                let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                    .with_hint("Use DROP INDEX to remove an index.");
                return Err(source.locate(error, name.span));
            }
            None if request.if_exists => {
                plan.notices.push(format!("table \"{}\" does not exist, skipping", name.name));
            }
            None => {
                let message = format!("table \"{}\" does not exist", name.name);
                let like = catalog.undefined_table(&name);
                let error = SqlError::new(SqlState::UNDEFINED_TABLE, message);
                let error = like.hint().map_or(error.clone(), |hint| error.with_hint(hint));
                return Err(source.locate(error, name.span));
            }
        }
    }
    Ok(plan)
}

pub(super) fn plan_drop_indexes(
    catalog: &Catalog,
    request: DropRequest<'_>,
    source: Source<'_>,
) -> Result<DdlPlan, SqlError> {
    let mut plan = DdlPlan { changes: Vec::new(), notices: Vec::new(), tag: "DROP INDEX" };
    for name in request.names {
        let name = names::qualified(name, source)?;
        match catalog.relation(name.schema.as_deref(), &name.name) {
            Some(Relation::Index(table, index)) => {
                let def = catalog.table(table).and_then(|t| Some((t, t.index(index)?)));
                if let Some((table, def)) = def.filter(|(_, def)| def.role != IndexRole::Plain) {
                    let message = format!(
                        "cannot drop index {} because constraint {} on table {} requires it",
                        def.name, def.name, table.name
                    );
                    let error = SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message);
                    return Err(source.locate(error, name.span));
                }
                push_new(&mut plan, [DdlChange::DropIndex { table, index }]);
            }
            Some(Relation::Table(_)) => {
                let message = format!("\"{}\" is not an index", name.name);
                let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                    .with_hint("Use DROP TABLE to remove a table.");
                return Err(source.locate(error, name.span));
            }
            None if request.if_exists => {
                plan.notices.push(format!("index \"{}\" does not exist, skipping", name.name));
            }
            None => {
                let message = format!("index \"{}\" does not exist", name.name);
                let error = SqlError::new(SqlState::UNDEFINED_OBJECT, message);
                let indexes = catalog.tables().flat_map(|t| t.indexes.iter().map(|i| i.name.as_str()));
                let error = match names::closest(&name.name, indexes) {
                    Some(near) => error.with_hint(format!("Perhaps you meant the index \"{near}\".")),
                    None => error,
                };
                return Err(source.locate(error, name.span));
            }
        }
    }
    Ok(plan)
}

pub(super) fn plan_truncate(
    catalog: &Catalog,
    truncate: &Truncate,
    source: Source<'_>,
) -> Result<DdlPlan, SqlError> {
    let mut plan = DdlPlan { changes: Vec::new(), notices: Vec::new(), tag: "TRUNCATE TABLE" };
    if truncate.partitions.is_some() || truncate.on_cluster.is_some() || truncate.if_exists {
        return Err(SqlError::unsupported("this form of TRUNCATE"));
    }
    if truncate.identity == Some(TruncateIdentityOption::Restart) {
        return Err(SqlError::unsupported("TRUNCATE ... RESTART IDENTITY"));
    }
    for target in &truncate.table_names {
        let name = names::qualified(&target.name, source)?;
        let table = catalog.resolve_table(&name, source)?;
        push_new(&mut plan, [DdlChange::Truncate(table.id)]);
    }
    Ok(plan)
}
