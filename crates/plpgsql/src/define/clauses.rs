//! What follows a routine's parameters and result: language, body, promises.

use albireo_base::{SqlError, SqlState};

use super::{BodyText, INVALID_FUNCTION_DEFINITION, Language, Volatility};
use crate::parse::ast::Span;
use crate::parse::lexer::{Token, TokenKind};
use crate::parse::parser::Parser;

/// The words that clauses begin with.
pub(super) const FIRST_WORDS: [&str; 24] = [
    "language",
    "as",
    "immutable",
    "stable",
    "volatile",
    "strict",
    "called",
    "returns",
    "security",
    "external",
    "cost",
    "rows",
    "parallel",
    "leakproof",
    "not",
    "window",
    "set",
    "support",
    "transform",
    "return",
    "begin",
    "atomic",
    "with",
    ";",
];

/// What has been read of them.
#[derive(Default)]
pub(super) struct Clauses {
    language: Option<Language>,
    body: Option<BodyText>,
    pub(super) volatility: Option<Volatility>,
    pub(super) strict: Option<bool>,
}

impl Clauses {
    /// Language and body, which must be there.
    pub(super) fn finish(&self, parser: &Parser<'_>) -> Result<(Language, BodyText), SqlError> {
        let missing = |what: &str| {
            let error = SqlError::new(INVALID_FUNCTION_DEFINITION, what);
            error.with_position(parser.peek().span.position(parser.source))
        };
        let body = self.body.clone().ok_or_else(|| missing("no function body specified"))?;
        let language = self.language.ok_or_else(|| missing("no language specified"))?;
        Ok((language, body))
    }
}

/// Takes all clauses, in any order.
pub(super) fn read(parser: &mut Parser<'_>) -> Result<Clauses, SqlError> {
    let mut clauses = Clauses::default();
    loop {
        let token = parser.peek();
        if token.kind == TokenKind::End || parser.next_is(";") {
            return Ok(clauses);
        }
        let word = parser.keyword(token);
        parser.advance();
        match word.as_str() {
            "language" => {
                let language = language(parser)?;
                once(parser, &mut clauses.language, language, token)?;
            }
            "as" => {
                let body = body(parser)?;
                once(parser, &mut clauses.body, body, token)?;
            }
            "immutable" => once(parser, &mut clauses.volatility, Volatility::Immutable, token)?,
            "stable" => once(parser, &mut clauses.volatility, Volatility::Stable, token)?,
            "volatile" => once(parser, &mut clauses.volatility, Volatility::Volatile, token)?,
            "strict" => once(parser, &mut clauses.strict, true, token)?,
            "called" => {
                words(parser, &["on", "null", "input"])?;
                once(parser, &mut clauses.strict, false, token)?;
            }
            "returns" => {
                words(parser, &["null", "on", "null", "input"])?;
                once(parser, &mut clauses.strict, true, token)?;
            }
            _ => without_effect(parser, &word, token)?,
        }
    }
}

/// Notes what a clause says, unless one before said something of the kind.
fn once<T>(parser: &Parser<'_>, place: &mut Option<T>, value: T, token: Token) -> Result<(), SqlError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(parser.syntax(token.span, "conflicting or redundant options")),
    }
}

fn words(parser: &mut Parser<'_>, all: &[&str]) -> Result<(), SqlError> {
    all.iter().try_for_each(|word| parser.expect(word).map(drop))
}

/// Clauses that change nothing here, and those that we do not have.
fn without_effect(parser: &mut Parser<'_>, word: &str, token: Token) -> Result<(), SqlError> {
    match word {
        "external" => words(parser, &["security"]).and_then(|()| security(parser, token)),
        "security" => security(parser, token),
        "cost" | "rows" => match parser.peek().kind {
            TokenKind::Number => {
                parser.advance();
                Ok(())
            }
            _ => Err(parser.unexpected(parser.peek())),
        },
        "parallel" => match parser.eat("safe") || parser.eat("unsafe") || parser.eat("restricted") {
            true => Ok(()),
            false => Err(parser.unexpected(parser.peek())),
        },
        "leakproof" => Ok(()),
        "not" => words(parser, &["leakproof"]),
        "begin" | "return" => {
            Err(refused(parser, token, "a body without quotes", "Write the body as a string: AS $$ ... $$."))
        }
        "set" => Err(refused(parser, token, "SET in the definition of a routine", "Leave it out.")),
        "window" | "support" | "transform" => {
            Err(refused(parser, token, &word.to_ascii_uppercase(), "Leave it out."))
        }
        _ => Err(parser.unexpected(token)),
    }
}

fn security(parser: &mut Parser<'_>, token: Token) -> Result<(), SqlError> {
    if parser.eat("definer") {
        let hint = "A routine runs with the rights of its caller; leave it out.";
        return Err(refused(parser, token, "SECURITY DEFINER", hint));
    }
    words(parser, &["invoker"])
}

fn refused(parser: &Parser<'_>, token: Token, what: &str, hint: &str) -> SqlError {
    let error = SqlError::unsupported(what).with_hint(hint);
    error.with_position(token.span.position(parser.source))
}

/// Takes the name of a language, which may be a string.
fn language(parser: &mut Parser<'_>) -> Result<Language, SqlError> {
    let token = parser.peek();
    let name = match token.kind {
        TokenKind::String => {
            parser.advance();
            unquote(parser, token)?.text.to_lowercase()
        }
        _ => parser.name()?.text,
    };
    match name.as_str() {
        "plpgsql" => Ok(Language::PlPgSql),
        "sql" => Ok(Language::Sql),
        _ => {
            let error = parser.error(
                token.span,
                SqlState::UNDEFINED_OBJECT,
                format!("language \"{name}\" does not exist"),
            );
            Err(error.with_hint("There are plpgsql and sql."))
        }
    }
}

/// Takes the string behind AS.
fn body(parser: &mut Parser<'_>) -> Result<BodyText, SqlError> {
    let token = parser.peek();
    if token.kind != TokenKind::String {
        return Err(parser.unexpected(token));
    }
    parser.advance();
    let body = unquote(parser, token)?;
    if parser.next_is(",") {
        let message = "only one AS item needed for languages sql and plpgsql";
        return Err(parser.error(parser.peek().span, INVALID_FUNCTION_DEFINITION, message));
    }
    Ok(body)
}

/// A string without its quotes.
fn unquote(parser: &Parser<'_>, token: Token) -> Result<BodyText, SqlError> {
    let written = parser.text(token);
    let Span { start, .. } = token.span;
    let before = |bytes: usize| parser.source.get(..start + bytes).map_or(0, |text| text.chars().count());
    if let Some(rest) = written.strip_prefix('$') {
        let open = rest.find('$').map_or(1, |end| end + 2);
        let text = written.get(open..written.len().saturating_sub(open)).unwrap_or_default();
        return Ok(BodyText { text: text.to_owned(), offset: before(open) });
    }
    if !written.starts_with('\'') {
        let hint = "Write it between $$ and $$.";
        return Err(refused(parser, token, "a body with backslashes", hint));
    }
    let text = written.get(1..written.len().saturating_sub(1)).unwrap_or_default();
    Ok(BodyText { text: text.replace("''", "'"), offset: before(1) })
}
