# LANGUAGE sql.

statement ok
CREATE TABLE t (id integer PRIMARY KEY, a integer, b text)

statement count 3
INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, NULL)

statement ok
CREATE FUNCTION add(a integer, b integer) RETURNS integer LANGUAGE sql AS $$ SELECT a + b $$

query
SELECT add(1, 2), add(1, NULL)
----
add integer | add integer
3 | NULL

statement error 22003
SELECT add(2147483647, 1)

statement ok
CREATE FUNCTION by_number(integer, text) RETURNS text LANGUAGE sql AS $$ SELECT $2 || $1 $$

query
SELECT by_number(1, 'x')
----
by_number text
x1

statement ok
CREATE FUNCTION one_value(p integer) RETURNS text LANGUAGE sql AS 'SELECT b FROM t WHERE id = p'

query
SELECT one_value(1), one_value(3), one_value(9)
----
one_value text | one_value text | one_value text
one | NULL | NULL

statement ok
CREATE FUNCTION first_row() RETURNS integer LANGUAGE sql AS $$ SELECT id FROM t ORDER BY id DESC; $$

query
SELECT first_row()
----
first_row integer
3

statement ok
CREATE FUNCTION all_rows(p integer) RETURNS SETOF t LANGUAGE sql AS $$ SELECT * FROM t WHERE id >= p ORDER BY id $$

query
SELECT * FROM all_rows(2)
----
id integer | a integer | b text
2 | 20 | two
3 | 30 | NULL

statement ok
CREATE FUNCTION columns(p integer) RETURNS TABLE (key integer, word text) LANGUAGE sql AS $$ SELECT id, upper(b) FROM t WHERE a > p ORDER BY id $$

query
SELECT * FROM columns(10)
----
key integer | word text
2 | TWO
3 | NULL

query
SELECT word, key * 2 AS k FROM columns(0) WHERE key < 3
----
word text | k integer
ONE | 2
TWO | 4

statement ok
CREATE FUNCTION out_parameters(p integer, OUT lo integer, OUT hi integer) LANGUAGE sql AS $$ SELECT min(a), max(a) FROM t WHERE id >= p $$

query
SELECT * FROM out_parameters(2)
----
lo integer | hi integer
20 | 30

query
SELECT * FROM out_parameters(9)
----
lo integer | hi integer
NULL | NULL

# Several statements; the last one gives the result.

statement ok
CREATE FUNCTION several(p integer) RETURNS bigint LANGUAGE sql AS $$
    INSERT INTO t VALUES (p, p * 10, 'new');
    UPDATE t SET a = a + 1 WHERE id = p;
    SELECT sum(a) FROM t;
$$

query
SELECT several(4)
----
several bigint
101

statement error 23505
SELECT several(1)

query
SELECT * FROM t ORDER BY id
----
id integer | a integer | b text
1 | 10 | one
2 | 20 | two
3 | 30 | NULL
4 | 41 | new

statement ok
CREATE FUNCTION with_returning(p integer) RETURNS text LANGUAGE sql AS $$ UPDATE t SET b = b || '!' WHERE id = p RETURNING b $$

query
SELECT with_returning(1), with_returning(3), with_returning(9)
----
with_returning text | with_returning text | with_returning text
one! | NULL | NULL

statement ok
CREATE FUNCTION nothing(p integer) RETURNS void LANGUAGE sql AS $$ DELETE FROM t WHERE id = p $$

query
SELECT nothing(4) IS NULL
----
?column? boolean
t

query
SELECT * FROM t ORDER BY id
----
id integer | a integer | b text
1 | 10 | one!
2 | 20 | two
3 | 30 | NULL

statement ok
CREATE PROCEDURE put(p integer, q text) LANGUAGE sql AS $$ INSERT INTO t VALUES (p, NULL, q) $$

statement ok
CALL put(5, 'five')

statement ok
CREATE FUNCTION parameter_and_column(a integer) RETURNS text LANGUAGE sql AS $$ SELECT b FROM t WHERE t.a = parameter_and_column.a $$

query
SELECT parameter_and_column(10), parameter_and_column(11)
----
parameter_and_column text | parameter_and_column text
one! | NULL

# A column hides a parameter of its name.

statement ok
CREATE FUNCTION column_wins(a integer) RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM t WHERE a = a $$

query
SELECT column_wins(1), column_wins(NULL)
----
column_wins bigint | column_wins bigint
3 | 3

statement ok
CREATE FUNCTION strictly(a integer, b integer) RETURNS integer LANGUAGE sql STRICT AS $$ SELECT coalesce(a, 0) + coalesce(b, 0) $$

query
SELECT strictly(1, 2), strictly(NULL, 2)
----
strictly integer | strictly integer
3 | NULL

statement ok
CREATE FUNCTION called_from_plpgsql(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
    s text := add(p, 1)::text;
BEGIN
    FOR r IN SELECT * FROM columns(p) LOOP
        s := s || ' ' || r.key || coalesce(r.word, '?');
    END LOOP;
    RETURN s;
END;
$$

query
SELECT called_from_plpgsql(5)
----
called_from_plpgsql text
6 1ONE! 2TWO 3?

statement ok
CREATE FUNCTION calls_plpgsql(p integer) RETURNS text LANGUAGE sql AS $$ SELECT called_from_plpgsql(p) || '/' || add(p, p) $$

query
SELECT calls_plpgsql(15)
----
calls_plpgsql text
16 2TWO 3?/30

# Errors of the definition.

statement error 42703
CREATE FUNCTION unknown_column() RETURNS integer LANGUAGE sql AS $$ SELECT no_such FROM t $$

statement error 42P01
CREATE FUNCTION unknown_table() RETURNS integer LANGUAGE sql AS $$ SELECT 1 FROM no_such $$

statement error 42P13
CREATE FUNCTION wrong_type() RETURNS integer LANGUAGE sql AS $$ SELECT 'a'::text $$

statement error 42P13
CREATE FUNCTION too_many_columns() RETURNS integer LANGUAGE sql AS $$ SELECT 1, 2 $$

statement error 42P13
CREATE FUNCTION no_result() RETURNS integer LANGUAGE sql AS $$ DELETE FROM t $$

statement error 42601
CREATE FUNCTION syntax() RETURNS integer LANGUAGE sql AS $$ SELEC 1 $$
