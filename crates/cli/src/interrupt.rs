//! Ctrl-C: stops what runs, not the program; with nothing running it ends the program.

use crate::sql::Canceller;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
            if !handler.request() {
                std::process::exit(EXIT_STATUS.into());
            }
        })
        .map_err(io::Error::other)?;
        Ok(this)
    }

    /// Runs `f`; Ctrl-C meanwhile calls `cancel` and is remembered until the next call.
    pub fn during<T>(&self, cancel: Canceller, f: impl FnOnce() -> T) -> T {
        self.shared.requested.store(false, Ordering::SeqCst);
        *self.shared.running.lock() = Some(cancel);
        let result = f();
        *self.shared.running.lock() = None;
        result
    }

    /// Whether Ctrl-C was pressed during the latest [`Interrupt::during`].
    pub fn requested(&self) -> bool {
        self.shared.requested.load(Ordering::SeqCst)
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

/// Passes on what is written until Ctrl-C, then fails; so that printing can be interrupted too.
pub struct InterruptibleWriter<'a, W: ?Sized> {
    inner: &'a mut W,
    interrupt: &'a Interrupt,
}

impl<'a, W: io::Write + ?Sized> InterruptibleWriter<'a, W> {
    /// Writes to `inner` until `interrupt` is requested.
    pub fn new(inner: &'a mut W, interrupt: &'a Interrupt) -> Self {
        Self { inner, interrupt }
    }
}

impl<W: io::Write + ?Sized> io::Write for InterruptibleWriter<'_, W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.interrupt.requested() {
            // Not ErrorKind::Interrupted, after which writers try again.
            return Err(io::Error::other("interrupted"));
        }
        self.inner.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

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
    fn writer_after_a_request_fails() {
        let interrupt = Interrupt::default();
        let mut inner = Vec::new();
        let mut writer = InterruptibleWriter::new(&mut inner, &interrupt);
        writer.write_all(b"a").unwrap();
        interrupt.request();
        assert!(writer.write_all(b"b").is_err());
        assert_eq!(inner, b"a");
    }
}
