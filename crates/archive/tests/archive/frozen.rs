//! Frozen chunks: written once, named after, and loaded as they are.

use std::path::Path;
use std::sync::Arc;

use albireo_archive::{FileEntry, FrozenFile, Manifest, list, retain, verify};
use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{ColumnId, Decimal, SqlType, Value};
use albireo_env::{Env, MemoryDisk};
use albireo_storage::{IndexKind, LayoutChoice};
use albireo_testing::random_tests;
use proptest::prelude::*;

use crate::shape::{Shape, TYPES, shapes};
use crate::world::{DIRECTORY, World, small_shape, sorted};

/// A table of all types, each once with NULLs and once without, in two partitions.
fn world_of_all_types() -> World {
    let types = TYPES.iter().flat_map(|&ty| [(ty, false), (ty, true)]).collect();
    let indexes = vec![
        (vec![ColumnId(0)], false, IndexKind::Ordered),
        (vec![ColumnId(9), ColumnId(2)], false, IndexKind::Hash),
    ];
    let shape = Shape { columns: types, layout: LayoutChoice::Columns, indexes, forbidden: None };
    World::new(shape, 2)
}

/// Rows whose columns change at different rates, so that they are encoded in different ways.
fn fill(world: &mut World, rows: u32) {
    for n in 0..rows {
        let pick = |column: u32| (n / [1, 1, 3, 100, 1000, 100_000][column as usize % 6] + column) % 43;
        let row = world.shape.row(&(0..42).map(|column| pick(column) as u16).collect::<Vec<_>>());
        world.insert(usize::from(n.is_multiple_of(50)), &row);
    }
}

fn frozen_files(entries: &[FileEntry]) -> Vec<&FileEntry> {
    entries.iter().filter(|file| file.frozen.is_some()).collect()
}

random_tests! {
    #![cases(40)]

    #[test]
    fn random_frozen_table_archived_and_loaded_has_the_same_rows(
        shape in shapes(),
        inserts in proptest::collection::vec((0usize..3, proptest::collection::vec(0u16..45, 1..9)), 0..60),
        before in proptest::collection::vec((0usize..3, any::<usize>()), 0..9),
        after in proptest::collection::vec((0usize..3, any::<usize>()), 0..20),
        hot in proptest::collection::vec((0usize..3, proptest::collection::vec(0u16..45, 1..9)), 0..9),
        some in 0usize..4,
    ) {
        let (env, _) = Env::simulated(1);
        let mut world = World::new(shape, 3);
        for (partition, picks) in inserts {
            let row = world.shape.row(&picks);
            world.insert(partition, &row);
        }
        before.iter().for_each(|(partition, pick)| world.delete(*partition, *pick));
        (0..some).for_each(|partition| world.freeze(partition));
        after.iter().for_each(|(partition, pick)| world.delete(*partition, *pick));
        for (partition, picks) in hot {
            let row = world.shape.row(&picks);
            world.insert(partition, &row);
        }
        let written = world.archive(&env, None).expect("there is room");
        let manifest = written.contents.manifest().clone();
        prop_assert_eq!(manifest.rows(), world.rows().iter().map(|rows| rows.len() as u64).sum::<u64>());
        let findings = verify(&env, Path::new(DIRECTORY), 1);
        prop_assert!(findings.is_empty(), "{:?}", findings);
        let rows = sorted(world.rows());
        prop_assert_eq!(&sorted(world.load(&env, &manifest).expect("nothing is damaged")), &rows);
        // Once more from what was loaded: nothing frozen is written again.
        let files = manifest.files().filter(|file| file.frozen.is_some()).count();
        let loaded = world.reopen(&env, &manifest);
        prop_assert_eq!(world.frozen_chunks(), files);
        let again = world.archive(&env, Some(&loaded)).expect("there is room");
        let again = again.contents.manifest();
        let is_old = |file: &FileEntry| file.frozen.is_none() || file.path.starts_with("0000000001/");
        prop_assert!(again.files().all(is_old), "{:?}", again);
        prop_assert_eq!(sorted(world.load(&env, again).expect("nothing is damaged")), rows);
    }
}

#[test]
fn frozen_columns_of_all_types_come_back_as_they_were_encoded() {
    let (env, _) = Env::simulated(1);
    let mut world = world_of_all_types();
    fill(&mut world, 20_000);
    (0..300).for_each(|n| world.delete(0, n * 37));
    world.freeze(0);
    (0..300).for_each(|n| world.delete(0, n * 53));
    let (before, rows) = (world.forms(), world.rows());
    let written = world.archive(&env, None).expect("there is room");
    assert_eq!(frozen_files(&written.contents.manifest().tables[0].files).len(), 2);
    let all: String = before.iter().flatten().flatten().map(|form| format!("{form}\n")).collect();
    for form in ["constant", "runs", "runs, dictionary", "dictionary of", "integers of"] {
        assert!(all.contains(form), "{form}: {all}");
    }
    world.reopen(&env, written.contents.manifest());
    assert_eq!(world.forms()[..2], before[..2], "each column is encoded as it was");
    assert_eq!(world.rows(), rows);
    // What was loaded is a table like any other.
    (0..100).for_each(|n| world.update(0, n * 91, 4, Value::BigInt(n as i64)));
    (0..100).for_each(|n| world.delete(0, n * 17));
    let rows = world.rows();
    let again = world.archive(&env, None).expect("there is room");
    assert_eq!(world.load(&env, again.contents.manifest()).expect("nothing is damaged"), rows);
}

#[test]
fn frozen_chunk_is_written_once_whatever_happens_to_its_rows() {
    let (env, _) = Env::simulated(1);
    let mut world = World::new(small_shape(), 1);
    let row = |n: i32| [Value::Integer(n), Value::Text(format!("text {}", n % 1000))];
    (0..3 * CHUNK_ROWS as i32).for_each(|n| world.insert(0, &row(n)));
    world.freeze(0);
    (100_000..100_010).for_each(|n| world.insert(0, &row(n)));
    let first = world.archive(&env, None).expect("there is room");
    assert_eq!((first.report.files_written, first.contents.manifest().format), (4, 2));
    let places: Vec<_> = first.contents.manifest().files().map(|file| file.path.clone()).collect();
    assert_eq!(places[1], "0000000001/t3-p0-c1.frozen.arrow");

    // Rows die, one moves away, and the archive says so without the chunk's bytes.
    (0..500).for_each(|n| world.delete(0, n * 7 % 40_000));
    world.update(0, 20_000, 1, Value::from("moved"));
    let second = world.archive(&env, Some(&first.contents)).expect("there is room");
    assert_eq!((second.report.files_written, second.report.files_reused), (1, 3));
    let named: Vec<_> = second.contents.manifest().files().map(|file| file.path.clone()).collect();
    assert_eq!(named[..3], places[..3]);
    assert_eq!(world.load(&env, second.contents.manifest()).expect("nothing is damaged"), world.rows());

    // After a restart too, and when the archive that wrote it is gone.
    let loaded = world.reopen(&env, second.contents.manifest());
    world.delete(0, 5);
    let third = world.archive(&env, Some(&loaded)).expect("there is room");
    assert_eq!((third.report.files_written, third.report.files_reused), (0, 4));
    let retained = retain(&env, Path::new(DIRECTORY), 1).expect("the disk is well");
    assert_eq!(retained.removed, [2, 1]);
    assert!(verify(&env, Path::new(DIRECTORY), 3).is_empty());
    assert_eq!(world.load(&env, third.contents.manifest()).expect("nothing is damaged"), world.rows());
    let loaded = world.reopen(&env, third.contents.manifest());
    let fourth = world.archive(&env, Some(&loaded)).expect("there is room");
    assert_eq!((fourth.report.files_written, fourth.report.files_reused), (0, 4));

    // A chunk of which nothing is left is not named.
    world.delete_all(0, 0..CHUNK_ROWS as u64);
    let fifth = world.archive(&env, Some(&fourth.contents)).expect("there is room");
    assert_eq!(fifth.contents.manifest().files().count(), 3);
    assert_eq!(world.load(&env, fifth.contents.manifest()).expect("nothing is damaged"), world.rows());
}

#[test]
fn file_of_frozen_chunk_that_is_gone_is_written_again() {
    let (env, _) = Env::simulated(1);
    let mut world = World::new(small_shape(), 1);
    (0..50).for_each(|n| world.insert(0, &[Value::Integer(n), Value::Null]));
    world.freeze(0);
    let first = world.archive(&env, None).expect("there is room");
    let path = Path::new(DIRECTORY).join("0000000001/t3-p0-c0.frozen.arrow");
    env.disk.remove_file(&path).expect("it is there");
    let second = world.archive(&env, Some(&first.contents)).expect("there is room");
    assert_eq!((second.report.files_written, second.report.files_reused), (1, 0));
    assert!(verify(&env, Path::new(DIRECTORY), 2).is_empty());
}

#[test]
fn archive_without_frozen_rows_has_the_format_that_older_versions_read() {
    let (env, _) = Env::simulated(1);
    let mut world = World::new(small_shape(), 1);
    (0..50).for_each(|n| world.insert(0, &[Value::Integer(n), Value::Null]));
    let plain = world.archive(&env, None).expect("there is room");
    let path = Path::new(DIRECTORY).join("0000000001/manifest.json");
    let mut text = String::new();
    let mut file = env.disk.open(&path).expect("it is there");
    std::io::Read::read_to_string(&mut file, &mut text).expect("text");
    assert!(text.contains("\"format\":1,") && !text.contains("frozen"), "{text}");

    // The same rows, frozen since, are written as they are then; the older archive stays what it was.
    world.freeze(0);
    let frozen = world.archive(&env, Some(&plain.contents)).expect("there is room");
    assert_eq!((frozen.report.files_written, frozen.contents.manifest().format), (1, 2));
    let listing = list(&env, Path::new(DIRECTORY)).expect("the directory is there");
    for manifest in &listing.complete {
        assert_eq!(world.load(&env, manifest).expect("nothing is damaged"), world.rows());
    }
}

/// Files that a version wrote which knew nothing of frozen chunks: rows 0 to 8 by turns in two partitions, the fourth with a
/// NULL, without the second row of the first partition.
const FORMAT_1: [(&str, &[u8]); 3] = [
    ("manifest.json", include_bytes!("../format1/manifest.json")),
    ("t3-p0-c0.arrow", include_bytes!("../format1/t3-p0-c0.arrow")),
    ("t3-p1-c0.arrow", include_bytes!("../format1/t3-p1-c0.arrow")),
];

#[test]
fn archive_of_an_older_version_is_loaded_and_its_files_are_named() {
    let disk = MemoryDisk::default();
    let env = Env { disk: Arc::new(disk.clone()), ..Env::simulated(1).0 };
    for (name, bytes) in FORMAT_1 {
        disk.put(Path::new(DIRECTORY).join("0000000001").join(name), bytes);
    }
    assert!(verify(&env, Path::new(DIRECTORY), 1).is_empty());
    let manifest = Manifest::read(&env, Path::new(DIRECTORY), 1).expect("it is sound");
    assert_eq!(manifest.format, 1);
    let mut world = World::new(small_shape(), 2);
    let loaded = world.reopen(&env, &manifest);
    let text = |n: i32| if n == 4 { Value::Null } else { Value::Text(format!("row {n}")) };
    let row = |n: &i32| vec![Value::Integer(*n), text(*n)];
    let rows = [&[0, 4, 6, 8][..], &[1, 3, 5, 7]].map(|rows| rows.iter().map(row).collect::<Vec<_>>());
    assert_eq!(world.rows(), rows);
    // What is frozen now is written, and the rest stays where it is.
    world.freeze(1);
    let second = world.archive(&env, Some(&loaded)).expect("there is room");
    assert_eq!((second.report.files_written, second.report.files_reused), (1, 1));
    assert_eq!(second.contents.manifest().format, 2);
    assert_eq!(world.load(&env, second.contents.manifest()).expect("nothing is damaged"), rows);
}

#[test]
fn hot_chunks_between_frozen_ones_are_never_taken_for_others() {
    let (env, _) = Env::simulated(1);
    let shape = Shape { columns: vec![(SqlType::Integer, false)], ..small_shape() };
    let mut world = World::new(shape, 1);
    (0..6 * CHUNK_ROWS as i32).for_each(|n| world.insert(0, &[Value::Integer(n)]));
    let rows = sorted(world.rows());
    let mut contents = world.archive(&env, None).expect("there is room").contents;
    for (but, frozen) in [(&[1, 2, 4, 5][..], 2), (&[3, 5], 4), (&[5], 5), (&[], 6)] {
        world.freeze_but(0, but);
        assert_eq!(world.frozen_chunks(), frozen);
        let written = world.archive(&env, Some(&contents)).expect("there is room");
        assert_eq!(sorted(world.load(&env, written.contents.manifest()).expect("not damaged")), rows);
        let again = world.archive(&env, Some(&written.contents)).expect("there is room");
        assert_eq!(again.report.files_written, 0, "nothing has changed");
        contents = world.reopen(&env, again.contents.manifest());
        let third = world.archive(&env, Some(&contents)).expect("there is room");
        assert_eq!(sorted(world.load(&env, third.contents.manifest()).expect("not damaged")), rows);
        contents = third.contents;
    }
}

/// A type, how a column of it is encoded, and the value of the nth row.
type Form = (SqlType, &'static str, fn(i64) -> Value);

/// One of 90.
fn letter(n: i64) -> char {
    char::from(b'!' + (n % 90) as u8)
}

const FORMS: &[Form] = &[
    (SqlType::BigInt, "integers of 8", |n| Value::BigInt((n << 45) ^ i64::MIN)),
    (SqlType::BigInt, "integers of 4", |n| Value::BigInt(-1_000_000_000_000 + (n << 15))),
    (SqlType::Integer, "integers of 2", |n| Value::Integer(70_000 + n as i32 * 2)),
    (SqlType::SmallInt, "integers of 1", |n| Value::SmallInt((n * 7 % 200) as i16 - 100)),
    (SqlType::Decimal { precision: 18, scale: 4 }, "integers of 8", |n| decimal(i128::from(n << 40), 4)),
    (SqlType::Decimal { precision: 12, scale: 10 }, "integers of 4", |n| decimal(i128::from(n << 15), 10)),
    (SqlType::Decimal { precision: 7, scale: 2 }, "integers of 2", |n| decimal(i128::from(n), 2)),
    (SqlType::Decimal { precision: 38, scale: 4 }, "values of 16", |n| decimal(i128::from(n) << 70, 4)),
    (SqlType::Double, "values of 8", |n| Value::Double((n as f64).sqrt())),
    (SqlType::Real, "values of 4", |n| Value::Real((n as f32).sqrt())),
    (SqlType::Uuid, "values of 16", |n| Value::Uuid(i128::from(n * n).to_le_bytes())),
    (SqlType::Char(24), "texts of 24 bytes", |n| {
        Value::Text((1..=24).map(|at| letter(n * 7919 / at)).collect())
    }),
    (SqlType::Char(24), "24 bytes of 4 bits", |n| Value::Text(format!("{n:024}"))),
    (SqlType::Varchar(70), "texts of 4 bits", |n| Value::Text(format!("{:x}", n * n).repeat(n as usize % 5))),
    (SqlType::Text, "texts", |n| Value::Text(format!("{n}é").repeat(n as usize % 7))),
    (SqlType::Bytea, "texts", |n| Value::Bytea([&n.to_be_bytes()[..], &[255; 5][..n as usize % 5]].concat())),
    (SqlType::Text, "texts compressed by ", |n| {
        let part = ["orders", "customers", "items"][n as usize % 3];
        Value::Text(format!("https://example.com/{part}/{n}"))
    }),
    (SqlType::Bool, "runs", |n| Value::Bool(n % 4000 < 2000)),
    (SqlType::Text, "runs, dictionary", |n| Value::Text(format!("a long text {}", n / 100 % 3).repeat(9))),
    (SqlType::Timestamp, "runs", |n| Value::Timestamp((n / 1000) << 40)),
    (SqlType::Timestamp, "integers of 4", |n| Value::Timestamp(1 << 50 | (n << 15))),
    (SqlType::Date, "dictionary of", |n| Value::Date([1, 70_000, -90_000][n as usize * 7 % 11 % 3])),
    (SqlType::Varchar(60), "dictionary of 291 in 2", |n| Value::Text(format!("text {:09}", n * 7 % 300))),
    (SqlType::Varchar(60), "constant", |_| Value::from("constant")),
    (SqlType::Bytea, "constant", |_| Value::Bytea(Vec::new())),
    (SqlType::Time, "all NULL", |_| Value::Null),
];

/// Each column in one of the ways to encode it, without NULLs and with; a chunk of rows.
pub fn world_of_every_form() -> World {
    let columns = FORMS.iter().flat_map(|(ty, form, _)| [(*ty, *form == "all NULL"), (*ty, true)]).collect();
    let shape = Shape { columns, ..small_shape() };
    let mut world = World::new(Shape { indexes: Vec::new(), ..shape }, 1);
    for n in 0..CHUNK_ROWS as i64 {
        let values = FORMS.iter().enumerate().flat_map(|(at, (_, _, value))| {
            // NULLs in ranges, and here and there.
            let is_null = if at % 2 == 0 { n % 3000 < 100 } else { n * 7 % 13 < 5 };
            [value(n), if is_null { Value::Null } else { value(n) }]
        });
        world.insert(0, &values.collect::<Vec<_>>());
    }
    world.delete_all(0, (0..CHUNK_ROWS as u64).filter(|n| n % 100 < 3));
    world
}

#[test]
fn frozen_columns_of_every_form_come_back_as_they_were_encoded() {
    let (env, _) = Env::simulated(1);
    let mut world = world_of_every_form();
    world.freeze(0);
    world.delete_all(0, (0..CHUNK_ROWS as u64).filter(|n| n % 100 == 50));
    let (before, rows) = (world.forms(), world.rows());
    for ((_, form, _), pair) in FORMS.iter().zip(before[0].as_ref().expect("it is frozen").chunks(2)) {
        assert!(pair[0].contains(form.split(',').next().unwrap_or(form)), "{form}: {pair:?}");
        assert!(form.split(',').all(|part| pair[0].contains(part)), "{form}: {pair:?}");
    }
    let written = world.archive(&env, None).expect("there is room");
    assert!(verify(&env, Path::new(DIRECTORY), 1).is_empty());
    world.reopen(&env, written.contents.manifest());
    assert_eq!(world.forms(), before);
    assert_eq!(world.rows(), rows);
}

#[test]
fn columns_of_every_form_have_a_place_in_the_file_of_their_chunk() {
    let mut of_all_types = world_of_all_types();
    fill(&mut of_all_types, 20_000);
    for mut world in [world_of_every_form(), of_all_types] {
        let (env, _) = Env::simulated(1);
        world.freeze(0);
        let written = world.archive(&env, None).expect("there is room");
        let manifest = written.contents.manifest().clone();
        for is_loaded in [false, true] {
            if is_loaded {
                world.reopen(&env, &manifest);
            }
            let forms = world.forms();
            let (cold, _) = world.tables[0].cold_chunks(0, u32::MAX);
            assert!(!cold.is_empty());
            for chunk in cold {
                let files = manifest.tables[0].files_of(0);
                let file = files.iter().find(|file| file.first_chunk == chunk.number());
                let file = file.expect("it is archived");
                let found = FrozenFile::read(&env, Path::new(DIRECTORY), file).expect("it is sound");
                let forms = forms[chunk.number() as usize].as_ref().expect("it is frozen");
                for (column, mut bytes) in chunk.columns() {
                    let (place, form) = (found.place_of(column, &bytes), &forms[column.index()]);
                    let is_in_full = form.contains("compressed");
                    assert_eq!(place.is_none(), is_in_full, "column {column}: {form}");
                    let Some(place) = place else { continue };
                    assert!(place.stretches().len() <= 2, "column {column}: {place:?}");
                    bytes.push(0);
                    assert!(found.place_of(column, &bytes).is_none(), "other bytes");
                }
            }
        }
    }
}

fn decimal(unscaled: i128, scale: u8) -> Value {
    Value::Decimal(Decimal { unscaled, scale })
}
