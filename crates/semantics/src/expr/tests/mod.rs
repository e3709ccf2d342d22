//! Expressions against what PostgreSQL 15 says of them.
//!
//! `cases.txt`, and `functions.txt` for functions, have lines `expression => type: text` or
//! `expression => !SQLSTATE`; `record.py` asks PostgreSQL. Lines in `refused.txt` are expressions that we refuse, with what we say.

mod random;

use albireo_base::SqlError;
use albireo_sql::ast;
use albireo_sql::source::Source;

use super::*;

/// No names at all, but parameters: `$1` is the INTEGER 7, `$2` a NULL NUMERIC, `$3` the TEXT 'abc', `$4` the
/// NUMERIC 2.50 of unknown scale.
struct Nothing<'a> {
    text: &'a str,
}

impl Names for Nothing<'_> {
    fn name(&mut self, parts: &[ast::Ident]) -> Result<Expr, SqlError> {
        let name = parts.last().map_or("", |part| part.value.as_str());
        let message = format!("column \"{name}\" does not exist");
        Err(SqlError::new(albireo_base::SqlState::UNDEFINED_COLUMN, message))
    }

    fn parameter(&mut self, number: usize) -> Result<Expr, SqlError> {
        let ty = match number {
            1 => Scalar::Integer,
            2 | 4 => Scalar::Numeric { scale: None },
            3 => Scalar::Text,
            _ => return Err(SqlError::new(albireo_base::SqlState::UNDEFINED_PARAMETER, "no parameter")),
        };
        Ok(Expr::scalar(ExprKind::Variable(VariableId(number as u32)), ty))
    }

    fn call(&mut self, _function: &ast::Function) -> Result<Option<Expr>, SqlError> {
        Ok(None)
    }

    fn conflict(&mut self, _parts: &[ast::Ident]) -> Result<Option<Expr>, SqlError> {
        Ok(None)
    }

    fn query(&mut self, _query: &ast::Query) -> Result<crate::query::SelectPlan, SqlError> {
        Err(SqlError::unsupported("a query here"))
    }

    fn source(&self) -> Source<'_> {
        Source::new(self.text)
    }
}

struct Values([Datum; 4]);

impl Values {
    fn new() -> Self {
        use albireo_base::{Decimal, Value};
        let values = [
            Value::Integer(7),
            Value::Null,
            Value::Text("abc".to_owned()),
            Value::Decimal(Decimal::new(250, 2)),
        ];
        Self(values.map(Datum::from))
    }
}

impl Frame for Values {
    fn variable(&self, variable: VariableId) -> &Datum {
        &self.0[variable.0 as usize - 1]
    }

    fn column(&mut self, _column: ColumnRef) -> Result<Datum, Stop> {
        Err(SqlError::unsupported("a column").into())
    }

    fn now(&mut self) -> i64 {
        // 2024-02-29 13:14:15.678
        1_709_212_455_678_000
    }

    fn call(&mut self, _routine: RoutineId, _args: Vec<Datum>) -> Result<Datum, Stop> {
        Err(SqlError::unsupported("a routine").into())
    }

    fn query(&mut self, _plan: &crate::query::SelectPlan, _limit: usize) -> Result<Vec<Vec<Datum>>, Stop> {
        Err(SqlError::unsupported("a query").into())
    }
}

/// Whether the value is of the type, the scale included.
fn fits(datum: &Datum, ty: &Type) -> bool {
    use albireo_base::Value as V;
    match (datum, ty) {
        (Datum::Value(V::Null), _) => true,
        (Datum::Array(array), Type::Array(element)) => {
            array.items.iter().all(|item| fits(item, &Type::Scalar(*element)))
        }
        (Datum::Row(fields), Type::Row(row)) => fields.len() == row.fields.len(),
        (Datum::Interval(_), Type::Scalar(Scalar::Interval)) => true,
        (Datum::Value(value), Type::Scalar(ty)) => match (value, ty) {
            (V::Decimal(number), Scalar::Numeric { scale }) => {
                scale.is_none_or(|scale| scale == number.scale)
            }
            (V::Text(_), Scalar::Text | Scalar::Bpchar) => true,
            (V::Bool(_), Scalar::Bool)
            | (V::SmallInt(_), Scalar::SmallInt)
            | (V::Integer(_), Scalar::Integer)
            | (V::BigInt(_), Scalar::BigInt)
            | (V::Real(_), Scalar::Real)
            | (V::Double(_), Scalar::Double)
            | (V::Bytea(_), Scalar::Bytea)
            | (V::Date(_), Scalar::Date)
            | (V::Time(_), Scalar::Time)
            | (V::Timestamp(_), Scalar::Timestamp)
            | (V::TimestampTz(_), Scalar::TimestampTz)
            | (V::Uuid(_), Scalar::Uuid) => true,
            _ => false,
        },
        _ => false,
    }
}

fn outcome(text: &str) -> Result<(Expr, Datum), SqlError> {
    let tree = albireo_sql::parse::parse_expr(text)?;
    let bound = bind(&tree, &mut Nothing { text })?;
    match evaluate(&bound, &mut Values::new()) {
        Ok(value) => {
            assert!(fits(&value, &bound.ty), "{text}: {value:?} is no {:?}", bound.ty);
            Ok((bound, value))
        }
        Err(Stop::Error(error)) => Err(*error),
        Err(stop) => panic!("{text}: {stop:?}"),
    }
}

fn says(text: &str) -> String {
    match outcome(text) {
        Ok((bound, value)) => {
            let shown = text_of(&value).unwrap_or_else(|| "NULL".to_owned());
            format!("{}: {}", bound.ty, shown.replace('\n', "\\n"))
        }
        Err(error) => format!("!{}", error.state()),
    }
}

fn cases(file: &str) -> impl Iterator<Item = (&str, &str)> {
    file.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")).map(|line| {
        let (expression, expected) = line.rsplit_once(" => ").expect("a case has an arrow");
        (expression, expected)
    })
}

#[test]
fn expression_has_the_type_and_value_postgres_gives_it() {
    let mut wrong = Vec::new();
    let all = cases(include_str!("cases.txt")).chain(cases(include_str!("functions.txt")));
    for (expression, expected) in all {
        // Our TEXT is also what VARCHAR is, and the name of a type is a TEXT.
        let expected = match expected.split_once(": ") {
            Some(("character varying" | "regtype", value)) => format!("text: {value}"),
            Some(("character varying[]", value)) => format!("text[]: {value}"),
            _ => expected.to_owned(),
        };
        let found = says(expression);
        if found.trim_end() != expected.trim_end() {
            let why = outcome(expression).err().map_or_else(String::new, |error| format!(" ({error})"));
            wrong.push(format!("{expression} => {expected}\n    we say {found}{why}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn expression_we_do_not_have_is_refused_with_a_remedy() {
    for (expression, expected) in cases(include_str!("refused.txt")) {
        let error = outcome(expression).expect_err(expression);
        let found = format!("{} {}", error.state(), error.message());
        assert_eq!(found, expected, "{expression}");
    }
}

#[test]
fn time_and_parameters_come_from_the_frame() {
    let cases = [
        ("now()", "timestamp with time zone: 2024-02-29 13:14:15.678+00"),
        ("current_timestamp", "timestamp with time zone: 2024-02-29 13:14:15.678+00"),
        ("transaction_timestamp()", "timestamp with time zone: 2024-02-29 13:14:15.678+00"),
        ("localtimestamp", "timestamp without time zone: 2024-02-29 13:14:15.678"),
        ("current_date", "date: 2024-02-29"),
        ("localtime", "time without time zone: 13:14:15.678"),
        ("$1 + 1", "integer: 8"),
        ("$1 * 1.5", "numeric: 10.5"),
        ("$4 * 1.5", "numeric: 3.750"),
        ("$2 + 1", "numeric: NULL"),
        ("$3 || $1", "text: abc7"),
        ("$3 = 'abc'", "boolean: t"),
        ("$9", "!42P02"),
        ("row($1, $3) = (7, 'abc')", "boolean: t"),
    ];
    for (expression, expected) in cases {
        assert_eq!(says(expression), expected, "{expression}");
    }
}

#[test]
fn scale_is_known_where_all_values_have_it() {
    let scale = |text: &str| match outcome(text).unwrap().0.ty {
        Type::Scalar(Scalar::Numeric { scale }) => scale,
        other => panic!("{text}: {other}"),
    };
    let cases = [
        ("1.50 + 2", Some(2)),
        ("1.50 * 2.5", Some(3)),
        ("round($4, 3)", Some(3)),
        ("round($4, $1)", None),
        ("$4::numeric(8,2)", Some(2)),
        ("$4", None),
        ("1.5 / 2", None),
        ("ceil($4)", Some(0)),
        ("- 1.50", Some(2)),
        ("case when true then 1.50 else 2.25 end", Some(2)),
        ("case when true then 1.50 else 2 end", None),
        ("coalesce(null, 1.50)", Some(2)),
        ("$1::numeric", Some(0)),
        ("extract(second from now())", Some(6)),
    ];
    for (text, expected) in cases {
        assert_eq!(scale(text), expected, "{text}");
    }
}

#[test]
fn expression_as_deep_as_the_parser_allows_is_evaluated() {
    let forms =
        [("(", "1", ")"), ("abs(", "1", ")"), ("1 + (", "1", ")"), ("case when true then (", "1", ") end")];
    let forms = forms.into_iter().chain([
        ("coalesce(", "1", ")"),
        ("array[1] || (", "array[2]", ")"),
        ("- ", "1", ""),
    ]);
    for (before, inner, after) in
        forms.chain([("1 + ", "1", ""), ("not ", "true", ""), ("true and ", "true", "")])
    {
        let nested = |depth: usize| format!("{}{inner}{}", before.repeat(depth), after.repeat(depth));
        let mut deepest = 0;
        for depth in [10, 30, 60, 90, 120, 145, 200, 280, 1000, 9000] {
            match outcome(&nested(depth)) {
                Ok(_) => deepest = depth,
                Err(error) => {
                    // Nested too deeply, or the parser gave up.
                    let state = error.state().to_string();
                    assert!(["54001", "42601"].contains(&state.as_str()), "{before} {depth}: {error}");
                }
            }
        }
        assert!(deepest > 0, "{before}");
    }
}

#[test]
fn assignment_goes_through_text_for_variables_only() {
    let text = "$3";
    let tree = albireo_sql::parse::parse_expr(text).unwrap();
    let state = |kind| {
        bind_to(&tree, &mut Nothing { text }, SqlType::Integer, kind).map_err(|e| e.state().to_string())
    };
    assert_eq!(state(CastKind::Assignment).err().as_deref(), Some("42804"));
    assert!(state(CastKind::Explicit).is_ok());
    let bound = state(CastKind::Variable).unwrap();
    match evaluate(&bound, &mut Values::new()) {
        Err(Stop::Error(error)) => assert_eq!(error.state().to_string(), "22P02"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn value_too_long_is_cut_by_a_cast_and_refused_by_an_assignment() {
    let text = "$3";
    let tree = albireo_sql::parse::parse_expr(text).unwrap();
    let value = |kind| {
        let bound = bind_to(&tree, &mut Nothing { text }, SqlType::Varchar(2), kind).unwrap();
        match evaluate(&bound, &mut Values::new()) {
            Ok(value) => text_of(&value).unwrap(),
            Err(Stop::Error(error)) => error.to_string(),
            Err(stop) => panic!("{stop:?}"),
        }
    };
    assert_eq!(value(CastKind::Explicit), "ab");
    assert_eq!(value(CastKind::Assignment), "ERROR 22001: value too long for type character varying(2)");
}
