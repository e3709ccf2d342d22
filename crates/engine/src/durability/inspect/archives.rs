//! What archives say, and whether they and the log are of one piece.
//!
//! Archives are listed before the log is read: the log had come to their places by then, so that one that has
//! not has lost its end, also if somebody is writing both.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use albireo_archive::{Listing, LogPosition, Manifest, list, verify};
use albireo_base::SqlError;
use albireo_env::Env;

use super::LogSummary;
use crate::durability::checkpoint::archive_error;

/// Something in an archive that is not as it was written, or does not fit the log.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {reason}", file.display())]
pub struct ArchiveFault {
    /// The file, or the directory.
    pub file: PathBuf,
    /// What is wrong.
    pub reason: String,
}

/// What one archive has, and what is wrong with it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ArchiveCheck {
    /// Its number.
    pub number: u64,
    /// When its snapshot was taken, in microseconds since 1970; `None` if its manifest cannot be used.
    pub time_us: Option<i64>,
    /// Its tables.
    pub tables: u64,
    /// Their rows.
    pub rows: u64,
    /// Its files, those of older archives included.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The last frame of the log whose records are in it.
    pub frame: u64,
    /// What is wrong.
    pub faults: Vec<ArchiveFault>,
}

/// Looks at the archives of a database without opening it.
///
/// Nothing is locked and no file is changed; an archive that goes meanwhile is left out.
#[derive(Debug)]
pub struct ArchiveInspector {
    env: Env,
    directory: PathBuf,
    listing: Listing,
}

impl ArchiveInspector {
    /// Looks what archives the database in `path` has; to be done before its log is read. `None` if `path` is
    /// not the directory of a database, as that of a log alone is.
    ///
    /// # Errors
    /// 58030 if the directory cannot be read.
    pub fn open(path: impl AsRef<Path>, env: &Env) -> Result<Option<Self>, SqlError> {
        let path = path.as_ref();
        let is_there = |name| env.disk.read_dir(&path.join(name)).is_ok();
        if !is_there("archive") && !is_there("log") {
            return Ok(None);
        }
        let directory = path.join("archive");
        let listing = list(env, &directory).map_err(archive_error)?;
        Ok(Some(Self { env: env.clone(), directory, listing }))
    }

    /// The directory of the archives.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether there is none, be it damaged.
    pub fn is_empty(&self) -> bool {
        self.listing.complete.is_empty() && self.listing.unreadable.is_empty()
    }

    /// Archives that were not finished, of which nothing is needed.
    pub fn incomplete(&self) -> &[u64] {
        &self.listing.incomplete
    }

    /// The manifest of the newest archive before `frame`, or else of the oldest.
    pub(super) fn near(&self, frame: u64) -> Option<&Manifest> {
        let complete = &self.listing.complete;
        let before = complete.iter().find(|manifest| manifest.log.sequence < frame);
        before.or_else(|| complete.last())
    }

    /// How far a log had come at the newest archive that is of it.
    pub(super) fn position(&self, log_id: Option<u64>) -> Option<LogPosition> {
        let positions = self.listing.complete.iter().map(|manifest| manifest.log);
        let mut same = positions.filter(|at| log_id.is_none_or(|id| id == at.log));
        same.next()
    }

    /// Partitions of the database, as the newest archive says.
    pub(super) fn partitions(&self) -> Option<u16> {
        self.listing.complete.first().map(|manifest| manifest.partitions)
    }

    /// Reads all archives, the newest first, and compares them with what the log has; `None`: it could not be
    /// read at all.
    pub fn check(&self, log: Option<&LogSummary>) -> Vec<ArchiveCheck> {
        let unusable = self.listing.unreadable.iter().map(|archive| ArchiveCheck {
            number: archive.number,
            faults: vec![self.fault(archive.number, archive.error.to_string())],
            ..ArchiveCheck::default()
        });
        let complete = self.listing.complete.iter().map(|manifest| self.check_one(manifest, log));
        let mut checks: Vec<ArchiveCheck> = unusable.chain(complete).collect();
        checks.sort_by_key(|check| std::cmp::Reverse(check.number));
        if checks.iter().any(|check| !check.faults.is_empty()) {
            self.leave_out_gone(&mut checks);
        }
        checks
    }

    fn check_one(&self, manifest: &Manifest, log: Option<&LogSummary>) -> ArchiveCheck {
        let findings = verify(&self.env, &self.directory, manifest.number);
        let told = |path: &Path, text: String| {
            // Its path stands before it already.
            text.strip_prefix(&format!("{}: ", path.display())).map(str::to_owned).unwrap_or(text)
        };
        let fault = |finding: albireo_archive::Finding| {
            let reason = told(&finding.path, finding.error.to_string());
            ArchiveFault { file: finding.path, reason }
        };
        let mut faults: Vec<ArchiveFault> = findings.into_iter().map(fault).collect();
        let joined = log.and_then(|log| disagreement(manifest, log));
        faults.extend(joined.map(|reason| self.fault(manifest.number, reason)));
        ArchiveCheck {
            number: manifest.number,
            time_us: Some(manifest.time_us),
            tables: manifest.tables.len() as u64,
            rows: manifest.rows(),
            files: manifest.files().count() as u64,
            bytes: manifest.bytes(),
            frame: manifest.log.sequence,
            faults,
        }
    }

    fn fault(&self, number: u64, reason: String) -> ArchiveFault {
        let file = self.directory.join(format!("{number:010}"));
        let prefix = format!("{}: ", file.join("manifest.json").display());
        match reason.strip_prefix(&prefix) {
            Some(rest) => ArchiveFault { file: file.join("manifest.json"), reason: rest.to_owned() },
            None => ArchiveFault { file, reason },
        }
    }

    /// Whoever has the database open removes old archives.
    fn leave_out_gone(&self, checks: &mut Vec<ArchiveCheck>) {
        let Ok(now) = list(&self.env, &self.directory) else { return };
        let complete = now.complete.iter().map(|manifest| manifest.number);
        let there: BTreeSet<u64> = complete.chain(now.unreadable.iter().map(|other| other.number)).collect();
        // Only a younger one makes an older one go.
        let newest = there.last().copied().unwrap_or(0);
        checks.retain(|check| there.contains(&check.number) || check.number > newest);
    }
}

/// Why an archive and a log are not of one piece.
fn disagreement(archive: &Manifest, log: &LogSummary) -> Option<String> {
    let (at, (first, _)) = (archive.log.sequence, log.begins);
    match log.log_id {
        Some(id) if id != archive.log.log => {
            return Some(format!(
                "it belongs to log {:016x}, and the log that is here is {id:016x}: they are not of the same \
                 database",
                archive.log.log
            ));
        }
        _ => {}
    }
    if first > at + 1 {
        return Some(format!(
            "it has come to frame {at} of the log, and the log begins with frame {first}: what is between is \
             missing"
        ));
    }
    // As recovery has it: the newest segment stays, whatever archives there are.
    let is_there = at == 0 || (log.has_segment && log.next_sequence > at);
    (!is_there && !log.is_cut).then(|| {
        let ends = match log.has_segment {
            true => format!("ends with frame {}", log.next_sequence - 1),
            false => "has no segment".to_owned(),
        };
        format!("it has come to frame {at} of the log, and the log {ends}: the end of the log is missing")
    })
}
