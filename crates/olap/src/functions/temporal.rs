//! Whole fields of dates and timestamps, as NUMERIC. Calendar arithmetic is `base`'s; every other field and type
//! is computed row by row, by `albireo_semantics`.

use std::fmt;
use std::sync::Arc;

use albireo_base::value::{Civil, MICROS_PER_DAY, MICROS_PER_SECOND};
use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::datatypes::{DataType, Date32Type, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::errors::{external, internal};

/// The type of every field.
pub(crate) const FIELD: DataType = DataType::Decimal128(10, 0);

/// A part of a date or timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Field {
    Year,
    Quarter,
    Month,
    Day,
    Hour,
    Minute,
}

impl Field {
    /// The field of this name; a date has none of the time.
    pub(crate) fn named(name: &str, of_date: bool) -> Option<Self> {
        Some(match name {
            "year" => Self::Year,
            "quarter" => Self::Quarter,
            "month" => Self::Month,
            "day" => Self::Day,
            "hour" if !of_date => Self::Hour,
            "minute" if !of_date => Self::Minute,
            _ => return None,
        })
    }

    /// The field of a day and the microseconds within it.
    fn of_moment(self, days: i64, micros: i64) -> i128 {
        let civil = || Civil::from_days(days);
        i128::from(match self {
            Self::Hour => micros / (3600 * MICROS_PER_SECOND),
            Self::Minute => micros / (60 * MICROS_PER_SECOND) % 60,
            // Years before 1 AD count without a year 0.
            Self::Year => {
                let year = civil().year;
                year - i64::from(year <= 0)
            }
            Self::Quarter => i64::from((civil().month - 1) / 3 + 1),
            Self::Month => i64::from(civil().month),
            Self::Day => i64::from(civil().day),
        })
    }
}

/// `extract(field FROM moment)`, of a date or a timestamp without time zone.
pub(crate) fn extract(field: Field, moment: Expr) -> Expr {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Extract { field, signature })).call(vec![moment])
}

/// One field of a date or timestamp.
#[derive(PartialEq, Eq, Hash)]
struct Extract {
    field: Field,
    signature: Signature,
}

impl fmt::Debug for Extract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "extract({:?})", self.field)
    }
}

impl Extract {
    fn values(&self, array: &ArrayRef) -> Result<Decimal128Array> {
        let field = self.field;
        Ok(match array.data_type() {
            DataType::Date32 => {
                array.as_primitive::<Date32Type>().unary(|v| field.of_moment(i64::from(v), 0))
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                let of = |v: i64| field.of_moment(v.div_euclid(MICROS_PER_DAY), v.rem_euclid(MICROS_PER_DAY));
                array.as_primitive::<TimestampMicrosecondType>().unary(of)
            }
            other => return Err(external(internal(format!("a field of {other}")))),
        })
    }
}

impl ScalarUDFImpl for Extract {
    fn name(&self) -> &str {
        "extract"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let args: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(format!("extract({:?}, {})", self.field, args.join(", ")))
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(FIELD)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let fields = |array: &ArrayRef| -> Result<ArrayRef> {
            Ok(Arc::new(self.values(array)?.with_data_type(FIELD)))
        };
        match args.args.as_slice() {
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(fields(array)?)),
            [ColumnarValue::Scalar(value)] => {
                let array = fields(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
            _ => Err(external(internal("a field is of one value"))),
        }
    }
}
