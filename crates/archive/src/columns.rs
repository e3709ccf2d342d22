//! Columns as files hold them: live rows only, in types that every Arrow tool reads.
//!
//! In memory texts are views into blocks; on disk they are `Utf8` and `Binary` with offsets of 32 bits, which
//! older tools know too. All other types are the same in both places.

use std::sync::Arc;

use albireo_base::{ColumnId, SqlType, arrow_type};
use albireo_storage::ChunkView;
use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, SchemaRef};
use arrow_select::filter::{FilterBuilder, FilterPredicate};

/// Text of one column in one batch: far below what offsets of 32 bits address.
const BATCH_TEXT_BYTES: usize = 256 << 20;

/// The Arrow type that a column of `ty` has in a file.
pub fn disk_type(ty: SqlType) -> DataType {
    match arrow_type(ty) {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other,
    }
}

/// The live rows of a chunk, in one batch or, if it has very long texts, several.
pub(crate) fn batches_of(chunk: &ChunkView<'_>, schema: &SchemaRef) -> Vec<RecordBatch> {
    let columns = (0..schema.fields().len()).map(|column| chunk.column(ColumnId(column as u16)));
    let columns: Vec<ArrayRef> = columns.collect();
    let mut batches = Vec::new();
    put_batches(&columns, chunk.live().as_ref(), 0..chunk.slots(), schema, &mut batches);
    batches
}

fn put_batches(
    columns: &[ArrayRef],
    live: Option<&BooleanBuffer>,
    slots: std::ops::Range<usize>,
    schema: &SchemaRef,
    batches: &mut Vec<RecordBatch>,
) {
    let too_long = || columns.iter().any(|column| text_bytes(column, slots.clone()) > BATCH_TEXT_BYTES);
    if slots.len() > 1 && too_long() {
        let middle = slots.start + slots.len() / 2;
        put_batches(columns, live, slots.start..middle, schema, batches);
        put_batches(columns, live, middle..slots.end, schema, batches);
        return;
    }
    let live = live.map(|live| BooleanArray::new(live.slice(slots.start, slots.len()), None));
    let rows = live.as_ref().map_or(slots.len(), BooleanArray::true_count);
    if rows == 0 {
        return;
    }
    let filter = live.as_ref().map(|live| FilterBuilder::new(live).optimize().build());
    let column = |column: &ArrayRef| {
        live_rows(&column.slice(slots.start, slots.len()), live.as_ref(), filter.as_ref())
    };
    let columns = columns.iter().map(column).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options);
    batches.push(batch.expect("columns have the schema's types and the live rows"));
}

/// Bytes of the texts in these slots; those of dead rows count.
fn text_bytes(column: &ArrayRef, slots: std::ops::Range<usize>) -> usize {
    let views = match column.data_type() {
        DataType::Utf8View => column.as_string_view().views(),
        DataType::BinaryView => column.as_binary_view().views(),
        _ => return 0,
    };
    // A view begins with its length.
    views[slots].iter().map(|&view| view as u32 as usize).sum()
}

fn live_rows(column: &ArrayRef, live: Option<&BooleanArray>, filter: Option<&FilterPredicate>) -> ArrayRef {
    let is_live = |slot: usize| live.is_none_or(|live| live.value(slot));
    let slots = || (0..column.len()).filter(|&slot| is_live(slot));
    let bytes = || text_bytes(column, 0..column.len());
    match column.data_type() {
        DataType::Utf8View => {
            let (views, mut texts) =
                (column.as_string_view(), StringBuilder::with_capacity(column.len(), bytes()));
            slots().for_each(|slot| texts.append_option(views.is_valid(slot).then(|| views.value(slot))));
            Arc::new(texts.finish())
        }
        DataType::BinaryView => {
            let (views, mut texts) =
                (column.as_binary_view(), BinaryBuilder::with_capacity(column.len(), bytes()));
            slots().for_each(|slot| texts.append_option(views.is_valid(slot).then(|| views.value(slot))));
            Arc::new(texts.finish())
        }
        _ => match filter {
            Some(filter) => filter.filter(column).expect("the filter is as long as the column"),
            None => Arc::clone(column),
        },
    }
}
