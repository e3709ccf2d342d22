//! Statements one by one.

use albireo_base::{SqlError, SqlState, Value};
use albireo_plpgsql::body::{Call, Fit, Into, Jump, Query, RowFit, Statement, Target};
use albireo_plpgsql::parse::ast::DiagnosticItem;

use super::{Flow, Machine};
use crate::Stop;
use crate::datum::Datum;
use crate::expr::{Expr, Frame};
use crate::host::Host;

impl Machine<'_> {
    pub(super) fn statements<'r>(&mut self, all: &'r [Statement]) -> Result<Flow<'r>, Stop> {
        for statement in all {
            match self.statement(statement)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn statement<'r>(&mut self, statement: &'r Statement) -> Result<Flow<'r>, Stop> {
        match statement {
            Statement::Block(block) => return self.block(block),
            Statement::If(branches, otherwise) => return self.branches(branches, otherwise),
            Statement::Case(case) => return self.case(case),
            Statement::Loop(a_loop) => return self.a_loop(a_loop),
            Statement::Jump(jump) => return self.jump(jump),
            Statement::Return => return Ok(Flow::Return),
            Statement::ReturnValue(value, fit) => {
                // It becomes one of the result's type when all handlers are behind it.
                self.value = Some(self.evaluate(value)?);
                self.value_fit = Some(fit.clone());
                return Ok(Flow::Return);
            }
            Statement::Assign(assignment) => self.assign(assignment)?,
            Statement::Perform(query) | Statement::Execute(query) => {
                let (count, _) = self.rows(query, usize::MAX)?;
                self.row_count = count;
                self.set_found(count > 0);
            }
            Statement::Into(into) => self.into(into)?,
            Statement::Call(call) => self.call_procedure(call)?,
            Statement::Diagnostics(items) => self.diagnostics(items)?,
            Statement::SynchronousCommit(wait) => self.live.tx.set_synchronous_commit(*wait),
            Statement::RaiseAgain => return Err(self.raise_again()),
            Statement::Raise(raise) => self.raise(raise)?,
            Statement::Assert(condition, message) => self.assert(condition, message.as_deref())?,
            Statement::ReturnNext => {
                let value = self.result_of_variables();
                self.add_value(value)?;
            }
            Statement::ReturnNextValue(value, fit) => {
                let value = self.returned(value, fit)?;
                self.add_value(value)?;
            }
            Statement::ReturnQuery(query, fits) => self.return_query(query, fits)?,
        }
        Ok(Flow::Next)
    }

    fn returned(&mut self, value: &Expr, fit: &RowFit) -> Result<Datum, Stop> {
        let value = self.evaluate(value)?;
        self.fit_row(fit, value)
    }

    /// Adds to the set that is returned.
    fn add_value(&mut self, value: Datum) -> Result<(), Stop> {
        self.take_memory(value.bytes())?;
        self.values.push(value);
        Ok(())
    }

    fn return_query(&mut self, query: &Query, fits: &[Fit]) -> Result<(), Stop> {
        let (count, rows) = self.rows(query, usize::MAX)?;
        for row in rows {
            let mut fitted = Vec::with_capacity(row.len());
            for (value, fit) in row.into_iter().zip(fits) {
                fitted.push(self.fit(fit, value)?);
            }
            let value = match self.routine.signature.result.place {
                albireo_plpgsql::body::Place::Row(_) => Datum::Row(fitted.into()),
                _ => fitted.pop().unwrap_or(Datum::NULL),
            };
            self.add_value(value)?;
        }
        self.row_count = count;
        self.set_found(count > 0);
        Ok(())
    }

    fn jump<'r>(&mut self, jump: &'r Jump) -> Result<Flow<'r>, Stop> {
        if let Some(when) = &jump.when
            && !self.holds(when)?
        {
            return Ok(Flow::Next);
        }
        let label = jump.label.as_deref();
        Ok(if jump.goes_on { Flow::Continue(label) } else { Flow::Exit(label) })
    }

    fn into(&mut self, into: &Into) -> Result<(), Stop> {
        let (count, rows) = self.rows(&into.query, if into.strict { 2 } else { 1 })?;
        let changes = matches!(into.query, Query::Change(_));
        // Handlers and the targets, FOUND among them, come after this.
        self.row_count = if changes { count.min(2) } else { rows.len() as u64 };
        self.set_found(self.row_count > 0);
        if rows.len() > 1 && (into.strict || changes) {
            let error = SqlError::new(SqlState(*b"P0003"), "query returned more than one row");
            let hint = "Make sure the query returns a single row, or use LIMIT 1.";
            return Err(error.with_hint(hint).into());
        }
        let row = rows.into_iter().next();
        if row.is_none() && into.strict {
            return Err(SqlError::new(SqlState(*b"P0002"), "query returned no rows").into());
        }
        self.sink(&into.sink, row)
    }

    fn call_procedure(&mut self, call: &Call) -> Result<(), Stop> {
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push(self.evaluate(arg)?);
        }
        let value = Frame::call(self, call.routine, args)?;
        if let Datum::Row(fields) = value {
            for ((target, fit), field) in call.outputs.iter().zip(fields.iter()) {
                let value = self.fit(fit, field.clone())?;
                self.put(target, value)?;
            }
        }
        Ok(())
    }

    fn diagnostics(&mut self, items: &[(Target, Fit, DiagnosticItem)]) -> Result<(), Stop> {
        for (target, fit, item) in items {
            let value = match item {
                DiagnosticItem::RowCount => Value::BigInt(i64::try_from(self.row_count).unwrap_or(i64::MAX)),
                other => Value::Text(self.of_handled(*other)?),
            };
            let value = self.fit(fit, value.into())?;
            self.put(target, value)?;
        }
        Ok(())
    }

    /// What GET STACKED DIAGNOSTICS says of the error being handled.
    fn of_handled(&self, item: DiagnosticItem) -> Result<String, Stop> {
        let Some(error) = self.handling.last() else {
            let message = "GET STACKED DIAGNOSTICS cannot be used outside an exception handler";
            return Err(SqlError::new(SqlState(*b"0Z002"), message).into());
        };
        Ok(match item {
            DiagnosticItem::RowCount => self.row_count.to_string(),
            DiagnosticItem::ReturnedSqlstate => error.state().to_string(),
            DiagnosticItem::MessageText => error.message().to_owned(),
            DiagnosticItem::Detail => error.detail().unwrap_or_default().to_owned(),
            DiagnosticItem::Hint => error.hint().unwrap_or_default().to_owned(),
        })
    }
}
