//! What the files of an archive hold, so that the next archive can refer to those whose chunks have not changed.
//!
//! Within a process a chunk's content says whether it changed. After a restart, what was loaded says it of
//! files whose rows lie again in the chunks that they came from: a loader packs rows, so all rows before a
//! file's must have been there, and of the file itself too unless it was the last.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use albireo_base::TableId;
use albireo_base::ids::CHUNK_ROWS;
use albireo_env::Env;
use albireo_storage::{ChunkContent, DatabaseSnapshot, TableView};

use crate::manifest::{FileEntry, Manifest};

/// Files and what their chunks hold, by table, partition and first chunk.
pub(crate) type Ranges = HashMap<(u32, u16, u32), (Vec<ChunkContent>, FileEntry)>;

/// What an archive's files hold, for the next archive of the same process.
#[derive(Clone, Debug)]
pub struct Contents {
    manifest: Manifest,
    ranges: Ranges,
}

impl Contents {
    pub(crate) fn new(manifest: Manifest, ranges: Ranges) -> Self {
        Self { manifest, ranges }
    }

    /// Of the archive that was loaded into empty tables, file by file in its order, when nothing had changed
    /// them since: `snapshot` is of that moment and covers them whole.
    ///
    /// # Panics
    /// The snapshot does not cover a table whole.
    pub fn loaded(manifest: &Manifest, snapshot: &Arc<DatabaseSnapshot>) -> Self {
        let mut ranges = Ranges::new();
        for table in &manifest.tables {
            let Some(view) = snapshot.table(TableId(table.id)) else { continue };
            for partition in 0..manifest.partitions {
                let files: Vec<_> = table.files.iter().filter(|file| file.partition == partition).collect();
                let chunks = chunks_of(&view, partition);
                let mut rows_before = 0;
                for (n, file) in files.iter().enumerate() {
                    if let Some(held) = held(file, rows_before, n + 1 == files.len(), &chunks) {
                        let entry = FileEntry { chunks: held.len() as u32, ..(*file).clone() };
                        ranges.insert((table.id, partition, file.first_chunk), (held.to_vec(), entry));
                    }
                    rows_before += file.rows;
                }
            }
        }
        Self { manifest: manifest.clone(), ranges }
    }

    /// The archive.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Nothing, if the archive is gone or another.
    pub(crate) fn if_still_there(&self, env: &Env, directory: &Path) -> Option<&Self> {
        let there = Manifest::read(env, directory, self.manifest.number).ok()?;
        (there == self.manifest).then_some(self)
    }

    /// The files of tables that are called as they were and have the same columns.
    pub(crate) fn of_same_tables(&self, now: &Manifest) -> Ranges {
        let same = |id: u32| {
            let pair = self.manifest.table(id).zip(now.table(id));
            pair.is_some_and(|(old, new)| {
                (&old.schema, &old.name, &old.columns) == (&new.schema, &new.name, &new.columns)
            })
        };
        let kept = self.ranges.iter().filter(|(key, _)| same(key.0));
        kept.map(|(key, range)| (*key, range.clone())).collect()
    }
}

/// The contents of a partition's chunks, from the first on.
fn chunks_of(view: &TableView, partition: u16) -> Vec<ChunkContent> {
    let chunks = (0..view.chunk_count()).map(|index| view.chunk(index));
    chunks.filter(|chunk| chunk.partition().0 == partition).map(|chunk| chunk.content()).collect()
}

/// The chunks that hold the rows of a file and no others, if they are those that it came from.
fn held<'c>(
    file: &FileEntry,
    rows_before: u64,
    is_last: bool,
    chunks: &'c [ChunkContent],
) -> Option<&'c [ChunkContent]> {
    let first = file.first_chunk as usize;
    let rows_of = |chunks: usize| chunks as u64 * CHUNK_ROWS as u64;
    if rows_before != rows_of(first) {
        return None;
    }
    match is_last {
        true => chunks.get(first..),
        false if file.rows == rows_of(file.chunks as usize) => {
            chunks.get(first..first + file.chunks as usize)
        }
        false => None,
    }
}
