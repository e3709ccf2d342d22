//! Files that are not what was written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo_env::{Disk, Env, MemoryDisk};
use albireo_redo::{Evidence, Fault, LogReader, LogStart, ReadError, StartError, repair};
use albireo_testing::random_tests;
use proptest::prelude::*;

use crate::support::{DIRECTORY, Frames, LOG_ID, config, put, read, reopen, texts};

fn segment(number: u64) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{number:020}.log"))
}

/// A log of three segments with two frames, one and one, and a blank one; what is in it.
fn small() -> (Env, MemoryDisk, Frames) {
    let (env, _) = Env::simulated(1);
    let memory = MemoryDisk::default();
    let env = Env { disk: Arc::new(memory.clone()), ..env };
    let (_, _, log) = reopen(&env, config(2, 4096 + 1536));
    for text in ["one", "two", "three", "four"] {
        put(&log, Some(1), text.as_bytes());
        put(&log, None, &text.as_bytes().repeat(if text == "three" { 200 } else { 1 }));
        put(&log, Some(0), text.as_bytes());
        log.step();
    }
    log.prepare();
    drop(log);
    let (frames, end) = read(&env.disk, 0);
    assert_eq!(end.unwrap().torn, None);
    assert_eq!(frames.len(), 4);
    (env, memory, frames)
}

fn on_disk(files: &[(u64, Vec<u8>)]) -> Arc<dyn Disk> {
    let disk = MemoryDisk::default();
    disk.create_dir_all(Path::new(DIRECTORY)).unwrap();
    files.iter().for_each(|(number, bytes)| disk.put(segment(*number), bytes));
    Arc::new(disk)
}

fn files_of(memory: &MemoryDisk) -> Vec<(u64, Vec<u8>)> {
    (1..).map_while(|number| Some((number, memory.get(segment(number))?))).collect()
}

#[test]
fn every_single_bit_that_flips_is_found_and_no_record_is_wrong() {
    let (_, memory, frames) = small();
    let files = files_of(&memory);
    assert_eq!(files.len(), 4, "frames 1 and 2, 3, 4, and one that is prepared");
    let last_frame = (3, 4096);
    for (index, (number, bytes)) in files.iter().enumerate() {
        // Of zeros, one bit a byte.
        let bits = (0..bytes.len() * 8).filter(|bit| bytes[bit / 8] != 0 || bit % 8 == bit / 8 % 8);
        for bit in bits {
            let mut damaged = files.clone();
            damaged[index].1[bit / 8] ^= 1 << (bit % 8);
            let disk = on_disk(&damaged);
            let (found, end) = read(&disk, 0);
            assert_eq!(found[..], frames[..found.len()], "segment {number}, bit {bit}");
            let sector = bit / 8 / 512 * 512;
            match end {
                // Behind the last frame of a segment that another one follows.
                Ok(end) if end.torn.is_none() && *number < last_frame.0 => {
                    assert!(
                        bytes[sector..].iter().all(|&byte| byte == 0),
                        "segment {number}, bit {bit}: not found"
                    );
                    assert_eq!(found.len(), 4);
                }
                Ok(end) => {
                    assert!(end.torn.is_some(), "segment {number}, bit {bit}: not found");
                    assert!((*number, bit / 8) >= last_frame, "segment {number}, bit {bit}: torn");
                    assert!(found.len() >= 3);
                }
                Err(ReadError::Corrupt(corruption)) => {
                    assert_eq!(corruption.segment, *number);
                    assert!(corruption.offset <= bit as u64 / 8);
                }
                Err(error) => panic!("segment {number}, bit {bit}: {error}"),
            }
        }
    }
}

#[test]
fn log_cut_at_every_byte_of_its_last_frame_keeps_the_frames_before() {
    let (_, memory, frames) = small();
    let files = &files_of(&memory)[..3];
    for bytes in 4096..files[2].1.len() {
        let mut cut = files.to_vec();
        cut[2].1.truncate(bytes);
        let disk = on_disk(&cut);
        let (found, end) = read(&disk, 0);
        let end = end.unwrap();
        let whole = bytes >= 4096 + 512;
        assert_eq!(found[..], frames[..if whole { 4 } else { 3 }]);
        assert_eq!(end.torn.is_some(), !whole && bytes > 4096);
        repair(&*disk, Path::new(DIRECTORY), &end).unwrap();
        let (again, end) = read(&disk, 0);
        assert_eq!(again, found);
        assert_eq!(end.unwrap().torn, None);
    }
}

#[test]
fn corruption_names_file_byte_frame_record_and_why_it_is_no_torn_tail() {
    let (_, memory, frames) = small();
    let mut files = files_of(&memory);
    let second = 4096 + 512;
    // The payload of the second frame's second record.
    let place = files[0].1[second..].windows(3).enumerate().filter(|(_, bytes)| *bytes == b"two");
    let place = second + place.map(|(at, _)| at).nth(1).unwrap();
    files[0].1[place] = b'T';
    let disk = on_disk(&files);
    let mut reader = LogReader::open(Arc::clone(&disk), Path::new(DIRECTORY), 0, Some(LOG_ID)).unwrap();
    assert!(reader.next_frame().unwrap().is_some());
    let error = reader.next_frame().unwrap_err();
    let ReadError::Corrupt(corruption) = &error else { panic!("{error}") };
    assert_eq!((corruption.segment, corruption.sequence, corruption.ordinal), (1, 2, Some(5)));
    assert!(corruption.offset as usize > second && (corruption.offset as usize) < place);
    let message = error.to_string();
    for part in ["00000000000000000001.log", "frame 2", "record 5", "CRC", "segment 2 follows"] {
        assert!(message.contains(part), "{message}");
    }
    // Whoever decides so goes on with what is before it.
    let end = reader.give_up();
    assert_eq!((end.next_sequence, end.next_ordinal, end.next_segment), (2, 4, 2));
    repair(&*disk, Path::new(DIRECTORY), &end).unwrap();
    let (found, again) = read(&disk, 0);
    assert_eq!(found[..], frames[..1]);
    assert_eq!(again.unwrap().torn, None);
}

#[test]
fn frame_damaged_before_another_in_the_last_segment_is_corrupt() {
    let (env, _) = Env::simulated(1);
    let memory = MemoryDisk::default();
    let env = Env { disk: Arc::new(memory.clone()), ..env };
    let (_, _, log) = reopen(&env, config(1, 16384));
    for text in ["one", "two", "three"] {
        put(&log, Some(0), text.as_bytes());
        log.step();
    }
    drop(log);
    let sound = memory.get(segment(1)).unwrap();
    for (frame, place) in [(1, 4096), (1, 4096 + 80), (2, 4608), (2, 4608 + 64), (2, 4608 + 500)] {
        let mut bytes = sound.clone();
        bytes[place] ^= 1;
        memory.put(segment(1), &bytes);
        let (found, end) = read(&env.disk, 0);
        assert_eq!(found.len(), frame - 1);
        let Err(ReadError::Corrupt(corruption)) = end else { panic!("{end:?}") };
        let (sequence, offset) = (frame as u64 + 1, 4096 + 512 * frame as u64);
        assert_eq!(corruption.evidence, Evidence::LaterFrame { sequence, segment: 1, offset });
    }
}

#[test]
fn records_that_change_places_are_found() {
    let (env, _) = Env::simulated(1);
    let memory = MemoryDisk::default();
    let env = Env { disk: Arc::new(memory.clone()), ..env };
    let (_, _, log) = reopen(&env, config(1, 16384));
    put(&log, Some(0), b"first");
    put(&log, Some(0), b"other");
    log.close().unwrap();
    let mut bytes = memory.get(segment(1)).unwrap();
    let body = 4096 + 64;
    let record = 4 + 1 + 3 + 5;
    assert_eq!(&bytes[body + record - 5..body + record], b"first");
    let (first, second) = bytes[body..body + 2 * record].split_at_mut(record);
    first.swap_with_slice(second);
    memory.put(segment(1), &bytes);
    let (found, end) = read(&env.disk, 0);
    assert!(found.is_empty());
    assert!(matches!(end.unwrap().torn.unwrap().fault, Fault::Crc { .. }));
}

#[test]
fn damage_before_the_first_wanted_frame_does_not_stop_reading() {
    let (_, memory, frames) = small();
    let mut files = files_of(&memory);
    files[0].1[4096 + 80] ^= 1;
    let (found, end) = read(&on_disk(&files), 2);
    assert_eq!(found[..], frames[1..]);
    assert!(end.is_ok());
}

#[test]
fn missing_segments_are_corruption_and_missing_old_ones_are_not() {
    let (_, memory, frames) = small();
    let files = files_of(&memory);
    let without =
        |number: u64| -> Vec<_> { files.iter().filter(|(other, _)| *other != number).cloned().collect() };
    let fault = |end: Result<_, ReadError>| match end {
        Err(ReadError::Corrupt(corruption)) => corruption.fault,
        other => panic!("{other:?}"),
    };
    let (found, end) = read(&on_disk(&without(2)), 0);
    assert_eq!((found.len(), fault(end)), (2, Fault::MissingSegment { number: 2 }));
    let (found, end) = read(&on_disk(&without(1)), 3);
    assert_eq!(found[..], frames[2..]);
    assert!(end.is_ok());
    let (_, end) = read(&on_disk(&without(1)), 2);
    assert_eq!(fault(end), Fault::MissingFrames { oldest: 3 });
    // A segment under another's name.
    let mut renamed = files.clone();
    renamed[1].1 = files[0].1.clone();
    let (_, end) = read(&on_disk(&renamed), 0);
    assert!(matches!(fault(end), Fault::OtherSegment { number: 1, .. }));
}

#[test]
fn segment_of_another_format_is_refused_by_number() {
    let (_, memory, _) = small();
    let mut files = files_of(&memory);
    files[1].1[12] = 9;
    let (_, end) = read(&on_disk(&files), 0);
    assert!(matches!(end, Err(ReadError::Corrupt(_))), "without its CRC it is damage");
    let crc = crc32c::crc32c_append(crc32c::crc32c(&files[1].1[..8]), &files[1].1[12..4096]);
    files[1].1[8..12].copy_from_slice(&crc.to_le_bytes());
    let (found, end) = read(&on_disk(&files), 0);
    assert_eq!(found.len(), 2);
    let message = end.unwrap_err().to_string();
    assert!(message.contains("was written by log format 9, this program reads 2"), "{message}");
}

#[test]
fn log_of_another_database_is_refused() {
    let (_, memory, _) = small();
    let disk = on_disk(&files_of(&memory));
    let error = LogReader::open(disk, Path::new(DIRECTORY), 0, Some(1)).unwrap_err();
    assert!(error.to_string().contains("it belongs to log 0123456789abcdef"), "{error}");
}

#[test]
fn log_is_not_started_over_another() {
    let (env, _, _) = small();
    let start = LogStart { log_id: LOG_ID, next_sequence: 3, next_ordinal: 7, next_segment: 2 };
    let error = albireo_redo::Log::start(&env, config(2, 8192), start).unwrap_err();
    assert!(matches!(error, StartError::InTheWay { .. }), "{error}");
    // Frames behind a header that was lost are in the way too.
    let (env, memory, _) = small();
    let mut third = memory.get(segment(3)).unwrap();
    third[..4096].fill(0);
    memory.put(segment(3), &third);
    let start = LogStart { next_segment: 3, ..start };
    assert!(matches!(
        albireo_redo::Log::start(&env, config(2, 8192), start),
        Err(StartError::InTheWay { .. })
    ));
}

#[test]
fn copy_of_the_log_inside_of_a_torn_record_is_no_later_frame() {
    let (env, memory, _) = small();
    let copy = files_of(&memory)[0].1[4096..].to_vec();
    let (_, _, log) = reopen(&env, config(2, 16384));
    put(&log, Some(0), &copy);
    log.step();
    drop(log);
    let mut last = memory.get(segment(4)).unwrap();
    last[4096 + 64] ^= 1;
    memory.put(segment(4), &last);
    let (found, end) = read(&env.disk, 0);
    assert_eq!(found.len(), 4);
    let torn = end.unwrap().torn.unwrap();
    assert_eq!(torn.offset, 4096);
    assert!(torn.to_string().contains("00000000000000000004.log from byte 4096"), "{torn}");
    assert_eq!(texts(&found)[2], "one");
}

random_tests! {
    #![cases(256)]

    #[test]
    fn garbage_never_panics_and_never_gives_records(
        files in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9_000), 1..3),
    ) {
        let files: Vec<_> = (1..).zip(files).collect();
        let (found, _) = read(&on_disk(&files), 0);
        prop_assert!(found.is_empty());
    }

    #[test]
    fn scattered_damage_never_panics_and_never_gives_wrong_records(
        damage in prop::collection::vec((0usize..4, 0usize..5_632, any::<u8>()), 1..20),
        cut in prop::option::of((0usize..4, 0usize..5_632)),
    ) {
        let (_, memory, frames) = small();
        let mut files = files_of(&memory);
        for (file, at, byte) in damage {
            let bytes = &mut files[file].1;
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Some((file, at)) = cut {
            files[file].1.truncate(at);
        }
        let (found, _) = read(&on_disk(&files), 0);
        prop_assert_eq!(&found[..], &frames[..found.len()]);
    }
}
