//! Ctrl-C: stops what runs, not the program; with nothing running it ends the program.
//!
//! I-1 At a prompt the program goes on although nothing runs, but it can always be left: where it waits for something
//! else than a key, the second Ctrl-C ends it.

use crate::sql::Canceller;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Exit status after Ctrl-C, as shells expect it: 128 and the signal's number.
pub const EXIT_STATUS: u8 = 130;

/// Knows what runs and whether it has been interrupted. Clones share that.
#[derive(Clone, Default)]
pub struct Interrupt {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    running: Mutex<Option<Canceller>>,
    requested: AtomicBool,
    /// Whether the program goes on although nothing runs: a person is at the prompt.
    stays: AtomicBool,
    /// How often Ctrl-C was pressed in a row with nothing to stop.
    unanswered: AtomicU32,
    /// What is done before the program ends.
    at_exit: Mutex<Vec<Canceller>>,
}

impl Interrupt {
    /// Listens for Ctrl-C from now on. To be called once in a program.
    ///
    /// # Errors
    /// The operating system refuses the handler.
    pub fn install() -> io::Result<Self> {
        let this = Self::default();
        let handler = this.clone();
        ctrlc::set_handler(move || {
            if handler.request() {
                return;
            }
            if !handler.ends_program() {
                return eprintln!("\nPress Ctrl-C again to leave the shell.");
            }
            handler.shared.at_exit.lock().iter().for_each(|work| work());
            std::process::exit(EXIT_STATUS.into());
        })
        .map_err(io::Error::other)?;
        Ok(this)
    }

    /// Runs `f`; Ctrl-C meanwhile calls `cancel` and is remembered until the next call.
    pub fn during<T>(&self, cancel: Canceller, f: impl FnOnce() -> T) -> T {
        self.forget();
        *self.shared.running.lock() = Some(cancel);
        let result = f();
        *self.shared.running.lock() = None;
        result
    }

    /// Forgets that Ctrl-C was pressed.
    pub fn forget(&self) {
        self.shared.requested.store(false, Ordering::SeqCst);
        self.shared.unanswered.store(0, Ordering::SeqCst);
    }

    /// What is also done before Ctrl-C ends the program.
    pub fn at_exit(&self, work: impl Fn() + Send + 'static) {
        self.shared.at_exit.lock().push(Box::new(work));
    }

    /// Whether a Ctrl-C that had nothing to stop ends the program.
    fn ends_program(&self) -> bool {
        let before = self.shared.unanswered.fetch_add(1, Ordering::SeqCst);
        !self.shared.stays.load(Ordering::SeqCst) || before > 0
    }

    /// From now on Ctrl-C does not end the program (`false`: does), whether something runs or not.
    pub fn stay(&self, stays: bool) {
        self.shared.stays.store(stays, Ordering::SeqCst);
    }

    /// Whether Ctrl-C was pressed during the latest [`Interrupt::during`].
    pub fn requested(&self) -> bool {
        self.shared.requested.load(Ordering::SeqCst)
    }

    /// Fails if Ctrl-C was pressed; for long work between two calls of a database.
    ///
    /// # Errors
    /// Ctrl-C was pressed. The error's kind is not `Interrupted`, after which writers try again.
    pub fn check(&self) -> io::Result<()> {
        if self.requested() { Err(io::Error::other("interrupted")) } else { Ok(()) }
    }

    /// What Ctrl-C does; returns whether something was running.
    pub fn request(&self) -> bool {
        let running = self.shared.running.lock();
        self.shared.requested.store(true, Ordering::SeqCst);
        match &*running {
            Some(cancel) => {
                cancel();
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_while_something_runs_cancels_it_and_is_remembered() {
        let interrupt = Interrupt::default();
        let cancelled = Arc::new(AtomicBool::new(false));
        let flag = cancelled.clone();
        let cancel = Box::new(move || flag.store(true, Ordering::SeqCst));
        assert!(interrupt.during(cancel, || interrupt.request()));
        assert!(cancelled.load(Ordering::SeqCst));
        assert!(interrupt.requested());
        interrupt.during(Box::new(|| {}), || assert!(!interrupt.requested()));
    }

    #[test]
    fn request_while_nothing_runs_says_so() {
        assert!(!Interrupt::default().request());
    }

    #[test]
    fn program_that_stays_ends_with_the_second_request_in_a_row() {
        let interrupt = Interrupt::default();
        assert!(interrupt.ends_program());
        interrupt.forget();
        interrupt.stay(true);
        assert!(!interrupt.ends_program());
        interrupt.during(Box::new(|| {}), || {});
        assert_eq!([interrupt.ends_program(), interrupt.ends_program()], [false, true]);
    }
}
