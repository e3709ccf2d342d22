//! Conversions and casts.

use albireo_base::{SqlType, Value as SqlValue};
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{Conversion, Expr, ExprKind};
use albireo_semantics::types::Scalar;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::{Emitter, Operand, memory};
use crate::kind::{Kind, NARROW_DIGITS};
use crate::runtime::values::PRESENT;

impl<'r> Emitter<'_, 'r> {
    /// A conversion to another type.
    pub(super) fn convert(&mut self, expr: &'r Expr, inner: &'r Expr, conversion: Conversion) -> Operand {
        let from = self.expr(inner);
        let Conversion::Scalar(to) = conversion else { return self.node_with(expr, &[from]) };
        let kind = self.kind(expr);
        match (from.kind, to) {
            (Kind::Int(a), Scalar::SmallInt | Scalar::Integer | Scalar::BigInt) if is_integer(a) => {
                let value = Operand { kind, ..from };
                if width(a) <= width(to) {
                    return value;
                }
                let good = self.fits(from.a, to);
                self.checked(expr, &[from], good, value)
            }
            (Kind::Int(a), Scalar::Numeric { .. }) if is_integer(a) => match kind {
                Kind::Narrow { .. } => Operand { kind, ..from },
                _ => {
                    // More digits than a narrow number has.
                    let cell = self.room(1);
                    self.store_cell(from, cell, 0);
                    let hi = self.b.ins().sshr_imm_u(from.a, 63);
                    self.b.ins().store(memory(), hi, cell, 8);
                    Operand { kind, a: cell, b: None, null: from.null }
                }
            },
            // UTC is the only time zone.
            (Kind::Int(Scalar::Timestamp | Scalar::TimestampTz), Scalar::Timestamp | Scalar::TimestampTz) => {
                Operand { kind, ..from }
            }
            (Kind::Int(a), Scalar::Double) if is_integer(a) => {
                let a = self.b.ins().fcvt_from_sint(types::F64, from.a);
                Operand { kind, a, ..from }
            }
            (Kind::Narrow { .. } | Kind::Numeric, Scalar::Numeric { .. }) => self.as_kind(from, kind),
            (Kind::Text, Scalar::Text) => from,
            (Kind::Text, Scalar::Bpchar) if is_plain_constant(inner) => from,
            (Kind::Text, Scalar::Bpchar) => {
                let good = self.ends_plainly(from);
                self.checked(expr, &[from], good, from)
            }
            _ => self.node_with(expr, &[from]),
        }
    }

    /// Whether a text has no blank at its end.
    fn ends_plainly(&mut self, text: Operand) -> Value {
        let length = text.b.unwrap_or(text.a);
        let join = self.b.create_block();
        self.b.append_block_param(join, types::I8);
        let some = self.b.create_block();
        let yes = self.b.ins().iconst(types::I8, 1);
        self.b.ins().brif(length, some, &[], join, &[yes.into()]);
        self.go_to(some);
        let end = self.b.ins().iadd(text.a, length);
        let last = self.b.ins().load(types::I8, memory(), end, -1);
        let good = self.b.ins().icmp_imm_u(IntCC::NotEqual, last, i64::from(b' '));
        self.b.ins().jump(join, &[good.into()]);
        self.go_to(join);
        self.b.block_params(join)[0]
    }

    /// A cast to a type with a length or digits.
    pub(super) fn cast(&mut self, expr: &'r Expr, inner: &'r Expr, to: SqlType) -> Operand {
        let from = self.expr(inner);
        match (from.kind, to) {
            (Kind::Narrow { scale, digits }, SqlType::Decimal { precision, scale: wanted }) => {
                self.digits(expr, from, (scale, digits), (wanted, precision))
            }
            (Kind::Numeric, SqlType::Decimal { precision, scale }) if precision <= NARROW_DIGITS => {
                self.narrowed(expr, from, scale, precision)
            }
            (Kind::Text, SqlType::Varchar(n)) => {
                let good = self.at_most(from, n);
                self.checked(expr, &[from], good, from)
            }
            (Kind::Text, SqlType::Char(n)) => {
                let (short, plain) = (self.at_most(from, n), self.ends_plainly(from));
                let good = self.b.ins().band(short, plain);
                self.checked(expr, &[from], good, from)
            }
            _ => self.node_with(expr, &[from]),
        }
    }

    /// Whether a text has at most so many bytes, and so no more characters.
    fn at_most(&mut self, text: Operand, n: u32) -> Value {
        let length = text.b.unwrap_or(text.a);
        self.b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, length, i64::from(n))
    }

    /// Any number as a narrow one: by code if it has that scale, and not too many digits.
    fn narrowed(&mut self, expr: &'r Expr, from: Operand, scale: u8, precision: u8) -> Operand {
        let low = self.b.ins().load(types::I64, memory(), from.a, 0);
        let high = self.b.ins().load(types::I64, memory(), from.a, 8);
        let tag = self.b.ins().load(types::I64, memory(), from.a, 16);
        let wanted = PRESENT as i64 | i64::from(scale) << 8;
        let scaled = self.b.ins().icmp_imm_u(IntCC::Equal, tag, wanted);
        let sign = self.b.ins().sshr_imm_u(low, 63);
        let short = self.b.ins().icmp(IntCC::Equal, high, sign);
        let below = self.below(low, precision);
        let good = self.b.ins().band(scaled, short);
        let good = self.b.ins().band(good, below);
        let kind = Kind::Narrow { scale, digits: precision };
        self.checked(expr, &[from], good, Operand { kind, a: low, b: None, null: from.null })
    }

    /// A narrow number with other digits: rounded halves away from zero, and refused if too large.
    fn digits(
        &mut self,
        expr: &'r Expr,
        from: Operand,
        (scale, digits): (u8, u8),
        (wanted, precision): (u8, u8),
    ) -> Operand {
        let kind = self.kind(expr);
        let Kind::Narrow { .. } = kind else { return self.node_with(expr, &[from]) };
        if wanted >= scale {
            let more = wanted - scale;
            if digits + more > NARROW_DIGITS {
                return self.node_with(expr, &[from]);
            }
            let a = self.times_power(from.a, more);
            let value = Operand { kind, a, ..from };
            return match digits + more <= precision {
                true => value,
                false => {
                    let good = self.below(a, precision);
                    self.checked(expr, &[from], good, value)
                }
            };
        }
        let fewer = scale - wanted;
        let divisor = 10_i64.pow(u32::from(fewer.min(NARROW_DIGITS)));
        let divisor_value = self.int(divisor);
        let quotient = self.b.ins().sdiv(from.a, divisor_value);
        let whole = self.b.ins().imul(quotient, divisor_value);
        let rest = self.b.ins().isub(from.a, whole);
        let size = self.b.ins().iabs(rest);
        let up = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, size, divisor / 2);
        let up = self.b.ins().uextend(types::I64, up);
        let negative = self.b.ins().sshr_imm_u(from.a, 63);
        // 1 or -1, as the number is.
        let sign = self.b.ins().bor_imm_s(negative, 1);
        let step = self.b.ins().imul(up, sign);
        let a = self.b.ins().iadd(quotient, step);
        let value = Operand { kind, a, ..from };
        match digits.saturating_sub(fewer) < precision {
            true => value,
            false => {
                let good = self.below(a, precision);
                self.checked(expr, &[from], good, value)
            }
        }
    }

    /// Whether a number has at most so many digits.
    fn below(&mut self, a: Value, precision: u8) -> Value {
        let size = self.b.ins().iabs(a);
        let limit = self.int(10_i64.pow(u32::from(precision.min(NARROW_DIGITS))));
        self.b.ins().icmp(IntCC::UnsignedLessThan, size, limit)
    }
}

/// Whether an expression is a text without blanks at its end.
fn is_plain_constant(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Constant(Datum::Value(SqlValue::Text(text))) => !text.ends_with(' '),
        _ => false,
    }
}

fn is_integer(ty: Scalar) -> bool {
    matches!(ty, Scalar::SmallInt | Scalar::Integer | Scalar::BigInt)
}

fn width(ty: Scalar) -> u8 {
    match ty {
        Scalar::SmallInt => 2,
        Scalar::Integer => 4,
        _ => 8,
    }
}
