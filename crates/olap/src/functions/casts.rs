//! Casts between text and other types by PostgreSQL's text forms, and to texts of limited length.
//!
//! Arrow reads and writes other forms (`2024-01-05T10:11:12`), takes what PostgreSQL refuses and
//! refuses what it takes; so such casts are planned as these functions.

use std::fmt;
use std::sync::Arc;

use albireo_base::{Interval, SqlError, SqlState, Value};
use arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::rowwise::{is_text, text};
use crate::errors::{external, internal};
use crate::types::{scalar, sql_type};

/// What a cast does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Kind {
    /// Text to a value of the type.
    Read(DataType),
    /// A value to its text.
    Write,
    /// A value as it is put out: a boolean is a letter.
    Show,
    /// Text to at most so many characters; whether trailing blanks go.
    Cut(usize, bool),
}

/// The function.
#[derive(PartialEq, Eq, Hash)]
struct TextCast {
    kind: Kind,
    signature: Signature,
}

impl fmt::Debug for TextCast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn cast(kind: Kind, argument: Expr) -> Expr {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(TextCast { kind, signature })).call(vec![argument])
}

/// The value of type `ty` that a text says.
pub(crate) fn read(argument: Expr, ty: &DataType) -> Expr {
    cast(Kind::Read(ty.clone()), argument)
}

/// The text of a value.
pub(crate) fn write(argument: Expr) -> Expr {
    cast(Kind::Write, argument)
}

/// A value as it is put out.
pub(crate) fn show(argument: Expr) -> Expr {
    cast(Kind::Show, argument)
}

/// The first `length` characters of a text; CHAR also loses its trailing blanks.
pub(crate) fn cut(argument: Expr, length: usize, is_char: bool) -> Expr {
    cast(Kind::Cut(length, is_char), argument)
}

/// Whether texts can be read as values of this type here.
pub(crate) fn is_readable(ty: &DataType) -> bool {
    matches!(ty, DataType::Interval(_)) || sql_type(ty).is_some() && !is_text(ty)
}

/// The value of type `ty` that `text` says, as a literal.
///
/// # Errors
/// As [`Value::parse`].
pub(crate) fn parse(text: &str, ty: &DataType) -> Result<ScalarValue, SqlError> {
    if matches!(ty, DataType::Interval(_)) {
        return interval_value(Interval::parse(text, None)?);
    }
    let Some(ty) = sql_type(ty) else { return Err(internal(format!("reading a text as {ty}"))) };
    scalar(&Value::parse(text, ty)?, Some(ty))
}

/// An interval as DataFusion's literal.
///
/// # Errors
/// 22015: the time is longer than 292 years.
pub(crate) fn interval_value(interval: Interval) -> Result<ScalarValue, SqlError> {
    let nanos = interval.micros.checked_mul(1000).ok_or_else(|| {
        SqlError::new(SqlState::INTERVAL_FIELD_OVERFLOW, "interval field value out of range")
    })?;
    let value = IntervalMonthDayNano::new(interval.months, interval.days, nanos);
    Ok(ScalarValue::IntervalMonthDayNano(Some(value)))
}

/// DataFusion's interval, or duration, as ours.
pub(crate) fn interval_of(value: &ScalarValue) -> Option<Interval> {
    let micros = |micros: i64| Interval { micros, ..Interval::default() };
    Some(match value {
        ScalarValue::IntervalMonthDayNano(Some(v)) => {
            Interval { months: v.months, days: v.days, micros: v.nanoseconds / 1000 }
        }
        ScalarValue::IntervalDayTime(Some(v)) => {
            Interval { months: 0, days: v.days, micros: i64::from(v.milliseconds) * 1000 }
        }
        ScalarValue::IntervalYearMonth(Some(months)) => Interval { months: *months, ..Interval::default() },
        ScalarValue::DurationMicrosecond(Some(v)) => micros(*v),
        ScalarValue::DurationNanosecond(Some(v)) => micros(v / 1000),
        ScalarValue::DurationMillisecond(Some(v)) => micros(v.saturating_mul(1000)),
        ScalarValue::DurationSecond(Some(v)) => micros(v.saturating_mul(1_000_000)),
        _ => return None,
    })
}

/// A value of DataFusion as ours; `None` for what SQL has no type for here.
pub(crate) fn value_of(value: &ScalarValue) -> Option<Value> {
    Some(match value {
        v if v.is_null() => Value::Null,
        ScalarValue::Boolean(Some(v)) => Value::Bool(*v),
        ScalarValue::Int8(Some(v)) => Value::SmallInt(i16::from(*v)),
        ScalarValue::Int16(Some(v)) => Value::SmallInt(*v),
        ScalarValue::Int32(Some(v)) => Value::Integer(*v),
        ScalarValue::Int64(Some(v)) => Value::BigInt(*v),
        ScalarValue::UInt64(Some(v)) => Value::BigInt(i64::try_from(*v).ok()?),
        ScalarValue::Float32(Some(v)) => Value::Real(*v),
        ScalarValue::Float64(Some(v)) => Value::Double(*v),
        ScalarValue::Decimal128(Some(v), _, scale) => {
            Value::Decimal(albireo_base::Decimal::new(*v, u8::try_from(*scale).ok()?))
        }
        ScalarValue::Utf8(Some(v)) | ScalarValue::LargeUtf8(Some(v)) | ScalarValue::Utf8View(Some(v)) => {
            Value::Text(v.clone())
        }
        ScalarValue::Binary(Some(v))
        | ScalarValue::LargeBinary(Some(v))
        | ScalarValue::BinaryView(Some(v)) => Value::Bytea(v.clone()),
        ScalarValue::FixedSizeBinary(16, Some(v)) => Value::Uuid(v.as_slice().try_into().ok()?),
        ScalarValue::Date32(Some(v)) => Value::Date(*v),
        ScalarValue::Time64Microsecond(Some(v)) => Value::Time(*v),
        ScalarValue::Time64Nanosecond(Some(v)) => Value::Time(v / 1000),
        ScalarValue::TimestampMicrosecond(Some(v), None) => Value::Timestamp(*v),
        ScalarValue::TimestampNanosecond(Some(v), None) => Value::Timestamp(v.div_euclid(1000)),
        ScalarValue::TimestampMicrosecond(Some(v), Some(_)) => Value::TimestampTz(*v),
        ScalarValue::TimestampNanosecond(Some(v), Some(_)) => Value::TimestampTz(v.div_euclid(1000)),
        _ => return None,
    })
}

/// PostgreSQL's text of a value that is not NULL.
pub(crate) fn display(value: &ScalarValue) -> String {
    match (interval_of(value), value_of(value)) {
        (Some(interval), _) => interval.to_string(),
        // A cast says the word, output the letter.
        (_, Some(Value::Bool(b))) => b.to_string(),
        (_, Some(value)) => value.to_string(),
        (None, None) => value.to_string(),
    }
}

/// An array of intervals as texts.
pub(crate) fn interval_texts(array: &ArrayRef) -> Result<ArrayRef, SqlError> {
    let mut texts = StringViewBuilder::with_capacity(array.len());
    for row in 0..array.len() {
        match ScalarValue::try_from_array(array, row) {
            Ok(value) if value.is_null() => texts.append_null(),
            Ok(value) => texts.append_value(display(&value)),
            Err(error) => return Err(crate::errors::to_sql_error(&error)),
        }
    }
    Ok(Arc::new(texts.finish()))
}

impl TextCast {
    fn one(&self, value: &ScalarValue) -> Result<ScalarValue, SqlError> {
        match &self.kind {
            Kind::Read(ty) => parse(text(value), ty),
            Kind::Show => Ok(ScalarValue::Utf8View(Some(match value {
                ScalarValue::Boolean(Some(b)) => if *b { "t" } else { "f" }.to_owned(),
                other => display(other),
            }))),
            Kind::Write => Ok(ScalarValue::Utf8View(Some(display(value)))),
            Kind::Cut(length, is_char) => {
                Ok(ScalarValue::Utf8View(Some(cut_text(text(value), *length, *is_char).to_owned())))
            }
        }
    }

    fn result(&self) -> DataType {
        match &self.kind {
            Kind::Read(ty) => ty.clone(),
            Kind::Write | Kind::Show | Kind::Cut(..) => DataType::Utf8View,
        }
    }
}

fn cut_text(text: &str, length: usize, is_char: bool) -> &str {
    let end = text.char_indices().nth(length).map_or(text.len(), |(at, _)| at);
    if is_char { text[..end].trim_end_matches(' ') } else { &text[..end] }
}

impl ScalarUDFImpl for TextCast {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Read(_) => "read_text",
            Kind::Write => "write_text",
            Kind::Show => "show_text",
            Kind::Cut(..) => "cut_text",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arg_types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.result())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let null = ScalarValue::try_new_null(&self.result())?;
        let one = |value: &ScalarValue| match value.is_null() {
            true => Ok(null.clone()),
            false => self.one(value).map_err(external),
        };
        match args.args.as_slice() {
            [ColumnarValue::Scalar(value)] => Ok(ColumnarValue::Scalar(one(value)?)),
            [ColumnarValue::Array(array)] if array.is_empty() => {
                Ok(ColumnarValue::Array(arrow::array::new_empty_array(&self.result())))
            }
            [ColumnarValue::Array(array)] => {
                if let (Kind::Cut(length, is_char), DataType::Utf8View) = (&self.kind, array.data_type()) {
                    let mut texts = StringViewBuilder::with_capacity(array.len());
                    let cut = |text: Option<_>| text.map(|text| cut_text(text, *length, *is_char));
                    texts.extend(array.as_string_view().iter().map(cut));
                    return Ok(ColumnarValue::Array(Arc::new(texts.finish())));
                }
                let rows: Result<Vec<ScalarValue>> =
                    (0..array.len()).map(|row| one(&ScalarValue::try_from_array(array, row)?)).collect();
                Ok(ColumnarValue::Array(ScalarValue::iter_to_array(rows?)?))
            }
            _ => Err(external(internal("a cast takes one argument"))),
        }
    }
}

/// Whether PostgreSQL has a cast from one type to the other, as far as Arrow has one that it must
/// not be used for.
pub(crate) fn exists(from: &DataType, to: &DataType) -> bool {
    let class = |ty: &DataType| match ty {
        DataType::Boolean => 'b',
        DataType::Date32 | DataType::Timestamp(..) => 'd',
        DataType::Time64(_) => 't',
        DataType::Interval(_) | DataType::Duration(_) => 'i',
        DataType::Binary | DataType::BinaryView | DataType::LargeBinary => 'y',
        DataType::FixedSizeBinary(_) => 'u',
        ty if ty.is_numeric() => 'n',
        _ => '?',
    };
    match (class(from), class(to)) {
        (a, b) if a == b => true,
        ('?', _) | (_, '?') => true,
        ('b', 'n') => *to == DataType::Int32,
        ('n', 'b') => matches!(from, DataType::Int32 | DataType::Int64),
        ('d', 't') => *from != DataType::Date32,
        ('i', 't') | ('t', 'i') => true,
        _ => false,
    }
}

/// The interval type DataFusion computes with.
pub(crate) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// TIMESTAMP.
pub(crate) const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
