//! The aggregates: their names, what they take, what they give.
//!
//! Responsible for: PostgreSQL's choice among aggregates of one name, types of results. Not responsible for:
//! where aggregates may stand (`aggregate`).

use albireo_base::{SqlError, SqlState};

use super::tree::{AggregateKind, Regression};
use crate::expr::{self, Choice, Expr};
use crate::types::{Scalar, Type};

const NUMERIC: Scalar = Scalar::Numeric { scale: None };

/// The aggregate of this name.
pub(super) fn kind_of(name: &str) -> Option<AggregateKind> {
    use AggregateKind as K;
    Some(match name {
        "count" => K::Count,
        "sum" => K::Sum,
        "avg" => K::Avg,
        "min" => K::Min,
        "max" => K::Max,
        "bool_and" | "every" => K::BoolAnd,
        "bool_or" => K::BoolOr,
        "string_agg" => K::StringAgg,
        "array_agg" => K::ArrayAgg,
        "stddev_pop" => K::StddevPop,
        "stddev_samp" | "stddev" => K::StddevSamp,
        "var_pop" => K::VarPop,
        "var_samp" | "variance" => K::VarSamp,
        "covar_pop" => K::CovarPop,
        "covar_samp" => K::CovarSamp,
        "corr" => K::Corr,
        "regr_avgx" => K::Regression(Regression::AvgX),
        "regr_avgy" => K::Regression(Regression::AvgY),
        "regr_count" => K::Regression(Regression::Count),
        "regr_intercept" => K::Regression(Regression::Intercept),
        "regr_r2" => K::Regression(Regression::R2),
        "regr_slope" => K::Regression(Regression::Slope),
        "regr_sxx" => K::Regression(Regression::Sxx),
        "regr_sxy" => K::Regression(Regression::Sxy),
        "regr_syy" => K::Regression(Regression::Syy),
        "bit_and" => K::BitAnd,
        "bit_or" => K::BitOr,
        "bit_xor" => K::BitXor,
        "mode" => K::Mode,
        "percentile_cont" => K::PercentileCont,
        "percentile_disc" => K::PercentileDisc,
        _ => return None,
    })
}

/// Whether a routine of the same name is never meant.
pub(super) fn hides_routines(kind: AggregateKind) -> bool {
    use AggregateKind as K;
    matches!(
        kind,
        K::Count
            | K::Sum
            | K::Avg
            | K::Min
            | K::Max
            | K::BoolAnd
            | K::BoolOr
            | K::StringAgg
            | K::ArrayAgg
            | K::Grouping
    )
}

/// Whether an aggregate needs WITHIN GROUP.
pub(super) fn is_ordered_set(kind: AggregateKind) -> bool {
    matches!(kind, AggregateKind::Mode | AggregateKind::PercentileCont | AggregateKind::PercentileDisc)
}

/// No function of this name takes these types.
pub(super) fn missing(name: &str, args: &[Expr]) -> SqlError {
    let message = format!("function {} does not exist", signature(name, args));
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(
        "No function matches the given name and argument types. You might need to add explicit type casts.",
    )
}

pub(super) fn ambiguous(name: &str, args: &[Expr]) -> SqlError {
    let message = format!("function {} is not unique", signature(name, args));
    SqlError::new(SqlState(*b"42725"), message)
        .with_hint("Could not choose a best candidate function. You might need to add explicit type casts.")
}

fn signature(name: &str, args: &[Expr]) -> String {
    let types: Vec<String> = args.iter().map(|arg| arg.ty.to_string()).collect();
    format!("{name}({})", types.join(", "))
}

/// An argument of any type whose type nothing says.
pub(super) fn undetermined() -> SqlError {
    let message = "could not determine polymorphic type because input has type unknown";
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

/// The lists of types that an aggregate takes, and the type each gives; NUMERIC of the argument's scale
/// where both are.
fn overloads(kind: AggregateKind) -> &'static [(&'static [Scalar], Scalar)] {
    use AggregateKind as K;
    use Scalar::{BigInt, Bool, Bpchar, Bytea, Date, Double, Integer, Interval, Real, SmallInt, Text, Time};
    use Scalar::{Timestamp, TimestampTz};
    match kind {
        K::Sum => &[
            (&[SmallInt], BigInt),
            (&[Integer], BigInt),
            (&[BigInt], NUMERIC),
            (&[NUMERIC], NUMERIC),
            (&[Real], Real),
            (&[Double], Double),
            (&[Interval], Interval),
        ],
        K::Avg => &[
            (&[SmallInt], NUMERIC),
            (&[Integer], NUMERIC),
            (&[BigInt], NUMERIC),
            (&[NUMERIC], NUMERIC),
            (&[Real], Double),
            (&[Double], Double),
            (&[Interval], Interval),
        ],
        K::Min | K::Max => &[
            (&[SmallInt], SmallInt),
            (&[Integer], Integer),
            (&[BigInt], BigInt),
            (&[NUMERIC], NUMERIC),
            (&[Real], Real),
            (&[Double], Double),
            (&[Text], Text),
            (&[Bpchar], Bpchar),
            (&[Date], Date),
            (&[Time], Time),
            (&[Timestamp], Timestamp),
            (&[TimestampTz], TimestampTz),
            (&[Interval], Interval),
        ],
        K::BoolAnd | K::BoolOr => &[(&[Bool], Bool)],
        K::StringAgg => &[(&[Text, Text], Text), (&[Bytea, Bytea], Bytea)],
        K::StddevPop | K::StddevSamp | K::VarPop | K::VarSamp => &[
            (&[SmallInt], NUMERIC),
            (&[Integer], NUMERIC),
            (&[BigInt], NUMERIC),
            (&[NUMERIC], NUMERIC),
            (&[Real], Double),
            (&[Double], Double),
        ],
        K::CovarPop | K::CovarSamp | K::Corr => &[(&[Double, Double], Double)],
        K::Regression(Regression::Count) => &[(&[Double, Double], BigInt)],
        K::Regression(_) => &[(&[Double, Double], Double)],
        K::BitAnd | K::BitOr | K::BitXor => {
            &[(&[SmallInt], SmallInt), (&[Integer], Integer), (&[BigInt], BigInt)]
        }
        K::PercentileCont => &[(&[Double, Double], Double), (&[Double, Interval], Interval)],
        K::Count | K::ArrayAgg | K::Grouping | K::Mode | K::PercentileDisc => &[],
    }
}

/// Converts the arguments of an aggregate to what it takes; the type of its result.
pub(super) fn resolve(kind: AggregateKind, name: &str, args: &mut Vec<Expr>) -> Result<Type, SqlError> {
    use AggregateKind as K;
    match (kind, args.as_slice()) {
        (K::Count, [_]) => {
            settle(args);
            return Ok(Type::Scalar(Scalar::BigInt));
        }
        (K::ArrayAgg, [one]) if is_unknown(one) => return Err(ambiguous(name, args)),
        (K::ArrayAgg, [one]) => return array_of(one),
        (K::Mode, [one]) => return if is_unknown(one) { Err(undetermined()) } else { Ok(one.ty.clone()) },
        (K::Min | K::Max, [Expr { ty: Type::Array(element), .. }]) => return Ok(Type::Array(*element)),
        (K::PercentileCont | K::PercentileDisc, [_, _]) => return percentile(kind, name, args),
        _ => {}
    }
    chosen(kind, name, args)
}

fn is_unknown(expr: &Expr) -> bool {
    expr.ty == Type::Scalar(Scalar::Unknown)
}

fn settle(args: &mut Vec<Expr>) {
    *args = std::mem::take(args).into_iter().map(expr::settle).collect();
}

fn array_of(arg: &Expr) -> Result<Type, SqlError> {
    match &arg.ty {
        Type::Scalar(element) => Ok(Type::Array(*element)),
        other => Err(SqlError::unsupported(format!("an array of {other}"))),
    }
}

fn chosen(kind: AggregateKind, name: &str, args: &mut Vec<Expr>) -> Result<Type, SqlError> {
    let scalar = |arg: &Expr| match arg.ty {
        Type::Scalar(ty) => Some(ty),
        _ => None,
    };
    let Some(scalars) = args.iter().map(scalar).collect::<Option<Vec<Scalar>>>() else {
        return Err(missing(name, args));
    };
    let all = overloads(kind);
    let lists: Vec<&[Scalar]> = all.iter().map(|(takes, _)| *takes).collect();
    let (takes, gives) = match expr::choose(&lists, &scalars) {
        Choice::One(n) => all[n],
        Choice::Missing => return Err(missing(name, args)),
        Choice::Ambiguous => return Err(ambiguous(name, args)),
    };
    let converted: Result<Vec<Expr>, SqlError> = std::mem::take(args)
        .into_iter()
        .zip(takes)
        .map(|(arg, to)| expr::implicit_to(arg, *to).map(expr::settle))
        .collect();
    *args = converted?;
    Ok(Type::Scalar(match (kind, gives, args.first().map(|arg| &arg.ty)) {
        (AggregateKind::Sum | AggregateKind::Min | AggregateKind::Max, Scalar::Numeric { .. }, Some(ty)) => {
            match ty {
                Type::Scalar(Scalar::BigInt) => Scalar::Numeric { scale: Some(0) },
                Type::Scalar(numeric @ Scalar::Numeric { .. }) => *numeric,
                _ => gives,
            }
        }
        _ => gives,
    }))
}

/// The percentiles, which take a fraction or an array of fractions.
fn percentile(kind: AggregateKind, name: &str, args: &mut Vec<Expr>) -> Result<Type, SqlError> {
    let many = matches!(args[0].ty, Type::Array(_));
    let fractions = if many { Type::Array(Scalar::Double) } else { Type::Scalar(Scalar::Double) };
    let shown = missing(name, args);
    let mut parts = std::mem::take(args).into_iter();
    let (Some(fraction), Some(value)) = (parts.next(), parts.next()) else { return Err(shown) };
    let Ok(fraction) = expr::implicit_to_type(fraction, &fractions) else { return Err(shown) };
    let ty = if kind == AggregateKind::PercentileDisc {
        if is_unknown(&value) {
            return Err(undetermined());
        }
        *args = vec![fraction, value.clone()];
        value.ty
    } else {
        let mut pair = vec![Expr { ty: Type::Scalar(Scalar::Double), ..Expr::null() }, value];
        let ty = chosen(kind, name, &mut pair).map_err(|error| match error.state() {
            SqlState::UNDEFINED_FUNCTION => shown,
            _ => error,
        })?;
        *args = std::iter::once(fraction).chain(pair.into_iter().skip(1)).collect();
        ty
    };
    match (many, ty) {
        (false, ty) => Ok(ty),
        (true, Type::Scalar(element)) => Ok(Type::Array(element)),
        (true, other) => Err(SqlError::unsupported(format!("an array of {other}"))),
    }
}
