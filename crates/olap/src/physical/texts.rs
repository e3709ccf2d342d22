//! Aggregations by texts over a scan whose chunks are encoded look each text of a dictionary up once instead of each row's.
//!
//! Responsible for: which aggregations these are. Not responsible for: numbers of texts ([`crate::scan::text_ids`]), nor for
//! running them ([`super::text_groups`]). DISTINCT and `count(DISTINCT x)` are aggregations too by then.
//!
//! What it is of is aggregated in part, by partition; DataFusion's aggregation above merges the parts, and spills.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use super::accumulators::Function;
use super::in_scan::scan_of;
use super::ranges;
use super::text_groups::{Key, Keys, TextAggregate};
use crate::pack::{Pack, Part};
use crate::scan::exec::ScanExec;

/// So many rows at least share a text of their chunk, on average.
const ROWS_EACH: usize = 4;

/// The rule.
#[derive(Debug)]
pub(crate) struct AggregateByTexts;

impl PhysicalOptimizerRule for AggregateByTexts {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|node| {
            let by_texts = node.downcast_ref::<AggregateExec>().map(by_texts).transpose()?.flatten();
            Ok(by_texts.map_or(Transformed::no(node), Transformed::yes))
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "aggregate_by_texts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn by_texts(aggregate: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let plain = matches!(aggregate.mode(), AggregateMode::Single | AggregateMode::Partial)
        && aggregate.group_expr().is_single()
        && aggregate.limit_options().is_none()
        && *aggregate.input_order_mode() == InputOrderMode::Linear
        && Function::are_plain(aggregate);
    let Some((scan, mut columns)) = columns_of_scan(aggregate.input()).filter(|_| plain) else {
        return Ok(None);
    };
    let Some(mut keys) = keys(aggregate, scan, &columns)? else { return Ok(None) };
    let texts: Vec<usize> = keys.texts.iter().map(|text| columns[*text]).collect();
    let wanted = inputs(aggregate).into_iter().map(|column| columns[column]).collect();
    let Some((scan, ids)) = scan.with_ids(&texts, &wanted)? else { return Ok(None) };
    for (text, id) in keys.texts.iter_mut().zip(ids) {
        if columns[*text] != id {
            *text = columns.len();
            columns.push(id);
        }
    }
    keys.columns = columns;
    let group_by = aggregate.group_expr();
    let (functions, filters) = (aggregate.aggr_expr().to_vec(), aggregate.filter_expr().to_vec());
    let input_schema = aggregate.input_schema();
    if *aggregate.mode() == AggregateMode::Partial {
        return Ok(Some(Arc::new(TextAggregate::new(aggregate, keys, scan)?)));
    }
    let partial = AggregateExec::try_new(
        AggregateMode::Partial,
        group_by.clone(),
        functions.clone(),
        filters.clone(),
        Arc::clone(aggregate.input()),
        Arc::clone(&input_schema),
    )?;
    let partial = Arc::new(TextAggregate::new(&partial, keys, scan)?);
    let merged = AggregateExec::try_new(
        AggregateMode::Final,
        group_by.as_final(),
        functions,
        filters,
        partial,
        input_schema,
    )?;
    Ok((merged.schema() == aggregate.schema()).then(|| Arc::new(merged) as _))
}

/// The scan below an aggregation, and which of its columns are those that it is given: of what lies between, only a
/// projection that computes nothing.
fn columns_of_scan(plan: &Arc<dyn ExecutionPlan>) -> Option<(&ScanExec, Vec<usize>)> {
    if let Some(scan) = scan_of(plan) {
        return Some((scan, (0..scan.schema().fields().len()).collect()));
    }
    let projection = plan.downcast_ref::<ProjectionExec>()?;
    let columns: Option<Vec<usize>> =
        projection.expr().iter().map(|projected| column(&projected.expr)).collect();
    Some((scan_of(projection.input())?, columns?))
}

fn column(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// What is grouped by: columns of texts that few rows have alone, and perhaps integers in ranges.
fn keys(aggregate: &AggregateExec, scan: &ScanExec, columns: &[usize]) -> Result<Option<Keys>> {
    let schema = aggregate.input().schema();
    let (mut texts, mut order) = (Vec::new(), Vec::new());
    let (mut integers, mut integer_ranges) = (Vec::new(), Vec::new());
    for (expr, _) in aggregate.group_expr().expr() {
        let Some(column) = column(expr) else { return Ok(None) };
        match schema.field(column).data_type() {
            DataType::Utf8View => {
                let known = texts.iter().position(|text: &usize| columns[*text] == columns[column]);
                order.push(Key::Text(known.unwrap_or(texts.len())));
                if known.is_none() {
                    texts.push(column);
                }
            }
            ty if Pack::takes(ty) => {
                let Some(range) = ranges::of(expr, aggregate.input()) else { return Ok(None) };
                order.push(Key::Integer(integers.len()));
                integers.push(expr);
                integer_ranges.push(range);
            }
            _ => return Ok(None),
        }
    }
    if texts.is_empty() {
        return Ok(None);
    }
    let (integers, places) = match integers.is_empty() {
        true => (Vec::new(), 1),
        false => match Part::with_nulls(integers, &integer_ranges) {
            Some((integers, places)) if places <= u32::MAX.into() => (integers, places),
            _ => return Ok(None),
        },
    };
    let scanned: Vec<usize> = texts.iter().map(|text| columns[*text]).collect();
    let is_single = order.len() == 1;
    let keys = Keys { columns: Vec::new(), texts, integers, order };
    Ok(is_worth_it(&scanned, is_single, places, scan).then_some(keys))
}

/// The columns that functions and their filters read.
fn inputs(aggregate: &AggregateExec) -> BTreeSet<usize> {
    let arguments = aggregate.aggr_expr().iter().flat_map(|function| function.expressions());
    let filters = aggregate.filter_expr().iter().flatten().cloned();
    arguments.chain(filters).flat_map(|expr| collect_columns(&expr)).map(|column| column.index()).collect()
}

/// Whether most rows share their texts with others of their chunk, and, of several keys, groups are fewer than rows.
/// Where groups are about as many as rows, DataFusion finds them in one step.
fn is_worth_it(texts: &[usize], is_single: bool, places: u64, scan: &ScanExec) -> bool {
    let Some(counts) = texts.iter().map(|text| shared_texts(scan, *text)).collect::<Option<Vec<_>>>() else {
        return false;
    };
    if is_single {
        return true;
    }
    let groups = counts.into_iter().map(|count| count as u64).fold(places, u64::saturating_mul);
    groups.saturating_mul(2) <= scan.spec().data.row_count()
}

/// The most texts that one chunk shares of a column; `None`: in most chunks too few rows do.
pub(super) fn shared_texts(scan: &ScanExec, text: usize) -> Option<usize> {
    let spec = scan.spec();
    let (mut most, mut shared_slots, mut slots) = (0, 0, 0);
    for i in 0..spec.data.chunk_count() {
        let chunk = spec.data.chunk(i);
        slots += chunk.slots();
        let shared = chunk.encoded(spec.projection[text]).and_then(|column| column.shared());
        if let Some(shared) = shared.filter(|shared| shared * ROWS_EACH <= chunk.slots()) {
            most = most.max(shared);
            shared_slots += chunk.slots();
        }
    }
    (shared_slots * 2 > slots).then_some(most)
}
