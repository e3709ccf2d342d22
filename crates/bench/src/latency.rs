//! Distributions of durations, to three digits.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::borrow::Borrow;

/// The longest duration told apart: an hour. Longer ones count as this one.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Durations in nanoseconds.
#[derive(Clone, Debug)]
pub struct Durations(Histogram<u64>);

/// A distribution in the unit its field's name says.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// 99 % are no longer.
    pub p99: f64,
    /// 99.9 % are no longer.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl Default for Durations {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("bounds and digits are allowed ones"))
    }
}

impl Durations {
    /// Adds one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Durations in nanoseconds that somebody else collected.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let mut durations = Self::default();
        for step in histogram.iter_recorded() {
            let (ns, count) = (step.value_iterated_to(), step.count_since_last_iteration());
            durations.0.saturating_record_n(ns, count);
        }
        durations
    }

    /// Adds all durations of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all histograms have the same bounds");
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The quantiles in units of `unit_ns` nanoseconds; `None` if there is no duration.
    pub fn quantiles(&self, unit_ns: u64) -> Option<Quantiles> {
        let at = |quantile| round(self.0.value_at_quantile(quantile) as f64 / unit_ns as f64);
        (self.count() > 0).then(|| Quantiles {
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: round(self.0.max() as f64 / unit_ns as f64),
        })
    }
}

/// The middle one; of an even number the mean of the middle two, of none NaN.
pub(crate) fn median(all: impl IntoIterator<Item: Borrow<f64>>) -> f64 {
    let mut sorted: Vec<f64> = all.into_iter().map(|one| *one.borrow()).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

/// Three digits after the point are enough for people and programs.
pub(crate) fn round(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_known_durations_are_right_to_three_digits() {
        let (mut low, mut high) = (Durations::default(), Durations::default());
        (1..=500).for_each(|us| low.record(us * 1_000));
        (501..=1_000).for_each(|us| high.record(us * 1_000));
        low.merge(&high);
        let Quantiles { p50, p99, p999, max } = low.quantiles(1_000).unwrap();
        assert_eq!(low.count(), 1_000);
        for (found, wanted) in [(p50, 500.0), (p99, 990.0), (p999, 999.0), (max, 1_000.0)] {
            assert!((found - wanted).abs() <= wanted / 500.0, "{found} instead of {wanted}");
        }
    }

    #[test]
    fn quantiles_of_nothing_are_none() {
        assert_eq!(Durations::default().quantiles(1), None);
    }

    #[test]
    fn duration_longer_than_an_hour_counts_as_one() {
        let mut durations = Durations::default();
        durations.record(u64::MAX);
        assert!(durations.quantiles(1_000_000_000).unwrap().max >= 3_600.0);
    }
}
