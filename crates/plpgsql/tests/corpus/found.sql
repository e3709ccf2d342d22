# FOUND, PERFORM, GET DIAGNOSTICS.

statement ok
CREATE TABLE t (id integer PRIMARY KEY, a integer)

statement count 4
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30), (4, 40)

statement ok
CREATE FUNCTION at_first() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN FOUND; END; $$

query
SELECT at_first()
----
at_first boolean
f

statement ok
CREATE FUNCTION after_select(p integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    x integer;
BEGIN
    SELECT a INTO x FROM t WHERE id = p;
    RETURN FOUND;
END;
$$

query
SELECT after_select(1), after_select(9)
----
after_select boolean | after_select boolean
t | f

statement ok
CREATE FUNCTION after_perform(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    PERFORM a FROM t WHERE id > p;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN FOUND || ' ' || n;
END;
$$

query
SELECT after_perform(0), after_perform(3), after_perform(4)
----
after_perform text | after_perform text | after_perform text
true 4 | true 1 | false 0

statement ok
CREATE FUNCTION after_update(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    UPDATE t SET a = a + 1 WHERE id > p;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN FOUND || ' ' || n;
END;
$$

query
SELECT after_update(2), after_update(4)
----
after_update text | after_update text
true 2 | false 0

statement ok
CREATE FUNCTION after_insert() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
    f boolean;
BEGIN
    INSERT INTO t VALUES (5, 50), (6, 60);
    f := FOUND;
    GET CURRENT DIAGNOSTICS n := ROW_COUNT;
    INSERT INTO t SELECT id + 100, a FROM t WHERE id > 1000;
    RETURN f || ' ' || n || ' ' || FOUND;
END;
$$

query
SELECT after_insert()
----
after_insert text
true 2 false

statement ok
CREATE FUNCTION after_delete(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    DELETE FROM t WHERE id >= p;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN FOUND || ' ' || n;
END;
$$

query
SELECT after_delete(5), after_delete(5)
----
after_delete text | after_delete text
true 2 | false 0

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 10
2 | 20
3 | 31
4 | 41

# What leaves FOUND alone: assignments, IF, RAISE, expressions with queries.

statement ok
CREATE FUNCTION left_alone() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x integer;
    r text;
BEGIN
    UPDATE t SET a = a WHERE id = 1;
    x := (SELECT a FROM t WHERE id = 99);
    r := FOUND;
    IF EXISTS (SELECT 1 FROM t WHERE id = 99) THEN
        r := 'never';
    END IF;
    FOR i IN 1..0 LOOP
        NULL;
    END LOOP;
    RETURN r || ' ' || FOUND;
END;
$$

query
SELECT left_alone()
----
left_alone text
true false

# A FOR loop sets it, at its end, to whether it had a round.

statement ok
CREATE FUNCTION after_loop(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r text := '';
BEGIN
    UPDATE t SET a = a WHERE id = 99;
    FOR i IN 1..p LOOP
        r := r || FOUND || ' ';
        UPDATE t SET a = a WHERE id = 99;
    END LOOP;
    RETURN r || FOUND;
END;
$$

query
SELECT after_loop(0), after_loop(1), after_loop(2)
----
after_loop text | after_loop text | after_loop text
false | false true | false false true

statement ok
CREATE FUNCTION after_foreach(p integer[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    x integer;
BEGIN
    FOREACH x IN ARRAY p LOOP
        NULL;
    END LOOP;
    RETURN FOUND;
END;
$$

query
SELECT after_foreach('{1}'), after_foreach('{}')
----
after_foreach boolean | after_foreach boolean
t | f

# Each function has its own.

statement ok
CREATE FUNCTION callee() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM t WHERE id = 99;
    RETURN 1;
END;
$$

statement ok
CREATE FUNCTION caller() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x integer;
    a boolean;
BEGIN
    PERFORM 1 FROM t WHERE id = 1;
    x := callee();
    a := FOUND;
    DELETE FROM t WHERE id = 99;
    PERFORM callee();
    RETURN a || ' ' || FOUND;
END;
$$

query
SELECT caller()
----
caller text
true true

statement ok
CREATE FUNCTION found_assigned() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    FOUND := true;
    RETURN FOUND;
END;
$$

query
SELECT found_assigned()
----
found_assigned boolean
t

statement ok
CREATE FUNCTION perform_evaluates() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 / (id - 3) FROM t;
    RETURN 1;
END;
$$

statement error 22012
SELECT perform_evaluates()

statement ok
CREATE FUNCTION row_count_of_into() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x integer;
    n integer;
    m integer;
BEGIN
    SELECT id INTO x FROM t ORDER BY id;
    GET DIAGNOSTICS n = ROW_COUNT;
    SELECT id INTO x FROM t WHERE id = 99;
    GET DIAGNOSTICS m = ROW_COUNT;
    RETURN n || ' ' || m;
END;
$$

query
SELECT row_count_of_into()
----
row_count_of_into text
1 0

statement ok
CREATE FUNCTION row_count_of_returning() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x integer;
    n integer;
BEGIN
    UPDATE t SET a = 0 WHERE id = 2 RETURNING id INTO x;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN x || ' ' || n || ' ' || FOUND;
END;
$$

query
SELECT row_count_of_returning()
----
row_count_of_returning text
2 1 true

# What INTO did is known to the handler of its failure.
statement ok
CREATE FUNCTION after_failed_into(how integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x integer;
    y smallint NOT NULL := 0;
    n integer;
BEGIN
    PERFORM 1 WHERE how % 2 = 0;
    CASE how
    WHEN 1, 2 THEN SELECT a INTO STRICT x FROM t ORDER BY id;
    WHEN 3, 4 THEN SELECT a INTO STRICT x FROM t WHERE id > 100;
    WHEN 5, 6 THEN UPDATE t SET a = a + 1 RETURNING a INTO x;
    WHEN 7, 8 THEN SELECT 100000 INTO y FROM t ORDER BY id;
    WHEN 9, 10 THEN SELECT NULL INTO y FROM t WHERE id > 100;
    END CASE;
    RETURN 'none';
EXCEPTION WHEN OTHERS THEN
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN SQLSTATE || ' ' || FOUND || ' ' || n;
END;
$$

query
SELECT how, after_failed_into(how) FROM generate_series(1, 10) g(how) ORDER BY how
----
how integer | after_failed_into text
1 | P0003 true 2
2 | P0003 true 2
3 | P0002 false 0
4 | P0002 false 0
5 | P0003 true 2
6 | P0003 true 2
7 | 22003 true 1
8 | 22003 true 1
9 | 22004 false 0
10 | 22004 false 0

statement ok
CREATE FUNCTION into_found() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text := '';
BEGIN
    SELECT false INTO FOUND;
    result := result || FOUND;
    SELECT true INTO FOUND FROM t WHERE id > 100;
    RETURN result || coalesce(FOUND::text, ' null');
END;
$$

query
SELECT into_found()
----
into_found text
false null
