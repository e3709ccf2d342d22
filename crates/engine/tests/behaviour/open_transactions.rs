//! Limits of open transactions, and the view that shows them.

use std::sync::Arc;
use std::time::Duration;

use albireo::{Config, Connection, Database};
use albireo_env::Env;

use super::blocks::told;
use super::row_locks::start;
use crate::support::{ask, rows_stay};

fn database(config: Config) -> Database {
    let db = Database::in_memory(config).unwrap();
    db.execute("CREATE TABLE test (id INTEGER PRIMARY KEY, value INTEGER, note TEXT)").unwrap();
    db.execute("INSERT INTO test SELECT i, i, '' FROM generate_series(1, 10) AS x(i)").unwrap();
    db
}

fn run(connection: &Connection, sql: &str) -> String {
    told(connection.execute(sql))
}

const SHOWN: &str = "SELECT id, state, isolation, statement, locks, written_bytes > 0, waits_for
                     FROM albireo.transactions ORDER BY id";

#[test]
fn view_shows_who_does_what_and_waits_for_whom() {
    let db = database(Config::default());
    assert_eq!(ask(&db, SHOWN), "");
    assert_eq!(ask(&db, "SELECT count(*), max(began) FROM albireo.transactions AS t"), "0,NULL");
    let (one, two, three) = (db.connect(), db.connect(), db.connect());
    one.execute("BEGIN; SELECT id FROM test WHERE id IN (1, 2) FOR UPDATE").unwrap();
    two.execute("BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE test SET value = 0 WHERE id = 3").unwrap();
    three.execute("BEGIN READ ONLY; SELECT 7").unwrap();
    let waits = "SELECT id FROM test WHERE id = 1 FOR SHARE";
    albireo_env::scope(|scope| {
        let waiting = start(scope, || run(&two, waits));
        while !ask(&db, SHOWN).contains("waiting") {
            std::thread::yield_now();
        }
        let expected = format!(
            "1,idle,serializable,SELECT id FROM test WHERE id IN (1, 2) FOR UPDATE,2,f,NULL \
             2,waiting,read committed,{waits},0,t,1 3,idle,read only,SELECT 7,NULL,NULL,NULL"
        );
        assert_eq!(ask(&db, SHOWN), expected);
        assert_eq!(run(&one, "SELECT state FROM albireo.transactions WHERE id = 1"), "active");
        one.execute("ROLLBACK").unwrap();
        assert_eq!(waiting.join().unwrap(), "1");
    });
    assert_eq!(run(&two, "SELECT nothing"), "42703");
    let state = "SELECT id, albireo.transactions.state, locks FROM albireo.transactions ORDER BY id";
    assert_eq!(ask(&db, state), "2,failed,0 3,idle,NULL");
    // As any relation: in a subquery, a join, INSERT ... SELECT, and as a name that an alias hides.
    assert_eq!(ask(&db, "SELECT id FROM test WHERE id IN (SELECT id FROM albireo.transactions)"), "2 3");
    db.execute(
        "CREATE TABLE log (id BIGINT PRIMARY KEY, at TIMESTAMPTZ);
                INSERT INTO log SELECT id, began FROM albireo.transactions",
    )
    .unwrap();
    assert_eq!(
        ask(&db, "SELECT id FROM log JOIN albireo.transactions AS t USING (id) WHERE at = t.began"),
        "2 3"
    );
    drop(two);
    three.execute("COMMIT").unwrap();
    assert_eq!(ask(&db, SHOWN), "");
    assert_eq!(told(db.execute("SELECT * FROM albireo.nothing")), "42P01");
}

#[test]
fn there_are_no_more_open_transactions_than_there_may_be() {
    let db = database(Config { open_transactions: 2, ..Config::default() });
    let connections: Vec<Connection> = (0..3).map(|_| db.connect()).collect();
    assert_eq!(run(&connections[0], "BEGIN"), "ok");
    assert_eq!(run(&connections[1], "BEGIN READ ONLY"), "ok");
    assert_eq!(run(&connections[2], "BEGIN"), "53400");
    assert_eq!(run(&connections[2], "SELECT id FROM test WHERE id = 1"), "1");
    assert_eq!(run(&connections[1], "COMMIT AND CHAIN"), "ok");
    assert_eq!(run(&connections[1], "COMMIT"), "ok");
    assert_eq!(run(&connections[2], "BEGIN"), "ok");
    assert!(Database::in_memory(Config { open_transactions: 0, ..Config::default() }).is_err());
}

#[test]
fn what_open_transactions_have_written_is_limited() {
    if !rows_stay() {
        return;
    }
    let db = database(Config { open_writes_bytes: 10_000, ..Config::default() });
    let (one, two) = (db.connect(), db.connect());
    let write = "UPDATE test SET note = repeat('x', 4000) WHERE id = ";
    for (number, connection) in [&one, &two].into_iter().enumerate() {
        connection.execute("BEGIN").unwrap();
        for id in 1..=2 {
            assert_eq!(run(connection, &format!("{write} {}", id + 2 * number)), "ok");
        }
        // Somebody else comes, and what was written is put away.
        assert_eq!(ask(&db, "SELECT count(*) FROM test WHERE note <> ''"), "0");
    }
    assert_eq!(run(&one, "SELECT id FROM test WHERE id = 9"), "9");
    assert_eq!(run(&one, &format!("{write} 9")), "53200");
    assert_eq!(run(&one, "ROLLBACK"), "ok");
    assert_eq!(run(&two, &format!("{write} 9")), "ok");
    assert_eq!(run(&two, "COMMIT"), "ok");
    assert_eq!(ask(&db, "SELECT count(*) FROM test WHERE note <> ''"), "3");
}

/// A database whose time stands still but for what a test adds to it.
fn with_time(config: Config) -> (Database, impl Fn(Duration)) {
    let (env, clock) = Env::simulated(1);
    let env = Env { disk: Arc::clone(&Env::real().disk), ..env };
    let db = Database::with_env(config, env).unwrap();
    db.execute("CREATE TABLE test (id INTEGER PRIMARY KEY, value INTEGER)").unwrap();
    db.execute("INSERT INTO test SELECT i, i FROM generate_series(1, 10) AS x(i)").unwrap();
    (db, move |time| clock.advance(time))
}

#[test]
fn idle_transaction_is_ended_when_its_time_is_over() {
    let (db, pass) = with_time(Config::default());
    let (one, two) = (db.connect(), db.connect());
    let second = Duration::from_secs(1);
    one.execute("SET idle_in_transaction_session_timeout = '10s'").unwrap();
    // Each statement begins the time anew.
    one.execute("BEGIN; SELECT id FROM test WHERE id = 1 FOR UPDATE").unwrap();
    pass(9 * second);
    assert_eq!(run(&one, "UPDATE test SET value = 7 WHERE id = 1"), "ok");
    pass(9 * second);
    assert_eq!(run(&one, "SAVEPOINT s"), "ok");
    assert_eq!(ask(&db, "SELECT state FROM albireo.transactions"), "idle");
    pass(11 * second);
    assert_eq!(ask(&db, "SELECT state FROM albireo.transactions"), "overdue");
    // Who wants what it has locked ends it.
    two.execute("BEGIN").unwrap();
    assert_eq!(run(&two, "SELECT value FROM test WHERE id = 1 FOR UPDATE"), "1");
    two.execute("COMMIT").unwrap();
    assert_eq!(run(&one, "COMMIT"), "25P03");
    assert_eq!(run(&one, "SELECT value FROM test WHERE id = 1"), "1");
    for end in
        ["SELECT value FROM test WHERE id = 1", "UPDATE test SET value = 1 WHERE id = 1", "SELECT 1 + 1"]
    {
        for begin in ["BEGIN", "BEGIN READ ONLY"] {
            one.execute(begin).unwrap();
            one.execute("SELECT value FROM test WHERE id = 2").unwrap();
            pass(11 * second);
            if begin == "BEGIN" || end.starts_with("SELECT") {
                assert_eq!(run(&one, end), "25P03", "{begin}; {end}");
                assert_eq!(run(&one, end), "25P02", "{begin}; {end}");
            }
            one.execute("ROLLBACK").unwrap();
            assert_eq!(run(&one, "SELECT value FROM test WHERE id = 2"), "2");
        }
    }
}

#[test]
fn transaction_is_ended_when_its_time_is_over_whatever_it_does() {
    let (db, pass) = with_time(Config { open_transactions: 1, ..Config::default() });
    let (one, two) = (db.connect(), db.connect());
    let second = Duration::from_secs(1);
    one.execute("SET transaction_timeout = '10s'").unwrap();
    one.execute("BEGIN; UPDATE test SET value = 7 WHERE id = 1").unwrap();
    pass(6 * second);
    assert_eq!(run(&one, "SELECT value FROM test WHERE id = 1"), "7");
    pass(6 * second);
    assert_eq!(run(&one, "SELECT value FROM test WHERE id = 1"), "25P04");
    assert_eq!(run(&one, "COMMIT"), "ok");
    assert_eq!(run(&one, "SELECT value FROM test WHERE id = 1"), "1");
    // Its place is somebody else's.
    one.execute("BEGIN; UPDATE test SET value = 7 WHERE id = 1").unwrap();
    assert_eq!(run(&two, "BEGIN"), "53400");
    pass(11 * second);
    assert_eq!(run(&two, "BEGIN"), "ok");
    assert_eq!(run(&one, "COMMIT"), "25P04");
    assert_eq!(run(&two, "SELECT value FROM test WHERE id = 1"), "1");
}

#[test]
fn who_waits_for_an_advisory_lock_is_not_idle() {
    let (db, pass) = with_time(Config::default());
    let (holder, waiting) = (db.connect(), db.connect());
    holder.execute("SELECT pg_advisory_lock(1)").unwrap();
    waiting.execute("SET idle_in_transaction_session_timeout = '10s'; BEGIN").unwrap();
    waiting.execute("UPDATE test SET value = 7 WHERE id = 1").unwrap();
    let shown = "SELECT state, statement FROM albireo.transactions";
    albireo_env::scope(|scope| {
        let got = start(scope, || run(&waiting, "SELECT pg_advisory_lock(1)"));
        while !ask(&db, shown).starts_with("waiting") {
            std::thread::yield_now();
        }
        let statement = ask(&db, shown);
        pass(Duration::from_secs(11));
        // Who waits for another lock ends those that are overdue.
        let other = db.connect();
        other.execute("SELECT pg_advisory_lock(3)").unwrap();
        let third = db.connect();
        third.execute("SET lock_timeout = '1s'").unwrap();
        let late = start(scope, move || run(&third, "SELECT pg_advisory_lock(3)"));
        while !late.is_finished() {
            pass(Duration::from_millis(100));
            std::thread::yield_now();
        }
        assert_eq!(late.join().unwrap(), "55P03");
        holder.execute("SELECT pg_advisory_unlock(1)").unwrap();
        assert_eq!(got.join().unwrap(), "");
        assert_eq!(statement, "waiting,SELECT pg_advisory_lock(1)");
    });
    assert_eq!(run(&waiting, "COMMIT"), "ok");
    assert_eq!(ask(&db, "SELECT value FROM test WHERE id = 1"), "7");
}
