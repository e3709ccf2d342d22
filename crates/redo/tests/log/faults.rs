//! Disks that fail and disks that are full.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use albireo_env::{Disk, Env, MemoryDisk, scope, spawn_scoped};
use albireo_redo::{Log, LogError, Step, Ticket};
use albireo_testing::wait_until;

use crate::support::{Call, JournalDisk, config, put, put_freeing, read, reopen, texts, try_put};

#[test]
fn failed_sync_or_write_ends_acknowledging_for_ever() {
    for (call, after) in [(Call::Sync, 0), (Call::Write, 0), (Call::Create, 0), (Call::Allocate, 0)] {
        let disk = JournalDisk::default();
        let env = disk.env();
        // The second frame needs another segment, so that writing it makes all of these calls.
        let (_, _, log) = reopen(&env, config(1, 16384));
        let kept = put(&log, Some(0), b"kept");
        assert!(matches!(log.step(), Step::Wrote { sequence: 1, .. }));
        let lost = put(&log, Some(0), &[0; 12_000]);
        disk.fail(call, after, ErrorKind::Other);
        assert_eq!(log.step(), Step::Failed);
        disk.heal();
        assert_eq!(log.step(), Step::Failed, "what failed once is not trusted again");
        assert!(log.is_durable(kept));
        log.wait(kept).unwrap();
        assert!(!log.is_durable(lost));
        for result in [log.wait(lost), log.check(), try_put(&log, Some(0), b"more").map(drop), log.close()] {
            let message = result.unwrap_err().to_string();
            assert!(
                message.contains("the log failed") && message.contains("restart the database"),
                "{message}"
            );
        }
        assert!(try_put(&log, None, b"more").is_err());
        assert_eq!(log.durable(), 1);
        let (frames, _, _) = reopen(&env, config(1, 8192));
        assert_eq!(texts(&frames)[0], "kept");
    }
}

#[test]
fn segment_goes_only_when_the_one_behind_it_is_durable() {
    let mut failures = 0;
    for call in [Call::Sync, Call::Write, Call::Create, Call::Allocate] {
        for after in 0..6 {
            for seed in 0..8 {
                let disk = JournalDisk::default();
                let env = disk.env();
                let (_, _, log) = reopen(&env, config(1, 16384));
                put(&log, Some(0), b"kept");
                log.step();
                put(&log, Some(0), &[0; 12_000]);
                disk.fail(call, after, ErrorKind::Other);
                failures += u32::from(log.step() == Step::Failed);
                // An archive has both frames; the log must still say that it had come so far.
                let durable = log.durable();
                log.remove_before(u64::MAX).unwrap();
                let crashed = disk.crashed(disk.journal().len(), seed);
                let (_, end) = read(&(Arc::new(crashed) as Arc<dyn Disk>), 0);
                let next = end.map_or(1, |end| end.next_sequence);
                assert!(next > durable, "{call:?} after {after}, seed {seed}: the log goes on with {next}");
            }
        }
    }
    assert!(failures > 50, "{failures}");
}

#[test]
fn full_disk_refuses_records_keeps_the_batch_and_heals() {
    for (call, kind) in [
        (Call::Write, ErrorKind::StorageFull),
        (Call::Sync, ErrorKind::StorageFull),
        (Call::Create, ErrorKind::StorageFull),
        (Call::Allocate, ErrorKind::QuotaExceeded),
    ] {
        for after in 0..4 {
            let disk = JournalDisk::default();
            let env = disk.env();
            let (_, _, log) = reopen(&env, config(1, 4096 + 512));
            put(&log, Some(0), b"one");
            log.step();
            let waiting = put(&log, Some(0), b"two");
            disk.fail(call, after, kind);
            let step = log.step();
            if step != Step::Full {
                continue;
            }
            assert!(matches!(try_put(&log, Some(0), b"no"), Err(LogError::Full(_))));
            assert!(log.check().unwrap_err().to_string().contains("full"));
            assert!(!log.is_durable(waiting));
            assert_eq!(log.step(), Step::Full);
            assert!(!log.wait_until(waiting, 0).unwrap(), "waiting goes on, up to the deadline");
            let reader = log.wait_for_reader(waiting);
            assert!(matches!(reader, Err(LogError::Full(_))), "readers do not wait");
            disk.heal();
            assert!(matches!(log.step(), Step::Wrote { sequence: 2, .. }));
            log.wait(waiting).unwrap();
            log.wait_for_reader(waiting).unwrap();
            put(&log, Some(0), b"three");
            log.close().unwrap();
            let (frames, end) = read(&env.disk, 0);
            assert_eq!(texts(&frames), ["one", "two", "three"]);
            assert_eq!(end.unwrap().torn, None);
        }
    }
}

#[test]
fn log_on_a_small_disk_keeps_the_last_segment_for_what_frees_and_goes_on_when_segments_are_removed() {
    keeps_room_for_what_frees(|log| {
        log.prepare();
    });
}

#[test]
fn log_whose_helper_is_late_keeps_half_a_segment_for_what_frees() {
    keeps_room_for_what_frees(|_| {});
}

fn keeps_room_for_what_frees(help: impl Fn(&Log)) {
    let memory = MemoryDisk::with_capacity(3 * 8192 + 1024 + 100);
    let env = Env { disk: Arc::new(memory), ..Env::simulated(1).0 };
    let (_, _, log) = reopen(&env, config(1, 8192));
    let mut written = 0;
    let refused = loop {
        match try_put(&log, Some(0), format!("{written}").repeat(200).as_bytes()) {
            Ok(_) => assert!(matches!(log.step(), Step::Wrote { .. })),
            Err(refused) => break refused,
        }
        written += 1;
        help(&log);
    };
    assert!(written > 10);
    assert!(matches!(refused, LogError::Full(_)), "{refused}");
    assert!(log.is_short() && log.check().is_err() && log.check_freeing().is_ok());
    assert_eq!(log.step(), Step::Idle);
    let mut freed = 0;
    let full = loop {
        put_freeing(&log, if freed % 2 == 0 { Some(0) } else { None }, &[7; 500]).unwrap();
        match log.step() {
            Step::Wrote { .. } => freed += 1,
            step => break step,
        }
    };
    assert!(freed > 2, "{freed}");
    assert_eq!((full, log.step()), (Step::Full, Step::Full));
    assert!(matches!(put_freeing(&log, Some(0), b"no"), Err(LogError::Full(_))));
    assert!(log.remove_before(u64::MAX).unwrap() > 0);
    assert!(matches!(log.step(), Step::Wrote { .. }));
    assert!(!log.is_short(), "there is room for the next one too: {:?}", log.check());
    assert_eq!(put(&log, Some(0), b"last"), Ticket(written + freed + 2));
    log.close().unwrap();
    let (frames, end) = read(&env.disk, 0);
    assert_eq!(texts(&frames).last().unwrap(), "last");
    assert_eq!(end.unwrap().next_sequence, written + freed + 3);
}

#[test]
fn log_that_runs_by_itself_gives_ordinary_records_room_again() {
    let memory = MemoryDisk::with_capacity(3 * 8192 + 1024 + 100);
    let env = Env { disk: Arc::new(memory), ..Env::real() };
    let (_, _, log) = reopen(&env, config(1, 8192));
    scope(|scope| {
        spawn_scoped(scope, "log", || log.run()).unwrap();
        wait_until("it is short", || try_put(&log, Some(0), &[1; 300]).is_err());
        log.wait(put_freeing(&log, Some(0), b"less").unwrap()).unwrap();
        assert!(log.is_short());
        assert!(log.remove_before(u64::MAX).unwrap() > 0);
        wait_until("there is room", || log.check().is_ok());
        log.wait(put(&log, Some(0), b"more")).unwrap();
        log.close().unwrap();
    });
}

#[test]
fn closing_on_a_full_disk_says_so_and_ends_waiting() {
    let disk = JournalDisk::default();
    let env = disk.env();
    let (_, _, log) = reopen(&env, config(1, 8192));
    let ticket = put(&log, Some(0), b"one");
    disk.fail(Call::Write, 0, ErrorKind::StorageFull);
    assert!(matches!(log.close(), Err(LogError::Full(_))));
    assert!(matches!(log.wait(ticket), Err(LogError::Closed)));
    assert!(log.close().is_err());
    assert_eq!(log.step(), Step::Closed);
}

#[test]
fn closed_log_refuses_and_leaves_a_file_that_ends_with_its_last_frame() {
    let memory = MemoryDisk::default();
    let env = Env { disk: Arc::new(memory.clone()), ..Env::simulated(1).0 };
    let (_, _, log) = reopen(&env, config(1, 1 << 20));
    let ticket = put(&log, Some(0), b"one");
    log.close().unwrap();
    log.close().unwrap();
    log.wait(ticket).unwrap();
    assert!(matches!(try_put(&log, Some(0), b"two"), Err(LogError::Closed)));
    assert!(matches!(try_put(&log, None, b"two"), Err(LogError::Closed)));
    let path = format!("{}/00000000000000000001.log", crate::support::DIRECTORY);
    assert_eq!(memory.get(path).unwrap().len(), 4096 + 512);
    let paths = env.disk.read_dir(std::path::Path::new(crate::support::DIRECTORY)).unwrap();
    assert_eq!(paths.len(), 2, "a segment and the control file: {paths:?}");
}

#[test]
fn waiters_of_a_log_that_does_something_instead_make_its_steps_themselves() {
    let disk = JournalDisk::default();
    let (env, hand) = Env::simulated(1);
    let env = Env { disk: disk.env().disk, ..env };
    let (_, _, log) = reopen(&env, config(1, 8192));
    log.instead_of_waiting(move |log| {
        hand.advance(Duration::from_secs(1));
        log.step();
    });
    let ticket = put(&log, Some(0), b"first");
    log.wait(ticket).unwrap();
    assert_eq!(log.durable(), 1);
    // Nobody will ever append so many: time passes, and the wait is over.
    let deadline = env.clock.now() + 3_000_000_000;
    assert!(!log.wait_until(Ticket(100), deadline).unwrap());
    assert!(env.clock.now() >= deadline);
    let ticket = put(&log, Some(0), b"second");
    disk.fail(Call::Sync, 0, ErrorKind::Other);
    assert!(matches!(log.wait(ticket), Err(LogError::Failed(_))));
}
