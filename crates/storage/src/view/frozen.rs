//! Columns of a frozen chunk as Arrow arrays.

use std::ptr::NonNull;
use std::sync::Arc;

use albireo_encoding::{Column, Number, Section, SectionName, Selection};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray, StringViewArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use crate::frozen::FrozenChunk;
use crate::layout::{ColumnLocation, Physical};
use crate::pool::Part;
use crate::rows::View;

pub(super) fn array(chunk: &Arc<FrozenChunk>, at: &ColumnLocation, ty: DataType) -> ArrayRef {
    let column = chunk.column(at.column);
    match ty {
        DataType::Boolean => {
            let values = integers::<i8>(chunk, at);
            let values = BooleanBuffer::collect_bool(values.len(), |row| values[row] != 0);
            Arc::new(BooleanArray::new(values, nulls(chunk, at)))
        }
        DataType::Int16 => primitive::<Int16Type>(chunk, at, integers(chunk, at), ty),
        DataType::Int32 => primitive::<Int32Type>(chunk, at, integers(chunk, at), ty),
        DataType::Int64 => primitive::<Int64Type>(chunk, at, integers(chunk, at), ty),
        DataType::Date32 => primitive::<Date32Type>(chunk, at, integers(chunk, at), ty),
        DataType::Time64(_) => primitive::<Time64MicrosecondType>(chunk, at, integers(chunk, at), ty),
        DataType::Timestamp(..) => primitive::<TimestampMicrosecondType>(chunk, at, integers(chunk, at), ty),
        DataType::Float32 => {
            let mut values = Vec::with_capacity(column.rows());
            column.floats_into(&Selection::All, &mut values);
            primitive::<Float32Type>(chunk, at, values, ty)
        }
        DataType::Float64 => {
            let mut values = Vec::with_capacity(column.rows());
            column.floats_into(&Selection::All, &mut values);
            primitive::<Float64Type>(chunk, at, values, ty)
        }
        DataType::Decimal128(..) if at.physical == Physical::I64 => {
            let values = integers::<i64>(chunk, at).into_iter().map(i128::from).collect();
            primitive::<Decimal128Type>(chunk, at, values, ty)
        }
        DataType::Decimal128(..) => {
            let values = wide(column).into_iter().map(i128::from_le_bytes).collect();
            primitive::<Decimal128Type>(chunk, at, values, ty)
        }
        DataType::FixedSizeBinary(width) => {
            let values = Buffer::from(wide(column).into_flattened());
            Arc::new(FixedSizeBinaryArray::new(width, values, nulls(chunk, at)))
        }
        _ => strings(chunk, at, &ty),
    }
}

/// The values of a column of integers in all slots.
pub(super) fn integers<T: Number>(chunk: &FrozenChunk, at: &ColumnLocation) -> Vec<T> {
    let column = chunk.column(at.column);
    let mut values = Vec::with_capacity(column.rows());
    column.integers_into(&Selection::All, &mut values);
    values
}

fn wide(column: &Column<Part>) -> Vec<[u8; 16]> {
    let mut values = Vec::with_capacity(column.rows());
    column.wide_into(&Selection::All, &mut values);
    values
}

/// Bits of the slots that are not NULL; `None` if none is.
pub(super) fn nulls(chunk: &FrozenChunk, at: &ColumnLocation) -> Option<NullBuffer> {
    let column = chunk.column(at.column);
    if !column.has_nulls() {
        return None;
    }
    let mut bits = Vec::new();
    column.nulls_of(&Selection::All, &mut bits);
    bits.iter_mut().for_each(|word| *word = !*word);
    let nulls = NullBuffer::new(BooleanBuffer::new(bits.into(), 0, column.rows()));
    (nulls.null_count() > 0).then_some(nulls)
}

fn primitive<P: ArrowPrimitiveType>(
    chunk: &FrozenChunk,
    at: &ColumnLocation,
    values: Vec<P::Native>,
    ty: DataType,
) -> ArrayRef {
    let values = ScalarBuffer::from(values);
    Arc::new(PrimitiveArray::<P>::new(values, nulls(chunk, at)).with_data_type(ty))
}

/// Texts as views into the encoded bytes.
fn strings(chunk: &Arc<FrozenChunk>, at: &ColumnLocation, ty: &DataType) -> ArrayRef {
    let column = chunk.column(at.column);
    let bytes = column.section(SectionName::Values).map_or(&[][..], Section::bytes);
    let nulls = nulls(chunk, at);
    let mut others: Vec<u8> = Vec::new();
    let mut views: Vec<u128> = Vec::with_capacity(column.rows());
    let mut last: (*const u8, usize, u128) = (std::ptr::null(), 0, 0);
    column.for_each_text(&Selection::All, |text| {
        // Runs and constants give one text again and again.
        if (text.as_ptr(), text.len()) != (last.0, last.1) {
            let view = match (text.as_ptr() as usize).checked_sub(bytes.as_ptr() as usize) {
                Some(offset) if offset + text.len() <= bytes.len() => View::of(text, 0, offset as u32),
                // The only text of the column lies in its header.
                _ => {
                    let offset = others.len() as u32;
                    others.extend_from_slice(text);
                    View::of(text, 1, offset)
                }
            };
            last = (text.as_ptr(), text.len(), u128::from_le_bytes(view.0));
        }
        views.push(last.2);
    });
    let buffers = vec![borrow(chunk, bytes), Buffer::from(others)];
    let views = ScalarBuffer::from(views);
    // SAFETY: the views were made just now, of texts that lie in these buffers; texts were written from valid ones.
    unsafe {
        match ty {
            DataType::BinaryView => Arc::new(BinaryViewArray::new_unchecked(views, buffers, nulls)),
            _ => Arc::new(StringViewArray::new_unchecked(views, buffers, nulls)),
        }
    }
}

/// Keeps a chunk for the buffers that point into it.
struct Pin(#[allow(dead_code, reason = "held for its drop")] Arc<FrozenChunk>);
// A chunk is only read; a panic elsewhere cannot leave it half changed.
impl std::panic::RefUnwindSafe for Pin {}

/// A buffer over bytes of a chunk, without copying.
fn borrow(chunk: &Arc<FrozenChunk>, bytes: &[u8]) -> Buffer {
    if bytes.is_empty() {
        return Buffer::from(Vec::<u8>::new());
    }
    let pin = Arc::new(Pin(Arc::clone(chunk)));
    // SAFETY: the bytes are the chunk's, which the pin holds, and are never written.
    unsafe { Buffer::from_custom_allocation(NonNull::from(bytes).cast(), bytes.len(), pin) }
}
