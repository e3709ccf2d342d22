//! Conditions, and expressions of which conditions select a part.

use std::sync::LazyLock;

use albireo_semantics::expr::{Comparison, Connective, Expr, ExprKind};
use albireo_semantics::types::Scalar;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Switch;

use super::query::whole;
use super::{Emitter, Null, Operand};
use crate::kind::Kind;

const BOOL: Kind = Kind::Int(Scalar::Bool);

/// Equality of two values, for the runtime to compute.
static EQUAL: LazyLock<Expr> = LazyLock::new(|| comparison_of(Comparison::Eq));
static AT_LEAST: LazyLock<Expr> = LazyLock::new(|| comparison_of(Comparison::Ge));
static AT_MOST: LazyLock<Expr> = LazyLock::new(|| comparison_of(Comparison::Le));

/// A comparison whose operands come from elsewhere.
fn comparison_of(op: Comparison) -> Expr {
    Expr::condition(ExprKind::Compare(op, Box::new((Expr::null(), Expr::null()))))
}

impl<'r> Emitter<'_, 'r> {
    /// Whether a condition is true, neither false nor NULL: an 8-bit number.
    pub(super) fn holds(&mut self, condition: &'r Expr) -> Value {
        let value = self.expr(condition);
        self.is_true(value)
    }

    fn is_true(&mut self, value: Operand) -> Value {
        self.is_just(value, true)
    }

    /// Whether a value is TRUE, or FALSE, and not NULL.
    fn is_just(&mut self, value: Operand, wanted: bool) -> Value {
        let same = self.b.ins().icmp_imm_u(IntCC::Equal, value.a, i64::from(wanted));
        match value.null {
            Null::Never => same,
            Null::Always => self.b.ins().iconst(types::I8, 0),
            Null::If(flag) => self.b.ins().band_not(same, flag),
        }
    }

    /// TRUE or FALSE.
    fn truth(&mut self, value: bool) -> Operand {
        let a = self.int(i64::from(value));
        Operand::new(BOOL, a, Null::Never)
    }

    /// AND and OR: terms are evaluated until one decides.
    pub(super) fn logic(&mut self, connective: Connective, terms: &'r [Expr]) -> Operand {
        let decisive = connective == Connective::Or;
        let join = self.join(BOOL);
        let mut unknown = Null::Never;
        for (n, term) in terms.iter().enumerate() {
            let value = self.expr(term);
            let decides = self.is_just(value, decisive);
            unknown = self.either_unknown(unknown, value.null);
            let decided = self.truth(decisive);
            let next = self.b.create_block();
            self.branch_to_join(decides, &join, decided, next);
            self.go_to(next);
            if n + 1 == terms.len() {
                break;
            }
        }
        let a = self.int(i64::from(!decisive));
        self.jump_to_join(&join, Operand::new(BOOL, a, unknown));
        self.after(join)
    }

    /// NULL if one was, which is never for sure.
    fn either_unknown(&mut self, a: Null, b: Null) -> Null {
        match (a, b) {
            (Null::Never, other) | (other, Null::Never) => other,
            (a, b) => {
                let (a, b) = (self.null_flag(a), self.null_flag(b));
                Null::If(self.b.ins().bor(a, b))
            }
        }
    }

    /// Goes to a join with a value if a condition holds, else to a block.
    fn branch_to_join(
        &mut self,
        condition: Value,
        join: &super::operand::Join,
        value: Operand,
        otherwise: cranelift_codegen::ir::Block,
    ) {
        let flag = self.null_flag(value.null);
        let values = std::iter::once(value.a).chain(value.b).chain([flag]);
        let args: Vec<_> = values.map(Into::into).collect();
        self.b.ins().brif(condition, join.block, &args, otherwise, &[]);
    }

    pub(super) fn is(&mut self, inner: &'r Expr, wanted: Option<bool>) -> Operand {
        let value = self.expr(inner);
        let flag = match wanted {
            None => self.null_flag(value.null),
            Some(wanted) => self.is_just(value, wanted),
        };
        let a = self.b.ins().uextend(types::I64, flag);
        Operand::new(BOOL, a, Null::Never)
    }

    pub(super) fn case_expr(
        &mut self,
        expr: &'r Expr,
        branches: &'r [(Expr, Expr)],
        otherwise: &'r Expr,
    ) -> Operand {
        let join = self.join(self.kind(expr));
        for (condition, result) in branches {
            let holds = self.holds(condition);
            self.result_if(holds, result, &join);
        }
        let value = self.expr(otherwise);
        self.jump_to_join(&join, value);
        self.after(join)
    }

    /// Goes to the join with a result if `holds`, and generates on where it does not.
    fn result_if(&mut self, holds: Value, result: &'r Expr, join: &super::operand::Join) {
        let (then, next) = (self.b.create_block(), self.b.create_block());
        self.branch(holds, then, next);
        self.go_to(then);
        let value = self.expr(result);
        self.jump_to_join(join, value);
        self.go_to(next);
    }

    pub(super) fn case_of(
        &mut self,
        expr: &'r Expr,
        operand: &'r Expr,
        branches: &'r [(Expr, Expr)],
        otherwise: &'r Expr,
    ) -> Operand {
        let operand = self.expr(operand);
        let join = self.join(self.kind(expr));
        if let (Kind::Int(Scalar::SmallInt | Scalar::Integer | Scalar::BigInt), Some(numbers)) =
            (operand.kind, numbers(branches))
        {
            self.case_of_numbers(operand, &numbers, otherwise, &join);
            return self.after(join);
        }
        for (value, result) in branches {
            let value = self.expr(value);
            let equal = self.compare(&EQUAL, Comparison::Eq, operand, value);
            let holds = self.is_true(equal);
            self.result_if(holds, result, &join);
        }
        let value = self.expr(otherwise);
        self.jump_to_join(&join, value);
        self.after(join)
    }

    /// Goes to the join with the result of the first branch for the operand's number, found by a table.
    fn case_of_numbers(
        &mut self,
        operand: Operand,
        branches: &[(i64, &'r Expr)],
        otherwise: &'r Expr,
        join: &super::operand::Join,
    ) {
        let (mut switch, mut results) = (Switch::new(), Vec::new());
        let other = self.b.create_block();
        for (number, result) in branches {
            let key = u128::from(number.cast_unsigned());
            if !switch.entries().contains_key(&key) {
                let block = self.b.create_block();
                switch.set_entry(key, block);
                results.push((block, *result));
            }
        }
        match operand.null {
            Null::Never => {}
            null => {
                let (flag, known) = (self.null_flag(null), self.b.create_block());
                self.branch(flag, other, known);
                self.go_to(known);
            }
        }
        switch.emit(&mut self.b, operand.a, other);
        for (block, result) in results {
            self.go_to(block);
            let value = self.expr(result);
            self.jump_to_join(join, value);
        }
        self.go_to(other);
        let value = self.expr(otherwise);
        self.jump_to_join(join, value);
    }

    pub(super) fn coalesce(&mut self, expr: &'r Expr, items: &'r [Expr]) -> Operand {
        let kind = self.kind(expr);
        let join = self.join(kind);
        for item in items {
            let value = self.expr(item);
            let value = self.as_kind(value, kind);
            let flag = self.null_flag(value.null);
            let (next, found) = (self.b.create_block(), self.b.create_block());
            self.branch(flag, next, found);
            self.go_to(found);
            self.jump_to_join(&join, Operand { null: Null::Never, ..value });
            self.go_to(next);
        }
        let nothing = self.null(kind);
        self.jump_to_join(&join, nothing);
        self.after(join)
    }

    pub(super) fn between(&mut self, parts: &'r [Expr; 3]) -> Operand {
        let [value, low, high] = parts;
        let join = self.join(BOOL);
        let value = self.expr(value);
        let mut unknown = Null::Never;
        for (bound, op, node) in [(low, Comparison::Ge, &AT_LEAST), (high, Comparison::Le, &AT_MOST)] {
            let bound = self.expr(bound);
            let holds = self.compare(node, op, value, bound);
            let outside = self.is_just(holds, false);
            unknown = self.either_unknown(unknown, holds.null);
            let (no, next) = (self.truth(false), self.b.create_block());
            self.branch_to_join(outside, &join, no, next);
            self.go_to(next);
        }
        let a = self.int(1);
        self.jump_to_join(&join, Operand::new(BOOL, a, unknown));
        self.after(join)
    }

    pub(super) fn is_in(&mut self, value: &'r Expr, list: &'r [Expr]) -> Operand {
        let join = self.join(BOOL);
        let value = self.expr(value);
        let mut unknown = Null::Never;
        for item in list {
            let item = self.expr(item);
            let equal = self.compare(&EQUAL, Comparison::Eq, value, item);
            let found = self.is_true(equal);
            unknown = self.either_unknown(unknown, equal.null);
            let (yes, next) = (self.truth(true), self.b.create_block());
            self.branch_to_join(found, &join, yes, next);
            self.go_to(next);
        }
        let a = self.int(0);
        self.jump_to_join(&join, Operand::new(BOOL, a, unknown));
        self.after(join)
    }
}

/// From so many branches on a CASE by numbers is a jump by a table.
const BRANCHES: usize = 4;

/// The branches of a CASE by the numbers that they are for, if there are enough and all are.
fn numbers(branches: &[(Expr, Expr)]) -> Option<Vec<(i64, &Expr)>> {
    let numbers = branches.iter().map(|(value, result)| Some((whole(value)?, result)));
    numbers.collect::<Option<Vec<_>>>().filter(|numbers| numbers.len() >= BRANCHES)
}
