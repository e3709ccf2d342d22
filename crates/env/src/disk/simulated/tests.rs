use super::*;
use crate::clock::Clock;
use crate::random::Generator;
use albireo_testing::test;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};

mod reads;

const EIO: Option<i32> = Some(5);

/// Calls `run` with so many disks, each of another seed; returns what it returned.
fn sample<T: Ord>(disks: u64, run: impl Fn(&CrashDisk) -> T) -> BTreeSet<T> {
    (0..disks).map(|seed| run(&CrashDisk::new(seed))).collect()
}

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn write(disk: &CrashDisk, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = disk.create(path(name))?;
    file.write_all(bytes)?;
    file.sync()
}

fn read(disk: &CrashDisk, name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    disk.open(path(name))?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The first byte of each sector, all of whose bytes must be the same.
fn sectors(bytes: &[u8]) -> Vec<u8> {
    let sectors = bytes.chunks(SECTOR_BYTES as usize);
    let uniform = |sector: &[u8]| sector.iter().all(|&byte| byte == sector[0]);
    sectors
        .inspect(|sector| assert!(uniform(sector), "torn within a sector"))
        .map(|sector| sector[0])
        .collect()
}

/// What a file must keep: `synced`, but for `dirty` sectors and what lies behind `floor`.
struct Promise {
    synced: Vec<u8>,
    present: Vec<u8>,
    floor: usize,
    dirty: BTreeSet<usize>,
}

impl Promise {
    fn change(&mut self, file: &dyn PlacedFile, random: &mut Generator) {
        let at = random.up_to(4_000) as usize;
        if random.up_to(5) == 0 {
            file.set_len(at as u64).unwrap();
            self.present.resize(at, 0);
            self.floor = self.floor.min(at);
            return;
        }
        let data = vec![random.draw() as u8; 1 + random.up_to(1_500) as usize];
        file.write_at(&data, at as u64).unwrap();
        self.present.resize(self.present.len().max(at + data.len()), 0);
        self.present[at..at + data.len()].copy_from_slice(&data);
        self.dirty.extend(at / 512..=(at + data.len() - 1) / 512);
    }

    fn sync(&mut self) {
        (self.synced, self.floor) = (self.present.clone(), self.present.len());
        self.dirty.clear();
    }

    fn check(&self, bytes: &[u8]) {
        assert!(bytes.len() >= self.floor);
        for (offset, byte) in self.synced[..self.floor].iter().enumerate() {
            assert!(self.dirty.contains(&(offset / 512)) || bytes[offset] == *byte, "lost at {offset}");
        }
        if self.dirty.is_empty() && self.floor == self.present.len() && self.present == self.synced {
            assert_eq!(bytes, self.synced);
        }
    }
}

#[test]
fn synced_data_survives_any_crash() {
    test!().for_each_seed(0..1_000, |seed| {
        let disk = CrashDisk::new(seed);
        let mut random = Generator::new(!seed);
        let new = || Promise { synced: vec![], present: vec![], floor: 0, dirty: BTreeSet::new() };
        let mut promises = [new(), new(), new()];
        for _ in 0..3 {
            let names = ["a", "b", "c"];
            let files = names.map(|name| disk.open_placed(path(name)).unwrap());
            disk.sync_directory(path("/")).unwrap();
            for _ in 0..random.up_to(20) {
                let index = random.up_to(2) as usize;
                promises[index].change(&*files[index], &mut random);
                if random.up_to(2) == 0 {
                    files[index].sync().unwrap();
                    promises[index].sync();
                }
                assert_eq!(disk.contents(names[index]).unwrap(), promises[index].present);
            }
            disk.crash();
            for (name, promise) in names.iter().zip(&mut promises) {
                let bytes = disk.contents(name).unwrap();
                promise.check(&bytes);
                promise.present = bytes;
                promise.sync();
            }
        }
    });
}

#[test]
fn unsynced_sectors_are_old_new_or_between_each_for_itself() {
    let outcomes = sample(2_000, |disk| {
        disk.put("file", &[b'a'; 2_048]);
        let file = disk.open_placed(path("file")).unwrap();
        file.write_at(&[b'b'; 1_024], 512).unwrap();
        file.write_at(&[b'c'; 1_024], 512).unwrap();
        disk.crash();
        sectors(&disk.contents("file").unwrap())
    });
    // Every pair of contents that the two written sectors went through, and no other.
    let pairs =
        [b'a', b'b', b'c'].map(|first| [b'a', b'b', b'c'].map(|second| vec![b'a', first, second, b'a']));
    assert_eq!(outcomes, pairs.into_iter().flatten().collect());
}

#[test]
fn unsynced_growth_is_lost_kept_short_or_has_holes() {
    let outcomes = sample(2_000, |disk| {
        disk.put("file", &[b'a'; 1_024]);
        let file = disk.open_placed(path("file")).unwrap();
        for sector in 2..6 {
            file.write_at(&[b'b'; 512], sector * 512).unwrap();
        }
        disk.crash();
        let bytes = disk.contents("file").unwrap();
        assert!((1_024..=3_072).contains(&bytes.len()));
        sectors(&bytes)
    });
    assert!(outcomes.iter().all(|sectors| sectors.starts_with(b"aa")));
    assert!(outcomes.iter().all(|sectors| sectors[2..].iter().all(|byte| [b'b', 0].contains(byte))));
    for expected in ["aa", "aabbbb", "aab", "aabb", "aa\0bbb", "aab\0b", "aa\0"] {
        assert!(outcomes.contains(expected.as_bytes()), "{expected:?}");
    }
}

#[test]
fn unsynced_writes_may_survive_in_their_order() {
    let survived = sample(1_000, |disk| {
        disk.put("file", &[b'a'; 40 * 512]);
        let file = disk.open_placed(path("file")).unwrap();
        (0..40).for_each(|sector| file.write_at(&[b'b'; 512], sector * 512).unwrap());
        disk.crash();
        let sectors = sectors(&disk.contents("file").unwrap());
        let first = sectors.iter().take_while(|&&byte| byte == b'b').count();
        sectors[first..].iter().all(|&byte| byte == b'a').then_some(first)
    });
    assert_eq!(survived, (0..=40).map(Some).chain([None]).collect());
}

#[test]
fn last_write_that_survives_in_order_may_be_torn() {
    let last = sample(3_000, |disk| {
        disk.put("file", &[b'a'; 42 * 512]);
        let file = disk.open_placed(path("file")).unwrap();
        (0..40).for_each(|sector| file.write_at(&[b'b'; 512], sector * 512).unwrap());
        file.write_at(&[b'c'; 1_024], 40 * 512).unwrap();
        disk.crash();
        let sectors = sectors(&disk.contents("file").unwrap());
        // That chance alone keeps forty sectors is out of the question.
        sectors.starts_with(&[b'b'; 40]).then(|| sectors[40..].to_vec())
    });
    let expected = ["aa", "ac", "ca", "cc"].map(|bytes| Some(bytes.as_bytes().to_vec()));
    assert_eq!(last, expected.into_iter().chain([None]).collect());
}

#[test]
fn file_grown_in_one_write_may_end_within_it() {
    let lengths = sample(500, |disk| {
        disk.put("file", b"");
        disk.open_placed(path("file")).unwrap().write_at(&[1; 2_000], 0).unwrap();
        disk.crash();
        disk.contents("file").unwrap().len()
    });
    assert!(
        lengths.contains(&0) && lengths.contains(&2_000) && lengths.iter().any(|length| length % 512 != 0)
    );
}

#[test]
fn unsynced_cut_is_there_or_not_and_what_it_cut_never_comes_back_behind_it() {
    let outcomes = sample(2_000, |disk| {
        disk.put("file", &[b'a'; 2_048]);
        let file = disk.open_placed(path("file")).unwrap();
        file.write_at(&[b'b'; 512], 1_024).unwrap();
        file.set_len(512).unwrap();
        file.set_len(1_536).unwrap();
        disk.crash();
        sectors(&disk.contents("file").unwrap())
    });
    let mut expected = BTreeSet::from([b"aaaa".to_vec(), b"aaba".to_vec(), b"a".to_vec()]);
    expected.extend([b"a\0".to_vec(), b"a\0\0".to_vec()]);
    assert_eq!(outcomes, expected);
}

#[test]
fn file_emptied_by_create_may_be_old_empty_or_new() {
    let outcomes = sample(500, |disk| {
        disk.put("file", b"old contents");
        disk.create(path("file")).unwrap().write_all(b"new").unwrap();
        disk.crash();
        disk.contents("file").unwrap()
    });
    for expected in ["old contents", "", "new"] {
        assert!(outcomes.contains(expected.as_bytes()), "{expected:?}");
    }
}

#[test]
fn unsynced_rename_leaves_the_old_name_or_the_new_one() {
    let outcomes = sample(200, |disk| {
        disk.put("dir/new", b"new");
        disk.put("dir/name", b"old");
        disk.rename(path("dir/new"), path("dir/name")).unwrap();
        disk.crash();
        (disk.contents("dir/new"), disk.contents("dir/name"))
    });
    let before = (Some(b"new".to_vec()), Some(b"old".to_vec()));
    let after = (None, Some(b"new".to_vec()));
    assert_eq!(outcomes, BTreeSet::from([before, after.clone()]));

    let synced = sample(200, |disk| {
        disk.put("dir/new", b"new");
        disk.put("dir/name", b"old");
        disk.rename(path("dir/new"), path("dir/name")).unwrap();
        disk.sync_directory(path("dir")).unwrap();
        disk.crash();
        (disk.contents("dir/new"), disk.contents("dir/name"))
    });
    assert_eq!(synced, BTreeSet::from([after]));
}

#[test]
fn rename_between_directories_synced_in_one_is_durable_in_both() {
    let outcomes = sample(200, |disk| {
        disk.put("a/other", b"");
        disk.put("b/other", b"");
        write(disk, "a/file", b"x").unwrap();
        disk.rename(path("a/file"), path("b/file")).unwrap();
        disk.sync_directory(path("b")).unwrap();
        disk.crash();
        disk.files().into_keys().collect::<Vec<_>>()
    });
    let expected = ["/a/other", "/b/file", "/b/other"].map(PathBuf::from).to_vec();
    assert_eq!(outcomes, BTreeSet::from([expected]));
}

#[test]
fn file_moved_to_a_new_directory_is_in_one_place() {
    let outcomes = sample(500, |disk| {
        disk.put("file", b"x");
        disk.create_dir_all(path("new/deep")).unwrap();
        disk.rename(path("file"), path("new/deep/file")).unwrap();
        disk.crash_at(disk.operations());
        disk.sync_directory(path("new/deep")).unwrap_err();
        assert!(disk.restart());
        disk.files().into_keys().collect::<Vec<_>>()
    });
    let places = ["/file", "/new/deep/file"].map(|name| vec![PathBuf::from(name)]);
    assert_eq!(outcomes, BTreeSet::from(places.clone()));

    let synced = sample(200, |disk| {
        disk.put("file", b"x");
        disk.create_dir_all(path("new/deep")).unwrap();
        disk.rename(path("file"), path("new/deep/file")).unwrap();
        disk.sync_directory(path("new/deep")).unwrap();
        disk.crash();
        disk.files().into_keys().collect::<Vec<_>>()
    });
    assert_eq!(synced, BTreeSet::from([places[1].clone()]));
}

#[test]
fn new_names_survive_as_a_prefix_and_those_synced_for_certain() {
    let counts = sample(500, |disk| {
        for index in 0..6 {
            disk.create(path(&format!("{index}"))).unwrap();
            if index == 1 {
                disk.sync_directory(path("/")).unwrap();
            }
        }
        disk.crash();
        let left: Vec<PathBuf> = disk.files().into_keys().collect();
        let prefix: Vec<_> = (0..left.len()).map(|index| PathBuf::from(format!("/{index}"))).collect();
        assert_eq!(left, prefix);
        left.len()
    });
    assert_eq!(counts, (2..=6).collect());
}

#[test]
fn directory_after_a_crash_is_one_that_it_was_since_its_sync() {
    test!().for_each_seed(0..1_000, |seed| {
        let disk = CrashDisk::new(seed);
        let mut random = Generator::new(!seed);
        let mut states = vec![disk.files()];
        for step in 0..random.up_to(15) {
            let mut name = || format!("{}", random.up_to(3));
            let (from, to) = (name(), name());
            match random.up_to(5) {
                0 => drop(disk.remove_file(path(&from))),
                1 => drop(disk.rename(path(&from), path(&to))),
                2 if disk.contents(&from).is_none() => write(&disk, &from, &[step as u8]).unwrap(),
                3 => {
                    disk.create_dir_all(path("other")).unwrap();
                    disk.sync_directory(path("other")).unwrap();
                }
                4 => {
                    disk.sync_directory(path("/")).unwrap();
                    states.clear();
                }
                _ => {}
            }
            states.push(disk.files());
        }
        disk.crash();
        assert!(states.contains(&disk.files()), "seed {seed}: {:?} of {states:?}", disk.files());
    });
}

#[test]
fn files_moved_about_are_each_in_one_place_after_a_crash() {
    test!().for_each_seed(0..1_000, |seed| {
        let disk = CrashDisk::new(seed);
        let mut random = Generator::new(!seed);
        for file in 0..4 {
            disk.put(format!("a/{file}"), &[file]);
        }
        disk.put("b/last", &[4]);
        for _ in 0..random.up_to(20) {
            let mut name = || format!("{}/{}", ["a", "b", "c"][random.up_to(2) as usize], random.up_to(4));
            let (from, to) = (name(), name());
            match random.up_to(5) {
                0 => disk.create_dir_all(path("c")).unwrap(),
                1 => drop(disk.sync_directory(path(&from).parent().unwrap())),
                _ if disk.contents(&to).is_none() => drop(disk.rename(path(&from), path(&to))),
                _ => {}
            }
        }
        disk.crash();
        let mut found: Vec<Vec<u8>> = disk.files().into_values().collect();
        found.sort();
        assert_eq!(found, [[0], [1], [2], [3], [4]], "seed {seed}");
    });
}

#[test]
fn names_left_in_the_journal_by_a_sync_elsewhere_keep_their_order() {
    let outcomes = sample(200, |disk| {
        disk.put("a/file", b"");
        disk.put("b/file", b"");
        for name in ["a/0", "b/0", "a/1"] {
            disk.create(path(name)).unwrap();
        }
        disk.sync_directory(path("b")).unwrap();
        disk.crash();
        ["a/0", "b/0", "a/1"].map(|name| disk.contents(name).is_some())
    });
    assert_eq!(outcomes, [[false, true, false], [true, true, false], [true; 3]].into());
}

#[test]
fn removal_undone_by_a_crash_counts_again() {
    let free = sample(100, |disk| {
        disk.set_capacity_bytes(10);
        disk.put("file", b"1234");
        disk.remove_file(path("file")).unwrap();
        disk.crash();
        if let Ok(file) = disk.open(path("file")) {
            disk.open_placed(path("file")).unwrap().set_len(1).unwrap();
            assert_eq!(file.len().unwrap(), 1);
        }
        disk.free_bytes(path("/")).unwrap()
    });
    assert_eq!(free, [9, 10].into());
}

#[test]
fn synced_file_in_an_unsynced_directory_may_vanish() {
    let outcomes = sample(200, |disk| {
        disk.create_dir_all(path("dir")).unwrap();
        write(disk, "dir/file", b"x").unwrap();
        disk.sync_directory(path("dir")).unwrap();
        disk.crash();
        (disk.read_dir(path("dir")).is_ok(), disk.contents("dir/file").is_some())
    });
    assert_eq!(outcomes, BTreeSet::from([(false, false), (true, true)]));
}

#[test]
fn unsynced_removal_may_be_undone_in_part_and_gives_the_contents_back() {
    let outcomes = sample(500, |disk| {
        disk.put("dir/a", b"a");
        disk.put("dir/b", b"b");
        disk.remove_dir_all(path("dir")).unwrap();
        assert!(disk.files().is_empty());
        disk.crash();
        let files = disk.files();
        assert!(files.iter().all(|(path, bytes)| path.to_str().unwrap().as_bytes().ends_with(bytes)));
        (disk.read_dir(path("dir")).is_ok(), files.len())
    });
    assert_eq!(outcomes, BTreeSet::from([(false, 0), (true, 0), (true, 1), (true, 2)]));
}

#[test]
fn removal_that_is_synced_is_for_good_though_the_file_is_open() {
    let disk = CrashDisk::new(1);
    disk.put("file", b"x");
    let mut open = disk.open(path("file")).unwrap();
    disk.remove_file(path("file")).unwrap();
    disk.sync_directory(path("/")).unwrap();
    let mut bytes = Vec::new();
    open.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"x");
    disk.crash();
    assert!(disk.files().is_empty());
}

#[test]
fn failed_sync_marks_clean_what_may_be_lost() {
    let outcomes = sample(500, |disk| {
        disk.put("file", &[b'a'; 1_536]);
        let file = disk.open_placed(path("file")).unwrap();
        file.write_at(&[b'b'; 1_536], 0).unwrap();
        disk.set_faults(Faults { failing_sync: Some(0), ..Faults::default() });
        assert_eq!(file.sync().unwrap_err().raw_os_error(), EIO);
        // Written again, the last sector is dirty again.
        file.write_at(&[b'c'; 512], 1_024).unwrap();
        file.sync().unwrap();
        assert_eq!(sectors(&read(disk, "file").unwrap()), b"bbc");
        disk.crash();
        sectors(&disk.contents("file").unwrap())
    });
    assert_eq!(outcomes, ["aac", "abc", "bac", "bbc"].map(|bytes| bytes.as_bytes().to_vec()).into());
}

#[test]
fn failed_sync_of_a_file_that_grew_leaves_a_hole_after_the_next_one() {
    let outcomes = sample(500, |disk| {
        disk.put("file", b"");
        let file = disk.open_placed(path("file")).unwrap();
        file.write_at(&[b'a'; 512], 0).unwrap();
        disk.set_faults(Faults { failing_sync: Some(0), ..Faults::default() });
        file.sync().unwrap_err();
        file.write_at(&[b'b'; 512], 512).unwrap();
        file.sync().unwrap();
        disk.crash();
        // A part of the first sector may have been there when the file was shorter.
        let bytes = disk.contents("file").unwrap();
        assert!(bytes[..512].iter().all(|byte| [0, b'a'].contains(byte)) && bytes[512..] == [b'b'; 512]);
        (bytes[0], bytes[511])
    });
    assert!(outcomes.contains(&(0, 0)) && outcomes.contains(&(b'a', b'a')));
}

#[test]
fn failed_sync_of_a_directory_leaves_names_pending() {
    let outcomes = sample(200, |disk| {
        disk.create(path("file")).unwrap();
        disk.set_faults(Faults { failing_sync: Some(0), ..Faults::default() });
        assert_eq!(disk.sync_directory(path("/")).unwrap_err().raw_os_error(), EIO);
        disk.crash();
        disk.contents("file").is_some()
    });
    assert_eq!(outcomes, BTreeSet::from([false, true]));
}

#[test]
fn failing_write_at_writes_a_part_and_failing_write_nothing() {
    let written = sample(500, |disk| {
        disk.set_faults(Faults { failing_write: Some(1), ..Faults::default() });
        let file = disk.open_placed(path("placed")).unwrap();
        file.write_at(b"", 0).unwrap();
        assert_eq!(file.write_at(b"1234", 0).unwrap_err().raw_os_error(), EIO);
        let part = disk.contents("placed").unwrap();
        assert!(b"1234".starts_with(&part));
        file.write_at(b"5678", 0).unwrap();

        disk.set_faults(Faults { failing_writes_per_mille: 1_000, ..Faults::default() });
        let mut file = disk.create(path("written")).unwrap();
        assert_eq!(file.write(b"1234").unwrap_err().raw_os_error(), EIO);
        assert_eq!(disk.contents("written").unwrap(), b"");
        file.sync().unwrap();
        part.len()
    });
    assert_eq!(written, (0..=4).collect());
}

#[test]
fn faults_by_chance_come_as_often_as_asked() {
    let disk = CrashDisk::new(3);
    disk.set_faults(Faults {
        failing_writes_per_mille: 100,
        failing_syncs_per_mille: 300,
        ..Faults::default()
    });
    let file = disk.open_placed(path("file")).unwrap();
    let writes = (0..2_000).filter(|_| file.write_at(b"x", 0).is_err()).count();
    let syncs = (0..2_000).filter(|_| file.sync().is_err()).count();
    assert!((150..250).contains(&writes) && (500..700).contains(&syncs), "{writes} {syncs}");
}

#[test]
fn full_disk_takes_what_fits_until_there_is_room() {
    let disk = CrashDisk::new(1);
    disk.set_capacity_bytes(10);
    disk.put("other", b"1234");
    let file = disk.open_placed(path("file")).unwrap();
    file.allocate(4).unwrap();
    assert_eq!(disk.free_bytes(path("/")).unwrap(), 2);
    assert_eq!(file.allocate(7).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.set_len(7).unwrap_err().kind(), ErrorKind::StorageFull);
    file.write_at(b"abcd", 0).unwrap();
    assert_eq!(file.write_at(b"cdefgh", 2).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.contents("file").unwrap(), b"abcdef");
    let mut writer = disk.create(path("written")).unwrap();
    assert_eq!(writer.write(b"x").unwrap_err().kind(), ErrorKind::StorageFull);
    disk.remove_file(path("other")).unwrap();
    assert_eq!(writer.write(b"12345").unwrap(), 4);
    // Without a name a file does not count.
    disk.remove_file(path("file")).unwrap();
    file.set_len(0).unwrap();
    assert_eq!(disk.free_bytes(path("/")).unwrap(), 6);
    disk.set_capacity_bytes(3);
    assert_eq!(disk.free_bytes(path("/")).unwrap(), 0);
    disk.set_capacity_bytes(5);
    assert_eq!(writer.write(b"yz").unwrap(), 1);
    disk.put("other", b"");
    disk.rename(path("written"), path("other")).unwrap();
    assert_eq!(disk.free_bytes(path("/")).unwrap(), 0);
    disk.sync_directory(path("/")).unwrap();
    writer.sync().unwrap();
    disk.crash();
    assert_eq!(disk.free_bytes(path("/")).unwrap(), 0);
}

#[test]
fn crash_ends_open_files_and_locks() {
    let disk = CrashDisk::new(1);
    disk.put("file", b"x");
    let mut reader = disk.open(path("file")).unwrap();
    let mut writer = disk.create(path("written")).unwrap();
    let placed = disk.open_placed(path("file")).unwrap();
    let lock = disk.lock(path("lock")).unwrap();
    disk.crash();
    let errors = [
        reader.read(&mut [0]).unwrap_err(),
        reader.seek(SeekFrom::Start(0)).unwrap_err(),
        reader.len().unwrap_err(),
        writer.write(b"x").unwrap_err(),
        writer.flush().unwrap_err(),
        writer.sync().unwrap_err(),
        placed.write_at(b"x", 0).unwrap_err(),
        placed.allocate(1).unwrap_err(),
        placed.set_len(1).unwrap_err(),
        placed.sync().unwrap_err(),
    ];
    for error in errors {
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Other, "the machine crashed"));
    }
    let again = disk.lock(path("lock")).unwrap();
    drop(lock);
    assert_eq!(disk.lock(path("lock")).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(again);
    assert_eq!(read(&disk, "file").unwrap(), b"x");
}

#[test]
fn killed_process_loses_its_files_and_locks_but_nothing_written() {
    let disk = CrashDisk::new(1);
    let mut file = disk.create(path("file")).unwrap();
    let _lock = disk.lock(path("lock")).unwrap();
    file.write_all(b"x").unwrap();
    disk.kill();
    assert_eq!(file.write(b"y").unwrap_err().kind(), ErrorKind::Other);
    assert_eq!(read(&disk, "file").unwrap(), b"x");
    disk.lock(path("lock")).unwrap();
}

/// Replaces a file by a new version three times, and appends to a log; counts what was acknowledged.
fn script(disk: &CrashDisk, acknowledged: &mut (u8, usize)) -> io::Result<()> {
    let _lock = disk.lock(path("lock"))?;
    disk.create_dir_all(path("dir"))?;
    disk.sync_directory(path("/"))?;
    let log = disk.open_placed(path("dir/log"))?;
    disk.sync_directory(path("dir"))?;
    for version in 1..=3 {
        write(disk, "dir/new", &[version; 700])?;
        disk.rename(path("dir/new"), path("dir/current"))?;
        disk.sync_directory(path("dir"))?;
        acknowledged.0 = version;
        log.write_at(&[version; 300], acknowledged.1 as u64)?;
        log.sync()?;
        acknowledged.1 += 300;
    }
    Ok(())
}

/// Runs the script with a crash at an operation; says whether it struck.
fn crash_in_script(seed: u64, operation: u64) -> (bool, CrashDisk) {
    let disk = CrashDisk::new(seed);
    disk.crash_at(operation);
    let mut acknowledged = (0, 0);
    let done = script(&disk, &mut acknowledged);
    assert_eq!(done.is_err(), disk.is_down());
    if disk.is_down() {
        assert_eq!(disk.read_dir(path("/")).unwrap_err().to_string(), "the machine crashed");
        assert_eq!(disk.operations(), operation + 1);
    }
    let struck = disk.restart();
    assert!(!disk.restart());
    if !struck {
        disk.crash();
    }

    let current = disk.contents("dir/current").unwrap_or_default();
    let version = current.first().copied().unwrap_or(0);
    assert!((acknowledged.0..=acknowledged.0 + 1).contains(&version), "{acknowledged:?}, found {version}");
    assert!(current.is_empty() || current == [version; 700]);
    let log = disk.contents("dir/log").unwrap_or_default();
    assert!((acknowledged.1..=acknowledged.1 + 300).contains(&log.len()));
    for (offset, &byte) in log.iter().enumerate() {
        let expected = (offset / 300) as u8 + 1;
        assert!(byte == expected || byte == 0 && offset >= acknowledged.1, "{offset}: {byte}");
    }
    disk.lock(path("lock")).unwrap();
    (struck, disk)
}

#[test]
fn crash_at_any_operation_keeps_what_was_acknowledged() {
    let mut operation = 0;
    while (0..200).filter(|&seed| crash_in_script(seed, operation).0).count() > 0 {
        operation += 1;
    }
    // Five to begin with, and seven for each version (create, write, sync; rename, sync; write, sync).
    assert_eq!(operation, 5 + 3 * 7);
}

#[test]
fn struck_write_may_have_been_done_in_part() {
    let outcomes = sample(2_000, |disk| {
        disk.put("file", b"...");
        let file = disk.open_placed(path("file")).unwrap();
        disk.crash_at(disk.operations());
        file.write_at(b"abc", 0).unwrap_err();
        assert!(disk.restart());
        disk.contents("file").unwrap()
    });
    assert_eq!(outcomes, ["...", "a..", "ab.", "abc"].map(|bytes| bytes.as_bytes().to_vec()).into());
}

#[test]
fn planned_crash_is_forgotten_after_another_one() {
    let disk = CrashDisk::new(1);
    disk.crash_at(5);
    disk.crash();
    (0..20).for_each(|_| drop(disk.read_dir(path("/")).unwrap()));
    disk.crash_at(3);
    disk.read_dir(path("/")).unwrap_err();
    disk.crash();
    disk.read_dir(path("/")).unwrap();
}

#[test]
fn same_seed_and_calls_leave_the_same_state() {
    let run = |seed: u64| {
        let disk = crash_in_script(seed, 17).1;
        disk.set_faults(Faults {
            failing_syncs_per_mille: 300,
            failing_writes_per_mille: 100,
            ..Faults::default()
        });
        for round in 0..20 {
            let _ = write(&disk, &format!("{round}"), &[round; 3_000]);
            if round % 5 == 4 {
                disk.crash();
            }
        }
        (disk.files(), disk.operations())
    };
    assert!((0..50).all(|seed| run(seed) == run(seed)));
    assert!((0..50).map(run).collect::<BTreeSet<_>>().len() > 40);
}

#[test]
fn damage_and_put_are_durable() {
    let disk = CrashDisk::new(1);
    disk.put("dir/file", b"abc");
    disk.flip_bit("dir/file", 9);
    assert_eq!(disk.contents("dir/file").unwrap(), b"a`c");
    disk.damage("dir/file", |bytes| bytes.truncate(2));
    disk.crash();
    assert_eq!(disk.files(), BTreeMap::from([(PathBuf::from("/dir/file"), b"a`".to_vec())]));
    disk.put("dir/file", b"longer");
    disk.crash();
    assert_eq!(read(&disk, "/dir/./x/../file").unwrap(), b"longer");
    assert_eq!(disk.contents("dir"), None);
}

#[test]
fn writes_and_syncs_take_the_time_they_are_given() {
    let disk = CrashDisk::new(1);
    let (clock, hand) = Clock::simulated();
    disk.set_latency(hand, Latency { write: Duration::from_nanos(3), sync: Duration::from_nanos(100) });
    write(&disk, "file", b"x").unwrap();
    disk.sync_directory(path("/")).unwrap();
    read(&disk, "file").unwrap();
    assert_eq!(clock.now(), 203);
}
