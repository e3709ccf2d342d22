//! The execution path of a statement, chosen at each execution.
//!
//! Responsible for: what a statement may read ([`Extent`]), what the two paths would cost ([`Costs`]), what
//! executions have taught of estimates that were wrong ([`Overruns`]). Not responsible for: counting rows
//! (`albireo_plpgsql::plan`), running (`run`).
//!
//! Nobody can tell which path was taken but by EXPLAIN and the clock.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use albireo_execute::query::Estimate;
use albireo_plpgsql::plan::{most_rows_looked_at, most_rows_read};
use albireo_semantics::expr::{Expr, ExprKind};
use albireo_semantics::query::tree::{Body, Change, Merge, Query, Relation, RelationSource, Step, Update};
use albireo_semantics::types::{Scalar, Type};

use super::live::Work;

/// The two paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExecutionPath {
    /// On live rows, in a partition or over all.
    Transactional,
    /// A query on a snapshot, which finds the rows of a change.
    Analytical,
}

impl ExecutionPath {
    /// The path that a number forces; 0 none.
    pub(super) fn forced(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Transactional),
            2 => Some(Self::Analytical),
            _ => None,
        }
    }

    pub(super) fn force(self) -> u8 {
        match self {
            Self::Transactional => 1,
            Self::Analytical => 2,
        }
    }
}

/// What is known, before a statement runs, of how much it reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extent {
    /// Whatever it is: nothing but a transaction runs it.
    Whatever,
    /// So many rows at most, each by a unique key.
    Keys(usize),
    /// What indexes and sizes of tables say when it is run.
    Estimated,
    /// Nothing: it belongs on a snapshot.
    Unknown,
}

impl Extent {
    /// Of a statement; `only_here`: whether it calls routines, or asks for locks, of which the analytical engine knows
    /// none.
    pub(super) fn of(work: &Work, only_here: bool) -> Self {
        let most = match work {
            Work::Call(_) => None,
            Work::Select(plan) => most_rows_read(plan).filter(|most| *most > 0),
            Work::Change(plan) => most_rows_looked_at(plan),
        };
        let mut judge = Judge { fits: true, tables: 0 };
        match work {
            _ if only_here => return Self::Whatever,
            Work::Call(_) => return Self::Whatever,
            Work::Select(plan) => {
                judge.query(&plan.query);
                judge.fits &= !plan.columns.is_empty();
            }
            Work::Change(plan) => {
                // It has one.
                judge.tables = 1;
                match &*plan.change {
                    Change::Insert(insert) => judge.query(&insert.source),
                    Change::Update(Update { target, .. })
                    | Change::Delete(target)
                    | Change::Merge(Merge { target, .. }) => {
                        target.ctes.iter().for_each(|cte| judge.query(&cte.query));
                        judge.steps(&target.relations, &target.steps);
                    }
                }
            }
        }
        work.each_expr(&mut |expr| match &expr.kind {
            ExprKind::Subquery(subquery) => judge.query(&subquery.plan.query),
            // Live rows have a CHAR without the blanks at its end, which patterns see.
            ExprKind::Function(builtin, args) if PATTERNS.contains(&builtin.name) => {
                judge.fits &= !args.first().is_some_and(is_padded);
            }
            _ => {}
        });
        match most {
            _ if !judge.fits || judge.tables == 0 => Self::Unknown,
            Some(most) => Self::Keys(most),
            None => Self::Estimated,
        }
    }
}

/// Functions that look at the blanks at the end of a CHAR.
const PATTERNS: [&str; 2] = ["like", "ilike"];

/// Whether an expression is a CHAR, or one as a text.
fn is_padded(expr: &Expr) -> bool {
    match &expr.kind {
        _ if expr.ty == Type::Scalar(Scalar::Bpchar) => true,
        ExprKind::Convert(inner, _) => is_padded(inner),
        _ => false,
    }
}

/// Looks for what gives a number of rows that nobody knows before.
struct Judge {
    fits: bool,
    tables: usize,
}

impl Judge {
    fn query(&mut self, query: &Query) {
        query.ctes.iter().for_each(|cte| self.query(&cte.query));
        match &query.body {
            Body::Select(select) => self.steps(&select.relations, &select.steps),
            Body::Values(_) => {}
            Body::Nested(inner) => self.query(inner),
            Body::Set(set) => {
                self.query(&set.left);
                self.query(&set.right);
            }
        }
    }

    fn steps(&mut self, relations: &[Relation], steps: &[Step]) {
        for step in steps {
            match step {
                Step::Inner { access, .. } => self.relation(&relations[usize::from(access.relation)]),
                Step::Left { steps, .. } => self.steps(relations, steps),
            }
        }
    }

    fn relation(&mut self, relation: &Relation) {
        match &relation.source {
            RelationSource::Table(_) => self.tables += 1,
            RelationSource::Query(query) => self.query(query),
            RelationSource::Cte(..) | RelationSource::Given => {}
            RelationSource::Series(_)
            | RelationSource::Unnest(_)
            | RelationSource::Routine(..)
            | RelationSource::File(_)
            | RelationSource::Lateral(_) => self.fits = false,
        }
    }
}

/// What an execution is expected to take on each path, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Costs {
    /// Rows that a transaction looks at.
    pub(super) rows: f64,
    pub(super) transactional_ns: f64,
    pub(super) analytical_ns: f64,
}

/// What a row costs that a transaction looks at.
const ROW_NS: f64 = 150.0;
/// What a row of a table costs that a scan looks at.
const SCANNED_ROW_NS: f64 = 1.0;
/// What a query on a snapshot costs whose plan is there.
const PLANNED_NS: f64 = 80_000.0;
/// What it costs to plan one.
const PLANNING_NS: f64 = 300_000.0;

impl Costs {
    /// From what would be read; the cost of planning for a snapshot is spread over `planned` executions.
    pub(super) fn of(estimate: &Estimate, planned: u32) -> Self {
        let planning = PLANNING_NS / f64::from(planned.max(1));
        Self {
            rows: estimate.rows,
            transactional_ns: estimate.rows * ROW_NS,
            analytical_ns: PLANNED_NS + planning + estimate.tables * SCANNED_ROW_NS,
        }
    }

    /// The cheaper path, unless a transaction would read more than `most` rows.
    pub(super) fn path(&self, most: u32) -> ExecutionPath {
        match self.transactional_ns <= self.analytical_ns && self.rows <= f64::from(most) {
            true => ExecutionPath::Transactional,
            false => ExecutionPath::Analytical,
        }
    }
}

/// The most executions that are not begun as transactions because others before them read too much.
const MOST_SKIPPED: u8 = 10;

/// Executions of a statement that were begun as transactions and read more than was expected. After one, as
/// many are not begun so as there were of late, doubled each time; each that stays within its limit halves it.
#[derive(Default)]
pub(super) struct Overruns {
    level: AtomicU8,
    skipped: AtomicU32,
    /// What was expected of the last.
    expected: AtomicU32,
}

impl Overruns {
    /// Whether an execution that is expected to read so many rows should not be begun.
    pub(super) fn skips(&self, expected: f64) -> bool {
        let left = self.skipped.load(Ordering::Relaxed);
        if left == 0 || expected < f64::from(self.expected.load(Ordering::Relaxed)) / 4.0 {
            return false;
        }
        self.skipped.store(left - 1, Ordering::Relaxed);
        true
    }

    /// One read too much.
    pub(super) fn overran(&self, expected: f64) {
        let level = self.level.load(Ordering::Relaxed).saturating_add(1).min(MOST_SKIPPED);
        self.level.store(level, Ordering::Relaxed);
        self.skipped.store(1 << level, Ordering::Relaxed);
        self.expected.store(expected as u32, Ordering::Relaxed);
    }

    /// One stayed within its limit.
    pub(super) fn stayed(&self) {
        let level = self.level.load(Ordering::Relaxed);
        if level > 0 {
            self.level.store(level - 1, Ordering::Relaxed);
        }
    }

    /// Whether the next is not to be begun, in words.
    pub(super) fn left(&self) -> u32 {
        self.skipped.load(Ordering::Relaxed)
    }
}
