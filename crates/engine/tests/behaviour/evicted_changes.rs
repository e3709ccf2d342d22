//! Changes whose rows have left memory, while others use the database: nobody waits for the disk but who needs what lies there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use albireo::{Config, Connection, Database, Eviction, Outcome, SqlError};
use albireo_env::{MemoryDisk, spawn};
use albireo_testing::wait_until;

use crate::evicted::evict;
use crate::support::{ask, database, database_on, rows_of, run, small};
use crate::watched::WatchedDisk;

const FILLED: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER, n BIGINT, s TEXT NOT NULL);
    CREATE INDEX t_g ON t (g);
    INSERT INTO t SELECT i, i % 1000, i * 7919 % 40009, md5(i::text) FROM generate_series(1, 40000) AS x (i);
    CREATE TABLE u (id INTEGER PRIMARY KEY, x BIGINT);
    INSERT INTO u SELECT i * 4000, i FROM generate_series(0, 10) AS x (i);
    CREATE TABLE other (id INTEGER PRIMARY KEY);
    CREATE FUNCTION more(a BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS 'BEGIN RETURN a * 3; END'";

/// Statements that find rows of `t` by reading columns that are away.
const FOUND: [&str; 10] = [
    "UPDATE t SET n = n + 1 WHERE n % 10000 = 1 RETURNING id, n, s",
    "DELETE FROM t WHERE n % 5000 = 7 RETURNING id",
    "UPDATE t SET n = more(n) WHERE n % 9999 = 5",
    "UPDATE t SET g = g + 1 WHERE more(n) % 25000 = 12 AND length(s) > 3",
    "DELETE FROM t USING u WHERE u.id = t.id AND more(t.n + u.x) % 2 = 0 RETURNING t.id, more(u.x)",
    "INSERT INTO u SELECT id, n FROM t WHERE n % 5000 = 3 ON CONFLICT (id) DO UPDATE SET x = u.x + 1",
    "INSERT INTO u SELECT -id, n FROM t WHERE n % 5000 = 4 RETURNING id",
    "INSERT INTO u VALUES (-100000, (SELECT max(n % 777) FROM t WHERE s LIKE '%c')) RETURNING x",
    "UPDATE t SET g = u.x FROM u WHERE u.id = t.id AND t.n % 2 = 0",
    "MERGE INTO t USING u ON u.id = t.id WHEN MATCHED AND t.n % 3 = 0 THEN DELETE
         WHEN MATCHED THEN UPDATE SET g = g + 1",
];

/// All rows.
const ROWS: [&str; 3] = [
    "SELECT count(*), sum(id), sum(g), sum(n), sum(length(s)) FROM t",
    "SELECT count(*), sum(id), sum(x) FROM u",
    "SELECT count(*), sum(n) FROM t WHERE g BETWEEN 3 AND 17",
];

/// Inserts a row while the disk is read, by somebody else for whom whoever reads waits.
#[derive(Default)]
struct Others {
    connection: OnceLock<Connection>,
    reads: AtomicUsize,
}

impl Others {
    fn act(self: &Arc<Self>) {
        if self.connection.get().is_none() {
            return;
        }
        let id = self.reads.fetch_add(1, Ordering::Relaxed);
        let others = Arc::clone(self);
        let insert = spawn("others", move || {
            let connection = others.connection.get().expect("it was there");
            connection.execute(&format!("INSERT INTO other VALUES ({id})")).unwrap();
        });
        let insert = insert.expect("there is a thread");
        wait_until("somebody else has inserted a row while the disk is read", || insert.is_finished());
        insert.join().unwrap();
    }
}

/// A database whose rows are away, one in which they are in memory, and those who act while the first is read.
fn both() -> (Database, Database, Arc<Others>) {
    let others = Arc::new(Others::default());
    let disk = WatchedDisk::new(MemoryDisk::default(), {
        let others = Arc::clone(&others);
        move || others.act()
    });
    let db = database_on(disk, Config { eviction: Eviction::To("/cold".into()), ..small() });
    let twin = database();
    [&db, &twin].into_iter().for_each(|db| run(db, FILLED));
    assert!(others.connection.set(db.connect()).is_ok());
    (db, twin, others)
}

fn told(done: Result<Vec<Outcome>, SqlError>) -> String {
    match done.unwrap().remove(0) {
        Outcome::Done { rows, .. } => format!("{rows} rows"),
        rows => {
            let rows = rows_of(rows);
            let mut rows: Vec<&str> = rows.split(' ').collect();
            rows.sort_unstable();
            rows.join(" ")
        }
    }
}

/// Runs [`FOUND`], each of which meets what is away, and sees that nobody is held off meanwhile.
fn nobody_is_held_off(on: impl Fn(&Connection, &str) -> String) {
    let (db, twin, others) = both();
    let connections = [db.connect(), twin.connect()];
    for (number, statement) in (1..).zip(FOUND) {
        evict(&db);
        // Some rows are in memory: they are changed, and that is taken back, before it is known that others are away.
        let hot = format!(
            "INSERT INTO t SELECT {number} * 100000 + i, i % 1000, i * 7919 % 40009, md5(i::text)
             FROM generate_series(1, 3000) AS x (i)"
        );
        [&db, &twin].into_iter().for_each(|db| run(db, &hot));
        let before = others.reads.load(Ordering::Relaxed);
        let [here, there] = connections.each_ref().map(|connection| on(connection, statement));
        assert_eq!(here, there, "{statement}");
        assert!(others.reads.load(Ordering::Relaxed) > before, "{statement} reads what is away");
        for rows in ROWS {
            assert_eq!(ask(&db, rows), ask(&twin, rows), "{statement}");
        }
    }
}

#[test]
fn nobody_is_held_off_while_a_change_reads_what_is_away() {
    nobody_is_held_off(|connection, statement| told(connection.execute(statement)));
}

#[test]
fn nobody_is_held_off_while_a_change_of_an_open_transaction_reads_what_is_away() {
    for level in ["SERIALIZABLE", "READ COMMITTED"] {
        nobody_is_held_off(|connection, statement| {
            connection.execute(&format!("BEGIN ISOLATION LEVEL {level}")).unwrap();
            let done = told(connection.execute(statement));
            connection.execute("COMMIT").unwrap();
            done
        });
    }
}
