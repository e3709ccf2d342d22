//! Functions computed one row at a time: rarely called ones, where saying it simply counts for
//! more than speed.
//!
//! Responsible for: NULL in, NULL out; constants computed once; arrays of any argument type.
//! Not responsible for: what a function means (the modules that make [`RowFunction`]s).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use albireo_base::SqlError;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::errors::external;
use crate::types::sql_type;

/// The types a function takes and gives for arguments of these types; `None`: there is no such
/// function.
pub(crate) type Typing = fn(&[DataType]) -> Option<(Vec<DataType>, DataType)>;

/// The value for arguments none of which is NULL, of the given type.
pub(crate) type Call = fn(&[ScalarValue], &DataType) -> Result<ScalarValue, SqlError>;

/// One function.
pub(crate) struct RowFunction {
    name: &'static str,
    typing: Typing,
    call: Call,
    takes_nulls: bool,
    signature: Signature,
}

/// A function that DataFusion can register.
pub(crate) fn function(name: &'static str, typing: Typing, call: Call) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(RowFunction { name, typing, call, takes_nulls: false, signature }))
}

/// As [`function`], for one that is called with NULLs as well.
pub(crate) fn with_nulls(name: &'static str, typing: Typing, call: Call) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(RowFunction { name, typing, call, takes_nulls: true, signature }))
}

impl PartialEq for RowFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for RowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// What PostgreSQL calls a type in messages.
pub(crate) fn type_name(ty: &DataType) -> String {
    match ty {
        DataType::Null | DataType::Utf8 => "unknown".to_owned(),
        DataType::LargeUtf8 => "text".to_owned(),
        DataType::Decimal128(..) => "numeric".to_owned(),
        DataType::Interval(_) | DataType::Duration(_) => "interval".to_owned(),
        other => {
            sql_type(&crate::types::result_type(other)).map_or_else(|| other.to_string(), |t| t.to_string())
        }
    }
}

/// Whether a type is one of DataFusion's three for text.
pub(crate) fn is_text(ty: &DataType) -> bool {
    matches!(ty, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// The text of a value of a text type.
pub(crate) fn text(value: &ScalarValue) -> &str {
    match value {
        ScalarValue::Utf8(Some(s)) | ScalarValue::LargeUtf8(Some(s)) | ScalarValue::Utf8View(Some(s)) => s,
        _ => "",
    }
}

/// A text as the value of a function.
pub(crate) fn text_value(text: impl Into<String>) -> ScalarValue {
    ScalarValue::Utf8View(Some(text.into()))
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match (self.typing)(arg_types) {
            Some((arguments, _)) => Ok(arguments),
            None => {
                let types: Vec<String> = arg_types.iter().map(type_name).collect();
                plan_err!("No function matches {}({})", self.name, types.join(", "))
            }
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match (self.typing)(arg_types) {
            Some((_, result)) => Ok(result),
            None => self.coerce_types(arg_types).map(|_| DataType::Null),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let result = args.return_field.data_type();
        let null = ScalarValue::try_new_null(result)?;
        let one = |values: &[ScalarValue]| -> Result<ScalarValue> {
            if !self.takes_nulls && values.iter().any(ScalarValue::is_null) {
                return Ok(null.clone());
            }
            let value = (self.call)(values, result).map_err(external)?;
            if value.is_null() { Ok(null.clone()) } else { Ok(value) }
        };
        if args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_))) {
            let values: Vec<ScalarValue> = args.args.iter().filter_map(scalar_of).collect();
            return Ok(ColumnarValue::Scalar(one(&values)?));
        }
        let mut rows = Vec::with_capacity(args.number_rows);
        let mut values = Vec::with_capacity(args.args.len());
        for row in 0..args.number_rows {
            values.clear();
            for arg in &args.args {
                values.push(match arg {
                    ColumnarValue::Scalar(value) => value.clone(),
                    ColumnarValue::Array(array) => ScalarValue::try_from_array(array, row)?,
                });
            }
            rows.push(one(&values)?);
        }
        if rows.is_empty() {
            return Ok(ColumnarValue::Array(arrow::array::new_empty_array(result)));
        }
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(rows)?))
    }
}

fn scalar_of(value: &ColumnarValue) -> Option<ScalarValue> {
    match value {
        ColumnarValue::Scalar(value) => Some(value.clone()),
        ColumnarValue::Array(_) => None,
    }
}
