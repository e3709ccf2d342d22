//! CHECK constraints and defaults: refused where a table is made, evaluated where rows change.
//!
//! Responsible for: which of them CREATE TABLE takes, constraints as storage wants them, defaults for statements that
//! fill columns themselves. Not responsible for: what they mean (`albireo_semantics::table`).
//!
//! I-1 A condition that CREATE TABLE took is true, false, NULL or an error for every row; it never panics. False and
//! errors refuse the row.

use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, Value};
use albireo_semantics::table::{Condition, bind_default, default_value};
use albireo_sql::TableDef;
use albireo_sql::ast::ObjectName;
use albireo_sql::catalog::CheckDef;
use albireo_sql::source::Source;
use albireo_storage::RowCheck;

use crate::Database;
use crate::routines::is_routine;

/// One constraint, ready to run.
struct Check {
    name: String,
    /// Or why there is none: it then refuses every row.
    condition: Result<Condition, SqlError>,
}

impl RowCheck for Check {
    fn name(&self) -> &str {
        &self.name
    }

    fn holds(&self, read: &dyn Fn(ColumnId) -> Value) -> Result<bool, SqlError> {
        match &self.condition {
            Ok(condition) => condition.is_met(read),
            Err(error) => Err(error.clone()),
        }
    }
}

/// The constraints of a table that was made.
pub(crate) fn checks_of(table: &TableDef) -> Vec<Arc<dyn RowCheck>> {
    let check = |def: &CheckDef| -> Arc<dyn RowCheck> {
        let source = Source::new(&def.expr.text);
        let condition = Condition::bind(table, &def.expr.ast, source, &|_| false);
        Arc::new(Check { name: def.name.clone(), condition })
    };
    table.checks.iter().map(check).collect()
}

impl Database {
    /// Refuses constraints and defaults that cannot be evaluated. `text` is the statement that defines the table.
    pub(crate) fn validate_expressions(&self, table: &TableDef, text: &str) -> Result<(), SqlError> {
        let library = self.library();
        let is_routine = |name: &ObjectName| is_routine(&library, name);
        let source = Source::new(text);
        for check in &table.checks {
            Condition::bind(table, &check.expr.ast, source, &is_routine)?;
        }
        for column in table.column_ids() {
            if let Some(default) = &table.column_def(column).default {
                bind_default(table, column, &default.ast, source, &is_routine)?;
            }
        }
        Ok(())
    }

    /// The defaults of a table's columns for a statement that begins now; NULL for columns without one, and for those
    /// that are `given`, whose defaults are not evaluated.
    pub(crate) fn default_values(
        &self,
        table: &TableDef,
        given: impl Fn(ColumnId) -> bool,
    ) -> Result<Vec<Value>, SqlError> {
        let now_us = self.inner.env.clock.unix_us();
        let value = |column| match given(column) {
            true => Ok(Value::Null),
            false => default_value(table, column, now_us),
        };
        table.column_ids().map(value).collect()
    }
}
