//! How fast queries go through rows of which most are in files, against reading these files from end to end.
//!
//! TPC-C makes orders; ORDERS and ORDER_LINE are frozen, all of their chunks leave memory, and a transaction reads a row of
//! every fourth, which fetches that chunk. Then Q1 and the top-10 query run. The disk counts the bytes that they read of
//! the files: those of the columns that they need, of three quarters of the chunks. It counts them when the page cache has
//! them, because else what lies between two pieces may be read along. These bytes a second are set against those of one
//! thread that reads the same files from their beginning to their end, in pieces of the size that the query read on
//! average. Before each of both, the page cache forgets the files; with them in the page cache, the same is measured too.
//! Each question is a new one, of which nothing is kept, and its answer is the same as before anything left.

use std::sync::Arc;
use std::time::Duration;

use albireo::{
    Abort, Col, Database, Procedure, ProcedureHandle, Route, SqlError, TableHandle, Transaction, Value,
};
use albireo_base::Tid;
use albireo_base::ids::CHUNK_SHIFT;
use albireo_env::Env;

use super::counted::{CountedDisk, Reads};
use super::report::{QuerySpeed, Speeds};
use super::{Bench, Experiment, chunk_counts, io_error, wrong};
use crate::ch::queries::{QUERIES, TOP10};
use crate::driver::{Loading, SystemUnderTest};
use crate::target::Albireo;
use crate::tpcc::input::Inputs;
use crate::tpcc::rows::Timestamp;

/// The tables that leave, and a column of each.
const TABLES: [(&str, &str); 2] = [("orders", "o_id"), ("order_line", "ol_i_id")];
/// One chunk of so many is in memory.
const KEPT: u64 = 4;
/// A condition that holds for all lines, of a column that the queries read anyway; it makes each question another.
const ALL: (&str, &str) = (" GROUP BY", " AND ol_amount >= -{turn} GROUP BY");

/// Reads a row of a chunk, so that it is in memory.
struct Touch {
    table: TableHandle,
    column: Col<i32>,
}

impl Procedure for Touch {
    type Args = u64;
    /// Whether the chunk has a row.
    type Output = bool;

    fn name(&self) -> &str {
        "touch"
    }

    fn route(&self, _: &u64) -> Route {
        Route::Key(1)
    }

    fn run(&self, tx: &mut Transaction, chunk: &u64) -> Result<bool, Abort> {
        let table = tx.table(self.table);
        let row = table.scan_from(Tid(chunk << CHUNK_SHIFT)).next();
        let row = row.filter(|row| row.0 >> CHUNK_SHIFT == *chunk);
        Ok(row.map(|row| table.get(row, self.column)).is_some())
    }
}

/// A database of which most order lines are in files.
struct Cold<'a> {
    bench: &'a Bench<'a>,
    db: &'a Database,
    reads: &'a Reads,
    directory: std::path::PathBuf,
    /// A procedure, and how many chunks there are, of each table.
    touches: Vec<(ProcedureHandle<Touch>, u64)>,
}

impl Bench<'_> {
    /// Both queries, in turns with reading the files.
    pub(super) fn queries(&self) -> Result<Speeds, SqlError> {
        let directory = self.cold("queries");
        let reads = Arc::new(Reads::default());
        let disk = CountedDisk { disk: Arc::clone(&self.env.disk), reads: Arc::clone(&reads) };
        let env = Env { disk: Arc::new(disk), ..self.env.clone() };
        let workload = self.workload(&directory);
        let target = Albireo::open(&workload, &env, self.cancel)?;
        let population = workload.population(Timestamp(env.clock.unix_us()));
        target.load(&workload, &population, &Loading::new(&population, self.observer, self.cancel))?;
        self.observer.finished();
        let homes: Vec<i16> = (1..=workload.warehouses).collect();
        let mut inputs =
            Inputs::new(workload.mix, workload.scale, workload.warehouses, &homes, workload.seed, 0);
        let start = env.clock.now();
        for made in 1..=self.config.transactions {
            target.transactions()?.run(&inputs.next_transaction())?;
            if made % 10_000 == 0 {
                let took = env.clock.now() - start;
                let expected = took as f64 * self.config.transactions as f64 / made as f64;
                let [told, all] = [took, expected as u64].map(Duration::from_nanos);
                self.observer.running("making orders", told, all, made as f64 * 1e9 / took as f64);
                if self.cancel.is_cancelled() {
                    return Ok(Speeds::default());
                }
            }
        }
        self.observer.finished();
        let mut cold =
            Cold { bench: self, db: target.database(), reads: &reads, directory, touches: Vec::new() };
        cold.speeds()
    }
}

impl Cold<'_> {
    fn speeds(&mut self) -> Result<Speeds, SqlError> {
        let top10_parameters = [Value::SmallInt(1), Value::SmallInt(1)];
        let questions: [(&str, &str, &[Value]); 2] =
            [(QUERIES[0].name, QUERIES[0].sql, &[]), (TOP10.name, TOP10.sql, &top10_parameters)];
        let mut expected = Vec::new();
        for (_, sql, parameters) in questions {
            expected.push(self.ask(sql, parameters, 0)?.1);
        }
        self.leave()?;
        let mut speeds = Speeds { file_bytes: self.bench.file_bytes(&self.directory)?, ..Speeds::default() };
        let mut turn = 0;
        for ((name, sql, parameters), expected) in questions.into_iter().zip(expected) {
            let mut speed = QuerySpeed { query: name, ..QuerySpeed::default() };
            // The first two are not measured.
            for round in 0..=self.bench.config.turns * 2 {
                for is_cold in [false, true] {
                    if self.bench.cancel.is_cancelled() {
                        return Ok(speeds);
                    }
                    self.bench.observer.running(
                        Experiment::Queries.name(),
                        Duration::from_secs(round as u64),
                        Duration::from_secs(self.bench.config.turns as u64 * 2),
                        0.0,
                    );
                    turn += 1;
                    let measured = self.pair(round, is_cold, &mut speed, || (sql, parameters, turn))?;
                    if measured != expected {
                        return Err(wrong(format!(
                            "{name} gives another answer of rows that have left memory"
                        )));
                    }
                }
            }
            speeds.queries.push(speed);
        }
        (_, speeds.chunks_kept, speeds.chunks_away) = chunk_counts(self.db, &TABLES.map(|(table, _)| table))?;
        Ok(speeds)
    }

    /// The query and the files from end to end, one after the other; gives the answer.
    fn pair<'q>(
        &self,
        round: usize,
        is_cold: bool,
        speed: &mut QuerySpeed,
        question: impl Fn() -> (&'q str, &'q [Value], usize),
    ) -> Result<Vec<String>, SqlError> {
        let forget = || if is_cold { self.bench.forget_files(&self.directory) } else { Ok(()) };
        let per_read = |speed: &QuerySpeed| (speed.bytes / speed.reads.max(1)).max(1) as usize;
        if !is_cold {
            // So that the page cache has all of them.
            self.read_files(1 << 20)?;
        }
        let mut in_order = None;
        if round % 2 == 1 {
            forget()?;
            in_order = Some(self.read_files(per_read(speed))?);
        }
        forget()?;
        self.reads.take();
        let (sql, parameters, turn) = question();
        let (seconds, found) = self.ask(sql, parameters, turn)?;
        let counted = self.reads.take();
        if !is_cold {
            (speed.bytes, speed.reads) = counted;
        }
        if speed.bytes == 0 {
            return Err(wrong(format!("{} has read no file", speed.query)));
        }
        let bytes = speed.bytes as f64;
        let in_order = match in_order {
            Some(per_second) => per_second,
            None => {
                forget()?;
                self.read_files(per_read(speed))?
            }
        };
        if round > 0 {
            let (queries, files) = match is_cold {
                true => (&mut speed.query_mb_per_second, &mut speed.files_mb_per_second),
                false => (&mut speed.cached_query_mb_per_second, &mut speed.cached_files_mb_per_second),
            };
            queries.push(bytes / seconds / 1e6);
            files.push(in_order / 1e6);
            if is_cold {
                speed.milliseconds.push(seconds * 1e3);
            }
        }
        Ok(found)
    }

    /// Runs a query: seconds, and its answer.
    fn ask(&self, sql: &str, parameters: &[Value], turn: usize) -> Result<(f64, Vec<String>), SqlError> {
        let sql = sql.replacen(ALL.0, &ALL.1.replace("{turn}", &turn.to_string()), 1);
        let query = self.db.prepare(&sql)?;
        let clock = &self.bench.env.clock;
        let start = clock.now();
        let result = query.query(parameters)?;
        let seconds = (clock.now() - start) as f64 / 1e9;
        Ok((seconds, result.rows().iter().map(|row| format!("{row:?}")).collect()))
    }

    /// Freezes the tables, has all of them leave memory, and a quarter of the chunks come back.
    fn leave(&mut self) -> Result<(), SqlError> {
        for (table, _) in TABLES {
            self.db.execute(&format!("CALL albireo.freeze('{table}')"))?;
        }
        self.db.evict_frozen();
        for (name, column) in TABLES {
            let (touch, chunks) = self.db.with_table(name, |table, rows| {
                let column = rows.column(column)?;
                Ok((Touch { table, column }, (rows.slots() >> CHUNK_SHIFT) + 1))
            })?;
            self.touches.push((self.db.register_procedure(touch), chunks));
        }
        for (touch, chunks) in &self.touches {
            for chunk in (0..*chunks).step_by(KEPT as usize) {
                touch.call(&chunk)?;
            }
        }
        Ok(())
    }

    /// Reads all files from end to end, in pieces of so many bytes: bytes a second.
    fn read_files(&self, piece: usize) -> Result<f64, SqlError> {
        let (disk, clock) = (&self.bench.env.disk, &self.bench.env.clock);
        let (start, mut bytes, mut buffer) = (clock.now(), 0, vec![0; piece]);
        let mut read_all = || {
            for path in disk.read_dir(&self.directory)? {
                let (file, mut at) = (disk.open(&path)?, 0);
                loop {
                    match file.read_at(&mut buffer, at)? {
                        0 => break,
                        read => at += read as u64,
                    }
                }
                bytes += at;
            }
            Ok(())
        };
        read_all().map_err(|error: std::io::Error| io_error(&self.directory, &error))?;
        Ok(bytes as f64 * 1e9 / (clock.now() - start).max(1) as f64)
    }
}
