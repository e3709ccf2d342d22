//! Frames of a log in batches, read ahead on a thread of their own if that is wanted.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use albireo_base::SqlError;
use albireo_env::thread::{Scope, ScopedJoinHandle};
use albireo_redo::{End, Frame, LogReader, RecordRun};
use parking_lot::{Condvar, Mutex};

use crate::durability::recovery::{damaged, other_partitions};
use crate::durability::target::RecoveryTarget;

/// Bytes of frames that are handed over together, if one frame has not more.
const BATCH_BYTES: u64 = 512 << 10;

/// Bytes of frames that may have been read and not done. What is in memory is some more: whole segments.
const WINDOW_BYTES: u64 = 64 << 20;

/// How often progress is told while nothing comes.
const TICK: Duration = Duration::from_millis(100);

/// The last record that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::durability) struct Last {
    pub(in crate::durability) ordinal: u64,
    pub(in crate::durability) time_us: i64,
}

/// Whole frames that follow one another; of the last perhaps only what the target takes.
pub(super) struct Batch {
    frames: Vec<Frame>,
    /// Their runs in the order of the log.
    pub(super) steps: Vec<Step>,
    /// Where it ends, and where the log ends, in bytes from the first frame that is wanted.
    pub(super) end_bytes: u64,
    total_bytes: u64,
    bytes: u64,
    _room: Option<Room>,
}

/// A run of a batch.
#[derive(Clone, Copy)]
pub(super) struct Step {
    frame: u32,
    pub(super) run: RecordRun,
}

impl Batch {
    pub(super) fn frame(&self, step: &Step) -> &Frame {
        &self.frames[step.frame as usize]
    }
}

/// A log that is read.
pub(super) struct Source {
    reader: LogReader,
    lanes: u16,
    target: RecoveryTarget,
    /// Bytes of the log before the first frame that is wanted.
    before_bytes: u64,
    last: Option<Last>,
    /// The target takes no more.
    is_over: bool,
    /// What is wrong behind the last batch.
    error: Option<SqlError>,
}

impl Source {
    pub(super) fn new(reader: LogReader, lanes: u16, target: RecoveryTarget) -> Self {
        let (before_bytes, _) = reader.progress_bytes();
        Self { reader, lanes, target, before_bytes, last: None, is_over: false, error: None }
    }

    /// The last record that a batch had.
    pub(super) fn last(&self) -> Option<Last> {
        self.last
    }

    /// Where the log ends, if it was read so far.
    pub(super) fn end(&self) -> Option<End> {
        self.reader.end().filter(|_| !self.is_over).cloned()
    }

    pub(super) fn read_bytes(&self) -> u64 {
        self.reader.progress_bytes().0
    }

    /// The next batch; `None` at the end of the log and when the target takes no more.
    fn next(&mut self) -> Result<Option<Batch>, SqlError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let (mut frames, mut steps, mut bytes) = (Vec::new(), Vec::new(), 0);
        while bytes < BATCH_BYTES && !self.is_over {
            match self.next_frame() {
                Ok(Some((frame, runs))) => {
                    let step = |run| Step { frame: frames.len() as u32, run };
                    steps.extend(runs.into_iter().map(step));
                    bytes += frame.bytes;
                    frames.push(frame);
                }
                Ok(None) => break,
                // What is before it is done first.
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        if frames.is_empty() {
            return self.error.take().map_or(Ok(None), Err);
        }
        let (done, total) = self.reader.progress_bytes();
        let (end_bytes, total_bytes) = (done - self.before_bytes, total - self.before_bytes);
        Ok(Some(Batch { frames, steps, end_bytes, total_bytes, bytes, _room: None }))
    }

    fn next_frame(&mut self) -> Result<Option<(Frame, Vec<RecordRun>)>, SqlError> {
        let Some(frame) = self.reader.next_frame().map_err(damaged)? else { return Ok(None) };
        if frame.lanes != self.lanes {
            return Err(other_partitions(self.lanes, frame.lanes));
        }
        let (target, last, is_over) = (self.target, &mut self.last, &mut self.is_over);
        let runs = frame.runs(|record| {
            let takes = target.takes(record);
            match takes {
                true => *last = Some(Last { ordinal: record.ordinal, time_us: record.time_us }),
                false => *is_over = true,
            }
            takes
        });
        Ok(Some((frame, runs)))
    }
}

/// Where batches come from.
pub(super) enum Feed<'scope> {
    /// They are read when they are asked for.
    Here(Box<Source>),
    /// A thread reads ahead.
    Ahead(Ahead<'scope>),
}

/// A thread that reads.
pub(super) struct Ahead<'scope> {
    batches: Receiver<Result<Batch, SqlError>>,
    total_bytes: u64,
    thread: ScopedJoinHandle<'scope, ()>,
    /// Where the source is when nobody reads.
    slot: Arc<Mutex<Option<Box<Source>>>>,
    window: Closing,
}

impl<'scope> Feed<'scope> {
    pub(super) fn new(source: Source) -> Self {
        Self::Here(Box::new(source))
    }

    /// From now on a thread reads ahead, if the system has one.
    pub(super) fn on_thread(self, scope: &'scope Scope<'scope, '_>) -> Self {
        let Self::Here(source) = self else { return self };
        if source.is_over || source.reader.end().is_some() {
            return Self::Here(source);
        }
        let (_, total) = source.reader.progress_bytes();
        let total_bytes = total - source.before_bytes;
        let slot = Arc::new(Mutex::new(Some(source)));
        let window = Arc::new(Window::new(WINDOW_BYTES));
        let (sender, batches) = channel();
        let (its_slot, its_window) = (Arc::clone(&slot), Arc::clone(&window));
        let body = move || {
            let Some(mut source) = its_slot.lock().take() else { return };
            while let Some(next) = source.next().transpose() {
                let is_last = next.is_err();
                let next = next.map(|batch| {
                    let room = its_window.enter(batch.bytes);
                    Batch { _room: Some(room), ..batch }
                });
                if sender.send(next).is_err() || is_last {
                    break;
                }
            }
            *its_slot.lock() = Some(source);
        };
        match albireo_env::spawn_scoped(scope, "albireo-read", body) {
            Ok(thread) => Self::Ahead(Ahead { batches, total_bytes, thread, slot, window: Closing(window) }),
            Err(_) => Self::Here(slot.lock().take().expect("no thread has taken it")),
        }
    }

    /// The next batch; `None` at the end. While it waits, `report` is told how many bytes there are in all.
    pub(super) fn next(&mut self, report: &dyn Fn(u64)) -> Result<Option<Batch>, SqlError> {
        let next = match self {
            Self::Here(source) => source.next(),
            Self::Ahead(Ahead { batches, total_bytes, .. }) => loop {
                match batches.recv_timeout(TICK) {
                    Ok(next) => break next.map(Some),
                    Err(RecvTimeoutError::Timeout) => report(*total_bytes),
                    Err(RecvTimeoutError::Disconnected) => break Ok(None),
                }
            },
        };
        next.inspect(|batch| {
            if let Some(batch) = batch {
                report(batch.total_bytes);
            }
        })
    }

    /// The source, after its last batch.
    pub(super) fn finish(self) -> Source {
        match self {
            Self::Here(source) => *source,
            Self::Ahead(Ahead { thread, slot, window, batches, .. }) => {
                drop((window, batches));
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
                *slot.lock().take().expect("whoever read has put it back")
            }
        }
    }
}

/// How much may be under way.
struct Window {
    limit: u64,
    state: Mutex<WindowState>,
    changed: Condvar,
}

#[derive(Default)]
struct WindowState {
    used: u64,
    /// Nobody waits any more.
    is_closed: bool,
}

/// Bytes in the window, until it is dropped.
struct Room {
    window: Arc<Window>,
    bytes: u64,
}

/// Closes the window when it is dropped: the reader must not wait for those who have gone.
struct Closing(Arc<Window>);

impl Window {
    fn new(limit: u64) -> Self {
        Self { limit, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits until there is room; more than the limit has it when nothing else is there.
    fn enter(self: &Arc<Self>, bytes: u64) -> Room {
        let mut state = self.state.lock();
        while state.used > 0 && state.used + bytes > self.limit && !state.is_closed {
            self.changed.wait(&mut state);
        }
        state.used += bytes;
        Room { window: Arc::clone(self), bytes }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.window.state.lock().used -= self.bytes;
        self.window.changed.notify_all();
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.state.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}
