//! Bodies, blocks, labels and handlers.

use albireo_base::{SqlError, SqlState};

use super::ast::{
    Block, Body, Condition, ConditionKind, Handler, Name, Options, Statement, StatementKind, VariableConflict,
};
use super::lexer::{Token, TokenKind};
use super::parser::Parser;
use crate::conditions;

/// What ends a list of statements.
const ENDS: [&str; 6] = ["end", "exception", "else", "elsif", "elseif", "when"];

impl Parser<'_> {
    /// Takes everything.
    pub(super) fn body(mut self) -> Result<Body, SqlError> {
        let start = self.peek().span;
        let options = self.options()?;
        let label = self.label()?;
        let block = self.block(label)?;
        let span = self.since(start);
        self.eat(";");
        match self.peek() {
            Token { kind: TokenKind::End, .. } => Ok(Body { options, block, span }),
            token => Err(self.unexpected(token)),
        }
    }

    /// Takes `#...` lines.
    fn options(&mut self) -> Result<Options, SqlError> {
        let mut options = Options::default();
        while self.eat("#") {
            let option = self.advance();
            let value = self.peek();
            match (self.keyword(option).as_str(), self.keyword(value).as_str()) {
                ("variable_conflict", "error") => options.variable_conflict = VariableConflict::Error,
                ("variable_conflict", "use_variable") => {
                    options.variable_conflict = VariableConflict::UseVariable;
                }
                ("variable_conflict", "use_column") => {
                    options.variable_conflict = VariableConflict::UseColumn;
                }
                ("print_strict_params", "on") => options.print_strict_params = Some(true),
                ("print_strict_params", "off") => options.print_strict_params = Some(false),
                ("option", "dump") => options.dump = true,
                ("variable_conflict", _) => {
                    let hint = "It may be error, use_variable or use_column.";
                    return Err(self.unexpected(value).with_hint(hint));
                }
                ("print_strict_params", _) => {
                    return Err(self.unexpected(value).with_hint("It may be on or off."));
                }
                ("option", _) => return Err(self.unexpected(value)),
                _ => return Err(self.unexpected(option)),
            }
            self.advance();
        }
        Ok(options)
    }

    /// Takes `<<label>>`, if it comes.
    pub(super) fn label(&mut self) -> Result<Option<Name>, SqlError> {
        if !self.eat("<<") {
            return Ok(None);
        }
        let label = self.name()?;
        self.expect(">>")?;
        Ok(Some(label))
    }

    /// Takes the label behind END, if it comes; it must be that of the beginning.
    pub(super) fn end_label(&mut self, label: Option<&Name>) -> Result<(), SqlError> {
        if !self.is_name(self.peek()) {
            return Ok(());
        }
        let end = self.name()?;
        let after = self.peek();
        if after.kind != TokenKind::End && !self.next_is(";") {
            return Err(self.unexpected(after));
        }
        let message = match label {
            Some(label) if label.text == end.text => return Ok(()),
            Some(label) => {
                format!("end label \"{}\" differs from block's label \"{}\"", end.text, label.text)
            }
            None => format!("end label \"{}\" specified for unlabeled block", end.text),
        };
        Err(self.syntax(end.span, message))
    }

    /// Takes a block behind its label, up to its end but not the semicolon.
    pub(super) fn block(&mut self, label: Option<Name>) -> Result<Block, SqlError> {
        let start = label.as_ref().map_or(self.peek().span, |_| self.label_start());
        let declarations = match self.next_is("declare") {
            true => self.declarations()?,
            false => Vec::new(),
        };
        self.expect("begin")?;
        let (statements, handlers) = self.scoped(label.as_ref(), false, |parser| {
            let statements = parser.statements()?;
            let handlers = match parser.eat("exception") {
                true => parser.handlers()?,
                false => Vec::new(),
            };
            Ok((statements, handlers))
        })?;
        self.expect("end")?;
        self.end_label(label.as_ref())?;
        Ok(Block { label, declarations, statements, handlers, span: self.since(start) })
    }

    /// Where the label taken just now begins, with its `<<`.
    fn label_start(&self) -> super::ast::Span {
        self.token(self.at.saturating_sub(3)).span
    }

    /// Takes statements as long as they come.
    pub(super) fn statements(&mut self) -> Result<Vec<Statement>, SqlError> {
        self.nested(|parser| {
            let mut all = Vec::new();
            while !parser.at_end_of_statements() {
                let start = parser.peek().span;
                let kind = parser.statement()?;
                parser.expect(";")?;
                all.push(Statement { kind, span: parser.since(start) });
            }
            Ok(all)
        })
    }

    fn at_end_of_statements(&self) -> bool {
        let token = self.peek();
        let is_end = token.kind == TokenKind::End || ENDS.iter().any(|word| self.is(token, word));
        is_end && !self.at_assignment()
    }

    /// Takes the handlers of a block; one must come.
    fn handlers(&mut self) -> Result<Vec<Handler>, SqlError> {
        let mut all = Vec::new();
        while all.is_empty() || self.next_is("when") {
            let start = self.expect("when")?.span;
            let mut conditions = vec![self.condition(true)?];
            while self.eat("or") {
                conditions.push(self.condition(true)?);
            }
            self.expect("then")?;
            let statements = self.statements()?;
            all.push(Handler { conditions, statements, span: self.since(start) });
        }
        Ok(all)
    }

    /// Takes a condition by name or SQLSTATE; OTHERS where that is one.
    pub(super) fn condition(&mut self, others: bool) -> Result<Condition, SqlError> {
        let token = self.peek();
        if self.eat("sqlstate") {
            let code = self.peek();
            let state = self.sqlstate()?;
            let span = token.span.to(code.span);
            return Ok(Condition { kind: ConditionKind::State(state), span: self.since(span) });
        }
        let name = self.name()?;
        let kind = match name.text.as_str() {
            "others" if others => ConditionKind::Others,
            _ => self.named_condition(&name, token)?,
        };
        Ok(Condition { kind, span: name.span })
    }

    fn named_condition(&self, name: &Name, token: Token) -> Result<ConditionKind, SqlError> {
        let states: Vec<SqlState> = conditions::states(&name.text).collect();
        if !states.is_empty() {
            return Ok(ConditionKind::Named { name: name.text.clone(), states });
        }
        let message = format!("unrecognized exception condition \"{}\"", name.text);
        let error = self.error(token.span, SqlState::UNDEFINED_OBJECT, message);
        Err(match albireo_sql::names::closest(&name.text, conditions::names()) {
            Some(meant) => error.with_hint(format!("Perhaps you meant the condition \"{meant}\".")),
            None => error.with_hint("Write SQLSTATE 'xxxxx' for an error that has no name."),
        })
    }

    /// Takes the string behind SQLSTATE.
    fn sqlstate(&mut self) -> Result<SqlState, SqlError> {
        let token = self.peek();
        let text = self.string()?;
        let code = <[u8; 5]>::try_from(text.as_bytes()).ok();
        let is_valid = |code: &[u8; 5]| code.iter().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
        code.filter(is_valid).map(SqlState).ok_or_else(|| {
            let error = self.complain("invalid SQLSTATE code", token);
            error.with_hint("It has five characters, each a digit or a capital letter.")
        })
    }

    /// Takes a statement that may have a label: a block or a loop.
    pub(super) fn labelled(&mut self) -> Result<StatementKind, SqlError> {
        let label = self.label()?;
        match self.keyword(self.peek()).as_str() {
            "declare" | "begin" => Ok(StatementKind::Block(self.block(label)?)),
            _ => self.a_loop(label),
        }
    }
}
