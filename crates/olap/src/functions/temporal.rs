//! Fields and differences of dates and times with PostgreSQL's result types.
//!
//! `extract` gives NUMERIC (seconds and epochs with six digits after the point), `date_part`
//! DOUBLE PRECISION; the difference of two dates is a number of days, that of two timestamps an
//! interval of days and less. Calendar arithmetic is `base`'s.

use std::fmt;
use std::sync::Arc;

use albireo_base::value::{Civil, Interval, MICROS_PER_DAY, MICROS_PER_SECOND};
use albireo_base::{SqlError, SqlState};
use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int32Array};
use arrow::compute::kernels::arity::try_binary;
use arrow::datatypes::{
    DataType, Date32Type, Int32Type, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType,
    TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::casts::{INTERVAL, TIMESTAMP};
use super::rowwise::{self, type_name};
use crate::errors::{external, internal, out_of_range};

/// A part of a date or time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Field {
    Millennium,
    Century,
    Decade,
    Year,
    IsoYear,
    Quarter,
    Month,
    Week,
    Day,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Epoch,
    Julian,
}

impl Field {
    /// The field PostgreSQL calls so.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "millennium" | "millennia" | "mil" | "mils" => Self::Millennium,
            "century" | "centuries" | "c" | "cent" => Self::Century,
            "decade" | "decades" | "dec" | "decs" => Self::Decade,
            "year" | "years" | "y" | "yr" | "yrs" => Self::Year,
            "isoyear" => Self::IsoYear,
            "quarter" | "qtr" => Self::Quarter,
            "month" | "months" | "mon" | "mons" => Self::Month,
            "week" | "weeks" | "w" => Self::Week,
            "day" | "days" | "d" => Self::Day,
            "dow" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "doy" => Self::DayOfYear,
            "hour" | "hours" | "h" | "hr" | "hrs" => Self::Hour,
            "minute" | "minutes" | "m" | "min" | "mins" => Self::Minute,
            "second" | "seconds" | "s" | "sec" | "secs" => Self::Second,
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => Self::Millisecond,
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" => Self::Microsecond,
            "epoch" => Self::Epoch,
            "julian" => Self::Julian,
            _ => return None,
        })
    }

    /// Digits after the point of this field of a value of this type.
    fn scale(self, of: &DataType) -> i8 {
        match (self, of) {
            (Self::Epoch, DataType::Date32) => 0,
            (Self::Second | Self::Epoch, _) => 6,
            (Self::Millisecond, _) => 3,
            (Self::Julian, ty) if *ty != DataType::Date32 => 6,
            _ => 0,
        }
    }

    fn is_of_time(self) -> bool {
        matches!(self, Self::Hour | Self::Minute | Self::Second | Self::Millisecond | Self::Microsecond)
    }

    /// Whether values of the type have the field.
    fn is_in(self, ty: &DataType) -> bool {
        match ty {
            DataType::Date32 => !self.is_of_time(),
            DataType::Time64(_) => self.is_of_time() || self == Self::Epoch,
            DataType::Interval(_) => !matches!(
                self,
                Self::Week
                    | Self::DayOfWeek
                    | Self::IsoDayOfWeek
                    | Self::DayOfYear
                    | Self::IsoYear
                    | Self::Julian
            ),
            _ => true,
        }
    }

    /// The field of a day and the microseconds within it, at the field's scale.
    fn of_moment(self, days: i64, micros: i64) -> i128 {
        let civil = Civil::from_days(days);
        let year = civil.year;
        i128::from(match self {
            Self::Hour => micros / (3600 * MICROS_PER_SECOND),
            Self::Minute => micros / (60 * MICROS_PER_SECOND) % 60,
            Self::Second | Self::Millisecond | Self::Microsecond => micros % (60 * MICROS_PER_SECOND),
            // Years before 1 AD count without a year 0.
            Self::Year => year - i64::from(year <= 0),
            Self::Decade => year.div_euclid(10),
            Self::Century if year > 0 => (year + 99) / 100,
            Self::Century => (year - 1 - 99) / 100,
            Self::Millennium if year > 0 => (year + 999) / 1000,
            Self::Millennium => (year - 1 - 999) / 1000,
            Self::IsoYear => {
                let year = iso_week(days).0;
                year - i64::from(year <= 0)
            }
            Self::Quarter => i64::from((civil.month - 1) / 3 + 1),
            Self::Month => i64::from(civil.month),
            Self::Week => iso_week(days).1,
            Self::Day => i64::from(civil.day),
            Self::DayOfWeek => (days + 4).rem_euclid(7),
            Self::IsoDayOfWeek => (days + 3).rem_euclid(7) + 1,
            Self::DayOfYear => day_of_year(days),
            Self::Epoch => return i128::from(days) * i128::from(MICROS_PER_DAY) + i128::from(micros),
            Self::Julian => {
                return (i128::from(days) + JULIAN_OF_EPOCH) * i128::from(MICROS_PER_DAY)
                    + i128::from(micros);
            }
        })
    }

    fn of_date(self, days: i64) -> i128 {
        match self {
            Self::Epoch => i128::from(days) * 86_400,
            Self::Julian => i128::from(days) + JULIAN_OF_EPOCH,
            _ => self.of_moment(days, 0),
        }
    }

    fn of_interval(self, interval: IntervalMonthDayNano) -> i128 {
        let micros = interval.nanoseconds / 1000;
        let years = i64::from(interval.months / 12);
        i128::from(match self {
            Self::Hour => micros / (3600 * MICROS_PER_SECOND),
            Self::Minute => micros / (60 * MICROS_PER_SECOND) % 60,
            Self::Second | Self::Millisecond | Self::Microsecond => micros % (60 * MICROS_PER_SECOND),
            Self::Year => years,
            Self::Decade => years / 10,
            Self::Century => years / 100,
            Self::Millennium => years / 1000,
            Self::Quarter => i64::from(interval.months % 12 / 3 + 1),
            Self::Month => i64::from(interval.months % 12),
            Self::Day => i64::from(interval.days),
            _ => {
                // A year has 365.25 days here, a month 30.
                let hours = i128::from(years) * 8766
                    + i128::from(interval.months % 12) * 720
                    + i128::from(interval.days) * 24;
                return hours * 3600 * i128::from(MICROS_PER_SECOND) + i128::from(micros);
            }
        })
    }
}

/// The Julian day of 1970-01-01.
const JULIAN_OF_EPOCH: i128 = 2_440_588;

pub(super) fn day_of_year(days: i64) -> i64 {
    let year = Civil::from_days(days).year;
    days - Civil { year, month: 1, day: 1 }.to_days() + 1
}

/// Year and week of ISO 8601: a week belongs to the year of its Thursday.
pub(super) fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - (days + 3).rem_euclid(7) + 3;
    (Civil::from_days(thursday).year, (day_of_year(thursday) - 1) / 7 + 1)
}

/// One field of a date or time.
#[derive(PartialEq, Eq, Hash)]
struct Extract {
    field: Field,
    /// NUMERIC, as `extract` gives it, or DOUBLE PRECISION, as `date_part` does.
    numeric: bool,
    signature: Signature,
}

impl fmt::Debug for Extract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "extract({:?})", self.field)
    }
}

/// `extract(field FROM argument)`, or `date_part`, which gives floating point.
///
/// # Errors
/// 22023 for a field that does not exist.
pub(crate) fn extract(field: &str, argument: Expr, numeric: bool, ty: Option<&DataType>) -> Result<Expr> {
    let Some(found) = Field::named(field) else {
        let of = ty.map_or_else(|| "timestamp without time zone".to_owned(), type_name);
        let message = format!("unit \"{field}\" not recognized for type {of}");
        return Err(external(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)));
    };
    let signature = Signature::user_defined(Volatility::Immutable);
    let function = Extract { field: found, numeric, signature };
    Ok(Arc::new(ScalarUDF::new_from_impl(function)).call(vec![argument]))
}

impl Extract {
    fn values(&self, array: &ArrayRef) -> Result<Decimal128Array> {
        let field = self.field;
        Ok(match array.data_type() {
            DataType::Date32 => array.as_primitive::<Date32Type>().unary(|v| field.of_date(i64::from(v))),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                let of = |v: i64| field.of_moment(v.div_euclid(MICROS_PER_DAY), v.rem_euclid(MICROS_PER_DAY));
                array.as_primitive::<TimestampMicrosecondType>().unary(of)
            }
            DataType::Time64(TimeUnit::Microsecond) => {
                array.as_primitive::<Time64MicrosecondType>().unary(|v| field.of_moment(0, v))
            }
            DataType::Interval(_) => {
                array.as_primitive::<IntervalMonthDayNanoType>().unary(|v| field.of_interval(v))
            }
            other => return Err(external(internal(format!("a field of {other}")))),
        })
    }
}

impl ScalarUDFImpl for Extract {
    fn name(&self) -> &str {
        if self.numeric { "extract" } else { "date_part" }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let args: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(format!("{}({:?}, {})", self.name(), self.field, args.join(", ")))
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let ty = match arg_types {
            [DataType::Date32] => DataType::Date32,
            [DataType::Timestamp(_, zone)] => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            [DataType::Time32(_) | DataType::Time64(_)] => DataType::Time64(TimeUnit::Microsecond),
            [DataType::Interval(_) | DataType::Duration(_)] => INTERVAL,
            [DataType::Null] => TIMESTAMP,
            [other] => {
                return plan_err!("No function matches {}(unknown, {})", self.name(), type_name(other));
            }
            _ => return plan_err!("No function matches {} of {} arguments", self.name(), arg_types.len()),
        };
        if !self.field.is_in(&ty) {
            let message = format!(
                "unit \"{}\" for type {}",
                format!("{:?}", self.field).to_lowercase(),
                type_name(&ty)
            );
            return Err(external(SqlError::unsupported(message)));
        }
        Ok(vec![ty])
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(match arg_types {
            [ty] if self.numeric => match self.field.scale(ty) {
                0 => DataType::Decimal128(10, 0),
                scale => DataType::Decimal128(24, scale),
            },
            _ => DataType::Float64,
        })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = args.args.as_slice() else {
            return Err(external(internal("a field is of one value")));
        };
        let array = argument.to_array(if matches!(argument, ColumnarValue::Scalar(_)) {
            1
        } else {
            args.number_rows
        })?;
        let scale = self.field.scale(array.data_type());
        let values = self.values(&array)?;
        let values: ArrayRef = if self.numeric {
            Arc::new(values.with_data_type(args.return_field.data_type().clone()))
        } else {
            let unit = 10f64.powi(i32::from(scale));
            let floats: Float64Array = values.unary(|v| v as f64 / unit);
            Arc::new(floats)
        };
        Ok(match argument {
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?),
            ColumnarValue::Array(_) => ColumnarValue::Array(values),
        })
    }
}

/// The difference of two dates or of two timestamps.
#[derive(PartialEq, Eq, Hash, Debug)]
struct Difference {
    signature: Signature,
}

/// `left - right` of two dates (days) or two timestamps (interval).
pub(crate) fn difference(left: Expr, right: Expr) -> Expr {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Difference { signature })).call(vec![left, right])
}

/// Whether the difference of such values is this module's.
pub(crate) fn is_moment(ty: &DataType) -> bool {
    matches!(ty, DataType::Date32 | DataType::Timestamp(..))
}

impl ScalarUDFImpl for Difference {
    fn name(&self) -> &str {
        "difference"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [a, b] => Ok(format!("({a} - {b})")),
            _ => Ok(self.name().to_owned()),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [DataType::Date32, DataType::Date32] => Ok(arg_types.to_vec()),
            [a, b] if is_moment(a) && is_moment(b) => {
                let zone = |ty: &DataType| match ty {
                    DataType::Timestamp(_, zone) => zone.clone(),
                    _ => None,
                };
                let ty = DataType::Timestamp(TimeUnit::Microsecond, zone(a).or_else(|| zone(b)));
                Ok(vec![ty.clone(), ty])
            }
            _ => plan_err!("Cannot coerce arithmetic expression of these types"),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(match arg_types {
            [DataType::Date32, DataType::Date32] => DataType::Int32,
            _ => INTERVAL,
        })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = arrays.as_slice() else {
            return Err(external(internal("a difference is of two values")));
        };
        let result: ArrayRef = if *left.data_type() == DataType::Date32 {
            let overflow =
                || arrow::error::ArrowError::from_external_error(Box::new(out_of_range("integer")));
            let days: Int32Array =
                try_binary(left.as_primitive::<Date32Type>(), right.as_primitive::<Date32Type>(), |a, b| {
                    a.checked_sub(b).ok_or_else(overflow)
                })?;
            Arc::new(days.reinterpret_cast::<Int32Type>())
        } else {
            let (a, b) = (
                left.as_primitive::<TimestampMicrosecondType>(),
                right.as_primitive::<TimestampMicrosecondType>(),
            );
            let overflow =
                || arrow::error::ArrowError::from_external_error(Box::new(out_of_range("interval")));
            let spans: arrow::array::IntervalMonthDayNanoArray = try_binary(a, b, |a, b| {
                let micros = a.checked_sub(b).ok_or_else(overflow)?;
                let days = i32::try_from(micros / MICROS_PER_DAY).map_err(|_| overflow())?;
                Ok(IntervalMonthDayNano::new(0, days, micros % MICROS_PER_DAY * 1000))
            })?;
            Arc::new(spans)
        };
        Ok(match scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        })
    }
}

/// The functions of this module that are computed row by row.
pub(crate) fn row_functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        rowwise::function("age", age_type, age),
        rowwise::function("make_date", make_date_type, make_date),
        rowwise::function("timezone", timezone_type, timezone),
    ]
}

fn age_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match args {
        [a, b] if is_moment(a) && is_moment(b) => Some((vec![TIMESTAMP, TIMESTAMP], INTERVAL)),
        _ => None,
    }
}

/// The months, days and time from one moment to another, as a person would count them.
fn age(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    let [ScalarValue::TimestampMicrosecond(Some(a), _), ScalarValue::TimestampMicrosecond(Some(b), _)] = args
    else {
        return Err(internal("two timestamps were expected"));
    };
    let sign = if a < b { -1 } else { 1 };
    let (late, early) = if a < b { (*b, *a) } else { (*a, *b) };
    let split = |v: i64| (Civil::from_days(v.div_euclid(MICROS_PER_DAY)), v.rem_euclid(MICROS_PER_DAY));
    let ((to, to_time), (from, from_time)) = (split(late), split(early));
    let mut months = (to.year - from.year) * 12 + i64::from(to.month) - i64::from(from.month);
    let mut days = i64::from(to.day) - i64::from(from.day);
    let mut micros = to_time - from_time;
    if micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    if days < 0 {
        // The days of the earlier moment's month; of the later one's when the order was turned.
        let of = if sign > 0 { from } else { to };
        let first = Civil { day: 1, ..of }.to_days();
        let (year, month) = if of.month == 12 { (of.year + 1, 1) } else { (of.year, of.month + 1) };
        days += Civil { year, month, day: 1 }.to_days() - first;
        months -= 1;
    }
    let overflow = || out_of_range("interval");
    let interval = Interval {
        months: sign * i32::try_from(months).map_err(|_| overflow())?,
        days: sign * i32::try_from(days).map_err(|_| overflow())?,
        micros: i64::from(sign) * micros,
    };
    super::casts::interval_value(interval)
}

fn make_date_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    let small = |ty: &DataType| matches!(ty, DataType::Int16 | DataType::Int32 | DataType::Int64);
    (args.len() == 3 && args.iter().all(small)).then(|| (vec![DataType::Int64; 3], DataType::Date32))
}

fn make_date(args: &[ScalarValue], _: &DataType) -> Result<ScalarValue, SqlError> {
    let [ScalarValue::Int64(Some(year)), ScalarValue::Int64(Some(month)), ScalarValue::Int64(Some(day))] =
        args
    else {
        return Err(internal("three integers were expected"));
    };
    let wrong = || {
        let message = format!("date field value out of range: {year}-{month:02}-{day:02}");
        SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
    };
    let astronomical = if *year < 0 { year + 1 } else { *year };
    let civil = Civil {
        year: astronomical,
        month: u8::try_from(*month).map_err(|_| wrong())?,
        day: u8::try_from(*day).map_err(|_| wrong())?,
    };
    if *year == 0 || !(-4712..=5_874_897).contains(&astronomical) || !civil.exists() {
        return Err(wrong());
    }
    let days = i32::try_from(civil.to_days()).map_err(|_| wrong())?;
    Ok(ScalarValue::Date32(Some(days)))
}

fn timezone_type(args: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC")));
    match args {
        [zone, DataType::Timestamp(_, Some(_))] if rowwise::is_text(zone) => {
            Some((vec![DataType::Utf8View, utc], TIMESTAMP))
        }
        [zone, DataType::Timestamp(_, None) | DataType::Date32] if rowwise::is_text(zone) => {
            Some((vec![DataType::Utf8View, TIMESTAMP], utc))
        }
        _ => None,
    }
}

/// `moment AT TIME ZONE zone`, for zones without rules: UTC and fixed offsets.
fn timezone(args: &[ScalarValue], result: &DataType) -> Result<ScalarValue, SqlError> {
    let [zone, ScalarValue::TimestampMicrosecond(Some(moment), _)] = args else {
        return Err(internal("a zone and a timestamp were expected"));
    };
    let offset = zone_offset(rowwise::text(zone))?;
    let overflow = || out_of_range("timestamp");
    Ok(match result {
        DataType::Timestamp(_, Some(utc)) => {
            let moment = moment.checked_sub(offset).ok_or_else(overflow)?;
            ScalarValue::TimestampMicrosecond(Some(moment), Some(Arc::clone(utc)))
        }
        _ => {
            let moment = moment.checked_add(offset).ok_or_else(overflow)?;
            ScalarValue::TimestampMicrosecond(Some(moment), None)
        }
    })
}

/// Microseconds east of UTC.
fn zone_offset(zone: &str) -> Result<i64, SqlError> {
    if ["utc", "gmt", "z", "zulu", "etc/utc"].iter().any(|name| zone.eq_ignore_ascii_case(name)) {
        return Ok(0);
    }
    let unsupported = || {
        SqlError::unsupported(format!("time zone \"{zone}\""))
            .with_hint("Only 'UTC' and offsets are known; as in PostgreSQL, '-02:00' is east of UTC here.")
    };
    let (sign, rest) = match (zone.strip_prefix('+'), zone.strip_prefix('-')) {
        (Some(rest), _) => (1, rest),
        (_, Some(rest)) => (-1, rest),
        _ => return Err(unsupported()),
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
    let number = |text: &str, limit: i64| text.parse::<i64>().ok().filter(|n| (0..=limit).contains(n));
    match (number(hours, 15), number(minutes, 59)) {
        // A bare offset is POSIX's in PostgreSQL: positive is west.
        (Some(hours), Some(minutes)) => Ok(-sign * (hours * 60 + minutes) * 60 * MICROS_PER_SECOND),
        _ => Err(unsupported()),
    }
}
