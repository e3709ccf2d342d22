//! Prints tables: results of statements and the shell's own lists.
//!
//! Responsible for: the formats box, expanded, CSV and JSON, and PostgreSQL's text form of values.
//! Not responsible for: where the bytes go, and errors (`shell`).

mod delimited;
mod drawn;
mod json;
#[cfg(test)]
mod tests;
mod text;

use crate::args::Format;
use crate::interrupt::Interrupt;
use crate::sql::Column;
use albireo_base::SqlType;
use arrow::record_batch::RecordBatch;
use std::io::{self, Write};

/// What a column's values are, as far as printing cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Drawn at the left, quoted in JSON.
    Text,
    /// Drawn at the right, bare in JSON.
    Number,
    /// `t` and `f`, drawn at the left; `true` and `false` in JSON.
    Bool,
}

impl Kind {
    fn of(ty: SqlType) -> Self {
        match ty {
            SqlType::SmallInt
            | SqlType::Integer
            | SqlType::BigInt
            | SqlType::Real
            | SqlType::Double
            | SqlType::Decimal { .. } => Self::Number,
            SqlType::Bool => Self::Bool,
            SqlType::Char(_)
            | SqlType::Varchar(_)
            | SqlType::Text
            | SqlType::Bytea
            | SqlType::Date
            | SqlType::Time
            | SqlType::Timestamp
            | SqlType::TimestampTz
            | SqlType::Uuid => Self::Text,
        }
    }
}

/// A cell's text; `None` is NULL.
pub type Cell = Option<String>;

/// Something to print.
pub struct Table<'a> {
    /// A line above, where the format has room for it.
    pub title: Option<String>,
    /// Names and kinds of the columns.
    pub columns: Vec<(String, Kind)>,
    rows: Rows<'a>,
}

enum Rows<'a> {
    Result { columns: &'a [Column], batches: &'a [RecordBatch] },
    Own(Vec<Vec<Cell>>),
}

impl<'a> Table<'a> {
    /// A statement's rows.
    pub fn of_result(columns: &'a [Column], batches: &'a [RecordBatch]) -> Self {
        let headers = columns.iter().map(|column| (column.name.clone(), Kind::of(column.ty))).collect();
        Self { title: None, columns: headers, rows: Rows::Result { columns, batches } }
    }

    /// A list of the shell's own.
    pub fn own(title: impl Into<String>, columns: &[(&str, Kind)], rows: Vec<Vec<Cell>>) -> Self {
        assert!(rows.iter().all(|row| row.len() == columns.len()));
        let columns = columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        Self { title: Some(title.into()), columns, rows: Rows::Own(rows) }
    }

    /// Whether it is a list of the shell's own.
    fn is_own(&self) -> bool {
        matches!(self.rows, Rows::Own(_))
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        match &self.rows {
            Rows::Own(rows) => rows.is_empty(),
            Rows::Result { batches, .. } => batches.iter().all(|batch| batch.num_rows() == 0),
        }
    }

    /// Calls `f` with each row until it fails or `interrupt` is requested.
    fn for_each_row(
        &self,
        interrupt: &Interrupt,
        mut f: impl FnMut(&[Cell]) -> io::Result<()>,
    ) -> io::Result<()> {
        match &self.rows {
            Rows::Own(rows) => rows.iter().try_for_each(|row| f(row)),
            Rows::Result { columns, batches } => {
                let mut row = vec![None; columns.len()];
                for batch in *batches {
                    assert_eq!(batch.num_columns(), columns.len(), "a result's columns are those named");
                    for index in 0..batch.num_rows() {
                        interrupt.check()?;
                        for ((cell, column), array) in row.iter_mut().zip(*columns).zip(batch.columns()) {
                            *cell = text::cell(array.as_ref(), index, column.ty);
                        }
                        f(&row)?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// Whether each value gets a line of its own, where the format is box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expanded {
    /// Columns stand side by side.
    Off,
    /// Each value has its line.
    On,
    /// Columns stand side by side if the terminal is wide enough. Lists of the shell's own always do, broken into
    /// lines where need be.
    #[default]
    Auto,
}

/// How a table is printed.
#[derive(Clone, Copy)]
pub struct Style<'a> {
    /// The format.
    pub format: Format,
    /// Whether to print one line per value where the format is box.
    pub expanded: Expanded,
    /// Columns of the terminal, if what is printed goes to one.
    pub width: Option<usize>,
    /// How NULL is drawn where the format is box.
    pub null: &'a str,
    /// What stops the printing.
    pub interrupt: &'a Interrupt,
}

/// Prints `table`.
///
/// # Errors
/// `out` fails, or Ctrl-C was pressed.
pub fn print(table: &Table<'_>, style: Style<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    match style.format {
        Format::Box if style.expanded == Expanded::On => drawn::expanded(table, style, &mut out)?,
        Format::Box => drawn::grid(table, style, &mut out)?,
        Format::Csv => delimited::csv(table, style.interrupt, &mut out)?,
        Format::Json => json::array(table, style.interrupt, &mut out)?,
    }
    out.flush()
}
