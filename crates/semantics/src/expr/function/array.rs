//! Functions of arrays.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, Value, budget};

use super::{General, Result, array_of, integer, missing, text};
use crate::datum::{Array, Datum};
use crate::expr::convert::{implicit_to, implicit_to_type};
use crate::expr::order::compare;
use crate::expr::text::text_of;
use crate::expr::unify::{common, settle};
use crate::expr::{Binary, Expr, ExprKind};
use crate::types::{Scalar, Type};

/// The functions of arrays.
pub(super) const NAMES: [&str; 18] = [
    "cardinality",
    "array_length",
    "array_lower",
    "array_upper",
    "array_ndims",
    "array_append",
    "array_prepend",
    "array_cat",
    "array_position",
    "array_positions",
    "array_remove",
    "array_replace",
    "array_to_string",
    "string_to_array",
    "array_dims",
    "trim_array",
    "array_fill",
    "width_bucket",
];

/// What a function takes besides the array.
enum Takes {
    /// These.
    Scalars(&'static [Scalar]),
    /// So many elements.
    Elements(usize),
    /// An element, and perhaps an INTEGER.
    ElementAndStart,
}

/// The call, if it is one of these.
pub(super) fn bind(name: &str, args: &[Expr]) -> Result<Option<Expr>> {
    use Scalar::{Integer, Text};
    let general = |name, run| General { name, run };
    let (function, takes, gives) = match (name, args.len()) {
        ("cardinality", 1) => (general("cardinality", cardinality), Takes::Scalars(&[]), Some(Integer)),
        ("array_ndims", 1) => (general("array_ndims", dimensions), Takes::Scalars(&[]), Some(Integer)),
        ("array_dims", 1) => (general("array_dims", bounds), Takes::Scalars(&[]), Some(Text)),
        ("trim_array", 2) => (general("trim_array", without_last), Takes::Scalars(&[Integer]), None),
        ("array_fill", 2 | 3) => return filled(args).map(Some),
        ("width_bucket", 2) => return thresholds(args).map(Some),
        ("array_length", 2) => (general("array_length", length), Takes::Scalars(&[Integer]), Some(Integer)),
        ("array_lower", 2) => (general("array_lower", lower), Takes::Scalars(&[Integer]), Some(Integer)),
        ("array_upper", 2) => (general("array_upper", upper), Takes::Scalars(&[Integer]), Some(Integer)),
        ("array_position", 2 | 3) => {
            (general("array_position", position), Takes::ElementAndStart, Some(Integer))
        }
        ("array_remove", 2) => (general("array_remove", remove), Takes::Elements(1), None),
        ("array_replace", 3) => (general("array_replace", replace), Takes::Elements(2), None),
        ("array_to_string", 2) => (general("array_to_string", join), Takes::Scalars(&[Text]), Some(Text)),
        ("array_to_string", 3) => {
            (general("array_to_string", join), Takes::Scalars(&[Text, Text]), Some(Text))
        }
        ("string_to_array", 2 | 3) => return split_call(args).map(Some),
        ("array_positions", 2) => {
            let bound = with_array(name, args, Takes::Elements(1))?;
            let kind = ExprKind::General(general("array_positions", positions), bound);
            return Ok(Some(Expr { kind, ty: Type::Array(Integer) }));
        }
        ("array_append" | "array_prepend" | "array_cat", 2) => return joined(name, args).map(Some),
        _ => return Ok(None),
    };
    let bound = with_array(name, args, takes)?;
    let ty = match gives {
        Some(scalar) => Type::Scalar(scalar),
        None => bound[0].ty.clone(),
    };
    Ok(Some(Expr { kind: ExprKind::General(function, bound), ty }))
}

/// The arguments converted: an array first, and what follows it.
fn with_array(name: &str, args: &[Expr], takes: Takes) -> Result<Vec<Expr>> {
    let elements = match takes {
        Takes::Scalars(_) => 0,
        Takes::Elements(count) => count,
        Takes::ElementAndStart => 1,
    };
    if elements == 0 && args[0].ty == Type::Scalar(Scalar::Unknown) {
        let message = "could not determine polymorphic type because input has type unknown";
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    let element = element_of(name, args, &args[..1], &args[1..=elements])?;
    let mut bound = vec![converted(name, args, &args[0], &Type::Array(element))?];
    for (n, arg) in args[1..].iter().enumerate() {
        let to = match takes {
            _ if n < elements => element,
            Takes::Scalars(types) => types.get(n).copied().ok_or_else(|| missing(name, args))?,
            _ => Scalar::Integer,
        };
        bound.push(converted(name, args, arg, &Type::Scalar(to))?);
    }
    Ok(bound)
}

/// The type of elements that `arrays` and `elements`, some of the arguments, have in common; TEXT if all are
/// literals in quotes or NULL, as PostgreSQL has it for `anycompatiblearray`.
fn element_of(name: &str, args: &[Expr], arrays: &[Expr], elements: &[Expr]) -> Result<Scalar> {
    let of_array = arrays.iter().map(|arg| match &arg.ty {
        Type::Array(element) => Ok(*element),
        Type::Scalar(Scalar::Unknown) => Ok(Scalar::Unknown),
        _ => Err(missing(name, args)),
    });
    let of_element = elements.iter().map(|arg| match &arg.ty {
        Type::Scalar(element) => Ok(*element),
        _ => Err(missing(name, args)),
    });
    let types: Vec<Scalar> = of_array.chain(of_element).collect::<Result<_>>()?;
    match common(&types) {
        Some(Scalar::Unknown) => Ok(Scalar::Text),
        Some(element) => Ok(element),
        None => Err(missing(name, args)),
    }
}

/// One of the arguments as a type; a literal in quotes that is none of it has an error of its own.
fn converted(name: &str, args: &[Expr], arg: &Expr, to: &Type) -> Result<Expr> {
    let is_literal = arg.ty == Type::Scalar(Scalar::Unknown);
    implicit_to_type(arg.clone(), to).map_err(|error| if is_literal { error } else { missing(name, args) })
}

/// The functions that `||` stands for.
fn joined(name: &str, args: &[Expr]) -> Result<Expr> {
    let (op, arrays, elements) = match name {
        "array_append" => (Binary::ArrayAppend, &args[..1], &args[1..]),
        "array_prepend" => (Binary::ArrayPrepend, &args[1..], &args[..1]),
        _ => (Binary::ArrayConcat, args, &args[..0]),
    };
    let element = element_of(name, args, arrays, elements)?;
    let (array, item) = (Type::Array(element), Type::Scalar(element));
    let left = converted(name, args, &args[0], if op == Binary::ArrayPrepend { &item } else { &array })?;
    let right = converted(name, args, &args[1], if op == Binary::ArrayAppend { &item } else { &array })?;
    Ok(Expr { kind: ExprKind::Binary(op, Box::new((left, right))), ty: array })
}

fn split_call(args: &[Expr]) -> Result<Expr> {
    let bound: Result<Vec<Expr>> = args
        .iter()
        .map(|arg| implicit_to(arg.clone(), Scalar::Text).map_err(|_| missing("string_to_array", args)))
        .collect();
    let kind = ExprKind::General(General { name: "string_to_array", run: split }, bound?);
    Ok(Expr { kind, ty: Type::Array(Scalar::Text) })
}

fn filled(args: &[Expr]) -> Result<Expr> {
    let mut bound = vec![settle(args[0].clone())];
    for arg in &args[1..] {
        bound.push(converted("array_fill", args, arg, &Type::Array(Scalar::Integer))?);
    }
    let Type::Scalar(element) = bound[0].ty else { return Err(missing("array_fill", args)) };
    let kind = ExprKind::General(General { name: "array_fill", run: fill }, bound);
    Ok(Expr { kind, ty: Type::Array(element) })
}

/// `width_bucket(value, thresholds)`
fn thresholds(args: &[Expr]) -> Result<Expr> {
    let element = element_of("width_bucket", args, &args[1..], &args[..1])?;
    let value = converted("width_bucket", args, &args[0], &Type::Scalar(element))?;
    let array = converted("width_bucket", args, &args[1], &Type::Array(element))?;
    let general = General { name: "width_bucket", run: bucket };
    Ok(Expr::scalar(ExprKind::General(general, vec![value, array]), Scalar::Integer))
}

/// `@>`, `<@` and `&&` of two arrays.
pub(in crate::expr) fn sets(symbol: &str, left: Expr, right: Expr) -> Result<Expr> {
    let args = [left, right];
    if !args.iter().any(|arg| matches!(arg.ty, Type::Array(_))) {
        return Err(crate::expr::operator::missing(symbol, &args[0].ty, &args[1].ty));
    }
    let wrong = |_| crate::expr::operator::missing(symbol, &args[0].ty, &args[1].ty);
    let element = element_of(symbol, &args, &args, &[]).map_err(wrong)?;
    let mut bound = Vec::with_capacity(2);
    for arg in &args {
        bound.push(converted(symbol, &args, arg, &Type::Array(element)).map_err(wrong)?);
    }
    if symbol == "<@" {
        bound.swap(0, 1);
    }
    let general = match symbol {
        "&&" => General { name: "&&", run: overlap },
        _ => General { name: "@>", run: contains },
    };
    Ok(Expr::condition(ExprKind::General(general, bound)))
}

/// Whether an array has a value; NULL equals nothing.
fn has(array: &Array, value: &Datum) -> bool {
    !value.is_null() && array.items.iter().any(|item| !item.is_null() && compare(item, value).is_eq())
}

fn contains(args: &[Datum]) -> Result<Datum> {
    let [Datum::Array(left), Datum::Array(right)] = args else { return Ok(Datum::NULL) };
    Ok(Value::Bool(right.items.iter().all(|item| has(left, item))).into())
}

fn overlap(args: &[Datum]) -> Result<Datum> {
    let [Datum::Array(left), Datum::Array(right)] = args else { return Ok(Datum::NULL) };
    Ok(Value::Bool(right.items.iter().any(|item| has(left, item))).into())
}

fn subscript_fault(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState(*b"2202E"), message)
}

fn bounds(args: &[Datum]) -> Result<Datum> {
    match &args[0] {
        Datum::Array(array) if !array.items.is_empty() => {
            text(format!("[{}:{}]", array.lower, subscript(array, array.items.len())))
        }
        _ => Ok(Datum::NULL),
    }
}

fn without_last(args: &[Datum]) -> Result<Datum> {
    let [Datum::Array(array), Datum::Value(Value::Integer(count))] = args else { return Ok(Datum::NULL) };
    let length = array.items.len();
    let left = usize::try_from(*count).ok().and_then(|count| length.checked_sub(count));
    let left = left.ok_or_else(|| {
        subscript_fault(format!("number of elements to trim must be between 0 and {length}"))
    })?;
    Ok(made(1, array.items.iter().take(left).cloned().collect()))
}

fn fill(args: &[Datum]) -> Result<Datum> {
    let one = |datum: &Datum| match datum {
        Datum::Array(array) => match array.items.as_slice() {
            [Datum::Value(Value::Integer(n))] => Ok(*n),
            [] => Ok(0),
            [_] => Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "dimension values cannot be null")),
            _ => Err(SqlError::unsupported("an array of several dimensions")),
        },
        _ => Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "dimension array or low bound array cannot be null",
        )),
    };
    let count = one(&args[1])?;
    let lower = args.get(2).map_or(Ok(1), one)?;
    let count = usize::try_from(count).ok().filter(|count| *count <= 1 << 24).ok_or_else(|| {
        SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed")
    })?;
    budget::value(args[0].bytes().saturating_mul(count))?;
    Ok(made(if count == 0 { 1 } else { lower }, vec![args[0].clone(); count]))
}

/// How many thresholds, which rise, are not above a value.
fn bucket(args: &[Datum]) -> Result<Datum> {
    let (value, Datum::Array(array)) = (&args[0], &args[1]) else { return Ok(Datum::NULL) };
    if value.is_null() {
        return Ok(Datum::NULL);
    }
    if array.items.iter().any(Datum::is_null) {
        let message = "thresholds array must not contain NULLs";
        return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    }
    integer(array.items.partition_point(|threshold| compare(threshold, value).is_le()))
}

fn cardinality(args: &[Datum]) -> Result<Datum> {
    if args[0].is_null() {
        return Ok(Datum::NULL);
    }
    integer(array_of(&args[0])?.items.len())
}

fn dimensions(args: &[Datum]) -> Result<Datum> {
    match &args[0] {
        Datum::Array(array) if !array.items.is_empty() => integer(1),
        _ => Ok(Datum::NULL),
    }
}

/// The array, if it has the dimension asked for.
fn in_dimension(args: &[Datum]) -> Option<&Array> {
    match args {
        [Datum::Array(array), Datum::Value(Value::Integer(1))] if !array.items.is_empty() => Some(array),
        _ => None,
    }
}

fn length(args: &[Datum]) -> Result<Datum> {
    in_dimension(args).map_or(Ok(Datum::NULL), |array| integer(array.items.len()))
}

fn lower(args: &[Datum]) -> Result<Datum> {
    Ok(in_dimension(args).map_or(Datum::NULL, |array| Value::Integer(array.lower).into()))
}

fn upper(args: &[Datum]) -> Result<Datum> {
    Ok(in_dimension(args)
        .map_or(Datum::NULL, |array| Value::Integer(subscript(array, array.items.len())).into()))
}

/// The subscript of the `n`th element, from 1.
fn subscript(array: &Array, n: usize) -> i32 {
    array.lower.saturating_add(i32::try_from(n).unwrap_or(i32::MAX)).saturating_sub(1)
}

fn position(args: &[Datum]) -> Result<Datum> {
    if args[0].is_null() {
        return Ok(Datum::NULL);
    }
    let array = array_of(&args[0])?;
    let start = match args.get(2) {
        None => array.lower,
        Some(Datum::Value(Value::Integer(start))) => *start,
        Some(_) => {
            let message = "initial position must not be null";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
    };
    let found = array.items.iter().enumerate().map(|(n, item)| (subscript(array, n + 1), item));
    let found = found.filter(|(n, _)| *n >= start).find(|(_, item)| compare(item, &args[1]).is_eq());
    Ok(found.map_or(Datum::NULL, |(n, _)| Value::Integer(n).into()))
}

fn positions(args: &[Datum]) -> Result<Datum> {
    if args[0].is_null() {
        return Ok(Datum::NULL);
    }
    let array = array_of(&args[0])?;
    let all = array.items.iter().enumerate();
    let found = all.filter(|(_, item)| compare(item, &args[1]).is_eq());
    Ok(made(1, found.map(|(n, _)| Value::Integer(subscript(array, n + 1)).into()).collect()))
}

fn made(lower: i32, items: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(Array { lower, items }))
}

fn remove(args: &[Datum]) -> Result<Datum> {
    if args[0].is_null() {
        return Ok(Datum::NULL);
    }
    let array = array_of(&args[0])?;
    let left: Vec<Datum> =
        array.items.iter().filter(|item| compare(item, &args[1]).is_ne()).cloned().collect();
    Ok(made(if left.is_empty() { 1 } else { array.lower }, left))
}

fn replace(args: &[Datum]) -> Result<Datum> {
    if args[0].is_null() {
        return Ok(Datum::NULL);
    }
    let array = array_of(&args[0])?;
    let change = |item: &Datum| if compare(item, &args[1]).is_eq() { args[2].clone() } else { item.clone() };
    Ok(made(array.lower, array.items.iter().map(change).collect()))
}

fn join(args: &[Datum]) -> Result<Datum> {
    let (Datum::Array(array), Datum::Value(Value::Text(separator))) = (&args[0], &args[1]) else {
        return Ok(Datum::NULL);
    };
    let null = args.get(2).and_then(text_of);
    let parts: Vec<String> =
        array.items.iter().filter_map(|item| text_of(item).or_else(|| null.clone())).collect();
    super::format::joined(&parts, separator)
}

fn split(args: &[Datum]) -> Result<Datum> {
    let Datum::Value(Value::Text(whole)) = &args[0] else { return Ok(Datum::NULL) };
    let null = args.get(2).and_then(text_of);
    let item = |part: &str| match &null {
        Some(null) if null == part => Datum::NULL,
        _ => Value::Text(part.to_owned()).into(),
    };
    let items = match &args[1] {
        _ if whole.is_empty() => Vec::new(),
        Datum::Value(Value::Text(separator)) if separator.is_empty() => vec![item(whole)],
        Datum::Value(Value::Text(separator)) => whole.split(separator.as_str()).map(item).collect(),
        _ => whole.chars().map(|c| item(c.encode_utf8(&mut [0; 4]))).collect(),
    };
    Ok(made(1, items))
}

/// `||` with an array on at least one side; NULL is an array of nothing, but an element.
pub(in crate::expr) fn concat(op: Binary, left: Datum, right: Datum) -> Result<Datum> {
    let (array, new, before) = match (op, left, right) {
        (Binary::ArrayAppend, array, item) => (array, vec![item], false),
        (Binary::ArrayPrepend, item, array) => (array, vec![item], true),
        (_, Datum::Array(left), Datum::Array(right)) if right.items.is_empty() => {
            return Ok(Datum::Array(left));
        }
        (_, Datum::Array(left), Datum::Array(right)) if left.items.is_empty() => {
            return Ok(Datum::Array(right));
        }
        (_, left @ Datum::Array(_), Datum::Array(right)) => (left, right.items.clone(), false),
        (_, Datum::Value(Value::Null), other) | (_, other, Datum::Value(Value::Null)) => return Ok(other),
        _ => return Err(crate::expr::convert::unexpected()),
    };
    let mut array = match array {
        // Whoever holds it alone need not copy it.
        Datum::Array(array) => Arc::unwrap_or_clone(array),
        _ => Array { lower: 1, items: Vec::new() },
    };
    if array.items.is_empty() {
        array.lower = 1;
    }
    let items = array.items.len().saturating_add(new.len());
    budget::value(items.saturating_mul(size_of::<Datum>()))?;
    match before {
        true => {
            array.items.splice(0..0, new);
        }
        false => array.items.extend(new),
    }
    Ok(Datum::Array(Arc::new(array)))
}
