//! Memory of which the system tells what was read and written, and counts as tables keep them: for measurements only.
//!
//! Responsible for: what ways to observe accesses need of `unsafe` code. Not responsible for: measuring them (`bench`), nor
//! for the tables of a database, whose reads are counted (`rows/reads.rs`).
//!
//! - [`Protection`]: no access is permitted. A handler of SIGSEGV notes the page of each, and permits it from then on.
//! - [`WriteTracking`]: the page tables say which pages were written; the system call `userfaultfd` arranges that, and
//!   `PAGEMAP_SCAN` reads it. Of reads they say nothing: `PAGEMAP_SCAN` has no category for pages that were accessed.
//!
//! Paper: Funke, Kemper and Neumann, *Compacting Transactional Data in Hybrid OLTP & OLAP Databases*, VLDB 2012, §4.1 and
//! §5.3.

mod protection;
mod writes;

use std::io;
use std::ptr::NonNull;

use albireo_base::Tid;

pub use protection::Protection;
pub use writes::WriteTracking;

use crate::rows::Reads;

/// Bytes of a page, the least of which the system tells.
pub const PAGE_BYTES: usize = 4096;
/// Bytes of an entry.
const ENTRY_BYTES: usize = size_of::<u64>();

/// Entries of eight bytes in small pages of their own.
///
/// Every other of its areas is left out of core dumps. Nobody needs that, but areas that differ stay apart, and some of
/// what the system tells it tells by area.
#[derive(Debug)]
pub struct ObservedMemory {
    start: NonNull<u64>,
    entries: usize,
}

impl ObservedMemory {
    /// So many entries, each with its number as its value, in areas of so many, which have to fill pages.
    ///
    /// # Errors
    /// The system has no memory, or takes no advice.
    pub fn new(entries: usize, entries_of_area: usize) -> io::Result<Self> {
        let (bytes, area_bytes) = (bytes_of(entries), entries_of_area * ENTRY_BYTES);
        assert!(
            entries > 0 && area_bytes > 0 && area_bytes.is_multiple_of(PAGE_BYTES),
            "areas are whole pages"
        );
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        let Some(start) = NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED) else {
            return Err(io::Error::last_os_error());
        };
        let memory = Self { start, entries };
        memory.advise(0, bytes, libc::MADV_NOHUGEPAGE)?;
        for offset in (0..bytes).step_by(area_bytes * 2) {
            memory.advise(offset, area_bytes.min(bytes - offset), libc::MADV_DONTDUMP)?;
        }
        (0..entries).for_each(|entry| memory.write(entry, entry as u64));
        Ok(memory)
    }

    fn advise(&self, offset: usize, bytes: usize, advice: libc::c_int) -> io::Result<()> {
        assert!(offset + bytes <= self.bytes(), "a range of the mapping");
        let start = (self.address() + offset) as *mut libc::c_void;
        // SAFETY: a range of our own mapping, asserted; the advice that is given here changes no content.
        done(unsafe { libc::madvise(start, bytes, advice) })
    }

    /// How many entries there are.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Where it lies.
    pub fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }

    /// Its bytes, of whole pages.
    pub fn bytes(&self) -> usize {
        bytes_of(self.entries)
    }

    /// The value of an entry, read as it is now.
    #[inline]
    pub fn read(&self, entry: usize) -> u64 {
        assert!(entry < self.entries, "an entry of the mapping");
        // SAFETY: in bounds, asserted, and aligned, as pages are; the mapping lives as long as `self`, and a protected page
        // is permitted by the handler. A volatile access is neither moved nor left out.
        unsafe { self.start.as_ptr().add(entry).read_volatile() }
    }

    /// Gives an entry a value.
    #[inline]
    pub fn write(&self, entry: usize, value: u64) {
        assert!(entry < self.entries, "an entry of the mapping");
        // SAFETY: in bounds and alive, as where it is read. No reference to an entry is ever made, and one thread at a time
        // has the mapping: a `NonNull` is not shared between threads.
        unsafe { self.start.as_ptr().add(entry).write_volatile(value) }
    }
}

impl Drop for ObservedMemory {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nobody uses any more: protections and trackings borrow it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes()) };
    }
}

/// The bytes of so many entries, of whole pages.
fn bytes_of(entries: usize) -> usize {
    (entries * ENTRY_BYTES).next_multiple_of(PAGE_BYTES)
}

/// What a system call returned.
fn done(returned: libc::c_int) -> io::Result<()> {
    if returned == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Counts of reads as tables keep them of their chunks.
pub struct SampledReads(Reads);

impl SampledReads {
    /// Of so many chunks.
    pub fn new(chunks: usize) -> Self {
        let mut reads = Reads::default();
        reads.cover(chunks, true);
        Self(reads)
    }

    /// A row was found.
    #[inline(always)]
    pub fn note(&self, tid: Tid) {
        self.0.note(tid);
    }

    /// About how often rows of a chunk were found.
    pub fn of(&self, chunk: usize) -> u64 {
        self.0.of(chunk)
    }
}
