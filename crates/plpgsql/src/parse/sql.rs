//! SQL within a body: where it ends, INTO cut out of it, and its tree.

use std::ops::Range;

use albireo_base::SqlError;
use albireo_sql::ast as tree;
use albireo_sql::classify::changes_rows;
use albireo_sql::parse::{Fragment, Location};

use super::ast::{Expression, Into, Query, Span};
use super::lexer::{Token, TokenKind};
use super::parser::Parser;

/// What a query begins with where only a query can stand.
const QUERIES: [&str; 9] = ["select", "with", "values", "table", "insert", "update", "delete", "merge", "("];

impl<'a> Parser<'a> {
    /// The number of the first token that is one of `stops`, keywords or symbols outside of parentheses;
    /// a semicolon always ends.
    pub(crate) fn find_end(&self, stops: &[&str], what: &str) -> Result<usize, SqlError> {
        let mut depth = 0_usize;
        let mut at = self.at;
        loop {
            let token = self.token(at);
            if depth == 0 && stops.iter().any(|stop| self.is(token, stop)) {
                return Ok(at);
            }
            match self.text(token) {
                _ if matches!(token.kind, TokenKind::Broken(_)) => return Err(self.unexpected(token)),
                "(" | "[" => depth += 1,
                ")" | "]" if depth > 0 => depth -= 1,
                ")" | "]" => return Err(self.complain("mismatched parentheses", token)),
                ":" | ":=" if depth == 0 => return Err(self.unexpected(token)),
                _ if self.is_into(at) => return Err(self.unexpected(token)),
                _ if token.kind == TokenKind::End || self.is(token, ";") => {
                    return Err(self.missing(stops, what, at, depth));
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// The error for an expression or statement that ends at token `at`, before any of `stops`.
    fn missing(&self, stops: &[&str], what: &str, at: usize, depth: usize) -> SqlError {
        let token = self.token(at);
        // A bracket that is open is one of the stops.
        let word = stops.iter().find(|stop| stop.starts_with(|c: char| c.is_ascii_alphabetic()));
        match (token.kind, word) {
            _ if depth > 0 || stops.contains(&"]") => self.complain("mismatched parentheses", token),
            (TokenKind::End, _) if at == self.at => self.complain(&format!("missing {what}"), token),
            (TokenKind::End, _) | (_, None) => self.unexpected(token),
            (_, Some(word)) => {
                let word = word.to_ascii_uppercase();
                self.syntax(token.span, format!("missing \"{word}\" at end of SQL {what}"))
            }
        }
    }

    /// Whether token `n` is an INTO other than that of INSERT and MERGE.
    fn is_into(&self, n: usize) -> bool {
        let follows = |word| n > 0 && self.is(self.token(n - 1), word);
        self.is(self.token(n), "into") && !follows("insert") && !follows("merge")
    }

    /// The text of the tokens from the one at hand to `end`, which must not be none.
    fn span_to(&self, end: usize, what: &str) -> Result<Span, SqlError> {
        match end > self.at {
            true => Ok(self.peek().span.to(self.token(end - 1).span)),
            false => Err(self.complain(&format!("missing {what}"), self.peek())),
        }
    }

    /// Takes the expression up to the first of `stops`.
    pub(crate) fn expression(&mut self, stops: &[&str]) -> Result<Expression, SqlError> {
        let end = self.find_end(stops, "expression")?;
        self.expression_to(end)
    }

    /// Takes the expression up to token `end`.
    pub(crate) fn expression_to(&mut self, end: usize) -> Result<Expression, SqlError> {
        let span = self.span_to(end, "expression")?;
        let tree = match self.read(self.at..end, None, Fragment::expr) {
            Ok(tree) => tree,
            Err(error) => self.without_select(end, error)?,
        };
        self.at = end;
        Ok(Expression { tree: Box::new(tree), span })
    }

    /// `count(*) FROM t`, which is short for a query of one value; else `error`.
    fn without_select(&self, end: usize, error: SqlError) -> Result<tree::Expr, SqlError> {
        if !self.has_at_top(end, "from") {
            return Err(self.explain(error, end));
        }
        let tree::Statement::Query(query) = self.select(self.at, end)? else { return Err(error) };
        match query.body.as_ref() {
            tree::SetExpr::Select(select) if select.projection.len() == 1 => Ok(tree::Expr::Subquery(query)),
            _ => Err(error.with_hint("An expression has one value.")),
        }
    }

    /// Says what to do about an expression that cannot be read because of how PL/pgSQL finds its end, or
    /// because it is a query.
    fn explain(&self, error: SqlError, end: usize) -> SqlError {
        if self.next_is("select") {
            return self.unexpected(self.peek()).with_hint("Put the query into parentheses.");
        }
        let stop = self.token(end);
        let cut = ["then", "when"].iter().any(|word| self.is(stop, word)) && self.has_at_top(end, "case");
        match cut {
            true => error.with_hint("Put the CASE expression into parentheses."),
            false => error,
        }
    }

    /// Whether `word` stands before token `end` outside of parentheses.
    fn has_at_top(&self, end: usize, word: &str) -> bool {
        let mut depth = 0_usize;
        (self.at..end).any(|n| {
            let token = self.token(n);
            match self.text(token) {
                "(" | "[" => depth += 1,
                ")" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && self.is(token, word)
        })
    }

    /// Takes expressions with commas between them, up to `stop`.
    pub(crate) fn expressions(&mut self, stop: &str) -> Result<Vec<Expression>, SqlError> {
        // What comes must end right as a whole, whatever its commas are.
        self.find_end(&[stop], "expression")?;
        let mut all = vec![self.expression(&[",", stop])?];
        while self.eat(",") {
            all.push(self.expression(&[",", stop])?);
        }
        Ok(all)
    }

    /// Takes what stands behind a SELECT that is not written, up to the semicolon. `start` is the word in
    /// its place.
    pub(crate) fn bare_select(&mut self, start: Token) -> Result<Query, SqlError> {
        let end = self.find_end(&[";"], "statement")?;
        let span = start.span.to(self.span_to(end, "expression")?);
        let tree = Box::new(self.select(self.at, end)?);
        self.at = end;
        Ok(Query { tree, span })
    }

    fn select(&self, start: usize, end: usize) -> Result<tree::Statement, SqlError> {
        let mut fragment = Fragment::new(self.source);
        fragment.push_select();
        let added = self.add(&mut fragment, start..end);
        self.located(start, added.and_then(|()| fragment.statement()))
    }

    /// Takes the query up to `stop`.
    pub(crate) fn query(&mut self, stop: &str) -> Result<Query, SqlError> {
        let end = self.find_end(&[stop], "statement")?;
        self.query_to(end)
    }

    /// Takes the query up to token `end`.
    pub(crate) fn query_to(&mut self, end: usize) -> Result<Query, SqlError> {
        let span = self.span_to(end, "SQL statement")?;
        if !QUERIES.iter().any(|word| self.next_is(word)) {
            return Err(self.unexpected(self.peek()));
        }
        let tree = self.statement_of(self.at..end, None)?;
        self.at = end;
        Ok(Query { tree, span })
    }

    /// Takes a statement up to the semicolon, and INTO out of it.
    pub(crate) fn sql_with_into(&mut self) -> Result<(Query, Option<Into>), SqlError> {
        let start = self.at;
        let mut into: Option<(Into, Range<usize>)> = None;
        let mut depth = 0_usize;
        loop {
            let token = self.peek();
            match self.text(token) {
                _ if matches!(token.kind, TokenKind::Broken(_)) => return Err(self.unexpected(token)),
                _ if token.kind == TokenKind::End => {
                    return Err(self.complain("unexpected end of function definition", token));
                }
                ";" if depth == 0 => break,
                ";" => return Err(self.complain("mismatched parentheses", token)),
                "(" | "[" => depth += 1,
                ")" | "]" if depth == 0 => return Err(self.complain("mismatched parentheses", token)),
                ")" | "]" => depth -= 1,
                ":=" if depth == 0 => return Err(self.unexpected(token)),
                _ if !self.is_into(self.at) => {}
                _ if into.is_some() => return Err(self.complain("INTO specified more than once", token)),
                _ if depth > 0 => {
                    let hint = "INTO stands outside of the parentheses, in the statement itself.";
                    return Err(self.unexpected(token).with_hint(hint));
                }
                _ => {
                    let first = self.at;
                    into = Some((self.into()?, first..self.at));
                    continue;
                }
            }
            self.advance();
        }
        let span = self.token(start).span.to(self.last_span());
        let (into, cut) = into.unzip();
        let tree = self.statement_of(start..self.at, cut)?;
        Ok((Query { tree, span }, into))
    }

    /// Takes INTO and its targets.
    fn into(&mut self) -> Result<Into, SqlError> {
        let start = self.expect("into")?.span;
        let strict = self.eat("strict");
        let targets = self.variables()?;
        if self.next_is("[") {
            let hint = "Read into a variable, and assign that to the element.";
            return Err(self.unexpected(self.peek()).with_hint(hint));
        }
        Ok(Into { strict, targets, span: self.since(start) })
    }

    /// Has the SQL parser read these tokens without `cut` as a statement that reads or changes rows.
    fn statement_of(
        &self,
        tokens: Range<usize>,
        cut: Option<Range<usize>>,
    ) -> Result<Box<tree::Statement>, SqlError> {
        let first = self.token(tokens.start);
        let tree = self.read(tokens, cut, Fragment::statement)?;
        match tree {
            tree::Statement::Query(_) => Ok(Box::new(tree)),
            _ if changes_rows(&tree) => Ok(Box::new(tree)),
            _ => Err(self.unexpected(first)),
        }
    }

    /// Has the SQL parser read these tokens without `cut`, with `how`.
    pub(crate) fn read<T>(
        &self,
        tokens: Range<usize>,
        cut: Option<Range<usize>>,
        how: impl FnOnce(Fragment<'a>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let mut fragment = Fragment::new(self.source);
        let start = tokens.start;
        let cut = cut.unwrap_or(tokens.end..tokens.end);
        let added = self.add(&mut fragment, start..cut.start);
        let added = added.and_then(|()| self.add(&mut fragment, cut.end..tokens.end));
        self.located(start, added.and_then(|()| how(fragment)))
    }

    /// An error of the SQL parser without a place gets that of token `start`.
    pub(crate) fn located<T>(&self, start: usize, result: Result<T, SqlError>) -> Result<T, SqlError> {
        result.map_err(|error| match error.position() {
            Some(_) => error,
            None => error.with_position(self.token(start).span.position(self.source)),
        })
    }

    fn add(&self, fragment: &mut Fragment<'_>, part: Range<usize>) -> Result<(), SqlError> {
        if part.is_empty() {
            return Ok(());
        }
        let first = self.token(part.start);
        let last = self.token(part.end - 1);
        let at = Location { line: first.line, column: first.column };
        fragment.push(first.span.start..last.span.end, at)
    }
}
