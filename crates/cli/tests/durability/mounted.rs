//! A file system of a few megabytes, mounted for a test, which is skipped, and says so, where mounting is not
//! allowed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::directory::TestDirectory;

/// A small file system; unmounted when it is dropped.
pub struct Mounted {
    place: TestDirectory,
}

impl Mounted {
    /// One of so many megabytes.
    ///
    /// # Errors
    /// It cannot be mounted.
    pub fn new(megabytes: u32) -> Result<Self, String> {
        let place = TestDirectory::new("full");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"])
            .arg(place.path())
            .output()
            .map_err(|error| error.to_string())?;
        match mount.status.success() {
            true => Ok(Self { place }),
            false => Err(String::from_utf8_lossy(&mount.stderr).into_owned()),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Lets nobody write there any more.
    pub fn make_read_only(&self) {
        let status = Command::new("mount").args(["-o", "remount,ro"]).arg(self.path()).status();
        assert!(status.is_ok_and(|status| status.success()), "what was mounted can be mounted again");
    }

    /// Takes all the room that is left.
    pub fn fill(&self) -> PathBuf {
        let path = self.path().join("filler");
        let mut bytes = 16 << 20;
        let mut filled: Vec<u8> = Vec::new();
        while bytes >= 4096 {
            let longer = [&filled[..], &vec![1; bytes]].concat();
            match std::fs::write(&path, &longer) {
                Ok(()) => filled = longer,
                Err(_) => bytes /= 2,
            }
        }
        std::fs::write(&path, &filled).expect("so much had room");
        path
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: also while a failed test still has files open.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
