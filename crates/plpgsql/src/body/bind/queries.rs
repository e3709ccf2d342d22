//! Bodies in SQL: statements, the last of which gives the result.

use albireo_base::SqlError;
use albireo_sql::ast as tree;
use albireo_sql::classify::changes_rows;

use super::Binder;
use crate::body::place::{self, Place};
use crate::body::tree::{Code, Fit, Query};
use crate::define::INVALID_FUNCTION_DEFINITION;
use crate::expr::{CastKind, Expr, ExprKind};
use crate::parse::ast::VariableConflict;
use crate::types::Type;

impl Binder<'_> {
    /// A whole body; all its mistakes are found at once.
    pub(super) fn sql_body(&mut self) -> Result<Option<Code>, SqlError> {
        self.conflict = VariableConflict::UseColumn;
        // Parameters that only go out have no name here, nor a number.
        let inputs: Vec<_> = self.signature.parameters.iter().map(|p| p.mode.is_in()).collect();
        let mut inputs = inputs.into_iter();
        self.parameters.retain(|_| inputs.next().unwrap_or(false));
        let outs: Vec<_> = self.signature.parameters.iter().filter(|p| !p.mode.is_in()).collect();
        let names: Vec<String> = outs.iter().map(|p| p.name.clone()).collect();
        for scope in &mut self.scopes {
            scope.names.retain(|name, _| !names.contains(name) && name != "found");
        }
        let mut queries = Vec::new();
        for statement in albireo_sql::parse(self.text)? {
            match statement {
                tree::Statement::Query(_) => queries.push(self.query_of(&statement)?),
                change if changes_rows(&change) => queries.push(self.query_of(&change)?),
                _ => {
                    return Err(SqlError::unsupported("this statement in a function in SQL")
                        .with_hint("It may contain SELECT, INSERT, UPDATE, DELETE and MERGE."));
                }
            }
        }
        let fits = match self.signature.result.place {
            Place::Void => Vec::new(),
            _ => self.last_fits(queries.last())?,
        };
        Ok(Some(Code::Queries(queries, fits)))
    }

    /// How the columns of the last query become the result.
    fn last_fits(&mut self, last: Option<&Query>) -> Result<Vec<Fit>, SqlError> {
        let signature = std::sync::Arc::clone(&self.signature);
        let shown = signature.result.place.ty();
        let refuse = |detail: String| {
            let message = format!("return type mismatch in function declared to return {shown}");
            SqlError::new(INVALID_FUNCTION_DEFINITION, message).with_detail(detail)
        };
        let columns = last.map_or(&[][..], Query::columns);
        if columns.is_empty() {
            let detail = "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.";
            return Err(refuse(detail.to_owned()));
        }
        let wanted = &signature.result.columns;
        if columns.len() != wanted.len() {
            let many = if columns.len() > wanted.len() { "many" } else { "few" };
            return Err(refuse(format!("Final statement returns too {many} columns.")));
        }
        let mut fits = Vec::new();
        for ((_, from), (_, to)) in columns.iter().zip(wanted) {
            let fit = self.assignment_fit(from, to);
            fits.push(fit.map_err(|_| refuse(format!("Actual return type is {from}.")))?);
        }
        Ok(fits)
    }

    /// As [`fit`](Self::fit), with the casts of INSERT only.
    fn assignment_fit(&mut self, from: &Type, to: &Place) -> Result<Fit, SqlError> {
        let scratch = self.scratch(from);
        let value = Expr { kind: ExprKind::Variable(scratch), ty: from.clone() };
        let fitted = place::fit(value, to, CastKind::Assignment)?;
        match fitted.kind {
            ExprKind::Variable(same) if same == scratch => Ok(Fit::Same),
            _ => Ok(Fit::Cast(scratch, Box::new(fitted))),
        }
    }
}
