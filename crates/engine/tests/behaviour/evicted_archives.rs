//! Rows that have left memory for the files of archives, which have them already; and whether evicted rows can be read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo::{CheckpointOptions, Config, Database, Eviction, Outcome, SqlError};
use albireo_env::{Disk, Env, MemoryDisk};
use albireo_testing::wait_until;

use crate::evicted::{assert_reads_together, evict};
use crate::frozen::{CHANGES, all, filled, freeze};
use crate::support::{ask, fails, rows_stay, run, show, small, state};

/// The file of the first chunk of the first table, and of the second.
const FIRST: &str = "/data/archive/0000000001/t1-p0-c0.frozen.arrow";
const SECOND: &str = "/data/archive/0000000001/t1-p0-c1.frozen.arrow";

fn open(disk: &MemoryDisk, config: Config) -> Database {
    let env = Env { disk: Arc::new(disk.clone()), ..Env::real() };
    Database::open_in("/data", Config { eviction: Eviction::Auto, ..config }, env).unwrap()
}

/// The files that evicted rows have for themselves.
fn cold_paths(disk: &MemoryDisk) -> Vec<PathBuf> {
    disk.read_dir(Path::new("/data/cold")).unwrap()
}

/// Rows of all types in an archive, frozen, and no more in memory.
fn filled_and_evicted() -> (MemoryDisk, Database) {
    let disk = MemoryDisk::default();
    let db = open(&disk, small());
    filled(&db);
    archive_and_evict(&db);
    (disk, db)
}

/// Has the rows of `t` in an archive, frozen, and no more in memory.
fn archive_and_evict(db: &Database) {
    freeze(db);
    run(db, "CHECKPOINT");
    evict(db);
}

fn damage(disk: &MemoryDisk, path: &str) {
    let (file, bytes) = (disk.open_placed(Path::new(path)).unwrap(), disk.get(path).unwrap().len() as u64);
    (0..bytes).step_by(64).for_each(|offset| file.write_at(b"?", offset).unwrap());
}

/// Asserts that an error is of this state and names a file.
fn assert_names(error: &SqlError, expected: &str, path: &str) {
    assert_eq!(state(error), expected, "{error:?}");
    assert!(error.message().contains(&format!("\"{path}\"")), "{error:?}");
}

/// What `CALL albireo.verify()` says.
fn verified(db: &Database) -> String {
    match db.execute("CALL albireo.verify()").unwrap().remove(0) {
        Outcome::Done { notices, .. } => notices.join("\n"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_that_an_archive_has_leave_memory_without_being_written() {
    if !rows_stay() {
        return;
    }
    // Texts that are compressed in memory stand in an archive in full: these have a file of their own.
    for (partitions, compressed) in [(1, 0), (3, 0), (1, 1)] {
        let disk = MemoryDisk::default();
        let config = Config { partitions, ..small() };
        let db = open(&disk, config.clone());
        filled(&db);
        if compressed == 0 {
            run(&db, "UPDATE t SET q = NULL");
        }
        let before = all(&db);
        archive_and_evict(&db);
        assert_eq!(cold_paths(&disk).len(), compressed);
        assert_eq!(all(&db), before);
        ask(&db, "SELECT e, y FROM t WHERE id = 5");
        assert!(db.evict_frozen() > 0, "what was fetched for transactions stays until it leaves again");
        assert_eq!(all(&db), before);
        assert_eq!(verified(&db).split(" are sound").next(), Some("evicted rows of 2 chunks"));
        drop(db);

        // What was loaded from an archive lies in its files too.
        let db = open(&disk, config);
        evict(&db);
        assert_eq!(cold_paths(&disk).len(), compressed);
        assert_eq!(all(&db), before);
    }
}

#[test]
fn rows_in_an_archive_are_changed_one_by_one_and_all_together() {
    let hot = crate::support::database();
    let db = open(&MemoryDisk::default(), small());
    filled(&hot);
    filled(&db);
    for change in CHANGES {
        archive_and_evict(&db);
        run(&hot, change);
        run(&db, change);
        assert_eq!(all(&db), all(&hot), "after {change}");
    }
}

#[test]
fn query_reads_what_it_needs_of_a_chunk_together() {
    if !rows_stay() {
        return;
    }
    let disk = MemoryDisk::default();
    assert_reads_together(&open(&disk, small()), &disk, archive_and_evict, 30..=80);
}

#[test]
fn rows_that_no_archive_has_yet_are_written() {
    if !rows_stay() {
        return;
    }
    let disk = MemoryDisk::default();
    let db = open(&disk, small());
    filled(&db);
    run(&db, "CHECKPOINT");
    let before = all(&db);
    evict(&db);
    assert!(!cold_paths(&disk).is_empty(), "the archive has them as they were before they were frozen");
    assert_eq!(db.evicted_archive_files(), [] as [PathBuf; 0]);
    assert_eq!(all(&db), before);
}

#[test]
fn file_of_an_archive_stays_as_long_as_a_chunk_lies_in_it() {
    if !rows_stay() {
        return;
    }
    let (disk, db) = filled_and_evicted();
    let sum = "SELECT count(*), sum(b), max(v), sum(length(x)), count(DISTINCT n) FROM t";
    let before = ask(&db, sum);
    let session = db.connect();
    session.execute("BEGIN READ ONLY").unwrap();
    assert_eq!(
        show(&session.query("SELECT count(*) FROM t", &[]).unwrap()),
        ask(&db, "SELECT count(*) FROM t")
    );
    run(&db, "TRUNCATE t");
    let newest_alone = || {
        let options = CheckpointOptions { keep: 1, ..CheckpointOptions::default() };
        db.checkpoint_with(&options, |_| {}).unwrap();
    };
    newest_alone();
    assert!(disk.get("/data/archive/0000000001/manifest.json").is_none(), "the archive has gone");
    assert!(disk.get(FIRST).is_some() && disk.get(SECOND).is_some());
    assert_eq!(db.evicted_archive_files(), [PathBuf::from(FIRST), PathBuf::from(SECOND)]);
    assert_eq!(show(&session.query(sum, &[]).unwrap()), before);
    session.execute("COMMIT").unwrap();
    drop(session);
    wait_until("nobody needs the files any more", || {
        newest_alone();
        disk.get(FIRST).is_none() && disk.get(SECOND).is_none()
    });
    assert_eq!(db.evicted_archive_files(), [] as [PathBuf; 0]);
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "0");
}

#[test]
fn damaged_file_of_an_archive_is_an_error_of_those_who_need_it() {
    if !rows_stay() {
        return;
    }
    let (disk, db) = filled_and_evicted();
    damage(&disk, FIRST);
    for statement in [
        "SELECT * FROM t WHERE id = 77",
        "SELECT max(n), min(r) FROM t WHERE s = 1",
        "UPDATE t SET b = 1 WHERE id = 77",
        "DELETE FROM t WHERE id = 77",
        "UPDATE t SET b = b + 1 WHERE id > 5",
        "CREATE INDEX by_n ON t (n)",
    ] {
        assert_names(&fails(&db, statement), "XX001", FIRST);
    }
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), ask(&db, "SELECT 20000 - 20000 / 36"));
    assert_eq!(ask(&db, "SELECT b FROM t WHERE id = 19990"), ask(&db, "SELECT 19990::bigint * 1000003"));
    run(&db, "INSERT INTO t (id, b) VALUES (30000, 1); UPDATE t SET b = 2 WHERE id = 30000");
    assert_eq!(ask(&db, "SELECT b FROM t WHERE id = 30000"), "2");

    let found = fails(&db, "CALL albireo.verify()");
    assert_names(&found, "XX001", FIRST);
    let detail = found.detail().unwrap();
    assert!(detail.starts_with("Chunk 0 of partition 0 of table \"public.t\": "), "{detail}");
    assert!(!detail.contains("Chunk 1") && found.hint().is_some(), "{found:?}");
    disk.remove_file(Path::new(FIRST)).unwrap();
    assert_names(&fails(&db, "CALL albireo.verify()"), "58030", FIRST);
    disk.remove_file(Path::new(SECOND)).unwrap();
    let found = fails(&db, "CALL albireo.verify()");
    assert!(found.detail().unwrap().contains(SECOND), "{found:?}");
}

#[test]
fn damaged_file_of_an_archive_is_not_relied_on() {
    if !rows_stay() {
        return;
    }
    let disk = MemoryDisk::default();
    let db = open(&disk, small());
    filled(&db);
    freeze(&db);
    let before = all(&db);
    run(&db, "CHECKPOINT");
    damage(&disk, FIRST);
    evict(&db);
    assert_eq!(all(&db), before);
    assert!(verified(&db).contains("of 2 chunks"));
    // The first was written, and the second lies in the archive.
    disk.remove_file(Path::new(FIRST)).unwrap();
    run(&db, "CALL albireo.verify()");
    disk.remove_file(Path::new(SECOND)).unwrap();
    assert_names(&fails(&db, "CALL albireo.verify()"), "58030", SECOND);
}

#[test]
fn verify_finds_files_of_evicted_rows_that_are_damaged_or_gone() {
    if !rows_stay() {
        return;
    }
    let disk = MemoryDisk::default();
    let db = open(&disk, small());
    assert_eq!(verified(&db), "evicted rows of 0 chunks are sound: 0 bytes read");
    filled(&db);
    evict(&db);
    let before = db.memory().rows_bytes;
    assert!(verified(&db).contains("of 2 chunks"));
    assert_eq!(db.memory().rows_bytes, before, "what is read stays nowhere");
    let path = cold_paths(&disk).remove(0);
    let path = path.to_str().unwrap();
    damage(&disk, path);
    assert_names(&fails(&db, "CALL albireo.verify()"), "XX001", path);
    disk.remove_file(Path::new(path)).unwrap();
    assert_names(&fails(&db, "CALL albireo.verify()"), "58030", path);
    assert_eq!(state(&fails(&db, "CALL albireo.verify('t')")), "42601");
}
