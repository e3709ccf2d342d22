//! Options of the tools for a database's files.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::Args;

use super::{MemoryArgs, Moment, ReportFormat};

/// Options of `verify`.
#[derive(Args, Clone, Debug)]
pub struct VerifyArgs {
    /// The directory of a database, or the directory `log` in it, or a backup
    pub path: PathBuf,
    /// How to print what was found
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
}

/// Options of `archive`.
#[derive(Args, Clone, Debug)]
pub struct ArchiveArgs {
    /// The directory of a database
    pub directory: PathBuf,
    /// The most to write in a second, in bytes: 500000, or 500K, 20M, 1G
    #[arg(long, value_name = "BYTES")]
    pub limit_rate: Option<Rate>,
    /// Archives to keep, the new one included
    #[arg(long, value_name = "N", default_value = "2")]
    pub keep: NonZeroUsize,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// How much memory the database may use.
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// Options of `backup`.
#[derive(Args, Clone, Debug)]
pub struct BackupArgs {
    /// The directory of a database
    pub directory: PathBuf,
    /// Where the backup goes: a directory that is new or empty, or a new file whose name ends in .tar
    pub target: PathBuf,
    /// The most to write in a second, in bytes: 500000, or 500K, 20M, 1G
    #[arg(long, value_name = "BYTES")]
    pub limit_rate: Option<Rate>,
    /// Give the archive's files a second name instead of copying them, where TARGET is a directory of the same
    /// file system: no time and no room, and damage to one is damage to the other
    #[arg(long)]
    pub link: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// How much memory the database may use.
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// Options of `restore`.
#[derive(Args, Clone, Debug)]
pub struct RestoreArgs {
    /// The backup: a directory or a file; with --until also the directory of a database that nobody has open
    pub backup: PathBuf,
    /// The directory of the database to be, which is new or empty
    pub directory: PathBuf,
    /// The most to write in a second, in bytes: 500000, or 500K, 20M, 1G
    #[arg(long, value_name = "BYTES")]
    pub limit_rate: Option<Rate>,
    /// Do not open the database afterwards; memory is not looked at then
    #[arg(long)]
    pub no_open: bool,
    /// Only up to this record, itself included, or up to the first that is later than this time
    #[arg(long, value_name = "RECORD|TIME", conflicts_with_all = ["limit_rate", "no_open"])]
    pub until: Option<Moment>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// How much memory the database may use.
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// Bytes in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub NonZeroU64);

impl std::str::FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let factor = match text[number.len()..].to_ascii_uppercase().trim_end_matches('B') {
            "" => Some(1),
            "K" => Some(1_000),
            "M" => Some(1_000_000),
            "G" => Some(1_000_000_000),
            _ => None,
        };
        let rate =
            number.parse().ok().zip(factor).and_then(|(number, factor)| u64::checked_mul(number, factor));
        let rate = rate.and_then(NonZeroU64::new).map(Self);
        rate.ok_or_else(|| "no number of bytes in a second, such as 500000, 500K, 20M or 1G".to_owned())
    }
}

/// What `verify` says of itself.
pub const VERIFY_HELP: &str = "\
Reads all archives and the whole redo log: that all files can be read, that their checksums are right and
none is missing, that every record fits the tables as they were at its place, and that the log has what each
archive needs of it. Of a backup also that it is complete. Prints what there is, and each fault with its file,
byte and record. Nothing is locked or changed, so that the files may be read-only or in use.

The log is held against its control files, which say once a second how far it was durable, and at the end that
it was closed cleanly. What was durable then and is not there is a fault. Of a database that is open, or was not
closed cleanly, what was acknowledged after the control files were written last cannot be checked; then the last
line says \"sound, as far as can be known\". A write at the end that a crash interrupted is no fault.

Exit status: 0 all is sound; 1 something is damaged or cannot be read; 2 the command line makes no sense.";

/// What `archive` says of itself.
pub const ARCHIVE_HELP: &str = "\
Opens the database, which takes as long as starting it, writes an archive, and removes older archives and the
segments of the redo log that no archive needs any more. An archive's files can be read by any Arrow tool.

In a process that has the database open, the statement CHECKPOINT does the same while transactions go on.

Exit status: 0 the archive is there; 1 it is not, and what was there before still is; 2 the command line makes
no sense; 130 interrupted by Ctrl-C.";

/// What `backup` says of itself.
pub const BACKUP_HELP: &str = "\
Opens the database, which takes as long as starting it, writes a fresh archive, and copies it and the redo log
behind it to TARGET, with a list of all files and their checksums. What is there is complete when that list is,
which comes last; `albireo verify TARGET` checks it, `albireo restore TARGET DIRECTORY` makes a database of it.

In a process that has the database open, the statement BACKUP TO 'TARGET' does the same while transactions go
on, as does Database::backup in a program.

Exit status: 0 the backup is there; 1 it is not; 2 the command line makes no sense; 130 interrupted by Ctrl-C.";

/// What `restore` says of itself.
pub const RESTORE_HELP: &str = "\
Looks at everything first, and says all that is wrong at once: whether the backup is complete, sound and of a
format that this program reads, whether DIRECTORY is new or empty, whether disk and memory suffice. Then it
copies the files, and opens the database to see that it can be. Until all is copied the directory cannot be
opened; if that was interrupted, remove it and restore again.

With --until the database is recovered up to that moment, and what it was then is written to DIRECTORY. Records
have their numbers and times in what `albireo log` prints; a time without a zone is UTC. Archives that are later
than the moment are passed over: it must not be before the oldest one that is there, unless the log is there
from its beginning. BACKUP is a directory then.

  albireo restore bank.backup bank2
  albireo restore bank bank-before --until 2026-01-31T12:00:00Z
  albireo restore bank bank-before --until 4711

Exit status: 0 the database is there; 1 it is not; 2 the command line makes no sense; 130 interrupted by
Ctrl-C.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_suffixes() {
        let rate = |text: &str| text.parse::<Rate>().ok().map(|rate| rate.0.get());
        assert_eq!(rate("500000"), Some(500_000));
        assert_eq!(rate("20M"), Some(20_000_000));
        assert_eq!(rate("1gb"), Some(1_000_000_000));
        for wrong in ["", "0", "M", "1T", "-1", "99999999999G", "1.5M"] {
            assert_eq!(rate(wrong), None, "{wrong}");
        }
    }
}
