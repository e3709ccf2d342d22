//! Rows that a join drops, left out before their other columns are read.
//!
//! Responsible for: joins whose built side has few values of a column, of which most rows of the probing side have another.
//! Not responsible for: the join, which looks at the rows that are left ([`super::exec`]).
//! **Invariant:** only rows are left out for which the dynamic filter of the join is not true.
//!
//! Q9 of CH-benCHmark joins 27 of 100,000 items with all order lines, of which one in 800 is left. To read six columns of each
//! line, pack two of them, and look for the key in the join's table, it took 31 ms over hot rows and 35 over frozen ones; to
//! look for the item in a table of bits first, and read the other columns of those lines alone, it takes 16 and 18.

use std::sync::Arc;

use albireo_base::ColumnId;
use albireo_encoding::{ScalarRef, Test};
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Int16Type, Int32Type, Int64Type, SchemaRef,
};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, Literal};

use super::codes;
use super::predicate::raw_constant;
use crate::pack::Pack;
use crate::relation::ChunkData;

/// The most values, each of which the join's filter has an expression for.
pub(crate) const MOST_VALUES: usize = 500;
/// The longest table of bits: 128 KiB.
const MOST_BITS: u64 = 1 << 20;
/// One row in so many is expected to stay at most, if all values between the least and the greatest are as frequent.
const ONE_IN: u64 = 16;
/// One in so many at most, once so many rows were looked at: else it is not worth it.
const ONE_IN_FOUND: u64 = 4;
const LOOKED_AT: u64 = 1 << 16;

/// Values of a column that the built side of a join has.
#[derive(Debug)]
pub(super) struct Members {
    column: ColumnId,
    /// Ascending.
    values: Vec<i64>,
    /// Whether the least value plus so much is one.
    bits: Vec<u64>,
    looked_at: u64,
    stayed: u64,
}

impl Members {
    /// What a dynamic filter over `projection` names; of several, what is the smallest part of the values that there can be.
    pub(super) fn read(expr: &dyn PhysicalExpr, projection: &[ColumnId], schema: &SchemaRef) -> Option<Self> {
        let mut best: Option<(f64, Self)> = None;
        each_list(expr, &mut |list| {
            for (index, range, values) in lists_of(list) {
                let Some(column) = projection.get(index).copied() else { continue };
                if !is_taken(schema.field(column.index()).data_type()) {
                    continue;
                }
                let Some(members) = Self::new(column, values) else { continue };
                let of = range.map_or(f64::MAX, |(least, greatest)| greatest as f64 - least as f64 + 1.0);
                let part = members.values.len() as f64 / of;
                if best.as_ref().is_none_or(|(least, _)| part < *least) {
                    best = Some((part, members));
                }
            }
        });
        best.map(|(_, members)| members)
    }

    /// `None`: they are too far apart.
    fn new(column: ColumnId, mut values: Vec<i64>) -> Option<Self> {
        values.sort_unstable();
        values.dedup();
        let (least, greatest) = (*values.first()?, *values.last()?);
        let span = greatest.checked_sub(least)? as u64;
        if span >= MOST_BITS {
            return None;
        }
        let mut bits = vec![0; (span / 64 + 1) as usize];
        for value in &values {
            let at = (value - least) as usize;
            bits[at / 64] |= 1 << (at % 64);
        }
        Some(Self { column, values, bits, looked_at: 0, stayed: 0 })
    }

    /// The column.
    pub(super) fn column(&self) -> ColumnId {
        self.column
    }

    /// How many of the values lie in a range.
    pub(super) fn count_in(&self, (least, greatest): (i64, i64)) -> usize {
        let below = |bound: i64| self.values.partition_point(|value| *value < bound);
        self.values.partition_point(|value| *value <= greatest) - below(least)
    }

    /// Whether to look for so many of them in each row of a chunk whose values lie in a range leaves out so many that it
    /// pays.
    pub(super) fn pays(&self, count: usize, (least, greatest): (i64, i64)) -> bool {
        let others = (greatest.wrapping_sub(least) as u64) / ONE_IN;
        count as u64 <= others && (self.looked_at < LOOKED_AT || self.stayed * ONE_IN_FOUND <= self.looked_at)
    }

    /// Of the rows that are `within`, all if that is not said, those that have one of the values.
    pub(super) fn mask(&mut self, chunk: &dyn ChunkData, within: Option<&BooleanBuffer>) -> BooleanBuffer {
        let mask = match chunk.encoded(self.column) {
            Some(encoded) => {
                let values: Vec<ScalarRef<'_>> = self.values.iter().map(|v| ScalarRef::Integer(*v)).collect();
                codes::narrowed(chunk.slots(), within, |mask| encoded.select(&mut Test::In(&values), mask))
            }
            None => {
                let found = self.found(&chunk.column(self.column));
                within.map_or_else(|| found.clone(), |within| &found & within)
            }
        };
        self.looked_at += within.map_or(chunk.slots(), BooleanBuffer::count_set_bits) as u64;
        self.stayed += mask.count_set_bits() as u64;
        mask
    }

    fn found(&self, array: &ArrayRef) -> BooleanBuffer {
        match array.data_type() {
            DataType::Int16 => self.found_in(array.as_primitive::<Int16Type>()),
            DataType::Int32 => self.found_in(array.as_primitive::<Int32Type>()),
            DataType::Int64 => self.found_in(array.as_primitive::<Int64Type>()),
            DataType::Date32 => self.found_in(array.as_primitive::<Date32Type>()),
            ty => unreachable!("{ty} is not taken"),
        }
    }

    fn found_in<T: ArrowPrimitiveType>(&self, array: &PrimitiveArray<T>) -> BooleanBuffer
    where
        T::Native: Into<i64>,
    {
        let (values, least) = (array.values(), self.values[0]);
        let found = BooleanBuffer::collect_bool(values.len(), |row| {
            let at = values[row].into().wrapping_sub(least) as u64;
            self.bits.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
        });
        match array.nulls() {
            Some(nulls) => &found & nulls.inner(),
            None => found,
        }
    }
}

/// Whether values of a type are looked for.
fn is_taken(ty: &DataType) -> bool {
    matches!(ty, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32)
}

/// Calls `visit` for each IN list that must be true.
fn each_list(expr: &dyn PhysicalExpr, visit: &mut dyn FnMut(&InListExpr)) {
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>().filter(|binary| *binary.op() == Operator::And) {
        each_list(&**binary.left(), visit);
        each_list(&**binary.right(), visit);
    } else if let Some(list) = expr.downcast_ref::<InListExpr>().filter(|list| !list.negated()) {
        visit(list);
    }
}

/// A column's place in what the scan delivers, between what its values lie if that is known, and those of a list.
type ListOfColumn = (usize, Option<(i64, i64)>, Vec<i64>);

/// Which values a list has of which columns.
fn lists_of(list: &InListExpr) -> Vec<ListOfColumn> {
    let mut values = Vec::with_capacity(list.list().len());
    for constant in list.list() {
        let Some(constant) = constant.downcast_ref::<Literal>().map(Literal::value) else {
            return Vec::new();
        };
        match raw_constant(constant) {
            Some(value) => values.push(value),
            // Nothing is equal to NULL.
            None if constant.is_null() => {}
            None => return Vec::new(),
        }
    }
    if let Some(column) = list.expr().downcast_ref::<Column>() {
        return vec![(column.index(), None, values)];
    }
    let Some(pack) = list.expr().downcast_ref::<Pack>() else { return Vec::new() };
    let of_part = |(expr, range, values): (&Arc<dyn PhysicalExpr>, _, _)| {
        Some((expr.downcast_ref::<Column>()?.index(), Some(range), values))
    };
    pack.values_of(&values).filter_map(of_part).collect()
}
