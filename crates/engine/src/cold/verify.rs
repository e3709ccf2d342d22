//! `CALL albireo.verify()`: whether all rows that are not in memory can be read.
//!
//! All that evicted chunks have in files is read and checked against its checksums, column by column, and stays nowhere. So
//! what is damaged is known before somebody needs it, and while the log and archives have the rows.

use std::fmt::Write as _;

use albireo_base::{PartitionId, SqlError};
use albireo_partition::TableHandle;
use albireo_sql::TableDef;
use albireo_storage::{AwayChunk, FetchError};

use crate::Database;

/// Chunks that are looked up together.
const LOOKED_AT: u32 = 64;
/// Faults of which an error tells what they are.
const MOST_TOLD: usize = 20;

const HINT: &str = "The redo log and the archives have all rows: check them by `albireo verify`, and open the database again.";

/// What was read.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct VerifyReport {
    /// Chunks of which columns lie in files.
    pub(crate) chunks: u64,
    /// Bytes of these in files.
    pub(crate) bytes: u64,
}

/// What is wrong.
#[derive(Default)]
struct Faults {
    first: Option<FetchError>,
    told: String,
    count: usize,
}

impl Database {
    /// Reads all that evicted chunks have in files, as long as `goes_on` says so.
    ///
    /// # Errors
    /// XX001 if bytes are not those that were written, 58030 if a file is missing or cannot be read: the first that was
    /// found, with the name of its file, and all of them in the detail.
    pub(crate) fn verify_evicted(&self, goes_on: &dyn Fn() -> bool) -> Result<VerifyReport, SqlError> {
        let (mut report, mut faults) = (VerifyReport::default(), Faults::default());
        let catalog = self.catalog();
        for def in catalog.tables() {
            self.for_each_away(def, goes_on, |partition, chunk| match chunk.verify() {
                Ok(bytes) => {
                    report.chunks += 1;
                    report.bytes += bytes;
                }
                Err(error) => faults.note(def, partition, chunk.number(), error),
            });
        }
        match faults.result() {
            Ok(()) => Ok(report),
            Err(error) if self.log().is_some() => Err(error.with_hint(HINT)),
            Err(error) => Err(error),
        }
    }

    /// Calls `look` with each evicted chunk of a table; no partition is owned meanwhile.
    fn for_each_away(
        &self,
        def: &TableDef,
        goes_on: &dyn Fn() -> bool,
        mut look: impl FnMut(PartitionId, &AwayChunk),
    ) {
        let table = TableHandle::new(def.id, def.is_shared());
        let count = if def.is_shared() { 1 } else { self.inner.partitions.count() };
        for partition in (0..count).map(PartitionId) {
            let mut next = Some(0);
            while let Some(from) = next.filter(|_| goes_on()) {
                let (chunks, more) = self.inner.partitions.away_chunks(table, partition, from, LOOKED_AT);
                for chunk in chunks.iter().take_while(|_| goes_on()) {
                    look(partition, chunk);
                    albireo_env::give_way();
                }
                next = more;
            }
        }
    }
}

impl Faults {
    fn note(&mut self, def: &TableDef, partition: PartitionId, chunk: u32, error: FetchError) {
        self.count += 1;
        if self.count <= MOST_TOLD {
            let separator = if self.told.is_empty() { "" } else { "\n" };
            let TableDef { schema, name, .. } = def;
            let _ = write!(
                self.told,
                "{separator}Chunk {chunk} of partition {} of table \"{schema}.{name}\": {error}.",
                partition.0
            );
        }
        self.first.get_or_insert(error);
    }

    fn result(self) -> Result<(), SqlError> {
        let Self { first, mut told, count } = self;
        let Some(first) = first else { return Ok(()) };
        if count > MOST_TOLD {
            let _ = write!(told, "\nThere are {} more.", count - MOST_TOLD);
        }
        Err(SqlError::from(first).with_detail(told))
    }
}
