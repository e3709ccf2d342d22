//! Backups on disks in memory: under load, refused, damaged, interrupted at any operation.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use albireo_base::{SqlError, SqlState, Value};
use albireo_env::{CrashDisk, Disk, Env, FaultyDisk, MemoryDisk};

use super::restore::check_memory;
use super::{Backup, BackupOptions, RestoreOptions, RestoreReport, restore};
use crate::{Config, Database, Eviction};

fn env_of(disk: impl Disk + 'static) -> Env {
    Env { disk: Arc::new(disk), ..Env::real() }
}

fn config() -> Config {
    Config { partitions: 2, log_segment_bytes: 64 << 10, query_threads: 1, ..Config::default() }
}

fn options() -> RestoreOptions {
    RestoreOptions { config: config(), ..RestoreOptions::default() }
}

fn quietly(backup: &str, directory: &str, env: &Env) -> Result<RestoreReport, SqlError> {
    restore(backup, directory, &options(), env, |_| {})
}

fn backup(db: &Database, target: &str) -> Result<super::BackupReport, SqlError> {
    db.backup(target, &BackupOptions::default(), |_| {})
}

const TABLES: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT) PARTITION BY HASH (id);
    CREATE TABLE count (n BIGINT NOT NULL); INSERT INTO count VALUES (0)";

/// A database with a few rows in `/data`.
fn made(env: &Env) -> Database {
    let db = Database::open_in("/data", config(), env.clone()).unwrap();
    db.execute(TABLES).unwrap();
    let rows: Vec<String> = (0..100).map(|id| format!("({id}, 'row {id}')")).collect();
    db.execute(&format!("INSERT INTO t VALUES {}", rows.join(", "))).unwrap();
    db
}

fn insert(db: &Database, id: i32) {
    let values = [Value::Integer(id), Value::Text(format!("row {id}"))];
    db.execute_with("INSERT INTO t VALUES ($1, $2)", &values).unwrap();
}

fn dump(db: &Database) -> Vec<Vec<Value>> {
    db.query("SELECT * FROM t ORDER BY id", &[]).unwrap().rows()
}

fn dump_in(directory: &str, env: &Env) -> Vec<Vec<Value>> {
    dump(&Database::open_in(directory, config(), env.clone()).unwrap())
}

#[test]
fn backup_of_either_form_restores_every_row() {
    let env = env_of(MemoryDisk::default());
    let db = made(&env);
    backup(&db, "/first").unwrap();
    db.execute("CREATE TABLE late (a INTEGER); DELETE FROM t WHERE id > 90; INSERT INTO late VALUES (7)")
        .unwrap();
    for target in ["/copies/directory", "/copies/file.tar"] {
        let report = backup(&db, target).unwrap();
        assert!(report.rows == 93 && report.files > 0 && report.bytes > 0, "{report:?}");
        let found = Backup::open(target, &env).unwrap();
        assert_eq!(found.check(|_| {}), []);
        assert_eq!((found.manifest().archive, found.manifest().bytes()), (report.archive, report.bytes));
        let to = format!("{target}.restored");
        let restored = quietly(target, &to, &env).unwrap();
        assert_eq!(restored.recovery.unwrap().archive_rows, 93);
        assert_eq!(dump_in(&to, &env), dump(&db));
    }
    quietly("/first", "/second", &env).unwrap();
    assert_eq!(dump_in("/second", &env).len(), 100);
    // A restored database goes on: it can be changed, backed up and restored.
    let db = Database::open_in("/second", config(), env.clone()).unwrap();
    insert(&db, 1_000);
    backup(&db, "/third").unwrap();
    insert(&db, 1_001);
    drop(db);
    assert_eq!(dump_in("/second", &env).len(), 102);
    quietly("/third", "/fourth", &env).unwrap();
    assert_eq!(dump_in("/fourth", &env).len(), 101);
}

#[test]
fn backup_of_a_database_that_did_not_change_uses_its_archive() {
    let env = env_of(MemoryDisk::default());
    let db = made(&env);
    db.checkpoint().unwrap();
    assert_eq!(backup(&db, "/b").unwrap().archive, 1);
    assert_eq!(backup(&db, "/c").unwrap().archive, 1);
    insert(&db, 100);
    assert_eq!(backup(&db, "/d").unwrap().archive, 2);
}

/// Each transaction adds a row and counts it; the rows of one writer come in order.
#[test]
fn backup_under_load_is_the_state_at_one_moment() {
    let env = env_of(MemoryDisk::default());
    let db = made(&env);
    db.execute(
        "CREATE FUNCTION add(p_id integer) RETURNS void LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO t VALUES (p_id, 'x'); UPDATE count SET n = n + 1; END $$",
    )
    .unwrap();
    let (ends, told) = (AtomicBool::new(false), Arc::new(std::sync::atomic::AtomicI32::new(1_000)));
    let write = || {
        for id in (1_001..).take_while(|_| !ends.load(Ordering::Relaxed)) {
            db.execute_with("SELECT add($1)", &[Value::Integer(id)]).unwrap();
            told.store(id, Ordering::SeqCst);
        }
    };
    albireo_env::scope(|scope| {
        let _ends = Ends(&ends);
        albireo_env::spawn_scoped(scope, "writer", write).unwrap();
        for round in 0..8 {
            let target = if round % 2 == 0 { format!("/b{round}") } else { format!("/b{round}.tar") };
            let before = told.load(Ordering::SeqCst);
            let report = backup(&db, &target).unwrap();
            let after = told.load(Ordering::SeqCst) + 1;
            quietly(&target, &format!("/r{round}"), &env).unwrap();
            let restored = Database::open_in(format!("/r{round}"), config(), env.clone()).unwrap();
            let rows = dump(&restored);
            let count = restored.query("SELECT n FROM count", &[]).unwrap().value(0, 0).to_string();
            assert_eq!(count, (rows.len() - 100).to_string(), "each transaction wholly or not at all");
            let last = 1_000 + (rows.len() - 100) as i32;
            let first = (0..100).map(|id| vec![Value::Integer(id), Value::Text(format!("row {id}"))]);
            let added = (1_001..=last).map(|id| vec![Value::Integer(id), Value::Text("x".to_owned())]);
            assert!(rows.iter().cloned().eq(first.chain(added)), "row for row");
            assert!(before <= last && last <= after, "{before} <= {last} <= {after}, {report:?}");
        }
    });
}

/// Ends the writer, also when the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn target_that_is_taken_is_refused_and_left_alone() {
    let disk = MemoryDisk::default();
    let env = env_of(disk.clone());
    let db = made(&env);
    disk.put("/taken/mine.txt", b"mine");
    disk.put("/taken.tar", b"mine");
    for target in ["/taken", "/taken.tar", "/data", "/taken/mine.txt"] {
        let error = backup(&db, target).unwrap_err();
        assert_eq!(error.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "{error}");
        assert!(error.hint().is_some());
    }
    assert_eq!(disk.get("/taken.tar").unwrap(), b"mine");
    assert_eq!(dump(&db).len(), 100);
    let memory = Database::in_memory(config()).unwrap();
    assert_eq!(backup(&memory, "/x").unwrap_err().state(), SqlState::FEATURE_NOT_SUPPORTED);
}

#[test]
fn cancelled_backup_leaves_nothing() {
    let env = env_of(MemoryDisk::default());
    let db = made(&env);
    for target in ["/copies/directory", "/copies/file.tar"] {
        let options = BackupOptions { cancel: Arc::new(AtomicBool::new(true)), ..BackupOptions::default() };
        let error = db.backup(target, &options, |_| {}).unwrap_err();
        assert_eq!(error.state(), SqlState::QUERY_CANCELED, "{error}");
        let left = env.disk.read_dir(Path::new("/copies")).unwrap_or_default();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(Backup::open(target, &env).unwrap_err().state(), SqlState::UNDEFINED_FILE);
    }
}

#[test]
fn everything_that_prevents_a_restore_is_said_at_once() {
    let disk = MemoryDisk::default();
    let env = env_of(disk.clone());
    backup(&made(&env), "/b").unwrap();
    let files = Backup::open("/b", &env).unwrap().manifest().files.clone();
    let (first, last) = (format!("/b/{}", files[0].path), format!("/b/{}", files[1].path));
    let mut damaged = disk.get(&first).unwrap();
    damaged[100] ^= 1;
    disk.put(&first, &damaged);
    env.disk.remove_file(Path::new(&last)).unwrap();
    disk.put("/to/mine.txt", b"mine");
    let wanted = RestoreOptions { memory_bytes: Some(1), ..options() };
    let error = restore("/b", "/to", &wanted, &env, |_| {}).unwrap_err();
    let detail = error.detail().unwrap();
    assert!(error.message().ends_with("for 4 reasons"), "{error}");
    for reason in
        ["\"/to\" is not empty", "bytes of memory, and 1 are available", "the checksum is", "is missing"]
    {
        assert!(detail.contains(reason), "{reason} in {detail}");
    }
    assert_eq!(env.disk.read_dir(Path::new("/to")).unwrap().len(), 1, "nothing was made");
    let unopened = RestoreOptions { opens: false, ..wanted };
    let error = restore("/b", "/new", &unopened, &env, |_| {}).unwrap_err();
    assert!(error.message().ends_with("for 2 reasons"), "{error}");
    assert!(env.disk.read_dir(Path::new("/new")).is_err(), "nothing was made");
}

#[test]
fn restore_of_rows_that_may_leave_memory_needs_no_more_than_the_limit() {
    let env = env_of(MemoryDisk::default());
    backup(&made(&env), "/b").unwrap();
    let mut manifest = Backup::open("/b", &env).unwrap().manifest().clone();
    manifest.memory_bytes = u64::MAX;
    let mut wanted = RestoreOptions { memory_bytes: Some(u64::MAX), ..options() };
    assert_eq!(check_memory(&manifest, &wanted).unwrap_err().state(), SqlState::OUT_OF_MEMORY);
    wanted.config.eviction = Eviction::Auto;
    check_memory(&manifest, &wanted).unwrap();
    wanted.memory_bytes = Some(1);
    assert_eq!(check_memory(&manifest, &wanted).unwrap_err().state(), SqlState::OUT_OF_MEMORY);
}

#[test]
fn restore_without_room_is_refused_before_it_begins() {
    let disk = MemoryDisk::with_capacity(8 << 20);
    let env = env_of(disk.clone());
    backup(&made(&env), "/b").unwrap();
    let free = env.disk.free_bytes(Path::new("/")).unwrap();
    disk.put("/filler", &vec![0; free as usize - 1000]);
    let error = quietly("/b", "/to", &env).unwrap_err();
    assert_eq!(error.state(), SqlState::DISK_FULL, "{error}");
    assert!(error.message().contains("and there are 1000 free"), "{error}");
    assert!(env.disk.read_dir(Path::new("/to")).is_err());
}

#[test]
fn backups_of_other_formats_and_what_is_no_backup_are_refused() {
    let disk = MemoryDisk::default();
    let env = env_of(disk.clone());
    backup(&made(&env), "/b").unwrap();
    let text = String::from_utf8(disk.get("/b/backup.json").unwrap()).unwrap();
    let body = text[30..text.len() - 2].replace("\"format\":1", "\"format\":2");
    let newer = format!("{{\"crc32c\":\"{:08x}\",\"backup\":{body}}}\n", crc32c::crc32c(body.as_bytes()));
    disk.put("/b/backup.json", newer.as_bytes());
    let error = quietly("/b", "/to", &env).unwrap_err();
    assert_eq!(error.state(), SqlState::FEATURE_NOT_SUPPORTED, "{error}");
    assert!(error.message().contains("has backup format 2"), "{error}");
    let outside =
        body.replace("\"format\":2", "\"format\":1").replacen("\"path\":\"archive/", "\"path\":\"../", 1);
    let outside =
        format!("{{\"crc32c\":\"{:08x}\",\"backup\":{outside}}}\n", crc32c::crc32c(outside.as_bytes()));
    disk.put("/b/backup.json", outside.as_bytes());
    let error = quietly("/b", "/to", &env).unwrap_err();
    assert!(error.message().contains("is not the path of a file of a backup"), "{error}");
    disk.put("/b.tar", b"this is a letter");
    for (path, state) in [
        ("/data", SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE),
        ("/nowhere", SqlState::UNDEFINED_FILE),
        ("/b.tar", SqlState::DATA_CORRUPTED),
    ] {
        let error = quietly(path, "/to", &env).unwrap_err();
        assert_eq!(error.state(), state, "{path}: {error}");
    }
}

#[test]
fn no_byte_of_a_backup_can_change_unnoticed() {
    let disk = MemoryDisk::default();
    let env = env_of(disk.clone());
    let db = made(&env);
    insert(&db, 500);
    backup(&db, "/b").unwrap();
    let manifest = disk.get("/b/backup.json").unwrap();
    for at in 0..manifest.len() {
        let mut changed = manifest.clone();
        changed[at] ^= 4;
        disk.put("/b/backup.json", &changed);
        Backup::open("/b", &env).expect_err("a damaged manifest");
        disk.put("/b/backup.json", &manifest[..at]);
        Backup::open("/b", &env).expect_err("half a manifest");
    }
    disk.put("/b/backup.json", &manifest);
    let found = Backup::open("/b", &env).unwrap();
    for file in &found.manifest().files {
        let path = format!("/b/{}", file.path);
        let whole = disk.get(&path).unwrap();
        for at in (0..whole.len()).step_by(whole.len().div_ceil(20)) {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            disk.put(&path, &changed);
            assert_eq!(found.check(|_| {}).len(), 1, "{path} at {at}");
            disk.put(&path, &whole[..at]);
            assert_eq!(found.check(|_| {}).len(), 1, "{path} cut at {at}");
        }
        disk.put(&path, &whole);
    }
    assert_eq!(found.check(|_| {}), []);
}

#[test]
fn tar_file_that_was_cut_or_changed_is_refused_or_has_every_row() {
    let disk = MemoryDisk::default();
    let env = env_of(disk.clone());
    backup(&made(&env), "/b.tar").unwrap();
    let whole = disk.get("/b.tar").unwrap();
    // Two blocks of zeros end a tar file.
    let used = whole.len() - 1024;
    let (mut refused, mut harmless) = (0, 0);
    let mut look = |bytes: &[u8], what: &str| {
        disk.put("/b.tar", bytes);
        match Backup::open("/b.tar", &env).map(|found| found.check(|_| {})) {
            Ok(faults) if faults.is_empty() => {
                // Behind an entry's end, or in a field that says nothing of its bytes.
                let _ = env.disk.remove_dir_all(Path::new("/to"));
                quietly("/b.tar", "/to", &env).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(dump_in("/to", &env).len(), 100, "{what}");
                harmless += 1;
            }
            _ => refused += 1,
        }
    };
    for at in (0..used).step_by(used / 200) {
        look(&whole[..at], &format!("cut at {at}"));
        let mut changed = whole.clone();
        changed[at] ^= 1;
        look(&changed, &format!("changed at {at}"));
    }
    assert!(refused > 250 && harmless < 150, "{refused} refused, {harmless} harmless");
}

#[test]
fn restore_that_was_interrupted_cannot_be_opened() {
    let inner = MemoryDisk::default();
    let env = env_of(inner.clone());
    let db = made(&env);
    backup(&db, "/b").unwrap();
    let expected = dump(&db);
    let mut completed = false;
    for writes in 0..200 {
        let faulty = env_of(FaultyDisk::failing_after(Arc::new(inner.clone()), writes));
        let directory = format!("/to{writes}");
        let unopened = RestoreOptions { opens: false, ..options() };
        match restore("/b", &directory, &unopened, &faulty, |_| {}) {
            Ok(_) => completed = true,
            Err(error) => assert_eq!(error.state(), SqlState::DISK_FULL, "{error}"),
        }
        match Database::open_in(&directory, config(), env.clone()) {
            Err(error) => {
                assert_eq!(error.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "{error}");
                assert!(error.message().contains("was not restored wholly"), "{error}");
                assert!(!completed, "{writes}");
            }
            // All of it, or the restore had not made the first mark.
            Ok(db)
                if env
                    .disk
                    .open(Path::new(&directory).join("archive/0000000001/manifest.json").as_path())
                    .is_ok() =>
            {
                assert_eq!(dump(&db), expected, "{writes}");
            }
            Ok(db) => assert_eq!(db.catalog().tables().count(), 0, "{writes}"),
        }
        if completed {
            return;
        }
    }
    panic!("it was never completed");
}

/// A crash at any operation of a backup leaves one that is complete, or none that passes for one.
#[test]
fn backup_that_crashed_is_complete_or_refused() {
    let (mut complete, mut refused) = (0, 0);
    for target in ["/b", "/b.tar"] {
        for step in 0..30 {
            let disk = CrashDisk::new(step);
            let env = env_of(disk.clone());
            let db = made(&env);
            disk.crash_at(disk.operations() + step * 5);
            let made = backup(&db, target);
            drop(db);
            disk.crash();
            match Backup::open(target, &env) {
                Ok(found) => {
                    assert_eq!(found.check(|_| {}), [], "step {step}");
                    quietly(target, "/to", &env).unwrap_or_else(|error| panic!("step {step}: {error:?}"));
                    assert_eq!(dump_in("/to", &env).len(), 100);
                    complete += 1;
                }
                Err(error) => {
                    assert!(made.is_err(), "step {step}: {error}");
                    if let Ok(db) = Database::open_in(target, config(), env.clone()) {
                        assert_eq!(db.catalog().tables().count(), 0, "half a backup was opened");
                    }
                    refused += 1;
                }
            }
        }
    }
    assert!(complete > 0 && refused > 0, "{complete} complete, {refused} refused");
}

#[test]
fn backup_is_not_opened_as_a_database() {
    let env = env_of(MemoryDisk::default());
    backup(&made(&env), "/b").unwrap();
    let error = Database::open_in("/b", config(), env.clone()).err().unwrap();
    assert!(error.message().contains("is a backup"), "{error}");
    assert!(error.hint().unwrap().contains("albireo restore"));
    assert_eq!(env.disk.read_dir(Path::new("/b")).unwrap().len(), 3, "nothing was made in it");
}

#[test]
fn backup_is_a_statement() {
    let env = env_of(MemoryDisk::default());
    let db = made(&env);
    let outcomes = db.execute("BACKUP TO '/b.tar'; INSERT INTO t VALUES (1000, 'late')").unwrap();
    let crate::Outcome::Done { tag, notices, .. } = &outcomes[0] else { panic!("{outcomes:?}") };
    assert_eq!(tag, "BACKUP");
    assert!(notices[0].starts_with("backup of archive 1 with 101 rows"), "{notices:?}");
    assert!(db.execute("BACKUP TO '/b.tar'").is_err());
    quietly("/b.tar", "/to", &env).unwrap();
    assert_eq!(dump_in("/to", &env).len(), 100);
}
