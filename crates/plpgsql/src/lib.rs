//! The language of stored procedures: PL/pgSQL and the SQL inside it, from text to a typed form.
//!
//! Responsible for: reading a body into a tree ([`parse`](mod@parse)) and the names of conditions
//! ([`conditions`]), CREATE, DROP and CALL ([`define`]), the access paths of queries and changes ([`plan`]), bodies
//! with types ([`body`]), where a routine can run ([`classify`]). Not responsible for: running them (`execute`,
//! `compile`), the catalog of routines (`engine`), analytical queries (`olap`).
//!
//! Invariants:
//! - I-1 No text makes the parser or binder panic or overflow its stack.
//! - I-2 What a bound routine does depends on its arguments, the tables, and the transaction's time
//!   alone.
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as albireo_plpgsql;

pub mod body;
pub mod classify;
pub mod conditions;
pub mod define;
#[cfg(test)]
#[path = "../tests/library/mod.rs"]
mod library;
pub mod parse;
pub mod plan;

use albireo_semantics::{Stop, datum, expr, types};
pub use parse::parse;
