//! Logs in memory, what was put into them, and a disk that keeps a journal and fails on demand.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_env::{Disk, DiskLock, Env, MemoryDisk, PlacedFile, ReadFile, WriteFile};
use albireo_redo::{
    CONTROL_NAME, Config, Controls, End, Frame, Header, Kind, Log, LogDestination, LogReader, LogStart,
    Reached, ReadError, Record, Ticket, Verdict, repair,
};
use albireo_testing::Random;
use parking_lot::Mutex;

pub const DIRECTORY: &str = "/db/log";
/// Where the copy of the control file is.
pub const COPY: &str = "/db/control";
pub const LOG_ID: u64 = 0x0123_4567_89ab_cdef;

/// A record as it was put in, and as it must come out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub ordinal: u64,
    pub lane: u16,
    pub crossing: bool,
    pub kind: Kind,
    pub time_us: i64,
    pub payload: Vec<u8>,
}

/// Records by frames, with the frames' sequences.
pub type Frames = Vec<(u64, Vec<Entry>)>;

pub fn config(lanes: usize, segment_bytes: u64) -> Config {
    let target = LogDestination::Directory(DIRECTORY.into());
    Config { segment_bytes, control_copies: vec![COPY.into()], ..Config::new(target, lanes) }
}

/// Appends a record with this text to a lane, or as a crossing one.
pub fn put(log: &Log, lane: Option<usize>, text: &[u8]) -> Ticket {
    try_put(log, lane, text).unwrap()
}

pub fn try_put(log: &Log, lane: Option<usize>, text: &[u8]) -> Result<Ticket, albireo_redo::LogError> {
    let header = Header { kind: Kind::WRITE, time_us: 1_000_000 + text.len() as i64 };
    match lane {
        Some(lane) => log.append(lane, header, |out| out.extend_from_slice(text)),
        None => log.append_crossing(header, |out| out.extend_from_slice(text)),
    }
}

/// The runs of a frame are its records in their order, each of one lane or a single crossing record.
fn check_runs(frame: &Frame) {
    let runs = frame.runs(|_| true);
    let flat: Vec<Record<'_>> = runs.iter().flat_map(|run| frame.records_of(run)).collect();
    assert_eq!(flat, frame.records().collect::<Vec<_>>());
    for run in &runs {
        let records: Vec<Record<'_>> = frame.records_of(run).collect();
        assert!(records.iter().all(|record| (record.lane, record.crossing) == (run.lane, run.crossing)));
        assert!(records.len() == 1 || !run.crossing, "a crossing record stands alone");
    }
    let few = frame.runs(|record| record.ordinal < frame.first_ordinal + 2);
    let few: Vec<Record<'_>> = few.iter().flat_map(|run| frame.records_of(run)).collect();
    assert_eq!(few, flat[..flat.len().min(2)]);
}

/// As [`try_put`], of a record that frees something.
pub fn put_freeing(log: &Log, lane: Option<usize>, text: &[u8]) -> Result<Ticket, albireo_redo::LogError> {
    let header = Header { kind: Kind::WRITE, time_us: 1_000_000 };
    log.append_freeing(lane, header, |out| out.extend_from_slice(text))
}

/// Reads as far as it goes: what there is, and how it ended.
pub fn read(disk: &Arc<dyn Disk>, from: u64) -> (Frames, Result<End, ReadError>) {
    let mut frames = Vec::new();
    let mut reader = match LogReader::open(Arc::clone(disk), Path::new(DIRECTORY), from, Some(LOG_ID)) {
        Ok(reader) => reader,
        Err(error) => return (frames, Err(error)),
    };
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => {
                check_runs(&frame);
                let entries: Vec<Entry> = frame
                    .records()
                    .map(|record| Entry {
                        ordinal: record.ordinal,
                        lane: record.lane,
                        crossing: record.crossing,
                        kind: record.kind,
                        time_us: record.time_us,
                        payload: record.payload.to_vec(),
                    })
                    .collect();
                assert_eq!(entries.len(), frame.record_count as usize);
                frames.push((frame.sequence, entries));
            }
            Ok(None) => {
                let (done, total) = reader.progress_bytes();
                assert_eq!(done, total);
                return (frames, Ok(reader.end().expect("it has ended").clone()));
            }
            Err(error) => return (frames, Err(error)),
        }
    }
}

/// What the control files say of a log that can be read to its end.
pub fn judge(disk: &Arc<dyn Disk>) -> Result<Verdict, ReadError> {
    let (_, end) = read(disk, 0);
    let reached = Reached::new(&end?, None, 1);
    Ok(controls(&**disk).judge(&reached))
}

/// Both control files.
pub fn controls(disk: &dyn Disk) -> Controls {
    Controls::read(disk, &[Path::new(DIRECTORY).join(CONTROL_NAME), COPY.into()])
}

/// Reads all, repairs, and goes on.
pub fn reopen(env: &Env, config: Config) -> (Frames, End, Log) {
    let (frames, end) = read(&env.disk, 0);
    let end = end.unwrap();
    repair(&*env.disk, Path::new(DIRECTORY), &end).unwrap();
    let start = LogStart {
        log_id: LOG_ID,
        next_sequence: end.next_sequence,
        next_ordinal: end.next_ordinal,
        next_segment: end.next_segment,
    };
    (frames, end, Log::start(env, config, start).unwrap())
}

/// The texts of all records in order.
pub fn texts(frames: &Frames) -> Vec<String> {
    let entries = frames.iter().flat_map(|(_, entries)| entries);
    entries.map(|entry| String::from_utf8(entry.payload.clone()).unwrap()).collect()
}

/// What was asked of a disk that changes it.
#[derive(Clone, Debug)]
pub enum Operation {
    Create(PathBuf),
    Write(PathBuf, u64, Vec<u8>),
    SetLen(PathBuf, u64),
    Sync(PathBuf),
    Remove(PathBuf),
    /// The log said that frames up to this one are durable.
    Durable(u64),
}

/// A disk in memory that notes what changes it and fails when told to.
#[derive(Clone, Debug, Default)]
pub struct JournalDisk {
    inner: MemoryDisk,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    journal: Vec<Operation>,
    /// Which calls fail from now on, after so many that do not.
    failing: Option<(Call, u64, io::ErrorKind)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    Write,
    Sync,
    Create,
    Allocate,
}

impl JournalDisk {
    pub fn env(&self) -> Env {
        let (env, _) = Env::simulated(1);
        Env { disk: Arc::new(self.clone()), ..env }
    }

    pub fn journal(&self) -> Vec<Operation> {
        self.state.lock().journal.clone()
    }

    pub fn note(&self, operation: Operation) {
        self.state.lock().journal.push(operation);
    }

    pub fn fail(&self, call: Call, after: u64, kind: io::ErrorKind) {
        self.state.lock().failing = Some((call, after, kind));
    }

    pub fn heal(&self) {
        self.state.lock().failing = None;
    }

    fn count(&self, call: Call) -> io::Result<()> {
        match &mut self.state.lock().failing {
            Some((failing, 0, kind)) if *failing == call => Err((*kind).into()),
            Some((failing, left, _)) if *failing == call => {
                *left -= 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The disk after a crash at operation `until`: what was synced is there, of every other write a
    /// random part of its sectors (all of them if `tear` is 0).
    pub fn crashed(&self, until: usize, tear: u64) -> MemoryDisk {
        let journal = &self.state.lock().journal[..until];
        let mut random = Random::new(tear);
        let mut files: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
        for (index, operation) in journal.iter().enumerate() {
            match operation {
                Operation::Create(path) => drop(files.insert(path.clone(), Vec::new())),
                Operation::Remove(path) => drop(files.remove(path)),
                Operation::SetLen(path, bytes) => {
                    files.entry(path.clone()).or_default().resize(*bytes as usize, 0);
                }
                Operation::Write(path, at, data) => {
                    let synced = journal[index..]
                        .iter()
                        .any(|later| matches!(later, Operation::Sync(synced) if synced == path));
                    let file = files.entry(path.clone()).or_default();
                    let end = *at as usize + data.len();
                    file.resize(file.len().max(end), 0);
                    for (sector, piece) in data.chunks(512).enumerate() {
                        if synced || tear == 0 || random.below(2) == 0 {
                            let start = *at as usize + 512 * sector;
                            file[start..start + piece.len()].copy_from_slice(piece);
                        }
                    }
                }
                Operation::Sync(_) | Operation::Durable(_) => {}
            }
        }
        let disk = MemoryDisk::default();
        disk.create_dir_all(Path::new(DIRECTORY)).unwrap();
        files.iter().for_each(|(path, bytes)| disk.put(path, bytes));
        disk
    }
}

impl Disk for JournalDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        self.inner.open(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.count(Call::Create)?;
        self.note(Operation::Create(path.to_owned()));
        self.inner.create(path)
    }

    fn open_placed(&self, path: &Path) -> io::Result<Box<dyn PlacedFile>> {
        let inner = self.inner.open_placed(path)?;
        Ok(Box::new(JournalFile { inner, path: path.to_owned(), disk: self.clone() }))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_directory(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        self.inner.lock(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.note(Operation::Remove(path.to_owned()));
        self.inner.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_dir_all(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir_all(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.read_dir(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.inner.free_bytes(path)
    }
}

#[derive(Debug)]
struct JournalFile {
    inner: Box<dyn PlacedFile>,
    path: PathBuf,
    disk: JournalDisk,
}

impl PlacedFile for JournalFile {
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        if let Err(error) = self.disk.count(Call::Write) {
            // Half of it gets there all the same.
            self.disk.note(Operation::Write(self.path.clone(), offset, data[..data.len() / 2].to_vec()));
            self.inner.write_at(&data[..data.len() / 2], offset)?;
            return Err(error);
        }
        self.disk.note(Operation::Write(self.path.clone(), offset, data.to_vec()));
        self.inner.write_at(data, offset)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.disk.count(Call::Allocate)?;
        self.disk.note(Operation::SetLen(self.path.clone(), bytes));
        self.inner.allocate(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.disk.note(Operation::SetLen(self.path.clone(), bytes));
        self.inner.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.count(Call::Sync)?;
        self.disk.note(Operation::Sync(self.path.clone()));
        self.inner.sync()
    }
}
