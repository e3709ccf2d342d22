//! The 22 queries of CH-benCHmark over frozen data and over hot data.

use albireo::{Database, PreparedQuery, QueryResult, SqlError};

use super::pair::answer;
use super::report::{InTurns, QueryTimes};
use super::{Bench, Pair, wrong};
use crate::ch::queries::QUERIES;

impl Bench<'_> {
    /// Milliseconds of each query on one thread, in turns.
    pub(super) fn queries(&self, pair: &Pair) -> Result<Vec<QueryTimes>, SqlError> {
        let prepare = |db: &Database| -> Result<Vec<PreparedQuery>, SqlError> {
            QUERIES.iter().map(|query| db.prepare(query.sql)).collect()
        };
        let [hot, frozen] = pair.both();
        let (hot, frozen) = (prepare(hot)?, prepare(frozen)?);
        let mut all: Vec<QueryTimes> = QUERIES.iter().map(|query| QueryTimes::new(query.name)).collect();
        for turn in 0..=self.config.turns {
            for ((hot, frozen), times) in hot.iter().zip(&frozen).zip(&mut all) {
                if self.cancel.is_cancelled() {
                    return Ok(Vec::new());
                }
                // Whoever is second finds another state of the caches.
                let (hot, frozen) = match turn % 2 {
                    0 => {
                        let hot = self.asked(hot)?;
                        (hot, self.asked(frozen)?)
                    }
                    _ => {
                        let frozen = self.asked(frozen)?;
                        (self.asked(hot)?, frozen)
                    }
                };
                // The first time, nothing is kept from before.
                match turn {
                    0 if answer(&hot.1) != answer(&frozen.1) => {
                        return Err(wrong(format!(
                            "{} gives another answer over frozen data than over hot data",
                            times.query
                        )));
                    }
                    0 => times.first = InTurns::of(hot.0, frozen.0),
                    _ => times.again.push(hot.0, frozen.0),
                }
            }
        }
        Ok(all)
    }

    fn asked(&self, query: &PreparedQuery) -> Result<(f64, QueryResult), SqlError> {
        self.timed(|| query.query(&[]))
    }
}
