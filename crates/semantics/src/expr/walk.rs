//! The parts of an expression.

use std::sync::Arc;

use super::{Expr, ExprKind, SubqueryKind};

impl Expr {
    /// Calls `visit` for this expression and all within it, but not for those within its queries.
    pub fn walk(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        self.each_part(&mut |part| part.walk(visit));
    }

    /// How many expressions this one consists of.
    pub(super) fn size(&self) -> usize {
        let mut size = 0;
        self.walk(&mut |_| size += 1);
        size
    }

    /// Calls `visit` for what the expression is made of, in the order it is evaluated.
    pub fn each_part(&self, visit: &mut dyn FnMut(&Expr)) {
        match &self.kind {
            ExprKind::Constant(_) | ExprKind::Variable(_) | ExprKind::Column(_) | ExprKind::Now => {}
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
            ExprKind::Between { parts, .. } => parts.iter().for_each(visit),
            ExprKind::Array(items)
            | ExprKind::Row(items)
            | ExprKind::Call(_, items)
            | ExprKind::Logic(_, items)
            | ExprKind::Coalesce(items)
            | ExprKind::Extreme(_, items)
            | ExprKind::Function(_, items)
            | ExprKind::General(_, items) => items.iter().for_each(visit),
            ExprKind::CompareRows(_, pairs) => pairs.iter().for_each(|(a, b)| {
                visit(a);
                visit(b);
            }),
            ExprKind::Case(branches, otherwise) => {
                branches.iter().flat_map(|(a, b)| [a, b]).chain([otherwise.as_ref()]).for_each(visit);
            }
            ExprKind::CaseOf(operand, branches, otherwise) => {
                let branches = branches.iter().flat_map(|(a, b)| [a, b]);
                std::iter::once(operand.as_ref()).chain(branches).chain([otherwise.as_ref()]).for_each(visit);
            }
            ExprKind::In(value, list) => std::iter::once(value.as_ref()).chain(list).for_each(visit),
            ExprKind::Subquery(subquery) => match &subquery.kind {
                SubqueryKind::Any { operands, .. } => operands.iter().for_each(visit),
                SubqueryKind::Scalar | SubqueryKind::Exists | SubqueryKind::Array => {}
            },
        }
    }

    /// Calls `edit` for what the expression is made of, in the order it is evaluated; operands of a query are
    /// those of one that nobody else shares.
    pub fn each_part_mut(&mut self, edit: &mut dyn FnMut(&mut Expr)) {
        match &mut self.kind {
            ExprKind::Constant(_) | ExprKind::Variable(_) | ExprKind::Column(_) | ExprKind::Now => {}
            ExprKind::Field(inner, _)
            | ExprKind::Cast(inner, _, _)
            | ExprKind::Convert(inner, _)
            | ExprKind::Unary(_, inner)
            | ExprKind::Not(inner)
            | ExprKind::IsNull(inner)
            | ExprKind::IsNotNull(inner)
            | ExprKind::Is(inner, _) => edit(inner),
            ExprKind::Element(a, b) => [a, b].into_iter().for_each(|part| edit(part)),
            ExprKind::Binary(_, pair)
            | ExprKind::Compare(_, pair)
            | ExprKind::IsDistinct(pair)
            | ExprKind::NullIf(pair, _)
            | ExprKind::AnyOf { pair, .. } => {
                let (a, b) = &mut **pair;
                edit(a);
                edit(b);
            }
            ExprKind::Between { parts, .. } => parts.iter_mut().for_each(edit),
            ExprKind::Array(items)
            | ExprKind::Row(items)
            | ExprKind::Call(_, items)
            | ExprKind::Logic(_, items)
            | ExprKind::Coalesce(items)
            | ExprKind::Extreme(_, items)
            | ExprKind::Function(_, items)
            | ExprKind::General(_, items) => items.iter_mut().for_each(edit),
            ExprKind::CompareRows(_, pairs) => pairs.iter_mut().for_each(|(a, b)| {
                edit(a);
                edit(b);
            }),
            ExprKind::Case(branches, otherwise) => {
                branches.iter_mut().flat_map(|(a, b)| [a, b]).chain([otherwise.as_mut()]).for_each(edit);
            }
            ExprKind::CaseOf(operand, branches, otherwise) => {
                let branches = branches.iter_mut().flat_map(|(a, b)| [a, b]);
                std::iter::once(operand.as_mut()).chain(branches).chain([otherwise.as_mut()]).for_each(edit);
            }
            ExprKind::In(value, list) => std::iter::once(value.as_mut()).chain(list).for_each(edit),
            ExprKind::Subquery(subquery) => match &mut Arc::make_mut(subquery).kind {
                SubqueryKind::Any { operands, .. } => operands.iter_mut().for_each(edit),
                SubqueryKind::Scalar | SubqueryKind::Exists | SubqueryKind::Array => {}
            },
        }
    }
}
