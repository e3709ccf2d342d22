//! Expressions that belong to a table: CHECK constraints and defaults of columns.
//!
//! Responsible for: what may stand in them, the names they know, the condition a row meets, the value a default
//! gives. Not responsible for: which rows are checked and when (`storage`), texts and names of constraints (`sql`).
//!
//! I-1 Whether a row meets a [`Condition`] depends on the row alone: it knows no time, no query, no routine.

use albireo_base::{ColumnId, SqlError, SqlState, SqlType, Value};
use albireo_sql::TableDef;
use albireo_sql::ast::{self, Spanned};
use albireo_sql::names::fold;
use albireo_sql::source::Source;

use crate::Stop;
use crate::datum::Datum;
use crate::expr::{
    self, CastKind, ColumnRef, Expr, ExprKind, Frame, Names, RoutineId, VariableId, undefined, unexpected,
};
use crate::query::SelectPlan;
use crate::types::{Scalar, Type};

#[cfg(test)]
mod tests;

/// Whether a name is that of a routine of the database's.
pub type IsRoutine<'a> = &'a dyn Fn(&ast::ObjectName) -> bool;

/// The condition of a CHECK constraint, ready to be evaluated over rows.
#[derive(Debug)]
pub struct Condition {
    expr: Expr,
}

impl Condition {
    /// Binds a condition over the columns of `table`; positions of errors count in `source`.
    ///
    /// # Errors
    /// Names, types and what is not supported; 0A000 for subqueries, routines and the time, 42803 for aggregates.
    pub fn bind(
        table: &TableDef,
        tree: &ast::Expr,
        source: Source<'_>,
        is_routine: IsRoutine<'_>,
    ) -> Result<Self, SqlError> {
        let mut place = Place { source, is_routine, table: Some(table) };
        let mut expr = expr::bind(tree, &mut place)?;
        if expr::is_unknown(tree) {
            expr = expr::unsettled(expr);
        }
        let mut expr = expr::to_bool(expr, "CHECK").map_err(|error| place.locate(error, tree))?;
        let mut reads_time = false;
        expr.walk(&mut |part| reads_time |= matches!(part.kind, ExprKind::Now));
        if reads_time {
            let error = SqlError::unsupported("the time in a check constraint")
                .with_hint("A row must meet its constraints whenever it is looked at. Test the time where it is written.");
            return Err(place.locate(error, tree));
        }
        place.refuse_unreadable(&expr, tree)?;
        fold_constants(&mut expr);
        Ok(Self { expr })
    }

    /// Whether the row whose values `read` gives meets it; NULL counts as met.
    ///
    /// # Errors
    /// What evaluating says: 22003, 22012, 22P02, ...
    pub fn is_met(&self, read: &dyn Fn(ColumnId) -> Value) -> Result<bool, SqlError> {
        match expr::evaluate(&self.expr, &mut Row { read, now_us: 0 }) {
            Ok(Datum::Value(Value::Bool(met))) => Ok(met),
            Ok(_) => Ok(true),
            Err(stop) => Err(error_of(stop)),
        }
    }
}

/// Binds the default of a column that is stored; NULL if it has none.
///
/// # Errors
/// As [`bind_default`].
pub fn default_of(table: &TableDef, column: ColumnId) -> Result<Expr, SqlError> {
    let def = table.column_def(column);
    match &def.default {
        Some(default) => bind_default(table, column, &default.ast, Source::new(&default.text), &|_| false),
        None => Ok(Expr { ty: Type::Scalar(Scalar::of(def.ty)), ..Expr::null() }),
    }
}

/// Binds the default of a column; positions of errors count in `source`.
///
/// # Errors
/// Types and what is not supported; 0A000 for columns, subqueries and routines, 42803 for aggregates.
pub fn bind_default(
    table: &TableDef,
    column: ColumnId,
    tree: &ast::Expr,
    source: Source<'_>,
    is_routine: IsRoutine<'_>,
) -> Result<Expr, SqlError> {
    let def = table.column_def(column);
    let mut place = Place { source, is_routine, table: None };
    let bound = expr::bind_to(tree, &mut place, def.ty, CastKind::Assignment).map_err(|error| {
        if error.state() != SqlState::DATATYPE_MISMATCH {
            return error;
        }
        let Ok(bound) = expr::bind(tree, &mut place) else { return error };
        let (name, ty, from) = (&def.name, Scalar::of(def.ty), bound.ty);
        let message = format!("column \"{name}\" is of type {ty} but default expression is of type {from}");
        let error = SqlError::new(SqlState::DATATYPE_MISMATCH, message)
            .with_hint("You will need to rewrite or cast the expression.");
        place.locate(error, tree)
    })?;
    place.refuse_unreadable(&bound, tree)?;
    Ok(bound)
}

/// The value of a column's default in a transaction whose time is `now_us`, in microseconds since 1970 UTC.
///
/// # Errors
/// As [`bind_default`], and what evaluating says.
pub fn default_value(table: &TableDef, column: ColumnId, now_us: i64) -> Result<Value, SqlError> {
    let bound = default_of(table, column)?;
    let read = |_| Value::Null;
    match expr::evaluate(&bound, &mut Row { read: &read, now_us }).map_err(error_of)? {
        Datum::Value(value) => Ok(value),
        _ => Err(unexpected()),
    }
}

fn error_of(stop: Stop) -> SqlError {
    match stop {
        Stop::Error(error) | Stop::Fatal(error) => *error,
        Stop::Crossing | Stop::Locked => unexpected(),
    }
}

/// Replaces parts that are the same for every row by their values, but for those that fail: they may never be
/// evaluated.
fn fold_constants(expr: &mut Expr) {
    let mut constant = true;
    expr.walk(&mut |part| constant &= !matches!(part.kind, ExprKind::Column(_)));
    if !constant {
        expr.each_part_mut(&mut fold_constants);
    } else if let Ok(value) = expr::evaluate(expr, &mut Row { read: &|_| Value::Null, now_us: 0 }) {
        expr.kind = ExprKind::Constant(value);
    }
}

/// A row whose columns are read one by one.
struct Row<'a> {
    read: &'a dyn Fn(ColumnId) -> Value,
    now_us: i64,
}

static NULL: Datum = Datum::NULL;

impl Frame for Row<'_> {
    fn variable(&self, _: VariableId) -> &Datum {
        &NULL
    }

    fn column(&mut self, column: ColumnRef) -> Result<Datum, Stop> {
        Ok(Datum::Value((self.read)(ColumnId(column.column))))
    }

    fn now(&mut self) -> i64 {
        self.now_us
    }

    fn call(&mut self, _: RoutineId, _: Vec<Datum>) -> Result<Datum, Stop> {
        Err(unexpected().into())
    }

    fn query(&mut self, _: &SelectPlan, _: usize) -> Result<Vec<Vec<Datum>>, Stop> {
        Err(unexpected().into())
    }
}

/// Where the expression stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    source: Source<'a>,
    is_routine: IsRoutine<'a>,
    /// The table that a CHECK constraint is of; `None` for a default.
    table: Option<&'a TableDef>,
}

impl Place<'_> {
    /// What it is in messages.
    fn what(&self) -> &'static str {
        if self.table.is_some() { "check constraint" } else { "DEFAULT expression" }
    }

    fn locate(&self, error: SqlError, tree: &ast::Expr) -> SqlError {
        match error.position() {
            Some(_) => error,
            None => self.source.locate(error, tree.span()),
        }
    }

    /// Refuses literals that are no values of their type. The binder leaves them to whoever evaluates them, but
    /// nobody evaluates these before the table is there.
    fn refuse_unreadable(&self, expr: &Expr, tree: &ast::Expr) -> Result<(), SqlError> {
        let mut found = Ok(());
        expr.walk(&mut |part| {
            if let ExprKind::Convert(inner, _) = &part.kind
                && let ExprKind::Constant(Datum::Value(Value::Text(_))) = inner.kind
                && found.is_ok()
            {
                found = expr::evaluate(part, &mut Row { read: &|_| Value::Null, now_us: 0 }).map(drop);
            }
        });
        found.map_err(|stop| self.locate(error_of(stop), tree))
    }

    fn refused_routine(&self, function: &ast::Function) -> SqlError {
        SqlError::unsupported(format!("the routine {} in a {}", function.name, self.what()))
            .with_hint("Only functions that are built in can stand there.")
    }
}

impl Names for Place<'_> {
    fn name(&mut self, parts: &[ast::Ident]) -> Result<Expr, SqlError> {
        let Some(table) = self.table else {
            let error = SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot use column reference in DEFAULT expression",
            );
            return Err(parts.first().map_or(error.clone(), |part| self.source.locate(error, part.span)));
        };
        let is = |part: &ast::Ident, name: &str| fold(part) == name;
        let column = match parts {
            [column] => Some(column),
            [of, column] if is(of, &table.name) => Some(column),
            [schema, of, column] if is(schema, &table.schema) && is(of, &table.name) => Some(column),
            _ => None,
        };
        let Some(column) = column else { return Err(undefined(parts, self.source)) };
        let id = table.resolve_column(column, self.source)?;
        let column = ColumnRef { depth: 0, relation: 0, column: id.0 };
        Ok(Expr::scalar(ExprKind::Column(column), Scalar::of(table.column_def(id).ty)))
    }

    fn parameter(&mut self, number: usize) -> Result<Expr, SqlError> {
        Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter ${number}")))
    }

    fn call(&mut self, function: &ast::Function) -> Result<Option<Expr>, SqlError> {
        let refused = |state, what: &str| {
            let message = format!("{what} functions are not allowed in {}s", self.what());
            Err(SqlError::new(state, message))
        };
        if function.over.is_some() {
            return refused(SqlState::WINDOWING_ERROR, "window");
        }
        if crate::query::is_aggregate(function) {
            return refused(SqlState::GROUPING_ERROR, "aggregate");
        }
        let last = function.name.0.last().and_then(ast::ObjectNamePart::as_ident).map(fold);
        if matches!(last.as_deref(), Some("generate_series" | "generate_subscripts" | "unnest")) {
            return refused(SqlState::FEATURE_NOT_SUPPORTED, "set-returning");
        }
        match (self.is_routine)(&function.name) {
            true => Err(self.refused_routine(function)),
            false => Ok(None),
        }
    }

    fn has_routine(&mut self, name: &ast::ObjectName) -> bool {
        (self.is_routine)(name)
    }

    fn routine(&mut self, function: &ast::Function, _: Vec<Expr>) -> Result<Option<Expr>, SqlError> {
        Err(self.refused_routine(function))
    }

    fn conflict(&mut self, _: &[ast::Ident]) -> Result<Option<Expr>, SqlError> {
        Ok(None)
    }

    fn query(&mut self, _: &ast::Query) -> Result<SelectPlan, SqlError> {
        let message = format!("cannot use subquery in {}", self.what());
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    }

    fn length(&self, column: ColumnRef) -> Option<u32> {
        match self.table?.columns.get(usize::from(column.column))?.ty {
            SqlType::Char(length) => Some(length),
            _ => None,
        }
    }

    fn source(&self) -> Source<'_> {
        self.source
    }
}
