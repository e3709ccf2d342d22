//! Whether a routine's statements depend on each other.
//!
//! A variable is *found* if its value may come from rows: it was read by a statement, computed from such
//! a variable, or assigned behind a condition on one. A statement depends on others if it uses one, if it
//! stands behind such a condition or in a loop over rows, or behind a place where such a condition ends
//! the routine or a loop. Passes over the body are made until no more variables are found.

use std::collections::BTreeMap;

use super::Verdict;
use super::part::{Inner, each_inner, each_of_statement};
use super::touch::Reach;
use crate::body::{
    Block, Call, Code, FOUND, Loop, LoopKind, Query, Routine, Sink, Statement, Target as Place,
};
use crate::expr::{Expr, ExprKind, VariableId};
use crate::plan::tree::AccessInfo;

/// Why a statement depends on another.
type Dependency = String;

/// Where a value comes from: the line of a statement, if it is known.
type From = Option<usize>;

/// Looks at a routine.
pub(super) fn verdict(routine: &Routine, reach: &Reach) -> Verdict {
    let mut flow = Flow {
        routine,
        reach,
        found: BTreeMap::new(),
        control: None,
        jumped: None,
        statements: 0,
        grew: false,
    };
    loop {
        (flow.jumped, flow.statements, flow.grew) = (None, 0, false);
        if let Err(why) = flow.code() {
            return Verdict::no(why);
        }
        if !flow.grew {
            break;
        }
    }
    Verdict::yes(match flow.statements {
        0 => "it touches no table",
        _ => "no statement needs what another one finds",
    })
}

struct Flow<'r> {
    routine: &'r Routine,
    reach: &'r Reach,
    /// Variables whose values come from rows.
    found: BTreeMap<VariableId, From>,
    /// The statement that decides whether this place is reached at all.
    control: Option<From>,
    /// The statement that decides whether anything from here on is.
    jumped: Option<From>,
    /// How many statements that touch tables were seen.
    statements: usize,
    /// Whether a variable was found in this pass.
    grew: bool,
}

fn line(from: From) -> String {
    from.map_or("another statement".to_owned(), |line| format!("line {line}"))
}

impl<'r> Flow<'r> {
    fn code(&mut self) -> Result<(), Dependency> {
        match &self.routine.code {
            Code::Block(block) => self.block(block),
            Code::Queries(queries, _) => queries.iter().try_for_each(|query| self.query(query).map(drop)),
        }
    }

    /// The variable within an expression that comes from rows.
    fn source_of(&self, expr: &Expr) -> Option<(VariableId, From)> {
        let mut source = None;
        each_inner(expr, &mut |inner| source = source.or(self.inner_source(&inner)));
        source
    }

    fn inner_source(&self, inner: &Inner<'_>) -> Option<(VariableId, From)> {
        match inner {
            Inner::Expr(Expr { kind: ExprKind::Variable(id), .. }) => {
                self.found.get(id).map(|from| (*id, *from))
            }
            _ => None,
        }
    }

    fn name(&self, id: VariableId) -> String {
        match self.routine.variables.get(id.0 as usize) {
            Some(variable) if id == FOUND || !variable.name.is_empty() => variable.name.trim_end().to_owned(),
            _ => "a value".to_owned(),
        }
    }

    fn mark(&mut self, id: VariableId, from: From) {
        self.grew |= self.found.insert(id, from).is_none();
    }

    fn assigned(&mut self, target: &Place, from: Option<From>) -> Result<(), Dependency> {
        let (Place::Variable(id) | Place::Field(id, _) | Place::Element(id, _)) = target;
        if let Some(from) = from.or(self.control).or(self.jumped) {
            self.mark(*id, from);
        }
        match target {
            Place::Element(id, subscript) => {
                let from = self.expr(subscript)?;
                from.into_iter().for_each(|from| self.mark(*id, from));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn sink(&mut self, sink: &Sink, from: Option<From>) -> Result<(), Dependency> {
        match sink {
            Sink::Targets(targets) => targets.iter().try_for_each(|(target, _)| self.assigned(target, from)),
            Sink::Row(id, _) => self.assigned(&Place::Variable(*id), from),
        }
    }

    /// A use of tables at `at`.
    fn reaches(&mut self, at: From, uses: Option<(VariableId, From)>) -> Result<(), Dependency> {
        self.statements += 1;
        if let Some((id, from)) = uses {
            return Err(format!("{} needs {}, which {} found", line(at), self.name(id), line(from)));
        }
        match self.control.or(self.jumped) {
            Some(from) => Err(format!("what {} finds decides whether {} runs", line(from), line(at))),
            None => Ok(()),
        }
    }

    fn accesses(&self, accesses: &[AccessInfo], at: From) -> Result<(), Dependency> {
        let by_row = |access: &&AccessInfo| {
            let mut by_row = false;
            let by = access.partition.iter();
            by.for_each(|by| by.walk(&mut |part| by_row |= matches!(part.kind, ExprKind::Column(_))));
            by_row && !access.table.is_shared()
        };
        match accesses.iter().find(by_row) {
            Some(access) => {
                Err(format!("in {} rows of another table say where \"{}\" is", line(at), access.table.name))
            }
            None => Ok(()),
        }
    }

    /// A statement; where its rows come from, if from tables.
    fn query(&mut self, query: &Query) -> Result<Option<From>, Dependency> {
        let (accesses, at) = match query {
            Query::Select(plan) => (&plan.accesses, plan.line),
            Query::Change(plan) => (&plan.accesses, plan.line),
        };
        let (mut source, mut touches, mut calls) = (None, !accesses.is_empty(), None);
        each_of_statement(query, &mut |inner| {
            source = source.or(self.inner_source(&inner));
            let callee = match &inner {
                Inner::Expr(Expr { kind: ExprKind::Call(callee, _), .. }) => Some(*callee),
                Inner::Rows(rows) => Some(rows.routine),
                Inner::Expr(_) => None,
            };
            if let Some(callee) = callee.filter(|callee| self.reach.touches_any(*callee)) {
                (touches, calls) = (true, Some(callee));
            }
        });
        if calls.is_some() {
            return Err(format!("{} calls a routine that touches tables", line(at)));
        }
        self.accesses(accesses, at)?;
        if touches {
            self.reaches(at, source)?;
        }
        let from = if touches { Some(at) } else { source.map(|(_, from)| from) };
        if let Some(from) = from {
            self.mark(FOUND, from);
        }
        Ok(from)
    }

    /// An expression; which statement its value comes from, if from any.
    fn expr(&mut self, expr: &Expr) -> Result<Option<From>, Dependency> {
        let mut from = self.source_of(expr).map(|(_, from)| from);
        let mut queries = Vec::new();
        let mut calls = false;
        each_inner(expr, &mut |inner| match inner {
            Inner::Expr(Expr { kind: ExprKind::Call(callee, _), .. }) => {
                calls |= self.reach.touches_any(*callee);
            }
            Inner::Rows(rows) => calls |= self.reach.touches_any(rows.routine),
            Inner::Expr(Expr { kind: ExprKind::Subquery(subquery), .. }) => {
                if !subquery.plan.accesses.is_empty() {
                    queries.push(subquery.clone());
                }
            }
            Inner::Expr(_) => {}
        });
        if calls {
            return Err("an expression calls a routine that touches tables".to_owned());
        }
        for subquery in queries {
            let at = subquery.plan.line;
            self.accesses(&subquery.plan.accesses, at)?;
            let mut source = None;
            super::part::each_of_query(&subquery.plan.query, &mut |inner| {
                source = source.or(self.inner_source(&inner));
            });
            self.reaches(at, source)?;
            from = Some(at);
        }
        Ok(from)
    }

    fn call(&mut self, call: &Call) -> Result<(), Dependency> {
        if self.reach.touches_any(call.routine) {
            return Err("it calls a procedure that touches tables".to_owned());
        }
        let mut from = None;
        for arg in &call.args {
            from = self.expr(arg)?.or(from);
        }
        call.outputs.iter().try_for_each(|(target, _)| self.assigned(target, from))
    }

    fn block(&mut self, block: &Block) -> Result<(), Dependency> {
        for initial in &block.initial {
            if let Some(assignment) = &initial.value {
                let from = self.expr(&assignment.value)?;
                self.assigned(&assignment.target, from)?;
            }
        }
        self.statements(&block.statements)?;
        for handler in &block.handlers {
            // An error may have come from what a statement found.
            let from = self.control.or((self.statements > 0).then_some(None));
            self.under(from, |flow| flow.statements(&handler.statements))?;
        }
        Ok(())
    }

    /// Does what happens only if a statement found something.
    fn under(
        &mut self,
        from: Option<From>,
        act: impl FnOnce(&mut Self) -> Result<(), Dependency>,
    ) -> Result<(), Dependency> {
        let before = self.control;
        self.control = before.or(from);
        let done = act(self);
        self.control = before;
        done
    }

    fn statements(&mut self, all: &[Statement]) -> Result<(), Dependency> {
        all.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), Dependency> {
        match statement {
            Statement::Block(block) => self.block(block),
            Statement::Assign(assignment) => {
                let from = self.expr(&assignment.value)?;
                self.assigned(&assignment.target, from)
            }
            Statement::If(branches, otherwise) => self.branches(branches, otherwise),
            Statement::Case(case) => {
                let mut from = None;
                if let Some((operand, variable)) = &case.operand {
                    from = self.expr(operand)?;
                    self.assigned(&Place::Variable(*variable), from)?;
                }
                for (conditions, statements) in &case.branches {
                    for condition in conditions {
                        from = self.expr(condition)?.or(from);
                    }
                    self.under(from, |flow| flow.statements(statements))?;
                }
                self.under(from, |flow| flow.statements(case.otherwise.as_deref().unwrap_or_default()))
            }
            Statement::Loop(a_loop) => self.a_loop(a_loop),
            Statement::Jump(jump) => {
                let from = jump.when.as_ref().map_or(Ok(None), |when| self.expr(when))?;
                self.jump(from);
                Ok(())
            }
            Statement::Perform(query) | Statement::Execute(query) | Statement::ReturnQuery(query, _) => {
                self.query(query).map(drop)
            }
            Statement::Into(into) => {
                let from = self.query(&into.query)?;
                self.sink(&into.sink, from)
            }
            Statement::Call(call) => self.call(call),
            Statement::Diagnostics(items) => {
                items.iter().try_for_each(|(target, ..)| self.assigned(target, Some(None)))
            }
            Statement::Raise(raise) => {
                let values = raise.arguments.iter().chain(raise.options.iter().map(|(_, value)| value));
                values.into_iter().try_for_each(|value| self.expr(value).map(drop))
            }
            Statement::Assert(condition, message) => {
                self.expr(condition)?;
                message.iter().try_for_each(|message| self.expr(message).map(drop))
            }
            Statement::ReturnValue(value, _) => {
                self.expr(value)?;
                self.jump(None);
                Ok(())
            }
            Statement::ReturnNextValue(value, _) => self.expr(value).map(drop),
            Statement::Return => {
                self.jump(None);
                Ok(())
            }
            // Either ends all, or stands in a handler.
            Statement::RaiseAgain | Statement::ReturnNext | Statement::SynchronousCommit(_) => Ok(()),
        }
    }

    /// What follows is reached or not, as a statement decided.
    fn jump(&mut self, from: Option<From>) {
        self.jumped = self.jumped.or(from).or(self.control);
    }

    fn branches(
        &mut self,
        branches: &[(Expr, Vec<Statement>)],
        otherwise: &[Statement],
    ) -> Result<(), Dependency> {
        let mut from = None;
        for (condition, statements) in branches {
            from = self.expr(condition)?.or(from);
            self.under(from, |flow| flow.statements(statements))?;
        }
        self.under(from, |flow| flow.statements(otherwise))
    }

    fn a_loop(&mut self, a_loop: &Loop) -> Result<(), Dependency> {
        let from = match &a_loop.kind {
            LoopKind::Endless => None,
            LoopKind::While(condition) => self.expr(condition)?,
            LoopKind::Range { variable, from, to, step, .. } => {
                let mut source = None;
                for bound in [from, to].into_iter().chain(step) {
                    source = self.expr(bound)?.or(source);
                }
                self.assigned(&Place::Variable(*variable), source)?;
                source
            }
            LoopKind::Query { sink, query } => {
                let from = self.query(query)?;
                self.sink(sink, from)?;
                from
            }
            LoopKind::Array { target, array, .. } => {
                let from = self.expr(array)?;
                self.assigned(target, from)?;
                from
            }
        };
        // What ends one round decides about the next, from its beginning on.
        self.under(from, |flow| flow.statements(&a_loop.statements))?;
        self.under(from, |flow| flow.statements(&a_loop.statements))
    }
}
