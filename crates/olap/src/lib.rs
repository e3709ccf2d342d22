//! The analytical engine: SQL queries over a snapshot, by Apache DataFusion.
//!
//! Responsible for: planning and running bound queries, join order, vectorised arithmetic and
//! aggregates, scans of snapshots, memory and time limits, files as tables. Not responsible for:
//! parsing (`sql`), what a query means (`semantics`), what a snapshot is (`storage`, `session`),
//! statements that write.
//!
//! **Invariant:** this is the only crate that names DataFusion's asynchronous interfaces; its own
//! are blocking calls and boxed futures, because a crate that awaits DataFusion compiles its
//! planner again.
//! **API boundary:** results are Arrow batches in memory of their own; no error but [`SqlError`]
//! leaves, and no panic.
//!
//! A query's way: [`Olap::prepare`] (its bound form as a plan, [`lower`]) → first [`Olap::run`]
//! ([`optimize`], with the snapshot's statistics; cached) → parameters put in → physical plan over
//! [`scan`]s → rows.
//!
//! [`SqlError`]: albireo_base::SqlError
#![forbid(unsafe_code)]

mod context;
mod engine;
mod errors;
mod explain;
mod files;
mod functions;
mod guard;
mod lower;
pub mod memory;
mod nodes;
mod optimize;
mod output;
mod pack;
mod physical;
mod pool;
mod prepare;
pub mod relation;
mod run;
mod scan;
mod spill;
mod spool;
mod types;
mod values;

pub use context::CancelToken;
pub use engine::{Olap, OlapConfig};
pub use files::{StatementFiles, write_parquet};
pub use output::OutputColumn;
pub use prepare::Prepared;
pub use run::{BoxedBatch, BoxedRun, LEAST_PLANNING_BYTES, QueryOutput, QueryStream, RunOptions};
pub use spill::SpillFiles;
pub use types::{result_type, sql_type};
