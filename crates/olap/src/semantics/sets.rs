//! UNION, INTERSECT, EXCEPT and recursive queries: one type for each column, and the ALL forms by
//! their number of copies.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use arrow::datatypes::DataType;
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, NullEquality, Result};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::logical_plan::{RecursiveQuery, Union};
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, Join, JoinType, LogicalPlan, LogicalPlanBuilder,
};

use super::unify::{self, cast};
use crate::errors::external;
use crate::functions::rowwise::{is_text, type_name};

/// The types of a plan's columns; a column that is a bare literal has none yet.
fn column_types(plan: &LogicalPlan) -> Vec<DataType> {
    let literal = |i: usize| match plan {
        LogicalPlan::Projection(projection) => {
            projection.expr.get(i).is_some_and(|e| unify::unknown(e).is_some())
        }
        _ => false,
    };
    let fields = plan.schema().fields().iter().enumerate();
    fields.map(|(i, f)| if literal(i) { DataType::Null } else { f.data_type().clone() }).collect()
}

/// The common types of the columns of all plans.
fn common_types<'p>(plans: impl IntoIterator<Item = &'p LogicalPlan>, what: &str) -> Result<Vec<DataType>> {
    let columns: Vec<Vec<DataType>> = plans.into_iter().map(column_types).collect();
    let width = columns.first().map_or(0, Vec::len);
    let mut types = Vec::with_capacity(width);
    for i in 0..width {
        let of_column: Vec<DataType> = columns.iter().filter_map(|types| types.get(i).cloned()).collect();
        types.push(unify::common_of(&of_column, what)?.unwrap_or(DataType::Utf8View));
    }
    Ok(types)
}

/// A plan with columns of these types, under the names of `named`'s columns.
fn in_types(plan: LogicalPlan, types: &[DataType], named: Option<&DFSchema>) -> Result<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    let mut exprs = Vec::with_capacity(types.len());
    let mut changed = false;
    for (i, (target, (qualifier, field))) in types.iter().zip(schema.iter()).enumerate() {
        let literal = match &plan {
            LogicalPlan::Projection(p) => p.expr.get(i).filter(|e| unify::unknown(e).is_some()).cloned(),
            _ => None,
        };
        let column = Expr::Column(Column::from((qualifier, field)));
        let same = field.data_type() == target || is_text(field.data_type()) && is_text(target);
        let expr = match literal {
            Some(literal) if !is_text(target) => {
                changed = true;
                unify::converted(literal.unalias_nested().data, &DataType::Null, target)?
            }
            _ if same => column,
            _ => {
                changed = true;
                cast(column, target)
            }
        };
        exprs.push(match named {
            Some(named) => {
                changed |= qualifier.is_some() || named.field(i).name() != field.name();
                expr.alias(named.field(i).name())
            }
            None => match &expr {
                Expr::Column(_) => expr,
                _ => expr.alias_qualified(qualifier.cloned(), field.name()),
            },
        });
    }
    if !changed {
        return Ok(plan);
    }
    LogicalPlanBuilder::from(plan).project(exprs)?.build()
}

/// UNION with its columns in their common types.
pub(super) fn union(union: Union) -> Result<LogicalPlan> {
    let types = common_types(union.inputs.iter().map(Arc::as_ref), "UNION")?;
    let mut inputs = Vec::with_capacity(union.inputs.len());
    for input in union.inputs {
        inputs.push(Arc::new(in_types(Arc::unwrap_or_clone(input), &types, Some(&union.schema))?));
    }
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}

/// Whether a join is how DataFusion plans INTERSECT or EXCEPT: nothing else compares so.
pub(super) fn is_set_operation(join: &Join) -> bool {
    join.null_equality == NullEquality::NullEqualsNull
        && matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.filter.is_none()
        && join.on.len() == join.left.schema().fields().len()
}

/// INTERSECT and EXCEPT, and their ALL forms, in which the n-th copy of a row on one side meets the
/// n-th on the other.
pub(super) fn intersect_or_except(join: Join) -> Result<LogicalPlan> {
    let what = if join.join_type == JoinType::LeftSemi { "INTERSECT" } else { "EXCEPT" };
    let (left, is_all) = match Arc::unwrap_or_clone(join.left) {
        LogicalPlan::Distinct(Distinct::All(input)) => (Arc::unwrap_or_clone(input), false),
        other => (other, true),
    };
    let right = Arc::unwrap_or_clone(join.right);
    let types = common_types([&left, &right], what)?;
    let (left, right) = (in_types(left, &types, None)?, in_types(right, &types, None)?);
    let original: Vec<Expr> = columns(&left).into_iter().map(Expr::Column).collect();
    let (left, right) = match is_all {
        false => (LogicalPlanBuilder::from(left).distinct()?.build()?, right),
        true => (with_copies(left, "__copy_l")?, with_copies(right, "__copy_r")?),
    };
    let keys = (columns(&left), columns(&right));
    let joined = LogicalPlanBuilder::from(left).join_detailed(
        right,
        join.join_type,
        keys,
        None,
        NullEquality::NullEqualsNull,
    )?;
    if is_all { joined.project(original)?.build() } else { joined.build() }
}

fn columns(plan: &LogicalPlan) -> Vec<Column> {
    plan.schema().iter().map(Column::from).collect()
}

/// The plan with a last column that numbers equal rows.
fn with_copies(plan: LogicalPlan, name: &str) -> Result<LogicalPlan> {
    let mut exprs: Vec<Expr> = columns(&plan).into_iter().map(Expr::Column).collect();
    let number = row_number().partition_by(exprs.clone()).build()?;
    exprs.push(Expr::Column(Column::from_name(number.schema_name().to_string())).alias(name));
    LogicalPlanBuilder::from(plan).window(vec![number])?.project(exprs)?.build()
}

/// The recursive half with the working table typed as the first half now is.
pub(super) fn with_work_table(plan: LogicalPlan, name: &str, schema: &DFSchema) -> Result<LogicalPlan> {
    let replaced = plan.transform_down_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
        let is_work_table = scan.table_name.table() == name
            && source_as_provider(&scan.source).is_ok_and(|provider| {
                let provider: &dyn std::any::Any = provider.as_ref();
                provider.is::<CteWorkTable>()
            });
        if !is_work_table {
            return Ok(Transformed::no(node));
        }
        let table = CteWorkTable::new(name, Arc::new(schema.as_arrow().clone()));
        let source = provider_as_source(Arc::new(table));
        let scan = LogicalPlanBuilder::scan(scan.table_name.clone(), source, None)?.build()?;
        Ok(Transformed::yes(scan))
    })?;
    Ok(replaced.data)
}

/// A recursive query of two halves whose types are settled.
///
/// # Errors
/// 42804: the recursive half would widen a column.
pub(super) fn recursive(query: RecursiveQuery) -> Result<LogicalPlan> {
    let RecursiveQuery { name, static_term, recursive_term, is_distinct, .. } = query;
    let halves = [static_term.as_ref(), recursive_term.as_ref()];
    let types = common_types(halves, "UNION")?;
    for (i, (field, ty)) in static_term.schema().fields().iter().zip(&types).enumerate() {
        let (first, overall) = (type_name(field.data_type()), type_name(ty));
        if first != overall && !is_text(ty) {
            let message = format!(
                "recursive query \"{name}\" column {} has type {first} in non-recursive term but type {overall} overall",
                i + 1
            );
            return Err(external(
                SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                    .with_hint("Cast the output of the non-recursive term to the correct type."),
            ));
        }
    }
    let wanted: Vec<DataType> =
        static_term.schema().fields().iter().map(|field| field.data_type().clone()).collect();
    let recursive = in_types(Arc::unwrap_or_clone(recursive_term), &wanted, None)?;
    Ok(LogicalPlan::RecursiveQuery(RecursiveQuery::try_new(
        name,
        static_term,
        Arc::new(recursive),
        is_distinct,
    )?))
}
