//! The language of stored procedures, PL/pgSQL.
//!
//! Responsible for, so far: reading a procedure's body into a tree ([`parse`](mod@parse)) and the names
//! of conditions ([`conditions`]). Not responsible for: what names in a body mean, the types of
//! expressions, running anything; nothing calls this crate yet.
//!
//! **Invariant:** no text makes the parser panic or overflow its stack.
#![forbid(unsafe_code)]

pub mod conditions;
pub mod parse;

pub use parse::parse;
