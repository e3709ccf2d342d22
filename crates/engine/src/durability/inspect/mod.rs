//! What a redo log says, read without opening the database: for `albireo log` and `albireo verify`.
//!
//! Responsible for: reading all records in order, following the definitions among them so that tables,
//! columns and routines have their names (`names`), what is wrong and where, whether its end is there
//! (`completeness`); archives, and whether they fit the log (`archives`). Not responsible for: printing.
//!
//! A log whose beginning is gone, because an archive has it, begins with the definitions of an archive.
//!
//! I-1 Nothing is locked and no file is changed. I-2 A log that is being written meanwhile is never called
//! damaged: what does not check is read anew, and only what stays the same is a fault.

mod archives;
mod names;
mod rows;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_base::{SqlError, SqlState, TableId, Value};
use albireo_env::Env;
use albireo_redo::{
    CONTROL_NAME, Controls, End, Evidence, Fault, Frame, LogReader, Reached, ReadError, Record,
    segment_number,
};

use super::backup::Backup;
use super::completeness::{self, LogCompleteness, Missing};
use super::directory::controls_of;
use super::kind::DirectoryKind;
use crate::routines::Argument;
pub use archives::{ArchiveCheck, ArchiveFault, ArchiveInspector};
use names::Names;
pub use rows::{LogRows, LogRowsIter, LogTable};

/// How often what does not check is read anew.
const LOOKS: u32 = 3;

/// A record of the log.
#[derive(Clone, PartialEq, Debug)]
pub struct LogEntry<'a> {
    /// Its number, from 1.
    pub ordinal: u64,
    /// When its transaction ran, in microseconds since 1970.
    pub time_us: i64,
    /// Its partition; `None` if it is ordered against all of them.
    pub partition: Option<u16>,
    /// The frame that it is in.
    pub frame: u64,
    /// The segment that the frame is in.
    pub segment: u64,
    /// Where the frame begins there, in bytes.
    pub offset: u64,
    /// What it says.
    pub content: LogContent<'a>,
}

/// What a record says.
#[derive(Clone, PartialEq, Debug)]
pub enum LogContent<'a> {
    /// The text that changed definitions.
    Definition {
        /// The statement.
        text: String,
        /// The tables that it made, changed or dropped.
        tables: Vec<Arc<str>>,
        /// The routines that it made, changed or dropped.
        routines: Vec<Arc<str>>,
    },
    /// Rows that a transaction wrote: its net effect.
    Writes(LogRows<'a>),
    /// Rows of tables whose form is no longer known: an archive that is younger has the definitions, and they
    /// were changed in between.
    Untold {
        /// The archive.
        archive: u64,
        /// The first such table: its name, or its number if it was dropped.
        table: Arc<str>,
    },
    /// A call of a routine or native procedure, which is run again.
    Command {
        /// The routine's name.
        routine: Arc<str>,
        /// Its id; 0 of a native procedure.
        id: u64,
        /// The version of its definition.
        version: u64,
        /// How many rows it inserted and deleted.
        moved: u64,
        /// Its arguments with their names; of a native procedure the bytes that stand for them.
        arguments: Vec<(Arc<str>, Argument)>,
    },
    /// A part of the rows of a transaction; they count if it ends.
    Part {
        /// Its number.
        transaction: u64,
        /// The rows.
        rows: LogRows<'a>,
    },
    /// The end of a transaction of several parts.
    Joined {
        /// Its number.
        transaction: u64,
        /// How many parts there are.
        parts: u64,
    },
    /// A statement that changed many rows, which is run again.
    Statement {
        /// The table.
        table: Arc<str>,
        /// It.
        text: String,
        /// How many rows it concerned.
        rows: u64,
        /// Its parameters.
        parameters: Vec<Value>,
    },
}

impl LogContent<'_> {
    /// The word for what it is.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Definition { .. } => "definition",
            Self::Writes(_) | Self::Untold { .. } => "write",
            Self::Command { .. } => "command",
            Self::Statement { .. } => "statement",
            Self::Part { .. } => "part",
            Self::Joined { .. } => "joined",
        }
    }
}

/// A row that was written.
#[derive(Clone, PartialEq, Debug)]
pub struct LogWrite {
    /// The table's id.
    pub id: TableId,
    /// Its name, after its schema unless that is `public`.
    pub table: Arc<str>,
    /// The partition that the row is in; `None` if the table is shared.
    pub partition: Option<u16>,
    /// What happened to it.
    pub change: RowChange,
    /// What names the row that was updated or deleted.
    pub key: Vec<(Arc<str>, Value)>,
    /// What the row got: all of it, or the columns that were updated.
    pub values: Vec<(Arc<str>, Value)>,
}

/// What happened to a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowChange {
    /// It came, or has another key.
    Insert,
    /// It got new values.
    Update,
    /// It went, or has another key.
    Delete,
}

impl RowChange {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// Something in a log that is not as it was written, or cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{}{}: {reason}", file.display(),
    offset.map(|offset| format!(", byte {offset}")).unwrap_or_default(),
    record.map(|record| format!(", record {record}")).unwrap_or_default())]
pub struct LogFault {
    /// The file.
    pub file: PathBuf,
    /// The byte in it: of what is damaged, or of the frame that has the record.
    pub offset: Option<u64>,
    /// The record.
    pub record: Option<u64>,
    /// What is wrong.
    pub reason: String,
    /// Whether what follows could not be read.
    pub is_last: bool,
}

/// What a log has, as far as it has been read.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LogSummary {
    /// Its segments, and their bytes.
    pub segments: u64,
    /// Bytes of all segments, with those not used yet.
    pub segment_bytes: u64,
    /// Partitions of the database; 0 if the log has no frame.
    pub partitions: u16,
    /// Frames.
    pub frames: u64,
    /// Bytes of frames.
    pub frame_bytes: u64,
    /// Which log it is; `None` if it has no segment.
    pub log_id: Option<u64>,
    /// Sequence of the first frame and of the last; 0 if there is none.
    pub sequences: (u64, u64),
    /// Ordinal of the first record and of the last; 0 if there is none.
    pub ordinals: (u64, u64),
    /// Records that change definitions.
    pub definitions: u64,
    /// Records of rows.
    pub writes: u64,
    /// Rows in them.
    pub rows: u64,
    /// Records of rows that cannot be told, which [`LogContent::Untold`] explains.
    pub untold: u64,
    /// Records of calls and of statements.
    pub commands: u64,
    /// Records that cannot be understood.
    pub unknown: u64,
    /// The earliest and the latest time of a record, in microseconds since 1970.
    pub times_us: Option<(i64, i64)>,
    /// The rest of a write at the end of the log that a crash interrupted, or that is being made: left out.
    pub torn: Option<String>,
    /// Somebody wrote the log while it was read; what came later was left out.
    pub is_growing: bool,
    /// Reading ended at a fault; what follows is not known.
    pub is_cut: bool,
    /// The first frame and the first record that the log has or would have.
    pub begins: (u64, u64),
    /// The frame behind its last one; of a log that is being written, as far as it was read.
    pub next_sequence: u64,
    /// There is a segment with a header.
    pub has_segment: bool,
    /// What is known of its end, once it has been read; `None` of a backup, whose manifest says it.
    pub completeness: Option<LogCompleteness>,
    /// Control files that cannot be used, or contradict each other.
    pub control_faults: Vec<(PathBuf, String)>,
}

impl LogSummary {
    /// All records.
    pub fn records(&self) -> u64 {
        self.definitions + self.writes + self.untold + self.commands + self.unknown
    }

    fn count_frame(&mut self, frame: &Frame) {
        if self.frames == 0 {
            self.partitions = frame.lanes;
            self.sequences.0 = frame.sequence;
        }
        self.sequences.1 = frame.sequence;
        self.frames += 1;
        self.frame_bytes += frame.bytes;
    }

    fn count(&mut self, record: &Record<'_>, content: Option<&LogContent<'_>>) {
        let first = if self.ordinals.0 == 0 { record.ordinal } else { self.ordinals.0 };
        self.ordinals = (first, record.ordinal);
        let (from, to) = self.times_us.unwrap_or((record.time_us, record.time_us));
        self.times_us = Some((from.min(record.time_us), to.max(record.time_us)));
        match content {
            Some(LogContent::Definition { .. }) => self.definitions += 1,
            Some(LogContent::Command { .. } | LogContent::Statement { .. }) => self.commands += 1,
            Some(LogContent::Untold { .. }) => self.untold += 1,
            Some(LogContent::Joined { .. }) => self.writes += 1,
            Some(LogContent::Writes(rows) | LogContent::Part { rows, .. }) => {
                self.writes += 1;
                self.rows += rows.count();
            }
            None => self.unknown += 1,
        }
    }
}

/// Reads a log from its beginning.
///
/// ```
/// # use albireo::{Config, Database, LogContent, LogInspector};
/// # use std::ops::ControlFlow;
/// # let env = albireo_env::Env::simulated(1).0;
/// # let env = albireo_env::Env { clock: albireo_env::Clock::real(), ..env };
/// # let db = Database::open_in("/data", Config::default(), env.clone())?;
/// db.execute("CREATE TABLE star (name TEXT); INSERT INTO star VALUES ('Albireo')")?;
/// let mut said = Vec::new();
/// let mut inspector = LogInspector::open("/data", &env)?;
/// inspector.visit(&mut |entry| {
///     if let Ok(entry) = entry && let LogContent::Writes(rows) = entry.content {
///         said.extend(rows.iter().map(|row| format!("{} {}", row.table, row.values[0].1)));
///     }
///     ControlFlow::Continue(())
/// });
/// assert_eq!(said, ["star Albireo"]);
/// assert_eq!(inspector.summary().records(), 2);
/// # Ok::<(), albireo::SqlError>(())
/// ```
#[derive(Debug)]
pub struct LogInspector {
    env: Env,
    directory: PathBuf,
    /// The archives beside the log, if it is a database's.
    archives: Option<ArchiveInspector>,
    /// Read before the log; `None` of a backup.
    controls: Option<Controls>,
    names: Names,
    summary: LogSummary,
}

impl LogInspector {
    /// Opens the log of the database or backup in `path`, or the log that is in `path` itself.
    ///
    /// # Errors
    /// 58P01 or 55000 if `path` is something else, 58030 if it cannot be read.
    pub fn open(path: impl AsRef<Path>, env: &Env) -> Result<Self, SqlError> {
        let path = path.as_ref();
        let kind = DirectoryKind::of(path, env)?;
        let directory = match &kind {
            DirectoryKind::Database | DirectoryKind::Backup => path.join("log"),
            DirectoryKind::Log(_) => path.to_owned(),
            other => return Err(other.refusal(path, "an Albireo database, a backup, or a redo log")),
        };
        // Before the log: it had come to their places by then.
        let controls = controls(path, &kind, env);
        let segments = segments(&directory, env)?;
        let mut summary = LogSummary { segments: segments.len() as u64, ..LogSummary::default() };
        for segment in segments {
            // One that is gone by now is no concern of ours; one that cannot be read is found later.
            summary.segment_bytes += env.disk.open(&segment).and_then(|file| file.len()).unwrap_or_default();
        }
        // What is wrong with them is not for the log to say.
        let archives = directory.parent().and_then(|parent| ArchiveInspector::open(parent, env).ok());
        let (archives, names) = (archives.flatten(), Names::new(env));
        Ok(Self { env: env.clone(), directory, archives, controls, names, summary })
    }

    /// The directory of the log's segments.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What has been read so far.
    pub fn summary(&self) -> &LogSummary {
        &self.summary
    }

    /// How many partitions the database has that `path` keeps; `None` if it has no archive and nothing has
    /// been logged.
    ///
    /// # Errors
    /// As [`LogInspector::open`].
    pub fn partitions(path: impl AsRef<Path>, env: &Env) -> Result<Option<u16>, SqlError> {
        let archives = ArchiveInspector::open(&path, env).ok().flatten();
        if let Some(partitions) = archives.as_ref().and_then(ArchiveInspector::partitions) {
            return Ok(Some(partitions));
        }
        let inspector = Self::open(path, env)?;
        let mut frames = Frames::new(env, &inspector.directory);
        Ok(frames.next().ok().flatten().map(|frame| frame.lanes))
    }

    /// Hands every record to `visitor`, and every fault, until it breaks off or the log ends. To be called
    /// once.
    pub fn visit(&mut self, visitor: &mut dyn FnMut(Result<LogEntry<'_>, LogFault>) -> ControlFlow<()>) {
        let mut frames = Frames::new(&self.env, &self.directory);
        loop {
            let frame = match frames.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    self.summary.is_cut = true;
                    let _ = visitor(Err(fault_of(&self.directory, error)));
                    break;
                }
            };
            // The frames of a restored copy count from 1, and its records go on counting.
            if self.summary.frames == 0 && (frame.sequence > 1 || frame.first_ordinal > 1) {
                self.begin_late(frame.sequence, frames.log_id);
            }
            if self.visit_frame(&frame, visitor).is_break() {
                return;
            }
        }
        self.summary.log_id = frames.log_id;
        self.summary.is_growing = frames.is_growing;
        self.summary.torn = frames.torn();
        self.summary.begins = frames.begins;
        if let Err(missing) = self.conclude(frames.end()) {
            let Missing { file, offset, reason, .. } = *missing;
            let _ = visitor(Err(LogFault { file, offset, record: None, reason, is_last: false }));
        }
    }

    /// Whether the log ends where it should, now that it has been read; without an `end` somebody is writing it.
    fn conclude(&mut self, end: Option<&End>) -> Result<(), Box<Missing>> {
        let summary = &mut self.summary;
        summary.next_sequence = end.map_or(summary.sequences.1 + 1, |end| end.next_sequence);
        summary.has_segment = end.is_none_or(|end| end.tail.is_some());
        let Some(controls) = &self.controls else { return Ok(()) };
        let archived = self.archives.as_ref().and_then(|archives| archives.position(summary.log_id));
        if !summary.has_segment && archived.is_none() && controls.newest().is_none() {
            // A database in which nothing was ever done, or of which everything is gone.
            summary.completeness = Some(LogCompleteness::Unknown);
            return Ok(());
        }
        summary.control_faults = controls.faults();
        let Some(end) = end.filter(|_| !summary.is_cut) else {
            let unclosed = |control: &albireo_redo::Control| LogCompleteness::Unclosed {
                durable_record: control.ordinal,
                durable_time_us: control.time_us,
                record: summary.ordinals.1,
            };
            summary.completeness = controls.newest().filter(|_| !summary.is_cut).map(unclosed);
            return Ok(());
        };
        let reached = Reached::new(end, archived.map(|at| at.log), archived.map_or(1, |at| at.next_record));
        summary.completeness = Some(completeness::judge(controls, end, &reached, &self.directory)?);
        Ok(())
    }

    /// Takes the names from an archive, for a log that begins with the frame `first`. Damage of the archive is not for
    /// the log to say: without names its records are faults.
    fn begin_late(&mut self, first: u64, log_id: Option<u64>) {
        let near = self.archives.as_ref().and_then(|archives| archives.near(first));
        let Some(manifest) = near.filter(|manifest| Some(manifest.log.log) == log_id) else { return };
        let Ok(mut names) = Names::of_archive(manifest, &self.env) else { return };
        // Definitions that the archive has already changed what its catalog no longer tells.
        let mut frames = Frames::new(&self.env, &self.directory);
        while let Ok(Some(frame)) = frames.next()
            && frame.sequence <= manifest.log.sequence
        {
            frame.records().for_each(|record| names.note_change(&record));
        }
        self.names = names;
    }

    fn visit_frame(
        &mut self,
        frame: &Frame,
        visitor: &mut dyn FnMut(Result<LogEntry<'_>, LogFault>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.summary.count_frame(frame);
        let fault = |record, reason| LogFault {
            file: self.directory.join(format!("{:020}.log", frame.segment)),
            offset: Some(frame.offset),
            record,
            reason,
            is_last: false,
        };
        if frame.lanes != self.summary.partitions {
            let reason =
                format!("the frame has {} partitions, those before {}", frame.lanes, self.summary.partitions);
            visitor(Err(fault(None, reason)))?;
        }
        for record in frame.records() {
            let content = self.names.content(&record, frame);
            self.summary.count(&record, content.as_ref().ok());
            visitor(match content {
                Ok(content) => Ok(LogEntry {
                    ordinal: record.ordinal,
                    time_us: record.time_us,
                    partition: (!record.crossing).then_some(record.lane),
                    frame: frame.sequence,
                    segment: frame.segment,
                    offset: frame.offset,
                    content,
                }),
                Err(reason) => Err(fault(Some(record.ordinal), reason)),
            })?;
        }
        ControlFlow::Continue(())
    }
}

/// The control files of the log in `path`, which somebody may be writing.
fn controls(path: &Path, kind: &DirectoryKind, env: &Env) -> Option<Controls> {
    let paths = match kind {
        DirectoryKind::Database => controls_of(path),
        // Of a backup its manifest says how far it goes.
        DirectoryKind::Log(of) if !Backup::is_at(of, env) => {
            let copy = of.join(CONTROL_NAME);
            let copy = Some(copy).filter(|copy| env.disk.open(copy).is_ok());
            [path.join(CONTROL_NAME)].into_iter().chain(copy).collect()
        }
        _ => return None,
    };
    let mut controls = Controls::read(&*env.disk, &paths);
    for _ in 1..LOOKS {
        if controls.faults().is_empty() {
            break;
        }
        controls = Controls::read(&*env.disk, &paths);
    }
    Some(controls)
}

/// The segments in a directory; none if it is not there.
fn segments(directory: &Path, env: &Env) -> Result<Vec<PathBuf>, SqlError> {
    match env.disk.read_dir(directory) {
        Ok(mut paths) => {
            paths.retain(|path| segment_number(path).is_some());
            Ok(paths)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => {
            let text = format!("could not read the directory \"{}\": {error}", directory.display());
            Err(SqlError::new(SqlState::IO_ERROR, text))
        }
    }
}

/// The frames of a log that somebody may be writing.
///
/// A segment is read from front to back while frames are written into it, so that a later frame can be
/// seen where an earlier one was not there yet, which looks like damage. Read anew, it is there.
struct Frames {
    env: Env,
    directory: PathBuf,
    reader: Option<LogReader>,
    /// The frame that is next; 0 before the first.
    next: u64,
    log_id: Option<u64>,
    /// How often the present place has been read.
    looks: u32,
    /// The last frame to be read, so that nobody runs after a log for ever.
    last: Option<u64>,
    is_growing: bool,
    /// The first frame and record that the log has or would have.
    begins: (u64, u64),
}

impl Frames {
    fn new(env: &Env, directory: &Path) -> Self {
        let (env, directory) = (env.clone(), directory.to_owned());
        let (reader, log_id, last, begins) = (None, None, None, (0, 0));
        Self { env, directory, reader, next: 0, log_id, looks: 0, last, is_growing: false, begins }
    }

    fn next(&mut self) -> Result<Option<Frame>, ReadError> {
        if self.last.is_some_and(|last| self.next > last) {
            self.is_growing = true;
            return Ok(None);
        }
        loop {
            let error = match self.try_next() {
                Ok(frame) => {
                    if let Some(frame) = &frame {
                        (self.next, self.looks) = (frame.sequence + 1, 0);
                    }
                    return Ok(frame);
                }
                Err(error) => error,
            };
            self.looks += 1;
            if self.looks >= LOOKS || matches!(error, ReadError::Format { .. }) {
                return Err(error);
            }
            if let ReadError::Corrupt(corruption) = &error
                && let Evidence::LaterFrame { sequence, .. } = corruption.evidence
            {
                self.last.get_or_insert(sequence);
            }
            self.reader = None;
        }
    }

    /// Opens the log at the frame before the next one, so that what is wrong between the two is found again.
    fn open(&self) -> Result<LogReader, ReadError> {
        let open = |from| LogReader::open(Arc::clone(&self.env.disk), &self.directory, from, self.log_id);
        match open(self.next.saturating_sub(1)) {
            // Its segment has been removed meanwhile.
            Err(ReadError::Corrupt(corruption))
                if matches!(corruption.fault, Fault::MissingFrames { .. }) =>
            {
                open(self.next)
            }
            opened => opened,
        }
    }

    fn try_next(&mut self) -> Result<Option<Frame>, ReadError> {
        if self.reader.is_none() {
            let reader = self.open()?;
            if self.next == 0 {
                self.begins = (reader.next_sequence(), reader.next_ordinal());
            }
            self.reader = Some(reader);
        }
        let reader = self.reader.as_mut().expect("opened above");
        let mut frame = reader.next_frame()?;
        while frame.as_ref().is_some_and(|frame| frame.sequence < self.next) {
            frame = reader.next_frame()?;
        }
        if self.log_id.is_none() {
            self.log_id = reader.give_up().log_id;
        }
        Ok(frame)
    }

    /// Where the log ends, if it was read so far.
    fn end(&self) -> Option<&End> {
        self.reader.as_ref()?.end()
    }

    /// What was left out at the end.
    fn torn(&self) -> Option<String> {
        let torn = self.end()?.torn.as_ref()?;
        Some(torn.to_string())
    }
}

fn fault_of(directory: &Path, error: ReadError) -> LogFault {
    let place =
        |file: PathBuf, offset, record, reason| LogFault { file, offset, record, reason, is_last: true };
    match error {
        ReadError::Io(failure) => place(
            failure.path.clone(),
            None,
            None,
            format!("cannot {}: {}", failure.operation, failure.source),
        ),
        ReadError::Corrupt(corruption) => {
            let albireo_redo::Corruption { path, offset, sequence, ordinal, fault, evidence, .. } =
                *corruption;
            place(path, Some(offset), ordinal, format!("frame {sequence} is damaged: {fault}; {evidence}"))
        }
        ReadError::Format { path, found } => {
            let reads = albireo_redo::FORMAT;
            let reason = format!("written by log format {found}, this program reads format {reads}");
            place(path, Some(0), None, reason)
        }
        other => place(directory.to_owned(), None, None, other.to_string()),
    }
}
