//! Statements on live rows: which they are, what EXPLAIN says of them, and that they are what they were.

use albireo::{Config, Database, Outcome, Value};

use crate::support::{ask, fails, is_well, rows_of, run, small, state};

fn shop(partitions: u16) -> Database {
    let db = Database::in_memory(Config { partitions, ..small() }).unwrap();
    run(
        &db,
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, total NUMERIC(9,2) DEFAULT 0)
            PARTITION BY HASH (id);
         CREATE INDEX orders_customer ON orders (customer);
         CREATE TABLE line (id INTEGER, n INTEGER, item TEXT, price NUMERIC(7,2), PRIMARY KEY (id, n))
            PARTITION BY HASH (id);
         CREATE TABLE item (name TEXT PRIMARY KEY, price NUMERIC(7,2));
         INSERT INTO orders VALUES (1, 10, 5), (2, 10, 7.5), (3, 11, 0), (4, 12, 1);
         INSERT INTO line VALUES (1, 1, 'nut', 2), (1, 2, 'bolt', 3), (2, 1, 'nut', 7.5), (4, 1, 'cog', 1);
         INSERT INTO item VALUES ('nut', 2), ('bolt', 3), ('cog', 1.5)",
    );
    db
}

fn plan(db: &Database, sql: &str) -> Vec<String> {
    match db.execute(&format!("EXPLAIN {sql}")).unwrap().remove(0) {
        Outcome::Rows(rows) => rows.rows().iter().map(|row| row[0].to_string()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn explain_says_the_path_the_partition_the_index_and_why() {
    let db = shop(4);
    let cases = [
        ("SELECT total FROM orders WHERE id = 3", "transactional, partition 3, index orders_pkey"),
        ("SELECT total FROM orders WHERE id = $1", "transactional, partition by $1, index orders_pkey"),
        ("UPDATE orders SET total = 1 WHERE id = 7", "transactional, partition 3, index orders_pkey"),
        (
            "UPDATE orders SET total = total + $1 WHERE id = $2",
            "transactional, partition by $2, index orders_pkey",
        ),
        ("DELETE FROM line WHERE id = 5 AND n = 1", "transactional, partition 1, index line_pkey"),
        ("INSERT INTO orders VALUES ($1, 5)", "transactional, partition by $1"),
        ("INSERT INTO orders VALUES (8, 5), (12, 6)", "transactional, partition 0"),
        ("INSERT INTO orders VALUES (8, 5), (9, 6)", "transactional, all partitions (crossing)"),
        ("INSERT INTO item VALUES ('new', 5)", "transactional, all partitions (crossing)"),
        ("SELECT price FROM item WHERE name = 'nut'", "transactional, any partition, index item_pkey"),
        (
            "SELECT sum(total) FROM orders WHERE customer = 10",
            "transactional, all partitions (crossing), index orders_customer",
        ),
        (
            "SELECT o.total, l.price FROM orders o JOIN line l ON l.id = o.id WHERE o.id = 2",
            "transactional, partition 2, indexes orders_pkey, line_pkey",
        ),
        ("SELECT max(id) FROM orders", "transactional, all partitions (crossing), index orders_pkey"),
        (
            "DELETE FROM line USING item WHERE line.item = item.name",
            "transactional, all partitions (crossing), index item_pkey",
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(plan(&db, sql)[0], expected, "{sql}");
    }
    assert_eq!(
        plan(&db, "UPDATE orders SET total = 1 WHERE id = 7"),
        [
            "transactional, partition 3, index orders_pkey",
            "  changes orders by orders_pkey (id)",
            "  path: it reads one row at most"
        ]
    );
    for sql in ["SELECT sum(total) FROM orders", "SELECT * FROM orders WHERE id > 1"] {
        let plan = plan(&db, sql);
        assert!(plan[0].starts_with("transactional, all partitions"), "{sql}");
        assert!(plan[2].starts_with("  path: about "), "{plan:?}");
    }
    assert!(plan(&db, "SELECT 1")[0].starts_with("analytical, snapshot"));
    let update = "UPDATE orders SET total = 1 WHERE total = 0";
    assert_eq!(plan(&db, update)[1], "  changes all rows of orders");
    db.execute("CREATE TABLE many (a INTEGER); INSERT INTO many SELECT * FROM generate_series(1, 50000)")
        .unwrap();
    let plan = plan(&db, "UPDATE many SET a = 1 WHERE a = 0");
    assert!(plan[0].starts_with("transactional, all partitions (crossing): UPDATE of many"), "{plan:?}");
    assert!(plan[1].starts_with("  path: about 50000 rows would take"), "{plan:?}");
    let ran = db.execute("EXPLAIN ANALYZE SELECT total FROM orders WHERE customer = 10").unwrap().remove(0);
    assert!(rows_of(ran).contains("2 rows in "));
    let reader = db.connect();
    reader.execute("BEGIN READ ONLY").unwrap();
    let inside = reader.execute("EXPLAIN SELECT total FROM orders WHERE id = 3").unwrap().remove(0);
    assert!(rows_of(inside).starts_with("analytical"));
    assert_eq!(ask(&db, "SELECT count(*) FROM orders"), "4");
}

#[test]
fn what_procedures_can_change_clients_can() {
    for partitions in [1, 3] {
        let db = shop(partitions);
        let upsert = "INSERT INTO item VALUES ($1, $2) ON CONFLICT (name) DO UPDATE
                      SET price = excluded.price + item.price RETURNING price";
        let price =
            |name: &str, price: Value| rows_of(db.execute_with(upsert, &[name.into(), price]).unwrap());
        assert_eq!(price("nut", 5.into()), "7.00");
        assert_eq!(price("nut", "0.25".into()), "7.25");
        assert_eq!(price("new", 5.into()), "5.00");
        run(&db, "INSERT INTO orders VALUES (1, 99) ON CONFLICT DO NOTHING");
        run(&db, "UPDATE line SET price = item.price FROM item WHERE item.name = line.item AND line.id = 1");
        assert_eq!(ask(&db, "SELECT n, price FROM line WHERE id = 1 ORDER BY n"), "1,7.25 2,3.00");
        run(&db, "UPDATE orders SET total = (SELECT sum(price) FROM line WHERE line.id = orders.id)");
        assert_eq!(ask(&db, "SELECT id, total FROM orders ORDER BY id"), "1,10.25 2,7.50 3,NULL 4,1.00");
        run(&db, "DELETE FROM line USING orders WHERE orders.id = line.id AND orders.customer = 10");
        assert_eq!(ask(&db, "SELECT id FROM line"), "4");
        run(
            &db,
            "CREATE FUNCTION twice(n integer) RETURNS integer LANGUAGE sql AS $$ SELECT n * 2 $$;
             INSERT INTO orders VALUES (twice(10), 1); UPDATE orders SET customer = twice(customer) WHERE id = 3",
        );
        let called = "UPDATE orders SET customer = customer + twice($1) WHERE id = $2";
        db.execute_with(called, &[4.into(), 20.into()]).unwrap();
        assert_eq!(ask(&db, "SELECT id, customer FROM orders WHERE id >= 3 ORDER BY id"), "3,22 4,12 20,9");
        is_well(&db);
    }
}

#[test]
fn what_only_the_other_road_knows_still_runs_there() {
    let db = shop(2);
    run(&db, "UPDATE item SET name = regexp_replace(name, 'o', '0') WHERE name = 'cog'");
    assert_eq!(ask(&db, "SELECT price FROM item WHERE name = 'c0g'"), "1.50");
    run(&db, "INSERT INTO line SELECT id, 9, 'rank', row_number() OVER (ORDER BY id) FROM orders");
    assert_eq!(ask(&db, "SELECT price FROM line WHERE n = 9 ORDER BY id"), "1.00 2.00 3.00 4.00");
}

#[test]
fn mistakes_are_told_as_ever_where_they_are() {
    let db = shop(1);
    let cases = [
        ("INSERT INTO orders VALUES (1, 2) ON CONFLICT (idd) DO NOTHING", "42703", "id"),
        ("UPDATE orders SET totl = 1 WHERE id = 1", "42703", "total"),
        ("SELECT totl FROM orders WHERE id = 1", "42703", "total"),
        ("DELETE FROM orders WHERE id = 1 AND custmer = 2", "42703", "customer"),
        ("UPDATE orders SET total = item.pric FROM item WHERE item.name = 'nut'", "42703", "price"),
    ];
    for (sql, expected, suggestion) in cases {
        let error = fails(&db, sql);
        assert_eq!(state(&error), expected, "{sql}: {error}");
        assert!(error.position().is_some(), "{sql}: {error}");
        assert!(error.hint().unwrap_or_default().contains(suggestion), "{sql}: {error}");
    }
    for sql in ["UPDATE orders SET total = $1 WHERE id = $2", "SELECT total FROM orders WHERE id = $2 + $1"] {
        for _ in 0..2 {
            let error = db.execute_with(sql, &[1.into()]).unwrap_err();
            assert_eq!(
                (state(&error).as_str(), error.message()),
                ("42P02", "the statement has 2 parameters, but 1 were given",)
            );
            db.execute_with(sql, &[1.into(), 2.into()]).unwrap();
        }
    }
    let error = db.execute_with("UPDATE orders SET total = $1 WHERE id = 1", &["much".into()]).unwrap_err();
    assert_eq!(state(&error), "22P02", "{error}");
    is_well(&db);
}

#[test]
fn kept_statement_obeys_its_connection() {
    let db = shop(1);
    let client = db.connect();
    let update = || client.execute_with("UPDATE orders SET total = $1 WHERE id = 1", &[8.into()]);
    let total =
        || client.query("SELECT total FROM orders WHERE id = 1", &[]).unwrap().value(0, 0).to_string();
    update().unwrap();
    assert_eq!(total(), "8.00");
    client.execute("BEGIN READ ONLY").unwrap();
    run(&db, "UPDATE orders SET total = 9 WHERE id = 1");
    // Inside, the query sees the session's snapshot.
    assert_eq!(total(), "8.00");
    assert_eq!(state(&update().unwrap_err()), "25006");
    let aborted = client.execute("SELECT total FROM orders WHERE id = 1").unwrap_err();
    assert_eq!(state(&aborted), "25P02", "{aborted}");
    client.execute("ROLLBACK").unwrap();
    assert_eq!(total(), "9.00");
    update().unwrap();
    client.execute("SET statement_timeout = '200ms'").unwrap();
    run(&db, "INSERT INTO line SELECT x, x, 'many', 1 FROM generate_series(100, 2000) g (x)");
    // A product of three tables, which the other road refuses.
    let endless = "DELETE FROM line USING line a, line b, orders c WHERE line.n + a.n + b.n = -1";
    for _ in 0..2 {
        assert_eq!(state(&client.execute(endless).unwrap_err()), "57014");
    }
    client.execute("SET statement_timeout = 0").unwrap();
    let wide = "SELECT a.n FROM line a, line b WHERE a.id = 1 AND b.id = 1";
    assert_eq!(client.query(wide, &[]).unwrap().row_count(), 4);
}

#[test]
fn kept_statements_survive_changes_of_the_catalog_by_others() {
    let db = shop(2);
    let other = db.clone();
    let changes = albireo_env::spawn("changes", move || {
        for _ in 0..30 {
            run(&other, "CREATE INDEX passing ON orders (total); DROP INDEX passing");
        }
    })
    .unwrap();
    for n in 0..2000 {
        let done =
            db.execute_with("UPDATE orders SET total = total + 1 WHERE id = $1", &[(n % 4 + 1).into()]);
        assert!(matches!(done, Ok(Outcome::Done { rows: 1, .. })), "{done:?}");
    }
    changes.join().unwrap();
    assert_eq!(ask(&db, "SELECT sum(total) FROM orders"), "2013.50");
    run(&db, "DROP TABLE line");
    let gone = "SELECT price FROM line WHERE id = 1";
    assert_eq!(state(&fails(&db, gone)), "42P01");
    run(&db, "CREATE TABLE line (id INTEGER PRIMARY KEY, price TEXT); INSERT INTO line VALUES (1, 'dear')");
    assert_eq!(ask(&db, gone), "dear");
}

#[test]
fn column_that_an_outer_join_makes_null_is_grouped_once() {
    // One thread: several merge their groups after.
    let db = Database::in_memory(Config { query_threads: 1, ..Config::default() }).unwrap();
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3), (4)").unwrap();
    let sql = "SELECT y.e, count(*) FROM (SELECT id, 'b' AS e FROM t) y
               RIGHT JOIN generate_series(1, 40000) g (i) ON y.id = mod(g.i, 5) GROUP BY y.e";
    let groups = db.query(sql, &[]).unwrap();
    let mut shown: Vec<String> = groups.rows().iter().map(|row| format!("{} {}", row[0], row[1])).collect();
    shown.sort();
    assert_eq!(shown, ["NULL 8000", "b 32000"]);
}

#[test]
fn ends_of_several_columns_are_found_wherever_each_is() {
    let db = Database::in_memory(small()).unwrap();
    run(&db, "CREATE TABLE t (a INTEGER NOT NULL, b BIGINT, c BIGINT NOT NULL)");
    run(
        &db,
        "INSERT INTO t SELECT g, CASE WHEN g > 90000 THEN g END, g FROM generate_series(1, 100000) q (g)",
    );
    for (columns, expected) in [
        ("min(a), max(b)", "1,100000"),
        ("min(a), max(c * 2)", "1,200000"),
        ("max(b), min(a) FILTER (WHERE c % 50000 = 7)", "100000,7"),
        ("min(a), max(c) FILTER (WHERE b IS NULL)", "1,90000"),
        ("max(a), min(c), max(c), min(b)", "100000,1,100000,90001"),
    ] {
        for _ in 0..3 {
            assert_eq!(ask(&db, &format!("SELECT {columns} FROM t")), expected, "{columns}");
        }
    }
}
