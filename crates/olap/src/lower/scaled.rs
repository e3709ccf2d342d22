//! Sums of values of which each has its own number of digits after the point, though all numbers are known:
//! `sum(CASE WHEN ... THEN price ELSE 0 END)`.
//!
//! Responsible for: such values as decimals of one scale, and beside them the scale of each. The sum of the
//! values, with as many digits as the greatest scale of those that are not NULL, is PostgreSQL's.

use albireo_base::Value;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{Conversion, Expr, ExprKind, builtin};
use albireo_semantics::query::tree::{Aggregate, AggregateKind};
use albireo_semantics::types::{Scalar, Type};
use arrow::datatypes::DataType;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::logical_expr::{Case, Cast, Expr as Planned, LogicalPlan, lit};

use super::{Level, Lowering, Typed, typed_column};
use crate::errors::{external, internal};
use crate::functions::decimal::{MAX_PRECISION, Shape};
use crate::types::decimal;

/// A value of any scale.
pub(super) struct Scaled {
    /// Its number, a decimal of the greatest scale that it may have.
    pub(super) number: Typed,
    /// Its scale as a SMALLINT; NULL where the value is.
    pub(super) scale: Planned,
}

impl Lowering<'_> {
    /// The argument of a sum or an average, if it is NUMERIC of any scale and made of values of known ones.
    pub(super) fn scaled_argument(&self, level: &Level, aggregate: &Aggregate) -> Result<Option<Scaled>> {
        let adds = matches!(aggregate.kind, AggregateKind::Sum | AggregateKind::Avg) && !aggregate.distinct;
        match aggregate.args.as_slice() {
            [arg] if adds && is_open(&arg.ty) => self.scaled(level, arg),
            _ => Ok(None),
        }
    }

    fn scaled(&self, level: &Level, expr: &Expr) -> Result<Option<Scaled>> {
        match &expr.kind {
            ExprKind::Constant(Datum::Value(Value::Decimal(number))) => {
                let value = decimal(*number);
                let ty = value.data_type();
                let scale = lit(i16::from(number.scale));
                Ok(Some(Scaled { number: (Planned::Literal(value, None), ty), scale }))
            }
            ExprKind::Convert(inner, Conversion::Scalar(Scalar::Numeric { .. })) if is_open(&expr.ty) => {
                self.scaled(level, inner)
            }
            ExprKind::Case(branches, otherwise) if is_open(&expr.ty) => {
                self.scaled_case(level, branches, otherwise)
            }
            _ if is_open(&expr.ty) || !is_number(&expr.ty) => Ok(None),
            _ => {
                let (number, ty) = self.typed(level, expr)?;
                let DataType::Decimal128(_, scale) = ty else { return Ok(None) };
                let known = Box::new(number.clone().is_not_null());
                let when_then_expr = vec![(known, Box::new(lit(i16::from(scale))))];
                let scale = Planned::Case(Case { expr: None, when_then_expr, else_expr: None });
                Ok(Some(Scaled { number: (number, ty), scale }))
            }
        }
    }

    fn scaled_case(
        &self,
        level: &Level,
        branches: &[(Expr, Expr)],
        otherwise: &Expr,
    ) -> Result<Option<Scaled>> {
        let mut results = Vec::with_capacity(branches.len() + 1);
        for result in branches.iter().map(|(_, result)| result).chain([otherwise]) {
            results.push(match &result.kind {
                ExprKind::Constant(datum) if datum.is_null() => None,
                _ => match self.scaled(level, result)? {
                    Some(scaled) => Some(scaled),
                    None => return Ok(None),
                },
            });
        }
        let shapes = results.iter().flatten().filter_map(|scaled| Shape::of(&scaled.number.1));
        let (mut before, mut scale) = (0, 0);
        for shape in shapes {
            (before, scale) = (before.max(shape.precision - shape.scale), scale.max(shape.scale));
        }
        if before + scale > i32::from(MAX_PRECISION) {
            return Ok(None);
        }
        let ty = Shape { precision: (before + scale).max(1), scale }.data_type();
        let conditions = branches.iter().map(|(condition, _)| self.expr(level, condition));
        let conditions = conditions.collect::<Result<Vec<Planned>>>()?;
        let (mut numbers, mut scales) = (Vec::new(), Vec::new());
        for result in results {
            let (number, scale) = match result {
                Some(Scaled { number: (number, found), scale }) if found == ty => (number, scale),
                Some(Scaled { number: (number, _), scale }) => {
                    (Planned::Cast(Cast::new(Box::new(number), ty.clone())), scale)
                }
                None => (
                    Planned::Literal(ScalarValue::try_new_null(&ty)?, None),
                    Planned::Literal(ScalarValue::Int16(None), None),
                ),
            };
            numbers.push(number);
            scales.push(scale);
        }
        let number = (one_of(&conditions, numbers), ty);
        Ok(Some(Scaled { number, scale: one_of(&conditions, scales) }))
    }

    /// A sum with as many digits as its column of scales says.
    pub(super) fn at_its_scale(&self, plan: &LogicalPlan, sum: &Column, scale: &Column) -> Result<Typed> {
        let (sum, scale) = (typed_column(plan, sum)?, typed_column(plan, scale)?);
        let DataType::Decimal128(_, digits) = sum.1 else { return Err(external(internal("no decimal"))) };
        let column = |at: u16, ty: Scalar| Expr {
            kind: ExprKind::Column(super::ColumnRef { depth: 0, relation: 0, column: at }),
            ty: Type::Scalar(ty),
        };
        let open = Scalar::Numeric { scale: None };
        let Some(round) = builtin("round", &[open, Scalar::Integer]) else {
            return Err(external(internal("no round")));
        };
        let number = Box::new(column(0, Scalar::Numeric { scale: Some(digits as u8) }));
        let number =
            Expr { kind: ExprKind::Convert(number, Conversion::Scalar(open)), ty: Type::Scalar(open) };
        let digits = Box::new(column(1, Scalar::SmallInt));
        let digits = Expr {
            kind: ExprKind::Convert(digits, Conversion::Scalar(Scalar::Integer)),
            ty: Type::Scalar(Scalar::Integer),
        };
        let whole = Expr { kind: ExprKind::Function(round, vec![number, digits]), ty: Type::Scalar(open) };
        let level = Level { relations: vec![vec![sum, scale]], ..Level::default() };
        self.row_by_row(&level, &whole)
    }
}

fn one_of(conditions: &[Planned], mut results: Vec<Planned>) -> Planned {
    let else_expr = results.pop().map(Box::new);
    let branches = conditions.iter().cloned().zip(results);
    let when_then_expr = branches.map(|(when, then)| (Box::new(when), Box::new(then))).collect();
    Planned::Case(Case { expr: None, when_then_expr, else_expr })
}

fn is_open(ty: &Type) -> bool {
    *ty == Type::Scalar(Scalar::Numeric { scale: None })
}

fn is_number(ty: &Type) -> bool {
    matches!(ty, Type::Scalar(Scalar::Numeric { .. }))
}
