//! Which routine a call means, and what its arguments become.
//!
//! Responsible for: overloads by number and types of arguments, names and defaults of arguments,
//! implicit casts. Not responsible for: built-in functions (`expr`), aggregates (`plan`).

use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{self, Spanned};
use albireo_sql::names::fold;
use albireo_sql::source::Source;

use super::place::Place;
use super::signature::Signature;
use super::tree::Routine;
use crate::datum::Datum;
use crate::define::RoutineKind;
use crate::expr::{self, Actual, CastKind, Expr, ExprKind, NoNames, RoutineId, RowsOf, implicit, preferred};
use crate::types::{Scalar, Type};

/// The routines of a database.
pub trait Routines {
    /// Those of a name; the schema counts only where it is written.
    fn named(&self, name: &str) -> Vec<(RoutineId, Arc<Signature>)>;

    /// The signature of one.
    fn signature(&self, routine: RoutineId) -> Option<Arc<Signature>>;

    /// One that is to be run.
    ///
    /// # Errors
    /// It cannot be bound any more.
    fn bound(&self, routine: RoutineId) -> Result<Arc<Routine>, SqlError>;
}

/// A routine found, with what its arguments become.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Which.
    pub id: RoutineId,
    /// Its signature.
    pub signature: Arc<Signature>,
    /// For each parameter the argument's number, or `None` for its default.
    pub order: Vec<Option<usize>>,
}

/// The name of a call's function without its schema.
pub fn name_of(called: &ast::ObjectName) -> String {
    called.0.last().and_then(|part| part.as_ident()).map_or_else(String::new, fold)
}

/// Finds the routine that a call of `kind` means; `None` if there is none of this name at all.
///
/// # Errors
/// 42883 if none fits, 42725 if several do, 42809 for one of the other kind.
pub fn resolve(
    routines: &dyn Routines,
    called: &ast::ObjectName,
    kind: RoutineKind,
    actuals: &[Actual],
    args: &[Expr],
    source: Source<'_>,
) -> Result<Option<Resolved>, SqlError> {
    let name = name_of(called);
    let types: Vec<Type> = args.iter().map(|arg| arg.ty.clone()).collect();
    let unknown = |(actual, arg): (&Actual, &Expr)| Actual {
        name: actual.name.clone(),
        unknown: actual.unknown || expr::is_open(arg),
    };
    let actuals: Vec<Actual> = actuals.iter().zip(args).map(unknown).collect();
    let (actuals, types) = (actuals.as_slice(), types.as_slice());
    let known = routines.named(&name);
    if known.is_empty() && kind == RoutineKind::Function {
        return Ok(None);
    }
    let all = kind == RoutineKind::Procedure;
    let mut fitting: Vec<Resolved> = known
        .iter()
        .filter_map(|(id, signature)| {
            let order = match_up(signature, actuals, all && signature.kind == RoutineKind::Procedure)?;
            let resolved = Resolved { id: *id, signature: Arc::clone(signature), order };
            score(&resolved, actuals, types).map(|_| resolved)
        })
        .collect();
    narrow(&mut fitting, actuals, types);
    let shown = || shown(&name, actuals, types);
    let position = |error| source.locate(error, called.span());
    match fitting.as_slice() {
        [] => {
            let message = format!("{} {} does not exist", kind.word(), shown());
            let error = SqlError::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(format!(
                "No {} matches the given name and argument types. You might need to add explicit type casts.",
                kind.word()
            ));
            Err(position(error))
        }
        [one] if one.signature.kind != kind => {
            let other = one.signature.kind;
            let (message, hint) = match kind {
                RoutineKind::Function => {
                    (format!("{} is a {}", shown(), other.word()), "To call a procedure, use CALL.")
                }
                RoutineKind::Procedure => {
                    (format!("{} is not a procedure", shown()), "To call a function, use SELECT.")
                }
            };
            Err(position(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).with_hint(hint)))
        }
        [one] => Ok(Some(one.clone())),
        _ => {
            let message = format!("{} {} is not unique", kind.word(), shown());
            let error = SqlError::new(SqlState(*b"42725"), message);
            let hint = "Could not choose a best candidate. You might need to add explicit type casts.";
            Err(position(error.with_hint(hint)))
        }
    }
}

fn shown(name: &str, actuals: &[Actual], types: &[Type]) -> String {
    let types: Vec<String> = actuals
        .iter()
        .zip(types)
        .map(|(actual, ty)| {
            let ty = if actual.unknown { "unknown".to_owned() } else { ty.to_string() };
            match &actual.name {
                Some(name) => format!("{name} => {ty}"),
                None => ty,
            }
        })
        .collect();
    format!("{name}({})", types.join(", "))
}

/// The arguments' numbers in the order of the parameters, if number and names fit. With `all` OUT
/// parameters take an argument too.
fn match_up(signature: &Signature, actuals: &[Actual], all: bool) -> Option<Vec<Option<usize>>> {
    let formals: Vec<_> = signature.parameters.iter().filter(|p| all || p.mode.is_in()).collect();
    let mut order = vec![None; formals.len()];
    for (n, actual) in actuals.iter().enumerate() {
        let place = match &actual.name {
            None => n,
            Some(name) => formals.iter().position(|formal| formal.name == *name)?,
        };
        let slot = order.get_mut(place)?;
        if slot.replace(n).is_some() {
            return None;
        }
    }
    let complete =
        formals.iter().zip(&order).all(|(formal, given)| given.is_some() || formal.default.is_some());
    complete.then_some(order)
}

/// How well the arguments fit: how many exactly; `None` if not at all.
fn score(resolved: &Resolved, actuals: &[Actual], types: &[Type]) -> Option<usize> {
    let mut exact = 0;
    for (argument, place) in pairs(resolved) {
        let (Some(actual), Some(ty)) = (actuals.get(argument), types.get(argument)) else { return None };
        match (ty, place.ty()) {
            _ if actual.unknown => {}
            (from, to) if super::signature::simplified(from.clone()) == to => exact += 1,
            (Type::Scalar(from), Type::Scalar(to)) if implicit(*from, to) => {}
            (Type::Row(from), Type::Row(to)) if from.fields.len() == to.fields.len() => exact += 1,
            _ => return None,
        }
    }
    Some(exact)
}

/// Arguments with the places they go to.
fn pairs(resolved: &Resolved) -> impl Iterator<Item = (usize, &Place)> {
    let all = resolved.order.len() == resolved.signature.parameters.len();
    let formals = resolved.signature.parameters.iter().filter(move |p| all || p.mode.is_in());
    formals.zip(&resolved.order).filter_map(|(formal, given)| {
        // What stands for an OUT parameter is not looked at.
        given.filter(|_| formal.mode.is_in()).map(|argument| (argument, &formal.place))
    })
}

/// Leaves those that fit best.
fn narrow(fitting: &mut Vec<Resolved>, actuals: &[Actual], types: &[Type]) {
    keep_best(fitting, |resolved| score(resolved, actuals, types).unwrap_or(0));
    keep_best(fitting, |resolved| {
        pairs(resolved)
            .filter(|(argument, place)| {
                let unknown = actuals.get(*argument).is_some_and(|actual| actual.unknown);
                !unknown && place.scalar().is_some_and(preferred)
            })
            .count()
    });
    keep_best(fitting, |resolved| {
        pairs(resolved)
            .filter(|(argument, place)| {
                let unknown = actuals.get(*argument).is_some_and(|actual| actual.unknown);
                unknown && place.scalar() == Some(Scalar::Text)
            })
            .count()
    });
    // One that needs fewer defaults is nearer.
    keep_best(fitting, |resolved| usize::MAX - resolved.order.iter().filter(|given| given.is_none()).count());
}

fn keep_best(fitting: &mut Vec<Resolved>, score: impl Fn(&Resolved) -> usize) {
    let best = fitting.iter().map(&score).max().unwrap_or(0);
    fitting.retain(|resolved| score(resolved) == best);
}

/// What the input parameters of a routine get: the arguments, cast, and defaults.
///
/// # Errors
/// A default that cannot be bound any more; a cast that does not exist.
pub fn arguments(resolved: &Resolved, mut args: Vec<Option<Expr>>) -> Result<Vec<Expr>, SqlError> {
    let all = resolved.order.len() == resolved.signature.parameters.len();
    let formals = resolved.signature.parameters.iter().filter(|p| all || p.mode.is_in());
    let mut given = Vec::new();
    for (formal, argument) in formals.zip(&resolved.order) {
        if !formal.mode.is_in() {
            continue;
        }
        let expr = match (argument, &formal.default) {
            // A parameter without a type takes that of the place.
            (Some(argument), _) => args
                .get_mut(*argument)
                .and_then(Option::take)
                .map(|given| if expr::is_open(&given) { expr::unsettled(given) } else { given }),
            (None, Some(default)) => {
                let mut names = NoNames::new(Source::new(&default.text));
                Some(expr::bind(&default.tree, &mut names)?)
            }
            (None, None) => None,
        };
        let expr =
            expr.unwrap_or_else(|| Expr { kind: ExprKind::Constant(Datum::NULL), ty: formal.place.ty() });
        given.push(super::place::fit(expr, &formal.place, CastKind::Variable)?);
    }
    Ok(given)
}

/// The expression for a call of a function.
///
/// # Errors
/// As [`arguments`]; 0A000 for a function that returns a set.
pub fn call(resolved: &Resolved, args: Vec<Expr>) -> Result<Expr, SqlError> {
    if resolved.signature.result.setof {
        let message = "set-returning functions are not allowed here";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .with_hint("Put the function into the FROM clause."));
    }
    let result = &resolved.signature.result;
    if matches!(result.place, Place::Row(_)) && result.columns.iter().any(|(_, p)| p.scalar().is_none()) {
        return Err(SqlError::unsupported("a row with an array as a value")
            .with_hint("Put the function into the FROM clause."));
    }
    let ty = result.place.ty();
    let args = arguments(resolved, args.into_iter().map(Some).collect())?;
    Ok(Expr { kind: ExprKind::Call(resolved.id, args), ty })
}

/// A function in FROM.
///
/// # Errors
/// As [`arguments`].
pub fn rows_of(resolved: &Resolved, args: Vec<Expr>) -> Result<RowsOf, SqlError> {
    let result = &resolved.signature.result;
    let mut columns: Vec<(String, Type)> =
        result.columns.iter().map(|(name, place)| (name.clone(), place.ty())).collect();
    if columns.is_empty() {
        columns.push((resolved.signature.name.clone(), Type::Void));
    }
    let scalar = !matches!(result.place, Place::Row(_)) && !result.from_variables;
    let args = arguments(resolved, args.into_iter().map(Some).collect())?;
    Ok(RowsOf { routine: resolved.id, args, columns, scalar })
}
