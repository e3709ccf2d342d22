//! Statements that are neither control flow nor results.

use albireo_base::{SqlError, SqlState, SqlType, budget};
use albireo_sql::ast as tree;
use albireo_sql::names::fold;

use super::Binder;
use crate::body::place::Place;
use crate::body::resolve;
use crate::body::tree::{Call, Into, Raise, Statement, Target};
use crate::define::RoutineKind;
use crate::expr::{self, Expr};
use crate::parse::ast::{
    self, ConditionKind, Diagnostic, DiagnosticItem, Expression, RaiseKind, RaiseLevel, Span, StatementKind,
};
use crate::types::{Scalar, Type};

const TEXT: Place = Place::Sql(SqlType::Text);

impl Binder<'_> {
    pub(super) fn statements(&mut self, all: &[ast::Statement]) -> Result<Vec<Statement>, SqlError> {
        let mut bound = Vec::new();
        for statement in all {
            bound.extend(self.statement(statement)?);
        }
        Ok(bound)
    }

    /// A statement; none if it does nothing, or is wrong in a way that has been noted.
    fn statement(&mut self, statement: &ast::Statement) -> Result<Option<Statement>, SqlError> {
        budget::take(4 * size_of::<Statement>())?;
        let span = statement.span;
        match &statement.kind {
            StatementKind::Null => Ok(None),
            StatementKind::Block(block) => self.block(block).map(|block| Some(Statement::Block(block))),
            StatementKind::Assign { target, value } => {
                let target = self.target(target)?;
                let whole = value.span;
                let value = self.expr(value);
                let (Some(target), Some(value)) = (target, value) else { return Ok(None) };
                let assignment = self.assign(target, value);
                Ok(self.later(whole, assignment).map(Statement::Assign))
            }
            StatementKind::If { branches, otherwise } => self.branches(branches, otherwise.as_deref()),
            StatementKind::Case { operand, branches, otherwise } => {
                self.case(operand.as_ref(), branches, otherwise.as_deref())
            }
            StatementKind::Loop(a_loop) => self.a_loop(a_loop),
            StatementKind::Jump(jump) => self.jump(jump),
            StatementKind::Perform(query) => {
                let bound = self.query_of(&query.tree);
                Ok(self.later(query.span, bound).map(Statement::Perform))
            }
            StatementKind::Call { function } => {
                let call = self.procedure_call(function, span)?;
                Ok(call.map(|call| Statement::Call(Box::new(call))))
            }
            StatementKind::Sql { query, into } => self.sql(query, into.as_ref()),
            StatementKind::Diagnostics(items) => self.diagnostics(items),
            StatementKind::SynchronousCommit(wait) => Ok(Some(Statement::SynchronousCommit(*wait))),
            StatementKind::Raise(raise) => self.raise(raise),
            StatementKind::Assert { condition, message } => {
                let condition = self.condition(condition);
                let message = match message {
                    Some(message) => match self.expr_to(message, &TEXT) {
                        Some(message) => Some(Box::new(message)),
                        None => return Ok(None),
                    },
                    None => None,
                };
                Ok(condition.map(|condition| Statement::Assert(Box::new(condition), message)))
            }
            StatementKind::Return(value) => self.returned(span, value.as_ref()),
            StatementKind::ReturnNext(value) => self.returned_next(span, value.as_ref()),
            StatementKind::ReturnQuery(query) => self.returned_query(span, query),
        }
    }

    fn sql(&mut self, query: &ast::Query, into: Option<&ast::Into>) -> Result<Option<Statement>, SqlError> {
        let bound = self.query_of(&query.tree);
        let bound = self.later(query.span, bound);
        if let Some(into) = into {
            let sink = self.sink_of(into, bound.as_ref(), &query.tree)?;
            let (Some(query), Some(sink)) = (bound, sink) else { return Ok(None) };
            if query.columns().is_empty() {
                let message = "INTO used with a command that cannot return data";
                let error = self.error(into.span, SqlState::SYNTAX_ERROR, message);
                self.later(into.span, Err::<(), _>(error.with_hint("Add RETURNING.")));
            }
            return Ok(Some(Statement::Into(Box::new(Into { query, sink, strict: into.strict }))));
        }
        let Some(bound) = bound else { return Ok(None) };
        if !bound.columns().is_empty() || matches!(bound, crate::body::tree::Query::Select(_)) {
            let message = "query has no destination for result data";
            let hint = "If you want to discard the results of a SELECT, use PERFORM instead.";
            let error = self.error(query.span, SqlState::SYNTAX_ERROR, message).with_hint(hint);
            self.later(query.span, Err::<(), _>(error));
            return Ok(None);
        }
        Ok(Some(Statement::Execute(bound)))
    }

    fn procedure_call(&mut self, function: &tree::Function, span: Span) -> Result<Option<Call>, SqlError> {
        let bound = self.call_of(function);
        let Some((resolved, args)) = self.later(span, bound) else { return Ok(None) };
        let mut outputs = Vec::new();
        let signature = resolved.signature.clone();
        let actuals = expr::actuals(function)?;
        for (formal, argument) in signature.parameters.iter().zip(&resolved.order) {
            if !formal.mode.is_out() {
                continue;
            }
            let tree = argument.and_then(|n| actuals.get(n)).map(|(_, tree)| *tree);
            let Some(target) = self.writable(tree, span)? else {
                let message = format!(
                    "procedure parameter \"{}\" is an output parameter but corresponding argument is not writable",
                    formal.name
                );
                let error = self.error(span, SqlState::SYNTAX_ERROR, message);
                self.later(span, Err::<(), _>(error.with_hint("Write a variable there.")));
                return Ok(None);
            };
            let to = self.place_of(&target);
            let fit = self.fit(&formal.place.ty(), &to);
            let Some(fit) = self.later(span, fit) else { return Ok(None) };
            outputs.push((target, fit));
        }
        let args = resolve::arguments(&resolved, args);
        let Some(args) = self.later(span, args) else { return Ok(None) };
        Ok(Some(Call { routine: resolved.id, args, outputs }))
    }

    /// The procedure that CALL means, and its arguments.
    fn call_of(
        &mut self,
        function: &tree::Function,
    ) -> Result<(resolve::Resolved, Vec<Option<Expr>>), SqlError> {
        let mut args = Vec::new();
        for (_, tree) in expr::actuals(function)? {
            args.push(expr::bind(tree, self)?);
        }
        match self.resolve(function, RoutineKind::Procedure, &args)? {
            Some(resolved) => Ok((resolved, args.into_iter().map(Some).collect())),
            None => Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, "procedure does not exist")),
        }
    }

    /// The variable an argument is; `None` if it is something else.
    fn writable(&mut self, argument: Option<&tree::Expr>, span: Span) -> Result<Option<Target>, SqlError> {
        let names: Vec<String> = match argument {
            Some(tree::Expr::Identifier(name)) => vec![fold(name)],
            Some(tree::Expr::CompoundIdentifier(names)) => names.iter().map(fold).collect(),
            Some(tree::Expr::Value(value)) => match &value.value {
                tree::Value::Placeholder(name) => vec![name.clone()],
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        match self.lookup(&names) {
            Some(_) => self.named_target(&names, span),
            None => Ok(None),
        }
    }

    fn diagnostics(&mut self, items: &[Diagnostic]) -> Result<Option<Statement>, SqlError> {
        let mut all = Vec::new();
        for item in items {
            let Some(target) = self.variable_target(&item.target)? else { continue };
            let from = match item.item {
                DiagnosticItem::RowCount => Scalar::BigInt,
                _ => Scalar::Text,
            };
            let to = self.place_of(&target);
            let fit = self.fit(&Type::Scalar(from), &to);
            if let Some(fit) = self.later(item.span, fit) {
                all.push((target, fit, item.item));
            }
        }
        Ok(Some(Statement::Diagnostics(all)))
    }

    fn raise(&mut self, raise: &ast::Raise) -> Result<Option<Statement>, SqlError> {
        let mut bound = Raise {
            level: raise.level,
            state: None,
            condition: None,
            pieces: Vec::new(),
            arguments: Vec::new(),
            options: Vec::new(),
        };
        let mut complete = true;
        match &raise.kind {
            RaiseKind::Again => return Ok(Some(Statement::RaiseAgain)),
            RaiseKind::Options => {}
            RaiseKind::Condition(condition) => match &condition.kind {
                ConditionKind::Named { name, states } => {
                    bound.state = states.first().copied();
                    bound.condition = Some(name.clone());
                }
                ConditionKind::State(state) => {
                    bound.state = Some(*state);
                    bound.condition = Some(state.to_string());
                }
                ConditionKind::Others => {}
            },
            RaiseKind::Message(message) => {
                bound.pieces.clone_from(&message.pieces);
                for argument in &message.arguments {
                    match self.expr(argument) {
                        Some(argument) => bound.arguments.push(argument),
                        None => complete = false,
                    }
                }
            }
        }
        for option in &raise.options {
            match self.text(&option.value) {
                Some(value) => bound.options.push((option.kind, value)),
                None => complete = false,
            }
        }
        debug_assert!(raise.level as u8 <= RaiseLevel::Exception as u8);
        Ok(complete.then(|| Statement::Raise(Box::new(bound))))
    }

    fn text(&mut self, expression: &Expression) -> Option<Expr> {
        self.expr_to(expression, &TEXT)
    }
}
