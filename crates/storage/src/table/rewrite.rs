//! New values for columns of many rows, written beside the table while others use it.
//!
//! ```text
//! put       (nobody owns anything)  new values of rows that a snapshot shows
//! seal      (nobody owns anything)  after the last of them
//! put_live  (the table is owned)    a row that was changed since: as it is now, or with new values
//! install   (the table is owned)    after the last changed row: the new blocks take the place of the old ones
//! ```
//!
//! Responsible for: columns that are in no index and place no row; NOT NULL, lengths, digits, CHECK constraints.
//! Not responsible for: which rows, and undo: what is not installed has never been there.

use std::sync::Arc;

use albireo_base::{ColumnId, Tid, Value};

use super::values::{encode, text_bytes, value_of};
use super::{Table, TableError, TableSpec};
use crate::rows::{FrozenRows, Original, Replaced, RowSet, Rows, Shadow};

/// New values beside one partition of a table.
pub struct Rewrite {
    spec: Arc<TableSpec>,
    columns: Vec<ColumnId>,
    /// The table as a snapshot shows it.
    first: FrozenRows,
    shadow: Shadow,
    /// Those that have new values.
    rows: RowSet,
}

impl TableSpec {
    /// Whether columns can be rewritten beside the table: they are in no index, and place no row.
    pub fn rewrites(&self, columns: &[ColumnId]) -> bool {
        columns.iter().all(|column| {
            let is_key = self.indexes.iter().any(|index| index.columns.contains(column));
            !is_key && self.partition_by != Some(*column)
        })
    }
}

impl Rewrite {
    /// Of columns that can be rewritten.
    pub(crate) fn new(first: FrozenRows, spec: Arc<TableSpec>, columns: &[ColumnId]) -> Self {
        assert!(spec.rewrites(columns), "the columns can be rewritten");
        let shadow = Shadow::new(&first, columns);
        Self { spec, columns: columns.to_vec(), first, shadow, rows: RowSet::default() }
    }

    /// The rows that have new values.
    pub fn rows(&self) -> &RowSet {
        &self.rows
    }

    /// Gives a row of the snapshot new values, one for each column, each of its column's type.
    ///
    /// # Errors
    /// The table does not take them, or there is no memory.
    pub fn put(&mut self, tid: Tid, values: &[Value]) -> Result<(), TableError> {
        let Self { spec, columns, first, shadow, .. } = self;
        check(spec, columns, first, tid, values)?;
        write(spec, (columns, values), shadow, tid, Original::frozen(first))?;
        self.rows.set(tid, true);
        Ok(())
    }

    /// Ends [`Rewrite::put`].
    ///
    /// # Errors
    /// There is no memory.
    pub fn seal(&mut self) -> Result<(), TableError> {
        let Self { first, shadow, rows, .. } = self;
        Ok(shadow.seal(first, |tid| rows.has(tid))?)
    }

    /// Takes a row over that was changed since, as it is now; with new values, if there are some.
    ///
    /// # Errors
    /// As [`Rewrite::put`].
    pub fn put_live(&mut self, table: &Table, tid: Tid, values: Option<&[Value]>) -> Result<(), TableError> {
        self.shadow.follow(&table.rows, tid)?;
        if let Some(values) = values {
            let Self { spec, columns, shadow, .. } = self;
            check(spec, columns, &table.rows, tid, values)?;
            write(spec, (columns, values), shadow, tid, Original::live(&table.rows))?;
        }
        self.rows.set(tid, values.is_some());
        Ok(())
    }
}

/// Whether the table takes new values of a row.
fn check(
    spec: &TableSpec,
    columns: &[ColumnId],
    rows: &Rows,
    tid: Tid,
    values: &[Value],
) -> Result<(), TableError> {
    assert_eq!(values.len(), columns.len(), "one value for each column");
    for (column, value) in columns.iter().zip(values) {
        if matches!(value, Value::Null) && !spec.columns[column.index()].nullable {
            return Err(TableError::NotNull { table: spec.id, column: *column });
        }
    }
    if spec.checks.is_empty() {
        return Ok(());
    }
    let read = |column: ColumnId| match columns.iter().position(|written| *written == column) {
        Some(at) => values[at].clone(),
        None => value_of(spec, rows, tid, column),
    };
    spec.unmet(&read).map_or(Ok(()), Err)
}

fn write(
    spec: &TableSpec,
    (columns, values): (&[ColumnId], &[Value]),
    shadow: &mut Shadow,
    tid: Tid,
    original: Original<'_>,
) -> Result<(), TableError> {
    for (at, (column, value)) in columns.iter().zip(values).enumerate() {
        match value {
            Value::Null => shadow.put(tid, at, None, original)?,
            value => match text_bytes(spec, *column, value)? {
                Some(text) => shadow.put(tid, at, Some(text), original)?,
                None => {
                    let (bytes, width) = encode(spec, *column, value)?;
                    shadow.put(tid, at, Some(&bytes[..width]), original)?;
                }
            },
        }
    }
    Ok(())
}

impl Table {
    /// Gives rows the new values that were written beside the table: every row that was changed meanwhile has been taken
    /// over.
    ///
    /// # Panics
    /// They are of another table.
    #[must_use = "what was replaced is to be dropped when nobody waits for the table"]
    pub fn install(&mut self, rewrite: Rewrite) -> Replaced {
        assert!(rewrite.spec.id == self.spec.id, "new values are for one table");
        assert!(self.spec.rewrites(&rewrite.columns), "no index came meanwhile");
        let Rewrite { shadow, first, .. } = rewrite;
        self.rows.install(shadow).with(first)
    }
}
