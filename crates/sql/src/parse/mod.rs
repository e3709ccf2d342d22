//! Text to syntax trees, in PostgreSQL's dialect.
//!
//! Responsible for: tokens, the limits that keep a hostile statement from overflowing the stack
//! (`depth`, `balance`), the clauses the parser wants in another order (`tokens`), SQL inside of larger
//! texts (`fragment`), and errors that read as PostgreSQL's and point at the token. Not responsible
//! for: what names mean.
//!
//! Invariant: a syntax tree this module returns is shallow enough to be walked, cloned and dropped
//! recursively on a stack of 2 MiB (test: `tests`).

mod balance;
mod depth;
mod dialect;
mod fragment;
mod merge;
#[cfg(test)]
mod tests;
mod tokens;

use albireo_base::{SqlError, SqlState, budget};
use sqlparser::ast::{Expr, Statement};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::source::{Cursor, Source};

pub use depth::{MAX_DEPTH, MAX_LOGIC, MAX_SET_OPERATIONS};
pub use fragment::Fragment;
pub use sqlparser::tokenizer::Location;

/// Memory of a syntax tree for each token of its text.
const TREE_BYTES: usize = 100;

/// How deep expressions and queries may be nested in parentheses, CASE and the like.
pub const MAX_NESTING: usize = 100;

/// Reads all statements in `text`. Positions in errors, and the places in the trees, count from
/// the beginning of `text`.
///
/// # Errors
/// 42601 with position for what is not SQL, 54001 for a statement that is nested too deeply, 0A000
/// for PREPARE and for functions, procedures and triggers.
pub fn parse(text: &str) -> Result<Vec<Statement>, SqlError> {
    let tokens = tokenize(text)?;
    statements(&tokens).map(|tokens| parse_tokens(text, tokens.to_vec())).collect()
}

/// Reads exactly one statement.
///
/// # Errors
/// As [`parse`]; also 42601 if `text` holds no statement or more than one.
pub fn parse_one(text: &str) -> Result<Statement, SqlError> {
    let mut all = parse(text)?;
    match (all.pop(), all.is_empty()) {
        (Some(statement), true) => Ok(statement),
        (None, _) => Err(SqlError::new(SqlState::SYNTAX_ERROR, "the statement is empty")),
        (Some(_), false) => {
            let message = "cannot insert multiple commands into a prepared statement";
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
        }
    }
}

/// Reads one expression, such as a default that was kept as text.
///
/// # Errors
/// As [`parse`].
pub fn parse_expr(text: &str) -> Result<Expr, SqlError> {
    expr_of(text, tokenize(text)?)
}

fn expr_of(text: &str, tokens: Vec<TokenWithSpan>) -> Result<Expr, SqlError> {
    let mut expr = run(text, tokens, |parser| parser.parse_expr())?;
    balance::balance(&mut expr);
    Ok(expr)
}

/// Has `read` read all of `tokens`, within the limits.
fn run<T>(
    text: &str,
    tokens: Vec<TokenWithSpan>,
    read: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<T, SqlError> {
    depth::check(text, &tokens)?;
    // A copy of the tokens, and the tree.
    budget::take(tokens.len().saturating_mul(size_of::<TokenWithSpan>() + TREE_BYTES))?;
    recursive::set_minimum_stack_size(STACK_BYTES);
    let dialect = dialect::PostgreSql::new(tokens.len()).with_merge(merge::occurs_in(&tokens));
    let mut parser =
        Parser::new(&dialect).with_recursion_limit(MAX_NESTING).with_tokens_with_locations(tokens.clone());
    let tree = read(&mut parser).map_err(|error| {
        if dialect.is_exhausted() { depth::too_deep() } else { syntax_error(text, &tokens, &parser, &error) }
    })?;
    expect_end(text, &parser)?;
    Ok(tree)
}

/// The tokens of `text`, blanks and comments included.
pub(crate) fn tokenize(text: &str) -> Result<Vec<TokenWithSpan>, SqlError> {
    let tokens = Tokenizer::new(&dialect::PostgreSql::new(0), text).tokenize_with_location();
    let tokens = tokens.map_err(|error| {
        let (message, position) = token_error(text, &error.message, error.location);
        SqlError::new(SqlState::SYNTAX_ERROR, message).with_position(position)
    })?;
    budget::take(tokens.len().saturating_mul(size_of::<TokenWithSpan>()))?;
    Ok(tokens)
}

/// What stands between semicolons and is not blank.
pub(crate) fn statements(tokens: &[TokenWithSpan]) -> impl Iterator<Item = &[TokenWithSpan]> {
    let parts = tokens.split(|token| token.token == Token::SemiColon);
    parts.filter(|part| part.iter().any(|token| !is_blank(token)))
}

pub(crate) fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// The parser takes a new stack when less than this is left of the one it is on; its functions need
/// more than the 128 KiB it asks for by itself, at least without optimization. The setting is the
/// process's, and more does not harm anybody.
const STACK_BYTES: usize = 512 << 10;

fn parse_tokens(text: &str, tokens: Vec<TokenWithSpan>) -> Result<Statement, SqlError> {
    tokens::refuse(text, &tokens)?;
    let mut statement = run(text, tokens::reorder(tokens), |parser| parser.parse_statement())?;
    balance::balance(&mut statement);
    Ok(statement)
}

fn expect_end(text: &str, parser: &Parser<'_>) -> Result<(), SqlError> {
    let next = parser.peek_token_ref();
    match next.token {
        Token::EOF => Ok(()),
        _ => Err(near(text, next, None)),
    }
}

/// The tokenizer's complaint in PostgreSQL's words, and its position.
fn token_error(text: &str, message: &str, location: Location) -> (String, usize) {
    let mut cursor = Cursor::new(text);
    cursor.advance(location);
    let rest = excerpt(&text[cursor.bytes..]);
    let message = message.to_ascii_lowercase();
    let what = if message.contains("dollar") {
        "unterminated dollar-quoted string"
    } else if message.contains("string") || message.contains("literal") {
        "unterminated quoted string"
    } else if message.contains("delimited") || message.contains("close") {
        "unterminated quoted identifier"
    } else if message.contains("comment") {
        "unterminated /* comment"
    } else {
        "syntax error"
    };
    let place = if rest.is_empty() {
        if what == "syntax error" { "at end of input".to_owned() } else { String::new() }
    } else {
        format!("at or near \"{rest}\"")
    };
    (format!("{what} {place}").trim_end().to_owned(), cursor.chars + 1)
}

/// The first line, or its first forty characters.
fn excerpt(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(40).collect()
}

fn syntax_error(text: &str, tokens: &[TokenWithSpan], parser: &Parser<'_>, error: &ParserError) -> SqlError {
    let message = match error {
        ParserError::RecursionLimitExceeded => return depth::too_deep(),
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
    };
    let (what, location) = split_location(message);
    if let Some(location) = location
        && let Some(token) = tokens.iter().find(|t| t.span.start == location && !is_blank(t))
    {
        return near(text, token, Some(what));
    }
    if what.ends_with("found: EOF") {
        let position = text.chars().count() + 1;
        let end = SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input");
        return with_expectation(end, what).with_position(position);
    }
    // Some complaints come without a place; the parser then stands at the token or just after.
    let found = what.rsplit_once("found: ").map(|(_, found)| found);
    let nearby = [parser.get_current_token(), parser.peek_token_ref()];
    if let Some(token) = nearby.into_iter().find(|token| found == Some(token.to_string().as_str())) {
        return near(text, token, Some(what));
    }
    let error = SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error: {what}"));
    match location.and_then(|location| Source::new(text).position(location)) {
        Some(position) => error.with_position(position),
        None => error,
    }
}

/// `syntax error at or near "x"`, with what was expected instead where the parser said so.
fn near(text: &str, token: &TokenWithSpan, what: Option<&str>) -> SqlError {
    let mut cursor = Cursor::new(text);
    let (start, position) = {
        let at = cursor.advance(token.span.start);
        (at.bytes, at.chars + 1)
    };
    let end = cursor.advance(token.span.end).bytes;
    let message = format!("syntax error at or near \"{}\"", excerpt(&text[start..end]));
    let error = SqlError::new(SqlState::SYNTAX_ERROR, message).with_position(position);
    what.map_or(error.clone(), |what| with_expectation(error, what))
}

/// Turns `Expected: an expression, found: x` into a detail.
fn with_expectation(error: SqlError, what: &str) -> SqlError {
    let expected = what.strip_prefix("Expected: ").or_else(|| what.strip_prefix("Expected "));
    let expected = expected.and_then(|rest| rest.rsplit_once(", found:"));
    match expected {
        Some((expected, _)) => error.with_detail(format!("Expected {expected}.")),
        None => error,
    }
}

/// Takes ` at Line: 1, Column: 8` off a message.
fn split_location(message: &str) -> (&str, Option<Location>) {
    let parse = || {
        let (what, place) = message.rsplit_once(" at Line: ")?;
        let (line, column) = place.split_once(", Column: ")?;
        Some((what, Location { line: line.parse().ok()?, column: column.parse().ok()? }))
    };
    match parse() {
        Some((what, location)) => (what, Some(location)),
        None => (message, None),
    }
}
