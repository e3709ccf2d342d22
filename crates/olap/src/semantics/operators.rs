//! Operators between two values, by PostgreSQL's table of operators.

use albireo_base::{SqlError, SqlState};
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator};

use super::unify::{self, cast};
use crate::errors::external;
use crate::functions::arithmetic::{self, Operation};
use crate::functions::casts::{self, INTERVAL, TIMESTAMP};
use crate::functions::rowwise::{is_text, type_name};
use crate::functions::{intervals, temporal};

/// `left op right` with its operands' types settled.
pub(super) enum Planned {
    /// As DataFusion does it.
    Plain(Expr, Expr),
    /// As this expression does it.
    Instead(Expr),
}

/// Settles an operator.
///
/// # Errors
/// A literal is no value of the type it must have here.
pub(super) fn settle(left: Expr, op: Operator, right: Expr, schema: &DFSchema) -> Result<Planned> {
    if op == Operator::StringConcat {
        return concatenation(left, right, schema);
    }
    if !compares(op) && operation(op).is_none() {
        return Ok(Planned::Plain(left, right));
    }
    let (left, right) = with_known_literals(left, op, right, schema)?;
    if let Some(operation) = operation(op)
        && are_numeric(&left, &right, schema)
    {
        let (left, right) = (super::narrow(left), super::narrow(right));
        return Ok(Planned::Instead(arithmetic::expression(operation, left, right)));
    }
    let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else {
        return Ok(Planned::Plain(left, right));
    };
    let is_span = |ty: &DataType| matches!(ty, DataType::Interval(_) | DataType::Duration(_));
    Ok(match op {
        Operator::Multiply if is_span(&l) && r.is_numeric() => {
            Planned::Instead(intervals::multiply(left, right))
        }
        Operator::Multiply if l.is_numeric() && is_span(&r) => {
            Planned::Instead(intervals::multiply(right, left))
        }
        Operator::Divide if is_span(&l) && r.is_numeric() => Planned::Instead(intervals::divide(left, right)),
        Operator::Minus if temporal::is_moment(&l) && temporal::is_moment(&r) => {
            Planned::Instead(temporal::difference(left, right))
        }
        Operator::Plus | Operator::Minus if l == DataType::Date32 && is_span(&r) => {
            Planned::Plain(cast(left, &TIMESTAMP), right)
        }
        Operator::Plus if is_span(&l) && r == DataType::Date32 => {
            Planned::Plain(left, cast(right, &TIMESTAMP))
        }
        op if compares(op) && is_span(&l) && is_span(&r) => {
            Planned::Plain(intervals::order(left), intervals::order(right))
        }
        op if compares(op) && is_text(&l) != is_text(&r) && l != DataType::Null && r != DataType::Null => {
            return Err(no_operator(op, &l, &r));
        }
        op if compares(op) && l == DataType::Date32 && temporal::is_moment(&r) => {
            Planned::Plain(left, as_day(right))
        }
        op if compares(op) && temporal::is_moment(&l) && r == DataType::Date32 => {
            Planned::Plain(as_day(left), right)
        }
        op if compares(op) && is_float(&l) != is_float(&r) && l.is_numeric() && r.is_numeric() => {
            Planned::Plain(as_double(left, &l), as_double(right, &r))
        }
        _ => Planned::Plain(left, right),
    })
}

/// `left || right`: what is no text is shown as PostgreSQL's text.
fn concatenation(left: Expr, right: Expr, schema: &DFSchema) -> Result<Planned> {
    let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else {
        return Ok(Planned::Plain(left, right));
    };
    if !is_text(&l) && !is_text(&r) {
        let numbers = l.is_numeric() || r.is_numeric();
        return if numbers {
            Err(no_operator(Operator::StringConcat, &l, &r))
        } else {
            Ok(Planned::Plain(left, right))
        };
    }
    let shown = |expr: Expr, ty: &DataType| match ty {
        ty if is_text(ty) || ty.is_integer() || *ty == DataType::Null => expr,
        _ => casts::write(expr),
    };
    Ok(Planned::Plain(shown(left, &l), shown(right, &r)))
}

/// 42883.
fn no_operator(op: Operator, left: &DataType, right: &DataType) -> DataFusionError {
    let message = format!("operator does not exist: {} {op} {}", type_name(left), type_name(right));
    external(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(
        "No operator matches the given name and argument types. You might need to add explicit type casts.",
    ))
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// A date plus months and days, which is the midnight of a day, as that day: compared with dates
/// it means the same, and a column of dates need not be converted row by row.
pub(super) fn as_day(expr: Expr) -> Expr {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return expr };
    let whole_days = match right.as_ref() {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(span)), _) => span.nanoseconds == 0,
        Expr::Literal(ScalarValue::IntervalYearMonth(Some(_)), _) => true,
        _ => false,
    };
    match *left {
        Expr::Cast(Cast { expr: date, field })
            if whole_days && *field.data_type() == TIMESTAMP && is_date(&date) =>
        {
            Expr::BinaryExpr(BinaryExpr { left: date, op, right })
        }
        left => Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right }),
    }
}

/// Whether an expression is surely a date.
fn is_date(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Date32(_), _) => true,
        Expr::Cast(Cast { field, .. }) => *field.data_type() == DataType::Date32,
        _ => false,
    }
}

fn is_float(ty: &DataType) -> bool {
    matches!(ty, DataType::Float32 | DataType::Float64)
}

fn as_double(expr: Expr, ty: &DataType) -> Expr {
    if *ty == DataType::Float64 { expr } else { cast(expr, &DataType::Float64) }
}

/// Gives a bare literal the type of the operand beside it.
fn with_known_literals(left: Expr, op: Operator, right: Expr, schema: &DFSchema) -> Result<(Expr, Expr)> {
    match (unify::unknown(&left).is_some(), unify::unknown(&right).is_some()) {
        (true, false) if unify::char_length(&right, schema).is_some() => Ok((unify::as_char(left), right)),
        (false, true) if unify::char_length(&left, schema).is_some() => Ok((left, unify::as_char(right))),
        (true, false) => {
            let ty = type_of(&right, schema);
            Ok((unify::known(left, &ty)?, right))
        }
        (false, true) => {
            let ty = match (op, type_of(&left, schema)) {
                // What is added to a moment is a span.
                (Operator::Plus, ty) if temporal::is_moment(&ty) => INTERVAL,
                (_, ty) => ty,
            };
            let right = unify::known(right, &ty)?;
            Ok((left, right))
        }
        _ => Ok((left, right)),
    }
}

/// The type of an operand; text if it is not known, so that literals beside it stay texts.
fn type_of(expr: &Expr, schema: &DFSchema) -> DataType {
    expr.get_type(schema).ok().filter(|ty| !is_text(ty)).unwrap_or(DataType::Utf8View)
}

/// Whether both are numbers, or one is and the other is the bare NULL.
fn are_numeric(left: &Expr, right: &Expr, schema: &DFSchema) -> bool {
    if is_arithmetic(left) && is_arithmetic(right) {
        return true;
    }
    let ty = |expr: &Expr| match is_arithmetic(expr) {
        // Any numeric type will do; finding the true one costs a walk through the expression.
        true => Ok(DataType::Int32),
        false => expr.get_type(schema),
    };
    let (Ok(left), Ok(right)) = (ty(left), ty(right)) else { return false };
    match (arithmetic::is_numeric(&left), arithmetic::is_numeric(&right)) {
        (true, true) => true,
        (true, false) => right == DataType::Null,
        (false, true) => left == DataType::Null,
        (false, false) => false,
    }
}

fn is_arithmetic(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(f) if arithmetic::is_arithmetic(&f.func))
}

fn operation(op: Operator) -> Option<Operation> {
    Some(match op {
        Operator::Plus => Operation::Add,
        Operator::Minus => Operation::Subtract,
        Operator::Multiply => Operation::Multiply,
        Operator::Divide => Operation::Divide,
        Operator::Modulo => Operation::Remainder,
        _ => return None,
    })
}

/// A binary expression settled.
pub(super) fn binary(expr: BinaryExpr, schema: &DFSchema) -> Result<Expr> {
    let BinaryExpr { left, op, right } = expr;
    Ok(match settle(*left, op, *right, schema)? {
        Planned::Instead(expr) => expr,
        Planned::Plain(left, right) => Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))),
    })
}
