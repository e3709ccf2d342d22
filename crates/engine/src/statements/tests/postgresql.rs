//! What PostgreSQL says to statements with parameters, by its own protocol.
//!
//! It asks the server whose socket is in the directory PGHOST, as PGUSER in the database PGDATABASE, which
//! lets everybody in; `crates/plpgsql/tests/against_postgresql.py` starts one. All statements are sent
//! before the first answer is read.

#![allow(clippy::disallowed_methods, reason = "asks another database, in tests alone")]

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use albireo_base::Value;

/// What a statement gave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// SQLSTATE and message.
    Error(String, String),
    /// So many rows were changed.
    Done(u64),
    /// Columns as names and types, and the texts of values.
    Rows { columns: Vec<(String, String)>, rows: Vec<Vec<Option<String>>> },
}

/// A session.
pub(super) struct PostgreSql {
    input: UnixStream,
    output: BufReader<UnixStream>,
}

const SETTINGS: &str = "SET timezone = 'UTC'; SET extra_float_digits = 1; SET datestyle = 'ISO'; \
    SET intervalstyle = 'postgres'; SET client_min_messages = 'error'; SET statement_timeout = '20s'";

impl PostgreSql {
    pub(super) fn connect() -> Self {
        let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
        let path = format!("{}/.s.PGSQL.5432", variable("PGHOST"));
        let input = UnixStream::connect(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let output = BufReader::new(input.try_clone().unwrap());
        let mut session = Self { input, output };
        let mut start = 196_608_i32.to_be_bytes().to_vec();
        for text in ["user", &variable("PGUSER"), "database", &variable("PGDATABASE"), ""] {
            start.extend(text.bytes().chain([0]));
        }
        let length = start.len() as i32 + 4;
        session.input.write_all(&[&length.to_be_bytes()[..], &start].concat()).unwrap();
        session.answer();
        session.run(SETTINGS);
        session
    }

    /// Runs statements without parameters, all of which must succeed.
    pub(super) fn run(&mut self, sql: &str) {
        let message = message(b'Q', &[sql.as_bytes(), &[0]].concat());
        self.input.write_all(&message).unwrap();
        if let Answer::Error(state, text) = self.answer() {
            panic!("{state} {text}: {sql}");
        }
    }

    /// The answers to statements with the values of their parameters.
    pub(super) fn ask(&mut self, statements: &[(&str, &[Value])]) -> Vec<Answer> {
        let mut input = self.input.try_clone().unwrap();
        let all: Vec<u8> = statements.iter().flat_map(|(sql, values)| messages(sql, values)).collect();
        std::thread::scope(|scope| {
            scope.spawn(move || input.write_all(&all).unwrap());
            statements.iter().map(|_| self.answer()).collect()
        })
    }

    /// Reads up to the server's being ready again.
    fn answer(&mut self) -> Answer {
        let (mut error, mut columns, mut rows, mut done) = (None, None, Vec::new(), 0);
        loop {
            let mut head = [0; 5];
            self.output.read_exact(&mut head).unwrap();
            let length = i32::from_be_bytes([head[1], head[2], head[3], head[4]]);
            let mut body = vec![0; length as usize - 4];
            self.output.read_exact(&mut body).unwrap();
            let mut part = Part(&body);
            match head[0] {
                b'E' => {
                    let field = |wanted: u8| {
                        let mut part = Part(&body);
                        while part.0.first().is_some_and(|kind| *kind != 0) {
                            let kind = part.byte();
                            let text = part.text();
                            if kind == wanted {
                                return text;
                            }
                        }
                        String::new()
                    };
                    error = Some(Answer::Error(field(b'C'), field(b'M')));
                }
                b'T' => {
                    let count = part.short();
                    let column = |part: &mut Part<'_>| {
                        let name = part.text();
                        part.skip(6);
                        let oid = part.int();
                        part.skip(2);
                        let modifier = part.int();
                        part.skip(2);
                        (name, type_name(oid, modifier))
                    };
                    columns = Some((0..count).map(|_| column(&mut part)).collect::<Vec<_>>());
                }
                b'D' => {
                    let count = part.short();
                    rows.push((0..count).map(|_| part.value()).collect::<Vec<_>>());
                }
                b'C' => {
                    let tag = part.text();
                    done = tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
                }
                b'Z' => break,
                _ => {}
            }
        }
        match (error, columns) {
            (Some(error), _) => error,
            (None, Some(columns)) => Answer::Rows { columns, rows },
            (None, None) => Answer::Done(done),
        }
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = body.len() as i32 + 4;
    [&[kind], &length.to_be_bytes()[..], body].concat()
}

/// Parse, Bind, Describe, Execute and Sync.
fn messages(sql: &str, values: &[Value]) -> Vec<u8> {
    let parse = [&[0], sql.as_bytes(), &[0, 0, 0]].concat();
    let mut bind = vec![0, 0, 0, 0];
    bind.extend((values.len() as i16).to_be_bytes());
    for value in values {
        match value {
            Value::Null => bind.extend((-1_i32).to_be_bytes()),
            value => {
                let text = value.to_string();
                bind.extend((text.len() as i32).to_be_bytes());
                bind.extend(text.bytes());
            }
        }
    }
    bind.extend([0, 0]);
    let parts = [
        message(b'P', &parse),
        message(b'B', &bind),
        message(b'D', &[b'P', 0]),
        message(b'E', &[0, 0, 0, 0, 0]),
        message(b'S', &[]),
    ];
    parts.concat()
}

/// What is left of a message.
struct Part<'a>(&'a [u8]);

impl Part<'_> {
    fn skip(&mut self, count: usize) {
        self.0 = &self.0[count..];
    }

    fn byte(&mut self) -> u8 {
        let byte = self.0[0];
        self.skip(1);
        byte
    }

    fn short(&mut self) -> i16 {
        i16::from_be_bytes([self.byte(), self.byte()])
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap();
        let text = String::from_utf8(self.0[..end].to_vec()).unwrap();
        self.skip(end + 1);
        text
    }

    fn value(&mut self) -> Option<String> {
        let length = usize::try_from(self.int()).ok()?;
        let text = String::from_utf8(self.0[..length].to_vec()).unwrap();
        self.skip(length);
        Some(text)
    }
}

/// The name of a type that the statements give, by its number in `pg_type`.
fn type_name(oid: i32, modifier: i32) -> String {
    let name = match oid {
        16 => "boolean",
        20 => "bigint",
        21 => "smallint",
        23 => "integer",
        25 => "text",
        701 => "double precision",
        1042 => "character",
        1043 => "character varying",
        1082 => "date",
        1114 => "timestamp without time zone",
        1186 => "interval",
        1700 => "numeric",
        other => return format!("type {other}"),
    };
    let modifier = modifier - 4;
    match oid {
        1700 if modifier >= 0 => format!("{name}({},{})", modifier >> 16, modifier & 0x7ff),
        1042 | 1043 if modifier >= 0 => format!("{name}({modifier})"),
        _ => name.to_owned(),
    }
}
