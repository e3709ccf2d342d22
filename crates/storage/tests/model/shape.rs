//! Random tables and the values they hold.
//!
//! A value is named by its type and a *pick*, a small number, so that equal picks collide in unique
//! keys and a failing case shrinks to small numbers.

use std::sync::Arc;

use albireo_base::{ColumnId, Decimal, SqlError, SqlType, TableId, Value};
use albireo_storage::{ColumnSpec, IndexKind, IndexSpec, LayoutChoice, RowCheck, TableSpec};
use proptest::prelude::*;

/// The types that random columns draw from.
pub const TYPES: [SqlType; 22] = [
    SqlType::Integer,
    SqlType::SmallInt,
    SqlType::BigInt,
    SqlType::Varchar(10),
    SqlType::Text,
    SqlType::Char(24),
    SqlType::Varchar(60),
    SqlType::Bytea,
    SqlType::Bool,
    SqlType::Char(1),
    SqlType::Decimal { precision: 18, scale: 2 },
    SqlType::Decimal { precision: 38, scale: 4 },
    SqlType::Real,
    SqlType::Double,
    SqlType::Date,
    SqlType::Time,
    SqlType::Timestamp,
    SqlType::TimestampTz,
    SqlType::Uuid,
    SqlType::Varchar(24),
    SqlType::Varchar(50),
    PLATE,
];

/// Texts of one length.
const PLATE: SqlType = SqlType::Char(9);

/// The value of type `ty` that `pick` names; never NULL.
pub fn value(ty: SqlType, pick: u16) -> Value {
    let number = i64::from(pick) - 20;
    match ty {
        SqlType::Bool => Value::Bool(pick.is_multiple_of(2)),
        SqlType::SmallInt => Value::SmallInt(number as i16),
        SqlType::Integer => Value::Integer((number as i32).wrapping_mul(65_537)),
        SqlType::BigInt => Value::BigInt(number << 33),
        SqlType::Real => Value::Real(float(pick) as f32),
        SqlType::Double => Value::Double(float(pick)),
        SqlType::Decimal { precision, scale } => {
            let unscaled = i128::from(number) * 10i128.pow(u32::from(precision) - 6);
            Value::Decimal(Decimal { unscaled, scale })
        }
        PLATE => Value::Text(format!("AB-{:06}", u32::from(pick) * 7919 % 1_000_000)),
        SqlType::Char(n) | SqlType::Varchar(n) => {
            let text: String = text(pick).chars().take(n as usize).collect();
            Value::Text(text.trim_end_matches(' ').to_owned())
        }
        SqlType::Text => Value::Text(text(pick)),
        SqlType::Bytea => Value::Bytea([&[0, 255, 0][..pick as usize % 4], text(pick).as_bytes()].concat()),
        SqlType::Date => Value::Date(number as i32),
        SqlType::Time => Value::Time(number.unsigned_abs() as i64),
        SqlType::Timestamp => Value::Timestamp(number),
        SqlType::TimestampTz => Value::TimestampTz(-number),
        SqlType::Uuid => Value::Uuid([pick as u8; 16]),
    }
}

fn float(pick: u16) -> f64 {
    match pick {
        0 => 0.0,
        1 => -0.0,
        2 => f64::NAN,
        3 => f64::NEG_INFINITY,
        pick => (f64::from(pick) - 20.0) / 8.0,
    }
}

/// Texts around every limit of the layout: 12 bytes of a view, 16 of a key's prefix, 24 and 50 characters
/// of an inline slot, more bytes than characters.
fn text(pick: u16) -> String {
    match pick % 9 {
        0 => String::new(),
        1 => format!("k{pick}"),
        2 => format!("{pick:012}"),
        3 => format!("{pick:013}"),
        4 => format!("{}{pick}", "é".repeat(7)),
        5 => format!("{}{pick}", "漢".repeat(21)),
        6 => format!("a common beginning {pick}"),
        7 => format!("{}{pick}", "long ".repeat(12)),
        _ => "z".repeat(usize::from(pick) * 13),
    }
}

/// A table to test.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its columns.
    pub columns: Vec<(SqlType, bool)>,
    /// Its layout.
    pub layout: LayoutChoice,
    /// Its indexes: columns, unique, kind.
    pub indexes: Vec<(Vec<ColumnId>, bool, IndexKind)>,
    /// The pick that a CHECK forbids in column 0.
    pub forbidden: Option<u16>,
}

/// Column 0 is not this value.
struct Forbidden(Value);

impl RowCheck for Forbidden {
    fn name(&self) -> &str {
        "forbidden"
    }

    fn holds(&self, read: &dyn Fn(ColumnId) -> Value) -> Result<bool, SqlError> {
        Ok(read(ColumnId(0)) != self.0)
    }
}

impl Shape {
    /// What the storage is told.
    pub fn spec(&self) -> TableSpec {
        let columns = self.columns.iter().enumerate().map(|(i, &(ty, nullable))| ColumnSpec {
            name: column_name(i),
            ty,
            nullable,
        });
        let indexes = self.indexes.iter().enumerate().map(|(i, (columns, unique, kind))| IndexSpec {
            name: index_name(i),
            columns: columns.clone(),
            unique: *unique,
            kind: *kind,
        });
        let check = |pick| Arc::new(Forbidden(value(self.columns[0].0, pick))) as Arc<dyn RowCheck>;
        TableSpec {
            id: TableId(3),
            name: "t".to_owned(),
            columns: columns.collect(),
            layout: self.layout.clone(),
            indexes: indexes.collect(),
            partition_by: None,
            checks: self.forbidden.map(check).into_iter().collect(),
        }
    }

    /// Whether a row may hold this, indexes aside.
    pub fn allows(&self, row: &[Value]) -> bool {
        self.forbidden.is_none_or(|pick| row[0].is_null() || row[0] != value(self.columns[0].0, pick))
    }

    /// The value that `pick` names in `column`; a nullable column is NULL now and then.
    pub fn value(&self, column: usize, pick: u16) -> Value {
        let (ty, nullable) = self.columns[column];
        if nullable && pick.is_multiple_of(7) { Value::Null } else { value(ty, pick) }
    }

    /// A row of values; `picks` is repeated.
    pub fn row(&self, picks: &[u16]) -> Vec<Value> {
        (0..self.columns.len()).map(|i| self.value(i, picks[i % picks.len()])).collect()
    }
}

/// The name of column `i`.
pub fn column_name(i: usize) -> String {
    format!("c{i}")
}

/// The name of index `i`.
pub fn index_name(i: usize) -> String {
    format!("i{i}")
}

/// Any small table.
pub fn shapes() -> impl Strategy<Value = Shape> {
    let column =
        (0..TYPES.len(), proptest::bool::weighted(0.4)).prop_map(|(ty, nullable)| (TYPES[ty], nullable));
    (proptest::collection::vec(column, 1..9)).prop_flat_map(|columns| {
        let count = columns.len();
        let index =
            (proptest::sample::subsequence((0..count).collect::<Vec<_>>(), 1..=count.min(3)), any::<bool>());
        let kinds = proptest::sample::select(vec![IndexKind::Hash, IndexKind::Ordered, IndexKind::Bare]);
        let index = (index, any::<bool>(), kinds).prop_map(|((mut columns, reversed), unique, kind)| {
            if reversed {
                columns.reverse();
            }
            (columns.into_iter().map(|c| ColumnId(c as u16)).collect::<Vec<_>>(), unique, kind)
        });
        let indexes = proptest::collection::vec(index, 0..4);
        (Just(columns), layouts(count), indexes, proptest::option::weighted(0.3, 0u16..40))
            .prop_map(|(columns, layout, indexes, forbidden)| Shape { columns, layout, indexes, forbidden })
    })
}

fn layouts(columns: usize) -> impl Strategy<Value = LayoutChoice> {
    let groups = proptest::collection::vec(0usize..4, columns).prop_map(|group_of| {
        // Group 3 stands for "a column of its own".
        let group =
            |g| (0..group_of.len()).filter(|&c| group_of[c] == g).map(|c| ColumnId(c as u16)).collect();
        LayoutChoice::Groups((0..3).map(group).collect())
    });
    prop_oneof![Just(LayoutChoice::Columns), Just(LayoutChoice::Rows), groups]
}
