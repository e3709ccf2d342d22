//! From an encoded column to an Arrow array.

use std::sync::Arc;

use albireo_base::SqlType;
use albireo_encoding::{Column, Kind, NullForm, Section, SectionName, Selection, StoreForm};
use arrow_array::types::{
    Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, UInt8Type, UInt16Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray,
    Float32Array, Float64Array, PrimitiveArray, RunArray, StringArray, StructArray, new_null_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};

use crate::columns::disk_type;

/// The column of a table's type as an array of its rows.
pub(crate) fn array_of<S: Section>(column: &Column<S>, ty: SqlType) -> ArrayRef {
    let is_constant = column.form().store == StoreForm::Constant;
    if is_constant && column.null_form() == NullForm::All {
        return runs_of(column, &new_null_array(&disk_type(ty), 1));
    }
    let has_runs = is_constant || column.form().runs.is_some();
    let (mut apart, mut nulls) = (None, nulls_of(column));
    if has_runs {
        apart = nulls.take();
    }
    let values = match column.form().dictionary {
        Some((_, 1)) => dictionary::<UInt8Type, S>(column, ty, nulls),
        Some(_) => dictionary::<UInt16Type, S>(column, ty, nulls),
        None => values_of(&column.stored(), ty, nulls),
    };
    if !has_runs {
        return values;
    }
    let runs = runs_of(column, &values);
    match apart {
        None => runs,
        Some(nulls) => {
            let field = Field::new("value", runs.data_type().clone(), true);
            Arc::new(StructArray::new(vec![field].into(), vec![runs], Some(nulls)))
        }
    }
}

fn nulls_of<S: Section>(column: &Column<S>) -> Option<NullBuffer> {
    if !column.has_nulls() {
        return None;
    }
    let mut bits = Vec::new();
    column.nulls_of(&Selection::All, &mut bits);
    bits.iter_mut().for_each(|word| *word = !*word);
    Some(NullBuffer::new(BooleanBuffer::new(bits.into(), 0, column.rows())))
}

fn section<S: Section>(column: &Column<S>, name: SectionName) -> &[u8] {
    column.section(name).map_or(&[], Section::bytes)
}

fn runs_of<S: Section>(column: &Column<S>, values: &ArrayRef) -> ArrayRef {
    let ends: Vec<i16> = match column.form().runs {
        // The last row of a run, and the row behind it.
        Some(_) => {
            let ends = section(column, SectionName::Ends).as_chunks().0;
            ends.iter().map(|end| u16::from_le_bytes(*end) as i16 + 1).collect()
        }
        None => vec![column.rows() as i16],
    };
    debug_assert_eq!(ends.last().map(|end| *end as usize), Some(column.rows()), "runs end with the rows");
    let ends = PrimitiveArray::<Int16Type>::from(ends);
    Arc::new(RunArray::<Int16Type>::try_new(&ends, values).expect("each run has a value"))
}

fn dictionary<K, S: Section>(column: &Column<S>, ty: SqlType, nulls: Option<NullBuffer>) -> ArrayRef
where
    K: arrow_array::types::ArrowDictionaryKeyType,
{
    let codes = Buffer::from(section(column, SectionName::Codes));
    let keys = PrimitiveArray::<K>::new(ScalarBuffer::from(codes), nulls);
    let values = values_of(&column.stored(), ty, None);
    Arc::new(DictionaryArray::try_new(keys, values).expect("codes are of the dictionary"))
}

/// The values of a column without runs, dictionary and NULLs.
fn values_of(stored: &Column<&[u8]>, ty: SqlType, nulls: Option<NullBuffer>) -> ArrayRef {
    match stored.kind() {
        Kind::Bool | Kind::I16 | Kind::I32 | Kind::I64 => integers(stored, ty, nulls),
        Kind::F32 => {
            let mut values: Vec<f32> = Vec::with_capacity(stored.rows());
            stored.floats_into(&Selection::All, &mut values);
            Arc::new(Float32Array::new(values.into(), nulls))
        }
        Kind::F64 => {
            let mut values: Vec<f64> = Vec::with_capacity(stored.rows());
            stored.floats_into(&Selection::All, &mut values);
            Arc::new(Float64Array::new(values.into(), nulls))
        }
        Kind::I128 | Kind::Uuid => {
            let mut values = Vec::with_capacity(stored.rows());
            stored.wide_into(&Selection::All, &mut values);
            match disk_type(ty) {
                DataType::FixedSizeBinary(width) => {
                    let values = Buffer::from(values.into_flattened());
                    Arc::new(FixedSizeBinaryArray::new(width, values, nulls))
                }
                other => {
                    let values: Vec<i128> = values.into_iter().map(i128::from_le_bytes).collect();
                    typed::<Decimal128Type>(values, nulls, other)
                }
            }
        }
        Kind::Text => texts(stored, ty, nulls),
    }
}

/// Integers in the narrowest type that has them all.
fn integers(stored: &Column<&[u8]>, ty: SqlType, nulls: Option<NullBuffer>) -> ArrayRef {
    let mut values: Vec<i64> = Vec::with_capacity(stored.rows());
    stored.integers_into(&Selection::All, &mut values);
    let bits =
        values.iter().map(|value| i64::BITS - (value ^ value >> 63).leading_zeros()).max().unwrap_or(0);
    match (disk_type(ty), bits) {
        (DataType::Boolean, _) => {
            let bits = BooleanBuffer::collect_bool(values.len(), |row| values[row] != 0);
            Arc::new(BooleanArray::new(bits, nulls))
        }
        (DataType::Date32, _) => narrowed::<Date32Type>(&values, nulls, DataType::Date32),
        (time @ DataType::Time64(_), _) => typed::<Time64MicrosecondType>(values, nulls, time),
        (time @ DataType::Timestamp(..), _) => typed::<TimestampMicrosecondType>(values, nulls, time),
        (DataType::Decimal128(precision, scale), _) => decimals(values, (precision, scale), nulls),
        (_, 0..=7) => narrowed::<Int8Type>(&values, nulls, DataType::Int8),
        (_, 8..=15) => narrowed::<Int16Type>(&values, nulls, DataType::Int16),
        (_, 16..=31) => narrowed::<Int32Type>(&values, nulls, DataType::Int32),
        _ => typed::<Int64Type>(values, nulls, DataType::Int64),
    }
}

fn decimals(values: Vec<i64>, (precision, scale): (u8, i8), nulls: Option<NullBuffer>) -> ArrayRef {
    // Digits before the point are cut, those behind it are not.
    let short = precision.min(9);
    let has_room = i16::from(scale) <= i16::from(short);
    let limit = 10_i64.pow(short.into());
    match has_room && values.iter().all(|value| -limit < *value && *value < limit) {
        true => narrowed::<Decimal32Type>(&values, nulls, DataType::Decimal32(short, scale)),
        false => typed::<Decimal64Type>(values, nulls, DataType::Decimal64(precision, scale)),
    }
}

fn typed<P: ArrowPrimitiveType>(
    values: Vec<P::Native>,
    nulls: Option<NullBuffer>,
    data_type: DataType,
) -> ArrayRef {
    Arc::new(PrimitiveArray::<P>::new(values.into(), nulls).with_data_type(data_type))
}

/// Values that were seen to be in the limits of the type.
fn narrowed<P: ArrowPrimitiveType>(values: &[i64], nulls: Option<NullBuffer>, data_type: DataType) -> ArrayRef
where
    P::Native: TryFrom<i64>,
{
    let narrow = |value: &i64| P::Native::try_from(*value).ok().expect("a value of the narrow type");
    typed::<P>(values.iter().map(narrow).collect(), nulls, data_type)
}

fn texts(stored: &Column<&[u8]>, ty: SqlType, nulls: Option<NullBuffer>) -> ArrayRef {
    let (mut ends, mut bytes): (Vec<u32>, _) = (Vec::with_capacity(stored.rows()), Vec::new());
    stored.texts_into(&Selection::All, &mut ends, &mut bytes);
    let offsets: Vec<i32> = std::iter::once(0).chain(ends).map(|end| end as i32).collect();
    // Not more than is frozen: far below what 31 bits address.
    let offsets = OffsetBuffer::new(offsets.into());
    match disk_type(ty) {
        DataType::Binary => Arc::new(BinaryArray::new(offsets, bytes.into(), nulls)),
        _ => Arc::new(StringArray::new(offsets, bytes.into(), nulls)),
    }
}
