//! A file system of a few megabytes that runs full under the log: mounted for the test, which is skipped,
//! and says so, where mounting is not allowed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use albireo::{Config, Database, SqlState, Value};
use albireo_testing::wait_until;
use parking_lot::Mutex;

use crate::mounted::Mounted;

fn config() -> Config {
    Config { log_segment_bytes: 256 << 10, query_threads: 1, ..Config::default() }
}

/// What became of the inserts.
#[derive(Default)]
struct Told {
    acknowledged: Mutex<Vec<i32>>,
    refused: Mutex<Vec<i32>>,
    next: AtomicI32,
    ends: AtomicBool,
}

impl Told {
    /// Inserts one row; whether it was acknowledged.
    fn insert(&self, db: &Database) -> bool {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let values = [Value::Integer(id), Value::Text("x".repeat(2000))];
        match db.execute_with("INSERT INTO t VALUES ($1, $2)", &values) {
            Ok(_) => self.acknowledged.lock().push(id),
            Err(error) => {
                assert_eq!(error.state(), SqlState::DISK_FULL, "{error}");
                self.refused.lock().push(id);
                return false;
            }
        }
        true
    }

    /// Inserts until it is told to end.
    fn run(&self, db: &Database) {
        while !self.ends.load(Ordering::Relaxed) {
            if !self.insert(db) {
                std::thread::yield_now();
            }
        }
    }
}

/// Makes room and ends the writers, also when the test fails: a writer may be waiting for room.
struct Relief<'a>(&'a Path, &'a Told);

impl Drop for Relief<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
        self.1.ends.store(true, Ordering::Relaxed);
    }
}

fn ask(db: &Database, query: &str) -> String {
    db.query(query, &[]).unwrap().value(0, 0).to_string()
}

#[test]
fn full_disk_refuses_changes_answers_queries_and_heals() {
    let Some(mounted) = mounted() else { return };
    let db = Database::open(mounted.path(), config()).unwrap();
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, filling TEXT); CREATE TABLE other (a INTEGER)")
        .unwrap();
    db.execute("INSERT INTO other VALUES (1), (2)").unwrap();
    let told = Told::default();
    told.insert(&db);
    let filler = mounted.fill();
    std::thread::scope(|scope| {
        let _relief = Relief(&filler, &told);
        for _ in 0..4 {
            scope.spawn(|| told.run(&db));
        }
        let log = db.log().expect("it is kept in a directory");
        wait_until("the log is full", || log.check().is_err());
        let refused = db.execute("INSERT INTO other VALUES (3)").unwrap_err();
        assert_eq!(refused.state(), SqlState::DISK_FULL, "{refused}");
        assert!(refused.message().contains("until there is room"), "{refused}");
        assert!(!told.insert(&db), "another row is refused as well");
        assert_eq!(ask(&db, "SELECT sum(a) FROM other"), "3");
        // Those begun before may still be about to note that they were acknowledged.
        let (begun, refused) = (told.next.load(Ordering::Relaxed), told.refused.lock().len());
        wait_until("more are refused", || told.refused.lock().len() > refused + 50);
        let is_before = |id: &i32| *id < begun;
        assert!(told.acknowledged.lock().iter().all(is_before), "acknowledged while there is no room");
        let before = told.acknowledged.lock().len();
        std::fs::remove_file(&filler).unwrap();
        wait_until("the log goes on", || log.check().is_ok());
        assert!(told.insert(&db));
        wait_until("writers go on", || told.acknowledged.lock().len() > before + 20);
    });
    assert!(!told.refused.lock().is_empty(), "somebody was refused");
    drop(db);
    let db = Database::open(mounted.path(), config()).unwrap();
    let there: Vec<i32> =
        db.query("SELECT id FROM t ORDER BY id", &[]).unwrap().rows().iter().map(|row| id(row)).collect();
    let mut acknowledged = told.acknowledged.lock().clone();
    acknowledged.sort_unstable();
    assert_eq!(there, acknowledged, "what was acknowledged is there, and what was refused is not");
    assert_eq!(ask(&db, "SELECT sum(a) FROM other"), "3");
}

/// A small file system, or nothing and a notice where it cannot be mounted.
fn mounted() -> Option<Mounted> {
    Mounted::new(8)
        .inspect_err(|error| {
            eprintln!("SKIPPED: a test needs a small file system, which cannot be mounted: {error}");
        })
        .ok()
}

#[test]
fn full_disk_lets_rows_be_deleted_and_the_database_be_opened_again() {
    let Some(mounted) = mounted() else { return };
    let db = Database::open(mounted.path(), config()).unwrap();
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, filling TEXT)").unwrap();
    let told = Told::default();
    for _ in 0..200 {
        assert!(told.insert(&db));
    }
    let filler = mounted.fill();
    let _relief = Relief(&filler, &told);
    let log = db.log().expect("it is kept in a directory");
    while told.insert(&db) {}
    assert!(log.is_short(), "there is room for what frees room");
    let rows = told.acknowledged.lock().len();
    for id in 0..100 {
        // Refused, were it not a deletion; a hang, were there no room for it.
        db.execute(&format!("DELETE FROM t WHERE id = {id}")).unwrap();
    }
    let update = db.execute("UPDATE t SET filling = 'short' WHERE id = 150").unwrap_err();
    assert_eq!(update.state(), SqlState::DISK_FULL, "{update}");
    // No archive is there yet, and for the first there is no room: it says so and does not wait.
    let error = db.execute("CHECKPOINT").unwrap_err();
    assert_eq!(error.state(), SqlState::DISK_FULL, "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("add space")), "{error}");
    drop(db);
    let db = Database::open(mounted.path(), config()).unwrap();
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), (rows - 100).to_string());
    std::fs::remove_file(&filler).unwrap();
    db.execute("CHECKPOINT").unwrap();
    wait_until("rows come again", || told.insert(&db));
}

#[test]
fn checkpoint_on_a_full_disk_makes_room_of_the_older_archive_and_the_log_goes_on() {
    let Some(mounted) = mounted() else { return };
    let db = Database::open(mounted.path(), config()).unwrap();
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, filling TEXT)").unwrap();
    let told = Told::default();
    let insert = |count: u32| (0..count).for_each(|_| assert!(told.insert(&db)));
    insert(1000);
    db.execute("CHECKPOINT").unwrap();
    // Other rows: the next archive has nothing in common with this one.
    db.execute("DELETE FROM t").unwrap();
    insert(100);
    db.execute("CHECKPOINT").unwrap();
    insert(10);
    let filler = mounted.fill();
    let _relief = Relief(&filler, &told);
    while told.insert(&db) {}
    let rows = ask(&db, "SELECT count(*) FROM t");
    assert!(mounted.path().join("archive/0000000001/manifest.json").exists());
    db.execute("CHECKPOINT").unwrap();
    assert!(!mounted.path().join("archive/0000000001/manifest.json").exists());
    wait_until("rows come again", || told.insert(&db));
    let status = db.archive_status();
    assert!(status.failure.is_none() && status.last.is_some());
    drop(db);
    let db = Database::open(mounted.path(), config()).unwrap();
    assert!(db.recovery().archive.is_some_and(|number| number > 2));
    assert_eq!(ask(&db, "SELECT count(*) - 1 FROM t"), rows);
}

fn id(row: &[Value]) -> i32 {
    match row[0] {
        Value::Integer(id) => id,
        ref other => panic!("{other} is no id"),
    }
}
