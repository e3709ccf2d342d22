//! Formats, encodings and compressions of files, the client's end of COPY, and files as tables.

use std::io::{self, Read, Write};

use albireo::Database;
use albireo_env::{MemoryDisk, RealDisk};
use albireo_testing::{damage, test};

use crate::support::{ask, database_on, fails, is_well, run, small, state};

fn with_files(files: &[(&str, &[u8])]) -> Database {
    let disk = MemoryDisk::default();
    files.iter().for_each(|(name, contents)| disk.put(name, contents));
    database_on(disk, small())
}

#[test]
fn rows_from_and_for_the_client_go_through_the_connection() {
    let db = with_files(&[]);
    run(&db, "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)");
    let connection = db.connect();
    assert_eq!(connection.copy_from("COPY t FROM STDIN", &b"1\tone\n2\t\\N\n\\.\nnever"[..]).unwrap(), 2);
    assert_eq!(connection.copy_from("COPY t (b, a) FROM STDIN CSV;", &b"three,3"[..]).unwrap(), 1);
    let mut bytes = Vec::new();
    assert_eq!(connection.copy_to("COPY (SELECT * FROM t ORDER BY a) TO STDOUT", &mut bytes).unwrap(), 3);
    assert_eq!(String::from_utf8(bytes).unwrap(), "1\tone\n2\t\\N\n3\tthree\n");
    let mut bytes = Vec::new();
    let sql = "COPY (SELECT * FROM t WHERE a < 3 ORDER BY a) TO STDOUT (FORMAT json)";
    connection.copy_to(sql, &mut bytes).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), "{\"a\":1,\"b\":\"one\"}\n{\"a\":2,\"b\":null}\n");
    let error = connection.copy_from("COPY t FROM STDIN", &b"4\tx\nfive\ty\n"[..]).unwrap_err();
    assert_eq!(error.detail(), Some("COPY t, line 2, column \"a\": \"five\"."), "{error}");
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "3");
    is_well(&db);
}

#[test]
fn client_rows_without_a_client_are_refused_with_the_call_to_make() {
    let db = with_files(&[]);
    run(&db, "CREATE TABLE t (a INTEGER)");
    let hint = |error: albireo::SqlError| error.hint().unwrap_or_default().to_owned();
    assert!(hint(fails(&db, "COPY t FROM STDIN")).contains("copy_from"));
    assert!(hint(fails(&db, "COPY t TO STDOUT")).contains("copy_to"));
    let connection = db.connect();
    for sql in ["COPY t FROM '/t.csv'", "COPY t TO STDOUT", "SELECT 1", "COPY t FROM STDIN (FORMAT parquet)"]
    {
        assert_eq!(state(&connection.copy_from(sql, &b""[..]).unwrap_err()), "0A000", "{sql}");
    }
    assert_eq!(state(&connection.copy_to("COPY t FROM STDIN", Vec::new()).unwrap_err()), "0A000");
}

#[test]
fn client_that_fails_fails_the_statement() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let db = with_files(&[]);
    run(&db, "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)");
    let connection = db.connect();
    let errors = [
        connection.copy_from("COPY t FROM STDIN", Broken).unwrap_err(),
        connection.copy_to("COPY t TO STDOUT", Broken).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(state(&error), "58030");
        assert!(error.message().contains("the client's data"), "{error}");
    }
    is_well(&db);
}

#[test]
fn header_is_compared_if_asked_for() {
    let db = with_files(&[
        ("/good.csv", b"a,b\n1,x\n"),
        ("/swapped.csv", b"b,a\nx,1\n"),
        ("/short.csv", b"a\n1\n"),
    ]);
    run(&db, "CREATE TABLE t (a INTEGER, b TEXT); COPY t FROM '/good.csv' (HEADER MATCH)");
    let error = fails(&db, "COPY t FROM '/swapped.csv' (HEADER match)");
    assert_eq!(error.message(), "column name mismatch in header line field 1: got \"b\", expected \"a\"");
    let error = fails(&db, "COPY t FROM '/short.csv' (HEADER match)");
    assert_eq!(error.message(), "wrong number of fields in header line: field count is 1, expected 2");
    run(&db, "COPY t (b, a) FROM '/swapped.csv' (HEADER MATCH)");
    assert_eq!(ask(&db, "SELECT * FROM t ORDER BY a"), "1,x 1,x");
}

#[test]
fn encodings_are_those_said_or_marked() {
    let utf16: Vec<u8> = "\u{feff}1,ä€\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let db = with_files(&[
        ("/latin.csv", b"1,\xe4\n"),
        ("/utf16.csv", &utf16),
        ("/bom.csv", b"\xef\xbb\xbf1,x\n"),
    ]);
    run(&db, "CREATE TABLE t (a INTEGER, b TEXT)");
    run(
        &db,
        "COPY t FROM '/latin.csv' (ENCODING 'LATIN1'); COPY t FROM '/utf16.csv'; COPY t FROM '/bom.csv'",
    );
    assert_eq!(ask(&db, "SELECT b FROM t ORDER BY b"), "x ä ä€");
    let error = fails(&db, "COPY t FROM '/latin.csv'");
    assert_eq!(state(&error), "22021", "{error}");
    assert!(error.detail().unwrap().contains("line 1, column \"b\"") && error.hint().is_some(), "{error}");
    assert_eq!(state(&fails(&db, "COPY t FROM '/latin.csv' (ENCODING 'KOI8')")), "22023");
}

#[test]
fn mistakes_come_with_a_remedy() {
    let db = with_files(&[
        ("/head.csv", b"a,b\n1,x\n"),
        ("/semicolon.csv", b"1;x\n"),
        ("/array.json", b"[{\"a\": 1}]"),
        ("/stranger.json", b"{\"a\": 1, \"c\": 2}\n"),
        ("/zip.csv", b"PK\x03\x04"),
    ]);
    run(&db, "CREATE TABLE t (a INTEGER, b TEXT)");
    let cases = [
        ("/head.csv", "22P02", "add the option HEADER"),
        ("/semicolon.csv", "22P04", "DELIMITER"),
        ("/array.json", "22P04", "jq -c"),
        ("/zip.csv", "22P04", "Unpack it"),
        ("s3://bucket/t.csv", "0A000", "download it"),
    ];
    for (path, code, hint) in cases {
        let error = fails(&db, &format!("COPY t FROM '{path}'"));
        assert_eq!(state(&error), code, "{error}");
        assert!(error.hint().unwrap_or_default().contains(hint), "{path}: {error}");
    }
    let error = fails(&db, "COPY t FROM '/stranger.json'");
    assert_eq!((state(&error).as_str(), error.hint()), ("22P04", None), "{error}");
    assert!(error.to_string().contains("no column for the member \"c\""), "{error}");
    let real = database_on(RealDisk, small());
    run(&real, "CREATE TABLE t (a INTEGER)");
    for sql in ["COPY t FROM '/' (FORMAT csv)", "SELECT * FROM read_csv('/')"] {
        let error = fails(&real, sql);
        assert!(error.message().ends_with("it is a directory"), "{sql}: {error}");
    }
}

#[test]
fn damaged_compressed_file_is_an_error_or_the_rows_it_had() {
    let test = test!();
    for ending in ["gz", "zst"] {
        let disk = MemoryDisk::default();
        let db = database_on(disk.clone(), small());
        run(&db, "CREATE TABLE s (a INTEGER, b BIGINT); CREATE TABLE t (a INTEGER, b BIGINT)");
        run(&db, "INSERT INTO s SELECT i, i * i FROM generate_series(1, 2000) g(i)");
        let path = format!("/t.csv.{ending}");
        run(&db, &format!("COPY s TO '{path}'"));
        let whole = disk.get(&path).unwrap();
        test.for_each_seed(0..150, |seed| {
            let mut bytes = whole.clone();
            damage(&mut bytes, seed);
            disk.put(&path, &bytes);
            if let Err(error) = db.execute(&format!("COPY t FROM '{path}'")) {
                assert_eq!(state(&error)[..2], *"22", "{ending}: {error}");
            }
            run(&db, "TRUNCATE t");
        });
        is_well(&db);
    }
}

#[test]
fn damaged_parquet_is_an_error_or_rows() {
    let disk = MemoryDisk::default();
    let db = database_on(disk.clone(), small());
    let columns =
        "a INTEGER, b TEXT, c NUMERIC(9,2), d DATE, e BOOLEAN, f DOUBLE PRECISION, g BYTEA, h TIMESTAMPTZ";
    run(&db, &format!("CREATE TABLE t ({columns}); CREATE TABLE s ({columns})"));
    run(
        &db,
        "INSERT INTO s SELECT i, 'text ' || i % 7, i * 0.25, DATE '2024-01-01' + i, i % 3 = 0, i / 3.0,
            NULL, CASE WHEN i % 5 = 0 THEN NULL ELSE TIMESTAMPTZ '2024-01-01 00:00:00+00' END
            FROM generate_series(1, 500) g(i);
         COPY s TO '/t.parquet'",
    );
    let whole = disk.get("/t.parquet").unwrap();
    let test = test!();
    let mut refused = 0;
    test.for_each_seed(0..500, |seed| {
        let mut bytes = whole.clone();
        damage(&mut bytes, seed);
        disk.put("/t.parquet", &bytes);
        run(&db, "TRUNCATE t");
        match db.execute("COPY t FROM '/t.parquet'") {
            // Whatever they are, they can be shown.
            Ok(_) => drop(ask(&db, "SELECT * FROM t")),
            Err(error) => {
                assert_ne!(state(&error), "XX000", "{error}");
                refused += 1;
            }
        }
    });
    assert!(refused > 200 || !test.has_usual_seeds(), "{refused}");
    is_well(&db);
}

#[test]
fn file_in_from_has_the_columns_that_it_shows() {
    let db = with_files(&[
        ("/people.csv", b"id;zip;born\n1;01234;2001-02-03\n2;99999;\n"),
        ("/bare.tsv", b"1\tx, y\n2\tz\n"),
        ("/lines.jsonl", b"{\"a\": 1.5, \"b\": \"x\"}\n{\"b\": null, \"a\": 2}\n"),
        ("/empty.csv", b""),
    ]);
    let sql = "SELECT id + 1, zip, born FROM '/people.csv' ORDER BY id";
    assert_eq!(ask(&db, sql), "2,01234,2001-02-03 3,99999,NULL");
    assert_eq!(ask(&db, "SELECT sum(column0), max(column1) FROM '/bare.tsv'"), "3,z");
    assert_eq!(ask(&db, "SELECT a * 2, b FROM '/lines.jsonl' ORDER BY a"), "3,x 4,NULL");
    assert_eq!(ask(&db, "SELECT count(*) FROM '/people.csv'"), "2");
    let sql =
        "SELECT t.id FROM read_csv('/people.csv', delim = ';', header = true, all_varchar = true) t LIMIT 1";
    assert_eq!(ask(&db, sql), "1");
    let error = fails(&db, "SELECT * FROM '/empty.csv'");
    assert_eq!((state(&error).as_str(), error.message()), ("22P04", "file \"/empty.csv\" is empty"));
    let cases = [
        ("SELECT * FROM '/no.csv'", "58P01", "could not open file \"/no.csv\""),
        ("SELECT * FROM 'https://x.org/t.csv'", "0A000", "URL"),
        ("SELECT * FROM '/people.doc'", "0A000", "file format"),
        ("SELECT * FROM read_csv('/people.csv', speed = 1)", "22023", "no option \"speed\""),
        ("SELECT * FROM read_csv('/people.csv', delim = 'ab')", "22023", "cannot be 'ab'"),
        ("SELECT * FROM read_csv(1)", "22023", "the name of a file"),
    ];
    for (sql, code, message) in cases {
        let error = fails(&db, sql);
        assert_eq!(state(&error), code, "{sql}: {error}");
        assert!(error.message().contains(message), "{sql}: {error}");
    }
}

#[test]
fn column_of_row_numbers_without_a_name_is_read() {
    // As R writes it.
    let db = with_files(&[("/r.csv", b"\"\",\"x\"\n\"1\",5\n\"2\",6\n")]);
    assert_eq!(ask(&db, "SELECT column0 + 1, x FROM '/r.csv' ORDER BY x"), "2,5 3,6");
}

#[test]
fn file_that_is_another_one_now_is_read_as_it_is_by_the_same_query() {
    let disk = MemoryDisk::default();
    disk.put("/d/a.csv", b"x\n1\n");
    let db = database_on(disk.clone(), small());
    let (one, all) = ("SELECT * FROM '/d/a.csv'", "SELECT count(*) FROM '/d/*.csv'");
    assert_eq!((ask(&db, one), ask(&db, all)), ("1".to_owned(), "1".to_owned()));
    disk.put("/d/a.csv", b"y,z\n2,b\n");
    disk.put("/d/b.csv", b"y,z\n3,c\n");
    assert_eq!((ask(&db, one), ask(&db, all)), ("2,b".to_owned(), "2".to_owned()));
}

#[test]
fn several_text_files_are_read_by_one_name() {
    let db = with_files(&[
        ("/d/1.csv", b"id,zip\n1,01\n"),
        ("/d/2.csv", b"id,zip\n2,02\n\n3,03\n"),
        ("/d/3.csv", b""),
        ("/d/.csv", b"x\n"),
        ("/d/other.csv", b"zip,id\n1,01\n"),
        ("/d/1.jsonl", b"{\"a\": 1}\n"),
        ("/d/2.jsonl", b"{\"a\": 2}\n"),
    ]);
    run(&db, "CREATE TABLE t (id BIGINT, zip TEXT); INSERT INTO t SELECT * FROM read_csv('/d/1*.csv')");
    assert_eq!(ask(&db, "SELECT id, zip FROM t"), "1,01");
    assert_eq!(ask(&db, "SELECT sum(a) FROM '/d/*.jsonl'"), "3");
    let cases = [
        ("/d/*.csv", "22P04", "\"/d/other.csv\" has another header line"),
        ("/d/n*.csv", "58P01", "no file matches \"/d/n*.csv\""),
        ("/*/1.csv", "0A000", "* in the name of a directory"),
    ];
    for (path, code, message) in cases {
        let error = fails(&db, &format!("SELECT * FROM '{path}'"));
        assert_eq!(state(&error), code, "{error}");
        assert!(error.message().contains(message), "{error}");
    }
}

#[test]
fn value_beyond_the_sample_is_named_with_the_way_out() {
    let text = format!("a\n{}x\n", "1\n".repeat(30_000));
    let db = with_files(&[("/t.csv", text.as_bytes())]);
    let error = fails(&db, "SELECT sum(a) FROM '/t.csv'");
    assert_eq!(state(&error), "22P02", "{error}");
    assert!(error.detail().unwrap().contains("line 30002, column \"a\": \"x\""), "{error}");
    assert!(error.hint().unwrap().contains("sample_size = -1"), "{error}");
    assert_eq!(ask(&db, "SELECT max(a) FROM read_csv('/t.csv', sample_size = -1)"), "x");
}

#[test]
fn numbers_of_several_scales_are_written_with_the_digits_of_each() {
    let disk = MemoryDisk::default();
    let db = database_on(disk.clone(), small());
    run(
        &db,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n NUMERIC(12,2)); INSERT INTO t VALUES (1, 1.00), (2, 200000.00), (3, NULL)",
    );
    let query = "SELECT id, n / 3 AS third, CASE id WHEN 1 THEN 1.5 ELSE 0.00000000000000000025 END AS c FROM t ORDER BY id";
    let connection = db.connect();
    let written = |format: &str| {
        let mut bytes = Vec::new();
        connection.copy_to(&format!("COPY ({query}) TO STDOUT {format}"), &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    // As PostgreSQL 15 writes it.
    assert_eq!(
        written("(FORMAT csv)"),
        "1,0.33333333333333333333,1.5\n2,66666.666666666667,0.00000000000000000025\n3,,0.00000000000000000025\n"
    );
    assert_eq!(written("").lines().nth(1), Some("2\t66666.666666666667\t0.00000000000000000025"));
    assert_eq!(
        written("(FORMAT json)").lines().next(),
        Some("{\"id\":1,\"third\":0.33333333333333333333,\"c\":1.5}")
    );
    assert_eq!(ask(&db, query).split(' ').next(), Some("1,0.33333333333333333333,1.5"));
    // A column of Parquet has one scale.
    run(
        &db,
        &format!(
            "COPY ({query}) TO '/t.parquet'; CREATE TABLE u (id INTEGER, third NUMERIC(38,16), c NUMERIC(38,16))"
        ),
    );
    run(&db, "COPY u FROM '/t.parquet'");
    assert_eq!(ask(&db, "SELECT third FROM u ORDER BY id"), "0.3333333333333333 66666.6666666666670000 NULL");
    let error = fails(&db, "COPY (SELECT n * 1e25 / 7 AS x FROM t) TO '/u.parquet'");
    assert_eq!(state(&error), "22003", "{error}");
    assert!(error.hint().unwrap().contains("Cast"), "{error}");
}
