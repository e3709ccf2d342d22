//! One type for several expressions.
//!
//! Responsible for: the type of CASE, COALESCE, VALUES, UNION, lists; conditions. Not responsible for:
//! operators' types (`resolve`).

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, Value};

use super::convert::{implicit_to, implicit_to_type};
use super::resolve::{category, implicit, preferred};
use super::{Expr, ExprKind};
use crate::datum::Datum;
use crate::types::{RowType, Scalar, Type};

/// The type all of these convert to; `None` if they have none in common. Unknown if all are.
pub(super) fn common(types: &[Scalar]) -> Option<Scalar> {
    let mut best = Scalar::Unknown;
    for ty in types.iter().copied().filter(|ty| *ty != Scalar::Unknown) {
        if best == Scalar::Unknown {
            best = ty;
        } else if category(ty) != category(best) {
            return None;
        } else if !preferred(best) && implicit(best, ty) && !implicit(ty, best) {
            best = ty;
        }
    }
    if let Scalar::Numeric { .. } = best {
        best = Scalar::Numeric { scale: common_scale(types) };
    }
    Some(best)
}

/// The scale of numbers all converted to NUMERIC, if it is one.
fn common_scale(types: &[Scalar]) -> Option<u8> {
    let scales = types.iter().filter(|ty| **ty != Scalar::Unknown).map(|ty| match ty {
        Scalar::Numeric { scale } => *scale,
        _ => Some(0),
    });
    let mut found = None;
    for scale in scales {
        match (found, scale) {
            (_, None) => return None,
            (None, some) => found = some,
            (Some(a), Some(b)) if a != b => return None,
            _ => {}
        }
    }
    // A literal in quotes has a scale of its own.
    if types.contains(&Scalar::Unknown) { None } else { found }
}

/// Gives all expressions one type by PostgreSQL's rules, casts included: the branches of CASE, the
/// columns of VALUES and UNION, the elements of a list. `what` is how errors call it (`CASE`, `VALUES`,
/// `UNION`). All unknown: TEXT.
///
/// # Errors
/// 42804 if they have no type in common, 42846 if one cannot be converted to it.
pub fn common_type(exprs: &mut [Expr], what: &str) -> Result<Type, SqlError> {
    let ty = unified(exprs, what)?;
    let nothing_says = exprs.iter().all(is_unknown);
    for expr in exprs.iter_mut() {
        let taken = std::mem::replace(expr, Expr::null());
        if nothing_says {
            *expr = settle(taken);
            continue;
        }
        let from = taken.ty.clone();
        *expr = implicit_to_type(taken, &ty).map_err(|_| {
            let message = format!("{what} could not convert type {from} to {ty}");
            SqlError::new(SqlState::CANNOT_COERCE, message)
        })?;
    }
    Ok(ty)
}

fn unified(exprs: &[Expr], what: &str) -> Result<Type, SqlError> {
    let mut scalars = Vec::with_capacity(exprs.len());
    let mut other: Option<&Type> = None;
    for expr in exprs {
        match &expr.ty {
            Type::Scalar(ty) if is_null(expr) => {
                scalars.push(if *ty == Scalar::Unknown { None } else { Some(*ty) })
            }
            Type::Scalar(ty) => scalars.push(Some(*ty)),
            ty => other = Some(ty),
        }
    }
    // NULL has every type, and every scale.
    let scalars: Vec<Scalar> = scalars.into_iter().flatten().collect();
    let Some(other) = other else {
        return match common(&scalars) {
            Some(Scalar::Unknown) => Ok(Type::Scalar(Scalar::Text)),
            Some(ty) => Ok(Type::Scalar(ty)),
            None => Err(mismatch(exprs, what)),
        };
    };
    let fits = |ty: &Type| match (ty, other) {
        (Type::Scalar(Scalar::Unknown), _) => true,
        (Type::Array(a), Type::Array(b)) => a.same(*b),
        (Type::Row(a), Type::Row(b)) => a.fields.len() == b.fields.len(),
        _ => false,
    };
    if !exprs.iter().all(|expr| fits(&expr.ty)) {
        return Err(mismatch(exprs, what));
    }
    let all_same = exprs.iter().all(|expr| matches!(expr.ty, Type::Scalar(_)) || expr.ty == *other);
    Ok(match other {
        Type::Array(Scalar::Numeric { .. }) if !all_same => Type::Array(super::resolve::NUMERIC),
        _ => other.clone(),
    })
}

fn is_null(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Constant(datum) if datum.is_null())
}

fn mismatch(exprs: &[Expr], what: &str) -> SqlError {
    let known = |expr: &&Expr| expr.ty != Type::Scalar(Scalar::Unknown);
    let family = |ty: &Type| match ty {
        Type::Scalar(ty) => category(*ty),
        Type::Array(_) => 'A',
        _ => 'P',
    };
    let mut types = exprs.iter().filter(known).map(|expr| &expr.ty);
    let first = types.next().cloned().unwrap_or(Type::Void);
    let other = types.find(|ty| family(ty) != family(&first)).cloned().unwrap_or_else(|| first.clone());
    SqlError::new(SqlState::DATATYPE_MISMATCH, format!("{what} types {first} and {other} cannot be matched"))
}

/// Makes an expression a condition; `what` is how errors call its place (`WHERE`, `IF`, `AND`).
///
/// # Errors
/// 42804 if it is none.
pub fn to_bool(expr: Expr, what: &str) -> Result<Expr, SqlError> {
    match &expr.ty {
        Type::Scalar(Scalar::Bool | Scalar::Unknown) => implicit_to(expr, Scalar::Bool),
        ty => {
            let message = format!("argument of {what} must be type boolean, not type {ty}");
            Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
        }
    }
}

fn is_unknown(expr: &Expr) -> bool {
    expr.ty == Type::Scalar(Scalar::Unknown)
}

/// A literal that nothing says the type of is a text. A parameter without a type stays to be seen in its
/// text ([`is_open`]), for whoever can give it a type.
pub(crate) fn settle(expr: Expr) -> Expr {
    match expr.kind {
        _ if !is_unknown(&expr) => expr,
        ExprKind::Variable(_) => {
            Expr::scalar(ExprKind::Convert(Box::new(expr), super::Conversion::Text), Scalar::Text)
        }
        _ => Expr { ty: Type::Scalar(Scalar::Text), ..expr },
    }
}

/// As [`settle`], the fields of rows that are written as such included.
pub(crate) fn settle_rows(expr: Expr) -> Expr {
    let ExprKind::Row(items) = expr.kind else { return settle(expr) };
    let items: Vec<Expr> = items.into_iter().map(settle_rows).collect();
    let Type::Row(row) = &expr.ty else { return Expr { kind: ExprKind::Row(items), ty: expr.ty } };
    let field = |((name, ty), item): (&(String, Scalar), &Expr)| match (ty, &item.ty) {
        (Scalar::Unknown, Type::Scalar(settled)) => (name.clone(), *settled),
        _ => (name.clone(), *ty),
    };
    let fields = row.fields.iter().zip(&items).map(field).collect();
    Expr { kind: ExprKind::Row(items), ty: Type::Row(Arc::new(RowType { fields })) }
}

/// The error of a literal that is none of the type it got.
pub(crate) fn check_literal(expr: &Expr) -> Result<(), SqlError> {
    let ExprKind::Convert(inner, _) = &expr.kind else { return Ok(()) };
    match &inner.kind {
        ExprKind::Constant(Datum::Value(Value::Text(text))) => super::read(text, &expr.ty).map(|_| ()),
        _ => Ok(()),
    }
}

/// Whether an expression is a parameter whose type nothing has said.
pub fn is_open(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Variable(_) => is_unknown(expr),
        ExprKind::Convert(inner, super::Conversion::Text) => is_open(inner),
        _ => false,
    }
}

/// A literal in quotes, or a parameter without a type, before it was made a text.
pub fn unsettled(expr: Expr) -> Expr {
    match expr.kind {
        ExprKind::Convert(inner, super::Conversion::Text) if is_open(&inner) => *inner,
        _ => Expr { ty: Type::Scalar(Scalar::Unknown), ..expr },
    }
}
