//! A chunk's columns as Arrow arrays.

use std::panic::RefUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use albireo_base::ColumnId;
use albireo_base::ids::CHUNK_SHIFT;
use albireo_encoding::Selection;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray, StringViewArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::{ChunkView, DatabaseSnapshot};
use crate::directory::HeapList;
use crate::layout::{ColumnLocation, Physical};
use crate::rows::{OVERFLOW, VIEW_INLINE_BYTES, View, inline_overflow_place};

/// Keeps a snapshot alive for the buffers that point into its blocks.
struct Pin(#[allow(dead_code, reason = "held for its drop")] Arc<DatabaseSnapshot>);
// A snapshot is only read; a panic elsewhere cannot leave it half changed.
impl RefUnwindSafe for Pin {}

pub(super) fn column(chunk: &ChunkView<'_>, column: ColumnId) -> ArrayRef {
    let at = chunk.location(column);
    let ty = chunk.view.parts.schema.field(column.index()).data_type().clone();
    let array = match chunk.encoded(column) {
        Some(encoded) => encoded.array(&Selection::All),
        None => array_of(chunk, &at, ty),
    };
    assert_eq!(array.len(), chunk.slots(), "an array has a value for each slot");
    array
}

pub(super) fn array_of(chunk: &ChunkView<'_>, at: &ColumnLocation, ty: DataType) -> ArrayRef {
    match ty {
        DataType::Boolean => booleans(chunk, at),
        DataType::Int16 => primitive::<Int16Type>(chunk, at, ty),
        DataType::Int32 => primitive::<Int32Type>(chunk, at, ty),
        DataType::Int64 => primitive::<Int64Type>(chunk, at, ty),
        DataType::Float32 => primitive::<Float32Type>(chunk, at, ty),
        DataType::Float64 => primitive::<Float64Type>(chunk, at, ty),
        DataType::Date32 => primitive::<Date32Type>(chunk, at, ty),
        DataType::Time64(_) => primitive::<Time64MicrosecondType>(chunk, at, ty),
        DataType::Timestamp(..) => primitive::<TimestampMicrosecondType>(chunk, at, ty),
        DataType::Decimal128(..) => decimals(chunk, at, ty),
        DataType::FixedSizeBinary(width) => {
            let values = gather(chunk, at);
            Arc::new(FixedSizeBinaryArray::new(width, values, nulls_at(chunk, at)))
        }
        _ => strings(chunk, at, &ty),
    }
}

pub(super) fn raw_i64(chunk: &ChunkView<'_>, column: ColumnId) -> Option<ScalarBuffer<i64>> {
    let at = chunk.location(column);
    (at.physical == Physical::I64).then(|| match chunk.encoded(column) {
        Some(encoded) => encoded.integers::<i64>(&Selection::All).into(),
        None => scalars::<i64>(chunk, &at),
    })
}

pub(super) fn nulls(chunk: &ChunkView<'_>, column: ColumnId) -> Option<NullBuffer> {
    let at = chunk.location(column);
    match chunk.encoded(column) {
        Some(encoded) => encoded.nulls(&Selection::All),
        None => nulls_at(chunk, &at),
    }
}

/// The NULL bits, copied: 2 KiB at most, against a cache line fetched per reader otherwise.
fn nulls_at(chunk: &ChunkView<'_>, at: &ColumnLocation) -> Option<NullBuffer> {
    if !at.nullable() {
        return None;
    }
    let bits = BooleanBuffer::new(chunk.bits(at.null_entry as usize).into(), 0, chunk.slots());
    let nulls = NullBuffer::new(bits);
    debug_assert_eq!(nulls.len(), chunk.slots(), "a bit for each slot");
    (nulls.null_count() > 0).then_some(nulls)
}

/// A buffer over `bytes` bytes of a block, without copying.
fn borrow(chunk: &ChunkView<'_>, block: NonNull<u8>, bytes: usize) -> Buffer {
    let pin = Arc::new(Pin(Arc::clone(&chunk.view.snapshot)));
    // SAFETY: the block has at least `bytes` bytes and lives as long as the snapshot, which the
    // pin holds. Bytes of slots that the snapshot sees are not written while it lives.
    unsafe { Buffer::from_custom_allocation(block, bytes, pin) }
}

/// The slots' values of `N` bytes each, side by side.
pub(super) fn gather(chunk: &ChunkView<'_>, at: &ColumnLocation) -> Buffer {
    let (slots, width) = (chunk.slots(), at.physical.width());
    if at.alone && at.shift == CHUNK_SHIFT {
        return borrow(chunk, chunk.entry(at.entry as usize).block, slots * width);
    }
    let mut values: Vec<u8> = Vec::with_capacity(slots * width);
    let per_block = 1usize << at.shift;
    for (i, first) in (0..slots).step_by(per_block).enumerate() {
        let block = chunk.entry(at.entry as usize + i).block;
        for slot in 0..per_block.min(slots - first) {
            // SAFETY: the slot's value lies inside the block (the layout's I-1), was written
            // before the snapshot and is not written while it lives.
            values.extend_from_slice(unsafe {
                let place = block.as_ptr().add(slot * at.stride as usize + at.offset as usize);
                std::slice::from_raw_parts(place, width)
            });
        }
    }
    debug_assert_eq!(values.len(), slots * width, "a value for each slot");
    values.into()
}

pub(super) fn scalars<T: arrow_buffer::ArrowNativeType>(
    chunk: &ChunkView<'_>,
    at: &ColumnLocation,
) -> ScalarBuffer<T> {
    let slots = chunk.slots();
    if at.alone && at.shift == CHUNK_SHIFT {
        return borrow(chunk, chunk.entry(at.entry as usize).block, slots * size_of::<T>()).into();
    }
    assert_eq!(at.physical.width(), size_of::<T>(), "values are as wide as their type");
    let mut values: Vec<T> = Vec::with_capacity(slots);
    let per_block = 1usize << at.shift;
    for (i, first) in (0..slots).step_by(per_block).enumerate() {
        let block = chunk.entry(at.entry as usize + i).block;
        let (stride, offset) = (at.stride as usize, at.offset as usize);
        // SAFETY: as in `gather`, and every bit pattern is a value of a native Arrow type.
        values.extend(
            (0..per_block.min(slots - first)).map(|slot| unsafe {
                block.as_ptr().add(slot * stride + offset).cast::<T>().read_unaligned()
            }),
        );
    }
    values.into()
}

fn primitive<P: ArrowPrimitiveType>(chunk: &ChunkView<'_>, at: &ColumnLocation, ty: DataType) -> ArrayRef {
    let values = scalars::<P::Native>(chunk, at);
    Arc::new(PrimitiveArray::<P>::new(values, nulls_at(chunk, at)).with_data_type(ty))
}

fn decimals(chunk: &ChunkView<'_>, at: &ColumnLocation, ty: DataType) -> ArrayRef {
    let values: ScalarBuffer<i128> = match at.physical {
        Physical::I64 => scalars::<i64>(chunk, at).iter().map(|&v| i128::from(v)).collect(),
        _ => scalars::<i128>(chunk, at),
    };
    Arc::new(PrimitiveArray::<Decimal128Type>::new(values, nulls_at(chunk, at)).with_data_type(ty))
}

fn booleans(chunk: &ChunkView<'_>, at: &ColumnLocation) -> ArrayRef {
    let bytes = gather(chunk, at);
    let values = BooleanBuffer::collect_bool(bytes.len(), |i| bytes[i] != 0);
    Arc::new(BooleanArray::new(values, nulls_at(chunk, at)))
}

fn strings(chunk: &ChunkView<'_>, at: &ColumnLocation, ty: &DataType) -> ArrayRef {
    let index = chunk.chunk * chunk.view.parts.layout.heap_columns.len() + at.heap as usize;
    let heap = chunk.part.dir.heaps[index].as_deref();
    let mut buffers = Vec::new();
    let views = match at.physical {
        Physical::View => scalars::<u128>(chunk, at),
        _ => inline_views(chunk, at, heap, &mut buffers),
    };
    if let Some(heap) = heap {
        for (i, block) in heap.blocks.iter().enumerate() {
            buffers.push(borrow(chunk, block.block, heap.readable(i)));
        }
    }
    let nulls = nulls_at(chunk, at);
    // SAFETY: views were made from valid text by this crate; long ones point at bytes of the
    // buffers that were written before them.
    unsafe {
        match ty {
            DataType::BinaryView => Arc::new(BinaryViewArray::new_unchecked(views, buffers, nulls)),
            _ => Arc::new(StringViewArray::new_unchecked(views, buffers, nulls)),
        }
    }
}

/// Views of inline slots: short texts in the view, longer ones pointing into our block, which
/// becomes a data buffer.
fn inline_views(
    chunk: &ChunkView<'_>,
    at: &ColumnLocation,
    heap: Option<&HeapList>,
    buffers: &mut Vec<Buffer>,
) -> ScalarBuffer<u128> {
    let slots = chunk.slots();
    let width = at.physical.width();
    let per_block = 1usize << at.shift;
    let blocks = slots.div_ceil(per_block) as u32;
    let mut views: Vec<u128> = Vec::with_capacity(slots);
    for (i, first) in (0..slots).step_by(per_block).enumerate() {
        let count = per_block.min(slots - first);
        let bytes = (count - 1) * at.stride as usize + at.offset as usize + width;
        let data = borrow(chunk, chunk.entry(at.entry as usize + i).block, bytes);
        for slot in 0..count {
            let start = slot * at.stride as usize + at.offset as usize;
            let text = &data[start..start + width];
            let view = match text[0] {
                OVERFLOW => {
                    let heap = heap.expect("an overflowed text has a heap");
                    let (block, offset, length) = inline_overflow_place(heap, text);
                    View::of(heap.bytes(block, offset, length), blocks + block, offset)
                }
                length => View::of(&text[1..=length as usize], i as u32, start as u32 + 1),
            };
            views.push(u128::from_le_bytes(view.0));
        }
        buffers.push(data);
    }
    debug_assert!(VIEW_INLINE_BYTES == 12 && views.len() == slots, "a view for each slot");
    views.into()
}
