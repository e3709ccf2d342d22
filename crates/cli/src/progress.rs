//! One line that says how far something is: only where somebody watches, on a terminal.

use albireo::progress::Unit;
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
    start_done: u64,
    done: u64,
    next_ns: u64,
    /// Characters of the line that is there.
    width: usize,
}

impl Progress {
    /// A line that has not been shown.
    pub fn new(clock: &Clock) -> Self {
        let (now, shown) = (clock.now(), io::stderr().is_terminal());
        let clock = clock.clone();
        Self { clock, shown, what: "", start_ns: now, start_done: 0, done: 0, next_ns: now, width: 0 }
    }

    /// Says that so many bytes of all are done of `what`.
    pub fn show(&mut self, what: &'static str, done: u64, total: u64) {
        self.show_of(what, Unit::Bytes, done, Some(total));
    }

    /// Says that so much, of all if that is known, is done of `what`.
    pub fn show_of(&mut self, what: &'static str, unit: Unit, done: u64, total: Option<u64>) {
        let now = self.clock.now();
        if what != self.what || done < self.done {
            (self.what, self.start_ns, self.start_done) = (what, now, done);
        }
        self.done = done;
        if !self.shown || now < self.next_ns {
            return;
        }
        self.next_ns = now + EVERY_NS;
        let line = line(what, unit, done, total, done - self.start_done, now - self.start_ns);
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
fn line(what: &str, unit: Unit, done: u64, total: Option<u64>, since_start: u64, took_ns: u64) -> String {
    let count = |count: u64| match unit {
        Unit::Bytes => megabytes(count),
        Unit::Rows => format!("{count} rows"),
    };
    let percent = |total: u64| u128::from(done.min(total)) * 100 / u128::from(total.max(1));
    let mut line = match total {
        Some(total) => format!("{what}: {} % of {}", percent(total), count(total)),
        None => format!("{what}: {}", count(done)),
    };
    if took_ns > 0 && since_start > 0 {
        let per_second = since_start as f64 * 1e9 / took_ns as f64;
        line += &format!(", {}/s", count(per_second as u64));
        if let Some(total) = total {
            line += &format!(", {:.0} s left", total.saturating_sub(done) as f64 / per_second);
        }
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
        assert_eq!(line("copying", Unit::Bytes, 0, Some(0), 0, 0), "copying: 0 % of 0.0 MB");
        assert_eq!(
            line("copying", Unit::Bytes, 25_000_000, Some(100_000_000), 25_000_000, 1_000_000_000),
            "copying: 25 % of 100.0 MB, 25.0 MB/s, 3 s left"
        );
        let unknown = line("indexing", Unit::Rows, 50, None, 50, 2_000_000_000);
        assert_eq!(unknown, "indexing: 50 rows, 25 rows/s");
    }
}
