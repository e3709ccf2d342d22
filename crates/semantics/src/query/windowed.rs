//! Window functions at work, over one partition whose rows are in order.
//!
//! Responsible for: every window function and every frame, row by row. Not responsible for: cutting rows into
//! partitions and ordering them, faster versions of the same (`olap`).

use std::ops::Range;

use albireo_base::value::MICROS_PER_DAY;
use albireo_base::{Decimal, Interval, SqlError, SqlState, Value};

use super::accumulate::{Accumulator, compare_keys};
use super::tree::{Aggregate, FrameBound, FrameUnit, WindowCall, WindowFunction};
use crate::datum::Datum;
use crate::expr::{self, Binary, moment_binary};

type Result<T> = std::result::Result<T, SqlError>;

/// What a call needs of a row.
#[derive(Clone, Default, Debug)]
pub struct Row {
    /// Its arguments.
    pub args: Vec<Datum>,
    /// The keys of its order.
    pub keys: Vec<Datum>,
    /// Whether FILTER lets it pass.
    pub passes: bool,
    /// How far the bounds of the frame are, where they say.
    pub offsets: [Datum; 2],
}

/// The results of a call for the rows of one partition.
///
/// # Errors
/// What the function says; 22004 and 22013 for offsets of frames that are none.
pub fn results(call: &WindowCall, rows: &[Row]) -> Result<Vec<Datum>> {
    let partition = Partition::new(call, rows)?;
    let all = 0..rows.len();
    match call.function {
        WindowFunction::Aggregate(kind) => {
            let aggregate = Aggregate {
                kind,
                args: call.args.clone(),
                distinct: false,
                filter: None,
                order: Vec::new(),
                ty: call.ty.clone(),
            };
            partition.aggregated(&aggregate)
        }
        WindowFunction::Ntile => ntile(rows),
        WindowFunction::Lag => Ok(all.map(|at| partition.moved(at, -1)).collect()),
        WindowFunction::Lead => Ok(all.map(|at| partition.moved(at, 1)).collect()),
        _ => all.map(|at| partition.result(at)).collect(),
    }
}

struct Partition<'p> {
    call: &'p WindowCall,
    rows: &'p [Row],
    /// The number of each row's group of peers.
    group: Vec<usize>,
    /// The rows of each group.
    groups: Vec<Range<usize>>,
    /// How many rows have NULL as their first key.
    nulls: usize,
}

impl<'p> Partition<'p> {
    fn new(call: &'p WindowCall, rows: &'p [Row]) -> Result<Self> {
        let mut group = Vec::with_capacity(rows.len());
        let mut groups: Vec<Range<usize>> = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let peer = at > 0 && compare_keys(&rows[at - 1].keys, &row.keys, &call.order).is_eq();
            match groups.last_mut() {
                Some(last) if peer => last.end = at + 1,
                _ => groups.push(at..at + 1),
            }
            group.push(groups.len() - 1);
        }
        let nulls = rows.iter().filter(|row| row.keys.first().is_some_and(Datum::is_null)).count();
        let partition = Self { call, rows, group, groups, nulls };
        partition.check_offsets()?;
        Ok(partition)
    }

    fn check_offsets(&self) -> Result<()> {
        let Some(first) = self.rows.first() else { return Ok(()) };
        let frame = &self.call.frame;
        let sides = [(&frame.start, "starting"), (&frame.end, "ending")];
        for ((bound, side), offset) in sides.into_iter().zip(&first.offsets) {
            if !matches!(bound, FrameBound::Before(_) | FrameBound::After(_)) {
                continue;
            }
            let fault = |state, what| {
                Err(SqlError::new(SqlState(state), format!("frame {side} offset must not be {what}")))
            };
            match offset {
                offset if offset.is_null() => return fault(*b"22004", "null"),
                Datum::Value(Value::BigInt(n)) if *n < 0 && frame.unit != FrameUnit::Range => {
                    return fault(*b"22013", "negative");
                }
                offset if frame.unit == FrameUnit::Range && is_negative(offset, &first.keys) => {
                    let message = "invalid preceding or following size in window function";
                    return Err(SqlError::new(SqlState(*b"22013"), message));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The value of a function but an aggregate.
    fn result(&self, at: usize) -> Result<Datum> {
        let count = self.rows.len();
        let group = &self.groups[self.group[at]];
        let number = |n: usize| Datum::from(Value::BigInt(n as i64));
        let first_of = |at: usize| self.rows[at].args.first().cloned().unwrap_or_default();
        Ok(match self.call.function {
            WindowFunction::RowNumber => number(at + 1),
            WindowFunction::Rank => number(group.start + 1),
            WindowFunction::DenseRank => number(self.group[at] + 1),
            WindowFunction::PercentRank if count == 1 => Value::Double(0.0).into(),
            WindowFunction::PercentRank => Value::Double(group.start as f64 / (count - 1) as f64).into(),
            WindowFunction::CumeDist => Value::Double(group.end as f64 / count as f64).into(),
            WindowFunction::FirstValue => {
                let frame = self.frame(at)?;
                if frame.is_empty() { Datum::NULL } else { first_of(frame.start) }
            }
            WindowFunction::LastValue => {
                let frame = self.frame(at)?;
                if frame.is_empty() { Datum::NULL } else { first_of(frame.end - 1) }
            }
            WindowFunction::NthValue => {
                let Some(n) = whole(self.rows[at].args.get(1)) else { return Ok(Datum::NULL) };
                if n <= 0 {
                    let message = "argument of nth_value must be greater than zero";
                    return Err(SqlError::new(SqlState(*b"22016"), message));
                }
                let frame = self.frame(at)?;
                match frame.start.checked_add(n as usize - 1).filter(|at| *at < frame.end) {
                    Some(at) => first_of(at),
                    None => Datum::NULL,
                }
            }
            // These are computed for all rows at once.
            WindowFunction::Ntile
            | WindowFunction::Lag
            | WindowFunction::Lead
            | WindowFunction::Aggregate(_) => Datum::NULL,
        })
    }

    /// `lag` and `lead`.
    fn moved(&self, at: usize, direction: i64) -> Datum {
        let args = &self.rows[at].args;
        let by = match args.get(1) {
            None => 1,
            offset => match whole(offset) {
                Some(n) => n,
                None => return Datum::NULL,
            },
        };
        let to = (at as i64).checked_add(by * direction).and_then(|to| usize::try_from(to).ok());
        let found = to.and_then(|to| self.rows.get(to)).map(|row| row.args.first());
        let value = found.unwrap_or_else(|| args.get(2));
        value.cloned().unwrap_or_default()
    }

    fn aggregated(&self, aggregate: &Aggregate) -> Result<Vec<Datum>> {
        let mut results = Vec::with_capacity(self.rows.len());
        let mut state = Accumulator::new(aggregate);
        let mut done: Range<usize> = 0..0;
        for at in 0..self.rows.len() {
            let frame = self.frame(at)?;
            let same = done == frame && at > 0;
            if frame.start != done.start || frame.end < done.end {
                state = Accumulator::new(aggregate);
                done = frame.start..frame.start;
            }
            if same && let Some(last) = results.last().cloned() {
                results.push(last);
                continue;
            }
            for row in &self.rows[done.end..frame.end.max(done.end)] {
                if row.passes {
                    state.add(row.args.clone(), Vec::new())?;
                }
            }
            done.end = frame.end.max(done.end);
            results.push(state.clone().result()?);
        }
        Ok(results)
    }

    /// The rows of a row's frame.
    fn frame(&self, at: usize) -> Result<Range<usize>> {
        let frame = &self.call.frame;
        let start = match &frame.start {
            FrameBound::First => 0,
            FrameBound::Last => self.rows.len(),
            bound => self.bound(at, bound, 0)?,
        };
        let end = match &frame.end {
            FrameBound::First => 0,
            FrameBound::Last => self.rows.len(),
            bound => self.bound(at, bound, 1)?,
        };
        Ok(start..end.max(start))
    }

    /// Where a bound is; of an end (`side` 1) the row behind it.
    fn bound(&self, at: usize, bound: &FrameBound, side: usize) -> Result<usize> {
        let count = self.rows.len();
        let group = self.group[at];
        let offset = &self.rows[at].offsets[side];
        // What does not fit is farther than there are rows.
        let steps = || usize::try_from(whole(Some(offset)).unwrap_or(0)).unwrap_or(usize::MAX);
        let before = matches!(bound, FrameBound::Before(_));
        let of_group = |number: usize| match self.groups.get(number) {
            Some(rows) if side == 0 => rows.start,
            Some(rows) => rows.end,
            None => count,
        };
        Ok(match (self.call.frame.unit, bound) {
            (FrameUnit::Rows, FrameBound::Current) => at + side,
            (_, FrameBound::Current) => of_group(group),
            (FrameUnit::Rows, _) if before => (at + side).saturating_sub(steps()),
            (FrameUnit::Rows, _) => (at + side).saturating_add(steps()).min(count),
            (FrameUnit::Groups, _) if before => group.checked_sub(steps()).map_or(0, of_group),
            (FrameUnit::Groups, _) => group.checked_add(steps()).map_or(count, of_group),
            (FrameUnit::Range, _) => self.distant(at, before, side)?,
        })
    }

    /// Where the values begin, or end, that are so far from a row's.
    fn distant(&self, at: usize, before: bool, side: usize) -> Result<usize> {
        let Some(order) = self.call.order.first() else { return Ok(at + side) };
        let key = |row: &Row| row.keys.first().map(comparable).unwrap_or_default();
        let here = key(&self.rows[at]);
        if here.is_null() {
            let peers = &self.groups[self.group[at]];
            return Ok(if side == 0 { peers.start } else { peers.end });
        }
        let known = match order.nulls_first {
            true => self.nulls..self.rows.len(),
            false => 0..self.rows.len() - self.nulls,
        };
        let edge = shifted(&here, &self.rows[at].offsets[side], before != order.descending)?;
        let rows = &self.rows[known.clone()];
        // Of a start the rows before the edge, of an end those up to it.
        let inside = |row: &Row| {
            let compared = match &edge {
                Edge::Everything => return side == 1,
                Edge::Least => std::cmp::Ordering::Greater,
                Edge::Greatest => std::cmp::Ordering::Less,
                Edge::At(edge) => expr::compare(&key(row), edge),
            };
            let compared = if order.descending { compared.reverse() } else { compared };
            if side == 0 { compared.is_lt() } else { compared.is_le() }
        };
        Ok(known.start + rows.partition_point(inside))
    }
}

fn ntile(rows: &[Row]) -> Result<Vec<Datum>> {
    let Some(tiles) = whole(rows.first().and_then(|row| row.args.first())) else {
        return Ok(vec![Datum::NULL; rows.len()]);
    };
    let tiles = match usize::try_from(tiles) {
        Ok(tiles) if tiles > 0 => tiles,
        _ => {
            let message = "argument of ntile must be greater than zero";
            return Err(SqlError::new(SqlState(*b"22014"), message));
        }
    };
    let (size, larger) = (rows.len() / tiles, rows.len() % tiles);
    let tile = |at: usize| match at.checked_sub(larger * (size + 1)) {
        None => at / (size + 1),
        Some(rest) => larger + rest / size.max(1),
    };
    Ok((0..rows.len()).map(|at| Value::Integer(tile(at) as i32 + 1).into()).collect())
}

fn whole(value: Option<&Datum>) -> Option<i64> {
    match value {
        Some(Datum::Value(Value::Integer(n))) => Some(i64::from(*n)),
        Some(Datum::Value(Value::BigInt(n))) => Some(*n),
        Some(Datum::Value(Value::SmallInt(n))) => Some(i64::from(*n)),
        _ => None,
    }
}

/// A key as distances from it are counted.
fn comparable(key: &Datum) -> Datum {
    match key {
        Datum::Value(Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_)) => match whole(Some(key)) {
            Some(n) => Value::Decimal(Decimal::new(i128::from(n), 0)).into(),
            None => Datum::NULL,
        },
        Datum::Value(Value::Real(v)) => Value::Double(f64::from(*v)).into(),
        Datum::Value(Value::Date(days)) => Value::Timestamp(i64::from(*days) * MICROS_PER_DAY).into(),
        other => other.clone(),
    }
}

fn is_negative(offset: &Datum, keys: &[Datum]) -> bool {
    match (comparable(offset), keys.first()) {
        (Datum::Value(Value::Decimal(n)), _) => n.unscaled < 0,
        (Datum::Value(Value::Double(v)), _) => v.is_nan() || v < 0.0,
        (Datum::Interval(interval), Some(Datum::Value(Value::Time(_)))) => interval.micros < 0,
        (offset @ Datum::Interval(_), _) => {
            let zero = Datum::Interval(Interval { months: 0, days: 0, micros: 0 });
            expr::compare(&offset, &zero).is_lt()
        }
        _ => false,
    }
}

/// A value at a distance.
enum Edge {
    At(Datum),
    /// Below all values.
    Least,
    /// Above all values.
    Greatest,
    /// As far from an infinite value as it is from all others.
    Everything,
}

/// What lies so far below a key, or above it.
fn shifted(key: &Datum, offset: &Datum, below: bool) -> Result<Edge> {
    let beyond = || if below { Edge::Least } else { Edge::Greatest };
    Ok(match (key, comparable(offset)) {
        (Datum::Value(Value::Decimal(a)), Datum::Value(Value::Decimal(b))) => {
            let moved = if below { a.checked_sub(b) } else { a.checked_add(b) };
            moved.map_or_else(beyond, |moved| Edge::At(Value::Decimal(moved).into()))
        }
        (Datum::Value(Value::Double(a)), Datum::Value(Value::Double(b))) => {
            let moved = if below { a - b } else { a + b };
            match moved.is_nan() && !a.is_nan() {
                true => Edge::Everything,
                false => Edge::At(Value::Double(moved).into()),
            }
        }
        (Datum::Value(Value::Time(a)), Datum::Interval(by)) => {
            let moved = if below { a.checked_sub(by.micros) } else { a.checked_add(by.micros) };
            moved.map_or_else(beyond, |moved| Edge::At(Value::Time(moved).into()))
        }
        (Datum::Interval(_), by) => {
            let op = if below { Binary::IntervalMinusInterval } else { Binary::IntervalPlusInterval };
            Edge::At(moment_binary(op, key, &by)?)
        }
        (moment, by) => {
            let op = if below { Binary::MomentMinusInterval } else { Binary::MomentPlusInterval };
            Edge::At(moment_binary(op, moment, &by)?)
        }
    })
}
