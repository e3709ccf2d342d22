//! What statements give back.

use std::borrow::Cow;
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
        tag: Cow<'static, str>,
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
    pub columns: Arc<[Column]>,
    /// The Arrow schema of the batches. Its names are the columns' names. A column of NUMERIC whose values
    /// have different numbers of digits behind the point is one of texts, which keep them.
    pub schema: SchemaRef,
    /// Time from the statement to the plan.
    pub planning: Duration,
    /// Time from the plan to the last row.
    pub execution: Duration,
    rows: Rows,
}

/// Rows in the form in which they were found.
#[derive(Clone, Debug)]
enum Rows {
    Batches(Vec<RecordBatch>),
    /// Each as long as there are columns, with values of their types or NULL.
    Values(Vec<Vec<Value>>),
}

impl QueryResult {
    pub(crate) fn of_batches(columns: Arc<[Column]>, schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        debug_assert!(
            batches.iter().all(|batch| batch.num_columns() == columns.len()),
            "of the same columns"
        );
        let (planning, execution, rows) = (Duration::ZERO, Duration::ZERO, Rows::Batches(batches));
        Self { columns, schema, planning, execution, rows }
    }

    pub(crate) fn of_values(columns: Arc<[Column]>, schema: SchemaRef, rows: Vec<Vec<Value>>) -> Self {
        debug_assert!(rows.iter().all(|row| row.len() == columns.len()), "of the same columns");
        let (planning, execution, rows) = (Duration::ZERO, Duration::ZERO, Rows::Values(rows));
        Self { columns, schema, planning, execution, rows }
    }

    /// With the times that it took.
    pub(crate) fn after(self, planning: Duration, execution: Duration) -> Self {
        Self { planning, execution, ..self }
    }

    /// The number of rows.
    pub fn row_count(&self) -> usize {
        match &self.rows {
            Rows::Batches(batches) => batches.iter().map(RecordBatch::num_rows).sum(),
            Rows::Values(rows) => rows.len(),
        }
    }

    /// The rows as Arrow arrays. Those of transactions are made now; those of queries over snapshots are there.
    pub fn batches(&self) -> Cow<'_, [RecordBatch]> {
        match &self.rows {
            Rows::Batches(batches) => Cow::Borrowed(batches),
            Rows::Values(rows) => {
                let batch = crate::arrays::batch(&self.columns, &self.schema, rows);
                Cow::Owned(vec![batch.expect("values are of their columns' types")])
            }
        }
    }

    /// One value.
    ///
    /// # Panics
    /// There is no such row or column.
    pub fn value(&self, row: usize, column: usize) -> Value {
        let mut row = row;
        match &self.rows {
            Rows::Values(rows) if row < rows.len() => return rows[row][column].clone(),
            Rows::Values(_) => {}
            Rows::Batches(batches) => {
                for batch in batches {
                    if row < batch.num_rows() {
                        return crate::adapters::value_at(batch.column(column), row, self.columns[column].ty);
                    }
                    row -= batch.num_rows();
                }
            }
        }
        panic!("the result has no row {row} beyond its last")
    }

    /// All rows as values: for small results.
    pub fn rows(&self) -> Vec<Vec<Value>> {
        let batches = match &self.rows {
            Rows::Values(rows) => return rows.clone(),
            Rows::Batches(batches) => batches,
        };
        let mut rows = Vec::with_capacity(self.row_count());
        for batch in batches {
            for row in 0..batch.num_rows() {
                let value = |(i, column): (usize, &Column)| {
                    crate::adapters::value_at(batch.column(i), row, column.ty)
                };
                rows.push(self.columns.iter().enumerate().map(value).collect());
            }
        }
        rows
    }

    /// As [`QueryResult::rows`], which copies them.
    pub fn into_rows(self) -> Vec<Vec<Value>> {
        match self.rows {
            Rows::Values(rows) => rows,
            Rows::Batches(_) => self.rows(),
        }
    }
}

/// Lines as the rows of a result.
pub(crate) fn text_column<'a>(name: &str, lines: impl Iterator<Item = &'a str>) -> QueryResult {
    let schema = Arc::new(Schema::new(vec![Field::new(name, DataType::Utf8, false)]));
    let array = Arc::new(lines.map(Some).collect::<StringArray>());
    let batch =
        RecordBatch::try_new(Arc::clone(&schema), vec![array]).expect("one column of the schema's type");
    let columns = Arc::new([Column { name: name.to_owned(), ty: SqlType::Text }]);
    QueryResult::of_batches(columns, schema, vec![batch])
}
