//! The values that the interpreter works on.

use std::sync::Arc;

use albireo_base::{Interval, Value};

/// A value of any [`Type`](crate::types::Type).
#[derive(Clone, PartialEq, Debug)]
pub enum Datum {
    /// A scalar, or NULL of any type.
    Value(Value),
    /// An INTERVAL.
    Interval(Interval),
    /// An array.
    Array(Arc<Array>),
    /// A row; its fields.
    Row(Arc<[Datum]>),
}

/// An array of one dimension.
#[derive(Clone, PartialEq, Debug)]
pub struct Array {
    /// The subscript of the first element; 1 unless an assignment began elsewhere.
    pub lower: i32,
    /// The elements; never arrays.
    pub items: Vec<Datum>,
}

impl Datum {
    /// NULL.
    pub const NULL: Self = Self::Value(Value::Null);

    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Value(Value::Text(text)) => text.len(),
                Self::Value(Value::Bytea(bytes)) => bytes.len(),
                Self::Array(array) => array.items.iter().map(Self::bytes).sum(),
                Self::Row(fields) => fields.iter().map(Self::bytes).sum(),
                _ => 0,
            }
    }

    /// Whether this is NULL. A row is not, even if all its fields are.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Value(Value::Null))
    }
}

impl Default for Datum {
    fn default() -> Self {
        Self::NULL
    }
}

impl From<Value> for Datum {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}
