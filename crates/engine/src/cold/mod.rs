//! Cold data: chunks of tables are frozen beside the transactions.
//!
//! A round takes a snapshot of a table, encodes some chunks that have blocks from what it shows, and has each take the
//! place of its blocks if nobody has written it since. What was written stays as it is, and is looked at again in a later
//! round; who asked for it has it encoded again a few times, each chunk alone, so that there is little time to write it.
//!
//! Paper: Funke, Kemper and Neumann, *Compacting Transactional Data in Hybrid OLTP & OLAP Databases*, VLDB 2012, §4.

mod call;
mod cooling;
pub(crate) mod everything;
mod evictor;
mod freezer;
mod packing;
mod shelf;
#[cfg(test)]
mod tests;
mod verify;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use albireo_base::{PartitionId, SqlError};
use albireo_execute::errors::out_of_memory;
use albireo_partition::TableHandle;
use albireo_storage::{BlockPool, ChunkEncoder, ChunkView, ColumnSet, EncodedChunk, SnapshotScope, WhyHot};

use albireo_sql::names::QualifiedName;
use albireo_sql::source::Source;

use crate::Database;

use crate::durability::at_low_priority;

pub(crate) use call::{freeze_target, is_verify};
pub(crate) use evictor::Evicting;
pub use evictor::Eviction;
pub use freezer::FreezeSchedule;
pub(crate) use freezer::Freezing;
pub(crate) use verify::VerifyReport;

use freezer::{ChunkPlace, Pace};
use packing::is_mostly_holes;

/// Chunks that are encoded from one snapshot: while it lives, writers copy the blocks that they change.
const CHUNKS_OF_A_ROUND: usize = 32;
/// The same where memory is short.
const CHUNKS_AT_ONCE: usize = 4;
/// How often a chunk is encoded again that was written meanwhile, when somebody has asked for it to be frozen.
const TIMES_AGAIN: u32 = 4;

/// Which chunks of a table are frozen, by partition and number, and how.
#[derive(Clone, Copy)]
struct Pick<'p> {
    wants: &'p dyn Fn(&ChunkPlace) -> bool,
    goes_on: &'p (dyn Fn() -> bool + Sync),
    how: How<'p>,
}

/// How chunks are encoded.
#[derive(Clone, Copy)]
enum How<'p> {
    /// At once, on this thread.
    Here,
    /// The same, one at a time.
    Alone,
    /// On a thread that gives way to all others, with a rest after each round.
    Gently(Pace),
    /// Here, and a few at a time.
    AtOnce,
    /// The same in other memory, to leave memory at once.
    ToLeave(&'p BlockPool),
}

impl How<'_> {
    /// Chunks that are encoded from one snapshot.
    fn chunks_of_a_round(self) -> usize {
        match self {
            Self::Alone => 1,
            Self::Here | Self::Gently(_) => CHUNKS_OF_A_ROUND,
            Self::AtOnce | Self::ToLeave(_) => CHUNKS_AT_ONCE,
        }
    }
}

/// What a round has done besides.
#[derive(Default)]
struct Round {
    /// The chunk to go on with, if there is one.
    next: Option<ChunkPlace>,
    /// Chunks that are as they were, because somebody wrote them while they were encoded.
    written: Vec<ChunkPlace>,
}

/// What freezing a table has done.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FreezeReport {
    /// Chunks that were frozen.
    pub chunks: u64,
    /// Bytes of these as they are now.
    pub bytes: u64,
    /// Bytes of these as they were.
    pub block_bytes: u64,
    /// Chunks that stayed as they are: new rows come to them, or somebody wrote them meanwhile.
    pub left: u64,
    /// How often a chunk was encoded again that somebody wrote meanwhile.
    pub again: u64,
    /// Frozen chunks that were emptied, because most of their rows had died.
    pub emptied: u64,
    /// Rows that moved out of these.
    pub moved: u64,
    /// Evicted chunks most of whose rows had died that stayed so: there was no room in memory, or they cannot be read.
    pub unfetched: u64,
    /// Chunks that began to cool: their rows move out before they are written.
    pub cooled: u64,
}

impl Database {
    /// Freezes the rows of a table, as long as `goes_on` says so: what is left of the last chunks stays empty.
    ///
    /// # Errors
    /// There is no such table, or no memory.
    pub(crate) fn freeze_table(
        &self,
        name: &QualifiedName,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<FreezeReport, SqlError> {
        let catalog = self.catalog();
        let def = catalog.resolve_table(name, Source::new(""))?;
        let table = TableHandle::new(def.id, def.is_shared());
        let mut report = FreezeReport::default();
        let holey = |chunk: &ChunkView<'_>| is_mostly_holes(chunk, chunk.live_rows());
        // Without memory for that, freezing gives some back.
        let emptied = self.empty_those(table, &holey, goes_on, &mut report);
        self.inner.partitions.end_chunks(table);
        self.freeze_until_done(table, Pick { wants: &|_| true, goes_on, how: How::Here }, &mut report)?;
        emptied.map(|()| report)
    }

    /// Moves the rows out of some frozen chunks of a table, as long as `goes_on` says so.
    fn empty_those(
        &self,
        table: TableHandle,
        wants: &dyn Fn(&ChunkView<'_>) -> bool,
        goes_on: &(dyn Fn() -> bool + Sync),
        report: &mut FreezeReport,
    ) -> Result<(), SqlError> {
        let scope = SnapshotScope::Tables([(table.id(), ColumnSet::ALL)].into());
        let snapshot = self.inner.partitions.snapshot(&scope);
        let snapshot = snapshot.map_err(|spent| crate::errors::session(spent.into()))?;
        let Some(view) = snapshot.table(table.id()) else { return Ok(()) };
        let chunks = (0..view.chunk_count()).map(|number| view.chunk(number)).filter(|chunk| wants(chunk));
        let those: Vec<_> = chunks.map(|chunk| (chunk.partition(), chunk.number())).collect();
        drop((view, snapshot));
        for place in those.into_iter().take_while(|_| goes_on()) {
            self.empty_chunk(table, place, report)?;
        }
        Ok(())
    }

    /// Freezes some chunks of a table. What was written while it was encoded is encoded again, up to [`TIMES_AGAIN`] times.
    fn freeze_until_done(
        &self,
        table: TableHandle,
        pick: Pick<'_>,
        report: &mut FreezeReport,
    ) -> Result<(), SqlError> {
        let mut written = self.freeze_those(table, pick, report)?;
        for _ in 0..TIMES_AGAIN {
            if written.is_empty() || !(pick.goes_on)() {
                break;
            }
            let these: BTreeSet<ChunkPlace> = written.into_iter().collect();
            report.left -= these.len() as u64;
            report.again += these.len() as u64;
            let wants = |place: &ChunkPlace| these.contains(place) && (pick.wants)(place);
            let alone = Pick { wants: &wants, goes_on: pick.goes_on, how: How::Alone };
            written = self.freeze_those(table, alone, report)?;
        }
        Ok(())
    }

    /// Freezes some chunks of a table, a few in each round; gives those that somebody wrote meanwhile.
    fn freeze_those<'a>(
        &'a self,
        table: TableHandle,
        mut pick: Pick<'a>,
        report: &mut FreezeReport,
    ) -> Result<Vec<ChunkPlace>, SqlError> {
        let (mut next, mut written) = (Some((PartitionId(0), 0)), Vec::new());
        while let Some(first) = next.filter(|_| (pick.goes_on)()) {
            let (left, began) = (report.left, self.inner.env.clock.now());
            match self.freeze_round(table, first, pick, report) {
                Ok(round) => {
                    next = round.next;
                    written.extend(round.written);
                    match pick.how {
                        How::ToLeave(_) => self.have_leave()?,
                        How::Gently(pace) => {
                            self.inner.freezing.rest(pace.rest(began, self.inner.env.clock.now()));
                        }
                        How::Here | How::Alone | How::AtOnce => {}
                    }
                }
                Err(error) => {
                    pick.how = self.way_out(error, pick.how)?;
                    report.left = left;
                }
            }
        }
        Ok(written)
    }

    /// Freezes some chunks from the `first` on.
    fn freeze_round(
        &self,
        table: TableHandle,
        first: ChunkPlace,
        pick: Pick<'_>,
        report: &mut FreezeReport,
    ) -> Result<Round, SqlError> {
        let scope = SnapshotScope::Tables([(table.id(), ColumnSet::ALL)].into());
        let snapshot = self.inner.partitions.snapshot(&scope);
        let snapshot = snapshot.map_err(|spent| crate::errors::session(spent.into()))?;
        let Some(view) = snapshot.table(table.id()) else { return Ok(Round::default()) };
        let (mut round, mut those) = (Round::default(), Vec::new());
        for chunk in (0..view.chunk_count()).map(|number| view.chunk(number)) {
            let place = (chunk.partition(), chunk.number());
            if place < first || chunk.is_frozen() || !(pick.wants)(&place) {
                continue;
            }
            if those.len() == pick.how.chunks_of_a_round() {
                round.next = Some(place);
                break;
            }
            match chunk.is_encodable() {
                true => those.push(chunk),
                false => report.left += 1,
            }
        }
        if those.is_empty() {
            return Ok(round);
        }
        let encode = || {
            let mut encoder = ChunkEncoder::default();
            let encoded = those.iter().map(|chunk| match pick.how {
                How::ToLeave(pool) => chunk.encode_in(&mut encoder, pool),
                How::Here | How::Alone | How::Gently(_) | How::AtOnce => chunk.encode(&mut encoder),
            });
            let encoded = encoded.inspect(|_| albireo_env::give_way());
            encoded.collect::<Result<Vec<_>, _>>()
        };
        let encoded = match pick.how {
            How::Gently(_) => at_low_priority("albireo-encode", encode),
            How::Here | How::Alone | How::AtOnce | How::ToLeave(_) => encode(),
        };
        let mut of_partitions: BTreeMap<PartitionId, Vec<(EncodedChunk, u64)>> = BTreeMap::new();
        for (chunk, encoded) in those.iter().zip(encoded.map_err(out_of_memory)?) {
            of_partitions.entry(chunk.partition()).or_default().push((encoded, chunk.block_bytes()));
        }
        for (partition, chunks) in of_partitions {
            round.written.extend(self.install_frozen(table, partition, chunks, report));
        }
        Ok(round)
    }

    /// Has chunks take the place of their blocks; gives those that somebody wrote meanwhile.
    fn install_frozen(
        &self,
        table: TableHandle,
        partition: PartitionId,
        chunks: Vec<(EncodedChunk, u64)>,
        report: &mut FreezeReport,
    ) -> Vec<ChunkPlace> {
        let of_chunk = |(chunk, blocks): (EncodedChunk, u64)| ((chunk.memory_bytes(), blocks), chunk);
        let (bytes, chunks): (Vec<_>, Vec<_>) = chunks.into_iter().map(of_chunk).unzip();
        let done = self.inner.partitions.freeze(table, partition, chunks);
        let mut written = Vec::new();
        for ((number, outcome), (bytes, blocks)) in done.into_iter().zip(bytes) {
            match outcome {
                Ok(()) => {
                    report.chunks += 1;
                    report.bytes += bytes;
                    report.block_bytes += blocks;
                }
                Err(why) => {
                    report.left += 1;
                    written.extend((why == WhyHot::Changed).then_some((partition, number)));
                }
            }
        }
        written
    }
}
