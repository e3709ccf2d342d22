//! The rows that a running statement's expressions see.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlState, TableId, Tid, Value};
use albireo_partition::Site;
use albireo_semantics::query::SelectPlan;
use albireo_semantics::query::accumulate::Sorted;
use albireo_semantics::query::tree::{Relation, RelationSource};
use albireo_storage::count_work;

use crate::Stop;
use crate::datum::Datum;
use crate::execution::ROWS_WORK;
use crate::expr::{self, ColumnRef, Expr, Frame, RoutineId, VariableId};
use crate::host::Host;

/// Rows of which all values are known.
pub(super) type Rows = Arc<Vec<Arc<[Datum]>>>;

/// A row of a relation.
#[derive(Clone, Debug)]
pub(super) enum Row {
    /// All NULL.
    Missing,
    /// In a table.
    Stored(Site, Tid),
    /// With known values.
    Made(Arc<[Datum]>),
}

/// A hash table of a join: rows by their key.
pub(super) type Hashed = Arc<BTreeMap<Sorted, Vec<Row>>>;

/// One query whose rows are being looked for.
#[derive(Default)]
pub(super) struct Level {
    /// Which of its relations are tables.
    tables: Vec<Option<TableId>>,
    /// The current rows.
    pub(super) rows: Vec<Row>,
    /// The rows of its derived tables.
    pub(super) derived: Vec<Option<Rows>>,
    /// Hash tables made so far.
    pub(super) hashes: Vec<Option<Hashed>>,
}

/// The rows of an inner query that is always the same: the plan's address is its name.
struct Cached {
    query: usize,
    limit: usize,
    rows: Vec<Vec<Datum>>,
    /// The queries of WITH that it reads.
    reads: BTreeSet<u32>,
}

/// A running statement.
pub(super) struct Running<'h> {
    pub(super) host: &'h mut dyn Host,
    pub(super) levels: Vec<Level>,
    pub(super) ctes: BTreeMap<u32, Rows>,
    cached: Vec<Cached>,
    ticks: u32,
}

/// How many relations may be read inside of each other: each takes a few frames of the stack.
const MAX_OPEN: usize = 256;

/// How many rows are read between two questions whether to go on.
const TICKS: u32 = 256;

impl<'h> Running<'h> {
    /// A statement about to run.
    pub(super) fn new(host: &'h mut dyn Host) -> Self {
        Self { host, levels: Vec::new(), ctes: BTreeMap::new(), cached: Vec::new(), ticks: 0 }
    }

    /// Counts a row.
    pub(super) fn tick(&mut self) -> Result<(), Stop> {
        self.ticks += 1;
        if self.ticks < TICKS {
            return Ok(());
        }
        self.ticks = 0;
        count_work(ROWS_WORK);
        self.host.live().check_interrupt()
    }

    /// The value of an expression.
    pub(super) fn value(&mut self, expr: &Expr) -> Result<Datum, Stop> {
        expr::evaluate(expr, self)
    }

    /// The values of expressions.
    pub(super) fn values(&mut self, exprs: &[Expr]) -> Result<Vec<Datum>, Stop> {
        exprs.iter().map(|expr| self.value(expr)).collect()
    }

    /// Whether conditions are all true.
    pub(super) fn all(&mut self, conditions: &[Expr]) -> Result<bool, Stop> {
        for condition in conditions {
            if !self.is_true(condition)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a condition is true.
    pub(super) fn is_true(&mut self, condition: &Expr) -> Result<bool, Stop> {
        Ok(matches!(self.value(condition)?, Datum::Value(Value::Bool(true))))
    }

    /// Begins a level over these relations, and one of computed values.
    pub(super) fn push_level(
        &mut self,
        relations: &[Relation],
        derived: Vec<Option<Rows>>,
    ) -> Result<(), Stop> {
        let open: usize = self.levels.iter().map(|level| level.rows.len()).sum();
        if open + relations.len() > MAX_OPEN {
            let message = "stack depth limit exceeded";
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
                .with_detail("Too many relations are read inside of each other.")
                .into());
        }
        let table = |relation: &Relation| match &relation.source {
            RelationSource::Table(table) => Some(table.id),
            _ => None,
        };
        let tables = relations.iter().map(table).chain([None]).collect();
        let rows = vec![Row::Missing; relations.len() + 1];
        self.levels.push(Level { tables, rows, derived, hashes: Vec::new() });
        Ok(())
    }

    /// The innermost level.
    pub(super) fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// Sets the current row of a relation of the innermost level.
    pub(super) fn set(&mut self, relation: u16, row: Row) {
        if let Some(place) = self.level().rows.get_mut(usize::from(relation)) {
            *place = row;
        }
    }

    /// A value of a row in a table.
    pub(super) fn stored(&mut self, site: Site, table: TableId, tid: Tid, column: ColumnId) -> Value {
        self.host.live().table(site, table).value(tid, column)
    }

    /// Accounts a row that is kept.
    pub(super) fn keep(&mut self, row: &[Datum]) -> Result<(), Stop> {
        let bytes: usize = row.iter().map(Datum::bytes).sum();
        self.host.take_memory(bytes + 24)
    }

    /// The rows of a query inside an expression.
    fn inner(&mut self, plan: &SelectPlan, limit: usize) -> Result<Vec<Vec<Datum>>, Stop> {
        if plan.correlated {
            return self.query(&plan.query, limit);
        }
        let query = Arc::as_ptr(&plan.query) as usize;
        if let Some(found) = self.cached.iter().find(|c| c.query == query && c.limit == limit) {
            return Ok(found.rows.clone());
        }
        let rows = self.query(&plan.query, limit)?;
        let reads = plan.query.ctes_around();
        self.cached.push(Cached { query, limit, rows: rows.clone(), reads });
        Ok(rows)
    }

    /// Sets the rows of a query of WITH. What was kept of queries that read its rows of before is forgotten.
    pub(super) fn set_cte(&mut self, id: u32, rows: Rows) {
        if self.ctes.insert(id, rows).is_some() {
            self.cached.retain(|cached| !cached.reads.contains(&id));
        }
    }
}

impl Frame for Running<'_> {
    fn variable(&self, variable: VariableId) -> &Datum {
        self.host.variable(variable)
    }

    fn column(&mut self, column: ColumnRef) -> Result<Datum, Stop> {
        let missing = || {
            let message = "a column of a query that does not run";
            Stop::Fatal(Box::new(SqlError::new(SqlState::INTERNAL_ERROR, message)))
        };
        let at = self.levels.len().checked_sub(1 + usize::from(column.depth)).ok_or_else(missing)?;
        let relation = usize::from(column.relation);
        let level = &self.levels[at];
        match level.rows.get(relation).ok_or_else(missing)? {
            Row::Missing => Ok(Datum::NULL),
            Row::Made(values) => values.get(usize::from(column.column)).cloned().ok_or_else(missing),
            Row::Stored(site, tid) => {
                let (site, tid) = (*site, *tid);
                let table = level.tables[relation].ok_or_else(missing)?;
                Ok(Datum::Value(self.stored(site, table, tid, ColumnId(column.column))))
            }
        }
    }

    fn now(&mut self) -> i64 {
        self.host.live().tx.now()
    }

    fn call(&mut self, routine: RoutineId, args: Vec<Datum>) -> Result<Datum, Stop> {
        self.host.call(routine, args)
    }

    fn query(&mut self, plan: &SelectPlan, limit: usize) -> Result<Vec<Vec<Datum>>, Stop> {
        self.inner(plan, limit)
    }
}
