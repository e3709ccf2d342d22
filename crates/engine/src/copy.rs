//! COPY: tables from and to files.

use albireo_base::SqlError;
use albireo_olap::CancelToken;
use albireo_sql::ast::Statement;

use crate::settings::Settings;
use crate::{Database, Outcome, ReadOnlySession};

impl Database {
    /// Runs a COPY.
    pub(crate) fn run_copy(
        &self,
        _statement: &Statement,
        _text: &str,
        _session: Option<&ReadOnlySession>,
        _settings: &Settings,
        _cancel: &CancelToken,
    ) -> Result<Outcome, SqlError> {
        Err(SqlError::unsupported("COPY"))
    }
}
