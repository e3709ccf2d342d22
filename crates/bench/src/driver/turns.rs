//! Transactions alone and beside queries, in turns.
//!
//! A machine shared with others is faster in some minutes than in others, and tables grow while
//! transactions run. What queries cost transactions can be said only of phases close to each other, so the
//! time asked for is cut into short phases: `m a | a m | m a | a m`, mixed (`m`) and alone (`a`), in pairs
//! whose order changes, so that what only gets slower or faster over the run hits both kinds alike. What
//! is reported are sums over all phases of a kind, and the rate of each.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::phase::{OltpTally, Phase, QueryTally, Span, Stream, StreamTally};
use super::{BenchmarkRun, Failure, during};
use crate::ch::queries::Query;
use crate::config::Workload;
use crate::report::Report;

/// The most phases of a kind.
const MOST_PAIRS: u32 = 8;
/// Phases are no shorter, if there is more than one of a kind.
const SHORTEST: Duration = Duration::from_millis(2_500);

/// Whether each phase has queries, in order; the last one does. There are `pairs` of each kind.
fn order(pairs: u32) -> impl Iterator<Item = bool> {
    (0..pairs).rev().flat_map(|pairs_left| if pairs_left % 2 == 0 { [false, true] } else { [true, false] })
}

/// The phases of a run with queries, each kind measured for `duration` in all.
fn spans(duration: Duration) -> Vec<(Span, bool)> {
    let pairs = (duration.as_millis() / SHORTEST.as_millis()).clamp(1, MOST_PAIRS.into()) as u32;
    let mut before = Duration::ZERO;
    let mut spans: Vec<(Span, bool)> = order(pairs)
        .enumerate()
        .map(|(number, with_queries)| {
            let mut span = Span::single(number, duration / pairs);
            if number == 0 {
                // Nothing has run yet: as long a warm-up as one long phase has.
                span.warm_up = Span::single(number, duration).warm_up;
            }
            span.before = before;
            before += span.warm_up + span.measured;
            (span, with_queries)
        })
        .collect();
    spans.iter_mut().for_each(|(span, _)| span.total = before);
    spans
}

impl BenchmarkRun<'_> {
    /// Runs and measures everything between loading and the last check.
    pub(super) fn take_turns(&self, report: &mut Report) -> Result<(), Failure> {
        let (queries, streams): (&[Query], usize) = match &self.config.workload {
            Workload::Ch { queries, streams } => (queries.queries(), *streams),
            Workload::Tpcc => (&[], 0),
        };
        for query in queries {
            self.target.prepare(query).map_err(during(query.name))?;
        }
        let spans = match self.config.workload {
            // So many transactions are not divided among phases.
            Workload::Ch { .. } if self.config.transactions.is_some() => spans(SHORTEST),
            Workload::Ch { .. } => spans(self.config.duration),
            Workload::Tpcc => vec![(Span::single(0, self.config.duration), false)],
        };
        let answered: Vec<AtomicBool> = queries.iter().map(|_| AtomicBool::new(false)).collect();
        let mut streams = Stream::all(streams, queries, self.config.seed);
        self.target.forget_pauses();
        let (mut alone, mut mixed) = (None, None);
        let done = spans.iter().enumerate().try_for_each(|(i, &(span, with_queries))| {
            let phase = Phase::new(self, span);
            let is_last = i + 1 == spans.len();
            let result = if with_queries {
                phase.with_queries(queries, &answered).run("with queries", &mut streams, is_last)
            } else {
                phase.run("transactions", &mut [], is_last)
            };
            let tally = if with_queries { &mut mixed } else { &mut alone };
            tally.get_or_insert_with(OltpTally::default).merge(result.oltp);
            result.failure.map_or(Ok(()), Err)?;
            self.go_on()?;
            if let Some(mut snapshot) = result.snapshot {
                self.observer.finished();
                report.consistency.under_load = self.check(snapshot.as_mut())?;
            }
            self.go_on()
        });
        self.observer.finished();
        report.oltp_alone = alone.as_ref().map(OltpTally::report);
        report.oltp_mixed = mixed.as_ref().map(OltpTally::report);
        let asked = StreamTally::of(queries, &streams);
        report.freshness_ms = asked.freshness.quantiles(1_000_000);
        report.queries = asked.by_query.iter().map(QueryTally::report).collect();
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_of_both_kinds_take_turns_for_the_time_asked_for_and_the_last_has_queries() {
        for (seconds, wanted) in
            [(1, "am"), (5, "maam"), (8, "ammaam"), (20, "maammaammaammaam"), (300, "maammaammaammaam")]
        {
            let duration = Duration::from_secs(seconds);
            let spans = spans(duration);
            let found: String = spans.iter().map(|(_, queries)| if *queries { 'm' } else { 'a' }).collect();
            assert_eq!(found, wanted);
            for kind in [false, true] {
                let of_kind = spans.iter().filter(|(_, queries)| *queries == kind);
                let measured: Duration = of_kind.map(|(span, _)| span.measured).sum();
                assert!(duration - measured < Duration::from_micros(1), "{measured:?} of {duration:?}");
            }
            let mut before = Duration::ZERO;
            for (number, (span, _)) in spans.iter().enumerate() {
                assert_eq!((span.number, span.before), (number, before));
                before += span.warm_up + span.measured;
            }
            assert!(spans.iter().all(|(span, _)| span.total == before));
        }
    }
}
