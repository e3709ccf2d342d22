//! One run: lives of processes on a machine, and the model beside them.

mod archives;
mod cold;
mod damage;

use std::fmt::Debug;
use std::time::Duration;

use albireo::{Database, Durability, LogCompleteness, Receipt, SqlError, SqlState, Value};
use albireo_env::Faults;
use albireo_redo::Step;

use archives::Expected;
use cold::Cold;
use damage::{Harm, LogHarm};

use crate::bank::{Bank, BankTransaction, LAST_ACCOUNT};
use crate::check;
use crate::life::Life;
use crate::machine::{DIRECTORY, Machine};
use crate::model::{Change, Deed, Entry, Lane, Model};
use crate::random::Random;
use crate::statements::{self, Statement};
use crate::tpcc::Tpcc;
use crate::trace::Trace;
use crate::world::World;

/// The most crashes of one recovery.
const CRASHES_IN_A_ROW: u64 = 3;

/// What may happen while a database is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    /// A transaction in Rust.
    Bank,
    /// A statement that changes rows.
    Change,
    /// A change of definitions.
    Define,
    /// A call of the routine in PL/pgSQL.
    Pay,
    /// The next of TPC-C: its tables, its rows, its transactions.
    Tpcc,
    /// The log makes a batch durable.
    Step,
    /// The log makes the next segment.
    Prepare,
    /// The control files say how far the log is.
    Mark,
    /// The log closes a batch.
    Seal,
    /// Time passes.
    Wait,
    /// An analytical query.
    Query,
    /// The disk runs full, or has room again.
    Fill,
    /// CHECKPOINT, and what happens while it writes an archive.
    Archive,
    /// The rows of a table are frozen, those of chunks that have many holes move, and some leave memory.
    Freeze,
    /// The chunks of a table cool, or are hot again.
    Cool,
}

/// How a transaction was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manner {
    /// It gave a receipt at once.
    Started,
    /// The call came back when it was durable, if that was asked for. The log took changes when it began, or
    /// not.
    Waited { log_is_open: bool },
}

/// How a life ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The database is closed.
    Close,
    /// The process dies.
    Kill,
    /// The machine crashes.
    Crash,
}

/// How often what happened in a run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Transactions committed.
    pub transactions: u64,
    /// Crashes of the machine.
    pub crashes: u64,
    /// Databases opened and held against the model.
    pub recoveries: u64,
    /// Committed transactions that a crash took back, none of them acknowledged.
    pub lost: u64,
    /// Changes that a full or failed log refused.
    pub refused: u64,
    /// Archives written.
    pub archives: u64,
    /// Recoveries that began with an archive.
    pub loaded: u64,
    /// Recoveries that had to do without a newer one that was damaged.
    pub without_newest: u64,
    /// Files damaged at rest.
    pub damages: u64,
    /// Databases that did not open for a damage.
    pub found: u64,
    /// Databases that were known to be complete, as they had been closed cleanly.
    pub complete: u64,
    /// Times that a table was frozen.
    pub frozen: u64,
    /// Times that frozen chunks were emptied by that.
    pub emptied: u64,
    /// Times that frozen chunks left memory.
    pub evicted: u64,
    /// Times that chunks began to cool.
    pub cooled: u64,
    /// Times that cooling ones were hot again.
    pub warmed: u64,
    /// Times that evicted rows could not be read well any more.
    pub read_faults: u64,
    /// Times that all rows were read again afterwards, but for those that a file has lost.
    pub read_again: u64,
    /// Transactions, statements and the like that failed because they could not read evicted rows.
    pub unread: u64,
    /// Files of evicted rows damaged under the open database.
    pub spoiled: u64,
    /// Tables that could not be read again for that.
    pub stayed_unread: u64,
}

/// A run under way.
pub struct Simulation {
    /// What happened.
    pub trace: Trace,
    /// How often.
    pub counts: Counts,
    random: Random,
    machine: Machine,
    world: World,
    tpcc: Option<Tpcc>,
    model: Model,
    /// All that was committed has to be there after the next recovery: the database was closed in peace.
    in_peace: bool,
    /// A fault may strike: faults are set, or the disk is full.
    at_risk: bool,
    /// An archive is being written.
    archiving: bool,
    /// The newest archive that CHECKPOINT said is complete.
    sure: Option<u64>,
    /// Damages of archives.
    harms: Vec<Harm>,
    /// A damage of the log, until the database has been opened with it.
    log_harm: Option<LogHarm>,
    /// Evicted rows, and what is wrong with reading them.
    cold: Cold,
}

impl Simulation {
    /// The run of a seed, before it begins.
    pub fn new(seed: u64, shown: bool) -> Self {
        let (mut random, mut of_reads) = (Random::new(seed), Random::new(!seed));
        let world = World::draw(&mut random, &mut of_reads);
        let mut trace = Trace::new(shown);
        trace.note(format_args!("seed {seed}: {world:?}"));
        Self {
            trace,
            counts: Counts::default(),
            machine: Machine::new(random.bits()),
            tpcc: world.warehouses.map(|warehouses| Tpcc::new(warehouses, seed)),
            random,
            world,
            model: Model::default(),
            in_peace: true,
            at_risk: false,
            archiving: false,
            sure: None,
            harms: Vec::new(),
            log_harm: None,
            cold: Cold::new(of_reads),
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// In words, what is not as it has to be.
    pub fn run(&mut self) -> Result<(), String> {
        for _ in 0..self.world.lives {
            let mut life = self.open()?;
            self.furnish(&mut life)?;
            self.plan();
            let actions = self.random.below(100);
            for _ in 0..actions {
                if self.is_over(&life) {
                    break;
                }
                match self.act(&mut life) {
                    // The machine went down before a statement had the rows that it needs: it has done nothing.
                    Err(what) if self.is_over(&life) && what.contains("could not read evicted rows") => {
                        self.trace.note(format_args!("crashed: {what}"));
                    }
                    acted => acted?,
                }
            }
            self.end(life)?;
            self.damage()?;
        }
        self.machine.disk.set_faults(Faults::default());
        self.heal();
        let life = self.open()?;
        self.machine.disk.take_planned_crash();
        self.check_wholly(&life)
    }

    /// Opens the database, however often it crashes while that is done, and holds it against the model.
    fn open(&mut self) -> Result<Life, String> {
        let (mut crashes, mut attempts) = (0, 0);
        loop {
            attempts += 1;
            let disk = &self.machine.disk;
            if crashes < CRASHES_IN_A_ROW && self.random.percent(35) {
                let within = self.random.pick(&[50, 200]);
                disk.crash_at(disk.operations() + self.random.below(within));
            } else if self.random.percent(6) {
                self.fail_once(5);
            }
            let expected = self.expected()?;
            let waits = self.random.percent(self.world.synchronous);
            let durability = if waits { Durability::Group } else { Durability::Async };
            let (env, process) = self.machine.start_process();
            match Database::open_stepped(DIRECTORY, self.world.config(durability), env) {
                Ok(database) => {
                    let life = Life::new(process, database, durability, self.machine.room().clone());
                    // While all rows are looked at, which may have left memory, the machine does not go down.
                    let planned = self.machine.disk.take_planned_crash();
                    self.recovered(&life, &expected)?;
                    self.check_completeness(&life, attempts == 1)?;
                    planned.into_iter().for_each(|operation| self.machine.disk.crash_at(operation));
                    self.after_damage();
                    return Ok(life);
                }
                Err(error) => {
                    self.trace.note(format_args!("opening fails: {error}"));
                    process.die();
                    self.log_harm.iter_mut().for_each(|harm| harm.is_old = true);
                    if self.machine.disk.restart() {
                        crashes += 1;
                        self.counts.crashes += 1;
                    } else if self.is_rightly_refused(&error, &expected) {
                        self.machine.disk.kill();
                    } else if self.at_risk
                        && [SqlState::IO_ERROR, SqlState::DISK_FULL].contains(&error.state())
                    {
                        self.calm();
                        self.machine.disk.kill();
                    } else {
                        return Err(format!("the database does not open: {}", shown(&error)));
                    }
                    // What was closed in peace, a crash may damage no more.
                }
            }
        }
    }

    /// Whether it is known that all is there after an orderly end, which a recovery that crashed may have made unknown.
    fn check_completeness(&mut self, life: &Life, is_first: bool) -> Result<(), String> {
        let completeness = life.database.recovery().completeness;
        self.counts.complete += u64::from(matches!(completeness, Some(LogCompleteness::Complete { .. })));
        match completeness {
            Some(LogCompleteness::Unknown) => Err("the control files say nothing".to_owned()),
            Some(LogCompleteness::Unclosed { .. }) if self.in_peace && is_first => {
                Err("the database was closed, and is not known to be complete".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// No fault strikes any more.
    fn calm(&mut self) {
        self.machine.disk.set_faults(Faults::default());
        self.heal();
        self.at_risk = false;
    }

    /// Whether the archive was used that had to be; how many records there are in all.
    fn records(&mut self, life: &Life, expected: &Expected) -> Result<u64, String> {
        let report = life.database.recovery();
        let records = expected.records() + report.records;
        self.trace.note(format_args!(
            "opened: archive {:?}, {} records, {:?}",
            report.archive, report.records, report.torn
        ));
        let archive = expected.archive.as_ref().map(|archive| archive.number);
        if report.archive != archive || expected.is_refused() {
            return Err(format!("archive {:?} was loaded, not {archive:?}", report.archive));
        }
        if report.left_out.len() != expected.left_out {
            return Err(format!("{} archives cannot be used, not {:?}", expected.left_out, report.left_out));
        }
        let next = life.log().seal().next_ordinal;
        if next != records + 1 {
            return Err(format!("{records} records are there, but the next one will be {next}"));
        }
        self.counts.loaded += u64::from(archive.is_some());
        self.counts.without_newest += u64::from(expected.left_out > 0);
        Ok(records)
    }

    /// Finds the prefix of the history that was recovered, and looks whether the database holds what it makes.
    fn recovered(&mut self, life: &Life, expected: &Expected) -> Result<(), String> {
        let (records, before) = (self.records(life, expected)?, self.model.base_records);
        let (all, least) = (self.model.history.len(), self.model.acknowledged);
        let least = if self.in_peace { all } else { least };
        if self.check_excuse(records, before + least as u64, &life.database.recovery())? {
            self.trace.note("the damage of the last frame is taken for an unfinished write");
            self.model.excuse(records);
        } else if records < before + least as u64 {
            let peace = if self.in_peace { " after an orderly end" } else { "" };
            return Err(format!(
                "{records} transactions are there{peace}, {before} a recovery had found and {least} of {all} more \
                 were acknowledged"
            ));
        }
        let (all, count) = (self.model.history.len(), (records - self.model.base_records) as usize);
        if count > all {
            return Err(format!("{count} transactions are there, but only {all} were committed"));
        }
        let state = check::state(&life.database)?;
        if let Some(difference) = self.model.after(count).difference(&state) {
            let other = (0..=all).find(|&other| self.model.after(other) == state);
            let other = other.map_or("after none".to_owned(), |other| format!("after {other}"));
            return Err(format!(
                "recovery found {count} of {all} transactions, but the database is as {other} of them: {difference}"
            ));
        }
        self.counts.recoveries += 1;
        self.counts.lost += (all - count) as u64;
        self.model.recovered(count);
        check::index(&life.database, &self.model.state, &mut self.random)?;
        if let Some(tpcc) = self.tpcc.as_ref().filter(|_| self.random.percent(40)) {
            tpcc.check(&life.database, &self.model.tpcc)?;
        }
        Ok(())
    }

    /// All that can be held against the model, at the end of a run.
    fn check_wholly(&mut self, life: &Life) -> Result<(), String> {
        if self.random.percent(10) {
            check::analytical(&life.database, &self.model.state)?;
        }
        let Some(tpcc) = &self.tpcc else { return Ok(()) };
        tpcc.check(&life.database, &self.model.tpcc)?;
        if self.prepared() == tpcc.preparations().len() {
            tpcc.check_condition(&life.database, self.random.below(12) as usize + 1)?;
        }
        Ok(())
    }

    /// Makes the tables that are missing, and what is called.
    fn furnish(&mut self, life: &mut Life) -> Result<(), String> {
        while let Some(statement) = statements::furnishing(&self.model.state) {
            self.execute(life, &statement)?;
            if life.refusal().is_some() || self.machine.disk.is_down() {
                return Ok(());
            }
        }
        let bank = Bank::register(&life.database).map_err(|error| shown(&error))?;
        life.bank = Some(bank);
        Ok(())
    }

    /// Decides which faults will strike.
    fn plan(&mut self) {
        let disk = &self.machine.disk;
        match self.random.below(10) {
            0..4 => disk.crash_at(disk.operations() + self.random.below(200)),
            4..6 => self.fail_once(25),
            _ => {}
        }
    }

    /// Lets one of the next `within` writes or syncs fail.
    fn fail_once(&mut self, within: u64) {
        let which = self.random.below(within);
        let (write, sync) = if self.random.percent(40) { (Some(which), None) } else { (None, Some(which)) };
        let faults = Faults { failing_write: write, failing_sync: sync, ..Faults::default() };
        self.machine.disk.set_faults(faults);
        self.at_risk = true;
    }

    /// Whether this life has ended, in the middle of something.
    fn is_over(&self, life: &Life) -> bool {
        self.machine.disk.is_down() || life.process.is_dead()
    }

    fn act(&mut self, life: &mut Life) -> Result<(), String> {
        self.trouble_reads(life)?;
        if self.is_over(life) {
            return Ok(());
        }
        let action = self.draw();
        match action {
            Action::Bank => self.bank(life),
            Action::Change => match life.bank {
                Some(_) => {
                    let statement = statements::change(&mut self.random, &self.model.state);
                    self.execute(life, &statement)
                }
                None => Ok(()),
            },
            Action::Define => match life.bank {
                Some(_) => {
                    let with = self.world.routines;
                    let statement = statements::definition(&mut self.random, &self.model.state, with);
                    self.execute(life, &statement)
                }
                None => Ok(()),
            },
            Action::Pay => self.pay(life),
            Action::Tpcc => self.tpcc(life),
            Action::Step => self.step(life),
            Action::Prepare => {
                let made = life.log().prepare();
                self.trace.note(format_args!("prepare: {made}"));
                Ok(())
            }
            Action::Mark => {
                let done = life.log().mark();
                self.trace.note(format_args!("mark: {done}"));
                Ok(())
            }
            Action::Seal => {
                let sequence = life.log().seal();
                self.trace.note(format_args!("seal: {}", sequence.sequence));
                Ok(())
            }
            Action::Wait => {
                self.machine.wait(Duration::from_micros(self.random.below(10_000_000)));
                Ok(())
            }
            Action::Query => self.query(life),
            Action::Fill => {
                self.fill();
                Ok(())
            }
            Action::Archive => self.checkpoint(life),
            Action::Freeze => self.freeze(life),
            Action::Cool => self.cool(life),
        }
    }

    fn draw(&mut self) -> Action {
        let roll = self.random.below(100);
        match () {
            () if roll < self.world.steps => return Action::Step,
            () if roll < self.world.steps + self.world.definitions => return Action::Define,
            () => {}
        }
        // Its tables and rows take many actions before its first transaction.
        if self.random.below(1000) < self.world.archives {
            return Action::Archive;
        }
        if self.tpcc.is_some() && self.random.percent(70) {
            return Action::Tpcc;
        }
        match self.random.below(400) {
            0..100 => Action::Change,
            100..130 if self.world.routines => Action::Pay,
            200..210 => Action::Prepare,
            210..215 => Action::Seal,
            240..260 => Action::Mark,
            260..266 => Action::Freeze,
            266..270 => Action::Cool,
            215..220 => Action::Wait,
            220..221 => Action::Query,
            221..224 => Action::Fill,
            224..240 if self.machine.room().is_short() => Action::Fill,
            _ => Action::Bank,
        }
    }

    fn bank(&mut self, life: &mut Life) -> Result<(), String> {
        if life.bank.is_none() {
            return Ok(());
        }
        let work = BankTransaction::draw(&mut self.random);
        let waits = life.is_synchronous && self.random.percent(30);
        self.run_bank(life, &work, waits)
    }

    fn run_bank(&mut self, life: &mut Life, work: &BankTransaction, waits: bool) -> Result<(), String> {
        let Some(bank) = life.bank.clone() else { return Ok(()) };
        let partitions = self.world.partitions;
        let wanted = work.effect(&self.model.state, partitions);
        let manner = if waits { waited(life) } else { Manner::Started };
        let got = match waits {
            true => bank.call(work).and_then(|value| Ok((value, life.receipt_of_all()?))),
            false => bank.start(work),
        };
        if let (Ok((changes, _)), Ok((_, receipt))) = (&wanted, &got)
            && !changes.is_empty()
            && !waits
        {
            life.last = Some(*receipt);
        }
        self.settle(life, &format!("{work:?}"), wanted, got, (work.lane(partitions), manner))
    }

    fn execute(&mut self, life: &Life, statement: &Statement) -> Result<(), String> {
        let manner = waited(life);
        let got = life.execute(&statement.text);
        self.settle(life, &statement.text, statement.effect.clone(), got, (statement.lane, manner))
    }

    fn pay(&mut self, life: &Life) -> Result<(), String> {
        let (id, cents) = (self.random.between(0, LAST_ACCOUNT), self.random.between(-20, 200));
        if life.bank.is_none() {
            return Ok(());
        }
        let wanted = statements::payment(&self.model.state, id, cents);
        let (key, amount) = (Value::Integer(id as i32), Value::BigInt(cents));
        let started =
            life.database.routine("pay").and_then(|pay| pay.start(&[(&key).into(), (&amount).into()]));
        let got = started.map(|(reply, receipt)| {
            let left = match reply.get(0, 0) {
                Some(albireo::Output::Value(value)) => value.to_value(),
                _ => Value::Null,
            };
            let left = if let Value::BigInt(left) = left { Some(left) } else { None };
            (left, receipt)
        });
        self.settle(life, &format!("pay({id}, {cents})"), wanted, got, (Lane::Unknown, Manner::Started))
    }

    /// Holds what a transaction did against what it had to do, and adds it to the model.
    fn settle<T: PartialEq + Debug>(
        &mut self,
        life: &Life,
        what: &str,
        wanted: Result<(Vec<Change>, T), SqlState>,
        got: Result<(T, Receipt), SqlError>,
        (lane, manner): (Lane, Manner),
    ) -> Result<(), String> {
        if let Err(error) = &got
            && self.excuses(what, error)
        {
            return Ok(());
        }
        match (wanted, got) {
            (Err(wanted), Err(error)) if error.state() == wanted => {
                self.trace.note(format_args!("{what}: {wanted}"));
                Ok(())
            }
            (Ok((changes, wanted)), Ok((value, receipt))) if wanted == value => {
                self.trace.note(format_args!("{what}: {value:?}"));
                if changes.is_empty() {
                    self.model.read(receipt, lane);
                    return Ok(());
                }
                self.commit(life, Entry { deed: Deed::Changes(changes), receipt, lane }, manner)
            }
            (Ok((changes, _)), Err(error)) if !changes.is_empty() => {
                self.refused(life, what, &error, (Deed::Changes(changes), lane, manner))
            }
            (wanted, got) => {
                let got = got.map(|(value, _)| value).map_err(|error| shown(&error));
                Err(format!("{what} gave {got:?}, not {:?}", wanted.map(|(_, value)| value)))
            }
        }
    }

    fn commit(&mut self, life: &Life, entry: Entry, manner: Manner) -> Result<(), String> {
        let waited = life.is_synchronous && manner != Manner::Started;
        if waited && !life.database.is_acknowledged(entry.receipt) {
            return Err("a call has come back before what it did was durable".to_owned());
        }
        // While it waited, the log may have come to refuse more.
        if let (false, Some(state)) = (waited, life.refusal_of_all()) {
            return Err(format!("a log that refuses with {state} took a change"));
        }
        self.counts.transactions += 1;
        self.model.commit(entry);
        self.hear_of_acknowledged(life)
    }

    /// A change was not taken, or was and nobody knows whether it will last.
    fn refused(
        &mut self,
        life: &Life,
        what: &str,
        error: &SqlError,
        (deed, lane, manner): (Deed, Lane, Manner),
    ) -> Result<(), String> {
        if self.excuses(what, error) {
            return Ok(());
        }
        if life.refusal() != Some(error.state()) {
            return Err(format!("{what} failed: {}", shown(error)));
        }
        let was_open = manner == Manner::Waited { log_is_open: true };
        if life.is_synchronous && was_open && error.state() == SqlState::IO_ERROR {
            self.trace.note(format_args!("{what}: not acknowledged"));
            let receipt = life.receipt_of_all().map_err(|error| shown(&error))?;
            self.counts.transactions += 1;
            self.model.commit(Entry { deed, receipt, lane });
            return Ok(());
        }
        self.trace.note(format_args!("{what}: refused with {}", error.state()));
        self.counts.refused += 1;
        Ok(())
    }

    /// How much of TPC-C's preparations is done.
    fn prepared(&self) -> usize {
        let now = self.model.history.iter().map(|entry| &entry.deed);
        let done = self.model.tpcc.iter().chain(now);
        done.filter(|deed| matches!(deed, Deed::Define(_) | Deed::Load(_))).count()
    }

    fn tpcc(&mut self, life: &mut Life) -> Result<(), String> {
        let prepared = self.prepared();
        let Some(tpcc) = &mut self.tpcc else { return Ok(()) };
        let at_ns = self.machine.now();
        let next = tpcc.preparations().into_iter().nth(prepared);
        let deed = next.unwrap_or_else(|| Deed::Tpcc(Box::new(tpcc.next()), at_ns));
        let manner = if let Deed::Define(_) = &deed { waited(life) } else { Manner::Started };
        let got = if let Deed::Define(text) = &deed {
            life.execute(text).map(|(_, receipt)| Some(receipt))
        } else {
            if life.tpcc.is_none() {
                life.tpcc = Some(tpcc.procedures(&life.database).map_err(|error| shown(&error))?);
            }
            life.tpcc.as_ref().expect("made above").perform(&deed)
        };
        let what = match &deed {
            Deed::Tpcc(transaction, _) => format!("{:?}", transaction.kind()),
            deed => format!("{deed:?}"),
        };
        match got {
            Ok(None) => {
                self.trace.note(format_args!("{what}: nothing"));
                Ok(())
            }
            Ok(Some(receipt)) => {
                self.trace.note(&what);
                self.commit(life, Entry { deed, receipt, lane: Lane::Unknown }, manner)
            }
            Err(error) => self.refused(life, &what, &error, (deed, Lane::Unknown, manner)),
        }
    }

    fn step(&mut self, life: &Life) -> Result<(), String> {
        self.hear_of_acknowledged(life)?;
        let step = life.step()?;
        self.trace.note(format_args!("step: {step:?}"));
        self.hear(life, step)
    }

    /// Notes what is acknowledged now.
    fn hear_of_acknowledged(&mut self, life: &Life) -> Result<(), String> {
        let before = self.model.acknowledged;
        let durable = |receipt| life.database.is_acknowledged(receipt);
        let waiting = &self.model.history[before..];
        let count = waiting.iter().take_while(|entry| durable(entry.receipt)).count();
        if waiting[count..].iter().any(|entry| durable(entry.receipt)) {
            return Err("a transaction is acknowledged before one that was committed before it".to_owned());
        }
        let claimed = self.model.claims.iter().filter(|claim| durable(claim.receipt));
        let claimed = claimed.map(|claim| claim.transactions).max().unwrap_or(0);
        self.model.claims.retain(|claim| !durable(claim.receipt));
        self.model.acknowledged = claimed.max(before + count);
        Ok(())
    }

    /// Notes what is acknowledged after a step.
    fn hear(&mut self, life: &Life, step: Step) -> Result<(), String> {
        let before = self.model.acknowledged;
        self.hear_of_acknowledged(life)?;
        match step {
            Step::Idle if self.model.acknowledged < self.model.history.len() => {
                Err("the log has nothing to do, but not everything is acknowledged".to_owned())
            }
            Step::Full | Step::Failed if self.model.acknowledged > before => {
                Err(format!("{step:?} acknowledged something"))
            }
            Step::Failed => self.hear_of_failure(life),
            _ => Ok(()),
        }
    }

    /// After the log has failed, whoever waits for a change is told so, and readers go on.
    fn hear_of_failure(&mut self, life: &Life) -> Result<(), String> {
        let receipt = life.receipt_of_all().map_err(|error| format!("a reader fails: {}", shown(&error)))?;
        life.database.acknowledge(receipt).map_err(|error| format!("a reader waits: {}", shown(&error)))?;
        let Some(last) = life.last.filter(|&last| !life.database.is_acknowledged(last)) else {
            return Ok(());
        };
        match life.database.acknowledge(last) {
            Err(error) if error.state() == SqlState::IO_ERROR => Ok(()),
            other => Err(format!("whoever waits for a failed log is told {other:?}")),
        }
    }

    fn fill(&mut self) {
        if self.machine.room().is_short() {
            return self.heal();
        }
        let bytes = self.random.below(self.world.segment_bytes * 2);
        self.trace.note(format_args!("the disk can have {bytes} bytes more"));
        self.machine.room().leave(bytes);
        self.at_risk = true;
    }

    fn heal(&mut self) {
        if self.machine.room().heal() {
            self.trace.note("the disk has room again");
        }
    }

    /// Ends a life.
    fn end(&mut self, life: Life) -> Result<(), String> {
        self.forget_cold();
        let down = self.machine.disk.is_down();
        let end = match self.random.below(10) {
            _ if down => End::Crash,
            _ if life.process.is_dead() => End::Kill,
            0..2 => End::Close,
            2..5 => End::Kill,
            _ => End::Crash,
        };
        self.trace.note(format_args!("{end:?}{}", if down { ", in the middle of something" } else { "" }));
        self.in_peace = false;
        match end {
            End::Close => {
                self.in_peace = !self.at_risk && life.refusal().is_none();
                drop(life);
                // A planned crash may have struck while it closed.
                if self.machine.disk.restart() {
                    self.trace.note("crashed while it closed");
                    self.counts.crashes += 1;
                    self.in_peace = false;
                }
            }
            End::Kill => {
                life.process.die();
                self.machine.disk.kill();
                drop(life);
            }
            End::Crash => {
                life.process.die();
                match down {
                    true => drop(self.machine.disk.restart()),
                    false => self.machine.disk.crash(),
                }
                self.counts.crashes += 1;
                drop(life);
            }
        }
        if self.random.percent(60) {
            self.calm();
        }
        Ok(())
    }
}

/// A call that waits, if calls wait.
fn waited(life: &Life) -> Manner {
    // Also one that takes only what frees room: whatever it refuses, it refuses with another state than if it fails.
    Manner::Waited { log_is_open: life.refusal_of_all().is_none() }
}

fn shown(error: &SqlError) -> String {
    format!("{}: {error} {}", error.state(), error.detail().unwrap_or_default())
}
