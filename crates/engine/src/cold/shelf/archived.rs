//! Chunks that an archive has already, and so are not written once more: their columns are read from the archive's file.
//!
//! There, the columns of a chunk lie one behind the other, as Arrow arrays, of which the sections are made anew
//! ([`ColumnPlace`]). A chunk is put there after the file was read whole, its checksums were right, and each column gave the
//! bytes that are in memory; a column that does not, and every one of a file that is damaged, goes to files of our own. So do
//! compressed texts, which stand there in full: to compress them at each fetch takes longer than to read them.
//!
//! ```text
//! archive/0000000007/t12-p0-c16.frozen.arrow    named by archives 7, 8 and 9, and pinned
//!                                               named by none, and pinned: it stays
//!                                               pinned by nobody: it goes when archives are thrown away the next time
//! ```
//!
//! I-1 A file in which a chunk lies is pinned: it stays, whatever archives need. It is pinned before it is read, and whoever
//! removes it knows meanwhile that nobody pins it.
//! I-2 After a crash nobody pins anything: what is left over is found when archives are thrown away.
//! I-3 Whoever lets go of a chunk waits for no disk.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_archive::{ColumnPlace, FileEntry, FrozenFile, Stretch};
use albireo_base::ColumnId;
use albireo_env::{Disk, Env};
use albireo_storage::{FetchError, ReadAhead};
use parking_lot::Mutex;

use super::file::{Opened, check, damaged};

/// Files that are kept open: a query reads some chunks of each thread in turns.
const MOST_OPEN: usize = 64;
/// Bytes between two places that the system is asked for at once.
const GAP_BYTES: u64 = 64 << 10;

/// Files of archives that stay, by their paths below the directory of archives.
#[derive(Default)]
pub(crate) struct Pins {
    /// How many chunks lie in each.
    held: Mutex<BTreeMap<String, usize>>,
    /// Of chunks that were let go of since: while a file is removed, `held` is locked.
    released: Mutex<Vec<String>>,
}

/// While this is there, the file stays.
struct Pin {
    pins: Arc<Pins>,
    path: String,
}

impl Pins {
    fn pin(self: &Arc<Self>, path: &str) -> Pin {
        let mut held = self.held.lock();
        self.settle(&mut held);
        *held.entry(path.to_owned()).or_default() += 1;
        Pin { pins: Arc::clone(self), path: path.to_owned() }
    }

    /// Removes a file, unless it is to stay. Nobody pins it meanwhile.
    pub(crate) fn unless_pinned(
        &self,
        path: &str,
        remove: &dyn Fn() -> io::Result<()>,
    ) -> Option<io::Result<()>> {
        let mut held = self.held.lock();
        self.settle(&mut held);
        (!held.contains_key(path)).then(remove)
    }

    /// The files that stay, and those of which nobody has found out yet that they need not.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.held.lock().keys().cloned().collect()
    }

    fn settle(&self, held: &mut BTreeMap<String, usize>) {
        for path in std::mem::take(&mut *self.released.lock()) {
            let left = held.get_mut(&path).map(|count| {
                *count -= 1;
                *count
            });
            if left == Some(0) {
                held.remove(&path);
            }
        }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.pins.released.lock().push(std::mem::take(&mut self.path));
    }
}

/// The archives of the database whose rows leave memory.
pub(crate) struct Archives {
    env: Env,
    directory: PathBuf,
    pins: Arc<Pins>,
    open: Arc<OpenFiles>,
}

impl Archives {
    pub(crate) fn new(env: &Env, directory: PathBuf, pins: &Arc<Pins>) -> Self {
        let open = OpenFiles { disk: Arc::clone(&env.disk), recent: Mutex::default() };
        Self { env: env.clone(), directory, pins: Arc::clone(pins), open: Arc::new(open) }
    }

    /// Where they are.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A file of them in which a chunk may lie from now on; none if it is not sound. `number` is of no other file.
    pub(super) fn hold(&self, file: &FileEntry, number: u64) -> Option<Held> {
        // I-1: before it is read.
        let pin = self.pins.pin(&file.path);
        let found = FrozenFile::read(&self.env, &self.directory, file).ok()?;
        let path = self.directory.join(&file.path);
        let file = ArchivedFile { number, path, open: Arc::clone(&self.open), _pin: pin };
        Some(Held { file: Arc::new(file), found })
    }
}

/// A file in which a chunk may lie, in memory as long as that is found out.
pub(super) struct Held {
    file: Arc<ArchivedFile>,
    found: FrozenFile,
}

impl Held {
    /// Where a column lies, if its bytes come from there.
    pub(super) fn place_of(&self, column: ColumnId, bytes: &[u8]) -> Option<ArchivedColumn> {
        let place = self.found.place_of(column, bytes)?;
        Some(ArchivedColumn { file: Arc::clone(&self.file), place })
    }
}

/// An archive's file in which a chunk lies.
struct ArchivedFile {
    /// Among the files of evicted chunks.
    number: u64,
    path: PathBuf,
    open: Arc<OpenFiles>,
    _pin: Pin,
}

impl ArchivedFile {
    fn open(&self) -> Result<Arc<Opened>, FetchError> {
        self.open.get(self.number, &self.path)
    }
}

impl Drop for ArchivedFile {
    fn drop(&mut self) {
        self.open.forget(self.number);
    }
}

/// Where a column of a chunk lies in an archive's file.
pub(super) struct ArchivedColumn {
    file: Arc<ArchivedFile>,
    place: ColumnPlace,
}

impl ArchivedColumn {
    /// What is to be read of the file.
    pub(super) fn stretches(&self) -> &[Stretch] {
        self.place.stretches()
    }

    pub(super) fn path(&self) -> &Path {
        &self.file.path
    }

    /// Reads the column.
    pub(super) fn read(&self, sections: &mut [&mut [u8]]) -> Result<(), FetchError> {
        self.fill(sections, |file, range, into| file.read_at(into, range.start))
    }

    /// Reads the column, for a reader who may have it already.
    pub(super) fn read_from(
        &self,
        ahead: &mut ReadAhead,
        sections: &mut [&mut [u8]],
    ) -> Result<(), FetchError> {
        let number = self.file.number;
        self.fill(sections, |file, range, into| match ahead.take((number, file), range, &mut [&mut *into]) {
            true => Ok(()),
            false => file.read_at(into, range.start),
        })
    }

    fn fill(
        &self,
        sections: &mut [&mut [u8]],
        mut read: impl FnMut(&Opened, &Range<u64>, &mut [u8]) -> Result<(), FetchError>,
    ) -> Result<(), FetchError> {
        let file = self.file.open()?;
        let mut all: Vec<Vec<u8>> = Vec::with_capacity(self.stretches().len());
        for stretch in self.stretches() {
            let range = stretch.range();
            let mut bytes = vec![0; stretch.bytes as usize];
            read(&file, &range, &mut bytes)?;
            check(file.path(), &range, stretch.crc32c, crc32c::crc32c(&bytes))?;
            all.push(bytes);
        }
        match self.place.fill(&all, sections) {
            true => Ok(()),
            false => Err(damaged(self.path(), "its bytes are of another column".to_owned())),
        }
    }
}

impl fmt::Debug for ArchivedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}", self.place.stretches(), self.path().display())
    }
}

/// Asks for columns of one chunk, to be read soon.
pub(super) fn will_read(columns: &[&ArchivedColumn]) {
    let Some(Ok(file)) = columns.first().map(|column| column.file.open()) else { return };
    let mut together: Option<Range<u64>> = None;
    for range in ranges_of(columns) {
        match &mut together {
            Some(before) if range.start <= before.end + GAP_BYTES => before.end = before.end.max(range.end),
            _ => {
                let before = together.replace(range);
                before.iter().for_each(|before| file.will_read(before));
            }
        }
    }
    together.iter().for_each(|last| file.will_read(last));
}

/// Tells a reader who goes through many chunks where columns of one lie.
pub(super) fn plan(columns: &[&ArchivedColumn], ahead: &mut ReadAhead) {
    let Some(first) = columns.first() else { return };
    if first.file.open().is_ok_and(|file| file.is_direct()) {
        ranges_of(columns).into_iter().for_each(|range| ahead.plan(first.file.number, range));
    }
}

/// What is to be read for columns of one chunk, in the order of its file.
fn ranges_of(columns: &[&ArchivedColumn]) -> Vec<Range<u64>> {
    let stretches = columns.iter().flat_map(|column| column.stretches());
    let mut ranges: Vec<Range<u64>> = stretches.map(Stretch::range).collect();
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// Files that were read not long ago. A database has a file for each chunk, which are more than a process may have open.
struct OpenFiles {
    disk: Arc<dyn Disk>,
    /// With their numbers, the one that was used last at the end.
    recent: Mutex<VecDeque<(u64, Arc<Opened>)>>,
}

impl OpenFiles {
    fn get(&self, number: u64, path: &Path) -> Result<Arc<Opened>, FetchError> {
        if let Some(known) = touched(&mut self.recent.lock(), number) {
            return Ok(known);
        }
        let opened = Arc::new(Opened::new(&*self.disk, path)?);
        let (file, oldest) = {
            let mut recent = self.recent.lock();
            // Somebody else may have opened it meanwhile.
            let file = touched(&mut recent, number).unwrap_or_else(|| {
                recent.push_back((number, Arc::clone(&opened)));
                opened
            });
            (file, if recent.len() > MOST_OPEN { recent.pop_front() } else { None })
        };
        // It is closed while nobody waits.
        drop(oldest);
        Ok(file)
    }

    fn forget(&self, number: u64) {
        let mut recent = self.recent.lock();
        let place = recent.iter().position(|(other, _)| *other == number);
        let gone = place.and_then(|place| recent.remove(place));
        drop(recent);
        drop(gone);
    }
}

/// The file of a number, which is the last one used from now on.
fn touched(recent: &mut VecDeque<(u64, Arc<Opened>)>, number: u64) -> Option<Arc<Opened>> {
    let place = recent.iter().rposition(|(other, _)| *other == number)?;
    let known = recent.remove(place)?;
    let file = Arc::clone(&known.1);
    recent.push_back(known);
    Some(file)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn file_stays_as_long_as_somebody_has_pinned_it() {
        let (pins, removed) = (Arc::new(Pins::default()), Cell::new(0));
        let remove = || {
            removed.set(removed.get() + 1);
            Ok(())
        };
        let (first, second) = (pins.pin("1/a"), pins.pin("1/a"));
        assert!(pins.unless_pinned("1/a", &remove).is_none());
        drop(first);
        assert!(pins.unless_pinned("1/a", &remove).is_none());
        assert!(pins.unless_pinned("1/b", &remove).is_some_and(|done| done.is_ok()));
        drop(second);
        assert_eq!(pins.paths(), ["1/a"], "nobody has looked since");
        assert!(pins.unless_pinned("1/a", &remove).is_some());
        assert_eq!((pins.paths(), removed.get()), (Vec::new(), 2));
    }
}
