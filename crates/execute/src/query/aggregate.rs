//! Groups and aggregates at work.
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use albireo_base::{Decimal, SqlError, SqlState, Value};
use albireo_semantics::query::tree::{Aggregate, AggregateKind, Grouping, OrderBy, OrderKey, Select};

use super::frame::{Row, Running, Sorted};
use super::scan::{Flow, array_of};
use super::select::{Output, compare_keys};
use crate::Stop;
use crate::datum::Datum;
use crate::expr::{self, Arithmetic, Binary, Expr, ExprKind};
use crate::types::{Scalar, Type};

/// A group.
struct Group {
    /// The current rows when it was met first.
    rows: Vec<Row>,
    keys: Vec<Datum>,
    states: Vec<State>,
}

/// What is known of an aggregate's result so far.
struct State {
    total: Total,
    /// Values met, if each counts once.
    seen: BTreeSet<Sorted>,
    /// All arguments with the keys of their order, if they have one.
    waiting: Vec<(Vec<Datum>, Vec<Datum>)>,
}

enum Total {
    Count(i64),
    /// A sum and how many; exact unless floats.
    Sum(Option<Value>, i64),
    Best(Option<Datum>),
    Truth(Option<bool>),
    Text(Option<String>),
    Items(Vec<Datum>),
}

impl State {
    fn new(aggregate: &Aggregate) -> Self {
        let total = match aggregate.kind {
            AggregateKind::Count => Total::Count(0),
            AggregateKind::Sum | AggregateKind::Avg => Total::Sum(None, 0),
            AggregateKind::Min | AggregateKind::Max => Total::Best(None),
            AggregateKind::BoolAnd | AggregateKind::BoolOr => Total::Truth(None),
            AggregateKind::StringAgg => Total::Text(None),
            // All others are refused before (`refuse`).
            _ => Total::Items(Vec::new()),
        };
        Self { total, seen: BTreeSet::new(), waiting: Vec::new() }
    }

    /// Takes a value in.
    fn add(&mut self, kind: AggregateKind, mut args: Vec<Datum>) -> Result<(), SqlError> {
        if kind != AggregateKind::ArrayAgg && args.first().is_some_and(Datum::is_null) {
            return Ok(());
        }
        let by = if args.len() > 1 { args.pop() } else { None };
        let first = args.pop();
        match (&mut self.total, first) {
            (Total::Count(n), _) => *n += 1,
            (Total::Sum(sum, n), Some(Datum::Value(value))) => {
                *sum = Some(add(sum.take(), value, kind == AggregateKind::Avg)?);
                *n += 1;
            }
            (Total::Best(best), Some(value)) => {
                let better = best.as_ref().is_none_or(|best| match kind {
                    AggregateKind::Min => expr::compare(&value, best).is_lt(),
                    _ => expr::compare(&value, best).is_gt(),
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
            (Total::Text(all), Some(Datum::Value(Value::Text(text)))) => match all {
                None => *all = Some(text),
                Some(all) => {
                    if let Some(Datum::Value(Value::Text(by))) = by {
                        all.push_str(&by);
                    }
                    all.push_str(&text);
                }
            },
            (Total::Items(items), Some(value)) => items.push(value),
            _ => {}
        }
        Ok(())
    }
}

/// Adds to a sum; sums of integers are kept as decimals, those for an average of floats in DOUBLE.
fn add(sum: Option<Value>, value: Value, average: bool) -> Result<Value, SqlError> {
    let value = match value {
        Value::SmallInt(n) => Value::Decimal(Decimal::new(i128::from(n), 0)),
        Value::Integer(n) => Value::Decimal(Decimal::new(i128::from(n), 0)),
        Value::BigInt(n) => Value::Decimal(Decimal::new(i128::from(n), 0)),
        Value::Real(n) if average => Value::Double(f64::from(n)),
        other => other,
    };
    let overflow = |what: &str| SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, what.to_owned());
    Ok(match (sum, value) {
        (None, value) => value,
        (Some(Value::Decimal(a)), Value::Decimal(b)) => {
            let sum = a.checked_add(b).filter(|sum| sum.fits(38));
            Value::Decimal(sum.ok_or_else(|| {
                overflow("numeric field overflow").with_detail("Numbers have at most 38 digits.")
            })?)
        }
        (Some(Value::Double(a)), Value::Double(b)) => {
            let sum = a + b;
            if sum.is_infinite() && a.is_finite() && b.is_finite() {
                return Err(overflow("value out of range: overflow"));
            }
            Value::Double(sum)
        }
        (Some(Value::Real(a)), Value::Real(b)) => {
            let sum = a + b;
            if sum.is_infinite() && a.is_finite() && b.is_finite() {
                return Err(overflow("value out of range: overflow"));
            }
            Value::Real(sum)
        }
        (Some(a), _) => a,
    })
}

fn quotient(sum: Value, count: i64, running: &mut Running<'_>) -> Result<Datum, Stop> {
    if let Value::Double(sum) = sum {
        return Ok(Datum::Value(Value::Double(sum / count as f64)));
    }
    let ty = Type::Scalar(Scalar::Numeric { scale: None });
    let constant = |value: Value| Expr { kind: ExprKind::Constant(Datum::Value(value)), ty: ty.clone() };
    let pair = (constant(sum), constant(Value::Decimal(Decimal::new(i128::from(count), 0))));
    let kind = ExprKind::Binary(Binary::Numeric(Arithmetic::Divide), Box::new(pair));
    running.value(&Expr { kind, ty: ty.clone() })
}

impl<'h> Running<'h> {
    /// The results of a query's groups.
    pub(super) fn groups(
        &mut self,
        select: &Select,
        grouping: &Grouping,
        order: &[OrderKey],
    ) -> Result<Vec<Output>, Stop> {
        let mut groups: BTreeMap<Sorted, Group> = BTreeMap::new();
        if self.all(&select.constants)? {
            self.steps(&select.relations, &select.steps, &mut |running| {
                running.enter_group(grouping, &mut groups)?;
                Ok(if select.ends { Flow::NextSite } else { Flow::More })
            })?;
        }
        if groups.is_empty() && !grouping.written {
            self.no_rows();
            let rows = self.level().rows.clone();
            let states = grouping.aggregates.iter().map(State::new).collect();
            groups.insert(Sorted(Vec::new()), Group { rows, keys: Vec::new(), states });
        }
        let mut outputs = Vec::with_capacity(groups.len());
        for (_, group) in groups {
            self.level().rows = group.rows;
            let mut results = group.keys;
            for (state, aggregate) in group.states.into_iter().zip(&grouping.aggregates) {
                results.push(self.result(state, aggregate)?);
            }
            self.set(select.relations.len() as u16, Row::Made(Arc::from(results)));
            if let Some(having) = &grouping.having
                && !self.is_true(having)?
            {
                continue;
            }
            let output = self.output(select, order)?;
            self.keep(&output.row)?;
            outputs.push(output);
        }
        Ok(outputs)
    }

    fn enter_group(&mut self, grouping: &Grouping, groups: &mut BTreeMap<Sorted, Group>) -> Result<(), Stop> {
        let keys = self.values(&grouping.keys)?;
        let group = match groups.entry(Sorted(keys.clone())) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(place) => {
                let rows = self.level().rows.clone();
                self.keep(&keys)?;
                let states = grouping.aggregates.iter().map(State::new).collect();
                place.insert(Group { rows, keys, states })
            }
        };
        for (state, aggregate) in group.states.iter_mut().zip(&grouping.aggregates) {
            if let Some(filter) = &aggregate.filter
                && !self.is_true(filter)?
            {
                continue;
            }
            let args = self.values(&aggregate.args)?;
            if aggregate.distinct {
                self.keep(&args)?;
                let null = args.first().is_some_and(Datum::is_null);
                let counts = !null || aggregate.kind == AggregateKind::ArrayAgg;
                if counts {
                    state.seen.insert(Sorted(args));
                }
                continue;
            }
            if aggregate.order.is_empty() {
                if matches!(aggregate.kind, AggregateKind::ArrayAgg | AggregateKind::StringAgg) {
                    self.keep(&args)?;
                }
                state.add(aggregate.kind, args)?;
                continue;
            }
            let mut keys = Vec::with_capacity(aggregate.order.len());
            for key in &aggregate.order {
                if let OrderBy::Expr(expr) = &key.by {
                    keys.push(self.value(expr)?);
                }
            }
            self.keep(&args)?;
            state.waiting.push((keys, args));
        }
        Ok(())
    }

    fn result(&mut self, mut state: State, aggregate: &Aggregate) -> Result<Datum, Stop> {
        for values in std::mem::take(&mut state.seen) {
            state.add(aggregate.kind, values.0)?;
        }
        let mut waiting = std::mem::take(&mut state.waiting);
        waiting.sort_by(|a, b| compare_keys(&a.0, &b.0, &aggregate.order));
        for (_, args) in waiting {
            state.add(aggregate.kind, args)?;
        }
        let out_of_range = || SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range");
        Ok(match state.total {
            Total::Count(n) => Datum::Value(Value::BigInt(n)),
            Total::Sum(None, _) => Datum::NULL,
            Total::Sum(Some(sum), count) if aggregate.kind == AggregateKind::Avg => {
                quotient(sum, count, self)?
            }
            Total::Sum(Some(Value::Decimal(sum)), _) if aggregate.ty == Type::Scalar(Scalar::BigInt) => {
                Datum::Value(Value::BigInt(i64::try_from(sum.unscaled).map_err(|_| out_of_range())?))
            }
            Total::Sum(Some(sum), _) => Datum::Value(sum),
            Total::Best(best) => best.unwrap_or(Datum::NULL),
            Total::Truth(truth) => Datum::Value(truth.into()),
            Total::Text(text) => Datum::Value(text.into()),
            Total::Items(items) if items.is_empty() => Datum::NULL,
            Total::Items(items) => array_of(items),
        })
    }
}
