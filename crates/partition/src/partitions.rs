//! All partitions of a database: calls, crossing transactions, tables, snapshots.

use std::sync::Arc;

use albireo_base::{PartitionId, TableId};
use albireo_env::{Clock, Env};
use albireo_storage::{
    BudgetSpent, DatabaseSnapshot, SnapshotRegistry, SnapshotScope, Table, TableMemory, UndoLog,
};
use hdrhistogram::Histogram;
use parking_lot::Mutex;

use crate::data::{self, PartitionState, SharedTables, TableHandle};
use crate::exclusive::Exclusive;
use crate::executor::{Executor, Partition, Pending, Purpose, Task};
use crate::procedure::{Procedure, Route};
use crate::run::run_in;
use crate::{Abort, CallError, SubmitError, Transaction};

/// How partitions are set up.
#[derive(Clone, Copy, Debug)]
pub struct PartitionsConfig {
    /// Number of partitions, at least 1.
    pub partitions: u16,
    /// Calls that one partition's queue holds before submitters wait.
    pub queue_capacity: usize,
}

impl Default for PartitionsConfig {
    fn default() -> Self {
        Self { partitions: 1, queue_capacity: 1024 }
    }
}

/// What partitions have done.
#[derive(Clone, Debug)]
pub struct PartitionCounters {
    /// Transactions committed.
    pub committed: u64,
    /// Transactions rolled back.
    pub rolled_back: u64,
    /// How long the owners of partitions waited at the barrier, in nanoseconds.
    pub pauses_ns: Histogram<u64>,
    /// Those of them that were for a snapshot. An executor that was not about to run a transaction
    /// while one was taken did not wait and has none.
    pub snapshot_pauses_ns: Histogram<u64>,
}

/// Memory by kind, in bytes.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct MemoryUse {
    /// By table: id, name and memory over all partitions.
    pub tables: Vec<(TableId, String, TableMemory)>,
    /// Undo buffers.
    pub undo_bytes: u64,
}

/// The partitions of one database.
pub struct Partitions {
    partitions: Vec<Arc<Partition>>,
    registry: Arc<SnapshotRegistry>,
    /// Held by whoever wants all partitions, so that there is one at a time.
    crossing: Mutex<UndoLog>,
    clock: Clock,
}

impl Partitions {
    /// Empty partitions.
    pub fn new(config: PartitionsConfig, registry: Arc<SnapshotRegistry>, env: &Env) -> Self {
        let shared = Arc::new(SharedTables::default());
        let partitions = (0..config.partitions.max(1))
            .map(|id| PartitionState::new(PartitionId(id), Arc::clone(&shared)))
            .map(|state| Arc::new(Partition::new(state, config.queue_capacity, env.clock.clone())))
            .collect();
        Self { partitions, registry, crossing: Mutex::default(), clock: env.clock.clone() }
    }

    /// How many there are.
    pub fn count(&self) -> u16 {
        self.partitions.len() as u16
    }

    /// The registry of their snapshots.
    pub fn registry(&self) -> &Arc<SnapshotRegistry> {
        &self.registry
    }

    /// The executor of a partition, for a thread or a scheduler to step.
    pub fn executor(&self, partition: PartitionId) -> Executor {
        Executor { partition: Arc::clone(&self.partitions[partition.index()]) }
    }

    /// Refuses new queued calls and lets the executors end.
    pub fn close(&self) {
        self.partitions.iter().for_each(|p| p.close());
    }

    /// After the executors have ended: tells calls still queued that the database closed.
    pub fn drain(&self) {
        self.partitions.iter().for_each(|p| p.drain());
    }

    /// Runs a procedure on the calling thread, as soon as its partition is free.
    #[inline]
    pub fn call<P: Procedure>(&self, procedure: &P, args: &P::Args) -> Result<P::Output, CallError> {
        self.transact(procedure.route(args), procedure.name(), |tx| procedure.run(tx, args))
    }

    /// Runs `work` as [`Partitions::call`] runs a procedure that is routed so: a second time, over all
    /// partitions, if the first run finds that it crosses them.
    #[inline]
    pub fn transact<R>(
        &self,
        route: Route,
        name: &str,
        mut work: impl FnMut(&mut Transaction<'_, '_>) -> Result<R, Abort>,
    ) -> Result<R, CallError> {
        let home = match route {
            Route::Key(key) => key.rem_euclid(self.partitions.len() as i64) as u16,
            Route::Partition(partition) => partition.0,
            Route::Crossing => return self.own_all(Purpose::Work).run(0, &self.clock, name, work),
        };
        let result = run_in(
            &mut self.partitions[usize::from(home)].enter(),
            self.count(),
            &self.clock,
            name,
            &mut work,
        );
        match result {
            Err(CallError::Aborted(Abort::Crossing)) => {
                self.own_all(Purpose::Work).run(home, &self.clock, name, work)
            }
            result => result,
        }
    }

    /// Runs a procedure over all partitions.
    fn call_crossing<P: Procedure>(&self, procedure: &P, args: &P::Args) -> Result<P::Output, CallError> {
        let home = match procedure.route(args) {
            Route::Key(key) => key.rem_euclid(self.partitions.len() as i64) as u16,
            Route::Partition(partition) => partition.0,
            Route::Crossing => 0,
        };
        let mut owned = self.own_all(Purpose::Work);
        owned.run(home, &self.clock, procedure.name(), |tx| procedure.run(tx, args))
    }

    /// Runs `work` as one transaction over all partitions.
    pub fn crossing<R>(
        &self,
        name: &str,
        work: impl FnOnce(&mut Transaction<'_, '_>) -> Result<R, Abort>,
    ) -> Result<R, CallError> {
        self.own_all(Purpose::Work).run(0, &self.clock, name, work)
    }

    /// Runs `work` as one transaction over all partitions, with a snapshot of `scope` as it
    /// finds it. For statements that find the rows they change by a query.
    pub fn crossing_with_snapshot<R>(
        &self,
        name: &str,
        scope: &SnapshotScope,
        work: impl FnOnce(&mut Transaction<'_, '_>, Arc<DatabaseSnapshot>) -> Result<R, Abort>,
    ) -> Result<Result<R, CallError>, BudgetSpent> {
        let mut owned = self.own_all(Purpose::Work);
        let snapshot = owned.snapshot(scope)?;
        Ok(owned.run(0, &self.clock, name, |tx| work(tx, snapshot)))
    }

    /// Queues a call for the partition's executor thread; waits while the queue is full.
    pub fn submit<P: Procedure>(
        self: &Arc<Self>,
        procedure: Arc<P>,
        args: P::Args,
    ) -> Result<Pending<P::Output>, SubmitError>
    where
        P::Args: Send + 'static,
        P::Output: Send + 'static,
    {
        let (pending, partition, task) = self.queued(procedure, args);
        self.partitions[partition].submit(task)?;
        Ok(pending)
    }

    /// Queues a call if there is room.
    pub fn try_submit<P: Procedure>(
        self: &Arc<Self>,
        procedure: Arc<P>,
        args: P::Args,
    ) -> Result<Pending<P::Output>, SubmitError>
    where
        P::Args: Send + 'static,
        P::Output: Send + 'static,
    {
        let (pending, partition, task) = self.queued(procedure, args);
        let queued = self.partitions[partition].try_submit(task, partition as u16);
        queued.map(|()| pending).map_err(|(error, _)| error)
    }

    fn queued<P: Procedure>(
        self: &Arc<Self>,
        procedure: Arc<P>,
        args: P::Args,
    ) -> (Pending<P::Output>, usize, Task)
    where
        P::Args: Send + 'static,
        P::Output: Send + 'static,
    {
        let (pending, deliver) = Pending::new();
        // Weak, because the queue that holds the task belongs to the partitions.
        let (this, clock) = (Arc::downgrade(self), self.clock.clone());
        let partitions = self.count();
        let route = procedure.route(&args);
        let partition = match route {
            Route::Key(key) => key.rem_euclid(i64::from(partitions)) as usize,
            Route::Partition(partition) => partition.index(),
            Route::Crossing => 0,
        };
        let crosses = route == Route::Crossing;
        let task: Task = Box::new(move |state| {
            let result = match state {
                None => Err(CallError::Closed),
                Some(_) if crosses => Err(CallError::Aborted(Abort::Crossing)),
                Some(state) => {
                    run_in(state, partitions, &clock, procedure.name(), |tx| procedure.run(tx, &args))
                }
            };
            match result {
                // The executor holds its token here, so the crossing run needs a thread of its own
                // to wait for the barrier.
                Err(CallError::Aborted(Abort::Crossing)) => {
                    let run = move || {
                        let result = this.upgrade().map(|this| this.call_crossing(&*procedure, &args));
                        deliver.put(result.unwrap_or(Err(CallError::Closed)));
                    };
                    // Without a thread the closure is dropped, and the caller learns of it.
                    let _ = albireo_env::spawn("albireo-cross", run);
                }
                result => deliver.put(result),
            }
        });
        (pending, partition, task)
    }

    /// Takes a snapshot of `scope` between two transactions.
    pub fn snapshot(&self, scope: &SnapshotScope) -> Result<Arc<DatabaseSnapshot>, BudgetSpent> {
        self.own_all(Purpose::Snapshot).snapshot(scope)
    }

    /// Runs `work` with all partitions at its hands and nobody else about: for changes of tables.
    pub fn exclusively<R>(&self, work: impl FnOnce(&mut Exclusive<'_>) -> R) -> R {
        let mut all = self.own_all(Purpose::Work);
        let result = work(&mut all);
        let gone = all.take_gone();
        drop(all);
        // Whatever was dropped is freed after everybody else may go on.
        drop(gone);
        result
    }

    /// Looks at a table of one partition (of a shared one, at its only copy).
    pub fn with_table<R>(
        &self,
        table: TableHandle,
        partition: PartitionId,
        look: impl FnOnce(&Table) -> R,
    ) -> R {
        self.with_table_if_there(table, partition, look).expect("the table exists")
    }

    /// As [`Partitions::with_table`]; `None` if the table was dropped.
    pub fn with_table_if_there<R>(
        &self,
        table: TableHandle,
        partition: PartitionId,
        look: impl FnOnce(&Table) -> R,
    ) -> Option<R> {
        let state = self.partitions[partition.index()].enter();
        let tables = match table.shared {
            true => &state.data.shared.as_ref().expect("no crossing owner is about").tables,
            false => &state.data.tables,
        };
        tables.get(table.id.index())?.as_ref().map(look)
    }

    /// What happened so far, over all partitions.
    pub fn counters(&self) -> PartitionCounters {
        let empty = data::pauses();
        let mut sum = PartitionCounters {
            committed: 0,
            rolled_back: 0,
            pauses_ns: empty.clone(),
            snapshot_pauses_ns: empty,
        };
        for partition in &self.partitions {
            let state = partition.enter();
            sum.committed += state.committed;
            sum.rolled_back += state.rolled_back;
            sum.pauses_ns.add(&state.pauses).expect("all have the same bounds");
            sum.snapshot_pauses_ns.add(&state.snapshot_pauses).expect("all have the same bounds");
        }
        sum
    }

    /// Forgets the pauses seen so far.
    pub fn reset_pauses(&self) {
        for partition in &self.partitions {
            let mut state = partition.enter();
            state.pauses.reset();
            state.snapshot_pauses.reset();
        }
    }

    /// Memory by table.
    pub fn memory(&self) -> MemoryUse {
        let mut usage = MemoryUse::default();
        for (i, partition) in self.partitions.iter().enumerate() {
            let state = partition.enter();
            usage.undo_bytes += state.undo.memory_bytes() as u64;
            let shared = state.data.shared.as_ref().filter(|_| i == 0);
            let tables = state.data.tables.iter().chain(shared.iter().flat_map(|s| &s.tables)).flatten();
            for table in tables {
                let (id, memory) = (table.spec().id, table.memory());
                match usage.tables.iter_mut().find(|(other, ..)| *other == id) {
                    Some((.., sum)) => {
                        sum.blocks_bytes += memory.blocks_bytes;
                        sum.heaps_bytes += memory.heaps_bytes;
                        sum.indexes_bytes += memory.indexes_bytes;
                    }
                    None => usage.tables.push((id, table.spec().name.clone(), memory)),
                }
            }
        }
        usage
    }

    fn own_all(&self, purpose: Purpose) -> Exclusive<'_> {
        Exclusive::enter(&self.partitions, self.crossing.lock(), &self.registry, purpose)
    }
}
