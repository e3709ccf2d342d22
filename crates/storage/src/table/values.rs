//! Rows as [`Value`]s, for code that knows a table's shape only at run time.

use albireo_base::{ColumnId, Decimal, SqlType, Tid, Value};

use super::{NewRow, RowUpdate, Table, TableError, TableSpec};
use crate::column::{TextLimit, has_digits};
use crate::layout::Physical;
use crate::rows::Rows;
use crate::undo::UndoLog;

impl Table {
    /// A value of a row.
    pub fn value(&self, tid: Tid, column: ColumnId) -> Value {
        value_of(&self.spec, &self.rows, tid, column)
    }

    /// All values of a row.
    pub fn row(&self, tid: Tid) -> Vec<Value> {
        (0..self.spec.columns.len()).map(|i| self.value(tid, ColumnId(i as u16))).collect()
    }

    /// Inserts a row of values, one per column, each of its column's type.
    pub fn insert_values(&mut self, undo: &mut UndoLog, values: &[Value]) -> Result<Tid, TableError> {
        assert_eq!(values.len(), self.spec.columns.len(), "one value per column");
        for (index, value) in values.iter().enumerate() {
            self.check_null(ColumnId(index as u16), value)?;
        }
        let mut row = self.insert(undo)?;
        for (index, value) in values.iter().enumerate() {
            row.set_value(ColumnId(index as u16), value)?;
        }
        row.finish()
    }

    /// Updates some values of a row; all constraints hold afterwards or nothing changed.
    pub fn update_values(
        &mut self,
        undo: &mut UndoLog,
        tid: Tid,
        values: &[(ColumnId, Value)],
    ) -> Result<(), TableError> {
        if !self.is_live(tid) {
            return Err(TableError::NoRow { table: self.spec.id, tid });
        }
        self.update(undo, tid, |row| {
            values.iter().try_for_each(|(column, value)| row.set_value(*column, value))
        })
    }

    fn check_null(&self, column: ColumnId, value: &Value) -> Result<(), TableError> {
        match matches!(value, Value::Null) && !self.spec.columns[column.index()].nullable {
            true => Err(TableError::NotNull { table: self.spec.id, column }),
            false => Ok(()),
        }
    }
}

impl NewRow<'_> {
    /// Sets a value of the column's type, or NULL.
    pub fn set_value(&mut self, column: ColumnId, value: &Value) -> Result<(), TableError> {
        let at = *self.table().layout().column(column);
        if matches!(value, Value::Null) {
            self.table().check_null(column, value)?;
            self.set_null(&at);
            return Ok(());
        }
        if let Some(bytes) = text_bytes(&self.table().spec, column, value)? {
            return self.set_bytes(&at, bytes);
        }
        let (bytes, width) = encode(&self.table().spec, column, value)?;
        self.set_raw(&at, &bytes[..width]);
        Ok(())
    }
}

impl RowUpdate<'_> {
    /// Overwrites a value by one of the column's type, or NULL.
    pub fn set_value(&mut self, column: ColumnId, value: &Value) -> Result<(), TableError> {
        let at = *self.table().layout().column(column);
        if matches!(value, Value::Null) {
            return self.set_null_at(&at);
        }
        if let Some(bytes) = text_bytes(&self.table().spec, column, value)? {
            return self.set_bytes(&at, bytes);
        }
        let (bytes, width) = encode(&self.table().spec, column, value)?;
        self.set_raw(&at, &bytes[..width], false)
    }
}

/// A value of a row of a table of this shape.
pub(super) fn value_of(spec: &TableSpec, rows: &Rows, tid: Tid, column: ColumnId) -> Value {
    let at = rows.layout.column(column);
    if rows.is_null(tid, at) {
        return Value::Null;
    }
    let i64_at = || rows.get::<i64>(tid, at);
    match spec.columns[column.index()].ty {
        SqlType::Bool => Value::Bool(rows.get(tid, at)),
        SqlType::SmallInt => Value::SmallInt(rows.get::<i16>(tid, at)),
        SqlType::Integer => Value::Integer(rows.get::<i32>(tid, at)),
        SqlType::BigInt => Value::BigInt(i64_at()),
        SqlType::Real => Value::Real(rows.get::<f32>(tid, at)),
        SqlType::Double => Value::Double(rows.get::<f64>(tid, at)),
        SqlType::Decimal { scale, .. } => {
            let unscaled = match at.physical {
                Physical::I64 => i128::from(i64_at()),
                _ => rows.get::<i128>(tid, at),
            };
            Value::Decimal(Decimal { unscaled, scale })
        }
        SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Text => {
            Value::Text(String::from_utf8_lossy(&rows.text(tid, at)).into_owned())
        }
        SqlType::Bytea => Value::Bytea(rows.text(tid, at).into_owned()),
        SqlType::Date => Value::Date(rows.get::<i32>(tid, at)),
        SqlType::Time => Value::Time(i64_at()),
        SqlType::Timestamp => Value::Timestamp(i64_at()),
        SqlType::TimestampTz => Value::TimestampTz(i64_at()),
        SqlType::Uuid => Value::Uuid(rows.get(tid, at)),
    }
}

/// The slot's bytes for a value that is neither NULL nor text.
pub(super) fn encode(
    spec: &TableSpec,
    column: ColumnId,
    value: &Value,
) -> Result<([u8; 16], usize), TableError> {
    let physical = Physical::of(spec.columns[column.index()].ty);
    let wrong = TableError::WrongType { table: spec.id, column };
    let mut bytes = [0; 16];
    let mut put = |from: &[u8]| {
        bytes[..from.len()].copy_from_slice(from);
        from.len()
    };
    let width = match (spec.columns[column.index()].ty, value) {
        (SqlType::Bool, Value::Bool(v)) => put(&[u8::from(*v)]),
        (SqlType::SmallInt, Value::SmallInt(v)) => put(&v.to_le_bytes()),
        (SqlType::Integer, Value::Integer(v)) | (SqlType::Date, Value::Date(v)) => put(&v.to_le_bytes()),
        (SqlType::BigInt, Value::BigInt(v))
        | (SqlType::Time, Value::Time(v))
        | (SqlType::Timestamp, Value::Timestamp(v))
        | (SqlType::TimestampTz, Value::TimestampTz(v)) => put(&v.to_le_bytes()),
        (SqlType::Real, Value::Real(v)) => put(&v.to_le_bytes()),
        (SqlType::Double, Value::Double(v)) => put(&v.to_le_bytes()),
        (SqlType::Uuid, Value::Uuid(v)) => put(v),
        (SqlType::Decimal { precision, scale }, Value::Decimal(v)) if v.scale == scale => {
            if !has_digits(v.unscaled, precision) {
                return Err(wrong);
            }
            match physical {
                Physical::I64 => put(&(v.unscaled as i64).to_le_bytes()),
                _ => put(&v.unscaled.to_le_bytes()),
            }
        }
        _ => return Err(wrong),
    };
    debug_assert_eq!(width, physical.width(), "a value is as wide as its column");
    Ok((bytes, width))
}

/// The bytes of a text or byte string, checked; `None` for other types.
pub(super) fn text_bytes<'v>(
    spec: &TableSpec,
    column: ColumnId,
    value: &'v Value,
) -> Result<Option<&'v [u8]>, TableError> {
    let ty = spec.columns[column.index()].ty;
    match value {
        Value::Text(text) if ty.is_string() => Ok(Some(check_text(spec, column, text)?.as_bytes())),
        Value::Bytea(bytes) if ty == SqlType::Bytea => {
            if bytes.len() > crate::MAX_TEXT_BYTES {
                return Err(TableError::TooLong { table: spec.id, column, bytes: bytes.len() });
            }
            Ok(Some(bytes))
        }
        _ => Ok(None),
    }
}

/// Checks a text against its column's limits and returns what is stored of it: CHAR loses trailing blanks.
pub(super) fn check_text<'t>(
    spec: &TableSpec,
    column: ColumnId,
    text: &'t str,
) -> Result<&'t str, TableError> {
    let limit = TextLimit::of(spec.columns[column.index()].ty);
    limit.fit(text).map_err(|unfit| unfit.error(spec.id, column, text))
}
