//! Plan nodes of ours: what SQL has and DataFusion has not.
//!
//! Responsible for: rows made of arguments ([`expand`]), queries that are repeated over their own rows
//! ([`recursion`]), and making execution plans of both; sides of outer joins ([`nullable`]). Not responsible for: scans ([`crate::scan`]), rules over
//! plans ([`crate::physical`]).

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

pub(crate) mod expand;
pub(crate) mod nullable;
pub(crate) mod recursion;

use crate::spool;
use expand::{Expand, ExpandExec};
use recursion::{Recursion, RecursionExec, Working, WorkingExec};

/// DataFusion's planner, which knows our nodes.
#[derive(Debug)]
pub(crate) struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![
            Arc::new(OurNodes),
            Arc::new(spool::Planner),
        ]);
        planner.create_physical_plan(plan, session).await
    }
}

struct OurNodes;

#[async_trait]
impl ExtensionPlanner for OurNodes {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical: &[&LogicalPlan],
        physical: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let any = node.as_any();
        if let (Some(node), [logical], [input]) = (any.downcast_ref::<Expand>(), logical, physical) {
            let mut args = Vec::with_capacity(node.args.len());
            for arg in &node.args {
                args.push(planner.create_physical_expr(arg, logical.schema(), session, context)?);
            }
            let rows = session.config().batch_size();
            return Ok(Some(Arc::new(ExpandExec::new(node, args, Arc::clone(input), rows))));
        }
        if let Some(node) = any.downcast_ref::<Working>() {
            return Ok(Some(Arc::new(WorkingExec::new(node))));
        }
        if let (Some(node), [begins, repeats]) = (any.downcast_ref::<Recursion>(), physical) {
            return Ok(Some(Arc::new(RecursionExec::new(node, begins, repeats)?)));
        }
        Ok(None)
    }
}
