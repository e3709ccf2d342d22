//! The partitions of a join probe side by side: neither waits until another has read all chunks.

mod support;

use std::collections::HashSet;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Duration;

use albireo_base::{ColumnId, SqlType};
use albireo_olap::memory::{MemoryDatabase, MemoryRelation};
use albireo_olap::relation::{ChunkData, ChunkVersion, Relation, RelationData, Snapshot};
use albireo_olap::{OlapConfig, RunOptions};
use arrow::array::{ArrayRef, Int32Array, RecordBatch};
use arrow::buffer::{BooleanBuffer, ScalarBuffer};
use parking_lot::{Condvar, Mutex};
use support::{Fixture, relation, rows};

const CHUNK: i32 = 16_384;
const CHUNKS: i32 = 40;
/// For one that waits in vain: then the test fails.
const LONG: Duration = Duration::from_secs(20);

/// Where threads that read a relation meet.
#[derive(Debug, Default)]
struct Meeting {
    state: Mutex<State>,
    came: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_held: bool,
    threads: HashSet<ThreadId>,
}

impl Meeting {
    fn come(&self) {
        let mut state = self.state.lock();
        if !state.is_held {
            return;
        }
        state.threads.insert(std::thread::current().id());
        self.came.notify_all();
        while state.is_held && state.threads.len() < 2 {
            if self.came.wait_for(&mut state, LONG).timed_out() {
                state.is_held = false;
            }
        }
    }
}

/// A relation whose readers meet.
#[derive(Debug)]
struct Met {
    data: MemoryRelation,
    meeting: Arc<Meeting>,
}

struct MetChunk<'a> {
    chunk: Box<dyn ChunkData + 'a>,
    meeting: &'a Meeting,
}

impl RelationData for Met {
    fn row_count(&self) -> u64 {
        self.data.row_count()
    }

    fn chunk_count(&self) -> usize {
        self.data.chunk_count()
    }

    fn chunk(&self, i: usize) -> Box<dyn ChunkData + '_> {
        Box::new(MetChunk { chunk: self.data.chunk(i), meeting: &self.meeting })
    }
}

impl ChunkData for MetChunk<'_> {
    fn slots(&self) -> usize {
        self.chunk.slots()
    }

    fn live(&self) -> Option<BooleanBuffer> {
        self.chunk.live()
    }

    fn column(&self, column: ColumnId) -> ArrayRef {
        self.meeting.come();
        self.chunk.column(column)
    }

    fn raw_i64(&self, column: ColumnId) -> Option<ScalarBuffer<i64>> {
        self.chunk.raw_i64(column)
    }

    fn version(&self, column: ColumnId) -> ChunkVersion {
        self.chunk.version(column)
    }
}

fn table(id: u32, name: &str) -> Relation {
    relation(id, name, &[("k", SqlType::Integer), ("n", SqlType::Integer)], &[0])
}

fn batches(relation: &Relation, chunks: i32, rows: i32) -> Vec<RecordBatch> {
    let batch = |chunk: i32| {
        let all = || chunk * CHUNK..chunk * CHUNK + rows;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from_iter_values(all())),
            Arc::new(Int32Array::from_iter_values(all().map(|row| row % 100))),
        ];
        RecordBatch::try_new(relation.arrow_schema(), columns).unwrap()
    };
    (0..chunks).map(batch).collect()
}

#[test]
fn partitions_of_a_join_probe_side_by_side() {
    let (many, few) = (table(1, "many"), table(2, "few"));
    let (lines, names) = (batches(&many, CHUNKS, CHUNK), batches(&few, 1, 50));
    let config = OlapConfig { threads: 2, ..OlapConfig::default() };
    let f = Fixture::with_config(vec![(many.clone(), lines.clone()), (few.clone(), names.clone())], config);
    let meeting = Arc::new(Meeting::default());
    let mut database = MemoryDatabase::default();
    let data = MemoryRelation::new(lines, 1);
    database.add(many, Arc::new(Met { data, meeting: Arc::clone(&meeting) }));
    database.add(few, Arc::new(MemoryRelation::new(names, 1)));
    let snapshot: Arc<dyn Snapshot> = Arc::new(database);
    let ask = |sql: &str| {
        let prepared = f.prepare(sql).unwrap();
        rows(&f.olap.run(&prepared, &[], &snapshot, RunOptions::default()).unwrap().batches)
    };
    let join = "select count(*), sum(many.k) from many join few on many.n = few.k where many.k + few.n <> ";
    // What is read to plan it is known then.
    let before = ask(&format!("{join} 1"));
    for time in 0..20 {
        *meeting.state.lock() = State { is_held: true, threads: HashSet::new() };
        assert_eq!(ask(&format!("{join} {}", -1 - time)).len(), before.len());
        let state = std::mem::take(&mut *meeting.state.lock());
        assert!(
            state.is_held && state.threads.len() > 1,
            "one thread read all chunks, question {time}: {state:?}"
        );
    }
}
