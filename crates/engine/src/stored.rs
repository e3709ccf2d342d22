//! The definitions of a database as an archive carries them.

use albireo_base::{SqlError, SqlState};
use albireo_sql::{Catalog, StoredCatalog};
use serde::{Deserialize, Serialize};

/// Tables and routines.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct Definitions {
    pub(crate) catalog: StoredCatalog,
    pub(crate) routines: Vec<StoredRoutine>,
    /// The id that the next routine will get.
    pub(crate) next_routine: u32,
}

/// One routine.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct StoredRoutine {
    pub(crate) id: u32,
    /// How many definitions it has had.
    pub(crate) version: u32,
    /// The statement that made it what it is.
    pub(crate) source: String,
}

impl Definitions {
    /// As JSON.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("definitions have texts as keys")
    }

    /// From JSON.
    ///
    /// # Errors
    /// XX001 if these are none.
    pub(crate) fn from_json(json: &serde_json::Value) -> Result<(Self, Catalog), SqlError> {
        let definitions: Self = serde_json::from_value(json.clone()).map_err(|error| {
            SqlError::new(SqlState::DATA_CORRUPTED, format!("the archive's definitions are damaged: {error}"))
        })?;
        let catalog = Catalog::restored(&definitions.catalog)?;
        Ok((definitions, catalog))
    }
}
