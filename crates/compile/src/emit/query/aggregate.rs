//! Aggregates of all rows of a query.

use albireo_semantics::query::tree::{Aggregate, AggregateKind, Grouping, Select};
use albireo_semantics::types::{Scalar, Type};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};

use super::super::{Emitter, Null, Operand, memory};
use super::steps::Give;
use crate::kind::Kind;
use crate::runtime;

/// An aggregate under generation: cells for what is known so far.
struct Total {
    /// The number, or sum, or best value.
    cell: Value,
    /// What of a sum did not fit 64 bits.
    wide: Option<Value>,
    /// The number of its set of values, if each counts once.
    distinct: Option<usize>,
    kind: Kind,
}

impl<'f, 'r> Emitter<'f, 'r> {
    /// Whether groups have code: one of all rows, of aggregates that have code.
    pub(super) fn takes_grouping(&self, grouping: &Grouping, relations: usize) -> bool {
        let good = |aggregate: &Aggregate| {
            let args = aggregate.args.iter().chain(&aggregate.filter);
            args.into_iter().all(|arg| self.takes(arg, relations)) && aggregate.order.is_empty() && {
                let kind = aggregate.args.first().map(|arg| self.kind(arg));
                match (aggregate.kind, kind, aggregate.distinct) {
                    (AggregateKind::Count, None, false) => true,
                    (AggregateKind::Count, Some(Kind::Int(_) | Kind::Text | Kind::Narrow { .. }), _) => true,
                    (AggregateKind::Count, Some(_), false) => true,
                    (AggregateKind::Sum, Some(kind), false) => match kind {
                        Kind::Int(ty) => matches!(ty, Scalar::SmallInt | Scalar::Integer),
                        kind => matches!(kind, Kind::Narrow { .. } | Kind::Numeric),
                    },
                    (AggregateKind::Min | AggregateKind::Max, Some(kind), _) => {
                        matches!(kind, Kind::Int(_) | Kind::Narrow { .. })
                    }
                    _ => false,
                }
            }
        };
        grouping.keys.is_empty()
            && !grouping.written
            && grouping.having.is_none()
            && grouping.aggregates.iter().all(good)
    }

    /// The one row of the aggregates of all rows.
    pub(super) fn group(
        &mut self,
        select: &'r Select,
        grouping: &'r Grouping,
        give: Give<'_, 'f, 'r>,
        done: Block,
    ) {
        let totals: Vec<Total> = grouping.aggregates.iter().map(|aggregate| self.total(aggregate)).collect();
        let finish = self.b.create_block();
        let most = select.ends.then_some(1);
        self.steps(&select.steps, most, finish, &mut |this, next| {
            for (aggregate, total) in grouping.aggregates.iter().zip(&totals) {
                this.add(aggregate, total);
            }
            this.jump(next);
        });
        self.go_to(finish);
        let mut groups = Vec::new();
        for (aggregate, total) in grouping.aggregates.iter().zip(&totals) {
            let value = self.finished(aggregate, total);
            groups.push(value);
        }
        self.query.groups = groups;
        give(self, done);
    }

    fn total(&mut self, aggregate: &'r Aggregate) -> Total {
        let kind = aggregate.args.first().map_or(Kind::Int(Scalar::BigInt), |arg| self.kind(arg));
        let counts = aggregate.kind == AggregateKind::Count;
        let (cell, zero) = (self.room(1), self.int(0));
        for word in [0, 8, 16] {
            self.b.ins().store(memory(), zero, cell, word);
        }
        let sums = aggregate.kind == AggregateKind::Sum;
        let wide = (sums && matches!(kind, Kind::Narrow { .. } | Kind::Numeric)).then(|| {
            let nothing = self.int(0);
            let of = Kind::Narrow { scale: scale_of(kind), digits: 1 };
            let wide = self.room(1);
            self.store_cell(Operand::new(of, nothing, Null::Never), wide, 0);
            wide
        });
        let distinct = (aggregate.distinct && counts).then(|| {
            let number = self.parts.distinct;
            self.parts.distinct += 1;
            let code = self.int(number as i64);
            self.ask(runtime::rows::no_values as *const (), &[code]);
            number
        });
        Total { cell, wide, distinct, kind }
    }

    /// Takes the current rows into an aggregate.
    fn add(&mut self, aggregate: &'r Aggregate, total: &Total) {
        let after = self.b.create_block();
        if let Some(filter) = &aggregate.filter {
            let holds = self.holds(filter);
            let counted = self.b.create_block();
            self.branch(holds, counted, after);
            self.go_to(counted);
        }
        if let Some(arg) = aggregate.args.first() {
            let value = self.expr(arg);
            match value.null {
                Null::Never => {}
                null => {
                    let flag = self.null_flag(null);
                    let present = self.b.create_block();
                    self.branch(flag, after, present);
                    self.go_to(present);
                }
            }
            let value = Operand { null: Null::Never, ..value };
            match aggregate.kind {
                AggregateKind::Count => self.add_distinct(total, value, after),
                AggregateKind::Sum => self.add_to_sum(total, value),
                _ => self.better(aggregate.kind, total, value),
            }
        }
        if aggregate.kind == AggregateKind::Count {
            self.count_up(total.cell);
        }
        self.jump(after);
        self.go_to(after);
    }

    /// Goes on only with a value that was not met before, if each counts once.
    fn add_distinct(&mut self, total: &Total, value: Operand, after: Block) {
        let Some(number) = total.distinct else { return };
        let (number, cell, out) = (self.int(number as i64), self.in_cell(value), self.room(1));
        let is_text = self.word(u32::from(value.kind == Kind::Text));
        self.ask(runtime::rows::is_first as *const (), &[number, cell, is_text, out]);
        let first = self.b.ins().load(types::I64, memory(), out, 0);
        let counted = self.b.create_block();
        self.branch(first, counted, after);
        self.go_to(counted);
    }

    fn add_to_sum(&mut self, total: &Total, value: Operand) {
        let one = self.int(1);
        self.b.ins().store(memory(), one, total.cell, 16);
        let Some(wide) = total.wide else {
            // So many rows that 64 bits are too few for 32-bit numbers there are not.
            let sum = self.b.ins().load(types::I64, memory(), total.cell, 0);
            let sum = self.b.ins().iadd(sum, value.a);
            self.b.ins().store(memory(), sum, total.cell, 0);
            return;
        };
        if value.kind == Kind::Numeric {
            self.add_wide(wide, value.a);
            return;
        }
        let sum = self.b.ins().load(types::I64, memory(), total.cell, 0);
        let (more, overflow) = self.b.ins().sadd_overflow(sum, value.a);
        let (full, fits, after) = (self.cold_block(), self.b.create_block(), self.b.create_block());
        self.branch(overflow, full, fits);
        self.go_to(full);
        let so_far = self.in_cell(Operand::new(total.kind, sum, Null::Never));
        self.add_wide(wide, so_far);
        self.b.ins().store(memory(), value.a, total.cell, 0);
        self.jump(after);
        self.go_to(fits);
        self.b.ins().store(memory(), more, total.cell, 0);
        self.jump(after);
        self.go_to(after);
    }

    fn add_wide(&mut self, wide: Value, value: Value) {
        let add = self.word(0);
        self.ask(runtime::nodes::numeric as *const (), &[add, wide, value, wide]);
    }

    /// Keeps a value if it is the first, or better than that before.
    fn better(&mut self, kind: AggregateKind, total: &Total, value: Operand) {
        let known = self.b.ins().load(types::I64, memory(), total.cell, 16);
        let best = self.b.ins().load(types::I64, memory(), total.cell, 0);
        let wanted = match kind {
            AggregateKind::Min => IntCC::SignedLessThan,
            _ => IntCC::SignedGreaterThan,
        };
        let better = self.b.ins().icmp(wanted, value.a, best);
        let first = self.b.ins().icmp_imm_u(IntCC::Equal, known, 0);
        let take = self.b.ins().bor(better, first);
        let best = self.b.ins().select(take, value.a, best);
        self.b.ins().store(memory(), best, total.cell, 0);
        let one = self.int(1);
        self.b.ins().store(memory(), one, total.cell, 16);
    }

    /// The result of an aggregate.
    fn finished(&mut self, aggregate: &'r Aggregate, total: &Total) -> Operand {
        match (aggregate.kind, total.wide) {
            (AggregateKind::Count, _) => {
                let count = self.b.ins().load(types::I64, memory(), total.cell, 0);
                Operand::new(Kind::Int(Scalar::BigInt), count, Null::Never)
            }
            (AggregateKind::Sum, Some(wide)) => {
                let some = self.b.ins().load(types::I64, memory(), total.cell, 16);
                if let Kind::Narrow { .. } = total.kind {
                    let sum = self.b.ins().load(types::I64, memory(), total.cell, 0);
                    let sum = self.in_cell(Operand::new(total.kind, sum, Null::Never));
                    self.add_wide(wide, sum);
                }
                let none = self.b.ins().icmp_imm_u(IntCC::Equal, some, 0);
                // Without rows it is NULL.
                let tag = self.b.ins().load(types::I64, memory(), wide, 16);
                let zero = self.int(0);
                let tag = self.b.ins().select(none, zero, tag);
                self.b.ins().store(memory(), tag, wide, 16);
                Operand::new(Kind::Numeric, wide, Null::If(none))
            }
            (AggregateKind::Sum, None) => self.load_cell(total.cell, 0, Kind::of(&aggregate.ty)),
            _ => {
                let kind = match &aggregate.ty {
                    Type::Scalar(_) => total.kind,
                    _ => Kind::of(&aggregate.ty),
                };
                self.load_cell(total.cell, 0, kind)
            }
        }
    }
}

fn scale_of(kind: Kind) -> u8 {
    match kind {
        Kind::Narrow { scale, .. } => scale,
        _ => 0,
    }
}
