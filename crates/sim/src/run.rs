//! Runs of many seeds.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::simulation::{Counts, Simulation};

/// Events that a failure shows.
const SHOWN_EVENTS: usize = 40;

/// How runs are run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// Prints each event as it happens.
    pub verbose: bool,
}

/// A run that found nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Summary {
    /// The same for the same events.
    pub digest: u64,
    /// How many there were.
    pub events: u64,
    /// What they were.
    pub counts: Counts,
}

/// A run that found something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What is not as it has to be.
    pub what: String,
    /// The last events before.
    pub events: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.events {
            writeln!(f, "    {event}")?;
        }
        writeln!(f, "seed {}: {}", self.seed, self.what)?;
        write!(f, "again: cargo run -p albireo-sim -- --seed {} --verbose", self.seed)
    }
}

/// What many runs came to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Runs.
    pub runs: u64,
    /// Their events.
    pub events: u64,
    /// What they were.
    pub counts: Counts,
}

impl Totals {
    fn add(&mut self, summary: &Summary) {
        self.runs += 1;
        self.events += summary.events;
        self.counts.transactions += summary.counts.transactions;
        self.counts.crashes += summary.counts.crashes;
        self.counts.recoveries += summary.counts.recoveries;
        self.counts.lost += summary.counts.lost;
        self.counts.refused += summary.counts.refused;
        self.counts.archives += summary.counts.archives;
        self.counts.loaded += summary.counts.loaded;
        self.counts.without_newest += summary.counts.without_newest;
        self.counts.damages += summary.counts.damages;
        self.counts.found += summary.counts.found;
        self.counts.complete += summary.counts.complete;
        self.counts.frozen += summary.counts.frozen;
        self.counts.emptied += summary.counts.emptied;
        self.counts.evicted += summary.counts.evicted;
        self.counts.cooled += summary.counts.cooled;
        self.counts.warmed += summary.counts.warmed;
        self.counts.read_faults += summary.counts.read_faults;
        self.counts.read_again += summary.counts.read_again;
        self.counts.unread += summary.counts.unread;
        self.counts.spoiled += summary.counts.spoiled;
        self.counts.stayed_unread += summary.counts.stayed_unread;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, events, counts } = self;
        let Counts { transactions, crashes, recoveries, lost, refused, .. } = counts;
        let Counts {
            archives,
            loaded,
            without_newest,
            damages,
            found,
            complete,
            frozen,
            emptied,
            evicted,
            cooled,
            warmed,
            ..
        } = counts;
        let Counts { read_faults, read_again, unread, spoiled, stayed_unread, .. } = counts;
        write!(
            f,
            "{runs} runs, {events} events, {transactions} transactions, {crashes} crashes, {recoveries} \
             recoveries, {loaded} of them from one of {archives} archives and {without_newest} not from the newest, {complete} known to be complete; {lost} transactions lost, none \
             acknowledged; {refused} refused; {damages} files damaged, {found} databases not opened for it; {frozen} \
             tables frozen, chunks of {emptied} of them emptied, of {evicted} evicted; of {cooled} cooled, and of {warmed} hot again; \
             {read_faults} times reads of evicted rows went wrong, {unread} times somebody failed for it, and {read_again} times all was read again, but for \
             {stayed_unread} tables in {spoiled} damaged files"
        )
    }
}

/// Runs a seed.
///
/// # Errors
/// What it found.
pub fn run(seed: u64, options: Options) -> Result<Summary, Failure> {
    let mut simulation = Simulation::new(seed, options.verbose);
    let outcome = catch_unwind(AssertUnwindSafe(|| simulation.run()));
    let trace = &simulation.trace;
    let what = match outcome {
        Ok(Ok(())) => {
            let (digest, events) = (trace.digest(), trace.events());
            return Ok(Summary { digest, events, counts: simulation.counts });
        }
        Ok(Err(what)) => what,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            format!("panicked: {}", text.unwrap_or("without a message"))
        }
    };
    Err(Failure { seed, what, events: trace.last(SHOWN_EVENTS).to_vec() })
}

/// Runs seeds, each in one thread and so many side by side, until all are run, one fails or `go_on` says no.
///
/// # Errors
/// Of the failures, the one that was found first.
pub fn run_all(
    seeds: Range<u64>,
    threads: usize,
    options: Options,
    go_on: impl Fn(&Totals) -> bool + Sync,
) -> Result<Totals, Failure> {
    let (next, stopped) = (AtomicU64::new(seeds.start), AtomicBool::new(false));
    let outcome = Mutex::new((Totals::default(), None));
    let work = || {
        while !stopped.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let result = run(seed, options);
            let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
            match result {
                Ok(summary) => outcome.0.add(&summary),
                Err(failure) => drop(outcome.1.get_or_insert(failure)),
            }
            if outcome.1.is_some() || !go_on(&outcome.0) {
                stopped.store(true, Ordering::Relaxed);
            }
        }
    };
    albireo_env::scope(|scope| {
        for _ in 1..threads {
            // Without a thread, the others do its work.
            let _ = albireo_env::spawn_scoped(scope, "simulation", work);
        }
        work();
    });
    let (totals, failure) = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    failure.map_or(Ok(totals), Err)
}
