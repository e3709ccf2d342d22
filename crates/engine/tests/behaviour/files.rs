//! Files in FROM: as relations among others, and where they cannot stand.

use albireo::Database;
use albireo_env::MemoryDisk;

use crate::support::{ask, database_on, fails, rows_of, run, small, state};

fn people() -> Database {
    let disk = MemoryDisk::default();
    disk.put("/people.csv", b"id,zip,born,Pay\n1,01234,2001-02-03,1.5\n2,99999,,2\n3,01234,1999-12-31,\n");
    disk.put("/towns.jsonl", b"{\"zip\": \"01234\", \"town\": \"X\"}\n{\"zip\": \"5\", \"town\": \"Y\"}\n");
    let db = database_on(disk, small());
    run(
        &db,
        "CREATE TABLE visit (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO visit VALUES (1, 10), (3, 30)",
    );
    db
}

#[test]
fn file_stands_wherever_a_table_can() {
    let db = people();
    let cases = [
        ("SELECT p.id, n FROM '/people.csv' p JOIN visit USING (id) ORDER BY 1", "1,10 3,30"),
        ("SELECT people.id FROM '/people.csv' WHERE people.zip = '99999'", "2"),
        ("SELECT a, b FROM '/people.csv' AS t(a, b) WHERE \"Pay\" > 1.5", "2,99999"),
        (
            "SELECT town, count(id) FROM '/towns.jsonl' LEFT JOIN '/people.csv' USING (zip) GROUP BY town ORDER BY 1",
            "X,2 Y,0",
        ),
        (
            "SELECT x.id, y.id FROM '/people.csv' x, '/people.csv' y WHERE x.zip = y.zip AND x.id < y.id",
            "1,3",
        ),
        (
            "SELECT n FROM visit v WHERE EXISTS (SELECT FROM '/people.csv' p WHERE p.id = v.id AND born > DATE '2000-01-01')",
            "10",
        ),
        (
            "SELECT n, (SELECT zip FROM '/people.csv' p WHERE p.id = v.id) FROM visit v ORDER BY n",
            "10,01234 30,01234",
        ),
        (
            "SELECT id FROM visit WHERE id IN (SELECT id FROM '/people.csv' WHERE zip = '01234') ORDER BY id",
            "1 3",
        ),
        ("WITH p AS (SELECT * FROM '/people.csv') SELECT count(*) FROM p a, p b", "9"),
        ("SELECT id FROM visit UNION SELECT id FROM '/people.csv' ORDER BY id", "1 2 3"),
        (
            "SELECT v.id, z.zip FROM visit v, LATERAL (SELECT zip FROM '/people.csv' p WHERE p.id = v.id) z ORDER BY 1",
            "1,01234 3,01234",
        ),
        (
            "SELECT id, rank() OVER (PARTITION BY zip ORDER BY born) FROM '/people.csv' ORDER BY id",
            "1,2 2,1 3,1",
        ),
        (
            "SELECT upper(read_json.town) FROM read_json('/towns.jsonl', sample_size = -1) ORDER BY 1 LIMIT 1",
            "X",
        ),
        (
            "SELECT sum(length(c.zip)) FROM read_csv('/people.csv', delim => ',', all_varchar := true) AS c",
            "15",
        ),
        ("SELECT (p).id FROM '/people.csv' p ORDER BY id DESC LIMIT 1", "3"),
    ];
    for (sql, rows) in cases {
        assert_eq!(ask(&db, sql), rows, "{sql}");
    }
    run(&db, "INSERT INTO visit SELECT id, length(zip) FROM '/people.csv' WHERE id = 2");
    assert_eq!(ask(&db, "SELECT n FROM visit WHERE id = 2"), "5");
    let counted = db.query("SELECT count(*) FROM '/people.csv' WHERE id > $1", &[1.into()]).unwrap();
    assert_eq!(counted.value(0, 0).to_string(), "2");
}

#[test]
fn plan_of_a_file_reads_only_the_columns_that_are_named() {
    let db = people();
    let explained = |sql| rows_of(db.execute(sql).unwrap().pop().unwrap());
    let plan = explained("EXPLAIN SELECT id FROM '/people.csv' WHERE zip = '01234'");
    assert!(plan.contains("/people.csv") && plan.contains("projection=[id, zip]"), "{plan}");
    let measured = explained("EXPLAIN ANALYZE SELECT id FROM '/people.csv' WHERE zip = '01234'");
    assert!(measured.contains("rows: 2"), "{measured}");
}

#[test]
fn mistakes_about_a_file_have_a_position() {
    let db = people();
    // The parser does not say where a name in single quotes stands.
    let cases = [
        ("SELECT id FROM '/no.csv'", "58P01", None),
        ("SELECT id FROM read_csv('/people.csv', sped = 1)", "22023", Some(16)),
        ("SELECT id FROM read_csv('/no.csv')", "58P01", Some(16)),
        ("SELECT zipp FROM '/people.csv'", "42703", Some(8)),
        ("SELECT id FROM '/people.csv' p WHERE people.id = 1", "42P01", Some(38)),
        ("SELECT id FROM '/people.csv' WHERE id = 'x'", "22P02", None),
        ("SELECT id + zip FROM '/people.csv'", "42883", Some(8)),
        ("SELECT id FROM \"/people.csv\"", "42P01", Some(16)),
        ("COPY (SELECT id FROM read_csv('/no.csv')) TO '/x.csv'", "58P01", Some(22)),
        ("COPY (SELECT $1) TO '/x.csv'", "42P02", None),
    ];
    for (sql, code, position) in cases {
        let error = fails(&db, sql);
        assert_eq!((state(&error).as_str(), error.position()), (code, position), "{sql}: {error}");
    }
    let hint = |sql| fails(&db, sql).hint().unwrap_or_default().to_owned();
    assert_eq!(
        hint("SELECT zipp FROM '/people.csv'"),
        "Perhaps you meant to reference the column \"people.zip\"."
    );
    assert_eq!(hint("SELECT id FROM \"/people.csv\""), "Write a file's name in single quotes.");
}

#[test]
fn routine_cannot_read_a_file() {
    let db = people();
    let refused = |sql| {
        let error = fails(&db, sql);
        assert_eq!(state(&error), "0A000", "{sql}: {error}");
        assert!(error.hint().unwrap().contains("COPY"), "{sql}: {error}");
    };
    refused("CREATE FUNCTION e() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM '/people.csv' $$");
    // A body of PL/pgSQL that cannot run is told of when it is made, and fails when it is called.
    let bodies = [
        (
            "CREATE FUNCTION f() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN
             SELECT count(*) INTO n FROM read_csv('/people.csv', delim = ','); RETURN n; END $$",
            "SELECT f()",
        ),
        (
            "CREATE PROCEDURE g() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO visit SELECT id, 1 FROM '/people.csv'; END $$",
            "CALL g()",
        ),
    ];
    for (sql, call) in bodies {
        let told = db.execute(sql).unwrap();
        assert!(format!("{told:?}").contains("a file in FROM of a routine"), "{told:?}");
        refused(call);
    }
    run(&db, "CREATE FUNCTION twice(n bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT 2 * n $$");
    let error = fails(&db, "SELECT twice(id) FROM read_csv('/people.csv')");
    assert_eq!((state(&error).as_str(), error.position()), ("0A000", Some(23)), "{error}");
}
