use super::*;

fn create(text: &str) -> Definition {
    match parse(text).unwrap().unwrap() {
        RoutineStatement::Create(definition) => *definition,
        other => panic!("{other:?}"),
    }
}

fn fails(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn definition_with_every_clause_is_read() {
    let text = "create or replace function s.f(a int, out b numeric(5,2), inout c double precision, \
                in d text[] default '{}', timestamp with time zone = now()) returns setof record \
                language plpgsql immutable strict security invoker cost 10 parallel safe as $x$ BEGIN $x$;";
    let definition = create(text);
    assert!(definition.replace && definition.strict);
    assert_eq!(definition.volatility, Volatility::Immutable);
    let names: Vec<_> =
        definition.parameters.iter().map(|p| p.name.as_ref().map_or("", |n| n.text.as_str())).collect();
    assert_eq!(names, ["a", "b", "c", "d", ""]);
    let modes: Vec<_> = definition.parameters.iter().map(|p| p.mode).collect();
    assert_eq!(modes, [Mode::In, Mode::Out, Mode::InOut, Mode::In, Mode::In]);
    assert_eq!(definition.body.text, " BEGIN ");
    assert_eq!(text.chars().skip(definition.body.offset).take(5).collect::<String>(), " BEGI");
}

#[test]
fn body_may_stand_before_language_and_in_single_quotes() {
    let definition = create("CREATE PROCEDURE p() AS 'SELECT ''x''' LANGUAGE sql");
    assert_eq!((definition.kind, definition.language), (RoutineKind::Procedure, Language::Sql));
    assert_eq!(definition.body.text, "SELECT 'x'");
}

#[test]
fn other_statements_are_none_of_ours() {
    for text in ["create table t (a int)", "select 1", "drop table t", "create or replace view v as select 1"]
    {
        assert_eq!(parse(text), Ok(None), "{text}");
    }
}

#[test]
fn drop_and_call_are_read() {
    let Some(RoutineStatement::Drop(removal)) =
        parse("drop function if exists f(a int, out b int), g").unwrap()
    else {
        panic!()
    };
    assert!(removal.if_exists);
    assert_eq!(removal.routines[0].parameters.as_ref().unwrap().len(), 1);
    assert_eq!(removal.routines[1].parameters, None);
    assert!(matches!(parse("call p(1, b => 2)"), Ok(Some(RoutineStatement::Call(_)))));
    assert!(matches!(parse("call p(1);"), Ok(Some(RoutineStatement::Call(_)))));
}

#[test]
fn explain_of_a_routine_is_read_and_of_a_query_is_none_of_ours() {
    let read = |text: &str| match parse(text).unwrap() {
        Some(RoutineStatement::Explain(explanation)) => explanation,
        other => panic!("{other:?}"),
    };
    let by_name = read("EXPLAIN PROCEDURE s.p;");
    assert_eq!((by_name.kind, by_name.routine.parameters), (Some(RoutineKind::Procedure), None));
    let by_types = read("explain function f(a integer, text[])");
    assert_eq!(by_types.kind, Some(RoutineKind::Function));
    assert_eq!(by_types.routine.parameters.unwrap().len(), 2);
    assert_eq!(read("explain routine \"R\"()").routine.name.name.text, "R");
    for text in ["explain select 1", "explain (analyze) select 1", "explain analyze select f()"] {
        assert_eq!(parse(text), Ok(None), "{text}");
    }
    let error = parse("EXPLAIN PROCEDURE p q").unwrap_err();
    assert_eq!((error.message(), error.position()), ("syntax error at or near \"q\"", Some(21)));
    assert!(fails("EXPLAIN FUNCTION").contains("at end of input"));
}

#[test]
fn definition_that_contradicts_itself_is_refused() {
    let cases = [
        ("create function f(a int, a int) returns int language sql as ''", "42P13", "more than once"),
        ("create function f() language sql as ''", "42P13", "result type"),
        ("create function f() returns int language sql", "42P13", "no function body"),
        ("create function f() returns int as ''", "42P13", "no language"),
        ("create function f() returns int language c as ''", "42704", "\"c\""),
        ("create function f(a int = 1, b int) returns int language sql as ''", "42P13", "defaults"),
        ("create function f() returns int language sql strict strict as ''", "42601", "redundant"),
        ("create procedure f() returns int language sql as ''", "42601", "RETURNS"),
    ];
    for (text, code, part) in cases {
        let error = fails(text);
        assert!(error.contains(code) && error.contains(part), "{text}: {error}");
    }
}
