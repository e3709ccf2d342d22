//! Rows that a loop will look for, asked for before it begins.
//!
//! A lookup waits for memory several times: for the index's slot, then for the row. Where the keys of a
//! loop's lookups follow from its number and from what the loop leaves alone, code before the loop computes
//! those of the first rounds, asks for all slots, and then for all rows; so the waits overlap. Nothing
//! depends on it: what is guessed wrong is only slower.

use std::collections::BTreeSet;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::query::Lookup;
use super::{Emitter, Null, Operand};
use crate::body::{Fit, Loop, LoopKind, Query, RowFit, Sink, Statement, Target};
use crate::compile::frame::Slot;
use crate::compile::kind::Kind;
use crate::compile::runtime;
use crate::expr::{Conversion, Expr, ExprKind, VariableId};
use crate::plan::tree::{Body, Change};
use crate::types::Scalar;

/// For so many rounds rows are asked for.
const ROUNDS: i64 = 64;

/// What is computed for a round.
enum Part<'r> {
    /// A variable that the round assigns.
    Variable(VariableId, &'r Expr),
    /// A lookup of the round.
    Lookup(Lookup<'r>),
}

impl<'r> Emitter<'_, 'r> {
    /// Asks for the rows of a loop from `first` to `last`, if any can be known.
    pub(super) fn ask_ahead(&mut self, a_loop: &'r Loop, variable: VariableId, first: Value, last: Value) {
        let parts = self.ahead_of(a_loop, variable);
        if !parts.iter().any(|part| matches!(part, Part::Lookup(_))) {
            return;
        }
        let most = self.b.ins().iadd_imm_s(first, ROUNDS - 1);
        let last = self.b.ins().smin(last, most);
        let (head, body, done) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let at = self.b.append_block_param(head, types::I64);
        self.b.ins().jump(head, &[first.into()]);
        self.go_to(head);
        let more = self.b.ins().icmp(IntCC::SignedLessThanOrEqual, at, last);
        self.branch(more, body, done);
        self.go_to(body);
        let before = self.scratch.clone();
        self.scratch.insert(variable, Operand::new(Kind::Int(Scalar::Integer), at, Null::Never));
        for part in &parts {
            match part {
                Part::Variable(id, expr) => {
                    let value = self.expr(expr);
                    self.scratch.insert(*id, value);
                }
                Part::Lookup(lookup) => self.look_ahead(lookup),
            }
        }
        self.scratch = before;
        let following = self.b.ins().iadd_imm_u(at, 1);
        self.b.ins().jump(head, &[following.into()]);
        self.go_to(done);
        self.ask(runtime::rows::fetch_ahead as *const (), &[]);
    }

    /// What can be known of the rounds of a loop before it begins.
    fn ahead_of(&self, a_loop: &'r Loop, variable: VariableId) -> Vec<Part<'r>> {
        let mut changed = BTreeSet::new();
        changes(&a_loop.statements, &mut changed);
        let mut known = BTreeSet::from([variable]);
        let mut parts = Vec::new();
        for statement in &a_loop.statements {
            let query = match statement {
                Statement::Assign(assignment) => {
                    if let (Target::Variable(id), RowFit::Value(Fit::Same)) =
                        (&assignment.target, &assignment.fit)
                        && matches!(self.frame.slot(*id), Slot::Cell(_))
                        && self.is_known(&assignment.value, &known, &changed)
                    {
                        parts.push(Part::Variable(*id, &assignment.value));
                        known.insert(*id);
                    }
                    continue;
                }
                Statement::Into(into) => &into.query,
                Statement::Execute(query) | Statement::Perform(query) => query,
                _ => continue,
            };
            let lookup = match query {
                Query::Select(plan) => match &plan.query.body {
                    Body::Select(select) => self.lookup(&select.relations, &select.steps, &select.outputs),
                    _ => None,
                },
                Query::Change(plan) => match plan.change.as_ref() {
                    Change::Update(update) => {
                        let target = &update.target;
                        let set = update.set.iter().map(|(_, expr)| expr).chain(&target.returning);
                        self.lookup(&target.relations, &target.steps, set)
                    }
                    Change::Delete(target) => {
                        self.lookup(&target.relations, &target.steps, &target.returning)
                    }
                    Change::Insert(_) => None,
                },
            };
            if let Some(lookup) = lookup
                && lookup.keys().all(|key| self.is_known(key, &known, &changed))
            {
                parts.push(Part::Lookup(lookup));
            }
        }
        parts
    }

    /// Whether an expression can be computed before the loop, and cannot fail.
    fn is_known(&self, expr: &Expr, known: &BTreeSet<VariableId>, changed: &BTreeSet<VariableId>) -> bool {
        match &expr.kind {
            ExprKind::Constant(_) => true,
            ExprKind::Variable(id) => {
                matches!(self.frame.slot(*id), Slot::Cell(_)) && (known.contains(id) || !changed.contains(id))
            }
            ExprKind::Element(array, subscript) => match &array.kind {
                ExprKind::Variable(id) => {
                    matches!(self.frame.slot(*id), Slot::Array(..))
                        && !changed.contains(id)
                        && self.is_known(subscript, known, changed)
                }
                _ => false,
            },
            ExprKind::Convert(inner, Conversion::Scalar(Scalar::Integer | Scalar::BigInt)) => {
                matches!(self.kind(inner), Kind::Int(Scalar::SmallInt | Scalar::Integer))
                    && self.is_known(inner, known, changed)
            }
            _ => false,
        }
    }
}

/// Whether a loop or its target assigns to a variable.
pub(super) fn assigns(a_loop: &Loop, target: &Target, variable: VariableId) -> bool {
    let mut changed = BTreeSet::from([target.variable()]);
    changes(&a_loop.statements, &mut changed);
    changed.contains(&variable)
}

/// The variables that statements assign to.
fn changes(statements: &[Statement], changed: &mut BTreeSet<VariableId>) {
    let sink = |sink: &Sink, changed: &mut BTreeSet<VariableId>| match sink {
        Sink::Row(id, _) => drop(changed.insert(*id)),
        Sink::Targets(all) => changed.extend(all.iter().map(|(target, _)| target.variable())),
    };
    for statement in statements {
        match statement {
            Statement::Assign(assignment) => drop(changed.insert(assignment.target.variable())),
            Statement::Into(into) => sink(&into.sink, changed),
            Statement::Call(call) => changed.extend(call.outputs.iter().map(|(target, _)| target.variable())),
            Statement::Diagnostics(items) => {
                changed.extend(items.iter().map(|(target, _, _)| target.variable()));
            }
            Statement::Block(block) => {
                changed.extend(block.initial.iter().map(|initial| initial.variable));
                changes(&block.statements, changed);
                for handler in &block.handlers {
                    changed.extend([handler.variables.0, handler.variables.1]);
                    changes(&handler.statements, changed);
                }
            }
            Statement::If(branches, otherwise) => {
                branches.iter().for_each(|(_, statements)| changes(statements, changed));
                changes(otherwise, changed);
            }
            Statement::Case(case) => {
                changed.extend(case.operand.iter().map(|(_, variable)| *variable));
                case.branches.iter().for_each(|(_, statements)| changes(statements, changed));
                case.otherwise.iter().for_each(|statements| changes(statements, changed));
            }
            Statement::Loop(a_loop) => {
                match &a_loop.kind {
                    LoopKind::Range { variable, .. } => drop(changed.insert(*variable)),
                    LoopKind::Query { sink: to, .. } => sink(to, changed),
                    LoopKind::Array { target, .. } => drop(changed.insert(target.variable())),
                    LoopKind::Endless | LoopKind::While(_) => {}
                }
                changes(&a_loop.statements, changed);
            }
            _ => {}
        }
    }
}
