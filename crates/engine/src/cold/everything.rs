//! For tests: everything is frozen again and again, so that whatever runs meets frozen rows; or cools.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use albireo_base::{PartitionId, SqlError};
use albireo_partition::TableHandle;
use albireo_storage::{ChunkView, Table};

use super::{Eviction, FreezeReport, How, Pick};
use crate::Database;

/// The variables that ask for it, with the value `all`; in builds with debug assertions alone. With `cool`, chunks cool and
/// are hot again. The second asks for everything to leave memory too.
const VARIABLE: &str = "ALBIREO_FREEZE";
const EVICTS: &str = "ALBIREO_EVICT";
/// Statements between two rounds.
const EVERY: u32 = 5;
/// Slots of a table up to which it is frozen once more: each time a chunk of thousands begins.
const MOST_SLOTS: u64 = 5 << albireo_base::ids::CHUNK_SHIFT;

/// What is done with everything.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Cool,
    Freeze,
    Evict,
}

impl Asked {
    fn read() -> Option<Self> {
        let says = |variable: &str, what: &str| std::env::var(variable).is_ok_and(|value| value == what);
        match () {
            () if says(EVICTS, "all") => Some(Self::Evict),
            () if says(VARIABLE, "all") => Some(Self::Freeze),
            () if says(VARIABLE, "cool") => Some(Self::Cool),
            () => None,
        }
    }
}

/// Whether something is done with everything: then tests are left out that count what lies where.
#[cfg(test)]
pub(crate) fn is_asked() -> bool {
    Asked::read().is_some()
}

impl Database {
    /// A statement is about to run.
    #[inline]
    pub(crate) fn before_statement(&self) {
        if cfg!(debug_assertions) {
            self.freeze_everything();
        }
    }

    /// Packs what has holes, and freezes all.
    fn freeze_all_of(&self, table: TableHandle) -> Result<(), SqlError> {
        let mut report = FreezeReport::default();
        let has_holes =
            |chunk: &ChunkView<'_>| chunk.frozen_rows().is_some_and(|rows| chunk.live_rows() < rows);
        self.empty_those(table, &has_holes, &|| true, &mut report)?;
        self.inner.partitions.end_chunks(table);
        self.freeze_those(table, Pick { wants: &|_| true, goes_on: &|| true, how: How::Here }, &mut report)
            .map(drop)
    }

    fn freeze_everything(&self) {
        static ASKED: OnceLock<Option<Asked>> = OnceLock::new();
        let Some(asked) = *ASKED.get_or_init(Asked::read) else { return };
        let statement = self.inner.freezing.statements.fetch_add(1, Ordering::Relaxed);
        if !statement.is_multiple_of(EVERY) {
            return;
        }
        for def in self.catalog().tables() {
            let table = TableHandle::new(def.id, def.is_shared());
            let slots = self.inner.partitions.with_table_if_there(table, PartitionId(0), Table::slots);
            if slots.is_some_and(|slots| slots > 0 && slots < MOST_SLOTS) {
                match asked {
                    Asked::Cool => drop(self.cool_all_of(table, !statement.is_multiple_of(4 * EVERY))),
                    // Memory that is short keeps rows as they are.
                    Asked::Freeze | Asked::Evict => drop(self.freeze_all_of(table)),
                }
            }
        }
        if asked == Asked::Evict {
            self.evict_into_temporary();
        }
    }

    fn evict_into_temporary(&self) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !self.may_evict() {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("albireo-evict/{}-{number}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            self.set_eviction(&Eviction::To(directory), None).expect("a directory of the temporary one");
        }
        self.evict_frozen();
    }
}
