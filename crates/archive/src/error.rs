//! What can go wrong, by who must act.

use std::io;
use std::path::{Path, PathBuf};

use albireo_storage::FetchError;

/// Why an archive was not written, read or thrown away.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The disk is full. Older archives are as they were.
    #[error("no space left for {}", path.display())]
    NoSpace {
        /// What was being written.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Another archive is being written, or old ones thrown away, in the same directory.
    #[error("{} is in use: another archive is being written", directory.display())]
    Busy {
        /// The directory of archives.
        directory: PathBuf,
    },
    /// Cancelled by its flag.
    #[error("the archive was cancelled")]
    Cancelled,
    /// The snapshot was ended because snapshots held too much memory.
    #[error("the snapshot being archived was ended, because snapshots held too much memory")]
    SnapshotEnded,
    /// A manifest of a format that this version does not know.
    #[error(
        "{} has format {found}, and this version reads formats up to {}: use the version that wrote it, or a newer one",
        path.display(), crate::FORMAT
    )]
    Format {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// Rows that are not in memory could not be read to be written.
    #[error(transparent)]
    Unread(#[from] FetchError),
    /// A file is not as it was written.
    #[error("{}: {damage}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        damage: Damage,
    },
}

/// How a file differs from what was written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// It is not there.
    #[error("the file is missing")]
    Missing,
    /// It cannot be read.
    #[error("the file cannot be read: {}", .0)]
    Unreadable(io::ErrorKind),
    /// It is shorter or longer.
    #[error("the file has {found_bytes} bytes instead of {expected_bytes}")]
    Length {
        /// As the manifest says.
        expected_bytes: u64,
        /// As it is.
        found_bytes: u64,
    },
    /// Bytes have changed.
    #[error("the checksum is {found:08x} instead of {expected:08x}")]
    Checksum {
        /// CRC-32C as written.
        expected: u32,
        /// CRC-32C of what is there.
        found: u32,
    },
    /// Bytes of a part have changed.
    #[error("of bytes {offset} to {} the checksum is {found:08x} instead of {expected:08x}", offset + bytes - 1)]
    Part {
        /// Where the part begins in the file.
        offset: u64,
        /// Its length.
        bytes: u64,
        /// CRC-32C as written.
        expected: u32,
        /// CRC-32C of what is there.
        found: u32,
    },
    /// It has not the form of a manifest.
    #[error("not a manifest: {0}")]
    Form(String),
    /// A manifest contradicts itself, or its place.
    #[error("the manifest contradicts itself: {0}")]
    Contradiction(String),
    /// The file is no Arrow IPC file, although its checksum is right.
    #[error("not an Arrow file: {0}")]
    Arrow(String),
    /// It has other columns than the manifest says.
    #[error("the file's columns are not those of the table")]
    Columns,
    /// It has more or fewer rows than the manifest says.
    #[error("the file has {found_rows} rows instead of {expected_rows}")]
    Rows {
        /// As the manifest says.
        expected_rows: u64,
        /// As it is.
        found_rows: u64,
    },
}

impl ArchiveError {
    /// An error of the operating system at `path`.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace { path },
            _ => Self::Io { path, source },
        }
    }

    pub(crate) fn damaged(path: &Path, damage: Damage) -> Self {
        Self::Damaged { path: path.to_owned(), damage }
    }
}
