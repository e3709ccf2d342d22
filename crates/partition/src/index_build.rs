//! An index made beside its table while transactions go on.
//!
//! ```text
//! snapshot, feed ──► index of the snapshot's rows ──► changed rows, round by round ──► all partitions owned:
//!  (all owned)        (nothing owned)                 (owned to read a few keys)       the last ones, and switch
//! ```
//!
//! So whoever wants to write waits for a few keys, however many rows the table has. A build that is told less than
//! all begins again.

use std::sync::Arc;

use albireo_base::progress::{Phase, StatementProgress, Unit};
use albireo_base::{PartitionId, Tid};
use albireo_storage::{
    BudgetSpent, ChangedKeys, ColumnSet, FrozenKeys, IndexAside, SnapshotScope, TableError, TableSpec,
};

use crate::follow::{ChangedRows, Follower};
use crate::switch::CHUNKS_LOOKED_AT;
use crate::{Exclusive, Partitions, TableHandle};

/// Keys that are read while a partition is owned.
const READ_AT_ONCE: usize = 256;
/// Changed rows that may be left for the moment when all partitions are owned.
const FEW: usize = 200;
/// Rounds after which whatever is left is done then.
const MOST_ROUNDS: usize = 50;
/// How often it begins again before it is built with all partitions owned.
const TRIES: usize = 3;

/// Why an index is not built.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum IndexBuildError {
    /// The table does not take it, or memory is at its limit.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Snapshots hold as much memory as they may.
    #[error(transparent)]
    Budget(#[from] BudgetSpent),
    /// The table was dropped.
    #[error("the table was dropped")]
    Dropped,
    /// It was to end.
    #[error("the statement was ended")]
    Ended,
}

/// An index made beside a table, in all partitions.
pub struct BuiltIndex {
    follower: Follower,
    /// By partition, with rows that are to be read again.
    parts: Vec<(IndexAside, Vec<Tid>)>,
    /// What it compares of frozen chunks, which are not evicted before it is there.
    held: Vec<FrozenKeys>,
}

/// What became of a round.
enum Round {
    Done,
    Lost,
}

impl Partitions {
    /// Makes the last index of `spec` beside a table, and counts the table's rows in `progress`; `goes_on` says whether
    /// the statement does. `None`: others change too many rows at once.
    ///
    /// # Errors
    /// As the error says.
    pub fn build_index(
        &self,
        table: TableHandle,
        spec: &Arc<TableSpec>,
        progress: &StatementProgress,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<BuiltIndex>, IndexBuildError> {
        let added = spec.indexes.last().ok_or(IndexBuildError::Dropped)?;
        let columns = ColumnSet::of(added.columns.iter().copied());
        let scope = SnapshotScope::Tables([(table.id(), columns)].into());
        for _ in 0..TRIES {
            let follower = self.follow(table, &scope, columns)?;
            let view = follower.snapshot().table(table.id()).ok_or(IndexBuildError::Dropped)?;
            progress.begin(Phase::BuildingIndex, Unit::Rows, Some(view.row_count()));
            let mut parts = Vec::new();
            for partition in follower.partitions() {
                if !goes_on() {
                    return Err(IndexBuildError::Ended);
                }
                let part = view.index_aside(partition, Arc::clone(spec), progress)?;
                parts.push((part.ok_or(IndexBuildError::Dropped)?, Vec::new()));
            }
            drop(view);
            let mut built = BuiltIndex { follower, parts, held: Vec::new() };
            if built.catch_up(self, goes_on)? {
                return Ok(Some(built));
            }
        }
        Ok(None)
    }
}

impl BuiltIndex {
    /// Enters rows that were changed meanwhile until few are left; whether all were told.
    ///
    /// # Errors
    /// As the error says.
    pub fn catch_up(
        &mut self,
        partitions: &Partitions,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<bool, IndexBuildError> {
        for _ in 0..MOST_ROUNDS {
            let waiting = |(partition, part): (u16, &(IndexAside, Vec<Tid>))| {
                self.follower.waiting(PartitionId(partition)) + part.1.len()
            };
            if (0..).zip(&self.parts).map(waiting).sum::<usize>() <= FEW {
                break;
            }
            for partition in self.follower.partitions() {
                if !goes_on() {
                    return Err(IndexBuildError::Ended);
                }
                if matches!(self.round(partitions, partition)?, Round::Lost) {
                    return Ok(false);
                }
            }
        }
        self.hold(partitions, goes_on)?;
        Ok(true)
    }

    /// Has in memory what the index compares in the rows.
    fn hold(&mut self, partitions: &Partitions, goes_on: &dyn Fn() -> bool) -> Result<(), IndexBuildError> {
        self.held.clear();
        for partition in self.follower.partitions() {
            let (mut from, mut all) = (0, 1);
            while from < all {
                let some = from..from + CHUNKS_LOOKED_AT;
                let part = &self.parts[partition.index()].0;
                let held = partitions.with_table_if_there(self.follower.table(), partition, |table| {
                    (table.keys_compared_by(part, some), table.chunk_counts().all as usize)
                });
                let (held, chunks) = held.ok_or(IndexBuildError::Dropped)?;
                for keys in held {
                    if !goes_on() {
                        return Err(IndexBuildError::Ended);
                    }
                    keys.bring().map_err(TableError::from)?;
                    self.held.push(keys);
                }
                (from, all) = (from + CHUNKS_LOOKED_AT, chunks);
            }
        }
        Ok(())
    }

    fn round(&mut self, partitions: &Partitions, partition: PartitionId) -> Result<Round, IndexBuildError> {
        let ChangedRows::These(mut tids) = self.follower.take(partition) else { return Ok(Round::Lost) };
        let (part, again) = &mut self.parts[partition.index()];
        tids.append(again);
        tids.sort_unstable();
        tids.dedup();
        let (mut keys, mut pace) = (ChangedKeys::default(), partitions.pace());
        for some in tids.chunks(READ_AT_ONCE) {
            pace.begin();
            let read = partitions.with_table_if_there(self.follower.table(), partition, |table| {
                part.read(table, some.iter().copied(), &mut keys);
            });
            read.ok_or(IndexBuildError::Dropped)?;
            pace.rest(partition, 0);
        }
        *again = part.enter(keys)?;
        Ok(Round::Done)
    }
}

impl Exclusive<'_> {
    /// Makes an index that was built beside a table one of the table's; whether all changes meanwhile were told, else
    /// nothing was done.
    ///
    /// # Errors
    /// Two rows have the same key, or memory is at its limit; no partition has it then.
    pub fn install_index(&mut self, built: BuiltIndex) -> Result<bool, TableError> {
        let BuiltIndex { follower, parts, held: _held } = built;
        let mut last = Vec::with_capacity(parts.len());
        for (partition, (part, mut again)) in (0..).map(PartitionId).zip(parts) {
            let ChangedRows::These(mut tids) = follower.take(partition) else { return Ok(false) };
            tids.append(&mut again);
            tids.sort_unstable();
            tids.dedup();
            last.push((part, tids));
        }
        let table = follower.table();
        // What nobody sees any more need not be copied when it is written.
        drop(follower);
        let before = Arc::clone(self.tables(table)[0].spec());
        let mut done = 0;
        let mut failed = None;
        for (target, (part, tids)) in self.tables(table).into_iter().zip(last) {
            match target.install_index(part, tids.into_iter()) {
                Ok(()) => done += 1,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let Some(error) = failed else { return Ok(true) };
        for target in self.tables(table).into_iter().take(done) {
            target.drop_index(before.indexes.len(), Arc::clone(&before));
        }
        Err(error)
    }
}
