//! The rows of a write record, one at a time.
//!
//! I-1 A record of millions of rows takes no more memory than its bytes: rows are made when they are asked for.
//! I-2 All of a record was read once before anybody gets it, so that reading it again cannot fail.

use std::sync::Arc;

use albireo_base::{ColumnId, TableId, Value};
use albireo_storage::{RowWrite, Shape, WriteReader};

use super::{LogWrite, RowChange};

/// What records of a table's rows are read by.
#[derive(PartialEq, Debug)]
pub(super) struct Table {
    pub(super) name: Arc<str>,
    pub(super) columns: Vec<Arc<str>>,
    pub(super) shape: Shape,
    pub(super) is_shared: bool,
}

impl Table {
    fn named(&self, columns: &[ColumnId], values: Vec<Value>) -> Vec<(Arc<str>, Value)> {
        columns.iter().map(|column| Arc::clone(&self.columns[column.index()])).zip(values).collect()
    }

    fn row(&self, id: TableId, partition: Option<u16>, row: RowWrite) -> LogWrite {
        let (table, identity) = (Arc::clone(&self.name), self.shape.identity());
        let (change, key, values) = match row {
            RowWrite::Delete { identity: key } => (RowChange::Delete, self.named(identity, key), Vec::new()),
            RowWrite::Update { identity: key, values } => {
                let (columns, values): (Vec<ColumnId>, Vec<Value>) = values.into_iter().unzip();
                (RowChange::Update, self.named(identity, key), self.named(&columns, values))
            }
            RowWrite::Insert { values } => {
                (RowChange::Insert, Vec::new(), self.columns.iter().cloned().zip(values).collect())
            }
        };
        LogWrite { id, table, partition, change, key, values }
    }
}

/// How many rows of a table a record wrote, in one partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogTable {
    /// The table's id.
    pub id: TableId,
    /// Its name, after its schema unless that is `public`.
    pub table: Arc<str>,
    /// The partition that the rows are in; `None` if the table is shared.
    pub partition: Option<u16>,
    /// Rows that came.
    pub inserted: u64,
    /// Rows that got new values.
    pub updated: u64,
    /// Rows that went.
    pub deleted: u64,
}

impl LogTable {
    /// All of them.
    pub fn rows(&self) -> u64 {
        self.inserted + self.updated + self.deleted
    }

    /// The rows to which something happened.
    pub fn rows_of(&self, change: RowChange) -> u64 {
        match change {
            RowChange::Insert => self.inserted,
            RowChange::Update => self.updated,
            RowChange::Delete => self.deleted,
        }
    }
}

/// What a record says of one table in one partition.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Part {
    counts: LogTable,
    table: Arc<Table>,
}

impl Part {
    pub(super) fn new(id: TableId, table: Arc<Table>, partition: Option<u16>) -> Self {
        let name = Arc::clone(&table.name);
        Self { counts: LogTable { id, table: name, partition, inserted: 0, updated: 0, deleted: 0 }, table }
    }

    pub(super) fn count(&mut self, row: &RowWrite) {
        match row {
            RowWrite::Delete { .. } => self.counts.deleted += 1,
            RowWrite::Update { .. } => self.counts.updated += 1,
            RowWrite::Insert { .. } => self.counts.inserted += 1,
        }
    }
}

/// The rows that a transaction wrote.
#[derive(Clone, PartialEq, Debug)]
pub struct LogRows<'a> {
    payload: &'a [u8],
    parts: Vec<Part>,
}

impl<'a> LogRows<'a> {
    /// Of a record that has been read, as these `parts`.
    pub(super) fn new(payload: &'a [u8], parts: Vec<Part>) -> Self {
        Self { payload, parts }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.tables().map(LogTable::rows).sum()
    }

    /// The tables that were written, each once for each partition, in the order of the rows.
    pub fn tables(&self) -> impl Iterator<Item = &LogTable> {
        self.parts.iter().map(|part| &part.counts)
    }

    /// The rows, each made when it is asked for.
    pub fn iter(&self) -> LogRowsIter<'_> {
        LogRowsIter { reader: WriteReader::new(self.payload), parts: self.parts.iter(), part: None }
    }
}

impl<'a> IntoIterator for &'a LogRows<'_> {
    type Item = LogWrite;
    type IntoIter = LogRowsIter<'a>;

    fn into_iter(self) -> LogRowsIter<'a> {
        self.iter()
    }
}

/// Reads the rows of a record one after another.
pub struct LogRowsIter<'a> {
    reader: WriteReader<'a>,
    /// Those that the reader has not come to.
    parts: std::slice::Iter<'a, Part>,
    /// The one that is being read.
    part: Option<&'a Part>,
}

impl Iterator for LogRowsIter<'_> {
    type Item = LogWrite;

    fn next(&mut self) -> Option<LogWrite> {
        const KNOWN: &str = "the whole record was read before";
        loop {
            let Some(part) = self.part else {
                let part = self.parts.next()?;
                let (_, id) = self.reader.next_table().expect(KNOWN).expect(KNOWN);
                assert_eq!(id, part.counts.id, "{KNOWN}");
                self.part = Some(part);
                continue;
            };
            match self.reader.next_row(|| part.table.shape.clone()).expect(KNOWN) {
                Some(row) => return Some(part.table.row(part.counts.id, part.counts.partition, row)),
                None => self.part = None,
            }
        }
    }
}
