//! Bodies of routines: variables, control flow, errors; bound from their tree and run.
//!
//! Responsible for: signatures (`signature`), which routine a call means (`resolve`), typed bodies
//! (`tree`, made by `bind`), running them (`run`), calls from outside (`invoke`). Not responsible for:
//! expressions (`expr`), queries (`plan`), keeping routines (`engine`).

mod bind;
mod invoke;
mod outside;
mod place;
mod resolve;
mod run;
mod signature;
#[cfg(test)]
mod tests;
mod tree;

pub use bind::{BindError, Outside, bind};
pub use invoke::{BoundCall, bind_call};
pub use outside::NoNames;
pub use place::{Named, Place, RowPlace, Types};
pub use resolve::{Actual, Resolved, Routines, actuals, name_of, resolve};
pub use run::{HostFrame, Limits, Outcome, run, with_host, with_parameters};
pub use signature::{Default, Formal, ResultShape, Signature, find_removed};
pub use tree::{
    Assignment, Block, Call, Case, Code, Condition, FOUND, Fit, Handler, Initial, Into, Jump, Loop, LoopKind,
    Query, Raise, Routine, RowFit, Sink, Statement, Target, Variable,
};
