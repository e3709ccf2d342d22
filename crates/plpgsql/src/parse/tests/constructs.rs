//! Every construct and the tree it is read into.

use super::outline;

/// What `statements` are in a body, without the block around them.
#[track_caller]
fn assert_read(statements: &str, expected: &str) {
    let body = format!("begin {statements} end");
    let shown = outline(&body).unwrap_or_else(|error| panic!("{body}: {error}"));
    assert_eq!(shown, format!("(block {expected})").replace("(block )", "(block)"), "{statements}");
}

/// What `declarations` are.
#[track_caller]
fn assert_declared(declarations: &str, expected: &str) {
    let body = format!("declare {declarations} begin end");
    let shown = outline(&body).unwrap_or_else(|error| panic!("{body}: {error}"));
    assert_eq!(shown, format!("(block (declare {expected}))"), "{declarations}");
}

#[test]
fn blocks_have_labels_declarations_statements_and_handlers() {
    assert_eq!(outline("begin end").unwrap(), "(block)");
    assert_eq!(outline("DECLARE BEGIN NULL; END;").unwrap(), "(block (null))");
    assert_eq!(outline("<<a>> declare x int; begin end A").unwrap(), "(block << a >> (declare x `INT`))");
    assert_eq!(
        outline("declare x int; declare y int; begin end").unwrap(),
        "(block (declare x `INT`) (declare y `INT`))"
    );
    assert_read("begin null; end;", "(block (null))");
    assert_read("<<\"B b\">> declare x int; begin end \"B b\";", "(block << \"B b\" >> (declare x `INT`))");
    assert_read(
        "declare x int; begin declare x text; begin end; end;",
        "(block (declare x `INT`) (block (declare x `TEXT`)))",
    );
    assert_read("", "");
}

#[test]
fn variables_have_types_and_first_values() {
    assert_declared("x integer;", "x `INTEGER`");
    assert_declared("X CONSTANT integer := 1;", "x constant `INTEGER` `1`");
    assert_declared("x numeric(12,2) not null = 1 + 2;", "x `NUMERIC(12,2)` not null `1 + 2`");
    assert_declared("x timestamp with time zone default now();", "x `TIMESTAMP WITH TIME ZONE` `now()`");
    assert_declared("x double precision;", "x `DOUBLE PRECISION`");
    assert_declared("\"X y\" varchar(10);", "\"X y\" `VARCHAR(10)`");
    assert_declared("x customer;", "x `customer`");
    assert_declared("x s.customer;", "x `s.customer`");
    assert_declared("exit text;", "exit `TEXT`");
    assert_declared("x record;", "x record");
    assert_declared("x y%type;", "x type of y");
    assert_declared("x constant t.c % TYPE := 1;", "x constant type of t.c `1`");
    assert_declared("x \"S\".t.c%type;", "x type of S.t.c");
    assert_declared("x t%rowtype;", "x row of t");
    assert_declared("x s.t%rowtype;", "x row of s.t");
}

#[test]
fn arrays_are_declared_in_all_ways_of_one_dimension() {
    assert_declared("x integer[];", "x array of `INTEGER`");
    assert_declared("x integer[3] := '{}';", "x array of `INTEGER` `'{}'`");
    assert_declared("x integer array;", "x array of `INTEGER`");
    assert_declared(
        "x numeric(5,2) ARRAY[4] not null default null;",
        "x array of `NUMERIC(5,2)` not null `NULL`",
    );
}

#[test]
fn aliases_stand_for_variables_and_parameters() {
    assert_declared("x alias for $1;", "x alias $1");
    assert_declared("x alias for b.y;", "x alias b.y");
}

#[test]
fn assignments_have_targets_of_all_kinds() {
    assert_read("x := 1;", "(assign x `1`)");
    assert_read("x = -1;", "(assign x `-1`)");
    assert_read("x:=-1;", "(assign x `-1`)");
    assert_read("r.f := a.b;", "(assign r (. f) `a.b`)");
    assert_read("a[i + 1] := 2;", "(assign a (at `i + 1`) `2`)");
    assert_read("b.r.a[f(1, 2)].g := 2;", "(assign b (. r) (. a) (at `f(1, 2)`) (. g) `2`)");
    assert_read("$1 := 2;", "(assign $1 `2`)");
    assert_read(
        "return := 2; exit = 3; select := 4;",
        "(assign return `2`) (assign exit `3`) (assign select `4`)",
    );
    assert_read("exception := 1;", "(assign exception `1`)");
    assert_read("x := case when a then 1 else 2 end;", "(assign x `CASE WHEN a THEN 1 ELSE 2 END`)");
    assert_read("x := (select max(a) from t);", "(assign x `(SELECT max(a) FROM t)`)");
    assert_read("x := ';' || $$;$$ /* ; */ || e'\\';' -- ;\n;", "(assign x `';' || $$;$$ || E'\\';'`)");
}

#[test]
fn expression_with_from_is_a_query_of_one_value() {
    assert_read("x := count(*) from t where a = 1;", "(assign x `(SELECT count(*) FROM t WHERE a = 1)`)");
    assert_read("if count(*) > 0 from t then end if;", "(if `(SELECT count(*) > 0 FROM t)`)");
    assert_read("x := a is distinct from b;", "(assign x `a IS DISTINCT FROM b`)");
    assert_read("x := extract(year from d);", "(assign x `EXTRACT(YEAR FROM d)`)");
}

#[test]
fn if_has_branches_and_an_else() {
    assert_read("if a then end if;", "(if `a`)");
    assert_read("if a then null; else end if;", "(if `a` (null)) (else)");
    assert_read(
        "if a then x := 1; elsif b or (c) then elseif d then null; else x := 2; end if;",
        "(if `a` (assign x `1`)) (elsif `b OR (c)`) (elsif `d` (null)) (else (assign x `2`))",
    );
    assert_read("if (case when a then b end) then end if;", "(if `(CASE WHEN a THEN b END)`)");
}

#[test]
fn case_compares_values_or_tests_conditions() {
    assert_read(
        "case x when 1, f(2, 3) then null; when 4 then else x := 1; end case;",
        "(case `x` (when `1` `f(2, 3)` (null)) (when `4`) (else (assign x `1`)))",
    );
    assert_read("case when a then null; when b then end case;", "(case (when `a` (null)) (when `b`))");
}

#[test]
fn loops_have_labels_and_jumps() {
    assert_read("loop exit; end loop;", "(loop (do (exit)))");
    assert_read(
        "<<l>> loop exit l when a > 1; continue L; continue when b; end loop l;",
        "(loop << l >> (do (exit l `a > 1`) (continue l) (continue `b`)))",
    );
    assert_read("while a < 1 loop null; end loop;", "(while `a < 1` (do (null)))");
    assert_read(
        "<<b>> begin exit b; loop exit b; end loop; end;",
        "(block << b >> (exit b) (loop (do (exit b))))",
    );
    assert_read(
        "<<l>> loop begin continue l; exception when others then exit; end; end loop;",
        "(loop << l >> (do (block (continue l) (on others (exit)))))",
    );
}

#[test]
fn for_runs_over_integers() {
    assert_read("for i in 1..10 loop null; end loop;", "(range i `1` `10` (do (null)))");
    assert_read(
        "for i in reverse n - 1 .. f(1) by 2 loop end loop;",
        "(range i reverse `n - 1` `f(1)` `2` (do))",
    );
    assert_read("for i in a[1]..a[2] loop end loop;", "(range i `a[1]` `a[2]` (do))");
    assert_read(
        "for i in 1..2 loop for i in 1..2 loop end loop; end loop;",
        "(range i `1` `2` (do (range i `1` `2` (do))))",
    );
}

#[test]
fn for_runs_over_rows() {
    assert_read(
        "for r in select a, b from t loop null; end loop;",
        "(for r `SELECT a, b FROM t` (do (null)))",
    );
    assert_read("for x, r.y in (select 1, 2) loop end loop;", "(for x r.y `(SELECT 1, 2)` (do))");
    assert_read(
        "for r in with a as (select 1) select * from a loop end loop;",
        "(for r `WITH a AS (SELECT 1) SELECT * FROM a` (do))",
    );
    assert_read(
        "for x in delete from t returning a loop end loop;",
        "(for x `DELETE FROM t RETURNING a` (do))",
    );
    assert_read("for x in values (1), (2) loop end loop;", "(for x `VALUES (1), (2)` (do))");
}

#[test]
fn foreach_runs_over_arrays() {
    assert_read("foreach x in array a loop null; end loop;", "(each x `a` (do (null)))");
    assert_read(
        "<<l>> foreach x, y in array array[1, 2] loop end loop l;",
        "(each << l >> x y `ARRAY[1, 2]` (do))",
    );
}

#[test]
fn into_is_cut_out_wherever_it_stands() {
    assert_read("select a, b into x, y from t;", "(sql `SELECT a, b FROM t` (into x y))");
    assert_read("select into x a from t;", "(sql `SELECT a FROM t` (into x))");
    assert_read("select into strict x, r.f a, b from t;", "(sql `SELECT a, b FROM t` (into strict x r.f))");
    assert_read("select a from t where b = 1 into x;", "(sql `SELECT a FROM t WHERE b = 1` (into x))");
    assert_read(
        "select a from t into strict b.x limit 1;",
        "(sql `SELECT a FROM t LIMIT 1` (into strict b.x))",
    );
    assert_read("select f(a)into x from t;", "(sql `SELECT f(a) FROM t` (into x))");
    assert_read("select \"into\" into \"into\" from t;", "(sql `SELECT \"into\" FROM t` (into into))");
    assert_read(
        "with a as (select 1) select * into x from a;",
        "(sql `WITH a AS (SELECT 1) SELECT * FROM a` (into x))",
    );
    assert_read("values (1, 2) into x, $1;", "(sql `VALUES (1, 2)` (into x $1))");
}

#[test]
fn insert_into_is_not_into() {
    assert_read("insert into t values (1);", "(sql `INSERT INTO t VALUES (1)`)");
    assert_read("insert /* into */ into t (a) select b from u;", "(sql `INSERT INTO t (a) SELECT b FROM u`)");
    assert_read(
        "insert into t values (1) returning a into x;",
        "(sql `INSERT INTO t VALUES (1) RETURNING a` (into x))",
    );
    assert_read(
        "insert into t values (1) on conflict (a) do update set b = 1 returning a into strict x;",
        "(sql `INSERT INTO t VALUES (1) ON CONFLICT(a) DO UPDATE SET b = 1 RETURNING a` (into strict x))",
    );
    assert_read(
        "update t set a = 1 where b = 2 returning a, b into x, y;",
        "(sql `UPDATE t SET a = 1 WHERE b = 2 RETURNING a, b` (into x y))",
    );
    assert_read("delete from t returning * into r;", "(sql `DELETE FROM t RETURNING *` (into r))");
}

#[test]
fn statements_of_sql_stand_alone_or_behind_perform_and_call() {
    assert_read("select 1;", "(sql `SELECT 1`)");
    assert_read("perform f(1), 2 from t where a;", "(perform `SELECT f(1), 2 FROM t WHERE a`)");
    assert_read("call p();", "(call `p()`)");
    assert_read("call s.p(x, 1 + 2);", "(call `s.p(x, 1 + 2)`)");
    assert_read("null;", "(null)");
}

#[test]
fn diagnostics_are_of_the_last_statement_or_of_the_error() {
    assert_read("get diagnostics n = row_count;", "(diagnostics n RowCount)");
    assert_read(
        "get current diagnostics n := row_count, r.m = row_count;",
        "(diagnostics n RowCount r.m RowCount)",
    );
    assert_read(
        "get stacked diagnostics a = returned_sqlstate, b = message_text, c = pg_exception_detail, d = pg_exception_hint;",
        "(diagnostics a ReturnedSqlstate b MessageText c Detail d Hint)",
    );
}

#[test]
fn raise_has_all_forms() {
    assert_read("raise;", "(raise Exception again)");
    assert_read("raise 'a';", "(raise Exception [\"a\"])");
    for (word, level) in [
        ("debug", "Debug"),
        ("log", "Log"),
        ("info", "Info"),
        ("notice", "Notice"),
        ("warning", "Warning"),
        ("exception", "Exception"),
    ] {
        assert_read(&format!("raise {word} 'a';"), &format!("(raise {level} [\"a\"])"));
    }
    assert_read(
        "raise notice '% is %%, %%%', 1, f(2, 3);",
        "(raise Notice [\"\", \" is %, %\", \"\"] `1` `f(2, 3)`)",
    );
    assert_read("raise notice e'it''s\\n%', $$%$$;", "(raise Notice [\"it's\\n\", \"\"] `$$%$$`)");
    assert_read("raise notice $a$it's %$a$, 1;", "(raise Notice [\"it's \", \"\"] `1`)");
    assert_read("raise notice 'a %'\n  ' b %', 1, 2;", "(raise Notice [\"a \", \" b \", \"\"] `1` `2`)");
    assert_read("raise division_by_zero;", "(raise Exception division_by_zero=[22012])");
    assert_read(
        "raise warning unique_violation using hint = 'h';",
        "(raise Warning unique_violation=[23505] (Hint `'h'`))",
    );
    assert_read("raise sqlstate 'U0001';", "(raise Exception U0001)");
    assert_read(
        "raise using errcode = 'P0001', message := 'm' || x;",
        "(raise Exception (Errcode `'P0001'`) (Message `'m' || x`))",
    );
    assert_read(
        "raise exception 'a%', 1 using errcode = 'unique_violation', detail = 'd';",
        "(raise Exception [\"a\", \"\"] `1` (Errcode `'unique_violation'`) (Detail `'d'`))",
    );
    assert_read(
        "raise using column = '1', constraint = '2', datatype = '3', table = '4', schema = '5';",
        "(raise Exception (Column `'1'`) (Constraint `'2'`) (Datatype `'3'`) (Table `'4'`) (Schema `'5'`))",
    );
}

#[test]
fn handlers_name_conditions_and_sqlstates() {
    let shown = outline(
        "begin null; exception when unique_violation or sqlstate '22012' then x := 1; \
         when null_value_not_allowed then when others then raise; end",
    );
    assert_eq!(
        shown.unwrap(),
        "(block (null) (on unique_violation=[23505] 22012 (assign x `1`)) \
         (on null_value_not_allowed=[22004, 39004]) (on others (raise Exception again)))"
    );
}

#[test]
fn assert_and_return_have_their_forms() {
    assert_read("assert a > 1;", "(assert `a > 1`)");
    assert_read("assert f(a, b), 'x' || y;", "(assert `f(a, b)` `'x' || y`)");
    assert_read("return;", "(return)");
    assert_read("return (a, b);", "(return `(a, b)`)");
    assert_read("return next;", "(next)");
    assert_read("return next a + 1;", "(next `a + 1`)");
    assert_read("return query select 1, 2;", "(query `SELECT 1, 2`)");
    assert_read("return query update t set a = 1 returning b;", "(query `UPDATE t SET a = 1 RETURNING b`)");
}

#[test]
fn set_local_synchronous_commit_has_its_forms() {
    assert_read("set local synchronous_commit to off;", "(synchronous_commit Some(false))");
    assert_read("SET LOCAL Synchronous_Commit = 'local';", "(synchronous_commit Some(true))");
    assert_read("set local synchronous_commit to default;", "(synchronous_commit None)");
    assert_read("set := 1;", "(assign set `1`)");
}

#[test]
fn keywords_may_be_written_in_any_case_and_names_are_folded() {
    assert_read("If A Then X := 1; End If;", "(if `A` (assign x `1`))");
    assert_read("\"X\" := 1;", "(assign \"X\" `1`)");
}
