//! Variables.

use albireo_base::{SqlError, SqlState, Value};
use albireo_plpgsql::body::{Fit, Target};
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::VariableId;
use albireo_storage::Cell;

use super::space::SHORT_TEXT;
use super::{Context, OK, guard, values};
use crate::frame::{CellSlot, Slot};
use crate::kind::Kind;

impl Context<'_> {
    /// A cell of the frame.
    pub(crate) fn frame_cell(&mut self, at: u32) -> &mut Cell {
        assert!((at as usize) < self.frame.cells, "a slot is in its frame");
        // SAFETY: in the frame, checked, whose cells `Compiled::run` holds; no reference to one lives on.
        unsafe { &mut *self.cells.add(at as usize) }
    }

    /// Puts a value into a cell of the frame; a text goes to the cell's own buffer.
    pub(crate) fn store(&mut self, slot: CellSlot, cell: Cell) {
        match slot.kind {
            Kind::Text if !values::is_null(&cell) => {
                // SAFETY: a cell of this kind holds a text; R-3.
                unsafe { self.store_text(slot.at, cell.lo as usize as *const u8, cell.hi as usize) };
            }
            _ => *self.frame_cell(slot.at) = cell,
        }
    }

    /// Copies a text to a cell's own buffer.
    ///
    /// # Safety
    /// `length` bytes at `from` may be read.
    unsafe fn store_text(&mut self, at: u32, from: *const u8, length: usize) {
        self.space.long |= length > SHORT_TEXT;
        let buffer = &mut self.space.texts[at as usize];
        let begin = buffer.as_ptr().addr();
        if length > 0 && (begin..begin + buffer.len()).contains(&from.addr()) {
            // A part of what the variable holds itself.
            let offset = from.addr() - begin;
            buffer.copy_within(offset..offset + length, 0);
            buffer.truncate(length);
        } else {
            buffer.clear();
            if length > 0 {
                // SAFETY: the caller's; it is not in this buffer.
                buffer.extend_from_slice(unsafe { std::slice::from_raw_parts(from, length) });
            }
        }
        debug_assert_eq!(buffer.len(), length, "a variable holds the whole text");
        let lo = buffer.as_ptr().addr() as u64;
        *self.frame_cell(at) = Cell { lo, hi: length as u64, tag: values::PRESENT };
    }

    /// Gives the interpreter all variables.
    pub(crate) fn lend_all(&mut self) {
        let frame = self.frame;
        for (id, _) in frame.slots() {
            self.lend(id);
        }
    }

    /// Gives the interpreter a variable.
    pub(crate) fn lend(&mut self, id: VariableId) {
        let frame = self.frame;
        let value = match frame.slot(id) {
            Slot::Boxed => return,
            Slot::Array(number, kind) => return self.lend_array(id, *number, *kind),
            Slot::Cell(slot) => {
                let cell = *self.frame_cell(slot.at);
                self.datum(&cell, slot.kind)
            }
            Slot::Fields(fields) => {
                let mut values = Vec::with_capacity(fields.len());
                for slot in fields {
                    let cell = *self.frame_cell(slot.at);
                    values.push(self.datum(&cell, slot.kind));
                }
                Datum::Row(values.into())
            }
        };
        self.machine.lend(id, value);
        self.space.lent = true;
    }

    /// Puts an argument into a variable.
    pub(crate) fn take_argument(&mut self, id: VariableId, value: &Datum) -> Result<(), Stop> {
        match (self.frame.slot(id), value) {
            (Slot::Cell(slot), Datum::Value(value)) => {
                let cell = self.cell_of(value, slot.kind)?;
                self.store(*slot, cell);
                Ok(())
            }
            (Slot::Array(number, kind), value) => self.fill_array(*number, *kind, value, false),
            _ => {
                self.machine.put_variable(id, value.clone())?;
                self.take_back(id)
            }
        }
    }

    /// Takes a variable back that the interpreter may have changed.
    pub(crate) fn take_back(&mut self, id: VariableId) -> Result<(), Stop> {
        match self.frame.slot(id) {
            Slot::Boxed => {}
            Slot::Array(number, kind) => self.take_array(id, *number, *kind)?,
            Slot::Cell(slot) => {
                let value = self.machine.boxed(id).clone();
                let cell = self.cell(value, slot.kind)?;
                self.store(*slot, cell);
            }
            Slot::Fields(fields) => {
                let row = self.machine.boxed(id).clone();
                for (n, slot) in fields.iter().enumerate() {
                    let value = match &row {
                        Datum::Row(values) => values.get(n).cloned().unwrap_or(Datum::NULL),
                        _ => Datum::NULL,
                    };
                    let cell = self.cell(value, slot.kind)?;
                    self.store(*slot, cell);
                }
            }
        }
        Ok(())
    }
}

/// A target that the interpreter puts values into.
pub(crate) struct Placing {
    pub(crate) target: *const Target,
    pub(crate) fit: *const Fit,
    /// The target's variable.
    pub(crate) changes: VariableId,
}

// SAFETY: it is never changed, nor what it points at.
unsafe impl Send for Placing {}
// SAFETY: as above.
unsafe impl Sync for Placing {}

/// Casts a value as its target wants it, and puts it there.
pub(crate) unsafe extern "C" fn place(
    context: *mut Context<'_>,
    placing: *const Placing,
    from: *const Cell,
    kind: u64,
) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2, and generated code passes a cell's address.
        let (placing, from) = unsafe { (&*placing, &*from) };
        let value = context.datum(from, Kind::from_code(kind));
        context.lend_all();
        // SAFETY: R-2.
        context.machine.fit_and_put(unsafe { &*placing.target }, unsafe { &*placing.fit }, value)?;
        context.take_back(placing.changes)?;
        Ok(OK)
    })
}

/// Copies at most [`SHORT_TEXT`] bytes: all are read before the first is written, so that one place may be a
/// part of the other. The first and last of a power of two bytes overlap where there are not as many.
///
/// # Safety
/// `length` bytes may be read at `from` and written at `to`, and are at most 64.
#[inline(always)]
unsafe fn copy_short(to: *mut u8, from: *const u8, length: usize) {
    macro_rules! ends {
        ($part:ty) => {{
            let last = length - size_of::<$part>();
            // SAFETY: the caller's; `length` is at least the size of a part.
            unsafe {
                let a = from.cast::<$part>().read_unaligned();
                let b = from.add(last).cast::<$part>().read_unaligned();
                to.cast::<$part>().write_unaligned(a);
                to.add(last).cast::<$part>().write_unaligned(b);
            }
        }};
    }
    debug_assert!(length <= SHORT_TEXT, "a short text has room in two lines");
    type Line = [u128; 2];
    match length {
        0 => {}
        1 => ends!(u8),
        2..4 => ends!(u16),
        4..8 => ends!(u32),
        8..16 => ends!(u64),
        16..32 => ends!(u128),
        _ => ends!(Line),
    }
}

/// Puts a text into a variable's cell: a short one, which may be a part of what the variable holds, goes to its
/// room. All in one call, because most routines are once through: what is not in the code need not be fetched.
pub(crate) unsafe extern "C" fn set_text(
    context: *mut Context<'_>,
    at: u32,
    from: *const u8,
    length: u64,
) -> u32 {
    if length <= SHORT_TEXT as u64 {
        // SAFETY; generated code passes the number of a cell of the frame, for which there is a cell
        // and the room of a short text.
        unsafe {
            debug_assert!((at as usize) < (*context).frame.cells, "a text's cell is in its frame");
            let to = (*context).shorts.add(at as usize * SHORT_TEXT);
            copy_short(to, from, length as usize);
            let cell = Cell { lo: to.addr() as u64, hi: length, tag: values::PRESENT };
            (*context).cells.add(at as usize).write(cell);
        }
        return OK;
    }
    guard(context, |context| {
        // SAFETY: R-3.
        unsafe { context.store_text(at, from, length as usize) };
        Ok(OK)
    })
}

/// A text that is kept until the statement ends: of a table that the statement changes.
pub(crate) unsafe extern "C" fn keep_text(
    context: *mut Context<'_>,
    from: *const u8,
    length: u64,
    out: *mut Cell,
) -> u32 {
    guard(context, |context| {
        let cell = Cell { lo: from.addr() as u64, hi: length, tag: values::PRESENT };
        // SAFETY: R-3, and generated code passes room for a cell.
        unsafe { *out = context.keep_text(values::text(&cell)) };
        Ok(OK)
    })
}

/// A value as one of another kind that can hold it.
pub(crate) unsafe extern "C" fn as_kind(
    context: *mut Context<'_>,
    from: *const Cell,
    kind: u64,
    wanted: u64,
    out: *mut Cell,
) -> u32 {
    guard(context, |context| {
        // SAFETY: generated code passes a cell's address.
        let value = context.datum(unsafe { &*from }, Kind::from_code(kind));
        // SAFETY: generated code passes room for a cell.
        unsafe { *out = context.cell(value, Kind::from_code(wanted))? };
        Ok(OK)
    })
}

/// The value of a boxed variable as a box of the statement.
pub(crate) unsafe extern "C" fn get_boxed(context: *mut Context<'_>, variable: u32, out: *mut Cell) -> u32 {
    guard(context, |context| {
        let value = match context.frame.slot(VariableId(variable)) {
            Slot::Boxed => context.machine.boxed(VariableId(variable)).clone(),
            // A whole row whose fields have cells, or an array.
            _ => {
                context.lend(VariableId(variable));
                context.machine.boxed(VariableId(variable)).clone()
            }
        };
        // SAFETY: generated code passes room for a cell.
        unsafe { *out = context.cell(value, Kind::Boxed)? };
        Ok(OK)
    })
}

/// Puts a value into a boxed variable.
pub(crate) unsafe extern "C" fn set_boxed(
    context: *mut Context<'_>,
    variable: u32,
    from: *const Cell,
    kind: u64,
) -> u32 {
    guard(context, |context| {
        // SAFETY: generated code passes a cell's address.
        let value = context.datum(unsafe { &*from }, Kind::from_code(kind));
        context.machine.put_variable(VariableId(variable), value)?;
        context.take_back(VariableId(variable))?;
        Ok(OK)
    })
}

/// Puts a value into an element of an array variable.
pub(crate) unsafe extern "C" fn set_element(
    context: *mut Context<'_>,
    variable: u32,
    subscript: i64,
    from: *const Cell,
    kind: u64,
) -> u32 {
    guard(context, |context| {
        // SAFETY: generated code passes a cell's address.
        let value = context.datum(unsafe { &*from }, Kind::from_code(kind));
        context.machine.put_element(VariableId(variable), subscript as i32, value)?;
        Ok(OK)
    })
}

/// NULL for a subscript that is assigned to.
pub(crate) unsafe extern "C" fn no_subscript(context: *mut Context<'_>) -> u32 {
    guard(context, |_| {
        let message = "array subscript in assignment must not be null";
        Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message).into())
    })
}

/// NULL for a variable that may not be NULL.
pub(crate) unsafe extern "C" fn refuse_null(context: *mut Context<'_>, variable: u32) -> u32 {
    guard(context, |context| {
        context.machine.put_variable(VariableId(variable), Datum::Value(Value::Null))?;
        Ok(OK)
    })
}

/// Gives a boxed variable what it holds before anything is assigned to it.
pub(crate) unsafe extern "C" fn clear_boxed(context: *mut Context<'_>, variable: u32) -> u32 {
    guard(context, |context| {
        context.machine.clear(VariableId(variable));
        context.take_back(VariableId(variable))?;
        Ok(OK)
    })
}
