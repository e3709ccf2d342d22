//! Advisory locks: which exclude each other, how long they last, and what their functions give.

use albireo::{Config, Connection, Database, Value};

use super::blocks::told;
use super::row_locks::{at_once, start};

fn database() -> Database {
    Database::in_memory(Config::default()).unwrap()
}

/// Runs steps: `1: statement => what it gives`, of connections that wait for a moment only.
fn steps(steps: &str) {
    let db = database();
    let connections: Vec<Connection> = (0..3).map(|_| db.connect()).collect();
    for connection in &connections {
        connection.execute("SET lock_timeout = '1ms'").unwrap();
    }
    for step in steps.lines().map(str::trim).filter(|step| !step.is_empty()) {
        let (what, expected) = step.split_once("=>").unwrap();
        let (who, sql) = what.trim().split_once(':').unwrap();
        let done = connections[who.parse::<usize>().unwrap() - 1].execute(sql);
        assert_eq!(told(done), expected.trim(), "{step}");
    }
}

#[test]
fn locks_of_sessions_are_unlocked_as_often_as_they_were_locked() {
    steps(
        "1: SELECT pg_advisory_lock(7) =>
         1: SELECT pg_advisory_lock(7) =>
         2: SELECT pg_try_advisory_lock(7) => f
         2: SELECT pg_advisory_lock(7) => 55P03
         2: SELECT pg_try_advisory_lock(7, 0), pg_try_advisory_lock(0, 7), pg_try_advisory_lock(-1) => t:t:t
         2: SELECT pg_advisory_unlock(7) => f
         1: SELECT pg_advisory_unlock_shared(7) => f
         1: SELECT pg_advisory_unlock(7) => t
         2: SELECT pg_try_advisory_lock(7) => f
         1: SELECT pg_catalog.pg_advisory_unlock(7) => t
         1: SELECT pg_advisory_unlock(7) => f
         2: SELECT pg_try_advisory_lock(7) => t
         2: SELECT pg_advisory_unlock_all() =>
         1: SELECT pg_try_advisory_lock(7), pg_try_advisory_lock(7, 0) => t:t",
    );
}

#[test]
fn shared_locks_go_with_each_other() {
    steps(
        "1: SELECT pg_advisory_lock_shared(7) =>
         2: SELECT pg_try_advisory_lock_shared(7) => t
         3: SELECT pg_try_advisory_lock(7) => f
         1: SELECT pg_try_advisory_lock(7) => f
         2: SELECT pg_advisory_unlock_shared(7) => t
         1: SELECT pg_try_advisory_lock(7) => t
         3: SELECT pg_try_advisory_lock_shared(7) => f
         1: SELECT pg_advisory_unlock(7) => t
         3: SELECT pg_try_advisory_lock_shared(7) => t",
    );
}

#[test]
fn locks_of_transactions_end_with_them() {
    for end in ["COMMIT", "ROLLBACK"] {
        for begin in ["BEGIN", "BEGIN READ ONLY"] {
            steps(&format!(
                "1: {begin} => ok
                 1: SELECT pg_advisory_xact_lock(7) =>
                 1: SELECT pg_try_advisory_lock(8) => t
                 2: SELECT pg_try_advisory_xact_lock(7) => f
                 1: SELECT pg_advisory_unlock(7) => f
                 1: {end} => ok
                 2: SELECT pg_try_advisory_lock(7) => t
                 2: SELECT pg_try_advisory_lock(8) => f"
            ));
        }
    }
    steps(
        "1: SELECT pg_advisory_xact_lock(7) =>
         2: SELECT pg_try_advisory_xact_lock(7) => t
         1: BEGIN => ok
         1: SELECT pg_advisory_xact_lock_shared(1) =>
         1: SAVEPOINT s => ok
         1: SELECT pg_advisory_xact_lock(2) =>
         2: SELECT pg_try_advisory_lock(2) => f
         1: ROLLBACK TO s => ok
         2: SELECT pg_try_advisory_lock(1), pg_try_advisory_lock(2) => f:t
         1: SELECT pg_advisory_xact_lock(2) => 55P03
         1: SELECT pg_try_advisory_lock(3) => 25P02
         2: SELECT pg_try_advisory_lock(1) => f
         1: ROLLBACK => ok
         2: SELECT pg_try_advisory_lock(1) => t
         1: SELECT pg_advisory_xact_lock(9), pg_advisory_xact_lock(1) => 55P03
         2: SELECT pg_try_advisory_lock(9) => t",
    );
}

#[test]
fn arguments_are_any_numbers_and_results_have_names() {
    let db = database();
    let connection = db.connect();
    let result = connection
        .query("SELECT pg_try_advisory_lock($1) AS got, pg_advisory_lock(1 + 1)", &[Value::BigInt(5)]);
    let result = result.unwrap();
    let names: Vec<&str> = result.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["got", "pg_advisory_lock"]);
    assert_eq!(told(db.execute("SELECT pg_try_advisory_lock(5), pg_try_advisory_lock(2)")), "f:f");
    assert_eq!(told(connection.execute("SELECT pg_try_advisory_lock(NULL)")), "NULL");
    assert_eq!(told(connection.execute("SELECT pg_try_advisory_lock(1, 3000000000)")), "22003");
    assert_eq!(told(connection.execute("SELECT pg_try_advisory_lock('x')")), "22P02");
    assert_eq!(told(connection.execute("SELECT pg_try_advisory_lock(nothing)")), "42703");
    assert_eq!(told(connection.execute("SELECT pg_try_advisory_lock(1, 2, 3)")), "42883");
    assert_eq!(told(connection.execute("SELECT 1 WHERE pg_try_advisory_lock(1)")), "42883");
}

#[test]
fn connection_that_is_dropped_has_no_locks() {
    let db = database();
    let connection = db.connect();
    connection.execute("SELECT pg_advisory_lock(1); BEGIN; SELECT pg_advisory_xact_lock(2)").unwrap();
    let ask = "SELECT pg_try_advisory_xact_lock(1), pg_try_advisory_xact_lock(2)";
    assert_eq!(told(db.execute(ask)), "f:f");
    drop(connection);
    assert_eq!(told(db.execute(ask)), "t:t");
}

#[test]
fn who_waits_goes_on_when_the_lock_is_free() {
    let db = database();
    let (holder, waiting) = (db.connect(), db.connect());
    holder.execute("SELECT pg_advisory_lock(1)").unwrap();
    albireo_env::scope(|scope| {
        let got = start(scope, || told(waiting.execute("SELECT pg_advisory_lock(1)")));
        holder.execute("SELECT pg_advisory_unlock(1)").unwrap();
        assert_eq!(got.join().unwrap(), "");
    });
    assert_eq!(told(holder.execute("SELECT pg_try_advisory_lock(1)")), "f");
}

#[test]
fn circle_of_row_locks_and_advisory_locks_is_a_deadlock() {
    let db = database();
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    for _ in 0..20 {
        let both = std::sync::Barrier::new(2);
        let ends = at_once(&db, 2, |connection, number| {
            let mut locks = ["SELECT id FROM t WHERE id = 1 FOR UPDATE", "SELECT pg_advisory_xact_lock(1)"];
            locks.rotate_left(number);
            connection.execute("BEGIN").unwrap();
            connection.execute(locks[0]).unwrap();
            both.wait();
            let end = told(connection.execute(locks[1]));
            both.wait();
            connection.execute("ROLLBACK").unwrap();
            end
        });
        assert_eq!(ends.iter().filter(|end| *end == "40P01").count(), 1, "{ends:?}");
    }
}
