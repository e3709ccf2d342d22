//! What a path is to Albireo: a database, a backup, a part of one, or nothing of ours.
//!
//! Every tool looks before it does anything, so that it neither calls sound what is not ours nor makes a database
//! in the wrong place. Nothing is locked or changed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use albireo_base::{SqlError, SqlState};
use albireo_env::Env;
use albireo_redo::{CONTROL_NAME, segment_number};

use super::backup::{NAME, UNFINISHED_NAME};
use super::directory::RESTORING_NAME;

/// What there is at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DirectoryKind {
    /// Nothing.
    Missing,
    /// A file: perhaps a backup in one file.
    File,
    /// A directory with nothing in it.
    Empty,
    /// The directory of a database.
    Database,
    /// A directory into which restoring was interrupted.
    UnfinishedRestore,
    /// A backup.
    Backup,
    /// A backup that was not finished.
    UnfinishedBackup,
    /// The redo log of the database in this directory.
    Log(PathBuf),
    /// The archives of the database in this directory.
    Archives(PathBuf),
    /// Something else.
    Other {
        /// There is a directory that is called as that of a redo log.
        has_log: bool,
    },
}

impl DirectoryKind {
    /// Looks at a path.
    ///
    /// # Errors
    /// 58030 if it cannot be read.
    pub fn of(path: impl AsRef<Path>, env: &Env) -> Result<Self, SqlError> {
        let path = path.as_ref();
        let paths = match env.disk.read_dir(path) {
            Ok(paths) => paths,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::Missing),
            Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(Self::File),
            Err(error) => {
                let text = format!("could not read the directory \"{}\": {error}", path.display());
                return Err(SqlError::new(SqlState::IO_ERROR, text));
            }
        };
        let has = |name: &str| paths.iter().any(|path| path.file_name().is_some_and(|found| found == name));
        let inside = |name: &str| env.disk.read_dir(&path.join(name)).unwrap_or_default();
        let above = || path.parent().unwrap_or(Path::new("/")).to_owned();
        let (log, archives) = (inside("log"), inside("archive"));
        let is_database = (has("log") || has("archive"))
            // A start that a crash interrupted has a log with nothing in it yet.
            && ((has("lock") && log.is_empty())
                || has(CONTROL_NAME)
                || is_log(&log)
                || archives.iter().any(|path| is_archive(path)));
        Ok(match () {
            () if paths.is_empty() => Self::Empty,
            () if has(RESTORING_NAME) => Self::UnfinishedRestore,
            () if has(NAME) => Self::Backup,
            () if has(UNFINISHED_NAME) => Self::UnfinishedBackup,
            () if is_database => Self::Database,
            () if is_log(&paths) => Self::Log(above()),
            () if paths.iter().any(|path| is_archive(path)) => Self::Archives(above()),
            () => Self::Other { has_log: has("log") },
        })
    }

    /// Why it is not `wanted`, such as "an Albireo database".
    pub fn refusal(&self, path: &Path, wanted: &str) -> SqlError {
        let not_there = SqlState::UNDEFINED_FILE;
        let other = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
        let (state, what, hint) = match self {
            Self::Missing => {
                let text = format!("there is nothing at \"{}\"", path.display());
                return SqlError::new(not_there, text);
            }
            Self::UnfinishedRestore => {
                let text = format!(
                    "\"{}\" was not restored wholly: restoring into it was interrupted",
                    path.display()
                );
                return SqlError::new(other, text).with_hint("Remove the directory, and restore again.");
            }
            Self::File => (not_there, "it is a file".to_owned(), None),
            Self::Empty => (not_there, "it is an empty directory".to_owned(), None),
            Self::Database => (other, "it is a database".to_owned(), None),
            Self::Backup => {
                let hint = "Restore it into another directory: `albireo restore`.";
                (other, "it is a backup, which is not changed".to_owned(), Some(hint.to_owned()))
            }
            Self::UnfinishedBackup => {
                let hint = "Remove it, and take another.";
                (other, "it is a backup that was not finished".to_owned(), Some(hint.to_owned()))
            }
            Self::Log(of) => (other, "it is the redo log of a database".to_owned(), Some(name_it(of))),
            Self::Archives(of) => (other, "it has the archives of a database".to_owned(), Some(name_it(of))),
            Self::Other { has_log: true } => {
                (not_there, "there is no redo log in its directory log/".to_owned(), None)
            }
            Self::Other { has_log: false } => (not_there, "it has no log/ or archive/".to_owned(), None),
        };
        let error = SqlError::new(state, format!("\"{}\" is not {wanted}: {what}", path.display()));
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

fn name_it(of: &Path) -> String {
    format!("Name the directory of the database: \"{}\".", of.display())
}

/// Whether these are the files of a redo log.
fn is_log(paths: &[PathBuf]) -> bool {
    paths.iter().any(|path| segment_number(path).is_some())
        || matches!(paths, [only] if only.file_name().is_some_and(|name| name == CONTROL_NAME))
}

/// Whether a path has the name of an archive.
fn is_archive(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.len() == 10 && name.bytes().all(|byte| byte.is_ascii_digit()))
}
