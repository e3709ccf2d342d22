//! Bodies of routines: variables, control flow, errors; bound from their tree.
//!
//! Responsible for: signatures (`signature`), which routine a call means (`resolve`), typed bodies
//! (`tree`, made by `bind`), running them (`run`), CALL from outside (`invoke`), statements of clients as
//! routines (`anonymous`). Not responsible for:
//! expressions (`expr`), queries (`plan`), keeping routines (`engine`).

mod anonymous;
mod bind;
mod invoke;
mod place;
mod resolve;
mod signature;
mod tree;

pub use anonymous::{routine_of_change, routine_of_select};
pub use bind::{BindError, Outside, bind};
pub use invoke::{BoundCall, bind_call};
pub use place::{Named, Place, RowPlace, Types};
pub use resolve::{Resolved, Routines, name_of, resolve};
pub use signature::{Default, Formal, ResultShape, Signature, find_explained, find_removed};
pub use tree::{
    Assignment, Block, Call, Case, Code, Condition, FOUND, Fit, Handler, Initial, Into, Jump, Loop, LoopKind,
    Query, Raise, Routine, RowFit, Sink, Statement, Target, Variable,
};
