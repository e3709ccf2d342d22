//! A database for tests: tables in memory, one partition, routines; nothing survives it.

#![allow(dead_code, reason = "every test uses a part of it")]

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlState, StatementProgress, TableId, Tid, Value};
use albireo_procedure::body::{
    BindError, Limits, Outside, Routine, Routines, Signature, bind, bind_call, find_removed, with_host,
};
use albireo_procedure::compile::{Compiled, TableLayout, compile};
use albireo_procedure::datum::Datum;
use albireo_procedure::define::{self, Definition, RoutineStatement};
use albireo_procedure::expr::{RoutineId, text_of};
use albireo_procedure::host::Host;
use albireo_procedure::plan;
use albireo_procedure::store::{RaiseLevel, Site, Stop, Store, TableRef};
use albireo_procedure::types::Type;
use albireo_sql::{Catalog, DdlChange, TableDef, ast};
use albireo_storage::{
    BlockPool, BudgetPolicy, CellShape, Cells, ColumnSpec, FillShape, Filled, IndexKind, IndexSpec,
    LayoutChoice, RowAddress, Savepoint, SnapshotRegistry, Table, TableError, TableSpec, UndoLog,
};

/// The tables, and the transaction.
pub struct Memory {
    registry: Arc<SnapshotRegistry>,
    tables: BTreeMap<TableId, Table>,
    defs: BTreeMap<TableId, Arc<TableDef>>,
    undo: UndoLog,
    /// What RAISE told.
    pub notices: Vec<String>,
    /// How many interrupts are checked until one comes.
    pub patience: Option<u64>,
}

impl Memory {
    fn new() -> Self {
        let registry =
            Arc::new(SnapshotRegistry::new(BlockPool::new(64 << 20), u64::MAX, BudgetPolicy::RefuseNew));
        Self {
            registry,
            tables: BTreeMap::new(),
            defs: BTreeMap::new(),
            undo: UndoLog::default(),
            notices: Vec::new(),
            patience: None,
        }
    }

    fn commit(&mut self) {
        let tables = &mut self.tables;
        let free = |_, table, tid| {
            if let Some(table) = tables.get_mut(&TableId(table)) {
                table.free_slot(tid);
            }
        };
        self.undo.commit(free, |_, _, _, _| {});
    }

    fn apply(&mut self, catalog: &Catalog, change: &DdlChange) {
        match change {
            DdlChange::CreateTable(def) => {
                let spec = Arc::new(spec_of(def));
                let layout = Table::layout_of(&spec).unwrap();
                self.tables.insert(def.id, Table::new(spec, layout, None, &self.registry));
                self.defs.insert(def.id, Arc::clone(def));
            }
            DdlChange::DropTable(id) => {
                self.tables.remove(id);
            }
            DdlChange::CreateIndex { table, .. } => {
                let def = catalog.table(*table).unwrap();
                let progress = StatementProgress::default();
                self.tables.get_mut(table).unwrap().add_index(Arc::new(spec_of(def)), &progress).unwrap();
                self.defs.insert(*table, Arc::clone(def));
            }
            other => panic!("{other:?}"),
        }
    }

    fn error(&self, error: TableError) -> Stop {
        let (state, message) = match &error {
            TableError::Duplicate { .. } => (SqlState::UNIQUE_VIOLATION, "duplicate key".to_owned()),
            TableError::NotNull { table, column } => {
                let def = &self.defs[table];
                let name = &def.columns[column.0 as usize].name;
                let message = format!(
                    "null value in column \"{name}\" of relation \"{}\" violates not-null constraint",
                    def.name
                );
                (SqlState::NOT_NULL_VIOLATION, message)
            }
            TableError::Check { .. } => (SqlState::CHECK_VIOLATION, error.to_string()),
            TableError::Unchecked(error) => (error.state(), error.to_string()),
            TableError::OutOfRange { .. } => (SqlState::NUMERIC_VALUE_OUT_OF_RANGE, error.to_string()),
            TableError::TooLong { .. } => (SqlState::STRING_DATA_RIGHT_TRUNCATION, error.to_string()),
            _ => (SqlState::INTERNAL_ERROR, error.to_string()),
        };
        let message = match &error {
            TableError::Duplicate { table, index, .. } => {
                let def = &self.defs[table];
                let name = def.indexes.iter().find(|i| i.id == *index).map_or("?", |i| i.name.as_str());
                format!("duplicate key value violates unique constraint \"{name}\"")
            }
            _ => message,
        };
        SqlError::new(state, message).into()
    }
}

fn spec_of(def: &TableDef) -> TableSpec {
    let columns = def.columns.iter();
    let index = |index: &albireo_sql::IndexDef| IndexSpec {
        name: index.name.clone(),
        columns: index.columns.clone(),
        unique: index.unique,
        kind: match index.kind {
            albireo_sql::IndexKind::Hash => IndexKind::Hash,
            albireo_sql::IndexKind::Ordered => IndexKind::Ordered,
        },
    };
    TableSpec {
        id: def.id,
        name: def.name.clone(),
        columns: columns
            .map(|c| ColumnSpec { name: c.name.clone(), ty: c.ty, nullable: c.nullable })
            .collect(),
        layout: LayoutChoice::Columns,
        indexes: def.indexes.iter().map(index).collect(),
        partition_by: None,
        checks: Vec::new(),
    }
}

impl Store for Memory {
    fn now(&mut self) -> i64 {
        1_700_000_000_000_000
    }

    fn sites(&self, _: TableId) -> Vec<Site> {
        vec![Site(0)]
    }

    fn site_of(&self, _: TableId, _: &Value) -> Result<Site, Stop> {
        Ok(Site(0))
    }

    fn all_sites(&self, _: TableId) -> Result<Vec<Site>, Stop> {
        Ok(vec![Site(0)])
    }

    fn table(&self, _: Site, table: TableId) -> &Table {
        &self.tables[&table]
    }

    fn insert(&mut self, table: TableId, values: &[Value]) -> Result<(Site, Tid), Stop> {
        let inserted = self.tables.get_mut(&table).unwrap().insert_values(&mut self.undo, values);
        inserted.map(|tid| (Site(0), tid)).map_err(|error| self.error(error))
    }

    fn update(
        &mut self,
        site: Site,
        table: TableId,
        tid: Tid,
        values: &[(ColumnId, Value)],
    ) -> Result<(Site, Tid), Stop> {
        let updated = self.tables.get_mut(&table).unwrap().update_values(&mut self.undo, tid, values);
        updated.map(|_| (site, tid)).map_err(|error| self.error(error))
    }

    fn delete(&mut self, _: Site, table: TableId, tid: Tid) -> Result<(), Stop> {
        let deleted = self.tables.get_mut(&table).unwrap().delete(&mut self.undo, tid);
        deleted.map_err(|error| self.error(error))
    }

    fn synchronous_commit(&self) -> Option<bool> {
        None
    }

    fn set_synchronous_commit(&mut self, _: Option<bool>) {}

    fn savepoint(&self) -> Savepoint {
        self.undo.savepoint()
    }

    fn roll_back_to(&mut self, to: Savepoint) {
        while let Some(record) = self.undo.pop(to) {
            if let Some(table) = self.tables.get_mut(&TableId(record.table())) {
                table.undo(&self.undo, &record);
            }
        }
    }

    fn notice(&mut self, level: RaiseLevel, message: &str, _: Option<&str>, _: Option<&str>) {
        self.notices.push(format!("{level:?}: {message}"));
    }

    fn check_interrupt(&mut self) -> Result<(), Stop> {
        match &mut self.patience {
            None => Ok(()),
            Some(0) => {
                let message = "canceling statement due to user request";
                Err(Stop::Fatal(Box::new(SqlError::new(SqlState::QUERY_CANCELED, message))))
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    fn home(&self) -> Site {
        Site(0)
    }

    fn site_of_key(&self, _: i64) -> Result<Site, Stop> {
        Ok(Site(0))
    }

    fn table_at(&self, site: Site, table: TableRef) -> &Table {
        self.table(site, table.id)
    }

    fn insert_cells(
        &mut self,
        _: Site,
        table: TableRef,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<Tid, Stop> {
        let rows = self.tables.get_mut(&table.id).unwrap();
        rows.insert_cells(&mut self.undo, shape, cells).map_err(|error| self.error(error))
    }

    fn vacant_row(&mut self, _: Site, table: TableRef) -> Result<(Tid, RowAddress), Stop> {
        let rows = self.tables.get_mut(&table.id).unwrap();
        rows.vacant_row().map_err(|error| self.error(error))
    }

    fn enter_filled(
        &mut self,
        _: Site,
        table: TableRef,
        shape: &FillShape,
        filled: Filled<'_>,
    ) -> Result<(), Stop> {
        let rows = self.tables.get_mut(&table.id).unwrap();
        let entered = rows.enter_filled(&mut self.undo, shape, filled);
        entered.map(drop).map_err(|error| self.error(error))
    }

    fn overwrite(
        &mut self,
        _: Site,
        table: TableRef,
        tid: Tid,
        shape: &CellShape,
        nulls: u64,
    ) -> Result<Option<RowAddress>, Stop> {
        let rows = self.tables.get_mut(&table.id).unwrap();
        rows.overwrite(&mut self.undo, tid, shape, nulls).map_err(|error| self.error(error))
    }

    fn update_cells(
        &mut self,
        _: Site,
        table: TableRef,
        tid: Tid,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<(), Stop> {
        let rows = self.tables.get_mut(&table.id).unwrap();
        rows.update_cells(&mut self.undo, tid, shape, cells).map_err(|error| self.error(error))
    }

    fn delete_at(&mut self, site: Site, table: TableRef, tid: Tid) -> Result<(), Stop> {
        self.delete(site, table.id, tid)
    }
}

/// A routine as it was defined; bound when it is first needed.
struct Registered {
    definition: Definition,
    signature: Arc<Signature>,
    bound: OnceCell<Result<Arc<Routine>, SqlError>>,
    compiled: OnceCell<Option<Arc<Compiled>>>,
}

impl Registered {
    fn again(&self) -> Rc<Self> {
        let (definition, signature) = (self.definition.clone(), Arc::clone(&self.signature));
        Rc::new(Self { definition, signature, bound: OnceCell::new(), compiled: OnceCell::new() })
    }
}

/// The routines.
#[derive(Clone)]
pub struct Library {
    catalog: Catalog,
    routines: BTreeMap<u32, Rc<Registered>>,
    next: u32,
    /// Whether routines are compiled.
    compiles: bool,
    layouts: Layouts,
}

/// Where the tables lie.
#[derive(Clone, Default)]
struct Layouts(BTreeMap<TableId, Arc<TableLayout>>);

impl albireo_procedure::compile::Layouts for Layouts {
    fn layout(&self, table: TableId) -> Option<Arc<TableLayout>> {
        self.0.get(&table).cloned()
    }
}

impl Library {
    /// Forgets what was bound to definitions that may have changed.
    fn unbind(&mut self) {
        for routine in self.routines.values_mut() {
            *routine = routine.again();
        }
    }

    fn signatures(&self) -> impl Iterator<Item = (u32, &Signature)> {
        self.routines.iter().map(|(id, routine)| (*id, routine.signature.as_ref()))
    }
}

impl Routines for Library {
    fn named(&self, name: &str) -> Vec<(RoutineId, Arc<Signature>)> {
        let all = self.routines.iter().filter(|(_, routine)| routine.signature.name == name);
        all.map(|(id, routine)| (RoutineId(*id), Arc::clone(&routine.signature))).collect()
    }

    fn signature(&self, routine: RoutineId) -> Option<Arc<Signature>> {
        self.routines.get(&routine.0).map(|routine| Arc::clone(&routine.signature))
    }

    fn bound(&self, routine: RoutineId) -> Result<Arc<Routine>, SqlError> {
        let missing = || SqlError::new(SqlState::UNDEFINED_FUNCTION, "no such function");
        let routine = self.routines.get(&routine.0).ok_or_else(missing)?;
        let bind = || {
            let bound = bind(&self.catalog, self, &routine.definition, &routine.signature);
            bound.map(Arc::new).map_err(|BindError { error, .. }| error)
        };
        routine.bound.get_or_init(bind).clone()
    }

    fn compiled(&self, routine: RoutineId) -> Option<Arc<Compiled>> {
        if !self.compiles {
            return None;
        }
        let code = || {
            let bound = self.bound(routine).ok()?;
            compile(&bound, &self.layouts).expect("every routine can be compiled").map(Arc::new)
        };
        self.routines.get(&routine.0)?.compiled.get_or_init(code).clone()
    }
}

/// What a statement gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was done, with so many rows changed.
    Done(u64),
    /// Columns with types, and rows as text.
    Rows(Vec<(String, String)>, Vec<Vec<Option<String>>>),
}

/// A database.
pub struct Database {
    pub memory: Memory,
    library: Library,
    /// BEGIN was said: the routines as they were, and whether a statement failed.
    transaction: Option<(Library, bool)>,
    pub limits: Limits,
}

impl Database {
    /// An empty one whose routines are interpreted, or compiled.
    pub fn new(compiles: bool) -> Self {
        let library = Library {
            catalog: Catalog::new(),
            routines: BTreeMap::new(),
            next: 1,
            compiles,
            layouts: Layouts::default(),
        };
        Self { memory: Memory::new(), library, transaction: None, limits: Limits::default() }
    }

    /// What a run of a routine needs.
    pub fn parts(&mut self) -> (&mut Memory, &Library, Limits) {
        (&mut self.memory, &self.library, self.limits)
    }

    /// Reads and binds the definition of a routine, which is not kept.
    pub fn check(&self, sql: &str) -> Result<(), SqlError> {
        let Library { catalog, .. } = &self.library;
        match define::parse(sql)? {
            Some(RoutineStatement::Create(definition)) => {
                let signature = Arc::new(Signature::new(catalog, &definition)?);
                let bound = bind(catalog, &self.library, &definition, &signature);
                bound.map(|_| ()).map_err(|BindError { error, .. }| error)
            }
            _ => Ok(()),
        }
    }

    /// The routine of this name, bound.
    pub fn routine(&self, name: &str) -> Result<(RoutineId, Arc<Routine>), SqlError> {
        let named = self.library.named(name);
        let missing = || SqlError::new(SqlState::UNDEFINED_FUNCTION, "no such function");
        let (id, _) = named.first().ok_or_else(missing)?;
        Ok((*id, self.library.bound(*id)?))
    }

    /// Whether routines are compiled from here on.
    pub fn compile(&mut self, compiles: bool) {
        self.library.compiles = compiles;
    }

    /// The routines.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Runs one statement, in a transaction of its own unless BEGIN was said.
    pub fn run(&mut self, sql: &str) -> Result<Outcome, SqlError> {
        match sql.trim_end_matches(';').to_ascii_uppercase().as_str() {
            "BEGIN" => {
                self.transaction = Some((self.library.clone(), false));
                return Ok(Outcome::Done(0));
            }
            "COMMIT" | "ROLLBACK" => {
                let (library, failed) = self.transaction.take().expect("no transaction");
                if failed || sql.eq_ignore_ascii_case("ROLLBACK") {
                    self.memory.roll_back_to(Savepoint::START);
                    self.library = library;
                } else {
                    self.memory.commit();
                }
                return Ok(Outcome::Done(0));
            }
            _ => {}
        }
        if self.transaction.as_ref().is_some_and(|(_, failed)| *failed) {
            return Err(SqlError::new(SqlState(*b"25P02"), "current transaction is aborted"));
        }
        let before = self.memory.savepoint();
        let result = self.statement(sql);
        match (&result, &mut self.transaction) {
            (Err(_), Some((_, failed))) => *failed = true,
            (Err(_), None) => self.memory.roll_back_to(before),
            (Ok(_), None) => self.memory.commit(),
            (Ok(_), Some(_)) => {}
        }
        result.map_err(|stop| match stop {
            Stop::Error(error) | Stop::Fatal(error) => *error,
            Stop::Crossing => panic!("there is one partition"),
        })
    }

    fn statement(&mut self, sql: &str) -> Result<Outcome, Stop> {
        match define::parse(sql)? {
            Some(RoutineStatement::Create(definition)) => Ok(self.create(*definition)?),
            Some(RoutineStatement::Drop(removal)) => {
                for routine in &removal.routines {
                    let known = self.library.signatures();
                    if let Some(id) = find_removed(&self.library.catalog, &removal, routine, known)? {
                        self.library.routines.remove(&id);
                    }
                }
                self.library.unbind();
                Ok(Outcome::Done(0))
            }
            Some(RoutineStatement::Call(function)) => self.call(&function, sql),
            Some(RoutineStatement::Explain(_)) => Err(SqlError::unsupported("EXPLAIN here").into()),
            None => self.plain(sql),
        }
    }

    fn create(&mut self, definition: Definition) -> Result<Outcome, SqlError> {
        let signature = Arc::new(Signature::new(&self.library.catalog, &definition)?);
        let known = self.library.signatures();
        let same = known.into_iter().find(|(_, s)| s.name == signature.name && s.key() == signature.key());
        let id = match same {
            Some((id, old)) if definition.replace => {
                old.check_replacement(&signature)?;
                id
            }
            Some(_) => {
                let message = format!(
                    "function \"{}\" already exists with same argument types",
                    definition.name.name.text
                );
                return Err(SqlError::new(SqlState(*b"42723"), message));
            }
            None => self.library.next,
        };
        let mut library = self.library.clone();
        library.unbind();
        let (bound, compiled) = (OnceCell::new(), OnceCell::new());
        let registered = Registered { definition, signature, bound, compiled };
        library.routines.insert(id, Rc::new(registered));
        library.next = library.next.max(id + 1);
        let routine = &library.routines[&id];
        match bind(&library.catalog, &library, &routine.definition, &routine.signature) {
            Err(BindError { error, deferred: false }) => Err(error),
            _ => {
                self.library = library;
                Ok(Outcome::Done(0))
            }
        }
    }

    fn call(&mut self, function: &ast::Function, sql: &str) -> Result<Outcome, Stop> {
        let mut outside = Outside::new(&self.library.catalog, &self.library, sql);
        let call = bind_call(&self.library, function, &mut outside)?;
        let around = outside.into_routine();
        let rows = call.run(&mut self.memory, &self.library, self.limits, &around, &[])?;
        let columns = call.columns();
        Ok(if columns.is_empty() { Outcome::Done(0) } else { shown(&columns, rows) })
    }

    fn plain(&mut self, sql: &str) -> Result<Outcome, Stop> {
        let statement = albireo_sql::parse_one(sql)?;
        let Self { memory, library, limits, .. } = self;
        let mut outside = Outside::new(&library.catalog, library, sql);
        match &statement {
            ast::Statement::Query(query) if !albireo_sql::classify::changes_rows(&statement) => {
                let select = plan::bind_select(&library.catalog, query, &mut outside)?;
                let around = outside.into_routine();
                let rows = with_host(memory, library, *limits, &around, |host| {
                    let host: &mut dyn Host = host;
                    plan::select(&select, host, usize::MAX)
                })?;
                Ok(shown(&select.columns, rows))
            }
            _ if albireo_sql::classify::changes_rows(&statement) => {
                let change = plan::bind_change(&library.catalog, &statement, &mut outside)?;
                let around = outside.into_routine();
                let (count, rows) = with_host(memory, library, *limits, &around, |host| {
                    let host: &mut dyn Host = host;
                    plan::change(&change, host)
                })?;
                Ok(if change.returning.is_empty() {
                    Outcome::Done(count)
                } else {
                    shown(&change.returning, rows)
                })
            }
            _ => {
                let changes = albireo_sql::plan_ddl(&library.catalog, &statement, sql)?.changes;
                let catalog = library.catalog.with(&changes);
                for change in &changes {
                    memory.apply(&catalog, change);
                }
                library.catalog = catalog;
                let layouts = memory.tables.iter().map(|(id, table)| (*id, Arc::new(TableLayout::of(table))));
                library.layouts = Layouts(layouts.collect());
                library.unbind();
                Ok(Outcome::Done(0))
            }
        }
    }
}

fn shown(columns: &[(String, Type)], rows: Vec<Vec<Datum>>) -> Outcome {
    let columns = columns.iter().map(|(name, ty)| (name.clone(), ty.to_string())).collect();
    let rows = rows.iter().map(|row| row.iter().map(text_of).collect()).collect();
    Outcome::Rows(columns, rows)
}
