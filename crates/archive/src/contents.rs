//! What the files of an archive hold, so that the next archive can refer to those whose chunks have not changed.
//!
//! A frozen chunk never changes: its id says which file has it, whichever of its rows have died since. Of others, within a
//! process a chunk's content says whether it changed. After a restart, what was loaded says it of files whose rows lie
//! again in the chunks that they came from: a loader packs rows, behind the frozen chunks, so all rows before a file's must
//! have been there, and of the file itself too unless it was the last.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use albireo_base::TableId;
use albireo_base::ids::CHUNK_ROWS;
use albireo_env::Env;
use albireo_storage::{ChunkContent, ChunkView, DatabaseSnapshot, TableView};

use crate::manifest::{FileEntry, Manifest, TableEntry};

/// Chunks of a file: their numbers, and what they hold.
pub(crate) type ChunkList = Vec<(u32, ChunkContent)>;

/// Which files hold what.
#[derive(Clone, Default, Debug)]
pub(crate) struct Known {
    /// Files and what their chunks hold, by table, partition and first chunk.
    pub(crate) ranges: HashMap<(u32, u16, u32), (ChunkList, FileEntry)>,
    /// Files of frozen chunks, by table, partition and the chunk's id.
    pub(crate) frozen: HashMap<(u32, u16, u64), Arc<FileEntry>>,
}

/// What an archive's files hold, for the next archive of the same process.
#[derive(Clone, Debug)]
pub struct Contents {
    manifest: Manifest,
    known: Known,
}

impl Contents {
    pub(crate) fn new(manifest: Manifest, known: Known) -> Self {
        Self { manifest, known }
    }

    /// Of the archive that was loaded into empty tables, file by file in the order of [`TableEntry::files_of`], when nothing
    /// had changed them since: `snapshot` is of that moment and covers them whole.
    ///
    /// # Panics
    /// The snapshot does not cover a table whole.
    pub fn loaded(manifest: &Manifest, snapshot: &Arc<DatabaseSnapshot>) -> Self {
        let mut known = Known::default();
        for table in &manifest.tables {
            let Some(view) = snapshot.table(TableId(table.id)) else { continue };
            for partition in 0..manifest.partitions {
                known.note_loaded(table, partition, &view);
            }
        }
        Self { manifest: manifest.clone(), known }
    }

    /// The archive.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The files of frozen chunks, by what no other frozen chunk of this process has ([`ChunkView::frozen_id`]).
    pub fn frozen_files(&self) -> impl Iterator<Item = (u64, &Arc<FileEntry>)> {
        self.known.frozen.iter().map(|((_, _, id), file)| (*id, file))
    }

    /// Nothing, if the archive is gone or another.
    pub(crate) fn if_still_there(&self, env: &Env, directory: &Path) -> Option<&Self> {
        let there = Manifest::read(env, directory, self.manifest.number).ok()?;
        (there == self.manifest).then_some(self)
    }

    /// The files of tables that are called as they were and have the same columns.
    pub(crate) fn of_same_tables(&self, now: &Manifest) -> Known {
        let same = |id: u32| {
            let pair = self.manifest.table(id).zip(now.table(id));
            pair.is_some_and(|(old, new)| {
                (&old.schema, &old.name, &old.columns) == (&new.schema, &new.name, &new.columns)
            })
        };
        let Known { mut ranges, mut frozen } = self.known.clone();
        ranges.retain(|key, _| same(key.0));
        frozen.retain(|key, _| same(key.0));
        Known { ranges, frozen }
    }
}

impl Known {
    /// The files of a partition of a table that was loaded.
    fn note_loaded(&mut self, table: &TableEntry, partition: u16, view: &TableView) {
        let chunks = (0..view.chunk_count()).map(|index| view.chunk(index));
        let chunks: Vec<_> = chunks.filter(|chunk| chunk.partition().0 == partition).collect();
        let contents: ChunkList = chunks.iter().map(|chunk| (chunk.number(), chunk.content())).collect();
        let files = table.files_of(partition);
        let mut rows_before = 0;
        for (n, file) in files.iter().enumerate() {
            if file.frozen.is_some() {
                // Frozen chunks come first: the nth file is of the nth chunk.
                if let Some(id) = chunks.get(n).and_then(ChunkView::frozen_id) {
                    self.frozen.insert((table.id, partition, id), Arc::new((*file).clone()));
                }
                rows_before += CHUNK_ROWS as u64;
                continue;
            }
            if let Some(held) = held(file, rows_before, n + 1 == files.len(), &contents) {
                let entry = FileEntry { chunks: held.len() as u32, ..(*file).clone() };
                self.ranges.insert((table.id, partition, file.first_chunk), (held.to_vec(), entry));
            }
            rows_before += file.rows;
        }
    }
}

/// The chunks that hold the rows of a file and no others, if they are those that it came from.
fn held<'c>(
    file: &FileEntry,
    rows_before: u64,
    is_last: bool,
    chunks: &'c [(u32, ChunkContent)],
) -> Option<&'c [(u32, ChunkContent)]> {
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
