//! Writing a frozen chunk, or naming the file that has it.

use std::sync::Arc;

use super::{SYNC_BYTES, Writer, is_there};
use albireo_storage::{ColumnSet, ReadAhead};

use crate::error::ArchiveError;
use crate::files::archive_name;
use crate::frozen::file::{encode, parts_of};
use crate::invalid::InvalidRows;
use crate::manifest::{FileEntry, FrozenEntry, PartEntry, file_path};

impl Writer {
    /// Enters the frozen chunk that is next: by an older archive's file, or else by one that is written now.
    pub(super) fn put_frozen(&mut self) -> Result<(), ArchiveError> {
        let planned = &self.plan[self.next];
        let chunk = self.tables[planned.table].chunk(planned.chunks[0]);
        let live = chunk.live();
        let rows = live.as_ref().map_or(chunk.slots(), |live| live.count_set_bits()) as u64;
        if rows == 0 {
            self.next += 1;
            return Ok(());
        }
        let id = chunk.frozen_id().expect("it is frozen");
        let key = (self.manifest.tables[planned.table].id, planned.partition, id);
        let (invalid, changed) = (InvalidRows::of(live.as_ref()), chunk.content().changed().0);
        let (first_chunk, slots) = (planned.first_chunk, chunk.slots() as u32);
        let is_there =
            |entry: &Arc<FileEntry>| is_there(&self.env, &file_path(&self.directory, entry), entry.bytes);
        let known = self.known.frozen.remove(&key).filter(is_there);
        let entry = match known {
            Some(entry) => {
                let entry = Arc::unwrap_or_clone(entry);
                let frozen = entry.frozen.map(|frozen| FrozenEntry { invalid, ..frozen });
                let entry = FileEntry { first_chunk, rows, changed, frozen, ..entry };
                self.count_reused(&entry);
                entry
            }
            None => {
                let file = self.write_frozen()?;
                self.progress.rows_done += rows;
                FileEntry {
                    path: file.path,
                    partition: key.1,
                    first_chunk,
                    chunks: 1,
                    rows,
                    bytes: file.bytes,
                    crc32c: file.crc32c,
                    changed,
                    frozen: Some(FrozenEntry { slots, invalid, parts: file.parts }),
                }
            }
        };
        self.holds.frozen.insert(key, Arc::new(entry.clone()));
        self.enter(entry);
        Ok(())
    }

    /// Writes the file of the chunk that is next.
    fn write_frozen(&mut self) -> Result<NewFile, ArchiveError> {
        let planned = &self.plan[self.next];
        let chunk = self.tables[planned.table].chunk(planned.chunks[0]);
        let table = &self.request.tables[planned.table];
        let fetched = chunk.fetch(ColumnSet::ALL, &mut ReadAhead::default())?;
        let content = encode(&fetched.as_ref().map_or(chunk, |fetched| chunk.reading(fetched)), table);
        let name = format!("t{}-p{}-c{}.frozen.arrow", table.id, planned.partition, planned.first_chunk);
        let path = self.path.join(&name);
        let write = || {
            let mut file = self.env.disk.create(&path)?;
            for piece in content.chunks(SYNC_BYTES as usize) {
                file.write_all(piece)?;
                file.sync()?;
            }
            Ok(())
        };
        write().map_err(|error| ArchiveError::io(&path, error))?;
        let bytes = content.len() as u64;
        self.progress.bytes_written += bytes;
        self.count_written(bytes);
        let path = format!("{}/{name}", archive_name(self.manifest.number));
        Ok(NewFile { path, bytes, crc32c: crc32c::crc32c(&content), parts: parts_of(&content) })
    }
}

/// A file that was written whole.
struct NewFile {
    path: String,
    bytes: u64,
    crc32c: u32,
    parts: Vec<PartEntry>,
}
