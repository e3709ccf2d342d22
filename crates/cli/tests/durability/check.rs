//! What must be true of the rows that writers left, wherever they were killed.

use std::collections::BTreeMap;
use std::path::Path;

use albireo::{Database, Durability, SqlError, Value};

use crate::writer::{ACCOUNTS, CENTS, WRITERS, config, transaction};

/// What was found.
#[derive(Default, Debug)]
pub struct Recovered {
    /// Transactions that are there.
    pub present: u64,
    /// Those among them that nobody was told of.
    pub unacknowledged: u64,
    /// Acknowledged ones that are not there.
    pub lost: u64,
    /// What must not be.
    pub wrong: Vec<String>,
    /// Each writer's last transaction.
    pub progress: BTreeMap<i32, i64>,
    /// What recovery left out at the end of the log.
    pub torn: Option<String>,
}

/// An entry: account, writer, number, position, amount.
type Entry = (i32, i32, i64, i64, i64);

/// Opens the database and compares it with what was acknowledged: each writer's last number.
pub fn check(directory: &Path, acknowledged: &BTreeMap<i32, i64>) -> Result<Recovered, SqlError> {
    let db = Database::open(directory, config(Durability::Group))?;
    let mut found = Recovered { torn: db.recovery().torn, ..Recovered::default() };
    let progress = pairs(&db, "SELECT writer, last FROM progress")?;
    let entries = entries(&db)?;
    check_progress(&progress, acknowledged, &mut found);
    check_wholeness(&progress, &entries, &mut found);
    check_positions(&pairs(&db, "SELECT id, last FROM place")?, &entries, &mut found);
    check_accounts(&pairs(&db, "SELECT id, cents FROM account")?, &entries, &mut found);
    found.progress = progress;
    Ok(found)
}

fn integer(value: &Value) -> i64 {
    match value {
        Value::Integer(number) => i64::from(*number),
        Value::BigInt(number) => *number,
        other => panic!("{other} is no whole number"),
    }
}

fn pairs(db: &Database, query: &str) -> Result<BTreeMap<i32, i64>, SqlError> {
    let rows = db.query(query, &[])?.rows();
    Ok(rows.iter().map(|row| (integer(&row[0]) as i32, integer(&row[1]))).collect())
}

fn entries(db: &Database) -> Result<Vec<Entry>, SqlError> {
    let rows = db.query("SELECT account, writer, number, position, amount FROM entry", &[])?.rows();
    let entry = |row: &Vec<Value>| {
        let numbers: Vec<i64> = row.iter().map(integer).collect();
        (numbers[0] as i32, numbers[1] as i32, numbers[2], numbers[3], numbers[4])
    };
    Ok(rows.iter().map(entry).collect())
}

fn check_progress(progress: &BTreeMap<i32, i64>, acknowledged: &BTreeMap<i32, i64>, found: &mut Recovered) {
    for writer in 0..WRITERS {
        let Some(&last) = progress.get(&writer) else {
            found.wrong.push(format!("writer {writer} is gone"));
            continue;
        };
        let told = acknowledged.get(&writer).copied().unwrap_or(0);
        found.present += last as u64;
        found.lost += (told - last).max(0) as u64;
        found.unacknowledged += (last - told).max(0) as u64;
        // A writer has one transaction under way.
        if last > told + 1 {
            found.wrong.push(format!("writer {writer} was told of {told}, and {last} is there"));
        }
    }
}

/// Each transaction up to a writer's last has its two entries, and there is no other.
fn check_wholeness(progress: &BTreeMap<i32, i64>, entries: &[Entry], found: &mut Recovered) {
    let mut sides: BTreeMap<(i32, i64), Vec<(i32, i64)>> = BTreeMap::new();
    for &(account, writer, number, _, amount) in entries {
        sides.entry((writer, number)).or_default().push((account, amount));
    }
    let all = progress.iter().flat_map(|(&writer, &last)| (1..=last).map(move |number| (writer, number)));
    for (writer, number) in all {
        let (from, to, amount) = transaction(writer, number);
        let mut wanted = vec![(from, -amount), (to, amount)];
        let mut has = sides.remove(&(writer, number)).unwrap_or_default();
        wanted.sort_unstable();
        has.sort_unstable();
        if has != wanted {
            found.wrong.push(format!("transaction {number} of writer {writer} has {has:?}, not {wanted:?}"));
        }
    }
    for ((writer, number), has) in sides {
        found.wrong.push(format!("transaction {number} of writer {writer} left {has:?} and no count"));
    }
}

/// The positions in each partition are 1, 2, 3, ... up to its count.
fn check_positions(places: &BTreeMap<i32, i64>, entries: &[Entry], found: &mut Recovered) {
    for place in 0..2 {
        let mut positions: Vec<i64> =
            entries.iter().filter(|entry| entry.0 % 2 == place).map(|entry| entry.3).collect();
        positions.sort_unstable();
        let last = places.get(&place).copied().unwrap_or(-1);
        if !positions.iter().copied().eq(1..=last) {
            let gap = positions.iter().zip(1..).find(|(has, due)| **has != *due);
            found.wrong.push(format!("partition {place} has counted to {last}; positions break at {gap:?}"));
        }
    }
}

fn check_accounts(accounts: &BTreeMap<i32, i64>, entries: &[Entry], found: &mut Recovered) {
    let mut cents: BTreeMap<i32, i64> = (0..ACCOUNTS).map(|id| (id, CENTS)).collect();
    for &(account, _, _, _, amount) in entries {
        *cents.entry(account).or_default() += amount;
    }
    if *accounts != cents {
        found.wrong.push(format!("accounts have {accounts:?}, and entries say {cents:?}"));
    }
    if accounts.values().sum::<i64>() != i64::from(ACCOUNTS) * CENTS {
        found.wrong.push("the sum of all accounts has changed".to_owned());
    }
}
