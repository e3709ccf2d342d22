//! Several integers packed into one, order kept: the first part is the most significant.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, PrimitiveArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Date32Type, Int16Type, Int32Type, Int64Type, Schema};
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;

use crate::errors::{external, internal};

/// Packed keys are less than this.
const LIMIT: u64 = 1 << 62;
/// What a row that has no key gets: NULL, or a value that the built side has not. Different on the two
/// sides of a join, so that no two such rows meet.
const NONE_BUILT: i64 = -2;
const NONE_PROBING: i64 = -1;

/// One of the integers.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    expr: Arc<dyn PhysicalExpr>,
    min: i64,
    /// Greatest value less `min`.
    span: u64,
    /// What NULL counts as, less `min`; `None`: a row with a NULL has no key.
    null: Option<i64>,
    stride: i64,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

impl Part {
    /// What is packed.
    pub(crate) fn expr(&self) -> &Arc<dyn PhysicalExpr> {
        &self.expr
    }

    /// Its least and greatest value.
    pub(crate) fn range(&self) -> (i64, i64) {
        (self.min, self.min.wrapping_add(self.span as i64))
    }

    /// What a value adds to the key, NULL too if there is room for it; negative: it is out of range.
    pub(crate) fn place(&self, value: Option<i64>) -> i64 {
        let offset = match (value, self.null) {
            (None, null) => return null.map_or(i64::MIN, |null| null * self.stride),
            (Some(value), _) => value.wrapping_sub(self.min),
        };
        if offset as u64 <= self.span { offset * self.stride } else { i64::MIN }
    }

    /// Parts that also have room for NULL, and the number of keys there are.
    pub(crate) fn with_nulls(
        exprs: Vec<&Arc<dyn PhysicalExpr>>,
        ranges: &[(i64, i64)],
    ) -> Option<(Vec<Self>, u64)> {
        let wider: Option<Vec<(i64, i64)>> =
            ranges.iter().map(|&(min, max)| Some((min, max.checked_add(1)?))).collect();
        let mut parts = Self::of(exprs, &wider?)?;
        for part in &mut parts {
            part.null = Some(part.span as i64);
            part.span -= 1;
        }
        let first = parts.first()?;
        let keys = (first.stride as u64).checked_mul(first.span + 2)?;
        Some((parts, keys))
    }

    /// Parts with the ranges that their values are to have. `None`: together they need too much room.
    pub(crate) fn of(exprs: Vec<&Arc<dyn PhysicalExpr>>, ranges: &[(i64, i64)]) -> Option<Vec<Self>> {
        let mut stride: u64 = 1;
        let mut parts = Vec::with_capacity(exprs.len());
        for (expr, &(min, max)) in exprs.into_iter().zip(ranges).rev() {
            let span = max.wrapping_sub(min) as u64;
            parts.push(Self { expr: Arc::clone(expr), min, span, null: None, stride: stride as i64 });
            stride = stride.checked_mul(span.checked_add(1)?).filter(|&s| s < LIMIT)?;
        }
        parts.reverse();
        Some(parts)
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        let rest = |p: &Self| (p.min, p.span, p.null, p.stride);
        self.expr.eq(&other.expr) && rest(self) == rest(other)
    }
}

impl Eq for Part {}

impl Hash for Part {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.expr.hash(state);
        (self.min, self.span, self.null, self.stride).hash(state);
    }
}

/// The packing expression: BIGINT, never NULL.
#[derive(PartialEq, Eq, Hash, Clone, Debug)]
pub(crate) struct Pack {
    parts: Vec<Part>,
    none: i64,
}

impl Pack {
    /// Whether values of this type can be packed.
    pub(crate) fn takes(ty: &DataType) -> bool {
        matches!(ty, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32)
    }

    /// The key of the side that a join's table is built of.
    pub(crate) fn of_built(parts: Vec<Part>) -> Self {
        Self { parts, none: NONE_BUILT }
    }

    /// The key of the other side.
    pub(crate) fn of_probing(parts: Vec<Part>) -> Self {
        Self { parts, none: NONE_PROBING }
    }
}

impl Pack {
    /// Each part, between what it lies, and what keys have there; keys of nobody are left out. There is no room for NULL in
    /// the parts of a join.
    pub(crate) fn values_of<'p>(
        &'p self,
        keys: &'p [i64],
    ) -> impl Iterator<Item = (&'p Arc<dyn PhysicalExpr>, (i64, i64), Vec<i64>)> {
        self.parts.iter().map(|part| {
            let size = part.span as i64 + 1;
            let keys = keys.iter().filter(|key| **key >= 0);
            let values = keys.map(|key| part.min + key / part.stride % size).collect();
            (&part.expr, part.range(), values)
        })
    }
}

impl fmt::Display for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pack(")?;
        for (i, part) in self.parts.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{}", part.expr)?;
        }
        f.write_str(")")
    }
}

impl PhysicalExpr for Pack {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let mut keys = Vec::new();
        place_of(&self.parts, batch, &mut keys)?;
        if keys.iter().fold(0, |all, key| all | key) < 0 {
            keys.iter_mut().filter(|key| **key < 0).for_each(|key| *key = self.none);
        }
        Ok(ColumnarValue::Array(Arc::new(Int64Array::from(keys))))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.parts.iter().map(|part| &part.expr).collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let parts = self.parts.iter().zip(children).map(|(part, expr)| Part { expr, ..part.clone() });
        Ok(Arc::new(Self { parts: parts.collect(), none: self.none }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The packed value of each row; negative: it has none.
pub(crate) fn place_of(parts: &[Part], batch: &RecordBatch, keys: &mut Vec<i64>) -> Result<()> {
    keys.clear();
    keys.resize(batch.num_rows(), 0);
    for part in parts {
        let array = part.expr.evaluate(batch)?.into_array(batch.num_rows())?;
        part.add(keys, &array)?;
    }
    Ok(())
}

/// The values that were packed into these keys by parts [`Part::with_nulls`], part by part.
pub(crate) fn unpack(parts: &[Part], keys: &[u32], types: &[DataType]) -> Result<Vec<ArrayRef>> {
    parts.iter().zip(types).map(|(part, ty)| part.unpack(keys, ty)).collect()
}

impl Part {
    /// This part of each key.
    fn unpack(&self, keys: &[u32], ty: &DataType) -> Result<ArrayRef> {
        let (stride, size) = (self.stride as u64, self.span + 2);
        let offset = |key: &u32| (u64::from(*key) / stride % size) as i64;
        let value = |key: &u32| Some(offset(key)).filter(|o| Some(*o) != self.null).map(|o| self.min + o);
        let wide: Int64Array = keys.iter().map(value).collect();
        Ok(match ty {
            DataType::Date32 => cast(&cast(&wide, &DataType::Int32)?, ty)?,
            _ => cast(&wide, ty)?,
        })
    }

    /// Adds this part to the keys. A key without a value becomes negative and stays so, because what
    /// is added to it later is less than [`LIMIT`].
    fn add(&self, keys: &mut [i64], array: &ArrayRef) -> Result<()> {
        match array.data_type() {
            DataType::Int16 => self.add_values(keys, array.as_primitive::<Int16Type>()),
            DataType::Int32 => self.add_values(keys, array.as_primitive::<Int32Type>()),
            DataType::Int64 => self.add_values(keys, array.as_primitive::<Int64Type>()),
            DataType::Date32 => self.add_values(keys, array.as_primitive::<Date32Type>()),
            _ => return Err(external(internal("a packed key has an unexpected type"))),
        }
        Ok(())
    }

    fn add_values<T: ArrowPrimitiveType>(&self, keys: &mut [i64], array: &PrimitiveArray<T>)
    where
        T::Native: Into<i64>,
    {
        let Some(nulls) = array.nulls() else {
            for (key, &value) in keys.iter_mut().zip(array.values()) {
                self.add_offset(key, value.into().wrapping_sub(self.min), self.span);
            }
            return;
        };
        // The offset of NULL is the one behind the last value's, or one that no value has.
        let (null, span) = self.null.map_or((-1, self.span), |null| (null, null as u64));
        for ((key, &value), valid) in keys.iter_mut().zip(array.values()).zip(nulls.iter()) {
            self.add_offset(key, if valid { value.into().wrapping_sub(self.min) } else { null }, span);
        }
    }

    /// Adds an offset of at most `span`; any other takes the key away.
    #[inline(always)]
    fn add_offset(&self, key: &mut i64, offset: i64, span: u64) {
        let packed = key.wrapping_add(offset.wrapping_mul(self.stride));
        *key = if offset as u64 <= span { packed } else { i64::MIN };
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Date32Array, Int16Array, Int32Array};
    use arrow::datatypes::Field;
    use datafusion::physical_expr::expressions::Column;

    use super::*;

    fn keys(ranges: &[(i64, i64)], a: Vec<Option<i16>>, b: Vec<i32>) -> Vec<i64> {
        let fields = vec![Field::new("a", DataType::Int16, true), Field::new("b", DataType::Int32, false)];
        let columns: Vec<ArrayRef> = vec![Arc::new(Int16Array::from(a)), Arc::new(Int32Array::from(b))];
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let a: Arc<dyn PhysicalExpr> = Arc::new(Column::new("a", 0));
        let b: Arc<dyn PhysicalExpr> = Arc::new(Column::new("b", 1));
        let pack = Pack::of_probing(Part::of(vec![&a, &b], ranges).unwrap());
        let packed = pack.evaluate(&batch).unwrap().into_array(batch.num_rows()).unwrap();
        packed.as_primitive::<Int64Type>().values().to_vec()
    }

    #[test]
    fn keys_in_their_ranges_are_packed_densely_in_their_order() {
        let packed =
            keys(&[(-1, 1), (10, 12)], vec![Some(-1), Some(-1), Some(0), Some(1)], vec![10, 12, 10, 12]);
        assert_eq!(packed, [0, 2, 3, 8]);
    }

    #[test]
    fn keys_outside_their_ranges_and_nulls_have_the_key_of_nobody() {
        let a = vec![None, Some(2), Some(-2), Some(0), Some(0), Some(i16::MIN)];
        let b = vec![10, 10, 10, 9, 13, i32::MAX];
        assert_eq!(keys(&[(-1, 1), (10, 12)], a, b), [NONE_PROBING; 6]);
    }

    #[test]
    fn groups_with_nulls_are_packed_and_come_back() {
        let a: Arc<dyn PhysicalExpr> = Arc::new(Column::new("a", 0));
        let b: Arc<dyn PhysicalExpr> = Arc::new(Column::new("b", 1));
        let fields = vec![Field::new("a", DataType::Int16, true), Field::new("b", DataType::Date32, true)];
        let first = Int16Array::from(vec![Some(-3), None, Some(4), None, Some(0)]);
        let second = Date32Array::from(vec![Some(7), Some(9), None, None, Some(8)]);
        let columns: Vec<ArrayRef> = vec![Arc::new(first), Arc::new(second)];
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let (parts, places) = Part::with_nulls(vec![&a, &b], &[(-3, 4), (7, 9)]).unwrap();
        assert_eq!(places, 9 * 4);
        let mut keys = Vec::new();
        place_of(&parts, &batch, &mut keys).unwrap();
        assert_eq!(keys, [0, 8 * 4 + 2, 7 * 4 + 3, 8 * 4 + 3, 3 * 4 + 1]);
        let keys: Vec<u32> = keys.into_iter().map(|key| key as u32).collect();
        assert_eq!(unpack(&parts, &keys, &[DataType::Int16, DataType::Date32]).unwrap(), batch.columns());
    }

    #[test]
    fn parts_that_need_more_room_than_there_is_are_refused() {
        let a: Arc<dyn PhysicalExpr> = Arc::new(Column::new("a", 0));
        let wide = (i64::from(i32::MIN), i64::from(i32::MAX));
        assert!(Part::of(vec![&a, &a], &[wide, wide]).is_none());
        assert!(Part::of(vec![&a], &[(i64::MIN, i64::MAX)]).is_none());
        assert!(Part::of(vec![&a, &a], &[wide, (0, 1000)]).is_some());
    }
}
