//! Expressions: typed trees, bound from SQL and evaluated.
//!
//! Responsible for: types of expressions as PostgreSQL infers them, implicit casts, operators and
//! functions, NULL, exact decimals. Not responsible for: what a name means ([`Names`]), queries
//! (`plan`), variables (`body`).

mod begins;
mod bind;
mod convert;
mod evaluate;
mod fail;
mod function;
mod given;
mod names;
mod number;
mod operator;
mod order;
mod resolve;
mod same;
mod text;
mod unify;
mod walk;

use std::sync::Arc;

use albireo_base::{SqlError, SqlType};
use albireo_sql::ast;

pub use self::begins::{Begins, Says, begins};
pub use self::convert::unexpected;
pub use self::convert::{assign, cast, cast_to, declared, read};
pub use self::evaluate::evaluate;
pub use self::evaluate::evaluate_node;
pub use self::function::{Builtin, General, builtin, has_builtin};
pub use self::function::{byte_of, check_joined, round_to};
pub use self::given::given;
pub use self::names::undefined;
pub use self::names::{Actual, NoNames, actuals, arguments, is_unknown};
pub use self::number::numeric;
pub use self::operator::{Arithmetic, Binary, Comparison, Unary};
pub use self::order::compare;
pub use self::resolve::{implicit, preferred};
pub use self::text::text_of;
pub use self::unify::unsettled;
pub use self::unify::{common_type, is_open, to_bool};

pub(crate) use self::convert::{implicit_to, implicit_to_type};
pub(crate) use self::function::{Moments, moment_binary};
pub(crate) use self::operator::compare as comparison;
pub(crate) use self::resolve::{Choice, choose};
pub(crate) use self::same::digest;
pub(crate) use self::unify::{check_literal, settle, settle_rows};

use crate::Stop;
use crate::datum::Datum;
use crate::types::{Scalar, Type};

/// A typed expression.
#[derive(Clone, PartialEq, Debug)]
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
    /// As [`Assignment`](Self::Assignment), and what has no cast goes through its text: what PL/pgSQL
    /// does to values of variables.
    Variable,
}

/// A conversion between types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conversion {
    /// A scalar to another one.
    Scalar(Scalar),
    /// The elements of an array.
    Items(Scalar),
    /// A text to an array of these.
    ReadArray(Scalar),
    /// Anything to its text.
    Text,
}

/// The two words between conditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connective {
    /// AND.
    And,
    /// OR.
    Or,
}

/// What expressions compute. The binder adds operators and functions of its own.
#[derive(Clone, PartialEq, Debug)]
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
    /// A conversion to another type, without a modifier.
    Convert(Box<Expr>, Conversion),
    /// An operator on one value.
    Unary(Unary, Box<Expr>),
    /// An operator on two values, NULL if one is.
    Binary(Binary, Box<(Expr, Expr)>),
    /// A comparison of two values of one type, NULL if one is.
    Compare(Comparison, Box<(Expr, Expr)>),
    /// A comparison of rows, field by field.
    CompareRows(Comparison, Vec<(Expr, Expr)>),
    /// Conditions, all between AND or all between OR; evaluated until one decides.
    Logic(Connective, Vec<Expr>),
    /// `NOT`.
    Not(Box<Expr>),
    /// `IS NULL`: of a row, whether all fields are.
    IsNull(Box<Expr>),
    /// `IS NOT NULL`: of a row, whether no field is.
    IsNotNull(Box<Expr>),
    /// `IS TRUE`, `IS FALSE`, `IS UNKNOWN`.
    Is(Box<Expr>, Option<bool>),
    /// `IS DISTINCT FROM`, of two values of one type.
    IsDistinct(Box<(Expr, Expr)>),
    /// Conditions with their results, and the result if none holds.
    Case(Vec<(Expr, Expr)>, Box<Expr>),
    /// A value, the values it may equal with their results, and the result if it equals none.
    CaseOf(Box<Expr>, Vec<(Expr, Expr)>, Box<Expr>),
    /// The first that is not NULL.
    Coalesce(Vec<Expr>),
    /// The first, or NULL if it, converted as said, equals the second.
    NullIf(Box<(Expr, Expr)>, Option<Scalar>),
    /// The greatest or least of those that are not NULL.
    Extreme(std::cmp::Ordering, Vec<Expr>),
    /// Whether a value is in a list of its type.
    In(Box<Expr>, Vec<Expr>),
    /// A comparison with the elements of an array of its type: with one of them, or with all.
    AnyOf {
        /// Which.
        op: Comparison,
        /// Whether it must hold for all.
        all: bool,
        /// The value and the array.
        pair: Box<(Expr, Expr)>,
    },
    /// `BETWEEN`, the value evaluated once.
    Between {
        /// The value, the lower and the upper bound.
        parts: Box<[Expr; 3]>,
        /// To what the value is converted before it is compared with each bound, if to anything.
        conversions: [Option<Scalar>; 2],
    },
    /// The transaction's time: as TIMESTAMPTZ, TIMESTAMP, DATE or TIME, as the expression's type says.
    Now,
    /// A function that is built in, of scalars.
    Function(&'static Builtin, Vec<Expr>),
    /// A function that is built in, of anything.
    General(General, Vec<Expr>),
}

/// A routine of the database's, as the caller's [`Names`] numbered it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RoutineId(pub u32);

/// A routine in FROM.
#[derive(Clone, PartialEq, Debug)]
pub struct RowsOf {
    /// The routine.
    pub routine: RoutineId,
    /// What its parameters get.
    pub args: Vec<Expr>,
    /// Names and types of the columns of its rows.
    pub columns: Vec<(String, Type)>,
    /// Whether the rows are single values, whose column is named as the relation.
    pub scalar: bool,
}

/// A query inside an expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Subquery {
    /// What is asked of it.
    pub kind: SubqueryKind,
    /// The query.
    pub plan: crate::query::SelectPlan,
}

/// What an expression asks of a query.
#[derive(Clone, PartialEq, Debug)]
pub enum SubqueryKind {
    /// Its one value; NULL if it has no row; 21000 if it has several.
    Scalar,
    /// Whether it has a row.
    Exists,
    /// `ARRAY(SELECT ...)`.
    Array,
    /// `IN (SELECT ...)`, `= ANY (SELECT ...)`, `< ALL (SELECT ...)`: how values compare with its rows.
    Any {
        /// How.
        op: Comparison,
        /// Whether with all rows, rather than one.
        all: bool,
        /// The values, one for each column.
        operands: Vec<Expr>,
        /// To which type each column is converted before, if to any.
        conversions: Vec<Option<Scalar>>,
    },
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

    /// A routine of the database's in FROM, with its arguments bound; `actuals` says how they are written.
    ///
    /// # Errors
    /// It cannot be called so.
    fn rows_of(
        &mut self,
        name: &ast::ObjectName,
        actuals: &[Actual],
        args: Vec<Expr>,
    ) -> Result<Option<RowsOf>, SqlError> {
        let _ = (name, actuals, args);
        Ok(None)
    }

    /// An aggregate whose columns are those of a query around, the innermost by the depths in it: where
    /// its result stands.
    ///
    /// # Errors
    /// It cannot be called there.
    fn aggregate(
        &mut self,
        aggregate: crate::query::tree::Aggregate,
        at: &ast::Ident,
    ) -> Result<Expr, SqlError> {
        let _ = aggregate;
        let error = SqlError::unsupported("an aggregate of columns that are in no query around it");
        Err(self.source().locate(error, at.span))
    }

    /// What a name means to the body around all queries, where a query has a column of this name: by
    /// `#variable_conflict` nothing, the variable, or that it is an error.
    ///
    /// # Errors
    /// 42702.
    fn conflict(&mut self, parts: &[ast::Ident]) -> Result<Option<Expr>, SqlError>;

    /// The length of a column of CHAR, if it is one of a table.
    fn length(&self, column: ColumnRef) -> Option<u32> {
        let _ = column;
        None
    }

    /// A query inside an expression, with its columns' types.
    ///
    /// # Errors
    /// As for queries.
    fn query(&mut self, query: &ast::Query) -> Result<crate::query::SelectPlan, SqlError>;

    /// What opens the files that FROM names; none where they cannot be read.
    fn files(&self) -> Option<&dyn crate::query::Files> {
        None
    }

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
    fn query(&mut self, plan: &crate::query::SelectPlan, limit: usize) -> Result<Vec<Vec<Datum>>, Stop>;
}

/// Binds an expression. A literal whose type nothing says is a TEXT.
///
/// # Errors
/// Names, types (42883 for an operator or function that does not exist, 42804), what is not supported
/// (0A000), each with its position.
pub fn bind(expr: &ast::Expr, names: &mut dyn Names) -> Result<Expr, SqlError> {
    bind_open(expr, names).map(settle)
}

/// As [`bind`], but a literal whose type nothing says stays of unknown type.
pub(crate) fn bind_open(expr: &ast::Expr, names: &mut dyn Names) -> Result<Expr, SqlError> {
    bind::Binder { names }.expr(expr)
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
    let mut binder = bind::Binder { names };
    let bound = binder.expr(expr)?;
    cast(bound, to, kind).map_err(|error| binder.locate(error, expr))
}

/// Looks at literals that could not be read as the type that their place has: an error wherever they stand,
/// even where they are never evaluated, as in PostgreSQL.
///
/// # Errors
/// 22P02 and what else reading says.
pub fn check_literals(expr: &Expr) -> Result<(), SqlError> {
    let mut found = Ok(());
    expr.walk(&mut |part| {
        if let (ExprKind::Convert(inner, conversion), true) = (&part.kind, found.is_ok())
            && let ExprKind::Constant(datum) = &inner.kind
        {
            found = convert::apply(datum.clone(), *conversion).map(|_| ());
        }
    });
    found
}

impl Expr {
    /// NULL, of a type that its place says.
    pub fn null() -> Self {
        Self { kind: ExprKind::Constant(Datum::NULL), ty: Type::Scalar(Scalar::Unknown) }
    }

    /// An expression of a scalar type.
    pub fn scalar(kind: ExprKind, ty: Scalar) -> Self {
        Self { kind, ty: Type::Scalar(ty) }
    }

    /// A condition.
    pub fn condition(kind: ExprKind) -> Self {
        Self::scalar(kind, Scalar::Bool)
    }
}

#[cfg(test)]
mod tests;
