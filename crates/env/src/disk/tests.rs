use super::*;
use std::io::{ErrorKind, SeekFrom};
use std::sync::Arc;

/// Calls `check` with each kind of disk that can do everything, each with an empty directory.
fn on_all_disks(name: &str, check: impl Fn(&dyn Disk, &Path)) {
    let directory = std::env::temp_dir().join(format!("albireo-env-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    for disk in [&RealDisk as &dyn Disk, &MemoryDisk::default(), &CrashDisk::new(1)] {
        disk.create_dir_all(&directory).unwrap();
        check(disk, &directory);
    }
    fs::remove_dir_all(&directory).unwrap();
}

fn write(disk: &dyn Disk, path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = disk.create(path)?;
    file.write_all(contents)?;
    file.sync()
}

fn read(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    disk.open(path)?.read_to_end(&mut contents)?;
    Ok(contents)
}

#[test]
fn file_written_and_renamed_reads_back_under_its_new_name() {
    on_all_disks("rename", |disk, directory| {
        let (old, new) = (directory.join("old"), directory.join("new"));
        write(disk, &new, b"to be replaced").unwrap();
        write(disk, &old, b"kept").unwrap();
        disk.rename(&old, &new).unwrap();
        assert_eq!(read(disk, &new).unwrap(), b"kept");
        assert_eq!(disk.open(&old).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(disk.read_dir(directory).unwrap(), std::slice::from_ref(&new));
        disk.remove_file(&new).unwrap();
        assert_eq!(disk.read_dir(directory).unwrap(), [] as [PathBuf; 0]);
        assert!(disk.free_bytes(directory).unwrap() > 0);
    });
}

#[test]
fn file_read_at_an_offset_keeps_its_cursor() {
    on_all_disks("read_at", |disk, directory| {
        let path = directory.join("file");
        write(disk, &path, b"0123456789").unwrap();
        let mut file = disk.open(&path).unwrap();
        let mut buffer = [0; 4];
        assert_eq!(file.read_at(&mut buffer, 8).unwrap(), 2);
        assert_eq!(&buffer[..2], b"89");
        assert_eq!(file.read_at(&mut buffer, 100).unwrap(), 0);
        assert_eq!(file.seek(SeekFrom::End(-3)).unwrap(), 7);
        let mut rest = String::new();
        file.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "789");
        assert_eq!(file.len().unwrap(), 10);
        assert!(!file.is_empty().unwrap());
    });
}

#[test]
fn paths_that_do_not_fit_the_operation_say_why() {
    on_all_disks("errors", |disk, directory| {
        let missing = directory.join("no").join("such");
        assert_eq!(disk.open(directory).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(disk.create(directory).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(disk.create(&missing).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(disk.read_dir(&missing).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(disk.remove_file(&missing).unwrap_err().kind(), ErrorKind::NotFound);
        let file = directory.join("file");
        write(disk, &file, b"").unwrap();
        assert_eq!(disk.read_dir(&file).unwrap_err().kind(), ErrorKind::NotADirectory);
        assert_eq!(disk.create_dir_all(&file).unwrap_err().kind(), ErrorKind::AlreadyExists);
    });
}

#[test]
fn placed_file_written_out_of_order_has_zeros_between_and_grows_at_its_end() {
    on_all_disks("placed", |disk, directory| {
        let path = directory.join("segment");
        let file = disk.open_placed(&path).unwrap();
        file.write_at(b"later", 6).unwrap();
        file.write_at(b"first", 0).unwrap();
        file.write_at(b"", 100).unwrap();
        assert_eq!(read(disk, &path).unwrap(), b"first\0later");
        // Opened again, it keeps what it has.
        let again = disk.open_placed(&path).unwrap();
        again.write_at(b"F", 0).unwrap();
        again.write_at(b"st!", 9).unwrap();
        again.sync().unwrap();
        assert_eq!(read(disk, &path).unwrap(), b"First\0latst!");
        assert_eq!(disk.open_placed(directory).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(disk.open_placed(&directory.join("no/file")).unwrap_err().kind(), ErrorKind::NotFound);
    });
}

#[test]
fn placed_file_allocated_and_cut_has_the_length_asked_for() {
    on_all_disks("allocate", |disk, directory| {
        let path = directory.join("segment");
        let file = disk.open_placed(&path).unwrap();
        file.write_at(b"abc", 0).unwrap();
        file.allocate(0).unwrap();
        file.allocate(2).unwrap();
        assert_eq!(read(disk, &path).unwrap(), b"abc");
        file.allocate(5).unwrap();
        assert_eq!(read(disk, &path).unwrap(), b"abc\0\0");
        file.set_len(1).unwrap();
        assert_eq!(disk.open(&path).unwrap().len().unwrap(), 1);
        file.set_len(4).unwrap();
        assert_eq!(read(disk, &path).unwrap(), b"a\0\0\0");
    });
}

#[test]
fn discarded_bytes_leave_the_file_and_the_others_stay() {
    on_all_disks("discard", |disk, directory| {
        let path = directory.join("file");
        let file = disk.open_placed(&path).unwrap();
        file.write_at(&[7; 100_000], 0).unwrap();
        file.sync().unwrap();
        file.discard(10_000, 80_000);
        file.discard(95_000, u64::MAX - 95_000);
        file.discard(0, 0);
        let contents = read(disk, &path).unwrap();
        assert_eq!(contents.len(), 100_000);
        let stays = contents[..10_000].iter().chain(&contents[90_000..95_000]);
        assert!(stays.copied().all(|byte| byte == 7));
    });
    // Where the file system takes room back, it has it.
    let path = std::env::temp_dir().join(format!("albireo-env-room-{}", std::process::id()));
    let file = RealDisk.open_placed(&path).unwrap();
    file.write_at(&vec![7; 1 << 20], 0).unwrap();
    file.sync().unwrap();
    let room = || std::os::unix::fs::MetadataExt::blocks(&fs::metadata(&path).unwrap());
    let before = room();
    file.discard(0, 1 << 20);
    file.sync().unwrap();
    let mode = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    let is_taken = rustix::fs::fallocate(fs::OpenOptions::new().write(true).open(&path).unwrap(), mode, 0, 1);
    assert!(is_taken.is_err() || room() < before, "{before} before, {} now", room());
    fs::remove_file(&path).unwrap();
}

#[test]
fn directory_synced_must_be_there() {
    on_all_disks("sync_directory", |disk, directory| {
        write(disk, &directory.join("file"), b"x").unwrap();
        disk.sync_directory(directory).unwrap();
        let missing = disk.sync_directory(&directory.join("missing"));
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    });
}

#[test]
fn lock_that_is_taken_is_refused_until_dropped() {
    on_all_disks("lock", |disk, directory| {
        let path = directory.join("lock");
        let held = disk.lock(&path).unwrap();
        assert_eq!(disk.lock(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
        let other = disk.lock(&directory.join("other")).unwrap();
        drop(held);
        let again = disk.lock(&path).unwrap();
        assert_eq!(disk.lock(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
        drop((again, other));
        assert_eq!(read(disk, &path).unwrap(), b"");
        assert_eq!(disk.lock(&directory.join("no/lock")).unwrap_err().kind(), ErrorKind::NotFound);
    });
}

#[test]
fn lock_dropped_is_free_although_a_child_still_has_a_copy_of_its_descriptor() {
    let directory = std::env::temp_dir().join(format!("albireo-lock-copy-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join("lock");
    let lock = RealLock { file: File::create(&path).unwrap() };
    lock.file.try_lock().unwrap();
    // What a child has between its birth and its program.
    let copy = lock.file.try_clone().unwrap();
    assert_eq!(RealDisk.lock(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(lock);
    drop(RealDisk.lock(&path).unwrap());
    drop(copy);
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn directory_removed_takes_everything_below_and_nothing_beside() {
    on_all_disks("remove_dir_all", |disk, directory| {
        let (gone, stays) = (directory.join("a"), directory.join("ab"));
        disk.create_dir_all(&gone.join("b/c")).unwrap();
        write(disk, &gone.join("b/c/file"), b"x").unwrap();
        write(disk, &gone.join("file"), b"x").unwrap();
        write(disk, &stays, b"kept").unwrap();
        disk.remove_dir_all(&gone).unwrap();
        assert_eq!(disk.read_dir(directory).unwrap(), std::slice::from_ref(&stays));
        assert_eq!(disk.open(&gone.join("b/c/file")).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(disk.remove_dir_all(&gone).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(disk.remove_dir_all(&stays).unwrap_err().kind(), ErrorKind::NotADirectory);
        assert_eq!(read(disk, &stays).unwrap(), b"kept");
    });
}

#[test]
fn memory_disk_over_its_capacity_writes_what_fits_then_is_full() {
    let disk = MemoryDisk::with_capacity(5);
    let failed = write(&disk, Path::new("file"), b"1234567").unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::StorageFull);
    assert_eq!(disk.get("file").unwrap(), b"12345");
    assert_eq!(disk.free_bytes(Path::new("")).unwrap(), 0);
    disk.remove_file(Path::new("file")).unwrap();
    assert_eq!(disk.free_bytes(Path::new("")).unwrap(), 5);
    disk.put("a/b", b"123");
    assert_eq!(read(&disk, Path::new("a/b")).unwrap(), b"123");
}

#[test]
fn faulty_disk_fails_from_the_chosen_write_until_healed() {
    let disk = FaultyDisk::failing_after(Arc::new(MemoryDisk::default()), 2);
    let path = Path::new("file");
    let mut file = disk.create(path).unwrap();
    file.write_all(b"first").unwrap();
    assert_eq!(file.write_all(b"second").unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.sync().unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.create(path).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.free_bytes(path).unwrap(), 0);
    assert_eq!(read(&disk, path).unwrap(), b"first");
    disk.heal(1);
    file.write_all(b"third").unwrap();
    assert_eq!(read(&disk, path).unwrap(), b"firstthird");
}

#[test]
fn memory_disk_out_of_room_refuses_to_allocate_and_counts_what_is_cut() {
    let disk = MemoryDisk::with_capacity(10);
    let file = disk.open_placed(Path::new("file")).unwrap();
    file.allocate(8).unwrap();
    assert_eq!(file.allocate(11).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.set_len(11).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.write_at(b"abc", 8).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.free_bytes(Path::new("")).unwrap(), 2);
    file.set_len(3).unwrap();
    assert_eq!(disk.free_bytes(Path::new("")).unwrap(), 7);
    // Without its name the file has left the account.
    disk.remove_file(Path::new("file")).unwrap();
    file.set_len(1).unwrap();
    assert_eq!(disk.free_bytes(Path::new("")).unwrap(), 10);
}

#[test]
fn faulty_disk_counts_every_write_to_a_placed_file() {
    let disk = FaultyDisk::failing_after(Arc::new(MemoryDisk::default()), 4);
    let path = Path::new("dir/file");
    disk.create_dir_all(path.parent().unwrap()).unwrap();
    let file = disk.open_placed(path).unwrap();
    file.allocate(4).unwrap();
    file.write_at(b"ab", 0).unwrap();
    file.sync().unwrap();
    assert_eq!(file.write_at(b"cd", 0).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.set_len(0).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.allocate(9).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.sync().unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.sync_directory(Path::new("dir")).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(read(&disk, path).unwrap(), b"ab\0\0");
    let lock = disk.lock(path).unwrap();
    assert_eq!(disk.lock(path).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(lock);
    disk.remove_dir_all(Path::new("dir")).unwrap();
    disk.heal(1);
    assert_eq!(disk.open(path).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn second_name_is_the_same_file_on_a_real_disk_and_refused_elsewhere() {
    let directory = std::env::temp_dir().join(format!("albireo-links-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let (first, second) = (directory.join("first"), directory.join("second"));
    fs::write(&first, b"same").unwrap();
    RealDisk.hard_link(&first, &second).unwrap();
    fs::remove_file(&first).unwrap();
    assert_eq!(fs::read(&second).unwrap(), b"same");
    fs::write(&first, b"other").unwrap();
    let error = RealDisk.hard_link(&first, &second).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    fs::remove_dir_all(&directory).unwrap();
    let error = MemoryDisk::default().hard_link(&first, &second).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
}
