//! Arithmetic.

use albireo_semantics::expr::{Arithmetic, Binary, Comparison, Conversion, Expr, ExprKind};
use albireo_semantics::types::Scalar;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Type, Value, types};

use super::{Emitter, Null, Operand, Width, memory};
use crate::kind::{Kind, NARROW_DIGITS};
use crate::runtime;

impl<'r> Emitter<'_, 'r> {
    /// The kind of a result of arithmetic on NUMERIC.
    pub(super) fn numeric_kind(&self, op: Arithmetic, a: Kind, b: Kind) -> Kind {
        let (Kind::Narrow { scale: s, digits: d }, Kind::Narrow { scale: t, digits: e }) = (a, b) else {
            return Kind::Numeric;
        };
        let (scale, digits) = match op {
            Arithmetic::Add | Arithmetic::Subtract => {
                let scale = s.max(t);
                (scale, (d + (scale - s)).max(e + (scale - t)) + 1)
            }
            Arithmetic::Multiply => (s + t, d + e),
            _ => return Kind::Numeric,
        };
        match digits <= NARROW_DIGITS {
            true => Kind::Narrow { scale, digits },
            false => Kind::Numeric,
        }
    }

    pub(super) fn binary(&mut self, expr: &'r Expr, op: Binary, pair: &'r (Expr, Expr)) -> Operand {
        if op == Binary::Concat
            && let Some(leaves) = self.joined_leaves(expr)
        {
            return self.join_texts(expr, &leaves);
        }
        let (a, b) = (self.expr(&pair.0), self.expr(&pair.1));
        match op {
            Binary::SmallInt(op) => self.integers(expr, op, a, b, Scalar::SmallInt),
            Binary::Integer(op) => self.integers(expr, op, a, b, Scalar::Integer),
            Binary::BigInt(op) => self.integers(expr, op, a, b, Scalar::BigInt),
            Binary::Numeric(op) => self.numerics(expr, op, a, b),
            Binary::Double(op) => self.doubles(expr, op, a, b),
            Binary::Concat if a.kind == Kind::Text && b.kind == Kind::Text => self.concat(a, b),
            _ => self.node_with(expr, &[a, b]),
        }
    }

    fn integers(&mut self, expr: &'r Expr, op: Arithmetic, a: Operand, b: Operand, ty: Scalar) -> Operand {
        let null = self.either_null(a.null, b.null);
        let kind = Kind::Int(ty);
        let (good, value) = match op {
            Arithmetic::And => (None, self.b.ins().band(a.a, b.a)),
            Arithmetic::Or => (None, self.b.ins().bor(a.a, b.a)),
            Arithmetic::Xor => (None, self.b.ins().bxor(a.a, b.a)),
            Arithmetic::Divide | Arithmetic::Modulo => return self.quotient(expr, op, a, b, ty),
            _ if ty == Scalar::BigInt => {
                let (value, overflow) = match op {
                    Arithmetic::Add => self.b.ins().sadd_overflow(a.a, b.a),
                    Arithmetic::Subtract => self.b.ins().ssub_overflow(a.a, b.a),
                    _ => self.b.ins().smul_overflow(a.a, b.a),
                };
                (Some(self.b.ins().bxor_imm_u(overflow, 1)), value)
            }
            _ => {
                let value = match op {
                    Arithmetic::Add => self.b.ins().iadd(a.a, b.a),
                    Arithmetic::Subtract => self.b.ins().isub(a.a, b.a),
                    _ => self.b.ins().imul(a.a, b.a),
                };
                (Some(self.fits(value, ty)), value)
            }
        };
        let value = Operand::new(kind, value, null);
        match good {
            Some(good) => self.checked(expr, &[a, b], good, value),
            None => value,
        }
    }

    /// Whether a number is one of a type.
    pub(super) fn fits(&mut self, value: Value, ty: Scalar) -> Value {
        let narrow: Type = match ty {
            Scalar::SmallInt => types::I16,
            Scalar::Integer | Scalar::Date => types::I32,
            _ => return self.b.ins().iconst(types::I8, 1),
        };
        let cut = self.b.ins().ireduce(narrow, value);
        let back = self.b.ins().sextend(types::I64, cut);
        self.b.ins().icmp(IntCC::Equal, back, value)
    }

    /// Division and remainder: by more than 0 here, else as the interpreter does it.
    fn quotient(&mut self, expr: &'r Expr, op: Arithmetic, a: Operand, b: Operand, ty: Scalar) -> Operand {
        let null = self.either_null(a.null, b.null);
        let good = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, b.a, 0);
        // A divisor that is none is replaced, as the division is done on both ways.
        let one = self.int(1);
        let divisor = self.b.ins().select(good, b.a, one);
        let value = match op {
            Arithmetic::Divide => self.b.ins().sdiv(a.a, divisor),
            _ => self.b.ins().srem(a.a, divisor),
        };
        self.checked(expr, &[a, b], good, Operand::new(Kind::Int(ty), value, null))
    }

    fn numerics(&mut self, expr: &'r Expr, op: Arithmetic, a: Operand, b: Operand) -> Operand {
        let kind = self.numeric_kind(op, a.kind, b.kind);
        let null = self.either_null(a.null, b.null);
        if let (Kind::Narrow { scale, .. }, Kind::Narrow { scale: s, .. }, Kind::Narrow { scale: t, .. }) =
            (kind, a.kind, b.kind)
        {
            let value = match op {
                Arithmetic::Multiply => self.b.ins().imul(a.a, b.a),
                _ => {
                    let (x, y) = (self.times_power(a.a, scale - s), self.times_power(b.a, scale - t));
                    match op {
                        Arithmetic::Add => self.b.ins().iadd(x, y),
                        _ => self.b.ins().isub(x, y),
                    }
                }
            };
            return Operand::new(kind, value, null);
        }
        let code = match op {
            Arithmetic::Add => 0,
            Arithmetic::Subtract => 1,
            Arithmetic::Multiply => 2,
            Arithmetic::Divide => 3,
            Arithmetic::Modulo => 4,
            _ => return self.node_with(expr, &[a, b]),
        };
        let (x, y, out) = (self.in_cell(a), self.in_cell(b), self.room(1));
        let (slow, done) = (self.b.create_block(), self.b.create_block());
        match op {
            Arithmetic::Add | Arithmetic::Subtract => {
                self.b.set_cold_block(slow);
                self.short_sum(op, [x, y], out, slow);
                self.jump(done);
            }
            _ => self.jump(slow),
        }
        self.go_to(slow);
        let code = self.word(code);
        self.ask(runtime::nodes::numeric as *const (), &[code, x, y, out]);
        self.jump(done);
        self.go_to(done);
        self.load_cell(out, 0, Kind::Numeric)
    }

    /// The sum or difference of two NUMERICs of one scale, if they and it fit 64 bits; goes elsewhere if
    /// not, or if one is NULL.
    fn short_sum(&mut self, op: Arithmetic, cells: [Value; 2], out: Value, other: Block) {
        let [(a, a_high, tag), (b, b_high, b_tag)] = cells.map(|cell| {
            let word = |this: &mut Self, at| this.b.ins().load(types::I64, memory(), cell, at);
            (word(self, 0), word(self, 8), word(self, 16))
        });
        let (sum, overflow) = match op {
            Arithmetic::Add => self.b.ins().sadd_overflow(a, b),
            _ => self.b.ins().ssub_overflow(a, b),
        };
        let mut wrong = self.b.ins().bxor(tag, b_tag);
        for (low, high) in [(a, a_high), (b, b_high)] {
            let sign = self.b.ins().sshr_imm_u(low, 63);
            let long = self.b.ins().bxor(high, sign);
            wrong = self.b.ins().bor(wrong, long);
        }
        let overflow = self.b.ins().uextend(types::I64, overflow);
        wrong = self.b.ins().bor(wrong, overflow);
        let present = self.b.ins().band_imm_u(tag, 0xFF);
        let absent = self.b.ins().icmp_imm_u(IntCC::Equal, present, 0);
        let absent = self.b.ins().uextend(types::I64, absent);
        wrong = self.b.ins().bor(wrong, absent);
        let good = self.b.create_block();
        self.branch(wrong, other, good);
        self.go_to(good);
        let sign = self.b.ins().sshr_imm_u(sum, 63);
        for (word, at) in [(sum, 0), (sign, 8), (tag, 16)] {
            self.b.ins().store(memory(), word, out, at);
        }
    }

    /// A comparison of two NUMERICs.
    pub(super) fn compare_numbers(&mut self, op: Comparison, a: Operand, b: Operand, null: Null) -> Operand {
        if let (Kind::Narrow { scale: s, digits: d }, Kind::Narrow { scale: t, digits: e }) = (a.kind, b.kind)
        {
            let scale = s.max(t);
            if d + (scale - s) <= NARROW_DIGITS && e + (scale - t) <= NARROW_DIGITS {
                let (x, y) = (self.times_power(a.a, scale - s), self.times_power(b.a, scale - t));
                let flag = self.b.ins().icmp(super::expr::condition(op), x, y);
                let value = self.b.ins().uextend(types::I64, flag);
                return Operand::new(Kind::Int(Scalar::Bool), value, null);
            }
        }
        let (x, y) = (self.in_cell(a), self.in_cell(b));
        let order = self.call(runtime::nodes::compare_numeric as *const (), &[x, y], Width::W32);
        self.order_holds(op, order, null)
    }

    /// Sums, differences and products that are ordinary numbers; quotients are the interpreter's.
    fn doubles(&mut self, expr: &'r Expr, op: Arithmetic, a: Operand, b: Operand) -> Operand {
        use cranelift_codegen::ir::condcodes::FloatCC;
        let null = self.either_null(a.null, b.null);
        let value = match op {
            Arithmetic::Add => self.b.ins().fadd(a.a, b.a),
            Arithmetic::Subtract => self.b.ins().fsub(a.a, b.a),
            Arithmetic::Multiply => self.b.ins().fmul(a.a, b.a),
            _ => return self.node_with(expr, &[a, b]),
        };
        // Neither infinite, nor NaN, nor so small that digits may be lost.
        let size = self.b.ins().fabs(value);
        let most = self.b.ins().f64const(f64::MAX);
        let least = self.b.ins().f64const(f64::MIN_POSITIVE);
        let below = self.b.ins().fcmp(FloatCC::LessThanOrEqual, size, most);
        let above = self.b.ins().fcmp(FloatCC::GreaterThanOrEqual, size, least);
        let good = self.b.ins().band(below, above);
        self.checked(expr, &[a, b], good, Operand::new(Kind::Double, value, null))
    }

    /// What a chain of `||` puts together, if there are more than two parts or one is a number; numbers
    /// without their conversion to texts.
    fn joined_leaves(&self, expr: &'r Expr) -> Option<Vec<&'r Expr>> {
        let mut leaves = Vec::new();
        let mut rest = expr;
        while let ExprKind::Binary(Binary::Concat, pair) = &rest.kind {
            leaves.push(self.joined_leaf(&pair.1)?);
            rest = &pair.0;
        }
        leaves.push(self.joined_leaf(rest)?);
        leaves.reverse();
        let only_texts = leaves.iter().all(|leaf| self.kind(leaf) == Kind::Text);
        (leaves.len() > 2 || !only_texts).then_some(leaves)
    }

    fn joined_leaf(&self, expr: &'r Expr) -> Option<&'r Expr> {
        if let ExprKind::Convert(inner, Conversion::Scalar(Scalar::Text) | Conversion::Text) = &expr.kind {
            let shown = match self.kind(inner) {
                Kind::Int(ty) => matches!(ty, Scalar::SmallInt | Scalar::Integer | Scalar::BigInt),
                kind => matches!(kind, Kind::Narrow { .. } | Kind::Numeric),
            };
            if shown {
                return Some(inner);
            }
        }
        (self.kind(expr) == Kind::Text).then_some(expr)
    }

    fn join_texts(&mut self, expr: &'r Expr, leaves: &[&'r Expr]) -> Operand {
        let parts: Vec<Operand> = leaves.iter().map(|leaf| self.expr(leaf)).collect();
        let kinds: Vec<Kind> = parts.iter().map(|part| part.kind).collect();
        let node = self.node_of(expr, &kinds, Kind::Text);
        let (cells, out) = (self.in_cells(&parts), self.room(1));
        self.ask(runtime::nodes::join as *const (), &[node, cells, out]);
        let null = parts.iter().fold(Null::Never, |null, part| self.either_null(null, part.null));
        Operand { null, ..self.load_cell(out, 0, Kind::Text) }
    }

    fn concat(&mut self, a: Operand, b: Operand) -> Operand {
        let null = self.either_null(a.null, b.null);
        let join = self.join(Kind::Text);
        let (absent, present) = (self.b.create_block(), self.b.create_block());
        let flag = self.null_flag(null);
        self.branch(flag, absent, present);
        self.go_to(absent);
        let nothing = self.null(Kind::Text);
        self.jump_to_join(&join, nothing);
        self.go_to(present);
        let (x, y, out) = (self.in_cell(a), self.in_cell(b), self.room(1));
        self.ask(runtime::nodes::concat as *const (), &[x, y, out]);
        let whole = self.load_cell(out, 0, Kind::Text);
        self.jump_to_join(&join, Operand { null: Null::Never, ..whole });
        self.after(join)
    }
}
