//! Arrays of values that have cells.
//!
//! The interpreter's variable holds the same array as long as `lent` says so: an array is turned into
//! its other form only where one side needs what the other has changed.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_execute::{Host, too_many, too_many_items};
use albireo_semantics::Stop;
use albireo_semantics::datum::{Array, Datum};
use albireo_semantics::expr::{VariableId, unexpected};
use albireo_storage::Cell;

use super::space::shrink;
use super::{Arena, Context, OK, guard, values};
use crate::kind::Kind;

/// What generated code reads of an array, and writes: elements that there are, and those behind them as
/// long as there is room.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Head {
    /// The first element.
    items: *mut Cell,
    /// How many there are; of NULL, none.
    length: u64,
    /// The subscript of the first.
    lower: i64,
    /// For how many there is room; 0 of an array without elements, unless nothing has been done with it:
    /// then it is NULL, and what is put into it first is its first element.
    room: u64,
    /// Not 0 if the interpreter's variable holds the same.
    lent: u64,
}

/// Bytes of a head, and where in it what is.
pub(crate) const HEAD_BYTES: i64 = size_of::<Head>() as i64;
pub(crate) const ITEMS_OFFSET: i32 = 0;
pub(crate) const LENGTH_OFFSET: i32 = 8;
pub(crate) const LOWER_OFFSET: i32 = 16;
pub(crate) const ROOM_OFFSET: i32 = 24;
pub(crate) const LENT_OFFSET: i32 = 32;

impl Default for Head {
    fn default() -> Self {
        Self { items: std::ptr::null_mut(), length: 0, lower: 1, room: 0, lent: 0 }
    }
}

/// An array.
#[derive(Default)]
pub(crate) struct Native {
    items: Vec<Cell>,
    lower: i64,
    present: bool,
    /// Where the texts of its elements are.
    texts: Arena,
}

/// Texts of elements that were overwritten may take so many bytes before they are forgotten.
const GARBAGE_BYTES: usize = 64 << 10;

/// The least room of an array that grows.
const LEAST_ROOM: usize = 16;

impl Native {
    /// The head of an array that is NULL, with what room there is from an earlier call.
    pub(crate) fn fresh_head(&mut self) -> Head {
        let room = self.items.capacity().min(LEAST_ROOM);
        Head { items: self.items.as_mut_ptr(), room: room as u64, ..Head::default() }
    }

    /// The elements; `None` if the array is NULL. Generated code may have put more behind them, unless
    /// the call is over.
    pub(crate) fn elements(&self) -> Option<&[Cell]> {
        self.present.then_some(self.items.as_slice())
    }

    /// Forgets the array.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        shrink(&mut self.items);
        self.texts.clear();
        (self.present, self.lower) = (false, 1);
    }

    /// Forgets the texts of elements that were overwritten, once they are most.
    fn tidy(&mut self) {
        let live: usize =
            self.items.iter().filter(|cell| !values::is_null(cell)).map(|c| c.hi as usize).sum();
        if self.texts.bytes() <= 2 * live + GARBAGE_BYTES {
            return;
        }
        let mut texts = Arena::default();
        for cell in self.items.iter_mut().filter(|cell| !values::is_null(cell)) {
            // SAFETY: a text of this array's; R-3.
            let text = unsafe { values::text(cell) };
            cell.lo = texts.keep(text.as_bytes()).expose_provenance() as u64;
        }
        self.texts = texts;
    }
}

impl Context<'_> {
    /// Where the head of an array is.
    fn head(&mut self, number: u32) -> &mut Head {
        assert!((number as usize) < self.frame.arrays, "an array is in its frame");
        // SAFETY: in the heads, checked, which the call's space holds; no reference to one lives on.
        unsafe { &mut *self.heads.add(number as usize) }
    }

    /// An array with what generated code has put behind its end.
    fn array(&mut self, number: u32) -> &mut Native {
        let head = *self.head(number);
        let array = &mut self.space.arrays[number as usize];
        if head.room > 0 {
            assert!(head.length as usize <= array.items.capacity(), "there was room");
            // SAFETY: generated code has written all elements up to the head's length, for which there
            // is room.
            unsafe { array.items.set_len(head.length as usize) };
            array.present |= head.length > 0;
        }
        array
    }

    /// Tells generated code where an array is now, with room for so many elements.
    fn renew_head(&mut self, number: u32, room: usize, lent: bool) {
        let array = &mut self.space.arrays[number as usize];
        let room = if array.items.is_empty() { 0 } else { room.min(array.items.capacity()) };
        let head = Head {
            items: array.items.as_mut_ptr(),
            length: array.items.len() as u64,
            lower: array.lower,
            room: room as u64,
            lent: u64::from(lent),
        };
        *self.head(number) = head;
    }

    /// Takes the array of the interpreter's variable.
    pub(crate) fn take_array(&mut self, id: VariableId, number: u32, kind: Kind) -> Result<(), Stop> {
        let value = self.machine.boxed(id).clone();
        self.fill_array(number, kind, &value, true)
    }

    /// Makes an array the same as a value; whether the interpreter's variable is too, `lent` says.
    pub(crate) fn fill_array(
        &mut self,
        number: u32,
        kind: Kind,
        value: &Datum,
        lent: bool,
    ) -> Result<(), Stop> {
        let Datum::Array(array) = value else {
            self.fill_with(number, lent, None, [].into_iter());
            return Ok(());
        };
        let mut cells = Vec::with_capacity(array.items.len());
        for item in &array.items {
            let Datum::Value(item) = item else { return Err(unexpected().into()) };
            cells.push(self.cell_of(item, kind)?);
        }
        let cells = cells.into_iter();
        match kind {
            Kind::Text => self.fill_with_texts(number, lent, i64::from(array.lower), cells),
            _ => self.fill_with(number, lent, Some(i64::from(array.lower)), cells),
        }
        Ok(())
    }

    /// Makes an array of cells that are no texts; without a first subscript it is NULL.
    pub(crate) fn fill_with(
        &mut self,
        number: u32,
        lent: bool,
        lower: Option<i64>,
        cells: impl Iterator<Item = Cell>,
    ) {
        let native = &mut self.space.arrays[number as usize];
        native.clear();
        (native.present, native.lower) = (lower.is_some(), lower.unwrap_or(1));
        native.items.extend(cells);
        let room = native.items.len();
        self.renew_head(number, room, lent);
    }

    /// Makes an array of texts, which it copies.
    pub(crate) fn fill_with_texts(
        &mut self,
        number: u32,
        lent: bool,
        lower: i64,
        cells: impl Iterator<Item = Cell>,
    ) {
        let mut texts = std::mem::take(&mut self.space.arrays[number as usize].texts);
        texts.clear();
        let cells: Vec<Cell> = cells.map(|cell| kept(&mut texts, cell)).collect();
        self.fill_with(number, lent, Some(lower), cells.into_iter());
        self.space.arrays[number as usize].texts = texts;
    }

    /// Gives the array to the interpreter's variable.
    pub(crate) fn lend_array(&mut self, id: VariableId, number: u32, kind: Kind) {
        if self.head(number).lent != 0 {
            return;
        }
        self.array(number);
        let native = &self.space.arrays[number as usize];
        let value = match native.present {
            true => {
                let items = native.items.iter().map(|cell| self.datum(cell, kind)).collect();
                Datum::Array(Arc::new(Array { lower: native.lower as i32, items }))
            }
            false => Datum::NULL,
        };
        self.machine.lend(id, value);
        self.space.lent = true;
        self.head(number).lent = 1;
    }

    /// Puts a text behind the last element of an array, if it goes there and there is room.
    fn push_text(&mut self, number: u32, subscript: i64, cell: Cell) -> bool {
        let head = *self.head(number);
        let next = head.length.cast_signed() == subscript.wrapping_sub(head.lower);
        if !next || head.length >= head.room {
            return false;
        }
        let array = self.array(number);
        let cell = kept(&mut array.texts, cell);
        debug_assert!(array.items.len() < array.items.capacity(), "items stay where the head says");
        array.items.push(cell);
        let full = array.texts.bytes() > GARBAGE_BYTES;
        if full {
            array.tidy();
        }
        let head = self.head(number);
        (head.length, head.lent) = (head.length + 1, 0);
        true
    }

    /// Makes sure that [`Native::elements`] are all there are.
    pub(crate) fn finish_arrays(&mut self) {
        for number in 0..self.frame.arrays as u32 {
            self.array(number);
        }
    }
}

/// A cell whose text is where it stays.
fn kept(texts: &mut Arena, cell: Cell) -> Cell {
    if values::is_null(&cell) {
        return values::NULL;
    }
    // SAFETY: a text; R-3.
    let text = unsafe { values::text(&cell) };
    let lo = texts.keep(text.as_bytes()).expose_provenance() as u64;
    Cell { lo, hi: cell.hi, tag: values::PRESENT }
}

/// NULL for an array that a loop is to go over; one without elements is none.
pub(crate) unsafe extern "C" fn refuse_null(context: *mut Context<'_>, number: u32) -> u32 {
    guard(context, |context| match context.array(number).present {
        true => Ok(OK),
        false => {
            let message = "FOREACH expression must not be null";
            Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message).into())
        }
    })
}

/// Puts a value into an element; the array grows to have it.
pub(crate) unsafe extern "C" fn set_item(
    context: *mut Context<'_>,
    number: u32,
    subscript: i64,
    from: *const Cell,
    is_text: u32,
) -> u32 {
    guard(context, |context| {
        // SAFETY: generated code passes a cell's address. It may be one of the array's.
        let mut cell = unsafe { *from };
        if is_text != 0 && context.push_text(number, subscript, cell) {
            return Ok(OK);
        }
        let mut room = context.head(number).room as usize;
        let array = context.array(number);
        if !array.present || array.items.is_empty() {
            (array.present, array.lower) = (true, subscript);
        }
        let distance = subscript - array.lower;
        let length = array.items.len() as i64;
        let grown = if distance < 0 { length - distance } else { length.max(distance + 1) };
        if grown > room as i64 {
            if too_many_items(grown) {
                return Err(too_many().into());
            }
            let more = (2 * grown).max(LEAST_ROOM as i64);
            let wanted = if too_many_items(more) { grown as usize } else { more as usize };
            context.machine.take_memory((wanted - room).saturating_mul(size_of::<Datum>()))?;
            room = wanted;
        }
        let array = &mut context.space.arrays[number as usize];
        array.items.reserve_exact(room.saturating_sub(array.items.len()));
        if distance < 0 {
            array.items.splice(0..0, std::iter::repeat_n(values::NULL, (grown - length) as usize));
            array.lower = subscript;
        } else {
            array.items.resize(grown as usize, values::NULL);
        }
        if is_text != 0 || values::is_null(&cell) {
            cell = kept(&mut array.texts, cell);
        }
        debug_assert_eq!(array.items.len() as i64, grown, "an array grows to have the element");
        array.items[distance.max(0) as usize] = cell;
        if is_text != 0 && array.texts.bytes() > GARBAGE_BYTES {
            array.tidy();
        }
        context.renew_head(number, room, false);
        Ok(OK)
    })
}
