//! Values between cells and [`Datum`]s.

use albireo_base::{Decimal, Value, ValueRef};
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::unexpected;
use albireo_semantics::types::Scalar;
use albireo_storage::Cell;

use super::Context;
use crate::kind::Kind;

/// NULL.
pub(crate) const NULL: Cell = Cell { lo: 0, hi: 0, tag: 0 };

/// The tag of a value without scale.
pub(crate) const PRESENT: u64 = 1;

/// The cell of a number.
pub(crate) fn number(lo: u64) -> Cell {
    Cell { lo, hi: 0, tag: PRESENT }
}

/// The cell of a NUMERIC.
pub(crate) fn decimal(number: Decimal) -> Cell {
    let bits = number.unscaled as u128;
    Cell { lo: bits as u64, hi: (bits >> 64) as u64, tag: PRESENT | u64::from(number.scale) << 8 }
}

/// The NUMERIC in a cell that is not NULL.
pub(crate) fn decimal_of(cell: &Cell) -> Decimal {
    let bits = u128::from(cell.lo) | u128::from(cell.hi) << 64;
    Decimal { unscaled: bits as i128, scale: (cell.tag >> 8) as u8 }
}

/// Whether a cell is NULL.
pub(crate) fn is_null(cell: &Cell) -> bool {
    cell.tag as u8 == 0
}

/// The text of a cell that is not NULL.
///
/// # Safety
/// The cell holds a text, and R-3 of `runtime` for as long as `'a`.
pub(crate) unsafe fn text<'a>(cell: &Cell) -> &'a str {
    if cell.hi == 0 {
        return "";
    }
    // SAFETY: R-3 is the caller's; texts come from `&str`.
    unsafe {
        let bytes = std::slice::from_raw_parts(cell.lo as usize as *const u8, cell.hi as usize);
        std::str::from_utf8_unchecked(bytes)
    }
}

/// The value of a cell that is not boxed.
///
/// # Safety
/// a cell of text holds one that may be read, and does not change, for `'a`.
pub(crate) unsafe fn value_of<'a>(cell: &Cell, kind: Kind) -> ValueRef<'a> {
    if is_null(cell) {
        return ValueRef::Null;
    }
    let n = cell.lo as i64;
    match kind {
        Kind::Int(Scalar::Bool) => ValueRef::Bool(n != 0),
        Kind::Int(Scalar::SmallInt) => ValueRef::SmallInt(n as i16),
        Kind::Int(Scalar::Integer) => ValueRef::Integer(n as i32),
        Kind::Int(Scalar::Date) => ValueRef::Date(n as i32),
        Kind::Int(Scalar::Time) => ValueRef::Time(n),
        Kind::Int(Scalar::Timestamp) => ValueRef::Timestamp(n),
        Kind::Int(Scalar::TimestampTz) => ValueRef::TimestampTz(n),
        Kind::Int(_) => ValueRef::BigInt(n),
        Kind::Double => ValueRef::Double(f64::from_bits(cell.lo)),
        Kind::Narrow { scale, .. } => ValueRef::Decimal(Decimal { unscaled: i128::from(n), scale }),
        Kind::Numeric => ValueRef::Decimal(decimal_of(cell)),
        // SAFETY: X-1.
        Kind::Text => ValueRef::Text(unsafe { text(cell) }),
        Kind::Boxed => ValueRef::Null,
    }
}

impl Context<'_> {
    /// The value of a cell of this kind, for the interpreter.
    pub(crate) fn datum(&self, cell: &Cell, kind: Kind) -> Datum {
        match kind {
            Kind::Boxed if is_null(cell) => Datum::NULL,
            Kind::Boxed => self.space.boxes.get(cell.lo as usize).cloned().unwrap_or(Datum::NULL),
            // SAFETY: R-3, and the text is copied at once.
            kind => unsafe { value_of(cell, kind) }.to_value().into(),
        }
    }

    /// A value of the interpreter's as a cell; texts and boxed values are kept until the statement ends.
    ///
    /// # Errors
    /// It is not of this kind: our own bug.
    pub(crate) fn cell(&mut self, datum: Datum, kind: Kind) -> Result<Cell, Stop> {
        let value = match datum {
            Datum::Value(Value::Null) => return Ok(NULL),
            datum if kind == Kind::Boxed => {
                self.dirty = 1;
                self.space.boxes.push(datum);
                return Ok(number(self.space.boxes.len() as u64 - 1));
            }
            Datum::Value(value) => value,
            _ => return Err(unexpected().into()),
        };
        if let (Kind::Text, Value::Text(text)) = (kind, &value) {
            return Ok(self.keep_text(text));
        }
        plain((&value).into(), kind).ok_or_else(|| unexpected().into())
    }

    /// A value that is neither NULL of a box nor boxed, as a cell that borrows its text.
    ///
    /// # Errors
    /// As [`Context::cell`].
    pub(crate) fn cell_of(&self, value: &Value, kind: Kind) -> Result<Cell, Stop> {
        match (kind, value) {
            (_, Value::Null) => Ok(NULL),
            (Kind::Text, Value::Text(text)) => Ok(text_cell(text)),
            _ => plain(value.into(), kind).ok_or_else(|| unexpected().into()),
        }
    }

    /// One text behind the other, kept until the statement ends.
    pub(crate) fn keep_joined(&mut self, a: &str, b: &str) -> Cell {
        self.dirty = 1;
        let at = self.space.arena.keep_joined(a.as_bytes(), b.as_bytes());
        Cell { lo: at.addr() as u64, hi: (a.len() + b.len()) as u64, tag: PRESENT }
    }

    /// A text that is kept until the statement ends.
    pub(crate) fn keep_text(&mut self, text: &str) -> Cell {
        self.keep_bytes(text.as_bytes())
    }

    /// A text or byte string that is kept until the statement ends.
    pub(crate) fn keep_bytes(&mut self, text: &[u8]) -> Cell {
        self.dirty = 1;
        let at = self.space.arena.keep(text);
        Cell { lo: at.expose_provenance() as u64, hi: text.len() as u64, tag: PRESENT }
    }
}

/// The cell of a text where it is.
pub(crate) fn text_cell(text: &str) -> Cell {
    Cell { lo: text.as_ptr().expose_provenance() as u64, hi: text.len() as u64, tag: PRESENT }
}

/// A value that is neither text nor boxed, as a cell.
pub(crate) fn plain(value: ValueRef<'_>, kind: Kind) -> Option<Cell> {
    let n = match (kind, value) {
        (Kind::Int(Scalar::Bool), ValueRef::Bool(b)) => i64::from(b),
        (Kind::Int(Scalar::SmallInt), ValueRef::SmallInt(n)) => i64::from(n),
        (Kind::Int(Scalar::Integer), ValueRef::Integer(n)) => i64::from(n),
        (Kind::Int(Scalar::Date), ValueRef::Date(n)) => i64::from(n),
        (Kind::Int(Scalar::BigInt), ValueRef::BigInt(n))
        | (Kind::Int(Scalar::Time), ValueRef::Time(n))
        | (Kind::Int(Scalar::Timestamp), ValueRef::Timestamp(n))
        | (Kind::Int(Scalar::TimestampTz), ValueRef::TimestampTz(n)) => n,
        (Kind::Double, ValueRef::Double(n)) => return Some(number(n.to_bits())),
        (Kind::Numeric, ValueRef::Decimal(number)) => return Some(decimal(number)),
        (Kind::Narrow { scale, digits }, ValueRef::Decimal(number)) => {
            let number = number.rescale(scale).filter(|scaled| *scaled == number && scaled.fits(digits))?;
            number.unscaled as i64
        }
        _ => return None,
    };
    Some(number(n as u64))
}
