//! Page protection: the first access to each page is a fault, which a handler notes.
//!
//! - P-1 One protection at a time in a process: `ONE` is locked while it lives.
//! - P-2 `WATCHED` points to what lives, or is null. Who frees it has the former handler back in its place, sets it to null,
//!   and waits until no handler runs that may have loaded it before: each counts itself in `RUNNING` first.
//! - P-3 A fault elsewhere is not ours: the former handler gets it, because the access is done again.

use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::{ObservedMemory, PAGE_BYTES, done};

/// Held by the protection that there is.
static ONE: Mutex<()> = Mutex::new(());
/// What the handler has to know.
static WATCHED: AtomicPtr<Watched> = AtomicPtr::new(null_mut());
/// Handlers that run.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// A mapping whose pages are protected until they are accessed.
struct Watched {
    start: usize,
    bytes: usize,
    /// Of each page, whether it was accessed.
    seen: Box<[AtomicBool]>,
    /// The system did not permit a single page, so all were permitted at once.
    is_lost: AtomicBool,
    former: libc::sigaction,
}

impl Watched {
    /// Notes the page of an address and permits it; `false` if the address is elsewhere or the page stays protected. Called by
    /// the handler.
    fn permit(&self, address: usize) -> bool {
        let Some(offset) = address.checked_sub(self.start).filter(|offset| *offset < self.bytes) else {
            return false;
        };
        let page = offset / PAGE_BYTES;
        self.seen[page].store(true, Ordering::Relaxed);
        if set_access(self.start + page * PAGE_BYTES, PAGE_BYTES, READ_WRITE).is_ok() {
            return true;
        }
        self.is_lost.store(true, Ordering::Relaxed);
        set_access(self.start, self.bytes, READ_WRITE).is_ok()
    }
}

const READ_WRITE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

/// Says what accesses to pages of an [`ObservedMemory`] are permitted: reads and writes, or none.
fn set_access(start: usize, bytes: usize, access: libc::c_int) -> io::Result<()> {
    // SAFETY: pages of a mapping that is accessed in no way but by `ObservedMemory`, which has a handler for refused accesses
    // while any page is protected. On Linux this is a system call and nothing else, so a handler may do it.
    done(unsafe { libc::mprotect(start as *mut libc::c_void, bytes, access) })
}

/// The handler of SIGSEGV.
extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    RUNNING.fetch_add(1, Ordering::SeqCst);
    let watched = WATCHED.load(Ordering::SeqCst);
    if !watched.is_null() {
        // SAFETY: the kernel passes a valid `info` to a handler that is installed with SA_SIGINFO.
        let address = unsafe { (*info).si_addr() } as usize;
        // SAFETY: P-2, it is not freed before this handler has ended: it has counted itself above.
        let watched = unsafe { &*watched };
        if !watched.permit(address) {
            // P-3.
            // SAFETY: what the system gave as the former handler; the call is async-signal-safe.
            unsafe { libc::sigaction(signal, &raw const watched.former, null_mut()) };
        }
    }
    RUNNING.fetch_sub(1, Ordering::SeqCst);
}

/// An interval in which the first access to each page of a memory is noted.
pub struct Protection<'a> {
    memory: &'a ObservedMemory,
    watched: NonNull<Watched>,
    _one: MutexGuard<'static, ()>,
}

impl ObservedMemory {
    /// Notes accesses from now on, by page. Waits for others who protect theirs: there is one handler for a process.
    ///
    /// # Errors
    /// The system refuses a handler or the protection.
    pub fn protect(&self) -> io::Result<Protection<'_>> {
        let one = ONE.lock();
        // SAFETY: a structure of C, of which all zeroes are a valid value.
        let [former, mut action]: [libc::sigaction; 2] = unsafe { std::mem::zeroed() };
        let (start, bytes) = (self.address(), self.bytes());
        let seen = (0..bytes / PAGE_BYTES).map(|_| AtomicBool::new(false)).collect();
        let watched = Box::new(Watched { start, bytes, seen, is_lost: AtomicBool::new(false), former });
        let watched = NonNull::from(Box::leak(watched));
        // SAFETY: nobody else knows it yet; only the place for the former handler is named, and no reference is made.
        let former = unsafe { &raw mut (*watched.as_ptr()).former };
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler has the signature that SA_SIGINFO asks for and calls nothing that is not async-signal-safe;
        // `former` is a place for one. Until `WATCHED` is set it does nothing.
        let installed = done(unsafe { libc::sigaction(libc::SIGSEGV, &raw const action, former) });
        if let Err(error) = installed {
            // SAFETY: it came from a box above, and nobody else knows it.
            drop(unsafe { Box::from_raw(watched.as_ptr()) });
            return Err(error);
        }
        WATCHED.store(watched.as_ptr(), Ordering::SeqCst);
        let protection = Protection { memory: self, watched, _one: one };
        set_access(start, bytes, libc::PROT_NONE)?;
        Ok(protection)
    }
}

impl Protection<'_> {
    /// Pages that were accessed.
    ///
    /// # Errors
    /// The system did not permit single pages, so it is not known of all.
    pub fn seen_pages(&self) -> io::Result<usize> {
        // SAFETY: it lives until the protection is dropped, and is only read, or written as atomics, since it was published.
        let watched = unsafe { self.watched.as_ref() };
        if watched.is_lost.load(Ordering::Relaxed) {
            return Err(io::Error::other(
                "the system has no room for so many areas of memory (vm.max_map_count)",
            ));
        }
        Ok(watched.seen.iter().filter(|seen| seen.load(Ordering::Relaxed)).count())
    }
}

impl Drop for Protection<'_> {
    fn drop(&mut self) {
        let permitted = set_access(self.memory.address(), self.memory.bytes(), READ_WRITE);
        // SAFETY: it lives until the end of this function.
        let former = unsafe { &raw const (*self.watched.as_ptr()).former };
        // SAFETY: what the system gave as the former handler.
        unsafe { libc::sigaction(libc::SIGSEGV, former, null_mut()) };
        WATCHED.store(null_mut(), Ordering::SeqCst);
        while RUNNING.load(Ordering::SeqCst) > 0 {
            std::hint::spin_loop();
        }
        // SAFETY: it came from a box, and P-2: no handler has it any more, and none will.
        drop(unsafe { Box::from_raw(self.watched.as_ptr()) });
        assert!(permitted.is_ok(), "pages of the mapping can be permitted again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The handler of SIGSEGV that is installed.
    fn handler() -> usize {
        // SAFETY: a structure of C, of which all zeroes are a valid value.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: nothing is installed, and `action` is a place for what is.
        unsafe { libc::sigaction(libc::SIGSEGV, std::ptr::null(), &raw mut action) };
        action.sa_sigaction
    }

    #[test]
    fn protected_pages_that_are_accessed_are_seen_once_and_keep_their_entries() {
        let memory = ObservedMemory::new(3 * 2048 - 100, 1024).expect("memory");
        let before = ONE.lock();
        let former = handler();
        drop(before);
        for turn in 0..3 {
            let protection = memory.protect().expect("a protection");
            assert_eq!(protection.seen_pages().expect("all are known"), 0);
            assert_eq!((memory.read(600), memory.read(601)), (600, 601));
            memory.write(5000, 5000 + turn);
            assert_eq!(memory.read(5000), 5000 + turn);
            assert_eq!(protection.seen_pages().expect("all are known"), 2);
        }
        let after = ONE.lock();
        assert_eq!(handler(), former, "the former handler is back");
        drop(after);
        assert!((0..memory.entries()).filter(|entry| *entry != 5000).all(|at| memory.read(at) == at as u64));
    }
}
