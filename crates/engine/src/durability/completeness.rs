//! Whether a redo log has all that it had: held against its control files.
//!
//! Responsible for: what is missing, in words; what can be known and what cannot. Not responsible for: the control
//! files (`albireo_redo`), what archives know of the log (`recovery`, `inspect`).
//!
//! What the control files say was durable must be there, or opening refuses. After a clean close that is the whole
//! log. After a crash it is all but what was acknowledged after they were written last, which is at most a second's
//! work and usually less: whether that is there, nothing says, and it is told so.

use std::path::{Path, PathBuf};

use albireo_redo::{Control, Controls, End, Reached, Verdict};

use super::recovery::utc;

/// What is known of the end of a redo log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogCompleteness {
    /// The database was closed cleanly, and everything up to its last record is there.
    Complete {
        /// The last record; 0 if there is none.
        record: u64,
    },
    /// The database is open, or was not closed cleanly. What was durable when the control files were written last is
    /// there; whether all is that was acknowledged afterwards cannot be known.
    Unclosed {
        /// The last record that was durable then; 0 if none was.
        durable_record: u64,
        /// When that was, in microseconds since 1970.
        durable_time_us: i64,
        /// The last record that is there; 0 if there is none.
        record: u64,
    },
    /// No control file can be used: nothing says how far the log should go.
    Unknown,
}

impl std::fmt::Display for LogCompleteness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Complete { record } => write!(f, "closed cleanly, complete to record {record}"),
            Self::Unclosed { durable_record, durable_time_us, record } => write!(
                f,
                "open, or not closed cleanly: complete at least to record {durable_record}, which was durable at {}; the \
                 log ends with record {record}, and whether anything acknowledged after that is missing cannot be known",
                utc(*durable_time_us)
            ),
            Self::Unknown => f.write_str(
                "unknown: without its control files nothing says whether the end of the log is missing",
            ),
        }
    }
}

/// Why a log is not the whole one.
pub(super) struct Missing {
    /// The file with its last frame, or its directory, or the control file that is of another log.
    pub(super) file: PathBuf,
    /// Where that frame ends.
    pub(super) offset: Option<u64>,
    /// What is missing.
    pub(super) reason: String,
    /// The last record that is there; 0 if there is none.
    pub(super) last_record: u64,
    /// What can be done, if copying what is left is no help.
    pub(super) hint: Option<String>,
}

/// Holds a log that has been read to its `end` against its control files.
pub(super) fn judge(
    controls: &Controls,
    end: &End,
    reached: &Reached,
    directory: &Path,
) -> Result<LogCompleteness, Box<Missing>> {
    match controls.judge(reached) {
        Verdict::Unknown => Ok(LogCompleteness::Unknown),
        Verdict::Complete(_) => Ok(LogCompleteness::Complete { record: reached.ordinal }),
        Verdict::Unclosed(control) => Ok(LogCompleteness::Unclosed {
            durable_record: control.ordinal,
            durable_time_us: control.time_us,
            record: reached.ordinal,
        }),
        Verdict::Lost(control) => Err(Box::new(lost(&control, end, reached, directory))),
        Verdict::OtherLog { path, found, expected } => Err(Box::new(Missing {
            reason: format!(
                "the control file is of log {found:016x}, and the log in {} is {expected:016x}: they are not of the \
                 same database",
                directory.display()
            ),
            hint: Some(format!(
                "Put the log back that belongs to the database. If it is the log that is right, remove {}.",
                path.display()
            )),
            file: path,
            offset: None,
            last_record: reached.ordinal,
        })),
    }
}

fn lost(control: &Control, end: &End, reached: &Reached, directory: &Path) -> Missing {
    let (upto, last) = (control.ordinal, reached.ordinal);
    let how = if control.is_closed { "was closed cleanly after record" } else { "was durable up to record" };
    let ends = match last {
        0 => "has no record".to_owned(),
        last => format!("ends with record {last}"),
    };
    let at_least = if control.is_closed { "" } else { " at least" };
    let missing = match upto {
        upto if upto > last + 1 => format!("records {} to {upto}{at_least} are missing", last + 1),
        upto if upto > last => format!("record {upto}{at_least} is missing"),
        _ => format!("segment {} is missing, which had been begun", control.segment),
    };
    let torn = end.torn.as_ref().map_or_else(String::new, |torn| {
        format!(
            "; {} bytes from byte {} of {} do not check: {}",
            torn.bytes,
            torn.offset,
            torn.path.display(),
            torn.fault
        )
    });
    let reason = format!(
        "the end of the redo log is missing: it {how} {upto} at {}, and here it {ends}: {missing}{torn}",
        utc(control.time_us)
    );
    let (file, offset) = match &end.tail {
        Some((path, offset)) => (path.clone(), Some(*offset)),
        None => (directory.to_owned(), None),
    };
    Missing { file, offset, reason, last_record: last, hint: None }
}
