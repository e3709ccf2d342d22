//! `count(DISTINCT x)` of texts as a count of groups.
//!
//! A set of texts for each group hashes each row's text, and sets of several threads are merged by one. Groups are found by
//! several threads, and those of encoded texts without hashing rows (`crate::physical`). DataFusion's rule for it does not
//! know aggregates that have other names. One count of all hot rows stays: there, groups take a third longer than a set
//! (20.6 and 15.8 ms for 1,000 texts in 3 million rows; 6.5 and 17.0 if they are frozen). Of one table alone: of joins, keys may mislead ([`super::dependencies`]).

use std::sync::Arc;

use albireo_base::ColumnId;
use arrow::datatypes::DataType;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, AggregateUDF, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::OptimizerConfig;
use datafusion::optimizer::optimizer::{ApplyOrder, OptimizerRule};

use crate::relation::Snapshot;
use crate::scan::provider::SnapshotTable;

/// The rule, for a snapshot.
#[derive(Debug)]
pub(super) struct CountGroups(pub(super) Arc<dyn Snapshot>);

impl OptimizerRule for CountGroups {
    fn name(&self) -> &str {
        "count_groups"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let counted = match &plan {
            LogicalPlan::Aggregate(aggregate) => counted(aggregate, &self.0)?,
            _ => None,
        };
        Ok(counted.map_or(Transformed::no(plan), Transformed::yes))
    }
}

fn counted(aggregate: &Aggregate, snapshot: &Arc<dyn Snapshot>) -> Result<Option<LogicalPlan>> {
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
    if aggregate.group_expr.is_empty() && !is_encoded(&aggregate.input, snapshot) {
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

/// Whether most chunks of the one table below are encoded.
fn is_encoded(plan: &LogicalPlan, snapshot: &Arc<dyn Snapshot>) -> bool {
    let LogicalPlan::TableScan(scan) = plan else {
        return plan.inputs().into_iter().any(|input| is_encoded(input, snapshot));
    };
    let Ok(provider) = source_as_provider(&scan.source) else { return false };
    let table = provider.downcast_ref::<SnapshotTable>();
    let data = table.and_then(|table| snapshot.relation(table.relation.id));
    let column = scan.projection.as_ref().and_then(|columns| columns.first());
    data.zip(column).is_some_and(|(data, column)| data.is_encoded(ColumnId(*column as u16)))
}
