//! From a condition's syntax tree to a typed tree to evaluate.

use albireo_base::{Decimal, SqlError, SqlState, SqlType, Value};
use albireo_sql::TableDef;
use albireo_sql::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Spanned,
    UnaryOperator, Value as Literal,
};
use albireo_sql::literal::literal_value;

use albireo_sql::source::Source;

use super::evaluate::{Arithmetic, Comparison, Node, TextFunction};

/// A node and its type; `None` is a literal whose type its surroundings decide.
struct Typed {
    node: Node,
    ty: Option<SqlType>,
}

/// Compiles the expressions of one table.
struct Compiler<'a> {
    table: &'a TableDef,
    source: Source<'a>,
}

const ALLOWED: &str = "Allowed are columns, literals, comparisons, AND, OR, NOT, BETWEEN, IN (list), IS, LIKE, \
                       + - * / %, length, upper, lower and abs.";

/// A condition, ready to evaluate.
///
/// # Errors
/// 0A000 for what cannot be evaluated row by row, 42804 and 42883 for types that do not fit.
pub(super) fn condition(table: &TableDef, expr: &Expr, source: Source<'_>) -> Result<Node, SqlError> {
    Compiler { table, source }.boolean(expr)
}

impl Compiler<'_> {
    fn error(&self, state: SqlState, message: impl Into<String>, at: &Expr) -> SqlError {
        self.source.locate(SqlError::new(state, message), at.span())
    }

    fn refused(&self, expr: &Expr) -> SqlError {
        let text = format!("\"{expr}\" in a check constraint is not supported");
        self.error(SqlState::FEATURE_NOT_SUPPORTED, text, expr).with_hint(ALLOWED)
    }

    fn boolean(&self, expr: &Expr) -> Result<Node, SqlError> {
        let typed = self.compile(expr)?;
        match typed.ty {
            Some(SqlType::Bool) => Ok(typed.node),
            None => self.adapt(typed, SqlType::Bool, expr),
            Some(other) => {
                let text = format!("argument of CHECK must be type boolean, not type {other}");
                Err(self.error(SqlState::DATATYPE_MISMATCH, text, expr))
            }
        }
    }

    fn compile(&self, expr: &Expr) -> Result<Typed, SqlError> {
        let truth = |node: Node| Ok(Typed { node, ty: Some(SqlType::Bool) });
        let is = |inner: &Expr, wanted: Option<bool>, negated: bool| {
            Ok(Node::Is { operand: Box::new(self.boolean(inner)?), wanted, negated })
        };
        match expr {
            Expr::Nested(inner) => self.compile(inner),
            Expr::Identifier(ident) => self.column(ident),
            Expr::CompoundIdentifier(path) => self.column(path.last().ok_or_else(|| self.refused(expr))?),
            Expr::Value(value) => self.literal(&value.value, expr),
            Expr::TypedString(_) | Expr::Cast { .. } => self.typed_literal(expr),
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => truth(Node::Not(Box::new(self.boolean(expr)?))),
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } => self.compile(expr),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand } => self.negative(operand, expr),
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right, expr),
            Expr::IsNull(e) => {
                truth(Node::IsNull { operand: Box::new(self.compile(e)?.node), negated: false })
            }
            Expr::IsNotNull(e) => {
                truth(Node::IsNull { operand: Box::new(self.compile(e)?.node), negated: true })
            }
            Expr::IsTrue(e) => truth(is(e, Some(true), false)?),
            Expr::IsNotTrue(e) => truth(is(e, Some(true), true)?),
            Expr::IsFalse(e) => truth(is(e, Some(false), false)?),
            Expr::IsNotFalse(e) => truth(is(e, Some(false), true)?),
            Expr::IsUnknown(e) => truth(is(e, None, false)?),
            Expr::IsNotUnknown(e) => truth(is(e, None, true)?),
            Expr::Between { expr, negated, low, high } => {
                let low = self.compare(Comparison::GreaterOrEqual, expr, low)?;
                let high = self.compare(Comparison::LessOrEqual, expr, high)?;
                truth(not_if(*negated, Node::And(Box::new(low), Box::new(high))))
            }
            Expr::InList { expr, list, negated } => {
                let equal = list.iter().map(|item| self.compare(Comparison::Equal, expr, item));
                let any = equal.reduce(|a, b| Ok(Node::Or(Box::new(a?), Box::new(b?))));
                truth(not_if(*negated, any.ok_or_else(|| self.refused(expr))??))
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
                let operand = Box::new(self.text(expr)?);
                let pattern = Box::new(self.text(pattern)?);
                truth(not_if(*negated, Node::Like { operand, pattern }))
            }
            Expr::Function(function) => self.function(function, expr),
            _ => Err(self.refused(expr)),
        }
    }

    fn column(&self, ident: &Ident) -> Result<Typed, SqlError> {
        let id = self.table.resolve_column(ident, self.source)?;
        Ok(Typed { node: Node::Column(id), ty: Some(self.table.column_def(id).ty) })
    }

    fn literal(&self, literal: &Literal, expr: &Expr) -> Result<Typed, SqlError> {
        let typed = |value: Value, ty: SqlType| Ok(Typed { node: Node::Constant(value), ty: Some(ty) });
        match literal {
            Literal::Null => Ok(Typed { node: Node::Constant(Value::Null), ty: None }),
            Literal::Boolean(b) => typed(Value::Bool(*b), SqlType::Bool),
            Literal::Number(digits, _) => {
                let digits = digits.replace('_', "");
                if let Ok(n) = digits.parse::<i32>() {
                    return typed(Value::Integer(n), SqlType::Integer);
                }
                if let Ok(n) = digits.parse::<i64>() {
                    return typed(Value::BigInt(n), SqlType::BigInt);
                }
                let number = Decimal::parse(&digits).map_err(|error| {
                    let text = format!("the number {digits} has {error}");
                    self.error(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, text, expr)
                })?;
                typed(Value::Decimal(number), decimal_of(number.scale))
            }
            _ => match literal_value(expr, SqlType::Text)? {
                // A string may yet become a date, say.
                Some(value) => Ok(Typed { node: Node::Constant(value), ty: None }),
                None => Err(self.refused(expr)),
            },
        }
    }

    /// `DATE '2024-01-05'` or `'1.5'::numeric(3,1)`.
    fn typed_literal(&self, expr: &Expr) -> Result<Typed, SqlError> {
        let written = match expr {
            Expr::TypedString(typed) => &typed.data_type,
            Expr::Cast { data_type, .. } => data_type,
            _ => return Err(self.refused(expr)),
        };
        let ty = albireo_sql::types::sql_type(written)?;
        match literal_value(expr, ty)? {
            Some(value) => Ok(Typed { node: Node::Constant(value), ty: Some(ty) }),
            None => Err(self.refused(expr)),
        }
    }

    fn negative(&self, operand: &Expr, whole: &Expr) -> Result<Typed, SqlError> {
        // The smallest integers have no positive counterpart.
        for (ty, at_most) in [(SqlType::Integer, 10), (SqlType::BigInt, 19)] {
            if let Expr::Value(value) = operand
                && let Literal::Number(digits, _) = &value.value
                && digits.len() <= at_most
                && let Ok(Some(value)) = literal_value(whole, ty)
                && !digits.contains(['.', 'e', 'E'])
            {
                return Ok(Typed { node: Node::Constant(value), ty: Some(ty) });
            }
        }
        let operand = self.compile(operand)?;
        match operand.ty {
            Some(ty) if is_number(ty) => {
                Ok(Typed { node: Node::Negate(Box::new(operand.node), ty), ty: Some(ty) })
            }
            _ => Err(self.refused(whole)),
        }
    }

    fn binary(
        &self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        whole: &Expr,
    ) -> Result<Typed, SqlError> {
        let node = match op {
            BinaryOperator::And => Node::And(Box::new(self.boolean(left)?), Box::new(self.boolean(right)?)),
            BinaryOperator::Or => Node::Or(Box::new(self.boolean(left)?), Box::new(self.boolean(right)?)),
            BinaryOperator::Eq => self.compare(Comparison::Equal, left, right)?,
            BinaryOperator::NotEq => self.compare(Comparison::NotEqual, left, right)?,
            BinaryOperator::Lt => self.compare(Comparison::Less, left, right)?,
            BinaryOperator::LtEq => self.compare(Comparison::LessOrEqual, left, right)?,
            BinaryOperator::Gt => self.compare(Comparison::Greater, left, right)?,
            BinaryOperator::GtEq => self.compare(Comparison::GreaterOrEqual, left, right)?,
            BinaryOperator::Plus => return self.arithmetic(Arithmetic::Add, left, right, whole),
            BinaryOperator::Minus => return self.arithmetic(Arithmetic::Subtract, left, right, whole),
            BinaryOperator::Multiply => return self.arithmetic(Arithmetic::Multiply, left, right, whole),
            BinaryOperator::Divide => return self.arithmetic(Arithmetic::Divide, left, right, whole),
            BinaryOperator::Modulo => return self.arithmetic(Arithmetic::Modulo, left, right, whole),
            _ => return Err(self.refused(whole)),
        };
        Ok(Typed { node, ty: Some(SqlType::Bool) })
    }

    fn compare(&self, how: Comparison, left: &Expr, right: &Expr) -> Result<Node, SqlError> {
        let (a, b) = (self.compile(left)?, self.compile(right)?);
        let (a, b) = match (a.ty, b.ty) {
            (Some(ty), None) => (a.node, self.adapt(b, comparable(ty), right)?),
            (None, Some(ty)) => (self.adapt(a, comparable(ty), left)?, b.node),
            (None, None) => (a.node, b.node),
            (Some(x), Some(y)) => {
                let text = || {
                    let text = format!("operator does not exist: {x} {how} {y}");
                    self.error(SqlState::UNDEFINED_FUNCTION, text, left).with_hint("Cast one side.")
                };
                if class_of(x) != class_of(y) {
                    return Err(text());
                }
                (a.node, b.node)
            }
        };
        Ok(Node::Compare(how, Box::new(a), Box::new(b)))
    }

    fn arithmetic(
        &self,
        how: Arithmetic,
        left: &Expr,
        right: &Expr,
        whole: &Expr,
    ) -> Result<Typed, SqlError> {
        let (a, b) = (self.compile(left)?, self.compile(right)?);
        let (Some(x), Some(y)) = (a.ty, b.ty) else { return Err(self.refused(whole)) };
        if !is_number(x) || !is_number(y) {
            return Err(self.refused(whole));
        }
        let ty = arithmetic_type(x, y);
        // Quotients of decimals have digits without end, remainders of floats no use.
        match (how, ty) {
            (Arithmetic::Divide, SqlType::Decimal { .. })
            | (Arithmetic::Modulo, SqlType::Decimal { .. } | SqlType::Real | SqlType::Double) => {
                Err(self.refused(whole))
            }
            _ => {
                let node = Node::Arithmetic(how, Box::new(a.node), Box::new(b.node), ty);
                Ok(Typed { node, ty: Some(ty) })
            }
        }
    }

    fn function(&self, function: &Function, whole: &Expr) -> Result<Typed, SqlError> {
        let plain = function.filter.is_none() && function.over.is_none() && function.within_group.is_empty();
        let FunctionArguments::List(list) = &function.args else { return Err(self.refused(whole)) };
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = list.args.as_slice() else {
            return Err(self.refused(whole));
        };
        let name = function.name.to_string().to_lowercase();
        let text = |which, ty| {
            let operand = Box::new(self.text(argument)?);
            Ok(Typed { node: Node::Text(which, operand), ty: Some(ty) })
        };
        match name.as_str() {
            _ if !plain => Err(self.refused(whole)),
            "length" | "char_length" | "character_length" => text(TextFunction::Length, SqlType::Integer),
            "upper" => text(TextFunction::Upper, SqlType::Text),
            "lower" => text(TextFunction::Lower, SqlType::Text),
            "abs" => {
                let operand = self.compile(argument)?;
                match operand.ty {
                    Some(ty) if is_number(ty) => {
                        Ok(Typed { node: Node::Absolute(Box::new(operand.node), ty), ty: Some(ty) })
                    }
                    _ => Err(self.refused(whole)),
                }
            }
            _ => Err(self.refused(whole)),
        }
    }

    /// An operand that must be a text.
    fn text(&self, expr: &Expr) -> Result<Node, SqlError> {
        let typed = self.compile(expr)?;
        match typed.ty {
            Some(ty) if ty.is_string() => Ok(typed.node),
            None => Ok(typed.node),
            Some(ty) => {
                let text = format!("a text is wanted here, not type {ty}");
                Err(self.error(SqlState::DATATYPE_MISMATCH, text, expr))
            }
        }
    }

    /// A literal without a type, as `ty`.
    fn adapt(&self, typed: Typed, ty: SqlType, expr: &Expr) -> Result<Node, SqlError> {
        match typed.node {
            Node::Constant(Value::Text(text)) => {
                let value = Value::parse(&text, ty).map_err(|e| self.source.locate(e, expr.span()))?;
                Ok(Node::Constant(value))
            }
            node => Ok(node),
        }
    }
}

fn not_if(negated: bool, node: Node) -> Node {
    if negated { Node::Not(Box::new(node)) } else { node }
}

fn decimal_of(scale: u8) -> SqlType {
    SqlType::Decimal { precision: SqlType::MAX_DECIMAL_PRECISION, scale }
}

fn is_number(ty: SqlType) -> bool {
    ty.is_integer() || matches!(ty, SqlType::Decimal { .. } | SqlType::Real | SqlType::Double)
}

/// What a string compared with a value of type `ty` is read as: longer strings than the column
/// takes may be compared with it.
fn comparable(ty: SqlType) -> SqlType {
    match ty {
        SqlType::Varchar(_) => SqlType::Text,
        SqlType::Char(_) => SqlType::Char(u32::MAX),
        other => other,
    }
}

/// Types compare with each other within a class.
fn class_of(ty: SqlType) -> u8 {
    match ty {
        ty if is_number(ty) => 0,
        ty if ty.is_string() => 1,
        SqlType::Date | SqlType::Timestamp | SqlType::TimestampTz => 2,
        SqlType::Bool => 3,
        SqlType::Bytea => 4,
        SqlType::Time => 5,
        _ => 6,
    }
}

/// The type PostgreSQL computes in.
fn arithmetic_type(a: SqlType, b: SqlType) -> SqlType {
    let width = |ty: SqlType| match ty {
        SqlType::SmallInt => 0,
        SqlType::Integer => 1,
        SqlType::BigInt => 2,
        SqlType::Decimal { .. } => 3,
        SqlType::Real => 4,
        _ => 5,
    };
    match (a, b) {
        // REAL alone stays; with any other number it becomes DOUBLE PRECISION.
        (SqlType::Real, SqlType::Real) => SqlType::Real,
        (SqlType::Real | SqlType::Double, _) | (_, SqlType::Real | SqlType::Double) => SqlType::Double,
        _ if width(a) >= width(b) => a,
        _ => b,
    }
}
