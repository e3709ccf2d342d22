//! Statistics of columns: range, nulls and number of distinct values, computed when a plan first
//! asks and kept until the table has grown or shrunk by a fifth.
//!
//! Units: rows. Up to [`FULL_CHUNKS`] chunks are read whole; of larger tables that many chunks
//! are sampled evenly and distinct counts extrapolated.

use std::collections::HashMap;
use std::sync::Arc;

use albireo_base::{ColumnId, TableId};
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use datafusion::common::hash_utils::{RandomState, create_hashes};
use parking_lot::Mutex;

use super::sketch::DistinctSketch;
use super::zones::{self, ZoneCache};
use crate::relation::{ReadAhead, Relation, RelationData};

/// Chunks that are read whole: four million rows.
const FULL_CHUNKS: usize = 256;

/// What is known about a column.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct ColumnFacts {
    /// Distinct values, nulls not counted; an estimate.
    pub(crate) distinct: f64,
    /// Smallest and largest value as integers, dead rows included; only for types with zones.
    pub(crate) range: Option<(i64, i64)>,
    /// Share of nulls.
    pub(crate) null_fraction: f64,
}

#[derive(Debug)]
struct TableFacts {
    rows: u64,
    columns: Vec<Option<ColumnFacts>>,
}

/// The statistics of all tables.
#[derive(Debug, Default)]
pub(crate) struct StatisticsCache {
    tables: Mutex<HashMap<TableId, Arc<Mutex<TableFacts>>>>,
}

/// Whether statistics of a table that had `then` rows still serve now that it has `now`.
pub(crate) fn still_serves(then: u64, now: u64) -> bool {
    now.abs_diff(then) <= then / 5
}

impl StatisticsCache {
    /// The facts of one column.
    pub(crate) fn column(
        &self,
        relation: &Relation,
        data: &dyn RelationData,
        zones: &ZoneCache,
        column: ColumnId,
    ) -> ColumnFacts {
        let rows = data.row_count();
        let table = {
            let mut tables = self.tables.lock();
            let fresh = || TableFacts { rows, columns: vec![None; relation.columns.len()] };
            Arc::clone(tables.entry(relation.id).or_insert_with(|| Arc::new(Mutex::new(fresh()))))
        };
        let mut table = table.lock();
        if !still_serves(table.rows, rows) || table.columns.len() != relation.columns.len() {
            *table = TableFacts { rows, columns: vec![None; relation.columns.len()] };
        }
        if let Some(facts) = table.columns[column.index()] {
            return facts;
        }
        let mut facts = analyze(relation, data, zones, column);
        if relation.keys().any(|key| key == [column]) {
            facts.distinct = rows as f64;
        }
        table.columns[column.index()] = Some(facts);
        facts
    }

    /// Forgets a dropped table.
    pub(crate) fn forget(&self, table: TableId) {
        self.tables.lock().remove(&table);
    }
}

fn analyze(relation: &Relation, data: &dyn RelationData, zones: &ZoneCache, column: ColumnId) -> ColumnFacts {
    let chunks = data.chunk_count();
    let ty = albireo_base::arrow_type(relation.columns[column.index()].ty);
    let step = chunks.div_ceil(FULL_CHUNKS).max(1);
    let reader = zones.column(relation.id, column);
    let mut range: Option<(i64, i64)> = None;
    let mut sketch = DistinctSketch::new();
    let (mut seen, mut nulls) = (0usize, 0usize);
    for i in 0..chunks {
        let chunk = data.chunk(i);
        if zones::has_zones(&ty)
            && let Some((min, max)) = reader.zone(i, &*chunk, &ty).and_then(|z| z.range)
        {
            range = Some(range.map_or((min, max), |(a, b)| (a.min(min), b.max(max))));
        }
        if i % step == 0 {
            // What cannot be read is an error of the query that needs it.
            if chunk.is_away() && chunk.fetch(&[column].into(), &mut ReadAhead::default()).is_err() {
                continue;
            }
            let array = sample_array(&*chunk, column, &ty);
            seen += array.len();
            nulls += array.null_count();
            add_hashes(&mut sketch, &array);
        }
    }
    let total: f64 = data.row_count() as f64;
    let sampled = (seen - nulls) as f64;
    let mut distinct = sketch.count().min(sampled);
    if step > 1 && distinct > sampled / 10.0 {
        distinct *= total / (seen as f64).max(1.0);
    }
    if let Some((min, max)) = range {
        distinct = distinct.min(max as f64 - min as f64 + 1.0);
    }
    ColumnFacts {
        distinct: distinct.clamp(1.0, total.max(1.0)),
        range,
        null_fraction: if seen == 0 { 0.0 } else { nulls as f64 / seen as f64 },
    }
}

fn sample_array(chunk: &dyn crate::relation::ChunkData, column: ColumnId, ty: &DataType) -> ArrayRef {
    match (ty, zones::raw_values(chunk, column)) {
        (DataType::Decimal128(..), Some(raw)) => Arc::new(raw),
        _ => chunk.column(column),
    }
}

fn add_hashes(sketch: &mut DistinctSketch, array: &ArrayRef) {
    let mut hashes = vec![0u64; array.len()];
    // A type that cannot be hashed leaves the sketch empty: few distinct values are assumed.
    if create_hashes([array], &RandomState::default(), &mut hashes).is_err() {
        return;
    }
    for (i, hash) in hashes.into_iter().enumerate() {
        if array.is_valid(i) {
            sketch.insert(hash);
        }
    }
}
