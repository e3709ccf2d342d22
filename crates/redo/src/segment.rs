//! Segments: the files of a log, their names, how they are made, listed and removed.
//!
//! A segment is called `NNNNNNNNNNNNNNNNNNNN.log` (20 digits, its number). It is made, filled with zeros
//! and synced, with its directory, before its header is written, and the header is synced before the first
//! frame. So a crash while it is made leaves one without a header and without frames, which can only be
//! the last.
//!
//! A segment made ahead is filled with zeros, because overwriting what has been written needs no change of
//! the file's extents: on ext4 over a virtual disk, a write of 4 KiB and fdatasync took 230 us (median)
//! into zeros, 350-560 us into room that was only allocated, and 520-620 us at the end of a growing file;
//! of 64 KiB, 230-270, 400-560 and 540-590 us; of 512 bytes, 246-278, 241-253 and 296-356 us. Filling
//! 64 MiB took 50-80 ms of a helper's time. But it takes the disk's bandwidth: one thread appending as
//! fast as it could had 0.5-0.9 million records of 100 bytes a second on disk with it, and 1.3-2.1 million
//! without. Hence it is done only while little is written, piece by piece with rests, and ends when the segment
//! is needed; only for the first one a log waits.
//!
//! Under TPC-C with 13-20 MB of log a second, a sync took 94 us in the median where the segment was filled and
//! 115-140 us where it was not, and ext4 spent 12 % of a core on extents. Filled 4 MiB at a time, the segment to
//! come kept commits waiting for milliseconds: p99 was 9 writes with a sync, and 3 with small pieces and rests. A
//! load is too quick for filling; with 16 MiB a segment, the log is back in filled ones a second or two later.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use albireo_env::{Disk, PlacedFile};
use parking_lot::{Condvar, Mutex};

use crate::error::{Attempt, Failure};
use crate::format::{COUNT_LIMIT, SEGMENT_HEADER_BYTES, SegmentHead, SegmentHeader};

const SUFFIX: &str = ".log";
const DIGITS: usize = 20;

/// Zeros written between two syncs when everybody waits for the segment.
const QUICK_BYTES: usize = 4 << 20;

/// The same while commits need the disk: much at once would keep them waiting.
const GENTLE_BYTES: usize = 256 << 10;

/// How long the helper rests between them while nobody waits for the segment, which makes 64 MiB a second: twice
/// as much as the log may grow by for segments to be filled at all.
const REST: Duration = Duration::from_millis(4);

/// The path of a segment.
pub(crate) fn path_of(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:0DIGITS$}{SUFFIX}"))
}

/// The number that a path of a segment says; `None` for other files.
pub fn segment_number(path: &Path) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
    let all_digits = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|&number| all_digits && number < COUNT_LIMIT)
}

/// A segment that is there.
#[derive(Clone, Debug)]
pub(crate) struct SegmentFile {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) head: SegmentHead,
}

impl SegmentFile {
    pub(crate) fn header(&self) -> Option<&SegmentHeader> {
        match &self.head {
            SegmentHead::Valid(header) => Some(header),
            SegmentHead::Format(_) | SegmentHead::Blank | SegmentHead::Broken => None,
        }
    }
}

/// The segments in a directory by their numbers; none if it is not there.
pub(crate) fn list(disk: &dyn Disk, directory: &Path) -> Result<Vec<SegmentFile>, Failure> {
    let paths = match disk.read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        paths => paths.attempting("list the log's directory", directory)?,
    };
    let mut found = Vec::new();
    for path in paths {
        let Some(number) = segment_number(&path) else { continue };
        let (bytes, head) = read_head(disk, &path)?;
        found.push(SegmentFile { number, path, bytes, head });
    }
    found.sort_by_key(|segment| segment.number);
    debug_assert!(found.is_sorted_by(|a, b| a.number < b.number), "a number names one segment");
    Ok(found)
}

fn read_head(disk: &dyn Disk, path: &Path) -> Result<(u64, SegmentHead), Failure> {
    let file = disk.open(path).attempting("open", path)?;
    let bytes = file.len().attempting("ask for the length of", path)?;
    let mut head = vec![0; SEGMENT_HEADER_BYTES];
    let read = read_full(&*file, &mut head).attempting("read", path)?;
    Ok((bytes, SegmentHeader::decode(&head[..read])))
}

/// Reads from the beginning until the buffer is full or the file ends; returns the bytes read.
pub(crate) fn read_full(file: &dyn albireo_env::ReadFile, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], read as u64) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// What the header of a segment says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentInfo {
    /// Its number.
    pub number: u64,
    /// Its first frame.
    pub first_sequence: u64,
    /// The first record in it.
    pub first_ordinal: u64,
    /// When it was begun, in microseconds since 1970.
    pub created_us: i64,
}

/// The oldest segment of a log that has a header.
///
/// # Errors
/// The operating system's.
pub fn oldest_segment(disk: &dyn Disk, directory: &Path) -> Result<Option<SegmentInfo>, Failure> {
    let info = |found: &SegmentFile| {
        let SegmentHeader { number, first_sequence, first_ordinal, created_us, .. } = *found.header()?;
        Some(SegmentInfo { number, first_sequence, first_ordinal, created_us })
    };
    Ok(list(disk, directory)?.iter().find_map(info))
}

/// All bytes of a segment.
pub(crate) fn read(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, Failure> {
    let file = disk.open(path).attempting("open", path)?;
    let bytes = file.len().attempting("ask for the length of", path)?;
    let mut data = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
    let read = read_full(&*file, &mut data).attempting("read", path)?;
    data.truncate(read);
    Ok(data)
}

/// Removes the segments all of whose frames are older than `sequence`, the oldest first; returns how many.
/// `newest`, whose header is durable, stays, and what is behind it: that header says how far the log has come.
///
/// # Errors
/// The operating system's; some may be gone then.
pub(crate) fn remove_before(
    disk: &dyn Disk,
    directory: &Path,
    sequence: u64,
    newest: u64,
) -> Result<usize, Failure> {
    let segments = list(disk, directory)?;
    // A segment's frames end where those of the next one begin.
    let may_be_first = |segment: &SegmentFile| {
        let header = segment.header().filter(|_| segment.number <= newest);
        header.is_some_and(|header| header.first_sequence <= sequence)
    };
    let keep = segments.iter().rposition(may_be_first).unwrap_or(0);
    for segment in &segments[..keep] {
        assert!(segment.number < newest, "the newest segment with a durable header stays");
        disk.remove_file(&segment.path).attempting("remove", &segment.path)?;
    }
    if keep > 0 {
        disk.sync_directory(directory).attempting("sync the directory", directory)?;
    }
    Ok(keep)
}

/// Makes segments.
#[derive(Clone, Debug)]
pub(crate) struct Maker {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) directory: PathBuf,
    pub(crate) bytes: u64,
}

/// How a segment is filled with zeros.
pub(crate) struct Fill<'a> {
    /// It ends.
    hurry: &'a AtomicBool,
    /// Bytes between two syncs.
    piece: usize,
    /// What is done as soon as there is room for it.
    found_room: &'a dyn Fn(),
    /// What is done between two pieces.
    rest: &'a dyn Fn(),
}

/// A segment open for writing.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) file: Box<dyn PlacedFile>,
    pub(crate) path: PathBuf,
    pub(crate) number: u64,
    /// Bytes it has room for.
    pub(crate) bytes: u64,
}

impl Maker {
    /// Makes a segment of zeros, and its name durable; one that is there without a header is emptied.
    /// Filling it with zeros ends when somebody is in a hurry; between two pieces of it comes a `rest`.
    pub(crate) fn make(&self, number: u64, fill: &Fill<'_>) -> Result<Segment, Failure> {
        let path = path_of(&self.directory, number);
        let made = self.try_make(&path, number, fill);
        if made.is_err() {
            // Gives room back that ran out. If this fails too, what is left has no header and is
            // emptied by the next attempt.
            let _ = self.disk.remove_file(&path);
        }
        made
    }

    fn try_make(&self, path: &Path, number: u64, fill: &Fill<'_>) -> Result<Segment, Failure> {
        drop(self.disk.create(path).attempting("create", path)?);
        let hurries = fill.hurry.load(Ordering::Relaxed);
        assert!(hurries || fill.piece > 0, "filling with zeros gets on");
        let file = self.disk.open_placed(path).attempting("open", path)?;
        file.allocate(self.bytes).attempting("find room for", path)?;
        (fill.found_room)();
        let zeros = vec![0; fill.piece.min(self.bytes as usize)];
        let mut at = 0;
        while at < self.bytes && !fill.hurry.load(Ordering::Relaxed) {
            let piece = zeros.len().min((self.bytes - at) as usize);
            file.write_at(&zeros[..piece], at).attempting("fill", path)?;
            file.sync().attempting("sync", path)?;
            at += piece as u64;
            (fill.rest)();
        }
        assert!(at <= self.bytes, "zeros end with the segment");
        file.sync().attempting("sync", path)?;
        self.disk.sync_directory(&self.directory).attempting("sync the directory", &self.directory)?;
        Ok(Segment { file, path: path.to_owned(), number, bytes: self.bytes })
    }
}

/// The next segment, made ahead of need.
///
/// ```text
/// Nothing --want--> Wanted --helper--> Working --made--> Ready --take--> Nothing
///    ^                 |  ^               |  |
///    |                 |  '---retry--- Lacking <--no room
///    '-----take--------'------failed------'       take waits while Working; stop ends all
/// ```
///
/// The helper may be late. So whoever has half of a segment left waits until it is known whether there is room for the
/// next ([`Preparer::ask_for_room`]): what is left is for what frees room, if there is none.
///
/// `lack` says why, as long as the segment that was wanted last is not there for want of room.
#[derive(Debug)]
pub(crate) struct Preparer {
    maker: Maker,
    state: Mutex<Preparation>,
    changed: Condvar,
    /// Whether what is being made is needed now, or need not be filled.
    hurry: AtomicBool,
    lack: Mutex<Option<Arc<Failure>>>,
    /// The first segment, which is waited for until it is filled: the log will use it for long, and it is
    /// needed at once.
    first: u64,
}

#[derive(Debug)]
enum Preparation {
    Nothing,
    Wanted {
        number: u64,
        fill: bool,
    },
    Working {
        number: u64,
        /// Whether there is room for it: it is being filled.
        has_room: bool,
    },
    /// There was no room for it.
    Lacking {
        number: u64,
    },
    Ready(Segment),
    Stopped,
}

impl Preparation {
    /// The segment that it is about.
    fn number(&self) -> Option<u64> {
        match self {
            Self::Nothing | Self::Stopped => None,
            Self::Wanted { number, .. } | Self::Working { number, .. } | Self::Lacking { number } => {
                Some(*number)
            }
            Self::Ready(segment) => Some(segment.number),
        }
    }
}

impl Preparer {
    pub(crate) fn new(maker: Maker, number: u64, fill: bool) -> Self {
        let state = Mutex::new(Preparation::Wanted { number, fill });
        let (changed, hurry, lack) = (Condvar::new(), AtomicBool::new(false), Mutex::default());
        Self { maker, state, changed, hurry, lack, first: number }
    }

    /// Asks for a segment; only when the one before has its header, so that only the last has none.
    pub(crate) fn want(&self, number: u64, fill: bool) {
        let mut state = self.state.lock();
        let is_due = matches!(*state, Preparation::Nothing | Preparation::Stopped);
        assert!(is_due, "one segment is made ahead at a time");
        if let Preparation::Nothing = *state {
            *state = Preparation::Wanted { number, fill };
            self.changed.notify_all();
        }
    }

    /// Why there is no segment behind the one in use, if that is for want of room.
    pub(crate) fn lack(&self) -> Option<Arc<Failure>> {
        self.lack.lock().clone()
    }

    /// Finds out whether there is room for the segment that is wanted: looks itself, or waits for the helper who does.
    pub(crate) fn ask_for_room(&self) {
        let mut state = self.state.lock();
        loop {
            match &mut *state {
                Preparation::Wanted { fill, .. } => {
                    // The helper had its time.
                    *fill = false;
                    drop(state);
                    self.step();
                    state = self.state.lock();
                }
                Preparation::Working { has_room: false, .. } => self.changed.wait(&mut state),
                _ => return,
            }
        }
    }

    /// Has a segment for which there was no room tried again.
    pub(crate) fn retry(&self) {
        let mut state = self.state.lock();
        if let Preparation::Lacking { number } = *state {
            // Whoever has little room has none to spare for what makes syncs cheaper.
            *state = Preparation::Wanted { number, fill: false };
            self.changed.notify_all();
        }
    }

    /// Makes the segment that is wanted, if one is; returns whether it is ready now.
    pub(crate) fn step(&self) -> bool {
        self.step_with(&|| {})
    }

    fn step_with(&self, rest: &dyn Fn()) -> bool {
        let number = {
            let mut state = self.state.lock();
            let Preparation::Wanted { number, fill } = *state else { return false };
            self.hurry.store(!fill, Ordering::Relaxed);
            *state = Preparation::Working { number, has_room: false };
            number
        };
        let piece = if number == self.first { QUICK_BYTES } else { GENTLE_BYTES };
        let found_room = || {
            *self.state.lock() = Preparation::Working { number, has_room: true };
            self.changed.notify_all();
        };
        let fill = Fill { hurry: &self.hurry, piece, found_room: &found_room, rest };
        // Whoever needs the segment tries again where this fails, and sees why.
        let (next, lack) = match self.maker.make(number, &fill) {
            Ok(segment) => (Preparation::Ready(segment), None),
            Err(failure) if failure.is_full() => (Preparation::Lacking { number }, Some(Arc::new(failure))),
            Err(_) => (Preparation::Nothing, None),
        };
        let ready = matches!(next, Preparation::Ready(_));
        *self.lack.lock() = lack;
        let before = std::mem::replace(&mut *self.state.lock(), next);
        let was_mine = matches!(before, Preparation::Working { number: made, .. } if made == number);
        assert!(was_mine, "whoever wants a segment waits while it is made");
        self.changed.notify_all();
        ready
    }

    /// Body of the helper's thread: steps until stopped; looks for room again after `retry`.
    pub(crate) fn run(&self, retry: Duration) {
        loop {
            self.step_with(&|| self.rest());
            let mut state = self.state.lock();
            loop {
                match *state {
                    Preparation::Wanted { .. } => break,
                    Preparation::Stopped => return,
                    Preparation::Lacking { number } => {
                        if self.changed.wait_for(&mut state, retry).timed_out()
                            && matches!(*state, Preparation::Lacking { .. })
                        {
                            *state = Preparation::Wanted { number, fill: false };
                        }
                    }
                    Preparation::Nothing | Preparation::Working { .. } | Preparation::Ready(_) => {
                        self.changed.wait(&mut state);
                    }
                }
            }
        }
    }

    /// Lets commits have the disk for a while, unless somebody waits for the segment.
    fn rest(&self) {
        let mut state = self.state.lock();
        let is_first = matches!(*state, Preparation::Working { number, .. } if number == self.first);
        if !is_first && !self.hurry.load(Ordering::Relaxed) {
            self.changed.wait_for(&mut state, REST);
        }
    }

    /// The segment with this number: the one made ahead, or one made now.
    pub(crate) fn take(&self, number: u64) -> Result<Segment, Failure> {
        match self.swap(Preparation::Nothing, number != self.first) {
            Preparation::Ready(segment) => {
                assert_eq!(segment.number, number, "the next segment was prepared");
                Ok(segment)
            }
            other => {
                assert!(other.number().is_none_or(|due| due == number), "the next segment was wanted");
                let hurry = AtomicBool::new(true);
                let fill = Fill { hurry: &hurry, piece: 0, found_room: &|| {}, rest: &|| {} };
                let segment = self.maker.make(number, &fill)?;
                *self.lack.lock() = None;
                Ok(segment)
            }
        }
    }

    /// Ends the helper, and removes what was made ahead.
    pub(crate) fn stop(&self) -> Result<(), Failure> {
        let Preparation::Ready(segment) = self.swap(Preparation::Stopped, true) else { return Ok(()) };
        self.maker.disk.remove_file(&segment.path).attempting("remove", &segment.path)
    }

    fn swap(&self, next: Preparation, hurry: bool) -> Preparation {
        let mut state = self.state.lock();
        if hurry {
            self.hurry.store(true, Ordering::Relaxed);
            self.changed.notify_all();
        }
        while matches!(*state, Preparation::Working { .. }) {
            self.changed.wait(&mut state);
        }
        let before = std::mem::replace(&mut *state, next);
        self.changed.notify_all();
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use albireo_env::MemoryDisk;

    fn header(number: u64, first_sequence: u64) -> Vec<u8> {
        let (log_id, first_ordinal, created_us, lanes) = (1, 1, 0, 1);
        SegmentHeader { log_id, number, first_sequence, first_ordinal, created_us, lanes }.encode()
    }

    fn numbers(disk: &MemoryDisk) -> Vec<u64> {
        list(disk, Path::new("/log")).unwrap().iter().map(|segment| segment.number).collect()
    }

    #[test]
    fn only_names_of_20_digits_are_segments() {
        let path = path_of(Path::new("/log"), 7);
        assert_eq!(path, Path::new("/log/00000000000000000007.log"));
        assert_eq!(segment_number(&path), Some(7));
        for other in
            ["7.log", "00000000000000000007.lo", "+0000000000000000007.log", "99999999999999999999.log"]
        {
            assert_eq!(segment_number(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn segments_of_old_frames_go_and_the_newest_with_a_header_stays() {
        let disk = MemoryDisk::default();
        for (number, first) in [(1, 1), (2, 10), (3, 20)] {
            disk.put(path_of(Path::new("/log"), number), &header(number, first));
        }
        disk.put(path_of(Path::new("/log"), 4), &[0; 9000]);
        disk.put("/log/notes.txt", b"mine");
        let remove_before =
            |sequence, newest| remove_before(&disk, Path::new("/log"), sequence, newest).unwrap();
        assert_eq!(remove_before(9, 3), 0);
        assert_eq!(remove_before(10, 1), 0, "nobody knows whether the second has a header on the disk");
        assert_eq!(remove_before(10, 3), 1);
        assert_eq!(numbers(&disk), [2, 3, 4]);
        assert_eq!(remove_before(1_000, 2), 0);
        assert_eq!(remove_before(1_000, 3), 1);
        assert_eq!(numbers(&disk), [3, 4]);
        assert!(disk.get("/log/notes.txt").is_some());
    }

    #[test]
    fn segment_without_room_is_lacking_until_it_is_tried_again() {
        let disk = MemoryDisk::with_capacity(8192 + 4096);
        disk.create_dir_all(Path::new("/log")).unwrap();
        let maker = Maker { disk: Arc::new(disk.clone()), directory: "/log".into(), bytes: 8192 };
        let preparer = Preparer::new(maker, 1, false);
        assert!(preparer.step() && preparer.lack().is_none());
        preparer.take(1).unwrap();
        preparer.want(2, true);
        assert!(!preparer.step());
        assert!(preparer.lack().is_some_and(|failure| failure.is_full()));
        assert!(!preparer.step(), "not before somebody wants it again");
        disk.remove_file(&path_of(Path::new("/log"), 1)).unwrap();
        preparer.retry();
        assert!(preparer.lack().is_some(), "as long as it is not there");
        assert!(preparer.step() && preparer.lack().is_none());
        assert_eq!(preparer.take(2).unwrap().number, 2);
    }

    #[test]
    fn segment_made_ahead_is_taken_and_removed_when_nobody_takes_it() {
        let disk = MemoryDisk::default();
        disk.create_dir_all(Path::new("/log")).unwrap();
        let maker = Maker { disk: Arc::new(disk.clone()), directory: "/log".into(), bytes: 8192 };
        let preparer = Preparer::new(maker, 5, true);
        assert!(preparer.step());
        assert!(!preparer.step());
        assert_eq!(preparer.take(5).unwrap().number, 5);
        assert_eq!(preparer.take(6).unwrap().number, 6, "made now, as none was wanted");
        preparer.want(7, false);
        assert!(preparer.step());
        assert_eq!(numbers(&disk), [5, 6, 7]);
        preparer.stop().unwrap();
        assert_eq!(numbers(&disk), [5, 6]);
        preparer.run(Duration::ZERO);
    }
}
