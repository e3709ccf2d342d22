//! Arena of equal nodes addressed by number, on blocks of the pool.
//!
//! Responsible for: giving out, taking back and finding nodes. Nodes never move. Not responsible
//! for: what numbers mean; a number kept after [`Pages::free`] finds some other valid node.
//!
//! P-1 Every slot of every page holds a valid `T` from the moment the page exists, and `T` is plain
//! data (`Copy`), so any number below `pages * PER_PAGE` finds one.
//! P-2 `free` has room for every node there is, so giving one back never allocates.

use std::ptr::NonNull;

use crate::pool::{BLOCK_ALIGN, BlockPool, OutOfMemory};

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

const PER_PAGE_SHIFT: u32 = 4;
const PER_PAGE: usize = 1 << PER_PAGE_SHIFT;

/// What an arena can hold: plain data with a value for new nodes.
///
/// Its size is a multiple of its alignment as of any type, so 16 of them are a multiple of 64 bytes
/// when its alignment is at least 4; checked in [`Pages::new`].
pub(crate) trait Node: Copy {
    /// A node as the arena gives it out.
    const EMPTY: Self;
}

/// The arena.
pub(crate) struct Pages<T> {
    pool: BlockPool,
    pages: Vec<NonNull<T>>,
    free: Vec<u32>,
}

// SAFETY: the arena owns its pages as a `Vec<T>` would; shared references only read them.
unsafe impl<T: Send> Send for Pages<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Pages<T> {}

impl<T: Node> Pages<T> {
    const PAGE_BYTES: usize = size_of::<T>() * PER_PAGE;

    pub(crate) fn new(pool: BlockPool) -> Self {
        const { assert!(align_of::<T>() <= BLOCK_ALIGN && Self::PAGE_BYTES.is_multiple_of(BLOCK_ALIGN)) };
        Self { pool, pages: Vec::new(), free: Vec::new() }
    }

    /// Makes sure that the next `nodes` calls of [`Pages::take`] find one.
    pub(crate) fn reserve(&mut self, nodes: usize) -> Result<(), OutOfMemory> {
        while self.free.len() < nodes {
            self.add_page()?;
        }
        debug_assert!(
            self.free.len() <= self.pages.len() * PER_PAGE,
            "no more nodes are free than there are"
        );
        Ok(())
    }

    #[cold]
    fn add_page(&mut self) -> Result<(), OutOfMemory> {
        let refused = self.pool.refused_by_system();
        let nodes = (self.pages.len() + 1) * PER_PAGE;
        assert!(nodes < NONE as usize, "node numbers have 32 bits");
        self.pages.try_reserve(1).map_err(|_| refused)?;
        // Room for every node (P-2), reserved in doubling steps.
        if self.free.capacity() < nodes {
            let wanted = nodes.next_power_of_two() - self.free.len();
            self.free.try_reserve_exact(wanted).map_err(|_| refused)?;
        }
        let page = self.pool.alloc(Self::PAGE_BYTES)?.cast::<T>();
        for i in 0..PER_PAGE {
            // SAFETY: the block has `PAGE_BYTES`, room for `PER_PAGE` nodes, and the alignment
            // (asserted in `new`).
            unsafe { page.add(i).write(T::EMPTY) };
        }
        let first = (self.pages.len() * PER_PAGE) as u32;
        self.pages.push(page);
        self.free.extend((first..first + PER_PAGE as u32).rev());
        debug_assert!(self.free.capacity() >= self.pages.len() * PER_PAGE, "P-2");
        Ok(())
    }

    /// A node equal to `T::EMPTY`. There must be one: see [`Pages::reserve`].
    pub(crate) fn take(&mut self) -> u32 {
        self.free.pop().expect("nodes are reserved before they are taken")
    }

    /// Gives a node back.
    pub(crate) fn free(&mut self, id: u32) {
        debug_assert!(self.used() > 0, "a node that is given back was taken");
        *self.get_mut(id) = T::EMPTY;
        debug_assert!(self.free.len() < self.free.capacity(), "P-2");
        self.free.push(id);
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> &T {
        let page = self.pages[(id >> PER_PAGE_SHIFT) as usize];
        // SAFETY: the page exists (indexed above) and holds `PER_PAGE` valid nodes (P-1); `&self`
        // keeps writers away.
        unsafe { page.add(id as usize % PER_PAGE).as_ref() }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u32) -> &mut T {
        let page = self.pages[(id >> PER_PAGE_SHIFT) as usize];
        // SAFETY: as in `get`; `&mut self` makes the reference the only one.
        unsafe { page.add(id as usize % PER_PAGE).as_mut() }
    }

    /// Two different nodes at once.
    pub(crate) fn get_two_mut(&mut self, a: u32, b: u32) -> (&mut T, &mut T) {
        assert_ne!(a, b, "two references are to two nodes");
        let page_a = self.pages[(a >> PER_PAGE_SHIFT) as usize];
        let page_b = self.pages[(b >> PER_PAGE_SHIFT) as usize];
        // SAFETY: as in `get_mut`; different numbers are different nodes, so the two do not alias.
        unsafe { (page_a.add(a as usize % PER_PAGE).as_mut(), page_b.add(b as usize % PER_PAGE).as_mut()) }
    }

    /// Gives every page back to the pool.
    pub(crate) fn clear(&mut self) {
        self.free.clear();
        for page in self.pages.drain(..) {
            // SAFETY: taken from this pool with this size in `add_page`; it left `pages` just now.
            unsafe { self.pool.free(page.cast(), Self::PAGE_BYTES) };
        }
    }

    /// Nodes in use.
    pub(crate) fn used(&self) -> usize {
        self.pages.len() * PER_PAGE - self.free.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.pages.len() * Self::PAGE_BYTES
            + self.pages.capacity() * size_of::<NonNull<T>>()
            + self.free.capacity() * size_of::<u32>()
    }
}

impl<T> Drop for Pages<T> {
    fn drop(&mut self) {
        for page in self.pages.drain(..) {
            // SAFETY: taken from this pool with this size in `add_page`; nobody can reach it now.
            unsafe { self.pool.free(page.cast(), size_of::<T>() * PER_PAGE) };
        }
    }
}
