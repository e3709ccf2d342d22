//! What a backup is written to: a directory, or one file.
//!
//! Dropped before it is finished, it removes what it made, as far as the disk allows.

use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use albireo_base::{SqlError, SqlState};
use albireo_env::{Env, WriteFile};

use super::Part;
use super::manifest::{BackupFile, BackupManifest, NAME, UNFINISHED_NAME};
use super::transfer::{Transfer, failed};
use crate::durability::directory::sync_names;

/// What is written at once into a file that has all.
const BUFFER_BYTES: usize = 1 << 20;
/// A backup being written.
pub(super) struct BackupWriter {
    env: Env,
    path: PathBuf,
    form: Form,
    /// Directories of the target that have files, by their names in it.
    directories: Vec<PathBuf>,
    files_linked: u64,
    is_done: bool,
}

enum Form {
    /// `was_there`: it was there, and empty.
    Directory {
        was_there: bool,
    },
    File {
        builder: Option<Box<tar::Builder<BufWriter<Synced>>>>,
        unfinished: PathBuf,
    },
}

/// A file that is synced through the writers around it.
struct Synced(Box<dyn WriteFile>);

impl Write for Synced {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Whether a path is the name of a backup that is one file.
pub(super) fn is_file_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tar"))
}

/// 55000: there is something where something is to be made.
pub(super) fn in_the_way(path: &Path, what: &str) -> SqlError {
    let text = format!("\"{}\" {what}", path.display());
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text)
}

/// Whether a directory is there; what is in the way, if anything.
pub(super) fn find_empty(env: &Env, path: &Path) -> Result<bool, SqlError> {
    match env.disk.read_dir(path) {
        Ok(paths) if paths.is_empty() => Ok(true),
        Ok(_) => Err(in_the_way(path, "is not empty").with_hint("Name a directory that is new or empty.")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(in_the_way(path, "is a file").with_hint("Name a directory that is new or empty."))
        }
        Err(error) => Err(failed("read", path, &error)),
    }
}

impl BackupWriter {
    /// Begins a backup at `path`, and marks it as unfinished.
    pub(super) fn create(env: &Env, path: &Path) -> Result<Self, SqlError> {
        let is_file = is_file_name(path) && env.disk.read_dir(path).is_err();
        let form = match is_file {
            true => {
                if env.disk.open(path).is_ok() {
                    return Err(in_the_way(path, "is there already").with_hint("Name a file that is new."));
                }
                let mut unfinished = path.as_os_str().to_owned();
                unfinished.push(".tmp");
                Form::File { builder: None, unfinished: unfinished.into() }
            }
            false => Form::Directory { was_there: find_empty(env, path)? },
        };
        let (path, directories) = (path.to_owned(), Vec::new());
        let mut target = Self { env: env.clone(), path, form, directories, files_linked: 0, is_done: false };
        target.begin()?;
        Ok(target)
    }

    fn begin(&mut self) -> Result<(), SqlError> {
        let disk = &self.env.disk;
        match &mut self.form {
            Form::Directory { .. } => {
                let mark = self.path.join(UNFINISHED_NAME);
                let made = disk
                    .create_dir_all(&self.path)
                    .and_then(|()| disk.create(&mark)?.sync())
                    .and_then(|()| disk.sync_directory(&self.path));
                made.map_err(|error| failed("create", &mark, &error))
            }
            Form::File { builder, unfinished } => {
                let above = parent(unfinished);
                let made = disk.create_dir_all(above).and_then(|()| disk.create(unfinished));
                let file = made.map_err(|error| failed("create", unfinished, &error))?;
                let file = BufWriter::with_capacity(BUFFER_BYTES, Synced(file));
                *builder = Some(Box::new(tar::Builder::new(file)));
                Ok(())
            }
        }
    }

    /// 53100 if so many bytes will not fit.
    pub(super) fn check_room(&self, bytes: u64, links: bool) -> Result<(), SqlError> {
        let place = match &self.form {
            Form::Directory { .. } if links => return Ok(()),
            Form::Directory { .. } => &self.path,
            Form::File { unfinished, .. } => parent(unfinished),
        };
        let free = self.env.disk.free_bytes(place).map_err(|error| failed("look at", place, &error))?;
        if free >= bytes {
            return Ok(());
        }
        let text = format!(
            "the backup needs {bytes} bytes, and there are {free} free where \"{}\" is",
            self.path.display()
        );
        Err(SqlError::new(SqlState::DISK_FULL, text).with_hint("Make room, or name another place."))
    }

    /// Puts a file into the backup.
    ///
    /// # Errors
    /// The disk's; XX001 if the file is not what it should be.
    pub(super) fn put(
        &mut self,
        part: &Part,
        links: bool,
        transfer: &mut Transfer<'_>,
    ) -> Result<BackupFile, SqlError> {
        if links && self.link(part)? {
            let crc32c = part.crc32c.expect("only files whose checksum is known are linked");
            transfer.skip(part.bytes);
            return Ok(BackupFile { path: part.name.clone(), bytes: part.bytes, crc32c });
        }
        let source = self.env.disk.open(&part.path).map_err(|error| failed("read", &part.path, &error))?;
        let mut reading = transfer.read(source, part.bytes);
        let to = self.path.join(&part.name);
        match &mut self.form {
            Form::Directory { .. } => {
                make_directory(&self.env, &mut self.directories, &to)?;
                reading.copy_to(&*self.env.disk, &to)
            }
            Form::File { builder, .. } => {
                let builder = builder.as_mut().expect("it is not finished");
                append(builder, &part.name, part.bytes, &mut reading)
            }
        }
        .map_err(|error| failed("copy", &part.path, &error))?;
        let found = reading.crc32c();
        match part.crc32c.filter(|expected| *expected != found) {
            Some(expected) => {
                let text = format!(
                    "{} is damaged: the checksum is {found:08x} instead of {expected:08x}",
                    part.path.display()
                );
                Err(SqlError::new(SqlState::DATA_CORRUPTED, text)
                    .with_hint("Check the disk. The first archive after a restart writes all files again."))
            }
            None => Ok(BackupFile { path: part.name.clone(), bytes: part.bytes, crc32c: found }),
        }
    }

    /// Gives a file a second name in the backup, if that can be done.
    fn link(&mut self, part: &Part) -> Result<bool, SqlError> {
        let Form::Directory { .. } = self.form else { return Ok(false) };
        if part.crc32c.is_none() {
            return Ok(false);
        }
        let to = self.path.join(&part.name);
        make_directory(&self.env, &mut self.directories, &to)?;
        // Another file system, or one without second names: then it is copied.
        let is_linked = self.env.disk.hard_link(&part.path, &to).is_ok();
        self.files_linked += u64::from(is_linked);
        Ok(is_linked)
    }

    /// Makes the backup complete (I-1); how many files are second names.
    pub(super) fn finish(mut self, manifest: &BackupManifest) -> Result<u64, SqlError> {
        let bytes = manifest.encode();
        match &mut self.form {
            Form::Directory { .. } => self.finish_directory(&bytes),
            Form::File { builder, unfinished } => {
                let builder = builder.take().expect("it is not finished");
                let disk = &self.env.disk;
                finish_file(*builder, &bytes)
                    .and_then(|()| disk.sync_directory(parent(&self.path)))
                    .and_then(|()| disk.rename(unfinished, &self.path))
                    .and_then(|()| sync_names(&**disk, &self.path))
                    .map_err(|error| failed("finish", &self.path, &error))
            }
        }?;
        self.is_done = true;
        Ok(self.files_linked)
    }

    fn finish_directory(&self, manifest: &[u8]) -> Result<(), SqlError> {
        let disk = &self.env.disk;
        let (unfinished, name) = (self.path.join(UNFINISHED_NAME), self.path.join(NAME));
        let finish = || {
            // The deepest first, so that no name leads to one that is not there.
            for directory in self.directories.iter().rev() {
                disk.sync_directory(directory)?;
            }
            disk.sync_directory(&self.path)?;
            let mut file = disk.create(&unfinished)?;
            file.write_all(manifest)?;
            file.sync()?;
            disk.rename(&unfinished, &name)?;
            disk.sync_directory(&self.path)?;
            sync_names(&**disk, &self.path)
        };
        finish().map_err(|error| failed("finish", &name, &error))
    }
}

impl Drop for BackupWriter {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let disk = &self.env.disk;
        match &mut self.form {
            Form::File { builder, unfinished } => {
                *builder = None;
                let _ = disk.remove_file(unfinished);
            }
            Form::Directory { was_there } => {
                // The manifest first, and the mark last: what is left is not taken for a backup.
                let _ = disk.remove_file(&self.path.join(NAME));
                for directory in ["archive", "log"] {
                    let _ = disk.remove_dir_all(&self.path.join(directory));
                }
                let _ = match was_there {
                    true => disk.remove_file(&self.path.join(UNFINISHED_NAME)),
                    false => disk.remove_dir_all(&self.path),
                };
            }
        }
    }
}

/// The directory that a file is in.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes the directory of a file, and remembers it and those above it that were made.
pub(super) fn make_directory(env: &Env, directories: &mut Vec<PathBuf>, file: &Path) -> Result<(), SqlError> {
    let directory = parent(file);
    if directories.iter().any(|known| known == directory) {
        return Ok(());
    }
    env.disk.create_dir_all(directory).map_err(|error| failed("create", directory, &error))?;
    // Names in it are of the kind ROOT/archive/0000000001: the one above is made with it.
    let above = parent(directory).to_owned();
    if !directories.contains(&above) {
        directories.push(above);
    }
    directories.push(directory.to_owned());
    Ok(())
}

fn append(
    builder: &mut tar::Builder<BufWriter<Synced>>,
    name: &str,
    bytes: u64,
    data: &mut dyn io::Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o600);
    header.set_entry_type(tar::EntryType::Regular);
    builder.append_data(&mut header, name, BufReader::with_capacity(BUFFER_BYTES, data))
}

fn finish_file(mut builder: tar::Builder<BufWriter<Synced>>, manifest: &[u8]) -> io::Result<()> {
    append(&mut builder, NAME, manifest.len() as u64, &mut &manifest[..])?;
    let file = builder.into_inner()?;
    let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.0.sync()
}
