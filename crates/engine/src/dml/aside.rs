//! UPDATE and DELETE of one table's rows, worked out beside whoever reads and writes them.
//!
//! ```text
//! snapshot, feed ──► query: rows and new values ──► rows that were changed since, ──► all partitions owned: the last
//!  (all owned)       (nothing owned)                judged again, a few at a time     of these, and the change
//! ```
//!
//! A statement belongs here if what it does to a row depends on that row alone: no other relation, no query, no routine.
//! Then a row that somebody has changed is judged by itself, as it is now, and the statement is serializable: as if it
//! had run at the moment of its end. What it does then takes a moment, whatever the size of the table: few rows are
//! changed one by one, columns of many rows are swapped for those that were written beside them
//! ([`albireo_storage::Rewrite`]); the redo log gets the rows, or the statement. What fits neither is left to [`super`].
//!
//! An error that a row meets stands: the statement would have met it had it run when the row was as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use albireo_base::{ColumnId, PartitionId, SqlError, SqlState, StatementProgress, Tid, Value};
use albireo_execute::query::{self, FoundRow, FoundRows};
use albireo_execute::{Host, Notice};
use albireo_olap::QueryStream;
use albireo_olap::relation::Snapshot;
use albireo_partition::{
    self as partition, Abort, Alone, Call, ChangedRows, Follower, Route, Switch, Switched, TableHandle,
    Transaction, Turn,
};
use albireo_semantics::datum::Datum;
use albireo_semantics::query::tree::{Change, Target, Update};
use albireo_storage::{ColumnSet, Rewrite, RowSet, TableError, TableSpec, TableView};
use arrow::array::RecordBatch;

use super::{Queried, address};
use crate::adapters::{AddressedSnapshot, value_at};
use crate::ddl::{handle, spec_of};
use crate::meanwhile::Moment;
use crate::routines::put_statement;
use crate::statements::Ran;

/// Rows that are changed one by one while all partitions are owned, if their columns could be swapped, and if not.
const FEW: usize = 1_000;
const MOST_SINGLY: usize = 4_000;
/// An index is made anew for a change of at least one of so many rows. Entering a row beside the table takes an eighth of
/// what changing it in an index does; so the statement takes a hundred times longer at most than if it held all others
/// off.
const REINDEXED_AT_MOST: usize = 800;
/// Rows that are judged while a partition is owned.
const JUDGED_AT_ONCE: usize = 256;
/// Changed rows that may be left for the moment when all partitions are owned.
const FEW_LEFT: usize = 200;
/// Rounds after which whatever is left is done then.
const MOST_ROUNDS: usize = 100;
/// How often it begins again when it was not told of all changes.
const TRIES: usize = 2;

/// The address of a row, and what it gets.
type Found = BTreeMap<(PartitionId, Tid), Vec<Value>>;

/// What a statement makes of the rows.
enum Made {
    /// New values of these rows; they are changed one by one.
    Singly(Found),
    /// New columns, one part for each partition.
    Columns(Vec<Rewrite>),
    /// Rows to be deleted, by partition.
    Gone(Vec<RowSet>),
    /// Nothing yet: they are many, and another statement may be at work beside the table.
    NeedsTurn,
    /// Too much.
    TooMany,
}

/// A statement at work beside a table.
struct Aside<'q> {
    queried: &'q Queried<'q>,
    arguments: &'q [Datum],
    handle: TableHandle,
    spec: Arc<TableSpec>,
    /// The columns that get new values.
    columns: Vec<ColumnId>,
    /// Until the end.
    follower: Option<Follower>,
    /// How many rows are changed one by one at most.
    most_singly: usize,
    /// Whether no other statement is at work beside the table.
    is_alone: bool,
    made: Made,
}

impl Queried<'_> {
    /// Makes the change beside the table; `None` if it does not belong here.
    pub(super) fn run_aside(&self, arguments: &[Datum]) -> Result<Option<Ran>, SqlError> {
        let (Change::Update(Update { target, .. }) | Change::Delete(target)) = &*self.change else {
            return Ok(None);
        };
        if !self.is_of_rows_alone(target) {
            return Ok(None);
        }
        let turn = self.database.inner.partitions.turn(handle(&target.table));
        // If they are many, the query need not run again.
        let (mut alone, mut tries) = (turn.take(), 0);
        while tries < TRIES {
            let mut aside = Aside::begin(self, target, arguments)?;
            aside.is_alone = alone.is_some();
            match aside.find() {
                // The budget of snapshots ended it.
                Err(_) if aside.is_cut_off() => return Ok(None),
                found => found?,
            }
            match aside.made {
                Made::TooMany => return Ok(None),
                Made::NeedsTurn => {
                    drop(aside);
                    alone = Some(self.wait_for(&turn)?);
                    continue;
                }
                Made::Singly(_) | Made::Columns(_) | Made::Gone(_) => tries += 1,
            }
            if !aside.catch_up()? {
                continue;
            }
            self.database.inner.meanwhile.happens(Moment::Before);
            if let Some(ran) = aside.finish()? {
                return Ok(Some(ran));
            }
        }
        Ok(None)
    }

    /// Waits until nobody else works beside the table.
    ///
    /// # Errors
    /// 57014 if it is to end before.
    pub(super) fn wait_for<'t>(&self, turn: &'t Turn) -> Result<Alone<'t>, SqlError> {
        let alone = turn.wait(&|| self.limits.check().is_ok());
        alone.ok_or_else(|| self.limits.interrupts.ended())
    }

    /// Whether what happens to a row depends on that row alone, whenever the statement runs.
    fn is_of_rows_alone(&self, target: &Target) -> bool {
        let plain = target.relations.len() == 1 && target.ctes.is_empty() && target.returning.is_empty();
        plain && self.queries.len() == 1 && !self.bound.calls_routines() && self.change.is_of_rows_alone()
    }
}

impl<'q> Aside<'q> {
    /// Begins to follow the table.
    fn begin(queried: &'q Queried<'q>, target: &'q Target, arguments: &'q [Datum]) -> Result<Self, SqlError> {
        let (handle, spec) = (handle(&target.table), Arc::new(spec_of(&target.table)));
        let columns: Vec<ColumnId> = match &*queried.change {
            Change::Update(update) => update.set.iter().map(|(column, _)| *column).collect(),
            _ => Vec::new(),
        };
        // CHECK constraints look at other columns too.
        let covered = match spec.checks.is_empty() {
            true => ColumnSet::of(spec.read_by_rewrite(&columns)),
            false => ColumnSet::ALL,
        };
        let scope = queried.scope().covering(handle.id(), covered);
        let partitions = &queried.database.inner.partitions;
        let follower = partitions.follow(handle, &scope, ColumnSet::ALL);
        let follower = follower.map_err(|spent| crate::errors::session(spent.into()))?;
        let made = Made::Singly(Found::new());
        let most_singly = match follower.snapshot().table(handle.id()) {
            _ if spec.rewrites(&columns) => FEW,
            Some(view) if spec.reindexes(&columns) => FEW.max(view.row_count() as usize / REINDEXED_AT_MOST),
            _ => MOST_SINGLY,
        };
        let follower = Some(follower);
        Ok(Self { queried, arguments, handle, spec, columns, follower, most_singly, is_alone: false, made })
    }

    /// Finds the rows, and their new values, on the snapshot.
    fn find(&mut self) -> Result<(), SqlError> {
        let queried = self.queried;
        let Some(follower) = &self.follower else { return Ok(()) };
        let holders = Arc::strong_count(follower.snapshot());
        let snapshot: Arc<dyn Snapshot> = Arc::new(AddressedSnapshot(Arc::clone(follower.snapshot())));
        let prepared = &queried.queries[0].prepared;
        let mut stream =
            queried.database.inner.olap.run_stream(prepared, queried.values, &snapshot, queried.options());
        let taken = self.take_all(&mut stream);
        drop((stream, snapshot));
        taken?;
        if matches!(self.made, Made::TooMany | Made::NeedsTurn) {
            self.outlast_query(holders);
        }
        self.seal()
    }

    /// Takes all batches over, or as many as it takes to see that this is not how the change is made.
    fn take_all(&mut self, stream: &mut QueryStream) -> Result<(), SqlError> {
        while let Some(batch) = stream.next_blocking() {
            self.take(&batch?)?;
            albireo_env::give_way();
            if matches!(self.made, Made::TooMany | Made::NeedsTurn) {
                return Ok(());
            }
            self.queried.database.inner.meanwhile.happens(Moment::Before);
        }
        Ok(())
    }

    /// Waits until a query that was given up in its midst has let go of the snapshot, which had so many `holders` before. It
    /// stops at its next batch; until then blocks that the statement changes would be kept for it. Nothing is made of what
    /// it found, so nothing else holds the snapshot.
    fn outlast_query(&self, holders: usize) {
        let Some(follower) = &self.follower else { return };
        while Arc::strong_count(follower.snapshot()) > holders && self.queried.limits.check().is_ok() {
            std::thread::yield_now();
        }
    }

    /// Completes new columns, and makes their indexes.
    fn seal(&mut self) -> Result<(), SqlError> {
        let Made::Columns(parts) = &mut self.made else { return Ok(()) };
        let (progress, has_index) = (StatementProgress::default(), !self.spec.rewrites(&self.columns));
        for part in parts {
            self.queried.limits.check()?;
            match part.seal().and_then(|()| part.reindex(&progress)) {
                Ok(()) => {}
                // Changed one by one, they need less.
                Err(TableError::OutOfMemory(_)) if has_index => {
                    self.made = Made::TooMany;
                    return Ok(());
                }
                Err(error) => return Err(self.queried.database.explain_table(error)),
            }
        }
        Ok(())
    }

    /// Whether its snapshot was ended, and not by whoever waits for the statement.
    fn is_cut_off(&self) -> bool {
        let ended = self.follower.as_ref().is_some_and(|follower| follower.snapshot().is_cancelled());
        ended && !self.queried.cancel.is_cancelled()
    }

    /// Takes the rows of a batch over.
    fn take(&mut self, batch: &RecordBatch) -> Result<(), SqlError> {
        if let Made::Singly(found) = &mut self.made
            && found.len() + batch.num_rows() > self.most_singly
        {
            let found = std::mem::take(found);
            self.made = match (self.columns.is_empty(), self.is_alone) {
                (false, _) if !self.spec.reindexes(&self.columns) => Made::TooMany,
                (_, false) => Made::NeedsTurn,
                (true, true) => Made::Gone(self.gone(found)),
                (false, true) => Made::Columns(self.new_columns(found)?),
            };
        }
        let types: Vec<_> = self.columns.iter().map(|column| self.spec.columns[column.index()].ty).collect();
        let mut values = Vec::with_capacity(types.len());
        for row in 0..batch.num_rows() {
            let Some((partition, tid)) = address(batch, row) else { continue };
            values.clear();
            let arrays = batch.columns().iter().skip(super::ADDRESS);
            values.extend(arrays.zip(&types).map(|(array, ty)| value_at(array, row, *ty)));
            match &mut self.made {
                Made::Singly(found) => drop(found.insert((partition, tid), values.clone())),
                Made::Columns(parts) => {
                    let put = parts[partition.index()].put(tid, &values);
                    put.map_err(|error| self.queried.database.explain_table(error))?;
                }
                Made::Gone(parts) => parts[partition.index()].set(tid, true),
                Made::TooMany | Made::NeedsTurn => return Ok(()),
            }
        }
        Ok(())
    }

    /// The rows found so far, which are to be deleted.
    fn gone(&self, found: Found) -> Vec<RowSet> {
        let count = self.follower.as_ref().map_or(0, |follower| follower.partitions().count());
        let mut parts = vec![RowSet::default(); count];
        found.into_keys().for_each(|(partition, tid)| parts[partition.index()].set(tid, true));
        parts
    }

    /// New columns with the values of the rows found so far.
    fn new_columns(&self, found: Found) -> Result<Vec<Rewrite>, SqlError> {
        let dropped = || SqlError::new(SqlState::UNDEFINED_TABLE, "the table was dropped");
        let follower = self.follower.as_ref().ok_or_else(dropped)?;
        let view: TableView = follower.snapshot().table(self.handle.id()).ok_or_else(dropped)?;
        let part = |partition| view.rewrite(partition, Arc::clone(&self.spec), &self.columns);
        let mut parts: Vec<Rewrite> =
            follower.partitions().map(part).collect::<Option<_>>().ok_or_else(dropped)?;
        for ((partition, tid), values) in found {
            let put = parts[partition.index()].put(tid, &values);
            put.map_err(|error| self.queried.database.explain_table(error))?;
        }
        Ok(parts)
    }

    /// Judges rows again that were changed since they were found, until few are left; whether all were told.
    fn catch_up(&mut self) -> Result<bool, SqlError> {
        let mut pace = self.queried.database.inner.partitions.pace();
        let mut before = usize::MAX;
        for _ in 0..MOST_ROUNDS {
            let Some(follower) = &self.follower else { break };
            let waiting = follower.partitions().map(|partition| follower.waiting(partition)).sum::<usize>();
            if waiting <= FEW_LEFT {
                break;
            }
            if waiting > before / 2 {
                pace.hurry();
            }
            before = waiting;
            let taken = follower.partitions().map(|partition| (partition, follower.take(partition)));
            for (partition, changed) in taken.collect::<Vec<_>>() {
                let ChangedRows::These(tids) = changed else { return Ok(false) };
                for some in tids.chunks(JUDGED_AT_ONCE) {
                    self.queried.limits.check()?;
                    let rows: Vec<_> = some.iter().map(|tid| (partition, *tid)).collect();
                    pace.begin();
                    self.judge_in(partition, &rows)?;
                    pace.rest(partition, 1);
                }
            }
            self.queried.database.inner.meanwhile.happens(Moment::Before);
        }
        Ok(true)
    }

    /// Judges rows of a partition, which is owned for that.
    fn judge_in(&mut self, partition: PartitionId, rows: &[(PartitionId, Tid)]) -> Result<(), SqlError> {
        let database = self.queried.database;
        let call = Call::new(Route::Partition(partition), self.queried.verb());
        let judged = database.inner.partitions.transact(&call, |tx| self.judge(tx, rows));
        judged.map_err(|error| database.explain_call(error))
    }

    /// Judges rows as they are now.
    fn judge(&mut self, tx: &mut Transaction, rows: &[(PartitionId, Tid)]) -> Result<(), Abort> {
        let change = &*self.queried.change;
        let judge = |host: &mut dyn Host| query::judge(change, host, rows);
        let (judged, _) = self.queried.on_live_rows(tx, self.arguments, judge)?;
        if matches!(self.made, Made::Columns(_)) {
            for site in tx.sites() {
                let here = rows.iter().filter(|row| row.0 == tx.partition(site)).map(|row| row.1);
                tx.table_at(site, self.handle).require_rows(here);
            }
        }
        for (&(partition, tid), values) in rows.iter().zip(judged) {
            match &mut self.made {
                Made::Singly(found) => match values {
                    Some(values) => drop(found.insert((partition, tid), values)),
                    None => drop(found.remove(&(partition, tid))),
                },
                Made::Columns(parts) => {
                    let site = tx.site_of_partition(partition)?;
                    let table = tx.table_at(site, self.handle);
                    parts[partition.index()].put_live(table, tid, values.as_deref()).map_err(Abort::Table)?;
                }
                Made::Gone(parts) => parts[partition.index()].set(tid, values.is_some()),
                Made::TooMany | Made::NeedsTurn => {}
            }
        }
        Ok(())
    }

    /// Sees whether rows that are to die can leave the indexes.
    fn check_keys(&self) -> Result<(), SqlError> {
        let Made::Gone(parts) = &self.made else { return Ok(()) };
        let database = self.queried.database;
        for part in (0..).map(PartitionId).zip(parts) {
            database.inner.partitions.check_keys(self.handle, part, || self.queried.limits.check())?;
        }
        Ok(())
    }

    /// Makes the change, all partitions owned; `None` if not all changes of others were told.
    fn finish(mut self) -> Result<Option<Ran>, SqlError> {
        self.check_keys()?;
        let queried = self.queried;
        let Some(follower) = self.follower.take() else { return Ok(None) };
        let counted = std::cell::Cell::new(0);
        let table = self.handle.id();
        let record = |out: &mut Vec<u8>| {
            put_statement(out, (table, counted.get()), queried.text, queried.values);
        };
        let (partitions, call) = (&queried.database.inner.partitions, queried.call());
        let done = partitions.switch(follower, &call, |tx, changed| {
            self.judge(tx, &changed)?;
            let changes: Vec<partition::Change> = match std::mem::replace(&mut self.made, Made::TooMany) {
                Made::Singly(found) => return self.change_singly(tx, found).map(|count| (count, None)),
                Made::Columns(parts) => partition::Change::of_each(parts, partition::Change::Columns),
                Made::Gone(parts) => partition::Change::of_each(parts, partition::Change::Gone),
                Made::TooMany | Made::NeedsTurn => Vec::new(),
            };
            counted.set(changes.iter().map(partition::Change::count).sum());
            let switch = (counted.get() > 0).then_some(Switch { changes, record: &record });
            Ok((counted.get(), switch))
        });
        let Some((count, switched)) = done.map_err(|error| queried.database.explain_call(error))? else {
            return Ok(None);
        };
        let notices = queried.database.end_switch(&call, switched)?.into_iter().collect();
        Ok(Some(Ran { count, rows: Vec::new(), notices }))
    }

    /// Changes rows one by one, in the order in which a scan would come by them.
    fn change_singly(&self, tx: &mut Transaction, found: Found) -> Result<u64, Abort> {
        let row = |((partition, tid), values): ((PartitionId, Tid), Vec<Value>)| {
            Ok(FoundRow { at: Some((partition, tid)), values: values.into_iter().map(Datum::from).collect() })
        };
        let rows = &mut found.into_iter().map(row);
        let rest = &self.queried.rest;
        let found = FoundRows { carried: &[], rows };
        let queried = self.queried;
        let done = queried.on_live_rows(tx, self.arguments, |host| query::apply(rest, host, found));
        done.map(|((count, _), _)| count)
    }
}

impl crate::Database {
    /// Tidies up after a switch, a few rows at a time, and waits until a crash cannot take it back. Warns of what could not be
    /// tidied.
    pub(super) fn end_switch(
        &self,
        call: &Call<'_>,
        mut switched: Switched,
    ) -> Result<Option<Notice>, SqlError> {
        let partitions = &self.inner.partitions;
        let mut pace = partitions.pace().patiently();
        while partitions.tidy(&mut switched, &mut pace) {
            self.inner.meanwhile.happens(Moment::After);
        }
        let warning = switched.unread().map(|error| {
            let told = "deleted rows stay in the indexes of their table, where nobody finds them";
            Notice::warning(format!("{told}: {error}"))
        });
        let ended = partitions.end_switch(call.synchronous, switched);
        ended.map(|()| warning).map_err(|error| self.explain_call(error))
    }
}
