use super::*;
use std::io::{ErrorKind, SeekFrom};
use std::sync::Arc;

/// Calls `check` with the real disk and the one in memory, each with an empty directory.
fn on_both_disks(name: &str, check: impl Fn(&dyn Disk, &Path)) {
    let directory = std::env::temp_dir().join(format!("albireo-env-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    for disk in [&RealDisk as &dyn Disk, &MemoryDisk::default()] {
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
    on_both_disks("rename", |disk, directory| {
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
    on_both_disks("read_at", |disk, directory| {
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
    on_both_disks("errors", |disk, directory| {
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
