//! Cold rows in a run: chunks cool, are frozen and leave memory, and cannot always be read again.
//!
//! In some worlds, evicted rows cannot be read well for a while, now and then: reads of their files fail, are short or give
//! wrong bytes, or bytes in the files change. These are files of their own, or those of archives, which have what was frozen
//! before; in an archive, nothing changes at rest while the database is open. Before that, rows get long texts, and tables
//! are frozen and evicted, so that there is something to read. Meanwhile a few queries more are asked than in other worlds,
//! and afterwards all tables are read. All of this is drawn from random numbers of its own, so that worlds without it are
//! what they would be if there were none.
//!
//! I-1 Whoever cannot read a row is told so, with 58030 or XX001 and the name of the file, and has changed nothing.
//! I-2 Nobody reads a row wrong, or is told of bytes that have not changed.
//! I-3 When reads are sound again, all rows are there as they have to be. What has changed in a file stays unreadable until
//! the database is opened again: the log and the archives have these rows, and the files are made anew.

use std::ops::Range;
use std::path::{Path, PathBuf};

use albireo::{Outcome, SqlError, SqlState, TableDef};
use albireo_env::ReadFaults;

use super::archives::archive_directory;
use super::damage::Harm;
use super::{Simulation, shown};
use crate::bank::{BankTransaction, LAST_ACCOUNT};
use crate::check::{self, Wrong};
use crate::life::Life;
use crate::machine::DIRECTORY;
use crate::random::Random;
use crate::statements;

/// What the names of files with evicted rows alone end in, and those of archives' files.
const EXTENSION: &str = "cold";
const OF_ARCHIVES: &str = "arrow";
/// Of 100 times that reads go wrong, so often it is those of archives' files.
const ARCHIVES: u64 = 30;
/// Rows of a table that get long texts together, and the letters of each: chunks of fewer bytes do not leave memory.
const LONG_ROWS: i64 = 5;
const LETTERS: u64 = 500;

/// What is wrong with evicted rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// Reads fail.
    Failing,
    /// Reads give a part, perhaps nothing.
    Short,
    /// Reads give other bytes than the file has.
    Damaged,
    /// Bytes in files have changed.
    AtRest,
}

/// Evicted rows in a run, and what is wrong with reading them.
#[derive(Debug)]
pub(super) struct Cold {
    random: Random,
    /// What is wrong now, with which files, and for how many more actions.
    fault: Option<(Fault, &'static str, u64)>,
    /// What has changed in files since the database was opened.
    harms: Vec<Harm>,
}

impl Cold {
    /// Nothing is wrong yet; what will be is drawn from these numbers.
    pub(super) fn new(random: Random) -> Self {
        Self { random, fault: None, harms: Vec::new() }
    }

    /// Whether an error says of evicted rows what is so.
    fn explains(&self, error: &SqlError) -> bool {
        let Some((path, told)) = told(error) else { return false };
        let of_these = |extension: &str| path.extension().is_some_and(|other| other == extension);
        let fault = self.fault.filter(|(_, extension, _)| of_these(extension)).map(|(fault, ..)| fault);
        let has_changed = |place: Range<u64>| self.harms.iter().any(|harm| harm.hits(&path, &place));
        let is_so = match told {
            Told::Unreadable => fault == Some(Fault::Failing),
            Told::Ends(at) => fault == Some(Fault::Short) || has_changed(at..at + 1),
            Told::Changed(place) => fault == Some(Fault::Damaged) || has_changed(place),
        };
        is_so && (is_cold(&path) || path.starts_with(archive_directory()))
    }
}

/// What an error says of a file with evicted rows.
#[derive(PartialEq, Eq, Debug)]
enum Told {
    /// It cannot be read.
    Unreadable,
    /// It ends at this byte.
    Ends(u64),
    /// It has other bytes at this place than were written.
    Changed(Range<u64>),
}

/// The file that an error names because evicted rows in it cannot be read, and what it says of it; `None` of other errors,
/// and if the SQLSTATE is another than it has to be.
fn told(error: &SqlError) -> Option<(PathBuf, Told)> {
    let text = error.message();
    if let Some((_, rest)) = text.split_once("could not read evicted rows from \"") {
        let (path, _) = rest.split_once('"')?;
        let is_right = error.state() == SqlState::IO_ERROR;
        return is_right.then(|| (PathBuf::from(path), Told::Unreadable));
    }
    let (_, rest) = text.split_once("evicted rows in \"")?;
    let (path, what) = rest.split_once("\" are damaged: ")?;
    let mut numbers = what.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
    let told = match (numbers.next()?, numbers.next()) {
        (at, None) => Told::Ends(at),
        (bytes, Some(offset)) => Told::Changed(offset..offset + bytes),
    };
    let is_right = error.state() == SqlState::DATA_CORRUPTED;
    is_right.then(|| (PathBuf::from(path), told))
}

/// Whether a file is one with evicted rows.
fn is_cold(path: &Path) -> bool {
    path.starts_with(Path::new(DIRECTORY).join("cold"))
        && path.extension().is_some_and(|extension| extension == EXTENSION)
}

/// Whether the model knows what is in memory: what a call did that was not acknowledged, nobody knows.
fn is_known(life: &Life) -> bool {
    !life.is_synchronous || life.refusal() != Some(SqlState::IO_ERROR)
}

impl Simulation {
    /// One of the tables that have rows of their own; none where there are none, or others have the memory.
    fn any_table(&mut self, life: &Life) -> Option<String> {
        let tables = &self.model.state.tables;
        if life.bank.is_none() || tables.is_empty() {
            return None;
        }
        let which = self.random.below(tables.len() as u64) as usize;
        tables.keys().nth(which).cloned()
    }

    /// Has a table's chunks cool, or those that do be hot again: nothing that can be seen changes, and nothing is logged.
    pub(super) fn cool(&mut self, life: &Life) -> Result<(), String> {
        let Some(name) = self.any_table(life) else { return Ok(()) };
        let cools = self.random.percent(70);
        let done = life.database.cool_table(&name, cools);
        let chunks = done.map_err(|error| format!("{name} cannot cool: {error}"))?;
        let count = if cools { &mut self.counts.cooled } else { &mut self.counts.warmed };
        *count += u64::from(chunks > 0);
        self.trace.note(format_args!("{} {name}: {chunks} chunks", if cools { "cool" } else { "warm" }));
        Ok(())
    }

    /// Freezes a table, and has what is frozen leave memory now and then: nothing that can be seen changes, and nothing is
    /// logged.
    pub(super) fn freeze(&mut self, life: &Life) -> Result<(), String> {
        let Some(name) = self.any_table(life) else { return Ok(()) };
        let emptied = self.freeze_table(life, &name)?;
        let evicted = if self.random.below(2) == 0 { self.evict(life) } else { 0 };
        self.trace.note(format_args!("freeze {name}: emptied chunks {emptied}, evicted {evicted} bytes"));
        Ok(())
    }

    /// Freezes a table; whether that emptied chunks of it.
    fn freeze_table(&mut self, life: &Life, name: &str) -> Result<bool, String> {
        let outcomes = match life.database.execute(&format!("CALL albireo.freeze('{name}')")) {
            Err(error) if self.excuses("freeze", &error) => return Ok(false),
            frozen => frozen.map_err(|error| format!("{name} cannot be frozen: {error}"))?,
        };
        let emptied = outcomes.iter().any(|outcome| {
            matches!(outcome, Outcome::Done { notices, .. } if notices.iter().any(|notice| notice.contains("emptied")))
        });
        self.counts.frozen += 1;
        self.counts.emptied += u64::from(emptied);
        Ok(emptied)
    }

    /// All that is frozen leaves memory, unless the disk is full; of how many bytes.
    fn evict(&mut self, life: &Life) -> u64 {
        let evicted = life.database.evict_frozen();
        self.counts.evicted += u64::from(evicted > 0);
        evicted
    }

    /// An analytical query.
    pub(super) fn query(&mut self, life: &Life) -> Result<(), String> {
        if life.bank.is_none() {
            return Ok(());
        }
        let asked = check::analytical(&life.database, &self.model.state);
        self.ask(asked).map(drop)
    }

    /// The answer to a question; none if it needs evicted rows that cannot be read.
    fn ask<T>(&mut self, asked: Result<T, Wrong>) -> Result<Option<T>, String> {
        match asked {
            Ok(answer) => Ok(Some(answer)),
            Err(Wrong::Failed { what, error }) if self.excuses(&what, &error) => Ok(None),
            Err(wrong) => Err(wrong.into()),
        }
    }

    /// Whether somebody fails, and rightly, because evicted rows cannot be read; that is noted then.
    pub(super) fn excuses(&mut self, what: &str, error: &SqlError) -> bool {
        let is_right = self.cold.explains(error);
        if is_right {
            self.trace.note(format_args!("{what}: {}: {}", error.state(), error.message()));
            self.counts.unread += 1;
        }
        is_right
    }

    /// Before an action: in some worlds, evicted rows cannot be read well from now on, or they can again.
    pub(super) fn trouble_reads(&mut self, life: &mut Life) -> Result<(), String> {
        if let Some((.., left)) = &mut self.cold.fault {
            if *left == 0 {
                return self.read_again(life);
            }
            *left -= 1;
            return self.look(life);
        }
        let percent = self.world.failing_reads;
        if percent == 0 || life.bank.is_none() || !self.cold.random.percent(percent) {
            return Ok(());
        }
        self.leave_memory(life)?;
        if !self.is_over(life) {
            self.begin_fault();
        }
        Ok(())
    }

    /// The life ends: the next one makes the files of evicted rows anew.
    pub(super) fn forget_cold(&mut self) {
        self.end_fault();
        self.cold.harms.clear();
    }

    /// Freezes tables and has them leave memory, after some rows got long texts.
    fn leave_memory(&mut self, life: &mut Life) -> Result<(), String> {
        for table in ["account", "note", "thing"] {
            if self.cold.random.percent(60) {
                self.lengthen(life, table)?;
            }
        }
        let catalog = life.database.catalog();
        for def in catalog.tables() {
            // TPC-C's have many rows.
            let is_small = self.model.state.tables.contains_key(&def.name);
            let is_chosen = self.cold.random.percent(if is_small { 70 } else { 15 });
            if is_chosen && !self.is_over(life) {
                self.freeze_table(life, &def.name)?;
            }
        }
        if !self.is_over(life) {
            let evicted = self.evict(life);
            self.trace.note(format_args!("evicted {evicted} bytes"));
        }
        Ok(())
    }

    /// Gives rows of one partition long texts.
    fn lengthen(&mut self, life: &mut Life, table: &str) -> Result<(), String> {
        let step = i64::from(self.world.partitions);
        let first = self.cold.random.between(0, LAST_ACCOUNT - step * (LONG_ROWS - 1));
        for id in (0..LONG_ROWS).map(|row| first + row * step) {
            if self.is_over(life) {
                return Ok(());
            }
            let text = self.cold.random.letters(LETTERS);
            match table {
                "account" => {
                    let is_there = self.model.state.table("account").keyed(id).next().is_some();
                    let work = match is_there {
                        true => BankTransaction::Rename { id, owner: text },
                        false => BankTransaction::Open { id, owner: text, cents: 100 },
                    };
                    self.run_bank(life, &work, false)?;
                }
                "note" => {
                    let statement = statements::long_note(&self.model.state, id, &text);
                    self.execute(life, &statement)?;
                }
                _ => self.execute(life, &statements::long_thing(id, &text))?,
            }
        }
        Ok(())
    }

    /// Evicted rows cannot be read well from now on.
    fn begin_fault(&mut self) {
        let random = &mut self.cold.random;
        let fault = random.pick(&[Fault::Failing, Fault::Short, Fault::Damaged, Fault::AtRest]);
        let per_mille = random.pick(&[1000, 300, 60]);
        let actions = random.below(15) + 3;
        let none = ReadFaults::default();
        let faults = match fault {
            Fault::Failing => ReadFaults { failing_per_mille: per_mille, ..none },
            Fault::Short => ReadFaults { short_per_mille: per_mille, ..none },
            Fault::Damaged => ReadFaults { damaged_per_mille: per_mille, ..none },
            Fault::AtRest => none,
        };
        let of_archives = fault != Fault::AtRest && random.percent(ARCHIVES);
        let extension = if of_archives { OF_ARCHIVES } else { EXTENSION };
        self.trace.note(format_args!(
            "evicted rows: {fault:?} for {actions} actions, {faults:?} of .{extension} files"
        ));
        self.counts.read_faults += 1;
        self.cold.fault = Some((fault, extension, actions));
        self.machine.disk.set_read_faults(extension, faults);
        if fault == Fault::AtRest {
            self.spoil();
        }
    }

    /// Damages some files of evicted rows.
    fn spoil(&mut self) {
        let files = self.machine.disk.files().into_iter();
        let cold = files.filter(|(path, bytes)| is_cold(path) && !bytes.is_empty());
        let paths: Vec<PathBuf> = cold.map(|(path, _)| path).collect();
        if paths.is_empty() {
            return;
        }
        for _ in 0..=self.cold.random.below(3) {
            let path = paths[self.cold.random.below(paths.len() as u64) as usize].clone();
            let bytes = self.machine.disk.contents(&path).map_or(0, |bytes| bytes.len() as u64);
            let at = self.cold.random.below(bytes.max(1)) as usize;
            let harm = Harm::new(&self.machine.disk, path, at, true, &mut self.cold.random);
            if let Some(harm) = harm {
                self.trace.note(format_args!("{} is damaged from byte {}", harm.path.display(), harm.from));
                self.counts.spoiled += 1;
                self.cold.harms.push(harm);
            }
        }
    }

    /// Asks a query now and then: few of the run's own need rows that are not in memory.
    fn look(&mut self, life: &Life) -> Result<(), String> {
        let (database, state) = (&life.database, &self.model.state);
        let asked = match self.cold.random.below(16) {
            0 => check::analytical(database, state),
            1 => check::letters(database, state),
            2 if is_known(life) => check::index(database, state, &mut self.cold.random),
            _ => return Ok(()),
        };
        self.ask(asked).map(drop)
    }

    /// Reads are sound again.
    fn end_fault(&mut self) {
        if let Some((fault, ..)) = self.cold.fault.take() {
            self.machine.disk.set_read_faults(EXTENSION, ReadFaults::default());
            self.trace.note(format_args!("evicted rows: no more {fault:?}"));
        }
    }

    /// Reads are sound again: so all tables can be read, and nobody who failed has changed anything.
    fn read_again(&mut self, life: &Life) -> Result<(), String> {
        self.end_fault();
        let catalog = life.database.catalog();
        for def in catalog.tables() {
            self.check_table(life, def)?;
        }
        self.counts.read_again += 1;
        match life.database.execute("CALL albireo.verify()") {
            Ok(_) => Ok(()),
            Err(error) if self.excuses("verify", &error) => Ok(()),
            Err(error) => Err(format!("evicted rows are not sound: {}", shown(&error))),
        }
    }

    /// Whether a table is as it has to be, unless it is in a file that has changed.
    fn check_table(&mut self, life: &Life, def: &TableDef) -> Result<(), String> {
        let read = || check::rows(&life.database, def);
        let Some(rows) = self.ask(read())? else {
            self.counts.stayed_unread += 1;
            return match self.ask(read())? {
                None => Ok(()),
                Some(_) => Err(format!("table {} can be read although its file has changed", def.name)),
            };
        };
        // Of TPC-C's, recovery says whether they are right.
        let wanted = self.model.state.tables.get(&def.name).filter(|_| is_known(life));
        let Some(wanted) = wanted else { return Ok(()) };
        match wanted.difference(&check::table(def, &rows)) {
            Some(difference) => Err(format!("table {}: {difference}", def.name)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_tells_which_file_cannot_be_read_and_where() {
        let error = |state, text: &str| SqlError::new(state, text);
        let file = PathBuf::from("/data/cold/0000000003.cold");
        let unreadable = "could not read evicted rows from \"/data/cold/0000000003.cold\": no \"x\"";
        let is_unreadable = Some((file.clone(), Told::Unreadable));
        assert_eq!(told(&error(SqlState::IO_ERROR, unreadable)), is_unreadable);
        assert_eq!(told(&error(SqlState::DATA_CORRUPTED, unreadable)), None);
        let damaged = |what: &str| {
            let text = format!("evicted rows in \"/data/cold/0000000003.cold\" are damaged: {what}");
            told(&error(SqlState::DATA_CORRUPTED, &text))
        };
        assert_eq!(damaged("it ends at byte 77"), Some((file.clone(), Told::Ends(77))));
        let changed = damaged("the checksum of 300 bytes at offset 1200 is wrong");
        assert_eq!(changed, Some((file, Told::Changed(1200..1500))));
        assert_eq!(told(&error(SqlState::DATA_CORRUPTED, "a frame is damaged")), None);
    }
}
