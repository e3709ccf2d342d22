//! How the rows of a table are named where TIDs mean nothing: in write records.

use albireo_base::{ColumnId, Tid, Value};

use super::{Guarded, Table, TableSpec};
use crate::key::KeyBuilder;

/// The columns that name a row.
pub(crate) struct Identity {
    /// Those of the first unique index without nullable columns, else all.
    pub(crate) columns: Vec<ColumnId>,
    /// The index that finds rows by them: by all, if it is unique; else by some.
    index: Option<usize>,
    /// Whether two rows never have the same; then its columns are not nullable.
    pub(crate) is_unique: bool,
    /// Columns of unique indexes.
    unique: Guarded,
    /// How many of the table's columns take NULL.
    pub(crate) nullable: usize,
}

impl Identity {
    pub(crate) fn of(spec: &TableSpec) -> Self {
        let present = |column: &ColumnId| !spec.columns[column.index()].nullable;
        let key = spec.indexes.iter().position(|index| index.unique && index.columns.iter().all(present));
        let unique = spec.indexes.iter().filter(|index| index.unique).flat_map(|index| &index.columns);
        let unique = Guarded::of(spec.columns.len(), unique);
        let nullable = spec.columns.iter().filter(|column| column.nullable).count();
        match key {
            Some(index) => {
                let columns = spec.indexes[index].columns.clone();
                Self { columns, index: Some(index), is_unique: true, unique, nullable }
            }
            None => {
                let columns = (0..spec.columns.len()).map(|column| ColumnId(column as u16)).collect();
                let index = (!spec.indexes.is_empty()).then_some(0);
                Self { columns, index, is_unique: false, unique, nullable }
            }
        }
    }

    /// Whether an index finds rows by it, or narrows the search.
    pub(crate) fn has_index(&self) -> bool {
        self.index.is_some()
    }

    /// Whether a unique index covers the column.
    pub(crate) fn is_in_unique_key(&self, column: ColumnId) -> bool {
        self.unique.has(column)
    }
}

impl Table {
    /// The columns that name a row where TIDs mean nothing: those of the first unique index without nullable columns,
    /// else all.
    pub fn identity_columns(&self) -> &[ColumnId] {
        &self.identity.columns
    }

    /// A row whose identity has these values; of several equal ones, any. Without a unique index
    /// nor another that narrows the search, all rows are looked at.
    ///
    /// # Panics
    /// `values` are not as many as the identity has columns, or of other types.
    pub(crate) fn find_by_identity(&self, values: &[Value], key: &mut KeyBuilder) -> Option<Tid> {
        let Identity { columns, index, is_unique, .. } = &self.identity;
        assert_eq!(values.len(), columns.len(), "one value for each column of the identity");
        let is_it = |tid: &Tid| self.is_named(*tid, values);
        let Some(index) = *index else {
            return self.scan_from(Tid(0)).find(is_it);
        };
        let value_of = |column| {
            let at = columns.iter().position(|other| *other == column);
            &values[at.expect("an identity covers the columns of its index")]
        };
        self.indexes[index].build_key_of(value_of, key);
        let found = match is_unique {
            true => self.indexes[index].find(&self.rows, key.key()),
            false => self.indexes[index].find_all(&self.rows, key.key()).into_iter().find(is_it),
        };
        debug_assert!(found.is_none_or(|tid| self.is_live(tid)), "only live rows stand in indexes");
        found
    }
}

impl Table {
    /// Whether a row's identity has these values.
    pub(crate) fn is_named(&self, tid: Tid, values: &[Value]) -> bool {
        self.identity.columns.iter().zip(values).all(|(column, value)| same(&self.value(tid, *column), value))
    }
}

/// Whether two values of one column are the same, bit for bit, and so are two NULLs.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Real(a), Value::Real(b)) => a.to_bits() == b.to_bits(),
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}
