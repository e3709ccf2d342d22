//! What was measured, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use super::{CompactionConfig, Sizes};
use crate::latency::median;
use crate::report::Shown;

mod loss;
mod observers;

pub use loss::{Loss, LossTimes};
pub use observers::{ComparedObservers, Marks, ObserverWay, Observers};

/// What frozen rows take and cost.
#[derive(Clone, Debug, Serialize)]
pub struct CompactionReport {
    /// Warehouses.
    pub warehouses: i16,
    /// For how long TPC-C ran, wherever it did.
    pub seconds: f64,
    /// Turns of which medians are made.
    pub turns: usize,
    /// Which numbers of rows there were.
    pub sizes: Sizes,
    /// Transactions of the databases that are compared.
    pub transactions: u64,
    /// Order lines of these databases.
    pub order_lines: u64,
    /// What transactions lose while others freeze.
    pub loss: Option<Loss>,
    /// What it costs to observe reads.
    pub observers: Option<Observers>,
    /// The ways to observe reads and writes, on the same accesses.
    pub compared: Option<ComparedObservers>,
    /// Of order lines, on one core, with nothing else running.
    pub freezing: Vec<Freezing>,
    /// Of each table that grows.
    pub memory: Vec<Size>,
    /// Of each query.
    pub queries: Vec<QueryTimes>,
    /// Nanoseconds of a SELECT of one row.
    pub selects: Option<InTurns>,
    /// Nanoseconds of each changed line.
    pub updates: Option<InTurns>,
    /// Milliseconds of scans of frozen rows; "hot" is without invalid rows, "frozen" with.
    pub scans: Vec<(String, InTurns)>,
    /// Of single columns.
    pub columns: Vec<Size>,
    /// Of a database of which most is frozen.
    pub archives: Option<Archives>,
    /// Of rows whose names begin alike, found in four ways.
    pub prefixes: Option<PrefixScans>,
    /// Of order lines with few different texts and with many, compressed when they are inserted.
    pub instant: Vec<InstantCompression>,
    /// Of runs of two lengths.
    pub runs: Vec<RunSums>,
    /// Of all orders, and of every tenth.
    pub sequences: Vec<SequenceUpdates>,
    /// The figures beside what is asked of them.
    pub shows: Vec<Shown>,
    /// Whether it was ended early on request.
    pub interrupted: bool,
    /// What ended it, if it failed.
    pub error: Option<String>,
}

/// Times of hot rows and of frozen ones, of each turn.
#[derive(Clone, Default, Debug, Serialize)]
pub struct InTurns {
    /// Of hot rows.
    pub hot: Vec<f64>,
    /// Of frozen rows.
    pub frozen: Vec<f64>,
}

impl InTurns {
    pub(super) fn of(hot: f64, frozen: f64) -> Self {
        Self { hot: vec![hot], frozen: vec![frozen] }
    }

    pub(super) fn push(&mut self, hot: f64, frozen: f64) {
        self.hot.push(hot);
        self.frozen.push(frozen);
    }

    /// The medians of both, and of frozen rows relative to hot ones turn by turn.
    fn medians(&self) -> (f64, f64, f64) {
        (median(&self.hot), median(&self.frozen), median(self.ratios()))
    }

    fn ratios(&self) -> Vec<f64> {
        self.frozen.iter().zip(&self.hot).map(|(frozen, hot)| frozen / hot).collect()
    }
}

/// One table of order lines that was frozen.
#[derive(Clone, Debug, Serialize)]
pub struct Freezing {
    /// Its rows.
    pub rows: u64,
    /// Processor time of the thread.
    pub cpu_ms: f64,
    /// Time.
    pub wall_ms: f64,
}

/// What rows take, indexes apart.
#[derive(Clone, Debug, Serialize)]
pub struct Size {
    /// Of what.
    pub name: String,
    /// How many.
    pub rows: u64,
    /// Hot.
    pub hot_bytes: u64,
    /// Frozen.
    pub frozen_bytes: u64,
    /// Frozen, if no chunk shared texts with another.
    pub unshared_bytes: u64,
}

impl Size {
    fn times(&self) -> f64 {
        self.frozen_bytes as f64 / self.hot_bytes as f64
    }

    /// What the paper has of it. Of names it gives the ratio of a database in which all texts are such.
    fn paper(&self) -> &'static str {
        match self.name.as_str() {
            "ol_o_id" => "0.30x, as runs",
            "o_entry_d" | "h_date" => "runs of several thousand rows",
            "names of 24 characters" => "0.89x, the whole database",
            "names of 240 characters" => "0.41x, the whole database",
            _ => "",
        }
    }
}

/// Two archives of one database, and some transactions between them.
#[derive(Clone, Debug, Serialize)]
pub struct Archives {
    /// Its rows.
    pub rows: u64,
    /// Those that are frozen.
    pub frozen_rows: u64,
    /// What the first wrote.
    pub first_bytes: u64,
    /// What the second wrote.
    pub second_bytes: u64,
}

/// Prefix scans in four ways, and what two of these take.
#[derive(Clone, Debug, Serialize)]
pub struct PrefixScans {
    /// Rows of each table.
    pub rows: u64,
    /// Of the ordered index with keys, for each row.
    pub keyed_bytes: f64,
    /// Of the index of TIDs alone, for each row.
    pub bare_bytes: f64,
    /// From frequent to rare.
    pub scans: Vec<PrefixScan>,
}

/// Milliseconds of finding and adding up the rows of one prefix.
#[derive(Clone, Debug, Serialize)]
pub struct PrefixScan {
    /// What names begin with.
    pub prefix: String,
    /// Of all rows.
    pub percent: f64,
    /// By a scan of hot rows.
    pub hot: Vec<f64>,
    /// By a scan of frozen rows.
    pub frozen: Vec<f64>,
    /// By an ordered index with keys, of frozen rows.
    pub keyed: Vec<f64>,
    /// By an index of TIDs alone, of frozen rows.
    pub bare: Vec<f64>,
}

impl PrefixScans {
    /// The share of rows up to which an index of TIDs alone is faster than a scan of the frozen column: between the last
    /// prefix at which it is and the first at which it is not, on a line between the two.
    fn crossing_percent(&self) -> f64 {
        let mut rising: Vec<_> = self.scans.iter().collect();
        rising.sort_by(|a, b| a.percent.total_cmp(&b.percent));
        let gain = |scan: &PrefixScan| median(&scan.frozen) - median(&scan.bare);
        let mut before: Option<&PrefixScan> = None;
        for scan in rising {
            if gain(scan) < 0.0 {
                return before.map_or(0.0, |before| {
                    let part = gain(before) / (gain(before) - gain(scan));
                    before.percent + part * (scan.percent - before.percent)
                });
            }
            before = Some(scan);
        }
        before.map_or(f64::NAN, |last| last.percent)
    }

    fn show(&self, text: &mut String) {
        let Self { rows, keyed_bytes, bare_bytes, scans } = self;
        let _ = writeln!(
            text,
            "\nPrefix scans of {rows} rows, ms (rows behind indexes are frozen); an index with keys takes {keyed_bytes:.2} \
             bytes a row, of TIDs alone {bare_bytes:.2}\n{:<10} {:>10} {:>10} {:>12} {:>16} {:>12}",
            "prefix", "rows, %", "scan, hot", "scan, frozen", "index with keys", "TIDs alone"
        );
        for PrefixScan { prefix, percent, hot, frozen, keyed, bare } in scans {
            let [hot, frozen, keyed, bare] = [hot, frozen, keyed, bare].map(median);
            let _ = writeln!(
                text,
                "{prefix:<10} {percent:>10.4} {hot:>10.3} {frozen:>12.3} {keyed:>16.3} {bare:>12.3}"
            );
        }
        let _ = writeln!(
            text,
            "TIDs alone are faster than the scan of frozen rows up to {:.3} % of the rows; in the paper, of 3.6 M, up to 3.3 %",
            self.crossing_percent()
        );
    }
}

/// Order lines that were inserted by a procedure: "hot" is without compressing a text of theirs at once, "frozen" with.
#[derive(Clone, Debug, Serialize)]
pub struct InstantCompression {
    /// Different texts.
    pub texts: u64,
    /// Lines.
    pub rows: u64,
    /// Texts that the dictionary did not have before.
    pub added: u64,
    /// Milliseconds of inserting all lines.
    pub insert_ms: InTurns,
    /// Milliseconds of freezing all lines that were inserted without.
    pub freeze_ms: Vec<f64>,
    /// The paper's milliseconds for each million lines without and with, and what that is relative to without.
    pub paper: &'static str,
}

impl InstantCompression {
    fn show(all: &[Self], text: &mut String) {
        let Some(first) = all.first() else { return };
        let _ = writeln!(
            text,
            "\nCompressing a text of 24 characters when its order line is inserted, {} lines by compiled procedures, ms for each \
             million\n{:>16} {:>12} {:>12} {:>12} {:>8} {:>18}  paper, likewise",
            first.rows, "different texts", "of them new", "without", "with", "times", "freezing later"
        );
        for Self { texts, rows, added, insert_ms, freeze_ms, paper } in all {
            let a_million = |ms: f64| ms / *rows as f64 * 1e6;
            let (without, with, times) = insert_ms.medians();
            let [without, with, freezing] = [without, with, median(freeze_ms)].map(a_million);
            let _ = writeln!(
                text,
                "{texts:>16} {added:>12} {without:>12.1} {with:>12.1} {times:>7.2}x {freezing:>18.1}  {paper}"
            );
        }
    }
}

/// Times of one thing done to the same values in three forms, of each turn.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Schemes {
    /// As they are.
    pub plain: Vec<f64>,
    /// Runs, each a value and the position of its end.
    pub positions: Vec<f64>,
    /// Runs, each a value and its length.
    pub lengths: Vec<f64>,
}

impl Schemes {
    pub(super) fn push(&mut self, plain: f64, positions: f64, lengths: f64) {
        self.plain.push(plain);
        self.positions.push(positions);
        self.lengths.push(lengths);
    }

    /// The medians of the three.
    fn medians(&self) -> [f64; 3] {
        [&self.plain, &self.positions, &self.lengths].map(median)
    }
}

/// Sums over runs of one length, and single values of these.
#[derive(Clone, Debug, Serialize)]
pub struct RunSums {
    /// Rows of each run.
    pub length: u64,
    /// Rows of each table.
    pub rows: u64,
    /// Milliseconds of a sum by SQL: of a hot table, and of one that is frozen as runs with positions.
    pub query_ms: InTurns,
    /// Values in memory, without a database.
    pub values: u64,
    /// Milliseconds of adding these up by a loop.
    pub sums_ms: Schemes,
    /// Nanoseconds of an access to one of these at random.
    pub accesses_ns: Schemes,
    /// The paper's time of an access by positions, relative to a value as it is.
    pub paper: &'static str,
}

impl RunSums {
    fn show(all: &[Self], text: &mut String) {
        let Some(Self { rows, values, .. }) = all.first() else { return };
        let _ = writeln!(
            text,
            "\nSums over runs, ms: of {rows} rows by SQL, of {values} values by loops; in the paper, of 500 M, positions are hardly \
             slower than lengths\n{:>8} {:>10} {:>10} {:>8} {:>14} {:>10} {:>10}",
            "run of", "SQL, hot", "frozen", "times", "loop, as is", "positions", "lengths"
        );
        for Self { length, query_ms, sums_ms, .. } in all {
            let ((hot, frozen, times), [plain, positions, lengths]) = (query_ms.medians(), sums_ms.medians());
            let _ = writeln!(
                text,
                "{length:>8} {hot:>10.3} {frozen:>10.3} {times:>7.2}x {plain:>14.3} {positions:>10.3} {lengths:>10.3}"
            );
        }
        let _ = writeln!(
            text,
            "{:>8} {:>11} {:>10} {:>8} {:>14} {:>10}  paper, times by positions; by lengths",
            "run of", "a value, ns", "positions", "times", "lengths", "times"
        );
        for Self { length, accesses_ns, paper, .. } in all {
            let [plain, positions, lengths] = accesses_ns.medians();
            let (by_positions, by_lengths) = (positions / plain, lengths / plain);
            let _ = writeln!(
                text,
                "{length:>8} {plain:>11.2} {positions:>10.2} {by_positions:>7.1}x {lengths:>14.0} {by_lengths:>9.0}x  {paper}; to 10^6"
            );
        }
    }
}

/// Updates of order lines in sequence: of hot ones, of such that cool, and of frozen ones.
#[derive(Clone, Debug, Serialize)]
pub struct SequenceUpdates {
    /// One order in so many was updated.
    pub every: u64,
    /// Lines of these, in each turn.
    pub lines: u64,
    /// Nanoseconds of a hot line, of each turn.
    pub hot_ns: Vec<f64>,
    /// Of one in a chunk that cools.
    pub cooling_ns: Vec<f64>,
    /// Of a frozen one.
    pub frozen_ns: Vec<f64>,
    /// Lines that moved out of chunks that cool.
    pub cooling_moved: u64,
    /// Lines that moved out of frozen chunks.
    pub frozen_moved: u64,
}

impl SequenceUpdates {
    pub(super) fn new(every: u64) -> Self {
        let (hot_ns, cooling_ns, frozen_ns) = (Vec::new(), Vec::new(), Vec::new());
        Self { every, lines: 0, hot_ns, cooling_ns, frozen_ns, cooling_moved: 0, frozen_moved: 0 }
    }

    fn show(all: &[Self], text: &mut String) {
        if all.is_empty() {
            return;
        }
        let _ = writeln!(
            text,
            "\nUpdates of order lines in sequence, a statement for each order, ns a line\n{:<12} {:>10} {:>10} {:>10} {:>8} {:>8} \
             {:>10} {:>8} {:>8}",
            "orders", "lines", "hot", "cooling", "times", "moved", "frozen", "times", "moved"
        );
        for one in all {
            let Self { every, lines, hot_ns, cooling_ns, frozen_ns, cooling_moved, frozen_moved } = one;
            let orders = if *every == 1 { "all".to_owned() } else { format!("1 of {every}") };
            let times = |other: &[f64]| median(other.iter().zip(hot_ns).map(|(other, hot)| other / hot));
            let (cooling_times, frozen_times) = (times(cooling_ns), times(frozen_ns));
            let [hot, cooling, frozen] = [hot_ns, cooling_ns, frozen_ns].map(median);
            let _ = writeln!(
                text,
                "{orders:<12} {lines:>10} {hot:>10.1} {cooling:>10.1} {cooling_times:>7.2}x {cooling_moved:>8} \
                 {frozen:>10.1} {frozen_times:>7.2}x {frozen_moved:>8}"
            );
        }
        text.push_str(
            "in the paper, of all 50 M rows, which move: hot 1,605 ms, cooling 3,595 (2.24x), frozen 3,436 (2.14x)\n",
        );
    }
}

/// Milliseconds of a query.
#[derive(Clone, Debug, Serialize)]
pub struct QueryTimes {
    /// Its name.
    pub query: &'static str,
    /// The first time.
    pub first: InTurns,
    /// Then.
    pub again: InTurns,
}

impl QueryTimes {
    pub(super) fn new(query: &'static str) -> Self {
        Self { query, first: InTurns::default(), again: InTurns::default() }
    }

    fn show(all: &[Self], of_lines: &str, text: &mut String) {
        if all.is_empty() {
            return;
        }
        let _ = writeln!(
            text,
            "\nQueries over {of_lines}\n{:<16} {:>12} {:>12} {:>8} {:>12} {:>12} {:>8}",
            "query, ms", "first, hot", "frozen", "times", "then, hot", "frozen", "times"
        );
        for Self { query, first, again } in all {
            let ((hot, frozen, times), (again, again_frozen, again_times)) =
                (first.medians(), again.medians());
            let _ = writeln!(
                text,
                "{query:<16} {hot:>12.2} {frozen:>12.2} {times:>8.2} {again:>12.2} {again_frozen:>12.2} {again_times:>8.2}"
            );
        }
        let mean = |of: fn(&Self) -> &InTurns| geometric_mean(all.iter().map(|query| of(query).medians().2));
        let (first, again) = (mean(|query| &query.first), mean(|query| &query.again));
        let _ = writeln!(text, "{:<16} {first:>34.2} {again:>34.2}", "geometric mean");
    }
}

fn spread(all: &[f64]) -> (f64, f64) {
    all.iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), one| (least.min(*one), most.max(*one)))
}

fn millions(rows: u64) -> String {
    format!("{:.2} M", rows as f64 / 1e6)
}

fn geometric_mean(all: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = all.fold((0.0, 0.0), |(sum, count), ratio| (sum + ratio.ln(), count + 1.0));
    (sum / count).exp()
}

impl Freezing {
    fn millions_per_second(all: &[Self]) -> Vec<f64> {
        all.iter().map(|one| one.rows as f64 / one.cpu_ms / 1e3).collect()
    }
}

/// A figure that was asked for, with the paper's, and the least and the greatest of its turns.
struct Line {
    shown: Shown,
    paper: &'static str,
    turns: Vec<f64>,
}

impl Line {
    fn new(shown: Shown, scale: &str, paper: &'static str, turns: Vec<f64>) -> Self {
        Self { shown: Shown { scale: Some(scale.to_owned()), ..shown }, paper, turns }
    }
}

impl CompactionReport {
    pub(super) fn new(config: &CompactionConfig) -> Self {
        Self {
            warehouses: config.workload.warehouses,
            seconds: config.workload.duration.as_secs_f64(),
            turns: config.turns,
            sizes: config.sizes,
            transactions: 0,
            order_lines: 0,
            loss: None,
            observers: None,
            compared: None,
            freezing: Vec::new(),
            memory: Vec::new(),
            queries: Vec::new(),
            selects: None,
            updates: None,
            scans: Vec::new(),
            columns: Vec::new(),
            archives: None,
            prefixes: None,
            instant: Vec::new(),
            runs: Vec::new(),
            sequences: Vec::new(),
            shows: Vec::new(),
            interrupted: false,
            error: None,
        }
    }

    fn lines(&self) -> Vec<Line> {
        let mut lines = self.lines_of_transactions();
        let of_lines = format!("{} order lines", millions(self.order_lines));
        let mut line = |what: &str, unit, turns: Vec<f64>, value: f64, at_least, aim, scale: &str, paper| {
            lines.push(Line::new(Shown::new(what, unit, value, at_least, aim), scale, paper, turns));
        };
        if !self.freezing.is_empty() {
            let turns = Freezing::millions_per_second(&self.freezing);
            let (value, scale) = (median(&turns), format!("{} order lines", millions(self.freezing[0].rows)));
            line(
                "freezing, per core",
                "M order lines/s",
                turns,
                value,
                5.0,
                10.0,
                &scale,
                "4.8 M, of 18.3 M",
            );
        }
        if !self.memory.is_empty() {
            let what =
                "memory of ORDER_LINE + HISTORY + ORDERS after TPC-C, frozen against hot (indexes apart)";
            let sum = |of: fn(&Size) -> u64| self.memory.iter().map(of).sum::<u64>();
            let value = sum(|size| size.frozen_bytes) as f64 / sum(|size| size.hot_bytes) as f64;
            let scale = format!("{} rows", millions(sum(|size| size.rows)));
            line(what, "x", Vec::new(), value, 0.5, 0.3, &scale, "0.89x; 240 characters: 0.41x; of 50 GB");
        }
        if !self.queries.is_empty() {
            let ratios: Vec<f64> = self.queries.iter().map(|query| query.again.medians().2).collect();
            let what = "the 22 CH queries over frozen against hot data, geometric mean, one thread, in turns";
            let value = 1.0 / geometric_mean(ratios.iter().copied());
            line(what, "x faster", Vec::new(), value, 1.0, 1.5, &of_lines, "");
            let worst = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            line("the worst single query of them", "x", Vec::new(), worst, 1.15, 1.0, &of_lines, "");
        }
        if let Some(selects) = &self.selects {
            let what = "point SELECT of a frozen row, prepared, against a hot one";
            line(what, "x", selects.ratios(), selects.medians().2, 1.5, 1.1, &of_lines, "");
        }
        if let Some(updates) = &self.updates {
            let what = "random update of 100,000 frozen order lines against hot ones (paper 2.55x)";
            line(what, "x", updates.ratios(), updates.medians().2, 2.5, 1.5, &of_lines, "2.55x");
        }
        if !self.scans.is_empty() {
            let more = |(_, times): &(String, InTurns)| (times.medians().2 - 1.0) * 100.0;
            let turns: Vec<f64> = self.scans.iter().map(more).collect();
            let worst = turns.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let what = "scan with 1 of 36 rows invalid (paper 4.5-7.9 %)";
            line(what, "%", turns, worst, 8.0, 2.0, &of_lines, "4.5-7.9 %, of 3.6 M");
        }
        if let Some(Archives { rows, first_bytes, second_bytes, .. }) = &self.archives {
            let what = "second archive of a database of which 95 % is frozen: bytes written";
            let value = *second_bytes as f64 / *first_bytes as f64 * 100.0;
            let scale = format!("{} rows", millions(*rows));
            line(what, "% of the first", Vec::new(), value, 10.0, 6.0, &scale, "");
        }
        lines
    }

    /// What TPC-C itself loses.
    fn lines_of_transactions(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(loss) = self.loss.as_ref().filter(|loss| !loss.cold.seconds.is_empty()) {
            let turns = LossTimes::percent(&loss.cold.per_second);
            let what = "loss of TPC-C throughput while freezing (paper 12.9 %)";
            let shown = Shown::new(what, "%", median(&turns), 10.0, 2.0);
            let frozen = LossTimes::millions(&loss.cold.order_lines);
            let scale = format!("{frozen:.2} M order lines, a quarter of the time");
            lines.push(Line::new(shown, &scale, "12.9 %, of 18.3 M", turns));
        }
        if let Some(observers) = &self.observers {
            let turns: Vec<f64> =
                observers.transaction_ns.ratios().iter().map(|ratio| (ratio - 1.0) * 100.0).collect();
            let what = "overhead of the default observer on TPC-C";
            let shown = Shown::new(what, "%", median(&turns), 2.0, 0.5);
            let scale = format!("{} warehouses", self.warehouses);
            lines.push(Line::new(shown, &scale, "marks: none, of 12", turns));
        }
        lines
    }

    /// For programs.
    pub fn json(&self) -> String {
        let shows = self.lines().into_iter().map(|line| line.shown).collect();
        let report = Self { shows, ..self.clone() };
        serde_json::to_string_pretty(&report).expect("a report is made of numbers and texts")
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut text = format!(
            "Frozen rows against hot ones; {} warehouses, {} transactions, {} turns{}\n",
            self.warehouses,
            self.transactions,
            self.turns,
            if self.sizes == Sizes::Paper { ", as many rows as in the paper" } else { "" }
        );
        let _ = writeln!(
            text,
            "\n{:<88} {:>20} {:>24} {:>17} {:>9} {:>6} {:>6}  paper",
            "what", "measured of", "value", "turns", "at least", "aim", "holds"
        );
        for Line { shown, paper, turns } in self.lines() {
            let turns = match (turns.is_empty(), spread(&turns)) {
                (true, _) => String::new(),
                (false, (least, most)) => format!("{least:.2} to {most:.2}"),
            };
            let value = format!("{:.2} {}", shown.value, shown.unit);
            let holds = if shown.holds { "yes" } else { "no" };
            let Shown { what, at_least, aim, scale, .. } = shown;
            let scale = scale.unwrap_or_default();
            let _ = writeln!(
                text,
                "{what:<88} {scale:>20} {value:>24} {turns:>17} {at_least:>9} {aim:>6} {holds:>6}  {paper}"
            );
        }
        self.details(&mut text);
        text
    }

    fn details(&self, text: &mut String) {
        if let Some(loss) = &self.loss {
            let paper = "; in the paper 18.3 M and, of HISTORY, 0.9 M in 3.8 s";
            loss.cold.show("cold order lines and history", paper, text);
            loss.all.show("all that grows, what is written too", "", text);
        }
        if let Some(observers) = &self.observers {
            observers.show(text);
        }
        if let Some(compared) = &self.compared {
            compared.show(text);
        }
        if !self.freezing.is_empty() {
            let wall = median(self.freezing.iter().map(|one| one.wall_ms));
            let cpu = median(self.freezing.iter().map(|one| one.cpu_ms));
            let rows = self.freezing[0].rows;
            let _ =
                writeln!(text, "\n{rows} order lines frozen in {wall:.0} ms, {cpu:.0} ms of processor time");
        }
        sizes(text, "Tables, indexes apart", &self.memory);
        let of_lines = format!("{} order lines", millions(self.order_lines));
        QueryTimes::show(&self.queries, &of_lines, text);
        let single = [
            ("SELECT of one row, prepared", &self.selects, ""),
            ("UPDATE of random orders, each line", &self.updates, "; in the paper 180 and 460 ns, 2.55x"),
        ];
        for (name, times, paper) in single {
            if let Some((hot, frozen, times)) = times.as_ref().map(InTurns::medians) {
                let _ = writeln!(
                    text,
                    "\n{name}, of {of_lines}: {hot:.0} ns, frozen {frozen:.0} ns, {times:.2}x{paper}"
                );
            }
        }
        SequenceUpdates::show(&self.sequences, text);
        if !self.scans.is_empty() {
            let _ = writeln!(
                text,
                "\nScans of {of_lines}, frozen: without invalid ones, and with 1 of 36, ms; in the paper, of 3.6 M"
            );
        }
        for (name, times) in &self.scans {
            let (dense, invalid, times) = times.medians();
            let _ =
                writeln!(text, "{name:<20} {dense:>10.2} {invalid:>10.2} {:>7.1} %", (times - 1.0) * 100.0);
        }
        sizes(text, "Columns, each in a table of its own", &self.columns);
        if let Some(Archives { rows, frozen_rows, first_bytes, second_bytes }) = &self.archives {
            let _ = writeln!(
                text,
                "\nArchives of {rows} rows, {frozen_rows} of them frozen: {first_bytes} bytes, then {second_bytes}"
            );
        }
        if let Some(prefixes) = &self.prefixes {
            prefixes.show(text);
        }
        InstantCompression::show(&self.instant, text);
        RunSums::show(&self.runs, text);
    }
}

/// A table of sizes.
fn sizes(text: &mut String, title: &str, all: &[Size]) {
    if all.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\n{title}\n{:<26} {:>12} {:>14} {:>14} {:>14} {:>10} {:>8} {:>8}  paper",
        "", "rows", "hot bytes", "frozen bytes", "texts unshared", "a row", "frozen", "times"
    );
    for size in all {
        let Size { name, rows, hot_bytes, frozen_bytes, unshared_bytes } = size;
        let of_row = |bytes: u64| bytes as f64 / *rows as f64;
        let paper = size.paper();
        let (hot_row, frozen_row, times) = (of_row(*hot_bytes), of_row(*frozen_bytes), size.times());
        let _ = writeln!(
            text,
            "{name:<26} {rows:>12} {hot_bytes:>14} {frozen_bytes:>14} {unshared_bytes:>14} {hot_row:>10.2} {frozen_row:>8.2} {times:>7.2}x  {paper}"
        );
    }
}
