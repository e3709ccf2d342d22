//! Conditions other than comparisons.
//!
//! Responsible for: IS, LIKE, BETWEEN, IN, ANY and ALL. Not responsible for: how patterns match
//! (`pattern`).

use albireo_base::{SqlError, SqlState, Value};
use albireo_sql::ast::{self, BinaryOperator};

use super::literal::constant;
use super::{Binder, Result, comparison, row_of};
use crate::datum::Datum;
use crate::expr::convert::{implicit_to, shown};
use crate::expr::function::{Beginning, MATCH, MATCH_FOLD, PAD, Rest, SIMILAR, beginning};
use crate::expr::operator::{Comparison, comparable, compare, missing, row_pairs};
use crate::expr::resolve::is_text;
use crate::expr::unify::{common, common_type, settle_rows, to_bool};
use crate::expr::{Connective, Expr, ExprKind, Subquery, SubqueryKind};
use crate::types::{Scalar, Type};

/// How many expressions a list may make out of the value before it.
const MAX_COPIES: usize = 100_000;

/// The escape character of a LIKE that names none.
const ESCAPE: &str = "\\";

impl Binder<'_> {
    pub(super) fn predicate(&mut self, expr: &ast::Expr) -> Result<Expr> {
        use ast::Expr as E;
        match expr {
            E::IsNull(inner) => Ok(Expr::condition(ExprKind::IsNull(Box::new(self.settled(inner)?)))),
            E::IsNotNull(inner) => Ok(Expr::condition(ExprKind::IsNotNull(Box::new(self.settled(inner)?)))),
            E::IsTrue(inner) => self.is(inner, Some(true), false),
            E::IsNotTrue(inner) => self.is(inner, Some(true), true),
            E::IsFalse(inner) => self.is(inner, Some(false), false),
            E::IsNotFalse(inner) => self.is(inner, Some(false), true),
            E::IsUnknown(inner) => self.is(inner, None, false),
            E::IsNotUnknown(inner) => self.is(inner, None, true),
            E::IsDistinctFrom(left, right) => self.distinct(left, right, false),
            E::IsNotDistinctFrom(left, right) => self.distinct(left, right, true),
            E::Between { expr, negated, low, high } => self.between(expr, low, high, *negated),
            E::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            E::InSubquery { expr, subquery, negated } => {
                let found = self.any_subquery(expr, Comparison::Eq, false, subquery)?;
                Ok(negate(found, *negated))
            }
            E::Like { negated, any: false, expr, pattern, escape_char } => {
                self.like(expr, pattern, escape_char.as_ref(), false, *negated)
            }
            E::ILike { negated, any: false, expr, pattern, escape_char } => {
                self.like(expr, pattern, escape_char.as_ref(), true, *negated)
            }
            E::AnyOp { left, compare_op, right, is_some: _ } => {
                self.quantified(left, compare_op, right, false)
            }
            E::AllOp { left, compare_op, right } => self.quantified(left, compare_op, right, true),
            other => self.special(other),
        }
    }

    /// Binds an expression; a literal in quotes is a text.
    pub(super) fn settled(&mut self, expr: &ast::Expr) -> Result<Expr> {
        Ok(settle_rows(self.expr(expr)?))
    }

    fn is(&mut self, inner: &ast::Expr, wanted: Option<bool>, negated: bool) -> Result<Expr> {
        let not = if negated { "NOT " } else { "" };
        let word = match wanted {
            Some(true) => format!("IS {not}TRUE"),
            Some(false) => format!("IS {not}FALSE"),
            None => format!("IS {not}UNKNOWN"),
        };
        let condition = to_bool(self.expr(inner)?, &word)?;
        Ok(negate(Expr::condition(ExprKind::Is(Box::new(condition), wanted)), negated))
    }

    fn distinct(&mut self, left: &ast::Expr, right: &ast::Expr, negated: bool) -> Result<Expr> {
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        let written = [&left, &right].into_iter().any(|row| matches!(row.kind, ExprKind::Row(_)));
        let pair = match (&left.ty, &right.ty) {
            (Type::Row(_), Type::Row(_)) if written => comparable_rows("=", left, right)?,
            _ => comparable("=", left, right)?,
        };
        Ok(negate(Expr::condition(ExprKind::IsDistinct(Box::new(pair))), negated))
    }

    fn between(
        &mut self,
        value: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
    ) -> Result<Expr> {
        let value = self.expr(value)?;
        let (low, high) = (self.expr(low)?, self.expr(high)?);
        Ok(negate(between_of(value, low, high)?, negated))
    }

    fn in_list(&mut self, value: &ast::Expr, list: &[ast::Expr], negated: bool) -> Result<Expr> {
        let value = self.expr(value)?;
        let list: Result<Vec<Expr>> = list.iter().map(|item| self.expr(item)).collect();
        let list = list?;
        let scalar = |expr: &Expr| match expr.ty {
            Type::Scalar(ty) => Some(ty),
            _ => None,
        };
        let types: Option<Vec<Scalar>> = std::iter::once(&value).chain(&list).map(scalar).collect();
        let condition = match types.and_then(|types| common(&types)) {
            Some(_) => {
                let mut all: Vec<Expr> = std::iter::once(value).chain(list).collect();
                common_type(&mut all, "IN")?;
                let value = all.remove(0);
                ExprKind::In(Box::new(value), all)
            }
            None => {
                if value.size().saturating_mul(list.len()) > MAX_COPIES {
                    return Err(SqlError::new(
                        SqlState::STATEMENT_TOO_COMPLEX,
                        "the list of IN is too complex",
                    ));
                }
                let terms: Result<Vec<Expr>> =
                    list.into_iter().map(|item| compare(Comparison::Eq, value.clone(), item)).collect();
                ExprKind::Logic(Connective::Or, terms?)
            }
        };
        Ok(negate(Expr::condition(condition), negated))
    }

    fn like(
        &mut self,
        value: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::ValueWithSpan>,
        fold: bool,
        negated: bool,
    ) -> Result<Expr> {
        let value = self.expr(value)?;
        let pattern = self.expr(pattern)?;
        let plain = escape.is_none() && is_prefix(&pattern);
        let value = if plain { value } else { self.with_blanks(value)? };
        let escape = match escape {
            Some(literal) => Some(self.value(literal)?),
            None => None,
        };
        Ok(negate(like_of(value, pattern, escape, fold)?, negated))
    }

    /// `~~` and its kin, which the words LIKE and ILIKE stand for.
    pub(super) fn pattern_operator(
        &mut self,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
    ) -> Result<Expr> {
        let (fold, negated) = match op {
            BinaryOperator::PGLikeMatch => (false, false),
            BinaryOperator::PGNotLikeMatch => (false, true),
            BinaryOperator::PGILikeMatch => (true, false),
            BinaryOperator::PGNotILikeMatch => (true, true),
            BinaryOperator::AtArrow => return self.array_sets(left, "@>", right),
            BinaryOperator::ArrowAt => return self.array_sets(left, "<@", right),
            BinaryOperator::PGOverlap => return self.array_sets(left, "&&", right),
            BinaryOperator::PGRegexMatch => return self.regex(left, "~", right),
            BinaryOperator::PGRegexIMatch => return self.regex(left, "~*", right),
            BinaryOperator::PGRegexNotMatch => return self.regex(left, "!~", right),
            BinaryOperator::PGRegexNotIMatch => return self.regex(left, "!~*", right),
            other => return Err(SqlError::unsupported(format!("operator {other}"))),
        };
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        let left = if is_prefix(&right) { left } else { self.with_blanks(left)? };
        Ok(negate(like_of(left, right, None, fold)?, negated))
    }

    /// What a pattern is compared with. It sees the blanks at the end of a CHAR(n), which are not stored.
    fn matched(&mut self, value: &ast::Expr) -> Result<Expr> {
        let value = self.expr(value)?;
        self.with_blanks(value)
    }

    fn with_blanks(&mut self, value: Expr) -> Result<Expr> {
        let length = match &value.kind {
            ExprKind::Column(column) => self.names.length(*column),
            _ => None,
        };
        let Some(length) = length.and_then(|length| i32::try_from(length).ok()) else { return Ok(value) };
        let length = constant(Value::Integer(length), Scalar::Integer);
        Ok(Expr::scalar(ExprKind::Function(&PAD, vec![shown(value)?, length]), Scalar::Text))
    }

    fn array_sets(&mut self, left: &ast::Expr, symbol: &str, right: &ast::Expr) -> Result<Expr> {
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        crate::expr::function::array_sets(symbol, left, right)
    }

    /// `~` and its kin.
    fn regex(&mut self, left: &ast::Expr, symbol: &str, right: &ast::Expr) -> Result<Expr> {
        let (left, right) = (self.matched(left)?, self.expr(right)?);
        if !may_be_text(&left.ty) || !may_be_text(&right.ty) {
            return Err(missing(symbol, &left.ty, &right.ty));
        }
        let builtin = if symbol.ends_with('*') { &MATCH_FOLD } else { &MATCH };
        let found = Expr::condition(ExprKind::Function(builtin, vec![shown(left)?, shown(right)?]));
        Ok(negate(found, symbol.starts_with('!')))
    }

    /// `x SIMILAR TO pattern ESCAPE escape`
    pub(super) fn similar(
        &mut self,
        value: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::ValueWithSpan>,
        negated: bool,
    ) -> Result<Expr> {
        let (value, pattern) = (self.matched(value)?, self.expr(pattern)?);
        if !may_be_text(&value.ty) || !may_be_text(&pattern.ty) {
            return Err(missing("~", &value.ty, &pattern.ty));
        }
        let escape = match escape {
            Some(literal) => self.value(literal)?,
            None => constant(Value::Text(ESCAPE.to_owned()), Scalar::Text),
        };
        let args = vec![shown(value)?, shown(pattern)?, shown(escape)?];
        Ok(negate(Expr::condition(ExprKind::Function(&SIMILAR, args)), negated))
    }

    /// `x = ANY (array)`, `x = ALL (SELECT ...)`
    fn quantified(
        &mut self,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
        all: bool,
    ) -> Result<Expr> {
        let Some(op) = comparison(op) else {
            return Err(SqlError::unsupported(format!("operator {op} with ANY or ALL")));
        };
        let mut inner = right;
        while let ast::Expr::Nested(next) = inner {
            inner = next;
        }
        if let ast::Expr::Subquery(query) = inner {
            return self.any_subquery(left, op, all, query);
        }
        let (left, array) = (self.expr(left)?, self.expr(right)?);
        any_array(left, op, array, all)
    }

    fn any_subquery(
        &mut self,
        left: &ast::Expr,
        op: Comparison,
        all: bool,
        query: &ast::Query,
    ) -> Result<Expr> {
        let left = self.expr(left)?;
        let plan = self.names.query(query)?;
        let operands = match left.kind {
            ExprKind::Row(items) => items,
            _ => vec![left],
        };
        if operands.len() != plan.columns.len() {
            let few = if plan.columns.len() < operands.len() { "few" } else { "many" };
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("subquery has too {few} columns")));
        }
        let mut converted = Vec::with_capacity(operands.len());
        let mut conversions = Vec::with_capacity(operands.len());
        for (operand, (_, ty)) in operands.into_iter().zip(&plan.columns) {
            // It stands for the column.
            let column = Expr { ty: ty.clone(), ..Expr::null() };
            let (operand, column) = comparable(op.symbol(), operand, column)?;
            converted.push(operand);
            conversions.push(match (&column.ty, ty) {
                (Type::Scalar(to), Type::Scalar(from)) if !from.same(*to) => Some(*to),
                _ => None,
            });
        }
        let kind = SubqueryKind::Any { op, all, operands: converted, conversions };
        let subquery = Subquery { kind, plan };
        Ok(Expr::condition(ExprKind::Subquery(std::sync::Arc::new(subquery))))
    }
}

/// `value BETWEEN low AND high`; the value is there once, however deep these are nested.
fn between_of(value: Expr, low: Expr, high: Expr) -> Result<Expr> {
    let Type::Scalar(ty) = value.ty else {
        return Err(SqlError::unsupported(format!("BETWEEN for a value of type {}", value.ty))
            .with_hint("Write two comparisons."));
    };
    if ty == Scalar::Unknown {
        let above = compare(Comparison::Ge, value.clone(), low)?;
        let below = compare(Comparison::Le, value, high)?;
        return Ok(Expr::condition(ExprKind::Logic(Connective::And, vec![above, below])));
    }
    let stand_in = || Expr::scalar(ExprKind::Constant(crate::datum::Datum::NULL), ty);
    let (above, low) = comparable(">=", stand_in(), low)?;
    let (below, high) = comparable("<=", stand_in(), high)?;
    let conversion = |expr: Expr| match expr.ty {
        Type::Scalar(to) if !to.same(ty) => Some(to),
        _ => None,
    };
    let conversions = [conversion(above), conversion(below)];
    Ok(Expr::condition(ExprKind::Between { parts: Box::new([value, low, high]), conversions }))
}

/// A comparison with the elements of an array.
fn any_array(left: Expr, op: Comparison, array: Expr, all: bool) -> Result<Expr> {
    let array = match (&array.ty, &left.ty) {
        (Type::Scalar(Scalar::Unknown), Type::Scalar(element)) => {
            let element = if *element == Scalar::Unknown { Scalar::Text } else { *element };
            crate::expr::convert::implicit_to_type(array, &Type::Array(element))?
        }
        _ => array,
    };
    let Type::Array(element) = array.ty else {
        let message = "op ANY/ALL (array) requires array on right side";
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
    };
    let Type::Scalar(operand) = left.ty else { return Err(missing(op.symbol(), &left.ty, &array.ty)) };
    let column = Expr::scalar(ExprKind::Constant(crate::datum::Datum::NULL), element);
    let works = match comparable(op.symbol(), left.clone(), column)?.1.ty {
        Type::Scalar(works) => works,
        _ => operand,
    };
    let left = implicit_to(left, works)?;
    let array = crate::expr::convert::implicit_to_type(array, &Type::Array(works))?;
    Ok(Expr::condition(ExprKind::AnyOf { op, all, pair: Box::new((left, array)) }))
}

fn may_be_text(ty: &Type) -> bool {
    matches!(ty, Type::Scalar(ty) if is_text(*ty) || *ty == Scalar::Unknown)
}

/// Whether a pattern asks for a beginning that no blanks at the end of a value can be a part of.
fn is_prefix(pattern: &Expr) -> bool {
    let ExprKind::Constant(Datum::Value(Value::Text(text))) = &pattern.kind else { return false };
    let Beginning { text, rest } = beginning(text, ESCAPE);
    rest == Rest::Anything && !text.ends_with(' ')
}

/// LIKE; without an escape character it is the backslash.
fn like_of(value: Expr, pattern: Expr, escape: Option<Expr>, fold: bool) -> Result<Expr> {
    if !may_be_text(&value.ty) || !may_be_text(&pattern.ty) {
        return Err(missing(if fold { "~~*" } else { "~~" }, &value.ty, &pattern.ty));
    }
    let escape = escape.unwrap_or_else(|| constant(Value::Text(ESCAPE.to_owned()), Scalar::Text));
    let args = vec![shown(value)?, shown(pattern)?, shown(escape)?];
    let builtin = if fold { &crate::expr::function::ILIKE } else { &crate::expr::function::LIKE };
    Ok(Expr::condition(ExprKind::Function(builtin, args)))
}

fn comparable_rows(symbol: &str, left: Expr, right: Expr) -> Result<(Expr, Expr)> {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for (left, right) in row_pairs(left, right)? {
        let (left, right) = comparable(symbol, left, right)?;
        a.push(left);
        b.push(right);
    }
    Ok((row_of(a), row_of(b)))
}

/// NOT of a condition, if asked for.
pub(super) fn negate(condition: Expr, negated: bool) -> Expr {
    match negated {
        true => Expr::condition(ExprKind::Not(Box::new(condition))),
        false => condition,
    }
}
