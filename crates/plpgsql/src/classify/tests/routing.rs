//! Where routines run.

use albireo_base::Value;

use super::{class_in, database, home, lines, procedure};
use crate::classify::{Destination, Key, RoutingClass};
use crate::datum::Datum;

const UPDATE: &str = "UPDATE account SET note = 'x' WHERE id =";

#[test]
fn routine_whose_accesses_are_all_by_one_argument_is_of_its_partition() {
    let one = "partition of p; the one access to a partitioned table is by it";
    let two = "partition of p; all 2 accesses to partitioned tables are by it";
    let cases = [
        ("p integer", format!("BEGIN {UPDATE} p; END"), one),
        ("q text, p integer", format!("BEGIN {UPDATE} p; INSERT INTO entry VALUES (p, 1, q); END"), two),
        ("p smallint", format!("DECLARE c CONSTANT integer := p; d bigint := c; BEGIN {UPDATE} d; END"), one),
        ("p bigint", "BEGIN INSERT INTO account VALUES (p::integer, 1); END".to_owned(), one),
        (
            "p text",
            "BEGIN DELETE FROM person WHERE name = p; INSERT INTO person VALUES (p); END".to_owned(),
            two,
        ),
        (
            "p integer",
            "BEGIN PERFORM 1 FROM account a JOIN entry e ON e.account = a.id AND a.id = p; END".to_owned(),
            two,
        ),
        (
            "p integer",
            "BEGIN INSERT INTO entry SELECT id, 1, note FROM account WHERE id = p; END".to_owned(),
            two,
        ),
        (
            "p integer",
            "BEGIN PERFORM (SELECT max(line) FROM entry WHERE account = id) FROM account WHERE id = p; END"
                .to_owned(),
            "probably partition of p; 1 of 2 accesses to partitioned tables are by it, but line 1 reads \"entry\" by a column of the query around it",
        ),
        (
            "p integer, q numeric",
            format!(
                "BEGIN LOOP {UPDATE} p; EXIT WHEN q > (SELECT value FROM rate WHERE currency = 'x'); END LOOP; END"
            ),
            one,
        ),
    ];
    for (parameters, body, expected) in cases {
        assert_eq!(home(parameters, &body), expected, "{body}");
    }
}

#[test]
fn argument_that_is_assigned_places_nothing() {
    for assignment in [
        "p := 2;",
        "SELECT 1 INTO p;",
        "FOR p IN SELECT 1 LOOP END LOOP;",
        "FOREACH p IN ARRAY q LOOP END LOOP;",
        "GET DIAGNOSTICS p = ROW_COUNT;",
        "CALL other(p);",
        "UPDATE rate SET value = 1 WHERE currency = 'y' RETURNING value INTO p;",
    ] {
        let routines = format!(
            "CREATE PROCEDURE other(INOUT p integer) LANGUAGE plpgsql AS $$ BEGIN p := p + 1; END $$;
             CREATE PROCEDURE f(p integer, q integer[]) LANGUAGE plpgsql AS $$ BEGIN
                 {UPDATE} p; IF p > 7 THEN {assignment} END IF; END $$"
        );
        let class = lines(&database(&routines), "f")[1].clone();
        let expected = "class: crossing; line 2 changes \"account\" by p, which no argument gives";
        assert_eq!(class, expected, "{assignment}");
    }
    // One of the same name within is another.
    let hidden = home("p integer", &format!("BEGIN {UPDATE} p; FOR p IN 1..2 LOOP NULL; END LOOP; END"));
    assert!(hidden.starts_with("partition of p"), "{hidden}");
    let shadow = home("p integer", &format!("DECLARE q integer := p; BEGIN q := q + 1; {UPDATE} q; END"));
    assert!(shadow.starts_with("crossing"), "{shadow}");
}

#[test]
fn routine_that_touches_no_partitioned_table_runs_anywhere() {
    let why = "it touches no partitioned table and writes no shared one";
    assert_eq!(home("", "BEGIN PERFORM value FROM rate; END"), format!("any partition; {why}"));
    assert_eq!(home("p integer", "BEGIN p := p + 1; END"), "any partition; it touches no table");
}

#[test]
fn routine_with_several_keys_is_tried_where_most_accesses_lie() {
    let by = |of: &str, what: &str| {
        format!("probably partition of {of}; {what} accesses to partitioned tables are by it, but ")
    };
    let cases = [
        // The first of as many.
        (format!("BEGIN {UPDATE} p; {UPDATE} q; END"), by("p", "1 of 2") + "line 1 changes \"account\" by q"),
        (
            format!("BEGIN {UPDATE} p; {UPDATE} q; {UPDATE} q; END"),
            by("q", "2 of 3") + "line 1 changes \"account\" by p",
        ),
        // What is behind a condition counts less.
        (
            format!("BEGIN IF p > 5 THEN {UPDATE} q; {UPDATE} q; END IF; {UPDATE} p; END"),
            by("p", "1 of 3") + "line 1 changes \"account\" by q",
        ),
        (
            format!("BEGIN {UPDATE} p; {UPDATE} p + q; END"),
            by("p", "1 of 2") + "line 1 changes \"account\" by an expression",
        ),
        (
            format!("BEGIN {UPDATE} p; IF q > 5 THEN PERFORM 1 FROM account WHERE cents = 0; END IF; END"),
            by("p", "1 of 2") + "line 1 reads \"account\" in all partitions",
        ),
        (
            format!("BEGIN {UPDATE} p; UPDATE account SET id = q WHERE id = p; END"),
            by("p", "2 of 3") + "line 1 moves rows of \"account\" by q",
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(home("p integer, q integer", &body), expected, "{body}");
    }
    let log =
        format!("BEGIN {UPDATE} p; EXCEPTION WHEN OTHERS THEN INSERT INTO rate VALUES (SQLSTATE, 0); END");
    let expected = "probably partition of p; the one access to a partitioned table is by it, \
                    but line 1 inserts into \"rate\", which all share";
    assert_eq!(home("p integer", &log), expected);
}

#[test]
fn routine_that_surely_leaves_its_partition_is_crossing() {
    let cases = [
        (
            "BEGIN UPDATE rate SET value = 1 WHERE currency = 'x'; END",
            "line 1 changes \"rate\", which all partitions share",
        ),
        (
            "BEGIN UPDATE account SET cents = 0 WHERE id = p; UPDATE account SET cents = 0; END",
            "line 1 changes \"account\" in all partitions: nothing says in which",
        ),
        (
            "DECLARE n integer := p + 1;
             BEGIN DELETE FROM account WHERE id = n; END",
            "line 2 changes \"account\" by n, which no argument gives",
        ),
        (
            "BEGIN INSERT INTO entry SELECT value, 1 FROM rate; END",
            "line 1 inserts into \"entry\" by value, which no argument gives",
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(home("p integer", body), format!("crossing; {expected}"), "{body}");
    }
}

#[test]
fn called_routine_reaches_by_what_it_is_given() {
    let mut routines = format!(
        "CREATE FUNCTION note(p text, q integer) RETURNS text LANGUAGE sql AS 'SELECT note FROM account WHERE id = q';
         CREATE FUNCTION even(n integer, a integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
             RETURN n = 0 OR odd(n - 1, a); END $$;
         CREATE FUNCTION odd(n integer, a integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
             {UPDATE} a; RETURN n <> 0 AND even(n - 1, a); END $$;
         CREATE FUNCTION down(n integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN
             {UPDATE} n; RETURN down(n - 1); END $$;
         CREATE FUNCTION fact(n integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN
             RETURN CASE WHEN n > 1 THEN n * fact(n - 1) ELSE 1 END; END $$;"
    );
    let cases = [
        ("a", "x text := note('x', p);", "partition of p; the one access"),
        (
            "b",
            "x text := note(note('y', 3), p);",
            "probably partition of p; 1 of 2 accesses to partitioned tables are by it, but line 1 of note(text, integer) reads \"account\" by 3",
        ),
        ("c", "x text := (SELECT note(said, line) FROM entry WHERE account = p);", "probably partition of p"),
        ("d", "x text := (SELECT r FROM note('x', p) r);", "partition of p"),
        ("e", "x boolean := even(p, 7);", "partition of 7"),
        ("f", "x boolean := odd(7, p);", "partition of p"),
        ("g", "x integer := down(p);", "probably partition of p"),
        ("h", "x integer := fact(p);", "any partition; it touches no table"),
    ];
    for (name, declaration, _) in cases {
        routines += &format!(
            "CREATE PROCEDURE {name}(p integer) LANGUAGE plpgsql AS $$ DECLARE {declaration} BEGIN NULL; END $$;"
        );
    }
    let database = database(&routines);
    for (name, declaration, expected) in cases {
        let line = lines(&database, name)[1].clone();
        assert!(line.starts_with(&format!("class: {expected}")), "{declaration}: {line}");
    }
    let down = lines(&database, "g")[1].clone();
    assert!(down.ends_with("but line 2 of down(integer) changes \"account\" by n"), "{down}");
}

#[test]
fn routines_that_all_call_each_other_are_classified_at_once() {
    let mut routines = String::new();
    for n in 0..24 {
        let calls: String = (0..24).map(|m| format!("CALL r{m}(p, q + {m}, {m});")).collect();
        routines += &format!(
            "CREATE PROCEDURE r{n}(p integer, q integer, r integer) LANGUAGE plpgsql AS $$ BEGIN
                 {UPDATE} p; {UPDATE} r; {calls} END $$;"
        );
    }
    let database = database(&routines);
    assert!(lines(&database, "r0")[1].starts_with("class: probably partition of p"));
}

#[test]
fn destination_is_the_argument_as_the_column_has_it() {
    let place = |parameters: &str, body: &str, args: &[Value]| {
        let database = database(&procedure(parameters, body));
        let args: Vec<Datum> = args.iter().cloned().map(Datum::Value).collect();
        class_in(&database, "f").routing.destination(&args)
    };
    let body = format!("BEGIN {UPDATE} p; END");
    assert_eq!(place("q text, p smallint", &body, &["x".into(), 3_i16.into()]), Destination::Value(3.into()));
    assert_eq!(place("p bigint", &body, &[(1_i64 << 40).into()]), Destination::Any);
    assert_eq!(place("p integer", &body, &[Value::Null]), Destination::Any);
    assert_eq!(place("", "BEGIN PERFORM 1 FROM account WHERE id = 40 + 2; END", &[]), Destination::All);
    assert_eq!(
        place("", "BEGIN PERFORM 1 FROM account WHERE id = '-42'; END", &[]),
        Destination::Value((-42).into())
    );
    assert_eq!(place("", "BEGIN PERFORM 1 FROM rate; END", &[]), Destination::Any);
    let person = "BEGIN PERFORM 1 FROM person WHERE name = p; END";
    assert_eq!(place("p character", person, &["a ".into()]), Destination::Value("a".into()));
}

#[test]
fn one_value_in_columns_of_types_that_are_placed_differently_is_a_guess() {
    let mut database = database("CREATE TABLE budget (id numeric(10,0) PRIMARY KEY) PARTITION BY HASH (id)");
    database
        .run(&procedure("p integer", &format!("BEGIN {UPDATE} p; DELETE FROM budget WHERE id = p; END")))
        .unwrap();
    let class = class_in(&database, "f");
    assert!(matches!(&class.routing, RoutingClass::Probably { place, .. } if place.key == Key::Argument(0)));
    assert!(
        class.routing.why().ends_with("line 1 changes \"budget\" as another type"),
        "{:?}",
        class.routing
    );
}
