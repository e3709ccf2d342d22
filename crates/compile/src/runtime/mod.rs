//! What generated code calls.
//!
//! Responsible for: the state of a running call ([`Context`]), values between cells and [`Datum`]s
//! (`values`), nodes of expressions that have no code of their own (`nodes`), variables (`variables`),
//! arrays (`arrays`), statements (`statements`), rows found (`rows`) by keys (`keys`), ahead of
//! loops too (`prefetch`), and changed (`changes`), the memory of it all (`space`).
//!
//! Where the time of TPC-C goes (`bench tpcc --procedures plpgsql`, by `perf`): 23 % is generated code, which
//! waits for rows for a third of that; 18 % prefetches rows for loops and asks for their lines (two thirds of
//! that is the processor waiting for room to ask), 6 % asks for index slots, 9 % walks ordered indexes, 5 % gets
//! rows ready to be overwritten, 5 % enters new ones, beside what their indexes take; 7 % is the call itself,
//! which takes half of that when it is made over and over and its memory is at hand. No other function has more
//! than 2 %. A row that was prefetched is not looked for again, nor are values made where cells serve, nor
//! cells where code writes a row: what is not done in code costs 10 to 40 ns each time.
//!
//! Invariants:
//! - R-1 Every function gets the context that [`super::Compiled::call`] made, alone: generated code passes on
//!   what it got and nothing else has it meanwhile.
//! - R-2 Addresses of trees in generated code are of the routine that it was made from, which
//!   [`super::Compiled`] keeps.
//! - R-3 A text cell's address may be read: it is in a variable's buffer, in the arena since the last
//!   [`statements::reset`], as texts are that lie packed in their table, in a constant, or in a table that has not changed
//!   since.
//! - R-4 No panic leaves a function: it is kept in the context and goes on where generated code was
//!   entered.

pub(super) mod arrays;
pub(super) mod changes;
pub(super) mod keys;
pub(super) mod nodes;
pub(super) mod prefetch;
pub(super) mod rows;
pub(super) mod space;
pub(super) mod statements;
pub(super) mod values;
pub(super) mod variables;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use albireo_execute::Machine;
use albireo_semantics::Stop;
use albireo_storage::Cell;

use super::frame::Frame;
use space::Space;

/// What functions give generated code: go on.
pub(super) const OK: u32 = 0;
/// An error is in the context.
pub(super) const FAILED: u32 = 1;

/// A call under way.
#[repr(C)]
pub(super) struct Context<'a> {
    /// The frame's first cell; generated code reads it from here.
    pub(super) cells: *mut Cell,
    /// Not 0 if there are temporaries to forget; generated code reads it too.
    pub(super) dirty: u64,
    /// The heads of the arrays; generated code reads it too.
    pub(super) heads: *mut arrays::Head,
    /// The room of the short texts.
    pub(super) shorts: *mut u8,
    /// In so many rounds of loops interrupts are looked for; generated code counts it down.
    pub(super) rounds: u64,
    /// The transaction's time, 0 if nobody has asked for it; generated code reads it too.
    pub(super) now: i64,
    /// The first answer of the first ask; generated code reads it too.
    pub(super) answers: *mut prefetch::Answer,
    /// The interpreter, with the variables that have no cell.
    pub(super) machine: Machine<'a>,
    /// Why it does not go on.
    pub(super) stop: Option<Stop>,
    /// The panic that ended it.
    pub(super) panic: Option<Box<dyn Any + Send>>,
    /// Where the variables are.
    pub(super) frame: &'a Frame,
    /// What the call works on.
    pub(super) space: Box<Space>,
}

/// Where [`Context::cells`] is.
pub(super) const CELLS_OFFSET: i32 = 0;
/// Where [`Context::dirty`] is.
pub(super) const DIRTY_OFFSET: i32 = 8;
/// Where [`Context::heads`] is.
pub(super) const HEADS_OFFSET: i32 = 16;
/// Where [`Context::rounds`] is.
pub(super) const ROUNDS_OFFSET: i32 = 32;

/// Where [`Context::now`] is.
pub(super) const NOW_OFFSET: i32 = 40;
/// Where [`Context::answers`] is.
pub(super) const ANSWERS_OFFSET: i32 = 48;

/// Interrupts are looked for once in so many rounds of loops.
pub(super) const ROUNDS: u64 = 16;

/// Texts that are forgotten together. Their addresses stay until then.
#[derive(Default)]
pub(super) struct Arena {
    chunk: Vec<u8>,
    full: Vec<Vec<u8>>,
    bytes: usize,
    most_bytes: usize,
}

impl Arena {
    const CHUNK: usize = 4096;

    /// Keeps a text.
    pub(super) fn keep(&mut self, text: &[u8]) -> *const u8 {
        self.keep_joined(text, &[])
    }

    /// Keeps a text and another behind it.
    pub(super) fn keep_joined(&mut self, text: &[u8], behind: &[u8]) -> *const u8 {
        let bytes = text.len() + behind.len();
        if self.chunk.capacity() - self.chunk.len() < bytes {
            let size = bytes.max(Self::CHUNK);
            self.full.push(std::mem::replace(&mut self.chunk, Vec::with_capacity(size)));
        }
        self.bytes += bytes;
        let at = self.chunk.len();
        // There is room: the vector does not move.
        let begin = self.chunk.as_ptr();
        self.chunk.extend_from_slice(text);
        self.chunk.extend_from_slice(behind);
        debug_assert_eq!(self.chunk.as_ptr(), begin, "texts stay where they are (R-3)");
        self.chunk[at..].as_ptr()
    }

    /// Bytes that it has taken.
    #[cfg(test)]
    fn capacity(&self) -> usize {
        self.chunk.capacity() + self.full.iter().map(Vec::capacity).sum::<usize>()
    }

    /// By how many bytes the texts are more than they were at most when this was asked before.
    pub(super) fn growth(&mut self) -> usize {
        let growth = self.bytes.saturating_sub(self.most_bytes);
        self.most_bytes += growth;
        growth
    }

    /// Bytes of all texts.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets all texts, and gives back the memory of long ones.
    pub(super) fn clear(&mut self) {
        self.full.clear();
        self.chunk.clear();
        if self.chunk.capacity() > space::KEPT {
            self.chunk = Vec::new();
        }
        self.bytes = 0;
    }
}

/// Does what generated code asked for; an error or panic is kept.
#[inline(always)]
pub(super) fn guard(
    context: *mut Context<'_>,
    act: impl FnOnce(&mut Context<'_>) -> Result<u32, Stop>,
) -> u32 {
    // SAFETY: R-1.
    let context = unsafe { &mut *context };
    match catch_unwind(AssertUnwindSafe(|| act(context))) {
        Ok(Ok(code)) => code,
        Ok(Err(stop)) => {
            context.stop = Some(stop);
            FAILED
        }
        Err(panic) => {
            context.panic = Some(panic);
            FAILED
        }
    }
}
