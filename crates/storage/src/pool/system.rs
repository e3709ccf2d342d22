//! What the pool asks of the kernel: address space, pages, and to take pages back.

use std::ptr::NonNull;

use super::{SLAB_BYTES, SlabPtr};

/// Bytes of a small page.
pub(super) const PAGE_BYTES: usize = 4096;

/// The pages behind an address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    /// Of 2 MiB where the kernel has them; they come and go as a whole.
    Huge,
    /// Of 4 KiB: each comes when it is written or asked for, and goes when it is given back.
    Small,
}

/// Maps so many bytes, a multiple of a slab's, aligned to a slab; `None` when the kernel refuses.
pub(super) fn map(bytes: usize, pages: Pages) -> Option<NonNull<u8>> {
    assert!(bytes > 0 && bytes.is_multiple_of(SLAB_BYTES), "{bytes} bytes are mapped");
    let length = bytes.checked_add(SLAB_BYTES)?;
    // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no memory
    // of ours.
    let raw = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if raw == libc::MAP_FAILED {
        return None;
    }
    let start = raw as usize;
    let aligned = start.next_multiple_of(SLAB_BYTES);
    assert!(aligned + bytes <= start + length, "the region lies in what was mapped");
    let advice = match pages {
        Pages::Huge => libc::MADV_HUGEPAGE,
        Pages::Small => libc::MADV_NOHUGEPAGE,
    };
    // SAFETY: all ranges lie inside the mapping just made; those unmapped outside the region that is kept.
    unsafe {
        if aligned > start {
            libc::munmap(raw, aligned - start);
        }
        let tail = start + length - (aligned + bytes);
        if tail > 0 {
            libc::munmap((aligned + bytes) as *mut libc::c_void, tail);
        }
        // Advice: if the kernel has no huge pages for us, small ones serve.
        libc::madvise(aligned as *mut libc::c_void, bytes, advice);
    }
    NonNull::new(aligned as *mut u8)
}

/// Unmaps a region.
///
/// # Safety
/// S-1: [`map`] gave it, with this length. S-2: nobody reads or writes it any more.
pub(super) unsafe fn unmap(region: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's S-1 and S-2.
    unsafe { libc::munmap(region.as_ptr().cast(), bytes) };
}

/// Gives pages back to the kernel. Their addresses stay ours, and read as zeroes.
///
/// # Safety
/// S-1: they are whole pages of a region that is mapped. S-2: nobody else reads or writes them meanwhile.
pub(super) unsafe fn give_back(start: NonNull<u8>, bytes: usize) {
    debug_assert!((start.as_ptr() as usize).is_multiple_of(PAGE_BYTES) && bytes.is_multiple_of(PAGE_BYTES));
    // SAFETY: memory of ours (S-1) whose contents nobody wants (S-2).
    let done = unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_DONTNEED) };
    // It only fails for addresses that are not ours, or locked pages: then they stay, which does no harm.
    debug_assert_eq!(done, 0, "pages are given back");
}

/// As [`give_back`], where only a part of a huge page may be given back: has the kernel split it, which takes it a third of
/// a millisecond, and sometimes some milliseconds. By itself it would keep such a page whole until memory is short.
///
/// # Safety
/// As of [`give_back`].
pub(super) unsafe fn give_back_part(start: NonNull<u8>, bytes: usize) {
    let (at, window) = (start.as_ptr() as usize, SLAB_BYTES - 1);
    let end = at + bytes;
    // What of the range lies before the first huge page that is all in it, and what behind the last one.
    let before = at..end.min((at + window) & !window);
    let behind = before.end.max(end & !window)..end;
    for part in [before, behind].into_iter().filter(|part| !part.is_empty()) {
        // SAFETY: memory of ours (S-1) whose contents nobody wants (S-2). Advice.
        unsafe { libc::madvise(part.start as *mut libc::c_void, part.len(), libc::MADV_FREE) };
    }
    // SAFETY: the caller's S-1 and S-2.
    unsafe { give_back(start, bytes) };
}

/// Asks for pages that are about to be written, all at once: one by one, as they are met, each costs an exception.
///
/// # Safety
/// S-1: they are whole pages of a region that is mapped. S-2: they are the caller's.
pub(super) unsafe fn provide(start: NonNull<u8>, bytes: usize) {
    // SAFETY: it changes no contents, and the pages are the caller's (S-1, S-2). Advice: a kernel that does not know it
    // provides pages as they are met.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_POPULATE_WRITE) };
}

/// Asks for pages that are about to be written, of 2 MiB where the kernel has them, and waits for them: it clears each at
/// once. From then on small ones come and go there.
///
/// They are met by writing and not asked for as in [`provide`], since whoever changes the mappings of the process, and all
/// that come behind him, would wait for those.
///
/// # Safety
/// S-1: they are whole huge pages of a region that is mapped. S-2: they are the caller's.
pub(super) unsafe fn provide_huge(start: NonNull<u8>, bytes: usize) {
    let advise = |advice: libc::c_int| {
        // SAFETY: it changes no contents, and the pages are the caller's (S-1, S-2). Advice: where the kernel has no huge
        // pages for us, small ones serve.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, advice) };
    };
    advise(libc::MADV_HUGEPAGE);
    for offset in (0..bytes).step_by(PAGE_BYTES) {
        // SAFETY: it is mapped, and the caller's (S-1, S-2).
        unsafe { start.as_ptr().add(offset).write_volatile(0) };
    }
    advise(libc::MADV_NOHUGEPAGE);
}

/// Writes one byte of each page, so that the kernel provides it now.
pub(super) fn touch(slab: SlabPtr) {
    for offset in (0..SLAB_BYTES).step_by(PAGE_BYTES) {
        // SAFETY: the slab is mapped and not yet handed out, so nobody else looks at it.
        unsafe { slab.0.as_ptr().add(offset).write_volatile(0) };
    }
}
