//! Settings of databases that the program opens, and their files of rows that leave memory.
//!
//! Such files are in the directory of the database, or in one that people name. Below the latter each database has a
//! directory of its own, as temporary files of queries have: others may use the same one at the same time.

use crate::args::{DatabaseArgs, EvictionArg};
use crate::interrupt::Interrupt;
use albireo::{Config, Eviction, SqlError, SqlState};
use albireo_env::{Env, Scratch};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;

/// The settings of one database.
#[derive(Default)]
pub struct Settings {
    /// What it is opened with.
    pub config: Config,
    /// To be dropped when it has been closed.
    pub evicted: EvictedFiles,
}

/// The files of rows that leave memory, of a database that has them outside of its own directory. They are removed when this
/// is dropped, and when Ctrl-C ends the program.
#[derive(Default)]
pub struct EvictedFiles {
    _scratch: Arc<Mutex<Option<Scratch>>>,
}

impl EvictedFiles {
    fn new(scratch: Scratch, interrupt: &Interrupt) -> Self {
        let scratch = Arc::new(Mutex::new(Some(scratch)));
        let held = Arc::downgrade(&scratch);
        interrupt.at_exit(move || {
            if let Some(scratch) = held.upgrade() {
                *scratch.lock() = None;
            }
        });
        Self { _scratch: scratch }
    }
}

/// As a program that embeds a database has them, with memory limits and eviction as the command line says; the benchmarks'
/// procedures are known, so that what a benchmark has left can be opened.
///
/// # Errors
/// 58030 if the directory for rows that leave memory cannot be used.
pub fn of(args: &DatabaseArgs, env: &Env, interrupt: &Interrupt) -> Result<Settings, SqlError> {
    let procedures = albireo_bench::tpcc::procedures::logged();
    let mut config = Config { procedures, ..args.memory.config() };
    let mut evicted = EvictedFiles::default();
    match (args.eviction, &args.eviction_directory) {
        (Some(EvictionArg::Off), _) => config.eviction = Eviction::Off,
        (_, Some(directory)) => {
            let scratch = scratch(directory, env)?;
            config.eviction = Eviction::To(scratch.path().to_owned());
            evicted = EvictedFiles::new(scratch, interrupt);
        }
        (Some(EvictionArg::On), None) => config.eviction = Eviction::Auto,
        (None, None) => {}
    }
    Ok(Settings { config, evicted })
}

/// A new directory below `directory`, which is made if it is not there. What killed processes have left there goes.
fn scratch(directory: &Path, env: &Env) -> Result<Scratch, SqlError> {
    let made = env.disk.create_dir_all(directory).and_then(|()| {
        Scratch::remove_abandoned(directory);
        Scratch::create(directory)
    });
    made.map_err(|error| {
        let directory = directory.display();
        let text = format!("could not use the directory \"{directory}\" for rows that leave memory: {error}");
        SqlError::new(SqlState::IO_ERROR, text).with_hint("Name another one with --eviction-directory.")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "looks at the disk from outside")]

    use super::*;

    fn settings(eviction: Option<EvictionArg>, directory: Option<&Path>) -> Result<Settings, SqlError> {
        let eviction_directory = directory.map(Path::to_owned);
        let args = DatabaseArgs { eviction, eviction_directory, ..DatabaseArgs::default() };
        of(&args, &Env::real(), &Interrupt::default())
    }

    fn entries(path: &Path) -> usize {
        std::fs::read_dir(path).unwrap().count()
    }

    #[test]
    fn eviction_is_what_the_command_line_says_or_the_default() {
        let directory = tempfile::tempdir().unwrap();
        let eviction = |eviction, directory| settings(eviction, directory).unwrap().config.eviction;
        assert_eq!(eviction(None, None), Config::default().eviction);
        assert_eq!(eviction(Some(EvictionArg::On), None), Eviction::Auto);
        assert_eq!(eviction(Some(EvictionArg::Off), None), Eviction::Off);
        assert_eq!(eviction(Some(EvictionArg::Off), Some(directory.path())), Eviction::Off);
        for on in [None, Some(EvictionArg::On)] {
            let Eviction::To(own) = eviction(on, Some(directory.path())) else { panic!("{on:?}") };
            assert_eq!(own.parent(), Some(directory.path()));
        }
    }

    #[test]
    fn directory_is_made_shared_and_left_empty() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("not").join("there");
        let (first, second) = (settings(None, Some(&deep)).unwrap(), settings(None, Some(&deep)).unwrap());
        assert_ne!(first.config.eviction, second.config.eviction);
        assert_eq!(entries(&deep), 2);
        drop(first);
        assert_eq!(entries(&deep), 1);
        drop(second);
        assert_eq!(entries(&deep), 0);
    }

    #[test]
    fn directory_that_cannot_be_made_is_an_error_with_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "in the way").unwrap();
        for path in [file.clone(), file.join("below")] {
            let error = settings(None, Some(&path)).err().unwrap();
            assert_eq!(error.state(), SqlState::IO_ERROR);
            assert!(error.message().contains(path.to_str().unwrap()), "{error}");
        }
    }
}
