# INSERT, UPDATE, DELETE in functions, with and without RETURNING INTO.

statement ok
CREATE TABLE t (id integer PRIMARY KEY, a integer NOT NULL, b varchar(5), c numeric(6,2))

statement ok
CREATE FUNCTION add_row(p_id integer, p_a integer, p_b text, p_c numeric) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r t%ROWTYPE;
BEGIN
    INSERT INTO t VALUES (p_id, p_a, p_b, p_c) RETURNING * INTO r;
    RETURN r.id || ' ' || r.a || ' ' || coalesce(r.b, 'null') || ' ' || coalesce(r.c::text, 'null');
END;
$$

query
SELECT add_row(1, 10, 'x', 1.005), add_row(2, 20, NULL, NULL), add_row(3, 30, 'abcde  ', -2)
----
add_row text | add_row text | add_row text
1 10 x 1.01 | 2 20 null null | 3 30 abcde -2.00

statement error 23505
SELECT add_row(1, 11, 'y', 0)

statement error 23502
SELECT add_row(4, NULL, 'y', 0)

statement error 22001
SELECT add_row(4, 1, 'abcdef', 0)

statement error 22003
SELECT add_row(4, 1, 'y', 9999.995)

statement error 23502
SELECT add_row(NULL, 1, 'y', 0)

query
SELECT * FROM t ORDER BY id
----
id integer | a integer | b character varying(5) | c numeric(6,2)
1 | 10 | x | 1.01
2 | 20 | NULL | NULL
3 | 30 | abcde | -2.00

statement ok
CREATE FUNCTION add_some_columns(p_id integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_b text := 'before';
    v_sum integer;
BEGIN
    INSERT INTO t (a, id) VALUES (p_id * 2, p_id) RETURNING b, a + id INTO v_b, v_sum;
    RETURN coalesce(v_b, 'null') || ' ' || v_sum;
END;
$$

query
SELECT add_some_columns(5)
----
add_some_columns text
null 15

statement ok
CREATE FUNCTION copy_rows(p_shift integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    INSERT INTO t SELECT id + p_shift, a + 1, b, c * 2 FROM t WHERE id < 3;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END;
$$

query
SELECT copy_rows(100)
----
copy_rows integer
2

statement error 23505
SELECT copy_rows(1)

query
SELECT * FROM t ORDER BY id
----
id integer | a integer | b character varying(5) | c numeric(6,2)
1 | 10 | x | 1.01
2 | 20 | NULL | NULL
3 | 30 | abcde | -2.00
5 | 10 | NULL | NULL
101 | 11 | x | 2.02
102 | 21 | NULL | NULL

statement ok
CREATE FUNCTION change_one(p_id integer, p_by integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_a integer := -1;
    v_c numeric;
BEGIN
    UPDATE t SET a = a + p_by, c = coalesce(c, 0) + 0.5 WHERE id = p_id RETURNING a, c INTO v_a, v_c;
    RETURN coalesce(v_a::text, 'null') || ' ' || coalesce(v_c::text, 'null') || ' ' || FOUND;
END;
$$

query
SELECT change_one(1, 5), change_one(2, -5), change_one(99, 1)
----
change_one text | change_one text | change_one text
15 1.51 true | 15 0.50 true | null null false

statement error 22003
SELECT change_one(1, 2147483647)

query
SELECT * FROM t WHERE id = 1
----
id integer | a integer | b character varying(5) | c numeric(6,2)
1 | 15 | x | 1.51

statement ok
CREATE FUNCTION change_strictly(p_from integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v integer;
BEGIN
    UPDATE t SET a = a + 1 WHERE id >= p_from RETURNING id INTO STRICT v;
    RETURN v;
END;
$$

query
SELECT change_strictly(102)
----
change_strictly integer
102

statement error P0002
SELECT change_strictly(1000)

statement error P0003
SELECT change_strictly(1)

statement ok
CREATE FUNCTION change_many_into_one() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v integer;
BEGIN
    UPDATE t SET a = a + 1 WHERE id >= 1 RETURNING id INTO v;
    RETURN v;
END;
$$

statement error P0003
SELECT change_many_into_one()

query
SELECT id, a FROM t ORDER BY id
----
id integer | a integer
1 | 15
2 | 15
3 | 30
5 | 10
101 | 11
102 | 22

# All expressions of one UPDATE see the old row.

statement ok
CREATE FUNCTION swap(p_id integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x integer;
    y numeric;
BEGIN
    UPDATE t SET a = c, c = a WHERE id = p_id RETURNING a, c INTO x, y;
    RETURN x || ' ' || y;
END;
$$

query
SELECT swap(1)
----
swap text
2 15.00

statement ok
CREATE FUNCTION change_key(p_old integer, p_new integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_b text;
BEGIN
    UPDATE t SET id = p_new WHERE id = p_old;
    SELECT b INTO v_b FROM t WHERE id = p_new;
    RETURN coalesce(v_b, 'null') || (SELECT count(*) FROM t WHERE id = p_old);
END;
$$

query
SELECT change_key(3, 4)
----
change_key text
abcde0

statement error 23505
SELECT change_key(4, 5)

statement error 23502
SELECT change_key(4, NULL)

query
SELECT id, b FROM t ORDER BY id
----
id integer | b character varying(5)
1 | x
2 | NULL
4 | abcde
5 | NULL
101 | x
102 | NULL

statement ok
CREATE FUNCTION change_by_query() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    UPDATE t SET a = (SELECT max(id) FROM t) WHERE id IN (SELECT id FROM t WHERE b IS NULL);
    UPDATE t SET (b, c) = ('pair', 7) WHERE id = 5;
    UPDATE t SET b = upper(b) || '!', c = CASE WHEN c > 5 THEN 5 ELSE c END WHERE b IS NOT NULL AND length(b) < 5;
    RETURN 'done';
END;
$$

query
SELECT change_by_query()
----
change_by_query text
done

query
SELECT * FROM t ORDER BY id
----
id integer | a integer | b character varying(5) | c numeric(6,2)
1 | 2 | X! | 5.00
2 | 102 | NULL | 0.50
4 | 30 | abcde | -2.00
5 | 102 | PAIR! | 5.00
101 | 11 | X! | 2.02
102 | 102 | NULL | NULL

statement ok
CREATE FUNCTION remove_one(p_id integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r RECORD;
BEGIN
    DELETE FROM t WHERE id = p_id RETURNING id, b INTO r;
    IF NOT FOUND THEN
        RETURN 'none';
    END IF;
    RETURN r.id || coalesce(r.b, 'null');
END;
$$

query
SELECT remove_one(5), remove_one(5), remove_one(101)
----
remove_one text | remove_one text | remove_one text
5PAIR! | none | 101X!

# A row may be deleted and inserted again, changed and deleted, in one call.

statement ok
CREATE FUNCTION again(p_id integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    DELETE FROM t WHERE id = p_id;
    INSERT INTO t VALUES (p_id, 1, 'new', 1);
    UPDATE t SET a = a + 1 WHERE id = p_id;
    DELETE FROM t WHERE id = p_id AND a = 2;
    GET DIAGNOSTICS n = ROW_COUNT;
    INSERT INTO t VALUES (p_id, 3, 'again', n);
    RETURN (SELECT b || a || c FROM t WHERE id = p_id);
END;
$$

query
SELECT again(4), again(77)
----
again text | again text
again31.00 | again31.00

query
SELECT * FROM t ORDER BY id
----
id integer | a integer | b character varying(5) | c numeric(6,2)
1 | 2 | X! | 5.00
2 | 102 | NULL | 0.50
4 | 3 | again | 1.00
77 | 3 | again | 1.00
102 | 102 | NULL | NULL

# Default values of columns.

statement ok
CREATE TABLE d (id integer PRIMARY KEY, n integer DEFAULT 7, s text NOT NULL DEFAULT 'none')

statement ok
CREATE FUNCTION defaults() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r d%ROWTYPE;
    q d%ROWTYPE;
BEGIN
    INSERT INTO d (id) VALUES (1) RETURNING * INTO r;
    INSERT INTO d VALUES (2, NULL, DEFAULT) RETURNING * INTO q;
    RETURN r.n || r.s || coalesce(q.n::text, 'null') || q.s;
END;
$$

query
SELECT defaults()
----
defaults text
7nonenullnone

# Tables with a key of several columns.

statement ok
CREATE TABLE line (w smallint, d smallint, o integer, n smallint, amount numeric(6,2), PRIMARY KEY (w, d, o, n))

statement ok
CREATE FUNCTION fill_lines(p_w smallint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    count integer := 0;
BEGIN
    FOR v_d IN 1..2 LOOP
        FOR v_o IN 1..3 LOOP
            FOR v_n IN 1..v_o LOOP
                INSERT INTO line VALUES (p_w, v_d, v_o, v_n, v_d * 100 + v_o * 10 + v_n);
                count := count + 1;
            END LOOP;
        END LOOP;
    END LOOP;
    RETURN count;
END;
$$

query
SELECT fill_lines(1::smallint), fill_lines(2::smallint)
----
fill_lines integer | fill_lines integer
12 | 12

statement ok
CREATE FUNCTION order_total(p_w smallint, p_d smallint, p_o integer) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    v numeric(8,2);
BEGIN
    UPDATE line SET amount = amount + 0.5 WHERE w = p_w AND d = p_d AND o = p_o;
    SELECT sum(amount) INTO v FROM line WHERE w = p_w AND d = p_d AND o = p_o;
    RETURN v;
END;
$$

query
SELECT order_total(1::smallint, 2::smallint, 3), order_total(2::smallint, 1::smallint, 1), order_total(3::smallint, 1::smallint, 1)
----
order_total numeric | order_total numeric | order_total numeric
697.50 | 111.50 | NULL

statement ok
CREATE FUNCTION oldest_and_newest(p_w smallint, p_d smallint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    a integer;
    b integer;
    c integer;
BEGIN
    SELECT min(o) INTO a FROM line WHERE w = p_w AND d = p_d;
    SELECT o INTO b FROM line WHERE w = p_w AND d = p_d ORDER BY o DESC LIMIT 1;
    DELETE FROM line WHERE w = p_w AND d = p_d AND o = a;
    SELECT min(o) INTO c FROM line WHERE w = p_w AND d = p_d;
    RETURN coalesce(a::text, '-') || ' ' || coalesce(b::text, '-') || ' ' || coalesce(c::text, '-');
END;
$$

query
SELECT oldest_and_newest(1::smallint, 1::smallint), oldest_and_newest(1::smallint, 1::smallint), oldest_and_newest(1::smallint, 1::smallint), oldest_and_newest(1::smallint, 1::smallint)
----
oldest_and_newest text | oldest_and_newest text | oldest_and_newest text | oldest_and_newest text
1 3 2 | 2 3 3 | 3 3 - | - - -

query
SELECT w, d, o, count(*) AS lines, sum(amount) AS total FROM line GROUP BY w, d, o ORDER BY w, d, o
----
w smallint | d smallint | o integer | lines bigint | total numeric
1 | 2 | 1 | 1 | 211.00
1 | 2 | 2 | 2 | 443.00
1 | 2 | 3 | 3 | 697.50
2 | 1 | 1 | 1 | 111.50
2 | 1 | 2 | 2 | 243.00
2 | 1 | 3 | 3 | 396.00
2 | 2 | 1 | 1 | 211.00
2 | 2 | 2 | 2 | 443.00
2 | 2 | 3 | 3 | 696.00

# RETURNING sees the rows of FROM and USING as they were, those of the changed table too.
statement ok
CREATE TABLE chain (id integer PRIMARY KEY, next integer, v integer)

statement count 4
INSERT INTO chain VALUES (1, 2, 10), (2, 3, 20), (3, 1, 30), (4, 4, 40)

statement ok
CREATE FUNCTION rotate() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY UPDATE chain a SET v = b.v FROM chain b WHERE b.id = a.next
        RETURNING a.id || ': ' || a.v || ' from ' || b.v;
    RETURN QUERY UPDATE chain a SET v = a.v + 1 FROM chain old WHERE old.id = a.id
        RETURNING a.id || ': ' || old.v || ' to ' || a.v;
END;
$$

query unordered
SELECT * FROM rotate()
----
rotate text
1: 20 from 20
2: 30 from 30
3: 10 from 10
4: 40 from 40
1: 20 to 21
2: 30 to 31
3: 10 to 11
4: 40 to 41

statement ok
CREATE FUNCTION cut() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY DELETE FROM chain a USING chain b WHERE b.id = a.next RETURNING a.id || ' before ' || b.id || ' ' || b.v;
END;
$$

query unordered
SELECT * FROM cut()
----
cut text
1 before 2 31
2 before 3 11
3 before 1 21
4 before 4 41
