//! Chunks of records into batches of typed columns.
//!
//! Responsible for: which of a record's fields become columns, errors with line, column and value.
//! Not responsible for: cutting records (`csv`, `text`, `json`), reading values (`column`).
//!
//! I-1 Of several faults in a chunk the first record's is reported, and of a record's the first column's.

use std::sync::Arc;

use albireo_base::{SqlType, arrow_type};
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field as ArrowField, Schema, SchemaRef};

use crate::cells::{Cells, CellsView, Shape, Stop};
use crate::fault::excerpt;
use crate::{
    Batch, Cause, CellError, Chunk, Chunker, ColumnBuilder, CsvDialect, Fault, JsonDialect, TextDialect,
};
use crate::{csv, json, text};

/// How a text is made up of records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TextFormat {
    /// PostgreSQL's CSV.
    Csv(CsvDialect),
    /// PostgreSQL's text format.
    Text(TextDialect),
    /// Lines of JSON objects.
    Json(JsonDialect),
}

impl TextFormat {
    pub(crate) fn split(&self, chunk: &[u8], first_line: u64, cells: &mut Cells) {
        match self {
            Self::Csv(dialect) => csv::split(chunk, first_line, dialect, cells),
            Self::Text(dialect) => text::split(chunk, first_line, dialect, cells),
            Self::Json(dialect) => json::split(chunk, first_line, dialect, cells),
        }
    }
}

/// A field of each record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name, in errors and in the schema.
    pub name: String,
    /// What it holds.
    pub ty: SqlType,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// Makes batches of chunks; shared by threads.
#[derive(Debug)]
pub struct Decoder {
    format: TextFormat,
    fields: Vec<Field>,
    /// The fields that become columns, in the order of the columns.
    wanted: Vec<usize>,
    schema: SchemaRef,
}

/// The rows of a chunk.
#[derive(Debug)]
pub struct Decoded {
    /// The rows.
    pub batch: Batch,
    /// What ends the data stood in the chunk: whatever comes after is not looked at.
    pub is_end: bool,
}

impl Decoder {
    /// Records of `format` have `fields`, all of which become columns.
    pub fn new(format: TextFormat, fields: Vec<Field>) -> Self {
        let wanted = (0..fields.len()).collect();
        Self::projected(format, fields, wanted)
    }

    /// Records of `format` have `fields`, and those `wanted` become columns. The others are not looked at.
    ///
    /// # Panics
    /// There is no such field.
    pub fn projected(format: TextFormat, fields: Vec<Field>, wanted: Vec<usize>) -> Self {
        let field = |i: &usize| ArrowField::new(&fields[*i].name, arrow_type(fields[*i].ty), true);
        let schema = Arc::new(Schema::new(wanted.iter().map(field).collect::<Vec<_>>()));
        Self { format, fields, wanted, schema }
    }

    /// The schema of batches. Whether a column may be NULL is checked with its values.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How records are made up.
    pub fn format(&self) -> &TextFormat {
        &self.format
    }

    /// Decodes a chunk.
    ///
    /// # Errors
    /// The first record that is malformed, or whose fields are not what they should be.
    pub fn decode(&self, chunk: &Chunk) -> Result<Decoded, Fault> {
        let bytes = &chunk.bytes[chunk.start..];
        // A guess that need not be right: records of 64 bytes, or fields of 8.
        let capacity = (bytes.len() / 64 * self.fields.len()).max(bytes.len() / 8).min(1 << 20);
        let mut cells = Cells::new(Shape::Fields(self.fields.len()), chunk.first_line, capacity);
        self.format.split(bytes, chunk.first_line, &mut cells);
        let view = cells.view(bytes);
        let (mut rows, mut fault, mut columns) = (cells.rows(), None, Vec::with_capacity(self.wanted.len()));
        for index in &self.wanted {
            let field = &self.fields[*index];
            let has_texts = field.ty.is_string() || field.ty == SqlType::Bytea;
            let lengths = || view.column(*index, rows).flatten().map(|text| text.bytes.len());
            let text_bytes = if has_texts { lengths().sum() } else { 0 };
            let mut builder = ColumnBuilder::new(field.ty, field.nullable, rows, text_bytes);
            if let Err((row, error)) = builder.extend(view.column(*index, rows)) {
                fault = Some(cell_fault(&view, *index, row, field, error, cells.line(row)));
                rows = row;
            }
            columns.push(builder);
        }
        let name = |field: usize| self.fields.get(field).map(|field| field.name.clone());
        if let Some(fault) = fault.or_else(|| stop_fault(&cells, bytes, &name)) {
            return Err(fault);
        }
        let arrays = columns.into_iter().map(ColumnBuilder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let columns = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options);
        let columns = columns.expect("each array is of its field's type and has a value for each row");
        Ok(Decoded { is_end: cells.ended, batch: Batch { columns, places: cells.places() } })
    }
}

fn cell_fault(
    view: &CellsView<'_>,
    index: usize,
    row: usize,
    field: &Field,
    error: CellError,
    line: u64,
) -> Fault {
    let text = view.column(index, row + 1).last().flatten();
    let cause = match error {
        CellError::Null => Cause::Null,
        CellError::Value(error) => Cause::Sql(error),
    };
    let value = text.map(|text| excerpt(text.bytes));
    Fault { place: Some(line), column: Some(field.name.clone()), value, cause }
}

/// What is wrong with the record behind the last one that was cut into fields, if anything is.
pub(crate) fn stop_fault(
    cells: &Cells,
    chunk: &[u8],
    name: &dyn Fn(usize) -> Option<String>,
) -> Option<Fault> {
    let (line, stop) = cells.stop.as_ref()?;
    let error = match stop {
        Stop::UnterminatedQuote => Fault::bad_file("unterminated CSV quoted field"),
        Stop::CarriageReturn => Fault::bad_file("unquoted carriage return found in data").with_hint(
            "Quote the value; if carriage returns end the lines, have line feeds end them: tr '\\r' '\\n'.",
        ),
        Stop::Missing(fields) => {
            let column = name(*fields).unwrap_or_default();
            Fault::bad_file(format!("missing data for column \"{column}\""))
        }
        Stop::Extra => Fault::bad_file("extra data after last expected column"),
        Stop::EndMark => {
            Fault::bad_file("end-of-copy marker corrupt").with_hint("Write a backslash in a value as \\\\.")
        }
        Stop::Stranger(name) => {
            let error = Fault::bad_file(format!("there is no column for the member \"{name}\""));
            return Some(Fault { column: Some(name.clone()), ..Fault::at(*line, error) });
        }
        Stop::Json(reason) => Fault::bad_file("the line is not a JSON object")
            .with_detail(format!("{reason}."))
            .with_hint("One object stands on each line; jq -c '.[]' makes such lines of an array."),
    };
    let mut lines = chunk.get(cells.next..).unwrap_or_default().split(|byte| matches!(byte, b'\n' | b'\r'));
    let text = lines.find(|line| !line.is_empty());
    Some(Fault { value: text.map(excerpt), ..Fault::at(*line, error) })
}

impl Chunker<'_> {
    /// Takes the first record off the text and gives its fields: the header. `None` if there is no record.
    ///
    /// # Errors
    /// As [`Chunker::next_chunk`]; the record is malformed.
    pub fn take_record(&mut self, format: &TextFormat) -> Result<Option<Vec<Option<String>>>, Fault> {
        let Some(mut chunk) = self.next_chunk()? else { return Ok(None) };
        let bytes = &chunk.bytes[chunk.start..];
        let mut cells = Cells::new(Shape::Any, chunk.first_line, 64).with_limit(1);
        match format {
            // What FORCE_NULL and FORCE_NOT_NULL say is of values, not of names.
            TextFormat::Csv(dialect) => {
                let dialect = CsvDialect { force: Vec::new(), ..dialect.clone() };
                csv::split(bytes, chunk.first_line, &dialect, &mut cells);
            }
            other => other.split(bytes, chunk.first_line, &mut cells),
        }
        if let Some(fault) = stop_fault(&cells, bytes, &|_| None) {
            return Err(fault);
        }
        if cells.rows() == 0 {
            return Ok(None);
        }
        let view = cells.view(bytes);
        let record = view.record(0);
        let fields =
            record.map(|field| field.map(|text| String::from_utf8_lossy(text.bytes).into_owned())).collect();
        let end = cells.next.min(bytes.len());
        chunk.first_line += memchr::memchr_iter(b'\n', &bytes[..end]).count() as u64;
        chunk.start += end;
        if chunk.start < chunk.bytes.len() {
            self.give_back(chunk);
        }
        Ok(Some(fields))
    }
}

#[cfg(test)]
mod tests;
