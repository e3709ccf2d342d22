//! CHECK constraints and defaults: refused where a table is made, evaluated where rows change.
//!
//! Responsible for: which of them CREATE TABLE takes, defaults for statements that fill columns themselves. Not
//! responsible for: what they mean (`albireo_semantics::table`), constraints as storage wants them
//! (`albireo_execute::tables`).
//!
//! I-1 A condition that CREATE TABLE took is true, false, NULL or an error for every row; it never panics. False and
//! errors refuse the row.

use albireo_base::{ColumnId, SqlError, Value};
use albireo_semantics::table::{Condition, bind_default, default_value};
use albireo_sql::TableDef;
use albireo_sql::ast::ObjectName;
use albireo_sql::source::Source;

use crate::Database;
use crate::routines::is_routine;

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
