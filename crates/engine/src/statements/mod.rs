//! Statements of clients: what each means, kept by its text, and run on the path that is cheaper this time: as
//! a transaction of the partition that has the rows, or on a snapshot.
//!
//! Responsible for: binding a statement with its parameters (`bind`), keeping it for the next time (`cache`), what a
//! transaction runs of it (`live`), in which partition (`routing`), which path it takes (`path`), running it
//! (`run`), CALL (`call`), its result (`rows`), EXPLAIN (`explain`), transactions that are rolled back (`trial`).
//! Not responsible for: how rows are found and changed (`albireo_plpgsql::plan`), the analytical path (`query`,
//! `dml`).
//!
//! Which path:
//! - CALL, a query that calls routines, and a statement whose rows are all found by unique keys are transactions.
//! - Of any other over tables the rows that it is about to look at are estimated at each execution, inside the
//!   transaction that would run it: by its keys in the indexes, with the parameters' values, and by the sizes of
//!   tables. It goes on if that is cheaper than a snapshot. If it turns out to look at many more, it is
//!   begun again on the other path, and the next executions that are expected to read as much go there at once.
//! - The rest (functions in FROM, no table at all) is a query on a snapshot.
//! - The rows of a change on the other path are found by a query on a snapshot, and changed beside whoever uses the
//!   table, or with all partitions owned (`dml`), where the routines are called that it needs; what has no plan there is a
//!   transaction after all.
//!
//! Invariant: an entry is run only while the definitions are those that it was bound to.

mod bind;
mod cache;
mod call;
mod explain;
mod live;
mod path;
mod routing;
mod rows;
mod run;
mod sources;
#[cfg(test)]
mod tests;
mod trial;

pub(crate) use bind::{Bound, Meaning, Parsed};
pub(crate) use cache::{Entry, Statements};
pub(crate) use live::Live;
pub use path::ExecutionPath;
pub(crate) use run::{Explained, Judged, Kept, Ran, Wanted, is_refusal};
pub use trial::Trial;
