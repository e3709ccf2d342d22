//! Which chunks an archive's files hold.

use albireo_base::SqlType;
use albireo_base::ids::CHUNK_ROWS;
use albireo_storage::TableView;

use crate::meta::{ColumnMeta, TableMeta};

/// Chunks that a file holds at most.
const MAX_CHUNKS: u32 = 16;
/// What a file should have at most, if one chunk has not more. Allocators keep what is not much greater for the
/// next file when it was read; memory fresh from the kernel more than halves the speed of reading.
const FILE_BYTES: usize = 16 << 20;

/// A file to be written or referred to.
pub(crate) struct Planned {
    pub(crate) table: usize,
    pub(crate) partition: u16,
    /// The number of its first chunk.
    pub(crate) first_chunk: u32,
    /// Positions in the table's view.
    pub(crate) chunks: Vec<usize>,
    /// It is of one chunk, which is frozen.
    pub(crate) is_frozen: bool,
}

impl TableMeta {
    /// Chunks of a file. From the columns alone, so that later archives cut alike.
    fn chunks_per_file(&self) -> u32 {
        let width = |column: &ColumnMeta| match column.ty {
            SqlType::Char(n) | SqlType::Varchar(n) => 4 + (n as usize).min(128),
            SqlType::Text | SqlType::Bytea => 64,
            _ => 16,
        };
        let row_bytes: usize = self.columns.iter().map(width).sum();
        ((FILE_BYTES / (row_bytes * CHUNK_ROWS).max(1)) as u32).clamp(1, MAX_CHUNKS)
    }
}

/// Cuts the chunks of all tables into files: one for each that is frozen, and one for the others of each range.
pub(crate) fn plan(tables: &[TableMeta], views: &[TableView]) -> Vec<Planned> {
    let mut plan: Vec<Planned> = Vec::new();
    for (table, (meta, view)) in tables.iter().zip(views).enumerate() {
        let (per_file, mut last): (_, Option<(u16, u32, usize)>) = (meta.chunks_per_file(), None);
        for index in 0..view.chunk_count() {
            let chunk = view.chunk(index);
            let (partition, first_chunk) = (chunk.partition().0, chunk.number());
            let range = first_chunk / per_file;
            let new = |is_frozen| Planned { table, partition, first_chunk, chunks: vec![index], is_frozen };
            match last {
                _ if chunk.frozen_rows() == Some(0) => {}
                _ if chunk.is_frozen() => plan.push(new(true)),
                Some((of, at, planned)) if (of, at) == (partition, range) => plan[planned].chunks.push(index),
                _ => {
                    last = Some((partition, range, plan.len()));
                    plan.push(new(false));
                }
            }
        }
    }
    plan
}
