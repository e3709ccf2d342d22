//! The files that a statement names in FROM, opened while it is bound.
//!
//! Responsible for: paths, functions and options as requests, the SQL types of a file's columns. Not responsible
//! for: how they are written (`albireo_semantics`), reading.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use albireo_base::{SqlError, SqlState, Value};
use albireo_files::{CsvDialect, Encoding, refuse_url};
use albireo_semantics::query::{File, FileColumn, FileFormat as Format, FileOption, Files, NamedFile};
use albireo_semantics::types::{Scalar, Type};
use arrow::datatypes::{DataType, Field, IntervalUnit};
use datafusion::common::Result;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::TableSource;

use super::{Request, format_of, table, unknown_format};
use crate::engine::Olap;
use crate::errors::{external, internal, to_sql_error};
use crate::types::{result_type, sql_type};

const OPTIONS: &str =
    "The options are delim, header, quote, escape, nullstr, encoding, sample_size and all_varchar.";

impl Olap {
    /// What opens the files of one statement.
    pub fn files(&self) -> StatementFiles {
        StatementFiles { engine: self.clone(), opened: RefCell::default() }
    }
}

/// The files of one statement. Each is opened once, so all its parts see the same columns.
pub struct StatementFiles {
    engine: Olap,
    opened: RefCell<Vec<(NamedFile, Opened)>>,
}

/// A file, or why there is none.
type Opened = std::result::Result<Arc<File>, SqlError>;

impl StatementFiles {
    /// Whether the statement names files.
    pub fn any(&self) -> bool {
        !self.opened.borrow().is_empty()
    }

    fn open_anew(&self, named: &NamedFile) -> std::result::Result<Arc<File>, SqlError> {
        let (engine, request) = (self.engine.clone(), Request::of(named)?);
        let source = self.engine.wait_for(async move {
            let table = table(&engine.shared, request).await;
            table.map(provider_as_source).map_err(|e| to_sql_error(&e))
        })?;
        let columns = source.schema().fields().iter().map(|field| column(field)).collect();
        Ok(Arc::new(File { path: named.path.clone(), columns, reader: Arc::new(Reader(source)) }))
    }
}

impl fmt::Debug for StatementFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StatementFiles").field(&self.opened.borrow().len()).finish()
    }
}

impl Files for StatementFiles {
    fn open(&self, named: &NamedFile) -> std::result::Result<Arc<File>, SqlError> {
        if let Some((_, known)) = self.opened.borrow().iter().find(|(known, _)| known == named) {
            return known.clone();
        }
        let opened = self.open_anew(named);
        self.opened.borrow_mut().push((named.clone(), opened.clone()));
        opened
    }
}

/// What reads the rows of a file.
struct Reader(Arc<dyn TableSource>);

/// What reads the rows of a file that [`StatementFiles`] opened.
pub(crate) fn source_of(file: &File) -> Result<Arc<dyn TableSource>> {
    match file.reader.downcast_ref::<Reader>() {
        Some(Reader(source)) => Ok(Arc::clone(source)),
        None => Err(external(internal(format!("file \"{}\" was opened elsewhere", file.path)))),
    }
}

fn column(field: &Field) -> FileColumn {
    let ty = column_type(field.data_type()).map(|(ty, _)| ty);
    FileColumn { name: field.name().clone(), ty: ty.ok_or_else(|| field.data_type().to_string()) }
}

/// The SQL type of a file's column, and the Arrow type in which queries have its values; `None` for types that
/// SQL does not have here.
pub(crate) fn column_type(ty: &DataType) -> Option<(Type, DataType)> {
    let carried = match ty {
        DataType::Interval(_) | DataType::Duration(_) => {
            let carried = DataType::Interval(IntervalUnit::MonthDayNano);
            return Some((Type::Scalar(Scalar::Interval), carried));
        }
        DataType::Dictionary(_, value) => return column_type(value),
        DataType::FixedSizeBinary(length) if *length != 16 => DataType::BinaryView,
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => match scale {
            0..=38 => result_type(ty),
            _ if *scale < 0 => DataType::Decimal128(38, 0),
            _ => return None,
        },
        other => result_type(other),
    };
    Some((Type::Scalar(Scalar::of(sql_type(&carried)?)), carried))
}

impl Request {
    /// What is asked for by a name in FROM.
    fn of(named: &NamedFile) -> std::result::Result<Self, SqlError> {
        refuse_url(&named.path)?;
        let Some((function, format)) = &named.function else {
            let format = format_of(&named.path).ok_or_else(|| unknown_format(&named.path))?;
            return Ok(Self::new(&named.path, format));
        };
        let mut request = Self::new(&named.path, *format);
        named.options.iter().try_for_each(|option| request.apply(function, option))?;
        let CsvDialect { quote, .. } = request.hints.dialect;
        match request.hints.delimiter == Some(quote) {
            true => Err(invalid(format!("delimiter and quote of {function} must be different"))),
            false => Ok(request),
        }
    }

    fn apply(&mut self, function: &str, option: &FileOption) -> std::result::Result<(), SqlError> {
        let FileOption { name, value, written } = option;
        match self.assign(name, value.as_ref()) {
            Some(true) => Ok(()),
            Some(false) => Err(invalid(format!("{function} has no option \"{name}\"")).with_hint(OPTIONS)),
            None => {
                let error = invalid(format!("the option \"{name}\" of {function} cannot be {written}"));
                Err(match name.as_str() {
                    "encoding" => error.with_hint(format!("The encodings are {}.", Encoding::NAMES)),
                    _ => error,
                })
            }
        }
    }

    /// Sets an option; false if there is none of that name, `None` if the value is none of its.
    fn assign(&mut self, option: &str, value: Option<&Value>) -> Option<bool> {
        let hints = &mut self.hints;
        let is_csv = self.format == Format::Csv;
        match option {
            "delim" | "delimiter" | "sep" if is_csv => hints.delimiter = Some(byte(value)?),
            "header" if is_csv => hints.header = Some(boolean(value)?),
            "quote" if is_csv => hints.dialect.quote = byte(value)?,
            "escape" if is_csv => hints.dialect.escape = byte(value)?,
            "nullstr" | "null" if is_csv => hints.dialect.null = text(value)?.to_owned(),
            "all_varchar" if is_csv => hints.all_text = boolean(value)?,
            "encoding" if self.format != Format::Parquet => self.encoding = Encoding::of_name(text(value)?)?,
            "sample_size" if self.format != Format::Parquet => {
                hints.sample_rows = match value? {
                    Value::BigInt(rows) if *rows < 0 => None,
                    Value::BigInt(rows) => Some(usize::try_from(*rows).ok()?.max(1)),
                    _ => return None,
                };
            }
            _ => return Some(false),
        }
        Some(true)
    }
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn text(value: Option<&Value>) -> Option<&str> {
    match value? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// A character of one byte; `'\t'` is a tab.
fn byte(value: Option<&Value>) -> Option<u8> {
    match text(value)? {
        "\\t" => Some(b'\t'),
        one => match one.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Some(*byte),
            _ => None,
        },
    }
}

fn boolean(value: Option<&Value>) -> Option<bool> {
    match value? {
        Value::Bool(on) => Some(*on),
        _ => None,
    }
}
