//! What routines never do.

use super::{class_in, database, procedure};
use crate::classify::Verdict;

const UPDATE: &str = "UPDATE account SET note = q WHERE id = p";

fn shown(verdict: &Verdict) -> String {
    format!("{}, {}", if verdict.holds { "yes" } else { "no" }, verdict.why)
}

/// One of the verdicts on a procedure of this body.
fn verdict(body: &str, which: fn(&crate::classify::Class) -> &Verdict) -> String {
    let routines = format!(
        "CREATE FUNCTION pure(n integer) RETURNS integer LANGUAGE sql AS 'SELECT n + 1';
         CREATE FUNCTION reader(n integer) RETURNS text LANGUAGE sql AS 'SELECT note FROM account WHERE id = n';
         CREATE PROCEDURE writer(n integer) LANGUAGE sql AS 'DELETE FROM account WHERE id = n';
         {}",
        procedure("p integer, q text", body)
    );
    shown(which(&class_in(&database(&routines), "f")))
}

#[test]
fn routine_is_read_only_if_nothing_that_it_reaches_writes() {
    let cases = [
        ("BEGIN PERFORM reader(p); PERFORM 1 FROM rate; END", "yes, it writes nothing"),
        (
            "BEGIN IF p > 0 THEN DELETE FROM account WHERE id = p; END IF; END",
            "no, line 1 changes \"account\"",
        ),
        ("BEGIN CALL writer(p); END", "no, line 1 of writer(integer) changes \"account\""),
        ("BEGIN INSERT INTO entry VALUES (p); END", "no, line 1 inserts into \"entry\""),
    ];
    for (body, expected) in cases {
        assert_eq!(verdict(body, |class| &class.read_only), expected, "{body}");
    }
}

#[test]
fn routine_is_one_shot_if_no_statement_needs_what_another_found() {
    let independent = [
        "BEGIN PERFORM 1 FROM account WHERE id = p; DELETE FROM entry WHERE account = p + pure(1); END",
        "DECLARE n integer; m integer; BEGIN
             SELECT count(*) INTO n FROM account WHERE id = p; SELECT count(*) INTO m FROM entry WHERE account = p;
             IF n > m THEN RAISE EXCEPTION 'too many: %', n; END IF; END",
        "DECLARE n integer := 0; BEGIN FOR i IN 1 .. p LOOP
             INSERT INTO entry VALUES (i, n); n := n + 1; EXIT WHEN n > 5; END LOOP; END",
        "DECLARE i integer; BEGIN FOR i IN SELECT * FROM generate_series(1, p) LOOP DELETE FROM account WHERE id = i; END LOOP; END",
        "DECLARE n integer; BEGIN IF q = 'x' THEN SELECT 1 INTO n FROM rate; END IF; END",
    ];
    for body in independent {
        let expected = "yes, no statement needs what another one finds";
        assert_eq!(verdict(body, |class| &class.one_shot), expected, "{body}");
    }
}

#[test]
fn routine_is_not_one_shot_if_a_statement_needs_what_another_found() {
    let dependent = [
        (
            "DECLARE n integer; BEGIN SELECT 1 INTO n FROM rate;
             DELETE FROM account WHERE id = n; END",
            "line 2 needs n, which line 1 found",
        ),
        (
            "DECLARE n integer; m integer; BEGIN SELECT 1 INTO n FROM rate; m := p; m := m * n;
             DELETE FROM account WHERE id = m; END",
            "line 2 needs m, which line 1 found",
        ),
        (
            "BEGIN DELETE FROM account WHERE id = p;
             IF NOT FOUND THEN INSERT INTO account VALUES (p); END IF; END",
            "what line 1 finds decides whether line 2 runs",
        ),
        (
            "BEGIN PERFORM 1 FROM account WHERE id = p; IF FOUND THEN RETURN; END IF;
             DELETE FROM account WHERE id = p; END",
            "what line 1 finds decides whether line 2 runs",
        ),
        (
            "DECLARE n integer; BEGIN LOOP
                 SELECT max(line) INTO n FROM entry WHERE account = p;
                 EXIT WHEN n > 5; END LOOP; END",
            "what line 2 finds decides whether line 2 runs",
        ),
        (
            "DECLARE n integer := 0; BEGIN FOR i IN 1..2 LOOP
                 UPDATE entry SET line = n WHERE account = p;
                 SELECT 5 INTO n FROM rate; END LOOP; END",
            "line 2 needs n, which line 3 found",
        ),
        (
            "BEGIN DELETE FROM account WHERE id = p; EXCEPTION WHEN OTHERS THEN
             DELETE FROM entry WHERE account = p; END",
            "what another statement finds decides whether line 2 runs",
        ),
        (
            "BEGIN IF (SELECT count(*) FROM rate) > 1 THEN
                 DELETE FROM account WHERE id = p; END IF; END",
            "what line 1 finds decides whether line 2 runs",
        ),
        ("BEGIN PERFORM reader(p); END", "line 1 calls a routine that touches tables"),
        ("BEGIN CALL writer(p); END", "it calls a procedure that touches tables"),
        (
            "BEGIN PERFORM 1 FROM account a JOIN entry e ON e.account = a.cents WHERE a.id = p; END",
            "in line 1 rows of another table say where \"entry\" is",
        ),
    ];
    for (body, expected) in dependent {
        assert_eq!(verdict(body, |class| &class.one_shot), format!("no, {expected}"), "{body}");
    }
}

#[test]
fn routine_is_two_phase_if_nothing_can_fail_behind_its_first_write() {
    let good = [
        "BEGIN {U}; END",
        "BEGIN IF p / 2 > 5 THEN RAISE EXCEPTION 'no'; END IF; PERFORM reader(p); {U}; {U}; END",
        "BEGIN INSERT INTO account VALUES (p, p * 2, q); END",
        "BEGIN DELETE FROM account WHERE cents < 5 AND id = p; DELETE FROM entry WHERE account = p; END",
        "DECLARE n text; BEGIN {U} RETURNING note INTO n; IF FOUND AND (n = q) IS NULL THEN NULL; END IF; END",
        "BEGIN FOR i IN 1..3 LOOP {U}; END LOOP; RAISE NOTICE 'done %', p; RETURN; END",
        "BEGIN {U}; IF EXISTS (SELECT FROM entry WHERE account = p) THEN {U}; END IF; END",
        "BEGIN BEGIN PERFORM 1 / p; EXCEPTION WHEN OTHERS THEN NULL; END; {U}; END",
    ];
    for body in good {
        let found = verdict(&body.replace("{U}", UPDATE), |class| &class.two_phase);
        assert!(found.starts_with("yes, nothing after "), "{body}: {found}");
    }
    assert_eq!(verdict("BEGIN p := 1 / p; END", |class| &class.two_phase), "yes, it changes nothing");
}

#[test]
fn routine_is_not_two_phase_if_something_may_fail_behind_a_write() {
    let after = [
        ("BEGIN {U}; p := p + 1; END", "an operator"),
        (
            "BEGIN {U}; INSERT INTO entry VALUES (p, 1); END",
            "INSERT into \"entry\" in line 1, by a duplicate key,",
        ),
        ("BEGIN {U}; ASSERT FOUND; END", "ASSERT"),
        ("BEGIN {U}; RAISE EXCEPTION 'x'; END", "RAISE"),
        ("BEGIN {U}; IF NOT FOUND THEN RAISE EXCEPTION 'x'; END IF; END", "RAISE"),
        ("DECLARE n text; BEGIN {U} RETURNING note INTO STRICT n; END", "INTO STRICT"),
        ("DECLARE n varchar(3); BEGIN {U} RETURNING note INTO n; END", "a cast"),
        ("DECLARE n text NOT NULL := ''; BEGIN {U}; n := q; END", "an assignment to n, which is NOT NULL,"),
        ("BEGIN {U} RETURNING 1 / p INTO p; END", "an operator in RETURNING"),
        ("BEGIN FOR i IN 1..2 LOOP PERFORM 1 / i; {U}; END LOOP; END", "an operator"),
        (
            "BEGIN FOR i IN 1..2 LOOP {U}; END LOOP; FOR i IN 1..p LOOP NULL; END LOOP; END",
            "a bound of FOR, which may be NULL,",
        ),
        ("BEGIN {U}; PERFORM reader(p); END", "a call"),
        ("BEGIN {U}; CASE WHEN q = 'x' THEN NULL; END CASE; END", "CASE without ELSE"),
        ("BEGIN {U}; PERFORM sum(line) FROM entry WHERE account = p; END", "an aggregate"),
    ];
    for (body, what) in after {
        let expected = format!("no, {what} may fail after UPDATE of \"account\" in line 1");
        assert_eq!(verdict(&body.replace("{U}", UPDATE), |class| &class.two_phase), expected, "{body}");
    }
    let other = [
        (
            "BEGIN {U}; EXCEPTION WHEN OTHERS THEN NULL; END",
            "EXCEPTION takes back what UPDATE of \"account\" in line 1 does",
        ),
        ("BEGIN CALL writer(p); END", "it calls a procedure that writes"),
        (
            "BEGIN INSERT INTO account VALUES (p), (p + 1); END",
            "what it did is taken back where it reaches another partition",
        ),
        (
            "BEGIN INSERT INTO entry VALUES (p, 1), (p, 1); END",
            "INSERT into \"entry\" in line 1 may fail at a later row, by a duplicate key",
        ),
        (
            "BEGIN UPDATE entry SET line = 1 WHERE account = p; END",
            "UPDATE of \"entry\" in line 1 may fail at a later row, by a duplicate key",
        ),
    ];
    for (body, expected) in other {
        let found = verdict(&body.replace("{U}", UPDATE), |class| &class.two_phase);
        assert_eq!(found, format!("no, {expected}"), "{body}");
    }
}

#[test]
fn function_that_may_reach_its_end_without_return_is_not_two_phase() {
    let database = database(
        "CREATE FUNCTION a(p integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN
             DELETE FROM account WHERE id = p; IF p > 5 THEN RETURN 1; END IF; END $$;
         CREATE FUNCTION b(p integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN
             DELETE FROM account WHERE id = p; IF p > 5 THEN RETURN 1; END IF; RETURN 2; END $$",
    );
    let expected = "no, the end without RETURN may fail after DELETE from \"account\" in line 2";
    assert_eq!(shown(&class_in(&database, "a").two_phase), expected);
    assert!(class_in(&database, "b").two_phase.holds);
}

#[test]
fn routine_is_sterile_if_it_commutes_with_all_others() {
    let database = database(
        "CREATE PROCEDURE a(p integer) LANGUAGE sql AS 'SELECT 1 FROM account WHERE id = p';
         CREATE PROCEDURE b(p integer) LANGUAGE sql AS 'DELETE FROM account WHERE id = p';
         CREATE PROCEDURE c() LANGUAGE sql AS 'SELECT value FROM rate';
         CREATE PROCEDURE d() LANGUAGE sql AS 'SELECT 1'",
    );
    let classes = ["a", "b", "c", "d"].map(|name| (name, class_in(&database, name)));
    let all = || classes.iter().map(|(name, class)| (*name, class));
    let sterile = |at: usize| shown(&classes[at].1.sterile(all()));
    assert_eq!(sterile(0), "no, b writes \"account\"");
    assert_eq!(sterile(1), "no, it writes \"account\", which a reads");
    assert_eq!(sterile(2), "yes, no stored routine writes what it touches, nor touches what it writes");
    assert_eq!(sterile(3), "yes, it touches no table");
    // Two runs of one that writes do not commute.
    assert_eq!(shown(&classes[1].1.sterile([("b", &classes[1].1)].into_iter())), "no, b writes \"account\"");
}
