//! Keeps executors off the core that handles the disk's interrupts.
//!
//! Responsible for: noticing such a core while the log is busy, and having an executor go on on another.
//! Not responsible for: where the system puts threads otherwise; none is bound to a core.
//!
//! A disk with one queue, as virtual machines have, interrupts the same core for every write and sync, whoever
//! asked for it: 20,000 times a second under group commit. The system does not see that a thread which is
//! always busy would be better off elsewhere. On 2 cores, with a disk whose sync takes 0.12 ms, TPC-C with group
//! commit ran at 54 to 60 % of its speed without a log whenever its thread was put on that core, in every second
//! run, and at 87 to 97 % on the other.
//!
//! ```text
//! log's thread: counts frames; 4 times a second, if they are many, looks which core was interrupted
//!      '--a core with more than 3/4 of all interrupts--> lane: "leave that core"
//! executor: at its next append, if it is on that core, moves; otherwise forgets it
//! ```
//!
//! Only while there are fewer executors than cores: otherwise one of them must be there.

use std::sync::atomic::{AtomicU32, Ordering};

use albireo_env::{Clock, Interrupts, cores, current_core, leave_core};

/// How long frames are counted between two looks.
const PERIOD_NS: u64 = 250_000_000;
/// Frames a second below which interrupts cost too little to move for.
const BUSY_FRAMES_PER_S: u64 = 2_000;
/// A look that takes longer costs more than it is worth ...
const SLOW_LOOK_NS: u64 = 1_000_000;
/// ... and after as many in a row there is none any more.
const SLOW_LOOKS: u32 = 4;

/// What the log's thread asks of the executors: for each lane the core to leave, counted from 1; or 0.
#[derive(Debug)]
pub(crate) struct Placement {
    leave: Box<[AtomicU32]>,
    /// Whether there are fewer executors than cores.
    has_room: bool,
}

impl Placement {
    pub(crate) fn new(lanes: usize) -> Self {
        Self { leave: (0..lanes).map(|_| AtomicU32::new(0)).collect(), has_room: lanes < cores() }
    }

    /// Asks all executors to leave a core, if each can have one of the others.
    pub(crate) fn ask_to_leave(&self, core: usize) {
        if self.has_room {
            let asked = u32::try_from(core + 1).unwrap_or(0);
            self.leave.iter().for_each(|lane| lane.store(asked, Ordering::Relaxed));
        }
    }

    /// Moves the calling thread, the executor of a lane, if it was asked to.
    #[inline]
    pub(crate) fn follow(&self, lane: usize) {
        if self.leave[lane].load(Ordering::Relaxed) != 0 {
            self.go(lane);
        }
    }

    #[cold]
    fn go(&self, lane: usize) {
        let asked = self.leave[lane].swap(0, Ordering::Relaxed) as usize;
        if asked != 0 && asked == current_core() + 1 {
            // Whoever may not move is slower, and nothing else.
            let _ = leave_core(asked - 1);
        }
    }
}

/// Looks for a core that the disk interrupts.
#[derive(Debug)]
pub(crate) struct Watch {
    clock: Clock,
    since_ns: u64,
    frames: u64,
    before: Option<Interrupts>,
    slow_looks: u32,
}

impl Watch {
    pub(crate) fn new(clock: Clock) -> Self {
        let since_ns = clock.now();
        Self { clock, since_ns, frames: 0, before: None, slow_looks: 0 }
    }

    /// Counts a frame that has been written at `now_ns`; returns the core to leave, if one is found.
    pub(crate) fn wrote(&mut self, now_ns: u64, look: impl FnOnce() -> Option<Interrupts>) -> Option<usize> {
        self.frames += 1;
        debug_assert!(now_ns >= self.since_ns, "the clock never goes back");
        let took_ns = now_ns - self.since_ns;
        if took_ns < PERIOD_NS || self.slow_looks == SLOW_LOOKS {
            return None;
        }
        let frames = std::mem::take(&mut self.frames);
        self.since_ns = now_ns;
        if u128::from(frames) * 1_000_000_000 < u128::from(BUSY_FRAMES_PER_S) * u128::from(took_ns) {
            self.before = None;
            return None;
        }
        let interrupts = look();
        let is_slow = interrupts.is_none() || self.clock.now() - now_ns > SLOW_LOOK_NS;
        self.slow_looks = if is_slow { self.slow_looks + 1 } else { 0 };
        let before = std::mem::replace(&mut self.before, interrupts)?;
        let (core, interrupts) = self.before.as_ref()?.busiest_since(&before)?;
        (interrupts >= frames).then_some(core)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use albireo_env::SimulatedClock;
    use std::time::Duration;

    fn interrupts(first: u64, second: u64) -> Option<Interrupts> {
        Interrupts::parse(&format!("CPU0 CPU1\n 36: {first} {second} disk\n"))
    }

    /// A watch, and the hand of its clock.
    struct Watched(Watch, SimulatedClock);

    impl Watched {
        fn new() -> Self {
            let (clock, hand) = Clock::simulated();
            Self(Watch::new(clock), hand)
        }

        /// Writes `frames` in `periods`; what the look at their end finds.
        fn write(&mut self, frames: u64, periods: u32, found: Option<Interrupts>) -> Option<usize> {
            let before = self.0.clock.now();
            for _ in 1..frames {
                assert_eq!(self.0.wrote(before, || panic!("a look before its time")), None);
            }
            self.1.advance(Duration::from_nanos(PERIOD_NS) * periods);
            self.0.wrote(self.0.clock.now(), || found)
        }
    }

    #[test]
    fn interrupted_core_is_found_while_many_frames_are_written() {
        let mut watched = Watched::new();
        assert_eq!(watched.write(1000, 1, interrupts(500, 0)), None, "nothing to compare it with");
        assert_eq!(watched.write(1000, 1, interrupts(500, 2000)), Some(1));
        assert_eq!(watched.write(1000, 1, interrupts(2500, 2001)), Some(0));
        assert_eq!(watched.write(1000, 1, interrupts(3500, 3001)), None, "both alike");
        assert_eq!(watched.write(1000, 1, interrupts(3500, 3900)), None, "not the disk's");
    }

    #[test]
    fn quiet_log_looks_at_nothing_and_forgets_what_it_saw() {
        let mut watched = Watched::new();
        assert_eq!(watched.write(1000, 1, interrupts(0, 0)), None);
        assert_eq!(watched.write(1000, 3, interrupts(0, 5000)), None, "few in a second");
        assert_eq!(watched.write(1000, 1, interrupts(0, 9000)), None, "nothing to compare it with");
        assert_eq!(watched.write(1000, 1, interrupts(0, 11_000)), Some(1));
    }

    #[test]
    fn watch_ends_when_looking_takes_too_long() {
        let (clock, hand) = Clock::simulated();
        let mut watch = Watch::new(clock.clone());
        let mut looks = 0;
        for _ in 0..2 * SLOW_LOOKS {
            hand.advance(Duration::from_nanos(PERIOD_NS));
            watch.frames = 1000;
            watch.wrote(clock.now(), || {
                looks += 1;
                hand.advance(Duration::from_nanos(2 * SLOW_LOOK_NS));
                interrupts(0, 2000 * u64::from(looks))
            });
        }
        assert_eq!(looks, SLOW_LOOKS);
    }

    #[test]
    fn executor_leaves_the_core_that_it_was_asked_to_leave_once() {
        let placement = Placement::new(1);
        placement.ask_to_leave(current_core());
        assert_eq!(placement.leave[0].load(Ordering::Relaxed) != 0, cores() > 1);
        placement.follow(0);
        assert_eq!(placement.leave[0].load(Ordering::Relaxed), 0);
        let many = Placement::new(cores());
        many.ask_to_leave(0);
        assert!(many.leave.iter().all(|lane| lane.load(Ordering::Relaxed) == 0), "one must be there");
    }
}
