//! COPY: from the statement to what is to be read or written, and how.

#[cfg(test)]
mod tests;

use albireo_base::{ColumnId, SqlError, SqlState};
use sqlparser::ast::{
    CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopySource, CopyTarget, Ident, Statement,
};
use sqlparser::tokenizer::Token;
use std::sync::Arc;

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
        /// Where the file is.
        place: CopyPlace,
        /// How to read it.
        format: CopyFormat,
        /// The name of its encoding, if one was written.
        encoding: Option<String>,
    },
    /// A query's rows into a file.
    To {
        /// The query; for `COPY table TO` a SELECT of its columns.
        query: Box<Statement>,
        /// Where the file goes.
        place: CopyPlace,
        /// How to write it.
        format: CopyFormat,
    },
}

/// Where the bytes are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CopyPlace {
    /// In a file of the database's machine: the path as written.
    File(String),
    /// With the client: STDIN, STDOUT.
    Client,
}

/// A file's format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CopyFormat {
    /// Lines of values parted by a delimiter.
    Csv(CsvOptions),
    /// PostgreSQL's own: tabs, and escapes with a backslash.
    Text(TextOptions),
    /// An object of JSON on each line.
    Json,
    /// Apache Parquet.
    Parquet,
}

/// Whether the first line has the columns' names.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Header {
    /// It has values.
    #[default]
    None,
    /// It has names. Read, they are not looked at.
    Line,
    /// It has names, which must be those of the columns.
    Match,
}

/// How CSV is written; all as in PostgreSQL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CsvOptions {
    /// What the first line has.
    pub header: Header,
    /// What parts values.
    pub delimiter: u8,
    /// What stands around values that hold a delimiter, quote or line end.
    pub quote: u8,
    /// What stands before a quote within quotes.
    pub escape: u8,
    /// What NULL looks like; quoted, it is a string.
    pub null: String,
    /// Columns in which what looks like NULL is a string.
    pub force_not_null: Vec<ColumnId>,
    /// Columns in which what looks like NULL is NULL in quotes too.
    pub force_null: Vec<ColumnId>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self {
            header: Header::None,
            delimiter: b',',
            quote: b'"',
            escape: b'"',
            null: String::new(),
            force_not_null: Vec::new(),
            force_null: Vec::new(),
        }
    }
}

/// How the text format is written; all as in PostgreSQL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextOptions {
    /// What the first line has.
    pub header: Header,
    /// What parts values.
    pub delimiter: u8,
    /// What NULL looks like.
    pub null: String,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { header: Header::None, delimiter: b'\t', null: "\\N".to_owned() }
    }
}

/// The options as written.
#[derive(Default)]
struct Written {
    format: Option<String>,
    header: Option<Header>,
    delimiter: Option<char>,
    quote: Option<char>,
    escape: Option<char>,
    null: Option<String>,
    encoding: Option<String>,
    force_not_null: Option<Vec<Ident>>,
    force_null: Option<Vec<Ident>>,
}

/// Plans a COPY statement. `text` is what it was parsed from.
///
/// # Errors
/// Names of tables and columns; 42601 and 22023 for options that contradict themselves or each
/// other; 0A000 for what we do not have: programs, other formats.
pub fn plan_copy(catalog: &Catalog, statement: &Statement, text: &str) -> Result<CopyPlan, SqlError> {
    let Statement::Copy { source: from, to, target, options, legacy_options, .. } = statement else {
        return Err(SqlError::unsupported(crate::classify::name_of(statement)));
    };
    let source = Source::new(text);
    let place = match target {
        CopyTarget::File { filename } => CopyPlace::File(filename.clone()),
        CopyTarget::Stdin | CopyTarget::Stdout => CopyPlace::Client,
        CopyTarget::Program { .. } => return Err(SqlError::unsupported("COPY with a program")),
    };
    let mut written = Written::default();
    options.iter().try_for_each(|option| written.option(option))?;
    legacy_options.iter().try_for_each(|option| written.legacy(option))?;
    if written.header == Some(Header::Line) && says_match(text)? {
        written.header = Some(Header::Match);
    }
    let mut format = written.format(&place)?;
    match (from, to) {
        (CopySource::Table { table_name, columns }, to) => {
            let table = catalog.resolve_table(&names::qualified(table_name, source)?, source)?;
            let columns = column_list(table, columns, source)?;
            if !to {
                written.force(&mut format, table, source)?;
                let (table, encoding) = (Arc::clone(table), written.encoding);
                return Ok(CopyPlan::From { table, columns, place, format, encoding });
            }
            written.check_to()?;
            let query = select_columns(table, &columns)?;
            Ok(CopyPlan::To { query, place, format })
        }
        (CopySource::Query(query), true) => {
            written.check_to()?;
            Ok(CopyPlan::To { query: Box::new(Statement::Query(query.clone())), place, format })
        }
        (CopySource::Query(_), false) => Err(SqlError::unsupported("COPY (query) FROM")),
    }
}

/// Whether HEADER is followed by MATCH, which the parser does not know and is not shown (`parse::tokens`).
fn says_match(text: &str) -> Result<bool, SqlError> {
    let tokens = crate::parse::tokenize(text)?;
    let words: Vec<Option<&str>> = tokens
        .iter()
        .filter(|token| !crate::parse::is_blank(token))
        .map(|token| match &token.token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.as_str()),
            _ => None,
        })
        .collect();
    let is = |word: Option<&str>, wanted: &str| word.is_some_and(|word| word.eq_ignore_ascii_case(wanted));
    Ok(words.windows(2).any(|pair| is(pair[0], "header") && is(pair[1], "match")))
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

fn select_columns(table: &TableDef, columns: &[ColumnId]) -> Result<Box<Statement>, SqlError> {
    let list: Vec<String> = columns.iter().map(|c| names::display(&table.column_def(*c).name)).collect();
    let (schema, name) = (names::display(&table.schema), names::display(&table.name));
    let text = format!("SELECT {} FROM {schema}.{name}", list.join(", "));
    crate::parse::parse_one(&text).map(Box::new)
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
            CopyOption::Header(on) => set(&mut self.header, header(*on), "header"),
            CopyOption::Delimiter(c) => set(&mut self.delimiter, *c, "delimiter"),
            CopyOption::Quote(c) => set(&mut self.quote, *c, "quote"),
            CopyOption::Escape(c) => set(&mut self.escape, *c, "escape"),
            CopyOption::Null(text) => set(&mut self.null, text.clone(), "null"),
            CopyOption::Encoding(name) => set(&mut self.encoding, name.clone(), "encoding"),
            CopyOption::Freeze(false) => Ok(()),
            CopyOption::Freeze(true) => Err(SqlError::unsupported("FREEZE in COPY")),
            CopyOption::ForceQuote(_) => Err(SqlError::unsupported("FORCE_QUOTE in COPY")),
            CopyOption::ForceNotNull(names) => set(&mut self.force_not_null, names.clone(), "force_not_null"),
            CopyOption::ForceNull(names) => set(&mut self.force_null, names.clone(), "force_null"),
        }
    }

    /// The options as PostgreSQL took them before version 9: `CSV HEADER DELIMITER '|'`.
    fn legacy(&mut self, option: &CopyLegacyOption) -> Result<(), SqlError> {
        match option {
            CopyLegacyOption::Csv(options) => {
                set(&mut self.format, "csv".to_owned(), "format")?;
                for option in options {
                    match option {
                        CopyLegacyCsvOption::Header => set(&mut self.header, Header::Line, "header")?,
                        CopyLegacyCsvOption::Quote(c) => set(&mut self.quote, *c, "quote")?,
                        CopyLegacyCsvOption::Escape(c) => set(&mut self.escape, *c, "escape")?,
                        _ => return Err(SqlError::unsupported("this option of COPY")),
                    }
                }
                Ok(())
            }
            CopyLegacyOption::Parquet => set(&mut self.format, "parquet".to_owned(), "format"),
            CopyLegacyOption::Header => set(&mut self.header, Header::Line, "header"),
            CopyLegacyOption::Delimiter(c) => set(&mut self.delimiter, *c, "delimiter"),
            CopyLegacyOption::Null(text) => set(&mut self.null, text.clone(), "null"),
            other => Err(SqlError::unsupported(format!("the option {other} of COPY"))),
        }
    }

    /// The format, from the file's ending if not written; text for a client.
    fn format(&self, place: &CopyPlace) -> Result<CopyFormat, SqlError> {
        let lower = match place {
            CopyPlace::File(path) => path.to_ascii_lowercase(),
            CopyPlace::Client => ".text".to_owned(),
        };
        let bare =
            [".gz", ".zst"].into_iter().find_map(|ending| lower.strip_suffix(ending)).unwrap_or(&lower);
        let ending = bare.rsplit_once('.').map_or("", |(_, ending)| ending);
        let by_name = self.format.is_none() && matches!(place, CopyPlace::File(_));
        match self.format.as_deref().unwrap_or(ending) {
            "parquet" | "pq" if by_name && bare != lower => {
                Err(SqlError::unsupported("a compressed Parquet file")
                    .with_hint("Parquet compresses by itself."))
            }
            "pq" if by_name => self.parquet(),
            "parquet" => self.parquet(),
            "csv" => self.csv(b','),
            "tsv" if by_name => self.csv(b'\t'),
            "text" if !by_name => self.text(),
            "jsonl" | "ndjson" if by_name => self.json(),
            "json" => self.json(),
            other => Err(self.unknown_format(other, place)),
        }
    }

    fn unknown_format(&self, name: &str, place: &CopyPlace) -> SqlError {
        let invalid = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
        match (&self.format, place) {
            (None, CopyPlace::File(path)) => {
                let error = invalid(format!("cannot tell the format of \"{path}\" from its name"));
                error.with_hint("Add WITH (FORMAT csv), or text, json or parquet.")
            }
            _ => {
                let error = match name {
                    "binary" => SqlError::unsupported("COPY format \"binary\""),
                    _ => invalid(format!("COPY format \"{name}\" not recognized")),
                };
                error.with_hint("The formats are csv, text, json and parquet.")
            }
        }
    }

    /// Refuses what only CSV has, and unless `is_text` what only lines of fields have.
    fn refuse(&self, is_text: bool) -> Result<(), SqlError> {
        let given = [
            (self.quote.is_some(), "QUOTE"),
            (self.escape.is_some(), "ESCAPE"),
            (self.force_null.is_some(), "FORCE_NULL"),
            (self.force_not_null.is_some(), "FORCE_NOT_NULL"),
            (self.header.is_some() && !is_text, "HEADER"),
            (self.delimiter.is_some() && !is_text, "DELIMITER"),
            (self.null.is_some() && !is_text, "NULL"),
        ];
        match given.into_iter().find(|(present, _)| *present) {
            Some((_, option)) => {
                let message = format!("COPY {option} requires CSV mode");
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
            None => Ok(()),
        }
    }

    fn parquet(&self) -> Result<CopyFormat, SqlError> {
        self.refuse(false)?;
        match self.encoding {
            Some(_) => Err(SqlError::unsupported("ENCODING of a Parquet file")),
            None => Ok(CopyFormat::Parquet),
        }
    }

    fn json(&self) -> Result<CopyFormat, SqlError> {
        self.refuse(false).map(|()| CopyFormat::Json)
    }

    fn text(&self) -> Result<CopyFormat, SqlError> {
        self.refuse(true)?;
        let usual = TextOptions::default();
        let options = TextOptions {
            header: self.header.unwrap_or_default(),
            delimiter: byte(self.delimiter, usual.delimiter, "delimiter")?,
            null: self.null.clone().unwrap_or(usual.null),
        };
        let refused = options.delimiter.is_ascii_lowercase() || options.delimiter.is_ascii_digit();
        let contradiction = if refused || matches!(options.delimiter, b'\\' | b'.') {
            let message = format!("COPY delimiter cannot be \"{}\"", char::from(options.delimiter));
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        } else if options.null.contains(['\n', '\r']) {
            "COPY null representation cannot use newline or carriage return"
        } else if options.null.contains(options.delimiter as char) {
            "COPY delimiter character must not appear in the NULL specification"
        } else {
            return Ok(CopyFormat::Text(options));
        };
        Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, contradiction))
    }

    fn csv(&self, delimiter: u8) -> Result<CopyFormat, SqlError> {
        let quote = byte(self.quote, b'"', "quote")?;
        let options = CsvOptions {
            header: self.header.unwrap_or_default(),
            delimiter: byte(self.delimiter, delimiter, "delimiter")?,
            quote,
            escape: byte(self.escape, quote, "escape")?,
            null: self.null.clone().unwrap_or_default(),
            ..CsvOptions::default()
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

    /// FORCE_NULL and FORCE_NOT_NULL, whose columns only a table has.
    fn force(&self, format: &mut CopyFormat, table: &TableDef, source: Source<'_>) -> Result<(), SqlError> {
        let CopyFormat::Csv(options) = format else { return Ok(()) };
        if let Some(names) = &self.force_null {
            options.force_null = column_list(table, names, source)?;
        }
        if let Some(names) = &self.force_not_null {
            options.force_not_null = column_list(table, names, source)?;
        }
        Ok(())
    }

    /// Refuses what only COPY FROM has.
    fn check_to(&self) -> Result<(), SqlError> {
        let utf8 = |name: &String| name.replace(['-', '_'], "").eq_ignore_ascii_case("utf8");
        if let Some(name) = self.encoding.as_ref().filter(|name| !utf8(name)) {
            return Err(SqlError::unsupported(format!("encoding \"{name}\" in COPY TO")));
        }
        let only_from = |option: &str| {
            let message = format!("COPY {option} only available using COPY FROM");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        };
        match () {
            () if self.force_null.is_some() => only_from("force null"),
            () if self.force_not_null.is_some() => only_from("force not null"),
            () if self.header == Some(Header::Match) => {
                let message = "cannot use \"match\" with HEADER in COPY TO";
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
            () => Ok(()),
        }
    }
}

fn header(on: bool) -> Header {
    if on { Header::Line } else { Header::None }
}

/// An option that is one byte.
fn byte(written: Option<char>, usual: u8, name: &str) -> Result<u8, SqlError> {
    match written {
        None => Ok(usual),
        Some(c) if c.is_ascii() && c != '\n' && c != '\r' && c != '\0' => Ok(c as u8),
        Some('\n' | '\r') => {
            let message = format!("COPY {name} cannot be newline or carriage return");
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
        }
        Some(_) => {
            let message = format!("COPY {name} must be a single one-byte character");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
    }
}
