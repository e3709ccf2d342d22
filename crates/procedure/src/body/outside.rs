//! Where an expression stands that no routine surrounds.

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast;
use albireo_sql::names::fold;
use albireo_sql::source::Source;

use crate::expr::{Expr, Names};
use crate::plan::SelectPlan;

/// No names at all: the place of a parameter's default.
pub struct NoNames<'a> {
    source: Source<'a>,
}

impl<'a> NoNames<'a> {
    /// With positions that count in `source`.
    pub fn new(source: Source<'a>) -> Self {
        Self { source }
    }
}

/// 42703 for a name that means nothing.
pub(super) fn undefined(parts: &[ast::Ident], source: Source<'_>) -> SqlError {
    let names: Vec<String> = parts.iter().map(fold).collect();
    let error = match names.as_slice() {
        [relation, ..] if names.len() > 1 => {
            let message = format!("missing FROM-clause entry for table \"{relation}\"");
            SqlError::new(SqlState::UNDEFINED_TABLE, message)
        }
        _ => {
            let message = format!("column \"{}\" does not exist", names.join("."));
            SqlError::new(SqlState::UNDEFINED_COLUMN, message)
        }
    };
    match parts.first() {
        Some(first) => source.locate(error, first.span),
        None => error,
    }
}

impl Names for NoNames<'_> {
    fn name(&mut self, parts: &[ast::Ident]) -> Result<Expr, SqlError> {
        Err(undefined(parts, self.source))
    }

    fn parameter(&mut self, number: usize) -> Result<Expr, SqlError> {
        Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter ${number}")))
    }

    fn call(&mut self, _: &ast::Function) -> Result<Option<Expr>, SqlError> {
        Ok(None)
    }

    fn conflict(&mut self, _: &[ast::Ident]) -> Result<Option<Expr>, SqlError> {
        Ok(None)
    }

    fn query(&mut self, _: &ast::Query) -> Result<SelectPlan, SqlError> {
        Err(SqlError::unsupported("a query in a parameter's default"))
    }

    fn source(&self) -> Source<'_> {
        self.source
    }
}
