//! The share of rows a filter lets pass, from column statistics.
//!
//! Independence is assumed between conjuncts. Where nothing is known the classic guesses of
//! Selinger et al. (SIGMOD 1979) serve.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{InList, Like};
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, Operator};

use super::predicate::raw_constant;
use super::statistics::ColumnFacts;

/// Share of rows that equal an unknown value of an unknown column.
const UNKNOWN_EQUAL: f64 = 0.1;
/// Share of rows on one side of an unknown bound.
const UNKNOWN_RANGE: f64 = 1.0 / 3.0;
/// Share of rows that match a pattern.
const PATTERN: f64 = 0.1;
/// Share of rows that pass what we do not understand.
const UNKNOWN: f64 = 0.25;

/// Looks up the facts of a column by name.
pub(crate) type Facts<'a> = dyn FnMut(&str) -> Option<ColumnFacts> + 'a;

/// The share of rows for which `filter` is true.
pub(crate) fn of(filter: &Expr, facts: &mut Facts<'_>) -> f64 {
    estimate(filter, facts).clamp(0.0, 1.0)
}

fn estimate(filter: &Expr, facts: &mut Facts<'_>) -> f64 {
    match filter {
        Expr::Literal(ScalarValue::Boolean(Some(true)), _) => 1.0,
        Expr::Literal(ScalarValue::Boolean(_) | ScalarValue::Null, _) => 0.0,
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => of(left, facts) * of(right, facts),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (a, b) = (of(left, facts), of(right, facts));
            a + b - a * b
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (column(left), column(right)) {
            (Some(name), None) => comparison(facts(name), *op, right),
            (None, Some(name)) => comparison(facts(name), op.swap().unwrap_or(*op), left),
            (Some(a), Some(b)) if *op == Operator::Eq => {
                let distinct = |f: Option<ColumnFacts>| f.map_or(10.0, |f| f.distinct);
                1.0 / distinct(facts(a)).max(distinct(facts(b))).max(1.0)
            }
            _ => unknown(*op),
        },
        Expr::Between(Between { expr, negated, low, high }) => {
            let Some(known) = column(expr).and_then(&mut *facts) else { return UNKNOWN };
            let below = comparison(Some(known), Operator::Lt, low);
            let above = comparison(Some(known), Operator::Gt, high);
            let inside = (1.0 - below - above).max(equal(Some(known)));
            if *negated { 1.0 - inside } else { inside }
        }
        Expr::InList(InList { expr, list, negated }) => {
            let one = equal(column(expr).and_then(&mut *facts));
            let any = (one * list.len() as f64).min(1.0);
            if *negated { 1.0 - any } else { any }
        }
        Expr::Like(Like { negated, .. }) | Expr::SimilarTo(Like { negated, .. }) => {
            if *negated {
                1.0 - PATTERN
            } else {
                PATTERN
            }
        }
        Expr::IsNull(e) => null_fraction(e, facts),
        Expr::IsNotNull(e) => 1.0 - null_fraction(e, facts),
        Expr::Not(e) => 1.0 - of(e, facts),
        _ => UNKNOWN,
    }
}

fn null_fraction(expr: &Expr, facts: &mut Facts<'_>) -> f64 {
    column(expr).and_then(facts).map_or(UNKNOWN_EQUAL, |f| f.null_fraction)
}

fn column(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(c) => Some(&c.name),
        Expr::Cast(Cast { expr, .. }) => column(expr),
        _ => None,
    }
}

fn unknown(op: Operator) -> f64 {
    match op {
        Operator::Eq => UNKNOWN_EQUAL,
        Operator::NotEq => 1.0 - UNKNOWN_EQUAL,
        Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => UNKNOWN_RANGE,
        Operator::LikeMatch | Operator::ILikeMatch => PATTERN,
        _ => UNKNOWN,
    }
}

fn equal(facts: Option<ColumnFacts>) -> f64 {
    facts.map_or(UNKNOWN_EQUAL, |f| (1.0 - f.null_fraction) / f.distinct.max(1.0))
}

fn comparison(facts: Option<ColumnFacts>, op: Operator, constant: &Expr) -> f64 {
    let Some(known) = facts else { return unknown(op) };
    let present = 1.0 - known.null_fraction;
    match op {
        Operator::Eq => return equal(facts),
        Operator::NotEq => return present - equal(facts),
        Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => {}
        other => return unknown(other),
    }
    let value = match constant {
        Expr::Literal(value, _) => raw_constant(value),
        _ => None,
    };
    let (Some((min, max)), Some(value)) = (known.range, value) else { return unknown(op) };
    let (min, max, value) = (min as f64, max as f64, value as f64);
    if max <= min {
        let passes = match op {
            Operator::Lt => min < value,
            Operator::LtEq => min <= value,
            Operator::Gt => min > value,
            _ => min >= value,
        };
        return if passes { present } else { 0.0 };
    }
    let below = ((value - min) / (max - min)).clamp(0.0, 1.0);
    present * if matches!(op, Operator::Lt | Operator::LtEq) { below } else { 1.0 - below }
}
