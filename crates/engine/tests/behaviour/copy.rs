use std::sync::Arc;

use albireo::{Config, Database};
use albireo_env::{Disk, FaultyDisk, MemoryDisk, scope, spawn_scoped};

use crate::support::{ask, database_on, fails, is_well, rows_stay, run, small, state};

const ALL_TYPES: &str = "CREATE TABLE all_types (
    a BOOLEAN, b SMALLINT, c INTEGER, d BIGINT, e REAL, f DOUBLE PRECISION, g NUMERIC(9,2), h NUMERIC(38,4),
    i CHAR(5), j VARCHAR(9), k TEXT, l BYTEA, m DATE, n TIME, o TIMESTAMP, p TIMESTAMPTZ, q UUID);
    INSERT INTO all_types VALUES (true, -1, 2, 3000000000, 0.5, 1e300, 1.25, 9999999999999999999999.0001, 'ab',
    'ä,\"', '', '\\x00ff', '2024-02-29', '23:59:59.25', '1969-12-31 23:59:59', '2024-01-01 00:00:00+00',
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
    INSERT INTO all_types (k) VALUES (NULL), ('two\nlines'), ('NULL')";

fn with_file(name: &str, contents: &str) -> Database {
    let disk = MemoryDisk::default();
    disk.put(name, contents.as_bytes());
    database_on(disk, small())
}

#[test]
fn rows_of_all_types_survive_a_way_through_each_format() {
    let formats = [
        "'/x.csv'",
        "'/x.csv' WITH (HEADER, DELIMITER '|', NULL 'NULL', QUOTE '''')",
        "'/x.parquet'",
        "'/x' (FORMAT text)",
        "'/x' (FORMAT text, DELIMITER '|', NULL 'nil', HEADER)",
        "'/x.jsonl'",
        "'/x.csv.gz'",
        "'/x.tsv.zst'",
        "'/x.json.zst'",
    ];
    for format in formats {
        let db = database_on(MemoryDisk::default(), small());
        run(&db, ALL_TYPES);
        let before = ask(&db, "SELECT * FROM all_types");
        let outcomes = db.execute(&format!("COPY all_types TO {format}")).unwrap();
        assert!(format!("{outcomes:?}").contains("COPY 4"), "{outcomes:?}");
        run(&db, &format!("TRUNCATE all_types; COPY all_types FROM {format}"));
        assert_eq!(ask(&db, "SELECT * FROM all_types"), before, "{format}");
        assert_eq!(ask(&db, "SELECT count(*) FROM all_types WHERE k = ''"), "1", "{format}");
    }
}

#[test]
fn malformed_line_is_named_with_its_column_and_nothing_is_loaded() {
    let cases = [
        ("1,a\nx,b\n", "22P02", "line 2, column \"a\""),
        ("1,a\n2\n", "22P04", "line 2: \"2\""),
        ("1,a\n2,b,c\n", "22P04", "line 2"),
        ("1,a\n99999999999,b\n", "22003", "line 2, column \"a\""),
        ("1,a\n2,\"b\n", "22P04", "line 2"),
        ("1,a\n2,abcdef\n", "22001", "line 2, column \"b\""),
        ("1,a\n,b\n", "23502", "line 2, column \"a\""),
        ("1,\"a\n\"\n1,b\n", "23505", "line 3"),
        ("1,a\r2,b\n", "22P04", "line 1"),
        ("1,a\n-5,b\n", "23514", "line 2"),
    ];
    for (contents, expected, place) in cases {
        let db = with_file("/t.csv", contents);
        run(&db, "CREATE TABLE t (a INTEGER PRIMARY KEY CHECK (a > 0), b VARCHAR(3))");
        let error = fails(&db, "COPY t FROM '/t.csv'");
        assert_eq!(state(&error), expected, "{contents:?}: {error}");
        let detail = error.detail().unwrap_or_default();
        assert!(detail.contains("file \"/t.csv\"") && detail.contains(place), "{contents:?}: {error}");
        assert_eq!(ask(&db, "SELECT count(*) FROM t"), "0");
        is_well(&db);
    }
}

#[test]
fn load_that_fails_at_its_end_leaves_rows_keys_and_memory_as_they_were() {
    let lines: String = (10..50_000).map(|i| format!("{i},{:060}\n", i)).collect();
    let db = with_file("/t.csv", &format!("{lines}1,x\n"));
    run(&db, "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT); INSERT INTO t VALUES (1, 'one')");
    let error = fails(&db, "COPY t FROM '/t.csv'");
    assert_eq!(state(&error), "23505");
    assert!(error.detail().unwrap().contains("line 49991"), "{error}");
    let once = db.memory().in_use_bytes;
    fails(&db, "COPY t FROM '/t.csv'");
    assert!(db.memory().in_use_bytes <= once, "a second failure needs no more");
    assert_eq!(ask(&db, "SELECT * FROM t"), "1,one");
    run(&db, "INSERT INTO t VALUES (10, 'ten')");
    is_well(&db);
}

#[test]
fn columns_not_named_get_their_defaults() {
    let db = with_file("/t.tsv", "x\ty\n7\t\\N\n8\t\"\"\n");
    run(&db, "CREATE TABLE t (a INTEGER DEFAULT 42, b TEXT, c SMALLINT NOT NULL)");
    run(&db, "COPY t (c, b) FROM '/t.tsv' WITH (HEADER true, NULL '\\N')");
    assert_eq!(ask(&db, "SELECT a, b, c FROM t"), "42,NULL,7 42,,8");
}

#[test]
fn file_that_is_missing_or_no_table_of_rows_is_named() {
    let db = with_file("/not.parquet", "these are not the bytes you are looking for");
    run(&db, "CREATE TABLE t (a INTEGER)");
    let cases = [
        ("COPY t FROM '/missing.csv'", "58P01", "/missing.csv"),
        ("COPY t FROM '/missing.parquet'", "58P01", "/missing.parquet"),
        ("COPY t FROM '/not.parquet'", "22P04", "/not.parquet"),
        ("COPY t TO '/no/such/directory.csv'", "58P01", "/no/such/directory.csv"),
        ("COPY nowhere FROM '/not.parquet'", "42P01", "nowhere"),
        ("COPY t FROM '/file'", "22023", "/file"),
    ];
    for (sql, expected, names) in cases {
        let error = fails(&db, sql);
        assert_eq!(state(&error), expected, "{sql}: {error}");
        assert!(error.message().contains(names), "{sql}: {error}");
    }
    is_well(&db);
}

#[test]
fn parquet_columns_are_found_by_name_or_else_by_position() {
    let db = database_on(MemoryDisk::default(), small());
    run(&db, "CREATE TABLE s (b TEXT, a INTEGER); INSERT INTO s VALUES ('x', 1), (NULL, 2)");
    run(&db, "COPY s TO '/s.parquet'");
    run(&db, "CREATE TABLE t (a BIGINT, b VARCHAR(5)); COPY t FROM '/s.parquet'");
    assert_eq!(ask(&db, "SELECT a, b FROM t ORDER BY a"), "1,x 2,NULL");
    run(&db, "CREATE TABLE u (x TEXT, y NUMERIC(5,1)); COPY u FROM '/s.parquet'");
    assert_eq!(ask(&db, "SELECT x, y FROM u ORDER BY y"), "x,1.0 NULL,2.0");
    run(&db, "CREATE TABLE v (a INTEGER, c INTEGER, d INTEGER)");
    let error = fails(&db, "COPY v FROM '/s.parquet'");
    assert_eq!((state(&error).as_str(), error.message().contains("\"c\"")), ("42703", true), "{error}");
    run(&db, "CREATE TABLE w (a DATE, b TEXT)");
    let error = fails(&db, "COPY w FROM '/s.parquet'");
    assert!(error.detail().unwrap().contains("row 1, column \"a\""), "{error}");
    let error = fails(&db, "COPY (SELECT a, a FROM s) TO '/twice.parquet'");
    assert_eq!(state(&error), "42701", "{error}");
    is_well(&db);
}

#[test]
fn full_disk_leaves_no_file_and_keeps_the_former_one() {
    if !rows_stay() {
        return;
    }
    for format in ["csv", "parquet"] {
        for writes in 0..3 {
            let memory = MemoryDisk::default();
            let path = format!("/t.{format}");
            memory.put(&path, b"former");
            let disk = FaultyDisk::failing_after(Arc::new(memory.clone()), writes);
            let db = database_on(disk, small());
            run(&db, "CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x')");
            let error = fails(&db, &format!("COPY t TO '{path}'"));
            assert_eq!(state(&error), "53100", "{format}, {writes} writes: {error}");
            assert_eq!(memory.get(&path).as_deref(), Some(b"former".as_slice()));
            assert_eq!(memory.read_dir("/".as_ref()).unwrap().len(), 1, "{format}, {writes} writes");
            is_well(&db);
        }
    }
}

#[test]
fn statements_after_a_copy_of_the_same_text_run() {
    let memory = MemoryDisk::default();
    let db = database_on(memory.clone(), small());
    run(&db, "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (3), (1), (2)");
    run(
        &db,
        "COPY (SELECT a AS \"A, b\" FROM t ORDER BY a) TO '/t.csv' WITH (HEADER); INSERT INTO t VALUES (4)",
    );
    assert_eq!(memory.get("/t.csv").unwrap(), b"\"A, b\"\n1\n2\n3\n");
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "4");
}

#[test]
fn copy_in_a_read_only_transaction_writes_its_snapshot_and_loads_nothing() {
    let memory = MemoryDisk::default();
    let db = database_on(memory.clone(), small());
    run(&db, "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)");
    let reader = db.connect();
    reader.execute("BEGIN READ ONLY").unwrap();
    run(&db, "INSERT INTO t VALUES (2)");
    reader.execute("COPY t TO '/t.csv'").unwrap();
    assert_eq!(memory.get("/t.csv").unwrap(), b"1\n");
    assert_eq!(state(&reader.execute("COPY t FROM '/t.csv'").unwrap_err()), "25006");
    reader.execute("ROLLBACK; COPY t FROM '/t.csv'").unwrap();
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "3");
}

#[test]
fn load_finds_each_rows_partition() {
    let disk = MemoryDisk::default();
    let lines: String = (0..1000).map(|i| format!("{i},{}\n", i % 7)).collect();
    disk.put("/t.csv", lines.as_bytes());
    let db = database_on(disk, Config { partitions: 4, ..small() });
    run(&db, "CREATE TABLE t (a INTEGER, b INTEGER, PRIMARY KEY (b, a)) PARTITION BY HASH (b)");
    run(&db, "COPY t FROM '/t.csv'");
    assert_eq!(ask(&db, "SELECT count(*), sum(a) FROM t WHERE b = 3"), "143,71500");
    assert_eq!(state(&fails(&db, "COPY t FROM '/t.csv'")), "23505");
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "1000");
}

/// Both wrote to one `.partial` file once, and what got the name was a mixture.
#[test]
fn two_writers_to_one_path_leave_one_whole_file() {
    if !rows_stay() {
        return;
    }
    let memory = MemoryDisk::default();
    memory.put("/t.csv", b"former");
    let db = database_on(memory.clone(), small());
    run(&db, "CREATE TABLE t (a INTEGER); INSERT INTO t SELECT * FROM generate_series(1, 2000)");
    let queries = ["SELECT a FROM t", "SELECT a + 100000 FROM t ORDER BY a DESC"];
    let write = |query: &&str| {
        run(&db, &format!("COPY ({query}) TO '/t.csv'"));
        memory.get("/t.csv").unwrap()
    };
    let whole: Vec<Vec<u8>> = queries.iter().map(write).collect();
    scope(|threads| {
        for query in queries {
            let db = &db;
            let write = move || (0..20).for_each(|_| run(db, &format!("COPY ({query}) TO '/t.csv'")));
            spawn_scoped(threads, "writer", write).unwrap();
        }
    });
    assert!(whole.contains(&memory.get("/t.csv").unwrap()));
    assert_eq!(memory.read_dir("/".as_ref()).unwrap().len(), 1, "nothing but the file");
}
