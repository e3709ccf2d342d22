//! Expressions from syntax trees.
//!
//! Responsible for: what each form of expression means, positions of errors. Not responsible for: the
//! meaning of names ([`Names`]), operators (`operator`), functions (`function`).

mod literal;
mod predicate;
mod special;

pub(super) use self::literal::constant;

use albireo_base::{SqlError, SqlState, Value, budget};
use albireo_sql::ast::{self, BinaryOperator, Spanned, UnaryOperator};

use super::operator::{self, Comparison};
use super::unify::{common_type, to_bool};
use super::{CastKind, Connective, Expr, ExprKind, Names, cast_to, declared};
use crate::types::{RowType, Scalar, Type};

/// Binds expressions by the names around them.
pub(super) struct Binder<'n> {
    pub(super) names: &'n mut dyn Names,
}

type Result<T> = std::result::Result<T, SqlError>;

/// The memory of a node: it, its boxes and vectors, and copies on the way.
const NODE_BYTES: usize = 4 * size_of::<Expr>();

impl Binder<'_> {
    /// Binds an expression; a literal in quotes stays of unknown type.
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Result<Expr> {
        budget::take(NODE_BYTES)?;
        self.form(expr).map_err(|error| self.locate(error, expr))
    }

    /// Says where an error is that does not know.
    pub(super) fn locate(&self, error: SqlError, expr: &ast::Expr) -> SqlError {
        match error.position() {
            Some(_) => error,
            // No expression is at fault if the statement is ended, or too large.
            None if [SqlState::QUERY_CANCELED, SqlState::OUT_OF_MEMORY].contains(&error.state()) => error,
            None => self.names.source().locate(error, expr.span()),
        }
    }

    fn form(&mut self, expr: &ast::Expr) -> Result<Expr> {
        use ast::Expr as E;
        match expr {
            E::Identifier(ident) => self.names.name(std::slice::from_ref(ident)),
            E::CompoundIdentifier(parts) => self.names.name(parts),
            E::Nested(inner) => self.expr(inner),
            E::Value(value) => self.value(value),
            E::TypedString(typed) => self.typed_string(typed),
            E::Interval(interval) => self.interval(interval),
            E::BinaryOp { left, op, right } => self.binary(expr, left, op, right),
            E::UnaryOp { op, expr } => self.unary(op, expr),
            E::Cast { kind: _, expr, data_type, array: false, format: None } => self.cast(expr, data_type),
            E::Tuple(items) => self.row(items),
            _ => self.predicate(expr),
        }
    }

    fn cast(&mut self, expr: &ast::Expr, to: &ast::DataType) -> Result<Expr> {
        if let Some((plain, digits)) = precision(to) {
            let bound = self.cast(expr, &plain)?;
            return crate::expr::function::with_precision(bound, digits);
        }
        let (ty, modifier) = declared(to)?;
        let bound = match (expr, &ty) {
            (ast::Expr::Array(array), Type::Array(_)) if array.elem.is_empty() => {
                Expr { kind: ExprKind::Array(Vec::new()), ty: ty.clone() }
            }
            // It may have more digits than a NUMERIC.
            (_, Type::Scalar(Scalar::Real | Scalar::Double)) => {
                match (self.expr(expr), literal::written_number(expr)) {
                    (Ok(bound), _) => bound,
                    (Err(_), Some(digits)) => constant(Value::Text(digits), Scalar::Unknown),
                    (Err(error), None) => return Err(error),
                }
            }
            _ => self.expr(expr)?,
        };
        cast_to(bound, &ty, modifier, CastKind::Explicit)
    }

    /// `(a, b)` or `ROW(a, b)`.
    pub(super) fn row(&mut self, items: &[ast::Expr]) -> Result<Expr> {
        let items: Result<Vec<Expr>> = items.iter().map(|item| self.expr(item)).collect();
        Ok(row_of(items?))
    }

    fn unary(&mut self, op: &UnaryOperator, operand: &ast::Expr) -> Result<Expr> {
        if *op == UnaryOperator::Minus
            && let Some(number) = literal::negative(operand)?
        {
            return Ok(number);
        }
        if *op == UnaryOperator::Minus
            && let ast::Expr::BinaryOp { left, op: power, right } = operand
            && symbol(power) == Some("^")
        {
            // A sign binds tighter than a power.
            let base = self.unary(op, left)?;
            let exponent = self.expr(right)?;
            return operator::binary("^", base, exponent);
        }
        let bound = self.expr(operand)?;
        let symbol = match op {
            UnaryOperator::Not => {
                return Ok(Expr::condition(ExprKind::Not(Box::new(to_bool(bound, "NOT")?))));
            }
            UnaryOperator::Plus => "+",
            UnaryOperator::Minus => "-",
            UnaryOperator::BitwiseNot => "~",
            other => return Err(SqlError::unsupported(format!("operator {other}"))),
        };
        operator::unary(symbol, bound)
    }

    fn binary(
        &mut self,
        whole: &ast::Expr,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
    ) -> Result<Expr> {
        match op {
            BinaryOperator::And => return self.logic(whole, Connective::And),
            BinaryOperator::Or => return self.logic(whole, Connective::Or),
            BinaryOperator::PGStartsWith => {
                let args = vec![self.expr(left)?, self.expr(right)?];
                return self.call_bound("starts_with", args);
            }
            _ => {}
        }
        if let Some(comparison) = comparison(op) {
            let bound = self.expr(left)?;
            if let (ExprKind::Row(items), Some(query)) = (&bound.kind, special::subquery(right))
                && is_written_row(left)
            {
                let right = self.row_subquery(items.len(), query)?;
                return operator::compare(comparison, bound, right);
            }
            let right = self.expr(right)?;
            return operator::compare(comparison, bound, right);
        }
        let Some(symbol) = symbol(op) else { return self.pattern_operator(left, op, right) };
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        operator::binary(symbol, left, right)
    }

    /// Conditions with AND or OR between them: thousands of them, perhaps, so no recursion.
    fn logic(&mut self, whole: &ast::Expr, connective: Connective) -> Result<Expr> {
        let (word, wanted) = match connective {
            Connective::And => ("AND", BinaryOperator::And),
            Connective::Or => ("OR", BinaryOperator::Or),
        };
        let mut terms = Vec::new();
        let mut left = whole;
        while let ast::Expr::BinaryOp { left: next, op, right } = left {
            if *op != wanted {
                break;
            }
            terms.push(right.as_ref());
            left = next;
        }
        terms.push(left);
        let mut bound = Vec::with_capacity(terms.len());
        for term in terms.into_iter().rev() {
            let condition = self.expr(term)?;
            bound.push(to_bool(condition, word).map_err(|error| self.locate(error, term))?);
        }
        Ok(Expr::condition(ExprKind::Logic(connective, bound)))
    }

    /// Binds expressions and gives them one type.
    pub(super) fn unified(&mut self, exprs: &[ast::Expr], what: &str) -> Result<(Vec<Expr>, Type)> {
        let bound: Result<Vec<Expr>> = exprs.iter().map(|expr| self.expr(expr)).collect();
        let mut bound = bound?;
        let ty = common_type(&mut bound, what)?;
        Ok((bound, ty))
    }
}

/// A type whose seconds have a precision: the type without it, and how many digits.
fn precision(ty: &ast::DataType) -> Option<(ast::DataType, u64)> {
    use ast::DataType as T;
    Some(match ty {
        T::Timestamp(Some(digits), zone) => (T::Timestamp(None, *zone), *digits),
        T::Time(Some(digits), zone) => (T::Time(None, *zone), *digits),
        T::Interval { fields: None, precision: Some(digits) } => {
            (T::Interval { fields: None, precision: None }, *digits)
        }
        _ => return None,
    })
}

/// A row of values. Literals stay unknown: what the row is compared with says their type.
pub(super) fn row_of(items: Vec<Expr>) -> Expr {
    let scalar = |ty: &Type| match ty {
        Type::Scalar(ty) => *ty,
        _ => Scalar::Text,
    };
    let fields = items.iter().enumerate().map(|(n, item)| (format!("f{}", n + 1), scalar(&item.ty)));
    let ty = Type::Row(std::sync::Arc::new(RowType { fields: fields.collect() }));
    Expr { kind: ExprKind::Row(items), ty }
}

fn is_written_row(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Tuple(_) => true,
        ast::Expr::Function(function) => function.name.to_string().eq_ignore_ascii_case("row"),
        _ => false,
    }
}

/// The comparison an operator is.
pub(super) fn comparison(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Eq,
        BinaryOperator::NotEq => Comparison::Ne,
        BinaryOperator::Lt => Comparison::Lt,
        BinaryOperator::LtEq => Comparison::Le,
        BinaryOperator::Gt => Comparison::Gt,
        BinaryOperator::GtEq => Comparison::Ge,
        _ => return None,
    })
}

fn symbol(op: &BinaryOperator) -> Option<&'static str> {
    Some(match op {
        BinaryOperator::Plus => "+",
        BinaryOperator::Minus => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::PGExp | BinaryOperator::BitwiseXor => "^",
        BinaryOperator::StringConcat => "||",
        BinaryOperator::BitwiseAnd => "&",
        BinaryOperator::BitwiseOr => "|",
        BinaryOperator::PGBitwiseXor => "#",
        BinaryOperator::PGBitwiseShiftLeft => "<<",
        BinaryOperator::PGBitwiseShiftRight => ">>",
        _ => return None,
    })
}

/// A misuse of something at hand.
pub(super) fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}
