//! Scans of a snapshot: the table provider, its execution plan, filters, zone maps, statistics.
//!
//! **Invariant:** a plan never holds a snapshot; a scan finds its rows through the session when
//! the physical plan is made, so one logical plan serves every snapshot.

mod ahead;
mod codes;
mod computed;
pub(crate) mod exec;
pub(crate) mod extremes;
mod gather;
pub(crate) mod joined_texts;
pub(crate) mod kept;
pub(crate) mod masks;
pub(crate) mod members;
mod pattern;
pub(crate) mod predicate;
pub(crate) mod provider;
mod rows;
pub(crate) mod selectivity;
mod shapes;
mod sketch;
pub(crate) mod statistics;
pub(crate) mod sums;
pub(crate) mod text_ids;
pub(crate) mod zones;

use std::sync::Arc;

use albireo_base::TableId;

use kept::KeptRows;
use masks::MaskCache;
use statistics::StatisticsCache;
use zones::ZoneCache;

/// What is known about tables from earlier queries. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Caches {
    pub(crate) zones: Arc<ZoneCache>,
    pub(crate) masks: Arc<MaskCache>,
    pub(crate) kept: Arc<KeptRows>,
    pub(crate) statistics: Arc<StatisticsCache>,
}

impl Caches {
    /// Forgets a dropped table.
    pub(crate) fn forget(&self, table: TableId) {
        self.zones.forget(table);
        self.masks.forget(table);
        self.kept.forget(table);
        self.statistics.forget(table);
    }
}
