//! Throwing old archives away.
//!
//! First manifests go, then files that no manifest names any more, then empty directories; between them
//! what is gone is gone for certain (I-2). So whatever the moment of a crash, an archive that has a manifest
//! has its files, and what is left over is found the next time.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use albireo_env::Env;

use crate::directory::{list, lock, numbers};
use crate::error::ArchiveError;
use crate::files::{archive_name, archive_path};
use crate::manifest::{FileEntry, Manifest, NAME};

/// What was thrown away.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Retained {
    /// Archives whose manifest went, newest first.
    pub removed: Vec<u64>,
    /// Files that went, those of incomplete archives included.
    pub files_removed: u64,
    /// Archives that are left and complete, newest first.
    pub complete: Vec<u64>,
    /// Archives whose manifest cannot be used. They stay, with every file that they may name.
    pub unreadable: Vec<u64>,
}

/// Removes the file of this path below the directory of archives by calling what it is given; `None` if the file is to stay
/// because somebody reads it. Nobody begins to read it meanwhile.
pub type Remove<'r> = &'r dyn Fn(&str, &dyn Fn() -> io::Result<()>) -> Option<io::Result<()>>;

/// Keeps the `keep` newest complete archives, at least one, and removes the others, incomplete ones, and
/// files that nobody needs.
///
/// # Errors
/// An archive is being written, or the disk refuses; what is gone then is only what would go anyway.
pub fn retain(env: &Env, directory: &Path, keep: usize) -> Result<Retained, ArchiveError> {
    retain_unless(env, directory, keep, &|_, remove| Some(remove()))
}

/// [`retain`], for whoever reads files that no archive names: `remove` says which stay until the next time.
///
/// # Errors
/// As of [`retain`].
pub fn retain_unless(
    env: &Env,
    directory: &Path,
    keep: usize,
    remove: Remove<'_>,
) -> Result<Retained, ArchiveError> {
    let mut retained = Retained::default();
    if numbers(env, directory)?.is_empty() {
        return Ok(retained);
    }
    let _held = lock(env, directory)?;
    let listing = list(env, directory)?;
    let (kept, old) = listing.complete.split_at(keep.max(1).min(listing.complete.len()));
    retained.complete = kept.iter().map(|manifest| manifest.number).collect();
    retained.unreadable = listing.unreadable.iter().map(|archive| archive.number).collect();
    // The oldest first: a younger one may name its files.
    for manifest in old.iter().rev() {
        remove_manifest(env, directory, manifest.number)?;
        retained.removed.insert(0, manifest.number);
    }
    let named: HashSet<&str> =
        kept.iter().flat_map(Manifest::files).map(|file: &FileEntry| file.path.as_str()).collect();
    let listed = numbers(env, directory)?.into_iter().filter(|&number| !listing.may_be_named(number));
    let numbers: Vec<u64> = listed.collect();
    // Before any file goes, all manifests are gone for certain, also those that went earlier and whose sync failed:
    // one that came back after a crash would be without files or without the log behind it.
    for &number in numbers.iter().filter(|number| !retained.complete.contains(number)) {
        let path = archive_path(directory, number);
        env.disk.sync_directory(&path).map_err(|error| ArchiveError::io(&path, error))?;
    }
    for number in numbers {
        let is_complete = retained.complete.contains(&number);
        let is_needed = |path: &str, name: &str| named.contains(path) || (is_complete && name == NAME);
        retained.files_removed += remove_unneeded(env, directory, number, &is_needed, remove)?;
    }
    Ok(retained)
}

fn remove_manifest(env: &Env, directory: &Path, number: u64) -> Result<(), ArchiveError> {
    let path = archive_path(directory, number);
    let manifest = path.join(NAME);
    env.disk.remove_file(&manifest).map_err(|error| ArchiveError::io(&manifest, error))?;
    // Before a younger one goes, or it might come back after a crash without the files that both need.
    env.disk.sync_directory(&path).map_err(|error| ArchiveError::io(&path, error))
}

/// Removes the files of one archive that nobody needs, and its directory if nothing is left.
fn remove_unneeded(
    env: &Env,
    directory: &Path,
    number: u64,
    is_needed: &dyn Fn(&str, &str) -> bool,
    remove: Remove<'_>,
) -> Result<u64, ArchiveError> {
    let path = archive_path(directory, number);
    let (mut removed, mut left) = (0, 0);
    for file in env.disk.read_dir(&path).map_err(|error| ArchiveError::io(&path, error))? {
        let gone = match file.file_name().and_then(|name| name.to_str()) {
            // No archive has a file of such a name.
            None => Some(env.disk.remove_file(&file)),
            Some(name) => {
                let below = format!("{}/{name}", archive_name(number));
                let unlink = || env.disk.remove_file(&file);
                if is_needed(&below, name) { None } else { remove(&below, &unlink) }
            }
        };
        match gone {
            None => left += 1,
            Some(Ok(())) => removed += 1,
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Some(Err(error)) => return Err(ArchiveError::io(&file, error)),
        }
    }
    if left == 0 {
        env.disk.remove_dir_all(&path).map_err(|error| ArchiveError::io(&path, error))?;
    }
    Ok(removed)
}
