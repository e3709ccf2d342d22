//! A disk that loses power: after a number of operations nothing works any more, and what was not synced is
//! gone, or some of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use albireo_env::{Disk, DiskLock, MemoryDisk, PlacedFile, ReadFile, WriteFile};

/// See the module. Clones share the files.
#[derive(Clone, Debug, Default)]
pub struct PowerDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Names and the files behind them; `None`: a directory.
    names: BTreeMap<PathBuf, Option<usize>>,
    durable_names: BTreeMap<PathBuf, Option<usize>>,
    /// Contents, and what of them is durable.
    files: Vec<(Vec<u8>, Vec<u8>)>,
    operations: u64,
    most: Option<u64>,
    locked: BTreeSet<PathBuf>,
}

/// What survives of that which was not synced.
#[derive(Clone, Copy, Debug)]
pub struct Luck {
    /// New names are there, removed ones gone.
    pub names: bool,
    /// Contents are there.
    pub contents: bool,
}

/// All there are.
pub const LUCK: [Luck; 4] = [
    Luck { names: false, contents: false },
    Luck { names: false, contents: true },
    Luck { names: true, contents: false },
    Luck { names: true, contents: true },
];

impl PowerDisk {
    /// Loses power after so many more operations.
    pub fn fail_after(&self, operations: u64) {
        let mut state = self.state();
        state.most = Some(state.operations + operations);
    }

    /// Whether the power is gone.
    pub fn has_failed(&self) -> bool {
        let state = self.state();
        state.most.is_some_and(|most| state.operations > most)
    }

    /// The disk when power is back.
    pub fn after(&self, luck: Luck) -> MemoryDisk {
        let (state, disk) = (self.state(), MemoryDisk::default());
        let names = if luck.names { &state.names } else { &state.durable_names };
        let reachable = |path: &Path| {
            let above = path.ancestors().skip(1);
            above.filter(|path| path.components().count() > 1).all(|path| names.contains_key(path))
        };
        for (path, file) in names.iter().filter(|(path, _)| reachable(path)) {
            match file {
                None => disk.create_dir_all(path).expect("memory"),
                Some(file) => {
                    let (now, durable) = &state.files[*file];
                    disk.put(path, if luck.contents { now } else { durable });
                }
            }
        }
        disk
    }

    /// A disk on which everything is durable.
    pub fn on(disk: &MemoryDisk) -> Self {
        let this = Self::default();
        this.copy(disk, Path::new("/"));
        let mut state = this.state();
        state.durable_names = state.names.clone();
        drop(state);
        this
    }

    fn copy(&self, disk: &MemoryDisk, directory: &Path) {
        for path in disk.read_dir(directory).unwrap_or_default() {
            let mut state = self.state();
            if let Some(bytes) = disk.get(&path) {
                let file = state.files.len();
                state.files.push((bytes.clone(), bytes));
                state.names.insert(path, Some(file));
            } else {
                state.names.insert(path.clone(), None);
                drop(state);
                self.copy(disk, &path);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn operate(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        state.operations += 1;
        match state.most {
            Some(most) if state.operations > most => Err(io::Error::other("the power is gone")),
            _ => Ok(state),
        }
    }
}

impl Disk for PowerDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let state = self.state();
        let file = state.names.get(path).copied().ok_or(ErrorKind::NotFound)?;
        let disk = MemoryDisk::default();
        disk.put("/file", &state.files[file.ok_or(ErrorKind::IsADirectory)?].0);
        disk.open(Path::new("/file"))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let mut state = self.operate()?;
        let file = state.files.len();
        state.files.push((Vec::new(), Vec::new()));
        state.names.insert(path.to_owned(), Some(file));
        Ok(Box::new(PowerFile { disk: self.clone(), file }))
    }

    fn open_placed(&self, _: &Path) -> io::Result<Box<dyn PlacedFile>> {
        panic!("archives write no placed files")
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.operate()?;
        let inside = |name: &PathBuf| name.parent() == Some(path);
        let now: Vec<_> =
            state.names.iter().filter(|(name, _)| inside(name)).map(|(n, f)| (n.clone(), *f)).collect();
        state.durable_names.retain(|name, _| !inside(name));
        state.durable_names.extend(now);
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let mut state = self.operate()?;
        match state.locked.insert(path.to_owned()) {
            true => Ok(Box::new(PowerLock { disk: self.clone(), path: path.to_owned() })),
            false => Err(ErrorKind::WouldBlock.into()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.operate()?;
        let file = state.names.remove(from).ok_or(ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.operate()?.names.remove(path).ok_or(ErrorKind::NotFound)?;
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.operate()?.names.retain(|name, _| !name.starts_with(path));
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.operate()?;
        for path in path.ancestors().filter(|path| path.components().count() > 1) {
            state.names.entry(path.to_owned()).or_insert(None);
        }
        Ok(())
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.state();
        if path != Path::new("/") && state.names.get(path) != Some(&None) {
            return Err(ErrorKind::NotFound.into());
        }
        Ok(state.names.keys().filter(|name| name.parent() == Some(path)).cloned().collect())
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

#[derive(Debug)]
struct PowerFile {
    disk: PowerDisk,
    file: usize,
}

impl Write for PowerFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.operate()?;
        // In pieces, as a system may.
        let count = data.len().min(700);
        state.files[self.file].0.extend_from_slice(&data[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WriteFile for PowerFile {
    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.operate()?;
        let (now, durable) = &mut state.files[self.file];
        durable.clone_from(now);
        Ok(())
    }
}

#[derive(Debug)]
struct PowerLock {
    disk: PowerDisk,
    path: PathBuf,
}

impl DiskLock for PowerLock {}

impl Drop for PowerLock {
    fn drop(&mut self) {
        self.disk.state().locked.remove(&self.path);
    }
}
