//! Calls from queues that an executor cannot finish, because they wait for the barrier, for rows or for memory: other threads
//! do.
//!
//! I-1 There are [`MOST_THREADS`] at most; what comes then waits for one of them. None of these calls waits for another one.
//! I-2 A call is run once, or dropped if there is no thread at all: whoever waits for it learns of that.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

/// So many chunks are fetched side by side.
const MOST_THREADS: usize = 64;

type Call = Box<dyn FnOnce() + Send>;

/// The calls of one database that run, or wait for a thread.
#[derive(Clone, Default)]
pub(crate) struct Elsewhere(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Call>,
    threads: usize,
}

impl Elsewhere {
    /// Runs a call on another thread.
    pub(crate) fn run(&self, call: impl FnOnce() + Send + 'static) {
        let mut state = self.0.lock();
        state.waiting.push_back(Box::new(call));
        if state.threads == MOST_THREADS {
            return;
        }
        state.threads += 1;
        drop(state);
        let shared = Arc::clone(&self.0);
        if albireo_env::spawn_detached("albireo-cross", move || run_all(&shared)).is_err() {
            let mut state = self.0.lock();
            state.threads -= 1;
            let dropped =
                if state.threads == 0 { std::mem::take(&mut state.waiting) } else { VecDeque::new() };
            drop(state);
            drop(dropped);
        }
    }
}

/// Runs calls until none waits.
fn run_all(shared: &Mutex<State>) {
    loop {
        let mut state = shared.lock();
        let Some(call) = state.waiting.pop_front() else {
            state.threads -= 1;
            return;
        };
        drop(state);
        // Whoever waits learns of a panic by the call being dropped.
        let _ = catch_unwind(AssertUnwindSafe(call));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn all_calls_are_run_by_no_more_threads_than_may_be() {
        let elsewhere = Elsewhere::default();
        let (done, all) = channel();
        // Those that come first meet, so that each has a thread of its own; then one panics.
        let meet = Arc::new(Barrier::new(MOST_THREADS));
        for number in 0..MOST_THREADS * 4 {
            let (done, meet, shared) = (done.clone(), Arc::clone(&meet), Arc::clone(&elsewhere.0));
            elsewhere.run(move || {
                if number < MOST_THREADS {
                    meet.wait();
                }
                done.send((number, shared.lock().threads)).unwrap();
                assert_ne!(number, MOST_THREADS + 1, "as a procedure with a bug");
            });
        }
        drop(done);
        let mut numbers: Vec<usize> = all
            .iter()
            .map(|(number, threads)| {
                assert!((1..=MOST_THREADS).contains(&threads));
                number
            })
            .collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..MOST_THREADS * 4));
    }
}
