//! Which partition a call goes to.
//!
//! Responsible for: the route that follows from a class (`albireo_plpgsql::classify`) and the number of
//! partitions. Not responsible for: what is done when a call reaches another partition nevertheless
//! (`albireo_partition`, which runs it again over all).

use albireo_base::{PartitionId, SqlError};
use albireo_compile::ArgumentRef;
use albireo_partition::Route;
use albireo_plpgsql::body::Signature;
use albireo_plpgsql::classify::{Destination, Key, Placing};
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::RoutineId;

use super::library::Library;
use crate::Database;

const FIRST: Route = Route::Partition(PartitionId(0));

impl Database {
    /// Where a call of a routine goes with these arguments.
    ///
    /// # Errors
    /// The one that decides cannot be converted to its parameter's type.
    pub(super) fn route_of_routine(
        &self,
        library: &Library,
        id: RoutineId,
        signature: &Signature,
        args: &[ArgumentRef<'_>],
    ) -> Result<Route, SqlError> {
        if self.inner.partitions.count() == 1 {
            return Ok(FIRST);
        }
        // What cannot be bound fails wherever it runs.
        let Some(class) = library.class(id) else { return Ok(FIRST) };
        let mut values = Vec::new();
        if let Some(Placing { key: Key::Argument(decides), .. }) = class.routing.place() {
            for (n, (formal, argument)) in signature.inputs().zip(args).take(decides + 1).enumerate() {
                values.push(if n == *decides { argument.datum(&formal.place)? } else { Datum::NULL });
            }
        }
        Ok(self.route(library, class.routing.destination(&values)))
    }

    fn route(&self, library: &Library, destination: Destination) -> Route {
        let partitions = self.inner.partitions.count();
        match destination {
            Destination::Any => {
                Route::Partition(PartitionId((library.turn() % usize::from(partitions)) as u16))
            }
            Destination::Value(value) => {
                Route::Partition(PartitionId(albireo_storage::partition_of(&value, partitions)))
            }
            Destination::All => Route::Crossing,
        }
    }
}
