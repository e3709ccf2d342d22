//! Queries at work: order, DISTINCT, LIMIT, set operations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use albireo_base::{SqlError, SqlState, Value};
use albireo_semantics::query::accumulate::{Sorted, compare_key, compare_keys};
use albireo_semantics::query::tree::{
    Body, Distinct, LockWait, OrderBy, OrderKey, Query, RelationSource, Select, SetKind, SetOperation, Step,
};

use super::frame::{Row, Rows, Running};
use super::scan::Flow;
use crate::Stop;
use crate::datum::Datum;
use crate::expr::Expr;

/// A row of a result, and what it is ordered by.
pub(super) struct Output {
    pub(super) row: Vec<Datum>,
    pub(super) keys: Vec<Datum>,
    /// The keys of DISTINCT ON.
    pub(super) on: Vec<Datum>,
    /// The rows to be locked, one for each lock.
    lockable: Vec<Row>,
}

impl Running<'_> {
    /// The rows of a query, at most `limit`.
    pub(super) fn query(&mut self, query: &Query, limit: usize) -> Result<Vec<Vec<Datum>>, Stop> {
        for cte in &query.ctes {
            let rows = self.query(&cte.query, usize::MAX)?;
            self.set_cte(cte.id, shared(rows));
        }
        let offset = self.count(query.offset.as_ref(), "OFFSET", SqlState::INVALID_ROW_COUNT_IN_OFFSET)?;
        let written = self.count(query.limit.as_ref(), "LIMIT", SqlState::INVALID_ROW_COUNT_IN_LIMIT)?;
        let limit = limit.min(written.unwrap_or(usize::MAX));
        let offset = offset.unwrap_or(0);
        if limit == 0 {
            return Ok(Vec::new());
        }
        let need = limit.saturating_add(offset);
        let mut rows = match &query.body {
            Body::Select(select) => self.select(select, &query.order, need)?,
            Body::Nested(inner) if query.order.is_empty() => self.query(inner, need)?,
            Body::Nested(inner) => self.query(inner, usize::MAX)?,
            Body::Values(rows) => rows.iter().map(|row| self.values(row)).collect::<Result<_, _>>()?,
            Body::Set(set) => self.set_operation(set)?,
        };
        if !matches!(query.body, Body::Select(_)) {
            sort_by_output(&mut rows, &query.order);
        }
        rows.drain(..offset.min(rows.len()));
        rows.truncate(limit);
        Ok(rows)
    }

    fn count(&mut self, expr: Option<&Expr>, what: &str, state: SqlState) -> Result<Option<usize>, Stop> {
        let Some(expr) = expr else { return Ok(None) };
        match self.value(expr)? {
            Datum::Value(Value::BigInt(n)) => match usize::try_from(n) {
                Ok(n) => Ok(Some(n)),
                Err(_) => Err(SqlError::new(state, format!("{what} must not be negative")).into()),
            },
            _ => Ok(None),
        }
    }

    /// The rows of a SELECT in order; at most `need` matter.
    fn select(&mut self, select: &Select, order: &[OrderKey], need: usize) -> Result<Vec<Vec<Datum>>, Stop> {
        let mut derived = Vec::with_capacity(select.relations.len());
        for relation in &select.relations {
            derived.push(match &relation.source {
                RelationSource::Query(query) => Some(shared(self.query(query, usize::MAX)?)),
                RelationSource::Cte(id, _) => Some(self.ctes.get(id).cloned().unwrap_or_default()),
                _ => None,
            });
        }
        self.push_level(&select.relations, derived)?;
        let skips = select.locks.iter().any(|lock| lock.wait == LockWait::Skips);
        if skips {
            self.host.live().tx.mute_reads(true);
        }
        let outputs = self.select_level(select, order, need);
        if skips {
            self.host.live().tx.mute_reads(false);
        }
        self.levels.pop();
        outputs
    }

    fn select_level(
        &mut self,
        select: &Select,
        order: &[OrderKey],
        need: usize,
    ) -> Result<Vec<Vec<Datum>>, Stop> {
        let ordered = select.ordered && self.one_site(select)?;
        let sort = !order.is_empty() && !ordered;
        let early = !sort && matches!(select.distinct, Distinct::No);
        let keys: &[OrderKey] = if sort { order } else { &[] };
        let mut outputs = match &select.grouping {
            Some(grouping) => self.groups(select, grouping, keys)?,
            None => self.plain(select, keys, if early { need } else { usize::MAX })?,
        };
        if matches!(select.distinct, Distinct::All) {
            let mut seen = BTreeSet::new();
            outputs.retain(|output| seen.insert(Sorted(output.row.clone())));
        }
        if sort {
            outputs.sort_by(|a, b| compare_keys(&a.keys, &b.keys, order));
        }
        if sort && !select.locks.is_empty() {
            let mut locked = Vec::with_capacity(outputs.len().min(need));
            for output in outputs {
                if locked.len() < need && self.lock(select, &output.lockable)? {
                    locked.push(output);
                }
            }
            outputs = locked;
        }
        if matches!(select.distinct, Distinct::On(_)) {
            let mut seen = BTreeSet::new();
            outputs.retain(|output| seen.insert(Sorted(output.on.clone())));
        }
        Ok(outputs.into_iter().map(|output| output.row).collect())
    }

    /// Whether the rows of the first step are in one partition.
    fn one_site(&mut self, select: &Select) -> Result<bool, Stop> {
        match select.steps.first() {
            Some(Step::Inner { access, .. }) => {
                match &select.relations[usize::from(access.relation)].source {
                    RelationSource::Table(table) => Ok(self.sites(table, access)?.len() <= 1),
                    _ => Ok(false),
                }
            }
            _ => Ok(false),
        }
    }

    fn plain(&mut self, select: &Select, order: &[OrderKey], need: usize) -> Result<Vec<Output>, Stop> {
        let mut outputs = Vec::new();
        if !self.all(&select.constants)? {
            return Ok(outputs);
        }
        self.steps(&select.relations, &select.steps, &mut |running| {
            let output = running.output(select, order)?;
            // Those to be sorted are locked as they are taken.
            if order.is_empty() && !running.lock(select, &output.lockable)? {
                return Ok(Flow::More);
            }
            running.keep(&output.row)?;
            outputs.push(output);
            Ok(if outputs.len() >= need { Flow::Stop } else { Flow::More })
        })?;
        Ok(outputs)
    }

    /// The result for the current rows.
    pub(super) fn output(&mut self, select: &Select, order: &[OrderKey]) -> Result<Output, Stop> {
        let row = self.values(&select.outputs)?;
        let on = match &select.distinct {
            Distinct::On(exprs) => self.values(exprs)?,
            _ => Vec::new(),
        };
        let mut keys = Vec::with_capacity(order.len());
        for key in order {
            keys.push(match &key.by {
                OrderBy::Output(at) => row.get(*at).cloned().unwrap_or(Datum::NULL),
                OrderBy::Expr(expr) => self.value(expr)?,
            });
        }
        let rows = &self.level().rows;
        let lockable = select.locks.iter().map(|lock| rows[usize::from(lock.relation)].clone()).collect();
        Ok(Output { row, keys, on, lockable })
    }

    /// Locks rows; whether they are to be taken.
    fn lock(&mut self, select: &Select, rows: &[Row]) -> Result<bool, Stop> {
        for (lock, row) in select.locks.iter().zip(rows) {
            let Row::Stored(site, tid) = *row else { continue };
            let RelationSource::Table(table) = &select.relations[usize::from(lock.relation)].source else {
                continue;
            };
            if !self.host.live().lock(site, table, tid, lock)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn set_operation(&mut self, set: &SetOperation) -> Result<Vec<Vec<Datum>>, Stop> {
        let mut left = self.query(&set.left, usize::MAX)?;
        let right = self.query(&set.right, usize::MAX)?;
        if set.kind == SetKind::Union {
            left.extend(right);
            if !set.all {
                let mut seen = BTreeSet::new();
                left.retain(|row| seen.insert(Sorted(row.clone())));
            }
            return Ok(left);
        }
        let mut counts: BTreeMap<Sorted, usize> = BTreeMap::new();
        for row in right {
            *counts.entry(Sorted(row)).or_default() += 1;
        }
        let mut seen = BTreeSet::new();
        left.retain(|row| {
            let key = Sorted(row.clone());
            let count = counts.get_mut(&key);
            let in_right = count.as_ref().is_some_and(|count| **count > 0);
            if set.all {
                if let Some(count) = count {
                    *count = count.saturating_sub(1);
                }
                in_right == (set.kind == SetKind::Intersect)
            } else {
                in_right == (set.kind == SetKind::Intersect) && seen.insert(key)
            }
        });
        Ok(left)
    }

    /// Forgets the current rows of the innermost level.
    pub(super) fn no_rows(&mut self) {
        self.level().rows.fill(Row::Missing);
    }
}

fn shared(rows: Vec<Vec<Datum>>) -> Rows {
    Arc::new(rows.into_iter().map(Arc::from).collect())
}

fn sort_by_output(rows: &mut [Vec<Datum>], order: &[OrderKey]) {
    if order.is_empty() {
        return;
    }
    rows.sort_by(|a, b| {
        for key in order {
            let OrderBy::Output(at) = key.by else { continue };
            let order = compare_key(&a[at], &b[at], key);
            if order.is_ne() {
                return order;
            }
        }
        std::cmp::Ordering::Equal
    });
}
