//! One column of one chunk, encoded: written once, then read at random, decoded and searched.
//!
//! Responsible for: which form a column gets and its bytes ([`Encoder`]), single values, many values
//! ([`Selection`]), the rows that pass a test ([`Test`]), what operators take instead of rows (dictionary, runs,
//! constant, sums), and the form in bytes with its checks ([`Column::from_parts`]). Not responsible for: where bytes
//! lie ([`Section`]), which rows are alive, checksums, what kinds are in SQL.
//!
//! ```text
//! Source --Encoder--> Column<Vec<u8>> --map_sections--> Column<S> --header, sections--> bytes
//!                                                           ^------from_parts, checked----'
//! ```
//!
//! | form | value of a row | point read |
//! |---|---|---|
//! | constant | in the header | at once |
//! | integers | base and a code of 1, 2, 4 or 8 bytes, added | one load |
//! | as they are | floats, long integers, UUIDs | one load |
//! | texts | of one length, or from offset to offset | one load, or two |
//! | packed texts | of 64 different bytes at most; a code of 1 to 6 bits for each byte | a table of bytes by codes |
//! | compressed texts | up to 255 frequent strings of 1 to 8 bytes; a code of one byte for each | a table of strings by codes |
//! | dictionary | a code of 1 or 2 bytes; the values ascend, so a range of values is a range of codes | one load more |
//! | runs | by the last row of each run; each with a value or a code | a binary search more |
//!
//! Texts of a dictionary may be lent by somebody who lends them to other columns too ([`TextList`]).
//!
//! I-1 Each value that was alive and not NULL comes back bit for bit, whichever form was chosen. I-2 No bytes make
//! reading panic: they are refused, or they are a column. I-3 What a column says of many rows is what it says of each.
//! (`tests/column`)
//!
//! Runs have positions instead of lengths, so that a row is found by a binary search, and dictionaries are in order, so
//! that tests of ranges run on codes (Funke, Kemper and Neumann, PVLDB 5(11), 2012, §3.4, §4.2). Theirs is a dictionary
//! of the relation, whose codes are not in order; here each column has its own codes, and the relation the texts.
//!
//! Units: `bytes` are bytes, `rows` are rows of the chunk, dead ones too; 65,536 at most.
#![forbid(unsafe_code)]

mod bits;
mod blocks;
mod check;
mod column;
mod compressed;
mod decode;
mod encode;
mod error;
mod groups;
mod header;
mod layers;
mod lending;
mod lent;
mod numbers;
mod offsets;
mod packed;
mod run_sums;
mod scalar;
mod section;
mod select;
mod source;
mod views;

pub use column::{Column, Form, NullForm, StoreForm, Summary};
pub use compressed::compress_texts;
pub use decode::{Float, Selection};
pub use encode::{Choose, Encoder};
pub use error::{FromPartsError, Malformed};
pub use groups::Groups;
pub use header::VERSION;
pub use lent::TextList;
pub use numbers::Number;
pub use run_sums::MaskedRuns;
pub use scalar::{Kind, Scalar, ScalarRef};
pub use section::{Section, SectionName};
pub use select::{Selected, Test};
pub use source::{ROWS, Source, SourceValues};
pub use views::{DictionaryView, Sum};
