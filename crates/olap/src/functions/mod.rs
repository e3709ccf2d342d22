//! SQL functions and operators that DataFusion does not compute as PostgreSQL does.
//!
//! **Invariant:** no function here returns a wrong number: what does not fit its result type is
//! an error.

pub(crate) mod arithmetic;
pub(crate) mod compare;
pub(crate) mod decimal;
mod distinct;
pub(crate) mod float;
pub(crate) mod now;
pub(crate) mod row_by_row;
pub(crate) mod sums;
pub(crate) mod temporal;
