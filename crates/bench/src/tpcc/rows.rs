//! Rows of the twelve tables as plain structs, and their generic view as cells.
//!
//! A target that wants speed takes the structs; one that wants few lines (SQLite in the tests, a
//! COPY stream) takes [`Row::cells`]. Fields are in the order of the table's columns in
//! [`super::schema`] (test there: `rows_match_their_tables`).

use std::fmt;

use albireo_base::{Decimal, Value};

use super::schema::Table;
use super::text::Text;

/// An exact number: the field is the number times 10^`SCALE`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Fixed<const SCALE: u8>(pub i64);

/// An amount of money, in hundredths.
pub type Money = Fixed<2>;
/// A tax or discount, in ten-thousandths.
pub type Rate = Fixed<4>;

/// A time without zone: microseconds since 1970-01-01 00:00.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Timestamp(pub i64);

/// One value of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cell<'a> {
    /// NULL.
    Null,
    /// SMALLINT.
    SmallInt(i16),
    /// INTEGER.
    Integer(i32),
    /// DECIMAL: the number times 10^`scale`.
    Decimal {
        /// The digits as a whole number.
        unscaled: i64,
        /// Digits after the point.
        scale: u8,
    },
    /// CHAR and VARCHAR.
    Text(&'a str),
    /// TIMESTAMP: microseconds since 1970-01-01 00:00.
    Timestamp(i64),
}

impl From<Cell<'_>> for Value {
    fn from(cell: Cell<'_>) -> Self {
        match cell {
            Cell::Null => Self::Null,
            Cell::SmallInt(value) => Self::SmallInt(value),
            Cell::Integer(value) => Self::Integer(value),
            Cell::Decimal { unscaled, scale } => Self::Decimal(Decimal { unscaled: unscaled.into(), scale }),
            Cell::Text(value) => Self::Text(value.to_owned()),
            Cell::Timestamp(value) => Self::Timestamp(value),
        }
    }
}

/// PostgreSQL's text form; NULL is the empty string, as in its CSV.
impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::Text(text) => f.write_str(text),
            other => fmt::Display::fmt(&Value::from(*other), f),
        }
    }
}

/// A type of field.
pub trait Field {
    /// The field as a cell.
    fn cell(&self) -> Cell<'_>;
}

impl Field for i16 {
    fn cell(&self) -> Cell<'_> {
        Cell::SmallInt(*self)
    }
}

impl Field for i32 {
    fn cell(&self) -> Cell<'_> {
        Cell::Integer(*self)
    }
}

impl<const SCALE: u8> Field for Fixed<SCALE> {
    fn cell(&self) -> Cell<'_> {
        Cell::Decimal { unscaled: self.0, scale: SCALE }
    }
}

impl<const N: usize> Field for Text<N> {
    fn cell(&self) -> Cell<'_> {
        Cell::Text(self.as_str())
    }
}

impl Field for Timestamp {
    fn cell(&self) -> Cell<'_> {
        Cell::Timestamp(self.0)
    }
}

impl<T: Field> Field for Option<T> {
    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Null, Field::cell)
    }
}

/// A row of one of the tables.
pub trait Row {
    /// The table it belongs to.
    const TABLE: Table;
    /// The names of its columns, in order.
    const COLUMNS: &'static [&'static str];

    /// Hands the row's cells, in the order of the columns, to `f`.
    fn cells<R>(&self, f: impl FnOnce(&[Cell<'_>]) -> R) -> R;
}

macro_rules! rows {
    ($($(#[$doc:meta])* $name:ident of $table:ident { $($column:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[allow(missing_docs, reason = "the fields are the columns of the specification")]
        #[derive(Clone, PartialEq, Debug)]
        pub struct $name {
            $(pub $column: $ty,)*
        }

        impl Row for $name {
            const TABLE: Table = Table::$table;
            const COLUMNS: &'static [&'static str] = &[$(stringify!($column)),*];

            fn cells<R>(&self, f: impl FnOnce(&[Cell<'_>]) -> R) -> R {
                f(&[$(self.$column.cell()),*])
            }
        }
    )*};
}

rows! {
    /// A row of WAREHOUSE.
    WarehouseRow of Warehouse {
        w_id: i16,
        w_name: Text<10>,
        w_street_1: Text<20>,
        w_street_2: Text<20>,
        w_city: Text<20>,
        w_state: Text<2>,
        w_zip: Text<9>,
        w_tax: Rate,
        w_ytd: Money,
    }

    /// A row of DISTRICT.
    DistrictRow of District {
        d_id: i16,
        d_w_id: i16,
        d_name: Text<10>,
        d_street_1: Text<20>,
        d_street_2: Text<20>,
        d_city: Text<20>,
        d_state: Text<2>,
        d_zip: Text<9>,
        d_tax: Rate,
        d_ytd: Money,
        d_next_o_id: i32,
    }

    /// A row of CUSTOMER.
    CustomerRow of Customer {
        c_id: i32,
        c_d_id: i16,
        c_w_id: i16,
        c_first: Text<16>,
        c_middle: Text<2>,
        c_last: Text<16>,
        c_street_1: Text<20>,
        c_street_2: Text<20>,
        c_city: Text<20>,
        c_state: Text<2>,
        c_zip: Text<9>,
        c_phone: Text<16>,
        c_since: Timestamp,
        c_credit: Text<2>,
        c_credit_lim: Money,
        c_discount: Rate,
        c_balance: Money,
        c_ytd_payment: Money,
        c_payment_cnt: i32,
        c_delivery_cnt: i32,
        c_data: Text<500>,
    }

    /// A row of HISTORY.
    HistoryRow of History {
        h_c_id: i32,
        h_c_d_id: i16,
        h_c_w_id: i16,
        h_d_id: i16,
        h_w_id: i16,
        h_date: Timestamp,
        h_amount: Money,
        h_data: Text<24>,
    }

    /// A row of NEW_ORDER.
    NewOrderRow of NewOrder {
        no_o_id: i32,
        no_d_id: i16,
        no_w_id: i16,
    }

    /// A row of ORDERS.
    OrderRow of Orders {
        o_id: i32,
        o_d_id: i16,
        o_w_id: i16,
        o_c_id: i32,
        o_entry_d: Timestamp,
        o_carrier_id: Option<i16>,
        o_ol_cnt: i16,
        o_all_local: i16,
    }

    /// A row of ORDER_LINE.
    OrderLineRow of OrderLine {
        ol_o_id: i32,
        ol_d_id: i16,
        ol_w_id: i16,
        ol_number: i16,
        ol_i_id: i32,
        ol_supply_w_id: i16,
        ol_delivery_d: Option<Timestamp>,
        ol_quantity: i16,
        ol_amount: Money,
        ol_dist_info: Text<24>,
    }

    /// A row of ITEM.
    ItemRow of Item {
        i_id: i32,
        i_im_id: i32,
        i_name: Text<24>,
        i_price: Money,
        i_data: Text<50>,
    }

    /// A row of STOCK.
    StockRow of Stock {
        s_i_id: i32,
        s_w_id: i16,
        s_quantity: i16,
        s_dist_01: Text<24>,
        s_dist_02: Text<24>,
        s_dist_03: Text<24>,
        s_dist_04: Text<24>,
        s_dist_05: Text<24>,
        s_dist_06: Text<24>,
        s_dist_07: Text<24>,
        s_dist_08: Text<24>,
        s_dist_09: Text<24>,
        s_dist_10: Text<24>,
        s_ytd: i32,
        s_order_cnt: i32,
        s_remote_cnt: i32,
        s_data: Text<50>,
    }

    /// A row of SUPPLIER.
    SupplierRow of Supplier {
        su_suppkey: i32,
        su_name: Text<25>,
        su_address: Text<40>,
        su_nationkey: i32,
        su_phone: Text<15>,
        su_acctbal: Money,
        su_comment: Text<100>,
    }

    /// A row of NATION.
    NationRow of Nation {
        n_nationkey: i32,
        n_name: Text<25>,
        n_regionkey: i32,
        n_comment: Text<152>,
    }

    /// A row of REGION.
    RegionRow of Region {
        r_regionkey: i32,
        r_name: Text<25>,
        r_comment: Text<152>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_written_as_text_reads_as_postgresql_writes_it() {
        assert_eq!(Rate::cell(&Fixed(312)).to_string(), "0.0312");
        assert_eq!(Money::cell(&Fixed(-1_000)).to_string(), "-10.00");
        assert_eq!(Timestamp(1_234_567).cell().to_string(), "1970-01-01 00:00:01.234567");
        assert_eq!(None::<i16>.cell().to_string(), "");
        assert_eq!(Text::<4>::new("ab").cell().to_string(), "ab");
    }
}
