//! Which partition a call goes to.
//!
//! Responsible for: the route that follows from a class (`albireo_procedure::classify`) and the number of
//! partitions. Not responsible for: what is done when a call reaches another partition nevertheless
//! (`albireo_partition`, which runs it again over all).

use std::sync::Arc;

use albireo_base::PartitionId;
use albireo_partition::Route;
use albireo_procedure::classify::{Classes, Destination, Home};
use albireo_procedure::datum::Datum;
use albireo_procedure::expr::RoutineId;

use super::library::Library;
use crate::Database;

const FIRST: Route = Route::Partition(PartitionId(0));

impl Database {
    /// Where a call of a routine goes whose input parameters have these values.
    pub(super) fn route_of_routine(&self, library: &Library, id: RoutineId, args: &[Datum]) -> Route {
        if self.inner.partitions.count() == 1 {
            return FIRST;
        }
        // What cannot be bound fails wherever it runs.
        library.class(id).map_or(FIRST, |class| self.route(library, class.home.destination(args)))
    }

    /// Where a statement goes that calls routines; `home` finds where it runs.
    pub(super) fn route_of_statement(
        &self,
        library: &Library,
        home: impl FnOnce(Classes<'_>) -> Home,
    ) -> Route {
        if self.inner.partitions.count() == 1 {
            return FIRST;
        }
        let home = home(&|id| library.class(id).map(Arc::clone));
        self.route(library, home.destination(&[]))
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
