//! CALL from outside of any routine.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast;

use super::bind::Outside;
use super::resolve::{self, Routines};
use super::signature::Signature;
use crate::define::RoutineKind;
use crate::expr::{self, Expr, Names as _, RoutineId};
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
}

/// Binds a CALL; `outside` says what names and parameters mean. A parameter that is an argument by itself and
/// has no type takes that of the procedure's.
///
/// # Errors
/// 42883, 42725, 42809 as [`resolve()`](resolve::resolve); what is wrong with the arguments.
pub fn bind_call(
    routines: &dyn Routines,
    function: &ast::Function,
    outside: &mut Outside<'_>,
) -> Result<BoundCall, SqlError> {
    let (mut actuals, mut args) = (Vec::new(), Vec::new());
    for (actual, tree) in expr::actuals(function)? {
        args.push(expr::bind(tree, outside)?);
        actuals.push(actual);
    }
    let kind = RoutineKind::Procedure;
    let found = resolve::resolve(routines, &function.name, kind, &actuals, &args, outside.source())?;
    let Some(resolved) = found else {
        let message = format!("procedure {} does not exist", resolve::name_of(&function.name));
        return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
    };
    let args = resolve::arguments(&resolved, args.into_iter().map(Some).collect())?;
    Ok(BoundCall { id: resolved.id, signature: resolved.signature, args })
}

impl BoundCall {
    /// Names and types of the columns of the result: those of its INOUT and OUT parameters.
    pub fn columns(&self) -> Vec<(String, Type)> {
        let columns = self.signature.result.columns.iter();
        columns.map(|(name, place)| (name.clone(), place.ty())).collect()
    }
}
