//! What the database has to hold: every committed transaction's changes, in the order of their commits.
//!
//! I-1 [`Model::state`] is what [`Model::base`] becomes by the changes of [`Model::history`], in order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use albireo::{Receipt, Value};
use albireo_bench::tpcc::input::Transaction;

/// A value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cell {
    /// NULL.
    Null,
    /// A whole number, or a NUMERIC without its point.
    Int(i64),
    /// Anything else, by its text.
    Text(String),
}

impl Cell {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The number, if it is one.
    pub fn int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }
}

impl From<&Value> for Cell {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::SmallInt(number) => Self::Int((*number).into()),
            Value::Integer(number) => Self::Int((*number).into()),
            Value::BigInt(number) => Self::Int(*number),
            Value::Decimal(number) => {
                i64::try_from(number.unscaled).map_or_else(|_| Self::text(number.to_string()), Self::Int)
            }
            other => Self::text(other.to_string()),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Int(number) => number.fmt(f),
            Self::Text(text) => write!(f, "'{text}'"),
        }
    }
}

/// A row.
pub type Row = Vec<Cell>;

/// A table.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Table {
    /// How often each row is there.
    pub rows: BTreeMap<Row, u32>,
    /// The names of its indexes.
    pub indexes: BTreeSet<String>,
}

impl Table {
    /// The rows, each as often as it is there.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().flat_map(|(row, &count)| std::iter::repeat_n(row, count as usize))
    }

    /// The rows whose first value is this number.
    pub fn keyed(&self, key: i64) -> impl Iterator<Item = &Row> {
        self.rows().filter(move |row| row[0] == Cell::Int(key))
    }
}

/// All tables and routines.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct State {
    /// Tables by their names.
    pub tables: BTreeMap<String, Table>,
    /// Routines by their names, with their editions.
    pub routines: BTreeMap<String, i64>,
}

/// A part of what a transaction did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A row is there once more.
    Insert(&'static str, Row),
    /// A row is there once less.
    Delete(&'static str, Row),
    /// A new table, with these indexes.
    Create(&'static str, Vec<&'static str>),
    /// A table is gone.
    Drop(&'static str),
    /// A table is empty.
    Truncate(&'static str),
    /// A table has one more index.
    AddIndex(&'static str, &'static str),
    /// A table has one index less.
    DropIndex(&'static str, &'static str),
    /// A routine is there, in this edition, or is gone.
    Routine(&'static str, Option<i64>),
}

impl State {
    /// A table that is there.
    ///
    /// # Panics
    /// It is not.
    pub fn table(&self, name: &str) -> &Table {
        &self.tables[name]
    }

    /// Whether a table has this index.
    pub fn has_index(&self, table: &str, index: &str) -> bool {
        self.tables.get(table).is_some_and(|table| table.indexes.contains(index))
    }

    fn table_mut(&mut self, name: &str) -> &mut Table {
        self.tables.get_mut(name).expect("a change is of a table that is there")
    }

    /// Makes a change.
    ///
    /// # Panics
    /// What it changes is not there: the model is wrong.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Insert(table, row) => *self.table_mut(table).rows.entry(row.clone()).or_default() += 1,
            Change::Delete(table, row) => {
                let rows = &mut self.table_mut(table).rows;
                let count = rows.get_mut(row).expect("a deleted row is there");
                *count -= 1;
                if *count == 0 {
                    rows.remove(row);
                }
            }
            Change::Create(table, indexes) => {
                let indexes = indexes.iter().map(|&index| index.to_owned()).collect();
                let before = self.tables.insert((*table).to_owned(), Table { indexes, ..Table::default() });
                assert!(before.is_none(), "a new table is new");
            }
            Change::Drop(table) => drop(self.tables.remove(*table).expect("a dropped table is there")),
            Change::Truncate(table) => self.table_mut(table).rows.clear(),
            Change::AddIndex(table, index) => {
                assert!(self.table_mut(table).indexes.insert((*index).to_owned()), "a new index is new");
            }
            Change::DropIndex(table, index) => {
                assert!(self.table_mut(table).indexes.remove(*index), "a dropped index is there");
            }
            Change::Routine(name, Some(edition)) => {
                self.routines.insert((*name).to_owned(), *edition);
            }
            Change::Routine(name, None) => drop(self.routines.remove(*name)),
        }
    }

    /// The first difference to `other`, in words.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.routines != other.routines {
            return Some(format!("routines {:?}, not {:?}", other.routines, self.routines));
        }
        let names: BTreeSet<_> = self.tables.keys().chain(other.tables.keys()).collect();
        names.into_iter().find_map(|name| match (self.tables.get(name), other.tables.get(name)) {
            (Some(mine), Some(theirs)) => mine.difference(theirs).map(|text| format!("table {name}: {text}")),
            (Some(_), None) => Some(format!("table {name} is missing")),
            (None, _) => Some(format!("table {name} should not be there")),
        })
    }
}

impl Table {
    /// The first difference to `other`, in words.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.indexes != other.indexes {
            return Some(format!("indexes {:?}, not {:?}", other.indexes, self.indexes));
        }
        let rows: BTreeSet<_> = self.rows.keys().chain(other.rows.keys()).collect();
        rows.into_iter().find_map(|row| {
            let count = |table: &Self| table.rows.get(row).copied().unwrap_or(0);
            let (mine, theirs) = (count(self), count(other));
            let shown = || row.iter().map(Cell::to_string).collect::<Vec<_>>().join(", ");
            (mine != theirs).then(|| format!("row ({}) is there {theirs} times, not {mine}", shown()))
        })
    }
}

/// What one transaction fills of TPC-C's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The items, which all partitions share.
    Items,
    /// A warehouse and its stock.
    Warehouse(i16),
    /// A district and all that is in it.
    District(i16, i16),
}

/// What a transaction did.
#[derive(Clone, Debug)]
pub enum Deed {
    /// These changes.
    Changes(Vec<Change>),
    /// Made one of TPC-C's tables or indexes.
    Define(String),
    /// Filled a part of TPC-C's tables.
    Load(Part),
    /// A transaction of TPC-C, begun when the clock showed so many nanoseconds.
    Tpcc(Box<Transaction>, u64),
}

/// A committed transaction that left a record in the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it did.
    pub deed: Deed,
    /// Its receipt, if it gave one, or that of a reader after it.
    pub receipt: Receipt,
    /// Where it ran.
    pub lane: Lane,
}

/// Where a transaction ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// In one partition.
    One(u16),
    /// Over all.
    All,
    /// Nobody said.
    Unknown,
}

/// A reader's receipt, which says that the first so many transactions of the history are durable.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The receipt.
    pub receipt: Receipt,
    /// How many.
    pub transactions: usize,
}

/// The database as it has to be.
#[derive(Debug, Default)]
pub struct Model {
    /// As the last recovery left it.
    pub base: State,
    /// Records in the log then.
    pub base_records: u64,
    /// What was committed since.
    pub history: Vec<Entry>,
    /// What readers were told since, and is not known to be durable.
    pub claims: Vec<Claim>,
    /// As it is now.
    pub state: State,
    /// So many of the history no crash may take back.
    pub acknowledged: usize,
    /// TPC-C's part of the log: what was done before the last recovery.
    pub tpcc: Vec<Deed>,
}

impl Model {
    /// Adds a committed transaction.
    pub fn commit(&mut self, entry: Entry) {
        if let Deed::Changes(changes) = &entry.deed {
            changes.iter().for_each(|change| self.state.apply(change));
        }
        self.history.push(entry);
    }

    /// Adds what a reader of a partition, or of all, was told: its receipt is for every transaction that it
    /// can have seen.
    pub fn read(&mut self, receipt: Receipt, lane: Lane) {
        let seen = |entry: &Entry| match lane {
            Lane::All => true,
            Lane::One(_) => entry.lane == lane || entry.lane == Lane::All,
            Lane::Unknown => false,
        };
        let transactions = self.history.iter().rposition(seen).map_or(0, |last| last + 1);
        if transactions > self.acknowledged {
            self.claims.push(Claim { receipt, transactions });
        }
    }

    /// The state after the first `count` transactions of the history.
    pub fn after(&self, count: usize) -> State {
        let mut state = self.base.clone();
        for entry in &self.history[..count] {
            if let Deed::Changes(changes) = &entry.deed {
                changes.iter().for_each(|change| state.apply(change));
            }
        }
        state
    }

    /// Takes the records behind the first so many for lost, whoever was told of them: those that the last recovery
    /// had found are history again.
    pub fn excuse(&mut self, records: u64) {
        assert!(records >= self.base_records, "no frame is damaged that a recovery had read");
        self.acknowledged = self.acknowledged.min((records - self.base_records) as usize);
    }

    /// Forgets all but the first `count` transactions of the history, which a recovery has brought back.
    pub fn recovered(&mut self, count: usize) {
        self.base = self.after(count);
        self.base_records += count as u64;
        let kept = self.history.drain(..).take(count).map(|entry| entry.deed);
        self.tpcc.extend(kept.filter(|deed| !matches!(deed, Deed::Changes(_))));
        self.claims.clear();
        self.state = self.base.clone();
        self.acknowledged = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(number: i64) -> Entry {
        let deed = Deed::Changes(vec![Change::Insert("t", vec![Cell::Int(number)])]);
        Entry { deed, receipt: Receipt::default(), lane: Lane::One(0) }
    }

    #[test]
    fn model_recovered_to_a_prefix_has_nothing_of_what_came_later() {
        let mut model = Model::default();
        let create = Deed::Changes(vec![Change::Create("t", vec![])]);
        model.commit(Entry { deed: create, receipt: Receipt::default(), lane: Lane::All });
        (1..=3).for_each(|number| model.commit(insert(number)));
        assert_eq!(model.after(4), model.state);
        let difference = model.state.difference(&model.after(3)).unwrap();
        assert_eq!(difference, "table t: row (3) is there 0 times, not 1");
        model.recovered(2);
        assert_eq!(model.state.table("t").rows().count(), 1);
        assert_eq!((model.base_records, model.history.len()), (2, 0));
    }
}
