//! `generate_series` at work.

use albireo_base::{Decimal, Interval, SqlError, SqlState, Value};

use crate::datum::Datum;
use crate::expr::{self, Arithmetic, Binary, moment_binary};

/// The values of a series that are still to come.
#[derive(Clone, Debug)]
pub struct Series {
    next: Option<Datum>,
    last: Datum,
    step: Datum,
    down: bool,
}

fn invalid(what: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("step size cannot {what}"))
}

impl Series {
    /// The series of these arguments, of one type but for the step of moments; empty if one is NULL.
    ///
    /// # Errors
    /// 22023 for a step of zero.
    pub fn new(args: &[Datum]) -> Result<Self, SqlError> {
        let mut args = args.iter().cloned();
        let (first, last) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
        let step = args.next().unwrap_or_else(|| one_like(&first));
        let none = first.is_null() || last.is_null() || step.is_null();
        let sign = if none { 1 } else { sign_of(&step) };
        if sign == 0 {
            return Err(invalid("equal zero"));
        }
        Ok(Self { next: (!none).then_some(first), last, step, down: sign < 0 })
    }

    fn after(&self, value: &Datum) -> Result<Option<Datum>, SqlError> {
        Ok(match (value, &self.step) {
            (Datum::Value(Value::Integer(n)), Datum::Value(Value::Integer(step))) => {
                n.checked_add(*step).map(|n| Value::Integer(n).into())
            }
            (Datum::Value(Value::BigInt(n)), Datum::Value(Value::BigInt(step))) => {
                n.checked_add(*step).map(|n| Value::BigInt(n).into())
            }
            (Datum::Value(Value::Decimal(n)), Datum::Value(Value::Decimal(step))) => {
                Some(Value::Decimal(expr::numeric(Arithmetic::Add, *n, *step)?).into())
            }
            (moment, step) => Some(moment_binary(Binary::MomentPlusInterval, moment, step)?),
        })
    }
}

impl Iterator for Series {
    type Item = Result<Datum, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        let value = self.next.take()?;
        let order = expr::compare(&value, &self.last);
        let beyond = if self.down { order.is_lt() } else { order.is_gt() };
        if beyond {
            return None;
        }
        match self.after(&value) {
            Ok(next) => self.next = next,
            Err(error) => return Some(Err(error)),
        }
        Some(Ok(value))
    }
}

fn one_like(value: &Datum) -> Datum {
    match value {
        Datum::Value(Value::Integer(_)) => Value::Integer(1).into(),
        Datum::Value(Value::BigInt(_)) => Value::BigInt(1).into(),
        Datum::Value(Value::Decimal(_)) => Value::Decimal(Decimal::new(1, 0)).into(),
        _ => Datum::NULL,
    }
}

fn sign_of(step: &Datum) -> i128 {
    match step {
        Datum::Value(Value::Integer(n)) => i128::from(*n).signum(),
        Datum::Value(Value::BigInt(n)) => i128::from(*n).signum(),
        Datum::Value(Value::Decimal(n)) => n.unscaled.signum(),
        Datum::Interval(_) => {
            let zero = Datum::Interval(Interval { months: 0, days: 0, micros: 0 });
            expr::compare(step, &zero) as i128
        }
        _ => 0,
    }
}
