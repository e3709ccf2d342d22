//! Queries of WITH: planned where they are used, or once as spools.
//!
//! PostgreSQL's rule: one that is used once, or NOT MATERIALIZED, is a part of the query that uses it; any other is
//! computed once. A whole table under another name is read where it is used all the same: that copies nothing.
//!
//! Rows that a dependent query reads for its values, and that are joined with its rows after that, are computed once
//! too, where their plan is large.

use std::collections::HashMap;
use std::sync::Arc;

use albireo_semantics::expr::ExprKind;
use albireo_semantics::query::tree::{Body, Cte, Distinct, Query, Relation, RelationSource};
use arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::{Expr as Planned, LogicalPlan, LogicalPlanBuilder};

use super::free::free_columns;
use super::from::typed_columns;
use super::{Domain, Lowering, Rows, Typed, type_of, unsupported};
use crate::spool::{self, SpoolId};

/// A query of WITH.
pub(super) enum Named {
    /// Planned where it is used.
    Inline(Rows),
    /// Computed once: its spool, and the types of its columns.
    Spooled(SpoolId, Vec<DataType>),
}

impl Lowering<'_> {
    /// A query of WITH, before it is used.
    pub(super) fn cte(&self, cte: &Cte, domain: Option<&Domain>) -> Result<Named> {
        let rows = match &cte.repeated {
            None => self.query(&cte.query, None)?,
            Some(repeated) => self.recursive(cte, repeated, domain)?,
        };
        let used_again = cte.uses > 1 && !is_whole_table(&cte.query);
        let once = cte.materialized.unwrap_or(used_again);
        // What is computed for each row around, or in each round, is not computed once.
        match once && rows.keys.is_empty() && !self.repeating.get() {
            true => self.spooled(rows),
            false => Ok(Named::Inline(rows)),
        }
    }

    /// Has rows computed once.
    fn spooled(&self, rows: Rows) -> Result<Named> {
        let types = rows.outputs.iter().map(|output| type_of(&rows.plan, output)).collect::<Result<_>>()?;
        let outputs: Vec<Planned> = rows.outputs.into_iter().map(Planned::Column).collect();
        let plan = LogicalPlanBuilder::from(rows.plan).project(outputs)?.build()?;
        Ok(Named::Spooled(self.spool(plan), types))
    }

    /// Rows that a relation will be joined with: read twice if it depends on them.
    pub(super) fn before(&self, plan: LogicalPlan, relation: &Relation) -> Result<LogicalPlan> {
        match &relation.source {
            RelationSource::Query(query) | RelationSource::Lateral(query)
                if !free_columns(query).is_empty() =>
            {
                self.readable_twice(plan)
            }
            _ => Ok(plan),
        }
    }

    /// Rows that are read in two places: as they are while their plan is small, else a spool of them under the same
    /// names. Dependent queries, each of which reads all rows before it twice, would double the plan each time.
    pub(super) fn readable_twice(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        // What is computed in each round is not computed once.
        if self.repeating.get() || !has_more_nodes(&plan, &mut { SMALL_NODES }) {
            return Ok(plan);
        }
        let fields = plan.schema().iter().map(|(qualifier, field)| {
            (qualifier.cloned(), Arc::new(Field::clone(field).with_nullable(true)))
        });
        let schema = DFSchema::new_with_metadata(fields.collect(), HashMap::new())?;
        let id = self.spool(plan);
        Ok(spool::scan(id, Arc::new(schema)))
    }

    fn spool(&self, plan: LogicalPlan) -> SpoolId {
        let mut spools = self.spools.borrow_mut();
        let id = SpoolId::try_from(spools.len()).unwrap_or(SpoolId::MAX);
        spools.push((id, plan));
        id
    }

    /// The rows of a query of WITH where it is used.
    pub(super) fn cte_rows(&self, id: u32) -> Result<(LogicalPlan, Vec<Typed>)> {
        let ctes = self.ctes.borrow();
        let (plan, outputs) = match ctes.get(&id) {
            None => return Err(unsupported("this query of WITH")),
            Some(Named::Inline(rows)) => {
                let new: Vec<Column> = rows.outputs.iter().map(|_| self.column("with")).collect();
                let named = rows.outputs.iter().zip(&new);
                let exprs = named.map(|(old, new)| Planned::Column(old.clone()).alias(&new.name));
                let plan = LogicalPlanBuilder::from(rows.plan.clone());
                (plan.project(exprs.collect::<Vec<_>>())?.build()?, new)
            }
            Some(Named::Spooled(id, types)) => {
                let new: Vec<Column> = types.iter().map(|_| self.column("with")).collect();
                let fields = new.iter().zip(types).map(|(new, ty)| Field::new(&new.name, ty.clone(), true));
                let schema = DFSchema::from_unqualified_fields(fields.collect(), HashMap::new())?;
                (spool::scan(*id, Arc::new(schema)), new)
            }
        };
        typed_columns(Rows { plan, outputs, ..Rows::default() })
    }
}

/// Nodes of a plan that is small enough to stand in a statement twice.
const SMALL_NODES: usize = 40;

/// Whether a plan has more nodes than so many.
fn has_more_nodes(plan: &LogicalPlan, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return true };
    *left = rest;
    plan.inputs().into_iter().any(|input| has_more_nodes(input, left))
}

/// Whether a query gives columns of all rows of one table.
fn is_whole_table(query: &Query) -> bool {
    let Body::Select(select) = &query.body else { return false };
    let plain = select.grouping.is_none()
        && select.windows.is_empty()
        && select.distinct == Distinct::No
        && select.from.conditions.is_empty()
        && query.ctes.is_empty()
        && query.order.is_empty()
        && query.limit.is_none()
        && query.offset.is_none();
    let table =
        matches!(select.relations.as_slice(), [one] if matches!(one.source, RelationSource::Table(_)));
    plain && table && select.outputs.iter().all(|output| matches!(output.kind, ExprKind::Column(_)))
}
