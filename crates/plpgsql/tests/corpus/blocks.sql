# Blocks, declarations, scopes and labels.

statement ok
CREATE FUNCTION empty_block() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN 1;
END;
$$

query
SELECT empty_block()
----
empty_block integer
1

statement ok
CREATE FUNCTION no_semicolon() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN 2;
END
$$

query
SELECT no_semicolon()
----
no_semicolon integer
2

statement ok
CREATE FUNCTION initial_values(OUT a integer, OUT b integer, OUT c text, OUT d boolean, OUT e numeric) LANGUAGE plpgsql AS $$
DECLARE
    x integer;
    y integer := 5;
    z text DEFAULT 'z';
    w CONSTANT boolean = true;
    v numeric(5,2) NOT NULL := 1.005;
BEGIN
    a := x; b := y; c := z; d := w; e := v;
END;
$$

query
SELECT * FROM initial_values()
----
a integer | b integer | c text | d boolean | e numeric
NULL | 5 | z | t | 1.01

# A declaration sees those before it, and the parameters.

statement ok
CREATE FUNCTION chained(p integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    a integer := p * 2;
    b integer := a + 1;
    c integer := b * b;
BEGIN
    RETURN c;
END;
$$

query
SELECT chained(1), chained(10), chained(NULL)
----
chained integer | chained integer | chained integer
9 | 441 | NULL

# Initial values are computed at each entry of the block.

statement ok
CREATE FUNCTION fresh_each_time() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text := '';
BEGIN
    FOR i IN 1..3 LOOP
        DECLARE
            n integer := 10;
            m integer;
        BEGIN
            n := n + i;
            result := result || n || coalesce(m::text, '-') || ' ';
            m := n;
        END;
    END LOOP;
    RETURN result;
END;
$$

query
SELECT fresh_each_time()
----
fresh_each_time text
11- 12- 13-

statement ok
CREATE FUNCTION inner_hides_outer() RETURNS text LANGUAGE plpgsql AS $$
<<outer_block>>
DECLARE
    n integer := 1;
    result text;
BEGIN
    DECLARE
        n text := 'inner';
    BEGIN
        result := n || ' ' || outer_block.n;
        outer_block.n := 7;
    END;
    RETURN result || ' ' || n;
END outer_block;
$$

query
SELECT inner_hides_outer()
----
inner_hides_outer text
inner 1 7

statement ok
CREATE FUNCTION variable_hides_parameter(n integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n integer := 100;
BEGIN
    RETURN n || ' ' || variable_hides_parameter.n || ' ' || $1;
END;
$$

query
SELECT variable_hides_parameter(3)
----
variable_hides_parameter text
100 3 3

statement ok
CREATE FUNCTION parameter_is_assigned(n integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    n := n + 1;
    $1 := $1 * 10;
    RETURN n;
END;
$$

query
SELECT parameter_is_assigned(4)
----
parameter_is_assigned integer
50

statement ok
CREATE FUNCTION aliased(integer, text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    number ALIAS FOR $1;
    word ALIAS FOR $2;
    again ALIAS FOR number;
BEGIN
    again := again + 1;
    RETURN word || number;
END;
$$

query
SELECT aliased(1, 'x')
----
aliased text
x2

statement ok
CREATE FUNCTION exit_leaves_block() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text := 'a';
BEGIN
    <<inner_block>>
    BEGIN
        result := result || 'b';
        EXIT inner_block WHEN length(result) = 2;
        result := result || 'c';
    END inner_block;
    RETURN result || 'd';
END;
$$

query
SELECT exit_leaves_block()
----
exit_leaves_block text
abd

statement ok
CREATE FUNCTION quoted_names("Mixed Case" integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    "mixed case" integer := 1;
    UPPER integer := 2;
BEGIN
    RETURN "Mixed Case" * 100 + "mixed case" * 10 + upper;
END;
$$

query
SELECT quoted_names(5)
----
quoted_names integer
512

statement ok
CREATE FUNCTION null_statement() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    NULL;
END;
$$

query
SELECT null_statement()
----
null_statement void
(empty)

# Constants and NOT NULL.

statement error 22005
CREATE FUNCTION constant_assigned() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    c CONSTANT integer := 1;
BEGIN
    c := 2;
    RETURN c;
END;
$$

statement error 22004
CREATE FUNCTION not_null_without_value() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    c integer NOT NULL;
BEGIN
    RETURN c;
END;
$$

statement ok
CREATE FUNCTION not_null_assigned(p integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    c integer NOT NULL := 1;
BEGIN
    c := p;
    RETURN c;
END;
$$

query
SELECT not_null_assigned(3)
----
not_null_assigned integer
3

statement error 22004
SELECT not_null_assigned(NULL)

statement ok
CREATE FUNCTION not_null_initial(p integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    c CONSTANT integer NOT NULL := p;
BEGIN
    RETURN c;
END;
$$

statement error 22004
SELECT not_null_initial(NULL)

statement error 42601
CREATE FUNCTION twice() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    a integer;
    a text;
BEGIN
    RETURN 1;
END;
$$

# A name that is a variable's and a column's.

statement ok
CREATE TABLE t (n integer PRIMARY KEY, s text)

statement count 2
INSERT INTO t VALUES (1, 'one'), (2, 'two')

statement ok
CREATE FUNCTION ambiguous(n integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT t.s FROM t WHERE t.n = ambiguous.n);
END;
$$

query
SELECT ambiguous(2), ambiguous(3)
----
ambiguous text | ambiguous text
two | NULL

statement ok
CREATE FUNCTION use_variable(n integer) RETURNS bigint LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
    RETURN (SELECT count(*) FROM t WHERE t.n <= n);
END;
$$

query
SELECT use_variable(1), use_variable(0), use_variable(9)
----
use_variable bigint | use_variable bigint | use_variable bigint
1 | 0 | 2

statement ok
CREATE FUNCTION use_column(n integer) RETURNS bigint LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT count(*) FROM t WHERE t.n <= n);
END;
$$

query
SELECT use_column(1), use_column(0), use_column(9)
----
use_column bigint | use_column bigint | use_column bigint
2 | 2 | 2

# Comments are no statements.

statement ok
CREATE FUNCTION commented() RETURNS text LANGUAGE plpgsql AS $body$
-- a comment; with a semicolon and END
BEGIN /* another
   /* nested */ one */
    RETURN '-- no comment' || $q$ 'it's $$ text' $q$; -- last
END;
$body$

query
SELECT commented()
----
commented text
-- no comment 'it's $$ text'
