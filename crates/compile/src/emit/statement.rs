//! Statements one by one.

use albireo_base::budget;
use albireo_plpgsql::body::{Block, Code, FOUND, Into, Jump, Routine, RowFit, Sink, Statement};
use albireo_semantics::expr::VariableId;

use super::{END, Emitter, RETURNED};
use crate::runtime;
use crate::runtime::statements::Escape;

/// The memory of a statement's code until it is made.
const STATEMENT_BYTES: usize = 4096;

impl<'r> Emitter<'_, 'r> {
    pub(super) fn body(&mut self) {
        if let Code::Block(block) = &self.routine.code {
            self.block(block);
        }
        self.give(END);
    }

    pub(super) fn statements(&mut self, all: &'r [Statement]) {
        for (n, statement) in all.iter().enumerate() {
            if self.parts.ended.is_some() {
                return;
            }
            self.parts.ended = budget::take(STATEMENT_BYTES).err();
            let rooms = self.rooms.len();
            self.rest = &all[n + 1..];
            self.statement(statement);
            self.free_rooms(rooms);
            if ends(statement) {
                // What follows is never run, but must stand in a block.
                let dead = self.b.create_block();
                self.go_to(dead);
            }
        }
    }

    fn statement(&mut self, statement: &'r Statement) {
        match statement {
            Statement::Block(block) => return self.block(block),
            Statement::If(branches, otherwise) => return self.branches(branches, otherwise),
            Statement::Case(case) => return self.case(case),
            Statement::Loop(a_loop) => return self.a_loop(a_loop),
            Statement::Jump(jump) => return self.jump_statement(jump),
            Statement::Return => return self.give(RETURNED),
            Statement::ReturnValue(value, fit) => {
                match fit {
                    RowFit::Value(fit) => {
                        let value = self.expr(value);
                        // Its errors pass by all handlers.
                        let catch = self.catch.split_off(1);
                        let value = self.fit(fit, value);
                        self.catch.extend(catch);
                        let (cell, kind) = (self.in_cell(value), self.int(value.kind.code() as i64));
                        self.ask(runtime::statements::return_value as *const (), &[cell, kind]);
                    }
                    RowFit::Fields(_) => self.interpret(statement, &[]),
                }
                return self.give(RETURNED);
            }
            Statement::Assign(assignment) if matches!(assignment.fit, RowFit::Value(_)) => {
                self.parts.compiled += 1;
                self.assign(assignment);
            }
            Statement::Perform(query) | Statement::Execute(query) if self.perform(query) => {}
            Statement::Into(into) if self.into(into) => {}
            Statement::Assert(condition, _) => {
                let holds = self.holds(condition);
                let (failing, next) = (self.cold_block(), self.b.create_block());
                self.branch(holds, next, failing);
                self.go_to(failing);
                self.interpret(statement, &[]);
                self.jump(next);
                self.go_to(next);
            }
            other => {
                let targets = targets_of(other);
                self.interpret(other, &targets);
            }
        }
        self.reset();
    }

    /// Leaves a statement to the interpreter.
    fn interpret(&mut self, statement: &'r Statement, targets: &[VariableId]) {
        self.parts.interpreted += 1;
        let escape = self.parts.escape(Escape { statement, targets: targets.into() });
        let escape = self.address(escape);
        self.ask(runtime::statements::statement as *const (), &[escape]);
    }

    /// A block: its variables, its statements, and its handlers.
    pub(super) fn block(&mut self, block: &'r Block) {
        for initial in &block.initial {
            self.initial(initial);
        }
        let after = self.b.create_block();
        self.scopes.push(super::Scope::Target { label: block.label.as_deref(), exit: after, next: None });
        match block.handlers.is_empty() {
            true => self.statements(&block.statements),
            false => self.protected(block),
        }
        self.scopes.pop();
        self.jump(after);
        self.go_to(after);
    }

    fn protected(&mut self, block: &'r Block) {
        let (failed, after) = (self.b.create_block(), self.b.create_block());
        self.ask(runtime::statements::protect as *const (), &[]);
        self.catch.push(failed);
        self.scopes.push(super::Scope::Protected);
        self.statements(&block.statements);
        self.scopes.pop();
        self.catch.pop();
        self.ask(runtime::statements::unprotect as *const (), &[]);
        self.jump(after);

        self.go_to(failed);
        let tree = self.address(std::ptr::from_ref(block));
        let chosen = self.ask_for(runtime::statements::handle as *const (), &[tree]);
        for (n, handler) in block.handlers.iter().enumerate() {
            let is_it = self.equals(chosen, n as i64 + 1);
            let (this, next) = (self.b.create_block(), self.b.create_block());
            self.branch(is_it, this, next);
            self.go_to(this);
            self.reset();
            self.scopes.push(super::Scope::Handler);
            self.statements(&handler.statements);
            self.scopes.pop();
            self.ask(runtime::statements::handled as *const (), &[]);
            self.jump(after);
            self.go_to(next);
        }
        let outer = self.catch_block();
        self.jump(outer);
        self.go_to(after);
    }

    fn jump_statement(&mut self, jump: &'r Jump) {
        let next = self.b.create_block();
        if let Some(when) = &jump.when {
            let holds = self.holds(when);
            let leaving = self.b.create_block();
            self.branch(holds, leaving, next);
            self.go_to(leaving);
        }
        self.leave(jump.label.as_deref(), jump.goes_on);
        self.go_to(next);
    }
}

/// Whether a routine has a GET DIAGNOSTICS.
pub(super) fn asks_for_counts(routine: &Routine) -> bool {
    fn any(all: &[Statement]) -> bool {
        all.iter().any(|statement| match statement {
            Statement::Diagnostics(_) => true,
            Statement::Block(block) => {
                any(&block.statements) || block.handlers.iter().any(|handler| any(&handler.statements))
            }
            Statement::If(branches, otherwise) => {
                branches.iter().any(|(_, statements)| any(statements)) || any(otherwise)
            }
            Statement::Case(case) => {
                case.branches.iter().any(|(_, statements)| any(statements))
                    || case.otherwise.as_ref().is_some_and(|statements| any(statements))
            }
            Statement::Loop(a_loop) => any(&a_loop.statements),
            _ => false,
        })
    }
    match &routine.code {
        Code::Block(block) => {
            any(&block.statements) || block.handlers.iter().any(|handler| any(&handler.statements))
        }
        Code::Queries(..) => false,
    }
}

/// Whether nothing after the statement is run.
fn ends(statement: &Statement) -> bool {
    matches!(statement, Statement::Return | Statement::ReturnValue(..))
}

/// The variables that a statement left to the interpreter may change.
fn targets_of(statement: &Statement) -> Vec<VariableId> {
    let mut targets = Vec::new();
    match statement {
        Statement::Assign(assignment) => targets.push(assignment.target.variable()),
        Statement::Perform(_) | Statement::Execute(_) | Statement::ReturnQuery(..) => targets.push(FOUND),
        Statement::Into(into) => targets_of_into(into, &mut targets),
        Statement::Call(call) => targets.extend(call.outputs.iter().map(|(target, _)| target.variable())),
        Statement::Diagnostics(items) => targets.extend(items.iter().map(|(target, _, _)| target.variable())),
        _ => {}
    }
    targets
}

fn targets_of_into(into: &Into, targets: &mut Vec<VariableId>) {
    targets_of_sink(&into.sink, targets);
    targets.push(FOUND);
}

/// The variables that a row goes to.
pub(super) fn targets_of_sink(sink: &Sink, targets: &mut Vec<VariableId>) {
    match sink {
        Sink::Row(id, _) => targets.push(*id),
        Sink::Targets(all) => targets.extend(all.iter().map(|(target, _)| target.variable())),
    }
}
