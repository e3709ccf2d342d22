//! Threads: always named, always real.

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
pub use std::thread::{JoinHandle, Scope, ScopedJoinHandle};

use rustix::thread::CpuSet;

/// How much nicer background threads are than executors: with it a busy executor keeps about
/// nine tenths of a core it must share.
const BACKGROUND_NICENESS: i32 = 10;

/// How long a thread keeps its core before it gives way.
const TURN_NS: u64 = 1_000_000;

/// Starts a thread. `name` shows up in debuggers and `top -H`, cut to 15 bytes.
///
/// # Errors
/// The operating system refuses another thread.
pub fn spawn<F, T>(name: &str, f: F) -> io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    std::thread::Builder::new().name(name.to_owned()).spawn(f)
}

/// Starts a thread that nobody waits for. It begins when that is known to the system's library: glibc reads the control block
/// of a thread once more after it was marked so, and a thread that ends at that moment has unmapped it with its stack.
///
/// # Errors
/// As of [`spawn`].
pub fn spawn_detached<F>(name: &str, f: F) -> io::Result<()>
where
    F: FnOnce() + Send + 'static,
{
    let (begin, may_begin) = std::sync::mpsc::sync_channel(1);
    let thread = spawn(name, move || {
        // Whoever says so does it at once.
        let _ = may_begin.recv();
        f();
    })?;
    drop(thread);
    let _ = begin.send(());
    Ok(())
}

/// Runs `f` with a scope whose threads have ended when this returns; start them with
/// [`spawn_scoped`].
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    std::thread::scope(f)
}

/// Starts a thread that may borrow from outside `scope`.
///
/// # Errors
/// The operating system refuses another thread.
pub fn spawn_scoped<'scope, F, T>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    f: F,
) -> io::Result<ScopedJoinHandle<'scope, T>>
where
    F: FnOnce() -> T + Send + 'scope,
    T: Send + 'scope,
{
    std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, f)
}

/// Cores this process may use, at least 1.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Makes the calling thread (and the threads it starts from now on) give way to threads of
/// normal priority. Never raises a priority, so it may be called twice.
///
/// # Errors
/// The operating system refuses; the thread goes on at the priority it had.
pub fn lower_priority() -> io::Result<()> {
    // On Linux niceness belongs to the thread, and a thread id is accepted for a process id.
    let this = Some(rustix::thread::gettid());
    let now = rustix::process::getpriority_process(this)?;
    rustix::process::setpriority_process(this, now.max(BACKGROUND_NICENESS))?;
    Ok(())
}

thread_local! {
    /// When the thread has given way last.
    static GAVE_WAY_NS: Cell<u64> = const { Cell::new(0) };
    /// How many [`KeptCore`] it has.
    static KEPT: Cell<u32> = const { Cell::new(0) };
}

/// Lets another thread that is ready have the calling thread's core, if it has kept it for a millisecond or longer
/// since the last time. Who works for long calls this now and then: where threads outnumber cores, the system may
/// wait for its own next tick, four milliseconds or more, before it takes a core from one of them.
///
/// Costs some 25 ns if nothing happens, and below a microsecond if nobody else wants the core. Does nothing while the
/// thread has a [`KeptCore`].
pub fn give_way() {
    if KeptCore::is_held() {
        return;
    }
    let now = clock_ns(rustix::time::ClockId::Monotonic);
    if now.saturating_sub(GAVE_WAY_NS.get()) >= TURN_NS {
        std::thread::yield_now();
        GAVE_WAY_NS.set(clock_ns(rustix::time::ClockId::Monotonic));
    }
}

/// As long as this lives, its thread does not give way: it has what others wait for. Costs a nanosecond.
#[derive(Debug)]
#[must_use]
pub struct KeptCore(PhantomData<*const ()>);

impl KeptCore {
    /// For the calling thread.
    #[inline]
    #[expect(clippy::new_without_default, reason = "it does something to the thread")]
    pub fn new() -> Self {
        KEPT.set(KEPT.get() + 1);
        Self(PhantomData)
    }

    /// Whether the calling thread has one.
    #[inline]
    pub fn is_held() -> bool {
        KEPT.get() > 0
    }
}

impl Drop for KeptCore {
    #[inline]
    fn drop(&mut self) {
        KEPT.set(KEPT.get() - 1);
    }
}

fn clock_ns(clock: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What the system knows of the calling thread's turns on cores.
#[derive(Debug)]
pub struct CoreWaits(std::fs::File);

/// Since a thread began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Turns {
    /// How long it was ready to run, and waited for a core; in nanoseconds.
    pub waited_ns: u64,
    /// How often it came to a core. Between two answers with the same number it did not leave its core.
    pub count: u64,
}

impl CoreWaits {
    /// Of the calling thread; `None` where the system does not say.
    pub fn of_this_thread() -> Option<Self> {
        let waits = Self(std::fs::File::open("/proc/thread-self/schedstat").ok()?);
        waits.so_far()?;
        Some(waits)
    }

    /// So far. Takes about a microsecond.
    pub fn so_far(&self) -> Option<Turns> {
        let mut text = [0; 96];
        let length = std::os::unix::fs::FileExt::read_at(&self.0, &mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        // The first, the time on cores, lags behind by a tick: see `cpu_time_ns`.
        let mut numbers = text.split_ascii_whitespace().skip(1).map(|number| number.parse().ok());
        Some(Turns { waited_ns: numbers.next()??, count: numbers.next()?? })
    }
}

/// The core that the calling thread runs on, as the system numbers them.
pub fn current_core() -> usize {
    rustix::thread::sched_getcpu()
}

/// Has the calling thread go on on another core, if it may run on one; returns whether it did. What it may
/// run on stays as it was: the system may move it back when it sees a reason.
///
/// # Errors
/// The operating system refuses.
pub fn leave_core(core: usize) -> io::Result<bool> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let mut others = allowed;
    if core >= CpuSet::MAX_CPU {
        return Ok(false);
    }
    others.unset(core);
    if others.count() == 0 {
        return Ok(false);
    }
    rustix::thread::sched_setaffinity(None, &others)?;
    rustix::thread::sched_setaffinity(None, &allowed)?;
    Ok(true)
}

/// Processor time that the calling thread has used, in nanoseconds: what a measurement divides by
/// when the machine has other work. The time in which the host of a virtual machine gave its core to others is not
/// in it, if the kernel is told of it.
pub fn cpu_time_ns() -> u64 {
    clock_ns(rustix::time::ClockId::ThreadCPUTime)
}

/// The same of all threads of this process together. What threads have used that are on cores lags behind by up to a tick.
pub fn process_cpu_time_ns() -> u64 {
    clock_ns(rustix::time::ClockId::ProcessCPUTime)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn niceness() -> i32 {
        rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap()
    }

    #[test]
    fn lower_priority_in_one_thread_leaves_the_others_alone() {
        let before = niceness();
        let lowered = spawn("lowered", || {
            lower_priority().unwrap();
            lower_priority().unwrap();
            niceness()
        });
        assert_eq!(lowered.unwrap().join().unwrap(), before.max(BACKGROUND_NICENESS));
        assert_eq!(niceness(), before);
    }

    #[test]
    fn spawned_thread_carries_its_name() {
        let name = || std::thread::current().name().map(str::to_owned);
        assert_eq!(spawn("worker", name).unwrap().join().unwrap().as_deref(), Some("worker"));
        let borrowed = [1, 2, 3];
        let sum =
            scope(|s| spawn_scoped(s, "scoped", || borrowed.iter().sum::<i32>()).unwrap().join().unwrap());
        assert_eq!(sum, 6);
    }

    #[test]
    fn cpu_time_of_a_thread_grows_with_its_work_and_not_with_its_sleep() {
        let start = cpu_time_ns();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let slept = cpu_time_ns() - start;
        let mut work = 0u64;
        while cpu_time_ns() - start < slept + 10_000_000 {
            work = std::hint::black_box(work + 1);
        }
        assert!(slept < 40_000_000, "{slept}");
    }

    #[test]
    fn cpu_time_of_a_process_is_that_of_all_its_threads() {
        let start = process_cpu_time_ns();
        let works = || {
            let start = cpu_time_ns();
            while cpu_time_ns() - start < 10_000_000 {
                std::hint::spin_loop();
            }
        };
        spawn("works", works).unwrap().join().unwrap();
        assert!(process_cpu_time_ns() - start >= 10_000_000);
    }

    #[test]
    fn thread_that_leaves_a_core_may_still_run_on_all() {
        let allowed = || rustix::thread::sched_getaffinity(None).unwrap();
        let before = allowed();
        let is_left = (0..20).any(|_| {
            let core = current_core();
            let moved = leave_core(core).unwrap();
            assert_eq!(moved, before.count() > 1);
            !moved || current_core() != core
        });
        assert!(is_left, "20 times the system moved the thread back at once");
        assert_eq!(allowed(), before);
        assert!(!leave_core(usize::MAX).unwrap());
    }

    #[test]
    fn thread_of_one_core_stays_on_it() {
        let thread = spawn("pinned", || {
            let (mut one, core) = (CpuSet::new(), current_core());
            one.set(core);
            rustix::thread::sched_setaffinity(None, &one).unwrap();
            assert!(!leave_core(core).unwrap());
            assert_eq!(current_core(), core);
        });
        thread.unwrap().join().unwrap();
    }

    #[test]
    fn thread_with_what_others_wait_for_does_not_give_way() {
        let gave_way = || {
            GAVE_WAY_NS.set(0);
            give_way();
            GAVE_WAY_NS.get() > 0
        };
        assert!(gave_way());
        let (one, two) = (KeptCore::new(), KeptCore::new());
        assert!(!gave_way());
        drop(one);
        assert!(!gave_way());
        assert!(spawn("another", gave_way).unwrap().join().unwrap());
        drop(two);
        assert!(gave_way());
    }

    #[test]
    fn detached_threads_that_end_at_once_do_their_work() {
        let (done, all_done) = std::sync::mpsc::channel();
        for number in 0..100 {
            let done = done.clone();
            spawn_detached("short", move || done.send(number).unwrap()).unwrap();
        }
        drop(done);
        let mut numbers: Vec<_> = all_done.iter().collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn cores_is_at_least_one() {
        assert!(cores() >= 1);
    }
}
