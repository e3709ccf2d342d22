//! A chunk of a snapshot as it is encoded.

use std::sync::Arc;

use albireo_encoding::Column;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;

use super::ChunkView;
use super::arrays::{array_of, gather, scalars};
use crate::frozen::{ChunkEncoder, Destination, EncodedChunk, FrozenChunk, Presence, Values};
use crate::layout::{ColumnLocation, Physical, VALIDITY_ENTRY};
use crate::pool::{BlockPool, OutOfMemory, Part};
use crate::texts;

/// Encodes a chunk, which `shares` texts with others of its table where that pays.
pub(super) fn encode(
    chunk: &ChunkView<'_>,
    encoder: &mut ChunkEncoder,
    pool: &BlockPool,
    shares: bool,
) -> Result<EncodedChunk, OutOfMemory> {
    assert!(chunk.is_encodable(), "a chunk is encoded once, when it is whole");
    let layout = &chunk.view.parts.layout;
    let live = chunk.bits(VALIDITY_ENTRY);
    let place = texts::place_of(chunk.partition().0, chunk.number());
    let mut columns = Vec::with_capacity(layout.columns.len());
    for at in &layout.columns {
        let at = chunk.location(at.column);
        let texts = layout.texts_of(at.column).filter(|_| shares).map(|texts| (texts, place));
        columns.push(column(chunk, &at, &live, encoder, Destination { pool, texts })?);
    }
    let entries = &chunk.part.dir.entries[chunk.chunk * layout.entries()..][..layout.entries()];
    let made_from = entries[VALIDITY_ENTRY + 1..].iter().map(|entry| (entry.block, entry.tag)).collect();
    let rows = live.iter().map(|word| word.count_ones() as usize).sum();
    let frozen = FrozenChunk::new(columns, made_from, chunk.heap_bytes(), rows);
    Ok(EncodedChunk { number: chunk.chunk, chunk: Arc::new(frozen) })
}

fn column(
    chunk: &ChunkView<'_>,
    at: &ColumnLocation,
    live: &[u64],
    encoder: &mut ChunkEncoder,
    to: Destination<'_>,
) -> Result<Column<Part>, OutOfMemory> {
    let rows = chunk.slots();
    let nulls: Option<Vec<u64>> = at.nullable().then(|| {
        // The table's bits say which values are there.
        chunk.bits(at.null_entry as usize).iter().map(|bits| !bits).collect()
    });
    let presence = Presence { live, nulls: nulls.as_deref(), rows };
    match at.physical {
        Physical::Bool => encoder.column(at.physical, Values::Bools(&gather(chunk, at)), presence, to),
        Physical::I16 => encoder.column(at.physical, Values::I16(&scalars(chunk, at)), presence, to),
        Physical::I32 => encoder.column(at.physical, Values::I32(&scalars(chunk, at)), presence, to),
        Physical::I64 => encoder.column(at.physical, Values::I64(&scalars(chunk, at)), presence, to),
        Physical::F32 => encoder.column(at.physical, Values::F32(&scalars(chunk, at)), presence, to),
        Physical::F64 => encoder.column(at.physical, Values::F64(&scalars(chunk, at)), presence, to),
        Physical::I128 | Physical::Uuid => {
            encoder.column(at.physical, Values::Wide(&gather(chunk, at)), presence, to)
        }
        Physical::Inline(_) | Physical::View => {
            let texts = array_of(chunk, at, DataType::BinaryView);
            let texts = texts.as_binary_view();
            let has_text = |row: usize| {
                // What is dead may have lost its text.
                let is = |bits: &[u64]| bits[row / 64] >> (row % 64) & 1 == 1;
                is(live) && !nulls.as_deref().is_some_and(is)
            };
            let mut all = (0..rows).map(|row| if has_text(row) { texts.value(row) } else { &[] });
            encoder.column(at.physical, Values::Texts(&mut all), presence, to)
        }
    }
}
