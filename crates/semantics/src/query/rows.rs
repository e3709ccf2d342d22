//! The queries that find on a snapshot what a change concerns.
//!
//! Responsible for: their trees, made of the bound change's. Not responsible for: what is done with their rows
//! (`procedure`).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::tree::{Body, Change, Condition, Cte, Distinct, Insert, Pool, Query, Select, Target, Update};
use super::{SelectPlan, levels, sets};
use crate::datum::Datum;
use crate::expr::{ColumnRef, Expr, ExprKind};
use albireo_base::ColumnId;

use crate::types::Scalar;

/// How many columns say where a row is: its partition, and its place there. They come after the table's own
/// columns in relation 0, and first in the query's result.
pub const ADDRESS: usize = 2;

/// The rows that an UPDATE, DELETE or MERGE concerns, as a query.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its columns: the address; the new values of UPDATE, unless they are made [late](Target::late); `carried`.
    pub plan: SelectPlan,
    /// The columns that are needed when the change is made: of other relations, and of the table what is read
    /// [late](Target::late).
    pub carried: Vec<ColumnRef>,
}

impl Change {
    /// The query that finds the rows; `None` for INSERT.
    pub fn finding(&self) -> Option<Finding> {
        let target = self.target()?;
        let set = self.found_values();
        let carried: Vec<ColumnRef> = self.carried().into_iter().collect();
        let width = target.table.columns.len();
        let address = (width..width + ADDRESS).map(|at| {
            let column = ColumnRef { depth: 0, relation: 0, column: at as u16 };
            Expr::scalar(ExprKind::Column(column), Scalar::BigInt)
        });
        let carry = |column: &ColumnRef| {
            let relation = &target.relations[usize::from(column.relation)];
            let ty = relation.columns[usize::from(column.column)].1.clone();
            Expr { kind: ExprKind::Column(*column), ty }
        };
        let values = set.iter().map(|(_, value)| value.clone());
        let outputs = address.chain(values).chain(carried.iter().map(carry)).collect();
        Some(Finding { plan: plan_of(target, outputs), carried })
    }

    /// The new values that the query which finds the rows gives.
    pub fn found_values(&self) -> &[(ColumnId, Expr)] {
        match self {
            Self::Update(Update { target, set }) if target.late.is_none() => set,
            _ => &[],
        }
    }

    /// The change with what calls routines left for the rows that a query finds, which calls none; `None` if it does not
    /// depend on these rows alone.
    pub fn without_early_calls(&self) -> Option<Self> {
        let mut change = self.clone();
        if let Self::Update(Update { target, .. }) | Self::Delete(target) = &mut change {
            let early = |condition: &Condition| !calls(&condition.expr);
            let (early, late): (Vec<_>, Vec<_>) = target.from.conditions.drain(..).partition(early);
            target.from.conditions = early;
            let late: Vec<Expr> = late.into_iter().map(|condition| condition.expr).collect();
            let calls_in_set = match self {
                Self::Update(update) => update.set.iter().any(|(_, value)| calls(value)),
                _ => false,
            };
            target.late = (calls_in_set || !late.is_empty()).then_some(late);
        }
        let query = match (&change, change.finding()) {
            (_, Some(finding)) => finding.plan,
            (Self::Insert(insert), None) => insert.rows(),
            (_, None) => return None,
        };
        (!query_calls(&query.query)).then_some(change)
    }

    /// Whether what it does to a row depends on that row and on parameters alone: not on other rows, nor on routines,
    /// nor on the time.
    pub fn is_of_rows_alone(&self) -> bool {
        let one = |target: &Target| target.relations.len() == 1 && target.ctes.is_empty();
        let mut alone = match self {
            Self::Update(Update { target, .. }) | Self::Delete(target) => one(target),
            Self::Insert(_) | Self::Merge(_) => false,
        };
        self.each_expr(&mut |expr| {
            expr.walk(&mut |part| {
                alone &= !matches!(part.kind, ExprKind::Subquery(_) | ExprKind::Call(..) | ExprKind::Now);
            });
        });
        alone
    }

    /// Whether what depends on each row as it is found or made has queries in it.
    pub fn asks_late(&self) -> bool {
        let mut asks = false;
        let mut look = |expr: &Expr| asks |= has_query(expr);
        match self {
            Self::Insert(insert) => {
                let update = insert.conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
                let set = update.iter().flat_map(|update| &update.set).map(|(_, value)| value);
                set.chain(update.iter().flat_map(|update| &update.filter)).for_each(&mut look);
            }
            Self::Merge(merge) => merge.clauses.iter().for_each(|clause| {
                let values = clause.action.values().iter().map(|(_, value)| value);
                clause.condition.iter().chain(values).for_each(&mut look);
            }),
            Self::Update(Update { target, .. }) | Self::Delete(target) => {
                target.late.iter().flatten().for_each(&mut look);
            }
        }
        if let Self::Update(Update { target: Target { late: Some(_), .. }, set }) = self {
            set.iter().for_each(|(_, value)| look(value));
        }
        self.returning().iter().for_each(look);
        asks
    }

    /// The table's columns that are read when the change is made.
    pub fn read_late(&self) -> BTreeSet<ColumnId> {
        let own = self.late_columns().into_iter().filter(|column| column.relation == 0);
        own.map(|column| ColumnId(column.column)).collect()
    }

    /// As of [`Finding::carried`].
    fn carried(&self) -> BTreeSet<ColumnRef> {
        if let Self::Insert(_) = self {
            return BTreeSet::new();
        }
        let others = self.late_columns().into_iter().filter(|column| column.relation > 0);
        let mut carried: BTreeSet<ColumnRef> = others.collect();
        self.clone().each_judging_expr_mut(&mut |expr| add_columns(expr, &mut carried));
        carried
    }

    /// The columns that what depends on each row as it is found or made reads.
    fn late_columns(&self) -> BTreeSet<ColumnRef> {
        let mut columns = BTreeSet::new();
        self.clone().each_late_expr_mut(&mut |expr| add_columns(expr, &mut columns));
        columns
    }
}

/// Adds the columns of the level where it stands that an expression reads.
fn add_columns(expr: &mut Expr, columns: &mut BTreeSet<ColumnRef>) {
    // The visitor has no errors.
    let _ = levels::expr(expr, 0, &mut |part, depth| {
        if let ExprKind::Column(column) = part.kind
            && column.depth == depth
        {
            columns.insert(ColumnRef { depth: 0, ..column });
        }
        Ok(true)
    });
}

fn plan_of(target: &Target, outputs: Vec<Expr>) -> SelectPlan {
    let select = Select::plain(target.relations.clone(), target.from.clone(), outputs);
    query_plan(&target.ctes, sets::as_query(Body::Select(Box::new(select))))
}

/// A plan of a query after WITH.
fn query_plan(ctes: &[Cte], mut query: Query) -> SelectPlan {
    query.ctes.splice(0..0, ctes.iter().cloned());
    let types = sets::output_types(&query);
    let columns = types.into_iter().map(|ty| (String::new(), ty)).collect();
    SelectPlan { columns, query: Arc::new(query), accesses: Vec::new(), correlated: false, line: None }
}

impl Insert {
    /// The query that gives the rows: the values of `columns`, then those of `defaults`.
    pub fn rows(&self) -> SelectPlan {
        let mut query = self.source.clone();
        if !self.defaults.is_empty() {
            if !matches!(&query.body, Body::Select(select) if matches!(select.distinct, Distinct::No)) {
                sets::wrap(&mut query);
            }
            if let Body::Select(select) = &mut query.body {
                select.outputs.extend(self.defaults.iter().map(|(_, default)| default.clone()));
            }
        }
        query_plan(&[], query)
    }

    /// The values of VALUES that have queries in them: row and column.
    pub fn cells(&self) -> Vec<(usize, usize)> {
        let Body::Values(rows) = &self.source.body else { return Vec::new() };
        let cells = rows.iter().enumerate().flat_map(|(row, values)| {
            values.iter().enumerate().filter(|(_, value)| has_query(value)).map(move |(at, _)| (row, at))
        });
        cells.collect()
    }

    /// The query of one row that gives some of them.
    pub fn cells_query(&self, cells: &[(usize, usize)]) -> SelectPlan {
        let outputs = match &self.source.body {
            Body::Values(rows) => cells.iter().map(|(row, at)| rows[*row][*at].clone()).collect(),
            _ => Vec::new(),
        };
        let select = Select::plain(Vec::new(), Pool::default(), outputs);
        query_plan(&self.source.ctes, sets::as_query(Body::Select(Box::new(select))))
    }

    /// Puts the values of some of them where they stand.
    pub fn put(&mut self, cells: &[(usize, usize)], values: Vec<Datum>) {
        let Body::Values(rows) = &mut self.source.body else { return };
        for ((row, at), value) in cells.iter().zip(values) {
            rows[*row][*at].kind = ExprKind::Constant(value);
        }
    }
}

/// Whether an expression calls a routine, or a query in it does.
fn calls(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        found |= match &part.kind {
            ExprKind::Call(..) => true,
            ExprKind::Subquery(subquery) => query_calls(&subquery.plan.query),
            _ => false,
        };
    });
    found
}

/// Whether a query calls a routine.
fn query_calls(query: &Query) -> bool {
    let mut found = false;
    query.each_routine(&mut |_| found = true);
    query.each_expr(&mut |expr| found |= calls(expr));
    found
}

fn has_query(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part.kind, ExprKind::Subquery(_)));
    found
}
