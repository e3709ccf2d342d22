//! Identifiers: folding, qualified names, suggestions for misspelt ones.

use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use sqlparser::tokenizer::Span;

use crate::source::Source;

/// The longest name, in bytes.
pub const MAX_NAME_BYTES: usize = 63;

/// Words that PostgreSQL takes for no name unless they are quoted.
const RESERVED: [&str; 40] = [
    "all",
    "and",
    "any",
    "as",
    "asc",
    "between",
    "by",
    "case",
    "cast",
    "check",
    "column",
    "constraint",
    "create",
    "default",
    "desc",
    "distinct",
    "else",
    "end",
    "except",
    "fetch",
    "for",
    "from",
    "grant",
    "group",
    "having",
    "in",
    "intersect",
    "into",
    "limit",
    "not",
    "null",
    "offset",
    "on",
    "or",
    "order",
    "select",
    "table",
    "union",
    "using",
    "where",
];

/// Whether a word without quotes cannot be a table's name.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(word))
}

/// The name an identifier means: as written in double quotes, else in lower case.
pub fn fold(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// `name` as SQL text: bare if it may stand so, else in double quotes.
pub fn display(name: &str) -> String {
    let bare = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if bare { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A name that may carry its schema's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QualifiedName {
    /// The schema, if written.
    pub schema: Option<String>,
    /// The name itself.
    pub name: String,
    /// Where it stands.
    pub span: Span,
}

impl std::fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Takes a name of one or two parts apart.
///
/// # Errors
/// 0A000 for three parts or more (we have one database), 42622 for too long a name.
pub fn qualified(name: &ObjectName, source: Source<'_>) -> Result<QualifiedName, SqlError> {
    let idents: Vec<&Ident> = name.0.iter().filter_map(ObjectNamePart::as_ident).collect();
    let (schema, last) = match idents.as_slice() {
        [last] if name.0.len() == 1 => (None, *last),
        [schema, last] if name.0.len() == 2 => (Some(fold(schema)), *last),
        _ => {
            let message = format!("cross-database references are not implemented: {name}");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
    };
    let span = idents.first().map_or_else(Span::empty, |first| first.span);
    Ok(QualifiedName { schema, name: checked(last, source)?, span })
}

/// [`fold`], refusing names that are empty or too long.
///
/// # Errors
/// 42601 for `""`, 42622 for more than [`MAX_NAME_BYTES`].
pub fn checked(ident: &Ident, source: Source<'_>) -> Result<String, SqlError> {
    let name = fold(ident);
    let error = if name.is_empty() {
        SqlError::new(SqlState::SYNTAX_ERROR, "zero-length delimited identifier at or near \"\"\"\"")
    } else if name.len() > MAX_NAME_BYTES && ident.quote_style != Some('\'') {
        SqlError::new(SqlState::NAME_TOO_LONG, format!("identifier \"{name}\" is too long"))
            .with_detail(format!("Names have at most {MAX_NAME_BYTES} bytes."))
    } else {
        return Ok(name);
    };
    Err(source.locate(error, ident.span))
}

/// The candidate most like `name`, if one is like it enough to be what was meant.
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let limit = (wanted.chars().count() / 3).clamp(1, 3);
    let distances = candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&wanted, &candidate.to_lowercase()), candidate));
    let best = distances.min_by_key(|(distance, _)| *distance)?;
    (best.0 <= limit && best.0 < wanted.chars().count()).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closest_finds_typos_and_nothing_else() {
        let names = ["customer", "orders", "order_line", "id"];
        assert_eq!(closest("custmoer", names), Some("customer"));
        assert_eq!(closest("Orders", names), Some("orders"));
        assert_eq!(closest("orderline", names), Some("order_line"));
        assert_eq!(closest("warehouse", names), None);
        assert_eq!(closest("x", names), None);
        assert_eq!(closest("di", names), Some("id"));
    }

    #[test]
    fn display_quotes_only_what_needs_it() {
        assert_eq!(display("w_id"), "w_id");
        assert_eq!(display("W"), "\"W\"");
        assert_eq!(display("a\"b"), "\"a\"\"b\"");
    }
}
