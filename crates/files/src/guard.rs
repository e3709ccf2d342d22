//! Calls into decoders of others that may panic on damaged input.
//!
//! Responsible for: the panic as an error, without the message that a panic prints. Not responsible for: panics of
//! our own, which are bugs and are printed.
//!
//! The message comes from the process's panic hook. The first call puts one before it that says nothing while the
//! panicking thread is in [`guarded`], and hands everything else on.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

/// The decoder panicked: its input is not what it says it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged;

thread_local! {
    /// How many calls of [`guarded`] the thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

static HOOK: Once = Once::new();

struct Entered;

impl Entered {
    fn new() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Runs `decode`; what it has changed when it panics must not be used any more.
///
/// # Errors
/// It panicked.
pub fn guarded<T>(decode: impl FnOnce() -> T) -> Result<T, Damaged> {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if DEPTH.get() == 0 {
                before(info);
            }
        }));
    });
    let _entered = Entered::new();
    panic::catch_unwind(AssertUnwindSafe(decode)).map_err(|_| Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_within_is_an_error_and_what_comes_after_is_not_touched() {
        assert_eq!(guarded(|| 1), Ok(1));
        assert_eq!(guarded(|| -> u8 { guarded(|| -> u8 { panic!("inner") }).unwrap() }), Err(Damaged));
        assert_eq!(DEPTH.get(), 0);
    }
}
