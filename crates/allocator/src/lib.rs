//! The allocator of Albireo's programs: mimalloc, whose free memory one thread gives back to the system.
//!
//! Queries allocate and free batches on several threads at once, which is what mimalloc is good at. What is freed, it
//! keeps for a while; whichever thread comes to it then gives all of that back to the system, 0.1 to 0.2 ms for each
//! megabyte. That may be one that owns a partition, and 120 MB that a MERGE of 7.5 million rows had freed kept others
//! waiting for 13 to 22 ms. So a thread of its own comes first, every five seconds. When it came twice a second, two of
//! five queries that followed each other met no memory of the one before: the top-10 query of evicted rows took 3 % longer.
//!
//! Responsible for: the programs' allocator. Not responsible for: whoever embeds the library, who has one already.

use std::io;
use std::time::Duration;

use albireo_env::{Clock, lower_priority, spawn};
use libmimalloc_sys::{mi_option_set_default, mi_option_t, mi_option_use_numa_nodes};

/// The allocator, for `#[global_allocator]`.
pub type Allocator = mimalloc::MiMalloc;

/// How often free memory is given back.
const EVERY: Duration = Duration::from_secs(5);
/// For how long mimalloc keeps it, so that the thread comes first.
const KEPT: Duration = Duration::from_secs(10);
/// The option that says so, in milliseconds: it comes before this one, and has no name in Rust.
const PURGE_DELAY: mi_option_t = mi_option_use_numa_nodes - 1;

/// Starts the thread that gives free memory back, for as long as the program runs.
///
/// # Errors
/// The system refuses a thread: then the threads that allocate do it among them.
pub fn give_back_aside() -> io::Result<()> {
    let clock = Clock::real();
    let give_back_for_ever = move || {
        // At its normal priority it does the same, only sooner.
        let _ = lower_priority();
        loop {
            clock.sleep(EVERY);
            give_back();
        }
    };
    spawn("free-memory", give_back_for_ever)?;
    keep();
    Ok(())
}

/// Has mimalloc keep what is free, unless the environment says for how long (`MIMALLOC_PURGE_DELAY`).
fn keep() {
    // SAFETY: options may be set at any time, and this one may have any value.
    unsafe { mi_option_set_default(PURGE_DELAY, KEPT.as_millis() as _) }
}

/// Gives all memory back that is free, whoever has freed it.
pub fn give_back() {
    // SAFETY: `mi_collect` may be called by any thread at any time; it frees nothing that is allocated.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Allocator = mimalloc::MiMalloc;

    #[test]
    fn option_is_the_one_that_says_how_long_memory_is_kept() {
        // SAFETY: options may be read at any time.
        let kept = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(kept(), 1_000, "mimalloc's default");
        keep();
        assert_eq!(kept(), 10_000);
    }

    /// What the process has in memory, in kilobytes.
    #[expect(clippy::disallowed_methods, reason = "the test looks at its own process")]
    fn resident_kb() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim_end_matches("kB").trim().parse().unwrap()
    }

    #[test]
    fn memory_that_another_thread_freed_goes_back_to_the_system() {
        const BYTES: usize = 64 << 20;
        let pieces = spawn("frees", || {
            let pieces: Vec<Vec<u8>> = (0..BYTES >> 16).map(|_| vec![1; 1 << 16]).collect();
            std::hint::black_box(&pieces);
            resident_kb()
        });
        let before = pieces.unwrap().join().unwrap();
        give_back();
        let after = resident_kb();
        assert!(after + BYTES / 2048 < before, "{before} kB, then {after}");
    }
}
