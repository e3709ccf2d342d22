# INSERT ... ON CONFLICT.

statement ok
CREATE TABLE stock (id integer PRIMARY KEY, quantity integer NOT NULL, note text)

statement ok
CREATE FUNCTION put(p_id integer, p_quantity integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v integer;
BEGIN
    INSERT INTO stock AS s VALUES (p_id, p_quantity, 'new')
    ON CONFLICT (id) DO UPDATE SET quantity = s.quantity + excluded.quantity, note = 'added'
    RETURNING s.quantity INTO v;
    RETURN v || ' ' || FOUND;
END;
$$

query
SELECT put(1, 10), put(1, 5), put(2, 7), put(1, -15)
----
put text | put text | put text | put text
10 true | 15 true | 7 true | 0 true

query
SELECT * FROM stock ORDER BY id
----
id integer | quantity integer | note text
1 | 0 | added
2 | 7 | new

statement error 23502
SELECT put(1, NULL)

statement error 23502
SELECT put(NULL, 1)

statement ok
CREATE FUNCTION put_if_missing(p_id integer, p_quantity integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v integer := -1;
    n integer;
BEGIN
    INSERT INTO stock VALUES (p_id, p_quantity) ON CONFLICT (id) DO NOTHING RETURNING quantity INTO v;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN coalesce(v::text, 'null') || ' ' || FOUND || ' ' || n;
END;
$$

query
SELECT put_if_missing(1, 99), put_if_missing(3, 99), put_if_missing(3, 98)
----
put_if_missing text | put_if_missing text | put_if_missing text
null false 0 | 99 true 1 | null false 0

statement ok
CREATE FUNCTION put_conditionally(p_id integer, p_quantity integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    INSERT INTO stock AS s VALUES (p_id, p_quantity)
    ON CONFLICT (id) DO UPDATE SET quantity = excluded.quantity WHERE s.quantity < excluded.quantity;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n || ' ' || FOUND;
END;
$$

query
SELECT put_conditionally(2, 3), put_conditionally(2, 8), put_conditionally(4, 1)
----
put_conditionally text | put_conditionally text | put_conditionally text
0 false | 1 true | 1 true

query
SELECT * FROM stock ORDER BY id
----
id integer | quantity integer | note text
1 | 0 | added
2 | 8 | new
3 | 99 | NULL
4 | 1 | NULL

statement ok
CREATE FUNCTION put_several() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    INSERT INTO stock VALUES (4, 40), (5, 50), (6, 60) ON CONFLICT (id) DO UPDATE SET quantity = excluded.quantity * 10;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END;
$$

query
SELECT put_several()
----
put_several integer
3

statement ok
CREATE FUNCTION put_twice() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO stock VALUES (7, 1), (7, 2) ON CONFLICT (id) DO UPDATE SET quantity = excluded.quantity;
    RETURN 1;
END;
$$

statement error 21000
SELECT put_twice()

statement ok
CREATE FUNCTION skip_twice() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    INSERT INTO stock VALUES (8, 1), (8, 2), (1, 3) ON CONFLICT (id) DO NOTHING;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END;
$$

query
SELECT skip_twice()
----
skip_twice integer
1

query
SELECT * FROM stock ORDER BY id
----
id integer | quantity integer | note text
1 | 0 | added
2 | 8 | new
3 | 99 | NULL
4 | 400 | NULL
5 | 50 | NULL
6 | 60 | NULL
8 | 1 | NULL

statement ok
CREATE FUNCTION put_from_query(p_factor integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
    s text := '';
BEGIN
    FOR r IN
        INSERT INTO stock (id, quantity) SELECT id + 4, quantity * p_factor FROM stock WHERE id <= 4
        ON CONFLICT (id) DO UPDATE SET quantity = stock.quantity - excluded.quantity
        RETURNING id, quantity
    LOOP
        s := s || r.id || '=' || r.quantity || ' ';
    END LOOP;
    RETURN s;
END;
$$

query
SELECT length(put_from_query(2))
----
length integer
23

query
SELECT * FROM stock ORDER BY id
----
id integer | quantity integer | note text
1 | 0 | added
2 | 8 | new
3 | 99 | NULL
4 | 400 | NULL
5 | 50 | NULL
6 | 44 | NULL
7 | 198 | NULL
8 | -799 | NULL

# The usual counter.

statement ok
CREATE TABLE words (word varchar(10) PRIMARY KEY, n integer NOT NULL)

statement ok
CREATE FUNCTION count_words(p text[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    w text;
BEGIN
    FOREACH w IN ARRAY p LOOP
        INSERT INTO words VALUES (w, 1) ON CONFLICT (word) DO UPDATE SET n = words.n + 1;
    END LOOP;
    RETURN (SELECT count(*) FROM words);
END;
$$

query
SELECT count_words('{to,be,or,not,to,be}'), count_words('{be}')
----
count_words bigint | count_words bigint
4 | 4

query
SELECT * FROM words ORDER BY word
----
word character varying(10) | n integer
be | 3
not | 1
or | 1
to | 2
