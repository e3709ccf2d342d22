//! One writer and several readers on other threads, for the sanitizers: the readers scan snapshots
//! and drop them in any order while the writer appends to the chunk and the heaps that they read.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use albireo_base::{ColumnId, PartitionId, SqlType, TableId, Tid, Value};
use albireo_storage::{
    BlockPool, BudgetPolicy, ColumnSpec, DatabaseSnapshot, IndexKind, IndexSpec, LayoutChoice,
    SnapshotBuilder, SnapshotRegistry, SnapshotScope, Table, TableSpec, UndoLog,
};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use parking_lot::{Condvar, Mutex};

const READERS: usize = 3;
const ROUNDS: i64 = 40;
/// Rows that are there from the beginning; they always add up to the same sum.
const ACCOUNTS: i64 = 500;

/// Snapshots on their way from the writer to the readers.
#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
    /// Held while a reader gives a snapshot back.
    ending: Mutex<()>,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<(i64, Arc<DatabaseSnapshot>)>,
    closed: bool,
}

impl Queue {
    fn put(&self, round: i64, snapshot: Arc<DatabaseSnapshot>) {
        self.state.lock().waiting.push_back((round, snapshot));
        self.changed.notify_one();
    }

    fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    fn take(&self) -> Option<(i64, Arc<DatabaseSnapshot>)> {
        let mut state = self.state.lock();
        loop {
            if let Some(next) = state.waiting.pop_front() {
                return Some(next);
            }
            if state.closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    /// Gives a snapshot back, one reader at a time: where the standard library is not instrumented,
    /// ThreadSanitizer does not see that the last owner of an `Arc` synchronizes with the others
    /// (`tsan-suppressions.txt`), and would call the next use of the freed blocks a race with what they read.
    fn give_back(&self, snapshot: Arc<DatabaseSnapshot>) {
        let _in_turns = self.ending.lock();
        drop(snapshot);
    }
}

fn spec() -> TableSpec {
    let column = |name: &str, ty, nullable| ColumnSpec { name: name.to_owned(), ty, nullable };
    TableSpec {
        id: TableId(0),
        name: "account".to_owned(),
        columns: vec![
            column("id", SqlType::BigInt, false),
            column("balance", SqlType::BigInt, false),
            column("note", SqlType::Text, true),
            column("tag", SqlType::Varchar(6), true),
        ],
        layout: LayoutChoice::Groups(vec![vec![ColumnId(0), ColumnId(3)]]),
        indexes: vec![IndexSpec {
            name: "pk".to_owned(),
            columns: vec![ColumnId(0)],
            unique: true,
            kind: IndexKind::Hash,
        }],
        partition_by: None,
        checks: Vec::new(),
    }
}

fn row(id: i64, balance: i64, round: i64) -> [Value; 4] {
    let note = format!("written in round {round} for account {id}");
    let tag = if id % 3 == 0 { Value::Null } else { Value::Text("é".repeat((id % 7) as usize)) };
    [Value::BigInt(id), Value::BigInt(balance), Value::Text(note), tag]
}

/// Moves money, writes notes, appends rows of balance 0 and deletes older ones.
fn write(table: &mut Table, undo: &mut UndoLog, round: i64) {
    for n in 0..60 {
        let (from, to) = ((round * 31 + n * 7) % ACCOUNTS, (round * 17 + n * 13) % ACCOUNTS);
        for (account, amount) in [(from, -n), (to, n)] {
            let tid = Tid(account as u64);
            let Value::BigInt(balance) = table.value(tid, ColumnId(1)) else { panic!("a balance") };
            let [_, balance, note, _] = row(account, balance + amount, round);
            table.update_values(undo, tid, &[(ColumnId(1), balance), (ColumnId(2), note)]).expect("memory");
        }
        let id = ACCOUNTS + round * 60 + n;
        table.insert_values(undo, &row(id, 0, round)).expect("memory");
    }
    let dead: Vec<Tid> = table.scan_from(Tid(ACCOUNTS as u64)).step_by(3).take(20).collect();
    for tid in dead {
        table.delete(undo, tid).expect("memory");
    }
}

fn commit(table: &mut Table, undo: &mut UndoLog) {
    let table = RefCell::new(table);
    undo.commit(
        |_, _, tid| table.borrow_mut().free_slot(tid),
        |_, _, chunk, heap| table.borrow_mut().tidy_heap(chunk, heap),
    );
}

/// Reads every value of a snapshot and checks that no transaction is half seen.
fn scan(snapshot: &Arc<DatabaseSnapshot>, round: i64) {
    let view = snapshot.table(TableId(0)).expect("the table is in the snapshot");
    let (mut sum, mut rows) = (0, 0);
    for i in 0..view.chunk_count() {
        let chunk = view.chunk(i);
        let live = chunk.live();
        let (ids, balances) = (chunk.column(ColumnId(0)), chunk.column(ColumnId(1)));
        let (notes, tags) = (chunk.column(ColumnId(2)), chunk.column(ColumnId(3)));
        let (notes, tags) = (notes.as_string_view(), tags.as_string_view());
        let raw = chunk.raw_i64(ColumnId(1)).expect("64 bits");
        for slot in (0..chunk.slots()).filter(|&slot| live.as_ref().is_none_or(|bits| bits.value(slot))) {
            let id = ids.as_primitive::<Int64Type>().value(slot);
            sum += balances.as_primitive::<Int64Type>().value(slot);
            rows += 1;
            assert_eq!(raw[slot], balances.as_primitive::<Int64Type>().value(slot));
            let note = notes.value(slot);
            let written = note.strip_prefix("written in round ").expect("a note");
            let written: i64 = written.split(' ').next().and_then(|n| n.parse().ok()).expect("a round");
            assert!(written <= round, "a snapshot shows the future");
            assert!(note.ends_with(&format!(" {id}")));
            assert_eq!(tags.is_null(slot), id % 3 == 0);
            if id % 3 != 0 {
                assert_eq!(tags.value(slot).chars().count() as i64, id % 7);
            }
        }
    }
    assert_eq!(sum, ACCOUNTS * 1000);
    assert_eq!(rows, view.row_count());
}

/// Scans what comes; keeps some snapshots for later, so that they end in any order.
fn read(queue: &Queue, reader: usize) {
    let mut kept = Vec::new();
    while let Some((round, snapshot)) = queue.take() {
        scan(&snapshot, round);
        kept.push((round, snapshot));
        if kept.len() > reader + 1 {
            let (round, snapshot) = kept.swap_remove((round as usize * 7) % kept.len());
            scan(&snapshot, round);
            queue.give_back(snapshot);
        }
    }
    for (round, snapshot) in kept {
        scan(&snapshot, round);
        queue.give_back(snapshot);
    }
}

fn write_all(table: &mut Table, registry: &Arc<SnapshotRegistry>, queue: &Queue) {
    let mut undo = UndoLog::default();
    for id in 0..ACCOUNTS {
        table.insert_values(&mut undo, &row(id, 1000, 0)).expect("memory");
    }
    commit(table, &mut undo);
    for round in 1..=ROUNDS {
        write(table, &mut undo, round);
        if round % 5 == 0 {
            while let Some(record) = undo.pop(albireo_storage::Savepoint::START) {
                table.undo(&undo, &record);
            }
        } else {
            commit(table, &mut undo);
        }
        let mut builder = SnapshotBuilder::new(registry, SnapshotScope::All).expect("the budget is large");
        builder.add(PartitionId(0), table);
        let snapshot = builder.finish();
        for _ in 0..round % 3 {
            queue.put(round, Arc::clone(&snapshot));
        }
        queue.put(round, snapshot);
    }
    queue.close();
}

#[test]
fn readers_of_snapshots_see_whole_transactions_while_the_writer_goes_on() {
    let pool = BlockPool::new(256 << 20);
    let registry = Arc::new(SnapshotRegistry::new(pool.clone(), u64::MAX, BudgetPolicy::RefuseNew));
    let spec = Arc::new(spec());
    let layout = Table::layout_of(&spec).expect("the layout is possible");
    let mut table = Table::new(spec, layout, None, &registry);
    let queue = Queue::default();
    albireo_env::scope(|scope| {
        for reader in 0..READERS {
            let queue = &queue;
            albireo_env::spawn_scoped(scope, "reader", move || read(queue, reader)).expect("a thread");
        }
        write_all(&mut table, &registry, &queue);
        // The table goes while readers still scan.
        drop(table);
    });
    assert_eq!(registry.counters().live, 0);
    drop(registry);
    assert_eq!(pool.in_use_bytes(), 0);
}

#[test]
fn blocks_taken_and_given_back_on_many_threads_are_never_shared() {
    let pool = BlockPool::new(64 << 20);
    albireo_env::scope(|scope| {
        for thread in 0..READERS as u8 {
            let pool = &pool;
            albireo_env::spawn_scoped(scope, "taker", move || churn(pool, thread)).expect("a thread");
        }
    });
    assert_eq!(pool.in_use_bytes(), 0);
}

fn churn(pool: &BlockPool, thread: u8) {
    let mut held = VecDeque::new();
    for n in 0..2000usize {
        let bytes = 64 << (n * 7 % 12);
        let block = pool.alloc(bytes).expect("memory");
        // SAFETY: the block is ours and has `bytes` bytes.
        unsafe { block.as_ptr().write_bytes(thread, bytes) };
        held.push_back((block, bytes));
        if held.len() > 30 || n > 1970 {
            let (block, bytes) = held.pop_front().expect("blocks are held");
            // SAFETY: ours, written above, given back once.
            unsafe {
                let content = std::slice::from_raw_parts(block.as_ptr(), bytes);
                assert!(content.iter().all(|&byte| byte == thread));
                pool.free(block, bytes);
            }
        }
    }
    for (block, bytes) in held {
        // SAFETY: as above.
        unsafe { pool.free(block, bytes) };
    }
}
