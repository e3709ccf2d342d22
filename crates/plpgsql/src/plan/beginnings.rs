//! Conditions on how the texts of columns begin, which ordered indexes answer as they answer ranges.
//!
//! Responsible for: which conditions these are, what becomes of the range of an index. Not responsible for: what LIKE and
//! `starts_with` say ([`begins`]), which index is chosen (`access`), where such texts lie in an index (`execute`).
//!
//! LIKE with a pattern that is not known yet, a parameter's, may turn out to say nothing. It makes an index that is read
//! anyway read less, and is no reason to read one.

use albireo_base::{ColumnId, SqlType};
use albireo_sql::TableDef;

use super::tree::{Condition, RangeUse};
use crate::expr::{Begins, ColumnRef, Expr, ExprKind, Says, begins};

/// A condition on how the texts of a column begin.
pub(super) struct Beginning {
    /// The condition, by its number.
    pub(super) at: usize,
    pub(super) column: u16,
    /// With what they begin.
    pub(super) text: Expr,
    pub(super) says: Says,
}

/// What conditions say of how the texts of a table begin.
pub(super) fn beginnings(table: &TableDef, relation: u16, conditions: &[Condition]) -> Vec<Beginning> {
    let one = |(at, condition): (usize, &Condition)| {
        let Begins { text, with, says } = begins(&condition.expr)?;
        let ExprKind::Column(ColumnRef { depth: 0, relation: of, column }) = text.kind else { return None };
        if of != relation || !refers_once(condition, relation) || !is_known(&with) {
            return None;
        }
        // A CHAR is compared without the blanks at its end, which patterns see.
        let is_text = matches!(table.column_def(ColumnId(column)).ty, SqlType::Text | SqlType::Varchar(_));
        // What fails for a row before it is matched is to fail on this path too.
        let comes_first = || !conditions[..at].iter().any(|before| before.expr.may_fail());
        let serves = is_text && (says != Says::Perhaps || comes_first());
        serves.then_some(Beginning { at, column, text: with, says })
    };
    conditions.iter().enumerate().filter_map(one).collect()
}

/// Whether a condition is about this relation alone, and names it once.
fn refers_once(condition: &Condition, relation: u16) -> bool {
    let uses = condition.uses.iter().enumerate();
    condition.uses.get(usize::from(relation)) == Some(&1)
        && uses.filter(|(_, count)| **count > 0).count() == 1
}

/// Whether a text is known before rows are read, without an error.
fn is_known(with: &Expr) -> bool {
    let mut known = !with.may_fail();
    with.walk(&mut |part| known &= !matches!(part.kind, ExprKind::Subquery(_)));
    known
}

/// Of how the texts of a column begin, what is known best.
pub(super) fn best(beginnings: &[Beginning], column: ColumnId) -> Option<&Beginning> {
    let of_column = beginnings.iter().filter(|beginning| beginning.column == column.0);
    of_column.min_by_key(|beginning| beginning.says)
}

impl Beginning {
    /// Whether it says for certain how texts begin.
    pub(super) fn is_certain(&self) -> bool {
        self.says != Says::Perhaps
    }

    /// Leaves no more of a range than begins so; the condition is `used` if it says no more.
    pub(super) fn narrow(&self, range: &mut RangeUse, used: &mut Vec<usize>) {
        range.begins = Some(self.text.clone());
        if self.says == Says::NoMore {
            used.push(self.at);
        }
    }
}
