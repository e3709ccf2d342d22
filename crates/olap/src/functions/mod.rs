//! SQL functions and operators that DataFusion does not compute as PostgreSQL does.
//!
//! **Invariant:** no function here returns a wrong number: what does not fit its result type is
//! an error.

use std::sync::Arc;

use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::AggregateUDF;

pub(crate) mod arithmetic;
pub(crate) mod casts;
pub(crate) mod conditional;
pub(crate) mod decimal;
mod distinct;
pub(crate) mod intervals;
mod mode;
mod now;
pub(crate) mod numbers;
mod numerals;
mod real;
pub(crate) mod round;
pub(crate) mod rowwise;
pub(crate) mod strings;
pub(crate) mod sums;
mod templates;
pub(crate) mod temporal;
mod variance;

/// Puts our functions over DataFusion's of the same name.
pub(crate) fn register(state: &mut SessionState) {
    let aggregates = [sums::Kind::Sum, sums::Kind::Average];
    for kind in aggregates {
        let function = AggregateUDF::new_from_impl(sums::ExactAggregate::new(kind));
        // Registration of a function under a name that is not an alias cannot fail.
        let replaced = state.register_udaf(Arc::new(function));
        debug_assert!(replaced.is_ok());
    }
    for function in variance::functions().into_iter().chain([mode::function()]) {
        let replaced = state.register_udaf(function);
        debug_assert!(replaced.is_ok());
    }
    let every = datafusion::functions_aggregate::bool_and_or::bool_and_udaf();
    let every = every.as_ref().clone().with_aliases(["every"]);
    let replaced = state.register_udaf(Arc::new(every));
    debug_assert!(replaced.is_ok());
    let functions = [
        vec![arithmetic::function(arithmetic::Operation::Remainder)],
        conditional::functions(),
        numbers::row_functions(),
        strings::row_functions(),
        templates::row_functions(),
        temporal::row_functions(),
        vec![now::function()],
    ];
    for function in functions.into_iter().flatten() {
        let replaced = state.register_udf(function);
        debug_assert!(replaced.is_ok());
    }
}
