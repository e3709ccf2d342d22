//! A backup that is there: reading its manifest, checking its files.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_env::Env;

use super::manifest::{BackupFile, BackupManifest, NAME, UNFINISHED_NAME};
use super::tar_disk::TarDisk;
use super::transfer::{Transfer, failed};
use super::{BackupOptions, BackupProgress, BackupStep};
use crate::durability::kind::DirectoryKind;

/// A file of a backup that is not as it was written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {reason}", file.display())]
pub struct BackupFault {
    /// The file.
    pub file: PathBuf,
    /// What is wrong.
    pub reason: String,
}

/// A backup, complete as far as its manifest says.
#[derive(Debug)]
pub struct Backup {
    env: Env,
    path: PathBuf,
    manifest: BackupManifest,
}

impl Backup {
    /// Opens the backup at `path`, a directory or a file.
    ///
    /// # Errors
    /// 58P01 if there is none; 55000 if it was not finished; 0A000 if it has another format; XX001 if its
    /// manifest is damaged; 58030 if it cannot be read.
    pub fn open(path: impl AsRef<Path>, env: &Env) -> Result<Self, SqlError> {
        let path = path.as_ref();
        let env = Self::env_of(path, env)?;
        let name = path.join(NAME);
        match read_whole(&env, &name) {
            Ok(bytes) => {
                let manifest = BackupManifest::decode(&bytes, &name)?;
                Ok(Self { env, path: path.to_owned(), manifest })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Self::missing(path, &env)),
            Err(error) => Err(failed("read", &name, &error)),
        }
    }

    /// Whether what is at `path` is a backup, finished or not, and no database.
    pub fn is_at(path: impl AsRef<Path>, env: &Env) -> bool {
        let path = path.as_ref();
        let is_there = |name| !matches!(env.disk.open(&path.join(name)), Err(error) if is_missing(&error));
        match env.disk.read_dir(path) {
            Ok(_) => [NAME, UNFINISHED_NAME].into_iter().any(is_there),
            // A file.
            Err(error) => error.kind() == io::ErrorKind::NotADirectory,
        }
    }

    /// The environment in which `path` is a directory: a file that has all is read through a disk of its own.
    fn env_of(path: &Path, env: &Env) -> Result<Env, SqlError> {
        match env.disk.read_dir(path) {
            Ok(_) => Ok(env.clone()),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                let disk = TarDisk::open(&*env.disk, path).map_err(|error| match error.kind() {
                    io::ErrorKind::InvalidData => {
                        let text = format!("\"{}\" is no backup: {error}", path.display());
                        SqlError::new(SqlState::DATA_CORRUPTED, text)
                    }
                    _ => failed("read", path, &error),
                })?;
                Ok(Env { disk: Arc::new(disk), ..env.clone() })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let text = format!("there is no backup at \"{}\"", path.display());
                Err(SqlError::new(SqlState::UNDEFINED_FILE, text))
            }
            Err(error) => Err(failed("read", path, &error)),
        }
    }

    /// Why there is no manifest.
    fn missing(path: &Path, env: &Env) -> SqlError {
        let place = path.display();
        if env.disk.open(&path.join(UNFINISHED_NAME)).is_ok() {
            let text = format!("the backup in \"{place}\" was not finished");
            return SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text)
                .with_hint("Remove it, and take another.");
        }
        match DirectoryKind::of(path, env) {
            Ok(kind @ DirectoryKind::Database) => {
                let hint =
                    "Make a backup of it with `albireo backup`, or a copy as of a moment with --until.";
                return kind.refusal(path, "a backup").with_hint(hint);
            }
            Ok(kind @ (DirectoryKind::Empty | DirectoryKind::Log(_) | DirectoryKind::Archives(_))) => {
                return kind.refusal(path, "a backup");
            }
            _ => {}
        }
        SqlError::new(
            SqlState::UNDEFINED_FILE,
            format!("there is no backup in \"{place}\": {NAME} is missing"),
        )
        .with_hint("A backup is made by `albireo backup`.")
    }

    /// What it consists of.
    pub fn manifest(&self) -> &BackupManifest {
        &self.manifest
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The environment in which [`Backup::path`] is a directory with an archive and a log.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Reads all files: each must be there, with its length and its checksum. An empty answer means that all
    /// is well.
    pub fn check(&self, mut progress: impl FnMut(BackupProgress)) -> Vec<BackupFault> {
        let (options, bytes) = (BackupOptions::default(), self.manifest.bytes());
        let mut transfer = Transfer::new(&self.env, &options, BackupStep::Check, bytes, &mut progress);
        let files = self.manifest.files.iter();
        files.filter_map(|file| self.check_file(file, &mut transfer).err()).collect()
    }

    fn check_file(&self, file: &BackupFile, transfer: &mut Transfer<'_>) -> Result<(), BackupFault> {
        let path = self.path.join(&file.path);
        let fault = |reason: String| BackupFault { file: path.clone(), reason };
        let cannot = |error: io::Error| match is_missing(&error) {
            true => fault("the file is missing".to_owned()),
            false => fault(error.to_string()),
        };
        let source = self.env.disk.open(&path).map_err(cannot)?;
        let length = source.len().map_err(cannot)?;
        if length != file.bytes {
            return Err(fault(format!("the file has {length} bytes instead of {}", file.bytes)));
        }
        let found = transfer.read(source, file.bytes).sum().map_err(cannot)?;
        match found == file.crc32c {
            true => Ok(()),
            false => Err(fault(format!("the checksum is {found:08x} instead of {:08x}", file.crc32c))),
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// All bytes of a file.
fn read_whole(env: &Env, path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    env.disk.open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}
