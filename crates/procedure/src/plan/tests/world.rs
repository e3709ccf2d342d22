//! Tables in memory, statements run on them, results as text.

use std::collections::BTreeMap;
use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlState, StatementProgress, TableId, Tid, Value};
use albireo_sql::ast::{Function, Ident, Query, Statement};
use albireo_sql::classify::changes_rows;
use albireo_sql::source::Source;
use albireo_sql::{Catalog, DdlChange, IndexKind, Layout, TableDef, names, plan_ddl};
use albireo_storage::{
    BlockPool, BudgetPolicy, CellShape, Cells, ColumnSpec, FillShape, Filled, IndexSpec, LayoutChoice,
    Placement, RowAddress, Savepoint, SnapshotRegistry, Table, TableError, TableSpec, UndoLog, partition_of,
};

use crate::datum::Datum;
use crate::expr::{Expr, ExprKind, Names, RoutineId, VariableId, text_of};
use crate::host::Host;
use crate::plan::tree::AccessInfo;
use crate::plan::{self, SelectPlan, bind_change, bind_select};
use crate::store::{RaiseLevel, Site, Stop, Store, TableRef};
use crate::types::{Scalar, Type};

/// A database of a few partitions.
pub(super) struct World {
    pub(super) catalog: Catalog,
    pub(super) memory: Memory,
    variables: Vec<(String, Scalar, Datum)>,
    accesses: Vec<AccessInfo>,
}

/// Its rows.
pub(super) struct Memory {
    sites: u16,
    registry: Arc<SnapshotRegistry>,
    tables: BTreeMap<(u16, TableId), Table>,
    undo: UndoLog,
    /// How many values were asked of rows since this was last set to zero.
    pub(super) interrupts: usize,
}

struct TestHost<'w> {
    memory: &'w mut Memory,
    variables: &'w [(String, Scalar, Datum)],
}

struct TestNames<'w> {
    catalog: &'w Catalog,
    variables: &'w [(String, Scalar, Datum)],
    text: &'w str,
}

impl World {
    pub(super) fn new(sites: u16) -> Self {
        let pool = BlockPool::new(256 << 20);
        let registry = Arc::new(SnapshotRegistry::new(pool, u64::MAX, BudgetPolicy::RefuseNew));
        let memory =
            Memory { sites, registry, tables: BTreeMap::new(), undo: UndoLog::default(), interrupts: 0 };
        Self { catalog: Catalog::new(), memory, variables: Vec::new(), accesses: Vec::new() }
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
        let statements = match albireo_sql::parse(text) {
            Ok(statements) => statements,
            Err(error) => return shown(&error),
        };
        let mut result = String::new();
        for statement in &statements {
            let before = self.memory.savepoint();
            result = match self.statement(statement, text) {
                Ok(result) => result,
                Err(error) => {
                    self.memory.roll_back_to(before);
                    shown(&error)
                }
            };
        }
        result
    }

    /// The access paths of a statement: table, index, number of columns bound, `@` for a known
    /// partition, `!` for writes.
    pub(super) fn explain(&mut self, text: &str) -> String {
        self.accesses.clear();
        let before = self.memory.savepoint();
        let result = self.run(text);
        self.memory.roll_back_to(before);
        let shown = self.accesses.iter().map(|access| {
            let index = access.index.as_deref().unwrap_or("-");
            let partition = if access.partition.is_some() { "@" } else { "" };
            let writes = if access.kind.writes() { "!" } else { "" };
            format!("{} {index} {}{partition}{writes}", access.table.name, access.equal.len())
        });
        let lines: Vec<String> = shown.collect();
        if lines.is_empty() { result } else { lines.join(", ") }
    }

    fn statement(&mut self, statement: &Statement, text: &str) -> Result<String, SqlError> {
        let mut names = TestNames { catalog: &self.catalog, variables: &self.variables, text };
        match statement {
            Statement::Query(query) if !changes_rows(statement) => {
                let plan = bind_select(&self.catalog, query, &mut names)?;
                self.accesses.extend(plan.accesses.iter().cloned());
                let mut host = TestHost { memory: &mut self.memory, variables: &self.variables };
                let rows = plan::select(&plan, &mut host, usize::MAX).map_err(stopped)?;
                Ok(table_text(&rows))
            }
            _ if changes_rows(statement) => {
                let plan = bind_change(&self.catalog, statement, &mut names)?;
                self.accesses.extend(plan.accesses.iter().cloned());
                let mut host = TestHost { memory: &mut self.memory, variables: &self.variables };
                let (count, rows) = plan::change(&plan, &mut host).map_err(stopped)?;
                let lines = table_text(&rows);
                Ok(if lines.is_empty() { format!("{count} rows") } else { lines })
            }
            _ => {
                let plan = plan_ddl(&self.catalog, statement, text)?;
                self.catalog = self.catalog.with(&plan.changes);
                for change in &plan.changes {
                    self.memory.define(&self.catalog, change);
                }
                Ok(plan.tag.to_owned())
            }
        }
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
        Stop::Crossing => SqlError::new(SqlState::INTERNAL_ERROR, "crossing"),
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

impl Memory {
    fn define(&mut self, catalog: &Catalog, change: &DdlChange) {
        match change {
            DdlChange::CreateTable(def) => {
                let spec = Arc::new(spec_of(def));
                let layout = Table::layout_of(&spec).unwrap();
                for site in 0..self.sites {
                    let partitions = self.sites;
                    let placement =
                        def.partition_by.map(|column| Placement { column, partition: site, partitions });
                    let table = Table::new(Arc::clone(&spec), Arc::clone(&layout), placement, &self.registry);
                    self.tables.insert((site, def.id), table);
                }
            }
            DdlChange::CreateIndex { table, .. } => {
                let spec = Arc::new(spec_of(catalog.table(*table).unwrap()));
                for site in 0..self.sites {
                    let (table, progress) =
                        (self.tables.get_mut(&(site, *table)), StatementProgress::default());
                    table.unwrap().add_index(Arc::clone(&spec), &progress).unwrap();
                }
            }
            _ => {}
        }
    }

    fn table_mut(&mut self, site: Site, table: TableId) -> (&mut Table, &mut UndoLog) {
        self.undo.set_site(site.0);
        (self.tables.get_mut(&(site.0, table)).unwrap(), &mut self.undo)
    }

    fn place(&self, table: TableId, values: &[Value]) -> Site {
        let spec = self.tables[&(0, table)].spec();
        let column = spec.partition_by.map(|column| partition_of(&values[column.index()], self.sites));
        Site(column.unwrap_or(0))
    }

    fn error(&self, table: TableId, error: TableError) -> Stop {
        let spec = self.tables[&(0, table)].spec();
        let (state, message) = match error {
            TableError::Duplicate { index, .. } => {
                (SqlState::UNIQUE_VIOLATION, spec.indexes[index.index()].name.clone())
            }
            TableError::NotNull { column, .. } => {
                (SqlState::NOT_NULL_VIOLATION, spec.columns[column.index()].name.clone())
            }
            other => (SqlState::INTERNAL_ERROR, other.to_string()),
        };
        SqlError::new(state, message).into()
    }
}

fn spec_of(def: &TableDef) -> TableSpec {
    let column =
        |c: &albireo_sql::ColumnDef| ColumnSpec { name: c.name.clone(), ty: c.ty, nullable: c.nullable };
    let index = |index: &albireo_sql::IndexDef| IndexSpec {
        name: index.name.clone(),
        columns: index.columns.clone(),
        unique: index.unique,
        kind: match index.kind {
            IndexKind::Hash => albireo_storage::IndexKind::Hash,
            IndexKind::Ordered => albireo_storage::IndexKind::Ordered,
        },
    };
    TableSpec {
        id: def.id,
        name: def.name.clone(),
        columns: def.columns.iter().map(column).collect(),
        layout: match &def.layout {
            Layout::Column => LayoutChoice::Columns,
            Layout::Row => LayoutChoice::Rows,
            Layout::Groups(groups) => LayoutChoice::Groups(groups.clone()),
        },
        indexes: def.indexes.iter().map(index).collect(),
        partition_by: def.partition_by,
        checks: Vec::new(),
    }
}

impl Store for Memory {
    fn now(&mut self) -> i64 {
        0
    }

    fn sites(&self, _: TableId) -> Vec<Site> {
        (0..self.sites).map(Site).collect()
    }

    fn site_of(&self, _: TableId, key: &Value) -> Result<Site, Stop> {
        Ok(Site(partition_of(key, self.sites)))
    }

    fn all_sites(&self, table: TableId) -> Result<Vec<Site>, Stop> {
        Ok(self.sites(table))
    }

    fn table(&self, site: Site, table: TableId) -> &Table {
        &self.tables[&(site.0, table)]
    }

    fn insert(&mut self, table: TableId, values: &[Value]) -> Result<(Site, Tid), Stop> {
        let site = self.place(table, values);
        let (rows, undo) = self.table_mut(site, table);
        match rows.insert_values(undo, values) {
            Ok(tid) => Ok((site, tid)),
            Err(error) => Err(self.error(table, error)),
        }
    }

    fn update(
        &mut self,
        site: Site,
        table: TableId,
        tid: Tid,
        values: &[(ColumnId, Value)],
    ) -> Result<(Site, Tid), Stop> {
        let mut row = self.table(site, table).row(tid);
        for (column, value) in values {
            row[column.index()] = value.clone();
        }
        let target = self.place(table, &row);
        if target != site {
            self.delete(site, table, tid)?;
            return self.insert(table, &row);
        }
        let (rows, undo) = self.table_mut(site, table);
        match rows.update_values(undo, tid, values) {
            Ok(()) => Ok((site, tid)),
            Err(error) => Err(self.error(table, error)),
        }
    }

    fn delete(&mut self, site: Site, table: TableId, tid: Tid) -> Result<(), Stop> {
        let (rows, undo) = self.table_mut(site, table);
        rows.delete(undo, tid).map_err(|error| self.error(table, error))
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
            let table = self.tables.get_mut(&(record.site(), TableId(record.table()))).unwrap();
            table.undo(&self.undo, &record);
        }
    }

    fn notice(&mut self, _: RaiseLevel, _: &str, _: Option<&str>, _: Option<&str>) {}

    fn check_interrupt(&mut self) -> Result<(), Stop> {
        self.interrupts += 1;
        Ok(())
    }

    fn home(&self) -> Site {
        Site(0)
    }

    fn site_of_key(&self, key: i64) -> Result<Site, Stop> {
        Ok(Site(key.rem_euclid(i64::from(self.sites)) as u16))
    }

    fn table_at(&self, site: Site, table: TableRef) -> &Table {
        self.table(site, table.id)
    }

    fn insert_cells(
        &mut self,
        site: Site,
        table: TableRef,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<Tid, Stop> {
        let (rows, undo) = self.table_mut(site, table.id);
        rows.insert_cells(undo, shape, cells).map_err(|error| self.error(table.id, error))
    }

    fn vacant_row(&mut self, site: Site, table: TableRef) -> Result<(Tid, RowAddress), Stop> {
        let (rows, _) = self.table_mut(site, table.id);
        rows.vacant_row().map_err(|error| self.error(table.id, error))
    }

    fn enter_filled(
        &mut self,
        site: Site,
        table: TableRef,
        shape: &FillShape,
        filled: Filled<'_>,
    ) -> Result<(), Stop> {
        let (rows, undo) = self.table_mut(site, table.id);
        let entered = rows.enter_filled(undo, shape, filled);
        entered.map(drop).map_err(|error| self.error(table.id, error))
    }

    fn overwrite(
        &mut self,
        site: Site,
        table: TableRef,
        tid: Tid,
        shape: &CellShape,
        nulls: u64,
    ) -> Result<Option<RowAddress>, Stop> {
        let (rows, undo) = self.table_mut(site, table.id);
        rows.overwrite(undo, tid, shape, nulls).map_err(|error| self.error(table.id, error))
    }

    fn update_cells(
        &mut self,
        site: Site,
        table: TableRef,
        tid: Tid,
        shape: &CellShape,
        cells: Cells<'_>,
    ) -> Result<(), Stop> {
        let (rows, undo) = self.table_mut(site, table.id);
        rows.update_cells(undo, tid, shape, cells).map_err(|error| self.error(table.id, error))
    }

    fn delete_at(&mut self, site: Site, table: TableRef, tid: Tid) -> Result<(), Stop> {
        self.delete(site, table.id, tid)
    }
}

impl Host for TestHost<'_> {
    fn store(&mut self) -> &mut dyn Store {
        self.memory
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
