//! Loading a table from what a snapshot shows of another.

use std::sync::Arc;

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{ColumnId, Decimal, IndexId, SqlType, TableId, Tid, Value, arrow_type};
use albireo_encoding::{Column, Encoder, Kind, Source, SourceValues};
use albireo_storage::{
    BlockPool, BudgetPolicy, ChunkParts, ChunkView, ColumnSpec, IndexKind, IndexSpec, LayoutChoice, Loader,
    MAX_TEXT_BYTES, Part, Placement, SnapshotRegistry, Table, TableError, TableSpec, TableView, partition_of,
};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray,
    StringViewArray,
};
use arrow_schema::{DataType, Field, Schema};

use crate::check;
use crate::shape::Shape;
use crate::world::{Rows, World};

/// An array as the loader takes it too: texts and byte strings with offsets.
fn plain(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().iter().collect::<StringArray>()),
        DataType::BinaryView => Arc::new(array.as_binary_view().iter().collect::<BinaryArray>()),
        _ => array,
    }
}

pub fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
    let field = |array: &ArrayRef| Field::new("", array.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns).expect("arrays of one length")
}

/// The live rows of a view, each run of them a batch; those of frozen chunks only if all are to come so.
fn batches(view: &TableView, columns: usize, as_plain: bool) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    let chunks = (0..view.chunk_count()).map(|i| view.chunk(i));
    for chunk in chunks.filter(|chunk| as_plain || !chunk.is_frozen()) {
        let arrays = (0..columns).map(|column| chunk.column(ColumnId(column as u16)));
        let all = batch(arrays.map(|array| if as_plain { plain(array) } else { array }).collect());
        match chunk.live() {
            None => batches.push(all),
            Some(live) => batches.extend(live.set_slices().map(|(from, to)| all.slice(from, to - from))),
        }
    }
    batches
}

/// The frozen chunks of a view, and their numbers.
fn frozen(view: &TableView, columns: usize) -> Vec<(usize, ChunkParts<Vec<u8>>)> {
    let copy = |column: &Column<Part>| {
        let mut header = Vec::new();
        column.header(&mut header);
        let column = column.unshared();
        let section = |name, _| column.section(name).map(|section| section.to_vec()).ok_or(());
        Column::from_parts(&header, column.kind(), column.rows(), section).expect("a column")
    };
    let chunks = (0..view.chunk_count()).map(|i| view.chunk(i)).filter(ChunkView::is_frozen);
    let parts = chunks.map(|chunk| {
        let encoded =
            (0..columns).map(|column| chunk.encoded(ColumnId(column as u16)).expect("it is frozen"));
        let columns = encoded.map(|view| copy(view.column())).collect();
        let live = chunk.live().map_or_else(
            || vec![u64::MAX; CHUNK_ROWS / 64],
            |live| live.bit_chunks().iter_padded().take(CHUNK_ROWS / 64).collect(),
        );
        (chunk.number() as usize, ChunkParts { columns, live, text_bytes: chunk.text_bytes() })
    });
    parts.collect()
}

impl World {
    /// Goes on with a table that was loaded from a snapshot of this one, frozen chunks as they are unless it is plain.
    pub fn reload(&mut self, as_plain: bool) {
        self.take_snapshot();
        let seen = self.snapshots.last().expect("taken just now");
        let view = seen.snapshot.table(TableId(3)).expect("the table is in the snapshot");
        let mut loader = Loader::new(self.empty_table());
        let frozen = if as_plain { Vec::new() } else { frozen(&view, self.shape.columns.len()) };
        let adopted: Vec<usize> = frozen.iter().map(|(number, _)| *number).collect();
        let appended = frozen.into_iter().try_for_each(|(_, chunk)| loader.adopt(chunk)).and_then(|()| {
            let batches = batches(&view, self.shape.columns.len(), as_plain);
            batches.iter().try_for_each(|batch| loader.append(batch))
        });
        assert!(appended.is_err() || loader.row_count() == view.row_count());
        match loader.finish() {
            Ok(table) => {
                assert_eq!(appended, Ok(()));
                // Frozen chunks come first, and keep their slots.
                let at = |tid: &Tid| adopted.iter().position(|number| *number == tid.chunk());
                let mut next = (adopted.len() * CHUNK_ROWS) as u64..;
                let rows = self.current.iter().map(|(tid, row)| {
                    let new = at(tid).map(|chunk| Tid::new(chunk, tid.slot()));
                    (new.unwrap_or_else(|| Tid(next.next().expect("there are more"))), Arc::clone(row))
                });
                let rows = rows.collect();
                drop(view);
                self.replace(table, rows);
                self.check();
            }
            Err(TableError::OutOfMemory(_)) => assert!(self.is_squeezed(), "there was memory"),
            Err(other) => panic!("unexpected {other}"),
        }
    }
}

#[test]
fn table_of_several_chunks_loads_in_every_layout() {
    let columns = crate::shape::TYPES.iter().enumerate().map(|(i, &ty)| (ty, i % 3 == 1)).collect::<Vec<_>>();
    let few = LayoutChoice::Groups(vec![(0..9).map(ColumnId).collect(), vec![ColumnId(20), ColumnId(15)]]);
    for layout in [LayoutChoice::Columns, LayoutChoice::Rows, few] {
        let ids = |columns: &[u16]| columns.iter().map(|&c| ColumnId(c)).collect::<Vec<_>>();
        let indexes = vec![
            (ids(&[2]), true, IndexKind::Hash),
            (ids(&[6, 2]), false, IndexKind::Ordered),
            (ids(&[4]), false, IndexKind::Hash),
            (ids(&[18, 2]), true, IndexKind::Hash),
            (ids(&[18]), false, IndexKind::Bare),
            (ids(&[2, 14]), true, IndexKind::Bare),
        ];
        let shape = Shape { columns: columns.clone(), layout, indexes, forbidden: None };
        let mut world = World::new(shape, 1 << 30);
        for n in 0..20_000u32 {
            let pick = |column: u32| ((n * 7 + column * 13) % 45) as u16;
            let mut row = world.shape.row(&(0..21).map(pick).collect::<Vec<_>>());
            row[2] = Value::BigInt(i64::from(n.wrapping_mul(2_654_435_761)));
            let tid = world.table.insert_values(&mut world.undo, &row).expect("the row is right");
            world.current.insert(tid, Arc::new(row));
        }
        world.commit();
        for n in 0..3_000 {
            world.delete(n * 11);
        }
        world.commit();
        let (rows, mut loader) = (world.current.len() as u64, Loader::new(world.empty_table()));
        world.take_snapshot();
        let view = world.snapshots[0].snapshot.table(TableId(3)).expect("the table is in the snapshot");
        for batch in batches(&view, columns.len(), false) {
            loader.append(&batch).expect("the rows are right");
        }
        assert_eq!(loader.row_count(), rows);
        albireo_env::scope(|scope| {
            let mut threads = Vec::new();
            for build in loader.index_builds() {
                let run = move || build.run().expect("keys are unique and there is memory");
                threads.push(albireo_env::spawn_scoped(scope, "build", run).expect("a thread"));
            }
            // Joined one by one: ThreadSanitizer does not see how a scope ends.
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        });
        assert!(loader.index_builds().is_empty(), "all are built");
        let table = loader.finish().expect("all is there");
        let moved = world.current.values().enumerate().map(|(n, row)| (Tid(n as u64), Arc::clone(row)));
        let moved: Rows = moved.collect();
        check::table_equals(&table, &world.shape, &moved);
        check::indexes_agree(&table, &world.shape, &moved, false);
        drop((view, table));
        world.finish(true);
    }
}

const ID: TableId = TableId(9);

fn table_of(columns: &[(SqlType, bool)], indexes: Vec<IndexSpec>, placement: Option<Placement>) -> Loader {
    let columns = columns.iter().map(|&(ty, nullable)| ColumnSpec { name: "c".to_owned(), ty, nullable });
    let spec = TableSpec {
        id: ID,
        name: "t".to_owned(),
        columns: columns.collect(),
        layout: LayoutChoice::Columns,
        indexes,
        partition_by: placement.map(|p| p.column),
        checks: Vec::new(),
    };
    let pool = BlockPool::new(64 << 20);
    let registry = Arc::new(SnapshotRegistry::new(pool, u64::MAX, BudgetPolicy::RefuseNew));
    let layout = Table::layout_of(&spec).expect("the layout is possible");
    Loader::new(Table::new(Arc::new(spec), layout, placement, &registry))
}

/// What loading one column of a NOT NULL or nullable type says.
fn outcome(ty: SqlType, nullable: bool, array: impl Array + 'static) -> Result<(), TableError> {
    let mut loader = table_of(&[(ty, nullable)], Vec::new(), None);
    let said = loader.append(&batch(vec![Arc::new(array)]));
    assert_eq!(loader.finish().map(|_| ()), said, "the end says what failed before");
    said
}

#[test]
fn batch_that_does_not_fit_the_table_is_refused_by_what_is_wrong() {
    let column = ColumnId(0);
    let wrong_type = Err(TableError::WrongType { table: ID, column });
    let integer = SqlType::Integer;
    assert_eq!(outcome(integer, false, Int64Array::from(vec![1])), wrong_type);
    assert_eq!(outcome(integer, false, StringArray::from(vec!["1"])), wrong_type);
    assert_eq!(outcome(SqlType::Bytea, false, StringArray::from(vec!["1"])), wrong_type);
    assert_eq!(outcome(SqlType::Text, false, BinaryArray::from(vec![&b"1"[..]])), wrong_type);
    let not_null = Err(TableError::NotNull { table: ID, column });
    assert_eq!(outcome(integer, false, Int32Array::from(vec![Some(1), None])), not_null);
    assert_eq!(outcome(integer, true, Int32Array::from(vec![Some(1), None])), Ok(()));
    let too_long = |bytes| Err(TableError::TooLong { table: ID, column, bytes });
    let texts = |text: &str| StringArray::from(vec!["a", text]);
    assert_eq!(outcome(SqlType::Varchar(3), false, texts("abcd")), too_long(4));
    assert_eq!(outcome(SqlType::Varchar(3), false, texts("äöü")), Ok(()));
    assert_eq!(outcome(SqlType::Char(3), false, StringViewArray::from(vec!["abcde"])), too_long(5));
    assert_eq!(outcome(SqlType::Char(3), false, StringViewArray::from(vec!["abc  "])), Ok(()));
    assert_eq!(outcome(SqlType::Text, false, texts(&"x".repeat(MAX_TEXT_BYTES))), Ok(()));
    let long = "x".repeat(MAX_TEXT_BYTES + 1);
    assert_eq!(outcome(SqlType::Text, false, texts(&long)), too_long(long.len()));
    assert_eq!(outcome(SqlType::Bytea, true, BinaryArray::from(vec![long.as_bytes()])), too_long(long.len()));
    let zero = Err(TableError::ZeroCharacter { table: ID, column });
    assert_eq!(outcome(SqlType::Text, false, texts("a\0b")), zero);
    assert_eq!(outcome(SqlType::Varchar(9), true, texts("a\0b")), zero);
    assert_eq!(outcome(SqlType::Bytea, false, BinaryArray::from(vec![&b"\0"[..]])), Ok(()));
}

#[test]
fn decimal_of_too_many_digits_is_refused_unless_it_stands_behind_a_null() {
    for precision in [5, 18, 19, 38] {
        let ty = SqlType::Decimal { precision, scale: 2 };
        let most = 10i128.pow(precision.into()) - 1;
        let array = |values: Vec<Option<i128>>| {
            Decimal128Array::from(values).with_data_type(DataType::Decimal128(precision, 2))
        };
        assert_eq!(outcome(ty, false, array(vec![Some(most), Some(-most)])), Ok(()));
        let refused = Err(TableError::OutOfRange { table: ID, column: ColumnId(0) });
        for value in [most + 1, -most - 1, i128::MIN, i128::MAX] {
            assert_eq!(outcome(ty, false, array(vec![Some(1), Some(value)])), refused, "{value}");
            let nulls = Some(vec![true, false].into());
            let hidden = Decimal128Array::new(vec![1, value].into(), nulls)
                .with_data_type(DataType::Decimal128(precision, 2));
            assert_eq!(outcome(ty, true, hidden), Ok(()));
        }
        let other = DataType::Decimal128(precision, 1);
        let other = Decimal128Array::from(vec![1]).with_data_type(other);
        assert!(matches!(outcome(ty, false, other), Err(TableError::WrongType { .. })));
    }
}

#[test]
fn value_behind_a_null_leaves_no_trace() {
    let mut loader = table_of(&[(SqlType::Integer, true)], Vec::new(), None);
    let array = Int32Array::new(vec![7, 8].into(), Some(vec![false, true].into()));
    loader.append(&batch(vec![Arc::new(array)])).expect("the batch fits");
    let table = loader.finish().expect("there are no indexes");
    let column = table.column::<i32>("c").expect("the column is there");
    assert_eq!(table.get(Tid(0), column), 0, "a NULL's slot is zero");
    assert_eq!((table.get_opt(Tid(0), column), table.get_opt(Tid(1), column)), (None, Some(8)));
}

#[test]
fn batch_with_other_columns_than_the_table_is_refused() {
    let one = || Arc::new(Int32Array::from(vec![1])) as ArrayRef;
    for columns in [1, 3] {
        let mut loader = table_of(&[(SqlType::Integer, false), (SqlType::Integer, true)], Vec::new(), None);
        let said = loader.append(&batch((0..columns).map(|_| one()).collect()));
        assert!(matches!(said, Err(TableError::WrongType { .. })));
        assert_eq!(loader.append(&batch(vec![one(), one()])), said, "nothing helps afterwards");
    }
}

#[test]
fn key_that_is_there_twice_is_found_when_the_index_is_built() {
    for kind in [IndexKind::Hash, IndexKind::Ordered, IndexKind::Bare] {
        let index = |columns: &[u16]| IndexSpec {
            name: "i".to_owned(),
            columns: columns.iter().map(|&c| ColumnId(c)).collect(),
            unique: true,
            kind,
        };
        let columns = [(SqlType::Integer, false), (SqlType::Text, true)];
        let mut loader = table_of(&columns, vec![index(&[0]), index(&[1])], None);
        let numbers = Int32Array::from_iter_values((0..1000).chain([1000]));
        // NULLs do not equal one another.
        let texts = (0..1001).map(|n| (n > 9).then(|| format!("a long beginning {}", n % 1000)));
        let texts: StringArray = texts.collect();
        loader.append(&batch(vec![Arc::new(numbers), Arc::new(texts)])).expect("the batch fits");
        let table = loader.finish().expect("keys differ");
        assert_eq!(table.row_count(), 1001);

        let mut loader = table_of(&columns, vec![index(&[0]), index(&[1])], None);
        let numbers = Int32Array::from_iter_values(0..1001);
        let texts: StringArray = (0..1001).map(|n| Some(format!("a long beginning {}", n % 1000))).collect();
        loader.append(&batch(vec![Arc::new(numbers), Arc::new(texts)])).expect("the batch fits");
        let builds = loader.index_builds();
        let said: Vec<_> = builds.into_iter().map(|build| build.run()).collect();
        assert_eq!(said[0], Ok(()));
        assert!(matches!(said[1], Err(TableError::Duplicate { index: IndexId(1), .. })), "{:?}", said[1]);
        assert!(matches!(loader.finish(), Err(TableError::Duplicate { index: IndexId(1), .. })));
    }
}

#[test]
fn row_of_another_partition_is_refused_whatever_places_it() {
    let types = crate::shape::TYPES;
    for &ty in &types {
        let value = crate::shape::value(ty, 13);
        let owner = partition_of(&value, 4);
        for partition in 0..4 {
            let placement = Placement { column: ColumnId(0), partition, partitions: 4 };
            let shape = Shape {
                columns: vec![(ty, true)],
                layout: LayoutChoice::Columns,
                indexes: Vec::new(),
                forbidden: None,
            };
            let mut world = World::new(shape, 16 << 20);
            let tid =
                world.table.insert_values(&mut world.undo, std::slice::from_ref(&value)).expect("it fits");
            world.current.insert(tid, Arc::new(vec![value.clone()]));
            world.take_snapshot();
            let view = world.snapshots[0].snapshot.table(TableId(3)).expect("the table is there");
            for as_plain in [false, true] {
                let mut loader = table_of(&[(ty, true)], Vec::new(), Some(placement));
                let said = loader.append(&batches(&view, 1, as_plain)[0]);
                let wanted = match partition == owner {
                    true => Ok(()),
                    false => Err(TableError::WrongPartition { table: ID }),
                };
                assert_eq!(said, wanted, "{ty} {partition}");
            }
            drop(view);
            world.finish(false);
        }
    }
    // NULL goes to partition 0.
    let null = || batch(vec![Arc::new(Int32Array::from(vec![None::<i32>]))]);
    let placed = |partition| Some(Placement { column: ColumnId(0), partition, partitions: 2 });
    assert_eq!(table_of(&[(SqlType::Integer, true)], Vec::new(), placed(0)).append(&null()), Ok(()));
    assert!(table_of(&[(SqlType::Integer, true)], Vec::new(), placed(1)).append(&null()).is_err());
}

#[test]
fn loaded_values_are_those_of_the_arrays() {
    let scale = 4;
    let ty = SqlType::Decimal { precision: 10, scale };
    assert_eq!(arrow_type(ty), DataType::Decimal128(10, 4));
    let mut loader = table_of(&[(ty, false), (SqlType::Integer, false)], Vec::new(), None);
    let decimals = Decimal128Array::from(vec![-5, 70_000]).with_data_type(arrow_type(ty));
    let numbers = Int32Array::from(vec![i32::MIN, 3]);
    loader.append(&batch(vec![Arc::new(decimals), Arc::new(numbers)])).expect("the batch fits");
    let table = loader.finish().expect("there are no indexes");
    let decimal = |unscaled| Value::Decimal(Decimal { unscaled, scale });
    assert_eq!(table.row(Tid(0)), [decimal(-5), Value::Integer(i32::MIN)]);
    assert_eq!(table.row(Tid(1)), [decimal(70_000), Value::Integer(3)]);
    assert_eq!(table.scan_from(Tid(0)).count(), 2);
}

/// A column of a whole chunk.
fn encoded(kind: Kind, values: SourceValues<'_>, nulls: Option<&[u64]>) -> Column<Vec<u8>> {
    let live = [u64::MAX; CHUNK_ROWS / 64];
    Encoder::default().encode(&Source { kind, values, nulls, live: &live, rows: CHUNK_ROWS })
}

fn integers(kind: Kind, last: i64) -> Column<Vec<u8>> {
    let mut values: Vec<i64> = (0..CHUNK_ROWS as i64).map(|n| n % 50).collect();
    values[CHUNK_ROWS - 1] = last;
    encoded(kind, SourceValues::Integers(&values), None)
}

fn texts(last: &[u8]) -> Column<Vec<u8>> {
    let mut ends: Vec<u32> = (1..=CHUNK_ROWS as u32).collect();
    ends[CHUNK_ROWS - 1] = (CHUNK_ROWS - 1 + last.len()) as u32;
    let bytes = [&vec![b'x'; CHUNK_ROWS - 1][..], last].concat();
    encoded(Kind::Text, SourceValues::Texts { ends: &ends, bytes: &bytes }, None)
}

/// What adopting a chunk of one column says, of which some rows live.
fn adopted(ty: SqlType, nullable: bool, column: Column<Vec<u8>>, live: u64) -> Result<(), TableError> {
    let mut loader = table_of(&[(ty, nullable)], Vec::new(), None);
    let live = vec![live; CHUNK_ROWS / 64];
    let said = loader.adopt(ChunkParts { columns: vec![column], live: live.clone(), text_bytes: 7 });
    let loaded = loader.finish();
    assert_eq!(loaded.as_ref().map(|_| ()).map_err(Clone::clone), said, "the end says what failed before");
    if let Ok(table) = loaded {
        let rows: u64 = live.iter().map(|word| u64::from(word.count_ones())).sum();
        assert_eq!((table.slots(), table.row_count()), (CHUNK_ROWS as u64, rows));
        assert!(table.scan_from(Tid(0)).all(|tid| !table.row(tid)[0].is_null()));
    }
    said
}

#[test]
fn frozen_chunk_that_does_not_fit_the_table_is_refused_by_what_is_wrong() {
    let column = ColumnId(0);
    let wrong_type = Err(TableError::WrongType { table: ID, column });
    let integer = SqlType::Integer;
    assert_eq!(adopted(integer, false, integers(Kind::I32, 9), u64::MAX), Ok(()));
    assert_eq!(adopted(integer, true, integers(Kind::I32, 9), 0xf0f0), Ok(()));
    assert_eq!(adopted(integer, false, integers(Kind::I64, 9), u64::MAX), wrong_type);
    assert_eq!(adopted(SqlType::BigInt, false, integers(Kind::I32, 9), u64::MAX), wrong_type);
    assert_eq!(adopted(SqlType::Text, false, integers(Kind::I32, 9), u64::MAX), wrong_type);
    let short = Source {
        kind: Kind::I32,
        values: SourceValues::Integers(&[1; 64]),
        nulls: None,
        live: &[u64::MAX],
        rows: 64,
    };
    assert_eq!(adopted(integer, false, Encoder::default().encode(&short), u64::MAX), wrong_type);
    let mut nulls = [0; CHUNK_ROWS / 64];
    nulls[5] = 2;
    let some = vec![1; CHUNK_ROWS];
    let with_null = encoded(Kind::I32, SourceValues::Integers(&some), Some(&nulls));
    assert_eq!(adopted(integer, false, with_null, u64::MAX), Err(TableError::NotNull { table: ID, column }));
    let too_long = |bytes| Err(TableError::TooLong { table: ID, column, bytes });
    assert_eq!(adopted(SqlType::Varchar(3), false, texts(b"abcd"), u64::MAX), too_long(4));
    assert_eq!(adopted(SqlType::Varchar(3), false, texts("äöü".as_bytes()), u64::MAX), Ok(()));
    assert_eq!(adopted(SqlType::Char(3), false, texts(b"ab"), u64::MAX), Ok(()));
    assert_eq!(adopted(SqlType::Char(3), false, texts(b"ab "), u64::MAX), wrong_type);
    // Of rows that are dead too: arrays may be made over them.
    assert_eq!(adopted(SqlType::Text, false, texts(b"\xff"), 1), wrong_type);
    assert_eq!(adopted(SqlType::Bytea, false, texts(b"\xff\0"), u64::MAX), Ok(()));
    let zero = Err(TableError::ZeroCharacter { table: ID, column });
    assert_eq!(adopted(SqlType::Text, false, texts(b"a\0"), u64::MAX), zero);
    let long = vec![b'x'; MAX_TEXT_BYTES + 1];
    assert_eq!(adopted(SqlType::Bytea, false, texts(&long), u64::MAX), too_long(long.len()));
    let decimal = SqlType::Decimal { precision: 4, scale: 2 };
    assert_eq!(adopted(decimal, false, integers(Kind::I64, 9_999), u64::MAX), Ok(()));
    let out = Err(TableError::OutOfRange { table: ID, column });
    assert_eq!(adopted(decimal, false, integers(Kind::I64, -10_000), u64::MAX), out);
    let mut wide = vec![[1; 16]; CHUNK_ROWS];
    let long = SqlType::Decimal { precision: 38, scale: 2 };
    let column = |wide: &[[u8; 16]]| encoded(Kind::I128, SourceValues::Wide(wide), None);
    assert_eq!(adopted(long, false, column(&wide), u64::MAX), Ok(()));
    wide[77] = i128::MAX.to_le_bytes();
    assert_eq!(adopted(long, false, column(&wide), u64::MAX), out);
}

#[test]
fn frozen_chunk_of_another_partition_is_refused_unless_the_row_is_dead() {
    let owned: Vec<i64> = (0..CHUNK_ROWS as i64).map(|n| 2 + n * 4).collect();
    for (row, live, fits) in [(None, true, true), (Some(70), true, false), (Some(70), false, true)] {
        let placement = Placement { column: ColumnId(0), partition: 2, partitions: 4 };
        let mut loader = table_of(&[(SqlType::Integer, false)], Vec::new(), Some(placement));
        let (mut values, mut bits) = (owned.clone(), vec![u64::MAX; CHUNK_ROWS / 64]);
        if let Some(row) = row {
            values[row] += 1;
            bits[row / 64] = if live { u64::MAX } else { !(1 << (row % 64)) };
        }
        let columns = vec![encoded(Kind::I32, SourceValues::Integers(&values), None)];
        let said = loader.adopt(ChunkParts { columns, live: bits, text_bytes: 0 });
        let refused = Err(TableError::WrongPartition { table: ID });
        assert_eq!(said, if fits { Ok(()) } else { refused }, "{row:?} {live}");
    }
}
