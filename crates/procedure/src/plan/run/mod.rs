//! Queries and changes at work.
//!
//! Responsible for: the rows that expressions see (`frame`), finding rows (`scan`) by keys (`keys`), queries
//! (`select`), groups (`aggregate`), changes (`change`), how many rows they are about to read (`estimate`). Not
//! responsible for: what is to be done (`tree`).
//!
//! Rows of tables are addresses; their values are read when an expression asks for them.

mod aggregate;
mod change;
mod estimate;
mod frame;
mod keys;
mod scan;
mod select;

pub use change::{FoundRow, FoundRows};
pub use estimate::Estimate;
pub(super) use estimate::{Estimator, most_rows_of_change, most_rows_of_query};
pub(super) use frame::Running;
pub(crate) use scan::{Search, search_of};
