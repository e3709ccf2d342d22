use albireo::{BudgetPolicy, Config, Database, ExecutionPath};

use crate::support::{ask, filled, is_well, rows_stay, run, show, small, state};

const ROWS: u32 = 100_000;

fn on_a_budget(policy: BudgetPolicy) -> Database {
    filled(Config { snapshot_budget_bytes: 128 << 10, snapshot_policy: policy, ..small() }, ROWS)
}

#[test]
fn spent_budget_refuses_new_snapshots_until_an_old_one_ends() {
    let db = on_a_budget(BudgetPolicy::RefuseNew);
    let old = db.begin_read_only().unwrap();
    run(&db, "UPDATE t SET a = -a");
    let error = db.begin_read_only().err().expect("the budget is spent");
    assert_eq!(state(&error), "53200", "{error}");
    assert!(error.hint().unwrap().contains("snapshot_budget_bytes"), "{error}");
    assert_eq!(show(&old.query("SELECT count(*) FROM t WHERE a > 0", &[]).unwrap()), (ROWS - 1).to_string());
    // A change that needs no snapshot goes on.
    run(&db, "INSERT INTO t VALUES (1, 'one')");
    drop(old);
    assert_eq!(db.memory().snapshots_bytes, 0);
    assert_eq!(ask(&db, "SELECT count(*) FROM t WHERE a > 0"), "1");
    is_well(&db);
}

#[test]
fn spent_budget_may_end_the_oldest_session_instead() {
    let db = on_a_budget(BudgetPolicy::EndOldest);
    let old = db.begin_read_only().unwrap();
    run(&db, "UPDATE t SET a = -a");
    let new = db.begin_read_only().unwrap();
    let error = old.query("SELECT count(*) FROM t", &[]).unwrap_err();
    assert_eq!(state(&error), "72000", "{error}");
    assert_eq!(show(&new.query("SELECT count(*) FROM t WHERE a > 0", &[]).unwrap()), "0");
    drop((old, new));
    until_nothing_is_held(&db);
    is_well(&db);
}

/// What an ended session held is freed on another thread.
fn until_nothing_is_held(db: &Database) {
    while db.memory().snapshots_bytes > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn session_that_is_ended_holds_nothing_though_nobody_asks_it_anything() {
    let db = filled(Config { snapshot_budget_bytes: 128 << 10, ..small() }, ROWS);
    let (old, reader) = (db.begin_read_only().unwrap(), db.connect());
    reader.execute("BEGIN READ ONLY").unwrap();
    run(&db, "UPDATE t SET a = -a");
    run(&db, "UPDATE t SET a = a + 1");
    until_nothing_is_held(&db);
    assert_eq!(state(&old.query("SELECT count(*) FROM t", &[]).unwrap_err()), "72000");
    assert_eq!(state(&reader.execute("SELECT count(*) FROM t").unwrap_err()), "72000");
    reader.execute("ROLLBACK").unwrap();
    is_well(&db);
}

#[test]
fn slots_are_used_again_though_a_session_reads_another_table() {
    if !rows_stay() {
        return;
    }
    let db = filled(small(), 20_000);
    run(&db, "CREATE TABLE other (b INTEGER); INSERT INTO other VALUES (7)");
    let session = db.prepare("SELECT b FROM other").unwrap().begin_read_only().unwrap();
    let again = || {
        for from in (0..20_000).step_by(500) {
            run(&db, &format!("DELETE FROM t WHERE a >= {from} AND a < {from} + 500"));
            run(
                &db,
                &format!(
                    "INSERT INTO t SELECT i, 'again' FROM generate_series({from}, {from} + 499) AS x(i)"
                ),
            );
        }
        db.memory().rows_bytes
    };
    let before = again();
    for _ in 0..3 {
        assert_eq!(again(), before);
    }
    assert_eq!(show(&session.query("SELECT b FROM other", &[]).unwrap()), "7");
}

/// A table of more than half the memory, a session that sees it, and changes of all its rows.
fn change_all_beside_a_session(policy: BudgetPolicy) -> Result<(), String> {
    let budget = 1 << 30;
    let config = Config {
        data_limit_bytes: 32 << 20,
        snapshot_budget_bytes: budget,
        snapshot_policy: policy,
        ..small()
    };
    let db = Database::in_memory(config).unwrap();
    run(
        &db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a BIGINT, b BIGINT, c BIGINT, d BIGINT, e BIGINT, f BIGINT, g BIGINT);
         INSERT INTO t SELECT i, i, i, i, i, i, i, i FROM generate_series(0, 199999) AS x(i)",
    );
    let idle = db.connect();
    idle.execute("BEGIN READ ONLY").unwrap();
    for from in (0..200_000).step_by(500) {
        let set = "a = -a, b = -b, c = -c, d = -d, e = -e, f = -f, g = -g";
        let done = db.execute(&format!("UPDATE t SET {set} WHERE id >= {from} AND id < {from} + 500"));
        done.map_err(|error| state(&error))?;
    }
    assert_eq!(ask(&db, "SELECT count(*), sum(g) FROM t"), "200000,-19999900000");
    Ok(())
}

#[test]
fn no_change_is_refused_because_of_what_an_idle_session_holds() {
    if !rows_stay() {
        return;
    }
    assert_eq!(change_all_beside_a_session(BudgetPolicy::RefuseNew), Err("53200".to_owned()));
    assert_eq!(change_all_beside_a_session(BudgetPolicy::default()), Ok(()));
}

#[test]
fn read_only_transaction_sees_one_state_and_changes_nothing() {
    let db = Database::in_memory(small()).unwrap();
    run(&db, "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)");
    let reader = db.connect();
    let count = || show(&reader.query("SELECT count(*) FROM t", &[]).unwrap());
    reader.execute("BEGIN READ ONLY").unwrap();
    run(&db, "INSERT INTO t VALUES (2)");
    assert_eq!(count(), "1");
    let change = reader.execute("INSERT INTO t VALUES (3)").unwrap_err();
    assert_eq!(state(&change), "25006", "{change}");
    let aborted = reader.execute("SELECT 1").unwrap_err();
    assert_eq!(state(&aborted), "25P02", "{aborted}");
    reader.execute("ROLLBACK").unwrap();
    assert_eq!(count(), "2");
    reader.execute("INSERT INTO t VALUES (3)").unwrap();
    assert_eq!(count(), "3");
    is_well(&db);
}

#[test]
fn table_dropped_while_a_session_reads_it_lives_on_for_the_session() {
    let db = filled(small(), 1000);
    let session = db.begin_read_only().unwrap();
    let result = session.query("SELECT count(*), sum(a) FROM t", &[]).unwrap();
    run(&db, "DROP TABLE t; CREATE TABLE t (a TEXT)");
    assert_eq!(show(&result), "1000,499500");
    // The name now means a table that the snapshot does not have.
    let error = session.query("SELECT a FROM t", &[]).unwrap_err();
    assert_eq!(state(&error), "42P01", "{error}");
    drop((session, result));
    assert_eq!(db.memory().snapshots_bytes, 0);
    is_well(&db);
}

#[test]
fn session_for_one_query_covers_the_tables_that_it_reads_and_tells_about_others() {
    let db = filled(small(), ROWS);
    run(&db, "CREATE TABLE other (b INTEGER); INSERT INTO other VALUES (7)");
    let query = db.prepare("SELECT sum(b) FROM other").unwrap();
    let session = query.begin_read_only().unwrap();
    // Every block of t is written, and none of them is copied for the session.
    run(&db, "UPDATE t SET a = -a; INSERT INTO other VALUES (8)");
    assert_eq!(db.memory().snapshots_bytes, 0);
    assert_eq!(show(&session.query("SELECT sum(b) FROM other", &[]).unwrap()), "7");
    assert_eq!(show(&query.query(&[]).unwrap()), "15");
    let error = session.query("SELECT count(*) FROM t", &[]).unwrap_err();
    assert_eq!(state(&error), "55000", "{error}");
    assert!(error.message().contains("\"t\"") && error.hint().is_some(), "{error}");
    assert_eq!(show(&session.query("SELECT max(b) FROM other", &[]).unwrap()), "7", "the session goes on");
    // The table changes its identity: the query is planned anew.
    run(&db, "DROP TABLE other; CREATE TABLE other (b INTEGER); INSERT INTO other VALUES (1)");
    let again = query.begin_read_only().unwrap();
    assert_eq!(show(&again.query("SELECT sum(b) FROM other", &[]).unwrap()), "1");
    drop((session, again));
    is_well(&db);
}

#[test]
fn stale_snapshot_of_all_tables_is_shared_and_one_for_a_single_query_is_not() {
    let db = filled(small(), 10);
    // A transaction reads what is there now.
    db.force_execution_path(Some(ExecutionPath::Analytical));
    run(&db, "CREATE TABLE other (b INTEGER)");
    let reader = db.connect();
    reader.execute("SET max_staleness = '1h'").unwrap();
    let shown = |sql: &str| show(&reader.query(sql, &[]).unwrap());
    let one = db.prepare("SELECT count(*) FROM other").unwrap().begin_read_only().unwrap();
    run(&db, "INSERT INTO other VALUES (1)");
    assert_eq!(shown("SELECT count(*) FROM other"), "1", "a snapshot for one query is its own");
    let all = db.begin_read_only().unwrap();
    // Neither a snapshot for one query nor the changes' own take its place.
    let two = db.prepare("SELECT count(*) FROM t").unwrap().begin_read_only().unwrap();
    run(&db, "INSERT INTO other VALUES (2); DELETE FROM t WHERE a > 0");
    assert_eq!(shown("SELECT count(*) FROM other"), "1", "the stale one is shared");
    assert_eq!(shown("SELECT count(*) FROM t"), "10", "by queries on any table");
    drop(all);
    assert_eq!(shown("SELECT count(*) FROM t"), "1", "nobody holds one any more");
    drop((one, two));
    is_well(&db);
}
