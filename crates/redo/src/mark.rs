//! Writes the control files of a log that is open.
//!
//! The log's thread notes how far the log is after each frame, which costs a lock that is free. A thread of its own
//! writes it to the control files: soon after the first frame, and at most once a second afterwards; for a new
//! segment sooner. Commits wait for it only once, before the first frame ([`Marker::begin`]).
//!
//! I-1 What is written is a place up to which all frames are durable, and never goes back. I-2 Nothing is written
//! after `closed`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use albireo_env::Env;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::control::{Control, Controls};
use crate::error::Failure;

/// Between two writes of the control files.
const EVERY: Duration = Duration::from_secs(1);

/// The same for a new segment.
const EVERY_SEGMENT: Duration = Duration::from_millis(100);

/// How far a log is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Position {
    /// The newest durable frame.
    pub(crate) sequence: u64,
    /// The last record in it.
    pub(crate) ordinal: u64,
    /// The newest segment whose header is durable.
    pub(crate) segment: u64,
}

#[derive(Debug)]
pub(crate) struct Marker {
    env: Env,
    paths: Vec<PathBuf>,
    log_id: u64,
    state: Mutex<State>,
    /// Told when there is something to write after there was nothing, for a new segment, and at the end.
    changed: Condvar,
    /// Whether the control files say that the log is open.
    is_open: AtomicBool,
    /// Held while they are written, and taken before `state`.
    book: Mutex<Book>,
}

#[derive(Debug)]
struct State {
    position: Position,
    /// It is not in the control files.
    is_new: bool,
    /// Neither is the segment.
    is_new_segment: bool,
    /// When they were written last.
    written_ns: Option<u64>,
    ends: bool,
}

#[derive(Debug)]
struct Book {
    generation: u64,
    is_closed: bool,
    /// The frame that was written last.
    sequence: u64,
}

impl Marker {
    /// For a log that is at `position`.
    pub(crate) fn new(env: &Env, paths: Vec<PathBuf>, log_id: u64, position: Position) -> Self {
        let before = Controls::read(&*env.disk, &paths);
        let generation = before.newest().map_or(0, |control| control.generation);
        let state = State { position, is_new: false, is_new_segment: false, written_ns: None, ends: false };
        Self {
            env: env.clone(),
            paths,
            log_id,
            state: Mutex::new(state),
            changed: Condvar::new(),
            is_open: AtomicBool::new(false),
            book: Mutex::new(Book { generation, is_closed: false, sequence: 0 }),
        }
    }

    /// Says that the log is open, unless that is said already: no frame may be written before.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        if self.is_open.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut book = self.book.lock();
        assert!(!book.is_closed, "nothing is written after the log was closed");
        let position = self.state.lock().position;
        self.write(&mut book, position, false)?;
        self.is_open.store(true, Ordering::Release);
        Ok(())
    }

    /// Notes how far the log is now.
    pub(crate) fn note(&self, position: Position) {
        let mut state = self.state.lock();
        assert!(position.sequence >= state.position.sequence, "a log only grows");
        assert!(position.ordinal >= state.position.ordinal, "records are counted on");
        assert!(position.segment >= state.position.segment, "segments are numbered on");
        let is_new_segment = position.segment > state.position.segment;
        let wakes = !state.is_new || (is_new_segment && !state.is_new_segment);
        state.position = position;
        state.is_new = true;
        state.is_new_segment |= is_new_segment;
        drop(state);
        if wakes {
            self.changed.notify_all();
        }
    }

    /// Writes how far the log is, if the control files do not say it; whether it did. What fails is tried again by
    /// the next step.
    pub(crate) fn step(&self) -> bool {
        let mut book = self.book.lock();
        let position = {
            let mut state = self.state.lock();
            if !state.is_new || book.is_closed {
                return false;
            }
            (state.is_new, state.is_new_segment) = (false, false);
            state.position
        };
        let done = self.write(&mut book, position, false);
        let mut state = self.state.lock();
        state.is_new |= done.is_err();
        state.written_ns = Some(self.env.clock.now());
        done.is_ok()
    }

    /// As [`Marker::step`], if it is time: for a log without a thread for it.
    pub(crate) fn step_if_due(&self) {
        let due = self.due_in(&self.state.lock());
        if due.is_some_and(|rest| rest.is_zero()) {
            self.step();
        }
    }

    /// How long until there is something to write; `None` if nothing is new.
    fn due_in(&self, state: &State) -> Option<Duration> {
        let every = if state.is_new_segment { EVERY_SEGMENT } else { EVERY };
        let due_ns = state.written_ns.map_or(0, |at| at.saturating_add(every.as_nanos() as u64));
        state.is_new.then(|| Duration::from_nanos(due_ns.saturating_sub(self.env.clock.now())))
    }

    /// Body of its thread.
    pub(crate) fn run(&self) {
        let mut state = self.state.lock();
        while !state.ends {
            match self.due_in(&state) {
                None => self.changed.wait(&mut state),
                Some(rest) if rest.is_zero() => MutexGuard::unlocked(&mut state, || {
                    self.step();
                }),
                Some(rest) => drop(self.changed.wait_for(&mut state, rest)),
            }
        }
    }

    /// Ends its thread.
    pub(crate) fn stop(&self) {
        self.state.lock().ends = true;
        self.changed.notify_all();
    }

    /// Says that the log was closed where it is now; nothing is written afterwards.
    pub(crate) fn close(&self) -> Result<(), Failure> {
        let mut book = self.book.lock();
        if std::mem::replace(&mut book.is_closed, true) {
            return Ok(());
        }
        let position = {
            let mut state = self.state.lock();
            state.is_new = false;
            state.position
        };
        self.write(&mut book, position, true)
    }

    fn write(&self, book: &mut Book, position: Position, is_closed: bool) -> Result<(), Failure> {
        assert!(is_closed || !book.is_closed, "nothing is written after \"closed\" (I-2)");
        assert!(position.sequence >= book.sequence, "what is written never goes back (I-1)");
        book.sequence = position.sequence;
        // One that failed may be there.
        book.generation += 1;
        let control = Control {
            log_id: self.log_id,
            generation: book.generation,
            is_closed,
            sequence: position.sequence,
            ordinal: position.ordinal,
            segment: position.segment,
            time_us: self.env.clock.unix_us(),
        };
        control.write(&*self.env.disk, &self.paths)
    }
}
