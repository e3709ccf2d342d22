//! The directory that a database is kept in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_env::{Disk, DiskLock};

/// Makes the names on the way to a directory durable, whoever made them: without them, all that is synced in
/// it is lost with it. What may not be opened was not made by us.
fn sync_names(disk: &dyn Disk, path: &Path) -> std::io::Result<()> {
    path.ancestors().skip(1).try_for_each(|above| {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        match disk.sync_directory(above) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced,
        }
    })
}

/// A file that is in a directory while a database is restored into it.
const UNFINISHED: &str = "unfinished";

/// A directory that is locked for this process.
#[derive(Debug)]
pub(crate) struct Home {
    path: PathBuf,
    _lock: Box<dyn DiskLock>,
}

impl Home {
    /// Creates the directory if it is not there, and locks it.
    ///
    /// # Errors
    /// 55006 if another process has it open, 58030 if it cannot be used.
    pub(crate) fn open(disk: &Arc<dyn Disk>, path: &Path) -> Result<Self, SqlError> {
        let cannot = |what: &str, error: &std::io::Error| {
            let text = format!("could not {what} \"{}\": {error}", path.display());
            SqlError::new(SqlState::IO_ERROR, text)
        };
        disk.create_dir_all(path).map_err(|error| cannot("create the directory", &error))?;
        sync_names(&**disk, path).map_err(|error| cannot("make durable the directory", &error))?;
        let lock = path.join("lock");
        match disk.lock(&lock) {
            Ok(lock) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let text = format!("the database in \"{}\" is open already", path.display());
                Err(SqlError::new(SqlState::OBJECT_IN_USE, text)
                    .with_hint("Close it in the other process, or open another directory."))
            }
            Err(error) => Err(cannot("lock the directory", &error)),
        }
    }

    /// Where the archives are.
    pub(crate) fn archive(&self) -> PathBuf {
        self.path.join("archive")
    }

    /// Where the log's segments are.
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// Says that a database is being restored into it: until it has an archive, it is none.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn begin_restore(&self, disk: &dyn Disk) -> std::io::Result<()> {
        disk.create(&self.path.join(UNFINISHED))?.sync()?;
        disk.sync_directory(&self.path)
    }

    /// Takes that back.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn end_restore(&self, disk: &dyn Disk) -> std::io::Result<()> {
        disk.remove_file(&self.path.join(UNFINISHED))?;
        disk.sync_directory(&self.path)
    }

    /// Refuses what a restore that was interrupted has left. To be asked if there is no archive.
    ///
    /// # Errors
    /// 55000 if it is that.
    pub(crate) fn check_finished(&self, disk: &dyn Disk) -> Result<(), SqlError> {
        match disk.open(&self.path.join(UNFINISHED)) {
            Ok(_) => {
                let text = format!("restoring a database into \"{}\" was not finished", self.path.display());
                Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text)
                    .with_hint("Remove the directory, and restore again."))
            }
            Err(_) => Ok(()),
        }
    }
}
