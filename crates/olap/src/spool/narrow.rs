//! Spools keep no column that nobody reads.
//!
//! Rows that are read in two places under their own names are whole rows of FROM, most of whose columns no
//! expression names. Columns of lowered plans have names of their own, so a name tells whether it is read.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

use super::{SpoolId, scan, scanned};

/// Spools and the plan that reads them, without such columns.
pub(super) fn narrowed(
    spools: Vec<(SpoolId, LogicalPlan)>,
    plan: LogicalPlan,
) -> Result<(Vec<(SpoolId, LogicalPlan)>, LogicalPlan)> {
    let plans = || spools.iter().map(|(_, plan)| plan).chain([&plan]);
    let (mut named, mut scans) = (HashSet::new(), HashMap::new());
    for plan in plans() {
        look(plan, &mut named, &mut scans)?;
    }
    let mut kept: HashMap<SpoolId, Vec<Column>> = HashMap::new();
    for (id, plan) in &spools {
        let columns = plan.schema().columns();
        if scans.get(id).is_none_or(|scan| scan.columns() != columns) {
            continue;
        }
        let mut read: Vec<Column> =
            columns.iter().filter(|column| named.contains(&column.name)).cloned().collect();
        if read.is_empty() {
            // How many rows there are is read all the same.
            read.extend(columns.first().cloned());
        }
        kept.insert(*id, read);
    }
    if kept.is_empty() {
        return Ok((spools, plan));
    }
    let mut narrow = Vec::with_capacity(spools.len());
    for (id, plan) in spools {
        let plan = with_scans_of(plan, &kept)?;
        narrow.push((
            id,
            match kept.get(&id) {
                Some(columns) => LogicalPlanBuilder::from(plan)
                    .project(columns.iter().cloned().map(Expr::Column))?
                    .build()?,
                None => plan,
            },
        ));
    }
    Ok((narrow, with_scans_of(plan, &kept)?))
}

/// The names of all columns in a plan's expressions, and what its scans of spools give.
fn look(
    plan: &LogicalPlan,
    named: &mut HashSet<String>,
    scans: &mut HashMap<SpoolId, DFSchemaRef>,
) -> Result<()> {
    plan.apply(|node| {
        if let Some(scan) = scanned(node) {
            scans.insert(scan.id, Arc::clone(&scan.schema));
        }
        add_names(node, named)
    })?;
    Ok(())
}

/// Adds the names of all columns in the expressions of one node.
pub(crate) fn add_names(node: &LogicalPlan, names: &mut HashSet<String>) -> Result<TreeNodeRecursion> {
    node.apply_expressions(|expr| {
        expr.apply(|part| {
            if let Expr::Column(column) = part {
                names.insert(column.name.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })
}

/// A plan whose scans give these columns of their spools.
fn with_scans_of(plan: LogicalPlan, kept: &HashMap<SpoolId, Vec<Column>>) -> Result<LogicalPlan> {
    let narrow = plan.transform_up(|node| {
        let Some(whole) = scanned(&node) else { return Ok(Transformed::yes(node.recompute_schema()?)) };
        let Some(columns) = kept.get(&whole.id) else { return Ok(Transformed::no(node)) };
        let fields = columns.iter().map(|column| {
            let (qualifier, field) = whole.schema.qualified_field_from_column(column)?;
            Ok((qualifier.cloned(), Arc::clone(field)))
        });
        let schema = DFSchema::new_with_metadata(fields.collect::<Result<_>>()?, HashMap::new())?;
        Ok(Transformed::yes(scan(whole.id, Arc::new(schema))))
    })?;
    Ok(narrow.data)
}
