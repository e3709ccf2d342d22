//! Transactions written in SQL and PL/pgSQL, and changes of definitions, each with what it has to do.

use albireo::SqlState;

use crate::model::{Cell, Change, Lane, Row, State, Table};
use crate::random::Random;

/// A statement, and what it has to do.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its text.
    pub text: String,
    /// What it changes, and how many rows it says it changed; or the error it ends with.
    pub effect: Result<(Vec<Change>, u64), SqlState>,
    /// Where it runs.
    pub lane: Lane,
}

/// A table that a world has from its beginning, or gets and loses.
struct Definition {
    name: &'static str,
    text: &'static str,
    indexes: &'static [&'static str],
}

/// Tables that are always there.
const LASTING: [Definition; 4] = [
    Definition {
        name: "account",
        text: "CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, cents BIGINT NOT NULL, \
               CHECK (cents >= 0)) PARTITION BY HASH (id)",
        indexes: &["account_pkey"],
    },
    Definition {
        name: "journal",
        text: "CREATE TABLE journal (source INTEGER NOT NULL, target INTEGER, cents BIGINT NOT NULL) \
               PARTITION BY HASH (source)",
        indexes: &[],
    },
    Definition {
        name: "note",
        text: "CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT, amount NUMERIC(12,2))",
        indexes: &["note_pkey"],
    },
    Definition {
        name: "thing",
        text: "CREATE TABLE thing (k INTEGER NOT NULL, v TEXT) PARTITION BY HASH (k)",
        indexes: &[],
    },
];

/// Tables that come and go.
const PASSING: [Definition; 3] = [
    Definition { name: "t0", text: "CREATE TABLE t0 (a INTEGER PRIMARY KEY, b TEXT)", indexes: &["t0_pkey"] },
    Definition {
        name: "t1",
        text: "CREATE TABLE t1 (a INTEGER NOT NULL, b TEXT) PARTITION BY HASH (a)",
        indexes: &[],
    },
    Definition {
        name: "t2",
        text: "CREATE TABLE t2 (a INTEGER PRIMARY KEY, b TEXT) PARTITION BY HASH (a)",
        indexes: &["t2_pkey"],
    },
];

/// Indexes that come and go: their table, their name, and what makes them.
const INDEXES: [(&str, &str, &str); 2] = [
    ("thing", "thing_v", "CREATE INDEX thing_v ON thing (v) WITH (keys = 'none')"),
    ("note", "note_amount", "CREATE UNIQUE INDEX note_amount ON note (amount)"),
];

/// The statement that makes a lasting table which is missing.
pub fn furnishing(state: &State) -> Option<Statement> {
    LASTING.iter().find(|definition| !state.tables.contains_key(definition.name)).map(create)
}

fn create(definition: &Definition) -> Statement {
    let change = Change::Create(definition.name, definition.indexes.to_vec());
    Statement { text: definition.text.to_owned(), effect: Ok((vec![change], 0)), lane: Lane::All }
}

/// A change of rows.
pub fn change(random: &mut Random, state: &State) -> Statement {
    match random.below(10) {
        0..5 => of_note(random, state.table("note"), state.has_index("note", "note_amount")),
        5..8 => of_thing(random, state.table("thing")),
        _ => {
            let definition = &PASSING[random.below(3) as usize];
            of_passing(random, definition.name, state.tables.get(definition.name))
        }
    }
}

fn literal(text: &Option<String>) -> String {
    text.as_ref().map_or("NULL".to_owned(), |text| format!("'{text}'"))
}

fn cell(text: Option<String>) -> Cell {
    text.map_or(Cell::Null, Cell::Text)
}

/// Replaces each of these rows by what `next` makes of it.
fn replaced(table: &'static str, rows: Vec<&Row>, next: impl Fn(&Row) -> Row) -> (Vec<Change>, u64) {
    let gone = rows.iter().map(|row| Change::Delete(table, (*row).clone()));
    let come = rows.iter().map(|row| Change::Insert(table, next(row)));
    (gone.chain(come).collect(), rows.len() as u64)
}

fn deleted(table: &'static str, rows: Vec<&Row>) -> (Vec<Change>, u64) {
    let count = rows.len() as u64;
    (rows.into_iter().map(|row| Change::Delete(table, row.clone())).collect(), count)
}

/// `note` is shared by all partitions; its amounts are unique while there is an index that says so.
fn of_note(random: &mut Random, note: &Table, amounts_are_unique: bool) -> Statement {
    let id = random.between(0, 25);
    let found: Vec<&Row> = note.keyed(id).collect();
    let others = |id: i64| note.rows().filter(move |row| row[0] != Cell::Int(id));
    let taken = |amount: &Cell, id: i64| {
        amounts_are_unique && *amount != Cell::Null && others(id).any(|row| row[2] == *amount)
    };
    let (text, effect) = match random.below(8) {
        0..3 => {
            let body = random.percent(80).then(|| random.text(600));
            let hundredths = random.percent(80).then(|| random.between(0, 99));
            let amount = hundredths.map_or("NULL".to_owned(), |cents| format!("7.{cents:02}"));
            let text = format!("INSERT INTO note VALUES ({id}, {}, {amount})", literal(&body));
            let amount = hundredths.map_or(Cell::Null, |cents| Cell::Int(700 + cents));
            let effect = match !found.is_empty() || taken(&amount, id) {
                true => Err(SqlState::UNIQUE_VIOLATION),
                false => Ok((vec![Change::Insert("note", vec![Cell::Int(id), cell(body), amount])], 1)),
            };
            (text, effect)
        }
        3..5 => {
            let more = random.between(1, 50);
            let text =
                format!("UPDATE note SET amount = amount + 0.{more:02}, body = body || '+' WHERE id = {id}");
            let next = |row: &Row| {
                let amount = row[2].int().map_or(Cell::Null, |amount| Cell::Int(amount + more));
                let body = match &row[1] {
                    Cell::Text(body) => Cell::Text(format!("{body}+")),
                    other => other.clone(),
                };
                vec![row[0].clone(), body, amount]
            };
            let wrong = found.iter().any(|row| taken(&next(row)[2], id));
            (text, if wrong { Err(SqlState::UNIQUE_VIOLATION) } else { Ok(replaced("note", found, next)) })
        }
        5..6 => {
            let to = random.between(0, 25);
            let text = format!("UPDATE note SET id = {to} WHERE id = {id}");
            let taken = !found.is_empty() && to != id && note.keyed(to).next().is_some();
            let next = |row: &Row| vec![Cell::Int(to), row[1].clone(), row[2].clone()];
            (text, if taken { Err(SqlState::UNIQUE_VIOLATION) } else { Ok(replaced("note", found, next)) })
        }
        6..7 => (format!("DELETE FROM note WHERE id = {id}"), Ok(deleted("note", found))),
        _ => {
            let text = format!("DELETE FROM note WHERE id >= {id} AND id < {}", id + 4);
            let within = |row: &&Row| row[0].int().is_some_and(|other| (id..id + 4).contains(&other));
            (text, Ok(deleted("note", note.rows().filter(within).collect())))
        }
    };
    Statement { text, effect, lane: Lane::All }
}

/// `thing` has no key: the same row may be there several times.
fn of_thing(random: &mut Random, things: &Table) -> Statement {
    let k = random.between(0, 12);
    let found: Vec<&Row> = things.keyed(k).collect();
    let (text, effect) = match random.below(7) {
        0..3 => {
            let v = random
                .percent(80)
                .then(|| random.pick(&["x", "y", "zebra", "a rather long text of a thing"]));
            let (v, twice) = (v.map(str::to_owned), random.percent(30));
            let value = format!("({k}, {})", literal(&v));
            let other = format!(", ({}, {})", k + 1, literal(&v));
            let text = format!("INSERT INTO thing VALUES {value}{}", if twice { &other } else { "" });
            let mut changes = vec![Change::Insert("thing", vec![Cell::Int(k), cell(v.clone())])];
            if twice {
                changes.push(Change::Insert("thing", vec![Cell::Int(k + 1), cell(v)]));
            }
            let count = changes.len() as u64;
            (text, (changes, count))
        }
        3..4 => {
            let v = random.text(40);
            let text = format!("UPDATE thing SET v = '{v}' WHERE k = {k}");
            (text, replaced("thing", found, |row| vec![row[0].clone(), Cell::text(&v)]))
        }
        4..5 => {
            let by = random.between(1, 3);
            let text = format!("UPDATE thing SET k = k + {by} WHERE k = {k}");
            (text, replaced("thing", found, |row| vec![Cell::Int(k + by), row[1].clone()]))
        }
        5..6 => {
            let within = |row: &&Row| row[1] == Cell::text("x");
            let rows = things.rows().filter(within).collect();
            ("DELETE FROM thing WHERE v = 'x'".to_owned(), deleted("thing", rows))
        }
        _ => (format!("DELETE FROM thing WHERE k = {k}"), deleted("thing", found)),
    };
    Statement { text, effect: Ok(effect), lane: Lane::Unknown }
}

fn of_passing(random: &mut Random, name: &'static str, table: Option<&Table>) -> Statement {
    let a = random.between(0, 15);
    let inserts = random.percent(75);
    let b = random.text(30);
    let text = match inserts {
        true => format!("INSERT INTO {name} VALUES ({a}, '{b}')"),
        false => format!("DELETE FROM {name} WHERE a = {a}"),
    };
    let effect = match table {
        None => Err(SqlState::UNDEFINED_TABLE),
        Some(table) if !inserts => Ok(deleted(name, table.keyed(a).collect())),
        Some(table) if !table.indexes.is_empty() && table.keyed(a).next().is_some() => {
            Err(SqlState::UNIQUE_VIOLATION)
        }
        Some(_) => Ok((vec![Change::Insert(name, vec![Cell::Int(a), Cell::Text(b)])], 1)),
    };
    Statement { text, effect, lane: Lane::Unknown }
}

/// A note gets a long text, and is there.
pub fn long_note(state: &State, id: i64, body: &str) -> Statement {
    let note = state.table("note");
    let found: Vec<&Row> = note.keyed(id).collect();
    let (text, effect) = if found.is_empty() {
        let row = vec![Cell::Int(id), Cell::text(body), Cell::Null];
        (format!("INSERT INTO note VALUES ({id}, '{body}', NULL)"), (vec![Change::Insert("note", row)], 1))
    } else {
        let next = |row: &Row| vec![row[0].clone(), Cell::text(body), row[2].clone()];
        (format!("UPDATE note SET body = '{body}' WHERE id = {id}"), replaced("note", found, next))
    };
    Statement { text, effect: Ok(effect), lane: Lane::All }
}

/// A thing more, with a long text.
pub fn long_thing(k: i64, v: &str) -> Statement {
    let row = vec![Cell::Int(k), Cell::text(v)];
    let effect = Ok((vec![Change::Insert("thing", row)], 1));
    Statement { text: format!("INSERT INTO thing VALUES ({k}, '{v}')"), effect, lane: Lane::Unknown }
}

/// A change of definitions.
pub fn definition(random: &mut Random, state: &State, with_routines: bool) -> Statement {
    let (text, effect) = match random.below(if with_routines { 12 } else { 10 }) {
        0..3 => {
            let definition = &PASSING[random.below(3) as usize];
            match state.tables.contains_key(definition.name) {
                true => (definition.text.to_owned(), Err(SqlState::DUPLICATE_TABLE)),
                false => return create(definition),
            }
        }
        3..5 => {
            let name = PASSING[random.below(3) as usize].name;
            let there = state.tables.contains_key(name);
            let effect =
                if there { Ok((vec![Change::Drop(name)], 0)) } else { Err(SqlState::UNDEFINED_TABLE) };
            (format!("DROP TABLE {name}"), effect)
        }
        5..6 => {
            let name = random.pick(&["t0", "t1", "t2", "thing", "note", "journal"]);
            let there = state.tables.contains_key(name);
            let effect =
                if there { Ok((vec![Change::Truncate(name)], 0)) } else { Err(SqlState::UNDEFINED_TABLE) };
            (format!("TRUNCATE {name}"), effect)
        }
        6..10 => index(random, state),
        10..11 => {
            let edition = random.between(1, 99);
            (pay(edition), Ok((vec![Change::Routine("pay", Some(edition))], 0)))
        }
        _ => {
            let there = state.routines.contains_key("pay");
            let gone = Ok((vec![Change::Routine("pay", None)], 0));
            ("DROP FUNCTION pay".to_owned(), if there { gone } else { Err(SqlState::UNDEFINED_FUNCTION) })
        }
    };
    Statement { text, effect, lane: Lane::All }
}

fn index(random: &mut Random, state: &State) -> (String, Result<(Vec<Change>, u64), SqlState>) {
    let (table, name, text) = random.pick(&INDEXES);
    if state.has_index(table, name) {
        return (format!("DROP INDEX {name}"), Ok((vec![Change::DropIndex(table, name)], 0)));
    }
    let effect = match table == "note" && amounts_repeat(state.table("note")) {
        true => Err(SqlState::UNIQUE_VIOLATION),
        false => Ok((vec![Change::AddIndex(table, name)], 0)),
    };
    (text.to_owned(), effect)
}

fn amounts_repeat(note: &Table) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    note.rows().any(|row| row[2] != Cell::Null && !seen.insert(&row[2]))
}

/// A routine that tells its edition, by what it writes and when it is asked.
fn pay(edition: i64) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION pay(p_id integer, p_cents bigint) RETURNS bigint LANGUAGE plpgsql AS $$ \
         DECLARE v bigint; \
         BEGIN \
             IF p_id < 0 THEN RETURN {edition}; END IF; \
             UPDATE account SET cents = cents + p_cents WHERE id = p_id RETURNING cents INTO v; \
             INSERT INTO journal VALUES (p_id, {edition}, p_cents); \
             RETURN v; \
         END $$"
    )
}

/// What `pay(id, cents)` does and gives.
///
/// # Errors
/// The SQLSTATE that it ends with.
pub fn payment(state: &State, id: i64, cents: i64) -> Result<(Vec<Change>, Option<i64>), SqlState> {
    let edition = *state.routines.get("pay").ok_or(SqlState::UNDEFINED_FUNCTION)?;
    let entry = Change::Insert("journal", vec![Cell::Int(id), Cell::Int(edition), Cell::Int(cents)]);
    let Some(row) = state.table("account").keyed(id).next() else { return Ok((vec![entry], None)) };
    let left = row[2].int().expect("cents are a number") + cents;
    if left < 0 {
        return Err(SqlState::CHECK_VIOLATION);
    }
    let next = vec![row[0].clone(), row[1].clone(), Cell::Int(left)];
    Ok((vec![Change::Delete("account", row.clone()), Change::Insert("account", next), entry], Some(left)))
}
