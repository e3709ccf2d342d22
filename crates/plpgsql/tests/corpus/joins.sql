# Joins and subqueries inside functions.

statement ok
CREATE TABLE customer (id integer PRIMARY KEY, name varchar(10) NOT NULL, city varchar(10))

statement ok
CREATE TABLE orders (id integer PRIMARY KEY, customer integer NOT NULL, total numeric(8,2))

statement ok
CREATE TABLE line (orders integer, n integer, item text, price numeric(8,2), PRIMARY KEY (orders, n))

statement ok
CREATE INDEX orders_customer ON orders (customer)

statement count 4
INSERT INTO customer VALUES (1, 'ann', 'Rome'), (2, 'bob', 'Oslo'), (3, 'cid', NULL), (4, 'dan', 'Rome')

statement count 5
INSERT INTO orders VALUES (10, 1, 30), (11, 1, 12.5), (12, 2, 7), (13, 4, NULL), (14, 9, 1)

statement count 6
INSERT INTO line VALUES (10, 1, 'pen', 10), (10, 2, 'ink', 20), (11, 1, 'pen', 12.5), (12, 1, 'cup', 3), (12, 2, 'pen', 4), (13, 1, 'map', NULL)

statement ok
CREATE FUNCTION orders_of(p text) RETURNS TABLE (o integer, t numeric) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT x.id, x.total FROM orders x JOIN customer c ON c.id = x.customer WHERE c.name = p ORDER BY x.id;
END;
$$

query
SELECT * FROM orders_of('ann')
----
o integer | t numeric
10 | 30.00
11 | 12.50

query
SELECT * FROM orders_of('cid')
----
o integer | t numeric

statement ok
CREATE FUNCTION spent(p integer) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    v numeric;
BEGIN
    SELECT sum(l.price) INTO v FROM customer c, orders o, line l WHERE c.id = p AND o.customer = c.id AND l.orders = o.id;
    RETURN v;
END;
$$

query
SELECT spent(1), spent(2), spent(3), spent(4)
----
spent numeric | spent numeric | spent numeric | spent numeric
42.50 | 7.00 | NULL | NULL

statement ok
CREATE FUNCTION outer_join() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT c.name || ' ' || coalesce(o.id::text, 'none') FROM customer c LEFT JOIN orders o ON o.customer = c.id AND o.total > 10 ORDER BY c.id, o.id;
END;
$$

query
SELECT * FROM outer_join()
----
outer_join text
ann 10
ann 11
bob none
cid none
dan none

statement ok
CREATE FUNCTION full_join() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT coalesce(c.name, '?') || ' ' || count(o.id) FROM customer c FULL JOIN orders o ON o.customer = c.id GROUP BY c.id, c.name ORDER BY c.id NULLS LAST;
END;
$$

query
SELECT * FROM full_join()
----
full_join text
ann 2
bob 1
cid 0
dan 1
? 1

statement ok
CREATE FUNCTION using_join(p integer) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM line a JOIN line b USING (item) WHERE a.orders < b.orders AND a.orders >= p);
END;
$$

query
SELECT using_join(0), using_join(11)
----
using_join bigint | using_join bigint
3 | 1

statement ok
CREATE FUNCTION self_join() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT a.name || '-' || b.name FROM customer a JOIN customer b ON a.city = b.city AND a.id < b.id ORDER BY 1;
END;
$$

query
SELECT * FROM self_join()
----
self_join text
ann-dan

statement ok
CREATE FUNCTION cross_join(p integer) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM customer CROSS JOIN orders WHERE customer.id <= p);
END;
$$

query
SELECT cross_join(2), cross_join(0)
----
cross_join bigint | cross_join bigint
10 | 0

statement ok
CREATE FUNCTION short_items(p_last integer, p_below numeric) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v bigint;
BEGIN
    SELECT count(DISTINCT item) INTO v FROM line JOIN orders ON orders.id = line.orders WHERE orders.id > p_last - 3 AND orders.id <= p_last AND price < p_below;
    RETURN v;
END;
$$

query
SELECT short_items(12, 15), short_items(12, 5), short_items(99, 100)
----
short_items bigint | short_items bigint | short_items bigint
2 | 2 | 0

# Subqueries.

statement ok
CREATE FUNCTION subqueries(p text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v text;
BEGIN
    CASE p
        WHEN 'in' THEN SELECT string_agg(name, ',' ORDER BY id) INTO v FROM customer WHERE id IN (SELECT customer FROM orders WHERE total > 5);
        WHEN 'not in' THEN SELECT string_agg(name, ',' ORDER BY id) INTO v FROM customer WHERE id NOT IN (SELECT customer FROM orders);
        WHEN 'exists' THEN SELECT string_agg(name, ',' ORDER BY id) INTO v FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id);
        WHEN 'not exists' THEN SELECT string_agg(name, ',' ORDER BY id) INTO v FROM customer c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.total IS NOT NULL);
        WHEN 'scalar' THEN SELECT string_agg(id::text, ',' ORDER BY id) INTO v FROM orders WHERE total = (SELECT max(total) FROM orders);
        WHEN 'correlated' THEN SELECT string_agg(o.id::text, ',' ORDER BY o.id) INTO v FROM orders o WHERE o.total = (SELECT sum(l.price) FROM line l WHERE l.orders = o.id);
        WHEN 'from' THEN SELECT string_agg(n || '*' || c, ',' ORDER BY n) INTO v FROM (SELECT item AS n, count(*) AS c FROM line GROUP BY item) AS s WHERE c > 1 OR n < 'i';
        WHEN 'any' THEN SELECT string_agg(id::text, ',' ORDER BY id) INTO v FROM orders WHERE total > ANY (SELECT price FROM line WHERE orders = 12);
        WHEN 'all' THEN SELECT string_agg(id::text, ',' ORDER BY id) INTO v FROM orders WHERE total >= ALL (SELECT price FROM line WHERE orders = 12);
        WHEN 'null' THEN SELECT string_agg(name, ',' ORDER BY id) INTO v FROM customer WHERE city NOT IN (SELECT city FROM customer WHERE id = 3);
    END CASE;
    RETURN coalesce(v, '-');
END;
$$

query
SELECT subqueries('in'), subqueries('not in'), subqueries('exists'), subqueries('not exists'), subqueries('scalar')
----
subqueries text | subqueries text | subqueries text | subqueries text | subqueries text
ann,bob | cid | ann,bob,dan | cid,dan | 10

query
SELECT subqueries('correlated'), subqueries('from'), subqueries('any'), subqueries('all'), subqueries('null')
----
subqueries text | subqueries text | subqueries text | subqueries text | subqueries text
10,11,12 | cup*1,pen*3 | 10,11,12 | 10,11,12 | -

statement ok
CREATE FUNCTION count_for_each() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT c.name || ' ' || (SELECT count(*) FROM orders o WHERE o.customer = c.id) FROM customer c ORDER BY c.id;
END;
$$

query
SELECT * FROM count_for_each()
----
count_for_each text
ann 2
bob 1
cid 0
dan 1

# Changes that depend on other tables.

statement ok
CREATE FUNCTION settle() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    UPDATE orders o SET total = (SELECT sum(price) FROM line l WHERE l.orders = o.id) WHERE EXISTS (SELECT 1 FROM line l WHERE l.orders = o.id);
    GET DIAGNOSTICS n = ROW_COUNT;
    DELETE FROM orders WHERE customer NOT IN (SELECT id FROM customer);
    RETURN n;
END;
$$

query
SELECT settle()
----
settle integer
4

query
SELECT * FROM orders ORDER BY id
----
id integer | customer integer | total numeric(8,2)
10 | 1 | 30.00
11 | 1 | 12.50
12 | 2 | 7.00
13 | 4 | NULL

statement ok
CREATE FUNCTION from_other_table(p numeric) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    UPDATE orders o SET total = o.total * p FROM customer c WHERE c.id = o.customer AND c.city = 'Rome';
    GET DIAGNOSTICS n = ROW_COUNT;
    DELETE FROM line l USING orders o WHERE l.orders = o.id AND o.total IS NULL;
    RETURN n;
END;
$$

query
SELECT from_other_table(2)
----
from_other_table integer
3

query
SELECT * FROM orders ORDER BY id
----
id integer | customer integer | total numeric(8,2)
10 | 1 | 60.00
11 | 1 | 25.00
12 | 2 | 7.00
13 | 4 | NULL

query
SELECT * FROM line ORDER BY orders, n
----
orders integer | n integer | item text | price numeric(8,2)
10 | 1 | pen | 10.00
10 | 2 | ink | 20.00
11 | 1 | pen | 12.50
12 | 1 | cup | 3.00
12 | 2 | pen | 4.00
