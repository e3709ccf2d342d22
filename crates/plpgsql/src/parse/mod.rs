//! A body's text to its tree.
//!
//! Responsible for: where statements, expressions and names begin and end (`lexer`, `parser`), cutting
//! out the SQL and having it read (`sql`), every construct of the language (`block`, `declare`,
//! `statement`, `control`, `raise`), refusing what we do not do (`refuse`), and what can be checked
//! without knowing a name: labels, duplicate declarations, the arguments of RAISE.
//! Not responsible for: what names and types mean, whether a RETURN or an INTO fits.
//!
//! Errors have PostgreSQL's words and SQLSTATE, and a position in characters of the body from 1; whoever
//! calls adds where the body begins in its statement. Expressions that could only fail when they run,
//! such as `x := 1, 2`, are refused at once.
//!
//! Invariant: every tree is shallow enough to be walked, cloned and dropped recursively on a stack of
//! 2 MiB: [`MAX_NESTING`] statements deep, and expressions as deep as `albireo_sql` lets them be.

pub mod ast;
mod block;
mod control;
mod declare;
pub(crate) mod lexer;
pub(crate) mod parser;
mod raise;
mod refuse;
mod sql;
mod statement;
#[cfg(test)]
mod tests;

use albireo_base::SqlError;

pub use ast::{Block, Body, Expression, Query, Span, Statement, StatementKind};

/// How deep blocks, loops, IF and CASE may be nested in each other.
pub const MAX_NESTING: usize = 100;

/// Reads the body of a function or procedure.
///
/// # Errors
/// 42601 for what is not PL/pgSQL, 42704 for a condition that does not exist, 22004 for a NOT NULL
/// variable without a value, 42622 for too long a name, 54001 for too much nesting, 0A000 for what we
/// do not do, with the reason and the remedy; all with a position.
pub fn parse(body: &str) -> Result<Body, SqlError> {
    parser::Parser::new(body).body()
}
