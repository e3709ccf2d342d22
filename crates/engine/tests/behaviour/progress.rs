//! How far COPY and CREATE INDEX are, seen from outside while they run.

use std::sync::{Arc, OnceLock};

use albireo::Connection;
use albireo::progress::{Phase, Progress, Unit};
use albireo_env::MemoryDisk;
use parking_lot::Mutex;

use crate::support::{database, database_on, run, small};
use crate::watched::WatchedDisk;

#[test]
fn copy_from_tells_how_much_of_the_file_is_read_and_nothing_afterwards() {
    let (memory, asked, seen) =
        (MemoryDisk::default(), Arc::new(OnceLock::new()), Arc::new(Mutex::default()));
    let line = |a: u32| format!("{a},{a:0>60}\n");
    let contents: String = (0..100_000).map(line).collect();
    memory.put("/t.csv", contents.as_bytes());
    let disk = WatchedDisk::new(memory, {
        let (asked, seen): (Arc<OnceLock<Connection>>, Arc<Mutex<Vec<Progress>>>) =
            (Arc::clone(&asked), Arc::clone(&seen));
        move || seen.lock().extend(asked.get().and_then(Connection::progress))
    });
    let db = database_on(disk, small());
    run(&db, "CREATE TABLE t (a INTEGER, b TEXT)");
    let connection = asked.get_or_init(|| db.connect());
    connection.execute("COPY t FROM '/t.csv'").unwrap();
    assert_eq!(connection.progress(), None);
    let total = contents.len() as u64;
    let seen = seen.lock();
    let read: Vec<_> = seen.iter().filter(|progress| progress.phase == Phase::ReadingFile).collect();
    assert!(read.iter().all(|progress| (progress.unit, progress.total) == (Unit::Bytes, Some(total))));
    assert!(read.is_sorted_by_key(|progress| progress.done), "{read:?}");
    assert!(read.iter().any(|progress| progress.done > 0 && progress.done < total), "{read:?}");
}

#[test]
fn statement_that_fails_leaves_no_progress_behind() {
    let db = database();
    run(&db, "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (1)");
    let connection = db.connect();
    assert!(connection.execute("CREATE UNIQUE INDEX i ON t (a)").is_err());
    assert_eq!(connection.progress(), None);
    assert!(connection.execute("COPY t FROM '/nowhere.csv'").is_err());
    assert_eq!(connection.progress(), None);
}
