//! Numbers for the texts by which a join is built, and for those by which it is probed.
//!
//! Responsible for: one number for each text that the built side has, which both sides use. Not responsible for: which joins
//! these are ([`crate::physical`]), nor for looking up a dictionary's texts once a chunk ([`super::text_ids`]).
//! **Invariant:** a row of the built side and one of the probing side have one number exactly if their texts are equal byte for
//! byte; NULL, and a text that the built side has not, have none that a row of the other side has.
//!
//! The built side is read to its end before the probing side begins, so what is looked up then is there.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringViewArray, UInt32Array};
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use parking_lot::RwLock;

use crate::errors::{external, internal};

/// What a text is to the probing side that the built side has not.
const NONE: u32 = u32::MAX;
/// Bytes of a text and its number beside its characters, with room to grow.
const ENTRY_BYTES: usize = 64;

/// The texts of a join.
pub(crate) struct JoinedTexts(RwLock<Numbers>);

struct Numbers {
    map: HashMap<Box<str>, u32>,
    text_bytes: usize,
    reservation: Option<MemoryReservation>,
}

impl fmt::Debug for JoinedTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinedTexts").field("count", &self.0.read().map.len()).finish()
    }
}

impl JoinedTexts {
    /// None yet. Their memory is counted by `reservation`.
    pub(crate) fn new(reservation: Option<MemoryReservation>) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Numbers { map: HashMap::new(), text_bytes: 0, reservation })))
    }

    /// The numbers of texts of the built side, which have one from now on; of NULL, NULL.
    ///
    /// # Errors
    /// There is no memory for them.
    pub(crate) fn number(&self, texts: &ArrayRef) -> Result<ArrayRef> {
        let texts = strings(texts)?;
        let mut numbers = self.0.write();
        let Numbers { map, text_bytes, reservation } = &mut *numbers;
        let mut number = |text: &str| {
            if let Some(number) = map.get(text) {
                return *number;
            }
            *text_bytes += text.len();
            let number = map.len() as u32;
            map.insert(text.into(), number);
            number
        };
        let ids: UInt32Array = texts.iter().map(|text| text.map(&mut number)).collect();
        let bytes = *text_bytes + map.len() * ENTRY_BYTES;
        reservation.as_ref().map_or(Ok(()), |reservation| reservation.try_resize(bytes))?;
        Ok(Arc::new(ids))
    }

    /// Calls `found` with the number of each text of the probing side.
    ///
    /// # Errors
    /// They are no texts.
    pub(super) fn look_up(&self, texts: &ArrayRef, found: impl FnMut(u32)) -> Result<()> {
        let numbers = self.0.read();
        let number = |text: Option<&str>| text.map_or(NONE, |text| *numbers.map.get(text).unwrap_or(&NONE));
        strings(texts)?.iter().map(number).for_each(found);
        Ok(())
    }
}

fn strings(texts: &ArrayRef) -> Result<&StringViewArray> {
    texts.as_string_view_opt().ok_or_else(|| external(internal("a join by texts met something else")))
}
