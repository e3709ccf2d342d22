//! The rows of a chunk that passed, as a batch.
//!
//! Responsible for: chunks of which most rows pass, or with columns that have no fixed width. Not responsible for: chunks
//! of which few rows pass ([`super::gather`]), and which rows these are ([`super::exec`]).

use std::sync::Arc;

use albireo_base::ColumnId;
use albireo_encoding as encoding;
use arrow::array::{Array, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{FilterBuilder, FilterPredicate};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type, SchemaRef};
use datafusion::common::Result;

use super::exec::ScanSpec;
use super::text_ids::TextIds;
use super::{codes, zones};
use crate::errors::{external, internal};
use crate::relation::ChunkData;

/// The `selected` rows of `mask` of all columns.
pub(super) fn materialize(
    chunk: &dyn ChunkData,
    mask: Option<BooleanBuffer>,
    selected: usize,
    spec: &ScanSpec,
    schema: &SchemaRef,
    ids: &mut [TextIds],
) -> Result<RecordBatch> {
    let encoded: Vec<_> = spec.projection.iter().map(|column| chunk.encoded(*column)).collect();
    let mask = mask.filter(|_| selected < chunk.slots());
    let filter = match &mask {
        Some(mask) if encoded.iter().any(Option::is_none) => {
            let builder = FilterBuilder::new(&BooleanArray::new(mask.clone(), None));
            // Worth preparing the runs once when several columns are filtered.
            Some(if spec.projection.len() > 1 { builder.optimize() } else { builder }.build())
        }
        _ => None,
    };
    let words = mask.as_ref().map(codes::words);
    let rows = words.as_ref().map_or(encoding::Selection::All, |words| encoding::Selection::Mask(words));
    let mut columns = Vec::with_capacity(spec.projection.len());
    for (index, (column, encoded)) in spec.projection.iter().zip(encoded).enumerate() {
        let ids = ids.iter_mut().find(|ids| ids.column() == index);
        columns.push(match (encoded, ids) {
            (Some(encoded), None) => encoded.array(&rows),
            (Some(encoded), Some(ids)) => ids.of_encoded(&*encoded, &rows, selected)?,
            (None, None) => read_column(chunk, *column, schema.field(index).data_type(), filter.as_ref())?,
            (None, Some(ids)) => {
                ids.of_texts(&read_column(chunk, *column, &DataType::Utf8View, filter.as_ref())?)?
            }
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(selected));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// The selected values of one column. Decimals are widened after the selection.
fn read_column(
    chunk: &dyn ChunkData,
    column: ColumnId,
    ty: &DataType,
    filter: Option<&FilterPredicate>,
) -> Result<ArrayRef> {
    let raw = match ty {
        DataType::Decimal128(..) => zones::raw_values(chunk, column),
        _ => None,
    };
    Ok(match (raw, filter) {
        (Some(raw), None) => widen(&raw, ty),
        (Some(raw), Some(filter)) => {
            let selected = filter.filter(&raw)?;
            match selected.as_any().downcast_ref::<PrimitiveArray<Int64Type>>() {
                Some(selected) => widen(selected, ty),
                None => return Err(external(internal("a filter changed its input's type"))),
            }
        }
        (None, None) => chunk.column(column),
        (None, Some(filter)) => filter.filter(&chunk.column(column))?,
    })
}

fn widen(raw: &PrimitiveArray<Int64Type>, ty: &DataType) -> ArrayRef {
    let wide: PrimitiveArray<Decimal128Type> = raw.unary(i128::from);
    Arc::new(wide.with_data_type(ty.clone()))
}
