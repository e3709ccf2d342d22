//! Writing an archive, step by step.
//!
//! ```text
//! begin ──► chunk, chunk, ... file synced ──► next file ... ──► directory synced, manifest renamed ──► done
//!             │ an error, or dropped: the new directory is removed, as far as the disk allows
//! ```
//!
//! A step writes at most one chunk, so that a simulation can put anything between two, and a thread of low
//! priority can keep to a bandwidth by pausing between them.

mod chunk;

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use albireo_env::{DiskLock, Env, WriteFile};
use albireo_storage::{DatabaseSnapshot, TableView};
use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};

use crate::columns::{batches_of, disk_type};
use crate::contents::{ChunkList, Contents, Known};
use crate::directory::{lock, numbers};
use crate::error::ArchiveError;
use crate::files::{archive_name, archive_path};
use crate::manifest::{
    ColumnEntry, FORMAT, FileEntry, LogPosition, Manifest, NAME, PLAIN_FORMAT, TableEntry, UNFINISHED_NAME,
    file_path,
};
use crate::meta::{ColumnMeta, TableMeta};
use crate::plan::{Planned, plan};

/// What is written at once.
const BUFFER_BYTES: usize = 1 << 20;
/// What is written to a file between two syncs: the disk's queue stays short for the log.
const SYNC_BYTES: u64 = 8 << 20;
/// The longest sleep before the flag for cancelling is looked at.
const NAP: Duration = Duration::from_millis(50);

/// What to archive besides the rows.
#[derive(Clone, Debug)]
pub struct Request {
    /// When the snapshot was taken, in microseconds since 1970.
    pub time_us: i64,
    /// How far the log had come then.
    pub log: LogPosition,
    /// Partitions of the database.
    pub partitions: u16,
    /// Schema and procedures, as the engine wants them back.
    pub catalog: serde_json::Value,
    /// The tables, all of which the snapshot covers whole.
    pub tables: Vec<TableMeta>,
    /// The most to write in a second; `None`: as fast as the disk takes it.
    pub bytes_per_second: Option<NonZeroU64>,
    /// Set by others to stop.
    pub cancel: Arc<AtomicBool>,
}

/// How far writing has come.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Progress {
    /// Rows in files, old and new.
    pub rows_done: u64,
    /// Rows in all.
    pub rows_total: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes in older archives' files that are referred to.
    pub bytes_reused: u64,
}

impl Progress {
    /// Bytes of the whole archive, from what it took so far.
    pub fn bytes_total_estimate(&self) -> u64 {
        let bytes = u128::from(self.bytes_written + self.bytes_reused);
        (bytes * u128::from(self.rows_total) / u128::from(self.rows_done.max(1))) as u64
    }
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// The archive.
    pub number: u64,
    /// Rows in it.
    pub rows: u64,
    /// Files written.
    pub files_written: u64,
    /// Files of older archives that are referred to.
    pub files_reused: u64,
    /// Bytes written to data files.
    pub bytes_written: u64,
    /// Bytes of the files that are referred to.
    pub bytes_reused: u64,
    /// From the beginning to the end.
    pub duration_ns: u64,
    /// What went afterwards, as whoever throws old archives away notes it.
    pub gone: Option<Gone>,
}

/// A moment that a database can be restored to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestorePoint {
    /// The last record in it.
    pub record: u64,
    /// When it was, in microseconds since 1970.
    pub time_us: i64,
}

/// Moments that a database can be restored to no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone {
    /// The first of them.
    pub from: RestorePoint,
    /// The first that is left.
    pub until: RestorePoint,
}

/// A complete archive.
#[derive(Debug)]
pub struct Written {
    /// What its files hold, for the next one.
    pub contents: Contents,
    /// What was done.
    pub report: Report,
}

/// What [`Writer::step`] did.
#[derive(Debug)]
pub enum Step {
    /// There is more to do, after a pause of this length if the bandwidth is to be kept.
    More {
        /// Zero without a limit.
        pause: Duration,
    },
    /// The archive is complete.
    Done(Box<Written>),
}

/// An archive being written. Dropped before it is done, it leaves no trace, as far as the disk allows.
pub struct Writer {
    env: Env,
    directory: PathBuf,
    /// Where the new archive lies.
    path: PathBuf,
    tables: Vec<TableView>,
    schemas: Vec<SchemaRef>,
    plan: Vec<Planned>,
    next: usize,
    open: Option<OpenFile>,
    /// Chunks done of the file that is next.
    chunks_done: usize,
    request: Request,
    manifest: Manifest,
    /// What older archives' files hold, and what this one's do.
    known: Known,
    holds: Known,
    progress: Progress,
    report: Report,
    started_ns: u64,
    /// When what was written so far may have been written.
    due_ns: u64,
    is_done: bool,
    snapshot: Arc<DatabaseSnapshot>,
    /// Held to the end.
    _lock: Box<dyn DiskLock>,
}

struct OpenFile {
    writer: FileWriter<BufWriter<Counted>>,
    path: PathBuf,
    name: String,
    rows: u64,
    synced_bytes: u64,
}

/// Counts and sums up what goes to a file.
struct Counted {
    file: Box<dyn WriteFile>,
    bytes: u64,
    crc32c: u32,
}

impl Write for Counted {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let count = self.file.write(data)?;
        self.crc32c = crc32c::crc32c_append(self.crc32c, &data[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Writes an archive and keeps to its bandwidth by sleeping. For a thread of its own, which should have
/// called [`albireo_env::lower_priority`].
///
/// # Errors
/// As [`Writer::step`].
pub fn write(
    env: &Env,
    directory: &Path,
    snapshot: Arc<DatabaseSnapshot>,
    request: Request,
    previous: Option<&Contents>,
    mut progress: impl FnMut(Progress),
) -> Result<Written, ArchiveError> {
    let cancel = Arc::clone(&request.cancel);
    let mut writer = Writer::begin(env, directory, snapshot, request, previous)?;
    loop {
        let mut pause = match writer.step()? {
            Step::More { pause } => pause,
            Step::Done(written) => return Ok(*written),
        };
        progress(writer.progress());
        while !pause.is_zero() && !cancel.load(Ordering::Relaxed) {
            env.clock.sleep(pause.min(NAP));
            pause = pause.saturating_sub(NAP);
        }
    }
}

impl Writer {
    /// Begins an archive in `directory`, which is made if it is not there.
    ///
    /// # Errors
    /// Another is being written there, or the disk refuses.
    ///
    /// # Panics
    /// The snapshot does not cover a table whole, or the table has other columns.
    pub fn begin(
        env: &Env,
        directory: &Path,
        snapshot: Arc<DatabaseSnapshot>,
        request: Request,
        previous: Option<&Contents>,
    ) -> Result<Self, ArchiveError> {
        env.disk.create_dir_all(directory).map_err(|error| ArchiveError::io(directory, error))?;
        let held = lock(env, directory)?;
        let number = numbers(env, directory)?.last().map_or(1, |last| last + 1);
        let known = previous.and_then(|previous| previous.if_still_there(env, directory));
        let tables: Vec<TableView> = request
            .tables
            .iter()
            .map(|table| snapshot.table(table.id).expect("the snapshot covers the tables of the archive"))
            .collect();
        let manifest = Manifest {
            format: PLAIN_FORMAT,
            number,
            time_us: request.time_us,
            log: request.log,
            partitions: request.partitions,
            catalog: request.catalog.clone(),
            tables: request.tables.iter().zip(&tables).map(|(meta, view)| meta.entry(view)).collect(),
        };
        let known = known.map(|known| known.of_same_tables(&manifest)).unwrap_or_default();
        let started_ns = env.clock.now();
        let writer = Self {
            env: env.clone(),
            directory: directory.to_owned(),
            path: archive_path(directory, number),
            schemas: request.tables.iter().map(TableMeta::arrow_schema).collect(),
            plan: plan(&request.tables, &tables),
            next: 0,
            open: None,
            chunks_done: 0,
            progress: Progress { rows_total: manifest.rows(), ..Progress::default() },
            report: Report { number, rows: manifest.rows(), ..Report::default() },
            manifest,
            tables,
            request,
            known,
            holds: Known::default(),
            started_ns,
            due_ns: started_ns,
            is_done: false,
            snapshot,
            _lock: held,
        };
        // From here on, dropping the writer removes the directory.
        env.disk.create_dir_all(&writer.path).map_err(|error| ArchiveError::io(&writer.path, error))?;
        Ok(writer)
    }

    /// Does the next piece of work.
    ///
    /// # Errors
    /// The disk is full or refuses, the archive was cancelled, or its snapshot was ended. Then the archive
    /// does not come to be; nothing is left to do but to drop the writer.
    ///
    /// # Panics
    /// It is done already.
    pub fn step(&mut self) -> Result<Step, ArchiveError> {
        assert!(!self.is_done, "the archive is complete");
        if self.request.cancel.load(Ordering::Relaxed) {
            return Err(ArchiveError::Cancelled);
        }
        if self.snapshot.is_cancelled() {
            return Err(ArchiveError::SnapshotEnded);
        }
        if self.next == self.plan.len() {
            self.finish()?;
            self.is_done = true;
            self.report.duration_ns = self.env.clock.now().saturating_sub(self.started_ns);
            let (manifest, holds) = (self.manifest.clone(), std::mem::take(&mut self.holds));
            let written = Written { contents: Contents::new(manifest, holds), report: self.report };
            return Ok(Step::Done(Box::new(written)));
        }
        let before = self.progress.bytes_written;
        let is_frozen = self.plan[self.next].is_frozen;
        match is_frozen {
            true => self.put_frozen()?,
            false if self.chunks_done == 0 && self.refer() => {}
            false => self.write_chunk()?,
        }
        Ok(Step::More { pause: self.pause(self.progress.bytes_written - before) })
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// How long to wait so that the bandwidth is kept after writing `bytes`.
    fn pause(&mut self, bytes: u64) -> Duration {
        let Some(rate) = self.request.bytes_per_second else { return Duration::ZERO };
        let now_ns = self.env.clock.now();
        let takes_ns = u128::from(bytes) * 1_000_000_000 / u128::from(rate.get());
        // What was not used before cannot be used later: the disk belongs to the log.
        self.due_ns = self.due_ns.max(now_ns).saturating_add(takes_ns as u64);
        Duration::from_nanos(self.due_ns - now_ns)
    }

    /// Refers to an older file instead of writing the next one, if its chunks are the same.
    fn refer(&mut self) -> bool {
        let planned = &self.plan[self.next];
        let key = self.key(planned);
        let contents = self.contents(planned);
        let Some((known, entry)) = self.known.ranges.remove(&key) else { return false };
        if known != contents || !is_there(&self.env, &file_path(&self.directory, &entry), entry.bytes) {
            return false;
        }
        self.count_reused(&entry);
        self.add(entry);
        true
    }

    fn count_reused(&mut self, entry: &FileEntry) {
        self.report.files_reused += 1;
        self.report.bytes_reused += entry.bytes;
        self.progress.bytes_reused += entry.bytes;
        self.progress.rows_done += entry.rows;
    }

    fn count_written(&mut self, bytes: u64) {
        self.report.files_written += 1;
        self.report.bytes_written += bytes;
    }

    fn key(&self, planned: &Planned) -> (u32, u16, u32) {
        (self.manifest.tables[planned.table].id, planned.partition, planned.first_chunk)
    }

    fn contents(&self, planned: &Planned) -> ChunkList {
        let view = &self.tables[planned.table];
        let chunks = planned.chunks.iter().map(|chunk| view.chunk(*chunk));
        chunks.map(|chunk| (chunk.number(), chunk.content())).collect()
    }

    /// Enters a file, old or new, into the manifest, and goes on to the next.
    fn add(&mut self, entry: FileEntry) {
        let planned = &self.plan[self.next];
        let (key, contents) = (self.key(planned), self.contents(planned));
        self.holds.ranges.insert(key, (contents, entry.clone()));
        self.enter(entry);
    }

    fn enter(&mut self, entry: FileEntry) {
        self.manifest.tables[self.plan[self.next].table].files.push(entry);
        self.next += 1;
        self.chunks_done = 0;
    }

    /// Writes the next chunk of the file that is next, and ends the file after its last.
    fn write_chunk(&mut self) -> Result<(), ArchiveError> {
        let planned = &self.plan[self.next];
        let (table, chunk) = (planned.table, planned.chunks[self.chunks_done]);
        let count = planned.chunks.len();
        let batches = batches_of(&self.tables[table].chunk(chunk), &self.schemas[table]);
        for batch in &batches {
            self.write_batch(batch)?;
        }
        self.chunks_done += 1;
        if self.chunks_done < count {
            return Ok(());
        }
        match self.open.take() {
            Some(file) => self.end_file(file),
            // All rows of the range are dead.
            None => {
                (self.next, self.chunks_done) = (self.next + 1, 0);
                Ok(())
            }
        }
    }

    fn write_batch(&mut self, batch: &RecordBatch) -> Result<(), ArchiveError> {
        let before = self.open.as_ref().map_or(0, OpenFile::bytes);
        let file = match self.open.take() {
            Some(file) => file,
            None => self.create()?,
        };
        let file = self.open.insert(file);
        file.write(batch)?;
        self.progress.bytes_written += file.bytes() - before;
        self.progress.rows_done += batch.num_rows() as u64;
        Ok(())
    }

    fn create(&self) -> Result<OpenFile, ArchiveError> {
        let planned = &self.plan[self.next];
        let id = self.manifest.tables[planned.table].id;
        let name = format!("t{id}-p{}-c{}.arrow", planned.partition, planned.first_chunk);
        let path = self.path.join(&name);
        let file = self.env.disk.create(&path).map_err(|error| ArchiveError::io(&path, error))?;
        let counted = BufWriter::with_capacity(BUFFER_BYTES, Counted { file, bytes: 0, crc32c: 0 });
        let writer = FileWriter::try_new(counted, &self.schemas[planned.table])
            .map_err(|error| writing_error(&path, error))?;
        Ok(OpenFile { writer, path, name, rows: 0, synced_bytes: 0 })
    }

    fn end_file(&mut self, file: OpenFile) -> Result<(), ArchiveError> {
        let (rows, name, before) = (file.rows, file.name.clone(), file.bytes());
        let counted = file.end()?;
        let planned = &self.plan[self.next];
        let changed = self.contents(planned).iter().map(|(_, content)| content.changed().0).max();
        let entry = FileEntry {
            path: format!("{}/{name}", archive_name(self.manifest.number)),
            partition: planned.partition,
            first_chunk: planned.first_chunk,
            chunks: planned.chunks.len() as u32,
            rows,
            bytes: counted.bytes,
            crc32c: counted.crc32c,
            changed: changed.unwrap_or(0),
            frozen: None,
        };
        self.progress.bytes_written += counted.bytes - before;
        self.count_written(counted.bytes);
        self.add(entry);
        Ok(())
    }

    /// Makes the archive exist: I-1.
    fn finish(&mut self) -> Result<(), ArchiveError> {
        if self.manifest.is_any_frozen() {
            self.manifest.format = FORMAT;
        }
        let disk = &self.env.disk;
        let sync = |path: &Path| disk.sync_directory(path).map_err(|error| ArchiveError::io(path, error));
        sync(&self.path)?;
        sync(&self.directory)?;
        if let Some(parent) = self.directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            sync(parent)?;
        }
        let (unfinished, path) = (self.path.join(UNFINISHED_NAME), self.path.join(NAME));
        let put = || {
            let mut file = disk.create(&unfinished)?;
            file.write_all(&self.manifest.encode())?;
            file.sync()
        };
        put().map_err(|error| ArchiveError::io(&unfinished, error))?;
        disk.rename(&unfinished, &path).map_err(|error| ArchiveError::io(&path, error))?;
        sync(&self.path)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        self.open = None;
        // The manifest first: without it there is no archive, whatever else is left.
        let _ = self.env.disk.remove_file(&self.path.join(NAME));
        let _ = self.env.disk.remove_dir_all(&self.path);
    }
}

impl OpenFile {
    /// Bytes written, those in the buffer included.
    fn bytes(&self) -> u64 {
        let buffered = self.writer.get_ref();
        buffered.get_ref().bytes + buffered.buffer().len() as u64
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), ArchiveError> {
        self.writer.write(batch).map_err(|error| writing_error(&self.path, error))?;
        self.rows += batch.num_rows() as u64;
        let counted = self.writer.get_mut().get_mut();
        if counted.bytes - self.synced_bytes >= SYNC_BYTES {
            counted.file.sync().map_err(|error| ArchiveError::io(&self.path, error))?;
            self.synced_bytes = counted.bytes;
        }
        Ok(())
    }

    /// Writes the footer; returns when the file is on stable storage.
    fn end(mut self) -> Result<Counted, ArchiveError> {
        self.writer.finish().map_err(|error| writing_error(&self.path, error))?;
        let buffered = self.writer.into_inner().map_err(|error| writing_error(&self.path, error))?;
        let mut counted =
            buffered.into_inner().map_err(|error| ArchiveError::io(&self.path, error.into_error()))?;
        counted.file.sync().map_err(|error| ArchiveError::io(&self.path, error))?;
        Ok(counted)
    }
}

fn writing_error(path: &Path, error: ArrowError) -> ArchiveError {
    match error {
        ArrowError::IoError(_, source) => ArchiveError::io(path, source),
        other => panic!("a batch with its schema is written: {other}"),
    }
}

/// Whether a file of this length is there.
fn is_there(env: &Env, path: &Path, bytes: u64) -> bool {
    env.disk.open(path).is_ok_and(|file| file.len().is_ok_and(|length| length == bytes))
}

impl TableMeta {
    fn entry(&self, view: &TableView) -> TableEntry {
        let schema = view.arrow_schema();
        assert_eq!(schema.fields().len(), self.columns.len(), "table {} has other columns", self.name);
        let entry = |column: &ColumnMeta| ColumnEntry {
            name: column.name.clone(),
            ty: column.ty.to_string(),
            nullable: column.nullable,
        };
        TableEntry {
            id: self.id.0,
            schema: self.schema.clone(),
            name: self.name.clone(),
            columns: self.columns.iter().map(entry).collect(),
            rows: view.row_count(),
            files: Vec::new(),
        }
    }

    /// The schema of the table's files.
    fn arrow_schema(&self) -> SchemaRef {
        let field = |column: &ColumnMeta| {
            let metadata = HashMap::from([("albireo.type".to_owned(), column.ty.to_string())]);
            Field::new(&column.name, disk_type(column.ty), column.nullable).with_metadata(metadata)
        };
        let fields: Vec<Field> = self.columns.iter().map(field).collect();
        Arc::new(Schema::new_with_metadata(fields, self.arrow_metadata(PLAIN_FORMAT)))
    }

    /// What each file of the table says of it.
    pub(crate) fn arrow_metadata(&self, format: u32) -> HashMap<String, String> {
        HashMap::from([
            ("albireo.format".to_owned(), format.to_string()),
            ("albireo.schema".to_owned(), self.schema.clone()),
            ("albireo.table".to_owned(), self.name.clone()),
            ("albireo.table_id".to_owned(), self.id.to_string()),
        ])
    }
}
