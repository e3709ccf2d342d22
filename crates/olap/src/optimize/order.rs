//! The cheapest order of a join graph.
//!
//! Up to [`EXACT`] relations every connected pair of connected sets is considered (dynamic
//! programming over subsets; Moerkotte and Neumann, VLDB 2006, enumerate the same pairs); beyond,
//! the pair with the smallest result is joined first, again and again. Relations that nothing
//! connects are joined last, smallest first.
//!
//! Cost: rows of the hash table built, counted [`BUILD`] times, rows probed, rows produced.

use std::collections::HashMap;

use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Filter, Join, JoinConstraint, LogicalPlan, LogicalPlanBuilder};

use super::estimate::Estimator;
use super::graph::{JoinGraph, Set};

/// Relations up to which all orders are considered.
const EXACT: usize = 10;
/// What building a row into a hash table costs, in rows probed.
const BUILD: f64 = 3.0;
/// Share of pairs that pass a predicate that is not an equality.
const RESIDUAL: f64 = 0.5;

/// A subtree of the result.
#[derive(Clone, Debug)]
struct Candidate {
    rows: f64,
    cost: f64,
    /// The sets joined, build side first; `None` for a single relation.
    split: Option<(Set, Set)>,
}

/// Finds the order and builds the plan.
pub(crate) fn order(graph: JoinGraph, estimator: &Estimator<'_>) -> Result<LogicalPlan> {
    let mut search = Search { graph: &graph, estimator, best: HashMap::new() };
    search.relations();
    if graph.relations.len() <= EXACT {
        search.exact();
    }
    search.greedy();
    search.build(graph.all())
}

struct Search<'a> {
    graph: &'a JoinGraph,
    estimator: &'a Estimator<'a>,
    best: HashMap<Set, Candidate>,
}

impl Search<'_> {
    fn relations(&mut self) {
        for (i, relation) in self.graph.relations.iter().enumerate() {
            let rows = self.estimator.rows(relation);
            self.best.insert(1 << i, Candidate { rows, cost: 0.0, split: None });
        }
    }

    fn exact(&mut self) {
        let all = self.graph.all();
        // A subset is a smaller number than the set, so both halves of a split are known.
        for set in 1..=all {
            if set.count_ones() < 2 {
                continue;
            }
            let mut half = (set - 1) & set;
            while half > 0 {
                let other = set ^ half;
                if half < other {
                    self.consider(half, other);
                }
                half = (half - 1) & set;
            }
        }
    }

    /// Joins what is left, the cheapest connected pair first, cross products last.
    fn greedy(&mut self) {
        if self.best.contains_key(&self.graph.all()) {
            return;
        }
        let mut parts = self.largest_parts();
        while parts.len() > 1 {
            let mut chosen: Option<(usize, usize, bool, f64)> = None;
            for i in 0..parts.len() {
                for j in i + 1..parts.len() {
                    let connected = self.is_connected(parts[i], parts[j]);
                    let rows = self.joined_rows(parts[i], parts[j]);
                    let better = chosen.is_none_or(|(_, _, c, r)| (connected, -rows) > (c, -r));
                    if better {
                        chosen = Some((i, j, connected, rows));
                    }
                }
            }
            let Some((i, j, _, rows)) = chosen else { return };
            let (b, a) = (parts.swap_remove(j), parts.swap_remove(i));
            let candidate = self.candidate(a, b, rows);
            self.best.insert(a | b, candidate);
            parts.push(a | b);
        }
    }

    /// The connected components found by the exact search, or the single relations.
    fn largest_parts(&self) -> Vec<Set> {
        let mut sets: Vec<Set> = self.best.keys().copied().collect();
        sets.sort_by_key(|s| (std::cmp::Reverse(s.count_ones()), *s));
        let mut taken = 0;
        let mut parts = Vec::new();
        for set in sets {
            if set & taken == 0 {
                taken |= set;
                parts.push(set);
            }
        }
        parts
    }

    fn is_connected(&self, a: Set, b: Set) -> bool {
        !self.graph.keys(a, b).is_empty()
    }

    fn consider(&mut self, a: Set, b: Set) {
        if !self.best.contains_key(&a) || !self.best.contains_key(&b) || !self.is_connected(a, b) {
            return;
        }
        // The result does not depend on the order; of several estimates the smallest knows most.
        let known = self.best.get(&(a | b)).map_or(f64::INFINITY, |c| c.rows);
        let rows = self.joined_rows(a, b).min(known);
        let candidate = self.candidate(a, b, rows);
        match self.best.get_mut(&(a | b)) {
            Some(best) if best.cost <= candidate.cost => best.rows = rows,
            _ => {
                self.best.insert(a | b, candidate);
            }
        }
    }

    fn candidate(&self, a: Set, b: Set, rows: f64) -> Candidate {
        let (x, y) = (&self.best[&a], &self.best[&b]);
        let (build, probe) = if x.rows <= y.rows { (a, b) } else { (b, a) };
        let (small, large) = (x.rows.min(y.rows), x.rows.max(y.rows));
        let mut cost = x.cost + y.cost + BUILD * small + large + rows;
        if !self.is_connected(a, b) {
            cost += x.rows * y.rows;
        }
        Candidate { rows, cost, split: Some((build, probe)) }
    }

    fn joined_rows(&self, a: Set, b: Set) -> f64 {
        let (x, y) = (self.best[&a].rows, self.best[&b].rows);
        let keys = self.graph.keys(a, b);
        let left: Vec<&Expr> = keys.iter().map(|(l, _)| l).collect();
        let right: Vec<&Expr> = keys.iter().map(|(_, r)| r).collect();
        let distinct = match keys.is_empty() {
            true => 1.0,
            false => Estimator::join_distinct((x, self.distinct(&left, a)), (y, self.distinct(&right, b))),
        };
        let residual = RESIDUAL.powi(self.graph.residual(a, b).len() as i32);
        (x * y / distinct * residual).max(1.0)
    }

    /// Distinct keys on one side, relation by relation.
    fn distinct(&self, keys: &[&Expr], set: Set) -> Option<f64> {
        let mut product = None;
        for (i, relation) in self.graph.relations.iter().enumerate() {
            if set & (1 << i) == 0 {
                continue;
            }
            let of_relation: Vec<&Expr> = keys
                .iter()
                .copied()
                .filter(|key| {
                    let columns = key.column_refs();
                    !columns.is_empty()
                        && columns.iter().all(|c| relation.schema().maybe_index_of_column(c).is_some())
                })
                .collect();
            if let Some(distinct) = self.estimator.distinct_keys(&of_relation, relation) {
                product = Some(product.unwrap_or(1.0) * distinct);
            }
        }
        product
    }

    fn build(&self, set: Set) -> Result<LogicalPlan> {
        let Some((a, b)) = self.best.get(&set).and_then(|c| c.split) else {
            return self.relation(set.trailing_zeros() as usize);
        };
        let (left, right) = (self.build(a)?, self.build(b)?);
        let mut residual = self.graph.residual(a, b);
        if set == self.graph.all() {
            residual.extend(self.graph.constants());
        }
        Ok(LogicalPlan::Join(Join::try_new(
            left.into(),
            right.into(),
            self.graph.keys(a, b),
            conjunction(residual),
            JoinType::Inner,
            JoinConstraint::On,
            NullEquality::NullEqualsNothing,
            false,
        )?))
    }

    fn relation(&self, i: usize) -> Result<LogicalPlan> {
        let equalities = self.graph.inner_equalities().into_iter().filter(|(j, _)| *j == i);
        let plan = self.graph.relations[i].clone();
        match conjunction(equalities.map(|(_, e)| e)) {
            Some(equal) => Ok(LogicalPlan::Filter(Filter::try_new(equal, plan.into())?)),
            None => Ok(plan),
        }
    }
}

/// Puts the columns of `plan` into the order of `columns`.
pub(crate) fn with_columns(
    plan: LogicalPlan,
    columns: Vec<datafusion::common::Column>,
) -> Result<LogicalPlan> {
    if plan.schema().columns() == columns {
        return Ok(plan);
    }
    LogicalPlanBuilder::from(plan).project(columns.into_iter().map(Expr::Column))?.build()
}
