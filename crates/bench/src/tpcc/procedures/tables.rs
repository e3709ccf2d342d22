//! Handles to the tables, columns and indexes that the procedures use.

use albireo::{Col, Database, IndexRef, RowShape, SqlError, TableHandle, TextCol};

use crate::tpcc::DISTRICTS;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident of $table:literal {
        columns { $($column:ident: $ty:ty = $sql:literal,)* }
        texts { $($text:ident = $text_sql:literal,)* }
        indexes { $($index:ident = $index_sql:literal,)* }
        $(shapes { $($shape:ident { $($part:ident: $part_ty:ty,)* })* })?
    })*) => {$(
        $(#[$doc])*
        pub(super) struct $name {
            pub(super) table: TableHandle,
            $(pub(super) $column: Col<$ty>,)*
            $(pub(super) $text: TextCol,)*
            $(pub(super) $index: IndexRef,)*
            $($(pub(super) $shape: RowShape<($($part_ty,)*)>,)*)?
        }

        impl $name {
            fn new(database: &Database) -> Result<Self, SqlError> {
                database.with_table($table, |handle, table| {
                    Ok(Self {
                        table: handle,
                        $($column: table.column($sql)?,)*
                        $($text: table.text_column($text_sql)?,)*
                        $($index: table.index($index_sql)?,)*
                        $($($shape: table.shape(&[$(stringify!($part),)*])?,)*)?
                    })
                })
            }
        }
    )*};
}

handles! {
    WarehouseTable of "warehouse" {
        columns { tax: i64 = "w_tax", }
        texts { name = "w_name", }
        indexes { pkey = "warehouse_pkey", }
        shapes {
            paid { w_ytd: i64, }
            address { w_street_1: &'static str, w_street_2: &'static str, w_city: &'static str,
                w_state: &'static str, w_zip: &'static str, }
        }
    }
    DistrictTable of "district" {
        columns { tax: i64 = "d_tax", next_o_id: i32 = "d_next_o_id", }
        texts { name = "d_name", }
        indexes { pkey = "district_pkey", }
        shapes {
            ordered { d_next_o_id: i32, }
            paid { d_ytd: i64, }
            address { d_street_1: &'static str, d_street_2: &'static str, d_city: &'static str,
                d_state: &'static str, d_zip: &'static str, }
        }
    }
    CustomerTable of "customer" {
        columns { id: i32 = "c_id", discount: i64 = "c_discount", balance: i64 = "c_balance", }
        texts { first = "c_first", middle = "c_middle", last = "c_last", street_1 = "c_street_1",
            city = "c_city", credit = "c_credit", data = "c_data", }
        indexes { pkey = "customer_pkey", by_name = "customer_name", }
        shapes {
            paid { c_balance: i64, c_ytd_payment: i64, c_payment_cnt: i32, }
            delivered { c_balance: i64, c_delivery_cnt: i32, }
            ordering { c_discount: i64, c_last: &'static str, c_credit: &'static str, }
            address { c_street_1: &'static str, c_street_2: &'static str, c_city: &'static str,
                c_state: &'static str, c_zip: &'static str, }
            person { c_id: i32, c_first: &'static str, c_middle: &'static str, c_last: &'static str,
                c_phone: &'static str, c_since: i64, c_credit: &'static str, c_credit_lim: i64,
                c_discount: i64, }
        }
    }
    HistoryTable of "history" {
        columns { }
        texts { }
        indexes { }
        shapes {
            row { h_c_id: i32, h_c_d_id: i16, h_c_w_id: i16, h_d_id: i16, h_w_id: i16, h_date: i64,
                h_amount: i64, h_data: &'static str, }
        }
    }
    NewOrderTable of "new_order" {
        columns { o_id: i32 = "no_o_id", }
        texts { }
        indexes { pkey = "new_order_pkey", }
        shapes { row { no_o_id: i32, no_d_id: i16, no_w_id: i16, } }
    }
    OrdersTable of "orders" {
        columns { c_id: i32 = "o_c_id", carrier_id: i16 = "o_carrier_id", }
        texts { }
        indexes { pkey = "orders_pkey", by_customer = "orders_customer", }
        shapes {
            row { o_id: i32, o_d_id: i16, o_w_id: i16, o_c_id: i32, o_entry_d: i64,
                o_carrier_id: Option<i16>, o_ol_cnt: i16, o_all_local: i16, }
            status { o_id: i32, o_entry_d: i64, o_carrier_id: Option<i16>, }
            delivered { o_carrier_id: Option<i16>, }
        }
    }
    OrderLineTable of "order_line" {
        columns { i_id: i32 = "ol_i_id", delivery_d: i64 = "ol_delivery_d", amount: i64 = "ol_amount", }
        texts { }
        indexes { pkey = "order_line_pkey", }
        shapes {
            row { ol_o_id: i32, ol_d_id: i16, ol_w_id: i16, ol_number: i16, ol_i_id: i32,
                ol_supply_w_id: i16, ol_delivery_d: Option<i64>, ol_quantity: i16, ol_amount: i64,
                ol_dist_info: &'static str, }
            status { ol_supply_w_id: i16, ol_i_id: i32, ol_quantity: i16, ol_amount: i64,
                ol_delivery_d: Option<i64>, }
            delivered { ol_delivery_d: Option<i64>, }
        }
    }
    ItemTable of "item" {
        columns { }
        texts { name = "i_name", data = "i_data", }
        indexes { pkey = "item_pkey", }
        shapes { ordered { i_price: i64, i_name: &'static str, i_data: &'static str, } }
    }
    StockBase of "stock" {
        columns { quantity: i16 = "s_quantity", }
        texts { data = "s_data", }
        indexes { pkey = "stock_pkey", }
        shapes { counts { s_quantity: i16, s_ytd: i32, s_order_cnt: i32, s_remote_cnt: i32, } }
    }
}

/// STOCK with its ten columns for the districts.
pub(super) struct StockTable {
    pub(super) base: StockBase,
    pub(super) dist: [TextCol; DISTRICTS as usize],
}

impl StockTable {
    fn new(database: &Database) -> Result<Self, SqlError> {
        let dist = database.with_table("stock", |_, table| {
            let mut dist = Vec::with_capacity(DISTRICTS as usize);
            for i in 1..=DISTRICTS {
                dist.push(table.text_column(&format!("s_dist_{i:02}"))?);
            }
            Ok(dist)
        })?;
        let dist = dist.try_into().unwrap_or_else(|_| unreachable!("one column a district was pushed"));
        Ok(Self { base: StockBase::new(database)?, dist })
    }
}

/// All handles.
pub struct Tables {
    pub(super) warehouse: WarehouseTable,
    pub(super) district: DistrictTable,
    pub(super) customer: CustomerTable,
    pub(super) history: HistoryTable,
    pub(super) new_order: NewOrderTable,
    pub(super) orders: OrdersTable,
    pub(super) order_line: OrderLineTable,
    pub(super) item: ItemTable,
    pub(super) stock: StockTable,
}

impl Tables {
    /// Looks everything up.
    ///
    /// # Errors
    /// A table is missing, or lacks a column or index, or has one of another type.
    pub fn new(database: &Database) -> Result<Self, SqlError> {
        Ok(Self {
            warehouse: WarehouseTable::new(database)?,
            district: DistrictTable::new(database)?,
            customer: CustomerTable::new(database)?,
            history: HistoryTable::new(database)?,
            new_order: NewOrderTable::new(database)?,
            orders: OrdersTable::new(database)?,
            order_line: OrderLineTable::new(database)?,
            item: ItemTable::new(database)?,
            stock: StockTable::new(database)?,
        })
    }
}
