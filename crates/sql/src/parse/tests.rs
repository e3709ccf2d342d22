use std::ops::ControlFlow;

use super::*;
use crate::walk::Walk as _;

#[track_caller]
fn refuse(text: &str) -> (String, String, Option<usize>) {
    let error = parse(text).unwrap_err();
    (error.state().to_string(), error.message().to_owned(), error.position())
}

#[track_caller]
fn assert_refused(text: &str, message: &str, position: usize) {
    assert_eq!(refuse(text), ("42601".to_owned(), message.to_owned(), Some(position)), "{text}");
}

#[test]
fn syntax_error_names_the_token_and_its_position() {
    assert_refused("selec 1", "syntax error at or near \"selec\"", 1);
    assert_refused("select a b c from t", "syntax error at or near \"c\"", 12);
    assert_refused("select 1;\nselect ä, from", "syntax error at or near \"from\"", 21);
    assert_refused("select * from t where", "syntax error at end of input", 22);
    assert_refused("select (1", "syntax error at end of input", 10);
    assert_refused("select 1)", "syntax error at or near \")\"", 9);
    assert_refused("create table t (a int,, b int)", "syntax error at or near \",\"", 23);
    assert_refused("select 'abc", "unterminated quoted string at or near \"'abc\"", 8);
    assert_refused("select \"abc", "unterminated quoted identifier at or near \"\"abc\"", 8);
    let error = parse("select * from t where").unwrap_err();
    assert_eq!(error.detail(), Some("Expected an expression."));
}

#[test]
fn parse_one_wants_exactly_one_statement() {
    assert!(parse_one("select 1;").is_ok());
    assert_eq!(parse_one(" ; -- none").unwrap_err().message(), "the statement is empty");
    assert!(parse_one("select 1; select 2").is_err());
}

#[test]
fn partition_by_and_with_are_read_in_either_order() {
    let first = "create table t (a int) partition by hash (a) with (layout = 'row')";
    let second = "create table t (a int) with (layout = 'row') partition by hash (a)";
    assert_eq!(parse_one(first).unwrap().to_string(), parse_one(second).unwrap().to_string());
    let error = parse("create table t (a int) partition by hash (a) with (layout = )").unwrap_err();
    assert_eq!(error.position(), Some(61));
}

#[test]
fn transaction_control_is_one_statement_each() {
    assert_eq!(parse("begin; select 1; commit; begin read only; end; rollback").unwrap().len(), 6);
}

/// Cause: operators are chained in loops by the parser, parentheses by recursion; either way a
/// long text became a tree that overflowed the stack when it was dropped.
#[test]
fn statement_nested_without_end_is_an_error_not_a_crash() {
    for text in [60, 20_000].into_iter().flat_map(bombs) {
        if let Err(error) = parse(&text) {
            let state = error.state().to_string();
            let shown = &text[..text.len().min(60)];
            assert!(["54001", "42601", "0A000"].contains(&state.as_str()), "{shown}: {error}");
        }
    }
}

/// Statements nested `n` deep in every way there is.
fn bombs(n: usize) -> Vec<String> {
    vec![
        format!("select {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("select {}1", "- ".repeat(n)),
        format!("select {}true", "not ".repeat(n)),
        format!("select 1{}", " + 1".repeat(n)),
        format!("select true{}", " or a = 1".repeat(n)),
        format!("select 1{}", "::int".repeat(n)),
        format!("select a{}", "[1]".repeat(n)),
        format!("select a{}", " is null".repeat(n)),
        format!("select a{}", " is distinct from a".repeat(n)),
        format!("select a{}", " is not distinct from a".repeat(n)),
        format!("select a{}", " between 1 and 2".repeat(n)),
        format!("select a{}", " collate \"C\"".repeat(n)),
        format!("select a{}", " at time zone 'UTC'".repeat(n)),
        format!("select 1{}", " union select 1".repeat(n)),
        format!("select * from {}t{}", "(".repeat(n), ")".repeat(n)),
        format!("{}select 1{}", "select * from (".repeat(n), ")".repeat(n)),
        format!("select {}1", "case when ".repeat(n)),
        format!("{}select 1", "explain ".repeat(n)),
        format!("{}select 1", "desc ".repeat(n)),
        format!("{}select 1", "prepare p as ".repeat(n)),
        format!("{}select 1", "if a then ".repeat(n)),
        format!("{}select 1", "case when a then ".repeat(n)),
        format!("{}select 1", "while a ".repeat(n)),
        format!("explain {}select 1", "case when a then ".repeat(n)),
        format!("create procedure p as begin {}select 1", "case when a then ".repeat(n)),
        format!("select cast(1 as int{})", "[]".repeat(n)),
        format!("select {}1{}", "f(".repeat(n), ")".repeat(n)),
        format!("select {}", "array[".repeat(n)),
        format!("select {}", "cast(".repeat(n)),
        format!("select {}1", "extract(year from ".repeat(n)),
        format!("select {}", "exists(".repeat(n)),
        format!("select 1 {}", "between 1 and ".repeat(n)),
        format!("with {}", "a as (with ".repeat(n)),
        format!("select {}", "exists (select ".repeat(n)),
        format!("select interval {}", "interval ".repeat(n)),
        format!("select {}", "a.".repeat(n)),
        format!("select cast(1 as {}int", "nullable(".repeat(n)),
        format!("select {}1", "prior ".repeat(n)),
        format!("{}", "begin ".repeat(n)),
        format!("select * from t {}", "join t ".repeat(n)),
        format!("select * from t {}", "join (t ".repeat(n)),
        format!("select f(1) {}", "over (partition by f(1) ".repeat(n)),
        format!("create table t (a int {})", "default 1 ".repeat(n)),
    ]
}

#[test]
fn statement_that_is_long_but_flat_is_read() {
    let rows = "(1, 'a', -2.5),".repeat(20_000);
    assert!(parse(&format!("insert into t values {rows}(1, 'b', 0)")).is_ok());
    let list = "1,".repeat(50_000);
    assert!(parse(&format!("select * from t where a in ({list}1)")).is_ok());
    let chain = " or a = 1".repeat(9_000);
    assert!(parse(&format!("select * from t where a = 0{chain}")).is_ok());
}

#[test]
fn long_chain_prints_as_it_was_written() {
    let terms: Vec<String> = (0..100).map(|i| format!("a = {i}")).collect();
    let text = format!("SELECT * FROM t WHERE {}", terms.join(" OR "));
    assert_eq!(parse_one(&text).unwrap().to_string(), text);
    let queries: Vec<String> = (0..100).map(|i| format!("SELECT {i}")).collect();
    let shown = parse_one(&queries.join(" UNION ALL ")).unwrap().to_string();
    assert!(shown.starts_with("SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2"), "{shown}");
}

#[test]
fn tree_of_the_greatest_allowed_depth_is_walked_cloned_and_dropped_on_a_small_stack() {
    let chain = " or id = 1 and id in (2, 3)".repeat(MAX_LOGIC / 2);
    let sum = " + 1".repeat(MAX_DEPTH - 20);
    let cast = "::int".repeat(MAX_DEPTH - 20);
    let union = " union all select 1".repeat(MAX_SET_OPERATIONS);
    let (open, close) = ("(1 + ".repeat(45), ")".repeat(45));
    let (from, end) = ("select * from (".repeat(18), ") x".repeat(18));
    let (exists, ends) = ("select 1 where exists (".repeat(18), ")".repeat(18));
    for text in [
        format!("select 1 from customer where id = 0{chain}"),
        format!("select id{sum} from customer order by id{sum}"),
        format!("select 1{cast}"),
        format!("select 1{union}"),
        format!("select {open}1{close}"),
        format!("{from}select 1{end}"),
        format!("{exists}select 1{ends}"),
    ] {
        let tree = parse_one(&text).unwrap();
        let mut count = 0;
        tree.any_expression(&mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        assert!(count > 0);
        assert_eq!(tree.clone(), tree);
    }
}
