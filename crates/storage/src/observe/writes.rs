//! Writes by page, as page tables have them: `userfaultfd` protects pages from writes and, asynchronously, lets each write
//! through without telling anybody; `PAGEMAP_SCAN` says which pages are not protected any more and protects them again.
//! Linux 6.7 on x86-64. A process needs no privilege for its own memory.
//!
//! The structures and numbers are those of `linux/userfaultfd.h` and `linux/fs.h`, which `libc` does not have.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::{ObservedMemory, PAGE_BYTES, done};

/// Argument of `UFFDIO_API`.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// Argument of `UFFDIO_REGISTER`.
#[repr(C)]
struct Register {
    start: u64,
    bytes: u64,
    mode: u64,
    ioctls: u64,
}

/// Argument of `UFFDIO_WRITEPROTECT`.
#[repr(C)]
struct WriteProtect {
    start: u64,
    bytes: u64,
    mode: u64,
}

/// Argument of `PAGEMAP_SCAN`.
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    most_regions: u64,
    most_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// What `PAGEMAP_SCAN` finds.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

const UFFDIO_API: u64 = 0xc018_aa3f;
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
const UFFDIO_WRITEPROTECT: u64 = 0xc018_aa06;
const PAGEMAP_SCAN: u64 = 0xc060_6610;
/// The version of the interface.
const UFFD_API: u64 = 0xaa;
/// Faults of the kernel itself are not handled: this needs no privilege.
const UFFD_USER_MODE_ONLY: libc::c_int = 1;
const UFFD_FEATURE_WP_ASYNC: u64 = 1 << 15;
const UFFDIO_REGISTER_MODE_WP: u64 = 1 << 1;
const UFFDIO_WRITEPROTECT_MODE_WP: u64 = 1;
/// What is found is protected again.
const PM_SCAN_WP_MATCHING: u64 = 1;
/// A range that is not protected in this way is an error.
const PM_SCAN_CHECK_WPASYNC: u64 = 1 << 1;
const PAGE_IS_WRITTEN: u64 = 1 << 1;
/// Ranges of pages that one call finds.
const REGIONS: usize = 1024;

/// Calls `ioctl`.
///
/// # Safety
/// S-1: `request` takes a structure of the type of `argument`. S-2: addresses in it are of what the caller may give the
/// kernel to use like this.
unsafe fn ioctl<T>(file: BorrowedFd<'_>, request: u64, argument: &mut T) -> io::Result<libc::c_int> {
    // SAFETY: a file that is open, and S-1 and S-2.
    let returned = unsafe { libc::ioctl(file.as_raw_fd(), request as _, &raw mut *argument) };
    done(returned).map(|()| returned)
}

/// Writes to a memory, which are noted until this is dropped.
pub struct WriteTracking<'a> {
    memory: &'a ObservedMemory,
    /// Closing it ends the protection.
    _userfaultfd: OwnedFd,
}

impl ObservedMemory {
    /// Notes writes from now on, by page.
    ///
    /// # Errors
    /// The kernel does not do that, or does not permit it.
    pub fn track_writes(&self) -> io::Result<WriteTracking<'_>> {
        // SAFETY: a system call that takes flags and gives a file.
        let file = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | UFFD_USER_MODE_ONLY) };
        if file == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the file that was just opened, which nobody else has.
        let userfaultfd = unsafe { OwnedFd::from_raw_fd(file as libc::c_int) };
        let mut api = Api { api: UFFD_API, features: UFFD_FEATURE_WP_ASYNC, ioctls: 0 };
        // SAFETY: S-1, the structure of this request; S-2, it has no address.
        unsafe { ioctl(userfaultfd.as_fd(), UFFDIO_API, &mut api) }?;
        let (start, bytes) = (self.address() as u64, self.bytes() as u64);
        let mut register = Register { start, bytes, mode: UFFDIO_REGISTER_MODE_WP, ioctls: 0 };
        // SAFETY: S-1, the structure of this request; S-2, our own mapping, whose contents do not change.
        unsafe { ioctl(userfaultfd.as_fd(), UFFDIO_REGISTER, &mut register) }?;
        let mut protect = WriteProtect { start, bytes, mode: UFFDIO_WRITEPROTECT_MODE_WP };
        // SAFETY: S-1, the structure of this request; S-2, our own mapping, where the kernel lets writes through.
        unsafe { ioctl(userfaultfd.as_fd(), UFFDIO_WRITEPROTECT, &mut protect) }?;
        Ok(WriteTracking { memory: self, _userfaultfd: userfaultfd })
    }
}

impl WriteTracking<'_> {
    /// How many pages were written since the last call, or since it began; `pagemap` is `/proc/self/pagemap`.
    ///
    /// # Errors
    /// The kernel has no such call, or does not permit it.
    pub fn written_pages(&self, pagemap: BorrowedFd<'_>) -> io::Result<usize> {
        let mut regions = vec![Region::default(); REGIONS];
        let (mut start, end) =
            (self.memory.address() as u64, (self.memory.address() + self.memory.bytes()) as u64);
        let mut bytes = 0;
        while start < end {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                flags: PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC,
                start,
                end,
                walk_end: 0,
                regions: regions.as_mut_ptr() as u64,
                most_regions: regions.len() as u64,
                most_pages: 0,
                category_inverted: 0,
                category_mask: PAGE_IS_WRITTEN,
                category_anyof_mask: 0,
                return_mask: PAGE_IS_WRITTEN,
            };
            // SAFETY: S-1, the structure of this request, whose size it says, and which no other kind of file has; S-2, our
            // own mapping, whose contents do not change, and room for as many regions as it says.
            let found = unsafe { ioctl(pagemap, PAGEMAP_SCAN, &mut scan) }? as usize;
            assert!(
                found <= regions.len() && scan.walk_end > start && scan.walk_end <= end,
                "the scan goes on"
            );
            bytes += regions[..found].iter().map(|region| region.end - region.start).sum::<u64>();
            start = scan.walk_end;
        }
        Ok(bytes as usize / PAGE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test reads what the kernel tells of this process")]
    fn written_pages_are_found_once_and_read_ones_are_not() {
        let memory = ObservedMemory::new(8 * 512, 512).expect("memory");
        let pagemap = std::fs::File::open("/proc/self/pagemap").expect("one's own pages");
        let tracking = match memory.track_writes() {
            Ok(tracking) => tracking,
            Err(error) => return println!("not here: {error}"),
        };
        match tracking.written_pages(pagemap.as_fd()) {
            Ok(pages) => assert_eq!(pages, 0),
            Err(error) => return println!("not here: {error}"),
        }
        (0..memory.entries()).for_each(|entry| assert_eq!(memory.read(entry), entry as u64));
        [0, 511, 1024, 4000].into_iter().for_each(|entry| memory.write(entry, 7));
        assert_eq!(tracking.written_pages(pagemap.as_fd()).expect("it worked before"), 3);
        assert_eq!(tracking.written_pages(pagemap.as_fd()).expect("it worked before"), 0);
        drop(tracking);
        assert_eq!((memory.read(0), memory.read(1), memory.read(4000)), (7, 1, 7));
    }
}
