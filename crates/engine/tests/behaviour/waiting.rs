//! Whether a call waits for the disk: as the transaction itself asks, else as its connection, else as the
//! database was opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use albireo::{
    Abort, Config, Connection, Database, Durability, Outcome, Procedure, Route, SqlState, Transaction, Value,
};
use albireo_env::{Env, MemoryDisk};

use super::support::{fails, state};

const ROUTINE: &str = "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (0);
    CREATE FUNCTION change(how text) RETURNS integer LANGUAGE plpgsql AS $$
    DECLARE v integer;
    BEGIN
        UPDATE t SET a = a + 1 RETURNING a INTO v;
        IF how = 'off' THEN
            SET LOCAL synchronous_commit TO off;
        ELSIF how = 'on' THEN
            set local synchronous_commit = 'on';
        ELSIF how = 'off, taken back' THEN
            BEGIN SET LOCAL synchronous_commit = off; RAISE EXCEPTION 'no';
            EXCEPTION WHEN raise_exception THEN NULL; END;
        ELSIF how = 'off, on taken back' THEN
            SET LOCAL synchronous_commit = off;
            BEGIN SET LOCAL synchronous_commit = on; RAISE EXCEPTION 'no';
            EXCEPTION WHEN raise_exception THEN NULL; END;
        ELSIF how = 'off, default' THEN
            SET LOCAL synchronous_commit = off;
            SET LOCAL synchronous_commit TO DEFAULT;
        END IF;
        RETURN v;
    END $$";

/// A database whose log makes its steps when somebody waits for it, and how often that was.
struct Waited {
    db: Database,
    steps: Arc<AtomicU32>,
}

impl Waited {
    fn new(durability: Durability) -> Self {
        let env = Env { disk: Arc::new(MemoryDisk::default()), ..Env::real() };
        let config = Config { durability, log_segment_bytes: 256 << 10, ..Config::default() };
        let db = Database::open_stepped("/data", config, env).unwrap();
        let steps = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&steps);
        db.log().unwrap().instead_of_waiting(move |log| {
            count.fetch_add(1, Ordering::Relaxed);
            log.step();
        });
        Self { db, steps }
    }

    /// Whether anybody waits for the log within `work`.
    fn waits(&self, work: impl FnOnce()) -> bool {
        let before = self.steps.load(Ordering::Relaxed);
        work();
        let waited = self.steps.load(Ordering::Relaxed) > before;
        assert_eq!(self.db.log().unwrap().pending_bytes() == 0, waited, "what is waited for is durable");
        while self.db.log().unwrap().pending_bytes() > 0 {
            self.db.log().unwrap().step();
        }
        waited
    }
}

fn run(connection: &Connection, text: &str) {
    connection.execute(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
}

#[test]
fn transaction_says_whether_its_caller_waits() {
    for (durability, usual) in [(Durability::Group, true), (Durability::Async, false)] {
        let waited = Waited::new(durability);
        waited.waits(|| drop(waited.db.execute(ROUTINE).unwrap()));
        for (set, asked) in [("default", None), ("off", Some(false)), ("on", Some(true))] {
            let connection = waited.db.connect();
            run(&connection, &format!("SET synchronous_commit = {set}"));
            let usual = asked.unwrap_or(usual);
            for jit in ["on", "off"] {
                run(&connection, &format!("SET jit = {jit}"));
                for (how, wanted) in [
                    ("", usual),
                    ("off", false),
                    ("on", true),
                    ("off, taken back", usual),
                    ("off, on taken back", false),
                    ("off, default", usual),
                ] {
                    let call = format!("SELECT change('{how}')");
                    let found = waited.waits(|| run(&connection, &call));
                    assert_eq!(found, wanted, "{durability:?}, {set}, jit {jit}: {how}");
                }
            }
        }
        // By handle, whose calls know no connection.
        let handle = waited.db.routine("change").unwrap();
        for (how, wanted) in [("", usual), ("off", false), ("on", true)] {
            let args = [Value::Text(how.to_owned()).into()];
            assert_eq!(waited.waits(|| drop(handle.call(&args).unwrap())), wanted, "{durability:?}: {how}");
        }
    }
}

/// Asks as its argument says.
struct Native(albireo::TableHandle);

impl Procedure for Native {
    type Args = Option<bool>;
    type Output = ();

    fn name(&self) -> &str {
        "native"
    }

    fn route(&self, _: &Option<bool>) -> Route {
        Route::Crossing
    }

    fn run(&self, tx: &mut Transaction, asked: &Option<bool>) -> Result<(), Abort> {
        tx.insert_values_at(tx.home(), self.0, &[Value::Integer(1)])?;
        tx.set_synchronous_commit(*asked);
        Ok(())
    }
}

#[test]
fn native_procedure_says_whether_its_caller_waits() {
    for (durability, usual) in [(Durability::Group, true), (Durability::Async, false)] {
        let waited = Waited::new(durability);
        waited.waits(|| drop(waited.db.execute("CREATE TABLE t (a INTEGER)").unwrap()));
        let native =
            waited.db.register_procedure(Native(waited.db.with_table("t", |table, _| Ok(table)).unwrap()));
        for asked in [None, Some(false), Some(true)] {
            let wanted = asked.unwrap_or(usual);
            assert_eq!(waited.waits(|| native.call(&asked).unwrap()), wanted, "{durability:?}, {asked:?}");
            let queued = || native.submit(asked).unwrap()().unwrap();
            assert_eq!(waited.waits(queued), wanted, "queued: {durability:?}, {asked:?}");
        }
    }
}

#[test]
fn local_setting_ends_with_its_transaction() {
    let db = super::support::database();
    let connection = db.connect();
    let shown = || super::support::rows_of(connection.execute("SHOW statement_timeout").unwrap().remove(0));
    run(&connection, "SET statement_timeout = '1 h'; BEGIN READ ONLY; SET LOCAL statement_timeout = '2 h'");
    assert_eq!(shown(), "7200000ms");
    run(&connection, "COMMIT");
    assert_eq!(shown(), "3600000ms");
    run(&connection, "BEGIN READ ONLY; SET statement_timeout = '3 h'; SET LOCAL statement_timeout = '4 h'");
    assert_eq!(shown(), "14400000ms");
    run(&connection, "COMMIT");
    assert_eq!(shown(), "10800000ms");
    run(&connection, "BEGIN READ ONLY; SET statement_timeout = '5 h'; ROLLBACK");
    assert_eq!(shown(), "10800000ms");
    // Outside of one it does nothing, and says so.
    match connection.execute("SET LOCAL statement_timeout = 1").unwrap().remove(0) {
        Outcome::Done { notices, .. } => assert!(notices[0].contains("transaction blocks"), "{notices:?}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(shown(), "10800000ms");
    assert!(connection.execute("SET LOCAL statement_timeout = soon").is_err());
}

#[test]
fn other_settings_in_a_routine_are_refused_with_a_remedy() {
    let db = super::support::database();
    let create = |set: &str| {
        fails(&db, &format!("CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$BEGIN {set}; END$$"))
    };
    for (set, wanted, hint) in [
        (
            "SET synchronous_commit = off",
            SqlState::FEATURE_NOT_SUPPORTED,
            "Write SET LOCAL synchronous_commit.",
        ),
        (
            "SET LOCAL jit = off",
            SqlState::FEATURE_NOT_SUPPORTED,
            "Run it as a separate statement before the call.",
        ),
        ("SET LOCAL synchronous_commit = maybe", SqlState::INVALID_PARAMETER_VALUE, "Use on or off."),
    ] {
        let error = create(set);
        assert_eq!((error.state(), error.hint()), (wanted, Some(hint)), "{error}");
        assert!(error.position().is_some(), "{error}");
    }
    assert_eq!(state(&create("SET LOCAL")), "42601");
}
