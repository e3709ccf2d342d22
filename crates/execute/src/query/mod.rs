//! Queries and changes at work.
//!
//! Responsible for: the rows that expressions see (`frame`), finding rows (`scan`) by keys (`keys`), queries (`select`),
//! groups (`aggregate`), changes (`change`). Not responsible for: what is to be done (`tree`).
//!
//! Rows of tables are addresses; their values are read when an expression asks for them.

mod aggregate;
mod change;
mod frame;
mod keys;
mod scan;
mod select;
#[cfg(test)]
mod tests;
use frame::Running;
pub use scan::{Search, search_of};

use albireo_semantics::query::{ChangePlan, SelectPlan};

use crate::Stop;
use crate::datum::Datum;
use crate::host::Host;

/// The rows of a query, at most `limit`, all read before the first is given back.
///
/// # Errors
/// An expression's, or the store's.
pub fn select(plan: &SelectPlan, host: &mut dyn Host, limit: usize) -> Result<Vec<Vec<Datum>>, Stop> {
    Running::new(host).query(&plan.query, limit)
}

/// Makes a change: how many rows it concerned, and what RETURNING says of each.
///
/// # Errors
/// An expression's, or the store's; the caller rolls back.
pub fn change(plan: &ChangePlan, host: &mut dyn Host) -> Result<(u64, Vec<Vec<Datum>>), Stop> {
    Running::new(host).change(&plan.change)
}
