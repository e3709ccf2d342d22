//! Main-memory storage: blocks, chunks, strings, indexes, undo, and snapshots of them.
//!
//! Responsible for: one table in one partition ([`Table`]), its memory ([`BlockPool`]), the immutable
//! view of many ([`DatabaseSnapshot`]). Not responsible for: names and SQL (`sql`), threads and
//! transactions (`partition`), queries (`olap`).
//!
//! The layers, bottom up: `pool` hands out blocks; `registry` knows which snapshots live and keeps
//! what only they see; `layout` says where a value lies; `rows` reads and writes it, copying a
//! block first when a snapshot sees it; `index` finds rows by key; `table` puts these together and
//! logs before images in `undo`; `view` shows a snapshot as Arrow arrays.
//!
//! Paper: Kemper and Neumann, HyPer, 2010, §3.1-3.2. Where HyPer lets the processor's page tables
//! find and copy shared pages after `fork`, we do so in software by block: taking a snapshot costs
//! microseconds instead of milliseconds, and works inside a host process.
//!
//! **Invariant:** nothing here starts a thread, reads a clock or opens a file.

mod bitmap;
mod column;
mod directory;
mod encoded;
mod error;
mod frozen;
pub mod index;
pub mod key;
mod layout;
#[doc(hidden)]
pub mod observe;
mod pool;
mod registry;
mod rows;
mod table;
mod texts;
mod undo;
mod view;
mod writes;

pub use column::{Col, Fixed, HandleError, TextCol};
pub use encoded::EncodedView;
pub use frozen::ahead::{DirectFile, ReadAhead};
pub use frozen::away::{Evicted, FetchError, Shelf};
pub use frozen::prepass::{MOST_WORK, count_work, unless_away, waiting, with_prepass, without_waiting};
pub use frozen::{ChunkEncoder, EncodedChunk};
pub use key::{Key, KeyBuilder, KeyRef, ShortKey};
pub use layout::{ColumnLocation, ColumnSpec, Layout, LayoutChoice, LayoutError, MAX_TEXT_BYTES, Physical};
pub use pool::{BlockPool, OutOfMemory, Part, Relief, SLAB_BYTES};
pub use registry::{BudgetPolicy, BudgetSpent, ColumnSet, SnapshotCounters, SnapshotRegistry, SnapshotScope};
pub use rows::{MOST_MOVED_ROWS, RowSet, WhyHot};
pub use table::{
    Arrival, Asked, AwayChunk, Cell, CellShape, Cells, ChangedKeys, ChunkCounts, ChunkParts, ColdChunk,
    ColumnAddress, ENTRY_BLOCK_OFFSET, ENTRY_BYTES, Entering, EvictedChunk, FillShape, Filled, FixedRow,
    Frozen, FrozenKeys, INLINE_TEXT_APART, IndexAside, IndexBuild, IndexKind, IndexRef, IndexSpec, Loader,
    NewRow, Placement, Replaced, Rewrite, RowAddress, RowCheck, RowFault, RowLines, RowShape, RowUpdate,
    ShapeRow, ShapeValue, Staging, Table, TableError, TableMemory, TableSpec, Thawed, VALIDITY_ENTRY,
    VIEW_TEXT_BYTES, partitions_of,
};
pub use texts::{SharedTexts, Sharing};
pub use undo::{ChangeEvent, Savepoint, UndoLog, UndoRecord};
pub use view::{
    ChunkContent, ChunkVersion, ChunkView, DatabaseSnapshot, FetchedChunk, SnapshotBuilder, TableView,
};

pub use writes::{
    Applied, ApplyError, RowWrite, SHARED_SITE, Shape, WriteReader, WriteSet, WrittenTables, apply_writes,
    encode_part, encode_staged, encode_writes,
};

use albireo_base::Value;

/// The partition of a row whose partitioning column holds `value`.
///
/// Whole numbers go round robin, so that consecutive keys (warehouses, tenants) spread evenly;
/// everything else by FNV-1a of its bytes. NULL goes to partition 0.
pub fn partition_of(value: &Value, partitions: u16) -> u16 {
    let number = match value {
        Value::SmallInt(v) => i64::from(*v),
        Value::Integer(v) | Value::Date(v) => i64::from(*v),
        Value::BigInt(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v) => *v,
        Value::Bool(v) => i64::from(*v),
        Value::Text(text) => fnv(text.as_bytes()),
        Value::Bytea(bytes) => fnv(bytes),
        Value::Uuid(bytes) => fnv(bytes),
        Value::Decimal(d) => fnv(&d.unscaled.to_le_bytes()),
        Value::Real(v) => fnv(&one_form(f64::from(*v)).to_le_bytes()),
        Value::Double(v) => fnv(&one_form(*v).to_le_bytes()),
        Value::Null => 0,
    };
    number.rem_euclid(i64::from(partitions.max(1))) as u16
}

/// Equal numbers in one form: no negative zero, one NaN.
fn one_form(v: f64) -> f64 {
    if v.is_nan() { f64::NAN } else { v + 0.0 }
}

fn fnv(bytes: &[u8]) -> i64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 1) as i64
}
