# Functions that call functions, procedures, CALL with INOUT, defaults, names, overloads.

statement ok
CREATE FUNCTION twice(p integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN p * 2; END; $$

statement ok
CREATE FUNCTION four_times(p integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v integer := twice(p);
BEGIN
    v := twice(v);
    RETURN v;
END;
$$

query
SELECT four_times(3), twice(twice(1)) + four_times(1), four_times(NULL)
----
four_times integer | ?column? integer | four_times integer
12 | 8 | NULL

statement error 22003
SELECT four_times(1000000000)

statement ok
CREATE TABLE log (id integer PRIMARY KEY, word text)

statement ok
CREATE FUNCTION write_log(p_id integer, p_word text) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log VALUES (p_id, p_word);
    RETURN (SELECT count(*) FROM log);
END;
$$

statement ok
CREATE FUNCTION write_two(p_id integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    PERFORM write_log(p_id, 'first');
    n := write_log(p_id + 1, 'second');
    RETURN n || ' ' || (SELECT max(id) FROM log);
END;
$$

query
SELECT write_two(1)
----
write_two text
2 2

statement error 23505
SELECT write_two(2)

query
SELECT * FROM log ORDER BY id
----
id integer | word text
1 | first
2 | second

statement ok
CREATE FUNCTION two_values(p integer, OUT x integer, OUT y integer) LANGUAGE plpgsql AS $$
BEGIN
    x := p; y := p * p;
END;
$$

statement ok
CREATE FUNCTION from_function(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    a integer;
    b integer;
BEGIN
    SELECT x, y INTO a, b FROM two_values(p);
    RETURN a || ' ' || b;
END;
$$

query
SELECT from_function(5)
----
from_function text
5 25

statement ok
CREATE FUNCTION in_query(p integer) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT sum(twice(id)) FROM log WHERE twice(id) > p);
END;
$$

query
SELECT in_query(0), in_query(2), in_query(100)
----
in_query bigint | in_query bigint | in_query bigint
6 | 4 | NULL

# Procedures.

statement ok
CREATE PROCEDURE put(p_id integer, p_word text) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log VALUES (p_id, p_word);
END;
$$

statement ok
CALL put(10, 'ten')

statement error 23505
CALL put(10, 'again')

statement error 42809
SELECT put(11, 'x')

statement error 42809
CALL twice(1)

query
SELECT * FROM log ORDER BY id
----
id integer | word text
1 | first
2 | second
10 | ten

statement ok
CREATE PROCEDURE changes(INOUT a integer, INOUT b text, c integer) LANGUAGE plpgsql AS $$
BEGIN
    a := a + c;
    b := b || a;
END;
$$

query
CALL changes(1, 'x', 5)
----
a integer | b text
6 | x6

statement ok
CREATE PROCEDURE gives(a integer, OUT b integer, OUT c text) LANGUAGE plpgsql AS $$
BEGIN
    b := a * 10;
    c := 'c' || a;
END;
$$

query
CALL gives(3, NULL, NULL)
----
b integer | c text
30 | c3

statement ok
CREATE FUNCTION calls_procedures() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n integer := 1;
    s text := 'a';
    m integer;
    t text;
BEGIN
    CALL changes(n, s, 2);
    CALL changes(n, s, n * 10);
    CALL gives(n, m, t);
    CALL put(20, s);
    RETURN n || ' ' || s || ' ' || m || ' ' || t;
END;
$$

query
SELECT calls_procedures()
----
calls_procedures text
33 a333 330 c33

query
SELECT * FROM log ORDER BY id
----
id integer | word text
1 | first
2 | second
10 | ten
20 | a333

statement ok
CREATE FUNCTION inout_needs_variable() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    CALL changes(1, 'x', 2);
    RETURN 1;
END;
$$

statement error 42601
SELECT inout_needs_variable()

statement ok
CREATE PROCEDURE return_early(INOUT a integer) LANGUAGE plpgsql AS $$
BEGIN
    a := a + 1;
    IF a > 5 THEN
        RETURN;
    END IF;
    a := a * 100;
END;
$$

query
CALL return_early(1)
----
a integer
200

query
CALL return_early(7)
----
a integer
8

statement error 42601
CREATE PROCEDURE return_value() LANGUAGE plpgsql AS $$
BEGIN
    RETURN 1;
END;
$$

statement ok
CREATE PROCEDURE handles(INOUT a integer) LANGUAGE plpgsql AS $$
BEGIN
    CALL put(1, 'taken');
EXCEPTION WHEN unique_violation THEN
    a := -1;
END;
$$

query
CALL handles(0)
----
a integer
-1

# Defaults and names.

statement ok
CREATE FUNCTION with_defaults(a integer, b integer DEFAULT 10, c text = 'c') RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN a || ' ' || b || ' ' || c;
END;
$$

query
SELECT with_defaults(1), with_defaults(1, 2), with_defaults(1, 2, 'x')
----
with_defaults text | with_defaults text | with_defaults text
1 10 c | 1 2 c | 1 2 x

query
SELECT with_defaults(1, c => 'n'), with_defaults(c => 'm', a => 5), with_defaults(a => 1, b => 2, c => '3')
----
with_defaults text | with_defaults text | with_defaults text
1 10 n | 5 10 m | 1 2 3

statement error 42883
SELECT with_defaults()

statement error 42883
SELECT with_defaults(1, 2, '3', 4)

statement error 42883
SELECT with_defaults(1, no_such => 2)

statement ok
CREATE FUNCTION calls_with_defaults() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN with_defaults(7) || '/' || with_defaults(7, c => 'q');
END;
$$

query
SELECT calls_with_defaults()
----
calls_with_defaults text
7 10 c/7 10 q

# Overloads.

statement ok
CREATE FUNCTION which(a integer) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'integer'; END; $$

statement ok
CREATE FUNCTION which(a text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'text'; END; $$

statement ok
CREATE FUNCTION which(a integer, b integer) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'two'; END; $$

query
SELECT which(1), which('x'), which(1, 2), which('x'::varchar), which(1::smallint)
----
which text | which text | which text | which text | which text
integer | text | two | text | integer

statement error 42883
SELECT which(true)

# Arguments are fitted to parameters.

query
SELECT twice(3::smallint), twice('4')
----
twice integer | twice integer
6 | 8

statement error 42883
SELECT twice(3::bigint)

statement error 42883
SELECT twice(3.0)

statement error 22P02
SELECT twice('x')

statement error 42883
SELECT no_such_function(1)

query
SELECT * FROM with_defaults(c => 'm', a => 5)
----
with_defaults text
5 10 m

query
SELECT d || '!' AS e FROM with_defaults(1, c => 'n') AS f (d)
----
e text
1 10 n!

statement error 42883
SELECT * FROM with_defaults(1, no_such => 2)

statement error 42883
SELECT * FROM generate_series(low => 1, high => 2)

# Names of built-in functions.

statement ok
CREATE FUNCTION abs(n integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN -1; END; $$

statement ok
CREATE FUNCTION round(n double precision, digits integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN 'mine';
END;
$$

query
SELECT abs(-3), abs(-3.5), round(1.25, 1), round(1.25::double precision, 1), round(2.5)
----
abs integer | abs numeric | round numeric | round text | round numeric
3 | 3.5 | 1.3 | mine | 3
