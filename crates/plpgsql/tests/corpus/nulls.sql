# NULL: three values of truth, in conditions, comparisons, functions.

statement ok
CREATE FUNCTION truth(a boolean) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF a THEN
        RETURN 'true';
    ELSIF NOT a THEN
        RETURN 'false';
    ELSE
        RETURN 'null';
    END IF;
END;
$$

query
SELECT truth(true), truth(false), truth(NULL)
----
truth text | truth text | truth text
true | false | null

statement ok
CREATE FUNCTION logic(a boolean, b boolean) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce((a AND b)::text, 'null') || ' ' || coalesce((a OR b)::text, 'null') || ' ' || coalesce((NOT a)::text, 'null') || ' ' || coalesce((a = b)::text, 'null') || ' ' || coalesce((a <> b)::text, 'null');
END;
$$

query
SELECT logic(true, true), logic(true, false), logic(false, false)
----
logic text | logic text | logic text
true true false true false | false true false false true | false false true true false

query
SELECT logic(true, NULL), logic(false, NULL), logic(NULL, true), logic(NULL, false), logic(NULL, NULL)
----
logic text | logic text | logic text | logic text | logic text
null true false null null | false null true null null | null true null null null | false null null null null | null null null null null

statement ok
CREATE FUNCTION tests(a boolean) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (a IS TRUE) || ' ' || (a IS NOT TRUE) || ' ' || (a IS FALSE) || ' ' || (a IS NOT FALSE) || ' ' || (a IS UNKNOWN) || ' ' || (a IS NULL) || ' ' || (a IS NOT NULL);
END;
$$

query
SELECT tests(true), tests(false), tests(NULL)
----
tests text | tests text | tests text
true false false true false false true | false true true false false false true | false true false true true true false

statement ok
CREATE FUNCTION compared(a integer, b integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce((a = b)::text, 'null') || ' ' || coalesce((a < b)::text, 'null') || ' ' || (a IS DISTINCT FROM b) || ' ' || (a IS NOT DISTINCT FROM b);
END;
$$

query
SELECT compared(1, 1), compared(1, 2), compared(1, NULL), compared(NULL, 1), compared(NULL, NULL)
----
compared text | compared text | compared text | compared text | compared text
true false false true | false true true false | null null true false | null null true false | null null false true

statement ok
CREATE FUNCTION arithmetic(a integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN a + 1 IS NULL AND 1 - a IS NULL AND a * 0 IS NULL AND a / 0 IS NULL AND -a IS NULL AND a % 2 IS NULL;
END;
$$

query
SELECT arithmetic(NULL)
----
arithmetic boolean
t

statement ok
CREATE FUNCTION texts(a text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN a || 'x' IS NULL AND 'x' || a IS NULL AND length(a) IS NULL AND upper(a) IS NULL AND a LIKE '%' IS NULL AND substr(a, 1) IS NULL;
END;
$$

query
SELECT texts(NULL), texts('')
----
texts boolean | texts boolean
t | f

statement ok
CREATE FUNCTION first_of(a integer, b integer, c integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce(a, b, c, -1) || ' ' || coalesce(nullif(a, b)::text, 'null') || ' ' || coalesce(greatest(a, b, c)::text, 'null') || ' ' || coalesce(least(a, b, c)::text, 'null') || ' ' || num_nulls(a, b, c);
END;
$$

query
SELECT first_of(1, 2, 3), first_of(NULL, 2, 3), first_of(NULL, NULL, 3), first_of(NULL, NULL, NULL), first_of(2, 2, NULL)
----
first_of text | first_of text | first_of text | first_of text | first_of text
1 1 3 1 0 | 2 null 3 2 1 | 3 null 3 3 2 | -1 null null null 3 | 2 null 2 2 1

# COALESCE evaluates no more than it needs.

statement ok
CREATE FUNCTION lazy(a integer, b integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce(a, 10 / b);
END;
$$

query
SELECT lazy(1, 0), lazy(NULL, 5), lazy(NULL, NULL)
----
lazy integer | lazy integer | lazy integer
1 | 2 | NULL

statement error 22012
SELECT lazy(NULL, 0)

statement ok
CREATE FUNCTION membership(a integer, b integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce((a IN (1, 2, b))::text, 'null') || ' ' || coalesce((a NOT IN (1, 2, b))::text, 'null');
END;
$$

query
SELECT membership(1, 3), membership(5, 3), membership(5, NULL), membership(1, NULL), membership(NULL, 3)
----
membership text | membership text | membership text | membership text | membership text
true false | false true | null null | true false | null null

statement ok
CREATE FUNCTION ranges(a integer, b integer, c integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce((a BETWEEN b AND c)::text, 'null') || ' ' || coalesce((a NOT BETWEEN b AND c)::text, 'null') || ' ' || coalesce((a BETWEEN SYMMETRIC b AND c)::text, 'null');
END;
$$

query
SELECT ranges(2, 1, 3), ranges(2, 3, 1), ranges(5, 1, NULL), ranges(0, 1, NULL), ranges(NULL, 1, 2)
----
ranges text | ranges text | ranges text | ranges text | ranges text
true false true | false true true | null null null | false true null | null null null

# Loops and conditions take NULL for not true.

statement ok
CREATE FUNCTION while_null(a boolean) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    n integer := 0;
BEGIN
    WHILE a LOOP
        n := n + 1;
        EXIT WHEN n = 3;
    END LOOP;
    RETURN n;
END;
$$

query
SELECT while_null(true), while_null(false), while_null(NULL)
----
while_null integer | while_null integer | while_null integer
3 | 0 | 0

statement ok
CREATE FUNCTION exit_when_null(a boolean) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    n integer := 0;
BEGIN
    LOOP
        n := n + 1;
        EXIT WHEN a;
        EXIT WHEN n > 4;
    END LOOP;
    RETURN n;
END;
$$

query
SELECT exit_when_null(true), exit_when_null(NULL)
----
exit_when_null integer | exit_when_null integer
1 | 5

statement ok
CREATE FUNCTION case_null(a integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE a WHEN 1 THEN 'one' WHEN NULL THEN 'never' ELSE 'else' END || CASE WHEN a > 1 THEN '>' WHEN a IS NULL THEN '?' ELSE '<' END;
END;
$$

query
SELECT case_null(1), case_null(2), case_null(NULL)
----
case_null text | case_null text | case_null text
one< | else> | else?

# A STRICT function is not called with NULL.

statement ok
CREATE FUNCTION strict_one(a integer, b text) RETURNS text LANGUAGE plpgsql STRICT AS $$ BEGIN RETURN 'called'; END; $$

query
SELECT strict_one(1, 'a'), strict_one(NULL, 'a'), strict_one(1, NULL)
----
strict_one text | strict_one text | strict_one text
called | NULL | NULL
