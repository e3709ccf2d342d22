//! Routines of the corpus with something changed: none may make the parser or the binder panic or
//! overflow its stack, and every error says where it is.

#![allow(clippy::disallowed_methods, reason = "tests read files and start threads")]

mod library;
#[path = "random/rng.rs"]
#[allow(dead_code, reason = "another test uses more of it")]
mod rng;
#[path = "../../engine/tests/oracle/script.rs"]
#[allow(dead_code, reason = "written for several systems")]
mod script;

use std::path::PathBuf;

use albireo_base::SqlError;
use albireo_testing::{Test, test};

use library::Library;
use rng::Rng;

/// A database with the tables and routines of a file, and the statements that made the routines.
struct Home {
    library: Library,
    routines: Vec<String>,
}

fn homes() -> Vec<Home> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    paths.sort();
    let home = |path: PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let mut library = Library::new();
        let mut routines = Vec::new();
        for record in script::parse(&text).0 {
            let first: Vec<&str> = record.sql.split_whitespace().take(4).collect();
            let is_routine = first.contains(&"FUNCTION") || first.contains(&"PROCEDURE");
            if first[0] != "CREATE" {
                continue;
            }
            let _ = library.run(&record.sql);
            if is_routine {
                routines.push(record.sql);
            }
        }
        Home { library, routines }
    };
    paths.into_iter().map(home).filter(|home| !home.routines.is_empty()).collect()
}

/// Cuts a text into words, numbers, quoted texts, signs and blanks.
fn tokens(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            '\'' => rest[1..].find('\'').map_or(rest.len(), |at| at + 2),
            c if word(c) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            c if c.is_whitespace() => rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len()),
            '$' if rest.starts_with("$$") => 2,
            ':' if rest.starts_with(":=") || rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        all.push(token);
        rest = behind;
    }
    all
}

/// What stands where nobody expects it.
const STRANGE: &[&str] = &[
    "",
    " ",
    ";",
    "(",
    ")",
    "[",
    "]",
    "'",
    "\"",
    "$$",
    "$1",
    "$0",
    "$99999999999",
    "%",
    ":=",
    "..",
    "<<",
    ">>",
    "--",
    "/*",
    "*/",
    "::",
    ".",
    ",",
    "\\",
    "\0",
    "\u{a0}",
    "é",
    "日本",
    "\u{1F600}",
    "\u{301}",
    "\"ä b\"",
    "E'\\x'",
    "U&'\\00e4'",
    "1e999",
    "99999999999999999999999999999999999999999",
    "0x1F",
    "1_000",
    "NULL",
    "DEFAULT",
    "BEGIN",
    "END",
    "END;",
    "IF",
    "THEN",
    "ELSE",
    "CASE",
    "WHEN",
    "LOOP",
    "FOR",
    "IN",
    "EXIT",
    "RETURN",
    "RETURN NEXT",
    "RETURN QUERY",
    "INTO",
    "STRICT",
    "SELECT",
    "FROM",
    "WHERE",
    "VALUES",
    "RECORD",
    "%ROWTYPE",
    "%TYPE",
    "integer[]",
    "numeric(5,2)",
    "varchar",
    "nosuchtype",
    "EXCEPTION WHEN OTHERS THEN",
    "DECLARE",
    "RAISE",
    "FOUND",
    "SQLERRM",
    "OTHERS",
    "ROW(1, 2)",
    "ARRAY[]",
    "ARRAY[1]",
    "array_agg(1)",
    "count(*)",
    "(SELECT 1)",
    "(SELECT 1, 2)",
    "EXISTS (SELECT 1)",
    "x",
    "t",
    "a.b.c.d",
    "IS NULL",
    "AND",
    "NOT",
    "LIKE",
    "BETWEEN",
    "ORDER BY 1",
    "GROUP BY 2",
    "LIMIT -1",
    "UNION ALL",
    "ON CONFLICT",
    "RETURNING *",
    "OUT",
    "INOUT",
    "VARIADIC",
    "SETOF",
    "TABLE (a integer)",
    "void",
    "LANGUAGE sql",
    "STRICT",
    "IMMUTABLE",
    "CONSTANT",
    "NOT NULL",
    "COLLATE \"C\"",
    "CURSOR FOR",
    "EXECUTE 'x'",
    "interval '1 day'",
    "OVER ()",
];

/// Something nested in itself.
fn nested(rng: &mut Rng) -> String {
    let n = rng.pick(&[3, 30, 300, 20_000]);
    let (open, inner, close) = rng.pick(&[
        ("(", "1", ")"),
        ("(SELECT ", "1", ")"),
        ("CASE WHEN true THEN ", "1", " END"),
        ("NOT ", "true", ""),
        ("- ", "1", ""),
        ("coalesce(", "1", ", 2)"),
        ("ARRAY[", "1", "]"),
        ("1 + ", "1", ""),
        ("a[", "1", "]"),
        ("BEGIN ", "NULL;", " END;"),
        ("IF true THEN ", "NULL;", " END IF;"),
        ("LOOP ", "EXIT;", " END LOOP;"),
        ("FOR i IN 1..2 LOOP ", "NULL;", " END LOOP;"),
        ("SELECT * FROM (", "SELECT 1", ") s"),
        ("SELECT 1 UNION ", "SELECT 1", ""),
        ("WITH w AS (", "SELECT 1", ") SELECT 1"),
        ("1 = ANY (SELECT ", "1", ")"),
        ("'a' || ", "'b'", ""),
        ("true AND ", "false", ""),
        ("(1, ", "2", ")"),
        ("1::integer", "", ""),
    ]);
    format!("{}{inner}{}", open.repeat(n), close.repeat(n))
}

/// The text with one thing changed; `others` are texts to take parts from.
fn mutated(text: &str, others: &[String], rng: &mut Rng) -> String {
    let mut all: Vec<String> = tokens(text).into_iter().map(str::to_owned).collect();
    let (a, b) = (rng.below(all.len()), rng.below(all.len()));
    match rng.below(10) {
        0 => all.truncate(a),
        1 => {
            all.drain(a..(a + rng.below(8) + 1).min(all.len()));
        }
        2 => all.swap(a, b),
        3 => {
            let other = rng.pick(others);
            let parts = tokens(&other);
            let from = rng.below(parts.len());
            let to = (from + rng.below(12) + 1).min(parts.len());
            let end = (a + rng.below(6)).min(all.len());
            all.splice(a..end, parts[from..to].iter().map(|part| (*part).to_owned()));
        }
        4 => all[a] = all[b].clone(),
        5 => {
            let copied: Vec<String> = all[a.min(b)..a.max(b)].to_vec();
            let at = rng.below(all.len());
            all.splice(at..at, copied);
        }
        6 => all.insert(a, nested(rng)),
        7 => all[a] = nested(rng),
        8 => all.insert(a, rng.pick(STRANGE).to_owned()),
        _ => all[a] = rng.pick(STRANGE).to_owned(),
    }
    all.concat()
}

/// What is wrong with what was said to a text.
fn complaint(text: &str, result: Result<(), SqlError>) -> Option<String> {
    let Err(error) = result else { return None };
    if error.state().to_string().starts_with("XX") {
        return Some(format!("our own bug: {error}"));
    }
    match error.position() {
        None => Some(format!("no position: {} {error}", error.state())),
        Some(position) if !(1..=text.chars().count() + 1).contains(&position) => {
            Some(format!("outside of the text: {} {error}", error.state()))
        }
        Some(_) => None,
    }
}

fn try_all(test: Test) {
    let homes = homes();
    let all: Vec<String> = homes.iter().flat_map(|home| home.routines.clone()).collect();
    let mut found: Vec<(String, String)> = Vec::new();
    test.for_each_seed(0..2_000, |seed| {
        let mut rng = Rng::new(seed);
        let home = &homes[rng.below(homes.len())];
        let mut text = rng.pick(&home.routines);
        for _ in 0..=rng.below(3) {
            text = mutated(&text, &all, &mut rng);
            if text.is_empty() {
                break;
            }
            if let Some(complaint) = complaint(&text, home.library.check(&text)) {
                found.push((format!("{complaint}\n{}", test.repeat(seed)), text.clone()));
            }
        }
    });
    found.sort();
    found.dedup_by(|a, b| a.0.lines().next() == b.0.lines().next());
    let shown = |(complaint, text): &(String, String)| {
        let text: String = text.chars().take(1_500).collect();
        format!("{complaint}\n{text}\n")
    };
    assert!(found.is_empty(), "{}", found.iter().map(shown).collect::<Vec<_>>().join("----\n"));
}

#[test]
fn changed_routines_give_errors_with_a_place_and_never_a_panic() {
    let test = test!();
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(move || try_all(test)).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
