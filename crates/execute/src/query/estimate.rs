//! How many rows a statement is about to read, before it reads any.
//!
//! Responsible for: counting by indexes and sizes of tables, with the values of parameters; how much of that is
//! frozen, or not in memory. Not responsible for: what follows from it (`engine`).
//!
//! Keys that are known are looked for in their index, which tells about how many entries it has between two
//! places. What depends on rows that are not read yet is guessed. Nothing is fetched for it.

use albireo_base::Tid;
use albireo_partition::Site;
use albireo_plpgsql::plan::is_one;
use albireo_semantics::query::SelectPlan;
use albireo_semantics::query::tree::{
    Access, Body, Change, Distinct, IndexUse, Merge, OrderKey, Query, Relation, RelationSource, Select, Step,
    Target, Update,
};
use albireo_sql::TableDef;
use albireo_storage::{IndexRef, Table};

use super::frame::Running;
use super::scan::{Search, search_of};
use crate::Stop;
use crate::datum::Datum;
use crate::expr::{Expr, ExprKind};

/// What a statement is about to read.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Estimate {
    /// Rows that are looked at, each as often as it is.
    pub rows: f64,
    /// Keys of groups and aggregates beyond the first of each query, once for each row that goes into them.
    pub values: f64,
    /// Chunks with such rows that are not in memory, so that a transaction has to fetch them.
    pub fetched: f64,
    /// The rows of all tables that it reads: what looking at each once comes to.
    pub tables: f64,
    /// Those of them that lie in frozen chunks.
    pub frozen: f64,
    /// Chunks of these tables that were evicted.
    pub evicted: f64,
    /// Keys of groups and aggregates beyond the first of each query.
    pub results: f64,
}

/// Calls what it is given for each expression.
type EachExpr<'a> = &'a mut dyn FnMut(&mut dyn FnMut(&Expr));

/// Rows for a key that depends on other rows.
const ROWS_OF_A_KEY: f64 = 8.0;
/// Rows up to which it is not asked where they lie. To ask would take as long as to read them; and chunks that so few
/// need are fetched together, once, and are there when these rows are wanted again.
const FEW_ROWS: usize = 16;

/// What is known of a table in some partitions.
#[derive(Clone, Copy, Default)]
struct Size {
    rows: f64,
    /// Of frozen chunks.
    frozen: f64,
    /// Chunks.
    evicted: f64,
}

/// Counts for one statement.
pub(super) struct Estimator<'r, 'h> {
    pub(super) running: &'r mut Running<'h>,
    /// Whether parameters have values.
    pub(super) given: bool,
    pub(super) sum: Estimate,
}

impl Estimator<'_, '_> {
    /// Adds a query of which at most `need` rows matter; about how many it gives.
    pub(super) fn query(&mut self, query: &Query, need: f64) -> Result<f64, Stop> {
        for cte in &query.ctes {
            self.query(&cte.query, f64::INFINITY)?;
        }
        let mut need = need;
        if let Some(limit) = self.number(query.limit.as_ref()) {
            need = need.min(limit + self.number(query.offset.as_ref()).unwrap_or(0.0));
        }
        Ok(match &query.body {
            Body::Select(select) => self.select(select, &query.order, need)?,
            Body::Values(rows) => rows.len() as f64,
            Body::Nested(inner) => self.query(inner, need)?,
            Body::Set(set) => {
                let left = self.query(&set.left, f64::INFINITY)?;
                left + self.query(&set.right, f64::INFINITY)?
            }
        })
    }

    /// Adds a change.
    pub(super) fn change(&mut self, change: &Change) -> Result<(), Stop> {
        let Target { ctes, relations, steps, .. } = match change {
            Change::Insert(insert) => return self.query(&insert.source, f64::INFINITY).map(drop),
            Change::Update(Update { target, .. })
            | Change::Delete(target)
            | Change::Merge(Merge { target, .. }) => target,
        };
        for cte in ctes {
            self.query(&cte.query, f64::INFINITY)?;
        }
        let (visits, rows) = self.steps(relations, steps)?;
        self.sum.rows += visits;
        self.inner(&mut |visit| change.each_expr(visit), rows)
    }

    fn select(&mut self, select: &Select, order: &[OrderKey], need: f64) -> Result<f64, Stop> {
        let before = self.sum.fetched;
        let (mut visits, mut rows) = self.steps(&select.relations, &select.steps)?;
        let plain = select.grouping.is_none() && matches!(select.distinct, Distinct::No);
        if plain && (order.is_empty() || select.ordered) && rows > need {
            // It stops at the last that matters.
            visits *= need / rows;
            self.sum.fetched = before + (self.sum.fetched - before) * need / rows;
            rows = need;
        }
        if select.ends {
            visits = visits.min(1.0);
            self.sum.fetched = self.sum.fetched.min(before + 1.0);
        }
        self.sum.rows += visits;
        if let Some(grouping) = &select.grouping {
            let beyond_first = (grouping.keys.len() + grouping.aggregates.len()).saturating_sub(1) as f64;
            self.sum.values += rows * beyond_first;
            self.sum.results += beyond_first;
        }
        self.inner(&mut |visit| select.each_own_expr(visit), rows)?;
        Ok(if select.grouping.is_some() { rows.min(1.0) } else { rows })
    }

    /// Adds the queries in expressions that are evaluated for so many rows.
    fn inner(&mut self, each_expr: EachExpr<'_>, rows: f64) -> Result<(), Stop> {
        let mut done = Ok(());
        each_expr(&mut |expr| {
            expr.walk(&mut |part| {
                if let ExprKind::Subquery(subquery) = &part.kind
                    && done.is_ok()
                {
                    done = self.subquery(&subquery.plan, rows);
                }
            });
        });
        done
    }

    fn subquery(&mut self, plan: &SelectPlan, rows: f64) -> Result<(), Stop> {
        let before = self.sum;
        self.query(&plan.query, f64::INFINITY)?;
        if plan.correlated {
            // What is fetched for one row is there for the others.
            self.sum.rows = before.rows + (self.sum.rows - before.rows) * rows;
            self.sum.values = before.values + (self.sum.values - before.values) * rows;
        }
        Ok(())
    }

    /// How many rows steps look at, and how many combinations they find.
    fn steps(&mut self, relations: &[Relation], steps: &[Step]) -> Result<(f64, f64), Stop> {
        let (mut visits, mut rows) = (0.0, 1.0_f64);
        for step in steps {
            match step {
                Step::Inner { access, .. } => {
                    let found = self.access(relations, access)?;
                    match access.hash {
                        // All rows once; of them those with the key.
                        Some(_) => {
                            visits += found + rows;
                            rows = rows.max(found.min(rows * ROWS_OF_A_KEY));
                        }
                        None => {
                            rows *= found;
                            visits += rows;
                        }
                    }
                }
                Step::Left { steps, .. } => {
                    let (inside, found) = self.steps(relations, steps)?;
                    visits += rows * inside;
                    rows *= found.max(1.0);
                }
            }
        }
        Ok((visits, rows))
    }

    fn access(&mut self, relations: &[Relation], access: &Access) -> Result<f64, Stop> {
        match &relations[usize::from(access.relation)].source {
            RelationSource::Table(table) => self.table(table, access),
            RelationSource::Query(query) => self.query(query, f64::INFINITY),
            RelationSource::Given => Ok(1.0),
            // What a query of WITH reads is counted where it is defined.
            _ => Ok(ROWS_OF_A_KEY),
        }
    }

    fn table(&mut self, table: &TableDef, access: &Access) -> Result<f64, Stop> {
        let here = self.running.host.live().sites(table.id);
        let all = self.size(table, &here);
        self.sum.tables += all.rows;
        self.sum.frozen += all.frozen;
        self.sum.evicted += all.evicted;
        let sites = match &access.site {
            Some(bound) if !self.is_known(&bound.value) => here,
            _ => self.running.sites(table, access)?,
        };
        let Some(index) = &access.index else {
            let there = self.size(table, &sites);
            if there.rows > FEW_ROWS as f64 {
                self.sum.fetched += there.evicted;
            }
            return Ok(there.rows);
        };
        if is_one(table, index) {
            return Ok(1.0);
        }
        let Some(search) = self.search(index) else { return Ok(ROWS_OF_A_KEY.min(all.rows)) };
        let mut rows = 0;
        for site in sites {
            let live = self.running.host.live();
            let rows_of = live.table(site, table.id);
            let Ok(handle) = rows_of.index(&index.name) else { continue };
            let (found, fetched) = found(rows_of, handle, &search);
            rows += found;
            self.sum.fetched += fetched;
        }
        Ok(rows as f64)
    }

    fn size(&mut self, table: &TableDef, sites: &[Site]) -> Size {
        let (live, mut size) = (self.running.host.live(), Size::default());
        for site in sites {
            let here = live.table(*site, table.id);
            let (rows, chunks) = (here.row_count() as f64, here.chunk_counts());
            size.rows += rows;
            size.frozen += rows * f64::from(chunks.frozen) / f64::from(chunks.all.max(1));
            size.evicted += f64::from(chunks.evicted);
        }
        size
    }

    /// What an index is asked for, if that is known before rows are.
    fn search(&mut self, index: &IndexUse) -> Option<Search> {
        let mut known = true;
        let search = search_of(index, &mut |expr| {
            known &= self.is_known(expr);
            match known {
                true => self.running.plain_value(expr),
                false => Ok(albireo_base::Value::Null),
            }
        });
        // What fails fails again where it counts.
        search.ok().filter(|_| known)
    }

    fn number(&mut self, expr: Option<&Expr>) -> Option<f64> {
        let expr = expr.filter(|expr| self.is_known(expr))?;
        match self.running.value(expr) {
            Ok(Datum::Value(albireo_base::Value::BigInt(n))) if n >= 0 => Some(n as f64),
            _ => None,
        }
    }

    /// Whether an expression has a value before any row is read, found without reading any.
    fn is_known(&self, expr: &Expr) -> bool {
        let mut known = true;
        expr.walk(&mut |part| {
            known &= match part.kind {
                ExprKind::Column(_) | ExprKind::Call(..) | ExprKind::Subquery(_) => false,
                ExprKind::Variable(_) => self.given,
                _ => true,
            };
        });
        known
    }
}

/// About how many rows of a table in one partition a search finds, and in how many chunks they lie that are not in memory.
fn found(table: &Table, index: IndexRef, search: &Search) -> (usize, f64) {
    let evicted = table.chunk_counts().evicted;
    let asks = |rows: usize| evicted > 0 && rows > FEW_ROWS;
    match search {
        Search::Nothing => (0, 0.0),
        Search::Everything => {
            let rows = table.row_count() as usize;
            (rows, if asks(rows) { f64::from(evicted) } else { 0.0 })
        }
        Search::Equal(key) => {
            let tids = table.find_all(index, key.key());
            let some = tids.iter().copied().step_by(tids.len().div_ceil(FEW_ROWS).max(1));
            let fetched = if asks(tids.len()) { fetched(table, tids.len(), some) } else { 0.0 };
            (tids.len(), fetched)
        }
        Search::Between { low, high, .. } => {
            let rows = table.estimate_between(index, *low, *high);
            if !asks(rows) {
                return (rows, 0.0);
            }
            let some = table.ends_between(index, *low, *high, FEW_ROWS / 2);
            (rows, fetched(table, rows, some.into_iter()))
        }
    }
}

/// In how many chunks that are not in memory so many rows lie, of which some tell of all. Too many, if rows with keys that
/// are near each other lie together: then a scan passes over most chunks by their zone maps, and is cheap.
fn fetched(table: &Table, rows: usize, some: impl ExactSizeIterator<Item = Tid>) -> f64 {
    let looked_at = some.len().max(1) as f64;
    let away = table.chunks_away(some) as f64;
    (away * rows as f64 / looked_at).min(f64::from(table.chunk_counts().evicted))
}
