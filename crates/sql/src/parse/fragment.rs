//! Reads parts of a larger text in place, such as the SQL inside a procedure's body.
//!
//! Responsible for: trees and errors whose places count from the beginning of the whole text, so that
//! one [`Source`](crate::source::Source) serves all parts. Not responsible for: where a part begins
//! and ends.

use std::ops::Range;

use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{DataType, Expr, Statement};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};

use super::{dialect, expr_of, parse_tokens, run, token_error};

/// Some of a text's tokens, to be read as if they stood alone.
#[derive(Clone, Debug)]
pub struct Fragment<'a> {
    text: &'a str,
    /// Where the last part ends, in bytes; for errors at the end of input.
    end: usize,
    tokens: Vec<TokenWithSpan>,
}

impl<'a> Fragment<'a> {
    /// Nothing of `text` yet.
    pub fn new(text: &'a str) -> Self {
        Self { text, end: 0, tokens: Vec::new() }
    }

    /// Adds the bytes `part` of the text, which begin at line and column `at`. Parts must come in
    /// order and must not cut a character or a token.
    ///
    /// # Errors
    /// 42601 for a quote or comment that is not closed.
    pub fn push(&mut self, part: Range<usize>, at: Location) -> Result<(), SqlError> {
        self.end = part.end.min(self.text.len());
        let part = self.text.get(part).unwrap_or_default();
        let shift = |location: Location| match location.line {
            0 => location,
            1 => Location::new(at.line, location.column + at.column - 1),
            line => Location::new(line + at.line - 1, location.column),
        };
        let dialect = dialect::PostgreSql::new(0);
        let tokens = Tokenizer::new(&dialect, part).tokenize_with_location().map_err(|error| {
            let (message, position) = token_error(self.read(), &error.message, shift(error.location));
            SqlError::new(SqlState::SYNTAX_ERROR, message).with_position(position)
        })?;
        self.tokens.extend(tokens.into_iter().map(|token| TokenWithSpan {
            token: token.token,
            span: Span { start: shift(token.span.start), end: shift(token.span.end) },
        }));
        Ok(())
    }

    /// Adds the word SELECT, which the text does not have; it has no place.
    pub fn push_select(&mut self) {
        self.tokens.push(TokenWithSpan { token: Token::make_keyword("SELECT"), span: Span::empty() });
    }

    /// Reads all parts together as one statement.
    ///
    /// # Errors
    /// As [`parse`](super::parse).
    pub fn statement(self) -> Result<Statement, SqlError> {
        parse_tokens(self.read(), self.tokens)
    }

    /// Reads all parts together as one expression.
    ///
    /// # Errors
    /// As [`parse`](super::parse).
    pub fn expr(self) -> Result<Expr, SqlError> {
        expr_of(self.read(), self.tokens)
    }

    /// Reads all parts together as the name of a type.
    ///
    /// # Errors
    /// As [`parse`](super::parse).
    pub fn data_type(self) -> Result<DataType, SqlError> {
        run(self.read(), self.tokens, |parser| parser.parse_data_type())
    }

    /// The text up to where the parts end.
    fn read(&self) -> &'a str {
        self.text.get(..self.end).unwrap_or(self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use sqlparser::ast::Spanned;

    const TEXT: &str = "ä :=\n 1 +\n b; select ö into x\n, c from t; numeric (1, ; 'é";

    /// The parts of `TEXT` that begin and end so.
    fn fragment(parts: &[(&str, &str)]) -> Result<Fragment<'static>, SqlError> {
        let mut fragment = Fragment::new(TEXT);
        for (first, last) in parts {
            let start = TEXT.find(first).unwrap();
            let end = start + TEXT[start..].find(last).unwrap() + last.len();
            let before = &TEXT[..start];
            let line = before.matches('\n').count() as u64 + 1;
            let column = before.rsplit('\n').next().unwrap().chars().count() as u64 + 1;
            fragment.push(start..end, Location { line, column })?;
        }
        Ok(fragment)
    }

    #[test]
    fn places_in_a_fragment_count_from_the_beginning_of_the_whole_text() {
        let expr = fragment(&[("1 +", "b")]).unwrap().expr().unwrap();
        assert_eq!(expr.to_string(), "1 + b");
        assert_eq!(Source::new(TEXT).position(expr.span().start), Some(7));
        let Expr::BinaryOp { right, .. } = expr else { panic!("no sum") };
        assert_eq!(Source::new(TEXT).position(right.span().start), Some(12));
    }

    #[test]
    fn parts_are_read_as_one_statement_without_what_is_between_them() {
        let statement = fragment(&[("select", "ö "), (", c", "from t")]).unwrap().statement().unwrap();
        assert_eq!(statement.to_string(), "SELECT ö, c FROM t");
    }

    #[test]
    fn added_select_makes_a_query_of_what_follows() {
        let mut select = Fragment::new("count(*) from t");
        select.push_select();
        select.push(0..15, Location { line: 1, column: 1 }).unwrap();
        assert_eq!(select.statement().unwrap().to_string(), "SELECT count(*) FROM t");
    }

    #[test]
    fn errors_in_a_fragment_point_into_the_whole_text() {
        let error = fragment(&[("1 +", "+")]).unwrap().expr().unwrap_err();
        assert_eq!((error.message(), error.position()), ("syntax error at end of input", Some(10)));
        let error = fragment(&[("x\n, c", "c")]).unwrap().expr().unwrap_err();
        assert_eq!((error.message(), error.position()), ("syntax error at or near \",\"", Some(31)));
        let error = fragment(&[("numeric", ",")]).unwrap().data_type().unwrap_err();
        assert_eq!(error.state(), SqlState::SYNTAX_ERROR);
        let error = fragment(&[("'é", "é")]).unwrap_err();
        assert_eq!(error.message(), "unterminated quoted string at or near \"'é\"");
        assert_eq!(error.position(), Some(TEXT.chars().count() - 1));
    }
}
