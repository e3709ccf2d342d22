//! WITH RECURSIVE.
//!
//! A recursive query that reads columns around it is computed for all of their values at once: its rows carry for
//! which of them they are.

use std::sync::Arc;

use albireo_semantics::expr::ColumnRef;
use albireo_semantics::query::tree::{Cte, Repeated};
use albireo_semantics::types::Type;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr as Planned, LogicalPlan, LogicalPlanBuilder};

use super::from::{Equal, typed_columns};
use super::keys::{has_key, key};
use super::query::output_types;
use super::spools::Named;
use super::{Domain, Level, Lowering, Rows, Typed, unsupported};
use crate::nodes::recursion::{Recursion, Working, nullable};

impl Lowering<'_> {
    /// A query that is repeated over its own rows, for each row of `domain` if there is one.
    pub(super) fn recursive(&self, cte: &Cte, repeated: &Repeated, domain: Option<&Domain>) -> Result<Rows> {
        if let Some(domain) = domain {
            let around = domain.columns.iter().map(|(reference, _)| *reference).collect();
            self.keyed.borrow_mut().insert(cte.id, around);
        }
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

    /// The rows of a recursive query that reads columns around it, and what must be equal; none if it is not
    /// such a query.
    pub(super) fn keyed_rows(
        &self,
        level: &Level,
        id: u32,
        on: &mut Equal,
    ) -> Result<Option<(LogicalPlan, Vec<Typed>)>> {
        let around: Option<Vec<ColumnRef>> = self.keyed.borrow().get(&id).cloned();
        let Some(around) = around else { return Ok(None) };
        let Rows { plan, outputs, keys, .. } = match self.ctes.borrow().get(&id) {
            Some(Named::Inline(rows)) => rows.clone(),
            _ => return Err(unsupported("this query of WITH")),
        };
        let new = |columns: &[Column]| columns.iter().map(|_| self.column("with")).collect::<Vec<_>>();
        let (new_outputs, new_keys) = (new(&outputs), new(&keys));
        let columns = keys.iter().zip(&new_keys).chain(outputs.iter().zip(&new_outputs));
        let exprs = columns.map(|(old, new)| Planned::Column(old.clone()).alias(&new.name));
        let plan = LogicalPlanBuilder::from(plan).project(exprs.collect::<Vec<_>>())?.build()?;
        for (reference, key) in around.iter().zip(new_keys) {
            let Some((value, _)) = level.outer.get(reference) else {
                let what = "WITH RECURSIVE that reads columns around it, in a query inside of another";
                return Err(unsupported(what));
            };
            on.push((value.clone(), Planned::Column(key)));
        }
        typed_columns(Rows { plan, outputs: new_outputs, ..Rows::default() }).map(Some)
    }
}
