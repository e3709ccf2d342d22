//! COPY of large files: laid down beside their table, appended whole or not at all.

use std::io::{self, Read};

use albireo::{Config, Database, SqlError};
use albireo_env::MemoryDisk;

use crate::support::{ask, database_on, fails, is_well, run, small, state};

/// A line for each number; `replaced` are other lines in their place.
fn lines(rows: std::ops::Range<u32>, replaced: &[(u32, &str)]) -> String {
    let line = |a: u32| match replaced.iter().find(|(at, _)| *at == a) {
        Some((_, line)) => format!("{line}\n"),
        None => format!("{a},{a:0>40},{}.25\n", a % 100),
    };
    rows.map(line).collect()
}

fn table(db: &Database, partitions: u16) {
    let by = if partitions > 1 { " PARTITION BY HASH (a)" } else { "" };
    run(
        db,
        &format!(
            "CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR(50), c NUMERIC(6,2) CHECK (c < 500),
             d TEXT DEFAULT 'none'){by}; CREATE INDEX ON t (b)"
        ),
    );
}

#[test]
fn first_line_at_fault_in_a_large_file_is_named_and_nothing_is_loaded() {
    // Lines are numbers from 1, as rows are; each fault stands before others of later chunks.
    let unreadable = (90_000, "x,y,z");
    let cases = [
        (vec![(70_000, "70000,b,600"), unreadable], "23514", "line 70000"),
        (vec![(80_000, ",b,1"), (85_000, "85000,b,600"), unreadable], "23502", "line 80000"),
        (vec![(60_000, "60000,b,70000"), (61_000, "61000,b,600")], "22003", "line 60000"),
        (vec![(99_999, "5,b,1")], "23505", "line 99999"),
        (vec![(50_000, "7,b,1"), (50_001, "8,b,1")], "23505", "line 50000"),
    ];
    for partitions in [1, 3] {
        for (replaced, code, place) in &cases {
            let disk = MemoryDisk::default();
            disk.put("/t.csv", lines(1..100_000, replaced).as_bytes());
            let db = database_on(disk, Config { partitions, ..small() });
            table(&db, partitions);
            run(&db, "INSERT INTO t VALUES (200000, 'old', 1)");
            for _ in 0..2 {
                let error = fails(&db, "COPY t (a, b, c) FROM '/t.csv'");
                let detail = error.detail().unwrap_or_default();
                assert_eq!(state(&error), *code, "{error}");
                assert!(detail.contains(&format!("file \"/t.csv\", {place}")), "{error}");
                assert_eq!(ask(&db, "SELECT a, b, d FROM t"), "200000,old,none");
            }
            is_well(&db);
        }
    }
}

#[test]
fn rows_of_a_large_file_are_found_by_every_index_and_not_by_older_sessions() {
    for partitions in [1, 3] {
        let disk = MemoryDisk::default();
        disk.put("/t.csv", lines(0..100_000, &[]).as_bytes());
        let db = database_on(disk, Config { partitions, ..small() });
        table(&db, partitions);
        let old = db.begin_read_only().unwrap();
        run(&db, "INSERT INTO t SELECT a, 'old', 1 FROM generate_series(200000, 200099) AS g(a)");
        run(&db, "COPY t (a, b, c) FROM '/t.csv'");
        let sums = "SELECT count(*), sum(a), sum(c), min(b), max(b), min(d) FROM t WHERE a < 200000";
        let sum_of_c = 100_000_u64 / 100 * (99 * 50) + 25_000;
        assert_eq!(
            ask(&db, sums),
            format!("100000,4999950000,{sum_of_c}.00,{:0>40},{:0>40},none", 0, 99_999)
        );
        for a in [0, 1, 16_383, 16_384, 50_000, 99_999] {
            assert_eq!(ask(&db, &format!("SELECT b FROM t WHERE a = {a}")), format!("{a:0>40}"));
            assert_eq!(ask(&db, &format!("SELECT a FROM t WHERE b = '{a:0>40}'")), a.to_string());
        }
        assert_eq!(crate::support::show(&old.query("SELECT count(*) FROM t", &[]).unwrap()), "0");
        drop(old);
        // A key of the file, and one of another file before it.
        assert_eq!(state(&fails(&db, "INSERT INTO t (a) VALUES (77777)")), "23505");
        let error = fails(&db, "COPY t (a, b, c) FROM '/t.csv'");
        assert!(error.detail().unwrap().contains("Key (a)=(0) already exists."), "{error}");
        is_well(&db);
    }
}

#[test]
fn table_is_filled_again_from_a_file_though_its_rows_have_no_room_beside_it() {
    let disk = MemoryDisk::default();
    disk.put("/t.csv", lines(0..100_000, &[]).as_bytes());
    disk.put("/bad.csv", lines(0..100_000, &[(99_999, "3,b,1")]).as_bytes());
    disk.put("/more.csv", lines(100_000..400_000, &[]).as_bytes());
    let db = database_on(disk, Config { data_limit_bytes: 24 << 20, ..small() });
    table(&db, 1);
    run(&db, "COPY t (a, b, c) FROM '/t.csv'");
    let used = db.memory().in_use_bytes;
    assert!(used > 12 << 20, "two of it do not fit: {used}");
    let sums = "SELECT count(*), sum(a), sum(c), min(b), max(b), min(d) FROM t";
    let before = ask(&db, sums);
    for _ in 0..2 {
        run(&db, "DELETE FROM t");
        let error = fails(&db, "COPY t (a, b, c) FROM '/bad.csv'");
        assert_eq!(state(&error), "23505", "{error}");
        assert!(error.detail().unwrap().contains("line 100000"), "{error}");
        assert_eq!(ask(&db, "SELECT count(*) FROM t"), "0");
        run(&db, "COPY t (a, b, c) FROM '/t.csv'");
        assert_eq!(ask(&db, sums), before);
    }
    let error = fails(&db, "COPY t (a, b, c) FROM '/more.csv'");
    assert_eq!(state(&error), "53200", "{error}");
    assert_eq!(ask(&db, sums), before);
    is_well(&db);
}

/// Rows between which something is done, which is told how many are left.
struct Slow<F> {
    between: F,
    rest: u32,
    unread: Vec<u8>,
}

impl<F: FnMut(u32)> Read for Slow<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.unread.is_empty() && self.rest > 0 {
            (self.between)(self.rest);
            self.rest -= 1;
            self.unread = lines(self.rest..self.rest + 1, &[]).into_bytes();
        }
        let count = buffer.len().min(self.unread.len());
        buffer[..count].copy_from_slice(&self.unread[..count]);
        self.unread.drain(..count);
        Ok(count)
    }
}

#[test]
fn transactions_change_the_table_while_a_client_sends_rows() {
    for partitions in [1, 3] {
        let db = database_on(MemoryDisk::default(), Config { partitions, ..small() });
        table(&db, partitions);
        run(&db, "CREATE TABLE s (n INTEGER); INSERT INTO s VALUES (0)");
        let between = |rest| run(&db, &format!("UPDATE s SET n = n + 1; INSERT INTO t (a) VALUES (-{rest})"));
        assert_eq!(send(&db, 3000, between), Ok(3000));
        assert_eq!(ask(&db, "SELECT count(*), min(a), max(a), count(b) FROM t"), "6000,-3000,2999,3000");
        assert_eq!(ask(&db, "SELECT n FROM s"), "3000");
        is_well(&db);
    }
}

fn send(db: &Database, rows: u32, between: impl FnMut(u32) + Send) -> Result<u64, SqlError> {
    let slow = Slow { between, rest: rows, unread: Vec::new() };
    db.connect().copy_from("COPY t (a, b, c) FROM STDIN (FORMAT csv)", slow)
}

#[test]
fn table_may_get_and_lose_indexes_be_emptied_and_be_dropped_while_a_client_sends_rows() {
    for partitions in [1, 3] {
        let db = database_on(MemoryDisk::default(), Config { partitions, ..small() });
        let during = |sql: &'static str| {
            run(&db, "DROP TABLE IF EXISTS t");
            table(&db, partitions);
            send(&db, 2000, |rest| {
                if rest == 1000 {
                    run(&db, sql)
                }
            })
        };
        assert_eq!(during("CREATE INDEX late ON t (c, a)"), Ok(2000));
        assert_eq!(ask(&db, "SELECT a FROM t WHERE c = 7.25 AND a = 1907"), "1907");
        assert_eq!(during("DROP INDEX t_b_idx; CREATE INDEX other ON t (b, c)"), Ok(2000));
        assert_eq!(ask(&db, &format!("SELECT a FROM t WHERE b = '{:0>40}' AND c = 8.25", 1908)), "1908");
        assert_eq!(during("INSERT INTO t (a) VALUES (5000); TRUNCATE t"), Ok(2000));
        assert_eq!(ask(&db, "SELECT count(*), max(a) FROM t"), "2000,1999");
        assert_eq!(during("INSERT INTO t (a) VALUES (5000); DELETE FROM t"), Ok(2000));
        assert_eq!(ask(&db, "SELECT count(*), max(a) FROM t"), "2000,1999");
        let error = during("INSERT INTO t (a) VALUES (1200)").unwrap_err();
        assert_eq!(state(&error), "23505");
        assert!(
            error.detail().unwrap().contains("Key (a)=(1200) already exists. COPY t, line 800."),
            "{error}"
        );
        assert_eq!(ask(&db, "SELECT count(*) FROM t"), "1");
        assert_eq!(state(&during("DROP TABLE t").unwrap_err()), "42P01");
        let error =
            during("CREATE UNIQUE INDEX ON t (a, c); DROP TABLE t; CREATE TABLE t (a INTEGER)").unwrap_err();
        assert_eq!(state(&error), "42P01", "it is another table");
        is_well(&db);
    }
}
