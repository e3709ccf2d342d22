//! Whether a Parquet file can be what it says it is.
//!
//! Responsible for: footers, page indexes and headers of pages that claim no more than there can be. Not responsible
//! for: reading Parquet, which the `parquet` crate does (COPY in `engine`, queries in `olap`).
//!
//! The decoders reserve memory by what a file claims (values of a page, its size when decompressed, elements of a
//! list) before they look whether it is there. A damaged or crafted file could so ask for more than the machine has,
//! which ends the process. What is checked here costs a few microseconds a page.
//!
//! **Invariant:** nothing here panics on any input or allocates more than in proportion to what it was given.

mod beginning;
mod deltas;
mod footer;
mod pages;
#[cfg(test)]
mod tests;
mod thrift;

pub use footer::{
    TAIL_BYTES, check_column_index, check_footer, check_offset_index, check_row_groups, footer_range,
};
pub use pages::Pages;

/// More bytes nothing may have that is reserved at once, as a page and a value in it.
const MOST_BYTES: u64 = 1 << 30;

/// A file cannot be what it says it is.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Implausible {
    reason: String,
}

fn implausible(reason: &str) -> Implausible {
    Implausible { reason: reason.to_owned() }
}
