//! Three ways to observe which pages of a column are read and written, as in §5.3 of Funke, Kemper and Neumann, *Compacting
//! Transactional Data in Hybrid OLTP & OLAP Databases*, VLDB 2012: 100,000 random accesses to 10 million entries.
//!
//! ```text
//! cargo run --release -p albireo-storage --example observer_bench
//! ```
//!
//! - counted: one of 64 rows is counted, for its 16,384 rows, as this crate does (`rows/reads.rs`).
//! - protected: pages are protected, and a handler of the signal notes each and lets the access through.
//! - marked: the processor marks pages; `/proc/self/clear_refs` clears the marks. Which pages are marked the system says to
//!   the privileged alone; of its areas of memory it says how much is.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use albireo_env::Clock;

const ENTRIES: usize = 10_000_000;
const ACCESSES: usize = 100_000;
const TURNS: usize = 9;
const PAGE_BYTES: usize = 4096;
const BYTES: usize = (ENTRIES * 8).next_multiple_of(PAGE_BYTES);

/// Where the entries lie; what the handler of the signal needs to know.
static START: AtomicUsize = AtomicUsize::new(0);
/// Pages that it has seen.
static SEEN: [AtomicBool; BYTES / PAGE_BYTES] = [const { AtomicBool::new(false) }; BYTES / PAGE_BYTES];

/// An access to a page that is protected.
extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `info` to a handler that is installed with SA_SIGINFO.
    let address = unsafe { (*info).si_addr() } as usize;
    let start = START.load(Ordering::Relaxed);
    if !(start..start + BYTES).contains(&address) {
        // Somebody else's fault: the access is done again, and ends the process.
        // SAFETY: both are async-signal-safe.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    let page = (address - start) / PAGE_BYTES;
    SEEN[page].store(true, Ordering::Relaxed);
    let page_start = (start + page * PAGE_BYTES) as *mut libc::c_void;
    // SAFETY: a page of the mapping, which lives as long as the process; the call is async-signal-safe where it matters
    // here, on Linux.
    unsafe { libc::mprotect(page_start, PAGE_BYTES, libc::PROT_READ | libc::PROT_WRITE) };
}

/// Ten million entries in pages of their own.
struct Entries(*mut u64);

impl Entries {
    fn new() -> Self {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, which touches no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, flags, -1, 0) };
        assert!(start != libc::MAP_FAILED, "there is memory");
        START.store(start as usize, Ordering::Relaxed);
        let entries = Self(start.cast());
        (0..ENTRIES).for_each(|entry| entries.write(entry, entry as u64));
        entries
    }

    fn read(&self, entry: usize) -> u64 {
        assert!(entry < ENTRIES, "an entry of the mapping");
        // SAFETY: in bounds, checked; a volatile access is not moved across the measurement.
        unsafe { self.0.add(entry).read_volatile() }
    }

    fn write(&self, entry: usize, value: u64) {
        assert!(entry < ENTRIES, "an entry of the mapping");
        // SAFETY: in bounds, checked; one thread uses the mapping.
        unsafe { self.0.add(entry).write_volatile(value) }
    }

    /// No access to the mapping passes without the handler.
    fn protect(&self) {
        SEEN.iter().for_each(|seen| seen.store(false, Ordering::Relaxed));
        // SAFETY: the mapping itself.
        let done = unsafe { libc::mprotect(self.0.cast(), BYTES, libc::PROT_NONE) };
        assert_eq!(done, 0, "the mapping is protected");
    }
}

fn install_handler() {
    // SAFETY: all zeroes are a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_fault as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the handler has the signature of SA_SIGINFO, and calls nothing that is not async-signal-safe.
    let done = unsafe { libc::sigaction(libc::SIGSEGV, &raw const action, std::ptr::null_mut()) };
    assert_eq!(done, 0, "the handler is installed");
}

/// Clears the processor's marks of all pages of the process.
fn clear_marks() {
    // SAFETY: a file of the kernel is opened by its name, which ends in a zero, written from one byte, and closed.
    let written = unsafe {
        let file = libc::open(c"/proc/self/clear_refs".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        let written = libc::write(file, c"1".as_ptr().cast(), 1);
        libc::close(file);
        written
    };
    assert_eq!(written, 1, "one may clear one's own marks");
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// How accesses are observed.
#[derive(Clone, Copy, PartialEq)]
enum Observer {
    None,
    Counted,
    Protected,
    Marked,
}

/// Milliseconds of each turn.
#[derive(Default)]
struct Times {
    reads: Vec<f64>,
    updates: Vec<f64>,
    /// Of getting ready to observe once more.
    prepare: Vec<f64>,
}

/// Entries, and counts of those that are counted.
struct Bench {
    clock: Clock,
    entries: Entries,
    counts: Vec<AtomicU64>,
}

impl Bench {
    fn count(&self, entry: usize) {
        if entry.is_multiple_of(64) {
            let of_chunk = &self.counts[entry >> 14];
            of_chunk.store(of_chunk.load(Ordering::Relaxed) + 64, Ordering::Relaxed);
        }
    }

    fn timed(&self, work: impl FnOnce()) -> f64 {
        let start = self.clock.now();
        work();
        (self.clock.now() - start) as f64 / 1e6
    }

    fn prepare(&self, observer: Observer) {
        match observer {
            Observer::None | Observer::Counted => {}
            Observer::Protected => self.entries.protect(),
            Observer::Marked => clear_marks(),
        }
    }

    /// One turn: the same entries are read, and then updated.
    fn turn(&self, observer: Observer, chosen: &[usize], times: &mut Times) {
        for is_update in [false, true] {
            // All begin with the same in the caches.
            chosen.iter().for_each(|entry| assert_eq!(self.entries.read(*entry), *entry as u64));
            times.prepare.push(self.timed(|| self.prepare(observer)));
            let took = self.timed(|| {
                for &entry in chosen {
                    if observer == Observer::Counted {
                        self.count(entry);
                    }
                    match is_update {
                        true => self.entries.write(entry, entry as u64),
                        false => assert_eq!(self.entries.read(entry), entry as u64),
                    }
                }
            });
            if is_update { times.updates.push(took) } else { times.reads.push(took) }
        }
    }
}

fn main() {
    let counts = (0..=ENTRIES >> 14).map(|_| AtomicU64::new(0)).collect();
    let bench = Bench { clock: Clock::real(), entries: Entries::new(), counts };
    install_handler();
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % ENTRIES as u64) as usize
    };
    let observers = [Observer::None, Observer::Counted, Observer::Protected, Observer::Marked];
    let mut times = observers.map(|_| Times::default());
    for _ in 0..TURNS {
        let chosen: Vec<usize> = (0..ACCESSES).map(|_| random()).collect();
        for (observer, times) in observers.into_iter().zip(&mut times) {
            bench.turn(observer, &chosen, times);
        }
    }
    println!("{ACCESSES} random accesses to {ENTRIES} entries, ms; medians of {TURNS} turns\n");
    println!("{:<12} {:>10} {:>10} {:>22}", "observer", "reads", "updates", "to observe once more");
    for (name, Times { reads, updates, prepare }) in
        ["none", "counted", "protected", "marked"].iter().zip(times)
    {
        let [reads, updates, prepare] = [reads, updates, prepare].map(median);
        println!("{name:<12} {reads:>10.2} {updates:>10.2} {prepare:>22.3}");
    }
    let seen = SEEN.iter().filter(|seen| seen.load(Ordering::Relaxed)).count();
    println!("\n{seen} of {} pages were seen by their protection", SEEN.len());
}
