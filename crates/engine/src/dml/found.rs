//! Changes whose rows are found beside whoever uses the tables: MERGE, and what looks at other relations, has RETURNING or ON
//! CONFLICT.
//!
//! ```text
//! snapshot ──► query: rows ──► what is done with each, a few at a time ──► all partitions owned: if all that was read
//! (all owned)  (nothing owned) (one partition owned)                      is still so, the change
//!                         └──► of few rows, or what is decided late ─────►
//! ```
//!
//! What such a statement does to a row depends on other rows, so one that somebody has changed cannot be judged by
//! itself: if something of what was read has changed, in a column that was read, all is worked out again; after
//! [`TRIES`] times with all partitions owned (`super`). Rows that a plan brings are inserted at its end, so they are few.
//!
//! What is read of evicted chunks is read with nothing owned; rows that are changed and are away are fetched, and what was found
//! stays found.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use albireo_base::{ColumnId, PartitionId, SqlError, SqlState, Value};
use albireo_execute::query::{self, Decided, Decision, FoundRow, FoundRows};
use albireo_partition::{self as partition, Abort, Call, Pace, Route, Switch, TableHandle, Transaction};
use albireo_plpgsql::classify::is_repeatable_change;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::ExprKind;
use albireo_semantics::query::ADDRESS;
use albireo_semantics::query::tree::{Change, MergeAction};
use albireo_storage::{ColumnSet, DatabaseSnapshot, Rewrite, RowSet, SnapshotScope, TableSpec};

use super::{Queried, Seen, TRIES, places_of};
use crate::QueryResult;
use crate::ddl::{handle, spec_of};
use crate::meanwhile::Moment;
use crate::routines::put_statement;
use crate::statements::Ran;

/// Rows that are looked at while a partition is owned.
const DECIDED_AT_ONCE: usize = 128;
/// Rows that it changes at least: fewer are changed one by one in less time than it takes to be ready for more.
const FEW: usize = 1_000;
/// Rows that it inserts at most.
const MOST_INSERTED: usize = 4_000;

/// What is done, worked out so far.
struct Plan<'q> {
    queried: &'q Queried<'q>,
    arguments: &'q [Datum],
    handle: TableHandle,
    spec: Arc<TableSpec>,
    /// The columns that get new values.
    columns: Vec<ColumnId>,
    rewrites: Vec<Rewrite>,
    gone: Vec<RowSet>,
    coming: Vec<Vec<Value>>,
    /// Rows that have been decided about, by partition.
    touched: Vec<RowSet>,
    pace: Pace<'q>,
}

/// Whether a plan can be made.
enum Made {
    Whole,
    NotHere,
}

impl Queried<'_> {
    /// Finds the rows beside the table, and makes the change beside it too or of one row after the other; `None` if others
    /// change too much, or there is no memory for it now.
    pub(super) fn run_found(&self, arguments: &[Datum]) -> Result<Option<Ran>, SqlError> {
        let Some(planned) = self.planned() else { return self.run_singly(arguments) };
        let (handle, spec, columns) = &planned;
        let read = self.change.read_late();
        let covered = match spec.checks.is_empty() {
            true => ColumnSet::of(columns.iter().copied().chain(read)),
            false => ColumnSet::ALL,
        };
        let scope = self.scope().covering(handle.id(), covered);
        let partitions = &self.database.inner.partitions;
        let turn = partitions.turn(*handle);
        // If they are many, the query need not run again.
        let (mut alone, mut tries) = (turn.take(), 0);
        while tries < TRIES {
            let Some((seen, results)) = self.find(&scope)? else { return Ok(None) };
            let result = &results[0];
            if result.row_count() < FEW {
                tries += 1;
                match self.make_singly(arguments, seen, &results)? {
                    None => continue,
                    ran => return Ok(ran),
                }
            }
            if alone.is_none() {
                // What it found may be others' by then.
                drop((seen, results));
                alone = Some(self.wait_for(&turn)?);
                continue;
            }
            tries += 1;
            self.database.inner.meanwhile.happens(Moment::Before);
            let mut plan = Plan::new(self, arguments, (*handle, spec.clone()), columns, &seen)?;
            let ran = match plan.work_out(result) {
                Ok(Made::Whole) => plan.finish(seen)?,
                Ok(Made::NotHere) => {
                    drop(plan);
                    self.make_singly(arguments, seen, &results)?
                }
                // It may come of rows that are others by now.
                Err(_) if !partitions.is_current(&seen) => continue,
                Err(error) => return Err(error),
            };
            if ran.is_some() {
                return Ok(ran);
            }
        }
        Ok(None)
    }

    /// The table that it changes, and the columns, if what it does with many rows can be worked out beside the table.
    fn planned(&self) -> Option<(TableHandle, TableSpec, Vec<ColumnId>)> {
        let target = self.change.target()?;
        let (spec, columns) = (spec_of(&target.table), written(&self.change));
        let fits = self.queries.len() == 1 && target.returning.is_empty() && spec.rewrites(&columns);
        (fits && self.is_repeatable()).then(|| (handle(&target.table), spec, columns))
    }

    /// Finds the rows beside the table, and makes the change of one after the other; `None` as of [`Queried::run_found`].
    fn run_singly(&self, arguments: &[Datum]) -> Result<Option<Ran>, SqlError> {
        let scope = self.scope();
        for _ in 0..TRIES {
            let Some((seen, results)) = self.find(&scope)? else { return Ok(None) };
            if let Some(ran) = self.make_singly(arguments, seen, &results)? {
                return Ok(Some(ran));
            }
        }
        Ok(None)
    }

    /// What the queries give on a snapshot, and that; `None` if the budget of snapshots ended it.
    pub(crate) fn find(&self, scope: &SnapshotScope) -> Result<Option<Seen>, SqlError> {
        let seen = self.database.inner.partitions.snapshot_at_once(scope);
        let seen = seen.map_err(|spent| crate::errors::session(spent.into()))?;
        self.database.inner.meanwhile.happens(Moment::Before);
        match self.rows_of_all(&seen) {
            Err(_) if seen.is_cancelled() && !self.cancel.is_cancelled() => Ok(None),
            results => results.map(|results| Some((seen, results))),
        }
    }

    /// Makes the change of rows one by one, all partitions owned; `None` if something that was read has changed.
    fn make_singly(
        &self,
        arguments: &[Datum],
        seen: Arc<DatabaseSnapshot>,
        results: &[QueryResult],
    ) -> Result<Option<Ran>, SqlError> {
        self.database.inner.meanwhile.happens(Moment::Before);
        self.limits.check()?;
        let partitions = &self.database.inner.partitions;
        let ran =
            partitions.crossing_while_current(&self.call(), seen, |tx| self.make_of(tx, results, arguments));
        ran.map_err(|error| self.database.explain_call(error))
    }

    /// Whether it does the same again on the same rows, whenever it runs and wherever they lie, so that the redo log may
    /// have the statement instead of the rows.
    fn is_repeatable(&self) -> bool {
        let Some(plan) = self.bound.change() else { return false };
        let mut asks_time = false;
        plan.each_expr(&mut |part| asks_time |= matches!(part.kind, ExprKind::Now));
        !asks_time && !self.change.asks_late() && !self.bound.calls_routines() && is_repeatable_change(plan)
    }
}

/// The columns that a change gives new values.
fn written(change: &Change) -> Vec<ColumnId> {
    let columns: BTreeSet<ColumnId> = match change {
        Change::Update(update) => update.set.iter().map(|(column, _)| *column).collect(),
        Change::Merge(merge) => {
            let updates = merge.clauses.iter().filter_map(|clause| match &clause.action {
                MergeAction::Update(set) => Some(set),
                _ => None,
            });
            updates.flatten().map(|(column, _)| *column).collect()
        }
        Change::Insert(_) | Change::Delete(_) => BTreeSet::new(),
    };
    columns.into_iter().collect()
}

impl<'q> Plan<'q> {
    fn new(
        queried: &'q Queried<'q>,
        arguments: &'q [Datum],
        (handle, spec): (TableHandle, TableSpec),
        columns: &[ColumnId],
        seen: &Arc<DatabaseSnapshot>,
    ) -> Result<Self, SqlError> {
        let dropped = || SqlError::new(SqlState::UNDEFINED_TABLE, "the table was dropped");
        let (partitions, spec) = (&queried.database.inner.partitions, Arc::new(spec));
        let count = if handle.is_shared() { 1 } else { partitions.count() };
        let mut rewrites = Vec::new();
        if !columns.is_empty() {
            let view = seen.table(handle.id()).ok_or_else(dropped)?;
            let part = |partition| view.rewrite(PartitionId(partition), Arc::clone(&spec), columns);
            rewrites = (0..count).map(part).collect::<Option<_>>().ok_or_else(dropped)?;
        }
        Ok(Self {
            queried,
            arguments,
            handle,
            spec,
            columns: columns.to_vec(),
            rewrites,
            gone: vec![RowSet::default(); usize::from(count)],
            coming: Vec::new(),
            touched: vec![RowSet::default(); usize::from(count)],
            pace: partitions.pace(),
        })
    }

    /// Works out what is done with the rows of a result.
    fn work_out(&mut self, result: &QueryResult) -> Result<Made, SqlError> {
        // Rows that lie together are decided about together: their blocks are copied once, not all in one step.
        let places = places_of(result, true);
        let mut some: Vec<FoundRow> = Vec::new();
        let mut places = places.into_iter().peekable();
        while let Some(place) = places.next() {
            let row = self.queried.queries[0].found(result, place, ADDRESS)?;
            let partition = row.at.map_or(PartitionId(0), |(partition, _)| partition);
            some.push(row);
            let goes_on = places.peek().is_some_and(|(batch, row)| {
                let next = super::address(&result.batches()[*batch], *row);
                next.map_or(PartitionId(0), |(partition, _)| partition) == partition
            });
            if some.len() < DECIDED_AT_ONCE && goes_on {
                continue;
            }
            if matches!(self.decide(partition, std::mem::take(&mut some))?, Made::NotHere) {
                return Ok(Made::NotHere);
            }
            self.queried.database.inner.meanwhile.happens(Moment::Before);
        }
        for rewrite in &mut self.rewrites {
            rewrite.seal().map_err(|error| self.queried.database.explain_table(error))?;
        }
        // One that goes may make room for one that comes.
        let mixes = !self.coming.is_empty() && self.gone.iter().any(|rows| rows.count() > 0);
        Ok(if mixes { Made::NotHere } else { Made::Whole })
    }

    /// Decides about rows, whose partition is owned for that.
    fn decide(&mut self, partition: PartitionId, found: Vec<FoundRow>) -> Result<Made, SqlError> {
        let queried = self.queried;
        queried.limits.check()?;
        let call = Call::new(Route::Partition(partition), queried.verb());
        self.pace.begin();
        let decided = queried.database.inner.partitions.transact(&call, |tx| {
            // It may be run several times.
            let rows = &mut found.iter().cloned().map(Ok);
            let found = FoundRows { carried: &queried.carried, rows };
            let decide = |host: &mut dyn albireo_execute::Host| query::decide(&queried.rest, host, found);
            let (decided, _) = queried.on_live_rows(tx, self.arguments, decide)?;
            self.note(tx, decided)
        });
        self.pace.rest(partition, 1);
        decided.map_err(|error| queried.database.explain_call(error))
    }

    /// Notes what is done with rows.
    fn note(&mut self, tx: &mut Transaction, decided: Vec<Decided>) -> Result<Made, Abort> {
        // What is noted is not taken back: from here on no row is met that is away.
        for site in tx.sites() {
            let partition = tx.partition(site);
            let here = decided.iter().filter_map(|Decided { at, decision }| match (decision, at) {
                (Decision::Update(_), Some((of, tid))) if *of == partition => Some(*tid),
                _ => None,
            });
            tx.table_at(site, self.handle).require_rows(here);
        }
        for Decided { at, decision } in decided {
            let is_first = at.is_none_or(|(partition, tid)| {
                let touched = &mut self.touched[partition.index()];
                let is_first = !touched.has(tid);
                touched.set(tid, true);
                is_first
            });
            match (decision, at) {
                // Which of them counts, or what is said of it, is decided where they are changed one by one.
                (Decision::Update(_) | Decision::Delete, Some(_)) if !is_first => return Ok(Made::NotHere),
                (Decision::Update(values), Some((partition, tid))) => {
                    let site = tx.site_of_partition(partition)?;
                    let table = tx.table_at(site, self.handle);
                    let value = |column: &ColumnId| {
                        let given = values.iter().find(|(given, _)| given == column);
                        given.map_or_else(|| table.value(tid, *column), |(_, value)| value.clone())
                    };
                    let values: Vec<Value> = self.columns.iter().map(value).collect();
                    let rewrite = &mut self.rewrites[partition.index()];
                    rewrite.put_live(table, tid, Some(&values)).map_err(Abort::Table)?;
                }
                (Decision::Delete, Some((partition, tid))) => self.gone[partition.index()].set(tid, true),
                (Decision::Insert(values), _) if self.coming.len() < MOST_INSERTED => {
                    self.coming.push(values)
                }
                (Decision::Insert(_), _) => return Ok(Made::NotHere),
                (Decision::Update(_) | Decision::Delete, None) => {}
            }
        }
        Ok(Made::Whole)
    }

    /// Makes the change, all partitions owned; `None` if something that was read has changed.
    fn finish(self, seen: Arc<DatabaseSnapshot>) -> Result<Option<Ran>, SqlError> {
        let Self { queried, handle, spec, rewrites, gone, coming, .. } = self;
        let mut changes = partition::Change::of_each(rewrites, partition::Change::Columns);
        changes.extend(partition::Change::of_each(gone, partition::Change::Gone));
        let changed: u64 = changes.iter().map(partition::Change::count).sum();
        let count = Cell::new(changed + coming.len() as u64);
        let record =
            |out: &mut Vec<u8>| put_statement(out, (handle.id(), count.get()), queried.text, queried.values);
        let (partitions, call) = (&queried.database.inner.partitions, queried.call());
        let switch = Switch { changes, record: &record };
        let done = partitions.switch_if_current(handle, seen, &call, switch, |tx, changes| {
            for values in &coming {
                let site = match spec.partition_by {
                    Some(column) => tx.site_of_value(&values[column.index()])?,
                    None => tx.home(),
                };
                let tid = tx.insert_values_at(site, handle, values)?;
                let (partition, table) = (tx.partition(site), tx.table_at(site, handle));
                changes.iter_mut().try_for_each(|change| change.follow(partition, table, tid))?;
            }
            Ok(())
        });
        let Some(((), switched)) = done.map_err(|error| queried.database.explain_call(error))? else {
            return Ok(None);
        };
        let notices = queried.database.end_switch(&call, switched)?.into_iter().collect();
        Ok(Some(Ran { count: count.get(), rows: Vec::new(), notices }))
    }
}
