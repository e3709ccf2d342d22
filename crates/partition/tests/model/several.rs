//! Transactions over some of the partitions: who goes on meanwhile, how many they take, in which order.

use albireo_base::{PartitionId, SqlState, Value};
use albireo_env::Env;
use albireo_partition::{Abort, Call, CallError, Procedure, Route, Transaction};
use albireo_storage::SnapshotScope;

use crate::bank::{ACCOUNTS, Bank, Ending, OPENING, Transfer, TransferArgs};

fn call() -> Call<'static> {
    Call::new(Route::Key(0), "several")
}

/// The numbers of the partitions that a transaction owns.
fn owned(tx: &Transaction) -> Vec<u16> {
    tx.sites().map(|site| tx.partition(site).0).collect()
}

/// Reaches for the partitions of these keys.
fn reach(tx: &Transaction, keys: &[i64]) -> Result<(), Abort> {
    keys.iter().try_for_each(|key| tx.site_of(*key).map(drop))
}

#[test]
fn others_go_on_while_a_transaction_crosses_two_partitions() {
    let bank = Bank::new(4, 8, &Env::real());
    let transfer = Transfer(bank.account);
    let across = TransferArgs { from: 0, to: 2, cents: 5, ending: Ending::Commits };
    let done = bank.partitions.transact(&call(), |tx| {
        if !tx.owns(PartitionId(2)) {
            return reach(tx, &[2]);
        }
        // In a partition that it does not own, on the same thread.
        for to in [1, 3] {
            let beside = TransferArgs { from: to, to: to + 4, cents: 1, ending: Ending::Commits };
            bank.partitions.call(&transfer, &beside).unwrap();
        }
        assert_eq!(owned(tx), [0, 2]);
        Ok(())
    });
    done.unwrap();
    bank.partitions.call(&transfer, &across).unwrap();
    let snapshot = bank.partitions.snapshot(&SnapshotScope::All).unwrap();
    let balances = Bank::balances(&snapshot);
    let cents: Vec<i64> = (0..8).map(|id| balances[id].1 - OPENING).collect();
    assert_eq!(cents, [-5, -1, 5, -1, 0, 1, 0, 1]);
}

#[test]
fn transaction_takes_what_it_reaches_for_and_all_if_it_says_no_more() {
    let bank = Bank::new(12, 8, &Env::real());
    let runs = |work: &dyn Fn(&Transaction) -> Result<(), Abort>| {
        let mut runs = Vec::new();
        let done = bank.partitions.transact(&call(), |tx| {
            runs.push(owned(tx));
            work(tx)
        });
        done.unwrap();
        runs
    };
    let all: Vec<u16> = (0..12).collect();
    assert_eq!(runs(&|tx| reach(tx, &[7, 3])), [vec![0], vec![0, 7], vec![0, 3, 7]]);
    let most = runs(&|tx| reach(tx, &[1, 2, 3, 4, 5, 6, 7, 8]));
    assert_eq!(most.len(), 9);
    assert_eq!((most[7].len(), &most[8]), (8, &all));
    // One that does not say for which.
    let any = |tx: &Transaction| if tx.owns_all() { Ok(()) } else { Err(Abort::Crossing) };
    assert_eq!(runs(&any), [vec![0], all.clone()]);
    assert_eq!(runs(&|tx| reach(tx, &[5]).and_then(|()| any(tx))), [vec![0], vec![0, 5], all]);
    let two = Bank::new(2, 8, &Env::real());
    let mut sizes = Vec::new();
    let done = two.partitions.transact(&call(), |tx| {
        sizes.push(owned(tx).len());
        reach(tx, &[1])
    });
    done.unwrap();
    assert_eq!(sizes, [1, 2]);
}

#[test]
fn transaction_over_some_partitions_writes_no_shared_table_and_leaves_no_trace_if_it_fails() {
    let bank = Bank::new(4, 8, &Env::real());
    let mut sizes = Vec::new();
    let row = [Value::Integer(2), Value::BigInt(9)];
    let wrote = bank.partitions.transact_over([PartitionId(3), PartitionId(1)], &call(), |tx| {
        sizes.push((owned(tx), tx.partition(tx.home()).0));
        tx.insert_values_at(tx.home(), bank.rates, &row).map(drop)
    });
    wrote.unwrap();
    assert_eq!(sizes, [(vec![1, 3], 3), (vec![0, 1, 2, 3], 3)]);
    let before = bank.partitions.snapshot(&SnapshotScope::All).unwrap();
    let transfer = Transfer(bank.account);
    for to in [2, 3, 1] {
        let args = TransferArgs { from: 0, to, cents: 7, ending: Ending::Commits };
        // When it has changed both.
        let failed = bank.partitions.transact(&call(), |tx| {
            transfer.run(tx, &args)?;
            assert_eq!(owned(tx), [0, to as u16]);
            Err::<(), _>(Abort::raise(SqlState::RAISE_EXCEPTION, "changed its mind"))
        });
        assert!(matches!(failed, Err(CallError::Aborted(_))));
    }
    let after = bank.partitions.snapshot(&SnapshotScope::All).unwrap();
    assert_eq!(Bank::balances(&before), Bank::balances(&after));
    // Each has its data back.
    for from in 0..ACCOUNTS {
        let args = TransferArgs { from, to: from, cents: 0, ending: Ending::Commits };
        bank.partitions.call(&transfer, &args).unwrap();
    }
}
