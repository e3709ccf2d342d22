//! CALL from outside of any routine.
use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_sql::{Catalog, ast};

use super::bind::Outside;
use super::resolve::{self, Routines};
use super::signature::Signature;
use super::tree::Routine;
use crate::define::RoutineKind;
use crate::expr::{self, Expr, RoutineId};
use crate::types::Type;

/// A call of a procedure with its arguments.
#[derive(Clone, Debug)]
pub struct BoundCall {
    /// The procedure.
    pub id: RoutineId,
    /// Its signature.
    pub signature: Arc<Signature>,
    /// What its input parameters get.
    pub args: Vec<Expr>,
    /// What surrounds the arguments.
    pub around: Arc<Routine>,
}

/// Binds a CALL that stands in `text`.
///
/// # Errors
/// 42883, 42725, 42809 as [`resolve()`](resolve::resolve); what is wrong with the arguments.
pub fn bind_call(
    catalog: &Catalog,
    routines: &dyn Routines,
    function: &ast::Function,
    text: &str,
) -> Result<BoundCall, SqlError> {
    let mut outside = Outside::new(catalog, routines, text);
    let (mut actuals, mut args) = (Vec::new(), Vec::new());
    for (actual, tree) in expr::actuals(function)? {
        args.push(expr::bind(tree, &mut outside)?);
        actuals.push(actual);
    }
    let types: Vec<Type> = args.iter().map(|arg| arg.ty.clone()).collect();
    let source = albireo_sql::source::Source::new(text);
    let kind = RoutineKind::Procedure;
    let Some(resolved) = resolve::resolve(routines, &function.name, kind, &actuals, &types, source)? else {
        let message = format!("procedure {} does not exist", resolve::name_of(&function.name));
        return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
    };
    let args = resolve::arguments(&resolved, args.into_iter().map(Some).collect())?;
    let around = Arc::new(outside.into_routine());
    Ok(BoundCall { id: resolved.id, signature: resolved.signature, args, around })
}

impl BoundCall {
    /// Names and types of the columns of the result: those of its INOUT and OUT parameters.
    pub fn columns(&self) -> Vec<(String, Type)> {
        let columns = self.signature.result.columns.iter();
        columns.map(|(name, place)| (name.clone(), place.ty())).collect()
    }
}
