//! `WITH (layout = ..., groups = ...)`.
//!
//! `layout` is `'column'` (the default), `'row'` or `'groups'`. With `'groups'`, which `groups`
//! implies, `groups` lists the columns that lie side by side: columns parted by blanks or commas,
//! groups by semicolons, names quoted as in SQL; a column in no group is on its own:
//!
//! ```sql
//! CREATE TABLE stock (...) WITH (groups = 's_quantity s_ytd s_order_cnt; s_dist_01 s_dist_02');
//! ```

use albireo_base::{ColumnId, SqlError, SqlState};
use sqlparser::ast::{CreateTableOptions, Expr, Ident, SqlOption, Value};
use sqlparser::tokenizer::Token;

use crate::catalog::{Layout, TableDef};
use crate::names;
use crate::parse::{is_blank, tokenize};
use crate::source::Source;

const OPTIONS: [&str; 2] = ["layout", "groups"];

/// The layout the options ask for.
pub(super) fn layout(
    table: &TableDef,
    options: &CreateTableOptions,
    source: Source<'_>,
) -> Result<Layout, SqlError> {
    let options = match options {
        CreateTableOptions::None => return Ok(Layout::default()),
        CreateTableOptions::With(options) => options,
        _ => return Err(SqlError::unsupported("this kind of table option")),
    };
    let mut layout = None;
    let mut groups = None;
    for option in options {
        let SqlOption::KeyValue { key, value } = option else {
            return Err(SqlError::unsupported("this kind of table option"));
        };
        let place = match names::fold(key).as_str() {
            "layout" => &mut layout,
            "groups" => &mut groups,
            other => return Err(source.locate(unknown_option(other), key.span)),
        };
        let text = option_text(value)
            .ok_or_else(|| source.locate(invalid(format!("option \"{key}\" wants a string")), key.span))?;
        if place.replace((text, key)).is_some() {
            let message = format!("parameter \"{key}\" specified more than once");
            return Err(source.locate(SqlError::new(SqlState::SYNTAX_ERROR, message), key.span));
        }
    }
    choose(table, layout, groups, source)
}

type Option_<'a> = Option<(String, &'a Ident)>;

fn choose(
    table: &TableDef,
    layout: Option_<'_>,
    groups: Option_<'_>,
    source: Source<'_>,
) -> Result<Layout, SqlError> {
    let name = layout.as_ref().map(|(text, _)| text.to_lowercase());
    match (name.as_deref(), &layout, groups) {
        (None, _, None) | (Some("column"), _, None) => Ok(Layout::Column),
        (Some("row"), _, None) => Ok(Layout::Row),
        (None | Some("groups"), _, Some((text, key))) => parse_groups(table, &text, key, source),
        (Some("groups"), Some((_, key)), None) => {
            let error = invalid("layout \"groups\" needs the option \"groups\"")
                .with_hint("Write WITH (groups = 'a b; c d').");
            Err(source.locate(error, key.span))
        }
        (Some("column" | "row"), _, Some((_, key))) => {
            let error = invalid("the option \"groups\" goes with layout \"groups\" only");
            Err(source.locate(error, key.span))
        }
        (Some(other), at, _) => {
            let error = invalid(format!("invalid value for parameter \"layout\": \"{other}\""))
                .with_hint("Available values: column, row, groups.");
            Err(at.as_ref().map_or(error.clone(), |(_, key)| source.locate(error, key.span)))
        }
    }
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn unknown_option(name: &str) -> SqlError {
    let error = invalid(format!("unrecognized parameter \"{name}\""));
    match names::closest(name, OPTIONS) {
        Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
        None => error.with_hint("Tables have the options layout and groups."),
    }
}

/// A string, or a bare word.
pub(super) fn option_text(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        Expr::Identifier(ident) => Some(names::fold(ident)),
        _ => None,
    }
}

fn parse_groups(table: &TableDef, text: &str, key: &Ident, source: Source<'_>) -> Result<Layout, SqlError> {
    let place = |error: SqlError| source.locate(error, key.span);
    let tokens = tokenize(text).map_err(|_| place(invalid(format!("cannot read groups \"{text}\""))))?;
    let mut groups: Vec<Vec<ColumnId>> = vec![Vec::new()];
    for token in tokens.iter().filter(|token| !is_blank(token)) {
        match &token.token {
            Token::Comma => {}
            Token::SemiColon => groups.push(Vec::new()),
            Token::Word(word) => {
                let ident =
                    Ident { value: word.value.clone(), quote_style: word.quote_style, span: key.span };
                let id = table.resolve_column(&ident, source)?;
                if groups.iter().flatten().any(|other| *other == id) {
                    let message = format!("column \"{}\" is in two groups", names::fold(&ident));
                    return Err(place(SqlError::new(SqlState::DUPLICATE_COLUMN, message)));
                }
                if let Some(group) = groups.last_mut() {
                    group.push(id);
                }
            }
            other => {
                let error = invalid(format!("unexpected \"{other}\" in groups \"{text}\""))
                    .with_hint("Part columns by blanks and groups by semicolons: 'a b; c d'.");
                return Err(place(error));
            }
        }
    }
    groups.retain(|group| !group.is_empty());
    if groups.is_empty() {
        return Err(place(invalid("no columns in groups")));
    }
    Ok(Layout::Groups(groups))
}
