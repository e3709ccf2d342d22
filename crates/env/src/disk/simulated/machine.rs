//! The machine that the disk is in: counts operations, crashes, and lets writes, syncs and reads fail.
//!
//! Responsible for: which operation is struck, faults, capacity, the files behind the names.
//!
//! I-1 `used_bytes` is the length of all files that have a name.
//! I-2 A handle works only in the era it was opened in; a crash and a killed process begin another.

use super::contents::Contents;
use super::names::{Inode, Name, Names};
use super::{Faults, Latency, ReadFaults};
use crate::clock::SimulatedClock;
use crate::disk::no_space;
use crate::random::Generator;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file, named or not.
#[derive(Debug)]
pub(super) struct File {
    pub(super) contents: Contents,
    /// Whether programs can see a name of it, so that it counts.
    named: bool,
    /// Each handle has a clone.
    pub(super) open: Arc<()>,
}

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) names: Names,
    pub(super) files: BTreeMap<Inode, File>,
    pub(super) locked: BTreeSet<Inode>,
    pub(super) era: u64,
    pub(super) operations: u64,
    pub(super) crash_at: Option<u64>,
    pub(super) down: bool,
    pub(super) faults: Faults,
    /// What happens to reads, and of files with which extension.
    pub(super) read_faults: Option<(OsString, ReadFaults)>,
    pub(super) capacity_bytes: u64,
    pub(super) latency: Option<(SimulatedClock, Latency)>,
    used_bytes: u64,
    /// Whether the operation under way is the one that is struck.
    struck: bool,
    random: Generator,
}

/// What every call says after a crash.
pub(super) fn crashed() -> io::Error {
    io::Error::other("the machine crashed")
}

/// What the kernel says when the device does not answer.
fn device_failed() -> io::Error {
    io::Error::from(rustix::io::Errno::IO)
}

impl Machine {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            names: Names::new(),
            files: BTreeMap::new(),
            locked: BTreeSet::new(),
            era: 0,
            operations: 0,
            crash_at: None,
            down: false,
            faults: Faults::default(),
            read_faults: None,
            capacity_bytes: u64::MAX,
            latency: None,
            used_bytes: 0,
            struck: false,
            random: Generator::new(seed),
        }
    }

    /// Runs an operation, of a handle if it has an era. The one that a crash strikes is done or not, a
    /// write in part, and fails in any case.
    pub(super) fn operation<T>(
        &mut self,
        era: Option<u64>,
        act: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<T> {
        self.check(era)?;
        self.struck = self.crash_at.is_some_and(|at| self.operations >= at);
        self.operations += 1;
        if !self.struck {
            return act(self);
        }
        if self.random.coin() {
            // Nobody hears of its result.
            drop(act(self));
        }
        self.struck = false;
        self.lose_power();
        self.down = true;
        Err(crashed())
    }

    /// Whether the machine is up, and the handle of that era works.
    pub(super) fn check(&self, era: Option<u64>) -> io::Result<()> {
        if self.down || era.is_some_and(|era| era != self.era) {
            return Err(crashed());
        }
        Ok(())
    }

    /// Decides what of the unsynced survives, and ends the era.
    pub(super) fn lose_power(&mut self) {
        self.crash_at = None;
        if self.down {
            // Power cannot fail twice.
            return;
        }
        self.end_era();
        let reached = self.names.crash(&mut self.random);
        self.files.retain(|inode, _| reached.contains(inode));
        for file in self.files.values_mut() {
            file.contents.crash(&mut self.random);
            file.named = true;
        }
        self.used_bytes = self.files.values().map(|file| file.contents.len()).sum();
    }

    /// Takes handles and locks from whoever has them.
    pub(super) fn end_era(&mut self) {
        self.era += 1;
        self.locked.clear();
    }

    /// The file at a path, new and empty if there is none.
    pub(super) fn find_or_create(&mut self, path: &Path) -> io::Result<Inode> {
        let place = self.names.place(path)?;
        match place.inode {
            Some(inode) => Ok(inode),
            None => Ok(self.new_file(place.name)),
        }
    }

    fn new_file(&mut self, name: Name) -> Inode {
        let inode = self.names.new_inode();
        let file = File { contents: Contents::durable(Vec::new()), named: true, open: Arc::default() };
        self.files.insert(inode, file);
        self.names.set(name, Some(inode));
        inode
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.names.place(from)?, self.names.place(to)?);
        if from.inode.is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        if from.name != to.name {
            self.lose_name(to.inode);
            self.names.rename(from, to);
        }
        Ok(())
    }

    pub(super) fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        let place = self.names.place(path)?;
        if place.inode.is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.lose_name(place.inode);
        self.names.set(place.name, None);
        Ok(())
    }

    pub(super) fn remove_tree(&mut self, path: &Path) -> io::Result<()> {
        let files = self.names.remove_tree(path)?;
        files.into_iter().for_each(|inode| self.lose_name(Some(inode)));
        Ok(())
    }

    fn lose_name(&mut self, inode: Option<Inode>) {
        if let Some(file) = inode.and_then(|inode| self.files.get_mut(&inode)) {
            assert!(file.named, "a file has one name at most");
            file.named = false;
            self.used_bytes -= file.contents.len();
        }
    }

    pub(super) fn sync_directory(&mut self, path: &Path) -> io::Result<()> {
        self.spend(|latency| latency.sync);
        let directory = self.names.find_directory(path)?;
        if self.sync_fails() {
            return Err(device_failed());
        }
        self.names.sync(directory);
        self.drop_forgotten();
        Ok(())
    }

    /// Drops files that no name, no journal and no handle leads to.
    fn drop_forgotten(&mut self) {
        let known = self.names.collect();
        self.files.retain(|inode, file| known.contains(inode) || Arc::strong_count(&file.open) > 1);
    }

    /// Bytes that files can still grow by.
    pub(super) fn room(&self) -> u64 {
        self.capacity_bytes.saturating_sub(self.used_bytes)
    }

    fn file(&mut self, inode: Inode) -> &mut File {
        self.files.get_mut(&inode).expect("a file that is open or named is kept")
    }

    /// What programs read in an open file.
    pub(super) fn present(&self, inode: Inode) -> &[u8] {
        self.files[&inode].contents.present()
    }

    /// Reads from an open file, whose name has this extension: what is there, unless that is to go wrong.
    pub(super) fn read(
        &mut self,
        inode: Inode,
        extension: Option<&OsStr>,
        buffer: &mut [u8],
        offset: u64,
    ) -> io::Result<usize> {
        let faults = match &self.read_faults {
            Some((chosen, faults)) if extension == Some(chosen.as_os_str()) => *faults,
            _ => ReadFaults::default(),
        };
        if by_chance(faults.failing_per_mille, &mut self.random) {
            return Err(device_failed());
        }
        let bytes = self.present(inode);
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let mut count = buffer.len().min(bytes.len() - start);
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        if by_chance(faults.short_per_mille, &mut self.random) {
            count = self.random.up_to(count as u64) as usize;
        }
        if by_chance(faults.damaged_per_mille, &mut self.random) && count > 0 {
            let bit = self.random.up_to(count as u64 * 8 - 1);
            buffer[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        Ok(count)
    }

    /// Changes contents, and counts the change of the length.
    fn edit(&mut self, inode: Inode, change: impl FnOnce(&mut Contents)) {
        let file = self.file(inode);
        let before = file.contents.len();
        change(&mut file.contents);
        if file.named {
            let after = file.contents.len();
            self.used_bytes = self.used_bytes - before + after;
        }
    }

    /// Writes what there is room for, returns how much that is; if it fails, `part_if_failing` says
    /// whether some of it is written all the same.
    pub(super) fn write(
        &mut self,
        inode: Inode,
        data: &[u8],
        offset: u64,
        part_if_failing: bool,
    ) -> io::Result<usize> {
        self.spend(|latency| latency.write);
        offset.checked_add(data.len() as u64).ok_or(io::ErrorKind::InvalidInput)?;
        let mut data = data;
        if self.struck {
            data = &data[..self.random.up_to(data.len() as u64) as usize];
        }
        let fails = self.write_fails();
        if fails {
            let part = if part_if_failing { self.random.up_to(data.len() as u64) } else { 0 };
            data = &data[..part as usize];
        }
        let end = self.file(inode).contents.len().saturating_add(self.room());
        let fits = end.saturating_sub(offset).min(data.len() as u64) as usize;
        self.edit(inode, |contents| contents.write(&data[..fits], offset));
        match () {
            () if fails => Err(device_failed()),
            () if fits == 0 && !data.is_empty() => Err(no_space()),
            () => Ok(fits),
        }
    }

    /// Cuts or extends a file.
    pub(super) fn set_len(&mut self, inode: Inode, bytes: u64) -> io::Result<()> {
        if bytes.saturating_sub(self.file(inode).contents.len()) > self.room() {
            return Err(no_space());
        }
        self.edit(inode, |contents| contents.set_len(bytes));
        Ok(())
    }

    pub(super) fn sync(&mut self, inode: Inode) -> io::Result<()> {
        self.spend(|latency| latency.sync);
        let fails = self.sync_fails();
        let file = self.files.get_mut(&inode).expect("a file that is open is kept");
        if fails {
            file.contents.fail_sync(&mut self.random);
            return Err(device_failed());
        }
        file.contents.sync();
        Ok(())
    }

    fn write_fails(&mut self) -> bool {
        let Faults { failing_write, failing_writes_per_mille, .. } = &mut self.faults;
        fails(failing_write, *failing_writes_per_mille, &mut self.random)
    }

    fn sync_fails(&mut self) -> bool {
        let Faults { failing_sync, failing_syncs_per_mille, .. } = &mut self.faults;
        fails(failing_sync, *failing_syncs_per_mille, &mut self.random)
    }

    fn spend(&self, duration: impl FnOnce(&Latency) -> std::time::Duration) {
        if let Some((clock, latency)) = &self.latency {
            clock.advance(duration(latency));
        }
    }

    pub(super) fn put(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let directories = self.names.create_directories(parent)?;
        let inode = self.find_or_create(path)?;
        directories.into_iter().for_each(|directory| self.names.sync(directory));
        self.edit(inode, |contents| *contents = Contents::durable(bytes.to_vec()));
        Ok(())
    }

    pub(super) fn damage(&mut self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let inode = self.names.find_file(path)?;
        self.edit(inode, |contents| contents.damage(change));
        Ok(())
    }

    pub(super) fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let inode = self.names.find_file(path).ok()?;
        Some(self.present(inode).to_vec())
    }

    pub(super) fn all_files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut left = vec![(PathBuf::from("/"), self.names.find(Path::new("/")).expect("the root"))];
        while let Some((path, inode)) = left.pop() {
            if self.names.is_directory(inode) {
                let children = self.names.children(inode);
                left.extend(children.map(|(name, child)| (path.join(name), child)));
            } else {
                files.insert(path, self.present(inode).to_vec());
            }
        }
        files
    }
}

/// Whether a call fails: because it is the planned one, or by chance.
fn fails(planned: &mut Option<u64>, per_mille: u16, random: &mut Generator) -> bool {
    let is_planned = *planned == Some(0);
    *planned = planned.and_then(|left| left.checked_sub(1));
    is_planned || by_chance(per_mille, random)
}

/// True in so many of 1,000 cases; nothing is drawn where it never is.
fn by_chance(per_mille: u16, random: &mut Generator) -> bool {
    per_mille > 0 && random.up_to(999) < u64::from(per_mille)
}
