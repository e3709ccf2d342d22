//! SELECT.

use super::{World, check};
use albireo_semantics::types::Scalar;

const SALES: &str = "
CREATE TABLE sale (id integer PRIMARY KEY, region varchar(5), product integer, amount numeric(8,2), units integer);
INSERT INTO sale VALUES (1, 'north', 1, 10.00, 1), (2, 'north', 2, 20.50, 2), (3, 'south', 1, 5.25, NULL),
    (4, 'south', 3, NULL, 4), (5, 'east', 1, 100.00, 10), (6, NULL, 2, 1.00, 1), (7, 'north', 1, 30.00, 3),
    (8, 'east', 3, 0.01, 0);
CREATE INDEX sale_region ON sale (region, product)";

const SHOP: &str = "
CREATE TABLE customer (id integer PRIMARY KEY, name varchar(10) NOT NULL, city varchar(10));
CREATE TABLE orders (id integer PRIMARY KEY, customer integer NOT NULL, total numeric(8,2));
CREATE TABLE line (orders integer, n integer, item text, price numeric(8,2), PRIMARY KEY (orders, n));
CREATE INDEX orders_customer ON orders (customer);
INSERT INTO customer VALUES (1, 'ann', 'Rome'), (2, 'bob', 'Oslo'), (3, 'cid', NULL), (4, 'dan', 'Rome');
INSERT INTO orders VALUES (10, 1, 30), (11, 1, 12.5), (12, 2, 7), (13, 4, NULL), (14, 9, 1);
INSERT INTO line VALUES (10, 1, 'pen', 10), (10, 2, 'ink', 20), (11, 1, 'pen', 12.5), (12, 1, 'cup', 3),
    (12, 2, 'pen', 4), (13, 1, 'map', NULL)";

fn world(text: &str) -> World {
    let mut world = World::new(1);
    let result = world.run(text);
    assert!(result.ends_with("rows") || result.starts_with("CREATE"), "{result}");
    world
}

#[test]
fn filters_order_and_limits_give_postgres_rows() {
    let mut world = world(SALES);
    world.variable("p", Scalar::Text, "north");
    check(
        &mut world,
        &[
            ("SELECT id, amount FROM sale WHERE region = p ORDER BY id", "1 | 10.00\n2 | 20.50\n7 | 30.00"),
            ("SELECT id FROM sale ORDER BY amount DESC, id LIMIT 3", "4\n5\n7"),
            ("SELECT id FROM sale ORDER BY amount NULLS FIRST LIMIT 2", "4\n8"),
            ("SELECT id FROM sale ORDER BY id DESC LIMIT 2 OFFSET 1", "7\n6"),
            ("SELECT id FROM sale WHERE id BETWEEN 3 AND 5 ORDER BY id", "3\n4\n5"),
            ("SELECT id FROM sale WHERE region IS NULL", "6"),
            ("SELECT id FROM sale WHERE region = NULL", ""),
            ("SELECT id x FROM sale WHERE units > 3 ORDER BY x DESC", "5\n4"),
            ("SELECT product p2, id FROM sale WHERE id < 4 ORDER BY 1, 2 DESC", "1 | 3\n1 | 1\n2 | 2"),
            ("SELECT DISTINCT region FROM sale ORDER BY region", "east\nnorth\nsouth\nNULL"),
            (
                "SELECT DISTINCT ON (region) region, id FROM sale ORDER BY region, id DESC",
                "east | 8\nnorth | 7\nsouth | 4\nNULL | 6",
            ),
            ("SELECT 1 LIMIT 0", ""),
            ("SELECT id FROM sale LIMIT -1", "2201W: LIMIT must not be negative"),
            ("SELECT id FROM sale ORDER BY 2", "42P10: ORDER BY position 2 is not in select list at 30"),
            ("SELECT id FROM sale LIMIT 1 FOR UPDATE", "1"),
        ],
    );
}

#[test]
fn aggregates_give_postgres_values() {
    let mut world = world(SALES);
    check(
        &mut world,
        &[
            (
                "SELECT count(*), count(units), sum(amount), min(amount), max(amount), avg(units), sum(units)
                 FROM sale WHERE region = 'north'",
                "3 | 3 | 60.50 | 10.00 | 30.00 | 2.0000000000000000 | 6",
            ),
            (
                "SELECT count(*), count(units), sum(amount), min(amount), avg(units) FROM sale WHERE region = 'west'",
                "0 | 0 | NULL | NULL | NULL",
            ),
            ("SELECT count(DISTINCT product) FROM sale", "3"),
            (
                "SELECT region, count(*), sum(amount) FROM sale WHERE product <= 2 GROUP BY region
                 ORDER BY region NULLS FIRST",
                "NULL | 1 | 1.00\neast | 1 | 100.00\nnorth | 3 | 60.50\nsouth | 1 | 5.25",
            ),
            ("SELECT region FROM sale WHERE id = 0 GROUP BY region", ""),
            (
                "SELECT region || ' ' || sum(units) FROM sale GROUP BY region HAVING count(*) >= 2
                 ORDER BY sum(units) DESC, region",
                "east 10\nnorth 6\nsouth 4",
            ),
            (
                "SELECT product % 2, count(*), product % 2 + 1 FROM sale GROUP BY product % 2 ORDER BY 1",
                "0 | 2 | 1\n1 | 6 | 2",
            ),
            (
                "SELECT count(*) FILTER (WHERE units > 1), bool_or(units = 0), bool_and(units < 100),
                 string_agg(region, ',' ORDER BY id), array_agg(id ORDER BY id DESC) FROM sale",
                "4 | t | t | north,north,south,south,east,north,east | {8,7,6,5,4,3,2,1}",
            ),
            ("SELECT max(id), min(id) FROM sale", "8 | 1"),
            ("SELECT min(id) FROM sale WHERE id > 2", "3"),
            ("SELECT max(product) FROM sale WHERE region = 'north'", "2"),
            ("SELECT max(region) FROM sale", "south"),
            ("SELECT id, amount FROM sale GROUP BY id ORDER BY id LIMIT 1", "1 | 10.00"),
            (
                "SELECT region, id FROM sale GROUP BY region",
                "42803: column \"sale.id\" must appear in the GROUP BY clause or be used in an aggregate \
                 function at 16",
            ),
            (
                "SELECT id FROM sale WHERE count(*) > 1",
                "42803: aggregate functions are not allowed in WHERE at 27",
            ),
            ("SELECT sum(count(*)) FROM sale", "42803: aggregate function calls cannot be nested at 12"),
            ("SELECT sum(region) FROM sale", "42883: function sum(text) does not exist at 8"),
            ("SELECT count(*) + 1 AS n FROM sale HAVING count(*) > 100", ""),
        ],
    );
    let types = "SELECT count(*), sum(units), sum(amount), avg(units), max(amount), sum(sum_), region
        FROM sale, (SELECT count(*) AS sum_ FROM sale) t GROUP BY region";
    assert_eq!(
        world.columns(types),
        "count bigint | sum bigint | sum numeric | avg numeric | max numeric | sum numeric | region text"
    );
}

#[test]
fn joins_give_postgres_rows() {
    let mut world = world(SHOP);
    world.variable("p", Scalar::Integer, 1);
    check(
        &mut world,
        &[
            (
                "SELECT x.id, x.total FROM orders x JOIN customer c ON c.id = x.customer WHERE c.name = 'ann'
                 ORDER BY x.id",
                "10 | 30.00\n11 | 12.50",
            ),
            (
                "SELECT sum(l.price) FROM customer c, orders o, line l
                 WHERE c.id = p AND o.customer = c.id AND l.orders = o.id",
                "42.50",
            ),
            (
                "SELECT c.name, o.id FROM customer c LEFT JOIN orders o ON o.customer = c.id AND o.total > 10
                 ORDER BY c.name, o.id",
                "ann | 10\nann | 11\nbob | NULL\ncid | NULL\ndan | NULL",
            ),
            (
                "SELECT c.name FROM customer c LEFT JOIN orders o ON o.customer = c.id WHERE o.id IS NULL",
                "cid",
            ),
            (
                "SELECT o.id, c.name FROM customer c RIGHT JOIN orders o ON o.customer = c.id ORDER BY 1",
                "10 | ann\n11 | ann\n12 | bob\n13 | dan\n14 | NULL",
            ),
            (
                "SELECT c.id, l.item FROM customer c LEFT JOIN (orders o JOIN line l ON l.orders = o.id AND l.n = 2)
                 ON o.customer = c.id ORDER BY 1, 2",
                "1 | ink\n2 | pen\n3 | NULL\n4 | NULL",
            ),
            (
                "SELECT a.name, b.name FROM customer a JOIN customer b USING (city) WHERE a.id < b.id",
                "ann | dan",
            ),
            ("SELECT count(*) FROM customer CROSS JOIN orders", "20"),
            ("SELECT * FROM customer NATURAL JOIN (SELECT 2 AS id) t", "2 | bob | Oslo"),
            (
                "SELECT a.item, b.price FROM line a, line b WHERE a.item = b.item AND a.orders < b.orders
                 ORDER BY a.orders, b.orders",
                "pen | 12.50\npen | 4.00\npen | 4.00",
            ),
            ("SELECT id FROM customer, orders", "42702: column reference \"id\" is ambiguous at 8"),
            ("SELECT customer.id FROM customer c", "42P01: invalid reference to FROM-clause entry for table \"customer\" at 8"),
            ("SELECT c.nam FROM customer c", "42703: column c.nam does not exist at 8"),
            ("SELECT nam FROM customer c", "42703: column \"nam\" does not exist at 8"),
            ("SELECT 1 FROM customer, customer", "42712: table name \"customer\" specified more than once"),
            ("SELECT 1 FROM missing", "42P01: relation \"missing\" does not exist at 15"),
        ],
    );
}

#[test]
fn subqueries_ctes_and_sets_give_postgres_rows() {
    let mut world = world(SHOP);
    check(
        &mut world,
        &[
            (
                "SELECT name, (SELECT count(*) FROM orders o WHERE o.customer = c.id) FROM customer c ORDER BY 1",
                "ann | 2\nbob | 1\ncid | 0\ndan | 1",
            ),
            (
                "SELECT name FROM customer c WHERE EXISTS (SELECT 1 FROM orders WHERE customer = c.id AND total > 20)",
                "ann",
            ),
            ("SELECT name FROM customer WHERE id = (SELECT max(customer) FROM orders WHERE id < 14)", "dan"),
            (
                "WITH big AS (SELECT * FROM orders WHERE total >= 12.5), names (i, n) AS (SELECT id, name FROM customer)
                 SELECT n, total FROM big JOIN names ON i = customer ORDER BY total",
                "ann | 12.50\nann | 30.00",
            ),
            ("SELECT 1 UNION SELECT 2 UNION SELECT 1 ORDER BY 1 DESC", "2\n1"),
            ("SELECT 1 AS x UNION ALL SELECT 1.5 ORDER BY x", "1\n1.5"),
            ("SELECT id FROM customer INTERSECT SELECT customer FROM orders ORDER BY id", "1\n2\n4"),
            ("SELECT id FROM customer EXCEPT SELECT customer FROM orders", "3"),
            ("VALUES (1, 'a'), (2, NULL) ORDER BY column1 DESC", "2 | NULL\n1 | a"),
            ("SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t (n, s) WHERE n = 2", "2 | b"),
            ("SELECT i * 2 FROM generate_series(1, 3) AS i", "2\n4\n6"),
            ("SELECT sum(g) FROM generate_series(10, 1, -3) g", "22"),
            ("SELECT NULL UNION SELECT 1 ORDER BY 1", "1\nNULL"),
            ("SELECT 'a' UNION SELECT 1", "22P02: invalid input syntax for type integer: \"a\" at 8"),
            (
                "SELECT 1, 2 UNION SELECT 1",
                "42601: each UNION query must have the same number of columns at 26",
            ),
        ],
    );
}

#[test]
fn inner_queries_see_what_is_around_them() {
    let mut world = world(SHOP);
    world.variable("total", Scalar::Integer, 7);
    check(
        &mut world,
        &[
            ("SELECT id FROM orders WHERE total > 5", "42702: column reference \"total\" is ambiguous at 29"),
            ("SELECT o.id FROM orders o WHERE o.total > 10 ORDER BY 1", "10\n11"),
            (
                "SELECT name FROM customer WHERE id IN (SELECT customer FROM orders) ORDER BY id",
                "ann\nbob\ndan",
            ),
            ("SELECT name FROM customer WHERE id NOT IN (SELECT customer FROM orders) ORDER BY id", "cid"),
            (
                "SELECT c.name, (SELECT sum((SELECT count(*) FROM line l WHERE l.orders = o.id AND c.id > 1))
                 FROM orders o WHERE o.customer = c.id) FROM customer c ORDER BY c.id",
                "ann | 0\nbob | 2\ncid | NULL\ndan | 1",
            ),
            (
                "SELECT x.n FROM (SELECT c.name AS n, count(o.id) AS k FROM customer c LEFT JOIN orders o
                 ON o.customer = c.id GROUP BY c.id) x WHERE x.k = 1 ORDER BY n",
                "bob\ndan",
            ),
            (
                "SELECT (SELECT max(x) FROM (VALUES (c.id), (2)) v (x)) FROM customer c ORDER BY c.id",
                "2\n2\n3\n4",
            ),
            (
                "SELECT (SELECT id FROM customer)",
                "21000: more than one row returned by a subquery used as an expression",
            ),
            ("SELECT ARRAY(SELECT id FROM customer ORDER BY id DESC)", "{4,3,2,1}"),
            ("SELECT (1, 'ann') = (SELECT id, name FROM customer WHERE id = 1)", "t"),
            ("SELECT (1, 'bob') < (SELECT id, name FROM customer WHERE id = 1)", "f"),
            ("SELECT (1, 'ann') = (SELECT id, name FROM customer WHERE id = 100)", "NULL"),
            (
                "SELECT (1, 'ann') = (SELECT id, name FROM customer)",
                "21000: more than one row returned by a subquery used as an expression",
            ),
            ("SELECT (SELECT sum(c.id)) FROM customer c", "10"),
            ("SELECT city, (SELECT max(c.id) FROM orders LIMIT 1) FROM customer c GROUP BY city ORDER BY 2", "Oslo | 2\nNULL | 3\nRome | 4"),
            (
                "SELECT 1 FROM customer FULL JOIN orders USING (id)",
                "0A000: FULL JOIN in a procedure is not supported",
            ),
            (
                "SELECT 1 FROM customer c, LATERAL (SELECT c.id) l",
                "0A000: LATERAL in a procedure is not supported",
            ),
            (
                "SELECT rank() OVER (ORDER BY id) FROM customer",
                "0A000: a window function in a procedure is not supported",
            ),
            (
                "SELECT city FROM customer GROUP BY ROLLUP (city)",
                "0A000: grouping sets in a procedure is not supported",
            ),
            (
                "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT n FROM r LIMIT 3",
                "0A000: WITH RECURSIVE in a procedure is not supported",
            ),
            ("SELECT stddev(id) FROM customer", "1.2909944487358056"),
            ("SELECT unnest FROM unnest(ARRAY[3, 1, 2]) ORDER BY 1", "1\n2\n3"),
            ("SELECT c.id, g FROM customer c, generate_series(1, c.id) g WHERE c.id = 2", "2 | 1\n2 | 2"),
            (
                "SELECT count(*), city FROM customer GROUP BY city HAVING count(*) > 1 OR city IS NULL ORDER BY 1",
                "1 | NULL\n2 | Rome",
            ),
            (
                "SELECT id FROM customer UNION SELECT id FROM orders ORDER BY id + 1",
                "0A000: invalid UNION/INTERSECT/EXCEPT ORDER BY clause at 62",
            ),
            (
                "SELECT DISTINCT id FROM customer ORDER BY name",
                "42P10: for SELECT DISTINCT, ORDER BY expressions must appear in select list at 43",
            ),
            ("SELECT c FROM customer c WHERE id = 1", "(1,ann,Rome)"),
            (
                "SELECT g, o.id FROM generate_series(10, 12) g LEFT JOIN customer c ON c.id = g - 10
                 LEFT JOIN orders o ON o.customer = c.id AND o.id = g + 1 ORDER BY 1",
                "10 | NULL\n11 | NULL\n12 | NULL",
            ),
            (
                "SELECT count(*), count(c.id), count(l.n) FROM orders o LEFT JOIN customer c ON c.id = o.customer
                 LEFT JOIN line l ON l.orders = o.id AND l.price > 4 WHERE o.id > 10",
                "4 | 3 | 1",
            ),
        ],
    );
}
