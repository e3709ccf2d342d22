//! What statements take between BEGIN and COMMIT, by how many there are, beside the same statements alone: in turns, so
//! that all meet the same machine; the least and the median of the turns, in nanoseconds for a statement.
//!
//! `cargo run --release -p albireo-bench --example block_speed -- 20` is 20 turns.
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;

use albireo::{Config, Connection, Database, SqlError, Value};
use albireo_env::Env;

#[global_allocator]
static ALLOCATOR: albireo_allocator::Allocator = albireo_allocator::Allocator {};

const ROWS: i32 = 100_000;
const SIZES: [i32; 4] = [0, 1, 10, 100];
const STATEMENTS: i32 = 2_000;

const SCHEMA: &str = "
CREATE TABLE account (id INTEGER PRIMARY KEY, owner VARCHAR(20) NOT NULL, cents BIGINT NOT NULL);
CREATE TABLE line (id INTEGER, n INTEGER, cents BIGINT NOT NULL, PRIMARY KEY (id, n));
INSERT INTO account SELECT i, 'owner ' || i, 10000 FROM generate_series(0, 99999) AS s(i)";

/// A statement and its parameters by a number.
type Case = (&'static str, &'static str, fn(i32) -> Vec<Value>);

const CASES: [Case; 3] = [
    ("SELECT by key", "SELECT owner, cents FROM account WHERE id = $1", |n| vec![key(n)]),
    ("UPDATE by key", "UPDATE account SET cents = cents + 1 WHERE id = $1", |n| vec![key(n)]),
    ("INSERT", "INSERT INTO line VALUES ($1, $2, 1)", |n| vec![Value::Integer(n), Value::Integer(n)]),
];

fn key(n: i32) -> Value {
    Value::Integer((i64::from(n) * 7_919 % i64::from(ROWS)) as i32)
}

/// Nanoseconds for a statement, in blocks of so many; 0: without.
fn turn(connection: &Connection, env: &Env, case: &Case, size: i32, next: &mut i32) -> Result<u64, SqlError> {
    let (_, sql, values) = case;
    let start = env.clock.now();
    let mut done = 0;
    while done < STATEMENTS {
        if size > 0 {
            connection.begin()?;
        }
        for _ in 0..size.max(1) {
            connection.execute_with(sql, &values(*next))?;
            *next += 1;
            done += 1;
        }
        if size > 0 {
            connection.commit()?;
        }
    }
    Ok((env.clock.now() - start) / done as u64)
}

fn main() -> Result<(), Box<dyn Error>> {
    let turns: usize = std::env::args().nth(1).map_or(Ok(20), |turns| turns.parse())?;
    let env = Env::real();
    let db = Database::in_memory(Config::default())?;
    db.execute(SCHEMA)?;
    let connection = db.connect();
    let mut next = 0;
    let mut times = vec![[const { Vec::new() }; SIZES.len()]; CASES.len()];
    for _ in 0..turns {
        for (case, times) in CASES.iter().zip(&mut times) {
            for (size, times) in SIZES.iter().zip(times) {
                times.push(turn(&connection, &env, case, *size, &mut next)?);
            }
        }
    }
    println!("{:<16}{:>16}{:>16}{:>16}{:>16}", "ns: least/median", "alone", "blocks of 1", "of 10", "of 100");
    for (case, times) in CASES.iter().zip(&mut times) {
        print!("{:<16}", case.0);
        for times in times {
            times.sort_unstable();
            print!("{:>16}", format!("{} / {}", times[0], times[times.len() / 2]));
        }
        println!();
    }
    Ok(())
}
