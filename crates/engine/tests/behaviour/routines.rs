//! Functions and procedures: what they see, change, return and leave behind.

use std::time::Duration;

use albireo::{Argument, Config, Database, Outcome, Value};

use crate::support::{ask, is_well, run, show, small, state};

fn bank(partitions: u16) -> Database {
    let db = Database::in_memory(Config { partitions, ..small() }).unwrap();
    run(
        &db,
        "CREATE TABLE account (id INTEGER PRIMARY KEY, cents NUMERIC(12,2) NOT NULL CHECK (cents >= 0))
            PARTITION BY HASH (id);
         CREATE TABLE journal (line INTEGER PRIMARY KEY, said TEXT) PARTITION BY HASH (line);
         INSERT INTO account VALUES (1, 100), (2, 50), (3, 0);
         CREATE FUNCTION transfer(p_from integer, p_to integer, p_cents numeric(12,2),
                                  OUT r_left numeric(12,2), OUT r_note text)
         LANGUAGE plpgsql AS $$
         BEGIN
             UPDATE account SET cents = cents - p_cents WHERE id = p_from RETURNING cents INTO STRICT r_left;
             UPDATE account SET cents = cents + p_cents WHERE id = p_to;
             IF NOT FOUND THEN
                 RAISE EXCEPTION 'no account %', p_to USING ERRCODE = 'P0042', HINT = 'Open it.';
             END IF;
             r_note := p_from || ' to ' || p_to;
         END $$",
    );
    db
}

fn rows(db: &Database, sql: &str, values: &[Value]) -> String {
    match db.execute_with(sql, values).unwrap() {
        Outcome::Rows(rows) => show(&rows),
        other => panic!("{other:?}"),
    }
}

#[test]
fn function_changes_rows_and_gives_its_out_parameters() {
    for partitions in [1, 3] {
        let db = bank(partitions);
        assert_eq!(ask(&db, "SELECT * FROM transfer(1, 2, 30.5)"), "69.50,1 to 2");
        assert_eq!(
            ask(&db, "SELECT * FROM transfer(p_cents => '0.5', p_to => 1, p_from => 2)"),
            "80.00,2 to 1"
        );
        assert_eq!(ask(&db, "SELECT r_note FROM transfer(1, 2, p_cents => 0.5) AS t"), "1 to 2");
        let both = "SELECT * FROM transfer(p_from => 1, nobody => 2, p_cents => 1)";
        assert_eq!(state(&db.execute(both).unwrap_err()), "42883");
        assert_eq!(
            rows(&db, "SELECT * FROM transfer($1, $2, $3)", &[2.into(), 3.into(), 80.into()]),
            "0.50,2 to 3"
        );
        let balances = "SELECT id, cents FROM account ORDER BY id";
        assert_eq!(ask(&db, balances), "1,69.50 2,0.50 3,80.00");
        is_well(&db);
    }
}

#[test]
fn error_in_a_function_leaves_no_trace() {
    for partitions in [1, 3] {
        let db = bank(partitions);
        let before = ask(&db, "SELECT id, cents FROM account ORDER BY id");
        let fail = |sql: &str| db.execute(sql).unwrap_err();
        let missing = fail("SELECT * FROM transfer(1, 9, 10)");
        assert_eq!((state(&missing).as_str(), missing.message()), ("P0042", "no account 9"));
        assert_eq!(missing.hint(), Some("Open it."));
        assert_eq!(state(&fail("SELECT * FROM transfer(9, 1, 10)")), "P0002");
        assert_eq!(state(&fail("SELECT * FROM transfer(3, 1, 10)")), "23514");
        assert_eq!(state(&fail("SELECT * FROM transfer(1, 2, 1e20)")), "22003");
        assert_eq!(state(&fail("SELECT * FROM transfer(1)")), "42883");
        assert_eq!(ask(&db, "SELECT id, cents FROM account ORDER BY id"), before);
        is_well(&db);
    }
}

#[test]
fn procedure_catches_an_error_and_keeps_what_it_did_before() {
    let db = bank(2);
    run(
        &db,
        "CREATE PROCEDURE try_transfer(p_line integer, p_from integer, p_to integer) LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO journal VALUES (p_line, 'tried');
             BEGIN
                 PERFORM transfer(p_from, p_to, 10);
             EXCEPTION WHEN check_violation OR SQLSTATE 'P0042' THEN
                 UPDATE journal SET said = SQLSTATE WHERE line = p_line;
                 RAISE NOTICE 'refused: %', SQLERRM;
             END;
         END $$",
    );
    let called =
        db.execute("CALL try_transfer(1, 1, 2); CALL try_transfer(2, 3, 1); CALL try_transfer(3, 1, 9)");
    let notices: Vec<usize> = called
        .unwrap()
        .iter()
        .map(|outcome| match outcome {
            Outcome::Done { tag, notices, .. } if tag == "CALL" => notices.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(notices, [0, 1, 1]);
    assert_eq!(ask(&db, "SELECT * FROM journal ORDER BY line"), "1,tried 2,23514 3,P0042");
    assert_eq!(ask(&db, "SELECT id, cents FROM account ORDER BY id"), "1,90.00 2,60.00 3,0.00");
    is_well(&db);
}

#[test]
fn function_stands_in_a_query_over_live_rows() {
    let db = bank(2);
    run(
        &db,
        "CREATE FUNCTION grade(cents numeric) RETURNS text LANGUAGE sql AS $$
             SELECT CASE WHEN cents >= 100 THEN 'high' WHEN cents > 0 THEN 'low' ELSE 'none' END $$",
    );
    assert_eq!(ask(&db, "SELECT grade(7)"), "low");
    let query = "SELECT id, grade(cents) AS g FROM account WHERE grade(cents) <> 'none' ORDER BY id DESC";
    assert_eq!(ask(&db, query), "2,low 1,high");
    let reader = db.connect();
    reader.execute("BEGIN READ ONLY").unwrap();
    assert_eq!(state(&reader.execute("SELECT grade(7)").unwrap_err()), "25006");
}

#[test]
fn routine_is_replaced_and_dropped_between_two_calls() {
    let db = Database::in_memory(small()).unwrap();
    let define = |body: &str| {
        db.execute(&format!("CREATE OR REPLACE FUNCTION f(a integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN {body} END $$"))
    };
    define("RETURN a + 1;").unwrap();
    assert_eq!(ask(&db, "SELECT f(1)"), "2");
    define("RETURN a + 2;").unwrap();
    assert_eq!(ask(&db, "SELECT f(1)"), "3");
    // PostgreSQL looks for names when a function is called; we tell it at once.
    let defined = define("RETURN b;").unwrap();
    let [Outcome::Done { notices, .. }] = defined.as_slice() else { panic!("{defined:?}") };
    assert!(notices[0].contains("column \"b\" does not exist"), "{notices:?}");
    assert_eq!(state(&db.execute("SELECT f(1)").unwrap_err()), "42703");
    define("RETURN a + 2;").unwrap();
    let twice = "CREATE FUNCTION f(a integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$";
    assert_eq!(state(&db.execute(twice).unwrap_err()), "42723");
    run(&db, "DROP FUNCTION f(integer)");
    assert_eq!(state(&db.execute("DROP FUNCTION f(integer)").unwrap_err()), "42883");
    run(&db, "DROP FUNCTION IF EXISTS f(integer)");
    assert_eq!(state(&db.execute("SELECT f(1)").unwrap_err()), "42883");
}

#[test]
fn routine_is_bound_again_when_its_table_is_another() {
    let db = Database::in_memory(small()).unwrap();
    run(
        &db,
        "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1);
         CREATE FUNCTION total() RETURNS bigint LANGUAGE plpgsql AS $$
         DECLARE r bigint; BEGIN SELECT sum(a) INTO r FROM t; RETURN r; END $$",
    );
    assert_eq!(ask(&db, "SELECT total()"), "1");
    run(&db, "DROP TABLE t");
    assert_eq!(state(&db.execute("SELECT total()").unwrap_err()), "42P01");
    run(&db, "CREATE TABLE t (b TEXT, a SMALLINT); INSERT INTO t VALUES ('x', 20), ('y', 22)");
    assert_eq!(ask(&db, "SELECT total()"), "42");
}

#[test]
fn endless_loop_runs_out_of_time_and_memory_and_leaves_the_partition_alive() {
    let db = bank(1);
    run(
        &db,
        "CREATE FUNCTION forever() RETURNS integer LANGUAGE plpgsql AS $$
         BEGIN UPDATE account SET cents = 7; LOOP NULL; END LOOP; END $$;
         CREATE FUNCTION greedy() RETURNS integer LANGUAGE plpgsql AS $$
         DECLARE a integer[]; BEGIN
             UPDATE account SET cents = 8;
             FOR i IN 1 .. 100000000 LOOP a[i] := i; END LOOP;
             RETURN 1;
         END $$;
         CREATE FUNCTION deep(n integer) RETURNS integer LANGUAGE plpgsql AS $$
         BEGIN RETURN deep(n + 1); END $$",
    );
    let client = db.connect();
    client.execute("SET statement_timeout = '200ms'").unwrap();
    assert_eq!(state(&client.execute("SELECT forever()").unwrap_err()), "57014");
    let forever = db.routine("forever").unwrap();
    let ended = forever.call_until(&albireo::CancelToken::new(), Some(Duration::from_millis(50)), &[]);
    assert_eq!(state(&ended.unwrap_err()), "57014");
    let cancel = albireo::CancelToken::new();
    cancel.cancel();
    assert_eq!(state(&forever.call_until(&cancel, None, &[]).unwrap_err()), "57014");
    client.execute("SET statement_timeout = 0").unwrap();
    assert_eq!(state(&client.execute("SELECT greedy()").unwrap_err()), "53200");
    assert_eq!(state(&client.execute("SELECT deep(1)").unwrap_err()), "54001");
    assert_eq!(ask(&db, "SELECT id, cents FROM account ORDER BY id"), "1,100.00 2,50.00 3,0.00");
    is_well(&db);
}

#[test]
fn numbers_that_no_one_type_holds_are_given_each_with_its_digits() {
    let db = bank(2);
    run(
        &db,
        "CREATE FUNCTION apart(n numeric) RETURNS SETOF numeric LANGUAGE plpgsql AS $$
         BEGIN
             RETURN NEXT n;
             RETURN NEXT 0.01;
         END $$",
    );
    // As hundredths the first overflows 128 bits, the second only 38 digits.
    for zeros in [37, 36, 35] {
        let rows = ask(&db, &format!("SELECT * FROM apart(1e{zeros})"));
        assert_eq!(rows, format!("1{} 0.01", "0".repeat(zeros)));
    }
}

#[test]
fn arguments_of_a_handle_become_the_types_of_the_parameters() {
    let db = Database::in_memory(small()).unwrap();
    run(
        &db,
        "CREATE FUNCTION share(n numeric(6,2)) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN n / 8; END $$;
         CREATE FUNCTION later(i interval) RETURNS text LANGUAGE plpgsql AS $$
         BEGIN RETURN date '2024-02-28' + i; END $$;
         CREATE FUNCTION half(n double precision) RETURNS double precision LANGUAGE plpgsql AS $$
         BEGIN RETURN n / 2; END $$;
         CREATE FUNCTION flip(b boolean) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN NOT b; END $$;
         CREATE FUNCTION padded(c char(4)) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN c = 'ab'; END $$;
         CREATE FUNCTION total(n numeric[]) RETURNS numeric LANGUAGE plpgsql AS $$
         BEGIN RETURN n[1] + n[2]; END $$",
    );
    let called = |name: &str, arg: Argument| db.routine(name).unwrap().call(&[arg]);
    let one = |name: &str, arg: Argument| match called(name, arg).unwrap().remove(0).remove(0) {
        Argument::Value(value) => value.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(one("share", 1.into()), one("share", Value::BigInt(1).into()));
    assert_eq!(one("share", 1.into()), one("share", Value::from("1").into()));
    assert_eq!(one("share", 1.into()).trim_end_matches('0'), "0.125");
    assert_eq!(one("share", Value::Double(0.8).into()).trim_end_matches('0'), "0.1");
    assert_eq!(one("later", Value::from("2 days 01:00").into()), "2024-03-01 01:00:00");
    assert_eq!(one("half", 3.into()), "1.5");
    assert_eq!(one("padded", Value::from("ab  ").into()), "t");
    assert_eq!(one("total", Argument::Array(vec![1.into(), Value::from("0.5")])), "1.5");
    assert_eq!(one("total", Value::from("{1,0.25}").into()), "1.25");
    for (name, arg, expected) in [
        ("share", Value::from("much"), "22P02"),
        ("share", Value::Bool(true), "42804"),
        ("later", Value::from("soon"), "22007"),
        ("later", Value::Integer(3), "42804"),
        ("flip", Value::Integer(1), "42804"),
        ("flip", Value::from("perhaps"), "22P02"),
        ("total", Value::from("1,2"), "22P02"),
        ("total", Value::Integer(1), "42804"),
    ] {
        assert_eq!(state(&called(name, arg.clone().into()).unwrap_err()), expected, "{name} {arg}");
    }
}

#[test]
fn built_in_function_comes_before_a_routine_of_its_name_and_types() {
    let db = bank(1);
    let function = |head: &str, result: &str| {
        let made = db
            .execute(&format!("CREATE FUNCTION {head} LANGUAGE plpgsql AS $$ BEGIN RETURN {result}; END $$"));
        let Ok([Outcome::Done { notices, .. }]) = made.as_deref() else { panic!("{made:?}") };
        notices.join("; ")
    };
    let notice = function("abs(n integer) RETURNS integer", "-1");
    assert!(notice.contains("public.abs"), "{notice}");
    assert_eq!(function("round(n double precision, digits integer) RETURNS text", "'mine'"), "");
    assert_eq!(function("sum(n integer) RETURNS text", "'mine'"), "");
    function("both(n integer) RETURNS text", "abs(n) || ' ' || public.abs(n) || ' ' || round(n::numeric, 1)");
    assert_eq!(
        ask(&db, "SELECT abs(-3), sum(id) FROM account WHERE id < 3 GROUP BY id ORDER BY id"),
        "3,1 3,2"
    );
    assert_eq!(ask(&db, "SELECT public.abs(-3)"), "-1");
    assert_eq!(ask(&db, "SELECT both(-3)"), "3 -1 -3.0");
    assert_eq!(ask(&db, "SELECT round(1.25, 1), round(1.25::double precision, 1)"), "1.3,mine");
    // A query without calls of routines reads a snapshot, as such a transaction does.
    let reader = db.connect();
    reader.execute("BEGIN READ ONLY").unwrap();
    assert!(reader.execute("SELECT abs(-3), sum(id) FROM account").is_ok());
    assert_eq!(state(&reader.execute("SELECT public.abs(-3)").unwrap_err()), "25006");
}
