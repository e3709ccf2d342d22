//! What is wrong with rows, as a SQLSTATE, a message and a remedy.

use albireo_base::{ColumnId, IndexId, SqlError, SqlState, TableId, Tid, Value};
use albireo_partition::Abort;
use albireo_sql::{Catalog, TableDef};
use albireo_storage::{OutOfMemory, RowFault, TableError};

/// Knows names and rows, to say more than ids.
pub struct Explainer<'a> {
    /// The names.
    pub catalog: &'a Catalog,
    /// Reads the key of a row that stands in the way.
    pub key_of: &'a dyn Fn(TableId, IndexId, Tid) -> Option<Vec<Value>>,
}

impl Explainer<'_> {
    /// What ended a transaction.
    pub fn abort(&self, abort: Abort) -> SqlError {
        match abort {
            Abort::Raised(error) => error,
            Abort::Table(error) => self.table(error),
            other => SqlError::new(SqlState::INTERNAL_ERROR, other.to_string()),
        }
    }

    /// What is wrong with a row.
    pub fn table(&self, error: TableError) -> SqlError {
        match error {
            TableError::OutOfMemory(full) => out_of_memory(full),
            TableError::Unreadable(error) => error.into(),
            TableError::Duplicate { table, index, existing } => self.duplicate(table, index, existing),
            TableError::NotNull { table, column } => self.with_column(table, column, |table, column| {
                let text = format!(
                    "null value in column \"{column}\" of relation \"{table}\" violates not-null constraint"
                );
                SqlError::new(SqlState::NOT_NULL_VIOLATION, text)
            }),
            TableError::OutOfRange { table, column } => self.with_column(table, column, |_, column| {
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").with_detail(
                    format!("The value for column \"{column}\" has more digits than the column's type."),
                )
            }),
            TableError::TooLong { table, column, bytes } => self.too_long(table, column, bytes),
            TableError::ZeroCharacter { table, column } => self.with_column(table, column, |_, column| {
                let text = format!("text for column \"{column}\" holds the character U+0000");
                SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, text)
            }),
            TableError::Check { table, check } => {
                let (name, check) = match self.catalog.table(table) {
                    Some(def) => {
                        (def.name.clone(), def.checks.get(check).map_or("?", |c| c.name.as_str()).to_owned())
                    }
                    None => ("?".to_owned(), "?".to_owned()),
                };
                let text = format!("new row for relation \"{name}\" violates check constraint \"{check}\"");
                SqlError::new(SqlState::CHECK_VIOLATION, text)
            }
            TableError::Unchecked(error) => error,
            TableError::WrongPartition { table } => {
                let name = self.catalog.table(table).map_or("?", |t| t.name.as_str());
                SqlError::new(
                    SqlState::CHECK_VIOLATION,
                    format!("the row of \"{name}\" belongs to another partition"),
                )
                .with_hint("Route the procedure by the value of the partitioning column.")
            }
            other => SqlError::new(SqlState::INTERNAL_ERROR, other.to_string()),
        }
    }

    /// What is wrong with a row of many; its key is known, wherever the other row is.
    pub fn row(&self, fault: &RowFault) -> SqlError {
        match &fault.error {
            &TableError::Duplicate { table, index, existing } if !fault.key.is_empty() => {
                let key_of = |_, _, _| Some(fault.key.clone());
                Explainer { catalog: self.catalog, key_of: &key_of }.duplicate(table, index, existing)
            }
            error => self.table(error.clone()),
        }
    }

    fn duplicate(&self, table: TableId, index: IndexId, existing: Tid) -> SqlError {
        let Some(def) = self.catalog.table(table) else {
            return SqlError::new(SqlState::UNIQUE_VIOLATION, "duplicate key value");
        };
        // Storage numbers indexes by position.
        let Some(index_def) = def.indexes.get(index.index()) else {
            return SqlError::new(SqlState::UNIQUE_VIOLATION, "duplicate key value");
        };
        let text = format!("duplicate key value violates unique constraint \"{}\"", index_def.name);
        let error = SqlError::new(SqlState::UNIQUE_VIOLATION, text);
        match (self.key_of)(table, index, existing) {
            Some(values) => error.with_detail(key_text(def, &index_def.columns, &values)),
            None => error,
        }
    }

    fn too_long(&self, table: TableId, column: ColumnId, bytes: usize) -> SqlError {
        let ty = self.catalog.table(table).map(|t| t.column_def(column).ty);
        let text = match ty {
            Some(ty) if bytes <= albireo_storage::MAX_TEXT_BYTES => format!("value too long for type {ty}"),
            _ => format!(
                "a value of {bytes} bytes is more than the {} that a column can hold",
                albireo_storage::MAX_TEXT_BYTES
            ),
        };
        SqlError::new(SqlState::STRING_DATA_RIGHT_TRUNCATION, text)
    }

    fn with_column(
        &self,
        table: TableId,
        column: ColumnId,
        make: impl Fn(&str, &str) -> SqlError,
    ) -> SqlError {
        match self.catalog.table(table) {
            Some(def) => make(&def.name, &def.column_def(column).name),
            None => make("?", "?"),
        }
    }
}

fn key_text(def: &TableDef, columns: &[ColumnId], values: &[Value]) -> String {
    let names: Vec<&str> = columns.iter().map(|c| def.column_def(*c).name.as_str()).collect();
    let values: Vec<String> = values.iter().map(Value::to_string).collect();
    format!("Key ({})=({}) already exists.", names.join(", "), values.join(", "))
}

/// There is no memory for rows.
pub fn out_of_memory(full: OutOfMemory) -> SqlError {
    let hint = match full {
        OutOfMemory::Limit { .. } => "Delete rows, end old query sessions, or raise data_limit_bytes.",
        OutOfMemory::System { .. } => {
            "Other programs, a control group or ulimit -v leave no more: free memory, or lower data_limit_bytes to \
             what there is."
        }
    };
    SqlError::new(SqlState::OUT_OF_MEMORY, full.to_string()).with_hint(hint)
}
