//! The parser's place among the tokens, names, labels, and errors.

use albireo_base::{SqlError, SqlState};
use albireo_sql::names::{MAX_NAME_BYTES, closest};

use super::MAX_NESTING;
use super::ast::{Name, Span, VariableRef};
use super::lexer::{Broken, Token, TokenKind, tokens};

/// Words that are no names unless they are quoted.
const RESERVED: [&str; 24] = [
    "all", "begin", "by", "case", "declare", "else", "end", "execute", "for", "foreach", "from", "if", "in",
    "into", "loop", "not", "null", "or", "strict", "then", "to", "using", "when", "while",
];

/// How much of the text an error shows, in characters.
const EXCERPT: usize = 40;

/// A block or loop that surrounds what is being read.
pub(crate) struct Scope {
    pub(crate) label: Option<String>,
    pub(crate) is_loop: bool,
}

/// Reads one body.
pub(crate) struct Parser<'a> {
    pub(crate) source: &'a str,
    tokens: Vec<Token>,
    /// The token at hand.
    pub(crate) at: usize,
    /// Blocks and loops around it, the innermost last.
    pub(crate) scopes: Vec<Scope>,
    /// Lists of statements around it.
    depth: usize,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(source: &'a str) -> Self {
        Self { source, tokens: tokens(source), at: 0, scopes: Vec::new(), depth: 0 }
    }

    /// The token number `n` of all, or the last, which is the end.
    pub(crate) fn token(&self, n: usize) -> Token {
        self.tokens[n.min(self.tokens.len() - 1)]
    }

    /// The token at hand.
    pub(crate) fn peek(&self) -> Token {
        self.token(self.at)
    }

    /// The `n`th token after the one at hand.
    pub(crate) fn peek_nth(&self, n: usize) -> Token {
        self.token(self.at + n)
    }

    /// Takes the token at hand; the end stays.
    pub(crate) fn advance(&mut self) -> Token {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// The span of the token taken last.
    pub(crate) fn last_span(&self) -> Span {
        self.token(self.at.saturating_sub(1)).span
    }

    /// From the beginning of `start` to the token taken last.
    pub(crate) fn since(&self, start: Span) -> Span {
        Span { start: start.start, end: self.last_span().end.max(start.end) }
    }

    pub(crate) fn text(&self, token: Token) -> &'a str {
        token.span.text(self.source)
    }

    /// The token's keyword in lower case; empty if it is no word.
    pub(crate) fn keyword(&self, token: Token) -> String {
        match token.kind {
            TokenKind::Word => self.text(token).to_ascii_lowercase(),
            _ => String::new(),
        }
    }

    /// Whether the token is this keyword, in lower case, or this symbol.
    pub(crate) fn is(&self, token: Token, wanted: &str) -> bool {
        let kind = if wanted.starts_with(|c: char| c.is_ascii_alphabetic()) {
            TokenKind::Word
        } else {
            TokenKind::Symbol
        };
        token.kind == kind && self.text(token).eq_ignore_ascii_case(wanted)
    }

    pub(crate) fn next_is(&self, wanted: &str) -> bool {
        self.is(self.peek(), wanted)
    }

    /// Takes the token at hand if it is `wanted`.
    pub(crate) fn eat(&mut self, wanted: &str) -> bool {
        let is = self.next_is(wanted);
        if is {
            self.advance();
        }
        is
    }

    /// Takes `wanted`, which must come.
    pub(crate) fn expect(&mut self, wanted: &str) -> Result<Token, SqlError> {
        match self.next_is(wanted) {
            true => Ok(self.advance()),
            false => {
                let shown = wanted.to_ascii_uppercase();
                Err(self.unexpected(self.peek()).with_detail(format!("Expected {shown}.")))
            }
        }
    }

    /// Whether the token can be a name.
    pub(crate) fn is_name(&self, token: Token) -> bool {
        match token.kind {
            TokenKind::QuotedName => true,
            TokenKind::Word => !RESERVED.contains(&self.keyword(token).as_str()),
            _ => false,
        }
    }

    /// Takes a name.
    pub(crate) fn name(&mut self) -> Result<Name, SqlError> {
        let token = self.peek();
        if !self.is_name(token) {
            return Err(self.unexpected(token));
        }
        self.advance();
        let text = self.text(token);
        let quoted = token.kind == TokenKind::QuotedName;
        let text = match quoted {
            true => text[1..text.len() - 1].replace("\"\"", "\""),
            false => text.to_lowercase(),
        };
        if text.is_empty() {
            return Err(self.complain("zero-length delimited identifier", token));
        }
        if text.len() > MAX_NAME_BYTES {
            let message = format!("identifier \"{text}\" is too long");
            let error = self.error(token.span, SqlState::NAME_TOO_LONG, message);
            return Err(error.with_detail(format!("Names have at most {MAX_NAME_BYTES} bytes.")));
        }
        Ok(Name { text, quoted, span: token.span })
    }

    /// Takes a variable's name with those of its block and record, or a parameter's number.
    pub(crate) fn variable(&mut self) -> Result<VariableRef, SqlError> {
        let first = self.variable_name()?;
        let mut parts = vec![first];
        while self.eat(".") {
            parts.push(self.name()?);
        }
        let span = self.since(parts[0].span);
        Ok(VariableRef { parts, span })
    }

    /// Takes a name or a parameter's number.
    pub(crate) fn variable_name(&mut self) -> Result<Name, SqlError> {
        let token = self.peek();
        match token.kind {
            TokenKind::Parameter => {
                self.advance();
                Ok(Name { text: self.text(token).to_owned(), quoted: false, span: token.span })
            }
            _ => self.name(),
        }
    }

    /// Takes variables with commas between them.
    pub(crate) fn variables(&mut self) -> Result<Vec<VariableRef>, SqlError> {
        let mut all = vec![self.variable()?];
        while self.eat(",") {
            all.push(self.variable()?);
        }
        Ok(all)
    }

    /// Reads with `read` what is one level deeper.
    pub(crate) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        if self.depth == MAX_NESTING {
            let message = "the procedure is nested too deeply";
            let error = self.error(self.peek().span, SqlState::STATEMENT_TOO_COMPLEX, message);
            return Err(error
                .with_detail(format!("Blocks, loops, IF and CASE may be nested {MAX_NESTING} deep."))
                .with_hint("Use ELSIF instead of IF within ELSE, or move a part to a separate procedure."));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads with `read` what is inside a block or loop.
    pub(crate) fn scoped<T>(
        &mut self,
        label: Option<&Name>,
        is_loop: bool,
        read: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        self.scopes.push(Scope { label: label.map(|label| label.text.clone()), is_loop });
        let result = read(self);
        self.scopes.pop();
        result
    }

    /// An error at `span`.
    pub(crate) fn error(&self, span: Span, state: SqlState, message: impl Into<String>) -> SqlError {
        SqlError::new(state, message).with_position(span.position(self.source))
    }

    /// 42601 at `span`.
    pub(crate) fn syntax(&self, span: Span, message: impl Into<String>) -> SqlError {
        self.error(span, SqlState::SYNTAX_ERROR, message)
    }

    /// `syntax error at or near "x"`; or what is wrong with the token itself.
    pub(crate) fn unexpected(&self, token: Token) -> SqlError {
        self.complain("syntax error", token)
    }

    /// `what at or near "x"`; or what is wrong with the token itself.
    pub(crate) fn complain(&self, what: &str, token: Token) -> SqlError {
        let what = match token.kind {
            TokenKind::Broken(Broken::String) => "unterminated quoted string",
            TokenKind::Broken(Broken::DollarString) => "unterminated dollar-quoted string",
            TokenKind::Broken(Broken::Name) => "unterminated quoted identifier",
            TokenKind::Broken(Broken::Comment) => "unterminated /* comment",
            TokenKind::Broken(Broken::Number) => "trailing junk after numeric literal",
            _ => what,
        };
        let place = match token.kind {
            TokenKind::End => "at end of input".to_owned(),
            _ => {
                let line = self.text(token).lines().next().unwrap_or_default();
                format!("at or near \"{}\"", line.chars().take(EXCERPT).collect::<String>())
            }
        };
        self.syntax(token.span, format!("{what} {place}"))
    }

    /// Adds to an error about `token` which of `known` may have been meant.
    pub(crate) fn suggest<'k>(
        &self,
        error: SqlError,
        token: Token,
        known: impl IntoIterator<Item = &'k str>,
    ) -> SqlError {
        let word = self.keyword(token);
        match closest(&word, known).filter(|known| *known != word) {
            Some(meant) => error.with_hint(format!("Perhaps you meant {}.", meant.to_ascii_uppercase())),
            None => error,
        }
    }
}
