//! Transactions of several statements: what each level promises, by the names of the anomalies, and what a block does
//! with errors, savepoints and its own writes.
//!
//! The anomalies are those of Adya, *Weak Consistency*, 1999, in the form of Kleppmann's tests for PostgreSQL.

use std::sync::Arc;

use albireo::{Config, Connection, Database, Outcome, SqlError, Value};
use albireo_env::{CrashDisk, Env};

const LEVELS: [&str; 3] = ["SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"];

/// What one step gives: rows as `1:10 2:20`, `ok`, or an SQLSTATE.
pub(super) fn told(done: Result<Vec<Outcome>, SqlError>) -> String {
    match done {
        Err(error) => error.state().to_string(),
        Ok(outcomes) => match outcomes.last() {
            Some(Outcome::Rows(result)) => {
                let row = |row: &Vec<albireo::Value>| {
                    row.iter().map(ToString::to_string).collect::<Vec<_>>().join(":")
                };
                result.rows().iter().map(row).collect::<Vec<_>>().join(" ")
            }
            _ => "ok".to_owned(),
        },
    }
}

pub(super) fn database(partitions: u16) -> Database {
    let db = Database::in_memory(Config { partitions, ..Config::default() }).unwrap();
    let by = if partitions > 1 { " PARTITION BY HASH (id)" } else { "" };
    db.execute(&format!("CREATE TABLE test (id INTEGER PRIMARY KEY, value INTEGER){by}")).unwrap();
    db.execute("INSERT INTO test VALUES (1, 10), (2, 20)").unwrap();
    db
}

/// Runs steps at every level, on one partition and on two: `T1: statement => what each level gives`, several separated
/// by `|` where levels differ, `serial: statement` outside of a block, and in the end what the table holds.
fn history(name: &str, steps: &str) {
    for partitions in [1, 2] {
        for (number, level) in LEVELS.iter().enumerate() {
            let db = database(partitions);
            let connections: Vec<Connection> = (0..3).map(|_| db.connect()).collect();
            for connection in &connections {
                connection.execute(&format!("BEGIN ISOLATION LEVEL {level}")).unwrap();
            }
            for step in steps.lines().map(str::trim).filter(|step| !step.is_empty()) {
                let (what, expected) = step.split_once("=>").unwrap();
                let expected: Vec<&str> = expected.split('|').map(str::trim).collect();
                // The first two levels are the same.
                let expected = expected[usize::from(number == 2).min(expected.len() - 1)];
                let (who, sql) = what.trim().split_once(':').unwrap();
                let done = match who {
                    "table" => db.execute("SELECT id, value FROM test ORDER BY id"),
                    "serial" => db.execute(sql),
                    who => connections[who[1..].parse::<usize>().unwrap() - 1].execute(sql),
                };
                assert_eq!(told(done), expected, "{name} at {level} on {partitions}: {step}");
            }
        }
    }
}

#[test]
fn dirty_writes_are_kept_apart() {
    history(
        "G0",
        "T1: UPDATE test SET value = 11 WHERE id = 1 => ok
         T2: UPDATE test SET value = 12 WHERE id = 1 => ok
         T1: UPDATE test SET value = 21 WHERE id = 2 => ok
         T1: COMMIT => ok
         T2: UPDATE test SET value = 22 WHERE id = 2 => 40001
         T2: COMMIT => ok
         table: => 1:11 2:21",
    );
}

#[test]
fn nobody_reads_what_is_rolled_back_or_not_final() {
    history(
        "G1a",
        "T1: UPDATE test SET value = 101 WHERE id = 1 => ok
         T2: SELECT id, value FROM test ORDER BY id => 1:10 2:20
         T1: ROLLBACK => ok
         T2: SELECT id, value FROM test ORDER BY id => 1:10 2:20
         T2: COMMIT => ok
         table: => 1:10 2:20",
    );
    history(
        "G1b",
        "T1: UPDATE test SET value = 101 WHERE id = 1 => ok
         T2: SELECT id, value FROM test WHERE id = 1 => 1:10
         T1: UPDATE test SET value = 11 WHERE id = 1 => ok
         T1: COMMIT => ok
         T2: SELECT id, value FROM test WHERE id = 1 => 40001 | 1:11
         T2: COMMIT => ok
         table: => 1:11 2:20",
    );
}

#[test]
fn circular_information_flow_ends_one() {
    history(
        "G1c",
        "T1: UPDATE test SET value = 11 WHERE id = 1 => ok
         T2: UPDATE test SET value = 22 WHERE id = 2 => ok
         T1: SELECT id, value FROM test WHERE id = 2 => 2:20
         T2: SELECT id, value FROM test WHERE id = 1 => 1:10
         T1: COMMIT => ok
         T2: COMMIT => 40001 | ok
         table: => 1:11 2:20 | 1:11 2:22",
    );
}

#[test]
fn observed_transactions_do_not_vanish() {
    history(
        "OTV",
        "T1: UPDATE test SET value = 11 WHERE id = 1 => ok
         T1: UPDATE test SET value = 19 WHERE id = 2 => ok
         T2: UPDATE test SET value = 12 WHERE id = 1 => ok
         T1: COMMIT => ok
         T3: SELECT id, value FROM test WHERE id = 1 => 1:11
         T2: UPDATE test SET value = 18 WHERE id = 2 => 40001
         T3: SELECT id, value FROM test WHERE id = 2 => 2:19
         T2: ROLLBACK => ok
         T3: SELECT id, value FROM test WHERE id = 2 => 2:19
         T3: COMMIT => ok
         table: => 1:11 2:19",
    );
}

#[test]
fn predicates_hold_as_rows_do() {
    history(
        "PMP",
        "T1: SELECT id, value FROM test WHERE value = 30 =>
         T2: INSERT INTO test VALUES (3, 30) => ok
         T2: COMMIT => ok
         T1: SELECT id, value FROM test WHERE value % 3 = 0 => 40001 | 3:30
         T1: COMMIT => ok
         table: => 1:10 2:20 3:30",
    );
    history(
        "PMP by a range of an index",
        "T1: SELECT id, value FROM test WHERE id BETWEEN 2 AND 5 => 2:20
         T2: INSERT INTO test VALUES (3, 30) => ok
         T2: COMMIT => ok
         T1: SELECT id, value FROM test WHERE id = 1 => 40001 | 1:10
         T1: COMMIT => ok
         table: => 1:10 2:20 3:30",
    );
    history(
        "a key that is not there",
        "T1: SELECT id, value FROM test WHERE id = 3 =>
         T2: INSERT INTO test VALUES (4, 40) => ok
         T2: COMMIT => ok
         T1: SELECT id, value FROM test WHERE id = 3 =>
         T3: INSERT INTO test VALUES (3, 30) => ok
         T3: COMMIT => ok
         T1: INSERT INTO test VALUES (5, 50) => 40001 | ok
         T1: COMMIT => ok
         table: => 1:10 2:20 3:30 4:40 | 1:10 2:20 3:30 4:40 5:50",
    );
}

#[test]
fn updates_are_not_lost() {
    history(
        "P4",
        "T1: SELECT id, value FROM test WHERE id = 1 => 1:10
         T2: SELECT id, value FROM test WHERE id = 1 => 1:10
         T1: UPDATE test SET value = 11 WHERE id = 1 => ok
         T2: UPDATE test SET value = 11 WHERE id = 1 => ok
         T1: COMMIT => ok
         T2: COMMIT => 40001
         table: => 1:11 2:20",
    );
}

#[test]
fn rows_that_are_read_for_update_stay_or_end_the_transaction() {
    history(
        "P4 with FOR UPDATE",
        "T1: SELECT id, value FROM test WHERE id = 1 FOR UPDATE => 1:10
         serial: UPDATE test SET value = 12 WHERE id = 1 => ok
         T1: UPDATE test SET value = 11 WHERE id = 2 => 40001
         T1: ROLLBACK => ok
         table: => 1:12 2:20",
    );
}

#[test]
fn read_skew_is_seen() {
    history(
        "G-single",
        "T1: SELECT id, value FROM test WHERE id = 1 => 1:10
         T2: UPDATE test SET value = 12 WHERE id = 1 => ok
         T2: UPDATE test SET value = 18 WHERE id = 2 => ok
         T2: COMMIT => ok
         T1: SELECT id, value FROM test WHERE id = 2 => 40001 | 2:18
         T1: COMMIT => ok
         table: => 1:12 2:18",
    );
}

#[test]
fn write_skew_ends_one() {
    history(
        "G2-item",
        "T1: SELECT id, value FROM test WHERE id IN (1, 2) ORDER BY id => 1:10 2:20
         T2: SELECT id, value FROM test WHERE id IN (1, 2) ORDER BY id => 1:10 2:20
         T1: UPDATE test SET value = 11 WHERE id = 1 => ok
         T2: UPDATE test SET value = 21 WHERE id = 2 => ok
         T1: COMMIT => ok
         T2: COMMIT => 40001 | ok
         table: => 1:11 2:20 | 1:11 2:21",
    );
    history(
        "G2",
        "T1: SELECT id, value FROM test WHERE value % 3 = 0 =>
         T2: SELECT id, value FROM test WHERE value % 3 = 0 =>
         T1: INSERT INTO test VALUES (3, 30) => ok
         T2: INSERT INTO test VALUES (4, 42) => ok
         T1: COMMIT => ok
         T2: COMMIT => 40001 | ok
         table: => 1:10 2:20 3:30 | 1:10 2:20 3:30 4:42",
    );
}

#[test]
fn reader_between_two_writers_sees_a_state_that_was() {
    history(
        "read-only anomaly",
        "T1: SELECT id, value FROM test ORDER BY id => 1:10 2:20
         T2: UPDATE test SET value = value + 5 WHERE id = 2 => ok
         T2: COMMIT => ok
         T3: SELECT id, value FROM test ORDER BY id => 1:10 2:25
         T3: COMMIT => ok
         T1: UPDATE test SET value = 0 WHERE id = 1 => 40001 | ok
         T1: COMMIT => ok
         table: => 1:10 2:25 | 1:0 2:25",
    );
}

#[test]
fn same_key_twice_ends_the_later_one() {
    history(
        "a race for a key",
        "T1: INSERT INTO test VALUES (3, 30) => ok
         T2: INSERT INTO test VALUES (3, 31) => ok
         T1: INSERT INTO test VALUES (3, 32) => 23505
         T2: COMMIT => ok
         T1: ROLLBACK => ok
         T3: INSERT INTO test VALUES (3, 33) => 23505
         table: => 1:10 2:20 3:31",
    );
}

/// Runs statements of one connection: `statement => what it gives`.
fn script(db: &Database, connection: &Connection, steps: &str) {
    for step in steps.lines().map(str::trim).filter(|step| !step.is_empty()) {
        let (sql, expected) = step.split_once("=>").unwrap();
        let done = match sql.trim() {
            "table" => db.execute("SELECT id, value FROM test ORDER BY id"),
            sql => connection.execute(sql),
        };
        assert_eq!(told(done), expected.trim(), "{step}");
    }
}

#[test]
fn block_sees_its_own_writes_and_nobody_else_does() {
    for partitions in [1, 2] {
        let db = database(partitions);
        let connection = db.connect();
        script(
            &db,
            &connection,
            "BEGIN => ok
             INSERT INTO test VALUES (3, 30), (4, 40) => ok
             UPDATE test SET value = value + 1 WHERE id IN (1, 3) => ok
             DELETE FROM test WHERE id = 2 => ok
             SELECT id, value FROM test WHERE id = 3 => 3:31
             SELECT id, value FROM test ORDER BY id => 1:11 3:31 4:40
             SELECT count(*), sum(value), rank() OVER (ORDER BY sum(value)) FROM test => 3:82:1
             INSERT INTO test VALUES (2, 21) => ok
             UPDATE test SET id = 5 WHERE id = 4 => ok
             UPDATE test SET value = (SELECT max(value) FROM test x WHERE x.id < test.id) WHERE id > 2 => ok
             SELECT id, value FROM test ORDER BY id => 1:11 2:21 3:21 5:31
             table => 1:10 2:20
             COMMIT => ok
             table => 1:11 2:21 3:21 5:31",
        );
    }
}

#[test]
fn keys_that_change_places_are_written_again() {
    let db = database(1);
    let connection = db.connect();
    script(
        &db,
        &connection,
        "BEGIN => ok
         UPDATE test SET id = 3 WHERE id = 1 => ok
         UPDATE test SET id = 1 WHERE id = 2 => ok
         UPDATE test SET id = 2 WHERE id = 3 => ok
         SELECT id, value FROM test ORDER BY id => 1:20 2:10
         SELECT id, value FROM test WHERE id = 2 => 2:10
         COMMIT => ok
         table => 1:20 2:10",
    );
}

#[test]
fn failed_block_takes_nothing_but_its_end() {
    let db = database(1);
    let connection = db.connect();
    script(
        &db,
        &connection,
        "BEGIN => ok
         UPDATE test SET value = 11 WHERE id = 1 => ok
         INSERT INTO test VALUES (1, 1) => 23505
         SELECT id, value FROM test WHERE id = 1 => 25P02
         UPDATE test SET value = 12 WHERE id = 1 => 25P02
         CALL nothing() => 25P02
         SAVEPOINT s => 25P02
         COMMIT => ok
         table => 1:10 2:20
         SELECT id, value FROM test WHERE id = 1 => 1:10",
    );
}

type Statement<'a> = &'a dyn Fn() -> Result<(), SqlError>;

#[test]
fn every_error_fails_the_block_be_it_found_early_or_late() {
    let db = database(1);
    let connection = db.connect();
    let cancelled = || {
        connection.cancel_token().cancel();
        connection.execute("SELECT 1").map(drop)
    };
    let statements: [(&str, Statement<'_>); 9] = [
        ("42601", &|| connection.execute("SELEC 1").map(drop)),
        ("42601", &|| connection.execute("SELECT 'open").map(drop)),
        ("42601", &|| connection.execute_with("SELEC $1", &[1.into()]).map(drop)),
        ("42601", &|| connection.query("SELEC 1", &[]).map(drop)),
        ("42P01", &|| connection.query("SELECT * FROM nowhere", &[]).map(drop)),
        ("42601", &|| connection.copy_from("COPI test FROM STDIN", &b""[..]).map(drop)),
        ("42P01", &|| connection.copy_from("COPY nowhere FROM STDIN", &b""[..]).map(drop)),
        ("0A000", &|| connection.execute("CREATE TABLE other (a INTEGER)").map(drop)),
        ("57014", &cancelled),
    ];
    for (number, (expected, statement)) in statements.iter().enumerate() {
        connection.execute("BEGIN; UPDATE test SET value = 11 WHERE id = 1").unwrap();
        assert_eq!(statement().unwrap_err().state().to_string(), *expected, "{number}");
        assert_eq!(told(connection.execute("SELECT 1")), "25P02", "{number}");
        // As in PostgreSQL, a COMMIT takes back what was done.
        connection.execute("COMMIT").unwrap();
        assert_eq!(told(db.execute("SELECT value FROM test WHERE id = 1")), "10", "{number}");
    }
    for (number, (_, statement)) in statements.iter().enumerate() {
        connection.execute("BEGIN READ ONLY").unwrap();
        statement().unwrap_err();
        assert_eq!(told(connection.execute("SELECT 1")), "25P02", "{number}");
        connection.execute("ROLLBACK").unwrap();
    }
}

#[test]
fn savepoints_take_back_a_part() {
    let db = database(2);
    let connection = db.connect();
    script(
        &db,
        &connection,
        "SAVEPOINT s => 25P01
         BEGIN => ok
         UPDATE test SET value = 11 WHERE id = 1 => ok
         SAVEPOINT a => ok
         UPDATE test SET value = 12 WHERE id = 1 => ok
         SAVEPOINT b => ok
         DELETE FROM test => ok
         ROLLBACK TO b => ok
         SELECT id, value FROM test ORDER BY id => 1:12 2:20
         INSERT INTO test VALUES (2, 2) => 23505
         ROLLBACK TO SAVEPOINT a => ok
         SELECT id, value FROM test ORDER BY id => 1:11 2:20
         RELEASE SAVEPOINT b => 3B001
         ROLLBACK TO a => ok
         RELEASE a => ok
         COMMIT => ok
         table => 1:11 2:20",
    );
}

#[test]
fn block_ends_with_the_next_one_or_with_its_connection() {
    let db = database(1);
    let connection = db.connect();
    script(
        &db,
        &connection,
        "BEGIN ISOLATION LEVEL READ COMMITTED => ok
         UPDATE test SET value = 11 WHERE id = 1 => ok
         COMMIT AND CHAIN => ok
         SHOW transaction_isolation => read committed
         UPDATE test SET value = 12 WHERE id = 1 => ok
         ROLLBACK AND CHAIN => ok
         UPDATE test SET value = 22 WHERE id = 2 => ok
         table => 1:11 2:20",
    );
    drop(connection);
    assert_eq!(told(db.execute("UPDATE test SET value = 13 WHERE id = 2")), "ok");
    assert_eq!(told(db.execute("SELECT id, value FROM test ORDER BY id")), "1:11 2:13");
}

#[test]
fn conflict_names_the_row_and_the_rival() {
    let db = database(1);
    db.execute(
        "CREATE PROCEDURE pay(p INTEGER) LANGUAGE plpgsql AS $$ BEGIN UPDATE test SET value = value + 1 WHERE id = p; END $$",
    )
    .unwrap();
    let connection = db.connect();
    script(&db, &connection, "BEGIN => ok\nSELECT id, value FROM test WHERE id = 2 => 2:20");
    db.execute("CALL pay(1)").unwrap();
    script(&db, &connection, "SELECT id, value FROM test WHERE id = 2 => 2:20");
    db.execute("CALL pay(2)").unwrap();
    let error = connection.execute("INSERT INTO test VALUES (9, 9)").unwrap_err();
    assert_eq!(error.state().to_string(), "40001");
    let detail = error.detail().unwrap();
    assert!(detail.contains("Row (id)=(2) of table \"test\"") && detail.contains("pay"), "{detail}");
    assert!(error.hint().is_some());
    // One that has written nothing has read a state that was.
    connection.execute("ROLLBACK; BEGIN; SELECT * FROM test WHERE id = 2").unwrap();
    db.execute("CALL pay(2)").unwrap();
    connection.execute("COMMIT").unwrap();
}

#[test]
fn procedures_and_errors_inside_of_a_block() {
    let db = database(2);
    db.execute(
        "CREATE PROCEDURE add(p INTEGER, v INTEGER) LANGUAGE plpgsql AS $$
         BEGIN
             IF v < 0 THEN RAISE EXCEPTION 'negative' USING ERRCODE = '22023'; END IF;
             UPDATE test SET value = value + v WHERE id = p;
             IF NOT FOUND THEN INSERT INTO test VALUES (p, v); END IF;
         END $$",
    )
    .unwrap();
    let connection = db.connect();
    script(
        &db,
        &connection,
        "BEGIN => ok
         CALL add(1, 5) => ok
         CALL add(7, 70) => ok
         CALL add(7, 7) => ok
         SAVEPOINT s => ok
         CALL add(1, -1) => 22023
         ROLLBACK TO s => ok
         SELECT id, value FROM test ORDER BY id => 1:15 2:20 7:77
         CREATE TABLE u (a INTEGER) => 0A000
         ROLLBACK TO s => ok
         COMMIT => ok
         table => 1:15 2:20 7:77",
    );
}

#[test]
fn definition_that_changes_meanwhile_ends_the_block() {
    let db = database(1);
    let connection = db.connect();
    script(&db, &connection, "BEGIN => ok\nUPDATE test SET value = 11 WHERE id = 1 => ok");
    db.execute("CREATE TABLE u (a INTEGER)").unwrap();
    script(
        &db,
        &connection,
        "UPDATE test SET value = 12 WHERE id = 1 => 40001\nROLLBACK => ok\ntable => 1:10 2:20",
    );
}

#[test]
fn index_that_is_dropped_under_an_open_block_hinders_nobody_else() {
    let db = database(1);
    db.execute("CREATE INDEX by_value ON test (value); INSERT INTO test SELECT i, i FROM generate_series(3, 99) AS s(i)")
        .unwrap();
    let connection = db.connect();
    script(
        &db,
        &connection,
        "BEGIN => ok
         SELECT id, value FROM test WHERE value = 5 => 5:5
         SELECT count(*) FROM test WHERE value BETWEEN 50 AND 52 => 3",
    );
    db.execute(
        "DROP INDEX by_value; INSERT INTO test VALUES (100, 51); UPDATE test SET value = 5 WHERE id = 6",
    )
    .unwrap();
    script(&db, &connection, "SELECT id, value FROM test WHERE id = 7 => 40001\nROLLBACK => ok");
    assert_eq!(told(db.execute("SELECT count(*), sum(value) FROM test WHERE value = 51")), "2:102");
}

#[test]
fn closure_runs_again_until_nobody_interferes() {
    let db = database(1);
    let connection = db.connect();
    let mut runs = 0;
    let value = connection.transaction(|connection| {
        runs += 1;
        let value = connection.query("SELECT value FROM test WHERE id = 1", &[])?.value(0, 0);
        if runs < 3 {
            db.execute("UPDATE test SET value = value + 1 WHERE id = 1")?;
        }
        connection.execute("UPDATE test SET value = value * 2 WHERE id = 1")?;
        Ok(value.to_string())
    });
    assert_eq!((value.unwrap().as_str(), runs), ("12", 3));
    assert_eq!(told(db.execute("SELECT value FROM test WHERE id = 1")), "24");
}

#[test]
fn modes_are_set_and_shown() {
    let db = database(1);
    let connection = db.connect();
    script(
        &db,
        &connection,
        "SHOW transaction_isolation => serializable
         SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED => ok
         SHOW default_transaction_isolation => read committed
         BEGIN => ok
         SHOW transaction_isolation => read committed
         SET TRANSACTION ISOLATION LEVEL SERIALIZABLE => ok
         SHOW transaction_isolation => serializable
         SELECT id, value FROM test WHERE id = 1 => 1:10
         SET TRANSACTION ISOLATION LEVEL READ COMMITTED => 25001
         ROLLBACK => ok
         BEGIN => ok
         SET TRANSACTION READ ONLY => ok
         UPDATE test SET value = 1 WHERE id = 1 => 25006
         ROLLBACK => ok
         SET default_transaction_read_only = on => ok
         BEGIN => ok
         SAVEPOINT s => ok
         DELETE FROM test => 25006
         ROLLBACK TO s => ok
         SELECT id, value FROM test WHERE id = 2 => 2:20
         BEGIN READ WRITE => ok
         COMMIT => ok
         SET default_transaction_isolation = 'chaos' => 22023",
    );
}

#[test]
fn increments_of_many_threads_all_count() {
    let db = database(2);
    db.execute(
        "CREATE PROCEDURE bump(p INTEGER) LANGUAGE plpgsql AS $$ BEGIN UPDATE test SET value = value + 1 WHERE id = p; END $$",
    )
    .unwrap();
    let increment = |connection: &Connection, id: i32| {
        connection.transaction(|connection| {
            let value = connection.query("SELECT value FROM test WHERE id = $1", &[id.into()])?.value(0, 0);
            let Value::Integer(value) = value else { panic!("{value}") };
            connection
                .execute_with("UPDATE test SET value = $1 WHERE id = $2", &[(value + 1).into(), id.into()])
        })
    };
    albireo_env::scope(|scope| {
        for number in 0..4 {
            let (db, increment) = (&db, &increment);
            let rounds = move || {
                let connection = db.connect();
                for round in 0..50 {
                    increment(&connection, 1 + (number + round) % 2).unwrap();
                    db.execute_with("CALL bump($1)", &[(1 + round % 2).into()]).unwrap();
                }
            };
            albireo_env::spawn_scoped(scope, "increments", rounds).unwrap();
        }
    });
    // 4 threads, 50 rounds, twice each.
    assert_eq!(told(db.execute("SELECT sum(value) FROM test")), "430");
}

#[test]
fn what_was_committed_is_there_again_and_what_was_open_is_not() {
    let open = |disk: &CrashDisk| {
        let env = Env { disk: Arc::new(disk.clone()), ..Env::real() };
        Database::open_in("/data", Config { partitions: 2, ..Config::default() }, env).unwrap()
    };
    let disk = CrashDisk::new(1);
    {
        let db = open(&disk);
        db.execute(
            "CREATE TABLE test (id INTEGER PRIMARY KEY, value INTEGER) PARTITION BY HASH (id);
             CREATE TABLE shared (id INTEGER PRIMARY KEY, note TEXT);
             INSERT INTO test VALUES (1, 10), (2, 20)",
        )
        .unwrap();
        let (one, other) = (db.connect(), db.connect());
        one.execute("BEGIN; UPDATE test SET value = 11 WHERE id = 1; INSERT INTO test VALUES (3, 30)")
            .unwrap();
        one.execute("INSERT INTO shared VALUES (1, repeat('long ', 20)); COMMIT").unwrap();
        other
            .execute("BEGIN; UPDATE test SET value = 99 WHERE id = 2; DELETE FROM test WHERE id = 1")
            .unwrap();
        db.execute("INSERT INTO test VALUES (4, 40)").unwrap();
        disk.crash();
    }
    let again = CrashDisk::new(2);
    disk.files().iter().for_each(|(path, bytes)| again.put(path, bytes));
    let db = open(&again);
    assert_eq!(told(db.execute("SELECT id, value FROM test ORDER BY id")), "1:11 2:20 3:30 4:40");
    assert_eq!(told(db.execute("SELECT id, length(note) FROM shared")), "1:100");
}
