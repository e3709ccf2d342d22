//! The machine that the database runs on, and the processes that live and die on it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use albireo_env::{
    Clock, CrashDisk, Disk, DiskLock, Env, Latency, MemoryDisk, PlacedFile, ReadFile, Seeds, SimulatedClock,
    WriteFile,
};

/// Where the database is kept.
pub const DIRECTORY: &str = "/srv/albireo/data";

/// A clock and a disk.
#[derive(Debug)]
pub struct Machine {
    /// The disk.
    pub disk: CrashDisk,
    /// Whether it has been given an end; whoever waits for room takes it back.
    room: Room,
    clock: Clock,
    hand: SimulatedClock,
    seeds: Seeds,
}

impl Machine {
    /// With an empty disk.
    pub fn new(seed: u64) -> Self {
        let disk = CrashDisk::new(seed);
        let (clock, hand) = Clock::simulated();
        let latency = Latency { write: Duration::from_micros(20), sync: Duration::from_micros(200) };
        disk.set_latency(hand.clone(), latency);
        disk.put("/srv/README", b"not ours");
        let room = Room { disk: disk.clone(), is_short: Arc::default() };
        Self { disk, room, clock, hand, seeds: Seeds::simulated(seed ^ 0x5eed) }
    }

    /// The room on the disk.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// A process begins: the world as it sees it, and the hand that ends it.
    pub fn start_process(&self) -> (Env, Process) {
        let process = Process { dead: Arc::default() };
        let disk = ProcessDisk { disk: self.disk.clone(), process: process.clone() };
        let env = Env { clock: self.clock.clone(), disk: Arc::new(disk), seeds: self.seeds.clone() };
        (env, process)
    }

    /// Lets time pass.
    pub fn wait(&self, time: Duration) {
        self.hand.advance(time);
    }

    /// Nanoseconds since the machine was made.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The files as they are now, on a disk of their own: looking at them is nothing that happens.
    pub fn image(&self) -> Env {
        let image = MemoryDisk::default();
        for (path, bytes) in self.disk.files() {
            image.put(path, &bytes);
        }
        Env { clock: self.clock.clone(), disk: Arc::new(image), seeds: Seeds::simulated(0) }
    }
}

/// How much the disk takes; clones are the same.
#[derive(Clone, Debug)]
pub struct Room {
    disk: CrashDisk,
    is_short: Arc<AtomicBool>,
}

impl Room {
    /// Whether there is an end to it.
    pub fn is_short(&self) -> bool {
        self.is_short.load(Ordering::SeqCst)
    }

    /// Leaves so many bytes.
    pub fn leave(&self, bytes: u64) {
        let used: u64 = self.disk.files().values().map(|file| file.len() as u64).sum();
        self.disk.set_capacity_bytes(used + bytes);
        self.is_short.store(true, Ordering::SeqCst);
    }

    /// Gives all of it back; returns whether there was an end to it.
    pub fn heal(&self) -> bool {
        self.disk.set_capacity_bytes(u64::MAX);
        self.is_short.swap(false, Ordering::SeqCst)
    }
}

/// A process; clones are the same.
#[derive(Clone, Debug)]
pub struct Process {
    dead: Arc<AtomicBool>,
}

impl Process {
    /// Whatever it still asks of the disk, for one while its memory is given back, is refused.
    pub fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
    }

    /// Whether it has died.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }
}

/// The disk as a process sees it, until it dies. Files that it opened are ended by the disk itself.
#[derive(Debug)]
struct ProcessDisk {
    disk: CrashDisk,
    process: Process,
}

impl ProcessDisk {
    fn alive(&self) -> io::Result<&CrashDisk> {
        match self.process.dead.load(Ordering::SeqCst) {
            false => Ok(&self.disk),
            true => Err(io::Error::other("the process is dead")),
        }
    }
}

impl Disk for ProcessDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        self.alive()?.open(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.alive()?.create(path)
    }

    fn open_placed(&self, path: &Path) -> io::Result<Box<dyn PlacedFile>> {
        self.alive()?.open_placed(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.alive()?.sync_directory(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        self.alive()?.lock(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.alive()?.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.alive()?.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.alive()?.remove_dir_all(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.alive()?.create_dir_all(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.alive()?.read_dir(path)
    }

    fn open_direct(&self, path: &Path) -> Option<Box<dyn ReadFile>> {
        self.alive().ok()?.open_direct(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.alive()?.free_bytes(path)
    }
}
