//! Columns whose texts are lent: made ([`Column::borrowing`]), and with their own again ([`Column::unshared`]).
//!
//! - D-1 Only the entries of a dictionary are lent. Its order, codes and runs are the column's own, so whatever is asked of
//!   codes is asked as before.
//! - D-2 A column whose texts are lent says what it said before: values, header, and, by [`Column::unshared`], sections. So
//!   bytes that are written do not show who had the texts. (`tests/column`: each form of text dictionary, lent.)

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use crate::column::Column;
use crate::layers::{Codes, Nulls, Runs, Store};
use crate::lent::{Lent, TextList};
use crate::scalar::Kind;
use crate::section::{Section, SectionName};

/// The sections of texts that are lent, as the column's own.
fn copied(lent: &Lent) -> Store<Cow<'static, [u8]>> {
    let mut bytes = Vec::with_capacity(lent.bytes as usize);
    let mut offsets = vec![0; 4];
    for place in 0..lent.list.count() {
        bytes.extend_from_slice(lent.list.text(place));
        if lent.length.is_none() {
            offsets.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        }
    }
    match lent.length {
        Some(length) => Store::FixedTexts { length, bytes: bytes.into() },
        None => Store::Texts { offsets: offsets.into(), bytes: bytes.into() },
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
            Store::Lent(lent) => Column { store: copied(lent), ..column },
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
