//! Power that goes, and a disk that runs full, at every operation.

use std::path::Path;
use std::sync::Arc;

use albireo_archive::{ArchiveError, Contents, Manifest, list, retain, verify};
use albireo_base::Value;
use albireo_env::{Disk, Env, FaultyDisk, MemoryDisk};

use crate::disk::{LUCK, PowerDisk};
use crate::world::{DIRECTORY, Rows, World, small_shape};

fn env_on(disk: impl Disk + 'static) -> Env {
    Env { disk: Arc::new(disk), ..Env::simulated(1).0 }
}

/// Two archives on a disk, the second referring to files of the first, and the rows of each. Where `freezes` says so, the
/// rows of a partition are frozen, and one of them dies between the archives.
fn two_archives(freezes: bool) -> (World, MemoryDisk, Contents, [Rows; 2]) {
    let (mut world, disk) = (World::new(small_shape(), 3), MemoryDisk::default());
    let env = env_on(disk.clone());
    for n in 0..30 {
        world.insert(n as usize % 3, &[Value::Integer(n), Value::Text(format!("row {n}").repeat(9))]);
    }
    if freezes {
        world.freeze(1);
    }
    let first = world.archive(&env, None).expect("there is room");
    let rows = world.rows();
    world.insert(0, &[Value::Integer(100), Value::Null]);
    if freezes {
        world.delete(1, 3);
    }
    let second = world.archive(&env, Some(&first.contents)).expect("there is room");
    assert_eq!((second.report.files_written, second.report.files_reused), (1, 2));
    let all = [rows, world.rows()];
    (world, disk, second.contents, all)
}

/// Every complete archive can be loaded and has its rows; gives their numbers.
fn check(world: &World, env: &Env, rows: &[Rows]) -> Vec<u64> {
    let listing = list(env, Path::new(DIRECTORY)).expect("the directory is there");
    assert!(listing.unreadable.is_empty(), "{:?}", listing.unreadable);
    for manifest in &listing.complete {
        let findings = verify(env, Path::new(DIRECTORY), manifest.number);
        assert!(findings.is_empty(), "{findings:?}");
        let loaded = world.load(env, manifest).expect("nothing is damaged");
        assert_eq!(loaded, rows[manifest.number as usize - 1]);
    }
    listing.complete.iter().map(|manifest| manifest.number).collect()
}

#[test]
fn power_lost_at_any_operation_of_writing_leaves_no_archive_or_a_complete_one() {
    [false, true].into_iter().for_each(lose_power_writing);
}

fn lose_power_writing(freezes: bool) {
    let (mut world, before, contents, rows) = two_archives(freezes);
    if freezes {
        // Another file of a frozen chunk is to be written.
        world.freeze(2);
    }
    world.insert(1, &[Value::Integer(200), Value::from("new")]);
    let rows = [rows[0].clone(), rows[1].clone(), world.rows()];
    let (mut absent, mut present) = (0, 0);
    for operations in 0.. {
        let disk = PowerDisk::on(&before);
        disk.fail_after(operations);
        let written = world.archive(&env_on(disk.clone()), Some(&contents));
        for luck in LUCK {
            let env = env_on(disk.after(luck));
            let complete = check(&world, &env, &rows);
            match &complete[..] {
                [2, 1] => {
                    assert!(written.is_err(), "an archive that was promised is lost: {luck:?} {operations}");
                    absent += 1;
                }
                [3, 2, 1] => present += 1,
                other => panic!("archives {other:?} with {luck:?} after {operations} operations"),
            }
            // Life goes on: leftovers go, the next archive is written.
            retain(&env, Path::new(DIRECTORY), 5).expect("the disk is well");
            let listing = list(&env, Path::new(DIRECTORY)).expect("the directory is there");
            assert!(listing.incomplete.is_empty() && listing.needed.is_empty());
            assert_eq!(check(&world, &env, &rows), complete);
            let next = world.archive(&env, Some(&contents)).expect("the disk is well");
            assert_eq!(world.load(&env, next.contents.manifest()).expect("not damaged"), rows[2]);
        }
        if written.is_ok() {
            assert!(!disk.has_failed());
            assert!(operations > 10 && absent > 40 && present > 0, "{operations} {absent} {present}");
            break;
        }
    }
}

#[test]
fn power_lost_at_any_operation_of_throwing_away_leaves_complete_archives_whole() {
    [false, true].into_iter().for_each(lose_power_throwing_away);
}

fn lose_power_throwing_away(freezes: bool) {
    let (mut world, before, contents, rows) = two_archives(freezes);
    let frozen = usize::from(freezes);
    world.insert(1, &[Value::Integer(200), Value::from("new")]);
    let third = world.archive(&env_on(before.clone()), Some(&contents)).expect("there is room");
    assert_eq!((third.report.files_written, third.report.files_reused), (1, 2 + frozen as u64));
    let rows = [rows[0].clone(), rows[1].clone(), world.rows()];
    // Something that a crash before left behind.
    before.put(Path::new(DIRECTORY).join("0000000004/t3-p0-c0.arrow"), b"half");
    for operations in 0.. {
        let disk = PowerDisk::on(&before);
        disk.fail_after(operations);
        let retained = retain(&env_on(disk.clone()), Path::new(DIRECTORY), 1);
        for luck in LUCK {
            let env = env_on(disk.after(luck));
            let complete = check(&world, &env, &rows);
            assert_eq!(complete[0], 3, "the newest stays");
            assert!(retained.is_err() || complete.len() == 1, "{complete:?}");
            let again = retain(&env, Path::new(DIRECTORY), 1).expect("the disk is well");
            assert_eq!(again.complete, [3]);
            assert_eq!(check(&world, &env, &rows), [3]);
            assert_eq!(files(&env), 3 + frozen + 1, "all data files and a manifest are left");
        }
        if retained.is_ok() {
            assert!(operations > 8);
            break;
        }
    }
}

fn files(env: &Env) -> usize {
    let archives = env.disk.read_dir(Path::new(DIRECTORY)).expect("it is there");
    archives.iter().filter_map(|archive| env.disk.read_dir(archive).ok()).map(|files| files.len()).sum()
}

#[test]
fn disk_that_runs_full_at_any_write_leaves_older_archives_and_no_trace() {
    let (mut world, before, contents, rows) = two_archives(true);
    world.insert(1, &[Value::Integer(200), Value::from("new")]);
    let (env, all) = (env_on(before.clone()), files(&env_on(before.clone())));
    for writes in 0.. {
        let full = FaultyDisk::failing_after(Arc::new(before.clone()), writes);
        match world.archive(&env_on(full), Some(&contents)) {
            Err(ArchiveError::NoSpace { path }) => {
                assert!(path.starts_with("/database"), "{}", path.display());
                assert_eq!(files(&env), all, "nothing is left after {writes} writes");
                assert_eq!(check(&world, &env, &rows), [2, 1]);
                let listing = list(&env, Path::new(DIRECTORY)).expect("the directory is there");
                assert!(listing.incomplete.is_empty());
            }
            Ok(written) => {
                assert!(writes > 6);
                let manifest = Manifest::read(&env, Path::new(DIRECTORY), 3).expect("it is complete");
                assert_eq!(&manifest, written.contents.manifest());
                assert_eq!(world.load(&env, &manifest).expect("nothing is damaged"), world.rows());
                break;
            }
            Err(other) => panic!("unexpected {other}"),
        }
    }
}

#[test]
fn disk_of_any_capacity_takes_the_archive_or_says_that_it_is_full() {
    let mut world = World::new(small_shape(), 1);
    (0..100).for_each(|n| world.insert(0, &[Value::Integer(n), Value::from("some text")]));
    let mut fitted = 0;
    for capacity in (0..8000).step_by(97) {
        let env = env_on(MemoryDisk::with_capacity(capacity));
        match world.archive(&env, None) {
            Ok(_) => {
                fitted += 1;
                assert!(verify(&env, Path::new(DIRECTORY), 1).is_empty());
            }
            Err(ArchiveError::NoSpace { .. }) => {
                assert_eq!(fitted, 0, "less fits than before");
                assert_eq!(env.disk.free_bytes(Path::new("/")).expect("memory"), capacity);
            }
            Err(other) => panic!("unexpected {other}"),
        }
    }
    assert!(fitted > 0);
}
