//! Queries and changes that find their rows by indexes: as loops in loops around what is done with each
//! row, all in one function (after Neumann, VLDB 2011: produce and consume).
//!
//! Responsible for: which statements these are, and what becomes of their rows (here), rows found
//! (`steps`) by keys (`keys`), columns (`column`), aggregates (`aggregate`), changes (`change`), new rows written where they
//! lie (`fill`). What is none of these is
//! the interpreter's.

mod aggregate;
mod change;
mod column;
mod fill;
mod keys;
mod steps;

use std::sync::Arc;

use albireo_plpgsql::body::{Into, Loop, Query, Sink};
use albireo_semantics::expr::{Expr, ExprKind};
use albireo_semantics::query::tree;
use albireo_semantics::query::tree::{Body, Change, Distinct, RelationSource, Select};
use albireo_sql::TableDef;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};

use super::expr::needs_whole;
use super::{CELL, Emitter, Null, Operand, Width, memory};
use crate::kind::Kind;
use crate::layout::TableLayout;
use crate::runtime;
use crate::runtime::rows::ReadColumns;
use crate::runtime::statements::{DONE, Fault};
use column::Row;
pub(super) use keys::whole;
pub(super) use steps::Lookup;

/// What is known of the query under generation.
#[derive(Default)]
pub(super) struct State {
    relations: Vec<Source>,
    /// The results of aggregates, which stand in a relation after the last.
    groups: Vec<Operand>,
    /// Whether rows are changed while others are looked for.
    changes: bool,
}

/// A relation: a table, and its row at hand.
struct Source {
    table: Arc<TableDef>,
    layout: Arc<TableLayout>,
    row: Option<Row>,
    /// The columns that are asked for.
    used: Vec<u16>,
    /// Those that there is code for.
    read: ReadColumns,
}

/// Makes code that finds a row; what is done with it comes second.
type FindsRow<'q, 'f, 'r> =
    &'q mut dyn FnMut(&mut Emitter<'f, 'r>, &mut dyn FnMut(&mut Emitter<'f, 'r>, &[Operand]));

/// How many of a query's rows are wanted, and what is done with each. It gets the outputs.
struct Rows<'q, 'f, 'r> {
    query: &'r tree::Query,
    select: &'r Select,
    /// At most so many.
    most: Option<i64>,
    each: &'q mut dyn FnMut(&mut Emitter<'f, 'r>, &[Operand]),
}

impl<'f, 'r> Emitter<'f, 'r> {
    /// PERFORM, or a statement without INTO; whether it has code.
    pub(super) fn perform(&mut self, query: &'r Query) -> bool {
        let count = match query {
            Query::Select(plan) => {
                let Some(select) = self.takes_select(&plan.query) else { return false };
                let count = self.counter();
                let rows = Rows {
                    query: &plan.query,
                    select,
                    most: None,
                    each: &mut |this, _| {
                        this.count_up(count);
                    },
                };
                self.rows(rows);
                count
            }
            Query::Change(plan) => {
                if !self.takes_change(&plan.change) {
                    return false;
                }
                self.change(&plan.change, &mut |_, _| {})
            }
        };
        self.parts.compiled += 1;
        let count = self.b.ins().load(types::I64, memory(), count, 0);
        self.note_count(count);
        let found = self.b.ins().icmp_imm_u(IntCC::NotEqual, count, 0);
        self.set_found(found);
        true
    }

    /// A statement with INTO; whether it has code.
    pub(super) fn into(&mut self, into: &'r Into) -> bool {
        if !self.has_sink(&into.sink) {
            return false;
        }
        let taken = match &into.query {
            Query::Select(plan) => {
                let Some(select) = self.takes_select(&plan.query) else { return false };
                let plain = plan.query.limit.is_none() && plan.query.offset.is_none();
                let single = plain && select.grouping.is_none();
                match single && self.is_one_lookup(&select.relations, &select.steps) {
                    true => {
                        self.only_row(into, &mut |this, each| {
                            this.rows(Rows { query: &plan.query, select, most: None, each });
                        });
                        None
                    }
                    false => Some(self.first_of_select(into, &plan.query, select)),
                }
            }
            Query::Change(plan) => {
                if !self.takes_change(&plan.change) {
                    return false;
                }
                match self.changes_one(&plan.change) {
                    true => {
                        self.only_row(into, &mut |this, each| {
                            this.change(&plan.change, each);
                        });
                        None
                    }
                    false => Some(self.first_of_change(into, &plan.change)),
                }
            }
        };
        self.parts.compiled += 1;
        if let Some(taken) = taken {
            self.after_into(into, taken);
        }
        true
    }

    /// INTO of what has one row at most: it goes straight to the targets. `rows` makes the code that finds
    /// it.
    fn only_row(&mut self, into: &'r Into, rows: FindsRow<'_, 'f, 'r>) {
        let after = self.b.create_block();
        rows(self, &mut |this, outputs| {
            let yes = this.b.ins().iconst(types::I8, 1);
            this.told(true, yes);
            this.sink(&into.sink, outputs);
            this.jump(after);
            // What follows a row is not come to.
            let nowhere = this.b.create_block();
            this.go_to(nowhere);
        });
        let no = self.b.ins().iconst(types::I8, 0);
        self.told(false, no);
        match into.strict {
            true => self.fail(Fault::NoRow),
            false => self.sink(&into.sink, &[]),
        }
        self.jump(after);
        self.go_to(after);
    }

    /// FOUND and the number of rows of a statement that had one row or none.
    fn told(&mut self, found: bool, flag: Value) {
        if self.counts {
            let count = self.int(i64::from(found));
            self.note_count(count);
        }
        self.set_found(flag);
    }

    /// Room for the first row, and how many there were.
    fn first_of_select(&mut self, into: &'r Into, query: &'r tree::Query, select: &'r Select) -> Taken {
        let width = select.outputs.len();
        let (row, count) = (self.room(width), self.counter());
        let mut kinds = Vec::new();
        let rows = Rows {
            query,
            select,
            most: Some(if into.strict { 2 } else { 1 }),
            each: &mut |this, outputs| {
                kinds = outputs.iter().map(|output| output.kind).collect();
                this.take_first(outputs, row, count, into.strict);
            },
        };
        self.rows(rows);
        Taken { row, kinds, count }
    }

    fn first_of_change(&mut self, into: &'r Into, change: &'r Change) -> Taken {
        let width = change.returning().len();
        let (row, taken) = (self.room(width), self.counter());
        let mut kinds = Vec::new();
        let count = self.change(change, &mut |this, outputs| {
            kinds = outputs.iter().map(|output| output.kind).collect();
            this.take_first(outputs, row, taken, true);
        });
        let _ = into;
        Taken { row, kinds, count }
    }

    /// Keeps the outputs if they are of the first row, and counts them.
    fn take_first(&mut self, outputs: &[Operand], row: Value, count: Value, several: bool) {
        if !several {
            self.keep_outputs(outputs, row);
            self.count_up(count);
            return;
        }
        let before = self.b.ins().load(types::I64, memory(), count, 0);
        let (first, next) = (self.b.create_block(), self.b.create_block());
        self.branch(before, next, first);
        self.go_to(first);
        self.keep_outputs(outputs, row);
        self.jump(next);
        self.go_to(next);
        self.count_up(count);
    }

    fn keep_outputs(&mut self, outputs: &[Operand], row: Value) {
        for (n, output) in outputs.iter().enumerate() {
            self.store_cell(*output, row, n as i32 * CELL);
        }
    }

    /// What INTO does once the row is known.
    fn after_into(&mut self, into: &'r Into, taken: Taken) {
        let count = self.b.ins().load(types::I64, memory(), taken.count, 0);
        let changes = matches!(into.query, Query::Change(_));
        let found = self.b.ins().icmp_imm_u(IntCC::NotEqual, count, 0);
        // Handlers and the targets, FOUND among them, come after this.
        if self.counts {
            let two = self.int(2);
            let noted = self.b.ins().umin(count, two);
            self.note_count(noted);
        }
        self.set_found(found);
        if into.strict || changes {
            let several = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, count, 1);
            self.fail_with(several, Fault::SeveralRows);
        }
        let (some, none, after) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.branch(found, some, none);
        if into.strict {
            self.b.set_cold_block(none);
        }
        self.go_to(none);
        match into.strict {
            true => self.fail(Fault::NoRow),
            false => self.sink(&into.sink, &[]),
        }
        self.jump(after);
        self.go_to(some);
        let row: Vec<Operand> = taken
            .kinds
            .iter()
            .enumerate()
            .map(|(n, kind)| self.load_cell(taken.row, n as i32 * CELL, *kind))
            .collect();
        self.sink(&into.sink, &row);
        self.jump(after);
        self.go_to(after);
    }

    /// A loop over the rows of a query; whether it has code.
    pub(super) fn compiled_query_loop(&mut self, a_loop: &'r Loop, sink: &'r Sink, query: &'r Query) -> bool {
        let Query::Select(plan) = query else { return false };
        let Some(select) = self.takes_select(&plan.query) else { return false };
        let boxed = select.outputs.iter().any(|output| Kind::of(&output.ty) == Kind::Boxed);
        if boxed || !self.has_sink(sink) || !(1..=64).contains(&select.outputs.len()) {
            return false;
        }
        self.parts.compiled += 1;
        let width = self.int(select.outputs.len() as i64);
        self.ask(runtime::rows::open_buffer as *const (), &[width]);
        let count = self.counter();
        let mut kinds = Vec::new();
        let rows = Rows {
            query: &plan.query,
            select,
            most: None,
            each: &mut |this, outputs| {
                kinds = outputs.iter().map(|output| output.kind).collect();
                let texts = outputs.iter().enumerate();
                let texts = texts.fold(0_u64, |all, (n, o)| all | u64::from(o.kind == Kind::Text) << n);
                let (cells, texts) = (this.in_cells(outputs), this.int(texts as i64));
                this.ask(runtime::rows::keep_row as *const (), &[cells, texts]);
                this.count_up(count);
            },
        };
        self.rows(rows);
        let count = self.b.ins().load(types::I64, memory(), count, 0);
        let (none, begin) = (self.b.create_block(), self.b.create_block());
        self.branch(count, begin, none);
        self.go_to(none);
        self.sink(sink, &[]);
        self.jump(begin);
        self.go_to(begin);
        let at = self.room(1);
        self.cursor_loop(
            a_loop,
            count,
            &mut |this| {
                let row = this.call(runtime::rows::kept_row as *const (), &[this.context], Width::W64);
                this.b.ins().store(memory(), row, at, 0);
                let ended = this.b.ins().icmp_imm_u(IntCC::Equal, row, 0);
                let (done, ok) = (this.word(DONE), this.word(runtime::OK));
                this.b.ins().select(ended, done, ok)
            },
            &mut |this| {
                let row = this.b.ins().load(types::I64, memory(), at, 0);
                let cells: Vec<Operand> = kinds
                    .iter()
                    .enumerate()
                    .map(|(n, kind)| this.load_cell(row, n as i32 * CELL, *kind))
                    .collect();
                this.sink(sink, &cells);
            },
        );
        true
    }

    /// The select of a query that has code.
    fn takes_select(&mut self, query: &'r tree::Query) -> Option<&'r Select> {
        let Body::Select(select) = &query.body else { return None };
        let sources = self.sources(&select.relations)?;
        let outer = std::mem::replace(&mut self.query, State { relations: sources, ..State::default() });
        let good = self.takes_rows(query, select);
        self.query = outer;
        good.then_some(select)
    }

    fn takes_rows(&self, query: &'r tree::Query, select: &'r Select) -> bool {
        let plain =
            query.ctes.is_empty() && matches!(select.distinct, Distinct::No) && !select.asks_for_locks();
        let limits = query.limit.iter().chain(&query.offset);
        let ordered = query.order.is_empty() || (select.ordered && self.in_one_site(select));
        let relations = self.query.relations.len();
        let groups = select.grouping.as_ref().is_none_or(|grouping| self.takes_grouping(grouping, relations));
        // A single row needs no order.
        let ordered = ordered || (select.grouping.is_some() && groups);
        let reach = if select.grouping.is_some() { relations + 1 } else { relations };
        // Without rows there is still the one of an aggregate.
        let constants = select.grouping.is_none() || select.constants.is_empty();
        plain
            && ordered
            && groups
            && constants
            && !select.steps.is_empty()
            && limits.into_iter().all(|expr| self.takes(expr, 0))
            && select.constants.iter().all(|expr| self.takes(expr, 0))
            && self.takes_steps(&select.steps, relations)
            && select.outputs.iter().all(|expr| self.takes(expr, reach))
    }

    /// The relations, if all are tables that are known.
    fn sources(&self, relations: &[tree::Relation]) -> Option<Vec<Source>> {
        let source = |relation: &tree::Relation| match &relation.source {
            RelationSource::Table(table) => {
                let layout = self.layouts.layout(table.id)?;
                Some(Source {
                    table: Arc::clone(table),
                    layout,
                    row: None,
                    used: Vec::new(),
                    read: ReadColumns::default(),
                })
            }
            _ => None,
        };
        relations.iter().map(source).collect()
    }

    /// Whether an expression has code where the first `relations` relations have rows.
    fn takes(&self, expr: &Expr, relations: usize) -> bool {
        let mut good = true;
        expr.walk(&mut |part| {
            good &= match &part.kind {
                ExprKind::Column(column) => column.depth == 0 && usize::from(column.relation) < relations,
                _ => !needs_whole(part),
            };
        });
        good
    }

    /// The rows of a query, one after another.
    fn rows(&mut self, rows: Rows<'_, 'f, 'r>) {
        let Rows { query, select, most, each } = rows;
        let mut sources = self.sources(&select.relations).unwrap_or_default();
        let aggregates = select.grouping.iter().flat_map(|grouping| &grouping.aggregates);
        let args = aggregates.flat_map(|aggregate| aggregate.args.iter().chain(&aggregate.filter));
        steps::columns_of(steps::exprs_of(&select.steps).chain(&select.outputs).chain(args), &mut sources);
        let outer = std::mem::replace(&mut self.query, State { relations: sources, ..State::default() });
        let done = self.b.create_block();
        let offset = query.offset.as_ref().map(|offset| self.row_limit(offset, 1));
        let limit = query.limit.as_ref().map(|limit| self.row_limit(limit, 0));
        let skipped = offset.map(|offset| {
            let room = self.counter();
            self.b.ins().store(memory(), offset, room, 0);
            room
        });
        let given = self.counter();
        if let Some(limit) = limit {
            let next = self.b.create_block();
            self.branch(limit, next, done);
            self.go_to(next);
        }
        for constant in &select.constants {
            let holds = self.holds(constant);
            let next = self.b.create_block();
            self.branch(holds, next, done);
            self.go_to(next);
        }
        let mut give = |this: &mut Self, next: Block| {
            if let Some(skipped) = skipped {
                let left = this.b.ins().load(types::I64, memory(), skipped, 0);
                let (skip, take) = (this.b.create_block(), this.b.create_block());
                this.branch(left, skip, take);
                this.go_to(skip);
                let fewer = this.b.ins().iadd_imm_s(left, -1);
                this.b.ins().store(memory(), fewer, skipped, 0);
                this.jump(next);
                this.go_to(take);
            }
            let outputs: Vec<Operand> = select.outputs.iter().map(|output| this.output(output)).collect();
            each(this, &outputs);
            if limit.is_some() || most.is_some() {
                this.count_up(given);
                let so_far = this.b.ins().load(types::I64, memory(), given, 0);
                for bound in [limit, most.map(|most| this.int(most))].into_iter().flatten() {
                    let enough = this.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, so_far, bound);
                    let more = this.b.create_block();
                    this.branch(enough, done, more);
                    this.go_to(more);
                }
            }
            this.jump(next);
        };
        match &select.grouping {
            None => {
                let hint = match (query.limit.is_none() && query.offset.is_none(), most) {
                    (true, Some(most)) => Some(most),
                    _ => None,
                };
                self.steps(&select.steps, hint, done, &mut give);
            }
            Some(grouping) => self.group(select, grouping, &mut give, done),
        }
        self.go_to(done);
        self.query = outer;
    }

    /// An output that may outlive the row and what variables hold: a text of a variable's is copied.
    fn output(&mut self, expr: &'r Expr) -> Operand {
        let value = self.expr(expr);
        let mut names = false;
        expr.walk(&mut |part| {
            names |= match part.kind {
                ExprKind::Variable(_) => matches!(self.kind(part), Kind::Text | Kind::Boxed),
                ExprKind::Field(..) => true,
                _ => false,
            };
        });
        match value.kind {
            Kind::Text if names => self.copy_text(value),
            _ => value,
        }
    }

    /// A text that stays as it is until the statement ends.
    fn copy_text(&mut self, value: Operand) -> Operand {
        let out = self.room(1);
        let length = value.b.unwrap_or(value.a);
        self.ask(runtime::variables::keep_text as *const (), &[value.a, length, out]);
        let kept = self.load_cell(out, 0, Kind::Text);
        Operand { null: value.null, ..kept }
    }

    /// The value of LIMIT or OFFSET; NULL sets none.
    fn row_limit(&mut self, expr: &'r Expr, offset: u32) -> Value {
        let value = self.expr(expr);
        let absent = if offset == 0 { i64::MAX } else { 0 };
        let absent = self.int(absent);
        let number = match value.null {
            Null::Never => value.a,
            Null::Always => absent,
            Null::If(flag) => self.b.ins().select(flag, absent, value.a),
        };
        let negative = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, number, 0);
        let which = self.word(offset);
        self.ask_if(negative, runtime::rows::negative_count as *const (), &[which]);
        number
    }

    /// Room for a number, which is 0.
    fn counter(&mut self) -> Value {
        let (room, zero) = (self.room(1), self.int(0));
        self.b.ins().store(memory(), zero, room, 0);
        room
    }

    fn count_up(&mut self, counter: Value) {
        let count = self.b.ins().load(types::I64, memory(), counter, 0);
        let more = self.b.ins().iadd_imm_u(count, 1);
        self.b.ins().store(memory(), more, counter, 0);
    }

    /// Tells how many rows a statement saw or changed, if anything asks.
    fn note_count(&mut self, count: Value) {
        if self.counts {
            self.ask(runtime::statements::row_count as *const (), &[count]);
        }
    }
}

/// The first row of a query, and where the number of its rows is.
struct Taken {
    row: Value,
    kinds: Vec<Kind>,
    count: Value,
}
