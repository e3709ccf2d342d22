//! Scalar expressions.
//!
//! Responsible for: which expressions are vectorised, as Arrow's own operators or as functions of this
//! crate; every other becomes a [`kernel`]. Not responsible for: what an expression computes
//! (`albireo_semantics::expr`).
//!
//! **Invariant:** an expression of type NUMERIC of scale `s` has the Arrow type `Decimal128(_, s)`, of any
//! scale [`OPEN`]; of any other type that of [`arrow_of`].

use std::sync::Arc;

use albireo_base::{Decimal, SqlType, Value};
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{
    Arithmetic, Binary, ColumnRef, Comparison, Connective, Conversion, Expr, ExprKind, Unary,
};
use albireo_semantics::types::{Scalar, Type};
use arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{InList, Placeholder};
use datafusion::logical_expr::{BinaryExpr, Case, Cast, Expr as Planned, Like, Operator, lit};

use super::kernel::kernel;
use super::keys::{has_key, key};
use super::{EXPR_BYTES, Level, Lowering, Typed, take, unsupported};
use crate::errors::{external, internal};
use crate::functions::arithmetic::{self, Operation};
use crate::functions::decimal::Shape;
use crate::functions::{compare, now, temporal};
use crate::types::decimal;
use crate::values::arrow_of;
use crate::values::numeric::OPEN;

impl Lowering<'_> {
    /// An expression over the columns of `level`.
    pub(super) fn expr(&self, level: &Level, expr: &Expr) -> Result<Planned> {
        Ok(self.typed(level, expr)?.0)
    }

    /// Several expressions over the columns of `level`.
    pub(super) fn exprs<'e>(
        &self,
        level: &Level,
        exprs: impl IntoIterator<Item = &'e Expr>,
    ) -> Result<Vec<Planned>> {
        exprs.into_iter().map(|expr| self.expr(level, expr)).collect()
    }

    /// An expression as it is compared, sorted and grouped.
    pub(super) fn key_of(&self, level: &Level, expr: &Expr) -> Result<Planned> {
        Ok(key(self.expr(level, expr)?, &expr.ty))
    }

    /// An expression with its Arrow type.
    #[recursive::recursive]
    pub(super) fn typed(&self, level: &Level, expr: &Expr) -> Result<Typed> {
        take(EXPR_BYTES)?;
        match &expr.kind {
            ExprKind::Column(column) => self.column_of(level, *column),
            ExprKind::Constant(datum) => self.constant(datum, &expr.ty),
            ExprKind::Variable(_) => self.parameter(expr),
            ExprKind::Subquery(subquery) => {
                let found = level.queries.get(&(Arc::as_ptr(subquery) as usize));
                found.cloned().ok_or_else(|| unsupported("a query in this place"))
            }
            ExprKind::Logic(connective, terms) => self.logic(level, expr, *connective, terms),
            ExprKind::Not(inner) => Ok(boolean(Planned::Not(Box::new(self.expr(level, inner)?)))),
            ExprKind::IsNull(inner) if is_scalar(inner) => {
                Ok(boolean(Planned::IsNull(Box::new(self.expr(level, inner)?))))
            }
            ExprKind::IsNotNull(inner) if is_scalar(inner) => {
                Ok(boolean(Planned::IsNotNull(Box::new(self.expr(level, inner)?))))
            }
            ExprKind::Is(inner, wanted) => {
                let inner = self.expr(level, inner)?;
                Ok(boolean(match wanted {
                    Some(wanted) => super::checks::is(inner, *wanted),
                    None => inner.is_null(),
                }))
            }
            ExprKind::Compare(op, pair) => self.compare(level, operator(*op), expr, &pair.0, &pair.1),
            ExprKind::IsDistinct(pair) => {
                self.compare(level, Operator::IsDistinctFrom, expr, &pair.0, &pair.1)
            }
            ExprKind::Between { parts, conversions: [None, None] } => self.between(level, expr, parts),
            ExprKind::In(value, list) => self.in_list(level, expr, value, list),
            ExprKind::Binary(op, pair) => self.binary(level, *op, expr, &pair.0, &pair.1),
            ExprKind::Unary(Unary::Negate, inner) => self.negate(level, expr, inner),
            ExprKind::Convert(inner, Conversion::Scalar(to)) => self.convert(level, expr, inner, *to),
            ExprKind::Cast(inner, modifier, _) if is_scalar(inner) => {
                self.modified(level, expr, inner, *modifier)
            }
            ExprKind::Case(branches, otherwise) => self.case(level, expr, branches, otherwise),
            ExprKind::Coalesce(items) => self.coalesce(level, expr, items),
            ExprKind::Function(builtin, args) => self.function(level, expr, builtin.name, args),
            ExprKind::Now => self.now(&expr.ty),
            _ => self.row_by_row(level, expr),
        }
    }

    pub(super) fn column_of(&self, level: &Level, column: ColumnRef) -> Result<Typed> {
        let found = match column.depth {
            0 => level
                .relations
                .get(usize::from(column.relation))
                .and_then(|columns| columns.get(usize::from(column.column))),
            _ => level.outer.get(&column),
        };
        found.cloned().ok_or_else(|| external(internal(format!("no column {column:?}"))))
    }

    /// A constant of a type.
    pub(super) fn constant(&self, datum: &Datum, ty: &Type) -> Result<Typed> {
        let Some(arrow) = arrow_of(ty) else { return Err(unsupported("a row as a value")) };
        let value = match (datum, ty) {
            (Datum::Value(Value::Decimal(number)), Type::Scalar(Scalar::Numeric { scale: Some(_) })) => {
                decimal(*number)
            }
            (Datum::Value(Value::Null), _) => ScalarValue::try_new_null(&arrow)?,
            _ => {
                let array = crate::values::array_of(std::slice::from_ref(datum), &arrow).map_err(external)?;
                ScalarValue::try_from_array(&array, 0)?
            }
        };
        let ty = value.data_type();
        Ok((Planned::Literal(value, None), ty))
    }

    fn parameter(&self, expr: &Expr) -> Result<Typed> {
        let ExprKind::Variable(id) = &expr.kind else { return Err(external(internal("no parameter"))) };
        let Some((number, declared)) = self.parameters.get(id) else {
            return Err(unsupported("a variable in a query over a snapshot"));
        };
        let Some(arrow) = arrow_of(declared) else { return Err(unsupported("a parameter of no type")) };
        let name = format!("${}", number + 1);
        let field = Arc::new(Field::new(&name, arrow.clone(), true));
        let placeholder = Planned::Placeholder(Placeholder::new_with_field(name, Some(field)));
        self.in_type((placeholder, arrow), declared, &expr.ty)
    }

    /// An expression of one type as one of another that differs at most in its scale.
    pub(super) fn in_type(&self, (expr, arrow): Typed, from: &Type, to: &Type) -> Result<Typed> {
        let (Type::Scalar(Scalar::Numeric { .. }), Type::Scalar(Scalar::Numeric { scale })) = (from, to)
        else {
            return Ok((expr, arrow));
        };
        match (scale, &arrow) {
            (None, ty) if *ty == OPEN => Ok((expr, arrow)),
            (Some(scale), DataType::Decimal128(_, at)) if *at == *scale as i8 => Ok((expr, arrow)),
            (Some(scale), DataType::Decimal128(..)) => {
                let ty = DataType::Decimal128(38, *scale as i8);
                Ok((Planned::Cast(Cast::new(Box::new(expr), ty.clone())), ty))
            }
            _ => {
                let column = ColumnRef { depth: 0, relation: 0, column: 0 };
                let same = Expr { kind: ExprKind::Column(column), ty: to.clone() };
                let gives = arrow_of(to).unwrap_or(OPEN);
                Ok((kernel(same, gives.clone(), vec![expr]), gives))
            }
        }
    }

    /// Row by row where a term may fail that others keep from being looked at: DataFusion's operators look at
    /// all rows of a batch.
    fn logic(&self, level: &Level, whole: &Expr, connective: Connective, terms: &[Expr]) -> Result<Typed> {
        if terms.iter().skip(1).any(Expr::may_fail) {
            return self.row_by_row(level, whole);
        }
        let terms = self.exprs(level, terms)?;
        let joined = match connective {
            Connective::And => datafusion::logical_expr::utils::conjunction(terms),
            Connective::Or => datafusion::logical_expr::utils::disjunction(terms),
        };
        Ok(boolean(joined.unwrap_or_else(|| lit(connective == Connective::And))))
    }

    /// A comparison of two values of one type.
    fn compare(&self, level: &Level, op: Operator, whole: &Expr, a: &Expr, b: &Expr) -> Result<Typed> {
        if !is_scalar(a) || !is_scalar(b) {
            return self.row_by_row(level, whole);
        }
        if let Some(ordered) = self.ordered(level, op, a, b)? {
            return Ok(boolean(ordered));
        }
        let (left, right) = self.comparable(level, a, b)?;
        Ok(boolean(Planned::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))))
    }

    /// The order of two NUMERIC values of which one has a scale of its own; `None` for any others.
    fn ordered(&self, level: &Level, op: Operator, a: &Expr, b: &Expr) -> Result<Option<Planned>> {
        if !compare::orders(op) || !matches!(a.ty, Type::Scalar(Scalar::Numeric { .. })) {
            return Ok(None);
        }
        let (left, right) = (self.typed(level, a)?, self.typed(level, b)?);
        let numeric = |ty: &DataType| matches!(ty, DataType::Decimal128(..)) || *ty == OPEN;
        let open = left.1 == OPEN || right.1 == OPEN;
        let fits = open && numeric(&left.1) && numeric(&right.1);
        Ok(fits.then(|| compare::compare(op, left.0, right.0)))
    }

    /// Two values as Arrow compares them.
    pub(super) fn comparable(&self, level: &Level, a: &Expr, b: &Expr) -> Result<(Planned, Planned)> {
        let (left, right) = (self.typed(level, a)?, self.typed(level, b)?);
        let Type::Scalar(Scalar::Numeric { .. }) = &a.ty else {
            return Ok((key(left.0, &a.ty), key(right.0, &b.ty)));
        };
        if let (Some(x), Some(y)) = (Shape::of(&left.1), Shape::of(&right.1)) {
            let scale = x.scale.max(y.scale);
            let integral = (x.precision - x.scale).max(y.precision - y.scale);
            if integral + scale <= 38 {
                return Ok((at_scale(left.0, scale), at_scale(right.0, scale)));
            }
        }
        let open = Type::Scalar(Scalar::Numeric { scale: None });
        let (left, right) = (self.in_type(left, &a.ty, &open)?, self.in_type(right, &b.ty, &open)?);
        Ok((key(left.0, &open), key(right.0, &open)))
    }

    fn between(&self, level: &Level, whole: &Expr, parts: &[Expr; 3]) -> Result<Typed> {
        let [value, low, high] = parts;
        let (above, _) = self.compare(level, Operator::GtEq, whole, value, low)?;
        let (below, _) = self.compare(level, Operator::LtEq, whole, value, high)?;
        Ok(boolean(above.and(below)))
    }

    fn in_list(&self, level: &Level, whole: &Expr, value: &Expr, list: &[Expr]) -> Result<Typed> {
        let plain = list.iter().all(|item| matches!(item.kind, ExprKind::Constant(_)));
        let numeric = matches!(value.ty, Type::Scalar(Scalar::Numeric { .. }));
        if !is_scalar(value) || has_key(&value.ty) {
            return self.row_by_row(level, whole);
        }
        if !plain || numeric {
            let mut terms = Vec::with_capacity(list.len());
            for item in list {
                terms.push(self.compare(level, Operator::Eq, whole, value, item)?.0);
            }
            let any = datafusion::logical_expr::utils::disjunction(terms);
            return Ok(boolean(any.unwrap_or_else(|| lit(false))));
        }
        let expr = Box::new(self.expr(level, value)?);
        let list = self.exprs(level, list)?;
        Ok(boolean(Planned::InList(InList { expr, list, negated: false })))
    }

    fn binary(&self, level: &Level, op: Binary, whole: &Expr, a: &Expr, b: &Expr) -> Result<Typed> {
        let arithmetic = match op {
            Binary::SmallInt(op) | Binary::Integer(op) | Binary::BigInt(op) => operation(op),
            Binary::Real(op) | Binary::Double(op) => operation(op),
            Binary::Numeric(op) => operation(op),
            _ => None,
        };
        match arithmetic {
            Some(operation) => self.arithmetic(level, operation, whole, a, b),
            None => self.row_by_row(level, whole),
        }
    }

    /// An operator on two numbers of one type, vectorised where its result has the type that it must.
    fn arithmetic(
        &self,
        level: &Level,
        operation: Operation,
        whole: &Expr,
        a: &Expr,
        b: &Expr,
    ) -> Result<Typed> {
        let (left, right) = (self.typed(level, a)?, self.typed(level, b)?);
        let ty = match (Shape::of(&left.1), Shape::of(&right.1)) {
            (Some(x), Some(y)) => operation.shape(x, y).data_type(),
            (None, None) if left.1 == right.1 && left.1 != OPEN => left.1.clone(),
            _ => return self.row_by_row(level, whole),
        };
        if let DataType::Decimal128(_, at) = ty {
            let same = whole.ty == Type::Scalar(Scalar::Numeric { scale: u8::try_from(at).ok() });
            if !same || operation == Operation::Divide {
                return self.row_by_row(level, whole);
            }
        }
        Ok((arithmetic::expression(operation, left.0, right.0), ty))
    }

    fn negate(&self, level: &Level, whole: &Expr, inner: &Expr) -> Result<Typed> {
        let (expr, ty) = self.typed(level, inner)?;
        let zero = match ty {
            DataType::Int16 => ScalarValue::Int16(Some(0)),
            DataType::Int32 => ScalarValue::Int32(Some(0)),
            DataType::Int64 => ScalarValue::Int64(Some(0)),
            DataType::Decimal128(precision, scale) => ScalarValue::Decimal128(Some(0), precision, scale),
            _ => return self.row_by_row(level, whole),
        };
        let zero = Planned::Literal(zero, None);
        match ty {
            DataType::Decimal128(..) => self.row_by_row(level, whole),
            _ => Ok((arithmetic::expression(Operation::Subtract, zero, expr), ty)),
        }
    }

    /// A conversion that Arrow makes as we do; any other row by row.
    fn convert(&self, level: &Level, whole: &Expr, inner: &Expr, to: Scalar) -> Result<Typed> {
        use Scalar::{BigInt, Bpchar, Double, Integer, Numeric, Real, SmallInt, Text};
        let Type::Scalar(from) = inner.ty else { return self.row_by_row(level, whole) };
        match (from, to) {
            (Text | Bpchar, Text) => self.typed(level, inner),
            (SmallInt, Integer | BigInt | Double) | (Integer, BigInt | Double) | (Real, Double) => {
                let ty = crate::values::arrow_of_scalar(to);
                let expr = self.expr(level, inner)?;
                Ok((Planned::Cast(Cast::new(Box::new(expr), ty.clone())), ty))
            }
            (SmallInt | Integer | BigInt, Numeric { .. })
                if whole.ty == Type::Scalar(Numeric { scale: Some(0) }) =>
            {
                let (expr, ty) = self.typed(level, inner)?;
                let Some(shape) = arithmetic::integer_shape(&ty) else {
                    return self.row_by_row(level, whole);
                };
                let ty = shape.data_type();
                Ok((Planned::Cast(Cast::new(Box::new(expr), ty.clone())), ty))
            }
            (Numeric { .. }, Numeric { .. }) => {
                let inner_typed = self.typed(level, inner)?;
                self.in_type(inner_typed, &inner.ty, &whole.ty)
            }
            _ => self.row_by_row(level, whole),
        }
    }

    /// A cast to a length or precision. Its kernel looks at the values of a batch first, which mostly fit.
    fn modified(&self, level: &Level, whole: &Expr, inner: &Expr, modifier: SqlType) -> Result<Typed> {
        let Some(arrow) = arrow_of(&whole.ty) else { return self.row_by_row(level, whole) };
        let ExprKind::Cast(_, _, kind) = &whole.kind else { return self.row_by_row(level, whole) };
        let inner = match &inner.kind {
            // Numbers keep their scale until they get that of the modifier.
            ExprKind::Convert(number, Conversion::Scalar(Scalar::Numeric { .. }))
                if matches!(number.ty, Type::Scalar(Scalar::Numeric { .. })) =>
            {
                number
            }
            _ => inner,
        };
        let value = self.expr(level, inner)?;
        let column = ExprKind::Column(ColumnRef { depth: 0, relation: 0, column: 0 });
        let place = Box::new(Expr { kind: column, ty: inner.ty.clone() });
        let cast = Expr { kind: ExprKind::Cast(place, modifier, *kind), ty: whole.ty.clone() };
        Ok((kernel(cast, arrow.clone(), vec![value]), arrow))
    }

    fn case(
        &self,
        level: &Level,
        whole: &Expr,
        branches: &[(Expr, Expr)],
        otherwise: &Expr,
    ) -> Result<Typed> {
        let Some(arrow) = arrow_of(&whole.ty) else { return self.row_by_row(level, whole) };
        if is_rewritten(whole) {
            return self.row_by_row(level, whole);
        }
        let mut when_then_expr = Vec::with_capacity(branches.len());
        for (condition, result) in branches {
            let condition = Box::new(self.expr(level, condition)?);
            when_then_expr.push((condition, Box::new(self.result(level, result, &whole.ty, &arrow)?)));
        }
        let else_expr = Some(Box::new(self.result(level, otherwise, &whole.ty, &arrow)?));
        Ok((Planned::Case(Case { expr: None, when_then_expr, else_expr }), arrow))
    }

    fn coalesce(&self, level: &Level, whole: &Expr, items: &[Expr]) -> Result<Typed> {
        let Some(arrow) = arrow_of(&whole.ty) else { return self.row_by_row(level, whole) };
        if is_rewritten(whole) {
            return self.row_by_row(level, whole);
        }
        let mut parts = Vec::with_capacity(items.len());
        for item in items {
            parts.push(self.result(level, item, &whole.ty, &arrow)?);
        }
        // Each is looked at only where all before it are NULL.
        let otherwise = parts.pop();
        let when_then_expr =
            parts.into_iter().map(|part| (Box::new(part.clone().is_not_null()), Box::new(part))).collect();
        let else_expr = otherwise.map(Box::new);
        Ok((Planned::Case(Case { expr: None, when_then_expr, else_expr }), arrow))
    }

    /// One of several results, in the type of all.
    fn result(&self, level: &Level, expr: &Expr, ty: &Type, arrow: &DataType) -> Result<Planned> {
        let typed = match &expr.kind {
            ExprKind::Constant(datum) if datum.is_null() => {
                return Ok(Planned::Literal(ScalarValue::try_new_null(arrow)?, None));
            }
            _ => self.typed(level, expr)?,
        };
        let (expr, found) = self.in_type(typed, &expr.ty, ty)?;
        Ok(if found == *arrow { expr } else { Planned::Cast(Cast::new(Box::new(expr), arrow.clone())) })
    }

    fn function(&self, level: &Level, whole: &Expr, name: &str, args: &[Expr]) -> Result<Typed> {
        match (name, args) {
            ("like", [value, pattern, escape]) if is_backslash(escape) && is_plain_pattern(pattern) => {
                let expr = Box::new(self.expr(level, value)?);
                let pattern = Box::new(self.expr(level, pattern)?);
                Ok(boolean(Planned::Like(Like::new(false, expr, pattern, None, false))))
            }
            ("substr" | "substring", [text, rest @ ..]) if !rest.is_empty() && rest.iter().all(is_count) => {
                let mut args = vec![self.expr(level, text)?];
                args.extend(self.exprs(level, rest)?);
                Ok((datafusion::functions::unicode::substr().call(args), DataType::Utf8View))
            }
            ("ascii", [text]) => {
                let code = datafusion::functions::string::ascii().call(vec![self.expr(level, text)?]);
                Ok((code, DataType::Int32))
            }
            ("mod", [a, b]) => self.arithmetic(level, Operation::Remainder, whole, a, b),
            ("extract", [field, moment]) => self.extract(level, whole, field, moment),
            _ => self.row_by_row(level, whole),
        }
    }

    /// Whole fields of dates and timestamps.
    fn extract(&self, level: &Level, whole: &Expr, field: &Expr, moment: &Expr) -> Result<Typed> {
        let ExprKind::Constant(Datum::Value(Value::Text(name))) = &field.kind else {
            return self.row_by_row(level, whole);
        };
        let field = match moment.ty {
            Type::Scalar(Scalar::Date) => temporal::Field::named(name, true),
            Type::Scalar(Scalar::Timestamp) => temporal::Field::named(name, false),
            _ => None,
        };
        let Some(field) = field.filter(|_| whole.ty == Type::Scalar(Scalar::Numeric { scale: Some(0) }))
        else {
            return self.row_by_row(level, whole);
        };
        Ok((temporal::extract(field, self.expr(level, moment)?), temporal::FIELD))
    }

    /// The time of the query.
    fn now(&self, ty: &Type) -> Result<Typed> {
        let moment = now::expression();
        let Some(arrow) = arrow_of(ty) else { return Err(unsupported("this form of the time")) };
        match ty {
            Type::Scalar(Scalar::TimestampTz) => Ok((moment, arrow)),
            _ => Ok((Planned::Cast(Cast::new(Box::new(moment), arrow.clone())), arrow)),
        }
    }

    /// An expression computed by its kernel.
    pub(super) fn row_by_row(&self, level: &Level, expr: &Expr) -> Result<Typed> {
        let Some(arrow) = arrow_of(&expr.ty) else { return Err(unsupported("a row as a value")) };
        let mut args = Vec::new();
        let mut places: Vec<Planned> = Vec::new();
        let mut copy = expr.clone();
        self.take_leaves(level, &mut copy, &mut places, &mut args)?;
        Ok((kernel(copy, arrow.clone(), args), arrow))
    }

    /// Makes columns, parameters, queries and the time in an expression columns of the kernel's arguments.
    #[recursive::recursive]
    fn take_leaves(
        &self,
        level: &Level,
        expr: &mut Expr,
        places: &mut Vec<Planned>,
        args: &mut Vec<Planned>,
    ) -> Result<()> {
        take(EXPR_BYTES)?;
        match &expr.kind {
            ExprKind::Call(..) => return Err(unsupported("a routine in a query over a snapshot")),
            ExprKind::Column(_) | ExprKind::Variable(_) | ExprKind::Subquery(_) | ExprKind::Now => {
                let leaf = self.typed(level, expr)?.0;
                let at = places.iter().position(|known| *known == leaf).unwrap_or_else(|| {
                    places.push(leaf.clone());
                    args.push(leaf);
                    places.len() - 1
                });
                let column = ColumnRef { depth: 0, relation: 0, column: at as u16 };
                expr.kind = ExprKind::Column(column);
                return Ok(());
            }
            _ => {}
        }
        let mut found = Ok(());
        expr.each_part_mut(&mut |part| {
            if found.is_ok() {
                found = self.take_leaves(level, part, places, args);
            }
        });
        found
    }
}

/// A decimal at a scale; a literal changes its own.
fn at_scale(expr: Planned, scale: i32) -> Planned {
    match &expr {
        Planned::Literal(ScalarValue::Decimal128(Some(v), _, at), _) if i32::from(*at) < scale => {
            let number = Decimal::new(*v, *at as u8).rescale(scale as u8);
            number.map_or(expr, |number| Planned::Literal(decimal(number), None))
        }
        _ => expr,
    }
}

fn boolean(expr: Planned) -> Typed {
    (expr, DataType::Boolean)
}

/// Whether DataFusion makes AND and OR of it, which look at more than they must.
fn is_rewritten(case: &Expr) -> bool {
    case.ty == Type::Scalar(Scalar::Bool) && case.may_fail()
}

fn is_scalar(expr: &Expr) -> bool {
    matches!(expr.ty, Type::Scalar(_))
}

fn is_backslash(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Constant(Datum::Value(Value::Text(text))) if text == "\\")
}

/// Whether Arrow finds a pattern as LIKE does: it is known and escapes nothing.
fn is_plain_pattern(pattern: &Expr) -> bool {
    match &pattern.kind {
        ExprKind::Constant(Datum::Value(Value::Text(text))) => !text.contains('\\'),
        _ => false,
    }
}

/// Whether it is a whole number from 1 on.
fn is_count(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Constant(Datum::Value(Value::Integer(n))) if *n > 0)
}

/// The operator of a comparison.
pub(super) fn operator(op: Comparison) -> Operator {
    match op {
        Comparison::Eq => Operator::Eq,
        Comparison::Ne => Operator::NotEq,
        Comparison::Lt => Operator::Lt,
        Comparison::Le => Operator::LtEq,
        Comparison::Gt => Operator::Gt,
        Comparison::Ge => Operator::GtEq,
    }
}

fn operation(op: Arithmetic) -> Option<Operation> {
    Some(match op {
        Arithmetic::Add => Operation::Add,
        Arithmetic::Subtract => Operation::Subtract,
        Arithmetic::Multiply => Operation::Multiply,
        Arithmetic::Divide => Operation::Divide,
        Arithmetic::Modulo => Operation::Remainder,
        Arithmetic::And | Arithmetic::Or | Arithmetic::Xor => return None,
    })
}
