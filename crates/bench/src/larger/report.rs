//! What was measured, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use super::LargerConfig;
use crate::latency::{Quantiles, median};
use crate::report::Shown;

/// What it costs that data is larger than memory.
#[derive(Clone, Debug, Serialize)]
pub struct LargerReport {
    /// Warehouses.
    pub warehouses: i16,
    /// How many times the memory that the limit leaves for them the rows of tables that grow take, as they are while hot.
    pub multiple: f64,
    /// How often what is compared is measured.
    pub turns: usize,
    /// What each run of TPC-C does, and the limit.
    pub plan: Option<Plan>,
    /// The runs of TPC-C, in their order.
    pub runs: Vec<GrowthRun>,
    /// TPC-C and queries until the rows are ten times as large as what is left for them.
    pub tenfold: Vec<TenfoldRun>,
    /// What updates notice of fetches.
    pub fetches: Option<FetchTimes>,
    /// Of queries that read files.
    pub queries: Option<Speeds>,
    /// The figures beside what is asked of them.
    pub shows: Vec<Shown>,
    /// Whether it was ended early on request.
    pub interrupted: bool,
    /// What ended it, if it failed.
    pub error: Option<String>,
}

/// What each run of TPC-C does.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Transactions that make it grow.
    pub transactions: u64,
    /// Transactions that are measured then.
    pub measured: u64,
    /// The limit of the database that is limited.
    pub limit_bytes: u64,
    /// What the other one holds in the middle of what is measured: the limit is made of this.
    pub middle: Held,
}

/// What a database holds.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct Held {
    /// Rows and their texts, hot and frozen, that are in memory.
    pub rows_bytes: u64,
    /// Those of the tables that grow.
    pub growing_bytes: u64,
    /// Indexes.
    pub indexes_bytes: u64,
    /// All that the limit counts.
    pub in_use_bytes: u64,
}

/// One run of TPC-C.
#[derive(Clone, Debug, Serialize)]
pub struct GrowthRun {
    /// Whether it had not memory for everything.
    pub limited: bool,
    /// How long it took to grow.
    pub grow_seconds: f64,
    /// Transactions a second in each tenth of the growth; nothing of the first run.
    pub parts_per_second: Vec<f64>,
    /// Transactions a second once it had grown.
    pub per_second: f64,
    /// How long one took then, in microseconds.
    pub latency_us: Option<Quantiles>,
    /// What it held before these.
    pub before: Held,
    /// What it held after them.
    pub after: Held,
    /// The most memory in use that was seen.
    pub most_in_use_bytes: u64,
    /// Chunks with rows that are hot, at the end.
    pub hot_chunks: u64,
    /// Those that are frozen and in memory.
    pub frozen_chunks: u64,
    /// Those that are not in memory.
    pub evicted_chunks: u64,
    /// Bytes of the files.
    pub file_bytes: u64,
}

/// TPC-C and queries while the rows grow.
#[derive(Clone, Debug, Serialize)]
pub struct TenfoldRun {
    /// Whether it had not memory for everything.
    pub limited: bool,
    /// The limit of the one that had not.
    pub limit_bytes: u64,
    /// What it did, tenth by tenth.
    pub parts: Vec<TenfoldPart>,
}

/// A tenth of the growth.
#[derive(Clone, Debug, Serialize)]
pub struct TenfoldPart {
    /// How many times what the limit leaves for them the rows of the tables that grow take at its end, as they are while hot.
    pub multiple: f64,
    /// Transactions a second.
    pub per_second: f64,
    /// Queries that were answered.
    pub queries: usize,
    /// Queries that got no memory.
    pub refused: usize,
    /// The median of how long those took that were answered.
    pub query_ms: f64,
    /// All that the limit counts, at its end.
    pub in_use_bytes: u64,
    /// Chunks with rows that are hot, then.
    pub hot_chunks: u64,
    /// Those that are frozen and in memory.
    pub frozen_chunks: u64,
    /// Those that are not in memory.
    pub evicted_chunks: u64,
}

/// How long updates took alone and beside fetches.
#[derive(Clone, Default, Debug, Serialize)]
pub struct FetchTimes {
    /// Chunks that were fetched.
    pub fetches: u64,
    /// For how long that was measured.
    pub seconds: f64,
    /// How long the reads took that had one fetched, in microseconds.
    pub fetch_us: Option<Quantiles>,
    /// How long updates took alone, in microseconds.
    pub alone: Option<Quantiles>,
    /// How many there were.
    pub updates_alone: u64,
    /// The longest of them in each turn, less what the host and other processes took, in microseconds.
    pub alone_longest_us: Vec<f64>,
    /// How long updates took beside fetches, in microseconds.
    pub beside: Option<Quantiles>,
    /// How many there were.
    pub updates_beside: u64,
    /// The longest of them in each turn, less what the host and other processes took, in microseconds.
    pub beside_longest_us: Vec<f64>,
}

/// How fast queries went through files.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Speeds {
    /// Bytes of all files.
    pub file_bytes: u64,
    /// Chunks that are frozen and in memory.
    pub chunks_kept: u64,
    /// Chunks that are not in memory.
    pub chunks_away: u64,
    /// Of each query.
    pub queries: Vec<QuerySpeed>,
}

/// How fast one query was, and who reads the files from end to end; megabytes a second.
#[derive(Clone, Default, Debug, Serialize)]
pub struct QuerySpeed {
    /// Its name.
    pub query: &'static str,
    /// Bytes that it read of the files.
    pub bytes: u64,
    /// Reads of these.
    pub reads: u64,
    /// How long it took, from the disk.
    pub milliseconds: Vec<f64>,
    /// Of the query, from the disk.
    pub query_mb_per_second: Vec<f64>,
    /// Of the files in order, from the disk.
    pub files_mb_per_second: Vec<f64>,
    /// Of the query, from the page cache.
    pub cached_query_mb_per_second: Vec<f64>,
    /// Of the files in order, from the page cache.
    pub cached_files_mb_per_second: Vec<f64>,
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

impl Plan {
    /// How many times the limit everything is that the other database holds.
    fn times_all(&self) -> f64 {
        self.middle.in_use_bytes as f64 / self.limit_bytes as f64
    }
}

impl QuerySpeed {
    fn percent(&self) -> f64 {
        median(&self.query_mb_per_second) / median(&self.files_mb_per_second) * 100.0
    }

    fn cached_percent(&self) -> f64 {
        median(&self.cached_query_mb_per_second) / median(&self.cached_files_mb_per_second) * 100.0
    }
}

impl LargerReport {
    pub(super) fn new(config: &LargerConfig) -> Self {
        Self {
            warehouses: config.workload.warehouses,
            multiple: config.multiple,
            turns: config.turns,
            plan: None,
            runs: Vec::new(),
            tenfold: Vec::new(),
            fetches: None,
            queries: None,
            shows: Vec::new(),
            interrupted: false,
            error: None,
        }
    }

    /// The medians of throughput: all in memory, and limited.
    fn throughput(&self) -> [f64; 2] {
        [false, true].map(|limited| {
            let runs = self.runs.iter().filter(|run| run.limited == limited);
            median(runs.map(|run| run.per_second))
        })
    }

    fn shown(&self) -> Vec<Shown> {
        let mut shows = Vec::new();
        let [hot, limited] = self.throughput();
        if limited.is_finite() {
            let what = "TPC-C at 4 times the memory limit (hot part fits), against all in memory";
            shows.push(Shown::new(what, "%", limited / hot * 100.0, 50.0, 80.0));
        }
        if let Some(fetches) = self.fetches.as_ref().filter(|fetches| fetches.updates_beside > 0) {
            let what = "worst latency of other transactions while one waits for a fetch";
            let worst = |turns: &[f64]| turns.iter().copied().fold(0.0, f64::max) / 1e3;
            let (turns, alone) = (&fetches.beside_longest_us, worst(&fetches.alone_longest_us));
            let scale = Some(format!(
                "the worst of {} turns, median {:.3} ms; without fetches {alone:.3} ms; less what the host and other processes took",
                turns.len(),
                median(turns) / 1e3
            ));
            shows.push(Shown { scale, ..Shown::new(what, "ms", worst(turns), 1.0, 0.1) });
        }
        let speeds = self.queries.iter().flat_map(|speeds| &speeds.queries);
        // The slower of the two counts.
        let slower = speeds.map(QuerySpeed::percent).fold(f64::INFINITY, f64::min);
        if slower.is_finite() {
            let what = "top-10 and Q1 while 75 % is evicted, against the disk's sequential speed";
            shows.push(Shown::new(what, "%", slower, 50.0, 90.0));
        }
        shows
    }

    /// For programs.
    pub fn json(&self) -> String {
        let report = Self { shows: self.shown(), ..self.clone() };
        serde_json::to_string_pretty(&report).expect("a report is made of numbers and texts")
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "Data larger than memory; {} warehouses, {} turns\n\n{:<80} {:>12} {:>9} {:>6} {:>6}\n",
            self.warehouses, self.turns, "what", "value", "at least", "aim", "holds"
        );
        for Shown { what, unit, value, at_least, aim, holds, .. } in self.shown() {
            let (value, holds) = (format!("{value:.2} {unit}"), if holds { "yes" } else { "no" });
            let _ = writeln!(text, "{what:<80} {value:>12} {at_least:>9} {aim:>6} {holds:>6}");
        }
        self.runs(&mut text);
        self.tenfold.iter().for_each(|run| run.show(&mut text));
        if let Some(fetches) = &self.fetches {
            fetches.show(&mut text);
        }
        if let Some(queries) = &self.queries {
            queries.show(&mut text);
        }
        text
    }

    fn runs(&self, text: &mut String) {
        let Some(plan) = &self.plan else { return };
        let _ = writeln!(
            text,
            "\nTPC-C: {} transactions, then {} measured. All in memory, \
             in the middle of these: rows {:.0} MB, {:.0} of them of tables that grow, \
             indexes {:.0} MB, all {:.0} MB.\nThe limit is {:.0} MB: 1/{} of the rows of tables that grow, \
             and everything else; all is {:.2} times the limit.",
            plan.transactions,
            plan.measured,
            megabytes(plan.middle.rows_bytes),
            megabytes(plan.middle.growing_bytes),
            megabytes(plan.middle.indexes_bytes),
            megabytes(plan.middle.in_use_bytes),
            megabytes(plan.limit_bytes),
            self.multiple,
            plan.times_all(),
        );
        let _ = writeln!(
            text,
            "\n{:<14} {:>9} {:>11} {:>9} {:>9} {:>9} {:>9} {:>8} {:>9} {:>9} {:>6} {:>7} {:>8} {:>9}",
            "memory",
            "growth s",
            "tx/s then",
            "p50 us",
            "p99.9 us",
            "max ms",
            "rows MB",
            "indexes",
            "in use",
            "at most",
            "hot",
            "frozen",
            "evicted",
            "files MB"
        );
        for run in &self.runs {
            let name = if run.limited { "limited" } else { "all" };
            let latency = |of: fn(Quantiles) -> f64| run.latency_us.map_or(f64::NAN, of);
            let (p50, p999, max) =
                (latency(|all| all.p50), latency(|all| all.p999), latency(|all| all.max) / 1e3);
            let [rows, indexes, in_use] =
                [run.after.rows_bytes, run.after.indexes_bytes, run.after.in_use_bytes].map(megabytes);
            let (most, files) = (megabytes(run.most_in_use_bytes), megabytes(run.file_bytes));
            let GrowthRun { grow_seconds, per_second, hot_chunks, frozen_chunks, evicted_chunks, .. } = run;
            let _ = writeln!(
                text,
                "{name:<14} {grow_seconds:>9.1} {per_second:>11.0} {p50:>9.1} {p999:>9.1} {max:>9.2} {rows:>9.0} {indexes:>8.0} \
                 {in_use:>9.0} {most:>9.0} {hot_chunks:>6} {frozen_chunks:>7} {evicted_chunks:>8} {files:>9.0}"
            );
        }
        text.push_str("transactions a second in each tenth of the growth:\n");
        for run in self.runs.iter().filter(|run| !run.parts_per_second.is_empty()) {
            let name = if run.limited { "limited" } else { "all" };
            let parts: Vec<String> = run.parts_per_second.iter().map(|part| format!("{part:.0}")).collect();
            let _ = writeln!(text, "{name:<14} {}", parts.join(" "));
        }
    }
}

impl TenfoldRun {
    fn show(&self, text: &mut String) {
        let limit = match self.limited {
            true => format!("the limit is {:.0} MB", megabytes(self.limit_bytes)),
            false => "all in memory".to_owned(),
        };
        let _ = writeln!(
            text,
            "\nTPC-C with queries until rows are ten times what is left for them; {limit}\n{:>8} {:>11} {:>8} {:>8} {:>10} {:>9} {:>6} {:>7} {:>8}",
            "times", "tx/s", "queries", "refused", "median ms", "in use", "hot", "frozen", "evicted"
        );
        for part in &self.parts {
            let TenfoldPart { multiple, per_second, queries, refused, query_ms, .. } = part;
            let TenfoldPart { hot_chunks, frozen_chunks, evicted_chunks, .. } = part;
            let in_use = megabytes(part.in_use_bytes);
            let _ = writeln!(
                text,
                "{multiple:>8.1} {per_second:>11.0} {queries:>8} {refused:>8} {query_ms:>10.1} {in_use:>9.0} \
                 {hot_chunks:>6} {frozen_chunks:>7} {evicted_chunks:>8}"
            );
        }
    }
}

impl FetchTimes {
    fn show(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "\nUpdates of single rows beside {} fetches of a chunk in {:.2} s\n{:<22} {:>10} {:>10} {:>10} {:>10} {:>10} {:>20}",
            self.fetches,
            self.seconds,
            "",
            "how many",
            "p50 us",
            "p99 us",
            "p99.9 us",
            "worst us",
            "in the median turn"
        );
        let lines = [
            ("updates alone", self.updates_alone, self.alone, Some(&self.alone_longest_us)),
            ("updates beside", self.updates_beside, self.beside, Some(&self.beside_longest_us)),
            ("reads that fetch", self.fetches, self.fetch_us, None),
        ];
        for (name, count, times, longest) in lines {
            if let Some(Quantiles { p50, p99, p999, max }) = times {
                let of_turn = longest.map_or(String::new(), |us| format!("{:.1}", median(us)));
                let _ = writeln!(
                    text,
                    "{name:<22} {count:>10} {p50:>10.2} {p99:>10.2} {p999:>10.2} {max:>10.1} {of_turn:>20}"
                );
            }
        }
    }
}

impl Speeds {
    fn show(&self, text: &mut String) {
        let away = self.chunks_away as f64 / (self.chunks_away + self.chunks_kept).max(1) as f64 * 100.0;
        let _ = writeln!(
            text,
            "\nQueries while {away:.0} % of {} chunks are in {:.0} MB of files; MB/s of what is read of these\n\
             {:<8} {:>9} {:>8} {:>10} {:>10} {:>12} {:>8} {:>14} {:>14} {:>8}",
            self.chunks_away + self.chunks_kept,
            megabytes(self.file_bytes),
            "query",
            "MB read",
            "KB each",
            "ms",
            "from disk",
            "files alone",
            "share",
            "from the cache",
            "files alone",
            "share"
        );
        for speed in &self.queries {
            let _ = writeln!(
                text,
                "{:<8} {:>9.1} {:>8.1} {:>10.1} {:>10.0} {:>12.0} {:>6.0} % {:>14.0} {:>14.0} {:>6.0} %",
                speed.query,
                megabytes(speed.bytes),
                speed.bytes as f64 / speed.reads.max(1) as f64 / 1e3,
                median(&speed.milliseconds),
                median(&speed.query_mb_per_second),
                median(&speed.files_mb_per_second),
                speed.percent(),
                median(&speed.cached_query_mb_per_second),
                median(&speed.cached_files_mb_per_second),
                speed.cached_percent(),
            );
        }
    }
}
