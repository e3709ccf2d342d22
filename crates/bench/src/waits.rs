//! How long the longest of what a thread does takes, less what was not its own doing.
//!
//! A maximum over seconds is the machine's more than the program's: where there are more threads than cores, a thread waits
//! for the others' turns, of some milliseconds, and the host of a virtual machine stops its cores now and then. What threads
//! of other processes and of the kernel take is told apart from what our own do: it is as long as the thread waited for a
//! core, less all that our other threads ran meanwhile, on whichever core.

use albireo_env::{Clock, CoreWaits, Turns};

/// Durations after which a thread asks again how long it has waited.
const ASKED_EVERY: u32 = 256;

/// The longest of some durations, in nanoseconds.
#[derive(Clone, Copy, Default, Debug)]
pub struct Longest {
    /// Less the time in which the thread waited for a core, because other threads had them.
    pub on_core_ns: u64,
    /// Less what the host took without the thread leaving its core, and what other processes took.
    pub less_others_ns: u64,
}

/// What this thread did not run since this was asked before, although it was ready to.
pub struct Waits<'c> {
    clock: &'c Clock,
    waits: Option<CoreWaits>,
    so_far: Turns,
    at_ns: u64,
    on_core_ns: u64,
    process_ns: u64,
    asked_ago: u32,
}

/// In nanoseconds.
#[derive(Clone, Copy)]
pub struct Waited {
    /// For a core, because other threads had them.
    pub for_core_ns: u64,
    /// The same, because threads of other processes had them: that much at least.
    pub for_others_ns: u64,
    /// Without leaving its core: the host had it do something else. Known if it never left it since it was asked before.
    pub for_host_ns: u64,
}

impl<'c> Waits<'c> {
    /// Of the thread that calls this, from now on.
    pub fn new(clock: &'c Clock) -> Self {
        let waits = CoreWaits::of_this_thread();
        let (so_far, at_ns) = (Turns::default(), clock.now());
        let mut waits = Self { clock, waits, so_far, at_ns, on_core_ns: 0, process_ns: 0, asked_ago: 0 };
        waits.since();
        waits
    }

    /// Since this was asked before.
    pub fn since(&mut self) -> Waited {
        self.asked_ago = 0;
        let now = self.waits.as_ref().and_then(CoreWaits::so_far).unwrap_or_default();
        let (at_ns, on_core_ns) = (self.clock.now(), albireo_env::cpu_time_ns());
        let process_ns = albireo_env::process_cpu_time_ns();
        let before = std::mem::replace(&mut self.so_far, now);
        let took_ns = at_ns - std::mem::replace(&mut self.at_ns, at_ns);
        let ran_ns = on_core_ns - std::mem::replace(&mut self.on_core_ns, on_core_ns);
        let all_ran_ns = process_ns.saturating_sub(std::mem::replace(&mut self.process_ns, process_ns));
        let for_core_ns = now.waited_ns.saturating_sub(before.waited_ns);
        let has_stayed = self.waits.is_some() && before.count == now.count;
        Waited {
            for_core_ns,
            for_others_ns: for_core_ns.saturating_sub(all_ran_ns.saturating_sub(ran_ns)),
            for_host_ns: if has_stayed { took_ns.saturating_sub(ran_ns) } else { 0 },
        }
    }

    /// What the thread has just done took so long; `longest` is of what counts. All that it does is to be told, so that what is
    /// taken off was taken in the last few.
    #[inline]
    pub fn record(&mut self, took_ns: u64, longest: Option<&mut Longest>) {
        self.asked_ago += 1;
        let least_ns = longest.as_ref().map_or(0, |longest| longest.on_core_ns.min(longest.less_others_ns));
        if took_ns <= least_ns && self.asked_ago < ASKED_EVERY {
            return;
        }
        let waited = self.since();
        if let Some(longest) = longest {
            longest.on_core_ns = longest.on_core_ns.max(took_ns.saturating_sub(waited.for_core_ns));
            let others_ns = waited.for_host_ns + waited.for_others_ns;
            longest.less_others_ns = longest.less_others_ns.max(took_ns.saturating_sub(others_ns));
        }
    }
}
