//! All partitions of a database: calls, crossing transactions, tables, snapshots.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use albireo_base::{PartitionId, TableId};
use albireo_env::{Clock, Env};
use albireo_redo::Log;
use albireo_storage::{
    BudgetSpent, DatabaseSnapshot, Savepoint, SnapshotRegistry, SnapshotScope, Table, TableMemory,
};
use hdrhistogram::Histogram;
use parking_lot::Mutex;

use crate::arrivals::Arrivals;
use crate::data::{self, PartitionData, PartitionState, SharedTables};
use crate::elsewhere::Elsewhere;
use crate::exclusive::Exclusive;
use crate::executor::{Errand, Executor, Partition, Pending, Task};
use crate::handle::TableHandle;
use crate::journal::{self, Receipt};
use crate::locks::Waiters;
use crate::pace::Pace;
use crate::parked::Parked;
use crate::procedure::{Procedure, Route};
use crate::readers::Reader;
use crate::room::{Evictor, Room};
use crate::run::{run_end, run_in, run_part};
use crate::snapshot::{Desk, Request};
use crate::{Abort, Call, CallError, SubmitError, Transaction};

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
    /// Runs of transactions that ended because rows were not in memory, so that they were run again.
    pub runs_for_rows: u64,
    /// Chunks that were fetched for them. One for which several waited counts as often.
    pub chunks_fetched: u64,
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
    partitions: Arc<[Arc<Partition>]>,
    desk: Arc<Desk>,
    registry: Arc<SnapshotRegistry>,
    /// Held by whoever wants all partitions, so that there is one at a time.
    crossing: Mutex<Transaction>,
    log: OnceLock<Started>,
    clock: Clock,
    arrivals: Arrivals,
    waiters: Waiters,
    /// Bytes of what transactions of several statements have written where others were since.
    parked_bytes: Arc<AtomicU64>,
    room: Room,
    elsewhere: Elsewhere,
}

/// The redo log, and whether calls wait for it that do not say.
struct Started {
    log: Log,
    synchronous: bool,
}

impl Partitions {
    /// Empty partitions.
    pub fn new(config: PartitionsConfig, registry: Arc<SnapshotRegistry>, env: &Env) -> Self {
        let (shared, desk) = (Arc::new(SharedTables::default()), Arc::new(Desk::default()));
        let count = config.partitions.max(1);
        let partitions = (0..count)
            .map(|id| {
                let (shared, clock) = (Arc::clone(&shared), env.clock.clone());
                let state = PartitionState::new(PartitionId(id), count, shared, clock.clone());
                let errand = Arc::clone(&desk) as Arc<dyn Errand>;
                Arc::new(Partition::new(state, config.queue_capacity, clock, errand))
            })
            .collect();
        let crossing = Mutex::new(Transaction::crossing(count, env.clock.clone()));
        Self {
            partitions,
            desk,
            registry,
            crossing,
            log: OnceLock::new(),
            clock: env.clock.clone(),
            arrivals: Arrivals::default(),
            waiters: Waiters::default(),
            parked_bytes: Arc::default(),
            room: Room::default(),
            elsewhere: Elsewhere::default(),
        }
    }

    /// Has transactions that are refused for memory wait for this one to make room, and run again. The first counts.
    pub fn set_evictor(&self, evictor: Box<dyn Evictor>) {
        self.room.set(evictor);
    }

    /// A place for what a transaction of several statements writes.
    pub fn new_parked(&self) -> Arc<Parked> {
        Parked::new(&self.parked_bytes)
    }

    /// Bytes of what all such transactions have written where others were since.
    pub fn parked_bytes(&self) -> u64 {
        self.parked_bytes.load(Ordering::Relaxed)
    }

    /// Transactions of several statements that wait for each other.
    pub fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    /// From now on every transaction that changes something leaves a record in `log`. Calls that do not say
    /// otherwise are `synchronous`, or not.
    ///
    /// # Panics
    /// They have one already, or it has not a lane for each partition.
    pub fn start_log(&self, log: Log, synchronous: bool) {
        assert_eq!(log.lanes(), self.partitions.len(), "a lane for each partition");
        // Nobody may be inside of a transaction that has seen no log.
        let _all = self.own_all();
        assert!(self.log.set(Started { log, synchronous }).is_ok(), "partitions have one log");
    }

    /// The redo log, if there is one.
    #[inline]
    pub fn log(&self) -> Option<&Log> {
        self.log.get().map(|started| &started.log)
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
        let call = Call::new(procedure.route(args), procedure.name());
        self.transact(&call, |tx| procedure.run(tx, args))
    }

    /// As [`Partitions::call`], but returns when the transaction has run, with the receipt to wait for before
    /// anybody is told.
    #[inline]
    pub fn start_call<P: Procedure>(
        &self,
        procedure: &P,
        args: &P::Args,
    ) -> Result<(P::Output, Receipt), CallError> {
        let call = Call::new(procedure.route(args), procedure.name());
        self.start(&call, |tx| procedure.run(tx, args))
    }

    /// Runs `work` as [`Partitions::call`] runs a procedure that is routed so: again, over the partitions that it reaches
    /// for, if it finds that it crosses them.
    #[inline]
    pub fn transact<R>(
        &self,
        call: &Call<'_>,
        work: impl FnMut(&mut Transaction) -> Result<R, Abort>,
    ) -> Result<R, CallError> {
        let (value, receipt) = self.start(call, work)?;
        self.acknowledge(call.synchronous, receipt)?;
        Ok(value)
    }

    /// As [`Partitions::transact`], but returns when the transaction has run, with the receipt to wait
    /// for before anybody is told.
    #[inline]
    pub fn start<R>(
        &self,
        call: &Call<'_>,
        mut work: impl FnMut(&mut Transaction) -> Result<R, Abort>,
    ) -> Result<(R, Receipt), CallError> {
        if let Some(log) = self.log() {
            journal::wait_for_room(log);
        }
        let mut reached = None;
        let home = match call.route {
            Route::Crossing => return self.room.with_rows(|| self.own_all().run(0, call, &mut work)),
            route => self.home(route),
        };
        let ran = self.room.with_rows(|| {
            let mut state = self.partitions[home].enter();
            let result = run_in(&mut state, self.log(), call, &mut work);
            if let Err(CallError::Aborted(Abort::Crossing)) = result {
                reached = state.tx.take_reached();
            }
            result
        });
        match ran {
            Err(CallError::Aborted(Abort::Crossing)) => {
                self.run_across(PartitionId(home as u16), reached, call, work)
            }
            result => result,
        }
    }

    /// Runs a statement of `mine`, a transaction of several, in one partition, and leaves what it writes there until
    /// somebody else comes. `work` learns whether what the statements before have written there is in place; else it
    /// has to be [written again](Transaction::write_again).
    ///
    /// # Errors
    /// As [`Partitions::transact`]; [`Abort::Crossing`] too, which runs nothing again. Nothing of the statement is left.
    pub fn part<R>(
        &self,
        partition: PartitionId,
        call: &Call<'_>,
        mine: &Arc<Parked>,
        mut work: impl FnMut(&mut Transaction, bool) -> Result<R, Abort>,
    ) -> Result<R, CallError> {
        let (value, receipt) = self.room.with_rows(|| {
            let (mut state, in_place) = self.partitions[partition.index()].enter_for(mine);
            let value = run_part(&mut state, call, (mine, in_place), &mut work)?;
            Ok((value, self.log().map(|log| Receipt::of_reader(log.last_ticket(partition.index())))))
        })?;
        self.acknowledge(call.synchronous, receipt.unwrap_or_default())?;
        Ok(value)
    }

    /// Runs the end of `mine` in the only partition where it has been; as [`Partitions::part`], but what it has written
    /// is committed.
    ///
    /// # Errors
    /// As [`Partitions::transact`]; nothing of the transaction is left.
    pub fn last_part<R>(
        &self,
        partition: PartitionId,
        call: &Call<'_>,
        mine: &Arc<Parked>,
        mut work: impl FnMut(&mut Transaction, bool) -> Result<R, Abort>,
    ) -> Result<R, CallError> {
        if let Some(log) = self.log() {
            journal::wait_for_room(log);
        }
        let (value, receipt) = self.room.with_rows(|| {
            let (mut state, in_place) = self.partitions[partition.index()].enter_for(mine);
            run_end(&mut state, self.log(), call, |tx| work(tx, in_place))
        })?;
        self.acknowledge(call.synchronous, receipt)?;
        Ok(value)
    }

    /// Forgets what `mine` has written in a partition, and what `reader` has read there.
    pub fn forget_part(&self, partition: PartitionId, mine: &Arc<Parked>, reader: &Reader) {
        let (mut state, in_place) = self.partitions[partition.index()].enter_for(mine);
        if in_place {
            state.tx.roll_back_to(Savepoint::START);
        }
        state.tx.leave(reader);
    }

    /// Releases the locks that `reader` has taken in a partition in a step of its transaction and later.
    pub fn release_locks(&self, partition: PartitionId, reader: &Reader, since: u32) {
        let mut state = self.partitions[partition.index()].enter();
        state.tx.sites.iter_mut().for_each(|site| site.readers.release(reader, since));
    }

    /// Takes back what is in place in a partition, and keeps it as a record.
    pub fn vacate(&self, partition: PartitionId) {
        drop(self.partitions[partition.index()].enter());
    }

    /// The partition of rows whose partitioning column holds the whole number `key`.
    pub fn partition_of_key(&self, key: i64) -> PartitionId {
        PartitionId(self.home(Route::Key(key)) as u16)
    }

    /// Where a call with this route is at home.
    #[inline]
    fn home(&self, route: Route) -> usize {
        let home = match route {
            Route::Key(key) => key.rem_euclid(self.partitions.len() as i64) as usize,
            Route::Partition(partition) => partition.index(),
            Route::Crossing => 0,
        };
        debug_assert!(home < self.partitions.len(), "a call is at home in a partition that is there");
        home
    }

    /// Waits until a crash cannot take back what the receipt is for, if the transaction or else the call
    /// `asked` for that; without a word, as the log was started.
    ///
    /// # Errors
    /// The log failed before.
    #[inline]
    pub fn acknowledge(&self, asked: Option<bool>, receipt: Receipt) -> Result<(), CallError> {
        match self.log.get() {
            Some(Started { log, synchronous }) if receipt.is_awaited(asked, *synchronous) => {
                receipt.wait(log)
            }
            _ => Ok(()),
        }
    }

    /// Runs `work` as one transaction over all partitions.
    pub fn crossing<R>(
        &self,
        call: &Call<'_>,
        work: impl FnMut(&mut Transaction) -> Result<R, Abort>,
    ) -> Result<R, CallError> {
        self.crossing_at(Route::Crossing, call, work)
    }

    /// As [`Partitions::crossing`], for what can be done once: no row that it reads or writes is away.
    pub fn crossing_once<R>(
        &self,
        call: &Call<'_>,
        work: impl FnOnce(&mut Transaction) -> Result<R, Abort>,
    ) -> Result<R, CallError> {
        let ran = self.own_all().run(0, call, work);
        let (value, receipt) = ran?;
        self.acknowledge(call.synchronous, receipt)?;
        Ok(value)
    }

    /// As [`Partitions::crossing`], at home where a call with the route `home` is.
    pub fn crossing_at<R>(
        &self,
        home: Route,
        call: &Call<'_>,
        mut work: impl FnMut(&mut Transaction) -> Result<R, Abort>,
    ) -> Result<R, CallError> {
        let home = self.home(home) as u16;
        let (value, receipt) = self.room.with_rows(|| self.own_all().run(home, call, &mut work))?;
        self.acknowledge(call.synchronous, receipt)?;
        Ok(value)
    }

    /// Runs `work` as one transaction over all partitions, with a snapshot of `scope` as it
    /// finds it. For statements that find the rows they change by a query. It is run once: see [`Partitions::with_rows`].
    pub fn crossing_with_snapshot<R>(
        &self,
        call: &Call<'_>,
        scope: &SnapshotScope,
        work: impl FnOnce(&mut Transaction, Arc<DatabaseSnapshot>) -> Result<R, Abort>,
    ) -> Result<Result<R, CallError>, BudgetSpent> {
        let mut all = self.own_all();
        let snapshot = all.snapshot(scope)?;
        let ran = all.run(0, call, |tx| work(tx, snapshot));
        drop(all);
        Ok(ran.and_then(|(value, receipt)| self.acknowledge(call.synchronous, receipt).map(|()| value)))
    }

    /// Runs a transaction, again if rows that it needs are not in memory, or there is no memory for it but could be. When
    /// `attempt` returns, it owns no partition.
    ///
    /// # Errors
    /// Its own, and what cannot be read.
    pub fn with_rows<R>(&self, attempt: impl FnMut() -> Result<R, CallError>) -> Result<R, CallError> {
        self.room.with_rows(attempt)
    }

    /// Whether a transaction that ended so is run again: rows that it needs are not in memory, or there is no memory for it
    /// but could be.
    pub fn runs_again(&self, abort: &Abort) -> bool {
        self.room.helps(abort)
    }

    /// Runs `work` as one transaction over all partitions if they still are as the snapshot `seen` shows them: what
    /// was found on it then holds at this moment too, and the transaction is serializable. `None`: something that
    /// it covers has changed, or rows had to be fetched, and nothing was done.
    ///
    /// # Errors
    /// As [`Partitions::crossing`].
    pub fn crossing_if_current<R>(
        &self,
        call: &Call<'_>,
        seen: Arc<DatabaseSnapshot>,
        work: impl FnOnce(&mut Transaction) -> Result<R, Abort>,
    ) -> Result<Option<R>, CallError> {
        let mut all = self.own_all();
        if !all.is_current(&seen) {
            return Ok(None);
        }
        // What nobody sees any more need not be copied when it is written.
        drop(seen);
        let ran = all.run(0, call, work);
        drop(all);
        if let Err(CallError::Aborted(Abort::Away(away))) = &ran {
            self.room.fetch(away)?;
            return Ok(None);
        }
        let (value, receipt) = ran?;
        self.acknowledge(call.synchronous, receipt)?;
        Ok(Some(value))
    }

    /// As [`Partitions::crossing_if_current`], but where rows had to be fetched, it is tried again, as long as all is as it was
    /// `seen`: what was found need not be found again. `None` too if there was no memory; room is made then.
    ///
    /// # Errors
    /// As [`Partitions::crossing`].
    pub fn crossing_while_current<R>(
        &self,
        call: &Call<'_>,
        seen: Arc<DatabaseSnapshot>,
        mut work: impl FnMut(&mut Transaction) -> Result<R, Abort>,
    ) -> Result<Option<R>, CallError> {
        let (mut seen, mut is_short) = (Some(seen), false);
        let ran = self.room.with_rows(|| {
            let Some(then) = seen.take() else { return Ok(None) };
            let mut all = self.own_all();
            if !all.is_current(&then) {
                return Ok(None);
            }
            let scope = then.scope().clone();
            // What nobody sees any more need not be copied when it is written.
            drop(then);
            match all.run(0, call, &mut work) {
                Err(CallError::Aborted(Abort::Away(away))) => {
                    // Nothing was done, so what was seen is so still.
                    seen = all.snapshot(&scope).ok();
                    Err(CallError::Aborted(Abort::Away(away)))
                }
                // What is kept for the snapshot might be the memory that is wanted.
                Err(CallError::Aborted(abort)) if self.room.helps(&abort) => {
                    is_short = true;
                    Ok(None)
                }
                ran => ran.map(Some),
            }
        });
        if is_short {
            self.room.make();
        }
        match ran {
            Ok(None) => Ok(None),
            Ok(Some((value, receipt))) => {
                self.acknowledge(call.synchronous, receipt)?;
                Ok(Some(value))
            }
            Err(CallError::Aborted(abort)) if self.room.helps(&abort) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether all that a snapshot covers is still as it shows it.
    pub fn is_current(&self, seen: &DatabaseSnapshot) -> bool {
        self.own_all().is_current(seen)
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
        let (pending, deliver) =
            Pending::new(self.log.get().map(|started| (started.log.clone(), started.synchronous)));
        // Weak, because the queue that holds the task belongs to the partitions.
        let this = Arc::downgrade(self);
        let partition = self.home(procedure.route(&args));
        let task: Task = Box::new(move |state| {
            let (Some(state), Some(this)) = (state, this.upgrade()) else {
                return deliver.put(Err(CallError::Closed));
            };
            let route = procedure.route(&args);
            let result = match route {
                Route::Crossing => Err(CallError::Aborted(Abort::Crossing)),
                route => {
                    let call = Call::new(route, procedure.name());
                    run_in(state, this.log(), &call, |tx| procedure.run(tx, &args))
                }
            };
            match result {
                // The executor holds its token here, so another thread has to wait for the barrier, or for rows.
                Err(CallError::Aborted(abort)) if abort == Abort::Crossing || this.room.helps(&abort) => {
                    let elsewhere = this.elsewhere.clone();
                    let (this, reached) = (Arc::downgrade(&this), state.tx.take_reached());
                    let run = move || {
                        let Some(this) = this.upgrade() else { return deliver.put(Err(CallError::Closed)) };
                        let call = Call::new(route, procedure.name());
                        let home = PartitionId(this.home(route) as u16);
                        let work = |tx: &mut Transaction| procedure.run(tx, &args);
                        deliver.put(match abort {
                            Abort::Crossing => this.run_across(home, reached, &call, work),
                            abort => this.room.again(abort, || this.start(&call, work)),
                        });
                    };
                    elsewhere.run(run);
                }
                result => deliver.put(result),
            }
        });
        (pending, partition, task)
    }

    /// Takes a snapshot of `scope` between two transactions, and waits until a crash cannot take back what
    /// it shows.
    pub fn snapshot(&self, scope: &SnapshotScope) -> Result<Arc<DatabaseSnapshot>, BudgetSpent> {
        let (snapshot, receipt) = self.take_snapshot(scope)?;
        if let Some(Started { log, synchronous: true }) = self.log.get() {
            // If the log fails, readers go on: this is no error.
            let _ = receipt.wait(log);
        }
        Ok(snapshot)
    }

    /// As [`Partitions::snapshot`], for a change that is made if all is still as it is seen: once that is there to stay, so is this.
    pub fn snapshot_at_once(&self, scope: &SnapshotScope) -> Result<Arc<DatabaseSnapshot>, BudgetSpent> {
        self.take_snapshot(scope).map(|(snapshot, _)| snapshot)
    }

    fn take_snapshot(&self, scope: &SnapshotScope) -> Result<(Arc<DatabaseSnapshot>, Receipt), BudgetSpent> {
        let (partitions, registry) = (Arc::clone(&self.partitions), Arc::clone(&self.registry));
        let request = Request::new(scope.clone(), partitions, registry, self.log().cloned());
        let alone = self.crossing.lock();
        let taken = request.ask(&self.desk);
        drop(alone);
        taken
    }

    /// Runs `work` with all partitions at its hands and nobody else about: for changes of tables.
    pub fn exclusively<R>(&self, work: impl FnOnce(&mut Exclusive<'_>) -> R) -> R {
        let mut all = self.own_all();
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
            true => &state.data().shared.as_ref().expect("no crossing owner is about").tables,
            false => &state.data().tables,
        };
        tables.get(table.id.index())?.as_ref().map(look)
    }

    /// For steps of something long.
    pub fn pace(&self) -> Pace<'_> {
        Pace::new(self)
    }

    pub(crate) fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The transactions of a partition so far; `None` while somebody owns it.
    pub(crate) fn transactions_so_far(&self, partition: PartitionId) -> Option<u64> {
        self.partitions[partition.index()].transactions_so_far()
    }

    /// Lets somebody work on what a partition holds, between two transactions.
    pub(crate) fn own<R>(&self, partition: PartitionId, work: impl FnOnce(&mut PartitionData) -> R) -> R {
        work(self.partitions[partition.index()].enter().data_mut())
    }

    /// What happened so far, over all partitions.
    pub fn counters(&self) -> PartitionCounters {
        let empty = data::pauses();
        let (runs_for_rows, chunks_fetched) = self.room.fetches();
        let mut sum = PartitionCounters {
            committed: 0,
            rolled_back: 0,
            runs_for_rows,
            chunks_fetched,
            pauses_ns: empty.clone(),
            snapshot_pauses_ns: empty,
        };
        for partition in self.partitions.iter() {
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
        for partition in self.partitions.iter() {
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
            usage.undo_bytes += state.tx.undo.memory_bytes() as u64;
            let shared = state.data().shared.as_ref().filter(|_| i == 0);
            let tables = state.data().tables.iter().chain(shared.iter().flat_map(|s| &s.tables)).flatten();
            for table in tables {
                let (id, memory) = (table.spec().id, table.memory());
                match usage.tables.iter_mut().find(|(other, ..)| *other == id) {
                    Some((.., sum)) => {
                        sum.blocks_bytes += memory.blocks_bytes;
                        sum.heaps_bytes += memory.heaps_bytes;
                        sum.indexes_bytes += memory.indexes_bytes;
                        sum.frozen_bytes += memory.frozen_bytes;
                        sum.shared_texts_bytes += memory.shared_texts_bytes;
                        sum.unshared_texts_bytes += memory.unshared_texts_bytes;
                    }
                    None => usage.tables.push((id, table.spec().name.clone(), memory)),
                }
            }
        }
        usage
    }

    /// Waits while somebody has, or waits for, all partitions: others who want several come later.
    pub(crate) fn after_who_wants_all(&self) {
        if self.crossing.is_locked() {
            drop(self.crossing.lock());
        }
    }

    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    pub(crate) fn all(&self) -> &[Arc<Partition>] {
        &self.partitions
    }

    pub(crate) fn own_all(&self) -> Exclusive<'_> {
        if let Some(log) = self.log() {
            journal::wait_for_room(log);
        }
        let tx = self.crossing.lock();
        Exclusive::enter(&self.partitions, tx, &self.registry, self.log())
    }
}
