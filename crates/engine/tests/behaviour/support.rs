//! Databases over disks in memory, and short ways to ask them.

use std::sync::Arc;

use albireo::{Config, Database, Outcome, QueryResult, SqlError, Value};
use albireo_env::{Disk, Env, MemoryDisk};

pub(crate) fn small() -> Config {
    Config { query_threads: 2, ..Config::default() }
}

pub(crate) fn database() -> Database {
    Database::in_memory(small()).unwrap()
}

/// Whether rows stay where a test has put them; not where everything is frozen, or evicted too, again and again
/// (`ALBIREO_FREEZE=all` or `cool`, `ALBIREO_EVICT=all`). For tests that count chunks, their files or their bytes, or
/// hold a partition, so that nothing can be frozen.
pub(crate) fn rows_stay() -> bool {
    let asked = ["ALBIREO_FREEZE", "ALBIREO_EVICT"]
        .iter()
        .any(|name| std::env::var(name).is_ok_and(|all| all == "all" || all == "cool"));
    if asked {
        println!("skipped: freezing everything changes what it counts");
    }
    !asked
}

/// Whether all chunks cool again and again, those too whose slots are mostly free (`ALBIREO_FREEZE=cool`).
pub(crate) fn chunks_cool() -> bool {
    std::env::var("ALBIREO_FREEZE").is_ok_and(|how| how == "cool")
}

/// A database whose files are those of `disk`.
pub(crate) fn database_on(disk: impl Disk + 'static, config: Config) -> Database {
    Database::with_env(config, Env { disk: Arc::new(disk), ..Env::real() }).unwrap()
}

pub(crate) fn run(db: &Database, sql: &str) {
    db.execute(sql).unwrap_or_else(|error| panic!("{sql}\n{error}"));
}

pub(crate) fn fails(db: &Database, sql: &str) -> SqlError {
    match db.execute(sql) {
        Err(error) => error,
        Ok(outcomes) => panic!("{sql}\nran: {outcomes:?}"),
    }
}

pub(crate) fn state(error: &SqlError) -> String {
    error.state().to_string()
}

/// Values with commas between them, rows with blanks.
pub(crate) fn show(result: &QueryResult) -> String {
    let row = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join(",");
    result.rows().iter().map(row).collect::<Vec<_>>().join(" ")
}

pub(crate) fn ask(db: &Database, sql: &str) -> String {
    match db.query(sql, &[]) {
        Ok(result) => show(&result),
        Err(error) => panic!("{sql}\n{error}"),
    }
}

pub(crate) fn rows_of(outcome: Outcome) -> String {
    match outcome {
        Outcome::Rows(rows) => show(&rows),
        other => panic!("no rows: {other:?}"),
    }
}

/// The database does its work, and no query holds memory any more.
pub(crate) fn is_well(db: &Database) {
    run(db, "CREATE TABLE well (a INTEGER PRIMARY KEY); INSERT INTO well VALUES (1), (2)");
    run(db, "UPDATE well SET a = a + 10 WHERE a = 2; DELETE FROM well WHERE a = 1");
    assert_eq!(ask(db, "SELECT a FROM well"), "12");
    run(db, "DROP TABLE well");
    // Tasks of a query that was given up end a moment after it.
    albireo_testing::wait_until("queries hold no memory any more", || db.memory().queries_bytes == 0);
}

/// `t (a INTEGER, b TEXT)` with `rows` rows: a from 0, b forty characters of no order.
pub(crate) fn filled(config: Config, rows: u32) -> Database {
    let disk = MemoryDisk::default();
    let line = |a: u32| format!("{a},{:0>40}\n", a.wrapping_mul(2_654_435_761));
    disk.put("/t.csv", (0..rows).map(line).collect::<String>().as_bytes());
    let db = database_on(disk, config);
    run(&db, "CREATE TABLE t (a INTEGER, b TEXT); COPY t FROM '/t.csv'");
    db
}
