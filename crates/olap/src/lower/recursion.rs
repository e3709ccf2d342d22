//! WITH RECURSIVE.
//!
//! A recursive query that reads columns around it is computed for all of their values at once: its rows carry for
//! which of them they are.

use std::sync::Arc;

use albireo_semantics::expr::{Expr, ExprKind};
use albireo_semantics::query::tree::{Cte, Repeated};
use albireo_semantics::types::Type;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr as Planned, LogicalPlan, LogicalPlanBuilder};

use super::free::free_columns_of_cte;
use super::from::{Equal, typed_columns};
use super::keys::{has_key, key};
use super::query::output_types;
use super::spools::Named;
use super::{Domain, Level, Lowering, Rows, Typed};
use crate::errors::{external, internal};
use crate::nodes::recursion::{Recursion, Working, nullable};

impl Lowering<'_> {
    /// A query that is repeated over its own rows, for all values that `domain` has of the columns that it reads.
    pub(super) fn recursive(&self, cte: &Cte, repeated: &Repeated, domain: Option<&Domain>) -> Result<Rows> {
        let part = self.part_of(domain, &free_columns_of_cte(cte))?;
        let domain = part.as_ref();
        let types = super::sets::common(&output_types(&cte.query), &output_types(&repeated.query));
        let begins = self.branch(&cte.query, &types, domain)?;
        let schema = Arc::new(nullable(begins.plan.schema())?);
        let last = Rows { plan: Working::plan(cte.id, schema), ..begins.clone() };
        self.ctes.borrow_mut().insert(cte.id, Named::Inline(last));
        let around = self.repeating.replace(true);
        let repeats = self.branch(&repeated.query, &types, domain);
        self.repeating.set(around);
        let repeats = repeats?;
        let (keys, outputs) = (begins.keys.clone(), begins.outputs.clone());
        let (begins, repeats, distinct) = match repeated.all {
            true => (begins.plan, repeats.plan, None),
            false => {
                let (begins, distinct) = self.with_keys(begins, &types)?;
                (begins, self.with_keys(repeats, &types)?.0, Some(distinct))
            }
        };
        let plan = Recursion::plan(cte.id, begins, repeats, distinct)?;
        Ok(Rows { plan, outputs, keys, order: Vec::new() })
    }

    /// The part of a domain that has these columns only, in their order; none without any.
    fn part_of(&self, domain: Option<&Domain>, columns: &[Expr]) -> Result<Option<Domain>> {
        let (Some(domain), false) = (domain, columns.is_empty()) else { return Ok(None) };
        let column = |expr: &Expr| match &expr.kind {
            ExprKind::Column(column) => domain.columns.iter().find(|(known, _)| known == column).cloned(),
            _ => None,
        };
        let columns: Vec<_> = columns.iter().filter_map(column).collect();
        let exprs: Vec<Planned> = columns.iter().map(|(_, column)| Planned::Column(column.clone())).collect();
        let plan = LogicalPlanBuilder::from(domain.plan.clone()).project(exprs)?.distinct()?.build()?;
        Ok(Some(Domain { plan, columns }))
    }

    /// Rows with what tells them apart behind their columns, and where that is.
    fn with_keys(&self, rows: Rows, types: &[Type]) -> Result<(LogicalPlan, Vec<usize>)> {
        let mut exprs: Vec<Planned> = rows.keys.iter().cloned().map(Planned::Column).collect();
        let mut places: Vec<usize> = (0..exprs.len()).collect();
        exprs.extend(rows.outputs.iter().cloned().map(Planned::Column));
        for (at, (column, ty)) in rows.outputs.into_iter().zip(types).enumerate() {
            if has_key(ty) {
                places.push(exprs.len());
                exprs.push(key(Planned::Column(column), ty).alias(self.name("key")));
            } else {
                places.push(rows.keys.len() + at);
            }
        }
        let plan = LogicalPlanBuilder::from(rows.plan).project(exprs)?.build()?;
        Ok((plan, places))
    }

    /// The rows of a recursive query that reads columns around it, and what must be equal.
    pub(super) fn keyed_rows(
        &self,
        level: &Level,
        id: u32,
        around: &[Expr],
        on: &mut Equal,
    ) -> Result<(LogicalPlan, Vec<Typed>)> {
        let Rows { plan, outputs, keys, .. } = match self.ctes.borrow().get(&id) {
            Some(Named::Inline(rows)) => rows.clone(),
            _ => return Err(external(internal("no such query of WITH"))),
        };
        let new = |columns: &[Column]| columns.iter().map(|_| self.column("with")).collect::<Vec<_>>();
        let (new_outputs, new_keys) = (new(&outputs), new(&keys));
        let columns = keys.iter().zip(&new_keys).chain(outputs.iter().zip(&new_outputs));
        let exprs = columns.map(|(old, new)| Planned::Column(old.clone()).alias(&new.name));
        let plan = LogicalPlanBuilder::from(plan).project(exprs.collect::<Vec<_>>())?.build()?;
        for (column, key) in around.iter().zip(new_keys) {
            on.push((self.expr(level, column)?, Planned::Column(key)));
        }
        typed_columns(Rows { plan, outputs: new_outputs, ..Rows::default() })
    }
}
