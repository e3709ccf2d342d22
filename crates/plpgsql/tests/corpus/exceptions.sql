# EXCEPTION: which handler, what it sees, what is undone.

statement ok
CREATE TABLE t (id integer PRIMARY KEY, a integer NOT NULL)

statement count 2
INSERT INTO t VALUES (1, 10), (2, 20)

statement ok
CREATE FUNCTION divide(a integer, b integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN a / b;
EXCEPTION
    WHEN division_by_zero THEN
        RETURN 'zero';
    WHEN numeric_value_out_of_range THEN
        RETURN 'range';
END;
$$

query
SELECT divide(7, 2), divide(1, 0), divide(-2147483648, -1), divide(NULL, 0)
----
divide text | divide text | divide text | divide text
3 | zero | range | NULL

statement ok
CREATE FUNCTION kinds(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    x integer;
BEGIN
    CASE p
        WHEN 1 THEN INSERT INTO t VALUES (1, 1);
        WHEN 2 THEN INSERT INTO t VALUES (3, NULL);
        WHEN 3 THEN x := 'a'::text;
        WHEN 4 THEN x := 1 / (p - 4);
        WHEN 5 THEN x := 2147483647 + p;
        WHEN 6 THEN SELECT a INTO STRICT x FROM t WHERE id = 99;
        WHEN 7 THEN SELECT a INTO STRICT x FROM t;
        WHEN 8 THEN RAISE EXCEPTION 'mine' USING ERRCODE = 'MY001';
        WHEN 9 THEN x := (SELECT a FROM t);
        WHEN 10 THEN x := sqrt(-p);
        WHEN 11 THEN PERFORM substring('a', 1, -p);
    END CASE;
    RETURN 'none';
EXCEPTION
    WHEN unique_violation THEN
        RETURN 'unique ' || SQLSTATE;
    WHEN not_null_violation OR no_data_found OR too_many_rows THEN
        RETURN 'three ' || SQLSTATE;
    WHEN SQLSTATE 'MY001' THEN
        RETURN 'state ' || SQLERRM;
    WHEN data_exception THEN
        RETURN 'class ' || SQLSTATE;
    WHEN OTHERS THEN
        RETURN 'others ' || SQLSTATE;
END;
$$

query
SELECT kinds(1), kinds(2), kinds(3), kinds(4), kinds(5), kinds(6)
----
kinds text | kinds text | kinds text | kinds text | kinds text | kinds text
unique 23505 | three 23502 | class 22P02 | class 22012 | class 22003 | three P0002

query
SELECT kinds(7), kinds(8), kinds(9), kinds(10), kinds(11), kinds(12)
----
kinds text | kinds text | kinds text | kinds text | kinds text | kinds text
three P0003 | state mine | others 21000 | class 2201F | class 22011 | others 20000

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 10
2 | 20

# The first handler that fits, though a later one fits better.

statement ok
CREATE FUNCTION first_handler() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN 1 / 0;
EXCEPTION
    WHEN OTHERS THEN
        RETURN 'others';
    WHEN division_by_zero THEN
        RETURN 'never';
END;
$$

query
SELECT first_handler()
----
first_handler text
others

statement ok
CREATE FUNCTION no_handler_fits() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN 1 / 0;
EXCEPTION
    WHEN unique_violation THEN
        RETURN 'never';
END;
$$

statement error 22012
SELECT no_handler_fits()

# Assertions and cancellations are not among OTHERS.

statement ok
CREATE FUNCTION assertion_passes_others() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    ASSERT false, 'wrong';
    RETURN 'never';
EXCEPTION WHEN OTHERS THEN
    RETURN 'never';
END;
$$

statement error P0004
SELECT assertion_passes_others()

statement ok
CREATE FUNCTION assertion_by_name() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    ASSERT false, 'wrong';
    RETURN 'never';
EXCEPTION WHEN assert_failure THEN
    RETURN SQLSTATE || SQLERRM;
END;
$$

query
SELECT assertion_by_name()
----
assertion_by_name text
P0004wrong

# Changes of the block are undone, those before it are not; variables keep their values.

statement ok
CREATE FUNCTION undo_block() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n integer := 1;
    s text := 'a';
BEGIN
    INSERT INTO t VALUES (10, 1);
    BEGIN
        n := 2;
        s := s || 'b';
        INSERT INTO t VALUES (11, 1);
        UPDATE t SET a = 99 WHERE id IN (1, 10);
        DELETE FROM t WHERE id = 2;
        n := 3;
        INSERT INTO t VALUES (1, 1);
        n := 4;
    EXCEPTION WHEN unique_violation THEN
        s := s || 'c';
        INSERT INTO t VALUES (12, n);
    END;
    INSERT INTO t VALUES (13, n);
    RETURN s || n;
END;
$$

query
SELECT undo_block()
----
undo_block text
abc3

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 10
2 | 20
10 | 1
12 | 3
13 | 3

statement ok
CREATE FUNCTION clean_up(p integer) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM t WHERE id >= p;
    RETURN (SELECT count(*) FROM t);
END;
$$

query
SELECT clean_up(10)
----
clean_up bigint
2

# Nested blocks: the inner one stays undone when the outer goes on, and the reverse.

statement ok
CREATE FUNCTION nested(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    s text := '';
BEGIN
    INSERT INTO t VALUES (20, p);
    BEGIN
        INSERT INTO t VALUES (21, p);
        BEGIN
            INSERT INTO t VALUES (22, p);
            IF p = 1 THEN RAISE division_by_zero; END IF;
            IF p = 2 THEN RAISE unique_violation; END IF;
            s := s || 'x';
        EXCEPTION WHEN division_by_zero THEN
            s := s || 'i';
            INSERT INTO t VALUES (23, p);
            IF p = 1 AND FOUND THEN
                s := s || 'f';
            END IF;
        END;
        INSERT INTO t VALUES (24, p);
        IF p = 3 THEN RAISE EXCEPTION 'outer'; END IF;
    EXCEPTION WHEN OTHERS THEN
        s := s || 'o';
        INSERT INTO t VALUES (25, p);
    END;
    RETURN s || array_to_string(ARRAY(SELECT id FROM t WHERE id >= 20 ORDER BY id), ',');
END;
$$

query
SELECT nested(0)
----
nested text
x20,21,22,24

query
SELECT clean_up(20)
----
clean_up bigint
2

query
SELECT nested(1)
----
nested text
if20,21,23,24

query
SELECT clean_up(20)
----
clean_up bigint
2

query
SELECT nested(2)
----
nested text
o20,25

query
SELECT clean_up(20)
----
clean_up bigint
2

query
SELECT nested(3)
----
nested text
xo20,25

query
SELECT clean_up(20)
----
clean_up bigint
2

# An error in a handler leaves the block, and undoes what the handler did.

statement ok
CREATE FUNCTION error_in_handler() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        INSERT INTO t VALUES (30, 1);
        RAISE EXCEPTION 'first';
    EXCEPTION WHEN OTHERS THEN
        INSERT INTO t VALUES (31, 1);
        INSERT INTO t VALUES (1, 1);
    END;
    RETURN 'never';
EXCEPTION WHEN unique_violation THEN
    INSERT INTO t VALUES (32, 1);
    RETURN 'outer';
END;
$$

query
SELECT error_in_handler()
----
error_in_handler text
outer

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 10
2 | 20
32 | 1

query
SELECT clean_up(30)
----
clean_up bigint
2

# In a loop, each round is undone by itself.

statement ok
CREATE FUNCTION round_by_round() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    good integer := 0;
    bad integer := 0;
BEGIN
    FOR i IN -3..3 LOOP
        BEGIN
            INSERT INTO t VALUES (40 + abs(i), 100 / i);
            good := good + 1;
        EXCEPTION
            WHEN division_by_zero THEN
                INSERT INTO t VALUES (49, i);
            WHEN unique_violation THEN
                bad := bad + 1;
                CONTINUE;
        END;
    END LOOP;
    RETURN good || ' ' || bad;
END;
$$

query
SELECT round_by_round()
----
round_by_round text
3 3

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 10
2 | 20
41 | -100
42 | -50
43 | -33
49 | 0

query
SELECT clean_up(40)
----
clean_up bigint
2

# RETURN and EXIT from within a block with handlers keep its changes.

statement ok
CREATE FUNCTION leave_early(p integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    LOOP
        BEGIN
            INSERT INTO t VALUES (50 + p, p);
            IF p = 1 THEN
                RETURN 'returned';
            END IF;
            EXIT WHEN p = 2;
            RAISE EXCEPTION 'x';
        EXCEPTION WHEN raise_exception THEN
            RETURN 'handled';
        END;
    END LOOP;
    RETURN 'left';
END;
$$

query
SELECT leave_early(1), leave_early(2), leave_early(3)
----
leave_early text | leave_early text | leave_early text
returned | left | handled

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 10
2 | 20
51 | 1
52 | 2

query
SELECT clean_up(50)
----
clean_up bigint
2

# Errors of a function called.

statement ok
CREATE FUNCTION inner_call(p integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t VALUES (60 + p, p);
    RETURN 100 / p;
END;
$$

statement ok
CREATE FUNCTION outer_call(p integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    n integer := -1;
BEGIN
    BEGIN
        n := inner_call(p);
    EXCEPTION WHEN division_by_zero THEN
        RETURN 'caught ' || n || ' ' || (SELECT count(*) FROM t WHERE id >= 60);
    END;
    RETURN n || ' ' || (SELECT count(*) FROM t WHERE id >= 60);
END;
$$

query
SELECT outer_call(0)
----
outer_call text
caught -1 0

query
SELECT outer_call(5)
----
outer_call text
20 1

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 10
2 | 20
65 | 5

# An error that nobody handles undoes the whole call.

statement ok
CREATE FUNCTION fails_late(p integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t VALUES (70, 1);
    BEGIN
        INSERT INTO t VALUES (71, 1);
        DELETE FROM t WHERE id = 1;
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
    UPDATE t SET a = a * 2;
    RETURN 1 / p;
END;
$$

statement error 22012
SELECT fails_late(0)

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
1 | 10
2 | 20
65 | 5

query
SELECT fails_late(1)
----
fails_late text
1

query
SELECT * FROM t ORDER BY id
----
id integer | a integer
2 | 40
65 | 10
70 | 2
71 | 2

# SQLSTATE and SQLERRM are those of the handler's error, inner handlers notwithstanding.

statement ok
CREATE FUNCTION own_state() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    s text;
BEGIN
    RAISE EXCEPTION 'one' USING ERRCODE = 'AA001';
EXCEPTION WHEN OTHERS THEN
    s := SQLSTATE || SQLERRM;
    BEGIN
        RAISE EXCEPTION 'two' USING ERRCODE = 'AA002';
    EXCEPTION WHEN OTHERS THEN
        s := s || ' ' || SQLSTATE || SQLERRM;
    END;
    RETURN s || ' ' || SQLSTATE || SQLERRM;
END;
$$

query
SELECT own_state()
----
own_state text
AA001one AA002two AA001one

# FOUND after a block that failed is as the last statement before the error left it.

statement ok
CREATE FUNCTION errors_in_declarations(p integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    DECLARE
        x integer := 10 / p;
    BEGIN
        RETURN x;
    EXCEPTION WHEN division_by_zero THEN
        RETURN 'inner';
    END;
EXCEPTION WHEN division_by_zero THEN
    RETURN 'outer';
END;
$$

query
SELECT errors_in_declarations(5), errors_in_declarations(0)
----
errors_in_declarations text | errors_in_declarations text
2 | outer

statement ok
CREATE FUNCTION handler_for_text(p text) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RETURN p::integer;
EXCEPTION
    WHEN invalid_text_representation THEN
        RETURN -1;
    WHEN numeric_value_out_of_range THEN
        RETURN -2;
END;
$$

query
SELECT handler_for_text('12'), handler_for_text('x'), handler_for_text('99999999999')
----
handler_for_text integer | handler_for_text integer | handler_for_text integer
12 | -1 | -2
