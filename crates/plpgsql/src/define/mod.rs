//! Statements that define, remove, call and explain routines, from text to a tree.
//!
//! Responsible for: `CREATE [OR REPLACE] FUNCTION | PROCEDURE`, `DROP FUNCTION | PROCEDURE | ROUTINE`
//! and `CALL` as PostgreSQL writes them, and `EXPLAIN FUNCTION | PROCEDURE | ROUTINE`, which it does not
//! have; what is wrong with a definition whatever tables there are.
//! Not responsible for: the body (`parse`), what types and names mean (`body`), which routines there
//! are (`engine`).

mod clauses;
mod reader;
#[cfg(test)]
mod tests;

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast;

use crate::parse::ast::{Expression, Name, TypeName};
use crate::parse::parser::Parser;

/// 42P13: a definition that makes no sense.
pub const INVALID_FUNCTION_DEFINITION: SqlState = SqlState(*b"42P13");

/// A statement about routines.
#[derive(Clone, PartialEq, Debug)]
pub enum RoutineStatement {
    /// CREATE.
    Create(Box<Definition>),
    /// DROP.
    Drop(Removal),
    /// CALL.
    Call(Box<ast::Function>),
    /// EXPLAIN of a routine.
    Explain(Explanation),
}

/// Whether something is a function or a procedure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoutineKind {
    /// It has a result and stands in expressions.
    Function,
    /// It is called by CALL.
    Procedure,
}

impl RoutineKind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Procedure => "procedure",
        }
    }
}

/// The name of a routine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoutineName {
    /// Its schema, if written.
    pub schema: Option<Name>,
    /// Its name there.
    pub name: Name,
}

/// What a CREATE FUNCTION or CREATE PROCEDURE says.
#[derive(Clone, PartialEq, Debug)]
pub struct Definition {
    /// The whole statement; spans and places count in it, except those of the body.
    pub text: String,
    /// Which of the two.
    pub kind: RoutineKind,
    /// Whether one that exists is replaced.
    pub replace: bool,
    /// Its name.
    pub name: RoutineName,
    /// Its parameters, in order. Names may come twice if one is for what comes in, the other for what
    /// goes out.
    pub parameters: Vec<Parameter>,
    /// RETURNS.
    pub returns: Option<Returns>,
    /// Its language.
    pub language: Language,
    /// Its body.
    pub body: BodyText,
    /// What it promises about its results.
    pub volatility: Volatility,
    /// Whether it is not run, and the result is NULL, if an argument is NULL.
    pub strict: bool,
}

/// The languages there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// PL/pgSQL.
    PlPgSql,
    /// SQL statements.
    Sql,
}

/// IMMUTABLE, STABLE, VOLATILE.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Volatility {
    /// The same result for the same arguments.
    Immutable,
    /// The same result within a statement.
    Stable,
    /// Anything.
    #[default]
    Volatile,
}

/// A body's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BodyText {
    /// What it says, without quotes.
    pub text: String,
    /// The character of the statement it begins at, from 0; exact unless quotes in it are doubled.
    pub offset: usize,
}

impl BodyText {
    /// Moves an error about the body to its place in the statement; one of the body as a whole to its
    /// beginning.
    #[must_use]
    pub fn relocate(&self, error: SqlError) -> SqlError {
        let position = error.position().unwrap_or(1) + self.offset;
        error.with_position(position)
    }
}

/// Which way a parameter goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// In.
    In,
    /// Out.
    Out,
    /// Both ways.
    InOut,
}

impl Mode {
    /// Whether the caller gives it a value.
    pub fn is_in(self) -> bool {
        self != Self::Out
    }

    /// Whether it is part of the result.
    pub fn is_out(self) -> bool {
        self != Self::In
    }
}

/// A parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// Its way.
    pub mode: Mode,
    /// Its name, if it has one.
    pub name: Option<Name>,
    /// Its type.
    pub ty: TypeName,
    /// Its value if the caller gives none.
    pub default: Option<Expression>,
}

/// What a function returns.
#[derive(Clone, PartialEq, Debug)]
pub enum Returns {
    /// `RETURNS [SETOF] type`.
    Type {
        /// Of which type.
        ty: TypeName,
        /// Whether there may be any number of it.
        setof: bool,
    },
    /// `RETURNS TABLE (...)`: any number of such rows.
    Table(Vec<(Name, TypeName)>),
}

/// What a DROP says.
#[derive(Clone, PartialEq, Debug)]
pub struct Removal {
    /// The whole statement.
    pub text: String,
    /// What must it be; `None` for DROP ROUTINE.
    pub kind: Option<RoutineKind>,
    /// Whether it may be missing.
    pub if_exists: bool,
    /// Which; at least one.
    pub routines: Vec<RoutineReference>,
}

/// What an EXPLAIN PROCEDURE says.
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    /// The whole statement.
    pub text: String,
    /// Which is meant if there are both; `None` for EXPLAIN ROUTINE.
    pub kind: Option<RoutineKind>,
    /// Which.
    pub routine: RoutineReference,
}

/// A routine by its name and the types of its parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct RoutineReference {
    /// Its name.
    pub name: RoutineName,
    /// The types of what the caller gives; without, the name must be enough.
    pub parameters: Option<Vec<TypeName>>,
}

/// Reads a statement about routines; `None` if its first words say that it is another one.
///
/// # Errors
/// 42601, 42P13 for a definition that contradicts itself, 42704 for a language we do not have, 0A000
/// for what we do not do, with positions.
pub fn parse(text: &str) -> Result<Option<RoutineStatement>, SqlError> {
    let mut parser = Parser::new(text);
    if parser.eat("call") {
        return reader::call(parser).map(Some);
    }
    if parser.eat("drop") {
        return match reader::kind(&mut parser) {
            Some(kind) => reader::drop(parser, kind).map(Some),
            None => Ok(None),
        };
    }
    if parser.eat("explain") {
        return match reader::kind(&mut parser) {
            Some(kind) => reader::explain(parser, kind).map(Some),
            None => Ok(None),
        };
    }
    if !parser.eat("create") {
        return Ok(None);
    }
    let replace = parser.next_is("or") && parser.is(parser.peek_nth(1), "replace");
    if replace {
        parser.advance();
        parser.advance();
    }
    match reader::kind(&mut parser) {
        Some(Some(kind)) => reader::create(parser, kind, replace).map(Some),
        _ => Ok(None),
    }
}
