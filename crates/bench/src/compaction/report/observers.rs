//! Observers of what transactions access.

use std::fmt::Write as _;

use serde::Serialize;

use super::InTurns;
use crate::latency::median;

/// Observers of reads: "hot" is without one, "frozen" with the default one.
#[derive(Clone, Debug, Serialize)]
pub struct Observers {
    /// Nanoseconds of processor time of a transaction of TPC-C.
    pub transaction_ns: InTurns,
    /// Entries that are read.
    pub entries: u64,
    /// Milliseconds of 100,000 random reads.
    pub reads_ms: InTurns,
    /// What the processor marks, where the system tells.
    pub marks: Option<Marks>,
}

/// Reads that the processor marks in page tables.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Marks {
    /// Milliseconds of 100,000 random reads after marks were cleared.
    pub reads_ms: Vec<f64>,
    /// Milliseconds of clearing the marks of the process, `/proc/self/clear_refs`.
    pub clear_ms: Vec<f64>,
    /// Milliseconds of looking at them, `/proc/self/smaps_rollup`.
    pub look_ms: Vec<f64>,
    /// The memory of the databases that are there then, in GiB.
    pub gib: f64,
}

impl Observers {
    pub(super) fn show(&self, text: &mut String) {
        let (without, with, times) = self.transaction_ns.medians();
        let percent = (times - 1.0) * 100.0;
        let (read, counted, _) = self.reads_ms.medians();
        let _ = writeln!(
            text,
            "\nObservers of reads: TPC-C {without:.0} ns of processor time a transaction without, {with:.0} with the default \
             one, {percent:.1} %\n100,000 random reads of {} entries by their keys, ms: {read:.2} without, {counted:.2} counted",
            self.entries
        );
        if let Some(Marks { reads_ms, clear_ms, look_ms, gib }) = &self.marks {
            let [reads, clear, look] = [reads_ms, clear_ms, look_ms].map(median);
            let _ = writeln!(
                text,
                "marked by the processor: {reads:.2} after clearing the marks of {gib:.2} GiB in {clear:.2}; looking at them \
                 takes {look:.2}, and tells of areas, not of pages. In the paper, of 100,000 updates of 10 million: 4 without, \
                 94 with protected pages, 4 marked"
            );
        }
    }
}

/// Ways to observe accesses, on the same ones.
#[derive(Clone, Default, Debug, Serialize)]
pub struct ComparedObservers {
    /// Of eight bytes.
    pub entries: u64,
    /// Random ones in an interval.
    pub accesses: u64,
    /// Nobody who observes is the first.
    pub ways: Vec<ObserverWay>,
}

/// One way: milliseconds of each turn, which has intervals of reads, of updates, and of reads of what lies in the cache.
#[derive(Clone, Default, Debug, Serialize)]
pub struct ObserverWay {
    /// Its name.
    pub name: &'static str,
    /// Whether the database observes like this unless it is told otherwise.
    pub is_default: bool,
    /// Of what it says whether it was accessed.
    pub tells_of: &'static str,
    /// The privilege that it needs; empty if none.
    pub needs: &'static str,
    /// Of all accesses of the interval of reads.
    pub reads_ms: Vec<f64>,
    /// Of all accesses of the interval of updates.
    pub updates_ms: Vec<f64>,
    /// Of all accesses of the interval in which what is read lies in the cache.
    pub near_ms: Vec<f64>,
    /// Of making ready for an interval, the mean of the first two.
    pub begin_ms: Vec<f64>,
    /// Of collecting what was seen in an interval, the mean of the first two.
    pub collect_ms: Vec<f64>,
    /// Of the places that were read, those that it tells of.
    pub reads_seen_percent: Vec<f64>,
    /// Of the places that were updated.
    pub updates_seen_percent: Vec<f64>,
    /// Why it does not work here.
    pub refused: Option<String>,
    /// The paper's figure.
    pub paper: &'static str,
}

impl ObserverWay {
    /// Whether it works here, without a privilege, and tells of most places that are read.
    fn can_be_default(&self) -> bool {
        self.refused.is_none() && self.needs.is_empty() && median(&self.reads_seen_percent) > 50.0
    }

    /// What an interval costs more than where nobody observes, whoever accesses and whoever observes together, in
    /// milliseconds: the mean of the three kinds.
    fn costs_ms(&self, none: &Self) -> f64 {
        let more = |with: &[f64], without: &[f64]| {
            median(with.iter().zip(without).map(|(with, without)| with - without))
        };
        let accesses = more(&self.reads_ms, &none.reads_ms)
            + more(&self.updates_ms, &none.updates_ms)
            + more(&self.near_ms, &none.near_ms);
        accesses / 3.0 + median(&self.begin_ms) + median(&self.collect_ms)
    }

    fn show(&self, none: &Self, text: &mut String) {
        let Self { name, tells_of, needs, paper, .. } = self;
        if let Some(refused) = &self.refused {
            let _ = writeln!(text, "{name:<32} {refused}");
            return;
        }
        let _ = write!(text, "{name:<32}");
        for (with, without) in [
            (&self.reads_ms, &none.reads_ms),
            (&self.updates_ms, &none.updates_ms),
            (&self.near_ms, &none.near_ms),
        ] {
            let times = median(with.iter().zip(without).map(|(with, without)| with / without));
            let _ = write!(text, " {:>8.3} {times:>7.2}x", median(with));
        }
        let [begin, collect] = [&self.begin_ms, &self.collect_ms].map(median);
        let [reads_seen, updates_seen] = [&self.reads_seen_percent, &self.updates_seen_percent].map(median);
        let _ = match tells_of.is_empty() {
            true => writeln!(text, " {:>59}  {paper}", ""),
            false => writeln!(
                text,
                " {begin:>8.3} {collect:>8.3} {tells_of:>8} {reads_seen:>6.0} % {updates_seen:>6.0} % {:>13}  {paper}",
                if needs.is_empty() { "none" } else { needs }
            ),
        };
    }
}

impl ComparedObservers {
    /// The way that costs least of those that can be the default, and what an interval costs.
    fn cheapest(&self) -> Option<(&ObserverWay, f64)> {
        let (none, ways) = self.ways.split_first()?;
        let costs = ways.iter().filter(|way| way.can_be_default()).map(|way| (way, way.costs_ms(none)));
        costs.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    pub(super) fn show(&self, text: &mut String) {
        let Self { entries, accesses, ways } = self;
        let Some(none) = ways.first() else { return };
        let _ = writeln!(
            text,
            "\nObservers of {accesses} random accesses to {entries} entries, ms an interval; in the paper 100,000 updates of 10 \
             million\n{:<32} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>13}  paper",
            "observer",
            "reads",
            "times",
            "updates",
            "times",
            "in cache",
            "times",
            "to begin",
            "collect",
            "tells of",
            "of reads",
            "writes",
            "privilege"
        );
        for way in ways {
            way.show(none, text);
        }
        text.push_str(
            "PAGEMAP_SCAN has no bit for pages that were read. Of huge pages, as databases have, the system tells by 2 MiB\n",
        );
        if let Some((way, costs)) = self.cheapest() {
            let default = ways.iter().find(|way| way.is_default).map_or(f64::NAN, |way| way.costs_ms(none));
            let _ = writeln!(
                text,
                "The cheapest that sees reads and needs no privilege, by what an interval costs more than without: {}, {costs:.2} ms; \
                 the default costs {default:.2}",
                way.name
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(name: &'static str, needs: &'static str, times: [f64; 4], seen_percent: f64) -> ObserverWay {
        let [reads, updates, begin, collect] = times.map(|ms| vec![ms]);
        ObserverWay {
            name,
            tells_of: "pages",
            needs,
            reads_ms: reads,
            updates_ms: updates,
            near_ms: vec![0.0],
            begin_ms: begin,
            collect_ms: collect,
            reads_seen_percent: vec![seen_percent],
            updates_seen_percent: vec![100.0],
            ..ObserverWay::default()
        }
    }

    #[test]
    fn cheapest_observer_sees_reads_without_a_privilege() {
        let refused =
            ObserverWay { refused: Some("not permitted".to_owned()), ..way("refused", "", [1.0; 4], 100.0) };
        let ways = vec![
            ObserverWay { tells_of: "", ..way("none", "", [1.0, 1.0, 0.0, 0.0], 0.0) },
            way("dear", "", [9.0, 9.0, 0.0, 0.0], 100.0),
            way("counted", "", [1.5, 3.5, 0.5, 0.5], 92.0),
            way("privileged", "CAP_SYS_ADMIN", [1.0, 1.0, 0.0, 0.0], 100.0),
            way("writes only", "", [1.0, 1.0, 0.0, 0.0], 0.0),
            refused,
        ];
        let compared = ComparedObservers { entries: 1, accesses: 1, ways };
        let (cheapest, costs) = compared.cheapest().expect("two can");
        assert_eq!((cheapest.name, costs), ("counted", 2.0));
        let mut text = String::new();
        compared.show(&mut text);
        assert!(text.contains("refused                          not permitted\n"), "{text}");
        assert!(text.contains("than without: counted, 2.00 ms"), "{text}");
    }
}
