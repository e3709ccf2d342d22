//! The directory of archives: names, what is complete, what is left over.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use albireo_env::{DiskLock, Env};

use crate::error::{ArchiveError, Damage};
use crate::files::number_of;
use crate::manifest::{Manifest, path_in_archive};

/// What is in a directory of archives.
#[derive(Debug, Default)]
pub struct Listing {
    /// Those that can be loaded, newest first.
    pub complete: Vec<Manifest>,
    /// Those whose manifest is there but cannot be used, newest first.
    pub unreadable: Vec<Unreadable>,
    /// Directories without a manifest of which no archive needs anything: [`crate::retain`] removes them, but for files in
    /// which an open database has evicted rows.
    pub incomplete: Vec<u64>,
    /// Directories without a manifest in which a complete archive has files, or an unreadable one may.
    pub needed: Vec<u64>,
}

/// An archive whose manifest cannot be used.
#[derive(Debug)]
pub struct Unreadable {
    /// The archive.
    pub number: u64,
    /// Why not.
    pub error: ArchiveError,
}

/// Looks what archives there are; none if there is no such directory.
///
/// # Errors
/// The directory cannot be read.
pub fn list(env: &Env, directory: &Path) -> Result<Listing, ArchiveError> {
    let mut listing = Listing::default();
    let mut without = Vec::new();
    for number in numbers(env, directory)?.into_iter().rev() {
        match Manifest::read(env, directory, number) {
            Ok(manifest) => listing.complete.push(manifest),
            Err(ArchiveError::Damaged { damage: Damage::Missing, .. }) => without.push(number),
            Err(error) => listing.unreadable.push(Unreadable { number, error }),
        }
    }
    let named: BTreeSet<u64> = listing
        .complete
        .iter()
        .flat_map(Manifest::files)
        .filter_map(|file| path_in_archive(&file.path))
        .map(|(number, _)| number)
        .collect();
    (listing.needed, listing.incomplete) =
        without.into_iter().partition(|number| named.contains(number) || listing.may_be_named(*number));
    Ok(listing)
}

impl Listing {
    /// Whether an unreadable manifest may name files of an archive: those not younger than itself.
    pub(crate) fn may_be_named(&self, number: u64) -> bool {
        self.unreadable.iter().any(|archive| number <= archive.number)
    }
}

/// The numbers of all archives, complete or not, ascending.
pub(crate) fn numbers(env: &Env, directory: &Path) -> Result<Vec<u64>, ArchiveError> {
    let paths = match env.disk.read_dir(directory) {
        Ok(paths) => paths,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(ArchiveError::io(directory, error)),
    };
    let name = |path: &PathBuf| path.file_name().and_then(|name| number_of(name.to_str()?));
    let mut numbers: Vec<u64> = paths.iter().filter_map(name).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Keeps others from writing or removing archives here. The directory is there.
pub(crate) fn lock(env: &Env, directory: &Path) -> Result<Box<dyn DiskLock>, ArchiveError> {
    let path = directory.join("lock");
    env.disk.lock(&path).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => ArchiveError::Busy { directory: directory.to_owned() },
        _ => ArchiveError::io(&path, error),
    })
}
