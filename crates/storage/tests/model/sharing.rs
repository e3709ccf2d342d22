//! Frozen chunks of a table that share long texts, while rows come, change, move and go, and chunks leave memory and come
//! back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use albireo_base::{ColumnId, PartitionId, SqlType, TableId, Tid, Value};
use albireo_encoding::{Choose, ScalarRef, Selection, Test};
use albireo_storage::{
    BlockPool, BudgetPolicy, ChunkEncoder, ChunkView, IndexKind, LayoutChoice, Placement, SharedTexts,
    Sharing, SnapshotBuilder, SnapshotRegistry, SnapshotScope, Table, UndoLog,
};
use albireo_testing::{Random, test};
use arrow_array::Array;
use arrow_array::cast::AsArray;

use crate::shape::Shape;
use crate::world::World;

const NAME: ColumnId = ColumnId(1);

fn shape() -> Shape {
    Shape {
        columns: vec![(SqlType::Integer, false), (SqlType::Text, true)],
        layout: LayoutChoice::Columns,
        indexes: vec![(vec![ColumnId(0)], true, IndexKind::Hash)],
        forbidden: None,
    }
}

/// A name of some rank, long but for a few.
fn name(rank: u64) -> Value {
    match rank % 23 {
        5 => Value::Null,
        7 => Value::Text(String::new()),
        11 => Value::Text(format!("short {rank}")),
        other => Value::Text(format!("{rank} {}", "é name ".repeat(5 + other as usize))),
    }
}

/// One of 200 names, those of low rank more often.
fn any_name(random: &mut Random) -> Value {
    let most = 1 + random.below(200);
    name(random.below(most))
}

/// By its address: the texts of each list that a chunk of the table or of a snapshot has.
fn lists(world: &mut World) -> BTreeMap<usize, BTreeSet<Vec<u8>>> {
    world.take_snapshot();
    let mut lists = BTreeMap::new();
    for seen in &world.snapshots {
        let view = seen.snapshot.table(TableId(3)).expect("the table is in the snapshot");
        if !view.covers(NAME) || !view.covers(ColumnId(0)) {
            continue;
        }
        for chunk in (0..view.chunk_count()).map(|number| view.chunk(number)) {
            // What is not here is not asked for.
            let is_shared = |forms: Vec<String>| forms[1].ends_with("texts shared");
            if chunk.forms().is_some_and(is_shared) {
                let column = chunk.encoded(NAME).expect("it is frozen").column();
                let list = column.lender().expect("it is shared");
                let texts: BTreeSet<_> = (0..list.count()).map(|place| list.text(place).to_vec()).collect();
                assert_eq!(texts.len(), list.count(), "each text is in a list once");
                let address = Arc::as_ptr(list).addr();
                assert!(lists.insert(address, texts.clone()).is_none_or(|before| before == texts));
            }
        }
    }
    world.snapshots.pop();
    lists
}

/// What is shared is what chunks have, each text once.
fn check_shared(world: &mut World) -> SharedTexts {
    let lists = lists(world);
    let all: BTreeSet<&Vec<u8>> = lists.values().flatten().collect();
    let references: usize = lists.values().map(BTreeSet::len).sum();
    let found = world.table.shared_texts(NAME);
    assert_eq!((found.texts, found.references), (all.len() as u64, references as u64));
    let bytes: usize = all.iter().map(|text| text.len()).sum();
    assert!(found.bytes >= bytes as u64 && found.bytes <= (bytes + all.len() * 64) as u64);
    let memory = world.table.memory();
    assert!(memory.shared_texts_bytes <= memory.frozen_bytes);
    assert!(memory.shared_texts_bytes <= found.bytes + (references * 16 + lists.len() * 128) as u64);
    found
}

impl World {
    fn insert_names(&mut self, random: &mut Random, rows: usize, next: &mut i32) {
        for _ in 0..rows {
            *next += 1;
            self.insert(vec![Value::Integer(*next), any_name(random)]);
        }
    }

    /// A transaction changes the names of some rows, and deletes a few.
    fn change_names(&mut self, picks: &[(u16, Value)]) {
        self.commit();
        self.transact(|world| {
            for (pick, name) in picks {
                let Some(tid) = world.pick_row(*pick).filter(|tid| world.table.is_live(*tid)) else {
                    continue;
                };
                if pick % 4 == 0 {
                    world.table.delete(&mut world.undo, tid).expect("it lives");
                    world.current.remove(&tid);
                    continue;
                }
                world.table.update_values(&mut world.undo, tid, &[(NAME, name.clone())]).expect("a name");
                let row = world.current.get_mut(&tid).expect("it lives");
                *row = Arc::new(vec![row[0].clone(), name.clone()]);
            }
        });
        self.commit();
    }

    fn step_of_names(&mut self, random: &mut Random, next: &mut i32) {
        match random.below(14) {
            0..3 => {
                let rows = 1 + random.index(150);
                self.insert_names(random, rows, next);
            }
            3..6 => {
                let choose = random.pick(&[Choose::Dictionary, Choose::RunsOfDictionary, Choose::Best]);
                let sharing =
                    random.pick(&[Sharing::Always, Sharing::Always, Sharing::WhereItPays, Sharing::Never]);
                let (keeps, but) = (random.percent(30), random.pick(&[1, 1, 2, 3]));
                self.freeze_sharing(keeps, but, ChunkEncoder::new(choose).with_sharing(sharing));
            }
            6..8 => self.evict(),
            8 => {
                let picks: Vec<u16> = (0..5).map(|_| random.below(1 << 16) as u16).collect();
                self.commit();
                self.transact(|world| {
                    for tid in picks.iter().filter_map(|pick| world.pick_row(*pick)) {
                        assert_eq!(world.table.row(tid), *world.current[&tid]);
                    }
                });
            }
            9 => {
                let any = |random: &mut Random| (random.below(1 << 16) as u16, any_name(random));
                let picks: Vec<_> = (0..20).map(|_| any(random)).collect();
                self.change_names(&picks);
            }
            10 => self.move_out(random.below(1 << 16) as u16, random.pick(&[3, 1000])),
            11 => self.take_snapshot(),
            12 => self.drop_snapshot(random.below(1 << 16) as u16, random.percent(30)),
            _ if random.percent(30) => self.reload(false),
            _ => self.check(),
        }
    }
}

#[test]
fn texts_are_shared_and_freed_whatever_becomes_of_their_chunks() {
    let (mut most, mut shared_by_several) = (0, 0);
    test!().for_each_seed(0..24, |seed| {
        let mut random = Random::new(seed);
        let (mut world, mut next) = (World::new(shape(), 256 << 20), 0);
        world.insert_names(&mut random, 300, &mut next);
        for _ in 0..40 {
            world.step_of_names(&mut random, &mut next);
            let shared = check_shared(&mut world);
            most = most.max(shared.texts);
            shared_by_several += u64::from(shared.references > shared.texts);
        }
        world.check();
        check_shared(&mut world);
        world.finish(seed % 2 == 0);
    });
    if test!().has_usual_seeds() {
        assert!(most > 50 && shared_by_several > 50, "{most} texts, {shared_by_several} times of several");
    }
}

/// A snapshot of two partitions of a table, whose chunks are frozen where that is asked for.
struct Two {
    pool: BlockPool,
    registry: Arc<SnapshotRegistry>,
    tables: [Table; 2],
}

impl Two {
    fn new() -> Self {
        let pool = BlockPool::new(256 << 20);
        let registry = Arc::new(SnapshotRegistry::new(pool.clone(), u64::MAX, BudgetPolicy::RefuseNew));
        let spec = Arc::new(shape().spec());
        let layout = Table::layout_of(&spec).expect("the shape is possible");
        let table = |partition: u16| {
            let placement = Placement { column: ColumnId(0), partition, partitions: 2 };
            Table::new(Arc::clone(&spec), Arc::clone(&layout), Some(placement), &registry)
        };
        Self { tables: [0, 1].map(table), pool, registry }
    }

    /// A chunk in each partition with rows of these names, frozen.
    fn add(&mut self, names: &[Value], encoder: &mut ChunkEncoder) {
        for (partition, table) in self.tables.iter_mut().enumerate() {
            let mut undo = UndoLog::default();
            for name in names {
                let id = table.slots() as i32 * 2 + partition as i32;
                table.insert_values(&mut undo, &[Value::Integer(id), name.clone()]).expect("a row");
            }
            undo.commit(|_, _, _| {}, |_, _, _, _| {});
            table.end_chunk();
        }
        let snapshot = self.snapshot();
        let view = snapshot.table(TableId(3)).expect("the table is in the snapshot");
        let hot = (0..view.chunk_count()).map(|number| view.chunk(number)).filter(|chunk| !chunk.is_frozen());
        for chunk in hot {
            let encoded = chunk.encode(encoder).expect("there is memory");
            let table = &mut self.tables[chunk.partition().index()];
            let (_replaced, done) = table.freeze([encoded]);
            assert_eq!(done[0].1, Ok(()));
        }
    }

    fn snapshot(&mut self) -> Arc<albireo_storage::DatabaseSnapshot> {
        let mut builder =
            SnapshotBuilder::new(&self.registry, SnapshotScope::All).expect("the budget is large");
        for (partition, table) in self.tables.iter_mut().enumerate() {
            builder.add(PartitionId(partition as u16), table);
        }
        builder.finish()
    }
}

fn long_names(count: u64) -> Vec<Value> {
    let long = |number: u64| Value::Text(format!("{number} {}", "long name ".repeat(20)));
    (0..count * 10).map(|row| long(row % count)).collect()
}

#[test]
fn partitions_of_a_table_share_texts_and_pay_for_them_together() {
    let mut two = Two::new();
    let mut encoder = ChunkEncoder::new(Choose::Dictionary);
    (0..3).for_each(|_| two.add(&long_names(50), &mut encoder));
    let shared = two.tables[0].shared_texts(NAME);
    assert_eq!(shared, two.tables[1].shared_texts(NAME));
    // All but the first chunk, which has its own.
    assert_eq!((shared.texts, shared.references), (50, 5 * 50));
    let [first, second] = [0, 1].map(|partition| two.tables[partition].memory());
    let paid = first.shared_texts_bytes + second.shared_texts_bytes;
    assert!(paid >= shared.bytes && paid <= shared.bytes + 5 * 50 * 16 + 5 * 128, "{paid} of {shared:?}");
    assert!(first.shared_texts_bytes < second.shared_texts_bytes);
    assert!(paid * 2 < first.unshared_texts_bytes + second.unshared_texts_bytes);
    let Two { pool, registry, tables: [first, second] } = two;
    drop(first);
    assert_eq!(second.shared_texts(NAME).references, 3 * 50);
    drop(second);
    drop(registry);
    assert_eq!(pool.in_use_bytes(), 0);
}

fn names_of(chunk: &ChunkView<'_>) -> Vec<Option<String>> {
    let array = chunk.column(NAME);
    let texts = array.as_string_view();
    (0..array.len()).map(|row| (!texts.is_null(row)).then(|| texts.value(row).to_owned())).collect()
}

#[test]
fn shared_texts_are_shown_as_those_of_the_chunk_s_own() {
    let names: Vec<Value> = (0..400).map(|row| name(row * row % 170)).collect();
    let mut two = Two::new();
    for sharing in [Sharing::Never, Sharing::Always] {
        two.add(&names, &mut ChunkEncoder::new(Choose::Dictionary).with_sharing(sharing));
    }
    let snapshot = two.snapshot();
    let view = snapshot.table(TableId(3)).expect("the table is in the snapshot");
    let chunks: Vec<_> = (0..view.chunk_count()).map(|number| view.chunk(number)).collect();
    let of = |number: u32| chunks.iter().find(|chunk| chunk.number() == number).expect("it was added");
    let (own, shared) = (of(0), of(1));
    let column =
        |chunk: &ChunkView<'_>| chunk.encoded(NAME).expect("it is frozen").column().lender().is_some();
    assert_eq!((column(own), column(shared)), (false, true));
    let expected = names_of(own);
    assert!(expected.iter().zip(&names).all(|(found, name)| match name {
        Value::Text(text) => found.as_ref() == Some(text),
        _ => found.is_none(),
    }));
    assert_eq!(names_of(shared), expected);
    let [own, shared] = [own, shared].map(|chunk| chunk.encoded(NAME).expect("it is frozen"));
    assert_eq!(shared.shared(), own.shared());
    assert_eq!(&shared.shared_texts(), &own.shared_texts());
    let mut random = Random::new(1);
    for percent in [1, 30, 99] {
        let rows = own.column().rows();
        let mask: Vec<u64> = (0..rows / 64)
            .map(|_| (0..64).fold(0, |word, bit| word | u64::from(random.percent(percent)) << bit))
            .collect();
        for rows in [Selection::Mask(&mask), Selection::Range(3..3 + 4 * percent as usize)] {
            assert_eq!(&shared.array(&rows), &own.array(&rows));
            assert_eq!(shared.array(&rows).to_data(), own.array(&rows).to_data());
        }
        let wanted = format!("1 {}", "é name ".repeat(6));
        let found = [&own, &shared].map(|view| {
            let mut mask = mask.clone();
            view.column().select(&mut Test::Equal(ScalarRef::Text(wanted.as_bytes())), &mut mask);
            mask
        });
        assert_eq!(found[0], found[1]);
    }
    // Arrays have copies, and stay when nothing else does.
    let array = shared.array(&Selection::Range(0..400));
    drop(chunks);
    drop(view);
    drop(snapshot);
    two.tables[0].scan_from(Tid(0)).for_each(drop);
    let Two { pool, registry, tables } = two;
    drop(tables);
    drop(registry);
    assert_eq!(pool.in_use_bytes(), 0);
    let texts = array.as_string_view();
    assert!((0..400).all(|row| texts.is_null(row) || Some(texts.value(row)) == expected[row].as_deref()));
}
