//! Reads a database whole, and holds it against the model.

use std::collections::BTreeMap;

use albireo::{Abort, Database, Procedure, Route, SqlError, TableDef, TableHandle, Transaction, Value};
use albireo_base::Tid;
use albireo_bench::tpcc::schema::Table as TpccTable;

use crate::model::{Cell, Row, State, Table};
use crate::random::Random;

/// Reads all rows of a table where they lie, and looks whether they lie where they belong.
struct Scan;

impl Procedure for Scan {
    /// The table, and the column that places its rows.
    type Args = (TableHandle, Option<usize>);
    type Output = Result<Vec<Vec<Value>>, String>;

    fn name(&self) -> &str {
        "scan"
    }

    fn route(&self, _: &Self::Args) -> Route {
        Route::Crossing
    }

    fn run(&self, tx: &mut Transaction, &(handle, column): &Self::Args) -> Result<Self::Output, Abort> {
        let mut rows = Vec::new();
        for site in tx.sites() {
            if handle.is_shared() && site != tx.home() {
                continue;
            }
            let table = tx.table_at(site, handle);
            let before = rows.len();
            rows.extend(table.scan_from(Tid(0)).map(|row| table.row(row)));
            if table.row_count() != (rows.len() - before) as u64 {
                return Ok(Err(format!(
                    "{} rows are counted, {} found",
                    table.row_count(),
                    rows.len() - before
                )));
            }
            let astray = |row: &&Vec<Value>| {
                column.is_some_and(|column| tx.site_of_value(&row[column]).is_ok_and(|right| right != site))
            };
            if let Some(row) = rows[before..].iter().find(astray) {
                return Ok(Err(format!("row {row:?} lies in partition {}", site.number())));
            }
        }
        Ok(Ok(rows))
    }
}

/// Looks at all partitions and does nothing: its receipt is for all that has been done.
pub struct Barrier;

impl Procedure for Barrier {
    type Args = ();
    type Output = ();

    fn name(&self) -> &str {
        "barrier"
    }

    fn route(&self, (): &()) -> Route {
        Route::Crossing
    }

    fn run(&self, _: &mut Transaction, (): &()) -> Result<(), Abort> {
        Ok(())
    }
}

/// Why a database is not as it has to be.
#[derive(Debug)]
pub enum Wrong {
    /// It does not answer.
    Failed {
        /// What it was asked.
        what: String,
        /// What it says instead.
        error: SqlError,
    },
    /// It answers something else: in words, what.
    Answer(String),
}

impl From<Wrong> for String {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Failed { what, error } => format!("{what}: {error}"),
            Wrong::Answer(words) => words,
        }
    }
}

/// All rows of a table, in no order.
///
/// # Errors
/// They cannot be read, or are not where they belong.
pub fn rows(database: &Database, def: &TableDef) -> Result<Vec<Vec<Value>>, Wrong> {
    let handle = TableHandle::new(def.id, def.is_shared());
    let column = def.partition_by.map(|column| column.index());
    let scan = database.register_procedure(Scan).call(&(handle, column));
    let failed = |error| Wrong::Failed { what: format!("could not read table {}", def.name), error };
    let found = scan.map_err(failed)?;
    found.map_err(|what| Wrong::Answer(format!("table {}: {what}", def.name)))
}

/// A table of these rows, as the model has it.
pub fn table(def: &TableDef, rows: &[Vec<Value>]) -> Table {
    let mut table = Table::default();
    for row in rows {
        *table.rows.entry(row.iter().map(Cell::from).collect()).or_default() += 1;
    }
    table.indexes = def.indexes.iter().map(|index| index.name.clone()).collect();
    table
}

/// Whether a table is one of TPC-C's, which the model does not know.
fn is_tpcc(name: &str) -> bool {
    TpccTable::ALL.iter().any(|table| table.name() == name)
}

/// What the database holds, but for TPC-C's tables.
///
/// # Errors
/// In words, if it cannot be read.
pub fn state(database: &Database) -> Result<State, String> {
    let mut state = State::default();
    for def in database.catalog().tables().filter(|def| !is_tpcc(&def.name)) {
        let table = table(def, &rows(database, def)?);
        state.tables.insert(def.name.clone(), table);
    }
    if let Ok(pay) = database.routine("pay") {
        let (id, cents) = (Value::Integer(-1), Value::BigInt(0));
        let (reply, _) = pay.start(&[(&id).into(), (&cents).into()]).map_err(|error| error.to_string())?;
        let rows = reply.into_rows();
        let edition = match rows.first().and_then(|row| row.first()) {
            Some(albireo::Argument::Value(Value::BigInt(edition))) => *edition,
            other => return Err(format!("pay tells no edition but {other:?}")),
        };
        state.routines.insert("pay".to_owned(), edition);
    }
    Ok(state)
}

/// A query that an index answers: its table and index, its text, and the column that the parameter is for.
const LOOKUPS: [(&str, &str, &str, usize); 6] = [
    ("account", "account_pkey", "SELECT id, owner, cents FROM account WHERE id = $1", 0),
    ("note", "note_pkey", "SELECT id, body, amount FROM note WHERE id = $1", 0),
    ("note", "note_amount", "SELECT id, body, amount FROM note WHERE amount = $1::numeric / 100", 2),
    ("thing", "thing_v", "SELECT k, v FROM thing WHERE v = $1", 1),
    ("t0", "t0_pkey", "SELECT a, b FROM t0 WHERE a = $1", 0),
    ("t2", "t2_pkey", "SELECT a, b FROM t2 WHERE a = $1", 0),
];

/// Finds rows by one of the indexes, and what is not there not. One each time: the plan of a query takes longer
/// than all else that a recovery does here.
///
/// # Errors
/// It does not answer, or an index says something else than the rows.
pub fn index(database: &Database, state: &State, random: &mut Random) -> Result<(), Wrong> {
    let there: Vec<_> = LOOKUPS.iter().filter(|(table, index, ..)| state.has_index(table, index)).collect();
    if there.is_empty() {
        return Ok(());
    }
    let (table, _, query, column) = random.pick(&there);
    let rows: Vec<&Row> = state.table(table).rows().collect();
    for _ in 0..4 {
        let key = match rows.is_empty() || random.percent(25) {
            true if *table == "thing" => Cell::text("no such text"),
            true => Cell::Int(random.between(0, 30)),
            false => random.pick(&rows)[*column].clone(),
        };
        let failed = |error| Wrong::Failed { what: (*query).to_owned(), error };
        let found = lookup(database, query, &key).map_err(failed)?;
        let mut wanted = BTreeMap::new();
        let with_key = rows.iter().filter(|row| key != Cell::Null && row[*column] == key);
        with_key.for_each(|row| *wanted.entry((*row).clone()).or_insert(0) += 1);
        if found != wanted {
            return Err(Wrong::Answer(format!("{query} with {key} gives {found:?}, not {wanted:?}")));
        }
    }
    Ok(())
}

fn lookup(database: &Database, query: &str, key: &Cell) -> Result<BTreeMap<Row, u32>, SqlError> {
    let parameter = match key {
        Cell::Null => Value::Null,
        Cell::Int(number) => Value::Integer(*number as i32),
        Cell::Text(text) => Value::Text(text.clone()),
    };
    let mut rows = BTreeMap::new();
    for row in database.query(query, &[parameter])?.rows() {
        *rows.entry(row.iter().map(Cell::from).collect()).or_default() += 1;
    }
    Ok(rows)
}

/// Asks an analytical query and adds the answer up here as well; nothing while its table is not there.
///
/// # Errors
/// It does not answer, or the two differ.
pub fn analytical(database: &Database, state: &State) -> Result<(), Wrong> {
    sum_of_accounts(database, state, "cents", |row| row[2].int())
}

/// As [`analytical`], of the letters of texts: no sums that are known of frozen rows answer that.
///
/// # Errors
/// It does not answer, or the two differ.
pub fn letters(database: &Database, state: &State) -> Result<(), Wrong> {
    sum_of_accounts(database, state, "length(owner)", |row| match &row[1] {
        Cell::Text(owner) => Some(owner.len() as i64),
        _ => None,
    })
}

/// Adds up what an expression gives for each account, which `of` gives as well.
fn sum_of_accounts(
    database: &Database,
    state: &State,
    expression: &str,
    of: impl Fn(&Row) -> Option<i64>,
) -> Result<(), Wrong> {
    if !state.tables.contains_key("account") {
        return Ok(());
    }
    let query = format!("SELECT count(*), sum({expression})::bigint FROM account");
    let failed = |error| Wrong::Failed { what: query.clone(), error };
    let answer = database.query(&query, &[]).map_err(failed)?;
    let rows = answer.rows();
    let found: Vec<Cell> = rows[0].iter().map(Cell::from).collect();
    let numbers: Vec<i64> = state.table("account").rows().filter_map(of).collect();
    let sum = if numbers.is_empty() { Cell::Null } else { Cell::Int(numbers.iter().sum()) };
    let wanted = [Cell::Int(numbers.len() as i64), sum];
    match found == wanted {
        true => Ok(()),
        false => Err(Wrong::Answer(format!("{query} gives {found:?}, not {wanted:?}"))),
    }
}
