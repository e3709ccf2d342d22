//! Names where there are none, and what calls say of their arguments.

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast;
use albireo_sql::names::fold;
use albireo_sql::source::Source;

use super::{Expr, Names};
use crate::query::SelectPlan;

/// What an argument of a call says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actual {
    /// The name before `=>`, if written.
    pub name: Option<String>,
    /// Whether its type is not known: a literal in quotes, or NULL.
    pub unknown: bool,
}

/// The arguments of a call.
///
/// # Errors
/// 0A000 for DISTINCT, FILTER and what else makes no sense here.
pub fn actuals(function: &ast::Function) -> Result<Vec<(Actual, &ast::Expr)>, SqlError> {
    let plain = function.filter.is_none()
        && function.over.is_none()
        && function.within_group.is_empty()
        && function.null_treatment.is_none()
        && matches!(function.parameters, ast::FunctionArguments::None);
    let list = match &function.args {
        ast::FunctionArguments::None => return Ok(Vec::new()),
        ast::FunctionArguments::List(list)
            if plain && list.duplicate_treatment.is_none() && list.clauses.is_empty() =>
        {
            &list.args
        }
        _ => return Err(SqlError::unsupported("this form of a call")),
    };
    arguments(list)
}

/// The arguments of a call in FROM, which can have no clauses.
///
/// # Errors
/// 0A000 for `*` and names that are expressions.
pub fn arguments(list: &[ast::FunctionArg]) -> Result<Vec<(Actual, &ast::Expr)>, SqlError> {
    list.iter()
        .map(|arg| {
            let (name, arg) = match arg {
                ast::FunctionArg::Named { name, arg, .. } => (Some(fold(name)), arg),
                ast::FunctionArg::Unnamed(arg) => (None, arg),
                ast::FunctionArg::ExprNamed { .. } => {
                    return Err(SqlError::unsupported("this form of a call"));
                }
            };
            match arg {
                ast::FunctionArgExpr::Expr(tree) => Ok((Actual { name, unknown: is_unknown(tree) }, tree)),
                _ => Err(SqlError::unsupported("* as an argument")),
            }
        })
        .collect()
}

/// Whether nothing says what type an expression has.
pub fn is_unknown(tree: &ast::Expr) -> bool {
    match tree {
        ast::Expr::Nested(inner) => is_unknown(inner),
        ast::Expr::Value(value) => matches!(
            value.value,
            ast::Value::SingleQuotedString(_)
                | ast::Value::DollarQuotedString(_)
                | ast::Value::EscapedStringLiteral(_)
                | ast::Value::UnicodeStringLiteral(_)
                | ast::Value::NationalStringLiteral(_)
                | ast::Value::Null
        ),
        _ => false,
    }
}

/// No names at all: the place of a parameter's or column's default.
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
pub fn undefined(parts: &[ast::Ident], source: Source<'_>) -> SqlError {
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
        Err(SqlError::unsupported("a query in a default"))
    }

    fn source(&self) -> Source<'_> {
        self.source
    }
}
