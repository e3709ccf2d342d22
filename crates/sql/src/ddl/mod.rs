//! CREATE and DROP, ALTER, TRUNCATE: from the statement to the changes of the catalog.
//!
//! Responsible for: checking a definition against the catalog and giving ids. Not responsible for:
//! building storage and indexes (the engine does, and puts [`Catalog::with`]'s result in place
//! only when that has worked).
//!
//! What PostgreSQL has and we do not is refused with 0A000 and its name, never ignored.

mod create_table;
mod index;
mod layout;
mod object;
mod options;
#[cfg(test)]
mod tests;

use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{ObjectType, Statement};

use crate::catalog::{Catalog, DdlChange};
use crate::source::Source;

/// What a definition statement does.
#[derive(Clone, PartialEq, Debug)]
pub struct DdlPlan {
    /// The changes, to be made all or none, in this order.
    pub changes: Vec<DdlChange>,
    /// What to tell the user, such as that a table exists already.
    pub notices: Vec<String>,
    /// PostgreSQL's word for what was done, such as `CREATE TABLE`.
    pub tag: &'static str,
}

impl DdlPlan {
    fn one(tag: &'static str, change: DdlChange) -> Self {
        Self { changes: vec![change], notices: Vec::new(), tag }
    }

    fn nothing(tag: &'static str, notice: String) -> Self {
        Self { changes: Vec::new(), notices: vec![notice], tag }
    }
}

/// Plans a definition statement. `text` is what the statement was parsed from.
///
/// # Errors
/// What PostgreSQL reports for the same statement, with position and suggestion where known, and
/// 0A000 for what we do not have.
pub fn plan_ddl(catalog: &Catalog, statement: &Statement, text: &str) -> Result<DdlPlan, SqlError> {
    let source = Source::new(text);
    match statement {
        Statement::CreateTable(create) => create_table::plan(catalog, create, source),
        Statement::CreateIndex(create) => index::plan_create(catalog, create, source),
        Statement::CreateSchema { .. } => object::plan_create_schema(catalog, statement, source),
        Statement::AlterTable(alter) => options::plan_alter(catalog, alter, source),
        Statement::Truncate(truncate) => object::plan_truncate(catalog, truncate, source),
        Statement::Drop { object_type, if_exists, names, cascade, .. } => {
            let request = object::DropRequest { names, if_exists: *if_exists, cascade: *cascade };
            match object_type {
                ObjectType::Table => object::plan_drop_tables(catalog, request, source),
                ObjectType::Index => object::plan_drop_indexes(catalog, request, source),
                ObjectType::Schema => object::plan_drop_schemas(catalog, request, source),
                other => Err(SqlError::unsupported(format!("DROP {other}"))),
            }
        }
        other => {
            let message = format!("not a definition: {}", crate::classify::name_of(other));
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
    }
}
