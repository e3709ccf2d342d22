//! Which road a statement takes.

use albireo_procedure::expr::ExprKind;
use albireo_procedure::plan::tree::{
    Access, Body, Change, Merge, Query, Relation, RelationSource, Select, Step, Update,
};

use super::bind::{Bound, Work};

/// The two roads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Road {
    /// On live rows, in a partition or over all.
    Transactional,
    /// A query on a snapshot; a change then follows under the barrier.
    Analytical,
}

impl Road {
    /// The road that a number forces; 0 none.
    pub(super) fn forced(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Transactional),
            2 => Some(Self::Analytical),
            _ => None,
        }
    }

    #[cfg(test)]
    pub(super) fn force(self) -> u8 {
        match self {
            Self::Transactional => 1,
            Self::Analytical => 2,
        }
    }

    /// The road of a statement.
    pub(super) fn of(bound: &Bound) -> Self {
        // The analytical engine knows no routine.
        if bound.calls {
            return Self::Transactional;
        }
        let mut judge = Judge { reads: matches!(bound.work, Work::Select(_)), fits: true, tables: 0 };
        match &bound.work {
            Work::Select(plan) => {
                judge.query(&plan.query);
                judge.fits &= judge.tables > 0 && !plan.columns.is_empty();
            }
            Work::Change(plan) => match &*plan.change {
                Change::Insert(insert) => judge.query(&insert.source),
                Change::Update(Update { target, .. })
                | Change::Delete(target)
                | Change::Merge(Merge { target, .. }) => {
                    target.ctes.iter().for_each(|cte| judge.query(&cte.query));
                    judge.steps(&target.relations, &target.steps, false);
                }
            },
        }
        bound.work.each_expr(&mut |expr| {
            if let ExprKind::Subquery(subquery) = &expr.kind {
                judge.query(&subquery.plan.query);
            }
        });
        if judge.fits { Self::Transactional } else { Self::Analytical }
    }
}

/// Looks at the ways to rows.
struct Judge {
    /// Whether it is a query, of which more is asked.
    reads: bool,
    fits: bool,
    tables: usize,
}

impl Judge {
    fn query(&mut self, query: &Query) {
        query.ctes.iter().for_each(|cte| self.query(&cte.query));
        match &query.body {
            Body::Select(select) => self.select(select),
            Body::Values(_) => {}
            Body::Nested(inner) => self.query(inner),
            Body::Set(set) => {
                self.query(&set.left);
                self.query(&set.right);
            }
        }
    }

    fn select(&mut self, select: &Select) {
        self.steps(&select.relations, &select.steps, select.ends);
    }

    /// `ends`: of each partition the first row is enough.
    fn steps(&mut self, relations: &[Relation], steps: &[Step], ends: bool) {
        for step in steps {
            match step {
                Step::Inner { access, .. } => {
                    self.access(&relations[usize::from(access.relation)], access, ends)
                }
                Step::Left { steps, .. } => self.steps(relations, steps, false),
            }
        }
    }

    fn access(&mut self, relation: &Relation, access: &Access, ends: bool) {
        self.fits &= access.hash.is_none();
        match &relation.source {
            RelationSource::Table(_) => {
                self.tables += 1;
                self.fits &= match &access.index {
                    Some(index) => !self.reads || ends || !index.equal.is_empty(),
                    None => false,
                };
            }
            RelationSource::Query(query) => self.query(query),
            RelationSource::Cte(_) | RelationSource::Given => {}
            RelationSource::Series(_)
            | RelationSource::Unnest(_)
            | RelationSource::Routine(..)
            | RelationSource::File(_)
            | RelationSource::Lateral(_) => {
                self.fits = false;
            }
        }
    }
}
