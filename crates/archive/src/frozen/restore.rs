//! From an Arrow array back to the encoded column that it was made of.
//!
//! Nothing here trusts an array to be what it should: what the header asks for and the array has not is an error, and
//! [`Column::from_parts`] checks the rest.

use albireo_encoding::{Column, FromPartsError, Kind, NullForm, Section, SectionName, compress_texts};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ByteArrayType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType, UInt8Type,
    UInt16Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, GenericByteArray, RunArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

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
struct Layers<'a> {
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
    fn of(array: &'a ArrayRef) -> Result<Self, String> {
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

    fn section(&self, header: &Column<u64>, name: SectionName) -> Result<Bytes, String> {
        let lacks = || format!("the array has no {name}");
        match name {
            SectionName::Nulls => Ok(Bytes::Made(self.null_rows(header))),
            SectionName::Ends => {
                let ends = self.runs.ok_or_else(lacks)?.run_ends().values();
                Ok(Bytes::Made(ends.iter().flat_map(|end| end.wrapping_sub(1).to_le_bytes()).collect()))
            }
            SectionName::Codes => {
                let keys = self.keys.ok_or_else(lacks)?;
                let one = keys.as_primitive_opt::<UInt8Type>().map(|keys| keys.values().inner());
                let two = keys.as_primitive_opt::<UInt16Type>().map(|keys| keys.values().inner());
                one.or(two).cloned().map(Bytes::Buffer).ok_or_else(lacks)
            }
            SectionName::Offsets => match self.values.data_type() {
                DataType::Utf8 => Ok(offsets(self.values.as_string::<i32>().offsets())),
                DataType::Binary => Ok(offsets(self.values.as_binary::<i32>().offsets())),
                _ => Err(lacks()),
            },
            SectionName::Values if header.is_packed() => {
                let texts = self.plain(Kind::Text).ok_or_else(lacks)?;
                header.pack(texts.bytes()).map(Bytes::Made).ok_or_else(|| "a text has other bytes".to_owned())
            }
            SectionName::Values => match header.frame() {
                Some((base, width)) => self.differences(base, width),
                None => self.plain(header.kind()).ok_or_else(lacks),
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
    fn null_rows(&self, header: &Column<u64>) -> Vec<u8> {
        let Some(nulls) = self.nulls else { return Vec::new() };
        let nulls = !nulls.inner();
        match header.null_form() {
            NullForm::Ranges => {
                let ends = |(first, end): (usize, usize)| [first as u16, (end - 1) as u16];
                nulls.set_slices().flat_map(ends).flat_map(u16::to_le_bytes).collect()
            }
            _ => {
                let words = nulls.bit_chunks().iter_padded().take(nulls.len().div_ceil(64));
                words.flat_map(u64::to_le_bytes).collect()
            }
        }
    }

    /// Integers as differences to a base.
    fn differences(&self, base: i64, width: usize) -> Result<Bytes, String> {
        let values = integers(self.values).ok_or("the array has no integers")?;
        let differences = || values.iter().map(|value| value.wrapping_sub(base) as u64);
        if width < 8 && differences().any(|difference| difference >> (8 * width) != 0) {
            return Err("a value is out of the frame".to_owned());
        }
        Ok(Bytes::Made(match width {
            1 => differences().map(|difference| difference as u8).collect(),
            2 => differences().flat_map(|difference| (difference as u16).to_le_bytes()).collect(),
            4 => differences().flat_map(|difference| (difference as u32).to_le_bytes()).collect(),
            _ => differences().flat_map(u64::to_le_bytes).collect(),
        }))
    }

    /// Values that are as they are.
    fn plain(&self, kind: Kind) -> Option<Bytes> {
        fn of<P: ArrowPrimitiveType>(values: &ArrayRef) -> Option<Buffer> {
            values.as_primitive_opt::<P>().map(|values| values.values().inner().clone())
        }
        let values = self.values;
        let buffer = match kind {
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
        };
        buffer.map(Bytes::Buffer)
    }
}

fn offsets(offsets: &OffsetBuffer<i32>) -> Bytes {
    Bytes::Buffer(offsets.inner().inner().clone())
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

fn integers(values: &ArrayRef) -> Option<Vec<i64>> {
    fn of<P: ArrowPrimitiveType>(values: &ArrayRef) -> Vec<i64>
    where
        P::Native: Into<i64>,
    {
        values.as_primitive::<P>().values().iter().map(|value| (*value).into()).collect()
    }
    match values.data_type() {
        DataType::Boolean => Some(values.as_boolean().values().iter().map(i64::from).collect()),
        DataType::Int8 => Some(of::<Int8Type>(values)),
        DataType::Int16 => Some(of::<Int16Type>(values)),
        DataType::Int32 => Some(of::<Int32Type>(values)),
        DataType::Int64 => Some(of::<Int64Type>(values)),
        DataType::Date32 => Some(of::<Date32Type>(values)),
        DataType::Time64(arrow_schema::TimeUnit::Microsecond) => Some(of::<Time64MicrosecondType>(values)),
        DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, _) => {
            Some(of::<TimestampMicrosecondType>(values))
        }
        DataType::Decimal32(..) => Some(of::<Decimal32Type>(values)),
        DataType::Decimal64(..) => Some(of::<Decimal64Type>(values)),
        _ => None,
    }
}

/// The column that `array` was made of.
pub(crate) fn column_of(field: &Field, array: &ArrayRef) -> Result<Column<Bytes>, String> {
    let name = field.name();
    let wrong = |what: String| format!("column {name}: {what}");
    let header = field.metadata().get(HEADER).and_then(|text| BASE64_STANDARD.decode(text).ok());
    let header = header.ok_or_else(|| wrong("it has no header".to_owned()))?;
    let says = Column::of_header(&header).map_err(|malformed| wrong(malformed.to_string()))?;
    if says.rows() != array.len() {
        return Err(wrong(format!("its header is of {} rows", says.rows())));
    }
    let layers = Layers::of(array).map_err(wrong)?;
    let compressed = says.is_compressed().then(|| layers.compressed(field));
    let mut compressed = compressed.transpose().map_err(wrong)?;
    let column = Column::from_parts(&header, says.kind(), says.rows(), |section, _| {
        let made = compressed.as_mut().and_then(|compressed| compressed.take(section));
        made.map_or_else(|| layers.section(&says, section), Ok)
    });
    column.map_err(|error| match error {
        FromPartsError::Section(what) => wrong(what),
        FromPartsError::Malformed(malformed) => wrong(malformed.to_string()),
    })
}
