//! Stored procedures written in Rust.

use albireo_base::PartitionId;

use crate::{Abort, Transaction};

/// Where a call must run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// In the partition of rows whose partitioning column holds this whole number.
    Key(i64),
    /// In this partition.
    Partition(PartitionId),
    /// Over all partitions, alone.
    Crossing,
}

/// A transaction as a function of its arguments.
///
/// It must be deterministic in its arguments and the data: it may be run several times, when it finds that it crosses
/// partitions.
pub trait Procedure: Send + Sync + 'static {
    /// Its arguments.
    type Args;
    /// Its result.
    type Output;

    /// Its name, for errors and statistics.
    fn name(&self) -> &str;

    /// Where a call with these arguments runs. A wrong answer is slow but not wrong: a transaction
    /// that reaches for another partition is rolled back and run over both.
    fn route(&self, args: &Self::Args) -> Route;

    /// The transaction. An `Err` rolls everything back.
    fn run(&self, tx: &mut Transaction, args: &Self::Args) -> Result<Self::Output, Abort>;
}
