use albireo::{Config, Database};

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
