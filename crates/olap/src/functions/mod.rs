//! SQL functions and operators that DataFusion does not compute as PostgreSQL does.
//!
//! **Invariant:** no function here returns a wrong number: what does not fit its result type is
//! an error.

use std::sync::Arc;

use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::AggregateUDF;

pub(crate) mod arithmetic;
pub(crate) mod decimal;
mod distinct;
pub(crate) mod round;
pub(crate) mod sums;

/// Puts our functions over DataFusion's of the same name.
pub(crate) fn register(state: &mut SessionState) {
    let aggregates = [sums::Kind::Sum, sums::Kind::Average];
    for kind in aggregates {
        let function = AggregateUDF::new_from_impl(sums::ExactAggregate::new(kind));
        // Registration of a function under a name that is not an alias cannot fail.
        let replaced = state.register_udaf(Arc::new(function));
        debug_assert!(replaced.is_ok());
    }
    let replaced = state.register_udf(arithmetic::function(arithmetic::Operation::Remainder));
    debug_assert!(replaced.is_ok());
}
