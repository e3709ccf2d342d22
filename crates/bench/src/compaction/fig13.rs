//! Sums over runs of equal values: as they are, as values with positions, as values with lengths. Paper: §5.6.2, Figure 13,
//! and §3.4 for the forms.
//!
//! The engine has the first two: a hot column, and a frozen one whose chunks are runs with the position of their last row. Both
//! are asked by SQL for a sum of nine tenths of the values, because the sum of a whole chunk is known without reading it. The
//! engine has no runs with lengths, so that all three are compared by plain loops over vectors as well: sums, and
//! accesses to values at random places, which are a load, a binary search, and a scan of the lengths.

use std::hint::black_box;
use std::iter::repeat_n;

use albireo::{Database, SqlError, Value};

use super::counts::RowCounts;
use super::report::{InTurns, RunSums, Schemes};
use super::{Bench, freeze, wrong};
use crate::tpcc::random::Random;

/// Rows of each run, and the paper's figure of an access: by positions, relative to a value as it is.
const RUNS: [(usize, &str); 2] = [(10, "7x"), (50, "5x")];
/// Values of the vectors, and rows of the tables.
const VALUES: RowCounts = RowCounts { few: 800_000, usual: 20_000_000, paper: 500_000_000 };
const ROWS: RowCounts = RowCounts { few: 160_000, usual: 4_000_000, paper: 500_000_000 };
/// Rows of one statement that fills a table.
const INSERTED: usize = 4_000_000;
/// Values are below this prime number; the value of a run is this far from the one before, modulo the prime.
const PRIME: usize = 10_007;
const STEP: usize = 7_919;
/// Values below this one less the turn are added up: no chunk has only such.
const BOUND: usize = 9_000;
/// A query takes milliseconds: so many of them for each turn.
const QUERIES: usize = 4;
/// Random places; only the first of them are looked for by lengths, each of which takes as long as half a sum.
const ACCESSES: usize = 100_000;
const SCANNED: usize = 200;

/// The value of a run. Neighbours differ.
fn value_of(run: usize) -> usize {
    run % PRIME * STEP % PRIME
}

/// The same values in three forms.
struct Vectors {
    plain: Vec<i32>,
    /// One of each run.
    values: Vec<i32>,
    /// The place behind each run.
    ends: Vec<u32>,
    /// How long each run is.
    lengths: Vec<u32>,
}

impl Vectors {
    fn new(length: usize, count: usize) -> Self {
        let runs = count / length;
        let values: Vec<i32> = (0..runs).map(|run| value_of(run) as i32).collect();
        // Its length is known only here: a vector that grows would take twice the memory.
        let mut plain = Vec::with_capacity(runs * length);
        plain.extend(values.iter().flat_map(|value| repeat_n(*value, length)));
        Self {
            plain,
            ends: (1..=runs).map(|run| (run * length) as u32).collect(),
            lengths: vec![length as u32; runs],
            values,
        }
    }

    fn sum(&self) -> i64 {
        self.plain.iter().map(|value| i64::from(*value)).sum()
    }

    fn sum_by_positions(&self) -> i64 {
        let mut begin = 0_u32;
        let of_run = |(value, end): (&i32, &u32)| {
            let rows = *end - begin;
            begin = *end;
            i64::from(*value) * i64::from(rows)
        };
        self.values.iter().zip(&self.ends).map(of_run).sum()
    }

    fn sum_by_lengths(&self) -> i64 {
        let of_run = |(value, length): (&i32, &u32)| i64::from(*value) * i64::from(*length);
        self.values.iter().zip(&self.lengths).map(of_run).sum()
    }

    fn at(&self, place: u32) -> i32 {
        self.plain[place as usize]
    }

    fn at_by_positions(&self, place: u32) -> i32 {
        self.values[self.ends.partition_point(|end| *end <= place)]
    }

    fn at_by_lengths(&self, place: u32) -> i32 {
        let mut end = 0_u32;
        let run = self.lengths.iter().position(|length| {
            end += *length;
            place < end
        });
        self.values[run.expect("every place is in a run")]
    }
}

impl Bench<'_> {
    /// Sums over runs of two lengths, by SQL and by loops, and accesses to single values.
    pub(super) fn run_sums(&self) -> Result<Vec<RunSums>, SqlError> {
        let (values, rows) = (self.count(VALUES), self.count(ROWS));
        let mut all = Vec::new();
        for (length, paper) in RUNS {
            if self.cancel.is_cancelled() {
                break;
            }
            let query_ms = self.sums_by_query(length, rows)?;
            let vectors = Vectors::new(length, values);
            all.push(RunSums {
                length: length as u64,
                rows: rows as u64,
                query_ms,
                values: values as u64,
                sums_ms: self.sums_by_loop(&vectors)?,
                accesses_ns: self.accesses(&vectors, length)?,
                paper,
            });
        }
        Ok(all)
    }

    /// Milliseconds of a query over hot rows and over frozen ones, in turns.
    fn sums_by_query(&self, length: usize, rows: usize) -> Result<InTurns, SqlError> {
        let db = Database::in_memory(albireo::Config {
            query_threads: 1,
            partitions: 1,
            ..self.config.workload.database.clone()
        })?;
        for table in ["hot", "frozen"] {
            db.execute(&format!("CREATE TABLE {table} (number INTEGER NOT NULL) WITH (layout = 'column')"))?;
            for first in (0..rows).step_by(INSERTED) {
                db.execute(&format!(
                    "INSERT INTO {table} SELECT g / {length} % {PRIME} * {STEP} % {PRIME} \
                     FROM generate_series({first}, {}) s (g)",
                    rows.min(first + INSERTED) - 1
                ))?;
            }
        }
        freeze(&db, "frozen")?;
        check_runs(&db)?;
        let mut times = InTurns::default();
        // The first ones are not measured.
        for turn in 0..=self.config.turns * QUERIES {
            // Each question is a new one, of which nothing is kept.
            let bound = BOUND - turn % BOUND;
            let below = (0..rows / length).map(value_of).filter(|value| *value < bound);
            let expected = Value::BigInt((below.sum::<usize>() * length) as i64);
            let ask = |table: &str| self.sum_below(&db, table, bound, &expected);
            let (hot, frozen) = match turn % 2 {
                0 => {
                    let hot = ask("hot")?;
                    (hot, ask("frozen")?)
                }
                _ => {
                    let frozen = ask("frozen")?;
                    (ask("hot")?, frozen)
                }
            };
            if turn > 0 {
                times.push(hot, frozen);
            }
        }
        Ok(times)
    }

    /// Milliseconds of the sum of the values below a bound.
    fn sum_below(&self, db: &Database, table: &str, bound: usize, expected: &Value) -> Result<f64, SqlError> {
        let query = db.prepare(&format!("SELECT sum(number) FROM {table} WHERE number < {bound}"))?;
        let (took_ms, result) = self.timed(|| query.query(&[]))?;
        let found = result.value(0, 0);
        match found == *expected {
            true => Ok(took_ms),
            false => {
                Err(wrong(format!("the values below {bound} of {table} sum up to {found}, not {expected}")))
            }
        }
    }

    /// Milliseconds of the sum of all values, by each form in turns.
    fn sums_by_loop(&self, vectors: &Vectors) -> Result<Schemes, SqlError> {
        let mut times = Schemes::default();
        // The first turn is not measured.
        for turn in 0..=self.config.turns {
            let (plain_ms, plain) = self.timed(|| Ok(black_box(black_box(vectors).sum())))?;
            let (positions_ms, positions) =
                self.timed(|| Ok(black_box(black_box(vectors).sum_by_positions())))?;
            let (lengths_ms, lengths) = self.timed(|| Ok(black_box(black_box(vectors).sum_by_lengths())))?;
            if positions != plain || lengths != plain {
                return Err(wrong(format!(
                    "values sum up to {plain}, with positions to {positions}, with lengths to {lengths}"
                )));
            }
            if turn > 0 {
                times.push(plain_ms, positions_ms, lengths_ms);
            }
        }
        Ok(times)
    }

    /// Nanoseconds of an access to a random value, by each form in turns.
    fn accesses(&self, vectors: &Vectors, length: usize) -> Result<Schemes, SqlError> {
        let mut random = Random::stream(self.config.workload.seed, &[13, length as u64]);
        let count = vectors.plain.len() as u64;
        let mut times = Schemes::default();
        // The first turn is not measured.
        for turn in 0..=self.config.turns {
            let places: Vec<u32> = (0..ACCESSES).map(|_| random.below(count) as u32).collect();
            let scanned = &places[..SCANNED];
            let (plain_ns, plain) = self.access(&places, |place| vectors.at(place))?;
            let (positions_ns, positions) = self.access(&places, |place| vectors.at_by_positions(place))?;
            let (lengths_ns, lengths) = self.access(scanned, |place| vectors.at_by_lengths(place))?;
            let few: i64 = scanned.iter().map(|place| i64::from(vectors.at(*place))).sum();
            if positions != plain || lengths != few {
                return Err(wrong(format!(
                    "values of runs of {length} are others by their positions or lengths"
                )));
            }
            if turn > 0 {
                times.push(plain_ns, positions_ns, lengths_ns);
            }
        }
        Ok(times)
    }

    /// Nanoseconds of each access, and the sum of what was found.
    fn access(&self, places: &[u32], at: impl Fn(u32) -> i32) -> Result<(f64, i64), SqlError> {
        let work = || Ok(black_box(places).iter().map(|place| i64::from(at(*place))).sum::<i64>());
        let (took_ms, sum) = self.timed(work)?;
        Ok((took_ms * 1e6 / places.len() as f64, black_box(sum)))
    }
}

/// All chunks of the frozen table are runs.
fn check_runs(db: &Database) -> Result<(), SqlError> {
    let others = "SELECT count(*) FROM albireo.chunks WHERE \"table\" = 'frozen' AND rows > 0 \
                  AND (state <> 'frozen' OR encoding IS NULL OR encoding NOT LIKE '%runs%')";
    match db.query(others, &[])?.value(0, 0) {
        Value::BigInt(0) => Ok(()),
        others => Err(wrong(format!("{others} chunks of runs are not frozen as runs"))),
    }
}
