//! Rows that have left memory: the same answers, changes that fetch them, and files that cannot be read.

use std::io::Read as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use albireo::{
    Abort, Config, Database, Eviction, ExecutionPath, Outcome, Procedure, Route, SqlState, Transaction, Value,
};
use albireo_env::{Disk, Env, MemoryDisk, PlacedFile};

use crate::frozen::{CHANGES, all, filled, freeze};
use crate::support::{ask, fails, rows_stay, run, show, small, state};

/// A database in memory whose rows go to `/cold` of a disk.
fn database_on(disk: &MemoryDisk, config: Config) -> Database {
    let env = Env { disk: Arc::new(disk.clone()), ..Env::real() };
    Database::with_env(Config { eviction: Eviction::To("/cold".into()), ..config }, env).unwrap()
}

fn database() -> Database {
    database_on(&MemoryDisk::default(), small())
}

/// The files in which evicted rows lie.
fn cold_paths(disk: &MemoryDisk) -> Vec<PathBuf> {
    let files = disk.read_dir(Path::new("/cold")).unwrap();
    assert!(files.len() > 1, "columns have files of their own");
    files
}

fn cold_files(disk: &MemoryDisk) -> impl Iterator<Item = Box<dyn PlacedFile>> {
    cold_paths(disk).into_iter().map(|path| disk.open_placed(&path).unwrap())
}

/// Has the rows of `t` leave memory.
pub fn evict(db: &Database) {
    run(db, "CALL albireo.freeze('t')");
    db.evict_frozen();
    let of = "FROM albireo.chunks WHERE \"table\" = 't' AND rows > 0";
    assert_ne!(ask(db, &format!("SELECT count(*) {of} AND state = 'evicted'")), "0");
    // Of rows that are all alike, nothing is to be put elsewhere.
    assert_eq!(ask(db, &format!("SELECT count(*) {of} AND state <> 'evicted' AND bytes > 20000")), "0");
}

#[test]
fn evicted_rows_give_the_same_answers() {
    for partitions in [1, 3] {
        let db = database_on(&MemoryDisk::default(), Config { partitions, ..small() });
        filled(&db);
        let before = all(&db);
        evict(&db);
        let bytes = db.memory().rows_bytes;
        assert_eq!(all(&db), before);
        ask(&db, "SELECT e, y FROM t WHERE id = 5");
        assert!(db.evict_frozen() > 0, "what was fetched for transactions stays until it leaves again");
        assert_eq!(all(&db), before);
        db.evict_frozen();
        assert_eq!(db.memory().rows_bytes, bytes, "as few bytes stay as before");
    }
}

#[test]
fn queries_fetch_for_themselves() {
    let db = database();
    filled(&db);
    evict(&db);
    let bytes = db.memory().rows_bytes;
    ask(&db, "SELECT v, count(*), max(x), sum(n) FROM t WHERE p LIKE 'P-0%' GROUP BY v ORDER BY v LIMIT 10");
    ask(&db, "SELECT count(*) FROM t a JOIN t b ON b.q = a.q WHERE a.id < 500");
    assert_eq!(db.memory().rows_bytes, bytes);
}

#[test]
fn many_rows_of_chunks_that_are_away_are_scanned_and_few_are_fetched() {
    if !rows_stay() {
        return;
    }
    let db = database();
    run(
        &db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER NOT NULL, g INTEGER NOT NULL, v TEXT NOT NULL);
         INSERT INTO t SELECT x, x * 7919 % 80000, x * 7919 % 80000 / 200, md5(x::text) FROM generate_series(0, 79999) s (x);
         CREATE INDEX by_k ON t (k) WITH (keys = 'none');
         CREATE INDEX by_g ON t (g)",
    );
    let plan = |condition: &str| match db
        .execute(&format!("EXPLAIN SELECT max(v) FROM t WHERE {condition}"))
        .unwrap()
        .remove(0)
    {
        Outcome::Rows(rows) => {
            rows.rows().iter().map(|row| row[0].to_string()).collect::<Vec<_>>().join("\n")
        }
        other => panic!("{other:?}"),
    };
    // The same 200 rows, a few in each chunk.
    let (many, few) = (["k BETWEEN 4000 AND 4199", "g = 20"], "k BETWEEN 4000 AND 4009");
    let assert_starts = |conditions: &[&str], path: &str| {
        for condition in conditions {
            let plan = plan(condition);
            assert!(plan.starts_with(path), "{condition}\n{plan}");
        }
    };
    assert_starts(&many, "transactional");
    evict(&db);
    assert_starts(&many, "analytical");
    assert!(plan(many[0]).contains("chunks with them are not in memory"), "{}", plan(many[0]));
    assert_starts(&[few, "id = 40000"], "transactional");
    // To ask has fetched nothing, and is no reading: of 64 rows that are read by an index, one is counted.
    let reads = || ask(&db, "SELECT sum(reads) FROM albireo.chunks WHERE \"table\" = 't'");
    let before = reads();
    for first in (0..80_000).step_by(800) {
        plan(&format!("k BETWEEN {first} AND {}", first + 199));
    }
    assert_eq!(reads(), before);
    assert_starts(&many, "analytical");
    db.force_execution_path(Some(ExecutionPath::Transactional));
    let fetched = many.map(|condition| ask(&db, &format!("SELECT max(v) FROM t WHERE {condition}")));
    db.force_execution_path(None);
    assert_eq!(fetched[0], fetched[1]);
    assert_starts(&many, "transactional");
}

#[test]
fn more_threads_than_cores_scan_what_is_away() {
    if !rows_stay() {
        return;
    }
    for (query_threads, hot, away) in [(1, 1, 1), (2, 2, 6)] {
        let db = database_on(&MemoryDisk::default(), Config { query_threads, ..small() });
        run(&db, "CREATE TABLE t (id INTEGER PRIMARY KEY, n REAL NOT NULL, v TEXT NOT NULL)");
        run(&db, "INSERT INTO t SELECT g, g % 700, 'text ' || g % 9 FROM generate_series(1, 100000) q (g)");
        let assert_scanned_by = |threads: usize| {
            for query in ["SELECT n, count(*) FROM t GROUP BY n", "SELECT v, count(*) FROM t GROUP BY v"] {
                let plan = format!("{:?}", db.execute(&format!("EXPLAIN {query}")).unwrap());
                let found = plan.contains(&format!("input_partitions={threads}"));
                assert_eq!(found, query_threads > 1, "{query} by {threads}\n{plan}");
            }
        };
        assert_scanned_by(hot);
        evict(&db);
        assert_scanned_by(away);
    }
}

/// Asserts that a query reads about so often when rows have left memory, and that a transaction reads in no such way.
pub fn assert_reads_together(
    db: &Database,
    disk: &MemoryDisk,
    leave: impl FnOnce(&Database),
    expected: RangeInclusive<u64>,
) {
    run(db, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, v TEXT NOT NULL)");
    run(db, "INSERT INTO t SELECT g, g % 701, 'text ' || g % 9 FROM generate_series(1, 600000) q (g)");
    let question = "SELECT v, count(*), sum(n), min(id) FROM t WHERE n <> 5 GROUP BY v ORDER BY v";
    let before = ask(db, question);
    leave(db);
    assert_eq!(ask(db, question), before);
    // Three columns of 37 chunks.
    let reads = disk.direct_reads();
    assert!(expected.contains(&reads), "{reads}");
    run(db, "SELECT n FROM t WHERE id = 77777");
    assert_eq!(disk.direct_reads(), reads, "a transaction reads what it needs");
}

#[test]
fn chunks_that_lie_together_are_read_together() {
    if !rows_stay() {
        return;
    }
    let disk = MemoryDisk::default();
    assert_reads_together(&database_on(&disk, small()), &disk, evict, 3..=60);
}

#[test]
fn sums_of_whole_chunks_are_known_without_their_file() {
    let disk = MemoryDisk::default();
    let db = database_on(&disk, small());
    run(&db, "CREATE TABLE t (id INTEGER PRIMARY KEY, n NUMERIC(8,2), s SMALLINT NOT NULL)");
    run(&db, "INSERT INTO t SELECT g, nullif(g % 1000, 7) / 4.0, g % 5 FROM generate_series(1, 40000) q (g)");
    let questions = [
        "SELECT count(*), count(n), sum(n), avg(n), sum(s) FROM t",
        "SELECT count(*), sum(n) FROM t WHERE s BETWEEN 0 AND 100000 AND id > -3",
    ];
    let before = questions.map(|question| ask(&db, question));
    evict(&db);
    cold_files(&disk).for_each(|file| file.set_len(0).unwrap());
    assert_eq!(questions.map(|question| ask(&db, question)), before);
    assert_eq!(state(&fails(&db, "SELECT sum(n) FROM t WHERE s = 1")), "XX001");
    assert_eq!(state(&fails(&db, "SELECT s, sum(n) FROM t GROUP BY s")), "XX001");
}

#[test]
fn least_and_greatest_values_of_whole_chunks_are_known_without_their_file() {
    let disk = MemoryDisk::default();
    let db = database_on(&disk, small());
    run(
        &db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n NUMERIC(8,2), w NUMERIC(30,4), r REAL, v TEXT, e DATE, s SMALLINT NOT NULL);
         INSERT INTO t SELECT g, nullif(g % 1000, 7) / 4.0, g * 12345678901234567.5, g / 3.0, 'text ' || g, DATE '2020-01-01' + g,
         g % 5 FROM generate_series(1, 40000) q (g)",
    );
    let questions = [
        "SELECT min(n), max(n), min(id), max(id), min(s), max(e) FROM t",
        "SELECT max(v) FROM t",
        "SELECT min(r), max(r), min(v), max(w) FROM t",
        "SELECT count(*), sum(n), min(n), max(v), min(w), max(r) FROM t WHERE s BETWEEN 0 AND 100000 AND id > -3",
    ];
    let before = questions.map(|question| ask(&db, question));
    evict(&db);
    cold_files(&disk).for_each(|file| file.set_len(0).unwrap());
    assert_eq!(questions.map(|question| ask(&db, question)), before);
    for read in [
        "SELECT min(n), max(n) FROM t WHERE s = 1",
        "SELECT max(r) FROM t WHERE s = 1",
        "SELECT s, max(v) FROM t GROUP BY s",
        "SELECT min(n + 1) FROM t",
    ] {
        assert_eq!(state(&fails(&db, read)), "XX001", "{read}");
    }
    run(&db, "INSERT INTO t (id, n, s) VALUES (0, -1, 0)");
    assert_eq!(ask(&db, "SELECT min(n), max(e) FROM t"), ask(&db, "SELECT -1.00, DATE '2020-01-01' + 40000"));
}

#[test]
fn room_of_rows_that_nobody_wants_is_given_back_and_no_other() {
    if !rows_stay() {
        return;
    }
    let disk = MemoryDisk::default();
    let db = database_on(&disk, small());
    let discarded = || {
        let count = |path: PathBuf| {
            let mut bytes = Vec::new();
            disk.open(&path).unwrap().read_to_end(&mut bytes).unwrap();
            bytes.into_iter().filter(|byte| *byte == 0xdd).count()
        };
        cold_paths(&disk).into_iter().map(count).sum::<usize>()
    };
    filled(&db);
    evict(&db);
    db.freeze_if_due().unwrap();
    let before = discarded();
    run(
        &db,
        "CREATE TABLE u (id INTEGER PRIMARY KEY, hash TEXT NOT NULL);
         INSERT INTO u SELECT g, md5(g::text) FROM generate_series(1, 50000) s (g);
         CALL albireo.freeze('u')",
    );
    db.evict_frozen();
    let later = "SELECT count(*), count(DISTINCT hash), min(hash), sum(id) FROM u WHERE id > 16384";
    let rows = (all(&db), ask(&db, later));
    // The first of three chunks, in the files of the second.
    run(&db, "DELETE FROM u WHERE id <= 16384; CALL albireo.freeze('u')");
    db.evict_frozen();
    db.freeze_if_due().unwrap();
    let of_first = discarded();
    assert!(of_first > before + 20_000, "{of_first} of {before}");
    assert_eq!((all(&db), ask(&db, later)), rows, "what lies beside it is as it was");
    run(&db, "DROP TABLE u");
    db.freeze_if_due().unwrap();
    assert!(discarded() > of_first + 20_000, "{} of {of_first}", discarded());
    assert_eq!(all(&db), rows.0, "what lies elsewhere is as it was");
}

#[test]
fn evicted_rows_are_changed_one_by_one_and_all_together() {
    let (hot, evicted) = (crate::support::database(), database());
    filled(&hot);
    filled(&evicted);
    for change in CHANGES {
        evict(&evicted);
        run(&hot, change);
        run(&evicted, change);
        assert_eq!(all(&evicted), all(&hot), "after {change}");
    }
    evict(&evicted);
    assert_eq!(state(&fails(&evicted, "INSERT INTO t (id, b) VALUES (77, 1)")), "23505");
}

#[test]
fn routine_that_meets_evicted_rows_is_seen_once() {
    let db = database();
    filled(&db);
    run(
        &db,
        "CREATE TABLE told (id INTEGER NOT NULL, b BIGINT);
         CREATE PROCEDURE tell(first INTEGER) LANGUAGE plpgsql AS $$
         DECLARE kept BIGINT;
         BEGIN
           INSERT INTO told VALUES (first, NULL);
           SELECT b INTO kept FROM t WHERE id = first;
           UPDATE told SET b = kept WHERE id = first AND b IS NULL;
           SELECT b INTO kept FROM t WHERE id = 19990 - first;
           INSERT INTO told VALUES (first, kept);
           RAISE NOTICE 'told %', first;
         END $$",
    );
    // At first by the interpreter, then compiled.
    let mut told = Vec::new();
    for first in (1..=60).filter(|first| first % 36 != 0 && (19_990 - first) % 36 != 0) {
        evict(&db);
        let outcomes = db.execute(&format!("CALL tell({first})")).unwrap();
        told.push(format!("{outcomes:?}").matches("told").count());
    }
    assert!(told.iter().all(|times| *times == told[0]), "{told:?}");
    let rows = ask(&db, "SELECT count(*), count(b), sum(b) FROM told");
    let expected = ask(
        &db,
        "SELECT 2 * count(*), 2 * count(*), sum(first::bigint * 1000003 + (19990 - first)::bigint * 1000003)
         FROM generate_series(1, 60) s (first) WHERE first % 36 <> 0 AND (19990 - first) % 36 <> 0",
    );
    assert_eq!(rows, expected);
}

#[test]
fn session_from_before_sees_what_was_then() {
    let db = database();
    filled(&db);
    let sum = "SELECT count(*), sum(b), max(v), sum(length(x)) FROM t";
    let before = ask(&db, sum);
    freeze(&db);
    let connections = [db.connect(), db.connect()];
    connections[0].execute("BEGIN READ ONLY").unwrap();
    assert_eq!(show(&connections[0].query(sum, &[]).unwrap()), before);
    db.evict_frozen();
    connections[1].execute("BEGIN READ ONLY").unwrap();
    assert_eq!(show(&connections[1].query(sum, &[]).unwrap()), before);
    run(&db, "UPDATE t SET b = 0, v = 'w', x = NULL WHERE id < 100; DELETE FROM t WHERE id > 19000");
    db.evict_frozen();
    for connection in &connections {
        assert_eq!(show(&connection.query(sum, &[]).unwrap()), before);
    }
}

#[test]
fn open_transaction_reads_and_writes_evicted_rows() {
    let db = database();
    filled(&db);
    let connection = db.connect();
    connection.execute("BEGIN").unwrap();
    evict(&db);
    connection.execute("UPDATE t SET b = b + 1 WHERE id = 77").unwrap();
    db.evict_frozen();
    assert_eq!(show(&connection.query("SELECT b FROM t WHERE id = 1000", &[]).unwrap()), "1000003000");
    // Somebody else comes between, so that what it has written is taken back and written again.
    assert_eq!(ask(&db, "SELECT b FROM t WHERE id = 77"), "77000231");
    db.evict_frozen();
    connection.execute("DELETE FROM t WHERE id = 78").unwrap();
    assert_eq!(ask(&db, "SELECT count(*) FROM t WHERE id = 78"), "1");
    db.evict_frozen();
    connection.execute("COMMIT").unwrap();
    assert_eq!(ask(&db, "SELECT id, b FROM t WHERE id IN (77, 78)"), "77,77000232");
}

#[test]
fn damaged_file_is_an_error_of_those_who_need_it() {
    if !rows_stay() {
        return;
    }
    let disk = MemoryDisk::default();
    let db = database_on(&disk, small());
    filled(&db);
    evict(&db);
    for path in cold_paths(&disk) {
        let (file, bytes) = (disk.open_placed(&path).unwrap(), disk.open(&path).unwrap().len().unwrap());
        (0..bytes).step_by(64).for_each(|offset| file.write_at(b"?", offset).unwrap());
    }
    for statement in [
        "SELECT * FROM t WHERE id = 77",
        "SELECT max(n), min(r) FROM t WHERE s = 1",
        "UPDATE t SET b = 1 WHERE id = 77",
        "DELETE FROM t WHERE id = 77",
        "UPDATE t SET b = b + 1 WHERE id > 5",
        "CREATE INDEX by_n ON t (n)",
    ] {
        let error = fails(&db, statement);
        assert_eq!(state(&error), "XX001", "{statement}: {error:?}");
        let text = error.to_string();
        let names_one = cold_paths(&disk).iter().any(|path| text.contains(path.to_str().unwrap()));
        assert!(names_one, "{statement}: {text}");
    }
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), ask(&db, "SELECT 20000 - 20000 / 36"));
    run(&db, "INSERT INTO t (id, b) VALUES (30000, 1); UPDATE t SET b = 2 WHERE id = 30000");
    assert_eq!(ask(&db, "SELECT b FROM t WHERE id = 30000"), "2");
    cold_files(&disk).for_each(|file| file.set_len(0).unwrap());
    assert_eq!(state(&fails(&db, "SELECT * FROM t WHERE id = 77")), "XX001");
}

#[test]
fn checkpoint_that_needs_a_damaged_evicted_file_names_it() {
    if !rows_stay() {
        return;
    }
    let disk = MemoryDisk::default();
    let env = Env { disk: Arc::new(disk.clone()), ..Env::real() };
    let config = Config { eviction: Eviction::To("/cold".into()), ..small() };
    let db = Database::open_in("/data", config, env).unwrap();
    filled(&db);
    evict(&db);
    cold_files(&disk).for_each(|file| file.set_len(0).unwrap());
    let error = fails(&db, "CHECKPOINT");
    assert_eq!(state(&error), "XX001", "{error:?}");
    let text = error.to_string();
    assert!(cold_paths(&disk).iter().any(|path| text.contains(path.to_str().unwrap())), "{text}");
}

/// Inserts a row with this key.
struct Insert(albireo::TableHandle);

impl Procedure for Insert {
    type Args = i32;
    type Output = ();

    fn name(&self) -> &str {
        "insert"
    }

    fn route(&self, _: &i32) -> Route {
        Route::Crossing
    }

    fn run(&self, tx: &mut Transaction, key: &i32) -> Result<(), Abort> {
        tx.insert_values_at(tx.home(), self.0, &[Value::Integer(*key), Value::Null])?;
        Ok(())
    }
}

#[test]
fn key_in_the_way_is_told_unless_its_row_cannot_be_read() {
    if !rows_stay() {
        return;
    }
    let disk = MemoryDisk::default();
    let db = database_on(&disk, small());
    run(
        &db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t SELECT g, g * g FROM generate_series(1, 100) q (g)",
    );
    let insert = db.register_procedure(Insert(db.with_table("t", |table, _| Ok(table)).unwrap()));
    let refused = |key| {
        let error = insert.call(&key).unwrap_err();
        assert_eq!(error.state(), SqlState::UNIQUE_VIOLATION, "{error}");
        error.detail().map(str::to_owned)
    };
    let told = Some("Key (id)=(7) already exists.".to_owned());
    assert_eq!(refused(7), told);
    evict(&db);
    assert_eq!(refused(7), told);
    evict(&db);
    cold_files(&disk).for_each(|file| file.set_len(0).unwrap());
    assert_eq!(refused(7), None);
    insert.call(&101).unwrap();
}

#[test]
fn table_grows_beyond_the_limit() {
    let limit = 48 << 20;
    let config = Config { data_limit_bytes: limit, ..small() };
    let db = database_on(&MemoryDisk::default(), config);
    run(&db, "CREATE TABLE t (id BIGINT PRIMARY KEY, text TEXT NOT NULL)");
    // Texts that no encoding makes short.
    let add = |from: u64| {
        format!(
            "INSERT INTO t SELECT g, md5(g::text) || md5((g + 1)::text) || md5((g * 7)::text) || md5((g * 11)::text)
             FROM generate_series({from}, {}) s (g)",
            from + 9_999
        )
    };
    let rows = 800_000;
    for from in (1..rows).step_by(10_000) {
        run(&db, &add(from));
    }
    assert!(rows * 128 > 2 * limit, "the rows alone take more than there is");
    assert!(db.memory().in_use_bytes <= limit);
    assert_eq!(
        ask(&db, "SELECT count(*), sum(id), sum(length(text)) FROM t"),
        "800000,320000400000,102400000"
    );
    for id in [1, 77_777, 400_000, 800_000] {
        let right = format!("SELECT md5('{id}') = substr(text, 1, 32) FROM t WHERE id = {id}");
        assert_eq!(ask(&db, &right), "t");
    }
    run(&db, "DELETE FROM t WHERE id % 2 = 0");
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "400000");
}

#[test]
fn database_that_does_not_fit_memory_is_opened_again() {
    let disk = MemoryDisk::default();
    let open = || {
        let env = Env { disk: Arc::new(disk.clone()), ..Env::real() };
        let config = Config { data_limit_bytes: 48 << 20, eviction: Eviction::Auto, ..small() };
        Database::open_in("/data", config, env).unwrap()
    };
    let sums = "SELECT count(*), sum(id), sum(length(text)), min(text) FROM t";
    let mut expected = String::new();
    for (round, from) in [1, 300_001, 600_001].into_iter().enumerate() {
        let db = open();
        match round {
            0 => run(&db, "CREATE TABLE t (id BIGINT PRIMARY KEY, text TEXT NOT NULL)"),
            _ => assert_eq!(ask(&db, sums), expected),
        }
        for first in (from..from + 300_000).step_by(10_000) {
            run(
                &db,
                &format!(
                    "INSERT INTO t SELECT g, md5(g::text) || md5((g + 1)::text) || md5((g * 7)::text) || md5((g * 11)::text)
                     FROM generate_series({first}, {}) s (g)",
                    first + 9_999
                ),
            );
        }
        // At first only the log has it.
        if round > 0 {
            run(&db, "CHECKPOINT");
        }
        run(&db, &format!("DELETE FROM t WHERE id % 1000 = {round}"));
        expected = ask(&db, sums);
    }
    assert_eq!(ask(&open(), sums), expected);
}
