//! Arrays of values that have cells.
//!
//! The interpreter's variable holds the same array as long as `lent` says so: an array is turned into
//! its other form only where one side needs what the other has changed.

use std::sync::Arc;

use albireo_base::Value;
use albireo_storage::Cell;

use super::{Arena, Context, OK, guard, values};
use crate::body::{too_many, too_many_items};
use crate::compile::kind::Kind;
use crate::datum::{Array, Datum};
use crate::expr::{VariableId, unexpected};
use crate::host::Host;
use crate::store::Stop;

/// What generated code reads of an array.
#[repr(C)]
#[derive(Clone, Copy)]
pub(in crate::compile) struct Head {
    /// The first element.
    items: *const Cell,
    /// How many there are; of NULL, none.
    length: u64,
    /// The subscript of the first.
    lower: i64,
}

/// Bytes of a head, and where in it what is.
pub(in crate::compile) const HEAD_BYTES: i64 = size_of::<Head>() as i64;
pub(in crate::compile) const ITEMS_OFFSET: i32 = 0;
pub(in crate::compile) const LENGTH_OFFSET: i32 = 8;
pub(in crate::compile) const LOWER_OFFSET: i32 = 16;

impl Default for Head {
    fn default() -> Self {
        Self { items: std::ptr::null(), length: 0, lower: 1 }
    }
}

/// An array.
#[derive(Default)]
pub(in crate::compile) struct Native {
    items: Vec<Cell>,
    lower: i64,
    present: bool,
    /// Where the texts of its elements are.
    texts: Arena,
    /// Whether the interpreter's variable holds the same.
    lent: bool,
}

/// Texts of elements that were overwritten may take so many bytes before they are forgotten.
const GARBAGE_BYTES: usize = 64 << 10;

impl Native {
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
    /// Tells generated code where an array is now.
    fn renew_head(&mut self, number: u32) {
        let array = &self.arrays[number as usize];
        let head = Head { items: array.items.as_ptr(), length: array.items.len() as u64, lower: array.lower };
        assert!((number as usize) < self.frame.arrays, "an array is in its frame");
        // SAFETY: in the heads, checked, which `Compiled::run` holds; no reference to one lives on.
        unsafe { *self.heads.add(number as usize) = head };
    }

    /// Takes the array of the interpreter's variable.
    pub(in crate::compile) fn take_array(
        &mut self,
        id: VariableId,
        number: u32,
        kind: Kind,
    ) -> Result<(), Stop> {
        let value = self.machine.boxed(id).clone();
        self.fill_array(number, kind, &value, true)
    }

    /// Makes an array the same as a value; whether the interpreter's variable is too, `lent` says.
    pub(in crate::compile) fn fill_array(
        &mut self,
        number: u32,
        kind: Kind,
        value: &Datum,
        lent: bool,
    ) -> Result<(), Stop> {
        let mut native = std::mem::take(&mut self.arrays[number as usize]);
        native.items.clear();
        native.texts.clear();
        (native.present, native.lower, native.lent) = (false, 1, lent);
        if let Datum::Array(array) = value {
            native.present = true;
            native.lower = i64::from(array.lower);
            native.items.reserve(array.items.len());
            for item in &array.items {
                let Datum::Value(item) = item else { return Err(unexpected().into()) };
                let mut cell = self.cell_of(item, kind)?;
                if let Value::Text(text) = item {
                    cell.lo = native.texts.keep(text.as_bytes()).expose_provenance() as u64;
                }
                native.items.push(cell);
            }
        }
        self.arrays[number as usize] = native;
        self.renew_head(number);
        Ok(())
    }

    /// Gives the array to the interpreter's variable.
    pub(in crate::compile) fn lend_array(&mut self, id: VariableId, number: u32, kind: Kind) {
        if self.arrays[number as usize].lent {
            return;
        }
        let native = &self.arrays[number as usize];
        let value = match native.present {
            true => {
                let items = native.items.iter().map(|cell| self.datum(cell, kind)).collect();
                Datum::Array(Arc::new(Array { lower: native.lower as i32, items }))
            }
            false => Datum::NULL,
        };
        self.machine.lend(id, value);
        self.arrays[number as usize].lent = true;
    }
}

/// Puts a value into an element; the array grows to have it.
pub(in crate::compile) unsafe extern "C" fn set_item(
    context: *mut Context<'_>,
    number: u32,
    subscript: i64,
    from: *const Cell,
    is_text: u32,
) -> u32 {
    guard(context, |context| {
        // SAFETY: generated code passes a cell's address. It may be one of the array's.
        let mut cell = unsafe { *from };
        let array = &mut context.arrays[number as usize];
        if !array.present || array.items.is_empty() {
            (array.present, array.lower) = (true, subscript);
        }
        let distance = subscript - array.lower;
        let length = array.items.len() as i64;
        let grown = if distance < 0 { length - distance } else { length.max(distance + 1) };
        if grown > length {
            if too_many_items(grown) {
                return Err(too_many().into());
            }
            let added = (grown - length) as usize;
            context.machine.take_memory(added.saturating_mul(size_of::<Datum>()))?;
            let array = &mut context.arrays[number as usize];
            if distance < 0 {
                array.items.splice(0..0, std::iter::repeat_n(values::NULL, added));
                array.lower = subscript;
            } else {
                array.items.resize(grown as usize, values::NULL);
            }
        }
        let array = &mut context.arrays[number as usize];
        array.lent = false;
        if values::is_null(&cell) {
            cell = values::NULL;
        } else if is_text != 0 {
            // SAFETY: a text; R-3.
            let text = unsafe { values::text(&cell) };
            cell.lo = array.texts.keep(text.as_bytes()).expose_provenance() as u64;
            cell.tag = values::PRESENT;
        }
        array.items[distance.max(0) as usize] = cell;
        if is_text != 0 && array.texts.bytes() > GARBAGE_BYTES {
            array.tidy();
        }
        context.renew_head(number);
        Ok(OK)
    })
}
