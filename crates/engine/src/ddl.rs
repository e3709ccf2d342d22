//! CREATE, DROP and TRUNCATE: storage first, then the catalog; or, for what goes, the other way
//! round, so that nobody is sent to a table that is not there.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, StatementProgress, TableId};
use albireo_execute::errors::Explainer;
use albireo_partition::Exclusive;
use albireo_sql::ast::Statement;
use albireo_sql::{Catalog, DdlChange, TableDef, plan_ddl};
use albireo_storage::Table;

use crate::{Database, Outcome};

pub(crate) use albireo_execute::tables::{handle, spec_of};

impl Database {
    pub(crate) fn run_ddl(
        &self,
        statement: &Statement,
        text: &str,
        progress: &StatementProgress,
    ) -> Result<Outcome, SqlError> {
        let _alone = self.inner.definitions.write();
        let catalog = self.catalog();
        let plan = plan_ddl(&catalog, statement, text)?;
        for change in &plan.changes {
            if let DdlChange::CreateTable(table) = change {
                self.validate_expressions(table, text)?;
            }
            if let DdlChange::DropIndex { table, .. } = change {
                self.check_handles(&catalog, *table)?;
            }
        }
        if !plan.changes.is_empty() {
            self.make_changes(&catalog, &plan.changes, text, progress)?;
        }
        Ok(Outcome::Done { tag: plan.tag.to_owned(), rows: 0, notices: plan.notices })
    }

    /// 55006 if handles to the table's indexes may be about: they would come to mean others.
    fn check_handles(&self, catalog: &Catalog, table: TableId) -> Result<(), SqlError> {
        if !self.inner.handed_out.lock().contains(&table) {
            return Ok(());
        }
        let name = catalog.table(table).map_or("", |def| def.name.as_str());
        let message =
            format!("cannot drop an index of table \"{name}\" because native procedures may use it");
        Err(SqlError::new(SqlState::OBJECT_IN_USE, message)
            .with_detail("Handles made by Database::with_table name indexes by their position.")
            .with_hint("Drop the index before the procedures are made, or drop the table."))
    }

    /// Makes the changes of the catalog that `text` says, all or none, at one moment for everybody.
    fn make_changes(
        &self,
        catalog: &Arc<Catalog>,
        changes: &[DdlChange],
        text: &str,
        progress: &StatementProgress,
    ) -> Result<(), SqlError> {
        let next = Arc::new(catalog.with(changes));
        let receipt = self.inner.partitions.exclusively(|all| {
            // What can fail comes before what cannot: building, and the log.
            let mut done = 0;
            let built = changes.iter().try_for_each(|change| {
                build(all, &next, change, progress)?;
                done += 1;
                Ok(())
            });
            let receipt = built.and_then(|()| self.log_definition(all, text));
            let receipt = receipt.inspect_err(|_| {
                changes[..done].iter().for_each(|change| unbuild(all, catalog, change));
            })?;
            *self.inner.catalog.write() = next;
            let mut before = Arc::clone(catalog);
            for change in changes {
                tear_down(all, &before, change);
                // Indexes are known by their positions, which a dropped one moves.
                if matches!(change, DdlChange::DropIndex { .. }) {
                    before = Arc::new(before.with(std::slice::from_ref(change)));
                }
            }
            Ok::<_, SqlError>(receipt)
        })?;
        for change in changes {
            match change {
                DdlChange::Truncate(id) => self.inner.olap.forget(*id),
                DdlChange::DropTable(id) => {
                    self.inner.handed_out.lock().remove(id);
                    self.inner.olap.forget(*id);
                }
                _ => {}
            }
        }
        self.acknowledge_call(None, receipt)
    }
}

/// Makes what a change adds.
fn build(
    all: &mut Exclusive<'_>,
    next: &Catalog,
    change: &DdlChange,
    progress: &StatementProgress,
) -> Result<(), SqlError> {
    match change {
        DdlChange::CreateTable(table) => create_table(all, table),
        DdlChange::CreateIndex { table, index } => {
            let def = next.table(*table).expect("the new catalog has the table of a new index");
            let mut spec = spec_of(def);
            // Several indexes may come in one statement; this one is the last built.
            let end = def.indexes.iter().position(|i| i.id == index.id).expect("the index is new") + 1;
            spec.indexes.truncate(end);
            all.create_index(handle(def), spec, progress).map_err(|error| {
                let key_of = |_, _, _| None;
                let error = Explainer { catalog: next, key_of: &key_of }.table(error);
                match error.state() {
                    SqlState::UNIQUE_VIOLATION => SqlError::new(
                        error.state(),
                        format!("could not create unique index \"{}\"", index.name),
                    )
                    .with_detail("The table holds rows with the same key."),
                    _ => error,
                }
            })
        }
        DdlChange::CreateSchema(_)
        | DdlChange::DropSchema(_)
        | DdlChange::DropTable(_)
        | DdlChange::Truncate(_)
        | DdlChange::DropIndex { .. } => Ok(()),
    }
}

/// Makes a table.
fn create_table(all: &mut Exclusive<'_>, def: &TableDef) -> Result<(), SqlError> {
    let spec = spec_of(def);
    let layout = Table::layout_of(&spec).map_err(crate::errors::layout)?;
    all.create_table(spec, &layout);
    Ok(())
}

/// Takes [`build`] back.
fn unbuild(all: &mut Exclusive<'_>, old: &Catalog, change: &DdlChange) {
    match change {
        DdlChange::CreateTable(table) => all.drop_table(handle(table)),
        DdlChange::CreateIndex { table, .. } => {
            let def = old.table(*table).expect("the table was there before");
            let spec = spec_of(def);
            all.drop_index(handle(def), spec.indexes.len(), spec);
        }
        _ => {}
    }
}

/// Removes what a change takes away, after nobody finds it any more.
fn tear_down(all: &mut Exclusive<'_>, old: &Catalog, change: &DdlChange) {
    match change {
        DdlChange::DropTable(id) => {
            all.drop_table(handle(old.table(*id).expect("a dropped table existed")));
        }
        DdlChange::DropIndex { table, index } => {
            let def = old.table(*table).expect("the table of a dropped index exists");
            let position = def.indexes.iter().position(|i| i.id == *index).expect("the index existed");
            let mut spec = spec_of(def);
            spec.indexes.remove(position);
            all.drop_index(handle(def), position, spec);
        }
        // Only now, since nothing brings rows back if the log refuses. The layout stays, so that handles go on
        // to fit it.
        DdlChange::Truncate(id) => {
            let def = old.table(*id).expect("a truncated table exists");
            all.truncate_table(handle(def), spec_of(def));
        }
        _ => {}
    }
}
