# Calls within transactions of several statements.

statement ok
CREATE TABLE t (id integer PRIMARY KEY, a integer)

statement count 2
INSERT INTO t VALUES (1, 1), (200, 2)

statement ok
CREATE FUNCTION add(p integer, q integer) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t VALUES (p, q);
    RETURN (SELECT count(*) FROM t);
END;
$$

statement ok
BEGIN

query
SELECT add(10, 1)
----
add bigint
3

query
SELECT add(11, 1)
----
add bigint
4

statement ok
ROLLBACK

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 1
200 | 2

statement ok
BEGIN

query
SELECT add(12, 1)
----
add bigint
3

statement ok
COMMIT

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 1
12 | 1
200 | 2

statement ok
BEGIN

query
SELECT add(13, 1)
----
add bigint
4

statement error 23505
SELECT add(12, 1)

statement error 25P02
SELECT add(14, 1)

statement ok
ROLLBACK

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 1
12 | 1
200 | 2

# A statement that fails by itself leaves no trace either.

statement error 22012
SELECT add(id + 20, 1 / (id - 12)) FROM t ORDER BY id

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 1
12 | 1
200 | 2

# An error handled inside does not harm the transaction.

statement ok
CREATE FUNCTION add_or_not(p integer, q integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add(p, q);
    RETURN 'added';
EXCEPTION WHEN unique_violation THEN
    RETURN 'was there';
END;
$$

statement ok
BEGIN

query
SELECT add_or_not(30, 1), add_or_not(1, 1)
----
add_or_not text | add_or_not text
added | was there

query
SELECT add_or_not(30, 2), add_or_not(31, 2)
----
add_or_not text | add_or_not text
was there | added

statement ok
COMMIT

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 1
12 | 1
30 | 1
31 | 2
200 | 2

statement ok
CREATE PROCEDURE put(p integer) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t VALUES (p, 9);
    INSERT INTO t VALUES (p + 1, 9);
END;
$$

statement ok
CALL put(40)

statement error 23505
CALL put(39)

statement ok
BEGIN

statement ok
CALL put(50)

statement ok
ROLLBACK

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 1
12 | 1
30 | 1
31 | 2
40 | 9
41 | 9
200 | 2

# A definition is rolled back with its transaction.

statement ok
BEGIN

statement ok
CREATE OR REPLACE FUNCTION add_or_not(p integer, q integer) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'replaced'; END; $$

query
SELECT add_or_not(1, 1)
----
add_or_not text
replaced

statement ok
ROLLBACK

query
SELECT add_or_not(1, 1)
----
add_or_not text
was there
