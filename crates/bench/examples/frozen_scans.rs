//! What queries over frozen chunks take beside the same over hot ones: one thread, in turns, so that both meet the same
//! machine; the least and the median of the turns, in milliseconds, and the ratio of the medians. Constants change from
//! turn to turn, so that nothing is kept from the one before; answers are compared.
//!
//! `cargo run --release -p albireo-bench --example frozen_scans -- 3000000 9` is 3 M rows, 9 turns.
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;

use albireo::{Config, Database, SqlError};
use albireo_env::Env;

#[global_allocator]
static ALLOCATOR: albireo_allocator::Allocator = albireo_allocator::Allocator {};

const SCHEMA: &str = "
CREATE TABLE line (o INTEGER, n SMALLINT NOT NULL, w SMALLINT NOT NULL, item INTEGER NOT NULL, supply SMALLINT NOT NULL,
  delivered TIMESTAMP, quantity NUMERIC(2,0) NOT NULL, amount NUMERIC(6,2) NOT NULL, info CHAR(24) NOT NULL,
  flag CHAR(1) NOT NULL, mode VARCHAR(12) NOT NULL, note VARCHAR(40))";

const ROWS: &str = "
INSERT INTO line SELECT g / 10, g % 10, g / 10 % 5, g::bigint * 7919 % 100000, g / 10 % 5,
  CASE WHEN g % 100 < 3 THEN NULL ELSE TIMESTAMP '2026-01-01' + (g / 10) * INTERVAL '1 second' END,
  1 + g % 10, (g::bigint * 104729 % 999999) / 100.0, 'dist info ' || g::bigint * 31 % 20011,
  substr('ANR', 1 + g / 10 % 3, 1), 'mode ' || g::bigint * 13 % 7,
  CASE WHEN g % 10 = 3 THEN NULL ELSE 'note of ' || g::bigint * 7919 % 1000003 END
  FROM generate_series($from, $to) s (g)";

/// Names of queries, and the queries, in which `$k` is a number that changes.
const QUERIES: [(&str, &str); 13] = [
    ("Q1", "SELECT n, sum(quantity), sum(amount), avg(quantity), avg(amount), count(*) FROM line
            WHERE delivered > TIMESTAMP '2026-01-01' + INTERVAL '$k seconds' GROUP BY n ORDER BY n"),
    ("Q1 by texts", "SELECT flag, mode, sum(quantity), sum(amount), count(*) FROM line
            WHERE item >= $k GROUP BY flag, mode ORDER BY flag, mode"),
    ("Q6", "SELECT sum(amount) FROM line WHERE delivered >= TIMESTAMP '2026-01-01 00:00:00' + INTERVAL '$k seconds'
            AND delivered < TIMESTAMP '2026-01-03' AND quantity BETWEEN 2 AND 6 AND amount > $k / 10.0"),
    ("count of a range", "SELECT count(*) FROM line WHERE item BETWEEN $k AND 40000 + $k"),
    ("few of a range", "SELECT count(*), sum(amount) FROM line WHERE item BETWEEN $k AND 1000 + $k"),
    ("text equal", "SELECT count(*), sum(amount) FROM line WHERE info = 'dist info $k'"),
    ("text of few equal", "SELECT count(*), sum(amount) FROM line WHERE mode = 'mode 3' AND item > $k"),
    ("text IN", "SELECT count(*), max(item) FROM line WHERE mode IN ('mode 1', 'mode 5') AND item < $k"),
    ("text range", "SELECT count(*) FROM line WHERE info >= 'dist info $k' AND info < 'dist info 5'"),
    ("prefix", "SELECT count(*), sum(amount) FROM line WHERE info LIKE 'dist info $k%'"),
    ("pattern", "SELECT count(*), sum(amount) FROM line WHERE mode LIKE '%5' AND item > $k"),
    ("sum of all", "SELECT sum(amount + $k), sum(quantity), max(delivered) FROM line"),
    ("texts of all", "SELECT max(info), min(note), count(note) FROM line WHERE item > $k"),
];

fn answer(db: &Database, sql: &str) -> Result<String, SqlError> {
    Ok(format!("{:?}", db.query(sql, &[])?.rows()))
}

fn filled(rows: u64) -> Result<Database, SqlError> {
    let db = Database::in_memory(Config { partitions: 1, query_threads: 1, ..Config::default() })?;
    db.execute(SCHEMA)?;
    for from in (0..rows).step_by(100_000) {
        let to = (from + 100_000).min(rows) - 1;
        db.execute(&ROWS.replace("$from", &from.to_string()).replace("$to", &to.to_string()))?;
    }
    Ok(db)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let rows = args.next().map_or(Ok(3_000_000), |rows| rows.parse())?;
    let turns: u64 = args.next().map_or(Ok(9), |turns| turns.parse())?;
    let only = args.next();
    let env = Env::real();
    let (hot, frozen) = (filled(rows)?, filled(rows)?);
    let bytes = |db: &Database| db.memory().in_use_bytes >> 20;
    let before = bytes(&frozen);
    frozen.execute("CALL albireo.freeze('line')")?;
    println!("{rows} rows, {turns} turns; {before} MB hot, {} MB frozen", bytes(&frozen));
    println!("{:20} {:>9} {:>9} {:>9} {:>9} {:>7}", "", "hot min", "median", "frozen", "median", "ratio");
    for (name, sql) in QUERIES {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let mut times = [Vec::new(), Vec::new()];
        for turn in 0..=turns {
            let sql = sql.replace("$k", &(1 + turn * 3).to_string());
            let mut answers = Vec::new();
            for (db, times) in [&hot, &frozen].into_iter().zip(&mut times) {
                let start = env.clock.now();
                answers.push(answer(db, &sql)?);
                let ms = (env.clock.now() - start) as f64 / 1e6;
                // The first turn plans, and finds what is known of the table.
                if turn > 0 {
                    times.push(ms);
                }
            }
            if answers[0] != answers[1] {
                return Err(format!("{sql}: {} is not {}", answers[0], answers[1]).into());
            }
        }
        times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
        let [hot, frozen] = &times;
        let (middle, ratio) = (hot.len() / 2, frozen[frozen.len() / 2] / hot[hot.len() / 2]);
        println!(
            "{name:20} {:9.2} {:9.2} {:9.2} {:9.2} {ratio:7.2}",
            hot[0], hot[middle], frozen[0], frozen[middle]
        );
    }
    Ok(())
}
