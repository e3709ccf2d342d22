//! Calls in the redo log: made again, they do what they did.

use std::ops::ControlFlow;
use std::sync::Arc;

use albireo::{
    Abort, Argument, ArgumentRef, Col, Config, Database, IndexRef, LogContent, LogInspector, LogRecords,
    Outcome, Procedure, Procedures, Repeatable, Route, ShortKey, SqlError, SqlState, TableHandle,
    Transaction, Value,
};
use albireo_env::{Env, MemoryDisk};

use crate::support::rows_stay;

/// A disk in memory and a directory on it.
#[derive(Default)]
struct Place {
    disk: MemoryDisk,
}

impl Place {
    fn env(&self) -> Env {
        Env { disk: Arc::new(self.disk.clone()), ..Env::real() }
    }

    fn open(&self, partitions: u16, log_records: LogRecords) -> Database {
        let config = Config { partitions, log_records, log_segment_bytes: 256 << 10, ..Config::default() };
        Database::open_in("/data", config, self.env()).unwrap()
    }

    /// The kinds of its log's records, and what calls say.
    fn records(&self) -> Vec<String> {
        let mut records = Vec::new();
        let mut inspector = LogInspector::open("/data", &self.env()).unwrap();
        inspector.visit(&mut |entry| {
            records.push(match entry.unwrap().content {
                LogContent::Command { routine, version, .. } => format!("{routine} v{version}"),
                other => other.kind().to_owned(),
            });
            ControlFlow::Continue(())
        });
        records
    }
}

fn rows(db: &Database, query: &str) -> Vec<String> {
    let rows = db.query(query, &[]).unwrap().rows();
    rows.iter().map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|")).collect()
}

/// The lines of EXPLAIN PROCEDURE.
fn plan(db: &Database, sql: &str) -> Vec<String> {
    match db.execute(sql).unwrap().remove(0) {
        Outcome::Rows(rows) => rows.rows().iter().map(|row| row[0].to_string()).collect(),
        other => panic!("{other:?}"),
    }
}

const ALL: [&str; 3] = [
    "SELECT * FROM account ORDER BY id",
    "SELECT * FROM entry ORDER BY account, number",
    "SELECT * FROM rate ORDER BY currency",
];

fn all(db: &Database) -> Vec<Vec<String>> {
    ALL.iter().map(|query| rows(db, query)).collect()
}

const SCHEMA: &str = "
    CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT, cents NUMERIC(12,2) NOT NULL) PARTITION BY HASH (id);
    CREATE TABLE entry (account INTEGER, number INTEGER, at TIMESTAMP, what TEXT, PRIMARY KEY (account, number))
        PARTITION BY HASH (account);
    CREATE TABLE rate (currency CHAR(3) PRIMARY KEY, rate NUMERIC(30,10));
    CREATE FUNCTION book(p_id integer, p_cents numeric, p_what text[], p_tags smallint[]) RETURNS numeric
    LANGUAGE plpgsql AS $$
    DECLARE v_cents numeric; v_number integer;
    BEGIN
        UPDATE account SET cents = cents + p_cents WHERE id = p_id RETURNING cents INTO STRICT v_cents;
        IF v_cents < 0 THEN RAISE EXCEPTION 'not enough'; END IF;
        FOR i IN 1 .. cardinality(p_what) LOOP
            SELECT coalesce(max(number), 0) + 1 INTO v_number FROM entry WHERE account = p_id;
            INSERT INTO entry VALUES (p_id, v_number, now(), p_what[i] || p_tags[i]);
        END LOOP;
        RETURN v_cents;
    END $$;
    CREATE PROCEDURE transfer(p_from integer, p_to integer, p_cents numeric) LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE account SET cents = cents - p_cents WHERE id = p_from;
        UPDATE account SET cents = cents + p_cents WHERE id = p_to;
    END $$;
    CREATE PROCEDURE exchange(p_currency char(3), p_rate numeric) LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO rate VALUES (p_currency, p_rate) ON CONFLICT (currency) DO UPDATE SET rate = excluded.rate;
    END $$;
    CREATE FUNCTION anyone() RETURNS void LANGUAGE plpgsql AS $$
    DECLARE v integer;
    BEGIN
        SELECT id INTO v FROM account WHERE owner = 'same';
        UPDATE account SET cents = cents + 1 WHERE id = v;
    END $$;";

/// Calls of all of them, with other changes between.
fn work(db: &Database) {
    let book = db.routine("book").unwrap();
    let transfer = db.routine("transfer").unwrap();
    let text = |text: &str| Argument::from(Value::Text(text.to_owned()));
    for id in 0..8 {
        db.execute(&format!("INSERT INTO account VALUES ({id}, 'same', 100)")).unwrap();
    }
    for round in 0..40_i32 {
        let what = Argument::Array(vec!["a".into(), Value::Null, "c".into()]);
        let tags = Argument::Array(vec![1_i16.into(), 2_i16.into(), 3_i16.into()]);
        book.call(&[(round % 8).into(), text("1.25"), what, tags]).unwrap();
        transfer.call(&[(round % 8).into(), (round * 3 % 8).into(), (round % 5).into()]).unwrap();
        let error = book.invoke(&[(round % 8).into(), (-100_000_i64).into(), "{x}".into(), "{1}".into()]);
        assert_eq!(error.err().unwrap().state(), SqlState(*b"P0001"));
        if round % 10 == 3 {
            db.execute("DELETE FROM entry WHERE number = 2").unwrap();
            db.execute("CALL exchange('EUR', 1.5 + 0); SELECT anyone()").unwrap();
            db.execute(&format!("CALL exchange('C{round}', -{round}.5)")).unwrap();
            db.execute("CALL transfer(1, 2, NULL::numeric + 1)").unwrap_err();
        }
    }
    let parts = &[ArgumentRef::from(1), 5_i64.into(), "{p,q}".into(), ArgumentRef::SmallInts(&[7, 8])];
    book.invoke(parts).unwrap();
}

#[test]
fn calls_are_made_again_with_the_same_outcome() {
    for partitions in [1, 3] {
        let place = Place::default();
        let db = place.open(partitions, LogRecords::Calls);
        db.execute(SCHEMA).unwrap();
        work(&db);
        let changed = db.execute(
            "CREATE OR REPLACE PROCEDURE transfer(p_from integer, p_to integer, p_cents numeric)
             LANGUAGE plpgsql AS $$ BEGIN UPDATE account SET cents = 7 WHERE id = p_to; END $$",
        );
        changed.unwrap();
        db.execute("CALL transfer(1, 2, 3)").unwrap();
        let before = all(&db);
        drop(db);
        let records = place.records();
        let count = |kind: &str| records.iter().filter(|record| *record == kind).count();
        assert_eq!((count("book v1"), count("transfer v1"), count("transfer v2")), (41, 40, 1));
        // Arguments need not be literals, only known before the call.
        assert_eq!((count("exchange v1"), count("anyone v1")), (8, 0));
        for _ in 0..2 {
            // What was loaded, and what an archive had, lies elsewhere.
            let db = place.open(partitions, LogRecords::Calls);
            assert_eq!(all(&db), before);
            db.checkpoint().unwrap();
        }
    }
}

#[test]
fn calls_and_rows_give_the_same() {
    let mut outcomes = Vec::new();
    for records in [LogRecords::Calls, LogRecords::Rows, LogRecords::Adaptive] {
        let place = Place::default();
        let db = place.open(2, records);
        db.execute(SCHEMA).unwrap();
        work(&db);
        let before = all(&db);
        drop(db);
        let calls = place.records().iter().filter(|record| record.contains(" v")).count();
        match records {
            LogRecords::Calls => assert_eq!(calls, 89),
            LogRecords::Rows => assert_eq!(calls, 0),
            // Measured ones leave rows first.
            LogRecords::Adaptive => assert!(calls < 89, "{calls}"),
        }
        assert_eq!(all(&place.open(2, records)), before, "{records:?}");
        let balances = rows(&place.open(2, records), "SELECT id, cents FROM account ORDER BY id");
        outcomes.push(balances);
    }
    // Which row `anyone` finds first depends on where rows are.
    if rows_stay() {
        assert_eq!(outcomes[0], outcomes[1]);
        assert_eq!(outcomes[1], outcomes[2]);
    }
}

#[test]
fn routine_that_the_order_of_rows_decides_about_leaves_rows() {
    let place = Place::default();
    let db = place.open(1, LogRecords::Calls);
    db.execute(SCHEMA).unwrap();
    db.execute("INSERT INTO account VALUES (1, 'same', 0), (2, 'same', 0), (3, 'same', 0)").unwrap();
    db.execute("DELETE FROM account WHERE id = 1; INSERT INTO account VALUES (1, 'same', 0)").unwrap();
    db.routine("anyone").unwrap().call(&[]).unwrap();
    let before = all(&db);
    drop(db);
    assert!(!place.records().contains(&"anyone v1".to_owned()));
    assert_eq!(all(&place.open(1, LogRecords::Calls)), before);
}

#[test]
fn costs_of_records_are_shown() {
    let place = Place::default();
    let db = place.open(1, LogRecords::Adaptive);
    db.execute(SCHEMA).unwrap();
    let explained = |db: &Database| plan(db, "EXPLAIN PROCEDURE transfer").join("\n");
    let log = |text: String| text.lines().find(|line| line.starts_with("log:")).map(str::to_owned);
    assert_eq!(log(explained(&db)).unwrap(), "log: the call; its cost has not been measured yet");
    db.execute("INSERT INTO account VALUES (1, 'a', 0), (2, 'b', 0)").unwrap();
    let transfer = db.routine("transfer").unwrap();
    (0..200).for_each(|_| drop(transfer.call(&[1.into(), 2.into(), 1.into()]).unwrap()));
    let line = log(explained(&db)).unwrap();
    assert!(line.contains("; a call takes ") && line.contains(" us to be done again"), "{line}");
    assert!(explained(&db).contains("repeatable: yes"));
    let memory = Database::in_memory(Config::default()).unwrap();
    memory.execute(SCHEMA).unwrap();
    assert_eq!(log(explained(&memory)), None);
}

/// Adds to an account, found by an index.
struct Deposit {
    account: TableHandle,
    by_id: IndexRef,
    cents: Col<i64>,
}

impl Deposit {
    fn new(db: &Database) -> Result<Self, SqlError> {
        db.with_table("deposit", |account, table| {
            Ok(Self { account, by_id: table.index("by_id")?, cents: table.column("cents")? })
        })
    }
}

impl Procedure for Deposit {
    type Args = (i32, i64);
    type Output = ();

    fn name(&self) -> &str {
        "deposit"
    }

    fn route(&self, (id, _): &(i32, i64)) -> Route {
        Route::Key((*id).into())
    }

    fn run(&self, tx: &mut Transaction, (id, cents): &(i32, i64)) -> Result<(), Abort> {
        let row = tx.table(self.account).find(self.by_id, ShortKey::new().i32(*id));
        let row = row.ok_or_else(|| Abort::raise(SqlState::RAISE_EXCEPTION, "no such account"))?;
        let sum = tx.table(self.account).get(row, self.cents) + cents;
        tx.update(self.account, row, |row| row.set(self.cents, sum))
    }
}

impl Repeatable for Deposit {
    const VERSION: u32 = 1;

    fn put_args((id, cents): &(i32, i64), out: &mut Vec<u8>) {
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&cents.to_le_bytes());
    }

    fn read_args(bytes: &[u8]) -> Option<(i32, i64)> {
        let (id, cents) = bytes.split_at_checked(4)?;
        Some((i32::from_le_bytes(id.try_into().ok()?), i64::from_le_bytes(cents.try_into().ok()?)))
    }
}

#[test]
fn native_calls_are_made_again_by_the_indexes_that_there_were() {
    let place = Place::default();
    let with = |procedures: Procedures| {
        let config = Config { procedures, log_records: LogRecords::Calls, ..Config::default() };
        Database::open_in("/data", config, place.env())
    };
    let db = with(Procedures::default()).unwrap();
    db.execute(
        "CREATE TABLE deposit (id INTEGER NOT NULL, cents BIGINT NOT NULL) PARTITION BY HASH (id);
         CREATE INDEX other ON deposit (cents); CREATE UNIQUE INDEX by_id ON deposit (id);
         INSERT INTO deposit VALUES (1, 0), (2, 0)",
    )
    .unwrap();
    db.register_repeatable(Deposit::new(&db).unwrap()).call(&(1, 5)).unwrap();
    drop(db);
    assert_eq!(place.records().last().unwrap(), "deposit v1");
    let error = with(Procedures::default()).err().unwrap();
    assert!(
        error.message().contains("the native procedure \"deposit\", which this program has not registered"),
        "{error}"
    );
    // Indexes stand elsewhere now: nobody has a handle, not even recovery.
    let procedures = Procedures::default().with("deposit", Deposit::new);
    let db = with(procedures.clone()).unwrap();
    db.execute("DROP INDEX other").unwrap();
    db.register_repeatable(Deposit::new(&db).unwrap()).call(&(2, 7)).unwrap();
    drop(db);
    let db = with(procedures).unwrap();
    assert_eq!(rows(&db, "SELECT * FROM deposit ORDER BY id"), ["1|5", "2|7"]);
}

#[test]
fn statement_that_swaps_columns_is_logged_as_itself_and_made_again() {
    for partitions in [1, 3] {
        let place = Place::default();
        let db = place.open(partitions, LogRecords::Adaptive);
        db.execute(
            "CREATE TABLE wide (id INTEGER PRIMARY KEY, a BIGINT, b NUMERIC(20,4), c REAL, d TIMESTAMP)
                 PARTITION BY HASH (id);
             INSERT INTO wide SELECT i, i, i, i, NULL FROM generate_series(1, 20000) AS s(i)",
        )
        .unwrap();
        let before = place.records().len();
        db.execute("SELECT 1; UPDATE wide SET a = a * 3 + id, c = c / 7 WHERE id % 2 = 0; SELECT 2").unwrap();
        let moment = Value::parse("2024-02-29 10:00:00.25", albireo::SqlType::Timestamp).unwrap();
        let set = "UPDATE wide SET b = b / $1, d = $2::timestamp WHERE a > $3";
        db.execute_with(set, &[Value::Integer(7), moment, Value::BigInt(10)]).unwrap();
        db.execute("UPDATE wide SET a = 1 WHERE id = 5; DELETE FROM wide WHERE id = 6").unwrap();
        assert_eq!(place.records()[before..], ["statement", "statement", "write", "write"], "{partitions}");
        let all = || "SELECT * FROM wide ORDER BY id";
        let expected = rows(&db, all());
        drop(db);
        let db = place.open(partitions, LogRecords::Adaptive);
        assert_eq!(rows(&db, all()), expected, "{partitions} partitions");
    }
}
