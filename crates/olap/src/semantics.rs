//! PostgreSQL's typing of expressions, put over DataFusion's.
//!
//! Responsible for: integer literals are INTEGER when they fit; numeric operators are our checked
//! ones ([`crate::functions::arithmetic`]); casts to integers round. Not responsible for: names
//! and parameter types (`sql` has bound them before).
//! **Invariant:** an expression's name never changes here, only its type.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::resolve_grouping_function::ResolveGroupingFunction;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::utils::NamePreserver;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::functions::arithmetic::{self, Operation};
use crate::functions::round;

/// The analyzer's rules: ours before DataFusion's coercion.
pub(crate) fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    vec![Arc::new(ResolveGroupingFunction::new()), Arc::new(PostgresTypes), Arc::new(TypeCoercion::new())]
}

/// Plans numeric operators as our functions while the statement is read, so that their types are
/// right from the start.
#[derive(Debug)]
pub(crate) struct NumericOperators;

impl ExprPlanner for NumericOperators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let operation = match expr.op {
            BinaryOperator::Plus => Operation::Add,
            BinaryOperator::Minus => Operation::Subtract,
            BinaryOperator::Multiply => Operation::Multiply,
            BinaryOperator::Divide => Operation::Divide,
            BinaryOperator::Modulo => Operation::Remainder,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        if !are_numeric(&expr.left, &expr.right, schema) {
            return Ok(PlannerResult::Original(expr));
        }
        let (left, right) = (narrow(expr.left), narrow(expr.right));
        Ok(PlannerResult::Planned(arithmetic::expression(operation, left, right)))
    }
}

/// Whether both are numbers, or one is and the other is the bare NULL.
fn are_numeric(left: &Expr, right: &Expr, schema: &DFSchema) -> bool {
    if is_arithmetic(left) && is_arithmetic(right) {
        return true;
    }
    let ty = |expr: &Expr| match is_arithmetic(expr) {
        // Any numeric type will do; finding the true one costs a walk through the expression.
        true => Ok(DataType::Int32),
        false => expr.get_type(schema),
    };
    let (Ok(left), Ok(right)) = (ty(left), ty(right)) else { return false };
    match (arithmetic::is_numeric(&left), arithmetic::is_numeric(&right)) {
        (true, true) => true,
        (true, false) => right == DataType::Null,
        (false, true) => left == DataType::Null,
        (false, false) => false,
    }
}

fn is_arithmetic(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(f) if arithmetic::is_arithmetic(&f.func))
}

/// DataFusion reads every integer as 64-bit; PostgreSQL as INTEGER when it fits.
fn narrow(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(v)), metadata) => match i32::try_from(v) {
            Ok(v) => Expr::Literal(ScalarValue::Int32(Some(v)), metadata),
            Err(_) => Expr::Literal(ScalarValue::Int64(Some(v)), metadata),
        },
        Expr::Literal(ScalarValue::UInt64(Some(v)), metadata) => {
            Expr::Literal(ScalarValue::Decimal128(Some(i128::from(v)), 20, 0), metadata)
        }
        other => other,
    }
}

/// Types whole plans.
#[derive(Debug)]
struct PostgresTypes;

impl AnalyzerRule for PostgresTypes {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        // The two halves of a recursive query agree on types before we come; leave them.
        if plan.exists(|p| Ok(matches!(p, LogicalPlan::RecursiveQuery(_))))? {
            return Ok(plan);
        }
        retype(plan, &mut Vec::new())
    }

    fn name(&self) -> &str {
        "postgres_types"
    }
}

/// Retypes a plan bottom-up; `outer` are the schemas of the enclosing queries, innermost last.
fn retype(plan: LogicalPlan, outer: &mut Vec<DFSchema>) -> Result<LogicalPlan> {
    let plan = plan.map_children(|child| retype(child, outer).map(Transformed::yes))?.data;
    match plan {
        LogicalPlan::Values(values) => {
            let rows = values.values.into_iter();
            LogicalPlanBuilder::values(rows.map(|r| r.into_iter().map(narrow).collect()).collect())?.build()
        }
        LogicalPlan::Limit(_) => plan.recompute_schema(),
        plan => {
            let schema = merge_schema(&plan.inputs());
            let names = NamePreserver::new(&plan);
            let plan = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let expr = retype_expr(expr, &schema, outer)?;
                Ok(expr.update_data(|e| name.restore(e)))
            })?;
            plan.data.recompute_schema()
        }
    }
}

fn retype_expr(expr: Expr, schema: &DFSchema, outer: &mut Vec<DFSchema>) -> Result<Transformed<Expr>> {
    expr.transform_down_up(
        // count(*) is count(1) with a 64-bit 1, which DataFusion looks for: do not descend.
        |e| match e {
            Expr::AggregateFunction(ref f) if f.func.name() == "count" && is_one(&f.params.args) => {
                Ok(Transformed::new(e, false, TreeNodeRecursion::Jump))
            }
            Expr::WindowFunction(ref w) if w.fun.name() == "count" && is_one(&w.params.args) => {
                Ok(Transformed::no(e))
            }
            other => Ok(Transformed::no(other)),
        },
        |e| retype_node(e, schema, outer),
    )
}

fn is_one(args: &[Expr]) -> bool {
    matches!(args, [Expr::Literal(ScalarValue::Int64(Some(1)), _)])
}

fn retype_node(expr: Expr, schema: &DFSchema, outer: &mut Vec<DFSchema>) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::Literal(ScalarValue::Int64(Some(_)) | ScalarValue::UInt64(Some(_)), _) => {
            Transformed::yes(narrow(expr))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            match operation(op).filter(|_| are_numeric(&left, &right, schema)) {
                Some(operation) => Transformed::yes(arithmetic::expression(operation, *left, *right)),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            }
        }
        Expr::Negative(inner) if inner.get_type(schema).is_ok_and(|t| t.is_signed_integer()) => {
            let zero = Expr::Literal(ScalarValue::Int16(Some(0)), None);
            Transformed::yes(arithmetic::expression(Operation::Subtract, zero, *inner))
        }
        Expr::Cast(Cast { expr: inner, field })
            if field.data_type().is_signed_integer()
                && inner.get_type(schema).is_ok_and(|t| round::applies_to(&t)) =>
        {
            let rounded = round::function().call(vec![*inner]);
            Transformed::yes(Expr::Cast(Cast { expr: Box::new(rounded), field }))
        }
        Expr::OuterReferenceColumn(field, column) => {
            let field = outer_field(&column, outer).unwrap_or(field);
            Transformed::yes(Expr::OuterReferenceColumn(field, column))
        }
        Expr::ScalarSubquery(subquery) => {
            Transformed::yes(Expr::ScalarSubquery(retype_subquery(subquery, schema, outer)?))
        }
        Expr::Exists(Exists { subquery, negated }) => {
            let subquery = retype_subquery(subquery, schema, outer)?;
            Transformed::yes(Expr::Exists(Exists { subquery, negated }))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let subquery = retype_subquery(subquery, schema, outer)?;
            Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated }))
        }
        Expr::SetComparison(mut comparison) => {
            comparison.subquery = retype_subquery(comparison.subquery, schema, outer)?;
            Transformed::yes(Expr::SetComparison(comparison))
        }
        other => Transformed::no(other),
    })
}

fn operation(op: Operator) -> Option<Operation> {
    Some(match op {
        Operator::Plus => Operation::Add,
        Operator::Minus => Operation::Subtract,
        Operator::Multiply => Operation::Multiply,
        Operator::Divide => Operation::Divide,
        Operator::Modulo => Operation::Remainder,
        _ => return None,
    })
}

/// The type an outer column has after its own query was retyped.
fn outer_field(column: &Column, outer: &[DFSchema]) -> Option<arrow::datatypes::FieldRef> {
    outer.iter().rev().find_map(|schema| {
        let (_, field) = schema.qualified_field_from_column(column).ok()?;
        Some(Arc::clone(field))
    })
}

fn retype_subquery(subquery: Subquery, schema: &DFSchema, outer: &mut Vec<DFSchema>) -> Result<Subquery> {
    outer.push(schema.clone());
    let plan = retype(subquery.subquery.as_ref().clone(), outer);
    let outer_ref_columns = subquery
        .outer_ref_columns
        .into_iter()
        .map(|expr| match expr {
            Expr::OuterReferenceColumn(field, column) => {
                let field = outer_field(&column, outer).unwrap_or(field);
                Expr::OuterReferenceColumn(field, column)
            }
            other => other,
        })
        .collect();
    outer.pop();
    Ok(Subquery { subquery: Arc::new(plan?), outer_ref_columns, spans: subquery.spans })
}
