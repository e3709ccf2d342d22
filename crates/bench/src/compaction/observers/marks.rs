//! What Linux tells of the accessed and dirty bits that the processor sets in page tables, in files.
//!
//! - `/proc/self/clear_refs` clears the accessed bits of the process; `/proc/self/smaps` says of each area how many of its
//!   bytes lie in pages whose bit is set. Bits that the processor holds in its TLB it does not set again: nobody empties it.
//! - `/proc/self/pagemap` says of each page whether it was written since "soft-dirty" bits were cleared, and in which frame
//!   of memory it lies, the latter to the privileged alone.
//! - `/sys/kernel/mm/page_idle/bitmap` has a bit for each frame: it is set by who writes one, and not set any more when the
//!   frame was accessed.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};

const PAGE_BYTES: usize = albireo_storage::observe::PAGE_BYTES;
/// Bytes that `pagemap` has for a page, and the bitmap of frames for 64 of them.
const WORD_BYTES: usize = 8;
/// Bits of a page in `pagemap`: where it lies, and whether it was written.
const FRAME: u64 = (1 << 55) - 1;
const SOFT_DIRTY: u64 = 1 << 55;
const PAGEMAP: &str = "/proc/self/pagemap";

fn opened(path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(open(path, flags | OFlags::CLOEXEC, Mode::empty())?)
}

/// The file that tells of the pages of this process.
pub(super) fn pagemap() -> io::Result<OwnedFd> {
    opened(PAGEMAP, OFlags::RDONLY)
}

/// Clears marks of all pages of this process: "1" accessed bits, "4" soft-dirty ones.
pub(super) fn clear(which: &str) -> io::Result<()> {
    rustix::io::write(opened("/proc/self/clear_refs", OFlags::WRONLY)?, which.as_bytes())?;
    Ok(())
}

/// Areas among these addresses in which a page was accessed.
pub(super) fn referenced_areas(addresses: &Range<usize>) -> io::Result<usize> {
    let file = opened("/proc/self/smaps", OFlags::RDONLY)?;
    let (mut text, mut part) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match rustix::io::read(&file, &mut part[..])? {
            0 => return Ok(areas_in(&String::from_utf8_lossy(&text), addresses)),
            bytes => text.extend_from_slice(&part[..bytes]),
        }
    }
}

/// Reads `smaps`: a line with the addresses of each area, then lines with what is known of it.
fn areas_in(text: &str, addresses: &Range<usize>) -> usize {
    let (mut is_inside, mut areas) = (false, 0);
    for line in text.lines() {
        if let Some(kilobytes) = line.strip_prefix("Referenced:") {
            areas += usize::from(is_inside && !kilobytes.trim().starts_with("0 "));
        } else if let Some(start) = start_of(line) {
            is_inside = addresses.contains(&start);
        }
    }
    areas
}

/// The first address of an area, if a line begins with addresses.
fn start_of(line: &str) -> Option<usize> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    usize::from_str_radix(end, 16).ok()?;
    usize::from_str_radix(start, 16).ok()
}

/// Reads so many words of a file.
fn words(file: &OwnedFd, first: usize, count: usize) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; count * WORD_BYTES];
    let mut there = 0;
    while there < bytes.len() {
        match rustix::io::pread(file, &mut bytes[there..], (first * WORD_BYTES + there) as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => there += more,
        }
    }
    let (words, _) = bytes.as_chunks::<WORD_BYTES>();
    Ok(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
}

/// What `pagemap` says of the pages of these addresses.
fn pages(addresses: &Range<usize>) -> io::Result<Vec<u64>> {
    words(&pagemap()?, addresses.start / PAGE_BYTES, addresses.len() / PAGE_BYTES)
}

/// Pages that were written since soft-dirty bits were cleared.
pub(super) fn soft_dirty_pages(addresses: &Range<usize>) -> io::Result<usize> {
    Ok(pages(addresses)?.into_iter().filter(|page| page & SOFT_DIRTY != 0).count())
}

/// Frames of memory that nobody has accessed since their bits were set.
pub(super) struct Idle {
    bitmap: OwnedFd,
    /// The frames, in order.
    frames: Vec<u64>,
}

impl Idle {
    /// Sets the bits of the frames in which the pages of these addresses lie.
    pub(super) fn set(addresses: &Range<usize>) -> io::Result<Self> {
        let bitmap = opened("/sys/kernel/mm/page_idle/bitmap", OFlags::RDWR)?;
        let mut frames: Vec<u64> = pages(addresses)?.into_iter().map(|page| page & FRAME).collect();
        if frames.contains(&0) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        frames.sort_unstable();
        for (first, bits) in runs_of(&frames) {
            let bytes: Vec<u8> = bits.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let written = rustix::io::pwrite(&bitmap, &bytes, first * WORD_BYTES as u64)?;
            if written < bytes.len() {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(Self { bitmap, frames })
    }

    /// Frames that were accessed.
    pub(super) fn accessed(&self) -> io::Result<usize> {
        let mut accessed = 0;
        for (first, bits) in runs_of(&self.frames) {
            let idle = words(&self.bitmap, first as usize, bits.len())?;
            accessed += bits.iter().zip(idle).map(|(bits, idle)| (bits & !idle).count_ones()).sum::<u32>();
        }
        Ok(accessed as usize)
    }
}

/// The words of a bitmap in which the bits of these frames are set, which are in order: words that follow each other, with
/// the number of the first.
fn runs_of(frames: &[u64]) -> Vec<(u64, Vec<u64>)> {
    let mut runs: Vec<(u64, Vec<u64>)> = Vec::new();
    for frame in frames {
        let (word, bit) = (frame / 64, 1 << (frame % 64));
        match runs.last_mut() {
            Some((first, bits)) if word == *first + bits.len() as u64 - 1 => {
                *bits.last_mut().expect("a run has a word") |= bit;
            }
            Some((first, bits)) if word == *first + bits.len() as u64 => bits.push(bit),
            _ => runs.push((word, vec![bit])),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_with_referenced_pages_are_counted_among_the_addresses() {
        let area = |start: &str, end: &str, referenced: usize| {
            format!(
                "{start}-{end} rw-p 00000000 00:00 0 \nSize: 128 kB\nReferenced: {referenced:>12} kB\nVmFlags: rd wr\n"
            )
        };
        let text = [
            area("1000", "3000", 4),
            area("7f0000000000", "7f0000020000", 128),
            area("7f0000020000", "7f0000040000", 0),
            area("7f0000040000", "7f0000060000", 4),
        ]
        .concat();
        assert_eq!(areas_in(&text, &(0x7f00_0000_0000..0x7f00_0006_0000)), 2);
        assert_eq!(areas_in(&text, &(0x7f00_0002_0000..0x7f00_0006_0000)), 1);
        assert_eq!(areas_in(&text, &(0..0x1_0000)), 1);
    }

    #[test]
    fn bits_of_frames_lie_in_runs_of_words() {
        let frames = [0, 3, 63, 64, 130, 320, 383, 384];
        let expected = vec![(0, vec![1 | 1 << 3 | 1 << 63, 1, 1 << 2]), (5, vec![1 | 1 << 63, 1])];
        assert_eq!(runs_of(&frames), expected);
        assert_eq!(runs_of(&[]), []);
    }
}
