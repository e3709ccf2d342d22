//! The manifest of a backup: what belongs to it.
//!
//! A file of one line: `{"crc32c":"xxxxxxxx","backup":{...}}`, with the checksum over the bytes of the inner
//! object as they stand.

use std::collections::BTreeSet;
use std::path::Path;

use albireo_base::{SqlError, SqlState};
use serde::{Deserialize, Serialize};

/// The format that this version writes, and the only one it reads.
pub(super) const FORMAT: u32 = 1;

/// The manifest's name.
pub(in crate::durability) const NAME: &str = "backup.json";
/// Its name until all else is there.
pub(in crate::durability) const UNFINISHED_NAME: &str = "backup.json.tmp";

const HEAD: &[u8] = b"{\"crc32c\":\"";
const MIDDLE: &[u8] = b"\",\"backup\":";
const TAIL: &[u8] = b"}\n";
/// Hexadecimal digits of the checksum.
const DIGITS: usize = 8;

/// What a backup consists of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupManifest {
    /// Of the backup, not of the files in it.
    pub format: u32,
    /// The version of the program that took it.
    pub program: String,
    /// The moment whose state it is, in microseconds since 1970.
    pub time_us: i64,
    /// The archive in it.
    pub archive: u64,
    /// Partitions of the database.
    pub partitions: u16,
    /// Tables of the archive.
    pub tables: u64,
    /// Rows of the archive.
    pub rows: u64,
    /// Records of the log behind the archive.
    pub records: u64,
    /// Which log.
    pub log: u64,
    /// Its last frame in the backup.
    pub last_frame: u64,
    /// Memory that the tables need when they are loaded, about, in bytes.
    pub memory_bytes: u64,
    /// All files but this.
    pub files: Vec<BackupFile>,
}

/// One file of a backup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupFile {
    /// Its path in the backup.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// CRC-32C of all its bytes.
    pub crc32c: u32,
}

/// The part of a manifest that all formats have.
#[derive(Deserialize)]
struct AnyFormat {
    format: u32,
}

impl BackupManifest {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let body = serde_json::to_vec(self).expect("a manifest has no keys but texts");
        let checksum = format!("{:08x}", crc32c::crc32c(&body));
        [HEAD, checksum.as_bytes(), MIDDLE, &body, TAIL].concat()
    }

    /// # Errors
    /// XX001 if it is damaged, 0A000 if it has another format.
    pub(super) fn decode(bytes: &[u8], path: &Path) -> Result<Self, SqlError> {
        let damaged = |what: &str| {
            SqlError::new(SqlState::DATA_CORRUPTED, format!("{} is damaged: {what}", path.display()))
        };
        let inner = bytes.strip_prefix(HEAD).and_then(|rest| rest.strip_suffix(TAIL));
        let inner = inner.filter(|inner| inner.len() > DIGITS + MIDDLE.len());
        let (digits, rest) = inner.ok_or_else(|| damaged("it has not the form of one"))?.split_at(DIGITS);
        let body = rest.strip_prefix(MIDDLE).ok_or_else(|| damaged("there is no manifest in it"))?;
        let found = format!("{:08x}", crc32c::crc32c(body));
        if digits != found.as_bytes() {
            let expected = String::from_utf8_lossy(digits);
            return Err(damaged(&format!("the checksum is {found} instead of {expected}")));
        }
        let parse = |error: serde_json::Error| damaged(&error.to_string());
        let AnyFormat { format } = serde_json::from_slice(body).map_err(parse)?;
        if format != FORMAT {
            let text = format!(
                "{} has backup format {format}, and this version reads format {FORMAT}",
                path.display()
            );
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
                .with_hint("Restore it with the version that took it, or a newer one."));
        }
        let manifest: Self = serde_json::from_slice(body).map_err(parse)?;
        match manifest.contradiction() {
            Some(what) => Err(damaged(&what)),
            None => Ok(manifest),
        }
    }

    /// What cannot be, if anything: among it a path that leads out of the backup.
    fn contradiction(&self) -> Option<String> {
        let mut paths = BTreeSet::new();
        for file in &self.files {
            if !is_plain(&file.path) {
                return Some(format!("{:?} is not the path of a file of a backup", file.path));
            }
            if !paths.insert(&file.path) {
                return Some(format!("{} is named twice", file.path));
            }
        }
        let too_many = self.files.iter().try_fold(0u64, |sum, file| sum.checked_add(file.bytes)).is_none();
        too_many.then(|| "there are too many bytes".to_owned())
    }
}

/// Whether a path is one of `archive` or `log`, and leads nowhere else.
fn is_plain(path: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.')
    };
    path.split_once('/')
        .is_some_and(|(first, rest)| matches!(first, "archive" | "log") && rest.split('/').all(plain))
}
