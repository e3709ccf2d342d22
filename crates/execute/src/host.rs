//! What a query inside a routine needs from the routine that runs it.

use crate::Stop;
use crate::datum::Datum;
use crate::execution::LiveRows;
use crate::expr::{RoutineId, VariableId};

/// The running routine, as its queries see it.
pub trait Host {
    /// The rows of tables.
    fn live(&mut self) -> LiveRows<'_>;

    /// A variable's value.
    fn variable(&self, variable: VariableId) -> &Datum;

    /// The result of another routine.
    fn call(&mut self, routine: RoutineId, args: Vec<Datum>) -> Result<Datum, Stop>;

    /// The rows of another routine in FROM.
    ///
    /// # Errors
    /// The routine's.
    fn call_rows(&mut self, routine: RoutineId, args: Vec<Datum>) -> Result<Vec<Vec<Datum>>, Stop> {
        self.call(routine, args).map(|value| vec![vec![value]])
    }

    /// Accounts memory that the call holds on to until it ends.
    ///
    /// # Errors
    /// [`Stop::Fatal`] with 53200 beyond its limit.
    fn take_memory(&mut self, bytes: usize) -> Result<(), Stop>;
}
