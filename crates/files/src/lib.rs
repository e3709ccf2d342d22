//! Text files into Arrow batches: CSV, PostgreSQL's text format, lines of JSON.
//!
//! Responsible for: cutting a file into records and fields, reading the fields as values of given SQL types
//! by columns. Not responsible for: what the rows are for (COPY is `engine`'s, queries over files are
//! `olap`'s), Parquet.
//!
//! **Invariant:** a field means what [`albireo_base::Value::parse`] says it means, whichever way it is read.
//! **Invariant:** nothing here panics on any input, and no input makes it hold more than one record of at most
//! 256 MiB beside what it was asked to produce.
#![forbid(unsafe_code)]

mod batch;
mod column;
mod fast;

pub use batch::{Batch, Places, arrow_type};
pub use column::{CellError, ColumnBuilder};
