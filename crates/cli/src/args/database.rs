//! Options of the commands that open a database: the memory that it may use, and where rows go that do not fit.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::MemoryArgs;

/// How a database is opened.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct DatabaseArgs {
    /// How much memory it may use.
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// What happens when tables need more memory than they may use; by default off
    #[arg(long, value_enum, env = "ALBIREO_EVICTION", help_heading = "Memory")]
    pub eviction: Option<EvictionArg>,
    /// Directory for the files of rows that leave memory, created if missing; turns eviction on, unless --eviction off is
    /// given. By default they are in the directory of the database; a database in memory has none and needs this option
    #[arg(long, env = "ALBIREO_EVICTION_DIRECTORY", value_name = "DIRECTORY", help_heading = "Memory")]
    pub eviction_directory: Option<PathBuf>,
}

impl DatabaseArgs {
    /// Whether rows that leave memory go to the directory that the database is kept in.
    pub fn evicts_into_its_own(&self) -> bool {
        self.eviction == Some(EvictionArg::On) && self.eviction_directory.is_none()
    }
}

/// What happens when memory runs short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EvictionArg {
    /// All rows stay in memory; changes that need more are refused
    Off,
    /// Frozen rows that were not read for longest go to files, and are read from there when they are needed
    On,
}
