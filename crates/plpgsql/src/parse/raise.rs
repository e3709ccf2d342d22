//! RAISE.

use albireo_base::SqlError;
use albireo_sql::ast::{Expr, Value};
use albireo_sql::parse::Fragment;

use super::ast::{Raise, RaiseKind, RaiseLevel, RaiseMessage, RaiseOption, RaiseOptionKind, StatementKind};
use super::lexer::{Token, TokenKind};
use super::parser::Parser;

/// The names of the options.
const OPTIONS: [(&str, RaiseOptionKind); 9] = [
    ("errcode", RaiseOptionKind::Errcode),
    ("message", RaiseOptionKind::Message),
    ("detail", RaiseOptionKind::Detail),
    ("hint", RaiseOptionKind::Hint),
    ("column", RaiseOptionKind::Column),
    ("constraint", RaiseOptionKind::Constraint),
    ("datatype", RaiseOptionKind::Datatype),
    ("table", RaiseOptionKind::Table),
    ("schema", RaiseOptionKind::Schema),
];

impl Parser<'_> {
    pub(super) fn raise(&mut self) -> Result<StatementKind, SqlError> {
        self.advance();
        if self.next_is(";") {
            let (level, kind) = (RaiseLevel::Exception, RaiseKind::Again);
            return Ok(StatementKind::Raise(Raise { level, kind, options: Vec::new() }));
        }
        let level = self.raise_level();
        let token = self.peek();
        let kind = match token.kind {
            TokenKind::String => RaiseKind::Message(self.raise_message()?),
            _ if self.next_is("using") => RaiseKind::Options,
            _ => {
                let condition = self.condition(false)?;
                if !self.next_is(";") && !self.next_is("using") {
                    return Err(self.unexpected(self.peek()));
                }
                RaiseKind::Condition(condition)
            }
        };
        let options = match self.eat("using") {
            true => self.raise_options(&kind)?,
            false => Vec::new(),
        };
        Ok(StatementKind::Raise(Raise { level, kind, options }))
    }

    fn raise_level(&mut self) -> RaiseLevel {
        let level = match self.keyword(self.peek()).as_str() {
            "debug" => RaiseLevel::Debug,
            "log" => RaiseLevel::Log,
            "info" => RaiseLevel::Info,
            "notice" => RaiseLevel::Notice,
            "warning" => RaiseLevel::Warning,
            "exception" => RaiseLevel::Exception,
            _ => return RaiseLevel::Exception,
        };
        self.advance();
        level
    }

    /// Takes the format and its arguments, as many as it has placeholders.
    fn raise_message(&mut self) -> Result<RaiseMessage, SqlError> {
        let start = self.peek().span;
        let pieces = pieces(&self.string()?);
        let mut arguments = Vec::new();
        if !self.next_is(";") && !self.next_is("using") && !self.next_is(",") {
            return Err(self.unexpected(self.peek()));
        }
        while self.eat(",") {
            arguments.push(self.expression(&[",", ";", "using"])?);
        }
        let wanted = pieces.len() - 1;
        if arguments.len() != wanted {
            let how = if arguments.len() > wanted { "many" } else { "few" };
            let error = self.syntax(start, format!("too {how} parameters specified for RAISE"));
            let detail = format!("The format has {wanted} placeholders, and {} follow.", arguments.len());
            return Err(error.with_detail(detail).with_hint("Write %% for a percent sign."));
        }
        Ok(RaiseMessage { pieces, arguments, span: self.since(start) })
    }

    fn raise_options(&mut self, kind: &RaiseKind) -> Result<Vec<RaiseOption>, SqlError> {
        let mut said = match kind {
            RaiseKind::Message(_) => vec![RaiseOptionKind::Message],
            RaiseKind::Condition(_) => vec![RaiseOptionKind::Errcode],
            RaiseKind::Again | RaiseKind::Options => Vec::new(),
        };
        let mut all = Vec::new();
        while all.is_empty() || self.eat(",") {
            let token = self.peek();
            let kind = self.raise_option()?;
            if !self.eat("=") && !self.eat(":=") {
                return Err(self.complain("syntax error, expected \"=\"", self.peek()));
            }
            if said.contains(&kind) {
                let name = self.text(token).to_ascii_uppercase();
                return Err(self.syntax(token.span, format!("RAISE option already specified: {name}")));
            }
            said.push(kind);
            let value = self.expression(&[",", ";"])?;
            all.push(RaiseOption { kind, value, span: self.since(token.span) });
        }
        Ok(all)
    }

    fn raise_option(&mut self) -> Result<RaiseOptionKind, SqlError> {
        let token = self.peek();
        let word = self.keyword(token);
        match OPTIONS.iter().find(|(name, _)| *name == word) {
            Some((_, kind)) => {
                self.advance();
                Ok(*kind)
            }
            None => {
                let error = self.complain("unrecognized RAISE statement option", token);
                Err(self.suggest(error, token, OPTIONS.iter().map(|(name, _)| *name)))
            }
        }
    }

    /// Takes a string and the value it has; those on the following lines belong to it.
    pub(super) fn string(&mut self) -> Result<String, SqlError> {
        let first = self.peek();
        if first.kind != TokenKind::String {
            return Err(self.unexpected(first));
        }
        let mut text = String::new();
        let mut last = first;
        while self.peek() == first || self.continues(last) {
            text += &self.string_value(self.peek())?;
            last = self.advance();
        }
        Ok(text)
    }

    /// Whether the token at hand is a string that goes on with `last` on another line.
    fn continues(&self, last: Token) -> bool {
        let next = self.peek();
        let is_plain = |token| self.text(token).starts_with('\'');
        let is_string = next.kind == TokenKind::String && is_plain(next) && self.text(last).ends_with('\'');
        is_string && next.line > last.line + self.text(last).matches('\n').count() as u64
    }

    fn string_value(&self, token: Token) -> Result<String, SqlError> {
        let n = self.at;
        match self.read(n..n + 1, None, Fragment::expr)? {
            Expr::Value(value) => match value.value {
                Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Ok(text),
                Value::DollarQuotedString(text) => Ok(text.value),
                _ => Err(self.unexpected(token)),
            },
            _ => Err(self.unexpected(token)),
        }
    }
}

/// The texts around the placeholders of a format.
fn pieces(format: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '%' && rest.next_if_eq(&'%').is_none() {
            pieces.push(String::new());
        } else if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}
