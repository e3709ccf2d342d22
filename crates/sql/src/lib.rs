//! Catalog, parser, definitions and statement classes: a statement's text as a tree, and what the names in it
//! may mean.
//!
//! Responsible for: reading SQL with positions and PostgreSQL's wording of what is wrong
//! ([`parse`](mod@parse)), cutting scripts into statements ([`script`]), saying what kind of
//! statement one is ([`classify`](mod@classify)), the names and constraints of tables
//! ([`catalog`]), turning definitions into catalog changes ([`ddl`]), COPY ([`mod@copy`]).
//! Not responsible for: what queries and expressions mean (`semantics`), rows (`storage`), running
//! anything (`engine`).
//!
//! **Invariant:** nothing here reads a clock, a file or a row; every result depends on the text
//! and the [`catalog::Catalog`] alone.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod classify;
pub mod copy;
pub mod ddl;
mod label;
pub mod names;
pub mod parse;
mod row_locks;
pub mod script;
pub mod source;
pub mod types;
pub mod walk;

/// The syntax tree, as the parser we use defines it.
pub use sqlparser::ast;

pub use catalog::{
    Catalog, ColumnDef, DdlChange, Freeze, IndexDef, IndexKeys, IndexKind, Layout, StoredCatalog, TableDef,
};
pub use classify::{StatementClass, classify};
pub use copy::{CopyPlan, plan_copy};
pub use ddl::{DdlPlan, plan_ddl};
pub use label::column_label;
pub use parse::{parse, parse_one};
pub use row_locks::RowLocks;
pub use script::{ScriptStatement, is_complete, split};
