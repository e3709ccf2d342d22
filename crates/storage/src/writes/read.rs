//! Reading a write record.

use albireo_base::packed::{Input, Malformed};
use albireo_base::{ColumnId, SqlType, TableId, Value};

use super::SHARED_SITE;
use super::value::value;
use crate::table::{Identity, Table, TableSpec};

/// What a record says of one row.
#[derive(Clone, PartialEq, Debug)]
pub enum RowWrite {
    /// A row went.
    Delete {
        /// The values of its identity.
        identity: Vec<Value>,
    },
    /// A row got new values.
    Update {
        /// The values of its identity.
        identity: Vec<Value>,
        /// The columns and what they hold now.
        values: Vec<(ColumnId, Value)>,
    },
    /// A row came.
    Insert {
        /// Its values, of all columns.
        values: Vec<Value>,
    },
}

/// What the reader must know of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    columns: Vec<(SqlType, bool)>,
    identity: Vec<ColumnId>,
}

impl Shape {
    /// The shape of a table.
    pub fn of(table: &Table) -> Self {
        Self::new(table.spec(), table.identity.columns.clone())
    }

    /// The shape of a table that is specified so: for reading records where there is no table.
    pub fn of_spec(spec: &TableSpec) -> Self {
        Self::new(spec, Identity::of(spec).columns)
    }

    /// The columns that name a row.
    pub fn identity(&self) -> &[ColumnId] {
        &self.identity
    }

    fn new(spec: &TableSpec, identity: Vec<ColumnId>) -> Self {
        let columns = spec.columns.iter().map(|column| (column.ty, column.nullable)).collect();
        Self { columns, identity }
    }
}

/// Reads a record row by row.
pub struct WriteReader<'a> {
    input: Input<'a>,
    group: Option<Group>,
}

/// The table that is being read.
struct Group {
    shape: Shape,
    part: Part,
    /// Rows of the part that are to come.
    left: u64,
    /// Columns of the last update.
    columns: Vec<ColumnId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Deletes,
    Updates,
    Inserts,
}

impl<'a> WriteReader<'a> {
    /// A reader of one record.
    pub fn new(record: &'a [u8]) -> Self {
        Self { input: Input::new(record), group: None }
    }

    /// Goes on to the next table: its site ([`SHARED_SITE`] if it is shared) and id. Rows of the last one
    /// must have been read. `None` at the end.
    ///
    /// # Errors
    /// The bytes are no write record.
    ///
    /// # Panics
    /// Rows of the last table are left.
    pub fn next_table(&mut self) -> Result<Option<(u16, TableId)>, Malformed> {
        assert!(self.group.is_none(), "all rows of a table are read before the next");
        if self.input.is_empty() {
            return Ok(None);
        }
        let site = match self.input.number()? {
            0 => SHARED_SITE,
            site => u16::try_from(site - 1).map_err(|_| self.input.wrong("no such partition"))?,
        };
        let table = self.input.number()?;
        let table = u32::try_from(table).map_err(|_| self.input.wrong("no such table"))?;
        Ok(Some((site, TableId(table))))
    }

    /// Reads the rows of the table that [`WriteReader::next_table`] gave, one after another; `None` when
    /// there are no more. `shape` is asked for once.
    ///
    /// # Errors
    /// The bytes are no write record of such a table.
    pub fn next_row(&mut self, shape: impl FnOnce() -> Shape) -> Result<Option<RowWrite>, Malformed> {
        if self.group.is_none() {
            let left = self.input.number()?;
            self.group = Some(Group { shape: shape(), part: Part::Deletes, left, columns: Vec::new() });
        }
        let Some(group) = &mut self.group else { return Ok(None) };
        while group.left == 0 {
            group.part = match group.part {
                Part::Deletes => Part::Updates,
                Part::Updates => Part::Inserts,
                Part::Inserts => {
                    self.group = None;
                    return Ok(None);
                }
            };
            group.left = self.input.number()?;
        }
        // A row has at least a byte, so a damaged number cannot keep us busy.
        if group.left > self.input.rest().len() as u64 {
            return Err(self.input.wrong("more rows than bytes"));
        }
        group.left -= 1;
        group.row(&mut self.input).map(Some)
    }
}

impl Group {
    fn row(&mut self, input: &mut Input<'_>) -> Result<RowWrite, Malformed> {
        let Self { shape, part, columns, .. } = self;
        Ok(match part {
            Part::Deletes => RowWrite::Delete { identity: values(input, shape, &shape.identity)? },
            Part::Updates => {
                read_columns(input, shape, columns)?;
                let identity = values(input, shape, &shape.identity)?;
                let values = values(input, shape, columns)?;
                RowWrite::Update { identity, values: columns.iter().copied().zip(values).collect() }
            }
            Part::Inserts => {
                let all: Vec<ColumnId> = (0..shape.columns.len()).map(|c| ColumnId(c as u16)).collect();
                RowWrite::Insert { values: values(input, shape, &all)? }
            }
        })
    }
}

/// The columns of an update, which stay if it has those of the one before.
fn read_columns(input: &mut Input<'_>, shape: &Shape, columns: &mut Vec<ColumnId>) -> Result<(), Malformed> {
    let count = input.number()?;
    if count == 0 {
        return match columns.is_empty() {
            true => Err(input.wrong("an update without columns")),
            false => Ok(()),
        };
    }
    columns.clear();
    for _ in 0..count {
        let column = input.number()?;
        if column >= shape.columns.len() as u64 {
            return Err(input.wrong("no such column"));
        }
        let column = ColumnId(column as u16);
        if columns.last().is_some_and(|last| *last >= column) {
            return Err(input.wrong("columns are not in order"));
        }
        columns.push(column);
    }
    Ok(())
}

fn values(input: &mut Input<'_>, shape: &Shape, columns: &[ColumnId]) -> Result<Vec<Value>, Malformed> {
    let type_of = |column: &ColumnId| shape.columns[column.index()];
    let nullable = columns.iter().filter(|column| type_of(column).1).count();
    let bits = input.bytes(nullable.div_ceil(8))?;
    let mut bit = 0;
    let mut values = Vec::with_capacity(columns.len());
    for column in columns {
        let (ty, nullable) = type_of(column);
        let mut null = false;
        if nullable {
            null = bits[bit / 8] >> (bit % 8) & 1 == 1;
            bit += 1;
        }
        values.push(if null { Value::Null } else { value(input, ty)? });
    }
    debug_assert_eq!(bit, nullable, "there was a bit for each column that takes NULL");
    Ok(values)
}
