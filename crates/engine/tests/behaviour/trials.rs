//! Transactions that are rolled back in the end: what they see, and that nothing of them stays.

use std::panic::{AssertUnwindSafe, catch_unwind};

use albireo::{Config, Database, SqlError, Trial};

use crate::support::{ask, is_well, rows_of, rows_stay, run, show, small, state};

/// A placed table with two indexes and long texts, a shared one, and routines.
fn shop(partitions: u16) -> Database {
    let db = Database::in_memory(Config { partitions, ..small() }).unwrap();
    run(
        &db,
        "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL, left_over INTEGER
            CHECK (left_over >= 0))
            PARTITION BY HASH (id);
         CREATE INDEX item_by_name ON item (name);
         CREATE TABLE sale (line INTEGER PRIMARY KEY, item INTEGER, said TEXT);
         INSERT INTO item VALUES (1, 'an apple that is not small at all', 10), (2, 'pear', 5), (3, 'fig', 0);
         INSERT INTO sale VALUES (1, 1, 'a line that was there before the first trial');
         CREATE FUNCTION sell(p_line integer, p_item integer, p_count integer) RETURNS integer
         LANGUAGE plpgsql AS $$
         DECLARE v_left integer;
         BEGIN
             INSERT INTO sale VALUES (p_line, p_item, repeat('sold ', 20) || p_count);
             UPDATE item SET left_over = left_over - p_count WHERE id = p_item
                 RETURNING left_over INTO STRICT v_left;
             RAISE NOTICE '% left', v_left;
             RETURN v_left;
         END $$;
         CREATE PROCEDURE restock(INOUT p_count integer) LANGUAGE plpgsql AS $$
         BEGIN
             UPDATE item SET left_over = left_over + p_count;
             p_count := p_count * 2;
         END $$;
         CREATE FUNCTION told(p_what text) RETURNS text LANGUAGE sql AS 'SELECT ''told '' || p_what';
         CREATE FUNCTION nothing() RETURNS void LANGUAGE plpgsql AS $$ BEGIN NULL; END $$",
    );
    db
}

const ITEMS: &str = "SELECT id, name, left_over FROM item ORDER BY id";
const SALES: &str = "SELECT line, item, said FROM sale ORDER BY line";

/// Tables, through each index, and the bytes of rows, texts and indexes.
fn contents(db: &Database) -> (String, String, String, [u64; 4]) {
    let memory = db.memory();
    let by_name = ask(db, "SELECT id FROM item WHERE name = 'pear'");
    let bytes = match rows_stay() {
        true => [memory.rows_bytes, memory.strings_bytes, memory.indexes_bytes, memory.undo_bytes],
        false => [0; 4],
    };
    (ask(db, ITEMS), ask(db, SALES), by_name, bytes)
}

fn tell(trial: &mut Trial<'_>, sql: &str) -> String {
    rows_of(trial.run(sql, &[]).unwrap_or_else(|error| panic!("{sql}\n{error}")))
}

fn fail(trial: &mut Trial<'_>, sql: &str) -> SqlError {
    trial.run(sql, &[]).expect_err(sql)
}

#[test]
fn statements_of_a_trial_see_each_other_and_leave_nothing() {
    for partitions in [1, 3] {
        let db = shop(partitions);
        let before = contents(&db);
        let committed = db.statistics().transactions.committed;
        let seen = db.connect().rolled_back(|trial| {
            assert_eq!(tell(trial, "SELECT sell(2, 1, 4)"), "6");
            assert_eq!(trial.notices().collect::<Vec<_>>(), ["6 left"]);
            assert_eq!(
                rows_of(trial.run("SELECT sell($1, $2, $3)", &[3.into(), 2.into(), 5.into()]).unwrap()),
                "0"
            );
            assert_eq!(tell(trial, "CALL restock(3)"), "6");
            assert_eq!(trial.notices().count(), 0);
            trial.run("SELECT * FROM nothing()", &[]).unwrap();
            assert_eq!(rows_of(trial.run("SELECT * FROM told($1)", &["é".into()]).unwrap()), "told é");
            trial
                .run("INSERT INTO item VALUES (4, $1, 1)", &["a name that is too long for a row".into()])
                .unwrap();
            assert_eq!(tell(trial, "UPDATE item SET name = 'pear' WHERE id = 3 RETURNING left_over"), "3");
            assert_eq!(tell(trial, "SELECT id FROM item WHERE name = 'pear' ORDER BY id"), "2 3");
            trial.run("DELETE FROM item WHERE id = 1", &[]).unwrap();
            trial.run("UPDATE item SET id = id + 10 WHERE id = 2", &[]).unwrap();
            tell(trial, "SELECT id, left_over FROM item ORDER BY id")
        });
        assert_eq!(seen.unwrap(), "3,3 4,1 12,3");
        assert_eq!(db.statistics().transactions.committed, committed);
        assert_eq!(contents(&db), before);
        is_well(&db);
    }
}

#[test]
fn statement_of_a_trial_that_fails_takes_back_only_what_it_did() {
    for partitions in [1, 3] {
        let db = shop(partitions);
        let before = contents(&db);
        let seen = db.connect().rolled_back(|trial| {
            tell(trial, "SELECT sell(2, 1, 4)");
            let gone = fail(trial, "SELECT sell(3, 1, 7)");
            assert_eq!(state(&gone), "23514");
            let again = fail(trial, "INSERT INTO sale VALUES (5, 1, ''), (2, 1, '')");
            assert_eq!(
                (state(&again).as_str(), again.detail()),
                ("23505", Some("Key (line)=(2) already exists."))
            );
            assert_eq!(state(&fail(trial, "SELECT sell(3, 77, 1)")), "P0002");
            assert_eq!(state(&fail(trial, "SELECT 1 / 0")), "22012");
            let mistake = fail(trial, "SELECT nonsense FROM item");
            assert_eq!((state(&mistake).as_str(), mistake.position()), ("42703", Some(8)));
            assert_eq!(state(&fail(trial, "SELECT sell($1, 1, 1)")), "42P02");
            tell(trial, "SELECT line FROM sale ORDER BY line")
                + " "
                + &tell(trial, "SELECT sum(left_over) FROM item")
        });
        assert_eq!(seen.unwrap(), "1 2 11");
        assert_eq!(contents(&db), before);
    }
}

#[test]
fn trial_refuses_what_cannot_be_rolled_back() {
    let db = shop(1);
    let before = contents(&db);
    let ended = db.connect().rolled_back(|trial| {
        for sql in [
            "CREATE TABLE other (a INTEGER)",
            "DROP TABLE item",
            "CREATE INDEX other ON item (left_over)",
            "TRUNCATE item",
            "CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
            "DROP FUNCTION sell",
            "COPY item TO '/item.csv'",
            "BEGIN READ ONLY",
            "COMMIT",
            "SET statement_timeout = 5",
            "EXPLAIN SELECT 1",
        ] {
            let error = fail(trial, sql);
            assert_eq!(state(&error), "0A000", "{sql}: {error}");
            assert!(
                error.hint().is_some_and(|hint| hint.contains("before the first test")),
                "{sql}: {error}"
            );
        }
    });
    ended.unwrap();
    assert_eq!(contents(&db), before);
    is_well(&db);
}

#[test]
fn trial_that_panics_is_an_error_and_leaves_nothing() {
    for partitions in [1, 3] {
        let db = shop(partitions);
        let before = contents(&db);
        let connection = db.connect();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            connection.rolled_back(|trial| {
                tell(trial, "SELECT sell(2, 1, 4)");
                if tell(trial, "SELECT count(*) FROM sale") == "2" {
                    panic!("on purpose");
                }
            })
        }));
        let error = ended.expect("the panic goes no further").unwrap_err();
        assert_eq!(state(&error), "XX000");
        assert!(error.message().contains("on purpose"), "{error}");
        assert_eq!(contents(&db), before);
        is_well(&db);
    }
}

#[test]
fn statements_of_a_trial_end_at_their_time_limit_and_when_cancelled() {
    let db = shop(1);
    run(
        &db,
        "CREATE FUNCTION endless() RETURNS integer LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO sale VALUES (9, 9, 'x'); LOOP END LOOP; END $$",
    );
    let before = contents(&db);
    let connection = db.connect();
    connection.execute("SET statement_timeout = 200").unwrap();
    let ended = connection.rolled_back(|trial| {
        for _ in 0..2 {
            assert_eq!(state(&fail(trial, "SELECT endless()")), "57014");
            // Out of time itself on a machine that is busy enough.
            albireo_testing::wait_until("sales are counted in time", || {
                match trial.run("SELECT count(*) FROM sale", &[]) {
                    Ok(count) => {
                        assert_eq!(rows_of(count), "1");
                        true
                    }
                    Err(error) => {
                        assert_eq!(state(&error), "57014");
                        false
                    }
                }
            });
        }
        connection.cancel();
        assert_eq!(state(&fail(trial, "SELECT 1")), "57014");
    });
    ended.unwrap();
    assert_eq!(contents(&db), before);
    // The next statement is another one.
    connection.execute("RESET statement_timeout").unwrap();
    assert_eq!(show(&connection.query("SELECT 1", &[]).unwrap()), "1");
}

#[test]
fn trial_in_a_read_only_transaction_is_refused() {
    let db = shop(1);
    let connection = db.connect();
    connection.execute("BEGIN READ ONLY").unwrap();
    assert_eq!(state(&connection.rolled_back(|_| ()).unwrap_err()), "25006");
}
