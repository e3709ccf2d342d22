//! Chunks that are written while they are encoded.

use std::cell::Cell;

use albireo_partition::TableHandle;

use super::everything::is_asked;
use super::freezer::ChunkPlace;
use super::{FreezeReport, How, Pick};
use crate::{Config, Database};

/// Two chunks of a table, with nothing after them.
fn database() -> (Database, TableHandle) {
    let db = Database::with_env(Config { query_threads: 1, ..Config::default() }, albireo_env::Env::real())
        .unwrap();
    db.execute(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER NOT NULL);
         INSERT INTO t SELECT g, 0 FROM generate_series(1, 32768) s (g)",
    )
    .unwrap();
    let def = db.table_called("t").unwrap();
    let table = TableHandle::new(def.id, def.is_shared());
    (db, table)
}

/// Freezes the table while somebody writes the first chunk so often, each time between its snapshot and its end.
fn frozen_while_written(db: &Database, table: TableHandle, times: u32) -> FreezeReport {
    let (written, mut report) = (Cell::new(0), FreezeReport::default());
    let wants = |place: &ChunkPlace| {
        // Whoever asks has the snapshot, and has not encoded anything of it.
        if place.1 == 0 && written.get() < times {
            written.set(written.get() + 1);
            db.execute("UPDATE t SET b = b + 1 WHERE a = 5").unwrap();
        }
        true
    };
    let pick = Pick { wants: &wants, goes_on: &|| true, how: How::Here };
    db.freeze_until_done(table, pick, &mut report).unwrap();
    assert_eq!(written.get(), times);
    report
}

#[test]
fn chunk_that_is_written_while_it_is_encoded_is_encoded_again() {
    if is_asked() {
        return;
    }
    for times in 0..=4 {
        let (db, table) = database();
        let report = frozen_while_written(&db, table, times);
        assert_eq!((report.chunks, report.left, report.again), (2, 0, u64::from(times)), "{times} times");
        let sums = db.query("SELECT count(*), sum(a), sum(b) FROM t", &[]).unwrap();
        let sums: Vec<String> = sums.rows()[0].iter().map(ToString::to_string).collect();
        assert_eq!(sums.join(","), format!("32768,536887296,{times}"));
    }
}

#[test]
fn chunk_that_is_written_all_the_time_stays_as_it_is() {
    if is_asked() {
        return;
    }
    let (db, table) = database();
    let report = frozen_while_written(&db, table, 5);
    assert_eq!((report.chunks, report.left, report.again), (1, 1, 4));
    let report = frozen_while_written(&db, table, 0);
    assert_eq!((report.chunks, report.left, report.again), (1, 0, 0));
    // The other chunk is frozen while this one waits, and is not encoded again.
    let outcome = db.execute("CALL albireo.freeze('t')").unwrap();
    assert!(format!("{outcome:?}").contains("0 chunks of \\\"t\\\" frozen"), "{outcome:?}");
}
