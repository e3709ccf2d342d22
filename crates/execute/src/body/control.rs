//! IF, CASE and loops.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, Value};
use albireo_plpgsql::body::{Case, Loop, LoopKind, Statement};

use super::{Flow, Machine};
use crate::Stop;
use crate::datum::{Array, Datum};
use crate::expr::Expr;

impl Machine<'_> {
    pub(super) fn branches<'r>(
        &mut self,
        branches: &'r [(Expr, Vec<Statement>)],
        otherwise: &'r [Statement],
    ) -> Result<Flow<'r>, Stop> {
        for (condition, statements) in branches {
            if self.holds(condition)? {
                return self.statements(statements);
            }
        }
        self.statements(otherwise)
    }

    pub(super) fn case<'r>(&mut self, case: &'r Case) -> Result<Flow<'r>, Stop> {
        if let Some((operand, variable)) = &case.operand {
            let value = self.evaluate(operand)?;
            self.set(*variable, value)?;
        }
        for (conditions, statements) in &case.branches {
            for condition in conditions {
                if self.holds(condition)? {
                    return self.statements(statements);
                }
            }
        }
        match &case.otherwise {
            Some(otherwise) => self.statements(otherwise),
            None => {
                let error = SqlError::new(SqlState(*b"20000"), "case not found");
                Err(error.with_hint("CASE statement is missing ELSE part.").into())
            }
        }
    }

    /// One round of a loop: `None` to go on with the next.
    fn round<'r>(&mut self, a_loop: &'r Loop) -> Result<Option<Flow<'r>>, Stop> {
        self.live.check_interrupt()?;
        let is_ours = |label: &str| a_loop.label.as_deref() == Some(label);
        Ok(match self.statements(&a_loop.statements)? {
            Flow::Next | Flow::Continue(None) => None,
            Flow::Continue(Some(label)) if is_ours(label) => None,
            Flow::Exit(None) => Some(Flow::Next),
            Flow::Exit(Some(label)) if is_ours(label) => Some(Flow::Next),
            other => Some(other),
        })
    }

    pub(super) fn a_loop<'r>(&mut self, a_loop: &'r Loop) -> Result<Flow<'r>, Stop> {
        match &a_loop.kind {
            LoopKind::Endless => loop {
                if let Some(flow) = self.round(a_loop)? {
                    return Ok(flow);
                }
            },
            LoopKind::While(condition) => {
                while self.holds(condition)? {
                    if let Some(flow) = self.round(a_loop)? {
                        return Ok(flow);
                    }
                }
                Ok(Flow::Next)
            }
            LoopKind::Range { from, to, step, .. } => self.range(a_loop, [from, to], step.as_ref()),
            LoopKind::Query { sink, query } => {
                let (_, rows) = self.rows(query, usize::MAX)?;
                let found = !rows.is_empty();
                if !found {
                    self.sink(sink, None)?;
                }
                let mut flow = Flow::Next;
                for row in rows {
                    self.sink(sink, Some(row))?;
                    if let Some(end) = self.round(a_loop)? {
                        flow = end;
                        break;
                    }
                }
                self.set_found(found);
                Ok(flow)
            }
            LoopKind::Array { target, fit, array } => {
                let array = match self.evaluate(array)? {
                    Datum::Array(array) => array,
                    _ => {
                        let message = "FOREACH expression must not be null";
                        return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message).into());
                    }
                };
                self.each(a_loop, &array, |machine, item| {
                    let value = machine.fit(fit, item)?;
                    machine.put(target, value)
                })
            }
        }
    }

    fn each<'r>(
        &mut self,
        a_loop: &'r Loop,
        array: &Arc<Array>,
        mut put: impl FnMut(&mut Self, Datum) -> Result<(), Stop>,
    ) -> Result<Flow<'r>, Stop> {
        let mut flow = Flow::Next;
        for item in &array.items {
            put(self, item.clone())?;
            if let Some(end) = self.round(a_loop)? {
                flow = end;
                break;
            }
        }
        self.set_found(!array.items.is_empty());
        Ok(flow)
    }

    fn bound(&mut self, expr: &Expr, what: &str) -> Result<i32, Stop> {
        match self.evaluate(expr)? {
            Datum::Value(Value::Integer(value)) => Ok(value),
            _ => {
                let message = format!("{what} of FOR loop cannot be null");
                Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message).into())
            }
        }
    }

    fn range<'r>(
        &mut self,
        a_loop: &'r Loop,
        [from, to]: [&Expr; 2],
        step: Option<&Expr>,
    ) -> Result<Flow<'r>, Stop> {
        let LoopKind::Range { variable, reverse, .. } = &a_loop.kind else { return Ok(Flow::Next) };
        let mut at = self.bound(from, "lower bound")?;
        let to = self.bound(to, "upper bound")?;
        let step = step.map_or(Ok(1), |step| self.bound(step, "BY value"))?;
        if step <= 0 {
            let message = "BY value of FOR loop must be greater than zero";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).into());
        }
        let mut found = false;
        let mut flow = Flow::Next;
        while if *reverse { at >= to } else { at <= to } {
            found = true;
            self.set(*variable, Value::Integer(at).into())?;
            if let Some(end) = self.round(a_loop)? {
                flow = end;
                break;
            }
            let next = if *reverse { at.checked_sub(step) } else { at.checked_add(step) };
            let Some(next) = next else { break };
            at = next;
        }
        self.set_found(found);
        Ok(flow)
    }
}
