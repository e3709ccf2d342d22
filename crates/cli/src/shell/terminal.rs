//! The terminal of a shell that a person uses: its size, and the mode it is in while statements run.
//!
//! While a statement runs, keys are kept as they are typed instead of line by line, so that nothing typed or pasted
//! ahead is lost and Ctrl-D is a key like any other. The line editor has a mode of its own while it reads; programs that
//! the shell starts get the terminal as the shell found it.
//!
//! I-1 When a [`Terminal`] is dropped the terminal is as it was found.

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use std::io::{self, IsTerminal};
use std::num::NonZeroUsize;

/// The terminal that standard input is.
pub struct Terminal {
    /// As it was found; `None` if its mode is left alone.
    found: Option<Termios>,
}

impl Terminal {
    /// Takes it, if standard input is one that lines can be edited on.
    pub fn take() -> Self {
        let is_usable = io::stdin().is_terminal() && !is_dumb();
        let found = is_usable.then(|| tcgetattr(io::stdin()).ok()).flatten();
        let terminal = Self { found };
        terminal.listen();
        terminal
    }

    /// Whether lines can be edited on it.
    pub fn is_usable(&self) -> bool {
        self.found.is_some()
    }

    /// Keeps keys for the line editor. Ctrl-C stays a signal.
    pub fn listen(&self) {
        self.keep_keys(LocalModes::ICANON);
    }

    /// Runs `work`, which reads lines and does nothing else that could be stopped: Ctrl-C between two of them is a
    /// key, which the next one finds.
    pub fn read_only<T>(&self, work: impl FnOnce() -> T) -> T {
        self.keep_keys(LocalModes::ICANON | LocalModes::ISIG);
        let result = work();
        self.listen();
        result
    }

    fn keep_keys(&self, without: LocalModes) {
        let Some(found) = &self.found else { return };
        let mut mode = found.clone();
        mode.local_modes.remove(without);
        mode.special_codes[SpecialCodeIndex::VMIN] = 1;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        // A terminal that refuses stays as it is.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &mode);
    }

    /// Puts it back as it was found, for another program.
    pub fn give_back(&self) {
        put_back(self.found.as_ref());
    }

    /// What puts it back as it was found, for a process that ends in the middle of something.
    pub fn restorer(&self) -> impl Fn() + Send + 'static {
        let found = self.found.clone();
        move || put_back(found.as_ref())
    }

    /// Runs `work`, which uses the terminal itself, as another program does.
    pub fn lend<T>(&self, work: impl FnOnce() -> T) -> T {
        self.give_back();
        let result = work();
        self.listen();
        result
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn put_back(found: Option<&Termios>) {
    if let Some(found) = found {
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, found);
    }
}

/// Whether the terminal says that it can do nothing but print; the line editor's own list.
fn is_dumb() -> bool {
    std::env::var("TERM")
        .is_ok_and(|term| ["dumb", "cons25", "emacs"].contains(&term.to_ascii_lowercase().as_str()))
}

/// Columns and rows of the terminal that standard output is; `None` if it is none, or for what it does not know.
pub fn size() -> (Option<NonZeroUsize>, Option<NonZeroUsize>) {
    if !io::stdout().is_terminal() {
        return (None, None);
    }
    let known = tcgetwinsize(io::stdout()).ok();
    let of = |count: Option<u16>, variable: &str| {
        let told = || std::env::var(variable).ok()?.parse().ok();
        count.and_then(|count| NonZeroUsize::new(count.into())).or_else(told)
    };
    (of(known.map(|size| size.ws_col), "COLUMNS"), of(known.map(|size| size.ws_row), "LINES"))
}
