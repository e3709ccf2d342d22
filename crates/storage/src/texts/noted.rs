//! Hashes of texts of chunks that do not share: what shows that texts come again in other chunks.

use std::hash::Hasher as _;

use rustc_hash::FxHasher;

use crate::pool::{BlockPool, Claim, OutOfMemory};

/// The fewest and the most hashes.
const FEWEST: usize = 256;
const MOST: usize = 1 << 14;

/// A table of hashes, each with the place of its chunk. One that comes to the place of another in the table takes it, so a
/// text may be forgotten, and one in thousands be found that was not noted.
#[derive(Default)]
pub(super) struct Noted {
    /// 0, or the place of a chunk and an odd number. As many as a power of two, or none.
    hashes: Vec<u32>,
    _claim: Option<Claim>,
}

impl Noted {
    /// An empty table for chunks that have about so many texts, two places for each.
    pub(super) fn new(texts: usize, pool: &BlockPool) -> Result<Self, OutOfMemory> {
        let hashes = (texts * 2).next_power_of_two().clamp(FEWEST, MOST);
        let claim = Claim::new(pool, (hashes * size_of::<u32>()) as u64)?;
        Ok(Self { hashes: vec![0; hashes], _claim: Some(claim) })
    }

    /// Whether there is no table.
    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// How many hashes there may be.
    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Where a text stands in the table, and an odd number.
    fn find(&self, text: &[u8]) -> (usize, u16) {
        let mut hasher = FxHasher::default();
        hasher.write(text);
        let hash = hasher.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((hash >> 48) as usize & (self.hashes.len() - 1), (hash >> 32) as u16 | 1)
    }

    /// A text is there in a chunk.
    pub(super) fn note(&mut self, text: &[u8], place: u16) {
        if !self.is_empty() {
            let (at, odd) = self.find(text);
            self.hashes[at] = u32::from(place) << 16 | u32::from(odd);
        }
    }

    /// Whether a text was noted of another chunk than that.
    pub(super) fn is_elsewhere(&self, text: &[u8], place: u16) -> bool {
        if self.is_empty() {
            return false;
        }
        let (at, odd) = self.find(text);
        let noted = self.hashes[at];
        noted as u16 == odd && (noted >> 16) as u16 != place
    }
}
