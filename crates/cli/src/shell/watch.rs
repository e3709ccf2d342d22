//! Shows how far a long COPY or CREATE INDEX is, in one line of the terminal that is taken away at its end.
//!
//! Responsible for: when the line is shown. Not responsible for: how far the statement is ([`ProgressReader`]), the
//! line's form ([`Progress`]).

use crate::progress::Progress;
use crate::sql::ProgressReader;
use albireo::progress::Phase;
use albireo_env::Clock;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Of what takes less nothing is shown.
const SHORT: Duration = Duration::from_secs(1);

/// How often the statement is asked.
const EVERY: Duration = Duration::from_millis(200);

/// Whether a statement may tell how far it is.
pub fn may_tell(statement: &str) -> bool {
    let first = statement.split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    ["copy", "create"].iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// Runs `work` while another thread shows what `reader` tells.
pub fn during<T>(reader: ProgressReader, clock: &Clock, work: impl FnOnce() -> T) -> T {
    let (stop, stopped) = sync_channel::<()>(0);
    let mut line = Progress::new(clock);
    let watcher = albireo_env::spawn("albireo-watch", move || {
        let mut wait = SHORT;
        while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            wait = EVERY;
            match reader() {
                Some(at) => line.show_of(called(at.phase), at.unit, at.done, at.total),
                None => line.clear(),
            }
        }
    });
    let result = work();
    drop(stop);
    if let Ok(watcher) = watcher {
        // One that panicked has said so.
        let _ = watcher.join();
    }
    result
}

fn called(phase: Phase) -> &'static str {
    match phase {
        Phase::ReadingFile => "reading the file",
        Phase::InsertingRows => "inserting rows",
        Phase::BuildingIndex => "building an index",
        Phase::WritingFile => "writing the file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(during(reader, &Clock::real(), || 7), 7);
    }
}
