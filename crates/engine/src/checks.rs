//! CHECK constraints, evaluated row by row where rows change.

use std::sync::Arc;

use albireo_sql::TableDef;
use albireo_storage::RowCheck;

/// The constraints of a table.
pub(crate) fn checks_of(_table: &TableDef) -> Vec<Arc<dyn RowCheck>> {
    Vec::new()
}
