//! Runs statements and routines on the rows of a transaction.
//!
//! Responsible for: the transaction of a running statement ([`execution`]), queries and changes ([`query`]), bodies of
//! routines ([`body`]), what is wrong with a row in words ([`errors`]). Not responsible for: what they mean
//! (`semantics`, `plpgsql`), which access path serves (`plpgsql`), machine code (`compile`), when a transaction begins
//! and ends (`partition`).
//!
//! Invariant: a statement that fails leaves the transaction to its caller to roll back; a block with handlers rolls
//! back what it did itself.
#![forbid(unsafe_code)]

pub mod body;
pub mod errors;
pub mod execution;
pub mod host;
pub mod query;
pub mod tables;

use albireo_semantics::{Stop, datum, expr};

pub use body::{
    BeforeBlock, Executables, HostFrame, Limits, Machine, Outcome, RoutineCode, nothing, run, run_call,
    run_code, too_many, too_many_items, with_host, with_machine, with_parameters, wrong_arguments,
};
pub use execution::{Execution, Interrupts, LiveRows, Notice};
pub use host::Host;
