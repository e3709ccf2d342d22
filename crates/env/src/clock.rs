//! Monotonic and wall-clock time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// 2000-01-01 00:00 UTC in microseconds since 1970: where simulated wall clocks start.
const SIMULATED_START_US: i64 = 946_684_800_000_000;

/// A source of time. Cheap to clone; clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Real { origin: Instant },
    Simulated { start_us: i64, elapsed_ns: Arc<AtomicU64> },
}

/// The hand that moves a simulated [`Clock`].
#[derive(Clone, Debug)]
pub struct SimulatedClock {
    elapsed_ns: Arc<AtomicU64>,
}

impl Clock {
    /// The machine's clocks.
    pub fn real() -> Self {
        Self(Kind::Real { origin: Instant::now() })
    }

    /// A clock that stands at 0 (on the wall: 2000-01-01 00:00 UTC) until its hand is moved.
    pub fn simulated() -> (Self, SimulatedClock) {
        Self::simulated_from(SIMULATED_START_US)
    }

    /// As [`Clock::simulated`], with another time on the wall to begin with, in microseconds since 1970: any, also
    /// one before.
    pub fn simulated_from(start_us: i64) -> (Self, SimulatedClock) {
        let elapsed_ns = Arc::new(AtomicU64::new(0));
        (Self(Kind::Simulated { start_us, elapsed_ns: elapsed_ns.clone() }), SimulatedClock { elapsed_ns })
    }

    /// Whether libraries can read the time: some take for granted that it is not before 1970.
    pub fn is_set(&self) -> bool {
        std::time::SystemTime::now() >= std::time::UNIX_EPOCH
    }

    /// Nanoseconds since this clock was made; never goes back. 64 bits last 584 years.
    #[inline]
    pub fn now(&self) -> u64 {
        match &self.0 {
            Kind::Real { origin } => origin.elapsed().as_nanos() as u64,
            Kind::Simulated { elapsed_ns, .. } => elapsed_ns.load(Ordering::SeqCst),
        }
    }

    /// Wall-clock time in microseconds since 1970-01-01 00:00 UTC, negative before; may jump when the machine's
    /// clock is set.
    #[inline]
    pub fn unix_us(&self) -> i64 {
        // Every transaction asks; by way of `SystemTime` it would cost three times as much.
        self.unix_us_by(rustix::time::ClockId::Realtime)
    }

    /// As [`Clock::unix_us`], up to some milliseconds earlier, for a sixth of the time.
    #[inline]
    pub fn about_unix_us(&self) -> i64 {
        self.unix_us_by(rustix::time::ClockId::RealtimeCoarse)
    }

    #[inline]
    fn unix_us_by(&self, clock: rustix::time::ClockId) -> i64 {
        match &self.0 {
            Kind::Real { .. } => {
                let time = rustix::time::clock_gettime(clock);
                time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_nsec / 1_000)
            }
            Kind::Simulated { start_us, elapsed_ns } => {
                start_us.saturating_add((elapsed_ns.load(Ordering::SeqCst) / 1_000) as i64)
            }
        }
    }

    /// Lets `duration` pass: sleeps in the real world, moves the hand in the simulated one.
    pub fn sleep(&self, duration: Duration) {
        match &self.0 {
            Kind::Real { .. } => std::thread::sleep(duration),
            Kind::Simulated { elapsed_ns, .. } => advance(elapsed_ns, duration),
        }
    }
}

impl SimulatedClock {
    /// Moves the clock forward.
    pub fn advance(&self, duration: Duration) {
        advance(&self.elapsed_ns, duration);
    }
}

fn advance(elapsed_ns: &AtomicU64, duration: Duration) {
    let before = elapsed_ns.fetch_add(duration.as_nanos() as u64, Ordering::SeqCst);
    assert!(before.checked_add(duration.as_nanos() as u64).is_some(), "a simulated clock ran over");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_clock_read_twice_never_goes_back() {
        let clock = Clock::real();
        let first = clock.now();
        clock.sleep(Duration::from_millis(2));
        assert!(clock.now() >= first + 2_000_000);
    }

    #[test]
    fn real_wall_clock_is_past_the_year_2020() {
        assert!(Clock::real().unix_us() > 1_577_836_800_000_000);
    }

    #[test]
    fn simulated_wall_clock_starts_at_any_time_and_stops_at_the_last() {
        let (clock, hand) = Clock::simulated_from(-5);
        hand.advance(Duration::from_micros(3));
        assert_eq!(clock.unix_us(), -2);
        let (clock, hand) = Clock::simulated_from(i64::MAX);
        hand.advance(Duration::from_secs(1));
        assert_eq!(clock.unix_us(), i64::MAX);
    }

    #[test]
    fn simulated_clock_moves_only_when_advanced() {
        let (clock, hand) = Clock::simulated();
        let wall = clock.unix_us();
        assert_eq!(clock.now(), 0);
        hand.advance(Duration::from_micros(7));
        clock.clone().sleep(Duration::from_micros(3));
        assert_eq!(clock.now(), 10_000);
        assert_eq!(clock.unix_us(), wall + 10);
    }
}
