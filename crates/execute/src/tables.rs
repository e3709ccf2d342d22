//! Tables of the catalog as partitions and storage want them.

use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, Value};
use albireo_partition::TableHandle;
use albireo_semantics::table::Condition;
use albireo_sql::catalog::CheckDef;
use albireo_sql::source::Source;
use albireo_sql::{IndexDef, IndexKeys, Layout, TableDef};
use albireo_storage::{ColumnSpec, IndexKind, IndexSpec, LayoutChoice, RowCheck, TableSpec};

/// The partitions' handle to a table.
#[inline]
pub fn handle(table: &TableDef) -> TableHandle {
    TableHandle::new(table.id, table.is_shared())
}

/// A table's shape as storage wants it.
pub fn spec_of(table: &TableDef) -> TableSpec {
    TableSpec {
        id: table.id,
        name: table.name.clone(),
        columns: table
            .columns
            .iter()
            .map(|c| ColumnSpec { name: c.name.clone(), ty: c.ty, nullable: c.nullable })
            .collect(),
        layout: match &table.layout {
            Layout::Column => LayoutChoice::Columns,
            Layout::Row => LayoutChoice::Rows,
            Layout::Groups(groups) => LayoutChoice::Groups(groups.clone()),
        },
        indexes: table.indexes.iter().map(index_spec).collect(),
        partition_by: table.partition_by,
        checks: checks_of(table),
    }
}

fn index_spec(index: &IndexDef) -> IndexSpec {
    let columns: Vec<ColumnId> = index.columns.clone();
    let kind = match (index.kind, index.keys) {
        (albireo_sql::IndexKind::Hash, _) => IndexKind::Hash,
        (albireo_sql::IndexKind::Ordered, IndexKeys::Prefix) => IndexKind::Ordered,
        (albireo_sql::IndexKind::Ordered, IndexKeys::None) => IndexKind::Bare,
    };
    IndexSpec { name: index.name.clone(), columns, unique: index.unique, kind }
}

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
fn checks_of(table: &TableDef) -> Vec<Arc<dyn RowCheck>> {
    let check = |def: &CheckDef| -> Arc<dyn RowCheck> {
        let source = Source::new(&def.expr.text);
        let condition = Condition::bind(table, &def.expr.ast, source, &|_| false);
        Arc::new(Check { name: def.name.clone(), condition })
    };
    table.checks.iter().map(check).collect()
}
