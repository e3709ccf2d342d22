//! The join graph: relations and the predicates between them, whatever order the query named
//! them in.
//!
//! Equalities of columns form classes: `a = b AND b = c` makes one class of three, so that any
//! two of its relations can be joined directly and no equality is counted twice.

use std::sync::Arc;

use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator};

use super::estimate::Estimator;

/// A set of relations, by position.
pub(crate) type Set = u64;

/// Most relations in one graph; more are joined in the query's order.
pub(crate) const MAX_RELATIONS: usize = 60;

/// An equality between an expression of one relation and one of another.
#[derive(Clone, Debug)]
pub(crate) struct Equality {
    pub(crate) left: (Set, Expr),
    pub(crate) right: (Set, Expr),
}

/// Columns that are equal to each other.
pub(crate) type Class = Vec<(usize, Column)>;

/// The graph.
#[derive(Debug, Default)]
pub(crate) struct JoinGraph {
    pub(crate) relations: Vec<LogicalPlan>,
    pub(crate) classes: Vec<Class>,
    /// Equalities of anything but two plain columns.
    pub(crate) equalities: Vec<Equality>,
    /// All other predicates over several relations.
    pub(crate) others: Vec<(Set, Expr)>,
}

/// Whether a plan is an inner join that can be taken apart.
pub(crate) fn is_inner_join(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join)
        if join.join_type == JoinType::Inner
            && join.null_equality == NullEquality::NullEqualsNothing)
}

impl JoinGraph {
    /// Takes a tree of inner joins apart. `None`: it has too many relations.
    pub(crate) fn of(plan: LogicalPlan, estimator: &Estimator<'_>) -> Result<Option<Self>> {
        let mut graph = Self::default();
        let mut predicates = Vec::new();
        graph.collect(plan, &mut predicates, estimator);
        if graph.relations.len() > MAX_RELATIONS {
            return Ok(None);
        }
        let implied: Vec<Expr> = predicates.iter().flat_map(common_conjuncts).collect();
        predicates.extend(implied);
        for predicate in predicates {
            graph.add(predicate)?;
        }
        Ok(Some(graph))
    }

    fn collect(&mut self, plan: LogicalPlan, predicates: &mut Vec<Expr>, estimator: &Estimator<'_>) {
        match plan {
            LogicalPlan::Join(join) if is_inner_join(&LogicalPlan::Join(join.clone())) => {
                let equal = |(l, r): &(Expr, Expr)| l.clone().eq(r.clone());
                predicates.extend(join.on.iter().map(equal));
                predicates.extend(join.filter.into_iter().flat_map(split_conjunction_owned));
                self.collect(Arc::unwrap_or_clone(join.left), predicates, estimator);
                self.collect(Arc::unwrap_or_clone(join.right), predicates, estimator);
            }
            LogicalPlan::Join(join)
                if join.join_type == JoinType::LeftSemi
                    && join.filter.is_none()
                    && join.null_equality == NullEquality::NullEqualsNothing
                    && has_unique_right(&join, estimator) =>
            {
                // Each row finds at most one partner: an inner join, free to be ordered.
                let equal = |(l, r): &(Expr, Expr)| l.clone().eq(r.clone());
                predicates.extend(join.on.iter().map(equal));
                self.collect(Arc::unwrap_or_clone(join.left), predicates, estimator);
                self.relations.push(Arc::unwrap_or_clone(join.right));
            }
            LogicalPlan::Filter(filter) if is_inner_join(&filter.input) => {
                predicates.extend(split_conjunction_owned(filter.predicate));
                self.collect(Arc::unwrap_or_clone(filter.input), predicates, estimator);
            }
            other => self.relations.push(other),
        }
    }

    /// The relations an expression reads.
    fn set_of(&self, expr: &Expr) -> Set {
        let mut set = 0;
        for column in expr.column_refs() {
            let found =
                self.relations.iter().position(|r| r.schema().maybe_index_of_column(column).is_some());
            set |= found.map_or(0, |i| 1 << i);
        }
        set
    }

    fn add(&mut self, predicate: Expr) -> Result<()> {
        let set = self.set_of(&predicate);
        if set.count_ones() == 1 {
            let i = set.trailing_zeros() as usize;
            let input = Arc::new(self.relations[i].clone());
            self.relations[i] = LogicalPlan::Filter(Filter::try_new(predicate, input)?);
            return Ok(());
        }
        if let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = &predicate {
            let (l, r) = (self.set_of(left), self.set_of(right));
            if l != 0 && r != 0 && l & r == 0 {
                match (&**left, &**right) {
                    (Expr::Column(a), Expr::Column(b)) => {
                        let member = |s: Set, c: &Column| (s.trailing_zeros() as usize, c.clone());
                        self.unite(member(l, a), member(r, b));
                    }
                    _ => self
                        .equalities
                        .push(Equality { left: (l, (**left).clone()), right: (r, (**right).clone()) }),
                }
                return Ok(());
            }
        }
        if !self.others.iter().any(|(_, known)| *known == predicate) {
            self.others.push((set, predicate));
        }
        Ok(())
    }

    fn unite(&mut self, a: (usize, Column), b: (usize, Column)) {
        let find = |classes: &[Class], m: &(usize, Column)| classes.iter().position(|c| c.contains(m));
        match (find(&self.classes, &a), find(&self.classes, &b)) {
            (None, None) => self.classes.push(vec![a, b]),
            (Some(i), None) => self.classes[i].push(b),
            (None, Some(i)) => self.classes[i].push(a),
            (Some(i), Some(j)) if i != j => {
                let (low, high) = (i.min(j), i.max(j));
                let moved = self.classes.swap_remove(high);
                self.classes[low].extend(moved);
            }
            _ => {}
        }
    }

    /// All relations.
    pub(crate) fn all(&self) -> Set {
        (1 << self.relations.len()) - 1
    }

    /// The keys two disjoint sets are joined on: pairs of expressions of `a` and of `b`.
    pub(crate) fn keys(&self, a: Set, b: Set) -> Vec<(Expr, Expr)> {
        let member = |class: &Class, set: Set| {
            class.iter().find(|(i, _)| set & (1 << i) != 0).map(|(_, c)| Expr::Column(c.clone()))
        };
        let mut keys: Vec<(Expr, Expr)> =
            self.classes.iter().filter_map(|c| member(c, a).zip(member(c, b))).collect();
        for equality in &self.equalities {
            let (l, r) = (&equality.left, &equality.right);
            if l.0 & a == l.0 && r.0 & b == r.0 {
                keys.push((l.1.clone(), r.1.clone()));
            } else if l.0 & b == l.0 && r.0 & a == r.0 {
                keys.push((r.1.clone(), l.1.clone()));
            }
        }
        keys
    }

    /// Predicates that can be checked once `a` and `b` are joined, and not before. Equalities
    /// whose sides are not split by this join are among them.
    pub(crate) fn residual(&self, a: Set, b: Set) -> Vec<Expr> {
        let both = a | b;
        let now = |set: Set| set & both == set && set & a != set && set & b != set;
        let mut residual: Vec<Expr> =
            self.others.iter().filter(|(s, _)| now(*s)).map(|(_, p)| p.clone()).collect();
        for equality in &self.equalities {
            let (l, r) = (&equality.left, &equality.right);
            let split = l.0 & a == l.0 && r.0 & b == r.0 || l.0 & b == l.0 && r.0 & a == r.0;
            if now(l.0 | r.0) && !split {
                residual.push(l.1.clone().eq(r.1.clone()));
            }
        }
        residual
    }

    /// Equalities of two columns of the same relation that a class implies.
    pub(crate) fn inner_equalities(&self) -> Vec<(usize, Expr)> {
        let mut found = Vec::new();
        for class in &self.classes {
            for (n, (i, column)) in class.iter().enumerate() {
                if let Some((_, first)) = class[..n].iter().find(|(j, _)| j == i) {
                    let equal = Expr::Column(first.clone()).eq(Expr::Column(column.clone()));
                    found.push((*i, equal));
                }
            }
        }
        found
    }

    /// Predicates over no relation at all.
    pub(crate) fn constants(&self) -> Vec<Expr> {
        self.others.iter().filter(|(set, _)| *set == 0).map(|(_, p)| p.clone()).collect()
    }
}

fn has_unique_right(join: &datafusion::logical_expr::Join, estimator: &Estimator<'_>) -> bool {
    let columns: Option<Vec<&Column>> = join
        .on
        .iter()
        .map(|(_, r)| match r {
            Expr::Column(c) => Some(c),
            _ => None,
        })
        .collect();
    columns.is_some_and(|c| !c.is_empty() && estimator.is_unique(&join.right, &c))
}

/// What every branch of an OR demands: `(a AND b) OR (a AND c)` implies `a`.
fn common_conjuncts(predicate: &Expr) -> Vec<Expr> {
    let mut branches = Vec::new();
    split_or(predicate, &mut branches);
    if branches.len() < 2 {
        return Vec::new();
    }
    let conjuncts: Vec<Vec<Expr>> =
        branches.into_iter().map(|b| split_conjunction_owned(b.clone())).collect();
    let everywhere = |e: &Expr| conjuncts[1..].iter().all(|branch| branch.contains(e));
    conjuncts[0].iter().filter(|e| everywhere(e)).cloned().collect()
}

fn split_or<'a>(expr: &'a Expr, into: &mut Vec<&'a Expr>) {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            split_or(left, into);
            split_or(right, into);
        }
        other => into.push(other),
    }
}
