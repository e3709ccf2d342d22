//! Rows that were frozen: the same answers, and changes that move them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use albireo::{ArchiveInspector, Config, Database, FreezeSchedule};
use albireo_env::{Clock, CrashDisk, Disk, Env, SimulatedClock};

use crate::recovery::{config, env_of};
use crate::support::{ask, database, fails, rows_stay, run, show, small, state};

/// Rows of a chunk and some more.
const ROWS: u32 = 20_000;

/// Of all types, with ordered indexes, a hash index, NULLs and texts of many lengths, some of which are packed, `p`, or
/// compressed, `q`, when they are frozen.
pub fn filled(db: &Database) {
    run(
        db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, s SMALLINT, b BIGINT NOT NULL, n NUMERIC(8,2), w NUMERIC(30,4), r REAL,
         d DOUBLE PRECISION, o BOOLEAN, c CHAR(5), v VARCHAR(12), x TEXT, y BYTEA, e DATE, i TIME, ts TIMESTAMP, tz TIMESTAMPTZ,
         u UUID, p CHAR(9) DEFAULT 'no plate', q TEXT);
         CREATE INDEX by_v ON t (v, b);
         CREATE INDEX by_q ON t (q);
         CREATE INDEX by_p ON t (p, id);
         CREATE INDEX by_x ON t USING HASH (x)",
    );
    run(
        db,
        &format!(
            "INSERT INTO t SELECT g, nullif(g % 7, 3), g::bigint * 1000003, (g % 500) / 4.0, g * 12345678901234567.5,
             nullif(g % 11, 5) / 3.0::real, g / 7.0, g % 3 = 0, 'c' || g % 10, 'v' || g % 97,
             CASE WHEN g % 5 = 0 THEN NULL ELSE repeat('text ' || g % 13 || ' ', g % 9) END,
             decode(lpad(to_hex(g % 256), 2, '0'), 'hex'), DATE '2020-01-01' + g % 400,
             TIME '00:00' + (g % 1440) * INTERVAL '1 minute', TIMESTAMP '2020-01-01' + (g % 1000) * INTERVAL '1 hour',
             TIMESTAMPTZ '2020-01-01 00:00+00' + g * INTERVAL '1 second', NULL,
             'P-' || lpad((g::bigint * 7919 % 1000003)::text, 7, '0'),
             CASE WHEN g % 50 = 49 THEN NULL ELSE 'a long beginning ' || g::bigint * 7919 % 20011 END
             FROM generate_series(1, {ROWS}) s (g)"
        ),
    );
    run(db, "DELETE FROM t WHERE id % 36 = 0");
}

/// Changes of rows of the table, one by one and of many.
pub const CHANGES: [&str; 17] = [
    "UPDATE t SET b = b + 1 WHERE id = 77",
    "UPDATE t SET v = 'moved', x = repeat('long', 20), s = NULL WHERE id = 78",
    "UPDATE t SET id = 30078 WHERE id = 78",
    "DELETE FROM t WHERE id = 79",
    "INSERT INTO t (id, b) VALUES (80, 1), (81, 1), (80, 2) ON CONFLICT (id) DO NOTHING",
    "INSERT INTO t (id, b) VALUES (80, 1), (30081, 1) ON CONFLICT (id) DO UPDATE SET b = excluded.b + t.b",
    "INSERT INTO t (id, b) VALUES (79, 1)",
    "BEGIN; UPDATE t SET b = 0 WHERE id = 90; DELETE FROM t WHERE id = 91; UPDATE t SET b = b + 7 WHERE id = 90; ROLLBACK",
    "BEGIN; UPDATE t SET b = 0 WHERE id = 92; SAVEPOINT a; UPDATE t SET v = 'z' WHERE id = 92; DELETE FROM t WHERE id = 93;
     ROLLBACK TO a; UPDATE t SET b = b + 7 WHERE id IN (92, 93); COMMIT",
    "UPDATE t SET b = b + 1 WHERE v = 'v5'",
    "UPDATE t SET b = b + 1 WHERE q = 'a long beginning 15838'",
    "UPDATE t SET q = q || '!', p = substr(q, 3, 9) WHERE p LIKE 'P-00_1%'",
    "UPDATE t SET n = n + 1 WHERE id < 15000",
    "UPDATE t SET x = x || '!' WHERE id % 2 = 0",
    "DELETE FROM t WHERE id % 3 = 0",
    "MERGE INTO t USING (SELECT id + 5 AS id FROM t WHERE id < 4000) AS u ON t.id = u.id
     WHEN MATCHED THEN UPDATE SET b = t.b - 1",
    "CREATE INDEX by_e ON t (e, id)",
];

/// Everything that a table holds, found in several ways.
pub fn all(db: &Database) -> Vec<String> {
    let columns = "id, s, b, n, w, r, d, o, c, v, x, y, e, i, ts, tz, u, p, q";
    let sums = "count(*), sum(s), sum(b), sum(n), sum(w), max(r), sum(d::numeric), count(o), min(c), max(v), sum(length(x)), \
                count(y), max(e), min(i), max(ts), max(tz), count(u), min(p), max(p), sum(length(q)), max(q)";
    vec![
        ask(db, &format!("SELECT {sums} FROM t")),
        ask(db, &format!("SELECT {columns} FROM t WHERE id % 997 = 0 ORDER BY id")),
        ask(
            db,
            &format!("SELECT {columns} FROM t WHERE id IN (1, 77, 1234, 16384, 16385, 19999) ORDER BY id"),
        ),
        ask(db, "SELECT id, b FROM t WHERE v = 'v42' AND b > 5000 ORDER BY b LIMIT 20"),
        ask(db, "SELECT v, count(*), count(x) FROM t GROUP BY v ORDER BY v LIMIT 10"),
        ask(db, "SELECT count(*) FROM t WHERE x = 'text 1 text 1 '"),
        ask(db, "SELECT id, p, q FROM t WHERE q = 'a long beginning 7919'"),
        ask(db, "SELECT id, p FROM t WHERE p BETWEEN 'P-0007' AND 'P-0008' ORDER BY p DESC, id LIMIT 5"),
        ask(db, "SELECT id, q FROM t WHERE q > 'a long beginning 19' ORDER BY q LIMIT 5"),
        ask(db, "SELECT count(*), min(p) FROM t WHERE q LIKE '%9_7' AND p NOT LIKE 'P-00%'"),
        ask(
            db,
            "SELECT a.id FROM t a JOIN t b ON b.id = a.id + 1 WHERE a.v = 'v1' AND b.s IS NULL ORDER BY 1 LIMIT 9",
        ),
    ]
}

pub fn freeze(db: &Database) {
    run(db, "CALL albireo.freeze('t')");
}

#[test]
fn frozen_rows_give_the_same_answers() {
    for partitions in [1, 3] {
        let db = Database::in_memory(Config { partitions, ..small() }).unwrap();
        filled(&db);
        let before = all(&db);
        freeze(&db);
        assert_eq!(all(&db), before);
        freeze(&db);
        assert_eq!(all(&db), before, "what is frozen stays so");
    }
}

#[test]
fn frozen_rows_are_changed_one_by_one_and_all_together() {
    let (hot, frozen) = (database(), database());
    filled(&hot);
    filled(&frozen);
    freeze(&frozen);
    for change in CHANGES {
        run(&hot, change);
        run(&frozen, change);
        assert_eq!(all(&frozen), all(&hot), "after {change}");
    }
    freeze(&frozen);
    assert_eq!(all(&frozen), all(&hot));
    assert_eq!(state(&fails(&frozen, "INSERT INTO t (id, b) VALUES (77, 1)")), "23505");
    let touched = "INSERT INTO t (id, b) VALUES (77, 1), (77, 2) ON CONFLICT (id) DO UPDATE SET b = 5";
    assert_eq!(state(&fails(&frozen, touched)), "21000", "a row that has moved is the same row");
}

#[test]
fn routine_reads_texts_of_frozen_rows() {
    let db = database();
    filled(&db);
    run(
        &db,
        "CREATE FUNCTION told(first INTEGER) RETURNS TEXT LANGUAGE plpgsql AS $$
         DECLARE r RECORD; told TEXT := ''; kept TEXT; alike INTEGER;
         BEGIN
           SELECT q INTO kept FROM t WHERE id = first;
           SELECT count(*) INTO alike FROM t WHERE q = kept AND p = (SELECT p FROM t WHERE id = first);
           FOR r IN SELECT id, p, q FROM t WHERE id BETWEEN first AND first + 30 ORDER BY id LOOP
             IF r.q > kept AND r.p <> 'P-0000007' THEN
               told := told || r.p || ':' || coalesce(upper(r.q), 'none') || length(kept) || ';';
               kept := r.q;
             END IF;
           END LOOP;
           SELECT max(p) || min(q) || alike INTO kept FROM t WHERE id BETWEEN first AND first + 30;
           RETURN told || kept;
         END $$",
    );
    let calls = || -> Vec<String> {
        let firsts = [1, 30, 77, 1234, 16_370, 19_900].into_iter();
        firsts.cycle().take(60).map(|first| ask(&db, &format!("SELECT told({first})"))).collect()
    };
    let before = calls();
    freeze(&db);
    assert_eq!(calls(), before);
}

#[test]
fn texts_of_few_different_bytes_or_strings_take_fewer_bytes() {
    let db = database();
    filled(&db);
    freeze(&db);
    let forms = ask(&db, "SELECT encoding FROM albireo.chunks WHERE \"table\" = 't' AND chunk = 0");
    assert!(forms.contains("p: texts of 9 bytes of 4 bits; q: texts compressed by "), "{forms}");
}

#[test]
fn loop_that_changes_what_it_reads_meets_each_row_once() {
    let db = database();
    filled(&db);
    run(
        &db,
        "CREATE TABLE seen (n BIGINT NOT NULL);
         CREATE PROCEDURE raise_all() LANGUAGE plpgsql AS $$
         DECLARE r RECORD; n BIGINT := 0;
         BEGIN
           FOR r IN SELECT id, b FROM t LOOP
             UPDATE t SET b = r.b + 1 WHERE id = r.id;
             n := n + 1;
           END LOOP;
           INSERT INTO seen VALUES (n);
         END $$",
    );
    let expected = ask(&db, "SELECT count(*), sum(b) + count(*) FROM t");
    freeze(&db);
    run(&db, "CALL raise_all()");
    assert_eq!(ask(&db, "SELECT count(*), sum(b) FROM t"), expected);
    assert_eq!(ask(&db, "SELECT n FROM seen"), ask(&db, "SELECT count(*) FROM t"));
}

#[test]
fn session_from_before_sees_what_was_then() {
    let db = database();
    filled(&db);
    let connection = db.connect();
    connection.execute("BEGIN READ ONLY").unwrap();
    let sum = "SELECT count(*), sum(b), max(v), sum(length(x)) FROM t";
    let before = ask(&db, sum);
    assert_eq!(show(&connection.query(sum, &[]).unwrap()), before);
    freeze(&db);
    run(&db, "UPDATE t SET b = 0, v = 'w', x = NULL WHERE id < 100; DELETE FROM t WHERE id > 19000");
    assert_eq!(show(&connection.query(sum, &[]).unwrap()), before);
    connection.execute("COMMIT").unwrap();
    let frozen = db.connect();
    frozen.execute("BEGIN READ ONLY").unwrap();
    let before = ask(&db, sum);
    assert_eq!(show(&frozen.query(sum, &[]).unwrap()), before);
    run(&db, "UPDATE t SET x = 'all', b = 1; DELETE FROM t WHERE id % 2 = 0");
    assert_eq!(show(&frozen.query(sum, &[]).unwrap()), before);
}

#[test]
fn frozen_rows_are_in_archives_and_changes_of_them_in_the_log() {
    let disk = CrashDisk::new(1);
    let open = || Database::open_in("/data", config(1, 1), env_of(&disk)).unwrap();
    let db = open();
    filled(&db);
    freeze(&db);
    run(&db, "CHECKPOINT");
    run(&db, "UPDATE t SET b = 1, v = 'v1' WHERE id < 50; DELETE FROM t WHERE id BETWEEN 60 AND 70");
    let before = all(&db);
    drop(db);
    let db = open();
    assert_eq!(all(&db), before);
    freeze(&db);
    run(&db, "UPDATE t SET x = 'again' WHERE id < 20");
    let before = all(&db);
    drop(db);
    assert_eq!(all(&open()), before);
}

/// Names and lengths of the files of an archive, but of its manifest.
fn files_of(disk: &CrashDisk, archive: u32) -> Vec<(String, usize)> {
    let directory = format!("/data/archive/{archive:010}");
    let paths = disk.read_dir(Path::new(&directory)).unwrap_or_default();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut files: Vec<_> =
        paths.iter().map(|path| (name(path), disk.contents(path).unwrap().len())).collect();
    files.retain(|(name, _)| name.ends_with(".arrow"));
    files.sort();
    files
}

#[test]
fn frozen_chunks_are_loaded_as_they_are_and_written_once() {
    if !rows_stay() {
        return;
    }
    let frozen_of = |files: &[(String, usize)]| files.iter().filter(|file| file.0.contains("frozen")).count();
    for partitions in [1, 2] {
        let disk = CrashDisk::new(1);
        let open = || Database::open_in("/data", config(partitions, 2), env_of(&disk)).unwrap();
        let db = open();
        filled(&db);
        freeze(&db);
        run(&db, "INSERT INTO t (id, b) SELECT g, g FROM generate_series(100001, 100100) s (g)");
        run(&db, "CHECKPOINT");
        let chunks = "SELECT partition, chunk, state, rows, dead, bytes, block_bytes, encoding FROM albireo.chunks \
                      WHERE state = 'frozen' ORDER BY partition, chunk";
        let written = frozen_of(&files_of(&disk, 1));
        assert_eq!(written, 2);
        let shown = ask(&db, chunks);
        let before = all(&db);
        drop(db);

        let db = open();
        assert_eq!(all(&db), before);
        assert_eq!(ask(&db, chunks), shown, "what was frozen is, in the same forms");
        // Rows die and move away; the archive names the file that is there.
        run(&db, "DELETE FROM t WHERE id % 500 = 7; UPDATE t SET v = 'moved' WHERE id BETWEEN 300 AND 310");
        run(&db, "CHECKPOINT");
        assert_eq!(frozen_of(&files_of(&disk, 2)), 0, "{:?}", files_of(&disk, 2));
        let before = all(&db);
        run(&db, "DELETE FROM t WHERE id = 400");
        drop(db);

        // Once more, and the archive that wrote them is no longer one.
        let db = open();
        run(&db, "INSERT INTO t (id, b) SELECT * FROM (VALUES (200001, 1)) v (id, b)");
        run(&db, "CHECKPOINT");
        run(&db, "CHECKPOINT");
        assert_eq!((frozen_of(&files_of(&disk, 1)), frozen_of(&files_of(&disk, 4))), (2, 0));
        assert!(disk.contents("/data/archive/0000000001/manifest.json").is_none());
        run(&db, "DELETE FROM t WHERE id = 200001");
        let after = all(&db);
        assert_ne!(after, before);
        drop(db);
        let db = open();
        assert_eq!(all(&db), after);
        // All of it is changed and gone.
        run(&db, "UPDATE t SET b = 7; CHECKPOINT");
        let after = all(&db);
        drop(db);
        assert_eq!(all(&open()), after);
    }
}

#[test]
fn damage_in_a_frozen_chunk_is_found_with_its_place_and_another_archive_is_loaded() {
    let disk = CrashDisk::new(1);
    let open = || Database::open_in("/data", config(1, 1), env_of(&disk));
    let db = open().unwrap();
    filled(&db);
    run(&db, "CHECKPOINT");
    freeze(&db);
    let before = all(&db);
    run(&db, "CHECKPOINT");
    drop(db);
    let path = "/data/archive/0000000002/t1-p0-c0.frozen.arrow";
    let sound = disk.contents(path).expect("it is there");
    let at = sound.len() / 2;
    let mut damaged = sound.clone();
    damaged[at] ^= 4;
    disk.put(path, &damaged);
    let checks = ArchiveInspector::open("/data", &env_of(&disk)).unwrap().unwrap().check(None);
    let [fault] = &checks[0].faults[..] else { panic!("{checks:?}") };
    assert!(fault.reason.starts_with("of bytes "), "{fault}");
    let numbers: Vec<usize> = fault.reason.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(numbers[0] <= at && at <= numbers[1] && numbers[1] - numbers[0] < sound.len() / 4, "{fault}");
    assert_eq!(all(&open().unwrap()), before, "the archive before and the log have everything");
}

#[test]
fn what_cannot_be_frozen_is_said() {
    let db = database();
    assert_eq!(state(&fails(&db, "CALL albireo.freeze('nothing')")), "42P01");
    assert_eq!(state(&fails(&db, "CALL albireo.freeze(1)")), "42601");
    assert_eq!(state(&fails(&db, "CALL albireo.freeze('a b')")), "42602");
    run(&db, "CREATE SCHEMA s; CREATE TABLE s.\"T\" (a INTEGER); CALL albireo.freeze('s.\"T\"')");
    run(
        &db,
        "INSERT INTO s.\"T\" SELECT g FROM generate_series(1, 10) x (g); CALL albireo.freeze('s.\"T\"'); TRUNCATE s.\"T\"",
    );
    assert_eq!(ask(&db, "SELECT count(*) FROM s.\"T\""), "0");
}

/// A database that freezes what nobody has written for so long, as a clock says that is set by hand.
fn frozen_after(after: Duration) -> (Database, SimulatedClock) {
    let (clock, hand) = Clock::simulated();
    let config = Config { freeze: FreezeSchedule { after: Some(after) }, ..small() };
    (Database::with_env(config, Env { clock, ..Env::real() }).unwrap(), hand)
}

#[test]
fn what_nobody_writes_is_frozen_by_itself() {
    if !rows_stay() {
        return;
    }
    let minute = Duration::from_secs(60);
    let (db, hand) = frozen_after(minute);
    run(&db, "CREATE TABLE big (a INTEGER PRIMARY KEY, b INTEGER NOT NULL); CREATE TABLE little (a INTEGER)");
    run(
        &db,
        "INSERT INTO big SELECT g, g % 3 FROM generate_series(0, 59999) s (g); INSERT INTO little VALUES (1)",
    );
    let states =
        "SELECT \"table\", chunk, state, rows, dead, bytes < block_bytes / 2, reason FROM albireo.chunks
                  ORDER BY \"table\", chunk";
    let hot = "big,0,hot,16384,0,f,it waits until nobody has written it for 1 min \
               big,1,hot,16384,0,f,it waits until nobody has written it for 1 min \
               big,2,hot,16384,0,f,it waits until nobody has written it for 1 min \
               big,3,hot,10848,0,f,new rows come to it little,0,hot,1,0,f,new rows come to it";
    assert_eq!(db.freeze_if_due().unwrap().chunks, 0);
    assert_eq!(ask(&db, states), hot);
    hand.advance(minute / 2);
    run(&db, "UPDATE big SET b = 7 WHERE a = 20000");
    assert_eq!(db.freeze_if_due().unwrap().chunks, 0);
    hand.advance(minute / 2);
    let cold = "0,cold,it waits for the next look 1,hot,it waits until nobody has written it for 1 min \
                2,cold,it waits for the next look 3,hot,new rows come to it";
    let reasons = "SELECT chunk, state, reason FROM albireo.chunks WHERE \"table\" = 'big' ORDER BY chunk";
    assert_eq!(ask(&db, reasons), cold);
    assert_eq!(db.freeze_if_due().unwrap().chunks, 2, "one was written half a minute ago");
    hand.advance(minute);
    assert_eq!(db.freeze_if_due().unwrap().chunks, 1);
    run(&db, "DELETE FROM big WHERE a < 100; UPDATE big SET b = 8 WHERE a = 40000");
    assert_eq!(db.freeze_if_due().unwrap().chunks, 0, "the last chunk is never frozen by itself");
    let frozen = "big,0,frozen,16284,100,t,NULL big,1,frozen,16384,0,t,NULL big,2,frozen,16383,1,t,NULL \
                  big,3,hot,10849,0,f,new rows come to it little,0,hot,1,0,f,new rows come to it";
    assert_eq!(ask(&db, states), frozen);
    assert_eq!(
        ask(&db, "SELECT encoding FROM albireo.chunks WHERE chunk = 0 AND state = 'frozen'"),
        "a: integers of 2 bytes; b: integers of 1 byte"
    );
    assert_eq!(
        ask(&db, "SELECT count(*), sum(a), sum(b) FROM big"),
        ask(&db, "SELECT 59900, 1799970000 - 4950, sum(b) FROM big")
    );
}

#[test]
fn what_transactions_read_often_is_not_frozen_for_its_age() {
    if !rows_stay() {
        return;
    }
    let (minute, moment) = (Duration::from_secs(60), Duration::from_millis(100));
    for observe_reads in [true, false] {
        let (clock, hand) = Clock::simulated();
        let config = Config { observe_reads, freeze: FreezeSchedule { after: Some(minute) }, ..small() };
        let db = Database::with_env(config, Env { clock, ..Env::real() }).unwrap();
        run(&db, "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER NOT NULL)");
        run(&db, "INSERT INTO t SELECT g, g % 3 FROM generate_series(0, 39999) s (g)");
        let chunks =
            |columns: &str| ask(&db, &format!("SELECT {columns} FROM albireo.chunks ORDER BY chunk"));
        let read = |rows: std::ops::Range<i32>| {
            for a in rows {
                let found = db.query("SELECT b FROM t WHERE a = $1", &[albireo::Value::Integer(a)]).unwrap();
                assert_eq!(found.row_count(), 1);
            }
        };
        assert_eq!(db.freeze_if_due().unwrap().chunks, 0);
        // Long ago, and queries of all rows, do not count.
        read(16384..20000);
        hand.advance(minute - moment);
        assert_eq!(ask(&db, "SELECT count(*), sum(b) FROM t"), "40000,39999");
        assert_eq!(db.freeze_if_due().unwrap().chunks, 0);
        // 20,000 a second.
        read(0..2000);
        hand.advance(moment);
        let frozen = db.freeze_if_due().unwrap().chunks;
        if !observe_reads {
            assert_eq!((frozen, chunks("reads")), (2, "0 0 0".to_owned()));
            continue;
        }
        assert_eq!(frozen, 1);
        assert_eq!(
            chunks("state, reads > 1900 AND reads < 2100, reads > 3500 AND reads < 3700, reason"),
            "cold,t,f,transactions read it often frozen,f,t,NULL hot,f,f,new rows come to it"
        );
        hand.advance(minute);
        assert_eq!(db.freeze_if_due().unwrap().chunks, 1, "nobody has read it since");
        assert_eq!(chunks("state"), "frozen frozen hot");
    }
}

#[test]
fn table_says_itself_when_its_rows_are_frozen() {
    if !rows_stay() {
        return;
    }
    let minute = Duration::from_secs(60);
    let (db, hand) = frozen_after(minute);
    run(&db, "CREATE TABLE auto (a INTEGER); CREATE TABLE never (a INTEGER) WITH (freeze = off)");
    run(&db, "CREATE TABLE late (a INTEGER) WITH (freeze = '3 min', layout = 'row')");
    for table in ["auto", "never", "late"] {
        run(&db, &format!("INSERT INTO {table} SELECT g FROM generate_series(1, 20000) s (g)"));
    }
    let states = || ask(&db, "SELECT \"table\", state FROM albireo.chunks WHERE chunk = 0 ORDER BY 1");
    let reasons = || ask(&db, "SELECT \"table\", reason FROM albireo.chunks WHERE chunk = 0 ORDER BY 1");
    assert_eq!(states(), "auto,hot late,hot never,hot");
    assert_eq!(
        reasons(),
        "auto,no look has come to it yet late,no look has come to it yet never,freeze is off"
    );
    assert_eq!(db.freeze_if_due().unwrap().chunks, 0);
    hand.advance(minute / 2);
    assert_eq!(db.freeze_if_due().unwrap().chunks, 0);
    assert_eq!(states(), "auto,cooling late,cooling never,hot");
    assert_eq!(
        reasons(),
        "auto,it waits until nobody has written it for 1 min late,it waits until nobody has written it for 3 min \
         never,freeze is off"
    );
    run(&db, "UPDATE late SET a = 0 WHERE a = 1");
    assert_eq!(states(), "auto,cooling late,hot never,hot");
    hand.advance(minute / 2);
    assert_eq!(db.freeze_if_due().unwrap().chunks, 1);
    hand.advance(minute * 3);
    assert_eq!(db.freeze_if_due().unwrap().chunks, 1);
    assert_eq!(states(), "auto,frozen late,frozen never,hot");
    run(
        &db,
        "ALTER TABLE never SET (freeze = '1 ms'); UPDATE auto SET a = -a; ALTER TABLE auto SET (freeze = off)",
    );
    assert_eq!(db.freeze_if_due().unwrap().chunks, 0, "it is seen for the first time");
    hand.advance(minute);
    assert_eq!(db.freeze_if_due().unwrap().chunks, 1);
    assert_eq!(states(), "auto,hot late,frozen never,frozen");
    assert_eq!(reasons(), "auto,freeze is off late,NULL never,NULL");
    assert_eq!(state(&fails(&db, "ALTER TABLE never SET (freeze = 'soon')")), "22023");
    assert_eq!(state(&fails(&db, "ALTER TABLE never ADD COLUMN b INTEGER")), "0A000");
    run(&db, "CALL albireo.freeze('auto')");
    assert_eq!(states(), "auto,frozen late,frozen never,frozen", "a call freezes what is off");
}

#[test]
fn reason_is_that_freeze_is_off_where_the_configuration_never_freezes() {
    if !rows_stay() {
        return;
    }
    let (clock, hand) = Clock::simulated();
    let config = Config { freeze: FreezeSchedule::never(), ..small() };
    let db = Database::with_env(config, Env { clock, ..Env::real() }).unwrap();
    run(&db, "CREATE TABLE t (a INTEGER); INSERT INTO t SELECT g FROM generate_series(1, 20000) s (g)");
    let states = || ask(&db, "SELECT state, reason FROM albireo.chunks ORDER BY chunk");
    assert_eq!(states(), "hot,freeze is off hot,new rows come to it");
    hand.advance(Duration::from_secs(3600));
    assert_eq!(db.freeze_if_due().unwrap().chunks, 0);
    assert_eq!(states(), "hot,freeze is off hot,new rows come to it");
    run(&db, "ALTER TABLE t SET (freeze = '1500 ms')");
    assert_eq!(states(), "hot,no look has come to it yet hot,new rows come to it");
    assert_eq!(db.freeze_if_due().unwrap().chunks, 0, "it is seen for the first time");
    assert_eq!(states(), "hot,it waits until nobody has written it for 1500 ms hot,new rows come to it");
    hand.advance(Duration::from_millis(1500));
    assert_eq!(states(), "cold,it waits for the next look hot,new rows come to it");
    run(&db, "UPDATE t SET a = 0 WHERE a = 1");
    assert_eq!(states(), "hot,it waits until nobody has written it for 1500 ms hot,new rows come to it");
}

#[test]
fn time_at_which_a_table_is_frozen_outlives_a_restart() {
    let disk = CrashDisk::new(5);
    let open = || Database::open_in("/db", config(1, 1), env_of(&disk)).unwrap();
    let db = open();
    run(&db, "CREATE TABLE t (a INTEGER) WITH (freeze = '2 min'); CREATE TABLE u (a INTEGER)");
    db.checkpoint().unwrap();
    run(&db, "ALTER TABLE u SET (freeze = off)");
    drop(db);
    let db = open();
    let of = |name: &str| db.catalog().tables().find(|table| table.name == name).unwrap().freeze.to_string();
    assert_eq!((of("t"), of("u")), ("120s".to_owned(), "off".to_owned()));
}

#[test]
fn thread_freezes_and_ends_with_the_database() {
    let config = Config { freeze: FreezeSchedule { after: Some(Duration::from_millis(1)) }, ..small() };
    let db = Database::in_memory(config).unwrap();
    filled(&db);
    let before = all(&db);
    let frozen =
        || ask(&db, "SELECT count(*) FROM albireo.chunks WHERE state IN ('frozen', 'evicted')") != "0";
    albireo_testing::wait_until("a chunk is frozen", frozen);
    assert_eq!(all(&db), before);
    run(&db, "UPDATE t SET b = b + 1; DELETE FROM t WHERE id < 10");
    drop(db);
}

#[test]
fn texts_that_are_too_long_together_stay_as_they_are() {
    let db = database();
    run(&db, "CREATE TABLE long (id INTEGER PRIMARY KEY, x TEXT NOT NULL)");
    run(
        &db,
        "INSERT INTO long SELECT g, CASE WHEN g < 130 THEN repeat('long', 524288) ELSE 'short' END
              FROM generate_series(0, 20000) s (g)",
    );
    run(&db, "CALL albireo.freeze('long')");
    let states = "SELECT state, reason FROM albireo.chunks ORDER BY chunk";
    assert_eq!(ask(&db, states), "hot,its texts take more than 256 MiB frozen,NULL");
    run(&db, "UPDATE long SET x = x || '!' WHERE id IN (131, 19000)");
    assert_eq!(
        ask(&db, "SELECT count(*), sum(length(x)) FROM long"),
        format!("20001,{}", 130 * 2_097_152 + 19_871 * 5 + 2)
    );
}

#[test]
fn what_is_left_of_chunks_of_holes_moves_and_they_are_filled_again() {
    if !rows_stay() {
        return;
    }
    let minute = Duration::from_secs(60);
    let (db, hand) = frozen_after(minute);
    run(&db, "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c INTEGER)");
    run(&db, "CREATE INDEX t_c ON t (c); CREATE INDEX t_b ON t (b) WITH (keys = 'none')");
    let insert = |first: u32| {
        run(
            &db,
            &format!(
                "INSERT INTO t SELECT g, 'a text that is long ' || g, g % 1000 FROM generate_series({first}, {first} + 49151) s (g)"
            ),
        );
    };
    let states = || ask(&db, "SELECT chunk, state, rows, bytes > 4000 FROM albireo.chunks ORDER BY 1");
    let due = |moved: u64, emptied: u64, chunks: u64| {
        let report = db.freeze_if_due().unwrap();
        assert_eq!((report.moved, report.emptied, report.chunks), (moved, emptied, chunks));
    };
    insert(0);
    due(0, 0, 0);
    hand.advance(minute);
    due(0, 0, 3);
    assert_eq!(states(), "0,frozen,16384,t 1,frozen,16384,t 2,frozen,16384,t");
    run(&db, "DELETE FROM t WHERE a < 16384; DELETE FROM t WHERE a BETWEEN 16384 AND 32767 AND a % 4 <> 0");
    run(&db, "DELETE FROM t WHERE a > 32767 AND a % 4 = 0");
    let looks = |what: &str| {
        let all = "SELECT count(*), sum(a), sum(c), min(b), max(b) FROM t";
        let from = "SELECT count(*), sum(g), sum(g % 1000), min('a text that is long ' || g), \
                    max('a text that is long ' || g) FROM generate_series(16384, 49151) s (g) \
                    WHERE (g < 32768) = (g % 4 = 0)";
        assert_eq!(ask(&db, all), ask(&db, from), "{what}");
        assert_eq!(
            ask(&db, "SELECT a, c FROM t WHERE a IN (16384, 16385, 32764, 32769) ORDER BY a"),
            "16384,384 32764,764 32769,769"
        );
        assert_eq!(ask(&db, "SELECT a FROM t WHERE c = 384 ORDER BY a LIMIT 2"), "16384 17384");
        assert_eq!(ask(&db, "SELECT a FROM t WHERE b = 'a text that is long 17384'"), "17384");
    };
    looks("before rows move");
    // Whoever has read a row in an open transaction holds on to its address.
    let reader = db.connect();
    reader.execute("BEGIN; SELECT b FROM t WHERE a = 16384").unwrap();
    due(0, 0, 0);
    reader.execute("COMMIT").unwrap();
    let session = db.connect();
    session.execute("BEGIN READ ONLY").unwrap();
    let old = "SELECT count(*), sum(a), sum(c), min(b) FROM t WHERE a < 32768";
    let before = show(&session.query(old, &[]).unwrap());
    due(4096, 2, 0);
    assert_eq!(states(), "0,hot,4096,t 1,empty,0,f 2,frozen,12288,t");
    looks("after they moved");
    run(&db, "DELETE FROM t WHERE a < 32768");
    assert_eq!(show(&session.query(old, &[]).unwrap()), before);
    session.execute("COMMIT").unwrap();
    for a in 0..20_000 {
        run(&db, &format!("INSERT INTO t VALUES ({a}, 'a text that is long {a}', {a} % 1000)"));
    }
    assert_eq!(states(), "0,hot,16384,t 1,hot,3616,t 2,frozen,12288,t");
}

#[test]
fn table_with_many_free_slots_is_frozen_and_grows_at_its_end() {
    let db = Database::in_memory(Config { partitions: 1, ..small() }).unwrap();
    run(&db, "CREATE TABLE r (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)");
    run(&db, "INSERT INTO r SELECT g, g % 7 FROM generate_series(1, 320000) s (g)");
    // 80,000 slots, a quarter of each chunk.
    run(&db, "DELETE FROM r WHERE id % 4 = 0");
    run(&db, "CALL albireo.freeze('r')");
    let hot = "FROM albireo.chunks WHERE \"table\" = 'r' AND rows > 0 AND state NOT IN ('frozen', 'evicted')";
    if rows_stay() {
        assert_eq!(ask(&db, &format!("SELECT count(*) {hot}")), "0");
    }
    // No new row comes where one has died.
    run(&db, "INSERT INTO r SELECT g * 4, 100 FROM generate_series(1, 10000) s (g)");
    (1..=50).for_each(|row| run(&db, &format!("INSERT INTO r VALUES ({}, 200)", row + 400_000)));
    run(&db, "UPDATE r SET n = 300 WHERE id BETWEEN 1 AND 9");
    if rows_stay() {
        assert_eq!(ask(&db, &format!("SELECT sum(rows) {hot}")), "10057");
    }
    assert_eq!(ask(&db, "SELECT count(*), sum(n) FROM r WHERE n < 100"), "239993,719978");
    assert_eq!(
        ask(&db, "SELECT n, count(*) FROM r WHERE n >= 100 GROUP BY n ORDER BY n"),
        "100,9998 200,50 300,9"
    );
    assert_eq!(ask(&db, "SELECT n FROM r WHERE id IN (4, 8, 10, 400050) ORDER BY id"), "300 300 3 200");
    // Slots of hot rows are used again.
    run(&db, "DELETE FROM r WHERE n = 200");
    (1..=50).for_each(|row| run(&db, &format!("INSERT INTO r VALUES ({}, 400)", row + 500_000)));
    if rows_stay() {
        assert_eq!(ask(&db, &format!("SELECT sum(rows) {hot}")), "10057");
    }
}
