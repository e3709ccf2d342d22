# Queries inside functions: filters, aggregates, GROUP BY, ORDER BY, LIMIT, DISTINCT.

statement ok
CREATE TABLE sale (id integer PRIMARY KEY, region varchar(5), product integer, amount numeric(8,2), units integer)

statement count 8
INSERT INTO sale VALUES (1, 'north', 1, 10.00, 1), (2, 'north', 2, 20.50, 2), (3, 'south', 1, 5.25, NULL), (4, 'south', 3, NULL, 4), (5, 'east', 1, 100.00, 10), (6, NULL, 2, 1.00, 1), (7, 'north', 1, 30.00, 3), (8, 'east', 3, 0.01, 0)

statement ok
CREATE INDEX sale_region ON sale (region, product)

statement ok
CREATE FUNCTION aggregates(p text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
BEGIN
    SELECT count(*) AS n, count(units) AS u, sum(amount) AS s, min(amount) AS lo, max(amount) AS hi, avg(units) AS a, sum(units) AS su INTO r FROM sale WHERE region = p;
    RETURN r.n || ' ' || r.u || ' ' || coalesce(r.s::text, '-') || ' ' || coalesce(r.lo::text, '-') || ' ' || coalesce(r.hi::text, '-') || ' ' || coalesce(round(r.a, 3)::text, '-') || ' ' || coalesce(r.su::text, '-');
END;
$$

query
SELECT aggregates('north'), aggregates('south'), aggregates('east'), aggregates('west'), aggregates(NULL)
----
aggregates text | aggregates text | aggregates text | aggregates text | aggregates text
3 3 60.50 10.00 30.00 2.000 6 | 2 1 5.25 5.25 5.25 4.000 4 | 2 2 100.01 0.01 100.00 5.000 10 | 0 0 - - - - - | 0 0 - - - - -

statement ok
CREATE FUNCTION distinct_products(p text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(DISTINCT product) FROM sale WHERE region = p);
END;
$$

query
SELECT distinct_products('north'), distinct_products('west')
----
distinct_products bigint | distinct_products bigint
2 | 0

statement ok
CREATE FUNCTION groups(p integer) RETURNS TABLE (r text, n bigint, total numeric) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT region::text, count(*), sum(amount) FROM sale WHERE product <= p GROUP BY region ORDER BY region NULLS FIRST;
END;
$$

query
SELECT * FROM groups(2)
----
r text | n bigint | total numeric
NULL | 1 | 1.00
east | 1 | 100.00
north | 3 | 60.50
south | 1 | 5.25

query
SELECT * FROM groups(0)
----
r text | n bigint | total numeric

statement ok
CREATE FUNCTION large_groups(p integer) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT region || ' ' || sum(units) FROM sale GROUP BY region HAVING count(*) >= p AND sum(units) > 3 ORDER BY sum(units) DESC, region;
END;
$$

query
SELECT * FROM large_groups(2)
----
large_groups text
east 10
north 6
south 4

query
SELECT * FROM large_groups(3)
----
large_groups text
north 6

statement ok
CREATE FUNCTION two_keys() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT coalesce(region, '?') || product || '=' || count(*) FROM sale GROUP BY region, product ORDER BY region, product;
END;
$$

query
SELECT * FROM two_keys()
----
two_keys text
east1=1
east3=1
north1=2
north2=1
south1=1
south3=1
?2=1

statement ok
CREATE FUNCTION filtered() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    a bigint;
    b numeric;
    c boolean;
    d text;
BEGIN
    SELECT count(*) FILTER (WHERE units > 1), sum(amount) FILTER (WHERE region = 'east'), bool_or(units = 0), string_agg(id::text, ',' ORDER BY id) FILTER (WHERE product = 1) INTO a, b, c, d FROM sale;
    RETURN a || ' ' || b || ' ' || c || ' ' || d;
END;
$$

query
SELECT filtered()
----
filtered text
4 100.01 true 1,3,5,7

statement ok
CREATE FUNCTION ordered(p text) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
    a integer[] := '{}';
BEGIN
    IF p = 'amount' THEN
        FOR r IN SELECT id FROM sale ORDER BY amount, id LOOP
            a := a || r.id;
        END LOOP;
    ELSIF p = 'amount desc' THEN
        FOR r IN SELECT id FROM sale ORDER BY amount DESC, id LOOP
            a := a || r.id;
        END LOOP;
    ELSIF p = 'last' THEN
        FOR r IN SELECT id FROM sale ORDER BY amount DESC NULLS LAST, id DESC LOOP
            a := a || r.id;
        END LOOP;
    ELSE
        FOR r IN SELECT id, units * 2 AS double FROM sale ORDER BY double NULLS FIRST, region DESC, 1 LOOP
            a := a || r.id;
        END LOOP;
    END IF;
    RETURN a;
END;
$$

query
SELECT ordered('amount'), ordered('amount desc'), ordered('last'), ordered('')
----
ordered integer[] | ordered integer[] | ordered integer[] | ordered integer[]
{8,6,3,1,2,7,5,4} | {4,5,7,2,1,3,6,8} | {5,7,2,1,3,6,8,4} | {3,8,6,1,2,7,4,5}

statement ok
CREATE FUNCTION page(p_limit integer, p_offset integer) RETURNS SETOF integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT id FROM sale ORDER BY id LIMIT p_limit OFFSET p_offset;
END;
$$

query
SELECT * FROM page(3, 2)
----
page integer
3
4
5

query
SELECT * FROM page(0, 0)
----
page integer

query
SELECT * FROM page(NULL, 6)
----
page integer
7
8

query
SELECT * FROM page(5, 100)
----
page integer

statement error 2201W
SELECT * FROM page(-1, 0)

statement error 2201X
SELECT * FROM page(1, -1)

statement ok
CREATE FUNCTION distinct_rows() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT DISTINCT region::text FROM sale ORDER BY 1;
END;
$$

query
SELECT * FROM distinct_rows()
----
distinct_rows text
east
north
south
NULL

statement ok
CREATE FUNCTION conditions(p text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    CASE p
        WHEN 'range' THEN SELECT count(*) INTO n FROM sale WHERE id BETWEEN 2 AND 5;
        WHEN 'open' THEN SELECT count(*) INTO n FROM sale WHERE id > 2 AND id < 5;
        WHEN 'in' THEN SELECT count(*) INTO n FROM sale WHERE region IN ('north', 'east');
        WHEN 'not in' THEN SELECT count(*) INTO n FROM sale WHERE region NOT IN ('north', 'east');
        WHEN 'or' THEN SELECT count(*) INTO n FROM sale WHERE id = 1 OR product = 3 OR region IS NULL;
        WHEN 'null' THEN SELECT count(*) INTO n FROM sale WHERE units IS NULL OR amount IS NULL;
        WHEN 'like' THEN SELECT count(*) INTO n FROM sale WHERE region LIKE '%th';
        WHEN 'not' THEN SELECT count(*) INTO n FROM sale WHERE NOT (product = 1 AND units > 1);
        WHEN 'both' THEN SELECT count(*) INTO n FROM sale WHERE region = 'north' AND product = 1;
        WHEN 'expression' THEN SELECT count(*) INTO n FROM sale WHERE amount / units >= 10;
    END CASE;
    RETURN n;
END;
$$

query
SELECT conditions('range'), conditions('open'), conditions('in'), conditions('not in'), conditions('or')
----
conditions bigint | conditions bigint | conditions bigint | conditions bigint | conditions bigint
4 | 2 | 5 | 2 | 4

query
SELECT conditions('null'), conditions('like'), conditions('not'), conditions('both')
----
conditions bigint | conditions bigint | conditions bigint | conditions bigint
2 | 5 | 5 | 2

statement error 22012
SELECT conditions('expression')

# Variables of other types than the columns.

statement ok
CREATE FUNCTION other_types(a bigint, b smallint, c numeric, d text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM sale WHERE id = a) || ' ' || (SELECT count(*) FROM sale WHERE id = b) || ' ' || (SELECT count(*) FROM sale WHERE id = c) || ' ' || (SELECT count(*) FROM sale WHERE region = d);
END;
$$

query
SELECT other_types(1, 1::smallint, 1.0, 'north'), other_types(5000000000, 8::smallint, 1.5, 'north '), other_types(NULL, NULL, NULL, NULL)
----
other_types text | other_types text | other_types text
1 1 1 3 | 0 1 0 0 | 0 0 0 0

statement ok
CREATE FUNCTION sum_overflow(p integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v integer;
BEGIN
    SELECT sum(units) * p INTO v FROM sale;
    RETURN v;
END;
$$

query
SELECT sum_overflow(10)
----
sum_overflow integer
210

statement error 22003
SELECT sum_overflow(1000000000)

statement ok
CREATE FUNCTION set_operations() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
    s text := '';
BEGIN
    FOR r IN SELECT product AS x FROM sale WHERE region = 'north' UNION SELECT product FROM sale WHERE region = 'south' ORDER BY x LOOP
        s := s || r.x || ' ';
    END LOOP;
    FOR r IN SELECT 1 AS x UNION ALL SELECT 1 LOOP
        s := s || r.x || ' ';
    END LOOP;
    RETURN s;
END;
$$

query
SELECT set_operations()
----
set_operations text
1 2 3 1 1

statement ok
CREATE FUNCTION with_query(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v text;
BEGIN
    WITH best AS (SELECT region, sum(amount) AS total FROM sale WHERE amount IS NOT NULL GROUP BY region)
    SELECT region || ' ' || total INTO v FROM best WHERE total > p ORDER BY total DESC LIMIT 1;
    RETURN coalesce(v, 'none');
END;
$$

query
SELECT with_query(0), with_query(1000)
----
with_query text | with_query text
east 100.01 | none
