//! Statements over many rows beside others that change the same rows: as if they had run when they ended.
//!
//! The others run at each step of the statement, in the same thread, so that a seed says what happens.

use std::sync::Arc;

use albireo_env::disk::CrashDisk;
use albireo_env::{Disk, Env, MemoryDisk};
use albireo_testing::{Random, test};
use parking_lot::Mutex;

use crate::meanwhile::Moment;
use crate::statements::ExecutionPath;
use crate::{Config, Database, Outcome, SqlError};

const ROWS: i64 = 6_000;

fn database(partitions: u16, layout: u64) -> Database {
    let db = Database::in_memory(Config { partitions, query_threads: 1, ..Config::default() }).unwrap();
    fill(&db, partitions, layout);
    db
}

fn fill(db: &Database, partitions: u16, layout: u64) {
    let by = if partitions > 1 { " PARTITION BY HASH (id)" } else { "" };
    let layout = match layout {
        0 => "",
        1 => " WITH (layout = 'row')",
        _ => " WITH (groups = 'v w c; g d')",
    };
    db.execute(&format!(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER, v BIGINT, w SMALLINT NOT NULL, d NUMERIC(30,2), s TEXT, c VARCHAR(10),
             CHECK (w < 30000)){by}{layout};
         CREATE INDEX t_g ON t (g);
         INSERT INTO t SELECT i, i % 50, i * 10, i % 100, i, repeat('s', i % 40), left('äöüßé€éèêë', i % 11)
             FROM generate_series(1, {ROWS}) AS x(i);
         CREATE TABLE u (id INTEGER PRIMARY KEY, x BIGINT){by};
         INSERT INTO u SELECT i * 2, i FROM generate_series(1, {ROWS}) AS x(i) WHERE i % 3 <> 1;
         CREATE FUNCTION thrice(a BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS 'BEGIN RETURN a * 3; END';
         CREATE FUNCTION known(i INTEGER) RETURNS BIGINT LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT x FROM u WHERE id = i); END';
         CREATE FUNCTION padded(a CHAR(4)) RETURNS TEXT LANGUAGE plpgsql AS 'BEGIN RETURN a || ''|'' || length(a); END'"
    ))
    .unwrap();
    let more = match layout {
        "" => return,
        // No two rows have the same `id`, however `g` changes.
        " WITH (layout = 'row')" => "CREATE UNIQUE INDEX t_g_id ON t (g, id)",
        // Keys of more than 16 bytes, whose rest is read in the rows, and keys that are read nowhere else.
        _ => "CREATE INDEX t_c_g ON t (c, g); DROP INDEX t_g; CREATE INDEX t_g ON t (g) WITH (keys = 'none')",
    };
    db.execute(more).unwrap();
}

const BY_INDEX: &str = "SELECT count(*), sum(id), max(v) FROM t WHERE g = $1";
const BY_SCAN: &str = "SELECT count(*), sum(id), max(v) FROM t WHERE g + 0 = $1";
const BY_KEY: &str = "SELECT id, v, w FROM t WHERE id = $1";
const BY_KEY_SCAN: &str = "SELECT id, v, w FROM t WHERE id + 0 = $1";

/// A statement over many rows.
fn many(random: &mut Random) -> String {
    let (n, m) = (random.between(2, 9), random.between(0, 50));
    match random.below(40) {
        34 | 35 => format!("UPDATE t SET g = g + {n}"),
        36 => format!("UPDATE t SET g = id % {m}, s = 'moved' WHERE w < 90 OR v IS NULL"),
        37 => format!("UPDATE t SET g = NULL WHERE w >= {n}"),
        38 | 39 => format!("UPDATE t SET c = left('{m}' || coalesce(c, ''), 10), g = coalesce(g, 0) + 1"),
        26 | 27 => format!(
            "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED AND t.w < {m} THEN UPDATE SET v = t.v + u.x \
             WHEN MATCHED AND t.w > 90 THEN UPDATE SET w = w - 1, s = 'merged' WHEN MATCHED THEN DELETE"
        ),
        28 => format!(
            "MERGE INTO t USING (SELECT * FROM u WHERE x % {n} = 0 OR id < 4000) AS u ON t.id = u.id \
             WHEN MATCHED THEN UPDATE SET d = u.x, c = 'ü' \
             WHEN NOT MATCHED THEN INSERT (id, v, w) VALUES (u.id, u.x, 7)"
        ),
        29 => format!("UPDATE t SET v = v + u.x, s = s || {n} FROM u WHERE u.id = t.id"),
        30 => format!("DELETE FROM t USING u WHERE u.id = t.id AND u.x % {n} <> 0"),
        31 => "UPDATE t SET v = (SELECT sum(x) FROM u WHERE u.id = t.id) WHERE w < 80".to_owned(),
        32 => format!("UPDATE t SET d = d + (SELECT max(v) FROM t) WHERE w % {n} = 1"),
        33 => format!("DELETE FROM t WHERE id IN (SELECT id FROM u WHERE x > {m}) AND v IS NOT NULL"),
        22 | 23 => format!(
            "INSERT INTO t SELECT 10000 + i * 3, i % {n} + 1, i, i % 50, i, repeat('i', i % 30), 'neu' \
             FROM generate_series(1, 3000) AS x(i)"
        ),
        24 => format!(
            "INSERT INTO t (id, v, w) SELECT 20000 + i, i, i % {n} FROM generate_series(1, 1500) AS x(i)"
        ),
        25 => format!("INSERT INTO t SELECT id + 10000, g, v, w, d, s, c FROM t WHERE w % {n} <> 1"),
        20 => format!("DELETE FROM t WHERE id % {n} <> 0"),
        21 => "DELETE FROM t WHERE v IS NOT NULL".to_owned(),
        14 => format!("UPDATE t SET s = repeat('x', id % 60) || v WHERE w >= {m}"),
        15 => format!("UPDATE t SET s = NULL, v = v + 1 WHERE w < {m} + 40"),
        16 => format!("UPDATE t SET c = repeat('é', id % 11), d = d + {n}"),
        17 => format!("UPDATE t SET c = c || s, w = w - {n} WHERE length(s) < 5"),
        18 => format!(
            "UPDATE t SET s = left(s, {n}) || 'a text that takes a heap', c = s WHERE length(s) < 11 OR s IS NULL"
        ),
        19 => format!("UPDATE t SET c = NULL WHERE w % {n} <> 1"),
        0 | 1 => format!("UPDATE t SET v = v + {n}"),
        2 => format!("UPDATE t SET v = v * {n}, w = w + 1 WHERE v % {n} <> 1"),
        3 => format!("UPDATE t SET v = NULL WHERE w > {m} AND v % 3 = 0"),
        4 => "UPDATE t SET w = w * 250 WHERE v < 59000".to_owned(),
        5 => format!("UPDATE t SET d = d * v / {n} WHERE w <> {m}"),
        6 => format!("UPDATE t SET v = coalesce(v, 0) - w, d = NULL WHERE g < {m} OR v IS NULL"),
        7 => format!("UPDATE t SET g = g + 1 WHERE v % 40 = {n} * 10 % 40 AND w % 7 = 1"),
        8 => format!("UPDATE t SET s = s || '!' WHERE w % 20 = {n}"),
        9 => format!("UPDATE t SET v = v + 1 WHERE w % 100 = {m}"),
        10 => format!("DELETE FROM t WHERE w % 50 = {m} OR w < {m}"),
        11 => format!("DELETE FROM t WHERE v % {n} = 1 OR s IS NULL"),
        12 => format!("UPDATE t SET id = id + 100000 WHERE w % 50 = {m}"),
        _ => "UPDATE t SET v = v + 9223372036854775000 WHERE w > 90".to_owned(),
    }
}

/// A statement that decides late about rows that a query finds.
fn late(random: &mut Random) -> String {
    let (n, m) = (random.between(2, 9), random.between(0, 50));
    match random.below(17) {
        0 => format!("UPDATE t SET v = v + {n} WHERE w % {n} = 1 RETURNING id, v, s"),
        1 => format!("DELETE FROM t WHERE w % {n} = 1 RETURNING id, c"),
        2 => format!("UPDATE t SET v = thrice(v) WHERE w < {m}"),
        3 => format!(
            "INSERT INTO t (id, v, w) SELECT id + 3000, v, w FROM t WHERE w % {n} = 1 \
             ON CONFLICT (id) DO UPDATE SET w = 5, s = 'late' || excluded.id"
        ),
        4 => format!(
            "INSERT INTO t (id, v, w) SELECT 30000 + x, x, 1 FROM u WHERE x % {n} = 0 RETURNING id, v"
        ),
        5 => format!("UPDATE t SET g = u.x FROM u WHERE u.id = t.id AND u.x % {n} = 0"),
        6 => format!(
            "UPDATE t SET v = t.v + u.x FROM u WHERE u.id = t.id AND t.w < {m} RETURNING t.id, u.x, t.v"
        ),
        7 => format!(
            "INSERT INTO t (id, v, w) VALUES (40000, (SELECT sum(v) FROM t WHERE w <> {m}), 1), \
             (40001, (SELECT max(id) FROM t WHERE w % {n} = 0), 2) RETURNING v, id"
        ),
        8 => format!(
            "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED AND u.x % {n} = 0 THEN UPDATE SET g = u.x, id = t.id + 200000 \
             WHEN NOT MATCHED THEN INSERT (id, v, w) VALUES (u.id + 300000, u.x, 7)"
        ),
        9 => format!(
            "UPDATE t SET v = v - 1 WHERE w = {m} RETURNING (SELECT count(*) FROM u WHERE x < {m}), v"
        ),
        10 => format!(
            "UPDATE t SET s = padded(left(c, 4)), v = 100 / (w % 3) WHERE w % 3 <> 0 AND thrice(v) % {n} = 0"
        ),
        11 => format!("DELETE FROM t WHERE known(id) % {n} = 1 AND w < {m} RETURNING s, known(id)"),
        12 => format!(
            "UPDATE t SET v = thrice(t.v) + u.x, g = {m} FROM u WHERE u.id / 4 = t.id / 4 AND thrice(t.v - u.x * 20) = 0"
        ),
        13 => format!(
            "UPDATE t SET v = v + thrice((SELECT max(x) FROM u WHERE u.id > t.id - {n})) WHERE w = {m}"
        ),
        14 => format!(
            "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED AND thrice(u.x) % {n} = 0 THEN UPDATE SET v = thrice(t.v) \
             WHEN NOT MATCHED THEN INSERT (id, v, w) VALUES (u.id, thrice(u.x), 1)"
        ),
        15 => format!("UPDATE t SET v = known(id), w = 100 / (w % 3) WHERE thrice(w) % {n} = 0"),
        _ => format!("DELETE FROM t USING u WHERE u.id = t.id AND thrice(u.x) % {n} = 0 RETURNING t.g"),
    }
}

/// What others do meanwhile.
fn point(random: &mut Random) -> String {
    let (id, n) = (random.between(1, ROWS + 40), random.between(0, 99));
    match random.below(20) {
        18 => format!("UPDATE u SET x = x + {n} WHERE id = {id}"),
        19 => format!("DELETE FROM u WHERE id = {id}"),
        15 => format!(
            "INSERT INTO t VALUES ({}, {n}, {n}, {n}, {n}, 'before', '') ON CONFLICT DO NOTHING",
            10000 + id / 2 * 3
        ),
        16 => format!("DELETE FROM t WHERE id = {}", 10000 + id * 3),
        17 => format!(
            "INSERT INTO t VALUES ({}, {n}, {n}, {n}, {n}, 'before', '') ON CONFLICT DO NOTHING",
            20000 + id / 4
        ),
        12 => format!("UPDATE t SET c = repeat('ü', {n} % 11) WHERE id = {id}"),
        13 | 14 => format!("UPDATE t SET s = repeat('z', {n} * 4) WHERE id = {id}"),
        0..4 => format!("UPDATE t SET v = v + {n} WHERE id = {id}"),
        4 => format!("UPDATE t SET w = {n} WHERE id = {id}"),
        5 => format!("UPDATE t SET g = {n}, d = {n} WHERE id = {id}"),
        6 => format!("UPDATE t SET v = NULL, s = NULL WHERE id = {id}"),
        7 => format!("UPDATE t SET s = 'other {n}' WHERE id = {id}"),
        8 => format!("UPDATE t SET id = {} WHERE id = {id}", id + 7),
        9 | 10 => format!("DELETE FROM t WHERE id = {id}"),
        _ => format!("INSERT INTO t VALUES ({id}, {n}, {n}, {n}, {n}, 'new', 'çç') ON CONFLICT DO NOTHING"),
    }
}

fn told(done: &Result<Vec<Outcome>, SqlError>) -> String {
    match done {
        Err(error) => format!("error {}", error.state()),
        Ok(outcomes) => match outcomes.last() {
            Some(Outcome::Done { rows, .. }) => format!("{rows} rows"),
            Some(Outcome::Rows(result)) => {
                let rows = result.rows();
                let mut rows: Vec<_> = rows.iter().map(|row| format!("{row:?}")).collect();
                rows.sort_unstable();
                rows.join(" ")
            }
            other => format!("{other:?}"),
        },
    }
}

/// All rows, as a snapshot has them, and as the indexes find them.
fn contents(db: &Database) -> String {
    let text = |sql: &str| {
        let rows = db.query(sql, &[]).unwrap().rows();
        rows.iter().map(|row| format!("{row:?}\n")).collect::<String>()
    };
    db.inner.statements.force(Some(ExecutionPath::Analytical));
    let scanned = text("SELECT * FROM t ORDER BY id");
    db.inner.statements.force(Some(ExecutionPath::Transactional));
    let by_index =
        text("SELECT g, count(*), sum(v), sum(id) FROM t WHERE g BETWEEN 0 AND 200 GROUP BY g ORDER BY g");
    let by_key = text("SELECT sum(w), count(*) FROM t, generate_series(1, 40000) AS x(i) WHERE id = i");
    let by_text: String = (0..=10)
        .map(|n| {
            text(&format!(
                "SELECT count(*), sum(id) FROM t WHERE c = left('äöüßé€éèêë', {n}) AND g = {n} + 1"
            ))
        })
        .collect();
    db.inner.statements.force(None);
    format!("{scanned}{by_index}{by_key}{by_text}")
}

/// Others, and what they did when.
type Acting = (Random, Vec<(String, Moment)>);

/// What became of a statement beside others.
#[derive(Default, Debug)]
struct Counts {
    made: usize,
    failed: usize,
    beside: usize,
}

/// Runs a statement as a transaction of its own, or in one that is opened so.
fn run_in(db: &Database, opened: Option<&str>, statement: &str) -> Result<Vec<Outcome>, SqlError> {
    let connection = db.connect();
    let Some(begin) = opened else { return connection.execute(statement) };
    connection.execute(begin)?;
    let done = connection.execute(statement);
    connection.execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    done
}

fn beside_others(seed: u64, counts: &mut Counts, (many, opened): (fn(&mut Random) -> String, Option<&str>)) {
    let mut random = Random::new(seed);
    let (partitions, layout) = (1 + (seed % 3) as u16, seed / 3 % 3);
    let (db, twin) = (database(partitions, layout), database(partitions, layout));
    for _ in 0..100 {
        for query in [BY_INDEX, BY_KEY] {
            db.execute_with(query, &[1.into()]).unwrap();
        }
    }
    for _ in 0..3 {
        let bulk = many(&mut random);
        let others: Arc<Mutex<Acting>> = Arc::new(Mutex::new((Random::new(random.bits()), Vec::new())));
        let acting = Arc::clone(&others);
        let (connection, steps) = (db.connect(), random.between(0, 14));
        let left = Mutex::new(steps);
        db.inner.meanwhile.put(Some(Arc::new(move |moment| {
            let mut acting = acting.lock();
            if *left.lock() == 0 || acting.0.percent(60) {
                return;
            }
            *left.lock() -= 1;
            for n in [acting.0.between(0, 99), acting.0.between(0, 50)] {
                let rows = |query: &str| match connection.execute_with(query, &[(n as i32).into()]) {
                    Ok(Outcome::Rows(result)) => result.rows(),
                    other => panic!("{other:?}"),
                };
                // The first of each pair becomes machine code.
                assert_eq!(rows(BY_INDEX), rows(BY_SCAN), "{moment:?}");
                assert_eq!(rows(BY_KEY), rows(BY_KEY_SCAN), "{moment:?}");
            }
            for _ in 0..[1, 3, 40, 300][acting.0.index(4)] {
                let statement = point(&mut acting.0);
                let done = connection.execute(&statement);
                assert!(
                    !matches!(&done, Err(error) if error.state() != albireo_base::SqlState::UNIQUE_VIOLATION
                    && error.state() != albireo_base::SqlState::NUMERIC_VALUE_OUT_OF_RANGE),
                    "{statement}: {done:?}"
                );
                acting.1.push((statement, moment));
            }
        })));
        let session = db.begin_read_only().unwrap();
        let sum = |session: &crate::ReadOnlySession| {
            format!(
                "{:?}",
                session.query("SELECT sum(v), sum(w), sum(d), count(*), sum(g) FROM t", &[]).unwrap().rows()
            )
        };
        let before = sum(&session);
        let done = run_in(&db, opened, &bulk);
        db.inner.meanwhile.put(None);
        assert_eq!(sum(&session), before, "{bulk}: a snapshot stays as it is");
        drop(session);
        twin.inner.statements.force(Some(ExecutionPath::Transactional));
        let others = std::mem::take(&mut others.lock().1);
        counts.beside += others.len();
        let then = |moment: Moment| {
            for (statement, _) in others.iter().filter(|(_, when)| *when == moment) {
                // What failed beside fails here.
                let _ = twin.execute(statement);
            }
        };
        then(Moment::Before);
        match &done {
            // It met the error at some moment, and changed nothing.
            Err(_) => counts.failed += 1,
            Ok(_) => {
                counts.made += 1;
                assert_eq!(told(&done), told(&twin.execute(&bulk)), "{bulk}");
            }
        }
        then(Moment::After);
        let (found, expected) = (contents(&db), contents(&twin));
        let other = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
        assert!(found == expected, "{bulk} beside {} others: {}, {other:?}", others.len(), told(&done));
    }
}

#[test]
fn statements_over_many_rows_run_beside_others_as_if_they_ran_when_they_ended() {
    let (test, mut counts) = (test!(), Counts::default());
    test.for_each_seed(0..36, |seed| beside_others(seed, &mut counts, (many, None)));
    if test.has_usual_seeds() {
        assert!(counts.made > 40 && counts.failed > 3 && counts.beside > 5_000, "{counts:?}");
    }
}

#[test]
fn statements_that_decide_late_about_their_rows_run_beside_others_as_if_they_ran_when_they_ended() {
    let (test, mut counts) = (test!(), Counts::default());
    test.for_each_seed(0..18, |seed| beside_others(seed, &mut counts, (late, None)));
    if test.has_usual_seeds() {
        assert!(counts.made > 40 && counts.failed > 3 && counts.beside > 2_000, "{counts:?}");
    }
}

#[test]
fn changes_of_open_transactions_run_beside_others_as_if_they_ran_when_they_ended() {
    let (test, mut counts) = (test!(), [Counts::default(), Counts::default()]);
    let levels = ["BEGIN ISOLATION LEVEL READ COMMITTED", "BEGIN ISOLATION LEVEL SERIALIZABLE"];
    test.for_each_seed(0..24, |seed| {
        let level = (seed / 12 % 2) as usize;
        beside_others(seed, &mut counts[level], (late, Some(levels[level])));
    });
    if test.has_usual_seeds() {
        assert!(counts.iter().all(|level| level.made > 20 && level.beside > 100), "{counts:?}");
    }
}

#[test]
fn row_gets_the_key_of_one_that_left_while_their_index_is_made_anew() {
    // Rows are taken up in the order in which they lie: 50 comes under the key of 100 before that one leaves.
    let others = ["DELETE FROM t WHERE id = 100", "UPDATE t SET id = 100, g = 100 % 50 WHERE id = 50"];
    let bulk = "UPDATE t SET g = g + 1";
    let (db, twin) = (database(1, 1), database(1, 1));
    let (connection, is_done) = (db.connect(), Mutex::new(false));
    db.inner.meanwhile.put(Some(Arc::new(move |_| {
        if !std::mem::replace(&mut *is_done.lock(), true) {
            others.iter().for_each(|statement| drop(connection.execute(statement).unwrap()));
        }
    })));
    let done = db.execute(bulk);
    db.inner.meanwhile.put(None);
    others.iter().for_each(|statement| drop(twin.execute(statement).unwrap()));
    assert_eq!(told(&done), told(&twin.execute(bulk)));
    assert_eq!(contents(&db), contents(&twin));
}

/// A table of 40,000 rows, none of which is in memory, and where they lie.
fn evicted() -> (Database, MemoryDisk) {
    let disk = MemoryDisk::default();
    let eviction = crate::Eviction::To("/cold".into());
    let config = Config { partitions: 1, query_threads: 1, eviction, ..Config::default() };
    let db = Database::with_env(config, Env { disk: Arc::new(disk.clone()), ..Env::real() }).unwrap();
    db.execute("CREATE TABLE r (id int PRIMARY KEY, n int); CREATE INDEX r_n ON r (n)").unwrap();
    db.execute("INSERT INTO r SELECT i, i * 7919 % 10007 FROM generate_series(1, 40000) AS x(i)").unwrap();
    db.execute("CALL albireo.freeze('r')").unwrap();
    assert!(db.evict_frozen() > 0);
    (db, disk)
}

/// Has all evicted rows lost.
fn lose(disk: &MemoryDisk) {
    for path in disk.read_dir("/cold".as_ref()).unwrap() {
        disk.open_placed(&path).unwrap().set_len(0).unwrap();
    }
}

#[test]
fn rows_whose_keys_cannot_be_read_are_not_deleted() {
    let (db, disk) = evicted();
    lose(&disk);
    // It finds them all without reading any.
    let error = db.execute("DELETE FROM r").unwrap_err();
    assert_eq!(error.state(), albireo_base::SqlState::DATA_CORRUPTED, "{error:?}");
    assert!(error.to_string().contains("\"/cold/"), "{error}");
    assert_eq!(db.query("SELECT count(*) FROM r", &[]).unwrap().value(0, 0).to_string(), "40000");
}

#[test]
fn keys_that_leave_memory_while_their_rows_are_tidied_away_are_fetched_or_warned_of() {
    for is_lost in [false, true] {
        let (db, disk) = evicted();
        let (evicting, counts) = (db.clone(), Arc::new(Mutex::new((0, 0))));
        let counted = Arc::clone(&counts);
        db.inner.meanwhile.put(Some(Arc::new(move |moment| {
            if moment == Moment::After {
                let bytes = evicting.evict_frozen();
                let mut counted = counted.lock();
                *counted = (counted.0 + 1, counted.1 + u64::from(bytes > 0));
                if is_lost {
                    lose(&disk);
                }
            }
        })));
        let deleted = db.execute("DELETE FROM r").unwrap();
        db.inner.meanwhile.put(None);
        let [Outcome::Done { rows: 40_000, notices, .. }] = &deleted[..] else { panic!("{deleted:?}") };
        let warning = notices.concat();
        assert_eq!(warning.contains("stay in the indexes"), is_lost, "{warning}");
        assert_eq!(warning.contains("\"/cold/"), is_lost, "{warning}");
        let (steps, evicted) = *counts.lock();
        assert!(steps > 100 && (is_lost || evicted > 100), "keys left {evicted} times in {steps} steps");
        let sums = |what: &str| db.query(what, &[]).unwrap().value(0, 0).to_string();
        assert_eq!(sums("SELECT count(*) FROM r WHERE n >= 0"), "0");
        db.execute("INSERT INTO r SELECT i, i FROM generate_series(1, 40000) AS x(i)").unwrap();
        assert_eq!(sums("SELECT count(*) FROM r WHERE id BETWEEN 1 AND 20"), "20");
        assert_eq!(sums("SELECT n FROM r WHERE id = 39000"), "39000");
        assert_eq!(sums("SELECT id FROM r WHERE n = 16000"), "16000");
    }
}

/// Inserts rows of which others bring one at a step, and perhaps take it away again some steps later; whether it was
/// inserted, and whether the statement had so many steps.
fn insert_beside(at: usize, gone_after: Option<usize>) -> (Result<Vec<Outcome>, SqlError>, Database, bool) {
    let db = database(1, 0);
    db.execute("CREATE UNIQUE INDEX t_c ON t (s, d)").unwrap();
    let (connection, step) = (db.connect(), Arc::new(Mutex::new(0)));
    let steps = Arc::clone(&step);
    db.inner.meanwhile.put(Some(Arc::new(move |_| {
        let mut step = step.lock();
        if *step == at {
            let key = "INSERT INTO t VALUES (21000, 1, 1, 1, 1, NULL, ''), (77, 1, 1, 1, 1501, 'i', '')";
            connection.execute(&key.replace("(77,", "(60077,")).unwrap();
        }
        if gone_after.is_some_and(|after| *step == at + after) {
            connection.execute("DELETE FROM t WHERE id IN (21000, 60077)").unwrap();
        }
        *step += 1;
    })));
    let done = db
        .execute("INSERT INTO t SELECT 20000 + i, i, i, 1, i, 'i', '' FROM generate_series(1, 2000) AS x(i)");
    db.inner.meanwhile.put(None);
    let reached = *steps.lock() > at + gone_after.unwrap_or(0);
    (done, db, reached)
}

#[test]
fn row_that_others_bring_meanwhile_is_there_first() {
    let count = |db: &Database, what: &str| {
        let query = format!("SELECT count(*) FROM t WHERE {what}");
        db.query(&query, &[]).unwrap().value(0, 0).to_string()
    };
    let mut met = [0; 2];
    for at in 0.. {
        let (done, db, reached) = insert_beside(at, None);
        if !reached {
            break;
        }
        met[0] += 1;
        let error = done.unwrap_err();
        assert_eq!(error.state(), albireo_base::SqlState::UNIQUE_VIOLATION, "{at}: {error}");
        assert_eq!((count(&db, "id > 20000"), count(&db, "id = 21000")), ("2".to_owned(), "1".to_owned()));
        // What did not come is in nobody's way.
        db.execute("DELETE FROM t WHERE id IN (21000, 60077)").unwrap();
        let again =
            "INSERT INTO t SELECT 20000 + i, i, i, 1, i, 'i', '' FROM generate_series(1, 2000) AS x(i)";
        let again = db.execute(again);
        assert_eq!(told(&again), "2000 rows", "{at} {again:?}");
        assert_eq!(count(&db, "id = 21000 AND g = 1000"), "1");
    }
    for at in 0.. {
        let (done, db, reached) = insert_beside(at, Some(3));
        if !reached {
            break;
        }
        met[1] += usize::from(done.is_ok());
        let expected = if done.is_ok() { "2000" } else { "0" };
        assert_eq!(count(&db, "id > 20000"), expected, "{at}: {done:?}");
        let found = if done.is_ok() { "1" } else { "0" };
        assert_eq!(
            (count(&db, "id = 21000"), count(&db, "g = 1000 AND id = 21000")),
            (found.into(), found.into())
        );
    }
    assert!(met[0] > 15 && met[1] > 10, "{met:?}");
}

/// The database as a crash at this moment would leave it, all that was acknowledged being on the disk.
fn crashed(disk: &CrashDisk, partitions: u16) -> Database {
    let copy = MemoryDisk::default();
    for (path, bytes) in disk.files() {
        copy.put(path, &bytes);
    }
    let env = Env { disk: Arc::new(copy), ..Env::real() };
    Database::open_in("/data", Config { partitions, query_threads: 1, ..Config::default() }, env).unwrap()
}

#[test]
fn crash_at_any_step_leaves_all_of_a_statement_or_nothing() {
    let statements = [
        "UPDATE t SET v = v + 1, s = s || '!'",
        "DELETE FROM t WHERE w % 3 <> 1",
        "INSERT INTO t SELECT 20000 + i, i, i, 1, i, 'i', '' FROM generate_series(1, 2500) AS x(i)",
        "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET v = t.v + u.x \
         WHEN NOT MATCHED THEN INSERT (id, v, w) VALUES (u.id, u.x, 7)",
    ];
    for (number, (bulk, partitions)) in statements.iter().flat_map(|bulk| [(bulk, 1), (bulk, 2)]).enumerate()
    {
        let disk = CrashDisk::new(number as u64);
        let env = Env { disk: Arc::new(disk.clone()), ..Env::real() };
        let config =
            Config { partitions, query_threads: 1, log_segment_bytes: 256 << 10, ..Config::default() };
        let db = Database::open_in("/data", config, env).unwrap();
        fill(&db, partitions, 0);
        db.checkpoint().unwrap();
        let twin = database(partitions, 0);
        let (connection, inner) = (db.connect(), twin.clone());
        let (step, text, copied) = (Mutex::new(0), (*bulk).to_owned(), disk.clone());
        let steps = Arc::new(Mutex::new([0; 2]));
        let counts = Arc::clone(&steps);
        db.inner.meanwhile.put(Some(Arc::new(move |moment| {
            let mut step = step.lock();
            let mut counts = counts.lock();
            if moment == Moment::After && counts[1] == 0 {
                inner.execute(&text).unwrap();
            }
            counts[usize::from(moment == Moment::After)] += 1;
            *step += 1;
            // Rows that the statement does not read in a column that it does, so that it goes on.
            let others = format!("UPDATE t SET c = 'c{}' WHERE id = {}", *step % 90, 100 + *step);
            inner.execute(&others).unwrap();
            connection.execute(&others).unwrap();
            if *step % 4 == 1 {
                assert_eq!(contents(&crashed(&copied, partitions)), contents(&inner), "{text}: step {step}");
            }
        })));
        assert!(db.execute(bulk).is_ok(), "{bulk}");
        db.inner.meanwhile.put(None);
        let counts = *steps.lock();
        if counts[1] == 0 {
            twin.execute(bulk).unwrap();
        }
        assert!(counts[0] > 0, "{bulk}: others ran beside it");
        assert_eq!(contents(&crashed(&disk, partitions)), contents(&twin), "{bulk}");
        db.checkpoint().unwrap();
        db.execute("UPDATE t SET c = 'end' WHERE id = 7").unwrap();
        twin.execute("UPDATE t SET c = 'end' WHERE id = 7").unwrap();
        assert_eq!(contents(&crashed(&disk, partitions)), contents(&twin), "{bulk}, behind an archive");
    }
}

/// Whether the redo log has a statement as its text, rather than the rows that it changed.
fn is_logged_as_text(statement: &str) -> bool {
    let disk = CrashDisk::new(1);
    let env = Env { disk: Arc::new(disk.clone()), ..Env::real() };
    let db = Database::open_in("/data", Config { partitions: 1, query_threads: 1, ..Config::default() }, env)
        .unwrap();
    fill(&db, 1, 0);
    db.execute("CREATE TABLE f (id INTEGER PRIMARY KEY, x DOUBLE PRECISION); INSERT INTO f SELECT id, id / 3.0 FROM u")
        .unwrap();
    db.inner.statements.force(Some(ExecutionPath::Analytical));
    let done = db.execute(statement);
    assert!(
        matches!(done.as_deref(), Ok([Outcome::Done { rows, .. }]) if *rows >= 1_000),
        "{statement}: {done:?}"
    );
    db.inner.statements.force(None);
    let crashed = crashed(&disk, 1);
    assert_eq!(contents(&crashed), contents(&db), "{statement}");
    let text = statement.as_bytes();
    disk.files().iter().any(|(_, bytes)| bytes.windows(text.len()).any(|part| part == text))
}

#[test]
fn statement_is_logged_as_text_if_the_order_of_rows_and_the_time_decide_about_nothing() {
    let as_text = [
        "UPDATE t SET v = v + 1",
        "UPDATE t SET v = v + u.x FROM u WHERE u.id = t.id",
        "UPDATE t SET v = (SELECT sum(x) FROM u WHERE u.id = t.id)",
        "DELETE FROM t WHERE id IN (SELECT id FROM u WHERE x > 7)",
        "DELETE FROM t USING (SELECT id FROM u ORDER BY x, id LIMIT 2000) AS u WHERE t.id = u.id",
        "MERGE INTO t USING (SELECT id, max(x) AS x FROM u GROUP BY id) AS u ON t.id = u.id \
         WHEN MATCHED THEN UPDATE SET v = u.x",
    ];
    for statement in as_text {
        assert!(is_logged_as_text(statement), "{statement}");
    }
    let as_rows = [
        "UPDATE t SET v = extract(epoch FROM now())::bigint",
        "UPDATE t SET v = (SELECT extract(epoch FROM now())::bigint FROM u WHERE u.id = t.id)",
        "DELETE FROM t WHERE id IN (SELECT id FROM u LIMIT 2000)",
        "DELETE FROM t USING (SELECT id FROM u LIMIT 2000) AS u WHERE t.id = u.id",
        // An index would give them in order, but a query on a snapshot does not.
        "DELETE FROM t USING (SELECT id FROM u WHERE id > 100 LIMIT 2000) AS u WHERE t.id = u.id",
        "UPDATE t SET v = (SELECT sum(x) FROM f)",
        "UPDATE t SET s = (SELECT string_agg(c, '') FROM (SELECT c FROM t WHERE id < 50 ORDER BY id) AS o)",
        "UPDATE t SET v = r.n FROM (SELECT id, row_number() OVER (ORDER BY x / 100) AS n FROM u) AS r WHERE r.id = t.id",
        "MERGE INTO t USING (SELECT DISTINCT ON (x / 2) id, x FROM u) AS u ON t.id = u.id \
         WHEN MATCHED THEN UPDATE SET v = u.x",
    ];
    for statement in as_rows {
        assert!(!is_logged_as_text(statement), "{statement}");
    }
}

#[test]
fn time_of_a_statement_is_that_of_all_its_tries() {
    let statements = [
        "UPDATE t SET v = v + 1 WHERE w = 3 RETURNING id",
        "UPDATE t SET v = thrice(v) WHERE w = 3",
        "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET v = u.x",
    ];
    for (begin, statement) in
        ["", "BEGIN"].iter().flat_map(|begin| statements.map(|statement| (begin, statement)))
    {
        let (clock, hand) = albireo_env::Clock::simulated();
        let config = Config { partitions: 1, query_threads: 1, ..Config::default() };
        let env = albireo_env::Env { clock, ..albireo_env::Env::real() };
        let db = Database::in_memory_in(config, env).unwrap();
        fill(&db, 1, 0);
        let (connection, other) = (db.connect(), db.connect());
        connection.execute(&format!("SET statement_timeout = '1 h'; {begin}")).unwrap();
        db.inner.statements.force(Some(ExecutionPath::Analytical));
        let steps = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&steps);
        db.inner.meanwhile.put(Some(Arc::new(move |_| {
            // Each try meets two of these at most, and is stale after.
            *counted.lock() += 1;
            other
                .execute("UPDATE t SET v = v + 7 WHERE id = 103; UPDATE u SET x = x + 1 WHERE id = 4")
                .unwrap();
            hand.advance(std::time::Duration::from_secs(35 * 60));
        })));
        let error = connection.execute(statement).unwrap_err();
        db.inner.meanwhile.put(None);
        assert_eq!(error.state(), albireo_base::SqlState::QUERY_CANCELED, "{begin} {statement}: {error}");
        assert!(error.message().contains("statement timeout"), "{begin} {statement}: {error}");
        assert!(*steps.lock() <= 4, "{begin} {statement}: {} steps", steps.lock());
    }
}

#[test]
fn statement_whose_snapshot_is_ended_by_the_budget_is_made_all_the_same() {
    let statements = [
        "UPDATE t SET v = v + 1",
        "UPDATE t SET v = v + u.x FROM u WHERE u.id = t.id",
        "DELETE FROM t USING u WHERE u.id = t.id AND u.x + 0 < 300",
    ];
    for statement in statements {
        let config = Config {
            partitions: 1,
            query_threads: 1,
            snapshot_budget_bytes: 64 << 10,
            snapshot_policy: crate::BudgetPolicy::EndOldest,
            ..Config::default()
        };
        let (db, twin) = (Database::in_memory(config).unwrap(), database(1, 0));
        fill(&db, 1, 0);
        // Several batches.
        let more = "INSERT INTO t (id, v, w) SELECT 10000 + i, i, 1 FROM generate_series(1, 150000) AS x(i)";
        for db in [&db, &twin] {
            db.execute(more).unwrap();
        }
        let (connection, inner, ended) = (db.connect(), twin.clone(), Arc::new(Mutex::new(false)));
        let once = Arc::clone(&ended);
        db.inner.meanwhile.put(Some(Arc::new(move |_| {
            if std::mem::replace(&mut *once.lock(), true) {
                return;
            }
            for id in (0..ROWS).chain((10_001..160_000).step_by(500)) {
                let other = format!(
                    "UPDATE t SET s = 'a text that is long enough', d = 1, v = {id}, g = {id} WHERE id = {id}"
                );
                connection.execute(&other).unwrap();
                inner.execute(&other).unwrap();
            }
        })));
        let done = db.execute(statement);
        db.inner.meanwhile.put(None);
        assert!(*ended.lock(), "{statement}");
        assert_eq!(told(&done), told(&twin.execute(statement)), "{statement}: {done:?}");
        assert_eq!(contents(&db), contents(&twin), "{statement}");
    }
}
