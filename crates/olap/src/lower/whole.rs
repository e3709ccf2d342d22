//! Queries inside expressions of which all rows matter: arrays of them, and comparisons with each of their rows.

use std::sync::Arc;

use albireo_semantics::datum::{Array, Datum};
use albireo_semantics::expr::{ColumnRef, Comparison, Expr, ExprKind, Subquery};
use albireo_semantics::query::tree::{Aggregate, AggregateKind, OrderBy, OrderKey, Query};
use albireo_semantics::types::{Scalar, Type};
use arrow::datatypes::DataType;
use datafusion::common::{Column, JoinType, NullEquality, Result, ScalarValue};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr as Planned, ExprFunctionExt, LogicalPlanBuilder, cast, lit, when};

use super::query::output_types;
use super::select::Stage;
use super::subquery::{Joined, join};
use super::{Level, Lowering, Rows, Typed, unsupported};
use crate::functions::row_by_row;
use crate::values::arrow_of;

impl Lowering<'_> {
    /// The values of a query as an array, in its order.
    pub(super) fn attach_array(&self, stage: &mut Stage, subquery: &Subquery) -> Result<Typed> {
        let element = subquery.plan.columns.first().map(|(_, ty)| ty);
        let Some(Type::Scalar(element)) = element else {
            return Err(unsupported("an array of these values"));
        };
        let ty = Type::Array(*element);
        let Some(arrow) = arrow_of(&ty) else { return Err(unsupported("an array of these values")) };
        let Joined { mut rows, on, nulls, others } = self.joined_by_values(stage, &subquery.plan.query)?;
        let mut args = rows.outputs.iter().take(1).cloned().map(Planned::Column).collect::<Vec<_>>();
        let mut order = Vec::new();
        if !rows.order.is_empty() {
            let number = self.column("row");
            let keys: Vec<Planned> = rows.keys.iter().cloned().map(Planned::Column).collect();
            let row = row_number().partition_by(keys).order_by(std::mem::take(&mut rows.order)).build()?;
            rows.plan = LogicalPlanBuilder::from(rows.plan).window([row.alias(&number.name)])?.build()?;
            args.push(cast(Planned::Column(number), DataType::Int64));
            let by = Expr::scalar(ExprKind::Constant(Datum::NULL), Scalar::BigInt);
            order.push(OrderKey { by: OrderBy::Expr(by), descending: false, nulls_first: false });
        }
        let value = Expr::scalar(ExprKind::Constant(Datum::NULL), *element);
        let aggregate = Aggregate {
            kind: AggregateKind::ArrayAgg,
            args: vec![value],
            distinct: false,
            filter: None,
            order,
            ty: ty.clone(),
        };
        let list = self.column("array");
        let groups: Vec<Planned> = rows.keys.iter().cloned().map(Planned::Column).collect();
        let call = row_by_row::call(&aggregate, arrow.clone(), args, None).alias(&list.name);
        let plan = LogicalPlanBuilder::from(rows.plan).aggregate(groups, [call])?.build()?;
        let rows = Rows { plan, outputs: Vec::new(), keys: rows.keys, order: Vec::new() };
        stage.plan =
            join(std::mem::take(&mut stage.plan), Joined { rows, on, nulls, others }, JoinType::Left)?;
        let empty = Datum::Array(Arc::new(Array { lower: 1, items: Vec::new() }));
        let (empty, _) = self.constant(&empty, &ty)?;
        let list = Planned::Column(list);
        Ok((when(list.clone().is_null(), empty).otherwise(list)?, arrow))
    }

    /// How values compare with each row of a query: for all different values at once.
    pub(super) fn attach_rows(
        &self,
        stage: &mut Stage,
        query: &Query,
        (op, all): (Comparison, bool),
        operands: &[Expr],
        conversions: &[Option<Scalar>],
    ) -> Result<Typed> {
        let joined = self.joined_by_values(stage, query)?;
        let types = output_types(query);
        let mut level = Level { relations: vec![Vec::new(), Vec::new()], ..Level::default() };
        // What the rows at hand bring along: operands, and what the query's rows belong to.
        let (mut lefts, mut names, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (operand, conversion)) in operands.iter().zip(conversions).enumerate() {
            let (value, ty) = self.typed(&stage.level, operand)?;
            let name = self.column("operand");
            level.relations[0].push((Planned::Column(name.clone()), ty));
            let (column, column_ty) = self.converted(&joined.rows, at, &types, *conversion)?;
            level.relations[1].push(column);
            pairs.push((place(0, at, &operand.ty), place(1, at, &column_ty)));
            lefts.push(value);
            names.push(name);
        }
        let mut on = Vec::with_capacity(joined.on.len());
        for (left, right) in joined.on {
            let name = self.column("of");
            on.push((Planned::Column(name.clone()), right));
            lefts.push(left);
            names.push(name);
        }
        let named = lefts.iter().zip(&names).map(|(left, name)| left.clone().alias(&name.name));
        let values = LogicalPlanBuilder::from(stage.plan.clone())
            .project(named.collect::<Vec<_>>())?
            .distinct()?
            .build()?;
        let found = self.column("found");
        let mut exprs: Vec<Planned> =
            joined.rows.plan.schema().columns().into_iter().map(Planned::Column).collect();
        exprs.push(lit(true).alias(&found.name));
        let plan = LogicalPlanBuilder::from(joined.rows.plan).project(exprs)?.build()?;
        let rows = Rows { plan, ..Rows::default() };
        let each = Joined { rows, on, nulls: joined.nulls, others: Vec::new() };
        let each = join(values, each, JoinType::Left)?;
        let compared = Expr::condition(ExprKind::CompareRows(op, pairs));
        let (compared, _) = self.row_by_row(&level, &compared)?;
        let decisive = super::checks::is(compared.clone(), !all);
        let unknown = compared.is_null();
        let counts = |condition: Planned, name: &Column| {
            let condition = Planned::Column(found.clone()).is_not_null().and(condition);
            let one = when(condition, lit(1_i64)).end()?;
            Ok::<_, datafusion::common::DataFusionError>(count_udaf().call(vec![one]).alias(&name.name))
        };
        let (decided, open) = (self.column("decided"), self.column("open"));
        let groups: Vec<Planned> = names.iter().cloned().map(Planned::Column).collect();
        let aggregates = [counts(decisive, &decided)?, counts(unknown, &open)?];
        let plan = LogicalPlanBuilder::from(each).aggregate(groups.clone(), aggregates)?.build()?;
        let on = lefts.into_iter().zip(groups).collect();
        let rows = Rows { plan, ..Rows::default() };
        let verdicts = Joined { rows, on, nulls: NullEquality::NullEqualsNull, others: Vec::new() };
        stage.plan = join(std::mem::take(&mut stage.plan), verdicts, JoinType::Left)?;
        let positive = |column: Column| Planned::Column(column).gt(lit(0_i64));
        let null = lit(ScalarValue::Boolean(None));
        let verdict = when(positive(decided), lit(!all)).when(positive(open), null).otherwise(lit(all))?;
        Ok((verdict, DataType::Boolean))
    }
}

/// A column of one of the two sides of a comparison.
fn place(side: u16, at: usize, ty: &Type) -> Expr {
    let column = ColumnRef { depth: 0, relation: side, column: at as u16 };
    Expr { kind: ExprKind::Column(column), ty: ty.clone() }
}
