//! How many rows a statement is about to read, before it reads any.
//!
//! Responsible for: counting by indexes and sizes of tables, with the values of parameters. Not responsible
//! for: what follows from it (`engine`).
//!
//! Keys that are known are looked for in their index, which tells about how many entries it has between two
//! places. What depends on rows that are not read yet is guessed.

use albireo_partition::Site;
use albireo_plpgsql::plan::is_one;
use albireo_semantics::query::SelectPlan;
use albireo_semantics::query::tree::{
    Access, Body, Change, Distinct, IndexUse, Merge, OrderKey, Query, Relation, RelationSource, Select, Step,
    Target, Update,
};
use albireo_sql::TableDef;

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
    /// The rows of all tables that it reads: what looking at each once comes to.
    pub tables: f64,
}

/// Calls what it is given for each expression.
type EachExpr<'a> = &'a mut dyn FnMut(&mut dyn FnMut(&Expr));

/// Rows for a key that depends on other rows.
const ROWS_OF_A_KEY: f64 = 8.0;

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
        let (mut visits, mut rows) = self.steps(&select.relations, &select.steps)?;
        let plain = select.grouping.is_none() && matches!(select.distinct, Distinct::No);
        if plain && (order.is_empty() || select.ordered) && rows > need {
            // It stops at the last that matters.
            visits *= need / rows;
            rows = need;
        }
        if select.ends {
            visits = visits.min(1.0);
        }
        self.sum.rows += visits;
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
        let before = self.sum.rows;
        self.query(&plan.query, f64::INFINITY)?;
        if plan.correlated {
            self.sum.rows = before + (self.sum.rows - before) * rows;
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
        let size = |running: &mut Running<'_>, sites: &[Site]| -> f64 {
            let live = running.host.live();
            sites.iter().map(|site| live.table(*site, table.id).row_count() as f64).sum()
        };
        let all = size(self.running, &here);
        self.sum.tables += all;
        let sites = match &access.site {
            Some(bound) if !self.is_known(&bound.value) => here,
            _ => self.running.sites(table, access)?,
        };
        let Some(index) = &access.index else { return Ok(size(self.running, &sites)) };
        if is_one(table, index) {
            return Ok(1.0);
        }
        let Some(search) = self.search(index) else { return Ok(ROWS_OF_A_KEY.min(all)) };
        let mut rows = 0;
        for site in sites {
            let live = self.running.host.live();
            let rows_of = live.table(site, table.id);
            let Ok(handle) = rows_of.index(&index.name) else { continue };
            rows += match &search {
                Search::Nothing => 0,
                Search::Everything => rows_of.row_count() as usize,
                Search::Equal(key) => rows_of.find_all(handle, key.key()).len(),
                Search::Between { low, high, .. } => rows_of.estimate_between(handle, *low, *high),
            };
        }
        Ok(rows as f64)
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
