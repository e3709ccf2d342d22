//! What a statement for one row costs a program that embeds the database: the text goes in, the result comes
//! out, the bound statement is in the cache, one caller, so that the idle partition runs it on the caller's
//! thread. Each round is timed by itself; what the clock takes is shown, and is in every other number.
//!
//! `cargo run --release -p albireo-bench --example point_update -- [rounds] [rows]`
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;

use albireo::{Config, Database, Outcome};
use albireo_env::Clock;
use hdrhistogram::Histogram;

#[global_allocator]
static ALLOCATOR: albireo_allocator::Allocator = albireo_allocator::Allocator {};

const UPDATE: &str = "UPDATE account SET cents = cents + $1 WHERE id = $2";
const SELECT: &str = "SELECT owner, cents FROM account WHERE id = $1";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut argument = |default: &str| args.next().unwrap_or_else(|| default.to_owned());
    let rounds: u64 = argument("1000000").parse()?;
    let rows: u32 = argument("100000").parse()?;
    let bench = Bench { clock: Clock::real(), rounds, warm_up: rounds / 10, rows };
    let db = Database::in_memory(Config::default())?;
    db.execute(
        "CREATE TABLE account (id INTEGER PRIMARY KEY, owner VARCHAR(20) NOT NULL, cents BIGINT NOT NULL)
         PARTITION BY HASH (id)",
    )?;
    db.execute(&format!(
        "INSERT INTO account SELECT x, 'owner ' || x::text, 0 FROM generate_series(0, {rows} - 1) g (x)"
    ))?;
    println!(
        "{rounds} rounds over {rows} rows, one caller, after {} unmeasured; nanoseconds:",
        bench.warm_up
    );
    bench.measure("the clock, read twice", |_| Ok(()))?;
    bench.measure("UPDATE of one row by its key, Database::execute_with", |id| {
        match db.execute_with(UPDATE, &[1_i64.into(), id.into()])? {
            Outcome::Done { rows: 1, .. } => Ok(()),
            other => Err(format!("{other:?}").into()),
        }
    })?;
    let connection = db.connect();
    bench.measure("the same, Connection::execute_with", |id| {
        match connection.execute_with(UPDATE, &[1_i64.into(), id.into()])? {
            Outcome::Done { rows: 1, .. } => Ok(()),
            other => Err(format!("{other:?}").into()),
        }
    })?;
    bench.measure("SELECT of one row by its key, Database::query", |id| {
        match db.query(SELECT, &[id.into()])?.row_count() {
            1 => Ok(()),
            other => Err(format!("{other} rows").into()),
        }
    })?;
    let sum = db.query("SELECT sum(cents) FROM account", &[])?.value(0, 0).to_string();
    assert_eq!(sum, (2 * (rounds + bench.warm_up)).to_string(), "an update was lost");
    Ok(())
}

struct Bench {
    clock: Clock,
    rounds: u64,
    warm_up: u64,
    rows: u32,
}

impl Bench {
    /// Times `round`, which gets the key of a row that a generator with one seed chooses.
    fn measure(&self, what: &str, mut round: impl FnMut(i32) -> Result<()>) -> Result<()> {
        let mut times = Histogram::<u64>::new_with_bounds(1, 1_000_000_000, 3)?;
        let mut state: u32 = 1;
        for n in 0..self.warm_up + self.rounds {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let id = ((state >> 8) % self.rows) as i32;
            let start = self.clock.now();
            round(id)?;
            let took = self.clock.now() - start;
            if n >= self.warm_up {
                times.saturating_record(took);
            }
        }
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| times.value_at_quantile(quantile));
        println!("{what}: p50 {p50}, p99 {p99}, p99.9 {p999}");
        Ok(())
    }
}
