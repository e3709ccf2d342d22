//! TPC-H's tables, made by the `tpchgen` crates: as CSV, as Parquet, and in SQLite.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use albireo::Value;
use arrow::array::{Array, AsArray, RecordBatch, RecordBatchReader};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Int32Type, Int64Type};
use parquet::arrow::ArrowWriter;
use rusqlite::Connection;
use rusqlite::types::Value as SqliteValue;
use tpchgen::csv as text;
use tpchgen::generators as rows;

/// One of the eight tables.
pub struct Table {
    pub name: &'static str,
    /// Names and types of the columns, and the key.
    pub columns: &'static str,
    /// Its partitioning column, if it is large.
    pub partition_by: Option<&'static str>,
    /// A further index for SQLite, which is slow without.
    index: Option<&'static str>,
    write_csv: fn(f64, &mut dyn Write),
    batches: fn(f64) -> Box<dyn RecordBatchReader>,
}

macro_rules! table {
    ($name:literal, $rows:ident, $csv:ident, $arrow:ident, $columns:literal, $partition:expr, $index:expr) => {
        Table {
            name: $name,
            columns: $columns,
            partition_by: $partition,
            index: $index,
            write_csv: |scale, file| {
                let lines = rows::$rows::new(scale, 1, 1);
                write_lines(file, text::$csv::header(), lines.iter().map(text::$csv::new));
            },
            batches: |scale| Box::new(tpchgen_arrow::$arrow::new(rows::$rows::new(scale, 1, 1))),
        }
    };
}

fn write_lines(file: &mut dyn Write, header: &str, lines: impl Iterator<Item = impl Display>) {
    writeln!(file, "{header}").unwrap();
    lines.for_each(|line| writeln!(file, "{line}").unwrap());
}

/// All tables, with the types of clause 1.4.
pub static TABLES: [Table; 8] = [
    table!(
        "region",
        RegionGenerator,
        RegionCsv,
        RegionArrow,
        "r_regionkey BIGINT PRIMARY KEY, r_name CHAR(25), r_comment VARCHAR(152)",
        None,
        None
    ),
    table!(
        "nation",
        NationGenerator,
        NationCsv,
        NationArrow,
        "n_nationkey BIGINT PRIMARY KEY, n_name CHAR(25), n_regionkey BIGINT NOT NULL,
         n_comment VARCHAR(152)",
        None,
        None
    ),
    table!(
        "part",
        PartGenerator,
        PartCsv,
        PartArrow,
        "p_partkey BIGINT PRIMARY KEY, p_name VARCHAR(55), p_mfgr CHAR(25), p_brand CHAR(10),
         p_type VARCHAR(25), p_size INTEGER, p_container CHAR(10), p_retailprice DECIMAL(15,2),
         p_comment VARCHAR(23)",
        None,
        None
    ),
    table!(
        "supplier",
        SupplierGenerator,
        SupplierCsv,
        SupplierArrow,
        "s_suppkey BIGINT PRIMARY KEY, s_name CHAR(25), s_address VARCHAR(40),
         s_nationkey BIGINT NOT NULL, s_phone CHAR(15), s_acctbal DECIMAL(15,2), s_comment VARCHAR(101)",
        None,
        None
    ),
    table!(
        "partsupp",
        PartSuppGenerator,
        PartSuppCsv,
        PartSuppArrow,
        "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INTEGER, ps_supplycost DECIMAL(15,2),
         ps_comment VARCHAR(199), PRIMARY KEY (ps_partkey, ps_suppkey)",
        Some("ps_partkey"),
        Some("ps_suppkey")
    ),
    table!(
        "customer",
        CustomerGenerator,
        CustomerCsv,
        CustomerArrow,
        "c_custkey BIGINT PRIMARY KEY, c_name VARCHAR(25), c_address VARCHAR(40),
         c_nationkey BIGINT NOT NULL, c_phone CHAR(15), c_acctbal DECIMAL(15,2), c_mktsegment CHAR(10),
         c_comment VARCHAR(117)",
        Some("c_custkey"),
        None
    ),
    table!(
        "orders",
        OrderGenerator,
        OrderCsv,
        OrderArrow,
        "o_orderkey BIGINT PRIMARY KEY, o_custkey BIGINT NOT NULL, o_orderstatus CHAR(1),
         o_totalprice DECIMAL(15,2), o_orderdate DATE, o_orderpriority CHAR(15), o_clerk CHAR(15),
         o_shippriority INTEGER, o_comment VARCHAR(79)",
        Some("o_orderkey"),
        Some("o_custkey")
    ),
    table!(
        "lineitem",
        LineItemGenerator,
        LineItemCsv,
        LineItemArrow,
        "l_orderkey BIGINT, l_partkey BIGINT NOT NULL, l_suppkey BIGINT NOT NULL, l_linenumber INTEGER,
         l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2),
         l_tax DECIMAL(15,2), l_returnflag CHAR(1), l_linestatus CHAR(1), l_shipdate DATE,
         l_commitdate DATE, l_receiptdate DATE, l_shipinstruct CHAR(25), l_shipmode CHAR(10),
         l_comment VARCHAR(44), PRIMARY KEY (l_orderkey, l_linenumber)",
        Some("l_orderkey"),
        Some("l_partkey, l_suppkey")
    ),
];

/// A directory for files that goes with the value.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tpch-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The path of a table's file.
    pub fn file(&self, table: &Table, extension: &str) -> String {
        self.0.join(format!("{}.{extension}", table.name)).to_str().unwrap().to_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed lies in the build's directory and is overwritten.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Table {
    /// `CREATE TABLE` in our SQL.
    pub fn create(&self, partitioned: bool) -> String {
        let create = format!("CREATE TABLE {} ({})", self.name, self.columns);
        match self.partition_by.filter(|_| partitioned) {
            Some(column) => format!("{create} PARTITION BY HASH ({column})"),
            None => create,
        }
    }

    /// Writes the table as CSV with a header.
    pub fn write_csv(&self, scale: f64, path: &str) {
        let mut file = BufWriter::new(File::create(path).unwrap());
        (self.write_csv)(scale, &mut file);
        file.flush().unwrap();
    }

    /// Writes the table as Parquet.
    pub fn write_parquet(&self, scale: f64, path: &str) {
        let batches = (self.batches)(scale);
        let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batches.schema(), None).unwrap();
        for batch in batches {
            writer.write(&batch.unwrap()).unwrap();
        }
        writer.close().unwrap();
    }

    /// Makes the table in SQLite, decimals as floating-point numbers.
    fn make_in_sqlite(&self, scale: f64, connection: &Connection) -> rusqlite::Result<()> {
        let columns = self.columns.replace("DECIMAL(15,2)", "REAL");
        connection.execute_batch(&format!("CREATE TABLE {} ({columns})", self.name))?;
        for batch in (self.batches)(scale) {
            let batch = batch.unwrap();
            let places = vec!["?"; batch.num_columns()].join(", ");
            let mut insert =
                connection.prepare_cached(&format!("INSERT INTO {} VALUES ({places})", self.name))?;
            for row in 0..batch.num_rows() {
                insert.execute(rusqlite::params_from_iter(cells(&batch, row)))?;
            }
        }
        match self.index {
            Some(columns) => {
                connection.execute_batch(&format!("CREATE INDEX {0}_2 ON {0} ({columns})", self.name))
            }
            None => Ok(()),
        }
    }
}

fn cells(batch: &RecordBatch, row: usize) -> impl Iterator<Item = SqliteValue> {
    batch.columns().iter().map(move |array| match array.data_type() {
        DataType::Int32 => i64::from(array.as_primitive::<Int32Type>().value(row)).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::Decimal128(15, 2) => {
            (array.as_primitive::<Decimal128Type>().value(row) as f64 / 100.0).into()
        }
        DataType::Date32 => Value::Date(array.as_primitive::<Date32Type>().value(row)).to_string().into(),
        DataType::Utf8View => array.as_string_view().value(row).to_owned().into(),
        other => panic!("{other} in TPC-H"),
    })
}

/// All tables in SQLite.
pub fn sqlite(scale: f64) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.pragma_update(None, "case_sensitive_like", true).unwrap();
    connection.execute_batch("BEGIN").unwrap();
    for table in &TABLES {
        table.make_in_sqlite(scale, &connection).unwrap();
    }
    connection.execute_batch("COMMIT; ANALYZE").unwrap();
    connection
}
