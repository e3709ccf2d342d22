//! Expressions: typed trees, bound from SQL and evaluated.
//!
//! Responsible for: types of expressions as PostgreSQL infers them, implicit casts, operators and
//! functions, NULL, exact decimals. Not responsible for: what a name means ([`Names`]), queries
//! (`plan`), variables (`body`).

use std::sync::Arc;

use albireo_base::{SqlError, SqlType};
use albireo_sql::ast;

use crate::datum::Datum;
use crate::store::Stop;
use crate::types::Type;

/// A typed expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// Of which type.
    pub ty: Type,
}

/// A variable or parameter of a procedure, by its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VariableId(pub u32);

/// A column of a relation in a query.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ColumnRef {
    /// 0: this query; 1: the one around it; and so on.
    pub depth: u16,
    /// The relation, by its number in that query.
    pub relation: u16,
    /// Its column.
    pub column: u16,
}

/// How a cast treats what does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CastKind {
    /// `CAST` and `::`: a text too long for VARCHAR(n) is cut.
    Explicit,
    /// Storing into a column or variable: it is an error, except for trailing blanks.
    Assignment,
}

/// What expressions compute. The binder adds operators and functions of its own.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A constant.
    Constant(Datum),
    /// A variable.
    Variable(VariableId),
    /// A column of the current row.
    Column(ColumnRef),
    /// A field of a row.
    Field(Box<Expr>, usize),
    /// An element of an array; NULL outside of it.
    Element(Box<Expr>, Box<Expr>),
    /// `ARRAY[...]`.
    Array(Vec<Expr>),
    /// `ROW(...)`, or a list in parentheses.
    Row(Vec<Expr>),
    /// A conversion to a type with its modifier; of an array, of each element.
    Cast(Box<Expr>, SqlType, CastKind),
    /// A routine of the database's.
    Call(RoutineId, Vec<Expr>),
    /// A query inside the expression.
    Subquery(Arc<Subquery>),
}

/// A routine of the database's, as the caller's [`Names`] numbered it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RoutineId(pub u32);

/// A query inside an expression.
#[derive(Clone, Debug)]
pub struct Subquery {
    /// What is asked of it.
    pub kind: SubqueryKind,
    /// The query.
    pub plan: crate::plan::SelectPlan,
}

/// What an expression asks of a query.
#[derive(Clone, Debug)]
pub enum SubqueryKind {
    /// Its one value; NULL if it has no row; 21000 if it has several.
    Scalar,
    /// Whether it has a row.
    Exists,
    /// `ARRAY(SELECT ...)`.
    Array,
}

/// What names mean where an expression stands.
pub trait Names {
    /// What a name of one or several parts means: a column, a variable, a field of one.
    ///
    /// # Errors
    /// 42703 with position and suggestion, 42702 if it means several things.
    fn name(&mut self, parts: &[ast::Ident]) -> Result<Expr, SqlError>;

    /// What `$n` means, n from 1; `wanted` if the place says what type it must have.
    ///
    /// # Errors
    /// 42P02 if there is none.
    fn parameter(&mut self, number: usize) -> Result<Expr, SqlError>;

    /// A call of an aggregate or of a routine of the database's, which are not built in; `None` if there
    /// is none of this name.
    ///
    /// # Errors
    /// It cannot be called so, or not here.
    fn call(&mut self, function: &ast::Function) -> Result<Option<Expr>, SqlError>;

    /// Whether there is a routine of the database's of this name.
    fn has_routine(&mut self, name: &ast::ObjectName) -> bool {
        let _ = name;
        false
    }

    /// A call of a routine of the database's whose arguments are bound already: a query around the call
    /// binds them, because their names are its columns.
    ///
    /// # Errors
    /// It cannot be called so.
    fn routine(&mut self, function: &ast::Function, args: Vec<Expr>) -> Result<Option<Expr>, SqlError> {
        let _ = (function, args);
        Ok(None)
    }

    /// What a name means to the body around all queries, where a query has a column of this name: by
    /// `#variable_conflict` nothing, the variable, or that it is an error.
    ///
    /// # Errors
    /// 42702.
    fn conflict(&mut self, parts: &[ast::Ident]) -> Result<Option<Expr>, SqlError>;

    /// A query inside an expression, with its columns' types.
    ///
    /// # Errors
    /// As for queries.
    fn query(&mut self, query: &ast::Query) -> Result<crate::plan::SelectPlan, SqlError>;

    /// The text that positions count in.
    fn source(&self) -> albireo_sql::source::Source<'_>;
}

/// Where an expression finds values while it is evaluated.
pub trait Frame {
    /// A variable's value.
    fn variable(&self, variable: VariableId) -> &Datum;
    /// A column of the current row.
    fn column(&mut self, column: ColumnRef) -> Result<Datum, Stop>;
    /// The transaction's time in microseconds since 1970 UTC.
    fn now(&mut self) -> i64;
    /// The result of a routine.
    fn call(&mut self, routine: RoutineId, args: Vec<Datum>) -> Result<Datum, Stop>;
    /// The rows of a query inside the expression, at most `limit`.
    fn query(&mut self, plan: &crate::plan::SelectPlan, limit: usize) -> Result<Vec<Vec<Datum>>, Stop>;
}

/// Binds an expression. A literal whose type nothing says is a TEXT.
///
/// # Errors
/// Names, types (42883 for an operator or function that does not exist, 42804), what is not supported
/// (0A000), each with its position.
pub fn bind(expr: &ast::Expr, names: &mut dyn Names) -> Result<Expr, SqlError> {
    let _ = (expr, names);
    Err(SqlError::unsupported("an expression here"))
}

/// Binds an expression whose value goes to a place of type `to`.
///
/// # Errors
/// As [`bind`], and 42804 if there is no such cast.
pub fn bind_to(
    expr: &ast::Expr,
    names: &mut dyn Names,
    to: SqlType,
    kind: CastKind,
) -> Result<Expr, SqlError> {
    let _ = (expr, names, to, kind);
    Err(SqlError::unsupported("an expression here"))
}

/// Casts a bound expression; no cast is added where it would do nothing.
///
/// # Errors
/// 42846 (explicit) or 42804 (assignment) if there is no such cast.
pub fn cast(expr: Expr, to: SqlType, kind: CastKind) -> Result<Expr, SqlError> {
    let _ = (expr, to, kind);
    Err(SqlError::unsupported("a cast here"))
}

/// The value of an expression.
///
/// # Errors
/// What PostgreSQL reports: 22003, 22012, 22P02, ...; whatever the frame reports.
pub fn evaluate(expr: &Expr, frame: &mut dyn Frame) -> Result<Datum, Stop> {
    let _ = (expr, frame);
    Err(SqlError::unsupported("an expression here").into())
}

/// The order of two values of one type, as ORDER BY has it ascending: NULL last. Rows and arrays by
/// their elements.
pub fn compare(a: &Datum, b: &Datum) -> std::cmp::Ordering {
    let _ = (a, b);
    std::cmp::Ordering::Equal
}
