//! All partitions in one hand: crossing transactions, changes of tables, snapshots.

use std::sync::Arc;

use albireo_base::progress::{Phase, StatementProgress, Unit};
use albireo_base::{PartitionId, TableId};
use albireo_redo::{Header, Kind, Log};
use albireo_storage::{
    BudgetSpent, DatabaseSnapshot, Layout, Placement, SnapshotRegistry, SnapshotScope, Table, TableError,
    TableSpec,
};
use parking_lot::MutexGuard;

use crate::data::{PartitionData, SharedTables};
use crate::executor::{Partition, Purpose};
use crate::handle::TableHandle;
use crate::journal::Receipt;
use crate::parts::snapshot_of;
use crate::run::{count, run};
use crate::token::Token;
use crate::{Abort, Call, CallError, Transaction};

/// The tokens of all partitions, and with them all references to the shared tables. Dropped, they are given back
/// and the barrier is lowered.
pub(crate) struct Tokens<'a> {
    states: Vec<Token<'a>>,
    partitions: &'a [Arc<Partition>],
    purpose: Purpose,
}

impl<'a> Tokens<'a> {
    /// Takes them; the barrier has been raised for `purpose`, and nobody else takes them at the same time.
    pub(crate) fn take_raised(partitions: &'a [Arc<Partition>], purpose: Purpose) -> Self {
        let states = partitions.iter().map(|p| p.enter_raised()).collect();
        let mut tokens = Self { states, partitions, purpose };
        for (n, state) in tokens.states.iter_mut().enumerate() {
            assert!(state.tx.undo.is_empty(), "the barrier stands between two transactions");
            debug_assert!(state.parked.is_none(), "what was in place has been taken back");
            let data = state.data_mut();
            assert_eq!(data.id.index(), n, "tokens are taken in the order of partitions");
            assert!(data.shared.is_some(), "the owner before gave the shared tables back");
            if n > 0 {
                data.shared = None;
            }
        }
        tokens
    }

    /// Takes a snapshot of `scope`.
    ///
    /// # Errors
    /// Snapshots hold as much memory as they may.
    pub(crate) fn snapshot(
        &mut self,
        registry: &Arc<SnapshotRegistry>,
        scope: &SnapshotScope,
    ) -> Result<Arc<DatabaseSnapshot>, BudgetSpent> {
        snapshot_of(self.states.iter_mut().map(|state| state.data_mut()), registry, scope)
    }

    fn shared(&mut self) -> &mut SharedTables {
        self.states[0].data_mut().shared_mut().expect("the owner of all partitions holds the only reference")
    }
}

impl Drop for Tokens<'_> {
    fn drop(&mut self) {
        let shared = self.states[0].data().shared.clone();
        for state in &mut self.states[1..] {
            state.data_mut().shared = shared.clone();
        }
        drop(shared);
        self.states.clear();
        self.partitions.iter().for_each(|p| p.lower(self.purpose));
    }
}

/// All partitions, owned: nobody else reads or writes them as long as this lives.
pub struct Exclusive<'a> {
    tokens: Tokens<'a>,
    tx: MutexGuard<'a, Transaction>,
    registry: &'a Arc<SnapshotRegistry>,
    log: Option<&'a Log>,
    /// Tables that were dropped or replaced, to be freed when the partitions are given back.
    gone: Vec<Option<Table>>,
}

impl<'a> Exclusive<'a> {
    /// Raises the barrier and takes all tokens, and all references to the shared tables. `tx` says that
    /// nobody else does so at the same time.
    pub(crate) fn enter(
        partitions: &'a [Arc<Partition>],
        tx: MutexGuard<'a, Transaction>,
        registry: &'a Arc<SnapshotRegistry>,
        log: Option<&'a Log>,
    ) -> Self {
        partitions.iter().for_each(|p| p.raise(Purpose::Work));
        let tokens = Tokens::take_raised(partitions, Purpose::Work);
        Self { tokens, tx, registry, log, gone: Vec::new() }
    }

    /// What was dropped, for the caller to free when it has given the partitions back.
    pub(crate) fn take_gone(&mut self) -> Vec<Option<Table>> {
        std::mem::take(&mut self.gone)
    }

    /// Runs one transaction over all partitions, at home in `home`.
    pub(crate) fn run<R>(
        &mut self,
        home: u16,
        call: &Call<'_>,
        work: impl FnOnce(&mut Transaction) -> Result<R, Abort>,
    ) -> Result<(R, Receipt), CallError> {
        let gathered = Gathered::new(&mut self.tx, &mut self.tokens.states);
        let result = run(gathered.tx, self.log, home, call, work);
        drop(gathered);
        count(&mut self.tokens.states[home as usize], &result);
        result
    }

    /// Writes a change of definitions into the redo log, as text that makes it again. The change is to be
    /// made before these partitions are given back, and not at all if this fails.
    ///
    /// # Errors
    /// The log does not take it.
    pub fn log_definition(&mut self, text: &str) -> Result<Receipt, CallError> {
        let Some(log) = self.log else { return Ok(Receipt::default()) };
        let header = Header { kind: Kind::DEFINITION, time_us: self.tx.clock.unix_us() };
        let ticket = log.append_freeing(None, header, |out| out.extend_from_slice(text.as_bytes()));
        ticket.map(Receipt::of_record).map_err(CallError::Log)
    }

    /// Closes the present frame of the redo log: all that was done so far is in frames up to the one of the
    /// returned sequence, all that will be is in later ones and has ordinals from the returned one on.
    /// `None` without a log.
    pub fn seal_log(&mut self) -> Option<(u64, u64)> {
        self.log.map(|log| {
            let sealed = log.seal();
            (sealed.sequence, sealed.next_ordinal)
        })
    }

    /// Takes a snapshot of `scope`.
    ///
    /// # Errors
    /// Snapshots hold as much memory as they may.
    pub fn snapshot(&mut self, scope: &SnapshotScope) -> Result<Arc<DatabaseSnapshot>, BudgetSpent> {
        self.tokens.snapshot(self.registry, scope)
    }

    /// Whether all that `seen` covers is still as it shows it.
    pub(crate) fn is_current(&mut self, seen: &DatabaseSnapshot) -> bool {
        let mut own = self.tokens.states.iter().flat_map(|state| {
            let (id, tables) = (state.data().id, &state.data().tables);
            tables.iter().flatten().map(move |table| (id, table))
        });
        let own_same = own.all(|(partition, table)| seen.is_current(partition, table));
        own_same && self.shared().tables.iter().flatten().all(|table| seen.is_current(PartitionId(0), table))
    }

    /// Creates an empty table in every partition, or one shared by all; one with the same id is replaced.
    pub fn create_table(&mut self, spec: TableSpec, layout: &Arc<Layout>) -> TableHandle {
        let handle = TableHandle { id: spec.id, shared: spec.partition_by.is_none() };
        for (partition, table) in self.empty_tables(spec, layout) {
            self.put_table(handle, partition, table);
        }
        handle
    }

    /// An empty table for each partition that has one of this shape: for all of a partitioned table, for the
    /// first of a shared one. They are not in place yet.
    pub fn empty_tables(&self, spec: TableSpec, layout: &Arc<Layout>) -> Vec<(PartitionId, Table)> {
        let spec = Arc::new(spec);
        let partitions = self.tokens.states.len() as u16;
        let table = |partition: u16| {
            let placement = spec.partition_by.map(|column| Placement { column, partition, partitions });
            let table = Table::new(Arc::clone(&spec), Arc::clone(layout), placement, self.registry);
            (PartitionId(partition), table)
        };
        let count = if spec.partition_by.is_none() { 1 } else { partitions };
        (0..count).map(table).collect()
    }

    /// Puts a table of [`Exclusive::empty_tables`] in place, filled.
    pub fn put_table(&mut self, table: TableHandle, partition: PartitionId, filled: Table) {
        assert_eq!(filled.spec().id, table.id, "a table lies where its id says");
        assert!(!table.shared || partition == PartitionId(0), "a shared table is in one place");
        let old = match table.shared {
            true => put(&mut self.shared().tables, table.id, filled),
            false => put(&mut self.tokens.states[partition.index()].data_mut().tables, table.id, filled),
        };
        self.gone.push(old);
    }

    /// Write records will not be written again any more: gives back what was kept for that.
    pub fn end_replay(&mut self) {
        self.shared().tables.iter_mut().flatten().for_each(Table::end_finding);
        for state in &mut self.tokens.states {
            state.data_mut().tables.iter_mut().flatten().for_each(Table::end_finding);
        }
    }

    /// Drops all tables.
    pub fn drop_all_tables(&mut self) {
        let mut gone: Vec<Option<Table>> = self.shared().tables.drain(..).collect();
        for state in &mut self.tokens.states {
            gone.append(&mut state.data_mut().tables);
        }
        self.gone.append(&mut gone);
    }

    /// Puts an empty table of the same layout in the place of a table. Snapshots that see the old one keep it.
    pub fn truncate_table(&mut self, table: TableHandle, spec: TableSpec) {
        let layout = Arc::clone(self.tables(table)[0].layout());
        self.create_table(spec, &layout);
    }

    /// Drops a table. Snapshots that see it keep it.
    pub fn drop_table(&mut self, table: TableHandle) {
        let place = table.id.index();
        match table.shared {
            true => {
                let gone = self.shared().tables[place].take();
                self.gone.push(gone);
            }
            false => self
                .gone
                .extend(self.tokens.states.iter_mut().map(|state| state.data_mut().tables[place].take())),
        }
    }

    /// Adds the last index of `spec` to a table in all partitions, or nowhere; counts the table's rows in
    /// `progress`.
    ///
    /// # Errors
    /// Two rows have the same key, or memory is at its limit.
    pub fn create_index(
        &mut self,
        table: TableHandle,
        spec: TableSpec,
        progress: &StatementProgress,
    ) -> Result<(), TableError> {
        let total = self.tables(table).iter().map(|table| table.row_count()).sum();
        progress.begin(Phase::BuildingIndex, Unit::Rows, Some(total));
        let spec = Arc::new(spec);
        let mut done = 0;
        let mut failed = None;
        let before = Arc::clone(self.tables(table)[0].spec());
        assert_eq!(spec.indexes.len(), before.indexes.len() + 1, "the last index is the new one");
        for target in self.tables(table) {
            match target.add_index(Arc::clone(&spec), progress) {
                Ok(()) => done += 1,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let Some(error) = failed else { return Ok(()) };
        for target in self.tables(table).into_iter().take(done) {
            target.drop_index(spec.indexes.len() - 1, Arc::clone(&before));
        }
        Err(error)
    }

    /// Drops the index at `position`; `spec` is the shape without it.
    pub fn drop_index(&mut self, table: TableHandle, position: usize, spec: TableSpec) {
        let spec = Arc::new(spec);
        for target in self.tables(table) {
            target.drop_index(position, Arc::clone(&spec));
        }
    }

    /// The redo log, if there is one.
    pub(crate) fn log(&self) -> Option<&'a Log> {
        self.log
    }

    /// The time of the transaction that ran last.
    pub(crate) fn time_us(&mut self) -> i64 {
        self.tx.now()
    }

    /// What each partition holds, in order.
    pub(crate) fn each_data(&mut self) -> impl Iterator<Item = &mut PartitionData> {
        self.tokens.states.iter_mut().map(|state| state.data_mut())
    }

    fn shared(&mut self) -> &mut SharedTables {
        self.tokens.shared()
    }

    /// Whether nobody holds on to TIDs, in any partition.
    pub(crate) fn holds_no_tids(&self) -> bool {
        self.tokens.states.iter().all(|state| state.data().holds_no_tids())
    }

    pub(crate) fn tables(&mut self, table: TableHandle) -> Vec<&mut Table> {
        let index = table.id.index();
        match table.shared {
            true => self.shared().tables[index].iter_mut().collect(),
            false => {
                self.tokens.states.iter_mut().filter_map(|s| s.data_mut().tables[index].as_mut()).collect()
            }
        }
    }
}

/// The data of all partitions in the hands of one transaction; they get it back at its end, also by a panic.
struct Gathered<'g, 'a> {
    tx: &'g mut Transaction,
    states: &'g mut [Token<'a>],
}

impl<'g, 'a> Gathered<'g, 'a> {
    fn new(tx: &'g mut Transaction, states: &'g mut [Token<'a>]) -> Self {
        let data = states.iter_mut().map(|state| state.tx.sites.pop().expect("a partition has its data"));
        tx.sites.extend(data);
        Self { tx, states }
    }
}

impl Drop for Gathered<'_, '_> {
    fn drop(&mut self) {
        for (state, data) in self.states.iter_mut().zip(self.tx.sites.drain(..)) {
            state.tx.sites.push(data);
        }
    }
}

/// Puts a table in its place and gives back what was there.
fn put(tables: &mut Vec<Option<Table>>, id: TableId, table: Table) -> Option<Table> {
    if tables.len() <= id.index() {
        tables.resize_with(id.index() + 1, || None);
    }
    tables[id.index()].replace(table)
}
