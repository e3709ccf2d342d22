//! The tables of TPC-C and CH-benCHmark, and their DDL.
//!
//! Types follow clause 1.3, which gives minimal ranges. Four are wider, because the specification
//! counts on think time and we run thousands of times faster: W_YTD and D_YTD have 18 digits
//! instead of 12 (a warehouse takes in 10^8 a second here, and 12 digits would last two minutes),
//! and the counters C_PAYMENT_CNT, C_DELIVERY_CNT, S_ORDER_CNT and S_REMOTE_CNT are INTEGER instead
//! of four digits.
//!
//! Not responsible for: foreign keys. Clause 1.4.7 allows to leave them out, and the consistency
//! conditions check what they would.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use albireo_base::SqlType;
use serde::Serialize;

use SqlType::{Char, Integer, SmallInt, Timestamp, Varchar};

/// One of the twelve tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "the names of the specification")]
pub enum Table {
    Warehouse,
    District,
    Customer,
    History,
    NewOrder,
    Orders,
    OrderLine,
    Item,
    Stock,
    Supplier,
    Nation,
    Region,
}

/// How the tables lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Every column on its own.
    Column,
    /// Whole rows.
    Row,
    /// Columns that transactions use together side by side, the others on their own.
    #[default]
    Groups,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Column => "column",
            Self::Row => "row",
            Self::Groups => "groups",
        })
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "column" => Ok(Self::Column),
            "row" => Ok(Self::Row),
            "groups" => Ok(Self::Groups),
            _ => Err(format!("'{text}' is not a layout; use column, row or groups")),
        }
    }
}

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub ty: SqlType,
    /// Whether it may be NULL.
    pub nullable: bool,
}

impl Column {
    /// As CREATE TABLE has it: name, type, and whether it may be NULL.
    pub fn declared(&self) -> String {
        let null = if self.nullable { "" } else { " NOT NULL" };
        format!("{} {}{null}", self.name, Short(self.ty))
    }
}

/// What is known about a table before it is created.
#[derive(Debug)]
pub struct Definition {
    /// Which table this is.
    pub table: Table,
    /// Its name in SQL.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
    /// The columns of its primary key; empty for HISTORY, which has none.
    pub primary_key: &'static [&'static str],
    /// Whether transactions look for ranges of the primary key, not only for whole keys.
    pub key_has_ranges: bool,
    /// The column that places its rows; `None` for shared tables.
    pub partition_by: Option<&'static str>,
    /// Its groups under [`Layout::Groups`]; columns in no group are on their own.
    pub groups: &'static [&'static [&'static str]],
    /// Its further index, ordered and not unique: name and columns.
    pub index: Option<(&'static str, &'static [&'static str])>,
}

const fn column(name: &'static str, ty: SqlType) -> Column {
    Column { name, ty, nullable: false }
}

const fn nullable(name: &'static str, ty: SqlType) -> Column {
    Column { name, ty, nullable: true }
}

const fn decimal(precision: u8, scale: u8) -> SqlType {
    SqlType::Decimal { precision, scale }
}

impl Table {
    /// All tables, in the order in which they are created and loaded.
    pub const ALL: [Self; 12] = [
        Self::Item,
        Self::Warehouse,
        Self::District,
        Self::Customer,
        Self::History,
        Self::Stock,
        Self::Orders,
        Self::NewOrder,
        Self::OrderLine,
        Self::Region,
        Self::Nation,
        Self::Supplier,
    ];

    /// The table's definition.
    pub fn definition(self) -> &'static Definition {
        match self {
            Self::Warehouse => &WAREHOUSE,
            Self::District => &DISTRICT,
            Self::Customer => &CUSTOMER,
            Self::History => &HISTORY,
            Self::NewOrder => &NEW_ORDER,
            Self::Orders => &ORDERS,
            Self::OrderLine => &ORDER_LINE,
            Self::Item => &ITEM,
            Self::Stock => &STOCK,
            Self::Supplier => &SUPPLIER,
            Self::Nation => &NATION,
            Self::Region => &REGION,
        }
    }

    /// The table's name in SQL.
    pub fn name(self) -> &'static str {
        self.definition().name
    }
}

impl Definition {
    /// `CREATE TABLE` in standard SQL, with neither layout nor partitioning.
    pub fn create_plain(&self) -> String {
        self.create_with_key("")
    }

    /// `CREATE TABLE` in our SQL.
    pub fn create(&self, layout: Layout) -> String {
        let mut sql = self.create_with_key(if self.key_has_ranges { "" } else { " USING HASH" });
        if let Some(column) = self.partition_by {
            write(&mut sql, format_args!(" PARTITION BY HASH ({column})"));
        }
        match layout {
            Layout::Row => sql.push_str(" WITH (layout = 'row')"),
            Layout::Groups if !self.groups.is_empty() => {
                let groups: Vec<_> = self.groups.iter().map(|group| group.join(", ")).collect();
                write(&mut sql, format_args!(" WITH (groups = '{}')", groups.join("; ")));
            }
            Layout::Groups | Layout::Column => sql.push_str(" WITH (layout = 'column')"),
        }
        sql
    }

    fn create_with_key(&self, key_kind: &str) -> String {
        let columns: Vec<_> = self.columns.iter().map(Column::declared).collect();
        let mut sql = format!("CREATE TABLE {} (\n    {}", self.name, columns.join(",\n    "));
        if !self.primary_key.is_empty() {
            let columns = self.primary_key.join(", ");
            write(&mut sql, format_args!(",\n    PRIMARY KEY ({columns}){key_kind}"));
        }
        sql.push_str("\n)");
        sql
    }

    /// `CREATE INDEX` of the further index.
    pub fn create_index(&self) -> Option<String> {
        let (name, columns) = self.index?;
        Some(format!("CREATE INDEX {name} ON {} ({})", self.name, columns.join(", ")))
    }
}

/// All statements that create the empty database in our SQL, in order.
pub fn ddl(layout: Layout) -> Vec<String> {
    let tables = Table::ALL.map(Table::definition);
    let create = tables.iter().map(|table| table.create(layout));
    create.chain(tables.iter().filter_map(|table| table.create_index())).collect()
}

fn write(sql: &mut String, text: fmt::Arguments<'_>) {
    sql.write_fmt(text).expect("a String takes everything");
}

/// A type in its usual short form.
struct Short(SqlType);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SmallInt => f.write_str("SMALLINT"),
            Integer => f.write_str("INTEGER"),
            SqlType::Decimal { precision, scale } => write!(f, "DECIMAL({precision},{scale})"),
            Char(length) => write!(f, "CHAR({length})"),
            Varchar(length) => write!(f, "VARCHAR({length})"),
            Timestamp => f.write_str("TIMESTAMP"),
            other => other.fmt(f),
        }
    }
}

static WAREHOUSE: Definition = Definition {
    table: Table::Warehouse,
    name: "warehouse",
    columns: &[
        column("w_id", SmallInt),
        column("w_name", Varchar(10)),
        column("w_street_1", Varchar(20)),
        column("w_street_2", Varchar(20)),
        column("w_city", Varchar(20)),
        column("w_state", Char(2)),
        column("w_zip", Char(9)),
        column("w_tax", decimal(4, 4)),
        column("w_ytd", decimal(18, 2)),
    ],
    primary_key: &["w_id"],
    key_has_ranges: false,
    partition_by: Some("w_id"),
    groups: &[&["w_tax", "w_ytd"], &["w_name", "w_street_1", "w_street_2", "w_city", "w_state", "w_zip"]],
    index: None,
};

static DISTRICT: Definition = Definition {
    table: Table::District,
    name: "district",
    columns: &[
        column("d_id", SmallInt),
        column("d_w_id", SmallInt),
        column("d_name", Varchar(10)),
        column("d_street_1", Varchar(20)),
        column("d_street_2", Varchar(20)),
        column("d_city", Varchar(20)),
        column("d_state", Char(2)),
        column("d_zip", Char(9)),
        column("d_tax", decimal(4, 4)),
        column("d_ytd", decimal(18, 2)),
        column("d_next_o_id", Integer),
    ],
    primary_key: &["d_w_id", "d_id"],
    key_has_ranges: false,
    partition_by: Some("d_w_id"),
    groups: &[
        &["d_tax", "d_ytd", "d_next_o_id"],
        &["d_name", "d_street_1", "d_street_2", "d_city", "d_state", "d_zip"],
    ],
    index: None,
};

/// C_STATE, C_PHONE and the key are scanned by most queries and stay on their own; the first group
/// is what Payment and Delivery write, the second what Payment and New-Order read besides.
static CUSTOMER: Definition = Definition {
    table: Table::Customer,
    name: "customer",
    columns: &[
        column("c_id", Integer),
        column("c_d_id", SmallInt),
        column("c_w_id", SmallInt),
        column("c_first", Varchar(16)),
        column("c_middle", Char(2)),
        column("c_last", Varchar(16)),
        column("c_street_1", Varchar(20)),
        column("c_street_2", Varchar(20)),
        column("c_city", Varchar(20)),
        column("c_state", Char(2)),
        column("c_zip", Char(9)),
        column("c_phone", Char(16)),
        column("c_since", Timestamp),
        column("c_credit", Char(2)),
        column("c_credit_lim", decimal(12, 2)),
        column("c_discount", decimal(4, 4)),
        column("c_balance", decimal(12, 2)),
        column("c_ytd_payment", decimal(12, 2)),
        column("c_payment_cnt", Integer),
        column("c_delivery_cnt", Integer),
        column("c_data", Varchar(500)),
    ],
    primary_key: &["c_w_id", "c_d_id", "c_id"],
    key_has_ranges: false,
    partition_by: Some("c_w_id"),
    groups: &[
        &["c_balance", "c_ytd_payment", "c_payment_cnt", "c_delivery_cnt"],
        &[
            "c_discount",
            "c_credit",
            "c_last",
            "c_first",
            "c_middle",
            "c_street_1",
            "c_street_2",
            "c_city",
            "c_state",
            "c_zip",
            "c_phone",
            "c_since",
            "c_credit_lim",
        ],
    ],
    index: Some(("customer_name", &["c_w_id", "c_d_id", "c_last", "c_first", "c_id"])),
};

static HISTORY: Definition = Definition {
    table: Table::History,
    name: "history",
    columns: &[
        column("h_c_id", Integer),
        column("h_c_d_id", SmallInt),
        column("h_c_w_id", SmallInt),
        column("h_d_id", SmallInt),
        column("h_w_id", SmallInt),
        column("h_date", Timestamp),
        column("h_amount", decimal(6, 2)),
        column("h_data", Varchar(24)),
    ],
    primary_key: &[],
    key_has_ranges: false,
    partition_by: Some("h_w_id"),
    groups: &[],
    index: None,
};

static NEW_ORDER: Definition = Definition {
    table: Table::NewOrder,
    name: "new_order",
    columns: &[column("no_o_id", Integer), column("no_d_id", SmallInt), column("no_w_id", SmallInt)],
    primary_key: &["no_w_id", "no_d_id", "no_o_id"],
    key_has_ranges: true,
    partition_by: Some("no_w_id"),
    groups: &[],
    index: None,
};

/// Appended to and rarely changed: columns cost transactions nothing here.
static ORDERS: Definition = Definition {
    table: Table::Orders,
    name: "orders",
    columns: &[
        column("o_id", Integer),
        column("o_d_id", SmallInt),
        column("o_w_id", SmallInt),
        column("o_c_id", Integer),
        column("o_entry_d", Timestamp),
        nullable("o_carrier_id", SmallInt),
        column("o_ol_cnt", SmallInt),
        column("o_all_local", SmallInt),
    ],
    primary_key: &["o_w_id", "o_d_id", "o_id"],
    key_has_ranges: true,
    partition_by: Some("o_w_id"),
    groups: &[],
    index: Some(("orders_customer", &["o_w_id", "o_d_id", "o_c_id", "o_id"])),
};

/// Appended to in runs of about ten rows: columns cost transactions nothing here.
static ORDER_LINE: Definition = Definition {
    table: Table::OrderLine,
    name: "order_line",
    columns: &[
        column("ol_o_id", Integer),
        column("ol_d_id", SmallInt),
        column("ol_w_id", SmallInt),
        column("ol_number", SmallInt),
        column("ol_i_id", Integer),
        column("ol_supply_w_id", SmallInt),
        nullable("ol_delivery_d", Timestamp),
        column("ol_quantity", SmallInt),
        column("ol_amount", decimal(6, 2)),
        column("ol_dist_info", Char(24)),
    ],
    primary_key: &["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"],
    key_has_ranges: true,
    partition_by: Some("ol_w_id"),
    groups: &[],
    index: None,
};

static ITEM: Definition = Definition {
    table: Table::Item,
    name: "item",
    columns: &[
        column("i_id", Integer),
        column("i_im_id", Integer),
        column("i_name", Varchar(24)),
        column("i_price", decimal(5, 2)),
        column("i_data", Varchar(50)),
    ],
    primary_key: &["i_id"],
    key_has_ranges: false,
    partition_by: None,
    groups: &[&["i_price", "i_name", "i_data"]],
    index: None,
};

/// New-Order changes the first group of ten random rows, and reads one of the second and S_DATA.
static STOCK: Definition = Definition {
    table: Table::Stock,
    name: "stock",
    columns: &[
        column("s_i_id", Integer),
        column("s_w_id", SmallInt),
        column("s_quantity", SmallInt),
        column("s_dist_01", Char(24)),
        column("s_dist_02", Char(24)),
        column("s_dist_03", Char(24)),
        column("s_dist_04", Char(24)),
        column("s_dist_05", Char(24)),
        column("s_dist_06", Char(24)),
        column("s_dist_07", Char(24)),
        column("s_dist_08", Char(24)),
        column("s_dist_09", Char(24)),
        column("s_dist_10", Char(24)),
        column("s_ytd", Integer),
        column("s_order_cnt", Integer),
        column("s_remote_cnt", Integer),
        column("s_data", Varchar(50)),
    ],
    primary_key: &["s_w_id", "s_i_id"],
    key_has_ranges: false,
    partition_by: Some("s_w_id"),
    groups: &[
        &["s_quantity", "s_ytd", "s_order_cnt", "s_remote_cnt"],
        &[
            "s_dist_01",
            "s_dist_02",
            "s_dist_03",
            "s_dist_04",
            "s_dist_05",
            "s_dist_06",
            "s_dist_07",
            "s_dist_08",
            "s_dist_09",
            "s_dist_10",
        ],
    ],
    index: None,
};

static SUPPLIER: Definition = Definition {
    table: Table::Supplier,
    name: "supplier",
    columns: &[
        column("su_suppkey", Integer),
        column("su_name", Char(25)),
        column("su_address", Varchar(40)),
        column("su_nationkey", Integer),
        column("su_phone", Char(15)),
        column("su_acctbal", decimal(12, 2)),
        column("su_comment", Varchar(100)),
    ],
    primary_key: &["su_suppkey"],
    key_has_ranges: false,
    partition_by: None,
    groups: &[],
    index: None,
};

static NATION: Definition = Definition {
    table: Table::Nation,
    name: "nation",
    columns: &[
        column("n_nationkey", Integer),
        column("n_name", Char(25)),
        column("n_regionkey", Integer),
        column("n_comment", Varchar(152)),
    ],
    primary_key: &["n_nationkey"],
    key_has_ranges: false,
    partition_by: None,
    groups: &[],
    index: None,
};

static REGION: Definition = Definition {
    table: Table::Region,
    name: "region",
    columns: &[column("r_regionkey", Integer), column("r_name", Char(25)), column("r_comment", Varchar(152))],
    primary_key: &["r_regionkey"],
    key_has_ranges: false,
    partition_by: None,
    groups: &[],
    index: None,
};

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::tpcc::rows::*;

    fn matches<R: Row>() {
        let columns: Vec<_> = R::TABLE.definition().columns.iter().map(|column| column.name).collect();
        assert_eq!(columns, R::COLUMNS);
    }

    #[test]
    fn rows_match_their_tables() {
        matches::<WarehouseRow>();
        matches::<DistrictRow>();
        matches::<CustomerRow>();
        matches::<HistoryRow>();
        matches::<NewOrderRow>();
        matches::<OrderRow>();
        matches::<OrderLineRow>();
        matches::<ItemRow>();
        matches::<StockRow>();
        matches::<SupplierRow>();
        matches::<NationRow>();
        matches::<RegionRow>();
    }

    #[test]
    fn keys_groups_and_indexes_name_columns_of_their_table() {
        for table in Table::ALL {
            let definition = table.definition();
            assert_eq!(definition.table, table);
            let names: HashSet<_> = definition.columns.iter().map(|column| column.name).collect();
            assert_eq!(names.len(), definition.columns.len());
            let mut grouped = HashSet::new();
            for &name in definition.groups.iter().copied().flatten() {
                assert!(names.contains(name) && grouped.insert(name), "{name} in the groups of {table:?}");
            }
            let index = definition.index.map_or(&[][..], |(_, columns)| columns);
            let partition_by = definition.partition_by.as_slice();
            for &name in definition.primary_key.iter().chain(index).chain(partition_by) {
                assert!(names.contains(name), "{name} in {table:?}");
            }
            if let [first, ..] = definition.primary_key {
                assert!(definition.partition_by.is_none_or(|column| column == *first));
            }
        }
    }

    #[test]
    fn ddl_of_a_table_is_readable_sql() {
        let sql = Table::NewOrder.definition().create(Layout::Column);
        let expected = "CREATE TABLE new_order (\n    no_o_id INTEGER NOT NULL,\n    no_d_id SMALLINT NOT NULL,\n    \
                        no_w_id SMALLINT NOT NULL,\n    PRIMARY KEY (no_w_id, no_d_id, no_o_id)\n) \
                        PARTITION BY HASH (no_w_id) WITH (layout = 'column')";
        assert_eq!(sql, expected);
        let sql = Table::Item.definition().create(Layout::Groups);
        assert!(sql.ends_with("WITH (groups = 'i_price, i_name, i_data')"), "{sql}");
        assert!(sql.contains("PRIMARY KEY (i_id) USING HASH"), "{sql}");
        assert_eq!(ddl(Layout::Groups).len(), 14);
    }

    #[test]
    fn layout_named_in_text_is_parsed_and_printed() {
        for layout in [Layout::Column, Layout::Row, Layout::Groups] {
            assert_eq!(layout.to_string().parse(), Ok(layout));
        }
        assert!("rows".parse::<Layout>().is_err());
    }
}
