//! Bodies of routines: limits, records, notices, when mistakes are found.

mod memory;

use albireo_base::{SqlError, SqlState};

use memory::{Database, Outcome};

/// A database with a function `f` of this head and body.
fn with_function(head: &str, body: &str) -> Database {
    let mut database = Database::new(false);
    define(&mut database, head, body).unwrap();
    database
}

fn define(database: &mut Database, head: &str, body: &str) -> Result<Outcome, SqlError> {
    database.run(&format!("CREATE FUNCTION {head} LANGUAGE plpgsql AS $$ {body} $$"))
}

fn one(database: &mut Database, sql: &str) -> String {
    match database.run(sql).unwrap() {
        Outcome::Rows(_, rows) => rows[0][0].clone().unwrap_or_else(|| "NULL".to_owned()),
        other => panic!("{other:?}"),
    }
}

#[allow(clippy::disallowed_methods, reason = "the size of the stack is what is tested")]
fn on_small_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(test).unwrap().join().unwrap();
}

#[test]
fn recursion_without_end_is_an_error_before_a_stack_of_2_mib_ends() {
    on_small_stack(|| {
        let nested = |depth: usize, call: &str| {
            let open = "CASE WHEN n >= 0 THEN coalesce(1 + (".repeat(depth);
            format!("{open}{call}{}", "), 0) END".repeat(depth))
        };
        for body in [
            "RETURN f(n + 1);".to_owned(),
            format!("RETURN {};", nested(12, "f(n + 1)")),
            format!("{}RETURN f(n + 1);{}", "IF n >= 0 THEN ".repeat(90), " END IF;".repeat(90)),
            "BEGIN RETURN f(n + 1); EXCEPTION WHEN division_by_zero THEN RETURN 0; END;".to_owned(),
        ] {
            let mut database = with_function("f(n integer) RETURNS integer", &format!("BEGIN {body} END;"));
            let error = database.run("SELECT f(0)").unwrap_err();
            assert_eq!(error.state(), SqlState::STATEMENT_TOO_COMPLEX, "{body}: {error}");
        }
    });
}

#[test]
fn recursion_of_a_hundred_levels_is_no_error_on_a_stack_of_2_mib() {
    on_small_stack(|| {
        let body = "BEGIN IF n = 0 THEN RETURN 0; END IF; RETURN 1 + f(n - 1); END;";
        let mut database = with_function("f(n integer) RETURNS integer", body);
        assert_eq!(one(&mut database, "SELECT f(100)"), "100");
    });
}

#[test]
fn interrupt_ends_every_loop_and_no_handler_catches_it() {
    for body in [
        "LOOP NULL; END LOOP;",
        "WHILE true LOOP CONTINUE; END LOOP;",
        "FOR i IN 1..2147483647 LOOP NULL; END LOOP;",
    ] {
        let body = format!("BEGIN {body} EXCEPTION WHEN OTHERS OR query_canceled THEN NULL; END;");
        let mut database = with_function("f() RETURNS void", &body);
        database.interrupts.cancelled.set();
        assert_eq!(database.run("SELECT f()").unwrap_err().state(), SqlState::QUERY_CANCELED);
    }
}

#[test]
fn call_that_holds_too_much_memory_is_ended_and_no_handler_catches_it() {
    let body = "BEGIN LOOP RETURN NEXT 1; END LOOP; EXCEPTION WHEN OTHERS THEN NULL; END;";
    let mut database = with_function("f() RETURNS SETOF integer", body);
    database.limits.memory_bytes = 1 << 16;
    assert_eq!(database.run("SELECT * FROM f()").unwrap_err().state(), SqlState::OUT_OF_MEMORY);
    let body = "DECLARE a integer[] := '{1}'; BEGIN a[10000000] := 1; END;";
    database.run(&format!("CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ {body} $$")).unwrap();
    assert_eq!(database.run("CALL p()").unwrap_err().state(), SqlState::OUT_OF_MEMORY);
}

#[test]
fn record_takes_rows_of_different_queries_one_after_the_other() {
    let body = "DECLARE r record; s text := ''; BEGIN
                    FOR r IN SELECT 1 AS a LOOP s := s || r.a; END LOOP;
                    FOR r IN VALUES (2, 'x') LOOP s := s || r.column2; END LOOP;
                    s := s || r.column1;
                    SELECT 5 AS a, 6 AS b, 7 AS c INTO r;
                    RETURN s || r.c;
                END;";
    let mut database = with_function("f() RETURNS text", body);
    assert_eq!(one(&mut database, "SELECT f()"), "1x27");
}

#[test]
fn record_is_refused_where_its_last_query_is_not_known() {
    for body in [
        "SELECT 1 AS a INTO r; IF p > 0 THEN SELECT 'x' AS b INTO r; END IF; RETURN r.b;",
        "SELECT 1 AS a INTO r; FOR i IN 1..2 LOOP p := r.a; SELECT 'x' AS b INTO r; END LOOP; RETURN 'y';",
        "SELECT 1 AS a INTO r; BEGIN SELECT 'x' AS b INTO r; EXCEPTION WHEN OTHERS THEN NULL; END; RETURN r.b;",
    ] {
        let body = format!("DECLARE r record; BEGIN {body} END;");
        let mut database = with_function("f(p integer) RETURNS text", &body);
        let error = database.run("SELECT f(1)").unwrap_err();
        assert_eq!(error.state(), SqlState::FEATURE_NOT_SUPPORTED, "{body}: {error}");
        assert!(error.hint().is_some() && error.position().is_some(), "{body}: {error}");
    }
}

#[test]
fn mistakes_that_postgresql_finds_at_creation_have_their_place_in_the_statement() {
    let cases = [
        ("f() RETURNS integer", "BEGIN xy := 1; RETURN 1; END;", "42601", "\"xy\""),
        ("f() RETURNS integer", "DECLARE c CONSTANT int := 1; BEGIN c := 2; END;", "22005", "CONSTANT"),
        ("f() RETURNS void", "BEGIN RETURN 1; END;", "42804", "returning void"),
        ("f() RETURNS integer", "BEGIN RETURN NEXT 1; END;", "42804", "non-SETOF"),
        ("f(OUT a integer)", "BEGIN RETURN 1; END;", "42804", "OUT parameters"),
        ("f() RETURNS integer", "DECLARE a nix; BEGIN RETURN 1; END;", "42704", "nix"),
    ];
    for (head, body, state, part) in cases {
        let error = define(&mut Database::new(false), head, body).unwrap_err();
        assert_eq!(error.state().to_string(), state, "{body}: {error}");
        assert!(error.message().contains(part) && error.position() > Some(30), "{body}: {error}");
    }
}

#[test]
fn mistakes_that_postgresql_finds_at_run_time_do_not_prevent_creation() {
    let mut database = with_function("f() RETURNS integer", "BEGIN RETURN nix; END;");
    let error = database.run("SELECT f()").unwrap_err();
    assert_eq!((error.state(), error.position()), (SqlState::UNDEFINED_COLUMN, Some(73)));
}

#[test]
fn replaced_routine_is_what_others_call() {
    let mut database = with_function("f() RETURNS integer", "BEGIN RETURN 1; END;");
    define(&mut database, "g() RETURNS integer", "BEGIN RETURN f(); END;").unwrap();
    assert_eq!(one(&mut database, "SELECT g()"), "1");
    database
        .run("CREATE OR REPLACE FUNCTION f() RETURNS integer LANGUAGE plpgsql AS $$BEGIN RETURN 2; END$$")
        .unwrap();
    assert_eq!(one(&mut database, "SELECT g()"), "2");
    database.run("DROP FUNCTION f").unwrap();
    assert_eq!(database.run("SELECT g()").unwrap_err().state(), SqlState::UNDEFINED_FUNCTION);
}

#[test]
fn notices_have_their_level_and_format() {
    let body = "BEGIN RAISE NOTICE 'a % b %', 1, NULL; RAISE WARNING USING MESSAGE = 'w'; END;";
    let mut database = with_function("f() RETURNS void", body);
    database.run("SELECT f()").unwrap();
    assert_eq!(database.notices, ["Notice: a 1 b <NULL>", "Warning: w"]);
}

#[test]
fn array_grows_at_both_ends_and_no_further_than_the_limit() {
    let body = "DECLARE a integer[]; BEGIN a[3] := 3; a[1] := 1; a[5] := 5; RETURN a; END;";
    let mut database = with_function("f() RETURNS integer[]", body);
    assert_eq!(one(&mut database, "SELECT f()"), "{1,NULL,3,NULL,5}");
    let body = "DECLARE a integer[] := '{1}'; BEGIN a[2000000000] := 3; RETURN a; END;";
    let mut database = with_function("f() RETURNS integer[]", body);
    assert_eq!(database.run("SELECT f()").unwrap_err().state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
}

/// What an interrupt says that ends work at the look of this number.
fn ended_after(looks: u32) -> albireo_base::budget::Interrupt {
    let seen = std::sync::atomic::AtomicU32::new(0);
    Box::new(move || match seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < looks {
        true => Ok(()),
        false => Err(SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")),
    })
}

#[test]
fn reading_binding_and_compiling_a_long_body_end_with_the_statement() {
    use albireo_base::budget::Budget;
    use albireo_compile::{NoLayouts, compile};
    let body = "n := n + 1; IF n > 7 THEN n := 0; END IF;\n".repeat(500);
    let text = format!("CREATE PROCEDURE long(INOUT n INTEGER) LANGUAGE plpgsql AS $$ BEGIN {body} END $$");
    let mut database = Database::new(false);
    let checked = |database: &Database, looks| {
        Budget::new(usize::MAX, ended_after(looks)).within(|| database.library().check(&text))
    };
    let mut needed = 0;
    while let Err(error) = checked(&database, needed) {
        assert_eq!(error.state(), SqlState::QUERY_CANCELED, "after {needed} looks: {error}");
        needed += 1;
    }
    // It has 1500 statements, each to be read and bound, with their expressions.
    assert!(needed >= 2 * 1500 / 64, "there were only {needed} looks");
    database.run(&text).unwrap();
    let (_, routine) = database.library().routine("long").unwrap();
    let compiled = |looks| {
        Budget::new(usize::MAX, ended_after(looks)).within(|| compile(&routine, &NoLayouts).map(drop))
    };
    assert_eq!(compiled(10).unwrap_err().state(), SqlState::QUERY_CANCELED);
    assert_eq!(compiled(u32::MAX), Ok(()));
}
