//! Values between cells and [`Datum`]s.

use albireo_base::{Decimal, Value};
use albireo_storage::Cell;

use super::Context;
use crate::compile::kind::Kind;
use crate::datum::Datum;
use crate::expr::unexpected;
use crate::store::Stop;
use crate::types::Scalar;

/// NULL.
pub(in crate::compile) const NULL: Cell = Cell { lo: 0, hi: 0, tag: 0 };

/// The tag of a value without scale.
pub(in crate::compile) const PRESENT: u64 = 1;

/// The cell of a number.
pub(in crate::compile) fn number(lo: u64) -> Cell {
    Cell { lo, hi: 0, tag: PRESENT }
}

/// The cell of a NUMERIC.
pub(in crate::compile) fn decimal(number: Decimal) -> Cell {
    let bits = number.unscaled as u128;
    Cell { lo: bits as u64, hi: (bits >> 64) as u64, tag: PRESENT | u64::from(number.scale) << 8 }
}

/// The NUMERIC in a cell that is not NULL.
pub(in crate::compile) fn decimal_of(cell: &Cell) -> Decimal {
    let bits = u128::from(cell.lo) | u128::from(cell.hi) << 64;
    Decimal { unscaled: bits as i128, scale: (cell.tag >> 8) as u8 }
}

/// Whether a cell is NULL.
pub(in crate::compile) fn is_null(cell: &Cell) -> bool {
    cell.tag as u8 == 0
}

/// The text of a cell that is not NULL.
///
/// # Safety
/// The cell holds a text, and R-3 of `runtime` for as long as `'a`.
pub(in crate::compile) unsafe fn text<'a>(cell: &Cell) -> &'a str {
    if cell.hi == 0 {
        return "";
    }
    // SAFETY: R-3 is the caller's; texts come from `&str`.
    unsafe {
        let bytes = std::slice::from_raw_parts(cell.lo as usize as *const u8, cell.hi as usize);
        std::str::from_utf8_unchecked(bytes)
    }
}

impl Context<'_> {
    /// The value of a cell of this kind, for the interpreter.
    pub(in crate::compile) fn datum(&self, cell: &Cell, kind: Kind) -> Datum {
        if is_null(cell) {
            return Datum::NULL;
        }
        let n = cell.lo as i64;
        let value = match kind {
            Kind::Int(scalar) => match scalar {
                Scalar::Bool => Value::Bool(n != 0),
                Scalar::SmallInt => Value::SmallInt(n as i16),
                Scalar::Integer => Value::Integer(n as i32),
                Scalar::Date => Value::Date(n as i32),
                Scalar::Time => Value::Time(n),
                Scalar::Timestamp => Value::Timestamp(n),
                Scalar::TimestampTz => Value::TimestampTz(n),
                _ => Value::BigInt(n),
            },
            Kind::Double => Value::Double(f64::from_bits(cell.lo)),
            Kind::Narrow { scale, .. } => Value::Decimal(Decimal { unscaled: i128::from(n), scale }),
            Kind::Numeric => Value::Decimal(decimal_of(cell)),
            // SAFETY: a cell of this kind holds a text; R-3.
            Kind::Text => Value::Text(unsafe { text(cell) }.to_owned()),
            Kind::Boxed => return self.space.boxes.get(cell.lo as usize).cloned().unwrap_or(Datum::NULL),
        };
        Datum::Value(value)
    }

    /// A value of the interpreter's as a cell; texts and boxed values are kept until the statement ends.
    ///
    /// # Errors
    /// It is not of this kind: our own bug.
    pub(in crate::compile) fn cell(&mut self, datum: Datum, kind: Kind) -> Result<Cell, Stop> {
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
        plain(&value, kind).ok_or_else(|| unexpected().into())
    }

    /// A value that is neither NULL of a box nor boxed, as a cell that borrows its text.
    ///
    /// # Errors
    /// As [`Context::cell`].
    pub(in crate::compile) fn cell_of(&self, value: &Value, kind: Kind) -> Result<Cell, Stop> {
        match (kind, value) {
            (_, Value::Null) => Ok(NULL),
            (Kind::Text, Value::Text(text)) => Ok(text_cell(text)),
            _ => plain(value, kind).ok_or_else(|| unexpected().into()),
        }
    }

    /// One text behind the other, kept until the statement ends.
    pub(in crate::compile) fn keep_joined(&mut self, a: &str, b: &str) -> Cell {
        self.dirty = 1;
        let at = self.space.arena.keep_joined(a.as_bytes(), b.as_bytes());
        Cell { lo: at.addr() as u64, hi: (a.len() + b.len()) as u64, tag: PRESENT }
    }

    /// A text that is kept until the statement ends.
    pub(in crate::compile) fn keep_text(&mut self, text: &str) -> Cell {
        self.dirty = 1;
        let at = self.space.arena.keep(text.as_bytes());
        Cell { lo: at.addr() as u64, hi: text.len() as u64, tag: PRESENT }
    }
}

/// The cell of a text where it is.
pub(in crate::compile) fn text_cell(text: &str) -> Cell {
    Cell { lo: text.as_ptr().expose_provenance() as u64, hi: text.len() as u64, tag: PRESENT }
}

/// A value that is neither text nor boxed, as a cell.
fn plain(value: &Value, kind: Kind) -> Option<Cell> {
    let n = match (kind, value) {
        (Kind::Int(Scalar::Bool), Value::Bool(b)) => i64::from(*b),
        (Kind::Int(Scalar::SmallInt), Value::SmallInt(n)) => i64::from(*n),
        (Kind::Int(Scalar::Integer), Value::Integer(n)) | (Kind::Int(Scalar::Date), Value::Date(n)) => {
            i64::from(*n)
        }
        (Kind::Int(Scalar::BigInt), Value::BigInt(n))
        | (Kind::Int(Scalar::Time), Value::Time(n))
        | (Kind::Int(Scalar::Timestamp), Value::Timestamp(n))
        | (Kind::Int(Scalar::TimestampTz), Value::TimestampTz(n)) => *n,
        (Kind::Double, Value::Double(n)) => return Some(number(n.to_bits())),
        (Kind::Numeric, Value::Decimal(number)) => return Some(decimal(*number)),
        (Kind::Narrow { scale, digits }, Value::Decimal(number)) => {
            let number = number.rescale(scale).filter(|scaled| scaled == number && scaled.fits(digits))?;
            number.unscaled as i64
        }
        _ => return None,
    };
    Some(number(n as u64))
}
