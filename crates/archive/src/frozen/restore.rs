//! From an Arrow array back to the encoded column that it was made of.
//!
//! Nothing here trusts an array to be what it should: what the header asks for and the array has not is an error, and
//! [`Column::from_parts`] checks the rest.

use std::sync::Arc;

use albireo_encoding::{Column, FromPartsError, Kind, NullForm, Section, SectionName, compress_texts};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ByteArrayType, Decimal128Type, Float32Type, Float64Type, Int16Type, UInt8Type, UInt16Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, GenericByteArray, RunArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::made::{Integers, Made, Piece};
use super::{HEADER, SYMBOLS};

/// Bytes of a section: an array's, or made of them.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// A buffer of the file.
    Buffer(Buffer),
    /// Others.
    Made(Vec<u8>),
}

impl Section for Bytes {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Buffer(buffer) => buffer,
            Self::Made(bytes) => bytes,
        }
    }
}

/// What an array consists of.
pub(crate) struct Layers<'a> {
    nulls: Option<&'a NullBuffer>,
    runs: Option<&'a RunArray<Int16Type>>,
    keys: Option<&'a dyn Array>,
    values: &'a ArrayRef,
}

/// Sections of compressed texts, each until it is taken.
struct Compressed {
    offsets: Vec<u8>,
    values: Vec<u8>,
    symbols: Vec<u8>,
}

impl Compressed {
    fn take(&mut self, name: SectionName) -> Option<Bytes> {
        let section = match name {
            SectionName::Offsets => &mut self.offsets,
            SectionName::Values => &mut self.values,
            SectionName::Symbols => &mut self.symbols,
            SectionName::Nulls | SectionName::Ends | SectionName::Codes => return None,
        };
        Some(Bytes::Made(std::mem::take(section)))
    }
}

impl<'a> Layers<'a> {
    pub(crate) fn of(array: &'a ArrayRef) -> Result<Self, String> {
        let (mut inner, mut nulls, mut runs, mut keys) = (array, None, None, None);
        if let Some(whole) = array.as_struct_opt() {
            nulls = whole.nulls();
            inner = whole.columns().first().ok_or("a structure without a field")?;
        }
        if let DataType::RunEndEncoded(..) = inner.data_type() {
            let list = inner.as_any().downcast_ref::<RunArray<Int16Type>>().ok_or("ends are not 16 bits")?;
            if list.offset() != 0 || list.run_ends().len() != inner.len() {
                return Err("a part of runs".to_owned());
            }
            (runs, inner) = (Some(list), list.values());
        }
        if let Some(dictionary) = inner.as_any_dictionary_opt() {
            keys = Some(dictionary.keys());
            nulls = nulls.or_else(|| dictionary.keys().nulls());
            inner = dictionary.values();
        } else if runs.is_none() {
            nulls = nulls.or_else(|| inner.nulls());
        }
        Ok(Self { nulls, runs, keys, values: inner })
    }

    /// What a section is made of.
    pub(crate) fn piece(&self, header: &Column<u64>, name: SectionName) -> Result<Piece, String> {
        let lacks = || format!("the array has no {name}");
        match name {
            SectionName::Nulls => self.null_rows(header),
            SectionName::Ends => {
                let ends = self.runs.ok_or_else(lacks)?.run_ends().inner();
                Ok(Piece { bytes: ends.inner().clone(), made: Made::Ends })
            }
            SectionName::Codes => {
                let keys = self.keys.ok_or_else(lacks)?;
                let one = keys.as_primitive_opt::<UInt8Type>().map(|keys| keys.values().inner());
                let two = keys.as_primitive_opt::<UInt16Type>().map(|keys| keys.values().inner());
                one.or(two).cloned().map(Piece::same).ok_or_else(lacks)
            }
            SectionName::Offsets => match self.values.data_type() {
                DataType::Utf8 => Ok(offsets(self.values.as_string::<i32>().offsets())),
                DataType::Binary => Ok(offsets(self.values.as_binary::<i32>().offsets())),
                _ => Err(lacks()),
            },
            SectionName::Values if header.is_packed() => {
                let bytes = self.plain(Kind::Text).ok_or_else(lacks)?;
                Ok(Piece { bytes, made: Made::Packed(Arc::new(header.clone())) })
            }
            SectionName::Values => match header.frame() {
                Some(frame) => self.differences(frame).ok_or_else(|| "the array has no integers".to_owned()),
                None => self.plain(header.kind()).map(Piece::same).ok_or_else(lacks),
            },
            SectionName::Symbols => Err(lacks()),
        }
    }

    /// Offsets and codes of the texts, compressed by the symbols of their field, and these.
    fn compressed(&self, field: &Field) -> Result<Compressed, String> {
        let symbols = field.metadata().get(SYMBOLS).and_then(|text| BASE64_STANDARD.decode(text).ok());
        let symbols = symbols.ok_or("it has no symbols")?;
        let texts = match self.values.data_type() {
            DataType::Utf8 => each_text(self.values.as_string::<i32>()),
            DataType::Binary => each_text(self.values.as_binary::<i32>()),
            _ => None,
        };
        let texts = texts.ok_or("the array has no texts")?;
        let (offsets, values) = compress_texts(&symbols, &texts).ok_or("its symbols cannot be")?;
        Ok(Compressed { offsets, values, symbols })
    }

    /// Which rows are NULL, as bits or as ranges.
    fn null_rows(&self, header: &Column<u64>) -> Result<Piece, String> {
        let Some(nulls) = self.nulls else {
            return Ok(Piece { bytes: Buffer::default(), made: Made::NullBits { rows: 0 } });
        };
        let bytes = nulls.len().div_ceil(8);
        if nulls.offset() != 0 || nulls.buffer().len() < bytes {
            return Err("a part of NULLs".to_owned());
        }
        let rows = nulls.len() as u32;
        let made = match header.null_form() {
            NullForm::Ranges => Made::NullRanges { rows },
            _ => Made::NullBits { rows },
        };
        Ok(Piece { bytes: nulls.buffer().slice_with_length(0, bytes), made })
    }

    /// Integers as differences to a base.
    fn differences(&self, (base, width): (i64, usize)) -> Option<Piece> {
        let of = Integers::of(self.values.data_type())?;
        let (data, count) = (self.values.to_data(), self.values.len());
        let (bytes, length) = (data.buffers().first()?, of.bytes(count));
        let made = Made::Differences { of, count: count as u32, base, width: width as u8 };
        let is_whole = data.offset() == 0 && length <= bytes.len();
        is_whole.then(|| Piece { bytes: bytes.slice_with_length(0, length), made })
    }

    /// Values that are as they are.
    fn plain(&self, kind: Kind) -> Option<Buffer> {
        fn of<P: ArrowPrimitiveType>(values: &ArrayRef) -> Option<Buffer> {
            values.as_primitive_opt::<P>().map(|values| values.values().inner().clone())
        }
        let values = self.values;
        match kind {
            Kind::F32 => of::<Float32Type>(values),
            Kind::F64 => of::<Float64Type>(values),
            Kind::I128 => of::<Decimal128Type>(values),
            Kind::Uuid => values.as_fixed_size_binary_opt().map(|values| values.values().clone()),
            Kind::Text => match values.data_type() {
                DataType::Utf8 => Some(texts(values.as_string::<i32>())),
                DataType::Binary => Some(texts(values.as_binary::<i32>())),
                _ => None,
            },
            _ => None,
        }
    }
}

fn offsets(offsets: &OffsetBuffer<i32>) -> Piece {
    Piece::same(offsets.inner().inner().clone())
}

/// The bytes of all texts, the first of which begins at 0.
fn texts<T: ByteArrayType<Offset = i32>>(texts: &GenericByteArray<T>) -> Buffer {
    let end = texts.offsets().last().map_or(0, |end| *end as usize);
    texts.values().slice_with_length(0, end.min(texts.values().len()))
}

/// All texts; `None`: one lies outside of the bytes.
fn each_text<T: ByteArrayType<Offset = i32>>(texts: &GenericByteArray<T>) -> Option<Vec<&[u8]>> {
    let bytes = texts.values().as_slice();
    let text = |ends: &[i32; 2]| {
        let [start, end] = ends.map(|end| usize::try_from(end).ok());
        bytes.get(start?..end?)
    };
    texts.offsets().array_windows::<2>().map(text).collect()
}

/// What a field says of its column: the header, and that read.
pub(crate) fn described(field: &Field, rows: usize) -> Result<(Vec<u8>, Column<u64>), String> {
    let header = field.metadata().get(HEADER).and_then(|text| BASE64_STANDARD.decode(text).ok());
    let header = header.ok_or_else(|| "it has no header".to_owned())?;
    let says = Column::of_header(&header).map_err(|malformed| malformed.to_string())?;
    match says.rows() == rows {
        true => Ok((header, says)),
        false => Err(format!("its header is of {} rows", says.rows())),
    }
}

/// The column that `array` was made of.
pub(crate) fn column_of(field: &Field, array: &ArrayRef) -> Result<Column<Bytes>, String> {
    let wrong = |what: String| format!("column {}: {what}", field.name());
    let (header, says) = described(field, array.len()).map_err(wrong)?;
    let layers = Layers::of(array).map_err(wrong)?;
    let compressed = says.is_compressed().then(|| layers.compressed(field));
    let mut compressed = compressed.transpose().map_err(wrong)?;
    let section = |name, _| {
        if let Some(made) = compressed.as_mut().and_then(|compressed| compressed.take(name)) {
            return Ok(made);
        }
        let Piece { bytes, made } = layers.piece(&says, name)?;
        match made {
            Made::Same => Ok(Bytes::Buffer(bytes)),
            made => made.section(&bytes).map(Bytes::Made),
        }
    };
    let column = Column::from_parts(&header, says.kind(), says.rows(), section);
    column.map_err(|error| match error {
        FromPartsError::Section(what) => wrong(what),
        FromPartsError::Malformed(malformed) => wrong(malformed.to_string()),
    })
}
