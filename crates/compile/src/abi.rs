//! Arguments and results of compiled routines where they lie.
//!
//! Responsible for: arguments that are borrowed ([`ArgumentRef`]) on their way into variables, and results
//! that are read from the variables that hold them ([`Reply`]): neither allocates.

use std::sync::Arc;

use albireo_base::{Decimal, SqlError, SqlState, Value, ValueRef};
use albireo_plpgsql::body::Place;
use albireo_semantics::Stop;
use albireo_semantics::datum::{Array, Datum};
use albireo_semantics::expr::{self, VariableId};
use albireo_semantics::types::Scalar;
use albireo_storage::Cell;

use super::Compiled;
use super::frame::{CellSlot, Slot};
use super::kind::Kind;
use super::runtime::space::Space;
use super::runtime::{Context, values};

/// An argument that the caller keeps.
#[derive(Clone, Copy, Debug)]
pub enum ArgumentRef<'a> {
    /// One value, or NULL.
    Value(ValueRef<'a>),
    /// An array of SMALLINT, whose first subscript is 1, as of all.
    SmallInts(&'a [i16]),
    /// An array of INTEGER.
    Integers(&'a [i32]),
    /// An array of BIGINT.
    BigInts(&'a [i64]),
    /// An array of any values.
    Values(&'a [Value]),
}

macro_rules! from {
    ($($rust:ty),*) => {
        $(impl<'a> From<$rust> for ArgumentRef<'a> {
            fn from(value: $rust) -> Self {
                Self::Value(value.into())
            }
        })*
    };
}

from!(bool, i16, i32, i64, f64, Decimal, &'a str, &'a Value, ValueRef<'a>);

impl<'a, T: Into<ValueRef<'a>>> From<Option<T>> for ArgumentRef<'a> {
    fn from(value: Option<T>) -> Self {
        Self::Value(value.into())
    }
}

impl<'a> From<&'a [i16]> for ArgumentRef<'a> {
    fn from(values: &'a [i16]) -> Self {
        Self::SmallInts(values)
    }
}

impl<'a> From<&'a [i32]> for ArgumentRef<'a> {
    fn from(values: &'a [i32]) -> Self {
        Self::Integers(values)
    }
}

impl<'a> From<&'a [i64]> for ArgumentRef<'a> {
    fn from(values: &'a [i64]) -> Self {
        Self::BigInts(values)
    }
}

impl ArgumentRef<'_> {
    /// Whether it is NULL.
    pub fn is_null(self) -> bool {
        matches!(self, Self::Value(value) if value.is_null())
    }

    /// The value that a parameter gets, converted as an assignment does. Parameters have no lengths and
    /// digits.
    ///
    /// # Errors
    /// 42804 if an assignment could not convert it; 22P02 for a text that is no such value, 22003.
    pub fn datum(self, place: &Place) -> Result<Datum, SqlError> {
        let one = |place: &Place, value| expr::assign(value, place.scalar().unwrap_or(Scalar::Text));
        let items: Vec<Value> = match (place, self) {
            (_, argument) if argument.is_null() => return Ok(Datum::NULL),
            (Place::Sql(_) | Place::Plain(_), Self::Value(value)) => return one(place, value.to_value()),
            (Place::Array(_), Self::Value(ValueRef::Text(text))) => return expr::read(text, &place.ty()),
            (Place::Array(_), Self::SmallInts(items)) => items.iter().map(|n| (*n).into()).collect(),
            (Place::Array(_), Self::Integers(items)) => items.iter().map(|n| (*n).into()).collect(),
            (Place::Array(_), Self::BigInts(items)) => items.iter().map(|n| (*n).into()).collect(),
            (Place::Array(_), Self::Values(items)) => items.to_vec(),
            _ => {
                let message = format!("the argument does not fit a parameter of type {}", place.ty());
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
            }
        };
        let Place::Array(element) = place else { return Ok(Datum::NULL) };
        let items = items.into_iter().map(|item| one(element, item)).collect::<Result<_, _>>()?;
        Ok(Datum::Array(Arc::new(Array { lower: 1, items })))
    }
}

/// The cell of a value that is of its variable's type, or a narrower whole number; of a text it borrows.
fn direct(value: ValueRef<'_>, kind: Kind, scalar: Option<Scalar>) -> Option<Cell> {
    let n = match (kind, value) {
        (_, ValueRef::Null | ValueRef::Other(Value::Null)) => return Some(values::NULL),
        (Kind::Int(Scalar::Integer | Scalar::BigInt), ValueRef::SmallInt(n)) => i64::from(n),
        (Kind::Int(Scalar::BigInt), ValueRef::Integer(n)) => i64::from(n),
        (Kind::Text, ValueRef::Text(text)) if scalar == Some(Scalar::Text) => {
            return Some(values::text_cell(text));
        }
        _ => return values::plain(value, kind),
    };
    Some(values::number(n as u64))
}

impl Context<'_> {
    /// Puts an argument into the variable of its parameter.
    fn take(&mut self, id: VariableId, place: &Place, argument: ArgumentRef<'_>) -> Result<(), Stop> {
        let number = |n: i64| values::number(n as u64);
        match (self.frame.slot(id), argument) {
            (Slot::Cell(slot), ArgumentRef::Value(value)) => {
                if let Some(cell) = direct(value, slot.kind, place.scalar()) {
                    self.store(*slot, cell);
                    return Ok(());
                }
            }
            (Slot::Array(at, Kind::Int(Scalar::SmallInt)), ArgumentRef::SmallInts(items)) => {
                self.fill_with(*at, false, Some(1), items.iter().map(|n| number(i64::from(*n))));
                return Ok(());
            }
            (Slot::Array(at, Kind::Int(Scalar::Integer)), ArgumentRef::Integers(items)) => {
                self.fill_with(*at, false, Some(1), items.iter().map(|n| number(i64::from(*n))));
                return Ok(());
            }
            (Slot::Array(at, Kind::Int(Scalar::BigInt)), ArgumentRef::BigInts(items)) => {
                self.fill_with(*at, false, Some(1), items.iter().map(|n| number(*n)));
                return Ok(());
            }
            _ => {}
        }
        let value = argument.datum(place)?;
        self.take_argument(id, &value)
    }
}

/// The arguments of a call.
#[derive(Clone, Copy)]
pub(crate) enum Arguments<'a> {
    /// Of the parameters' types.
    Datums(&'a [Datum]),
    /// To be converted.
    Borrowed(&'a [ArgumentRef<'a>]),
}

impl Arguments<'_> {
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Datums(args) => args.len(),
            Self::Borrowed(args) => args.len(),
        }
    }

    /// Whether one is NULL.
    pub(crate) fn any_null(&self) -> bool {
        match self {
            Self::Datums(args) => args.iter().any(Datum::is_null),
            Self::Borrowed(args) => args.iter().any(|argument| argument.is_null()),
        }
    }

    /// Puts the `n`th into a variable.
    pub(super) fn put(
        &self,
        context: &mut Context<'_>,
        n: usize,
        id: VariableId,
        place: &Place,
    ) -> Result<(), Stop> {
        match self {
            Self::Datums(args) => context.take_argument(id, &args[n]),
            Self::Borrowed(args) => context.take(id, place, args[n]),
        }
    }
}

/// What a call of a compiled routine gave.
pub enum Ran {
    /// The variables that hold its result's only row.
    Reply(Reply),
    /// Values; rows as rows.
    Values(Vec<Datum>),
}

/// The row that a call gave, read from the variables that hold it.
pub struct Reply {
    code: Arc<Compiled>,
    /// `None` only while it is dropped.
    space: Option<Box<Space>>,
}

/// A value of a result.
#[derive(Clone, Copy, Debug)]
pub enum Output<'a> {
    /// One value, or NULL.
    Value(ValueRef<'a>),
    /// An array.
    Array(Items<'a>),
}

/// The elements of an array in a result.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a>(Elements<'a>);

#[derive(Clone, Copy, Debug)]
enum Elements<'a> {
    /// In a [`Reply`], of this kind: X-1 of `value_of` holds of all: texts are in
    /// the reply's space or in constants of its code.
    Cells(&'a [Cell], Kind),
    Values(&'a [Value]),
}

impl<'a> From<&'a [Value]> for Items<'a> {
    fn from(values: &'a [Value]) -> Self {
        Self(Elements::Values(values))
    }
}

impl<'a> Items<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self.0 {
            Elements::Cells(cells, _) => cells.len(),
            Elements::Values(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element of this place, the first of which is 0, whatever its subscript.
    pub fn get(&self, place: usize) -> Option<ValueRef<'a>> {
        match self.0 {
            Elements::Cells(cells, kind) => {
                let cell = cells.get(place)?;
                // SAFETY: X-1, as of all.
                Some(unsafe { values::value_of(cell, kind) })
            }
            Elements::Values(values) => values.get(place).map(ValueRef::from),
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = ValueRef<'a>> + use<'a> {
        let items = *self;
        (0..self.len()).filter_map(move |place| items.get(place))
    }
}

impl Reply {
    /// Of a call that is over.
    pub(super) fn new(code: Arc<Compiled>, space: Box<Space>) -> Self {
        Self { code, space: Some(space) }
    }

    /// How many columns the row has.
    pub fn width(&self) -> usize {
        self.code.routine.results.len()
    }

    /// The value of a column, the first of which is 0; NULL beyond the last.
    pub fn get(&self, column: usize) -> Output<'_> {
        const NULL: Output<'_> = Output::Value(ValueRef::Null);
        let (Some(space), Some(id)) = (&self.space, self.code.routine.results.get(column)) else {
            return NULL;
        };
        match self.code.frame.slot(*id) {
            Slot::Cell(CellSlot { at, kind }) => {
                // SAFETY: X-1: the call is over; its space and code are this reply's, which the value
                // borrows.
                Output::Value(unsafe { values::value_of(&space.cells[*at as usize], *kind) })
            }
            Slot::Array(number, kind) => match space.arrays[*number as usize].elements() {
                Some(cells) => Output::Array(Items(Elements::Cells(cells, *kind))),
                None => NULL,
            },
            Slot::Fields(_) | Slot::Boxed => NULL,
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(space) = self.space.take() {
            self.code.give_back(space);
        }
    }
}
