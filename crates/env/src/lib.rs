//! The only door to clock, disk, threads and randomness, in a real and a simulated form.
//!
//! Responsible for: reading clocks, asking how much memory there is and which core is interrupted, naming, starting
//! and moving threads, opening files, handing out seeds.
//! Not responsible for: what is written into files, schedules of executors (`partition`), the
//! network (nobody uses it yet), signals (`cli`).
//!
//! I-1 Nothing outside this crate calls the standard library for these things; `clippy.toml` lists
//! the calls and the lint is denied in the workspace. I-2 Everything reached through [`Env`] can be
//! replaced by a simulated form that depends on nothing but its seed and the calls made to it.
//! Threads are always real: deterministic tests step state machines instead of starting threads.
//!
//! Units: `_ns` and [`Clock::now`] are nanoseconds, `_us` microseconds, `_bytes` bytes.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "this crate is where these calls belong")]

pub mod clock;
pub mod disk;
pub mod interrupts;
pub mod memory;
pub mod random;
pub mod scratch;
pub mod thread;

use std::sync::Arc;

pub use clock::{Clock, SimulatedClock};
pub use disk::{
    CrashDisk, DIRECT_BYTES, Disk, DiskLock, Faults, FaultyDisk, Latency, MemoryDisk, PlacedFile, ReadFaults,
    ReadFile, RealDisk, SECTOR_BYTES, WriteFile,
};
pub use interrupts::Interrupts;
pub use memory::{available_memory_bytes, memory_bytes};
pub use random::Seeds;
pub use scratch::Scratch;
pub use thread::{
    CoreWaits, JoinHandle, KeptCore, Turns, cores, cpu_time_ns, current_core, give_way, leave_core,
    lower_priority, process_cpu_time_ns, scope, spawn, spawn_detached, spawn_scoped,
};

/// Everything a database may touch outside its own memory. Cheap to clone; clones share state.
#[derive(Clone, Debug)]
pub struct Env {
    /// Monotonic and wall-clock time.
    pub clock: Clock,
    /// Files.
    pub disk: Arc<dyn Disk>,
    /// Seeds for random generators.
    pub seeds: Seeds,
}

impl Env {
    /// The machine we run on.
    pub fn real() -> Self {
        Self { clock: Clock::real(), disk: Arc::new(RealDisk), seeds: Seeds::real() }
    }

    /// A world in memory: time stands still until advanced, the disk is empty, and every seed
    /// follows from `seed`.
    pub fn simulated(seed: u64) -> (Self, SimulatedClock) {
        let (clock, hand) = Clock::simulated();
        let env = Self { clock, disk: Arc::new(MemoryDisk::default()), seeds: Seeds::simulated(seed) };
        (env, hand)
    }
}
