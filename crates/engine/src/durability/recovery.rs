//! From files to the state that they say.

use std::path::Path;

use albireo_archive::Manifest;
use albireo_base::packed::{Input, Malformed};
use albireo_base::{PartitionId, SqlError, SqlState, StatementProgress, Value};
use albireo_env::Env;
use albireo_partition::{Abort, Call, CallError, Route, Transaction};
use albireo_redo::{Controls, End, Frame, Kind, LogReader, LogStart, Reached, ReadError, Record, repair};
use albireo_storage::ApplyError;

use super::Home;
use super::completeness::{self, LogCompleteness, Missing};
use super::load::{ArchivePoint, Loaded};
use super::progress::Reporter;
use super::replay::{Last, Replay};
use super::target::RecoveryTarget;
use crate::Database;
use crate::errors::or_unreadable;
use crate::routines::{self, RoutineStatement};

/// What opening a database did. The same for any number of threads, but for times.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RecoveryReport {
    /// The archive that was loaded, if there was one.
    pub archive: Option<u64>,
    /// Rows that it had.
    pub archive_rows: u64,
    /// Bytes of its files.
    pub archive_bytes: u64,
    /// Nanoseconds that loading it took, indexes included.
    pub load_ns: u64,
    /// What was wrong with newer archives, which could not be used.
    pub left_out: Vec<String>,
    /// Records of the log that were done again.
    pub records: u64,
    /// Rows that write records changed.
    pub rows: u64,
    /// Bytes of the log that were read.
    pub log_bytes: u64,
    /// Nanoseconds that reading the log and doing it again took.
    pub replay_ns: u64,
    /// What was left out at the end of the log: the rest of a write that a crash interrupted.
    pub torn: Option<String>,
    /// What is known of the end of the log; `None` if it was not read so far, or nothing had ever been logged.
    pub completeness: Option<LogCompleteness>,
    /// Other things to know: control files that could not be used, and what cannot be known after a crash.
    pub notices: Vec<String>,
}

/// How files are read.
pub(super) struct How<'a, 'r> {
    /// How far.
    pub(super) target: RecoveryTarget,
    /// Threads that may work at the same time, at least 1; with 1, all is done in one order on this one.
    pub(super) threads: usize,
    /// Is told how far it is.
    pub(super) reporter: &'a Reporter<'r>,
    /// What says how far the log must go; of a backup, its manifest does.
    pub(super) controls: Option<&'a Controls>,
}

/// What files said.
pub(super) struct State {
    /// The archive that was loaded.
    pub(super) archive: Option<Manifest>,
    /// The last record that was done.
    pub(super) last: Option<Last>,
    /// Where the log ends; `None` if it was not read so far.
    pub(super) end: Option<End>,
}

impl State {
    /// The number of the last record that is in it; 0 if none is.
    pub(super) fn last_record(&self) -> u64 {
        let archived = self.archive.as_ref().map_or(0, |archive| archive.log.next_record.saturating_sub(1));
        self.last.map_or(archived, |last| last.ordinal)
    }

    /// Whether it is what was asked for, wherever the log ends.
    fn is_at(&self, target: RecoveryTarget) -> bool {
        matches!(target, RecoveryTarget::Record(ordinal) if self.last_record() == ordinal)
    }
}

impl Database {
    /// Brings the database, which is empty, to the state that the directory says, makes its log end there, and
    /// tells where that goes on.
    ///
    /// # Errors
    /// 58030 if files cannot be read; XX001 if they are damaged, or say what cannot be done.
    pub(super) fn recover(
        &self,
        home: &Home,
        how: &How<'_, '_>,
    ) -> Result<(LogStart, RecoveryReport), SqlError> {
        let Env { disk, seeds, .. } = &self.inner.env;
        let directory = home.log();
        disk.create_dir_all(&directory).map_err(|error| {
            let text = format!("could not create the directory \"{}\": {error}", directory.display());
            SqlError::new(SqlState::IO_ERROR, text)
        })?;
        let mut report = RecoveryReport::default();
        let state = self.read_state(&home.archive(), &directory, how, &mut report)?;
        let end = state.end.expect("all frames have been read");
        repair(&**disk, &directory, &end).map_err(|failure| {
            SqlError::new(SqlState::IO_ERROR, format!("could not repair the end of the log: {failure}"))
        })?;
        let position = state.archive.map(|archive| archive.log);
        let next_record = position.map_or(1, |at| at.next_record);
        let control = how.controls.and_then(Controls::newest).map(|control| control.log_id);
        let log_id = end.log_id.or(position.map(|at| at.log)).or(control);
        let start = LogStart {
            log_id: log_id.unwrap_or_else(|| seeds.next_seed()),
            next_sequence: end.next_sequence,
            next_ordinal: end.next_ordinal.max(next_record),
            next_segment: end.next_segment,
        };
        Ok((start, report))
    }

    /// Brings the database, which is empty, to what an archive and the log behind it say. Changes no file.
    ///
    /// # Errors
    /// As [`Database::recover`]; 22023 if there is nothing old enough for the target.
    pub(super) fn read_state(
        &self,
        archives: &Path,
        log: &Path,
        how: &How<'_, '_>,
        report: &mut RecoveryReport,
    ) -> Result<State, SqlError> {
        let clock = &self.inner.env.clock;
        let start_ns = clock.now();
        how.reporter.begin();
        let Loaded { archive, others } = self.load_archive(archives, how, report)?;
        let loaded_ns = clock.now();
        report.load_ns = loaded_ns - start_ns;
        how.reporter.begin();
        let mut state = State { archive, last: None, end: None };
        if state.archive.is_some() && state.is_at(how.target) {
            return Ok(state);
        }
        self.replay(log, &mut state, &others, how, report)?;
        report.replay_ns = clock.now() - loaded_ns;
        Ok(state)
    }

    /// Does again what the log says after the archive.
    fn replay(
        &self,
        directory: &Path,
        state: &mut State,
        others: &[ArchivePoint],
        how: &How<'_, '_>,
        report: &mut RecoveryReport,
    ) -> Result<(), SqlError> {
        let disk = &self.inner.env.disk;
        let position = state.archive.as_ref().map(|archive| archive.log);
        let (from, log_id) = position.map_or((0, None), |at| (at.sequence + 1, Some(at.log)));
        let reader = LogReader::open(disk.clone(), directory, from, log_id).map_err(damaged)?;
        if position.is_none() && (reader.next_sequence() > 1 || reader.next_ordinal() > 1) {
            return Err(headless((reader.next_sequence(), reader.next_ordinal()), others.last(), how.target));
        }
        let redo = |frame: &Frame, record: &Record<'_>| {
            // It may build an index of rows that lie in the archive.
            or_unreadable(|| self.redo(record)).map_err(|error| stopped(frame, record, &error))
        };
        let &How { target, threads, reporter, .. } = how;
        let replay = Replay { redo: &redo, lanes: self.partitions(), threads, target, reporter };
        let done = replay.run(reader)?;
        self.inner.partitions.exclusively(|all| all.end_replay());
        // Without their end they mean nothing.
        self.inner.parts.lock().clear();
        (report.records, report.rows, report.log_bytes) = (done.records, done.rows, done.log_bytes);
        report.torn = done.end.as_ref().and_then(|end| end.torn.as_ref()).map(ToString::to_string);
        (state.last, state.end) = (done.last, done.end);
        match &state.end {
            Some(end) if !state.is_at(target) => {
                check_tail(end, others, directory)?;
                check_controls(end, state, how, directory, report)
            }
            _ => Ok(()),
        }
    }

    /// Does one record again; how many rows it wrote.
    fn redo(&self, record: &Record<'_>) -> Result<u64, SqlError> {
        match record.kind {
            Kind::WRITE => self.redo_writes(record),
            Kind::COMMAND => self.redo_command(record, &self.call_of(record)?),
            Kind::STATEMENT => self.redo_statement(record),
            Kind::PART => self.keep_part(record),
            Kind::JOINED => self.redo_joined(record),
            Kind::DEFINITION => self.redo_definition(record).map(|()| 0),
            Kind(other) => {
                let text = format!("the record is of kind {other}, which this program does not know");
                Err(SqlError::new(SqlState::DATA_CORRUPTED, text))
            }
        }
    }

    /// Where and when a record's transaction ran.
    fn call_of(&self, record: &Record<'_>) -> Result<Call<'static>, SqlError> {
        let partition = PartitionId(record.lane);
        let route = if record.crossing { Route::Crossing } else { Route::Partition(partition) };
        if !record.crossing && partition.0 >= self.partitions() {
            let text = format!("the record is of partition {}", partition.0);
            return Err(SqlError::new(SqlState::DATA_CORRUPTED, text));
        }
        Ok(Call { time_us: Some(record.time_us), ..Call::new(route, "recovery") })
    }

    fn redo_writes(&self, record: &Record<'_>) -> Result<u64, SqlError> {
        let call = self.call_of(record)?;
        let work = |tx: &mut Transaction| tx.apply(record.payload).map_err(not_applied);
        let done = self.inner.partitions.transact(&call, work);
        done.map(|applied| applied.rows).map_err(|error| match error {
            CallError::Aborted(Abort::Raised(error)) => error,
            error => self.explain_call(error),
        })
    }

    /// Keeps a part of what a transaction wrote until its end comes.
    fn keep_part(&self, record: &Record<'_>) -> Result<u64, SqlError> {
        let (number, at, rows) = part_of(record.payload).map_err(|error| damaged_record(&error))?;
        let mut parts = self.inner.parts.lock();
        let kept = parts.entry(number).or_default();
        if kept.len() as u64 != at {
            let text = format!("it is part {at} of a transaction of which {} are there", kept.len());
            return Err(SqlError::new(SqlState::DATA_CORRUPTED, text));
        }
        kept.push(rows.to_vec());
        Ok(0)
    }

    /// Writes again what the parts of a transaction say.
    fn redo_joined(&self, record: &Record<'_>) -> Result<u64, SqlError> {
        let (number, wanted) = joined_of(record.payload).map_err(|error| damaged_record(&error))?;
        let parts = self.inner.parts.lock().remove(&number).unwrap_or_default();
        if parts.len() as u64 != wanted {
            let text = format!("it ends a transaction of {wanted} parts, of which {} are there", parts.len());
            return Err(SqlError::new(SqlState::DATA_CORRUPTED, text));
        }
        let work = |tx: &mut Transaction| {
            parts.iter().try_fold(0, |rows, part| {
                tx.apply(part).map(|applied| rows + applied.rows).map_err(not_applied)
            })
        };
        let done = self.inner.partitions.transact(&self.call_of(record)?, work);
        done.map_err(|error| match error {
            CallError::Aborted(Abort::Raised(error)) => error,
            error => self.explain_call(error),
        })
    }

    fn redo_definition(&self, record: &Record<'_>) -> Result<(), SqlError> {
        let text = std::str::from_utf8(record.payload);
        let text = text.map_err(|_| SqlError::new(SqlState::DATA_CORRUPTED, "the definition is no text"))?;
        let unlimited = &self.inner.unlimited.interrupts;
        if let Some(statement) = routines::parse(text)? {
            return match statement {
                RoutineStatement::Create(definition) => {
                    self.create_routine(*definition, text, unlimited).map(drop)
                }
                RoutineStatement::Drop(removal) => self.drop_routines(&removal, text, unlimited).map(drop),
                _ => Err(SqlError::new(SqlState::DATA_CORRUPTED, "the record is no definition")),
            };
        }
        let statement = albireo_sql::parse_one(text)?;
        self.run_ddl(&statement, text, &StatementProgress::default(), unlimited).map(drop)
    }
}

/// 22023 for a database that had another number of partitions.
pub(super) fn other_partitions(now: u16, then: u16) -> SqlError {
    let text = format!("the database has {then} partitions, not {now}");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
        .with_hint(format!("Open it with {then} partitions."))
}

/// A record that does not fit what is there.
fn not_applied(error: ApplyError) -> Abort {
    match error {
        ApplyError::Table(error) => Abort::Table(error),
        error => Abort::Raised(SqlError::new(SqlState::DATA_CORRUPTED, error.to_string())),
    }
}

/// What an archive knows of the log must be in the log, or its end is missing: what was committed there, and
/// what would come now in its place, would be lost.
fn check_tail(end: &End, archives: &[ArchivePoint], directory: &Path) -> Result<(), SqlError> {
    let same = archives.iter().filter(|place| end.log_id.is_none_or(|log| log == place.log.log));
    let Some(ArchivePoint { number, log, .. }) = same.max_by_key(|place| place.log.sequence) else {
        return Ok(());
    };
    // The log keeps its newest segment whatever archives there are, so that there is one unless nothing had
    // been logged.
    let is_there = end.tail.is_some() && end.next_sequence > log.sequence;
    if is_there || log.sequence == 0 {
        return Ok(());
    }
    let ends = match &end.tail {
        Some((path, _)) => format!("ends with frame {} in {}", end.next_sequence - 1, path.display()),
        None => format!("has no frame in {}", directory.display()),
    };
    let text = format!(
        "the end of the redo log is missing: archive {number} has what is in frames up to {}, but the log {ends}",
        log.sequence
    );
    let hint = format!(
        "Put the missing segments back. If they are lost, take what archive {number} has, without what was \
         committed after it: albireo restore DIRECTORY NEW --until {}",
        log.next_record.saturating_sub(1)
    );
    Err(SqlError::new(SqlState::DATA_CORRUPTED, text).with_hint(hint))
}

/// What the control files say was durable must be there.
fn check_controls(
    end: &End,
    state: &State,
    how: &How<'_, '_>,
    directory: &Path,
    report: &mut RecoveryReport,
) -> Result<(), SqlError> {
    let Some(controls) = how.controls else { return Ok(()) };
    let position = state.archive.as_ref().map(|archive| archive.log);
    let reached = Reached::new(end, position.map(|at| at.log), position.map_or(1, |at| at.next_record));
    let completeness =
        completeness::judge(controls, end, &reached, directory).map_err(|missing| incomplete(*missing))?;
    if reached.segment == 0 && position.is_none() {
        report.notices.extend(end.headless.iter().map(|path| {
            format!(
                "the redo log {} has no header: a crash came while it was made, or what it held is lost",
                path.display()
            )
        }));
        return Ok(());
    }
    report.completeness = Some(completeness);
    let faults = controls.faults().into_iter();
    report.notices.extend(faults.map(|(path, reason)| {
        format!("the control file {} could not be used and is rewritten: {reason}", path.display())
    }));
    match completeness {
        LogCompleteness::Complete { .. } => {}
        LogCompleteness::Unclosed { .. } => {
            report
                .notices
                .push(format!("the database was {}", completeness.to_string().replacen("open, or ", "", 1)));
        }
        LogCompleteness::Unknown => {
            report.notices.push(format!("the state of the redo log is {completeness}"))
        }
    }
    Ok(())
}

/// XX001 for a log whose end is missing.
fn incomplete(missing: Missing) -> SqlError {
    let Missing { file, offset, reason, last_record, hint } = missing;
    let place = offset.map_or_else(String::new, |offset| format!(", byte {offset}"));
    let restore = "Restore a backup, or put the missing files back.";
    let hint = hint.unwrap_or_else(|| match last_record {
        0 => restore.to_owned(),
        last => format!(
            "{restore} To do without what is missing, make a new database of what is left: albireo restore DIRECTORY \
             NEW --until {last}"
        ),
    });
    SqlError::new(SqlState::DATA_CORRUPTED, format!("{}{place}: {reason}", file.display())).with_hint(hint)
}

/// A log that does not begin at its beginning, without an archive to begin with.
fn headless(
    (sequence, record): (u64, u64),
    oldest: Option<&ArchivePoint>,
    target: RecoveryTarget,
) -> SqlError {
    match oldest {
        Some(ArchivePoint { number, time_us, log }) if target != RecoveryTarget::End => {
            let (time, record) = (utc(*time_us), log.next_record.saturating_sub(1));
            let asked = match target {
                RecoveryTarget::Time(time_us) => utc(time_us),
                _ => "the record that was asked for".to_owned(),
            };
            let text = format!("{asked} is before all that is kept");
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
                .with_detail(format!(
                    "The oldest archive, {number}, is of {time}, after record {record}: restoring is possible from then on."
                ))
                .with_hint(
                    "Ask for a moment after it, or restore a backup that was made before the moment asked for.",
                )
        }
        _ => {
            let text = format!(
                "the beginning of the redo log is missing: it begins with frame {sequence}, record {record}, and there is no \
                 archive"
            );
            SqlError::new(SqlState::DATA_CORRUPTED, text)
                .with_hint("Put the archives back into the directory \"archive\", or restore a backup.")
        }
    }
}

/// A time as `albireo log` prints it.
pub(super) fn utc(time_us: i64) -> String {
    let text = Value::Timestamp(time_us).to_string();
    format!("{}Z", text.replacen(' ', "T", 1))
}

/// A log that cannot be read on.
pub(super) fn damaged(error: ReadError) -> SqlError {
    let state = match error {
        ReadError::Io(_) => SqlState::IO_ERROR,
        ReadError::Format { .. } => SqlState::FEATURE_NOT_SUPPORTED,
        _ => SqlState::DATA_CORRUPTED,
    };
    SqlError::new(state, error.to_string())
}

/// A record that could not be done again.
fn stopped(frame: &Frame, record: &Record<'_>, error: &SqlError) -> SqlError {
    let text = format!("recovery stopped at record {} of the log: {}", record.ordinal, error.message());
    let place =
        format!("It is in frame {}, segment {}, byte {}.", frame.sequence, frame.segment, frame.offset);
    match error.state() {
        // Nothing is wrong with the log.
        SqlState::OUT_OF_MEMORY => SqlError::new(error.state(), text)
            .with_detail(place)
            .with_hint("Open the database with a larger data_limit_bytes."),
        SqlState::IO_ERROR => SqlError::new(error.state(), text).with_detail(place),
        _ => SqlError::new(SqlState::DATA_CORRUPTED, text).with_detail(place),
    }
}

/// Which transaction a part is of, which part it is, and what it wrote.
pub(super) fn part_of(payload: &[u8]) -> Result<(u64, u64, &[u8]), Malformed> {
    let mut input = Input::new(payload);
    let (number, at) = (input.number()?, input.number()?);
    Ok((number, at, input.rest()))
}

/// Which transaction ends, and how many parts it has.
pub(super) fn joined_of(payload: &[u8]) -> Result<(u64, u64), Malformed> {
    let mut input = Input::new(payload);
    Ok((input.number()?, input.number()?))
}

fn damaged_record(error: &Malformed) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, error.to_string())
}
