//! Equality of bound expressions.
//!
//! Responsible for: the parts that cannot derive it, a digest by which equal ones are found quickly. Two
//! expressions are equal if they compute the same in the same way; their places in the text do not count.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;

use super::{Builtin, Expr, ExprKind, General};
use crate::datum::Datum;

impl PartialEq for Builtin {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.takes == other.takes && self.gives == other.gives
    }
}

impl PartialEq for General {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The same number for equal expressions.
pub(crate) fn digest<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for expr in exprs {
        expr.walk(&mut |part| {
            discriminant(&part.kind).hash(&mut hasher);
            match &part.kind {
                ExprKind::Column(column) => column.hash(&mut hasher),
                ExprKind::Variable(variable) => variable.hash(&mut hasher),
                ExprKind::Field(_, field) => field.hash(&mut hasher),
                ExprKind::Function(builtin, _) => builtin.name.hash(&mut hasher),
                ExprKind::Constant(Datum::Value(value)) => value.to_string().hash(&mut hasher),
                _ => {}
            }
        });
    }
    hasher.finish()
}
