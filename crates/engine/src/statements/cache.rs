//! Bound statements by their text.
//!
//! Invariants: at most 1,024; one that was not used since the hand came by goes first. A look-up takes no
//! lock that excludes another look-up.

use std::array::from_fn;
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, Ordering};

use albireo_base::{SqlError, Value};
use parking_lot::RwLock;

use super::bind::Bound;
use super::road::Road;

/// Places with the same low bits of the hash.
const WAYS: usize = 4;
/// Sets of such places.
const SETS: usize = 256;
/// Longer texts are not kept: they are hardly sent twice.
const LONGEST_TEXT_BYTES: usize = 8 << 10;

/// A statement that was bound once, or could not be.
pub(super) struct Kept {
    text: Box<str>,
    /// Of the definitions that it was bound to.
    generation: u64,
    pub(super) found: Found,
}

/// What binding gave.
pub(super) enum Found {
    /// A statement and its road.
    Bound(Arc<Bound>, Road),
    /// Why it cannot run on live rows, if it is given values of these variants.
    Refused(SqlError, Vec<Discriminant<Value>>),
}

impl Kept {
    pub(super) fn new(text: &str, generation: u64, found: Found) -> Arc<Self> {
        Arc::new(Self { text: text.into(), generation, found })
    }

    /// A statement that could not be bound for these values.
    pub(super) fn refused(text: &str, generation: u64, error: SqlError, values: &[Value]) -> Arc<Self> {
        Self::new(text, generation, Found::Refused(error, values.iter().map(discriminant).collect()))
    }

    /// The same statement on the other road.
    pub(super) fn turned_away(&self, bound: &Arc<Bound>) -> Arc<Self> {
        Self::new(&self.text, self.generation, Found::Bound(Arc::clone(bound), Road::Analytical))
    }

    /// Whether it is good for these values.
    pub(super) fn takes(&self, values: &[Value]) -> bool {
        match &self.found {
            Found::Bound(bound, _) => bound.takes(values),
            Found::Refused(_, kinds) => values.iter().map(discriminant).eq(kinds.iter().copied()),
        }
    }

    fn is(&self, text: &str, values: &[Value], generation: u64) -> bool {
        self.generation == generation && *self.text == *text && self.takes(values)
    }
}

struct Place {
    hash: u64,
    kept: Arc<Kept>,
    /// Since the hand came by.
    used: AtomicBool,
}

#[derive(Default)]
struct Set {
    places: [Option<Place>; WAYS],
    hand: usize,
}

/// The statements of a database that are kept, and what all of them share.
pub(crate) struct Statements {
    sets: Box<[RwLock<Set>]>,
    /// Whose turn it is among partitions that can all run a statement.
    turn: AtomicU16,
    /// A road that tests force all statements to: see [`Road::forced`].
    forced: AtomicU8,
}

impl Default for Statements {
    fn default() -> Self {
        let sets = std::iter::repeat_with(RwLock::default).take(SETS).collect();
        Self { sets, turn: AtomicU16::new(0), forced: AtomicU8::new(0) }
    }
}

impl Statements {
    /// The statement with this text for values of these types, if it is kept.
    #[inline]
    pub(super) fn get(&self, text: &str, values: &[Value], generation: u64) -> Option<Arc<Kept>> {
        let hash = hash(text);
        let set = self.set(hash).read();
        for place in set.places.iter().flatten() {
            if place.hash == hash && place.kept.is(text, values, generation) {
                if !place.used.load(Ordering::Relaxed) {
                    place.used.store(true, Ordering::Relaxed);
                }
                return Some(Arc::clone(&place.kept));
            }
        }
        None
    }

    /// Keeps a statement that was bound for these values, in the place of what it replaces.
    pub(super) fn put(&self, kept: Arc<Kept>, values: &[Value]) {
        if kept.text.len() > LONGEST_TEXT_BYTES {
            return;
        }
        let hash = hash(&kept.text);
        let mut set = self.set(hash).write();
        let at = set.place_for(&kept, hash, values);
        set.places[at] = Some(Place { hash, kept, used: AtomicBool::new(true) });
    }

    #[inline]
    fn set(&self, hash: u64) -> &RwLock<Set> {
        &self.sets[hash as usize % SETS]
    }

    /// The next of `partitions`, in turns.
    pub(super) fn next_partition(&self, partitions: u16) -> u16 {
        self.turn.fetch_add(1, Ordering::Relaxed) % partitions
    }

    pub(super) fn forced(&self) -> Option<Road> {
        Road::forced(self.forced.load(Ordering::Relaxed))
    }

    #[cfg(test)]
    pub(super) fn force(&self, road: Road) {
        self.forced.store(road.force(), Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.count_of(|_| true)
    }

    #[cfg(test)]
    pub(super) fn refused(&self) -> usize {
        self.count_of(|kept| matches!(kept.found, Found::Refused(..)))
    }

    #[cfg(test)]
    fn count_of(&self, wanted: impl Fn(&Kept) -> bool) -> usize {
        let in_set = |set: &RwLock<Set>| {
            let set = set.read();
            set.places.iter().flatten().filter(|place| wanted(&place.kept)).count()
        };
        self.sets.iter().map(in_set).sum()
    }
}

impl Set {
    fn place_for(&mut self, kept: &Kept, hash: u64, values: &[Value]) -> usize {
        let replaced = |place: &Option<Place>| match place {
            None => true,
            Some(place) => {
                place.kept.generation != kept.generation
                    || (place.hash == hash && place.kept.is(&kept.text, values, kept.generation))
            }
        };
        if let Some(at) = self.places.iter().position(replaced) {
            return at;
        }
        // Second chances end: after one round all are unused.
        loop {
            let at = self.hand;
            self.hand = (at + 1) % WAYS;
            match &self.places[at] {
                Some(place) if place.used.swap(false, Ordering::Relaxed) => {}
                _ => return at,
            }
        }
    }
}

/// Eight bytes at a time. Equal hashes of different texts cost a comparison, no more.
#[inline]
fn hash(text: &str) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let product = (hash ^ word).wrapping_mul(FACTOR);
        product ^ (product >> 29)
    };
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let hash = words.iter().fold(text.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let last: [u8; 8] = from_fn(|at| rest.get(at).copied().unwrap_or(0));
    let hash = mix(hash, u64::from_le_bytes(last));
    hash ^ (hash >> 32)
}
