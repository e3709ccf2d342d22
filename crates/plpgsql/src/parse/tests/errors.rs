//! What is no PL/pgSQL, with PostgreSQL's words; and what we refuse.

use super::parse;

/// The error of a body: SQLSTATE, position, message.
#[track_caller]
fn error(body: &str) -> albireo_base::SqlError {
    match parse(body) {
        Ok(_) => panic!("{body} is read"),
        Err(error) => error,
    }
}

/// Cases of PostgreSQL 15, which gives the same SQLSTATE, message and position; a position that it leaves
/// out is ours.
#[test]
fn mistake_is_reported_as_postgresql_does() {
    let cases = include_str!("mistakes.txt").split("\n----\n").filter(|case| !case.trim().is_empty());
    let mut count = 0;
    for case in cases {
        let (body, expected) = case.trim_end().rsplit_once("\n=> ").unwrap_or_else(|| panic!("{case}"));
        let body = body.trim_start_matches('\n');
        let error = error(body);
        let position = error.position().map_or("-".to_owned(), |position| position.to_string());
        assert_eq!(format!("{} {position} {}", error.state(), error.message()), expected, "{body}");
        count += 1;
    }
    assert!(count > 50, "only {count} cases");
}

#[track_caller]
fn assert_refused(body: &str, at: &str, message: &str, remedy: &str) {
    let error = error(body);
    assert_eq!(error.state().to_string(), "0A000", "{body}: {error}");
    assert_eq!(error.message(), format!("{message} is not supported"), "{body}");
    let position = body.find(at).map(|byte| body[..byte].chars().count() + 1);
    assert_eq!(error.position(), position, "{body}");
    assert!(error.detail().is_some_and(|detail| detail.ends_with('.')), "{body}: {error}");
    assert!(error.hint().is_some_and(|hint| hint.contains(remedy)), "{body}: {error}");
}

#[test]
fn dynamic_sql_is_refused_with_position_reason_and_remedy() {
    assert_refused("begin null; execute 'x'; end", "execute", "dynamic SQL (EXECUTE)", "IF or CASE");
    assert_refused("begin return query execute 'x'; end", "execute", "dynamic SQL (EXECUTE)", "IF or CASE");
    assert_refused(
        "begin for r in execute 'ä' loop end loop; end",
        "execute",
        "dynamic SQL (EXECUTE)",
        "IF or",
    );
}

#[test]
fn cursors_are_refused_with_position_reason_and_remedy() {
    for (body, at) in [
        ("declare c cursor for select 1; begin end", "cursor"),
        ("declare \"ä\" cursor (a int) for select 1; begin end", "cursor"),
        ("declare c no scroll cursor is select 1; begin end", "no scroll"),
        ("declare c scroll cursor for select 1; begin end", "scroll"),
        ("declare c refcursor; begin end", "refcursor"),
        ("begin open c; end", "open"),
        ("begin fetch c into x; end", "fetch"),
        ("begin move c; end", "move"),
        ("begin close c; end", "close"),
        ("begin for r in c loop end loop; end", "c loop"),
        ("begin for r in c(1) loop end loop; end", "c(1)"),
    ] {
        assert_refused(body, at, "a cursor", "FOR row IN SELECT");
    }
}

#[test]
fn transaction_control_is_refused_with_position_reason_and_remedy() {
    for (word, remedy) in [
        ("COMMIT", "once for each transaction"),
        ("ROLLBACK", "RAISE EXCEPTION"),
        ("SAVEPOINT", "EXCEPTION"),
        ("RELEASE", "EXCEPTION"),
        ("START", "Leave it out"),
        ("ABORT", "Leave it out"),
    ] {
        let body = format!("begin\n null; {word} x; end");
        assert_refused(&body, word, &format!("{word} inside a procedure"), remedy);
    }
}

#[test]
fn other_statements_of_sql_are_refused_with_position_reason_and_remedy() {
    assert_refused("begin do 'x'; end", "do", "DO inside a procedure", "nested block");
    for word in ["CREATE", "DROP", "TRUNCATE", "SHOW", "COPY", "EXPLAIN", "LOCK"] {
        let body = format!("begin {word} x; end");
        assert_refused(&body, word, &format!("{word} inside a procedure"), "separate statement");
    }
}

#[test]
fn settings_of_a_connection_are_refused_with_position_reason_and_remedy() {
    assert_refused("begin SET x = 1; end", "SET", "SET x inside a procedure", "separate statement");
    assert_refused("begin set local x to 1; end", "set", "SET LOCAL x inside a procedure", "a separate");
    let what = "SET synchronous_commit inside a procedure";
    assert_refused("begin set synchronous_commit = on; end", "set", what, "SET LOCAL");
}

#[test]
fn what_we_lack_of_the_language_is_refused_with_position_reason_and_remedy() {
    assert_refused("declare x text collate \"C\"; begin end", "collate", "COLLATE in a declaration", "out");
    let what = "an array of several dimensions";
    assert_refused("declare x int[][]; begin end", "[]; b", what, "one index");
    assert_refused("declare x int array[1][2]; begin end", "[2]", what, "one index");
    assert_refused("begin x[1][2] := 3; end", "[2]", what, "one index");
    assert_refused("begin x[1:2] := 3; end", ":2", "assignment to a slice of an array", "loop");
    assert_refused(
        "begin foreach x slice 1 in array y loop end loop; end",
        "slice",
        "SLICE in FOREACH",
        "out",
    );
    assert_refused(
        "begin get diagnostics x = pg_context; end",
        "pg_context",
        "PG_CONTEXT in GET DIAGNOSTICS",
        "ROW_COUNT",
    );
    assert_refused(
        "begin get stacked diagnostics x = message_text, y = column_name; end",
        "column_name",
        "COLUMN_NAME in GET DIAGNOSTICS",
        "MESSAGE_TEXT",
    );
    let error = error("declare x record[]; begin end");
    assert_eq!(error.message(), "variable \"x\" has pseudo-type record[]");
    assert_eq!((error.state().to_string().as_str(), error.position()), ("0A000", Some(11)));
}

#[test]
fn word_that_is_almost_right_is_suggested() {
    for (body, hint) in [
        ("begin retrun 1; end", "Perhaps you meant RETURN."),
        ("begin slect 1; end", "Perhaps you meant SELECT."),
        ("begin if a then elseif; elif b then end if; end", ""),
        (
            "begin null; exception when uniqe_violation then end",
            "Perhaps you meant the condition \"unique_violation\".",
        ),
        ("begin raise divide_by_zero; end", "Write SQLSTATE 'xxxxx' for an error that has no name."),
        ("begin raise division_by_zer; end", "Perhaps you meant the condition \"division_by_zero\"."),
        ("begin raise using errcod = 1; end", "Perhaps you meant ERRCODE."),
        ("begin get diagnostics x = rowcount; end", "Perhaps you meant ROW_COUNT."),
        (
            "begin <<outer_loop>> loop exit outer_lop; end loop; end",
            "Perhaps you meant the label \"outer_loop\".",
        ),
        ("declare x t%rowtyp; begin end", "Perhaps you meant ROWTYPE."),
        ("begin raise '%'; end", "Write %% for a percent sign."),
        ("begin if case when a then b end then end if; end", "Put the CASE expression into parentheses."),
        ("begin select 1 into x[1]; end", "Read into a variable, and assign that to the element."),
        (
            "begin select (select 1 into x); end",
            "INTO stands outside of the parentheses, in the statement itself.",
        ),
        ("begin call p; end", "A procedure's name is followed by its arguments or by ()."),
        ("#variable_conflict off begin end", "It may be error, use_variable or use_column."),
        ("begin raise sqlstate '22'; end", "It has five characters, each a digit or a capital letter."),
    ] {
        assert_eq!(error(body).hint().unwrap_or_default(), hint, "{body}");
    }
}

/// PostgreSQL finds these when the statement runs, or never.
#[test]
fn mistake_that_could_only_fail_when_it_runs_is_reported_at_once() {
    for (body, position, message) in [
        ("begin x := ; end", 12, "missing expression at or near \";\""),
        ("begin x := 1, 2; end", 13, "syntax error at or near \",\""),
        ("begin x := a, b from t; end", 0, ""),
        ("begin x := (select 1 into y); end", 22, "syntax error at or near \"into\""),
        ("begin perform 1 into y; end", 17, "syntax error at or near \"into\""),
        ("begin return query select 1 into y; end", 29, "syntax error at or near \"into\""),
        ("begin raise using hint = 1, hint = 2; end", 29, "RAISE option already specified: HINT"),
        ("begin raise 'a' using message = 'b'; end", 23, "RAISE option already specified: MESSAGE"),
        (
            "begin raise sqlstate '22012' using errcode = 'b'; end",
            36,
            "RAISE option already specified: ERRCODE",
        ),
        ("begin perform; end", 14, "missing expression at or near \";\""),
        ("declare x int := 1, y int; begin end", 19, "syntax error at or near \",\""),
    ] {
        let error = error(body);
        assert_eq!(error.state().to_string(), "42601", "{body}: {error}");
        if position > 0 {
            assert_eq!((error.position(), error.message()), (Some(position), message), "{body}");
        }
    }
}

#[test]
fn name_that_is_too_long_or_empty_is_an_error() {
    let long = "x".repeat(64);
    let error = error(&format!("begin {long} := 1; end"));
    assert_eq!((error.state().to_string().as_str(), error.position()), ("42622", Some(7)));
    assert!(parse(&format!("begin {} := 1; end", &long[1..])).is_ok());
    let error = self::error("begin \"\" := 1; end");
    assert_eq!(error.message(), "zero-length delimited identifier at or near \"\"\"\"");
}
