//! Queries in expressions that depend on no row: computed once, before the plan of the statement.
//!
//! Responsible for: which queries are computed so, and their plans; NOT IN such queries. Their values come into the statement's
//! plan as parameters behind its own, so that comparisons with them are comparisons with literals by the
//! time that operators are chosen: scans filter by them and skip chunks. Not responsible for: running them
//! ([`crate::run`]).

use std::sync::Arc;

use albireo_semantics::expr::Expr;
use albireo_semantics::query::tree::Query;
use albireo_semantics::types::Scalar;
use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{Column, JoinType, Result};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr as Planned, ExprSchemable as _, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use super::free::free_columns;
use super::query::output_types;
use super::select::Stage;
use super::subquery::join;
use super::{Lowering, Rows, Typed, filter, type_of};
use crate::errors::{external, internal};
use crate::spool::{SpoolId, with_spools};

impl Lowering<'_> {
    /// The value of a query that depends on no row; `None` if it depends on one, or reads a query of WITH,
    /// which is computed with the statement. `one`: it has one row or none, whatever the data.
    pub(super) fn value_once(&self, query: &Query, one: bool) -> Result<Option<Typed>> {
        if !is_independent(query) {
            return Ok(None);
        }
        let before = self.spools.borrow().len();
        let rows = self.query(query, None)?;
        let spools = self.spools.borrow_mut().split_off(before);
        let Some(output) = rows.outputs.first().cloned() else {
            return Err(external(internal("a query has a column")));
        };
        if one {
            let mut values = self.computed_once(spools, rows.plan, &[output])?;
            return Ok(values.pop());
        }
        let (rows, value, count) = self.first_and_count(rows, &output)?;
        let ty = type_of(&rows.plan, &value)?;
        match self.computed_once(spools, rows.plan, &[value, count])?.as_slice() {
            [(value, _), (count, _)] => Ok(Some((super::checks::single(value.clone(), count.clone()), ty))),
            _ => Err(external(internal("two columns have two values"))),
        }
    }

    /// Of the values of a query that depends on no row: how many there are, and how many are not NULL. It reads
    /// spools behind the first `before`.
    pub(super) fn counts_once(
        &self,
        before: usize,
        rows: &Rows,
        value: &Planned,
    ) -> Result<(Planned, Planned)> {
        let (count, known) = (self.column("rows"), self.column("known"));
        let aggregates = [
            count_udaf().call(vec![lit(1_i64)]).alias(&count.name),
            count_udaf().call(vec![value.clone()]).alias(&known.name),
        ];
        let plan = LogicalPlanBuilder::from(rows.plan.clone())
            .aggregate(Vec::<Planned>::new(), aggregates)?
            .build()?;
        let spools = self.spools.borrow()[before..].to_vec();
        match self.computed_once(spools, plan, &[count, known])?.as_slice() {
            [(count, _), (known, _)] => Ok((count.clone(), known.clone())),
            _ => Err(external(internal("two columns have two values"))),
        }
    }

    /// Keeps the rows whose value is none of a query's, if that depends on no row. It is so of all rows where
    /// the query has none, else of no row whose value is NULL, and of none at all where the query has a NULL.
    pub(super) fn anti_join(
        &self,
        stage: &mut Stage,
        query: &Query,
        operand: &Expr,
        conversion: Option<Scalar>,
    ) -> Result<bool> {
        if !is_independent(query) {
            return Ok(false);
        }
        self.attach_queries(stage, [operand])?;
        let before = self.spools.borrow().len();
        let mut joined = self.joined(stage, query, true)?;
        let types = output_types(query);
        let (left, right) = self.operand_pair(&stage.level, operand, &joined.rows, 0, &types, conversion)?;
        let may_be_null = |expr: &Planned, plan: &LogicalPlan| expr.nullable(plan.schema());
        if may_be_null(&left, &stage.plan)? || may_be_null(&right, &joined.rows.plan)? {
            let (count, known) = self.counts_once(before, &joined.rows, &right)?;
            let comparable = left.clone().is_not_null().and(known.eq(count.clone()));
            stage.plan = filter(stage.plan.clone(), Some(count.eq(lit(0_i64)).or(comparable)))?;
        }
        joined.on.push((left, right));
        stage.plan = join(stage.plan.clone(), joined, JoinType::LeftAnti)?;
        Ok(true)
    }

    /// The columns of the one row of a plan, which reads these spools, as parameters.
    fn computed_once(
        &self,
        spools: Vec<(SpoolId, LogicalPlan)>,
        plan: LogicalPlan,
        columns: &[Column],
    ) -> Result<Vec<Typed>> {
        let mut values = Vec::with_capacity(columns.len());
        for column in columns {
            let ty = type_of(&plan, column)?;
            let number = self.next_parameter.get() + 1;
            self.next_parameter.set(number);
            let name = format!("${number}");
            let field = Arc::new(Field::new(&name, ty.clone(), true));
            values.push((Planned::Placeholder(Placeholder::new_with_field(name, Some(field))), ty));
        }
        let exprs = columns.iter().cloned().map(Planned::Column);
        let plan = LogicalPlanBuilder::from(plan).project(exprs)?.build()?;
        self.once.borrow_mut().push(with_spools(spools, plan)?);
        Ok(values)
    }
}

/// A plan with all parameters behind the first `known` as calls of functions that only say which they are.
pub(crate) fn left_open(plan: LogicalPlan, known: usize) -> Result<LogicalPlan> {
    let shown = |expr: Planned| match &expr {
        Planned::Placeholder(Placeholder { id, field: Some(field) }) => {
            let number = id.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
            match number.filter(|number| *number > known) {
                Some(_) => {
                    let signature = Signature::nullary(Volatility::Volatile);
                    let (name, gives) = (format!("query_{id}"), field.data_type().clone());
                    let function = ScalarUDF::new_from_impl(Unknown { name, gives, signature });
                    Ok(Transformed::yes(function.call(Vec::new())))
                }
                None => Ok(Transformed::no(expr)),
            }
        }
        _ => Ok(Transformed::no(expr)),
    };
    let plan = plan.transform_up_with_subqueries(|node| {
        node.map_expressions(|expr| {
            let original = NamePreserver::new_for_projection().save(&expr);
            expr.transform_up(shown).map(|changed| changed.update_data(|expr| original.restore(expr)))
        })
    })?;
    Ok(plan.data)
}

/// A function that stands for a value that nobody has computed.
#[derive(PartialEq, Eq, Hash, Debug)]
struct Unknown {
    name: String,
    gives: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Unknown {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.gives.clone())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(external(internal("a plan that is only shown does not run")))
    }
}

/// Whether a query reads no column of a query around it, and no query of a WITH around it.
pub(super) fn is_independent(query: &Query) -> bool {
    free_columns(query).is_empty() && query.ctes_around().is_empty()
}
