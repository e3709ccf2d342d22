//! `count(DISTINCT x)` of texts as a count of groups.
//!
//! A set of texts for each group hashes each row's text, and sets of several threads are merged by one. Groups are found by
//! several threads, and those of encoded texts without hashing rows (`crate::physical`). DataFusion's rule for it does not
//! know aggregates that have other names. Of one table alone: of joins, keys may mislead ([`super::dependencies`]).

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, AggregateUDF, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::OptimizerConfig;
use datafusion::optimizer::optimizer::{ApplyOrder, OptimizerRule};

/// The rule.
#[derive(Debug)]
pub(super) struct CountGroups;

impl OptimizerRule for CountGroups {
    fn name(&self) -> &str {
        "count_groups"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let counted = match &plan {
            LogicalPlan::Aggregate(aggregate) => counted(aggregate)?,
            _ => None,
        };
        Ok(counted.map_or(Transformed::no(plan), Transformed::yes))
    }
}

fn counted(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let has_sets = aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_)));
    let counts: Option<Vec<Count<'_>>> = aggregate.aggr_expr.iter().map(Count::read).collect();
    let Some(counts) = counts.filter(|_| !has_sets && is_of_one_table(&aggregate.input)) else {
        return Ok(None);
    };
    let Some(text) = counts.first().map(|count| count.of) else { return Ok(None) };
    let value = Expr::Column(text.clone());
    let is_text = value.get_type(aggregate.input.schema())? == DataType::Utf8View;
    if !is_text || counts.iter().any(|count| count.of != text) {
        return Ok(None);
    }
    let name = format!("{}#distinct", text.name);
    let mut groups = aggregate.group_expr.clone();
    groups.push(value.alias(&name));
    let distinct = Aggregate::try_new(Arc::clone(&aggregate.input), groups, Vec::new())?;
    let mut keys = distinct.schema.columns();
    keys.pop();
    let keys: Vec<Expr> = keys.into_iter().map(Expr::Column).collect();
    let value = || Expr::Column(Column::new_unqualified(&name));
    let counts = counts.iter().map(|count| count.function.call(vec![value()]).alias(count.name)).collect();
    let distinct = Arc::new(LogicalPlan::Aggregate(distinct));
    Ok(Some(LogicalPlan::Aggregate(Aggregate::try_new(distinct, keys, counts)?)))
}

/// A count of the distinct values of a column.
struct Count<'a> {
    function: &'a Arc<AggregateUDF>,
    of: &'a Column,
    name: &'a str,
}

impl<'a> Count<'a> {
    fn read(expr: &'a Expr) -> Option<Self> {
        let Expr::Alias(alias) = expr else { return None };
        let Expr::AggregateFunction(AggregateFunction { func, params }) = &*alias.expr else { return None };
        let [Expr::Column(of)] = params.args.as_slice() else { return None };
        let plain = params.filter.is_none() && params.order_by.is_empty() && params.null_treatment.is_none();
        let counts = func.name() == "count" && params.distinct && plain && alias.relation.is_none();
        counts.then_some(Self { function: func, of, name: &alias.name })
    }
}

fn is_of_one_table(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            plan.inputs().into_iter().all(is_of_one_table)
        }
        _ => false,
    }
}
