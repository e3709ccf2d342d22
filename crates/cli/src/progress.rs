//! One line that says how far something is: only where somebody watches, on a terminal.

use albireo_env::Clock;
use std::io::{self, IsTerminal, Write};

/// Nanoseconds between two lines.
const EVERY_NS: u64 = 200_000_000;

/// The line.
pub struct Progress {
    clock: Clock,
    shown: bool,
    what: &'static str,
    start_ns: u64,
    start_bytes: u64,
    next_ns: u64,
    /// Characters of the line that is there.
    width: usize,
}

impl Progress {
    /// A line that has not been shown.
    pub fn new(clock: &Clock) -> Self {
        let (now, shown) = (clock.now(), io::stderr().is_terminal());
        let clock = clock.clone();
        Self { clock, shown, what: "", start_ns: now, start_bytes: 0, next_ns: now, width: 0 }
    }

    /// Says that so many bytes of all are done of `what`.
    pub fn show(&mut self, what: &'static str, done: u64, total: u64) {
        let now = self.clock.now();
        if what != self.what {
            (self.what, self.start_ns, self.start_bytes) = (what, now, done);
        }
        if !self.shown || now < self.next_ns {
            return;
        }
        self.next_ns = now + EVERY_NS;
        let line = line(what, done, total, done - self.start_bytes.min(done), now - self.start_ns);
        // A line that cannot be shown is not missed.
        let _ = write!(io::stderr(), "\r{line:<width$}", width = self.width);
        self.width = line.chars().count();
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if self.width > 0 {
            let _ = write!(io::stderr(), "\r{:width$}\r", "", width = self.width);
            self.width = 0;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What is said: how much, how fast, how long it will take.
fn line(what: &str, done: u64, total: u64, since_start: u64, took_ns: u64) -> String {
    let percent = done.min(total) * 100 / total.max(1);
    let mut line = format!("{what}: {percent} % of {}", megabytes(total));
    if took_ns > 0 && since_start > 0 {
        let per_second = since_start as f64 * 1e9 / took_ns as f64;
        let left = total.saturating_sub(done) as f64 / per_second;
        line += &format!(", {}/s, {left:.0} s left", megabytes(per_second as u64));
    }
    line
}

/// Bytes for people.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// How fast so many bytes were, for people.
pub fn rate(bytes: u64, took_ns: u64) -> String {
    let seconds = took_ns as f64 / 1e9;
    format!("{seconds:.1} s, {:.0} MB/s", bytes as f64 / 1e6 / seconds.max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_says_rate_and_time_left() {
        assert_eq!(line("copying", 0, 0, 0, 0), "copying: 0 % of 0.0 MB");
        assert_eq!(
            line("copying", 25_000_000, 100_000_000, 25_000_000, 1_000_000_000),
            "copying: 25 % of 100.0 MB, 25.0 MB/s, 3 s left"
        );
    }
}
