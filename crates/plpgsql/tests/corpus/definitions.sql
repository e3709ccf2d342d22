# CREATE OR REPLACE, DROP, and definitions that are refused.

statement ok
CREATE FUNCTION revision() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END; $$

statement ok
CREATE FUNCTION uses_revision(p integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN revision() * p; END; $$

query
SELECT uses_revision(10)
----
uses_revision integer
10

statement error 42723
CREATE FUNCTION revision() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 2; END; $$

statement ok
CREATE OR REPLACE FUNCTION revision() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 2; END; $$

query
SELECT uses_revision(10)
----
uses_revision integer
20

statement error 42P13
CREATE OR REPLACE FUNCTION revision() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 2; END; $$

statement error 42809
CREATE OR REPLACE PROCEDURE revision() LANGUAGE plpgsql AS $$ BEGIN NULL; END; $$

statement error 42P13
CREATE OR REPLACE FUNCTION uses_revision(q integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN q; END; $$

statement ok
DROP FUNCTION revision()

statement error 42883
DROP FUNCTION revision()

statement ok
DROP FUNCTION IF EXISTS revision()

statement error 42883
SELECT uses_revision(10)

statement error 42809
DROP PROCEDURE uses_revision(integer)

statement ok
DROP FUNCTION uses_revision

statement ok
CREATE FUNCTION o(a integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN a; END; $$

statement ok
CREATE FUNCTION o(a text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN a; END; $$

statement error 42725
DROP FUNCTION o

statement ok
DROP FUNCTION o(text)

query
SELECT o(1), o('2')
----
o integer | o integer
1 | 2

# A replaced function keeps nothing of the old one.

statement ok
CREATE TABLE t (id integer PRIMARY KEY, a integer)

statement ok
CREATE FUNCTION put(p integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t VALUES (p, 1);
    RETURN 1;
END;
$$

query
SELECT put(1)
----
put integer
1

statement ok
CREATE OR REPLACE FUNCTION put(p integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t VALUES (p * 100, 2);
    RETURN 2;
END;
$$

query
SELECT put(2)
----
put integer
2

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 1
200 | 2

# Definitions that are refused.

statement error 42601
CREATE FUNCTION f() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 1 $$

statement error 42601
CREATE FUNCTION f() RETURNS integer LANGUAGE plpgsql AS $$ RETURN 1; $$

statement error 42601
CREATE FUNCTION f() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETRUN 1; END; $$

statement error 42601
CREATE FUNCTION f() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN x := 1; RETURN 1; END; $$

statement error 42601
CREATE FUNCTION f() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN SELECT 1 INTO x; RETURN 1; END; $$

statement error 42601
CREATE FUNCTION f() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 1 +; END; $$

statement error 42601
CREATE FUNCTION f() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN IF true THEN RETURN 1; END; $$

statement error 42P13
CREATE FUNCTION f(a integer, a text) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END; $$

statement error 42704
CREATE FUNCTION f(a no_such_type) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END; $$

statement error 42704
CREATE FUNCTION f() RETURNS integer LANGUAGE no_such_language AS $$ BEGIN RETURN 1; END; $$

statement error 42P13
CREATE FUNCTION f(a integer DEFAULT 1, b integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END; $$

statement error 42P13
CREATE FUNCTION f() LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END; $$

statement error 42P13
CREATE FUNCTION f() RETURNS integer LANGUAGE plpgsql

statement error 42704
CREATE FUNCTION f() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN 1; EXCEPTION WHEN no_such THEN RETURN 2; END; $$
