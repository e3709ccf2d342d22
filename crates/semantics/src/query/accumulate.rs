//! Aggregates at work: values go in, a result comes out.
//!
//! Responsible for: what every aggregate computes, with DISTINCT and ORDER BY inside, on every path. Not
//! responsible for: which rows are of a group, FILTER, faster versions of the same (`olap`).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use albireo_base::{Decimal, Interval, SqlError, SqlState, Value};

use super::float_moments::FloatMoments;
use super::tree::{Aggregate, AggregateKind, OrderKey, Regression};
use crate::datum::{Array, Datum};
use crate::expr::{self, Arithmetic, Binary, Moments, moment_binary};
use crate::types::{Scalar, Type};

type Result<T> = std::result::Result<T, SqlError>;

/// Values in the order of ORDER BY.
#[derive(Clone, Debug)]
pub struct Sorted(pub Vec<Datum>);

impl Ord for Sorted {
    fn cmp(&self, other: &Self) -> Ordering {
        let pairs = self.0.iter().zip(&other.0);
        pairs.map(|(a, b)| expr::compare(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl PartialOrd for Sorted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Sorted {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Sorted {}

/// The order of two rows by their keys.
pub fn compare_keys(a: &[Datum], b: &[Datum], order: &[OrderKey]) -> Ordering {
    let pairs = a.iter().zip(b).zip(order);
    pairs.map(|((a, b), key)| compare_key(a, b, key)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// The order of two values of one key.
pub fn compare_key(a: &Datum, b: &Datum, key: &OrderKey) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if key.nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if key.nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if key.descending => expr::compare(b, a),
        (false, false) => expr::compare(a, b),
    }
}

/// What is known of an aggregate's result so far.
#[derive(Clone, Debug)]
pub struct Accumulator<A> {
    aggregate: A,
    total: Total,
    /// The arguments met and the keys of their order, if each counts once.
    seen: BTreeMap<Sorted, Vec<Datum>>,
    /// All arguments with the keys of their order, if they have one.
    waiting: Vec<(Vec<Datum>, Vec<Datum>)>,
}

#[derive(Clone, Debug)]
enum Total {
    Count(i64),
    /// A sum and how many; exact unless floats.
    Sum(Option<Datum>, i64),
    Best(Option<Datum>),
    Truth(Option<bool>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Bits(Option<Value>),
    Moments(Moments),
    Floats(FloatMoments),
    /// What the ordered-set aggregates and `array_agg` look at, and a fraction or fractions.
    Items(Vec<Datum>, Option<Datum>),
}

impl Total {
    fn of(aggregate: &Aggregate) -> Self {
        use AggregateKind as K;
        let takes =
            |at: usize, ty: Scalar| aggregate.args.get(at).is_some_and(|arg| arg.ty == Type::Scalar(ty));
        match aggregate.kind {
            // Without grouping sets there is no key that a row's grouping does not have.
            K::Count | K::Grouping => Self::Count(0),
            K::Sum | K::Avg => Self::Sum(None, 0),
            K::Min | K::Max => Self::Best(None),
            K::BoolAnd | K::BoolOr => Self::Truth(None),
            K::StringAgg if takes(0, Scalar::Bytea) => Self::Bytes(None),
            K::StringAgg => Self::Text(None),
            K::BitAnd | K::BitOr | K::BitXor => Self::Bits(None),
            K::StddevPop | K::StddevSamp | K::VarPop | K::VarSamp => {
                match takes(0, Scalar::Real) || takes(0, Scalar::Double) {
                    true => Self::Floats(FloatMoments::default()),
                    false => Self::Moments(Moments::default()),
                }
            }
            K::CovarPop | K::CovarSamp | K::Corr | K::Regression(_) => Self::Floats(FloatMoments::default()),
            K::ArrayAgg | K::Mode | K::PercentileCont | K::PercentileDisc => Self::Items(Vec::new(), None),
        }
    }
}

impl<A: Deref<Target = Aggregate>> Accumulator<A> {
    /// For no values.
    pub fn new(aggregate: A) -> Self {
        let total = Total::of(&aggregate);
        Self { aggregate, total, seen: BTreeMap::new(), waiting: Vec::new() }
    }

    /// Whether arguments are kept until the end, so that they take memory.
    pub fn keeps(&self) -> bool {
        let growing = matches!(self.total, Total::Items(..) | Total::Text(_) | Total::Bytes(_));
        self.aggregate.distinct || !self.aggregate.order.is_empty() || growing
    }

    /// Takes the arguments of a row in, and the keys of its order inside the aggregate.
    ///
    /// # Errors
    /// 22003 and 22008 for sums out of range.
    pub fn add(&mut self, args: Vec<Datum>, keys: Vec<Datum>) -> Result<()> {
        if self.skips(&args) {
            return Ok(());
        }
        if self.aggregate.distinct {
            self.seen.entry(Sorted(args)).or_insert(keys);
            return Ok(());
        }
        if !self.aggregate.order.is_empty() {
            self.waiting.push((keys, args));
            return Ok(());
        }
        self.take(args)
    }

    /// Whether a row has a NULL that makes it not count.
    fn skips(&self, args: &[Datum]) -> bool {
        use AggregateKind as K;
        match self.aggregate.kind {
            K::ArrayAgg | K::PercentileCont | K::PercentileDisc => false,
            K::CovarPop | K::CovarSamp | K::Corr | K::Regression(_) => args.iter().any(Datum::is_null),
            _ => args.first().is_some_and(Datum::is_null),
        }
    }

    fn take(&mut self, mut args: Vec<Datum>) -> Result<()> {
        let kind = self.aggregate.kind;
        let second = if args.len() > 1 { args.pop() } else { None };
        match (&mut self.total, args.pop()) {
            (Total::Count(n), _) => *n += 1,
            (Total::Sum(sum, n), Some(value)) => {
                *sum = Some(plus(sum.take(), value, kind == AggregateKind::Avg)?);
                *n += 1;
            }
            (Total::Best(best), Some(value)) => {
                // Of equal ones the last: 1.0 and 1.00 are.
                let better = best.as_ref().is_none_or(|best| match kind {
                    AggregateKind::Min => expr::compare(&value, best).is_le(),
                    _ => expr::compare(&value, best).is_ge(),
                });
                if better {
                    *best = Some(value);
                }
            }
            (Total::Truth(truth), Some(Datum::Value(Value::Bool(value)))) => {
                *truth = Some(match (kind, *truth) {
                    (_, None) => value,
                    (AggregateKind::BoolAnd, Some(truth)) => truth && value,
                    (_, Some(truth)) => truth || value,
                });
            }
            (Total::Text(all), Some(Datum::Value(Value::Text(text)))) => match (all, second) {
                (Some(all), Some(Datum::Value(Value::Text(by)))) => {
                    all.push_str(&by);
                    all.push_str(&text);
                }
                (Some(all), _) => all.push_str(&text),
                (all, _) => *all = Some(text),
            },
            (Total::Bytes(all), Some(Datum::Value(Value::Bytea(bytes)))) => match (all, second) {
                (Some(all), Some(Datum::Value(Value::Bytea(by)))) => {
                    all.extend_from_slice(&by);
                    all.extend_from_slice(&bytes);
                }
                (Some(all), _) => all.extend_from_slice(&bytes),
                (all, _) => *all = Some(bytes),
            },
            (Total::Bits(bits), Some(Datum::Value(value))) => *bits = Some(bits_of(kind, bits.take(), value)),
            (Total::Moments(moments), Some(value)) => moments.add(exact(&value)),
            (Total::Floats(moments), Some(first)) => {
                moments.add(float(&first), second.as_ref().map(float))?;
            }
            (Total::Items(items, fraction), Some(first)) => match (kind, second) {
                (AggregateKind::PercentileCont | AggregateKind::PercentileDisc, Some(value)) => {
                    *fraction = Some(first);
                    if !value.is_null() {
                        items.push(value);
                    }
                }
                _ => items.push(first),
            },
            _ => {}
        }
        Ok(())
    }

    /// The result for all rows so far.
    ///
    /// # Errors
    /// 22003 for a result out of range, for a fraction that is none.
    pub fn result(mut self) -> Result<Datum> {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.extend(std::mem::take(&mut self.seen).into_iter().map(|(args, keys)| (keys, args.0)));
        if !self.aggregate.order.is_empty() {
            waiting.sort_by(|a, b| compare_keys(&a.0, &b.0, &self.aggregate.order));
        }
        for (_, args) in waiting {
            self.take(args)?;
        }
        self.finished()
    }

    fn finished(self) -> Result<Datum> {
        use AggregateKind as K;
        let Aggregate { kind, ty, .. } = &*self.aggregate;
        let sample = matches!(kind, K::VarSamp | K::StddevSamp);
        let root = matches!(kind, K::StddevPop | K::StddevSamp);
        Ok(match self.total {
            Total::Count(_) if *kind == K::Grouping => Value::Integer(0).into(),
            Total::Count(n) => Value::BigInt(n).into(),
            Total::Sum(None, _) => Datum::NULL,
            Total::Sum(Some(sum), count) if *kind == K::Avg => quotient(sum, count)?,
            Total::Sum(Some(Datum::Value(Value::Decimal(sum))), _) if *ty == Type::Scalar(Scalar::BigInt) => {
                Value::BigInt(i64::try_from(sum.unscaled).map_err(|_| out_of_range("bigint out of range"))?)
                    .into()
            }
            Total::Sum(Some(sum), _) => sum,
            Total::Best(best) => best.unwrap_or(Datum::NULL),
            Total::Truth(truth) => Datum::Value(truth.into()),
            Total::Text(text) => Datum::Value(text.into()),
            Total::Bytes(bytes) => Datum::Value(bytes.map_or(Value::Null, Value::Bytea)),
            Total::Bits(bits) => Datum::Value(bits.unwrap_or(Value::Null)),
            Total::Moments(moments) => moments.variance(sample, root)?.map_or(Datum::NULL, decimal),
            Total::Floats(moments) => match kind {
                K::Regression(Regression::Count) => Value::BigInt(moments.count()).into(),
                K::VarPop | K::VarSamp | K::StddevPop | K::StddevSamp => {
                    double(moments.variance(sample, root))
                }
                kind => double(moments.of_pairs(*kind)),
            },
            Total::Items(items, _) if items.is_empty() => Datum::NULL,
            Total::Items(items, fraction) => match kind {
                K::Mode => mode(items),
                K::PercentileCont | K::PercentileDisc => {
                    percentiles(&items, fraction.unwrap_or_default(), *kind == K::PercentileCont)?
                }
                _ => Datum::Array(Arc::new(Array { lower: 1, items })),
            },
        })
    }

    /// What is passed on of a part of the rows, to be put together by [`Self::merge`], where that is less than
    /// the rows; of these types.
    pub fn part_types(&self) -> Option<Vec<Type>> {
        if self.aggregate.distinct || !self.aggregate.order.is_empty() {
            return None;
        }
        let ty = &self.aggregate.args.first()?.ty;
        let average = self.aggregate.kind == AggregateKind::Avg;
        Some(match self.total {
            Total::Sum(..) => {
                let sum = match ty {
                    Type::Scalar(Scalar::SmallInt | Scalar::Integer | Scalar::BigInt) => {
                        Type::Scalar(Scalar::Numeric { scale: Some(0) })
                    }
                    Type::Scalar(Scalar::Real) if average => Type::Scalar(Scalar::Double),
                    ty => ty.clone(),
                };
                vec![sum, Type::Scalar(Scalar::BigInt)]
            }
            Total::Best(_) => vec![ty.clone()],
            _ => return None,
        })
    }

    /// What is passed on.
    pub fn parts(&self) -> Vec<Datum> {
        match &self.total {
            Total::Sum(sum, count) => vec![sum.clone().unwrap_or_default(), Value::BigInt(*count).into()],
            Total::Best(best) => vec![best.clone().unwrap_or_default()],
            _ => Vec::new(),
        }
    }

    /// Takes what was passed on of other rows in.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn merge(&mut self, parts: Vec<Datum>) -> Result<()> {
        let mut parts = parts.into_iter();
        let (first, second) = (parts.next().unwrap_or_default(), parts.next());
        if first.is_null() {
            return Ok(());
        }
        match (&mut self.total, second) {
            (Total::Sum(sum, count), Some(Datum::Value(Value::BigInt(more)))) => {
                *sum = Some(plus(sum.take(), first, self.aggregate.kind == AggregateKind::Avg)?);
                *count += more;
                Ok(())
            }
            _ => self.take(vec![first]),
        }
    }
}

fn out_of_range(message: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

fn decimal(number: Decimal) -> Datum {
    Value::Decimal(number).into()
}

fn double(number: Option<f64>) -> Datum {
    number.map_or(Datum::NULL, |number| Value::Double(number).into())
}

/// An exact number.
fn exact(value: &Datum) -> Decimal {
    let whole = |n: i64| Decimal::new(i128::from(n), 0);
    match value {
        Datum::Value(Value::SmallInt(n)) => whole(i64::from(*n)),
        Datum::Value(Value::Integer(n)) => whole(i64::from(*n)),
        Datum::Value(Value::BigInt(n)) => whole(*n),
        Datum::Value(Value::Decimal(number)) => *number,
        _ => Decimal::new(0, 0),
    }
}

fn float(value: &Datum) -> f64 {
    match value {
        Datum::Value(Value::Double(v)) => *v,
        Datum::Value(Value::Real(v)) => f64::from(*v),
        _ => f64::NAN,
    }
}

/// Adds to a sum; sums of integers are kept as decimals, those for an average of floats in DOUBLE.
fn plus(sum: Option<Datum>, value: Datum, average: bool) -> Result<Datum> {
    let value = match value {
        Datum::Value(Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_)) => decimal(exact(&value)),
        Datum::Value(Value::Real(n)) if average => Value::Double(f64::from(n)).into(),
        other => other,
    };
    let Some(sum) = sum else { return Ok(value) };
    let finite = |sum: f64, finite: bool| match sum.is_infinite() && finite {
        true => Err(out_of_range("value out of range: overflow")),
        false => Ok(sum),
    };
    Ok(match (sum, value) {
        (Datum::Value(Value::Decimal(a)), Datum::Value(Value::Decimal(b))) => {
            decimal(expr::numeric(Arithmetic::Add, a, b)?)
        }
        (Datum::Value(Value::Double(a)), Datum::Value(Value::Double(b))) => {
            Value::Double(finite(a + b, a.is_finite() && b.is_finite())?).into()
        }
        (Datum::Value(Value::Real(a)), Datum::Value(Value::Real(b))) => {
            finite(f64::from(a + b), a.is_finite() && b.is_finite())?;
            Value::Real(a + b).into()
        }
        (a @ Datum::Interval(_), b) => moment_binary(Binary::IntervalPlusInterval, &a, &b)?,
        (a, _) => a,
    })
}

fn quotient(sum: Datum, count: i64) -> Result<Datum> {
    Ok(match sum {
        Datum::Value(Value::Decimal(sum)) => {
            decimal(expr::numeric(Arithmetic::Divide, sum, Decimal::new(i128::from(count), 0))?)
        }
        Datum::Value(Value::Double(sum)) => Value::Double(sum / count as f64).into(),
        sum @ Datum::Interval(_) => {
            moment_binary(Binary::IntervalBy, &sum, &Value::Double(count as f64).into())?
        }
        other => other,
    })
}

fn bits_of(kind: AggregateKind, bits: Option<Value>, value: Value) -> Value {
    macro_rules! combined {
        ($a:expr, $b:expr) => {
            match kind {
                AggregateKind::BitAnd => $a & $b,
                AggregateKind::BitOr => $a | $b,
                _ => $a ^ $b,
            }
        };
    }
    match (bits, value) {
        (Some(Value::SmallInt(a)), Value::SmallInt(b)) => Value::SmallInt(combined!(a, b)),
        (Some(Value::Integer(a)), Value::Integer(b)) => Value::Integer(combined!(a, b)),
        (Some(Value::BigInt(a)), Value::BigInt(b)) => Value::BigInt(combined!(a, b)),
        (_, value) => value,
    }
}

/// The most frequent of sorted values, the first of these.
fn mode(items: Vec<Datum>) -> Datum {
    let (mut best, mut most) = (Datum::NULL, 0);
    let mut items = items.into_iter().peekable();
    while let Some(first) = items.next() {
        let mut count = 1;
        while items.next_if(|next| expr::compare(next, &first).is_eq()).is_some() {
            count += 1;
        }
        if count > most {
            (best, most) = (first, count);
        }
    }
    best
}

/// The percentiles of sorted values, of which there is one at least: for a fraction or each of several.
fn percentiles(items: &[Datum], fractions: Datum, continuous: bool) -> Result<Datum> {
    match fractions {
        Datum::Array(fractions) => {
            let of = |fraction: &Datum| percentile(items, fraction, continuous);
            let items = fractions.items.iter().map(of).collect::<Result<_>>()?;
            Ok(Datum::Array(Arc::new(Array { lower: 1, items })))
        }
        fraction => percentile(items, &fraction, continuous),
    }
}

fn percentile(items: &[Datum], fraction: &Datum, continuous: bool) -> Result<Datum> {
    let Datum::Value(Value::Double(fraction)) = fraction else { return Ok(Datum::NULL) };
    if !(0.0..=1.0).contains(fraction) {
        return Err(out_of_range(&format!("percentile value {fraction} is not between 0 and 1")));
    }
    let at = |position: f64| items.get(position as usize).cloned().unwrap_or_default();
    if !continuous {
        return Ok(at((fraction * items.len() as f64).ceil().max(1.0) - 1.0));
    }
    let position = fraction * (items.len() as f64 - 1.0);
    let (low, high) = (position.floor(), position.ceil());
    match low == high {
        true => Ok(at(low)),
        false => between(&at(low), &at(high), position - low),
    }
}

/// What lies between two values, by how far it is from the first.
fn between(low: &Datum, high: &Datum, part: f64) -> Result<Datum> {
    match (low, high) {
        (Datum::Value(Value::Double(a)), Datum::Value(Value::Double(b))) => {
            Ok(Value::Double(a + part * (b - a)).into())
        }
        (Datum::Interval(Interval { .. }), Datum::Interval(_)) => {
            let way = moment_binary(Binary::IntervalMinusInterval, high, low)?;
            let way = moment_binary(Binary::IntervalTimes, &way, &Value::Double(part).into())?;
            moment_binary(Binary::IntervalPlusInterval, &way, low)
        }
        _ => Ok(low.clone()),
    }
}
