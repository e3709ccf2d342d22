# Arrays of one dimension.

statement ok
CREATE FUNCTION element(a integer[], i integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN a[i]; END; $$

query
SELECT element('{10,20,30}', 1), element('{10,20,30}', 3), element('{10,20,30}', 0), element('{10,20,30}', 4), element('{10,NULL}', 2), element(NULL, 1), element('{1}', NULL)
----
element integer | element integer | element integer | element integer | element integer | element integer | element integer
10 | 30 | NULL | NULL | NULL | NULL | NULL

statement ok
CREATE FUNCTION sizes(a integer[]) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce(array_length(a, 1)::text, 'null') || ' ' || coalesce(cardinality(a)::text, 'null') || ' ' || coalesce(array_upper(a, 1)::text, 'null') || ' ' || coalesce(array_lower(a, 1)::text, 'null');
END;
$$

query
SELECT sizes('{1,2,3}'), sizes('{}'), sizes(NULL)
----
sizes text | sizes text | sizes text
3 3 3 1 | null 0 null null | null null null null

statement ok
CREATE FUNCTION assigned(i integer, v integer) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
    a integer[] := ARRAY[1, 2, 3];
BEGIN
    a[i] := v;
    RETURN a;
END;
$$

query
SELECT assigned(1, 9), assigned(3, 9), assigned(4, 9), assigned(6, 9), assigned(2, NULL)
----
assigned integer[] | assigned integer[] | assigned integer[] | assigned integer[] | assigned integer[]
{9,2,3} | {1,2,9} | {1,2,3,9} | {1,2,3,NULL,NULL,9} | {1,NULL,3}

statement error 22004
SELECT assigned(NULL, 9)

statement ok
CREATE FUNCTION from_null() RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
    a integer[];
BEGIN
    a[1] := 5;
    a[2] := 6;
    RETURN a;
END;
$$

query
SELECT from_null()
----
from_null integer[]
{5,6}

statement ok
CREATE FUNCTION appended(n integer) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
    a integer[] := '{}';
BEGIN
    FOR i IN 1..n LOOP
        a := a || i * i;
        a := array_append(a, -i);
    END LOOP;
    RETURN array_prepend(0, a);
END;
$$

query
SELECT appended(0), appended(3)
----
appended integer[] | appended integer[]
{0} | {0,1,-1,4,-2,9,-3}

statement ok
CREATE FUNCTION joined(a integer[], b integer[]) RETURNS integer[] LANGUAGE plpgsql AS $$ BEGIN RETURN a || b; END; $$

query
SELECT joined('{1,2}', '{3}'), joined('{}', '{3}'), joined(NULL, '{3}'), joined('{1}', NULL), joined(NULL, NULL)
----
joined integer[] | joined integer[] | joined integer[] | joined integer[] | joined integer[]
{1,2,3} | {3} | {3} | {1} | NULL

statement ok
CREATE FUNCTION total(a integer[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n bigint := 0;
    x integer;
BEGIN
    FOREACH x IN ARRAY a LOOP
        CONTINUE WHEN x IS NULL;
        n := n + x;
    END LOOP;
    RETURN n;
END;
$$

query
SELECT total('{1,2,3}'), total('{}'), total('{5,NULL,6}')
----
total bigint | total bigint | total bigint
6 | 0 | 11

statement error 22004
SELECT total(NULL)

statement ok
CREATE FUNCTION by_index(a text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text := '';
BEGIN
    FOR i IN REVERSE cardinality(a)..1 LOOP
        result := result || coalesce(a[i], '?') || ',';
    END LOOP;
    RETURN result;
END;
$$

query
SELECT by_index('{a,b,c}'), by_index('{}'), by_index('{x,NULL}')
----
by_index text | by_index text | by_index text
c,b,a, | (empty) | ?,x,

# FOREACH reads the array as it was when the loop began.

statement ok
CREATE FUNCTION changed_while_read() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    a integer[] := ARRAY[1, 2, 3];
    x integer;
    result text := '';
BEGIN
    FOREACH x IN ARRAY a LOOP
        a[3] := 99;
        result := result || x || ' ';
    END LOOP;
    RETURN result || a[3];
END;
$$

query
SELECT changed_while_read()
----
changed_while_read text
1 2 3 99

statement ok
CREATE FUNCTION any_and_all(x integer, a integer[]) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce((x = ANY (a))::text, 'null') || ' ' || coalesce((x <> ALL (a))::text, 'null') || ' ' || coalesce((x > ANY (a))::text, 'null') || ' ' || coalesce((x >= ALL (a))::text, 'null');
END;
$$

query
SELECT any_and_all(2, '{1,2,3}'), any_and_all(9, '{1,2,3}'), any_and_all(2, '{}'), any_and_all(9, '{1,NULL}'), any_and_all(1, '{1,NULL}'), any_and_all(NULL, '{1}'), any_and_all(1, NULL)
----
any_and_all text | any_and_all text | any_and_all text | any_and_all text | any_and_all text | any_and_all text | any_and_all text
true false true false | false true true true | false true false true | null null true null | true false null null | null null null null | null null null null

statement ok
CREATE FUNCTION equal(a integer[], b integer[]) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (a = b) || ' ' || (a < b) || ' ' || (a IS DISTINCT FROM b);
END;
$$

query
SELECT equal('{1,2}', '{1,2}'), equal('{1,2}', '{1,3}'), equal('{1}', '{1,0}'), equal('{}', '{}'), equal('{NULL}', '{NULL}')
----
equal text | equal text | equal text | equal text | equal text
true false false | false true true | false true true | true false false | true false false

statement ok
CREATE FUNCTION positions(a integer[], x integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce(array_position(a, x)::text, 'null') || ' ' || array_remove(a, x)::text || ' ' || array_replace(a, x, 0)::text;
END;
$$

query
SELECT positions('{3,4,3}', 3), positions('{3,4}', 9), positions('{}', 1)
----
positions text | positions text | positions text
1 {4} {0,4,0} | null {3,4} {3,4} | null {} {}

# Elements of other types.

statement ok
CREATE FUNCTION elements(OUT a smallint[], OUT b numeric(5,2)[], OUT c varchar(3)[], OUT d boolean[], OUT e date[]) LANGUAGE plpgsql AS $$
BEGIN
    a[1] := 7;
    b := ARRAY[1.5, 2];
    c := ARRAY['x', 'y,z', 'q"r', ''];
    d := ARRAY[true, NULL, false];
    e[1] := '2024-02-29';
END;
$$

query
SELECT * FROM elements()
----
a smallint[] | b numeric[] | c character varying[] | d boolean[] | e date[]
{7} | {1.5,2} | {x,"y,z","q\"r",""} | {t,NULL,f} | {2024-02-29}

statement ok
CREATE FUNCTION typed_elements() RETURNS numeric(5,1)[] LANGUAGE plpgsql AS $$
DECLARE
    a numeric(5,1)[];
BEGIN
    a[1] := 1.25;
    a := a || 2.35;
    a[3] := 3;
    RETURN a;
END;
$$

query
SELECT typed_elements()
----
typed_elements numeric[]
{1.3,2.4,3.0}

statement ok
CREATE FUNCTION element_too_long() RETURNS varchar(3)[] LANGUAGE plpgsql AS $$
DECLARE
    a varchar(3)[];
BEGIN
    a[1] := 'abcd';
    RETURN a;
END;
$$

statement error 22001
SELECT element_too_long()

# Arrays in queries.

statement ok
CREATE TABLE item (id integer PRIMARY KEY, price numeric(6,2) NOT NULL)

statement count 4
INSERT INTO item VALUES (1, 1.50), (2, 2.50), (3, 10), (4, 0.01)

statement ok
CREATE FUNCTION sum_of(a integer[]) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT sum(price) FROM item WHERE id = ANY (a));
END;
$$

query
SELECT sum_of('{1,3}'), sum_of('{9}'), sum_of('{}'), sum_of('{4,4,4}'), sum_of(NULL)
----
sum_of numeric | sum_of numeric | sum_of numeric | sum_of numeric | sum_of numeric
11.50 | NULL | NULL | 0.01 | NULL

statement ok
CREATE FUNCTION ids_above(p numeric) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
    a integer[];
BEGIN
    SELECT array_agg(id ORDER BY id DESC) INTO a FROM item WHERE price > p;
    RETURN a;
END;
$$

query
SELECT ids_above(0), ids_above(2), ids_above(100)
----
ids_above integer[] | ids_above integer[] | ids_above integer[]
{4,3,2,1} | {3,2} | NULL

statement ok
CREATE FUNCTION from_query() RETURNS integer[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(SELECT id * 10 FROM item ORDER BY price);
END;
$$

query
SELECT from_query()
----
from_query integer[]
{40,10,20,30}

statement ok
CREATE FUNCTION unnested(a integer[]) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT max(x) FROM unnest(a) AS u (x));
END;
$$

query
SELECT unnested('{3,9,2}'), unnested('{}')
----
unnested integer | unnested integer
9 | NULL

statement ok
CREATE FUNCTION insert_each(a integer[], p numeric[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    n integer := 0;
BEGIN
    FOR i IN 1..array_length(a, 1) LOOP
        INSERT INTO item VALUES (a[i], p[i]);
        n := n + 1;
    END LOOP;
    RETURN n;
END;
$$

query
SELECT insert_each('{5,6}', '{5.555,6}')
----
insert_each integer
2

statement error 23505
SELECT insert_each('{7,1}', '{7,1}')

statement error 23502
SELECT insert_each('{8,9}', '{8}')

statement error 22004
SELECT insert_each('{}', '{}')

query
SELECT * FROM item ORDER BY id
----
id integer | price numeric(6,2)
1 | 1.50
2 | 2.50
3 | 10.00
4 | 0.01
5 | 5.56
6 | 6.00

statement ok
CREATE FUNCTION sorted(a integer[]) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
    x integer;
BEGIN
    FOR i IN 1..cardinality(a) - 1 LOOP
        FOR j IN 1..cardinality(a) - i LOOP
            IF a[j] > a[j + 1] THEN
                x := a[j];
                a[j] := a[j + 1];
                a[j + 1] := x;
            END IF;
        END LOOP;
    END LOOP;
    RETURN a;
END;
$$

query
SELECT sorted('{5,1,4,2,3}'), sorted('{1}'), sorted('{}')
----
sorted integer[] | sorted integer[] | sorted integer[]
{1,2,3,4,5} | {1} | {}

statement ok
CREATE FUNCTION to_text(a integer[], b text[]) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN array_to_string(a, '-') || ' ' || array_to_string(b, ',', '*') || ' ' || a::text;
END;
$$

query
SELECT to_text('{1,2,3}', '{a,NULL,b}')
----
to_text text
1-2-3 a,*,b {1,2,3}

statement ok
CREATE FUNCTION split(a text) RETURNS text[] LANGUAGE plpgsql AS $$ BEGIN RETURN string_to_array(a, ','); END; $$

query
SELECT split('a,b,c'), split(''), split('x'), split('a,,b')
----
split text[] | split text[] | split text[] | split text[]
{a,b,c} | {} | {x} | {a,"",b}

statement error 22P02
SELECT element('{1,x}', 1)

statement error 22P02
SELECT element('1,2', 1)

# Elements of what is named with its block or record.
statement ok
CREATE FUNCTION qualified_elements(a integer[]) RETURNS text LANGUAGE plpgsql AS $$
<<outside>>
DECLARE
    b integer[] := ARRAY[7, 8];
BEGIN
    DECLARE
        b text[] := ARRAY['x'];
    BEGIN
        outside.b[1] := outside.b[2] + qualified_elements.a[1];
        b[2] := outside.b[1];
        RETURN outside.b[1] || ' ' || b[2] || ' ' || (SELECT sum(outside.b[g]) FROM generate_series(1, 2) g);
    END;
END;
$$

query
SELECT qualified_elements(ARRAY[1])
----
qualified_elements text
9 9 17

statement ok
CREATE FUNCTION wrong_elements(a integer[]) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RETURN b.a[1]; END; $$

statement error 42P01
SELECT wrong_elements(ARRAY[1])

# Elements of a result that are put there in any order, by calls that use the memory of others.
statement ok
CREATE FUNCTION any_order(p integer, OUT a integer[], OUT t text[], OUT n bigint) LANGUAGE plpgsql AS $$
BEGIN
  IF p = 1 OR p = 3 THEN a[1] := 10 + p; t[1] := 'one ' || p; END IF;
  IF p >= 2 THEN a[2] := 20 + p; t[2] := 'two ' || p; END IF;
  IF p = 4 THEN a[1] := 14; t[0] := 'none'; END IF;
  n := cardinality(a);
END $$

query
SELECT * FROM any_order(0)
----
a integer[] | t text[] | n bigint
NULL | NULL | NULL

query
SELECT * FROM any_order(2)
----
a integer[] | t text[] | n bigint
[2:2]={22} | [2:2]={"two 2"} | 1

query
SELECT * FROM any_order(1)
----
a integer[] | t text[] | n bigint
{11} | {"one 1"} | 1

query
SELECT * FROM any_order(3)
----
a integer[] | t text[] | n bigint
{13,23} | {"one 3","two 3"} | 2

query
SELECT * FROM any_order(4)
----
a integer[] | t text[] | n bigint
{14,24} | [0:2]={none,NULL,"two 4"} | 2

query
SELECT * FROM any_order(0)
----
a integer[] | t text[] | n bigint
NULL | NULL | NULL

query
SELECT * FROM any_order(4)
----
a integer[] | t text[] | n bigint
{14,24} | [0:2]={none,NULL,"two 4"} | 2

query
SELECT * FROM any_order(2)
----
a integer[] | t text[] | n bigint
[2:2]={22} | [2:2]={"two 2"} | 1
