//! Statements of clients on the road of procedures: INSERT, UPDATE and DELETE, and queries that indexes
//! answer, as transactions of the partition that has the rows.
//!
//! Responsible for: binding a statement with its parameters (`bind`), which road it takes (`road`), in which
//! partition it runs (`home`), running it (`run`), its result (`rows`), keeping it for the next time
//! (`cache`), EXPLAIN (`explain`), transactions that are rolled back (`trial`). Not responsible for: how it finds and changes rows
//! (`albireo_procedure::plan`), the analytical road (`query`, `dml`).
//!
//! Which road:
//! - INSERT of VALUES, and any change whose rows are all found by indexes, is a transaction here. Another
//!   change is found by a query and made under the barrier (`dml`), which reads many rows faster; what
//!   has no plan there runs here after all.
//! - A query whose tables are all reached by an index, with at least its first column bound by equality, or
//!   at the end that `min` or `max` asks for, reads the live rows here. If it turns out to read many, it is
//!   begun again on the analytical road. All other queries read a snapshot.
//!
//! Invariant: a kept statement is run only while the definitions are those that it was bound to.

mod bind;
mod cache;
mod explain;
mod home;
mod road;
mod rows;
mod run;
#[cfg(test)]
mod tests;
mod trial;

pub(crate) use bind::{Bound, Logical};
pub(crate) use cache::Statements;
pub(crate) use run::{Ran, Wanted};
pub use trial::Trial;
