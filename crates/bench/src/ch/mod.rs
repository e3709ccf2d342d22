//! CH-benCHmark: what it adds to TPC-C's schema, and its queries.

pub mod oracle;
pub mod population;
pub mod queries;
