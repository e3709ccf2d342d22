//! All rows of a file, by columns, until it is known that every one of them is good.
//!
//! A batch's values are in the types of the columns they go to and have passed everything that can be said
//! of a value alone: NOT NULL, length, precision. What needs the other values of a row or other rows (CHECK,
//! keys) is for whoever inserts them.

use std::sync::Arc;

pub(crate) use albireo_files::{Batch, Places};
use albireo_storage::arrow_type;
use arrow::datatypes::{Field, Schema, SchemaRef};

use super::Target;

/// Rows of a whole file, in order.
#[derive(Default)]
pub(crate) struct Staged {
    pub(crate) batches: Vec<Batch>,
    bytes: u64,
    rows: u64,
}

impl Staged {
    /// Adds the rows that follow.
    pub(crate) fn push(&mut self, batch: Batch) {
        self.bytes += batch.bytes();
        self.rows += batch.columns.num_rows() as u64;
        self.batches.push(batch);
    }

    /// Memory in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }
}

/// The schema of batches for `target`. Whether a column may be NULL is checked with its values.
pub(super) fn schema(target: &Target<'_>) -> SchemaRef {
    let field = |column| {
        let def = target.table.column_def(column);
        Field::new(&def.name, arrow_type(def.ty), true)
    };
    let fields: Vec<Field> = target.columns.iter().map(|column| field(*column)).collect();
    Arc::new(Schema::new(fields))
}
