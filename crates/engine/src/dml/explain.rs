//! EXPLAIN of statements that change rows: where they run, and the query that finds the rows.

use std::sync::Arc;

use albireo_base::{PartitionId, SqlError};
use albireo_olap::relation::Snapshot;
use albireo_olap::{CancelToken, Prepared};
use albireo_partition::Route;
use albireo_sql::ast::Statement;
use albireo_sql::dml::{self, InsertSource};

use super::Run;
use crate::Database;
use crate::adapters::{AddressedSnapshot, HIDDEN, scope_of};
use crate::query::options;
use crate::settings::Settings;

impl Database {
    /// The plan of an INSERT, UPDATE or DELETE, a line each; nothing changes.
    pub(crate) fn explain_dml(
        &self,
        statement: &Statement,
        text: &str,
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<String, SqlError> {
        let _fixed = self.inner.definitions.read();
        let catalog = self.catalog();
        let run = Run { database: self, catalog: &catalog, parameters: &[], settings, cancel };
        match statement {
            Statement::Insert(insert) => {
                let plan = dml::plan_insert(&catalog, insert, text)?;
                run.check_parameters(plan.parameters)?;
                let literal = match &plan.source {
                    InsertSource::Values(rows) => run.literal_rows(&plan, rows)?,
                    InsertSource::Query(_) => None,
                };
                match literal {
                    Some(rows) => {
                        let place = match self.route_of(&plan.table, &rows) {
                            Route::Partition(PartitionId(id)) => format!("partition {id}"),
                            _ => ALL.to_owned(),
                        };
                        let (table, count) = (&plan.table.name, rows.len());
                        Ok(format!("transactional, {place}: INSERT into {table} of {count} given rows"))
                    }
                    None => {
                        let queries = run.prepare_source(&plan)?;
                        run.plan_text("INSERT", &plan.table.name, "rows computed by", &queries)
                    }
                }
            }
            Statement::Update(update) => {
                let plan = dml::plan_update(&catalog, update, text)?;
                run.check_parameters(plan.parameters)?;
                run.plan_text("UPDATE", &plan.table.name, "rows found by", &[run.prepare_update(&plan)?])
            }
            Statement::Delete(delete) => {
                let plan = dml::plan_delete(&catalog, delete, text)?;
                run.check_parameters(plan.parameters)?;
                let query = run.prepare(&plan.rows_query(&HIDDEN), Some(&plan.table), Vec::new())?;
                run.plan_text("DELETE", &plan.table.name, "rows found by", &[query])
            }
            other => {
                Err(SqlError::unsupported(format!("EXPLAIN of {}", albireo_sql::classify::name_of(other))))
            }
        }
    }
}

/// How a transaction over all partitions is called.
const ALL: &str = "all partitions (crossing)";

impl Run<'_> {
    fn plan_text(
        &self,
        verb: &str,
        table: &str,
        how: &str,
        queries: &[Arc<Prepared>],
    ) -> Result<String, SqlError> {
        let session =
            self.database.inner.sessions.open(&scope_of(queries)).map_err(crate::errors::session)?;
        let snapshot = session.snapshot().map_err(crate::errors::session)?;
        let snapshot: Arc<dyn Snapshot> = Arc::new(AddressedSnapshot(Arc::clone(snapshot)));
        let mut text = format!("transactional, {ALL}: {verb} of {table}, {how}:");
        for query in queries {
            let options = options(self.settings, self.cancel);
            text.push('\n');
            text.push_str(&self.database.inner.olap.explain(query, &[], &snapshot, options)?);
        }
        Ok(text)
    }
}
