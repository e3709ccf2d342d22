use std::sync::Arc;

use albireo_base::Decimal;
use albireo_sql::{Catalog, DdlChange};

use super::*;

/// The table of `CREATE TABLE t (...)`, and the statement.
fn table(inside: &str) -> (Arc<TableDef>, String) {
    let text = format!("CREATE TABLE t ({inside})");
    let statement = albireo_sql::parse_one(&text).unwrap();
    let plan = albireo_sql::plan_ddl(&Catalog::new(), &statement, &text).unwrap();
    for change in plan.changes {
        if let DdlChange::CreateTable(table) = change {
            return (table, text);
        }
    }
    panic!("no table in {text}")
}

/// A routine `f` is there.
fn is_f(name: &ast::ObjectName) -> bool {
    name.to_string() == "f"
}

/// The first constraint of a table of `columns`.
fn condition(columns: &str, condition: &str) -> Result<Condition, SqlError> {
    let (table, text) = table(&format!("{columns}, CHECK ({condition})"));
    Condition::bind(&table, &table.checks[0].expr.ast, Source::new(&text), &is_f)
}

/// Whether a row of one value meets a condition over the column `a`, or the SQLSTATE.
fn met(ty: &str, value: &Value, tree: &str) -> Result<bool, String> {
    let condition = condition(&format!("a {ty}"), tree).unwrap_or_else(|error| panic!("{tree}: {error}"));
    condition.is_met(&|_| value.clone()).map_err(|error| error.state().to_string())
}

#[test]
fn conditions_are_met_or_not_as_in_postgresql() {
    let text = |t: &str| Value::Text(t.to_owned());
    let cases: &[(&str, Value, &str, bool)] = &[
        ("int", Value::Integer(1), "a > 0", true),
        ("int", Value::Integer(0), "a > 0", false),
        ("int", Value::Integer(0), "t.a > 0", false),
        ("int", Value::Integer(0), "public.t.a > 0", false),
        ("int", Value::Null, "a > 0", true),
        ("int", Value::Null, "NULL", true),
        ("int", Value::Null, "'false'", false),
        ("int", Value::Null, "a > 0 AND false", false),
        ("int", Value::Null, "a > 0 OR true", true),
        ("int", Value::Null, "NOT a > 0", true),
        ("int", Value::Null, "a IS NOT NULL", false),
        ("int", Value::Integer(5), "a BETWEEN 1 AND 5", true),
        ("int", Value::Integer(5), "a NOT BETWEEN 1 AND 5", false),
        ("int", Value::Integer(3), "a IN (1, 2, 3)", true),
        ("int", Value::Integer(4), "a IN (1, 2, NULL)", true),
        ("int", Value::Integer(4), "a NOT IN (1, 2)", true),
        ("int", Value::Integer(4), "a = ANY (ARRAY[1, 2])", false),
        ("int", Value::Integer(7), "a % 2 = 1 AND a / 2 = 3", true),
        ("int", Value::Integer(-7), "CASE WHEN a > 0 THEN 1 / 0 > a ELSE true END", true),
        ("int", Value::Integer(i32::MIN), "a >= -2147483648", true),
        ("int", Value::Integer(-4), "abs(a) = 4 AND -a = +4", true),
        ("int", Value::Integer(2), "a = 2.0", true),
        ("int", Value::Integer(2), "a > '1'", true),
        ("int", Value::Integer(2), "sqrt(a) > 2", false),
        ("bigint", Value::BigInt(i64::MAX), "a * 1.0 = 9223372036854775807", true),
        ("double precision", Value::Double(0.5), "a * 2 = 1 AND a < 1.5", true),
        ("numeric(9,2)", Value::Decimal(Decimal::new(150, 2)), "a * 2 = 3 AND a = 1.5 AND a / 3 = 0.5", true),
        ("text", text("abc"), "a LIKE 'a%' AND a LIKE '_b_' AND a NOT LIKE 'b%' AND a ILIKE 'A%'", true),
        ("text", text("50%"), r"a LIKE '50\%'", true),
        ("text", text("50x"), r"a LIKE '50\%'", false),
        ("text", text("äb"), "length(a) = 2 AND upper(a) = 'ÄB' AND char_length(lower(a)) < 3", true),
        ("text", text("1-2"), "split_part(a, '-', 2)::int > 1 AND a || '!' = '1-2!'", true),
        ("char(5)", text("ab"), "a = 'ab   '", true),
        ("varchar(2)", text("ab"), "a <> 'abcdef'", true),
        ("date", Value::Date(0), "a >= '1970-01-01' AND a < DATE '1970-01-02'", true),
        ("date", Value::Date(1), "a > TIMESTAMP '1970-01-01 23:59:59'", true),
        ("date", Value::Date(1), "extract(year FROM a) = 1970 AND a + INTERVAL '1 day' > a", true),
        ("boolean", Value::Bool(false), "a IS NOT TRUE AND NOT a", true),
        ("boolean", Value::Null, "a IS UNKNOWN", true),
    ];
    for (ty, value, condition, expected) in cases {
        assert_eq!(met(ty, value, condition), Ok(*expected), "{value} of {ty}: {condition}");
    }
}

#[test]
fn error_inside_a_condition_is_that_error() {
    let cases: &[(&str, Value, &str, &str)] = &[
        ("int", Value::Integer(0), "10 / a > 0", "22012"),
        ("int", Value::Integer(0), "1 / 0 > a", "22012"),
        ("int", Value::Integer(7), "CASE WHEN a > 0 THEN 1 / 0 > a ELSE true END", "22012"),
        ("int", Value::Integer(i32::MAX), "a + 1 > 0", "22003"),
        ("int", Value::Integer(i32::MIN), "abs(a) > 0", "22003"),
        ("text", Value::from("x"), "a::int > 0", "22P02"),
        ("text", Value::from("xy"), r"a LIKE 'x\'", "22025"),
        ("double precision", Value::Double(1e308), "a * 10 > 0", "22003"),
    ];
    for (ty, value, condition, expected) in cases {
        assert_eq!(met(ty, value, condition), Err((*expected).to_owned()), "{value} of {ty}: {condition}");
    }
}

#[test]
fn condition_that_means_nothing_is_refused_where_it_stands() {
    let cases = [
        ("a int", "a + 1", "42804", "argument of CHECK must be type boolean, not type integer"),
        ("a int, b text", "a = b", "42883", "operator does not exist: integer = text"),
        ("a int", "a = 'x'", "22P02", "invalid input syntax for type integer: \"x\""),
        ("a int", "a LIKE '1%'", "42883", "operator does not exist: integer ~~ unknown"),
        ("a int", "u.a > 0", "42P01", "missing FROM-clause entry for table \"u\""),
        ("a int", "g(a) > 0", "42883", "function g(integer) does not exist"),
        ("a int", "sum(a) > 0", "42803", "aggregate functions are not allowed in check constraints"),
        ("a int", "f(a) > 0", "0A000", "the routine f in a check constraint is not supported"),
        ("a int", "a = ANY (ARRAY(SELECT 1))", "0A000", "cannot use subquery in check constraint"),
        (
            "a int",
            "generate_series(1, a) > 0",
            "0A000",
            "set-returning functions are not allowed in check constraints",
        ),
        ("a date", "a <= current_date", "0A000", "the time in a check constraint is not supported"),
    ];
    for (columns, tree, state, message) in cases {
        let error = condition(columns, tree).unwrap_err();
        assert_eq!((error.state().to_string().as_str(), error.message()), (state, message), "{tree}");
        assert!(error.position().is_some(), "{tree}: {error}");
    }
}

#[test]
fn default_is_its_value_as_the_column_has_it() {
    let cases = [
        ("int", "1 + 2 * 3", "7"),
        ("int", "1.5", "2"),
        ("int", "'7'", "7"),
        ("numeric(6,2)", "1.005", "1.01"),
        ("varchar(5)", "upper('ab')", "AB"),
        ("char(3)", "'a  '", "a"),
        ("date", "DATE '2024-01-01' + 1", "2024-01-02"),
        ("timestamptz", "now()", "1970-01-01 00:00:01+00"),
        ("date", "current_date - 1", "1969-12-31"),
        ("text", "NULL", "NULL"),
        ("text", "", "NULL"),
    ];
    for (ty, default, expected) in cases {
        let default = if default.is_empty() { String::new() } else { format!("DEFAULT {default}") };
        let (table, _) = table(&format!("a {ty} {default}"));
        let value = default_value(&table, ColumnId(0), 1_000_000).unwrap();
        assert_eq!(value.to_string(), expected, "{ty} {default}");
    }
}

#[test]
fn default_that_cannot_be_is_refused_and_one_that_fails_only_where_it_is_used() {
    let bind = |ty: &str, default: &str| {
        let (table, text) = table(&format!("a {ty} DEFAULT {default}"));
        let tree = &table.columns[0].default.as_ref().unwrap().ast;
        let bound = bind_default(&table, ColumnId(0), tree, Source::new(&text), &is_f);
        bound.map(|_| default_value(&table, ColumnId(0), 0).map_err(|error| error.state().to_string()))
    };
    let refused = [
        ("int", "'x'", "22P02", "invalid input syntax for type integer: \"x\""),
        ("int", "true", "42804", "column \"a\" is of type integer but default expression is of type boolean"),
        ("int", "f(1)", "0A000", "the routine f in a DEFAULT expression is not supported"),
        ("int", "g(1)", "42883", "function g(integer) does not exist"),
        ("int", "max(1)", "42803", "aggregate functions are not allowed in DEFAULT expressions"),
    ];
    for (ty, default, state, message) in refused {
        let error = bind(ty, default).unwrap_err();
        assert_eq!((error.state().to_string().as_str(), error.message()), (state, message), "{default}");
        assert!(error.position().is_some(), "{default}: {error}");
    }
    for (ty, default, state) in
        [("int", "1 / 0", "22012"), ("int", "3000000000", "22003"), ("varchar(2)", "'abc'", "22001")]
    {
        assert_eq!(bind(ty, default).unwrap(), Err(state.to_owned()), "{default}");
    }
}
