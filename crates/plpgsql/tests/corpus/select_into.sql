# SELECT INTO with no row, one, many; STRICT.

statement ok
CREATE TABLE t (id integer PRIMARY KEY, a integer, b text)

statement count 3
INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 20, NULL)

statement ok
CREATE FUNCTION plain(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x integer := -1;
    y text := 'before';
BEGIN
    SELECT a, b INTO x, y FROM t WHERE id = p;
    RETURN coalesce(x::text, 'null') || ' ' || coalesce(y, 'null') || ' ' || FOUND;
END;
$$

query
SELECT plain(1), plain(3), plain(9), plain(NULL)
----
plain text | plain text | plain text | plain text
10 one true | 20 null true | null null false | null null false

statement ok
CREATE FUNCTION first_of_many() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x integer;
BEGIN
    SELECT id INTO x FROM t ORDER BY id DESC;
    RETURN x || ' ' || FOUND;
END;
$$

query
SELECT first_of_many()
----
first_of_many text
3 true

statement ok
CREATE FUNCTION strictly(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x integer;
BEGIN
    SELECT id INTO STRICT x FROM t WHERE a = p;
    RETURN x;
END;
$$

query
SELECT strictly(10)
----
strictly text
1

statement error P0002
SELECT strictly(11)

statement error P0003
SELECT strictly(20)

statement ok
CREATE FUNCTION strictly_handled(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x integer := -5;
BEGIN
    SELECT id INTO STRICT x FROM t WHERE a = p;
    RETURN 'one: ' || x;
EXCEPTION
    WHEN no_data_found THEN
        RETURN 'none: ' || coalesce(x::text, 'null');
    WHEN too_many_rows THEN
        RETURN 'many: ' || coalesce(x::text, 'null');
END;
$$

query
SELECT strictly_handled(10), strictly_handled(11), strictly_handled(20)
----
strictly_handled text | strictly_handled text | strictly_handled text
one: 1 | none: -5 | many: -5

statement ok
CREATE FUNCTION into_at_other_places(OUT p integer, OUT q integer, OUT r integer) LANGUAGE plpgsql AS $$
BEGIN
    SELECT INTO p id FROM t WHERE id = 1;
    SELECT id FROM t WHERE id = 2 INTO q;
    SELECT id FROM t INTO r ORDER BY id DESC LIMIT 1;
END;
$$

query
SELECT * FROM into_at_other_places()
----
p integer | q integer | r integer
1 | 2 | 3

statement ok
CREATE FUNCTION into_row_and_record() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    w t%ROWTYPE;
    r RECORD;
BEGIN
    SELECT * INTO w FROM t WHERE id = 1;
    SELECT *, a + id AS c INTO r FROM t WHERE id = 2;
    RETURN w.b || r.b || r.c;
END;
$$

query
SELECT into_row_and_record()
----
into_row_and_record text
onetwo22

statement ok
CREATE FUNCTION into_record_without_row() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
BEGIN
    SELECT * INTO r FROM t WHERE id = 99;
    RETURN coalesce(r.b, 'null') || (r.id IS NULL) || FOUND;
END;
$$

query
SELECT into_record_without_row()
----
into_record_without_row text
nulltruefalse

statement ok
CREATE FUNCTION into_fields() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    w t%ROWTYPE;
BEGIN
    SELECT id, b INTO w.a, w.b FROM t WHERE id = 2;
    RETURN coalesce(w.id::text, 'null') || w.a || w.b;
END;
$$

query
SELECT into_fields()
----
into_fields text
null2two

statement ok
CREATE FUNCTION into_converts(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x text;
    y numeric(6,2);
    z smallint;
BEGIN
    SELECT a, a, a * p INTO x, y, z FROM t WHERE id = 1;
    RETURN x || ' ' || y || ' ' || z;
END;
$$

query
SELECT into_converts(2)
----
into_converts text
10 10.00 20

statement error 22003
SELECT into_converts(10000)

statement ok
CREATE FUNCTION into_aggregates(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
    s bigint;
    m text;
BEGIN
    SELECT count(*), sum(a), max(b) INTO STRICT n, s, m FROM t WHERE id > p;
    RETURN n || ' ' || coalesce(s::text, 'null') || ' ' || coalesce(m, 'null') || ' ' || FOUND;
END;
$$

query
SELECT into_aggregates(0), into_aggregates(2), into_aggregates(9)
----
into_aggregates text | into_aggregates text | into_aggregates text
3 50 two true | 1 20 null true | 0 null null true

statement ok
CREATE FUNCTION without_from(p integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    x integer;
    y integer;
BEGIN
    SELECT p + 1, p * 2 INTO x, y;
    RETURN x * y;
END;
$$

query
SELECT without_from(3)
----
without_from integer
24

statement ok
CREATE FUNCTION assigned_query(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x integer;
BEGIN
    x := (SELECT a FROM t WHERE id = p);
    RETURN coalesce(x::text, 'null');
END;
$$

query
SELECT assigned_query(2), assigned_query(77)
----
assigned_query text | assigned_query text
20 | null

statement ok
CREATE FUNCTION assigned_many() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    x integer;
BEGIN
    x := (SELECT a FROM t);
    RETURN x;
END;
$$

statement error 21000
SELECT assigned_many()

statement ok
CREATE FUNCTION old_value_in_query() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    x integer := 1;
BEGIN
    SELECT id + x INTO x FROM t WHERE id = x;
    SELECT a INTO x FROM t WHERE id = x;
    RETURN x;
END;
$$

query
SELECT old_value_in_query()
----
old_value_in_query integer
20

statement ok
CREATE FUNCTION select_without_into() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    SELECT a FROM t;
    RETURN 1;
END;
$$

statement error 42601
SELECT select_without_into()
