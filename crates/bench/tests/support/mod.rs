//! A population in SQLite, the oracle of the tests.

#![allow(dead_code, reason = "not every test uses everything")]

pub mod native;
pub mod transactions;

use std::error::Error;

use albireo_base::SqlType;
use albireo_bench::tpcc::population::{Population, Sink};
use albireo_bench::tpcc::rows::{Cell, Row};
use albireo_bench::tpcc::schema::{Definition, Table};
use rusqlite::functions::FunctionFlags;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql};

/// What a decimal becomes; SQLite has none.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Decimals {
    /// A whole number of the last digit: sums are exact, but literals mean something else.
    Units,
    /// Floating point: literals mean what they say, but sums are rounded.
    Floating,
}

/// A database in memory without tables, with the functions the queries need.
pub fn empty() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.pragma_update(None, "case_sensitive_like", true)?;
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("mod", 2, flags, |context| {
        Ok(context.get::<i64>(0)? % context.get::<i64>(1)?)
    })?;
    connection.create_scalar_function("ascii", 1, flags, |context| {
        Ok(context.get::<String>(0)?.chars().next().map_or(0, u32::from))
    })?;
    Ok(connection)
}

/// The population in a database in memory.
pub fn sqlite(population: &Population, decimals: Decimals) -> Result<Connection, Box<dyn Error>> {
    let connection = empty()?;
    for table in Table::ALL {
        connection.execute_batch(&create(table.definition(), decimals))?;
        if let Some(sql) = table.definition().create_index() {
            connection.execute_batch(&sql)?;
        }
    }
    connection.execute_batch("BEGIN")?;
    population.all(&mut Loader { connection: &connection, decimals })?;
    connection.execute_batch("COMMIT; ANALYZE")?;
    Ok(connection)
}

/// The table's DDL with SQLite's storage class instead of DECIMAL.
fn create(definition: &Definition, decimals: Decimals) -> String {
    let mut sql = definition.create_plain();
    let class = if decimals == Decimals::Units { "INTEGER" } else { "REAL" };
    for column in definition.columns {
        if let SqlType::Decimal { precision, scale } = column.ty {
            sql = sql.replace(&format!("DECIMAL({precision},{scale})"), class);
        }
    }
    sql
}

struct Loader<'a> {
    connection: &'a Connection,
    decimals: Decimals,
}

struct Bound<'a>(Cell<'a>, Decimals);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Cell::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Cell::SmallInt(value) => value.into(),
            Cell::Integer(value) => value.into(),
            Cell::Decimal { unscaled, .. } if self.1 == Decimals::Units => unscaled.into(),
            Cell::Decimal { unscaled, scale } => (unscaled as f64 / 10f64.powi(scale.into())).into(),
            Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Cell::Timestamp(_) => timestamp(self.0).into(),
        })
    }
}

/// 26 characters, so that text compares as time does.
pub fn timestamp(cell: Cell<'_>) -> String {
    let text = cell.to_string();
    let (seconds, fraction) = text.split_once('.').unwrap_or((&text, ""));
    format!("{seconds}.{fraction:0<6}")
}

impl Sink for Loader<'_> {
    type Error = rusqlite::Error;

    fn row<R: Row>(&mut self, row: &R) -> rusqlite::Result<()> {
        let places = vec!["?"; R::COLUMNS.len()].join(", ");
        let sql = format!("INSERT INTO {} VALUES ({places})", R::TABLE.name());
        let mut statement = self.connection.prepare_cached(&sql)?;
        row.cells(|cells| {
            statement
                .execute(rusqlite::params_from_iter(cells.iter().map(|&cell| Bound(cell, self.decimals))))
        })?;
        Ok(())
    }
}
