//! Tests of the parser: every construct, every refusal, random texts.

mod constructs;
mod errors;
mod outline;
mod random;

use super::*;
use outline::outline;

/// A body with one or all of everything; the random tests cut and mix it.
const EVERYTHING: &str = include_str!("everything.sql");

#[test]
fn body_with_everything_is_read() {
    let shown = outline(EVERYTHING).unwrap();
    for kind in [
        "(assign",
        "(block",
        "(call",
        "(case",
        "(continue",
        "(diagnostics",
        "(each",
        "(elsif",
        "(exit",
        "(for",
        "(if",
        "(loop",
        "(null",
        "(on",
        "(perform",
        "(raise",
        "(range",
        "(return",
        "(sql",
        "(while",
        "(assert",
        "(next",
        "(query",
        "(into",
    ] {
        assert!(shown.contains(kind), "{kind} is not in {shown}");
    }
}

#[test]
fn options_before_the_block_are_kept() {
    let body =
        parse("#variable_conflict use_column\n#print_strict_params off #option dump\nbegin end").unwrap();
    assert_eq!(body.options.variable_conflict, ast::VariableConflict::UseColumn);
    assert_eq!((body.options.print_strict_params, body.options.dump), (Some(false), true));
    let body = parse("#variable_conflict use_variable begin end").unwrap();
    assert_eq!(body.options.variable_conflict, ast::VariableConflict::UseVariable);
    let body = parse("#variable_conflict error\nbegin end;").unwrap();
    assert_eq!(body.options, ast::Options::default());
}

#[test]
fn span_is_bytes_of_the_body_and_gives_its_text_and_position() {
    let text = "begin\n  -- ä\n  x := 'ö' || y ;\nend";
    let body = parse(text).unwrap();
    let statement = &body.block.statements[0];
    assert_eq!(statement.span.text(text), "x := 'ö' || y ;");
    assert_eq!(statement.span.position(text), 16);
    let StatementKind::Assign { target, value } = &statement.kind else { panic!("no assignment") };
    assert_eq!((target.span.text(text), value.span.text(text)), ("x", "'ö' || y"));
    assert_eq!(body.span.text(text), text);
}

/// The binder finds names in the trees by their places, which must count from the body's beginning.
#[test]
fn places_in_sql_trees_count_from_the_beginning_of_the_body() {
    use albireo_sql::ast::{Expr, SetExpr, Statement};
    let text = "begin\n  ä := 1; select ü,\n ö into x from t where z;\nend";
    let body = parse(text).unwrap();
    let StatementKind::Sql { query, .. } = &body.block.statements[1].kind else { panic!("no statement") };
    let Statement::Query(tree) = query.tree.as_ref() else { panic!("no query") };
    let SetExpr::Select(select) = tree.body.as_ref() else { panic!("no SELECT") };
    let Some(Expr::Identifier(name)) = &select.selection else { panic!("no WHERE") };
    let position = albireo_sql::source::Source::new(text).position(name.span.start).unwrap();
    assert_eq!(text.chars().nth(position - 1), Some('z'));
}

#[test]
fn nesting_up_to_the_limit_is_read_and_beyond_is_an_error() {
    let bodies: [fn(usize) -> String; 4] = [
        |n| format!("{}{}", "begin ".repeat(n), "end; ".repeat(n)),
        |n| format!("begin {}{} end", "if a then ".repeat(n - 1), "end if; ".repeat(n - 1)),
        |n| format!("begin {}{} end", "<<l>> loop ".repeat(n - 1), "end loop l; ".repeat(n - 1)),
        |n| format!("begin {}{} end", "case when a then ".repeat(n - 1), "end case; ".repeat(n - 1)),
    ];
    for body in bodies {
        assert!(parse(&body(MAX_NESTING)).is_ok());
        let error = parse(&body(MAX_NESTING + 1)).unwrap_err();
        assert_eq!(error.state().to_string(), "54001");
        assert!(error.position().is_some() && error.hint().is_some());
        assert_eq!(parse(&body(20_000)).unwrap_err().state().to_string(), "54001");
    }
}

/// The deepest expression within the deepest statement still fits the stack.
#[test]
fn deepest_tree_is_cloned_compared_shown_and_dropped() {
    let depth = (1..=albireo_sql::parse::MAX_DEPTH).rev();
    let read = depth.map(|n| {
        let (ifs, ends) = ("if a then ".repeat(MAX_NESTING - 1), "end if; ".repeat(MAX_NESTING - 1));
        parse(&format!("begin {ifs} x := 1{}; {ends} end", " + 1".repeat(n)))
    });
    let body = read.flatten().next().unwrap();
    let copy = body.clone();
    assert_eq!(copy, body);
    assert!(format!("{copy:?}").len() > 1_000);
}

/// One long list is not deep.
#[test]
fn body_that_is_long_but_flat_is_read() {
    let branches = "elsif a then null; ".repeat(5_000);
    assert!(parse(&format!("begin if a then null; {branches} end if; end")).is_ok());
    let statements = "x := x + 1;\n".repeat(5_000);
    assert!(parse(&format!("begin\n{statements}end")).is_ok());
}

#[test]
fn expression_nested_without_end_is_an_error_not_a_crash() {
    for n in [60, 20_000] {
        for body in [
            format!("begin x := {}1{}; end", "(".repeat(n), ")".repeat(n)),
            format!("begin x := {}1; end", "- ".repeat(n)),
            format!("begin x{} := 1; end", "[1".repeat(n)),
            format!("begin x{} := 1; end", ".a".repeat(n)),
            format!("begin x := 1{}; end", " from t".repeat(n)),
            format!("begin x := {}1 from t; end", "case when ".repeat(n)),
            format!("begin return query {}select 1; end", "with a as (".repeat(n)),
            format!("begin select {}1 into x; end", "(select ".repeat(n)),
            format!("declare x {}int; begin end", "array<".repeat(n)),
            format!("declare x {}int{}; begin end", "nullable(".repeat(n), ")".repeat(n)),
            format!("declare x int{}; begin end", "[]".repeat(n)),
            format!("declare x struct{}; begin end", "<a struct".repeat(n)),
            format!("declare x map({}int; begin end", "map(int,".repeat(n)),
            format!("declare x tuple({}int; begin end", "tuple(".repeat(n)),
            format!("{}begin end", "<<".repeat(n)),
            format!("{}begin end", "#option dump ".repeat(n)),
            format!("begin raise 'a'{}; end", "\n'b'".repeat(n)),
        ] {
            if let Err(error) = parse(&body) {
                let state = error.state().to_string();
                let shown: String = body.chars().take(60).collect();
                assert!(["54001", "42601", "0A000"].contains(&state.as_str()), "{shown}: {error}");
            }
        }
    }
}
