//! Shows how far a long COPY or CREATE INDEX is, in one line of the terminal that is taken away at its end.
//!
//! Responsible for: when the line is shown, its form. Not responsible for: how far the statement is ([`ProgressReader`]).
//!
//! Units: nanoseconds.

use crate::progress::megabytes;
use crate::sql::ProgressReader;
use albireo::progress::{Phase, Progress, Unit};
use albireo_env::Clock;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Of what takes less nothing is shown.
const SHORT_NS: u64 = 1_000_000_000;

/// How often the line is written anew.
const EVERY: Duration = Duration::from_millis(200);

/// Whether a statement may tell how far it is.
pub fn may_tell(statement: &str) -> bool {
    let first = statement.split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    ["copy", "create", "insert"].iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// Runs `work` while another thread shows on `to` what `reader` tells.
pub fn during<T>(
    reader: ProgressReader,
    clock: &Clock,
    mut to: impl Write + Send + 'static,
    work: impl FnOnce() -> T,
) -> T {
    let (stop, stopped) = sync_channel::<()>(0);
    let clock = clock.clone();
    let watcher = albireo_env::spawn("albireo-watch", move || {
        let mut line = Line::new(clock.now());
        while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            let text = line.at(clock.now(), reader());
            if write!(to, "{text}").and_then(|()| to.flush()).is_err() {
                return;
            }
        }
        let _ = write!(to, "{}", line.taken_away()).and_then(|()| to.flush());
    });
    let result = work();
    drop(stop);
    if let Ok(watcher) = watcher {
        // One that panicked has said so.
        let _ = watcher.join();
    }
    result
}

/// The line, and what its rates are reckoned from.
struct Line {
    start_ns: u64,
    /// The phase that is shown, when it was first seen, and how much was done then.
    phase: Option<(u64, u64, u64)>,
    is_shown: bool,
}

impl Line {
    fn new(now_ns: u64) -> Self {
        Self { start_ns: now_ns, phase: None, is_shown: false }
    }

    /// What is to be written.
    fn at(&mut self, now_ns: u64, progress: Option<Progress>) -> String {
        let Some(progress) = progress else { return self.taken_away() };
        let (_, first_ns, first_done) = match self.phase {
            Some(phase) if phase.0 == progress.number => phase,
            _ => *self.phase.insert((progress.number, now_ns, progress.done)),
        };
        if now_ns.saturating_sub(self.start_ns) < SHORT_NS {
            return String::new();
        }
        self.is_shown = true;
        let took_ns = now_ns.saturating_sub(first_ns);
        format!("\r\x1b[K{}", text(&progress, progress.done.saturating_sub(first_done), took_ns))
    }

    fn taken_away(&mut self) -> String {
        if std::mem::take(&mut self.is_shown) { "\r\x1b[K".to_owned() } else { String::new() }
    }
}

/// `reading the file: 25 % of 100.0 MB, 25.0 MB/s, 3 s left`
fn text(progress: &Progress, since_first: u64, took_ns: u64) -> String {
    let what = match progress.phase {
        Phase::ReadingFile => "reading the file",
        Phase::InsertingRows => "inserting rows",
        Phase::BuildingIndex => "building an index",
        Phase::WritingFile => "writing the file",
    };
    let count = |count: u64| match progress.unit {
        Unit::Bytes => megabytes(count),
        Unit::Rows => format!("{count} rows"),
    };
    let mut line = match progress.total {
        Some(total) => {
            let percent = u128::from(progress.done.min(total)) * 100 / u128::from(total.max(1));
            format!("{what}: {percent} % of {}", count(total))
        }
        None => format!("{what}: {}", count(progress.done)),
    };
    if since_first > 0 && took_ns > 0 {
        let per_second = since_first as f64 * 1e9 / took_ns as f64;
        line += &format!(", {}/s", count(per_second as u64));
        if let Some(total) = progress.total {
            line += &format!(", {:.0} s left", total.saturating_sub(progress.done) as f64 / per_second);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn progress(number: u64, done: u64, total: Option<u64>) -> Option<Progress> {
        Some(Progress { phase: Phase::ReadingFile, unit: Unit::Bytes, done, total, number })
    }

    #[test]
    fn line_appears_after_a_second_and_is_taken_away() {
        let mut line = Line::new(0);
        let all = Some(100_000_000);
        assert_eq!(line.at(SECOND / 2, progress(1, 0, all)), "");
        assert_eq!(line.taken_away(), "");
        let shown = line.at(SECOND * 3 / 2, progress(1, 25_000_000, all));
        assert_eq!(shown, "\r\x1b[Kreading the file: 25 % of 100.0 MB, 25.0 MB/s, 3 s left");
        assert_eq!(line.at(SECOND * 2, None), "\r\x1b[K");
        assert_eq!(line.taken_away(), "");
    }

    #[test]
    fn rate_is_the_phases_own() {
        let mut line = Line::new(0);
        line.at(SECOND, progress(1, 900, Some(1_000)));
        let shown = line.at(2 * SECOND, progress(2, 0, None));
        assert_eq!(shown, "\r\x1b[Kreading the file: 0.0 MB");
        let rows =
            Progress { unit: Unit::Rows, phase: Phase::BuildingIndex, ..progress(2, 50, None).unwrap() };
        assert_eq!(line.at(4 * SECOND, Some(rows)), "\r\x1b[Kbuilding an index: 50 rows, 25 rows/s");
    }

    #[test]
    fn statements_that_may_take_long_are_known_by_their_first_word() {
        for (text, may) in
            [("COPY t from 'a'", true), ("create index i on t (a)", true), ("select 1", false), ("", false)]
        {
            assert_eq!(may_tell(text), may, "{text}");
        }
    }

    #[test]
    fn watcher_ends_with_the_work_and_gives_its_result() {
        let reader: ProgressReader = Box::new(|| None);
        assert_eq!(during(reader, &Clock::real(), std::io::sink(), || 7), 7);
    }
}
