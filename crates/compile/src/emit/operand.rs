//! Values in registers, in memory, and where ways meet.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value, types};

use super::{CELL, Emitter, memory};
use crate::kind::{Kind, NARROW_DIGITS};
use crate::runtime;
use crate::runtime::values::PRESENT;

/// Whether a value is NULL.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Null {
    /// It is not.
    Never,
    /// It is.
    Always,
    /// If this 8-bit number is not 0.
    If(Value),
}

/// A value of an expression.
///
/// By kind, `a` is the number itself (64 bits, or a float), the address of a cell with a NUMERIC, the
/// address of a text of `b` bytes, or the number of a box. Of NULL they are something that may be
/// computed with, to no effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub(crate) kind: Kind,
    pub(crate) a: Value,
    pub(crate) b: Option<Value>,
    pub(crate) null: Null,
}

impl Operand {
    pub(crate) fn new(kind: Kind, a: Value, null: Null) -> Self {
        Self { kind, a, b: None, null }
    }
}

/// A block where ways that have computed a value meet.
pub(super) struct Join {
    pub(super) block: Block,
    kind: Kind,
}

impl Emitter<'_, '_> {
    /// NULL of a kind.
    pub(super) fn null(&mut self, kind: Kind) -> Operand {
        let a = match kind {
            Kind::Double => self.b.ins().f64const(0.0),
            Kind::Numeric => {
                let cell = self.room(1);
                self.store_cell_parts(cell, None, None, None);
                cell
            }
            _ => self.int(0),
        };
        let b = (kind == Kind::Text).then(|| self.int(0));
        Operand { kind, a, b, null: Null::Always }
    }

    /// The flag that says whether a value is NULL.
    pub(super) fn null_flag(&mut self, null: Null) -> Value {
        match null {
            Null::Never => self.b.ins().iconst(types::I8, 0),
            Null::Always => self.b.ins().iconst(types::I8, 1),
            Null::If(flag) => flag,
        }
    }

    /// NULL if one of two is.
    pub(super) fn either_null(&mut self, a: Null, b: Null) -> Null {
        match (a, b) {
            (Null::Always, _) | (_, Null::Always) => Null::Always,
            (Null::Never, other) | (other, Null::Never) => other,
            (Null::If(a), Null::If(b)) => Null::If(self.b.ins().bor(a, b)),
        }
    }

    /// Where generated code reads of an array.
    pub(super) fn head(&mut self, number: u32) -> Value {
        let heads = self.b.ins().load(types::I64, memory(), self.context, runtime::HEADS_OFFSET);
        self.b.ins().iadd_imm_u(heads, i64::from(number) * runtime::arrays::HEAD_BYTES)
    }

    /// Writes a cell: its words, and its tag, which is NULL's if missing.
    fn store_cell_parts(&mut self, cell: Value, lo: Option<Value>, hi: Option<Value>, tag: Option<Value>) {
        for (part, offset) in [(lo, 0), (hi, 8)] {
            if let Some(part) = part {
                self.b.ins().store(memory(), part, cell, offset);
            }
        }
        let tag = tag.unwrap_or_else(|| self.int(0));
        self.b.ins().store(memory(), tag, cell, 16);
    }

    /// Writes a value to a cell at `base + offset`, a NUMERIC of 128 bits included.
    pub(super) fn store_cell(&mut self, operand: Operand, base: Value, offset: i32) {
        if let Kind::Numeric = operand.kind {
            for part in [0, 8, 16] {
                let word = self.b.ins().load(types::I64, memory(), operand.a, part);
                self.b.ins().store(memory(), word, base, offset + part);
            }
            return;
        }
        self.b.ins().store(memory(), operand.a, base, offset);
        let hi = match operand.kind {
            Kind::Narrow { .. } => Some(self.b.ins().sshr_imm_u(operand.a, 63)),
            _ => operand.b,
        };
        if let Some(hi) = hi {
            self.b.ins().store(memory(), hi, base, offset + 8);
        }
        let scale = match operand.kind {
            Kind::Narrow { scale, .. } => i64::from(scale) << 8,
            _ => 0,
        };
        let present = PRESENT as i64 | scale;
        let tag = match operand.null {
            Null::Never => self.int(present),
            Null::Always => self.int(0),
            Null::If(flag) => {
                let (zero, one) = (self.int(0), self.int(present));
                self.b.ins().select(flag, zero, one)
            }
        };
        self.b.ins().store(memory(), tag, base, offset + 16);
    }

    /// The address of a cell with the value.
    pub(super) fn in_cell(&mut self, operand: Operand) -> Value {
        if operand.kind == Kind::Numeric {
            return operand.a;
        }
        let cell = self.room(1);
        self.store_cell(operand, cell, 0);
        cell
    }

    /// The address of cells with the values.
    pub(super) fn in_cells(&mut self, operands: &[Operand]) -> Value {
        let cells = self.room(operands.len());
        for (n, operand) in operands.iter().enumerate() {
            self.store_cell(*operand, cells, n as i32 * CELL);
        }
        cells
    }

    /// The value in a cell at `base + offset`.
    pub(super) fn load_cell(&mut self, base: Value, offset: i32, kind: Kind) -> Operand {
        let tag = self.b.ins().load(types::I64, memory(), base, offset + 16);
        let present = self.b.ins().ireduce(types::I8, tag);
        let null = Null::If(self.b.ins().icmp_imm_u(IntCC::Equal, present, 0));
        let a = match kind {
            Kind::Numeric if offset == 0 => base,
            Kind::Numeric => self.b.ins().iadd_imm_u(base, i64::from(offset)),
            Kind::Double => self.b.ins().load(types::F64, memory(), base, offset),
            _ => self.b.ins().load(types::I64, memory(), base, offset),
        };
        let b = (kind == Kind::Text).then(|| self.b.ins().load(types::I64, memory(), base, offset + 8));
        Operand { kind, a, b, null }
    }

    /// The same value as another kind that can hold it.
    pub(super) fn as_kind(&mut self, operand: Operand, kind: Kind) -> Operand {
        if operand.kind == kind {
            return operand;
        }
        if let Null::Always = operand.null {
            return self.null(kind);
        }
        match (operand.kind, kind) {
            (Kind::Narrow { scale, digits }, Kind::Narrow { scale: wanted, digits: most })
                if wanted >= scale && digits + (wanted - scale) <= most =>
            {
                let a = self.times_power(operand.a, wanted - scale);
                Operand { kind, a, ..operand }
            }
            (Kind::Narrow { .. }, Kind::Numeric) => {
                let cell = self.in_cell(operand);
                Operand { kind, a: cell, ..operand }
            }
            // Exactly the same value, or an error.
            _ => {
                let (cell, out) = (self.in_cell(operand), self.room(1));
                let (from, to) = (self.int(operand.kind.code() as i64), self.int(kind.code() as i64));
                self.ask(runtime::variables::as_kind as *const (), &[cell, from, to, out]);
                self.load_cell(out, 0, kind)
            }
        }
    }

    /// `a * 10^power`, which the caller knows to fit.
    pub(super) fn times_power(&mut self, a: Value, power: u8) -> Value {
        match power {
            0 => a,
            _ => self.b.ins().imul_imm_s(a, 10_i64.pow(u32::from(power.min(NARROW_DIGITS)))),
        }
    }

    /// A block where values of a kind meet.
    pub(super) fn join(&mut self, kind: Kind) -> Join {
        let block = self.b.create_block();
        self.b.append_block_param(block, if kind == Kind::Double { types::F64 } else { types::I64 });
        if kind == Kind::Text {
            self.b.append_block_param(block, types::I64);
        }
        self.b.append_block_param(block, types::I8);
        Join { block, kind }
    }

    /// Goes to the join with a value.
    pub(super) fn jump_to_join(&mut self, join: &Join, operand: Operand) {
        let args = self.join_args(join, operand);
        self.b.ins().jump(join.block, &args);
    }

    fn join_args(&mut self, join: &Join, operand: Operand) -> Vec<BlockArg> {
        let operand = self.as_kind(operand, join.kind);
        let flag = self.null_flag(operand.null);
        let values = std::iter::once(operand.a).chain(operand.b).chain([flag]);
        values.map(BlockArg::Value).collect()
    }

    /// Goes on after a join, with the value that came.
    pub(super) fn after(&mut self, join: Join) -> Operand {
        self.go_to(join.block);
        let values = self.b.block_params(join.block).to_vec();
        match (join.kind, values.as_slice()) {
            (Kind::Text, [a, b, flag]) => {
                Operand { kind: join.kind, a: *a, b: Some(*b), null: Null::If(*flag) }
            }
            (_, values) => Operand::new(join.kind, values[0], Null::If(values[values.len() - 1])),
        }
    }
}
