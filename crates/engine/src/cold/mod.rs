//! Cold data: chunks of tables are frozen beside the transactions.
//!
//! A round takes a snapshot of a table, encodes some chunks that have blocks from what it shows, and has each take the
//! place of its blocks if nobody has written it since. What was written stays as it is, and is looked at again in a later
//! round.
//!
//! Paper: Funke, Kemper and Neumann, *Compacting Transactional Data in Hybrid OLTP & OLAP Databases*, VLDB 2012, §4.

mod call;
mod everything;

use albireo_base::{PartitionId, SqlError};
use albireo_execute::errors::out_of_memory;
use albireo_partition::TableHandle;
use albireo_storage::{ChunkEncoder, ColumnSet, EncodedChunk, SnapshotScope};

use albireo_sql::names::QualifiedName;
use albireo_sql::source::Source;

use crate::Database;

pub(crate) use call::freeze_target;

/// Chunks that are encoded from one snapshot: while it lives, writers copy the blocks that they change.
const CHUNKS_OF_A_ROUND: usize = 16;

/// What freezing a table has done.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FreezeReport {
    /// Chunks that were frozen.
    pub chunks: u64,
    /// Bytes of these as they are now.
    pub bytes: u64,
    /// Chunks that stayed as they are: new rows come to them, or somebody wrote them meanwhile.
    pub left: u64,
}

impl Database {
    /// Freezes the rows of a table, as long as `goes_on` says so: what is left of the last chunks stays empty.
    ///
    /// # Errors
    /// There is no such table, or no memory.
    pub(crate) fn freeze_table(
        &self,
        name: &QualifiedName,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<FreezeReport, SqlError> {
        let catalog = self.catalog();
        let def = catalog.resolve_table(name, Source::new(""))?;
        let table = TableHandle::new(def.id, def.is_shared());
        self.inner.partitions.end_chunks(table);
        self.freeze_all_of(table, goes_on)
    }

    /// Freezes what can be of a table, as long as `goes_on` says so.
    fn freeze_all_of(
        &self,
        table: TableHandle,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<FreezeReport, SqlError> {
        let mut report = FreezeReport::default();
        // Chunks that were looked at, over all partitions, are not looked at again.
        let mut next = Some((PartitionId(0), 0));
        while let Some(first) = next.filter(|_| goes_on()) {
            next = self.freeze_round(table, first, &mut report)?;
        }
        Ok(report)
    }

    /// Freezes some chunks from the `first` on; gives the one after them, if there is one.
    fn freeze_round(
        &self,
        table: TableHandle,
        first: (PartitionId, u32),
        report: &mut FreezeReport,
    ) -> Result<Option<(PartitionId, u32)>, SqlError> {
        let scope = SnapshotScope::Tables([(table.id(), ColumnSet::ALL)].into());
        let snapshot =
            self.inner.partitions.snapshot(&scope).map_err(|spent| crate::errors::session(spent.into()))?;
        let Some(view) = snapshot.table(table.id()) else { return Ok(None) };
        let mut encoder = ChunkEncoder::default();
        let mut of_partition: Option<(PartitionId, Vec<EncodedChunk>)> = None;
        let mut taken = 0;
        let mut next = None;
        let chunks = (0..view.chunk_count()).map(|number| view.chunk(number));
        for chunk in chunks.filter(|chunk| (chunk.partition(), chunk.number()) >= first) {
            if taken == CHUNKS_OF_A_ROUND {
                next = Some((chunk.partition(), chunk.number()));
                break;
            }
            if chunk.is_frozen() || !chunk.is_whole() {
                report.left += u64::from(!chunk.is_frozen());
                continue;
            }
            taken += 1;
            let encoded = chunk.encode(&mut encoder).map_err(out_of_memory)?;
            match &mut of_partition {
                Some((partition, chunks)) if *partition == chunk.partition() => chunks.push(encoded),
                other => {
                    if let Some((partition, chunks)) = other.replace((chunk.partition(), vec![encoded])) {
                        self.install_frozen(table, partition, chunks, report);
                    }
                }
            }
        }
        if let Some((partition, chunks)) = of_partition {
            self.install_frozen(table, partition, chunks, report);
        }
        Ok(next)
    }

    fn install_frozen(
        &self,
        table: TableHandle,
        partition: PartitionId,
        chunks: Vec<EncodedChunk>,
        report: &mut FreezeReport,
    ) {
        let bytes: Vec<u64> = chunks.iter().map(EncodedChunk::memory_bytes).collect();
        let done = self.inner.partitions.freeze(table, partition, chunks);
        for ((_, outcome), bytes) in done.into_iter().zip(bytes) {
            match outcome {
                Ok(()) => (report.chunks, report.bytes) = (report.chunks + 1, report.bytes + bytes),
                Err(_) => report.left += 1,
            }
        }
    }
}
