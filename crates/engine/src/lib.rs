//! Albireo, embedded: a main-memory SQL database in your process, in which transactions and
//! analytics run on the same live data.
//!
//! ```
//! use albireo::{Config, Database, Value};
//!
//! let db = Database::in_memory(Config::default())?;
//! db.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, cents BIGINT)")?;
//! db.execute("INSERT INTO account VALUES (1, 'Ada', 1200), (2, 'Kurt', 3400)")?;
//! let result = db.query("SELECT sum(cents) FROM account WHERE id <= $1", &[Value::Integer(2)])?;
//! assert_eq!(result.value(0, 0).to_string(), "4600");
//! # Ok::<(), albireo::SqlError>(())
//! ```
//!
//! Responsible for: one database as a program sees it: SQL statements, prepared queries, native
//! procedures, query sessions, settings and limits. Not responsible for: the wire protocol
//! (`server`), how any of it works (the crates below).
//!
//! **API boundary:** every error is a [`SqlError`] with a SQLSTATE; the table that chooses it is
//! `errors.rs`. Nothing here panics on bad input.
//!
//! **Invariant:** no global state: any number of databases in one process.
#![forbid(unsafe_code)]

mod adapters;
mod arrays;
mod checks;
mod cold;
mod config;
mod connection;
mod copy;
mod database;
mod ddl;
mod definitions;
mod dml;
mod durability;
mod errors;
mod interactive;
mod locks;
mod meanwhile;
mod outcome;
mod procedures;
mod query;
mod routines;
mod settings;
mod statements;
mod stored;

pub use albireo_base::progress;
pub use albireo_base::{Decimal, SqlError, SqlState, SqlType, Value, ValueRef};
pub use albireo_olap::{CancelToken, SpillFiles};
pub use albireo_partition::{Abort, Procedure, Receipt, Route, Site, TableHandle, Transaction};
pub use albireo_redo::{Log, Statistics as LogStatistics};
pub use albireo_sql::{Catalog, TableDef, is_complete, split};
pub use albireo_storage::{
    Asked, BudgetPolicy, Col, FixedRow, HandleError, IndexRef, RowShape, ShapeRow, ShapeValue, ShortKey,
    Table, TextCol, partition_of,
};
pub use cold::{Eviction, FreezeReport, FreezeSchedule};
pub use config::Config;
pub use connection::Connection;
pub(crate) use database::WeakDatabase;
pub use database::{Database, MemoryReport, Statistics};
pub use durability::{
    ArchiveCheck, ArchiveFault, ArchiveInspector, ArchiveProgress, ArchiveReport, ArchiveStatus, Backup,
    BackupFault, BackupFile, BackupManifest, BackupOptions, BackupProgress, BackupReport, BackupStep,
    CheckpointOptions, CheckpointSchedule, CopyReport, DirectoryKind, Durability, LogCompleteness,
    LogContent, LogEntry, LogFault, LogInspector, LogRows, LogRowsIter, LogSummary, LogTable, LogWrite,
    RecoveryPhase, RecoveryProgress, RecoveryReport, RecoveryTarget, RestoreOptions, RestorePointsGone,
    RestoreReport, RowChange, gone_text, restore,
};
pub use outcome::{Column, Outcome, QueryResult};
pub use procedures::{ProcedureHandle, Procedures, Repeatable};
pub use query::{PreparedQuery, ReadOnlySession};
pub use routines::{Argument, ArgumentRef, Items, LogRecords, Output, Reply, RoutineHandle, RoutineSummary};
#[doc(hidden)]
pub use statements::ExecutionPath;
pub use statements::Trial;
