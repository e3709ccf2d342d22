//! Batches of a file's rows into their table, all or none, in one transaction.

use albireo_base::progress::{Phase, Unit};
use albireo_base::{SqlError, SqlState, Value};
use albireo_partition::{Abort, Call, Route, Transaction};
use albireo_sql::{Catalog, TableDef};

use super::batch::Staged;
use super::{Limits, ROWS_PER_CHECK, Target};
use crate::adapters::value_at;
use crate::ddl::handle;

/// Inserts all rows of `staged`; gives their number. `defaults` has a value for each column of the
/// table, for those that the file does not fill.
pub(super) fn insert_batches(
    target: &Target<'_>,
    staged: &Staged,
    defaults: Vec<Value>,
    limits: &Limits<'_>,
) -> Result<u64, SqlError> {
    let database = limits.database;
    let _fixed = database.inner.definitions.read();
    still_there(&database.catalog(), target.table)?;
    limits.progress.begin(Phase::InsertingRows, Unit::Rows, Some(staged.rows()));
    let mut place_of_failure = None;
    let inserted = database.inner.partitions.crossing(&Call::new(Route::Crossing, "COPY"), |tx| {
        let mut values = defaults;
        let mut count = 0_u64;
        for batch in &staged.batches {
            for row in 0..batch.columns.num_rows() {
                if count.is_multiple_of(ROWS_PER_CHECK) {
                    limits.check(0)?;
                    limits.progress.add(if count == 0 { 0 } else { ROWS_PER_CHECK });
                }
                count += 1;
                for (column, array) in target.columns.iter().zip(batch.columns.columns()) {
                    values[column.index()] = value_at(array, row, target.table.column_def(*column).ty);
                }
                insert(tx, target.table, &values)
                    .inspect_err(|_| place_of_failure = Some(batch.places.of(row)))?;
            }
        }
        Ok(count)
    });
    inserted.map_err(|error| {
        let error = database.explain_call(error);
        match place_of_failure {
            Some(place) => target.at(error, place, None),
            None => error,
        }
    })
}

fn insert(tx: &mut Transaction<'_, '_>, table: &TableDef, values: &[Value]) -> Result<(), Abort> {
    let site = match table.partition_by {
        Some(column) => tx.site_of_value(&values[column.index()])?,
        None => tx.home(),
    };
    tx.insert_values_at(site, handle(table), values).map(|_| ())
}

/// The table may have been dropped while the file was read. Its columns never change.
fn still_there(catalog: &Catalog, table: &TableDef) -> Result<(), SqlError> {
    match catalog.table(table.id) {
        Some(_) => Ok(()),
        None => {
            let text = format!("relation \"{}\" was dropped while the file was read", table.name);
            Err(SqlError::new(SqlState::UNDEFINED_TABLE, text))
        }
    }
}
