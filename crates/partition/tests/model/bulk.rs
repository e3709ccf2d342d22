//! Rows appended by columns over several partitions, and work done ahead on a snapshot.

use std::sync::Arc;

use albireo_base::{ColumnId, PartitionId, StatementProgress, TableId, Tid, Value};
use albireo_env::Env;
use albireo_partition::{Abort, BulkInsert, Call, CallError, Route};
use albireo_storage::{ColumnSet, RowFault, ShortKey, SnapshotScope, Table, TableError};
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};

use crate::bank::{ACCOUNTS, Bank, OPENING};

fn batch(ids: &[Option<i32>], cents: i64) -> RecordBatch {
    let cents: ArrayRef = Arc::new(Int64Array::from(vec![cents; ids.len()]));
    let ids: ArrayRef = Arc::new(Int32Array::from(ids.to_vec()));
    RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("cents", cents, true)]).unwrap()
}

fn numbers(ids: impl Iterator<Item = i32>) -> RecordBatch {
    batch(&ids.map(Some).collect::<Vec<_>>(), OPENING)
}

/// Appends rows; what went wrong with them, if anything did.
fn append(bank: &Bank, rows: BulkInsert) -> Result<u64, RowFault> {
    let mut fault = None;
    let appended = bank.partitions.crossing_once(&Call::new(Route::Crossing, "append"), |tx| {
        tx.append(rows, &StatementProgress::default(), &mut fault)
    });
    match (appended, fault) {
        (Ok(rows), None) => Ok(rows),
        (Err(CallError::Aborted(Abort::Table(error))), Some(fault)) if error == fault.error => Err(fault),
        other => panic!("unexpected {other:?}"),
    }
}

fn balances(bank: &Bank) -> Vec<(i32, i64)> {
    Bank::balances(&bank.partitions.snapshot(&SnapshotScope::All).unwrap())
}

#[test]
fn rows_of_all_partitions_are_appended_and_the_first_at_fault_is_named_by_its_place_among_all() {
    let bank = Bank::new(3, 8, &Env::real());
    let bulk = || bank.partitions.bulk_insert(bank.account.table).unwrap();
    let mut expected = balances(&bank);
    // Few rows, which are inserted one by one, and many.
    for count in [50, 5000] {
        let first = expected.len() as i32;
        let mut ids: Vec<i32> = (first..first + count).collect();
        let push = |ids: &[i32]| {
            let mut rows = bulk();
            ids.chunks(700).for_each(|ids| rows.push(&numbers(ids.iter().copied())).unwrap());
            assert_eq!(rows.row_count(), ids.len() as u64);
            rows
        };
        // Two keys of different partitions are there twice; the later one is of the first partition.
        let (early, late) = (count as usize / 2, count as usize - 5);
        let held = (ids[early], ids[late]);
        (ids[early], ids[late]) = (ids[1], ACCOUNTS - 1 - (ACCOUNTS - 1) % 3);
        let fault = append(&bank, push(&ids)).unwrap_err();
        assert!(matches!(fault.error, TableError::Duplicate { .. }), "{fault:?}");
        assert_eq!((fault.row, fault.key), (Some(early as u64), vec![Value::Integer(ids[1])]));
        assert_eq!(balances(&bank), expected, "nothing is appended");
        (ids[early], ids[late]) = held;
        assert_eq!(append(&bank, push(&ids)), Ok(count as u64));
        expected.extend(ids.iter().map(|id| (*id, OPENING)));
        assert_eq!(balances(&bank), expected);
        for (id, _) in &expected {
            let partition = PartitionId(id.rem_euclid(3) as u16);
            let found = |table: &Table| {
                let key = ShortKey::new().i32(*id);
                table.find(bank.account.by_id, key).is_some()
            };
            assert!(bank.partitions.with_table(bank.account.table, partition, found), "account {id}");
        }
    }
}

#[test]
fn row_that_does_not_fit_is_named_by_its_place_among_all_and_ends_the_collection() {
    let bank = Bank::new(3, 8, &Env::real());
    let mut rows = bank.partitions.bulk_insert(bank.account.table).unwrap();
    rows.push(&numbers(100..2100)).unwrap();
    let mut ids: Vec<Option<i32>> = (3000..3100).map(Some).collect();
    ids[70] = None;
    let fault = rows.push(&batch(&ids, 1)).unwrap_err();
    let error = TableError::NotNull { table: TableId(1), column: ColumnId(0) };
    assert_eq!((fault.row, fault.error), (Some(2070), error.clone()));
    let expected = balances(&bank);
    assert_eq!(append(&bank, rows).unwrap_err().error, error, "it stays failed");
    assert_eq!(balances(&bank), expected);
}

#[test]
fn work_done_ahead_on_a_snapshot_is_to_be_done_again_only_if_what_it_covers_has_changed() {
    let bank = Bank::new(3, 8, &Env::real());
    let of = |table: u32, columns: &[u16]| {
        let columns = ColumnSet::of(columns.iter().map(|column| ColumnId(*column)));
        SnapshotScope::Tables([(TableId(table), columns)].into())
    };
    let set_cents = |id: i32, cents: i64| {
        let call = Call::new(Route::Crossing, "set");
        let set = bank.partitions.crossing(&call, |tx| {
            let site = tx.site_of(id.into())?;
            let key = ShortKey::new().i32(id);
            let tid = tx.table_at(site, bank.account.table).find(bank.account.by_id, key);
            let cents = [(ColumnId(1), Value::BigInt(cents))];
            tx.update_values_at(site, bank.account.table, tid.expect("it is there"), &cents)
        });
        set.unwrap();
    };
    let insert = |id: i32| {
        let mut rows = bank.partitions.bulk_insert(bank.account.table).unwrap();
        rows.push(&numbers(std::iter::once(id))).unwrap();
        append(&bank, rows).unwrap();
    };
    let is_current = |seen| {
        let call = Call::new(Route::Crossing, "since");
        bank.partitions.crossing_if_current(&call, seen, |_| Ok(())).unwrap().is_some()
    };
    let whole = || bank.partitions.snapshot(&of(1, &[0, 1])).unwrap();
    assert!(is_current(whole()));
    let seen = whole();
    set_cents(4, 1);
    assert!(!is_current(seen), "a value was changed");
    let seen = whole();
    insert(1000);
    assert!(!is_current(seen), "a row came");
    for columns in [&[0, 1][..], &[]] {
        let seen = bank.partitions.snapshot(&of(1, columns)).unwrap();
        let deleted = bank.partitions.crossing(&Call::new(Route::Crossing, "delete"), |tx| {
            let id = 7 + columns.len() as i32;
            let site = tx.site_of(id.into())?;
            let tid = tx.table_at(site, bank.account.table).find(bank.account.by_id, ShortKey::new().i32(id));
            tx.delete_at(site, bank.account.table, tid.expect("it is there"))
        });
        deleted.unwrap();
        assert!(!is_current(seen), "a row went; columns {columns:?}");
    }
    let rates = bank.partitions.snapshot(&of(2, &[1])).unwrap();
    let rise = bank.partitions.crossing(&Call::new(Route::Crossing, "rise"), |tx| {
        let tid = tx.table_at(tx.home(), bank.rates).scan_from(Tid(0)).next().expect("there is a rate");
        tx.update_values_at(tx.home(), bank.rates, tid, &[(ColumnId(1), Value::BigInt(8))])
    });
    rise.unwrap();
    assert!(!is_current(rates), "a shared table was changed");
    let ids = bank.partitions.snapshot(&of(1, &[0])).unwrap();
    set_cents(4, 2);
    assert!(is_current(ids), "what was changed is not covered");
    let rates = bank.partitions.snapshot(&of(2, &[0, 1])).unwrap();
    insert(1001);
    assert!(is_current(rates), "another table was changed");
    let seen = whole();
    let aborted = bank.partitions.crossing(&Call::new(Route::Crossing, "abort"), |tx| {
        let site = tx.site_of(5)?;
        tx.insert_values_at(site, bank.account.table, &[Value::Integer(5000), Value::BigInt(1)])?;
        Err::<(), _>(Abort::Crossing)
    });
    assert!(aborted.is_err());
    assert!(is_current(seen), "a row that was inserted and taken back leaves no trace");
}
