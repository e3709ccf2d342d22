use albireo_base::SqlState;
use albireo_sql::DdlChange;

use super::*;

/// The table of `CREATE TABLE t (columns, CHECK (condition))`.
fn table(columns: &str, condition: &str) -> (Arc<TableDef>, String) {
    let text = format!("CREATE TABLE t ({columns}, CHECK ({condition}))");
    let statement = albireo_sql::parse_one(&text).unwrap();
    let plan = albireo_sql::plan_ddl(&albireo_sql::Catalog::new(), &statement, &text).unwrap();
    for change in plan.changes {
        if let DdlChange::CreateTable(table) = change {
            return (table, text);
        }
    }
    panic!("no table in {text}")
}

/// Whether a row of one value meets `condition` over the column `a`.
fn holds(ty: &str, value: Value, condition: &str) -> bool {
    let (table, text) = table(&format!("a {ty}"), condition);
    validate(&table, &text).unwrap();
    checks_of(&table)[0].holds(&|_| value.clone())
}

#[test]
fn conditions_are_met_or_not_as_in_postgresql() {
    let text = |t: &str| Value::Text(t.to_owned());
    let cases: &[(&str, Value, &str, bool)] = &[
        ("int", Value::Integer(1), "a > 0", true),
        ("int", Value::Integer(0), "a > 0", false),
        ("int", Value::Null, "a > 0", true),
        ("int", Value::Null, "a > 0 AND false", false),
        ("int", Value::Null, "a > 0 OR true", true),
        ("int", Value::Null, "NOT a > 0", true),
        ("int", Value::Null, "a IS NOT NULL", false),
        ("int", Value::Integer(5), "a BETWEEN 1 AND 5", true),
        ("int", Value::Integer(5), "a NOT BETWEEN 1 AND 5", false),
        ("int", Value::Integer(3), "a IN (1, 2, 3)", true),
        ("int", Value::Integer(4), "a IN (1, 2, NULL)", true),
        ("int", Value::Integer(4), "a NOT IN (1, 2)", true),
        ("int", Value::Integer(7), "a % 2 = 1 AND a / 2 = 3", true),
        ("int", Value::Integer(0), "10 / a > 0", false),
        ("int", Value::Integer(i32::MAX), "a + 1 > 0", false),
        ("int", Value::Integer(i32::MIN), "a >= -2147483648", true),
        ("int", Value::Integer(i32::MIN), "abs(a) > 0", false),
        ("int", Value::Integer(-4), "abs(a) = 4 AND -a = +4", true),
        ("int", Value::Integer(2), "a = 2.0", true),
        ("bigint", Value::BigInt(i64::MAX), "a * 1.0 = 9223372036854775807", true),
        ("double precision", Value::Double(0.5), "a * 2 = 1 AND a < 1.5", true),
        ("numeric(9,2)", Value::Decimal(albireo_base::Decimal::new(150, 2)), "a * 2 = 3 AND a = 1.5", true),
        ("text", text("abc"), "a LIKE 'a%' AND a LIKE '_b_' AND a NOT LIKE 'b%'", true),
        ("text", text("50%"), r"a LIKE '50\%'", true),
        ("text", text("50x"), r"a LIKE '50\%'", false),
        ("text", text("äb"), "length(a) = 2 AND upper(a) = 'ÄB' AND char_length(lower(a)) < 3", true),
        ("char(5)", text("ab"), "a = 'ab   '", true),
        ("varchar(2)", text("ab"), "a <> 'abcdef'", true),
        ("date", Value::Date(0), "a >= '1970-01-01' AND a < DATE '1970-01-02'", true),
        ("date", Value::Date(1), "a > TIMESTAMP '1970-01-01 23:59:59'", true),
        ("boolean", Value::Bool(false), "a IS NOT TRUE AND NOT a", true),
        ("boolean", Value::Null, "a IS UNKNOWN", true),
    ];
    for (ty, value, condition, expected) in cases {
        assert_eq!(holds(ty, value.clone(), condition), *expected, "{value} of {ty}: {condition}");
    }
}

#[test]
fn condition_that_cannot_be_evaluated_is_refused_where_it_stands() {
    let cases = [
        ("a int", "CASE WHEN a > 0 THEN true ELSE false END", SqlState::FEATURE_NOT_SUPPORTED),
        ("a int", "sqrt(a) > 1", SqlState::FEATURE_NOT_SUPPORTED),
        ("a numeric(5,2)", "a / 3 > 1", SqlState::FEATURE_NOT_SUPPORTED),
        ("a int", "a + 1", SqlState::DATATYPE_MISMATCH),
        ("a int, b text", "a = b", SqlState::UNDEFINED_FUNCTION),
        ("a int", "a = 'x'", SqlState::INVALID_TEXT_REPRESENTATION),
        ("a int", "a LIKE '1%'", SqlState::DATATYPE_MISMATCH),
    ];
    for (columns, condition, state) in cases {
        let (table, text) = table(columns, condition);
        let error = validate(&table, &text).unwrap_err();
        assert_eq!(error.state(), state, "{condition}: {error}");
        assert!(error.position().is_some(), "{condition}: {error}");
    }
}
