use std::sync::Arc;

use albireo::{Config, Connection, Database};
use albireo_env::{CrashDisk, Env};

use crate::support::{ask, fails, is_well, run, small, state};

fn four() -> Database {
    let db = Database::in_memory(Config { partitions: 4, ..small() }).unwrap();
    run(
        &db,
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT) PARTITION BY HASH (a);
         CREATE TABLE s (a INTEGER PRIMARY KEY, b TEXT);
         INSERT INTO t VALUES (0, 'zero'), (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four');
         INSERT INTO s SELECT a, b FROM t",
    );
    db
}

#[test]
fn rows_move_to_the_partition_of_their_new_key() {
    let db = four();
    run(&db, "UPDATE t SET a = a + 10 WHERE a >= 2");
    assert_eq!(ask(&db, "SELECT a, b FROM t ORDER BY a"), "0,zero 1,one 12,two 13,three 14,four");
    run(&db, "UPDATE t SET b = b || '!' WHERE a = 13; DELETE FROM t WHERE a = 14");
    assert_eq!(ask(&db, "SELECT a, b FROM t ORDER BY a"), "0,zero 1,one 12,two 13,three!");
    run(&db, "INSERT INTO t VALUES (2, 'new'), (14, 'again')");
    assert_eq!(ask(&db, "SELECT count(*) FROM t AS x JOIN t AS y ON x.a = y.a"), "6");
    is_well(&db);
}

#[test]
fn row_that_moves_onto_another_ones_key_changes_nothing() {
    let db = four();
    let before = ask(&db, "SELECT a, b FROM t ORDER BY a");
    let error = fails(&db, "UPDATE t SET a = 1 WHERE a = 2");
    assert_eq!(state(&error), "23505", "{error}");
    assert_eq!(ask(&db, "SELECT a, b FROM t ORDER BY a"), before);
    assert_eq!(state(&fails(&db, "INSERT INTO t VALUES (7, 'a'), (6, 'b'), (4, 'c')")), "23505");
    assert_eq!(ask(&db, "SELECT a, b FROM t ORDER BY a"), before);
    is_well(&db);
}

#[test]
fn shared_tables_change_under_all_partitions_at_once() {
    let db = four();
    run(&db, "UPDATE s SET b = 'x' WHERE a IN (SELECT a FROM t WHERE a < 2); DELETE FROM s WHERE a = 4");
    assert_eq!(ask(&db, "SELECT a, b FROM s ORDER BY a"), "0,x 1,x 2,two 3,three");
    assert_eq!(ask(&db, "SELECT count(*) FROM s JOIN t USING (a)"), "4");
}

/// Transfers between accounts of five partitions, by procedures whose rows or whose call the log has, and by
/// transactions of several statements; beside them changes of single rows. Then the log is read.
#[test]
fn transactions_over_some_partitions_are_there_again_after_a_crash() {
    let disk = CrashDisk::new(1);
    let config = || Config { partitions: 5, ..small() };
    let open = |disk: &CrashDisk| {
        let env = Env { disk: Arc::new(disk.clone()), ..Env::real() };
        Database::open_in("/data", config(), env).unwrap()
    };
    let body = "(a INTEGER, b INTEGER) LANGUAGE plpgsql AS $$ BEGIN
                    UPDATE account SET cents = cents - 1, seen = seen || b WHERE id = a;
                    UPDATE account SET cents = cents + 1, seen = 'from ' || a WHERE id = b;
                    IF a % 9 = 0 THEN UPDATE account SET cents = cents * 2 WHERE id = (a + b) % 40; END IF;
                END $$;";
    let before = {
        let db = open(&disk);
        run(
            &db,
            "CREATE TABLE account (id INTEGER PRIMARY KEY, cents BIGINT NOT NULL, seen TEXT NOT NULL)
             PARTITION BY HASH (id);
             INSERT INTO account SELECT i, 100, '' FROM generate_series(0, 39) AS x(i)",
        );
        for name in ["transfer", "tell"] {
            run(&db, &format!("CREATE PROCEDURE {name}{body}"));
        }
        albireo_env::scope(|scope| {
            for thread in 0..3 {
                let connection = db.connect();
                let work = move || {
                    for i in 0..120 {
                        let (a, b) = ((i * 7 + thread * 11) % 40, (i * 3 + thread) % 40);
                        let sql = match i % 4 {
                            0 => format!("CALL transfer({a}, {b})"),
                            1 => format!("CALL tell({a}, {b})"),
                            2 => format!("UPDATE account SET cents = cents + 3 WHERE id = {a}"),
                            _ => String::new(),
                        };
                        if !sql.is_empty() {
                            connection.execute(&sql).unwrap();
                            continue;
                        }
                        let both = |connection: &Connection| {
                            connection
                                .execute(&format!("UPDATE account SET cents = cents - 5 WHERE id = {a}"))?;
                            connection
                                .execute(&format!("UPDATE account SET cents = cents + 5 WHERE id = {b}"))
                        };
                        connection.transaction(both).unwrap();
                    }
                };
                albireo_env::spawn_scoped(scope, "client", work).unwrap();
            }
            run(&db, "CHECKPOINT");
        });
        ask(&db, "SELECT id, cents, seen FROM account ORDER BY id")
    };
    disk.crash();
    let again = CrashDisk::new(2);
    disk.files().iter().for_each(|(path, bytes)| again.put(path, bytes));
    let db = open(&again);
    assert_eq!(ask(&db, "SELECT id, cents, seen FROM account ORDER BY id"), before);
    is_well(&db);
}
