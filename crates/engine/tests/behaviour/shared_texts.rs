//! Long texts that come again in chunk after chunk, which frozen chunks share.

use std::sync::Arc;

use albireo::{Config, Database, Eviction};
use albireo_env::{CrashDisk, Env, MemoryDisk};

use crate::recovery::{config, env_of};
use crate::support::{ask, rows_stay, run, small};

/// Three chunks and some rows of 2,000 names of some 100 characters, of which some are NULL, some empty and some short.
fn filled(db: &Database) {
    run(db, "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, note VARCHAR(20) NOT NULL)");
    run(
        db,
        "INSERT INTO t SELECT g, CASE WHEN g % 97 = 0 THEN NULL WHEN g % 89 = 0 THEN '' WHEN g % 83 = 0 THEN 'short'
         ELSE 'name ' || g::bigint * 7919 % 2000 || repeat(' and more of it', 6) END, 'note ' || g % 7
         FROM generate_series(1, 50000) s (g)",
    );
}

fn all(db: &Database) -> Vec<String> {
    [
        "SELECT count(*), count(name), sum(length(name)), min(name), max(name), count(DISTINCT name) FROM t",
        "SELECT id, name, note FROM t WHERE id IN (1, 97, 89, 83, 16384, 16385, 40000, 49999) ORDER BY id",
        "SELECT name, count(*) FROM t GROUP BY name ORDER BY count(*) DESC, name LIMIT 20",
        "SELECT count(*), sum(id) FROM t WHERE name LIKE 'name 12%'",
        "SELECT count(*), sum(id) FROM t WHERE name LIKE '%more of it' AND name > 'name 5' AND note = 'note 3'",
        "SELECT count(*) FROM t WHERE name IS NULL OR name = '' OR name IN ('short', 'long')",
        "SELECT count(*), max(a.name) FROM t a JOIN t b ON a.name = b.name WHERE a.id < 300 AND b.id > 45000",
        "SELECT upper(name), id FROM t WHERE id % 5003 = 7 ORDER BY name, id",
    ]
    .map(|query| ask(db, query))
    .into()
}

/// How many chunks share names, and whether any shares notes.
fn sharing(db: &Database) -> (String, String) {
    let like = |form: &str| {
        ask(
            db,
            &format!("SELECT count(*) FROM albireo.chunks WHERE \"table\" = 't' AND encoding LIKE '{form}'"),
        )
    };
    (like("%name: dictionary of % in 2 bytes, texts shared; note%"), like("%note: %texts shared%"))
}

fn few(count: &str) -> (String, String) {
    (count.to_owned(), "0".to_owned())
}

#[test]
fn names_that_come_again_are_shared_and_read_as_before() {
    if !rows_stay() {
        return;
    }
    for partitions in [1, 3] {
        let db = Database::in_memory(Config { partitions, ..small() }).unwrap();
        filled(&db);
        let before = all(&db);
        run(&db, "CALL albireo.freeze('t')");
        // The first chunk has its own.
        let shared: i32 = sharing(&db).0.parse().unwrap();
        assert!(shared >= 2 && sharing(&db).1 == "0", "{shared} chunks");
        assert_eq!(all(&db), before);
        for change in [
            "UPDATE t SET name = name || '!' WHERE id % 1000 = 3",
            "DELETE FROM t WHERE name LIKE 'name 7%'",
            "UPDATE t SET note = 'changed' WHERE id BETWEEN 17000 AND 17010",
        ] {
            run(&db, change);
        }
        let before = all(&db);
        run(&db, "CALL albireo.freeze('t')");
        assert_eq!(all(&db), before);
        // What shares nothing any more takes nothing.
        run(&db, "DELETE FROM t");
        run(&db, "CALL albireo.freeze('t')");
        assert_eq!(sharing(&db), few("0"));
    }
}

#[test]
fn shared_names_leave_memory_and_come_back() {
    if !rows_stay() {
        return;
    }
    let env = Env { disk: Arc::new(MemoryDisk::default()), ..Env::real() };
    let config = Config { eviction: Eviction::To("/cold".into()), ..small() };
    let db = Database::with_env(config, env).unwrap();
    filled(&db);
    let before = all(&db);
    run(&db, "CALL albireo.freeze('t')");
    let shared = sharing(&db);
    let bytes = db.memory().rows_bytes;
    db.evict_frozen();
    assert_eq!(sharing(&db), few("0"));
    assert!(db.memory().rows_bytes * 4 < bytes, "{} of {bytes} bytes", db.memory().rows_bytes);
    assert_eq!(all(&db), before);
    // Transactions fetch what they read.
    for id in [5, 17_000, 33_000] {
        run(
            &db,
            &format!("UPDATE t SET note = 'x' WHERE id = {id}; UPDATE t SET note = 'note 5' WHERE id = {id}"),
        );
    }
    assert_eq!(sharing(&db), shared);
    assert!(db.evict_frozen() > 0);
    assert_eq!(sharing(&db), few("0"));
}

#[test]
fn shared_names_are_in_archives_and_shared_again_when_they_are_loaded() {
    if !rows_stay() {
        return;
    }
    let disk = CrashDisk::new(1);
    let open = || Database::open_in("/data", config(1, 2), env_of(&disk)).unwrap();
    let db = open();
    filled(&db);
    run(&db, "CALL albireo.freeze('t')");
    run(&db, "CHECKPOINT");
    run(&db, "DELETE FROM t WHERE id = 77");
    let (before, shared) = (all(&db), sharing(&db));
    drop(db);
    let db = open();
    assert_eq!((all(&db), sharing(&db)), (before, shared));
}
