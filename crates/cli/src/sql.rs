//! What the shell asks of a database. Narrow on purpose, so that tests can stand in for one.

/// A function or procedure as `\df` shows it.
pub use albireo::RoutineSummary as Routine;
use albireo::progress::Progress;
use albireo_base::{SqlError, SqlType};
use arrow::record_batch::RecordBatch;
use std::io::{Read, Write};
use std::path::PathBuf;

/// Stops what [`Sql::execute`] is doing, or is about to do; may be called from any thread at any time.
pub type Canceller = Box<dyn Fn() + Send>;

/// How far what [`Sql::execute`] does is, if it tells; may be called from any thread at any time.
pub type ProgressReader = Box<dyn Fn() -> Option<Progress> + Send>;

/// A database that executes SQL.
pub trait Sql {
    /// Executes statements one after another until the first that fails.
    ///
    /// # Errors
    /// The first statement's that fails; `57014` if it was cancelled.
    fn execute(&self, sql: &str) -> Result<Answer, SqlError>;

    /// Runs `COPY ... FROM STDIN` on the rows in `reader`; gives their number.
    ///
    /// # Errors
    /// As [`Sql::execute`].
    fn copy_from(&self, sql: &str, _reader: &mut (dyn Read + Send)) -> Result<u64, SqlError> {
        Err(SqlError::unsupported(sql))
    }

    /// Runs `COPY ... TO STDOUT`, the rows to `writer`; gives their number.
    ///
    /// # Errors
    /// As [`Sql::execute`].
    fn copy_to(&self, sql: &str, _writer: &mut (dyn Write + Send)) -> Result<u64, SqlError> {
        Err(SqlError::unsupported(sql))
    }

    /// What cancels the next statement, whether it runs yet or not.
    fn canceller(&self) -> Canceller;

    /// What tells how far the statement that runs when it is called is.
    fn progress(&self) -> ProgressReader;

    /// Which database this is.
    fn about(&self) -> About;

    /// All stored functions and procedures, sorted by name.
    fn routines(&self) -> Vec<Routine>;

    /// Names of all schemas, sorted.
    fn schemas(&self) -> Vec<String>;

    /// All tables, sorted by schema and name.
    fn tables(&self) -> Vec<Table>;

    /// The chunks of a table, by their states; none if that cannot be told at the moment.
    fn chunks(&self, table: &Table) -> Vec<Chunks>;
}

/// The chunks of a table that are in one state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    /// `hot`, `cooling`, `cold`, `frozen`, `evicted` or `empty`.
    pub state: String,
    /// How many there are.
    pub count: i64,
    /// Their live rows.
    pub rows: i64,
    /// Their memory, indexes apart.
    pub bytes: i64,
    /// What they take as blocks, or took.
    pub block_bytes: i64,
    /// Why they are not frozen, and how many of them for each reason; the most frequent comes first.
    pub reasons: Vec<(String, i64)>,
}

/// A database, for whoever asks which it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The directory that it is kept in; `None`: in memory.
    pub data: Option<PathBuf>,
    /// Its partitions.
    pub partitions: u16,
}

/// What statements gave.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Remarks that are not errors, such as an object that was there already.
    pub notices: Vec<String>,
    /// One for each statement.
    pub outcomes: Vec<Outcome>,
}

/// What one statement gave.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Rows.
    Rows {
        /// Names and types.
        columns: Vec<Column>,
        /// The rows, in order; their columns are those named.
        batches: Vec<RecordBatch>,
    },
    /// No rows but something done.
    Done {
        /// PostgreSQL's command tag, `INSERT 0 3` for instance.
        tag: String,
    },
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name; several may have the same.
    pub name: String,
    /// Its type.
    pub ty: SqlType,
}

/// A table as `\d` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The schema it is in.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Live rows.
    pub rows: u64,
    /// Its columns, in order.
    pub columns: Vec<TableColumn>,
    /// Its indexes, the primary key's first.
    pub indexes: Vec<Index>,
    /// Conditions of CHECK constraints, as SQL.
    pub checks: Vec<String>,
    /// The column whose hash places rows; a table without is shared by all partitions.
    pub partition_by: Option<String>,
    /// How rows lie in memory, as WITH (layout = ...) says it.
    pub layout: String,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: SqlType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Its default, as SQL.
    pub default: Option<String>,
}

/// An index of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// `hash` or `ordered`.
    pub method: String,
    /// What stands behind WITH, if anything.
    pub options: Option<String>,
    /// Names of its columns, in order.
    pub columns: Vec<String>,
    /// Whether a key may occur once only.
    pub unique: bool,
    /// Whether it is the primary key's.
    pub primary: bool,
}
