//! INSERT, UPDATE, DELETE and MERGE whose rows a query on a snapshot finds: what `statements` leaves over.
//!
//! The query is made of the bound change, the addresses of the table's rows among its columns. An INSERT of a
//! query's rows runs the query and lays the rows down before it owns the partitions (`bulk`); an UPDATE or DELETE
//! that looks at one row at a time is worked out beside the table (`aside`), and so are the rows of all others, as
//! long as what was read stays as it was (`found`). Where others change that too often, the query runs over all
//! partitions, on a snapshot of that very moment, and the changes follow before anyone else gets in, so the statement
//! is serializable; that stops the executors while the query runs. What depends on each row as it is changed, ON
//! CONFLICT, WHEN of MERGE, what calls routines, and RETURNING, is evaluated as on live rows, by the same code
//! (`albireo_execute::query`).

mod aside;
pub(crate) mod bulk;
mod explain;
mod found;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use albireo_base::{PartitionId, SqlError, SqlState, Tid, Value};
use albireo_execute::query::{self, FoundRow, FoundRows};
use albireo_execute::{Executables, Execution, Host, Limits as BodyLimits, Notice, with_parameters};
use albireo_olap::relation::{Relations, Snapshot};
use albireo_olap::{CancelToken, Prepared, RunOptions};
use albireo_partition::{Abort, Call, CallError, Route, Transaction};
use albireo_plpgsql::plan;
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{ColumnRef, given};
use albireo_semantics::query::ADDRESS;
use albireo_semantics::query::tree::{Body, Change};
use albireo_semantics::query::{ChangePlan, SelectPlan};
use albireo_semantics::types::{Scalar, Type};
use albireo_sql::ast::Statement;
use albireo_storage::{BudgetSpent, DatabaseSnapshot, with_prepass};
use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::Int64Type;

use crate::adapters::{AddressedRelations, AddressedSnapshot, scope_of, value_at};
use crate::query::options;
use crate::routines::Limits;
use crate::settings::Settings;
use crate::statements::{Bound, Judged, Parsed, Ran};
use crate::{Database, Outcome, QueryResult};

/// How often the rows of a change are found while others may change what it reads.
pub(crate) const TRIES: usize = 2;
/// How many values of VALUES one query computes at most: each is a join.
const MOST_CELLS: usize = 16;

/// A change whose rows queries find, or make.
pub(crate) struct Queried<'a> {
    database: &'a Database,
    bound: &'a Bound,
    /// The change, of which what calls routines is left for the rows that the queries give.
    change: Arc<Change>,
    queries: Vec<RowQuery>,
    /// What is done with their rows.
    rest: ChangePlan,
    /// The columns of other relations that the rows carry.
    carried: Vec<ColumnRef>,
    /// The statement's text, and its parameters.
    text: &'a str,
    values: &'a [Value],
    settings: &'a Settings,
    cancel: &'a CancelToken,
    /// Its time, of which each try takes a part.
    limits: &'a Limits,
}

/// What the queries gave, and the snapshot that showed it.
pub(crate) type Seen = (Arc<DatabaseSnapshot>, Vec<QueryResult>);

/// A query for rows.
struct RowQuery {
    prepared: Arc<Prepared>,
    /// The types of its columns.
    types: Vec<Type>,
    /// The values of VALUES that it computes.
    cells: Vec<(usize, usize)>,
}

impl Database {
    /// Runs a change by a query on a snapshot; what has no plan there runs on live rows, however many it reads.
    pub(crate) fn run_queried(
        &self,
        statement: &Statement,
        (text, values): (&str, &[Value]),
        settings: &Settings,
        cancel: &CancelToken,
        limits: &Limits,
    ) -> Result<Outcome, SqlError> {
        let generation = self.inner.definitions.read();
        let entry = self.entry(Parsed::Statement(statement), text, values, *generation);
        let bound = entry.bound.as_ref().map_err(Clone::clone)?;
        match Queried::new(self, bound, (text, values), settings, cancel, limits) {
            Ok(queried) => queried.run(),
            Err(error) if error.state() == SqlState::FEATURE_NOT_SUPPORTED => {
                let live = entry.live(self.inner.partitions.count()).map_err(|_| error)?;
                let arguments = bound.arguments(values)?;
                self.run_live(bound, live, &arguments, Judged::Runs, limits).done()
            }
            Err(error) => Err(error),
        }
    }
}

impl Database {
    /// Makes a change of the redo log again; how many rows it concerned.
    pub(crate) fn change_again(&self, text: &str, values: &[Value]) -> Result<u64, SqlError> {
        let statement = albireo_sql::parse_one(text)?;
        let (settings, cancel) = (Settings::default(), CancelToken::new());
        let generation = self.inner.definitions.read();
        let entry = self.entry(Parsed::Statement(&statement), text, values, *generation);
        let bound = entry.bound.as_ref().map_err(Clone::clone)?;
        let limits = &self.inner.unlimited;
        let queried = Queried::new(self, bound, (text, values), &settings, &cancel, limits)?;
        queried.make(&bound.arguments(values)?).map(|ran| ran.count)
    }
}

impl<'a> Queried<'a> {
    /// Plans the queries.
    ///
    /// # Errors
    /// 0A000 for what has no plan over a snapshot.
    pub(crate) fn new(
        database: &'a Database,
        bound: &'a Bound,
        (text, values): (&'a str, &'a [Value]),
        settings: &'a Settings,
        cancel: &'a CancelToken,
        limits: &'a Limits,
    ) -> Result<Self, SqlError> {
        let Some(plan) = bound.change() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a query as a change"));
        };
        let change = match bound.calls_routines() {
            true => Arc::new(plan.change.without_early_calls().ok_or_else(needs_live_rows)?),
            false => Arc::clone(&plan.change),
        };
        let catalog = &bound.library.catalog;
        let parameters = bound.parameters();
        let prepare = |query: &SelectPlan, addressed, cells| {
            let relations: Arc<dyn Relations> =
                Arc::new(AddressedRelations { catalog: Arc::clone(catalog), addressed });
            let prepared = database.inner.olap.prepare(&relations, query, &parameters)?;
            let types = query.columns.iter().map(|(_, ty)| ty.clone()).collect();
            Ok::<_, SqlError>(RowQuery { prepared, types, cells })
        };
        let mut carried = Vec::new();
        let mut queries = Vec::new();
        match (&*change, change.finding()) {
            (_, Some(finding)) => {
                queries.push(prepare(&finding.plan, Some(change.table().id), Vec::new())?);
                carried = finding.carried;
            }
            (Change::Insert(insert), None) if matches!(insert.source.body, Body::Values(_)) => {
                for cells in insert.cells().chunks(MOST_CELLS) {
                    queries.push(prepare(&insert.cells_query(cells), None, cells.to_vec())?);
                }
            }
            (Change::Insert(insert), None) => queries.push(prepare(&insert.rows(), None, Vec::new())?),
            (_, None) => {}
        }
        let rest = plan::rest_of(ChangePlan { change: Arc::clone(&change), ..plan.clone() })?;
        Ok(Self { database, bound, change, queries, rest, carried, text, values, settings, cancel, limits })
    }

    fn run(&self) -> Result<Outcome, SqlError> {
        let start = self.database.inner.env.clock.now();
        let arguments = self.bound.arguments(self.values)?;
        let ran = match (&*self.change, self.queries.as_slice()) {
            (Change::Insert(insert), [query])
                if query.cells.is_empty() && insert.conflict.is_none() && insert.returning.is_empty() =>
            {
                self.insert_query(insert, query, &arguments)?
            }
            _ => self.make_beside(&arguments)?,
        };
        let execution = self.database.inner.env.clock.now().saturating_sub(start);
        self.bound.outcome(ran, std::time::Duration::from_nanos(execution))
    }

    /// Makes the change beside the table, if it can be made there; else over all partitions.
    fn make_beside(&self, arguments: &[Datum]) -> Result<Ran, SqlError> {
        let ran = match self.run_aside(arguments)? {
            None => self.run_found(arguments)?,
            ran => ran,
        };
        ran.map_or_else(|| self.make(arguments), Ok)
    }

    /// Makes the change over all partitions.
    fn make(&self, arguments: &[Datum]) -> Result<Ran, SqlError> {
        let partitions = &self.database.inner.partitions;
        let (call, scope) = (self.call(), self.scope());
        let ran = partitions.with_rows(|| {
            let ran = partitions.crossing_with_snapshot(&call, &scope, |tx, snapshot| {
                self.make_with(tx, snapshot, arguments)
            });
            let spent =
                |spent: BudgetSpent| CallError::Aborted(Abort::Raised(crate::errors::session(spent.into())));
            ran.unwrap_or_else(|error| Err(spent(error)))
        });
        ran.map_err(|error| self.database.explain_call(error))
    }

    /// Makes the change in a transaction over all partitions whose rows the snapshot shows.
    pub(crate) fn make_with(
        &self,
        tx: &mut Transaction,
        snapshot: Arc<DatabaseSnapshot>,
        arguments: &[Datum],
    ) -> Result<Ran, Abort> {
        let results = self.rows_of_all(&snapshot)?;
        // What nobody sees any more need not be copied when it is written.
        drop(snapshot);
        self.make_of(tx, &results, arguments)
    }

    /// Makes the change of the rows that the queries gave.
    pub(crate) fn make_of(
        &self,
        tx: &mut Transaction,
        results: &[QueryResult],
        arguments: &[Datum],
    ) -> Result<Ran, Abort> {
        let ran = self.on_live_rows(tx, arguments, |host| self.apply(host, results));
        ran.map(|((count, rows), notices)| Ran { count, rows, notices })
    }

    /// Runs `act` as the statement, on the rows as they are; what it told the client besides.
    fn on_live_rows<R>(
        &self,
        tx: &mut Transaction,
        arguments: &[Datum],
        act: impl FnOnce(&mut dyn Host) -> Result<R, Stop>,
    ) -> Result<(R, Vec<Notice>), Abort> {
        let mut execution = Execution::new(tx, &self.bound.library.catalog, &self.limits.interrupts);
        let library: &dyn Executables = self.bound.library.as_ref();
        let memory = BodyLimits { memory_bytes: self.memory_bytes(), ..BodyLimits::default() };
        let around = &self.bound.around;
        let done = with_prepass(|| {
            with_parameters(&mut execution, library, memory, around, arguments, |host| act(host))
        });
        match done {
            Ok(result) => Ok((result, execution.take_notices())),
            Err(Stop::Crossing) => Err(Abort::Crossing),
            Err(Stop::Locked) => Err(Abort::Locked),
            Err(Stop::Error(error) | Stop::Fatal(error)) => Err(Abort::Raised(*error)),
        }
    }

    /// The first word.
    pub(crate) fn verb(&self) -> &'static str {
        self.change.verb()
    }

    /// Does with the rows of the queries what the statement says.
    fn apply(&self, host: &mut dyn Host, results: &[QueryResult]) -> Result<(u64, Vec<Vec<Datum>>), Stop> {
        if let Change::Insert(insert) = &*self.change
            && matches!(insert.source.body, Body::Values(_))
        {
            let mut insert = insert.clone();
            for (query, result) in self.queries.iter().zip(results) {
                let row = result.batches().first().map(|batch| query.values(result, batch, 0, 0));
                insert.put(&query.cells, row.transpose()?.unwrap_or_default());
            }
            if !self.change.asks_late() {
                insert.source.ctes.clear();
            }
            let change = Arc::new(Change::Insert(insert));
            return query::change(&plan::planned(ChangePlan { change, ..self.rest.clone() })?, host);
        }
        let [query] = self.queries.as_slice() else { return Ok((0, Vec::new())) };
        let [result] = results else { return Ok((0, Vec::new())) };
        let (addressed, sorted) = match &*self.change {
            Change::Insert(_) => (0, false),
            Change::Merge(_) => (ADDRESS, false),
            Change::Update(_) | Change::Delete(_) => (ADDRESS, true),
        };
        let places = places_of(result, sorted);
        let rows = &mut places.into_iter().map(|place| query.found(result, place, addressed));
        query::apply(&self.rest, host, FoundRows { carried: &self.carried, rows })
    }

    /// The bytes that rows of RETURNING may have.
    fn memory_bytes(&self) -> usize {
        let all = self.database.inner.olap.config().query_memory_limit_bytes;
        self.settings.query_memory.unwrap_or(all).max(BodyLimits::default().memory_bytes)
    }

    /// What the queries give on a snapshot.
    pub(crate) fn rows_of_all(&self, snapshot: &Arc<DatabaseSnapshot>) -> Result<Vec<QueryResult>, SqlError> {
        self.queries.iter().map(|query| self.rows_of(query, snapshot)).collect()
    }

    fn rows_of(&self, query: &RowQuery, snapshot: &Arc<DatabaseSnapshot>) -> Result<QueryResult, SqlError> {
        self.limits.check()?;
        let snapshot: Arc<dyn Snapshot> = Arc::new(AddressedSnapshot(Arc::clone(snapshot)));
        let olap = &self.database.inner.olap;
        crate::query::result(olap.run(&query.prepared, self.values, &snapshot, self.options())?)
    }

    /// How its queries run.
    fn options(&self) -> RunOptions {
        RunOptions { timeout: self.limits.left(), ..options(self.settings, self.cancel) }
    }

    fn call(&self) -> Call<'static> {
        Call { synchronous: self.settings.synchronous, ..Call::new(Route::Crossing, self.change.verb()) }
    }

    /// What the queries read.
    pub(crate) fn scope(&self) -> albireo_storage::SnapshotScope {
        let queries: Vec<Arc<Prepared>> =
            self.queries.iter().map(|query| Arc::clone(&query.prepared)).collect();
        scope_of(&queries)
    }
}

/// The error of a change whose rows are not found on a snapshot, because finding them calls routines.
fn needs_live_rows() -> SqlError {
    SqlError::unsupported("a routine in a query over a snapshot")
}

/// The rows of a result by batch and position; `sorted`: as a scan would come by those of the table.
fn places_of(result: &QueryResult, sorted: bool) -> Vec<(usize, usize)> {
    let mut places: Vec<(usize, usize)> = Vec::with_capacity(result.row_count());
    let batches = result.batches();
    for (number, batch) in batches.iter().enumerate() {
        places.extend((0..batch.num_rows()).map(|row| (number, row)));
    }
    if sorted {
        places.sort_by_cached_key(|(batch, row)| address(&batches[*batch], *row));
    }
    places
}

impl RowQuery {
    /// A row of a result, of which so many columns say where the table's row is.
    fn found(
        &self,
        result: &QueryResult,
        (batch, row): (usize, usize),
        addressed: usize,
    ) -> Result<FoundRow, SqlError> {
        let batch = &result.batches()[batch];
        let at = if addressed > 0 { address(batch, row) } else { None };
        Ok(FoundRow { at, values: self.values(result, batch, row, addressed)? })
    }

    /// The values of a row from column `first` on.
    fn values(
        &self,
        result: &QueryResult,
        batch: &RecordBatch,
        row: usize,
        first: usize,
    ) -> Result<Vec<Datum>, SqlError> {
        let columns = batch.columns().iter().zip(&*result.columns).zip(&self.types).skip(first);
        let value = |((array, column), ty): ((_, &crate::Column), &Type)| {
            let value = value_at(array, row, column.ty);
            match ty {
                // Results have it as text.
                Type::Scalar(Scalar::Interval) => given(&value, ty),
                _ => Ok(value.into()),
            }
        };
        columns.map(value).collect()
    }
}

/// Where the table's row is that a row of a result is about, if there is one.
fn address(batch: &RecordBatch, row: usize) -> Option<(PartitionId, Tid)> {
    let (partition, tid) =
        (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
    let is = partition.is_valid(row);
    is.then(|| (PartitionId(partition.value(row) as u16), Tid(tid.value(row) as u64)))
}
