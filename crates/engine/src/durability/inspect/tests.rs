//! Records that do not fit the definitions before them, as a program with a mistake would write them.

use std::ops::ControlFlow;
use std::sync::Arc;

use albireo_env::{Env, MemoryDisk};
use albireo_redo::{Header, Kind, Ticket};

use super::{LogContent, LogEntry, LogFault, LogInspector, LogSummary, LogWrite, RowChange};
use crate::{Config, Database};

fn env() -> Env {
    Env { disk: Arc::new(MemoryDisk::default()), ..Env::real() }
}

fn open(env: &Env) -> Database {
    let config = Config { partitions: 2, log_segment_bytes: 64 << 10, ..Config::default() };
    Database::open_in("/data", config, env.clone()).unwrap()
}

/// Puts a record into the log; `None` for a crossing one.
fn put(db: &Database, lane: Option<usize>, kind: Kind, payload: &[u8]) -> Ticket {
    let (log, header) = (db.log().unwrap(), Header { kind, time_us: 1_000_000 });
    let encode = |out: &mut Vec<u8>| out.extend_from_slice(payload);
    match lane {
        Some(lane) => log.append(lane, header, encode),
        None => log.append_crossing(header, encode),
    }
    .unwrap()
}

/// What the log has: of each entry what is kept of it, and faults, in their order.
fn inspect<T>(env: &Env, keep: impl Fn(LogEntry<'_>) -> T) -> (Vec<Result<T, LogFault>>, LogSummary) {
    let mut inspector = LogInspector::open("/data", env).unwrap();
    let mut all = Vec::new();
    inspector.visit(&mut |entry| {
        all.push(entry.map(&keep));
        ControlFlow::Continue(())
    });
    (all, inspector.summary().clone())
}

/// The partition of an entry, and its rows.
fn written(entry: LogEntry<'_>) -> (Option<u16>, Vec<LogWrite>) {
    let rows = match &entry.content {
        LogContent::Writes(rows) => rows.iter().collect(),
        _ => Vec::new(),
    };
    (entry.partition, rows)
}

#[test]
fn records_that_cannot_be_understood_are_faults_with_their_place_and_reading_goes_on() {
    let env = env();
    let db = open(&env);
    db.execute(
        "CREATE TABLE t (a INTEGER NOT NULL) PARTITION BY HASH (a); CREATE TABLE s (a INTEGER NOT NULL)",
    )
    .unwrap();
    let table = |name: &str| db.catalog().table_named(None, name).unwrap().id.0 as u8;
    let (t, s) = (table("t"), table("s"));
    let wrong: [(Option<usize>, Kind, &[u8], &str); 11] = [
        (Some(0), Kind(99), b"?", "the record is of kind 99, which this program does not know"),
        (Some(0), Kind::WRITE, &[1, 77, 0, 0, 0], "it writes to table 77, which does not exist"),
        (Some(0), Kind::WRITE, &[1, t, 0, 0, 1], "at byte 5 of the record: more rows than bytes"),
        (Some(0), Kind::WRITE, &[1, t, 0, 0], "at byte 4 of the record: the record ends too early"),
        (Some(0), Kind::WRITE, &[2, t, 0, 0, 1, 2], "it writes to partition 1 of the transaction"),
        (None, Kind::WRITE, &[3, t, 0, 0, 1, 2], "it writes to partition 2 of the transaction"),
        (
            Some(0),
            Kind::WRITE,
            &[0, t, 0, 0, 1, 2],
            "table \"t\" is partitioned, and it writes to a shared one",
        ),
        (None, Kind::WRITE, &[1, s, 0, 0, 1, 2], "table \"s\" is shared, and it writes to a partitioned one"),
        (None, Kind::DEFINITION, b"CREATE TABLE t (a INTEGER)", "relation \"t\" already exists"),
        (None, Kind::DEFINITION, &[0xff], "the definition is no text"),
        (Some(0), Kind::COMMAND, &[9, 1, 0], "it calls routine 9, which does not exist"),
    ];
    for (lane, kind, payload, _) in wrong {
        put(&db, lane, kind, payload);
    }
    db.acknowledge_all(put(&db, Some(1), Kind::WRITE, &[1, t, 0, 0, 1, 6]));
    let (all, summary) = inspect(&env, written);
    assert_eq!(all.len(), 2 + wrong.len() + 1);
    for (ordinal, ((_, _, _, reason), entry)) in (3..).zip(wrong.iter().zip(&all[2..])) {
        let fault = entry.as_ref().expect_err(reason);
        assert!(fault.reason.contains(reason), "{fault}");
        assert_eq!((fault.record, fault.is_last), (Some(ordinal), false));
        assert!(fault.to_string().contains("00000000000000000001.log, byte "), "{fault}");
        assert!(fault.offset.is_some_and(|offset| offset >= 4096), "{fault}");
    }
    let (partition, rows) = all.last().unwrap().as_ref().unwrap();
    assert_eq!((*partition, rows[0].values[0].1.to_string().as_str()), (Some(1), "3"));
    assert_eq!((summary.unknown, summary.definitions, summary.writes), (11, 2, 1));
    assert_eq!((summary.records(), summary.ordinals, summary.partitions), (14, (1, 14), 2));
}

#[test]
fn calls_are_told_by_the_name_of_their_routine() {
    let env = env();
    let db = open(&env);
    for text in ["CREATE FUNCTION f(integer) RETURNS integer LANGUAGE sql AS 'SELECT $1'", "DROP FUNCTION f"]
    {
        db.execute(text).unwrap();
    }
    db.execute("CREATE FUNCTION public.g() RETURNS integer LANGUAGE sql AS 'SELECT 1'").unwrap();
    db.acknowledge_all(put(&db, Some(0), Kind::COMMAND, &[2, 1, 3, 2, 4, 0x0d]));
    let (all, summary) = inspect(&env, |entry| match entry.content {
        LogContent::Definition { routines, .. } => routines.join(","),
        command => {
            let arguments = vec![("$1".into(), true.into()), ("$2".into(), (-7).into())];
            let expected =
                LogContent::Command { routine: "g".into(), id: 2, version: 1, moved: 3, arguments };
            assert_eq!(command, expected);
            "call".to_owned()
        }
    });
    let said: Vec<String> = all.into_iter().map(Result::unwrap).collect();
    assert_eq!(said, ["f", "f", "g", "call"]);
    assert_eq!((summary.commands, summary.definitions), (1, 3));
}

#[test]
fn rows_of_a_record_are_counted_by_table_and_partition_and_read_in_the_order_of_the_record() {
    let env = env();
    let db = open(&env);
    for text in [
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT) PARTITION BY HASH (a)",
        "INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 1000) AS g(i)",
        "UPDATE t SET b = 'new' WHERE a <= 10",
        "DELETE FROM t WHERE a > 995",
    ] {
        db.execute(text).unwrap();
    }
    let (all, summary) = inspect(&env, |entry| {
        let LogContent::Writes(rows) = &entry.content else { return Vec::new() };
        let read: Vec<LogWrite> = rows.iter().collect();
        assert_eq!(rows.count(), read.len() as u64);
        for table in rows.tables() {
            for change in [RowChange::Insert, RowChange::Update, RowChange::Delete] {
                let of = |row: &&LogWrite| row.partition == table.partition && row.change == change;
                assert_eq!(table.rows_of(change), read.iter().filter(of).count() as u64, "{table:?}");
            }
        }
        let total = |change| rows.tables().map(|table| table.rows_of(change)).sum::<u64>();
        vec![total(RowChange::Insert), total(RowChange::Update), total(RowChange::Delete)]
    });
    let counts: Vec<Vec<u64>> = all.into_iter().map(Result::unwrap).collect();
    assert_eq!(counts, [vec![], vec![1000, 0, 0], vec![0, 10, 0], vec![0, 0, 5]]);
    assert_eq!(summary.rows, 1015);
}

#[test]
fn log_whose_beginning_is_gone_names_the_tables_that_it_does_not_know() {
    let env = env();
    let db = open(&env);
    db.execute("CREATE TABLE t (a INTEGER, b TEXT)").unwrap();
    for _ in 0..200 {
        db.execute("INSERT INTO t VALUES (1, repeat('x', 500))").unwrap();
    }
    let newest = db.log().unwrap().durable();
    assert!(db.log().unwrap().remove_before(newest).unwrap() > 0);
    let (all, summary) = inspect(&env, written);
    assert!(summary.ordinals.0 > 1 && summary.ordinals.1 == 201, "{summary:?}");
    let fault = all[0].as_ref().unwrap_err();
    assert!(fault.reason.ends_with("which does not exist"), "{fault}");
    assert_eq!(LogInspector::partitions("/data", &env).unwrap(), Some(2));
}

impl Database {
    fn acknowledge_all(&self, ticket: Ticket) {
        self.log().unwrap().wait(ticket).unwrap();
    }
}
