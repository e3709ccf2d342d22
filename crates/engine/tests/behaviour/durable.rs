//! A database that is kept in a directory: what was acknowledged is there when it is opened again.

use std::path::PathBuf;
use std::sync::Arc;

use albireo::{Config, Database, SqlState};
use albireo_env::{Env, MemoryDisk};

/// A disk in memory and a directory on it.
struct Place {
    disk: MemoryDisk,
}

impl Place {
    fn new() -> Self {
        Self { disk: MemoryDisk::default() }
    }

    fn env(&self) -> Env {
        Env { disk: Arc::new(self.disk.clone()), ..Env::real() }
    }

    fn try_open(&self, partitions: u16) -> Result<Database, albireo::SqlError> {
        let config = Config { partitions, log_segment_bytes: 256 << 10, ..Config::default() };
        Database::open_in("/data", config, self.env())
    }

    fn open(&self, partitions: u16) -> Database {
        self.try_open(partitions).unwrap()
    }
}

fn rows(db: &Database, query: &str) -> Vec<String> {
    let rows = db.query(query, &[]).unwrap().rows();
    rows.iter().map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|")).collect()
}

const TABLES: &str = "CREATE SCHEMA s; CREATE TABLE gone (a INTEGER);
    CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT, cents NUMERIC(12,2) NOT NULL DEFAULT 1.5,
        CHECK (cents >= 0)) PARTITION BY HASH (id);
    CREATE TABLE s.note (t TEXT, n DOUBLE PRECISION); DROP TABLE gone;
    CREATE TABLE rate (currency CHAR(3) UNIQUE, rate NUMERIC(30,10));
    CREATE INDEX by_owner ON account (owner)";

#[test]
fn everything_is_there_again() {
    for partitions in [1, 3] {
        let place = Place::new();
        let db = place.open(partitions);
        db.execute(TABLES).unwrap();
        db.execute(
            "CREATE FUNCTION pay(p_id integer, p_cents numeric) RETURNS numeric LANGUAGE plpgsql AS $$
             DECLARE v numeric;
             BEGIN UPDATE account SET cents = cents + p_cents WHERE id = p_id RETURNING cents INTO v;
             INSERT INTO s.note VALUES ('paid', p_id); RETURN v; END $$",
        )
        .unwrap();
        db.execute("INSERT INTO account SELECT 0, 'nobody', 0").unwrap();
        db.execute("INSERT INTO account VALUES (1, 'Ada', 5), (2, NULL, 7.25), (3, 'Kurt', 0), (4, 'x', 1)")
            .unwrap();
        db.execute("INSERT INTO rate VALUES ('EUR', 1.0000000001), (NULL, 2), (NULL, 2)").unwrap();
        db.execute("SELECT pay(2, 0.75); SELECT pay(3, 10)").unwrap();
        assert!(db.execute("SELECT pay(3, -100)").is_err());
        db.execute("UPDATE account SET id = id + 10 WHERE id > 2; DELETE FROM account WHERE id = 1").unwrap();
        db.execute("DELETE FROM rate WHERE currency IS NULL; INSERT INTO rate VALUES (NULL, 3)").unwrap();
        db.execute("CREATE TABLE late (a INTEGER); TRUNCATE s.note; INSERT INTO s.note VALUES ('new', 1)")
            .unwrap();
        db.execute("DROP INDEX by_owner; CREATE UNIQUE INDEX other ON account (id, owner)").unwrap();
        let queries = [
            "SELECT * FROM account ORDER BY id",
            "SELECT * FROM s.note ORDER BY 1, 2",
            "SELECT * FROM rate ORDER BY 1, 2",
            "SELECT * FROM late",
        ];
        let before: Vec<Vec<String>> = queries.iter().map(|query| rows(&db, query)).collect();
        assert_eq!(before[0].len(), 4);
        let catalog = format!("{:?}", db.catalog().tables().collect::<Vec<_>>());
        drop(db);
        for _ in 0..3 {
            let db = place.open(partitions);
            assert!(db.recovery().records > 10);
            let after: Vec<Vec<String>> = queries.iter().map(|query| rows(&db, query)).collect();
            assert_eq!(after, before);
            assert_eq!(format!("{:?}", db.catalog().tables().collect::<Vec<_>>()), catalog);
            assert!(db.execute("SELECT pay(13, -100)").is_err(), "the check is there");
        }
        // It goes on from there.
        let db = place.open(partitions);
        db.execute("SELECT pay(13, 1); DROP FUNCTION pay; INSERT INTO late VALUES (1)").unwrap();
        drop(db);
        let db = place.open(partitions);
        assert_eq!(rows(&db, "SELECT cents FROM account WHERE id = 13"), ["11.00"]);
        assert_eq!(rows(&db, "SELECT * FROM late"), ["1"]);
        assert_eq!(db.execute("SELECT pay(13, 1)").unwrap_err().state(), SqlState::UNDEFINED_FUNCTION);
    }
}

#[test]
fn directory_is_open_once_and_with_its_number_of_partitions() {
    let place = Place::new();
    let db = place.open(2);
    let error = place.try_open(2).err().unwrap();
    assert_eq!(error.state(), SqlState::OBJECT_IN_USE);
    db.execute("CREATE TABLE t (a INTEGER)").unwrap();
    drop(db);
    let error = place.try_open(3).err().unwrap();
    assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE);
    assert_eq!(error.hint(), Some("Open it with 2 partitions."));
    assert_eq!(rows(&place.open(2), "SELECT * FROM t").len(), 0);
}

#[test]
fn copy_and_large_transactions_come_back() {
    let place = Place::new();
    let db = place.open(1);
    db.execute("CREATE TABLE t (a INTEGER, b TEXT)").unwrap();
    db.execute("INSERT INTO t SELECT a, 'text number ' || a FROM generate_series(1, 50000) AS g(a)").unwrap();
    db.execute("UPDATE t SET b = b || '!' WHERE a % 100 = 0 AND a < 3000; DELETE FROM t WHERE a > 49990")
        .unwrap();
    let query = "SELECT count(*), sum(a), sum(length(b)) FROM t";
    let before = rows(&db, query);
    drop(db);
    let db = place.open(1);
    assert_eq!(rows(&db, query), before);
}

#[test]
fn damage_before_the_end_is_refused_with_its_place() {
    let place = Place::new();
    let db = place.open(1);
    db.execute("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)").unwrap();
    drop(db);
    let path = PathBuf::from("/data/log/00000000000000000001.log");
    let mut bytes = place.disk.get(&path).unwrap();
    bytes[4096 + 70] ^= 1;
    place.disk.put(&path, &bytes);
    let error = place.try_open(1).err().unwrap();
    assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
    assert!(error.message().contains("at byte 4160, frame 1, record 1"), "{error}");
}

#[test]
fn archive_and_the_log_behind_it_come_back() {
    for partitions in [1, 2] {
        let place = Place::new();
        let db = place.open(partitions);
        db.execute(TABLES).unwrap();
        db.execute(
            "CREATE FUNCTION twice(n integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 2 * n; END $$;
             CREATE OR REPLACE FUNCTION twice(n integer) RETURNS integer LANGUAGE plpgsql AS
             $$ BEGIN RETURN n + n; END $$; CREATE PROCEDURE put(a integer) LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO s.note VALUES ('put', a); END $$",
        )
        .unwrap();
        db.execute("INSERT INTO account SELECT a, 'owner ' || a, a FROM generate_series(1, 40000) AS g(a)")
            .unwrap();
        db.execute("DELETE FROM account WHERE id % 3 = 0; INSERT INTO rate VALUES ('EUR', 1), (NULL, 2)")
            .unwrap();
        assert!(db.execute("CHECKPOINT now").is_err());
        db.execute("CHECKPOINT").unwrap();
        db.execute("UPDATE account SET owner = NULL WHERE id = 7; CALL put(5); DELETE FROM rate").unwrap();
        db.execute("CREATE TABLE after_it (a INTEGER PRIMARY KEY); INSERT INTO after_it VALUES (1)").unwrap();
        let queries = [
            "SELECT count(*), sum(id), sum(cents), count(owner), sum(length(owner)) FROM account",
            "SELECT * FROM s.note",
            "SELECT * FROM rate",
            "SELECT * FROM after_it",
            "SELECT twice(4)",
            "SELECT owner FROM account WHERE id = 39998",
        ];
        let before: Vec<Vec<String>> = queries.iter().map(|query| rows(&db, query)).collect();
        drop(db);
        let db = place.open(partitions);
        assert_eq!(db.recovery().archive, Some(1));
        assert!(db.recovery().records < 10, "the archive has the rest: {:?}", db.recovery());
        let after: Vec<Vec<String>> = queries.iter().map(|query| rows(&db, query)).collect();
        assert_eq!(after, before);
        // A second and a third: the first goes, and with it the log that only it needed.
        db.execute(
            "CHECKPOINT; INSERT INTO after_it VALUES (2); CHECKPOINT; INSERT INTO after_it VALUES (3)",
        )
        .unwrap();
        assert!(db.execute("INSERT INTO after_it VALUES (3)").is_err(), "the index is there");
        drop(db);
        assert!(place.disk.get("/data/archive/0000000001/manifest.json").is_none());
        let db = place.open(partitions);
        assert_eq!(db.recovery().archive, Some(3));
        assert_eq!(rows(&db, "SELECT count(*) FROM after_it"), ["3"]);
        assert_eq!(rows(&db, queries[0]), before[0]);
        drop(db);
        // The newest is damaged: the one before and more of the log do as well.
        let path = "/data/archive/0000000003/manifest.json";
        let mut bytes = place.disk.get(path).unwrap();
        bytes[40] ^= 1;
        place.disk.put(path, &bytes);
        let db = place.open(partitions);
        assert_eq!(db.recovery().archive, Some(2));
        assert_eq!(db.recovery().left_out.len(), 1);
        assert_eq!(rows(&db, "SELECT count(*) FROM after_it"), ["3"]);
        assert_eq!(rows(&db, queries[0]), before[0]);
    }
}

#[test]
fn checkpoint_of_a_database_in_memory_is_refused() {
    let db = Database::in_memory(Config::default()).unwrap();
    assert_eq!(db.execute("CHECKPOINT").unwrap_err().state(), SqlState::FEATURE_NOT_SUPPORTED);
}

#[test]
fn log_that_ends_before_what_the_archive_has_is_refused() {
    // Taken for the rest of an unfinished write, the last frame would be cut off, and the next one with its number
    // would be one that the archive has: the recovery after that would leave it out, whoever was told of it.
    let place = Place::new();
    let db = place.open(1);
    db.execute("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1); CHECKPOINT").unwrap();
    drop(db);
    let path = "/data/log/00000000000000000001.log";
    let whole = place.disk.get(path).unwrap();
    let mut bytes = whole.clone();
    let last = bytes.len() - 512;
    bytes[last + 20] ^= 1;
    place.disk.put(path, &bytes);
    let error = place.try_open(1).err().unwrap();
    assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
    assert!(error.message().contains("the end of the redo log"), "{error}");
    assert_eq!(place.disk.get(path), Some(bytes), "nothing is cut off");
    place.disk.put(path, &whole);
    let db = place.open(1);
    db.execute("INSERT INTO t VALUES (2)").unwrap();
    drop(db);
    assert_eq!(rows(&place.open(1), "SELECT a FROM t ORDER BY a"), ["1", "2"]);
}
