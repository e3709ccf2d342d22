//! INSERT ... SELECT: rows of a query into a table, column by column.
//!
//! The query runs on a snapshot, and its rows are laid down and entered into indexes while transactions go on
//! ([`Bringing`]). Then all partitions are owned. If what the query read is still the same, the rows are there: the
//! statement is serializable, as if it had run at that moment. If it is not, the query runs again; after
//! [`TRIES_AHEAD`] runs, or if the budget of snapshots ended one, it runs with the partitions owned, so that it ends
//! however often others write. An error that a run meets stands: it is what the statement would have met had it run at the
//! moment of its snapshot, and it changes nothing.
//! Only if there is no memory for the rows beside the table, they are inserted one by one.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, StatementProgress, arrow_type};
use albireo_olap::relation::Snapshot;
use albireo_partition::{ArrivalError, Bringing, BulkInsert, Call};
use albireo_semantics::datum::Datum;
use albireo_semantics::query::tree::Insert;
use albireo_sql::TableDef;
use albireo_storage::{BudgetSpent, DatabaseSnapshot, RowFault, TableError};
use arrow::array::{ArrayRef, AsArray, RecordBatch, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type, SchemaRef};

use super::{Queried, RowQuery};
use crate::Database;
use crate::adapters::AddressedSnapshot;
use crate::arrays;
use crate::ddl::handle;
use crate::meanwhile::Moment;
use crate::routines::Limits;
use crate::statements::Ran;

/// How often a query runs while others may change what it reads, before it runs alone.
const TRIES_AHEAD: usize = 2;

impl Queried<'_> {
    /// Inserts the rows of a query.
    pub(super) fn insert_query(
        &self,
        insert: &Insert,
        query: &RowQuery,
        arguments: &[Datum],
    ) -> Result<Ran, SqlError> {
        let filling = Filling::new(insert);
        let mut fault = None;
        let inserted = self.append_query(&insert.table, &filling, query, &mut fault);
        match (inserted, fault) {
            (Err(_), Some(RowFault { error: TableError::OutOfMemory(_), .. })) => self.make(arguments),
            (Err(_), Some(fault)) => Err(self.database.explain_fault(&fault)),
            (inserted, _) => inserted.map(|count| Ran { count, rows: Vec::new(), notices: Vec::new() }),
        }
    }

    /// Lays the rows of a query down and appends them. What is wrong with one of them is left in `fault`.
    fn append_query(
        &self,
        table: &TableDef,
        filling: &Filling<'_>,
        query: &RowQuery,
        fault: &mut Option<RowFault>,
    ) -> Result<u64, SqlError> {
        let partitions = &self.database.inner.partitions;
        let (scope, call) = (self.scope(), self.call());
        let spent = |spent: BudgetSpent| crate::errors::session(spent.into());
        let dropped = || SqlError::new(SqlState::UNDEFINED_TABLE, "the table was dropped");
        let begin = || partitions.bulk_insert(handle(table)).ok_or_else(dropped);
        for _ in 0..TRIES_AHEAD {
            let (mut rows, seen) = (begin()?, partitions.snapshot(&scope).map_err(spent)?);
            match self.fill(&mut rows, filling, query, &seen, fault) {
                Err(_) if fault.is_none() && seen.is_cancelled() && !self.cancel.is_cancelled() => break,
                filled => filled?,
            }
            self.database.inner.meanwhile.happens(Moment::Before);
            let progress = StatementProgress::default();
            if let Some(rows) = self.database.bring(&call, rows, Some(seen), &progress, self.limits, fault)? {
                return Ok(rows);
            }
        }
        let mut rows = begin()?;
        let inserted = partitions.crossing_with_snapshot(&call, &scope, |tx, now| {
            self.fill(&mut rows, filling, query, &now, fault)?;
            drop(now);
            tx.append(rows, &StatementProgress::default(), fault)
        });
        inserted.map_err(spent)?.map_err(|error| self.database.explain_call(error))
    }

    /// Runs the query, lays its rows down, and enters them into indexes as far as that can be done ahead.
    fn fill(
        &self,
        rows: &mut BulkInsert,
        filling: &Filling<'_>,
        query: &RowQuery,
        snapshot: &Arc<DatabaseSnapshot>,
        fault: &mut Option<RowFault>,
    ) -> Result<(), SqlError> {
        let snapshot: Arc<dyn Snapshot> = Arc::new(AddressedSnapshot(Arc::clone(snapshot)));
        let olap = &self.database.inner.olap;
        let mut stream = olap.run_stream(&query.prepared, self.values, &snapshot, self.options());
        while let Some(batch) = stream.next_blocking() {
            let batch = filling.batch(&batch?)?;
            if let Err(found) = rows.push(&batch) {
                let error = self.database.explain_fault(&found);
                *fault = Some(found);
                return Err(error);
            }
            albireo_env::give_way();
        }
        rows.index(&StatementProgress::default());
        Ok(())
    }
}

impl Database {
    /// Makes rows that were collected rows of their table; `None`: what was `seen` has changed. What is wrong with one of
    /// them is left in `fault`.
    pub(crate) fn bring(
        &self,
        call: &Call<'_>,
        rows: BulkInsert,
        seen: Option<Arc<DatabaseSnapshot>>,
        progress: &StatementProgress,
        limits: &Limits,
        fault: &mut Option<RowFault>,
    ) -> Result<Option<u64>, SqlError> {
        let goes_on = || {
            self.inner.meanwhile.happens(Moment::Before);
            limits.check().is_ok()
        };
        let number = self.inner.env.seeds.next_seed();
        let bringing = Bringing { seen, progress, goes_on: &goes_on, number };
        self.inner.partitions.bring(call, rows, bringing).map_err(|error| match error {
            ArrivalError::Row(row) => {
                let error = self.explain_fault(&row);
                *fault = Some(row);
                error
            }
            ArrivalError::Call(error) => self.explain_call(error),
            ArrivalError::Dropped => SqlError::new(SqlState::UNDEFINED_TABLE, "the table was dropped"),
            ArrivalError::Ended => limits.interrupts.ended(),
        })
    }
}

/// Where the columns of a table get their values from.
struct Filling<'a> {
    table: &'a TableDef,
    /// The columns of the result; NULL without.
    sources: Vec<Option<usize>>,
    schema: SchemaRef,
}

impl<'a> Filling<'a> {
    fn new(insert: &'a Insert) -> Self {
        let mut sources = vec![None; insert.table.columns.len()];
        let defaults = insert.defaults.iter().map(|(column, _)| column);
        for (at, column) in insert.columns.iter().chain(defaults).enumerate() {
            sources[column.index()] = Some(at);
        }
        Self { table: &insert.table, sources, schema: arrays::schema_of(&insert.table) }
    }

    /// A batch of the table's columns, whose types the result's columns have already.
    fn batch(&self, batch: &RecordBatch) -> Result<RecordBatch, SqlError> {
        let mut arrays = Vec::with_capacity(self.sources.len());
        for (column, source) in self.table.columns.iter().zip(&self.sources) {
            let wanted = arrow_type(column.ty);
            arrays.push(match source {
                Some(at) => in_type(batch.column(*at), &wanted)?,
                None => new_null_array(&wanted, batch.num_rows()),
            });
        }
        RecordBatch::try_new(Arc::clone(&self.schema), arrays).map_err(arrays::internal)
    }
}

/// The same values in an Arrow type that differs at most in its name and precision.
fn in_type(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, SqlError> {
    match (array.data_type(), wanted) {
        (found, wanted) if found == wanted => Ok(Arc::clone(array)),
        (DataType::Decimal128(_, from), DataType::Decimal128(_, to)) if from == to => {
            let decimals = array.as_primitive::<Decimal128Type>().clone();
            Ok(Arc::new(decimals.with_data_type(wanted.clone())))
        }
        _ => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(array, wanted, &options).map_err(arrays::internal)
        }
    }
}
