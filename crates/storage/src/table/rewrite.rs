//! New values for columns of many rows, written beside the table while others use it.
//!
//! ```text
//! put       (nobody owns anything)  new values of rows that a snapshot shows
//! seal      (nobody owns anything)  after the last of them
//! reindex   (nobody owns anything)  the columns' indexes, made anew from the rows with the values put
//! put_live  (the table is owned)    a row that was changed since: as it is now, or with new values
//! settle    (the table is owned)    after the last of them: rows enter whose key another had, which has left
//! install   (the table is owned)    new blocks and indexes take the place of the old ones
//! ```
//!
//! Responsible for: columns that place no row, and that no unique index needs to tell rows apart; NOT NULL, lengths, digits,
//! CHECK constraints. Not responsible for: which rows, and undo: what is not installed has never been there.
//!
//! I-1 An index has each row under the key that it has with the values put: when a row gets others, its key is asked for
//! before and renewed after.

use std::sync::Arc;

use albireo_base::{ColumnId, IndexId, StatementProgress, Tid, Value};

use super::indexes::{IndexAside, TableIndex};
use super::values::{check_text, encode, text_bytes, value_of};
use super::{Table, TableError, TableSpec};
use crate::rows::{self, Original, RowSet, Rows, SeenRows, Shadow};

/// New values beside one partition of a table.
pub struct Rewrite {
    spec: Arc<TableSpec>,
    columns: Vec<ColumnId>,
    /// Those that have one of the columns. They read in the blocks of `shadow`, and are gone before it.
    indexes: Vec<IndexAside>,
    /// The table as a snapshot shows it.
    first: SeenRows,
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

    /// Whether columns can be rewritten beside the table, and their indexes made anew: they place no row, and no two
    /// rows can get the same key of a unique index, not even while some have new values and others do not. (What rows
    /// that change one by one meet on their way is said where they do.)
    pub fn reindexes(&self, columns: &[ColumnId]) -> bool {
        let is_written = |column: &ColumnId| columns.contains(column);
        let tells_apart = |index: &super::IndexSpec, within: &super::IndexSpec| {
            let is_fixed = |column: &ColumnId| {
                within.columns.contains(column)
                    && !is_written(column)
                    && !self.columns[column.index()].nullable
            };
            index.unique && index.columns.iter().all(is_fixed)
        };
        let is_safe = |index: &super::IndexSpec| {
            let is_untouched = !index.unique || !index.columns.iter().any(is_written);
            is_untouched || self.indexes.iter().any(|other| tells_apart(other, index))
        };
        self.indexes.iter().all(is_safe) && columns.iter().all(|column| self.partition_by != Some(*column))
    }

    /// The columns that a rewrite of some reads in its snapshot, if there are no CHECK constraints: also those that
    /// share an index with one of them.
    pub fn read_by_rewrite(&self, columns: &[ColumnId]) -> Vec<ColumnId> {
        let mut read = columns.to_vec();
        self.indexes_of(columns).for_each(|index| read.extend(&self.indexes[index.index()].columns));
        read.sort_unstable();
        read.dedup();
        read
    }

    /// The indexes that have one of these columns.
    fn indexes_of(&self, columns: &[ColumnId]) -> impl Iterator<Item = IndexId> {
        let has_one = |index: &super::IndexSpec| index.columns.iter().any(|column| columns.contains(column));
        (0..).map(IndexId).zip(&self.indexes).filter(move |(_, index)| has_one(index)).map(|(id, _)| id)
    }
}

impl Rewrite {
    /// Of columns that can be rewritten.
    pub(crate) fn new(first: SeenRows, spec: Arc<TableSpec>, columns: &[ColumnId]) -> Self {
        assert!(spec.reindexes(columns), "the columns can be rewritten");
        let shadow = Shadow::new(&first, columns);
        let (columns, indexes) = (columns.to_vec(), Vec::new());
        Self { spec, columns, indexes, first, shadow, rows: RowSet::default() }
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
        write(spec, (columns, values), shadow, tid, Original::seen(first))?;
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

    /// Makes the columns' indexes, if they have some, and counts rows in `progress`. To follow [`Rewrite::seal`].
    ///
    /// # Errors
    /// There is no memory.
    pub fn reindex(&mut self, progress: &StatementProgress) -> Result<(), TableError> {
        for id in self.spec.indexes_of(&self.columns) {
            let rows = self.shadow.view(&self.first);
            self.indexes.push(IndexAside::new(rows, Arc::clone(&self.spec), id, progress)?);
        }
        Ok(())
    }

    /// Takes a row over that was changed since, as it is now; with new values, if there are some.
    ///
    /// # Errors
    /// As [`Rewrite::put`].
    pub fn put_live(&mut self, table: &Table, tid: Tid, values: Option<&[Value]>) -> Result<(), TableError> {
        let Self { spec, columns, indexes, shadow, .. } = self;
        let before: Vec<_> = indexes.iter().map(|index| index.key_of(tid)).collect();
        shadow.follow(&table.rows, tid)?;
        if let Some(values) = values {
            check(spec, columns, &table.rows, tid, values)?;
            write(spec, (columns, values), shadow, tid, Original::live(&table.rows))?;
        }
        for (index, before) in indexes.iter_mut().zip(before) {
            let now = match values {
                Some(values) => {
                    Some(index.key_with(|column| stored(spec, (columns, values), table, tid, column)))
                }
                None => index.key_in(table, tid),
            };
            index.renew(tid, before, now)?;
        }
        self.rows.set(tid, values.is_some());
        Ok(())
    }

    /// Gets ready for [`Table::install`], which then cannot fail: to follow the last [`Rewrite::put_live`].
    ///
    /// # Errors
    /// There is no memory.
    pub fn settle(&mut self) -> Result<(), TableError> {
        self.indexes.iter_mut().try_for_each(IndexAside::settle)
    }
}

/// The value of a row that gets new ones in some columns, as it will be read.
fn stored(
    spec: &TableSpec,
    (columns, values): (&[ColumnId], &[Value]),
    table: &Table,
    tid: Tid,
    column: ColumnId,
) -> Value {
    let given = columns.iter().position(|written| *written == column).map(|at| &values[at]);
    match given {
        Some(Value::Text(text)) => Value::Text(check_text(spec, column, text).unwrap_or(text).into()),
        Some(value) => value.clone(),
        None => table.value(tid, column),
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

/// What a rewrite has taken the place of. Dropped, its blocks are left to the snapshots that see them, and the rest is
/// free: for that nobody need own the table.
pub struct Replaced {
    _blocks: rows::Replaced,
    _indexes: Vec<TableIndex>,
}

impl Table {
    /// Gives rows the new values that were written beside the table: every row that was changed meanwhile has been taken
    /// over.
    ///
    /// # Panics
    /// They are of another table, or an index of the columns was not made.
    #[must_use = "what was replaced is to be dropped when nobody waits for the table"]
    pub fn install(&mut self, rewrite: Rewrite) -> Replaced {
        let Rewrite { spec, columns, indexes, first, shadow, .. } = rewrite;
        assert!(spec.id == self.spec.id, "new values are for one table");
        assert!(spec.indexes == self.spec.indexes, "no index came or went meanwhile");
        let made = |column: &ColumnId| indexes.iter().filter(|index| index.covers(*column)).count();
        let wanted = |column: &ColumnId| self.indexes.iter().filter(|index| index.covers(*column)).count();
        assert!(columns.iter().all(|column| made(column) == wanted(column)), "all indexes are made anew");
        let blocks = self.rows.install(shadow).with(first);
        let mut replaced = Vec::with_capacity(indexes.len());
        for (id, index) in indexes.into_iter().map(IndexAside::into_index) {
            let is_whole = index.len() == self.rows.live_rows || self.rows.has_ghosts();
            assert!(is_whole, "each live row stands in each index once (I-1 of `table`)");
            replaced.push(std::mem::replace(&mut self.indexes[id.index()], index));
        }
        Replaced { _blocks: blocks, _indexes: replaced }
    }
}
