//! Files of archives: where they lie, and reading them.

use std::io;
use std::path::{Path, PathBuf};

use albireo_env::{Env, ReadFile};

use crate::error::{ArchiveError, Damage};

/// The directory of an archive.
pub(crate) fn archive_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(archive_name(number))
}

pub(crate) fn archive_name(number: u64) -> String {
    format!("{number:010}")
}

/// The archive with this directory's name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let number = name.parse().ok()?;
    (archive_name(number) == name).then_some(number)
}

/// Opens a file that should be there.
pub(crate) fn open_file(env: &Env, path: &Path) -> Result<(Box<dyn ReadFile>, u64), ArchiveError> {
    let missing = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ArchiveError::damaged(path, Damage::Missing),
        _ => ArchiveError::io(path, error),
    };
    let file = env.disk.open(path).map_err(missing)?;
    let length = file.len().map_err(|error| ArchiveError::io(path, error))?;
    Ok((file, length))
}

/// All bytes of a file.
pub(crate) fn read_whole(env: &Env, path: &Path) -> Result<Vec<u8>, ArchiveError> {
    let (mut file, length) = open_file(env, path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    io::Read::read_to_end(&mut file, &mut bytes).map_err(|error| ArchiveError::io(path, error))?;
    Ok(bytes)
}
