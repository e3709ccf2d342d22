//! Throwing archives away never takes what another needs.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use albireo_archive::{Contents, Manifest, list, retain, retain_unless, verify};
use albireo_base::Value;
use albireo_env::Env;
use albireo_testing::random_tests;
use proptest::prelude::*;

use crate::world::{DIRECTORY, Rows, World, small_shape};

#[derive(Clone, Debug)]
enum Op {
    Insert(usize, i32),
    Delete(usize, usize),
    Archive,
    /// As after a restart.
    Forget,
    Retain(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        5 => (0usize..4, 0..1000i32).prop_map(|(p, n)| Op::Insert(p, n)),
        1 => (0usize..4, any::<usize>()).prop_map(|(p, n)| Op::Delete(p, n)),
        4 => Just(Op::Archive),
        1 => Just(Op::Forget),
        2 => (0usize..4).prop_map(Op::Retain),
    ];
    proptest::collection::vec(op, 1..60)
}

/// The data files that are there.
fn files(env: &Env) -> HashSet<String> {
    let directory = Path::new(DIRECTORY);
    let archives = env.disk.read_dir(directory).unwrap_or_default();
    let files = archives.iter().flat_map(|archive| env.disk.read_dir(archive).unwrap_or_default());
    let names = files.filter(|file| file.extension().is_some_and(|e| e == "arrow"));
    names
        .map(|file| file.strip_prefix(directory).expect("below").to_str().expect("plain").to_owned())
        .collect()
}

random_tests! {
    #![cases(48)]

    #[test]
    fn archives_that_stay_are_whole_and_nothing_else_stays(ops in ops()) {
        let (env, _) = Env::simulated(1);
        let directory = Path::new(DIRECTORY);
        let mut world = World::new(small_shape(), 4);
        let mut expected: BTreeMap<u64, Rows> = BTreeMap::new();
        let mut contents: Option<Contents> = None;
        for op in ops {
            match op {
                Op::Insert(partition, n) => world.insert(partition, &[Value::Integer(n), Value::Null]),
                Op::Delete(partition, pick) => world.delete(partition, pick),
                Op::Archive => {
                    let written = world.archive(&env, contents.as_ref()).expect("there is room");
                    expected.insert(written.report.number, world.rows());
                    contents = Some(written.contents);
                }
                Op::Forget => contents = None,
                Op::Retain(keep) => {
                    let retained = retain(&env, directory, keep).expect("nobody else is there");
                    while expected.len() > keep.max(1) {
                        let (number, _) = expected.pop_first().expect("one is too many");
                        prop_assert!(retained.removed.contains(&number));
                    }
                }
            }
            let complete = list(&env, directory).expect("it can be read").complete;
            let numbers: Vec<u64> = complete.iter().map(|manifest| manifest.number).collect();
            prop_assert_eq!(&numbers, &expected.keys().rev().copied().collect::<Vec<_>>());
            for manifest in &complete {
                prop_assert!(verify(&env, directory, manifest.number).is_empty());
                prop_assert_eq!(&world.load(&env, manifest).expect("whole"), &expected[&manifest.number]);
            }
            let named: HashSet<String> =
                complete.iter().flat_map(Manifest::files).map(|file| file.path.clone()).collect();
            let there = files(&env);
            prop_assert!(named.is_subset(&there));
            if matches!(op, Op::Retain(_)) {
                prop_assert_eq!(there, named, "what nobody names is gone");
            }
        }
    }
}

#[test]
fn archive_with_an_unreadable_manifest_keeps_all_files_that_it_may_name() {
    let (env, _) = Env::simulated(1);
    let directory = Path::new(DIRECTORY);
    let mut world = World::new(small_shape(), 2);
    world.insert(0, &[Value::Integer(1), Value::Null]);
    world.insert(1, &[Value::Integer(1), Value::Null]);
    let first = world.archive(&env, None).expect("there is room");
    world.insert(0, &[Value::Integer(2), Value::Null]);
    let second = world.archive(&env, Some(&first.contents)).expect("there is room");
    world.insert(0, &[Value::Integer(3), Value::Null]);
    world.insert(1, &[Value::Integer(3), Value::Null]);
    let third = world.archive(&env, Some(&second.contents)).expect("there is room");
    world.insert(1, &[Value::Integer(4), Value::Null]);
    world.archive(&env, Some(&third.contents)).expect("there is room");

    let path = directory.join("0000000002/manifest.json");
    let mut bytes = Vec::new();
    env.disk.open(&path).expect("it is there").read_to_end(&mut bytes).expect("memory");
    let broken = [&bytes[..50], b"?", &bytes[51..]].concat();
    env.disk.create(&path).expect("memory").write_all(&broken).expect("memory");

    let before = files(&env);
    let retained = retain(&env, directory, 1).expect("nobody else is there");
    assert_eq!((&retained.removed[..], &retained.unreadable[..]), (&[3, 1][..], &[2][..]));
    assert_eq!(retained.complete, [4]);
    let gone: HashSet<_> = before.difference(&files(&env)).cloned().collect();
    // The third archive's file of partition 0 is named by the fourth; that of partition 1 by nobody.
    assert_eq!(gone, HashSet::from(["0000000003/t3-p1-c0.arrow".to_owned()]));
    assert_eq!(list(&env, directory).expect("it can be read").needed, [3, 1]);

    env.disk.create(&path).expect("memory").write_all(&bytes).expect("memory");
    assert!(verify(&env, directory, 2).is_empty(), "the manifest was mended, and all is there");
    assert_eq!(retain(&env, directory, 1).expect("nobody else is there").removed, [2]);
}

#[test]
fn file_that_somebody_reads_stays_as_long_as_that_is_so() {
    let (env, _) = Env::simulated(1);
    let directory = Path::new(DIRECTORY);
    let mut world = World::new(small_shape(), 1);
    (0..50).for_each(|n| world.insert(0, &[Value::Integer(n), Value::Null]));
    world.freeze(0);
    let first = world.archive(&env, None).expect("there is room");
    world.delete_all(0, 0..50);
    world.archive(&env, Some(&first.contents)).expect("there is room");
    let read = "0000000001/t3-p0-c0.frozen.arrow";
    assert_eq!(files(&env), HashSet::from([read.to_owned()]));
    let retained = retain_unless(&env, directory, 1, &|path, remove| (path != read).then(remove));
    assert_eq!(retained.expect("nobody else is there").removed, [1]);
    assert_eq!(files(&env), HashSet::from([read.to_owned()]), "no archive names it");
    assert_eq!(list(&env, directory).expect("it can be read").incomplete, [1]);
    let retained = retain(&env, directory, 1).expect("nobody else is there");
    assert_eq!((retained.removed.len(), retained.files_removed), (0, 1));
    assert!(files(&env).is_empty() && list(&env, directory).expect("it can be read").incomplete.is_empty());
}
