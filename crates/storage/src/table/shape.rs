//! Several columns at once, as a tuple whose Rust types were checked beforehand.
//!
//! A [`NewRow`] or [`RowUpdate`](super::RowUpdate) finds the place of each value, asks whether its
//! handle is this table's and keeps account of what was set; for a row of ten columns that is most of
//! the work. A [`RowShape`] does all of it once. What is left is a load, an address and a store a
//! value: TPC-C's New-Order takes a fifth fewer instructions this way.

use std::borrow::Cow;
use std::marker::PhantomData;

use albireo_base::{ColumnId, SqlType, Tid};

use super::{NewRow, RowUpdate, Table, TableError};
use crate::column::{Col, Fixed, HandleError, TextLimit};
use crate::layout::{ColumnLocation, Physical};
use crate::rows::{RowPlace, Rows, foreign_handle};
use crate::undo::{Change, Image, UndoLog};

/// Some columns of a table as a tuple. Made by [`Table::shape`]; good for every partition of its
/// table, refused by any other table.
pub struct RowShape<V> {
    layout: u64,
    /// How the columns lie: [`APART`], [`TOGETHER`] or [`ANYHOW`].
    lie: u8,
    /// Every column of the table is there, so rows can be inserted.
    whole: bool,
    /// The columns as bits; `None` if one is beyond the 64th.
    bits: Option<u64>,
    columns: Box<[ShapeColumn]>,
    values: PhantomData<fn() -> V>,
}

/// Every column has whole blocks to itself, so that its values lie `width` apart.
pub(super) const APART: u8 = 0;
/// All columns are of one group: the row's place in it is found once.
pub(super) const TOGETHER: u8 = 1;
/// Some are, some are not.
pub(super) const ANYHOW: u8 = 2;

/// Where the values of a row are.
#[derive(Clone, Copy)]
pub struct Spot {
    pub(super) row: RowPlace,
    /// The row in the group of a shape whose columns lie [`TOGETHER`].
    pub(super) base: *mut u8,
}

/// Calls `$call` with the constant `LIE` that is the value of `$lie`.
macro_rules! with_lie {
    ($lie:expr, $LIE:ident => $call:expr) => {
        match $lie {
            APART => {
                const $LIE: u8 = APART;
                $call
            }
            TOGETHER => {
                const $LIE: u8 = TOGETHER;
                $call
            }
            _ => {
                const $LIE: u8 = ANYHOW;
                $call
            }
        }
    };
}

pub(super) use with_lie;

/// Where an element of the tuple lies.
pub struct ShapeColumn {
    at: ColumnLocation,
    digits: u8,
    limit: TextLimit,
}

/// A type that an element may have: a [`Fixed`] type, `Option` of one for a column that may be NULL,
/// `&'static str` for a text of any lifetime, which is read as a `Cow`.
pub trait ShapeValue: sealed::Value {}

/// A tuple of [`ShapeValue`]s.
pub trait ShapeRow: sealed::Row {}

/// A tuple of [`Fixed`] types and `Option`s of them.
pub trait FixedRow: ShapeRow + sealed::FixedRow {}

mod sealed {
    use super::*;

    /// P-1, for all `unsafe` functions: `column` is of this table's layout and suits the type; `place`
    /// is where the row is; `LIE` is the shape's.
    pub trait Value {
        type At<'t>: Copy;
        /// What is read, in which a text is lent unless it is packed or compressed.
        type Read<'t>;
        /// Whether writing one to a new row may change the directory.
        const MOVES: bool = false;
        /// Whether the column takes such values, or else what they are.
        fn suits(column: &ShapeColumn) -> Result<(), &'static str>;
        unsafe fn put<const LIE: u8>(
            value: Self::At<'_>,
            row: &mut NewRow<'_>,
            spot: Spot,
            column: &ShapeColumn,
        ) -> Result<(), TableError>;
        unsafe fn read<'t, const LIE: u8>(
            rows: &'t Rows,
            tid: Tid,
            spot: Spot,
            column: &ShapeColumn,
        ) -> Self::Read<'t>;
        /// The same of a row that may have no place.
        fn find<'t>(rows: &'t Rows, tid: Tid, column: &ShapeColumn) -> Self::Read<'t>;
    }

    pub trait FixedValue: for<'t> Value<At<'t> = Self, Read<'t> = Self> + Copy {
        fn fits(self, column: &ShapeColumn) -> bool;
        fn set(self, row: &mut RowUpdate<'_>, column: &ShapeColumn) -> Result<(), TableError>;
        /// Overwrites the value, whose blocks are private; gives what was there.
        unsafe fn replace<const LIE: u8>(
            self,
            rows: &mut Rows,
            spot: Spot,
            column: &ShapeColumn,
        ) -> (bool, Image);
    }

    pub trait Row {
        const COLUMNS: usize;
        type At<'t>: Copy;
        type Read<'t>;
        fn suits(columns: &[ShapeColumn]) -> Result<(), (usize, &'static str)>;
        unsafe fn put<const LIE: u8>(
            values: Self::At<'_>,
            row: &mut NewRow<'_>,
            columns: &[ShapeColumn],
        ) -> Result<(), TableError>;
        unsafe fn read<'t, const LIE: u8>(
            rows: &'t Rows,
            tid: Tid,
            spot: Spot,
            columns: &[ShapeColumn],
        ) -> Self::Read<'t>;
        fn find<'t>(rows: &'t Rows, tid: Tid, columns: &[ShapeColumn]) -> Self::Read<'t>;
    }

    pub trait FixedRow: for<'t> Row<At<'t> = Self, Read<'t> = Self> + Copy {
        /// The first column that has not room for its value's digits.
        fn misfit(self, columns: &[ShapeColumn]) -> Option<ColumnId>;
        fn set(self, row: &mut RowUpdate<'_>, columns: &[ShapeColumn]) -> Result<(), TableError>;
        unsafe fn replace<const LIE: u8>(
            self,
            rows: &mut Rows,
            spot: Spot,
            columns: &[ShapeColumn],
            log: Overwritten<'_>,
        );
    }
}

/// Where the old values of a row go. No closure, because that is not always compiled into the loop over the columns, and
/// an image that was just stored in parts is then loaded as a whole, which the processor waits for.
pub struct Overwritten<'a> {
    undo: &'a mut UndoLog,
    table: u32,
    tid: Tid,
}

impl Overwritten<'_> {
    #[inline(always)]
    fn push(&mut self, column: ColumnId, was_null: bool, image: Image) {
        self.undo.push(self.table, self.tid, Change::Wrote { column, was_null, image });
    }
}

impl<T: Fixed> ShapeValue for T {}
impl<T: Fixed> ShapeValue for Option<T> {}
impl ShapeValue for &'static str {}

/// The address of a value.
///
/// # Safety
/// P-1 of `sealed`; values are `width` wide.
#[inline(always)]
pub(super) unsafe fn address<const LIE: u8>(
    rows: &Rows,
    spot: Spot,
    at: &ColumnLocation,
    width: usize,
) -> *mut u8 {
    // SAFETY: P-1; for columns that lie together, `spot` is right (see `spot`).
    unsafe {
        match LIE {
            APART => rows.plain_place(spot.row, at, width),
            TOGETHER => spot.base.add(at.offset as usize),
            _ => rows.known_place(spot.row, at),
        }
    }
}

/// Where a row's values are.
///
/// # Safety
/// P-1 of `sealed`: `row` is where the row is, and the columns are of this table.
#[inline(always)]
unsafe fn spot<const LIE: u8>(rows: &Rows, row: RowPlace, columns: &[ShapeColumn]) -> Spot {
    // SAFETY: P-1 is the caller's.
    unsafe { spot_by::<LIE>(rows, row, columns.first().map(|column| &column.at)) }
}

/// Where a row's values are, by the first column of the shape.
///
/// # Safety
/// As for [`spot`].
#[inline(always)]
pub(super) unsafe fn spot_by<const LIE: u8>(
    rows: &Rows,
    row: RowPlace,
    first: Option<&ColumnLocation>,
) -> Spot {
    let base = match (LIE, first) {
        (TOGETHER, Some(at)) => {
            // SAFETY: P-1; the value lies `offset` behind the beginning of its row's part of the group.
            unsafe { rows.known_place(row, at).sub(at.offset as usize) }
        }
        _ => std::ptr::null_mut(),
    };
    Spot { row, base }
}

impl<T: Fixed> sealed::Value for T {
    type At<'t> = T;
    type Read<'t> = T;

    fn suits(column: &ShapeColumn) -> Result<(), &'static str> {
        if column.at.physical == T::PHYSICAL && !column.at.nullable() { Ok(()) } else { Err(T::NAME) }
    }

    #[inline(always)]
    unsafe fn put<const LIE: u8>(
        value: T,
        row: &mut NewRow<'_>,
        spot: Spot,
        column: &ShapeColumn,
    ) -> Result<(), TableError> {
        if !value.fits(column.digits) {
            row.overflows(column.at.column);
        }
        // SAFETY: P-1; a column that suits has values as wide as `T::Bytes`.
        unsafe {
            let place = address::<LIE>(row.rows(), spot, &column.at, size_of::<T::Bytes>());
            place.cast::<T::Bytes>().write_unaligned(value.to_bytes());
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn read<const LIE: u8>(rows: &Rows, _: Tid, spot: Spot, column: &ShapeColumn) -> T {
        // SAFETY: P-1; a column that suits has values as wide as `T::Bytes`.
        T::from_bytes(unsafe {
            address::<LIE>(rows, spot, &column.at, size_of::<T::Bytes>()).cast::<T::Bytes>().read_unaligned()
        })
    }

    fn find(rows: &Rows, tid: Tid, column: &ShapeColumn) -> T {
        rows.get(tid, &column.at)
    }
}

impl<T: Fixed> sealed::FixedValue for T {
    #[inline(always)]
    fn fits(self, column: &ShapeColumn) -> bool {
        crate::column::Sealed::fits(self, column.digits)
    }

    fn set(self, row: &mut RowUpdate<'_>, column: &ShapeColumn) -> Result<(), TableError> {
        row.set(Col::of(column.at, column.digits), self)
    }

    #[inline(always)]
    unsafe fn replace<const LIE: u8>(
        self,
        rows: &mut Rows,
        spot: Spot,
        column: &ShapeColumn,
    ) -> (bool, Image) {
        // SAFETY: P-1; the block is private.
        unsafe {
            let address = address::<LIE>(rows, spot, &column.at, size_of::<T::Bytes>()).cast::<T::Bytes>();
            let old = address.read_unaligned();
            address.write_unaligned(self.to_bytes());
            (false, Image::of(old))
        }
    }
}

impl<T: Fixed> sealed::Value for Option<T> {
    type At<'t> = Option<T>;
    type Read<'t> = Option<T>;

    fn suits(column: &ShapeColumn) -> Result<(), &'static str> {
        if column.at.physical == T::PHYSICAL && column.at.nullable() { Ok(()) } else { Err(T::NAME) }
    }

    #[inline(always)]
    unsafe fn put<const LIE: u8>(
        value: Option<T>,
        row: &mut NewRow<'_>,
        spot: Spot,
        column: &ShapeColumn,
    ) -> Result<(), TableError> {
        // SAFETY: P-1; a column that suits has a null bitmap.
        unsafe {
            <T as sealed::Value>::put::<LIE>(value.unwrap_or(T::from_bytes(T::ZERO)), row, spot, column)?;
            row.rows().known_null(spot.row, &column.at, value.is_none());
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn read<const LIE: u8>(rows: &Rows, tid: Tid, spot: Spot, column: &ShapeColumn) -> Option<T> {
        // SAFETY: P-1.
        let value = unsafe { <T as sealed::Value>::read::<LIE>(rows, tid, spot, column) };
        // SAFETY: P-1; a column that suits has a null bitmap.
        (!unsafe { rows.known_is_null(spot.row, &column.at) }).then_some(value)
    }

    fn find(rows: &Rows, tid: Tid, column: &ShapeColumn) -> Option<T> {
        (!rows.is_null(tid, &column.at)).then(|| rows.get(tid, &column.at))
    }
}

impl<T: Fixed> sealed::FixedValue for Option<T> {
    #[inline(always)]
    fn fits(self, column: &ShapeColumn) -> bool {
        self.is_none_or(|value| sealed::FixedValue::fits(value, column))
    }

    fn set(self, row: &mut RowUpdate<'_>, column: &ShapeColumn) -> Result<(), TableError> {
        let handle = Col::<T>::of(column.at, column.digits);
        match self {
            Some(value) => row.set(handle, value),
            None => row.set_null(handle),
        }
    }

    #[inline(always)]
    unsafe fn replace<const LIE: u8>(
        self,
        rows: &mut Rows,
        spot: Spot,
        column: &ShapeColumn,
    ) -> (bool, Image) {
        let value = self.unwrap_or(T::from_bytes(T::ZERO));
        // SAFETY: P-1; the blocks of value and bitmap are private.
        unsafe {
            let (_, old) = sealed::FixedValue::replace::<LIE>(value, rows, spot, column);
            let was_null = rows.known_is_null(spot.row, &column.at);
            rows.known_null(spot.row, &column.at, self.is_none());
            (was_null, old)
        }
    }
}

impl sealed::Value for &'static str {
    type At<'t> = &'t str;
    type Read<'t> = Cow<'t, str>;
    const MOVES: bool = true;

    fn suits(column: &ShapeColumn) -> Result<(), &'static str> {
        if column.at.physical.is_string() && !column.at.nullable() { Ok(()) } else { Err("str") }
    }

    #[inline(always)]
    unsafe fn put<const LIE: u8>(
        value: &str,
        row: &mut NewRow<'_>,
        spot: Spot,
        column: &ShapeColumn,
    ) -> Result<(), TableError> {
        let at = &column.at;
        let text = match column.limit.fit(value) {
            Ok(text) => text,
            Err(unfit) => return Err(row.table().unfit(at.column, value, unfit)),
        };
        match at.physical {
            Physical::Inline(capacity) if text.len() <= capacity as usize => {
                // SAFETY: P-1; the slot has `1 + capacity` bytes, and `text` is not in it, since the row
                // is nobody's yet.
                unsafe {
                    let place = address::<LIE>(row.rows(), spot, at, at.width as usize);
                    *place = text.len() as u8;
                    std::ptr::copy_nonoverlapping(text.as_ptr(), place.add(1), text.len());
                }
                Ok(())
            }
            _ => row.set_bytes(at, text.as_bytes()),
        }
    }

    #[inline(always)]
    unsafe fn read<'t, const LIE: u8>(
        rows: &'t Rows,
        tid: Tid,
        spot: Spot,
        column: &ShapeColumn,
    ) -> Cow<'t, str> {
        // SAFETY: P-1; text columns are written from `&str` only.
        Cow::Borrowed(unsafe {
            let slot = address::<LIE>(rows, spot, &column.at, column.at.width as usize);
            std::str::from_utf8_unchecked(rows.text_in(tid, &column.at, slot))
        })
    }

    fn find<'t>(rows: &'t Rows, tid: Tid, column: &ShapeColumn) -> Cow<'t, str> {
        rows.str(tid, &column.at)
    }
}

macro_rules! rows {
    ($($count:literal: $($value:ident $index:tt)*;)*) => {$(
        impl<$($value: ShapeValue),*> ShapeRow for ($($value,)*) {}
        impl<$($value: ShapeValue + sealed::FixedValue),*> FixedRow for ($($value,)*) {}

        impl<$($value: ShapeValue),*> sealed::Row for ($($value,)*) {
            const COLUMNS: usize = $count;
            type At<'t> = ($($value::At<'t>,)*);
            type Read<'t> = ($($value::Read<'t>,)*);

            fn suits(columns: &[ShapeColumn]) -> Result<(), (usize, &'static str)> {
                $($value::suits(&columns[$index]).map_err(|wanted| ($index, wanted))?;)*
                Ok(())
            }

            #[inline(always)]
            unsafe fn put<const LIE: u8>(
                values: Self::At<'_>,
                row: &mut NewRow<'_>,
                columns: &[ShapeColumn],
            ) -> Result<(), TableError> {
                assert!(columns.len() == $count);
                // SAFETY: P-1 is the caller's. A long text finds the row's place again, so the spot is too.
                unsafe {
                    let mut at = spot::<LIE>(row.rows_ref(), row.place(), columns);
                    $(
                        $value::put::<LIE>(values.$index, row, at, &columns[$index])?;
                        if $value::MOVES {
                            at = spot::<LIE>(row.rows_ref(), row.place(), columns);
                        }
                    )*
                    let _ = at;
                }
                Ok(())
            }

            #[inline(always)]
            unsafe fn read<'t, const LIE: u8>(
                rows: &'t Rows,
                tid: Tid,
                spot: Spot,
                columns: &[ShapeColumn],
            ) -> Self::Read<'t> {
                assert!(columns.len() == $count);
                // SAFETY: P-1 is the caller's.
                unsafe { ($($value::read::<LIE>(rows, tid, spot, &columns[$index]),)*) }
            }

            #[cold]
            #[inline(never)]
            fn find<'t>(rows: &'t Rows, tid: Tid, columns: &[ShapeColumn]) -> Self::Read<'t> {
                assert!(columns.len() == $count);
                ($($value::find(rows, tid, &columns[$index]),)*)
            }
        }

        impl<$($value: ShapeValue + sealed::FixedValue),*> sealed::FixedRow for ($($value,)*) {
            #[inline(always)]
            fn misfit(self, columns: &[ShapeColumn]) -> Option<ColumnId> {
                assert!(columns.len() == $count);
                $(if !self.$index.fits(&columns[$index]) {
                    return Some(columns[$index].at.column);
                })*
                None
            }

            fn set(self, row: &mut RowUpdate<'_>, columns: &[ShapeColumn]) -> Result<(), TableError> {
                $(self.$index.set(row, &columns[$index])?;)*
                Ok(())
            }

            #[inline(always)]
            unsafe fn replace<const LIE: u8>(
                self,
                rows: &mut Rows,
                spot: Spot,
                columns: &[ShapeColumn],
                mut log: Overwritten<'_>,
            ) {
                assert!(columns.len() == $count);
                $(
                    let column = &columns[$index];
                    // SAFETY: P-1 is the caller's, and that the blocks are private.
                    let (was_null, image) = unsafe { self.$index.replace::<LIE>(rows, spot, column) };
                    log.push(column.at.column, was_null, image);
                )*
            }
        }
    )*};
}

rows! {
    1: A 0;
    2: A 0 B 1;
    3: A 0 B 1 C 2;
    4: A 0 B 1 C 2 D 3;
    5: A 0 B 1 C 2 D 3 E 4;
    6: A 0 B 1 C 2 D 3 E 4 F 5;
    7: A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    8: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
    9: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8;
    10: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9;
    11: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10;
    12: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11;
}

pub(super) fn lie_of<'l>(columns: impl Iterator<Item = &'l ColumnLocation> + Clone) -> u8 {
    let entry = columns.clone().next().map(|at| at.entry);
    if columns.clone().all(|at| at.alone && at.fills_chunk()) {
        APART
    } else if columns.clone().all(|at| Some(at.entry) == entry) {
        TOGETHER
    } else {
        ANYHOW
    }
}

impl Table {
    /// The columns `columns`, each named once, as a tuple of type `V`.
    ///
    /// # Errors
    /// A column is unknown, or of another type than its element; a text that may be NULL is of none.
    ///
    /// # Panics
    /// There are not as many names as elements, or one twice.
    pub fn shape<V: ShapeRow>(&self, columns: &[&str]) -> Result<RowShape<V>, HandleError> {
        assert_eq!(columns.len(), <V as sealed::Row>::COLUMNS, "one name per element");
        let columns: Box<[ShapeColumn]> =
            columns.iter().map(|name| self.shape_column(name)).collect::<Result<_, _>>()?;
        <V as sealed::Row>::suits(&columns).map_err(|(index, wanted)| {
            let column = &self.spec.columns[columns[index].at.column.index()];
            HandleError::WrongType { name: column.name.clone(), found: column.ty, wanted }
        })?;
        let ids: Vec<ColumnId> = columns.iter().map(|column| column.at.column).collect();
        assert!((1..ids.len()).all(|i| !ids[..i].contains(&ids[i])), "each column once");
        let bit = |id: &ColumnId| 1u64.checked_shl(id.0.into());
        Ok(RowShape {
            layout: self.rows.layout.id,
            lie: lie_of(columns.iter().map(|column| &column.at)),
            whole: columns.len() == self.columns,
            bits: ids.iter().try_fold(0, |bits, id| Some(bits | bit(id)?)),
            columns,
            values: PhantomData,
        })
    }

    fn shape_column(&self, name: &str) -> Result<ShapeColumn, HandleError> {
        let (id, ty) = self.find_column(name)?;
        let digits = if let SqlType::Decimal { precision, .. } = ty { precision } else { 0 };
        Ok(ShapeColumn { at: *self.rows.layout.column(id), digits, limit: TextLimit::of(ty) })
    }

    /// The values of a live row. None is a text that may be NULL: no shape has such a column.
    ///
    /// # Panics
    /// The shape belongs to another table, or there never was such a row.
    #[inline(always)]
    pub fn read<V: ShapeRow>(&self, tid: Tid, shape: &RowShape<V>) -> <V as sealed::Row>::Read<'_> {
        debug_assert!(tid.0 < self.rows.slots, "there was such a row");
        if shape.layout != self.rows.layout_id() {
            foreign_handle();
        }
        let Some(place) = self.rows.hot_place(tid) else {
            return V::find(&self.rows, tid, &shape.columns);
        };
        // SAFETY: the shape was made for this layout, checked, and its columns suit `V`; located just
        // now.
        unsafe {
            with_lie!(shape.lie, LIE => {
                V::read::<LIE>(&self.rows, tid, spot::<LIE>(&self.rows, place, &shape.columns), &shape.columns)
            })
        }
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// The row breaks a constraint, or there is no memory; nothing has happened then.
    ///
    /// # Panics
    /// The shape belongs to another table, or has not all its columns.
    #[inline(always)]
    pub fn insert_row<V: ShapeRow>(
        &mut self,
        undo: &mut UndoLog,
        shape: &RowShape<V>,
        values: <V as sealed::Row>::At<'_>,
    ) -> Result<Tid, TableError> {
        if shape.layout != self.rows.layout_id() || !shape.whole {
            foreign_handle();
        }
        let mut row = self.insert(undo)?;
        // SAFETY: as in `read`; a new row's place is kept right by `NewRow`.
        unsafe { with_lie!(shape.lie, LIE => V::put::<LIE>(values, &mut row, &shape.columns)?) }
        row.enter()
    }

    /// Replaces values of a live row by `change` of them; returns the new ones.
    ///
    /// # Errors
    /// There is no such row, the new values break a constraint, or there is no memory; nothing has
    /// happened then.
    ///
    /// # Panics
    /// The shape belongs to another table.
    #[inline(always)]
    pub fn update_row<V: FixedRow>(
        &mut self,
        undo: &mut UndoLog,
        tid: Tid,
        shape: &RowShape<V>,
        change: impl FnOnce(V) -> V,
    ) -> Result<V, TableError> {
        if shape.layout != self.rows.layout_id() {
            foreign_handle();
        }
        if !self.rows.is_live(tid) {
            return Err(TableError::NoRow { table: self.spec.id, tid });
        }
        let new = change(self.read(tid, shape));
        if self.has_checks || shape.bits.is_none_or(|bits| bits & self.guarded.first != 0) {
            return self.update_watched(undo, tid, shape, new);
        }
        if let Some(column) = new.misfit(&shape.columns) {
            return Err(TableError::OutOfRange { table: self.spec.id, column });
        }
        // All that may fail for memory comes before the first write.
        let (known, tid) = self.warm(undo, tid)?;
        let mut place = self.rows.locate(tid);
        // SAFETY: located just now; found again wherever the directory changes.
        unsafe {
            self.rows.make_private(tid, &mut place, &shape.columns[0].at)?;
            for column in &shape.columns[1..] {
                match shape.lie {
                    TOGETHER => self.rows.make_null_private(tid, &mut place, &column.at)?,
                    _ => self.rows.make_private(tid, &mut place, &column.at)?,
                }
            }
        }
        let log = Overwritten { undo, table: self.id, tid: known };
        // SAFETY: as in `read`; the blocks are private.
        unsafe {
            with_lie!(shape.lie, LIE => {
                let spot = spot::<LIE>(&self.rows, place, &shape.columns);
                new.replace::<LIE>(&mut self.rows, spot, &shape.columns, log)
            });
        }
        Ok(new)
    }

    /// [`Table::update_row`] where writing touches an index, the row's place or a CHECK.
    #[inline(never)]
    fn update_watched<V: FixedRow>(
        &mut self,
        undo: &mut UndoLog,
        tid: Tid,
        shape: &RowShape<V>,
        new: V,
    ) -> Result<V, TableError> {
        self.update(undo, tid, |row| new.set(row, &shape.columns))?;
        Ok(new)
    }
}
