//! What a transaction wrote, as bytes that can be written again: the contents of a *write record* of the
//! redo log.
//!
//! Responsible for: the net effect of a transaction (`collect`), its encoding (`encode`), reading it
//! (`read`), doing it again (`apply`). Not responsible for: framing, checksums and files (`redo`), order
//! (`partition`).
//!
//! Rows are named by the values of their *identity*, the columns of the first unique index without
//! nullable columns, and by all their values if a table has none: a TID is not the same after recovery,
//! which packs rows. Undo records say which rows a transaction touched; what is written of each is its net
//! effect, so a row that was inserted and deleted leaves no trace, and one that was updated twice is
//! written once.
//!
//! Invariants:
//! - I-1 Writing a record again on the state that the transaction found gives the state that it left, as
//!   sets of rows.
//! - I-2 No step of writing it again violates a unique index on the way: of each table, what leaves comes
//!   first (deleted rows, and those whose unique keys change), then updates of other columns, then what
//!   comes (inserted rows, and those with changed keys).
//! - I-3 Reading never panics and never reads beyond its input, whatever the bytes are.
//!
//! ```text
//! record  group*
//! group   site table  n delete*n  n update*n  n insert*n
//! delete  values of the identity
//! update  n column*n (n = 0: those of the update before)  values of the identity  values of the columns
//! insert  values of all columns
//! values  a bit for each nullable column, set for NULL, filled up to bytes; each value that is not NULL
//! value   whole numbers, decimals (scaled), dates and times: variable length, zigzag; boolean 1 byte;
//!         real 4, double 8, UUID 16; texts their length and bytes
//! ```
//!
//! Numbers have variable length: seven bits a byte, the lowest first, the high bit set but in the last.
//! `site` is 0 for a shared table, else one more than the partition's place among those that the
//! transaction owns.
//!
//! Paper: Kemper and Neumann, HyPer, 2010, §4.4 (logical redo logging); Larson and others, Hekaton, 2013,
//! §2.6 (new versions and the keys of deleted ones, in one write at commit; indexes are not logged).

mod apply;
mod collect;
mod encode;
mod read;
#[cfg(test)]
mod tests;
mod value;

pub use apply::{Applied, ApplyError, WrittenTables, apply_writes};
pub use collect::WriteSet;
pub use encode::{encode_part, encode_staged, encode_writes};
pub use read::{RowWrite, Shape, WriteReader};

/// The site of shared tables, as undo records number them.
pub const SHARED_SITE: u16 = u16::MAX;
