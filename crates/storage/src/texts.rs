//! Texts that frozen chunks of one column of a table share: the dictionary of the relation.
//!
//! Each chunk has a dictionary of its own, in order, with its own codes. Where texts are long and come again in chunk after
//! chunk, only the texts themselves are in common: each is stored once, and chunks have references to it, which are counted.
//!
//! ```text
//! rows of a chunk ─codes─► its dictionary: references, in the order of the texts ─┬─► text, once for the column
//! rows of another ─codes─► its dictionary ────────────────────────────────────────┘
//! ```
//!
//! Responsible for: which text is there, for whom, and what it takes; whether it pays for a chunk to share its texts.
//! Not responsible for: codes and what is asked of them (`albireo_encoding`), when chunks are frozen, evicted and fetched.
//! What is written to files is each chunk's own dictionary, so files do not show who shared what.
//!
//! - T-1 Among the lists of a column, each text is stored once.
//! - T-2 A text is freed when the last list that has it is dropped, and not before. Lists are held by columns, hence by
//!   whoever holds their chunk: tables, snapshots, arrays.
//! - T-3 All bytes are in the account of the table's pool. A list pays for its references, and for its part of the texts of
//!   the column: as much as its references are of all. So what chunks say that they take is what there is.
//! - T-4 The lock is held for [`BATCH`] texts at most. Nobody waits for memory to share: without it, a chunk has its own texts.
//!
//! (`texts/tests.rs`, `tests/model/sharing.rs`)
//!
//! **When it pays.** A reference takes 16 bytes, a text that is shared [`OVERHEAD`] more than one that is not. A chunk shares
//! if a fourth of its texts are in other chunks, and its references and the texts that nobody shares yet take no more than
//! its own texts would. Of the latter a fourth counts if another chunk has them for itself, and three fourths else: what is
//! stored now is what the next chunks save. If never more than that fourth comes again, sharing takes a fifth more at most
//! than not to share. To see what another chunk has for itself, a column notes hashes of texts of chunks that do not share;
//! with the chunk that each is of, so that a chunk that is frozen again does not find itself. What comes back from eviction
//! shares if it did before.
//!
//! Paper: Funke, Kemper and Neumann, PVLDB 5(11), 2012, §4.2: one dictionary for the relation, of which values are dropped
//! that no row has any more. Its codes are not in order, and rows have long ones; here chunks have short ones in order.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use albireo_encoding::{Column, DictionaryView, ScalarRef, Section};
use parking_lot::Mutex;

use crate::pool::{BlockPool, Claim, OutOfMemory};

mod list;
mod noted;

use list::List;
use noted::Noted;

/// Texts that are looked up or let go of under one lock.
const BATCH: usize = 256;
/// Bytes of a reference.
const REFERENCE: u64 = size_of::<Arc<[u8]>>() as u64;
/// What a shared text takes besides its bytes: the counts of its references, and about its place in the set, of whose nodes
/// two thirds are full.
const OVERHEAD: u64 = 2 * size_of::<usize>() as u64 + 3 * REFERENCE / 2 + 8;
/// The shortest texts, on average, for which it is looked whether sharing pays.
const LEAST_MEAN: u64 = 2 * REFERENCE;

/// Which chunks share texts with others of their column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Those for which it pays.
    #[default]
    WhereItPays,
    /// All that have a dictionary of texts. For tests and measurements, as what follows.
    Always,
    /// None.
    Never,
}

/// How many texts chunks of a column share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedTexts {
    /// Texts that are stored.
    pub texts: u64,
    /// Bytes that they take, references apart.
    pub bytes: u64,
    /// References that chunks have to them.
    pub references: u64,
}

/// The texts that chunks of one column of a table share.
#[derive(Default)]
pub(crate) struct ColumnTexts {
    state: Mutex<State>,
    /// Those of the account in `state`, changed together with it.
    bytes: AtomicU64,
    references: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Each has one reference from here, and one from each list that has it. References are made and dropped under the lock.
    texts: BTreeSet<Arc<[u8]>>,
    /// Of the texts; none before the first.
    claim: Option<Claim>,
    noted: Noted,
}

/// What tells a chunk of a table from others, as well as so few bits can.
pub(crate) fn place_of(partition: u16, chunk: u32) -> u16 {
    (chunk as u16) ^ partition.wrapping_mul(0x9e37)
}

/// What a shared text takes.
fn cost(text: &[u8]) -> u64 {
    (text.len() as u64).next_multiple_of(8) + OVERHEAD
}

/// What a list of so many texts takes, the texts apart.
fn list_bytes(count: usize) -> u64 {
    count as u64 * REFERENCE + size_of::<List>() as u64
}

fn entry<'a, S: Section>(dictionary: &DictionaryView<'a, S>, code: usize) -> &'a [u8] {
    match dictionary.entry(code) {
        ScalarRef::Text(text) => text,
        other => panic!("{other:?} is no text"),
    }
}

fn batches(count: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(BATCH).map(move |first| first..count.min(first + BATCH))
}

/// What it takes for a chunk to share its texts.
#[derive(Default)]
struct Price {
    /// References, and parts of the texts that are not there yet.
    bytes: u64,
    /// All texts that are not there yet.
    new_bytes: u64,
    /// Texts that are in other chunks.
    recurring: usize,
}

impl ColumnTexts {
    /// How many there are.
    pub(crate) fn shared(&self) -> SharedTexts {
        let state = self.state.lock();
        SharedTexts {
            texts: state.texts.len() as u64,
            bytes: self.bytes.load(Ordering::Relaxed),
            references: self.references.load(Ordering::Relaxed),
        }
    }

    /// The column, which shares its texts with others if it has a dictionary of its own texts, `sharing` says so, and there is
    /// memory. `place`: see [`place_of`].
    pub(crate) fn share<S: Section>(
        self: &Arc<Self>,
        column: Column<S>,
        sharing: Sharing,
        place: u16,
        pool: &BlockPool,
    ) -> Column<S> {
        let Some(own) = column.own_texts().filter(|_| sharing != Sharing::Never) else { return column };
        let Some(dictionary) = column.dictionary() else { return column };
        if sharing == Sharing::WhereItPays && (own as u64) < dictionary.entries() as u64 * LEAST_MEAN {
            return column;
        }
        let price = self.price(&dictionary, place);
        let pays = price.bytes <= own as u64 && price.recurring * 4 >= dictionary.entries();
        if sharing == Sharing::WhereItPays && !pays {
            self.note(&dictionary, place, pool);
            return column;
        }
        match self.list(&dictionary, price.new_bytes, pool) {
            Ok(list) => column.borrowing(Arc::new(list)),
            // It stays as it is.
            Err(_) => column,
        }
    }

    fn price<S: Section>(&self, dictionary: &DictionaryView<'_, S>, place: u16) -> Price {
        let mut price = Price { bytes: list_bytes(dictionary.entries()), ..Price::default() };
        for batch in batches(dictionary.entries()) {
            let state = self.state.lock();
            for text in batch.map(|code| entry(dictionary, code)) {
                let (is_there, elsewhere) =
                    (state.texts.contains(text), state.noted.is_elsewhere(text, place));
                price.recurring += usize::from(is_there || elsewhere);
                if !is_there {
                    price.new_bytes += cost(text);
                    price.bytes += if elsewhere { cost(text) / 4 } else { cost(text) / 4 * 3 };
                }
            }
        }
        price
    }

    /// Notes the texts of a chunk that has them for itself.
    fn note<S: Section>(&self, dictionary: &DictionaryView<'_, S>, place: u16, pool: &BlockPool) {
        if self.state.lock().noted.is_empty() {
            // Without memory, nothing is noted.
            let Ok(noted) = Noted::new(dictionary.entries(), pool) else { return };
            let mut state = self.state.lock();
            if state.noted.is_empty() {
                state.noted = noted;
            }
        }
        for batch in batches(dictionary.entries()) {
            let mut state = self.state.lock();
            batch.for_each(|code| state.noted.note(entry(dictionary, code), place));
        }
    }

    /// References to the texts of a dictionary, those that were not there too; these take about so many bytes.
    fn list<S: Section>(
        self: &Arc<Self>,
        dictionary: &DictionaryView<'_, S>,
        new_bytes: u64,
        pool: &BlockPool,
    ) -> Result<List, OutOfMemory> {
        let count = dictionary.entries();
        let mut claim = Claim::new(pool, list_bytes(count) + new_bytes)?;
        let mut list = List::new(self, count, pool);
        list.claim.take_from(&mut claim, list_bytes(count));
        for batch in batches(count) {
            let mut state = self.state.lock();
            let (mut bytes, references) = (0, batch.len() as u64);
            for text in batch.map(|code| entry(dictionary, code)) {
                let text = match state.texts.get(text) {
                    Some(text) => Arc::clone(text),
                    None => {
                        bytes += cost(text);
                        let text = Arc::from(text);
                        state.texts.insert(Arc::clone(&text));
                        text
                    }
                };
                list.texts.push(text);
            }
            state.claim.get_or_insert_with(|| Claim::empty(pool)).take_from(&mut claim, bytes);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.references.fetch_add(references, Ordering::Relaxed);
            state.forget_noted();
        }
        Ok(list)
    }

    /// The part of the texts' bytes that so many of the references are to pay for.
    fn part_of(&self, references: u64) -> u64 {
        let all = self.references.load(Ordering::Relaxed).max(references).max(1);
        (u128::from(self.bytes.load(Ordering::Relaxed)) * u128::from(references) / u128::from(all)) as u64
    }
}

impl State {
    /// Lets go of what was noted when there are more texts that are shared: they show the same.
    fn forget_noted(&mut self) {
        if !self.noted.is_empty() && self.texts.len() >= self.noted.len() {
            self.noted = Noted::default();
        }
    }
}

impl fmt::Debug for ColumnTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ColumnTexts").field(&self.shared()).finish()
    }
}

#[cfg(test)]
mod tests;
