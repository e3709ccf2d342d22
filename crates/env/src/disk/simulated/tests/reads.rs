//! Reads that go wrong.

use super::*;

/// Has reads of files whose names end in `.cold` go wrong.
fn cold_faults(disk: &CrashDisk, failing: u16, short: u16, damaged: u16) {
    let faults =
        ReadFaults { failing_per_mille: failing, short_per_mille: short, damaged_per_mille: damaged };
    disk.set_read_faults("cold", faults);
}

#[test]
fn reads_of_chosen_files_fail_until_they_are_to_be_sound_again() {
    let disk = CrashDisk::new(1);
    for name in ["a/1.cold", "a/2.warm", "cold"] {
        disk.put(name, b"abc");
    }
    let mut opened = disk.open(path("a/1.cold")).unwrap();
    let direct = disk.open_direct(path("a/1.cold")).unwrap();
    cold_faults(&disk, 1_000, 0, 0);
    let mut bytes = [0; 3];
    assert_eq!(opened.read_at(&mut bytes, 0).unwrap_err().raw_os_error(), EIO);
    assert_eq!(opened.read(&mut bytes).unwrap_err().raw_os_error(), EIO);
    assert_eq!(direct.read_at(&mut bytes, 0).unwrap_err().raw_os_error(), EIO);
    assert_eq!(opened.len().unwrap(), 3);
    assert_eq!(read(&disk, "a/1.cold").unwrap_err().raw_os_error(), EIO);
    assert_eq!(read(&disk, "a/2.warm").unwrap(), b"abc");
    assert_eq!(read(&disk, "cold").unwrap(), b"abc");
    // Writes are others' faults.
    write(&disk, "a/3.cold", b"def").unwrap();
    disk.set_faults(Faults::default());
    assert_eq!(read(&disk, "a/3.cold").unwrap_err().raw_os_error(), EIO);
    cold_faults(&disk, 0, 0, 0);
    assert_eq!((opened.read(&mut bytes).unwrap(), bytes), (3, *b"abc"), "a read that fails moves no cursor");
    assert_eq!(read(&disk, "a/3.cold").unwrap(), b"def");
}

#[test]
fn short_read_gives_any_part_from_the_start() {
    let counts = sample(500, |disk| {
        disk.put("1.cold", b"abcdef");
        cold_faults(disk, 0, 1_000, 0);
        let (file, mut bytes) = (disk.open(path("1.cold")).unwrap(), [0; 4]);
        let count = file.read_at(&mut bytes, 1).unwrap();
        assert_eq!(bytes[..count], b"bcde"[..count]);
        assert_eq!(file.read_at(&mut bytes, 6).unwrap(), 0);
        count
    });
    assert_eq!(counts, (0..=4).collect());
}

#[test]
fn damaged_read_gives_one_wrong_bit_that_is_not_in_the_file() {
    let bits = sample(1_000, |disk| {
        disk.put("1.cold", &[0; 4]);
        cold_faults(disk, 0, 0, 1_000);
        let (file, mut bytes) = (disk.open(path("1.cold")).unwrap(), [0; 4]);
        assert_eq!(file.read_at(&mut bytes, 1).unwrap(), 3);
        let bit = u32::from_le_bytes(bytes);
        assert!(bit.is_power_of_two());
        assert_eq!(file.read_at(&mut bytes, 4).unwrap(), 0);
        cold_faults(disk, 0, 0, 0);
        assert_eq!((file.read_at(&mut bytes, 0).unwrap(), bytes), (4, [0; 4]));
        assert_eq!(disk.contents("1.cold").unwrap(), [0_u8; 4]);
        bit.trailing_zeros()
    });
    assert_eq!(bits, (0..24).collect());
}

#[test]
fn damaged_file_gives_other_bytes_to_who_has_it_open() {
    let disk = CrashDisk::new(1);
    disk.put("1.cold", b"abc");
    let (file, mut bytes) = (disk.open(path("1.cold")).unwrap(), [0; 3]);
    disk.flip_bit("1.cold", 9);
    assert_eq!((file.read_at(&mut bytes, 0).unwrap(), bytes), (3, *b"a`c"));
    disk.damage("1.cold", |bytes| bytes.truncate(1));
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 1);
    assert_eq!(file.read_at(&mut bytes, 1).unwrap(), 0);
}

#[test]
fn faults_of_reads_come_as_often_as_asked_and_change_nothing_where_they_are_off() {
    let disk = CrashDisk::new(3);
    disk.put("1.cold", &[0; 64]);
    cold_faults(&disk, 100, 300, 0);
    let file = disk.open(path("1.cold")).unwrap();
    let reads: Vec<_> = (0..2_000).map(|_| file.read_at(&mut [1; 64], 0)).collect();
    let failed = reads.iter().filter(|read| read.is_err()).count();
    let short = reads.iter().flatten().filter(|count| **count < 64).count();
    assert!((150..250).contains(&failed) && (450..630).contains(&short), "{failed} {short}");

    let run = |seed: u64, are_set: bool, extension: &str| {
        let disk = CrashDisk::new(seed);
        if are_set {
            cold_faults(&disk, 500, 500, 500);
        }
        let name = format!("file.{extension}");
        for round in 0..20_u8 {
            disk.open_placed(path(&name)).unwrap().write_at(&[round; 1_500], u64::from(round)).unwrap();
            let _ = read(&disk, &name);
            disk.crash();
        }
        disk.files()
    };
    assert!((0..50).all(|seed| run(seed, true, "warm") == run(seed, false, "warm")));
    assert!((0..50).any(|seed| run(seed, true, "cold") != run(seed, false, "cold")));
    assert!((0..50).all(|seed| run(seed, true, "cold") == run(seed, true, "cold")));
}
