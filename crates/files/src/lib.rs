//! Text files into Arrow batches: CSV, PostgreSQL's text format, lines of JSON.
//!
//! Responsible for: bytes of a file as UTF-8 ([`open`]), records and fields of a text, fields as values of given
//! SQL types by columns ([`Decoder`]), finding out what is in a file ([`infer`]). Not responsible for: what the
//! rows are for (COPY is `engine`'s, queries over files are `olap`'s), opening files, Parquet but for whether a file
//! can be what it says ([`parquet`]).
//!
//! A text is cut into chunks of whole records ([`Chunker`]), one after another; chunks are decoded each on its own,
//! on as many threads as the caller has.
//!
//! **Invariant:** a field means what [`albireo_base::Value::parse`] says it means, whichever way it is read.
//! **Invariant:** nothing here panics on any input, and no input makes it hold more than one record of at most
//! 256 MiB beside what it was asked to produce.
#![forbid(unsafe_code)]

mod batch;
mod cells;
mod chunks;
mod column;
mod compress;
mod csv;
mod decode;
mod fast;
mod fault;
mod guard;
mod infer;
mod json;
pub mod parquet;
mod source;
mod specials;
mod text;

pub use batch::{Batch, Places};
pub use chunks::{Chunk, Chunker};
pub use column::{CellError, ColumnBuilder};
pub use compress::{Compression, Compressor};
pub use csv::{CsvDialect, Force};
pub use decode::{Decoded, Decoder, Field, TextFormat};
pub use fault::{Cause, Fault, excerpt, io_error, refuse_url};
pub use guard::{Damaged, guarded};
pub use infer::{CsvHints, Inferred, infer_csv, infer_json};
pub use json::{JsonDialect, write_json_string};
pub use source::{Encoding, open, without_compression};
pub use text::{TextDialect, write_text};
