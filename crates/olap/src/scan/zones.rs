//! Zone maps: minimum, maximum and number of nulls of one column of one chunk.
//!
//! Responsible for: computing them on first use and keeping them for as long as the column's
//! version stands. Not responsible for: what they prove ([`super::predicate`]).
//! **Invariant:** a zone covers every slot that lives in any snapshot that sees this version, so it is valid for
//! all of these.

use std::collections::HashMap;
use std::sync::Arc;

use albireo_base::{ColumnId, TableId};
use albireo_encoding::Summary;
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::compute;
use arrow::datatypes::{
    ArrowNumericType, ArrowPrimitiveType, DataType, Date32Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use parking_lot::RwLock;

use crate::relation::{ChunkData, ChunkVersion};

/// What is known about the values of a column in a chunk, as 64-bit integers (decimals unscaled).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Zone {
    /// Smallest and largest value; `None` when all are null.
    pub(crate) range: Option<(i64, i64)>,
    /// Number of nulls.
    pub(crate) nulls: usize,
}

/// Whether columns of this type have zones.
pub(crate) fn has_zones(ty: &DataType) -> bool {
    match ty {
        DataType::Decimal128(precision, _) => *precision <= 18,
        other => matches!(
            other,
            DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::Date32
                | DataType::Time64(TimeUnit::Microsecond)
                | DataType::Timestamp(TimeUnit::Microsecond, _)
        ),
    }
}

/// The values of a column of a chunk as 64-bit integers where it has such, without widening.
pub(crate) fn raw_values(chunk: &dyn ChunkData, column: ColumnId) -> Option<PrimitiveArray<Int64Type>> {
    let values = chunk.raw_i64(column)?;
    Some(PrimitiveArray::new(values, chunk.raw_nulls(column)))
}

fn compute_zone(chunk: &dyn ChunkData, column: ColumnId, ty: &DataType) -> Option<Zone> {
    if let Some(encoded) = chunk.encoded(column) {
        return has_zones(ty).then(|| zone_of_summary(encoded.summary()));
    }
    if matches!(ty, DataType::Decimal128(..)) {
        return Some(zone_of(&raw_values(chunk, column)?));
    }
    zone_of_array(&chunk.column(column))
}

/// What an encoded column knows of its values is of those that live, and dead ones do not come back.
fn zone_of_summary(summary: &Summary) -> Zone {
    let range = summary.integers();
    debug_assert_eq!(range.is_some(), summary.count > 0, "values of types with zones are integers");
    Zone { range, nulls: summary.nulls as usize }
}

/// The zone of an array, if its type has zones.
fn zone_of_array(array: &ArrayRef) -> Option<Zone> {
    Some(match array.data_type() {
        DataType::Int16 => zone_of(array.as_primitive::<Int16Type>()),
        DataType::Int32 => zone_of(array.as_primitive::<Int32Type>()),
        DataType::Int64 => zone_of(array.as_primitive::<Int64Type>()),
        DataType::Date32 => zone_of(array.as_primitive::<Date32Type>()),
        DataType::Time64(TimeUnit::Microsecond) => zone_of(array.as_primitive::<Time64MicrosecondType>()),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            zone_of(array.as_primitive::<TimestampMicrosecondType>())
        }
        _ => return None,
    })
}

fn zone_of<T: ArrowNumericType>(array: &PrimitiveArray<T>) -> Zone
where
    <T as ArrowPrimitiveType>::Native: Into<i64>,
{
    let range = compute::min(array).zip(compute::max(array));
    Zone {
        range: range.map(|(min, max)| (min.into(), max.into())),
        nulls: array.nulls().map_or(0, NullBuffer::null_count),
    }
}

type ColumnZones = Arc<RwLock<Vec<Option<(ChunkVersion, Option<Zone>)>>>>;

/// Zones of all tables, one version a chunk and column.
#[derive(Debug, Default)]
pub(crate) struct ZoneCache {
    columns: RwLock<HashMap<(TableId, ColumnId), ColumnZones>>,
}

impl ZoneCache {
    /// The zones of one column.
    pub(crate) fn column(&self, table: TableId, column: ColumnId) -> ZoneReader {
        let known = self.columns.read().get(&(table, column)).map(Arc::clone);
        let zones =
            known.unwrap_or_else(|| Arc::clone(self.columns.write().entry((table, column)).or_default()));
        ZoneReader { column, zones }
    }

    /// Forgets a dropped table.
    pub(crate) fn forget(&self, table: TableId) {
        self.columns.write().retain(|(t, _), _| *t != table);
    }
}

/// The zones of one column of one table.
#[derive(Clone, Debug)]
pub(crate) struct ZoneReader {
    column: ColumnId,
    zones: ColumnZones,
}

impl ZoneReader {
    /// The zone of chunk `i`, computed if the cache has another version or none. `None`: the
    /// column has no zones there.
    pub(crate) fn zone(&self, i: usize, chunk: &dyn ChunkData, ty: &DataType) -> Option<Zone> {
        let version = chunk.version(self.column);
        if let Some(Some((known, zone))) = self.zones.read().get(i)
            && *known == version
        {
            return *zone;
        }
        let zone = compute_zone(chunk, self.column, ty);
        let mut zones = self.zones.write();
        if zones.len() <= i {
            zones.resize(i + 1, None);
        }
        zones[i] = Some((version, zone));
        zone
    }
}
