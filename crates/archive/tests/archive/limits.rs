//! Bandwidth, cancelling, progress, one writer at a time.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use albireo_archive::{ArchiveError, Progress, Step, Writer, list, retain, write};
use albireo_base::Value;
use albireo_env::Env;

use crate::world::{DIRECTORY, World, small_shape};

fn world() -> World {
    let mut world = World::new(small_shape(), 4);
    for n in 0..4000 {
        world.insert(n as usize % 4, &[Value::Integer(n), Value::Text("text ".repeat(20))]);
    }
    world
}

#[test]
fn archive_with_a_bandwidth_takes_as_long_as_its_bytes_allow() {
    let (env, _) = Env::simulated(1);
    let mut world = world();
    let mut request = world.request();
    request.bytes_per_second = NonZeroU64::new(100_000);
    let snapshot = world.snapshot();
    let mut seen: Vec<Progress> = Vec::new();
    let written = write(&env, Path::new(DIRECTORY), snapshot, request, None, |progress| seen.push(progress));
    let report = written.expect("there is room").report;
    let allowed_ns = report.bytes_written * 10_000;
    assert!((allowed_ns..allowed_ns + 1_000_000).contains(&report.duration_ns), "{report:?}");
    assert!(seen.is_sorted_by_key(|progress| (progress.rows_done, progress.bytes_written)));
    let last = seen.last().expect("it was called");
    assert_eq!((last.rows_done, last.rows_total), (4000, 4000));
    assert_eq!(
        (last.bytes_written, last.bytes_total_estimate()),
        (report.bytes_written, report.bytes_written)
    );
    assert!(seen.len() >= 4);
}

#[test]
fn cancelled_archive_stops_and_leaves_no_trace() {
    let (env, _) = Env::simulated(1);
    let mut world = world();
    let request = world.request();
    let (cancel, snapshot) = (Arc::clone(&request.cancel), world.snapshot());
    let stopped = write(&env, Path::new(DIRECTORY), snapshot, request, None, |progress| {
        cancel.store(progress.rows_done >= 1000, Ordering::Relaxed);
    });
    assert!(matches!(stopped, Err(ArchiveError::Cancelled)));
    let listing = list(&env, Path::new(DIRECTORY)).expect("the directory is there");
    assert!(listing.complete.is_empty() && listing.incomplete.is_empty());
}

#[test]
fn while_one_archive_is_written_no_other_is_and_none_is_thrown_away() {
    let (env, _) = Env::simulated(1);
    let (mut world, directory) = (world(), Path::new(DIRECTORY));
    let (request, snapshot) = (world.request(), world.snapshot());
    let mut writer = Writer::begin(&env, directory, snapshot, request, None).expect("the first");
    assert!(matches!(world.archive(&env, None), Err(ArchiveError::Busy { .. })));
    assert!(matches!(retain(&env, directory, 1), Err(ArchiveError::Busy { .. })));
    // Transactions go on.
    let before = world.rows();
    world.insert(0, &[Value::Integer(-1), Value::Null]);
    let written = loop {
        world.delete(1, 5);
        match writer.step().expect("there is room") {
            Step::More { pause } => assert!(pause.is_zero()),
            Step::Done(written) => break written,
        }
    };
    drop(writer);
    let manifest = written.contents.manifest();
    assert_eq!(world.load(&env, manifest).expect("nothing is damaged"), before);
    world.archive(&env, None).expect("the first is done");
    retain(&env, directory, 1).expect("the second is done");
}

#[test]
fn empty_table_is_archived_without_files() {
    let (env, _) = Env::simulated(1);
    let mut world = World::new(small_shape(), 2);
    let written = world.archive(&env, None).expect("there is room");
    assert_eq!((written.report.files_written, written.report.rows), (0, 0));
    assert_eq!(world.load(&env, written.contents.manifest()).expect("nothing is damaged"), world.rows());
    // All rows dead is like none.
    world.insert(0, &[Value::Integer(1), Value::Null]);
    world.delete(0, 0);
    let written = world.archive(&env, Some(&written.contents)).expect("there is room");
    assert_eq!((written.report.files_written, written.report.rows), (0, 0));
}

#[test]
fn list_of_no_directory_is_empty_and_nothing_is_thrown_away() {
    let (env, _) = Env::simulated(1);
    assert!(list(&env, Path::new(DIRECTORY)).expect("none is fine").complete.is_empty());
    assert!(retain(&env, Path::new(DIRECTORY), 3).expect("none is fine").removed.is_empty());
}
