//! Files that change while no process runs: bits that flip, sectors that are overwritten, files cut short.
//!
//! I-1 Damage is found, or is where nobody looks: a database that opens holds what it has to. An archive that
//! is damaged is left out, and so is one of the two control files; a log that is damaged is refused. Only what a
//! crash came so soon after that the control files do not say it was durable is as if the crash had interrupted
//! writing it, and then it is said that it may be missing.

use std::ops::Range;
use std::path::{Path, PathBuf};

use albireo::{RecoveryReport, SqlError, SqlState};
use albireo_env::CrashDisk;
use albireo_redo::{Control, Controls, Frame, LogReader, SEGMENT_HEADER_BYTES, segment_number};

use super::Simulation;
use super::archives::{Expected, archive_directory, control_paths, is_segment, log_directory, manifest_path};
use crate::random::Random;

/// Bytes of a sector.
const SECTOR: usize = 512;

/// A file that was damaged.
#[derive(Clone, Debug)]
pub(super) struct Harm {
    pub(super) path: PathBuf,
    before: Vec<u8>,
    after: Vec<u8>,
    /// The first byte that has changed, and the one behind the last.
    pub(super) from: usize,
    to: usize,
}

/// A damage of the log.
#[derive(Debug)]
pub(super) struct LogHarm {
    harm: Harm,
    reach: Reach,
    /// A recovery that failed afterwards may have repaired it.
    pub(super) is_old: bool,
}

/// What a damage of the log hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    /// Frames that others follow or that the control files know, or what describes them.
    Inside,
    /// The last frame, or several, that no control file knows; so many records come before them.
    Last(u64),
    /// What comes behind the last frame of a segment.
    Behind,
}

impl Harm {
    /// Damages a file of at least one byte, at a byte of it or behind.
    pub(super) fn new(
        disk: &CrashDisk,
        path: PathBuf,
        at: usize,
        can_cut: bool,
        random: &mut Random,
    ) -> Option<Self> {
        let before = disk.contents(&path).filter(|bytes| at < bytes.len())?;
        let mut after = before.clone();
        match random.below(10) {
            0..3 => {
                let start = at / SECTOR * SECTOR;
                let end = (start + SECTOR).min(after.len());
                after[start..end].iter_mut().for_each(|byte| *byte = random.bits() as u8 | 1);
            }
            3..5 if can_cut => after.truncate(at),
            5 if can_cut => after.clear(),
            _ => after[at] ^= 1 << random.below(8),
        }
        let from = before.iter().zip(&after).position(|(old, new)| old != new);
        let from = from.or_else(|| (after.len() < before.len()).then_some(after.len()))?;
        let same = before.iter().zip(&after).rev().take_while(|(old, new)| old == new).count();
        let to = if after.len() < before.len() { before.len() } else { before.len() - same };
        disk.damage(&path, |bytes| bytes.clone_from(&after));
        Some(Self { path, before, after, from, to })
    }

    /// Whether it has changed bytes that are at a place of a file, or were.
    pub(super) fn hits(&self, path: &Path, place: &Range<u64>) -> bool {
        self.path == path && (self.from as u64) < place.end && place.start < self.to as u64
    }

    /// Whether it is still there: nobody has written what was damaged.
    fn is_there(&self, disk: &CrashDisk) -> bool {
        let is_cut = self.after.len() < self.before.len();
        disk.contents(&self.path).is_some_and(|bytes| match is_cut {
            true => bytes == self.after,
            false => bytes.get(self.from..self.to) == Some(&self.after[self.from..self.to]),
        })
    }

    /// Makes it good if it is still there.
    fn undo(&self, disk: &CrashDisk) {
        if self.is_there(disk) {
            disk.damage(&self.path, |bytes| {
                bytes.resize(bytes.len().max(self.to), 0);
                bytes[self.from..self.to].copy_from_slice(&self.before[self.from..self.to]);
            });
        }
    }
}

impl Simulation {
    /// Damages a file now and then.
    pub(super) fn damage(&mut self) -> Result<(), String> {
        if !self.random.percent(self.world.damages) {
            return Ok(());
        }
        match self.random.below(10) {
            0..4 => self.damage_archive(),
            4..6 => self.damage_control(),
            _ => self.damage_log(),
        }
    }

    /// Whether a file of an archive was damaged, and still is.
    pub(super) fn is_harmed(&self, path: &Path) -> bool {
        self.harms.iter().any(|harm| harm.path == path && harm.is_there(&self.machine.disk))
    }

    fn damage_archive(&mut self) -> Result<(), String> {
        let listing = self.listing(&self.machine.image())?;
        let index = if self.random.percent(70) { 0 } else { self.random.below(3) as usize };
        let Some(archive) = listing.complete.get(index) else { return Ok(()) };
        let files = archive.files().map(|file| archive_directory().join(&file.path));
        let mut paths: Vec<PathBuf> = files.collect();
        paths.push(manifest_path(archive.number));
        let last = paths.len() as u64 - 1;
        let which = if self.random.percent(30) { last } else { self.random.below(last + 1) };
        let path = paths.swap_remove(which as usize);
        if self.is_harmed(&path) {
            return Ok(());
        }
        let bytes = self.machine.disk.contents(&path).map_or(0, |bytes| bytes.len() as u64);
        let at = self.random.below(bytes.max(1)) as usize;
        let harm = Harm::new(&self.machine.disk, path, at, true, &mut self.random);
        if let Some(harm) = harm {
            self.trace.note(format_args!("{} is damaged from byte {}", harm.path.display(), harm.from));
            self.counts.damages += 1;
            self.harms.push(harm);
        }
        Ok(())
    }

    /// Damages one of the two control files, unless the other is torn: the disk writes a part of what a crash strikes, or
    /// what fails, and no control file is left then.
    fn damage_control(&mut self) -> Result<(), String> {
        let disk = &self.machine.disk;
        self.harms.retain(|harm| !control_paths().contains(&harm.path) || harm.is_there(disk));
        if self.harms.iter().any(|harm| control_paths().contains(&harm.path)) {
            return Ok(());
        }
        let [mut path, mut other] = control_paths();
        if self.random.pick(&[0, 1]) == 1 {
            std::mem::swap(&mut path, &mut other);
        }
        if Controls::read(&*self.machine.image().disk, &[other]).newest().is_none() {
            return Ok(());
        }
        let bytes = self.machine.disk.contents(&path).map_or(0, |bytes| bytes.len() as u64);
        let at = self.random.below(bytes.max(1)) as usize;
        if let Some(harm) = Harm::new(&self.machine.disk, path, at, true, &mut self.random) {
            self.trace.note(format_args!("{} is damaged from byte {}", harm.path.display(), harm.from));
            self.counts.damages += 1;
            self.harms.push(harm);
        }
        Ok(())
    }

    fn damage_log(&mut self) -> Result<(), String> {
        if self.harms.iter().any(|harm| harm.is_there(&self.machine.disk)) {
            // Two damages at once may be more than can be borne.
            return Ok(());
        }
        let frames = self.frames()?;
        let segments: Vec<PathBuf> =
            self.machine.disk.files().into_keys().filter(|path| is_segment(path)).collect();
        if segments.is_empty() {
            return Ok(());
        }
        let (path, at) = match (self.random.below(10), frames.last()) {
            (0..3, Some(last)) => (segment_path(last.segment), last.offset + self.random.below(last.bytes)),
            (3..8, Some(_)) => {
                let frame = &frames[self.random.below(frames.len() as u64) as usize];
                (segment_path(frame.segment), frame.offset + self.random.below(frame.bytes))
            }
            _ => {
                let path = segments[self.random.below(segments.len() as u64) as usize].clone();
                let bytes = self.machine.disk.contents(&path).map_or(0, |bytes| bytes.len() as u64);
                (path, self.random.below(bytes.max(1)))
            }
        };
        let control = Controls::read(&*self.machine.image().disk, &control_paths()).newest().copied();
        let can_cut = segments.last() == Some(&path)
            || frames.last().is_some_and(|last| segment_path(last.segment) == path);
        let harm = Harm::new(&self.machine.disk, path, at as usize, can_cut, &mut self.random);
        if let Some(harm) = harm {
            let is_followed = segments.last().is_some_and(|last| harm.path < *last);
            let reach = reach(&harm, &frames, is_followed, control.as_ref());
            if matches!(reach, Reach::Last(before) if before < self.model.base_records) {
                // The model has forgotten what was before.
                harm.undo(&self.machine.disk);
                return Ok(());
            }
            self.trace.note(format_args!(
                "{} is damaged from byte {}: {reach:?}",
                harm.path.display(),
                harm.from
            ));
            self.counts.damages += 1;
            self.log_harm = Some(LogHarm { harm, reach, is_old: false });
        }
        Ok(())
    }

    /// The frames of the log.
    fn frames(&self) -> Result<Vec<Frame>, String> {
        let image = self.machine.image();
        let wrong = |error: albireo_redo::ReadError| format!("the log cannot be read: {error}");
        let mut reader = LogReader::open(image.disk, &log_directory(), 0, None).map_err(wrong)?;
        let mut frames = Vec::new();
        while let Some(frame) = reader.next_frame().map_err(wrong)? {
            frames.push(frame);
        }
        Ok(frames)
    }

    /// Whether it is right that the database does not open: then the damage is made good.
    pub(super) fn is_rightly_refused(&mut self, error: &SqlError, expected: &Expected) -> bool {
        let of_log = self.log_harm.as_ref().is_some_and(|harm| harm.reach != Reach::Behind);
        if error.state() != SqlState::DATA_CORRUPTED || !(of_log || expected.is_refused()) {
            return false;
        }
        self.counts.found += 1;
        self.mend();
        true
    }

    /// Of the records that have to be there, how many a damage of the last frame excuses.
    ///
    /// # Errors
    /// In words, if records were left out and nothing was said.
    pub(super) fn check_excuse(
        &self,
        records: u64,
        least: u64,
        report: &RecoveryReport,
    ) -> Result<bool, String> {
        let Some(LogHarm { reach: Reach::Last(before), is_old, .. }) = self.log_harm else {
            return Ok(false);
        };
        if records >= least || records < before {
            return Ok(false);
        }
        match report.torn.is_some() || !report.notices.is_empty() {
            true => Ok(true),
            false if is_old => Ok(true),
            false => Err("the last frame is left out and nothing is said".to_owned()),
        }
    }

    /// What was damaged is done with: the database has opened. Frames that it took for unfinished do not come back: those
    /// that are written now take their place.
    pub(super) fn after_damage(&mut self) {
        if let Some(LogHarm { harm, reach, .. }) = self.log_harm.take()
            && !matches!(reach, Reach::Last(_))
        {
            harm.undo(&self.machine.disk);
        }
        if self.random.percent(40) {
            self.mend();
        }
    }

    /// Makes all damages good.
    pub(super) fn mend(&mut self) {
        let log = self.log_harm.take().map(|harm| harm.harm);
        for harm in self.harms.drain(..).chain(log) {
            harm.undo(&self.machine.disk);
        }
    }
}

fn segment_path(number: u64) -> PathBuf {
    log_directory().join(format!("{number:020}.log"))
}

/// What a damage hits of a log whose control files say `control`.
fn reach(harm: &Harm, frames: &[Frame], is_followed: bool, control: Option<&Control>) -> Reach {
    let begun = control.map_or(0, |control| control.segment);
    let known = control.map_or(0, |control| control.sequence);
    let number = segment_number(&harm.path).unwrap_or(0);
    // A segment that was begun must be there; and what is no segment at all is refused, where there is no other.
    let behind =
        if is_followed || number <= begun || frames.is_empty() { Reach::Inside } else { Reach::Behind };
    let Some(last) = frames.last() else { return behind };
    let from = harm.from as u64;
    let ends =
        frames.iter().rev().find(|frame| frame.segment == number).map(|frame| frame.offset + frame.bytes);
    if number > last.segment || ends.is_some_and(|end| from >= end) {
        let is_header = from < SEGMENT_HEADER_BYTES as u64;
        return if is_header && (is_followed || number <= begun) { Reach::Inside } else { Reach::Behind };
    }
    // What is cut takes all that was behind it.
    let is_cut = harm.after.len() < harm.before.len();
    let hit = frames.iter().find(|frame| frame.segment == number && from < frame.offset + frame.bytes);
    match hit {
        Some(hit)
            if number == last.segment
                && hit.sequence > known
                && (is_cut || hit.sequence == last.sequence) =>
        {
            Reach::Last(hit.first_ordinal - 1)
        }
        _ => Reach::Inside,
    }
}
