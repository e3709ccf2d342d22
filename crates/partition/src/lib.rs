//! Partitions and the serial transactions that run on them.
//!
//! Responsible for: one owner at a time for each partition, transactions one after another with
//! rollback, the barrier for transactions and snapshots over all partitions, executor threads with
//! bounded queues, the query sessions that share a snapshot (`session`). Not responsible for: rows (`storage`), SQL
//! (`sql`), queries (`olap`).
//!
//! A partition's owner holds its *token*. Its executor thread takes the token while there is work
//! in its queue; a caller that finds the partition free takes it and runs its transaction on its
//! own thread, which saves a thread switch. A crossing transaction and a snapshot take all tokens; a snapshot is
//! taken by an executor that waits for it, rather than by whoever asked (`snapshot`). A transaction that reaches for a few
//! partitions takes the tokens of those (`several`).
//!
//! ```text
//!            a caller or the executor enters            work done, nobody waits
//!   FREE ------------------------------------> OWNED ---------------------------> FREE
//!    ^                                           | between two transactions,
//!    | the barrier is lifted                     | when a crossing one waits
//!    `---------------- PARKED <------------------'
//! ```
//!
//! Invariants:
//! - I-1 A partition's data is touched only by the holder of its token.
//! - I-2 Tokens change hands only between two transactions.
//! - I-3 A transaction that fails, by error or by panic, leaves no trace.
//! - I-4 Whoever wants several tokens takes them in order, so no two wait for each other.
//!
//! Paper: Kemper and Neumann, HyPer, 2010, §3.1, §4.3 (serial execution, partitioned and crossing
//! transactions).
#![forbid(unsafe_code)]

mod arrivals;
mod bulk;
mod call;
mod data;
mod elsewhere;
mod error;
mod exclusive;
mod executor;
mod feed;
mod follow;
mod freeze;
mod handle;
mod index_build;
mod journal;
mod locks;
mod marks;
mod pace;
mod parked;
mod partitions;
mod parts;
mod procedure;
mod readers;
mod room;
mod run;
mod session;
mod several;
mod snapshot;
mod switch;
mod token;
mod transaction;

pub use arrivals::{Alone, ArrivalError, Bringing, Turn};
pub use bulk::BulkInsert;
pub use call::{Call, Command, Measure};
pub use error::{Abort, CallError, SubmitError};
pub use exclusive::Exclusive;
pub use executor::{Executor, Pending, Step};
pub use follow::{ChangedRows, Follower};
pub use freeze::MoveOut;
pub use handle::TableHandle;
pub use index_build::{BuiltIndex, IndexBuildError};
pub use journal::Receipt;
pub use locks::{Held, Waiters, Waiting};
pub use marks::{LockMode, LockOwner};
pub use pace::Pace;
pub use parked::{Parked, PartRecord, PartWritten};
pub use partitions::{MemoryUse, PartitionCounters, Partitions, PartitionsConfig};
pub use procedure::{Procedure, Route};
pub use readers::{Conflict, Reader};
pub use room::Evictor;
pub use session::{QuerySession, SessionError, Sessions, SnapshotStatistics};
pub use switch::{Change, Switch, Switched};
pub use transaction::{Site, Transaction};
