//! The same bank under real threads: executors, callers, crossing transactions and snapshots.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use albireo_base::PartitionId;
use albireo_env::{Env, KeptCore, scope, spawn_scoped};
use albireo_partition::{Call, Route};
use albireo_storage::SnapshotScope;
use albireo_testing::wait_until;

use crate::bank::{ACCOUNTS, Bank, Ending, OPENING, Transfer, TransferArgs};

const CALLS: i32 = 400;

#[test]
fn concurrent_callers_and_snapshots_never_see_half_a_transfer() {
    let bank = Bank::new(3, 8, &Env::real());
    let transfer = Arc::new(Transfer(bank.account));
    let done = AtomicBool::new(false);
    let total = i64::from(ACCOUNTS) * OPENING;
    scope(|s| {
        for partition in 0..3 {
            let executor = bank.partitions.executor(PartitionId(partition));
            spawn_scoped(s, "executor", move || executor.run()).unwrap();
        }
        let callers: Vec<_> = (0..2)
            .map(|caller| {
                let (bank, transfer) = (&bank, Arc::clone(&transfer));
                spawn_scoped(s, "caller", move || call_all(bank, &transfer, caller)).unwrap()
            })
            .collect();
        let reader = spawn_scoped(s, "reader", || {
            let mut held = Vec::new();
            while !done.load(Ordering::Acquire) {
                let snapshot = bank.partitions.snapshot(&SnapshotScope::All).unwrap();
                held.push((snapshot.clone(), Bank::balances(&snapshot)));
                for (snapshot, balances) in &held {
                    assert_eq!(balances.iter().map(|(_, cents)| cents).sum::<i64>(), total);
                    assert_eq!(&Bank::balances(snapshot), balances, "a snapshot never changes");
                }
                if held.len() > 3 {
                    held.swap_remove(1);
                }
            }
        })
        .unwrap();
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        done.store(true, Ordering::Release);
        reader.join().unwrap();
        bank.partitions.close();
    });
    let counters = bank.partitions.counters();
    assert_eq!(counters.committed, 1 + 2 * CALLS as u64);
    let snapshot = bank.partitions.snapshot(&SnapshotScope::All).unwrap();
    assert_eq!(Bank::balances(&snapshot).iter().map(|(_, cents)| cents).sum::<i64>(), total);
}

/// Half of the calls on this thread, half through the queues; many of them cross partitions.
fn call_all(bank: &Bank, transfer: &Arc<Transfer>, caller: i32) {
    let mut pending = Vec::new();
    for i in 0..CALLS {
        let args = TransferArgs {
            from: (i * 7 + caller) % ACCOUNTS,
            to: (i * 3 + 1) % ACCOUNTS,
            cents: i64::from(i % 11),
            ending: Ending::Commits,
        };
        match i % 2 {
            0 => assert!(bank.partitions.call(&**transfer, &args).is_ok()),
            _ => pending.push(bank.partitions.submit(Arc::clone(transfer), args).unwrap()),
        }
    }
    pending.into_iter().for_each(|call| assert!(call.wait().is_ok()));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test looks at a thread of its own")]
fn who_waits_long_for_a_partition_sleeps() {
    let bank = Bank::new(1, 8, &Env::real());
    let call = || Call::new(Route::Partition(PartitionId(0)), "waits");
    let (waiting, waits) = mpsc::channel();
    scope(|s| {
        let owned = bank.partitions.transact(&call(), |_| {
            assert!(KeptCore::is_held(), "others wait for it");
            let (bank, waiting) = (&bank, waiting.clone());
            let wait = move || {
                waiting.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
                bank.partitions.transact(&call(), |_| Ok(())).unwrap();
            };
            spawn_scoped(s, "waits", wait).unwrap();
            let status = Path::new("/proc").join(waits.recv().unwrap()).join("status");
            let sleeps = || std::fs::read_to_string(&status).unwrap().contains("State:\tS");
            wait_until("the other thread sleeps", sleeps);
            Ok(())
        });
        owned.unwrap();
        assert!(!KeptCore::is_held());
    });
}

#[test]
fn pauses_for_snapshots_and_for_crossing_transactions_are_told_apart() {
    let bank = Bank::new(1, 8, &Env::real());
    let transfer = Transfer(bank.account);
    let done = AtomicBool::new(false);
    scope(|s| {
        let caller = spawn_scoped(s, "caller", || {
            let args = TransferArgs { from: 0, to: 0, cents: 0, ending: Ending::Commits };
            while !done.load(Ordering::Acquire) {
                bank.partitions.call(&transfer, &args).unwrap();
            }
        })
        .unwrap();
        let pauses = || {
            let counters = bank.partitions.counters();
            (counters.pauses_ns.len(), counters.snapshot_pauses_ns.len())
        };
        while pauses().0 < 5 {
            bank.partitions.crossing(&Call::new(Route::Crossing, "nothing"), |_| Ok(())).unwrap();
        }
        assert_eq!(pauses().1, 0);
        bank.partitions.reset_pauses();
        while pauses().0 < 5 {
            drop(bank.partitions.snapshot(&SnapshotScope::All).unwrap());
        }
        let (all, for_snapshots) = pauses();
        // The last crossing transaction's pause may have been noted after the others were forgotten.
        assert!(for_snapshots >= all - 1, "{for_snapshots} of {all}");
        done.store(true, Ordering::Release);
        caller.join().unwrap();
    });
}
