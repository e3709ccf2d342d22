//! Expressions computed row by row by the scalar kernels of the bound form.
//!
//! Responsible for: whatever has no vectorised form; the reference for what has one. An expression becomes
//! one function of the columns, parameters and results of queries in it, so that it is evaluated as the
//! interpreter does: CASE, AND and OR look at no more than they must.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use albireo_base::budget::Room;
use albireo_base::{Decimal, SqlError, SqlType, Value};
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{ColumnRef, Expr, ExprKind, Frame, RoutineId, VariableId, evaluate};
use albireo_semantics::query::SelectPlan;
use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, FixedSizeBinaryArray, StringViewBuilder};
use arrow::datatypes::{DataType, Decimal128Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::{
    ColumnarValue, Expr as Planned, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::errors::{external, from_arrow, internal};
use crate::pool::Account;
use crate::values::numeric::{self, OPEN};
use crate::values::{array_of, datum_at};

/// A bound expression whose columns are its arguments: column `i` of relation 0 is argument `i`.
struct Kernel {
    expr: Expr,
    gives: DataType,
    /// What it is, written out: equal texts, equal expressions.
    text: String,
    signature: Signature,
}

/// `expr` over `args`, of Arrow type `gives`.
pub(super) fn kernel(expr: Expr, gives: DataType, args: Vec<Planned>) -> Planned {
    let text = format!("{expr:?}");
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Kernel { expr, gives, text, signature })).call(args)
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.gives == other.gives
    }
}

impl Eq for Kernel {}

impl Hash for Kernel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("row_by_row")
    }
}

impl ScalarUDFImpl for Kernel {
    fn name(&self) -> &str {
        "row_by_row"
    }

    fn schema_name(&self, args: &[Planned]) -> Result<String> {
        let args: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(format!("row_by_row[{}]({})", self.text, args.join(", ")))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.gives.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let ([ColumnarValue::Array(array)], ExprKind::Column(_)) = (args.args.as_slice(), &self.expr.kind)
            && let (Some(numbers), true) = (array.as_primitive_opt::<Decimal128Type>(), self.gives == OPEN)
        {
            return Ok(ColumnarValue::Array(opened(numbers)?));
        }
        if let ([ColumnarValue::Array(array)], ExprKind::Cast(inner, modifier, _)) =
            (args.args.as_slice(), &self.expr.kind)
            && let ExprKind::Column(_) = inner.kind
            && let Some(array) = fitting(array, *modifier, &self.gives)
        {
            return Ok(ColumnarValue::Array(array));
        }
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let array = self.rows(&arrays, rows, Account::of(&args.config_options))?;
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?),
            false => ColumnarValue::Array(array),
        })
    }
}

/// Bytes of values between two looks at the query's account.
const STEP_BYTES: usize = 64 << 10;

impl Kernel {
    /// The values of so many rows. Each is refused before it is made if the query has no memory left for it.
    fn rows(&self, arrays: &[ArrayRef], rows: usize, account: Option<&Account>) -> Result<ArrayRef> {
        let room = Room::of(account.map_or(usize::MAX, Account::left_bytes));
        // Held until the batch is made; whoever keeps it accounts for it.
        let mut held: Option<MemoryReservation> = None;
        let mut frame = Row { arrays, row: 0 };
        let mut owed = 0;
        let mut next = |row| -> Result<Datum> {
            frame.row = row;
            let value = evaluate(&self.expr, &mut frame).map_err(|stop| external(reason(stop)))?;
            let bytes = value.bytes();
            room.keep(bytes);
            owed += bytes;
            if let (true, Some(account)) = (owed >= STEP_BYTES, account) {
                held.get_or_insert_with(|| account.reservation("values of an expression")).try_grow(owed)?;
                owed = 0;
            }
            Ok(value)
        };
        match &self.gives {
            // Texts may be long: none is there twice.
            DataType::Utf8View => {
                let mut texts = StringViewBuilder::with_capacity(rows);
                for row in 0..rows {
                    match next(row)? {
                        Datum::Value(Value::Text(text)) => texts.append_value(text),
                        other if other.is_null() => texts.append_null(),
                        _ => return Err(external(internal("a value is not of the type of its expression"))),
                    }
                }
                Ok(Arc::new(texts.finish()))
            }
            gives => {
                let values = (0..rows).map(next).collect::<Result<Vec<_>>>()?;
                array_of(&values, gives).map_err(external)
            }
        }
    }
}

/// Numbers of one scale as an open column.
fn opened(numbers: &Decimal128Array) -> Result<ArrayRef> {
    let scale = u8::try_from(numbers.scale()).unwrap_or(0);
    let mut bytes = Vec::with_capacity(numbers.len() * numeric::BYTES as usize);
    for at in 0..numbers.len() {
        // What lies below NULL may be anything.
        let unscaled = if numbers.is_null(at) { 0 } else { numbers.value(at) };
        bytes.extend_from_slice(&numeric::encode(Decimal::new(unscaled, scale)));
    }
    let array = FixedSizeBinaryArray::try_new(numeric::BYTES, bytes.into(), numbers.nulls().cloned());
    Ok(Arc::new(array.map_err(|e| external(from_arrow(&e)))?))
}

/// Values as a cast to a length or precision gives them, if it changes none of them but for zeros at the end;
/// `None`: ask for each.
fn fitting(array: &ArrayRef, modifier: SqlType, gives: &DataType) -> Option<ArrayRef> {
    match (modifier, array.data_type(), gives) {
        (SqlType::Varchar(limit) | SqlType::Char(limit), DataType::Utf8View, DataType::Utf8View) => {
            // As many bytes as characters are allowed are never too many.
            let mut texts = array.as_string_view().iter().flatten();
            let trims = matches!(modifier, SqlType::Char(_));
            let fits = texts.all(|text| text.len() <= limit as usize && !(trims && text.ends_with(' ')));
            fits.then(|| Arc::clone(array))
        }
        (
            SqlType::Decimal { precision, scale },
            DataType::Decimal128(_, from),
            DataType::Decimal128(_, to),
        ) if *to == scale as i8 && (0..=*to).contains(from) => {
            let factor = 10_i128.pow(u32::from((to - from).unsigned_abs()));
            let most = 10_i128.pow(u32::from(precision)) - 1;
            let of =
                |value: i128| value.checked_mul(factor).filter(|value| value.unsigned_abs() <= most as u128);
            let numbers = array.as_primitive::<Decimal128Type>();
            let mut values = Vec::with_capacity(numbers.len());
            for value in numbers {
                values.push(value.map_or(Some(0), of)?);
            }
            let scaled = Decimal128Array::new(values.into(), numbers.nulls().cloned());
            Some(Arc::new(scaled.with_data_type(gives.clone())))
        }
        _ => None,
    }
}

/// Why an expression without transaction stopped.
fn reason(stop: Stop) -> SqlError {
    match stop {
        Stop::Error(error) | Stop::Fatal(error) => *error,
        Stop::Crossing | Stop::Locked => internal("an expression reached for a partition"),
    }
}

/// A row of arguments.
struct Row<'a> {
    arrays: &'a [ArrayRef],
    row: usize,
}

fn absent() -> Stop {
    internal("an expression over a snapshot has no variables, routines and queries").into()
}

impl Frame for Row<'_> {
    fn variable(&self, _: VariableId) -> &Datum {
        const { &Datum::NULL }
    }

    fn column(&mut self, column: ColumnRef) -> Result<Datum, Stop> {
        let array = self.arrays.get(usize::from(column.column)).ok_or_else(absent)?;
        // An argument that is one value for all rows may come as one.
        let row = if array.len() == 1 { 0 } else { self.row };
        Ok(datum_at(array.as_ref(), row)?)
    }

    fn now(&mut self) -> i64 {
        0
    }

    fn call(&mut self, _: RoutineId, _: Vec<Datum>) -> Result<Datum, Stop> {
        Err(absent())
    }

    fn query(&mut self, _: &SelectPlan, _: usize) -> Result<Vec<Vec<Datum>>, Stop> {
        Err(absent())
    }
}
