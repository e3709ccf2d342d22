//! Which expressions may fail because of the values that they see.
//!
//! Responsible for: telling what must not be computed for a row that a condition beside it refuses: divisions,
//! casts of texts, functions with a domain. Not responsible for: sums, products and texts that become too
//! large, which count as safe: few do, and their conditions decide joins.

use albireo_base::{SqlType, Value};

use super::{Arithmetic, Binary, Conversion, Expr, ExprKind};
use crate::datum::Datum;
use crate::types::{Scalar, Type};

/// Functions of the tables that give a result for all values.
const SAFE: [&str; 47] = [
    "abs",
    "age",
    "ascii",
    "bit_count",
    "bit_length",
    "btrim",
    "ceil",
    "ceiling",
    "char_length",
    "character_length",
    "cosh",
    "date",
    "degrees",
    "extract",
    "floor",
    "ilike",
    "initcap",
    "interval",
    "isfinite",
    "justify_days",
    "justify_hours",
    "justify_interval",
    "left",
    "length",
    "like",
    "like_beginning",
    "lower",
    "lpad",
    "ltrim",
    "md5",
    "min_scale",
    "octet_length",
    "position",
    "radians",
    "replace",
    "reverse",
    "right",
    "round",
    "rpad",
    "rtrim",
    "scale",
    "sign",
    "starts_with",
    "strpos",
    "translate",
    "trunc",
    "upper",
];

impl Expr {
    /// Whether it may fail for some values of its columns.
    pub fn may_fail(&self) -> bool {
        let mut found = false;
        self.walk(&mut |part| found |= part.fails_itself());
        found
    }

    /// Whether it may fail although all its parts have a value.
    fn fails_itself(&self) -> bool {
        match &self.kind {
            ExprKind::Call(..) => true,
            ExprKind::Cast(inner, to, _) => !is_safe_cast(&inner.ty, Scalar::of(*to)) || is_narrow(*to),
            ExprKind::Convert(inner, Conversion::Scalar(to)) => !is_safe_cast(&inner.ty, *to),
            ExprKind::Convert(_, Conversion::Items(_) | Conversion::ReadArray(_)) => true,
            ExprKind::Binary(op, pair) => match op {
                Binary::SmallInt(op)
                | Binary::Integer(op)
                | Binary::BigInt(op)
                | Binary::Real(op)
                | Binary::Double(op)
                | Binary::Numeric(op) => {
                    matches!(op, Arithmetic::Divide | Arithmetic::Modulo) && !is_divisor(&pair.1)
                }
                Binary::DoublePower | Binary::NumericPower | Binary::IntervalBy => true,
                _ => false,
            },
            // A pattern that ends in what escapes.
            ExprKind::Function(builtin, args) => match (builtin.name, args.as_slice()) {
                ("like" | "ilike", [_, pattern, escape]) => !is_constant(pattern) || !is_constant(escape),
                ("~" | "~*", [_, pattern]) => !is_constant(pattern),
                ("mod", [_, by]) => !is_divisor(by),
                ("substr" | "substring", [_, _, count]) => !is_constant(count),
                ("substr" | "substring", [_, _]) => false,
                ("date_trunc" | "date_part" | "to_char", [a, b]) => !is_constant(a) && !is_constant(b),
                (name, _) => !SAFE.contains(&name),
            },
            ExprKind::General(general, _) => !matches!(general.name, "concat" | "concat_ws"),
            _ => false,
        }
    }
}

fn is_constant(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Constant(_))
}

/// A constant by which every number can be divided.
fn is_divisor(expr: &Expr) -> bool {
    let fails = |value: &Value| match value {
        Value::SmallInt(n) => *n == 0 || *n == -1,
        Value::Integer(n) => *n == 0 || *n == -1,
        Value::BigInt(n) => *n == 0 || *n == -1,
        Value::Decimal(n) => n.unscaled == 0,
        Value::Real(n) => *n == 0.0,
        Value::Double(n) => *n == 0.0,
        _ => true,
    };
    match &expr.kind {
        ExprKind::Constant(Datum::Value(value)) => value.is_null() || !fails(value),
        ExprKind::Convert(inner, _) => is_divisor(inner),
        _ => false,
    }
}

/// Whether values of NUMERIC may have too many digits for a type.
fn is_narrow(to: SqlType) -> bool {
    matches!(to, SqlType::Decimal { .. })
}

/// Whether every value of a type has one in another.
fn is_safe_cast(from: &Type, to: Scalar) -> bool {
    use Scalar::{
        BigInt, Bpchar, Date, Double, Integer, Numeric, Real, SmallInt, Text, Timestamp, TimestampTz,
    };
    let Type::Scalar(from) = *from else { return to == Text };
    from.same(to)
        || matches!(
            (from, to),
            (_, Text | Bpchar)
                | (SmallInt, Integer | BigInt | Numeric { .. } | Real | Double)
                | (Integer, BigInt | Numeric { .. } | Real | Double)
                | (BigInt, Numeric { .. } | Real | Double)
                | (Real, Double)
                | (Numeric { .. }, Double)
                | (Date, Timestamp | TimestampTz)
                | (Timestamp | TimestampTz, Date | Timestamp | TimestampTz)
        )
}
