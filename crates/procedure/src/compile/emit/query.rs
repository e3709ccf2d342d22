//! Queries.

use super::{Emitter, Operand};
use crate::compile::kind::Kind;
use crate::expr::ColumnRef;

impl Emitter<'_, '_> {
    /// The kind of a column of a row at hand.
    pub(super) fn column_kind(&self, _: ColumnRef) -> Kind {
        Kind::Boxed
    }

    /// A column of a row at hand.
    pub(super) fn column(&mut self, _: ColumnRef) -> Operand {
        self.null(Kind::Boxed)
    }
}
