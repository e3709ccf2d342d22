//! Texts of a dictionary that are not the column's own: somebody lends them, to other columns too.
//!
//! Responsible for: a column whose dictionary is lent ([`Column::borrowing`]), and the same column with its own again
//! ([`Column::unshared`]). Not responsible for: who has which text, what it costs, and when it is freed ([`TextList`]).
//!
//! - D-1 Only the entries of a dictionary are lent. Its order, codes and runs are the column's own, so whatever is asked of
//!   codes is asked as before.
//! - D-2 A column whose texts are lent says what it said before: values, header, and, by [`Column::unshared`], sections. So
//!   bytes that are written do not show who had the texts. (`tests/column`: each form of text dictionary, lent.)

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use crate::column::Column;
use crate::layers::{Codes, Nulls, Runs, Store};
use crate::scalar::Kind;
use crate::section::{Section, SectionName};

/// Texts by place, lent as long as the list is held. They never change.
pub trait TextList: fmt::Debug + Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// The text at `place`, which is below [`TextList::count`].
    fn text(&self, place: usize) -> &[u8];

    /// Bytes of memory that whoever has the list pays for.
    fn memory_bytes(&self) -> u64;
}

/// The entries of a dictionary, lent.
#[derive(Clone, Debug)]
pub(crate) struct Lent {
    pub(crate) list: Arc<dyn TextList>,
    /// How they are written: all of this length, or from offset to offset.
    pub(crate) length: Option<u32>,
    /// Of all of them.
    pub(crate) bytes: u32,
}

impl Lent {
    /// The sections of texts of their own.
    fn copied(&self) -> Store<Cow<'static, [u8]>> {
        let mut bytes = Vec::with_capacity(self.bytes as usize);
        let mut offsets = vec![0; 4];
        for place in 0..self.list.count() {
            bytes.extend_from_slice(self.list.text(place));
            if self.length.is_none() {
                offsets.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            }
        }
        match self.length {
            Some(length) => Store::FixedTexts { length, bytes: bytes.into() },
            None => Store::Texts { offsets: offsets.into(), bytes: bytes.into() },
        }
    }
}

impl<S: Section> Column<S> {
    /// Bytes of the texts of the dictionary, with their offsets, if these are texts of the column's own: only such ones can
    /// be lent by somebody else ([`Column::borrowing`]).
    pub fn own_texts(&self) -> Option<usize> {
        match &self.store {
            _ if self.codes.is_none() => None,
            Store::FixedTexts { bytes, .. } => Some(bytes.bytes().len()),
            Store::Texts { offsets, bytes } => Some(offsets.bytes().len() + bytes.bytes().len()),
            _ => None,
        }
    }

    /// The column with a dictionary that `list` lends it, instead of its own.
    ///
    /// # Panics
    /// It has no texts of its own in a dictionary, or these are others, as far as their number and lengths tell.
    pub fn borrowing(self, list: Arc<dyn TextList>) -> Self {
        assert!(self.own_texts().is_some(), "a dictionary of the column's own texts");
        assert_eq!(list.count(), self.places(), "as many texts as there were");
        debug_assert!((0..list.count()).all(|place| list.text(place) == self.store.text(place)), "the texts");
        let bytes: usize = (0..list.count()).map(|place| list.text(place).len()).sum();
        let (length, own_bytes) = match &self.store {
            Store::FixedTexts { length, bytes } => (Some(*length), bytes.bytes().len()),
            Store::Texts { bytes, .. } => (None, bytes.bytes().len()),
            _ => (None, 0),
        };
        assert_eq!(bytes, own_bytes, "texts as long as they were");
        Self { store: Store::Lent(Lent { list, length, bytes: bytes as u32 }), ..self }
    }

    /// The same column with its bytes where they are, borrowed.
    pub fn as_borrowed(&self) -> Column<&[u8]> {
        let nulls = match &self.nulls {
            Nulls::None => Nulls::None,
            Nulls::All => Nulls::All,
            Nulls::Bits(section) => Nulls::Bits(section.bytes()),
            Nulls::Ranges(section) => Nulls::Ranges(section.bytes()),
        };
        let runs = self.runs.as_ref().map(|runs| Runs { count: runs.count, ends: runs.ends.bytes() });
        let codes = self.codes.as_ref().map(|codes| Codes {
            width: codes.width,
            section: codes.section.bytes(),
            entries: codes.entries,
        });
        let (store, summary) = (self.store.borrowed(), self.summary.clone());
        Column { kind: self.kind, rows: self.rows, nulls, runs, codes, store, summary }
    }

    /// The same column with all texts its own, copied if they are lent: what is written somewhere else.
    pub fn unshared(&self) -> Column<Cow<'_, [u8]>> {
        let own = |_: SectionName, section| Ok::<_, Infallible>(Cow::Borrowed(section));
        let Ok(column) = self.as_borrowed().map_sections(own);
        match &self.store {
            Store::Lent(lent) => Column { store: lent.copied(), ..column },
            _ => column,
        }
    }
}

impl<S> Column<S> {
    /// Bytes that the texts of its dictionary would have with their offsets if they were its own, if they are lent.
    pub fn lent_texts(&self) -> Option<usize> {
        match &self.store {
            Store::Lent(Lent { length: Some(_), bytes, .. }) => Some(*bytes as usize),
            Store::Lent(Lent { bytes, .. }) => Some(*bytes as usize + 4 * (self.places() + 1)),
            _ => None,
        }
    }

    /// Who lends the texts of its dictionary, if somebody does.
    pub fn lender(&self) -> Option<&Arc<dyn TextList>> {
        match &self.store {
            Store::Lent(lent) => {
                debug_assert_eq!(self.kind, Kind::Text, "texts are lent");
                Some(&lent.list)
            }
            _ => None,
        }
    }
}
