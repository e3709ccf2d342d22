//! A database for tests: one partition in memory, and routines that are interpreted or compiled.

#![allow(dead_code, reason = "every test uses a part of it")]

#[path = "../../../plpgsql/tests/library/mod.rs"]
pub mod library;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use albireo_base::{PartitionId, SqlError, SqlState, StatementProgress, TableId};
use albireo_compile::{Compiled, TableLayout, compile};
use albireo_env::Env;
use albireo_execute::tables::{handle, spec_of};
use albireo_execute::{
    Executables, Execution, Host, Interrupts, Limits, RoutineCode, query, run_call, with_host,
};
use albireo_partition::{Abort, Call, CallError, Partitions, PartitionsConfig, Route, Transaction};
use albireo_plpgsql::body::{Outside, Routine, Routines, Signature, bind_call};
use albireo_plpgsql::define::{self, RoutineStatement};
use albireo_plpgsql::plan;
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{RoutineId, text_of};
use albireo_semantics::types::Type;
use albireo_sql::classify::changes_rows;
use albireo_sql::{Catalog, DdlChange, ast};
use albireo_storage::{BlockPool, BudgetPolicy, SnapshotRegistry, Table};

use library::Library;

/// When every transaction runs, in microseconds since 1970.
const NOW_US: i64 = 1_700_000_000_000_000;

/// The routines, with their machine code.
pub struct Programs {
    pub library: Library,
    /// Whether routines are compiled.
    pub compiles: bool,
    layouts: Layouts,
    code: RefCell<BTreeMap<u32, Arc<Compiled>>>,
}

/// Where the tables lie.
#[derive(Default)]
struct Layouts(BTreeMap<TableId, Arc<TableLayout>>);

impl albireo_compile::Layouts for Layouts {
    fn layout(&self, table: TableId) -> Option<Arc<TableLayout>> {
        self.0.get(&table).cloned()
    }
}

impl Programs {
    /// The machine code of a routine, if it has some.
    pub fn code_of(&self, routine: RoutineId) -> Option<Arc<Compiled>> {
        let bound = self.library.bound(routine).ok()?;
        let mut known = self.code.borrow_mut();
        if let Some(code) = known.get(&routine.0).filter(|code| Arc::ptr_eq(code.routine(), &bound)) {
            return Some(Arc::clone(code));
        }
        let code = Arc::new(compile(&bound, &self.layouts).expect("every routine can be compiled")?);
        known.insert(routine.0, Arc::clone(&code));
        Some(code)
    }
}

impl Routines for Programs {
    fn named(&self, name: &str) -> Vec<(RoutineId, Arc<Signature>)> {
        self.library.named(name)
    }

    fn signature(&self, routine: RoutineId) -> Option<Arc<Signature>> {
        self.library.signature(routine)
    }

    fn bound(&self, routine: RoutineId) -> Result<Arc<Routine>, SqlError> {
        self.library.bound(routine)
    }
}

impl Executables for Programs {
    fn machine_code(&self, routine: RoutineId) -> Option<Arc<dyn RoutineCode>> {
        if !self.compiles {
            return None;
        }
        Some(self.code_of(routine)?)
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
    partitions: Partitions,
    pub programs: Programs,
    pub limits: Limits,
    pub interrupts: Interrupts,
    /// What RAISE told.
    pub notices: Vec<String>,
}

/// A transaction of it.
pub struct Session<'s> {
    pub tx: &'s mut Transaction,
    pub programs: &'s mut Programs,
    limits: Limits,
    interrupts: &'s Interrupts,
    /// How many rows a statement may look at.
    pub rows: u32,
    pub notices: &'s mut Vec<String>,
}

impl Database {
    /// An empty one whose routines are interpreted, or compiled.
    pub fn new(compiles: bool) -> Self {
        let (env, _) = Env::simulated(1);
        let pool = BlockPool::new(64 << 20);
        let registry = Arc::new(SnapshotRegistry::new(pool, u64::MAX, BudgetPolicy::RefuseNew));
        let partitions = Partitions::new(PartitionsConfig::default(), registry, &env);
        let (layouts, code) = (Layouts::default(), RefCell::default());
        let programs = Programs { library: Library::new(), compiles, layouts, code };
        let interrupts = Interrupts::none(env.clock);
        Self { partitions, programs, limits: Limits::default(), interrupts, notices: Vec::new() }
    }

    /// The routines.
    pub fn library(&self) -> &Library {
        &self.programs.library
    }

    /// Runs one statement, in a transaction of its own.
    pub fn run(&mut self, sql: &str) -> Result<Outcome, SqlError> {
        if define::parse(sql)?.is_none() {
            let statement = albireo_sql::parse_one(sql)?;
            if !is_about_rows(&statement) {
                return self.change(&statement, sql);
            }
        }
        self.transaction(|session| session.run(sql))
    }

    /// Runs statements one after another; from BEGIN to COMMIT or ROLLBACK they are one transaction.
    pub fn run_all<'t>(
        &mut self,
        statements: impl IntoIterator<Item = &'t str>,
    ) -> Vec<Result<Outcome, SqlError>> {
        let mut statements = statements.into_iter();
        let mut results = Vec::new();
        while let Some(sql) = statements.next() {
            if sql != "BEGIN" {
                results.push(self.run(sql));
                continue;
            }
            results.push(Ok(Outcome::Done(0)));
            let _ = self.transaction(|session| {
                let mut failed = false;
                loop {
                    match statements.next().expect("a transaction ends") {
                        sql @ ("COMMIT" | "ROLLBACK") => {
                            results.push(Ok(Outcome::Done(0)));
                            let commits = sql == "COMMIT" && !failed;
                            return if commits { Ok(()) } else { Err(aborted()) };
                        }
                        _ if failed => results.push(Err(aborted())),
                        sql => {
                            let result = session.run(sql);
                            failed = result.is_err();
                            results.push(result);
                        }
                    }
                }
            });
        }
        results
    }

    /// Runs `act` in one transaction, which is rolled back if that fails.
    pub fn transaction<R>(
        &mut self,
        act: impl FnOnce(&mut Session<'_>) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        let Self { partitions, programs, limits, interrupts, notices } = self;
        let before = programs.library.clone();
        let call = Call { time_us: Some(NOW_US), ..Call::new(Route::Crossing, "test") };
        let done = partitions.crossing_once(&call, |tx| {
            let programs = &mut *programs;
            let mut session = Session { tx, programs, limits: *limits, interrupts, rows: u32::MAX, notices };
            act(&mut session).map_err(Abort::Raised)
        });
        done.map_err(|error| match error {
            CallError::Aborted(Abort::Raised(error)) => {
                programs.library = before;
                error
            }
            other => panic!("{other}"),
        })
    }

    /// Changes tables.
    fn change(&mut self, statement: &ast::Statement, sql: &str) -> Result<Outcome, SqlError> {
        let before = self.programs.library.catalog.clone();
        let changes = self.programs.library.change(statement, sql)?;
        let after = &self.programs.library.catalog;
        for change in &changes {
            make(&self.partitions, [&before, after], change);
        }
        let layout = |def: &Arc<albireo_sql::TableDef>| {
            let layout = self.partitions.with_table(handle(def), PartitionId(0), TableLayout::of);
            (def.id, Arc::new(layout))
        };
        self.programs.layouts = Layouts(after.tables().map(layout).collect());
        Ok(Outcome::Done(0))
    }
}

fn aborted() -> SqlError {
    SqlError::new(SqlState(*b"25P02"), "current transaction is aborted")
}

fn is_about_rows(statement: &ast::Statement) -> bool {
    matches!(statement, ast::Statement::Query(_)) || changes_rows(statement)
}

/// Makes a change of the catalog one of the tables.
pub fn make(partitions: &Partitions, [before, after]: [&Catalog; 2], change: &DdlChange) {
    partitions.exclusively(|all| match change {
        DdlChange::CreateTable(def) => {
            let spec = spec_of(def);
            let layout = Table::layout_of(&spec).unwrap();
            all.create_table(spec, &layout);
        }
        DdlChange::DropTable(id) => all.drop_table(handle(before.table(*id).unwrap())),
        DdlChange::CreateIndex { table, .. } => {
            let def = after.table(*table).unwrap();
            all.create_index(handle(def), spec_of(def), &StatementProgress::default()).unwrap();
        }
        other => panic!("{other:?}"),
    });
}

impl Session<'_> {
    /// Runs a statement that changes no table's definition.
    pub fn run(&mut self, sql: &str) -> Result<Outcome, SqlError> {
        let before = self.tx.savepoint();
        self.statement(sql).map_err(|stop| {
            self.tx.roll_back_to(before);
            match stop {
                Stop::Error(error) | Stop::Fatal(error) => *error,
                Stop::Crossing | Stop::Locked => panic!("there is one partition"),
            }
        })
    }

    /// Lets `act` run something.
    pub fn execute<R>(&mut self, act: impl FnOnce(&mut Execution<'_>, &Programs, Limits) -> R) -> R {
        let mut execution = Execution::new(self.tx, &self.programs.library.catalog, self.interrupts);
        execution.allow_rows(self.rows);
        let result = act(&mut execution, self.programs, self.limits);
        let told = execution.take_notices().into_iter();
        self.notices.extend(told.map(|notice| format!("{:?}: {}", notice.level, notice.message)));
        result
    }

    fn statement(&mut self, sql: &str) -> Result<Outcome, Stop> {
        match define::parse(sql)? {
            Some(RoutineStatement::Create(definition)) => self.programs.library.create(*definition)?,
            Some(RoutineStatement::Drop(removal)) => self.programs.library.remove(&removal)?,
            Some(RoutineStatement::Call(function)) => return self.call(&function, sql),
            Some(RoutineStatement::Explain(_)) => return Err(SqlError::unsupported("EXPLAIN here").into()),
            None => return self.plain(sql),
        }
        Ok(Outcome::Done(0))
    }

    fn call(&mut self, function: &ast::Function, sql: &str) -> Result<Outcome, Stop> {
        self.execute(|execution, programs, limits| {
            let mut outside = Outside::new(&programs.library.catalog, programs, sql);
            let call = bind_call(programs, function, &mut outside)?;
            let around = outside.into_routine();
            let rows = run_call(&call, execution, programs, limits, &around, &[])?;
            let columns = call.columns();
            Ok(if columns.is_empty() { Outcome::Done(0) } else { shown(&columns, rows) })
        })
    }

    fn plain(&mut self, sql: &str) -> Result<Outcome, Stop> {
        let statement = albireo_sql::parse_one(sql)?;
        self.execute(|execution, programs, limits| {
            let catalog = &programs.library.catalog;
            let mut outside = Outside::new(catalog, programs, sql);
            if let ast::Statement::Query(query) = &statement
                && !changes_rows(&statement)
            {
                let select = plan::bind_select(catalog, query, &mut outside)?;
                let around = outside.into_routine();
                let rows = with_host(execution, programs, limits, &around, |host| {
                    let host: &mut dyn Host = host;
                    query::select(&select, host, usize::MAX)
                })?;
                return Ok(shown(&select.columns, rows));
            }
            let change = plan::bind_change(catalog, &statement, &mut outside)?;
            let around = outside.into_routine();
            let (count, rows) = with_host(execution, programs, limits, &around, |host| {
                let host: &mut dyn Host = host;
                query::change(&change, host)
            })?;
            let silent = change.returning.is_empty();
            Ok(if silent { Outcome::Done(count) } else { shown(&change.returning, rows) })
        })
    }
}

fn shown(columns: &[(String, Type)], rows: Vec<Vec<Datum>>) -> Outcome {
    let columns = columns.iter().map(|(name, ty)| (name.clone(), ty.to_string())).collect();
    let rows = rows.iter().map(|row| row.iter().map(text_of).collect()).collect();
    Outcome::Rows(columns, rows)
}
