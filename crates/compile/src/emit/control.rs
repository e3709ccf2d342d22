//! IF, CASE and loops.

use albireo_plpgsql::body::{Case, FOUND, Fit, Loop, LoopKind, Query, Sink, Statement, Target};
use albireo_semantics::expr::{Expr, ExprKind, VariableId};
use albireo_semantics::types::{Scalar, Type};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};

use super::{Emitter, Null, Operand, Scope};
use crate::frame::Slot;
use crate::kind::Kind;
use crate::runtime;
use crate::runtime::arrays;
use crate::runtime::statements::{DONE, Fault, RowSink};

impl<'r> Emitter<'_, 'r> {
    /// Whether a 32-bit number equals a constant.
    pub(super) fn equals(&mut self, value: Value, constant: i64) -> Value {
        self.b.ins().icmp_imm_u(IntCC::Equal, value, constant)
    }

    pub(super) fn branches(&mut self, branches: &'r [(Expr, Vec<Statement>)], otherwise: &'r [Statement]) {
        let after = self.b.create_block();
        for (condition, statements) in branches {
            let holds = self.holds(condition);
            let (then, next) = (self.b.create_block(), self.b.create_block());
            self.branch(holds, then, next);
            self.go_to(then);
            self.reset();
            self.statements(statements);
            self.jump(after);
            self.go_to(next);
        }
        self.reset();
        self.statements(otherwise);
        self.jump(after);
        self.go_to(after);
    }

    pub(super) fn case(&mut self, case: &'r Case) {
        if let Some((operand, variable)) = &case.operand {
            let value = self.expr(operand);
            self.set_variable(*variable, value);
        }
        let after = self.b.create_block();
        for (conditions, statements) in &case.branches {
            let (then, next) = (self.b.create_block(), self.b.create_block());
            for condition in conditions {
                let holds = self.holds(condition);
                let other = self.b.create_block();
                self.branch(holds, then, other);
                self.go_to(other);
            }
            self.jump(next);
            self.go_to(then);
            self.reset();
            self.statements(statements);
            self.jump(after);
            self.go_to(next);
        }
        match &case.otherwise {
            Some(otherwise) => self.statements(otherwise),
            None => self.fail(Fault::CaseNotFound),
        }
        self.jump(after);
        self.go_to(after);
    }

    /// Fails, for sure.
    pub(super) fn fail(&mut self, fault: Fault) {
        let fault = self.word(fault as u32);
        self.ask(runtime::statements::fail as *const (), &[fault]);
    }

    /// Fails if a flag is set.
    pub(super) fn fail_with(&mut self, flag: Value, fault: Fault) {
        let fault = self.word(fault as u32);
        self.ask_if(flag, runtime::statements::fail as *const (), &[fault]);
    }

    /// Sets FOUND to what an 8-bit flag says.
    pub(super) fn set_found(&mut self, found: Value) {
        let a = self.b.ins().uextend(types::I64, found);
        if let Slot::Cell(slot) = self.frame.slot(FOUND) {
            self.set_cell(*slot, Operand::new(Kind::Int(Scalar::Bool), a, Null::Never));
        }
    }

    /// Goes where EXIT or CONTINUE goes, ending what lies between.
    pub(super) fn leave(&mut self, label: Option<&'r str>, goes_on: bool) {
        let mut left = Vec::new();
        let mut to = None;
        for scope in self.scopes.iter().rev() {
            match scope {
                Scope::Target { label: known, exit, next } => {
                    let wanted = match label {
                        Some(_) => *known == label,
                        // Without a label a loop is meant, not a block.
                        None => next.is_some(),
                    };
                    if wanted {
                        to = Some(if goes_on { next.unwrap_or(*exit) } else { *exit });
                        break;
                    }
                }
                Scope::Cursor => left.push(Some(runtime::statements::close as *const ())),
                Scope::Counted => left.push(None),
                Scope::Protected => left.push(Some(runtime::statements::unprotect as *const ())),
                Scope::Handler => left.push(Some(runtime::statements::handled as *const ())),
            }
        }
        for end in left {
            match end {
                Some(end) => self.ask(end, &[]),
                // A loop that is left was in a round, so it had one.
                None => {
                    let yes = self.b.ins().iconst(types::I8, 1);
                    self.set_found(yes);
                }
            }
        }
        // The binder has seen to it that there is one.
        let to = to.unwrap_or_else(|| self.catch_block());
        self.jump(to);
    }

    /// A round of a loop: its statements, with `next` for CONTINUE and `exit` for EXIT.
    fn round(&mut self, a_loop: &'r Loop, next: Block, exit: Block) {
        let rounds = self.b.ins().load(types::I64, super::memory(), self.context, runtime::ROUNDS_OFFSET);
        let fewer = self.b.ins().iadd_imm_s(rounds, -1);
        self.b.ins().store(super::memory(), fewer, self.context, runtime::ROUNDS_OFFSET);
        let over = self.b.ins().icmp_imm_u(IntCC::Equal, fewer, 0);
        self.ask_if(over, runtime::statements::rounds as *const (), &[]);
        self.scopes.push(Scope::Target { label: a_loop.label.as_deref(), exit, next: Some(next) });
        self.statements(&a_loop.statements);
        self.scopes.pop();
        self.jump(next);
    }

    pub(super) fn a_loop(&mut self, a_loop: &'r Loop) {
        match &a_loop.kind {
            LoopKind::Endless => {
                let (next, exit) = (self.b.create_block(), self.b.create_block());
                self.jump(next);
                self.go_to(next);
                self.round(a_loop, next, exit);
                self.go_to(exit);
            }
            LoopKind::While(condition) => {
                let (next, exit) = (self.b.create_block(), self.b.create_block());
                self.jump(next);
                self.go_to(next);
                let holds = self.holds(condition);
                let body = self.b.create_block();
                self.branch(holds, body, exit);
                self.go_to(body);
                self.reset();
                self.round(a_loop, next, exit);
                self.go_to(exit);
            }
            LoopKind::Range { variable, reverse, from, to, step } => {
                self.range(a_loop, *variable, *reverse, [from, to], step.as_ref());
            }
            LoopKind::Query { sink, query } => {
                if !self.compiled_query_loop(a_loop, sink, query) {
                    self.query_loop(a_loop, sink, query);
                }
            }
            LoopKind::Array { target, fit, array } => self.array_loop(a_loop, target, fit, array),
        }
    }

    /// A bound of a loop, which may not be NULL.
    fn bound(&mut self, expr: &'r Expr, fault: Fault) -> Value {
        let value = self.expr(expr);
        match value.null {
            Null::Never => {}
            null => {
                let flag = self.null_flag(null);
                self.fail_with(flag, fault);
            }
        }
        value.a
    }

    fn range(
        &mut self,
        a_loop: &'r Loop,
        variable: VariableId,
        reverse: bool,
        [from, to]: [&'r Expr; 2],
        step: Option<&'r Expr>,
    ) {
        let step_is_one = step.is_none();
        let first = self.bound(from, Fault::LowerBound);
        let last = self.bound(to, Fault::UpperBound);
        let step = match step {
            Some(step) => {
                let step = self.bound(step, Fault::StepNull);
                let wrong = self.b.ins().icmp_imm_s(IntCC::SignedLessThanOrEqual, step, 0);
                self.fail_with(wrong, Fault::StepNotPositive);
                step
            }
            None => self.int(1),
        };
        let asked = match !reverse && step_is_one {
            true => self.ask_ahead(a_loop, variable, first, last),
            false => Vec::new(),
        };
        let found = self.room(1);
        let none = self.int(0);
        self.b.ins().store(super::memory(), none, found, 0);
        let (head, body) = (self.b.create_block(), self.b.create_block());
        let (next, exit) = (self.b.create_block(), self.b.create_block());
        let at = self.b.append_block_param(head, types::I64);
        self.b.ins().jump(head, &[first.into()]);
        self.go_to(head);
        let in_range = if reverse { IntCC::SignedGreaterThanOrEqual } else { IntCC::SignedLessThanOrEqual };
        let goes_on = self.b.ins().icmp(in_range, at, last);
        self.branch(goes_on, body, exit);
        self.go_to(body);
        let some = self.int(1);
        self.b.ins().store(super::memory(), some, found, 0);
        self.set_variable(variable, Operand::new(Kind::Int(Scalar::Integer), at, Null::Never));
        self.reset();
        let round = self.b.ins().isub(at, first);
        self.know(&asked, round, true);
        self.scopes.push(Scope::Counted);
        self.round(a_loop, next, exit);
        self.scopes.pop();
        self.forget(&asked);
        self.go_to(next);
        let following = if reverse { self.b.ins().isub(at, step) } else { self.b.ins().iadd(at, step) };
        let fits = self.fits(following, Scalar::Integer);
        self.b.ins().brif(fits, head, &[following.into()], exit, &[]);
        self.go_to(exit);
        let found = self.b.ins().load(types::I8, super::memory(), found, 0);
        self.set_found(found);
    }

    /// A loop over the rows of a query that the interpreter runs.
    fn query_loop(&mut self, a_loop: &'r Loop, sink: &'r Sink, query: &'r Query) {
        self.parts.interpreted += 1;
        let mut targets = Vec::new();
        super::statement::targets_of_sink(sink, &mut targets);
        let lends = match sink {
            Sink::Targets(all) => all.iter().any(|(target, _)| !matches!(target, Target::Variable(_))),
            Sink::Row(..) => false,
        };
        let sink = self.parts.sink(RowSink { sink, targets: targets.into(), lends });
        let sink = self.address(sink);
        let (tree, count) = (self.address(std::ptr::from_ref(query)), self.room(1));
        self.ask(runtime::statements::open_query as *const (), &[tree, count]);
        let count = self.b.ins().load(types::I64, super::memory(), count, 0);
        let (none, begin) = (self.b.create_block(), self.b.create_block());
        self.branch(count, begin, none);
        self.go_to(none);
        self.ask(runtime::statements::no_row as *const (), &[sink]);
        self.jump(begin);
        self.go_to(begin);
        self.cursor_loop(
            a_loop,
            count,
            &mut |this| this.ask_for(runtime::statements::next_row as *const (), &[sink]),
            &mut |_| {},
        );
    }

    /// A loop over a cursor: `next` asks for the next thing and gives a status, `take` takes it.
    pub(super) fn cursor_loop(
        &mut self,
        a_loop: &'r Loop,
        count: Value,
        next_of: &mut dyn FnMut(&mut Self) -> Value,
        take: &mut dyn FnMut(&mut Self),
    ) {
        let (next, exit) = (self.b.create_block(), self.b.create_block());
        let (some, body) = (self.b.create_block(), self.b.create_block());
        self.scopes.push(Scope::Cursor);
        self.scopes.push(Scope::Counted);
        self.jump(next);
        self.go_to(next);
        self.reset();
        let status = next_of(self);
        let done = self.equals(status, i64::from(DONE));
        self.branch(done, exit, some);
        self.go_to(some);
        let catch = self.catch_block();
        self.branch(status, catch, body);
        self.go_to(body);
        take(self);
        self.round(a_loop, next, exit);
        self.scopes.pop();
        self.scopes.pop();
        self.go_to(exit);
        self.ask(runtime::statements::close as *const (), &[]);
        let found = self.b.ins().icmp_imm_u(IntCC::NotEqual, count, 0);
        self.set_found(found);
    }

    /// A loop over an array that it leaves alone.
    fn items_loop(
        &mut self,
        a_loop: &'r Loop,
        (target, fit): (&'r Target, &'r Fit),
        number: u32,
        kind: Kind,
    ) {
        let head = self.head(number);
        let length = self.b.ins().load(types::I64, super::memory(), head, arrays::LENGTH_OFFSET);
        let items = self.b.ins().load(types::I64, super::memory(), head, arrays::ITEMS_OFFSET);
        let empty = self.b.ins().icmp_imm_u(IntCC::Equal, length, 0);
        let number = self.word(number);
        self.ask_if(empty, arrays::refuse_null as *const (), &[number]);
        let (head, body) = (self.b.create_block(), self.b.create_block());
        let (next, exit) = (self.b.create_block(), self.b.create_block());
        let at = self.b.append_block_param(head, types::I64);
        let zero = self.int(0);
        self.b.ins().jump(head, &[zero.into()]);
        self.go_to(head);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, at, length);
        self.branch(more, body, exit);
        self.go_to(body);
        self.reset();
        let offset = self.b.ins().imul_imm_u(at, i64::from(super::CELL));
        let cell = self.b.ins().iadd(items, offset);
        let item = self.load_cell(cell, 0, kind);
        self.scopes.push(Scope::Counted);
        self.fit_and_put(fit, target, item);
        self.round(a_loop, next, exit);
        self.scopes.pop();
        self.go_to(next);
        let following = self.b.ins().iadd_imm_u(at, 1);
        self.b.ins().jump(head, &[following.into()]);
        self.go_to(exit);
        let found = self.b.ins().icmp_imm_u(IntCC::NotEqual, length, 0);
        self.set_found(found);
    }

    fn array_loop(&mut self, a_loop: &'r Loop, target: &'r Target, fit: &'r Fit, array: &'r Expr) {
        let element = match &array.ty {
            Type::Array(element) => Kind::of_scalar(*element),
            _ => Kind::Boxed,
        };
        if let ExprKind::Variable(id) = &array.kind
            && let Slot::Array(number, kind) = self.frame.slot(*id)
            && *kind == element
            && !super::prefetch::assigns(a_loop, target, *id)
        {
            return self.items_loop(a_loop, (target, fit), *number, element);
        }
        let value = self.expr(array);
        let (cell, count) = (self.in_cell(value), self.room(1));
        self.ask(runtime::statements::open_array as *const (), &[cell, count]);
        let count = self.b.ins().load(types::I64, super::memory(), count, 0);
        let item = self.room(1);
        let code = element.code() as i64;
        self.cursor_loop(
            a_loop,
            count,
            &mut |this| {
                let code = this.int(code);
                this.ask_for(runtime::statements::next_item as *const (), &[code, item])
            },
            &mut |this| {
                let value = this.load_cell(item, 0, element);
                this.fit_and_put(fit, target, value);
            },
        );
    }
}
