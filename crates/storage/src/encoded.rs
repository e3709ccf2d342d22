//! Columns of a frozen chunk: as they are, and of the rows wanted as Arrow arrays.

use std::ptr::NonNull;
use std::sync::Arc;

use albireo_encoding::{
    Column, DictionaryView, Float, Number, ScalarRef, Section, SectionName, Selection, Summary,
};
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
use crate::rows::{VIEW_INLINE_BYTES, View};

/// A column of a frozen chunk: asked and decoded as it is, of some rows or all.
pub struct EncodedView<'a> {
    chunk: &'a Arc<FrozenChunk>,
    at: ColumnLocation,
    ty: &'a DataType,
}

impl<'a> EncodedView<'a> {
    pub(crate) fn new(chunk: &'a Arc<FrozenChunk>, at: ColumnLocation, ty: &'a DataType) -> Self {
        Self { chunk, at, ty }
    }

    /// The column. Rows that were dead when it was encoded, and so are dead for whoever sees it, have any values.
    pub fn column(&self) -> &'a Column<Part> {
        self.chunk.column(self.at.column)
    }

    /// What is known of its values without reading them.
    pub fn summary(&self) -> &'a Summary {
        self.chunk.summary(self.at.column)
    }

    /// The values of `rows` as an Arrow array of the column's type.
    pub fn array(&self, rows: &Selection<'_>) -> ArrayRef {
        let nulls = self.nulls(rows);
        match self.ty {
            DataType::Boolean => {
                let values: Vec<i8> = self.integers(rows);
                let values = BooleanBuffer::collect_bool(values.len(), |row| values[row] != 0);
                Arc::new(BooleanArray::new(values, nulls))
            }
            DataType::Int16 => self.primitive::<Int16Type>(self.integers(rows), nulls),
            DataType::Int32 => self.primitive::<Int32Type>(self.integers(rows), nulls),
            DataType::Int64 => self.primitive::<Int64Type>(self.integers(rows), nulls),
            DataType::Date32 => self.primitive::<Date32Type>(self.integers(rows), nulls),
            DataType::Time64(_) => self.primitive::<Time64MicrosecondType>(self.integers(rows), nulls),
            DataType::Timestamp(..) => self.primitive::<TimestampMicrosecondType>(self.integers(rows), nulls),
            DataType::Float32 => self.primitive::<Float32Type>(self.floats(rows), nulls),
            DataType::Float64 => self.primitive::<Float64Type>(self.floats(rows), nulls),
            DataType::Decimal128(..) if self.at.physical == Physical::I64 => {
                self.primitive::<Decimal128Type>(self.integers(rows), nulls)
            }
            DataType::Decimal128(..) => {
                let values = self.wide(rows).into_iter().map(i128::from_le_bytes).collect();
                self.primitive::<Decimal128Type>(values, nulls)
            }
            DataType::FixedSizeBinary(width) => {
                let values = Buffer::from(self.wide(rows).into_flattened());
                Arc::new(FixedSizeBinaryArray::new(*width, values, nulls))
            }
            _ => self.strings(rows, nulls),
        }
    }

    /// How many values are stored that rows share: those of a dictionary, of runs, or one. `None`: each row has its own.
    pub fn shared(&self) -> Option<usize> {
        self.chunk.form(self.at.column).shared()
    }

    /// The texts that rows share, in the order in which [`Column::places_into`] numbers them; `None`: each row has its own.
    pub fn shared_texts(&self) -> Option<ArrayRef> {
        let column = self.column();
        column.shared()?;
        if let Some(dictionary) = column.lender().and_then(|_| column.dictionary()) {
            let mut copies = Copies::of(&dictionary, dictionary.entries());
            let views = (0..dictionary.entries()).map(|code| copies.view(code)).collect();
            return Some(self.views(views, copies.bytes.into(), None));
        }
        let stored = column.stored();
        let Some(&bytes) = stored.section(SectionName::Values) else {
            return Some(self.strings(&Selection::Range(0..column.rows().min(1)), None));
        };
        let mut views: Vec<u128> = Vec::with_capacity(stored.rows());
        stored.texts_as(&Selection::All, |text| view_of(text, bytes), &mut views);
        Some(self.views(views, borrow(self.chunk, bytes), None))
    }

    /// The values of a column of integers.
    pub(crate) fn integers<T: Number>(&self, rows: &Selection<'_>) -> Vec<T> {
        let mut values = Vec::with_capacity(rows.count(self.column().rows()));
        self.column().integers_into(rows, &mut values);
        values
    }

    fn floats<T: Float>(&self, rows: &Selection<'_>) -> Vec<T> {
        let mut values = Vec::with_capacity(rows.count(self.column().rows()));
        self.column().floats_into(rows, &mut values);
        values
    }

    fn wide(&self, rows: &Selection<'_>) -> Vec<[u8; 16]> {
        let mut values = Vec::with_capacity(rows.count(self.column().rows()));
        self.column().wide_into(rows, &mut values);
        values
    }

    /// Bits of those of `rows` that are not NULL; `None` if none is.
    pub fn nulls(&self, rows: &Selection<'_>) -> Option<NullBuffer> {
        let column = self.column();
        if !column.has_nulls() {
            return None;
        }
        let mut bits = Vec::new();
        if column.nulls_of(rows, &mut bits) == 0 {
            return None;
        }
        bits.iter_mut().for_each(|word| *word = !*word);
        Some(NullBuffer::new(BooleanBuffer::new(bits.into(), 0, rows.count(column.rows()))))
    }

    fn primitive<P: ArrowPrimitiveType>(
        &self,
        values: Vec<P::Native>,
        nulls: Option<NullBuffer>,
    ) -> ArrayRef {
        let values = ScalarBuffer::from(values);
        Arc::new(PrimitiveArray::<P>::new(values, nulls).with_data_type(self.ty.clone()))
    }

    /// Texts as views into the encoded bytes; if they are packed, compressed or shared with other chunks, into a copy of
    /// those wanted.
    fn strings(&self, rows: &Selection<'_>, nulls: Option<NullBuffer>) -> ArrayRef {
        let column = self.column();
        if let Some(dictionary) = column.lender().and_then(|_| column.dictionary()) {
            let mut codes = Vec::new();
            column.places_into(rows, &mut codes);
            let mut copies = Copies::of(&dictionary, codes.len());
            let views = codes.into_iter().map(|code: u16| copies.view(code.into())).collect();
            return self.views(views, copies.bytes.into(), nulls);
        }
        if !column.lends_texts() {
            let (mut ends, mut bytes) = (Vec::new(), Vec::new());
            column.texts_into(rows, &mut ends, &mut bytes);
            let mut start = 0;
            let view = |end: u32| {
                let text = &bytes[std::mem::replace(&mut start, end as usize)..end as usize];
                view_of(text, &bytes)
            };
            let views = ends.into_iter().map(view).collect();
            return self.views(views, bytes.into(), nulls);
        }
        // The only text of a constant lies in its header.
        let of_constant = || column.constant().map_or(&[][..], text_of);
        let (bytes, buffer) = match column.section(SectionName::Values).map(Section::bytes) {
            Some(bytes) => (bytes, borrow(self.chunk, bytes)),
            None => (of_constant(), Buffer::from(of_constant())),
        };
        let mut views: Vec<u128> = Vec::with_capacity(rows.count(column.rows()));
        column.texts_as(rows, |text| view_of(text, bytes), &mut views);
        self.views(views, buffer, nulls)
    }

    /// Texts that lie in `buffer`, by views that were made of them.
    fn views(&self, views: Vec<u128>, buffer: Buffer, nulls: Option<NullBuffer>) -> ArrayRef {
        let views = ScalarBuffer::from(views);
        // SAFETY: the views are those of texts that lie in the buffer; texts were written from valid ones.
        unsafe {
            match self.ty {
                DataType::BinaryView => Arc::new(BinaryViewArray::new_unchecked(views, vec![buffer], nulls)),
                _ => Arc::new(StringViewArray::new_unchecked(views, vec![buffer], nulls)),
            }
        }
    }
}

/// Copies of those texts of a dictionary that are asked for, each once. Texts that chunks share lie apart from each other, and
/// a buffer for each would be passed on with each array that is made of the first.
struct Copies<'a, S> {
    dictionary: &'a DictionaryView<'a, S>,
    /// By code; 0 if it is empty, or was not asked for.
    views: Vec<u128>,
    bytes: Vec<u8>,
}

impl<'a, S: Section> Copies<'a, S> {
    /// No copies yet; so many rows will be asked for.
    fn of(dictionary: &'a DictionaryView<'a, S>, rows: usize) -> Self {
        let entries = dictionary.entries();
        let all = || (0..entries).map(|code| text_of(dictionary.entry(code)).len()).sum();
        let bytes = Vec::with_capacity(if rows >= entries { all() } else { 0 });
        Self { dictionary, views: vec![0; entries], bytes }
    }

    /// The view of a text among the copies.
    #[inline]
    fn view(&mut self, code: usize) -> u128 {
        match self.views[code] {
            0 => self.copy(code),
            view => view,
        }
    }

    fn copy(&mut self, code: usize) -> u128 {
        let (text, offset) = (text_of(self.dictionary.entry(code)), self.bytes.len());
        if text.len() > VIEW_INLINE_BYTES {
            self.bytes.extend_from_slice(text);
        }
        self.views[code] = u128::from_le_bytes(View::of(text, 0, offset as u32).0);
        self.views[code]
    }
}

fn text_of(value: ScalarRef<'_>) -> &[u8] {
    match value {
        ScalarRef::Text(text) => text,
        _ => panic!("the column holds texts"),
    }
}

/// The view of a text that lies in `bytes`, the only buffer; of an empty one wherever it lies. As [`View::of`], without
/// a call that copies as many bytes as the text has.
#[inline]
fn view_of(text: &[u8], bytes: &[u8]) -> u128 {
    let offset = text.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
    if text.is_empty() {
        return 0;
    }
    assert!(offset < bytes.len() && text.len() <= bytes.len() - offset, "a text of the buffer");
    let Some(head) = bytes[offset..].first_chunk() else {
        return u128::from_le_bytes(View::of(text, 0, offset as u32).0);
    };
    let (head, length) = (u128::from_le_bytes(*head), text.len() as u128);
    match text.len() {
        0..=VIEW_INLINE_BYTES => (head & ((1_u128 << (8 * length)) - 1)) << 32 | length,
        _ => (head & u128::from(u32::MAX)) << 32 | length | (offset as u128) << 96,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn view_is_the_same_wherever_its_text_lies() {
        let bytes: Vec<u8> = (0..100).collect();
        for start in 0..=bytes.len() {
            for end in start..=bytes.len() {
                let text = &bytes[start..end];
                let expected = u128::from_le_bytes(View::of(text, 0, start as u32).0);
                assert_eq!(view_of(text, &bytes), expected, "{start}..{end}");
            }
        }
        assert_eq!(view_of(b"", &bytes), 0);
    }
}
