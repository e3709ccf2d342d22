//! From an archive to tables.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use albireo_archive::{Contents, LogPosition, Manifest, TableEntry, list, open, open_frozen};
use albireo_base::{PartitionId, SqlError, SqlState};
use albireo_execute::errors::Explainer;
use albireo_sql::TableDef;
use albireo_storage::{Loader, SnapshotScope, Table};
use parking_lot::Mutex;

use super::checkpoint::archive_error;
use super::progress::RecoveryPhase;
use super::recovery::{How, RecoveryReport};
use crate::Database;
use crate::ddl::{handle, spec_of};
use crate::routines::Library;
use crate::stored::Definitions;

/// An empty table of one partition, and what is to be loaded into it.
struct Job<'m> {
    def: Arc<TableDef>,
    entry: &'m TableEntry,
    partition: PartitionId,
    table: Mutex<Option<Table>>,
}

/// An archive that is being loaded.
struct Loading<'a, 'r> {
    directory: &'a Path,
    how: &'a How<'a, 'r>,
    /// Bytes of files that are done, and of all.
    done: AtomicU64,
    total: u64,
}

/// What was loaded.
pub(super) struct Loaded {
    /// The archive, if there is one.
    pub(super) archive: Option<Manifest>,
    /// All whose manifests are sound, newest first, this one included.
    pub(super) others: Vec<ArchivePoint>,
}

/// Where an archive stands.
pub(super) struct ArchivePoint {
    pub(super) number: u64,
    /// When it was taken, in microseconds since 1970.
    pub(super) time_us: i64,
    /// How far the log had come.
    pub(super) log: LogPosition,
}

impl ArchivePoint {
    fn of(manifest: &Manifest) -> Self {
        Self { number: manifest.number, time_us: manifest.time_us, log: manifest.log }
    }
}

impl Database {
    /// Loads the newest archive that can be loaded and has nothing that is not to be there.
    ///
    /// # Errors
    /// 58030 if files cannot be read; XX001 if there are such archives and none can be used; 22023 if the
    /// database has another number of partitions.
    pub(super) fn load_archive(
        &self,
        directory: &Path,
        how: &How<'_, '_>,
        report: &mut RecoveryReport,
    ) -> Result<Loaded, SqlError> {
        let listing = list(&self.inner.env, directory).map_err(archive_error)?;
        let others = listing.complete.iter().map(ArchivePoint::of).collect();
        let mut wrong: Vec<(u64, String)> =
            listing.unreadable.iter().map(|other| (other.number, other.error.to_string())).collect();
        let fits = |manifest: &Manifest| how.target.takes_archive(manifest);
        for manifest in listing.complete.into_iter().filter(fits) {
            let (now, then) = (self.partitions(), manifest.partitions);
            if now != then {
                return Err(super::recovery::other_partitions(now, then));
            }
            match self.load_manifest(directory, &manifest, how) {
                Ok(bytes) => {
                    self.know_archived(&manifest);
                    // An older one that cannot be used does no harm.
                    wrong.retain(|(number, _)| *number > manifest.number);
                    report.archive = Some(manifest.number);
                    report.archive_bytes = bytes;
                    report.archive_rows = manifest.rows();
                    report.left_out = wrong.into_iter().map(|(_, what)| what).collect();
                    return Ok(Loaded { archive: Some(manifest), others });
                }
                // Nothing is wrong with the archive.
                Err(error) if error.state() == SqlState::OUT_OF_MEMORY => return Err(error),
                Err(error) => {
                    wrong.push((manifest.number, error.to_string()));
                    self.forget_all();
                }
            }
        }
        match wrong.iter().max_by_key(|(number, _)| *number) {
            None => Ok(Loaded { archive: None, others }),
            Some((number, what)) => {
                let text = format!("no archive can be loaded; the newest is {number}: {what}");
                Err(SqlError::new(SqlState::DATA_CORRUPTED, text)
                    .with_hint("Restore a backup; `albireo verify` says what is damaged."))
            }
        }
    }

    /// The next archive refers to files of the one that was loaded, if nothing changes what is in them.
    fn know_archived(&self, manifest: &Manifest) {
        // Without a snapshot everything is written again.
        if let Ok(snapshot) = self.inner.partitions.exclusively(|all| all.snapshot(&SnapshotScope::All)) {
            let contents = Contents::loaded(manifest, &snapshot);
            self.inner.evicting.note_archived(&contents);
            *self.inner.archived.lock() = Some(contents);
        }
    }

    /// Makes the database, which is empty, what an archive says; the bytes read.
    fn load_manifest(
        &self,
        directory: &Path,
        manifest: &Manifest,
        how: &How<'_, '_>,
    ) -> Result<u64, SqlError> {
        let (definitions, catalog) = Definitions::from_json(&manifest.catalog)?;
        let catalog = Arc::new(catalog);
        let mut jobs = Vec::new();
        for def in catalog.tables() {
            let entry = manifest.table(def.id.0).ok_or_else(|| {
                let text = format!("the archive lacks table \"{}\"", def.name);
                SqlError::new(SqlState::DATA_CORRUPTED, text)
            })?;
            let spec = spec_of(def);
            let layout = Table::layout_of(&spec).map_err(crate::errors::layout)?;
            let empty = self.inner.partitions.exclusively(|all| all.empty_tables(spec, &layout));
            jobs.extend(empty.into_iter().map(|(partition, table)| {
                let (def, table) = (Arc::clone(def), Mutex::new(Some(table)));
                Job { def, entry, partition, table }
            }));
        }
        // The largest first, so that threads end together.
        jobs.sort_by_key(|job| std::cmp::Reverse(job.entry.rows));
        let loading = Loading { directory, how, done: AtomicU64::new(0), total: manifest.bytes() };
        self.run_jobs(&loading, &jobs)?;
        self.inner.partitions.exclusively(|all| {
            for Job { def, partition, table, .. } in jobs {
                let table = table.into_inner().expect("loaded");
                all.put_table(handle(&def), partition, table);
            }
        });
        *self.inner.catalog.write() = Arc::clone(&catalog);
        let layouts = Arc::new(self.layouts(&catalog));
        let library = Library::restored(catalog, layouts, self.inner.env.clock.clone(), &definitions)?;
        *self.inner.routines.write() = Arc::new(library);
        Ok(manifest.bytes())
    }

    /// Loads all tables, on as many threads as may be.
    fn run_jobs(&self, loading: &Loading<'_, '_>, jobs: &[Job<'_>]) -> Result<(), SqlError> {
        let next = AtomicUsize::new(0);
        let failed: Mutex<Option<SqlError>> = Mutex::default();
        let work = || {
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                if failed.lock().is_some() {
                    return;
                }
                if let Err(error) = crate::errors::or_unreadable(|| self.run_job(loading, job)) {
                    failed.lock().get_or_insert(error);
                }
            }
        };
        albireo_env::scope(|scope| {
            for _ in 1..loading.how.threads.min(jobs.len()) {
                // Without another thread this one does all.
                let _ = albireo_env::spawn_scoped(scope, "albireo-load", work);
            }
            work();
        });
        failed.into_inner().map_or(Ok(()), Err)
    }

    fn run_job(&self, loading: &Loading<'_, '_>, job: &Job<'_>) -> Result<(), SqlError> {
        let Job { def, entry, partition, table } = job;
        let empty = table.lock().take().expect("each job is done once");
        let key_of = |_, _, _| None;
        let catalog = self.catalog();
        let explain = |error| {
            let error = Explainer { catalog: &catalog, key_of: &key_of }.table(error);
            if error.state() == SqlState::OUT_OF_MEMORY {
                return error.with_hint("Open the database with a larger data_limit_bytes.");
            }
            let text = format!("table \"{}\" of the archive: {}", def.name, error.message());
            SqlError::new(SqlState::DATA_CORRUPTED, text)
        };
        let (env, directory) = (&self.inner.env, loading.directory);
        let mut loader = Loader::new(empty);
        let files = entry.files_of(partition.0);
        let mut from = 0;
        for file in &files {
            if file.frozen.is_some() {
                let chunk = open_frozen(env, directory, file).map_err(archive_error)?;
                loader.adopt(chunk).map_err(explain)?;
            } else {
                for batch in open(env, directory, file).map_err(archive_error)? {
                    loader.append(&batch.map_err(archive_error)?).map_err(explain)?;
                }
            }
            // Each is looked at once.
            let came = || {
                let came = loader.cold_chunks(from, u32::MAX).0;
                from = came.last().map_or(from, |last| last.number() + 1);
                came
            };
            if let Some(chunks) = self.leaving(def.id, came, (directory, &files)) {
                loader.evict(chunks);
            }
            let done = loading.done.fetch_add(file.bytes, Ordering::Relaxed) + file.bytes;
            loading.how.reporter.report(RecoveryPhase::Archive, done, loading.total);
        }
        let mut loaded = loader.finish().map_err(explain)?;
        // Indexes have read their columns of what had left.
        if let Some(chunks) = self.leaving(def.id, || loaded.cold_chunks(0, u32::MAX).0, (directory, &files))
        {
            loaded.evict(chunks);
        }
        *table.lock() = Some(loaded);
        Ok(())
    }

    /// Takes back what an archive that could not be loaded has left.
    fn forget_all(&self) {
        self.inner.partitions.exclusively(|all| all.drop_all_tables());
        let catalog = Arc::new(albireo_sql::Catalog::new());
        *self.inner.catalog.write() = Arc::clone(&catalog);
        *self.inner.routines.write() = Arc::new(Library::new(catalog, self.inner.env.clock.clone()));
    }
}
