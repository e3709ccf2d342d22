//! INSERT, UPDATE, DELETE.

use super::{World, check};
use albireo_semantics::types::Scalar;

const STOCK: &str =
    "CREATE TABLE stock (id integer PRIMARY KEY, quantity integer NOT NULL DEFAULT 7, note varchar(5))";

#[test]
fn inserts_convert_values_and_fill_defaults() {
    let mut world = World::new(1);
    world.run(STOCK);
    check(
        &mut world,
        &[
            ("INSERT INTO stock VALUES (1, 10, 'new')", "1 rows"),
            (
                "INSERT INTO stock (note, id) VALUES ('x', 2.4), (NULL, '3') RETURNING *",
                "2 | 7 | x\n3 | 7 | NULL",
            ),
            ("INSERT INTO stock VALUES (4, DEFAULT, DEFAULT) RETURNING quantity + 1 AS q", "8"),
            ("INSERT INTO stock SELECT id + 10, quantity FROM stock WHERE id < 3", "2 rows"),
            (
                "INSERT INTO stock SELECT 20, '5', 'a' UNION ALL SELECT 21, '6', NULL",
                "42804: column \"quantity\" is of type integer but expression is of type text",
            ),
            ("INSERT INTO stock SELECT 20, '5', 'a'", "1 rows"),
            (
                "INSERT INTO stock SELECT id FROM (VALUES (31), (30)) v (id) ORDER BY id RETURNING id",
                "30\n31",
            ),
            (
                "SELECT * FROM stock ORDER BY id",
                "1 | 10 | new\n2 | 7 | x\n3 | 7 | NULL\n4 | 7 | NULL\n11 | 10 | NULL\n12 | 7 | NULL\n20 | 5 | a\n30 | 7 | NULL\n31 | 7 | NULL",
            ),
            (
                "INSERT INTO stock VALUES (1, 1)",
                "23505: duplicate key value violates unique constraint \"stock_pkey\"",
            ),
            (
                "INSERT INTO stock VALUES (5, NULL)",
                "23502: null value in column \"quantity\" of relation \"stock\" violates not-null constraint",
            ),
            (
                "INSERT INTO stock VALUES (5, 1, 'a', 2)",
                "42601: INSERT has more expressions than target columns at 38",
            ),
            (
                "INSERT INTO stock (id, quantity) VALUES (5)",
                "42601: INSERT has more target columns than expressions at 24",
            ),
            (
                "INSERT INTO stock (id, amount) VALUES (5, 1)",
                "42703: column \"amount\" of relation \"stock\" does not exist at 24",
            ),
            ("INSERT INTO stock VALUES (5, 3000000000)", "22003: integer out of range"),
            (
                "INSERT INTO stock VALUES (5, 1, 'toolong')",
                "22001: value too long for type character varying(5)",
            ),
        ],
    );
}

#[test]
fn updates_and_deletes_see_the_state_before_them() {
    let mut world = World::new(1);
    world.run(STOCK);
    world.run(
        "CREATE INDEX stock_quantity ON stock (quantity); INSERT INTO stock VALUES (1, 10), (2, 20), (3, 30)",
    );
    world.variable("n", Scalar::Integer, 2);
    check(
        &mut world,
        &[
            (
                "UPDATE stock SET quantity = quantity + 100 WHERE quantity > 5 RETURNING id, quantity",
                "1 | 110\n2 | 120\n3 | 130",
            ),
            ("UPDATE stock SET quantity = (SELECT sum(quantity) FROM stock) WHERE id = n", "1 rows"),
            ("SELECT quantity FROM stock ORDER BY id", "110\n360\n130"),
            (
                "UPDATE stock s SET (quantity, note) = (1, s.id || '!') WHERE s.id = 3 RETURNING s.*",
                "3 | 1 | 3!",
            ),
            ("UPDATE stock SET quantity = DEFAULT, note = NULL WHERE id = 3 RETURNING *", "3 | 7 | NULL"),
            (
                "UPDATE stock SET quantity = NULL",
                "23502: null value in column \"quantity\" of relation \"stock\" violates not-null constraint",
            ),
            (
                "UPDATE stock SET id = 1 WHERE id = 2",
                "23505: duplicate key value violates unique constraint \"stock_pkey\"",
            ),
            (
                "UPDATE stock SET quantity = v.q FROM (VALUES (1, 5), (2, 6), (9, 9)) v (i, q) WHERE id = v.i",
                "2 rows",
            ),
            ("SELECT quantity FROM stock ORDER BY id", "5\n6\n7"),
            ("DELETE FROM stock WHERE id = 9", "0 rows"),
            ("DELETE FROM stock USING (VALUES (3)) v (i) WHERE id = v.i RETURNING *", "3 | 7 | NULL | 3"),
            ("DELETE FROM stock RETURNING id", "1\n2"),
            ("SELECT count(*) FROM stock", "0"),
            (
                "UPDATE stock SET quantity = 1, quantity = 2",
                "42601: multiple assignments to same column \"quantity\" at 32",
            ),
            (
                "UPDATE stock SET amount = 1",
                "42703: column \"amount\" of relation \"stock\" does not exist at 18",
            ),
        ],
    );
}

#[test]
fn conflicts_do_what_postgres_does() {
    let mut world = World::new(1);
    world.run(STOCK);
    let put = "INSERT INTO stock AS s VALUES (p, q, 'new') ON CONFLICT (id) DO UPDATE \
        SET quantity = s.quantity + excluded.quantity, note = 'added' RETURNING s.quantity";
    for (id, quantity, expected) in [(1, 10, "10"), (1, 5, "15"), (2, 7, "7"), (1, -15, "0")] {
        world.variable("p", Scalar::Integer, id);
        world.variable("q", Scalar::Integer, quantity);
        assert_eq!(world.run(put), expected);
    }
    check(
        &mut world,
        &[
            ("SELECT * FROM stock ORDER BY id", "1 | 0 | added\n2 | 7 | new"),
            (
                "INSERT INTO stock VALUES (1, NULL) ON CONFLICT (id) DO NOTHING",
                "23502: null value in column \"quantity\" of relation \"stock\" violates not-null constraint",
            ),
            ("INSERT INTO stock VALUES (1, 99) ON CONFLICT (id) DO NOTHING RETURNING id", "0 rows"),
            ("INSERT INTO stock VALUES (3, 99) ON CONFLICT DO NOTHING RETURNING id", "3"),
            (
                "INSERT INTO stock AS s VALUES (2, 3) ON CONFLICT (id) DO UPDATE SET quantity = excluded.quantity WHERE s.quantity < excluded.quantity",
                "0 rows",
            ),
            (
                "INSERT INTO stock VALUES (3, 40), (5, 50) ON CONFLICT ON CONSTRAINT stock_pkey DO UPDATE SET quantity = excluded.quantity * 10",
                "2 rows",
            ),
            (
                "INSERT INTO stock VALUES (7, 1), (7, 2) ON CONFLICT (id) DO UPDATE SET quantity = 1",
                "21000: ON CONFLICT DO UPDATE command cannot affect row a second time",
            ),
            ("INSERT INTO stock VALUES (8, 1), (8, 2), (1, 3) ON CONFLICT (id) DO NOTHING", "1 rows"),
            (
                "INSERT INTO stock VALUES (8, 1) ON CONFLICT (quantity) DO NOTHING",
                "42P10: there is no unique or exclusion constraint matching the ON CONFLICT specification",
            ),
            ("SELECT id, quantity FROM stock ORDER BY id", "1 | 0\n2 | 7\n3 | 400\n5 | 50\n8 | 1"),
        ],
    );
}

#[test]
fn query_over_the_changed_table_that_would_see_the_change_is_refused() {
    let mut world = World::new(1);
    world.run(STOCK);
    world.run("CREATE TABLE other (id integer PRIMARY KEY); INSERT INTO other VALUES (1), (2)");
    let returning = "0A000: a query over the changed table in RETURNING is not supported";
    let conflict = "0A000: a query over the changed table in ON CONFLICT is not supported";
    check(
        &mut world,
        &[
            ("INSERT INTO stock VALUES (1, 1) RETURNING (SELECT count(*) FROM stock)", returning),
            ("UPDATE stock SET quantity = 2 RETURNING id IN (SELECT s.id FROM stock s)", returning),
            ("DELETE FROM stock RETURNING (SELECT count(*) FROM other, stock)", returning),
            ("INSERT INTO stock VALUES (1, 1) RETURNING (SELECT count(*) FROM other)", "2"),
            (
                "INSERT INTO stock VALUES (2, 1), (1, 1) ON CONFLICT (id) DO UPDATE \
                 SET quantity = (SELECT count(*) FROM stock)",
                conflict,
            ),
            (
                "INSERT INTO stock SELECT id, 1 FROM other ON CONFLICT (id) DO UPDATE \
                 SET quantity = 3 WHERE EXISTS (SELECT 1 FROM stock)",
                conflict,
            ),
            (
                "INSERT INTO stock VALUES (1, 1) ON CONFLICT (id) DO UPDATE \
                 SET quantity = (SELECT count(*) + 10 FROM stock) RETURNING quantity",
                "11",
            ),
        ],
    );
}
