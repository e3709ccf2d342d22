//! A call of a transaction.

use std::cell::Cell;

use albireo_redo::Kind;

use crate::Route;

/// How to say in the redo log what ran, if running it again gives the same rows: a command record.
#[derive(Clone, Copy)]
pub struct Command<'a> {
    /// What kind of record it is.
    pub kind: Kind,
    /// Appends which procedure it was with which arguments; before come how many rows it inserted and deleted.
    pub write: &'a dyn Fn(u64, &mut Vec<u8>),
    /// Transactions with at most so many changes have the rows in the log nevertheless: a change is a row that
    /// came or went, an entry of an index, or a value.
    pub rows_up_to: usize,
}

/// What one transaction cost.
#[derive(Clone, Debug, Default)]
pub struct Measure {
    /// Nanoseconds from its beginning to its commit.
    pub run_ns: Cell<u64>,
    /// Nanoseconds in which its record was made.
    pub record_ns: Cell<u64>,
    /// Bytes of what the record says, without its head.
    pub record_bytes: Cell<u64>,
    /// Its changes, as [`Command::rows_up_to`] counts them; 0 if it has no record.
    pub changes: Cell<u64>,
}

/// Where a transaction runs, how it is known, and what is promised of it.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// Where it runs.
    pub route: Route,
    /// Its name, for errors.
    pub name: &'a str,
    /// Whether the caller hears of it only when a crash cannot take it back; `None`: as the log was started.
    pub synchronous: Option<bool>,
    /// When it runs, in microseconds since 1970, if not now: of a transaction that is done again.
    pub time_us: Option<i64>,
    /// Its command record; without, the log gets the rows.
    pub command: Option<Command<'a>>,
    /// Where to put what it cost, if that is to be known.
    pub measure: Option<&'a Measure>,
}

impl<'a> Call<'a> {
    /// One that runs now and whose rows are logged.
    #[inline]
    pub fn new(route: Route, name: &'a str) -> Self {
        Self { route, name, synchronous: None, time_us: None, command: None, measure: None }
    }
}
