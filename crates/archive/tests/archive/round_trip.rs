//! What is written is read, and what has not changed is not written again.

use std::path::Path;

use albireo_archive::{Manifest, list, verify};
use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{ColumnId, SqlType, Value};
use albireo_env::Env;
use albireo_storage::{IndexKind, LayoutChoice};
use albireo_testing::random_tests;
use proptest::prelude::*;

use crate::shape::{Shape, TYPES, shapes, value};
use crate::world::{DIRECTORY, World};

random_tests! {
    #![cases(64)]

    #[test]
    fn random_table_archived_and_loaded_has_the_same_rows(
        shape in shapes(),
        inserts in proptest::collection::vec((0usize..3, proptest::collection::vec(0u16..45, 1..9)), 0..60),
        deletes in proptest::collection::vec((0usize..3, any::<usize>()), 0..20),
    ) {
        let (env, _) = Env::simulated(1);
        let mut world = World::new(shape, 3);
        for (partition, picks) in inserts {
            let row = world.shape.row(&picks);
            world.insert(partition, &row);
        }
        for (partition, pick) in deletes {
            world.delete(partition, pick);
        }
        let written = world.archive(&env, None).expect("there is room");
        let listing = list(&env, Path::new(DIRECTORY)).expect("the directory is there");
        prop_assert_eq!(&listing.complete, &[written.contents.manifest().clone()]);
        prop_assert!(listing.unreadable.is_empty() && listing.incomplete.is_empty());
        let manifest = &listing.complete[0];
        prop_assert_eq!(&manifest.catalog, &world.request().catalog);
        prop_assert_eq!(manifest.log, world.request().log);
        prop_assert_eq!(manifest.rows(), world.rows().iter().map(|rows| rows.len() as u64).sum::<u64>());
        prop_assert!(verify(&env, Path::new(DIRECTORY), 1).is_empty());
        prop_assert_eq!(world.load(&env, manifest).expect("nothing is damaged"), world.rows());
    }
}

/// A table of several files in the first of two partitions.
fn large_world(layout: LayoutChoice) -> World {
    let columns = TYPES.iter().enumerate().map(|(i, &ty)| (ty, i % 2 == 0)).collect();
    let shape = Shape {
        columns,
        layout,
        indexes: vec![(vec![ColumnId(0)], false, IndexKind::Ordered)],
        forbidden: None,
    };
    let mut world = World::new(shape, 2);
    for n in 0..2 * CHUNK_ROWS as u32 + 1000 {
        let row =
            world.shape.row(&(0..21u32).map(|column| ((n + 3 * column) % 43) as u16).collect::<Vec<_>>());
        world.insert(usize::from(n.is_multiple_of(50)), &row);
    }
    world
}

#[test]
fn table_of_several_chunks_is_read_back_in_every_layout() {
    let groups = LayoutChoice::Groups(vec![(3..12).map(ColumnId).collect(), vec![ColumnId(1), ColumnId(18)]]);
    for layout in [LayoutChoice::Columns, LayoutChoice::Rows, groups] {
        let (env, _) = Env::simulated(1);
        let mut world = large_world(layout);
        for n in 0..500 {
            world.delete(0, n * 31);
        }
        let written = world.archive(&env, None).expect("there is room");
        assert_eq!(world.load(&env, written.contents.manifest()).expect("nothing is damaged"), world.rows());
        assert_eq!(written.report.rows, written.contents.manifest().rows());
    }
}

#[test]
fn files_of_unchanged_chunks_are_referred_to_and_others_written() {
    let shape = Shape {
        columns: vec![(SqlType::Text, true); 40],
        layout: LayoutChoice::Columns,
        indexes: Vec::new(),
        forbidden: None,
    };
    let (env, _) = Env::simulated(1);
    let mut world = World::new(shape, 2);
    for n in 0..CHUNK_ROWS * 3 + 10 {
        let row = vec![value(SqlType::Integer, n as u16); 40];
        let row: Vec<Value> = row.iter().map(|value| Value::Text(format!("{value}"))).collect();
        world.insert(usize::from(n % 10 == 0), &row);
    }
    let first = world.archive(&env, None).expect("there is room");
    let files = first.report.files_written;
    assert!(files >= 2 && first.report.files_reused == 0, "{:?}", first.report);

    let again = world.archive(&env, Some(&first.contents)).expect("there is room");
    assert_eq!((again.report.files_written, again.report.files_reused), (0, files));
    assert_eq!(again.report.bytes_reused, first.report.bytes_written);
    assert!(again.contents.manifest().files().all(|file| file.path.starts_with("0000000001/")));

    // One row of the second partition changes; the first has a row more in its last chunk.
    world.update(1, 5, 7, Value::from("changed"));
    let third = world.archive(&env, Some(&again.contents)).expect("there is room");
    assert_eq!((third.report.files_written, third.report.files_reused), (1, files - 1));
    world.delete(0, 3);
    let fourth = world.archive(&env, Some(&third.contents)).expect("there is room");
    assert_eq!(fourth.report.files_written, 1);
    let row = world.tables[0].row(albireo_base::Tid(5));
    world.insert(0, &row);
    let fifth = world.archive(&env, Some(&fourth.contents)).expect("there is room");
    assert_eq!(fifth.report.files_written, 1);

    for written in [&fifth, &fourth, &third] {
        assert!(verify(&env, Path::new(DIRECTORY), written.report.number).is_empty());
    }
    assert_eq!(world.load(&env, fifth.contents.manifest()).expect("nothing is damaged"), world.rows());
    // Without knowledge everything is written.
    let sixth = world.archive(&env, None).expect("there is room");
    assert_eq!((sixth.report.files_written, sixth.report.files_reused), (files, 0));
}

#[test]
fn files_are_not_referred_to_when_they_or_the_archive_or_the_columns_are_not_what_they_were() {
    let (env, _) = Env::simulated(1);
    let mut world = World::new(crate::world::small_shape(), 1);
    world.insert(0, &[Value::Integer(1), Value::from("one")]);
    let first = world.archive(&env, None).expect("there is room");
    let entry = first.contents.manifest().files().next().expect("one file").clone();
    let path = Path::new(DIRECTORY).join(&entry.path);

    let mut request = world.request();
    request.tables[0].columns[1].name = "renamed".to_owned();
    let snapshot = world.snapshot();
    let renamed =
        albireo_archive::write(&env, Path::new(DIRECTORY), snapshot, request, Some(&first.contents), |_| {});
    assert_eq!(renamed.expect("there is room").report.files_written, 1);

    env.disk.remove_file(&path).expect("it is there");
    let second = world.archive(&env, Some(&first.contents)).expect("there is room");
    assert_eq!((second.report.files_written, second.report.files_reused), (1, 0));
    assert!(verify(&env, Path::new(DIRECTORY), second.report.number).is_empty());

    let manifest = Path::new(DIRECTORY).join("0000000003/manifest.json");
    env.disk.remove_file(&manifest).expect("it is there");
    let third = world.archive(&env, Some(&second.contents)).expect("there is room");
    assert_eq!((third.report.files_written, third.report.files_reused), (1, 0));
    assert_eq!(Manifest::read(&env, Path::new(DIRECTORY), 4).expect("complete").number, 4);
}
