//! Recovery to a point: a new database of what another was at a record or a time.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use albireo::{
    Config, CopyReport, Database, LogInspector, RecoveryReport, RecoveryTarget, SqlError, SqlState,
};
use albireo_env::{CrashDisk, Env, FaultyDisk};

use crate::recovery::{all_rows, config, disk_of, env_of};

const OLD: &str = "/old";

fn copy(disk: &CrashDisk, to: &str, target: RecoveryTarget) -> Result<CopyReport, SqlError> {
    Database::recover_copy(OLD, to, target, config(1, 2), &env_of(disk), &mut |_| {})
}

fn open(disk: &CrashDisk, path: &str) -> Database {
    Database::open_in(path, config(2, 2), env_of(disk)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A small history with crossing transactions, definitions and two archives; what was there after each record,
/// the first entry before all of them.
fn history(disk: &CrashDisk) -> Vec<Vec<Vec<String>>> {
    let db = open(disk, OLD);
    let mut states = vec![all_rows(&db)];
    let changes = [
        "CREATE TABLE part (id INTEGER PRIMARY KEY, n BIGINT) PARTITION BY HASH (id)",
        "CREATE TABLE shared (t TEXT)",
        "INSERT INTO part VALUES (1, 10)",
        "INSERT INTO part VALUES (2, 20)",
        "INSERT INTO shared VALUES ('a'), ('a')",
        "UPDATE part SET n = n + 1",
        "CHECKPOINT",
        "DELETE FROM part WHERE id = 1",
        "CREATE FUNCTION put(p integer) RETURNS integer LANGUAGE plpgsql AS
         $$ BEGIN INSERT INTO part VALUES (p, 0); RETURN p; END $$",
        "SELECT put(7)",
        "INSERT INTO part SELECT a, a FROM generate_series(100, 120) AS g(a)",
        "CHECKPOINT",
        "TRUNCATE shared",
        "UPDATE part SET id = id + 1000 WHERE id = 2",
        "DROP TABLE shared",
        "INSERT INTO part VALUES (3, 30)",
    ];
    for change in changes {
        db.execute(change).unwrap();
        if change != "CHECKPOINT" {
            states.push(all_rows(&db));
        }
    }
    states
}

/// When each record was logged.
fn times(disk: &CrashDisk) -> Vec<i64> {
    let mut inspector = LogInspector::open(OLD, &env_of(disk)).unwrap();
    let mut times = Vec::new();
    inspector.visit(&mut |entry| {
        times.push(entry.unwrap().time_us);
        ControlFlow::Continue(())
    });
    times
}

#[test]
fn copy_up_to_each_record_is_what_was_there_then() {
    let disk = CrashDisk::new(1);
    let states = history(&disk);
    let old = disk.files();
    let times = times(&disk);
    assert_eq!(times.len() + 1, states.len(), "a record for each change");
    for (record, state) in states.iter().enumerate().skip(1) {
        let to = format!("/record{record}");
        let report = copy(&disk, &to, RecoveryTarget::Record(record as u64)).unwrap();
        assert_eq!((report.last_record, report.notice), (record as u64, None));
        let db = open(&disk, &to);
        assert_eq!(&all_rows(&db), state, "record {record}");
        // It is a database as any other.
        db.execute("CREATE TABLE new (a INTEGER); INSERT INTO new VALUES (1); CHECKPOINT").unwrap();
        db.execute("INSERT INTO new VALUES (2)").unwrap();
        drop(db);
        assert_eq!(all_rows(&open(&disk, &to)).last().unwrap().len(), 2);
    }
    for (index, time_us) in times.iter().enumerate() {
        let to = format!("/time{index}");
        let report = copy(&disk, &to, RecoveryTarget::Time(*time_us)).unwrap();
        let record = times.iter().take_while(|other| *other <= time_us).count();
        assert_eq!(report.last_record, record as u64);
        assert_eq!(report.notice.is_some(), record == times.len(), "{:?}", report.notice);
        assert_eq!(all_rows(&open(&disk, &to)), states[record], "time of record {}", index + 1);
    }
    let report = copy(&disk, "/end", RecoveryTarget::End).unwrap();
    assert_eq!(report.last_record, times.len() as u64);
    assert_eq!(Database::kept_partitions("/end", &env_of(&disk)).unwrap(), Some(2));
    assert_eq!(all_rows(&open(&disk, "/end")), *states.last().unwrap());
    let mut now = disk.files();
    now.retain(|path, _| path.starts_with(OLD));
    assert_eq!(now, old, "the old database is as it was");
}

#[test]
fn copy_of_a_copy_goes_on_counting_records() {
    let disk = CrashDisk::new(1);
    history(&disk);
    copy(&disk, "/first", RecoveryTarget::Record(4)).unwrap();
    open(&disk, "/first")
        .execute("INSERT INTO part VALUES (5, 50); INSERT INTO part VALUES (6, 60)")
        .unwrap();
    let env = env_of(&disk);
    let target = RecoveryTarget::Record(5);
    let report =
        Database::recover_copy("/first", "/second", target, config(1, 1), &env, &mut |_| {}).unwrap();
    assert_eq!(report.last_record, 5);
    assert!(matches!(report.recovery, RecoveryReport { archive: Some(1), records: 1, .. }));
    let rows = open(&disk, "/second").query("SELECT id FROM part ORDER BY id", &[]).unwrap().rows();
    assert_eq!(format!("{rows:?}"), "[[Integer(1)], [Integer(2)], [Integer(5)]]");
    let target = RecoveryTarget::Record(3);
    let error =
        Database::recover_copy("/first", "/third", target, config(1, 1), &env, &mut |_| {}).unwrap_err();
    assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE);
}

fn refused(disk: &CrashDisk, target: RecoveryTarget) -> SqlError {
    let error = copy(disk, "/refused", target).unwrap_err();
    assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE, "{error}");
    assert!(disk.files().keys().all(|path| !path.starts_with("/refused")), "nothing was made");
    error
}

#[test]
fn moments_that_are_not_kept_are_refused() {
    let disk = CrashDisk::new(1);
    history(&disk);
    let first = times(&disk)[0];
    assert_eq!(refused(&disk, RecoveryTarget::Record(0)).message(), "there is no record 0");
    let error = refused(&disk, RecoveryTarget::Record(15));
    assert_eq!(
        (error.message(), error.detail()),
        ("there is no record 15", Some("The log ends with record 14."))
    );
    assert!(refused(&disk, RecoveryTarget::Time(first - 1)).message().starts_with("nothing is kept of 2"));
    // Old segments and old archives go.
    let db = open(&disk, OLD);
    for n in 0..4 {
        let filler = "x".repeat(200_000);
        db.execute(&format!("CREATE TABLE t{n} (a TEXT); INSERT INTO t{n} VALUES ('{filler}')")).unwrap();
        let done = db.execute("CHECKPOINT").unwrap();
        let [albireo::Outcome::Done { notices, .. }] = &done[..] else { panic!("{done:?}") };
        // Two are kept, and the log from its beginning as long as there are not more.
        let gone = notices.iter().find(|notice| notice.starts_with("restore points from record "));
        assert_eq!(gone.is_some(), n > 0, "{notices:?}");
    }
    let gone = db.archive_status().last.unwrap().gone.unwrap();
    drop(db);
    let record = gone.until.record;
    let error = refused(&disk, RecoveryTarget::Record(record - 1));
    assert!(
        error
            .detail()
            .unwrap()
            .contains(&format!("after record {record}: restoring is possible from then on"))
    );
    assert_eq!(copy(&disk, "/oldest", RecoveryTarget::Record(record)).unwrap().last_record, record);
    for target in [RecoveryTarget::Record(10), RecoveryTarget::Time(first)] {
        let error = refused(&disk, target);
        assert!(error.message().ends_with(" is before all that is kept"), "{error}");
        assert!(error.detail().unwrap().contains("The oldest archive, 5, is of 2"), "{error:?}");
    }
}

#[test]
fn open_databases_and_full_directories_are_left_alone() {
    let disk = CrashDisk::new(1);
    history(&disk);
    let db = open(&disk, OLD);
    assert_eq!(copy(&disk, "/new", RecoveryTarget::End).unwrap_err().state(), SqlState::OBJECT_IN_USE);
    drop(db);
    disk.put("/full/mine.txt", b"mine");
    let error = copy(&disk, "/full", RecoveryTarget::End).unwrap_err();
    assert_eq!((error.state().to_string().as_str(), error.message()), ("58P02", "\"/full\" is not empty"));
    let error = copy(&disk, OLD, RecoveryTarget::End).unwrap_err();
    assert_eq!(error.message(), "\"/old\" is not empty");
    let env = env_of(&disk);
    let nothing =
        Database::recover_copy("/none", "/new", RecoveryTarget::End, Config::default(), &env, &mut |_| {});
    assert!(nothing.is_err());
    assert!(env.disk.read_dir(Path::new("/new")).is_err(), "nothing was made");
}

#[test]
fn restore_that_fails_anywhere_leaves_no_database_that_opens() {
    let disk = CrashDisk::new(1);
    let states = history(&disk);
    let files = disk.files();
    let mut refused = 0;
    for writes in 0.. {
        let disk = disk_of(&files);
        let faulty = FaultyDisk::failing_after(Arc::new(disk.clone()), writes);
        let env = Env { disk: Arc::new(faulty), ..Env::real() };
        let done =
            Database::recover_copy(OLD, "/new", RecoveryTarget::Record(6), config(1, 1), &env, &mut |_| {});
        let opened = Database::open_in("/new", config(2, 1), env_of(&disk));
        match (done, opened) {
            (Ok(_), Ok(db)) => {
                assert_eq!(all_rows(&db), states[6]);
                break;
            }
            // The archive was complete, and what says that it is not could not be removed.
            (Err(_), Ok(db)) if db.recovery().archive.is_some() => assert_eq!(all_rows(&db), states[6]),
            (Err(_), Err(error)) => {
                let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
                assert_eq!(error.state(), state, "after {writes} writes: {error}");
                refused += 1;
            }
            // Nothing had been made but the directory.
            (Err(_), Ok(db)) => assert!(
                db.recovery()
                    == RecoveryReport {
                        load_ns: db.recovery().load_ns,
                        replay_ns: db.recovery().replay_ns,
                        ..RecoveryReport::default()
                    }
                    && writes < 3
            ),
            (Ok(_), Err(error)) => panic!("after {writes} writes: {error}"),
        }
        assert!(writes < 1_000, "it never ends");
    }
    assert!(refused > 2, "{refused} times refused");
}
