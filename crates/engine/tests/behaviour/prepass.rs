//! Transactions that need rows of many evicted chunks: how often they run, and that nothing is left of the runs that ended
//! for want of rows.

use std::sync::Arc;

use albireo::{Config, Connection, Database, Eviction, ExecutionPath, Outcome};
use albireo_env::{Env, MemoryDisk};

use crate::evicted::evict;
use crate::support::{ask, fails, rows_stay, run, show, small, state};

const CHUNK: u32 = 16_384;
const CHUNKS: u32 = 5;

/// A table of so many chunks, with an index whose keys are not in the order of the rows.
fn filled(db: &Database) {
    run(db, "CREATE TABLE t (id INTEGER PRIMARY KEY, b BIGINT NOT NULL, x TEXT, m INTEGER NOT NULL)");
    run(db, "CREATE INDEX by_m ON t (m, id)");
    run(
        db,
        &format!(
            "INSERT INTO t SELECT g, g::bigint * 1000003, 'text ' || md5(g::text), g % 1000
             FROM generate_series(0, {}) s (g)",
            CHUNKS * CHUNK - 1
        ),
    );
    run(db, "CREATE TABLE told (id INTEGER PRIMARY KEY, b BIGINT, x TEXT)");
}

fn database() -> Database {
    let db = with_disk(&MemoryDisk::default(), |env, config| Database::with_env(config, env));
    filled(&db);
    db
}

fn with_disk<R, E: std::fmt::Debug>(disk: &MemoryDisk, open: impl Fn(Env, Config) -> Result<R, E>) -> R {
    let env = Env { disk: Arc::new(disk.clone()), ..Env::real() };
    open(env, Config { eviction: Eviction::To("/cold".into()), ..small() }).unwrap()
}

/// How many runs of transactions ended for want of rows meanwhile, and how many chunks were fetched.
fn fetches<R>(db: &Database, act: impl FnOnce() -> R) -> (R, (u64, u64)) {
    let count = || {
        let counters = db.statistics().transactions;
        (counters.runs_for_rows, counters.chunks_fetched)
    };
    let before = count();
    let result = act();
    let after = count();
    (result, (after.0 - before.0, after.1 - before.1))
}

/// Of each chunk a row, with what it holds.
fn ids(at: u32) -> Vec<u32> {
    (0..CHUNKS).map(|chunk| chunk * CHUNK + at).collect()
}

fn sum_of(ids: &[u32]) -> u64 {
    ids.iter().map(|id| u64::from(*id) * 1_000_003).sum()
}

/// Clients whose routines run by machine code, and by the interpreter.
fn both(db: &Database) -> [Connection; 2] {
    ["on", "off"].map(|jit| {
        let connection = db.connect();
        connection.execute(&format!("SET jit = {jit}")).unwrap();
        connection
    })
}

const ALL: (u64, u64) = (1, CHUNKS as u64);

#[test]
fn routine_that_reads_rows_of_many_chunks_by_its_arguments_runs_twice() {
    if !rows_stay() {
        return;
    }
    let db = database();
    run(
        &db,
        "CREATE FUNCTION sum_of(p INTEGER, q INTEGER, r INTEGER, s INTEGER, v INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$
         DECLARE kept BIGINT; total BIGINT := 0;
         BEGIN
           SELECT b INTO STRICT kept FROM t WHERE id = p; total := total + kept;
           SELECT b INTO STRICT kept FROM t WHERE id = q; total := total + kept;
           SELECT b INTO STRICT kept FROM t WHERE id = r; total := total + kept;
           SELECT b INTO STRICT kept FROM t WHERE id = s; total := total + kept;
           SELECT b INTO STRICT kept FROM t WHERE id = v; total := total + kept;
           RETURN total;
         END $$",
    );
    let connections = both(&db);
    for at in 0..80 {
        evict(&db);
        let ids = ids(at * 7);
        let args = ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let question = format!("SELECT sum_of({args})");
        let (sum, met) = fetches(&db, || connections[at as usize % 2].query(&question, &[]).unwrap());
        assert_eq!((show(&sum), met), (sum_of(&ids).to_string(), ALL), "call {at}");
    }
}

#[test]
fn statements_over_rows_of_many_chunks_run_twice() {
    if !rows_stay() {
        return;
    }
    let db = database();
    db.force_execution_path(Some(ExecutionPath::Transactional));
    let few = |at: u32| ids(at).iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let last = CHUNKS * CHUNK - 1;
    for (statement, expected) in [
        (format!("SELECT sum(b) FROM t WHERE id IN ({})", few(9)), sum_of(&ids(9)).to_string()),
        // All rows of all chunks but the first and last ones.
        (format!("SELECT count(*), max(b) FROM t WHERE id BETWEEN 10 AND {last}"), {
            format!("{},{}", last - 9, u64::from(last) * 1_000_003)
        }),
        ("SELECT count(*), count(x), min(b) FROM t WHERE m = 77".into(), "82,82,77000231".into()),
        ("SELECT count(*) FROM t WHERE b = 16385049155".into(), "1".into()),
    ] {
        evict(&db);
        assert_eq!(fetches(&db, || ask(&db, &statement)), (expected, ALL), "{statement}");
    }
    for change in [
        format!("UPDATE t SET b = b + 1, m = m + 2 WHERE id IN ({})", few(11)),
        format!("DELETE FROM t WHERE id IN ({})", few(12)),
        format!("UPDATE t SET id = id + 100000 WHERE id IN ({})", few(13)),
        format!("UPDATE t SET b = 0 WHERE m = 14 AND id IN ({})", few(14)),
    ] {
        evict(&db);
        let ((), (runs, _)) = fetches(&db, || run(&db, &change));
        assert_eq!(runs, 1, "{change}");
    }
    let rest = CHUNKS * CHUNK - CHUNKS;
    assert_eq!(ask(&db, "SELECT count(*), sum(m)::text <> '' FROM t"), format!("{rest},t"));
    assert_eq!(ask(&db, &format!("SELECT count(*) FROM t WHERE id IN ({})", few(13))), "0");
}

#[test]
fn loop_whose_condition_hangs_on_an_evicted_value_ends() {
    let db = database();
    run(
        &db,
        "CREATE PROCEDURE spin(first INTEGER, second INTEGER) LANGUAGE plpgsql AS $$
         DECLARE kept BIGINT; other BIGINT; rounds INTEGER := 0;
         BEGIN
           SELECT b INTO kept FROM t WHERE id = first;
           -- Nothing is 0, but what stands for it.
           WHILE kept = 0 LOOP rounds := (rounds + 1) % 1000; END LOOP;
           LOOP
             SELECT b INTO other FROM t WHERE id = second;
             EXIT WHEN other <> 0;
           END LOOP;
           INSERT INTO told VALUES (first, kept + other, rounds::text);
         END $$;
         CREATE FUNCTION again(id_of INTEGER, depth INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS $$
         DECLARE kept BIGINT;
         BEGIN
           SELECT b INTO kept FROM t WHERE id = id_of;
           IF kept = 0 AND depth < 40 THEN RETURN again(id_of, depth + 1) + again(id_of, depth + 1); END IF;
           RETURN kept;
         END $$",
    );
    let (first, last, connections) = (1, CHUNKS * CHUNK, both(&db));
    for n in first..first + 80 {
        evict(&db);
        let connection = &connections[n as usize % 2];
        connection.execute(&format!("CALL spin({n}, {})", last - n)).unwrap();
        let right = u64::from(last) * 1_000_003;
        assert_eq!(ask(&db, &format!("SELECT b, x FROM told WHERE id = {n}")), format!("{right},0"));
        if n % 16 < 2 {
            evict(&db);
            let value = connection.query(&format!("SELECT again({n}, 0)"), &[]).unwrap();
            assert_eq!(show(&value), (u64::from(n) * 1_000_003).to_string());
        }
    }
}

#[test]
fn nothing_is_left_of_a_run_that_met_evicted_rows() {
    if !rows_stay() {
        return;
    }
    let disk = MemoryDisk::default();
    let open = || with_disk(&disk, |env, config| Database::open_in("/data", config, env));
    let db = open();
    filled(&db);
    run(
        &db,
        "CREATE PROCEDURE change(p INTEGER, q INTEGER, r INTEGER) LANGUAGE plpgsql AS $$
         DECLARE kept BIGINT; gone TEXT;
         BEGIN
           INSERT INTO told VALUES (p, 0, 'first');
           RAISE NOTICE 'told of %', p;
           SELECT b INTO kept FROM t WHERE id = p;
           UPDATE told SET b = kept WHERE id = p;
           BEGIN
             -- What stands for the value is there already.
             INSERT INTO told VALUES (p + kept % 1000, kept, 'second');
             RAISE EXCEPTION 'never mind %', kept;
           EXCEPTION WHEN OTHERS THEN
             UPDATE told SET x = SQLERRM WHERE id = p;
           END;
           UPDATE t SET b = b - 1, m = m + 1 WHERE id = q;
           DELETE FROM t WHERE id = r RETURNING x INTO gone;
           INSERT INTO t VALUES (r + 1000000, kept, gone, 5);
           RAISE NOTICE '% is gone', gone;
         END $$",
    );
    let records = || db.log().unwrap().seal().next_ordinal;
    let connections = both(&db);
    for n in 1..=80 {
        evict(&db);
        let (p, q, r) = (n, n + CHUNK, n + 3 * CHUNK);
        let (call, before) = (format!("CALL change({p}, {q}, {r})"), records());
        let (outcomes, met) = fetches(&db, || connections[n as usize % 2].execute(&call).unwrap());
        assert_eq!((met, records() - before), ((1, 3), 1), "call {n}");
        let Some(Outcome::Done { notices, .. }) = outcomes.first() else { panic!("{outcomes:?}") };
        let gone = ask(&db, &format!("SELECT x FROM t WHERE id = {}", r + 1_000_000));
        assert_eq!(notices, &[format!("told of {p}"), format!("{gone} is gone")]);
    }
    let questions = [
        "SELECT count(*), sum(b), sum(m) FROM t",
        "SELECT count(*), sum(id), sum(b) FROM t WHERE m BETWEEN 3 AND 6",
        "SELECT count(*), sum(b), count(x) FROM t WHERE id >= 1000000",
        "SELECT count(*), sum(b), min(x), max(x) FROM told",
    ];
    let rows = u64::from(CHUNKS * CHUNK);
    let b: u64 = 1_000_003 * (0..rows).sum::<u64>() - 80 + (1..=80).map(|n| 1_000_003 * n).sum::<u64>()
        - (1..=80).map(|n| 1_000_003 * (n + 3 * 16_384)).sum::<u64>();
    let expected = format!("{rows},{b}");
    for path in [ExecutionPath::Transactional, ExecutionPath::Analytical] {
        db.force_execution_path(Some(path));
        evict(&db);
        assert_eq!(ask(&db, "SELECT count(*), sum(b) FROM t"), expected);
    }
    assert_eq!(ask(&db, "SELECT count(*), count(DISTINCT id), sum(b) FROM told"), "80,80,3240009720");
    assert_eq!(ask(&db, "SELECT x FROM told WHERE id = 3"), "never mind 3000009");
    let before = questions.map(|question| ask(&db, question));
    // Each row is found by each index, or not at all.
    db.force_execution_path(Some(ExecutionPath::Transactional));
    for n in [1, 40, 80] {
        let (q, r) = (n + CHUNK, n + 3 * CHUNK);
        let m = (q % 1000) + 1;
        assert_eq!(ask(&db, &format!("SELECT id FROM t WHERE m = {m} AND id = {q}")), q.to_string());
        assert_eq!(ask(&db, &format!("SELECT id FROM t WHERE m = {} AND id = {q}", m - 1)), "");
        assert_eq!(ask(&db, &format!("SELECT id FROM t WHERE id = {r}")), "");
        assert_eq!(ask(&db, &format!("SELECT id FROM t WHERE m = {} AND id = {r}", r % 1000)), "");
        let moved = r + 1_000_000;
        assert_eq!(ask(&db, &format!("SELECT m FROM t WHERE id = {moved}")), "5");
    }
    // Clients hold it open.
    drop((connections, db));
    let db = open();
    assert_eq!(questions.map(|question| ask(&db, question)), before, "after a restart");
}

#[test]
fn error_is_told_if_real_rows_raise_it() {
    let db = database();
    run(
        &db,
        "CREATE PROCEDURE divide(p INTEGER, q INTEGER) LANGUAGE plpgsql AS $$
         DECLARE kept BIGINT; other BIGINT;
         BEGIN
           SELECT b INTO kept FROM t WHERE id = p;
           INSERT INTO told VALUES (p, 1000 / kept, NULL);
           SELECT b INTO other FROM t WHERE id = q;
           INSERT INTO told VALUES (q, 1000 / other, NULL);
         END $$",
    );
    evict(&db);
    // Only what stands for the values is 0.
    run(&db, &format!("CALL divide(1, {})", 2 * CHUNK));
    assert_eq!(ask(&db, "SELECT count(*) FROM told"), "2");
    evict(&db);
    assert_eq!(state(&fails(&db, "CALL divide(50000, 0)")), "22012");
    assert_eq!(ask(&db, "SELECT count(*) FROM told"), "2");
}

#[test]
fn open_transaction_meets_many_chunks_at_once() {
    if !rows_stay() {
        return;
    }
    let db = database();
    let connection = db.connect();
    connection.execute("BEGIN").unwrap();
    connection.execute("INSERT INTO told VALUES (1, 1, 'mine')").unwrap();
    evict(&db);
    let list = ids(20).iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let change = format!("UPDATE t SET b = b + 1 WHERE id IN ({list})");
    let ((), met) = fetches(&db, || drop::<Vec<Outcome>>(connection.execute(&change).unwrap()));
    assert_eq!(met, ALL);
    let sum = format!("SELECT sum(b) FROM t WHERE id IN ({list})");
    assert_eq!(show(&connection.query(&sum, &[]).unwrap()), (sum_of(&ids(20)) + 5).to_string());
    connection.execute("COMMIT").unwrap();
    assert_eq!(ask(&db, &sum), (sum_of(&ids(20)) + 5).to_string());
    assert_eq!(ask(&db, "SELECT x FROM told"), "mine");
}

#[test]
fn change_worked_out_beside_the_table_concerns_evicted_rows_once() {
    let (here, away) = (crate::support::database(), database());
    filled(&here);
    for change in [
        "MERGE INTO t USING (SELECT id + 3 AS id, b FROM t WHERE id % 7 = 0) u ON t.id = u.id
         WHEN MATCHED AND t.b % 2 = 0 THEN UPDATE SET b = t.b + u.b, m = t.m + 1
         WHEN MATCHED AND t.b % 3 = 0 THEN DELETE
         WHEN NOT MATCHED THEN INSERT VALUES (u.id + 1000000, u.b, 'new', 1)",
        "UPDATE t SET b = b + m WHERE m % 10 < 3",
        "DELETE FROM t WHERE b % 5 = 0",
    ] {
        for path in [ExecutionPath::Analytical, ExecutionPath::Transactional] {
            for db in [&here, &away] {
                db.force_execution_path(Some(path));
            }
            evict(&away);
            run(&here, change);
            run(&away, change);
            let sums = "SELECT count(*), sum(id), sum(b), sum(m), count(x), sum(length(x)) FROM t";
            assert_eq!(ask(&away, sums), ask(&here, sums), "after {change}");
        }
    }
}
