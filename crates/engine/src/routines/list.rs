//! The routines of a database as a client lists them.

use albireo_plpgsql::body::{Formal, Place, Signature};
use albireo_plpgsql::define::{Language, Mode, RoutineKind};

use crate::Database;

/// A stored routine, in PostgreSQL's words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoutineSummary {
    /// Its name.
    pub name: String,
    /// Whether it is a procedure; it is a function otherwise.
    pub is_procedure: bool,
    /// `integer`, `SETOF text`, `TABLE(a integer, b text)`; nothing for a procedure.
    pub result: String,
    /// `a integer, OUT b text DEFAULT 'x'`.
    pub arguments: String,
    /// `plpgsql` or `sql`.
    pub language: &'static str,
    /// The statement that defined it.
    pub source: String,
}

impl Database {
    /// All stored routines, sorted by name and arguments.
    pub fn routines(&self) -> Vec<RoutineSummary> {
        let library = self.library();
        let mut routines: Vec<RoutineSummary> = library
            .definitions()
            .map(|(signature, language, source)| RoutineSummary {
                name: signature.name.clone(),
                is_procedure: signature.kind == RoutineKind::Procedure,
                result: result(signature),
                arguments: joined(signature.parameters.iter().map(parameter)),
                language: match language {
                    Language::PlPgSql => "plpgsql",
                    Language::Sql => "sql",
                },
                source: source.to_owned(),
            })
            .collect();
        routines.sort_by(|a, b| (&a.name, &a.arguments).cmp(&(&b.name, &b.arguments)));
        routines
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

fn parameter(formal: &Formal) -> String {
    let mut words = Vec::new();
    match formal.mode {
        Mode::In => {}
        Mode::Out => words.push("OUT".to_owned()),
        Mode::InOut => words.push("INOUT".to_owned()),
    }
    if !formal.name.is_empty() {
        words.push(formal.name.clone());
    }
    words.push(formal.place.ty().to_string());
    if let Some(default) = &formal.default {
        words.push(format!("DEFAULT {}", default.tree));
    }
    words.join(" ")
}

fn result(signature: &Signature) -> String {
    let shape = &signature.result;
    if signature.kind == RoutineKind::Procedure {
        return String::new();
    }
    let has_out = signature.parameters.iter().any(|formal| formal.mode.is_out());
    if shape.setof && shape.from_variables && !has_out {
        let column = |(name, place): &(String, Place)| format!("{name} {}", place.ty());
        return format!("TABLE({})", joined(shape.columns.iter().map(column)));
    }
    let setof = if shape.setof { "SETOF " } else { "" };
    format!("{setof}{}", shape.place.ty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn routines_are_listed_with_results_and_arguments_as_postgresql_writes_them() {
        let db = Database::in_memory(Config::default()).unwrap();
        let script = "
            create function plus(a int, b numeric default 1) returns numeric language sql as $$ select a + b $$;
            create function pairs(n int) returns table (x int, y text) language plpgsql as $$
                begin return query select n, 'a'; end $$;
            create function all_of() returns setof bigint language plpgsql as $$ begin return next 1; end $$;
            create procedure \"Pay\"(inout cents bigint, out done boolean) language plpgsql as $$
                begin done := true; end $$;";
        db.execute(script).unwrap();
        let found = db.routines();
        let shown: Vec<[&str; 3]> =
            found.iter().map(|r| [r.name.as_str(), r.result.as_str(), r.arguments.as_str()]).collect();
        let expected = [
            ["Pay", "", "INOUT cents bigint, OUT done boolean"],
            ["all_of", "SETOF bigint", ""],
            ["pairs", "TABLE(x integer, y text)", "n integer"],
            ["plus", "numeric", "a integer, b numeric DEFAULT 1"],
        ];
        assert_eq!(shown, expected);
        assert!(found[0].is_procedure && found[0].language == "plpgsql" && found[3].language == "sql");
        assert!(found[3].source.starts_with("create function plus"), "{}", found[3].source);
    }
}
