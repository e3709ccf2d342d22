//! UNION, INTERSECT and EXCEPT.

use std::sync::Arc;

use albireo_semantics::query::tree::{Body, Query, SetKind, SetOperation};
use albireo_semantics::types::Type;
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Cast, Expr as Planned, ExprFunctionExt, Join, JoinConstraint, LogicalPlan, LogicalPlanBuilder,
};

use super::keys::key;
use super::query::output_types;
use super::{Domain, Lowering, Rows, typed_column, unsupported};
use crate::values::arrow_of;

impl Lowering<'_> {
    /// A set operation, for each row of `domain` if there is one.
    pub(super) fn set(&self, set: &SetOperation, domain: Option<&Domain>) -> Result<Rows> {
        let types: Vec<Type> = common(&output_types(&set.left), &output_types(&set.right));
        if set.kind == SetKind::Union {
            return self.union(set, &types, domain);
        }
        let left = self.branch(&set.left, &types, domain)?;
        let right = self.branch(&set.right, &types, domain)?;
        let (left, right) = match set.all {
            true => (self.numbered(left, &types)?, self.numbered(right, &types)?),
            false => ((self.distinct(left, &types)?, None), (right, None)),
        };
        let kind = match set.kind {
            SetKind::Except => JoinType::LeftAnti,
            _ => JoinType::LeftSemi,
        };
        let plan = equal_rows((&left.0, left.1), (&right.0, right.1), &types, kind)?;
        Ok(Rows { plan, ..left.0 })
    }

    fn union(&self, set: &SetOperation, types: &[Type], domain: Option<&Domain>) -> Result<Rows> {
        // A chain of unions is one.
        let mut branches = Vec::new();
        flatten(set, &mut branches);
        let mut plan: Option<Rows> = None;
        for query in branches {
            let branch = self.branch(query, types, domain)?;
            plan = Some(match plan {
                None => branch,
                Some(all) => self.united(all, branch)?,
            });
        }
        let rows = plan.ok_or_else(|| unsupported("an empty UNION"))?;
        if set.all { Ok(rows) } else { self.distinct(rows, types) }
    }

    /// One branch in the types of all: first its keys, then its outputs, and nothing else.
    pub(super) fn branch(&self, query: &Query, types: &[Type], domain: Option<&Domain>) -> Result<Rows> {
        let rows = self.query(query, domain)?;
        let own = output_types(query);
        let mut exprs: Vec<Planned> = rows.keys.iter().cloned().map(Planned::Column).collect();
        let mut outputs = Vec::with_capacity(types.len());
        for ((column, from), to) in rows.outputs.iter().zip(&own).zip(types) {
            let typed = typed_column(&rows.plan, column)?;
            let (expr, found) = self.in_type(typed, from, to)?;
            let Some(arrow) = arrow_of(to) else { return Err(unsupported("a row as a value")) };
            let expr = match found == arrow {
                true => expr,
                false => Planned::Cast(Cast::new(Box::new(expr), arrow)),
            };
            let output = self.column("set");
            exprs.push(expr.alias(&output.name));
            outputs.push(output);
        }
        let plan = LogicalPlanBuilder::from(rows.plan).project(exprs)?.build()?;
        Ok(Rows { plan, outputs, keys: rows.keys, order: Vec::new() })
    }

    pub(super) fn united(&self, all: Rows, branch: Rows) -> Result<Rows> {
        let new =
            |columns: &[Column]| -> Vec<Column> { columns.iter().map(|_| self.column("union")).collect() };
        let (keys, outputs) = (new(&all.keys), new(&all.outputs));
        let named = |rows: &Rows| {
            let columns = rows.keys.iter().zip(&keys).chain(rows.outputs.iter().zip(&outputs));
            let exprs = columns.map(|(old, new)| Planned::Column(old.clone()).alias(&new.name));
            LogicalPlanBuilder::from(rows.plan.clone()).project(exprs.collect::<Vec<_>>())?.build()
        };
        let plan = LogicalPlanBuilder::from(named(&all)?).union(named(&branch)?)?.build()?;
        Ok(Rows { plan, outputs, keys, order: Vec::new() })
    }

    /// Rows with the number of each among its equals.
    fn numbered(&self, rows: Rows, types: &[Type]) -> Result<(Rows, Option<Column>)> {
        let number = self.column("copy");
        let mut equal: Vec<Planned> = rows.keys.iter().cloned().map(Planned::Column).collect();
        let outputs = rows.outputs.iter().zip(types);
        equal.extend(outputs.map(|(column, ty)| key(Planned::Column(column.clone()), ty)));
        let row = row_number().partition_by(equal).build()?.alias(&number.name);
        let plan = LogicalPlanBuilder::from(rows.plan.clone()).window([row])?.build()?;
        Ok((Rows { plan, ..rows }, Some(number)))
    }
}

/// The rows of the left side that have a partner on the right, or have none.
fn equal_rows(
    left: (&Rows, Option<Column>),
    right: (&Rows, Option<Column>),
    types: &[Type],
    kind: JoinType,
) -> Result<LogicalPlan> {
    let plain = |columns: &[Column]| columns.iter().cloned().map(Planned::Column).collect::<Vec<_>>();
    let sides = |rows: &Rows, number: &Option<Column>| {
        let mut all = plain(&rows.keys);
        all.extend(rows.outputs.iter().zip(types).map(|(c, ty)| key(Planned::Column(c.clone()), ty)));
        all.extend(number.clone().map(Planned::Column));
        all
    };
    let on = sides(left.0, &left.1).into_iter().zip(sides(right.0, &right.1)).collect();
    let join = Join::try_new(
        Arc::new(left.0.plan.clone()),
        Arc::new(right.0.plan.clone()),
        on,
        None,
        kind,
        JoinConstraint::On,
        NullEquality::NullEqualsNull,
        false,
    )?;
    Ok(LogicalPlan::Join(join))
}

/// The branches of a chain of unions of one kind.
fn flatten<'q>(set: &'q SetOperation, into: &mut Vec<&'q Query>) {
    for query in [&set.left, &set.right] {
        let plain = query.ctes.is_empty()
            && query.order.is_empty()
            && query.limit.is_none()
            && query.offset.is_none();
        match &query.body {
            Body::Set(inner) if plain && inner.kind == SetKind::Union && (inner.all == set.all) => {
                flatten(inner, into);
            }
            _ => into.push(query),
        }
    }
}

/// The types in which the branches meet: they differ at most in scales.
pub(super) fn common(left: &[Type], right: &[Type]) -> Vec<Type> {
    use albireo_semantics::types::Scalar::Numeric;
    let meet = |(a, b): (&Type, &Type)| match (a, b) {
        (Type::Scalar(Numeric { scale: a }), Type::Scalar(Numeric { scale: b })) if a != b => {
            Type::Scalar(Numeric { scale: None })
        }
        _ => a.clone(),
    };
    left.iter().zip(right).map(meet).collect()
}
