//! Removes what is behind the end of a log.

use std::path::Path;

use albireo_env::Disk;

use crate::error::{Attempt, Failure};
use crate::format::{SECTOR_BYTES, SEGMENT_HEADER_BYTES};
use crate::reader::End;
use crate::segment;

/// Makes the log end where `end` says, durably: removes the segments behind it and cuts the last one
/// behind its last frame. What is left of it is written once more: a sync that failed may have left frames that
/// are read although no disk has them, and which no later sync would write. To be called before a [`Log`](crate::Log) goes on, also when nothing is torn:
/// what no frame uses is given back. Can be repeated, and interrupted by crashes.
///
/// # Errors
/// The operating system's.
pub fn repair(disk: &dyn Disk, directory: &Path, end: &End) -> Result<(), Failure> {
    let segments = segment::list(disk, directory)?;
    // The newest first: a crash in between leaves no gap.
    let mut removed = false;
    for found in segments.iter().rev().take_while(|found| found.number >= end.next_segment) {
        disk.remove_file(&found.path).attempting("remove", &found.path)?;
        removed = true;
    }
    if removed {
        disk.sync_directory(directory).attempting("sync the directory", directory)?;
    }
    if let Some((path, bytes)) = &end.tail {
        assert!(*bytes >= SEGMENT_HEADER_BYTES as u64, "a segment with a header keeps it");
        assert_eq!(*bytes % SECTOR_BYTES as u64, 0, "a log ends with whole sectors");
        let file = disk.open_placed(path).attempting("open", path)?;
        file.set_len(*bytes).attempting("cut", path)?;
        let frames = segment::read(disk, path)?;
        file.write_at(&frames, 0).attempting("write to", path)?;
        file.sync().attempting("sync", path)?;
    }
    Ok(())
}
