//! The language of stored procedures: PL/pgSQL and the SQL inside it, from text to a typed
//! representation and its interpreter.
//!
//! Responsible for: reading a body into a tree ([`parse`](mod@parse)) and the names of conditions
//! ([`conditions`]), the access paths of queries and changes ([`plan`]), bodies ([`body`]), where a routine can run
//! ([`classify`]), the transaction it all happens in ([`execution`]). Not responsible for: when it begins and ends
//! (`partition`), the catalog of routines (`engine`), analytical queries (`olap`).
//!
//! Invariants:
//! - I-1 No text makes the parser or binder panic or overflow its stack.
//! - I-2 What a bound routine does depends on its arguments, the tables, and the transaction's time
//!   alone.
#![deny(unsafe_code)]

#[cfg(test)]
extern crate self as albireo_procedure;

pub mod body;
pub mod classify;
pub mod compile;
pub mod conditions;
pub mod define;
pub mod errors;
pub mod execution;
pub mod host;
#[cfg(test)]
#[path = "../tests/memory/mod.rs"]
mod memory;
pub mod parse;
pub mod plan;
pub mod tables;

pub use albireo_semantics::{Stop, datum, expr, types};
pub use parse::parse;
