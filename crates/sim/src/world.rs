//! What distinguishes one run from another before anything happens.

use albireo::{Config, Durability, Eviction, LogRecords};

use crate::random::Random;

/// The world of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct World {
    /// Partitions of the database.
    pub partitions: u16,
    /// Bytes of a segment of the log.
    pub segment_bytes: u64,
    /// Of 100 actions, so many are steps of the log.
    pub steps: u64,
    /// Of 100 actions, so many are changes of definitions.
    pub definitions: u64,
    /// Whether there are routines in PL/pgSQL.
    pub routines: bool,
    /// What calls of routines and procedures leave in the log.
    pub records: LogRecords,
    /// Warehouses of TPC-C, if it is run as well.
    pub warehouses: Option<i16>,
    /// How often a process begins.
    pub lives: u64,
    /// Of 1,000 actions, so many write an archive.
    pub archives: u64,
    /// Of 100 deaths, so many leave a file that is damaged afterwards.
    pub damages: u64,
    /// Of 100 lives, in so many a call waits until what it did is durable.
    pub synchronous: u64,
    /// Before so many of 100 actions, evicted rows cannot be read well from then on for a while; 0 in most worlds.
    pub failing_reads: u64,
}

impl World {
    /// The world of a seed, which is drawn from `random`, but for reads that fail: those come from `of_reads`, so that
    /// worlds without them are what they would be if there were none.
    pub fn draw(random: &mut Random, of_reads: &mut Random) -> Self {
        Self {
            partitions: random.between(1, 4) as u16,
            segment_bytes: random.pick(&[8 << 10, 10 << 10, 16 << 10, 64 << 10]),
            steps: random.pick(&[3, 10, 25, 50]),
            definitions: random.pick(&[2, 5, 15]),
            routines: random.percent(40),
            warehouses: random.percent(8).then(|| random.between(1, 2) as i16),
            lives: random.below(5) + 2,
            archives: random.pick(&[0, 5, 20, 60]),
            damages: random.pick(&[0, 10, 40]),
            synchronous: random.pick(&[0, 30, 100]),
            records: random.pick(&[LogRecords::Adaptive, LogRecords::Calls, LogRecords::Rows]),
            failing_reads: if of_reads.percent(25) { of_reads.pick(&[4, 10]) } else { 0 },
        }
    }

    /// How its database is opened.
    pub fn config(&self, durability: Durability) -> Config {
        Config {
            durability,
            log_segment_bytes: self.segment_bytes,
            log_records: self.records,
            ..config(self.partitions, self.warehouses.is_some())
        }
    }
}

/// A database that waits for nothing and takes little.
pub fn config(partitions: u16, has_tpcc: bool) -> Config {
    Config {
        partitions,
        query_threads: 1,
        // It is taken from the system ahead of need, which is most of what opening costs; each size of blocks takes 2 MiB.
        data_limit_bytes: if has_tpcc { 128 << 20 } else { 32 << 20 },
        durability: Durability::Async,
        procedures: albireo_bench::tpcc::procedures::logged(),
        eviction: Eviction::Auto,
        ..Config::default()
    }
}
