//! `albireo verify` and `albireo log` of databases with archives: what is sound, and every kind of damage.

use std::path::{Path, PathBuf};
use std::process::Command;

use albireo::{CheckpointOptions, Config, Database, Value};
use serde_json::Value as Json;

use crate::directory::TestDirectory;
use crate::mounted::Mounted;
use crate::tools::{albireo, err, out};

fn config() -> Config {
    Config { log_segment_bytes: 16 << 10, query_threads: 1, ..Config::default() }
}

/// A database with two archives, whose log has lost its beginning.
fn made(directory: &Path) {
    let db = Database::open(directory, config()).unwrap();
    db.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE gone (a INTEGER);
         CREATE TABLE sorted (id INTEGER, n INTEGER NOT NULL);
         CREATE FUNCTION add(p_id integer) RETURNS void LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO t VALUES (p_id, 'added'); END $$",
    )
    .unwrap();
    let mut id = 0;
    let mut insert = |count: i32| {
        for _ in 0..count {
            id += 1;
            let values = [Value::Integer(id), Value::Text("x".repeat(300))];
            db.execute_with("INSERT INTO t VALUES ($1, $2)", &values).unwrap();
        }
    };
    insert(100);
    db.checkpoint().unwrap();
    db.execute("INSERT INTO gone VALUES (1); INSERT INTO sorted VALUES (1, 1)").unwrap();
    insert(5);
    db.execute("DROP TABLE gone; CREATE UNIQUE INDEX by_n ON sorted (n)").unwrap();
    db.checkpoint_with(&CheckpointOptions { keep: 1, ..CheckpointOptions::default() }, |_| {}).unwrap();
    db.execute(
        "CREATE TABLE late (b INTEGER); INSERT INTO late VALUES (7); INSERT INTO sorted VALUES (2, 2)",
    )
    .unwrap();
    db.execute("DELETE FROM sorted WHERE n = 2").unwrap();
    insert(60);
    db.checkpoint_with(&CheckpointOptions::default(), |_| {}).unwrap();
    insert(3);
}

fn verify(path: &Path) -> (Option<i32>, Json) {
    let output = albireo(&["verify", "PATH", "--format", "json"], path);
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|_| panic!("{}", err(&output))))
}

fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path, ending)),
            false if path.to_str().unwrap().ends_with(ending) => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

fn copied(from: &Path, name: &str) -> TestDirectory {
    let place = TestDirectory::new(name);
    let status = Command::new("cp").arg("-r").arg(from.join(".")).arg(place.path()).status().unwrap();
    assert!(status.success());
    place
}

/// All that is told of archives, log and backup.
fn faults(report: &Json) -> Vec<String> {
    let archives = report["archives"].as_array().unwrap().iter().map(|archive| &archive["faults"]);
    let parts = archives.chain([&report["log"]["faults"], &report["backup"]["faults"]]);
    let parts = parts.filter_map(Json::as_array).flatten();
    parts.map(|fault| format!("{}: {}", fault["file"], fault["reason"])).collect()
}

#[test]
fn sound_database_is_sound_with_its_archives() {
    let place = TestDirectory::new("sound");
    made(place.path());
    let (status, report) = verify(place.path());
    assert_eq!((status, &report["sound"]), (Some(0), &true.into()), "{report:#}");
    assert_eq!(report["archives"].as_array().unwrap().len(), 2);
    let archive = &report["archives"][0];
    assert_eq!((&archive["tables"], &archive["rows"]), (&3.into(), &167.into()), "{report:#}");
    assert!(report["log"]["first_frame"].as_u64().unwrap() > 1, "the log's beginning is gone: {report:#}");
    let output = albireo(&["verify", "PATH"], place.path());
    let said = out(&output);
    assert!(said.contains("\n  archive 3: ") && said.contains(" 3 tables, 167 rows, "), "{said}");
    assert!(said.contains("\nchecked ") && said.ends_with("\nsound\n"), "{said}");
    let log = albireo(&["verify", "PATH"], &place.path().join("log"));
    assert_eq!(log.status.code(), Some(0), "{}", out(&log));
    assert!(!out(&log).contains("archive "), "a log alone has none");
}

#[test]
fn log_whose_beginning_is_gone_is_told_by_the_names_of_an_archive() {
    let place = TestDirectory::new("names");
    made(place.path());
    let lines = |more: &[&str]| {
        let output = albireo(&[&["log", "PATH"], more].concat(), place.path());
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        out(&output)
    };
    let all = lines(&[]);
    assert!(!all.starts_with("1  "), "{all}");
    assert!(all.contains("insert t: id=105 "), "{all}");
    for told in ["DROP TABLE gone", "insert late: b=7", "insert sorted: id=2 n=2", "delete sorted n=2"] {
        assert!(all.contains(told), "{told} in {all}");
    }
    assert_eq!(lines(&["--table", "late"]).lines().count(), 2);
    assert_eq!(lines(&["--table", "gone"]).lines().count(), 1, "its definition");
    // Before the archive it was dropped, or had another index.
    let untold: Vec<&str> = all.lines().filter(|line| line.contains("has no longer as it was")).collect();
    assert_eq!(untold.len(), 2, "{untold:?}");
    for line in untold {
        assert!(line.contains("rows of table sorted") || line.contains("rows of table 2"), "{line}");
    }
    let json = lines(&["--format", "json"]);
    json.lines().for_each(|line| drop(serde_json::from_str::<Json>(line).expect("a line is an object")));
}

#[test]
fn every_kind_of_damage_is_found_with_status_1() {
    let place = TestDirectory::new("damage");
    made(place.path());
    let flip = |path: &Path, at: usize| {
        let mut bytes = std::fs::read(path).unwrap();
        let at = at.min(bytes.len() - 1);
        bytes[at] ^= 1;
        std::fs::write(path, bytes).unwrap();
    };
    let newest = |files: Vec<PathBuf>| files.into_iter().next_back().unwrap();
    let cut = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    };
    type Damage<'d> = (&'static str, Box<dyn Fn(&Path) + 'd>);
    let arrow = |path: &Path| newest(files(path, ".arrow"));
    let manifest = |path: &Path| newest(files(path, "manifest.json"));
    let segments = |path: &Path| files(&path.join("log"), ".log");
    let kinds: [Damage<'_>; 9] = [
        ("the checksum is", Box::new(|path| flip(&arrow(path), 500))),
        ("instead of", Box::new(|path| cut(&arrow(path)))),
        ("the file is missing", Box::new(|path| std::fs::remove_file(arrow(path)).unwrap())),
        ("the checksum is", Box::new(|path| flip(&manifest(path), 300))),
        ("not a manifest", Box::new(|path| cut(&manifest(path)))),
        ("is damaged", Box::new(|path| flip(&segments(path)[0], 4096 + 30))),
        (
            "is missing; no crash leaves this",
            Box::new(|path| std::fs::remove_file(&segments(path)[1]).unwrap()),
        ),
        (
            "what is between is missing",
            Box::new(|path| {
                let all = segments(path);
                all[..all.len() - 1].iter().for_each(|path| std::fs::remove_file(path).unwrap());
            }),
        ),
        (
            "the end of the log is missing",
            Box::new(|path| {
                let all = segments(path);
                all[1..].iter().for_each(|path| std::fs::remove_file(path).unwrap());
            }),
        ),
    ];
    for (index, (said, damage)) in kinds.iter().enumerate() {
        let copy = copied(place.path(), "damaged");
        damage(copy.path());
        let (status, report) = verify(copy.path());
        let faults = faults(&report);
        assert_eq!((status, &report["sound"]), (Some(1), &false.into()), "{index} {said}: {report:#}");
        assert!(faults.iter().any(|fault| fault.contains(said)), "{index} {said}: {faults:?}");
        let output = albireo(&["verify", "PATH"], copy.path());
        assert_eq!(output.status.code(), Some(1));
        assert!(out(&output).contains("\nDAMAGED "), "{}", out(&output));
    }
}

#[test]
fn log_of_another_database_and_one_without_its_archives_are_faults() {
    let place = TestDirectory::new("mixed");
    made(place.path());
    let other = TestDirectory::new("other");
    made(other.path());
    let mixed = copied(place.path(), "mixed");
    std::fs::remove_dir_all(mixed.path().join("log")).unwrap();
    std::fs::rename(other.path().join("log"), mixed.path().join("log")).unwrap();
    let (status, report) = verify(mixed.path());
    assert_eq!(status, Some(1));
    assert!(faults(&report)[0].contains("they are not of the same database"), "{report:#}");
    std::fs::remove_dir_all(place.path().join("archive")).unwrap();
    let (status, report) = verify(place.path());
    assert_eq!(status, Some(1));
    let said = faults(&report);
    assert!(said.iter().any(|fault| fault.contains("no archive has what was before it")), "{said:?}");
    std::fs::remove_dir_all(mixed.path().join("log")).unwrap();
    let (status, report) = verify(mixed.path());
    assert_eq!(status, Some(1), "opening refuses it as well: {report:#}");
    assert!(
        faults(&report)[0].contains("the log has no segment: the end of the log is missing"),
        "{report:#}"
    );
}

#[test]
fn damaged_backup_is_found_once() {
    let place = TestDirectory::new("copies");
    let data = place.path().join("data");
    made(&data);
    for name in ["copy", "copy.tar"] {
        let target = place.path().join(name);
        let output = albireo(&["backup", "PATH", target.to_str().unwrap()], &data);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let (status, report) = verify(&target);
        assert_eq!((status, &report["sound"]), (Some(0), &true.into()), "{report:#}");
        let file = if name == "copy" { files(&target, ".arrow")[0].clone() } else { target.clone() };
        let mut bytes = std::fs::read(&file).unwrap();
        let middle = bytes.len().min(4000) / 2;
        bytes[middle] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let (status, report) = verify(&target);
        assert_eq!((status, &report["fault_count"]), (Some(1), &1.into()), "{report:#}");
        assert!(faults(&report)[0].contains(".arrow"), "{report:#}");
    }
}

#[test]
fn files_of_a_read_only_file_system_are_verified() {
    let mounted = match Mounted::new(16) {
        Ok(mounted) => mounted,
        Err(error) => {
            eprintln!("SKIPPED: a test needs a file system of its own, which cannot be mounted: {error}");
            return;
        }
    };
    let data = mounted.path().join("data");
    made(&data);
    mounted.make_read_only();
    let (status, report) = verify(&data);
    assert_eq!((status, &report["sound"]), (Some(0), &true.into()), "{report:#}");
    assert_eq!(albireo(&["log", "PATH"], &data).status.code(), Some(0));
    let output = albireo(&["archive", "PATH"], &data);
    assert_eq!(output.status.code(), Some(1), "it cannot be opened");
}
