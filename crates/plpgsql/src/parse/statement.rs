//! Statements that hold no other statements.

use albireo_base::{SqlError, budget};
use albireo_sql::ast as tree;
use albireo_sql::classify::{self, Setting};
use albireo_sql::parse::Fragment;

use super::ast::{Accessor, Assignee, Diagnostic, DiagnosticItem, Expression, StatementKind};
use super::lexer::TokenKind;
use super::parser::Parser;

/// The memory of a statement without its expressions.
const STATEMENT_BYTES: usize = 512;

/// What a statement can begin with, for suggestions.
const STATEMENTS: [&str; 30] = [
    "assert",
    "begin",
    "call",
    "case",
    "continue",
    "declare",
    "delete",
    "elsif",
    "end",
    "exception",
    "exit",
    "for",
    "foreach",
    "get",
    "if",
    "insert",
    "loop",
    "merge",
    "null",
    "perform",
    "raise",
    "return",
    "rollback",
    "select",
    "set",
    "update",
    "values",
    "while",
    "with",
    "commit",
];

impl Parser<'_> {
    /// Takes one statement up to its semicolon.
    pub(super) fn statement(&mut self) -> Result<StatementKind, SqlError> {
        budget::take(STATEMENT_BYTES)?;
        let token = self.peek();
        if self.at_assignment() {
            return self.assignment();
        }
        if self.next_is("<<") {
            return self.labelled();
        }
        let word = self.keyword(token);
        match word.as_str() {
            "declare" | "begin" | "loop" | "while" | "for" | "foreach" => self.labelled(),
            "if" => self.an_if(),
            "case" => self.a_case(),
            "exit" | "continue" => self.jump(),
            "perform" => {
                self.advance();
                Ok(StatementKind::Perform(self.bare_select(token)?))
            }
            "call" => self.call(),
            "get" => self.get_diagnostics(),
            "raise" => self.raise(),
            "assert" => self.assert(),
            "set" => self.set(),
            "return" => self.a_return(),
            "null" => {
                self.advance();
                Ok(StatementKind::Null)
            }
            "select" | "insert" | "update" | "delete" | "merge" | "with" | "values" => {
                let (query, into) = self.sql_with_into()?;
                Ok(StatementKind::Sql { query, into })
            }
            _ => Err(self.refusal(&word, token).unwrap_or_else(|| {
                let error = self.unexpected(token);
                if token.kind == TokenKind::Word { self.suggest(error, token, STATEMENTS) } else { error }
            })),
        }
    }

    /// Whether an assignment comes: a name and `:=`, `=`, or more of the target.
    pub(super) fn at_assignment(&self) -> bool {
        let token = self.peek();
        let next = self.peek_nth(1);
        (token.kind == TokenKind::Parameter || self.is_name(token))
            && [":=", "=", "[", "."].iter().any(|symbol| self.is(next, symbol))
    }

    fn assignment(&mut self) -> Result<StatementKind, SqlError> {
        let variable = self.variable_name()?;
        let mut path = Vec::new();
        let mut subscripted = false;
        loop {
            let token = self.peek();
            if self.eat(".") {
                path.push(Accessor::Field(self.name()?));
                subscripted = false;
            } else if self.eat("[") {
                if subscripted {
                    return Err(self.refuse_dimensions(token));
                }
                let end = self.find_end(&["]", ":"], "expression")?;
                if self.is(self.token(end), ":") {
                    return Err(self.refuse_array_slice(self.token(end)));
                }
                path.push(Accessor::Subscript(self.expression_to(end)?));
                self.expect("]")?;
                subscripted = true;
            } else {
                break;
            }
        }
        let span = self.since(variable.span);
        if !self.eat(":=") && !self.eat("=") {
            return Err(self.unexpected(self.peek()).with_detail("Expected :=."));
        }
        let value = self.expression(&[";"])?;
        Ok(StatementKind::Assign { target: Assignee { variable, path, span }, value })
    }

    fn call(&mut self) -> Result<StatementKind, SqlError> {
        let end = self.find_end(&[";"], "statement")?;
        let read = self.read(self.at..end, None, Fragment::statement)?;
        let start = self.peek();
        self.at = end;
        match read {
            tree::Statement::Call(function) if function.args != tree::FunctionArguments::None => {
                Ok(StatementKind::Call { function: Box::new(function) })
            }
            tree::Statement::Call(_) => {
                let error = self.unexpected(self.peek());
                Err(error.with_hint("A procedure's name is followed by its arguments or by ()."))
            }
            _ => Err(self.unexpected(start)),
        }
    }

    /// The one setting that belongs to a transaction.
    fn set(&mut self) -> Result<StatementKind, SqlError> {
        let start = self.peek();
        let end = self.find_end(&[";"], "statement")?;
        let read = self.read(self.at..end, None, Fragment::statement)?;
        let setting = self.located(self.at, classify::setting(&read))?;
        let Setting::Set { name, value, local } = setting else { return Err(self.unexpected(start)) };
        if !local || name != "synchronous_commit" {
            return Err(self.refuse_setting(start, &name, local));
        }
        let wait = self.located(self.at, classify::synchronous_commit(value.as_deref()))?;
        self.at = end;
        Ok(StatementKind::SynchronousCommit(wait))
    }

    fn assert(&mut self) -> Result<StatementKind, SqlError> {
        self.advance();
        let condition = self.expression(&[",", ";"])?;
        let message = match self.eat(",") {
            true => Some(self.expression(&[";"])?),
            false => None,
        };
        Ok(StatementKind::Assert { condition, message })
    }

    fn a_return(&mut self) -> Result<StatementKind, SqlError> {
        self.advance();
        if self.eat("next") {
            return Ok(StatementKind::ReturnNext(self.value()?));
        }
        if self.eat("query") {
            if self.next_is("execute") {
                return Err(self.refuse_dynamic(self.peek()));
            }
            return Ok(StatementKind::ReturnQuery(self.query(";")?));
        }
        Ok(StatementKind::Return(self.value()?))
    }

    /// Takes an expression, if one comes before the semicolon.
    fn value(&mut self) -> Result<Option<Expression>, SqlError> {
        match self.next_is(";") {
            true => Ok(None),
            false => Ok(Some(self.expression(&[";"])?)),
        }
    }

    fn get_diagnostics(&mut self) -> Result<StatementKind, SqlError> {
        let get = self.advance().span;
        let stacked = self.eat("stacked");
        if !stacked {
            self.eat("current");
        }
        self.expect("diagnostics")?;
        let mut all = Vec::new();
        while all.is_empty() || self.eat(",") {
            let target = self.variable()?;
            if !self.eat(":=") && !self.eat("=") {
                return Err(self.unexpected(self.peek()).with_detail("Expected =."));
            }
            let item = self.diagnostic_item()?;
            if (item == DiagnosticItem::RowCount) == stacked {
                let item = self.text(self.token(self.at - 1)).to_ascii_uppercase();
                let area = if stacked { "STACKED" } else { "CURRENT" };
                let message = format!("diagnostics item {item} is not allowed in GET {area} DIAGNOSTICS");
                return Err(self.syntax(get, message));
            }
            let span = self.since(target.span);
            all.push(Diagnostic { target, item, span });
        }
        Ok(StatementKind::Diagnostics(all))
    }

    fn diagnostic_item(&mut self) -> Result<DiagnosticItem, SqlError> {
        let token = self.peek();
        let item = match self.keyword(token).as_str() {
            "row_count" => DiagnosticItem::RowCount,
            "returned_sqlstate" => DiagnosticItem::ReturnedSqlstate,
            "message_text" => DiagnosticItem::MessageText,
            "pg_exception_detail" => DiagnosticItem::Detail,
            "pg_exception_hint" => DiagnosticItem::Hint,
            word @ ("pg_context"
            | "pg_exception_context"
            | "column_name"
            | "constraint_name"
            | "pg_datatype_name"
            | "table_name"
            | "schema_name") => {
                return Err(self.refused(
                    token,
                    &format!("{} in GET DIAGNOSTICS", word.to_ascii_uppercase()),
                    "It is not kept.",
                    "ROW_COUNT can be had, and of an error being handled RETURNED_SQLSTATE, MESSAGE_TEXT, \
                     PG_EXCEPTION_DETAIL and PG_EXCEPTION_HINT.",
                ));
            }
            _ => {
                let known = ["row_count", "returned_sqlstate", "message_text", "pg_exception_detail"];
                let error = self.complain("unrecognized GET DIAGNOSTICS item", token);
                return Err(self.suggest(error, token, known.into_iter().chain(["pg_exception_hint"])));
            }
        };
        self.advance();
        Ok(item)
    }
}
