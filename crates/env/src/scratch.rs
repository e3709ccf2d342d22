//! Directories for temporary files that do not outlive their process.
//!
//! Each holder makes a directory of its own below a common one, and keeps the file `lock` in it locked. The system
//! gives the lock back when the process ends, however it ends, so whoever can take the lock may remove the directory.
//!
//! Responsible for: making, removing and recognising such directories. Not responsible for: the files in them.
//!
//! I-1 A directory whose lock is held is not removed by others. I-2 Nothing is removed that does not belong to this
//! user, is not named as such a directory, or lies behind a symbolic link. I-3 The lock's file goes last, so that a
//! removal that was interrupted can be continued.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What the names of such directories begin with; a process id and a number follow.
const PREFIX: &str = "albireo-spill-";

/// The locked file.
const LOCK: &str = "lock";

/// Names tried before giving up: others are in the way of few.
const ATTEMPTS: u32 = 10_000;

/// A directory of this holder's own. Removed with all that is in it when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Makes one below `base`.
    ///
    /// # Errors
    /// The operating system's: there is no `base`, or nothing can be written there.
    pub fn create(base: &Path) -> io::Result<Self> {
        for number in 0..ATTEMPTS {
            let path = base.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            match lock_new(&path) {
                Ok(Some(lock)) => return Ok(Self { path, _lock: lock }),
                // Somebody who cleans up was faster.
                Ok(None) => {}
                Err(error) => {
                    remove(&path);
                    return Err(error);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directories below `base` that processes of this user left behind when they were killed; how many.
    /// What cannot be removed stays.
    pub fn remove_abandoned(base: &Path) -> usize {
        let Ok(entries) = fs::read_dir(base) else { return 0 };
        let named = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            is_name(entry.file_name().to_str()?).then(|| entry.path())
        };
        entries.filter_map(named).filter(|path| remove_if_abandoned(path)).count()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Makes and locks the lock of a new directory; `None` if the directory has been taken for an abandoned one.
fn lock_new(directory: &Path) -> io::Result<Option<File>> {
    let path = directory.join(LOCK);
    let file = match File::create_new(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Ok(None),
        Err(fs::TryLockError::Error(error)) => return Err(error),
    }
    Ok(is_at(&file, &path).then_some(file))
}

/// Whether a lock that was opened at `path`, and is held now, is still the file that is there: between the two its
/// directory may have been removed, and another made under its name.
fn is_at(lock: &File, path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|there| {
        lock.metadata().is_ok_and(|ours| (there.dev(), there.ino()) == (ours.dev(), ours.ino()))
    })
}

fn is_name(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

fn remove_if_abandoned(path: &Path) -> bool {
    let is_ours = fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_dir() && found.uid() == rustix::process::geteuid().as_raw());
    if !is_ours {
        return false;
    }
    match File::open(path.join(LOCK)) {
        Ok(lock) => remove_locked(path, &lock),
        // Its holder was killed before it made the lock, or is about to: then making it fails, and it takes another
        // name. Only an empty directory goes so.
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::remove_dir(path).is_ok(),
        Err(_) => false,
    }
}

/// Removes a directory in which `lock` was opened, if it is nobody's and still its lock.
fn remove_locked(directory: &Path, lock: &File) -> bool {
    lock.try_lock().is_ok() && is_at(lock, &directory.join(LOCK)) && remove(directory)
}

/// Removes a directory whose lock is held by the caller, the lock last; whether it is gone.
fn remove(directory: &Path) -> bool {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let _ = match entry.file_type() {
            Ok(kind) if kind.is_dir() => fs::remove_dir_all(path),
            _ if entry.file_name() == LOCK => Ok(()),
            _ => fs::remove_file(path),
        };
    }
    let _ = fs::remove_file(directory.join(LOCK));
    fs::remove_dir(directory).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of the test's own, gone at its end.
    struct Base(PathBuf);

    impl Base {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("albireo-scratch-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
            let mut names: Vec<_> = fs::read_dir(&self.0).unwrap().map(name).collect();
            names.sort();
            names
        }
    }

    impl Drop for Base {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn directory_that_is_held_stays_and_one_that_is_dropped_goes_with_its_files() {
        let base = Base::new("held");
        let (first, second) = (Scratch::create(&base.0).unwrap(), Scratch::create(&base.0).unwrap());
        fs::create_dir(first.path().join("deep")).unwrap();
        fs::write(first.path().join("deep/file"), b"x").unwrap();
        assert_eq!(Scratch::remove_abandoned(&base.0), 0);
        assert_eq!(base.names().len(), 2);
        drop(first);
        assert_eq!(base.names(), [second.path().file_name().unwrap().to_str().unwrap()]);
    }

    #[test]
    fn directory_whose_holder_is_dead_is_removed_with_its_files() {
        let base = Base::new("dead");
        for (name, has_lock) in [("albireo-spill-1-0", true), ("albireo-spill-1-1", false)] {
            fs::create_dir(base.0.join(name)).unwrap();
            if has_lock {
                fs::create_dir(base.0.join(name).join("deep")).unwrap();
                fs::write(base.0.join(name).join("deep/file"), b"x").unwrap();
                fs::write(base.0.join(name).join(LOCK), b"").unwrap();
            }
        }
        assert_eq!(Scratch::remove_abandoned(&base.0), 2);
        assert!(base.names().is_empty());
    }

    #[test]
    fn nothing_else_is_removed() {
        let base = Base::new("else");
        fs::create_dir(base.0.join("albireo-spill-2-x")).unwrap();
        fs::create_dir(base.0.join("target")).unwrap();
        fs::write(base.0.join("target").join(LOCK), b"").unwrap();
        fs::write(base.0.join("target/file"), b"x").unwrap();
        std::os::unix::fs::symlink(base.0.join("target"), base.0.join("albireo-spill-2-0")).unwrap();
        fs::write(base.0.join("albireo-spill-3-0"), b"a file").unwrap();
        fs::create_dir(base.0.join("albireo-spill-4-0")).unwrap();
        fs::write(base.0.join("albireo-spill-4-0/file"), b"without a lock").unwrap();
        let before = base.names();
        assert_eq!(Scratch::remove_abandoned(&base.0), 0);
        assert_eq!(base.names(), before);
        assert!(base.0.join("target/file").exists());
        assert_eq!(Scratch::remove_abandoned(&base.0.join("nowhere")), 0);
    }
}
