//! What was worked out beside a table takes its place in it.
//!
//! ```text
//! follow ──► work beside ──► take up changed rows, a few at a time ──► switch: all partitions owned
//!                            (one partition owned, for each few)       the last changed rows, then either ordinary
//!                                                                      changes, or new blocks for whole columns
//! ```
//!
//! I-1 A switch sees every row that was changed since its snapshot, or does nothing.
//! I-2 New blocks are in the redo log as the statement that made them before they are in the table; the log not taking
//! it, nothing was done.

use albireo_base::{PartitionId, Tid};
use albireo_redo::{Header, Kind};
use albireo_storage::Rewrite;

use crate::data::TableHandle;
use crate::feed::{ChangedRows, Follower};
use crate::journal::Receipt;
use crate::{Abort, Call, CallError, Exclusive, Partitions, Transaction};

/// What a switch does at its end, beside what its transaction changed.
pub struct NewColumns<'r> {
    /// New values, one for each partition of the table.
    pub rewrites: Vec<Rewrite>,
    /// Appends the statement to a record of the redo log.
    pub record: &'r dyn Fn(&mut Vec<u8>),
}

impl Partitions {
    /// Ends what was worked out beside a table: runs `work` as a transaction over all partitions, which is told the rows
    /// that were changed since they were taken last, and puts the new columns that it gives in place. `None`: it was not
    /// told of all changes, and nothing was done.
    ///
    /// # Errors
    /// As [`Partitions::crossing`].
    pub fn switch<'r, R>(
        &self,
        follower: Follower,
        call: &Call<'_>,
        work: impl FnOnce(&mut Transaction, Vec<(PartitionId, Tid)>) -> Result<(R, Option<NewColumns<'r>>), Abort>,
    ) -> Result<Option<R>, CallError> {
        let table = follower.table();
        let done = self.exclusively(|all| {
            let mut changed = Vec::new();
            for partition in follower.partitions() {
                let ChangedRows::These(tids) = follower.take(partition) else { return Ok(None) };
                changed.extend(tids.into_iter().map(|tid| (partition, tid)));
            }
            // What nobody sees any more need not be copied when it is written.
            drop(follower);
            let ((value, columns), receipt) = all.run(0, call, |tx| work(tx, changed))?;
            match columns {
                None => Ok(Some((value, receipt))),
                Some(columns) => Ok(Some((value, all.install(table, call, columns)?))),
            }
        });
        let Some((value, receipt)) = done? else { return Ok(None) };
        self.acknowledge(call.synchronous, receipt)?;
        Ok(Some(value))
    }
}

impl Exclusive<'_> {
    /// Puts new columns in place.
    fn install(
        &mut self,
        table: TableHandle,
        call: &Call<'_>,
        columns: NewColumns<'_>,
    ) -> Result<Receipt, CallError> {
        let NewColumns { rewrites, record } = columns;
        assert_eq!(self.tables(table).len(), rewrites.len(), "each partition has new values, or none");
        let receipt = self.log_statement(record)?;
        let first = rewrites.iter().zip(0..).find_map(|(part, at)| part.first_row().map(|tid| (at, tid)));
        if let Some((partition, tid)) = first {
            self.tell_of_many(table, PartitionId(partition), tid, call.name);
        }
        for (target, rewrite) in self.tables(table).into_iter().zip(rewrites) {
            target.install(rewrite);
        }
        Ok(receipt)
    }

    fn log_statement(&mut self, record: &dyn Fn(&mut Vec<u8>)) -> Result<Receipt, CallError> {
        let time_us = self.time_us();
        let Some(log) = self.log() else { return Ok(Receipt::default()) };
        let header = Header { kind: Kind::STATEMENT, time_us };
        log.append_crossing(header, |out| record(out)).map(Receipt::of_record).map_err(CallError::Log)
    }

    /// Tells all who have read a table, or follow it, that many of its rows were changed, this one among them.
    fn tell_of_many(&mut self, table: TableHandle, partition: PartitionId, tid: Tid, rival: &str) {
        let example = &self.tables(table)[partition.index()];
        let columns = example.identity_columns().to_vec();
        let row = columns.iter().map(|column| example.value(tid, *column)).collect::<Vec<_>>();
        for data in self.each_data() {
            data.readers.tell_all(table.id(), &columns, &row, rival);
            data.feeds.lose(table.id());
        }
    }
}
