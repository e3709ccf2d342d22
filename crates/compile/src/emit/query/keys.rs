//! What indexes are asked for: bounds, and when they are keys of whole numbers or texts.

use albireo_base::{SqlType, Value as SqlValue};
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{Conversion, Expr, ExprKind};
use albireo_semantics::query::tree::{Bound, IndexUse};
use albireo_semantics::types::{Scalar, Type};
use albireo_sql::{IndexKind, TableDef};

use crate::kind::Kind;
use crate::runtime::keys::Part;
use crate::runtime::rows::At;

/// An expression without what makes a whole number wider.
pub(super) fn plain(expr: &Expr) -> Option<&ExprKind> {
    match &expr.kind {
        ExprKind::Convert(inner, Conversion::Scalar(Scalar::Integer | Scalar::BigInt)) => match inner.ty {
            Type::Scalar(Scalar::SmallInt | Scalar::Integer) => plain(inner),
            _ => None,
        },
        kind => Some(kind),
    }
}

/// Whether two keys are the same variable.
pub(super) fn same_key(a: &Expr, b: &Expr) -> bool {
    match (&a.kind, &b.kind) {
        (ExprKind::Variable(a), ExprKind::Variable(b)) => a == b,
        (ExprKind::Convert(a, _), ExprKind::Convert(b, _)) => a.ty == b.ty && same_key(a, b),
        _ => false,
    }
}

/// The number that a constant is.
pub(in crate::emit) fn whole(expr: &Expr) -> Option<i64> {
    match &expr.kind {
        ExprKind::Constant(Datum::Value(SqlValue::SmallInt(n))) => Some(i64::from(*n)),
        ExprKind::Constant(Datum::Value(SqlValue::Integer(n))) => Some(i64::from(*n)),
        ExprKind::Constant(Datum::Value(SqlValue::BigInt(n))) => Some(*n),
        _ => None,
    }
}

/// The types of the columns of an index whose values are known.
pub(super) fn types_of(index: &IndexUse) -> Vec<SqlType> {
    index.equal.iter().map(|bound| bound.ty).collect()
}

/// The values that an index is asked for, in the order in which the runtime wants them.
pub(super) fn bounds(index: &IndexUse) -> impl Iterator<Item = &Expr> {
    let range = index.range.iter();
    let ends = range.clone().flat_map(|range| [&range.low, &range.high]).flatten().map(|(expr, _)| expr);
    let begins = range.filter_map(|range| range.begins.as_ref());
    index.equal.iter().map(|bound| &bound.value).chain(ends).chain(begins)
}

/// In which partition the rows of a bound are.
pub(super) fn site_of(bound: &Bound, at: usize, kind: Kind) -> At {
    let whole = integer_width(bound.ty).is_some();
    match kind {
        Kind::Int(Scalar::SmallInt | Scalar::Integer | Scalar::BigInt) if whole => At::Key(at),
        _ => At::Bound(at, bound),
    }
}

pub(super) fn is_unique(table: &TableDef, index: &str) -> bool {
    table.indexes.iter().any(|known| known.name == index && known.unique)
}

pub(super) fn is_ordered(index: &IndexUse) -> bool {
    index.kind == IndexKind::Ordered
}

/// Bits of a whole number in a register that are not its sign again.
pub(super) fn integer_bits(kind: Kind) -> i64 {
    match kind {
        Kind::Int(Scalar::SmallInt) => 16,
        Kind::Int(Scalar::Integer) => 32,
        _ => 64,
    }
}

/// Bytes of a whole number of a column.
pub(super) fn integer_width(ty: SqlType) -> Option<i64> {
    match ty {
        SqlType::SmallInt => Some(2),
        SqlType::Integer => Some(4),
        SqlType::BigInt => Some(8),
        _ => None,
    }
}

/// The widths of the columns that an index is asked for, if all are whole numbers that are never NULL.
pub(super) fn integers(index: &IndexUse, kinds: &[Kind]) -> Option<Box<[u8]>> {
    let whole = |kind: &Kind| matches!(kind, Kind::Int(Scalar::SmallInt | Scalar::Integer | Scalar::BigInt));
    let ends = index.range.iter().flat_map(|range| [&range.low, &range.high]).flatten().count();
    if !kinds.iter().take(index.equal.len() + ends).all(whole) {
        return None;
    }
    let columns = index.equal.iter().map(|bound| (bound.ty, bound.nullable));
    let columns = columns.chain(index.range.iter().map(|range| (range.ty, range.nullable)));
    let widths =
        columns.map(|(ty, nullable)| integer_width(ty).filter(|_| !nullable).map(|width| width as u8));
    let widths: Box<[u8]> = widths.collect::<Option<_>>()?;
    let bytes: usize = widths.iter().map(|width| usize::from(*width)).sum();
    (bytes <= 16 && !widths.is_empty()).then_some(widths)
}

/// What the key of a search is made of, if its last column is a text and those before are whole numbers,
/// none of which can be NULL.
pub(super) fn text_key(index: &IndexUse, kinds: &[Kind]) -> Option<Box<[Part]>> {
    let (last, before) = index.equal.split_last()?;
    let plain = !index.whole && index.range.is_none() && index.equal.iter().all(|bound| !bound.nullable);
    let text = kinds.get(before.len()) == Some(&Kind::Text)
        && last.value.ty == Type::Scalar(Scalar::Text)
        && matches!(last.ty, SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_));
    let mut parts = Vec::with_capacity(kinds.len());
    for (bound, kind) in before.iter().zip(kinds) {
        let whole = matches!(kind, Kind::Int(Scalar::SmallInt | Scalar::Integer | Scalar::BigInt));
        parts.push(Part::Whole(integer_width(bound.ty).filter(|_| whole)? as u8));
    }
    // The index compares all whole numbers, so that only the text may need a test.
    let compared = before.iter().filter_map(|bound| integer_width(bound.ty)).sum::<i64>() <= 16;
    parts.push(Part::Text(last.column));
    (plain && text && compared).then(|| parts.into())
}
