//! The directories: as programs see them, as they are on the disk, and the journal of what lies between.
//!
//! Responsible for: finding, changing and syncing names, and which names survive. Not responsible for:
//! what is in files.
//!
//! I-1 The durable entries with the journal's changes applied in order are the present entries.
//! I-2 A change is applied as a whole or not at all, and never before an earlier one to the same name.

use crate::random::Generator;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path};

/// A file or a directory, whatever its name.
pub(super) type Inode = u64;

/// A name in a directory.
pub(super) type Name = (Inode, OsString);

const ROOT: Inode = 0;

/// What a directory holds.
#[derive(Debug, Default)]
struct Directory {
    present: BTreeMap<OsString, Inode>,
    durable: BTreeMap<OsString, Inode>,
}

/// One step of the journal.
#[derive(Debug)]
struct Change {
    /// What each name stands for afterwards.
    entries: Vec<(Name, Option<Inode>)>,
    /// Names of directories that must be there before, lest what is moved be lost.
    needs: Vec<Name>,
}

/// Where a path leads.
#[derive(Debug)]
pub(super) struct ResolvedPath {
    /// The name, in a directory that is there.
    pub(super) name: Name,
    /// What it stands for now.
    pub(super) inode: Option<Inode>,
    /// The names of the directories on the way.
    way: Vec<Name>,
}

/// All directories.
#[derive(Debug)]
pub(super) struct Names {
    directories: BTreeMap<Inode, Directory>,
    journal: Vec<Change>,
    next: Inode,
}

impl Names {
    /// A root with nothing in it.
    pub(super) fn new() -> Self {
        let directories = BTreeMap::from([(ROOT, Directory::default())]);
        Self { directories, journal: Vec::new(), next: ROOT + 1 }
    }

    /// A number for a new file.
    pub(super) fn new_inode(&mut self) -> Inode {
        self.next += 1;
        self.next - 1
    }

    /// Whether it is a directory; otherwise it is a file.
    pub(super) fn is_directory(&self, inode: Inode) -> bool {
        self.directories.contains_key(&inode)
    }

    /// The file or directory at a path.
    pub(super) fn find(&self, path: &Path) -> io::Result<Inode> {
        let mut inode = ROOT;
        for name in normal(path) {
            inode = self.child(inode, &name)?.ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(inode)
    }

    /// The file at a path.
    pub(super) fn find_file(&self, path: &Path) -> io::Result<Inode> {
        let inode = self.find(path)?;
        if self.is_directory(inode) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(inode)
    }

    /// The directory at a path.
    pub(super) fn find_directory(&self, path: &Path) -> io::Result<Inode> {
        let inode = self.find(path)?;
        if !self.is_directory(inode) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(inode)
    }

    /// Where a file of that path is or would be.
    pub(super) fn place(&self, path: &Path) -> io::Result<ResolvedPath> {
        let mut names = normal(path);
        // The root has no name.
        let last = names.pop().ok_or(io::ErrorKind::IsADirectory)?;
        let (mut directory, mut way) = (ROOT, Vec::new());
        for name in names {
            let child = self.child(directory, &name)?.ok_or(io::ErrorKind::NotFound)?;
            way.push((directory, name));
            directory = child;
        }
        let inode = self.child(directory, &last)?;
        if inode.is_some_and(|inode| self.is_directory(inode)) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(ResolvedPath { name: (directory, last), inode, way })
    }

    /// What is in a directory, sorted.
    pub(super) fn children(&self, directory: Inode) -> impl Iterator<Item = (&OsString, Inode)> {
        self.directories[&directory].present.iter().map(|(name, &inode)| (name, inode))
    }

    /// Gives a file a name, or takes it away.
    pub(super) fn set(&mut self, name: Name, inode: Option<Inode>) {
        self.change(Change { entries: vec![(name, inode)], needs: Vec::new() });
    }

    /// Moves a file from a name to another in one step.
    pub(super) fn rename(&mut self, from: ResolvedPath, to: ResolvedPath) {
        let entries = vec![(from.name, None), (to.name, from.inode)];
        self.change(Change { entries, needs: to.way });
    }

    /// Makes the directories of a path that are not there; returns all of them, from the root.
    pub(super) fn create_directories(&mut self, path: &Path) -> io::Result<Vec<Inode>> {
        let mut directories = vec![ROOT];
        let mut directory = ROOT;
        for name in normal(path) {
            directory = match self.child(directory, &name)? {
                Some(child) if self.is_directory(child) => child,
                Some(_) => return Err(io::ErrorKind::AlreadyExists.into()),
                None => {
                    let child = self.new_inode();
                    self.directories.insert(child, Directory::default());
                    self.set((directory, name), Some(child));
                    child
                }
            };
            directories.push(directory);
        }
        Ok(directories)
    }

    /// Removes a directory with all below it, one name after the other from below; returns the files.
    pub(super) fn remove_tree(&mut self, path: &Path) -> io::Result<Vec<Inode>> {
        let root = self.find_directory(path)?;
        let mut names = normal(path);
        let last = names.pop().ok_or(io::ErrorKind::ResourceBusy)?;
        let parent = self.find_directory(&names.iter().collect::<std::path::PathBuf>())?;

        let mut found = vec![((parent, last), root)];
        let mut next = 0;
        while let Some(&(_, inode)) = found.get(next) {
            if self.is_directory(inode) {
                let below = self.children(inode).map(|(name, child)| ((inode, name.clone()), child));
                let below: Vec<_> = below.collect();
                found.extend(below);
            }
            next += 1;
        }
        let mut files = Vec::new();
        for (name, inode) in found.into_iter().rev() {
            self.set(name, None);
            if !self.is_directory(inode) {
                files.push(inode);
            }
        }
        Ok(files)
    }

    /// Makes the names in a directory durable, and the changes to other names that those depend on.
    pub(super) fn sync(&mut self, directory: Inode) {
        let mut wanted: BTreeSet<Name> = BTreeSet::new();
        let (mut early, mut late) = (VecDeque::new(), VecDeque::new());
        for change in std::mem::take(&mut self.journal).into_iter().rev() {
            let mut names = change.entries.iter().map(|(name, _)| name);
            if names.any(|name| name.0 == directory || wanted.contains(name)) {
                wanted.extend(change.entries.iter().map(|(name, _)| name.clone()));
                wanted.extend(change.needs.iter().cloned());
                early.push_front(change);
            } else {
                late.push_front(change);
            }
        }
        early.into_iter().for_each(|change| self.make_durable(change));
        self.journal = late.into();
    }

    /// Loses power: a prefix of the journal survives, and then what can be reached from the root.
    /// Returns the files among it.
    pub(super) fn crash(&mut self, random: &mut Generator) -> BTreeSet<Inode> {
        let journal = std::mem::take(&mut self.journal);
        let survive = match random.up_to(3) {
            0 => 0,
            1 => journal.len(),
            _ => random.up_to(journal.len() as u64) as usize,
        };
        journal.into_iter().take(survive).for_each(|change| self.make_durable(change));
        for directory in self.directories.values_mut() {
            directory.present = directory.durable.clone();
        }

        let mut reached = BTreeSet::from([ROOT]);
        let mut left = vec![ROOT];
        while let Some(inode) = left.pop() {
            if let Some(directory) = self.directories.get(&inode) {
                left.extend(directory.present.values());
                reached.extend(directory.present.values());
            }
        }
        self.directories.retain(|inode, _| reached.contains(inode));
        reached.retain(|&inode| !self.is_directory(inode));
        reached
    }

    /// Drops directories that nobody can come to anymore; returns the files that somebody still can.
    pub(super) fn collect(&mut self) -> BTreeSet<Inode> {
        let mut known = BTreeSet::from([ROOT]);
        for directory in self.directories.values() {
            known.extend(directory.present.values().chain(directory.durable.values()));
        }
        let pending = self.journal.iter().flat_map(|change| &change.entries);
        known.extend(pending.filter_map(|(_, inode)| *inode));
        self.directories.retain(|inode, _| known.contains(inode));
        known.retain(|&inode| !self.is_directory(inode));
        known
    }

    fn child(&self, directory: Inode, name: &OsString) -> io::Result<Option<Inode>> {
        let directory = self.directories.get(&directory).ok_or(io::ErrorKind::NotADirectory)?;
        Ok(directory.present.get(name).copied())
    }

    fn change(&mut self, change: Change) {
        for ((directory, name), inode) in &change.entries {
            let directory = self.directories.get_mut(directory).expect("a name is in a directory");
            set_entry(&mut directory.present, name, *inode);
        }
        self.journal.push(change);
    }

    fn make_durable(&mut self, change: Change) {
        for ((directory, name), inode) in &change.entries {
            // A directory that was removed may be gone for good.
            if let Some(directory) = self.directories.get_mut(directory) {
                set_entry(&mut directory.durable, name, *inode);
            }
        }
    }
}

fn set_entry(entries: &mut BTreeMap<OsString, Inode>, name: &OsString, inode: Option<Inode>) {
    match inode {
        Some(inode) => entries.insert(name.clone(), inode),
        None => entries.remove(name),
    };
}

/// The names in a path from the root; the current directory is the root.
fn normal(path: &Path) -> Vec<OsString> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_owned()),
            Component::ParentDir => {
                names.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    names
}
