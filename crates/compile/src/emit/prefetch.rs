//! Rows that a loop will look for, asked for before it begins.
//!
//! A lookup waits for memory several times: for the index's slot, then for the row. Where the keys of a
//! loop's lookups follow from its number and from what the loop leaves alone, code before the loop computes
//! those of the first rounds, asks for all slots, and then for all rows; so the waits overlap, and in its
//! round a lookup takes the row that was found. What is guessed wrong is only slower: the round's key and
//! the state of the table are compared with those of the answer (`runtime::prefetch`). A join does the same
//! with the rows of its first relation. Lookups behind a loop are asked for with its own. Of a search by the
//! beginning of a key all rows are kept so, if they are few.

use std::collections::BTreeSet;

use albireo_plpgsql::body::{Fit, Loop, LoopKind, Query, RowFit, Sink, Statement, Target};
use albireo_semantics::expr::{Conversion, Expr, ExprKind, VariableId};
use albireo_semantics::query::tree::{Body, Change, IndexUse};
use albireo_semantics::types::{Scalar, Type};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};

use super::query::Lookup;
use super::{Emitter, Null, Operand, memory};
use crate::frame::{Frame, Slot};
use crate::kind::Kind;
use crate::runtime;
use crate::runtime::prefetch::{self, Answer, Ask};

/// For so many rounds rows are asked for.
const ROUNDS: i64 = prefetch::ROUNDS as i64;

/// A lookup or search that is prefetched.
pub(super) struct Asked<'r> {
    /// Which ones it is, whose rows are kept.
    pub(super) indexes: Vec<*const IndexUse>,
    /// Whether there are rows to be found; not of a new row's place in an index.
    pub(super) finds: bool,
    /// What a CASE chooses columns by.
    pub(super) choice: Option<&'r Expr>,
    pub(super) ask: *const Ask,
    /// [`Ask::number`].
    pub(super) number: usize,
}

/// Where the answer to a lookup is.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// Which of the routine's asks it is of.
    ask: usize,
    /// Which of its answers.
    round: Value,
    /// Whether it may be beyond the last, or to another key than the lookup's.
    guessed: bool,
}

/// What is computed for a round.
enum Part<'r> {
    /// A variable that the round assigns.
    Variable(VariableId, &'r Expr),
    /// A lookup of the round.
    Lookup(Lookup<'r>),
}

impl<'r> Emitter<'_, 'r> {
    /// Asks for the rows of a loop from `first` to `last`, if any can be known; gives the lookups.
    pub(super) fn ask_ahead(
        &mut self,
        a_loop: &'r Loop,
        variable: VariableId,
        first: Value,
        last: Value,
    ) -> Vec<Asked<'r>> {
        let mut changed = BTreeSet::new();
        changes(&a_loop.statements, &mut changed);
        let parts = self.ahead_of(&a_loop.statements, &changed, Some(variable));
        let mut asked = Vec::new();
        if !parts.iter().any(|part| matches!(part, Part::Lookup(_))) {
            return asked;
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
        let round = self.b.ins().isub(at, first);
        let before = self.scratch.clone();
        self.scratch.insert(variable, Operand::new(Kind::Int(Scalar::Integer), at, Null::Never));
        for part in &parts {
            match part {
                Part::Variable(id, expr) => {
                    let value = self.expr(expr);
                    self.scratch.insert(*id, value);
                }
                Part::Lookup(lookup) => asked.extend(self.look_ahead(lookup, round)),
            }
        }
        self.scratch = before;
        let following = self.b.ins().iadd_imm_u(at, 1);
        self.b.ins().jump(head, &[following.into()]);
        self.go_to(done);
        let (count, one) = (self.b.ins().isub(at, first), self.int(1));
        let rest = self.ask_for_rest(a_loop);
        let all = asked.iter().map(|asked| (asked, count)).chain(rest.iter().map(|asked| (asked, one)));
        self.find_ahead(&all.collect::<Vec<_>>());
        asked
    }

    /// Makes the keys of lookups behind a loop, which are asked for with those of its rounds, those of their
    /// answers.
    fn ask_for_rest(&mut self, a_loop: &'r Loop) -> Vec<Asked<'r>> {
        let rest = self.rest;
        let mut changed = BTreeSet::new();
        changes(&a_loop.statements, &mut changed);
        changes(rest, &mut changed);
        let parts = self.ahead_of(rest, &changed, None);
        let first = self.int(0);
        let mut asked = Vec::new();
        for part in &parts {
            if let Part::Lookup(lookup) = part
                && lookup.is_unique()
            {
                asked.extend(self.look_ahead(lookup, first));
            }
        }
        for statement in rest {
            if let Statement::Execute(Query::Change(plan)) = statement
                && let Change::Insert(insert) = plan.change.as_ref()
            {
                let (frame, none) = (self.frame, BTreeSet::new());
                let known = |expr: &Expr| is_known(frame, expr, &none, &changed);
                asked.extend(self.announce_insert(insert, &known, first));
            }
        }
        self.know(&asked, first, true);
        asked
    }

    /// Finds the rows of so many answers of each ask, from the first on.
    pub(super) fn find_ahead(&mut self, asked: &[(&Asked<'r>, Value)]) {
        for (Asked { ask, .. }, count) in asked {
            let ask = self.address(*ask);
            self.ask(prefetch::ask_for_keys as *const (), &[ask, *count]);
        }
        for (Asked { ask, choice, .. }, count) in asked.iter().filter(|(asked, _)| asked.finds) {
            let ask = self.address(*ask);
            let choice = match choice {
                Some(choice) => self.expr(choice).a,
                None => self.int(0),
            };
            self.ask(prefetch::find_rows as *const (), &[ask, *count, choice]);
        }
    }

    /// Notes where lookups find their answers: of a loop by its round, which is a guess, or of a join.
    pub(super) fn know(&mut self, asked: &[Asked<'r>], round: Value, guessed: bool) {
        for Asked { indexes, number, .. } in asked {
            let known = Known { ask: *number, round, guessed };
            self.known.extend(indexes.iter().map(|index| (*index, known)));
        }
    }

    /// Forgets where lookups find their answers.
    pub(super) fn forget(&mut self, asked: &[Asked<'r>]) {
        for index in asked.iter().flat_map(|asked| &asked.indexes) {
            self.known.remove(index);
        }
    }

    /// Where an answer is.
    fn answer(&mut self, ask: usize, round: Value) -> Value {
        let first = ask * prefetch::ROUNDS * size_of::<Answer>();
        let answers = self.b.ins().load(types::I64, memory(), self.context, runtime::ANSWERS_OFFSET);
        let offset = self.b.ins().imul_imm_u(round, size_of::<Answer>() as i64);
        let answer = self.b.ins().iadd(answers, offset);
        self.b.ins().iadd_imm_u(answer, first as i64)
    }

    /// Says that the answer of a round has no key.
    pub(super) fn ask_for_nothing(&mut self, ask: usize, round: Value) -> Value {
        let (answer, nothing) = (self.answer(ask, round), self.int(prefetch::NOTHING as i64));
        self.b.ins().store(memory(), nothing, answer, prefetch::STATE_OFFSET);
        answer
    }

    /// Puts a key into an answer.
    pub(super) fn ask_for_key(&mut self, answer: Value, [high, low, place]: [Value; 3]) {
        let asked = self.int(prefetch::ASKED as i64);
        let [high_offset, low_offset] = prefetch::KEY_OFFSETS;
        for (value, offset) in [
            (high, high_offset),
            (low, low_offset),
            (place, prefetch::PLACE_OFFSET),
            (asked, prefetch::STATE_OFFSET),
        ] {
            self.b.ins().store(memory(), value, answer, offset);
        }
    }

    /// What a lookup or search prefetched, whose key this is: goes on with the answer's address, which is that
    /// of a lookup's row, or else in `other`.
    pub(super) fn row_ahead(&mut self, known: Known, key: [Value; 3], other: Block) -> Value {
        if known.guessed {
            let within = self.b.create_block();
            let near = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, known.round, ROUNDS);
            self.branch(near, within, other);
            self.go_to(within);
        }
        let (found, good) = (self.b.create_block(), self.b.create_block());
        let answer = self.answer(known.ask, known.round);
        let state = self.b.ins().load(types::I64, memory(), answer, prefetch::STATE_OFFSET);
        let is_found = self.b.ins().icmp_imm_u(IntCC::Equal, state, prefetch::FOUND as i64);
        self.branch(is_found, found, other);
        self.go_to(found);
        let moves = self.b.ins().load(types::I64, memory(), answer, prefetch::MOVES_OFFSET);
        let now = self.b.ins().load(types::I64, memory(), moves, 0);
        let seen = self.b.ins().load(types::I64, memory(), answer, prefetch::SEEN_OFFSET);
        let mut differs = self.b.ins().bxor(now, seen);
        if known.guessed {
            let [high_offset, low_offset] = prefetch::KEY_OFFSETS;
            for (value, offset) in key.into_iter().zip([high_offset, low_offset, prefetch::PLACE_OFFSET]) {
                let asked = self.b.ins().load(types::I64, memory(), answer, offset);
                let differs_here = self.b.ins().bxor(value, asked);
                differs = self.b.ins().bor(differs, differs_here);
            }
        }
        self.branch(differs, other, good);
        self.go_to(good);
        answer
    }

    /// What can be known of statements before they are run, which change these variables; of the rounds of
    /// a loop if there is a variable that counts them.
    fn ahead_of(
        &self,
        statements: &'r [Statement],
        changed: &BTreeSet<VariableId>,
        variable: Option<VariableId>,
    ) -> Vec<Part<'r>> {
        let mut known = BTreeSet::from_iter(variable);
        let (nothing, all_changed) = (BTreeSet::new(), changed.iter().copied().chain(variable).collect());
        let stays = |expr: &Expr| is_known(self.frame, expr, &nothing, &all_changed);
        let mut parts = Vec::new();
        for statement in statements {
            let query = match statement {
                Statement::Assign(assignment) => {
                    if let (Target::Variable(id), RowFit::Value(Fit::Same)) =
                        (&assignment.target, &assignment.fit)
                        && matches!(self.frame.slot(*id), Slot::Cell(_))
                        && variable.is_some()
                        && is_known(self.frame, &assignment.value, &known, changed)
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
                    Body::Select(select) => {
                        let aggregates = select.grouping.iter().flat_map(|grouping| &grouping.aggregates);
                        let asked = aggregates.flat_map(|aggregate| &aggregate.args).chain(&select.outputs);
                        let steps = (select.relations.as_slice(), select.steps.as_slice());
                        self.lookup(steps, asked, None, select.ends, &stays)
                    }
                    _ => None,
                },
                Query::Change(plan) => match plan.change.as_ref() {
                    Change::Update(update) => {
                        let target = &update.target;
                        let set = update.set.iter().map(|(_, expr)| expr).chain(&target.returning);
                        let written = update.set.iter().map(|(column, _)| *column);
                        self.lookup((&target.relations, &target.steps), set, written, false, &stays)
                    }
                    Change::Delete(target) => {
                        let steps = (target.relations.as_slice(), target.steps.as_slice());
                        self.lookup(steps, &target.returning, None, false, &stays)
                    }
                    Change::Insert(_) | Change::Merge(_) => None,
                },
            };
            let Some(lookup) = lookup else { continue };
            if !lookup.keys().all(|key| is_known(self.frame, key, &known, changed)) {
                continue;
            }
            let before = parts.iter_mut().filter_map(|part| match part {
                Part::Lookup(before) => Some(before),
                Part::Variable(..) => None,
            });
            if !before.into_iter().any(|before| before.takes(&lookup)) {
                parts.push(Part::Lookup(lookup));
            }
        }
        parts
    }
}

/// Whether an expression can be computed before statements that change variables, but for the `known` ones,
/// and cannot fail.
fn is_known(
    frame: &Frame,
    expr: &Expr,
    known: &BTreeSet<VariableId>,
    changed: &BTreeSet<VariableId>,
) -> bool {
    match &expr.kind {
        ExprKind::Constant(_) => true,
        ExprKind::Variable(id) => {
            matches!(frame.slot(*id), Slot::Cell(_)) && (known.contains(id) || !changed.contains(id))
        }
        ExprKind::Element(array, subscript) => match &array.kind {
            ExprKind::Variable(id) => {
                matches!(frame.slot(*id), Slot::Array(..))
                    && !changed.contains(id)
                    && is_known(frame, subscript, known, changed)
            }
            _ => false,
        },
        ExprKind::Convert(inner, Conversion::Scalar(Scalar::Integer | Scalar::BigInt)) => {
            matches!(inner.ty, Type::Scalar(Scalar::SmallInt | Scalar::Integer))
                && is_known(frame, inner, known, changed)
        }
        _ => false,
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
