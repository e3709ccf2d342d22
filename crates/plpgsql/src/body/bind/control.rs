//! IF, CASE, loops, EXIT and CONTINUE.

use albireo_base::{SqlError, SqlState, SqlType};
use albireo_sql::ast as tree;

use super::Binder;
use crate::body::place::Place;
use crate::body::tree::{Case, Jump, Loop, LoopKind, Statement};
use crate::parse::ast::{self, Expression, JumpKind, Name, VariableRef};
use crate::types::Type;

const INTEGER: Place = Place::Sql(SqlType::Integer);

/// The name of the variable that holds the operand of CASE; no name of a user's has a blank at its end.
const OPERAND: &str = "case operand ";

impl Binder<'_> {
    pub(super) fn branches(
        &mut self,
        branches: &[ast::Branch],
        otherwise: Option<&[ast::Statement]>,
    ) -> Result<Option<Statement>, SqlError> {
        let mut all = Vec::new();
        for branch in branches {
            let condition = self.condition(&branch.condition);
            let statements = self.branch(&branch.statements)?;
            all.extend(condition.map(|condition| (condition, statements)));
        }
        let otherwise = otherwise.map_or(Ok(Vec::new()), |otherwise| self.branch(otherwise))?;
        Ok(Some(Statement::If(all, otherwise)))
    }

    pub(super) fn case(
        &mut self,
        operand: Option<&Expression>,
        branches: &[ast::CaseBranch],
        otherwise: Option<&[ast::Statement]>,
    ) -> Result<Option<Statement>, SqlError> {
        let operand = operand.map(|operand| self.expr(operand));
        let mut bound = None;
        let mut known = true;
        if let Some(operand) = operand {
            match operand {
                Some(value) => {
                    self.enter(None);
                    let place = Place::of(&value.ty);
                    bound = Some((value, self.declare(OPERAND, place)));
                }
                None => known = false,
            }
        }
        let mut all = Vec::new();
        for branch in branches {
            let mut conditions = Vec::new();
            for value in &branch.values {
                conditions.extend(match (&bound, known) {
                    (Some(_), _) => self.equals_operand(value),
                    (None, true) => self.condition(value),
                    (None, false) => None,
                });
            }
            all.push((conditions, self.branch(&branch.statements)?));
        }
        if bound.is_some() {
            self.leave();
        }
        let otherwise = otherwise.map(|otherwise| self.branch(otherwise)).transpose()?;
        let case = Case { operand: bound, branches: all, otherwise };
        Ok(known.then(|| Statement::Case(Box::new(case))))
    }

    /// Whether the operand of CASE equals `value`.
    fn equals_operand(&mut self, value: &Expression) -> Option<crate::expr::Expr> {
        let comparison = tree::Expr::BinaryOp {
            left: Box::new(tree::Expr::Identifier(tree::Ident::with_quote('"', OPERAND))),
            op: tree::BinaryOperator::Eq,
            right: Box::new(tree::Expr::Nested(value.tree.clone())),
        };
        self.condition(&Expression { tree: Box::new(comparison), span: value.span })
    }

    pub(super) fn jump(&mut self, jump: &ast::Jump) -> Result<Option<Statement>, SqlError> {
        let when = match &jump.when {
            Some(when) => match self.condition(when) {
                Some(when) => Some(when),
                None => return Ok(None),
            },
            None => None,
        };
        let label = jump.label.as_ref().map(|label| label.text.clone());
        Ok(Some(Statement::Jump(Jump { goes_on: jump.kind == JumpKind::Continue, label, when })))
    }

    pub(super) fn a_loop(&mut self, a_loop: &ast::Loop) -> Result<Option<Statement>, SqlError> {
        let label = a_loop.label.as_ref().map(|label| label.text.clone());
        self.enter(label.clone());
        let kind = match &a_loop.kind {
            ast::LoopKind::Endless => Some(LoopKind::Endless),
            ast::LoopKind::While(condition) => self.condition(condition).map(LoopKind::While),
            ast::LoopKind::Range { variable, reverse, from, to, step } => {
                self.range(variable, *reverse, [from, to], step.as_ref())
            }
            ast::LoopKind::Query { targets, query } => self.query_loop(targets, query)?,
            ast::LoopKind::Array { targets, array } => self.array_loop(targets, array)?,
        };
        let statements = self.repeated(&a_loop.statements)?;
        self.leave();
        Ok(kind.map(|kind| Statement::Loop(Box::new(Loop { label, kind, statements }))))
    }

    fn range(
        &mut self,
        name: &Name,
        reverse: bool,
        [from, to]: [&Expression; 2],
        step: Option<&Expression>,
    ) -> Option<LoopKind> {
        let from = self.expr_to(from, &INTEGER);
        let to = self.expr_to(to, &INTEGER);
        let step = step.map(|step| self.expr_to(step, &INTEGER));
        let variable = self.declare(&name.text, INTEGER);
        let step = match step {
            Some(None) => return None,
            Some(step) => step,
            None => None,
        };
        Some(LoopKind::Range { variable, reverse, from: from?, to: to?, step })
    }

    fn query_loop(
        &mut self,
        wanted: &[VariableRef],
        query: &ast::Query,
    ) -> Result<Option<LoopKind>, SqlError> {
        let targets = self.targets(wanted)?;
        let bound = self.query_of(&query.tree);
        let bound = self.later(query.span, bound);
        let (Some(targets), Some(bound)) = (targets, bound) else { return Ok(None) };
        if bound.columns().is_empty() {
            let message = "cannot open a query without result as cursor";
            let error = self.error(query.span, SqlState(*b"42P11"), message).with_hint("Add RETURNING.");
            self.later(query.span, Err::<(), _>(error));
            return Ok(None);
        }
        let sink = self.sink(targets, &bound, &query.tree);
        Ok(self.later(query.span, sink).map(|sink| LoopKind::Query { sink, query: bound }))
    }

    fn array_loop(
        &mut self,
        wanted: &[VariableRef],
        array: &Expression,
    ) -> Result<Option<LoopKind>, SqlError> {
        let targets = self.targets(wanted)?;
        let span = array.span;
        let array = self.expr(array);
        let (Some(mut targets), Some(array)) = (targets, array) else { return Ok(None) };
        let element = match &array.ty {
            Type::Array(element) => Type::Scalar(*element),
            other => {
                let message = format!("FOREACH expression must yield an array, not type {other}");
                let error = self.error(span, SqlState::DATATYPE_MISMATCH, message);
                self.later(span, Err::<(), _>(error));
                return Ok(None);
            }
        };
        let Some(target) = targets.pop().filter(|_| targets.is_empty()) else {
            let error = SqlError::unsupported("FOREACH with several variables");
            self.later(span, Err::<(), _>(error));
            return Ok(None);
        };
        let place = self.place_of(&target);
        let fit = self.fit(&element, &place);
        Ok(self.later(span, fit).map(|fit| LoopKind::Array { target, fit, array }))
    }
}
