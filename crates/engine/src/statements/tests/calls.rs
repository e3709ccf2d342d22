//! CALL and queries that call routines, with parameters.

use std::sync::Arc;

use albireo_base::{Decimal, Value};

use super::{database, kept, shown};
use crate::{Database, Outcome};

const ROUTINES: &str = "
CREATE PROCEDURE put(a INTEGER, b BIGINT, t TEXT, list INTEGER[], n NUMERIC, d DATE, INOUT told TEXT)
LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE 'put %', a;
    INSERT INTO q VALUES (a, b, n, t);
    told := concat_ws(' ', told, a, b, t, list[1], array_length(list, 1), n, d);
END $$;
CREATE PROCEDURE add(id_of INTEGER, extra NUMERIC DEFAULT 1) LANGUAGE plpgsql AS $$
BEGIN UPDATE p SET n = n + extra WHERE id = id_of; END $$;
CREATE FUNCTION kind(x INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RETURN 'integer'; END $$;
CREATE FUNCTION kind(x TEXT) RETURNS TEXT LANGUAGE plpgsql AS $$ BEGIN RETURN 'text'; END $$;
CREATE FUNCTION numbers(list INTEGER[]) RETURNS SETOF INTEGER LANGUAGE plpgsql AS $$
BEGIN FOR at IN 1 .. array_length(list, 1) LOOP RETURN NEXT list[at]; END LOOP; END $$;
CREATE FUNCTION of_key(key_of INTEGER) RETURNS VARCHAR LANGUAGE plpgsql AS $$
DECLARE found_s VARCHAR; BEGIN SELECT s INTO found_s FROM p WHERE id = key_of; RETURN found_s; END $$";

fn with_routines(partitions: u16) -> Database {
    let db = database(partitions);
    db.execute(ROUTINES).unwrap();
    db
}

/// What a statement with parameters gives, or the error's code.
fn gives(db: &Database, sql: &str, values: &[Value]) -> String {
    shown(db.execute_with(sql, values))
}

#[test]
fn call_with_parameters_is_bound_once_and_does_what_literals_do() {
    for partitions in [1, 3] {
        let (db, other) = (with_routines(partitions), with_routines(partitions));
        let sql = "CALL put($1, $2, $3, $4, $5, $6, $7)";
        let put = |n: i32| {
            let number = Value::Decimal(Decimal { unscaled: 1250 + i128::from(n), scale: 3 });
            let list = Value::from("{7,8}");
            [n.into(), 5.into(), "x'y".into(), list, number, "2024-02-29".into(), "told".into()]
        };
        let first = gives(&db, sql, &put(100));
        assert_eq!(first, "told text\ntold 100 5 x'y 7 2 1.350 2024-02-29");
        let entry = kept(&db, sql, &put(100)).unwrap();
        assert!(entry.live(partitions).unwrap().callee.is_some());
        for n in 101..104 {
            let literal = format!("CALL put({n}, 5, 'x''y', '{{7,8}}', 1.{}, '2024-02-29', 'told')", 250 + n);
            assert_eq!(gives(&db, sql, &put(n)), gives(&other, &literal, &[]));
        }
        assert!(Arc::ptr_eq(&entry, &kept(&db, sql, &put(104)).unwrap()));
        gives(&other, "CALL put(100, 5, 'x''y', '{7,8}', 1.350, '2024-02-29', 'told')", &[]);
        let rows = "SELECT * FROM q ORDER BY id, line";
        assert_eq!(gives(&db, rows, &[]), gives(&other, rows, &[]));
        // NULL serves in the place of any value, and jit = off changes nothing.
        let null = [105.into(), 5.into(), Value::Null, Value::Null, 2.into(), Value::Null, Value::Null];
        let connection = db.connect();
        connection.execute("SET jit = off").unwrap();
        assert_eq!(shown(connection.execute_with(sql, &null)), "told text\n105 5 2");
        let Outcome::Done { tag, notices, .. } = db.execute_with("CALL add($1)", &[1.into()]).unwrap() else {
            panic!()
        };
        assert_eq!((&*tag, notices.len()), ("CALL", 0));
        assert_eq!(gives(&db, "SELECT n FROM p WHERE id = 1", &[]), "n numeric\n2.25");
    }
}

#[test]
fn arguments_may_be_expressions_and_queries() {
    for partitions in [1, 3] {
        let db = with_routines(partitions);
        let of = |id: i32| gives(&db, "SELECT n FROM p WHERE id = $1", &[id.into()]);
        for _ in 0..2 {
            gives(&db, "CALL add($1 - 1, $2 * 2)", &[3.into(), 5.into()]);
        }
        assert_eq!(of(2), "n numeric\n18.00");
        for _ in 0..2 {
            gives(&db, "CALL add($1, (SELECT max(amount) FROM q WHERE id = $1))", &[1.into()]);
        }
        assert_eq!(of(1), "n numeric\n5.51");
        gives(&db, "CALL add(extra => $1, id_of => $2)", &["0.5".into(), "1".into()]);
        assert_eq!(of(1), "n numeric\n6.01");
    }
}

#[test]
fn which_routine_is_meant_depends_on_the_values_not_on_what_was_called_before() {
    let db = with_routines(1);
    let ask = |value: Value| gives(&db, "SELECT kind($1)", &[value]);
    for _ in 0..2 {
        assert_eq!(ask(7.into()), "kind text\ninteger");
        assert_eq!(ask("7".into()), "kind text\ntext");
        assert_eq!(ask(Value::Null), "kind text\ntext");
        assert_eq!(ask(Value::SmallInt(7)), "kind text\ninteger");
    }
    assert_eq!(gives(&db, "SELECT * FROM numbers($1)", &["{3,4}".into()]), "numbers integer\n3\n4");
    assert_eq!(
        gives(&db, "SELECT of_key($1), $1 + 1 AS next", &[1.into()]),
        "of_key text | next integer\none | 2"
    );
    assert_eq!(
        gives(&db, "SELECT id, of_key(id) FROM p WHERE id = $1", &[2.into()]),
        "id integer | of_key text\n2 | two"
    );
}

#[test]
fn mistakes_in_calls_are_told_as_for_literals() {
    let db = with_routines(1);
    let cases: [(&str, &[Value], &str); 8] = [
        ("CALL add($1)", &[], "42P02"),
        ("CALL add($1)", &[1.into(), 2.into()], "42P02"),
        ("CALL add($1)", &[true.into()], "42883"),
        ("CALL add($1)", &[1.5.into()], "42883"),
        ("CALL add($1)", &["x".into()], "22P02"),
        ("CALL missing($1)", &[1.into()], "42883"),
        ("CALL kind($1)", &[1.into()], "42809"),
        ("SELECT of_key($1)", &[1.into(), 2.into()], "42P02"),
    ];
    for _ in 0..2 {
        for (sql, values, state) in cases {
            assert_eq!(gives(&db, sql, values), format!("error {state}"), "{sql} {values:?}");
        }
    }
    let connection = db.connect();
    gives(&db, "CALL add($1)", &[1.into()]);
    connection.execute("BEGIN READ ONLY").unwrap();
    assert_eq!(shown(connection.execute_with("CALL add($1)", &[1.into()])), "error 25006");
    connection.execute("ROLLBACK").unwrap();
    connection.execute("BEGIN READ ONLY").unwrap();
    gives(&db, "SELECT of_key($1)", &[1.into()]);
    assert_eq!(shown(connection.execute_with("SELECT of_key($1)", &[1.into()])), "error 25006");
}
