//! Access paths: which index is chosen, and that it gives what all rows give.

use albireo_testing::random_tests;
use proptest::prelude::*;

use super::{World, check};
use albireo_semantics::types::Scalar;

const TPCC: &str = "
CREATE TABLE new_order (no_w_id integer, no_d_id smallint, no_o_id integer, PRIMARY KEY (no_w_id, no_d_id, no_o_id))
    PARTITION BY HASH (no_w_id);
CREATE TABLE customer (c_w_id integer, c_d_id smallint, c_id integer, c_last varchar(16) NOT NULL,
    c_first varchar(16), c_balance numeric(12,2), PRIMARY KEY (c_w_id, c_d_id, c_id)) PARTITION BY HASH (c_w_id);
CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first);
CREATE TABLE item (i_id integer PRIMARY KEY, i_name text);
INSERT INTO new_order SELECT w, d, o FROM generate_series(1, 2) w, generate_series(1, 2) d, generate_series(5, 9) o;
INSERT INTO customer SELECT w, 1, c, 'LAST' || c % 3, 'first' || c, c FROM generate_series(1, 2) w,
    generate_series(1, 9) c;
INSERT INTO item SELECT i, 'item' || i FROM generate_series(1, 5) i";

fn tpcc() -> World {
    let mut world = World::new(2);
    assert_eq!(world.run(TPCC), "5 rows");
    world.variable("w", Scalar::Integer, 2);
    world.variable("d", Scalar::Integer, 1);
    world.variable("big", Scalar::BigInt, 3_000_000_000_i64);
    world
}

#[test]
fn paths_are_the_best_there_are() {
    let mut world = tpcc();
    let cases = [
        (
            "SELECT min(no_o_id) FROM new_order WHERE no_w_id = w AND no_d_id = d",
            "new_order new_order_pkey 2@",
        ),
        (
            "SELECT c_first FROM customer WHERE c_w_id = w AND c_d_id = d AND c_id = 3",
            "customer customer_pkey 3@",
        ),
        (
            "SELECT c_id FROM customer WHERE c_last = 'LAST1' AND c_w_id = w AND c_d_id = d ORDER BY c_first",
            "customer customer_name 3@",
        ),
        (
            "SELECT c_id FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last LIKE 'LA%'",
            "customer customer_name 2@",
        ),
        (
            "SELECT c_id FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last LIKE 'LAST1'",
            "customer customer_name 3@",
        ),
        ("SELECT i_name FROM item WHERE i_name = 'x'", "item - 0"),
        ("SELECT i_name FROM item WHERE i_name LIKE 'x%'", "item - 0"),
        ("SELECT i_name FROM item WHERE i_id = big", "item item_pkey 1"),
        (
            "SELECT 1 FROM customer, item WHERE i_id = c_id AND c_w_id = w AND c_d_id = d",
            "customer customer_pkey 2@, item item_pkey 1",
        ),
        (
            "DELETE FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = 5",
            "new_order new_order_pkey 3@!",
        ),
        ("UPDATE item SET i_name = 'x'", "item - 0!"),
        ("INSERT INTO new_order VALUES (w, d, 1)", "new_order - 0@!"),
        (
            "SELECT (SELECT i_name FROM item WHERE i_id = c_id) FROM customer WHERE c_w_id = 1",
            "item item_pkey 1, customer customer_pkey 1@",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(world.explain(text), expected, "{text}");
    }
}

#[test]
fn rows_by_index_in_two_partitions_are_right() {
    let mut world = tpcc();
    check(
        &mut world,
        &[
            ("SELECT min(no_o_id) FROM new_order WHERE no_w_id = w AND no_d_id = d", "5"),
            ("SELECT max(no_o_id) FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id < 8", "7"),
            ("SELECT min(no_w_id), max(no_o_id) FROM new_order", "1 | 9"),
            ("SELECT max(no_w_id) FROM new_order", "2"),
            (
                "SELECT c_w_id, c_id FROM customer ORDER BY c_w_id DESC, c_d_id DESC, c_id DESC LIMIT 2",
                "2 | 9\n2 | 8",
            ),
            (
                "SELECT c_id FROM customer WHERE c_last = 'LAST1' AND c_w_id = w AND c_d_id = d ORDER BY c_first DESC",
                "7\n4\n1",
            ),
            ("SELECT c_id FROM customer WHERE c_w_id = w AND c_d_id = 100000", ""),
            ("SELECT i_id FROM item WHERE i_id = big", ""),
            ("SELECT i_id FROM item WHERE i_id < big AND i_id > 2.5 AND i_id <= 4.0 ORDER BY i_id", "3\n4"),
            ("SELECT i_id FROM item WHERE i_id = 2.5", ""),
            ("SELECT i_id FROM item WHERE i_id = 2.0", "2"),
            (
                "UPDATE customer SET c_w_id = 1, c_id = c_id + 10 WHERE c_w_id = w AND c_id <= 2 RETURNING c_id",
                "11\n12",
            ),
            ("SELECT count(*) FROM customer WHERE c_w_id = 1", "11"),
            ("SELECT count(*) FROM customer WHERE c_w_id IS NOT NULL", "18"),
            ("DELETE FROM new_order WHERE no_o_id = 5", "4 rows"),
            ("SELECT min(no_o_id) FROM new_order WHERE no_w_id = w AND no_d_id = d", "6"),
        ],
    );
}

#[test]
fn limit_stops_reading_an_index_early() {
    let mut world = World::new(1);
    world.run("CREATE TABLE t (a integer PRIMARY KEY, b integer)");
    world.run("INSERT INTO t SELECT i, i % 10 FROM generate_series(1, 20000) i");
    // So few that looking once whether the statement is to end would end it.
    world.rows = 1;
    assert_eq!(world.run("SELECT a FROM t WHERE a > 100 ORDER BY a DESC LIMIT 1"), "20000");
    assert_eq!(world.run("SELECT a FROM t ORDER BY a LIMIT 2 OFFSET 3"), "4\n5");
    assert_eq!(world.run("SELECT max(a) FROM t"), "20000");
    assert_eq!(world.run("SELECT a FROM t WHERE b = 0"), "54000: the statement reads too many rows");
}

#[test]
fn index_is_read_by_how_texts_begin() {
    let mut world = World::new(1);
    world
        .run("CREATE TABLE t (k integer, s varchar(20), c char(5)); CREATE INDEX t_h ON t USING hash (k, s)");
    world.run("CREATE INDEX t_s ON t (s); CREATE INDEX t_c ON t (c)");
    world.variable("p", Scalar::Text, "ab%");
    let cases = [
        ("s LIKE 'ab%'", "t t_s 0"),
        ("s LIKE 'ab_'", "t t_s 0"),
        ("s LIKE 'ab'", "t t_s 1"),
        ("s LIKE 'a!%%' ESCAPE '!'", "t t_s 0"),
        ("k = 1 AND s LIKE 'a\\%b'", "t t_h 2"),
        ("k = 1 AND s LIKE 'ab%'", "t t_s 0"),
        ("starts_with(s, 'ab')", "t t_s 0"),
        ("s ^@ p", "t t_s 0"),
        ("starts_with(s, p || (SELECT 'x'))", "t - 0"),
        ("starts_with(s, s)", "t - 0"),
        ("s LIKE s", "t - 0"),
        ("s LIKE p", "t - 0"),
        ("s LIKE '%b'", "t - 0"),
        ("s LIKE 'ab\\'", "t - 0"),
        ("s NOT LIKE 'ab%'", "t - 0"),
        ("s ILIKE 'ab%'", "t - 0"),
        ("s LIKE 'ab%' OR s LIKE 'b%'", "t - 0"),
        // Patterns see blanks that the index does not have.
        ("c LIKE 'ab%'", "t - 0"),
        ("c LIKE 'ab'", "t - 0"),
    ];
    for (condition, expected) in cases {
        assert_eq!(world.explain(&format!("SELECT k FROM t WHERE {condition}")), expected, "{condition}");
    }
}

#[test]
fn of_an_index_no_more_is_read_than_begins_so() {
    let mut world = World::new(1);
    world.run(
        "CREATE TABLE t (k integer, s varchar(20)); CREATE INDEX t_s ON t (s); CREATE INDEX t_k ON t (k, s)",
    );
    // An index has the first 15 bytes of these.
    world.run("INSERT INTO t SELECT i % 2, 'a long text ' || (i + 10000) FROM generate_series(1, 20000) i");
    world.variable("p", Scalar::Text, "a long text 1001%");
    world.variable("q", Scalar::Text, "a long text 1001");
    // As where `limit_stops_reading_an_index_early`.
    world.rows = 1;
    let too_many = "54000: the statement reads too many rows";
    check(
        &mut world,
        &[
            ("SELECT count(*) FROM t WHERE s LIKE 'a long text 1001%'", "10"),
            ("SELECT count(*) FROM t WHERE s LIKE 'a long text 10012'", "1"),
            ("SELECT count(*) FROM t WHERE k = 1 AND s LIKE 'a long text 1001_'", "5"),
            ("SELECT count(*) FROM t WHERE starts_with(s, q)", "10"),
            ("SELECT count(*) FROM t WHERE starts_with(s, q) AND s > 'a long text 10015'", "4"),
            // Nobody knows how these begin before they are asked for.
            ("SELECT count(*) FROM t WHERE k = 1 AND s LIKE p", "5"),
            ("SELECT s FROM t WHERE s LIKE p ORDER BY s LIMIT 2", "a long text 10010\na long text 10011"),
            ("SELECT max(s) FROM t WHERE s LIKE p", "a long text 10019"),
            ("SELECT count(*) FROM t WHERE s LIKE p", too_many),
            ("SELECT count(*) FROM t WHERE s LIKE 'a long text 1%'", too_many),
        ],
    );
}

/// Values of `a`, `b`, `c`, `s` and `n`.
type Generated = (Option<i16>, Option<i32>, Option<i64>, Option<String>, Option<i32>);

/// Rows of `t`: the same in a table with indexes and in one without.
fn pair(rows: &[Generated], layout: &str) -> World {
    let mut world = World::new(2);
    world.variable("p", Scalar::Text, "a%");
    let columns = "k integer, a smallint, b integer, c bigint, s varchar(6), n numeric(6,1), x char(3)";
    world.run(&format!("CREATE TABLE plain ({columns})"));
    world.run(&format!("CREATE TABLE t ({columns}) WITH (layout = '{layout}')"));
    for index in ["(a, b)", "(b, s)", "(s, a)", "(s)", "(c)", "(n, c)", "(x, b)"] {
        world.run(&format!("CREATE INDEX ON t {index}"));
    }
    world.run("CREATE INDEX ON t USING hash (b, a)");
    let text = |value: Option<String>| value.map_or("NULL".to_owned(), |v| format!("'{v}'"));
    for (k, (a, b, c, s, n)) in rows.iter().enumerate() {
        let number = |value: Option<i64>| value.map_or("NULL".to_owned(), |v| v.to_string());
        let values = format!(
            "{k}, {}, {}, {}, {}, {}, {}",
            number(a.map(i64::from)),
            number(b.map(i64::from)),
            number(*c),
            text(s.clone()),
            number(n.map(i64::from)),
            text(s.clone().map(|s| s.chars().take(3).collect())),
        );
        for table in ["plain", "t"] {
            assert_eq!(world.run(&format!("INSERT INTO {table} VALUES ({values})")), "1 rows", "{values}");
        }
    }
    world
}

fn atom() -> impl Strategy<Value = String> {
    let op = prop_oneof![Just("="), Just("="), Just("<"), Just("<="), Just(">"), Just(">=")];
    let number = prop_oneof![
        (-3..4_i64).prop_map(|n| n.to_string()),
        (-3..4_i64).prop_map(|n| format!("{n}.5")),
        Just("70000".to_owned()),
        Just("-9000000000".to_owned()),
        Just("1.25".to_owned()),
    ];
    let text = prop_oneof!["[ab ]{0,3}", "[ab]{0,8}"].prop_map(|s| format!("'{s}'"));
    let like = prop_oneof![Just("s LIKE"), Just("s LIKE"), Just("s NOT LIKE"), Just("x LIKE")];
    prop_oneof![
        (prop_oneof![Just("a"), Just("b"), Just("c"), Just("n")], op.clone(), number)
            .prop_map(|(column, op, value)| format!("{column} {op} {value}")),
        (prop_oneof![Just("s"), Just("x")], op, text)
            .prop_map(|(column, op, value)| format!("{column} {op} {value}")),
        Just("b = a".to_owned()),
        Just("s IS NULL".to_owned()),
        (like, "[ab%_]{0,4}").prop_map(|(like, pattern)| format!("{like} '{pattern}'")),
        "[ab]{0,2}".prop_map(|begin| format!("starts_with(s, '{begin}')")),
        Just("s LIKE p".to_owned()),
    ]
}

random_tests! {
    #![cases(48)]

    #[test]
    fn index_gives_the_rows_that_reading_all_gives(
        rows in proptest::collection::vec(
            (
                proptest::option::weighted(0.9, -3..4_i16),
                proptest::option::weighted(0.9, -3..4_i32),
                proptest::option::weighted(0.9, -3..4_i64),
                proptest::option::weighted(0.9, "[ab]{0,3}"),
                proptest::option::weighted(0.9, -3..4_i32),
            ),
            0..60,
        ),
        conditions in proptest::collection::vec(proptest::collection::vec(atom(), 1..4), 12),
        layout in prop_oneof![Just("column"), Just("row")],
    ) {
        let mut world = pair(&rows, layout);
        for atoms in conditions {
            let filter = atoms.join(" AND ");
            let expected = world.run(&format!("SELECT k FROM plain WHERE {filter} ORDER BY k"));
            let found = world.run(&format!("SELECT k FROM t WHERE {filter} ORDER BY k"));
            prop_assert_eq!(&found, &expected, "{}", &filter);
            for order in ["a, b", "s DESC, a DESC", "n, c", "b"] {
                let by = format!("SELECT {} FROM", order.replace(" DESC", ""));
                let expected = world.run(&format!("{by} plain WHERE {filter} ORDER BY {order} LIMIT 5"));
                let found = world.run(&format!("{by} t WHERE {filter} ORDER BY {order} LIMIT 5"));
                prop_assert_eq!(&found, &expected, "{} {}", &filter, order);
            }
            for column in ["a", "b", "s", "n"] {
                let ends = format!("SELECT min({column}), max({column}) FROM");
                let expected = world.run(&format!("{ends} plain WHERE {filter}"));
                let min = world.run(&format!("SELECT min({column}) FROM t WHERE {filter}"));
                let max = world.run(&format!("SELECT max({column}) FROM t WHERE {filter}"));
                prop_assert_eq!(format!("{min} | {max}"), expected, "{} {}", &filter, column);
            }
        }
    }
}

#[test]
fn join_without_an_index_finds_the_rows_of_all_partitions() {
    // The hash table was made of the partition of the first row that was looked for.
    let mut world = World::new(3);
    world.run("CREATE TABLE a (x integer); CREATE TABLE b (y integer, z text) PARTITION BY HASH (y)");
    world.run("INSERT INTO a VALUES (1), (2), (3), (4); INSERT INTO b VALUES (1, 'p'), (2, 'q'), (3, 'r')");
    assert_eq!(world.run("SELECT x, z FROM a JOIN b ON y = x ORDER BY x"), "1 | p\n2 | q\n3 | r");
    assert_eq!(
        world.run("SELECT x, z FROM a LEFT JOIN b ON y = x AND y = 2 ORDER BY z"),
        "2 | q\n1 | NULL\n3 | NULL\n4 | NULL"
    );
}

#[test]
fn partition_of_a_joined_table_is_that_of_the_table_it_equals() {
    let mut world = World::new(2);
    world.run("CREATE TABLE a (x integer PRIMARY KEY, n integer) PARTITION BY HASH (x)");
    world.run("CREATE TABLE b (y integer, z text) PARTITION BY HASH (y)");
    world.run("INSERT INTO a VALUES (1, 1), (2, 2); INSERT INTO b VALUES (1, 'p'), (2, 'q'), (2, 'r')");
    world.variable("w", Scalar::Integer, 2);
    let join = "SELECT x, z FROM a JOIN b ON y = x WHERE x = w ORDER BY z";
    assert_eq!(world.explain(join), "a a_pkey 1@, b - 0@");
    assert_eq!(world.run(join), "2 | q\n2 | r");
    assert_eq!(world.explain("SELECT z FROM a JOIN b ON y = n WHERE x = w"), "a a_pkey 1@, b - 0");
    assert_eq!(
        world.explain("SELECT z FROM a LEFT JOIN b ON y = x AND z < 'r' WHERE x = w"),
        "a a_pkey 1@, b - 0@"
    );
    assert_eq!(world.explain("INSERT INTO b SELECT x, 's' FROM a WHERE x = w"), "a a_pkey 1@, b - 0@!");
    let moved = "INSERT INTO a VALUES (1, 5) ON CONFLICT (x) DO UPDATE SET x = a.x + 1";
    assert_eq!(world.explain(moved), "a - 0@!, a - 0@!");
}
