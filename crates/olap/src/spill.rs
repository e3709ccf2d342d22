//! Where queries spill: temporary files in a directory of this process.
//!
//! Responsible for: making the directory with the first file, removing it. Not responsible for: which operators spill
//! and how they read files back (DataFusion), whose directory it is ([`Scratch`]).
//!
//! I-1 There is no directory before the first file, so one that cannot be made fails the query that needs it.
//! I-2 After [`SpillFiles::remove`] no file is made any more.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_env::Scratch;
use datafusion::common::DataFusionError;
use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::{SpillFile, TempFileFactory};
use parking_lot::Mutex;

/// The temporary files of one engine. Clones are the same.
#[derive(Clone)]
pub struct SpillFiles {
    shared: Arc<Shared>,
}

struct Shared {
    base: PathBuf,
    limit_bytes: u64,
    state: Mutex<State>,
}

enum State {
    /// Nothing has spilled.
    Unused,
    /// Files are made by `manager`, in the directory of `scratch`.
    Used { manager: Arc<DiskManager>, _scratch: Scratch },
    /// No files are wanted any more.
    Removed,
}

impl fmt::Debug for SpillFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillFiles").field("base", &self.shared.base).finish_non_exhaustive()
    }
}

impl SpillFiles {
    /// For a directory below `base` that may hold so many bytes. What killed processes left there is removed.
    pub(crate) fn new(base: &Path, limit_bytes: u64) -> Self {
        Scratch::remove_abandoned(base);
        let shared = Shared { base: base.to_owned(), limit_bytes, state: Mutex::new(State::Unused) };
        Self { shared: Arc::new(shared) }
    }

    /// Bytes in the files now.
    pub(crate) fn used_bytes(&self) -> u64 {
        match &*self.shared.state.lock() {
            State::Used { manager, .. } => manager.used_disk_space(),
            State::Unused | State::Removed => 0,
        }
    }

    /// Removes all files and their directory, for a process that is about to end. Queries that spill fail from now on.
    pub fn remove(&self) {
        *self.shared.state.lock() = State::Removed;
    }

    fn manager(&self) -> Result<Arc<DiskManager>, DataFusionError> {
        let mut state = self.shared.state.lock();
        match &*state {
            State::Used { manager, .. } => Ok(Arc::clone(manager)),
            State::Removed => {
                let message = "the database is being closed";
                Err(DataFusionError::ResourcesExhausted(message.to_owned()))
            }
            State::Unused => {
                let (manager, scratch) = self.start()?;
                *state = State::Used { manager: Arc::clone(&manager), _scratch: scratch };
                Ok(manager)
            }
        }
    }

    fn start(&self) -> Result<(Arc<DiskManager>, Scratch), DataFusionError> {
        let Shared { base, limit_bytes, .. } = &*self.shared;
        let scratch = Scratch::create(base).map_err(|error| unusable(base, &error))?;
        let mode = DiskManagerMode::Directories(vec![scratch.path().to_owned()]);
        let builder = DiskManagerBuilder::default().with_mode(mode);
        let manager = builder.with_max_temp_directory_size(*limit_bytes).build()?;
        Ok((Arc::new(manager), scratch))
    }
}

/// Says which directory it was.
fn unusable(base: &Path, error: &io::Error) -> DataFusionError {
    let message = format!("cannot make temporary files in \"{}\": {error}", base.display());
    DataFusionError::IoError(io::Error::new(error.kind(), message))
}

impl TempFileFactory for SpillFiles {
    fn create_temp_file(&self, description: &str) -> Result<Arc<dyn SpillFile>, DataFusionError> {
        self.manager()?.create_tmp_file(description)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "looks at the disk from outside")]

    use super::*;
    use std::io::Write;

    fn entries(path: &Path) -> usize {
        std::fs::read_dir(path).unwrap().count()
    }

    #[test]
    fn directory_appears_with_the_first_file_and_is_removed_while_files_are_open() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path();
        let files = SpillFiles::new(base, 1 << 20);
        assert_eq!((entries(base), files.used_bytes()), (0, 0));
        let file = files.create_temp_file("a test").unwrap();
        assert_eq!(entries(base), 1);
        let mut writer = file.open_writer().unwrap();
        writer.write_all(b"rows").unwrap();
        files.remove();
        assert_eq!(entries(base), 0);
        drop((writer, file));
        assert!(files.create_temp_file("a test").is_err());
        assert_eq!(entries(base), 0);
    }

    #[test]
    fn directory_that_cannot_be_made_fails_with_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().join("none").join("at all");
        let files = SpillFiles::new(&base, 1 << 20);
        let error = crate::errors::to_sql_error(&files.create_temp_file("a test").err().unwrap());
        assert!(error.message().contains(base.to_str().unwrap()), "{error:?}");
    }
}
