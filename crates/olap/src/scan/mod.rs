//! Scans of a snapshot: the table provider, its execution plan, filters, zone maps, statistics.
//!
//! **Invariant:** a plan never holds a snapshot; a scan finds its rows through the session when
//! the physical plan is made, so one logical plan serves every snapshot.

pub(crate) mod exec;
mod gather;
pub(crate) mod masks;
pub(crate) mod predicate;
pub(crate) mod provider;
mod sketch;
pub(crate) mod statistics;
pub(crate) mod zones;
