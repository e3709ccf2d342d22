//! DECLARE: names and types.

use std::collections::HashSet;

use albireo_base::{SqlError, SqlState};
use albireo_sql::parse::Fragment;

use super::ast::{Declaration, DeclarationKind, Name, TypeKind, TypeName};
use super::lexer::TokenKind;
use super::parser::Parser;

/// What may follow a type.
const AFTER_TYPE: [&str; 6] = [";", "collate", "not", ":=", "=", "default"];

impl Parser<'_> {
    /// Takes DECLARE and all declarations up to BEGIN.
    pub(crate) fn declarations(&mut self) -> Result<Vec<Declaration>, SqlError> {
        let mut all = Vec::new();
        let mut names = HashSet::new();
        self.expect("declare")?;
        while !self.next_is("begin") {
            if self.eat("declare") {
                continue;
            }
            let token = self.peek();
            if self.next_is("<<") {
                let message = "block label must be placed before DECLARE, not after";
                return Err(self.syntax(token.span, message));
            }
            let name = self.name()?;
            if !names.insert(name.text.clone()) {
                return Err(self.complain("duplicate declaration", token));
            }
            let kind = self.declaration(&name)?;
            self.expect(";")?;
            all.push(Declaration { name, kind, span: self.since(token.span) });
        }
        Ok(all)
    }

    /// Takes what follows the name.
    fn declaration(&mut self, name: &Name) -> Result<DeclarationKind, SqlError> {
        let no_scroll = self.next_is("no") && self.is(self.peek_nth(1), "scroll");
        if self.next_is("cursor") || self.next_is("scroll") || no_scroll {
            return Err(self.refuse_cursor(self.peek()));
        }
        if self.next_is("alias") && self.is(self.peek_nth(1), "for") {
            self.advance();
            self.advance();
            return Ok(DeclarationKind::Alias(self.variable()?));
        }
        let constant = self.eat("constant");
        let ty = self.type_name(name)?;
        if self.next_is("collate") {
            return Err(self.refuse_collate(self.peek()));
        }
        let not = self.peek();
        let not_null = self.eat("not");
        if not_null {
            self.expect("null")?;
        }
        let default = match self.eat(":=") || self.eat("=") || self.eat("default") {
            true => Some(self.expression(&[";"])?),
            false => None,
        };
        if not_null && default.is_none() && self.next_is(";") {
            let message =
                format!("variable \"{}\" must have a default value, since it's declared NOT NULL", name.text);
            return Err(self.error(not.span, SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
        Ok(DeclarationKind::Variable { constant, ty, not_null, default })
    }

    fn type_name(&mut self, variable: &Name) -> Result<TypeName, SqlError> {
        if let Some(ty) = self.type_of()? {
            return Ok(ty);
        }
        let start = self.peek();
        let end = self.type_end()?;
        let only = if end == self.at + 1 { self.keyword(start) } else { String::new() };
        match only.as_str() {
            "record" => {
                self.advance();
                return Ok(TypeName { kind: TypeKind::Record, span: start.span });
            }
            "refcursor" => return Err(self.refuse_cursor(start)),
            _ => {}
        }
        let array = self.array_start(end);
        if array.is_some() && self.next_is("record") {
            let message = format!("variable \"{}\" has pseudo-type record[]", variable.text);
            return Err(self.error(start.span, SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let data_type = self.read(self.at..array.unwrap_or(end), None, Fragment::data_type)?;
        let data_type = Box::new(data_type);
        let kind = match array {
            Some(array) => {
                self.at = array;
                self.array_suffix(end)?;
                TypeKind::Array(data_type)
            }
            None => TypeKind::Plain(data_type),
        };
        self.at = end;
        Ok(TypeName { kind, span: self.since(start.span) })
    }

    /// Takes `name%TYPE` or `name%ROWTYPE`, if it comes.
    pub(crate) fn type_of(&mut self) -> Result<Option<TypeName>, SqlError> {
        let mut n = 0;
        while self.is_name(self.peek_nth(n)) && self.is(self.peek_nth(n + 1), ".") {
            n += 2;
        }
        if !self.is_name(self.peek_nth(n)) || !self.is(self.peek_nth(n + 1), "%") {
            return Ok(None);
        }
        let names = self.variable()?;
        self.expect("%")?;
        let word = self.peek();
        let kind = if self.eat("type") {
            TypeKind::Of(names.parts)
        } else if self.eat("rowtype") {
            TypeKind::RowOf(names.parts)
        } else {
            return Err(self.suggest(self.unexpected(word), word, ["type", "rowtype"]));
        };
        Ok(Some(TypeName { kind, span: self.since(names.span) }))
    }

    /// The number of the token after a type.
    fn type_end(&self) -> Result<usize, SqlError> {
        let mut depth = 0_usize;
        let mut at = self.at;
        loop {
            let token = self.token(at);
            match self.text(token) {
                _ if AFTER_TYPE.iter().any(|word| self.is(token, word)) => break,
                _ if matches!(token.kind, TokenKind::Broken(_)) => return Err(self.unexpected(token)),
                _ if token.kind == TokenKind::End && depth == 0 => {
                    return Err(self.complain("incomplete data type declaration", token));
                }
                _ if token.kind == TokenKind::End => break,
                "(" | "[" => depth += 1,
                ")" | "]" if depth > 0 => depth -= 1,
                ")" | "]" | "," if depth == 0 => break,
                _ => {}
            }
            at += 1;
        }
        match at > self.at && depth == 0 {
            true => Ok(at),
            false if depth > 0 => Err(self.complain("mismatched parentheses", self.token(at))),
            false => Err(self.complain("missing data type declaration", self.peek())),
        }
    }

    /// The number of the token that makes an array of the type before it.
    pub(crate) fn array_start(&self, end: usize) -> Option<usize> {
        let mut depth = 0_usize;
        (self.at + 1..end).find(|n| {
            let token = self.token(*n);
            match self.text(token) {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && (self.is(token, "[") || self.is(token, "array"))
        })
    }

    /// Takes `[]`, `[3]`, `ARRAY` or `ARRAY[3]`; the size means nothing.
    pub(crate) fn array_suffix(&mut self, end: usize) -> Result<(), SqlError> {
        let word = self.eat("array");
        if !word || self.next_is("[") {
            self.expect("[")?;
            if self.peek().kind == TokenKind::Number {
                self.advance();
            }
            self.expect("]")?;
        }
        match self.peek() {
            _ if self.at == end => Ok(()),
            token if self.is(token, "[") => Err(self.refuse_dimensions(token)),
            token => Err(self.unexpected(token)),
        }
    }
}
