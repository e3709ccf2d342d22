# RETURN: scalars, OUT parameters, rows, nothing.

statement ok
CREATE FUNCTION scalar(p integer) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN p * 2;
END;
$$

query
SELECT scalar(21), scalar(NULL)
----
scalar bigint | scalar bigint
42 | NULL

statement ok
CREATE FUNCTION missing_return(p integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF p > 0 THEN
        RETURN p;
    END IF;
END;
$$

query
SELECT missing_return(1)
----
missing_return integer
1

statement error 2F005
SELECT missing_return(0)

statement ok
CREATE FUNCTION nothing() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RETURN;
END;
$$

query
SELECT nothing()
----
nothing void
(empty)

statement error 42804
CREATE FUNCTION void_with_value() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RETURN 1;
END;
$$

statement error 42601
CREATE FUNCTION scalar_without_value() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN;
END;
$$

statement ok
CREATE FUNCTION one_out(p integer, OUT q integer) LANGUAGE plpgsql AS $$
BEGIN
    q := p + 1;
END;
$$

query
SELECT one_out(1)
----
one_out integer
2

query
SELECT q + 10 AS r FROM one_out(1)
----
r integer
12

statement ok
CREATE FUNCTION several_out(p integer, OUT q integer, INOUT r text, OUT s numeric(5,1)) LANGUAGE plpgsql AS $$
BEGIN
    q := p * 2;
    IF p = 0 THEN
        RETURN;
    END IF;
    r := r || p;
    s := p / 3.0;
END;
$$

query
SELECT * FROM several_out(1, 'x')
----
q integer | r text | s numeric
2 | x1 | 0.33333333333333333333

query
SELECT s, q FROM several_out(0, 'x')
----
s numeric | q integer
NULL | 0

query
SELECT several_out(2, 'y')
----
several_out record
(4,y2,0.66666666666666666667)

statement error 42804
CREATE FUNCTION out_with_value(OUT q integer) LANGUAGE plpgsql AS $$
BEGIN
    RETURN 1;
END;
$$

statement error 42P13
CREATE FUNCTION out_of_other_type(OUT q integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    q := 1;
END;
$$

statement ok
CREATE TABLE t (id integer PRIMARY KEY, a integer, b text)

statement count 3
INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, NULL, NULL)

statement ok
CREATE FUNCTION row_of_table(p integer) RETURNS t LANGUAGE plpgsql AS $$
DECLARE
    r t%ROWTYPE;
BEGIN
    SELECT * INTO r FROM t WHERE id = p;
    r.a := coalesce(r.a, -1);
    RETURN r;
END;
$$

query
SELECT * FROM row_of_table(2)
----
id integer | a integer | b text
2 | 20 | two

query
SELECT * FROM row_of_table(3)
----
id integer | a integer | b text
3 | -1 | NULL

query
SELECT b, a FROM row_of_table(1) WHERE id = 1
----
b text | a integer
one | 10

# Sets.

statement ok
CREATE FUNCTION numbers(n integer) RETURNS SETOF integer LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..n LOOP
        CONTINUE WHEN i % 3 = 0;
        RETURN NEXT i;
    END LOOP;
END;
$$

query
SELECT * FROM numbers(7)
----
numbers integer
1
2
4
5
7

query
SELECT * FROM numbers(0)
----
numbers integer

query
SELECT n, n * n AS square FROM numbers(5) AS s (n) WHERE n > 1
----
n integer | square integer
2 | 4
4 | 16
5 | 25

query
SELECT sum(n), count(*) FROM numbers(100) AS s (n)
----
sum bigint | count bigint
3367 | 67

statement ok
CREATE FUNCTION stopped() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEXT 'a';
    RETURN NEXT NULL;
    RETURN NEXT 'c';
    RETURN;
    RETURN NEXT 'never';
END;
$$

query
SELECT * FROM stopped()
----
stopped text
a
NULL
c

statement ok
CREATE FUNCTION pairs(n integer) RETURNS TABLE (i integer, word text) LANGUAGE plpgsql AS $$
BEGIN
    FOR k IN 1..n LOOP
        i := k;
        word := repeat('x', k);
        RETURN NEXT;
    END LOOP;
END;
$$

query
SELECT * FROM pairs(3)
----
i integer | word text
1 | x
2 | xx
3 | xxx

query
SELECT word FROM pairs(4) WHERE i > 2 ORDER BY i DESC
----
word text
xxxx
xxx

query
SELECT t.id, p.word FROM t JOIN pairs(2) AS p ON p.i = t.id ORDER BY t.id
----
id integer | word text
1 | x
2 | xx

statement ok
CREATE FUNCTION rows_of_query(p integer) RETURNS TABLE (key integer, label text) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT id, b FROM t WHERE id >= p ORDER BY id;
    IF NOT FOUND THEN
        RETURN QUERY SELECT -1, 'none'::text;
    END IF;
    RETURN QUERY VALUES (100, 'last');
END;
$$

query
SELECT * FROM rows_of_query(2)
----
key integer | label text
2 | two
3 | NULL
100 | last

query
SELECT * FROM rows_of_query(9)
----
key integer | label text
-1 | none
100 | last

statement ok
CREATE FUNCTION rows_and_count(OUT n integer) RETURNS SETOF integer LANGUAGE plpgsql AS $$
DECLARE
    c integer;
BEGIN
    RETURN QUERY SELECT id FROM t ORDER BY id DESC;
    GET DIAGNOSTICS c = ROW_COUNT;
    n := c * 100;
    RETURN NEXT;
END;
$$

query
SELECT * FROM rows_and_count()
----
n integer
3
2
1
300

statement ok
CREATE FUNCTION whole_rows() RETURNS SETOF t LANGUAGE plpgsql AS $$
DECLARE
    r t%ROWTYPE;
BEGIN
    FOR r IN SELECT * FROM t ORDER BY id LOOP
        r.id := r.id + 10;
        RETURN NEXT r;
    END LOOP;
    RETURN QUERY SELECT * FROM t WHERE id = 1;
END;
$$

query
SELECT * FROM whole_rows()
----
id integer | a integer | b text
11 | 10 | one
12 | 20 | two
13 | NULL | NULL
1 | 10 | one

statement ok
CREATE FUNCTION query_of_wrong_type() RETURNS TABLE (x integer) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT 'a'::text;
END;
$$

statement error 42804
SELECT * FROM query_of_wrong_type()

statement ok
CREATE FUNCTION returning_query() RETURNS SETOF integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY UPDATE t SET a = coalesce(a, 0) + 1 RETURNING a;
END;
$$

query
SELECT count(*), sum(x) FROM returning_query() AS r (x)
----
count bigint | sum bigint
3 | 33

query
SELECT * FROM t ORDER BY id
----
id integer | a integer | b text
1 | 11 | one
2 | 21 | two
3 | 1 | NULL

# An error after some rows gives none.

statement ok
CREATE FUNCTION fails_after_rows() RETURNS SETOF integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEXT 1;
    UPDATE t SET a = 0;
    RETURN NEXT 1 / (SELECT min(a) FROM t);
END;
$$

statement error 22012
SELECT * FROM fails_after_rows()

query
SELECT * FROM t ORDER BY id
----
id integer | a integer | b text
1 | 11 | one
2 | 21 | two
3 | 1 | NULL

# Rows returned by a block whose error is handled are returned all the same.

statement ok
CREATE FUNCTION rows_of_failed_block() RETURNS SETOF integer LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        RETURN NEXT 1;
        RAISE EXCEPTION 'x';
    EXCEPTION WHEN OTHERS THEN
        RETURN NEXT 2;
    END;
    RETURN NEXT 3;
END;
$$

query
SELECT * FROM rows_of_failed_block()
----
rows_of_failed_block integer
1
2
3

statement error 42804
CREATE FUNCTION next_of_scalar() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEXT 1;
END;
$$

statement ok
CREATE FUNCTION returned_text(p text) RETURNS varchar(3) LANGUAGE plpgsql AS $$ BEGIN RETURN p; END; $$

query
SELECT returned_text('abcdef')
----
returned_text character varying
abcdef
