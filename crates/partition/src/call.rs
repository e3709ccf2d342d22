//! A call of a transaction.

use crate::Route;

/// Writes what says in the redo log which procedure ran with which arguments.
pub type Command<'a> = &'a dyn Fn(&mut Vec<u8>);

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
    /// How to say in the redo log what ran, if running it again gives the same rows; without, the log gets
    /// the rows.
    pub command: Option<Command<'a>>,
}

impl<'a> Call<'a> {
    /// One that runs now and whose rows are logged.
    #[inline]
    pub fn new(route: Route, name: &'a str) -> Self {
        Self { route, name, synchronous: None, time_us: None, command: None }
    }
}
