//! Tables in memory, statements run on them, results as text.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, StatementProgress, Value};
use albireo_env::Env;
use albireo_partition::{Abort, Call, Partitions, PartitionsConfig, Route};
use albireo_plpgsql::plan::{bind_change, bind_select};
use albireo_semantics::query::tree::AccessInfo;
use albireo_semantics::query::{ChangePlan, SelectPlan};
use albireo_sql::ast::{Function, Ident, Query, Statement};
use albireo_sql::classify::changes_rows;
use albireo_sql::source::Source;
use albireo_sql::{Catalog, DdlChange, names, plan_ddl};
use albireo_storage::{BlockPool, BudgetPolicy, SnapshotRegistry, Table};

use crate::Stop;
use crate::datum::Datum;
use crate::execution::{Execution, Interrupts, LiveRows};
use crate::expr::{Expr, ExprKind, Names, RoutineId, VariableId, text_of};
use crate::host::Host;
use crate::query;
use crate::tables::{handle, spec_of};
use albireo_semantics::types::{Scalar, Type};

/// A database of a few partitions.
pub(super) struct World {
    pub(super) catalog: Catalog,
    partitions: Partitions,
    interrupts: Interrupts,
    /// How many rows a statement may look at.
    pub(super) rows: u32,
    variables: Vec<(String, Scalar, Datum)>,
    accesses: Vec<AccessInfo>,
}

struct TestHost<'w> {
    execution: Execution<'w>,
    variables: &'w [(String, Scalar, Datum)],
}

struct TestNames<'w> {
    catalog: &'w Catalog,
    variables: &'w [(String, Scalar, Datum)],
    text: &'w str,
}

/// A bound statement.
enum Plan {
    Select(SelectPlan),
    Change(ChangePlan),
}

impl Plan {
    fn run(&self, host: &mut TestHost<'_>) -> Result<String, Stop> {
        match self {
            Self::Select(plan) => query::select(plan, host, usize::MAX).map(|rows| table_text(&rows)),
            Self::Change(plan) => {
                let (count, rows) = query::change(plan, host)?;
                let lines = table_text(&rows);
                Ok(if lines.is_empty() { format!("{count} rows") } else { lines })
            }
        }
    }
}

impl World {
    pub(super) fn new(partitions: u16) -> Self {
        let (env, _) = Env::simulated(1);
        let pool = BlockPool::new(256 << 20);
        let registry = Arc::new(SnapshotRegistry::new(pool, u64::MAX, BudgetPolicy::RefuseNew));
        let config = PartitionsConfig { partitions, ..PartitionsConfig::default() };
        Self {
            catalog: Catalog::new(),
            partitions: Partitions::new(config, registry, &env),
            interrupts: Interrupts::none(env.clock),
            rows: u32::MAX,
            variables: Vec::new(),
            accesses: Vec::new(),
        }
    }

    /// Declares a variable.
    pub(super) fn variable(&mut self, name: &str, ty: Scalar, value: impl Into<Value>) {
        let value = Datum::Value(value.into());
        match self.variables.iter_mut().find(|(other, ..)| other == name) {
            Some(variable) => *variable = (name.to_owned(), ty, value),
            None => self.variables.push((name.to_owned(), ty, value)),
        }
    }

    /// Runs statements; the result of the last: rows line by line, `n rows` for a change, or an error.
    pub(super) fn run(&mut self, text: &str) -> String {
        self.run_all(text, true)
    }

    /// The access paths of a statement: table, index, number of columns bound, `@` for a known
    /// partition, `!` for writes.
    pub(super) fn explain(&mut self, text: &str) -> String {
        self.accesses.clear();
        let result = self.run_all(text, false);
        let shown = self.accesses.iter().map(|access| {
            let index = access.index.as_deref().unwrap_or("-");
            let partition = if access.partition.is_some() { "@" } else { "" };
            let writes = if access.kind.writes() { "!" } else { "" };
            format!("{} {index} {}{partition}{writes}", access.table.name, access.equal.len())
        });
        let lines: Vec<String> = shown.collect();
        if lines.is_empty() { result } else { lines.join(", ") }
    }

    fn run_all(&mut self, text: &str, keeps: bool) -> String {
        let statements = match albireo_sql::parse(text) {
            Ok(statements) => statements,
            Err(error) => return shown(&error),
        };
        let mut result = String::new();
        for statement in &statements {
            result = self.statement(statement, text, keeps).unwrap_or_else(|error| shown(&error));
        }
        result
    }

    /// Runs a statement in a transaction, whose changes are kept or not.
    fn statement(&mut self, statement: &Statement, text: &str, keeps: bool) -> Result<String, SqlError> {
        let mut names = TestNames { catalog: &self.catalog, variables: &self.variables, text };
        let plan = match statement {
            Statement::Query(query) if !changes_rows(statement) => {
                Plan::Select(bind_select(&self.catalog, query, &mut names)?)
            }
            _ if changes_rows(statement) => Plan::Change(bind_change(&self.catalog, statement, &mut names)?),
            _ => return self.define(statement, text),
        };
        let (Plan::Select(SelectPlan { accesses, .. }) | Plan::Change(ChangePlan { accesses, .. })) = &plan;
        self.accesses.extend(accesses.iter().cloned());
        let mut done = None;
        let ended = self.partitions.crossing(&Call::new(Route::Crossing, "test"), |tx| {
            let mut execution = Execution::new(tx, &self.catalog, &self.interrupts);
            execution.allow_rows(self.rows);
            let result = plan.run(&mut TestHost { execution, variables: &self.variables });
            let is_kept = keeps && result.is_ok();
            done = Some(result);
            if is_kept { Ok(()) } else { Err(Abort::raise(SqlState::QUERY_CANCELED, "taken back")) }
        });
        done.unwrap_or_else(|| panic!("{ended:?}")).map_err(stopped)
    }

    fn define(&mut self, statement: &Statement, text: &str) -> Result<String, SqlError> {
        let plan = plan_ddl(&self.catalog, statement, text)?;
        self.catalog = self.catalog.with(&plan.changes);
        let catalog = &self.catalog;
        self.partitions.exclusively(|all| {
            for change in &plan.changes {
                match change {
                    DdlChange::CreateTable(def) => {
                        let spec = spec_of(def);
                        let layout = Table::layout_of(&spec).unwrap();
                        all.create_table(spec, &layout);
                    }
                    DdlChange::CreateIndex { table, .. } => {
                        let def = catalog.table(*table).unwrap();
                        let progress = StatementProgress::default();
                        all.create_index(handle(def), spec_of(def), &progress).unwrap();
                    }
                    _ => {}
                }
            }
        });
        Ok(plan.tag.to_owned())
    }

    /// Names and types of a query's columns.
    pub(super) fn columns(&self, text: &str) -> String {
        let mut names = TestNames { catalog: &self.catalog, variables: &self.variables, text };
        let statements = albireo_sql::parse(text).unwrap();
        let Statement::Query(query) = &statements[0] else { return String::new() };
        let plan = match bind_select(&self.catalog, query, &mut names) {
            Ok(plan) => plan,
            Err(error) => return shown(&error),
        };
        let columns: Vec<String> = plan.columns.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
        columns.join(" | ")
    }
}

fn stopped(stop: Stop) -> SqlError {
    match stop {
        Stop::Error(error) | Stop::Fatal(error) => *error,
        Stop::Crossing | Stop::Locked => SqlError::new(SqlState::INTERNAL_ERROR, "crossing"),
    }
}

fn shown(error: &SqlError) -> String {
    let position = error.position().map(|at| format!(" at {at}")).unwrap_or_default();
    format!("{}: {}{position}", error.state(), error.message())
}

fn table_text(rows: &[Vec<Datum>]) -> String {
    let line = |row: &Vec<Datum>| {
        let values = row.iter().map(|value| text_of(value).unwrap_or_else(|| "NULL".to_owned()));
        values.collect::<Vec<_>>().join(" | ")
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

impl Host for TestHost<'_> {
    fn live(&mut self) -> LiveRows<'_> {
        self.execution.live()
    }

    fn variable(&self, variable: VariableId) -> &Datum {
        &self.variables[variable.0 as usize].2
    }

    fn call(&mut self, _: RoutineId, _: Vec<Datum>) -> Result<Datum, Stop> {
        Ok(Datum::NULL)
    }

    fn take_memory(&mut self, _: usize) -> Result<(), Stop> {
        Ok(())
    }
}

impl Names for TestNames<'_> {
    fn name(&mut self, parts: &[Ident]) -> Result<Expr, SqlError> {
        let [name] = parts else {
            let message = format!("missing FROM-clause entry for table \"{}\"", parts[0].value);
            let error = SqlError::new(SqlState::UNDEFINED_TABLE, message);
            return Err(self.source().locate(error, parts[0].span));
        };
        let folded = names::fold(name);
        match self.variables.iter().position(|(other, ..)| *other == folded) {
            Some(at) => {
                let ty = Type::Scalar(self.variables[at].1);
                Ok(Expr { kind: ExprKind::Variable(VariableId(at as u32)), ty })
            }
            None => {
                let message = format!("column \"{folded}\" does not exist");
                let error = SqlError::new(SqlState::UNDEFINED_COLUMN, message);
                Err(self.source().locate(error, name.span))
            }
        }
    }

    fn parameter(&mut self, number: usize) -> Result<Expr, SqlError> {
        Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter ${number}")))
    }

    fn call(&mut self, _: &Function) -> Result<Option<Expr>, SqlError> {
        Ok(None)
    }

    fn conflict(&mut self, parts: &[Ident]) -> Result<Option<Expr>, SqlError> {
        match (parts, self.name(parts)) {
            ([name], Ok(_)) => {
                let message = format!("column reference \"{}\" is ambiguous", name.value);
                Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, message))
            }
            _ => Ok(None),
        }
    }

    fn query(&mut self, query: &Query) -> Result<SelectPlan, SqlError> {
        bind_select(self.catalog, query, self)
    }

    fn source(&self) -> Source<'_> {
        Source::new(self.text)
    }
}
