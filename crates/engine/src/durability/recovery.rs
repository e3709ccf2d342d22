//! From files to the state that they say.

use std::path::Path;

use albireo_archive::LogPosition;
use albireo_base::{PartitionId, SqlError, SqlState};
use albireo_partition::{Abort, Call, CallError, Route, Transaction};
use albireo_redo::{Frame, Kind, LogReader, LogStart, ReadError, Record, repair};
use albireo_storage::ApplyError;

use super::Home;
use crate::Database;
use crate::routines::{self, RoutineStatement};

/// What opening a database did.
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
}

impl Database {
    /// Brings the database, which is empty, to the state that the directory says, makes its log end there, and
    /// tells where that goes on.
    ///
    /// # Errors
    /// 58030 if files cannot be read; XX001 if they are damaged, or say what cannot be done.
    pub(super) fn recover(&self, home: &Home) -> Result<(LogStart, RecoveryReport), SqlError> {
        let clock = &self.inner.env.clock;
        let start_ns = clock.now();
        let mut report = RecoveryReport::default();
        let manifest = self.load_archive(&home.archive(), &mut report)?;
        report.load_ns = clock.now() - start_ns;
        let start = self.replay(&home.log(), manifest.map(|manifest| manifest.log), &mut report)?;
        Ok((start, report))
    }

    /// Does again what the log says after `position`, and tells where it goes on.
    fn replay(
        &self,
        directory: &Path,
        position: Option<LogPosition>,
        report: &mut RecoveryReport,
    ) -> Result<LogStart, SqlError> {
        let disk = &self.inner.env.disk;
        let start_ns = self.inner.env.clock.now();
        disk.create_dir_all(directory).map_err(|error| {
            let text = format!("could not create the directory \"{}\": {error}", directory.display());
            SqlError::new(SqlState::IO_ERROR, text)
        })?;
        let (from, log_id) = position.map_or((0, None), |at| (at.sequence + 1, Some(at.log)));
        let mut reader = LogReader::open(disk.clone(), directory, from, log_id).map_err(damaged)?;
        while let Some(frame) = reader.next_frame().map_err(damaged)? {
            self.check_lanes(&frame)?;
            for record in frame.records() {
                let done = self.redo(&record);
                report.rows += done.map_err(|error| stopped(&frame, &record, &error))?;
                report.records += 1;
            }
        }
        report.log_bytes = reader.progress_bytes().0;
        let end = reader.end().expect("all frames have been read").clone();
        repair(&**disk, directory, &end).map_err(|failure| {
            SqlError::new(SqlState::IO_ERROR, format!("could not repair the end of the log: {failure}"))
        })?;
        report.torn = end.torn.map(|torn| torn.to_string());
        report.replay_ns = self.inner.env.clock.now() - start_ns;
        let next_record = position.map_or(1, |at| at.next_record);
        Ok(LogStart {
            log_id: end.log_id.or(log_id).unwrap_or_else(|| self.inner.env.seeds.next_seed()),
            next_sequence: end.next_sequence,
            next_ordinal: end.next_ordinal.max(next_record),
            next_segment: end.next_segment,
        })
    }

    /// Records are of partitions, so that there must be as many as there were.
    fn check_lanes(&self, frame: &Frame) -> Result<(), SqlError> {
        let (now, then) = (self.partitions(), frame.lanes);
        if now == then { Ok(()) } else { Err(other_partitions(now, then)) }
    }

    /// Does one record again; how many rows it wrote.
    fn redo(&self, record: &Record<'_>) -> Result<u64, SqlError> {
        match record.kind {
            Kind::WRITE => self.redo_writes(record),
            Kind::DEFINITION => self.redo_definition(record).map(|()| 0),
            Kind(other) => {
                let text = format!("the record is of kind {other}, which this program does not know");
                Err(SqlError::new(SqlState::DATA_CORRUPTED, text))
            }
        }
    }

    fn redo_writes(&self, record: &Record<'_>) -> Result<u64, SqlError> {
        let partition = PartitionId(record.lane);
        let route = if record.crossing { Route::Crossing } else { Route::Partition(partition) };
        if !record.crossing && partition.0 >= self.partitions() {
            let text = format!("the record is of partition {}", partition.0);
            return Err(SqlError::new(SqlState::DATA_CORRUPTED, text));
        }
        let call = Call { time_us: Some(record.time_us), ..Call::new(route, "recovery") };
        let work = |tx: &mut Transaction<'_, '_>| tx.apply(record.payload).map_err(not_applied);
        let done = self.inner.partitions.transact(&call, work);
        done.map(|applied| applied.rows).map_err(|error| match error {
            CallError::Aborted(Abort::Raised(error)) => error,
            error => self.explain_call(error),
        })
    }

    fn redo_definition(&self, record: &Record<'_>) -> Result<(), SqlError> {
        let text = std::str::from_utf8(record.payload);
        let text = text.map_err(|_| SqlError::new(SqlState::DATA_CORRUPTED, "the definition is no text"))?;
        if let Some(statement) = routines::parse(text)? {
            return match statement {
                RoutineStatement::Create(definition) => self.create_routine(*definition, text).map(drop),
                RoutineStatement::Drop(removal) => self.drop_routines(&removal, text).map(drop),
                _ => Err(SqlError::new(SqlState::DATA_CORRUPTED, "the record is no definition")),
            };
        }
        self.run_ddl(&albireo_sql::parse_one(text)?, text).map(drop)
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

/// A log that cannot be read on.
fn damaged(error: ReadError) -> SqlError {
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
        _ => SqlError::new(SqlState::DATA_CORRUPTED, text).with_detail(place),
    }
}
