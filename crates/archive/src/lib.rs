//! Archives: a snapshot written to files while transactions run, and back.
//!
//! Responsible for: the files' form, writing only what has changed, what is complete after a crash, finding
//! damage, throwing old archives away. Not responsible for: when to archive and what becomes of the log
//! (`engine`), taking the snapshot (`session`), what the catalog means (`sql`; it is carried unread).
//!
//! ```text
//! archive/lock                              held while an archive is written or thrown away
//! archive/0000000007/t12-p0-c16.arrow       table 12, partition 0, chunks from the 16th on
//! archive/0000000007/t12-p0-c3.frozen.arrow chunk 3, which is frozen
//! archive/0000000007/manifest.json          written last, under another name, and renamed
//! ```
//!
//! A data file is an Arrow IPC file of live rows in the order of their slots, uncompressed, with types that
//! pyarrow and DuckDB read; that of a frozen chunk has its columns as they are encoded (`frozen`). What has not changed
//! since the archive before is not written again: the manifest names the older archive's file. A frozen chunk is written
//! once, the first time that it is archived frozen; each archive says which of its rows are dead.
//!
//! Invariants:
//! - I-1 An archive exists when its manifest does: all files that it names, and their names, were on
//!   stable storage before. (`tests/archive/crash.rs`)
//! - I-2 A file goes only when no manifest names it, and a manifest goes before any file that only it
//!   named; each is on stable storage before the next. Whoever reads rows in a file, as evicted ones, may have it stay
//!   longer. (`tests/archive/retention.rs`)
//! - I-3 No byte of a data file is interpreted before the checksums over all of them were right, none of a
//!   manifest before its own was. (`tests/archive/damage.rs`)
//!
//! Units: `_bytes`, `_rows`, `_us` microseconds since 1970.
//!
//! Papers: Kemper and Neumann, HyPer, 2010, §4.7: the archive is a consistent snapshot, from which a
//! restart goes on with the log; theirs is written whole, by a forked process.
#![forbid(unsafe_code)]

mod columns;
mod contents;
mod directory;
mod error;
mod files;
mod frozen;
mod invalid;
mod manifest;
mod meta;
mod plan;
mod read;
mod retain;
mod verify;
mod write;

pub use columns::disk_type;
pub use contents::Contents;
pub use directory::{Listing, Unreadable, list};
pub use error::{ArchiveError, Damage};
pub use frozen::file::open_frozen;
pub use frozen::places::{ColumnPlace, FrozenFile, Stretch};
pub use frozen::restore::Bytes;
pub use invalid::InvalidRows;
pub use manifest::{
    ColumnEntry, FORMAT, FileEntry, FrozenEntry, LogPosition, Manifest, PartEntry, TableEntry,
};
pub use meta::{ColumnMeta, TableMeta};
pub use read::{Batches, open};
pub use retain::{Remove, Retained, retain, retain_unless};
pub use verify::{Finding, is_sound, verify};
pub use write::{Gone, Progress, Report, Request, RestorePoint, Step, Writer, Written, write};
