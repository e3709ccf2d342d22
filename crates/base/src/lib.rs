//! Ids, SQL types, values, SQLSTATE and errors: the words every other crate uses.
//!
//! Responsible for: the meaning of a SQL type and of one value of it (text form, coercion,
//! comparison), the identity of tables, columns, partitions and rows, and the error that
//! reaches a user. Not responsible for: where values lie in memory (`storage`), names and
//! constraints (`sql`).
//!
//! **Invariant:** this crate does no input or output and never reads a clock.
#![forbid(unsafe_code)]

mod arrow;
pub mod budget;
mod cancel;
pub mod duration;
pub mod error;
pub mod ids;
pub mod packed;
pub mod progress;
pub mod text;
pub mod types;
pub mod value;

pub use arrow::arrow_type;
pub use cancel::CancelFlag;
pub use error::{SqlError, SqlState};
pub use ids::{ColumnId, Epoch, IndexId, PartitionId, TableId, Tid};
pub use progress::StatementProgress;
pub use types::SqlType;
pub use value::{Decimal, DecimalError, Interval, Value, ValueRef};
