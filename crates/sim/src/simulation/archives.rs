//! Archives in a run: written while other things happen, lost and damaged, and used by recovery.
//!
//! I-1 What CHECKPOINT said is complete, no crash takes back. I-2 An archive that no fault at rest has hit is
//! whole, whether anybody was told of it or not. I-3 After a CHECKPOINT nothing is left of what it, or an
//! earlier one that failed, could do without, but for files in which evicted rows lie.

use std::path::{Path, PathBuf};

use albireo::{CheckpointOptions, SqlError, SqlState};
use albireo_archive::{Listing, Manifest, list, verify};
use albireo_env::Env;
use albireo_redo::{CONTROL_NAME, LogReader, segment_number};

use super::{Simulation, shown};
use crate::life::Life;
use crate::machine::DIRECTORY;

/// Where archives are.
pub(super) fn archive_directory() -> PathBuf {
    Path::new(DIRECTORY).join("archive")
}

/// Where the log is.
pub(super) fn log_directory() -> PathBuf {
    Path::new(DIRECTORY).join("log")
}

/// The control files of the log.
pub(super) fn control_paths() -> [PathBuf; 2] {
    [log_directory().join(CONTROL_NAME), Path::new(DIRECTORY).join(CONTROL_NAME)]
}

/// Whether a file is a segment of the log.
pub(super) fn is_segment(path: &Path) -> bool {
    path.starts_with(log_directory()) && segment_number(path).is_some()
}

/// The manifest of an archive.
pub(super) fn manifest_path(number: u64) -> PathBuf {
    archive_directory().join(format!("{number:010}/manifest.json"))
}

/// What recovery has to do with the archives that are there.
#[derive(Clone, Debug, Default)]
pub(super) struct Expected {
    /// The one that it uses.
    pub(super) archive: Option<Manifest>,
    /// So many newer ones cannot be used.
    pub(super) left_out: usize,
}

impl Expected {
    /// Records that are not taken from the log.
    pub(super) fn records(&self) -> u64 {
        self.archive.as_ref().map_or(0, |archive| archive.log.next_record - 1)
    }

    /// Whether there are archives and none can be used.
    pub(super) fn is_refused(&self) -> bool {
        self.archive.is_none() && self.left_out > 0
    }
}

impl Simulation {
    /// What recovery has to do with the archives, of which only those that were damaged on purpose may be
    /// anything but whole.
    pub(super) fn expected(&self) -> Result<Expected, String> {
        let image = self.machine.image();
        let listing = self.listing(&image)?;
        let numbers = listing.complete.iter().map(|archive| archive.number);
        let newest = numbers.chain(listing.unreadable.iter().map(|archive| archive.number)).max();
        if newest < self.sure {
            return Err(format!("archive {:?} is lost; the newest is {newest:?}", self.sure));
        }
        let mut expected = Expected::default();
        for manifest in &listing.complete {
            let findings = verify(&image, &archive_directory(), manifest.number);
            let harmed = findings.iter().all(|finding| self.is_harmed(&finding.path));
            if let (false, Some(finding)) = (harmed, findings.first()) {
                return Err(format!("archive {} is not whole: {}", manifest.number, finding.error));
            }
            let is_used = manifest.files().all(|file| !self.is_harmed(&archive_directory().join(&file.path)));
            if is_used != findings.is_empty() {
                return Err(format!("archive {} has a damage that is not found", manifest.number));
            }
            if is_used && expected.archive.is_none() {
                expected.archive = Some(manifest.clone());
            }
        }
        if self.log_harm.is_none() {
            self.check_log_behind(&image, &listing)?;
        }
        let used = expected.archive.as_ref().map_or(0, |archive| archive.number);
        let unreadable = listing.unreadable.iter().map(|archive| archive.number);
        let all = listing.complete.iter().map(|archive| archive.number).chain(unreadable);
        expected.left_out = all.filter(|&number| number > used).count();
        Ok(expected)
    }

    /// The archives of an image. Only a manifest that was damaged on purpose cannot be read.
    pub(super) fn listing(&self, image: &Env) -> Result<Listing, String> {
        let listing = list(image, &archive_directory()).map_err(|error| error.to_string())?;
        let unreadable = |number: u64| listing.unreadable.iter().any(|archive| archive.number == number);
        for archive in &listing.unreadable {
            if !self.is_harmed(&manifest_path(archive.number)) {
                return Err(format!("archive {} cannot be read: {}", archive.number, archive.error));
            }
        }
        for manifest in &listing.complete {
            if self.is_harmed(&manifest_path(manifest.number)) && !unreadable(manifest.number) {
                return Err(format!("the damage of archive {}'s manifest is not found", manifest.number));
            }
        }
        Ok(listing)
    }

    /// Writes an archive, with all that may happen meanwhile.
    pub(super) fn checkpoint(&mut self, life: &mut Life) -> Result<(), String> {
        let database = life.database.clone();
        if self.archiving {
            return match database.checkpoint() {
                Err(error) if error.state() == SqlState::OBJECT_IN_USE => Ok(()),
                other => Err(format!("an archive beside another one: {other:?}")),
            };
        }
        let keep = self.random.below(3) as usize + 1;
        let bytes_per_second = std::num::NonZeroU64::new(self.random.pick(&[0, 50_000]));
        let options = CheckpointOptions { keep, bytes_per_second };
        let before = self.listing(&self.machine.image())?;
        self.aim();
        self.trace.note(format_args!("archive begins, {keep} are kept"));
        self.archiving = true;
        let mut wrong = Ok(());
        let done = database.checkpoint_with(&options, |_| {
            if wrong.is_ok() {
                wrong = self.meanwhile(life);
            }
        });
        self.archiving = false;
        wrong?;
        if !self.is_over(life) {
            self.hear_of_acknowledged(life)?;
        }
        match done {
            Ok(report) => {
                self.trace.note(format_args!("archive {} is complete", report.number));
                self.counts.archives += 1;
                self.sure = Some(report.number);
                if self.is_over(life) {
                    // What is left to be thrown away is not for this life.
                    return Ok(());
                }
                self.check_what_is_left(life, &before, report.number, keep)
            }
            Err(error) => self.without_archive(life, &error),
        }
    }

    fn without_archive(&mut self, life: &Life, error: &SqlError) -> Result<(), String> {
        self.trace.note(format_args!("no archive: {}", error.state()));
        let is_risk = [SqlState::IO_ERROR, SqlState::DISK_FULL].contains(&error.state());
        match self.is_over(life) || (self.at_risk && is_risk) || self.excuses("archive", error) {
            true => Ok(()),
            false => Err(format!("an archive fails: {}", shown(error))),
        }
    }

    /// Lets something strike while an archive is written, read again, or old ones are thrown away.
    fn aim(&mut self) {
        let disk = &self.machine.disk;
        match self.random.below(10) {
            0..4 => disk.crash_at(disk.operations() + self.random.below(120)),
            4..6 => self.fail_once(25),
            _ => {}
        }
    }

    /// What happens between two pieces of an archive.
    fn meanwhile(&mut self, life: &mut Life) -> Result<(), String> {
        if self.random.percent(2) && !self.is_over(life) {
            self.trace.note("the process dies");
            life.process.die();
        }
        for _ in 0..self.random.below(6) {
            if self.is_over(life) {
                break;
            }
            self.act(life)?;
        }
        Ok(())
    }

    /// Whether CHECKPOINT has thrown away what it should, and nothing else.
    fn check_what_is_left(
        &self,
        life: &Life,
        before: &Listing,
        number: u64,
        keep: usize,
    ) -> Result<(), String> {
        let image = self.machine.image();
        let listing = self.listing(&image)?;
        let found: Vec<u64> = listing.complete.iter().map(|archive| archive.number).collect();
        let all = std::iter::once(number).chain(before.complete.iter().map(|archive| archive.number));
        let wanted: Vec<u64> = all.take(keep).collect();
        // On a full disk older ones may go early.
        let fits = if self.at_risk { wanted.starts_with(&found) } else { wanted == found };
        if !fits || found.first() != Some(&number) {
            return Err(format!("archives {found:?} are kept, not {wanted:?}"));
        }
        if !listing.unreadable.is_empty() {
            return Ok(());
        }
        self.check_files(life, &listing)?;
        self.check_segments(life, &image, &listing)
    }

    /// Whether there is no file that no archive needs, and in which no evicted rows lie.
    fn check_files(&self, life: &Life, listing: &Listing) -> Result<(), String> {
        let directory = archive_directory();
        let (files, evicted) = (self.machine.disk.files(), life.database.evicted_archive_files());
        let named = |path: &PathBuf| {
            let of = |archive: &Manifest| {
                *path == manifest_path(archive.number)
                    || archive.files().any(|file| *path == directory.join(&file.path))
            };
            *path == directory.join("lock") || listing.complete.iter().any(of) || evicted.contains(path)
        };
        match files.keys().find(|path| path.starts_with(&directory) && !named(path)) {
            Some(path) => Err(format!("{} is left, which no archive needs", path.display())),
            None => Ok(()),
        }
    }

    /// Whether the log has what every archive needs; the last frame that the oldest one has.
    fn check_log_behind(&self, image: &Env, listing: &Listing) -> Result<Option<u64>, String> {
        let Some(oldest) = listing.complete.iter().min_by_key(|archive| archive.log.sequence) else {
            return Ok(None);
        };
        let (log, sequence) = (oldest.log.log, oldest.log.sequence);
        match LogReader::open(image.disk.clone(), &log_directory(), sequence + 1, Some(log)) {
            Ok(_) => Ok(Some(sequence)),
            Err(error) => Err(format!("archive {} lacks the log behind it: {error}", oldest.number)),
        }
    }

    /// Whether the log has what the archives need, and no segment more.
    fn check_segments(&self, life: &Life, image: &Env, listing: &Listing) -> Result<(), String> {
        let Some(oldest) = self.check_log_behind(image, listing)? else { return Ok(()) };
        let begins = |bytes: &Vec<u8>| Some(u64::from_le_bytes(*bytes.get(32..)?.first_chunk()?));
        let files = self.machine.disk.files();
        let segments = files.iter().filter(|(path, _)| is_segment(path));
        let mut firsts: Vec<u64> = segments.filter_map(|(_, bytes)| begins(bytes)).collect();
        if life.log().check_freeing().is_err() {
            // Nobody knows whether the header that was written last is on the disk.
            firsts.pop();
        }
        // All frames of a segment come before those of the next one; without a header, it says 0.
        match firsts.windows(2).find(|pair| pair[1] > 0 && pair[1] <= oldest + 1) {
            Some(pair) => Err(format!(
                "the segment from frame {} on is left, which nobody needs: {firsts:?} with archives from {oldest}",
                pair[0]
            )),
            None => Ok(()),
        }
    }
}
