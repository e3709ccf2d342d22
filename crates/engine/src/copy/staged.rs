//! Rows read from a file, packed, until all of them are known to be good.
//!
//! A row is its place in the file and its values one after another: a byte that says whether there
//! is a value, then the value in its native width, or length and bytes. Rows do not cross slabs.

use albireo_base::{ColumnId, Decimal, SqlType, Value};
use albireo_partition::Abort;

/// Bytes after which a new slab begins: growing one buffer would copy all rows again and again.
const SLAB_BYTES: usize = 1 << 20;

/// Packed rows of columns of known types.
pub(super) struct StagedRows {
    types: Vec<SqlType>,
    slabs: Vec<Vec<u8>>,
    full_bytes: u64,
    count: u64,
}

impl StagedRows {
    pub(super) fn new(types: Vec<SqlType>) -> Self {
        Self { types, slabs: Vec::new(), full_bytes: 0, count: 0 }
    }

    /// Memory in use.
    pub(super) fn bytes(&self) -> u64 {
        self.full_bytes + self.slabs.last().map_or(0, |slab| slab.len() as u64)
    }

    /// How many rows have begun.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Begins a row that stands at `place` in its file. A value of each column must follow.
    pub(super) fn begin(&mut self, place: u64) {
        match self.slabs.last() {
            Some(slab) if slab.len() < SLAB_BYTES => {}
            last => {
                self.full_bytes += last.map_or(0, |slab| slab.len() as u64);
                self.slabs.push(Vec::with_capacity(SLAB_BYTES + (SLAB_BYTES >> 4)));
            }
        }
        self.count += 1;
        self.put(&place.to_le_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        self.slabs.last_mut().expect("a row was begun").extend_from_slice(bytes);
    }

    /// Adds a value of the next column's type, or NULL.
    pub(super) fn push(&mut self, value: &Value) {
        self.put(&[u8::from(!value.is_null())]);
        match value {
            Value::Null => {}
            Value::Bool(v) => self.put(&[u8::from(*v)]),
            Value::SmallInt(v) => self.put(&v.to_le_bytes()),
            Value::Integer(v) | Value::Date(v) => self.put(&v.to_le_bytes()),
            Value::BigInt(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v) => {
                self.put(&v.to_le_bytes());
            }
            Value::Real(v) => self.put(&v.to_le_bytes()),
            Value::Double(v) => self.put(&v.to_le_bytes()),
            Value::Decimal(v) => self.put(&v.unscaled.to_le_bytes()),
            Value::Text(v) => self.put_bytes(v.as_bytes()),
            Value::Bytea(v) => self.put_bytes(v),
            Value::Uuid(v) => self.put(v),
        }
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put(&(bytes.len() as u64).to_le_bytes());
        self.put(bytes);
    }

    /// Gives each row with its place: `row` with the staged values at `columns`.
    pub(super) fn replay(
        &self,
        columns: &[ColumnId],
        mut row: Vec<Value>,
        mut each: impl FnMut(u64, &[Value]) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        debug_assert_eq!(columns.len(), self.types.len());
        for slab in &self.slabs {
            let mut reader = Reader { rest: slab };
            while !reader.rest.is_empty() {
                let place = u64::from_le_bytes(reader.take());
                for (column, ty) in columns.iter().zip(&self.types) {
                    reader.value(*ty, &mut row[column.index()]);
                }
                each(place, &row)?;
            }
        }
        Ok(())
    }
}

/// Reads back what was packed.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.rest.split_first_chunk().expect("a packed row is whole");
        self.rest = rest;
        *taken
    }

    fn bytes(&mut self) -> &'a [u8] {
        let length = u64::from_le_bytes(self.take()) as usize;
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Reads a value into `place`, whose memory a text uses again.
    fn value(&mut self, ty: SqlType, place: &mut Value) {
        if self.take::<1>() == [0] {
            *place = Value::Null;
            return;
        }
        *place = match ty {
            SqlType::Bool => Value::Bool(self.take() != [0]),
            SqlType::SmallInt => Value::SmallInt(i16::from_le_bytes(self.take())),
            SqlType::Integer => Value::Integer(i32::from_le_bytes(self.take())),
            SqlType::Date => Value::Date(i32::from_le_bytes(self.take())),
            SqlType::BigInt => Value::BigInt(i64::from_le_bytes(self.take())),
            SqlType::Time => Value::Time(i64::from_le_bytes(self.take())),
            SqlType::Timestamp => Value::Timestamp(i64::from_le_bytes(self.take())),
            SqlType::TimestampTz => Value::TimestampTz(i64::from_le_bytes(self.take())),
            SqlType::Real => Value::Real(f32::from_le_bytes(self.take())),
            SqlType::Double => Value::Double(f64::from_le_bytes(self.take())),
            SqlType::Decimal { scale, .. } => {
                Value::Decimal(Decimal { unscaled: i128::from_le_bytes(self.take()), scale })
            }
            SqlType::Uuid => Value::Uuid(self.take()),
            SqlType::Bytea => Value::Bytea(self.bytes().to_vec()),
            SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => {
                let mut text = match std::mem::replace(place, Value::Null) {
                    Value::Text(text) => text,
                    _ => String::new(),
                };
                text.clear();
                text.push_str(std::str::from_utf8(self.bytes()).expect("packed from a text"));
                Value::Text(text)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_types_come_back_as_they_were_packed() {
        let decimal = SqlType::Decimal { precision: 38, scale: 4 };
        let row = [
            (SqlType::Bool, Value::Bool(true)),
            (SqlType::SmallInt, Value::SmallInt(-3)),
            (SqlType::Integer, Value::Integer(i32::MIN)),
            (SqlType::BigInt, Value::BigInt(i64::MAX)),
            (SqlType::Real, Value::Real(1.5)),
            (SqlType::Double, Value::Double(-0.1)),
            (decimal, Value::Decimal(Decimal { unscaled: -(10_i128.pow(37)), scale: 4 })),
            (SqlType::Varchar(9), Value::Text("äöü".to_owned())),
            (SqlType::Text, Value::Text(String::new())),
            (SqlType::Bytea, Value::Bytea(vec![0, 255])),
            (SqlType::Date, Value::Date(-1)),
            (SqlType::Time, Value::Time(86_400_000_000)),
            (SqlType::Timestamp, Value::Timestamp(-5)),
            (SqlType::TimestampTz, Value::TimestampTz(7)),
            (SqlType::Uuid, Value::Uuid([9; 16])),
            (SqlType::Text, Value::Null),
        ];
        let mut staged = StagedRows::new(row.iter().map(|(ty, _)| *ty).collect());
        for place in 0..20_000_u64 {
            staged.begin(place);
            row.iter().for_each(|(_, value)| staged.push(value));
        }
        assert!(staged.slabs.len() > 1, "several slabs are tried");
        let columns: Vec<ColumnId> = (0..row.len() as u16).map(ColumnId).collect();
        let mut next = 0;
        let expected: Vec<Value> = row.iter().map(|(_, value)| value.clone()).collect();
        let seen = staged.replay(&columns, vec![Value::Null; row.len()], |place, values| {
            assert_eq!((place, values), (next, expected.as_slice()));
            next += 1;
            Ok(())
        });
        assert_eq!((seen, next), (Ok(()), 20_000));
    }
}
