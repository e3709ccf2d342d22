# Functions that call themselves and each other.

statement ok
CREATE FUNCTION factorial(n integer) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    IF n <= 1 THEN
        RETURN 1;
    END IF;
    RETURN n * factorial(n - 1);
END;
$$

query
SELECT factorial(0), factorial(5), factorial(20)
----
factorial bigint | factorial bigint | factorial bigint
1 | 120 | 2432902008176640000

statement error 22003
SELECT factorial(21)

statement ok
CREATE FUNCTION fibonacci(n integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN n < 2 THEN n ELSE fibonacci(n - 1) + fibonacci(n - 2) END;
END;
$$

query
SELECT fibonacci(1), fibonacci(10), fibonacci(15)
----
fibonacci integer | fibonacci integer | fibonacci integer
1 | 55 | 610

statement ok
CREATE FUNCTION ackermann(m integer, n integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF m = 0 THEN
        RETURN n + 1;
    ELSIF n = 0 THEN
        RETURN ackermann(m - 1, 1);
    END IF;
    RETURN ackermann(m - 1, ackermann(m, n - 1));
END;
$$

query
SELECT ackermann(2, 3)
----
ackermann integer
9

# Each call has its own variables.

statement ok
CREATE FUNCTION own_variables(n integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before integer := n;
    inner_result text := '';
BEGIN
    IF n > 0 THEN
        inner_result := own_variables(n - 1);
        before := before * 10;
    END IF;
    RETURN n || ':' || before || ' ' || inner_result;
END;
$$

query
SELECT own_variables(3)
----
own_variables text
3:30 2:20 1:10 0:0

statement ok
CREATE FUNCTION is_even(n integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF n = 0 THEN
        RETURN true;
    END IF;
    RETURN is_odd(n - 1);
END;
$$

statement ok
CREATE FUNCTION is_odd(n integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF n = 0 THEN
        RETURN false;
    END IF;
    RETURN is_even(n - 1);
END;
$$

query
SELECT is_even(10), is_odd(10), is_even(7)
----
is_even boolean | is_odd boolean | is_even boolean
t | f | f

statement ok
CREATE FUNCTION bottomless(n integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN bottomless(n + 1);
END;
$$

statement error 54001
SELECT bottomless(0)

# A tree in a table.

statement ok
CREATE TABLE node (id integer PRIMARY KEY, parent integer, weight integer NOT NULL)

statement ok
CREATE INDEX node_parent ON node (parent)

statement count 6
INSERT INTO node VALUES (1, NULL, 1), (2, 1, 2), (3, 1, 3), (4, 2, 4), (5, 2, 5), (6, 5, 6)

statement ok
CREATE FUNCTION tree_weight(p integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
    total integer;
BEGIN
    SELECT weight INTO STRICT total FROM node WHERE id = p;
    FOR r IN SELECT id FROM node WHERE parent = p ORDER BY id LOOP
        total := total + tree_weight(r.id);
    END LOOP;
    RETURN total;
END;
$$

query
SELECT tree_weight(1), tree_weight(2), tree_weight(6)
----
tree_weight integer | tree_weight integer | tree_weight integer
21 | 17 | 6

statement error P0002
SELECT tree_weight(7)

statement ok
CREATE FUNCTION path(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v integer := p;
    s text := '';
BEGIN
    WHILE v IS NOT NULL LOOP
        s := '/' || v || s;
        SELECT parent INTO v FROM node WHERE id = v;
    END LOOP;
    RETURN s;
END;
$$

query
SELECT path(6), path(1)
----
path text | path text
/1/2/5/6 | /1

statement ok
CREATE FUNCTION prune(p integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    child integer;
    n integer := 1;
BEGIN
    FOR child IN SELECT id FROM node WHERE parent = p LOOP
        n := n + prune(child);
    END LOOP;
    DELETE FROM node WHERE id = p;
    RETURN n;
END;
$$

query
SELECT prune(2)
----
prune integer
4

query
SELECT * FROM node ORDER BY id
----
id integer | parent integer | weight integer
1 | NULL | 1
3 | 1 | 3

statement ok
CREATE PROCEDURE countdown(INOUT n integer, INOUT s text) LANGUAGE plpgsql AS $$
BEGIN
    s := s || n;
    IF n > 0 THEN
        n := n - 1;
        CALL countdown(n, s);
    END IF;
END;
$$

query
CALL countdown(4, '')
----
n integer | s text
0 | 43210

# Errors from far below.

statement ok
CREATE FUNCTION deep(n integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO node VALUES (100 + n, NULL, n);
    IF n = 0 THEN
        RETURN 1 / n;
    END IF;
    RETURN deep(n - 1);
EXCEPTION WHEN division_by_zero THEN
    IF n = 2 THEN
        RETURN n;
    END IF;
    RAISE;
END;
$$

query
SELECT deep(4)
----
deep integer
2

query
SELECT * FROM node ORDER BY id
----
id integer | parent integer | weight integer
1 | NULL | 1
3 | 1 | 3
103 | NULL | 3
104 | NULL | 4
