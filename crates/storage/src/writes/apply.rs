//! Writing a record again.

use albireo_base::TableId;
use albireo_base::packed::Malformed;

use super::read::{RowWrite, Shape, WriteReader};
use crate::key::KeyBuilder;
use crate::table::{Table, TableError};
use crate::undo::UndoLog;

/// Why a record cannot be written again. What it wrote so far is in the undo log.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// Its bytes are no write record.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// It writes to a table that is not there.
    #[error("the write record names table {table}, which does not exist")]
    NoTable {
        /// The table.
        table: TableId,
    },
    /// It changes a row that is not there.
    #[error("the write record changes a row of table {table} that does not exist: {row}")]
    NoRow {
        /// The table.
        table: TableId,
        /// The values of its identity.
        row: String,
    },
    /// The table does not take it.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// What a record did.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Applied {
    /// Rows deleted, updated and inserted.
    pub rows: u64,
}

/// The tables that a record may write to.
pub trait WrittenTables {
    /// A table and the undo log, set to the table's site, by site ([`super::SHARED_SITE`] for shared
    /// tables) and id; `None` if there is none.
    fn table_mut(&mut self, site: u16, table: TableId) -> Option<(&mut Table, &mut UndoLog)>;
}

/// Writes a record again.
///
/// # Errors
/// The record, or the state it is written to, is not what it should be. The caller rolls back.
pub fn apply_writes(record: &[u8], tables: &mut dyn WrittenTables) -> Result<Applied, ApplyError> {
    let mut reader = WriteReader::new(record);
    let (mut applied, mut key) = (Applied::default(), KeyBuilder::new());
    while let Some((site, id)) = reader.next_table()? {
        let (table, undo) = tables.table_mut(site, id).ok_or(ApplyError::NoTable { table: id })?;
        while let Some(row) = reader.next_row(|| Shape::of(table))? {
            apply_row(table, undo, &row, &mut key)?;
            applied.rows += 1;
        }
    }
    Ok(applied)
}

fn apply_row(
    table: &mut Table,
    undo: &mut UndoLog,
    row: &RowWrite,
    key: &mut KeyBuilder,
) -> Result<(), ApplyError> {
    let identity = match row {
        RowWrite::Insert { values } => {
            let tid = table.insert_values(undo, values)?;
            table.note_found(tid);
            return Ok(());
        }
        RowWrite::Delete { identity } | RowWrite::Update { identity, .. } => identity,
    };
    let Some(tid) = table.find_again(identity, key) else {
        let row: Vec<String> = identity.iter().map(ToString::to_string).collect();
        return Err(ApplyError::NoRow { table: table.spec().id, row: row.join(", ") });
    };
    match row {
        RowWrite::Update { values, .. } => {
            table.update_values(undo, tid, values)?;
            table.note_found(tid);
        }
        _ => table.delete(undo, tid)?,
    }
    Ok(())
}
