//! Whether routines do the same again on rows that lie elsewhere.

use super::{class_in, database, procedure};

/// `account` has a unique id, `entry` is ordered by account and line, `person` by name; `note` is no key.
fn verdict(body: &str) -> String {
    let routines = format!(
        "CREATE TABLE money (id integer PRIMARY KEY, tag integer UNIQUE, amount double precision);
         CREATE INDEX account_note ON account (note);
         CREATE FUNCTION first_note() RETURNS text LANGUAGE plpgsql AS $$ DECLARE t text; BEGIN
             SELECT note INTO t FROM account; RETURN t; END $$;
         CREATE FUNCTION numbers() RETURNS SETOF integer LANGUAGE sql AS 'SELECT id FROM account ORDER BY id';
         CREATE FUNCTION some_note() RETURNS text LANGUAGE sql AS 'SELECT note FROM account';
         CREATE FUNCTION notes() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT note FROM account; END $$;
         {}",
        procedure("p integer, q text", body)
    );
    let verdict = class_in(&database(&routines), "f").repeatable;
    format!("{}: {}", if verdict.holds { "yes" } else { "no" }, verdict.why)
}

#[test]
fn routine_is_repeatable_if_the_order_of_rows_decides_about_nothing() {
    let bodies = [
        "BEGIN UPDATE account SET cents = cents + 1 WHERE id = p; END",
        "DECLARE t text; BEGIN SELECT note INTO t FROM account WHERE id = p; DELETE FROM entry WHERE said = t; END",
        "DECLARE n bigint; BEGIN SELECT count(*), max(line), sum(line) INTO n FROM entry; DELETE FROM account; END",
        "DECLARE n numeric; BEGIN SELECT sum(cents) INTO n FROM account WHERE note = q; END",
        // In the order of a unique key, or sorted by one.
        "DECLARE r record; BEGIN FOR r IN SELECT * FROM entry WHERE account = p LOOP
             INSERT INTO entry VALUES (r.account + 1, r.line); END LOOP; END",
        "DECLARE r record; BEGIN FOR r IN SELECT * FROM account ORDER BY note, id LOOP
             INSERT INTO entry VALUES (r.id, 1); END LOOP; END",
        "DECLARE t text; BEGIN SELECT note INTO t FROM account WHERE note > q ORDER BY note, id LIMIT 1; END",
        "DECLARE t text; BEGIN SELECT note INTO t FROM account ORDER BY note LIMIT 1; END",
        "DECLARE n integer; BEGIN SELECT line INTO n FROM entry WHERE account = p ORDER BY line DESC LIMIT 1; END",
        // The index has the rest of the order.
        "DECLARE n integer; BEGIN SELECT line INTO n FROM entry ORDER BY account LIMIT 1; END",
        // Several rows are an error.
        "DECLARE t text; BEGIN SELECT note INTO STRICT t FROM account WHERE cents = 1; END",
        "BEGIN INSERT INTO entry SELECT id, 1, note FROM account WHERE note = q; END",
        "BEGIN INSERT INTO rate VALUES ('a', 1), ('b', 2) ON CONFLICT DO NOTHING; END",
        "BEGIN UPDATE entry SET said = note FROM account WHERE id = account; END",
        "BEGIN DELETE FROM account WHERE EXISTS (SELECT 1 FROM entry WHERE said = note); END",
        "DECLARE n integer; BEGIN FOR n IN SELECT line FROM entry GROUP BY line ORDER BY line LOOP
             INSERT INTO account VALUES (n); END LOOP; END",
        "DECLARE a integer[]; BEGIN a := ARRAY(SELECT line FROM entry ORDER BY line); END",
        "BEGIN FOR i IN REVERSE p .. 1 LOOP INSERT INTO account VALUES (i); END LOOP; END",
        "BEGIN RAISE EXCEPTION 'no'; END",
    ];
    for body in bodies {
        assert_eq!(verdict(body), "yes: the order in which rows lie decides about nothing", "{body}");
    }
}

#[test]
fn routine_is_not_repeatable_if_the_order_of_rows_may_decide() {
    let takes = "no: line 1 takes one of several rows in no certain order";
    let some = "no: line 1 takes some of several rows in no certain order";
    let cases = [
        ("DECLARE t text; BEGIN SELECT note INTO t FROM account WHERE note > q; END", takes),
        ("DECLARE n integer; BEGIN DELETE FROM entry WHERE said = q RETURNING line INTO n; END", takes),
        // Several rows have the first note.
        ("DECLARE n integer; BEGIN SELECT id INTO n FROM account ORDER BY note LIMIT 1; END", some),
        ("DECLARE n integer; BEGIN SELECT id INTO n FROM account ORDER BY cents, note LIMIT 1; END", some),
        ("BEGIN DELETE FROM account WHERE id IN (SELECT id FROM account LIMIT 5); END", some),
        // Several rows have no tag.
        ("DECLARE n integer; BEGIN SELECT id INTO n FROM money ORDER BY tag LIMIT 1; END", some),
        (
            "DECLARE r record; BEGIN FOR r IN SELECT * FROM account LOOP NULL; END LOOP; END",
            "no: line 1 goes through rows in no certain order",
        ),
        (
            "DECLARE n integer; BEGIN FOR n IN SELECT * FROM numbers() LOOP NULL; END LOOP; END",
            "no: line 1 goes through rows in no certain order",
        ),
        (
            "DECLARE n float; BEGIN SELECT sum(amount) INTO n FROM money; END",
            "no: line 1 computes sum of rows in no certain order",
        ),
        (
            "DECLARE t text; BEGIN SELECT string_agg(note, ',') INTO t FROM account; END",
            "no: line 1 computes stringagg of rows in no certain order",
        ),
        (
            "DECLARE a integer[]; BEGIN a := ARRAY(SELECT line FROM entry); END",
            "no: line 1 makes an array of rows in no certain order",
        ),
        (
            "BEGIN UPDATE account SET id = id + 1; END",
            "no: line 1 changes keys in no certain order, and may so find one taken or not",
        ),
        (
            "BEGIN UPDATE account SET note = said FROM entry WHERE note = said; END",
            "no: line 1 may find several rows for one that it changes, in no certain order",
        ),
        (
            "BEGIN INSERT INTO rate SELECT note, 1 FROM account ON CONFLICT (currency) DO UPDATE SET value = 2; END",
            "no: line 1 inserts rows in no certain order, which may be in each other's way",
        ),
        (
            "BEGIN DELETE FROM account WHERE EXISTS (SELECT 1 FROM entry WHERE 1 / line > 0); END",
            "no: line 1 looks for a row in no certain order, where an operator may fail",
        ),
        (
            "BEGIN INSERT INTO entry SELECT DISTINCT ON (note) id, 1 FROM account; END",
            "no: line 1 takes the first of several rows",
        ),
        (
            "BEGIN DELETE FROM account WHERE id = p; EXCEPTION WHEN OTHERS THEN NULL; END",
            "no: it handles errors, some of which come from the machine",
        ),
        (
            "BEGIN DELETE FROM account WHERE note = first_note(); END",
            "no: line 2 of first_note() takes one of several rows in no certain order",
        ),
        (
            "BEGIN DELETE FROM account WHERE note = some_note(); END",
            "no: line 1 of some_note() gives rows in no certain order",
        ),
        (
            "BEGIN DELETE FROM account WHERE note IN (SELECT * FROM notes()); END",
            "no: line 1 of notes() gives rows in no certain order",
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(verdict(body), expected, "{body}");
    }
}
