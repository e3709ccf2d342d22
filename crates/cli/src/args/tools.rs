//! Options of the tools for a database's files.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::Args;

use super::{DatabaseArgs, Moment, ReportFormat};

/// Options of `verify`.
#[derive(Args, Clone, Debug)]
pub struct VerifyArgs {
    /// Directory of a database, the directory `log` in it, or a backup
    pub path: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
}

/// Options of `archive`.
#[derive(Args, Clone, Debug)]
pub struct ArchiveArgs {
    /// Directory of the database
    pub directory: PathBuf,
    /// Bytes to write per second at most: 500000, 500K, 20M, 1G
    #[arg(long, value_name = "BYTES")]
    pub limit_rate: Option<Rate>,
    /// Archives to keep, including the new one
    #[arg(long, value_name = "N", default_value = "2")]
    pub keep: NonZeroUsize,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// How the database is opened.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// Options of `backup`.
#[derive(Args, Clone, Debug)]
pub struct BackupArgs {
    /// Directory of the database
    pub directory: PathBuf,
    /// A new or empty directory, or a new file whose name ends in .tar
    pub target: PathBuf,
    /// Bytes to write per second at most: 500000, 500K, 20M, 1G
    #[arg(long, value_name = "BYTES")]
    pub limit_rate: Option<Rate>,
    /// Hard-link the archive's files instead of copying them, if TARGET is a directory of the same file system: takes
    /// no time and no space, but damage to one copy is damage to the other
    #[arg(long)]
    pub link: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// How the database is opened.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// Options of `restore`.
#[derive(Args, Clone, Debug)]
pub struct RestoreArgs {
    /// The backup: a directory or a file; with --until also the directory of a database that is not open
    pub backup: PathBuf,
    /// New or empty directory for the database
    pub directory: PathBuf,
    /// Bytes to write per second at most: 500000, 500K, 20M, 1G
    #[arg(long, value_name = "BYTES")]
    pub limit_rate: Option<Rate>,
    /// Do not open the database afterwards, and do not check memory
    #[arg(long)]
    pub no_open: bool,
    /// Restore up to and including this record, or up to this time
    #[arg(long, value_name = "RECORD|TIME", conflicts_with_all = ["limit_rate", "no_open"])]
    pub until: Option<Moment>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// How the database is opened.
    #[command(flatten)]
    pub database: DatabaseArgs,
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
