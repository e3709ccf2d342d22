//! What is in one file: as programs see it, and as a power failure may leave it.
//!
//! Responsible for: which bytes and which length survive. Not responsible for: names, capacity, faults.
//!
//! I-1 A sector without a version since the last sync is durable as it is, but for cuts of the file.
//! I-2 `lengths` begins with the durable length and ends with the present one; stamps ascend.
//! I-3 The present bytes are those of the durable ones, cut and extended as `lengths` tells, with the
//! newest version of each sector laid over them - unless a sync has failed.

use super::SECTOR_BYTES;
use crate::random::Generator;
use std::collections::BTreeMap;

/// What a power failure does to the unsynced changes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// None got to the disk.
    Lost,
    /// All did.
    Kept,
    /// The first of them did, in their order; the last of those is torn.
    Ordered,
    /// Each sector for itself: as it was, or after any of its writes.
    Torn,
}

/// A sector after one write to it; bytes beyond are zeros.
#[derive(Clone, Debug)]
struct Version {
    stamp: u64,
    bytes: Vec<u8>,
}

/// The bytes of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    present: Vec<u8>,
    durable: Vec<u8>,
    /// Changes since the last sync; each has its number as its stamp, from 1.
    changes: u64,
    /// Stamp and length in bytes, for each change of the length.
    lengths: Vec<(u64, u64)>,
    /// Sectors written since the last sync, by number.
    sectors: BTreeMap<u64, Vec<Version>>,
}

impl Contents {
    /// A file that is durable as it is.
    pub(super) fn durable(bytes: Vec<u8>) -> Self {
        let lengths = vec![(0, bytes.len() as u64)];
        Self { present: bytes.clone(), durable: bytes, changes: 0, lengths, sectors: BTreeMap::new() }
    }

    /// What programs read.
    pub(super) fn present(&self) -> &[u8] {
        &self.present
    }

    /// Length in bytes that programs see.
    pub(super) fn len(&self) -> u64 {
        self.present.len() as u64
    }

    /// Writes at `offset`; a gap before it is filled with zeros.
    pub(super) fn write(&mut self, data: &[u8], offset: u64) {
        if data.is_empty() {
            return;
        }
        self.changes += 1;
        let end = offset + data.len() as u64;
        if end > self.len() {
            self.present.resize(end as usize, 0);
            self.lengths.push((self.changes, end));
        }
        self.present[offset as usize..end as usize].copy_from_slice(data);
        for sector in offset / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES {
            let bytes = sector_of(&self.present, sector).to_vec();
            self.sectors.entry(sector).or_default().push(Version { stamp: self.changes, bytes });
        }
    }

    /// Cuts the file, or extends it by zeros.
    pub(super) fn set_len(&mut self, bytes: u64) {
        if bytes != self.len() {
            self.changes += 1;
            self.present.resize(bytes as usize, 0);
            self.lengths.push((self.changes, bytes));
        }
    }

    /// Makes everything durable that has changed since the last sync.
    pub(super) fn sync(&mut self) {
        let cut_to = Floors::new(&self.lengths).after(0);
        self.durable.truncate(cut_to as usize);
        self.durable.resize(self.present.len(), 0);
        for &sector in self.sectors.keys() {
            lay(&mut self.durable, sector, sector_of(&self.present, sector), u64::MAX);
        }
        self.settle();
    }

    /// Takes what has changed for clean, though only chance says what of it got to the disk.
    pub(super) fn fail_sync(&mut self, random: &mut Generator) {
        self.durable = self.survivor(random);
        self.settle();
    }

    /// Loses power: what survives is from now on both present and durable.
    pub(super) fn crash(&mut self, random: &mut Generator) {
        *self = Self::durable(self.survivor(random));
    }

    /// Damages the file: what `change` makes of the present bytes is from now on durable, too.
    pub(super) fn damage(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = std::mem::take(&mut self.present);
        change(&mut bytes);
        *self = Self::durable(bytes);
    }

    /// Forgets changes since they are done or lost. The length may lag behind after a failed sync.
    fn settle(&mut self) {
        self.sectors.clear();
        self.changes = 0;
        self.lengths = vec![(0, self.durable.len() as u64)];
        if self.durable.len() != self.present.len() {
            self.changes = 1;
            self.lengths.push((1, self.len()));
        }
    }

    /// The bytes that a power failure leaves.
    fn survivor(&self, random: &mut Generator) -> Vec<u8> {
        let fate = match random.up_to(3) {
            0 => Fate::Lost,
            1 => Fate::Kept,
            2 => Fate::Ordered,
            _ => Fate::Torn,
        };
        // Lengths are in the file system's journal and survive in their order: up to this stamp.
        let last = match fate {
            Fate::Lost => 0,
            Fate::Kept => self.changes,
            Fate::Ordered | Fate::Torn => random.up_to(self.changes),
        };
        let known = self.lengths.partition_point(|&(stamp, _)| stamp <= last);
        let floors = Floors::new(&self.lengths[..known]);
        let mut length = self.lengths[known - 1].1;
        // A file grows in steps of whatever size.
        if let Some(&(_, next)) = self.lengths.get(known)
            && fate == Fate::Torn
            && next > length
            && random.coin()
        {
            length += random.up_to(next - length);
        }

        let mut bytes = self.durable.clone();
        bytes.truncate(floors.after(0) as usize);
        bytes.resize(length as usize, 0);
        for (&sector, versions) in &self.sectors {
            if let Some(version) = chosen(versions, fate, last, random) {
                lay(&mut bytes, sector, &version.bytes, floors.after(version.stamp));
            }
        }
        bytes
    }
}

/// The version of a sector that got to the disk last; `None` if none did.
fn chosen<'a>(versions: &'a [Version], fate: Fate, last: u64, random: &mut Generator) -> Option<&'a Version> {
    match fate {
        Fate::Lost => None,
        Fate::Kept => versions.last(),
        Fate::Ordered => {
            let torn = random.coin();
            versions.iter().rfind(|version| version.stamp < last + u64::from(!torn))
        }
        Fate::Torn => {
            let index = random.up_to(versions.len() as u64) as usize;
            index.checked_sub(1).map(|index| &versions[index])
        }
    }
}

/// Writes a sector as far as the file goes; from the file's offset `cut_to` on it is zeros.
fn lay(bytes: &mut [u8], sector: u64, contents: &[u8], cut_to: u64) {
    let start = sector * SECTOR_BYTES;
    let end = (start + SECTOR_BYTES).min(bytes.len() as u64);
    if start >= end {
        return;
    }
    let room = &mut bytes[start as usize..end as usize];
    let kept = contents.len().min(room.len()).min(cut_to.saturating_sub(start).min(SECTOR_BYTES) as usize);
    room[..kept].copy_from_slice(&contents[..kept]);
    room[kept..].fill(0);
}

/// The bytes of a sector, as far as the file goes.
fn sector_of(bytes: &[u8], sector: u64) -> &[u8] {
    let start = (sector * SECTOR_BYTES).min(bytes.len() as u64) as usize;
    &bytes[start..bytes.len().min(start + SECTOR_BYTES as usize)]
}

/// How far a file was cut after a change: what was written before it beyond that is zeros.
struct Floors(Vec<(u64, u64)>);

impl Floors {
    fn new(lengths: &[(u64, u64)]) -> Self {
        let mut floors = lengths.to_vec();
        let mut lowest = u64::MAX;
        for (_, length) in floors.iter_mut().rev() {
            lowest = lowest.min(*length);
            *length = lowest;
        }
        Self(floors)
    }

    /// The least length since the change of that stamp, without it; `u64::MAX` if there was no other.
    fn after(&self, stamp: u64) -> u64 {
        let later = self.0.partition_point(|&(other, _)| other <= stamp);
        self.0.get(later).map_or(u64::MAX, |&(_, length)| length)
    }
}
