//! Handles to the tables, columns and indexes that the procedures use.

use albireo::{Col, Database, IndexRef, SqlError, TableHandle, TextCol};

use crate::tpcc::DISTRICTS;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident of $table:literal {
        columns { $($column:ident: $ty:ty = $sql:literal,)* }
        texts { $($text:ident = $text_sql:literal,)* }
        indexes { $($index:ident = $index_sql:literal,)* }
    })*) => {$(
        $(#[$doc])*
        pub(super) struct $name {
            pub(super) table: TableHandle,
            $(pub(super) $column: Col<$ty>,)*
            $(pub(super) $text: TextCol,)*
            $(pub(super) $index: IndexRef,)*
        }

        impl $name {
            fn new(database: &Database) -> Result<Self, SqlError> {
                database.with_table($table, |handle, table| {
                    Ok(Self {
                        table: handle,
                        $($column: table.column($sql)?,)*
                        $($text: table.text_column($text_sql)?,)*
                        $($index: table.index($index_sql)?,)*
                    })
                })
            }
        }
    )*};
}

handles! {
    WarehouseTable of "warehouse" {
        columns { tax: i64 = "w_tax", ytd: i64 = "w_ytd", }
        texts { name = "w_name", street_1 = "w_street_1", street_2 = "w_street_2", city = "w_city",
            state = "w_state", zip = "w_zip", }
        indexes { pkey = "warehouse_pkey", }
    }
    DistrictTable of "district" {
        columns { tax: i64 = "d_tax", ytd: i64 = "d_ytd", next_o_id: i32 = "d_next_o_id", }
        texts { name = "d_name", street_1 = "d_street_1", street_2 = "d_street_2", city = "d_city",
            state = "d_state", zip = "d_zip", }
        indexes { pkey = "district_pkey", }
    }
    CustomerTable of "customer" {
        columns { id: i32 = "c_id", since: i64 = "c_since", credit_lim: i64 = "c_credit_lim",
            discount: i64 = "c_discount", balance: i64 = "c_balance", ytd_payment: i64 = "c_ytd_payment",
            payment_cnt: i32 = "c_payment_cnt", delivery_cnt: i32 = "c_delivery_cnt", }
        texts { first = "c_first", middle = "c_middle", last = "c_last", street_1 = "c_street_1",
            street_2 = "c_street_2", city = "c_city", state = "c_state", zip = "c_zip", phone = "c_phone",
            credit = "c_credit", data = "c_data", }
        indexes { pkey = "customer_pkey", by_name = "customer_name", }
    }
    HistoryTable of "history" {
        columns { c_id: i32 = "h_c_id", c_d_id: i16 = "h_c_d_id", c_w_id: i16 = "h_c_w_id",
            d_id: i16 = "h_d_id", w_id: i16 = "h_w_id", date: i64 = "h_date", amount: i64 = "h_amount", }
        texts { data = "h_data", }
        indexes { }
    }
    NewOrderTable of "new_order" {
        columns { o_id: i32 = "no_o_id", d_id: i16 = "no_d_id", w_id: i16 = "no_w_id", }
        texts { }
        indexes { pkey = "new_order_pkey", }
    }
    OrdersTable of "orders" {
        columns { id: i32 = "o_id", d_id: i16 = "o_d_id", w_id: i16 = "o_w_id", c_id: i32 = "o_c_id",
            entry_d: i64 = "o_entry_d", carrier_id: i16 = "o_carrier_id", ol_cnt: i16 = "o_ol_cnt",
            all_local: i16 = "o_all_local", }
        texts { }
        indexes { pkey = "orders_pkey", by_customer = "orders_customer", }
    }
    OrderLineTable of "order_line" {
        columns { o_id: i32 = "ol_o_id", d_id: i16 = "ol_d_id", w_id: i16 = "ol_w_id",
            number: i16 = "ol_number", i_id: i32 = "ol_i_id", supply_w_id: i16 = "ol_supply_w_id",
            delivery_d: i64 = "ol_delivery_d", quantity: i16 = "ol_quantity", amount: i64 = "ol_amount", }
        texts { dist_info = "ol_dist_info", }
        indexes { pkey = "order_line_pkey", }
    }
    ItemTable of "item" {
        columns { price: i64 = "i_price", }
        texts { name = "i_name", data = "i_data", }
        indexes { pkey = "item_pkey", }
    }
    StockBase of "stock" {
        columns { quantity: i16 = "s_quantity", ytd: i32 = "s_ytd", order_cnt: i32 = "s_order_cnt",
            remote_cnt: i32 = "s_remote_cnt", }
        texts { data = "s_data", }
        indexes { pkey = "stock_pkey", }
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
