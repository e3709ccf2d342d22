//! Frozen chunks that come from outside, checked as rows in batches are.
//!
//! What is checked is what others rely on: texts are UTF-8, because arrays over them say so without looking; kinds and
//! numbers of rows, because readers ask for no others; and what [`super::batch`] refuses of a row. A summary that is not
//! of the column's values is not found: it breaks nothing, and no archive that has its checksums has one.

use std::sync::Arc;

use albireo_base::ids::CHUNK_ROWS;
use albireo_base::{ColumnId, SqlType, arrow_type};
use albireo_encoding::{Column, Section, Selection};

use super::{Placement, TableError, TableSpec, batch};
use crate::column::{Sealed, TextLimit};
use crate::encoded::EncodedView;
use crate::frozen::{FrozenChunk, kind_of};
use crate::layout::{ColumnLocation, Layout, MAX_TEXT_BYTES, Physical};
use crate::pool::Part;
use crate::rows::Rows;
use crate::texts::{self, Sharing};

/// A frozen chunk of a table, from outside.
#[derive(Clone, Debug)]
pub struct ChunkParts<S> {
    /// Its columns, in the order of the table's.
    pub columns: Vec<Column<S>>,
    /// A set bit for each row that lives: as many words as the slots of a chunk have.
    pub live: Vec<u64>,
    /// Bytes of the heaps that its texts were in before it was frozen.
    pub text_bytes: u64,
}

/// Appends a chunk to rows that end with one.
pub(super) fn adopt<S: Section>(
    spec: &TableSpec,
    placement: Option<Placement>,
    rows: &mut Rows,
    parts: ChunkParts<S>,
) -> Result<(), TableError> {
    let layout = Arc::clone(&rows.layout);
    check(spec, &layout, &parts)?;
    let ChunkParts { columns, live, text_bytes } = parts;
    let pool = rows.pool().clone();
    let place = texts::place_of(placement.map_or(0, |placement| placement.partition), rows.next_chunk());
    let in_pool = |(column, at): (Column<S>, &ColumnLocation)| {
        let column = match layout.texts_of(at.column) {
            Some(texts) => texts.share(column, Sharing::WhereItPays, place, &pool),
            None => column,
        };
        column.map_sections(|_, section| Part::new(&pool, section.bytes()))
    };
    let columns = columns.into_iter().zip(&layout.columns).map(in_pool).collect::<Result<Vec<_>, _>>()?;
    let count = live.iter().map(|word| word.count_ones() as usize).sum();
    let chunk = Arc::new(FrozenChunk::new(columns, rows.made_from_nothing(), text_bytes, count));
    if let Some(placement) = placement {
        check_places(spec, placement, layout.column(placement.column), &chunk, &live)?;
    }
    Ok(rows.adopt(chunk, &live)?)
}

fn check<S: Section>(spec: &TableSpec, layout: &Layout, parts: &ChunkParts<S>) -> Result<(), TableError> {
    let table = spec.id;
    let ChunkParts { columns, live, .. } = parts;
    if columns.len() != spec.columns.len() {
        let column = ColumnId(columns.len().min(spec.columns.len()) as u16);
        return Err(TableError::WrongType { table, column });
    }
    assert!(live.len() * 64 == CHUNK_ROWS, "each slot lives or not");
    for (encoded, at) in columns.iter().zip(&layout.columns) {
        let column = at.column;
        if encoded.kind() != kind_of(at.physical) || encoded.rows() != CHUNK_ROWS {
            return Err(TableError::WrongType { table, column });
        }
        if !at.nullable() && encoded.has_nulls() {
            return Err(TableError::NotNull { table, column });
        }
        check_values(spec, at, &encoded.stored())?;
    }
    Ok(())
}

/// Checks all values that a column has, those of dead rows too.
fn check_values(spec: &TableSpec, at: &ColumnLocation, stored: &Column<&[u8]>) -> Result<(), TableError> {
    let (table, column) = (spec.id, at.column);
    match spec.columns[column.index()].ty {
        SqlType::Decimal { precision, .. } => {
            let fits = |value: i128| Sealed::fits(value, precision);
            let all_fit = match at.physical {
                Physical::I64 => {
                    let mut values: Vec<i64> = Vec::with_capacity(stored.rows());
                    stored.integers_into(&Selection::All, &mut values);
                    values.iter().all(|value| fits((*value).into()))
                }
                _ => {
                    let mut values = Vec::with_capacity(stored.rows());
                    stored.wide_into(&Selection::All, &mut values);
                    values.iter().all(|value| fits(i128::from_le_bytes(*value)))
                }
            };
            if all_fit { Ok(()) } else { Err(TableError::OutOfRange { table, column }) }
        }
        SqlType::Bytea => {
            let mut longest = 0;
            stored.for_each_text(&Selection::All, |bytes| longest = longest.max(bytes.len()));
            match longest <= MAX_TEXT_BYTES {
                true => Ok(()),
                false => Err(TableError::TooLong { table, column, bytes: longest }),
            }
        }
        ty if ty.is_string() => {
            let (limit, mut checked) = (TextLimit::of(ty), Ok(()));
            stored.for_each_text(&Selection::All, |bytes| {
                if checked.is_ok() {
                    checked = check_text(bytes, limit, spec, column);
                }
            });
            checked
        }
        _ => Ok(()),
    }
}

fn check_text(bytes: &[u8], limit: TextLimit, spec: &TableSpec, column: ColumnId) -> Result<(), TableError> {
    let wrong = TableError::WrongType { table: spec.id, column };
    let Ok(text) = std::str::from_utf8(bytes) else { return Err(wrong) };
    match limit.fit(text) {
        Ok(stored) if stored.len() == text.len() => Ok(()),
        // CHAR is stored without trailing blanks.
        Ok(_) => Err(wrong),
        Err(unfit) => Err(unfit.error(spec.id, column, text)),
    }
}

/// Checks that the live rows belong to this partition.
fn check_places(
    spec: &TableSpec,
    Placement { column, partition, partitions }: Placement,
    at: &ColumnLocation,
    chunk: &Arc<FrozenChunk>,
    live: &[u64],
) -> Result<(), TableError> {
    let ty = spec.columns[column.index()].ty;
    let (arrow, mut places) = (arrow_type(ty), Vec::new());
    let keys = EncodedView::new(chunk, *at, &arrow).array(&Selection::Mask(live));
    batch::partitions_of(&keys, ty, partitions, &mut places);
    match places.iter().all(|place| *place == partition) {
        true => Ok(()),
        false => Err(TableError::WrongPartition { table: spec.id }),
    }
}
