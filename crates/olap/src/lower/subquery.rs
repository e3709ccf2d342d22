//! Queries inside expressions, as joins.
//!
//! Responsible for: EXISTS, IN and comparisons with ANY in WHERE as semi and anti joins; any other query as
//! columns that are joined to the rows at hand. A query that reads columns around it is computed for all of
//! their values at once: where its conditions say that one of its own expressions equals one of the columns
//! around, rows are found by that; else it is joined with the distinct values of those columns first.
//!
//! Paper: Neumann and Kemper, *Unnesting Arbitrary Queries*, BTW 2015 (dependent joins, §3).

use std::collections::BTreeSet;
use std::sync::Arc;

use albireo_base::Value;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{ColumnRef, Comparison, Connective, Expr, ExprKind, Subquery, SubqueryKind};
use albireo_semantics::query::tree::{AggregateKind, Body, Condition, Distinct, Query, Select};
use albireo_semantics::types::{Scalar, Type};
use arrow::datatypes::DataType;
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::{
    Case, Expr as Planned, Join, JoinConstraint, LogicalPlan, LogicalPlanBuilder, lit,
};

use super::expr::operator;
use super::free::{columns_around, free_columns, has_query};
use super::query::output_types;
use super::select::{Stage, address};
use super::{Domain, Level, Lowering, Rows, Typed, all_of, filter, typed_column};
use crate::errors::{external, internal};

/// A query inside an expression, computed for all rows around at once.
pub(super) struct Joined {
    pub(super) rows: Rows,
    /// What must be equal: of the rows around, and of the query's.
    pub(super) on: Vec<(Planned, Planned)>,
    /// Whether NULL is equal to NULL there.
    pub(super) nulls: NullEquality,
    /// Conditions over both sides; of semi joins only.
    pub(super) others: Vec<Planned>,
}

impl Lowering<'_> {
    /// Keeps the rows of which all conditions are true.
    pub(super) fn conditions(&self, stage: &mut Stage, conditions: &[Condition]) -> Result<()> {
        let (asking, plain): (Vec<&Condition>, Vec<&Condition>) =
            conditions.iter().partition(|condition| has_query(&condition.expr));
        let mut filters = Vec::with_capacity(plain.len());
        for (at, condition) in plain.iter().enumerate() {
            filters.push(match condition.expr.may_fail() {
                true => self.guarded(&stage.level, condition, &plain[..at])?,
                false => self.expr(&stage.level, &condition.expr)?,
            });
        }
        stage.plan = filter(stage.plan.clone(), all_of(filters))?;
        for condition in asking {
            if !self.semi_join(stage, &condition.expr)? {
                self.attach_queries(stage, [&condition.expr])?;
                let condition = self.expr(&stage.level, &condition.expr)?;
                stage.plan = filter(stage.plan.clone(), Some(condition))?;
            }
        }
        Ok(())
    }

    /// A condition that may fail: looked at only where those `before` it that concern the same relations hold.
    fn guarded(&self, level: &Level, condition: &Condition, before: &[&Condition]) -> Result<Planned> {
        let own = condition.relations();
        let guards = before.iter().filter(|guard| guard.relations() != 0 && guard.relations() & !own == 0);
        let mut terms: Vec<Expr> = guards.map(|guard| guard.expr.clone()).collect();
        if terms.is_empty() {
            return self.expr(level, &condition.expr);
        }
        terms.push(condition.expr.clone());
        self.row_by_row(level, &Expr::condition(ExprKind::Logic(Connective::And, terms)))
            .map(|(expr, _)| expr)
    }

    /// Joins a condition that is a query, or the opposite of one; whether it is of that form.
    fn semi_join(&self, stage: &mut Stage, condition: &Expr) -> Result<bool> {
        let (condition, negated) = match &condition.kind {
            ExprKind::Not(inner) => (&**inner, true),
            _ => (condition, false),
        };
        let ExprKind::Subquery(subquery) = &condition.kind else { return Ok(false) };
        let query = &subquery.plan.query;
        match &subquery.kind {
            SubqueryKind::Exists => {
                let joined = self.joined(stage, query, true)?;
                let kind = if negated { JoinType::LeftAnti } else { JoinType::LeftSemi };
                stage.plan = join(stage.plan.clone(), joined, kind)?;
                Ok(true)
            }
            SubqueryKind::Any { op, all: false, operands, conversions }
                if !negated && is_joinable(*op, operands, query) =>
            {
                self.attach_queries(stage, operands)?;
                let mut joined = self.joined(stage, query, true)?;
                let types = output_types(query);
                for (at, (operand, conversion)) in operands.iter().zip(conversions).enumerate() {
                    let (left, right) =
                        self.operand_pair(&stage.level, operand, &joined.rows, at, &types, *conversion)?;
                    match op {
                        Comparison::Eq => joined.on.push((left, right)),
                        _ => joined.others.push(compared(left, *op, right)),
                    }
                }
                if joined.nulls == NullEquality::NullEqualsNull {
                    // The keys of the domain are equal where both are NULL, the operand is not.
                    let from = joined.rows.keys.len();
                    let equal = joined.on.split_off(from.min(joined.on.len()));
                    joined.others.extend(equal.into_iter().map(|(left, right)| left.eq(right)));
                }
                stage.plan = join(stage.plan.clone(), joined, JoinType::LeftSemi)?;
                Ok(true)
            }
            SubqueryKind::Any { op, all, operands, conversions } => {
                let outside = match (op, all, negated) {
                    (Comparison::Eq, false, true) | (Comparison::Ne, true, false) => true,
                    _ => return Ok(false),
                };
                match (operands.as_slice(), conversions.as_slice()) {
                    ([operand], [conversion]) if outside => {
                        self.anti_join(stage, query, operand, *conversion)
                    }
                    _ => Ok(false),
                }
            }
            _ => Ok(false),
        }
    }

    /// An operand and the column that it is compared with, in one type, as they are compared.
    pub(super) fn operand_pair(
        &self,
        level: &Level,
        operand: &Expr,
        rows: &Rows,
        at: usize,
        types: &[Type],
        conversion: Option<Scalar>,
    ) -> Result<(Planned, Planned)> {
        let column = self.converted(rows, at, types, conversion)?;
        let stand_in = Expr { kind: ExprKind::Column(STAND_IN), ty: column.1.clone() };
        let mut inner = level.clone();
        inner.outer.insert(STAND_IN, column.0);
        self.comparable(&inner, operand, &stand_in)
    }

    /// A column of a query, converted as its comparison asks.
    pub(super) fn converted(
        &self,
        rows: &Rows,
        at: usize,
        types: &[Type],
        conversion: Option<Scalar>,
    ) -> Result<(Typed, Type)> {
        let column = &rows.outputs[at];
        let typed = typed_column(&rows.plan, column)?;
        let Some(to) = conversion else { return Ok((typed, types[at].clone())) };
        let mut level = Level::default();
        level.outer.insert(STAND_IN, typed);
        let inner = Expr { kind: ExprKind::Column(STAND_IN), ty: types[at].clone() };
        let to = match (to, &types[at]) {
            (Scalar::Numeric { .. }, Type::Scalar(Scalar::SmallInt | Scalar::Integer | Scalar::BigInt)) => {
                Scalar::Numeric { scale: Some(0) }
            }
            (to, _) => to,
        };
        let conversion = albireo_semantics::expr::Conversion::Scalar(to);
        let whole = Expr { kind: ExprKind::Convert(Box::new(inner), conversion), ty: Type::Scalar(to) };
        Ok((self.typed(&level, &whole)?, Type::Scalar(to)))
    }

    /// Computes the queries in expressions beside the rows at hand.
    pub(super) fn attach_queries<'e>(
        &self,
        stage: &mut Stage,
        exprs: impl IntoIterator<Item = &'e Expr>,
    ) -> Result<()> {
        for expr in exprs {
            let mut found: Vec<Arc<Subquery>> = Vec::new();
            expr.walk(&mut |part| {
                if let ExprKind::Subquery(subquery) = &part.kind {
                    found.push(Arc::clone(subquery));
                }
            });
            // Operands may hold queries: the inner ones come last in the walk.
            for subquery in found.into_iter().rev() {
                if !stage.level.queries.contains_key(&address(&subquery)) {
                    let value = self.attach(stage, &subquery)?;
                    stage.level.queries.insert(address(&subquery), value);
                }
            }
        }
        Ok(())
    }

    fn attach(&self, stage: &mut Stage, subquery: &Subquery) -> Result<Typed> {
        let query = &subquery.plan.query;
        match &subquery.kind {
            SubqueryKind::Scalar => self.attach_value(stage, query),
            SubqueryKind::Exists => {
                let joined = self.joined(stage, query, false)?;
                let marker = self.attach_marker(stage, joined)?;
                Ok((marker.is_not_null(), DataType::Boolean))
            }
            SubqueryKind::Any { op, all, operands, conversions } => {
                match (operands.as_slice(), conversions.as_slice()) {
                    ([operand], [conversion]) if has_ends(*op, *all, operand, query) => {
                        self.attach_any(stage, query, *op, *all, operand, *conversion)
                    }
                    _ => self.attach_rows(stage, query, (*op, *all), operands, conversions),
                }
            }
            SubqueryKind::Array => self.attach_array(stage, subquery),
        }
    }

    /// A query's one value.
    fn attach_value(&self, stage: &mut Stage, query: &Query) -> Result<Typed> {
        let total = whole_aggregate(query);
        if let Some(value) = self.value_once(query, total.is_some() || takes_one(query))? {
            return Ok(value);
        }
        let joined = self.joined(stage, query, false)?;
        let pulled = joined.rows.keys.len();
        let of = match total {
            Some(select) if pulled > 0 && joined.nulls == NullEquality::NullEqualsNothing => {
                Some(self.empty_value(stage, select)?)
            }
            _ => None,
        };
        let one = total.is_some() || takes_one(query);
        let Joined { rows, on, nulls, others } = joined;
        let Some(output) = rows.outputs.first().cloned() else {
            return Err(external(internal("a query has a column")));
        };
        let (mut exprs, mut present) = (Vec::new(), None);
        let (rows, value) = match one {
            true => {
                let marker = self.column("found");
                exprs.extend(rows.plan.schema().columns().into_iter().map(Planned::Column));
                exprs.push(lit(true).alias(&marker.name));
                let plan = LogicalPlanBuilder::from(rows.plan).project(exprs)?.build()?;
                present = Some(marker);
                (Rows { plan, ..rows }, Planned::Column(output.clone()))
            }
            false => self.single(rows, &output)?,
        };
        let ty = datafusion::logical_expr::ExprSchemable::get_type(&value, rows.plan.schema())?;
        stage.plan = join(stage.plan.clone(), Joined { rows, on, nulls, others }, JoinType::Left)?;
        let value = match (of, present) {
            (Some((empty, _)), Some(present)) => {
                let missing = Box::new(Planned::Column(present).is_null());
                let branches = vec![(missing, Box::new(empty))];
                let else_expr = Some(Box::new(value));
                Planned::Case(Case { expr: None, when_then_expr: branches, else_expr })
            }
            _ => value,
        };
        Ok((value, ty))
    }

    /// One row for each key, or none; an error, once its value is used, where there were several.
    fn single(&self, rows: Rows, output: &Column) -> Result<(Rows, Planned)> {
        let (rows, value, count) = self.first_and_count(rows, output)?;
        Ok((rows, super::checks::single(Planned::Column(value), Planned::Column(count))))
    }

    /// Of the rows of each key the value of the first, and how many there are.
    pub(super) fn first_and_count(&self, rows: Rows, output: &Column) -> Result<(Rows, Column, Column)> {
        let (value, count) = (self.column("value"), self.column("rows"));
        let groups: Vec<Planned> = rows.keys.iter().cloned().map(Planned::Column).collect();
        let aggregates = [
            first_value_udaf().call(vec![Planned::Column(output.clone())]).alias(&value.name),
            count_udaf().call(vec![lit(1_i64)]).alias(&count.name),
        ];
        let plan = LogicalPlanBuilder::from(rows.plan).aggregate(groups, aggregates)?.build()?;
        let outputs = vec![value.clone()];
        Ok((Rows { plan, outputs, keys: rows.keys, order: Vec::new() }, value, count))
    }

    /// What a query of one group gives where there is no row.
    fn empty_value(&self, stage: &Stage, select: &Select) -> Result<Typed> {
        let groups = select.relations.len() as u16;
        let Some(grouping) = &select.grouping else { return Err(external(internal("no groups"))) };
        let mut output = select.outputs[0].clone();
        let mut fits = true;
        without_rows(&mut output, groups, grouping, &mut fits);
        match fits {
            true => self.typed(&stage.level, &output),
            false => Err(external(internal("a group without rows"))),
        }
    }

    /// A column that is NULL where a query has no row.
    fn attach_marker(&self, stage: &mut Stage, joined: Joined) -> Result<Planned> {
        let Joined { rows, on, nulls, others } = joined;
        let marker = self.column("found");
        let groups: Vec<Planned> = on.iter().map(|(_, right)| right.clone()).collect();
        let (plan, on) = match groups.is_empty() {
            true => {
                let plan = LogicalPlanBuilder::from(rows.plan).limit(0, Some(1))?.build()?;
                (plan, on)
            }
            false => {
                let named: Vec<Column> = groups.iter().map(|_| self.column("of")).collect();
                let exprs = groups.into_iter().zip(&named).map(|(expr, name)| expr.alias(&name.name));
                let plan = LogicalPlanBuilder::from(rows.plan)
                    .aggregate(exprs.collect::<Vec<_>>(), Vec::<Planned>::new())?
                    .build()?;
                let lefts = on.into_iter().map(|(left, _)| left);
                (plan, lefts.zip(named.into_iter().map(Planned::Column)).collect())
            }
        };
        let mut exprs: Vec<Planned> = plan.schema().columns().into_iter().map(Planned::Column).collect();
        exprs.push(lit(true).alias(&marker.name));
        let plan = LogicalPlanBuilder::from(plan).project(exprs)?.build()?;
        let rows = Rows { plan, ..Rows::default() };
        stage.plan = join(stage.plan.clone(), Joined { rows, on, nulls, others }, JoinType::Left)?;
        Ok(Planned::Column(marker))
    }

    /// How a value compares with all values of a query, by what is known of these together: how many there
    /// are, how many are not NULL, the least and the greatest, and whether one is equal.
    fn attach_any(
        &self,
        stage: &mut Stage,
        query: &Query,
        op: Comparison,
        all: bool,
        operand: &Expr,
        conversion: Option<Scalar>,
    ) -> Result<Typed> {
        let joined = self.joined(stage, query, false)?;
        let types = output_types(query);
        let (left, right) = self.operand_pair(&stage.level, operand, &joined.rows, 0, &types, conversion)?;
        let equality = matches!((op, all), (Comparison::Eq, false) | (Comparison::Ne, true));
        let found = match equality {
            true => Some(self.attach_equal(stage, &joined, &left, &right)?),
            false => None,
        };
        let known = self.attach_known(stage, joined, &right, found.is_none())?;
        Ok((verdict(op, all, left, found, &known), DataType::Boolean))
    }

    /// Whether a value is equal to one of a query's.
    fn attach_equal(
        &self,
        stage: &mut Stage,
        joined: &Joined,
        left: &Planned,
        right: &Planned,
    ) -> Result<Planned> {
        let Joined { rows, on, nulls, .. } = joined;
        let mut on = on.clone();
        on.push((left.clone(), right.clone()));
        // NULLs among the values are not equal to anything.
        let plan = filter(rows.plan.clone(), Some(right.clone().is_not_null()))?;
        let rows = Rows { plan, ..rows.clone() };
        let one = Joined { rows, on, nulls: *nulls, others: Vec::new() };
        Ok(self.attach_marker(stage, one)?.is_not_null().and(left.clone().is_not_null()))
    }

    /// What is known of a query's values together.
    fn attach_known(&self, stage: &mut Stage, joined: Joined, right: &Planned, ends: bool) -> Result<Known> {
        let Joined { rows, on, nulls, others } = joined;
        let mut named = Vec::with_capacity(on.len());
        let mut groups = Vec::with_capacity(on.len());
        let mut pairs = Vec::with_capacity(on.len());
        for (left, right) in on {
            let name = self.column("of");
            groups.push(right.alias(&name.name));
            pairs.push((left, Planned::Column(name.clone())));
            named.push(name);
        }
        let columns = ["rows", "known", "least", "greatest"].map(|name| self.column(name));
        let [count, known, least, greatest] = &columns;
        let mut aggregates = vec![
            count_udaf().call(vec![lit(1_i64)]).alias(&count.name),
            count_udaf().call(vec![right.clone()]).alias(&known.name),
        ];
        if ends {
            aggregates.push(min_udaf().call(vec![right.clone()]).alias(&least.name));
            aggregates.push(max_udaf().call(vec![right.clone()]).alias(&greatest.name));
        }
        let plan = LogicalPlanBuilder::from(rows.plan).aggregate(groups, aggregates)?.build()?;
        let rows = Rows { plan, keys: named, ..Rows::default() };
        stage.plan = join(stage.plan.clone(), Joined { rows, on: pairs, nulls, others }, JoinType::Left)?;
        let [count, known, least, greatest] = columns.map(Planned::Column);
        Ok(Known { count, known, least, greatest })
    }

    /// A query for all rows at hand; `semi` if it only matters whether there is a row.
    pub(super) fn joined(&self, stage: &mut Stage, query: &Query, semi: bool) -> Result<Joined> {
        let free = free_columns(query);
        if free.is_empty() {
            let rows = self.query(query, None)?;
            let nulls = NullEquality::NullEqualsNothing;
            return Ok(Joined { rows, on: Vec::new(), nulls, others: Vec::new() });
        }
        match self.pulled_up(stage, query, &free, semi)? {
            Some(joined) => Ok(joined),
            None => self.joined_by_values(stage, query),
        }
    }

    /// A query for all values of the columns around at once.
    pub(super) fn joined_by_values(&self, stage: &mut Stage, query: &Query) -> Result<Joined> {
        let free = free_columns(query);
        if free.is_empty() {
            return self.joined(stage, query, false);
        }
        let mut exprs = Vec::with_capacity(free.len());
        let mut columns = Vec::with_capacity(free.len());
        let mut lefts = Vec::with_capacity(free.len());
        for reference in free {
            let around = ColumnRef { depth: reference.depth - 1, ..reference };
            let (value, _) = self.column_of(&stage.level, around)?;
            let column = self.column("domain");
            exprs.push(value.clone().alias(&column.name));
            columns.push((reference, column));
            lefts.push(value);
        }
        stage.plan = self.readable_twice(stage.plan.clone())?;
        let plan = LogicalPlanBuilder::from(stage.plan.clone()).project(exprs)?.distinct()?.build()?;
        let rows = self.query(query, Some(&Domain { plan, columns }))?;
        let rights = rows.keys.iter().cloned().map(Planned::Column);
        let on = lefts.into_iter().zip(rights).collect();
        Ok(Joined { rows, on, nulls: NullEquality::NullEqualsNull, others: Vec::new() })
    }

    /// A query whose conditions say by which of its own values it belongs to the rows around.
    fn pulled_up(
        &self,
        stage: &Stage,
        query: &Query,
        free: &BTreeSet<ColumnRef>,
        semi: bool,
    ) -> Result<Option<Joined>> {
        let Body::Select(select) = &query.body else { return Ok(None) };
        let total = whole_aggregate(query);
        let sets = select.grouping.as_ref().is_some_and(|grouping| grouping.sets.is_some());
        if !query.ctes.is_empty() || sets || total.is_some_and(|select| semi || !has_empty_value(select)) {
            return Ok(None);
        }
        let limited = query.limit.is_some() || query.offset.is_some();
        let plain = semi && select.grouping.is_none() && select.windows.is_empty() && !limited;
        let (mut pairs, mut mixed, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for condition in &select.from.conditions {
            match split(&condition.expr) {
                Split::Own => rest.push(condition.clone()),
                Split::Equal { outer, own } => pairs.push((outer, own)),
                Split::Mixed if plain && !has_query(&condition.expr) => mixed.push(&condition.expr),
                Split::Mixed => return Ok(None),
            }
        }
        let mut left = select.as_ref().clone();
        left.from.conditions = rest;
        let inside = Query { body: Body::Select(Box::new(left.clone())), ..query.clone() };
        if pairs.is_empty() && mixed.is_empty() || free.is_empty() || !free_columns(&inside).is_empty() {
            return Ok(None);
        }
        let mut inner = self.beginning(None)?;
        inner.level.relations = vec![Vec::new(); left.relations.len()];
        self.from(&mut inner, &left)?;
        let on = self.keys_of_pairs(stage, &mut inner, &pairs)?;
        let mut others = Vec::with_capacity(mixed.len());
        for condition in mixed {
            let mut both = inner.level.clone();
            for reference in columns_around(condition) {
                let around = ColumnRef { depth: reference.depth - 1, ..reference };
                both.outer.insert(reference, self.column_of(&stage.level, around)?);
            }
            others.push(self.expr(&both, condition)?);
        }
        let rows = match others.is_empty() {
            true => self.after_where(inner, &left, query, None)?,
            false => self.with_outputs(inner, &left)?,
        };
        Ok(Some(Joined { rows, on, nulls: NullEquality::NullEqualsNothing, others }))
    }

    /// Makes the own side of each pair a key of a query's rows: what must be equal.
    fn keys_of_pairs(
        &self,
        stage: &Stage,
        inner: &mut Stage,
        pairs: &[(Expr, Expr)],
    ) -> Result<Vec<(Planned, Planned)>> {
        let mut on = Vec::with_capacity(pairs.len());
        let mut exprs: Vec<Planned> =
            inner.plan.schema().columns().into_iter().map(Planned::Column).collect();
        let before = exprs.len();
        for (outer, own) in pairs {
            let mut both = inner.level.clone();
            both.outer.insert(STAND_IN, self.typed(&stage.level, &shifted(outer))?);
            let stand_in = Expr { kind: ExprKind::Column(STAND_IN), ty: outer.ty.clone() };
            let (mine, theirs) = self.comparable(&both, own, &stand_in)?;
            let column = match mine {
                Planned::Column(column) => column,
                other => {
                    let column = self.column("of");
                    exprs.push(other.alias(&column.name));
                    column
                }
            };
            if !inner.keys.contains(&column) {
                inner.keys.push(column.clone());
            }
            on.push((theirs, Planned::Column(column)));
        }
        if exprs.len() > before {
            inner.plan = LogicalPlanBuilder::from(inner.plan.clone()).project(exprs)?.build()?;
        }
        Ok(on)
    }

    /// The rows of FROM and WHERE with all their columns, and the select list beside them.
    fn with_outputs(&self, mut stage: Stage, select: &Select) -> Result<Rows> {
        stage.level.relations.push(Vec::new());
        stage.level.relations.push(Vec::new());
        self.attach_queries(&mut stage, &select.outputs)?;
        let mut exprs: Vec<Planned> =
            stage.plan.schema().columns().into_iter().map(Planned::Column).collect();
        let mut outputs = Vec::with_capacity(select.outputs.len());
        for output in &select.outputs {
            let column = self.column("out");
            exprs.push(self.expr(&stage.level, output)?.alias(&column.name));
            outputs.push(column);
        }
        let plan = LogicalPlanBuilder::from(stage.plan).project(exprs)?.build()?;
        Ok(Rows { plan, outputs, keys: stage.keys, order: Vec::new() })
    }
}

/// Whether a comparison with a query's rows can be the condition of a join.
fn is_joinable(op: Comparison, operands: &[Expr], query: &Query) -> bool {
    let scalar = |ty: &Type| matches!(ty, Type::Scalar(_));
    let scalars =
        operands.iter().all(|operand| scalar(&operand.ty)) && output_types(query).iter().all(scalar);
    scalars && (op == Comparison::Eq || operands.len() == 1)
}

/// Whether what is known of a query's values together says how one compares with them.
fn has_ends(op: Comparison, all: bool, operand: &Expr, query: &Query) -> bool {
    use Scalar::{BigInt, Bpchar, Date, Integer, Numeric, SmallInt, Text, Time, Timestamp, TimestampTz};
    let types = output_types(query);
    let Some(Type::Scalar(of_query)) = types.first() else { return false };
    let Type::Scalar(of_operand) = operand.ty else { return false };
    let equality = matches!((op, all), (Comparison::Eq, false) | (Comparison::Ne, true));
    let ordered = match of_operand {
        SmallInt | Integer | BigInt | Text | Bpchar | Date | Time | Timestamp | TimestampTz => true,
        Numeric { scale: Some(_) } => of_operand == *of_query,
        _ => false,
    };
    equality || ordered
}

/// What is known of a query's values together.
struct Known {
    count: Planned,
    /// How many are not NULL.
    known: Planned,
    least: Planned,
    greatest: Planned,
}

/// How a value compares with values of which this is known. `found`: whether one is equal, where that decides.
fn verdict(op: Comparison, all: bool, left: Planned, found: Option<Planned>, known: &Known) -> Planned {
    let (least, greatest) = (|| known.least.clone(), || known.greatest.clone());
    let none = known.count.clone().is_null().or(known.count.clone().eq(lit(0_i64)));
    let decided = match (found, op) {
        (Some(found), _) => found,
        // The nearest value decides.
        (None, Comparison::Lt | Comparison::Le) => {
            compared(left.clone(), op, if all { least() } else { greatest() })
        }
        (None, Comparison::Gt | Comparison::Ge) => {
            compared(left.clone(), op, if all { greatest() } else { least() })
        }
        (None, Comparison::Eq) => left.clone().eq(least()).and(left.clone().eq(greatest())),
        (None, Comparison::Ne) => left.clone().not_eq(least()).or(left.clone().not_eq(greatest())),
    };
    // With one that is so ANY is true, with one that is not so ALL is false.
    let (decisive, decided) = match (all, op) {
        (true, Comparison::Ne) => (false, decided),
        (true, _) => (false, Planned::Not(Box::new(decided))),
        (false, _) => (true, decided),
    };
    let null = Planned::Literal(datafusion::common::ScalarValue::Boolean(None), None);
    let unknown = left.is_null().or(known.known.clone().lt(known.count.clone()));
    let branches = [(none, lit(all)), (super::checks::is(decided, true), lit(decisive)), (unknown, null)];
    let when_then_expr = branches.into_iter().map(|(when, then)| (Box::new(when), Box::new(then))).collect();
    let else_expr = Some(Box::new(lit(!decisive)));
    Planned::Case(Case { expr: None, when_then_expr, else_expr })
}

/// Stands for a column that is known otherwise.
const STAND_IN: ColumnRef = ColumnRef { depth: u16::MAX, relation: u16::MAX, column: u16::MAX };

pub(super) fn join(left: LogicalPlan, joined: Joined, kind: JoinType) -> Result<LogicalPlan> {
    let Joined { rows, on, nulls, others } = joined;
    let (left, right) = (Arc::new(left), Arc::new(rows.plan));
    // Where nothing must be equal, a join needs a condition.
    let bare = on.is_empty() && others.is_empty() && kind != JoinType::Inner;
    let filter = if bare { Some(lit(true)) } else { all_of(others) };
    let join = Join::try_new(left, right, on, filter, kind, JoinConstraint::On, nulls, false)?;
    Ok(LogicalPlan::Join(join))
}

fn compared(left: Planned, op: Comparison, right: Planned) -> Planned {
    let (left, right) = (Box::new(left), Box::new(right));
    Planned::BinaryExpr(datafusion::logical_expr::BinaryExpr::new(left, operator(op), right))
}

/// What a condition of a query inside is about.
enum Split {
    /// Its own columns.
    Own,
    /// An expression of columns around that equals one of its own.
    Equal { outer: Expr, own: Expr },
    /// Both.
    Mixed,
}

fn split(condition: &Expr) -> Split {
    if columns_around(condition).is_empty() {
        return Split::Own;
    }
    if let ExprKind::Compare(Comparison::Eq, pair) = &condition.kind
        && !has_query(condition)
    {
        let (a, b) = &**pair;
        for (outer, own) in [(a, b), (b, a)] {
            if columns_around(own).is_empty()
                && !columns_around(outer).is_empty()
                && !has_own(outer)
                && has_own(own)
            {
                return Split::Equal { outer: outer.clone(), own: own.clone() };
            }
        }
    }
    Split::Mixed
}

fn has_own(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        found |= matches!(&part.kind, ExprKind::Column(column) if column.depth == 0);
    });
    found
}

/// An expression of columns around as the query around sees it.
fn shifted(expr: &Expr) -> Expr {
    fn shift(expr: &mut Expr) {
        if let ExprKind::Column(column) = &mut expr.kind {
            column.depth = column.depth.saturating_sub(1);
        }
        expr.each_part_mut(&mut shift);
    }
    let mut expr = expr.clone();
    shift(&mut expr);
    expr
}

/// The SELECT of a query that makes one group of all rows, whatever they are.
fn whole_aggregate(query: &Query) -> Option<&Select> {
    let Body::Select(select) = &query.body else { return None };
    let grouping = select.grouping.as_ref()?;
    let one = grouping.keys.is_empty() && grouping.sets.is_none();
    let all = query.limit.is_none() && query.offset.is_none();
    (one && all).then_some(select)
}

/// Whether LIMIT 1 is written.
fn takes_one(query: &Query) -> bool {
    matches!(
        query.limit.as_ref().map(|limit| &limit.kind),
        Some(ExprKind::Constant(Datum::Value(Value::BigInt(0 | 1))))
    )
}

/// Whether what a query of one group gives without rows can be said. Not with HAVING: a group that it leaves
/// out could not be told from one without rows.
fn has_empty_value(select: &Select) -> bool {
    let Some(grouping) = &select.grouping else { return false };
    let groups = select.relations.len() as u16;
    let says = |expr: &Expr| {
        let mut fits = !has_query(expr);
        without_rows(&mut expr.clone(), groups, grouping, &mut fits);
        fits
    };
    select.windows.is_empty()
        && grouping.having.is_none()
        && matches!(select.distinct, Distinct::No)
        && select.outputs.iter().all(says)
}

/// Makes an expression of a group what it is of no rows, and one of columns around what the query around
/// sees.
fn without_rows(
    expr: &mut Expr,
    groups: u16,
    grouping: &albireo_semantics::query::tree::Grouping,
    fits: &mut bool,
) {
    match &mut expr.kind {
        ExprKind::Column(column) if column.depth > 0 => column.depth -= 1,
        ExprKind::Column(column) if column.relation == groups => {
            let counts = grouping.aggregates.get(usize::from(column.column)).is_some_and(|aggregate| {
                use albireo_semantics::query::tree::Regression;
                let regression = AggregateKind::Regression(Regression::Count);
                aggregate.kind == AggregateKind::Count || aggregate.kind == regression
            });
            let value = if counts { Value::BigInt(0) } else { Value::Null };
            expr.kind = ExprKind::Constant(value.into());
        }
        ExprKind::Column(_) | ExprKind::Subquery(_) => *fits = false,
        _ => {}
    }
    expr.each_part_mut(&mut |part| without_rows(part, groups, grouping, fits));
}
