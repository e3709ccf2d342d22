//! How many rows a logical plan gives, and what is known about its columns.
//!
//! Responsible for: cardinalities of every operator, and following a column down to the table it
//! comes from. Not responsible for: filters of one table ([`crate::scan::selectivity`]).
//!
//! A join over several columns is estimated over the whole key: the number of distinct keys of a
//! side is the product of the columns' distinct counts, but never more than the rows of the table
//! that holds them. For a foreign key that is the number of rows of the referenced table, so the
//! join has as many rows as the referencing side: which composite keys need and single-column
//! formulas get wrong by orders of magnitude.

use std::collections::BTreeMap;
use std::sync::Arc;

use albireo_base::ColumnId;
use datafusion::common::{Column, JoinType};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Aggregate, Expr, Join, LogicalPlan, TableScan};

use crate::relation::{RelationData, Snapshot};
use crate::scan::Caches;
use crate::scan::provider::SnapshotTable;
use crate::scan::selectivity;
use crate::scan::statistics::{ColumnFacts, StatisticsCache};
use crate::scan::zones::ZoneCache;
use crate::spool::{self, SpoolId};

/// Rows of a relation we know nothing about (a file, a function).
const UNKNOWN_ROWS: f64 = 10_000.0;
/// Distinct values of a column we know nothing about, as a share of its rows.
const UNKNOWN_DISTINCT: f64 = 0.1;
/// Share of groups that pass a HAVING we do not understand.
const HAVING: f64 = 0.3;

/// Estimates with the statistics of one snapshot.
pub(crate) struct Estimator<'a> {
    pub(crate) snapshot: &'a Arc<dyn Snapshot>,
    pub(crate) statistics: &'a StatisticsCache,
    pub(crate) zones: &'a ZoneCache,
    /// What fills the plan's spools, and how many rows that gives.
    spools: BTreeMap<SpoolId, (LogicalPlan, f64)>,
}

/// A column of a table, found through projections and aliases.
#[derive(Clone)]
pub(crate) struct BaseColumn {
    pub(crate) table: Arc<dyn datafusion::catalog::TableProvider>,
    pub(crate) data: Arc<dyn RelationData>,
    pub(crate) column: ColumnId,
}

impl BaseColumn {
    pub(crate) fn relation(&self) -> Option<&SnapshotTable> {
        self.table.downcast_ref::<SnapshotTable>()
    }

    /// Rows of the whole table.
    pub(crate) fn table_rows(&self) -> f64 {
        self.data.row_count() as f64
    }
}

impl<'a> Estimator<'a> {
    /// For `plan` and all that is made of it.
    pub(crate) fn new(snapshot: &'a Arc<dyn Snapshot>, caches: &'a Caches, plan: &LogicalPlan) -> Self {
        let Caches { statistics, zones, .. } = caches;
        let mut estimator = Self { snapshot, statistics, zones, spools: BTreeMap::new() };
        // Each comes after those that it reads, so that none is looked at twice.
        for (id, filling) in spool::of(plan) {
            let rows = estimator.rows(filling);
            estimator.spools.insert(id, (filling.clone(), rows));
        }
        estimator
    }

    /// The spool that a plan scans: what fills it, and how many rows that gives.
    fn spool(&self, plan: &LogicalPlan) -> Option<&(LogicalPlan, f64)> {
        self.spools.get(&spool::scanned(plan)?.id())
    }

    /// Rows the plan gives; at least one.
    pub(crate) fn rows(&self, plan: &LogicalPlan) -> f64 {
        self.estimate(plan).max(1.0)
    }

    fn estimate(&self, plan: &LogicalPlan) -> f64 {
        match plan {
            LogicalPlan::TableScan(scan) => self.scan_rows(scan),
            LogicalPlan::Filter(filter) => {
                self.rows(&filter.input) * self.filter_share(&filter.predicate, &filter.input)
            }
            LogicalPlan::Aggregate(aggregate) => self.groups(aggregate),
            LogicalPlan::Join(join) => self.join_rows(join),
            LogicalPlan::Union(union) => union.inputs.iter().map(|i| self.rows(i)).sum(),
            LogicalPlan::Limit(limit) => {
                let rows = self.rows(&limit.input);
                match limit.get_fetch_type() {
                    Ok(datafusion::logical_expr::FetchType::Literal(Some(n))) => rows.min(n as f64),
                    _ => rows,
                }
            }
            LogicalPlan::Distinct(distinct) => {
                let input = distinct.input();
                let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
                self.distinct_rows(&columns, input)
            }
            LogicalPlan::Values(values) => values.values.len() as f64,
            LogicalPlan::EmptyRelation(_) => 1.0,
            LogicalPlan::Extension(_) => self.spool(plan).map_or(UNKNOWN_ROWS, |(_, rows)| *rows),
            other => match other.inputs().as_slice() {
                [input] => self.rows(input),
                _ => UNKNOWN_ROWS,
            },
        }
    }

    fn scan_rows(&self, scan: &TableScan) -> f64 {
        let Some((table, data)) = self.table(scan) else { return UNKNOWN_ROWS };
        let share: f64 = scan
            .filters
            .iter()
            .map(|filter| {
                selectivity::of(filter, &mut |name| {
                    let table = table.downcast_ref::<SnapshotTable>()?;
                    let index = table.relation.columns.iter().position(|c| c.name == name)?;
                    Some(self.column_facts(table, &*data, ColumnId(index as u16)))
                })
            })
            .product();
        data.row_count() as f64 * share
    }

    fn table(
        &self,
        scan: &TableScan,
    ) -> Option<(Arc<dyn datafusion::catalog::TableProvider>, Arc<dyn RelationData>)> {
        let provider = source_as_provider(&scan.source).ok()?;
        let id = provider.downcast_ref::<SnapshotTable>()?.relation.id;
        Some((provider, self.snapshot.relation(id)?))
    }

    fn column_facts(&self, table: &SnapshotTable, data: &dyn RelationData, column: ColumnId) -> ColumnFacts {
        self.statistics.column(&table.relation, data, self.zones, column)
    }

    /// The share of rows that pass a filter over any plan.
    fn filter_share(&self, predicate: &Expr, input: &LogicalPlan) -> f64 {
        if matches!(input, LogicalPlan::Aggregate(_)) {
            return HAVING;
        }
        let mut facts = |name: &str| {
            let columns = input.schema().columns();
            let column = columns.into_iter().find(|c| c.name == name)?;
            self.facts(input, &column)
        };
        selectivity::of(predicate, &mut facts)
    }

    /// What is known about a column of a plan.
    pub(crate) fn facts(&self, plan: &LogicalPlan, column: &Column) -> Option<ColumnFacts> {
        let base = self.base(plan, column)?;
        Some(self.column_facts(base.relation()?, &*base.data, base.column))
    }

    /// The table's column that a column of a plan is.
    pub(crate) fn base(&self, plan: &LogicalPlan, column: &Column) -> Option<BaseColumn> {
        match plan {
            LogicalPlan::TableScan(scan) => {
                let (table, data) = self.table(scan)?;
                let relation = &table.downcast_ref::<SnapshotTable>()?.relation;
                let index = relation.columns.iter().position(|c| c.name == column.name)?;
                let column = ColumnId(u16::try_from(index).ok()?);
                Some(BaseColumn { table, data, column })
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let index = alias.schema.maybe_index_of_column(column)?;
                let inner = alias.input.schema().columns().into_iter().nth(index)?;
                self.base(&alias.input, &inner)
            }
            LogicalPlan::Projection(projection) => {
                let index = projection.schema.maybe_index_of_column(column)?;
                self.base(&projection.input, plain_column(projection.expr.get(index)?)?)
            }
            LogicalPlan::Aggregate(aggregate) => {
                let index = aggregate.schema.maybe_index_of_column(column)?;
                self.base(&aggregate.input, plain_column(aggregate.group_expr.get(index)?)?)
            }
            LogicalPlan::Extension(_) => {
                let (filling, _) = self.spool(plan)?;
                let index = plan.schema().maybe_index_of_column(column)?;
                self.base(filling, &filling.schema().columns().into_iter().nth(index)?)
            }
            LogicalPlan::Filter(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Join(_) => plan
                .inputs()
                .into_iter()
                .find(|input| input.schema().maybe_index_of_column(column).is_some())
                .and_then(|input| self.base(input, column)),
            _ => None,
        }
    }

    /// Distinct combinations of the `keys` that are columns of tables, before filters: what the
    /// other side of a join may find. `None`: none of them is.
    pub(crate) fn distinct_keys(&self, keys: &[&Expr], plan: &LogicalPlan) -> Option<f64> {
        // Columns of one table together cannot have more values than the table has rows.
        let mut tables: Vec<(usize, f64, f64)> = Vec::new();
        for key in keys {
            let Some(column) = plain_column(key) else { continue };
            let Some(base) = self.base(plan, column) else { continue };
            let distinct = self.facts(plan, column).map_or(1.0, |f| f.distinct);
            // Each mention of a table in a statement has a provider of its own.
            let address = Arc::as_ptr(&base.table).cast::<()>() as usize;
            match tables.iter_mut().find(|(known, ..)| *known == address) {
                Some((_, all, _)) => *all *= distinct,
                None => tables.push((address, distinct, base.table_rows())),
            }
        }
        if tables.is_empty() {
            return None;
        }
        Some(tables.iter().map(|(_, all, rows)| all.min(*rows)).product::<f64>().max(1.0))
    }

    /// Distinct keys a join of `left` and `right` rows is divided by. A side whose keys are
    /// computed says nothing: they are taken to be among the other side's.
    pub(crate) fn join_distinct(left: (f64, Option<f64>), right: (f64, Option<f64>)) -> f64 {
        match (left.1, right.1) {
            (Some(l), Some(r)) => l.max(r),
            (Some(known), None) | (None, Some(known)) => known,
            (None, None) => left.0.max(right.0) * UNKNOWN_DISTINCT,
        }
        .max(1.0)
    }

    fn groups(&self, aggregate: &Aggregate) -> f64 {
        if aggregate.group_expr.is_empty() {
            return 1.0;
        }
        self.distinct_rows(&aggregate.group_expr, &aggregate.input)
    }

    /// Rows after grouping by `keys`. A computed key is taken to have as many values as its
    /// columns, but at most a tenth of the rows.
    pub(crate) fn distinct_rows(&self, keys: &[Expr], input: &LogicalPlan) -> f64 {
        let rows = self.rows(input);
        let (plain, computed): (Vec<&Expr>, Vec<&Expr>) =
            keys.iter().partition(|key| plain_column(key).is_some());
        let known = self.distinct_keys(&plain, input);
        let mut groups = match (known, plain.is_empty()) {
            (Some(known), _) => known,
            (None, true) => 1.0,
            (None, false) => rows * UNKNOWN_DISTINCT,
        };
        for key in computed {
            let columns: Vec<Expr> = key.column_refs().into_iter().map(|c| Expr::Column(c.clone())).collect();
            let columns: Vec<&Expr> = columns.iter().collect();
            let values = self.distinct_keys(&columns, input).unwrap_or(f64::INFINITY);
            groups *= values.min(rows * UNKNOWN_DISTINCT).max(1.0);
        }
        groups.min(rows)
    }

    fn join_rows(&self, join: &Join) -> f64 {
        let (left, right) = (self.rows(&join.left), self.rows(&join.right));
        let lefts: Vec<&Expr> = join.on.iter().map(|(l, _)| l).collect();
        let rights: Vec<&Expr> = join.on.iter().map(|(_, r)| r).collect();
        let distinct = Self::join_distinct(
            (left, self.distinct_keys(&lefts, &join.left)),
            (right, self.distinct_keys(&rights, &join.right)),
        );
        let residual = if join.filter.is_some() { 0.5 } else { 1.0 };
        let inner = left * right / distinct * residual;
        // The share of a side's rows that finds a partner.
        let share = |other: f64| (other / distinct).min(1.0);
        match join.join_type {
            JoinType::Inner => inner,
            JoinType::Left => inner.max(left),
            JoinType::Right => inner.max(right),
            JoinType::Full => inner.max(left).max(right),
            JoinType::LeftSemi | JoinType::LeftMark => left * share(right),
            JoinType::RightSemi | JoinType::RightMark => right * share(left),
            JoinType::LeftAnti => left * (1.0 - share(right)).max(0.1),
            JoinType::RightAnti => right * (1.0 - share(left)).max(0.1),
        }
    }

    /// Whether no two rows of the plan agree on all these columns.
    pub(crate) fn is_unique(&self, plan: &LogicalPlan, columns: &[&Column]) -> bool {
        match plan {
            LogicalPlan::TableScan(scan) => {
                let Some((table, _)) = self.table(scan) else { return false };
                let Some(table) = table.downcast_ref::<SnapshotTable>() else { return false };
                let relation = &table.relation;
                let has = |c: &ColumnId| {
                    columns.iter().any(|column| column.name == relation.columns[c.index()].name)
                };
                relation.keys().any(|key| key.iter().all(has))
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let inner = alias.input.schema().columns();
                let mapped: Option<Vec<&Column>> = columns
                    .iter()
                    .map(|c| alias.schema.maybe_index_of_column(c).and_then(|i| inner.get(i)))
                    .collect();
                mapped.is_some_and(|mapped| self.is_unique(&alias.input, &mapped))
            }
            LogicalPlan::Projection(projection) => {
                let mapped: Vec<&Column> = columns
                    .iter()
                    .filter_map(|c| projection.schema.maybe_index_of_column(c))
                    .filter_map(|i| plain_column(projection.expr.get(i)?))
                    .collect();
                self.is_unique(&projection.input, &mapped)
            }
            LogicalPlan::Aggregate(aggregate) => {
                let groups = aggregate.group_expr.len();
                let covered =
                    |i: usize| columns.iter().any(|c| aggregate.schema.maybe_index_of_column(c) == Some(i));
                let plain = aggregate.group_expr.iter().all(|g| !matches!(g, Expr::GroupingSet(_)));
                plain && (0..groups).all(covered)
            }
            LogicalPlan::Extension(_) => {
                let Some((filling, _)) = self.spool(plan) else { return false };
                let inner = filling.schema().columns();
                let mapped: Option<Vec<&Column>> = columns
                    .iter()
                    .map(|c| plan.schema().maybe_index_of_column(c).and_then(|i| inner.get(i)))
                    .collect();
                mapped.is_some_and(|mapped| self.is_unique(filling, &mapped))
            }
            LogicalPlan::Filter(filter) => self.is_unique(&filter.input, columns),
            LogicalPlan::Sort(sort) => self.is_unique(&sort.input, columns),
            _ => false,
        }
    }
}

/// The column an expression is, through aliases.
pub(crate) fn plain_column(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Alias(alias) => plain_column(&alias.expr),
        _ => None,
    }
}
