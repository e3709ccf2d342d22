# RAISE: levels, formats, USING, codes; what a handler sees of it.

statement ok
CREATE FUNCTION fail(p integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF p = 1 THEN RAISE EXCEPTION 'plain';
    ELSIF p = 2 THEN RAISE EXCEPTION 'coded' USING ERRCODE = '22012';
    ELSIF p = 3 THEN RAISE EXCEPTION 'named' USING ERRCODE = 'unique_violation';
    ELSIF p = 4 THEN RAISE division_by_zero;
    ELSIF p = 5 THEN RAISE SQLSTATE '45678';
    ELSIF p = 6 THEN RAISE 'without a level';
    ELSIF p = 7 THEN RAISE EXCEPTION USING MESSAGE = 'only options', ERRCODE = 'AB123';
    ELSIF p = 8 THEN RAISE unique_violation USING MESSAGE = 'both';
    ELSIF p = 9 THEN RAISE EXCEPTION 'computed' USING ERRCODE = '22' || '003';
    END IF;
    RETURN 0;
END;
$$

statement error P0001
SELECT fail(1)

statement error 22012
SELECT fail(2)

statement error 23505
SELECT fail(3)

statement error 22012
SELECT fail(4)

statement error 45678
SELECT fail(5)

statement error P0001
SELECT fail(6)

statement error AB123
SELECT fail(7)

statement error 23505
SELECT fail(8)

statement error 22003
SELECT fail(9)

query
SELECT fail(0)
----
fail integer
0

statement ok
CREATE FUNCTION seen(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    m text;
    s text;
    d text;
    h text;
BEGIN
    PERFORM fail(p);
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS m = MESSAGE_TEXT, s = RETURNED_SQLSTATE, d = PG_EXCEPTION_DETAIL, h = PG_EXCEPTION_HINT;
    RETURN SQLSTATE || ' ' || SQLERRM || ', ' || (s = SQLSTATE) || (m = SQLERRM) || '[' || d || '][' || h || ']';
END;
$$

query
SELECT seen(0), seen(1), seen(2), seen(3)
----
seen text | seen text | seen text | seen text
no error | P0001 plain, truetrue[][] | 22012 coded, truetrue[][] | 23505 named, truetrue[][]

query
SELECT seen(5), seen(6), seen(7), seen(8), seen(9)
----
seen text | seen text | seen text | seen text | seen text
45678 45678, truetrue[][] | P0001 without a level, truetrue[][] | AB123 only options, truetrue[][] | 23505 both, truetrue[][] | 22003 computed, truetrue[][]

statement ok
CREATE FUNCTION options() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    m text;
    d text;
    h text;
BEGIN
    RAISE EXCEPTION 'the message' USING DETAIL = 'the detail ' || 1 + 1, HINT = 'the hint', ERRCODE = 'P0099';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS m = MESSAGE_TEXT, d = PG_EXCEPTION_DETAIL, h = PG_EXCEPTION_HINT;
    RETURN m || '/' || d || '/' || h || '/' || SQLSTATE;
END;
$$

query
SELECT options()
----
options text
the message/the detail 2/the hint/P0099

# Formats.

statement ok
CREATE FUNCTION formatted(a integer, b text, c numeric) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a=%, b=%, c+1=%, 100%%, %%%', a, b, c + 1, a IS NULL;
EXCEPTION WHEN raise_exception THEN
    RETURN SQLERRM;
END;
$$

query
SELECT formatted(1, 'x', 2.50), formatted(NULL, NULL, NULL), formatted(-1, '%', 0)
----
formatted text | formatted text | formatted text
a=1, b=x, c+1=3.50, 100%, %f | a=<NULL>, b=<NULL>, c+1=<NULL>, 100%, %t | a=-1, b=%, c+1=1, 100%, %f

statement ok
CREATE FUNCTION format_values() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% % % % %', true, DATE '2024-02-29', ARRAY[1, 2], 1.50, 'it''s';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLERRM;
END;
$$

query
SELECT format_values()
----
format_values text
t 2024-02-29 {1,2} 1.50 it's

statement error 42601
CREATE FUNCTION too_few() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% and %', 1;
END;
$$

statement error 42601
CREATE FUNCTION too_many() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', 1, 2;
END;
$$

statement ok
CREATE FUNCTION message_twice() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'x' USING HINT = 'a', HINT = 'b';
    RETURN 1;
END;
$$

statement error 42704
CREATE FUNCTION unknown_condition() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RAISE no_such_condition;
END;
$$

statement ok
CREATE FUNCTION unknown_code() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'x' USING ERRCODE = 'no_such_condition';
END;
$$

statement error 42704
SELECT unknown_code()

# The other levels are no errors, and their arguments are evaluated.

statement ok
CREATE FUNCTION levels(p integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE DEBUG 'debug %', p;
    RAISE LOG 'log %', p;
    RAISE INFO 'info %', p;
    RAISE NOTICE 'notice %', p;
    RAISE WARNING 'warning %', p USING HINT = 'none';
    RAISE NOTICE USING MESSAGE = 'options';
    RETURN 'went on';
END;
$$

query
SELECT levels(1)
----
levels text
went on

statement ok
CREATE FUNCTION notice_fails() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '%', 1 / 0;
    RETURN 'went on';
END;
$$

statement error 22012
SELECT notice_fails()

# Once more.

statement ok
CREATE FUNCTION again(p integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        RETURN 10 / p;
    EXCEPTION WHEN division_by_zero THEN
        RAISE;
    END;
EXCEPTION WHEN division_by_zero THEN
    RETURN -1;
END;
$$

query
SELECT again(5), again(0)
----
again integer | again integer
2 | -1

statement ok
CREATE FUNCTION again_to_caller() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'x' USING ERRCODE = '22023';
EXCEPTION WHEN OTHERS THEN
    RAISE;
END;
$$

statement error 22023
SELECT again_to_caller()

statement ok
CREATE FUNCTION another_instead() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN 1 / 0;
EXCEPTION WHEN division_by_zero THEN
    RAISE EXCEPTION 'instead of %', SQLSTATE USING ERRCODE = '55000';
END;
$$

statement error 55000
SELECT another_instead()

statement ok
CREATE FUNCTION raise_outside_handler() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RAISE;
END;
$$

statement error 0Z002
SELECT raise_outside_handler()
