//! Transactions that meet a row which is not in memory, and find out what else they need before they are run again.
//!
//! ```text
//!                      reads or changes what is away            `work` has ended, however; or it has done enough
//!   [`with_prepass`] ─────────────────────────────► PRE-PASS ──────────────────────────────► unwinds with [`Evicted`]
//!          │                                         │    ▲
//!          │ `work` has ended                        └────┘
//!          ▼                         reads what is away: notes its chunk, gets NULL
//!      its result                    changes what is away: notes its chunk, changes nothing
//! ```
//!
//! One that meets evicted chunks one after the other would run as often as there are such chunks, and wait for the disk each
//! time. In a pre-pass it runs once, on values that stand for those that are away; what it comes to is fetched together.
//!
//! - P-1 A pre-pass leaves [`with_prepass`] by the unwind alone, which rolls the transaction back (W-3 of [`super::away`]):
//!   no result of `work`, no error and no panic of it gets out. So `work` does nothing that a rollback does not take back.
//! - P-2 The first chunk that is noted is needed: what was read before are the rows' values. So each run of a transaction
//!   gets further than the one before, whatever the others are good for.
//! - P-3 What stands for a value is one that its column may have: NULL, or zero (an empty text) where the column is NOT NULL.
//!   Nobody above has to know that there are pre-passes; changes alone do, for P-4.
//! - P-4 A change of a row that is away is not made ([`crate::TableError::Away`]). All other changes are made, and taken back:
//!   what they read of their rows, and what indexes compare, is here (W-4).
//! - P-5 A pre-pass ends. Whoever may go on for long counts its work with [`count_work`]; after [`MOST_WORK`] without another
//!   chunk, or [`MOST_CHUNKS`], it unwinds.
//!
//! Replay and whatever else [waits](waiting) has no pre-pass, nor have procedures in Rust, whose loops nobody can end.
//!
//! Paper: DeBrabant and others, *Anti-Caching*, VLDB 2013, §3.2 (*pre-pass*).

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::LazyLock;

use albireo_base::ids::CHUNK_ROWS;
use albireo_encoding::{Column, Kind};

use super::FrozenChunk;
use super::away::{Evicted, Wanted};
use crate::pool::Part;

/// Chunks that one pre-pass notes at most: they are in memory together, needed or not.
const MOST_CHUNKS: usize = 32;

/// Work after which a pre-pass that has come to no other chunk ends. A unit is about 5 ns, so that this is a few milliseconds;
/// all rows of a chunk can be read meanwhile.
pub const MOST_WORK: u32 = 1 << 20;

/// The work of reading a value that is away.
const READING: u32 = 4;

/// What this thread does where it meets what is away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// It runs no transaction, and waits.
    Waits,
    /// The transaction ends.
    Ends,
    /// The transaction begins a pre-pass.
    Begins,
    /// The transaction is in a pre-pass.
    Prepass,
}

/// What a pre-pass has come to.
struct Noted {
    chunks: Vec<Wanted>,
    /// Work that may still be done.
    left: u32,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Waits) };
    static NOTED: RefCell<Noted> = const { RefCell::new(Noted { chunks: Vec::new(), left: 0 }) };
}

/// Unwinds a pre-pass that has done enough; [`with_prepass`] puts [`Evicted`] in its place.
struct Enough;

/// Runs `work` of a transaction, in which nobody waits for what is away (W-3).
#[inline]
pub fn without_waiting<R>(work: impl FnOnce() -> R) -> R {
    let _before = Before(MODE.replace(Mode::Ends));
    work()
}

/// Runs `work` of a transaction that cannot be run again: it waits for what is away.
pub fn waiting<R>(work: impl FnOnce() -> R) -> R {
    let _before = Before(MODE.replace(Mode::Waits));
    work()
}

/// Runs `work` of somebody who owns a partition and can do without it, or fetch what is away and ask again.
///
/// # Errors
/// What it has met that is away; it ended there.
pub fn unless_away<R>(work: impl FnOnce() -> R) -> Result<R, Evicted> {
    let ended = catch_unwind(AssertUnwindSafe(|| without_waiting(work)));
    ended.map_err(|panic| match panic.downcast() {
        Ok(evicted) => *evicted,
        Err(other) => resume_unwind(other),
    })
}

/// What [`MODE`] was before.
struct Before(Mode);

impl Drop for Before {
    fn drop(&mut self) {
        MODE.set(self.0);
    }
}

/// Runs `work` of a transaction that is in [`without_waiting`]; where it meets what is away, it goes on as a pre-pass, whose
/// end unwinds with all that it has come to. `work` does nothing that rolling the transaction back does not take back, and
/// [counts](count_work) what may take long. Elsewhere it is run as it is.
#[inline]
pub fn with_prepass<R>(work: impl FnOnce() -> R) -> R {
    if MODE.get() != Mode::Ends {
        return work();
    }
    MODE.set(Mode::Begins);
    let ended = catch_unwind(AssertUnwindSafe(work));
    if MODE.replace(Mode::Ends) == Mode::Prepass {
        let chunks = NOTED.with_borrow_mut(|noted| std::mem::take(&mut noted.chunks));
        // Whatever it is, it may have been made of what was made up (P-1).
        drop(ended);
        end_with(chunks);
    }
    ended.unwrap_or_else(|panic| resume_unwind(panic))
}

#[cold]
fn end_with(chunks: impl IntoIterator<Item = Wanted>) -> ! {
    let evicted = Evicted::new(chunks).expect("whoever ends so has met a chunk");
    resume_unwind(Box::new(evicted))
}

/// Counts work of whoever may go on for long: a pre-pass that has done enough ends here (P-5). See [`MOST_WORK`].
#[inline]
pub fn count_work(work: u32) {
    if MODE.get() == Mode::Prepass {
        count(work);
    }
}

#[cold]
fn count(work: u32) {
    let left = NOTED.with_borrow_mut(|noted| {
        noted.left = noted.left.saturating_sub(work);
        noted.left
    });
    if left == 0 {
        resume_unwind(Box::new(Enough));
    }
}

/// Whether this thread waits for what is away.
pub(super) fn may_wait() -> bool {
    MODE.get() == Mode::Waits
}

/// A transaction meets a chunk that is away: it ends, or the chunk is noted.
pub(super) fn meet(chunk: &FrozenChunk) {
    match MODE.get() {
        Mode::Waits => debug_assert!(false, "whoever waits meets nothing that is away"),
        Mode::Ends => end_with([chunk.wanted()]),
        Mode::Begins | Mode::Prepass => {
            MODE.set(Mode::Prepass);
            let goes_on = NOTED.with_borrow_mut(|noted| noted.note(chunk));
            if !goes_on {
                resume_unwind(Box::new(Enough));
            }
            count(READING);
        }
    }
}

impl Noted {
    /// Notes a chunk; whether it was, or had been.
    fn note(&mut self, chunk: &FrozenChunk) -> bool {
        if self.chunks.iter().rev().any(|noted| noted.is(chunk)) {
            return true;
        }
        if self.chunks.len() == MOST_CHUNKS {
            return false;
        }
        self.chunks.push(chunk.wanted());
        self.left = MOST_WORK;
        true
    }
}

/// What stands for a column that is away (P-3): all NULL, and zero for whoever knows that nothing there is NULL.
pub(super) fn stand_in(kind: Kind) -> &'static Column<Part> {
    static COLUMNS: LazyLock<[Column<Part>; Kind::ALL.len()]> =
        LazyLock::new(|| Kind::ALL.map(|kind| Column::of_nulls(kind, CHUNK_ROWS)));
    let at = Kind::ALL.iter().position(|other| *other == kind);
    &COLUMNS[at.expect("each kind is one of all")]
}
