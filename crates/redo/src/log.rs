//! A log open for appending: group commit, waiting, closing.
//!
//! Executors append and go on; whoever steps the log ([`Log::run`] on a thread, a scheduler in tests) makes
//! frames durable one after another; whoever promised something to a client waits for its [`Ticket`].
//!
//! I-1 Nothing is durable for a waiter before the sync behind it has returned. I-2 Once a write or a sync
//! has failed, no ticket becomes durable any more. I-3 What was appended before [`Log::close`] is durable
//! when that returns `Ok`, and the control files say that the log was closed, as far as the disk takes it.
//!
//! How the log's thread sleeps and is woken. It says `parked`, then looks at every lane under its lock, and
//! sleeps only if all are empty. An appender looks at `parked` after it has had its lane's lock. Either it
//! had the lock first, then the record is seen and the thread does not sleep; or the thread had it first,
//! then its unlocking makes `parked` visible to the appender, who wakes it. Waking changes `parked` under
//! the lock that the thread sleeps with, so that it is not lost in between.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use albireo_env::{Disk, Env, Interrupts, scope, spawn_scoped};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::config::{Config, LogDestination, LogStart};
use crate::control::CONTROL_NAME;
use crate::error::{Attempt, Failure, LogError, StartError};
use crate::format::{Kind, SECTOR_BYTES, SEGMENT_HEADER_BYTES, SegmentHead};
use crate::lanes::{Lanes, Sealed};
use crate::mark::{Marker, Position};
use crate::placement::{Placement, Watch};
use crate::reader::holds_frames;
use crate::segment::{self, Maker, Preparer};
use crate::statistics::Statistics;
use crate::writer::{Device, Directory, SegmentStart, Step, Writer};

/// Turns of a waiting loop before it sleeps: about a microsecond.
const SPINS: u32 = 50;

/// Turns between two looks at the lanes' cache lines while the log's thread lingers.
const LOOK_EVERY: u32 = 64;

/// Looks after which it sleeps all the same: a simulated clock stands still for whoever turns.
const MOST_TURNS: u32 = 10_000;

/// Frames apart that share a condition variable.
const ROOMS: usize = 4;

const FULL: u8 = 1;
const CLOSING: u8 = 2;
const FAILED: u8 = 4;
const CLOSED: u8 = 8;
/// There is no room for a segment behind the one in use: what is left of that is for what frees room.
const SHORT: u8 = 16;

/// The frame that a record is in; it is durable when that is. 0 is durable always.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Ticket(pub u64);

/// What the log notes of a record beside its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// When, in microseconds since 1970; the log gives it no meaning.
    pub time_us: i64,
}

/// A log open for appending. Cheap to clone; clones are the same log.
#[derive(Clone)]
pub struct Log {
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    config: Config,
    log_id: u64,
    lanes: Lanes,
    /// [`FULL`], [`CLOSING`], [`FAILED`], [`CLOSED`], [`SHORT`]; 0 is open.
    state: AtomicU8,
    /// Why it is full or failed.
    failure: Mutex<Option<Arc<Failure>>>,
    /// Sequence of the newest durable frame.
    durable: AtomicU64,
    writer: Mutex<Writer>,
    preparer: Option<Arc<Preparer>>,
    marker: Option<Arc<Marker>>,
    placement: Placement,
    /// The newest segment whose header is durable.
    begun: Arc<AtomicU64>,
    statistics: Mutex<Statistics>,
    /// Whether the log's thread sleeps, or is about to; taken back under `sleep`.
    parked: AtomicBool,
    sleep: Mutex<()>,
    wake: Condvar,
    /// How many wait for a ticket, and where: waiters for one frame are woken by that frame.
    waiting: AtomicU32,
    /// How many waited when the newest frame became durable.
    woken: AtomicU32,
    door: Mutex<()>,
    rooms: [Condvar; ROOMS],
    /// What is done instead of waiting.
    instead: OnceLock<Instead>,
}

/// What is done instead of waiting.
type Instead = Box<dyn Fn(&Log) + Send + Sync>;

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.shared.state.load(Ordering::Relaxed);
        f.debug_struct("Log").field("durable", &self.durable()).field("state", &state).finish_non_exhaustive()
    }
}

impl Log {
    /// Opens a log for appending. Creates the directory; removes what a crash left of segments from
    /// `next_segment` on that never had a header.
    ///
    /// # Errors
    /// The operating system's; a segment from `next_segment` on that holds a log.
    ///
    /// # Panics
    /// Numbers that are 0, and a segment without room for a frame.
    pub fn start(env: &Env, config: Config, start: LogStart) -> Result<Self, StartError> {
        assert!(start.next_sequence > 0 && start.next_ordinal > 0, "frames and records count from 1");
        let least = (SEGMENT_HEADER_BYTES + SECTOR_BYTES) as u64;
        assert!(config.segment_bytes >= least, "a segment has at least {least} bytes");
        // Repairing has made those durable that there are.
        let begun = Arc::new(AtomicU64::new(start.next_segment.saturating_sub(1)));
        let (device, preparer, marker) = match &config.target {
            LogDestination::Null => (Device::Null, None, None),
            LogDestination::Directory(directory) => {
                let segment = clear_the_way(&*env.disk, directory, &start)?;
                let marker = Arc::new(begin_marking(env, directory, &config, &start, segment)?);
                let maker = Maker {
                    disk: Arc::clone(&env.disk),
                    directory: directory.clone(),
                    bytes: config.segment_bytes,
                };
                let fill = config.fill_segments;
                let preparer = Arc::new(Preparer::new(maker, start.next_segment, fill));
                let device = Device::Directory(Directory {
                    env: env.clone(),
                    log_id: start.log_id,
                    lanes: config.lanes as u32,
                    preparer: Arc::clone(&preparer),
                    marker: Arc::clone(&marker),
                    fill,
                    begun_ns: env.clock.now(),
                    next_segment: start.next_segment,
                    begun: Arc::clone(&begun),
                    current: None,
                    coming: None,
                });
                (device, Some(preparer), Some(marker))
            }
        };
        let writer = Writer { device, next_ordinal: start.next_ordinal, batch: None, frame: Vec::new() };
        Ok(Self {
            shared: Arc::new(Shared {
                env: env.clone(),
                lanes: Lanes::new(config.lanes, start.next_sequence, start.next_ordinal),
                placement: Placement::new(config.lanes),
                config,
                log_id: start.log_id,
                state: AtomicU8::new(0),
                failure: Mutex::default(),
                durable: AtomicU64::new(start.next_sequence - 1),
                writer: Mutex::new(writer),
                preparer,
                marker,
                begun,
                statistics: Mutex::new(Statistics::new()),
                parked: AtomicBool::new(false),
                sleep: Mutex::default(),
                wake: Condvar::new(),
                waiting: AtomicU32::new(0),
                woken: AtomicU32::new(0),
                door: Mutex::default(),
                rooms: Default::default(),
                instead: OnceLock::new(),
            }),
        })
    }

    /// How many lanes it has.
    pub fn lanes(&self) -> usize {
        self.shared.lanes.len()
    }

    /// The database's id in frames.
    pub fn log_id(&self) -> u64 {
        self.shared.log_id
    }

    /// Appends a record to a lane, whose token the caller holds. `encode` appends the payload to what it
    /// is given and leaves the rest alone. Waits for no disk.
    ///
    /// # Errors
    /// The log takes no records; then nothing was appended.
    #[inline]
    pub fn append(
        &self,
        lane: usize,
        header: Header,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Ticket, LogError> {
        let ticket = self.shared.lanes.append(lane, header, || self.check(), encode)?;
        self.shared.wake_if_parked();
        self.shared.placement.follow(lane);
        Ok(ticket)
    }

    /// Appends a record that is ordered against those of all lanes; the caller holds all tokens.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn append_crossing(
        &self,
        header: Header,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Ticket, LogError> {
        let ticket = self.shared.lanes.append_crossing(header, || self.check(), encode)?;
        self.shared.wake_if_parked();
        Ok(ticket)
    }

    /// Appends a record that frees more than it takes, to a lane or, without, ordered against all: also while
    /// the room that is left is kept for such ones ([`Log::is_short`]).
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn append_freeing(
        &self,
        lane: Option<usize>,
        header: Header,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Ticket, LogError> {
        let (lanes, check) = (&self.shared.lanes, || self.check_freeing());
        let ticket = match lane {
            Some(lane) => lanes.append(lane, header, check, encode)?,
            None => lanes.append_crossing(header, check, encode)?,
        };
        self.shared.wake_if_parked();
        Ok(ticket)
    }

    /// Closes the present frame: what has been appended is in frames up to the returned one, what will be
    /// is in later ones. An empty frame is not closed.
    pub fn seal(&self) -> Sealed {
        let sealed = self.shared.lanes.close();
        self.shared.wake_if_parked();
        sealed
    }

    /// Whether the log takes records.
    ///
    /// # Errors
    /// Why not.
    #[inline]
    pub fn check(&self) -> Result<(), LogError> {
        match self.shared.state.load(Ordering::Acquire) {
            0 => Ok(()),
            state => Err(self.shared.refusal(state)),
        }
    }

    /// Whether the disk has no room behind the segment in use, so that [`Log::append`] refuses and only
    /// [`Log::append_freeing`] goes on, until that segment is full too.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.shared.state.load(Ordering::Acquire) & SHORT != 0
    }

    /// Whether the log takes at least records that free something.
    ///
    /// # Errors
    /// Why not.
    pub fn check_freeing(&self) -> Result<(), LogError> {
        match self.shared.state.load(Ordering::Acquire) & !SHORT {
            0 => Ok(()),
            state => Err(self.shared.refusal(state)),
        }
    }

    /// Sequence of the newest durable frame.
    #[inline]
    pub fn durable(&self) -> u64 {
        self.shared.durable.load(Ordering::Acquire)
    }

    /// Whether what the ticket is for would survive a crash.
    #[inline]
    pub fn is_durable(&self, ticket: Ticket) -> bool {
        ticket.0 <= self.durable()
    }

    /// Whether the log's thread sleeps, or is about to, as nothing has been appended. For tests.
    #[doc(hidden)]
    pub fn is_parked(&self) -> bool {
        self.shared.parked.load(Ordering::Relaxed)
    }

    /// Waits until the ticket is durable. While the disk is full it goes on waiting.
    ///
    /// # Errors
    /// The log failed or was closed before.
    pub fn wait(&self, ticket: Ticket) -> Result<(), LogError> {
        let waited = self.wait_for(ticket, None, FAILED | CLOSED);
        waited.map(|durable| assert!(durable, "no deadline has passed"))
    }

    /// As [`Log::wait`], for whoever only reads: while the disk is full it does not wait.
    ///
    /// # Errors
    /// As [`Log::wait`], and there is no room.
    pub fn wait_for_reader(&self, ticket: Ticket) -> Result<(), LogError> {
        let waited = self.wait_for(ticket, None, FAILED | CLOSED | FULL);
        waited.map(|durable| assert!(durable, "no deadline has passed"))
    }

    /// Waits until the ticket is durable, or the clock shows `deadline_ns`; returns whether it is durable.
    /// With a simulated clock somebody else must step the log, or move the clock.
    ///
    /// # Errors
    /// As [`Log::wait`].
    pub fn wait_until(&self, ticket: Ticket, deadline_ns: u64) -> Result<bool, LogError> {
        self.wait_for(ticket, Some(deadline_ns), FAILED | CLOSED)
    }

    fn wait_for(&self, ticket: Ticket, deadline_ns: Option<u64>, ends: u8) -> Result<bool, LogError> {
        let Some(instead) = self.shared.instead.get() else {
            return self.shared.wait(ticket, deadline_ns, ends);
        };
        loop {
            if let Some(outcome) = self.shared.look(ticket, deadline_ns, ends) {
                return outcome;
            }
            instead(self);
        }
    }

    /// From now on whoever would wait does this instead, until what it waits for is there: in a simulation,
    /// whose only thread makes the log's steps as well. Only the first call has an effect.
    pub fn instead_of_waiting(&self, work: impl Fn(&Self) + Send + Sync + 'static) {
        // Nothing to do for the second.
        let _ = self.shared.instead.set(Box::new(work));
    }

    /// Bytes of records that are not durable yet, about: whoever appends faster than the disk writes looks
    /// at it.
    pub fn pending_bytes(&self) -> u64 {
        self.shared.lanes.pending_bytes()
    }

    /// What a reader of the lane's data must wait for, so that it never tells of what a crash takes back:
    /// the lane's last record, or a crossing one. 0 if all is durable.
    #[inline]
    pub fn last_ticket(&self, lane: usize) -> Ticket {
        let last = Ticket(self.shared.lanes.last(lane));
        if self.is_durable(last) { Ticket(0) } else { last }
    }

    /// Makes the oldest batch durable, or the open one if none is closed.
    pub fn step(&self) -> Step {
        self.shared.step(&mut self.shared.writer.lock())
    }

    /// Makes the next segment if it is due, which [`Log::run`] has a helper thread for; returns whether
    /// it did. Never needed: [`Log::step`] makes what it does not find, and looks for room in time. Where there is
    /// no room, only what frees some is taken from the next step on, until one of these finds it.
    pub fn prepare(&self) -> bool {
        self.shared.preparer.as_ref().is_some_and(|preparer| {
            preparer.retry();
            preparer.step()
        })
    }

    /// Has the control files say how far the log is durable, if they do not; returns whether it did. [`Log::run`] has
    /// a thread for it.
    pub fn mark(&self) -> bool {
        self.shared.marker.as_ref().is_some_and(|marker| marker.step())
    }

    /// Body of the log's thread: steps until the log is closed or fails.
    pub fn run(&self) {
        let Shared { preparer: Some(preparer), marker: Some(marker), .. } = &*self.shared else {
            return self.shared.run(None);
        };
        scope(|s| {
            // Without helpers, steps make segments themselves, and write the control files between them.
            let retry = self.shared.config.full_retry;
            let helper = spawn_scoped(s, "log segments", move || preparer.run(retry));
            let marking = spawn_scoped(s, "log control", move || marker.run());
            self.shared.run(marking.is_err().then_some(marker));
            // What is left of a prepared segment has no header, and the next start removes it.
            let _ = preparer.stop();
            marker.stop();
            drop((helper, marking));
        });
    }

    /// Refuses new records, makes everything durable, and ends the file with the last frame.
    ///
    /// # Errors
    /// The log failed, or has no room: then not everything is durable, and it is closed all the same.
    pub fn close(&self) -> Result<(), LogError> {
        let shared = &self.shared;
        shared.state.fetch_or(CLOSING, Ordering::AcqRel);
        let mut writer = shared.writer.lock();
        let result = loop {
            match shared.step(&mut writer) {
                Step::Wrote { .. } => {}
                Step::Closed if writer.batch.is_none() => break Ok(()),
                Step::Closed => break Err(LogError::Closed),
                Step::Idle | Step::Full => break Err(shared.refusal(FULL)),
                Step::Failed => break Err(shared.refusal(FAILED)),
            }
        };
        shared.state.fetch_or(CLOSED, Ordering::AcqRel);
        drop(writer);
        shared.wake();
        shared.notify_all();
        result
    }

    /// Removes the segments all of whose frames are older than `sequence`; returns how many. The newest one whose
    /// header is on stable storage stays: without any, nobody would know how far the log had come.
    ///
    /// # Errors
    /// The operating system's.
    pub fn remove_before(&self, sequence: u64) -> Result<usize, Failure> {
        match &self.shared.config.target {
            LogDestination::Null => Ok(0),
            LogDestination::Directory(directory) => {
                let newest = self.shared.begun.load(Ordering::Acquire);
                segment::remove_before(&*self.shared.env.disk, directory, sequence, newest)
            }
        }
    }

    /// Bytes of frames written since it was started.
    pub fn written_bytes(&self) -> u64 {
        self.shared.statistics.lock().written_bytes
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics.lock().clone()
    }
}

/// Makes the directory durable, and removes segments without a header or frames from `next_segment` on; the last one
/// that is left, or 0.
fn clear_the_way(disk: &dyn Disk, directory: &Path, start: &LogStart) -> Result<u64, StartError> {
    disk.create_dir_all(directory).attempting("create the directory", directory)?;
    let mut last = 0;
    for found in segment::list(disk, directory)? {
        if found.number < start.next_segment {
            last = if found.header().is_some() { found.number } else { last };
            continue;
        }
        let headless = matches!(found.head, SegmentHead::Blank | SegmentHead::Broken);
        if !headless || holds_frames(disk, &found.path, start.log_id)? {
            return Err(StartError::InTheWay { path: found.path });
        }
        disk.remove_file(&found.path).attempting("remove", &found.path)?;
    }
    disk.sync_directory(directory).attempting("sync the directory", directory)?;
    if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        disk.sync_directory(parent).attempting("sync the directory", parent)?;
    }
    Ok(last)
}

/// Has the control files say that the log is open, where it goes on; on a full disk, before the first frame.
fn begin_marking(
    env: &Env,
    directory: &Path,
    config: &Config,
    start: &LogStart,
    segment: u64,
) -> Result<Marker, StartError> {
    let (sequence, ordinal) = (start.next_sequence - 1, start.next_ordinal - 1);
    let mut paths = vec![directory.join(CONTROL_NAME)];
    paths.extend(config.control_copies.iter().cloned());
    let marker = Marker::new(env, paths, start.log_id, Position { sequence, ordinal, segment });
    match marker.begin() {
        Err(failure) if !failure.is_full() => Err(failure.into()),
        _ => Ok(marker),
    }
}

impl Shared {
    #[cold]
    fn refusal(&self, state: u8) -> LogError {
        let failure = self.failure.lock().clone();
        match failure {
            Some(failure) if state & FAILED != 0 => LogError::Failed(failure),
            Some(failure) if state & (FULL | SHORT) != 0 && state & CLOSED == 0 => LogError::Full(failure),
            _ => LogError::Closed,
        }
    }

    fn step(&self, writer: &mut Writer) -> Step {
        let state = self.state.load(Ordering::Acquire);
        if state & FAILED != 0 {
            return Step::Failed;
        }
        if state & CLOSED != 0 {
            return Step::Closed;
        }
        self.look_for_room();
        if writer.batch.is_none() {
            let batch = self.lanes.take().or_else(|| {
                self.lanes.close();
                self.lanes.take()
            });
            let Some(batch) = batch else {
                // Closing was said before the lanes were found empty, and is looked at under their locks.
                return if state & CLOSING != 0 { self.finish(writer) } else { Step::Idle };
            };
            batch.assemble(self.log_id, writer.next_ordinal, &mut writer.frame);
            assert_eq!(writer.frame.len() % SECTOR_BYTES, 0, "a frame is whole sectors");
            writer.batch = Some(batch);
        }
        self.flush(writer)
    }

    /// Says whether there is room behind the segment in use.
    fn look_for_room(&self) {
        let lack = self.preparer.as_ref().and_then(|preparer| preparer.lack());
        let is_short = self.state.load(Ordering::Relaxed) & SHORT != 0;
        match lack {
            Some(failure) if !is_short => {
                *self.failure.lock() = Some(failure);
                self.state.fetch_or(SHORT, Ordering::AcqRel);
            }
            None if is_short => drop(self.state.fetch_and(!SHORT, Ordering::AcqRel)),
            _ => {}
        }
    }

    /// Writes the batch that has been taken.
    fn flush(&self, writer: &mut Writer) -> Step {
        let batch = writer.batch.take().expect("a batch was taken");
        let place = SegmentStart { sequence: batch.sequence, ordinal: writer.next_ordinal };
        let start = self.env.clock.now();
        let syncs = match writer.device.write(&writer.frame, &place) {
            Ok(syncs) => syncs,
            Err(failure) if failure.is_full() => {
                writer.batch = Some(batch);
                *self.failure.lock() = Some(Arc::new(failure));
                if self.state.fetch_or(FULL, Ordering::AcqRel) & FULL == 0 {
                    self.notify_all();
                }
                return Step::Full;
            }
            Err(failure) => return self.fail(failure),
        };
        self.look_for_room();
        let durable = self.durable.load(Ordering::Relaxed);
        assert_eq!(durable + 1, batch.sequence, "frames become durable one after another (I-1)");
        let took = self.env.clock.now() - start;
        self.woken.store(self.waiting.load(Ordering::Relaxed), Ordering::Relaxed);
        self.lanes.written(&batch);
        self.durable.store(batch.sequence, Ordering::Release);
        if self.state.load(Ordering::Relaxed) & FULL != 0 {
            self.state.fetch_and(!FULL, Ordering::AcqRel);
        }
        // Under the lock, so that whoever has looked and is about to wait hears it.
        drop(self.door.lock());
        self.rooms[batch.sequence as usize % ROOMS].notify_all();
        writer.next_ordinal += u64::from(batch.records);
        if let Some(marker) = &self.marker {
            let segment = self.begun.load(Ordering::Relaxed);
            let (sequence, ordinal) = (batch.sequence, writer.next_ordinal - 1);
            marker.note(Position { sequence, ordinal, segment });
        }
        let bytes = writer.frame.len() as u64;
        let step = Step::Wrote { sequence: batch.sequence, records: batch.records, bytes };
        {
            let mut statistics = self.statistics.lock();
            statistics.records += u64::from(batch.records);
            statistics.record_bytes += batch.bytes;
            statistics.frames += 1;
            statistics.written_bytes += bytes;
            statistics.syncs += syncs;
            statistics.flush_ns.saturating_record(took);
        }
        self.lanes.recycle(batch);
        step
    }

    fn fail(&self, failure: Failure) -> Step {
        let state = self.state.load(Ordering::Relaxed);
        assert_eq!(state & (FAILED | CLOSED), 0, "a log that failed or was closed writes no more (I-2)");
        *self.failure.lock() = Some(Arc::new(failure));
        self.state.fetch_or(FAILED, Ordering::AcqRel);
        self.notify_all();
        Step::Failed
    }

    /// Ends a log whose every record is durable.
    fn finish(&self, writer: &mut Writer) -> Step {
        assert!(writer.batch.is_none(), "a log is closed only when all is written (I-3)");
        assert_eq!(self.lanes.pending_bytes(), 0, "nothing was appended after closing began (I-3)");
        // A tail of zeros, a segment without a header, or control files that do not say that the log was closed are
        // left if this fails: reading knows all of them.
        let _ = writer.device.finish();
        self.state.fetch_or(CLOSED, Ordering::AcqRel);
        self.notify_all();
        Step::Closed
    }

    fn notify_all(&self) {
        drop(self.door.lock());
        for room in &self.rooms {
            room.notify_all();
        }
    }

    /// Waits for a ticket, a time, or one of the states in `ends`.
    fn wait(&self, ticket: Ticket, deadline_ns: Option<u64>, ends: u8) -> Result<bool, LogError> {
        if ticket.0 <= self.durable.load(Ordering::Acquire) {
            return Ok(true);
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        for _ in 0..SPINS {
            if ticket.0 <= self.durable.load(Ordering::Acquire) {
                break;
            }
            std::hint::spin_loop();
        }
        let result = self.wait_asleep(ticket, deadline_ns, ends);
        let before = self.waiting.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "whoever waits is counted");
        result
    }

    fn wait_asleep(&self, ticket: Ticket, deadline_ns: Option<u64>, ends: u8) -> Result<bool, LogError> {
        let room = &self.rooms[ticket.0 as usize % ROOMS];
        let mut door = self.door.lock();
        loop {
            if let Some(outcome) = self.look(ticket, deadline_ns, ends) {
                return outcome;
            }
            match deadline_ns {
                None => room.wait(&mut door),
                Some(deadline) => {
                    let left = deadline.saturating_sub(self.env.clock.now());
                    room.wait_for(&mut door, Duration::from_nanos(left));
                }
            }
        }
    }

    /// What waiting has come to, if it is over.
    fn look(&self, ticket: Ticket, deadline_ns: Option<u64>, ends: u8) -> Option<Result<bool, LogError>> {
        // In this order: what is durable stays so when the log fails after it.
        let state = self.state.load(Ordering::Acquire);
        match () {
            () if ticket.0 <= self.durable.load(Ordering::Acquire) => Some(Ok(true)),
            () if state & ends != 0 => Some(Err(self.refusal(state))),
            () => deadline_ns.filter(|&at| self.env.clock.now() >= at).map(|_| Ok(false)),
        }
    }

    #[inline]
    fn wake_if_parked(&self) {
        if self.parked.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let _sleep = self.sleep.lock();
        self.parked.store(false, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Body of the log's thread, which writes the control files itself if it is given the `marker`.
    fn run(&self, marker: Option<&Arc<Marker>>) {
        let delay = self.config.batch_delay.as_nanos() as u64;
        let mut watch = self.preparer.as_ref().map(|_| Watch::new(self.env.clock.clone()));
        loop {
            let closed_at = self.env.clock.now();
            let step = self.step(&mut self.writer.lock());
            let is_short = self.state.load(Ordering::Relaxed) & SHORT != 0;
            if let Some(marker) = marker {
                marker.step_if_due();
            }
            match step {
                Step::Wrote { .. } => {
                    let written_at = self.env.clock.now();
                    let interrupted =
                        watch.as_mut().and_then(|watch| watch.wrote(written_at, Interrupts::now));
                    if let Some(core) = interrupted {
                        self.placement.ask_to_leave(core);
                    }
                    let return_by = written_at + ((written_at - closed_at) / 4).min(delay);
                    self.linger(closed_at + delay, return_by);
                }
                Step::Idle => self.park(is_short.then_some(self.config.full_retry), false),
                Step::Full => self.park(Some(self.config.full_retry), true),
                Step::Failed | Step::Closed => return,
            }
        }
    }

    /// Lets a batch fill until the clock shows `until_ns`. Then gives those who waited for the last frame
    /// until `return_by_ns` to append again: otherwise the first of them go into a frame of their own, and
    /// the others wait for that one and theirs. Ends at once when the batch is full, or somebody closes it.
    fn linger(&self, until_ns: u64, return_by_ns: u64) {
        let woken = self.woken.load(Ordering::Relaxed);
        for turn in 1u32.. {
            let now = self.env.clock.now();
            let waiting = self.waiting.load(Ordering::Relaxed);
            let due = now >= until_ns && (now >= return_by_ns || waiting >= woken);
            let full = self.lanes.has_closed() || self.lanes.pending_bytes() >= self.config.batch_bytes;
            if due || full || self.state.load(Ordering::Relaxed) != 0 {
                return;
            }
            if waiting.max(woken) == 0 || turn > MOST_TURNS {
                // Nobody is in a hurry: the core is better given away.
                return self.env.clock.sleep(Duration::from_nanos(until_ns.saturating_sub(now)));
            }
            for _ in 0..LOOK_EVERY {
                std::hint::spin_loop();
            }
            if turn.is_multiple_of(8) {
                std::thread::yield_now();
            }
        }
    }

    /// Sleeps until something is appended, sealed or closed, or the limit is over; when it is `full`, what has
    /// been appended can wait.
    fn park(&self, limit: Option<Duration>, full: bool) {
        self.parked.store(true, Ordering::Relaxed);
        let work = self.lanes.has_work();
        // Behind the lanes' locks, which whoever closes takes after it has said so.
        let closing = self.state.load(Ordering::Acquire) & (CLOSING | CLOSED) != 0;
        if closing || (work && !full) {
            self.parked.store(false, Ordering::Relaxed);
            return;
        }
        let mut sleep = self.sleep.lock();
        match limit {
            // Whoever has woken it in between wakes it no more.
            Some(limit) if full || self.parked.load(Ordering::Relaxed) => {
                let _ = self.wake.wait_for(&mut sleep, limit);
            }
            Some(_) => {}
            None => self.park_asleep(&mut sleep),
        }
        self.parked.store(false, Ordering::Relaxed);
    }

    fn park_asleep(&self, sleep: &mut MutexGuard<'_, ()>) {
        while self.parked.load(Ordering::Relaxed) {
            self.wake.wait(sleep);
        }
    }
}
