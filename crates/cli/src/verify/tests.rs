//! Hundreds of kinds of damage: what `verify` says, held against what opening or restoring does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo::{
    BackupOptions, CheckpointOptions, CheckpointSchedule, Config, Database, Durability, RecoveryTarget,
    RestoreOptions,
};
use albireo_env::{Disk, Env, MemoryDisk};
use clap::Parser;

use crate::args::{Cli, Command};

const HOME: &str = "/db";
const TAR: &str = "/copies/backup.tar";
const BACKUP: &str = "/copies/backup";

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A database or a backup whose files are to be damaged.
struct Fixture {
    name: &'static str,
    /// What is looked at.
    path: &'static str,
    files: Files,
    /// The rows that were acknowledged.
    rows: Vec<String>,
    /// Whether it was closed cleanly, so that nothing may be unknown.
    is_closed: bool,
}

/// What opening or restoring comes to.
#[derive(Debug, PartialEq)]
enum Outcome {
    Refused(String),
    /// All rows are there.
    Whole,
    /// Rows are missing, and something was said, or not.
    Lost {
        told: bool,
    },
}

fn config() -> Config {
    Config {
        log_segment_bytes: 8 << 10,
        query_threads: 1,
        data_limit_bytes: 16 << 20,
        checkpoint: CheckpointSchedule::never(),
        durability: Durability::Async,
        ..Config::default()
    }
}

fn env_of(disk: &MemoryDisk) -> Env {
    Env { disk: Arc::new(disk.clone()), ..Env::simulated(7).0 }
}

/// A database whose log makes a frame of each statement.
struct Stepped {
    db: Database,
}

impl Stepped {
    fn open(disk: &MemoryDisk) -> Self {
        let db = Database::open_stepped(HOME, config(), env_of(disk)).unwrap();
        db.log().unwrap().instead_of_waiting(|log| {
            log.step();
        });
        Self { db }
    }

    fn run(&self, sql: &str) {
        self.db.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let log = self.db.log().unwrap();
        let sealed = log.seal().sequence;
        while log.durable() < sealed {
            log.step();
        }
    }

    fn insert(&self, ids: std::ops::Range<u32>) {
        ids.for_each(|id| self.run(&format!("INSERT INTO t VALUES ({id}, repeat('x', 300))")));
    }

    fn checkpoint(&self) {
        self.db.checkpoint_with(&CheckpointOptions::default(), |_| {}).unwrap();
    }
}

/// Rows of all tables; none if there is no table.
fn rows(db: &Database) -> Vec<String> {
    let mut tables: Vec<String> = db.catalog().tables().map(|table| table.name.clone()).collect();
    tables.sort();
    let rows = |table: &String| {
        let found = db.query(&format!("SELECT id FROM {table} ORDER BY id"), &[]).unwrap().rows();
        found.into_iter().map(|row| format!("{table} {row:?}")).collect::<Vec<_>>()
    };
    tables.iter().flat_map(rows).collect()
}

fn walk(disk: &MemoryDisk, path: &Path, files: &mut Files) {
    for path in disk.read_dir(path).unwrap_or_default() {
        match disk.get(&path) {
            Some(bytes) => drop(files.insert(path, bytes)),
            None => walk(disk, &path, files),
        }
    }
}

fn files_of(disk: &MemoryDisk, root: &str) -> Files {
    let mut files = Files::new();
    walk(disk, Path::new(root), &mut files);
    files
}

fn disk_of(files: &Files) -> MemoryDisk {
    let disk = MemoryDisk::default();
    files.iter().for_each(|(path, bytes)| disk.put(path, bytes));
    disk
}

const TABLE: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)";

/// All kinds of databases and backups.
fn fixtures() -> Vec<Fixture> {
    let mut made = Vec::new();
    let mut add = |name, path, disk: &MemoryDisk, rows: &[String], is_closed| {
        let root = if path == HOME { HOME } else { "/copies" };
        made.push(Fixture { name, path, files: files_of(disk, root), rows: rows.to_vec(), is_closed });
    };
    let disk = MemoryDisk::default();
    let open = Stepped::open(&disk);
    open.run(TABLE);
    open.insert(0..12);
    assert!(open.db.log().unwrap().mark());
    open.insert(12..17);
    let all = rows(&open.db);
    add("crashed", HOME, &disk, &all, false);
    drop(open);
    add("closed", HOME, &disk, &all, true);
    let open = Stepped::open(&disk);
    for round in 0..3 {
        open.checkpoint();
        open.insert(17 + round * 6..23 + round * 6);
    }
    let all = rows(&open.db);
    drop(open);
    add("archived", HOME, &disk, &all, true);
    let env = env_of(&disk);
    // Behind the oldest archive that is kept.
    let target = RecoveryTarget::Record(33);
    Database::recover_copy(HOME, "/new", target, config(), &env, &mut |_| {}).unwrap();
    let copy = MemoryDisk::default();
    for (path, bytes) in files_of(&disk, "/new") {
        copy.put(Path::new(HOME).join(path.strip_prefix("/new").unwrap()), &bytes);
    }
    let open = |disk: &MemoryDisk| rows(&Stepped::open(disk).db);
    let found = open(&disk_of(&files_of(&copy, HOME)));
    add("copied", HOME, &copy, &found, true);
    let open = Stepped::open(&copy);
    open.insert(100..104);
    let found = rows(&open.db);
    drop(open);
    add("copied and used", HOME, &copy, &found, true);
    let open = Stepped::open(&disk);
    for target in [BACKUP, TAR] {
        disk.create_dir_all(Path::new("/copies")).unwrap();
        open.insert(if target == TAR { 50..52 } else { 60..61 });
        let mut inserted = false;
        open.db
            .backup(target, &BackupOptions::default(), |at| {
                if at.step == albireo::BackupStep::Copy && !std::mem::replace(&mut inserted, true) {
                    open.insert(if target == TAR { 70..73 } else { 80..83 });
                }
            })
            .unwrap();
        let all = rows(&open.db);
        let mut files = files_of(&disk, "/copies");
        files.retain(|path, _| path.starts_with(target));
        add(if target == TAR { "tar" } else { "backup" }, target, &disk_of(&files), &all, true);
    }
    drop(open);
    made
}

/// Where a file is flipped.
fn places(bytes: usize) -> Vec<usize> {
    let places = [0, 9, 12, 20, 45, 70, 1000, 4096, 4100, 4112, 4140, 4170, 4400, bytes / 2];
    let from_end = [600, 500, 440, 1].into_iter().filter_map(|back| bytes.checked_sub(back));
    let mut places: Vec<usize> = places.into_iter().chain(from_end).filter(|at| *at < bytes).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Every damage of a fixture: how it is called, and the files then. Each changes one file, but for swaps and what is
/// said to be of a directory.
fn damages(fixture: &Fixture, others: &Files) -> Vec<(String, Files)> {
    let mut found = Vec::new();
    let files = &fixture.files;
    let paths: Vec<&PathBuf> =
        files.keys().filter(|path| path.file_name().is_none_or(|name| name != "lock")).collect();
    let mut add = |what: String, change: &dyn Fn(&mut Files)| {
        let mut damaged = files.clone();
        change(&mut damaged);
        if damaged != *files {
            found.push((what, damaged));
        }
    };
    for (index, path) in paths.iter().copied().enumerate() {
        let (bytes, name) = (&files[path], path.display());
        for at in places(bytes.len()) {
            let change = |files: &mut Files| files.get_mut(path).unwrap()[at] ^= 1 << (at % 8);
            add(format!("byte {at} of {name} is flipped"), &change);
        }
        for length in
            [0, 100, bytes.len() / 2, bytes.len().saturating_sub(512), bytes.len().saturating_sub(1)]
        {
            let change = |files: &mut Files| files.get_mut(path).unwrap().truncate(length);
            add(format!("{name} is cut to {length} bytes"), &change);
        }
        add(format!("{name} is zeros"), &|files| files.get_mut(path).unwrap().fill(0));
        add(format!("{name} is removed"), &|files| drop(files.remove(path)));
        let text = b"2026-11-24 08:20:58 some other program: nothing of a database\n".repeat(90);
        add(format!("{name} is a foreign text"), &|files| drop(files.insert(path.clone(), text.clone())));
        add(format!("{name} has something behind it"), &|files| {
            files.get_mut(path).unwrap().extend_from_slice(&[0xa5; 700]);
        });
        if let Some(other) = others.get(path) {
            let change = |files: &mut Files| drop(files.insert(path.clone(), other.clone()));
            add(format!("{name} is that of another database"), &change);
        }
        for step in [1, 3] {
            let other = paths[(index + step) % paths.len()];
            add(format!("{name} and {} are swapped", other.display()), &|files| {
                let mine = files.insert(path.clone(), files[other].clone()).unwrap();
                files.insert(other.clone(), mine);
            });
        }
    }
    for directory in ["log", "archive"] {
        let inside = Path::new(fixture.path).join(directory);
        add(format!("the directory {} is removed", inside.display()), &|files| {
            files.retain(|path, _| !path.starts_with(&inside));
        });
    }
    found
}

/// What `verify` says: its exit status, and its last line.
fn verify(path: &str, env: &Env) -> (u8, String, String) {
    let Command::Verify(args) = Cli::try_parse_from(["albireo", "verify", path]).unwrap().command else {
        panic!("it is verify")
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = super::check(&args, env, &mut out, &mut err).unwrap();
    let text = String::from_utf8(if err.is_empty() { out } else { err }).unwrap();
    (status, text.lines().last().unwrap().to_owned(), text)
}

fn use_it(fixture: &Fixture, disk: &MemoryDisk) -> Outcome {
    let env = env_of(disk);
    let open = |path: &str| Database::open_stepped(path, config(), env.clone());
    let opened = match fixture.path {
        HOME => open(HOME),
        backup => {
            let options = RestoreOptions { opens: false, config: config(), ..RestoreOptions::default() };
            albireo::restore(backup, "/restored", &options, &env, |_| {}).and_then(|_| open("/restored"))
        }
    };
    match opened {
        Err(error) => Outcome::Refused(error.to_string()),
        Ok(db) if rows(&db) == fixture.rows => Outcome::Whole,
        Ok(db) => {
            let report = db.recovery();
            let told = !report.notices.is_empty() || !report.left_out.is_empty() || report.torn.is_some();
            Outcome::Lost { told }
        }
    }
}

#[test]
fn nothing_is_called_sound_that_opening_would_lose_or_refuse_and_nothing_is_lost_without_a_word() {
    let fixtures = fixtures();
    let other = MemoryDisk::default();
    let open = Stepped::open(&other);
    open.run(TABLE);
    open.insert(0..30);
    open.checkpoint();
    open.insert(30..40);
    drop(open);
    let others = files_of(&other, HOME);
    let (mut kinds, mut noticed, mut harmless, mut refused, mut wrong) = (0, 0, 0, 0, Vec::new());
    for fixture in &fixtures {
        let disk = disk_of(&fixture.files);
        let (status, verdict, text) = verify(fixture.path, &env_of(&disk));
        assert_eq!(status, 0, "{}: {text}", fixture.name);
        assert_eq!(verdict == "sound", fixture.is_closed, "{}: {text}", fixture.name);
        assert_eq!(use_it(fixture, &disk), Outcome::Whole, "{}", fixture.name);
        for (what, files) in damages(fixture, &others) {
            let disk = disk_of(&files);
            let (status, verdict, _) = verify(fixture.path, &env_of(&disk));
            let outcome = use_it(fixture, &disk);
            kinds += 1;
            noticed += u32::from(status != 0);
            harmless += u32::from(outcome == Outcome::Whole);
            refused += u32::from(matches!(outcome, Outcome::Refused(_)));
            let is_right = match &outcome {
                Outcome::Whole => true,
                Outcome::Refused(_) => status != 0,
                Outcome::Lost { told } => !fixture.is_closed && *told && verdict != "sound",
            };
            if !is_right {
                wrong
                    .push(format!("{}: {what}: verify says {verdict:?}, and then {outcome:?}", fixture.name));
            }
        }
    }
    println!("{kinds} kinds of damage: {noticed} noticed by verify, {refused} refused, {harmless} harmless");
    assert!(wrong.is_empty(), "{} of {kinds}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(
        kinds >= 200 && noticed > 150 && refused > 100 && harmless > 20,
        "{kinds} {noticed} {refused} {harmless}"
    );
}

#[test]
fn directories_that_are_no_database_are_never_sound_and_told_what_they_are() {
    let disk = MemoryDisk::default();
    drop(Stepped::open(&disk));
    disk.put("/logs/today.log", b"some text");
    disk.put("/var/log/today.log", b"some text");
    disk.put("/var/lock", b"");
    disk.put("/named/00000000000000000001.log", &b"some text\n".repeat(900));
    disk.put("/file", b"some text");
    disk.create_dir_all(Path::new("/empty")).unwrap();
    let open = Stepped::open(&disk);
    open.run(TABLE);
    open.checkpoint();
    drop(open);
    for (path, said) in [
        ("/logs", "it has no log/ or archive/"),
        ("/var", "there is no redo log in its directory log/"),
        ("/empty", "it is an empty directory"),
        ("/none", "there is nothing at \"/none\""),
        ("/file", "is no backup"),
        ("/db/archive", "it has the archives of a database"),
    ] {
        let (status, _, text) = verify(path, &env_of(&disk));
        assert!(status == 1 && text.contains(said), "{path}: {text}");
    }
    for part in ["/db/log", "/db/archive"] {
        let error =
            Database::open_stepped(part, config(), env_of(&disk)).err().expect("it is a part of a database");
        assert_eq!(error.hint(), Some("Name the directory of the database: \"/db\"."), "{error}");
    }
    // It may never have been used, or everything in it may be gone.
    disk.put("/bare/lock", b"");
    disk.create_dir_all(Path::new("/bare/log")).unwrap();
    let (status, verdict, text) = verify("/bare", &env_of(&disk));
    assert_eq!((status, verdict.as_str()), (0, "sound, as far as can be known"), "{text}");
    let (status, verdict, text) = verify("/named", &env_of(&disk));
    assert!(status == 1 && text.contains("is not a segment of a redo log"), "{text}");
    assert!(verdict.ends_with("faults"), "{text}");
    for (path, first) in [(HOME, "database in /db"), ("/db/log", "redo log in /db/log")] {
        let (status, verdict, text) = verify(path, &env_of(&disk));
        assert_eq!((status, verdict.as_str()), (0, "sound"), "{text}");
        assert!(text.starts_with(first) && text.contains("closed cleanly, complete to record 1"), "{text}");
    }
}
