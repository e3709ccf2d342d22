//! What statements give back.

use std::sync::Arc;
use std::time::Duration;

use albireo_base::{SqlError, SqlType, Value};
use arrow::array::StringArray;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, as PostgreSQL gives it; names need not be unique.
    pub name: String,
    /// Its type; what has no SQL type of ours (an interval) is given as text.
    pub ty: SqlType,
}

/// What one statement gave.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A SELECT, or another statement that returns rows.
    Rows(QueryResult),
    /// Any other statement.
    Done {
        /// PostgreSQL's command tag, such as `INSERT 0 3`.
        tag: String,
        /// Rows inserted, updated, deleted or copied.
        rows: u64,
        /// Remarks, such as that a table existed already.
        notices: Vec<String>,
    },
}

impl Outcome {
    /// The rows of a query.
    pub(crate) fn into_rows(self) -> Result<QueryResult, SqlError> {
        match self {
            Self::Rows(rows) => Ok(rows),
            Self::Done { .. } => Err(SqlError::unsupported("a query of a function that returns nothing")
                .with_hint("Use Database::execute.")),
        }
    }
}

/// The rows of a query, in memory of their own.
#[derive(Clone, Debug)]
pub struct QueryResult {
    /// Names and types of the columns.
    pub columns: Vec<Column>,
    /// The Arrow schema of the batches. Its names are the columns' names. A column of NUMERIC whose values
    /// have different numbers of digits behind the point is one of texts, which keep them.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
    /// Time from the statement to the plan.
    pub planning: Duration,
    /// Time from the plan to the last row.
    pub execution: Duration,
}

impl QueryResult {
    /// The number of rows.
    pub fn row_count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// One value.
    ///
    /// # Panics
    /// There is no such row or column.
    pub fn value(&self, row: usize, column: usize) -> Value {
        let mut row = row;
        for batch in &self.batches {
            if row < batch.num_rows() {
                return crate::adapters::value_at(batch.column(column), row, self.columns[column].ty);
            }
            row -= batch.num_rows();
        }
        panic!("the result has no row {row} beyond its last")
    }

    /// All rows as values: for small results.
    pub fn rows(&self) -> Vec<Vec<Value>> {
        let mut rows = Vec::with_capacity(self.row_count());
        for batch in &self.batches {
            for row in 0..batch.num_rows() {
                let value = |(i, column): (usize, &Column)| {
                    crate::adapters::value_at(batch.column(i), row, column.ty)
                };
                rows.push(self.columns.iter().enumerate().map(value).collect());
            }
        }
        rows
    }
}

/// Lines as the rows of a result.
pub(crate) fn text_column<'a>(name: &str, lines: impl Iterator<Item = &'a str>) -> QueryResult {
    let schema = Arc::new(Schema::new(vec![Field::new(name, DataType::Utf8, false)]));
    let array = Arc::new(lines.map(Some).collect::<StringArray>());
    let batch =
        RecordBatch::try_new(Arc::clone(&schema), vec![array]).expect("one column of the schema's type");
    QueryResult {
        columns: vec![Column { name: name.to_owned(), ty: SqlType::Text }],
        schema,
        batches: vec![batch],
        planning: Duration::ZERO,
        execution: Duration::ZERO,
    }
}
