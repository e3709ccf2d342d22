//! The directory that a database is kept in.

use std::path::{Path, PathBuf};

use albireo_base::{SqlError, SqlState};
use albireo_env::{Disk, DiskLock, Env};
use albireo_redo::CONTROL_NAME;

use super::kind::DirectoryKind;

/// A file that is there as long as a restore into the directory has not ended.
pub(super) const RESTORING_NAME: &str = "restore.unfinished";

/// Makes the names on the way to a directory durable, whoever made them: without them, all that is synced in
/// it is lost with it. What may not be opened was not made by us.
pub(super) fn sync_names(disk: &dyn Disk, path: &Path) -> std::io::Result<()> {
    path.ancestors().skip(1).try_for_each(|above| {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        match disk.sync_directory(above) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced,
        }
    })
}

/// The control files of the log of the database in a directory.
pub(super) fn controls_of(path: &Path) -> Vec<PathBuf> {
    vec![path.join("log").join(CONTROL_NAME), path.join(CONTROL_NAME)]
}

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
    /// 55006 if another process has it open, 55000 if it is a backup, not restored wholly, or a part of a database,
    /// 58030 if it cannot be used.
    pub(crate) fn open(env: &Env, path: &Path) -> Result<Self, SqlError> {
        let disk = &env.disk;
        let cannot = |what: &str, error: &std::io::Error| {
            let text = format!("could not {what} \"{}\": {error}", path.display());
            SqlError::new(SqlState::IO_ERROR, text)
        };
        use DirectoryKind::{Archives, Backup, Log, UnfinishedBackup, UnfinishedRestore};
        let kind = DirectoryKind::of(path, env)?;
        if matches!(kind, UnfinishedRestore | Backup | UnfinishedBackup | Log(_) | Archives(_)) {
            return Err(kind.refusal(path, "the directory of a database"));
        }
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

    /// Where rows are that have left memory.
    pub(crate) fn cold(&self) -> PathBuf {
        self.path.join("cold")
    }

    /// Where the archives are.
    pub(crate) fn archive(&self) -> PathBuf {
        self.path.join("archive")
    }

    /// Where the log's segments are.
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// Where the copy of the log's control file is.
    pub(crate) fn control_copy(&self) -> PathBuf {
        self.path.join(CONTROL_NAME)
    }

    /// All control files of the log.
    pub(crate) fn controls(&self) -> Vec<PathBuf> {
        controls_of(&self.path)
    }

    /// Says that a database is being restored into it: until that has ended, it is none.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn begin_restore(&self, disk: &dyn Disk) -> std::io::Result<()> {
        disk.create(&self.path.join(RESTORING_NAME))?.sync()?;
        disk.sync_directory(&self.path)
    }

    /// Takes that back.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn end_restore(&self, disk: &dyn Disk) -> std::io::Result<()> {
        disk.remove_file(&self.path.join(RESTORING_NAME))?;
        disk.sync_directory(&self.path)
    }
}
