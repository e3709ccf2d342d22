//! RAISE and ASSERT.

use albireo_base::{SqlError, SqlState, Value};
use albireo_plpgsql::body::Raise;
use albireo_plpgsql::conditions;
use albireo_plpgsql::parse::ast::{RaiseLevel, RaiseOptionKind};

use super::Machine;
use crate::Stop;
use crate::datum::Datum;
use crate::expr::{Expr, text_of};

impl Machine<'_> {
    /// The error of RAISE without anything.
    pub(super) fn raise_again(&self) -> Stop {
        match self.handling.last() {
            Some(error) => error.clone().into(),
            None => {
                let message = "RAISE without parameters cannot be used outside an exception handler";
                SqlError::new(SqlState(*b"0Z002"), message).into()
            }
        }
    }

    pub(super) fn raise(&mut self, raise: &Raise) -> Result<(), Stop> {
        let mut message = None;
        if !raise.pieces.is_empty() {
            message = Some(self.format(raise)?);
        }
        let mut state = raise.state;
        let mut condition = raise.condition.clone();
        let (mut detail, mut hint) = (None, None);
        for (kind, value) in &raise.options {
            let value = self.text(value)?.ok_or_else(|| {
                let message = "RAISE statement option cannot be null";
                SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
            })?;
            match kind {
                RaiseOptionKind::Errcode => {
                    state = Some(state_of(&value)?);
                    condition = Some(value);
                }
                RaiseOptionKind::Message => message = Some(value),
                RaiseOptionKind::Detail => detail = Some(value),
                RaiseOptionKind::Hint => hint = Some(value),
                // Our errors do not say which object they are about.
                RaiseOptionKind::Column
                | RaiseOptionKind::Constraint
                | RaiseOptionKind::Datatype
                | RaiseOptionKind::Table
                | RaiseOptionKind::Schema => {}
            }
        }
        let state = state.unwrap_or(SqlState::RAISE_EXCEPTION);
        let message = message.or(condition).unwrap_or_else(|| state.to_string());
        if raise.level != RaiseLevel::Exception {
            self.live.notice(raise.level, message);
            return Ok(());
        }
        let mut error = SqlError::new(state, message);
        if let Some(detail) = detail {
            error = error.with_detail(detail);
        }
        if let Some(hint) = hint {
            error = error.with_hint(hint);
        }
        Err(error.into())
    }

    fn format(&mut self, raise: &Raise) -> Result<String, Stop> {
        let mut message = String::new();
        let mut arguments = raise.arguments.iter();
        for (n, piece) in raise.pieces.iter().enumerate() {
            if n > 0
                && let Some(argument) = arguments.next()
            {
                let value = self.evaluate(argument)?;
                message.push_str(text_of(&value).as_deref().unwrap_or("<NULL>"));
            }
            message.push_str(piece);
        }
        Ok(message)
    }

    /// The value of an expression that is a text; `None` for NULL.
    fn text(&mut self, expr: &Expr) -> Result<Option<String>, Stop> {
        Ok(match self.evaluate(expr)? {
            Datum::Value(Value::Text(text)) => Some(text),
            other => text_of(&other),
        })
    }

    pub(super) fn assert(&mut self, condition: &Expr, message: Option<&Expr>) -> Result<(), Stop> {
        if self.holds(condition)? {
            return Ok(());
        }
        let message = match message {
            Some(message) => self.text(message)?,
            None => None,
        };
        let message = message.unwrap_or_else(|| "assertion failed".to_owned());
        Err(SqlError::new(SqlState(*b"P0004"), message).into())
    }
}

/// The SQLSTATE that ERRCODE means: itself, or the name of a condition.
fn state_of(text: &str) -> Result<SqlState, Stop> {
    if let Ok(code) = <[u8; 5]>::try_from(text.as_bytes())
        && code.iter().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase())
    {
        return Ok(SqlState(code));
    }
    conditions::states(text).next().ok_or_else(|| {
        let message = format!("unrecognized exception condition \"{text}\"");
        SqlError::new(SqlState::UNDEFINED_OBJECT, message).into()
    })
}
