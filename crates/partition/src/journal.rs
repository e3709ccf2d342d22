//! What transactions leave in the redo log, and what those who hear of them wait for.
//!
//! Responsible for: one record for each transaction that changed something, appended while its partition is
//! owned, so that records of a partition stand in the order of its transactions; receipts for what only
//! reads. Not responsible for: the log itself (`albireo_redo`), doing records again
//! ([`crate::Transaction::apply`]).
//!
//! I-1 A transaction is final only once its record is in the log's memory: if the log does not take it, it
//! is rolled back. I-2 Nobody is told of a transaction, neither its caller nor a reader, before a crash
//! cannot take it back; but callers who ask for that (`synchronous` is false), or whose transaction does,
//! readers while the log has no room, and all once it has failed for good. I-3 What the log keeps of a full disk goes to transactions that
//! only delete, and to changes of definitions, which are few and short and drop tables too.

use albireo_base::TableId;
use albireo_redo::{Header, Kind, Log, LogError, Ticket};
use albireo_storage::{SHARED_SITE, Table, encode_writes};

use crate::data::PartitionData;
use crate::{Call, CallError, Transaction};

/// What to wait for before anybody is told of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Receipt {
    ticket: Ticket,
    /// It is the transaction's own record, not one of those before it.
    wrote: bool,
    /// Whether the transaction itself asked for its caller to wait, or not to.
    asked: Option<bool>,
}

impl Receipt {
    /// Of a record of its own.
    pub(crate) fn of_record(ticket: Ticket) -> Self {
        Self { ticket, wrote: true, asked: None }
    }

    /// Of a reader who may have seen what has this ticket.
    pub(crate) fn of_reader(ticket: Ticket) -> Self {
        Self { ticket, wrote: false, asked: None }
    }

    /// The same, of a transaction that itself asked for its caller to wait, or not to.
    pub(crate) fn asked(self, asked: Option<bool>) -> Self {
        Self { asked, ..self }
    }

    /// Whether the caller is to wait: as the transaction asked, else as the call did, else as is usual.
    #[inline]
    pub(crate) fn is_awaited(self, called: Option<bool>, usual: bool) -> bool {
        self.asked.or(called).unwrap_or(usual)
    }

    /// Whether a crash cannot take back what it is for.
    #[inline]
    pub fn is_durable(self, log: &Log) -> bool {
        log.is_durable(self.ticket)
    }

    /// Waits for that. Once the log has failed, nothing waits any more: readers go on, and also while it has
    /// no room.
    ///
    /// # Errors
    /// The log failed, and it is for a change.
    #[inline]
    pub fn wait(self, log: &Log) -> Result<(), CallError> {
        if self.is_durable(log) { Ok(()) } else { self.wait_for(log) }
    }

    #[inline(never)]
    fn wait_for(self, log: &Log) -> Result<(), CallError> {
        match self.wrote {
            true => log.wait(self.ticket).map_err(CallError::Unacknowledged),
            false => {
                // Queries go on; what they tell of then, a crash could take back.
                let _ = log.wait_for_reader(self.ticket);
                Ok(())
            }
        }
    }
}

/// Bytes that wait for the disk above which callers wait for it too before they begin.
const MOST_PENDING_BYTES: u64 = 256 << 20;

impl Transaction {
    /// Appends the record of the transaction, which is about to commit; of one that changed nothing, the receipt
    /// for what it may have read.
    pub(crate) fn append_record(&mut self, log: &Log, call: &Call<'_>) -> Result<Receipt, LogError> {
        let time_us = self.now();
        let Self { sites, undo, writes, clock, crossing, .. } = self;
        let sites: &[PartitionData] = sites;
        if undo.is_empty() {
            return Ok(Receipt::of_reader(match *crossing {
                true => newest(log),
                false => log.last_ticket(sites[0].id.index()),
            }));
        }
        debug_assert!(*crossing || sites.len() == 1, "records in a lane are of one partition");
        let lane = (!*crossing).then(|| sites[0].id.index());
        let frees = log.is_short() && undo.only_deletes();
        let command = call.command.filter(|command| undo.len() > command.rows_up_to);
        let kind = command.map_or(Kind::WRITE, |command| command.kind);
        let mut encode = |out: &mut Vec<u8>| match command {
            Some(command) => (command.write)(undo.rows_moved(), out),
            None => {
                writes.collect(undo);
                // A lane is of one partition; else the record names them.
                let named = |site: u16| if lane.is_some() { site } else { sites[usize::from(site)].id.0 };
                encode_writes(writes, undo, named, |site, table| table_of(sites, site, TableId(table)), out);
            }
        };
        let encode = |out: &mut Vec<u8>| match call.measure {
            None => encode(out),
            Some(measure) => {
                let (start, before) = (clock.now(), out.len());
                encode(out);
                measure.changes.set(undo.len() as u64);
                measure.record_bytes.set((out.len() - before) as u64);
                measure.record_ns.set(clock.now() - start);
            }
        };
        let header = Header { kind, time_us };
        let ticket = match lane {
            lane if frees => log.append_freeing(lane, header, encode),
            None => log.append_crossing(header, encode),
            Some(lane) => log.append(lane, header, encode),
        };
        ticket.map(Receipt::of_record)
    }
}

/// The ticket of the newest record of any partition.
pub(crate) fn newest(log: &Log) -> Ticket {
    (0..log.lanes()).map(|lane| log.last_ticket(lane)).max().unwrap_or_default()
}

/// Waits while far more is waiting for the disk than it writes in a moment.
#[inline]
pub(crate) fn wait_for_room(log: &Log) {
    if log.pending_bytes() > MOST_PENDING_BYTES {
        wait_for_some(log);
    }
}

#[cold]
fn wait_for_some(log: &Log) {
    while log.pending_bytes() > MOST_PENDING_BYTES {
        // A log that is full or has failed refuses the transaction later, and says why.
        if log.check().is_err() || log.wait(Ticket(log.durable() + 1)).is_err() {
            return;
        }
    }
}

fn table_of(sites: &[PartitionData], site: u16, table: TableId) -> &Table {
    let tables = match site {
        SHARED_SITE => &sites[0].shared.as_ref().expect("a writer of shared tables owns them").tables,
        site => &sites[usize::from(site)].tables,
    };
    tables[table.index()].as_ref().expect("a table is not dropped inside a transaction")
}
