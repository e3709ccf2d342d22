//! How far opening a database has come, on standard error.

use std::io::{self, IsTerminal, Write};

use albireo::{RecoveryPhase, RecoveryProgress};

/// What takes less is not told, in nanoseconds.
const SHORT_NS: u64 = 1_000_000_000;

/// How often a line is added where none can be written over, in nanoseconds.
const LINE_NS: u64 = 10_000_000_000;

/// Tells it: at a terminal in one line that is taken away at the end, elsewhere in a line now and then.
pub struct Shown<W: Write> {
    to: W,
    is_terminal: bool,
    /// Nothing is told of what takes so long only, or until then again.
    quiet_ns: u64,
    phase: Option<RecoveryPhase>,
    is_shown: bool,
}

impl Shown<io::Stderr> {
    /// On standard error.
    pub fn on_stderr() -> Self {
        let stderr = io::stderr();
        let is_terminal = stderr.is_terminal();
        Self::new(stderr, is_terminal)
    }
}

impl<W: Write> Shown<W> {
    fn new(to: W, is_terminal: bool) -> Self {
        Self { to, is_terminal, quiet_ns: SHORT_NS, phase: None, is_shown: false }
    }

    /// It is so far now.
    pub fn tell(&mut self, progress: RecoveryProgress) {
        if self.phase.replace(progress.phase) != Some(progress.phase) {
            self.quiet_ns = SHORT_NS;
        }
        if progress.elapsed_ns < self.quiet_ns {
            return;
        }
        let line = line(&progress);
        // Whoever cannot be told need not be.
        let _ = match self.is_terminal {
            true => write!(self.to, "\r\x1b[K{line}").and_then(|()| self.to.flush()),
            false => {
                self.quiet_ns = progress.elapsed_ns + LINE_NS;
                writeln!(self.to, "{line}")
            }
        };
        self.is_shown = true;
    }

    /// It is over.
    pub fn end(&mut self) {
        if self.is_shown && self.is_terminal {
            let _ = write!(self.to, "\r\x1b[K").and_then(|()| self.to.flush());
        }
        self.is_shown = false;
    }
}

fn line(progress: &RecoveryProgress) -> String {
    let what = match progress.phase {
        RecoveryPhase::Archive => "loading the archive",
        RecoveryPhase::Log => "doing the redo log again",
    };
    let percent = u128::from(progress.bytes_done) * 100 / u128::from(progress.bytes_total.max(1));
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let left = progress.left_ns().map_or_else(String::new, |left_ns| {
        let seconds = left_ns.div_ceil(1_000_000_000);
        match seconds / 60 {
            0 => format!(", {seconds} s left"),
            minutes => format!(", {minutes} min {} s left", seconds % 60),
        }
    });
    format!(
        "albireo: {what}: {percent} % of {:.1} MB, {:.1} MB/s{left}",
        megabytes(progress.bytes_total),
        megabytes(progress.bytes_per_second())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(phase: RecoveryPhase, tenths: u64) -> RecoveryProgress {
        let (bytes_done, bytes_total) = (tenths * 10_000_000, 2_000_000_000);
        RecoveryProgress { phase, bytes_done, bytes_total, elapsed_ns: tenths * 100_000_000 }
    }

    fn told(is_terminal: bool, tenths: u64) -> String {
        let mut shown = Shown::new(Vec::new(), is_terminal);
        for phase in [RecoveryPhase::Archive, RecoveryPhase::Log] {
            (0..tenths).for_each(|tenth| shown.tell(at(phase, tenth)));
        }
        shown.end();
        String::from_utf8(shown.to).unwrap()
    }

    #[test]
    fn nothing_is_told_of_what_is_over_within_a_second() {
        assert_eq!((told(true, 10), told(false, 10)), (String::new(), String::new()));
    }

    #[test]
    fn terminal_has_one_line_that_goes_away_and_a_file_a_line_now_and_then() {
        let terminal = told(true, 12);
        assert_eq!(terminal.matches("\r\x1b[K").count(), 5);
        assert!(terminal.ends_with("\r\x1b[K") && !terminal.contains('\n'), "{terminal:?}");
        let lines = told(false, 150);
        assert_eq!(lines.lines().count(), 4);
        let first = "albireo: loading the archive: 5 % of 2000.0 MB, 100.0 MB/s, 19 s left";
        assert_eq!(lines.lines().next(), Some(first));
        assert!(lines.lines().nth(2).unwrap().contains("doing the redo log again"), "{lines}");
    }

    #[test]
    fn time_left_is_told_in_minutes_when_it_is_long() {
        let progress = RecoveryProgress { bytes_total: 20_000_000_000, ..at(RecoveryPhase::Log, 20) };
        assert!(line(&progress).ends_with(": 1 % of 20000.0 MB, 100.0 MB/s, 3 min 18 s left"));
    }
}
