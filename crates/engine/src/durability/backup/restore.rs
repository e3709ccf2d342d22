//! From a backup to a database's directory.
//!
//! All is looked at before anything is made, and everything that is wrong is told at once.

use std::path::{Path, PathBuf};

use albireo_archive::list;
use albireo_base::{SqlError, SqlState};
use albireo_env::{Env, available_memory_bytes};
use albireo_redo::{Control, LogReader, SECTOR_BYTES, segment_number};

use super::source::Backup;
use super::target::{find_empty, make_directory};
use super::transfer::{Transfer, failed};
use super::{BackupManifest, BackupOptions, BackupProgress, BackupStep};
use crate::durability::checkpoint::archive_error;
use crate::durability::directory::{RESTORING_NAME, controls_of, sync_names};
use crate::durability::recovery::damaged;
use crate::{Config, Database, Eviction, RecoveryReport};

/// How a backup is restored.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// Copying: its bandwidth, and the flag that stops it.
    pub copy: BackupOptions,
    /// Whether the database is opened afterwards, to see that it can be.
    pub opens: bool,
    /// How it is opened; the number of partitions is the backup's.
    pub config: Config,
    /// Memory that may be used, in bytes; `None`: what the machine has available. Looked at if it is opened.
    pub memory_bytes: Option<u64>,
}

impl Default for RestoreOptions {
    /// At full speed, and opened.
    fn default() -> Self {
        let (copy, config) = (BackupOptions::default(), Config::default());
        Self { copy, opens: true, config, memory_bytes: None }
    }
}

/// What restoring did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RestoreReport {
    /// What the backup consists of.
    pub manifest: BackupManifest,
    /// What opening the database did, if it was opened.
    pub recovery: Option<RecoveryReport>,
    /// Nanoseconds that checking and copying took.
    pub copy_ns: u64,
    /// Nanoseconds that opening took.
    pub open_ns: u64,
}

/// Makes `directory`, which is not there or empty, the database whose backup is at `backup`. Until all is there
/// it cannot be opened.
///
/// # Errors
/// Everything that prevents it, all at once, before anything was made: no backup, one that is damaged or of
/// another format, a directory that is not empty, too little room or memory; one reason on each line of the
/// detail. 58030 if the disk fails; XX001 if what was restored cannot be opened or is not what the backup says.
pub fn restore(
    backup: impl AsRef<Path>,
    directory: impl AsRef<Path>,
    options: &RestoreOptions,
    env: &Env,
    mut progress: impl FnMut(BackupProgress),
) -> Result<RestoreReport, SqlError> {
    let directory = directory.as_ref();
    let start_ns = env.clock.now();
    let backup = check(backup.as_ref(), directory, options, env, &mut progress)?;
    copy(&backup, directory, options, env, &mut progress)?;
    let copied_ns = env.clock.now();
    let recovery = match options.opens {
        true => Some(open(backup.manifest(), directory, options, env)?),
        false => None,
    };
    Ok(RestoreReport {
        manifest: backup.manifest().clone(),
        recovery,
        copy_ns: copied_ns.saturating_sub(start_ns),
        open_ns: env.clock.now().saturating_sub(copied_ns),
    })
}

/// Looks at everything; the backup, if nothing is wrong.
fn check(
    path: &Path,
    directory: &Path,
    options: &RestoreOptions,
    env: &Env,
    progress: &mut dyn FnMut(BackupProgress),
) -> Result<Backup, SqlError> {
    let mut wrong = Vec::new();
    wrong.extend(find_empty(env, directory).err());
    let backup = match Backup::open(path, env) {
        Ok(backup) => {
            wrong.extend(check_room(backup.manifest(), directory, options, env).err());
            if options.opens {
                wrong.extend(check_memory(backup.manifest(), options).err());
            }
            wrong.extend(check_formats(&backup));
            let faults = backup.check(progress);
            wrong.extend(
                faults.iter().map(|fault| SqlError::new(SqlState::DATA_CORRUPTED, fault.to_string())),
            );
            Some(backup)
        }
        Err(error) => {
            wrong.push(error);
            None
        }
    };
    match (backup, wrong.len()) {
        (Some(backup), 0) => Ok(backup),
        (_, 1) => Err(wrong.remove(0)),
        (_, count) => {
            let text = format!("\"{}\" cannot be restored, for {count} reasons", path.display());
            let reasons: Vec<&str> = wrong.iter().map(SqlError::message).collect();
            let mut error = SqlError::new(wrong[0].state(), text).with_detail(reasons.join("\n"));
            if let Some(hint) = wrong.iter().find_map(SqlError::hint) {
                error = error.with_hint(hint);
            }
            Err(error)
        }
    }
}

/// 53100 if the files will not fit.
fn check_room(
    manifest: &BackupManifest,
    directory: &Path,
    options: &RestoreOptions,
    env: &Env,
) -> Result<(), SqlError> {
    let is_there = |path: &&Path| env.disk.read_dir(path).is_ok();
    let here = Path::new(".");
    let above = directory.ancestors().map(|path| if path.as_os_str().is_empty() { here } else { path });
    let place = above.into_iter().find(|path| is_there(path)).unwrap_or(here);
    let free = env.disk.free_bytes(place).map_err(|error| failed("look at", place, &error))?;
    // A database that is open has a segment of the log to go on with.
    let segment = if options.opens { options.config.log_segment_bytes } else { 0 };
    let controls = controls_of(directory).len() as u64 * SECTOR_BYTES as u64;
    let needed = manifest.bytes().saturating_add(segment).saturating_add(controls);
    if free >= needed {
        return Ok(());
    }
    let text = format!(
        "the files need {needed} bytes, and there are {free} free where \"{}\" is to be",
        directory.display()
    );
    Err(SqlError::new(SqlState::DISK_FULL, text).with_hint("Make room, or name another directory."))
}

/// 53200 if the tables will not fit into memory. Rows that may leave it take no more than the limit; whether those that
/// have to stay fit, opening the database says.
pub(super) fn check_memory(manifest: &BackupManifest, options: &RestoreOptions) -> Result<(), SqlError> {
    let limit = options.config.data_limit_bytes;
    let needed = match options.config.eviction {
        Eviction::Off => manifest.memory_bytes,
        Eviction::Auto | Eviction::To(_) => manifest.memory_bytes.min(limit),
    };
    if needed > limit {
        let text = format!("the tables need {needed} bytes of memory, and the limit is {limit}");
        return Err(SqlError::new(SqlState::OUT_OF_MEMORY, text)
            .with_hint("Raise data_limit_bytes, or restore without opening."));
    }
    // Where the system does not say, opening will.
    let Some(available) = options.memory_bytes.or_else(available_memory_bytes) else { return Ok(()) };
    if needed <= available {
        return Ok(());
    }
    let text = format!("the tables need {needed} bytes of memory, and {available} are available");
    Err(SqlError::new(SqlState::OUT_OF_MEMORY, text)
        .with_hint("Free memory, use a machine that has more, or restore without opening (--no-open)."))
}

/// Whether the archive and the log in it are of formats that this program reads.
fn check_formats(backup: &Backup) -> Vec<SqlError> {
    let (env, root) = (backup.env(), backup.path());
    let listing = list(env, &root.join("archive"));
    let archive = listing.map(|mut listing| listing.unreadable.pop().map(|archive| archive.error));
    let archive = archive.unwrap_or_else(Some).map(archive_error);
    let log = LogReader::open(env.disk.clone(), &root.join("log"), 0, None).err().map(damaged);
    archive.into_iter().chain(log).collect()
}

/// Copies all files; until that is done the directory says that it is not.
fn copy(
    backup: &Backup,
    directory: &Path,
    options: &RestoreOptions,
    env: &Env,
    progress: &mut dyn FnMut(BackupProgress),
) -> Result<(), SqlError> {
    let (disk, manifest) = (&env.disk, backup.manifest());
    let mark = directory.join(RESTORING_NAME);
    let begin = || {
        disk.create_dir_all(directory)?;
        disk.create(&mark)?.sync()?;
        disk.sync_directory(directory)?;
        sync_names(&**disk, directory)
    };
    begin().map_err(|error| failed("create", &mark, &error))?;
    let mut directories: Vec<PathBuf> = Vec::new();
    let mut transfer = Transfer::new(env, &options.copy, BackupStep::Copy, manifest.bytes(), progress);
    for file in &manifest.files {
        let (from, to) = (backup.path().join(&file.path), directory.join(&file.path));
        make_directory(env, &mut directories, &to)?;
        let source = backup.env().disk.open(&from).map_err(|error| failed("read", &from, &error))?;
        let mut reading = transfer.read(source, file.bytes);
        reading.copy_to(&**disk, &to).map_err(|error| failed("copy", &from, &error))?;
        if reading.crc32c() != file.crc32c {
            let text = format!("{} changed while it was copied", from.display());
            return Err(SqlError::new(SqlState::DATA_CORRUPTED, text));
        }
    }
    let control = control(backup)?;
    let end = || {
        for path in directories.iter().rev() {
            disk.sync_directory(path)?;
        }
        disk.create_dir_all(&directory.join("log"))?;
        control.write(&**disk, &controls_of(directory)).map_err(|failure| failure.source)?;
        disk.sync_directory(directory)?;
        disk.remove_file(&mark)?;
        disk.sync_directory(directory)
    };
    end().map_err(|error| failed("finish", directory, &error))
}

/// The control file of what is restored: it has no record behind the backup's last.
fn control(backup: &Backup) -> Result<Control, SqlError> {
    let (manifest, root) = (backup.manifest(), backup.path());
    let listing = list(backup.env(), &root.join("archive")).map_err(archive_error)?;
    let archived = listing.complete.first().map_or(1, |archive| archive.log.next_record);
    let names = manifest.files.iter().map(|file| Path::new(&file.path));
    let segments = names.filter(|path| path.starts_with("log")).filter_map(segment_number);
    Ok(Control {
        log_id: manifest.log,
        generation: 1,
        is_closed: true,
        sequence: manifest.last_frame,
        ordinal: archived.saturating_sub(1) + manifest.records,
        segment: segments.max().unwrap_or(0),
        time_us: manifest.time_us,
    })
}

/// Opens what was restored, and compares it with what the backup says.
fn open(
    manifest: &BackupManifest,
    directory: &Path,
    options: &RestoreOptions,
    env: &Env,
) -> Result<RecoveryReport, SqlError> {
    let config = Config { partitions: manifest.partitions, ..options.config.clone() };
    let database = Database::open_in(directory, config, env.clone())?;
    let report = database.recovery();
    let found = (report.archive, report.archive_rows, report.records);
    let expected = (Some(manifest.archive), manifest.rows, manifest.records);
    if found == expected {
        return Ok(report);
    }
    let text = format!(
        "the restored database has archive {:?} with {} rows and {} records behind it, and the backup says {:?}, {} \
         and {}",
        found.0, found.1, found.2, expected.0, expected.1, expected.2
    );
    Err(SqlError::new(SqlState::DATA_CORRUPTED, text))
}
