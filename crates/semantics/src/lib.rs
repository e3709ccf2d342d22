//! The bound form of SQL: what a statement means, whichever way it runs.
//!
//! Responsible for: the types of values ([`types`]), expressions with their types and scalar kernels
//! ([`expr`]), queries and changes with every name resolved ([`query`]), the expressions of a table
//! ([`table`]). Not responsible for: access paths and running on live rows (`procedure`), plans over snapshots
//! (`olap`).
//!
//! Invariants:
//! - I-1 No text makes the binder panic or overflow its stack.
//! - I-2 What a bound expression gives depends on the values it is given and the transaction's time alone.
#![forbid(unsafe_code)]

pub mod datum;
pub mod expr;
pub mod query;
mod stop;
pub mod table;
pub mod types;

pub use stop::Stop;
