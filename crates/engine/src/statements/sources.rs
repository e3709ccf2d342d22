//! What a statement may read besides tables: files and system views.

use std::sync::Arc;

use albireo_base::SqlError;
use albireo_olap::StatementFiles;
use albireo_semantics::query::{File, Files, NamedFile, View};

use crate::Database;

/// Those of one statement.
pub(crate) struct Sources<'a> {
    database: &'a Database,
    files: StatementFiles,
}

impl Database {
    pub(crate) fn sources(&self) -> Sources<'_> {
        Sources { database: self, files: self.inner.olap.files() }
    }
}

impl Files for Sources<'_> {
    fn open(&self, named: &NamedFile) -> Result<Arc<File>, SqlError> {
        self.files.open(named)
    }

    fn view(&self, schema: &str, name: &str) -> Option<View> {
        match (schema, name) {
            ("albireo", "transactions") => Some(self.database.transactions_view()),
            ("albireo", "chunks") => Some(self.database.chunks_view()),
            _ => None,
        }
    }
}
