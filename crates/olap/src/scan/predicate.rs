//! Filters that a scan decides itself: comparisons, BETWEEN, IN, LIKE and IS NULL of single columns with
//! constants, and any other expression over one column of texts, joined by AND and OR.
//!
//! Responsible for: which filters these are, what a zone map proves about them, and evaluating
//! them on a chunk, decimals as the 64-bit integers the storage keeps.
//! A mask has a bit where the filter is *true*: NULL and false are the same to a WHERE.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use albireo_base::ColumnId;
use albireo_encoding as encoding;
use arrow::array::{Array, ArrayRef, BooleanArray, Datum, Int64Array, Scalar};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, Operator};
use datafusion::physical_expr::{PhysicalExpr, expressions};
use datafusion::physical_plan::metrics::Count;

use super::codes;
use super::computed::{Computed, is_of_one_text};
use super::pattern::Pattern;
use super::zones::{self, Zone};
use crate::functions::compare;
use crate::relation::ChunkData;

/// Longest IN list that is evaluated as a chain of comparisons.
const MAX_IN_LIST: usize = 16;

/// A comparison operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    fn of(op: Operator) -> Option<Self> {
        Some(match op {
            Operator::Eq => Self::Equal,
            Operator::NotEq => Self::NotEqual,
            Operator::Lt => Self::Less,
            Operator::LtEq => Self::LessOrEqual,
            Operator::Gt => Self::Greater,
            Operator::GtEq => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    /// The operator with its operands exchanged.
    fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    /// Compares as well with the greatest value of a column that is not above a constant, which may lie between two of them.
    fn of_floor(self, is_exact: bool) -> Option<Self> {
        match self {
            _ if is_exact => Some(self),
            Self::Greater | Self::GreaterOrEqual => Some(Self::Greater),
            Self::Less | Self::LessOrEqual => Some(Self::LessOrEqual),
            Self::Equal | Self::NotEqual => None,
        }
    }

    fn apply(self, left: &dyn Datum, right: &dyn Datum) -> Result<BooleanArray, ArrowError> {
        match self {
            Self::Equal => cmp::eq(left, right),
            Self::NotEqual => cmp::neq(left, right),
            Self::Less => cmp::lt(left, right),
            Self::LessOrEqual => cmp::lt_eq(left, right),
            Self::Greater => cmp::gt(left, right),
            Self::GreaterOrEqual => cmp::gt_eq(left, right),
        }
    }

    /// Whether all, some or no values of `[min, max]` compare so with `value`.
    fn over(self, (min, max): (i64, i64), value: i64) -> Verdict {
        let (all, none) = match self {
            Self::Equal => (min == value && max == value, value < min || value > max),
            Self::NotEqual => (value < min || value > max, min == value && max == value),
            Self::Less => (max < value, min >= value),
            Self::LessOrEqual => (max <= value, min > value),
            Self::Greater => (min > value, max <= value),
            Self::GreaterOrEqual => (min >= value, max < value),
        };
        match (all, none) {
            (true, _) => Verdict::All,
            (_, true) => Verdict::None,
            _ => Verdict::Some,
        }
    }
}

/// What is known about the rows of a chunk that pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    None,
    Some,
    All,
}

/// A filter.
#[derive(Clone, Debug)]
pub(crate) enum Predicate {
    Compare(Test),
    IsNull { column: ColumnId, negated: bool },
    Like(Pattern),
    Computed(Computed),
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
}

/// One comparison with a constant.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) column: ColumnId,
    pub(crate) comparison: Comparison,
    /// The constant as a 64-bit integer, for columns with zones.
    pub(crate) raw: Option<i64>,
    /// The constant as an array of one value of the column's type.
    pub(super) value: ArrayRef,
    /// The column's type.
    pub(super) ty: DataType,
}

/// Makes an expression over the relation's columns one that can be evaluated. `None`: it cannot be.
pub(crate) type Make<'a> = dyn Fn(&Expr) -> Option<Computed> + 'a;

impl Predicate {
    /// Whether a filter over a relation of this schema is one of ours. An unbound parameter counts as a constant of its type:
    /// only the shape matters.
    pub(crate) fn fits(expr: &Expr, schema: &SchemaRef) -> bool {
        Self::read(expr, schema, &|_| Some(Computed::any())).is_some()
    }

    /// Reads a filter over a relation of this schema. `None`: not one of ours.
    pub(crate) fn read(expr: &Expr, schema: &SchemaRef, make: &Make<'_>) -> Option<Self> {
        // Where parts cannot be told apart, the whole may still be of one column.
        Self::part(expr, schema, make).or_else(|| Self::computed(expr, schema, make))
    }

    fn part(expr: &Expr, schema: &SchemaRef, make: &Make<'_>) -> Option<Self> {
        let part = |expr: &Expr| Self::part(expr, schema, make);
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                Some(Self::And(vec![part(left)?, part(right)?]))
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
                Some(Self::Or(vec![part(left)?, part(right)?]))
            }
            _ => Self::simple(expr, schema).or_else(|| Self::computed(expr, schema, make)),
        }
    }

    fn computed(expr: &Expr, schema: &SchemaRef, make: &Make<'_>) -> Option<Self> {
        if !is_of_one_text(expr, schema) {
            return None;
        }
        make(expr).map(Self::Computed)
    }

    /// A filter of one column that is no expression.
    fn simple(expr: &Expr, schema: &SchemaRef) -> Option<Self> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let comparison = Comparison::of(*op)?;
                match (column(left, schema), column(right, schema)) {
                    (Some(c), None) => Self::test(c, comparison, right, schema),
                    (None, Some(c)) => Self::test(c, comparison.mirrored(), left, schema),
                    _ => Self::of_widened(left, comparison, right, schema)
                        .or_else(|| Self::of_widened(right, comparison.mirrored(), left, schema)),
                }
            }
            Expr::Between(Between { expr, negated: false, low, high }) => {
                let c = column(expr, schema)?;
                let low = Self::test(c, Comparison::GreaterOrEqual, low, schema)?;
                let high = Self::test(c, Comparison::LessOrEqual, high, schema)?;
                Some(Self::And(vec![low, high]))
            }
            Expr::InList(InList { expr, list, negated }) if list.len() <= MAX_IN_LIST => {
                let c = column(expr, schema)?;
                let one = if *negated { Comparison::NotEqual } else { Comparison::Equal };
                let tests: Option<Vec<_>> = list.iter().map(|v| Self::test(c, one, v, schema)).collect();
                Some(if *negated { Self::And(tests?) } else { Self::Or(tests?) })
            }
            Expr::ScalarFunction(function) => Self::of_any_scale(function, schema),
            Expr::Like(like) => Pattern::read(like, column(&like.expr, schema)?, schema).map(Self::Like),
            Expr::IsNull(e) => Some(Self::IsNull { column: column(e, schema)?, negated: false }),
            Expr::IsNotNull(e) => Some(Self::IsNull { column: column(e, schema)?, negated: true }),
            _ => None,
        }
    }

    /// A comparison of a column that was widened, without loss, for a constant of more digits: `quantity <= 100000` of a
    /// NUMERIC(2,0) or a SMALLINT.
    fn of_widened(
        widened: &Expr,
        comparison: Comparison,
        constant: &Expr,
        schema: &SchemaRef,
    ) -> Option<Self> {
        let (Expr::Cast(Cast { expr, field }), Expr::Literal(constant, _)) = (widened, constant) else {
            return None;
        };
        let of = column(expr, schema)?;
        let ty = schema.field(of.index()).data_type();
        if constant.data_type() != *field.data_type() {
            return None;
        }
        let floored = of_integer(ty, constant).or_else(|| of_decimal(ty, constant))?;
        Self::of_floor(of, comparison, floored, schema)
    }

    /// A comparison of a NUMERIC column with a constant of any scale, as parameters are.
    fn of_any_scale(function: &ScalarFunction, schema: &SchemaRef) -> Option<Self> {
        let comparison = Comparison::of(compare::operator_of(&function.func)?)?;
        let [left, right] = function.args.as_slice() else { return None };
        let (of, comparison, constant) = match (column(left, schema), column(right, schema)) {
            (Some(of), None) => (of, comparison, right),
            (None, Some(of)) => (of, comparison.mirrored(), left),
            _ => return None,
        };
        match constant {
            Expr::Literal(constant, _) if !constant.is_null() => {
                let floored = floor_of(schema.field(of.index()).data_type(), constant)?;
                Self::of_floor(of, comparison, floored, schema)
            }
            // Only the shape matters until the parameters are bound.
            Expr::Literal(..) | Expr::Placeholder(_) => Self::of_null(of, comparison, schema),
            _ => None,
        }
    }

    /// A comparison with NULL, which holds for no row.
    fn of_null(of: ColumnId, comparison: Comparison, schema: &SchemaRef) -> Option<Self> {
        let null = ScalarValue::try_new_null(schema.field(of.index()).data_type()).ok()?;
        Self::test(of, comparison, &Expr::Literal(null, None), schema)
    }

    /// A comparison with a constant of which this is known.
    fn of_floor(
        of: ColumnId,
        comparison: Comparison,
        ((value, is_exact), range): Floored,
        schema: &SchemaRef,
    ) -> Option<Self> {
        let comparison = comparison.of_floor(is_exact)?;
        let ty = schema.field(of.index()).data_type();
        if range.contains(&value) {
            let constant = match *ty {
                DataType::Int16 => ScalarValue::Int16(i16::try_from(value).ok()),
                DataType::Int32 => ScalarValue::Int32(i32::try_from(value).ok()),
                DataType::Decimal128(precision, scale) => {
                    ScalarValue::Decimal128(Some(value), precision, scale)
                }
                _ => return None,
            };
            return Self::test(of, comparison, &Expr::Literal(constant, None), schema);
        }
        let is_above = value > *range.end();
        let holds = match comparison {
            Comparison::Equal => false,
            Comparison::NotEqual => true,
            Comparison::Less | Comparison::LessOrEqual => is_above,
            Comparison::Greater | Comparison::GreaterOrEqual => !is_above,
        };
        match holds {
            true => Some(Self::IsNull { column: of, negated: true }),
            false => Self::of_null(of, comparison, schema),
        }
    }

    fn test(column: ColumnId, comparison: Comparison, constant: &Expr, schema: &SchemaRef) -> Option<Self> {
        let ty = schema.field(column.index()).data_type();
        let scalar = match constant {
            Expr::Literal(value, _) => value.clone(),
            // Only the shape matters until the parameters are bound.
            Expr::Placeholder(p) => {
                let field = p.field.as_ref()?;
                ScalarValue::try_new_null(field.data_type()).ok()?
            }
            Expr::Cast(Cast { expr, field }) if matches!(**expr, Expr::Placeholder(_)) => {
                ScalarValue::try_new_null(field.data_type()).ok()?
            }
            _ => return None,
        };
        if scalar.data_type() != *ty || !is_comparable(ty) {
            return None;
        }
        let raw = if zones::has_zones(ty) { raw_constant(&scalar) } else { None };
        if zones::has_zones(ty) && raw.is_none() && !scalar.is_null() {
            return None;
        }
        let value = scalar.to_array().ok()?;
        Some(Self::Compare(Test { column, comparison, raw, value, ty: ty.clone() }))
    }

    /// What evaluating it costs, by rank: a pattern looks at each text by itself, an expression may do anything, and fail.
    pub(crate) fn cost(&self) -> u8 {
        match self {
            Self::Compare(_) | Self::IsNull { .. } => 0,
            Self::Like(_) => 1,
            Self::Computed(_) => 2,
            Self::And(parts) | Self::Or(parts) => parts.iter().map(Self::cost).max().unwrap_or(0),
        }
    }

    /// All columns the filter reads.
    pub(crate) fn columns(&self, into: &mut BTreeSet<ColumnId>) {
        match self {
            Self::Compare(test) => {
                into.insert(test.column);
            }
            Self::IsNull { column, .. } => {
                into.insert(*column);
            }
            Self::Like(pattern) => {
                into.insert(pattern.column);
            }
            Self::Computed(computed) => into.extend(computed.columns()),
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|p| p.columns(into)),
        }
    }

    /// Writes the filter as numbers: equal numbers, equal filters. `None`: it cannot be written so.
    pub(crate) fn write(&self, into: &mut Vec<i64>) -> Option<()> {
        let mut parts = |kind: i64, parts: &[Self]| {
            into.extend([kind, parts.len() as i64]);
            parts.iter().try_for_each(|part| part.write(into))
        };
        match self {
            Self::And(all) => parts(0, all),
            Self::Or(any) => parts(1, any),
            Self::IsNull { column, negated } => {
                into.extend([2, column.0.into(), (*negated).into()]);
                Some(())
            }
            Self::Like(_) | Self::Computed(_) => None,
            Self::Compare(test) => {
                into.extend([3, test.column.0.into(), test.comparison as i64, test.raw?]);
                Some(())
            }
        }
    }

    /// What zone maps prove; `zone` gives the zone of a column, if it has one.
    pub(crate) fn verdict(&self, zone: &mut dyn FnMut(ColumnId) -> Option<Zone>) -> Verdict {
        match self {
            Self::Compare(test) if test.value.is_null(0) => Verdict::None,
            Self::Compare(test) => match (test.raw, zone(test.column)) {
                (Some(value), Some(Zone { range: Some(range), nulls })) => {
                    match test.comparison.over(range, value) {
                        Verdict::All if nulls > 0 => Verdict::Some,
                        verdict => verdict,
                    }
                }
                (Some(_), Some(Zone { range: None, .. })) => Verdict::None,
                _ => Verdict::Some,
            },
            Self::Like(_) | Self::Computed(_) => Verdict::Some,
            Self::IsNull { column, negated } => match zone(*column) {
                Some(Zone { nulls: 0, .. }) => {
                    if *negated {
                        Verdict::All
                    } else {
                        Verdict::None
                    }
                }
                Some(Zone { range: None, .. }) => {
                    if *negated {
                        Verdict::None
                    } else {
                        Verdict::All
                    }
                }
                _ => Verdict::Some,
            },
            Self::And(parts) => {
                let mut all = true;
                for part in parts {
                    match part.verdict(zone) {
                        Verdict::None => return Verdict::None,
                        verdict => all &= verdict == Verdict::All,
                    }
                }
                if all { Verdict::All } else { Verdict::Some }
            }
            Self::Or(parts) => {
                let mut none = true;
                for part in parts {
                    match part.verdict(zone) {
                        Verdict::All => return Verdict::All,
                        verdict => none &= verdict == Verdict::None,
                    }
                }
                if none { Verdict::None } else { Verdict::Some }
            }
        }
    }

    /// The rows that pass. Of rows that are not `within` it may say either.
    pub(crate) fn mask(
        &self,
        chunk: &dyn ChunkData,
        within: Option<&BooleanBuffer>,
        around: &mut Around<'_>,
    ) -> datafusion::common::Result<BooleanBuffer> {
        if let Some(mask) = codes::list(self, chunk, within) {
            return Ok(mask);
        }
        match self {
            // Masks of other comparisons may be kept, and so are of all rows.
            Self::Compare(test) if test.raw.is_none() => match chunk.encoded(test.column) {
                Some(column) => {
                    Ok(codes::narrowed(chunk.slots(), within, |mask| test.narrow(&*column, mask)))
                }
                None => Ok((around.masks)(test)?),
            },
            Self::Compare(test) => Ok((around.masks)(test)?),
            Self::IsNull { column, negated } => Ok(is_null(chunk, *column, *negated, within)),
            Self::Like(pattern) => Ok(pattern.mask(chunk, within)?),
            Self::Computed(computed) => computed.mask(chunk, within, around.computed),
            Self::And(parts) => {
                // Rows that are not wanted come back in no part: evaluating them might fail.
                let mut all = within.cloned();
                for part in parts {
                    let passed = part.mask(chunk, all.as_ref(), around)?;
                    all = Some(all.map_or_else(|| passed.clone(), |all| &all & &passed));
                }
                Ok(all.unwrap_or_else(|| BooleanBuffer::new_set(chunk.slots())))
            }
            Self::Or(parts) => {
                let mut any: Option<BooleanBuffer> = None;
                for part in parts {
                    // Rows that have passed need not be looked at again.
                    let left = any.as_ref().map(|any| within.map_or_else(|| !any, |within| within & &!any));
                    let passed = part.mask(chunk, left.as_ref().or(within), around)?;
                    any = Some(any.map_or_else(|| passed.clone(), |any| &any | &passed));
                }
                Ok(any.unwrap_or_else(|| BooleanBuffer::new_unset(chunk.slots())))
            }
        }
    }
}

fn is_null(
    chunk: &dyn ChunkData,
    column: ColumnId,
    negated: bool,
    within: Option<&BooleanBuffer>,
) -> BooleanBuffer {
    if let Some(encoded) = chunk.encoded(column) {
        let mut test = if negated { encoding::Test::IsNotNull } else { encoding::Test::IsNull };
        return codes::narrowed(chunk.slots(), within, |mask| encoded.select(&mut test, mask));
    }
    let nulls = match zones::raw_values(chunk, column) {
        Some(raw) => raw.nulls().cloned(),
        None => chunk.column(column).nulls().cloned(),
    };
    match (nulls, negated) {
        (Some(nulls), true) => nulls.inner().clone(),
        (Some(nulls), false) => !nulls.inner(),
        (None, true) => BooleanBuffer::new_set(chunk.slots()),
        (None, false) => BooleanBuffer::new_unset(chunk.slots()),
    }
}

/// Gives the mask of a comparison on a chunk.
pub(crate) type Masks<'a> = dyn FnMut(&Test) -> Result<BooleanBuffer, ArrowError> + 'a;

/// What filters take from the scan that evaluates them.
pub(crate) struct Around<'a> {
    pub(crate) masks: &'a mut Masks<'a>,
    /// For how many texts and rows expressions were evaluated.
    pub(crate) computed: &'a Count,
}

impl Test {
    /// The rows that pass.
    pub(crate) fn mask(&self, chunk: &dyn ChunkData) -> Result<BooleanBuffer, ArrowError> {
        if let Some(column) = chunk.encoded(self.column) {
            return Ok(codes::narrowed(chunk.slots(), None, |mask| self.narrow(&*column, mask)));
        }
        let raw = match (&self.ty, self.raw) {
            (DataType::Decimal128(..), Some(value)) => {
                zones::raw_values(chunk, self.column).map(|array| (array, value))
            }
            _ => None,
        };
        let result = match raw {
            Some((array, value)) => {
                self.comparison.apply(&array, &Scalar::new(Int64Array::from(vec![value])))?
            }
            None => self.comparison.apply(&chunk.column(self.column), &Scalar::new(&self.value))?,
        };
        Ok(match result.nulls() {
            Some(nulls) => result.values() & nulls.inner(),
            None => result.values().clone(),
        })
    }
}

/// Types whose comparison in Arrow is SQL's.
fn is_comparable(ty: &DataType) -> bool {
    zones::has_zones(ty)
        || matches!(
            ty,
            DataType::Boolean
                | DataType::Decimal128(..)
                | DataType::Utf8View
                | DataType::BinaryView
                | DataType::FixedSizeBinary(_)
        )
}

/// A constant as the 64-bit integer zones use.
pub(crate) fn raw_constant(scalar: &ScalarValue) -> Option<i64> {
    match scalar {
        ScalarValue::Int16(v) => v.map(i64::from),
        ScalarValue::Int32(v) | ScalarValue::Date32(v) => v.map(i64::from),
        ScalarValue::Int64(v)
        | ScalarValue::Time64Microsecond(v)
        | ScalarValue::TimestampMicrosecond(v, _) => *v,
        ScalarValue::Decimal128(v, _, _) => v.and_then(|v| i64::try_from(v).ok()),
        _ => None,
    }
}

/// The greatest value of a column's type that is not above a constant, whether it equals it, and between what all values are.
type Floored = ((i128, bool), RangeInclusive<i128>);

/// A constant of a wider type than the integers of a column.
fn of_integer(ty: &DataType, constant: &ScalarValue) -> Option<Floored> {
    let (least, most): (i64, i64) = match ty {
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        _ => return None,
    };
    let value = match *constant {
        ScalarValue::Int32(value) => value?.into(),
        ScalarValue::Int64(value) => value?,
        _ => return None,
    };
    Some(((value.into(), true), least.into()..=most.into()))
}

/// As [`of_integer`], of decimals, in units of the column's scale; the constant has as many digits on both sides of the point.
fn of_decimal(ty: &DataType, constant: &ScalarValue) -> Option<Floored> {
    let &DataType::Decimal128(precision, scale) = ty else { return None };
    let &ScalarValue::Decimal128(_, wide, wide_scale) = constant else { return None };
    let digits = |precision: u8, scale: i8| i16::from(precision) - i16::from(scale);
    let is_wide = wide_scale >= scale && digits(wide, wide_scale) >= digits(precision, scale);
    if is_wide { floor_of(ty, constant) } else { None }
}

/// A constant of any scale, not NULL, in units of the scale of a NUMERIC column.
fn floor_of(ty: &DataType, constant: &ScalarValue) -> Option<Floored> {
    let &DataType::Decimal128(precision, scale) = ty else { return None };
    let floor = compare::floor_of(constant, u8::try_from(scale).ok()?)?;
    let most = 10_i128.checked_pow(precision.into())? - 1;
    Some((floor, -most..=most))
}

fn column(expr: &Expr, schema: &SchemaRef) -> Option<ColumnId> {
    match expr {
        Expr::Column(c) => {
            let index = schema.index_of(&c.name).ok()?;
            u16::try_from(index).ok().map(ColumnId)
        }
        _ => None,
    }
}

impl Predicate {
    /// What a physical filter over `projection` says about chunks. Conjuncts of other kinds are
    /// left out, so the result may pass more rows than the filter; it serves for pruning only.
    pub(crate) fn read_physical(
        expr: &Arc<dyn PhysicalExpr>,
        projection: &[ColumnId],
        schema: &SchemaRef,
    ) -> Option<Self> {
        let binary = expr.downcast_ref::<expressions::BinaryExpr>()?;
        let read = |e| Self::read_physical(e, projection, schema);
        match binary.op() {
            Operator::And => match (read(binary.left()), read(binary.right())) {
                (Some(a), Some(b)) => Some(Self::And(vec![a, b])),
                (one, other) => one.or(other),
            },
            Operator::Or => Some(Self::Or(vec![read(binary.left())?, read(binary.right())?])),
            op => {
                let comparison = Comparison::of(*op)?;
                let column = binary.left().downcast_ref::<expressions::Column>()?;
                let constant = binary.right().downcast_ref::<expressions::Literal>()?;
                let id = *projection.get(column.index())?;
                if schema.field(id.index()).name() != column.name() {
                    return None;
                }
                let constant = Expr::Literal(constant.value().clone(), None);
                Self::test(id, comparison, &constant, schema)
            }
        }
    }
}
