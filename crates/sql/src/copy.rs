//! COPY: from the statement to what is to be read or written, and how.

#[cfg(test)]
mod tests;

use albireo_base::{ColumnId, SqlError, SqlState};
use sqlparser::ast::{
    CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopySource, CopyTarget, Ident, Statement,
};
use std::sync::Arc;

use crate::bind::{Binder, BoundQuery};
use crate::catalog::{Catalog, TableDef};
use crate::names;
use crate::source::Source;

/// What COPY does.
#[derive(Clone, PartialEq, Debug)]
pub enum CopyPlan {
    /// A file's rows into a table.
    From {
        /// The table.
        table: Arc<TableDef>,
        /// The columns in the file's order; the others get their defaults.
        columns: Vec<ColumnId>,
        /// The file's path as written.
        path: String,
        /// How to read it.
        format: CopyFormat,
    },
    /// A query's rows into a file.
    To {
        /// The query; for `COPY table TO` a SELECT of its columns.
        query: BoundQuery,
        /// The file's path as written.
        path: String,
        /// How to write it.
        format: CopyFormat,
    },
}

/// A file's format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CopyFormat {
    /// Lines of values parted by a delimiter.
    Csv(CsvOptions),
    /// Apache Parquet.
    Parquet,
}

/// How CSV is written; all as in PostgreSQL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CsvOptions {
    /// Whether the first line has the columns' names. Read, they are not looked at.
    pub header: bool,
    /// What parts values.
    pub delimiter: u8,
    /// What stands around values that hold a delimiter, quote or line end.
    pub quote: u8,
    /// What stands before a quote within quotes.
    pub escape: u8,
    /// What NULL looks like; quoted, it is a string.
    pub null: String,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self { header: false, delimiter: b',', quote: b'"', escape: b'"', null: String::new() }
    }
}

/// The options as written.
#[derive(Default)]
struct Written {
    format: Option<String>,
    header: Option<bool>,
    delimiter: Option<char>,
    quote: Option<char>,
    escape: Option<char>,
    null: Option<String>,
}

/// Plans a COPY statement. `text` is what it was parsed from.
///
/// # Errors
/// Names as [`crate::bind_query`]; 42601 and 22023 for options that contradict themselves or each
/// other; 0A000 for what we do not have: STDIN and STDOUT (a client's matter), programs, other
/// formats than CSV and Parquet.
pub fn plan_copy(catalog: &Catalog, statement: &Statement, text: &str) -> Result<CopyPlan, SqlError> {
    let Statement::Copy { source: from, to, target, options, legacy_options, .. } = statement else {
        return Err(SqlError::unsupported(crate::classify::name_of(statement)));
    };
    let source = Source::new(text);
    let path = match target {
        CopyTarget::File { filename } => filename.clone(),
        CopyTarget::Stdin => return Err(SqlError::unsupported("COPY FROM STDIN").with_hint("Name a file.")),
        CopyTarget::Stdout => return Err(SqlError::unsupported("COPY TO STDOUT").with_hint("Name a file.")),
        CopyTarget::Program { .. } => return Err(SqlError::unsupported("COPY with a program")),
    };
    let mut written = Written::default();
    options.iter().try_for_each(|option| written.option(option))?;
    legacy_options.iter().try_for_each(|option| written.legacy(option))?;
    let format = written.format(&path)?;
    match (from, to) {
        (CopySource::Table { table_name, columns }, to) => {
            let table = catalog.resolve_table(&names::qualified(table_name, source)?, source)?;
            let columns = column_list(table, columns, source)?;
            if !to {
                return Ok(CopyPlan::From { table: Arc::clone(table), columns, path, format });
            }
            let query = select_columns(catalog, table, &columns)?;
            Ok(CopyPlan::To { query, path, format })
        }
        (CopySource::Query(query), true) => {
            let query = Binder::new(catalog, source).bound(query.clone())?;
            if query.parameters > 0 {
                let message = "there is no parameter $1";
                return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, message));
            }
            Ok(CopyPlan::To { query, path, format })
        }
        (CopySource::Query(_), false) => Err(SqlError::unsupported("COPY (query) FROM")),
    }
}

/// The columns named, each once; all if none is named.
pub(crate) fn column_list(
    table: &TableDef,
    columns: &[Ident],
    source: Source<'_>,
) -> Result<Vec<ColumnId>, SqlError> {
    if columns.is_empty() {
        return Ok(table.column_ids().collect());
    }
    let mut found: Vec<ColumnId> = Vec::with_capacity(columns.len());
    for ident in columns {
        let id = table.resolve_column(ident, source)?;
        if found.contains(&id) {
            let message = format!("column \"{}\" specified more than once", names::fold(ident));
            return Err(source.locate(SqlError::new(SqlState::DUPLICATE_COLUMN, message), ident.span));
        }
        found.push(id);
    }
    Ok(found)
}

fn select_columns(catalog: &Catalog, table: &TableDef, columns: &[ColumnId]) -> Result<BoundQuery, SqlError> {
    let list: Vec<String> = columns.iter().map(|c| names::display(&table.column_def(*c).name)).collect();
    let (schema, name) = (names::display(&table.schema), names::display(&table.name));
    let text = format!("SELECT {} FROM {schema}.{name}", list.join(", "));
    let statement = crate::parse::parse_one(&text)?;
    crate::bind::bind_query(catalog, &statement, &text)
}

fn twice(option: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, format!("conflicting or redundant options: {option}"))
}

fn set<T>(place: &mut Option<T>, value: T, name: &str) -> Result<(), SqlError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(twice(name)),
    }
}

impl Written {
    fn option(&mut self, option: &CopyOption) -> Result<(), SqlError> {
        match option {
            CopyOption::Format(name) => set(&mut self.format, name.value.to_lowercase(), "format"),
            CopyOption::Header(on) => set(&mut self.header, *on, "header"),
            CopyOption::Delimiter(c) => set(&mut self.delimiter, *c, "delimiter"),
            CopyOption::Quote(c) => set(&mut self.quote, *c, "quote"),
            CopyOption::Escape(c) => set(&mut self.escape, *c, "escape"),
            CopyOption::Null(text) => set(&mut self.null, text.clone(), "null"),
            CopyOption::Encoding(name) => {
                let utf8 = name.replace(['-', '_'], "").eq_ignore_ascii_case("utf8");
                if utf8 { Ok(()) } else { Err(SqlError::unsupported(format!("encoding \"{name}\" in COPY"))) }
            }
            CopyOption::Freeze(false) => Ok(()),
            CopyOption::Freeze(true) => Err(SqlError::unsupported("FREEZE in COPY")),
            CopyOption::ForceQuote(_) => Err(SqlError::unsupported("FORCE_QUOTE in COPY")),
            CopyOption::ForceNotNull(_) => Err(SqlError::unsupported("FORCE_NOT_NULL in COPY")),
            CopyOption::ForceNull(_) => Err(SqlError::unsupported("FORCE_NULL in COPY")),
        }
    }

    /// The options as PostgreSQL took them before version 9: `CSV HEADER DELIMITER '|'`.
    fn legacy(&mut self, option: &CopyLegacyOption) -> Result<(), SqlError> {
        match option {
            CopyLegacyOption::Csv(options) => {
                set(&mut self.format, "csv".to_owned(), "format")?;
                for option in options {
                    match option {
                        CopyLegacyCsvOption::Header => set(&mut self.header, true, "header")?,
                        CopyLegacyCsvOption::Quote(c) => set(&mut self.quote, *c, "quote")?,
                        CopyLegacyCsvOption::Escape(c) => set(&mut self.escape, *c, "escape")?,
                        _ => return Err(SqlError::unsupported("this option of COPY")),
                    }
                }
                Ok(())
            }
            CopyLegacyOption::Parquet => set(&mut self.format, "parquet".to_owned(), "format"),
            CopyLegacyOption::Header => set(&mut self.header, true, "header"),
            CopyLegacyOption::Delimiter(c) => set(&mut self.delimiter, *c, "delimiter"),
            CopyLegacyOption::Null(text) => set(&mut self.null, text.clone(), "null"),
            other => Err(SqlError::unsupported(format!("the option {other} of COPY"))),
        }
    }

    /// The format, from the file's ending if not written.
    fn format(&self, path: &str) -> Result<CopyFormat, SqlError> {
        let lower = path.to_ascii_lowercase();
        let ending = lower.rsplit_once('.').map_or("", |(_, ending)| ending);
        let name = self.format.as_deref().unwrap_or(ending);
        match name {
            "parquet" => self.parquet(),
            "csv" => self.csv(b','),
            "tsv" => self.csv(b'\t'),
            other if self.format.is_some() => {
                let error = match other {
                    "text" | "binary" => SqlError::unsupported(format!("COPY format \"{other}\"")),
                    _ => {
                        let message = format!("COPY format \"{other}\" not recognized");
                        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
                    }
                };
                Err(error.with_hint("The formats are csv and parquet."))
            }
            _ => {
                let message = format!("cannot tell the format of \"{path}\" from its name");
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
                    .with_hint("Add WITH (FORMAT csv) or WITH (FORMAT parquet)."))
            }
        }
    }

    fn parquet(&self) -> Result<CopyFormat, SqlError> {
        let given = [
            (self.header.is_some(), "HEADER"),
            (self.delimiter.is_some(), "DELIMITER"),
            (self.quote.is_some(), "QUOTE"),
            (self.escape.is_some(), "ESCAPE"),
            (self.null.is_some(), "NULL"),
        ];
        match given.into_iter().find(|(present, _)| *present) {
            Some((_, option)) => {
                let message = format!("COPY {option} requires CSV mode");
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
            None => Ok(CopyFormat::Parquet),
        }
    }

    fn csv(&self, delimiter: u8) -> Result<CopyFormat, SqlError> {
        let byte = |c: Option<char>, default: u8, name: &str| match c {
            None => Ok(default),
            Some(c) if c.is_ascii() && c != '\n' && c != '\r' && c != '\0' => Ok(c as u8),
            Some('\n' | '\r') => {
                let message = format!("COPY {name} cannot be newline or carriage return");
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
            }
            Some(_) => {
                let message = format!("COPY {name} must be a single one-byte character");
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
        };
        let quote = byte(self.quote, b'"', "quote")?;
        let options = CsvOptions {
            header: self.header.unwrap_or(false),
            delimiter: byte(self.delimiter, delimiter, "delimiter")?,
            quote,
            escape: byte(self.escape, quote, "escape")?,
            null: self.null.clone().unwrap_or_default(),
        };
        let contradiction = if options.delimiter == options.quote {
            "COPY delimiter and quote must be different"
        } else if options.null.contains(['\n', '\r']) {
            "COPY null representation cannot use newline or carriage return"
        } else if options.null.contains(options.delimiter as char) {
            "COPY delimiter character must not appear in the NULL specification"
        } else if options.null.contains(options.quote as char) {
            "CSV quote character must not appear in the NULL specification"
        } else {
            return Ok(CopyFormat::Csv(options));
        };
        Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, contradiction))
    }
}
