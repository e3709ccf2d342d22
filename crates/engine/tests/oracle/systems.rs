//! The systems that statements run in.

use std::io::Write;
use std::process::{Command, Stdio};

use albireo::{Config, Connection, Database, ExecutionPath, Outcome, Value};
use rusqlite::types::ValueRef;

use super::script::{Answer, Expected, Record, System, cell};

/// The answers of Albireo to the records that run in it, on this path where they can.
pub fn albireo(records: &[Record], config: Config, path: Option<ExecutionPath>) -> Vec<Answer> {
    let database = Database::in_memory(config).expect("a database");
    database.force_execution_path(path);
    let connection = database.connect();
    records.iter().filter(|r| r.runs_in(System::Albireo)).map(|r| ask_albireo(&connection, &r.sql)).collect()
}

fn ask_albireo(connection: &Connection, sql: &str) -> Answer {
    match connection.execute(sql) {
        Ok(outcomes) => match outcomes.into_iter().last().expect("a statement") {
            Outcome::Done { rows, .. } => Answer::Done(rows),
            Outcome::Rows(result) => {
                let columns = result.columns.iter().map(|column| format!("{} {}", column.name, column.ty));
                let row = |row: Vec<Value>| row.iter().map(|value| cell(&value.to_string())).collect();
                Answer::Rows {
                    columns: columns.collect(),
                    rows: result.rows().into_iter().map(row).collect(),
                }
            }
        },
        Err(error) => Answer::Error { state: error.state().to_string(), message: error.to_string() },
    }
}

/// The answers of SQLite to the records that run in it.
pub fn sqlite(records: &[Record]) -> Vec<Answer> {
    let connection = rusqlite::Connection::open_in_memory().expect("a database");
    connection.pragma_update(None, "case_sensitive_like", true).expect("a setting of SQLite");
    let ask = |record: &Record| {
        ask_sqlite(&connection, &record.sql)
            .unwrap_or_else(|error| Answer::Error { state: String::new(), message: error.to_string() })
    };
    records.iter().filter(|r| r.runs_in(System::Sqlite)).map(ask).collect()
}

fn ask_sqlite(connection: &rusqlite::Connection, sql: &str) -> rusqlite::Result<Answer> {
    let mut statement = connection.prepare(sql)?;
    if statement.column_count() == 0 {
        return Ok(Answer::Done(statement.execute([])? as u64));
    }
    let columns: Vec<String> = statement.column_names().iter().map(|&name| name.to_owned()).collect();
    let text = |value: ValueRef<'_>| match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => cell(&String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => cell(&Value::Bytea(bytes.to_vec()).to_string()),
    };
    let rows =
        statement.query_map([], |row| (0..columns.len()).map(|i| Ok(text(row.get_ref(i)?))).collect())?;
    Ok(Answer::Rows { rows: rows.collect::<Result<_, _>>()?, columns })
}

/// Marks what the script prints itself.
const MARK: &str = "\u{1}";

/// The answers of PostgreSQL, which listens in directory `socket`, to the records that run in it.
/// They run in a database of their own. `show` makes a cell of a value's text.
pub fn postgres(records: &[Record], socket: &str, database: &str, show: fn(&str) -> String) -> Vec<Answer> {
    let psql = |database: &str, script: &str| {
        let mut command = Command::new("psql");
        command.args(["-X", "-q", "-A", "-t", "-h", socket, "-U", "test", database]);
        command.env("PGTZ", "UTC").env("PGOPTIONS", "-c client_min_messages=error -c extra_float_digits=1");
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("psql is installed");
        let mut input = child.stdin.take().expect("a pipe");
        // It writes while it reads.
        let output = std::thread::scope(|scope| {
            scope.spawn(move || input.write_all(script.as_bytes()).expect("psql reads"));
            child.wait_with_output().expect("psql ends").stdout
        });
        String::from_utf8(output).expect("UTF-8")
    };
    psql("postgres", &format!("DROP DATABASE IF EXISTS {database};\nCREATE DATABASE {database};\n"));
    let mut script = "\\pset fieldsep '\\037'\n\\pset null 'NULL'\n".to_owned();
    for record in records.iter().filter(|record| record.runs_in(System::Postgres)) {
        let sql = &record.sql;
        script += &format!("\\echo '{MARK}'\n");
        if matches!(record.expected, Expected::Rows { .. }) {
            script += &format!("{sql} \\gdesc\n");
        }
        script +=
            &format!("\\echo '{MARK}'\n{sql};\n\\echo '{MARK}':SQLSTATE :ROW_COUNT :LAST_ERROR_MESSAGE\n");
    }
    let output = psql(database, &script);
    let parts: Vec<&str> = output.split(MARK).skip(1).collect();
    parts.chunks_exact(3).map(|parts| postgres_answer(parts[0], parts[1], parts[2], show)).collect()
}

fn postgres_answer(columns: &str, rows: &str, end: &str, show: fn(&str) -> String) -> Answer {
    let mut end = end.trim().splitn(3, ' ');
    let (state, count) = (end.next().unwrap_or_default(), end.next().unwrap_or_default());
    if state != "00000" {
        return Answer::Error { state: state.to_owned(), message: end.next().unwrap_or_default().to_owned() };
    }
    let columns: Vec<String> =
        columns.trim_matches('\n').lines().map(|line| line.replace('\u{1f}', " ")).collect();
    if columns.is_empty() {
        return Answer::Done(count.parse().unwrap_or(0));
    }
    let rows = rows.strip_prefix('\n').unwrap_or(rows).lines();
    Answer::Rows { columns, rows: rows.map(|row| row.split('\u{1f}').map(show).collect()).collect() }
}
