//! How long a large INSERT ... SELECT keeps others waiting: one client updates a row by its key all the time, and
//! the longest that it waited is shown, beside what it waited at most while nothing else ran.
//!
//! `cargo run --release -p albireo-bench --example load_pause -- [rows] [memory|directory]`
//!
//! With `directory` the database is kept in one under the current directory, which is removed afterwards.
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use albireo::{Config, Database};
use albireo_env::Env;

#[global_allocator]
static ALLOCATOR: albireo_allocator::Allocator = albireo_allocator::Allocator {};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const DIRECTORY: &str = "load_pause.data";

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let rows: u64 = args.next().as_deref().unwrap_or("6000000").parse()?;
    let is_kept = args.next().as_deref() == Some("directory");
    let env = Env::real();
    let db = match is_kept {
        true => Database::open_in(DIRECTORY, Config::default(), Env::real())?,
        false => Database::in_memory(Config::default())?,
    };
    db.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, cents BIGINT NOT NULL)")?;
    db.execute("INSERT INTO account SELECT x, 0 FROM generate_series(1, 1000) g (x)")?;
    for table in ["source", "target"] {
        db.execute(&format!(
            "CREATE TABLE {table} (a BIGINT, b INTEGER, c NUMERIC(12,2), d DATE, e TEXT, PRIMARY KEY (a, b))"
        ))?;
    }
    let series = |first: u64| {
        format!(
            "SELECT x / 4, (x % 4)::integer, (x % 100000) / 100.0, DATE '2024-01-01' + (x % 1000)::integer,
             'text ' || x % 1000 FROM generate_series({first}, {}) g (x)",
            first + rows - 1
        )
    };
    let measured = [
        ("nothing else", String::new()),
        ("INSERT ... SELECT of a series into an empty table", format!("INSERT INTO source {}", series(0))),
        (
            "INSERT ... SELECT from a table into an empty one",
            "INSERT INTO target SELECT * FROM source".to_owned(),
        ),
        (
            "INSERT ... SELECT of a series behind other rows",
            format!("INSERT INTO target {}", series(rows * 2)),
        ),
    ];
    println!("{rows} rows; longest waits of a client that updates one row by its key:");
    for (name, sql) in measured {
        let (taken, longest) = beside_a_client(&db, &env, &sql)?;
        println!(
            "{name}: {:.2} s, {:.2} M rows/s; longest wait {:.2} ms",
            taken as f64 / 1e9,
            rows as f64 / (taken as f64 / 1e3),
            longest as f64 / 1e6
        );
    }
    drop(db);
    if is_kept {
        env.disk.remove_dir_all(DIRECTORY.as_ref())?;
    }
    Ok(())
}

/// Runs a statement, or waits for two seconds; how long that took, and the longest that a client beside it waited,
/// in nanoseconds.
fn beside_a_client(db: &Database, env: &Env, sql: &str) -> Result<(u64, u64)> {
    let (done, longest) = (AtomicBool::new(false), AtomicU64::new(0));
    let taken = albireo_env::scope(|scope| -> Result<u64> {
        let client = albireo_env::spawn_scoped(scope, "client", || {
            let mut id = 0_i32;
            while !done.load(Ordering::Relaxed) {
                let begin = env.clock.now();
                id = id % 1000 + 1;
                let update = "UPDATE account SET cents = cents + 1 WHERE id = $1";
                db.execute_with(update, &[id.into()]).expect("the update succeeds");
                longest.fetch_max(env.clock.now() - begin, Ordering::Relaxed);
            }
        })?;
        let begin = env.clock.now();
        if sql.is_empty() {
            env.clock.sleep(std::time::Duration::from_secs(2));
        } else {
            db.execute(sql)?;
        }
        let taken = env.clock.now() - begin;
        done.store(true, Ordering::Relaxed);
        client.join().map_err(|_| "the client panicked")?;
        Ok(taken)
    })?;
    Ok((taken, longest.into_inner()))
}
