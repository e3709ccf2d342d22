//! Catalog, parser, binder and statement classes: from a statement's text to a plan that names
//! tables and columns by id.
//!
//! Responsible for: reading SQL with positions and PostgreSQL's wording of what is wrong
//! ([`parse`](mod@parse)), cutting scripts into statements ([`script`]), saying what kind of
//! statement one is ([`classify`](mod@classify)), the names and constraints of tables
//! ([`catalog`]), turning definitions into catalog changes ([`ddl`]), COPY ([`mod@copy`]), binding
//! queries ([`bind`]) that `semantics` does not bind.
//! Not responsible for: types of expressions and their evaluation beyond literals (`olap`), rows
//! (`storage`), running anything (`engine`).
//!
//! **Invariant:** nothing here reads a clock, a file or a row; every result depends on the text
//! and the [`catalog::Catalog`] alone.
#![forbid(unsafe_code)]

pub mod bind;
pub mod catalog;
pub mod classify;
pub mod copy;
pub mod ddl;
pub mod literal;
pub mod names;
pub mod parse;
pub mod script;
pub mod source;
pub mod types;
pub mod walk;

/// The syntax tree, as the parser we use defines it.
pub use sqlparser::ast;

pub use bind::{BoundQuery, OutputColumn, bind_query};
pub use catalog::{Catalog, ColumnDef, IndexDef, IndexKind, Layout, StoredCatalog, TableDef};
pub use classify::{StatementClass, classify};
pub use copy::{CopyPlan, plan_copy};
pub use ddl::{DdlChange, DdlPlan, plan_ddl};
pub use parse::{parse, parse_one};
pub use script::{ScriptStatement, is_complete, split};
