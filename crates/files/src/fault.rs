//! What can be wrong with a file, and where.

use std::io;

use albireo_base::{SqlError, SqlState};

/// Longest part of a field that an error shows, in characters.
const SHOWN_CHARACTERS: usize = 60;

/// Why a file's rows cannot be had.
#[derive(Debug)]
pub struct Fault {
    /// The line (or row) on which the record begins, from 1.
    pub place: Option<u64>,
    /// The field's name.
    pub column: Option<String>,
    /// What stands in the field, shortened.
    pub value: Option<String>,
    /// What is wrong.
    pub cause: Cause,
}

/// What is wrong.
#[derive(Debug)]
pub enum Cause {
    /// The operating system's.
    Io(io::Error),
    /// NULL where a value must be.
    Null,
    /// Anything else.
    Sql(SqlError),
}

impl Fault {
    /// Something about the whole file or the statement.
    pub fn new(error: SqlError) -> Self {
        Self { place: None, column: None, value: None, cause: Cause::Sql(error) }
    }

    /// Something about the record on line `place`.
    pub fn at(place: u64, error: SqlError) -> Self {
        Self { place: Some(place), ..Self::new(error) }
    }

    pub(crate) fn bad_file(message: impl Into<String>) -> SqlError {
        SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
    }
}

/// An error of reading: the operating system's, or of what [`crate::open`] made of the bytes.
impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Undecodable>() {
            Ok(Undecodable(error)) => Self::new(error),
            Err(error) => Self { place: None, column: None, value: None, cause: Cause::Io(error) },
        }
    }
}

/// Bytes that are not what they should be: not compressed as they say, not in the encoding that was said.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Undecodable(pub(crate) SqlError);

/// What the operating system said of a file; `None` is what a client sends or takes. `verb` is what was tried.
pub fn io_error(path: Option<&str>, verb: &str, error: &io::Error) -> SqlError {
    let what = path.map_or_else(|| "the client's data".to_owned(), |path| format!("file \"{path}\""));
    let new = |state, reason: &str| SqlError::new(state, format!("could not {verb} {what}: {reason}"));
    match error.kind() {
        io::ErrorKind::NotFound => new(SqlState::UNDEFINED_FILE, "no such file or directory")
            .with_hint("Relative paths start at the directory the database was started in."),
        io::ErrorKind::PermissionDenied => new(SqlState(*b"42501"), "permission denied"),
        io::ErrorKind::IsADirectory => new(SqlState::WRONG_OBJECT_TYPE, "it is a directory"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            new(SqlState::DISK_FULL, "no space left on device").with_hint("Nothing of the file was kept.")
        }
        _ => new(SqlState::IO_ERROR, &error.to_string()),
    }
}

/// Refuses URLs, which no file system knows.
///
/// # Errors
/// 0A000 for a URL.
pub fn refuse_url(path: &str) -> Result<(), SqlError> {
    match path.split_once("://") {
        Some((scheme, _)) if !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            let error = SqlError::unsupported(format!("the URL \"{path}\" in place of a file"));
            Err(error.with_hint("Files are those of the database's machine: download it and name its path."))
        }
        _ => Ok(()),
    }
}

/// A field as a message may quote it.
pub fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN_CHARACTERS + 4)]);
    let mut shown: String = text.chars().take(SHOWN_CHARACTERS).collect();
    if shown.len() < bytes.len() && text.chars().count() > SHOWN_CHARACTERS {
        shown.push_str("...");
    }
    shown
}
