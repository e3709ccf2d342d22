//! Queries against what PostgreSQL 15 says of them.
//!
//! The case files have lines `statement => columns with types` or `statement => !SQLSTATE@position message`;
//! `record.py` asks PostgreSQL. `differences.list` has those where we say something else, with what we say.

mod sound;

use std::collections::HashMap;

use albireo_base::SqlError;
use albireo_sql::ast::Statement;
use albireo_sql::source::Source;
use albireo_sql::{Catalog, plan_ddl};

use super::{SelectPlan, bind_select};
use crate::expr::NoNames;

const CASES: [&str; 5] = [
    include_str!("joins.txt"),
    include_str!("groups.txt"),
    include_str!("windows.txt"),
    include_str!("queries.txt"),
    include_str!("values.txt"),
];

fn catalog() -> Catalog {
    let text = include_str!("schema.sql");
    let statements = albireo_sql::parse(text).expect("the schema is SQL");
    statements.iter().fold(Catalog::new(), |catalog, statement| {
        let plan = plan_ddl(&catalog, statement, text).expect("the schema can be made");
        catalog.with(&plan.changes)
    })
}

fn bound(catalog: &Catalog, text: &str) -> Result<SelectPlan, SqlError> {
    let statement = albireo_sql::parse_one(text)?;
    let Statement::Query(query) = &statement else { panic!("{text} is no query") };
    bind_select(catalog, query, &mut NoNames::new(Source::new(text)))
}

/// What we say; without a position if PostgreSQL gives none.
fn says(catalog: &Catalog, text: &str, expected: &str) -> String {
    let plan = match bound(catalog, text) {
        Ok(plan) => plan,
        Err(error) => {
            let place = match error.position() {
                Some(at) if expected.split(' ').next().is_none_or(|state| state.contains('@')) => {
                    format!("@{at}")
                }
                _ => String::new(),
            };
            return format!("!{}{place} {}", error.state(), error.message());
        }
    };
    if let Err(why) = sound::check(&plan) {
        return format!("unsound: {why}");
    }
    let columns: Vec<String> = plan.columns.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
    if columns.is_empty() { "nothing".to_owned() } else { columns.join(", ") }
}

/// A result with the names that we have for types.
fn plain(expected: &str) -> String {
    if expected.starts_with('!') {
        return expected.to_owned();
    }
    let mut text = expected.replace("character varying", "text").replace("bpchar", "character");
    while let Some(at) = text.find('(') {
        let end = text[at..].find(')').map_or(text.len(), |end| at + end + 1);
        text.replace_range(at..end, "");
    }
    text
}

fn cases(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")).map(|line| {
        let (text, expected) = line.split_once(" => ").expect("a case has an arrow");
        (text, expected)
    })
}

#[test]
fn query_has_the_columns_or_the_error_postgres_gives_it() {
    let catalog = catalog();
    let mut differences: HashMap<&str, &str> = cases(include_str!("differences.list")).collect();
    let mut wrong = Vec::new();
    for (text, expected) in CASES.into_iter().flat_map(cases) {
        let expected = plain(expected);
        let ours = differences.remove(text);
        let found = says(&catalog, text, ours.unwrap_or(&expected));
        if ours == Some(expected.as_str()) || found != ours.unwrap_or(&expected) {
            wrong.push(format!("{text} => {expected}\n    we say {found}"));
        }
    }
    wrong.extend(differences.into_keys().map(|text| format!("{text} is no case")));
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}
