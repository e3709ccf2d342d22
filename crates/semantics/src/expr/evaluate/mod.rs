//! Values of expressions.
//!
//! Responsible for: evaluating every kind of node, NULL. Not responsible for: what single operators and
//! functions compute (`number`, `moment`, `strings`, `arrays`).

use std::cmp::Ordering;
use std::sync::Arc;

use albireo_base::{SqlError, SqlType, Value};

use super::convert::{apply, modify, unexpected};
use super::function::{self, MAX_ARGS};
use super::operator::{Binary, Comparison, Unary};
use super::order::compare;
use super::{Builtin, Connective, Expr, ExprKind, Frame, number};
use crate::Stop;
use crate::datum::{Array, Datum};
use crate::types::{Scalar, Type};

mod node;
mod subquery;

pub use self::node::evaluate_node;

type Result<T> = std::result::Result<T, Stop>;

/// The value of an expression.
///
/// # Errors
/// What PostgreSQL reports: 22003, 22012, 22P02, ...; whatever the frame reports.
pub fn evaluate(expr: &Expr, frame: &mut dyn Frame) -> Result<Datum> {
    match &expr.kind {
        ExprKind::Constant(datum) => Ok(datum.clone()),
        ExprKind::Variable(variable) => Ok(frame.variable(*variable).clone()),
        ExprKind::Column(column) => frame.column(*column),
        ExprKind::Binary(op, pair) => {
            let a = evaluate(&pair.0, frame)?;
            let b = evaluate(&pair.1, frame)?;
            Ok(binary(*op, a, b)?)
        }
        ExprKind::Compare(op, pair) => {
            let a = evaluate(&pair.0, frame)?;
            let b = evaluate(&pair.1, frame)?;
            Ok(compared(*op, &a, &b))
        }
        ExprKind::Logic(connective, terms) => logic(*connective, terms, frame),
        ExprKind::Not(inner) => Ok(match evaluate(inner, frame)? {
            Datum::Value(Value::Bool(b)) => truth(!b),
            other => other,
        }),
        ExprKind::Cast(inner, to, kind) => Ok(modify(evaluate(inner, frame)?, *to, *kind)?),
        ExprKind::Convert(inner, conversion) => Ok(apply(evaluate(inner, frame)?, *conversion)?),
        ExprKind::Unary(op, inner) => Ok(unary(*op, evaluate(inner, frame)?)?),
        ExprKind::Function(builtin, args) => call(builtin, args, frame),
        _ => rare(expr, frame),
    }
}

/// What is not in the middle of every loop.
#[inline(never)]
fn rare(expr: &Expr, frame: &mut dyn Frame) -> Result<Datum> {
    match &expr.kind {
        ExprKind::Field(row, n) => field(evaluate(row, frame)?, *n),
        ExprKind::Element(array, subscript) => {
            let (array, subscript) = (evaluate(array, frame)?, evaluate(subscript, frame)?);
            Ok(element(&array, &subscript))
        }
        ExprKind::Array(items) => {
            let items = all(items, frame)?;
            Ok(Datum::Array(Arc::new(Array { lower: 1, items })))
        }
        ExprKind::Row(items) => Ok(Datum::Row(all(items, frame)?.into())),
        ExprKind::Call(routine, args) => {
            let args = all(args, frame)?;
            frame.call(*routine, args)
        }
        ExprKind::IsNull(inner) => Ok(truth(is_null(&evaluate(inner, frame)?, true))),
        ExprKind::IsNotNull(inner) => Ok(truth(is_null(&evaluate(inner, frame)?, false))),
        ExprKind::Is(inner, wanted) => Ok(truth(as_bool(&evaluate(inner, frame)?) == *wanted)),
        ExprKind::IsDistinct(pair) => {
            let a = evaluate(&pair.0, frame)?;
            Ok(truth(compare(&a, &evaluate(&pair.1, frame)?).is_ne()))
        }
        ExprKind::CompareRows(op, pairs) => compare_rows(*op, pairs, frame),
        ExprKind::Extreme(wanted, items) => extreme(*wanted, items, frame),
        ExprKind::In(value, list) => is_in(value, list, frame),
        ExprKind::AnyOf { op, all, pair } => {
            let (value, array) = (evaluate(&pair.0, frame)?, evaluate(&pair.1, frame)?);
            Ok(any_of(*op, *all, &value, &array))
        }
        ExprKind::Between { parts, conversions } => between(parts, *conversions, frame),
        ExprKind::Now => moment(expr, frame),
        ExprKind::General(general, args) => {
            let args = all(args, frame)?;
            Ok((general.run)(&args)?)
        }
        ExprKind::Subquery(subquery) => subquery::evaluate(subquery, frame),
        _ => conditional(expr, frame),
    }
}

/// The first of several expressions that a condition selects.
#[inline(never)]
fn conditional(expr: &Expr, frame: &mut dyn Frame) -> Result<Datum> {
    match &expr.kind {
        ExprKind::Case(branches, otherwise) => {
            for (condition, result) in branches {
                if as_bool(&evaluate(condition, frame)?) == Some(true) {
                    return evaluate(result, frame);
                }
            }
            evaluate(otherwise, frame)
        }
        ExprKind::CaseOf(operand, branches, otherwise) => {
            let operand = evaluate(operand, frame)?;
            for (value, result) in branches {
                let value = evaluate(value, frame)?;
                if as_bool(&compared(Comparison::Eq, &operand, &value)) == Some(true) {
                    return evaluate(result, frame);
                }
            }
            evaluate(otherwise, frame)
        }
        ExprKind::Coalesce(items) => {
            for item in items {
                let value = evaluate(item, frame)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            Ok(Datum::NULL)
        }
        ExprKind::NullIf(pair, conversion) => {
            let value = evaluate(&pair.0, frame)?;
            let other = evaluate(&pair.1, frame)?;
            let converted = match conversion {
                Some(to) => apply(value.clone(), super::Conversion::Scalar(*to))?,
                None => value.clone(),
            };
            let equal = as_bool(&compared(Comparison::Eq, &converted, &other)) == Some(true);
            Ok(if equal { Datum::NULL } else { value })
        }
        // All others were met before.
        _ => Err(unexpected().into()),
    }
}

/// A function of the tables, its arguments on the stack.
#[inline(never)]
fn call(builtin: &Builtin, args: &[Expr], frame: &mut dyn Frame) -> Result<Datum> {
    let mut values = [const { Datum::NULL }; MAX_ARGS];
    for (value, arg) in values.iter_mut().zip(args) {
        *value = evaluate(arg, frame)?;
    }
    Ok(function::run(builtin, values.get(..args.len()).ok_or_else(unexpected)?)?)
}

/// The transaction's time as the type says.
fn moment(expr: &Expr, frame: &mut dyn Frame) -> Result<Datum> {
    let now = Value::TimestampTz(frame.now());
    let ty = match expr.ty {
        Type::Scalar(Scalar::Timestamp) => SqlType::Timestamp,
        Type::Scalar(Scalar::Date) => SqlType::Date,
        Type::Scalar(Scalar::Time) => SqlType::Time,
        _ => return Ok(now.into()),
    };
    Ok(now.coerce(ty)?.into())
}

/// Whether a value is at least the one bound and at most the other.
fn between(parts: &[Expr; 3], conversions: [Option<Scalar>; 2], frame: &mut dyn Frame) -> Result<Datum> {
    let [value, low, high] = parts;
    let value = evaluate(value, frame)?;
    let bounds = [(low, Comparison::Ge), (high, Comparison::Le)];
    let mut unknown = false;
    for ((bound, op), conversion) in bounds.into_iter().zip(conversions) {
        let bound = evaluate(bound, frame)?;
        let holds = match conversion {
            Some(to) => compared(op, &apply(value.clone(), super::Conversion::Scalar(to))?, &bound),
            None => compared(op, &value, &bound),
        };
        match as_bool(&holds) {
            Some(false) => return Ok(truth(false)),
            Some(true) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { Datum::NULL } else { truth(true) })
}

/// A comparison with the elements of an array.
fn any_of(op: Comparison, all: bool, value: &Datum, array: &Datum) -> Datum {
    let Datum::Array(array) = array else { return Datum::NULL };
    let mut unknown = false;
    for item in &array.items {
        match as_bool(&compared(op, value, item)) {
            Some(b) if b != all => return truth(b),
            Some(_) => {}
            None => unknown = true,
        }
    }
    if unknown { Datum::NULL } else { truth(all) }
}

/// The values of several expressions.
fn all(exprs: &[Expr], frame: &mut dyn Frame) -> Result<Vec<Datum>> {
    exprs.iter().map(|expr| evaluate(expr, frame)).collect()
}

/// TRUE or FALSE.
pub(super) fn truth(b: bool) -> Datum {
    Datum::Value(Value::Bool(b))
}

/// A condition's value; `None` for NULL.
pub(super) fn as_bool(datum: &Datum) -> Option<bool> {
    match datum {
        Datum::Value(Value::Bool(b)) => Some(*b),
        _ => None,
    }
}

/// The comparison of two values, NULL if one is.
pub(super) fn compared(op: Comparison, a: &Datum, b: &Datum) -> Datum {
    if a.is_null() || b.is_null() {
        return Datum::NULL;
    }
    truth(op.holds(compare(a, b)))
}

/// Evaluates terms until one decides.
fn logic(connective: Connective, terms: &[Expr], frame: &mut dyn Frame) -> Result<Datum> {
    let decisive = connective == Connective::Or;
    let mut unknown = false;
    for term in terms {
        match as_bool(&evaluate(term, frame)?) {
            Some(b) if b == decisive => return Ok(truth(decisive)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { Datum::NULL } else { truth(!decisive) })
}

/// IS NULL (`wanted`) or IS NOT NULL: of a row, all its fields.
fn is_null(datum: &Datum, wanted: bool) -> bool {
    match datum {
        Datum::Row(fields) => fields.iter().all(|field| field.is_null() == wanted),
        other => other.is_null() == wanted,
    }
}

fn field(row: Datum, n: usize) -> Result<Datum> {
    match row {
        Datum::Row(fields) => Ok(fields.get(n).cloned().ok_or_else(unexpected)?),
        Datum::Value(Value::Null) => Ok(Datum::NULL),
        _ => Err(unexpected().into()),
    }
}

/// An element of an array; NULL outside of it.
pub(super) fn element(array: &Datum, subscript: &Datum) -> Datum {
    match (array, subscript) {
        (Datum::Array(array), Datum::Value(Value::Integer(n))) => {
            let at = i64::from(*n) - i64::from(array.lower);
            let item = usize::try_from(at).ok().and_then(|at| array.items.get(at));
            item.cloned().unwrap_or(Datum::NULL)
        }
        _ => Datum::NULL,
    }
}

/// Rows by the first fields that differ; NULL if it depends on one.
fn compare_rows(op: Comparison, pairs: &[(Expr, Expr)], frame: &mut dyn Frame) -> Result<Datum> {
    let equality = matches!(op, Comparison::Eq | Comparison::Ne);
    let mut unknown = false;
    for (a, b) in pairs {
        let (a, b) = (evaluate(a, frame)?, evaluate(b, frame)?);
        if a.is_null() || b.is_null() {
            if !equality {
                return Ok(Datum::NULL);
            }
            unknown = true;
            continue;
        }
        let order = compare(&a, &b);
        if order.is_ne() {
            return Ok(truth(op.holds(order)));
        }
    }
    Ok(if unknown { Datum::NULL } else { truth(op.holds(Ordering::Equal)) })
}

fn extreme(wanted: Ordering, items: &[Expr], frame: &mut dyn Frame) -> Result<Datum> {
    Ok(extreme_of(wanted, all(items, frame)?))
}

/// The greatest or least value.
fn extreme_of(wanted: Ordering, values: Vec<Datum>) -> Datum {
    let mut best = Datum::NULL;
    for value in values {
        if !value.is_null() && (best.is_null() || compare(&value, &best) == wanted) {
            best = value;
        }
    }
    best
}

fn is_in(value: &Expr, list: &[Expr], frame: &mut dyn Frame) -> Result<Datum> {
    let value = evaluate(value, frame)?;
    let mut unknown = false;
    for item in list {
        match as_bool(&compared(Comparison::Eq, &value, &evaluate(item, frame)?)) {
            Some(true) => return Ok(truth(true)),
            Some(false) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { Datum::NULL } else { truth(false) })
}

fn unary(op: Unary, operand: Datum) -> std::result::Result<Datum, SqlError> {
    let value = match operand {
        Datum::Value(value) => value,
        Datum::Interval(interval) => return function::negate_interval(interval),
        _ => return Err(unexpected()),
    };
    Ok(Datum::Value(match (op, value) {
        (_, Value::Null) => Value::Null,
        (Unary::Negate, Value::SmallInt(n)) => {
            Value::SmallInt(n.checked_neg().ok_or_else(|| number::out_of_range("smallint"))?)
        }
        (Unary::Negate, Value::Integer(n)) => {
            Value::Integer(n.checked_neg().ok_or_else(|| number::out_of_range("integer"))?)
        }
        (Unary::Negate, Value::BigInt(n)) => {
            Value::BigInt(n.checked_neg().ok_or_else(|| number::out_of_range("bigint"))?)
        }
        (Unary::Negate, Value::Real(n)) => Value::Real(-n),
        (Unary::Negate, Value::Double(n)) => Value::Double(-n),
        (Unary::Negate, Value::Decimal(n)) => Value::Decimal(number::checked(n.checked_neg())?),
        (Unary::BitNot, Value::SmallInt(n)) => Value::SmallInt(!n),
        (Unary::BitNot, Value::Integer(n)) => Value::Integer(!n),
        (Unary::BitNot, Value::BigInt(n)) => Value::BigInt(!n),
        _ => return Err(unexpected()),
    }))
}

/// An operator on two values.
fn binary(op: Binary, a: Datum, b: Datum) -> std::result::Result<Datum, SqlError> {
    use Value::{BigInt, Decimal, Double, Integer, Real, SmallInt};
    let (Datum::Value(x), Datum::Value(y)) = (&a, &b) else { return other_binary(op, a, b) };
    Ok(Datum::Value(match (op, x, y) {
        (Binary::Integer(op), Integer(x), Integer(y)) => Integer(number::integer(op, *x, *y)?),
        (Binary::BigInt(op), BigInt(x), BigInt(y)) => BigInt(number::bigint(op, *x, *y)?),
        (Binary::Numeric(op), Decimal(x), Decimal(y)) => Decimal(number::numeric(op, *x, *y)?),
        (Binary::Double(op), Double(x), Double(y)) => Double(number::double(op, *x, *y)?),
        (Binary::SmallInt(op), SmallInt(x), SmallInt(y)) => SmallInt(number::smallint(op, *x, *y)?),
        (Binary::Real(op), Real(x), Real(y)) => Real(number::real(op, *x, *y)?),
        _ => return other_binary(op, a, b),
    }))
}

fn other_binary(op: Binary, a: Datum, b: Datum) -> std::result::Result<Datum, SqlError> {
    if (a.is_null() || b.is_null())
        && !matches!(op, Binary::ArrayConcat | Binary::ArrayAppend | Binary::ArrayPrepend)
    {
        return Ok(Datum::NULL);
    }
    if let Binary::ArrayConcat | Binary::ArrayAppend | Binary::ArrayPrepend = op {
        return function::concat_arrays(op, a, b);
    }
    match (op, a, b) {
        (Binary::Concat, Datum::Value(Value::Text(mut a)), Datum::Value(Value::Text(b))) => {
            function::check_joined(&a, &b)?;
            a.push_str(&b);
            Ok(Value::Text(a).into())
        }
        (Binary::NumericPower, Datum::Value(Value::Decimal(a)), Datum::Value(Value::Decimal(b))) => {
            Ok(Value::Decimal(function::numeric_power(a, b)?).into())
        }
        (Binary::DoublePower, Datum::Value(Value::Double(a)), Datum::Value(Value::Double(b))) => {
            Ok(Value::Double(function::double_power(a, b)?).into())
        }
        (Binary::ShiftLeft | Binary::ShiftRight, Datum::Value(a), Datum::Value(Value::Integer(n))) => {
            shift(op == Binary::ShiftLeft, &a, n)
        }
        (op, a, b) => function::moment_binary(op, &a, &b),
    }
}

/// The bits of an integer moved; as in C, only so many of the distance count as the width needs.
fn shift(left: bool, value: &Value, n: i32) -> std::result::Result<Datum, SqlError> {
    let n = n as u32;
    Ok(Datum::Value(match (value, left) {
        // A SMALLINT is widened before.
        (Value::SmallInt(a), true) => Value::SmallInt(i32::from(*a).wrapping_shl(n) as i16),
        (Value::SmallInt(a), false) => Value::SmallInt(i32::from(*a).wrapping_shr(n) as i16),
        (Value::Integer(a), true) => Value::Integer(a.wrapping_shl(n)),
        (Value::Integer(a), false) => Value::Integer(a.wrapping_shr(n)),
        (Value::BigInt(a), true) => Value::BigInt(a.wrapping_shl(n)),
        (Value::BigInt(a), false) => Value::BigInt(a.wrapping_shr(n)),
        _ => return Err(unexpected()),
    }))
}
