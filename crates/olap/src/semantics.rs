//! PostgreSQL's typing of expressions, put over DataFusion's.
//!
//! Responsible for: integer literals are INTEGER when they fit, and quoted ones take their
//! neighbours' type (`unify`); operators (`operators`), casts and calls (`calls`) and set
//! operations (`sets`) are PostgreSQL's. Not responsible for: names and parameter types (`sql` has
//! bound them before).
//! **Invariant:** an expression's name never changes here, only its type.

mod calls;
mod dependencies;
mod operators;
mod sets;
pub(crate) mod unify;

use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{
    AggregateFunction, Between, Exists, InList, InSubquery, WindowFunction,
};
use datafusion::logical_expr::logical_plan::RecursiveQuery;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Case, Cast, Expr, ExprSchemable, Like, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
};
use datafusion::optimizer::analyzer::resolve_grouping_function::ResolveGroupingFunction;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::utils::NamePreserver;
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::errors::external;
use crate::functions::arithmetic::{self, Operation};
use crate::functions::rowwise::type_name;
use crate::functions::{intervals, temporal};
pub(crate) use calls::TypeNames;
pub(crate) use dependencies::without_misleading_keys;
use operators::{Planned, settle};

/// The analyzer's rules: ours before DataFusion's coercion.
pub(crate) fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    vec![Arc::new(ResolveGroupingFunction::new()), Arc::new(PostgresTypes), Arc::new(TypeCoercion::new())]
}

/// Makes a lowered plan, whose types are settled, one that DataFusion can optimize.
pub(crate) fn analyze_lowered(plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
    let rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> =
        vec![Arc::new(ResolveGroupingFunction::new()), Arc::new(TypeCoercion::new())];
    let plan = Analyzer::with_rules(rules).execute_and_check(plan, options, |_, _| {})?;
    without_misleading_keys(plan)
}

/// Plans numeric operators as our functions while the statement is read, so that their types are
/// right from the start.
#[derive(Debug)]
pub(crate) struct NumericOperators;

impl ExprPlanner for NumericOperators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let op = match expr.op {
            BinaryOperator::Plus => Operator::Plus,
            BinaryOperator::Minus => Operator::Minus,
            BinaryOperator::Multiply => Operator::Multiply,
            BinaryOperator::Divide => Operator::Divide,
            BinaryOperator::Modulo => Operator::Modulo,
            BinaryOperator::Eq => Operator::Eq,
            BinaryOperator::NotEq => Operator::NotEq,
            BinaryOperator::Lt => Operator::Lt,
            BinaryOperator::LtEq => Operator::LtEq,
            BinaryOperator::Gt => Operator::Gt,
            BinaryOperator::GtEq => Operator::GtEq,
            BinaryOperator::StringConcat => Operator::StringConcat,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        Ok(match settle(expr.left, op, expr.right, schema)? {
            Planned::Instead(planned) => PlannerResult::Planned(planned),
            Planned::Plain(left, right) => {
                PlannerResult::Original(RawBinaryExpr { op: expr.op, left, right })
            }
        })
    }

    fn plan_extract(&self, mut args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        match (args.pop(), args.pop()) {
            (Some(argument), Some(Expr::Literal(field, _))) if args.is_empty() => {
                let field = field.try_as_str().flatten().unwrap_or_default().to_owned();
                Ok(PlannerResult::Planned(temporal::extract(&field, argument, true, None)?))
            }
            _ => Err(external(SqlError::unsupported("extract of a computed field"))),
        }
    }
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
        retype(plan, &mut Vec::new())
    }

    fn name(&self) -> &str {
        "postgres_types"
    }
}

/// Retypes a plan bottom-up; `outer` are the schemas of the enclosing queries, innermost last.
fn retype(plan: LogicalPlan, outer: &mut Vec<DFSchema>) -> Result<LogicalPlan> {
    if let LogicalPlan::RecursiveQuery(query) = plan {
        let first = retype(Arc::unwrap_or_clone(query.static_term), outer)?;
        let second = Arc::unwrap_or_clone(query.recursive_term);
        let second = retype(sets::with_work_table(second, &query.name, first.schema())?, outer)?;
        return sets::recursive(RecursiveQuery {
            static_term: Arc::new(first),
            recursive_term: Arc::new(second),
            ..query
        });
    }
    let plan = plan.map_children(|child| retype(child, outer).map(Transformed::yes))?.data;
    match plan {
        LogicalPlan::Values(values) => {
            let rows = retype_values(values.values, outer);
            LogicalPlanBuilder::values(rows?)?.build()
        }
        LogicalPlan::Limit(_) => plan.recompute_schema(),
        LogicalPlan::Union(union) => sets::union(union),
        LogicalPlan::Join(join) if sets::is_set_operation(&join) => sets::intersect_or_except(join),
        plan => {
            let schema = merge_schema(&plan.inputs());
            let names = NamePreserver::new(&plan);
            let plan = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let expr = retype_expr(expr, &schema, outer)?;
                Ok(expr.update_data(|e| name.restore(e)))
            })?;
            signed(by_length(plan.data.recompute_schema()?, &schema)?)
        }
    }
}

/// Sorts intervals by their length.
fn by_length(plan: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    let LogicalPlan::Sort(mut sort) = plan else { return Ok(plan) };
    for key in &mut sort.expr {
        if matches!(key.expr.get_type(schema)?, DataType::Interval(_) | DataType::Duration(_)) {
            key.expr = intervals::order(key.expr.clone());
        }
    }
    Ok(LogicalPlan::Sort(sort))
}

/// The rows of VALUES. Their NULLs were typed when integers still had 64 bits.
fn retype_values(rows: Vec<Vec<Expr>>, outer: &mut Vec<DFSchema>) -> Result<Vec<Vec<Expr>>> {
    let schema = DFSchema::empty();
    let is_null = |expr: &Expr| match expr {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(Cast { expr, field }) => {
            *field.data_type() == DataType::Int64 && matches!(**expr, Expr::Literal(ScalarValue::Null, _))
        }
        _ => false,
    };
    let width = rows.first().map_or(0, Vec::len);
    let typed: Vec<bool> =
        (0..width).map(|i| rows.iter().any(|row| row.get(i).is_some_and(|e| !is_null(e)))).collect();
    let mut retyped = Vec::with_capacity(rows.len());
    for row in rows {
        let mut exprs = Vec::with_capacity(width);
        for (expr, typed) in row.into_iter().zip(&typed) {
            exprs.push(match *typed && is_null(&expr) {
                true => Expr::Literal(ScalarValue::Null, None),
                false => retype_expr(expr, &schema, outer)?.data,
            });
        }
        retyped.push(exprs);
    }
    Ok(retyped)
}

/// Window functions count in unsigned integers, which SQL does not have: `ntile` gives INTEGER, the
/// others BIGINT.
fn signed(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Window(window) = &plan else { return Ok(plan) };
    if window.schema.fields().iter().all(|field| *field.data_type() != DataType::UInt64) {
        return Ok(plan);
    }
    let before = window.input.schema().fields().len();
    let is_ntile = |i: usize| {
        let mut expr = i.checked_sub(before).and_then(|i| window.window_expr.get(i));
        while let Some(Expr::Alias(alias)) = expr {
            expr = Some(&alias.expr);
        }
        matches!(expr, Some(Expr::WindowFunction(function)) if function.fun.name() == "ntile")
    };
    let columns = window.schema.iter().enumerate().map(|(i, (qualifier, field))| {
        let column = Expr::Column(Column::from((qualifier, field)));
        match field.data_type() {
            DataType::UInt64 => {
                let ty = if is_ntile(i) { DataType::Int32 } else { DataType::Int64 };
                unify::cast(column, &ty).alias_qualified(qualifier.cloned(), field.name())
            }
            _ => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
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
        Expr::BinaryExpr(binary) => Transformed::yes(operators::binary(binary, schema)?),
        // Signs before a number belong to it: -(-2147483648) is one that needs 64 bits.
        Expr::Negative(inner) if matches!(*inner, Expr::Literal(ScalarValue::Int32(Some(i32::MIN)), _)) => {
            Transformed::yes(Expr::Literal(ScalarValue::Int64(Some(-i64::from(i32::MIN))), None))
        }
        Expr::Negative(inner) if inner.get_type(schema).is_ok_and(|t| t.is_signed_integer()) => {
            let zero = Expr::Literal(ScalarValue::Int16(Some(0)), None);
            Transformed::yes(arithmetic::expression(Operation::Subtract, zero, *inner))
        }
        Expr::Cast(Cast { expr, field }) => Transformed::yes(calls::settle_cast(*expr, field, schema)?),
        Expr::ScalarFunction(call) => Transformed::yes(calls::settle_call(call, schema)?),
        Expr::Case(case) => Transformed::yes(Expr::Case(retype_case(case, schema)?)),
        Expr::InList(list) => Transformed::yes(Expr::InList(retype_in_list(list, schema)?)),
        Expr::Between(Between { expr, negated, low, high }) => {
            let ty = expr.get_type(schema)?;
            let bound = |bound: Expr| {
                let bound = unify::known(bound, &ty)?;
                Ok::<_, datafusion::common::DataFusionError>(match ty {
                    DataType::Date32 => operators::as_day(bound),
                    _ => bound,
                })
            };
            let (low, high) = (Box::new(bound(*low)?), Box::new(bound(*high)?));
            Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
        }
        Expr::Like(like) => Transformed::yes(Expr::Like(retype_like(like, schema))),
        Expr::AggregateFunction(ref aggregate) => {
            check_aggregate(aggregate, schema)?;
            Transformed::no(expr)
        }
        Expr::WindowFunction(ref window) => {
            check_window(window)?;
            Transformed::no(expr)
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

fn retype_case(case: Case, schema: &DFSchema) -> Result<Case> {
    let Case { expr, when_then_expr, else_expr } = case;
    let (mut conditions, mut results) = (Vec::new(), Vec::new());
    for (condition, result) in when_then_expr {
        conditions.push(*condition);
        results.push(*result);
    }
    let has_else = else_expr.is_some();
    // PostgreSQL looks at ELSE first.
    results.splice(0..0, else_expr.map(|e| *e));
    let mut results = unify::unify(results, schema, "CASE")?;
    let else_expr = has_else.then(|| Box::new(results.remove(0)));
    let (expr, conditions) = match expr {
        Some(operand) => {
            conditions.insert(0, *operand);
            let mut all = unify::unify(conditions, schema, "CASE")?;
            let conditions = all.split_off(1);
            (all.pop().map(Box::new), conditions)
        }
        None => {
            let known = conditions.into_iter().map(|c| condition(c, schema));
            (None, known.collect::<Result<_>>()?)
        }
    };
    let pairs = conditions.into_iter().zip(results);
    let when_then_expr = pairs.map(|(condition, result)| (Box::new(condition), Box::new(result))).collect();
    Ok(Case { expr, when_then_expr, else_expr })
}

fn retype_in_list(in_list: InList, schema: &DFSchema) -> Result<InList> {
    let InList { expr, list, negated } = in_list;
    let list: Vec<Expr> = match unify::char_length(&expr, schema) {
        Some(_) => list.into_iter().map(unify::as_char).collect(),
        None => list,
    };
    let mut all = vec![*expr];
    all.extend(list);
    let mut all = unify::unify(all, schema, "IN")?;
    let list = all.split_off(1);
    Ok(InList { expr: Box::new(all.remove(0)), list, negated })
}

/// LIKE of a CHAR sees its trailing blanks; a pattern that ends in `%` does not mind them.
fn retype_like(like: Like, schema: &DFSchema) -> Like {
    let open = unify::unknown(&like.pattern).is_some_and(|pattern| pattern.ends_with('%'));
    match unify::char_length(&like.expr, schema) {
        Some(length) if !open => {
            let length = Expr::Literal(ScalarValue::Int64(i64::try_from(length).ok()), None);
            let padded = datafusion::functions::unicode::rpad().call(vec![*like.expr, length]);
            Like { expr: Box::new(padded), ..like }
        }
        _ => like,
    }
}

/// A condition of CASE.
fn condition(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let expr = unify::known(expr, &DataType::Boolean)?;
    match expr.get_type(schema)? {
        DataType::Boolean | DataType::Null => Ok(expr),
        other => {
            let message =
                format!("argument of CASE/WHEN must be type boolean, not type {}", type_name(&other));
            Err(external(SqlError::new(SqlState::DATATYPE_MISMATCH, message)))
        }
    }
}

fn check_aggregate(aggregate: &AggregateFunction, schema: &DFSchema) -> Result<()> {
    let name = aggregate.func.name();
    match aggregate.params.args.as_slice() {
        [] if name == "count" => {
            let message = "count(*) must be used to call a parameterless aggregate function";
            Err(external(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)))
        }
        [arg] if matches!(name, "min" | "max") && arg.get_type(schema)? == DataType::Boolean => {
            let message = format!("function {name}(boolean) does not exist");
            Err(external(
                SqlError::new(SqlState::UNDEFINED_FUNCTION, message).with_hint("Use bool_and or bool_or."),
            ))
        }
        [arg] if matches!(name, "min" | "max") && matches!(arg.get_type(schema)?, DataType::Interval(_)) => {
            Err(external(SqlError::unsupported(format!("{name} of intervals"))))
        }
        _ => Ok(()),
    }
}

fn check_window(window: &WindowFunction) -> Result<()> {
    match window.params.distinct {
        true => Err(external(SqlError::unsupported("DISTINCT for window functions"))),
        false => Ok(()),
    }
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
