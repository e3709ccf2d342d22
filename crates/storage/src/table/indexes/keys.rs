//! Keys of rows: built, or compared where the values lie.

use std::borrow::Cow;
use std::cmp::Ordering;

use albireo_base::{ColumnId, SqlType, Tid, Value};

use super::IndexSpec;
use crate::index::StoredKeys;
use crate::key::{KeyBuilder, KeyRef, PREFIX_BYTES, ShortKey};
use crate::layout::{ColumnLocation, ColumnSpec, Layout, Physical};
use crate::rows::Rows;

/// The columns of an index's keys.
pub(in crate::table) struct KeyColumns {
    list: Vec<KeyColumn>,
    integers: Option<IntegerKey>,
}

#[derive(Clone, Copy)]
struct KeyColumn {
    at: ColumnLocation,
    bytea: bool,
}

/// The columns of a short key are all integers without NULL, at most 16 bytes together: the usual
/// case, for which a key is a few loads and shifts.
#[derive(Clone, Copy)]
struct IntegerKey {
    /// Bits of the key.
    bits: u32,
}

impl IntegerKey {
    fn of(columns: &[KeyColumn]) -> Option<Self> {
        let mut bits = 0;
        for KeyColumn { at, .. } in columns {
            bits += match at.physical {
                Physical::I16 | Physical::I32 | Physical::I64 if !at.nullable() => 8 * u32::from(at.width),
                _ => return None,
            };
        }
        (1..=128).contains(&bits).then_some(Self { bits })
    }
}

impl KeyColumns {
    pub(super) fn new(spec: &IndexSpec, columns: &[ColumnSpec], layout: &Layout) -> Self {
        let key_column = |&c: &ColumnId| KeyColumn {
            at: *layout.column(c),
            bytea: columns[c.index()].ty == SqlType::Bytea,
        };
        let list: Vec<KeyColumn> = spec.columns.iter().map(key_column).collect();
        Self { integers: IntegerKey::of(&list), list }
    }

    /// Where the columns are.
    pub(super) fn places(&self) -> impl Iterator<Item = &ColumnLocation> {
        self.list.iter().map(|column| &column.at)
    }

    pub(super) fn covers(&self, column: ColumnId) -> bool {
        self.places().any(|at| at.column == column)
    }

    /// Whether keys are integers, so that [`KeyColumns::prefix`] is a few loads.
    pub(super) fn are_integers(&self) -> bool {
        self.integers.is_some()
    }

    /// The only column, if it is a text.
    #[inline]
    fn text(&self) -> Option<&ColumnLocation> {
        match &*self.list {
            [KeyColumn { at, bytea: false }] if at.physical.is_string() => Some(at),
            _ => None,
        }
    }

    /// The first 16 bytes of a row's key.
    #[inline(always)]
    pub(super) fn prefix(&self, rows: &Rows, tid: Tid) -> u128 {
        let Some(IntegerKey { bits }) = self.integers else { return self.prefix_general(rows, tid) };
        let Some(row) = rows.find_place(tid) else { return self.prefix_general(rows, tid) };
        let mut key = 0u128;
        for KeyColumn { at, .. } in &self.list {
            // The encoding of `ShortKey`: most significant column first, sign bits flipped.
            // SAFETY: located above, and `rows` is borrowed since; the columns are of its layout, and
            // integers of this width.
            key = unsafe {
                let place = rows.known_place(row, at);
                match at.width {
                    2 => key << 16 | u128::from(u16::from_le(place.cast::<u16>().read_unaligned()) ^ 1 << 15),
                    4 => key << 32 | u128::from(u32::from_le(place.cast::<u32>().read_unaligned()) ^ 1 << 31),
                    _ => key << 64 | u128::from(u64::from_le(place.cast::<u64>().read_unaligned()) ^ 1 << 63),
                }
            };
        }
        key << (128 - bits)
    }

    #[inline(never)]
    fn prefix_general(&self, rows: &Rows, tid: Tid) -> u128 {
        if let Some(at) = self.text() {
            return TextKey::of(rows, tid, at).prefix();
        }
        let mut key = KeyBuilder::new();
        build_key(self, rows, tid, &mut key);
        key.key().prefix
    }
}

/// The key of one text, where that lies.
struct TextKey<'r> {
    /// Whether a null mark stands before it.
    marked: bool,
    /// None is NULL.
    text: Option<Cow<'r, [u8]>>,
}

impl<'r> TextKey<'r> {
    #[inline]
    fn of(rows: &'r Rows, tid: Tid, at: &ColumnLocation) -> Self {
        let marked = at.nullable();
        let text = (!(marked && rows.is_null(tid, at))).then(|| rows.text(tid, at));
        Self { marked, text }
    }

    /// The first 16 bytes.
    #[inline]
    fn prefix(&self) -> u128 {
        let key = match (self.marked, &self.text) {
            (false, _) => ShortKey::new(),
            (true, Some(_)) => ShortKey::new().present(),
            (true, None) => ShortKey::new().null(),
        };
        let text = self.text.as_deref().unwrap_or_default();
        let room = PREFIX_BYTES - key.len();
        let mut bytes = [0; PREFIX_BYTES];
        let head = &text[..text.len().min(room)];
        bytes[key.len()..key.len() + head.len()].copy_from_slice(head);
        key.get() | u128::from_be_bytes(bytes)
    }

    /// The order of what is behind the first 16 bytes of a key, `rest`, relative to that of this one.
    fn order_of_rest(&self, rest: &[u8]) -> Ordering {
        let room = PREFIX_BYTES - usize::from(self.marked);
        let Some(tail) = self.text.as_deref().and_then(|text| text.get(room..)) else { return rest.cmp(&[]) };
        // Behind the text comes its terminator.
        let (head, behind) = rest.split_at(rest.len().min(tail.len()));
        let heads = head.cmp(&tail[..head.len()]);
        heads.then_with(|| if head.len() < tail.len() { Ordering::Less } else { behind.cmp(&[0]) })
    }
}

/// Builds the key of a row; tells whether it holds a NULL.
pub(super) fn build_key(columns: &KeyColumns, rows: &Rows, tid: Tid, key: &mut KeyBuilder) -> bool {
    let mut has_null = false;
    key.clear();
    for KeyColumn { at, bytea } in &columns.list {
        if at.nullable() {
            if rows.is_null(tid, at) {
                key.push_null();
                has_null = true;
                continue;
            }
            key.push_present();
        }
        match at.physical {
            Physical::Bool => key.push_bool(rows.get(tid, at)),
            Physical::I16 => key.push_i16(rows.get::<i16>(tid, at)),
            Physical::I32 => key.push_i32(rows.get::<i32>(tid, at)),
            Physical::I64 => key.push_i64(rows.get::<i64>(tid, at)),
            Physical::I128 => key.push_i128(rows.get::<i128>(tid, at)),
            Physical::F32 => key.push_f32(rows.get::<f32>(tid, at)),
            Physical::F64 => key.push_f64(rows.get::<f64>(tid, at)),
            Physical::Uuid => key.push_uuid(rows.get(tid, at)),
            Physical::Inline(_) | Physical::View if *bytea => key.push_bytes(&rows.text(tid, at)),
            Physical::Inline(_) | Physical::View => key.push_str(&rows.str(tid, at)),
        };
    }
    has_null
}

/// Pushes a value; nothing for NULL, whose mark says all.
pub(super) fn push_value(key: &mut KeyBuilder, value: &Value, physical: Physical) {
    match value {
        Value::Null => key,
        Value::Bool(v) => key.push_bool(*v),
        Value::SmallInt(v) => key.push_i16(*v),
        Value::Integer(v) | Value::Date(v) => key.push_i32(*v),
        Value::BigInt(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v) => key.push_i64(*v),
        Value::Real(v) => key.push_f32(*v),
        Value::Double(v) => key.push_f64(*v),
        Value::Decimal(v) if physical == Physical::I64 => key.push_i64(v.unscaled as i64),
        Value::Decimal(v) => key.push_i128(v.unscaled),
        Value::Text(text) => key.push_str(text),
        Value::Bytea(bytes) => key.push_bytes(bytes),
        Value::Uuid(v) => key.push_uuid(*v),
    };
}

/// A row's key that is at hand apart from the row, or what is behind its first 16 bytes.
#[derive(Clone, Copy)]
pub(super) struct Known<'k> {
    pub(super) prefix: Option<u128>,
    pub(super) rest: &'k [u8],
}

/// The keys of rows that stand in an index: those of a table's rows, but for some that are `known`.
pub(super) struct RowKeys<'r, K> {
    columns: &'r KeyColumns,
    rows: &'r Rows,
    known: K,
    other: KeyBuilder,
}

/// The keys of a table's rows.
#[inline]
pub(super) fn in_rows<'r>(
    columns: &'r KeyColumns,
    rows: &'r Rows,
) -> RowKeys<'r, impl Fn(Tid) -> Option<Known<'r>>> {
    RowKeys { columns, rows, known: |_| None, other: KeyBuilder::new() }
}

impl<'r, 'k, K: Fn(Tid) -> Option<Known<'k>>> RowKeys<'r, K> {
    pub(super) fn knowing(columns: &'r KeyColumns, rows: &'r Rows, known: K) -> Self {
        Self { columns, rows, known, other: KeyBuilder::new() }
    }
}

impl<'k, K: Fn(Tid) -> Option<Known<'k>>> StoredKeys for RowKeys<'_, K> {
    #[inline]
    fn compare(&mut self, key: KeyRef<'_>, tid: u64) -> Ordering {
        let (columns, rows, tid) = (self.columns, self.rows, Tid(tid));
        if let Some(Known { prefix: Some(prefix), rest }) = (self.known)(tid) {
            return key.cmp(&KeyRef { prefix, rest });
        }
        if columns.are_integers() {
            return key.prefix.cmp(&columns.prefix(rows, tid));
        }
        if let Some(at) = columns.text() {
            let stored = TextKey::of(rows, tid, at);
            let prefixes = key.prefix.cmp(&stored.prefix());
            return prefixes.then_with(|| stored.order_of_rest(key.rest));
        }
        build_key(columns, rows, tid, &mut self.other);
        key.cmp(&self.other.key())
    }

    #[inline]
    fn tie(&mut self, key: KeyRef<'_>, tid: u64) -> Ordering {
        if key.rest.is_empty() {
            // Equal prefixes and no rest: equal keys (K-1 of `key`), unless the probe is a part of one.
            return Ordering::Equal;
        }
        let tid = Tid(tid);
        if let Some(known) = (self.known)(tid) {
            return key.rest.cmp(known.rest);
        }
        if let Some(at) = self.columns.text() {
            return TextKey::of(self.rows, tid, at).order_of_rest(key.rest);
        }
        build_key(self.columns, self.rows, tid, &mut self.other);
        key.rest.cmp(self.other.key().rest)
    }

    #[inline]
    fn prefix(&mut self, tid: u64) -> u128 {
        let tid = Tid(tid);
        match (self.known)(tid) {
            Some(Known { prefix: Some(prefix), .. }) => prefix,
            _ => self.columns.prefix(self.rows, tid),
        }
    }
}

#[cfg(test)]
mod tests;
