//! RETURN, RETURN NEXT, RETURN QUERY.

use albireo_base::{SqlError, SqlState};

use super::Binder;
use crate::body::place::Place;
use crate::body::signature::simplified;
use crate::body::tree::{Fit, Query, RowFit, Statement};
use crate::define::RoutineKind;
use crate::expr::{Expr, ExprKind};
use crate::parse::ast::{self, Expression, Span};
use crate::types::{Scalar, Type};

impl Binder<'_> {
    fn mismatch(&self, span: Span, message: &str) -> SqlError {
        self.error(span, SqlState::DATATYPE_MISMATCH, message)
    }

    fn missing(&self, span: Span) -> SqlError {
        let end = Span { start: span.end.saturating_sub(1), end: span.end };
        self.error(end, SqlState::SYNTAX_ERROR, "missing expression at or near \";\"")
    }

    pub(super) fn returned(
        &mut self,
        span: Span,
        value: Option<&Expression>,
    ) -> Result<Option<Statement>, SqlError> {
        let result = &self.signature.result;
        let place = result.place.clone();
        let procedure = self.signature.kind == RoutineKind::Procedure;
        match value {
            None if procedure || result.setof || result.from_variables || place == Place::Void => {
                Ok(Some(Statement::Return))
            }
            None => Err(self.missing(span)),
            Some(value) if procedure => {
                let message = "RETURN cannot have a parameter in a procedure";
                Err(self.error(value.span, SqlState::SYNTAX_ERROR, message))
            }
            Some(value) if result.setof => {
                let message = "RETURN cannot have a parameter in function returning set";
                let hint = "Use RETURN NEXT or RETURN QUERY.";
                Err(self.mismatch(value.span, message).with_hint(hint))
            }
            Some(value) if result.from_variables => {
                let message = "RETURN cannot have a parameter in function with OUT parameters";
                Err(self.mismatch(value.span, message))
            }
            Some(value) if place == Place::Void => {
                let message = "RETURN cannot have a parameter in function returning void";
                Err(self.mismatch(value.span, message))
            }
            Some(value) => {
                let fitted = self.last_value(value, &place);
                Ok(fitted.map(|(value, fit)| Statement::ReturnValue(Box::new(value), fit)))
            }
        }
    }

    fn returned_value(&mut self, value: &Expression, place: &Place) -> Option<(Expr, RowFit)> {
        let span = value.span;
        let value = self.expr(value)?;
        self.fitted_value(span, value, place)
    }

    fn fitted_value(&mut self, span: Span, value: Expr, place: &Place) -> Option<(Expr, RowFit)> {
        let same_count = match (&value.ty, place) {
            (Type::Row(from), Place::Row(to)) => from.fields.len() == to.fields.len(),
            (Type::Row(_), _) => false,
            _ => true,
        };
        let fitted = match same_count {
            true => self.row_fit(value, place),
            false => Err(self.mismatch(span, "returned record type does not match expected record type")),
        };
        self.later(span, fitted)
    }

    /// The value of RETURN, which becomes one of the result's type only when the body is over.
    fn last_value(&mut self, value: &Expression, place: &Place) -> Option<(Expr, RowFit)> {
        let span = value.span;
        let mut value = self.expr(value)?;
        let plain = place.scalar().is_some() && !matches!(value.ty, Type::Row(_) | Type::Void);
        if !plain {
            return self.fitted_value(span, value, place);
        }
        if let ExprKind::Constant(constant) = &value.kind {
            let known = self.row_fit(value.clone(), place).ok();
            if known.as_ref().is_some_and(|(value, _)| matches!(value.kind, ExprKind::Constant(_))) {
                return known;
            }
            if value.ty == Type::Scalar(Scalar::Unknown) && !constant.is_null() {
                value.ty = Type::Scalar(Scalar::Text);
            }
        }
        let fit = self.fit(&value.ty, place).map(|fit| (value, RowFit::Value(fit)));
        self.later(span, fit)
    }

    pub(super) fn returned_next(
        &mut self,
        span: Span,
        value: Option<&Expression>,
    ) -> Result<Option<Statement>, SqlError> {
        let result = &self.signature.result;
        let place = result.place.clone();
        if !result.setof {
            return Err(self.mismatch(span, "cannot use RETURN NEXT in a non-SETOF function"));
        }
        match (value, result.from_variables) {
            (None, true) => Ok(Some(Statement::ReturnNext)),
            (None, false) => Err(self.missing(span)),
            (Some(value), true) => {
                let message = "RETURN NEXT cannot have a parameter in function with OUT parameters";
                Err(self.mismatch(value.span, message))
            }
            (Some(value), false) => {
                let fitted = self.returned_value(value, &place);
                Ok(fitted.map(|(value, fit)| Statement::ReturnNextValue(Box::new(value), fit)))
            }
        }
    }

    pub(super) fn returned_query(
        &mut self,
        span: Span,
        query: &ast::Query,
    ) -> Result<Option<Statement>, SqlError> {
        if !self.signature.result.setof {
            return Err(self.mismatch(span, "cannot use RETURN QUERY in a non-SETOF function"));
        }
        let bound = self.query_of(&query.tree);
        let fitted = bound.and_then(|query| {
            let fits = self.result_fits(&query)?;
            Ok((query, fits))
        });
        Ok(self.later(query.span, fitted).map(|(query, fits)| Statement::ReturnQuery(query, fits)))
    }

    /// How the columns of a query become those of the result, whose types they must have.
    fn result_fits(&mut self, query: &Query) -> Result<Vec<Fit>, SqlError> {
        let signature = std::sync::Arc::clone(&self.signature);
        let wanted = &signature.result.columns;
        let columns = query.columns();
        let refuse = |detail: String| {
            let message = "structure of query does not match function result type";
            Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).with_detail(detail))
        };
        if columns.len() != wanted.len() {
            return refuse(format!(
                "Number of returned columns ({}) does not match expected column count ({}).",
                columns.len(),
                wanted.len()
            ));
        }
        let mut fits = Vec::new();
        for (n, ((_, from), (_, to))) in columns.iter().zip(wanted).enumerate() {
            if simplified(from.clone()) != simplified(to.ty()) {
                return refuse(format!(
                    "Returned type {from} does not match expected type {} in column {}.",
                    to.ty(),
                    n + 1
                ));
            }
            fits.push(self.fit(from, to)?);
        }
        Ok(fits)
    }
}
