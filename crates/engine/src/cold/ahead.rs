//! Threads that read ahead what queries will read of evicted chunks.
//!
//! ```text
//!  said by a query ──► QUEUED ──► READING ──► READY: in a buffer ──► taken by the query
//!                        │           │           │
//!                        └───────────┴───────────┴──► forgotten: whoever needs it reads it
//! ```
//!
//! A query says which chunks come behind those that it looks at. Their columns lie in files of their own, so what is wanted
//! of a file lies together, and is read together, past the system's memory. The system's own reading ahead goes up to 8 MiB
//! deep into one file while the query waits for another, begins anew behind each chunk that is in memory, and does not work
//! while the query computes: Q1 took as long as reading and computing together. Two threads that read half a megabyte at a
//! time into large pages take a tenth of a core and give 2.2 to 2.4 GB/s here, as fast as a file is read from end to end, one
//! that reads half as much at a time 1.5; through the system's memory, it takes two to nine times as much of a core.
//!
//! What the system has in its memory, because it was written or read not long ago, is left to the query to read from there.
//!
//! The threads run at normal priority, because else the disk would wait for queries that compute.
//!
//! I-1 Nothing depends on it: what was forgotten, or could not be read, is read by whoever needs it, who says what is wrong.
//! I-2 Bytes are checked by whoever takes them ([`super::shelf`]'s I-1).
//! I-3 Nobody waits for what is not being read or about to be: what is queued is read in its order, or forgotten.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use albireo_env::DIRECT_BYTES;
use albireo_storage::ReadBuffer;
use parking_lot::{Condvar, Mutex};

use super::shelf::ColdFile;

/// Threads that read.
pub(super) const THREADS: usize = 2;
/// Buffers that hold what was read, of [`ReadBuffer::BYTES`] each: a query says some 24 MB ahead at most.
const MOST_BUFFERS: usize = 12;
/// Bytes between two pieces that are read along: asking the disk twice takes as long.
const GAP_BYTES: u64 = 64 << 10;

/// A file's number, and a place in it.
type Key = (u64, u64);

/// Something that is wanted of a file.
pub(super) struct Wanted {
    pub(super) file: Arc<ColdFile>,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Wanted {
    fn key(&self) -> Key {
        (self.file.number(), self.offset)
    }

    fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

enum Piece {
    Queued(Wanted),
    Reading,
    Ready(Taken),
}

/// Bytes that were read ahead.
pub(super) struct Taken {
    round: Arc<Round>,
    range: Range<usize>,
}

impl Taken {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.round.buffer.as_ref().expect("it goes when the round does").bytes()[self.range.clone()]
    }
}

/// What was read at a time.
struct Round {
    buffer: Option<ReadBuffer>,
    free: Arc<Mutex<Vec<ReadBuffer>>>,
}

impl Drop for Round {
    fn drop(&mut self) {
        self.free.lock().extend(self.buffer.take());
    }
}

/// What is to be read ahead in one database, and what was.
#[derive(Default)]
pub(crate) struct Ahead {
    state: Mutex<State>,
    changed: Condvar,
    free: Arc<Mutex<Vec<ReadBuffer>>>,
}

#[derive(Default)]
struct State {
    pieces: HashMap<Key, Piece>,
    /// Those that were queued, in their order; some may be forgotten.
    queue: VecDeque<Key>,
    /// What was read, in its order, until it is taken.
    rounds: VecDeque<Vec<Key>>,
    /// Whether threads read.
    is_served: bool,
}

impl Ahead {
    /// Somebody will read this.
    pub(super) fn add(&self, wanted: impl Iterator<Item = Wanted>) {
        let mut state = self.state.lock();
        let state = &mut *state;
        if !state.is_served {
            return;
        }
        for wanted in wanted.filter(|wanted| wanted.bytes > 0 && wanted.file.reads_directly()) {
            let key = wanted.key();
            state.pieces.entry(key).or_insert_with(|| {
                state.queue.push_back(key);
                Piece::Queued(wanted)
            });
        }
        self.changed.notify_all();
    }

    /// Somebody reads this now, and waits for nobody.
    pub(super) fn forget(&self, keys: impl Iterator<Item = Key>) {
        let mut state = self.state.lock();
        for key in keys {
            if matches!(state.pieces.get(&key), Some(Piece::Queued(_))) {
                state.pieces.remove(&key);
            }
        }
        self.changed.notify_all();
    }

    /// What was read ahead at a place, once it is; `None`: it is to be read.
    pub(super) fn take(&self, key: Key) -> Option<Taken> {
        let mut state = self.state.lock();
        loop {
            match state.pieces.get(&key)? {
                Piece::Ready(_) => break,
                Piece::Queued(_) | Piece::Reading => self.changed.wait(&mut state),
            }
        }
        match state.pieces.remove(&key)? {
            Piece::Ready(taken) => Some(taken),
            _ => None,
        }
    }

    /// There are threads from now on, or none any more.
    pub(crate) fn set_served(&self, is_served: bool) {
        *self.state.lock() = State { is_served, ..State::default() };
        self.changed.notify_all();
    }

    /// Gives back what nobody has taken so far, and buffers.
    pub(super) fn tidy(&self) {
        self.state.lock().forget_rounds(0);
        self.changed.notify_all();
        self.free.lock().clear();
    }

    /// Reads what is wanted, until nobody is served any more.
    pub(crate) fn serve(&self) {
        while let Some(wanted) = self.next() {
            let keys: Vec<Key> = wanted.iter().map(Wanted::key).collect();
            let Some(mut buffer) = self.buffer() else {
                self.state.lock().forget(&keys);
                self.changed.notify_all();
                continue;
            };
            let mut ready = Vec::new();
            for (stretch, to) in stretches(wanted) {
                if read(&stretch, &mut buffer.bytes_mut()[to.clone()]) {
                    let first = stretch[0].offset / DIRECT_BYTES * DIRECT_BYTES;
                    ready.extend(stretch.iter().map(|wanted| {
                        let at = to.start + (wanted.offset - first) as usize;
                        (wanted.key(), at..at + wanted.bytes as usize)
                    }));
                }
            }
            self.finish(buffer, &keys, ready);
        }
    }

    /// What was read can be taken, what was not is forgotten.
    fn finish(&self, buffer: ReadBuffer, keys: &[Key], ready: Vec<(Key, Range<usize>)>) {
        let round = Arc::new(Round { buffer: Some(buffer), free: Arc::clone(&self.free) });
        let mut state = self.state.lock();
        state.forget(keys);
        if state.is_served {
            state.rounds.push_back(ready.iter().map(|(key, _)| *key).collect());
            for (key, range) in ready {
                state.pieces.insert(key, Piece::Ready(Taken { round: Arc::clone(&round), range }));
            }
            state.forget_rounds(MOST_BUFFERS);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// What is wanted first, as much as a buffer holds, once something is.
    fn next(&self) -> Option<Vec<Wanted>> {
        let (mut state, mut wanted, mut room) = (self.state.lock(), Vec::new(), ReadBuffer::BYTES as u64);
        while state.is_served && state.queue.is_empty() {
            self.changed.wait(&mut state);
        }
        while let Some(key) = state.queue.front().copied() {
            let takes = match state.pieces.get(&key) {
                // Where it begins and ends, it is read up to a whole page.
                Some(Piece::Queued(piece)) => piece.bytes + 2 * DIRECT_BYTES,
                _ => 0,
            };
            if takes > room && !wanted.is_empty() {
                break;
            }
            state.queue.pop_front();
            if takes > room {
                // It fits no buffer.
                state.pieces.remove(&key);
                self.changed.notify_all();
            } else if takes > 0
                && let Some(Piece::Queued(piece)) = state.pieces.insert(key, Piece::Reading)
            {
                room -= takes;
                wanted.push(piece);
            }
        }
        state.is_served.then_some(wanted)
    }

    /// A buffer that nobody uses; what was read longest ago is forgotten for it if need be.
    fn buffer(&self) -> Option<ReadBuffer> {
        if let Some(buffer) = self.free.lock().pop() {
            return Some(buffer);
        }
        self.state.lock().forget_rounds(MOST_BUFFERS - 1);
        self.changed.notify_all();
        let free = self.free.lock().pop();
        free.or_else(ReadBuffer::new)
    }
}

impl State {
    fn forget(&mut self, keys: &[Key]) {
        for key in keys {
            self.pieces.remove(key);
        }
    }

    /// Forgets what was read longest ago, until so many rounds are left at most, and rounds of which all was taken.
    fn forget_rounds(&mut self, left: usize) {
        while let Some(round) = self.rounds.front()
            && (self.rounds.len() > left || round.iter().all(|key| !self.pieces.contains_key(key)))
        {
            let keys = self.rounds.pop_front().unwrap_or_default();
            self.forget(&keys);
        }
    }
}

/// Pieces that lie together, in the order of their places, and where they go in a buffer.
fn stretches(mut wanted: Vec<Wanted>) -> Vec<(Vec<Wanted>, Range<usize>)> {
    let takes = |bytes: u64| bytes + 2 * DIRECT_BYTES;
    let mut room = ReadBuffer::BYTES as u64 - wanted.iter().map(|wanted| takes(wanted.bytes)).sum::<u64>();
    wanted.sort_by_key(Wanted::key);
    let mut all: Vec<Vec<Wanted>> = Vec::new();
    for wanted in wanted {
        if let Some(stretch) = all.last_mut()
            && let Some(last) = stretch.last()
            && last.file.number() == wanted.file.number()
            && let Some(gap) = wanted.offset.checked_sub(last.end())
            && gap <= GAP_BYTES.min(room)
        {
            room -= gap;
            stretch.push(wanted);
        } else {
            all.push(vec![wanted]);
        }
    }
    let mut at = 0;
    let place = |stretch: Vec<Wanted>| {
        let (first, last) = (stretch.first()?.offset, stretch.last()?.end());
        let bytes = last.next_multiple_of(DIRECT_BYTES) - first / DIRECT_BYTES * DIRECT_BYTES;
        at += bytes as usize;
        Some((stretch, at - bytes as usize..at))
    };
    all.into_iter().filter_map(place).collect()
}

/// Reads a stretch; `false` where it cannot be, or the system has it in its memory.
fn read(stretch: &[Wanted], into: &mut [u8]) -> bool {
    let (first, last) = (&stretch[0], &stretch[stretch.len() - 1]);
    let from = first.offset / DIRECT_BYTES * DIRECT_BYTES;
    first.file.read_directly(into, from, last.end())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use albireo_env::{Disk, MemoryDisk};

    use super::*;

    fn wanted(file: &Arc<ColdFile>, offset: u64, bytes: u64) -> Wanted {
        Wanted { file: Arc::clone(file), offset, bytes }
    }

    fn file(disk: &Arc<dyn Disk>, number: u64) -> Arc<ColdFile> {
        let path = Path::new("/").join(number.to_string());
        disk.create(&path).unwrap();
        Arc::new(ColdFile::for_tests(disk, number, &path))
    }

    #[test]
    fn what_lies_together_is_read_together_into_whole_pages() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
        let [one, two] = [1, 2].map(|number| file(&disk, number));
        let far = 20_000 + GAP_BYTES;
        let pieces = [(&two, 5_000, 100), (&one, 0, 9_000), (&one, far, 50), (&one, 10_000, 10_000)];
        let all = stretches(pieces.map(|(file, offset, bytes)| wanted(file, offset, bytes)).into());
        let places: Vec<(Vec<Key>, Range<usize>)> =
            all.iter().map(|(pieces, to)| (pieces.iter().map(Wanted::key).collect(), to.clone())).collect();
        let end = far.next_multiple_of(DIRECT_BYTES) as usize;
        let expected = [(vec![(1, 0), (1, 10_000), (1, far)], 0..end), (vec![(2, 5_000)], end..end + 4_096)];
        assert_eq!(places, expected);
        let beyond = far + 1;
        let apart = stretches(vec![wanted(&one, 10_000, 10_000), wanted(&one, beyond, 50)]);
        assert_eq!(apart.len(), 2, "{beyond} lies too far behind");
    }

    #[test]
    fn pieces_that_fill_a_buffer_fit_into_it() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
        let file = file(&disk, 1);
        let piece = ReadBuffer::BYTES as u64 / 8 - 2 * DIRECT_BYTES;
        // Gaps between them would not fit any more.
        let pieces = (0..8).map(|at| wanted(&file, at * (piece + GAP_BYTES) + 1, piece)).collect();
        let all = stretches(pieces);
        assert_eq!(all.iter().map(|(pieces, _)| pieces.len()).sum::<usize>(), 8);
        assert!(all.iter().all(|(_, to)| to.end <= ReadBuffer::BYTES));
        assert!(all.windows(2).all(|pair| pair[0].1.end == pair[1].1.start));
    }

    #[test]
    fn nobody_waits_for_what_is_not_read() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
        let (file, ahead) = (file(&disk, 1), Ahead::default());
        ahead.add([wanted(&file, 0, 10)].into_iter());
        assert!(ahead.take((1, 0)).is_none(), "there is no thread");
        ahead.set_served(true);
        ahead.add([wanted(&file, 0, 10)].into_iter());
        assert!(ahead.take((1, 0)).is_none(), "the file cannot be read so");
        ahead.state.lock().pieces.insert((1, 0), Piece::Queued(wanted(&file, 0, 10)));
        ahead.forget([(1, 0)].into_iter());
        assert!(ahead.take((1, 0)).is_none(), "it was forgotten");
        ahead.state.lock().pieces.insert((1, 0), Piece::Reading);
        ahead.set_served(false);
        assert!(ahead.take((1, 0)).is_none(), "the thread has ended");
    }
}
