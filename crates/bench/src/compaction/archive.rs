//! What a second archive of a database writes, most of which is frozen.

use std::path::Path;
use std::sync::Arc;

use albireo::{Database, SqlError, SqlState, Value};
use albireo_env::{Env, MemoryDisk};

use super::report::Archives;
use super::{Bench, freeze, wrong};
use crate::config::{Config, Logging, Procedures};
use crate::driver::{Loading, SystemUnderTest};
use crate::target::Albireo;
use crate::tpcc::input::Inputs;
use crate::tpcc::rows::Timestamp;
use crate::tpcc::schema::Table;

/// Where the database is, on a disk in memory.
const HOME: &str = "/albireo-archives";
/// Transactions between two looks at how much is frozen, and between the archives.
const BATCH: usize = 200;
/// Of all rows, so much is frozen when the first archive is written.
const FROZEN_PERCENT: u64 = 95;

impl Bench<'_> {
    /// TPC-C, all of it frozen, goes on until 5 % of the rows are new or have moved; then two archives, and transactions
    /// between them.
    pub(super) fn archives(&self) -> Result<Archives, SqlError> {
        let env = Env { disk: Arc::new(MemoryDisk::default()), ..self.env.clone() };
        let workload = Config {
            procedures: Procedures::Native,
            partitions: 1,
            logging: Logging::Async,
            data: Some(HOME.into()),
            ..self.config.workload.clone()
        };
        let target = Albireo::open(&workload, &env, self.cancel)?;
        let population = workload.population(Timestamp(env.clock.unix_us()));
        target.load(&workload, &population, &Loading::new(&population, self.observer, self.cancel))?;
        let db = target.database();
        for table in Table::ALL {
            freeze(db, table.definition().name)?;
        }
        let homes: Vec<i16> = (1..=workload.warehouses).collect();
        let mut inputs =
            Inputs::new(workload.mix, workload.scale, workload.warehouses, &homes, workload.seed, 0);
        let mut run =
            || (0..BATCH).try_for_each(|_| target.transactions()?.run(&inputs.next_transaction()).map(drop));
        let (mut rows, mut frozen_rows) = rows_of(db)?;
        while frozen_rows * 100 > rows * FROZEN_PERCENT && !self.cancel.is_cancelled() {
            run()?;
            (rows, frozen_rows) = rows_of(db)?;
        }
        let first_bytes = archive(db, &env)?;
        run()?;
        let second_bytes = archive(db, &env)?;
        Ok(Archives { rows, frozen_rows, first_bytes, second_bytes })
    }
}

/// All rows, and those of frozen chunks.
fn rows_of(db: &Database) -> Result<(u64, u64), SqlError> {
    let frozen = "SUM(CASE WHEN state = 'frozen' THEN rows ELSE 0 END)::BIGINT";
    let result = db.query(&format!("SELECT SUM(rows)::BIGINT, {frozen} FROM albireo.chunks"), &[])?;
    match (result.value(0, 0), result.value(0, 1)) {
        (Value::BigInt(rows), Value::BigInt(frozen)) => Ok((rows as u64, frozen as u64)),
        other => Err(wrong(format!("{other:?} is no number of rows"))),
    }
}

/// Writes an archive; the bytes of all of its files, the manifest's too.
fn archive(db: &Database, env: &Env) -> Result<u64, SqlError> {
    let report = db.checkpoint()?;
    let directory = Path::new(HOME).join(format!("archive/{:010}", report.number));
    let lengths = || {
        let files = env.disk.read_dir(&directory)?;
        files.iter().map(|file| env.disk.open(file)?.len()).sum::<std::io::Result<u64>>()
    };
    lengths().map_err(|error| SqlError::new(SqlState::IO_ERROR, error.to_string()))
}
