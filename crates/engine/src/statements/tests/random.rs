//! Random statements on every path and in PostgreSQL: the same rows, types and SQLSTATEs.
//!
//! Each statement runs in two databases, one of which reads and changes live rows wherever it can, while the
//! other one reads snapshots. Compared are values as text, the types of columns with precision and scale,
//! SQLSTATE, the order of rows where ORDER BY fixes it, and what changes leave in the tables.
//! `ALBIREO_TEST_POSTGRESQL=1` asks PostgreSQL too, see `crates/plpgsql/tests/against_postgresql.py`.
//!
//! Not compared is what we refuse (0A000), which must be little, and what PostgreSQL refuses. What differs from
//! PostgreSQL and is in docs/postgresql.md: CHAR(n) comes without the blanks at its end, the types
//! `character`, `character varying` and `interval` may be called text, and PostgreSQL computes constants that
//! no row needs. An internal error is a difference, whoever agrees.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use albireo_base::{SqlError, Value};
use albireo_testing::{Test, test};

use super::generate::{Generator, Statement};
use super::postgresql::{Answer, PostgreSql};
use crate::statements::path::ExecutionPath;
use crate::{Config, Database, Outcome};

const TABLES: &str = "
CREATE TABLE p (id INTEGER PRIMARY KEY, k SMALLINT NOT NULL, a INTEGER, n NUMERIC(10,2), m NUMERIC(12,5),
    s VARCHAR(12), c CHAR(4), d DATE, b BIGINT, r DOUBLE PRECISION, f BOOLEAN, ts TIMESTAMP, CHECK (k < 90))BY;
CREATE INDEX p_k ON p (k, id);
CREATE TABLE q (id INTEGER, line INTEGER, amount NUMERIC(8,3) NOT NULL, note TEXT, day DATE,
    PRIMARY KEY (id, line))BY;
CREATE TABLE g (a INTEGER PRIMARY KEY, b TEXT DEFAULT 'none', c NUMERIC(6,2) DEFAULT 1.5)";

const ROWS: &str = "
INSERT INTO p VALUES
    (1, 1, 3, 1.25, 0.00001, 'one', 'a', '2024-01-01', 10, 0.5, true, '2024-01-01 10:00:00'),
    (2, 1, 1, -2, 12.5, 'Zwölf', 'bb', '2024-02-29', 20, 1.5, false, NULL),
    (3, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 2, 7, 40.4, -3.14159, 'four', 'dddd', '2023-12-31', -4, -2.25, true, '2023-12-31 23:59:59.5'),
    (5, 3, 0, 0, 0, '', 'e', '1970-01-01', 5000000000, 0, false, '1970-01-01 00:00:00'),
    (6, 3, 1, 1.25, 1.25, '日本', 'Ä', '2024-02-29', 6, 1e10, NULL, '2024-02-29 12:34:56.789'),
    (7, 5, 42, 99999.99, 1000, 'a b', 'ab', '1999-12-31', 7, 3, true, '1999-12-31 00:00:00');
INSERT INTO q VALUES (1, 1, 1.5, 'x', '2024-01-01'), (1, 2, 2.125, NULL, '2024-01-02'), (2, 1, 10, 'y', NULL),
    (4, 1, 0, 'x', '2024-02-29'), (4, 7, -1, 'äz', '2023-12-31'), (6, 2, 1.25, '42', '1999-12-31'),
    (9, 1, 7, 'one', '2024-01-01');
INSERT INTO g (a) VALUES (1), (2); INSERT INTO g VALUES (3, 'three', NULL), (4, NULL, 4), (7, 'Ä', 0.25)";

pub(super) const CONTENTS: [(&str, &str); 3] = [
    ("p", "SELECT * FROM p ORDER BY id"),
    ("q", "SELECT * FROM q ORDER BY id, line"),
    ("g", "SELECT * FROM g ORDER BY a"),
];

/// Statements of a seed.
const STATEMENTS: usize = 40;

/// Differences that are shown.
const MOST: usize = 25;

pub(super) fn database(partitions: u16, path: ExecutionPath) -> Database {
    let db = Database::in_memory(Config { partitions, query_threads: 1, ..Config::default() }).unwrap();
    db.execute(&TABLES.replace("BY;", " PARTITION BY HASH (id);")).unwrap();
    db.execute(ROWS).unwrap();
    db.inner.statements.force(Some(path));
    db
}

fn answer(outcome: Result<Outcome, SqlError>) -> Answer {
    match outcome {
        Err(error) => Answer::Error(error.state().to_string(), error.to_string()),
        Ok(Outcome::Done { rows, .. }) => Answer::Done(rows),
        Ok(Outcome::Rows(result)) => {
            let text = |value: &Value| (!value.is_null()).then(|| value.to_string());
            Answer::Rows {
                columns: result.columns.iter().map(|c| (c.name.clone(), c.ty.to_string())).collect(),
                rows: result.rows().iter().map(|row| row.iter().map(text).collect()).collect(),
            }
        }
    }
}

/// An answer as it is compared with one of PostgreSQL's.
fn as_in_postgresql(answer: &Answer, like: &Answer) -> Answer {
    let (Answer::Rows { columns, rows }, Answer::Rows { columns: theirs, .. }) = (answer, like) else {
        return answer.clone();
    };
    let class = |ty: &String| match ty.split('(').next().unwrap_or_default() {
        "character" | "character varying" | "interval" => "text".to_owned(),
        other => other.to_owned(),
    };
    let of = |at: usize| theirs.get(at).map_or("", |(_, ty)| ty.as_str());
    let blank = |at: usize, text: &Option<String>| match text {
        Some(text) if of(at).starts_with("character(") || of(at) == "character" => {
            Some(text.trim_end_matches(' ').to_owned())
        }
        other => other.clone(),
    };
    Answer::Rows {
        columns: columns.iter().map(|(name, ty)| (name.clone(), class(ty))).collect(),
        rows: rows
            .iter()
            .map(|row| row.iter().enumerate().map(|(at, text)| blank(at, text)).collect())
            .collect(),
    }
}

/// Whether two answers are the same.
fn same(a: &Answer, b: &Answer, ordered: bool) -> bool {
    match (a, b) {
        (Answer::Error(a, _), Answer::Error(b, _)) => a == b,
        (Answer::Rows { columns, rows }, Answer::Rows { columns: others, rows: other_rows }) => {
            let sorted = |rows: &[Vec<Option<String>>]| {
                let mut rows = rows.to_vec();
                rows.sort();
                rows
            };
            // Numbers that are equal may come in any order, however many zeros they end in.
            let short = |text: &Option<String>| {
                text.as_ref().map(|text| match text.contains('.') {
                    true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                    false => text.clone(),
                })
            };
            let shorter = |rows: &[Vec<Option<String>>]| -> Vec<Vec<Option<String>>> {
                rows.iter().map(|row| row.iter().map(short).collect()).collect()
            };
            columns == others
                && sorted(rows) == sorted(other_rows)
                && (!ordered || shorter(rows) == shorter(other_rows))
        }
        (a, b) => a == b,
    }
}

fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Error(state, message) => format!("error {state} {message}"),
        Answer::Done(count) => format!("{count} rows changed"),
        Answer::Rows { columns, rows } => {
            let columns: Vec<String> = columns.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
            let row = |row: &Vec<Option<String>>| {
                let cells: Vec<&str> = row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
                format!("\n  {}", cells.join(" | "))
            };
            format!("{}{}", columns.join(" | "), rows.iter().take(12).map(row).collect::<String>())
        }
    }
}

fn is_refused(answer: &Answer) -> bool {
    matches!(answer, Answer::Error(state, _) if state == "0A000")
}

/// Whether an answer tells of a defect, ours or, in PostgreSQL's answer, theirs.
fn is_internal(answer: &Answer) -> bool {
    matches!(answer, Answer::Error(state, _) if state == "XX000")
}

/// Whether PostgreSQL computed in advance what no row needed, and failed.
fn is_eager(theirs: &Answer, ours: &Answer) -> bool {
    let needed = match ours {
        Answer::Error(..) => true,
        Answer::Done(count) => *count > 0,
        Answer::Rows { rows, .. } => !rows.is_empty(),
    };
    matches!(theirs, Answer::Error(state, _) if state.starts_with("22")) && !needed
}

/// What was seen.
#[derive(Default)]
struct Seen {
    differences: Vec<String>,
    /// Statements compared, and those of them that gave rows or changed some, that failed, and that ran on
    /// live rows.
    compared: usize,
    fruitful: usize,
    failed: usize,
    live: usize,
    /// Messages of what we refuse.
    refused: BTreeMap<String, usize>,
}

impl Seen {
    /// Compares the answers to a statement; whether all are the same.
    fn compare(
        &mut self,
        statement: &Statement,
        live: &Answer,
        snapshot: &Answer,
        theirs: Option<&Answer>,
    ) -> Option<String> {
        if let Some(refused) = [live, snapshot].into_iter().find(|answer| is_refused(answer)) {
            let Answer::Error(_, message) = refused else { return None };
            let what = message.lines().next().unwrap_or_default();
            let what = what.split(" (at character").next().unwrap_or(what);
            *self.refused.entry(what.to_owned()).or_default() += 1;
            return None;
        }
        self.compared += 1;
        match live {
            Answer::Error(..) => self.failed += 1,
            Answer::Done(count) => self.fruitful += usize::from(*count > 0),
            Answer::Rows { rows, .. } => self.fruitful += usize::from(!rows.is_empty()),
        }
        let mut text = String::new();
        if let Some(error) = [live, snapshot].into_iter().find(|answer| is_internal(answer)) {
            write!(text, "\n{}", shown(error)).unwrap();
        }
        if !same(live, snapshot, statement.ordered) {
            write!(text, "\nlive: {}\nsnapshot: {}", shown(live), shown(snapshot)).unwrap();
        }
        let tells = |theirs: &&Answer| !is_refused(theirs) && !is_internal(theirs) && !is_eager(theirs, live);
        if let Some(theirs) = theirs.filter(tells) {
            let (ours, theirs) = (as_in_postgresql(live, theirs), as_in_postgresql(theirs, theirs));
            if !same(&ours, &theirs, statement.ordered) {
                write!(text, "\nlive: {}\nPostgreSQL: {}", shown(&ours), shown(&theirs)).unwrap();
            }
        }
        (!text.is_empty()).then(|| format!("{}\n{:?}{text}", statement.sql, statement.values))
    }

    fn finish(self, least_live: usize) {
        let Self { differences, compared, fruitful, failed, live, refused } = self;
        let mut counts = format!(
            "{compared} compared, {fruitful} gave or changed rows, {failed} failed, {live} on live rows\n"
        );
        for (message, count) in &refused {
            writeln!(counts, "refused {count} times: {message}").unwrap();
        }
        println!("{counts}");
        let shown: Vec<String> = differences.iter().take(MOST).cloned().collect();
        assert!(differences.is_empty(), "{counts}{} differ:\n{}", differences.len(), shown.join("\n\n"));
        // Else it would have compared nothing, or a path with itself.
        let all = compared + refused.values().sum::<usize>();
        assert!(compared * 100 >= all * 97 && fruitful * 2 > compared, "{counts}");
        assert!(failed * 5 < compared && live * 100 >= compared * least_live, "{counts}");
    }
}

/// What a seed asks.
type Ask = fn(&mut Generator) -> Statement;

fn run_seed(seed: u64, ask: Ask, postgres: Option<&mut PostgreSql>, seen: &mut Seen, test: &Test) {
    let mut generator = Generator::new(seed);
    let statements: Vec<Statement> = (0..STATEMENTS).map(|_| ask(&mut generator)).collect();
    let partitions = if seed.is_multiple_of(2) { 3 } else { 1 };
    let (live, snapshot) =
        (database(partitions, ExecutionPath::Transactional), database(partitions, ExecutionPath::Analytical));
    // What a change leaves is asked after each.
    let contents = |statement: &Statement| {
        let changed = statement.sql.split_whitespace().nth(match &statement.sql[..6] {
            "INSERT" | "DELETE" => 2,
            "UPDATE" => 1,
            _ => return None,
        });
        CONTENTS.iter().find(|(table, _)| Some(*table) == changed).map(|(_, sql)| *sql)
    };
    let theirs = postgres.map(|postgres| {
        postgres.run(&format!("TRUNCATE p, q, g; {ROWS}"));
        let all: Vec<(&str, &[Value])> = statements
            .iter()
            .flat_map(|statement| {
                let after = contents(statement).map(|sql| (sql, &[][..]));
                std::iter::once((statement.sql.as_str(), statement.values.as_slice())).chain(after)
            })
            .collect();
        postgres.ask(&all)
    });
    let mut theirs = theirs.map(Vec::into_iter);
    let mut changes = 0;
    for statement in &statements {
        let theirs_now = theirs.as_mut().and_then(Iterator::next);
        let on = |db: &Database| answer(db.execute_with(&statement.sql, &statement.values));
        let (a, b) = (on(&live), on(&snapshot));
        let mut found = seen.compare(statement, &a, &b, theirs_now.as_ref());
        if let Some(sql) = contents(statement) {
            changes += 1;
            let theirs_after = theirs.as_mut().and_then(Iterator::next);
            let on = |db: &Database| answer(db.execute_with(sql, &[]));
            let after = Statement {
                sql: format!("{sql} after {}", statement.sql),
                values: statement.values.clone(),
                ordered: true,
            };
            let mut contents = Seen::default();
            let refused = is_refused(&a) || is_refused(&b);
            let theirs_after = theirs_after.filter(|_| !refused);
            found = found.or(contents.compare(&after, &on(&live), &on(&snapshot), theirs_after.as_ref()));
            if refused && (!is_refused(&a) || !is_refused(&b) || theirs.is_some()) {
                // From here on the tables are not the same.
                break;
            }
        }
        if let Some(found) = found {
            let repeat = test.repeat(seed);
            seen.differences.push(format!("{found}\nrepeat it with\n    {repeat}"));
            if changes > 0 {
                break;
            }
        }
    }
    seen.live += STATEMENTS.saturating_sub(live.inner.statements.refused());
}

fn on_every_path(test: &Test, seeds: Range<u64>, ask: Ask, least_live: usize) {
    let mut seen = Seen::default();
    test.for_each_seed(seeds, |seed| run_seed(seed, ask, None, &mut seen, test));
    seen.finish(least_live);
}

fn in_postgresql(test: &Test, seeds: Range<u64>, ask: Ask, least_live: usize) {
    if std::env::var_os("ALBIREO_TEST_POSTGRESQL").is_none() {
        println!("SKIPPED: ALBIREO_TEST_POSTGRESQL is not set");
        return;
    }
    let mut postgres = PostgreSql::connect();
    postgres.run(&TABLES.replace("BY;", ";").replace("CREATE TABLE", "CREATE TEMPORARY TABLE"));
    let mut seen = Seen::default();
    test.for_each_seed(seeds, |seed| run_seed(seed, ask, Some(&mut postgres), &mut seen, test));
    seen.finish(least_live);
}

#[test]
fn random_queries_give_the_same_on_every_path() {
    on_every_path(&test!(), 1..16, Generator::query, 50);
}

#[test]
fn random_changes_leave_the_same_on_every_path() {
    on_every_path(&test!(), 1..16, Generator::change, 70);
}

#[test]
fn random_queries_give_the_same_in_postgresql() {
    in_postgresql(&test!(), 1..16, Generator::query, 50);
}

#[test]
fn random_changes_leave_the_same_in_postgresql() {
    in_postgresql(&test!(), 1..16, Generator::change, 70);
}
