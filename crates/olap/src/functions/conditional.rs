//! COALESCE, GREATEST, LEAST and NULLIF while a statement is read.
//!
//! DataFusion settles their argument types at once and refuses a date beside a quoted literal. So
//! they are read as these functions, which know their type by PostgreSQL's rules; the analyzer then
//! puts DataFusion's in their place, over arguments of one type.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions::core;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::rowwise::is_text;
use crate::errors::{external, internal};
use crate::semantics::unify;

/// One of them.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(crate) struct Conditional {
    name: &'static str,
    signature: Signature,
}

/// All of them.
pub(crate) fn functions() -> Vec<Arc<ScalarUDF>> {
    let any = || {
        let shapes = vec![TypeSignature::VariadicAny, TypeSignature::Nullary];
        Signature::one_of(shapes, Volatility::Immutable)
    };
    ["coalesce", "greatest", "least", "nullif"]
        .into_iter()
        .map(|name| Arc::new(ScalarUDF::new_from_impl(Conditional { name, signature: any() })))
        .collect()
}

impl Conditional {
    /// The function that computes it.
    pub(crate) fn computed(&self) -> Arc<ScalarUDF> {
        match self.name {
            "coalesce" => core::coalesce(),
            "greatest" => core::greatest(),
            "least" => core::least(),
            _ => core::nullif(),
        }
    }
}

impl ScalarUDFImpl for Conditional {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        let arity_fits = if self.name == "nullif" { arg_types.len() == 2 } else { !arg_types.is_empty() };
        if !arity_fits {
            let message = format!("wrong number of arguments for {}", self.name.to_uppercase());
            return Err(external(SqlError::new(SqlState::SYNTAX_ERROR, message)));
        }
        if self.name == "nullif" && arg_types[0] != DataType::Null {
            return Ok(arg_types[0].clone());
        }
        // A text may be a literal, which takes the others' type.
        let known: Vec<DataType> = arg_types.iter().filter(|ty| **ty != DataType::Utf8).cloned().collect();
        let all_text = known.iter().all(|ty| is_text(ty) || *ty == DataType::Null);
        let common = unify::common_of(if all_text { arg_types } else { &known }, &self.name.to_uppercase())?;
        Ok(common.unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(external(internal(format!("{} was not settled", self.name))))
    }
}
