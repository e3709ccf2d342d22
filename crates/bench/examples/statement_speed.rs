//! What single statements take that a program sends again and again: in turns, so that all meet the same
//! machine; the median of the turns.
//!
//! `cargo run --release -p albireo-bench --example statement_speed -- 20` is 20 turns; a word behind it lets
//! only the statements run whose name has it, for profiling.
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;

use albireo::{Config, Database, Value};
use albireo_env::Env;

#[global_allocator]
static ALLOCATOR: albireo_allocator::Allocator = albireo_allocator::Allocator {};

const ROWS: i32 = 100_000;
const TURN_NS: u64 = 50_000_000;

const SCHEMA: &str = "
CREATE TABLE account (id INTEGER PRIMARY KEY, owner VARCHAR(20) NOT NULL, cents BIGINT NOT NULL,
    rate NUMERIC(6,4) NOT NULL, opened DATE NOT NULL);
CREATE TABLE line (id INTEGER, n INTEGER, cents BIGINT NOT NULL, PRIMARY KEY (id, n));
INSERT INTO account SELECT i, 'owner ' || i, 10000, 1.25, '2024-01-01' FROM generate_series(1, 100000) AS s(i);
INSERT INTO line SELECT i % 10000, i, i FROM generate_series(1, 100000) AS s(i);
CREATE PROCEDURE pay(source INTEGER, target INTEGER, amount BIGINT) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE account SET cents = cents - amount WHERE id = source;
    UPDATE account SET cents = cents + amount WHERE id = target;
END $$;
CREATE FUNCTION cents_of(of INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE found_cents BIGINT;
BEGIN
    SELECT cents INTO found_cents FROM account WHERE id = of;
    RETURN found_cents;
END $$;
CREATE TABLE few (id INTEGER, name TEXT NOT NULL);
INSERT INTO few SELECT i, 'name ' || i FROM generate_series(1, 50) AS s(i)";

/// A statement and the values of its parameters by a number that changes from one execution to the next.
struct Case {
    name: &'static str,
    sql: &'static str,
    values: fn(i32) -> Vec<Value>,
    times: Vec<u64>,
}

fn case(name: &'static str, sql: &'static str, values: fn(i32) -> Vec<Value>) -> Case {
    Case { name, sql, values, times: Vec::new() }
}

/// What is measured; `main` has words for those without a text.
fn cases() -> Vec<Case> {
    vec![
        case("point SELECT", "SELECT owner, cents, rate FROM account WHERE id = $1", |n| {
            vec![Value::Integer(key_of(n))]
        }),
        case("point SELECT of one integer", "SELECT cents FROM account WHERE id = $1", |n| {
            vec![Value::Integer(key_of(n))]
        }),
        case("point SELECT, interpreted", "SELECT owner, cents, rate FROM account WHERE id = $1", |n| {
            vec![Value::Integer(key_of(n))]
        }),
        case("point UPDATE, interpreted", "UPDATE account SET cents = cents + $1 WHERE id = $2", |n| {
            vec![Value::BigInt(1), Value::Integer(key_of(n))]
        }),
        case("point UPDATE", "UPDATE account SET cents = cents + $1 WHERE id = $2", |n| {
            vec![Value::BigInt(1), Value::Integer(key_of(n))]
        }),
        case("UPDATE RETURNING", "UPDATE account SET cents = cents + 1 WHERE id = $1 RETURNING cents", |n| {
            vec![Value::Integer(key_of(n))]
        }),
        case("INSERT and DELETE", "", |_| Vec::new()),
        case("sum by index prefix", "SELECT sum(cents) FROM line WHERE id = $1", |n| {
            vec![Value::Integer(key_of(n) % 10_000)]
        }),
        case("CALL with parameters", "CALL pay($1, $2, $3)", |n| {
            vec![Value::Integer(key_of(n)), Value::Integer(key_of(n + 1)), Value::BigInt(1)]
        }),
        case("CALL with literals", "CALL", |_| Vec::new()),
        case("SELECT f($1)", "SELECT cents_of($1)", |n| vec![Value::Integer(key_of(n))]),
        case("small table without index", "SELECT name FROM few WHERE id = $1", |n| {
            vec![Value::Integer(n.rem_euclid(50) + 1)]
        }),
        case("analytical, asked again", "SELECT count(*), sum(cents) FROM account WHERE cents > $1", |n| {
            vec![Value::BigInt(i64::from(n % 7))]
        }),
    ]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let turns: usize = args.next().map_or(Ok(20), |turns| turns.parse())?;
    let only = args.next().unwrap_or_default();
    let clock = Env::real().clock;
    let db = Database::in_memory(Config { query_threads: 1, ..Config::default() })?;
    db.execute(SCHEMA)?;
    let mut cases = cases();
    // Without machine code, as a statement that is not hot yet.
    let cold = db.connect();
    cold.execute("SET jit = off")?;
    cases.retain(|case| case.name.contains(&only));
    let mut n = 0;
    for _ in 0..turns {
        for case in &mut cases {
            let (start, mut done) = (clock.now(), 0);
            while clock.now() - start < TURN_NS {
                for _ in 0..16 {
                    n += 1;
                    match case.sql {
                        "" => {
                            let id = [Value::Integer(ROWS + 1 + n % 1000)];
                            db.execute_with(
                                "INSERT INTO account VALUES ($1, 'new', 1, 1, '2024-01-01')",
                                &id,
                            )?;
                            db.execute_with("DELETE FROM account WHERE id = $1", &id)?;
                        }
                        // Another text each time, as if the values were printed into it.
                        "CALL" => {
                            let (source, target) = (key_of(n), key_of(n + 1));
                            db.execute_with(&format!("CALL pay({source}, {target}, 1)"), &[])?;
                        }
                        sql if case.name.contains("interpreted") => {
                            drop(cold.execute_with(sql, &(case.values)(n))?);
                        }
                        sql => drop(db.execute_with(sql, &(case.values)(n))?),
                    }
                    done += 1;
                }
            }
            case.times.push((clock.now() - start) / done);
        }
    }
    for case in &mut cases {
        case.times.sort_unstable();
        let [low, middle, high] = [0, 1, 2].map(|at| case.times[(case.times.len() - 1) * at / 2]);
        println!("{:32} {middle:>9} ns ({low} to {high})", case.name);
    }
    Ok(())
}

/// Keys in no order.
fn key_of(n: i32) -> i32 {
    n.wrapping_mul(7919).rem_euclid(ROWS) + 1
}
