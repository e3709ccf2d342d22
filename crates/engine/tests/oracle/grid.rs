//! Scalar functions, operators and casts over a grid of values, on every path.
//!
//! `grid/expressions.txt` has the expressions, `grid/values.txt` the values of their arguments, and
//! `grid/answers.txt` what PostgreSQL 15 says, once. Each expression is computed
//!
//! - *live*: by a statement that an index answers, on live rows (on a snapshot, if that path refuses it);
//! - *snapshot*: by one that reads the whole table;
//! - *routine*: by a compiled function;
//! - *check*: by a CHECK, which has to take what *live* gave; NULL where that failed, so that it fails too.
//!
//! What *live* says is compared with PostgreSQL, the other paths with *live*: value as text, type, and
//! SQLSTATE. `grid/differences.txt` lists the differences; each is a defect. One that is gone must leave
//! the list, and none may join it unread. `ALBIREO_TEST_DIFFERENCES=1` writes the list anew;
//! `ALBIREO_TEST_REWRITE=1` beside `ALBIREO_TEST_POSTGRES` asks PostgreSQL anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use albireo::{Config, Connection, Database, ExecutionPath, SqlError, Value};

use super::script::{Answer, Expected, Record};
use super::systems;

/// What an expression of one row of values gives: a value as text, or `!` and the SQLSTATE.
type Cell = String;

/// What an expression gives for all rows, and its type, empty if no row has a value.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Column {
    ty: String,
    cells: Vec<Cell>,
}

/// An expression and the table of its arguments.
struct Expression {
    /// As it stands in the file.
    line: String,
    types: Vec<String>,
    sql: String,
}

impl Expression {
    fn table(&self) -> String {
        format!("g_{}", self.types.join("_"))
    }
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/grid").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(file(name)).unwrap()
}

fn expressions() -> Vec<Expression> {
    let lines = read("expressions.txt");
    let lines = lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let expression = |line: &str| {
        let (types, sql) = line.split_once(": ").unwrap();
        let types = types.split(", ").map(str::to_owned).collect();
        Expression { line: line.to_owned(), types, sql: sql.to_owned() }
    };
    lines.map(expression).collect()
}

/// The values of each type, as literals.
fn values() -> BTreeMap<String, Vec<String>> {
    let text = read("values.txt");
    let paragraphs = text.split("\n\n").filter(|paragraph| !paragraph.starts_with('#'));
    let of = |paragraph: &str| {
        let mut lines = paragraph.lines().map(str::to_owned);
        (lines.next().unwrap(), lines.collect())
    };
    paragraphs.map(of).collect()
}

/// The name that SQL has for a type.
fn sql_type(name: &str) -> &str {
    match name {
        "bool" => "boolean",
        "double" => "double precision",
        "numeric" => "numeric(38,9)",
        "price" => "numeric(10,2)",
        other => other,
    }
}

/// All rows of arguments of these types.
fn rows(types: &[String], values: &BTreeMap<String, Vec<String>>) -> Vec<Vec<String>> {
    let most = match types.len() {
        1 => usize::MAX,
        2 => 8,
        _ => 4,
    };
    let mut rows = vec![Vec::new()];
    for ty in types {
        let values = values.get(ty).unwrap_or_else(|| panic!("no values of type {ty}"));
        let longer = |row: &Vec<String>| {
            let values = values.iter().take(most);
            values.map(|value| [row.as_slice(), std::slice::from_ref(value)].concat()).collect::<Vec<_>>()
        };
        rows = rows.iter().flat_map(longer).collect();
    }
    rows
}

/// The columns or parameters that an expression's arguments come from.
fn named(expression: &Expression, ty: impl Fn(&str) -> String) -> String {
    let named = ["x", "y", "z"].iter().zip(&expression.types);
    let named: Vec<String> = named.map(|(name, of)| format!("{name} {}", ty(of))).collect();
    named.join(", ")
}

/// The names of an expression's arguments.
fn arguments(expression: &Expression) -> String {
    ["x", "y", "z"][..expression.types.len()].join(", ")
}

/// The statements that make and fill the table of an expression's arguments.
fn definition(expression: &Expression, rows: &[Vec<String>]) -> String {
    let columns = named(expression, |ty| sql_type(ty).to_owned());
    let table = expression.table();
    let tuples: Vec<String> =
        rows.iter().enumerate().map(|(id, row)| format!("({id}, {})", row.join(", "))).collect();
    format!(
        "CREATE TABLE {table} (id INTEGER PRIMARY KEY, {columns}); INSERT INTO {table} VALUES {}",
        tuples.join(", ")
    )
}

fn failed(error: &SqlError) -> Cell {
    format!("!{}", error.state())
}

/// Whether it is what [`failed`] says, not the value of a text.
fn is_failure(cell: &str) -> bool {
    cell.len() == 6 && cell.starts_with('!')
}

fn shown(value: &Value) -> Cell {
    visible(&value.to_string())
}

/// A text as the files have it: blanks at its ends and zeros can be seen.
fn visible(text: &str) -> Cell {
    let inner = text.trim_matches(' ');
    if inner.is_empty() {
        return if text.is_empty() { "(empty)".to_owned() } else { "␣".repeat(text.len()) };
    }
    let before = text.len() - text.trim_start_matches(' ').len();
    let after = text.len() - text.trim_end_matches(' ').len();
    format!("{}{}{}", "␣".repeat(before), inner.replace('\0', "\\0"), "␣".repeat(after))
}

/// The class of a type: without how many digits or characters it has at most.
fn class(ty: &str) -> String {
    ty.split('(').next().unwrap_or_default().to_owned()
}

fn one(connection: &Connection, sql: &str, column: &mut Column) {
    column.cells.push(match connection.query(sql, &[]) {
        Ok(result) => {
            column.ty = class(&result.columns[0].ty.to_string());
            shown(&result.value(0, 0))
        }
        Err(error) => failed(&error),
    });
}

fn live(connection: &Connection, expression: &Expression, rows: usize) -> Column {
    let mut column = Column::default();
    let (sql, table) = (&expression.sql, expression.table());
    connection.database().force_execution_path(Some(ExecutionPath::Transactional));
    (0..rows)
        .for_each(|id| one(connection, &format!("SELECT {sql} FROM {table} WHERE id = {id}"), &mut column));
    column
}

fn snapshot(connection: &Connection, expression: &Expression, rows: usize) -> Column {
    let (sql, table) = (&expression.sql, expression.table());
    connection.database().force_execution_path(Some(ExecutionPath::Analytical));
    let whole = connection.query(&format!("SELECT {sql}, id FROM {table} ORDER BY id + 0"), &[]);
    if let Ok(result) = whole {
        connection.database().force_execution_path(None);
        let cells = result.rows().iter().map(|row| shown(&row[0])).collect();
        return Column { ty: class(&result.columns[0].ty.to_string()), cells };
    }
    let mut column = Column::default();
    (0..rows).for_each(|id| {
        one(connection, &format!("SELECT {sql} FROM {table} WHERE id + 0 = {id}"), &mut column)
    });
    connection.database().force_execution_path(None);
    column
}

/// By a compiled function of the arguments.
fn routine(connection: &Connection, expression: &Expression, like: &Column) -> Result<Column, SqlError> {
    let gives = if like.ty.is_empty() { "text" } else { &like.ty };
    connection.execute(&format!(
        "CREATE FUNCTION f({}) RETURNS {gives} LANGUAGE plpgsql AS $$BEGIN RETURN {}; END$$",
        named(expression, |ty| class(sql_type(ty))),
        expression.sql
    ))?;
    let mut column = Column::default();
    let (arguments, table) = (arguments(expression), expression.table());
    for id in 0..like.cells.len() {
        one(connection, &format!("SELECT f({arguments}) FROM {table} WHERE id = {id}"), &mut column);
    }
    let types: Vec<String> = expression.types.iter().map(|ty| class(sql_type(ty))).collect();
    connection.execute(&format!("DROP FUNCTION f({})", types.join(", ")))?;
    Ok(column)
}

/// By a CHECK that compares with what `live` gave: what it takes is its value.
fn check(
    connection: &Connection,
    expression: &Expression,
    like: &Column,
    right: &Column,
) -> Result<Column, SqlError> {
    let columns = named(expression, |ty| sql_type(ty).to_owned());
    let (sql, arguments, table) = (&expression.sql, arguments(expression), expression.table());
    // A column of NUMERIC rounds to its scale, and there are none of INTERVAL, so those are compared as text.
    let (cast, gives) = match if right.ty == "interval" { "" } else { like.ty.as_str() } {
        "" | "numeric" => ("::text", "text"),
        other => ("", other),
    };
    connection
        .execute(&format!("CREATE TABLE c (id INTEGER, {columns}, v {gives}, CHECK (({sql}){cast} = v))"))?;
    let mut column = Column { ty: like.ty.clone(), cells: Vec::new() };
    for (id, live) in like.cells.iter().enumerate() {
        let value = if is_failure(live) { "NULL".to_owned() } else { format!("({sql}){cast}") };
        let sql = format!("INSERT INTO c SELECT id, {arguments}, {value} FROM {table} WHERE id = {id}");
        column.cells.push(match connection.execute(&sql) {
            Ok(_) if is_failure(live) => "NULL".to_owned(),
            Ok(_) => live.clone(),
            Err(error) => failed(&error),
        });
    }
    connection.execute("DROP TABLE c")?;
    Ok(column)
}

/// What PostgreSQL says, from the file.
fn answers() -> BTreeMap<String, Column> {
    let text = read("answers.txt");
    let of = |paragraph: &str| {
        let mut lines = paragraph.lines().map(str::to_owned);
        let (line, ty) = (lines.next().unwrap(), lines.next().unwrap());
        (line, Column { ty: ty.trim_start_matches("type ").to_owned(), cells: lines.collect() })
    };
    text.split("\n\n").filter(|paragraph| !paragraph.starts_with('#')).map(of).collect()
}

/// Asks PostgreSQL and writes the file.
fn rewrite(expressions: &[Expression], values: &BTreeMap<String, Vec<String>>, socket: &str) {
    let record = |sql: String, expected| Record {
        line: 0,
        preamble: String::new(),
        skipped_by: Vec::new(),
        sql,
        expected,
    };
    let any = || Expected::Rows { columns: Vec::new(), rows: Vec::new(), ordered: true };
    let mut made = Vec::new();
    let mut records = Vec::new();
    for expression in expressions {
        let rows = rows(&expression.types, values);
        let table = expression.table();
        if !made.contains(&table) {
            let definition = definition(expression, &rows);
            let parts = definition.split("; ");
            records.extend(parts.map(|sql| record(sql.to_owned(), Expected::Ok)));
            made.push(table.clone());
        }
        let ask = |id| format!("SELECT {} AS v FROM {table} WHERE id = {id}", expression.sql);
        records.extend((0..rows.len()).map(|id| record(ask(id), any())));
    }
    let answers = systems::postgres(&records, socket, "grid", visible);
    assert_eq!(answers.len(), records.len());
    let mut said = records.iter().zip(answers).filter(|(record, _)| record.expected != Expected::Ok);
    let mut text =
        "# What PostgreSQL 15 says: an expression, its type, and its values for all rows of arguments.\n"
            .to_owned();
    for expression in expressions {
        let mut column = Column::default();
        for _ in rows(&expression.types, values) {
            column.cells.push(match said.next().unwrap().1 {
                Answer::Rows { columns, rows } => {
                    column.ty = class(columns[0].trim_start_matches("v "));
                    rows[0][0].clone()
                }
                Answer::Error { state, .. } => format!("!{state}"),
                Answer::Done(_) => panic!("{}", expression.line),
            });
        }
        write!(text, "\n{}\ntype {}\n{}\n", expression.line, column.ty, column.cells.join("\n")).unwrap();
    }
    fs::write(file("answers.txt"), text).unwrap();
}

/// A line for the list, if two columns differ.
fn difference(
    path: &str,
    expression: &Expression,
    arguments: &[Vec<String>],
    found: &Column,
    right: &Column,
) -> Option<String> {
    let pairs = || found.cells.iter().zip(&right.cells).enumerate().filter(|(_, (a, b))| a != b);
    let line = &expression.line;
    let types = (!found.ty.is_empty() && !right.ty.is_empty() && found.ty != right.ty)
        .then(|| format!("type {} for {}", found.ty, right.ty));
    let cells = pairs().next().map(|(row, (a, b))| {
        let count = pairs().count();
        format!("{count} of {}, first ({}): {a} for {b}", right.cells.len(), arguments[row].join(", "))
    });
    let parts: Vec<String> = types.into_iter().chain(cells).collect();
    (!parts.is_empty()).then(|| format!("{path} | {line} | {}", parts.join("; ")))
}

fn differences(expressions: &[Expression], values: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let config = Config { partitions: 1, query_threads: 1, ..Config::default() };
    let connection = Database::in_memory(config).unwrap().connect();
    let answers = answers();
    let mut made = Vec::new();
    let mut list = Vec::new();
    for expression in expressions {
        let arguments = rows(&expression.types, values);
        if !made.contains(&expression.table()) {
            connection.execute(&definition(expression, &arguments)).unwrap();
            made.push(expression.table());
        }
        let right = answers.get(&expression.line).unwrap_or_else(|| panic!("no answer: {}", expression.line));
        assert_eq!(right.cells.len(), arguments.len(), "{}", expression.line);
        let live = live(&connection, expression, arguments.len());
        list.extend(difference("live", expression, &arguments, &live, right));
        let snapshot = snapshot(&connection, expression, arguments.len());
        list.extend(difference("snapshot", expression, &arguments, &snapshot, &live));
        for (path, column) in [
            ("routine", routine(&connection, expression, &live)),
            ("check", check(&connection, expression, &live, right)),
        ] {
            list.extend(match column {
                Ok(column) => difference(path, expression, &arguments, &column, &live),
                Err(error) => Some(format!("{path} | {} | refused: {}", expression.line, failed(&error))),
            });
        }
    }
    list
}

/// Runs the grid.
///
/// # Panics
/// The differences are not those of the list.
pub fn run() {
    let (expressions, values) = (expressions(), values());
    let set = |name: &str| std::env::var(name).ok();
    if let (Some(socket), Some(_)) = (set("ALBIREO_TEST_POSTGRES"), set("ALBIREO_TEST_REWRITE")) {
        return rewrite(&expressions, &values, &socket);
    }
    let found = differences(&expressions, &values);
    if set("ALBIREO_TEST_DIFFERENCES").is_some() {
        let head = "# Where paths differ: path, expression, and how: `live` from PostgreSQL 15, the others from `live`.\n";
        return fs::write(file("differences.txt"), format!("{head}{}\n", found.join("\n"))).unwrap();
    }
    let list = read("differences.txt");
    let listed: Vec<&str> = list.lines().filter(|line| !line.starts_with('#')).collect();
    let new = found.iter().filter(|line| !listed.contains(&line.as_str())).map(|line| format!("+ {line}\n"));
    let gone = listed.iter().filter(|line| !found.iter().any(|other| other == *line));
    let report: String = new.chain(gone.map(|line| format!("- {line}\n"))).collect();
    assert!(report.is_empty(), "\ndifferences that are not listed (+), or listed and gone (-):\n{report}");
}
