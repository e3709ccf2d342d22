//! CREATE, DROP and TRUNCATE: storage first, then the catalog; or, for what goes, the other way
//! round, so that nobody is sent to a table that is not there.

use std::collections::BTreeMap;
use std::sync::Arc;

use albireo_base::{SqlError, SqlState, StatementProgress, TableId};
use albireo_execute::Interrupts;
use albireo_execute::errors::Explainer;
use albireo_partition::{BuiltIndex, Exclusive, IndexBuildError, Receipt};
use albireo_sql::ast::Statement;
use albireo_sql::{Catalog, DdlChange, IndexDef, TableDef, plan_ddl};
use albireo_storage::{Table, TableSpec};

use crate::definitions::Changing;
use crate::{Database, Outcome};

pub(crate) use albireo_execute::tables::{handle, spec_of};

impl Database {
    pub(crate) fn run_ddl(
        &self,
        statement: &Statement,
        text: &str,
        progress: &StatementProgress,
        interrupts: &Interrupts,
    ) -> Result<Outcome, SqlError> {
        let changing = self.inner.definitions.begin(interrupts)?;
        let catalog = self.catalog();
        let plan = plan_ddl(&catalog, statement, text)?;
        for change in &plan.changes {
            if let DdlChange::CreateTable(table) = change {
                self.validate_expressions(table, text)?;
            }
        }
        if !plan.changes.is_empty() {
            let next = Arc::new(catalog.with(&plan.changes));
            let changes = Changes { database: self, catalog, next, changes: &plan.changes, text };
            changes.make(&changing, progress, interrupts)?;
        }
        Ok(Outcome::Done { tag: plan.tag.into(), rows: 0, notices: plan.notices })
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
}

/// Changes of the catalog that a statement makes.
struct Changes<'a> {
    database: &'a Database,
    /// As it is, and as it will be.
    catalog: Arc<Catalog>,
    next: Arc<Catalog>,
    changes: &'a [DdlChange],
    /// The statement.
    text: &'a str,
}

impl Changes<'_> {
    /// Makes them, all or none, at one moment for everybody. Indexes of tables that are there are built before, beside
    /// whoever reads and writes these.
    fn make(
        &self,
        changing: &Changing<'_>,
        progress: &StatementProgress,
        interrupts: &Interrupts,
    ) -> Result<(), SqlError> {
        let partitions = &self.database.inner.partitions;
        let goes_on = || interrupts.check().is_ok();
        let mut built = self.build_indexes(progress, interrupts)?;
        let alone = changing.write(interrupts, || {
            let mut behind = built.values_mut().flatten();
            behind.try_for_each(|index| self.caught_up(index.catch_up(partitions, &goes_on), interrupts))
        })?;
        for change in self.changes {
            if let DdlChange::DropIndex { table, .. } = change {
                self.database.check_handles(&self.catalog, *table)?;
            }
        }
        for index in built.values_mut().flatten() {
            self.caught_up(index.catch_up(partitions, &goes_on), interrupts)?;
        }
        let receipt = partitions.exclusively(|all| self.switch(all, built, progress, interrupts))?;
        for change in self.changes {
            match change {
                DdlChange::Truncate(id) => self.database.inner.olap.forget(*id),
                DdlChange::DropTable(id) => {
                    self.database.inner.handed_out.lock().remove(id);
                    self.database.inner.olap.forget(*id);
                }
                DdlChange::SetFreeze { .. } => self.database.inner.freezing.look(),
                _ => {}
            }
        }
        drop(alone);
        self.database.acknowledge_call(None, receipt)
    }

    /// Makes all changes, with all partitions owned. What can fail comes before what cannot: building, and the log.
    fn switch(
        &self,
        all: &mut Exclusive<'_>,
        mut built: BTreeMap<usize, Option<BuiltIndex>>,
        progress: &StatementProgress,
        interrupts: &Interrupts,
    ) -> Result<Receipt, SqlError> {
        let (catalog, changes) = (&self.catalog, self.changes);
        let mut done = 0;
        let mut made = Ok(());
        for (at, change) in changes.iter().enumerate() {
            made = self.build(all, change, built.remove(&at).flatten(), progress, interrupts);
            if made.is_err() {
                break;
            }
            done += 1;
        }
        let receipt = made.and_then(|()| self.database.log_definition(all, self.text));
        let receipt = receipt.inspect_err(|_| {
            changes[..done].iter().for_each(|change| unbuild(all, catalog, change));
        })?;
        *self.database.inner.catalog.write() = Arc::clone(&self.next);
        let mut before = Arc::clone(catalog);
        for change in changes {
            tear_down(all, &before, change);
            // Indexes are known by their positions, which a dropped one moves.
            if matches!(change, DdlChange::DropIndex { .. }) {
                before = Arc::new(before.with(std::slice::from_ref(change)));
            }
        }
        Ok(receipt)
    }

    /// Builds indexes of tables that are there, by the positions of their changes; `None` where that is to be done with
    /// all partitions owned.
    fn build_indexes(
        &self,
        progress: &StatementProgress,
        interrupts: &Interrupts,
    ) -> Result<BTreeMap<usize, Option<BuiltIndex>>, SqlError> {
        let mut built = BTreeMap::new();
        for (at, change) in self.changes.iter().enumerate() {
            let DdlChange::CreateIndex { table, index } = change else { continue };
            let Some(def) = self.catalog.table(*table) else { continue };
            let spec = Arc::new(self.spec_with(*table, index));
            let goes_on = || interrupts.check().is_ok();
            let aside = self.database.inner.partitions.build_index(handle(def), &spec, progress, &goes_on);
            let explain = |error| self.explain_build(error, Some(&index.name), interrupts);
            built.insert(at, aside.map_err(explain)?);
        }
        Ok(built)
    }

    /// The shape of a table with a new index as its last: several may come in one statement.
    fn spec_with(&self, table: TableId, index: &IndexDef) -> TableSpec {
        let def = self.next.table(table).expect("the new catalog has the table of a new index");
        let mut spec = spec_of(def);
        let end = def.indexes.iter().position(|i| i.id == index.id).expect("the index is new") + 1;
        spec.indexes.truncate(end);
        spec
    }

    /// Makes what a change adds.
    fn build(
        &self,
        all: &mut Exclusive<'_>,
        change: &DdlChange,
        built: Option<BuiltIndex>,
        progress: &StatementProgress,
        interrupts: &Interrupts,
    ) -> Result<(), SqlError> {
        match change {
            DdlChange::CreateTable(table) => create_table(all, table),
            DdlChange::CreateIndex { table, index } => {
                let def = self.next.table(*table).expect("the new catalog has the table of a new index");
                let is_there = match built {
                    Some(built) => all.install_index(built),
                    None => Ok(false),
                };
                let created = match is_there {
                    Ok(false) => all.create_index(handle(def), self.spec_with(*table, index), progress),
                    done => done.map(drop),
                };
                created.map_err(|error| self.explain_build(error.into(), Some(&index.name), interrupts))
            }
            DdlChange::CreateSchema(_)
            | DdlChange::DropSchema(_)
            | DdlChange::DropTable(_)
            | DdlChange::Truncate(_)
            | DdlChange::SetFreeze { .. }
            | DdlChange::DropIndex { .. } => Ok(()),
        }
    }

    fn caught_up(
        &self,
        done: Result<bool, IndexBuildError>,
        interrupts: &Interrupts,
    ) -> Result<(), SqlError> {
        // An index that was not told of all changes is built again when all partitions are owned.
        done.map(drop).map_err(|error| self.explain_build(error, None, interrupts))
    }

    fn explain_build(
        &self,
        error: IndexBuildError,
        index: Option<&str>,
        interrupts: &Interrupts,
    ) -> SqlError {
        let error = match error {
            IndexBuildError::Table(error) => {
                let key_of = |_, _, _| None;
                Explainer { catalog: &self.next, key_of: &key_of }.table(error)
            }
            IndexBuildError::Budget(spent) => crate::errors::session(spent.into()),
            IndexBuildError::Dropped => SqlError::new(SqlState::UNDEFINED_TABLE, "the table was dropped"),
            IndexBuildError::Ended => interrupts.ended(),
        };
        match (error.state(), index) {
            (SqlState::UNIQUE_VIOLATION, Some(index)) => {
                SqlError::new(error.state(), format!("could not create unique index \"{index}\""))
                    .with_detail("The table holds rows with the same key.")
            }
            _ => error,
        }
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
