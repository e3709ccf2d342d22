//! Expressions.

use albireo_base::Value as SqlValue;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{Binary, Comparison, Conversion, Expr, ExprKind, VariableId};
use albireo_semantics::types::{Scalar, Type};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::{Emitter, Null, Operand, Width, memory};
use crate::frame::Slot;
use crate::kind::Kind;
use crate::runtime;

impl<'r> Emitter<'_, 'r> {
    /// The kind of an expression's values.
    pub(super) fn kind(&self, expr: &Expr) -> Kind {
        match &expr.kind {
            ExprKind::Constant(datum) => Kind::of_constant(datum, &expr.ty),
            ExprKind::Variable(id) => match self.scratch.get(id) {
                Some(operand) => operand.kind,
                None => match self.frame.slot(*id) {
                    Slot::Cell(slot) => slot.kind,
                    Slot::Fields(_) | Slot::Array(..) | Slot::Boxed => Kind::Boxed,
                },
            },
            ExprKind::Column(column) => self.column_kind(*column),
            ExprKind::Field(row, n) => match self.field_slot(row, *n) {
                Some(slot) => slot.kind,
                None => Kind::of(&expr.ty),
            },
            ExprKind::Binary(Binary::Numeric(op), pair) => {
                self.numeric_kind(*op, self.kind(&pair.0), self.kind(&pair.1))
            }
            ExprKind::Cast(inner, to, _) => match (self.kind(inner), &expr.ty) {
                (Kind::Boxed, _) | (_, Type::Array(_)) => Kind::Boxed,
                _ => Kind::of_column(*to),
            },
            ExprKind::Convert(inner, Conversion::Scalar(Scalar::Numeric { .. })) => match self.kind(inner) {
                Kind::Int(Scalar::SmallInt) => Kind::Narrow { scale: 0, digits: 5 },
                Kind::Int(Scalar::Integer) => Kind::Narrow { scale: 0, digits: 10 },
                narrow @ Kind::Narrow { .. } => narrow,
                _ => Kind::Numeric,
            },
            ExprKind::Case(branches, otherwise) => {
                let results = branches.iter().map(|(_, result)| result);
                self.common_kind(results.chain([otherwise.as_ref()]), &expr.ty)
            }
            ExprKind::CaseOf(_, branches, otherwise) => {
                let results = branches.iter().map(|(_, result)| result);
                self.common_kind(results.chain([otherwise.as_ref()]), &expr.ty)
            }
            ExprKind::Coalesce(items) => self.common_kind(items.iter(), &expr.ty),
            _ => Kind::of(&expr.ty),
        }
    }

    /// The kind that holds the values of all.
    fn common_kind<'e>(&self, exprs: impl Iterator<Item = &'e Expr>, ty: &Type) -> Kind {
        let general = Kind::of(ty);
        if general != Kind::Numeric {
            return general;
        }
        let is_null =
            |expr: &&Expr| !matches!(expr.kind, ExprKind::Constant(Datum::Value(albireo_base::Value::Null)));
        let mut kinds = exprs.filter(is_null).map(|expr| self.kind(expr));
        let Some(first) = kinds.next() else { return general };
        kinds.fold(first, |a, b| match (a, b) {
            (Kind::Narrow { scale, digits }, Kind::Narrow { scale: other, digits: more })
                if scale == other =>
            {
                Kind::Narrow { scale, digits: digits.max(more) }
            }
            _ => Kind::Numeric,
        })
    }

    /// The value of an expression.
    pub(super) fn expr(&mut self, expr: &'r Expr) -> Operand {
        match &expr.kind {
            ExprKind::Constant(datum) => self.constant(expr, datum),
            ExprKind::Variable(id) => self.variable(*id),
            ExprKind::Column(column) => self.column(*column),
            ExprKind::Field(row, n) => match self.field_slot(row, *n) {
                Some(slot) => self.load_cell(self.cells, slot.at as i32 * super::CELL, slot.kind),
                None => self.node(expr),
            },
            ExprKind::Binary(op, pair) => self.binary(expr, *op, pair),
            ExprKind::Compare(op, pair) => {
                let (a, b) = (self.expr(&pair.0), self.expr(&pair.1));
                self.compare(expr, *op, a, b)
            }
            ExprKind::Not(inner) => {
                let inner = self.expr(inner);
                let a = self.b.ins().bxor_imm_u(inner.a, 1);
                Operand { a, ..inner }
            }
            ExprKind::Logic(connective, terms) => self.logic(*connective, terms),
            ExprKind::IsNull(inner) | ExprKind::IsNotNull(inner) => match &inner.ty {
                Type::Row(_) => self.node(expr),
                _ => {
                    let inner = self.expr(inner);
                    let flag = self.null_flag(inner.null);
                    let is_null = self.b.ins().uextend(types::I64, flag);
                    let wanted = matches!(expr.kind, ExprKind::IsNull(_));
                    let a = if wanted { is_null } else { self.b.ins().bxor_imm_u(is_null, 1) };
                    Operand::new(Kind::Int(Scalar::Bool), a, Null::Never)
                }
            },
            ExprKind::Is(inner, wanted) if self.kind(inner) == Kind::Int(Scalar::Bool) => {
                self.is(inner, *wanted)
            }
            ExprKind::Case(branches, otherwise) => self.case_expr(expr, branches, otherwise),
            ExprKind::CaseOf(operand, branches, otherwise) => {
                self.case_of(expr, operand, branches, otherwise)
            }
            ExprKind::Coalesce(items) => self.coalesce(expr, items),
            ExprKind::Between { parts, conversions: [None, None] } => self.between(parts),
            ExprKind::In(value, list) => self.is_in(value, list),
            ExprKind::Element(array, subscript) => self.element(expr, array, subscript),
            ExprKind::Convert(inner, conversion) => self.convert(expr, inner, *conversion),
            ExprKind::Cast(inner, to, _) => self.cast(expr, inner, *to),
            ExprKind::Now => self.now(expr),
            ExprKind::Function(builtin, args) if builtin.name == "like" => self.like(expr, args),
            ExprKind::Function(builtin, args) if builtin.name == "left" => self.left(expr, args),
            ExprKind::Function(builtin, args) if builtin.name == "round" => self.round_to(expr, args),
            ExprKind::General(function, args) if function.name == "cardinality" => {
                self.cardinality(expr, args)
            }
            _ if needs_whole(expr) => self.whole(expr),
            _ => self.node(expr),
        }
    }

    fn constant(&mut self, expr: &'r Expr, datum: &Datum) -> Operand {
        use albireo_base::Value as V;
        let kind = self.kind(expr);
        let Datum::Value(value) = datum else { return self.node_with(expr, &[]) };
        let word = match (kind, value) {
            (_, V::Null) => return self.null(kind),
            (Kind::Int(_), V::Bool(b)) => i64::from(*b),
            (Kind::Int(_), V::SmallInt(n)) => i64::from(*n),
            (Kind::Int(_), V::Integer(n) | V::Date(n)) => i64::from(*n),
            (Kind::Int(_), V::BigInt(n) | V::Time(n) | V::Timestamp(n) | V::TimestampTz(n)) => *n,
            (Kind::Narrow { .. }, V::Decimal(number)) => number.unscaled as i64,
            (Kind::Double, V::Double(n)) => {
                let a = self.b.ins().f64const(*n);
                return Operand::new(kind, a, Null::Never);
            }
            (Kind::Text, V::Text(text)) => {
                let at = self.parts.text(text);
                let (a, b) = (self.address(at), self.int(text.len() as i64));
                self.constants.insert(a);
                return Operand { kind, a, b: Some(b), null: Null::Never };
            }
            _ => return self.node_with(expr, &[]),
        };
        let a = self.int(word);
        Operand::new(kind, a, Null::Never)
    }

    pub(super) fn variable(&mut self, id: VariableId) -> Operand {
        if let Some(operand) = self.scratch.get(&id) {
            return *operand;
        }
        match self.frame.slot(id) {
            Slot::Cell(slot) => self.load_cell(self.cells, slot.at as i32 * super::CELL, slot.kind),
            Slot::Fields(_) | Slot::Array(..) | Slot::Boxed => {
                let (variable, out) = (self.word(id.0), self.room(1));
                self.ask(runtime::variables::get_boxed as *const (), &[variable, out]);
                self.load_cell(out, 0, Kind::Boxed)
            }
        }
    }

    /// The cell of a field of a row variable.
    fn field_slot(&self, row: &Expr, n: usize) -> Option<crate::frame::CellSlot> {
        let ExprKind::Variable(id) = &row.kind else { return None };
        match self.frame.slot(*id) {
            Slot::Fields(fields) if !self.scratch.contains_key(id) => fields.get(n).copied(),
            _ => None,
        }
    }

    /// A node that the runtime computes of its parts.
    pub(super) fn node(&mut self, expr: &'r Expr) -> Operand {
        let mut parts = Vec::new();
        let mut trees: Vec<&'r Expr> = Vec::new();
        each_part(expr, &mut |part| trees.push(part));
        for part in trees {
            let operand = self.expr(part);
            parts.push(operand);
        }
        self.node_with(expr, &parts)
    }

    /// A node that the runtime computes of these values of its parts.
    pub(super) fn node_with(&mut self, expr: &'r Expr, parts: &[Operand]) -> Operand {
        let kind = self.kind(expr);
        let kinds: Vec<Kind> = parts.iter().map(|part| part.kind).collect();
        let node = self.node_of(expr, &kinds, kind);
        let (cells, out) = (self.in_cells(parts), self.room(1));
        self.ask(runtime::nodes::node as *const (), &[node, cells, out]);
        self.load_cell(out, 0, kind)
    }

    /// An expression that the interpreter computes, parts and all.
    fn whole(&mut self, expr: &'r Expr) -> Operand {
        let kind = self.kind(expr);
        let node = self.node_of(expr, &[], kind);
        let out = self.room(1);
        self.ask(runtime::nodes::whole as *const (), &[node, out]);
        self.load_cell(out, 0, kind)
    }

    /// `value` where `good` is not 0, else what the runtime computes of the parts; NULL as `null` says.
    pub(super) fn checked(
        &mut self,
        expr: &'r Expr,
        parts: &[Operand],
        good: Value,
        value: Operand,
    ) -> Operand {
        let join = self.join(value.kind);
        let slow = self.cold_block();
        let args: Vec<_> = {
            let flag = self.null_flag(value.null);
            std::iter::once(value.a).chain(value.b).chain([flag]).map(|v| v.into()).collect()
        };
        self.b.ins().brif(good, join.block, &args, slow, &[]);
        self.go_to(slow);
        let computed = self.node_with(expr, parts);
        self.jump_to_join(&join, computed);
        let joined = self.after(join);
        // What cannot be NULL by its parts is not by its slow way either.
        match value.null {
            Null::Never => Operand { null: Null::Never, ..joined },
            _ => joined,
        }
    }

    fn element(&mut self, expr: &'r Expr, array: &'r Expr, subscript: &'r Expr) -> Operand {
        let ExprKind::Variable(id) = &array.kind else { return self.node(expr) };
        if self.scratch.contains_key(id) || self.kind(subscript) != Kind::Int(Scalar::Integer) {
            return self.node(expr);
        }
        let kind = self.kind(expr);
        let subscript = self.expr(subscript);
        let join = self.join(kind);
        let (absent, present) = (self.b.create_block(), self.b.create_block());
        let flag = self.null_flag(subscript.null);
        self.branch(flag, absent, present);
        self.go_to(absent);
        let null = self.null(kind);
        self.jump_to_join(&join, null);
        self.go_to(present);
        if let Slot::Array(number, item) = self.frame.slot(*id)
            && *item == kind
        {
            let (number, inside) = (*number, self.b.create_block());
            let head = self.head(number);
            let items = self.b.ins().load(types::I64, memory(), head, runtime::arrays::ITEMS_OFFSET);
            let length = self.b.ins().load(types::I64, memory(), head, runtime::arrays::LENGTH_OFFSET);
            let lower = self.b.ins().load(types::I64, memory(), head, runtime::arrays::LOWER_OFFSET);
            let at = self.b.ins().isub(subscript.a, lower);
            // A negative distance is a very large one.
            let within = self.b.ins().icmp(IntCC::UnsignedLessThan, at, length);
            self.branch(within, inside, absent);
            self.go_to(inside);
            let offset = self.b.ins().imul_imm_u(at, i64::from(super::CELL));
            let cell = self.b.ins().iadd(items, offset);
            let item = self.load_cell(cell, 0, kind);
            self.jump_to_join(&join, item);
            return self.after(join);
        }
        let (variable, code, out) = (self.word(id.0), self.int(kind.code() as i64), self.room(1));
        self.ask(runtime::nodes::element as *const (), &[variable, subscript.a, code, out]);
        let item = self.load_cell(out, 0, kind);
        self.jump_to_join(&join, item);
        self.after(join)
    }

    fn now(&mut self, expr: &'r Expr) -> Operand {
        match expr.ty {
            // UTC is the only time zone.
            Type::Scalar(ty @ (Scalar::TimestampTz | Scalar::Timestamp)) => {
                let known = self.b.ins().load(types::I64, memory(), self.context, runtime::NOW_OFFSET);
                let unknown = self.b.ins().icmp_imm_u(IntCC::Equal, known, 0);
                self.ask_if(unknown, runtime::nodes::now as *const (), &[]);
                let now = self.b.ins().load(types::I64, memory(), self.context, runtime::NOW_OFFSET);
                Operand::new(Kind::Int(ty), now, Null::Never)
            }
            _ => self.node(expr),
        }
    }

    /// Rounding of a NUMERIC to a number of digits that is known.
    fn round_to(&mut self, expr: &'r Expr, args: &'r [Expr]) -> Operand {
        let digits = match args {
            [number, Expr { kind: ExprKind::Constant(Datum::Value(SqlValue::Integer(digits))), .. }]
                if matches!(self.kind(number), Kind::Narrow { .. } | Kind::Numeric) =>
            {
                u8::try_from(*digits).ok()
            }
            _ => None,
        };
        let Some(digits) = digits.filter(|digits| *digits <= 38) else { return self.node(expr) };
        let number = self.expr(&args[0]);
        let number = self.as_kind(number, Kind::Numeric);
        let (digits, out) = (self.word(digits.into()), self.room(1));
        self.ask(runtime::nodes::round as *const (), &[number.a, digits, out]);
        Operand { null: number.null, ..self.load_cell(out, 0, Kind::Numeric) }
    }

    /// How many elements an array has; of one without any the runtime knows whether it is NULL.
    fn cardinality(&mut self, expr: &'r Expr, args: &'r [Expr]) -> Operand {
        let kind = self.kind(expr);
        let [Expr { kind: ExprKind::Variable(id), .. }] = args else { return self.node(expr) };
        let (Slot::Array(number, _), Kind::Int(_)) = (self.frame.slot(*id), kind) else {
            return self.node(expr);
        };
        let head = self.head(*number);
        let length = self.b.ins().load(types::I64, memory(), head, runtime::arrays::LENGTH_OFFSET);
        let join = self.join(kind);
        let (some, none) = (self.b.create_block(), self.cold_block());
        self.branch(length, some, none);
        self.go_to(some);
        self.jump_to_join(&join, Operand::new(kind, length, Null::Never));
        self.go_to(none);
        let slow = self.node(expr);
        self.jump_to_join(&join, slow);
        self.after(join)
    }

    /// LIKE; a pattern `%word%` is looked for without reading it anew each time.
    fn like(&mut self, expr: &'r Expr, args: &'r [Expr]) -> Operand {
        let Some(word) = contained(args) else { return self.node(expr) };
        let text = self.expr(&args[0]);
        let finder = self.parts.finder(word);
        let (finder, length) = (self.address(finder), text.b.unwrap_or(text.a));
        let contains = runtime::nodes::contains as *const ();
        let found = self.call(contains, &[text.a, length, finder], Width::W32);
        let a = self.b.ins().uextend(types::I64, found);
        Operand::new(Kind::Int(Scalar::Bool), a, text.null)
    }

    /// The first so many characters of a text, where it lies.
    fn left(&mut self, expr: &'r Expr, args: &'r [Expr]) -> Operand {
        let count = match args {
            [text, Expr { kind: ExprKind::Constant(Datum::Value(SqlValue::Integer(count))), .. }]
                if self.kind(text) == Kind::Text && *count >= 0 =>
            {
                i64::from(*count)
            }
            _ => return self.node(expr),
        };
        let text = self.expr(&args[0]);
        let length = text.b.unwrap_or(text.a);
        let (long, join) = (self.cold_block(), self.b.create_block());
        let shorter = self.b.append_block_param(join, types::I64);
        // So many bytes are no more characters.
        let short = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, length, count);
        self.b.ins().brif(short, join, &[length.into()], long, &[]);
        self.go_to(long);
        let count = self.int(count);
        let head = self.call(runtime::nodes::head as *const (), &[text.a, length, count], Width::W64);
        self.b.ins().jump(join, &[head.into()]);
        self.go_to(join);
        Operand { b: Some(shorter), ..text }
    }

    /// A comparison of two values of one type.
    pub(super) fn compare(&mut self, expr: &'r Expr, op: Comparison, a: Operand, b: Operand) -> Operand {
        let null = self.either_null(a.null, b.null);
        let bool_kind = Kind::Int(Scalar::Bool);
        match (a.kind, b.kind) {
            (Kind::Int(_), Kind::Int(_)) => {
                let flag = self.b.ins().icmp(condition(op), a.a, b.a);
                let a = self.b.ins().uextend(types::I64, flag);
                Operand::new(bool_kind, a, null)
            }
            (Kind::Narrow { .. } | Kind::Numeric, Kind::Narrow { .. } | Kind::Numeric) => {
                self.compare_numbers(op, a, b, null)
            }
            (Kind::Text, Kind::Text) => {
                let args = [a.a, a.b.unwrap_or(a.a), b.a, b.b.unwrap_or(b.a)];
                let order = self.call(runtime::nodes::compare_text as *const (), &args, Width::W32);
                self.order_holds(op, order, null)
            }
            (Kind::Double, Kind::Double) => {
                let flag = self.b.ins().fcmp(float_condition(op), a.a, b.a);
                let value = self.b.ins().uextend(types::I64, flag);
                // NaN is equal to itself and above all others, which the interpreter knows.
                let good = self.b.ins().fcmp(cranelift_codegen::ir::condcodes::FloatCC::Ordered, a.a, b.a);
                self.checked(expr, &[a, b], good, Operand::new(bool_kind, value, null))
            }
            _ => self.node_with(expr, &[a, b]),
        }
    }

    /// Whether an order, below, equal to or above 0, is as a comparison wants it.
    pub(super) fn order_holds(&mut self, op: Comparison, order: Value, null: Null) -> Operand {
        let flag = self.b.ins().icmp_imm_s(condition(op), order, 0);
        let a = self.b.ins().uextend(types::I64, flag);
        Operand::new(Kind::Int(Scalar::Bool), a, null)
    }
}

/// The comparison of two integers.
pub(super) fn condition(op: Comparison) -> IntCC {
    match op {
        Comparison::Eq => IntCC::Equal,
        Comparison::Ne => IntCC::NotEqual,
        Comparison::Lt => IntCC::SignedLessThan,
        Comparison::Le => IntCC::SignedLessThanOrEqual,
        Comparison::Gt => IntCC::SignedGreaterThan,
        Comparison::Ge => IntCC::SignedGreaterThanOrEqual,
    }
}

fn float_condition(op: Comparison) -> cranelift_codegen::ir::condcodes::FloatCC {
    use cranelift_codegen::ir::condcodes::FloatCC;
    match op {
        Comparison::Eq => FloatCC::Equal,
        Comparison::Ne => FloatCC::NotEqual,
        Comparison::Lt => FloatCC::LessThan,
        Comparison::Le => FloatCC::LessThanOrEqual,
        Comparison::Gt => FloatCC::GreaterThan,
        Comparison::Ge => FloatCC::GreaterThanOrEqual,
    }
}

/// The word in a pattern `%word%` that has no other signs.
fn contained(args: &[Expr]) -> Option<&str> {
    let (pattern, escape) = (literal(args.get(1)?)?, literal(args.get(2)?)?);
    let word = pattern.strip_prefix('%')?.strip_suffix('%')?;
    let plain = escape.chars().count() == 1 && !word.is_empty();
    (plain && !word.contains(['%', '_']) && !word.contains(escape)).then_some(word)
}

/// The text that a constant is.
fn literal(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Constant(Datum::Value(albireo_base::Value::Text(text))) => Some(text),
        _ => None,
    }
}

/// Whether an expression's value depends on more than its parts' values, or on not all of them.
pub(super) fn needs_whole(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Subquery(_)
            | ExprKind::CompareRows(..)
            | ExprKind::Call(..)
            | ExprKind::Between { conversions: [Some(_), _] | [_, Some(_)], .. }
    )
}

/// Calls `visit` for the parts of a node of which all are evaluated.
fn each_part<'r>(expr: &'r Expr, visit: &mut dyn FnMut(&'r Expr)) {
    match &expr.kind {
        ExprKind::Field(inner, _)
        | ExprKind::Cast(inner, _, _)
        | ExprKind::Convert(inner, _)
        | ExprKind::Unary(_, inner)
        | ExprKind::Not(inner)
        | ExprKind::IsNull(inner)
        | ExprKind::IsNotNull(inner)
        | ExprKind::Is(inner, _) => visit(inner),
        ExprKind::Element(a, b) => [a, b].into_iter().for_each(|part| visit(part)),
        ExprKind::Binary(_, pair)
        | ExprKind::Compare(_, pair)
        | ExprKind::IsDistinct(pair)
        | ExprKind::NullIf(pair, _)
        | ExprKind::AnyOf { pair, .. } => [&pair.0, &pair.1].into_iter().for_each(visit),
        ExprKind::Array(items)
        | ExprKind::Row(items)
        | ExprKind::Call(_, items)
        | ExprKind::Extreme(_, items)
        | ExprKind::Function(_, items)
        | ExprKind::General(_, items) => items.iter().for_each(visit),
        _ => {}
    }
}
