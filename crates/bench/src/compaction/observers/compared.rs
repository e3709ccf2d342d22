//! The ways to observe what transactions access, on the same accesses: 100,000 random ones to 10 million entries, as in the
//! paper's §5.3, and as many to entries that lie in the processor's cache, as most that transactions access.
//!
//! In each interval entries are read, or updated, and whoever observes says afterwards where. What that costs is of
//! three parts: making ready, what the accesses take longer, and collecting what was seen. Pages are small, of 4 KiB, and
//! each chunk of 16,384 entries is an area of its own to the system. A database has huge pages: of these all that the system
//! tells here it tells by 2 MiB, which are parts of 16 chunks and more.
//!
//! Paper: §4.1 has three ways: each thread records what it accesses, pages are protected, and what the processor marks in
//! page tables, which is read by a module of the kernel that the paper made for it. What a kernel tells without is here.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use albireo::{SqlError, SqlState};
use albireo_base::Tid;
use albireo_base::ids::CHUNK_ROWS;
use albireo_env::Clock;
use albireo_storage::observe::{ObservedMemory, PAGE_BYTES, SampledReads};
use rustix::io::Errno;

use super::super::Bench;
use super::super::counts::RowCounts;
use super::super::report::{ComparedObservers, ObserverWay};
use super::marks::{self, Idle};
use crate::tpcc::random::Random;

/// Entries, and accesses to them in an interval.
const ENTRIES: RowCounts = RowCounts { few: 400_000, usual: 10_000_000, paper: 10_000_000 };
const ACCESSES: RowCounts = RowCounts { few: 4_000, usual: 100_000, paper: 100_000 };
/// The first entries, which lie in the cache together.
const NEAR: usize = 2_048;
const ENTRIES_A_PAGE: usize = PAGE_BYTES / size_of::<u64>();

/// The paper's figure of marks in page tables.
const MARKED: &str = "4 ms, by a module of the kernel";

/// Who observes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    None,
    Sampled,
    Counted,
    Protected,
    Written,
    SoftDirty,
    Idle,
    Referenced,
}

impl Way {
    const ALL: [Self; 8] = [
        Self::None,
        Self::Sampled,
        Self::Counted,
        Self::Protected,
        Self::Written,
        Self::SoftDirty,
        Self::Idle,
        Self::Referenced,
    ];

    /// What is known of it before it is measured.
    fn described(self) -> ObserverWay {
        let (name, tells_of, needs, paper) = match self {
            Self::None => ("none", "", "", "4 ms for updates"),
            Self::Sampled => ("counted, 1 row of 64 (default)", "chunks", "", ""),
            Self::Counted => ("counted, every row", "chunks", "", "dismissed unmeasured"),
            Self::Protected => ("protected pages, SIGSEGV", "pages", "", "94 ms for updates"),
            Self::Written => ("PAGEMAP_SCAN, writes alone", "pages", "", ""),
            Self::SoftDirty => ("soft-dirty bits, writes alone", "pages", "", ""),
            Self::Idle => ("idle page tracking", "pages", "CAP_SYS_ADMIN", MARKED),
            Self::Referenced => ("clear_refs and smaps", "areas", "", MARKED),
        };
        let is_default = self == Self::Sampled;
        ObserverWay { name, tells_of, needs, paper, is_default, ..ObserverWay::default() }
    }

    /// What a kernel must have for it.
    fn feature(self) -> &'static str {
        match self {
            Self::Written => "PAGEMAP_SCAN and userfaultfd, Linux 6.7",
            Self::SoftDirty => "CONFIG_MEM_SOFT_DIRTY",
            Self::Idle => "CONFIG_IDLE_PAGE_TRACKING",
            _ => "Linux",
        }
    }

    /// Why it does not work.
    fn reason(self, error: &io::Error) -> String {
        const ABSENT: [Errno; 6] =
            [Errno::NOENT, Errno::NOSYS, Errno::NOTTY, Errno::INVAL, Errno::NODEV, Errno::OPNOTSUPP];
        match (error.kind(), Errno::from_io_error(error)) {
            (io::ErrorKind::PermissionDenied, _) => format!("not permitted: {error}"),
            (_, Some(errno)) if ABSENT.contains(&errno) => {
                format!("not in this kernel, it needs {}: {error}", self.feature())
            }
            _ => error.to_string(),
        }
    }
}

/// What an interval took, in milliseconds, and in how many places accesses were seen.
struct Interval {
    begin_ms: f64,
    accesses_ms: f64,
    collect_ms: f64,
    seen: usize,
}

/// What is accessed.
struct Observed<'a> {
    clock: &'a Clock,
    memory: ObservedMemory,
    /// Of chunks, as tables have them.
    sampled: SampledReads,
    /// Of chunks, each access.
    counted: Vec<AtomicU64>,
}

impl Bench<'_> {
    /// All ways in turns, of which each begins with another.
    pub(in crate::compaction) fn compared(&self) -> Result<ComparedObservers, SqlError> {
        let [entries, accesses] = [ENTRIES, ACCESSES].map(|counts| self.count(counts));
        let no_memory = |error: io::Error| SqlError::new(SqlState::INSUFFICIENT_RESOURCES, error.to_string());
        let chunks = entries.div_ceil(CHUNK_ROWS);
        let observed = Observed {
            clock: &self.env.clock,
            memory: ObservedMemory::new(entries, CHUNK_ROWS).map_err(no_memory)?,
            sampled: SampledReads::new(chunks),
            counted: (0..chunks).map(|_| AtomicU64::new(0)).collect(),
        };
        let mut random = Random::stream(self.config.workload.seed, &[17]);
        let mut ways = Way::ALL.map(Way::described);
        for turn in 0..self.config.turns {
            if self.cancel.is_cancelled() {
                break;
            }
            let chosen: Vec<usize> = (0..accesses).map(|_| random.below(entries as u64) as usize).collect();
            for at in 0..ways.len() {
                let at = (at + turn) % ways.len();
                observed.turn(Way::ALL[at], &chosen, &mut ways[at]);
            }
        }
        Ok(ComparedObservers { entries: entries as u64, accesses: accesses as u64, ways: ways.into() })
    }
}

impl Observed<'_> {
    /// One turn of one way: intervals of reads, of updates, and of reads of what is near. What does not work here is not tried
    /// again.
    fn turn(&self, way: Way, chosen: &[usize], found: &mut ObserverWay) {
        if found.refused.is_some() {
            return;
        }
        let places = places(chosen, if found.tells_of == "pages" { ENTRIES_A_PAGE } else { CHUNK_ROWS });
        let near: Vec<usize> = chosen.iter().map(|entry| entry % NEAR).collect();
        let intervals = self.interval(way, chosen, false).and_then(|reads| {
            let updates = self.interval(way, chosen, true)?;
            Ok((reads, updates, self.interval(way, &near, false)?))
        });
        match intervals {
            Err(error) => found.refused = Some(way.reason(&error)),
            Ok((reads, updates, _)) if reads.seen + updates.seen == 0 && way != Way::None => {
                found.refused = Some(format!("it saw nothing here; it needs {}", way.feature()));
            }
            Ok((reads, updates, near)) => {
                let percent = |seen: usize| seen as f64 / places as f64 * 100.0;
                found.reads_ms.push(reads.accesses_ms);
                found.updates_ms.push(updates.accesses_ms);
                found.near_ms.push(near.accesses_ms);
                found.begin_ms.push(f64::midpoint(reads.begin_ms, updates.begin_ms));
                found.collect_ms.push(f64::midpoint(reads.collect_ms, updates.collect_ms));
                found.reads_seen_percent.push(percent(reads.seen));
                found.updates_seen_percent.push(percent(updates.seen));
            }
        }
    }

    fn interval(&self, way: Way, chosen: &[usize], is_update: bool) -> io::Result<Interval> {
        // All begin with the same in the caches.
        self.access(chosen, false, |_| {});
        let addresses = self.memory.address()..self.memory.address() + self.memory.bytes();
        let unnoted = || self.access(chosen, is_update, |_| {});
        match way {
            Way::None => self.between(|| Ok(()), unnoted, |()| Ok(0)),
            Way::Sampled => {
                let count = |chunk| self.sampled.of(chunk);
                let note = |entry| self.sampled.note(Tid(entry as u64));
                self.counting(count, || self.access(chosen, is_update, note))
            }
            Way::Counted => {
                let count = |chunk: usize| self.counted[chunk].load(Ordering::Relaxed);
                let note = |entry: usize| {
                    let count = &self.counted[entry / CHUNK_ROWS];
                    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                };
                self.counting(count, || self.access(chosen, is_update, note))
            }
            Way::Protected => {
                self.between(|| self.memory.protect(), unnoted, |protection| protection.seen_pages())
            }
            Way::Written => {
                // It is made ready once: collecting makes ready for the next interval.
                let (tracking, pagemap) = (self.memory.track_writes()?, marks::pagemap()?);
                self.between(|| Ok(()), unnoted, |()| tracking.written_pages(pagemap.as_fd()))
            }
            Way::SoftDirty => {
                self.between(|| marks::clear("4"), unnoted, |()| marks::soft_dirty_pages(&addresses))
            }
            Way::Idle => self.between(|| Idle::set(&addresses), unnoted, Idle::accessed),
            Way::Referenced => {
                self.between(|| marks::clear("1"), unnoted, |()| marks::referenced_areas(&addresses))
            }
        }
    }

    /// An interval of one who counts: what was counted before is known.
    fn counting(&self, count: impl Fn(usize) -> u64, accesses: impl FnOnce()) -> io::Result<Interval> {
        let counts = || (0..self.counted.len()).map(&count);
        let grown =
            |before: &Vec<u64>| Ok(counts().zip(before).filter(|(now, before)| now > *before).count());
        self.between(|| Ok(counts().collect()), accesses, grown)
    }

    fn between<T>(
        &self,
        begin: impl FnOnce() -> io::Result<T>,
        accesses: impl FnOnce(),
        collect: impl FnOnce(&T) -> io::Result<usize>,
    ) -> io::Result<Interval> {
        let mut since = self.clock.now();
        let mut passed_ms = || {
            let now = self.clock.now();
            (now - std::mem::replace(&mut since, now)) as f64 / 1e6
        };
        let begun = begin()?;
        let begin_ms = passed_ms();
        accesses();
        let accesses_ms = passed_ms();
        let seen = collect(&begun)?;
        Ok(Interval { begin_ms, accesses_ms, collect_ms: passed_ms(), seen })
    }

    /// Reads entries, or gives them the values that they have.
    fn access(&self, chosen: &[usize], is_update: bool, note: impl Fn(usize)) {
        for &entry in chosen {
            note(entry);
            match is_update {
                true => self.memory.write(entry, entry as u64),
                false => assert_eq!(self.memory.read(entry), entry as u64, "an entry keeps its value"),
            }
        }
    }
}

/// Places of so many entries that have one of the chosen.
fn places(chosen: &[usize], entries: usize) -> usize {
    let mut places: Vec<usize> = chosen.iter().map(|entry| entry / entries).collect();
    places.sort_unstable();
    places.dedup();
    places.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_tell_what_is_not_permitted_from_what_is_not_there() {
        let of = |errno: Errno| Way::Idle.reason(&io::Error::from(errno));
        for (errno, reason) in [
            (Errno::PERM, "not permitted: "),
            (Errno::ACCESS, "not permitted: "),
            (Errno::NOENT, "not in this kernel, it needs CONFIG_IDLE_PAGE_TRACKING: "),
        ] {
            assert!(of(errno).starts_with(reason), "{}", of(errno));
        }
        assert!(!of(Errno::NOMEM).starts_with("not "), "{}", of(Errno::NOMEM));
    }

    #[test]
    fn places_are_counted_once() {
        assert_eq!(places(&[0, 511, 512, 3, 1024], 512), 3);
    }
}
