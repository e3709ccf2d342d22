//! The manifest: what an archive consists of.
//!
//! A file of one line: `{"crc32c":"xxxxxxxx","manifest":{...}}`. The checksum is over the bytes of the inner
//! object as they stand, so that no one has to agree on how JSON is written.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use albireo_base::ids::CHUNK_ROWS;
use albireo_env::Env;
use serde::{Deserialize, Serialize};

use crate::error::{ArchiveError, Damage};
use crate::files::{archive_path, number_of, read_whole};
use crate::invalid::InvalidRows;

/// The format that this version writes where something is frozen, and the newest that it reads.
pub const FORMAT: u32 = 2;
/// The format in which nothing is frozen, which older versions read too.
pub(crate) const PLAIN_FORMAT: u32 = 1;

/// The manifest's name in its directory.
pub(crate) const NAME: &str = "manifest.json";
/// Its name while it is written.
pub(crate) const UNFINISHED_NAME: &str = "manifest.json.tmp";

const HEAD: &[u8] = b"{\"crc32c\":\"";
const MIDDLE: &[u8] = b"\",\"manifest\":";
const TAIL: &[u8] = b"}\n";
/// Hexadecimal digits of the checksum.
const DIGITS: usize = 8;

/// How far the log had come when the snapshot was taken.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogPosition {
    /// Which log.
    pub log: u64,
    /// The last frame whose records are in the archive.
    pub sequence: u64,
    /// The number of the next record: the first that is not in the archive.
    pub next_record: u64,
}

/// One archive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`FORMAT`], or an older one.
    pub format: u32,
    /// Its number; later archives have greater ones.
    pub number: u64,
    /// When its snapshot was taken, in microseconds since 1970.
    pub time_us: i64,
    /// Where the log goes on.
    pub log: LogPosition,
    /// Partitions of the database.
    pub partitions: u16,
    /// Schema and procedures, for the engine.
    pub catalog: serde_json::Value,
    /// The tables.
    pub tables: Vec<TableEntry>,
}

/// One table of an archive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableEntry {
    /// Its id.
    pub id: u32,
    /// Its schema's name.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its columns, in order; for people and tools.
    pub columns: Vec<ColumnEntry>,
    /// Rows in all partitions.
    pub rows: u64,
    /// Its files, by partition and chunk.
    pub files: Vec<FileEntry>,
}

/// One column of a table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnEntry {
    /// Its name.
    pub name: String,
    /// Its SQL type.
    #[serde(rename = "type")]
    pub ty: String,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// One data file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its path below the directory of archives; perhaps in an older archive.
    pub path: String,
    /// The partition of its rows.
    pub partition: u16,
    /// The first chunk.
    pub first_chunk: u32,
    /// Chunks.
    pub chunks: u32,
    /// Rows.
    pub rows: u64,
    /// Its length.
    pub bytes: u64,
    /// CRC-32C of all its bytes.
    pub crc32c: u32,
    /// The epoch of the last change in its chunks. Of meaning only to the process that wrote it.
    pub changed: u64,
    /// Of a frozen chunk, what else there is to say; its rows are those that live in this archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<FrozenEntry>,
}

/// A frozen chunk, in a file of its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrozenEntry {
    /// Rows in the file, dead ones too.
    pub slots: u32,
    /// Those that are dead in this archive.
    pub invalid: InvalidRows,
    /// The file, part by part.
    pub parts: Vec<PartEntry>,
}

/// A part of a file: its length, and the CRC-32C of its bytes. It begins where the one before ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PartEntry(pub u64, pub u32);

/// The part of a manifest that all formats have.
#[derive(Deserialize)]
struct AnyFormat {
    format: u32,
}

impl Manifest {
    /// Reads the manifest of archive `number`.
    ///
    /// # Errors
    /// It is not there, cannot be read, is damaged, or has another format.
    pub fn read(env: &Env, directory: &Path, number: u64) -> Result<Self, ArchiveError> {
        let path = archive_path(directory, number).join(NAME);
        let bytes = read_whole(env, &path)?;
        let manifest = Self::decode(&bytes, &path)?;
        match manifest.number == number {
            true => Ok(manifest),
            false => {
                let damage = Damage::Contradiction(format!("it is that of archive {}", manifest.number));
                Err(ArchiveError::damaged(&path, damage))
            }
        }
    }

    /// The table with this id.
    pub fn table(&self, id: u32) -> Option<&TableEntry> {
        self.tables.iter().find(|table| table.id == id)
    }

    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// Whether it names files of frozen chunks.
    pub(crate) fn is_any_frozen(&self) -> bool {
        self.files().any(|file| file.frozen.is_some())
    }

    /// Bytes of all files, those of older archives included.
    pub fn bytes(&self) -> u64 {
        self.files().map(|file| file.bytes).sum()
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.tables.iter().flat_map(|table| &table.files)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let body = serde_json::to_vec(self).expect("a manifest has no keys but texts");
        let checksum = format!("{:08x}", crc32c::crc32c(&body));
        [HEAD, checksum.as_bytes(), MIDDLE, &body, TAIL].concat()
    }

    fn decode(bytes: &[u8], path: &Path) -> Result<Self, ArchiveError> {
        let form = |what: &str| ArchiveError::damaged(path, Damage::Form(what.to_owned()));
        let inner = bytes.strip_prefix(HEAD).and_then(|rest| rest.strip_suffix(TAIL));
        let inner = inner.filter(|inner| inner.len() > DIGITS + MIDDLE.len());
        let (digits, rest) =
            inner.ok_or_else(|| form("it does not begin and end like a manifest"))?.split_at(DIGITS);
        let body = rest.strip_prefix(MIDDLE).ok_or_else(|| form("it contains no manifest"))?;
        let found = crc32c::crc32c(body);
        // Compared as text: there is one way to write a checksum.
        if digits != format!("{found:08x}").as_bytes() {
            let digits = std::str::from_utf8(digits).ok();
            let expected = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            let expected = expected.ok_or_else(|| form("its checksum is none"))?;
            return Err(ArchiveError::damaged(path, Damage::Checksum { expected, found }));
        }
        let parse = |error: serde_json::Error| form(&error.to_string());
        let AnyFormat { format } = serde_json::from_slice(body).map_err(parse)?;
        if !(PLAIN_FORMAT..=FORMAT).contains(&format) {
            return Err(ArchiveError::Format { path: path.to_owned(), found: format });
        }
        let manifest: Self = serde_json::from_slice(body).map_err(parse)?;
        match manifest.contradiction() {
            Some(what) => Err(ArchiveError::damaged(path, Damage::Contradiction(what))),
            None => Ok(manifest),
        }
    }

    /// What cannot be, if anything.
    fn contradiction(&self) -> Option<String> {
        if self.format == PLAIN_FORMAT && self.is_any_frozen() {
            return Some("something is frozen in a format that has nothing of that".to_owned());
        }
        let mut ids = HashSet::new();
        let (mut places, mut paths) = (HashSet::new(), HashSet::new());
        for table in &self.tables {
            if !ids.insert(table.id) {
                return Some(format!("table {} is listed twice", table.id));
            }
            let mut rows = 0u64;
            for file in &table.files {
                if path_in_archive(&file.path).is_none_or(|(number, _)| number > self.number) {
                    return Some(format!("{:?} is not the path of a file", file.path));
                }
                if !paths.insert(&file.path) {
                    return Some(format!("{} is named twice", file.path));
                }
                if !places.insert((table.id, file.partition, file.first_chunk)) {
                    return Some(format!("chunk {} of table {} is listed twice", file.first_chunk, table.id));
                }
                if let Some(what) = file.frozen.as_ref().and_then(|frozen| frozen.contradiction(file)) {
                    return Some(format!("{}: {what}", file.path));
                }
                rows = rows.saturating_add(file.rows);
            }
            if rows != table.rows {
                return Some(format!("table {} has {} rows, its files {rows}", table.id, table.rows));
            }
        }
        (self.tables.iter().try_fold(0u64, |sum, table| sum.checked_add(table.rows)).is_none()
            || self.files().try_fold(0u64, |sum, file| sum.checked_add(file.bytes)).is_none())
        .then(|| "there are too many rows".to_owned())
    }
}

impl TableEntry {
    /// The files of a partition in the order in which they are loaded: frozen chunks first.
    pub fn files_of(&self, partition: u16) -> Vec<&FileEntry> {
        let mut files: Vec<_> = self.files.iter().filter(|file| file.partition == partition).collect();
        files.sort_by_key(|file| file.frozen.is_none());
        files
    }
}

impl FrozenEntry {
    /// What cannot be, if anything.
    fn contradiction(&self, file: &FileEntry) -> Option<&'static str> {
        let Some(live) = self.invalid.live() else { return Some("its invalid rows cannot be") };
        let rows: u64 = live.iter().map(|word| u64::from(word.count_ones())).sum();
        let bytes = self.parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.0));
        let sum = |sum, part: &PartEntry| crc32c::crc32c_combine(sum, part.1, part.0 as usize);
        let rules = [
            (self.slots as usize == CHUNK_ROWS && file.chunks == 1, "it is not of one chunk"),
            (rows == file.rows, "it has not as many rows as it says"),
            (bytes == Some(file.bytes), "its parts are not as long as it is"),
            (self.parts.iter().all(|part| part.0 > 0), "a part is empty"),
            (self.parts.iter().fold(0, sum) == file.crc32c, "its parts have not its checksum"),
        ];
        rules.iter().find(|(holds, _)| !holds).map(|(_, what)| *what)
    }
}

/// The archive and the name that a data file's path consists of; `None` for any other path.
pub(crate) fn path_in_archive(path: &str) -> Option<(u64, &str)> {
    let (directory, name) = path.split_once('/')?;
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.');
    (plain && name.ends_with(".arrow") && !name.starts_with('.')).then_some(())?;
    Some((number_of(directory)?, name))
}

/// Where a data file lies.
pub(crate) fn file_path(directory: &Path, entry: &FileEntry) -> PathBuf {
    directory.join(&entry.path)
}
