//! Functions that are built in: their tables and how one is found.
//!
//! Responsible for: which functions there are, for which types, what they give; binding a call. Not
//! responsible for: aggregates and routines of the database's ([`Names::call`](super::Names::call) is
//! asked first).
//!
//! I-1 What a function gives depends on its arguments alone.

mod angle;
mod array;
mod bytes;
mod calendar;
mod exponential;
mod float;
mod format;
mod hash;
mod math;
pub(super) mod moment;
mod part;
mod pattern;
mod regex;
mod template;
mod text;
mod variance;

use albireo_base::{Decimal, Interval, SqlError, SqlState, Value};
use albireo_sql::ast;
use albireo_sql::names::{closest, fold};

pub(super) use self::array::{concat as concat_arrays, sets as array_sets};
pub(super) use self::bytes::CONCAT as CONCAT_BYTES;
pub(super) use self::calendar::with_precision;
pub(super) use self::exponential::power as numeric_power;
pub(super) use self::float::power as double_power;
pub use self::math::round_to;
pub(crate) use self::moment::binary as moment_binary;
pub(super) use self::moment::negate as negate_interval;
pub(super) use self::pattern::{BEGINNING, Beginning, ILIKE, LIKE, Rest, beginning};
pub(super) use self::regex::{MATCH, MATCH_FOLD, SIMILAR};
pub(super) use self::text::PAD;
pub use self::text::{byte_of, check_joined};
pub(crate) use self::variance::Moments;

use super::bind::Binder;
use super::convert::{implicit_to, unexpected};
use super::resolve::{Choice, choose};
use super::unify::settle;
use super::{Expr, ExprKind};
use crate::datum::{Array, Datum};
use crate::types::{Scalar, Type};

type Result<T> = std::result::Result<T, SqlError>;

/// The most arguments that a function of the tables takes which is called from the stack.
pub(super) const MAX_ARGS: usize = 6;

/// A function that is built in, for one list of types.
#[derive(Debug)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// The types it takes.
    pub takes: &'static [Scalar],
    /// The type it gives.
    pub gives: Scalar,
    /// What it computes of values of these types, none of them NULL: with a NULL, it is NULL.
    pub run: fn(&[Datum]) -> Result<Datum>,
}

/// A function of arrays, or of any number of values of any type; NULL is its own affair.
#[derive(Clone, Copy, Debug)]
pub struct General {
    /// Its name.
    pub name: &'static str,
    /// What it computes.
    pub run: fn(&[Datum]) -> Result<Datum>,
}

const fn entry(
    name: &'static str,
    takes: &'static [Scalar],
    gives: Scalar,
    run: fn(&[Datum]) -> Result<Datum>,
) -> Builtin {
    Builtin { name, takes, gives, run }
}

fn tables() -> impl Iterator<Item = &'static Builtin> {
    let tables = [
        math::FUNCTIONS,
        float::FUNCTIONS,
        angle::FUNCTIONS,
        text::FUNCTIONS,
        bytes::FUNCTIONS,
        regex::FUNCTIONS,
        moment::FUNCTIONS,
        calendar::FUNCTIONS,
        part::FUNCTIONS,
        template::FUNCTIONS,
    ];
    tables.into_iter().flatten()
}

/// The function of this name that takes just these types.
pub fn builtin(name: &str, takes: &[Scalar]) -> Option<&'static Builtin> {
    tables().find(|builtin| builtin.name == name && builtin.takes == takes)
}

/// Whether a function of this name and these types is built in. It comes before a routine of the same.
pub fn has_builtin(name: &str, types: &[Type]) -> bool {
    let same = |takes: &[Scalar]| {
        takes.len() == types.len()
            && takes.iter().zip(types).all(|(to, ty)| matches!(ty, Type::Scalar(from) if from.same(*to)))
    };
    (types.is_empty() && moment::clock_type(name).is_some())
        || tables().any(|builtin| builtin.name == name && same(builtin.takes))
}

/// Whether the call may be one of a function that is built in: those have no parameters with names.
fn may_be_builtin(function: &ast::Function) -> bool {
    let Ok(name) = name_of(&function.name) else { return false };
    let named = match &function.args {
        ast::FunctionArguments::List(list) => {
            list.args.iter().any(|arg| !matches!(arg, ast::FunctionArg::Unnamed(_)))
        }
        _ => false,
    };
    let name = name.as_str();
    !named
        && (tables().any(|builtin| builtin.name == name)
            || array::NAMES.contains(&name)
            || format::NAMES.contains(&name)
            || regex::NAMES.contains(&name)
            || name == "make_interval"
            || moment::clock_type(name).is_some())
}

impl Binder<'_> {
    /// Binds a call. Of a built-in function and a routine of one name the one is meant that takes just
    /// these types, and else the former if the arguments fit it. PostgreSQL takes what fits best.
    pub(super) fn function(&mut self, function: &ast::Function) -> Result<Expr> {
        let builtin = may_be_builtin(function);
        if !builtin && let Some(found) = self.names.call(function)? {
            return Ok(found);
        }
        let name = name_of(&function.name)?;
        if let ast::FunctionArguments::Subquery(query) = &function.args {
            return match name.as_str() {
                "array" => self.array_subquery(query),
                _ => Err(SqlError::unsupported(format!("{name} of a query"))),
            };
        }
        let args = match self.named_parts(&name, function) {
            Some(args) => args?,
            None => self.arguments(function)?,
        };
        match name.as_str() {
            "row" => return Ok(super::bind::row_of(args)),
            "coalesce" | "nullif" | "greatest" | "least" => return self.conditional(&name, args),
            _ => {}
        }
        if !builtin || !self.names.has_routine(&function.name) {
            return self.call_bound(&name, args);
        }
        let types: Vec<Type> = args.iter().map(|arg| arg.ty.clone()).collect();
        if !has_builtin(&name, &types)
            && let Ok(Some(call)) = self.names.routine(function, args.clone())
            && takes_just(&call, &types)
        {
            return Ok(call);
        }
        match self.call_bound(&name, args.clone()) {
            Err(error) if error.state() == SqlState::UNDEFINED_FUNCTION => {
                let args = args.into_iter().map(settle).collect();
                self.names.routine(function, args)?.ok_or(error)
            }
            bound => bound,
        }
    }

    /// The arguments of `make_interval(days => 2)` in their order; `None` for any other call.
    fn named_parts(&mut self, name: &str, function: &ast::Function) -> Option<Result<Vec<Expr>>> {
        let ast::FunctionArguments::List(list) = &function.args else { return None };
        let named = list.args.iter().any(|arg| matches!(arg, ast::FunctionArg::Named { .. }));
        if name != "make_interval" || !named {
            return None;
        }
        let zero = |n: usize| match n {
            6 => super::bind::constant(Value::Double(0.0), Scalar::Double),
            _ => super::bind::constant(Value::Integer(0), Scalar::Integer),
        };
        let mut args: Vec<Expr> = (0..calendar::PARTS.len()).map(zero).collect();
        for (n, arg) in list.args.iter().enumerate() {
            let (place, given) = match arg {
                ast::FunctionArg::Named { name, arg: ast::FunctionArgExpr::Expr(given), .. } => {
                    (calendar::PARTS.iter().position(|part| *part == fold(name)), given)
                }
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(given)) => (Some(n), given),
                _ => return Some(Err(SqlError::unsupported("an argument with a name"))),
            };
            let given = match self.expr(given) {
                Ok(given) => given,
                Err(error) => return Some(Err(error)),
            };
            match place.and_then(|place| args.get_mut(place)) {
                Some(arg) => *arg = given,
                None => return Some(Err(missing(name, &[given]))),
            }
        }
        Some(Ok(args))
    }

    fn arguments(&mut self, function: &ast::Function) -> Result<Vec<Expr>> {
        let plain = function.filter.is_none()
            && function.null_treatment.is_none()
            && function.over.is_none()
            && function.within_group.is_empty();
        let list = match &function.args {
            ast::FunctionArguments::None => return Ok(Vec::new()),
            ast::FunctionArguments::List(list) if plain => list,
            _ => return Err(SqlError::unsupported(format!("the call {function}"))),
        };
        if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
            return Err(SqlError::unsupported(format!("the call {function}")));
        }
        let bind = |arg: &ast::FunctionArg| match arg {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => self.expr(expr),
            ast::FunctionArg::Unnamed(_) => {
                Err(super::bind::syntax(format!("{function} is not an aggregate")))
            }
            _ => Err(SqlError::unsupported("an argument with a name")),
        };
        list.args.iter().map(bind).collect()
    }

    /// A call of a function that is built in.
    pub(super) fn call_bound(&mut self, name: &str, args: Vec<Expr>) -> Result<Expr> {
        if let Some(refused) = refusal(name) {
            return Err(refused);
        }
        if let Some(found) = moment::clock(name, &args) {
            return Ok(found);
        }
        if let Some(bound) = array::bind(name, &args)? {
            return Ok(bound);
        }
        if let Some(bound) = format::bind(name, &args)? {
            return Ok(bound);
        }
        if let Some(bound) = regex::bind(name, &args)? {
            return Ok(bound);
        }
        if let Some(bound) = calendar::bind(name, &args)? {
            return Ok(bound);
        }
        let found: Vec<&'static Builtin> = tables().filter(|builtin| builtin.name == name).collect();
        let scalars: Option<Vec<Scalar>> = args
            .iter()
            .map(|arg| match arg.ty {
                Type::Scalar(ty) => Some(ty),
                _ => None,
            })
            .collect();
        let Some(scalars) = scalars else { return Err(missing(name, &args)) };
        let takes: Vec<&[Scalar]> = found.iter().map(|builtin| builtin.takes).collect();
        match choose(&takes, &scalars) {
            Choice::One(n) => call(found[n], args),
            Choice::Missing => Err(missing(name, &args)),
            Choice::Ambiguous => Err(ambiguous(name, &args)),
        }
    }
}

/// Whether a call of a routine takes arguments of these types as they are.
fn takes_just(call: &Expr, types: &[Type]) -> bool {
    let ExprKind::Call(_, args) = &call.kind else { return false };
    args.len() == types.len() && args.iter().zip(types).all(|(arg, ty)| arg.ty == *ty)
}

/// A call of this function, its arguments converted.
pub(super) fn call(builtin: &'static Builtin, args: Vec<Expr>) -> Result<Expr> {
    let args: Result<Vec<Expr>> =
        args.into_iter().zip(builtin.takes).map(|(arg, to)| implicit_to(arg, *to)).collect();
    let args = args?;
    let ty = match builtin.gives {
        Scalar::Numeric { scale: None } if builtin.name == "extract" => {
            Scalar::Numeric { scale: part::scale_of(&args) }
        }
        Scalar::Numeric { scale: None } => Scalar::Numeric { scale: math::scale_of(builtin.name, &args) },
        other => other,
    };
    if args.len() > MAX_ARGS {
        // It minds NULL itself.
        let general = General { name: builtin.name, run: builtin.run };
        return Ok(Expr::scalar(ExprKind::General(general, args), ty));
    }
    Ok(Expr::scalar(ExprKind::Function(builtin, args), ty))
}

/// The function's name, its schema aside.
fn name_of(name: &ast::ObjectName) -> Result<String> {
    let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident().map(fold)).collect();
    match parts.as_slice() {
        [name] => Ok(name.clone()),
        [schema, name] if schema == "pg_catalog" => Ok(name.clone()),
        _ => {
            let message = format!("function {name} does not exist");
            Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
        }
    }
}

/// `name(type, type)`
fn signature(name: &str, args: &[Expr]) -> String {
    let types: Vec<String> = args.iter().map(|arg| arg.ty.to_string()).collect();
    format!("{name}({})", types.join(", "))
}

pub(super) fn missing(name: &str, args: &[Expr]) -> SqlError {
    let message = format!("function {} does not exist", signature(name, args));
    let error = SqlError::new(SqlState::UNDEFINED_FUNCTION, message);
    let known = || tables().map(|builtin| builtin.name);
    if known().any(|known| known == name) || array::NAMES.contains(&name) {
        return error.with_hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        );
    }
    match closest(name, known().chain(array::NAMES)) {
        Some(close) => error.with_hint(format!("Perhaps you meant the function \"{close}\".")),
        None => error,
    }
}

fn ambiguous(name: &str, args: &[Expr]) -> SqlError {
    let message = format!("function {} is not unique", signature(name, args));
    SqlError::new(SqlState(*b"42725"), message)
        .with_hint("Could not choose a best candidate function. You might need to add explicit type casts.")
}

/// What PostgreSQL has and we do not, with the reason.
fn refusal(name: &str) -> Option<SqlError> {
    let remedy = match name {
        "random" | "setseed" | "gen_random_uuid" | "uuid_generate_v4" | "nextval" | "currval" | "lastval" => {
            "A procedure is replayed from the log and must give the same result: pass the value as an argument."
        }
        "clock_timestamp" | "statement_timestamp" | "timeofday" | "pg_sleep" => {
            "A procedure is replayed from the log and must give the same result: use now(), the transaction's \
             time."
        }
        "to_number" => "Cast the text, without signs that are no digits.",
        "regexp_matches" => "Use regexp_match, which gives the first match.",
        "regexp_split_to_table" => "Use regexp_split_to_array.",
        "unnest" | "generate_series" | "generate_subscripts" => "It stands in FROM, or write a loop.",
        _ => return None,
    };
    Some(SqlError::unsupported(format!("{name} in an expression of a procedure")).with_hint(remedy))
}

/// Runs a function of the tables.
pub(super) fn run(builtin: &Builtin, args: &[Datum]) -> Result<Datum> {
    if args.iter().any(Datum::is_null) {
        return Ok(Datum::NULL);
    }
    (builtin.run)(args)
}

/// A misuse of a function's argument.
fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

// The arguments by their types; a call's arguments were converted to them.

fn arg(args: &[Datum], n: usize) -> Result<&Datum> {
    args.get(n).ok_or_else(unexpected)
}

fn value(args: &[Datum], n: usize) -> Result<&Value> {
    match arg(args, n)? {
        Datum::Value(value) => Ok(value),
        _ => Err(unexpected()),
    }
}

fn str_at(args: &[Datum], n: usize) -> Result<&str> {
    match value(args, n)? {
        Value::Text(text) => Ok(text),
        _ => Err(unexpected()),
    }
}

fn int_at(args: &[Datum], n: usize) -> Result<i32> {
    match value(args, n)? {
        Value::Integer(n) => Ok(*n),
        _ => Err(unexpected()),
    }
}

fn decimal_at(args: &[Datum], n: usize) -> Result<Decimal> {
    match value(args, n)? {
        Value::Decimal(n) => Ok(*n),
        _ => Err(unexpected()),
    }
}

fn double_at(args: &[Datum], n: usize) -> Result<f64> {
    match value(args, n)? {
        Value::Double(n) => Ok(*n),
        _ => Err(unexpected()),
    }
}

fn interval_at(args: &[Datum], n: usize) -> Result<Interval> {
    match arg(args, n)? {
        Datum::Interval(interval) => Ok(*interval),
        _ => Err(unexpected()),
    }
}

fn array_of(datum: &Datum) -> Result<&Array> {
    match datum {
        Datum::Array(array) => Ok(array),
        _ => Err(unexpected()),
    }
}

fn text(text: impl Into<String>) -> Result<Datum> {
    Ok(Value::Text(text.into()).into())
}

fn integer(n: usize) -> Result<Datum> {
    let n = i32::try_from(n).map_err(|_| super::number::out_of_range("integer"))?;
    Ok(Value::Integer(n).into())
}
