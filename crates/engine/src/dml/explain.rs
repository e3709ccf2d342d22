//! EXPLAIN of changes whose rows a query finds.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_olap::CancelToken;
use albireo_olap::relation::Snapshot;
use albireo_semantics::query::tree::Change;
use albireo_sql::ast::Statement;

use super::Queried;
use crate::Database;
use crate::adapters::AddressedSnapshot;
use crate::routines::Limits;
use crate::settings::Settings;
use crate::statements::{Entry, Parsed};

impl Database {
    /// The plan of a change as [`Database::run_queried`] makes it, a line each.
    pub(crate) fn explain_queried(
        &self,
        statement: &Statement,
        text: &str,
        settings: &Settings,
        cancel: &CancelToken,
        limits: &Limits,
    ) -> Result<Vec<String>, SqlError> {
        let generation = self.inner.definitions.read();
        let entry = Entry::new(
            &self.library(),
            Parsed::Statement(statement),
            text,
            &[],
            *generation,
            Some(&self.sources()),
        );
        let bound = entry.bound.as_ref().map_err(Clone::clone)?;
        match Queried::new(self, bound, (text, &[]), settings, cancel, limits) {
            Ok(queried) => queried.explain(),
            Err(error) if error.state() == SqlState::FEATURE_NOT_SUPPORTED => {
                let live = entry.live(self.inner.partitions.count()).map_err(|_| error)?;
                Ok(live.explain(bound))
            }
            Err(error) => Err(error),
        }
    }
}

impl Queried<'_> {
    fn explain(&self) -> Result<Vec<String>, SqlError> {
        let session = self.database.inner.sessions.open(&self.scope()).map_err(crate::errors::session)?;
        let snapshot = session.snapshot().map_err(crate::errors::session)?;
        let snapshot: Arc<dyn Snapshot> = Arc::new(AddressedSnapshot(snapshot));
        let (verb, table) = (self.change.verb(), &self.change.table().name);
        let how = if let Change::Insert(_) = &*self.change { "computed" } else { "found" };
        let head = format!("transactional, all partitions (crossing): {verb} of {table}, rows {how} by:");
        let mut lines = vec![head];
        for query in &self.queries {
            let plan = self.database.inner.olap.explain(&query.prepared, &[], &snapshot, self.options())?;
            lines.extend(plan.lines().map(str::to_owned));
        }
        Ok(lines)
    }
}
