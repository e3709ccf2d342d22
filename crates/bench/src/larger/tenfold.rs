//! TPC-C until its rows take ten times the memory that is left for them, with queries all the time, against the same with
//! memory for all.
//!
//! The limit is made as for four times ([`super::growth`]): a tenth of the rows of the tables that grow, and everything else,
//! as they are at the end. Before, there are fewer indexes, and more is left for rows; so it is told for each tenth of the
//! growth how many times what is left the rows take then, as the database is that has memory for all. One thread makes
//! transactions, another one asks one query after the other.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use albireo::{Database, SqlError, SqlState, Value};
use albireo_env::Clock;

use super::growth::{Growing, PARTS, held};
use super::report::{Held, LargerReport, Plan, TenfoldPart, TenfoldRun};
use super::{Bench, chunk_counts, no_thread};
use crate::ch::queries::{QUERIES, TOP10};
use crate::latency::{Durations, median};

/// How many times what is left the rows take in the end.
const MULTIPLE: f64 = 10.0;
/// The least limit: it counts slabs of 2 MiB, of which each size of block has at least one.
const LEAST_LIMIT_BYTES: u64 = 96 << 20;
/// How a query fails for which there is no memory: at once, or when what its snapshot holds is needed.
const REFUSALS: [SqlState; 2] = [SqlState::OUT_OF_MEMORY, SqlState::SNAPSHOT_TOO_OLD];

/// A query that was asked.
struct Asked {
    /// In which part of the growth it began.
    part: usize,
    milliseconds: f64,
    /// There was no memory for it.
    is_refused: bool,
}

impl Bench<'_> {
    /// Both databases, one after the other.
    pub(super) fn tenfold(&self, report: &mut LargerReport) -> Result<(), SqlError> {
        if report.plan.is_none() {
            report.plan = Some(self.grown(None, false)?.1);
        }
        let Some(plan) = report.plan.clone() else { return Ok(()) };
        let others = plan.middle.in_use_bytes.saturating_sub(plan.middle.growing_bytes);
        let limit = (others + (plan.middle.growing_bytes as f64 / MULTIPLE) as u64).max(LEAST_LIMIT_BYTES);
        let (mut all, held) = self.tenfold_run(&plan, limit, false)?;
        // What is left for rows, and what these take, is as in the database that has all of it in memory.
        let multiples: Vec<f64> = held
            .iter()
            .map(|held| {
                let others = held.in_use_bytes.saturating_sub(held.growing_bytes);
                held.growing_bytes as f64 / limit.saturating_sub(others).max(1) as f64
            })
            .collect();
        let tell = |run: &mut TenfoldRun| {
            run.parts.iter_mut().zip(&multiples).for_each(|(part, multiple)| part.multiple = *multiple);
        };
        tell(&mut all);
        report.tenfold.push(all);
        if !self.cancel.is_cancelled() {
            let (mut limited, _) = self.tenfold_run(&plan, limit, true)?;
            tell(&mut limited);
            report.tenfold.push(limited);
        }
        Ok(())
    }

    /// What it did, and what it held after each part.
    fn tenfold_run(
        &self,
        plan: &Plan,
        limit: u64,
        limited: bool,
    ) -> Result<(TenfoldRun, Vec<Held>), SqlError> {
        let cold = self.cold("tenfold");
        let (target, workload) = self.loaded(&cold, limited.then_some(limit))?;
        let db = target.database();
        let (part, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (mut run, mut all_held) =
            (TenfoldRun { limited, limit_bytes: limit, parts: Vec::new() }, Vec::new());
        let what = if limited { "ten times the limit" } else { "all in memory, with queries" };
        // To where the limit was made of what the other database held.
        let transactions = plan.transactions + plan.measured / 2;
        let mut growing = Growing::new(self, &target, &workload, what, Some(transactions));
        let asked = albireo_env::scope(|scope| {
            let queries = || ask(db, &self.env.clock, &part, &is_over);
            let queries = albireo_env::spawn_scoped(scope, "queries", queries).map_err(|e| no_thread(&e))?;
            let done = (1..=PARTS).try_for_each(|number| {
                let until = transactions * number / PARTS;
                let per_second = growing.until(until, &mut Durations::default())?;
                part.fetch_add(1, Ordering::Relaxed);
                let held = held(db)?;
                run.parts.push(part_of(db, per_second, held)?);
                all_held.push(held);
                Ok::<_, SqlError>(())
            });
            is_over.store(true, Ordering::Relaxed);
            let asked = queries.join().expect("the queries do not panic")?;
            done.map(|()| asked)
        })?;
        for (number, part) in run.parts.iter_mut().enumerate() {
            let of_part = || asked.iter().filter(|asked| asked.part == number);
            let done = || of_part().filter(|asked| !asked.is_refused);
            (part.queries, part.refused) = (done().count(), of_part().count() - done().count());
            part.query_ms = median(done().map(|asked| asked.milliseconds));
        }
        self.observer.finished();
        self.check(&target, &workload)?;
        Ok((run, all_held))
    }
}

/// What a part has come to.
fn part_of(db: &Database, per_second: f64, held: Held) -> Result<TenfoldPart, SqlError> {
    let (hot_chunks, frozen_chunks, evicted_chunks) = chunk_counts(db, &[])?;
    Ok(TenfoldPart {
        multiple: f64::NAN,
        per_second,
        in_use_bytes: held.in_use_bytes,
        hot_chunks,
        frozen_chunks,
        evicted_chunks,
        queries: 0,
        refused: 0,
        query_ms: f64::NAN,
    })
}

/// Asks Q1, Q6 and the top-10 query in turns until it is over.
fn ask(
    db: &Database,
    clock: &Clock,
    part: &AtomicUsize,
    is_over: &AtomicBool,
) -> Result<Vec<Asked>, SqlError> {
    let district = [Value::SmallInt(1), Value::SmallInt(1)];
    let questions: [(&str, &[Value]); 3] =
        [(QUERIES[0].sql, &[]), (QUERIES[5].sql, &[]), (TOP10.sql, &district)];
    let mut asked = Vec::new();
    for (sql, parameters) in questions.iter().cycle() {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let (part, start) = (part.load(Ordering::Relaxed), clock.now());
        let is_refused = match db.query(sql, parameters) {
            Ok(_) => false,
            Err(error) if REFUSALS.contains(&error.state()) => true,
            Err(error) => return Err(error),
        };
        asked.push(Asked { part, milliseconds: (clock.now() - start) as f64 / 1e6, is_refused });
    }
    Ok(asked)
}
