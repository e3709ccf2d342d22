//! How many rows the experiments have: few in tests, by default what takes minutes, and on request as many as in the paper.
//!
//! The paper says it of freezing at once (§5.1), updates in sequence (§5.2), observers (§5.3), instant compression (§5.4,
//! Table 1, of which the smaller half is here), run-length schemes (Fig. 13) and prefix scans (Fig. 14), and of TPC-C that it
//! has 12 warehouses, so that ORDER_LINE has 3.6 million rows to begin with.

use serde::Serialize;

use super::Bench;

/// Which numbers of rows the experiments have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sizes {
    /// Few: for tests.
    Few,
    /// Such that all experiments take minutes.
    #[default]
    Usual,
    /// The paper's, where it says them.
    Paper,
}

/// The numbers of rows of one experiment.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowCounts {
    pub(super) few: usize,
    pub(super) usual: usize,
    pub(super) paper: usize,
}

impl Bench<'_> {
    /// How many rows there are in this run.
    pub(super) fn count(&self, counts: RowCounts) -> usize {
        match self.config.sizes {
            Sizes::Few => counts.few,
            Sizes::Usual => counts.usual,
            Sizes::Paper => counts.paper,
        }
    }
}
