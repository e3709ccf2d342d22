//! Statements of open transactions that find memory full of frozen rows, which can leave it: room is made, whichever way they
//! run.

use albireo::{Config, Connection, Database, Outcome};
use albireo_env::MemoryDisk;

use crate::support::{ask, database_on, rows_stay, run, small};

const LIMIT: u64 = 48 << 20;

/// A database half of whose memory frozen rows take, and a table with some hot ones.
fn filled(eviction: albireo::Eviction) -> Database {
    let config = Config { data_limit_bytes: LIMIT, eviction, partitions: 1, ..small() };
    let db = database_on(MemoryDisk::default(), config);
    run(&db, "CREATE TABLE cold (id BIGINT PRIMARY KEY, text TEXT NOT NULL)");
    run(&db, "CREATE TABLE hot (id BIGINT PRIMARY KEY, n INT NOT NULL, text TEXT NOT NULL)");
    run(&db, "INSERT INTO hot SELECT g, g % 10, 'some' FROM generate_series(1, 3000) s (g)");
    for first in (1..).step_by(16_384) {
        run(
            &db,
            &format!(
                "INSERT INTO cold SELECT g, md5(g::text) || md5((g + 1)::text) || md5((g * 7)::text) || md5((g * 11)::text)
                 FROM generate_series({first}, {}) s (g)",
                first + 16_383
            ),
        );
        run(&db, "CALL albireo.freeze('cold')");
        if db.memory().in_use_bytes > LIMIT / 2 {
            return db;
        }
    }
    unreachable!("half of memory is taken in the end")
}

fn done(connection: &Connection, sql: &str) -> u64 {
    match connection.execute(sql).unwrap_or_else(|error| panic!("{sql}\n{error}")).remove(0) {
        Outcome::Done { rows, .. } => rows,
        other => panic!("{sql}\n{other:?}"),
    }
}

/// Four ways to take 26 MB.
const LONG: &str = "repeat('some long text that is not written anywhere else ', 400)";

fn take(connection: &Connection, way: usize) {
    match way {
        // Rows that are given.
        0 => (1..=48).for_each(|part| {
            let row = |row: usize| format!("({}, 0, {LONG})", part * 1_000 + row);
            let rows: Vec<_> = (0..25).map(|at| row(at + 90_000)).collect();
            assert_eq!(done(connection, &format!("INSERT INTO hot VALUES {}", rows.join(", "))), 25);
        }),
        // Rows of a query.
        1 => {
            let sql =
                format!("INSERT INTO hot SELECT 100000 + g, 0, {LONG} FROM generate_series(1, 1200) s (g)");
            assert_eq!(done(connection, &sql), 1_200);
        }
        // Rows that a scan finds.
        2 => assert_eq!(
            done(connection, &format!("UPDATE hot SET text = {LONG} WHERE n < 4 AND id <= 3000")),
            1_200
        ),
        // Rows that a join finds.
        _ => {
            let sql = format!(
                "UPDATE hot SET text = {LONG} FROM generate_series(1, 1200) s (g) WHERE hot.id = s.g RETURNING hot.id"
            );
            let outcome = connection.execute(&sql).unwrap_or_else(|error| panic!("{sql}\n{error}")).remove(0);
            let Outcome::Rows(rows) = outcome else { panic!("{outcome:?}") };
            assert_eq!(rows.row_count(), 1_200);
        }
    }
}

#[test]
fn room_is_made_whichever_way_a_statement_of_an_open_transaction_takes_memory() {
    if !rows_stay() {
        return;
    }
    for way in 0..4 {
        let db = filled(albireo::Eviction::To("/cold".into()));
        let cold = ask(&db, "SELECT count(*), sum(id), sum(length(text)) FROM cold");
        let connection = db.connect();
        connection.execute("BEGIN").unwrap();
        take(&connection, way);
        connection.execute("COMMIT").unwrap();
        assert!(db.memory().in_use_bytes <= LIMIT, "{way}");
        let count = if way < 2 { 4_200 } else { 3_000 };
        assert_eq!(ask(&db, "SELECT count(*) FROM hot"), count.to_string());
        assert_eq!(ask(&db, "SELECT count(*) FROM hot WHERE length(text) > 1000"), "1200");
        assert_eq!(ask(&db, "SELECT count(*), sum(id), sum(length(text)) FROM cold"), cold);
    }
}

#[test]
fn transaction_that_finds_no_room_fails_and_may_go_on_from_a_savepoint() {
    if !rows_stay() {
        return;
    }
    // Nothing may leave.
    let db = filled(albireo::Eviction::Off);
    let connection = db.connect();
    connection.execute("BEGIN; INSERT INTO hot VALUES (20000, 1, 'before'); SAVEPOINT here").unwrap();
    let sql = format!("INSERT INTO hot SELECT 100000 + g, 0, {LONG} FROM generate_series(1, 3000) s (g)");
    let refused = connection.execute(&sql).unwrap_err();
    assert_eq!(refused.state().to_string(), "53200", "{refused}");
    assert_eq!(connection.execute("SELECT 1").unwrap_err().state().to_string(), "25P02");
    connection.execute("ROLLBACK TO here; INSERT INTO hot VALUES (20001, 1, 'behind'); COMMIT").unwrap();
    assert_eq!(ask(&db, "SELECT count(*), max(id) FROM hot"), "3002,20001");
}

#[test]
fn room_is_made_for_rows_that_are_frozen_by_a_call() {
    if !rows_stay() {
        return;
    }
    let db = filled(albireo::Eviction::To("/cold".into()));
    for part in 0..40 {
        let first = 100_000 + part * 5_000;
        run(
            &db,
            &format!(
                "INSERT INTO hot SELECT g, g % 10, md5(g::text) || md5((g + 1)::text) FROM generate_series({first}, {first} + 4999) s (g)"
            ),
        );
    }
    let before = ask(&db, "SELECT count(*), sum(id), sum(length(text)) FROM hot");
    run(&db, "CALL albireo.freeze('hot')");
    let hot = "SELECT count(*) FROM albireo.chunks WHERE \"table\" = 'hot' AND rows > 0 AND state NOT IN ('frozen', 'evicted')";
    assert_eq!(ask(&db, hot), "0");
    assert_eq!(ask(&db, "SELECT count(*), sum(id), sum(length(text)) FROM hot"), before);
}
